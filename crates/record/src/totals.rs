//! Exact sums of what completed, by operation.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use ssdyno_block::{Op, Status, Time};
use ssdyno_figures::{Histogram, LiveSnapshot, picoseconds};

use crate::series::Series;
use crate::slices::View;
use crate::sums::Sums;

/// Exact sums over the requests of one operation.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Totals {
    pub(crate) bytes: u64,
    pub(crate) latencies: Latencies,
    pub(crate) errors: u64,
    /// First and last completion with an error.
    #[serde(default)]
    pub(crate) errors_at: Option<ErrorTimes>,
    /// Those that never completed, with the time that they were waited for.
    pub(crate) unanswered: Option<Box<Latencies>>,
    /// Those among them that were outstanding when the run ended. The others were given up earlier.
    #[serde(default)]
    pub(crate) outstanding: Option<Box<Latencies>>,
}

/// When the first and the last of some requests failed.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct ErrorTimes {
    #[serde(with = "picoseconds")]
    pub(crate) first: Time,
    #[serde(with = "picoseconds")]
    pub(crate) last: Time,
}

impl ErrorTimes {
    /// Those of two sets of requests.
    pub(crate) fn joined(one: Option<ErrorTimes>, other: Option<ErrorTimes>) -> Option<ErrorTimes> {
        let (Some(one), Some(other)) = (one, other) else { return one.or(other) };
        let (first, last) = (one.first.min(other.first), one.last.max(other.last));
        Some(ErrorTimes { first, last })
    }
}

/// Times of requests: their distribution, with their sum and extremes.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Latencies {
    pub(crate) sums: Sums,
    pub(crate) histogram: Histogram,
}

impl Latencies {
    #[inline]
    pub(crate) fn add(&mut self, latency: Time) {
        self.sums.add(&Sums::of(latency));
        self.histogram.add(latency.as_ns());
    }

    pub(crate) fn merge(&mut self, other: &Latencies) {
        self.sums.add(&other.sums);
        self.histogram.merge(&other.histogram);
    }
}

impl Totals {
    /// Counts a request that failed at `at`, after it was waited for that long, here and in `series`.
    #[cold]
    pub(crate) fn add_failed(
        &mut self,
        series: &mut Series,
        (op, status): (Op, Status),
        waited: Time,
        at: Time,
    ) {
        self.errors += 1;
        let this = Some(ErrorTimes { first: at, last: at });
        self.errors_at = ErrorTimes::joined(self.errors_at, this);
        if status == Status::Abandoned {
            self.add_unanswered(waited);
            return series.add_given_up(op, waited, at);
        }
        series.add_error(op, at);
    }

    /// Counts a request that was waited for that long, in vain.
    #[cold]
    pub(crate) fn add_unanswered(&mut self, waited: Time) {
        // Hardly any run has such requests. Without them their histogram takes no memory, and
        // copies of the totals stay cheap.
        self.unanswered.get_or_insert_default().add(waited);
    }

    /// Counts a request that was still outstanding at the end of the run, after it was waited for that long.
    #[cold]
    pub(crate) fn add_outstanding(&mut self, waited: Time) {
        self.add_unanswered(waited);
        self.outstanding.get_or_insert_default().add(waited);
    }

    /// Adds the outstanding requests of `other`.
    pub(crate) fn merge_outstanding(&mut self, other: &Totals) {
        if let Some(theirs) = &other.outstanding {
            self.unanswered.get_or_insert_default().merge(theirs);
            self.outstanding.get_or_insert_default().merge(theirs);
        }
    }

    /// Requests that never completed.
    pub(crate) fn unanswered(&self) -> u64 {
        self.unanswered.as_ref().map_or(0, |unanswered| unanswered.histogram.total())
    }

    /// The latencies of all, those without a completion as long as they were waited for.
    pub(crate) fn with_unanswered(&self) -> Cow<'_, Histogram> {
        match &self.unanswered {
            None => Cow::Borrowed(&self.latencies.histogram),
            Some(unanswered) => {
                let mut all = self.latencies.histogram.clone();
                all.merge(&unanswered.histogram);
                Cow::Owned(all)
            }
        }
    }

    /// The state of these and, where there are some, of `others` of the same operation.
    pub(crate) fn view<'a>(&'a self, others: Option<&'a Totals>) -> View<'a> {
        let all = || std::iter::once(self).chain(others).map(|totals| &totals.latencies);
        View {
            histograms: all().map(|latencies| &latencies.histogram).collect(),
            sums: all().map(|latencies| &latencies.sums).sum(),
        }
    }

    /// Adds what another job recorded.
    pub(crate) fn merge(&mut self, other: &Totals) {
        self.bytes += other.bytes;
        self.latencies.merge(&other.latencies);
        self.errors += other.errors;
        self.errors_at = ErrorTimes::joined(self.errors_at, other.errors_at);
        if let Some(theirs) = &other.unanswered {
            self.unanswered.get_or_insert_default().merge(theirs);
        }
        if let Some(theirs) = &other.outstanding {
            self.outstanding.get_or_insert_default().merge(theirs);
        }
    }
}

/// Whether an operation moves data: trimmed bytes are no throughput.
pub(crate) fn is_data(op: Op) -> bool {
    matches!(op, Op::Read | Op::Write)
}

/// The recording so far of jobs with these totals.
pub(crate) fn glance<'a>(all: impl IntoIterator<Item = &'a [Totals; 4]>) -> LiveSnapshot {
    let mut glance = LiveSnapshot::default();
    for totals in all {
        for (op, totals) in Op::ALL.into_iter().zip(totals) {
            glance.errors += totals.errors;
            // The sum over all operations is a throughput, to which trimmed bytes do not belong. By
            // operation they are reported unchanged.
            glance.bytes += if is_data(op) { totals.bytes } else { 0 };
            let latencies = &totals.latencies;
            glance.requests_by_op.add(op, latencies.histogram.total());
            glance.bytes_by_op.add(op, totals.bytes);
            glance.latency_ns_sum = glance.latency_ns_sum.saturating_add(latencies.sums.ns());
            if latencies.histogram.total() > 0 {
                glance.histogram.merge(&latencies.histogram);
            }
        }
    }
    glance
}

#[cfg(test)]
mod tests {
    use ssdyno_block::{Request, Status, Time};
    use ssdyno_figures::Keep;

    use crate::{Recorder, Tape};

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
