// Helpers for elements and for the server's API. Text is only ever set as text.

export const byId = (id) => document.getElementById(id);

/** An element with attributes and children; strings become text. */
export function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? '' : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

/** Sets the text of an element if it differs. */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** Shows or hides an element. */
export function show(node, visible) {
  if (node.hidden === visible) node.hidden = !visible;
}

/** Says a change of state to a screen reader. */
export function announce(text) {
  byId('announce').textContent = text;
}

/** A list of names and values whose values change in place. */
export class ValueList {
  constructor(node) {
    this.node = node;
    this.names = '';
    this.values = [];
  }

  /** `rows`: [name, value, small text]; the elements stay while the names do. */
  set(rows) {
    const names = rows.map((row) => row[0]).join('\n');
    if (names !== this.names) {
      this.names = names;
      this.values = rows.map(([name]) => [el('dt', {}, name), el('dd', {}), el('dd', { class: 'small' })]);
      this.node.replaceChildren(...this.values.map((parts) => el('div', {}, ...parts)));
    }
    rows.forEach(([, value, small], i) => {
      setText(this.values[i][1], value);
      setText(this.values[i][2], small || '');
    });
  }
}

/** A table whose roles survive a layout as cards. `columns`: names; cells are text or elements. */
export function table(columns, { caption, head } = {}) {
  const header = el('tr', { role: 'row' }, ...columns.map((name, i) =>
    el('th', { role: 'columnheader', scope: 'col' }, head ? head(i) : name)));
  const body = el('tbody', { role: 'rowgroup' });
  const node = el('table', { role: 'table', 'aria-label': caption },
    el('thead', { role: 'rowgroup' }, header), body);
  const row = (cells, attributes = {}) => el('tr', { role: 'row', ...attributes }, ...cells.map((cell, i) =>
    el(i === 0 ? 'th' : 'td', {
      role: i === 0 ? 'rowheader' : 'cell', scope: i === 0 ? 'row' : null, 'data-label': columns[i],
    }, cell)));
  return { node, header, body, row };
}

/** The server refused or failed; has the fields of its answer. */
export class ApiError extends Error {
  constructor(status, fields) {
    super(fields.message);
    this.status = status;
    this.fields = fields;
  }

  /** The session's token or cookie is not the server's. */
  get refused() {
    return this.status === 401 || this.status === 403;
  }
}

/** Asks the server; throws an ApiError. */
export async function api(path, { body, signal } = {}) {
  const request = { signal, headers: {}, cache: 'no-store' };
  if (body !== undefined) {
    request.method = 'POST';
    request.body = JSON.stringify(body);
    request.headers['Content-Type'] = 'application/json';
    request.headers['X-SSDyno-Token'] = document.querySelector('meta[name="ssdyno-token"]').content;
  }
  let answer;
  try {
    answer = await fetch(path, request);
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new ApiError(0, { message: 'The server does not answer.', help: 'Check that `ssdyno ui` still runs.' });
  }
  let value = null;
  try {
    value = await answer.json();
  } catch (error) {
    if (error.name === 'AbortError') throw error;
  }
  if (!answer.ok || value === null) {
    const fields = value && value.error && value.error.message ? value.error
      : { message: `The server answered ${path.split('?')[0]} with status ${answer.status}.` };
    const error = new ApiError(answer.status, fields);
    if (error.refused) dispatchEvent(new Event('refused'));
    throw error;
  }
  return value;
}

/** Shows an error with its place and help in a box. */
export function showError(box, error) {
  const fields = error ? error.fields || error : null;
  show(box, Boolean(fields));
  if (!fields) return box.replaceChildren();
  const place = [
    fields.file, fields.line && `line ${fields.line}`, fields.column && `column ${fields.column}`,
  ].filter(Boolean).join(', ');
  const message = place ? `${place}: ${fields.message}` : fields.message;
  box.replaceChildren(el('b', {}, message || 'Unknown error'));
  if (fields.help) box.append(el('p', {}, fields.help));
}
