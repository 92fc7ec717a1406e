//! How many requests took how long, over time.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Number of requests by latency and by interval of the run, at the moment of completion. All counts sum to the
/// requests that completed without error.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct LatencyMap {
    /// Start of each interval, from the start of the recorded window. Each interval ends at the start of the next.
    pub start_seconds: Vec<f64>,
    /// End of the last interval.
    pub end_seconds: f64,
    /// Bands of latency, shortest first, a quarter of an octave each; bands without requests are left out.
    pub bands: Vec<LatencyBand>,
}

/// The requests that took from `from_ns` to below `to_ns`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct LatencyBand {
    /// Shortest latency of the band.
    pub from_ns: u64,
    /// Shortest latency above the band.
    pub to_ns: u64,
    /// Requests in each interval.
    pub counts: Vec<u64>,
}
