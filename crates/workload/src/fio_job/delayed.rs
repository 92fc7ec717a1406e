//! A workload that begins later.

use ssdyno_block::Time;

use crate::{Finished, Workload, WorkloadStep};

/// `inner` with its time counted from `start`.
struct Delayed {
    inner: Box<dyn Workload + Send>,
    start: Time,
}

/// The workload that does what `inner` does, `start` later.
pub fn delayed(inner: Box<dyn Workload + Send>, start: Time) -> Box<dyn Workload + Send> {
    if start == Time::ZERO {
        return inner;
    }
    Box::new(Delayed { inner, start })
}

impl Workload for Delayed {
    fn next(&mut self, now: Time) -> WorkloadStep {
        if now < self.start {
            return WorkloadStep::NotBefore(self.start);
        }
        // The wrapper shifts the time instead of adding a delay to the first request. All times of
        // the inner workload, such as its duration, then count from the start of the job.
        match self.inner.next(now - self.start) {
            WorkloadStep::Issue { request, intended } => {
                WorkloadStep::Issue { request, intended: intended + self.start }
            }
            WorkloadStep::NotBefore(at) => WorkloadStep::NotBefore(at.saturating_add(self.start)),
            step => step,
        }
    }

    crate::wraps_inner!();

    fn completed(&mut self, finished: Finished, now: Time) {
        self.inner.completed(finished, now.saturating_sub(self.start));
    }

    fn recorded_from(&self, stream: u32) -> Time {
        self.inner.recorded_from(stream).saturating_add(self.start)
    }
}
