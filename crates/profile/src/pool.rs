//! A figure of several profiles made one.
//!
//! The figure is the mean of those of the profiles on a logarithmic scale, with weights from their numbers of
//! repetitions. A variance from few repetitions is not a weight: a profile whose repetitions agree by chance would
//! dominate, and the interval would shrink with it (P. Meier, Variance of a weighted mean, Biometrics 9, 1953). The
//! variance of the mean is that of the weighted sum, and the interval is Student's t with the degrees of freedom of B.
//! L. Welch (Biometrika 34, 1947): profiles may differ in their variances.

use crate::estimate::{Estimate, Variances, estimate_of, student};

/// Degrees of freedom from which on a variance is a weight. Its own error then widens the interval by 6 % at most, by
/// Meier's formula with five or more profiles.
const FREEDOM_KNOWN: f64 = 30.0;

/// A figure of one profile.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known {
    pub(crate) estimate: f64,
    /// Relative variance of the estimate; `None` without an interval.
    variance: Option<f64>,
    /// Measurements that the estimate is a mean of.
    repetitions: f64,
    /// Degrees of freedom of the variance.
    freedom: f64,
}

impl Known {
    /// With the interval from `low` to `high`, which is Student's t with `freedom` degrees of freedom.
    pub(crate) fn new(
        estimate: f64,
        (low, high): (Option<f64>, Option<f64>),
        repetitions: f64,
        freedom: f64,
    ) -> Known {
        let half = low.zip(high).map(|(low, high)| (high - low) / 2.0 / estimate);
        // An interval of width 0, as of a simulated device without noise, gives no information on
        // the others.
        let half = half.filter(|half| *half > 0.0 && half.is_finite());
        let freedom = freedom.max(1.0);
        let variance = half.zip(student(freedom)).map(|(half, t)| (half / t).powi(2));
        Known { estimate, variance, repetitions: repetitions.max(1.0), freedom }
    }
}

/// How far profiles differ, and how far their intervals explain it.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
struct Spread {
    /// Cochran's Q with the pooled variance of a repetition.
    q: f64,
    /// Profiles but one; 0 where no interval says how far they may differ.
    freedom: f64,
}

/// Figures of several profiles made one.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Pooled {
    pub(crate) estimate: f64,
    pub(crate) low: Option<f64>,
    pub(crate) high: Option<f64>,
    spread: Spread,
}

/// A profile with an interval: logarithm, variance, weight, degrees of freedom.
#[derive(Clone, Copy)]
struct Part {
    log: f64,
    variance: f64,
    weight: f64,
    freedom: f64,
}

/// The parts of `all`; `None` where one has no interval.
fn parts(all: &[&Known]) -> Option<Vec<Part>> {
    let by_variance = all.iter().all(|one| one.freedom >= FREEDOM_KNOWN);
    let part = |one: &&Known| {
        let variance = one.variance?;
        let weight = if by_variance { 1.0 / variance } else { one.repetitions };
        Some(Part { log: one.estimate.ln(), variance, weight, freedom: one.freedom })
    };
    all.iter().map(part).collect()
}

/// The figure that `all` are of; `None` without a positive one.
pub(crate) fn pooled(all: &[Known]) -> Option<Pooled> {
    let usable = |known: &&Known| known.estimate > 0.0 && known.estimate.is_finite();
    let all: Vec<&Known> = all.iter().filter(usable).collect();
    // A profile without an interval does not say how sure it is. All profiles then count alike,
    // and their spread alone says how far the mean may be off.
    let Some(parts) = parts(&all) else {
        let logs: Vec<f64> = all.iter().map(|known| known.estimate.ln()).collect();
        let Estimate { mean, half_width } = estimate_of(&logs)?;
        let end = |sign: f64| half_width.map(|half| (mean + sign * half).exp());
        let (low, high) = (end(-1.0), end(1.0));
        return Some(Pooled { estimate: mean.exp(), low, high, spread: Spread::default() });
    };
    let weights: f64 = parts.iter().map(|one| one.weight).sum();
    let mean = parts.iter().map(|one| one.log * one.weight).sum::<f64>() / weights;
    let own = parts.iter().map(|one| ((one.weight / weights).powi(2) * one.variance, one.freedom));
    let variance: f64 = own.clone().map(|(variance, _)| variance).sum();
    let half = student(own.welch())? * variance.sqrt();
    (!parts.is_empty()).then(|| Pooled {
        estimate: mean.exp(),
        low: Some((mean - half).exp()),
        high: Some((mean + half).exp()),
        spread: Spread::of(&parts, mean),
    })
}

impl Spread {
    fn of(parts: &[Part], mean: f64) -> Spread {
        let freedom: f64 = parts.iter().map(|one| one.freedom).sum();
        let finite = freedom.is_finite();
        // The variance of a mean times its weight is that of one repetition.
        let one = |part: &Part| part.variance * part.weight;
        let share =
            |part: &Part| if finite { part.freedom / freedom } else { 1.0 / parts.len() as f64 };
        let variance: f64 = parts.iter().map(|part| one(part) * share(part)).sum();
        let squares: f64 = parts.iter().map(|one| one.weight * (one.log - mean).powi(2)).sum();
        // A variance from few repetitions is often too small, and its inverse is too large on
        // average: the mean of F with n degrees of freedom below is n / (n - 2).
        let bias = if finite { (freedom - 2.0).max(1.0) / freedom } else { 1.0 };
        Spread { q: squares / variance * bias, freedom: parts.len() as f64 - 1.0 }
    }
}

/// By how much intervals are wider because of spreads that they do not explain; 1 or more.
pub(crate) fn birge(spreads: impl Iterator<Item = Pooled>) -> f64 {
    let sum = |(q, n): (f64, f64), one: Pooled| (q + one.spread.q, n + one.spread.freedom);
    let (q, freedom) = spreads.fold((0.0, 0.0), sum);
    // All sizes share one factor: with two profiles, Q of a single size has one degree of
    // freedom. Below 1 the profiles agree by chance, which makes no interval narrower.
    if freedom > 0.0 { (q / freedom).sqrt().max(1.0) } else { 1.0 }
}

impl Pooled {
    /// With an interval that is `factor` as wide.
    pub(crate) fn widened(self, factor: f64) -> Pooled {
        // The interval is one of logarithms. A power makes it wider by the factor there, and
        // keeps its lower end above zero.
        let end =
            |end: Option<f64>| end.map(|end| self.estimate * (end / self.estimate).powf(factor));
        Pooled { low: end(self.low), high: end(self.high), ..self }
    }
}

#[cfg(test)]
mod tests;
