// Charts on canvases that share one time axis and one cursor. A chart is drawn in an animation
// frame, two charts a frame, and only after its data, its size or the theme changed; the cursor is an element of its own.

import { el, setText } from './dom.js';
import { nanoseconds, percent, seconds, short } from './format.js';

const HEIGHT = 190;
const LEFT = 66;
const RIGHT = 44;
const TOP = 8;
const BOTTOM = 38;
const FONT = '11px system-ui, -apple-system, "Segoe UI", "Noto Sans", sans-serif';
/** Shares at both ends of the heat map's colours. */
const LEAST_SHARE = 1e-4;
const SHADES = 256;
/** Eleven charts at once cost more than a frame at 60 a second where there is no GPU. */
const CHARTS_A_FRAME = 2;

let colours = null;
addEventListener('theme', () => { colours = null; });

/** A colour of the style sheet. */
export function colour(name) {
  if (!colours) colours = { style: getComputedStyle(document.documentElement), seen: new Map(), shades: null };
  if (!colours.seen.has(name)) colours.seen.set(name, colours.style.getPropertyValue(`--${name}`).trim());
  return colours.seen.get(name);
}

/** The colours of a heat map, from the lowest share to the highest, as [r, g, b]. */
function shades() {
  colour('text');
  if (!colours.shades) {
    const stops = [0, 1, 2, 3].map((i) => {
      const hex = parseInt(colour(`heat-${i}`).slice(1), 16);
      return [hex >> 16, (hex >> 8) & 255, hex & 255];
    });
    colours.shades = Array.from({ length: SHADES }, (_, i) => {
      const at = (i / (SHADES - 1)) * 3;
      const low = Math.min(Math.floor(at), 2);
      return stops[low].map((v, k) => Math.round(v + (stops[low + 1][k] - v) * (at - low)));
    });
  }
  return colours.shades;
}

/** Colours of hosts; they repeat after eight, then with dashes. */
export const HOST_COLOURS = ['read', 'write', 'trim', 'flush', 'pink', 'teal', 'olive', 'slate'];

function linearTicks(from, to, wanted) {
  const raw = (to - from) / wanted;
  if (!(raw > 0) || !Number.isFinite(raw)) return { ticks: [], step: 1 };
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((s) => s * power).find((s) => s >= raw * 0.999999);
  const ticks = [];
  for (let i = Math.ceil(from / step - 1e-9); i * step <= to * (1 + 1e-9) && ticks.length < 14; i += 1) ticks.push(i * step);
  return { ticks, step };
}

/** A value axis: from zero up to a round value, or logarithmic between round values. */
class Scale {
  constructor(least, most, log) {
    this.log = log;
    if (log) {
      const round = (v, up) => {
        const power = 10 ** Math.floor(Math.log10(v) + 1e-9);
        const steps = up ? [1, 2, 5, 10] : [5, 2, 1];
        return power * steps.find((s) => (up ? s * power >= v * 0.999999 : s * power <= v * 1.000001));
      };
      this.from = round(Math.max(least, 1), false);
      this.to = round(Math.max(most, this.from * 2), true);
      this.ticks = [];
      const decades = Math.log10(this.to / this.from);
      const steps = decades < 2.5 ? [1, 2, 5] : [1];
      for (let power = Math.floor(Math.log10(this.from) + 1e-9); power <= Math.log10(this.to) + 1e-9; power += 1) {
        for (const step of steps) {
          const tick = step * 10 ** power;
          if (tick >= this.from * 0.999 && tick <= this.to * 1.001) this.ticks.push(tick);
        }
      }
    } else {
      const { step } = linearTicks(0, most > 0 ? most : 1, 4);
      this.from = 0;
      this.to = Math.ceil((most > 0 ? most : 1) / step - 1e-6) * step;
      this.ticks = linearTicks(0, this.to, 4).ticks;
    }
  }

