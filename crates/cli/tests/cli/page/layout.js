// What is wrong with what is in sight: widths, and contrast of text (WCAG 2.2, 1.4.3 and 1.4.10).
const found = [];
const root = document.documentElement;
const named = (node) => `${node.tagName.toLowerCase()}${node.id ? `#${node.id}` : ''}${typeof node.className === 'string' && node.className ? `.${node.className}` : ''} "${(node.innerText || node.value || '').trim().slice(0, 30)}"`;
if (root.scrollWidth > root.clientWidth) found.push(`scrolls sideways: ${root.scrollWidth} of ${root.clientWidth}`);

const isClipped = (node) => {
  for (let each = node.parentElement; each && each !== document.body; each = each.parentElement) {
    if (getComputedStyle(each).overflowX !== 'visible') return true;
  }
  return false;
};
const inSight = (node) => node.checkVisibility({ visibilityProperty: true }) && !node.closest('#announce');
const all = [...document.body.querySelectorAll('*')].filter(inSight);
for (const node of all) {
  const box = node.getBoundingClientRect();
  if (box.width === 0 || box.height === 0 || isClipped(node)) continue;
  if (box.left < -0.5 || box.right > root.clientWidth + 0.5) found.push(`beyond the edge (${box.left} to ${box.right}): ${named(node)}`);
}

// ---- contrast

const pixel = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
const seen = new Map();
/** Red, green, blue and opacity of any colour that the browser knows. */
const parts = (colour) => {
  if (!seen.has(colour)) {
    pixel.clearRect(0, 0, 1, 1);
    pixel.fillStyle = colour;
    pixel.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = pixel.getImageData(0, 0, 1, 1).data;
    seen.set(colour, [r, g, b, a / 255]);
  }
  return seen.get(colour);
};
const over = ([r, g, b, a], below) => [r, g, b].map((part, i) => part * a + below[i] * (1 - a));
const background = (node) => {
  if (!node) return parts(getComputedStyle(root).colorScheme.includes('dark') ? 'black' : 'white').slice(0, 3);
  const own = parts(getComputedStyle(node).backgroundColor);
  return own[3] === 1 ? own.slice(0, 3) : over(own, background(node.parentElement));
};
const luminance = (colour) => colour.map((part) => part / 255)
  .map((part) => (part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4))
  .reduce((sum, part, i) => sum + part * [0.2126, 0.7152, 0.0722][i], 0);
let texts = 0;
const judge = (node, colour) => {
  // Text of what cannot be used is exempt.
  if (node.closest(':disabled')) return;
  texts += 1;
  const below = background(node);
  const [low, high] = [luminance(over(parts(colour), below)), luminance(below)].sort((a, b) => a - b);
  const contrast = (high + 0.05) / (low + 0.05);
  if (contrast < 4.5) found.push(`contrast ${contrast.toFixed(2)}: ${named(node)}`);
};
for (const node of all) {
  if (getComputedStyle(node).opacity !== '1') found.push(`half transparent, so its contrast is not known: ${named(node)}`);
  const isField = ['INPUT', 'SELECT', 'TEXTAREA'].includes(node.tagName);
  const hasText = [...node.childNodes].some((child) => child.nodeType === Node.TEXT_NODE && child.textContent.trim());
  if (node.tagName === 'OPTION') continue;
  if (isField || hasText) judge(node, getComputedStyle(node).color);
  if (isField && node.placeholder && !node.value) judge(node, getComputedStyle(node, '::placeholder').color);
}
const controls = all.filter((node) => node.matches('a[href], button, input, select, textarea'));
return { found, texts, controls: controls.length, width: innerWidth };
