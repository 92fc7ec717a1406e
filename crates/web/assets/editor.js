// The form and the editor of a spec or a task. The form writes into the text; the text is what is checked and
// started.

import { api, announce, byId, el, setText, show } from './dom.js';
import { kindOf, KINDS } from './kinds.js';
import { keysOf, variantOf } from './schema.js';
import * as fields from './fields.js';
import * as toml from './toml.js';

const KEPT = 'ssdyno-start';
const CHECK_AFTER_MS = 300;
const MOST_KEYS = 60;
/** The key for the form's time, in the order of preference; the schema decides. */
const TIME_KEYS = ['for', 'duration'];
const FIRST = { toml: kindOf('run').first, hosts: '', probers: '', name: '' };

const text = byId('editor');
/** Fields of the form, by the key that they write. */
const form = { target: byId('form-target'), workload: byId('form-workload'), 'real.probe_interval': byId('form-interval') };
/** Fields that are no keys: what they have is sent beside the text. */
const asides = { hosts: byId('form-hosts'), probers: byId('form-probers'), name: byId('form-name') };
const limit = byId('form-limit');
const unit = byId('form-unit');

/** Schemas of specs and of tasks; keys of each kind; the kind that the form has fields of. */
let schemas = null;
let keysBy = {};
let fieldsOf = '';
/** The texts of other kinds than the one that is edited. */
let texts = {};
let keys = [];
let byPath = new Map();
let presets = { targets: [], workloads: [] };
let timer = 0;
let checking = null;
let error = null;
let started = () => {};
let timeKey = TIME_KEYS[0];

// ---- what was typed

function restore() {
  let kept = null;
  try {
    kept = JSON.parse(sessionStorage.getItem(KEPT));
  } catch {
    // A page without storage starts afresh.
  }
  const value = { ...FIRST, ...kept };
  text.value = value.toml === FIRST.toml ? toml.set(value.toml, timeKey, '"2s"').text : value.toml;
  texts = value.texts || {};
  for (const [name, field] of Object.entries(asides)) field.value = value[name];
}

function keep() {
  try {
    const typed = Object.fromEntries(Object.entries(asides).map(([name, field]) => [name, field.value]));
    sessionStorage.setItem(KEPT, JSON.stringify({ toml: text.value, ...typed, texts }));
  } catch {
    // Nothing is kept then.
  }
}

// ---- what is started

/** The kind of the text: what its key `task` says, a plan if it has clients or steps, or a run. */
const kind = () => toml.get(text.value, 'task') ?? (/^\s*\[\[\s*(clients|steps)\s*\]\]/m.test(text.value) ? 'plan' : 'run');

function chooseKind() {
  const wanted = byId('form-task').value;
  texts[kind()] = text.value;
  text.value = texts[wanted] ?? kindOf(wanted).first;
  changed();
}

/** Brings keys and fields to the kind of the text. */
function followKind() {
  const now = kind();
  const known = Boolean(kindOf(now));
  if (known) byId('form-task').value = now;
  for (const node of document.querySelectorAll('[data-run]')) show(node, now === 'run');
  for (const node of document.querySelectorAll('[data-hosts]')) show(node, hasHosts(now));
  if (!schemas || !known || fieldsOf === now) return;
  fieldsOf = now;
  keysBy[now] ??= keysOf(now === 'run' ? schemas.spec : variantOf(schemas.task, 'task', now)).filter((key) => key.path !== 'task');
  keys = keysBy[now];
  byPath = new Map(keys.map((key) => [key.path, key]));
  const taken = now === 'run' ? [...Object.keys(form), timeKey, 'requests'] : [];
  fields.make(keys, taken, byId('label-name'), {
    read: () => text.value,
    replace: (made) => {
      const was = kind();
      text.value = made;
      // Without its last client and step a plan is still a plan, with buttons to add some.
      if (kind() !== was) text.value = toml.set(made, 'task', toml.quote(was)).text;
      changed();
    },
  });
  search();
}

// ---- form and text

