//! The recorder: one call a request, everything that a result needs.

use ssdyno_block::{Completion, Request, Status, Time};
use ssdyno_figures::{Keep, LiveSnapshot};

use crate::batches::Batches;
use crate::buckets::Grid;
use crate::little::Little;
use crate::recording::{LeftOut, Recording, RequestLoop};
use crate::rows::{Row, Rows};
use crate::series::Series;
use crate::slices::{LANES, Slices, View};
use crate::totals::{Latencies, Totals, glance, is_data};
use crate::until::Evidence;

/// Takes every request of a run.
///
/// The runner calls [`arrived`](Recorder::arrived) when a request comes into being and
/// [`record`](Recorder::record) when it has completed, both with the same intended start;
/// requests that are shed before they reach the target must not be announced. A `record` costs
/// below 25 ns and allocates only a chunk of rows now and then.
///
/// The *recorded window* starts at zero, or where the ramp-up ends, and lasts until the end of
/// the run. A request belongs to it when it completes in it.
#[derive(Debug)]
pub struct Recorder {
    /// Completions before this are ramp-up; `Time::MAX` until `skip` completions have passed.
    start: Time,
    /// When the integral of Little's law has yet to be begun anew; `Time::MAX` when it has been.
    restart_at: Time,
    skip: u64,
    skipped: u64,
    left_out: LeftOut,
    interval: Option<Time>,
    /// Length of the first bucket of an automatic series.
    first_interval: Time,
    arrivals: u64,
    departures: u64,
    last_completed: Time,
    ops: [Totals; 4],
    inside: Latencies,
    little: Little,
    batches: Batches,
    slices: Slices,
    series: Series,
    rows: Option<Rows>,
}

impl Recorder {
    /// A recorder that keeps rows as `keep` says and a series at `interval`; `None` chooses the
    /// interval by the length of the run (see [`Grid`]).
    pub fn new(keep: Keep, interval: Option<Time>) -> Recorder {
        Recorder {
            start: Time::ZERO,
            restart_at: Time::MAX,
            skip: 0,
            skipped: 0,
            left_out: LeftOut::default(),
            interval,
            first_interval: Grid::FIRST_INTERVAL,
            arrivals: 0,
            departures: 0,
            last_completed: Time::ZERO,
            ops: Default::default(),
            inside: Latencies::default(),
            little: Little::default(),
            batches: Batches::default(),
            slices: Slices::default(),
            series: Series::new(Grid::new(Time::ZERO, interval)),
            rows: (keep != Keep::Summary).then(Rows::default),
        }
    }

    /// Starts an automatic series with buckets of length `first`, which is not zero, for runs that are short: each has some
    /// hundred buckets then. Call it before the first request.
    #[must_use]
    pub fn with_first_interval(mut self, first: Time) -> Recorder {
        self.first_interval = first;
        self.series = Series::new(self.grid(self.start));
        self
    }

    fn grid(&self, start: Time) -> Grid {
        match self.interval {
            Some(_) => Grid::new(start, self.interval),
            None => Grid::automatic(start, self.first_interval),
        }
    }

    /// Leaves out what completes before `start`. Call it before the first request.
    #[must_use]
    pub fn start_recording_at(mut self, start: Time) -> Recorder {
        self.begin_recording_at(start);
        self
    }

    /// Leaves out the first `completions` (S4 ramp-up count): the window starts with the last of
    /// them. Call it before the first request.
    #[must_use]
    pub fn skip_first(mut self, completions: u64) -> Recorder {
        if completions > 0 {
            (self.start, self.skip) = (Time::MAX, completions);
        }
        self
    }

    /// Records nothing until [`begin_recording_at`](Recorder::begin_recording_at). Call it before the first
    /// request.
    #[must_use]
    pub fn begin_later(mut self) -> Recorder {
        (self.start, self.skip) = (Time::MAX, 0);
        self
    }

    /// Whether it waits for [`begin_recording_at`](Recorder::begin_recording_at).
    pub fn begins_later(&self) -> bool {
        self.start == Time::MAX && self.skip == 0
    }

