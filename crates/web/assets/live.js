// The live view: figures, hosts, charts, system probes and the flash array of the current run.

import { api, announce, byId, el, setText, show, showError, table, ValueList } from './dom.js';
import { ChartGroup, HeatChart, heatText, HOST_COLOURS, LineChart } from './charts.js';
import * as flash from './flash.js';
import * as machines from './machines.js';
import { indexAt } from './machines.js';
import { nameOf } from './kinds.js';
import { bytesPerSecond, count, nanoseconds, rate, seconds } from './format.js';

/** Points of the series after which the page asks the server for the joined series. */
const MOST_POINTS = 4096;
/** Points of "now". */
const RECENT = 10;
const NO_SERIES = { run: null, epoch: null, hosts: [], points: [] };

const PHASES = {
  preparing: 'preparing', ready: 'ready, waits for all hosts', loaded: 'under load', ended: 'ended',
};

// undefined: the server has told nothing yet.
let run;
let series = NO_SERIES;
let result = null;
let frame = 0;
let said = '';
let hostTable = null;
let hostCharts = { names: '', chart: null };
let restart = () => {};
/** `good`, `lost`, or `gone`: the server that knew the run is no more. */
let link = 'good';
/** When the server that told the state last was started. */
let server = null;

const group = new ChartGroup(() => readout());
const figures = new ValueList(byId('figures'));
const values = new ValueList(byId('values'));

// ---- figures of a point

const sum = (point, field) => point.hosts.reduce((all, host) => all + (host ? host[field] / host[0] : 0), 0);
const heard = (point) => point.hosts.some((host) => host && host[0] > 0);
const iops = (point) => (heard(point) ? sum(point, 1) : NaN);
const throughput = (point) => (heard(point) ? sum(point, 2) : NaN);
const hostIops = (index) => (point) => {
  const host = point.hosts[index];
  return host && host[0] > 0 ? host[1] / host[0] : NaN;
};
const percentile = (index) => (point) => (point.p ? point.p[index] : NaN);

/** Rates of the newest points: of all hosts together, and of each. */
function recent() {
  const points = series.points.slice(-RECENT);
  const sums = series.hosts.map(() => [0, 0, 0]);
  for (const point of points) {
    point.hosts.forEach((host, i) => {
      if (host && sums[i]) for (let k = 0; k < 3; k += 1) sums[i][k] += host[k];
    });
  }
  const hosts = sums.map(([time, requests, size]) => (time > 0 ? [requests / time, size / time] : null));
  const known = hosts.filter(Boolean);
  return {
    hosts,
    all: known.length ? [0, 1].map((k) => known.reduce((all, host) => all + host[k], 0)) : null,
    span: points.length ? points.at(-1).to - points[0].from : 0,
  };
}

const points = () => series.points;
const percentiles = ['p50', 'p99', 'p99.9'].map((name, i) => ({
  name, label: name, colour: ['read', 'write', 'bad'][i], value: percentile(i),
}));

const charts = byId('charts');
new LineChart(group, charts, 'IOPS, all hosts', {
  data: points, format: rate, series: [{ name: 'all hosts', colour: 'read', value: iops, wide: true }],
});
new LineChart(group, charts, 'Throughput, all hosts', {
  data: points, format: bytesPerSecond, series: [{ name: 'all hosts', colour: 'trim', value: throughput, wide: true }],
});
new LineChart(group, charts, 'Latency percentiles', { data: points, format: nanoseconds, series: percentiles, log: true });
new HeatChart(group, charts, 'Latency heat map', { data: points });

