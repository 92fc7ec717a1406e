//! A workload that begins later.

use ssdyno_block::{Request, Time};

use crate::{DepthSearch, Finished, Workload, WorkloadError, WorkloadStep};

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
        match self.inner.next(now - self.start) {
            WorkloadStep::Issue { request, intended } => {
                WorkloadStep::Issue { request, intended: intended + self.start }
            }
            WorkloadStep::NotBefore(at) => WorkloadStep::NotBefore(at.saturating_add(self.start)),
            step => step,
        }
    }

    fn upcoming(&self) -> &[Request] {
        self.inner.upcoming()
    }

    fn completed(&mut self, finished: Finished, now: Time) {
        self.inner.completed(finished, now.saturating_sub(self.start));
    }

    fn heeds_latency(&self) -> bool {
        self.inner.heeds_latency()
    }

    fn recorded_from(&self, stream: u32) -> Time {
        self.inner.recorded_from(stream).saturating_add(self.start)
    }

    fn depth_searches(&self) -> Vec<DepthSearch> {
        self.inner.depth_searches()
    }

    fn notes(&self) -> Vec<String> {
        self.inner.notes()
    }

    fn error(&mut self) -> Option<WorkloadError> {
        self.inner.error()
    }
}
