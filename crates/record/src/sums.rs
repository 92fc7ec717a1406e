//! The exact sum of times, and their extremes.

use std::iter::Sum;

use serde::{Deserialize, Serialize};
use ssdyno_block::Time;

/// Exact sum of some times, the shortest and the longest.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Sums {
    pub(crate) ps: u128,
    pub(crate) ps_min: u64,
    pub(crate) ps_max: u64,
}

impl Default for Sums {
    fn default() -> Sums {
        Sums { ps: 0, ps_min: u64::MAX, ps_max: 0 }
    }
}

impl Sums {
    #[inline]
    pub(crate) fn of(time: Time) -> Sums {
        let ps = time.as_ps();
        Sums { ps: u128::from(ps), ps_min: ps, ps_max: ps }
    }

    #[inline]
    pub(crate) fn add(&mut self, other: &Sums) {
        self.ps += other.ps;
        self.ps_min = self.ps_min.min(other.ps_min);
        self.ps_max = self.ps_max.max(other.ps_max);
    }

    /// The sum in nanoseconds, at most the largest that a live view holds.
    pub(crate) fn ns(&self) -> u64 {
        u64::try_from(self.ps / 1000).unwrap_or(u64::MAX)
    }
}

impl<'a> Sum<&'a Sums> for Sums {
    fn sum<I: Iterator<Item = &'a Sums>>(all: I) -> Sums {
        let mut sum = Sums::default();
        all.for_each(|one| sum.add(one));
        sum
    }
}
