//! How requests go to the target and come back.

use std::io;
use std::sync::{Arc, Mutex};

use ssdyno_block::Request;
use ssdyno_record::Tape;
use ssdyno_workload::TargetFacts;

use super::*;
use crate::Method;
use crate::engine::{Engine, Outcome};
use crate::job::{Job, drive};

/// `None` where there is no io_uring.
fn measured(run: &BenchRun) -> Option<BenchMeasured> {
    match run.execute(&mut |_| KeepGoing::Continue) {
        Err(BenchError::Uring { source }) => {
            eprintln!("skipped: no io_uring here ({source})");
            None
        }
        other => Some(other.unwrap()),
    }
}

/// Figures of runs that went about it in different ways cannot be compared.
#[test]
fn the_method_is_the_same_in_every_run_and_that_of_its_name() {
    let directory = tempfile::tempdir().unwrap();
    let name = file(directory.path(), 4 << 20);
    for (named, said) in [
        (Method::Default, ("default", "sleep", 1, Some(2))),
        (Method::Efficient, ("efficient", "sleep", 8, None)),
        (Method::Latency, ("latency", "spin", 1, Some(1))),
    ] {
        for _ in 0..3 {
            let mut run = run(&name, "depth = 8\nrequests = 400\n");
            (run.options.engine, run.options.method) = (EngineKind::Uring, named);
            let Some(BenchMeasured { result, .. }) = measured(&run) else { return };
            let method = result.method.unwrap();
            let is = (method.name.as_str(), method.wait.as_str(), method.batch, method.submit);
            assert_eq!(is, said, "{:?}", result.notes);
            assert_eq!((method.engine.as_str(), method.jobs), ("io_uring", 1));
            assert_eq!(method.settings.to_string(), format!("method {}", said.0));
            assert!(method.tuning.is_empty());
            assert!(result.notes.iter().any(|note| note.contains(&format!("method {}", said.0))));
            // What it is, seen from outside: calls for a request.
            let calls = result.own_cost.unwrap().syscalls_per_request.unwrap();
            match named {
                Method::Default => assert!(calls <= 2.01, "{calls}"),
                Method::Efficient => assert!(calls <= 0.14, "{calls}"),
                Method::Latency => assert!(calls >= 1.0, "{calls}"),
            }
        }
    }
}

#[test]
fn options_take_the_place_of_parts_of_the_method() {
    let mut run = run("null:", "depth = 8\nrequests = 400\n");
    (run.options.method, run.options.batch) = (Method::Efficient, Some(4));
    let method = measure(&run).result.method.unwrap();
    assert_eq!((method.name.as_str(), method.engine.as_str(), method.batch), ("custom", "null", 4));
    assert_eq!(method.settings.to_string(), "batch 4, submit all, wait sleep");
    // Parts that make up another method are that method.
    (run.options.batch, run.options.submit) = (Some(1), Some(2));
    assert_eq!(measure(&run).result.method.unwrap().name, "default");
}

/// Tests both directions of the load; the run then uses the method that was found.
#[test]
fn a_search_tries_the_load_itself_and_pins_what_it_finds() {
    let directory = tempfile::tempdir().unwrap();
    let name = file(directory.path(), 4 << 20);
    let text = "depth = 2\nrequests = 500\nread_percent = 50\n";
    let mut run = run(&name, text);
    (run.options.engine, run.options.tune, run.access) = (EngineKind::Uring, true, permit(&name));
    let Some(BenchMeasured { result, failure, .. }) = measured(&run) else { return };
    assert!(failure.is_none() && result.requests == 500, "{failure:?}");
    let method = result.method.unwrap();
    let tried: Vec<String> = method.tuning.iter().map(|tried| tried.settings.to_string()).collect();
    let was_tried = |settings: &str| tried.iter().any(|tried| tried == settings);
    assert!(was_tried("batch 1, submit all, wait sleep"), "{tried:?}");
    assert!(was_tried("batch 1, submit all, wait spin"), "{tried:?}");
    assert!(method.tuning.iter().all(|tried| tried.iops > 0.0 && tried.rounds >= 5));
    let note = result.notes.iter().find(|note| note.starts_with("tuned: `")).unwrap();
    let found = note.split('`').nth(1).unwrap();
    assert!(was_tried(found), "{note}");
    let batch = found.contains(&format!("batch {},", method.batch));
    assert!(batch && found.contains(&format!("wait {}", method.wait)), "{found} {method:?}");
    // Writes reached the file; a run that only reads leaves it as it is.
    assert!(std::fs::read(&name).unwrap().iter().any(|byte| *byte != 0xA5));
    std::fs::write(&name, vec![0xA5; 4 << 20]).unwrap();
    let mut reads = super::run(&name, "depth = 2\nrequests = 500\n");
    (reads.options.engine, reads.options.tune) = (EngineKind::Uring, true);
    assert_eq!(measured(&reads).unwrap().result.requests, 500);
    assert!(std::fs::read(&name).unwrap().iter().all(|byte| *byte == 0xA5));
}