    /// Records the completions from `start` on; `start` must not precede anything recorded so far.
    pub fn begin_recording_at(&mut self, start: Time) {
        (self.start, self.restart_at) = (start, start);
        self.series = Series::new(self.grid(start));
    }

    /// The start of the recorded window, once it is known: what readers of device events make
    /// their [`Grid`] from.
    pub fn window_start(&self) -> Option<Time> {
        (self.start != Time::MAX).then_some(self.start)
    }

    /// Requests announced and not yet completed.
    pub fn outstanding(&self) -> u64 {
        self.arrivals.saturating_sub(self.departures)
    }

    /// Requests completed since the start of the run, with ramp-up and errors.
    pub fn completed(&self) -> u64 {
        self.departures
    }

    /// Requests recorded: completed without error inside the window.
    pub fn recorded(&self) -> u64 {
        self.ops.iter().map(|t| t.latencies.histogram.total()).sum()
    }

    /// What is recorded so far: some microseconds of work, for a few times a second.
    pub fn glance(&self) -> LiveSnapshot {
        glance([&self.ops])
    }

    /// Sum of the latencies recorded, in picoseconds: what a live view makes a mean from.
    pub fn latency_ps_sum(&self) -> u128 {
        self.ops.iter().map(|t| t.latencies.sums.ps).sum()
    }

    /// Whether the run should end because there is no memory for more rows; outstanding requests can still be recorded.
    pub fn must_end(&self) -> bool {
        self.rows.as_ref().is_some_and(Rows::must_end)
    }

    /// How precise the figures are by now.
    pub fn evidence(&self) -> Evidence {
        let mut batches = self.batches.clone();
        batches.end(self.last_completed);
        let (start, end) = (self.start, self.last_completed);
        let mut slices = self.slices.clone();
        slices.end(end, lanes(&self.ops, &self.inside));
        let open_latencies = self.ops.iter().any(|totals| totals.unanswered() > 0);
        Evidence { start, end, batches, slices, open_latencies }
    }

    /// Announces a request whose latency counts from `intended`.
    #[inline]
    pub fn arrived(&mut self, intended: Time) {
        // The first event of the window begins the integral anew. Whatever comes in before it
        // still belongs to the ramp-up.
        if intended >= self.restart_at {
            self.restart();
        }
        self.arrivals += 1;
        self.little.arrived(intended, self.start);
    }

    /// Records a request that has completed, and was submitted when it was meant to start.
    #[inline(always)]
    pub fn record(&mut self, request: &Request, intended: Time, completion: &Completion) {
        self.record_of(0, request, [intended, intended], completion);
    }

    /// Records a request of job number `job` that has completed: when it was meant to start, and when it was
    /// submitted.
    #[inline(always)]
    pub fn record_of(
        &mut self,
        job: u32,
        request: &Request,
        [intended, submitted]: [Time; 2],
        completion: &Completion,
    ) {
        let completed = completion.completed;
        if completed >= self.restart_at {
            self.restart();
        }
        self.departures += 1;
        self.last_completed = self.last_completed.max(completed);
        // The integral needs the departures of the ramp-up as well: the window begins with the
        // requests that are in the system by then.
        self.little.departed(completed, self.start);
        if completed < self.start {
            return self.ramp_up(completed);
        }
        self.little.stayed(intended, completed, self.start);
        let latency = completed.saturating_sub(intended);
        if let Some(rows) = &mut self.rows {
            let (issue_ns, latency_ns) = (intended.as_ns(), latency.as_ns());
            let punctual = Row::punctual(request, issue_ns, latency_ns, completion.status);
            rows.strip(job).push(&Row { submit_ns: submitted.as_ns(), ..punctual });
        }
        let totals = &mut self.ops[request.op as usize];
        // The row of a failed request was kept above, but its latency goes into no figure: a
        // target that fails at once would look fast.
        if completion.status != Status::Ok {
            let failed = (request.op, completion.status);
            return totals.add_failed(&mut self.series, failed, latency, completed);
        }
        let bytes = u64::from(request.length_bytes);
        // The wait is the rest of the latency. The limit keeps that difference from wrapping if
        // a request was accepted before its intended start.
        let inside = completed.saturating_sub(completion.accepted).min(latency);
        totals.bytes += bytes;
        totals.latencies.add(latency);
        self.inside.add(inside);
        // A trim names many bytes and moves none. Its length would make the interval of the
        // bandwidth that of another figure.
        let moved = if is_data(request.op) { bytes } else { 0 };
        self.batches.add(latency.as_ps(), moved, 1, completed);
        self.series.add(request.op, bytes, latency, completed);
        if self.slices.due(self.departures) {
            self.close_slice(completed);
        }
    }

