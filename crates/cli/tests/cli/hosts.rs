//! Several workers as processes of their own, and the run on them.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::common::Place;

/// A worker that is killed with the test.
struct Worker {
    process: Child,
    address: String,
}

impl Worker {
    fn start(place: &Place) -> Worker {
        let mut command = place.command(&["worker", "--listen", "127.0.0.1:0"]);
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening at ").unwrap().to_owned();
        Worker { process, address }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn two_workers_give_one_result() {
    let place = Place::new();
    let workers = [Worker::start(&place), Worker::start(&place)];
    let hosts = workers.each_ref().map(|worker| worker.address.as_str()).join(",");
    let args =
        ["run", "sim:delay-100us", "--workload", "randread", "--for", "100ms", "--hosts", &hosts];
    let result = place.json(&[&args[..], &["--name", "both"]].concat());
    assert_eq!(result["hosts"].as_array().unwrap().len(), 2);
    let of = |at: usize| result["hosts"][at]["requests"].as_u64().unwrap();
    assert!(of(0) > 0 && result["requests"] == of(0) + of(1));
    assert_eq!(result["window"]["outside"].as_array().unwrap().len(), 2);
    assert!(result["replay"].as_str().unwrap().contains("--hosts"), "{}", result["replay"]);
    let stored = std::fs::read_to_string(place.path().join("results/both/result.json")).unwrap();
    assert!(stored.contains("clock_uncertainty_ns"));
    let page = std::fs::read_to_string(place.path().join("results/both/report.html")).unwrap();
    assert!(page.contains(&workers[1].address));
    let text = place.ok(&[&args[..], &["--keep", "none"]].concat());
    assert!(text.contains("Host ") && text.contains(&workers[0].address), "{text}");
}

/// SIGKILL, and a new worker at its address: the run is not taken up there, and the host has its name in the result.
#[test]
fn a_worker_that_is_killed_and_started_anew_is_not_counted_twice() {
    let place = Place::new();
    let mut workers = [Worker::start(&place), Worker::start(&place)];
    let hosts = workers.each_ref().map(|worker| worker.address.as_str()).join(",");
    let args = ["run", "null:", "--for", "4s", "--hosts", &hosts, "--json", "--keep", "none"];
    let run = place.command(&args).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(1500));
    workers[1].process.kill().unwrap();
    workers[1].process.wait().unwrap();
    let again = ["worker", "--listen", &workers[1].address];
    let began = Instant::now();
    let again = loop {
        let started = place.command(&again).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let mut started = started.unwrap();
        let mut line = String::new();
        BufReader::new(started.stdout.take().unwrap()).read_line(&mut line).unwrap();
        if !line.is_empty() || began.elapsed() > Duration::from_secs(20) {
            break started;
        }
        started.wait().unwrap();
    };
    workers[1].process = again;
    let output = run.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&result["partial"], &result["hosts"][0]["partial"]), (&true.into(), &false.into()));
    assert!(result["hosts"][1]["lost"].as_str().unwrap().contains(&workers[1].address));
    assert_eq!(result["requests"], result["hosts"][0]["requests"]);
}

#[test]
fn bad_addresses_and_absent_workers_are_named() {
    let place = Place::new();
    let refused = |code, hosts| place.fails(code, &["run", "sim:delay-100us", "--hosts", hosts]);
    assert!(refused(2, "nowhere").contains("HOST:PORT"));
    let text = refused(1, "127.0.0.1:1");
    assert!(text.contains("127.0.0.1:1") && text.contains("start a worker"), "{text}");
    assert!(!place.path().join("results").exists(), "nothing is left of a run that never was");
    let text = place.fails(2, &["worker", "--listen", "0.0.0.0:0"]);
    assert!(text.contains("other machines"), "{text}");
}
