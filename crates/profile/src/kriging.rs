//! The curve beside the line: what a line does not describe is alike at sizes that are near each other.
//!
//! Relative deviations from the line are a Gaussian process over the logarithm of the size (universal kriging). How large
//! they are, how far they reach and how much of them each size has for itself is not known: predictions are the mean over
//! a grid of all three, weighted by the restricted likelihood.

use crate::model::{Model, Prediction, SizeMean};

/// Standard deviations of the process that are tried, and prior probability of none; a curve that has breaks is less
/// likely to be lines between them.
const SPREADS: [f64; 5] = [0.005, 0.015, 0.04, 0.1, 0.3];
const PRIOR_OF_LINE: f64 = 0.8;
const PRIOR_OF_LINES: f64 = 0.5;

/// Doublings of the size over which deviations are alike; 0: each size has its own.
const REACHES: [f64; 3] = [0.0, 1.0, 5.0];

/// Weights below this share of the largest do not count.
const WEIGHT_MIN: f64 = 0.01;

/// The lower triangle of a matrix whose product with its transpose is a covariance.
struct Root {
    n: usize,
    l: Vec<f64>,
}

impl Root {
    /// `None` if the matrix is not positive definite.
    fn new(mut l: Vec<f64>, n: usize) -> Option<Root> {
        for i in 0..n {
            let (done, rest) = l.split_at_mut(i * n);
            for j in 0..i {
                let (a, b) = (&rest[..j], &done[j * n..j * n + j]);
                let sum: f64 = a.iter().zip(b).map(|(a, b)| a * b).sum();
                rest[j] = (rest[j] - sum) / done[j * n + j];
            }
            let own = rest[i] - rest[..i].iter().map(|x| x * x).sum::<f64>();
            if own <= 0.0 {
                return None;
            }
            rest[i] = own.sqrt();
        }
        Some(Root { n, l })
    }

    /// The inverse of the root times `values`.
    fn whiten(&self, values: &[f64]) -> Vec<f64> {
        let mut out: Vec<f64> = Vec::with_capacity(self.n);
        for (i, value) in values.iter().enumerate() {
            let row = &self.l[i * self.n..i * self.n + i];
            let sum = product(row, &out);
            out.push((value - sum) / self.l[i * self.n + i]);
        }
        out
    }

    fn log_determinant(&self) -> f64 {
        2.0 * (0..self.n).map(|i| self.l[i * self.n + i].ln()).sum::<f64>()
    }
}

fn product(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The process with one spread and reach.
struct Process {
    variance: f64,
    reach: f64,
    root: Root,
    /// Columns of the line, whitened; the root of their normal matrix.
    columns: Vec<Vec<f64>>,
    normal: Root,
    /// Residuals of the generalised least squares, whitened, and the coefficients.
    residual: Vec<f64>,
    beta: Vec<f64>,
    log_likelihood: f64,
}

/// Measured sizes in units of the line.
struct Data<'a> {
    points: &'a [SizeMean],
    logs: Vec<f64>,
    rows: Vec<Vec<f64>>,
    values: Vec<f64>,
}

fn alike(reach: f64, a: f64, b: f64) -> f64 {
    match reach > 0.0 {
        true => (-(a - b).abs() / reach).exp(),
        false => f64::from(a == b),
    }
}

impl Process {
    fn new(data: &Data<'_>, variance: f64, reach: f64) -> Option<Process> {
        let n = data.points.len();
        let mut matrix = vec![0.0; n * n];
        for i in 0..n {
            for j in 0..i {
                matrix[i * n + j] = variance * alike(reach, data.logs[i], data.logs[j]);
            }
            matrix[i * n + i] = variance + data.points[i].of_mean();
        }
        let root = Root::new(matrix, n)?;
        let p = data.rows[0].len();
        let column = |at: usize| data.rows.iter().map(|row| row[at]).collect::<Vec<f64>>();
        let columns: Vec<Vec<f64>> = (0..p).map(|at| root.whiten(&column(at))).collect();
        let values = root.whiten(&data.values);
        let mut normal = vec![0.0; p * p];
        for i in 0..p {
            for j in 0..=i {
                normal[i * p + j] = product(&columns[i], &columns[j]);
            }
        }
        let normal = Root::new(normal, p)?;
        let right: Vec<f64> = columns.iter().map(|column| product(column, &values)).collect();
        let beta = normal.solve(&right);
        let mut residual = values;
        for (column, beta) in columns.iter().zip(&beta) {
            residual.iter_mut().zip(column).for_each(|(r, x)| *r -= beta * x);
        }
        let log_likelihood = -0.5
            * (root.log_determinant() + normal.log_determinant() + product(&residual, &residual));
        Some(Process { variance, reach, root, columns, normal, residual, beta, log_likelihood })
    }

