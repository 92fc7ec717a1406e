//! When requests are meant to start.

use ssdyno_block::Time;
use ssdyno_engine::Rng;

/// Times of an open loop, or none in a closed one.
#[derive(Clone, Debug)]
pub(crate) enum Pacing {
    /// As soon as the number outstanding allows.
    Closed,
    /// Exponential gaps of this mean, in ps.
    Poisson { mean_ps: f64 },
    /// Uniform gaps of 0 up to this.
    Uniform { most: Time },
    /// Equal gaps.
    Fixed(Gap),
    /// `length` at once, every `interval`; `left` of the present burst.
    Bursts { length: u64, interval: Time, left: u64 },
}

impl Pacing {
    /// The first arrival: at 0 if arrivals are a schedule, so that their number is a rate times a
    /// duration; after a gap if they are drawn, which makes the process the same at every moment
    /// (Poisson), as in DiskSim (S3-24).
    pub(crate) fn first(&mut self, rng: &mut Rng) -> Time {
        match self {
            Pacing::Closed | Pacing::Fixed(_) | Pacing::Bursts { .. } => Time::ZERO,
            Pacing::Poisson { .. } | Pacing::Uniform { .. } => self.after(Time::ZERO, rng),
        }
    }

    /// The arrival after the one at `last`; [`Time::MAX`] where that leaves the range of time.
    #[inline]
    pub(crate) fn after(&mut self, last: Time, rng: &mut Rng) -> Time {
        match self {
            Pacing::Closed => last,
            Pacing::Poisson { mean_ps } => {
                // Rounding to the nearest picosecond keeps the mean. A cast alone cuts off and
                // would raise a rate of 10^9 per second by 0.05 %.
                let gap = (rng.exponential() * *mean_ps).round();
                last.saturating_add(Time::from_ps(gap as u64))
            }
            Pacing::Uniform { most } => {
                // Both ends are included: S3-24 has uniform gaps of 0 to 1 ms with a mean of 0.5
                // ms. Without the upper end the mean would be half a picosecond too small.
                let gap = rng.below(most.as_ps().saturating_add(1));
                last.saturating_add(Time::from_ps(gap))
            }
            Pacing::Fixed(gap) => last.saturating_add(gap.next()),
            Pacing::Bursts { length, interval, left } => {
                *left -= 1;
                // All requests of a burst have the same intended time (S4-11). If the depth delays
                // some of them, this delay belongs to their latency.
                if *left > 0 {
                    return last;
                }
                *left = *length;
                last.saturating_add(*interval)
            }
        }
    }
}

/// A gap that need not be whole picoseconds: what is cut off is carried on, so that arrival number
/// n is n gaps after the first, to the nearest picosecond, however large n is.
#[derive(Clone, Debug)]
pub(crate) struct Gap {
    whole: Time,
    /// The part of the gap beyond `whole`, in parts of a picosecond; there are `parts` of them.
    rest: u128,
    parts: u128,
    carried: u128,
}

/// Picoseconds in a second, as a power of ten.
const PS_EXPONENT: i32 = 12;

impl Gap {
    /// Of whole picoseconds.
    pub(crate) fn whole(gap: Time) -> Gap {
        Gap { whole: gap, rest: 0, parts: 1, carried: 0 }
    }

    /// Of `rate` arrivals a second, taken as the decimal number that it prints as: 0.1 is a tenth.
    /// `None` where the gap, or a part of a picosecond in it, is out of range.
    pub(crate) fn of_rate(rate: f64) -> Option<Gap> {
        // The shortest decimal text of a float is what the user typed. 0.1 as a binary number is
        // not a tenth, and its gap would drift by one picosecond after many arrivals.
        let text = format!("{rate:e}");
        let (digits, exponent) = text.split_once('e')?;
        let decimals = digits.split_once('.').map_or(0, |(_, decimals)| decimals.len());
        let digits: u128 = digits.replace('.', "").parse().ok()?;
        // rate = digits x 10^exponent, and the gap is 10^12 ps over it.
        let exponent = exponent.parse::<i32>().ok()? - i32::try_from(decimals).ok()?;
        let power = |exponent: i32| 10_u128.checked_pow(u32::try_from(exponent.max(0)).ok()?);
        let above = power(PS_EXPONENT - exponent)?;
        let parts =
            digits.checked_mul(power(exponent - PS_EXPONENT)?).filter(|&parts| parts > 0)?;
        let whole = Time::from_ps(u64::try_from(above / parts).ok()?);
        Some(Gap { whole, rest: above % parts, parts, carried: parts / 2 })
    }

    #[inline]
    fn next(&mut self) -> Time {
        self.carried += self.rest;
        if self.carried < self.parts {
            return self.whole;
        }
        self.carried -= self.parts;
        self.whole.saturating_add(Time::from_ps(1))
    }
}
