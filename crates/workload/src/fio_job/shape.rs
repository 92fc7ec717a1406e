//! Pauses and flushes between the requests of a generator.

use ssdyno_block::{Op, Request, Time};

use crate::{Finished, Workload, WorkloadStep};

/// A pause after this number of requests (`thinktime`, `thinktime_blocks`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Think {
    /// Length of the pause; it begins when everything outstanding has completed.
    pub(super) time: Time,
    /// Requests between two pauses.
    pub(super) blocks: u64,
    /// Time of work between two pauses (`thinktime_iotime`); what comes first begins one.
    pub(super) work: Option<Time>,
}

/// A job's actions between its requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Shape {
    pub(super) think: Option<Think>,
    /// Writes between two flushes (`fsync`, `fdatasync`).
    pub(super) flush_every: Option<u64>,
    /// A flush when all that was to be issued has completed, if anything was written (`end_fsync`,
    /// `fsync_on_close`).
    pub(super) flush_at_end: bool,
}

/// The limits of a job, whatever its shape.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Most outstanding, flushes among them.
    pub(super) depth: u64,
    /// Nothing is issued at this time or later; a pause ends then as well.
    pub(super) end: Time,
    /// Requests that the generator issues; `u64::MAX` where nobody knows.
    pub(super) requests: u64,
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
    /// Its number of requests counts down: after the last one no flush follows.
    limits: Limits,
    /// Addresses of the files that are flushed at the end.
    flushes: Vec<u64>,
    /// Where the last write went.
    written: u64,
    outstanding: u64,
    since_pause: u64,
    /// When the work since the last pause began.
    work_began: Option<Time>,
    pause: Pause,
    writes: u64,
    last_was_flush: bool,
}

/// `inner`, within `limits`, in `shape`. Where its target is made of several files, `flushes` has the
/// address of each that it writes to; otherwise a flush has none.
pub(super) fn shaped(
    inner: Box<dyn Workload + Send>,
    shape: Shape,
    limits: Limits,
    flushes: &[u64],
) -> Box<dyn Workload + Send> {
    if shape == Shape::default() {
        return inner;
    }
    Box::new(Shaped {
        inner,
        shape,
        limits,
        flushes: flushes.to_vec(),
        written: 0,
        outstanding: 0,
        since_pause: 0,
        work_began: None,
        pause: Pause::None,
        writes: 0,
        last_was_flush: false,
    })
}

impl Shaped {
    /// Counts a request that is about to be issued.
    fn issued(&mut self, &Request { op, offset_bytes, .. }: &Request) {
        self.outstanding += 1;
        if op == Op::Write {
            self.writes += 1;
            self.written = offset_bytes;
        }
        self.last_was_flush = op == Op::Flush;
        // A flush moves no data and does not count as a block of `thinktime_blocks`. With flushes
        // counted, a job with `fsync=1` would pause twice as often.
        if let (Some(think), true) = (self.shape.think, op != Op::Flush) {
            self.since_pause += 1;
            if self.since_pause == think.blocks {
                self.begin_pause();
            }
        }
    }

    fn begin_pause(&mut self) {
        (self.since_pause, self.work_began, self.pause) = (0, None, Pause::Begins);
    }

    /// Begins a pause where there was work for as long as there should be.
    fn look_at_work(&mut self, now: Time) {
        let Some(work) = self.shape.think.and_then(|think| think.work) else { return };
        if self.pause != Pause::None {
            return;
        }
        let began = *self.work_began.get_or_insert(now);
        if now.saturating_sub(began) >= work {
            self.begin_pause();
        }
    }

    /// The pause, if it has begun with nothing outstanding; it would otherwise begin with the last
    /// completion.
    fn rest(&mut self, now: Time) {
        if let (Pause::Begins, Some(think), 0) = (self.pause, self.shape.think, self.outstanding) {
            self.pause = Pause::Until(now.saturating_add(think.time));
        }
    }

    /// A flush of the file at address `at`.
    fn flush(&mut self, at: u64, now: Time) -> WorkloadStep {
        let request = Request { offset_bytes: at, ..Request::flush() };
        self.issued(&request);
        WorkloadStep::Issue { request, intended: now }
    }

    /// Whether a flush comes next. As in fio the count of writes alone decides: in a mix, reads that
    /// follow the last of so many writes are followed by a flush each.
    fn flush_is_due(&self) -> bool {
        let due = |every| self.writes > 0 && self.writes.is_multiple_of(every);
        !self.last_was_flush && self.shape.flush_every.is_some_and(due)
    }
}

impl Workload for Shaped {
    fn next(&mut self, now: Time) -> WorkloadStep {
        if self.flush_is_due() && now < self.limits.end && self.limits.requests > 0 {
            if self.outstanding >= self.limits.depth {
                return WorkloadStep::Wait;
            }
            let at = if self.flushes.is_empty() { 0 } else { self.written };
            return self.flush(at, now);
        }
        self.look_at_work(now);
        self.rest(now);
        match self.pause {
            // A pause begins when all requests are back. If it began at the last submission, the
            // device would still be busy, and short pauses would not let it become idle.
            Pause::Begins if self.outstanding > 0 => return WorkloadStep::Wait,
            Pause::Until(at) if now < at.min(self.limits.end) => {
                return WorkloadStep::NotBefore(at.min(self.limits.end));
            }
            _ => self.pause = Pause::None,
        }
        if self.outstanding >= self.limits.depth {
            return WorkloadStep::Wait;
        }
        let step = self.inner.next(now);
        match &step {
            WorkloadStep::Issue { request, .. } => {
                self.limits.requests = self.limits.requests.saturating_sub(1);
                self.issued(request);
            }
            WorkloadStep::Done if self.shape.flush_at_end && self.writes > 0 => {
                // The flush at the end follows the last completion. A flush covers only commands
                // that are complete: NVMe need not make a write durable that is still outstanding.
                if self.outstanding > 0 {
                    return WorkloadStep::Wait;
                }
                let at = self.flushes.pop().unwrap_or(0);
                self.shape.flush_at_end = !self.flushes.is_empty();
                return self.flush(at, now);
            }
            _ => {}
        }
        step
    }

    crate::wraps_inner!();

    fn completed(&mut self, finished: Finished, now: Time) {
        self.outstanding = self.outstanding.saturating_sub(1);
        // It is unknown whether it was a flush. Then the generator counts one too few outstanding,
        // which does not matter: the depth is kept here.
        self.inner.completed(finished, now);
        self.rest(now);
    }
}