  /** Where a value lies, 0 to 1. */
  place(value) {
    const at = this.log ? Math.log(Math.max(value, this.from) / this.from) / Math.log(this.to / this.from)
      : (value - this.from) / (this.to - this.from);
    return Math.min(Math.max(at, 0), 1);
  }
}

/** Charts with one time axis and one cursor. `changed` is called when the cursor moved. */
export class ChartGroup {
  constructor(changed) {
    Object.assign(this, { charts: [], changed, from: 0, to: 1, label: 'time', hover: null, kept: null, frame: 0 });
    this.sizes = new ResizeObserver(() => this.touch());
    addEventListener('theme', () => this.touch());
    addEventListener('resize', () => this.touch());
  }

  /** Time at the cursor; null: the newest point. */
  get cursor() {
    return this.hover ?? this.kept;
  }

  setCursor(time, keep) {
    this.hover = keep ? null : time;
    if (keep) this.kept = time;
    for (const chart of this.charts) chart.placeCursor();
    this.changed();
  }

  setTime(from, to, label) {
    this.from = from;
    this.to = Math.max(to, from + 1e-9);
    this.label = label;
  }

  /** All charts are drawn in the next frames. */
  touch() {
    for (const chart of this.charts) chart.dirty = true;
    if (!this.frame) this.frame = requestAnimationFrame(() => this.draw());
  }

  draw() {
    this.frame = 0;
    const started = performance.now();
    // All sizes are read before anything is drawn, so that the layout is computed once.
    const visible = this.charts.filter((chart) => chart.dirty && chart.measure());
    // The one that waits longest comes first: the next data may arrive before all are drawn.
    const due = visible.sort((a, b) => a.drawn - b.drawn).slice(0, CHARTS_A_FRAME);
    for (const chart of due) {
      chart.dirty = false;
      chart.drawn = started;
      chart.draw();
      chart.placeCursor();
    }
    if (visible.length > due.length) this.frame = requestAnimationFrame(() => this.draw());
  }

  remove(charts) {
    for (const chart of charts) {
      this.sizes.unobserve(chart.box);
      chart.figure.remove();
    }
    this.charts = this.charts.filter((chart) => !charts.includes(chart));
  }
}

/** A figure with title, legend, canvas and cursor. */
class Chart {
  constructor(group, parent, title) {
    Object.assign(this, { group, title, dirty: true, drawn: 0 });
    this.canvas = el('canvas', { role: 'img', 'aria-label': title });
    this.context = this.canvas.getContext('2d');
    this.line = el('div', { class: 'cursor-line', hidden: true });
    this.box = el('div', { class: 'plot' }, this.canvas, this.line);
    this.legend = el('span', { class: 'legend' });
    this.figure = el('figure', { 'aria-label': title }, el('figcaption', {}, title, ' ', this.legend), this.box);
    parent.append(this.figure);
    group.charts.push(this);
    group.sizes.observe(this.box);
    this.listen();
  }

  listen() {
    const time = (event) => {
      const at = (event.clientX - this.box.getBoundingClientRect().left - LEFT) / (this.width - LEFT - RIGHT);
      return this.group.from + Math.min(Math.max(at, 0), 1) * (this.group.to - this.group.from);
    };
    this.box.addEventListener('pointermove', (event) => this.group.setCursor(time(event), event.pointerType !== 'mouse'));
    this.box.addEventListener('pointerdown', (event) => this.group.setCursor(time(event), true));
    this.box.addEventListener('pointerleave', () => this.group.hover !== null && this.group.setCursor(null, false));
  }

  /** Reads the size; false where the chart is not shown. */
  measure() {
    this.width = this.box.clientWidth;
    this.ratio = devicePixelRatio || 1;
    return this.width > LEFT + RIGHT + 20;
  }

  x(time) {
    const { from, to } = this.group;
    return LEFT + ((time - from) / (to - from)) * (this.width - LEFT - RIGHT);
  }

