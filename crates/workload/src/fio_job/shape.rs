//! Pauses and flushes between the requests of a generator.

use ssdyno_block::{Op, Request, Time};

use crate::{Step, Workload, WorkloadError};

/// A pause after every so many requests (`thinktime`, `thinktime_blocks`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Think {
    /// Length of the pause; it begins when everything outstanding has completed.
    pub(super) time: Time,
    /// Requests between two pauses.
    pub(super) blocks: u64,
}

/// What a job does between its requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Shape {
    pub(super) think: Option<Think>,
    /// Writes between two flushes (`fsync`, `fdatasync`).
    pub(super) flush_every: Option<u64>,
    /// A flush when all that was to be issued has completed, if anything was written (`end_fsync`,
    /// `fsync_on_close`).
    pub(super) flush_at_end: bool,
}

/// Where a job is between two pauses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Pause {
    /// At work.
    None,
    /// Waiting until everything outstanding has completed.
    Begins,
    /// Resting.
    Until(Time),
}

/// `inner` in a [`Shape`].
struct Shaped {
    inner: Box<dyn Workload + Send>,
    shape: Shape,
    /// Most outstanding, flushes among them.
    depth: u64,
    /// Nothing is issued at this time or later; a pause ends then as well.
    end: Time,
    outstanding: u64,
    /// Requests that the generator has yet to issue: after the last one no flush follows.
    left: u64,
    since_pause: u64,
    pause: Pause,
    writes: u64,
    last_was_flush: bool,
}

/// `inner`, which issues `requests` with at most `depth` outstanding until `end`, in `shape`.
pub(super) fn shaped(
    inner: Box<dyn Workload + Send>,
    shape: Shape,
    depth: Option<u32>,
    end: Option<Time>,
    requests: Option<u64>,
) -> Box<dyn Workload + Send> {
    if shape == Shape::default() {
        return inner;
    }
    Box::new(Shaped {
        inner,
        shape,
        depth: depth.map_or(u64::MAX, u64::from),
        end: end.unwrap_or(Time::MAX),
        outstanding: 0,
        left: requests.unwrap_or(u64::MAX),
        since_pause: 0,
        pause: Pause::None,
        writes: 0,
        last_was_flush: false,
    })
}

impl Shaped {
    /// Counts a request that is about to be issued.
    fn issued(&mut self, op: Op) {
        self.outstanding += 1;
        self.writes += u64::from(op == Op::Write);
        self.last_was_flush = op == Op::Flush;
        if let (Some(think), true) = (self.shape.think, op != Op::Flush) {
            self.since_pause += 1;
            if self.since_pause == think.blocks {
                (self.since_pause, self.pause) = (0, Pause::Begins);
            }
        }
    }

    /// Whether a flush comes next. As in fio the count of writes alone decides: in a mix, reads that
    /// follow the last of so many writes are followed by a flush each.
    fn flush_is_due(&self) -> bool {
        let due = |every| self.writes > 0 && self.writes.is_multiple_of(every);
        !self.last_was_flush && self.shape.flush_every.is_some_and(due)
    }
}

impl Workload for Shaped {
    fn next(&mut self, now: Time) -> Step {
        if self.flush_is_due() && now < self.end && self.left > 0 {
            if self.outstanding >= self.depth {
                return Step::Wait;
            }
            self.issued(Op::Flush);
            return Step::Issue { request: Request::flush(), intended: now };
        }
        match self.pause {
            Pause::Begins if self.outstanding > 0 => return Step::Wait,
            Pause::Until(at) if now < at.min(self.end) => {
                return Step::NotBefore(at.min(self.end));
            }
            _ => self.pause = Pause::None,
        }
        if self.outstanding >= self.depth {
            return Step::Wait;
        }
        let step = self.inner.next(now);
        match &step {
            Step::Issue { request, .. } => {
                self.left = self.left.saturating_sub(1);
                self.issued(request.op);
            }
            Step::Done if self.shape.flush_at_end && self.writes > 0 => {
                if self.outstanding > 0 {
                    return Step::Wait;
                }
                self.shape.flush_at_end = false;
                self.issued(Op::Flush);
                return Step::Issue { request: Request::flush(), intended: now };
            }
            _ => {}
        }
        step
    }

    fn upcoming(&self) -> &[Request] {
        self.inner.upcoming()
    }

    fn completed(&mut self, now: Time) {
        self.outstanding = self.outstanding.saturating_sub(1);
        // Nobody says whether it was a flush. Then the generator counts one too few outstanding,
        // which does not matter: the depth is kept here.
        self.inner.completed(now);
        if let (Pause::Begins, Some(think), 0) = (self.pause, self.shape.think, self.outstanding) {
            self.pause = Pause::Until(now.saturating_add(think.time));
        }
    }

    fn notes(&self) -> Vec<String> {
        self.inner.notes()
    }

    fn error(&mut self) -> Option<WorkloadError> {
        self.inner.error()
    }
}
