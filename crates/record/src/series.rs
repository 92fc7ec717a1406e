//! Figures over time, by the moment of completion.

use serde::{Deserialize, Serialize};
use ssdyno_block::{Op, Time};
use ssdyno_figures::{Histogram, LatencyMap, LiveSnapshot, SeriesPoint};

use crate::buckets::{Grid, Merge, Track};
use crate::latency_map::latency_map;
use crate::sparse::{Gathered, SparseHistogram};
use crate::sums::Sums;
use crate::totals::{Latencies, Totals, is_data};

/// The figures of the requests of one operation that completed together or in one stretch of time, without errors.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct OpSums {
    pub(crate) count: u64,
    pub(crate) bytes: u64,
    pub(crate) latency: Sums,
}

impl OpSums {
    #[inline]
    fn add(&mut self, other: &OpSums) {
        self.count += other.count;
        self.bytes += other.bytes;
        self.latency.add(&other.latency);
    }
}

/// One operation in one stretch of time.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct OpStretch {
    sums: OpSums,
    latencies: SparseHistogram,
    errors: u64,
    /// Those among the errors that were given up without a completion. Hardly any stretch has some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    given_up: Option<Box<GivenUp>>,
}

/// Requests that were given up, with the time that they were waited for.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct GivenUp {
    sums: OpSums,
    waits: SparseHistogram,
}

impl GivenUp {
    fn merge(&mut self, other: &GivenUp) {
        self.sums.add(&other.sums);
        self.waits.merge(&other.waits);
    }
}

/// The `distribution` of latencies, with their sum and extremes.
fn latencies_of(sums: &OpSums, distribution: &SparseHistogram) -> Latencies {
    let mut latencies = Latencies { sums: sums.latency, ..Latencies::default() };
    distribution.count_into(&mut latencies.histogram);
    latencies
}

/// The completions in one stretch of time, by operation.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Stretch {
    ops: [OpStretch; 4],
    /// Moments at which requests completed, of each job by itself.
    #[serde(default)]
    moments: u64,
}

impl Merge for Stretch {
    fn merge(&mut self, other: &Stretch) {
        self.moments += other.moments;
        for (mine, theirs) in self.ops.iter_mut().zip(&other.ops) {
            mine.sums.add(&theirs.sums);
            mine.latencies.merge(&theirs.latencies);
            mine.errors += theirs.errors;
            if let Some(theirs) = &theirs.given_up {
                mine.given_up.get_or_insert_default().merge(theirs);
            }
        }
    }
}

/// The series of a run, on a [`Grid`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Series {
    track: Track<Stretch>,
    /// Latencies of the stretch that was used last, by operation, which are not in it yet.
    #[serde(skip)]
    gathered: [Gathered; 4],
    /// The moment of the last completion.
    #[serde(skip)]
    last: Option<Time>,
}

impl Series {
    /// An empty series.
    pub fn new(grid: Grid) -> Series {
        Series { track: Track::new(grid), gathered: Default::default(), last: None }
    }

    /// The grid as it is now.
    pub fn grid(&self) -> Grid {
        self.track.grid()
    }

    /// Counts a request that completed without error.
    #[inline]
    pub fn add(&mut self, op: Op, bytes: u64, latency: Time, completed: Time) {
        self.add_many(op, &OpSums { count: 1, bytes, latency: Sums::of(latency) }, completed);
        self.gathered[op as usize].add(latency.as_ns(), 1);
    }

    /// The stretch that contains `completed`; its latencies are collected from now on.
    #[inline]
    fn stretch(&mut self, completed: Time) -> &mut Stretch {
        if !self.track.is_in_current(completed) {
            self.settle();
        }
        self.track.at(completed)
    }

    /// Moves the latencies that were gathered to their stretch. A recording that is finished is settled: what is gathered
    /// does not travel.
    #[cold]
    pub(crate) fn settle(&mut self) {
        if let Some(stretch) = self.track.current() {
            for (gathered, op) in self.gathered.iter_mut().zip(&mut stretch.ops) {
                gathered.move_to(&mut op.latencies);
            }
        }
    }

    /// Counts the latencies of requests that completed together; [`add_many`](Series::add_many)
    /// receives their sums.
    #[inline]
    pub(crate) fn add_latencies(&mut self, op: Op, latency_ns: u64, count: u64, completed: Time) {
        self.stretch(completed);
        self.gathered[op as usize].add(latency_ns, count);
    }

