//! The recorder of runs in wall time: a few nanoseconds a request.

mod reaped;

use ssdyno_block::{Op, Request, Status, Time};
use ssdyno_figures::{Keep, LiveSnapshot};

use crate::batches::Batches;
use crate::buckets::Grid;
use crate::little::Little;
use crate::recording::{LeftOut, Recording, RequestLoop};
use crate::rows::{Row, Rows, Spool, Strip};
use crate::series::{OpSums, Series};
use crate::slices::{LANES, Slices, View};
use crate::sums::Sums;
use crate::totals::{Latencies, Totals, glance};
use crate::until::Evidence;

pub use reaped::Reaped;
use reaped::Sum;

const PS_PER_NS: u64 = 1_000;

/// Takes every request of one job of a run on the wall's clock.
///
/// It differs from [`Recorder`](crate::Recorder) in what the clock allows: times are whole
/// nanoseconds, and the clock is read once for all completions that are reaped together. So
/// rates, series and Little's law are kept once a [`Reaped`], and a request costs a row, a
/// histogram and a few sums. Tapes of several jobs that share one clock become one
/// [`Recording`] with [`Recording::merge`].
///
/// The runner calls [`issued`](Tape::issued) (or [`issued_late`](Tape::issued_late)) for what it
/// hands to the target and [`reaped`](Tape::reaped) for what comes back; times never go back.
#[derive(Debug)]
pub struct Tape {
    /// Start of the recorded window; `u64::MAX` while it is not known.
    start_ns: u64,
    interval: Option<Time>,
    skipped: u64,
    arrivals: u64,
    departures: u64,
    last_ns: u64,
    latency_ns: u64,
    /// Requests that reached the target when they were meant to.
    ops: [Totals; 4],
    /// The part of them that is in the present [`Reaped`] and not yet in `ops`.
    sums: [Sum; 4],
    /// The others.
    waited: Option<Box<Waited>>,
    little: Little,
    batches: Batches,
    slices: Slices,
    series: Series,
    rows: Option<Strip>,
    /// Requests that are outstanding, by their places; one of a place that is free was never submitted.
    sent: Vec<Sent>,
}

/// A request on its way, in ns.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// The request.
    pub request: Request,
    /// When it was meant to start.
    pub intended_ns: u64,
    /// When it was handed to the target.
    pub accepted_ns: u64,
}

impl Sent {
    /// None: nothing is submitted at the end of time.
    const NONE: Sent = Sent { request: Request::flush(), intended_ns: 0, accepted_ns: u64::MAX };
}

/// Requests that waited between their intended start and the target.
#[derive(Debug, Default)]
struct Waited {
    ops: [Totals; 4],
    inside: Latencies,
}

impl Tape {
    /// A tape that has rows if `keep` is [`Keep::All`] and a series at `interval` (`None`: by the length of
    /// the run). With `ramp_up` nothing is recorded until [`start_at`](Tape::start_at).
    pub fn new(keep: Keep, interval: Option<Time>, ramp_up: bool) -> Tape {
        Tape {
            start_ns: if ramp_up { u64::MAX } else { 0 },
            interval,
            skipped: 0,
            arrivals: 0,
            departures: 0,
            last_ns: 0,
            latency_ns: 0,
            ops: Default::default(),
            sums: [Sum::NONE; 4],
            waited: None,
            little: Little::default(),
            batches: Batches::default(),
            slices: Slices::default(),
            series: Series::new(Grid::new(Time::ZERO, interval)),
            rows: (keep == Keep::All).then(|| Strip::of_job(0)),
            sent: Vec::new(),
        }
    }

    /// Prepares memory for the first `rows` requests, or fewer: memory that a run takes from the system while it is
    /// active costs time and CPU time of the tool, which would be measured with the device.
    pub fn prepare(&mut self, rows: usize) {
        if let Some(kept) = &mut self.rows {
            kept.prepare(rows);
        }
    }

    /// Allocates never-used memory for tens of thousands of rows, whatever this program freed before. A run whose rows
    /// stay in memory does the same, and pays for each page at its first write.
    pub fn take_fresh_memory(&mut self) {
        self.rows.iter_mut().for_each(Strip::take_fresh);
    }

    /// Records as if this number of requests were already recorded: work that is done in ever longer steps is then as
    /// rare as in a run of that length. For measurements of the cost of recording.
    pub fn grow_to(&mut self, requests: u64) {
        self.slices.grow_to(requests);
    }

    /// Slices of the statistics so far.
    pub fn slices(&self) -> usize {
        self.slices.count()
    }

