// Figures as people read them: significant digits and the unit that suits them, as in a report.

/** `value` with `digits` significant digits and no exponent. */
export function significant(value, digits) {
  if (!Number.isFinite(value)) return '–';
  if (value === 0) return '0';
  const decimals = (v) => Math.max(0, digits - 1 - Math.floor(Math.log10(Math.abs(v))));
  const text = value.toFixed(Math.min(decimals(value), 20));
  const rounded = Number(text);
  return rounded === 0 ? text : value.toFixed(Math.min(decimals(rounded), 20));
}

function scaled(value, digits, units) {
  if (value === null || value === undefined || !Number.isFinite(value)) return '–';
  if (value === 0) return `0 ${units[0][1]}`.trim();
  const rounded = Number(Math.abs(value).toPrecision(digits));
  let unit = units[0];
  for (const each of units) if (rounded >= each[0]) unit = each;
  return `${significant(value / unit[0], digits)} ${unit[1]}`.trim();
}

const TIMES = [[1, 'ns'], [1e3, 'µs'], [1e6, 'ms'], [1e9, 's']];
const RATES = [[1, ''], [1e3, 'k'], [1e6, 'M'], [1e9, 'G']];
const SPEEDS = [[1, 'B/s'], [1e3, 'kB/s'], [1e6, 'MB/s'], [1e9, 'GB/s'], [1e12, 'TB/s']];
const SIZES = [[1, 'B'], [1e3, 'kB'], [1e6, 'MB'], [1e9, 'GB'], [1e12, 'TB']];
const ENERGIES = [[1e-12, 'pJ'], [1e-9, 'nJ'], [1e-6, 'µJ'], [1e-3, 'mJ'], [1, 'J'], [1e3, 'kJ']];
const POWERS = [[1e-9, 'nW'], [1e-6, 'µW'], [1e-3, 'mW'], [1, 'W']];

export const nanoseconds = (ns, digits = 3) => scaled(ns, digits, TIMES);
export const rate = (value, digits = 3) => scaled(value, digits, RATES);
export const bytesPerSecond = (value, digits = 3) => scaled(value, digits, SPEEDS);
export const bytes = (value, digits = 3) => scaled(value, digits, SIZES);
export const joules = (value, digits = 3) => scaled(value, digits, ENERGIES);
export const watts = (value, digits = 3) => scaled(value, digits, POWERS);

/** Seconds: `1.23 s`, `20.0 min`. */
export function seconds(s, digits = 3) {
  if (s === null || s === undefined) return '–';
  return s >= 600 ? `${significant(s / 60, Math.max(digits, 3))} min` : nanoseconds(s * 1e9, digits);
}

/** A share of one. */
export function percent(share, digits = 3) {
  return Number.isFinite(share) ? `${significant(share * 100, digits)} %` : '–';
}

/** A count with its thousands apart. */
export function count(value) {
  if (value === null || value === undefined) return '–';
  return String(value).replace(/\B(?=(\d{3})+(?!\d))/g, '\u202f');
}

/** A label of an axis: without zeros that it does not need. */
export function short(text) {
  const [number, unit = ''] = text.split(' ');
  if (Number(number) === 0) return '0';
  const stripped = number.includes('.') ? number.replace(/\.?0+$/, '') : number;
  return `${stripped} ${unit}`.trim();
}
