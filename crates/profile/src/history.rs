//! Writes whose time depends on the writes before them.
//!
//! A flash drive cleans blocks, and sequential writes pay for the random ones before them; a cache that writes back holds
//! what the last slices left. A short slice between others sees a mixture that no whole test has: with c400 two slices of
//! the same test differed by a factor of five, and ratios from them were wrong by half. Where that is so, writes are
//! measured again in long tests, sequential and random ones by turns as in the paper (S2-2), and only these count.

use std::collections::BTreeMap;

use crate::measure::Cell;
use crate::measure::{Measurement, ProfileTest};

/// Standard deviation of two slices of a cell divided by their mean, median over the cells of a test, from which on writes
/// depend on history. Disks without a large cache have 0.002 to 0.02; c400, p3600, and a disk and an array whose caches
/// hold much of the span 0.17 to 1.2.
const SPREAD_MAX: f64 = 0.12;

/// Cells of a test below which nothing is said.
const CELLS_MIN: usize = 6;

/// Sizes of the first long tests: the ends, and the middles of the halves between them.
const SIZES_FIRST: usize = 5;

/// Whether the slices of a test of writes differ as if they depended on earlier writes. `used` are those that count.
pub(crate) fn decides<'a>(used: impl Iterator<Item = &'a Measurement>) -> bool {
    let mut times: BTreeMap<Cell, Vec<f64>> = BTreeMap::new();
    for one in used {
        times.entry((one.test, one.size_bytes)).or_default().push(one.access_time_ns());
    }
    [ProfileTest::SequentialWrite, ProfileTest::RandomWrite].into_iter().any(|test| {
        // One slice gives no information on the spread of its cell. The median over cells ignores a
        // single slice that met a pause of the device.
        let cells = times.range((test, 0)..=(test, u64::MAX)).filter(|(_, all)| all.len() > 1);
        let spread = |all: &Vec<f64>| {
            let count = all.len() as f64;
            let mean = all.iter().sum::<f64>() / count;
            let squares: f64 = all.iter().map(|time| (time / mean - 1.0).powi(2)).sum();
            (squares / (count - 1.0)).sqrt()
        };
        let mut spreads: Vec<f64> = cells.map(|(_, all)| spread(all)).collect();
        spreads.sort_by(f64::total_cmp);
        spreads.len() >= CELLS_MIN && spreads[spreads.len() / 2] > SPREAD_MAX
    })
}

/// The first long tests, in pairs.
pub(crate) fn first_long(sizes: &[u64]) -> Vec<Cell> {
    let count = SIZES_FIRST.min(sizes.len());
    let place = |at: usize| sizes[at * (sizes.len() - 1) / (count - 1).max(1)];
    let mut some: Vec<u64> = (0..count).map(place).collect();
    // The time limit may end the long tests early. A size in the middle can be interpolated and
    // an end cannot, so the ends come first.
    some.sort_by_key(|size| (*size != sizes[0] && *size != sizes[sizes.len() - 1], *size));
    some.dedup();
    some.into_iter().flat_map(both).collect()
}

/// Both tests of writes of `size`, in their order.
pub(crate) fn both(size: u64) -> [Cell; 2] {
    [(ProfileTest::SequentialWrite, size), (ProfileTest::RandomWrite, size)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slices(spread: f64) -> Vec<Measurement> {
        let one = |test, at: u64, time: f64| Measurement {
            whole: false,
            ..Measurement::whole(test, 8192 * (at + 1), 100, time)
        };
        let of = |at| {
            [ProfileTest::SequentialWrite, ProfileTest::RandomWrite]
                .into_iter()
                .flat_map(move |test| [one(test, at, 1.0), one(test, at, 1.0 + spread)])
        };
        (0..8).flat_map(of).collect()
    }

    /// Two slices of 1 and 1 + x differ by x / sqrt(2) / (1 + x / 2).
    #[test]
    fn slices_that_differ_much_depend_on_history() {
        assert!(!decides(slices(0.0).iter()));
        assert!(!decides(slices(0.15).iter()));
        assert!(decides(slices(0.3).iter()));
        assert!(!decides(slices(0.3)[..20].iter()), "five cells of each test are too few");
    }

    #[test]
    fn the_first_long_tests_are_pairs_with_both_ends_first() {
        let sizes: Vec<u64> = (1..=21).collect();
        let cells = first_long(&sizes);
        let sizes_of: Vec<u64> = cells.iter().map(|cell| cell.1).collect();
        assert_eq!(sizes_of, [1, 1, 21, 21, 6, 6, 11, 11, 16, 16]);
        assert_eq!(
            (cells[0].0, cells[1].0),
            (ProfileTest::SequentialWrite, ProfileTest::RandomWrite)
        );
        assert_eq!(first_long(&[5]).len(), 2);
    }
}
