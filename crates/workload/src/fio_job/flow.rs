//! Jobs whose numbers of requests are kept in proportion (`flow`; fio's `flow.c`, read for its behaviour).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ssdyno_block::Time;

use super::reader::{Answer, Reader};
use super::values;
use crate::{Finished, Workload, WorkloadStep};

/// A job that is ahead of the others asks again after this time, or after `flow_sleep`.
const AGAIN: Time = Time::from_us(10);

/// The share that a job sets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Share {
    /// Which jobs it is kept in proportion with (`flow_id`).
    pub(super) id: u64,
    /// Requests of it to those of the others (`flow`).
    pub(super) weight: u64,
    /// Pause where it is ahead of its share (`flow_sleep`).
    pub(super) sleep: Time,
}

/// The sum over the active jobs.
#[derive(Debug, Default)]
pub(super) struct Flow {
    issued: AtomicU64,
    weights: AtomicU64,
}

/// One of them.
struct Flowing {
    inner: Box<dyn Workload + Send>,
    flow: Arc<Flow>,
    share: Share,
    issued: u64,
    /// It counts among those at work: from its first request to its end.
    present: bool,
    done: bool,
}

/// `inner` with its `share` of `flow`.
pub(super) fn flowing(
    inner: Box<dyn Workload + Send>,
    flow: &Arc<Flow>,
    share: Share,
) -> Box<dyn Workload + Send> {
    let flow = Arc::clone(flow);
    Box::new(Flowing { inner, flow, share, issued: 0, present: false, done: false })
}

impl Flowing {
    /// Whether it has issued more than its share. One of all is always at it or below. Counters that other threads
    /// change meanwhile make the answer late by a few requests at most.
    fn is_ahead(&self) -> bool {
        let all = self.flow.issued.load(Ordering::Relaxed);
        let weights = self.flow.weights.load(Ordering::Relaxed);
        // Cross multiplication compares issued / all with weight / weights exactly. A division
        // would round, and two jobs with equal shares could both appear to be ahead and wait for
        // each other.
        u128::from(self.issued) * u128::from(weights)
            > u128::from(all) * u128::from(self.share.weight)
    }

    fn leave(&mut self) {
        self.done = true;
        if std::mem::take(&mut self.present) {
            // A job that ends takes its weight and its requests out of both sums. If they stayed,
            // the remaining jobs would wait for their turn behind a job that never issues again.
            self.flow.weights.fetch_sub(self.share.weight, Ordering::Relaxed);
            self.flow.issued.fetch_sub(self.issued, Ordering::Relaxed);
        }
    }
}

impl Drop for Flowing {
    /// A job that ended for another reason must not be waited for.
    fn drop(&mut self) {
        self.leave();
    }
}

impl Workload for Flowing {
    fn next(&mut self, now: Time) -> WorkloadStep {
        if !self.present && !self.done {
            // A job counts from its first request on and not from its creation. A job with a start
            // delay would otherwise hold up the others until it begins.
            self.present = true;
            self.flow.weights.fetch_add(self.share.weight, Ordering::Relaxed);
        }
        if self.present && self.is_ahead() {
            // The job asks again after a short time. `Wait` would be wrong: the job may have
            // nothing outstanding, and no completion of its own would wake it.
            return WorkloadStep::NotBefore(now.saturating_add(self.share.sleep.max(AGAIN)));
        }
        let step = self.inner.next(now);
        match step {
            WorkloadStep::Issue { .. } => {
                self.issued += 1;
                self.flow.issued.fetch_add(1, Ordering::Relaxed);
            }
            WorkloadStep::Done => self.leave(),
            _ => {}
        }
        step
    }

    crate::wraps_inner!();

    fn completed(&mut self, finished: Finished, now: Time) {
        self.inner.completed(finished, now);
    }
}

impl Reader<'_> {
    /// The share of the job, if it is kept in proportion with others.
    pub(super) fn share(&mut self) -> Answer<Option<Share>> {
        let weight = self.value(&["flow"], "a weight of 0 to 1000", values::whole_in(..=1_000))?;
        let id = self.value(&["flow_id"], "a number", values::whole)?.unwrap_or(0);
        let sleep = self.value(&["flow_sleep"], "a time in us, or such as 5ms", |text| {
            values::time(text, "us")
        })?;
        let sleep = sleep.unwrap_or(Time::ZERO);
        Ok(weight.filter(|weight| *weight > 0).map(|weight| Share { id, weight, sleep }))
    }
}
