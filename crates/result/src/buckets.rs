//! Amounts over time in buckets of one length, however long the run gets.

use ssdyno_block::Time;

/// Where the buckets of a series lie: they start at an origin and all have the same length.
///
/// The length doubles whenever time outgrows the most buckets that a grid may have, so that a
/// series stays small however long the run. An *automatic* grid starts at 1 ms and has at most
/// [`Grid::MOST_AUTOMATIC`] buckets; one of a *chosen* length has room for
/// [`Grid::MOST_CHOSEN`] before it doubles.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Grid {
    origin: Time,
    interval: Time,
    most: usize,
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
            self.interval = self.interval * 2;
            doubled += 1;
        }
        doubled
    }
}

/// What a bucket must be able to do.
pub(crate) trait Merge: Default {
    /// Takes the amounts of the bucket that follows it in time, or of the same one of another job.
    fn merge(&mut self, other: &Self);
}

/// Buckets of any kind on a [`Grid`].
#[derive(Clone, Debug)]
pub(crate) struct Track<B> {
    grid: Grid,
    buckets: Vec<B>,
    /// The bucket last used and its bounds: nearly every access is to it, and a division is
    /// spared.
    current: usize,
    current_from: Time,
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

    /// The bucket that holds `at`.
    #[inline]
    pub(crate) fn at(&mut self, at: Time) -> &mut B {
        if at < self.current_from || at >= self.current_to {
            self.seek(at);
        }
        &mut self.buckets[self.current]
    }

    /// One past the end of the bucket that `at` was last called for.
    pub(crate) fn current_end(&self) -> Time {
        self.current_to
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
        // Times before the origin belong to the first bucket.
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
            self.grid.interval = self.grid.interval * 2;
            self.halve();
        }
    }
}

/// Amounts (joules, busy seconds) of several lanes over time, as readers of device events keep
/// them.
///
/// An amount of an interval is spread over the buckets in proportion to the overlap, so the
/// buckets of a lane always sum to what was added.
#[derive(Clone, Debug)]
pub struct Buckets<const LANES: usize> {
    track: Track<Lanes<LANES>>,
}

#[derive(Clone, Debug)]
struct Lanes<const LANES: usize>([f64; LANES]);

impl<const LANES: usize> Default for Lanes<LANES> {
    fn default() -> Self {
        Lanes([0.0; LANES])
    }
}

impl<const LANES: usize> Merge for Lanes<LANES> {
    fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine += theirs;
        }
    }
}

impl<const LANES: usize> Buckets<LANES> {
    /// Empty buckets on `grid`.
    pub fn new(grid: Grid) -> Buckets<LANES> {
        Buckets { track: Track::new(grid) }
    }

    /// The grid as it is now.
    pub fn grid(&self) -> Grid {
        self.track.grid()
    }

    /// Adds `amount` to `lane` (below `LANES`) at one moment.
    #[inline]
    pub fn add(&mut self, lane: usize, at: Time, amount: f64) {
        self.track.at(at).0[lane] += amount;
    }

    /// Adds `amount` to `lane` (below `LANES`), spread evenly over `[from, to)`. What lies before
    /// the origin of the grid is dropped with its share of the amount; an empty interval counts
    /// as a moment.
    #[inline]
    pub fn spread(&mut self, lane: usize, from: Time, to: Time, amount: f64) {
        let origin = self.track.grid.origin;
        let inside = from >= origin && {
            self.track.at(from);
            to <= self.track.current_end()
        };
        if inside {
            self.track.at(from).0[lane] += amount;
        } else {
            self.spread_over_several(lane, from, to, amount);
        }
    }

