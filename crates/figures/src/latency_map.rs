//! How many requests took how long, over time.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How many requests took how long in each stretch of the run, by the moment of completion. All counts together are the
/// requests that completed without error.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct LatencyMap {
    /// Where the stretches begin, from the start of the recorded window. Each ends where the next begins.
    pub start_seconds: Vec<f64>,
    /// Where the last stretch ends.
    pub end_seconds: f64,
    /// Bands of latency, shortest first, a quarter of an octave each; those without requests are left out.
    pub bands: Vec<LatencyBand>,
}

/// The requests that took from `from_ns` to below `to_ns`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct LatencyBand {
    /// Shortest latency of the band.
    pub from_ns: u64,
    /// Shortest latency above the band.
    pub to_ns: u64,
    /// Requests in each stretch.
    pub counts: Vec<u64>,
}
