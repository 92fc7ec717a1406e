//! Jobs that look for completions all the time.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use ssdyno_block::Request;
use ssdyno_figures::Keep;
use ssdyno_record::Tape;
use ssdyno_workload::{TargetFacts, WorkloadConfig};

use crate::engine::{Engine, Outcome};
use crate::job::{Job, drive};
use crate::method::{ALL, ReapWait, SubmitStrategy};

/// Answers what it was given after a time, all at once; counts how often it was looked at and slept on.
#[derive(Debug)]
struct Slow {
    takes: Duration,
    since: Instant,
    given: Vec<u32>,
    looks: u64,
    sleeps: u64,
}

impl Engine for Slow {
    fn push(&mut self, slot: u32, _request: &Request) {
        self.since = Instant::now();
        self.given.push(slot);
    }

    fn turn(&mut self, want: u32, _wait: Option<Duration>) -> io::Result<()> {
        if want > 0 {
            self.sleeps += 1;
            std::thread::sleep(self.takes.saturating_sub(self.since.elapsed()));
        }
        Ok(())
    }

    fn ready(&mut self, want: u32) -> io::Result<bool> {
        self.looks += 1;
        Ok(self.given.len() >= want as usize && self.since.elapsed() >= self.takes)
    }

    fn reap(&mut self, mut each: impl FnMut(u32, Outcome)) {
        if self.since.elapsed() >= self.takes {
            self.given.drain(..).for_each(|slot| each(slot, 4096));
        }
    }
}

fn of(complete: u32, waiting: ReapWait) -> SubmitStrategy {
    SubmitStrategy { complete, submit: ALL, waiting }
}

/// Looks and sleeps of the workload `text` at `depth`, whose requests take `takes`.
fn waited(strategy: SubmitStrategy, depth: u32, text: &str, takes: Duration) -> (u64, u64) {
    let facts = TargetFacts { capacity_bytes: 1 << 30, sector_bytes: 512 };
    let workload = WorkloadConfig::from_toml(text).unwrap().build(&facts, 1).unwrap();
    let tape = Arc::new(Mutex::new(Some(Tape::new(Keep::Summary, None, false))));
    let mut job = Job::alone(workload, depth, strategy, Arc::clone(&tape));
    let mut target = Slow { takes, since: Instant::now(), given: Vec::new(), looks: 0, sleeps: 0 };
    let ended = drive(&mut job, &mut target);
    assert!(ended.failure.is_none());
    assert_eq!(tape.lock().unwrap().as_ref().unwrap().completed(), ended.issued);
    (target.looks, target.sleeps)
}

#[test]
fn who_spins_looks_and_who_sleeps_does_not() {
    let soon = Duration::from_micros(20);
    for (depth, batch) in [(1, 1), (8, 4)] {
        let text = &format!("depth = {depth}\nrequests = 400\n");
        let (looks, sleeps) = waited(of(batch, ReapWait::Sleep), depth, text, soon);
        assert!(looks == 0 && sleeps > 0, "{looks} looks, {sleeps} sleeps");
        let (looks, sleeps) = waited(of(batch, ReapWait::Spin), depth, text, soon);
        // Another program may take the core for longer than that is worth.
        assert!(looks > 0 && sleeps < 40, "{looks} looks, {sleeps} sleeps");
    }
}

/// An open loop that spins does so while it waits for a completion, looks up meanwhile, and keeps its times.
#[test]
fn an_open_loop_spins_while_something_is_outstanding() {
    let text = "depth = 1\nrequests = 20\narrivals = { kind = \"fixed\", rate = 500.0 }\n";
    let began = Instant::now();
    let (looks, sleeps) = waited(of(1, ReapWait::Spin), 1, text, Duration::from_micros(500));
    // A job that does not spin sleeps on all 20. Another program that takes the core for a while can make a few sleeps right.
    assert!(looks > 20 && sleeps < 5, "{looks} looks, {sleeps} sleeps");
    assert!(began.elapsed() >= Duration::from_millis(38));
}

/// To be woken is little then.
#[test]
fn who_spins_sleeps_where_it_takes_long() {
    let takes = Duration::from_millis(20);
    let text = "depth = 1\nrequests = 5\n";
    let (looks, sleeps) = waited(of(1, ReapWait::Spin), 1, text, takes);
    assert_eq!(sleeps, 5, "{looks} looks");
}