/** The chart with a line for each host; only if there are several. */
function updateHostCharts() {
  const names = series.hosts.join('\n');
  if (names === hostCharts.names) return;
  if (hostCharts.chart) group.remove([hostCharts.chart]);
  hostCharts = { names, chart: null };
  if (series.hosts.length < 2) return;
  hostCharts.chart = new LineChart(group, charts, 'IOPS of each host', {
    data: points,
    format: rate,
    series: series.hosts.map((name, i) => ({ name, colour: HOST_COLOURS[i % HOST_COLOURS.length], value: hostIops(i) })),
  });
  // Second in the order of the page.
  charts.insertBefore(hostCharts.chart.figure, charts.children[1]);
}

// ---- drawing, at most once a frame

function schedule() {
  if (!frame) frame = requestAnimationFrame(draw);
}

function draw() {
  frame = 0;
  show(byId('no-run'), run === null);
  show(byId('live'), Boolean(run));
  if (!run) return;
  drawHead();
  // A task that is no run has steps; of these only the steps of a plan have hosts and series.
  const hasSeries = !run.task || run.hosts.length > 0;
  for (const id of ['hosts-section', 'charts-section']) show(byId(id), hasSeries);
  drawSteps();
  if (!hasSeries) {
    figures.set(taskRows());
    machines.draw();
    return;
  }
  const now = recent();
  if (run.task) figures.set([...taskRows(), ...stepRows(now)]);
  else drawFigures(now);
  drawHosts(now);
  updateHostCharts();
  machines.draw(!run.is_real);
  const clock = run.is_real ? 'time since the start of the load' : 'device time';
  setText(byId('clock-name'), clock);
  const list = series.points;
  if (list.length) group.setTime(list[0].from, list.at(-1).to, clock);
  else group.setTime(0, 1, clock);
  moveRange();
  readout();
  group.touch();
}

function drawHead() {
  const several = run.hosts.length > 1;
  setText(byId('run-name'), run.name || `Run ${run.id}`);
  const facts = [run.target && `target ${run.target}`, run.task ? nameOf(run.task.kind) : `workload ${run.load}`,
    run.target && (run.is_real ? 'real target' : 'simulated target')].filter(Boolean);
  if (several) facts.push(`${run.hosts.length} hosts`);
  setText(byId('run-facts'), facts.join(' · '));
  const ended = run.phase === 'ended';
  const isGone = !ended && link === 'gone';
  const phase = isGone ? 'ended with its server' : !ended && link === 'lost' ? 'not known: no connection'
    : !ended && run.stopping ? 'stopping' : PHASES[run.phase] || run.phase;
  setText(byId('run-phase'), phase);
  byId('run-phase').dataset.phase = run.error || isGone ? 'failed' : ended || link === 'good' ? run.phase : 'unknown';
  const stop = byId('stop');
  show(stop, !ended && !isGone);
  stop.disabled = run.stopping || link !== 'good';
  show(byId('run-partial'), Boolean(run.partial));
  drawResult();
  const progress = byId('progress');
  show(progress.parentElement, !ended && !isGone);
  if (run.share_done === null || run.share_done === undefined) progress.removeAttribute('value');
  else progress.value = run.share_done;
  const share = Number.isFinite(run.share_done) ? `${(run.share_done * 100).toFixed(0)} %` : '';
  setText(byId('progress-text'), share || 'end unknown');
  document.title = [ended || isGone ? 'ended' : link === 'lost' ? 'not connected' : share, run.load, 'SSDyno'].filter(Boolean).join(' · ');
}

let shownResult = '';
function drawResult() {
  const key = JSON.stringify([run.id, run.folder, run.error]);
  if (key === shownResult) return;
  shownResult = key;
  showError(byId('run-error'), run.error);
  const box = byId('run-result');
  show(box, Boolean(run.folder));
  if (!run.folder) return;
  const folder = `/runs/${encodeURIComponent(run.folder)}`;
  box.replaceChildren('Result: ', el('a', { href: `${folder}/report.html` }, 'report'), ' · ',
    el('a', { href: `${folder}/result.json` }, 'result.json'), ' · ', el('span', { class: 'fine' }, run.folder));
  loadResult(run.id, run.folder);
}

