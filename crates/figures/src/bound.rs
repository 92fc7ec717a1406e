//! Bounds of figures that end a run once it surely breaks one.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::interval::Interval;
use crate::until::Metric;

/// A bound of a figure.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct FigureBound {
    /// The figure; not [`Metric::MeanAndIops`], which stands for two figures.
    pub metric: Metric,
    /// Whether the figure must be below the bound; otherwise above.
    pub is_below: bool,
    /// In ns for latencies, requests or bytes per second for rates.
    pub bound: f64,
}

impl FigureBound {
    /// Whether all of `interval` is on the wrong side of the bound.
    pub fn is_broken_by(&self, interval: &Interval) -> bool {
        // The whole interval must be on the wrong side. A run is ended early only if its figure
        // surely breaks the bound, and not if it merely may.
        match self.is_below {
            true => interval.low > self.bound,
            false => interval.high < self.bound,
        }
    }
}

/// The bound that ended a run, and the figure at that time.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct BrokenBound {
    /// The bound.
    pub bound: FigureBound,
    /// The interval of the figure when the run stopped, at the resolution of histograms (0.8 %).
    pub interval: Interval,
    /// Requests completed by that time, including those of a ramp-up.
    pub requests: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_is_broken_by_a_whole_interval_beyond_it() {
        let broken = |is_below, bound, low, high| {
            let interval = Interval { low, high, ..Interval::default() };
            FigureBound { metric: Metric::P99, is_below, bound }.is_broken_by(&interval)
        };
        assert!(broken(true, 2.0, 2.1, f64::INFINITY) && !broken(true, 2.0, 2.0, 3.0));
        assert!(broken(false, 2.0, 1.0, 1.9) && !broken(false, 2.0, 1.0, 2.0));
        assert!(!broken(false, 2.0, 1.0, f64::INFINITY) && !broken(true, 2.0, 1.0, 3.0));
    }
}
