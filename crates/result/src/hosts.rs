//! Figures of one host among several that ran one run together.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::format::{bytes_per_second, count, rate};
use crate::result::{ByOp, LatencyByOp};

/// What one host did in the window in which all hosts were running. The figures of all hosts sum to those of the run.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct HostRun {
    /// Its name, as the user gave it.
    pub name: String,
    /// What its machine calls itself.
    pub machine: String,
    /// Whether its part ended early, or is missing.
    pub partial: bool,
    /// Why its figures are missing: they are in no figure of the run then. Left out where they are there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<String>,
    /// Requests completed without error.
    pub requests: u64,
    /// Requests that ended in an error.
    pub errors: u64,
    /// Requests that never completed, in the window or after it.
    pub unanswered: u64,
    /// `requests` by second.
    pub iops: f64,
    /// Bytes read and written, by second.
    pub throughput_bytes_per_second: f64,
    /// Requests by operation.
    pub requests_by_op: ByOp<u64>,
    /// From the intended start to the completion, within 0.4 %; `null` without requests.
    pub latency_ns: Option<LatencyByOp>,
    /// By how much its clock was ahead of the controller's. Times in this result are corrected by it.
    pub clock_offset_ns: i64,
    /// The offset may be wrong by this much to either side: half of the fastest answer, and the drift from before to
    /// after the run.
    pub clock_uncertainty_ns: u64,
    /// How long after the first host it began, within the uncertainty; `null` for a simulated target, whose time is
    /// its own.
    pub start_skew_ns: Option<i64>,
}

/// What a host did outside the window in which all hosts were running; it is in no figure.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct OutsideWindow {
    /// Name of the host.
    pub name: String,
    /// How long it ran before the window.
    pub before_seconds: f64,
    /// How long it ran after the window.
    pub after_seconds: f64,
    /// Requests without error that it completed before and after.
    pub requests: u64,
}

impl HostRun {
    /// Requests, rates and latencies as a row of text, in the columns of the jobs.
    pub(crate) fn row(&self) -> Vec<String> {
        let mut row = vec![self.name.clone()];
        if self.lost.is_some() {
            row.extend(["lost".to_owned(), "-".to_owned(), "-".to_owned()]);
        } else {
            row.extend([
                count(self.requests),
                rate(self.iops),
                bytes_per_second(self.throughput_bytes_per_second),
            ]);
        }
        match &self.latency_ns {
            Some(latency) => {
                let [mean, p50, _, p99, p99_9, max] = latency.all.texts();
                row.extend([mean, p50, p99, p99_9, max]);
            }
            None => row.extend(std::iter::repeat_n("-".to_owned(), 5)),
        }
        row
    }
}
