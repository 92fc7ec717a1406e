//! Amounts over time in buckets of one length, however long the run gets.

use serde::{Deserialize, Serialize};
use ssdyno_block::Time;
use ssdyno_figures::picoseconds;

/// Where the buckets of a series lie: they start at an origin and all have the same length.
///
/// The length doubles whenever time outgrows the most buckets that a grid may have, so that a
/// series stays small however long the run. An *automatic* grid starts at 1 ms and has at most
/// [`Grid::MOST_AUTOMATIC`] buckets; one of a *chosen* length has room for
/// [`Grid::MOST_CHOSEN`] before it doubles.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(try_from = "SentGrid")]
pub struct Grid {
    #[serde(with = "picoseconds")]
    origin: Time,
    #[serde(with = "picoseconds")]
    interval: Time,
    most: usize,
}

/// A grid as it travels.
#[derive(Deserialize)]
struct SentGrid {
    #[serde(with = "picoseconds")]
    origin: Time,
    #[serde(with = "picoseconds")]
    interval: Time,
    most: usize,
}

impl TryFrom<SentGrid> for Grid {
    type Error = &'static str;

    /// Data from a network may be anything: an interval of zero would be divided by, and doubled without end.
    fn try_from(sent: SentGrid) -> Result<Grid, &'static str> {
        let SentGrid { origin, interval, most } = sent;
        if interval == Time::ZERO || most == 0 {
            return Err("a series has no interval, or no room");
        }
        Ok(Grid { origin, interval, most })
    }
}

impl Grid {
    /// Buckets of an automatic grid at most; at least half as many once it has doubled.
    pub const MOST_AUTOMATIC: usize = 512;
    /// Buckets of a grid of a chosen length at most.
    pub const MOST_CHOSEN: usize = 1 << 16;
    /// Length of a bucket of an automatic grid before it doubles.
    pub const FIRST_INTERVAL: Time = Time::from_ms(1);

    /// A grid that starts at `origin`: of length `interval` where it is given (and not zero),
    /// automatic otherwise.
    pub fn new(origin: Time, interval: Option<Time>) -> Grid {
        match interval.filter(|i| *i > Time::ZERO) {
            Some(interval) => Grid { origin, interval, most: Grid::MOST_CHOSEN },
            None => Grid { origin, interval: Grid::FIRST_INTERVAL, most: Grid::MOST_AUTOMATIC },
        }
    }

    /// An automatic grid that starts at `origin` with buckets of length `first`, which is not zero.
    pub(crate) fn automatic(origin: Time, first: Time) -> Grid {
        Grid { origin, interval: first, most: Grid::MOST_AUTOMATIC }
    }

    /// The same with its first bucket at `origin`.
    pub(crate) fn from(self, origin: Time) -> Grid {
        Grid { origin, ..self }
    }

    /// From zero on, however many buckets that will be.
    pub(crate) fn unlimited(interval: Time) -> Grid {
        Grid { origin: Time::ZERO, interval, most: usize::MAX }
    }

    /// Start of the first bucket.
    pub fn origin(&self) -> Time {
        self.origin
    }

    /// Length of a bucket.
    pub fn interval(&self) -> Time {
        self.interval
    }

    /// Number of the bucket that holds `at`; what lies before the origin counts as the first.
    pub fn index(&self, at: Time) -> usize {
        (at.saturating_sub(self.origin) / self.interval) as usize
    }

    /// Start of bucket `index`.
    pub fn start(&self, index: usize) -> Time {
        self.origin.saturating_add(self.interval.checked_mul(index as u64).unwrap_or(Time::MAX))
    }

    /// Doubles the length until `at` fits; says how often. The owner merges neighbouring buckets
    /// as many times.
    fn make_room(&mut self, at: Time) -> u32 {
        let mut doubled = 0;
        while self.index(at) >= self.most {
            // Doubling lets two neighbours become one bucket exactly. No amount has to be split,
            // so sums stay exact over any number of doublings.
            self.interval = self.interval * 2;
            doubled += 1;
        }
        doubled
    }
}

/// The operations that a bucket needs.
pub(crate) trait Merge: Default {
    /// Takes the amounts of the bucket that follows it in time, or of the same one of another job.
    fn merge(&mut self, other: &Self);
}

/// Buckets of any kind on a [`Grid`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Track<B> {
    grid: Grid,
    buckets: Vec<B>,
    /// The bucket last used and its bounds: nearly every access is to it, and a division is
    /// spared.
    #[serde(skip)]
    current: usize,
    #[serde(skip)]
    current_from: Time,
    #[serde(skip)]
    current_to: Time,
}

impl<B: Merge> Track<B> {
    pub(crate) fn new(grid: Grid) -> Track<B> {
        Track {
            grid,
            buckets: Vec::new(),
            current: 0,
            current_from: Time::ZERO,
            current_to: Time::ZERO,
        }
    }

