//! How much of a variation each key explains if the designs are no complete grid: an analysis of variance of all keys at once.
//!
//! Among drawn designs, the values of a key are correlated with those of the other keys by chance, and many values explain some
//! of any noise. All keys are therefore fitted at once. The share of a key is the variance of its own part of the fit, without
//! what noise gives on average; whether it is more than chance is said by an F test beside all others (type II).

use statrs::distribution::{ContinuousCDF, FisherSnedecor};

use crate::least_squares::{Parts, Products};

/// Below this share of the variation a sum of squares is rounding.
const ROUNDING: f64 = 1e-9;

/// What a key explains.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Explained {
    /// Share of the variation above what chance gives on average, 0 to 1.
    pub(crate) share: f64,
    /// Probability of this share or a greater one if the key has no influence.
    pub(crate) chance: f64,
}

/// What each of `factors` explains of `y` beside all others; a factor is a list of columns. `None` where no design is left for
/// the error.
pub(crate) fn explained(factors: &[Vec<Vec<f64>>], y: &[f64]) -> Option<Vec<Explained>> {
    let columns: Vec<&Vec<f64>> = factors.iter().flatten().collect();
    let products = Products::of(&columns, y);
    let whole = products.fit(&(0..columns.len()).collect::<Vec<usize>>());
    // The mean takes one degree of freedom. Without any left, every key would explain everything.
    let left = y.len().checked_sub(1 + whole.kept.len()).filter(|left| *left > 0)? as f64;
    let error = whole.rest / left;
    let parts = Parts::of(&whole);
    let mut first = 0;
    let mut one = |factor: &Vec<Vec<f64>>| {
        let own = first..first + factor.len();
        first = own.end;
        let others: Vec<usize> = (0..columns.len()).filter(|at| !own.contains(at)).collect();
        let without = products.fit(&others);
        let (gain, freedom) =
            (without.rest - whole.rest, (whole.kept.len() - without.kept.len()) as f64);
        // A key that follows from the others, or that explains only rounding errors, cannot be judged by a quotient.
        if freedom == 0.0 || gain <= ROUNDING * products.total {
            return Explained { share: 0.0, chance: 1.0 };
        }
        let ratio = gain / freedom / error;
        let chance = match FisherSnedecor::new(freedom, left) {
            Ok(fisher) if ratio.is_finite() => fisher.sf(ratio),
            _ => 0.0,
        };
        // The gain itself is no share: it is less than the whole where one key alone decides, because the others
        // already explain some of it by their chance correlations.
        let (part, noise) = parts.variance(&whole, &products, &own);
        Explained { share: (part - error * noise).max(0.0), chance }
    };
    let all: Vec<Explained> = factors.iter().map(&mut one).collect();
    // The parts of correlated keys do not add up to the variation of the designs that were drawn. Their sum, which they would
    // have in a grid, takes its place, so that all shares together are never more than 1.
    let sum = all.iter().map(|one| one.share).sum::<f64>() + whole.rest;
    // Two keys that always change together explain everything, and neither does alone.
    let sum = sum.max(f64::MIN_POSITIVE);
    Some(all.iter().map(|one| Explained { share: one.share / sum, ..*one }).collect())
}
