//! Metrics of workers over real connections, and the dashboard that shows them.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::Value;
use ssdyno_cluster::{
    ClusterProgress, Hosts, MetricsListener, RunOutline, WorkerConsent, WorkerListener,
    WorkerService, metrics_text, run_on_hosts, serve_listener,
};
use ssdyno_figures::{KeepGoing, RunProgress};
use ssdyno_prober::{MetricPoint, SystemSample, read_open_metrics};
use ssdyno_session::{Failure, RunPhase, RunSnapshot, RunSpec};

const VERSION: &str = "1.2.3";

/// A worker with metrics, in a thread of its own.
struct Running {
    address: SocketAddr,
    metrics: SocketAddr,
    end: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<(), Failure>>>,
}

impl Running {
    fn of(service: WorkerService) -> Running {
        let here = "127.0.0.1:0".parse().unwrap();
        let metrics = MetricsListener::bind(here).unwrap();
        let at = metrics.address();
        let listener = WorkerListener::bind(here).unwrap().with_metrics(metrics);
        let (address, end) = (listener.address(), Arc::new(AtomicBool::new(false)));
        let ends = Arc::clone(&end);
        let serve =
            move || serve_listener(listener, &service, move || ends.load(Ordering::Relaxed));
        Running { address, metrics: at, end, thread: Some(std::thread::spawn(serve)) }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.metrics).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream
    }

    /// Sends bytes; returns the received bytes until the other end closes, possibly none.
    fn send(&self, bytes: &[u8]) -> String {
        let mut stream = self.connect();
        // The other end may close before it has taken all.
        let _ = stream.write_all(bytes);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }

    fn ask(&self, line: &str) -> (u16, String, String) {
        let answer =
            self.send(format!("{line} HTTP/1.1\r\nHost: {}\r\n\r\n", self.metrics).as_bytes());
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), head.to_lowercase(), body.to_owned())
    }

    fn scrape(&self) -> Vec<MetricPoint> {
        let (status, head, body) = self.ask("GET /metrics");
        let kind = "content-type: application/openmetrics-text; version=1.0.0; charset=utf-8";
        assert!(status == 200 && head.contains(kind), "{head}");
        read_open_metrics(&body).unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap().unwrap();
        }
    }
}

fn value(points: &[MetricPoint], name: &str) -> Option<f64> {
    points.iter().find(|point| point.name == name).map(|point| point.value)
}

#[cfg_attr(not(target_os = "linux"), ignore = "only Linux has null:")]
#[test]
fn a_run_under_way_is_seen_and_not_disturbed() {
    let worker = Running::of(WorkerService::new(WorkerConsent::default(), VERSION));
    let before = worker.scrape();
    assert_eq!(value(&before, "ssdyno_run_requests_total"), None);
    let hosts = Hosts {
        addresses: vec![worker.address.to_string().parse().unwrap()],
        version: VERSION.to_owned(),
        ..Hosts::default()
    };
    let spec = RunSpec {
        target: Some("null:".to_owned()),
        duration: "2s".parse().ok(),
        ..RunSpec::default()
    };
    let run = std::thread::spawn(move || {
        run_on_hosts(&hosts, &spec, &mut |_| KeepGoing::Continue).unwrap()
    });
    let (mut last, mut counted, mut loaded, mut sampled) = (0.0, 0.0, 0, 0);
    while !run.is_finished() {
        let points = worker.scrape();
        if let Some(requests) = value(&points, "ssdyno_run_requests_total") {
            assert!(requests >= last, "{requests} {last}");
            loaded += u32::from(requests > last);
            last = requests;
            assert_eq!(value(&points, "ssdyno_host_requests_total"), Some(requests));
            // Jobs tell their distributions a moment later than their counts.
            let now = value(&points, "ssdyno_run_latency_seconds_count").unwrap();
            assert!(now >= counted && now <= requests, "{counted} {now} {requests}");
            counted = now;
        }
        sampled += u32::from(value(&points, "ssdyno_cpu_user_fraction").is_some());
        std::thread::sleep(Duration::from_millis(30));
    }
    let result = run.join().unwrap().result;
    assert!(counted > 0.0 && !result.partial && loaded > 5 && sampled > 5, "{loaded} {sampled}");
    let all = result.requests
        + result.window.unwrap().outside.iter().map(|one| one.requests).sum::<u64>();
    assert!(last > 0.0 && last <= all as f64, "{last} {all}");
    // A text is kept for 0.1 s, so the last one may still be of the run.
    let deadline = Instant::now() + Duration::from_secs(10);
    while value(&worker.scrape(), "ssdyno_run_requests_total").is_some() {
        assert!(Instant::now() < deadline, "a run that was collected is still shown");
        std::thread::sleep(Duration::from_millis(30));
    }
}

