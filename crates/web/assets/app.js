// Views and the connection to the server.

import { announce, byId, setText, show } from './dom.js';
import * as live from './live.js';
import * as runs from './runs.js';
import * as editor from './editor.js';

const VIEWS = ['live', 'runs', 'start'];
const RETRY_MS = [1000, 2000, 5000];
/** The server tells its state every two seconds; a connection without a word for so long is dead. */
const SILENT_MS = 8000;
const LOOK_MS = 1000;
const NEW_TOKEN = 'The server was restarted and has a new token. Open the address that `ssdyno ui` printed anew.';

// ---- views

function showView(focus) {
  const wanted = location.hash.slice(1);
  const view = VIEWS.includes(wanted) ? wanted : 'live';
  for (const each of VIEWS) {
    show(byId(`view-${each}`), each === view);
    const link = document.querySelector(`nav a[href="#${each}"]`);
    if (each === view) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  }
  if (view === 'runs') runs.load();
  if (view === 'start') editor.open();
  if (focus) {
    scrollTo(0, 0);
    byId(`${view}-title`).focus({ preventScroll: true });
  }
}

// ---- connection

let source = null;
let tries = 0;
let lostAt = null;
let timer = 0;
let heardAt = 0;
let isOver = false;

const clock = () => new Date().toLocaleTimeString([], { hour12: false });

function banner(text) {
  const box = byId('banner');
  setText(box, text);
  show(box, Boolean(text));
}

function connection(kind, text) {
  byId('connection').dataset.kind = kind;
  setText(byId('connection'), text);
}

function connect() {
  clearTimeout(timer);
  source?.close();
  const mine = source = new EventSource('/events');
  heardAt = performance.now();
  live.listen(mine, () => {
    heardAt = performance.now();
  });
  mine.addEventListener('open', () => {
    if (mine !== source) return;
    heardAt = performance.now();
    live.connected();
    if (lostAt) announce('The server answers again.');
    lostAt = null;
    tries = 0;
    banner('');
    connection('good', 'connected');
  });
  mine.addEventListener('error', () => {
    if (mine !== source) return;
    lost();
    // The browser tries again by itself unless the server refused.
    if (mine.readyState === EventSource.CLOSED) refused();
  });
}

function lost() {
  if (!lostAt) {
    lostAt = clock();
    announce('Connection lost. The page tries again.');
  }
  live.disconnected(false);
  connection('bad', 'not connected');
  banner(`Connection lost at ${lostAt}. The figures below date from that time. The page tries to reconnect.`);
}

/** A network that swallows everything, or a server that hangs, ends no connection. */
function look() {
  if (isOver || document.hidden || performance.now() - heardAt < SILENT_MS) return;
  lost();
  connect();
}

/** Finds out why: another token, or another trouble after which the page tries again. */
async function refused() {
  let status = 0;
  try {
    status = (await fetch('/api/presets', { cache: 'no-store' })).status;
  } catch {
    // Not there.
  }
  if (status === 401 || status === 403) return expired();
  timer = setTimeout(connect, RETRY_MS[Math.min(tries, RETRY_MS.length - 1)]);
  tries += 1;
}

/** The page's token is not the server's. Where another tab has its cookie, the page goes on showing its runs. */
function expired() {
  const isOpen = source?.readyState === EventSource.OPEN;
  const run = isOpen ? null : live.disconnected(true);
  const text = `${NEW_TOKEN}${run ? ` Run ${run} ended when the server stopped.` : ''}`;
  banner(text);
  announce(text);
  if (isOpen) return;
  isOver = true;
  source?.close();
  clearTimeout(timer);
  connection('bad', 'not connected');
}

addEventListener('refused', expired);
addEventListener('hashchange', () => showView(true));
byId('skip').addEventListener('click', (event) => {
  event.preventDefault();
  byId('main').focus();
});

live.setup({ reconnect: connect });
runs.setup();
editor.setup({
  onStart: () => {
    location.hash = '#live';
  },
});
showView(false);
connect();
setInterval(look, LOOK_MS);
