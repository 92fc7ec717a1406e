// The fields of the form that are made from a schema: one for each key, a group for each table, and a group with buttons
// for each array of tables. They write into the text, and show what it has.

import { announce, el } from './dom.js';
import * as toml from './toml.js';

/** Contents of files are for programs. */
const NO_GROUP = 'contents';

/** `{key, path, input}` of each field; arrays of tables; the text and how to change it. */
let fields = [];
let lists = [];
let keys = [];
let number = 0;
let io = { read: () => '', replace: () => {} };

const lastPart = (path) => path.slice(path.lastIndexOf('.') + 1);
const isMap = ({ type }) => type === 'table';

/** The keys of a table: those one level below it. */
const below = (path) => keys.filter((key) => (path ? key.path.startsWith(`${path}.`) : true)
  && !key.path.slice(path ? path.length + 1 : 0).includes('.'));

/** The field of `key`; `path` is where it is in the text. */
function fieldOf(key, path) {
  const choices = key.type === 'boolean' ? ['true', 'false'] : /^"[^"]*"( or "[^"]*")*$/.test(key.type) ? key.type.split(' or ').map(JSON.parse) : null;
  const id = `field-help-${number += 1}`;
  const attributes = { spellcheck: 'false', 'aria-describedby': id, 'data-key': path, list: lastPart(path) === 'target' ? 'targets' : null };
  const input = choices
    ? el('select', attributes, el('option', { value: '' }, 'default'), ...choices.map((each) => el('option', { value: each }, each)))
    : el('input', attributes);
  const placeholder = isMap(key) ? 'KEY = VALUE, KEY = VALUE' : key.standard === null ? '' : [].concat(key.standard).join(', ');
  if (!choices && placeholder) input.placeholder = placeholder;
  input.addEventListener(choices ? 'change' : 'input', () => {
    io.replace(toml.set(io.read(), path, valueOf(key, input.value.trim())).text);
  });
  fields.push({ key, path, input });
  return el('label', {}, lastPart(path), input, el('small', { id }, key.text.split('\n')[0]));
}

/** Fields and groups of the table at `path`; `of` is its path in the schema. */
function contentOf(of, path) {
  const all = below(of).filter((key) => lastPart(key.path) !== NO_GROUP);
  const place = (key) => (path ? `${path}.${lastPart(key.path)}` : key.path);
  return [...all.filter((key) => !key.table && !key.many).map((key) => fieldOf(key, place(key))),
    ...all.filter((key) => key.table || key.many).map((key) => groupOf(key, place(key)))];
}

/** A group that is open if the text has its table. */
function groupOf(key, path) {
  const has = toml.hasTable(io.read(), key.many ? `${path}[0]` : path);
  return el('details', { open: has, 'data-table': path }, el('summary', {}, lastPart(path)), el('p', { class: 'fine' }, key.text.split('\n')[0]),
    key.many ? listOf(key, path) : el('div', { role: 'group', 'aria-label': path, class: 'fields' }, ...contentOf(key.path, path)));
}

/** An array of tables: a group for each element, and buttons to add and to remove. */
function listOf(key, path) {
  const name = lastPart(path);
  const add = el('button', { type: 'button', onclick: () => {
    io.replace(toml.addTo(io.read(), path));
    list.items.at(-1).querySelector('input, select')?.focus();
    announce(`${name} ${list.items.length} is added`);
  } }, `Add to ${name}`);
  const box = el('div', { class: 'fields' }, add);
  const item = (at) => {
    const element = `${path}[${at}]`;
    const remove = el('button', { type: 'button', onclick: () => {
      io.replace(toml.removeFrom(io.read(), element));
      add.focus();
      announce(`${name} ${at + 1} is removed`);
    } }, `Remove ${name} ${at + 1}`);
    return el('fieldset', { class: 'fields' }, el('legend', {}, `${name} ${at + 1}`), ...contentOf(key.path, element), remove);
  };
  const list = {
    add, path, items: [],
    /** Fields follow their place in the text, so that only the number of elements matters. */
    follow(text) {
      const count = toml.countOf(text, path);
      while (list.items.length > count) list.items.pop().remove();
      while (list.items.length < count) {
        list.items.push(item(list.items.length));
        add.before(list.items.at(-1));
      }
    },
  };
  lists.push(list);
  return box;
}

/** What was typed in the field of `key` as TOML; `null` where it is empty. */
function valueOf(key, typed) {
  const { type } = key;
  if (typed === '') return null;
  if (isMap(key)) return `{ ${typed} }`;
  if (/^[[{]/.test(typed) && /list|table/.test(type)) return typed;
  const one = (value) => (/^[-+]?[0-9][0-9_.eE+-]*$/.test(value) || /^(true|false)$/.test(value) ? value : toml.quote(value));
  const isText = (name) => /string|"/.test(name);
  if (type.startsWith('list')) {
    const parts = typed.split(',').map((part) => part.trim()).filter(Boolean);
    return `[${parts.map((part) => (isText(type) ? toml.quote(part) : one(part))).join(', ')}]`;
  }
  return isText(type) && !/number|integer/.test(type) ? toml.quote(typed) : one(typed);
}

/** What the field of `key` shows of a value of the text. */
function shownOf(key, value) {
  if (isMap(key)) return value.replace(/^\{\s*|\s*\}$/g, '');
  return key.type.startsWith('list') ? value.replace(/^\[|\]$|"/g, '') : value;
}

/** The field of the key at `path`, if the form has one. */
export const inputOf = (path) => fields.find((each) => each.path === path)?.input ?? null;

/** Makes the fields of `of`, the keys of a schema, but for those of `taken`: fields before `end`, groups behind it. */
export function make(of, taken, end, access) {
  for (const node of end.parentElement.querySelectorAll(':scope > [data-made]')) node.remove();
  [keys, fields, lists, io] = [of.filter(({ path }) => !taken.includes(path)), [], [], access];
  const made = contentOf('', '');
  for (const node of made) node.dataset.made = '';
  end.before(...made.filter((node) => node.matches('label')));
  end.after(...made.filter((node) => node.matches('details')));
}

/** Brings the fields to the text. */
export function readText(text) {
  // An element that is added may bring lists of its own.
  for (let i = 0; i < lists.length; i += 1) lists[i].follow(text);
  [fields, lists] = [fields.filter(({ input }) => input.isConnected), lists.filter(({ add }) => add.isConnected)];
  // What is written in another form, such as a table in braces or a list on several lines, is edited in the text.
  const elsewhere = (path) => path.split('.').some((_, i, parts) => i > 0 && toml.get(text, parts.slice(0, i).join('.')) !== null);
  for (const { add, path } of lists) add.disabled = elsewhere(`${path}.`);
  for (const { key, path, input } of fields) {
    const value = toml.get(text, path);
    input.disabled = elsewhere(path) || /^[[{]$/.test(value ?? '') || (isMap(key) && toml.hasTable(text, path));
    if (input !== document.activeElement) input.value = value === null ? '' : shownOf(key, value);
  }
}
