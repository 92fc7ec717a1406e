//! A queue that is filled again only when it has drained (`iodepth_low`).

use ssdyno_block::Time;

use crate::{Finished, Workload, WorkloadStep};

/// `inner`, which has up to `depth` outstanding: once it had, nothing follows until `low` are left.
struct Draining {
    inner: Box<dyn Workload + Send>,
    depth: u64,
    low: u64,
    outstanding: u64,
    draining: bool,
}

/// `inner` of `depth`, filled again at `low`; as it is where that is the depth.
pub(super) fn draining(
    inner: Box<dyn Workload + Send>,
    depth: u64,
    low: Option<u64>,
) -> Box<dyn Workload + Send> {
    // A low mark at the depth or above is never effective: one completion already reaches it. The
    // wrapper is left out, which keeps the call per request short.
    match low.filter(|&low| low < depth) {
        None => inner,
        Some(low) => Box::new(Draining { inner, depth, low, outstanding: 0, draining: false }),
    }
}

impl Workload for Draining {
    fn next(&mut self, now: Time) -> WorkloadStep {
        if self.draining {
            return WorkloadStep::Wait;
        }
        let step = self.inner.next(now);
        if let WorkloadStep::Issue { .. } = step {
            self.outstanding += 1;
            self.draining = self.outstanding >= self.depth;
        }
        step
    }

    crate::wraps_inner!();

    fn completed(&mut self, finished: Finished, now: Time) {
        self.outstanding = self.outstanding.saturating_sub(1);
        self.draining &= self.outstanding > self.low;
        self.inner.completed(finished, now);
    }
}
