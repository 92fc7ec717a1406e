//! Figures of one job among several that ran in one run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::latency::LatencyByOp;
use crate::result::ByOp;

/// What one job of a file with several did. The figures of all jobs sum to those of the run; rates
/// are over the job's own time.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct JobResult {
    /// Name of the job in its file. Copies that are reported apart have the same.
    pub name: String,
    /// Jobs with the same number ran together, counted from 0; groups ran one after the other.
    pub group: u32,
    /// Copies of the job in these figures.
    pub copies: u32,
    /// When recording of the job began, from the start of the recorded window of the run.
    pub start_seconds: f64,
    /// From then to the job's last completion.
    pub seconds: f64,
    /// Requests completed without error.
    pub requests: u64,
    /// Requests that ended in an error; they are in no other figure, but for those without a completion
    /// (`unanswered`).
    pub errors: u64,
    /// Requests that never completed, as in the figures of the run: in `latency_ns` as at least as long
    /// as they were waited for, and in no rate.
    #[serde(default)]
    pub unanswered: u64,
    /// `requests` by second.
    pub iops: f64,
    /// Bytes read and written, by second.
    pub throughput_bytes_per_second: f64,
    /// Requests by operation.
    pub requests_by_op: ByOp<u64>,
    /// From the intended start to the completion; `null` without requests. Of a simulated target
    /// percentiles are the middle of a bin and at most 0.4 % off.
    pub latency_ns: Option<LatencyByOp>,
}
