// The flash array of a simulated SSD.

import { byId, setText, show, table } from './dom.js';
import { FlashGrid } from './charts.js';
import { joules, percent, seconds } from './format.js';

let flash = null;
let grid = null;

/** Shows what the server told of the flash of the run. */
export function set(value) {
  flash = value;
  show(byId('flash-section'), true);
  grid ||= new FlashGrid(byId('flash'));
  grid.set(flash);
  const energy = Object.entries(flash.energy_j || {}).map(([name, each]) => `${name} ${joules(each)}`);
  setText(byId('flash-text'), [`At ${seconds(flash.now_s)} of device time`, `garbage collection ${percent(flash.gc_share)} of the busy time`,
    energy.length ? `energy: ${energy.join(', ')}` : ''].filter(Boolean).join(' · '));
}

/** Forgets the flash of another run. */
export function clear() {
  flash = null;
  show(byId('flash-section'), false);
  byId('flash-table').replaceChildren();
}

function fillTable() {
  if (!flash) return;
  const most = Math.max(0, ...flash.dies.map((dies) => dies.length));
  const made = table(['Channel', 'Busy', ...Array.from({ length: most }, (_, i) => `Die ${i}`)], { caption: 'Busy shares' });
  made.body.append(...flash.channels.map((share, i) =>
    made.row([String(i), percent(share, 2), ...Array.from({ length: most }, (_, k) => percent(flash.dies[i]?.[k], 2))])));
  byId('flash-table').replaceChildren(made.node);
}

export function setup() {
  byId('flash-details').addEventListener('toggle', (event) => (event.target.open ? fillTable() : byId('flash-table').replaceChildren()));
  byId('flash-refresh').addEventListener('click', fillTable);
}