/** The figures of the result: those of the run's last moment would mislead after its end. */
async function loadResult(id, folder) {
  try {
    const { runs } = await api('/api/runs');
    const found = runs.find((each) => each.folder === folder);
    if (found && run && run.id === id) {
      result = found;
      schedule();
    }
  } catch {
    // The links above are enough.
  }
}

/** All hosts of the step under way together, or of the last one. */
function stepRows(now) {
  const latency = run.latency_ns || {};
  const rates = now.all || [];
  const source = run.phase === 'ended' ? 'end of the last step' : `last ${seconds(now.span)} of this step`;
  return [
    ['IOPS', rate(rates[0]), source],
    ['Throughput', bytesPerSecond(rates[1]), source],
    ...[['p50', latency.p50], ['p99', latency.p99], ['p99.9', latency.p99_9]].map(([name, ns]) => [name, nanoseconds(ns), 'this step']),
    ['Errors', count(run.errors), `of ${count(run.requests)} requests`],
  ];
}

let shownSteps = '';
/** The table of the steps of a plan that are over; the server sends it as text. */
function drawSteps() {
  const steps = run.steps || [];
  show(byId('steps-section'), steps.length > 1);
  const key = JSON.stringify([run.id, steps]);
  if (key === shownSteps) return;
  shownSteps = key;
  if (steps.length < 2) return byId('steps').replaceChildren();
  const made = table(steps[0], { caption: 'Finished steps' });
  made.body.append(...steps.slice(1).map((cells) => made.row(cells)));
  byId('steps').replaceChildren(made.node);
}

function taskRows() {
  const { step, done, of, faults, latency_ns_mean: latency } = run.task;
  const rows = [
    ['Step', step || '–', ''],
    ['Done', of ? `${count(done)} of ${count(of)}` : '–', 'at most'],
  ];
  if (latency !== null && !run.hosts.length) rows.push(['Mean latency', nanoseconds(latency), `${count(run.requests)} requests of the current load`]);
  if (faults !== null) rows.push(['Faults', count(faults), 'blocks with wrong data']);
  rows.push(['Started', clockTime(run.started_unix_ms), '']);
  return rows;
}

function drawFigures(now) {
  const ended = run.phase === 'ended';
  const latency = (result && ended && { p50: result.p50_ns, p99: result.p99_ns, p99_9: run.latency_ns?.p99_9 })
    || run.latency_ns || {};
  const source = ended ? (result ? 'of the result' : 'in the report') : now.all ? `last ${seconds(now.span)}` : '';
  const rates = ended ? (result ? [result.iops, result.throughput_bytes_per_second] : []) : now.all || [];
  const whole = 'whole run';
  figures.set([
    ['IOPS', rate(rates[0]), source],
    ['Throughput', bytesPerSecond(rates[1]), source],
    ['p50', nanoseconds(latency.p50), whole],
    ['p99', nanoseconds(latency.p99), whole],
    ['p99.9', nanoseconds(latency.p99_9), whole],
    ['Errors', count(run.errors), `of ${count(run.requests)} requests`],
    [run.is_real ? 'Time' : 'Device time', seconds(run.now_s), `started ${clockTime(run.started_unix_ms)}`],
  ]);
  figures.values[5]?.[1].classList.toggle('bad', run.errors > 0);
}

function clockTime(ms) {
  return ms ? new Date(ms).toLocaleTimeString([], { hour12: false }) : '–';
}

const HOST_COLUMNS = ['Host', 'Phase', 'Requests', 'IOPS', 'p50', 'p99', 'p99.9', 'Errors', 'Silent for'];