  y(value) {
    return HEIGHT - BOTTOM - this.scale.place(value) * (HEIGHT - TOP - BOTTOM);
  }

  placeCursor() {
    const time = this.group.cursor;
    const visible = time !== null && this.width > 0 && time >= this.group.from && time <= this.group.to;
    this.line.hidden = !visible;
    if (visible) this.line.style.transform = `translateX(${this.x(time)}px)`;
  }

  setLegend(entries) {
    const names = entries.map(([name, colourName]) => `${name}\t${colourName}`).join('\n');
    if (names === this.names) return;
    this.names = names;
    this.legend.replaceChildren(...entries.map(([name, colourName]) =>
      el('span', { class: 'key' }, el('i', { class: `c-${colourName}` }), name)));
  }

  /** Clears the canvas and draws the axes. */
  start(format) {
    const { canvas, context, width, ratio } = this;
    const [w, h] = [Math.round(width * ratio), Math.round(HEIGHT * ratio)];
    if (canvas.width !== w || canvas.height !== h) [canvas.width, canvas.height] = [w, h];
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, HEIGHT);
    context.font = FONT;
    const [right, bottom] = [width - RIGHT, HEIGHT - BOTTOM];
    const crisp = (v) => (Math.round(v * ratio) + 0.5) / ratio;
    const unit = this.group.to >= 600 ? 60 : 1;
    const wanted = Math.max(2, Math.min(8, Math.floor((right - LEFT) / 90)));
    const times = linearTicks(this.group.from / unit, this.group.to / unit, wanted).ticks.map((t) => t * unit);
    context.beginPath();
    const rule = (x, y, toX, toY) => {
      context.moveTo(crisp(x), crisp(y));
      context.lineTo(crisp(toX), crisp(toY));
    };
    for (const tick of this.scale.ticks) rule(LEFT, this.y(tick), right, this.y(tick));
    for (const tick of times) rule(this.x(tick), TOP, this.x(tick), bottom);
    context.lineWidth = 1 / ratio;
    context.strokeStyle = colour('grid');
    context.stroke();
    context.fillStyle = colour('muted');
    context.textBaseline = 'middle';
    context.textAlign = 'right';
    for (const tick of this.scale.ticks) context.fillText(short(format(tick)), LEFT - 6, this.y(tick));
    context.textBaseline = 'top';
    context.textAlign = 'center';
    for (const tick of times) context.fillText(unit > 1 && tick > 0 ? `${tick / unit} min` : short(seconds(tick)), this.x(tick), bottom + 5);
    context.fillText(this.group.label, (LEFT + right) / 2, bottom + 21);
    context.beginPath();
    rule(LEFT, TOP, LEFT, bottom);
    rule(LEFT, bottom, right, bottom);
    context.strokeStyle = colour('edge');
    context.stroke();
  }

  /** The text for readers who do not see the picture. */
  describe(text) {
    const whole = `${this.title} over ${this.group.label}. ${text}`;
    if (this.canvas.getAttribute('aria-label') !== whole) this.canvas.setAttribute('aria-label', whole);
  }
}

/**
 * Lines over time. `data()` returns points with `from` and `to`, and `series` are
 * `{name, colour, value(point), wide, label}`; a value of NaN leaves a gap.
 */
export class LineChart extends Chart {
  constructor(group, parent, title, { data, series, format, log = false, stacked = false, most = 0 }) {
    super(group, parent, title);
    Object.assign(this, { data, series, format, log, stacked, most });
  }

