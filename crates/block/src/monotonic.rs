//! An instant on a clock that does not end.

use core::cmp::Ordering;
use core::fmt;
use core::ops::Add;
use core::time::Duration;

use crate::Time;

/// An instant on a monotonic clock of any origin, in picoseconds: the time that drivers are told with
/// each call, and that of the deadlines that they name.
///
/// [`Time`] ends 213 days after its origin, which is enough for a simulated run and not for a machine.
/// This one has 128 bits and lasts for 10^19 years, so a driver neither wraps nor stops looking after
/// its commands, however long the machine has been up; and the picoseconds of a simulated clock stay
/// exact. Spans (timeouts, intervals) are [`Time`].
///
/// From a clock of nanoseconds: [`from_ns`](MonotonicTime::from_ns), from one of the standard library:
/// [`Duration`] since any origin. A simulated clock's [`Time`] becomes one with [`From`], and
/// [`time`](MonotonicTime::time) is the way back.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct MonotonicTime(u128);

impl MonotonicTime {
    /// The origin.
    pub const ZERO: MonotonicTime = MonotonicTime(0);
    /// Later than everything: stands for never.
    pub const MAX: MonotonicTime = MonotonicTime(u128::MAX);

    /// `ps` picoseconds after the origin.
    #[inline]
    pub const fn from_ps(ps: u128) -> MonotonicTime {
        MonotonicTime(ps)
    }
    /// `ns` nanoseconds after the origin. Every value fits.
    #[inline]
    pub const fn from_ns(ns: u64) -> MonotonicTime {
        MonotonicTime(ns as u128 * 1_000)
    }
    /// Picoseconds after the origin.
    #[inline]
    pub const fn as_ps(self) -> u128 {
        self.0
    }
    /// Nanoseconds after the origin, rounded up, so that a timer of that time is not early; after
    /// 584 years `u64::MAX`.
    #[inline]
    pub const fn as_ns_ceil(self) -> u64 {
        let ns = self.0.div_ceil(1_000);
        if ns > u64::MAX as u128 { u64::MAX } else { ns as u64 }
    }
    /// On a simulated clock with the same origin: [`Time::MAX`] where that has ended.
    #[inline]
    pub const fn time(self) -> Time {
        if self.0 > u64::MAX as u128 { Time::MAX } else { Time::from_ps(self.0 as u64) }
    }
    /// `span` later; never later than [`MAX`](MonotonicTime::MAX).
    #[inline]
    pub const fn after(self, span: Time) -> MonotonicTime {
        MonotonicTime(self.0.saturating_add(span.as_ps() as u128))
    }
    /// The span since `earlier`: zero where that is later, [`Time::MAX`] where it does not fit.
    #[inline]
    pub const fn since(self, earlier: MonotonicTime) -> Time {
        MonotonicTime(self.0.saturating_sub(earlier.0)).time()
    }
}

impl From<Time> for MonotonicTime {
    #[inline]
    fn from(time: Time) -> MonotonicTime {
        MonotonicTime(u128::from(time.as_ps()))
    }
}

/// Since the clock's origin.
impl From<Duration> for MonotonicTime {
    #[inline]
    fn from(since: Duration) -> MonotonicTime {
        // 2^64 s are less than 2^104 ps.
        MonotonicTime(since.as_nanos() * 1_000)
    }
}

impl Add<Time> for MonotonicTime {
    type Output = MonotonicTime;
    #[inline]
    fn add(self, span: Time) -> MonotonicTime {
        self.after(span)
    }
}

impl PartialEq<Time> for MonotonicTime {
    #[inline]
    fn eq(&self, other: &Time) -> bool {
        *self == MonotonicTime::from(*other)
    }
}

impl PartialOrd<Time> for MonotonicTime {
    #[inline]
    fn partial_cmp(&self, other: &Time) -> Option<Ordering> {
        Some(self.cmp(&MonotonicTime::from(*other)))
    }
}

impl fmt::Debug for MonotonicTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}ps", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_clock_of_nanoseconds_fits() {
        let end = MonotonicTime::from_ns(u64::MAX);
        assert_eq!(end.as_ps(), u128::from(u64::MAX) * 1000);
        assert_eq!(end.as_ns_ceil(), u64::MAX);
        assert_eq!(end.after(Time::MAX).since(end), Time::MAX);
        assert!(end.after(Time::from_ps(1)) > end && end < MonotonicTime::MAX);
        assert_eq!(MonotonicTime::from(Duration::MAX).as_ps(), Duration::MAX.as_nanos() * 1000);
        assert_eq!(MonotonicTime::MAX.after(Time::from_ps(1)), MonotonicTime::MAX);
    }

    #[test]
    fn simulated_clock_goes_in_and_out_unchanged() {
        for ps in [0, 1, 999, 1_000, u64::MAX - 1, u64::MAX] {
            let time = Time::from_ps(ps);
            assert_eq!(MonotonicTime::from(time).time(), time);
            assert!(MonotonicTime::from(time) == time);
        }
        let end = MonotonicTime::from(Time::MAX);
        assert!(end.after(Time::from_ps(1)) > Time::MAX);
        assert_eq!(end.after(Time::from_ps(1)).time(), Time::MAX);
        assert_eq!(MonotonicTime::ZERO.since(end), Time::ZERO);
        assert_eq!(MonotonicTime::from_ps(1).as_ns_ceil(), 1);
    }
}