    pub(crate) fn grid(&self) -> Grid {
        self.grid
    }

    pub(crate) fn buckets(&self) -> &[B] {
        &self.buckets
    }

    /// Whether `at` is in the bucket last used.
    #[inline]
    pub(crate) fn is_in_current(&self, at: Time) -> bool {
        at >= self.current_from && at < self.current_to
    }

    /// The bucket last used; `None` before the first.
    pub(crate) fn current(&mut self) -> Option<&mut B> {
        self.buckets.get_mut(self.current)
    }

    /// The bucket that holds `at`.
    #[inline]
    pub(crate) fn at(&mut self, at: Time) -> &mut B {
        // Completions come in order of time. Nearly all fall into the bucket of the one before,
        // and two comparisons replace a division.
        if !self.is_in_current(at) {
            self.seek(at);
        }
        &mut self.buckets[self.current]
    }

    /// Makes buckets up to `at`, doubling the interval where they would be too many.
    #[cold]
    pub(crate) fn seek(&mut self, at: Time) {
        for _ in 0..self.grid.make_room(at) {
            self.halve();
        }
        let index = self.grid.index(at);
        while self.buckets.len() <= index {
            self.buckets.push(B::default());
        }
        self.current = index;
        // Times before the origin count in the first bucket. With its true start they would
        // miss the current bucket and be looked up each time.
        self.current_from = if index == 0 { Time::ZERO } else { self.grid.start(index) };
        self.current_to = self.grid.start(index + 1);
    }

    fn halve(&mut self) {
        let old = std::mem::take(&mut self.buckets);
        let mut old = old.into_iter();
        while let Some(mut first) = old.next() {
            if let Some(second) = old.next() {
                first.merge(&second);
            }
            self.buckets.push(first);
        }
        // The bounds of the current bucket are those of the finer grid. An empty range makes the
        // next access look for its bucket anew.
        self.current_to = Time::ZERO;
    }

    /// Adds the buckets of `other`, whose grid began at the same origin with the same interval.
    pub(crate) fn merge(&mut self, mut other: Track<B>) {
        self.coarsen_to(other.grid.interval);
        other.coarsen_to(self.grid.interval);
        while self.buckets.len() < other.buckets.len() {
            self.buckets.push(B::default());
        }
        self.buckets.iter_mut().zip(&other.buckets).for_each(|(mine, theirs)| mine.merge(theirs));
    }

    /// Doubles the interval until it is at least `interval`.
    fn coarsen_to(&mut self, interval: Time) {
        while self.grid.interval < interval {
            let doubled = self.grid.interval.checked_mul(2);
            self.grid.interval = doubled.unwrap_or(Time::MAX);
            self.halve();
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Default)]
    struct Sum(u64);

    impl Merge for Sum {
        fn merge(&mut self, other: &Sum) {
            self.0 += other.0;
        }
    }

    fn total(track: &Track<Sum>) -> u64 {
        track.buckets().iter().map(|bucket| bucket.0).sum()
    }

    #[test]
    fn automatic_grid_stays_small() {
        let mut track = Track::<Sum>::new(Grid::new(Time::ZERO, None));
        for s in 0..1_000 {
            track.at(Time::from_s(s)).0 += 2;
        }
        let len = track.buckets().len();
        assert!((256..=512).contains(&len), "{len} buckets");
        assert_eq!(total(&track), 2_000);
    }

    #[test]
    fn a_chosen_length_cannot_fill_the_memory() {
        let mut track = Track::<Sum>::new(Grid::new(Time::ZERO, Some(Time::from_ps(1))));
        track.at(Time::from_s(1)).0 += 1;
        assert!(track.buckets().len() <= Grid::MOST_CHOSEN);
        assert_eq!(total(&track), 1);
    }

    proptest! {
        /// In whatever order moments come, and however two tracks of one origin are merged.
        #[test]
        fn nothing_is_lost(
            chosen in any::<bool>(),
            moments in prop::collection::vec((0u64..3_000_000, 0u64..10, any::<bool>()), 1..50),
        ) {
            let grid = Grid::new(Time::ZERO, chosen.then_some(Time::from_us(700)));
            let (mut first, mut second) = (Track::<Sum>::new(grid), Track::<Sum>::new(grid));
            let mut sum = 0;
            for (us, amount, mine) in moments {
                let track = if mine { &mut first } else { &mut second };
                track.at(Time::from_us(us)).0 += amount;
                sum += amount;
            }
            prop_assert_eq!(total(&first) + total(&second), sum);
            first.merge(second);
            prop_assert_eq!(total(&first), sum);
            prop_assert!(chosen || first.buckets().len() <= Grid::MOST_AUTOMATIC);
        }
    }
}
