//! From what was recorded to the figures of a result.

use serde::{Deserialize, Serialize};
use ssdyno_block::{Op, Request, Time, counted};
use ssdyno_figures::{
    ByOp, Confidence, Histogram, Invariant, Latency, LatencyAtMost, LatencyBin, LatencyByOp,
    LiveSnapshot, RunResult, SCHEMA_VERSION, SeriesPoint, Warning, WarningKind, picoseconds, rank,
    seconds,
};

use crate::batches::Batches;
use crate::confidence::Source;
use crate::little::Little;
use crate::quantiles::{Exact, SHARES, Wanted};
use crate::rows::{RowNames, Rows};
use crate::series::Series;
use crate::side_by_side;
use crate::slices::Slices;
use crate::sums::Sums;
use crate::totals::{ErrorTimes, Latencies, Totals, is_data};

/// Bins an octave in a published distribution, equally wide: 1.6 to 3.1 % of their latency.
const BINS_PER_OCTAVE: usize = 32;

/// How a load issues its requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum RequestLoop {
    /// Each request is issued because another one has completed.
    Closed,
    /// Each request has a moment of its own.
    Open {
        /// Largest number of outstanding requests; those beyond it wait. `None` without a bound.
        limit: Option<u64>,
    },
}

impl RequestLoop {
    /// Of a load for which both are given; `limit` counts in an open loop only.
    pub fn new(is_closed: bool, limit: Option<u64>) -> RequestLoop {
        match is_closed {
            true => RequestLoop::Closed,
            false => RequestLoop::Open { limit },
        }
    }

    /// Adds another job of the same load.
    fn merge(&mut self, other: RequestLoop) {
        *self = match (*self, other) {
            (RequestLoop::Closed, RequestLoop::Closed) => RequestLoop::Closed,
            (
                RequestLoop::Open { limit: Some(mine) },
                RequestLoop::Open { limit: Some(theirs) },
            ) => RequestLoop::Open { limit: Some(mine.saturating_add(theirs)) },
            _ => RequestLoop::Open { limit: None },
        };
    }
}

/// Requests that completed inside the window, and are in no figure of requests. The device did work for them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct LeftOut {
    /// Number of all.
    pub requests: u64,
    /// Bytes of the writes among them, where they are known.
    pub written_bytes: u64,
}

impl LeftOut {
    pub(crate) fn add(&mut self, request: &Request) {
        self.requests += 1;
        if request.op == Op::Write {
            self.written_bytes += u64::from(request.length_bytes);
        }
    }

    fn merge(&mut self, other: LeftOut) {
        self.requests += other.requests;
        self.written_bytes += other.written_bytes;
    }
}

/// A finished recording. It travels without its rows, which stay where they were recorded.
#[derive(Debug, Serialize, Deserialize)]
pub struct Recording {
    #[serde(with = "picoseconds")]
    pub(crate) start: Time,
    #[serde(with = "picoseconds")]
    pub(crate) end: Time,
    /// Interval of the series that was asked for. Recordings joined from several hosts are recorded
    /// separately.
    #[serde(skip)]
    pub(crate) interval: Option<Time>,
    pub(crate) skipped: u64,
    pub(crate) left_out: LeftOut,
    pub(crate) skip_unfinished: bool,
    pub(crate) announced: bool,
    pub(crate) request_loop: RequestLoop,
    pub(crate) arrivals: u64,
    pub(crate) departures: u64,
    pub(crate) ops: [Totals; 4],
    pub(crate) inside: Latencies,
    pub(crate) little: Little,
    pub(crate) batches: Batches,
    pub(crate) slices: Slices,
    pub(crate) series: Series,
    #[serde(skip)]
    pub(crate) rows: Option<Rows>,
}

