//! One workload for several threads, each of which carries a part of what is outstanding.

use std::sync::{Arc, Mutex, PoisonError};

use ssdyno_block::Time;

use crate::{Step, Workload, WorkloadError};

/// Who has nothing outstanding asks again after so long.
const AGAIN: Time = Time::from_us(50);

/// One of several who draw from the same workload.
struct Part {
    whole: Arc<Mutex<Box<dyn Workload + Send>>>,
    outstanding: u64,
    /// Tells the notes of the whole.
    first: bool,
}

/// `workload` in `parts` parts: a request goes to the one that asks.
pub(super) fn shared(
    workload: Box<dyn Workload + Send>,
    parts: u64,
) -> Vec<Box<dyn Workload + Send>> {
    let whole = Arc::new(Mutex::new(workload));
    let part = |index: u64| -> Box<dyn Workload + Send> {
        Box::new(Part { whole: Arc::clone(&whole), outstanding: 0, first: index == 0 })
    };
    (0..parts).map(part).collect()
}

impl Part {
    fn whole<T>(&self, act: impl FnOnce(&mut (dyn Workload + Send)) -> T) -> T {
        act(self.whole.lock().unwrap_or_else(PoisonError::into_inner).as_mut())
    }
}

impl Workload for Part {
    fn next(&mut self, now: Time) -> Step {
        let step = self.whole(|whole| whole.next(now));
        match step {
            Step::Issue { .. } => self.outstanding += 1,
            // What it waits for is with the others.
            Step::Wait if self.outstanding == 0 => return Step::NotBefore(now + AGAIN),
            _ => {}
        }
        step
    }

    fn completed(&mut self, now: Time) {
        self.outstanding = self.outstanding.saturating_sub(1);
        self.whole(|whole| whole.completed(now));
    }

    fn notes(&self) -> Vec<String> {
        if self.first { self.whole(|whole| whole.notes()) } else { Vec::new() }
    }

    fn error(&mut self) -> Option<WorkloadError> {
        self.whole(|whole| whole.error())
    }
}
