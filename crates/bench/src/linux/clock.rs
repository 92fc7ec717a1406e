//! The clock that every job of a run reads.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds since the start of the run, by the system's monotonic clock (one for all cores); 0 before it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    start_ns: u64,
}

impl Clock {
    /// A clock that starts now.
    pub(crate) fn start() -> Clock {
        Clock { start_ns: monotonic_ns() }
    }

    /// A clock that starts at `moment`, which may be to come.
    pub(crate) fn start_at(moment: Instant) -> Clock {
        // `Instant` does not show its nanoseconds. Both clocks are read side by side, and the
        // difference to the moment is carried over from one to the other.
        let (now_ns, now) = (monotonic_ns(), Instant::now());
        let to_come = moment.saturating_duration_since(now).as_nanos() as u64;
        Clock { start_ns: now_ns + to_come }
    }

    /// How long after `moment` it starts.
    pub(crate) fn start_after(&self, moment: Instant) -> Duration {
        let (now_ns, now) = (monotonic_ns(), Instant::now());
        let since = |earlier: Instant| now.saturating_duration_since(earlier);
        let started = Duration::from_nanos(now_ns.saturating_sub(self.start_ns));
        since(moment).saturating_sub(started)
    }

    /// Waits for the start: asleep until shortly before, then spinning.
    pub(crate) fn wait_for_start(&self) {
        let to_come = || Duration::from_nanos(self.start_ns.saturating_sub(monotonic_ns()));
        if let Some(sleep) = to_come().checked_sub(Margin::new().get()) {
            std::thread::sleep(sleep);
        }
        while !to_come().is_zero() {
            std::hint::spin_loop();
        }
    }

    /// The start by the wall's clock, in nanoseconds since 1970: as that clock is now.
    pub(crate) fn start_unix_ns(&self) -> u64 {
        // The wall clock is used for this one value only. It may be set while a run goes on; the
        // clock of the run may not.
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        (unix.as_nanos() as u64 + self.start_ns).saturating_sub(monotonic_ns())
    }

    /// Nanoseconds since the start. A read costs some 20 ns, without a system call.
    #[inline]
    pub(crate) fn now_ns(&self) -> u64 {
        monotonic_ns().saturating_sub(self.start_ns)
    }
}

#[inline]
fn monotonic_ns() -> u64 {
    // CLOCK_MONOTONIC is adjusted in rate but never jumps, and all cores agree on it. The time
    // stamp counter would be cheaper to read, but not every virtual machine has a stable one.
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// How long before a moment one must wake up to be there in time, and spin for the rest.
///
/// Sleeps end late, by the way back to a core: a few microseconds to a hundred, by machine. Spinning all the time would
/// be exact, but takes a core, and where others want it too the kernel then takes it away for milliseconds. So the
/// margin follows the observed sleeps: one sleep in two hundred exceeds it (a quantile found with unequal steps: up by
/// 199 parts after a later sleep, down by one part otherwise).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Margin {
    ns: u64,
}

impl Margin {
    // The floor keeps the subtraction in `learn` above zero and leaves time for the way back to
    // a core. The ceiling of 100 us is a tenth of a core at 1000 requests a second.
    const LEAST_NS: u64 = 5_000;
    const MOST_NS: u64 = 100_000;
    /// A two-hundredth of the way up.
    const STEP_NS: u64 = 20;

    /// The margin of a machine that is not known yet.
    pub(crate) fn new() -> Margin {
        Margin { ns: Margin::MOST_NS / 2 }
    }

    /// The margin as it is now.
    pub(crate) fn get(self) -> Duration {
        Duration::from_nanos(self.ns)
    }

    /// Learns of a sleep that ended `late_ns` after it should have.
    pub(crate) fn learn(&mut self, late_ns: u64) {
        self.ns = match late_ns > self.ns {
            true => (self.ns + 199 * Margin::STEP_NS).min(Margin::MOST_NS),
            false => (self.ns - Margin::STEP_NS).max(Margin::LEAST_NS),
        };
    }
}

/// Asks that timers of this thread are not delayed to join others (prctl(2), PR_SET_TIMERSLACK).
pub(crate) fn exact_timers() {
    // Without it timers come later; that shows in the report of lateness.
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_margin_settles_where_few_sleeps_exceed_it() {
        let (mut margin, mut exceeded) = (Margin::new(), 0);
        let mut rng = ssdyno_engine::Rng::new(1, "sleeps");
        for number in 0..40_000 {
            // Uniform from 0 to 40 us: 99.5 % stay below 39.8.
            let late = rng.below(40_000);
            exceeded += u32::from(number >= 20_000 && u128::from(late) > margin.get().as_nanos());
            margin.learn(late);
        }
        assert!((35_000..45_000).contains(&margin.ns), "{margin:?}");
        assert!((50..150).contains(&exceeded), "{exceeded}");
        (0..100).for_each(|_| margin.learn(50_000_000));
        assert_eq!(margin.ns, Margin::MOST_NS, "a machine that is busy otherwise");
    }
}
