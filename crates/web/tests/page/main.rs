//! The page's addresses over real connections: a run from its start to its files, and refused requests.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

mod common;
mod hosts;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use ssdyno_cluster::WorkerConsent;
use ssdyno_prober::{MetricPoint, read_open_metrics};
#[cfg(target_os = "linux")]
use ssdyno_session::WriteSpec;

use common::Running;

/// Counts of all points, and whether the run has ended: requests by host.
fn follow(events: impl Iterator<Item = (String, Value)>) -> (u64, Value) {
    let mut requests = 0;
    for (name, data) in events {
        match name.as_str() {
            "series" => requests = count(&data),
            "points" => requests += count(&data),
            _ if data["run"]["phase"] == "ended" => return (requests, data["run"].clone()),
            _ => {}
        }
    }
    panic!("the events ended before the run");
}

fn count(data: &Value) -> u64 {
    let points = data["points"].as_array().unwrap();
    let hosts = points.iter().flat_map(|point| point["hosts"].as_array().unwrap());
    hosts.map(|host| host[1].as_u64().unwrap_or(0)).sum()
}

#[test]
fn a_run_is_started_watched_and_read() {
    let place = tempfile::tempdir().unwrap();
    let results = place.path().join("results");
    let server = Running::new(&results);
    let spec = "target = \"sim:delay-100us\"\nworkload = \"randread\"\nfor = \"3s\"\n";
    let asked = json!({ "toml": spec, "hosts": [], "name": "first" });
    let (status, checked) = server.post("/api/check", &asked);
    assert_eq!((status, &checked["target"]), (200, &json!("sim:delay-100us")), "{checked}");
    // Two viewers: neither takes anything from the other.
    let viewers = [server.events(), server.events()];
    assert_eq!(server.post("/api/runs", &asked), (200, json!({ "id": 1 })));
    let seen = viewers.map(|events| std::thread::spawn(move || follow(events)));
    let seen = seen.map(|thread| thread.join().unwrap());
    let (status, list) = server.get("/api/runs");
    let list: Value = serde_json::from_str(&list).unwrap();
    let entry = &list["runs"][0];
    assert_eq!((status, &entry["folder"], &entry["kind"]), (200, &json!("first"), &json!("run")));
    for (requests, run) in seen {
        assert_eq!(run["folder"], "first", "{run}");
        assert!(run["error"].is_null(), "{run}");
        assert!(
            requests > 0 && requests <= entry["requests"].as_u64().unwrap(),
            "{requests} {entry}"
        );
        assert_eq!(run["requests"], entry["requests"]);
        // The run and its only host are the same record, which reaches to the end.
        assert_eq!(run["hosts"][0]["requests"], run["requests"], "{run}");
        assert_eq!(run["hosts"][0]["latency_ns"], run["latency_ns"], "{run}");
        assert!(run["now_s"].as_f64().unwrap() > 2.999, "{run}");
    }
    let (status, report) = server.get("/runs/first/report.html");
    assert!(status == 200 && report.contains("sim:delay-100us"));
    assert_eq!(server.post("/api/runs", &json!({ "toml": spec, "name": "second" })).0, 200);
    follow(server.events());
    let (status, compared) = server.get("/api/compare?first=first&second=second");
    let compared: Value = serde_json::from_str(&compared).unwrap();
    assert_eq!((status, &compared["verdict"]), (200, &json!("identical")), "{compared}");
    assert!(compared["figures"][0]["first_text"].is_string());
    assert_eq!(server.get("/compare.html?first=first&second=second").0, 200);
}

