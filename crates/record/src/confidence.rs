//! Intervals around the figures of a recording.

use std::borrow::Cow;

use ssdyno_block::{Op, Time};
use ssdyno_figures::{
    Confidence, Histogram, Interval, LEVEL, Latency, LatencyAtMost, LatencyByOp, LatencyIntervals,
    LatencyIntervalsByOp, RunResult, rank,
};

use crate::batches::Batches;
use crate::quantiles::{Exact, SHARES, Wanted};
use crate::slices::{INSIDE, Part, Slices};
use crate::statistics;
use crate::tails::Shares;

const MEANING: &str = "95 % intervals from batches of consecutive requests: batch means for means \
                       and rates, shares of batches for percentiles. Correlated neighbouring \
                       batches count as fewer batches, so a run that is too short has wide \
                       intervals, not wrong intervals. Intervals of percentiles are never narrower than order \
                       statistics of independent requests. They have no upper bound (`high` is \
                       null) if fewer than four independent requests lie beyond the percentile. \
                       Outlying batches at the start (a write buffer that fills) count in the \
                       figure but not in its spread: intervals of means and rates extend to the \
                       figure without them. An interval shows how far a run of the same length \
                       with another seed would differ. A simulated run repeats exactly with the \
                       same seed: its interval is not an error of measurement, and does not show \
                       how accurate the model is.";

/// What intervals are made from.
pub(crate) struct Source<'a> {
    /// Latencies by operation, with those of requests without a completion.
    pub(crate) ops: [Cow<'a, Histogram>; 4],
    pub(crate) inside: &'a Histogram,
    pub(crate) all: &'a Histogram,
    pub(crate) exact: Option<Exact<'a>>,
    pub(crate) batches: &'a Batches,
    pub(crate) slices: &'a Slices,
    pub(crate) start: Time,
}

/// One distribution whose figures get intervals.
struct Asked<'a> {
    parts: Vec<Part>,
    /// The variance that they do not show.
    unseen: f64,
    histogram: &'a Histogram,
    latency: Latency,
    /// Whose rows tell exact bounds, where there are rows: `Some(None)` those of all.
    rows_of: Option<Option<Op>>,
}

