// The list of runs, and the comparison of two.

import { api, announce, byId, el, setText, show, showError, table } from './dom.js';
import { nameOf } from './kinds.js';
import { bytesPerSecond, count, joules, nanoseconds, rate, significant } from './format.js';

/** Rows shown at first, and added by the button. */
const PAGE = 200;
const COLUMNS = [
  ['Compare', null],
  ['Run', (run) => run.unix_ms || 0],
  ['Target', (run) => run.target || ''],
  ['Workload', (run) => workload(run)],
  ['IOPS', (run) => run.iops],
  ['Throughput', (run) => run.throughput_bytes_per_second],
  ['p50', (run) => run.p50_ns],
  ['p99', (run) => run.p99_ns],
  ['Energy', (run) => run.energy_joules],
  ['Requests', (run) => run.requests],
  ['Hosts', (run) => run.hosts],
];
const VERDICTS = { better: 'better', worse: 'worse', cannot_tell: 'no significant difference' };

let runs = [];
let chosen = [];
let order = { column: 1, down: true };
let shown = PAGE;
let made = null;

/** What was done to the target: the workload of a run, the kind of anything else. */
const workload = (run) => run.workload || nameOf(run.kind);

function sorted() {
  const wanted = byId('runs-filter').value.trim().toLowerCase();
  const list = runs.filter((run) => !wanted
    || [run.folder, run.target, workload(run)].some((text) => (text || '').toLowerCase().includes(wanted)));
  const key = COLUMNS[order.column][1];
  const sign = order.down ? -1 : 1;
  const missing = (value) => value === null || value === undefined;
  return list.sort((a, b) => {
    const [x, y] = [key(a), key(b)];
    if (missing(x) || missing(y)) return Number(missing(x)) - Number(missing(y));
    return sign * (typeof x === 'string' ? x.localeCompare(y, undefined, { numeric: true }) : x - y);
  });
}

function when(ms) {
  if (!ms) return '–';
  const two = (n) => String(n).padStart(2, '0');
  const d = new Date(ms);
  return `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())} ${two(d.getHours())}:${two(d.getMinutes())}`;
}

function runCells(run) {
  const folder = `/runs/${encodeURIComponent(run.folder)}`;
  const isUnfinished = run.kind === 'unfinished';
  let box = '';
  if (run.kind === 'run') {
    box = el('input', { type: 'checkbox', 'aria-label': `Compare ${run.folder}`, onchange: (event) => choose(run.folder, event.target.checked) });
    box.checked = chosen.includes(run.folder);
  }
  const facts = el('small', {}, when(run.unix_ms));
  if (isUnfinished) facts.append(' · still running elsewhere, or its program was killed; ', el('code', {}, 'ssdyno recover'), ' rebuilds the result of a killed run');
  else facts.append(' · ', el('a', { href: `${folder}/result.json`, 'aria-label': `JSON of ${run.folder}` }, 'JSON'));
  if (run.partial) facts.append(el('span', { class: 'badge' }, 'partial'));
  const name = el('span', { class: 'name' }, run.has_report ? el('a', { href: `${folder}/report.html` }, run.folder) : run.folder, facts);
  return [box, name, run.target || '–', workload(run) || '–', rate(run.iops, 4), bytesPerSecond(run.throughput_bytes_per_second, 4),
    nanoseconds(run.p50_ns, 4), nanoseconds(run.p99_ns, 4), joules(run.energy_joules, 4), count(run.requests), run.hosts ? String(run.hosts) : '–'];
}

function draw() {
  if (!made) {
    made = table(COLUMNS.map(([name]) => name), {
      caption: 'Runs',
      head: (i) => (COLUMNS[i][1] ? el('button', { type: 'button', class: 'sort', onclick: () => sortBy(i) }, COLUMNS[i][0]) : COLUMNS[i][0]),
    });
    made.node.className = 'cards-medium runs';
    byId('runs').replaceChildren(made.node);
  }
  COLUMNS.forEach(([, key], i) => {
    if (!key) return;
    const head = made.header.children[i];
    if (i === order.column) head.setAttribute('aria-sort', order.down ? 'descending' : 'ascending');
    else head.removeAttribute('aria-sort');
  });
  const list = sorted();
  made.body.replaceChildren(...list.slice(0, shown).map((run) => made.row(runCells(run))));
  show(byId('runs-more'), list.length > shown);
  if (!list.length) {
    const text = runs.length ? 'No run matches the filter.' : 'No results yet.';
    made.body.append(el('tr', { role: 'row' }, el('td', { role: 'cell', colspan: COLUMNS.length, class: 'none' }, text)));
  }
  drawChosen();
}

