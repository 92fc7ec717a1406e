//! Intervals, quantiles and warm-up.
//!
//! Neighbouring requests are not independent: they share queues, caches and cleaning. So
//! intervals come from the means of long *batches* of consecutive requests, which nearly are
//! (Law, *Simulation Modeling and Analysis*, 5th ed., section 9.5.3, method of batch means).

use ssdyno_figures::{Interval, LEVEL};
use statrs::distribution::{ContinuousCDF, StudentsT};

/// The mean of independent values, with the bounds of Student's t; `None` for fewer than two.
pub fn mean_interval(values: &[f64]) -> Option<Interval> {
    mean_interval_at(values, LEVEL)
}

/// The same with bounds that cover the mean with probability `level`, between 0 and 1.
pub fn mean_interval_at(values: &[f64], level: f64) -> Option<Interval> {
    let (count, estimate) = (values.len() as f64, mean(values));
    let student = student_at(count - 1.0, level)?;
    // The divisor is n - 1, because the mean was found from the same values. The squares are
    // taken around the mean and not as a difference of sums, which would cancel digits of large
    // latencies.
    let squares: f64 = values.iter().map(|value| (value - estimate).powi(2)).sum();
    let half = student * (squares / (count - 1.0) / count).sqrt();
    Some(Interval { estimate, low: estimate - half, high: estimate + half, level })
}

/// Two-sided quantile of Student's t at [`LEVEL`] with so many degrees of freedom; `None` below one.
fn student(freedom: f64) -> Option<f64> {
    student_at(freedom, LEVEL)
}

/// The same at `level`.
pub(crate) fn student_at(freedom: f64, level: f64) -> Option<f64> {
    if freedom.is_nan() || freedom < 1.0 {
        return None;
    }
    let t = StudentsT::new(0.0, 1.0, freedom).ok()?;
    Some(t.inverse_cdf(0.5 + level / 2.0))
}

pub(crate) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// How far a ratio of sums over batches may be off.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ratio {
    /// Standard error of the ratio, the correlation of neighbouring batches allowed for.
    pub(crate) error: f64,
    /// Half the width of the interval in standard errors.
    pub(crate) student: f64,
    /// The ratio behind the start-up by that of the whole run; 1 where there is no start-up.
    pub(crate) behind: f64,
}

/// Largest correlation of neighbouring batches that is believed: beyond it the variance is
/// multiplied by 39, which says loudly enough that nothing is known.
// (1 + r) / (1 - r) grows without bound as r approaches 1. A correlation found from 32 batches
// is off by 0.35 by chance, so an estimate close to 1 says no more than "strong".
const CORRELATION_MOST: f64 = 0.95;

/// Degrees of freedom that are left however strongly batches are correlated.
const FREEDOM_LEAST: f64 = 3.0;

/// Standard deviations that a batch must be off from those of the second half to be start-up.
/// Of processes that are steady from the start hardly any first batch is so far off by chance;
/// one of an empty write buffer is off by dozens.
const START_UP_DEVIATIONS: f64 = 5.0;

/// The classical ratio estimator over batches (Law, section 9.5.3): amounts by weights, such as
/// latencies by requests or requests by seconds. `None` with fewer than three batches, without
/// weight, or where a figure is not finite.
///
/// Batches of a run that is short against the memory of the target are still correlated, and
/// intervals that ignore it are too narrow. So the variance is multiplied by
/// (1 + r) / (1 - r), that of a first-order autoregressive process with the correlation r that
/// the batches show, and the degrees of freedom shrink as much (Tafazzoli and Wilson, *Skart*,
/// 2011).
///
/// Start-up, such as an empty write buffer that fills, is no noise: it comes again with every
/// seed. One batch of it would blow up variance, correlation and kurtosis at once, and make
/// intervals ten times too wide. So the spread is that of the batches behind it (as *Skart* has it);
/// the figure itself stays that of the whole run, and its interval reaches to that of the batches behind the start-up
/// ([`ratio_interval`]).
pub(crate) fn ratio(amounts: &[f64], weights: &[f64]) -> Option<Ratio> {
    let weight: f64 = weights.iter().sum();
    // Two batches have one pair of neighbours, and no correlation can be found from that. Batches without
    // weight, such as those without writes, show nothing.
    if weights.iter().filter(|weight| **weight > 0.0).count() < 3 {
        return None;
    }
    let cut = start_up(amounts, weights);
    let rest = Spread::of(&amounts[cut..], &weights[cut..]);
    // Batches of the start-up are taken to vary as much as the others.
    // The variance of a sum of n batches is n times that of one. Dividing the sum by its weight
    // gives the ratio, so the same division gives its error.
    let error = (amounts.len() as f64 * rest.variance()).sqrt() / weight;
    let student = student((rest.worth() / rest.inflation - 1.0).max(FREEDOM_LEAST))?;
    let whole = amounts.iter().sum::<f64>() / weight;
    let behind = if whole > 0.0 && cut > 0 { rest.value / whole } else { 1.0 };
    error.is_finite().then_some(Ratio { error, student, behind })
}