function readForm() {
  followKind();
  fields.readText(text.value);
  for (const [key, field] of Object.entries(form)) {
    if (field !== document.activeElement) field.value = toml.get(text.value, key) ?? '';
  }
  if (limit !== document.activeElement && unit !== document.activeElement) {
    const requests = toml.get(text.value, 'requests');
    const time = toml.get(text.value, timeKey);
    if (requests !== null || time !== null) unit.value = time === null ? 'requests' : 'time';
    limit.value = (unit.value === 'time' ? time : requests) ?? '';
  }
  describe();
}

function describe() {
  const told = (list, name, standard) => list.find((each) => each.name === name)?.description || standard;
  setText(byId('target-help'), told(presets.targets, form.target.value, 'A preset, a device file such as /dev/nvme0n1, a file, or null:'));
  setText(byId('workload-help'), told(presets.workloads, form.workload.value, 'A preset, a TOML file, or a trace'));
  setText(byId('limit-help'), unit.value === 'time' ? 'Device time with its unit, such as 2s or 500ms' : 'A number of requests, such as 100000');
}

function write(key, value) {
  text.value = toml.set(text.value, key, value).text;
  changed();
}

function writeLimit() {
  const value = limit.value.trim();
  const [key, other] = unit.value === 'time' ? [timeKey, 'requests'] : ['requests', timeKey];
  text.value = toml.set(text.value, other, null).text;
  const number = /^[0-9_]+$/.test(value);
  write(key, value === '' ? null : key === 'requests' && number ? value : toml.quote(value));
}

// ---- the text, its lines and the mark of an error

function lines() {
  const most = text.value.split('\n').length;
  const shown = byId('editor-lines');
  if (shown.childElementCount !== most) {
    shown.replaceChildren(...Array.from({ length: most }, (_, i) => el('span', {}, String(i + 1))));
    text.rows = Math.min(Math.max(most + 1, 10), 32);
  }
  [...shown.children].forEach((line, i) => line.classList.toggle('wrong', Boolean(error?.line) && i + 1 === error.line));
  scroll();
}

function scroll() {
  byId('editor-lines').scrollTop = text.scrollTop;
  const mark = byId('editor-mark');
  show(mark, Boolean(error?.line));
  if (!error?.line) return;
  const height = parseFloat(getComputedStyle(text).lineHeight);
  mark.style.transform = `translateY(${(error.line - 1) * height - text.scrollTop}px)`;
  const column = byId('editor-column');
  show(column, Boolean(error.column));
  column.style.transform = `translateX(calc(${(error.column || 1) - 1}ch - ${text.scrollLeft}px))`;
}

function showVerdict(kind, ...parts) {
  const box = byId('editor-error');
  box.dataset.kind = kind;
  box.replaceChildren(...parts.filter(Boolean));
}

/** Name of the text in errors (crates/web/src/desk.rs). */
const OWN_TEXT = 'the spec';

/** The field of an error: the field of the key in its line, or of the key that it names. A line of another file has no field. */
function fieldOfError(found) {
  const ours = !found?.file || found.file === OWN_TEXT;
  const path = (found?.line && ours && toml.pathAt(text.value, found.line - 1)) || found?.key;
  if (!path) return null;
  const limits = [timeKey, 'requests'].includes(path) && kind() === 'run' ? limit : null;
  return (kind() === 'run' && form[path]) || limits || fields.inputOf(path);
}

/** Marks one field as wrong, and has it described by the error; without one, none. */
function markField(field) {
  for (const old of document.querySelectorAll('#start-form [aria-invalid]:not(#editor)')) {
    if (old === field) continue;
    old.removeAttribute('aria-invalid');
    old.setAttribute('aria-describedby', (old.getAttribute('aria-describedby') || '').replace(' editor-error', ''));
  }
  if (!field || field.hasAttribute('aria-invalid')) return;
  field.setAttribute('aria-invalid', 'true');
  field.setAttribute('aria-describedby', `${field.getAttribute('aria-describedby') || ''} editor-error`);
}

function setError(found) {
  error = found;
  markField(fieldOfError(found));
  text.setAttribute('aria-invalid', String(Boolean(found)));
  show(byId('goto'), Boolean(found?.line));
  lines();
  if (!found) return;
  const place = [found.file, found.line && `line ${found.line}`, found.column && `column ${found.column}`].filter(Boolean).join(', ');
  showVerdict('bad', el('b', {}, place ? `${place}: ${found.message}` : found.message),
    found.help ? el('p', {}, found.help) : null);
}

