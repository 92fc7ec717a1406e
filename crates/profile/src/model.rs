//! Access time as a line in pieces, its breakpoints and its lack of fit (the estimator of Paule and Mandel, 1982).

use statrs::distribution::{ContinuousCDF, FisherSnedecor, StudentsT};

use crate::estimate::LEVEL;

/// Breakpoints of one test at most.
pub(crate) const BREAKS_MAX: usize = 3;

/// Places of a breakpoint that are fitted with weights of their own.
const FITTED_MAX: usize = 4;

/// Probability of a false breakpoint among all places that are tried.
const FALSE_BREAK: f64 = 0.01;

/// Residuals that noise alone exceeds with more than this probability are noise.
const CHANCE_OF_NOISE: f64 = 0.15;

/// Degrees of freedom that the noise of all sizes lends to the noise of each: sizes differ, but a few slices alone
/// say little about their spread.
pub(crate) const SHARED_FREEDOM: f64 = 8.0;

/// Relative standard deviation of an estimate at least. Even very similar slices differ from whole tests: with SSDs
/// whose slices differ by less than 0.1 %, whole tests took up to 0.5 % more or less.
pub(crate) const SLICE_DEVIATION_MIN: f64 = 0.002;

/// Relative variance of a slice at least: below that is rounding.
const VARIANCE_MIN: f64 = 1e-10;

/// The slices of one size.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct SizeMean {
    pub size: u64,
    pub mean: f64,
    /// Number of slices.
    pub slices: f64,
    /// Relative variance of one slice.
    pub variance: f64,
}

impl SizeMean {
    /// Relative variance of the mean.
    pub(crate) fn of_mean(&self) -> f64 {
        self.variance / self.slices
    }
}

/// Means of all sizes that were measured, ascending, and the degrees of freedom of their noise.
pub(crate) fn means<'a>(slices: impl Iterator<Item = (u64, &'a [f64])>) -> (Vec<SizeMean>, f64) {
    let mut all: Vec<(SizeMean, f64, f64)> = Vec::new();
    for (size, times) in slices.filter(|(_, times)| !times.is_empty()) {
        let count = times.len() as f64;
        let mean = times.iter().sum::<f64>() / count;
        let squares: f64 = times.iter().map(|time| (time / mean - 1.0).powi(2)).sum();
        all.push((SizeMean { size, mean, slices: count, variance: 0.0 }, squares, count - 1.0));
    }
    let freedom: f64 = all.iter().map(|one| one.2).sum();
    // The variance of two slices has one degree of freedom and may be nearly zero by chance.
    // Such a size would have nearly all of the weight, so the noise of all sizes is mixed in.
    let pooled = all.iter().map(|one| one.1).sum::<f64>() / freedom.max(1.0);
    let shrunk = |(mean, squares, free): &(SizeMean, f64, f64)| {
        let variance = (SHARED_FREEDOM * pooled + squares) / (SHARED_FREEDOM + free);
        SizeMean { variance: variance.max(VARIANCE_MIN), ..*mean }
    };
    (all.iter().map(shrunk).collect(), freedom)
}

/// The change at a breakpoint.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Kind {
    /// Another line holds: the access time jumps, and its slope may change. A step that moved the line without turning
    /// it would be wrong for a device that takes longer by a factor.
    Step,
    /// The slope changes.
    Bend,
}

impl Kind {
    /// Coefficients that it adds to the curve.
    fn columns(self) -> usize {
        if self == Kind::Step { 2 } else { 1 }
    }
}

/// A breakpoint between two sizes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Break {
    pub kind: Kind,
    /// The largest size known to lie below it, and the smallest above.
    pub after: u64,
    pub before: u64,
}

/// A fitted curve.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    points: Vec<SizeMean>,
    pub breaks: Vec<Break>,
    scale: f64,
    beta: Vec<f64>,
    /// Relative variance of what the curve does not describe.
    pub unexplained: f64,
    /// Degrees of freedom of the noise.
    pub freedom: f64,
    /// Points without those that fix the curve.
    pub spare: usize,
    /// Weighted squares of relative residuals by the number of slices, and by the noise.
    residual: f64,
    pub excess: f64,
}

/// An access time and its relative variance.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Prediction {
    pub time: f64,
    pub variance: f64,
    pub freedom: f64,
}

