//! The curve beside the line: what a line does not describe is alike at sizes that are near each other.
//!
//! Relative deviations from the line are a Gaussian process over the logarithm of the size (universal kriging). Their
//! size, their range and the independent part of each size are unknown: predictions are the mean over a grid of all
//! three, weighted by the restricted likelihood.

use std::collections::BTreeMap;

use crate::model::{BREAKS_MAX, Model, Prediction, SizeMean};

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
            // Rounding may make a nearly singular matrix indefinite. The square root would be
            // NaN, and the NaN would reach every prediction.
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

fn product(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Columns that are filtered together: those of the line and the deviations. A line in pieces has two columns and up
/// to two more for each break.
const COLUMNS_MAX: usize = 3 + 2 * BREAKS_MAX;

/// A size in units of the line.
struct Node {
    log: f64,
    /// Columns of the line; then, of a size that was measured, the deviation from the line.
    columns: [f64; COLUMNS_MAX],
    /// Relative variance of the mean, if the size was measured.
    noise: Option<f64>,
}

/// What is known about a size after all sizes below it, and then after all: the columns smoothed like deviations.
#[derive(Clone, Copy, Default)]
struct State {
    means: [f64; COLUMNS_MAX],
    variance: f64,
    /// Correlation with the size below, and the variance that the sizes below leave.
    alike: f64,
    ahead: f64,
}

/// The process with one spread and reach. With an exponential covariance each size depends on the others through its
/// neighbours alone, so that a Kalman filter and a Rauch-Tung-Striebel smoother give what matrices of all sizes would,
/// in a time that grows with the number of sizes and not with its cube.
struct Process {
    states: Vec<State>,
    /// The root of the normal matrix of the line, and its coefficients.
    normal: Root,
    beta: Vec<f64>,
    log_likelihood: f64,
}

impl Process {
    /// `p` is the number of columns of the line.
    fn new(nodes: &[Node], p: usize, spread: f64, reach: f64) -> Option<Process> {
        let all = spread * spread;
        let mut states: Vec<State> = Vec::with_capacity(nodes.len());
        let mut squares = [[0.0; COLUMNS_MAX]; COLUMNS_MAX];
        let mut log_determinant = 0.0;
        for (at, node) in nodes.iter().enumerate() {
            let mut state = State { variance: all, ahead: all, ..State::default() };
            if at > 0 && reach > 0.0 {
                let below = &states[at - 1];
                let alike = ((nodes[at - 1].log - node.log) / reach).exp();
                state.alike = alike;
                state.means = below.means.map(|mean| mean * alike);
                // What is known about the size below fades with the distance, and the process
                // adds the variance that it forgot. At a great distance the variance of the
                // process remains.
                state.ahead = alike * alike * below.variance + all * (1.0 - alike * alike);
                state.variance = state.ahead;
            }
            // The columns of the line and the deviations pass through the same filter. The
            // normal matrix and the residuals follow from their innovations, so no matrix of
            // all sizes is built.
            if let Some(noise) = node.noise {
                let sum = state.ahead + noise;
                let mut gaps = [0.0; COLUMNS_MAX];
                let columns = node.columns.iter().zip(&mut state.means).take(p + 1);
                for (gap, (column, mean)) in gaps.iter_mut().zip(columns) {
                    *gap = column - *mean;
                    *mean += state.ahead / sum * *gap;
                }
                state.variance = state.ahead * noise / sum;
                log_determinant += sum.ln();
                for i in 0..=p {
                    for j in 0..=i {
                        squares[i][j] += gaps[i] * gaps[j] / sum;
                    }
                }
            }
            states.push(state);
        }
        // So far a size knows only the sizes below it. The smoother goes back from the largest size
        // and adds the information of the sizes above it.
        for at in (1..states.len()).rev() {
            let above = states[at];
            let state = &mut states[at - 1];
            if above.ahead > 0.0 && above.alike > 0.0 {
                let gain = state.variance * above.alike / above.ahead;
                for c in 0..=p {
                    state.means[c] += gain * (above.means[c] - above.alike * state.means[c]);
                }
                state.variance += gain * gain * (above.variance - above.ahead);
            }
        }
        let normal = (0..p * p).map(|at| squares[at / p][at % p]).collect();
        let normal = Root::new(normal, p)?;
        let beta = normal.solve(&squares[p][..p]);
        let rest = squares[p][p] - product(&beta, &squares[p][..p]);
        // The restricted likelihood contains the determinant of the normal matrix. It accounts
        // for the coefficients of the line, which were fitted to the same data.
        let log_likelihood = -0.5 * (log_determinant + normal.log_determinant() + rest);
        Some(Process { states, normal, beta, log_likelihood })
    }

    /// Deviation from the line, divided by it, and its variance.
    fn predict(&self, nodes: &[Node], at: usize) -> (f64, f64) {
        let (state, p) = (&self.states[at], self.beta.len());
        let open: Vec<f64> = (0..p).map(|c| nodes[at].columns[c] - state.means[c]).collect();
        let mean = state.means[p] + product(&open, &self.beta);
        let open = self.normal.whiten(&open);
        (mean, (state.variance + product(&open, &open)).max(0.0))
    }
}

/// Measured and wanted sizes, ascending; `None` if the line is not above zero at a measured one.
fn nodes(model: &Model, sizes: &[u64]) -> Option<BTreeMap<u64, Node>> {
    let node = |size: u64, measured: Option<&SizeMean>| {
        // The noise of slices is relative to their time. So columns and deviations are divided
        // by the line; in absolute units the large sizes would decide alone.
        let line = model.line(size);
        let row = model.row(size);
        let mut columns = [0.0; COLUMNS_MAX];
        columns.iter_mut().zip(&row).for_each(|(column, x)| *column = x / line);
        columns[row.len()] = measured.map_or(0.0, |one| one.mean / line - 1.0);
        let noise = measured.map(SizeMean::of_mean);
        (line > 0.0).then(|| (size, Node { log: (size as f64).log2(), columns, noise }))
    };
    let mut nodes: BTreeMap<u64, Node> =
        sizes.iter().filter_map(|size| node(*size, None)).collect();
    for one in model.points() {
        let (size, node) = node(one.size, Some(one))?;
        nodes.insert(size, node);
    }
    Some(nodes)
}

/// Predictions at `sizes`; a size at which the line is not above zero has none.
pub(crate) fn predict(model: &Model, sizes: &[u64]) -> Vec<Option<Prediction>> {
    let Some(nodes) = nodes(model, sizes) else { return vec![None; sizes.len()] };
    let (places, nodes): (Vec<u64>, Vec<Node>) = nodes.into_iter().unzip();
    let tried = (SPREADS.len() * REACHES.len()) as f64;
    let some = SPREADS.iter().flat_map(|spread| REACHES.iter().map(move |r| (*spread, *r)));
    let of_line = if model.breaks.is_empty() { PRIOR_OF_LINE } else { PRIOR_OF_LINES };
    // The line without a process has a prior of its own. With equal priors the many processes
    // of the grid would outweigh it on a device whose curve is a line.
    let prior = |spread: f64| match spread > 0.0 {
        true => (1.0 - of_line) / tried,
        false => of_line,
    };
    let p = model.columns();
    let processes: Vec<(f64, Process)> = std::iter::once((0.0, 0.0))
        .chain(some)
        .filter_map(|(spread, reach)| {
            let process = Process::new(&nodes, p, spread, reach)?;
            Some((prior(spread).ln() + process.log_likelihood, process))
        })
        .collect();
    let best = processes.iter().map(|one| one.0).fold(f64::NEG_INFINITY, f64::max);
    let mut weighted: Vec<(f64, &Process)> =
        processes.iter().map(|(log, process)| ((log - best).exp(), process)).collect();
    // Each process costs a prediction at every size. A process with less than 1 % of the best
    // weight hardly moves the mean.
    weighted.retain(|(weight, _)| *weight >= WEIGHT_MIN);
    let all: f64 = weighted.iter().map(|(weight, _)| weight).sum();
    let of = |size: &u64| {
        let at = places.binary_search(size).ok()?;
        let (mut mean, mut square) = (1.0, 0.0);
        for (weight, process) in &weighted {
            let (value, variance) = process.predict(&nodes, at);
            mean += weight / all * value;
            square += weight / all * (variance + value * value);
        }
        if mean <= 0.0 {
            return None;
        }
        // This is the variance of a mixture: the variances of the processes, and how far their
        // means differ. The best process alone would leave out the second part.
        let variance = (square - (mean - 1.0).powi(2)).max(0.0) / (mean * mean);
        let variance = variance + model.gap_variance(*size);
        let time = mean * model.line(*size);
        Some(Prediction { time, variance, freedom: model.freedom.max(1.0) })
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

    /// The covariance of the measured sizes as a whole matrix: universal kriging by its textbook formula.
    fn dense(nodes: &[Node], p: usize, spread: f64, reach: f64, at: usize) -> (f64, f64, f64) {
        let alike = |a: &Node, b: &Node| match reach > 0.0 {
            true => (-(a.log - b.log).abs() / reach).exp(),
            false => f64::from(a.log == b.log),
        };
        let all = spread * spread;
        let known: Vec<&Node> = nodes.iter().filter(|node| node.noise.is_some()).collect();
        let n = known.len();
        let own = |i: usize, j: usize| if i == j { known[i].noise.unwrap() } else { 0.0 };
        let covariance = |i: usize| {
            (0..n).map(move |j| (i, j)).map(|(i, j)| all * alike(known[i], known[j]) + own(i, j))
        };
        let root = Root::new((0..n).flat_map(covariance).collect(), n).unwrap();
        let column = |c: usize| known.iter().map(|node| node.columns[c]).collect::<Vec<f64>>();
        let columns: Vec<Vec<f64>> = (0..=p).map(|c| root.whiten(&column(c))).collect();
        let normal: Vec<f64> =
            (0..p * p).map(|at| product(&columns[at / p], &columns[at % p])).collect();
        let normal = Root::new(normal, p).unwrap();
        let right: Vec<f64> = columns[..p].iter().map(|x| product(x, &columns[p])).collect();
        let beta = normal.solve(&right);
        let residual: Vec<f64> = (0..n)
            .map(|i| columns[p][i] - (0..p).map(|c| beta[c] * columns[c][i]).sum::<f64>())
            .collect();
        let near: Vec<f64> = known.iter().map(|node| all * alike(node, &nodes[at])).collect();
        let near = root.whiten(&near);
        let row = &nodes[at].columns[..p];
        let mean = product(row, &beta) + product(&near, &residual);
        let open: Vec<f64> = (0..p).map(|c| row[c] - product(&columns[c], &near)).collect();
        let open = normal.whiten(&open);
        let variance = all - product(&near, &near) + product(&open, &open);
        let likelihood = root.log_determinant() + normal.log_determinant();
        (mean, variance, -0.5 * (likelihood + product(&residual, &residual)))
    }

    /// The filter gives what the matrix gives, at measured sizes and between them. Tolerance: rounding.
    #[test]
    fn the_filter_agrees_with_the_whole_matrix() {
        let mut rng = ssdyno_engine::Rng::new(1, "kriging");
        let mut nodes: Vec<Node> = Vec::new();
        for at in 0..24_u64 {
            let size = (8 + 5 * at * at) as f64;
            let mut columns = [0.0; COLUMNS_MAX];
            let line = 20.0 + size;
            let deviation = (rng.below(1000) as f64 / 1000.0 - 0.5) * 0.1;
            columns[..4].copy_from_slice(&[
                1.0 / line,
                size / line,
                f64::from(at > 11) / line,
                deviation,
            ]);
            let noise = (at % 3 > 0).then_some(1e-4 * (1.0 + at as f64));
            nodes.push(Node { log: size.log2(), columns, noise });
        }
        for spread in [0.0, 0.005, 0.1] {
            for reach in [0.0, 1.0, 5.0] {
                let process = Process::new(&nodes, 3, spread, reach).unwrap();
                for at in 0..nodes.len() {
                    let (mean, variance) = process.predict(&nodes, at);
                    let known = dense(&nodes, 3, spread, reach, at);
                    let near = |a: f64, b: f64| (a - b).abs() <= 1e-9 * (1e-3 + b.abs());
                    let found = (mean, variance, process.log_likelihood);
                    let agrees = near(mean, known.0) && near(variance, known.1);
                    assert!(agrees && near(found.2, known.2), "{found:?} {known:?}");
                }
            }
        }
    }
}
