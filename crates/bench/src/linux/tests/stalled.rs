//! A target that completes nothing for a while.

use std::io;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ssdyno_block::{Request, Status, Time};
use ssdyno_figures::{Keep, Latency, RunResult};
use ssdyno_record::Tape;
use ssdyno_workload::{TargetFacts, WorkloadConfig, WorkloadStep};

use crate::clock::Clock;
use crate::engine::{Engine, Outcome};
use crate::job::{Job, drive};
use crate::method::Method;
use crate::pulse::{Pulse, Shared};
use crate::ramp::Ramp;

/// Completes at once what it is given, but nothing from `from` to `to`.
struct Stalled {
    clock: Clock,
    from_ns: u64,
    to_ns: u64,
    held: Vec<(u32, Outcome)>,
    /// When each request completed, in the order in which they came.
    answered_ns: Vec<u64>,
}

impl Stalled {
    fn stalls(&self) -> bool {
        (self.from_ns..self.to_ns).contains(&self.clock.now_ns())
    }
}

impl Engine for Stalled {
    fn push(&mut self, slot: u32, request: &Request) {
        self.held.push((slot, request.length_bytes as Outcome));
    }

    fn turn(&mut self, want: u32, wait: Option<Duration>) -> io::Result<()> {
        if self.stalls() && want > 0 {
            let left = Duration::from_nanos(self.to_ns.saturating_sub(self.clock.now_ns()));
            std::thread::sleep(wait.map_or(left, |wait| wait.min(left)));
        }
        Ok(())
    }

    fn ready(&mut self, _want: u32) -> io::Result<bool> {
        Ok(!self.held.is_empty() && !self.stalls())
    }

    fn reap(&mut self, mut each: impl FnMut(u32, Outcome)) {
        if !self.stalls() {
            let now_ns = self.clock.now_ns();
            self.answered_ns.extend(self.held.iter().map(|_| now_ns));
            self.held.drain(..).for_each(|(slot, outcome)| each(slot, outcome));
        }
    }
}

/// What was recorded of 1000 arrivals a second for ten times `stall`, at most `depth` outstanding;
/// and the exact latencies, in order of size: from the moment at which each was meant to start, which the
/// workload says, to that at which the target gave its answer, by the target's own account. So whatever
/// else stalls the machine meanwhile is in both.
pub(super) fn latency(depth: u32, stall: Duration) -> (Latency, Vec<u64>) {
    let length = stall * 10;
    let text = format!(
        "duration = \"{}ms\"\ndepth = {depth}\narrivals = {{ kind = \"fixed\", rate = 1000.0 }}\n",
        length.as_millis()
    );
    let facts = TargetFacts { capacity_bytes: 1 << 30, sector_bytes: 512 };
    let tape = Arc::new(Mutex::new(Some(Tape::new(Keep::All, None, false))));
    let clock = Clock::start();
    let mut job = Job {
        workload: WorkloadConfig::from_toml(&text).unwrap().build(&facts, 1).unwrap(),
        slots: depth,
        strategy: Method::Default.strategy(),
        requests_max: u64::MAX,
        end_ns: u64::MAX,
        writable: false,
        origin_ns: None,
        clock,
        shared: Shared {
            stop: Arc::new(AtomicBool::new(false)),
            ramp: Arc::new(Ramp::new(0)),
            pulse: Arc::new(Pulse::default()),
            tape: Arc::clone(&tape),
        },
    };
    let from_ns = (stall * 4).as_nanos() as u64;
    let to_ns = from_ns + stall.as_nanos() as u64;
    let (held, answered_ns) = (Vec::new(), Vec::new());
    let mut target = Stalled { clock, from_ns, to_ns, held, answered_ns };
    let ended = drive(&mut job, &mut target);
    let tape = tape.lock().unwrap().take().unwrap();
    let mut result = RunResult::default();
    tape.finish(ended.end_ns).fill(&mut result);
    let meant = intended_ns(&text, &facts);
    assert_eq!(meant.len(), target.answered_ns.len(), "each is answered once");
    let mut exact: Vec<u64> =
        target.answered_ns.iter().zip(meant).map(|(answered, meant)| answered - meant).collect();
    exact.sort_unstable();
    (result.latency_ns.unwrap().all, exact)
}