/// The flash of a simulated SSD is told of while it is simulated, and up to the end of the run: a row for each of the
/// channels, and energy as in the result. A device without flash has none.
#[test]
fn the_flash_of_a_simulated_ssd_is_shown() {
    let place = tempfile::tempdir().unwrap();
    let results = place.path().join("results");
    let server = Running::new(&results);
    // Long enough that viewers hear of the run before its end.
    let start = |target: &str, name: &str| {
        let load = "workload = \"randwrite\"\nfor = \"200s\"\nkeep = \"summary\"\n";
        let spec = format!("target = \"{target}\"\n{load}");
        let events = server.events();
        assert_eq!(server.post("/api/runs", &json!({ "toml": spec, "name": name })).0, 200);
        let mut told = Vec::new();
        for (event, data) in events {
            if event == "flash" {
                told.push(data);
            } else if data["run"]["phase"] == "ended" && data["run"]["name"] == name {
                return told;
            }
        }
        panic!("the events ended before the run");
    };
    assert_eq!(start("sim:delay-100us", "delay"), [] as [Value; 0]);
    let told = start("sim:config-a", "ssd");
    let text = std::fs::read_to_string(results.join("ssd/result.json")).unwrap();
    let result: Value = serde_json::from_str(&text).unwrap();
    let last = told.last().unwrap();
    let device =
        toml::from_str::<toml::Table>(result["configuration"]["device_toml"].as_str().unwrap());
    let device = device.unwrap();
    let flash = |key: &str| device["flash"][key].as_integer().unwrap() as usize;
    let dies = flash("chips_per_channel") * flash("dies_per_chip");
    let rows = last["dies"].as_array().unwrap();
    assert_eq!((last["run"].as_u64(), rows.len()), (Some(2), flash("channels")));
    for view in &told {
        let shares = view["dies"].as_array().unwrap().iter().flat_map(|row| {
            let row = row.as_array().unwrap();
            assert_eq!(row.len(), dies);
            row
        });
        let mut shares =
            shares.chain(view["channels"].as_array().unwrap()).map(|v| v.as_f64().unwrap());
        assert!(shares.all(|share| (0.0..=1.0).contains(&share)), "{view}");
    }
    let until = result["simulated_seconds"].as_f64().unwrap();
    assert!(
        (last["now_s"].as_f64().unwrap() / until - 1.0).abs() < 0.02,
        "{} {until}",
        last["now_s"]
    );
    // A die that programs draws 14 mA of 3.3 V above idleness, for as long as the account of the result says.
    let rows = result["energy_by_part"].as_array().unwrap().iter();
    let programs = rows.filter(|row| {
        row["part"] == "die" && row["activity"].as_str().unwrap().starts_with("program ")
    });
    let seconds: f64 = programs.map(|row| row["seconds"].as_f64().unwrap()).sum();
    let program = last["energy_j"]["program"].as_f64().unwrap();
    assert!((program / (0.014 * 3.3 * seconds) - 1.0).abs() < 0.02, "{program} J, {seconds} s");
}

#[test]
fn one_run_at_a_time_and_a_stop_keeps_what_was_measured() {
    let place = tempfile::tempdir().unwrap();
    let server = Running::new(place.path());
    let long = json!({ "toml": "target = \"null:\"\nfor = \"60s\"\nkeep = \"summary\"\n" });
    assert_eq!(server.post("/api/runs", &long).0, 200);
    let (status, busy) = server.post("/api/runs", &long);
    assert_eq!(status, 409, "{busy}");
    assert!(busy["error"]["help"].as_str().unwrap().contains("stop it"));
    let loaded = |(_, data): &(String, Value)| data["run"]["phase"] == "loaded";
    assert!(server.events().any(|event| loaded(&event)));
    let began = Instant::now();
    assert_eq!(server.post("/api/stop", &json!({})).0, 200);
    let (_, run) = follow(server.events());
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
    assert!(run["partial"] == true && run["folder"].is_string(), "{run}");
    assert!(run["requests"].as_u64().unwrap() > 0);
}

/// A server that ends in the middle of a run writes its files first.
#[test]
fn the_end_of_the_server_keeps_what_was_measured() {
    let place = tempfile::tempdir().unwrap();
    let server = Running::new(place.path());
    let long =
        json!({ "toml": "target = \"null:\"\nfor = \"60s\"\nkeep = \"summary\"\n", "name": "cut" });
    assert_eq!(server.post("/api/runs", &long).0, 200);
    assert!(server.events().any(|(_, data)| data["run"]["phase"] == "loaded"));
    drop(server);
    let text = std::fs::read_to_string(place.path().join("cut/result.json")).unwrap();
    let result: Value = serde_json::from_str(&text).unwrap();
    assert!(result["partial"] == true && result["requests"].as_u64().unwrap() > 0);
}

