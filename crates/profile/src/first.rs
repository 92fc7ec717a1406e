//! The sizes that are measured first.

use ssdyno_engine::Rng;

use crate::sizes::Sizes;

/// The smallest sizes, which are all measured first. Overheads of the device weigh most there, and do not follow a line:
/// a disk that misses a rotation between two requests of 24 KiB takes longer for them than for those of 32 KiB.
const SMALLEST: usize = 8;

/// Sizes that are multiples of a power of two of at least this share of the largest size are all measured first.
const ALIGNED: u64 = 8;

/// The sizes of the first pass, ascending: the smallest ones, the aligned ones, both ends of every interval, one of
/// each doubling, and one of each sixth of the range. The last two are drawn: sizes that double, or are far apart evenly,
/// are all multiples of a stripe, and would not show what it does to the others. The aligned ones are
/// not known from the others (`apart.rs`).
pub(crate) fn first_sizes(sizes: &Sizes, rng: &mut Rng) -> Vec<u64> {
    let all = sizes.distinct();
    let mut first: Vec<u64> = Vec::new();
    for interval in sizes.intervals() {
        let sizes = interval.sizes();
        first.extend([sizes[0], sizes[sizes.len() - 1]]);
    }
    first.extend(all.iter().take(SMALLEST));
    let aligned = all[all.len() - 1] / ALIGNED;
    // A request of a whole stripe stays on one disk of an array, and the sizes around it do
    // not. No other size predicts its time, so it is measured itself.
    let is_aligned = |size: u64| size.is_power_of_two() || 1u64 << size.trailing_zeros() >= aligned;
    first.extend(all.iter().filter(|size| is_aligned(**size)));
    let mut draw = |some: &[u64]| {
        if !some.is_empty() {
            first.push(some[rng.below(some.len() as u64) as usize]);
        }
    };
    let mut rest = all;
    // One size of each doubling shows the curve at every scale. It is drawn, because sizes that
    // double are all multiples of a stripe.
    while let Some(smallest) = rest.first() {
        let (some, more) = rest.split_at(rest.partition_point(|size| *size < 2 * smallest));
        draw(some);
        rest = more;
    }
    // The last doubling is half of the range and got one size so far. One size of each sixth
    // fills the range evenly.
    for at in 0..6 {
        draw(&all[at * all.len() / 6..(at + 1) * all.len() / 6]);
    }
    first.sort_unstable();
    first.dedup();
    first
}
