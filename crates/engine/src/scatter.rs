//! A permutation without a table: random orders that visit everything once, and hot blocks all over a range.

use crate::Rng;

/// A seeded permutation of 0..n without a table: an invertible mix of the next power of two,
/// walked until it falls below n (less than two steps on average).
#[derive(Clone, Debug)]
pub struct Scatter {
    n: u64,
    mask: u64,
    shift: u32,
    /// Odd factors and summands.
    rounds: [(u64, u64); 3],
}

impl Scatter {
    /// A permutation of 0..`n`, which is 1 or more, drawn from `rng`.
    pub fn new(n: u64, rng: &mut Rng) -> Scatter {
        // The next power of two is less than 2n, so a walk needs less than two steps on average. A
        // table for the permutation would take 8 bytes per block, 2 GiB for 1 TiB of 4 KiB blocks.
        let bits = u64::BITS - (n - 1).leading_zeros();
        let mask = if bits == 64 { u64::MAX } else { (1 << bits) - 1 };
        // An odd factor is invertible modulo 2^k, and so are the sum and the shift. The composition
        // is therefore a permutation for every seed, without a check.
        let rounds = [0; 3].map(|_| (rng.below(u64::MAX) | 1, rng.below(u64::MAX)));
        Scatter { n, mask, shift: bits.div_ceil(2).max(1), rounds }
    }

    /// The place of `index`, which is below `n`.
    #[inline]
    pub fn map(&self, index: u64) -> u64 {
        let mut x = index;
        loop {
            for (factor, summand) in self.rounds {
                x = x.wrapping_add(summand).wrapping_mul(factor) & self.mask;
                x ^= x >> self.shift;
            }
            if x < self.n {
                return x;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scatter_is_a_permutation() {
        for n in [1_u64, 2, 3, 4, 5, 7, 8, 9, 100, 1000, 4097] {
            for seed in 0..5 {
                let scatter = Scatter::new(n, &mut Rng::new(seed, "scatter"));
                let mut seen: Vec<u64> = (0..n).map(|index| scatter.map(index)).collect();
                seen.sort_unstable();
                assert!(seen.iter().copied().eq(0..n), "n {n} seed {seed}");
            }
        }
    }

    #[test]
    fn scatter_parts_neighbours() {
        let n = 1_000_000;
        for seed in 0..5 {
            let scatter = Scatter::new(n, &mut Rng::new(seed, "scatter"));
            let hot: Vec<u64> = (0..1000).map(|rank| scatter.map(rank)).collect();
            let mut sorted = hot.clone();
            sorted.sort_unstable();
            let near = sorted.windows(2).filter(|pair| pair[1] - pair[0] == 1).count();
            // 1000 of a million: about one pair of neighbours by chance.
            assert!(near <= 10, "seed {seed}: {near}");
            let quarter = hot.iter().filter(|&&slot| slot < n / 4).count();
            assert!((150..350).contains(&quarter), "seed {seed}: {quarter} of 1000 in a quarter");
        }
    }
}