  draw() {
    const points = this.data();
    const { series } = this;
    const columns = series.map(() => new Float64Array(points.length));
    let [least, most] = [Infinity, this.most];
    points.forEach((point, i) => {
      let below = 0;
      series.forEach((each, k) => {
        const own = each.value(point);
        const value = this.stacked ? below + own : own;
        columns[k][i] = value;
        if (!Number.isNaN(value)) [below, most, least] = [value, Math.max(most, value), Math.min(least, value)];
      });
    });
    this.scale = new Scale(least === Infinity ? 1e3 : least, most || (this.log ? 1e6 : 1), this.log);
    this.start(this.format);
    this.setLegend(series.length > 1 ? series.map((each) => [each.name, each.colour]) : []);
    this.context.save();
    this.context.beginPath();
    this.context.rect(LEFT, 0, this.width - LEFT - RIGHT, HEIGHT);
    this.context.clip();
    for (let k = series.length - 1; k >= 0; k -= 1) this.drawLine(points, columns[k], series[k], k);
    this.context.restore();
    this.label(points, columns);
    this.describe(series.map((each, k) => {
      const last = columns[k].findLast((value) => !Number.isNaN(value));
      return `${each.name}: last ${this.format(last - (this.stacked && k ? columns[k - 1].at(-1) : 0))}`;
    }).join('; ') || 'No values yet.');
  }

  drawLine(points, values, { colour: name, wide }, index) {
    const { context } = this;
    const bottom = HEIGHT - BOTTOM;
    const path = new Path2D();
    let [open, startX, endX, column, low, high, last] = [false, 0, 0, -1, 0, 0, 0];
    // Several points in one pixel column become one vertical line between their extremes.
    const flush = () => {
      if (column < 0) return;
      if (low !== high) {
        path.lineTo(endX, low);
        path.lineTo(endX, high);
        path.lineTo(endX, last);
      }
      column = -1;
    };
    const close = () => {
      if (!open) return;
      flush();
      open = false;
      if (this.stacked) {
        path.lineTo(endX, bottom);
        path.lineTo(startX, bottom);
      }
    };
    for (let i = 0; i < points.length; i += 1) {
      const value = values[i];
      const { from, to } = points[i];
      if (Number.isNaN(value)) {
        close();
        continue;
      }
      const [left, right, y] = [this.x(from), this.x(to), this.y(value)];
      if (open && left - endX > 2.5) close();
      if (!open) {
        path.moveTo(left, this.stacked ? bottom : y);
        if (this.stacked) path.lineTo(left, y);
        [open, startX] = [true, left];
      }
      if (right - left >= 3) {
        flush();
        path.lineTo(left, y);
        path.lineTo(right, y);
      } else if (Math.round(right) === column) {
        if (y < low) low = y;
        if (y > high) high = y;
        last = y;
      } else {
        flush();
        path.lineTo(right, y);
        [column, low, high, last] = [Math.round(right), y, y, y];
      }
      endX = right;
    }
    close();
    context.strokeStyle = context.fillStyle = colour(name);
    if (this.stacked) return context.fill(path);
    context.lineJoin = 'bevel';
    context.lineWidth = wide ? 2 : 1.3;
    context.setLineDash(index >= HOST_COLOURS.length && !wide ? [5, 3] : []);
    context.stroke(path);
    context.setLineDash([]);
  }

  /** Names lines at their right ends, from the top; names that would collide move down. */
  label(points, columns) {
    if (!points.length || !this.series.some((each) => each.label)) return;
    const ends = this.series.map((each, k) => ({ each, y: this.y(columns[k].findLast((v) => !Number.isNaN(v)) ?? NaN) }));
    const shown = ends.filter((end) => !Number.isNaN(end.y)).sort((a, b) => a.y - b.y);
    const { context } = this;
    context.textAlign = 'left';
    context.textBaseline = 'middle';
    let above = -Infinity;
    for (const { each, y } of shown) {
      above = Math.max(y, above + 12);
      context.fillStyle = colour(each.colour);
      context.fillText(each.label, this.width - RIGHT + 4, Math.min(above, HEIGHT - BOTTOM + 6));
    }
  }
}