impl Recording {
    /// The recordings of several jobs as one. The jobs share a clock and the start of the window,
    /// and each kept the same; the window ends with the last of them. `None` without any.
    pub fn merge(parts: Vec<Recording>) -> Option<Recording> {
        let end = parts.iter().map(|part| part.end).max()?;
        // A job that ended in its ramp-up has no window of its own.
        let started = parts.iter().filter(|part| !part.skip_unfinished);
        let start = started.map(|part| part.start).min().unwrap_or(end);
        let together = (parts.len() > 1).then(|| {
            let batches: Vec<_> = parts.iter().map(|part| (part.start, &part.batches)).collect();
            let slices: Vec<_> = parts.iter().map(|part| (part.start, &part.slices)).collect();
            let batches = side_by_side::batches(&batches, start, end);
            (batches, side_by_side::slices(&slices, start, end))
        });
        let mut rows = Vec::new();
        let mut parts = parts.into_iter().map(|mut part| {
            part.little.advance(end);
            // Each part knows its own ramp-up only, and not what it wrote then.
            part.left_out.requests += if part.start > start { part.skipped } else { 0 };
            rows.extend(part.rows.take());
            part
        });
        let mut all = parts.next()?;
        for part in parts {
            all.skipped += part.skipped;
            all.left_out.merge(part.left_out);
            all.skip_unfinished &= part.skip_unfinished;
            all.request_loop.merge(part.request_loop);
            all.arrivals += part.arrivals;
            all.departures += part.departures;
            all.ops.iter_mut().zip(&part.ops).for_each(|(mine, theirs)| mine.merge(theirs));
            all.inside.merge(&part.inside);
            all.little.merge(&part.little);
            all.series.merge(part.series);
        }
        if let Some(together) = together {
            (all.batches, all.slices) = together;
        }
        (all.start, all.end) = (start, end);
        all.rows = match rows.len() {
            0 | 1 => rows.pop(),
            _ => Some(Rows::merge(rows)),
        };
        Some(all)
    }

    /// States how the load issued its requests. Only an open loop can be overloaded.
    pub fn set_request_loop(&mut self, request_loop: RequestLoop) {
        self.request_loop = request_loop;
    }

    /// Whether there is a recorded window: the ramp-up, if there was one, ended in time.
    pub fn has_started(&self) -> bool {
        !self.skip_unfinished
    }

    /// Start of the recorded window.
    pub fn start(&self) -> Time {
        self.start
    }

    /// End of the recorded window.
    pub fn end(&self) -> Time {
        self.end
    }

    /// Length of the recorded window.
    pub fn window(&self) -> Time {
        self.end.saturating_sub(self.start)
    }

    /// Requests completed without error inside the window.
    pub fn requests(&self) -> u64 {
        self.ops.iter().map(|t| t.latencies.histogram.total()).sum()
    }

    /// Requests of `op` completed without error inside the window.
    pub fn count(&self, op: Op) -> u64 {
        self.totals(op).latencies.histogram.total()
    }

    /// Requests that ended in an error inside the window.
    pub fn errors(&self) -> u64 {
        self.ops.iter().map(|t| t.errors).sum()
    }

    /// Requests that never completed, see [`RunResult::unanswered`].
    pub fn unanswered(&self) -> u64 {
        self.ops.iter().map(Totals::unanswered).sum()
    }

    /// Requests of the ramp-up of one job that completed while others were recorded.
    pub fn left_out(&self) -> LeftOut {
        self.left_out
    }

    /// Requests among [`requests`](Recording::requests) that spent no time in the device, such as hits in a cache before it.
    pub fn outside_device(&self) -> u64 {
        self.inside.histogram.count_in(Histogram::bucket(0))
    }

    /// Latencies by operation; `None` without requests.
    pub(crate) fn latency(&self) -> Option<LatencyByOp> {
        self.latency_by_op(&self.histogram_of_all(), self.exact().as_mut())
    }

    /// Requests that completed before the window began.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Bytes of the requests of `op` completed without error inside the window.
    pub fn bytes(&self, op: Op) -> u64 {
        self.ops[op as usize].bytes
    }

    /// Mean time that requests waited before the device accepted them, in ns (S3-37); `None`
    /// without requests.
    pub fn outside_wait_ns_mean(&self) -> Option<f64> {
        let all: u128 = self.ops.iter().map(|t| t.latencies.sums.ps).sum();
        // A part of a run does not tell what was inside the device.
        let known = self.inside.histogram.total() > 0;
        let wait = if known { all.saturating_sub(self.inside.sums.ps) } else { 0 };
        (self.requests() > 0).then(|| wait as f64 / 1e3 / self.requests() as f64)
    }

    /// Mean and largest number of requests in the system over the window; `None` for an empty
    /// window or where arrivals were not announced.
    pub fn outstanding(&mut self) -> Option<(f64, u64)> {
        if !self.announced {
            return None;
        }
        let mean = self.little.mean_outstanding(self.start, self.end)?;
        Some((mean, self.little.outstanding_max()))
    }

    /// Shows `look`, for each point of the series in turn, the snapshot that a viewer would have seen at its end: a run
    /// that ends before the first look also has a history.
    pub fn snapshots(&mut self, look: &mut dyn FnMut(&LiveSnapshot)) {
        self.series.snapshots(self.end, look);
    }