    /// For job number `job` of this number of jobs, whose tapes grow at the same time.
    #[must_use]
    pub fn of_job(mut self, job: u32, jobs: u32) -> Tape {
        if let Some(rows) = &mut self.rows {
            rows.set_job(job);
            rows.among(jobs);
        }
        self
    }

    /// Its rows go to a file. Call it before the first.
    #[must_use]
    pub fn spooled(mut self, spool: &Spool) -> Tape {
        self.rows.iter_mut().for_each(|rows| rows.go_to(spool.line()));
        self
    }

    /// Passes the present rows to the writer of their file, if they have a file: these rows survive if the program is
    /// killed.
    #[cold]
    pub fn hand_over(&mut self) {
        // A program that is killed loses what no writer has. A job with few requests would
        // otherwise keep its rows until a chunk is full.
        self.rows.iter_mut().for_each(Strip::hand_over);
    }

    /// Nothing is recorded after `end_ns`: requests that are still outstanding never completed, and the
    /// last rows go to their file, if they have one. To be called before the file is closed.
    pub fn end(&mut self, end_ns: u64) {
        self.give_up(end_ns);
        self.rows.iter_mut().for_each(Strip::end);
    }

    /// Whether the run should end because there is no memory for more rows; outstanding requests can still be recorded.
    #[inline]
    pub fn must_end(&self) -> bool {
        self.rows.as_ref().is_some_and(Strip::must_end)
    }

    /// Ends the ramp-up: the recorded window starts at `start_ns`.
    #[cold]
    pub fn start_at(&mut self, start_ns: u64) {
        self.start_within(start_ns, start_ns);
    }

    /// As [`start_at`](Tape::start_at) for a job that starts later than others of the run: its series
    /// has the origin of theirs, `origin_ns`, which is no later than `start_ns`.
    #[cold]
    pub fn start_within(&mut self, start_ns: u64, origin_ns: u64) {
        self.start_ns = start_ns;
        self.series = Series::new(Grid::new(Time::from_ns(origin_ns), self.interval));
        self.little.restart(Time::from_ns(start_ns));
        self.rows.iter_mut().for_each(|rows| rows.start_at(start_ns));
    }

    /// Announces `count` requests that are issued at `now_ns`, when they were meant to be.
    #[inline]
    pub fn issued(&mut self, now_ns: u64, count: u64) {
        self.arrivals += count;
        self.little.arrived_many(Time::from_ns(now_ns), count);
    }

    /// Announces a request that is issued now and was meant to start at `intended_ns`.
    pub fn issued_late(&mut self, intended_ns: u64) {
        self.arrivals += 1;
        // In the ramp-up the start is not known. The integral then counts from zero, and it
        // begins anew when the window does.
        let start = if self.start_ns == u64::MAX { 0 } else { self.start_ns };
        self.little.arrived(Time::from_ns(intended_ns), Time::from_ns(start));
    }

    /// Prepares slots for this number of outstanding requests.
    pub fn make_places(&mut self, places: u32) {
        self.sent.resize(places as usize, Sent::NONE);
    }

    /// Keeps a request that is announced in its place, of those of [`make_places`](Tape::make_places), until
    /// [`Reaped::take`] has it back.
    #[inline]
    pub fn keep(&mut self, place: u32, sent: Sent) {
        self.sent[place as usize] = sent;
    }

    /// There are no completions at `end_ns` any more: a request still in its slot never completed.
    fn give_up(&mut self, end_ns: u64) {
        let sent = std::mem::take(&mut self.sent);
        for Sent { request, intended_ns, accepted_ns } in sent {
            if accepted_ns == u64::MAX || self.ramping_up() {
                continue;
            }
            // The request would have taken longer than it has waited. Its wait is a lower bound,
            // which is better than to omit the longest latencies.
            let waited_ns = end_ns.max(self.last_ns).saturating_sub(intended_ns);
            self.ops[request.op as usize].add_outstanding(Time::from_ns(waited_ns));
            if let Some(rows) = &mut self.rows {
                let submit_ns = accepted_ns.max(intended_ns);
                let punctual = Row::punctual(&request, intended_ns, waited_ns, Status::Abandoned);
                rows.push(&Row { submit_ns, ..punctual });
            }
        }
    }