/// When the requests of the workload are meant to start.
fn intended_ns(text: &str, facts: &TargetFacts) -> Vec<u64> {
    let mut workload = WorkloadConfig::from_toml(text).unwrap().build(facts, 1).unwrap();
    let mut all = Vec::new();
    let late = Time::from_s(3600);
    loop {
        match workload.next(late) {
            WorkloadStep::Issue { intended, .. } => all.push(intended.as_ns()),
            WorkloadStep::Done => return all,
            WorkloadStep::Wait => workload.completed(ssdyno_workload::Finished::UNKNOWN, late),
            WorkloadStep::NotBefore(at) => panic!("something is to come after an hour, at {at:?}"),
        }
    }
}

/// Completes everything at once but each tenth request, which it never answers, and each seventh, which fails.
struct Forgetful {
    pushed: u64,
    done: Vec<(u32, Outcome)>,
    /// Requests that have not completed by now.
    lost: u64,
}

impl Engine for Forgetful {
    fn push(&mut self, slot: u32, request: &Request) {
        self.pushed += 1;
        match self.pushed {
            count if count.is_multiple_of(10) => self.lost += 1,
            count if count.is_multiple_of(7) => self.done.push((slot, -libc::EIO)),
            _ => self.done.push((slot, request.length_bytes as Outcome)),
        }
    }

    fn turn(&mut self, want: u32, _wait: Option<Duration>) -> io::Result<()> {
        // Nothing more comes: a target that hangs, and whoever watches gives it up.
        match want > 0 && self.done.is_empty() {
            true => Err(io::ErrorKind::TimedOut.into()),
            false => Ok(()),
        }
    }

    fn ready(&mut self, want: u32) -> io::Result<bool> {
        Ok(self.done.len() >= want as usize)
    }

    fn reap(&mut self, mut each: impl FnMut(u32, Outcome)) {
        self.done.drain(..).for_each(|(slot, outcome)| each(slot, outcome));
    }
}

/// A request that a target never completes counts in figures and rows with at least its wait; a failed request has its
/// reason.
#[test]
fn requests_without_an_answer_and_failed_ones_are_told() {
    let facts = TargetFacts { capacity_bytes: 1 << 30, sector_bytes: 512 };
    let config = WorkloadConfig { depth: Some(8), ..WorkloadConfig::default() };
    let tape = Arc::new(Mutex::new(Some(Tape::new(Keep::All, None, false))));
    let workload = config.build(&facts, 1).unwrap();
    let strategy = Method::Default.strategy();
    let mut job = Job::alone(workload, 8, strategy, Arc::clone(&tape));
    job.writable = true;
    let mut target = Forgetful { pushed: 0, done: Vec::new(), lost: 0 };
    drive(&mut job, &mut target);
    assert_eq!(target.lost, 8, "each place is taken by one that is lost");
    let mut result = RunResult { partial: true, ..RunResult::default() };
    let end_ns = 3_600_000_000_000;
    let mut recording = tape.lock().unwrap().take().unwrap().finish(end_ns);
    recording.fill(&mut result);
    assert_eq!(result.unanswered, 8);
    assert_eq!(recording.job_result(Time::ZERO).unanswered, 8);
    assert_eq!(result.requests + result.errors + 8, target.pushed);
    let latency = result.latency_ns.unwrap().all;
    assert!(latency.max > 3.5e12 && latency.at_most.unwrap().p99_9.is_none(), "{latency:?}");
    let rows = recording.rows().unwrap().to_vec().unwrap();
    let of = |status| rows.iter().filter(move |row| row.status == status);
    assert!(of(Status::Error).all(|row| row.errno == libc::EIO as u16));
    assert_eq!(of(Status::Error).count() as u64, result.errors);
    assert!(of(Status::Abandoned).all(|row| row.errno == 0 && row.latency_ns > 3_500_000_000_000));
    assert_eq!(of(Status::Abandoned).count(), 8);
    assert!(rows.iter().all(|row| row.submit_ns >= row.issue_ns));
}
