//! Searches for the greatest depth that meets a latency.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ssdyno_workload::{DepthSearch, TriedDepth};

/// What became of a search for the greatest depth at which latencies stay below a target (fio:
/// `latency_target`). Unless `latency_run` is set, the other figures are of a last run at `depth` alone.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct DepthSearchResult {
    /// The job of a job file; `null` for another workload.
    pub job: Option<String>,
    /// How long a request that is in time takes at most.
    pub latency_target_ns: u64,
    /// How long each depth was tried.
    pub latency_window_ns: u64,
    /// Share of the requests of a window that had to be in time, in percent.
    pub latency_percentile: f64,
    /// The depth followed the latencies until the end of the run.
    pub latency_run: bool,
    /// Most requests outstanding that might be tried.
    pub depth_max: u64,
    /// The depth that was found, or where none was the one that was tried last.
    pub depth: u64,
    /// `depth` is the greatest that met the target. With `latency_run`: the last window met it.
    pub met: bool,
    /// Windows that were judged, in order: the first thousand.
    pub tried: Vec<TriedDepthResult>,
}

/// A depth that was tried.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct TriedDepthResult {
    /// Requests outstanding.
    pub depth: u64,
    /// When its window began, from the start of the job.
    pub start_seconds: f64,
    /// How long the window was.
    pub seconds: f64,
    /// Requests that completed in it without an error.
    pub requests: u64,
    /// Those of them that were in time.
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