impl Prediction {
    /// Half the width of the interval divided by the time.
    pub(crate) fn half_width(&self) -> f64 {
        student(self.freedom) * self.variance.sqrt()
    }
}

/// Two-sided quantile of Student's t at [`LEVEL`].
fn student(freedom: f64) -> f64 {
    // Every look at the model needs this quantile for every size, and the inverse of the
    // distribution is slow. The expansion of Cornish and Fisher (Abramowitz and Stegun, 26.7.5)
    // is right to 1e-4 here.
    if freedom >= 8.0 {
        const Z: f64 = 1.644_853_627;
        let (z3, z5) = (Z.powi(3), Z.powi(5));
        let first = (z3 + Z) / 4.0;
        let second = (5.0 * z5 + 16.0 * z3 + 3.0 * Z) / 96.0;
        return Z + first / freedom + second / (freedom * freedom);
    }
    let t = StudentsT::new(0.0, 1.0, freedom.max(1.0)).ok();
    t.map_or(f64::INFINITY, |t| t.inverse_cdf(0.5 + LEVEL / 2.0))
}

/// Probability of more than `f` by chance.
pub(crate) fn f_tail(f: f64, above: f64, below: f64) -> f64 {
    let law = FisherSnedecor::new(above.max(1.0), below.max(1.0)).ok();
    law.filter(|_| f.is_finite()).map_or(0.0, |law| law.sf(f.max(0.0)))
}

impl Break {
    /// Its columns of the curve: above a step another line holds, above a bend one that meets the line below.
    fn columns(&self, size: u64, scale: f64) -> [f64; 2] {
        let beyond = f64::from(size > self.after);
        let middle = self.after.midpoint(self.before);
        let turned = beyond * (size as f64 - middle as f64).max(0.0) / scale;
        [beyond, turned]
    }
}

/// Coefficients of a curve with `breaks`.
fn columns(breaks: &[Break]) -> usize {
    2 + breaks.iter().map(|one| one.kind.columns()).sum::<usize>()
}

fn row(size: u64, scale: f64, breaks: &[Break], without: Option<usize>) -> Vec<f64> {
    let mut row = vec![1.0, size as f64 / scale];
    for (at, one) in breaks.iter().enumerate() {
        let columns = one.columns(size, scale);
        match (one.kind, without) {
            (Kind::Step, Some(left_out)) if left_out == at => row.extend([0.0; 2]),
            (Kind::Step, _) => row.extend(columns),
            (Kind::Bend, _) => row.push(columns[1]),
        }
    }
    row
}