    #[cold]
    fn spread_over_several(&mut self, lane: usize, from: Time, to: Time, amount: f64) {
        let mut at = from.max(self.track.grid.origin);
        if to <= at {
            if from >= self.track.grid.origin {
                self.add(lane, from, amount);
            }
            return;
        }
        let per_ps = amount / (to - from).as_ps() as f64;
        // Grow first: the interval must not change while the amount is dealt out.
        self.track.seek(Time::from_ps(to.as_ps() - 1));
        while at < to {
            self.track.at(at);
            let end = self.track.current_end().min(to);
            self.track.at(at).0[lane] += per_ps * (end - at).as_ps() as f64;
            at = end;
        }
    }

    /// Brings the buckets to the same grid as a series that got further: doubles until the
    /// interval is at least `interval`, and makes buckets up to `end`.
    pub fn align(&mut self, interval: Time, end: Time) {
        self.track.coarsen_to(interval);
        if end > self.track.grid.origin {
            self.track.seek(Time::from_ps(end.as_ps() - 1));
        }
    }

    /// The amounts of each bucket, in order of time.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[f64; LANES]> {
        self.track.buckets.iter().map(|lanes| &lanes.0)
    }

    /// Sum over all buckets, by lane.
    pub fn totals(&self) -> [f64; LANES] {
        let mut sum = Lanes::default();
        for lanes in &self.track.buckets {
            sum.merge(lanes);
        }
        sum.0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn splits_by_overlap() {
        let mut buckets = Buckets::<2>::new(Grid::new(Time::from_ms(10), Some(Time::from_ms(1))));
        buckets.spread(0, Time::from_us(10_500), Time::from_us(12_500), 4.0);
        buckets.spread(1, Time::from_us(9_000), Time::from_us(11_000), 4.0);
        buckets.add(1, Time::from_us(12_000), 0.5);
        let got: Vec<_> = buckets.iter().copied().collect();
        assert_eq!(got, [[1.0, 2.0], [2.0, 0.0], [1.0, 0.5]]);
    }

    #[test]
    fn automatic_grid_stays_small() {
        let mut buckets = Buckets::<1>::new(Grid::new(Time::ZERO, None));
        for s in 0..1_000 {
            buckets.spread(0, Time::from_s(s), Time::from_s(s + 1), 2.0);
        }
        let len = buckets.iter().len();
        assert!((256..=512).contains(&len), "{len} buckets");
        assert!((buckets.totals()[0] - 2_000.0).abs() < 1e-6);
        let mut short = Buckets::<1>::new(Grid::new(Time::ZERO, None));
        short.add(0, Time::ZERO, 1.0);
        short.align(buckets.grid().interval(), Time::from_s(1_000));
        assert_eq!((short.grid(), short.iter().len()), (buckets.grid(), len));
    }

    #[test]
    fn a_chosen_length_cannot_fill_the_memory() {
        let grid = Grid::new(Time::ZERO, Some(Time::from_ps(1)));
        let mut buckets = Buckets::<1>::new(grid);
        buckets.spread(0, Time::ZERO, Time::from_s(1), 1.0);
        assert!(buckets.iter().len() <= Grid::MOST_CHOSEN);
        assert!((buckets.totals()[0] - 1.0).abs() < 1e-9);
    }

    proptest! {
        // Tolerance: 1e-9 relative, the rounding of at most some thousand additions.
        #[test]
        fn nothing_is_lost(
            chosen in any::<bool>(),
            pieces in prop::collection::vec((0u64..3_000_000, 0u64..900_000, 0.0f64..10.0), 1..50),
        ) {
            let interval = chosen.then_some(Time::from_us(700));
            let mut buckets = Buckets::<1>::new(Grid::new(Time::ZERO, interval));
            let mut sum = 0.0;
            for (from, length, amount) in pieces {
                buckets.spread(0, Time::from_us(from), Time::from_us(from + length), amount);
                sum += amount;
            }
            prop_assert!((buckets.totals()[0] - sum).abs() <= 1e-9 * (1.0 + sum));
            prop_assert!(chosen || buckets.iter().len() <= Grid::MOST_AUTOMATIC);
        }
    }
}
