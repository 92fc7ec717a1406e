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
    Fixed { gap: Time },
    /// `length` at once, every `interval`; `left` of the present burst.
    Bursts { length: u64, interval: Time, left: u64 },
}

impl Pacing {
    /// The first arrival.
    pub(crate) fn first(&mut self, rng: &mut Rng) -> Time {
        match self {
            Pacing::Closed | Pacing::Bursts { .. } => Time::ZERO,
            _ => self.after(Time::ZERO, rng),
        }
    }

    /// The arrival after the one at `last`; [`Time::MAX`] where that leaves the range of time.
    #[inline]
    pub(crate) fn after(&mut self, last: Time, rng: &mut Rng) -> Time {
        match self {
            Pacing::Closed => last,
            Pacing::Poisson { mean_ps } => {
                let gap = (rng.exponential() * *mean_ps).round();
                last.saturating_add(Time::from_ps(gap as u64))
            }
            Pacing::Uniform { most } => {
                let gap = rng.below(most.as_ps().saturating_add(1));
                last.saturating_add(Time::from_ps(gap))
            }
            Pacing::Fixed { gap } => last.saturating_add(*gap),
            Pacing::Bursts { length, interval, left } => {
                *left -= 1;
                if *left > 0 {
                    return last;
                }
                *left = *length;
                last.saturating_add(*interval)
            }
        }
    }
}
