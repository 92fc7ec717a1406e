//! Least squares with a constant, by the normal equations of centred columns.
//!
//! The columns have entries of at most 1, so the equations are conditioned well enough. Cholesky's method then needs only the
//! products of pairs of columns, and a model without some of the columns needs no further pass over the designs.

use std::ops::Range;

/// The share of its length that a column must have beside the columns before it; one with less says nothing new.
const NEW: f64 = 1e-8;

/// The products of all pairs of centred columns.
pub(crate) struct Products {
    pairs: Vec<Vec<f64>>,
    with_y: Vec<f64>,
    /// Sum of squares of `y` around its mean.
    pub(crate) total: f64,
}

/// A model with the columns `kept`.
pub(crate) struct Fit {
    /// Sum of squares that it leaves unexplained.
    pub(crate) rest: f64,
    pub(crate) kept: Vec<usize>,
    /// Cholesky's factor of their products, and the products with `y` in its terms.
    lower: Vec<Vec<f64>>,
    along: Vec<f64>,
}

/// The coefficients of a model, and the inverse of its Cholesky factor.
pub(crate) struct Parts {
    coefficients: Vec<f64>,
    inverse: Vec<Vec<f64>>,
}

impl Parts {
    pub(crate) fn of(fit: &Fit) -> Parts {
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
    pub(crate) fn variance(
        &self,
        fit: &Fit,
        products: &Products,
        own: &Range<usize>,
    ) -> (f64, f64) {
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
    pub(crate) fn of(columns: &[&Vec<f64>], y: &[f64]) -> Products {
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
    pub(crate) fn fit(&self, chosen: &[usize]) -> Fit {
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

/// A model that was fitted.
pub(crate) struct Solved {
    /// Of each column its coefficient with the standard error; `None` where it says nothing beside the others.
    pub(crate) coefficients: Vec<Option<(f64, f64)>>,
    pub(crate) freedom: f64,
}

/// The model with all `columns` and a constant; `None` where no design is left for the error: as many columns as designs
/// fit everything exactly, and there is no result then, instead of one without uncertainty.
pub(crate) fn solve(columns: &[Vec<f64>], y: &[f64]) -> Option<Solved> {
    let products = Products::of(&columns.iter().collect::<Vec<_>>(), y);
    let fit = products.fit(&(0..columns.len()).collect::<Vec<usize>>());
    let freedom = y.len().checked_sub(1 + fit.kept.len()).filter(|left| *left > 0)? as f64;
    let parts = Parts::of(&fit);
    let mut coefficients = vec![None; columns.len()];
    for (place, at) in fit.kept.iter().enumerate() {
        let spread: f64 = parts.inverse[place..].iter().map(|row| row[place].powi(2)).sum();
        let error = (fit.rest / freedom * spread).sqrt();
        coefficients[*at] = Some((parts.coefficients[place], error));
    }
    Some(Solved { coefficients, freedom })
}