    /// Counts requests that completed together.
    #[inline]
    pub(crate) fn add_many(&mut self, op: Op, sums: &OpSums, completed: Time) {
        let is_new = self.last.replace(completed) != Some(completed);
        let stretch = self.stretch(completed);
        stretch.moments += u64::from(is_new);
        stretch.ops[op as usize].sums.add(sums);
    }

    /// The number of moments at which requests completed. It is less than the number of requests if several complete
    /// together.
    pub(crate) fn moments(&self) -> u64 {
        self.track.buckets().iter().map(|stretch| stretch.moments).sum()
    }

    /// Adds the series of another job, which has the same origin and was made with the same
    /// interval.
    pub(crate) fn merge(&mut self, mut other: Series) {
        self.settle();
        other.settle();
        self.track.merge(other.track);
    }

    /// Counts a request that ended in an error.
    pub fn add_error(&mut self, op: Op, completed: Time) {
        self.stretch(completed).ops[op as usize].errors += 1;
    }

    /// Counts a request that was given up at `at`, after it was waited for that long; it is an error, too.
    #[cold]
    pub(crate) fn add_given_up(&mut self, op: Op, waited: Time, at: Time) {
        self.add_error(op, at);
        let sums = OpSums { count: 1, bytes: 0, latency: Sums::of(waited) };
        let mut one = GivenUp { sums, ..GivenUp::default() };
        one.waits.push(Histogram::bucket(waited.as_ns()) as u16, 1);
        self.stretch(at).ops[op as usize].given_up.get_or_insert_default().merge(&one);
    }

    /// Moves everything so that the origin is at `origin`, on a grid of `interval` or a coarser one: each stretch goes to
    /// the one that holds its middle. Stretches stay whole: what completed in one may be up to half an interval
    /// off.
    pub(crate) fn on_grid(&mut self, from: Grid, by: impl Fn(Time) -> Time) -> Series {
        self.settle();
        // A stretch has no times of its single requests, so it cannot be divided. Its middle is
        // at most half an interval from each of them.
        let mut moved = Series::new(from);
        let own = self.track.grid();
        for (at, stretch) in self.track.buckets().iter().enumerate() {
            let middle = own.start(at).saturating_add(own.interval() / 2);
            moved.track.at(by(middle)).merge(stretch);
        }
        moved
    }

    /// The stretches that lie within `from` and `to` as a whole, when the first begins and the last ends; `None` where
    /// there are none.
    pub(crate) fn within(&mut self, from: Time, to: Time) -> Option<(Series, Time, Time)> {
        self.settle();
        let grid = self.track.grid();
        // A stretch that begins before `from` contains completions from before. So the window
        // begins with the next stretch.
        let first = grid.index(from) + usize::from(grid.start(grid.index(from)) < from);
        let past = grid.index(to);
        let (start, end) = (grid.start(first), grid.start(past));
        if start >= end {
            return None;
        }
        let mut part = Series::new(grid.from(start));
        for at in first..past.min(self.track.buckets().len()) {
            part.track.at(grid.start(at)).merge(&self.track.buckets()[at]);
        }
        Some((part, start, end))
    }

    /// The contents of all stretches, by operation. Times inside the device are not among it, nor requests that were
    /// outstanding at the end.
    pub(crate) fn totals(&mut self) -> [Totals; 4] {
        self.settle();
        let mut all = Stretch::default();
        self.track.buckets().iter().for_each(|stretch| all.merge(stretch));
        all.ops.map(|OpStretch { sums, latencies, errors, given_up }| Totals {
            bytes: sums.bytes,
            latencies: latencies_of(&sums, &latencies),
            errors,
            unanswered: given_up.map(|all| Box::new(latencies_of(&all.sums, &all.waits))),
            ..Totals::default()
        })
    }

    /// The points up to `end`, without gaps; what completed at `end` itself is in the last one.
    pub fn points(&mut self, end: Time) -> Vec<SeriesPoint> {
        let stretches = self.stretches(end);
        let (grid, origin) = (self.track.grid(), self.track.grid().origin());
        let point = |(i, stretch)| {
            let (from, to) = (grid.start(i), grid.start(i + 1).min(end));
            point(stretch, from.saturating_sub(origin), to.saturating_sub(from))
        };
        stretches.iter().enumerate().map(point).collect()
    }

    /// How many requests took how long in the points up to `end`.
    pub(crate) fn latency_map(&mut self, end: Time) -> Option<LatencyMap> {
        let stretches = self.stretches(end);
        let (grid, origin) = (self.track.grid(), self.track.grid().origin());
        let all = stretches.into_iter().enumerate().map(|(at, stretch)| {
            let mut latencies = SparseHistogram::default();
            stretch.ops.iter().for_each(|op| latencies.merge(&op.latencies));
            (grid.start(at).saturating_sub(origin).as_s_f64(), latencies)
        });
        latency_map(&all.collect::<Vec<_>>(), end.saturating_sub(origin).as_s_f64())
    }

