//! Running until an interval is narrow enough.

use ssdyno_block::Time;
use ssdyno_figures::{Histogram, Interval, LEVEL, Metric, Precision, Until, rank};

use crate::batches::Batches;
use crate::confidence;
use crate::side_by_side;
use crate::slices::{Part, Slices};
use crate::tails::Shares;

/// The precision of a recording while the run continues.
#[derive(Clone, Debug)]
pub struct Evidence {
    pub(crate) start: Time,
    /// The last completion.
    pub(crate) end: Time,
    pub(crate) batches: Batches,
    pub(crate) slices: Slices,
    /// Requests never completed: latencies are lower bounds, which no number of requests makes precise.
    pub(crate) open_latencies: bool,
}

impl Evidence {
    /// The evidence of several jobs as one; `None` without any.
    pub fn merge(parts: impl IntoIterator<Item = Evidence>) -> Option<Evidence> {
        let mut parts: Vec<Evidence> = parts.into_iter().collect();
        if parts.len() < 2 {
            return parts.pop();
        }
        // Jobs may begin to record at different moments. The rate of all jobs counts from the first
        // job, so a later job reduces it by the time in which it was idle.
        let start = parts.iter().map(|part| part.start).min()?;
        let end = parts.iter().map(|part| part.end).max()?;
        let jobs: Vec<_> = parts.iter().map(|part| (part.start, &part.batches)).collect();
        let batches = side_by_side::batches(&jobs, start, end);
        let jobs: Vec<_> = parts.iter().map(|part| (part.start, &part.slices)).collect();
        let slices = side_by_side::slices(&jobs, start, end);
        let open_latencies = parts.iter().any(|part| part.open_latencies);
        Some(Evidence { start, end, batches, slices, open_latencies })
    }

    /// Whether `metric` is a latency without an upper end.
    fn is_open(&self, metric: Metric) -> bool {
        self.open_latencies && !matches!(metric, Metric::Iops | Metric::Throughput)
    }

    /// The interval of `metric`, percentiles in bins of 0.8 %; `None` if there are too few requests for an interval,
    /// and for goals that are not a single figure.
    pub fn interval(&self, metric: Metric) -> Option<Interval> {
        let slices = self.slices.enough()?;
        let groups = self.batches.groups(self.start)?;
        let parts: Vec<Part> = slices.iter().map(|slice| slice.all()).collect();
        let unseen = self.slices.unseen().all;
        if self.is_open(metric) {
            return None;
        }
        match (metric, metric.share()) {
            (Metric::Mean, _) => confidence::own_mean_interval(&parts, unseen),
            (Metric::Iops, _) => groups.iops(groups.own_iops()?),
            (Metric::Throughput, _) => groups.throughput(groups.own_throughput()?),
            (_, share) => percentile(share?, &parts),
        }
    }

    /// Half the width of the interval of `metric` by the figure, 0 or more, and of means and rates
    /// what start-up moves them by; `None` where there are too few requests for an interval, or for
    /// its upper end.
    pub fn relative_half_width(&self, metric: Metric) -> Option<f64> {
        // Slices demand more requests than batches do. Every figure waits for both, so that all
        // intervals of a look come from the same run.
        let slices = self.slices.enough()?;
        let groups = self.batches.groups(self.start)?;
        let parts: Vec<Part> = slices.iter().map(|slice| slice.all()).collect();
        if self.is_open(metric) {
            return None;
        }
        let mean = || confidence::mean_distance(&parts, self.slices.unseen().all);
        match (metric, metric.share()) {
            (Metric::Mean, _) => mean(),
            (Metric::Iops, _) => groups.iops_distance(),
            (Metric::Throughput, _) => groups.throughput_distance(),
            (_, Some(share)) => percentile(share, &parts)?.relative_half_width(),
            // Both figures must be precise: the wider one decides. In a closed loop they follow
            // from each other; in an open loop the rate is known early and the latency late.
            _ => Some(mean()?.max(groups.iops_distance()?)),
        }
    }
}

fn percentile(share: f64, parts: &[Part]) -> Option<Interval> {
    let mut histogram = Histogram::default();
    parts.iter().for_each(|part| part.count_into(&mut histogram));
    let count = histogram.total();
    let estimate = histogram.value_at(rank(share, count))?;
    let Shares { low, high } = Shares::around(share, estimate, parts, &histogram)?;
    let at = |share| histogram.value_at(rank(share, count));
    let high = high.map_or(Some(f64::INFINITY), at)?;
    Some(Interval { estimate, low: at(low)?, high, level: LEVEL })
}

/// Watches a run until an interval is narrow enough.
///
/// A rule that checks an interval repeatedly and stops at the first narrow one stops too early too
/// often: when the variance happens to look small. Against that: the first look comes after
/// [`Precise::LEAST`] requests, when there are dozens of batches; looks are a quarter of the run
/// apart; and the interval must be narrow at [`Precise::LOOKS`] of them in a row.
#[derive(Clone, Debug)]
pub struct Precise {
    until: Until,
    next_at: u64,
    narrow: u32,
    last: Option<f64>,
    reached: bool,
}

impl Precise {
    /// Requests before the first look.
    pub const LEAST: u64 = 2_048;
    /// Looks in a row at which the interval must be narrow.
    pub const LOOKS: u32 = 3;

    /// Watches for `until`.
    pub fn new(until: Until) -> Precise {
        Precise { until, next_at: Precise::LEAST, narrow: 0, last: None, reached: false }
    }

    /// Whether it is time for another look: `completed` requests have.
    #[inline]
    pub fn due(&self, completed: u64) -> bool {
        completed >= self.next_at
    }

    /// Looks; true if the run is long enough.
    pub fn look(&mut self, completed: u64, evidence: &Evidence) -> bool {
        // Looks are a quarter of the run apart, so their number grows with the logarithm of the
        // requests. Frequent looks at the same data would find a narrow interval by chance.
        self.next_at = completed + completed / 4;
        self.last = evidence.relative_half_width(self.until.metric);
        let narrow = self.last.is_some_and(|half| half <= self.until.relative_half_width);
        // Three narrow looks in a row. A variance that happens to look small seldom does so while
        // the run doubles. One wide interval restarts the count.
        self.narrow = if narrow { self.narrow + 1 } else { 0 };
        self.reached = self.narrow >= Precise::LOOKS;
        self.reached
    }

    /// Takes what is known at the end of a run that ended for another reason.
    pub fn end(&mut self, evidence: &Evidence) {
        if !self.reached {
            self.last = evidence.relative_half_width(self.until.metric);
        }
    }

    /// Result of the precision goal.
    pub fn precision(&self) -> Precision {
        Precision {
            metric: self.until.metric,
            asked: self.until.relative_half_width,
            at_stop: self.last,
            reached: self.reached,
        }
    }
}
