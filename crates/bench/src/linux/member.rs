//! One job of a run, as the supervisor of all sees it.

use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use ssdyno_workload::FioExit;

use crate::plan::JobPlan;
use crate::pulse::Shared;
use crate::worker::{Go, JobReport};

/// Everything about one job that is on its way.
pub(crate) struct Member {
    pub(crate) shared: Shared,
    pub(crate) go: Sender<Go>,
    pub(crate) group: u32,
    /// See [`JobPlan::entry`](crate::plan::JobPlan::entry).
    pub(crate) entry: usize,
    /// See [`JobPlan::stream`](crate::plan::JobPlan::stream).
    pub(crate) stream: usize,
    /// See [`JobPlan::exit`](crate::plan::JobPlan::exit).
    pub(crate) exit: FioExit,
    pub(crate) report: Option<JobReport>,
    /// When it last got on, and how far it was.
    pub(crate) moved: Instant,
    pub(crate) at: (u64, u64),
    pub(crate) abandoned: bool,
}

impl Member {
    /// The job of `plan`, which starts when it hears from `go`.
    pub(crate) fn new(shared: Shared, go: Sender<Go>, plan: &JobPlan) -> Member {
        Member {
            shared,
            go,
            group: plan.group,
            entry: plan.entry,
            stream: plan.stream,
            exit: plan.exit,
            report: None,
            moved: Instant::now(),
            at: (0, 0),
            abandoned: false,
        }
    }

    pub(crate) fn outstanding(&self) -> u64 {
        let pulse = &self.shared.pulse;
        // The counters are read one after the other, while the job goes on. The older value of
        // `completed` makes the difference too large rather than negative; relaxed loads promise
        // no order, so it is saturated too.
        let completed = pulse.completed.load(Ordering::Relaxed);
        pulse.issued.load(Ordering::Relaxed).saturating_sub(completed)
    }

    pub(crate) fn stop(&self) {
        // The flag says only that the job should end. No other data is published by it, so it
        // needs no order.
        self.shared.stop.store(true, Ordering::Relaxed);
    }

    /// Since when nothing has been answered, though something is outstanding.
    pub(crate) fn stuck_for(&mut self, now: Instant) -> Duration {
        let pulse = &self.shared.pulse;
        let at = (pulse.issued.load(Ordering::Relaxed), pulse.completed.load(Ordering::Relaxed));
        // Before the first completion a request may have been issued late; it counts from there.
        if at.1 != self.at.1 || self.outstanding() == 0 || self.at.0 == self.at.1 {
            (self.moved, self.at) = (now, at);
        }
        now - self.moved
    }
}
