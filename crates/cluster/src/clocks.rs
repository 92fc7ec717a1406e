//! The clocks of two machines, compared by questions and answers (Cristian's method).
//!
//! The worker read its clock between question and answer. So the difference of the clocks is known within half of the
//! time that the answer took: a bound, not an estimate of one. Among many responses, the fastest has the narrowest
//! bound.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ssdyno_prober::monotonic_ns;

/// The clock of this machine that may be set, in nanoseconds since 1970.
pub(crate) fn unix_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64
}

/// The clock from 1970 less the monotonic one, now.
pub(crate) fn unix_less_monotonic_ns() -> i128 {
    i128::from(unix_ns()) - i128::from(monotonic_ns())
}

/// How many questions a comparison has.
pub(crate) const QUESTIONS: usize = 16;

/// By how much the clock of a host is ahead of the controller's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClockComparison {
    /// Nanoseconds to be added to the controller's monotonic clock for the worker's.
    pub monotonic_ns: i128,
    /// The same of the clocks that count from 1970.
    pub unix_ns: i128,
    /// Both may be wrong by this much to either side, for certain.
    pub uncertainty_ns: u64,
}

/// One question and its answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer {
    /// The controller's monotonic clock before the question.
    pub(crate) asked_ns: u64,
    /// The same after the answer.
    pub(crate) answered_ns: u64,
    /// The controller's clock from 1970 less its monotonic clock.
    pub(crate) unix_less_monotonic_ns: i128,
    /// What the worker read.
    pub(crate) reading: crate::protocol::ClockReading,
}

impl Answer {
    pub(crate) fn took(&self) -> Duration {
        Duration::from_nanos(self.answered_ns.saturating_sub(self.asked_ns))
    }

    fn comparison(&self) -> ClockComparison {
        let took = self.answered_ns.saturating_sub(self.asked_ns);
        // The worker read its clock somewhere between question and answer. The middle of this interval halves the
        // largest possible error; the two ends would give an error of the whole round trip to one side.
        let middle = i128::from(self.asked_ns) + i128::from(took / 2);
        // Both clocks use the same middle, so one round trip bounds both differences. The sums are `i128`: the
        // monotonic clocks of two machines started at different times, and either difference may be negative.
        ClockComparison {
            monotonic_ns: i128::from(self.reading.monotonic_ns) - middle,
            unix_ns: i128::from(self.reading.unix_ns) - middle - self.unix_less_monotonic_ns,
            uncertainty_ns: took.div_ceil(2),
        }
    }
}

/// The narrowest of `answers`; `None` without any.
pub(crate) fn compare(answers: &[Answer]) -> Option<ClockComparison> {
    // The mean over all answers would include the delays of a busy network or a busy worker. The fastest round
    // trip has the narrowest bound, and this bound is certain.
    answers.iter().min_by_key(|answer| answer.took()).map(Answer::comparison)
}

impl ClockComparison {
    /// What is known after a second comparison: the clocks drift by some microseconds a second, and between the two
    /// comparisons the difference was somewhere between both.
    pub(crate) fn and(self, later: ClockComparison) -> ClockComparison {
        let middle = |a: i128, b: i128| i128::midpoint(a, b);
        // The true difference moved from one comparison to the other. Half of the distance covers every value in
        // between, and the wider of the two bounds covers the error at either end.
        let apart = (self.monotonic_ns - later.monotonic_ns).unsigned_abs().div_ceil(2);
        let widest = self.uncertainty_ns.max(later.uncertainty_ns);
        ClockComparison {
            monotonic_ns: middle(self.monotonic_ns, later.monotonic_ns),
            // The wall clock of the worker may have been set during the run. Only the later value agrees with the
            // timestamps that the machine writes now, so the two values are not averaged.
            unix_ns: later.unix_ns,
            uncertainty_ns: widest.saturating_add(u64::try_from(apart).unwrap_or(u64::MAX)),
        }
    }

    /// The offset of the clocks from 1970, as results have it.
    pub(crate) fn unix_offset_ns(self) -> i64 {
        i64::try_from(self.unix_ns).unwrap_or(if self.unix_ns < 0 { i64::MIN } else { i64::MAX })
    }

    /// The moment `monotonic_ns` of the controller on the worker's clock.
    pub(crate) fn to_worker(self, monotonic_ns: u64) -> u64 {
        // A moment before the start of the worker's machine has no value on its clock. Zero lies in the past there
        // as well, so the worker begins at once instead of never.
        u64::try_from((i128::from(monotonic_ns) + self.monotonic_ns).max(0)).unwrap_or(u64::MAX)
    }

    /// The moment `monotonic_ns` of the worker on the controller's clock; below zero before the controller's machine was
    /// started.
    pub(crate) fn to_controller(self, monotonic_ns: u64) -> i128 {
        i128::from(monotonic_ns) - self.monotonic_ns
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::protocol::ClockReading;

    proptest! {
        /// However long the two ways take, the truth is within the uncertainty.
        #[test]
        fn the_truth_is_within_the_bound(
            ways in prop::collection::vec((0u64..5_000_000, 0u64..5_000_000), 1..20),
            ahead in -1_000_000_000_000i64..1_000_000_000_000,
            set in -1_000_000_000i64..1_000_000_000,
        ) {
            let mut now = 5_000_000_000_000u64;
            let answer = |(there, back): &(u64, u64)| {
                now += 1_000_000;
                let at = now + there;
                let monotonic_ns = (at as i64 + ahead) as u64;
                Answer {
                    asked_ns: now,
                    answered_ns: at + back,
                    unix_less_monotonic_ns: 77,
                    reading: ClockReading { monotonic_ns, unix_ns: (at as i64 + 77 + set) as u64 },
                }
            };
            let answers: Vec<Answer> = ways.iter().map(answer).collect();
            let known = compare(&answers).unwrap();
            let off = |known: i128, truth: i64| (known - i128::from(truth)).unsigned_abs();
            prop_assert!(off(known.monotonic_ns, ahead) <= u128::from(known.uncertainty_ns));
            prop_assert!(off(known.unix_ns, set) <= u128::from(known.uncertainty_ns));
            let best = ways.iter().map(|(there, back)| there + back).min().unwrap();
            prop_assert!(known.uncertainty_ns <= best.div_ceil(2));
            let moment = 4_000_000_000_000u64;
            prop_assert_eq!(known.to_controller(known.to_worker(moment)), i128::from(moment));
        }
    }

    #[test]
    fn two_comparisons_hold_what_lay_between() {
        let one = |monotonic_ns, uncertainty_ns| ClockComparison {
            monotonic_ns,
            unix_ns: monotonic_ns,
            uncertainty_ns,
        };
        let both = one(1_000, 50).and(one(1_400, 80));
        assert_eq!((both.monotonic_ns, both.uncertainty_ns, both.unix_ns), (1_200, 280, 1_400));
    }
}