/// How the residuals of batches from their common ratio vary.
struct Spread {
    batches: f64,
    /// Amount by weight.
    value: f64,
    squares: f64,
    fourths: f64,
    /// What correlation of neighbours makes of the variance of a sum, 1 or more.
    inflation: f64,
}

impl Spread {
    fn of(amounts: &[f64], weights: &[f64]) -> Spread {
        let batches = amounts.len() as f64;
        let weight: f64 = weights.iter().sum();
        let value = if weight > 0.0 { amounts.iter().sum::<f64>() / weight } else { 0.0 };
        // A batch with more requests may have a larger sum without being slower. The residual
        // from the common ratio takes the weight of the batch out.
        let residuals: Vec<f64> = amounts.iter().zip(weights).map(|(a, w)| a - value * w).collect();
        // Residuals sum to zero, which pulls their correlation down by about one in their number.
        // A negative correlation is not believed. One found from 32 batches is off by 0.35 by
        // chance, and intervals that trusted it would be too narrow if there is none.
        let correlation = (lag_one(&residuals) + 1.0 / batches).clamp(0.0, CORRELATION_MOST);
        Spread {
            batches,
            value,
            squares: residuals.iter().map(|r| r * r).sum(),
            fourths: residuals.iter().map(|r| r.powi(4)).sum(),
            inflation: (1.0 + correlation) / (1.0 - correlation),
        }
    }

    /// Of one batch's residual, as its neighbours let it count in a sum.
    fn variance(&self) -> f64 {
        self.squares / (self.batches - 1.0) * self.inflation
    }

    /// A variance of residuals with heavy tails is itself uncertain: as if it had been found from
    /// 2 n / (kurtosis - 1) normal ones, which for normal ones is all of them.
    fn worth(&self) -> f64 {
        let Spread { batches, squares, fourths, .. } = *self;
        // A single far batch makes the variance and its own uncertainty large at once. With as
        // few as `worth` normal batches Student's t is wide, which keeps the coverage.
        let kurtosis = if squares > 0.0 { batches * fourths / (squares * squares) } else { 3.0 };
        batches.min(2.0 * batches / (kurtosis - 1.0).max(1e-9))
    }
}

/// True if a run of equal batches has a start-up.
pub(crate) fn starts_up(batches: &[f64]) -> bool {
    start_up(batches, &vec![1.0; batches.len()]) > 0
}

/// How many leading batches are start-up, half of them at most: those that are all off to the
/// same side of what the second half of the run shows, and far.
///
/// Not the cut of [`warm_up`]: it looks for the calmest rest, and finds one behind every rare busy
/// period of a queue, whose intervals then miss the truth.
fn start_up(amounts: &[f64], weights: &[f64]) -> usize {
    let half = amounts.len() / 2;
    // Where the second half has no weight - writes that end early - it shows nothing.
    if half < 5 || weights[half..].iter().sum::<f64>() <= 0.0 {
        return 0;
    }
    // The second half is what the run has become. A start-up that lasts longer than half of the
    // run cannot be told from a drift.
    let steady = Spread::of(&amounts[half..], &weights[half..]);
    let far = START_UP_DEVIATIONS * (steady.squares / (steady.batches - 1.0)).sqrt();
    let residual = |at: usize| amounts[at] - steady.value * weights[at];
    // All batches of a start-up are off to the same side: a buffer that fills makes each of them
    // fast. Noise changes sides, and the run of one side ends soon.
    let side = residual(0).signum();
    (0..half).take_while(|at| residual(*at) * side > far).count()
}