    /// The rows, for `RunDirectory::write_parquet`; `None`
    /// where they were not kept.
    pub fn rows(&self) -> Option<&Rows> {
        self.rows.as_ref()
    }

    /// Says what the jobs and devices of its rows are called.
    pub fn name_rows(&mut self, names: RowNames) {
        self.rows.iter_mut().for_each(|rows| rows.name(names.clone()));
    }

    /// Writes every figure that follows from requests alone into `result`: counts, rates,
    /// latencies, intervals, series, distribution, the window's length; appends to its invariants
    /// and notes. The rest of `result` is left as it is.
    pub fn fill(&mut self, result: &mut RunResult) {
        let seconds = self.window().as_s_f64();
        let per_second = |n: u64| if seconds > 0.0 { n as f64 / seconds } else { 0.0 };
        let moved = Op::ALL.iter().filter(|op| is_data(**op)).map(|op| self.bytes(*op)).sum();
        result.schema_version = SCHEMA_VERSION;
        result.requests = self.requests();
        result.errors = self.errors();
        result.iops = per_second(result.requests);
        result.throughput_bytes_per_second = per_second(moved);
        result.requests_by_op = ByOp::from_fn(|op| self.count(op));
        result.simulated_seconds = seconds;
        result.unanswered = self.unanswered();
        let all = self.histogram_of_all();
        let mut exact = self.exact();
        result.latency_ns = self.latency_by_op(&all, exact.as_mut());
        let is_exact = exact.as_ref().is_some_and(|exact| exact.error().is_none());
        let error = if is_exact { 0.0 } else { Histogram::RELATIVE_ERROR };
        result.percentile_error_max = result.latency_ns.as_ref().map(|_| error);
        if let Some(error) = exact.as_ref().and_then(Exact::error) {
            result.notes.push(format!(
                "the rows cannot be read back ({error}): percentiles are within 0.4 %, not exact"
            ));
        }
        result.device_latency_ns = self.device_latency(result.latency_ns.as_ref());
        result.confidence = self.confidence(result, &all, exact);
        result.latency_distribution =
            ByOp::from_fn(|op| bins(&self.totals(op).latencies.histogram));
        result.series = self.series.points(self.end);
        result.latency_map = self.series.latency_map(self.end);
        self.check(result, moved);
        self.warn(result);
    }

