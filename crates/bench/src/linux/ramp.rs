//! The ramp-up that several jobs share (S4-10).

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use crate::clock::Clock;

/// Counts the completions that are not recorded, over all jobs.
#[derive(Debug)]
pub(crate) struct Ramp {
    left: AtomicI64,
    /// Start of the recorded window; `u64::MAX` until it is known.
    start_ns: AtomicU64,
}

impl Ramp {
    /// The first `completions` are ramp-up.
    pub(crate) fn new(completions: u64) -> Ramp {
        let left = i64::try_from(completions).unwrap_or(i64::MAX);
        let start_ns = if left == 0 { 0 } else { u64::MAX };
        Ramp { left: AtomicI64::new(left), start_ns: AtomicU64::new(start_ns) }
    }

    /// All that completes before `start_ns` is ramp-up.
    pub(crate) fn until(start_ns: u64) -> Ramp {
        Ramp { left: AtomicI64::new(0), start_ns: AtomicU64::new(start_ns) }
    }

    /// Start of the recorded window, once it is known.
    pub(crate) fn start_ns(&self) -> Option<u64> {
        let start_ns = self.start_ns.load(Ordering::Acquire);
        (start_ns != u64::MAX).then_some(start_ns)
    }

    /// How many of `completions` are ramp-up, and the start of the window if it has begun.
    ///
    /// A job must claim what it reaped before it issues again. Then no event of any job is later
    /// than the start that is decided here: whoever claimed before had read the clock before.
    pub(crate) fn claim(&self, completions: u64, clock: &Clock) -> (u64, Option<u64>) {
        let count = completions as i64;
        // Exactly one job sees the count go from above zero to zero or below, and that one
        // decides the start. No lock is needed for it.
        let before = self.left.fetch_sub(count, Ordering::AcqRel);
        if before > count {
            return (completions, None);
        }
        if before > 0 {
            let start_ns = clock.now_ns();
            self.start_ns.store(start_ns, Ordering::Release);
            return (before as u64, Some(start_ns));
        }
        // Another job decides this very moment.
        loop {
            if let Some(start_ns) = self.start_ns() {
                return (0, Some(start_ns));
            }
            std::hint::spin_loop();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn jobs_skip_exactly_what_they_share() {
        let ramp = Arc::new(Ramp::new(10_007));
        let clock = Clock::start();
        let job = |size: u64| {
            let ramp = Arc::clone(&ramp);
            std::thread::spawn(move || {
                let (mut skipped, mut start) = (0, None);
                while start.is_none() {
                    let (some, known) = ramp.claim(size, &clock);
                    skipped += some;
                    start = known;
                }
                (skipped, start)
            })
        };
        let jobs: Vec<_> = [1, 7, 32].map(job).into_iter().collect();
        let ended: Vec<_> = jobs.into_iter().map(|job| job.join().unwrap()).collect();
        assert_eq!(ended.iter().map(|(skipped, _)| skipped).sum::<u64>(), 10_007);
        assert!(ended.iter().all(|(_, start)| *start == ramp.start_ns() && start.is_some()));
    }

    #[test]
    fn without_ramp_up_the_window_starts_at_once() {
        assert_eq!(Ramp::new(0).start_ns(), Some(0));
    }
}
