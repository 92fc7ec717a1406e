//! Searches for the greatest depth that meets a latency.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ssdyno_block::Time;

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

impl TriedDepthResult {
    /// Of a window that began at the first of `times` and lasted for the second, with `requests` of which so many
    /// were `in_time`.
    pub fn of(
        depth: u64,
        [start, length]: [Time; 2],
        requests: u64,
        in_time: u64,
    ) -> TriedDepthResult {
        let (start_seconds, seconds) = (start.as_s_f64(), length.as_s_f64());
        TriedDepthResult { depth, start_seconds, seconds, requests, requests_in_time: in_time }
    }
}