    /// Exact percentiles, where rows were kept.
    fn exact(&self) -> Option<Exact<'_>> {
        let rows = self.rows.as_ref()?;
        // The ranks of the remaining rows are unknown.
        (rows.lost().0 == 0).then(|| Exact::new(rows))
    }

    fn totals(&self, op: Op) -> &Totals {
        &self.ops[op as usize]
    }

    pub(crate) fn histogram_of_all(&self) -> Histogram {
        let mut all = Histogram::default();
        self.ops.iter().for_each(|t| all.merge(&t.with_unanswered()));
        all
    }

    fn latency_by_op(&self, all: &Histogram, exact: Option<&mut Exact<'_>>) -> Option<LatencyByOp> {
        if all.total() == 0 {
            return None;
        }
        let histograms = self.ops.each_ref().map(Totals::with_unanswered);
        let used: Vec<Op> =
            Op::ALL.into_iter().filter(|op| histograms[*op as usize].total() > 0).collect();
        let want = |op, histogram| Wanted { op, histogram, ranks: ranks(histogram) };
        let mut wanted = vec![want(None, all)];
        // One operation alone is all of them.
        if used.len() > 1 {
            wanted.extend(used.iter().map(|op| want(Some(*op), &histograms[*op as usize])));
        }
        let mut values: Vec<Vec<f64>> = match exact {
            Some(exact) => exact.find(&wanted),
            None => wanted.iter().map(Wanted::estimated).collect(),
        };
        if let ([_], [all]) = (&used[..], &values[..]) {
            values.push(all.clone());
        }
        let mut values = values.into_iter();
        let mut by_op = LatencyByOp {
            all: self.latency_of(&self.ops.iter().collect::<Vec<_>>(), values.next()?),
            ..LatencyByOp::default()
        };
        for (op, values) in used.into_iter().zip(values) {
            let latency = Some(self.latency_of(&[self.totals(op)], values));
            match op {
                Op::Read => by_op.read = latency,
                Op::Write => by_op.write = latency,
                Op::Trim => by_op.trim = latency,
                Op::Flush => by_op.flush = latency,
            }
        }
        Some(by_op)
    }

    fn latency_of(&self, totals: &[&Totals], percentiles: Vec<f64>) -> Latency {
        let answered: u64 = totals.iter().map(|t| t.latencies.histogram.total()).sum();
        let mut sums: Sums = totals.iter().map(|t| &t.latencies.sums).sum();
        let in_vain: Vec<&Latencies> =
            totals.iter().filter_map(|t| t.unanswered.as_deref()).collect();
        if in_vain.is_empty() {
            return latency(&sums, answered, &percentiles);
        }
        let count = answered + in_vain.iter().map(|u| u.histogram.total()).sum::<u64>();
        in_vain.iter().for_each(|in_vain| sums.add(&in_vain.sums));
        let figures = latency(&sums, count, &percentiles);
        Latency { at_most: Some(at_most(totals, &in_vain, count, &figures)), ..figures }
    }

    /// `whole` is the latency from the start: no request was in the device for longer, so no
    /// percentile is higher, whatever the bins say.
    fn device_latency(&self, whole: Option<&LatencyByOp>) -> Option<Latency> {
        let whole = whole?.all;
        let inside = &self.inside;
        let count = inside.histogram.total();
        if count == 0 {
            return None;
        }
        let wanted =
            Wanted { op: None, histogram: &inside.histogram, ranks: ranks(&inside.histogram) };
        let most = match whole.at_most {
            None => [whole.p50, whole.p95, whole.p99, whole.p99_9],
            // They include requests without a completion; these do not.
            Some(_) => [f64::INFINITY; 4],
        };
        let percentiles: Vec<f64> =
            wanted.estimated().into_iter().zip(most).map(|(p, most)| p.min(most)).collect();
        Some(latency(&inside.sums, count, &percentiles))
    }

    pub(crate) fn confidence(
        &self,
        result: &RunResult,
        all: &Histogram,
        exact: Option<Exact<'_>>,
    ) -> Option<Confidence> {
        let source = Source {
            ops: self.ops.each_ref().map(Totals::with_unanswered),
            inside: &self.inside.histogram,
            all,
            exact,
            batches: &self.batches,
            slices: &self.slices,
            start: self.start,
        };
        source.confidence(result)
    }

    fn check(&mut self, result: &mut RunResult, moved: u64) {
        if self.announced {
            let open = self.arrivals as i128 - i128::from(self.departures);
            result.invariants.push(Invariant {
                name: "conservation_of_requests".into(),
                holds: open == 0 || (open > 0 && result.partial),
                detail: format!(
                    "{} issued = {} completed + {open} in flight at the end",
                    self.arrivals, self.departures
                ),
            });
            result.invariants.extend(self.little.check(self.start, self.end));
        }
        result.invariants.push(series_sums(result, moved));
    }

    fn warn(&self, result: &mut RunResult) {
        if self.skip_unfinished || (self.skipped > 0 && result.requests == 0) {
            let skipped = self.skipped;
            result.notes.push(format!(
                "the run ended during its ramp-up ({}): nothing was recorded; run longer or shorten \
                 the ramp-up",
                counted(skipped, "request", "requests")
            ));
        } else if self.left_out.requests > 0 {
            let message = "the ramp-up of a job lies within the recorded window: the rates of the run contain its time and not its requests";
            let warning = Warning::new(WarningKind::WarmUp, message);
            result.warnings.push(warning.with_help("use the figures of the jobs"));
        } else if self.skipped > result.requests {
            let (skipped, recorded) = (self.skipped, result.requests);
            result.notes.push(format!(
                "the figures cover the last {recorded} requests and not the ramp-up before them ({})",
                counted(skipped, "request", "requests")
            ));
        }
        if result.requests > 0 && self.window() == Time::ZERO {
            result.notes.push(
                "no simulated time passed, because these requests take no time on this device; there are no rates"
                    .into(),
            );
        }
        if result.errors > 0 {
            let errors = counted(result.errors, "request", "requests");
            let times = self.ops.iter().map(|totals| totals.errors_at);
            let times = times.fold(None, ErrorTimes::joined);
            let when = times.map(|times| when_errors(times, self.start)).unwrap_or_default();
            let others = match result.unanswered {
                0 => "latencies and rates include only the others",
                _ => "rates include only the others",
            };
            result.notes.push(format!("{errors} ended in an error{when}; {others}"));
        }
        if let Some((lost, error)) =
            self.rows.as_ref().map(Rows::lost).filter(|(lost, _)| *lost > 0)
        {
            result.rows_lost = lost;
            let why = match error {
                Some(error) => format!("the disk of the results accepted no more data ({error})"),
                None => "the disk of the results could not keep up with the load".to_owned(),
            };
            result.notes.push(format!(
                "the {} not kept: {why}; all figures include these requests, and percentiles are within 0.4 %",
                if lost == 1 {
                    "row of 1 request was".to_owned()
                } else {
                    format!("rows of {lost} requests were")
                }
            ));
        }
        if result.unanswered > 0 {
            result.notes.push(format!(
                "{} never completed (aborted, given up, or outstanding at the end): each counts with the time until the run gave up, so figures marked ≥ are lower bounds",
                match result.unanswered {
                    1 => "1 request was".to_owned(),
                    many => format!("{many} requests were"),
                }
            ));
        }
        let used = self.series.grid().interval();
        if let Some(asked) = self.interval.filter(|asked| *asked < used) {
            result.notes.push(format!(
                "the series has an interval of {used} instead of {asked}: the run is too long for \
                 more points"
            ));
        }
        self.judge_latencies(result);
    }
}

