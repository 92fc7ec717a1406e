// The machines and programs that are watched beside a run: their samples, charts and values, under the cursor of the run.

import { LineChart, HOST_COLOURS } from './charts.js';
import { byId, el, setText, show, ValueList } from './dom.js';
import { bytes, bytesPerSecond, percent, rate, seconds, significant, watts } from './format.js';

/** Samples kept of a machine or a program; pairs are joined when there are more. */
const MOST_SAMPLES = 1024;
const MOST_PROBED_HOSTS = 64;
/** Lines of one chart of a program's metrics. */
const MOST_LINES = 8;

let probes = new Map();
let latest = new Map();
let systemCharts = [];
/** Programs whose metrics are read, by source: series, readings, and how many series are not drawn. */
let sources = new Map();
let sourceCharts = { key: '', charts: [] };
/** The charts of the live view, whose cursor is that of these. */
let group = null;

const systemNow = new ValueList(byId('system-now'));

/** Index of the point at a time; the newest without one. */
export function indexAt(list, time) {
  if (time === null) return list.length - 1;
  let [low, high] = [0, list.length - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (list[middle].to < time) low = middle + 1;
    else high = middle;
  }
  return low;
}

// ---- system probes

const SYSTEM = [
  ['CPU', [['user', 'read', 'user'], ['system', 'write', 'system'], ['I/O wait', 'flush', 'iowait'],
    ['interrupts', 'trim', 'irq'], ['other', 'slate', 'other']], percent],
  ['Network', [['in', 'read', 'network_in'], ['out', 'write', 'network_out']], bytesPerSecond],
  ['Disks', [['read', 'read', 'disk_read'], ['write', 'write', 'disk_write']], bytesPerSecond],
  ['Events per second', [['interrupts', 'trim', 'interrupts'], ['context switches', 'flush', 'switches']], rate],
  ['Memory', [['available', 'read', 'memory'], ['swap', 'bad', 'swap']], bytes],
  ['Power', [['power', 'write', 'power']], watts],
];

const number = (value) => (Number.isFinite(value) ? value : NaN);

function flatten(sample, from, to) {
  const cpu = sample.cpu || {};
  return {
    from, to,
    user: number(cpu.user), system: number(cpu.system), iowait: number(cpu.iowait), irq: number(cpu.irq), other: number(cpu.other),
    interrupts: number(sample.interrupts_per_s), switches: number(sample.context_switches_per_s),
    memory: number(sample.memory_available_bytes), swap: number(sample.swap_bytes),
    network_in: number(sample.network_in_bytes_per_s), network_out: number(sample.network_out_bytes_per_s),
    disk_read: number(sample.disk_read_bytes_per_s), disk_write: number(sample.disk_write_bytes_per_s),
    power: number(sample.power_w),
  };
}

/** Neighbours become one sample with their mean over time. */
function joinPairs(samples) {
  const joined = [];
  for (let i = 0; i + 1 < samples.length; i += 2) {
    const [a, b] = [samples[i], samples[i + 1]];
    const both = { from: a.from, to: b.to };
    const [x, y] = [a.to - a.from, b.to - b.from];
    for (const field of Object.keys(a)) {
      if (field !== 'from' && field !== 'to') {
        const [v, w] = [a[field], b[field]];
        both[field] = Number.isNaN(v) ? w : Number.isNaN(w) ? v : (v * x + w * y) / (x + y);
      }
    }
    joined.push(both);
  }
  if (samples.length % 2) joined.push(samples.at(-1));
  return joined;
}

/** Takes in samples of a machine; `shown` is the number of the run that is shown. */
export function onSystem({ run: of, host, samples }, shown) {
  if (!samples.length || (!latest.has(host) && latest.size >= MOST_PROBED_HOSTS)) return;
  latest.set(host, samples.at(-1));
  if (of !== shown) return;
  let list = probes.get(host) || [];
  for (const sample of samples) {
    const to = sample.run_s;
    if (!Number.isFinite(to) || (list.length && to <= list.at(-1).to)) continue;
    // A sample covers the time since the one before; the first one and one after a gap a second.
    const from = list.length && to - list.at(-1).to < 3 ? list.at(-1).to : to - 1;
    list.push(flatten(sample, from, to));
  }
  if (list.length > MOST_SAMPLES) list = joinPairs(list);
  if (list.length) probes.set(host, list);
}

// ---- metrics of programs

/** Readings in the form that the charts of machines have: values by number of the series. */
export function onMetrics({ run: of, source, series: names, left_out: left, samples }, shown) {
  if (of !== shown) return;
  const known = sources.get(source) || { readings: [] };
  let { readings } = known;
  for (const { run_s: to, values: read } of samples) {
    known.newest = { from: 0, to: 1, ...read };
    if (!Number.isFinite(to) || (readings.length && to <= readings.at(-1).to)) continue;
    const from = readings.length ? readings.at(-1).to : to - 1;
    readings.push({ from, to, ...read.map((value) => value ?? NaN) });
  }
  if (readings.length > MOST_SAMPLES) readings = joinPairs(readings);
  sources.set(source, { ...known, readings, names, left });
}

const metricName = ({ name, labels }) => (labels ? `${name} {${labels}}` : name);

function metricFormat({ unit, is_rate: isRate }) {
  if (unit === 'bytes') return isRate ? bytesPerSecond : bytes;
  if (unit === 'seconds' && !isRate) return seconds;
  return isRate ? rate : (value) => significant(value, 4);
}