function goToError() {
  const all = text.value.split('\n');
  const before = all.slice(0, error.line - 1).reduce((sum, line) => sum + line.length + 1, 0);
  const at = before + Math.min((error.column || 1) - 1, (all[error.line - 1] || '').length);
  text.focus();
  text.setSelectionRange(at, at);
}

// ---- check and start

const hasHosts = (now) => ['run', 'plan'].includes(now);

/** What is asked for, but for the name of its folder. */
function asked() {
  const now = kind();
  const list = (field) => field.value.split(/[\s,]+/).filter(Boolean);
  return {
    toml: text.value,
    hosts: now === 'run' ? list(asides.hosts) : [],
    probers: hasHosts(now) ? list(asides.probers) : [],
  };
}

async function check(loud) {
  clearTimeout(timer);
  checking?.abort();
  const mine = checking = new AbortController();
  if (loud) showVerdict('', 'Checking …');
  try {
    const found = await api('/api/check', { body: asked(), signal: mine.signal });
    if (mine !== checking) return;
    setError(null);
    const names = found.hosts?.length ? ` on ${found.hosts.join(', ')}` : '';
    const what = kind() === 'run' ? 'spec' : 'task';
    showVerdict('good', el('b', {}, `The ${what} is valid. `),
      what === 'spec' ? `Workload ${found.load}, target ${found.target}${names}.` : `It is: ${found.name}.`,
      found.writes_to?.length ? el('p', { class: 'warn' }, `It overwrites ${found.writes_to.join(', ')}.`) : null,
      found.is_real && what === 'spec' ? el('p', { class: 'warn' }, `${found.target} is a real target: the run loads a real device or file.`) : null);
    if (loud) announce(`The ${what} is valid`);
  } catch (failure) {
    if (failure.name === 'AbortError' || mine !== checking) return;
    setError(failure.fields || { message: String(failure) });
  }
}

/** Called after each change of the text. */
function changed() {
  readForm();
  lines();
  keyHelp();
  keep();
  clearTimeout(timer);
  timer = setTimeout(() => check(false), CHECK_AFTER_MS);
}

async function start(event) {
  event.preventDefault();
  clearTimeout(timer);
  checking?.abort();
  checking = null;
  const button = byId('start');
  button.disabled = true;
  showVerdict('', 'Starting …');
  const body = asked();
  const name = asides.name.value.trim();
  if (name) body.name = name;
  try {
    const { id } = await api('/api/runs', { body });
    setError(null);
    showVerdict('good', `Run ${id} has started.`);
    started(id);
  } catch (failure) {
    setError(failure.fields || { message: String(failure) });
  }
  button.disabled = false;
}

// ---- help of keys

function keyHelp() {
  const number = text.value.slice(0, text.selectionStart).split('\n').length - 1;
  const path = toml.keyAt(text.value, number);
  const found = path && byPath.get(path);
  const box = byId('editor-key');
  if (box.dataset.path === (found ? path : '')) return;
  box.dataset.path = found ? path : '';
  box.replaceChildren(...(found ? facts(found) : []));
}

function facts(key) {
  const standard = key.standard === null || key.table ? '' : `; default ${toml.literal(key.standard)}`;
  return [el('code', {}, key.path), ` ${key.type}${standard}`, ...key.text.split('\n').map((line) => el('p', {}, line))];
}

/** Where the key of a schema goes in the text: of arrays of tables, into the last element. */
const placeOf = (path) => path.split('.').reduce((above, part, i, parts) => {
  const at = above ? `${above}.${part}` : part;
  const isArray = i < parts.length - 1 && byPath.get(toml.schemaPath(at))?.many;
  return isArray ? `${at}[${Math.max(toml.countOf(text.value, at) - 1, 0)}]` : at;
}, '');