fn ranks(histogram: &Histogram) -> Vec<u64> {
    SHARES.iter().map(|share| rank(*share, histogram.total())).collect()
}

/// `percentiles` in the order of [`SHARES`]. They were rounded (down to a nanosecond, or to the
/// middle of a bin), so they are kept between the exact extremes.
fn latency(sums: &Sums, count: u64, percentiles: &[f64]) -> Latency {
    let mean = sums.ps as f64 / count as f64 / 1e3;
    let (min, max) = (sums.ps_min as f64 / 1e3, sums.ps_max as f64 / 1e3);
    let at = |i: usize| percentiles.get(i).copied().unwrap_or(max).clamp(min, max);
    let [p50, p95, p99, p99_9] = std::array::from_fn(at);
    Latency { mean, min, p50, p95, p99, p99_9, max, at_most: None }
}

/// How long the percentiles of `count` requests can be at most: as if those without a completion had taken
/// forever. Where each of them was waited for longer than a percentile is, that is certain.
fn at_most(
    totals: &[&Totals],
    in_vain: &[&Latencies],
    count: u64,
    figures: &Latency,
) -> LatencyAtMost {
    let mut answered = Histogram::default();
    totals.iter().for_each(|totals| answered.merge(&totals.latencies.histogram));
    let shortest = in_vain.iter().map(|u| u.sums.ps_min / 1_000).min().unwrap_or(0);
    let most = |share: f64, figure: f64| {
        if Histogram::bucket(figure as u64) < Histogram::bucket(shortest) {
            return Some(figure);
        }
        let (bucket, _) = answered.locate(rank(share, count))?;
        Some((Histogram::bounds(bucket).1 as f64).max(figure))
    };
    let [p50, p95, p99, p99_9] = SHARES;
    LatencyAtMost {
        p50: most(p50, figures.p50),
        p95: most(p95, figures.p95),
        p99: most(p99, figures.p99),
        p99_9: most(p99_9, figures.p99_9),
    }
}

fn bins(histogram: &Histogram) -> Vec<LatencyBin> {
    let bin = |(from_ns, to_ns, count)| LatencyBin { from_ns, to_ns, count };
    histogram.bins(BINS_PER_OCTAVE).into_iter().map(bin).collect()
}

/// When the first and the last request failed, of a run that began at `start`.
fn when_errors(times: ErrorTimes, start: Time) -> String {
    // The edges of the points of the series would do for a long stretch. With one timeout of 30 s they lie in the
    // middle of the wait, where nothing failed yet.
    let text = |at: Time| seconds(at.saturating_sub(start).as_s_f64());
    match (text(times.first), text(times.last)) {
        (first, last) if first == last => format!(" at {first} of the run"),
        (first, last) => format!(" between {first} and {last} of the run"),
    }
}

fn series_sums(result: &RunResult, moved: u64) -> Invariant {
    let (series, requests, failed) = (&result.series, result.requests, result.errors);
    let in_series: u64 = series.iter().map(SeriesPoint::requests).sum();
    let bytes: u64 = series.iter().map(|p| p.read_bytes + p.write_bytes).sum();
    let errors: u64 = series.iter().map(|p| p.errors).sum();
    let of_errors = match errors.max(failed) {
        0 => String::new(),
        _ => format!(", {errors} of {}", counted(failed, "error", "errors")),
    };
    Invariant {
        name: "series_sums".into(),
        holds: in_series == requests && bytes == moved && errors == failed,
        detail: format!(
            "{in_series} of {}{of_errors}, {bytes} of {moved} bytes in the series",
            counted(requests, "request", "requests")
        ),
    }
}