impl Source<'_> {
    /// All intervals; `None` where there are too few requests for any.
    pub(crate) fn confidence(mut self, result: &RunResult) -> Option<Confidence> {
        let latency = result.latency_ns.as_ref()?;
        let groups = self.batches.groups(self.start)?;
        // All distributions are requested together: exact bounds need a pass over the rows, and one
        // pass serves all of them.
        let mut by_op = self.latencies(latency, result.device_latency_ns);
        let device_latency_ns = by_op.pop().flatten().unwrap_or_default();
        let mut next = || by_op.pop().flatten();
        // `pop` takes the last element first. The list holds all requests, then the operations
        // from reads to flushes, then the time inside the device.
        let (flush, trim, write, read) = (next(), next(), next(), next());
        let all = next().unwrap_or_default();
        Some(Confidence {
            level: LEVEL,
            meaning: MEANING.to_owned(),
            iops: groups.iops(result.iops),
            throughput_bytes_per_second: groups.throughput(result.throughput_bytes_per_second),
            latency_ns: LatencyIntervalsByOp { all, read, write, trim, flush },
            device_latency_ns,
            ..Confidence::default()
        })
    }

    /// Of all, of each operation, and inside the device; `None` for what did not occur.
    fn latencies(
        &mut self,
        latency: &LatencyByOp,
        device: Option<Latency>,
    ) -> Vec<Option<LatencyIntervals>> {
        let Some(slices) = self.slices.enough() else { return vec![None; 6] };
        let unseen = self.slices.unseen();
        let ops = self.ops.clone();
        let ask = |lane: usize, histogram, latency, rows_of| {
            let parts = slices.iter().map(|slice| slice.parts[lane].clone()).collect();
            Asked { parts, unseen: unseen.lanes[lane], histogram, latency, rows_of }
        };
        let mut asked = vec![Some(Asked {
            parts: slices.iter().map(|slice| slice.all()).collect(),
            unseen: unseen.all,
            histogram: self.all,
            latency: latency.all,
            rows_of: Some(None),
        })];
        let by_op = [latency.read, latency.write, latency.trim, latency.flush];
        for ((op, histogram), latency) in Op::ALL.into_iter().zip(&ops).zip(by_op) {
            asked.push(latency.map(|own| ask(op as usize, histogram, own, Some(Some(op)))));
        }
        asked.push(device.map(|latency| ask(INSIDE, self.inside, latency, None)));
        self.intervals(&asked)
    }

    fn intervals(&mut self, asked: &[Option<Asked<'_>>]) -> Vec<Option<LatencyIntervals>> {
        let ranks: Vec<_> = asked.iter().map(|one| one.as_ref().map(Asked::ranks)).collect();
        let mut exact = self.exact(asked, &ranks).into_iter();
        let intervals = |(one, ranks): (&Option<Asked<'_>>, &Option<Ranks>)| {
            let one = one.as_ref()?;
            let bounds = match one.rows_of.and(self.exact.as_ref()) {
                // If rows were kept the bounds are exact; otherwise they are the ends of bins
                // of the histogram. Times inside the device are in no row.
                Some(_) => exact.next().unwrap_or_default(),
                None => ends_of_bins(ranks.as_ref(), one.histogram),
            };
            Some(one.intervals(ranks.as_ref(), bounds))
        };
        asked.iter().zip(&ranks).map(intervals).collect()
    }

    /// Exact latencies at the ranks, for those that rows tell of.
    fn exact(&mut self, asked: &[Option<Asked<'_>>], ranks: &[Option<Ranks>]) -> Vec<Vec<f64>> {
        let Some(exact) = &mut self.exact else { return Vec::new() };
        let mut wanted = Vec::new();
        for (one, ranks) in asked.iter().zip(ranks) {
            if let Some(Asked { rows_of: Some(op), histogram, .. }) = one {
                let pairs = ranks.iter().flatten().flatten();
                let ranks = pairs.flat_map(|(low, high)| [Some(*low), *high]).flatten().collect();
                wanted.push(Wanted { op: *op, histogram, ranks });
            }
        }
        exact.find(&wanted)
    }
}

/// Bounds at `ranks` where only the bin of a latency is known: it may lie anywhere in it. With the middle of the bin at
/// both ends, an interval inside a bin would have no width, and a bound such as `p99<18.4ms` would be decided by rounding.
fn ends_of_bins(ranks: Option<&Ranks>, histogram: &Histogram) -> Vec<f64> {
    let bin = |rank| histogram.locate(rank).map(|(bucket, _)| Histogram::bounds(bucket));
    let first = |rank| bin(rank).map(|(first, _)| first as f64);
    let last = |rank| bin(rank).map(|(_, end)| (end - 1) as f64);
    let pairs = ranks.into_iter().flatten().flatten();
    pairs.flat_map(|(low, high)| [first(*low), high.and_then(last)]).flatten().collect()
}

/// Ranks between which each percentile lies, the upper one as far as it is known; `None` where
/// the lower one leaves the sample.
type Ranks = [Option<(u64, Option<u64>)>; 4];

impl Asked<'_> {
    fn estimates(&self) -> [f64; 4] {
        let Latency { p50, p95, p99, p99_9, .. } = self.latency;
        [p50, p95, p99, p99_9]
    }

    fn ranks(&self) -> Ranks {
        let count = self.histogram.total();
        closed(std::array::from_fn(|at| {
            let share = SHARES[at];
            let estimate = self.estimates()[at];
            let Shares { low, high } =
                Shares::around(share, estimate, &self.parts, self.histogram)?;
            // The interval of a percentile is an interval of its share, turned into ranks. This
            // needs no assumption about the form of the distribution around it.
            Some((rank(low, count), high.map(|high| rank(high, count))))
        }))
    }

    /// `bounds` are low and, where there is one, high of each percentile that has ranks.
    fn intervals(&self, ranks: Option<&Ranks>, bounds: Vec<f64>) -> LatencyIntervals {
        let mut bounds = bounds.into_iter();
        let mut percentile = |at: usize| {
            let (_, high) = ranks?[at]?;
            let low = bounds.next()?;
            let high = if high.is_some() { bounds.next()? } else { f64::INFINITY };
            let estimate = self.estimates()[at];
            // The ends of a bin may lie outside everything that was measured. Equal latencies then
            // have no interval of a bin's width, which would hide a difference of 0.5 %.
            let low = low.max(self.latency.min);
            let high = if high.is_finite() { high.min(self.latency.max) } else { high };
            // Rounded bounds may cross the estimate, which is exact or rounded otherwise.
            // An interval that does not contain its own figure would be read as an error of the
            // program. The difference is at most the width of a bin.
            let (low, high) = (low.min(estimate), high.max(estimate));
            Some(Interval { estimate, low, high, level: LEVEL })
        };
        let intervals = LatencyIntervals {
            mean: mean_interval(self.latency.mean, &self.parts, self.unseen),
            p50: percentile(0),
            p95: percentile(1),
            p99: percentile(2),
            p99_9: percentile(3),
        };
        match &self.latency.at_most {
            Some(at_most) => open(intervals, at_most),
            None => intervals,
        }
    }
}

/// The intervals of figures that are lower bounds: the true ones may be as long as `at_most` says, or longer.
fn open(intervals: LatencyIntervals, at_most: &LatencyAtMost) -> LatencyIntervals {
    let up_to = |interval: Option<Interval>, most: Option<f64>| {
        interval.map(|i| Interval { high: i.high.max(most.unwrap_or(f64::INFINITY)), ..i })
    };
    LatencyIntervals {
        // A percentile may lie below the requests that never completed. The mean contains them
        // all, and their latency may be anything.
        mean: up_to(intervals.mean, None),
        p50: up_to(intervals.p50, at_most.p50),
        p95: up_to(intervals.p95, at_most.p95),
        p99: up_to(intervals.p99, at_most.p99),
        p99_9: up_to(intervals.p99_9, at_most.p99_9),
    }
}