    /// Deviation from the line, divided by it, and its variance.
    fn predict(&self, data: &Data<'_>, log: f64, row: &[f64]) -> (f64, f64) {
        let near: Vec<f64> =
            data.logs.iter().map(|at| self.variance * alike(self.reach, *at, log)).collect();
        let near = self.root.whiten(&near);
        let mean = product(row, &self.beta) + product(&near, &self.residual);
        let open: Vec<f64> =
            row.iter().zip(&self.columns).map(|(x, column)| x - product(column, &near)).collect();
        let open = self.normal.whiten(&open);
        let variance = self.variance - product(&near, &near) + product(&open, &open);
        (mean, variance.max(0.0))
    }
}

impl Root {
    /// The inverse of the matrix times `values`.
    fn solve(&self, values: &[f64]) -> Vec<f64> {
        let mut out = self.whiten(values);
        for i in (0..self.n).rev() {
            out[i] /= self.l[i * self.n + i];
            let value = out[i];
            let row = &self.l[i * self.n..][..i];
            for (open, known) in out.iter_mut().zip(row) {
                *open -= known * value;
            }
        }
        out
    }
}

/// Predictions at `sizes`; a size at which the line is not above zero has none.
pub(crate) fn predict(model: &Model, sizes: &[u64]) -> Vec<Option<Prediction>> {
    let points = model.points();
    let scaled = |size: u64| {
        let line = model.line(size);
        let row = model.row(size);
        (line > 0.0).then(|| (line, row.iter().map(|x| x / line).collect::<Vec<f64>>()))
    };
    let rows: Option<Vec<(f64, Vec<f64>)>> = points.iter().map(|one| scaled(one.size)).collect();
    let Some(rows) = rows else { return vec![None; sizes.len()] };
    let data = Data {
        points,
        logs: points.iter().map(|one| (one.size as f64).log2()).collect(),
        values: points.iter().zip(&rows).map(|(one, (line, _))| one.mean / line).collect(),
        rows: rows.into_iter().map(|(_, row)| row).collect(),
    };
    let tried = (SPREADS.len() * REACHES.len()) as f64;
    let some = SPREADS.iter().flat_map(|spread| REACHES.iter().map(move |r| (*spread, *r)));
    let of_line = if model.breaks.is_empty() { PRIOR_OF_LINE } else { PRIOR_OF_LINES };
    let prior = |spread: f64| match spread > 0.0 {
        true => (1.0 - of_line) / tried,
        false => of_line,
    };
    let processes: Vec<(f64, Process)> = std::iter::once((0.0, 0.0))
        .chain(some)
        .filter_map(|(spread, reach)| {
            let process = Process::new(&data, spread * spread, reach)?;
            Some((prior(spread).ln() + process.log_likelihood, process))
        })
        .collect();
    let best = processes.iter().map(|one| one.0).fold(f64::NEG_INFINITY, f64::max);
    let mut weighted: Vec<(f64, &Process)> =
        processes.iter().map(|(log, process)| ((log - best).exp(), process)).collect();
    weighted.retain(|(weight, _)| *weight >= WEIGHT_MIN);
    let all: f64 = weighted.iter().map(|(weight, _)| weight).sum();
    let of = |size: &u64| {
        let (line, row) = scaled(*size)?;
        let log = (*size as f64).log2();
        let (mut mean, mut square) = (0.0, 0.0);
        for (weight, process) in &weighted {
            let (value, variance) = process.predict(&data, log, &row);
            mean += weight / all * value;
            square += weight / all * (variance + value * value);
        }
        if mean <= 0.0 {
            return None;
        }
        let variance = (square - mean * mean).max(0.0) / (mean * mean) + model.gap_variance(*size);
        Some(Prediction { time: mean * line, variance, freedom: model.freedom.max(1.0) })
    };
    sizes.iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: the root of [[4, 2], [2, 5]] is [[2, 0], [1, 2]]; its determinant is 16.
    #[test]
    fn roots_are_those_of_the_closed_form() {
        let root = Root::new(vec![4.0, 0.0, 2.0, 5.0], 2).unwrap();
        assert_eq!(root.whiten(&[2.0, 5.0]), [1.0, 2.0]);
        assert!((root.log_determinant() - 16.0_f64.ln()).abs() < 1e-12);
        // 4 x + 2 y = 8, 2 x + 5 y = 12: x = 1, y = 2.
        assert_eq!(root.solve(&[8.0, 12.0]), [1.0, 2.0]);
        assert!(Root::new(vec![1.0, 0.0, 2.0, 1.0], 2).is_none());
    }
}
