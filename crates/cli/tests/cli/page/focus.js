// What has the focus, and whether a person can see that it has.
const node = document.activeElement;
if (!node || node === document.body || node === document.documentElement) return null;
const pixel = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
const rgb = (colour) => {
  pixel.clearRect(0, 0, 1, 1);
  pixel.fillStyle = colour;
  pixel.fillRect(0, 0, 1, 1);
  return [...pixel.getImageData(0, 0, 1, 1).data].slice(0, 3);
};
const luminance = (parts) => parts.map((part) => part / 255)
  .map((part) => (part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4))
  .reduce((sum, part, i) => sum + part * [0.2126, 0.7152, 0.0722][i], 0);
// The editor draws the ring around itself, lines and text together.
const ringed = node.closest('.editor') || node;
const style = getComputedStyle(ringed);
const drawn = style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2;
const [one, other] = [style.outlineColor, getComputedStyle(document.body).backgroundColor].map((each) => luminance(rgb(each)));
const box = node.getBoundingClientRect();
const [left, right] = [Math.max(box.left, 0), Math.min(box.right, innerWidth)];
const [top, bottom] = [Math.max(box.top, 0), Math.min(box.bottom, innerHeight)];
// A label above would be hit by a pointer as its field is.
const hit = right > left && bottom > top ? document.elementFromPoint((left + right) / 2, (top + bottom) / 2) : null;
return {
  stop: node.dataset.stop ?? null,
  what: `${node.tagName.toLowerCase()}#${node.id} ${(node.getAttribute('aria-label') || node.textContent || '').trim().slice(0, 40)}`,
  href: node.getAttribute('href'),
  id: node.id,
  ringed: drawn && (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05) >= 3,
  seen: Boolean(hit) && (node.contains(hit) || hit.contains(node)),
};
