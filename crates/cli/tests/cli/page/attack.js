// Everything that a page from elsewhere can send to BASE, even one that knows the token; gives what could be read.
const run = JSON.stringify({ toml: 'target = "null:"\nfor = "60s"\nkeep = "summary"\n', name: 'evil' });
const kinds = [
  { 'Content-Type': 'text/plain' },
  { 'Content-Type': 'application/json' },
  { 'Content-Type': 'application/json', 'X-SSDyno-Token': TOKEN },
];
const tries = [];
for (const path of ['/api/runs', '/api/stop', '/api/check']) {
  for (const headers of kinds) {
    for (const mode of ['cors', 'no-cors']) tries.push([path, { method: 'POST', mode, headers, body: run }]);
  }
}
for (const path of ['/', '/api/runs', '/api/presets', '/metrics']) tries.push([path, {}]);
const read = [];
for (const [path, request] of tries) {
  try {
    const answer = await fetch(BASE + path, { credentials: 'include', cache: 'no-store', ...request });
    if (answer.ok) read.push(`${path} ${JSON.stringify(request)}`);
  } catch {
    // Refused by the browser, which asked the server first or had no answer that it may show.
  }
}
const events = await new Promise((done) => {
  const source = new EventSource(`${BASE}/events`, { withCredentials: true });
  source.onmessage = source.onopen = () => done('open');
  source.onerror = () => done('refused');
  setTimeout(() => done('silent'), 5000);
});
if (events !== 'refused') read.push(`/events ${events}`);
return read;
