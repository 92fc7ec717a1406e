//! The clock that every job of a run reads.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds since the start of the run, by the system's monotonic clock (one for all cores).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    start_ns: u64,
}

impl Clock {
    /// A clock that starts now.
    pub(crate) fn start() -> Clock {
        Clock { start_ns: monotonic_ns() }
    }

    /// Nanoseconds since the start. A read costs some 20 ns, without a system call.
    #[inline]
    pub(crate) fn now_ns(&self) -> u64 {
        monotonic_ns() - self.start_ns
    }
}

#[inline]
fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Sleeps ended by the kernel's timer come late, by the slack (50 µs unless asked otherwise) and
/// by the way back to a core. Whoever must be exact spins for the rest.
pub(crate) const SPIN: Duration = Duration::from_micros(100);

/// Asks that timers of this thread are not delayed to join others (prctl(2), PR_SET_TIMERSLACK).
pub(crate) fn exact_timers() {
    // Without it timers come later; that shows in the report of lateness.
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
}