const chosenSource = () => sources.get(byId('system-host').value);

/** A chart for each name; its lines are the first series with that name. */
function drawSource(source) {
  const key = source ? `${byId('system-host').value}\n${source.names.map(metricName).join('\n')}` : '';
  if (key === sourceCharts.key) return;
  group.remove(sourceCharts.charts);
  sourceCharts = { key, charts: [] };
  if (!source) return;
  const of = byId('system-host').value;
  const byName = Map.groupBy(source.names.map((each, at) => ({ ...each, at })), (each) => each.name);
  for (const [name, all] of byName) {
    const lines = all.slice(0, MOST_LINES);
    const more = all.length > lines.length ? `, ${lines.length} of ${all.length} series` : '';
    sourceCharts.charts.push(new LineChart(group, byId('source-charts'), `${name}${all[0].is_rate ? ' per second' : ''}${more}`, {
      data: () => sources.get(of)?.readings || [],
      format: metricFormat(all[0]),
      series: lines.map(({ labels, at }, i) => ({ name: labels || name, colour: HOST_COLOURS[i % HOST_COLOURS.length], value: (each) => each[at] ?? NaN })),
    }));
  }
}

/** Values of the chosen program at the cursor, or its newest. */
function sourceRows({ names, readings, newest }) {
  const time = group.cursor;
  const found = time === null ? newest : readings[indexAt(readings, time)];
  const at = found && (time === null || (time >= found.from && time <= found.to)) ? found : {};
  return names.map((each, i) => [metricName(each), metricFormat(each)(at[i] ?? NaN), each.is_rate ? 'per second' : '']);
}

// ---- the chosen machine or program

/** Draws the section of the chosen machine or program; `isSimulated`: the run that is shown has a clock of its own. */
export function draw(isSimulated) {
  const is = latest.size + sources.size > 0;
  show(byId('system-section'), is);
  if (!is) return;
  const select = byId('system-host');
  const hosts = [...latest.keys(), ...sources.keys()];
  if (select.options.length !== hosts.length || hosts.some((name, i) => select.options[i].value !== name)) {
    const before = select.value;
    select.replaceChildren(...hosts.map((name) => el('option', { value: name }, name)));
    if (hosts.includes(before)) select.value = before;
  }
  const source = chosenSource();
  drawSource(source);
  const isApart = isSimulated && !source && !probes.has(select.value);
  setText(byId('source-note'), source?.left ? `${source.left} more series are in the result and are not drawn.`
    : isApart ? 'No curves: the target is simulated and puts no load on a device of this machine. Its clock is not the clock of these samples.' : '');
  const wanted = probes.has(select.value);
  show(byId('system-charts'), wanted);
  if (!wanted) return;
  if (!systemCharts.length) makeSystemCharts();
  const sample = newestSample();
  SYSTEM.forEach(([, lines], i) => show(systemCharts[i].figure, lines.some(([, , field]) => !Number.isNaN(sample[field]))));
}

const newestSample = () => flatten(latest.get(byId('system-host').value) || {}, 0, 1);

/** The sample of the chosen host at the cursor, the newest without a cursor; empty where there is none. */
function sampleAtCursor() {
  const time = group.cursor;
  if (time === null) return newestSample();
  const samples = probes.get(byId('system-host').value) || [];
  const sample = samples[indexAt(samples, time)];
  return sample && time >= sample.from && time <= sample.to ? sample : flatten({}, 0, 1);
}

/** Shows its values at the cursor. */
export function drawValues() {
  const source = chosenSource();
  if (!latest.size && !source) return;
  if (source) {
    setText(byId('system-when'), group.cursor === null ? 'Newest values' : `Values at ${seconds(group.cursor, 4)}`);
    systemNow.set(sourceRows(source));
    return;
  }
  const [sample, newest] = [sampleAtCursor(), newestSample()];
  setText(byId('system-when'), group.cursor === null ? 'Newest values' : `Values at ${seconds(group.cursor, 4)}`);
  systemNow.set(SYSTEM.flatMap(([title, lines, format]) => lines
    .filter(([, , field]) => !Number.isNaN(newest[field]))
    .map(([name, , field]) => [`${title}: ${name}`, format(sample[field])])));
}

function makeSystemCharts() {
  systemCharts = SYSTEM.map(([title, lines, format], i) => new LineChart(group, byId('system-charts'), title, {
    data: () => probes.get(byId('system-host').value) || [],
    format,
    stacked: i === 0,
    most: i === 0 ? 1 : 0,
    series: lines.map(([name, colour, field]) => ({ name, colour, value: (each) => each[field] })),
  }));
}

/** What the readout of the cursor has of the chosen machine or program. */
export function rows() {
  const source = chosenSource();
  if (source) return sourceRows(source).slice(0, MOST_LINES);
  if (!probes.size) return [];
  const sample = sampleAtCursor();
  return [['CPU busy', percent(sample.user + sample.system + sample.irq + sample.other)],
    ...[['Network in', 'network_in'], ['Network out', 'network_out'], ['Disk reads', 'disk_read'], ['Disk writes', 'disk_write']]
      .map(([name, field]) => [name, bytesPerSecond(sample[field])])];
}

/** Forgets what was heard of; with `all` also the series. */
export function clear(all) {
  latest = new Map();
  sources = new Map();
  if (all) probes = new Map();
}

export function setup(charts, schedule) {
  group = charts;
  byId('system-host').addEventListener('change', schedule);
}
