//! Seeded randomness.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// A generator whose sequence depends on nothing but a seed and the name of its stream, so that
/// two parts of one run never share numbers and adding a part does not move the others.
///
/// PCG-64 (MCG): 128 bits of state, passes the usual batteries, a few cycles a number. The
/// sequence is part of the results' reproducibility: changing the generator changes every run.
#[derive(Clone, Debug)]
pub struct Rng(Pcg64Mcg);

impl Rng {
    /// The stream `name` of `seed`.
    pub fn new(seed: u64, name: &str) -> Rng {
        // FNV-1a spreads the name; SplitMix inside seed_from_u64 spreads the sum.
        let name = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        Rng(Pcg64Mcg::seed_from_u64(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ name))
    }

    /// Uniform in `0..n`; 0 where `n` is 0. Multiply and shift: the bias is below n / 2^64.
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        let wide = u128::from(self.0.random::<u64>()) * u128::from(n);
        (wide >> 64) as u64
    }

    /// Uniform in [0, 1), 53 bits.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        self.0.random()
    }

    /// Exponential with mean 1.
    #[cfg(feature = "std")]
    #[inline]
    pub fn exponential(&mut self) -> f64 {
        -(1.0 - self.unit()).ln()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_repeat_and_differ() {
        let draw = |seed, name: &str| {
            let mut rng = Rng::new(seed, name);
            [rng.below(1 << 40), rng.below(1 << 40), rng.below(1 << 40)]
        };
        assert_eq!(draw(1, "a"), draw(1, "a"));
        assert_ne!(draw(1, "a"), draw(1, "b"));
        assert_ne!(draw(1, "a"), draw(2, "a"));
    }

    #[test]
    fn means_are_right() {
        let mut rng = Rng::new(7, "means");
        let n = 200_000;
        let exponential: f64 = (0..n).map(|_| rng.exponential()).sum::<f64>() / f64::from(n);
        let below: f64 = (0..n).map(|_| rng.below(100) as f64).sum::<f64>() / f64::from(n);
        // Five standard errors.
        assert!((exponential - 1.0).abs() < 5.0 / f64::from(n).sqrt(), "{exponential}");
        assert!((below - 49.5).abs() < 5.0 * 28.9 / f64::from(n).sqrt(), "{below}");
        assert_eq!(rng.below(0), 0);
    }
}