fn product(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The inverse of a small positive definite matrix; `None` where it has none.
fn inverse(mut m: Vec<Vec<f64>>) -> Option<Vec<Vec<f64>>> {
    let n = m.len();
    for (at, row) in m.iter_mut().enumerate() {
        row.extend((0..n).map(|column| f64::from(column == at)));
    }
    for at in 0..n {
        let pivot = (at..n).max_by(|a, b| m[*a][at].abs().total_cmp(&m[*b][at].abs()))?;
        m.swap(at, pivot);
        let value = m[at][at];
        // Of the matrix alone: beside the ones of the identity, weights of slow tests (1e-13 and less at 30 ms)
        // would all be nothing, and hard disks would have no curve.
        if value.abs() <= 1e-12 * m[at][..n].iter().fold(0.0, |most: f64, x| most.max(x.abs())) {
            return None;
        }
        m[at].iter_mut().for_each(|x| *x /= value);
        let lead = m[at].clone();
        for (_, row) in m.iter_mut().enumerate().filter(|(other, _)| *other != at) {
            let factor = row[at];
            row.iter_mut().zip(&lead).for_each(|(x, lead)| *x -= factor * lead);
        }
    }
    Some(m.into_iter().map(|row| row[n..].to_vec()).collect())
}

/// The normal matrix of weighted least squares.
fn normal(rows: &[Vec<f64>], weights: &[f64]) -> Vec<Vec<f64>> {
    let n = rows.first().map_or(0, Vec::len);
    let mut normal = vec![vec![0.0; n]; n];
    for (row, weight) in rows.iter().zip(weights) {
        for (sums, x) in normal.iter_mut().zip(row) {
            sums.iter_mut().zip(row).for_each(|(sum, y)| *sum += weight * x * y);
        }
    }
    normal
}

/// Coefficients by weighted least squares.
fn solve(rows: &[Vec<f64>], values: &[SizeMean], weights: &[f64]) -> Option<Vec<f64>> {
    let mut right = vec![0.0; rows.first()?.len()];
    for ((row, value), weight) in rows.iter().zip(values).zip(weights) {
        right.iter_mut().zip(row).for_each(|(sum, x)| *sum += weight * x * value.mean);
    }
    let covariance = inverse(normal(rows, weights))?;
    Some(covariance.iter().map(|row| product(row, &right)).collect())
}

/// The lack of fit that makes residuals as large as they are.
fn paule_mandel(residuals: &[f64], points: &[SizeMean], spare: f64) -> f64 {
    let excess = |variance: f64| {
        let of = |(r, point): (&f64, &SizeMean)| r * r / (variance + point.of_mean());
        residuals.iter().zip(points).map(of).sum::<f64>() - spare
    };
    // The excess falls when the variance grows. At the mean square of the residuals it is zero
    // at most, so the root lies below that, and halving finds it.
    let most = residuals.iter().map(|r| r * r).sum::<f64>() / spare.max(1.0);
    if spare < 1.0 || excess(0.0) <= 0.0 {
        return 0.0;
    }
    let (mut low, mut high) = (0.0, most);
    for _ in 0..50 {
        let middle = (low + high) / 2.0;
        if excess(middle) > 0.0 { low = middle } else { high = middle }
    }
    high
}

impl Model {
    /// The curve with `breaks` through `points`; `freedom` is that of their noise. `None` with too few points.
    pub(crate) fn fit(points: &[SizeMean], freedom: f64, breaks: &[Break]) -> Option<Model> {
        let scale = points.last()?.size as f64;
        let rows: Vec<Vec<f64>> = points.iter().map(|p| row(p.size, scale, breaks, None)).collect();
        let spare = points.len().checked_sub(columns(breaks))?;
        let mut times: Vec<f64> = points.iter().map(|point| point.mean).collect();
        let mut unexplained = 0.0;
        let mut solution = None;
        let (mut residual, mut excess) = (0.0, 0.0);
        // The weights follow from the curve and not from the measured times. A time that is too
        // low by chance would get a greater weight and pull the curve down.
        for _ in 0..5 {
            let weight = |(p, t): (&SizeMean, &f64)| 1.0 / (t * t * (unexplained + p.of_mean()));
            let weights: Vec<f64> = points.iter().zip(&times).map(weight).collect();
            let beta = solve(&rows, points, &weights)?;
            for ((time, row), point) in times.iter_mut().zip(&rows).zip(points) {
                // A line may fall to zero or below at a small size. The bound keeps the weight
                // of that size finite in the next turn.
                *time = product(row, &beta).max(point.mean * 0.1);
            }
            let residuals: Vec<f64> =
                points.iter().zip(&times).map(|(p, time)| p.mean / time - 1.0).collect();
            let squares = |weight: &dyn Fn(&SizeMean) -> f64| {
                residuals.iter().zip(points).map(|(r, p)| r * r * weight(p)).sum::<f64>()
            };
            residual = squares(&|point| point.slices);
            excess = squares(&|point| 1.0 / point.of_mean()) / spare.max(1) as f64;
            // The estimator cannot be negative, so chance alone makes it positive for many true
            // lines. Without this test the intervals of such lines would be too wide.
            let chance = f_tail(excess, spare as f64, freedom);
            let open = chance < CHANCE_OF_NOISE;
            unexplained = if open { paule_mandel(&residuals, points, spare as f64) } else { 0.0 };
            solution = Some(beta);
        }
        let beta = solution?;
        let (points, breaks) = (points.to_vec(), breaks.to_vec());
        Some(Model { points, breaks, scale, beta, unexplained, freedom, spare, residual, excess })
    }

    /// The curve at `size`; `without` leaves a break out.
    fn curve(&self, size: u64, without: Option<usize>) -> f64 {
        product(&row(size, self.scale, &self.breaks, without), &self.beta)
    }

    /// Relative variance at `size` because a break may lie on either side of it.
    pub(crate) fn gap_variance(&self, size: u64) -> f64 {
        let line = self.line(size);
        let inside = |one: &Break| one.kind == Kind::Step && size > one.after && size < one.before;
        // A size inside the gap of a step may lie on either line. Until a slice decides, the
        // whole jump is its standard deviation.
        let jump = |(at, _)| (1.0 - self.curve(size, Some(at)) / line).powi(2);
        self.breaks.iter().enumerate().filter(|(_, one)| inside(one)).map(jump).sum()
    }

    /// The sizes that were measured.
    pub(crate) fn points(&self) -> &[SizeMean] {
        &self.points
    }

    /// Columns of the curve.
    pub(crate) fn columns(&self) -> usize {
        columns(&self.breaks)
    }

    /// The columns of the curve at `size`.
    pub(crate) fn row(&self, size: u64) -> Vec<f64> {
        row(size, self.scale, &self.breaks, None)
    }

    /// The break that explains most, if it is not chance, and is not in `refused`.
    pub(crate) fn better(&self, refused: &[Break]) -> Option<(Break, Model)> {
        if self.breaks.len() >= BREAKS_MAX || self.spare < 3 {
            return None;
        }
        let mut candidates = Vec::new();
        // A break needs two points on each side. A single point beyond it would have a line of
        // its own and no residual.
        for two in self.points[1..self.points.len() - 1].windows(2) {
            let (after, before) = (two[0].size, two[1].size);
            for kind in [Kind::Step, Kind::Bend] {
                let meets = |other: &Break| {
                    other.kind == kind && other.after < before && after < other.before
                };
                if !self.breaks.iter().chain(refused).any(meets) {
                    candidates.push(Break { kind, after, before });
                }
            }
        }
        // The best of many places has residuals that are smaller than the noise by chance. The
        // spread of repeated slices is a lower bound that no place can lower.
        let pure = self.points.iter().map(|p| p.variance).sum::<f64>() / self.points.len() as f64;
        let chance = |(one, model): &(Break, Model)| {
            let scatter = (model.residual / model.spare.max(1) as f64).max(pure);
            let added = one.kind.columns() as f64;
            let f = (self.residual - model.residual) / scatter / added;
            // The best of all places looks significant by chance. The probability is therefore
            // multiplied by the number of places (Bonferroni).
            f_tail(f, added, model.spare as f64) * candidates.len() as f64
        };
        let of = |kind: Kind| {
            let some: Vec<Break> =
                candidates.iter().copied().filter(|one| one.kind == kind).collect();
            self.best(&some)
        };
        let both = [Kind::Bend, Kind::Step].into_iter().filter_map(of);
        let (lowest, (one, model)) =
            both.map(|found| (chance(&found), found)).min_by(|a, b| a.0.total_cmp(&b.0))?;
        // Slices of a device without noise differ by their leads alone. Such differences are far
        // beyond the noise, but say nothing of whole tests.
        let differs = |point: &SizeMean| {
            (model.line(point.size) / self.line(point.size) - 1.0).abs() > SLICE_DEVIATION_MIN
        };
        let differs = self.points.iter().any(differs);
        (differs && lowest < FALSE_BREAK).then_some((one, model))
    }

    fn best(&self, candidates: &[Break]) -> Option<(Break, Model)> {
        let with = |one: &Break| {
            let mut breaks = self.breaks.clone();
            breaks.push(*one);
            Some((*one, Model::fit(&self.points, self.freedom, &breaks)?))
        };
        let promising = self.promising(candidates);
        let models = promising.iter().filter_map(with);
        models.min_by(|a, b| a.1.residual.total_cmp(&b.1.residual))
    }

    /// The candidates that lower the squares of residuals most with the weights of this curve: each that is fitted
    /// finds weights of its own, which takes much longer.
    fn promising(&self, candidates: &[Break]) -> Vec<Break> {
        let all = || candidates.to_vec();
        if candidates.len() <= FITTED_MAX {
            return all();
        }
        let rows: Vec<Vec<f64>> = self.points.iter().map(|point| self.row(point.size)).collect();
        let times: Vec<f64> = rows.iter().map(|row| product(row, &self.beta)).collect();
        let weight = |(p, t): (&SizeMean, &f64)| p.slices / t.max(p.mean * 0.1).powi(2);
        let weights: Vec<f64> = self.points.iter().zip(&times).map(weight).collect();
        // The weights here are not those of the curve, so the line is fitted again with them.
        // The gain of a column is exact only for residuals of the same weights.
        let Some(beta) = solve(&rows, &self.points, &weights) else { return all() };
        let residuals: Vec<f64> =
            self.points.iter().zip(&rows).map(|(p, row)| p.mean - product(row, &beta)).collect();
        let Some(covariance) = inverse(normal(&rows, &weights)) else { return all() };
        let gain = |one: &Break| {
            let which = usize::from(one.kind == Kind::Bend);
            let added = |point: &SizeMean| one.columns(point.size, self.scale)[which];
            let column: Vec<f64> = self.points.iter().map(added).collect();
            let mut with_rows = vec![0.0; covariance.len()];
            let (mut own, mut common) = (0.0, 0.0);
            for (((x, w), r), row) in column.iter().zip(&weights).zip(&residuals).zip(&rows) {
                own += w * x * x;
                common += w * x * r;
                with_rows.iter_mut().zip(row).for_each(|(sum, of)| *sum += w * x * of);
            }
            let explained: f64 = covariance
                .iter()
                .zip(&with_rows)
                .map(|(row, x)| product(row, &with_rows) * x)
                .sum();
            // This is the part of the new column that the curve does not contain already. If it
            // is only rounding, a gain divided by it would be enormous.
            let open = own - explained;
            if open > 1e-9 * own { common * common / open } else { 0.0 }
        };
        let mut by_gain: Vec<(f64, Break)> =
            candidates.iter().map(|one| (gain(one), *one)).collect();
        by_gain.sort_by(|a, b| b.0.total_cmp(&a.0));
        by_gain.into_iter().take(FITTED_MAX).map(|(_, one)| one).collect()
    }

    /// Moves each break to the pair of measured sizes inside its gap that fits best.
    pub(crate) fn narrowed(points: &[SizeMean], freedom: f64, breaks: &[Break]) -> Option<Model> {
        // Fresh slices lie inside the gaps of known breaks. Each break moves to the neighbours
        // that fit best, which makes the gap and the doubt about its sizes smaller.
        let mut model = Model::fit(points, freedom, &[])?;
        for one in breaks {
            let inside = points
                .windows(2)
                .filter(|two| two[0].size >= one.after && two[1].size <= one.before);
            let places: Vec<Break> = inside
                .map(|two| Break { kind: one.kind, after: two[0].size, before: two[1].size })
                .collect();
            model = model.best(&places).map_or(model, |(_, model)| model);
        }
        Some(model)
    }

    /// The curve alone at `size`.
    pub(crate) fn line(&self, size: u64) -> f64 {
        self.curve(size, None)
    }

    /// Squares of the relative distance of `slices` from the curve, without what was measured at their sizes.
    pub(crate) fn distance(&self, slices: &[(u64, f64)]) -> f64 {
        slices.iter().map(|(size, time)| (time / self.curve(*size, None) - 1.0).powi(2)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A curve does not depend on the unit of time: a hard disk's of 40 ms is found as an SSD's of 40 us is.
    #[test]
    fn slow_devices_have_curves_too() {
        for scale in [1e3, 1e6, 1e9, 1e12] {
            let times: Vec<(u64, Vec<f64>)> = (1..=12_u64)
                .map(|n| {
                    let time = (4.0 + n as f64) * scale;
                    (n << 18, vec![time * 0.99, time * 1.01, time])
                })
                .collect();
            let (points, freedom) = means(times.iter().map(|(size, times)| (*size, &times[..])));
            let model = Model::fit(&points, freedom, &[]).unwrap();
            let known = crate::kriging::predict(&model, &[5 << 18])[0].unwrap();
            assert!((known.time / scale - 9.0).abs() < 1e-3, "{} at {scale}", known.time / scale);
        }
    }

    /// On a device of 10 us, slices with a lead give 10.0013 us and slices without a lead 10 us: no breakpoint, although they
    /// have no noise. A step of 2 % between the sixth and the seventh size is one.
    #[test]
    fn a_break_is_larger_than_the_difference_of_slices_from_tests() {
        let found = |step: f64| {
            let time = |n: u64| if n <= 6 { 1e4 * (1.0 + step) } else { 1e4 };
            let times: Vec<(u64, Vec<f64>)> =
                (1..=12_u64).map(|n| (n << 18, vec![time(n); 3])).collect();
            let (points, freedom) = means(times.iter().map(|(size, times)| (*size, &times[..])));
            let model = Model::fit(&points, freedom, &[]).unwrap();
            model.better(&[]).map(|(one, _)| (one.after, one.before))
        };
        assert_eq!(found(0.0), None);
        assert_eq!(found(1.3e-4), None);
        assert_eq!(found(0.02), Some((6 << 18, 7 << 18)));
    }
}