/// A percentile is at most the next higher one: where its own upper end is unknown and that of the higher one
/// is not, it ends there. It is at least the next lower one, so it begins no earlier than that: in a short run the far
/// percentile alone would seem to reach further down.
fn closed(mut ranks: Ranks) -> Ranks {
    for at in 1..ranks.len() {
        let bound = ranks[at - 1].map_or(0, |(low, _)| low);
        if let Some((low, _)) = &mut ranks[at] {
            *low = (*low).max(bound);
        }
    }
    for at in (1..ranks.len()).rev() {
        let bound = ranks[at].and_then(|(_, high)| high);
        if let Some((_, high)) = &mut ranks[at - 1] {
            *high = high.or(bound);
        }
    }
    ranks
}

/// Interval around a mean latency in ns, from slices of unequal counts.
/// The variance that they do not show is `unseen` (see [`Unseen`](crate::slices::Unseen)).
pub(crate) fn mean_interval(estimate: f64, parts: &[Part], unseen: f64) -> Option<Interval> {
    let (amounts, counts) = amounts_and_counts(parts);
    statistics::ratio_interval_with(estimate, &amounts, &counts, unseen)
}

/// The same around the mean of the slices themselves.
pub(crate) fn own_mean_interval(parts: &[Part], unseen: f64) -> Option<Interval> {
    let (amounts, counts) = amounts_and_counts(parts);
    let mean = amounts.iter().sum::<f64>() / counts.iter().sum::<f64>();
    mean.is_finite().then(|| statistics::ratio_interval_with(mean, &amounts, &counts, unseen))?
}

/// How far the mean latency may be off, see [`statistics::relative_distance`].
pub(crate) fn mean_distance(parts: &[Part], unseen: f64) -> Option<f64> {
    let (amounts, counts) = amounts_and_counts(parts);
    statistics::relative_distance(&amounts, &counts, unseen)
}

fn amounts_and_counts(parts: &[Part]) -> (Vec<f64>, Vec<f64>) {
    parts.iter().map(|part| (part.latency_ps as f64 / 1e3, part.count as f64)).unzip()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The smallest and the largest latency bound each interval, also where the bin is wider.
    #[test]
    fn an_interval_lies_between_the_least_and_the_largest_latency() {
        let mut histogram = Histogram::default();
        histogram.add_many(100_000, 1000);
        let latency =
            Latency { min: 100_000.0, max: 100_100.0, p50: 100_000.0, ..Latency::default() };
        let asked =
            Asked { parts: Vec::new(), unseen: 0.0, histogram: &histogram, latency, rows_of: None };
        let ranks = [Some((480, Some(520))), None, None, None];
        let bounds = ends_of_bins(Some(&ranks), &histogram);
        assert!(bounds[0] < 100_000.0 && bounds[1] > 100_100.0, "{bounds:?}");
        let p50 = asked.intervals(Some(&ranks), bounds).p50.unwrap();
        assert_eq!((p50.low, p50.high), (100_000.0, 100_100.0));
        let open = [Some((480, None)), None, None, None];
        let bounds = ends_of_bins(Some(&open), &histogram);
        assert_eq!(asked.intervals(Some(&open), bounds).p50.unwrap().high, f64::INFINITY);
    }

    /// 1000 equal latencies: the interval of each percentile is the bin that contains them, 1 / 128 wide.
    #[test]
    fn an_interval_from_a_histogram_is_no_narrower_than_a_bin() {
        let mut histogram = Histogram::default();
        histogram.add_many(100_000, 1000);
        let bounds = ends_of_bins(
            Some(&[Some((480, Some(520))), None, Some((990, None)), None]),
            &histogram,
        );
        let [low, high, alone] = bounds[..] else { panic!("{bounds:?}") };
        assert!(low <= 100_000.0 && 100_000.0 <= high && alone == low, "{bounds:?}");
        assert!((high + 1.0 - low) / low > 1.0 / 256.0, "{bounds:?}");
        // Bins of one nanosecond are exact.
        let mut exact = Histogram::default();
        exact.add_many(7, 10);
        assert_eq!(ends_of_bins(Some(&[Some((1, Some(9))), None, None, None]), &exact), [7.0, 7.0]);
    }

    #[test]
    fn an_unknown_upper_end_is_that_of_the_next_higher_percentile() {
        let known = Some((90, Some(97)));
        assert_eq!(
            closed([Some((40, None)), known, Some((96, None)), None]),
            [Some((40, Some(97))), known, Some((96, None)), None]
        );
        // A wide interval of p99 begins with that of p95.
        assert_eq!(
            closed([Some((40, Some(60))), known, Some((70, None)), None]),
            [Some((40, Some(60))), known, Some((90, None)), None]
        );
        let last = Some((98, Some(99)));
        assert_eq!(
            closed([Some((40, None)), None, Some((96, None)), last]),
            [Some((40, None)), None, Some((96, Some(99))), last]
        );
    }
}
