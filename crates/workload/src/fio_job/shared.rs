//! One workload for several threads, each of which carries a part of what is outstanding.

use std::sync::{Arc, Mutex, PoisonError};

use ssdyno_block::Time;

use crate::{DepthSearchResult, Finished, Workload, WorkloadError, WorkloadStep};

/// A thread with nothing outstanding asks again after this time, and each further time after twice as long, up to this
/// limit during a search for a depth: many idle threads must not keep the cores from the others.
const AGAIN: Time = Time::from_us(50);
const AGAIN_MOST: Time = Time::from_us(3_200);

/// One of several jobs that draw from the same workload.
struct Part {
    whole: Arc<Mutex<Box<dyn Workload + Send>>>,
    outstanding: u64,
    again: Time,
    again_most: Time,
    /// Tells the notes of the whole.
    first: bool,
}

/// `workload` in `parts` parts, for threads that carry one request at a time: a request goes to the thread that asks.
pub fn shared(workload: Box<dyn Workload + Send>, parts: u64) -> Vec<Box<dyn Workload + Send>> {
    let again_most = if workload.heeds_latency() { AGAIN_MOST } else { AGAIN };
    let whole = Arc::new(Mutex::new(workload));
    let part = |index: u64| -> Box<dyn Workload + Send> {
        let (whole, first) = (Arc::clone(&whole), index == 0);
        Box::new(Part { whole, outstanding: 0, again: AGAIN, again_most, first })
    };
    (0..parts).map(part).collect()
}

impl Part {
    fn whole<T>(&self, act: impl FnOnce(&mut (dyn Workload + Send)) -> T) -> T {
        // A thread that panics poisons the lock. The others still use the workload, so that the run
        // reports the first panic and not a second one from each thread.
        act(self.whole.lock().unwrap_or_else(PoisonError::into_inner).as_mut())
    }
}

impl Workload for Part {
    fn next(&mut self, now: Time) -> WorkloadStep {
        let step = self.whole(|whole| whole.next(now));
        match step {
            WorkloadStep::Issue { .. } => {
                (self.outstanding, self.again) = (self.outstanding + 1, AGAIN)
            }
            // What it waits for is with the others.
            WorkloadStep::Wait if self.outstanding == 0 => {
                let again = self.again;
                self.again = (again * 2).min(self.again_most);
                return WorkloadStep::NotBefore(now + again);
            }
            _ => {}
        }
        step
    }

    fn completed(&mut self, finished: Finished, now: Time) {
        self.outstanding = self.outstanding.saturating_sub(1);
        self.whole(|whole| whole.completed(finished, now));
    }

    fn heeds_latency(&self) -> bool {
        self.whole(|whole| whole.heeds_latency())
    }

    fn recorded_from(&self, stream: u32) -> Time {
        self.whole(|whole| whole.recorded_from(stream))
    }

    fn depth_searches(&self) -> Vec<DepthSearchResult> {
        if self.first { self.whole(|whole| whole.depth_searches()) } else { Vec::new() }
    }

    fn notes(&self) -> Vec<String> {
        if self.first { self.whole(|whole| whole.notes()) } else { Vec::new() }
    }

    fn error(&mut self) -> Option<WorkloadError> {
        self.whole(|whole| whole.error())
    }
}
