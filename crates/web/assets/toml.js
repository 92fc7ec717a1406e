// The little of TOML that the form needs: where a key is in a text, and its value on one line. The path of a key names
// elements of arrays of tables by number: `clients[0].host`.

const HEADER = /^\s*(\[\[?)\s*([^\]]+?)\s*\]\]?\s*(#.*)?$/;
const KEY = /^\s*((?:[\w-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[\w-]+|"[^"]*"|'[^']*'))*)\s*=\s*(.*)$/;

const plain = (path) => path.split('.').map((part) => part.trim().replace(/^(["'])(.*)\1$/, '$2')).join('.');

/** A path as the schema has it. */
export const schemaPath = (path) => path.replace(/\[\d+\]/g, '');

/** Lines with the table that they are in and their key, if they have one. */
function read(text) {
  let table = '';
  let open = null;
  /** Elements so far of each array of tables. */
  const counts = new Map();
  const enter = (path, isElement) => plain(path).split('.').reduce((above, part, i, parts) => {
    const at = above ? `${above}.${part}` : part;
    if (isElement && i === parts.length - 1) counts.set(at, (counts.get(at) || 0) + 1);
    return counts.has(at) ? `${at}[${counts.get(at) - 1}]` : at;
  }, '');
  return text.split('\n').map((line) => {
    if (open) {
      if (line.includes(open)) open = null;
      return { line, table, key: null, inside: true };
    }
    const header = HEADER.exec(line);
    if (header) {
      table = enter(header[2], header[1] === '[[');
      return { line, table, key: null, header: true };
    }
    const found = KEY.exec(line);
    if (!found) return { line, table, key: null };
    const quotes = /^("""|''')/.exec(found[2]);
    if (quotes && !found[2].slice(3).includes(quotes[1])) [open] = [quotes[1]];
    return { line, table, key: table ? `${table}.${plain(found[1])}` : plain(found[1]), value: found[2] };
  });
}

/** Length of the value at the start of `text`; what follows is a comment. */
function valueLength(text) {
  let quote = null;
  for (let i = 0; i < text.length; i += 1) {
    const c = text[i];
    if (quote) {
      if (c === '\\' && quote === '"') i += 1;
      else if (c === quote) quote = null;
    } else if (c === '"' || c === "'") quote = c;
    else if (c === '#') return text.slice(0, i).trimEnd().length;
  }
  return text.trimEnd().length;
}

/** The value of a key as text without quotes; null where it is not there on one line. */
export function get(text, key) {
  const found = read(text).find((each) => each.key === key);
  if (!found) return null;
  const value = found.value.slice(0, valueLength(found.value));
  const quoted = /^"((?:[^"\\]|\\.)*)"$/.exec(value);
  if (quoted) {
    try {
      return JSON.parse(value);
    } catch {
      return quoted[1];
    }
  }
  return /^'([^']*)'$/.exec(value)?.[1] ?? value;
}

/** The path of the key or table of a line (from 0). */
export function pathAt(text, number) {
  const found = read(text)[number];
  return found && (found.key || found.header) ? found.key || found.table : null;
}

/** The same as the schema has it. */
export function keyAt(text, number) {
  const path = pathAt(text, number);
  return path && schemaPath(path);
}

const isIn = (table, path) => table === path || table.startsWith(`${path}.`);

/** Whether a table, or an element of an array of tables, has lines of its own. */
export const hasTable = (text, path) => read(text).some(({ table, key }) => isIn(table, path) || Boolean(key?.startsWith(`${path}.`)));

/** Elements of an array of tables. */
export function countOf(text, path) {
  const all = read(text);
  let count = 0;
  while (all.some(({ table }) => table === `${path}[${count}]`)) count += 1;
  return count;
}

/** Adds an empty element to an array of tables, behind the others or at the end. */
export function addTo(text, path) {
  const last = countOf(text, path) - 1;
  const lines = read(text);
  const at = last < 0 ? -1 : lines.findLastIndex(({ table, line }) => isIn(table, `${path}[${last}]`) && line.trim());
  const out = lines.map(({ line }) => line);
  if (at < 0) return `${text.trimEnd()}\n\n[[${schemaPath(path)}]]\n`;
  out.splice(at + 1, 0, '', `[[${schemaPath(path)}]]`);
  return out.join('\n');
}

/** Takes an element, such as `clients[1]`, out of the text. */
export const removeFrom = (text, element) => read(text).filter(({ table }) => !isIn(table, element)).map(({ line }) => line).join('\n');

/** Sets a key to a TOML value, or removes it (`null`). Returns the text and the line of the key. */
export function set(text, key, value) {
  const lines = read(text);
  const at = lines.findIndex((each) => each.key === key);
  const out = lines.map((each) => each.line);
  if (at >= 0) {
    if (value === null) {
      out.splice(at, 1);
      return { text: out.join('\n'), line: at };
    }
    const { line, value: old } = lines[at];
    const start = line.length - old.length;
    out[at] = line.slice(0, start) + value + old.slice(valueLength(old));
    return { text: out.join('\n'), line: at };
  }
  if (value === null) return { text, line: 0 };
  const dot = key.lastIndexOf('.');
  const [table, name] = dot < 0 ? ['', key] : [key.slice(0, dot), key.slice(dot + 1)];
  // Behind the last line of its table that is not empty.
  let last = -1;
  lines.forEach((each, i) => {
    if (each.table === table && (each.line.trim() || each.inside)) last = i;
  });
  if (last < 0 && table) {
    // A table that was begun with dotted keys goes on with them.
    const dotted = lines.findLastIndex((each) => each.key?.startsWith(`${table}.`) && !isIn(each.table, table));
    if (dotted >= 0) {
      const { table: outer } = lines[dotted];
      out.splice(dotted + 1, 0, `${outer ? key.slice(outer.length + 1) : key} = ${value}`);
      return { text: out.join('\n'), line: dotted + 1 };
    }
    const header = /\[\d+\]$/.test(table) ? `[[${schemaPath(table)}]]` : `[${schemaPath(table)}]`;
    // A table of an element must follow that element.
    const element = /^.*\[\d+\]/.exec(table)?.[0];
    const after = element ? lines.findLastIndex((each) => isIn(each.table, element) && each.line.trim()) : -1;
    const at = after >= 0 ? after + 1 : out.findLastIndex((line) => line.trim()) + 1;
    out.splice(at, out.length > at && !out[at].trim() ? 1 : 0, ...(at ? [''] : []), header, `${name} = ${value}`, '');
    return { text: out.join('\n'), line: at + (at ? 2 : 1) };
  }
  out.splice(last + 1, 0, `${name} = ${value}`);
  return { text: out.join('\n'), line: last + 1 };
}

/** A string as TOML. */
export const quote = (text) => JSON.stringify(text);

/** A value of JSON as TOML. */
export function literal(value) {
  if (Array.isArray(value)) return `[${value.map(literal).join(', ')}]`;
  if (value && typeof value === 'object') {
    const inner = Object.entries(value).filter(([, v]) => v !== null).map(([k, v]) => `${k} = ${literal(v)}`);
    return inner.length ? `{ ${inner.join(', ')} }` : '{}';
  }
  return typeof value === 'string' ? quote(value) : String(value);
}
