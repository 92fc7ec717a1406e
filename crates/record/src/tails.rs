//! The shares of a sample between which the true percentile lies, and the cases where they are
//! unknown.
//!
//! Requests beyond a far percentile come in clusters: a busy period, a stall. A run that has seen
//! two or three of them knows that the percentile may be *at least* so long, and nothing of the
//! longest: the interval, which cannot reach beyond the run's own latencies, would end below the
//! truth more often than not. So each percentile is asked how many independent requests its upper
//! end rests on, and where they are too few the interval is open above.

use ssdyno_figures::{Histogram, rank};

use crate::slices::Part;
use crate::statistics::{self, Ratio};

/// The smallest number of independent requests beyond a percentile for which an upper end is given. By simulation of
/// queues, autoregressive latencies and stalls, see *Far percentiles without an upper end*, docs/statistics.md.
const CLUSTERS_LEAST: f64 = 4.0;

/// So many are enough to go by; fewer are looked at twice.
const CLUSTERS_ENOUGH: f64 = 12.0;

/// If there are few clusters, they are counted again beyond a latency that a multiple of these
/// requests exceeds. A run without the long busy periods looks calm beyond its far percentiles; a
/// little further down there are more of them, and therefore more evidence.
const NEARER: f64 = 5.0;

/// Shares of the sample, 0 to 1, between which the true percentile lies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Shares {
    pub(crate) low: f64,
    /// `None` where too few independent requests lie beyond.
    pub(crate) high: Option<f64>,
}

impl Shares {
    /// Around the percentile `share` with the estimate `latency_ns`, from the slices and the
    /// distribution of the whole; `None` where the lower bound leaves the sample.
    pub(crate) fn around(
        share: f64,
        latency_ns: f64,
        parts: &[Part],
        whole: &Histogram,
    ) -> Option<Shares> {
        let (beyond, count) = (1.0 - share, whole.total());
        let here = Edges::of(latency_ns, parts)?;
        // Slices that happen to agree would give a narrower interval than independent requests
        // can. The binomial error of order statistics is the least.
        let Ratio { error, student, .. } = here.uncertain();
        let binomial = (share * beyond / count as f64).sqrt();
        let half = student * error.max(binomial) / (share * beyond);
        // On the logistic scale, which keeps the bounds of high percentiles inside the sample and
        // gives them the longer side that their latencies have.
        let odds = (share / beyond).ln();
        let logistic = |x: f64| 1.0 / (1.0 + (-x).exp());
        let (low, high) = (logistic(odds - half), logistic(odds + half));
        let edge = 1.0 / count as f64;

        // The slices say how much the share varies. This number of independent requests would vary
        // as much, and this part of them lies beyond the percentile.
        let mut clusters = beyond * here.worth(count);
        let nearer = Some(1.0 - NEARER * beyond).filter(|share| *share > 0.0);
        let nearer = nearer.filter(|_| clusters < CLUSTERS_ENOUGH);
        let nearer = nearer.and_then(|share| whole.value_at(rank(share, count)));
        if let Some(nearer) = nearer.and_then(|latency_ns| Edges::of(latency_ns, parts)) {
            clusters = clusters.min(beyond * nearer.worth(count));
        }
        let known = clusters >= CLUSTERS_LEAST && high < 1.0 - edge;
        (low > edge).then_some(Shares { low, high: known.then_some(high) })
    }
}

/// The shares of requests beyond the upper and the lower edge of a bucket, and their variation from
/// slice to slice: slices count latencies by bucket only.
struct Edges {
    upper: (f64, Ratio),
    lower: Option<(f64, Ratio)>,
}

impl Edges {
    /// Of the bucket of `latency_ns`.
    fn of(latency_ns: f64, parts: &[Part]) -> Option<Edges> {
        let bucket = Histogram::bucket(latency_ns as u64);
        let counts: Vec<f64> = parts.iter().map(|part| part.count as f64).collect();
        let at = |bucket: usize| {
            let below: Vec<f64> = parts.iter().map(|part| part.up_to(bucket) as f64).collect();
            let share = below.iter().sum::<f64>() / counts.iter().sum::<f64>();
            Some((1.0 - share, statistics::ratio(&below, &counts)?))
        };
        Some(Edges { upper: at(bucket)?, lower: bucket.checked_sub(1).and_then(at) })
    }

    /// The edge whose share is more uncertain.
    fn uncertain(&self) -> Ratio {
        let width = |ratio: &Ratio| ratio.error * ratio.student;
        let lower = self.lower.map(|(_, lower)| lower);
        lower.filter(|lower| width(lower) > width(&self.upper.1)).unwrap_or(self.upper.1)
    }

    /// The number of independent requests that would estimate the share beyond as well as `count`
    /// of them do, at the edge with fewer.
    fn worth(&self, count: u64) -> f64 {
        let worth = |(beyond, ratio): (f64, Ratio)| {
            let variance = beyond * (1.0 - beyond);
            // Beyond the longest latency nothing lies and nothing varies. The other edge of the
            // bucket decides then.
            if variance > 0.0 { variance / ratio.error.powi(2) } else { f64::INFINITY }
        };
        let lower = self.lower.map_or(f64::INFINITY, worth);
        worth(self.upper).min(lower).min(count as f64)
    }
}