    #[cold]
    fn close_slice(&mut self, end: Time) {
        let lanes = lanes(&self.ops, &self.inside);
        self.slices.close(self.departures, end, lanes);
    }

    /// Takes a request that has completed and is not to be in any figure, though others that
    /// complete at the same time are: the ramp-up of one job among several.
    pub fn leave_out(&mut self, request: &Request, intended: Time, completed: Time) {
        if completed >= self.restart_at {
            self.restart();
        }
        self.departures += 1;
        self.skipped += 1;
        self.last_completed = self.last_completed.max(completed);
        self.little.departed(completed, self.start);
        // The request is in no figure, but it was in the system while the window lasted.
        // Little's law must count its stay as it counts its departure.
        if completed >= self.start {
            self.little.stayed(intended, completed, self.start);
            self.left_out.add(request);
        }
    }

    /// Takes a request of job number `job` that was still outstanding at `end`, when the run ended and expected no more
    /// completions: its intended start, and its submission.
    pub fn never_answered(
        &mut self,
        job: u32,
        request: &Request,
        [intended, submitted]: [Time; 2],
        end: Time,
    ) {
        // In its ramp-up a run records nothing.
        if self.start > end {
            return;
        }
        let waited = end.saturating_sub(intended);
        self.ops[request.op as usize].add_outstanding(waited);
        if let Some(rows) = &mut self.rows {
            let (issue_ns, waited_ns) = (intended.as_ns(), waited.as_ns());
            let punctual = Row::punctual(request, issue_ns, waited_ns, Status::Abandoned);
            rows.strip(job).push(&Row { submit_ns: submitted.as_ns(), ..punctual });
        }
    }

    #[cold]
    fn restart(&mut self) {
        self.little.restart(self.start);
        self.restart_at = Time::MAX;
    }

    #[cold]
    fn ramp_up(&mut self, completed: Time) {
        self.skipped += 1;
        if self.skip > 0 && self.skipped == self.skip {
            // Arrivals may have been announced for later than this completion. The window cannot
            // begin before an event that the integral has counted.
            self.start = completed.max(self.little.now());
            self.series = Series::new(self.grid(self.start));
            self.restart();
        }
    }

    /// Ends the run at `end` (or with the last completion, where that is later).
    pub fn finish(mut self, end: Time) -> Recording {
        self.series.settle();
        self.batches.end(self.last_completed);
        self.slices.end(self.last_completed, lanes(&self.ops, &self.inside));
        let end = end.max(self.last_completed);
        // A ramp-up that never ended has its start at the end of time. The window is empty then,
        // and not negative.
        let start = self.start.min(end);
        Recording {
            start,
            end,
            interval: self.interval,
            skipped: self.skipped,
            left_out: self.left_out,
            skip_unfinished: self.start == Time::MAX,
            request_loop: RequestLoop::Open { limit: None },
            announced: self.arrivals > 0,
            arrivals: self.arrivals,
            departures: self.departures,
            ops: self.ops,
            inside: self.inside,
            little: self.little,
            batches: self.batches,
            slices: self.slices,
            series: self.series,
            rows: self.rows,
        }
    }
}

/// The state of all lanes.
fn lanes<'a>(ops: &'a [Totals; 4], inside: &'a Latencies) -> [View<'a>; LANES] {
    let [read, write, trim, flush] = ops.each_ref().map(|totals| totals.view(None));
    let inside = View { histograms: vec![&inside.histogram], sums: inside.sums };
    [read, write, trim, flush, inside]
}