#[test]
fn nothing_is_searched_for_where_there_is_one_method() {
    let directory = tempfile::tempdir().unwrap();
    let name = file(directory.path(), 1 << 20);
    let refused = |mut run: BenchRun| {
        run.options.tune = true;
        match refusal(&run) {
            BenchError::Option { option: "tune", why } => why,
            other => panic!("{other}"),
        }
    };
    assert!(refused(run("null:", "depth = 4\n")).contains("null:"));
    let mut threads = run(&name, "depth = 4\n");
    threads.options.engine = EngineKind::Threads;
    assert!(refused(threads).contains("threads"));
    let open = "arrivals = { kind = \"fixed\", rate = 1000.0 }\n";
    let mut open = run(&name, open);
    open.options.engine = EngineKind::Uring;
    if crate::engine::uring::Uring::available().is_ok() {
        assert!(refused(open).contains("open loop"));
    }
}

/// Takes its time to take requests, and completes all of them when they are waited for.
#[derive(Default)]
struct SlowToTake {
    pushed: u32,
    taken: Vec<(u32, Outcome)>,
    done: Vec<(u32, Outcome)>,
}

impl SlowToTake {
    const TAKES: Duration = Duration::from_millis(3);
}

impl Engine for SlowToTake {
    fn push(&mut self, slot: u32, request: &Request) {
        self.pushed += 1;
        self.taken.push((slot, request.length_bytes as Outcome));
    }

    fn turn(&mut self, want: u32, _wait: Option<Duration>) -> io::Result<()> {
        if std::mem::take(&mut self.pushed) > 0 {
            std::thread::sleep(SlowToTake::TAKES);
        }
        if want > 0 {
            self.done.append(&mut self.taken);
        }
        Ok(())
    }

    fn ready(&mut self, want: u32) -> io::Result<bool> {
        Ok(self.done.len() >= want as usize)
    }

    fn reap(&mut self, mut each: impl FnMut(u32, Outcome)) {
        self.done.drain(..).for_each(|(slot, outcome)| each(slot, outcome));
    }
}

/// Of requests that are handed over in pairs the second pair begins when the first is handed over: what that took
/// is in the latencies of the first alone.
#[test]
fn what_is_handed_over_later_begins_later() {
    let config = WorkloadConfig::from_toml("depth = 4\nrequests = 4\n").unwrap();
    let facts = TargetFacts { capacity_bytes: 1 << 30, sector_bytes: 512 };
    let workload = config.build(&facts, 1).unwrap();
    let tape = Arc::new(Mutex::new(Some(Tape::new(Keep::All, None, false))));
    let mut job = Job::alone(workload, 4, Method::Default.strategy(), Arc::clone(&tape));
    let ended = drive(&mut job, &mut SlowToTake::default());
    let recording = tape.lock().unwrap().take().unwrap().finish(ended.end_ns);
    let (mut begun, mut latencies) = (Vec::new(), Vec::new());
    let rows = recording.rows().unwrap();
    rows.for_each(|_, row| {
        begun.push(row.submit_ns);
        latencies.push(row.latency_ns);
        Ok(())
    })
    .unwrap();
    let takes = SlowToTake::TAKES.as_nanos() as u64;
    assert!(begun[0] == begun[1] && begun[2] == begun[3], "{begun:?}");
    assert!(begun[2] >= begun[0] + takes, "{begun:?}");
    assert!(latencies[0] >= latencies[2] + takes && latencies[2] >= takes, "{latencies:?}");
}
