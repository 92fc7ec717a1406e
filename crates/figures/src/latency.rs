//! Latencies of a result, and how well they are known.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::interval::Interval;

/// A distribution of latencies, in nanoseconds.
///
/// A percentile is a nearest rank: p99 is the smallest latency that at least 99 % of the requests did not exceed. It
/// is exact to the nanosecond (rounded down) if rows were recorded. Without rows, and for `device_latency_ns`, it is
/// the middle of a bin and at most 0.4 % off. Mean, minimum and maximum are always exact.
///
/// A request that never completed counts with its waiting time. The figures are then lower bounds, and `at_most` has
/// upper bounds of the percentiles.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Latency {
    /// Arithmetic mean.
    pub mean: f64,
    /// Smallest.
    pub min: f64,
    /// Median.
    pub p50: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
    /// 99.9th percentile.
    pub p99_9: f64,
    /// Largest.
    pub max: f64,
    /// Upper bounds of the percentiles; only if requests never completed. Mean and largest latency have no upper bound
    /// then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most: Option<LatencyAtMost>,
}

impl Latency {
    /// Whether mean, median, 95th, 99th and 99.9th percentile and maximum, in this order, are lower bounds: requests that
    /// never completed count with their waiting time.
    pub fn lower_bounds(&self) -> [bool; 6] {
        let Some(most) = self.at_most else { return [false; 6] };
        let is_open = |value: f64, at_most: Option<f64>| at_most != Some(value);
        [
            true,
            is_open(self.p50, most.p50),
            is_open(self.p95, most.p95),
            is_open(self.p99, most.p99),
            is_open(self.p99_9, most.p99_9),
            true,
        ]
    }
}

/// Upper bounds of the percentiles if some requests never completed: the percentile if these requests had taken
/// forever. If the bound equals the figure, the figure is exact. `null` if there is no bound.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct LatencyAtMost {
    /// Median.
    pub p50: Option<f64>,
    /// 95th percentile.
    pub p95: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
    /// 99.9th percentile.
    pub p99_9: Option<f64>,
}

/// Requests that must lie beyond a percentile. With ten the standard deviation of their number is a third of it
/// (Poisson); with fewer, another run of the same length has quite another percentile.
const BEYOND: f64 = 10.0;

/// Number of requests that a percentile needs, so that at least ten lie beyond it: 1000 for p99, whose `share` is 0.99.
pub fn requests_needed(share: f64) -> u64 {
    (BEYOND / (1.0 - share)).round() as u64
}

/// The latency of all requests, and of each operation that occurred.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct LatencyByOp {
    /// All operations together.
    #[serde(flatten)]
    pub all: Latency,
    /// Reads; `null` without any.
    pub read: Option<Latency>,
    /// Writes; `null` without any.
    pub write: Option<Latency>,
    /// Trims; `null` without any.
    pub trim: Option<Latency>,
    /// Flushes; `null` without any.
    pub flush: Option<Latency>,
}

/// Intervals around the figures of a run.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Confidence {
    /// Probability that an interval covers the true figure, 0 to 1.
    pub level: f64,
    /// Meaning of the intervals, and the method that computed them.
    pub meaning: String,
    /// Around `iops`.
    pub iops: Option<Interval>,
    /// Around `throughput_bytes_per_second`.
    pub throughput_bytes_per_second: Option<Interval>,
    /// Around the figures of `latency_ns`.
    pub latency_ns: LatencyIntervalsByOp,
    /// Around the figures of `device_latency_ns`.
    #[serde(default)]
    pub device_latency_ns: LatencyIntervals,
    /// Around `write_amplification`; `null` if too little was written, or if no block was erased.
    #[serde(default)]
    pub write_amplification: Option<Interval>,
    /// Around `energy_joules.per_request`; `null` if the run is too short, or if the load did not
    /// reach the flash.
    #[serde(default)]
    pub energy_joules_per_request: Option<Interval>,
    /// Around `host.cpu_ns_per_request`; `null` without a simulated host.
    #[serde(default)]
    pub host_cpu_ns_per_request: Option<Interval>,
}

/// Intervals around the latency of all requests, and of each operation that occurred.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct LatencyIntervalsByOp {
    /// All operations together.
    #[serde(flatten)]
    pub all: LatencyIntervals,
    /// Reads; `null` without any.
    #[serde(default)]
    pub read: Option<LatencyIntervals>,
    /// Writes; `null` without any.
    #[serde(default)]
    pub write: Option<LatencyIntervals>,
    /// Trims; `null` without any.
    #[serde(default)]
    pub trim: Option<LatencyIntervals>,
    /// Flushes; `null` without any.
    #[serde(default)]
    pub flush: Option<LatencyIntervals>,
}

/// Intervals around the figures of a [`Latency`]; `null` if the run is too short for an interval.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct LatencyIntervals {
    /// Mean.
    pub mean: Option<Interval>,
    /// Median.
    pub p50: Option<Interval>,
    /// 95th percentile.
    pub p95: Option<Interval>,
    /// 99th percentile.
    pub p99: Option<Interval>,
    /// 99.9th percentile.
    pub p99_9: Option<Interval>,
}

impl LatencyIntervals {
    /// Mean, median, 95th, 99th and 99.9th percentile, in this order.
    pub fn list(&self) -> [Option<Interval>; 5] {
        [self.mean, self.p50, self.p95, self.p99, self.p99_9]
    }
}
