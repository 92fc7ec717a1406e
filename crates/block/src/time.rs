//! Time as an integer number of picoseconds.

use core::fmt;
use core::iter::Sum;
use core::ops::{Add, AddAssign, Div, Mul, Rem, Sub, SubAssign};

/// An instant on the virtual clock, or a span between two instants, in picoseconds.
///
/// Range: 0 to 2^64 - 1 ps (213 days). One type serves for both because every model does
/// arithmetic on them together; arithmetic that leaves the range panics in debug builds. What is made
/// from a coarser unit and does not fit is [`Time::MAX`], in every build. The clock of a machine, which
/// may run for longer, is a [`MonotonicTime`](crate::MonotonicTime).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(u64);

impl Time {
    /// The start of every run, and the empty span.
    pub const ZERO: Time = Time(0);
    /// Later than everything.
    pub const MAX: Time = Time(u64::MAX);
    /// No event is later: [`MAX`](Time::MAX) stands for never.
    pub const LAST: Time = Time(u64::MAX - 1);

    /// `ps` picoseconds.
    #[inline]
    pub const fn from_ps(ps: u64) -> Time {
        Time(ps)
    }
    /// `ns` nanoseconds; [`Time::MAX`] where that does not fit.
    #[inline]
    pub const fn from_ns(ns: u64) -> Time {
        Time(ns.saturating_mul(1_000))
    }
    /// `us` microseconds; [`Time::MAX`] where that does not fit.
    #[inline]
    pub const fn from_us(us: u64) -> Time {
        Time(us.saturating_mul(1_000_000))
    }
    /// `ms` milliseconds; [`Time::MAX`] where that does not fit.
    #[inline]
    pub const fn from_ms(ms: u64) -> Time {
        Time(ms.saturating_mul(1_000_000_000))
    }
    /// `s` seconds; [`Time::MAX`] where that does not fit.
    #[inline]
    pub const fn from_s(s: u64) -> Time {
        Time(s.saturating_mul(1_000_000_000_000))
    }
    /// The nearest picosecond to `s` seconds; negative, NaN and overlong values saturate.
    #[inline]
    pub fn from_s_f64(s: f64) -> Time {
        // `f64::round` is not in `core`; below 2^52 ps adding a half and cutting off is the same.
        let ps = s * 1e12;
        Time(if ps < 4.5e15 { (ps + 0.5) as u64 } else { ps as u64 })
    }
    /// Picoseconds.
    #[inline]
    pub const fn as_ps(self) -> u64 {
        self.0
    }
    /// Whole nanoseconds, rounded down.
    #[inline]
    pub const fn as_ns(self) -> u64 {
        self.0 / 1_000
    }
    /// Nanoseconds with their fraction.
    #[inline]
    pub fn as_ns_f64(self) -> f64 {
        self.0 as f64 / 1e3
    }
    /// Seconds with their fraction.
    #[inline]
    pub fn as_s_f64(self) -> f64 {
        self.0 as f64 / 1e12
    }
    /// `self - other`, or zero where `other` is later.
    #[inline]
    pub const fn saturating_sub(self, other: Time) -> Time {
        Time(self.0.saturating_sub(other.0))
    }
    /// `self + other`, or [`Time::MAX`] where that leaves the range.
    #[inline]
    pub const fn saturating_add(self, other: Time) -> Time {
        Time(self.0.saturating_add(other.0))
    }
    /// `self * n`, or `None` where that leaves the range.
    #[inline]
    pub const fn checked_mul(self, n: u64) -> Option<Time> {
        match self.0.checked_mul(n) {
            Some(ps) => Some(Time(ps)),
            None => None,
        }
    }
}

impl Add for Time {
    type Output = Time;
    #[inline]
    fn add(self, o: Time) -> Time {
        Time(self.0 + o.0)
    }
}
impl AddAssign for Time {
    #[inline]
    fn add_assign(&mut self, o: Time) {
        self.0 += o.0;
    }
}
impl Sub for Time {
    type Output = Time;
    #[inline]
    fn sub(self, o: Time) -> Time {
        Time(self.0 - o.0)
    }
}
impl SubAssign for Time {
    #[inline]
    fn sub_assign(&mut self, o: Time) {
        self.0 -= o.0;
    }
}
impl Mul<u64> for Time {
    type Output = Time;
    #[inline]
    fn mul(self, n: u64) -> Time {
        Time(self.0 * n)
    }
}
impl Div<u64> for Time {
    type Output = Time;
    #[inline]
    fn div(self, n: u64) -> Time {
        Time(self.0 / n)
    }
}
impl Div for Time {
    type Output = u64;
    #[inline]
    fn div(self, o: Time) -> u64 {
        self.0 / o.0
    }
}
impl Rem for Time {
    type Output = Time;
    #[inline]
    fn rem(self, o: Time) -> Time {
        Time(self.0 % o.0)
    }
}
impl Sum for Time {
    #[inline]
    fn sum<I: Iterator<Item = Time>>(iter: I) -> Time {
        iter.fold(Time::ZERO, Add::add)
    }
}

/// Three or four significant digits in the largest unit that keeps them: `25 us`, `1.234 ms`.
impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ps = self.0 as f64;
        let (value, unit) = match self.0 {
            0..1_000 => (ps, "ps"),
            1_000..1_000_000 => (ps / 1e3, "ns"),
            1_000_000..1_000_000_000 => (ps / 1e6, "us"),
            1_000_000_000..1_000_000_000_000 => (ps / 1e9, "ms"),
            _ => (ps / 1e12, "s"),
        };
        let digits = match value {
            v if v % 1.0 == 0.0 => 0,
            v if v < 10.0 => 3,
            v if v < 100.0 => 2,
            _ => 1,
        };
        write!(f, "{value:.digits$} {unit}")
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}ps", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::Time;

    #[test]
    fn shows_the_largest_unit() {
        assert_eq!(Time::from_us(25).to_string(), "25 us");
        assert_eq!(Time::from_ps(1_234_000_000).to_string(), "1.234 ms");
        assert_eq!(Time::ZERO.to_string(), "0 ps");
    }

    #[test]
    fn coarser_units_saturate_and_do_not_wrap() {
        let day = 86_400;
        assert_eq!(Time::from_ns(213 * day * 1_000_000_000).as_ns(), 213 * day * 1_000_000_000);
        assert_eq!(Time::from_ns(214 * day * 1_000_000_000), Time::MAX);
        assert_eq!(Time::from_us(214 * day * 1_000_000), Time::MAX);
        assert_eq!(Time::from_ms(214 * day * 1_000), Time::MAX);
        assert_eq!(Time::from_s(214 * day), Time::MAX);
        assert_eq!(Time::from_ns(u64::MAX), Time::MAX);
    }

    #[test]
    fn seconds_saturate() {
        assert_eq!(Time::from_s_f64(-1.0), Time::ZERO);
        assert_eq!(Time::from_s_f64(f64::INFINITY), Time::MAX);
        assert_eq!(Time::from_s_f64(1e-12), Time::from_ps(1));
    }
}
