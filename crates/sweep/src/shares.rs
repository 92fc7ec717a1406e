//! How much of a variation each key explains if the designs are no complete grid: an analysis of variance of all keys at once.
//!
//! Among drawn designs, the values of a key are correlated with those of the other keys by chance, and many values explain some
//! of any noise. All keys are therefore fitted at once. The share of a key is the variance of its own part of the fit, without
//! what noise gives on average; whether it is more than chance is said by an F test beside all others (type II).

use std::ops::Range;

use statrs::distribution::{ContinuousCDF, FisherSnedecor};

/// The share of its length that a column must have beside the columns before it; one with less says nothing new.
const NEW: f64 = 1e-8;

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

/// The products of all pairs of centred columns.
struct Products {
    pairs: Vec<Vec<f64>>,
    with_y: Vec<f64>,
    total: f64,
}

/// A model with the columns `kept`.
struct Fit {
    /// Sum of squares that it leaves unexplained.
    rest: f64,
    kept: Vec<usize>,
    /// Cholesky's factor of their products, and the products with `y` in its terms.
    lower: Vec<Vec<f64>>,
    along: Vec<f64>,
}

/// The coefficients of a model, and the inverse of its Cholesky factor.
struct Parts {
    coefficients: Vec<f64>,
    inverse: Vec<Vec<f64>>,
}

impl Parts {
    fn of(fit: &Fit) -> Parts {
        let mut inverse: Vec<Vec<f64>> = Vec::with_capacity(fit.kept.len());
        for (at, row) in fit.lower.iter().enumerate() {
            let known = |k: usize| (k..at).map(|j| row[j] * inverse[j][k]).sum::<f64>();
            let mut inverted: Vec<f64> = (0..at).map(|k| -known(k) / row[at]).collect();
            inverted.push(1.0 / row[at]);
            inverse.push(inverted);
        }
        let below =
            |k: usize| inverse[k..].iter().zip(&fit.along[k..]).map(move |(row, y)| row[k] * y);
        let coefficients = (0..fit.kept.len()).map(|k| below(k).sum()).collect();
        Parts { coefficients, inverse }
    }

    /// The sum of squares of the part that the columns `own` have in the fit, and how much of it an error of 1 gives on average.
    fn variance(&self, fit: &Fit, products: &Products, own: &Range<usize>) -> (f64, f64) {
        let places: Vec<usize> =
            (0..fit.kept.len()).filter(|place| own.contains(&fit.kept[*place])).collect();
        let (mut part, mut noise) = (0.0, 0.0);
        for &one in &places {
            for &other in &places {
                let product = products.pair(fit.kept[one], fit.kept[other]);
                part += product * self.coefficients[one] * self.coefficients[other];
                let rows = &self.inverse[one.max(other)..];
                noise += product * rows.iter().map(|row| row[one] * row[other]).sum::<f64>();
            }
        }
        (part, noise)
    }
}

impl Products {
    fn of(columns: &[&Vec<f64>], y: &[f64]) -> Products {
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let columns: Vec<Vec<f64>> = columns.iter().map(|column| centred(column)).collect();
        let y = centred(y);
        let row = |at: usize| (0..=at).map(|other| dot(&columns[at], &columns[other])).collect();
        Products {
            pairs: (0..columns.len()).map(row).collect(),
            with_y: columns.iter().map(|column| dot(column, &y)).collect(),
            total: dot(&y, &y),
        }
    }

    fn pair(&self, one: usize, other: usize) -> f64 {
        self.pairs[one.max(other)][one.min(other)]
    }

    /// Least squares with the columns `chosen`, in ascending order, by Cholesky's method.
    fn fit(&self, chosen: &[usize]) -> Fit {
        let (mut lower, mut kept): (Vec<Vec<f64>>, Vec<usize>) = (Vec::new(), Vec::new());
        let (mut along, mut explained): (Vec<f64>, f64) = (Vec::new(), 0.0);
        for &at in chosen {
            let mut row: Vec<f64> = Vec::with_capacity(kept.len());
            for (place, other) in kept.iter().enumerate() {
                let known: f64 = row.iter().zip(&lower[place]).map(|(a, b)| a * b).sum();
                row.push((self.pairs[at][*other] - known) / lower[place][place]);
            }
            let whole = self.pairs[at][at];
            let rest = whole - row.iter().map(|one| one * one).sum::<f64>();
            // A column that follows from those before it has no coefficient of its own: the last
            // name of a key in designs that lack some combinations.
            if rest <= NEW * whole {
                continue;
            }
            let own = rest.sqrt();
            let known: f64 = row.iter().zip(&along).map(|(a, b)| a * b).sum();
            let step = (self.with_y[at] - known) / own;
            explained += step * step;
            along.push(step);
            row.push(own);
            kept.push(at);
            lower.push(row);
        }
        Fit { rest: (self.total - explained).max(0.0), kept, lower, along }
    }
}

fn centred(values: &[f64]) -> Vec<f64> {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    values.iter().map(|value| value - mean).collect()
}