#[test]
fn wrong_requests_are_answered_with_what_to_do() {
    let place = tempfile::tempdir().unwrap();
    let server = Running::new(place.path());
    let (status, wrong) =
        server.post("/api/check", &json!({ "toml": "target = \"null:\"\nworkloda = \"x\"" }));
    assert_eq!(status, 422);
    let error = &wrong["error"];
    assert_eq!(
        (&error["line"], &error["column"], &error["key"]),
        (&json!(2), &json!(1), &json!("workloda"))
    );
    let (status, wrong) = server.post("/api/check", &json!({ "toml": "target = \"sim:nvm-tlc\"" }));
    assert!(
        status == 422 && wrong["error"]["help"].as_str().unwrap().contains("nvme-tlc"),
        "{wrong}"
    );
    let (status, wrong) =
        server.post("/api/runs", &json!({ "toml": "", "hosts": ["-oProxyCommand=x"] }));
    assert!(status == 422 && wrong["error"]["key"] == "hosts", "{wrong}");
    // Consent is given where the server is started.
    let write = "target = \"/dev/null-disk\"\nwrite = { allowed = true, destroy = [\"X\"] }";
    let (status, wrong) = server.post("/api/runs", &json!({ "toml": write }));
    assert!(status == 422 && wrong["error"]["key"] == "write.allowed", "{wrong}");
    let head = server.head("POST /api/runs") + "Content-Type: application/json\r\n";
    for garbage in ["", "{", "[]", "{\"toml\": 7}", "\u{0}\u{1}", &"[".repeat(100_000)] {
        let (status, _) = server.ask(&head, garbage);
        assert!((400..500).contains(&status), "{garbage}: {status}");
    }
    // A form of another page cannot say that it sends JSON.
    let (status, _) =
        server.ask(&(server.head("POST /api/stop") + "Origin: http://evil.example\r\n"), "{}");
    assert_eq!(status, 403);
    let form = server.head("POST /api/runs") + "Content-Type: text/plain\r\n";
    assert_eq!(server.ask(&form, "{\"toml\": \"\"}").0, 415);
    for path in [
        "/runs/../Cargo.toml",
        "/runs/%2e%2e/x",
        "/runs/..%2f..%2fetc/passwd",
        "/runs/x/result.json",
        "/nothing",
    ] {
        assert_eq!(server.get(path).0, 404, "{path}");
    }
    let (status, body) =
        server.ask(&format!("GET /api/runs HTTP/1.1\r\nHost: {}\r\n", server.host), "");
    assert!(status == 403 && body.contains("ssdyno ui"), "{body}");
    let (status, _) = server.ask("GET / HTTP/1.1\r\nHost: evil.example\r\n", "");
    assert_eq!(status, 421);
    assert!(std::fs::read_dir(place.path()).unwrap().next().is_none(), "nothing half started");
}

/// Each task is checked, started, watched and read as a run is; all of them are in the list.
#[cfg(target_os = "linux")]
#[test]
fn tasks_are_started_watched_and_read() {
    let place = tempfile::tempdir().unwrap();
    let results = place.path().join("results");
    let target = place.path().join("target").display().to_string();
    std::fs::write(&target, vec![0x5A; 1 << 20]).unwrap();
    let write = WriteSpec { allowed: true, overwrite: true, ..WriteSpec::default() };
    let targets = [(target.clone(), write)].into();
    let server = Running::allowing(&results, WorkerConsent { targets });
    let pts = "task = \"pts\"\ntarget = \"sim:config-a\"\nrounds_max = 5\nround = \"1ms\"\n\
               set = [\"flash.blocks_per_plane=16\", \"ftl.over_provisioning=0.5\"]\n";
    let profile = "task = \"profile\"\ntarget = \"sim:delay-100us\"\nmethod = \"serra\"\n\
                   ops = [\"read\"]\nsizes = [\"8KiB..16KiB/8KiB\"]\nspan = \"16MiB\"\n";
    let verify =
        format!("task = \"verify\"\ntarget = \"{target}\"\nthreads = 2\n[write]\nallowed = true\n");
    let probe = "task = \"probe\"\ninterval = \"50ms\"\nsamples = 3\n";
    let sweep = "task = \"sweep\"\nvary = [\"workload.depth=1,2\"]\n[run]\ntarget = \"sim:delay-100us\"\n\
                 workload = \"randread\"\nrequests = 100\n";
    let compare = "task = \"compare\"\nsides = [\"sim:delay-100us\", \"sim:delay-10us\"]\n[run]\n\
                   workload = \"randread\"\nrequests = 100\n";
    let tasks = [
        ("pts", pts),
        ("profile", profile),
        ("compare", compare),
        ("sweep", sweep),
        ("verify", &verify),
        ("probe", probe),
    ];
    for (kind, text) in tasks {
        let asked = json!({ "toml": text, "name": kind });
        let (status, checked) = server.post("/api/check", &asked);
        assert_eq!((status, &checked["load"]), (200, &json!(kind)), "{checked}");
        let writes: &[&str] = if kind == "verify" { &[&target] } else { &[] };
        assert_eq!(checked["writes_to"], json!(writes));
        assert_eq!(server.post("/api/runs", &asked).0, 200);
        let (_, run) = follow(server.events());
        assert!(run["error"].is_null() && run["folder"] == kind, "{run}");
        let task = &run["task"];
        assert_eq!((&task["kind"], &run["share_done"]), (&json!(kind), &json!(1.0)), "{run}");
        // So small a verification may be over before it tells how far it is.
        let is_told = task["done"].as_u64().unwrap() > 0 && task["step"] != "";
        assert!(is_told || kind == "verify", "{run}");
        assert_eq!(server.get(&format!("/runs/{kind}/report.html")).0, 200);
        let (_, result) = server.get(&format!("/runs/{kind}/result.json"));
        let result: Value = serde_json::from_str(&result).unwrap();
        match kind {
            "verify" => {
                assert_eq!((&result["writes"], &result["faults"]), (&json!(256), &json!(0)))
            }
            "compare" => assert_eq!(result["comparisons"][0]["second"], "sim:delay-10us"),
            "sweep" => assert_eq!(result["rows"].as_array().unwrap().len(), 2),
            "probe" => assert_eq!(result["samples"].as_array().unwrap().len(), 3),
            _ => assert!(result["target"].as_str().unwrap().starts_with("sim:"), "{result}"),
        }
    }
    // The verification wrote what it was allowed to.
    assert_ne!(std::fs::read(&target).unwrap(), vec![0x5A; 1 << 20]);
    let list: Value = serde_json::from_str(&server.get("/api/runs").1).unwrap();
    assert_eq!(list["runs"].as_array().unwrap().len(), 6, "{list}");
    for entry in list["runs"].as_array().unwrap() {
        let folder = entry["folder"].as_str().unwrap();
        let kind = if folder == "compare" { "comparison" } else { folder };
        assert_eq!((&entry["kind"], &entry["has_report"]), (&json!(kind), &json!(true)));
    }
}