/** Lower edge of latency bin `i` in ns. */
export const binEdge = (i) => 2 ** Math.floor(i / 4) * (1 + (i % 4) / 4);

/** Shares of requests by latency over time; `data()` returns points with `heat`. */
export class HeatChart extends Chart {
  constructor(group, parent, title, { data }) {
    super(group, parent, title);
    this.data = data;
    this.image = document.createElement('canvas');
    this.counts = new Float32Array(0);
    const ticks = [1e-4, 1e-3, 1e-2, 1e-1, 1].map((share) => el('span', {}, percent(share, 1)));
    this.ramp = el('canvas', { width: SHADES, height: 1, 'aria-hidden': 'true' });
    this.figure.append(el('div', { class: 'ramp' },
      el('span', {}, 'share of the requests of a point'), el('div', {}, this.ramp, el('div', { class: 'ticks' }, ...ticks))));
  }

  drawRamp() {
    if (this.rampOf === colours.shades) return;
    this.rampOf = colours.shades;
    const context = this.ramp.getContext('2d');
    shades().forEach(([r, g, b], i) => {
      context.fillStyle = `rgb(${r}, ${g}, ${b})`;
      context.fillRect(i, 0, 1, 1);
    });
  }

  draw() {
    const points = this.data();
    let [first, last] = [Infinity, -Infinity];
    for (const { heat } of points) {
      for (const [bin] of heat) [first, last] = [Math.min(first, bin), Math.max(last, bin)];
    }
    const empty = first > last;
    this.scale = new Scale(empty ? 1e3 : binEdge(first), empty ? 1e6 : binEdge(last + 1), true);
    const palette = shades();
    this.drawRamp();
    this.start(nanoseconds);
    if (empty) return this.describe('No values yet.');
    const across = this.width - LEFT - RIGHT;
    const columns = Math.max(1, Math.min(2048, Math.round(across * this.ratio)));
    const rows = last - first + 1;
    if (this.counts.length !== columns * rows) this.counts = new Float32Array(columns * rows);
    else this.counts.fill(0);
    const totals = new Float32Array(columns);
    const { from, to } = this.group;
    const place = columns / (to - from);
    for (const point of points) {
      const begin = Math.min(Math.round((point.from - from) * place), columns - 1);
      const end = Math.min(Math.max(begin + 1, Math.round((point.to - from) * place)), columns);
      for (const [bin, requests] of point.heat) {
        const row = (last - bin) * columns;
        for (let c = begin; c < end; c += 1) {
          this.counts[row + c] += requests;
          totals[c] += requests;
        }
      }
    }
    this.paint(columns, rows, totals, palette.map(([r, g, b]) => ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0));
    const edge = (bin) => Math.round(this.y(binEdge(bin)) * this.ratio) / this.ratio;
    this.context.imageSmoothingEnabled = false;
    for (let bin = first; bin <= last; bin += 1) {
      const top = edge(bin + 1);
      this.context.drawImage(this.image, 0, last - bin, columns, 1, LEFT, top, across, edge(bin) - top);
    }
    this.describe(`Latencies from ${nanoseconds(binEdge(first))} to ${nanoseconds(binEdge(last + 1))}. ${heatText(points.at(-1))}`);
  }

  paint(columns, rows, totals, palette) {
    if (this.image.width !== columns || this.image.height !== rows) [this.image.width, this.image.height] = [columns, rows];
    const context = this.image.getContext('2d');
    const image = context.createImageData(columns, rows);
    const pixels = new Uint32Array(image.data.buffer);
    const levels = (SHADES - 1) / -Math.log(LEAST_SHARE);
    let [before, shade] = [-1, 0];
    for (let i = 0, c = 0; i < this.counts.length; i += 1, c = c + 1 === columns ? 0 : c + 1) {
      const requests = this.counts[i];
      if (requests === 0) continue;
      const share = requests / totals[c];
      if (share !== before) {
        shade = Math.max(0, Math.round(SHADES - 1 + Math.log(share) * levels));
        before = share;
      }
      pixels[i] = palette[shade];
    }
    context.putImageData(image, 0, 0);
  }
}

