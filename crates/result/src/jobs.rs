//! Figures of one job among several that ran in one run.

use std::fmt::Write;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ssdyno_block::{Op, Time};

use crate::format::{bytes_per_second, count, rate};
use crate::recorder::is_data;
use crate::recording::Recording;
use crate::result::{ByOp, LatencyByOp};

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

impl JobResult {
    /// The figures of `recording`, in a run whose recorded window began at `run_start`. Name, group
    /// and copies are for the caller to fill.
    pub fn of(recording: &Recording, run_start: Time) -> JobResult {
        let seconds = recording.window().as_s_f64();
        let per_second = |n: u64| if seconds > 0.0 { n as f64 / seconds } else { 0.0 };
        let moved = Op::ALL.iter().filter(|op| is_data(**op)).map(|op| recording.bytes(*op)).sum();
        let requests = recording.requests();
        JobResult {
            start_seconds: recording.start().saturating_sub(run_start).as_s_f64(),
            seconds,
            requests,
            errors: recording.errors(),
            unanswered: recording.unanswered(),
            iops: per_second(requests),
            throughput_bytes_per_second: per_second(moved),
            requests_by_op: ByOp::from_fn(|op| recording.count(op)),
            latency_ns: recording.latency(),
            ..JobResult::default()
        }
    }

    /// `randread`, `randread x4`: the name with the number of copies.
    pub(crate) fn label(&self) -> String {
        let mut label = self.name.clone();
        if self.copies > 1 {
            // Writing to a string cannot fail.
            let _ = write!(label, " x{}", self.copies);
        }
        label
    }

    /// Requests, rates and latencies as a row of text.
    pub(crate) fn row(&self) -> Vec<String> {
        let mut row = vec![self.label(), count(self.requests), rate(self.iops)];
        row.push(bytes_per_second(self.throughput_bytes_per_second));
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

/// The head of a table of [`JobResult::row`].
pub(crate) const HEADER: [&str; 9] =
    ["Job", "requests", "IOPS", "throughput", "mean", "p50", "p99", "p99.9", "max"];