#[cfg(target_os = "linux")]
#[test]
fn the_page_has_one_list_of_kinds() {
    let place = tempfile::tempdir().unwrap();
    let server = Running::new(place.path());
    let schema: Value = serde_json::from_str(&server.get("/api/schema/task").1).unwrap();
    // It is that of the schema.
    let known = schema["oneOf"].as_array().unwrap().iter();
    let known: Vec<&str> =
        known.map(|one| one["properties"]["task"]["const"].as_str().unwrap()).collect();
    let (_, list) = server.get("/assets/kinds.js");
    let listed = list.split("kind: '").skip(1).map(|rest| rest.split('\'').next().unwrap());
    assert_eq!(listed.collect::<Vec<_>>(), known);
    for file in ["index.html", "app.js", "editor.js", "live.js", "runs.js"] {
        let text = std::fs::read_to_string(format!("assets/{file}")).unwrap();
        let other = known.iter().find(|kind| {
            !["run", "plan", "compare"].contains(*kind)
                && (text.contains(&format!("'{kind}'")) || text.contains(&format!("\"{kind}\"")))
        });
        assert_eq!(other, None, "{file} names a kind of its own");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_task_is_one_of_the_runs_and_a_stop_keeps_its_samples() {
    let place = tempfile::tempdir().unwrap();
    let server = Running::new(place.path());
    let long = json!({ "toml": "task = \"probe\"\ninterval = \"50ms\"\nsamples = 100000\n" });
    assert_eq!(server.post("/api/runs", &long).0, 200);
    for other in [&long, &json!({ "toml": "target = \"null:\"\nfor = \"60s\"\n" })] {
        assert_eq!(server.post("/api/runs", other).0, 409);
    }
    assert!(server.events().any(|(_, data)| data["run"]["task"]["done"].as_u64() >= Some(2)));
    assert_eq!(server.post("/api/stop", &json!({})).0, 200);
    let (_, run) = follow(server.events());
    assert!(run["partial"] == true && run["folder"].is_string(), "{run}");
    let file = format!("/runs/{}/result.json", run["folder"].as_str().unwrap());
    let result: Value = serde_json::from_str(&server.get(&file).1).unwrap();
    assert!(result["partial"] == true && result["samples"].as_array().unwrap().len() >= 2);
}

/// The page's requests add nothing to the permissions from the start of the server.
#[cfg(target_os = "linux")]
#[test]
fn tasks_write_nowhere_without_permission() {
    let place = tempfile::tempdir().unwrap();
    let results = place.path().join("results");
    // A verification takes a file of any name; other tasks take these for a simulated device.
    let [target, device] = ["target", "device.toml"].map(|name| place.path().join(name));
    for file in [&target, &device] {
        std::fs::write(file, vec![0x5A; 1 << 20]).unwrap();
    }
    let server = Running::new(&results);
    let write = "[write]\nallowed = true\noverwrite = true\n";
    for task in ["pts", "profile", "verify"] {
        let files = if task == "verify" { &[&target, &device][..] } else { &[&target] };
        for file in files {
            let text = format!("task = \"{task}\"\ntarget = \"{}\"\n{write}", file.display());
            for address in ["/api/check", "/api/runs"] {
                let (status, wrong) = server.post(address, &json!({ "toml": text }));
                assert!(
                    status == 422 && wrong["error"]["key"] == "write.allowed",
                    "{task} {wrong}"
                );
            }
        }
    }
    let new = place.path().join("new");
    let made =
        format!("task = \"verify\"\ntarget = \"{}\"\n[write]\nsize = \"1MiB\"\n", new.display());
    let journal =
        format!("task = \"verify\"\ntarget = \"null:\"\njournal = \"{}\"\n", new.display());
    for (text, key) in [
        (made.as_str(), "write.allowed"),
        (&journal, "journal"),
        ("task = \"prob\"", "task"),
        ("task = \"probe\"\nsampels = 3", "sampels"),
        ("task = \"probe\"\ndevice = [\"/nowhere\"]", "device"),
    ] {
        let (status, wrong) = server.post("/api/runs", &json!({ "toml": text }));
        assert!(status == 422 && wrong["error"]["key"] == key, "{text} {wrong}");
        assert!(wrong["error"]["help"].is_string(), "{wrong}");
    }
    let probe = json!({ "toml": "task = \"probe\"", "hosts": ["10.0.0.1:1"] });
    assert_eq!(server.post("/api/check", &probe).1["error"]["key"], "hosts");
    // The token's rules hold for tasks.
    let body = json!({ "toml": "task = \"probe\"" }).to_string();
    let json = "Content-Type: application/json\r\n";
    let evil = server.head("POST /api/runs") + json + "Origin: http://evil.example\r\n";
    assert_eq!(server.ask(&evil, &body).0, 403);
    for path in ["POST /api/runs", "POST /api/check", "GET /api/schema/task"] {
        let bare = format!("{path} HTTP/1.1\r\nHost: {}\r\n{json}", server.host);
        assert_eq!(server.ask(&bare, &body).0, 403, "{path}");
    }
    for file in [target, device] {
        assert_eq!(std::fs::read(file).unwrap(), vec![0x5A; 1 << 20]);
    }
    assert!(!new.exists() && !results.exists());
}

/// What Prometheus sees of a run: while it goes on, and once it is over.
#[test]
fn metrics_are_those_of_the_run() {
    let place = tempfile::tempdir().unwrap();
    let server = Running::new(place.path());
    let scrape = || {
        let bearer = format!("Authorization: Bearer {}", server.token);
        let (status, text) = server
            .ask(&format!("GET /metrics HTTP/1.1\r\nHost: {}\r\n{bearer}\r\n", server.host), "");
        assert_eq!(status, 200, "{text}");
        read_open_metrics(&text).unwrap()
    };
    let value = |points: &[MetricPoint], name: &str| {
        points.iter().find(|point| point.name == name).map(|point| point.value)
    };
    assert_eq!(value(&scrape(), "ssdyno_build_info"), Some(1.0));
    assert_eq!(value(&scrape(), "ssdyno_run_requests_total"), None);
    let spec = "target = \"sim:delay-100us\"\nworkload = \"mixed\"\nfor = \"300ms\"\n";
    assert_eq!(server.post("/api/runs", &json!({ "toml": spec, "name": "a" })).0, 200);
    follow(server.events());
    std::thread::sleep(Duration::from_millis(150));
    let (points, text) = (scrape(), server.get("/runs/a/result.json").1);
    let result: Value = serde_json::from_str(&text).unwrap();
    let requests = result["requests"].as_f64();
    for name in ["run_requests_total", "host_requests_total", "run_latency_seconds_count"] {
        assert_eq!(value(&points, &format!("ssdyno_{name}")), requests, "{name}");
    }
    let of = |name: &str, op: &str| {
        let label = ("op".to_owned(), op.to_owned());
        let mut all = points.iter();
        all.find(|p| p.name == name && p.labels.contains(&label)).map(|p| p.value)
    };
    let written = result["requests_by_op"]["write"].as_f64();
    assert_eq!(of("ssdyno_run_operations_total", "write"), written);
    assert_eq!(of("ssdyno_run_bytes_total", "write"), written.map(|requests| requests * 4096.0));
    let mean = result["latency_ns"]["mean"].as_f64().unwrap() * requests.unwrap() / 1e9;
    let sum = value(&points, "ssdyno_run_latency_seconds_sum").unwrap();
    assert!((sum / mean - 1.0).abs() < 1e-6, "{sum} {mean}");
    let phase: Vec<_> =
        points.iter().filter(|p| p.name == "ssdyno_run_phase" && p.value == 1.0).collect();
    assert!(phase.len() == 1 && phase[0].labels[0].1 == "ended", "{phase:?}");
    // Counters of the next run begin again at 0; its machine is sampled while it goes on.
    let long =
        json!({ "toml": "target = \"sim:delay-100us\"\nfor = \"100000s\"\nkeep = \"none\"\n" });
    assert_eq!(server.post("/api/runs", &long).0, 200);
    let begin = Instant::now();
    while value(&scrape(), "ssdyno_cpu_user_fraction").is_none() && cfg!(target_os = "linux") {
        assert!(begin.elapsed() < Duration::from_secs(20));
        std::thread::sleep(Duration::from_millis(120));
    }
    let run = scrape().into_iter().find(|point| point.name == "ssdyno_run_info").unwrap();
    assert!(run.labels.contains(&("number".to_owned(), "2".to_owned())), "{run:?}");
    assert_eq!(server.post("/api/stop", &json!({})).0, 200);
    follow(server.events());
}

#[test]
fn metrics_are_for_those_who_have_the_token() {
    let place = tempfile::tempdir().unwrap();
    let server = Running::new(place.path());
    let status = |headers: &str| {
        let head = format!("GET /metrics HTTP/1.1\r\nHost: {}\r\n{headers}", server.host);
        server.ask(&head, "").0
    };
    assert_eq!(status(""), 403);
    assert_eq!(status(&format!("Authorization: Bearer {}\r\n", server.token)), 200);
    let port = server.host.rsplit(':').next().unwrap();
    assert_eq!(status(&format!("Cookie: ssdyno_{port}={}\r\n", server.token)), 200);
    assert_eq!(status(&format!("Authorization: Bearer {}x\r\n", server.token)), 403);
    assert_eq!(status(&format!("Authorization: Basic {}\r\n", server.token)), 403);
    let elsewhere = format!(
        "GET /metrics HTTP/1.1\r\nHost: evil.example\r\nAuthorization: Bearer {}\r\n",
        server.token
    );
    assert_eq!(server.ask(&elsewhere, "").0, 421);
}

/// Every file of the page is there, and refers to nothing outside.
#[test]
fn the_page_is_whole_and_needs_no_network() {
    let place = tempfile::tempdir().unwrap();
    let server = Running::new(place.path());
    let cookie = {
        let mut stream = TcpStream::connect(&server.host).unwrap();
        let head = format!(
            "GET /?token={} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n",
            server.token, server.host
        );
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let line =
            answer.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap().to_owned();
        assert!(line.contains("HttpOnly") && line.contains("SameSite=Strict"), "{line}");
        line.split(';').next().unwrap().to_owned()
    };
    let head = format!("GET / HTTP/1.1\r\nHost: {}\r\nCookie: {cookie}\r\n", server.host);
    let (status, page) = server.ask(&head, "");
    assert_eq!(status, 200);
    assert!(page.contains(&server.token) && !page.contains("{{"), "{page}");
    let mut files: Vec<String> = Vec::new();
    let mut texts = vec![page];
    while let Some(text) = texts.pop() {
        assert!(!text.contains("https://"), "an address outside");
        let quoted = text.split(['"', '\'']);
        for name in
            quoted.filter_map(|word| word.strip_prefix("/assets/").or(word.strip_prefix("./")))
        {
            let is_file = name.ends_with(".js") || name.ends_with(".css");
            if is_file && !files.iter().any(|known| known == name) {
                files.push(name.to_owned());
                let (status, text) = server.get(&format!("/assets/{name}"));
                assert_eq!(status, 200, "{name}");
                texts.push(text);
            }
        }
    }
    assert!(files.len() >= 3, "{files:?}");
}