/// Interval around `estimate`, a ratio of sums of the whole run, from batches of it. The lower
/// bound does not go below zero: all our figures are amounts.
///
/// Where the run has a start-up, the interval holds the ratio of the whole run and that behind the start-up, each with its spread: a
/// reader takes the interval for that of the target, and 88.5 k +- 2.7 % of a drive that did 78.8 k once it was warm told neither.
pub fn ratio_interval(estimate: f64, amounts: &[f64], weights: &[f64]) -> Option<Interval> {
    ratio_interval_with(estimate, amounts, weights, 0.0)
}

/// The same where the sum of the amounts has a variance of `unseen` that its batches do not show.
pub(crate) fn ratio_interval_with(
    estimate: f64,
    amounts: &[f64],
    weights: &[f64],
    unseen: f64,
) -> Option<Interval> {
    let Ratio { error, student, behind } = ratio(amounts, weights)?;
    let half = student * error.hypot(unseen.sqrt() / weights.iter().sum::<f64>());
    // The bounds reach from the figure with the start-up to the figure without it. A reader
    // takes the interval for that of the target, which will not start up again.
    let (low, high) = (estimate * behind.min(1.0) - half, estimate * behind.max(1.0) + half);
    let low = low.max(0.0);
    high.is_finite().then_some(Interval { estimate, low, high, level: LEVEL })
}

/// How far the ratio of the whole run may be from that of its steady part, by the figure: half
/// the width of its interval, and what start-up moves it by. Who waits for a precise figure must
/// wait until start-up has lost its weight. `unseen` as for [`ratio_interval_with`].
pub(crate) fn relative_distance(amounts: &[f64], weights: &[f64], unseen: f64) -> Option<f64> {
    let Ratio { error, student, behind } = ratio(amounts, weights)?;
    let weight = weights.iter().sum::<f64>();
    let error = error.hypot(unseen.sqrt() / weight);
    let whole = amounts.iter().sum::<f64>() / weight;
    (whole > 0.0).then(|| student * error / whole + (behind - 1.0).abs())
}

/// Correlation of each value with the next one; 0 where there is nothing to correlate.
pub(crate) fn lag_one(values: &[f64]) -> f64 {
    if values.len() < 3 {
        return 0.0;
    }
    let m = mean(values);
    // The sums are divided by each other, so no divisor of either is needed. The estimate is
    // that of the sample and lies between -1 and 1.
    let all: f64 = values.iter().map(|v| (v - m).powi(2)).sum();
    let pairs: f64 = values.windows(2).map(|w| (w[0] - m) * (w[1] - m)).sum();
    // The mean of equal values is off by rounding, and all distances have the same sign. Their
    // correlation would be nearly 1, although nothing varies.
    let n = values.len() as f64;
    let rounding = n * f64::EPSILON * m.abs();
    if all > n * rounding * rounding { pairs / all } else { 0.0 }
}

/// Slope of the best line by least squares through values one step apart, by step; 0 for fewer than
/// two.
pub fn slope(values: &[f64]) -> f64 {
    let middle = (values.len() as f64 - 1.0) / 2.0;
    let (mean, mut above, mut below) = (mean(values), 0.0, 0.0);
    for (at, value) in values.iter().enumerate() {
        let x = at as f64 - middle;
        above += x * (value - mean);
        below += x * x;
    }
    if below > 0.0 { above / below } else { 0.0 }
}

/// The best line by least squares through values one step apart.
pub(crate) struct Line {
    /// By step.
    pub(crate) slope: f64,
    /// Standard error of the slope, if what is left is independent.
    pub(crate) error: f64,
    /// Correlation of neighbours in what is left.
    pub(crate) correlation: f64,
}

impl Line {
    /// Through three values or more.
    pub(crate) fn through(values: &[f64]) -> Line {
        let n = values.len() as f64;
        let (middle, level, slope) = ((n - 1.0) / 2.0, mean(values), slope(values));
        let left = |(at, value): (usize, &f64)| value - level - slope * (at as f64 - middle);
        let left: Vec<f64> = values.iter().enumerate().map(left).collect();
        let squares: f64 = left.iter().map(|left| left * left).sum();
        let steps = n * (n * n - 1.0) / 12.0;
        let error = (squares / (n - 2.0) / steps).sqrt();
        Line { slope, error, correlation: lag_one(&left) }
    }
}