#[test]
fn other_requests_are_refused_with_the_reason() {
    let prober = Running::of(WorkerService::prober(VERSION));
    for (line, status, why) in [
        ("GET /", 404, "at /metrics"),
        ("GET /metrics/x", 404, "at /metrics"),
        ("POST /metrics", 405, "use GET"),
        ("DELETE /metrics", 405, "use GET"),
    ] {
        let (found, _, body) = prober.ask(line);
        assert!(found == status && body.contains(why), "{line}: {found} {body}");
    }
    let (status, head, body) = prober.ask("HEAD /metrics");
    assert!(status == 200 && body.is_empty() && head.contains("content-length"), "{head}");
    for (host, status) in [
        ("evil.example:9801", 421),
        ("", 421),
        ("localhost:1", 200),
        ("[::1]:9801", 200),
        ("127.0.0.1", 200),
    ] {
        let answer =
            prober.send(format!("GET /metrics HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes());
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{host}: {answer}");
    }
}

#[test]
fn garbage_and_slow_clients_hold_nobody_up() {
    let prober = Running::of(WorkerService::prober(VERSION));
    for garbage in [
        &b"\0\x01\x02\xff\r\n\r\n"[..],
        b"GET\r\n\r\n",
        b"GET /metrics HTTP/9.9\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        &[b'a'; 100_000],
        &b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nX: "
            .iter()
            .copied()
            .chain([b'x'; 40_000])
            .collect::<Vec<u8>>(),
    ] {
        let answer = prober.send(garbage);
        assert!(!answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    // Fewer connections than the limit, and each sends nothing or an incomplete request.
    let mut slow: Vec<TcpStream> = (0..12).map(|_| prober.connect()).collect();
    slow.iter_mut().skip(6).for_each(|stream| stream.write_all(b"GET /metr").unwrap());
    let begin = Instant::now();
    prober.scrape();
    assert!(begin.elapsed() < Duration::from_secs(2), "{:?}", begin.elapsed());
    // They are sent away, so that those who wait for a place get one.
    slow.extend((0..8).map(|_| prober.connect()));
    prober.scrape();
    for mut stream in slow {
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
        assert!(!rest.starts_with(b"HTTP/1.1 200"));
    }
    assert!(begin.elapsed() < Duration::from_secs(15), "{:?}", begin.elapsed());
}

#[test]
fn metrics_stay_on_this_machine() {
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.7:9801"] {
        let failure = MetricsListener::bind(address.parse().unwrap()).unwrap_err();
        assert!(failure.message.contains("other machines"), "{}", failure.message);
        assert!(failure.help.unwrap().contains("ssh -L"));
    }
    let taken = MetricsListener::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let failure = MetricsListener::bind(taken.address()).unwrap_err();
    assert!(failure.message.contains("cannot serve metrics"), "{}", failure.message);
}

/// A sample with every figure.
fn whole_sample() -> SystemSample {
    fn one<T: Default>() -> BTreeMap<String, T> {
        [("a".to_owned(), T::default())].into()
    }
    SystemSample {
        sequence: 1,
        monotonic_ns: 1,
        unix_ns: 1,
        interval_ns: 1,
        cpu: Some(Default::default()),
        cores: [(0, Default::default())].into(),
        activity: Some(Default::default()),
        memory: Some(Default::default()),
        swap: Some(Default::default()),
        interfaces: one(),
        disks: one(),
        discards: one(),
        flushes: one(),
        power: one(),
        pressure: one(),
    }
}

/// Names of values that a worker or a page can write.
fn written() -> BTreeSet<String> {
    let progress = RunProgress::preparing(0.5);
    let snapshot = RunSnapshot { progress, ..RunSnapshot::default() };
    let progress = ClusterProgress {
        hosts: vec![("a".to_owned(), snapshot, None)],
        systems: vec![("a".to_owned(), Some(whole_sample()))],
        ..ClusterProgress::default()
    };
    let (name, target, load, phase) = ("", "", "", RunPhase::Preparing);
    let run = RunOutline { number: 1, name, target, load, phase };
    let points = read_open_metrics(&metrics_text(VERSION, Some(run), &progress)).unwrap();
    points.into_iter().map(|point| point.name).collect()
}

/// Collects the expressions below `value`.
fn expressions<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
    match value {
        Value::Array(all) => all.iter().for_each(|one| expressions(one, found)),
        Value::Object(all) => {
            for (key, one) in all {
                match one.as_str() {
                    Some(text) if ["expr", "query", "definition"].contains(&key.as_str()) => {
                        found.push(text);
                    }
                    _ => expressions(one, found),
                }
            }
        }
        _ => {}
    }
}

/// Metrics that the dashboard leaves out, by the beginning of their names: details for whoever looks for them.
const NOT_SHOWN: &[&str] = &[
    "ssdyno_core_",
    "ssdyno_disk_discard",
    "ssdyno_disk_flush",
    "ssdyno_disk_requests_in_flight",
    "ssdyno_forks_per_second",
    "ssdyno_host_operations_total",
    "ssdyno_memory_buffers_bytes",
    "ssdyno_memory_cached_bytes",
    "ssdyno_memory_free_bytes",
    "ssdyno_memory_shared_bytes",
    "ssdyno_memory_swap_",
    "ssdyno_network_receive_packets_per_second",
    "ssdyno_network_transmit_packets_per_second",
    "ssdyno_processes_",
];

#[test]
fn the_dashboard_shows_the_metrics_that_there_are() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/grafana/ssdyno.json");
    let dashboard: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    let mut found = Vec::new();
    expressions(&dashboard, &mut found);
    assert!(found.len() > 20, "{}", found.len());
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let shown: BTreeSet<String> = found
        .iter()
        .flat_map(|text| text.split(|c| !is_name(c)))
        .filter(|word| word.starts_with("ssdyno_"))
        .map(str::to_owned)
        .collect();
    let written = written();
    let unknown: Vec<_> = shown.difference(&written).collect();
    assert!(unknown.is_empty(), "the dashboard asks for what nobody writes: {unknown:?}");
    let is_left_out = |name: &&String| NOT_SHOWN.iter().any(|start| name.starts_with(start));
    let left: Vec<&String> = written.difference(&shown).collect();
    let forgotten: Vec<_> = left.iter().filter(|name| !is_left_out(name)).collect();
    assert!(forgotten.is_empty(), "the dashboard does not show {forgotten:?}");
    for start in NOT_SHOWN {
        assert!(left.iter().any(|name| name.starts_with(start)), "{start} is shown after all");
    }
}
