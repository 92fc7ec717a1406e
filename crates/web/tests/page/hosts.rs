//! Runs and plans on workers of this machine, from the page.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use serde_json::{Value, json};
use ssdyno_cluster::{WorkerConsent, WorkerListener, WorkerService, serve_listener};
use ssdyno_session::Failure;

use crate::common::{Running, VERSION};

/// A worker or a prober in a thread of its own.
struct Worker {
    address: String,
    end: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<(), Failure>>>,
}

impl Worker {
    fn new() -> Worker {
        Worker::of(WorkerService::new(WorkerConsent::default(), VERSION))
    }

    fn of(service: WorkerService) -> Worker {
        let listener = WorkerListener::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let (address, end) = (listener.address().to_string(), Arc::new(AtomicBool::new(false)));
        let ends = Arc::clone(&end);
        let serve =
            move || serve_listener(listener, &service, move || ends.load(Ordering::Relaxed));
        Worker { address, end, thread: Some(std::thread::spawn(serve)) }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.end.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap().unwrap();
        }
    }
}

/// A program that publishes a counter and a gauge; it ends with the tests.
fn exporter() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for (number, stream) in listener.incoming().flatten().enumerate() {
            let mut stream = stream;
            let _ = stream.read(&mut [0; 4096]);
            let text = format!(
                "# TYPE served counter\nserved_total {}\n# TYPE depth gauge\ndepth 4\n# EOF\n",
                number * 10
            );
            let length = text.len();
            let head =
                format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n");
            let _ = stream.write_all((head + &text).as_bytes());
        }
    });
    format!("http://{address}/metrics")
}

/// The events of a run that the page receives until its end, by name.
fn events_of(server: &Running, body: &Value) -> Vec<(String, Value)> {
    let events = server.events();
    let (status, started) = server.post("/api/runs", body);
    assert_eq!(status, 200, "{started}");
    let mut heard = Vec::new();
    for (name, data) in events {
        let is_last = data["run"]["phase"] == "ended" && data["run"]["id"] == started["id"];
        heard.push((name, data));
        if is_last {
            return heard;
        }
    }
    panic!("the events ended before the run");
}

/// Machines that carry no load and programs are watched from the page, on the clock of the run.
#[test]
fn probers_are_series_beside_those_of_the_hosts() {
    let place = tempfile::tempdir().unwrap();
    let server = Running::new(place.path());
    let (workers, source) = ([Worker::new(), Worker::new()], exporter());
    let prober = Worker::of(WorkerService::prober(VERSION));
    let hosts = [&workers[0].address, &workers[1].address];
    let spec = "target = \"null:\"\nfor = \"2s\"\n[real]\nprobe_interval = \"100ms\"\n";
    let asked = json!({ "toml": spec, "hosts": hosts, "probers": [prober.address, source], "name": "watched" });
    assert_eq!(server.post("/api/check", &asked).0, 200);
    let heard = events_of(&server, &asked);
    let (_, last) = heard.last().unwrap();
    assert!(last["run"]["error"].is_null(), "{last}");
    let samples_of = |event: &str, key: &str, name: &str| -> Vec<Value> {
        let mine = heard.iter().filter(|(kind, data)| kind == event && data[key] == name);
        mine.flat_map(|(_, data)| data["samples"].as_array().unwrap().clone()).collect()
    };
    for name in hosts.into_iter().chain([&prober.address]) {
        let samples = samples_of("system", "host", name);
        let on_clock = samples.iter().filter(|sample| sample["run_s"].is_f64()).count();
        // Twenty are due; other tests take time from this one.
        assert!(on_clock >= 5, "{name}: {on_clock} of {}", samples.len());
    }
    let readings = samples_of("metrics", "source", &source);
    let on_clock: Vec<&Value> = readings.iter().filter(|one| one["run_s"].is_f64()).collect();
    assert!(on_clock.len() >= 5, "{readings:?}");
    // It grows by ten in a tenth of a second.
    let rates = on_clock.iter().filter_map(|one| one["values"][0].as_f64());
    let rates: Vec<f64> = rates.collect();
    assert!(rates.iter().all(|rate| *rate > 0.0 && *rate < 1000.0), "{rates:?}");
    assert!(rates.len() >= 4 && on_clock.iter().all(|one| one["values"][1] == 4.0), "{on_clock:?}");
    let result: Value = serde_json::from_str(&server.get("/runs/watched/result.json").1).unwrap();
    assert_eq!(result["systems"].as_array().unwrap().len(), 3);
    assert_eq!(result["metrics"][0]["source"], source);
    // Without hosts, the probers have no controller; an empty list is refused, too.
    let none = "target = \"null:\"\n[real]\nno_probes = true\n";
    for (toml, hosts) in [(spec, &[][..]), (none, &hosts)] {
        let asked = json!({ "toml": toml, "hosts": hosts, "probers": [source] });
        let (status, wrong) = server.post("/api/runs", &asked);
        assert!(status == 422 && wrong["error"]["key"] == "probers", "{wrong}");
    }
    let asked = json!({ "toml": spec, "hosts": hosts, "probers": ["-oProxyCommand=x"] });
    let (status, wrong) = server.post("/api/check", &asked);
    assert!(status == 422 && wrong["error"]["key"] == "probers", "{wrong}");
}