    /// Shows `look` what it would have seen at the end of each point.
    pub(crate) fn snapshots(&mut self, end: Time, look: &mut dyn FnMut(&LiveSnapshot)) {
        let stretches = self.stretches(end);
        let grid = self.track.grid();
        let mut seen = LiveSnapshot::default();
        for (i, stretch) in stretches.iter().enumerate() {
            // The figures are cumulative, as a live view has them. A viewer computes rates from the
            // difference of two snapshots.
            seen.now = grid.start(i + 1).min(end);
            for (op, part) in Op::ALL.into_iter().zip(&stretch.ops) {
                seen.completed += part.sums.count + part.errors;
                seen.errors += part.errors;
                seen.bytes += if is_data(op) { part.sums.bytes } else { 0 };
                seen.requests_by_op.add(op, part.sums.count);
                seen.bytes_by_op.add(op, part.sums.bytes);
                let ns = part.sums.latency.ns();
                seen.latency_ns_sum = seen.latency_ns_sum.saturating_add(ns);
                part.latencies.count_into(&mut seen.histogram);
            }
            look(&seen);
        }
    }

    /// The stretches up to `end`, without gaps.
    fn stretches(&mut self, end: Time) -> Vec<Stretch> {
        self.settle();
        let origin = self.track.grid().origin();
        if end > origin {
            // The series reaches to the last moment before the end. A run that ends in silence
            // would otherwise lose the stretches in which nothing completed.
            self.track.seek(Time::from_ps(end.as_ps() - 1));
        }
        let grid = self.track.grid();
        let mut stretches = self.track.buckets().to_vec();
        // A completion exactly at the end of the last stretch opened another one of length
        // zero. It has no time to divide by, so it joins the stretch before.
        if stretches.len() > 1
            && grid.start(stretches.len() - 1) >= end
            && let Some(empty) = stretches.pop()
            && let Some(last) = stretches.last_mut()
        {
            last.merge(&empty);
        }
        stretches
    }
}

