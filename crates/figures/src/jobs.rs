//! Figures of one job among several that ran in one run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::latency::LatencyByOp;
use crate::result::ByOp;

/// Figures of one job of a job file with several jobs. The figures of all jobs sum to the figures of the run; rates are
/// over the job's own time.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct JobResult {
    /// Name of the job in its file. Copies that are reported separately have the same name.
    pub name: String,
    /// Group of the job, counted from 0. Jobs of a group ran together; groups ran one after the other.
    pub group: u32,
    /// Copies of the job in these figures.
    pub copies: u32,
    /// Start of the job's recording, from the start of the recorded window of the run.
    pub start_seconds: f64,
    /// Time from the start of recording to the job's last completion.
    pub seconds: f64,
    /// Requests completed without error.
    pub requests: u64,
    /// Requests that ended in an error. No other figure includes them, except requests without a completion
    /// (`unanswered`).
    pub errors: u64,
    /// Requests that never completed, as in the figures of the run. In `latency_ns` each counts with its waiting time
    /// as a lower bound; rates do not include them.
    #[serde(default)]
    pub unanswered: u64,
    /// `requests` per second.
    pub iops: f64,
    /// Bytes read and written, per second.
    pub throughput_bytes_per_second: f64,
    /// Requests by operation.
    pub requests_by_op: ByOp<u64>,
    /// From the intended start to the completion; `null` without requests. For a simulated target percentiles are the
    /// middle of a bin and at most 0.4 % off.
    pub latency_ns: Option<LatencyByOp>,
}