/** The latency bin with the most requests of a point, in words. */
export function heatText(point) {
  if (!point || !point.heat.length) return 'no requests';
  let [most, total] = [point.heat[0], 0];
  for (const each of point.heat) {
    total += each[1];
    if (each[1] > most[1]) most = each;
  }
  const [bin, requests] = most;
  return `${percent(requests / total)} at ${nanoseconds(binEdge(bin))} to ${nanoseconds(binEdge(bin + 1))}`;
}

/** Busy shares of the channels and dies of an SSD: a row for each channel, the channel itself first. */
export class FlashGrid {
  constructor(parent) {
    this.canvas = el('canvas', { role: 'img', 'aria-label': 'Busy shares of channels and dies' });
    this.box = el('div', { class: 'flash-box' }, this.canvas);
    this.under = el('p', { class: 'fine' }, 'Each row is a channel: the wide cell on the left is the channel, the others are its dies. The colour shows the busy share from 0 % to 100 %. Point at a cell for its value.');
    parent.append(this.box, this.under);
    this.canvas.addEventListener('pointermove', (event) => this.point(event));
    new ResizeObserver(() => this.touch()).observe(this.box);
    addEventListener('theme', () => this.touch());
  }

  set(flash) {
    this.flash = flash;
    this.touch();
  }

  touch() {
    if (!this.frame && this.flash) this.frame = requestAnimationFrame(() => this.draw());
  }

  shape() {
    const width = this.box.clientWidth;
    const most = Math.max(1, ...this.flash.dies.map((dies) => dies.length));
    const size = Math.min(28, (width - 40) / (most + 2.5));
    return { width, size, left: 40 + size * 2.2 };
  }

  draw() {
    this.frame = 0;
    const { width, size, left } = this.shape();
    if (width < 60) return;
    const ratio = devicePixelRatio || 1;
    const { channels, dies } = this.flash;
    const height = size * channels.length + 2;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.canvas.style.height = `${height}px`;
    const context = this.canvas.getContext('2d');
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.font = FONT;
    context.textBaseline = 'middle';
    const gap = size > 8 ? 2 : 0.5;
    const cell = (x, y, w, share) => {
      const [r, g, b] = shades()[Math.round(Math.min(Math.max(share, 0), 1) * (SHADES - 1))];
      context.fillStyle = `rgb(${r}, ${g}, ${b})`;
      context.fillRect(x, y, w - gap, size - gap);
    };
    channels.forEach((share, i) => {
      const y = i * size;
      context.fillStyle = colour('muted');
      if (size >= 10 || i % 4 === 0) context.fillText(`ch ${i}`, 0, y + size / 2);
      cell(40, y, size * 2, share);
      (dies[i] || []).forEach((busy, k) => cell(left + k * size, y, size, busy));
    });
    const mean = (values) => values.reduce((sum, v) => sum + v, 0) / Math.max(values.length, 1);
    this.canvas.setAttribute('aria-label', `Busy shares: channels ${percent(mean(channels))}, dies ${percent(mean(dies.flat()))} on average. The values are in the table below.`);
  }

  point(event) {
    if (!this.flash) return;
    const { size, left } = this.shape();
    const rect = this.canvas.getBoundingClientRect();
    const [channel, x] = [Math.floor((event.clientY - rect.top) / size), event.clientX - rect.left];
    const die = Math.floor((x - left) / size);
    const busy = die < 0 ? this.flash.channels[channel] : this.flash.dies[channel]?.[die];
    if (busy === undefined) return;
    setText(this.under, die < 0 ? `Channel ${channel}: busy ${percent(busy)}` : `Channel ${channel}, die ${die}: busy ${percent(busy)}`);
  }
}
