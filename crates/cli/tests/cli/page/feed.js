// Stands in for the server, before the page's own scripts: eight hosts that report ten times a second, as `ssdyno ui`
// sends it, with points joined in pairs when there are more than 1024.
const HOSTS = Array.from({ length: 8 }, (_, i) => `host-${i}`);
const POINTS_MAX = 1024;
const UPDATES_A_SECOND = 10;

const feed = { source: null, now: 0, points: 0, share: 1, epoch: 0, busy: 0, random: 1 };
globalThis.feed = feed;

globalThis.EventSource = class extends EventTarget {
  static OPEN = 1;

  static CLOSED = 2;

  readyState = 1;

  constructor() {
    super();
    feed.source = this;
    setTimeout(() => this.dispatchEvent(new Event('open')), 0);
  }

  close() {
    this.readyState = 2;
  }
};

// What the page does in its frames counts as its work.
const frame = globalThis.requestAnimationFrame.bind(globalThis);
globalThis.requestAnimationFrame = (callback) => frame((time) => {
  const begun = performance.now();
  callback(time);
  feed.busy += performance.now() - begun;
});

const send = (name, value) => feed.source.dispatchEvent(new MessageEvent(name, { data: JSON.stringify(value) }));

/** From 0 to 1, the same in each run. */
const random = () => {
  feed.random = (feed.random * 48271) % 2147483647;
  return feed.random / 2147483647;
};

const percentiles = () => ({ p50: 80e3 + random(), p99: 2e5 + random() * 1e5, p99_9: 1e6 * random() + 4e5 });

/** Point `number`, which stands for `share` updates. */
function point(number) {
  const span = feed.share / UPDATES_A_SECOND;
  const { p50, p99, p99_9: p999 } = percentiles();
  return {
    from: number * span,
    to: (number + 1) * span,
    hosts: HOSTS.map(() => [span, Math.round(span * (9e4 + random() * 2e4)), Math.round(span * 4e8), 0]),
    p: [p50, p99, p999],
    heat: Array.from({ length: 40 }, (_, i) => [56 + i, Math.ceil(random() * 1e4)]),
  };
}

function state() {
  const hosts = HOSTS.map((name) => ({
    name, phase: 'loaded', silent_s: null, requests: Math.round(feed.now * 1e4), errors: 0, latency_ns: percentiles(),
  }));
  send('state', {
    sequence: feed.now, server: 1,
    run: {
      id: 1, name: 'fed', target: 'null:', load: 'randread', phase: 'loaded', stopping: false, started_unix_ms: 1,
      share_done: feed.now / 864000, now_s: feed.now / UPDATES_A_SECOND, is_real: true, requests: Math.round(feed.now * 8e4), errors: 0,
      latency_ns: percentiles(), hosts, task: null, steps: [], folder: null, partial: false, error: null,
    },
  });
}

function systems() {
  const sample = () => ({
    unix_ms: feed.now * 100, run_s: feed.now / UPDATES_A_SECOND,
    cpu: { user: random() / 3, system: random() / 3, iowait: random() / 6, irq: random() / 9, other: 0 },
    interrupts_per_s: random() * 1e5, context_switches_per_s: random() * 1e5, memory_available_bytes: random() * 1e10, swap_bytes: 0,
    network_in_bytes_per_s: random() * 1e9, network_out_bytes_per_s: random() * 1e9,
    disk_read_bytes_per_s: random() * 1e9, disk_write_bytes_per_s: random() * 1e9, power_w: random() * 100,
  });
  for (const host of HOSTS) send('system', { run: 1, host, samples: [sample()] });
}

const series = () => send('series', {
  run: 1, epoch: feed.epoch, hosts: HOSTS, points: Array.from({ length: feed.points }, (_, i) => point(i)),
});

/** One report of all hosts: a tenth of a second. */
feed.update = () => {
  if (feed.now === 0) {
    state();
    series();
  }
  feed.now += 1;
  if (feed.now % feed.share === 0) {
    feed.points += 1;
    if (feed.points > POINTS_MAX) {
      feed.share *= 2;
      feed.points = Math.ceil(feed.points / 2);
      feed.epoch += 1;
      series();
    } else {
      send('points', { run: 1, epoch: feed.epoch, points: [point(feed.points - 1)] });
    }
  }
  // Four times a second.
  if (feed.now % 5 === 0 || feed.now % 5 === 3) state();
  if (feed.now % UPDATES_A_SECOND === 0) systems();
};

/** So many updates as fast as the page takes them in, with a frame after each hundred seconds. */
feed.fast = async (updates) => {
  for (let i = 1; i <= updates; i += 1) {
    feed.update();
    if (i % 1000 === 0) await new Promise(frame);
  }
  await new Promise((done) => frame(() => frame(done)));
  return feed.points;
};

/** Ten updates a second for so long: intervals between frames, and the time of the page's scripts for each update, in ms. */
feed.live = (seconds) => new Promise((done) => {
  const [intervals, updates] = [[], []];
  let [last, work] = [null, null];
  const tick = (time) => {
    if (last !== null) intervals.push(time - last);
    last = time;
    frame(tick);
  };
  frame(tick);
  const timer = setInterval(() => {
    if (work !== null) updates.push(work + feed.busy);
    feed.busy = 0;
    const begun = performance.now();
    feed.update();
    work = performance.now() - begun;
    if (updates.length < seconds * UPDATES_A_SECOND) return;
    clearInterval(timer);
    done({ intervals, updates });
  }, 1000 / UPDATES_A_SECOND);
});
