//! Searches for the greatest depth that meets a latency.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ssdyno_workload::{DepthSearch, TriedDepth};

/// Result of a search for the greatest depth at which latencies stay below a target (fio: `latency_target`). Unless
/// `latency_run` is set, the other figures cover only a final run at `depth`.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct DepthSearchResult {
    /// The job of a job file; `null` for another workload.
    pub job: Option<String>,
    /// The latency target: the longest latency of a request that counts as in time.
    pub latency_target_ns: u64,
    /// Duration of the test of each depth.
    pub latency_window_ns: u64,
    /// Share of the requests of a window that had to be in time, in percent.
    pub latency_percentile: f64,
    /// The depth followed the latencies until the end of the run.
    pub latency_run: bool,
    /// Greatest number of requests outstanding that the search may try.
    pub depth_max: u64,
    /// The depth that the search found; if it found none, the last depth that it tried.
    pub depth: u64,
    /// `depth` is the greatest depth that met the target. With `latency_run`: the last window met the target.
    pub met: bool,
    /// Windows that were judged, in order: the first thousand.
    pub tried: Vec<TriedDepthResult>,
}

/// A depth that was tried.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct TriedDepthResult {
    /// Requests outstanding.
    pub depth: u64,
    /// Start of the window, from the start of the job.
    pub start_seconds: f64,
    /// Length of the window.
    pub seconds: f64,
    /// Requests that completed in the window without an error.
    pub requests: u64,
    /// Requests of the window that were in time.
    pub requests_in_time: u64,
}

impl From<DepthSearch> for DepthSearchResult {
    fn from(search: DepthSearch) -> DepthSearchResult {
        DepthSearchResult {
            job: search.job,
            latency_target_ns: search.target.latency.as_ns(),
            latency_window_ns: search.target.window.as_ns(),
            latency_percentile: search.target.percentile,
            latency_run: search.target.keeps_adapting,
            depth_max: search.depth_max,
            depth: search.depth,
            met: search.met,
            tried: search.tried.into_iter().map(TriedDepthResult::from).collect(),
        }
    }
}

impl From<TriedDepth> for TriedDepthResult {
    fn from(tried: TriedDepth) -> TriedDepthResult {
        TriedDepthResult {
            depth: tried.depth,
            start_seconds: tried.start.as_s_f64(),
            seconds: tried.length.as_s_f64(),
            requests: tried.requests,
            requests_in_time: tried.in_time,
        }
    }
}