    /// Begins to record what was reaped together at `now_ns`.
    #[inline]
    pub fn reaped(&mut self, now_ns: u64) -> Reaped<'_> {
        self.last_ns = self.last_ns.max(now_ns);
        Reaped::new(self, now_ns)
    }

    /// Moves what was reaped together to where it is kept.
    #[inline]
    fn close(&mut self, op: usize, completed: Time) {
        let sum = std::mem::replace(&mut self.sums[op], Sum::NONE);
        // Up to here times are nanoseconds, as the clock gives them. Sums of picoseconds need
        // more than 64 bits: they overflow after 213 days of latency, which a deep queue
        // collects in hours.
        let latency = Sums {
            ps: u128::from(sum.latency_ns) * u128::from(PS_PER_NS),
            ps_min: sum.latency_ns_min * PS_PER_NS,
            ps_max: sum.latency_ns_max * PS_PER_NS,
        };
        let sums = OpSums { count: sum.count, bytes: sum.bytes, latency };
        let totals = &mut self.ops[op];
        totals.bytes += sums.bytes;
        totals.latencies.sums.add(&latency);
        self.series.add_many(Op::ALL[op], &sums, completed);
    }

    #[cold]
    fn close_slice(&mut self, end: Time) {
        let lanes = lanes(&self.ops, self.waited.as_deref());
        self.slices.close(self.departures, end, lanes);
    }

    /// How precise the figures are by now; `None` during the ramp-up.
    pub fn evidence(&self) -> Option<Evidence> {
        (!self.ramping_up()).then(|| {
            let end = Time::from_ns(self.last_ns);
            let mut batches = self.batches.clone();
            batches.end(end);
            let start = Time::from_ns(self.start_ns);
            let mut slices = self.slices.clone();
            slices.end(end, lanes(&self.ops, self.waited.as_deref()));
            let open_latencies = self.ops.iter().any(|totals| totals.unanswered() > 0);
            Evidence { start, end, batches, slices, open_latencies }
        })
    }

    /// Whether the ramp-up is not over yet.
    pub fn ramping_up(&self) -> bool {
        self.start_ns == u64::MAX
    }

    /// Requests completed since the start of the run, with ramp-up and errors.
    pub fn completed(&self) -> u64 {
        self.departures
    }

    /// Sum of the latencies recorded, errors included, in ns: what a live view makes a mean from.
    pub fn latency_ns_sum(&self) -> u64 {
        self.latency_ns
    }

    /// What is recorded so far: some microseconds of work, for a few times a second.
    #[cold]
    pub fn glance(&self) -> LiveSnapshot {
        let waited = self.waited.iter().map(|waited| &waited.ops);
        glance(std::iter::once(&self.ops).chain(waited))
    }

    /// Requests announced and not yet completed.
    pub fn outstanding(&self) -> u64 {
        self.arrivals - self.departures
    }

    /// Ends the run at `end_ns` (or with the last completion, where that is later).
    pub fn finish(mut self, end_ns: u64) -> Recording {
        self.end(end_ns);
        let end = Time::from_ns(end_ns.max(self.last_ns));
        let skip_unfinished = self.start_ns == u64::MAX;
        let start = if skip_unfinished { end } else { Time::from_ns(self.start_ns).min(end) };
        // Requests that did not wait were in the device for all of their latency. Their
        // histogram serves both figures, and only those that waited are counted twice while the
        // run goes on.
        let mut inside = Latencies::default();
        self.ops.iter().for_each(|totals| inside.merge(&totals.latencies));
        let last = Time::from_ns(self.last_ns);
        self.batches.end(last);
        self.slices.end(last, lanes(&self.ops, self.waited.as_deref()));
        let mut ops = self.ops;
        if let Some(waited) = &self.waited {
            inside.merge(&waited.inside);
            ops.iter_mut().zip(&waited.ops).for_each(|(all, some)| all.merge(some));
        }
        let mut recording = Recording {
            start,
            end,
            interval: self.interval,
            skipped: self.skipped,
            left_out: LeftOut::default(),
            skip_unfinished,
            request_loop: RequestLoop::Open { limit: None },
            announced: true,
            arrivals: self.arrivals,
            departures: self.departures,
            ops,
            inside,
            little: self.little,
            batches: self.batches,
            slices: self.slices,
            series: self.series,
            rows: self.rows.map(Rows::of),
        };
        recording.little.advance(end);
        recording.series.settle();
        recording
    }
}

/// The state of all lanes.
fn lanes<'a>(ops: &'a [Totals; 4], waited: Option<&'a Waited>) -> [View<'a>; LANES] {
    let latest = |op: usize| waited.map(|waited| &waited.ops[op]);
    let lane = |op: usize| ops[op].view(latest(op));
    // A request that did not wait was in the device for all of its time.
    let mut inside = View {
        histograms: ops.iter().map(|totals| &totals.latencies.histogram).collect(),
        sums: ops.iter().map(|totals| &totals.latencies.sums).sum(),
    };
    inside.histograms.retain(|histogram| histogram.total() > 0);
    if let Some(waited) = waited {
        inside.histograms.push(&waited.inside.histogram);
        inside.sums.add(&waited.inside.sums);
    }
    [lane(0), lane(1), lane(2), lane(3), inside]
}