function insert(key) {
  if (key.table) {
    const has = toml.keyAt(text.value, text.value.split('\n').findIndex((line) => line.trim() === `[${key.path}]`));
    if (!has) text.value = `${text.value.trimEnd()}\n\n[${key.path}]\n`;
    const at = text.value.indexOf(`[${key.path}]`);
    text.focus();
    text.setSelectionRange(at, at + key.path.length + 2);
  } else {
    const path = placeOf(key.path);
    const before = toml.get(text.value, path);
    const made = before === null ? toml.set(text.value, path, toml.literal(key.value))
      : { text: text.value, line: toml.set(text.value, path, before).line };
    text.value = made.text;
    const all = text.value.split('\n');
    const end = all.slice(0, made.line + 1).join('\n').length;
    const value = end - all[made.line].length + all[made.line].indexOf('=') + 2;
    text.focus();
    text.setSelectionRange(value, end);
  }
  announce(`${key.path} is in the text`);
  changed();
}

function search() {
  const words = byId('keys-search').value.toLowerCase().split(/\s+/).filter(Boolean);
  const rank = (key) => {
    const name = key.path.toLowerCase();
    if (words.length && name.split('.').at(-1) === words[0]) return 0;
    return words.every((word) => name.includes(word)) ? 1 : 2;
  };
  // Contents of files are for programs; they are found by name only.
  const found = keys
    .filter((key) => words.length ? words.every((word) => `${key.path} ${key.text}`.toLowerCase().includes(word)) : !key.path.includes('.'))
    .filter((key) => !key.path.startsWith('contents.') || words.some((word) => word.startsWith('contents')))
    .map((key, i) => [rank(key), i, key])
    .sort((a, b) => a[0] - b[0] || a[1] - b[1])
    .map(([, , key]) => key);
  const shown = found.slice(0, MOST_KEYS);
  setText(byId('keys-count'), !keys.length ? '' : !words.length ? `${shown.length} keys of the top level; a search finds all ${keys.length}`
    : found.length > shown.length ? `${shown.length} of ${found.length} keys; more words find fewer` : `${found.length} keys`);
  byId('keys').replaceChildren(...shown.map((key) => el('li', {},
    el('button', { type: 'button', 'aria-label': `Insert ${key.path}`, onclick: () => insert(key) }, 'Insert'), ...facts(key))));
}

async function loadHelp() {
  try {
    const [spec, task] = await Promise.all([api('/api/schema'), api('/api/schema/task')]);
    schemas = { spec, task };
    const ofRun = keysBy.run = keysOf(spec);
    timeKey = TIME_KEYS.find((key) => ofRun.some(({ path }) => path === key)) || timeKey;
    followKind();
    keyHelp();
    readForm();
  } catch (failure) {
    setText(byId('keys-count'), `The keys could not be loaded: ${failure.message}`);
  }
  try {
    presets = await api('/api/presets');
    const options = (list) => list.map(({ name, description }) => el('option', { value: name, label: description || name }));
    byId('targets').replaceChildren(...options(presets.targets));
    byId('workloads').replaceChildren(...options(presets.workloads));
    describe();
  } catch {
    // The fields can be typed without presets.
  }
}

let opened = false;

/** Called when the view is shown. */
export async function open() {
  if (opened && keys.length) return;
  if (!keys.length) await loadHelp();
  if (!opened) check(false);
  opened = true;
}

export function setup({ onStart }) {
  started = onStart;
  byId('form-task').replaceChildren(...KINDS.map((each) => el('option', { value: each.kind }, each.name)));
  restore();
  readForm();
  lines();
  for (const [key, field] of Object.entries(form)) {
    field.addEventListener('input', () => write(key, field.value.trim() === '' ? null : toml.quote(field.value.trim())));
  }
  byId('form-task').addEventListener('change', chooseKind);
  limit.addEventListener('input', writeLimit);
  unit.addEventListener('change', () => {
    limit.value = unit.value === 'time' ? '2s' : '100000';
    writeLimit();
  });
  for (const field of Object.values(asides)) field.addEventListener('input', changed);
  text.addEventListener('input', changed);
  text.addEventListener('scroll', scroll);
  for (const name of ['keyup', 'click', 'focus']) text.addEventListener(name, keyHelp);
  byId('goto').addEventListener('click', goToError);
  byId('check').addEventListener('click', () => check(true));
  byId('start-form').addEventListener('submit', start);
  byId('keys-search').addEventListener('input', search);
  // Enter in the search does not start a run.
  byId('keys-search').addEventListener('keydown', (event) => event.key === 'Enter' && event.preventDefault());
}
