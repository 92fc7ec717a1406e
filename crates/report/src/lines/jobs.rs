//! Rows about the jobs of a run.

use std::fmt::Write;

use ssdyno_figures::{JobResult, LatencyIntervals, bytes_per_second, count, rate};

use super::latency::columns;

/// `randread`, `randread x4`: the name with the number of copies.
fn label(job: &JobResult) -> String {
    let mut label = job.name.clone();
    if job.copies > 1 {
        // Writing to a string cannot fail.
        let _ = write!(label, " x{}", job.copies);
    }
    label
}

/// Requests, rates and latencies as a row of text.
pub(crate) fn row(job: &JobResult) -> Vec<String> {
    let mut row = vec![label(job), count(job.requests), rate(job.iops)];
    row.push(bytes_per_second(job.throughput_bytes_per_second));
    row.extend(columns(job.latency_ns.as_ref(), job.requests, LatencyIntervals::default()));
    row
}

/// The head of a table of [`row`].
pub(crate) const HEADER: [&str; 9] =
    ["Job", "requests", "IOPS", "throughput", "mean", "p50", "p99", "p99.9", "max"];
