//! A snapshot of a run for a viewer: the figures recorded so far.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ssdyno_block::{Op, Time};

use crate::histogram::{Histogram, rank};
use crate::picoseconds;
use crate::result::ByOp;

/// Percentiles in a glance: p50, p99, p99.9.
const SHARES: [f64; 3] = [0.50, 0.99, 0.999];

/// The state of a recording during the run. The difference between two snapshots is the activity between them.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct LiveSnapshot {
    /// Time of the snapshot, on the clock of the run.
    #[serde(rename = "now_ps", with = "picoseconds")]
    #[schemars(with = "u64")]
    pub now: Time,
    /// Requests completed since the start, with ramp-up and errors.
    pub completed: u64,
    /// Requests that ended in an error.
    pub errors: u64,
    /// Bytes read and written.
    pub bytes: u64,
    /// Requests without error by operation.
    #[serde(default)]
    pub requests_by_op: ByOp<u64>,
    /// Bytes of these requests by operation.
    #[serde(default)]
    pub bytes_by_op: ByOp<u64>,
    /// Sum of the latencies of these requests, in ns, rounded down by less than 1 ns for each operation of a job.
    #[serde(default)]
    pub latency_ns_sum: u64,
    /// Latencies of the requests without error, all operations together.
    pub histogram: Histogram,
}

fn merge(by_op: &mut ByOp<u64>, other: &ByOp<u64>) {
    for (op, (_, one)) in Op::ALL.into_iter().zip(other.iter()) {
        by_op.add(op, *one);
    }
}

/// The counts in `now` less those in `then`.
fn less(now: &ByOp<u64>, then: &ByOp<u64>) -> ByOp<u64> {
    let mut pairs = now.iter().zip(then.iter()).map(|((_, now), (_, then))| (*now, *then));
    ByOp::from_fn(|_| pairs.next().map_or(0, |(now, then)| now.saturating_sub(then)))
}

impl LiveSnapshot {
    /// Adds what another job recorded.
    pub fn merge(&mut self, other: &LiveSnapshot) {
        self.now = self.now.max(other.now);
        self.completed += other.completed;
        self.errors += other.errors;
        self.bytes += other.bytes;
        merge(&mut self.requests_by_op, &other.requests_by_op);
        merge(&mut self.bytes_by_op, &other.bytes_by_op);
        self.latency_ns_sum = self.latency_ns_sum.saturating_add(other.latency_ns_sum);
        self.histogram.merge(&other.histogram);
    }

    /// The recording since `earlier`, which belongs to the same run.
    pub fn since(&self, earlier: &LiveSnapshot) -> LiveSnapshot {
        LiveSnapshot {
            now: self.now.saturating_sub(earlier.now),
            completed: self.completed.saturating_sub(earlier.completed),
            errors: self.errors.saturating_sub(earlier.errors),
            bytes: self.bytes.saturating_sub(earlier.bytes),
            requests_by_op: less(&self.requests_by_op, &earlier.requests_by_op),
            bytes_by_op: less(&self.bytes_by_op, &earlier.bytes_by_op),
            latency_ns_sum: self.latency_ns_sum.saturating_sub(earlier.latency_ns_sum),
            histogram: self.histogram.since(&earlier.histogram),
        }
    }

    /// p50, p99 and p99.9 in ns, within 0.4 %; `None` without requests.
    pub fn percentiles_ns(&self) -> Option<[f64; 3]> {
        let total = self.histogram.total();
        let at = |share| self.histogram.value_at(rank(share, total));
        let [Some(p50), Some(p99), Some(p99_9)] = SHARES.map(at) else { return None };
        Some([p50, p99, p99_9])
    }
}