fn point(stretch: &Stretch, start: Time, length: Time) -> SeriesPoint {
    let mut all = OpStretch::default();
    for op in stretch.ops.iter() {
        all.sums.add(&op.sums);
        all.latencies.merge(&op.latencies);
        all.errors += op.errors;
    }
    let seconds = length.as_s_f64();
    let per_second = |amount: u64| if seconds > 0.0 { amount as f64 / seconds } else { 0.0 };
    let of = |op: Op| &stretch.ops[op as usize].sums;
    let moved = |op: Op| if is_data(op) { of(op).bytes } else { 0 };
    let (read_bytes, write_bytes) = (moved(Op::Read), moved(Op::Write));
    let OpSums { count, latency, .. } = all.sums;
    // The middle of a bucket may lie beyond the longest latency, which is exact.
    let most = latency.ps_max as f64 / 1e3;
    let percentile = |share| all.latencies.at_share(share).map(|ns| ns.min(most));
    SeriesPoint {
        start_seconds: start.as_s_f64(),
        length_seconds: seconds,
        reads: of(Op::Read).count,
        writes: of(Op::Write).count,
        trims: of(Op::Trim).count,
        flushes: of(Op::Flush).count,
        errors: all.errors,
        read_bytes,
        write_bytes,
        iops: per_second(count),
        throughput_bytes_per_second: per_second(read_bytes + write_bytes),
        latency_ns_mean: (count > 0).then(|| latency.ps as f64 / 1e3 / count as f64),
        latency_ns_p50: percentile(0.50),
        latency_ns_p95: percentile(0.95),
        latency_ns_p99: percentile(0.99),
        latency_ns_max: (count > 0).then(|| latency.ps_max as f64 / 1e3),
        power_watts: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_have_no_gaps_and_the_last_is_short() {
        let mut series = Series::new(Grid::new(Time::from_ms(5), Some(Time::from_ms(10))));
        series.add(Op::Read, 512, Time::from_us(3), Time::from_ms(6));
        series.add(Op::Write, 1024, Time::from_us(5), Time::from_ms(36));
        let points = series.points(Time::from_ms(40));
        assert_eq!(points.len(), 4);
        assert_eq!(points[1].latency_ns_mean, None);
        assert_eq!((points[3].start_seconds, points[3].length_seconds), (0.03, 0.005));
        assert_eq!(points[3].iops, 200.0);
        assert_eq!(points[0].latency_ns_max, Some(3_000.0));
    }

    /// Against sorted latencies of each stretch, however the grid was coarsened and jobs were merged; the
    /// tolerance is that of a histogram.
    #[test]
    fn percentiles_of_each_stretch_are_those_of_its_requests() {
        for (jobs, interval) in
            [(1, Some(Time::from_ms(10))), (3, Some(Time::from_ms(10))), (2, None)]
        {
            let new = || Series::new(Grid::new(Time::ZERO, interval));
            let mut parts: Vec<Series> = (0..jobs).map(|_| new()).collect();
            let mut state = 1u64;
            let mut all = Vec::new();
            for i in 0..60_000u64 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                // Later stretches are slower; now and then one is early.
                let latency_ns = (state >> 44) + i;
                let completed = Time::from_us(i * 50 - i.min(state >> 60));
                let part = &mut parts[(i % jobs) as usize];
                if i % 2 == 0 {
                    part.add(Op::Read, 512, Time::from_ns(latency_ns), completed);
                } else {
                    part.add_latencies(Op::Write, latency_ns, 1, completed);
                    let latency = Sums::of(Time::from_ns(latency_ns));
                    let sums = OpSums { count: 1, bytes: 512, latency };
                    part.add_many(Op::Write, &sums, completed);
                }
                all.push((completed, latency_ns));
            }
            let mut series = parts.remove(0);
            parts.into_iter().for_each(|part| series.merge(part));
            let end = Time::from_ms(3_000);
            let points = series.points(end);
            let grid = series.grid();
            assert!(points.len() >= 256, "{}", points.len());
            for (number, point) in points.iter().enumerate() {
                let inside = all.iter().filter(|(at, _)| grid.index(*at) == number);
                let mut inside: Vec<u64> = inside.map(|(_, latency)| *latency).collect();
                inside.sort_unstable();
                for (share, told) in [
                    (0.50, point.latency_ns_p50),
                    (0.95, point.latency_ns_p95),
                    (0.99, point.latency_ns_p99),
                ] {
                    let rank = ssdyno_figures::rank(share, inside.len() as u64);
                    let want = inside[rank as usize - 1] as f64;
                    let off = (told.unwrap() / want - 1.0).abs();
                    assert!(
                        off <= ssdyno_figures::Histogram::RELATIVE_ERROR + 1e-9,
                        "{number}: {told:?} {want}"
                    );
                }
            }
        }
        let mut empty = Series::new(Grid::new(Time::ZERO, Some(Time::from_ms(1))));
        empty.add_error(Op::Read, Time::from_us(3));
        assert_eq!(empty.points(Time::from_ms(1))[0].latency_ns_p99, None);
    }

    /// As a [glance](crate::totals::glance) at a run: the sum stays at its most and does not go back.
    #[test]
    fn a_sum_that_is_too_large_is_the_largest() {
        let mut series = Series::new(Grid::new(Time::ZERO, Some(Time::from_ms(10))));
        for (ms, ps) in [(1, u128::MAX / 4), (11, 5_000)] {
            let latency = Sums { ps, ..Sums::default() };
            let sums = OpSums { count: 1, latency, ..OpSums::default() };
            series.add_many(Op::Read, &sums, Time::from_ms(ms));
        }
        let mut seen = Vec::new();
        series.snapshots(Time::from_ms(20), &mut |look| seen.push(look.latency_ns_sum));
        assert_eq!(seen, [u64::MAX, u64::MAX]);
    }

    /// Reads and writes that complete together are one moment, in one job. Coarser stretches keep the number.
    #[test]
    fn completions_together_are_one_moment() {
        let mut series = Series::new(Grid::new(Time::ZERO, None));
        for us in [10, 10, 10, 2_000, 2_000, 700_000] {
            series.add(Op::Read, 512, Time::from_us(3), Time::from_us(us));
            series.add(Op::Write, 512, Time::from_us(3), Time::from_us(us));
        }
        assert_eq!(series.moments(), 3);
        series.merge(series.clone());
        assert_eq!(series.moments(), 6);
    }

    #[test]
    fn a_completion_at_the_very_end_is_in_the_last_point() {
        let mut series = Series::new(Grid::new(Time::ZERO, Some(Time::from_ms(10))));
        for ms in [1, 10, 20] {
            series.add(Op::Read, 512, Time::from_us(3), Time::from_ms(ms));
        }
        let points = series.points(Time::from_ms(20));
        assert_eq!(points.iter().map(|p| p.reads).collect::<Vec<_>>(), [1, 2]);
    }
}