function drawHosts(now) {
  const names = run.hosts.map((host) => host.name).join('\n');
  if (!hostTable || hostTable.names !== names) {
    const made = table(HOST_COLUMNS, { caption: 'Hosts of the run' });
    const rows = run.hosts.map((host) => {
      const row = made.row([host.name, ...HOST_COLUMNS.slice(1).map(() => '')]);
      made.body.append(row);
      return row;
    });
    hostTable = { names, rows };
    made.node.className = 'cards-small hosts';
    byId('hosts').replaceChildren(made.node);
  }
  run.hosts.forEach((host, i) => {
    const index = series.hosts.indexOf(host.name);
    const rates = run.phase !== 'ended' && index >= 0 ? now.hosts[index] : null;
    const latency = host.latency_ns || {};
    const silent = host.silent_s === null || host.silent_s === undefined ? '–' : seconds(host.silent_s, 2);
    const row = hostTable.rows[i];
    [PHASES[host.phase] || host.phase, count(host.requests), rates ? rate(rates[0]) : '–', nanoseconds(latency.p50),
      nanoseconds(latency.p99), nanoseconds(latency.p99_9), count(host.errors), silent,
    ].forEach((value, k) => setText(row.children[k + 1], value));
    row.children[7].classList.toggle('bad', host.errors > 0);
    row.children[8].classList.toggle('bad', silent !== '–');
  });
}

// ---- the cursor and its readout

function readoutRows() {
  const list = series.points;
  if (!list.length) return [['Time', '–', 'no values yet']];
  const at = indexAt(list, group.cursor);
  const point = list[at];
  const rows = [
    [group.cursor === null ? 'Newest point' : 'Time', `${seconds(point.from, 4)} to ${seconds(point.to, 4)}`],
    ['IOPS', rate(iops(point))],
    ['Throughput', bytesPerSecond(throughput(point))],
    ...percentiles.map((each) => [each.name, nanoseconds(each.value(point))]),
    ['Most frequent', heatText(point)],
    ['Errors', count(point.hosts.reduce((all, host) => all + (host ? host[3] : 0), 0))],
  ];
  if (series.hosts.length > 1) series.hosts.forEach((name, i) => rows.push([name, rate(hostIops(i)(point)), 'IOPS']));
  rows.push(...machines.rows());
  return rows;
}

function readout() {
  const rows = readoutRows();
  values.set(rows);
  machines.drawValues();
  show(byId('follow'), group.kept !== null);
  return rows;
}

function moveRange() {
  const range = byId('cursor');
  const most = String(Math.max(series.points.length - 1, 0));
  if (range.max !== most) range.max = most;
  const at = String(Math.max(indexAt(series.points, group.kept), 0));
  if (range.value !== at) range.value = at;
}

function keepPoint() {
  const range = byId('cursor');
  const point = series.points[Number(range.value)];
  if (!point) return;
  group.setCursor((point.from + point.to) / 2, true);
  range.setAttribute('aria-valuetext', readout().slice(0, 6).map(([name, value]) => `${name} ${value}`).join(', '));
}

function follow() {
  group.setCursor(null, true);
  byId('cursor').setAttribute('aria-valuetext', 'newest point');
  moveRange();
}

function fillTable() {
  const columns = ['From', 'To', 'IOPS', 'Throughput', 'p50', 'p99', 'p99.9', 'Errors'];
  if (series.hosts.length > 1) columns.push(...series.hosts.map((name) => `IOPS ${name}`));
  const made = table(columns, { caption: 'Values over time' });
  made.body.append(...series.points.map((point) => {
    const cells = [seconds(point.from, 4), seconds(point.to, 4), rate(iops(point)), bytesPerSecond(throughput(point)),
      ...percentiles.map((each) => nanoseconds(each.value(point))), count(point.hosts.reduce((all, host) => all + (host ? host[3] : 0), 0))];
    if (series.hosts.length > 1) series.hosts.forEach((_, i) => cells.push(rate(hostIops(i)(point))));
    return made.row(cells);
  }));
  byId('table').replaceChildren(made.node);
}

// ---- events

function clear() {
  series = NO_SERIES;
  result = null;
  machines.clear(true);
  flash.clear();
  byId('table').replaceChildren();
  group.kept = group.hover = null;
}

