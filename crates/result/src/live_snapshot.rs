//! What a run has recorded so far, for who watches it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ssdyno_block::{Op, Time};

use crate::histogram::Histogram;
use crate::progress::picoseconds;
use crate::recorder::{Totals, is_data};
use crate::result::ByOp;

/// Percentiles that a glance tells: p50, p99, p99.9.
const SHARES: [f64; 3] = [0.50, 0.99, 0.999];

/// The state of a recording while it goes on. Two of them, one from the other, say what happened
/// between.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct LiveSnapshot {
    /// When it was taken, on the clock of the run.
    #[serde(rename = "now_ps", with = "picoseconds")]
    #[schemars(with = "u64")]
    pub now: Time,
    /// Requests completed by then since the start, with ramp-up and errors.
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

/// Adds `one` to the value of `op`.
pub(crate) fn add_to(by_op: &mut ByOp<u64>, op: Op, one: u64) {
    let value = match op {
        Op::Read => &mut by_op.read,
        Op::Write => &mut by_op.write,
        Op::Trim => &mut by_op.trim,
        Op::Flush => &mut by_op.flush,
    };
    *value = value.saturating_add(one);
}

fn merge(by_op: &mut ByOp<u64>, other: &ByOp<u64>) {
    for (op, (_, one)) in Op::ALL.into_iter().zip(other.iter()) {
        add_to(by_op, op, *one);
    }
}

/// What was counted in `now` and not in `then`.
fn less(now: &ByOp<u64>, then: &ByOp<u64>) -> ByOp<u64> {
    let mut pairs = now.iter().zip(then.iter()).map(|((_, now), (_, then))| (*now, *then));
    ByOp::from_fn(|_| pairs.next().map_or(0, |(now, then)| now.saturating_sub(then)))
}

impl LiveSnapshot {
    pub(crate) fn of<'a>(all: impl IntoIterator<Item = &'a [Totals; 4]>) -> LiveSnapshot {
        let mut glance = LiveSnapshot::default();
        for totals in all {
            for (op, totals) in Op::ALL.into_iter().zip(totals) {
                glance.errors += totals.errors;
                glance.bytes += if is_data(op) { totals.bytes } else { 0 };
                add_to(&mut glance.requests_by_op, op, totals.histogram.total());
                add_to(&mut glance.bytes_by_op, op, totals.bytes);
                let ns = u64::try_from(totals.latency_ps / 1000).unwrap_or(u64::MAX);
                glance.latency_ns_sum = glance.latency_ns_sum.saturating_add(ns);
                if totals.histogram.total() > 0 {
                    glance.histogram.merge(&totals.histogram);
                }
            }
        }
        glance
    }

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

    /// What was recorded after `earlier`, which is of the same run.
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
        let at = |share| self.histogram.value_at(crate::quantiles::rank(share, total));
        let [Some(p50), Some(p99), Some(p99_9)] = SHARES.map(at) else { return None };
        Some([p50, p99, p99_9])
    }
}

#[cfg(test)]
mod tests {
    use ssdyno_block::{Request, Status, Time};

    use crate::{Keep, Recorder, Tape};

    #[test]
    fn a_glance_tells_of_the_requests_since_the_last_one() {
        let mut tape = Tape::new(Keep::Summary, None, false);
        let read = Request::read(0, 4096);
        tape.issued(0, 3);
        tape.reaped(1_000).add(&read, 0, 0, Status::Ok);
        let first = tape.glance();
        // One that waited outside is among the others.
        tape.reaped(900_000).add(&read, 0, 500, Status::Ok);
        tape.reaped(900_000).add(&read, 0, 0, Status::Error);
        let all = tape.glance();
        assert_eq!((all.histogram.total(), all.bytes, all.errors), (2, 8192, 1));
        assert_eq!((all.requests_by_op.read, all.bytes_by_op.read), (2, 8192));
        assert_eq!((all.latency_ns_sum, first.latency_ns_sum), (901_000, 1_000));
        let between = all.since(&first);
        assert_eq!((between.histogram.total(), between.bytes, between.errors), (1, 4096, 1));
        let read = (between.requests_by_op.read, between.bytes_by_op.read, between.latency_ns_sum);
        assert_eq!(read, (1, 4096, 900_000));
        let [p50, _, p99_9] = between.percentiles_ns().unwrap();
        assert!(p50 == p99_9 && (p50 / 900_000.0 - 1.0).abs() < 0.004, "{p50}");
        assert_eq!(first.since(&all).percentiles_ns(), None);
    }

    #[test]
    fn jobs_add_up_and_a_recorder_tells_the_same() {
        let mut recorder = Recorder::new(Keep::Summary, None);
        let read = Request::read(0, 4096);
        recorder.arrived(Time::ZERO);
        let completion = ssdyno_block::Completion {
            token: ssdyno_block::Token(0),
            accepted: Time::ZERO,
            completed: Time::from_us(3),
            status: Status::Ok,
        };
        recorder.record(&read, Time::ZERO, &completion);
        let mut glance = recorder.glance();
        glance.merge(&recorder.glance());
        assert_eq!((glance.histogram.total(), glance.bytes), (2, 8192));
        assert_eq!((glance.requests_by_op.read, glance.bytes_by_op.read), (2, 8192));
        assert_eq!((glance.latency_ns_sum, glance.requests_by_op.write), (6_000, 0));
    }
}
