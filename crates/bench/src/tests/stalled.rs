//! A target that answers nothing for a while.

use std::io;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ssdyno_block::Request;
use ssdyno_result::{Keep, Latency, RunResult, Tape};
use ssdyno_workload::{Config, DeviceFacts};

use crate::clock::Clock;
use crate::engine::{Engine, Outcome};
use crate::job::{Job, Pulse, Reaping, Shared, drive};
use crate::ramp::Ramp;

/// Completes at once what it is given, but nothing from `from` to `to`.
struct Stalled {
    clock: Clock,
    from_ns: u64,
    to_ns: u64,
    held: Vec<(u32, Outcome)>,
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

    fn ready(&mut self) -> io::Result<bool> {
        Ok(!self.held.is_empty() && !self.stalls())
    }

    fn reap(&mut self, mut each: impl FnMut(u32, Outcome)) {
        if !self.stalls() {
            self.held.drain(..).for_each(|(slot, outcome)| each(slot, outcome));
        }
    }

    fn system_calls(&self) -> u64 {
        0
    }
}

/// Latencies of 1000 arrivals a second for ten times `stall`, at most `depth` outstanding.
pub(super) fn latency(depth: u32, stall: Duration) -> Latency {
    let length = stall * 10;
    let text = format!(
        "duration = \"{}ms\"\ndepth = {depth}\narrivals = {{ kind = \"fixed\", rate = 1000.0 }}\n",
        length.as_millis()
    );
    let facts = DeviceFacts { capacity_bytes: 1 << 30, sector_bytes: 512 };
    let tape = Arc::new(Mutex::new(Some(Tape::new(Keep::All, None, false))));
    let clock = Clock::start();
    let mut job = Job {
        workload: Config::from_toml(&text).unwrap().build(&facts, 1).unwrap(),
        slots: depth,
        reaping: Reaping::AtOnce,
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
    let ended = drive(&mut job, &mut Stalled { clock, from_ns, to_ns, held: Vec::new() });
    let tape = tape.lock().unwrap().take().unwrap();
    let mut result = RunResult::default();
    tape.finish(ended.end_ns).fill(&mut result);
    result.latency_ns.unwrap().all
}