function onState({ server: since, run: next }) {
  const isOther = server !== null && since !== server;
  server = since;
  if (isOther && isUnderWay()) {
    show(byId('run-gone'), true);
    setText(byId('run-gone-name'), run.name || String(run.id));
    announce(byId('run-gone').textContent);
  } else if (next && next.phase !== 'ended') {
    show(byId('run-gone'), false);
  }
  if (isOther || next?.id !== run?.id || next?.started_unix_ms !== run?.started_unix_ms) {
    // The series of the new run may have come before its state.
    const early = next && series.run === next.id ? series : NO_SERIES;
    clear();
    series = early;
    shownResult = '';
    said = '';
  }
  // Each step of a plan has a clock of its own.
  if (run?.task && next?.task && run.hosts.length && run.task.step !== next.task.step) machines.clear(true);
  run = next;
  if (!run) document.title = 'SSDyno';
  say();
  schedule();
}

/** Changes of state, not figures, are said. */
function say() {
  if (!run) return;
  let text = `Run ${run.name || run.id}: ${run.stopping && run.phase !== 'ended' ? 'stopping' : PHASES[run.phase] || run.phase}`;
  if (run.partial) text += ', partial';
  if (run.error) text += `, error: ${run.error.message}`;
  else if (run.folder) text += ', the result is written';
  if (text === said) return;
  said = text;
  announce(text);
}

function onSeries(value) {
  series = { hosts: [], ...value };
  schedule();
}

function onPoints({ run: of, epoch, points: more }) {
  if (of !== series.run || epoch !== series.epoch) return;
  series.points.push(...more);
  if (series.points.length > MOST_POINTS) restart();
  else schedule();
}

const isUnderWay = () => Boolean(run) && run.phase !== 'ended';

/** Connects the view with its events; `heard` is called at each. */
export function listen(source, heard) {
  const handle = (name, handler) => source.addEventListener(name, (event) => {
    heard();
    handler(JSON.parse(event.data));
  });
  handle('state', onState);
  handle('series', onSeries);
  handle('points', onPoints);
  for (const [name, take] of [['system', machines.onSystem], ['metrics', machines.onMetrics]]) {
    handle(name, (value) => {
      take(value, run?.id);
      schedule();
    });
  }
  handle('flash', (value) => run && value.run === run.id && flash.set(value));
}

/** Called on each new connection: its events replace everything. */
export function connected() {
  machines.clear(false);
  series = NO_SERIES;
  link = 'good';
}

/**
 * Nothing that is shown is known to go on. `isGone`: the server was started anew, and its run ended with it; gives the
 * name of that run, if one went on.
 */
export function disconnected(isGone) {
  link = isGone ? 'gone' : 'lost';
  schedule();
  return isUnderWay() ? run.name || String(run.id) : null;
}

export function setup({ reconnect }) {
  restart = reconnect;
  byId('stop').addEventListener('click', async () => {
    byId('stop').disabled = true;
    try {
      await api('/api/stop', { body: {} });
    } catch (error) {
      byId('stop').disabled = false;
      showError(byId('run-error'), error);
    }
  });
  byId('cursor').addEventListener('input', keepPoint);
  byId('follow').addEventListener('click', () => {
    follow();
    byId('cursor').focus();
  });
  byId('view-live').addEventListener('keydown', (event) => event.key === 'Escape' && follow());
  charts.addEventListener('pointerup', () => {
    moveRange();
    byId('cursor').focus({ preventScroll: true });
  });
  byId('table-details').addEventListener('toggle', (event) => (event.target.open ? fillTable() : byId('table').replaceChildren()));
  byId('table-refresh').addEventListener('click', fillTable);
  flash.setup();
  machines.setup(group, schedule);
  schedule();
}

/** For tests: the points that are drawn. */
export const drawn = () => series;