/// How many leading batches are warm-up, by the marginal standard error rule: the cut that
/// minimises the squared standard error of the mean of the rest (White, MSER-5, 1997). Cuts
/// behind the middle are not trusted and give `None`: the run never got steady, or is too short.
pub(crate) fn warm_up(batches: &[f64]) -> Option<usize> {
    let cut = warm_up_cut(batches);
    (cut <= batches.len() / 2).then_some(cut)
}

/// The same wherever the cut is.
pub(crate) fn warm_up_cut(batches: &[f64]) -> usize {
    let n = batches.len();
    // MSER compares standard errors of what is left. With fewer than ten batches every cut
    // leaves too few to have one.
    if n < 10 {
        return 0;
    }
    // Sums from the back, so that every cut is one step. Values are centred to keep the
    // difference of squares exact enough.
    let centre = mean(batches);
    let (mut sum, mut squares) = (0.0, 0.0);
    let mut best = (f64::INFINITY, n);
    for cut in (0..n).rev() {
        let v = batches[cut] - centre;
        sum += v;
        squares += v * v;
        let rest = (n - cut) as f64;
        // A few values may agree by chance, and the cut would leave only them. So a tenth of
        // the run must be left, and five values at least.
        if rest >= 5.0 && rest >= n as f64 / 10.0 {
            let error = (squares - sum * sum / rest).max(0.0) / (rest * rest);
            if error <= best.0 {
                best = (error, cut);
            }
        }
    }
    best.1
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// splitmix64, seeded: uniform in [0, 1).
    fn uniform(state: &mut u64) -> f64 {
        *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = *state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Student's own example (Biometrika 6, 1908, section IX): the additional hours of sleep of ten patients
    /// with two drugs, by patient; mean 1.58 h, standard deviation 1.23 h. t at 9 degrees is 2.262.
    #[test]
    fn mean_of_a_few() {
        let sleep = [1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4];
        let interval = mean_interval(&sleep).unwrap();
        assert!((interval.estimate - 1.58).abs() < 1e-9);
        assert!((interval.high - interval.estimate - 2.262 * 1.23 / 10f64.sqrt()).abs() < 2e-3);
        assert!((interval.low + interval.high - 2.0 * interval.estimate).abs() < 1e-9);
        assert!(mean_interval(&[1.0]).is_none() && mean_interval(&[]).is_none());
    }

    #[test]
    fn intervals_cover_the_truth_as_often_as_they_say() {
        // 1000 repetitions at 95 %: 950 +- 28 (4 standard deviations); a little more are welcome,
        // since correlations that are only noise widen an interval. Seed 1.
        let mut state = 1;
        let mut covered = 0;
        for _ in 0..1_000 {
            let batches: Vec<f64> =
                (0..32).map(|_| (0..20).map(|_| uniform(&mut state)).sum::<f64>() / 20.0).collect();
            let interval = ratio_interval(mean(&batches), &batches, &[1.0; 32]).unwrap();
            covered += u32::from(interval.low <= 0.5 && 0.5 <= interval.high);
        }
        assert!((922..=988).contains(&covered), "{covered} of 1000");
    }

    #[test]
    fn start_up_does_not_count_as_spread() {
        // What comes again with every seed must not widen the interval; seed 3.
        let mut state = 3;
        for lead in [1, 2, 5, 12] {
            let steady: Vec<f64> = (0..48).map(|_| 100.0 + uniform(&mut state)).collect();
            let mut started = steady.clone();
            started[..lead].iter_mut().for_each(|v| *v /= 5.0);
            let ones = [1.0; 48];
            let half = |batches: &[f64]| {
                let ratio = ratio(batches, &ones).unwrap();
                ratio.error * ratio.student
            };
            let share = half(&started) / half(&steady);
            assert!((0.6..1.6).contains(&share), "{lead}: {share}");
            // In the middle it is no start-up.
            started.rotate_left(lead + 12);
            assert!(half(&started) > 10.0 * half(&steady), "{lead}");
        }
    }

    /// Writes of the first group of jobs only: their mean is 10 in each batch, and nothing is known of the second half.
    #[test]
    fn an_amount_of_the_first_half_only_has_no_start_up() {
        let of = |at: usize, value: f64| if at < 40 { value } else { 0.0 };
        let amounts: Vec<f64> = (0..100).map(|at| of(at, 100.0 + (at % 3) as f64)).collect();
        let weights: Vec<f64> = (0..100).map(|at| of(at, 10.0)).collect();
        let interval = ratio_interval(10.1, &amounts, &weights).unwrap();
        assert!(interval.low > 9.9 && interval.high < 10.3, "{interval:?}");
    }

    #[test]
    fn student_is_the_tabled_value() {
        assert!((student(31.0).unwrap() - 2.0395).abs() < 1e-4);
        assert!(student(0.0).is_none() && student(f64::NAN).is_none());
    }

    /// A write buffer that fills: four batches of a hundred are ten times as fast. The figure of the whole run and that of the drive are
    /// both in the interval, and the spread is that of the drive.
    #[test]
    fn an_interval_reaches_to_the_figure_behind_the_start_up() {
        let amounts: Vec<f64> =
            (0..100).map(|at| if at < 4 { 1000.0 } else { 100.0 + f64::from(at % 2) }).collect();
        let weights = vec![1.0; amounts.len()];
        let whole = amounts.iter().sum::<f64>() / 100.0;
        let interval = ratio_interval(whole, &amounts, &weights).unwrap();
        let behind = amounts[4..].iter().sum::<f64>() / 96.0;
        assert!(interval.low < behind && behind - interval.low < 0.5, "{interval:?} {behind}");
        assert!(interval.high > whole && interval.high - whole < 0.5, "{interval:?} {whole}");
        // A slow start reaches to the other side.
        let slow: Vec<f64> = amounts.iter().map(|amount| 1e4 / amount).collect();
        let whole = slow.iter().sum::<f64>() / 100.0;
        let interval = ratio_interval(whole, &slow, &weights).unwrap();
        let behind = slow[4..].iter().sum::<f64>() / 96.0;
        assert!(interval.low < whole && interval.high > behind, "{interval:?} {behind}");
    }

    #[test]
    fn finds_where_the_warm_up_ends() {
        let mut state = 7;
        let mut series: Vec<f64> = (0..200).map(|_| 100.0 + uniform(&mut state)).collect();
        assert!(warm_up(&series).unwrap() < 40);
        for v in &mut series[..50] {
            *v += 50.0;
        }
        assert_eq!(warm_up(&series), Some(50));
        // Steady only in the last quarter.
        let late: Vec<f64> = (0..200).map(|i| f64::from((150 - i).max(0))).collect();
        assert_eq!(warm_up(&late), None);
        assert_eq!(warm_up(&[5.0; 100]), Some(0));
    }

    #[test]
    fn correlation_of_neighbours() {
        let slow: Vec<f64> = (0..64).map(|i| f64::from(i / 16)).collect();
        assert!(lag_one(&slow) > 0.8);
        let flip: Vec<f64> = (0..64).map(|i| f64::from(i % 2)).collect();
        assert!(lag_one(&flip) < -0.8);
        assert!(lag_one(&[1.0, 1.0, 1.0, 1.0]) == 0.0 && lag_one(&[]) == 0.0);
        // Their mean is not quite the value.
        assert_eq!(lag_one(&[0.1; 31]), 0.0);
        assert_eq!(lag_one(&[62_303.177; 32]), 0.0);
    }

    /// The line through 1, 2, 4, 3, 5: slope 0.9, and -0.2, -0.1, 1.0, -0.9, 0.2 are left: squares of 1.9.
    #[test]
    fn a_line_and_its_error() {
        let line = Line::through(&[1.0, 2.0, 4.0, 3.0, 5.0]);
        assert!((line.slope - 0.9).abs() < 1e-12);
        assert!((line.error - (1.9f64 / 3.0 / 10.0).sqrt()).abs() < 1e-12);
    }

    proptest! {
        #[test]
        fn intervals_are_finite_and_hold_the_estimate(
            batches in prop::collection::vec(0.0f64..1e12, 3..64),
        ) {
            let estimate = mean(&batches);
            let i = ratio_interval(estimate, &batches, &vec![1.0; batches.len()]).unwrap();
            prop_assert!(i.low <= estimate && estimate <= i.high && i.high.is_finite());
        }
    }
}