/// A plan with two clients, a and b.
fn plan(workers: &[Worker], length: &str, steps: &str) -> String {
    let client = |(name, one): (&str, &Worker)| {
        format!("[[clients]]\nname = \"{name}\"\nhost = \"{}\"\n", one.address)
    };
    let clients: String = ["a", "b"].into_iter().zip(workers).map(client).collect();
    format!("[load]\ntarget = \"null:\"\nfor = \"{length}\"\n{clients}{steps}")
}

const STEPS: &str = "[[steps]]\nname = \"one\"\nclients = [\"b\"]\n[[steps]]\nname = \"both\"\n";

/// A plan is checked with its lines, started, watched step by step, and in the list with its report.
#[test]
fn a_plan_is_checked_started_watched_and_read() {
    let place = tempfile::tempdir().unwrap();
    let server = Running::new(place.path());
    let workers = [Worker::new(), Worker::new()];
    let wrong = plan(&workers, "1s", "[[steps]]\nclients = [\"c\"]\n");
    let (status, error) = server.post("/api/check", &json!({ "toml": wrong }));
    let error = &error["error"];
    assert_eq!(
        (status, &error["key"], &error["line"]),
        (422, &json!("steps[0].clients[0]"), &json!(11)),
        "{error}"
    );
    let asked = json!({ "toml": plan(&workers, "1s", STEPS), "name": "planned" });
    let (status, checked) = server.post("/api/check", &asked);
    assert_eq!(
        (status, &checked["name"]),
        (200, &json!("plan with 2 steps and 2 clients")),
        "{checked}"
    );
    let heard = events_of(&server, &asked);
    let run = &heard.last().unwrap().1["run"];
    assert!(run["error"].is_null() && run["partial"] == false, "{run}");
    assert_eq!(
        (&run["task"]["done"], &run["task"]["of"], &run["folder"]),
        (&json!(2), &json!(2), &json!("planned"))
    );
    // The first step is in the table while the second goes on; the series of a step has its clients alone.
    let shown = |step: &str, clients: &[&str]| {
        heard.iter().any(|(_, data)| {
            let hosts = data["run"]["hosts"].as_array();
            let names = hosts
                .map(|all| all.iter().map(|one| one["name"].as_str().unwrap()).collect::<Vec<_>>());
            data["run"]["task"]["step"] == step
                && names.as_deref() == Some(clients)
                && data["run"]["requests"].as_u64() > Some(0)
        })
    };
    assert!(shown("1 of 2: one", &["b"]) && shown("2 of 2: both", &["a", "b"]));
    let under_way = heard.iter().find(|(_, data)| {
        data["run"]["task"]["step"] == "2 of 2: both" && data["run"]["phase"] == "loaded"
    });
    assert_eq!(under_way.unwrap().1["run"]["steps"].as_array().unwrap().len(), 2);
    let series = heard.iter().filter(|(name, _)| name == "series");
    let series: Vec<&Value> = series.map(|(_, data)| &data["hosts"]).collect();
    assert!(series.contains(&&json!(["b"])) && series.contains(&&json!(["a", "b"])), "{series:?}");
    assert_eq!(server.get("/runs/planned/report.html").0, 200);
    let result: Value = serde_json::from_str(&server.get("/runs/planned/result.json").1).unwrap();
    assert_eq!(result["steps"].as_array().unwrap().len(), 2);
    let list: Value = serde_json::from_str(&server.get("/api/runs").1).unwrap();
    assert_eq!(
        (&list["runs"][0]["kind"], &list["runs"][0]["has_report"]),
        (&json!("plan"), &json!(true))
    );
}

/// A stop ends the plan, and keeps the step that was under way; what is wrong or has no token starts nothing.
#[test]
fn a_plan_is_stopped_and_refused() {
    let place = tempfile::tempdir().unwrap();
    let server = Running::new(place.path());
    let workers = [Worker::new(), Worker::new()];
    assert_eq!(
        server.post("/api/runs", &json!({ "toml": plan(&workers, "60s", STEPS), "name": "cut" })).0,
        200
    );
    assert!(server.events().any(|(_, data)| data["run"]["requests"].as_u64() > Some(0)));
    assert_eq!(server.post("/api/stop", &json!({})).0, 200);
    let ended = server.events().find(|(_, data)| data["run"]["phase"] == "ended").unwrap().1;
    assert!(ended["run"]["partial"] == true && ended["run"]["folder"] == "cut", "{ended}");
    let result: Value = serde_json::from_str(&server.get("/runs/cut/result.json").1).unwrap();
    assert_eq!(result["steps"].as_array().unwrap().len(), 1);
    // Hosts beside those of the plan, and requests without the token.
    let (status, wrong) = server
        .post("/api/runs", &json!({ "toml": plan(&workers, "1s", ""), "hosts": ["127.0.0.1:1"] }));
    assert!(status == 422 && wrong["error"]["key"] == "hosts", "{wrong}");
    let bare = format!(
        "POST /api/runs HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n",
        server.host
    );
    assert_eq!(server.ask(&bare, &json!({ "toml": plan(&workers, "1s", "") }).to_string()).0, 403);
}