function sortBy(column) {
  order = { column, down: order.column === column ? !order.down : typeof COLUMNS[column][1](runs[0] || {}) !== 'string' };
  draw();
  announce(`Sorted by ${COLUMNS[column][0]}, ${order.down ? 'descending' : 'ascending'}`);
}

function choose(folder, on) {
  chosen = chosen.filter((each) => each !== folder);
  if (on) chosen.push(folder);
  // The older choice of three is dropped.
  if (chosen.length > 2) {
    const dropped = chosen.shift();
    announce(`${dropped} is no longer selected: two runs are compared.`);
    for (const row of made.body.children) {
      const box = row.querySelector('input');
      if (box) box.checked = chosen.some((each) => box.getAttribute('aria-label') === `Compare ${each}`);
    }
  }
  drawChosen();
}

function drawChosen() {
  const text = chosen.length === 2 ? `First: ${chosen[0]}; second: ${chosen[1]}`
    : chosen.length === 1 ? `First: ${chosen[0]}. Select one more run.` : 'Select two runs to compare.';
  setText(byId('compare-chosen'), text);
  byId('compare-go').disabled = byId('compare-swap').disabled = chosen.length !== 2;
}

function interval({ low, high }) {
  if (low === null || low === undefined) return '–';
  return high === null || high === undefined ? `at least ${significant(low, 4)}` : `${significant(low, 4)} to ${significant(high, 4)}`;
}

function value(text, number, unit) {
  if (text) return text;
  return number === null || number === undefined ? '–' : `${significant(number, 4)} ${unit || ''}`.trim();
}

async function compare() {
  const [first, second] = chosen;
  const query = `first=${encodeURIComponent(first)}&second=${encodeURIComponent(second)}`;
  showError(byId('runs-error'), null);
  byId('compare-go').disabled = true;
  try {
    const found = await api(`/api/compare?${query}`);
    const columns = ['Figure', 'First', 'Second', 'Times better', 'Interval', 'Verdict', 'Second is'];
    const rows = table(columns, { caption: 'Comparison' });
    rows.node.className = 'cards-small comparison';
    rows.body.append(...found.figures.map((figure) => rows.row([
      figure.figure, value(figure.first_text, figure.first, figure.unit), value(figure.second_text, figure.second, figure.unit),
      figure.ratio === null ? '–' : significant(figure.ratio, 4), interval(figure),
      el('span', { class: `verdict-${figure.verdict}` }, VERDICTS[figure.verdict] || figure.verdict), figure.text || '–',
    ])));
    byId('compare-body').replaceChildren(
      el('p', {}, 'Second run ', el('b', {}, second), ' against the first run ', el('b', {}, first), '.'),
      el('p', {}, 'Verdict for the second run: ', el('b', { class: `verdict-${found.verdict}` }, VERDICTS[found.verdict] || found.verdict)),
      ...found.notes.map((note) => el('p', { class: 'note' }, note)),
      rows.node,
      el('p', {}, el('a', { href: `/compare.html?${query}` }, 'The comparison as a page of its own')),
    );
    show(byId('compare'), true);
    byId('compare-title').focus();
  } catch (error) {
    showError(byId('runs-error'), error);
  }
  drawChosen();
}

/** Loads the list anew. */
export async function load() {
  try {
    runs = (await api('/api/runs')).runs;
    chosen = chosen.filter((folder) => runs.some((run) => run.folder === folder));
    showError(byId('runs-error'), null);
    draw();
  } catch (error) {
    showError(byId('runs-error'), error);
  }
}

export function setup() {
  byId('runs-filter').addEventListener('input', () => {
    shown = PAGE;
    draw();
  });
  byId('runs-reload').addEventListener('click', async () => {
    await load();
    announce(`${runs.length} runs`);
  });
  byId('runs-more').addEventListener('click', () => {
    const before = made.body.children.length;
    shown += PAGE;
    draw();
    made.body.children[before]?.querySelector('input')?.focus();
  });
  byId('compare-swap').addEventListener('click', () => {
    chosen.reverse();
    drawChosen();
    if (!byId('compare').hidden) compare();
  });
  byId('compare-go').addEventListener('click', compare);
}
