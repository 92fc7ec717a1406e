//! How late requests were issued.

use ssdyno_figures::{Histogram, Warning, WarningKind, nanoseconds};
use ssdyno_record::ARRIVALS_LEAST_FOR_OVERLOAD;

/// Lateness of 1 % of the requests that asks for an explanation.
const MUCH_NS: f64 = 50_000.0;

/// Time from the intended start of a request to its submission. Of an open loop or a trace; in a
/// closed loop a request is meant to start when it does.
#[derive(Clone, Debug, Default)]
pub(crate) struct Delays {
    /// Of requests that found a place: our own lateness.
    ours: Option<Box<Histogram>>,
    ours_ns_max: u64,
    /// Requests that waited because as many as allowed were outstanding: the target's lateness.
    queued: u64,
    /// Lateness of the last one that waited for a free slot.
    queued_ns_last: u64,
    punctual: u64,
}

/// The last request of an overload is late by a larger share of the run than this. Each request of a burst may wait for a free
/// slot as well, but the next burst finds all of them free.
const LATE_LEAST: f64 = 0.02;

impl Delays {
    /// Counts a request that was issued `late_ns` after it was meant to, perhaps because there
    /// was no room for it.
    #[inline]
    pub(crate) fn add(&mut self, late_ns: u64, was_full: bool) {
        // In a closed loop every request is punctual. The usual path is one addition, and the
        // histogram is never allocated.
        if late_ns == 0 {
            self.punctual += 1;
        } else {
            self.add_late(late_ns, was_full);
        }
    }

    fn add_late(&mut self, late_ns: u64, was_full: bool) {
        // The target was not fast enough to make room. That lateness is not caused by this program,
        // so it does not go into its histogram.
        if was_full {
            self.queued += 1;
            self.queued_ns_last = late_ns;
            return;
        }
        self.ours.get_or_insert_default().add(late_ns);
        self.ours_ns_max = self.ours_ns_max.max(late_ns);
    }

    /// Adds those of another job.
    pub(crate) fn merge(&mut self, other: &Delays) {
        if let Some(theirs) = &other.ours {
            self.ours.get_or_insert_default().merge(theirs);
        }
        self.ours_ns_max = self.ours_ns_max.max(other.ours_ns_max);
        self.queued += other.queued;
        self.queued_ns_last = self.queued_ns_last.max(other.queued_ns_last);
        self.punctual += other.punctual;
    }

    /// The lateness in ns that `share` of the requests that found a place did not exceed.
    pub(crate) fn ours_ns_at(&self, share: f64) -> f64 {
        let late = self.ours.as_ref().map_or(0, |late| late.total());
        let rank = (share * (self.punctual + late) as f64).ceil() as u64;
        // Punctual requests have rank first: their lateness is 0. Only the rest of the rank is
        // looked for in the histogram.
        let rank = rank.saturating_sub(self.punctual);
        let found = self.ours.as_ref().and_then(|ours| ours.value_at(rank.max(1)));
        // The middle of a bin may lie above everything in it.
        found.filter(|_| rank > 0).unwrap_or(0.0).min(self.ours_ns_max())
    }

    /// The largest lateness of a request that found a place, in ns.
    pub(crate) fn ours_ns_max(&self) -> f64 {
        self.ours_ns_max as f64
    }

    /// Requests that waited for a free slot.
    pub(crate) fn queued(&self) -> u64 {
        self.queued
    }

    /// Requests that found a place.
    fn placed(&self) -> u64 {
        self.punctual + self.ours.as_ref().map_or(0, |late| late.total())
    }

    /// Whether most requests waited for a free slot.
    fn is_overloaded(&self) -> bool {
        self.queued > self.placed()
    }

    /// That the target does not keep up, of a run of `run_ns` that is too short to know by how much.
    pub(crate) fn overload(&self, run_ns: f64) -> Option<Warning> {
        let arrivals = self.queued + self.placed();
        let is_short = arrivals < ARRIVALS_LEAST_FOR_OVERLOAD;
        if is_short || self.queued_ns_last as f64 <= LATE_LEAST * run_ns {
            return None;
        }
        let message = format!(
            "overloaded: the target does not keep up with the arrivals; {} of {} requests waited for a free slot",
            self.queued, arrivals
        );
        let warning = Warning::new(WarningKind::Overloaded, message);
        self.is_overloaded().then(|| warning.with_help("lower the arrival rate or raise the depth"))
    }

    /// The report; nothing in a closed loop.
    pub(crate) fn note(&self) -> Option<String> {
        if self.ours.is_none() && self.queued == 0 {
            return None;
        }
        let mut text = format!(
            "requests were issued late: {} (median), {} (p99), {} (maximum)",
            nanoseconds(self.ours_ns_at(0.5)),
            nanoseconds(self.ours_ns_at(0.99)),
            nanoseconds(self.ours_ns_max as f64),
        );
        if self.queued > 0 {
            text.push_str(&format!(
                "; {} more waited because the depth limit was reached",
                self.queued
            ));
        }
        text.push_str("; latencies count from the intended start");
        if self.ours_ns_at(0.99) > MUCH_NS && !self.is_overloaded() {
            text.push_str(
                ". Such delays mean that other work runs on the cores, which should be idle, or that one job cannot issue requests this fast",
            );
        }
        Some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lateness_of_ours_and_of_the_target_are_told_apart() {
        let mut delays = Delays::default();
        assert_eq!(delays.note(), None);
        (0..90).for_each(|_| delays.add(0, false));
        (0..10).for_each(|_| delays.add(200, false));
        delays.add(1_000_000, true);
        assert_eq!((delays.ours_ns_at(0.5), delays.ours_ns_at(0.9)), (0.0, 0.0));
        assert_eq!((delays.ours_ns_at(0.91), delays.ours_ns_at(1.0)), (200.0, 200.0));
        // The first value of a bin whose middle is larger.
        let mut late = Delays::default();
        late.add(49_807_360, false);
        assert_eq!(late.ours_ns_at(0.99), late.ours_ns_max());
        let mut twice = delays.clone();
        twice.merge(&delays);
        assert_eq!(twice.ours_ns_at(0.91), 200.0);
        let note = twice.note().unwrap();
        assert!(note.contains("0 ns (median)") && note.contains("200.0 ns (maximum)"), "{note}");
        assert!(note.contains("2 more waited") && twice.overload(1e7).is_none(), "{note}");
        (0..200).for_each(|_| twice.add(1_000_000, true));
        let warning = twice.overload(1e7).unwrap();
        assert!(warning.message.contains("202 of 402 requests waited"), "{warning:?}");
        // Few requests that wait show no overload.
        let mut few = Delays::default();
        (0..63).for_each(|_| few.add(1_000_000, true));
        assert_eq!(few.overload(1e7), None);
        few.add(1_000_000, true);
        assert!(few.overload(1e7).unwrap().message.contains("64 of 64 requests waited"));
        // The same at the end of a longer run: bursts, each of which is served before the next one.
        assert_eq!(twice.overload(1e9), None);
    }
}
