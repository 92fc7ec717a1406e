// Sets the theme before the first paint. The choice is kept in this browser.
(() => {
  const dark = matchMedia('(prefers-color-scheme: dark)');
  const kept = () => {
    try {
      return localStorage.getItem('ssdyno-theme') || 'system';
    } catch {
      return 'system';
    }
  };
  const apply = () => {
    const choice = kept();
    const theme = choice === 'system' ? (dark.matches ? 'dark' : 'light') : choice;
    document.documentElement.dataset.theme = theme;
    dispatchEvent(new Event('theme'));
  };
  dark.addEventListener('change', apply);
  addEventListener('DOMContentLoaded', () => {
    const select = document.getElementById('theme');
    select.value = kept();
    select.addEventListener('change', () => {
      try {
        localStorage.setItem('ssdyno-theme', select.value);
        apply();
      } catch {
        document.documentElement.dataset.theme = select.value;
        dispatchEvent(new Event('theme'));
      }
    });
  });
  apply();
})();
