//! Rates that fall from one level to another: the end of a burst.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// A fall below this share is not worth telling apart.
const FALL_MIN: f64 = 0.05;

/// Probability of a false fall, over all places where it may be.
const FALSE_FALL: f64 = 0.001;

/// Values below which nothing is said.
const VALUES_MIN: usize = 6;

/// A fall from one level to a lower one.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Fall {
    /// Values before it.
    pub(crate) at: usize,
    /// Mean before.
    pub(crate) first: f64,
    /// Mean after.
    pub(crate) last: f64,
}

fn squares(values: &[f64]) -> (f64, f64) {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    (mean, values.iter().map(|value| (value - mean).powi(2)).sum())
}

/// The place where two levels explain `values` best, if the second is lower by 5 % and more than by chance (Student's t,
/// for all places together). The second level has three values or more.
pub(crate) fn fall(values: &[f64]) -> Option<Fall> {
    let count = values.len();
    if count < VALUES_MIN {
        return None;
    }
    let split = |at: usize| {
        let (a, b) = values.split_at(at);
        let ((first, below), (last, above)) = (squares(a), squares(b));
        (below + above, Fall { at, first, last })
    };
    // The second level has three values or more. One or two slow values at the end of a load
    // are no level that the device sustains.
    let (rest, best) = (1..=count - 3).map(split).min_by(|a, b| a.0.total_cmp(&b.0))?;
    if best.last > best.first * (1.0 - FALL_MIN) {
        return None;
    }
    let freedom = (count - 2) as f64;
    let spread = rest / freedom * (1.0 / best.at as f64 + 1.0 / (count - best.at) as f64);
    // Simulated rates may be constant on both levels, and then the spread is zero. The bound
    // keeps t finite.
    let t = (best.first - best.last) / spread.max(f64::MIN_POSITIVE).sqrt();
    let student = StudentsT::new(0.0, 1.0, freedom).ok()?;
    // The best of all places was chosen. So the probability is multiplied by the number of
    // places (Bonferroni).
    (student.sf(t) * count as f64 <= FALSE_FALL).then_some(best)
}

/// Whether the last quarter is lower than the quarter before it by a tenth: the fall goes on.
pub(crate) fn still_falls(values: &[f64]) -> bool {
    let quarter = values.len() / 4;
    if quarter == 0 {
        return false;
    }
    let mean = |from: usize, to: usize| squares(&values[from..to]).0;
    let end = values.len();
    mean(end - quarter, end) < 0.9 * mean(end - 2 * quarter, end - quarter)
}

/// Windows without an overlap that values have at least.
const WINDOWS_MIN: usize = 8;

/// The least number of neighbouring values, as a power of two, whose means have a relative standard deviation of at most
/// `error`. At most an eighth of all values, also where longer windows would differ: a trend has no window.
pub(crate) fn window(values: &[f64], error: f64) -> usize {
    let (mean, _) = squares(values);
    let is_even = |width: usize| {
        let means: Vec<f64> = values.windows(width).map(|some| squares(some).0).collect();
        let (_, rest) = squares(&means);
        (rest / means.len() as f64).sqrt() <= error * mean
    };
    let mut width = 1;
    while 2 * width * WINDOWS_MIN <= values.len() && !is_even(width) {
        width *= 2;
    }
    width
}

/// Batches that are left at least.
const BATCHES_MIN: usize = 5;

/// Correlation of neighbours, without its bias of -1 / count; 0 where nothing varies.
fn neighbours(values: &[f64]) -> f64 {
    let (mean, all) = squares(values);
    let both: f64 = values.windows(2).map(|two| (two[0] - mean) * (two[1] - mean)).sum();
    // The mean comes from the same values, which lowers the correlation by about 1 / count.
    // Without the correction, batches would seem independent too early.
    if all > 0.0 { both / all + 1.0 / values.len() as f64 } else { 0.0 }
}

/// Means of longer and longer batches of the parts of one stretch, until neighbours are not correlated any more or
/// few batches are left (method of batch means). A remainder is left out at the start.
pub(crate) fn batch_means(values: &[f64]) -> Vec<f64> {
    let mut batches = values.to_vec();
    while batches.len() >= 2 * BATCHES_MIN && neighbours(&batches) > 0.0 {
        // The remainder is dropped at the start, which is nearest to the burst. The rule is not
        // exact: with 32 parts and a correlation of 0.5 an interval of 90 % covers the mean in
        // 84 % of cases (docs/profile.md).
        batches = batches.rchunks_exact(2).rev().map(|two| f64::midpoint(two[0], two[1])).collect();
    }
    batches
}

#[cfg(test)]
mod tests {
    use ssdyno_engine::Rng;

    use super::*;

    /// Noise of a standard deviation of a tenth, with 300 seeds: a level that does not change is told as one at least
    /// 295 times, one that halves is found every time, off by one value at most.
    #[test]
    fn a_fall_is_told_from_noise() {
        let (mut false_falls, count) = (0, 20);
        for seed in 0..300 {
            let mut rng = Rng::new(seed, "levels");
            // Sum of twelve uniform values: normal, with deviation 1.
            let mut noise = || 0.1 * ((0..12).map(|_| rng.unit()).sum::<f64>() - 6.0);
            let steady: Vec<f64> = (0..count).map(|_| 1.0 + noise()).collect();
            false_falls += u32::from(fall(&steady).is_some());
            let halves: Vec<f64> =
                (0..count).map(|at| if at < 8 { 2.0 } else { 1.0 } + noise()).collect();
            let found = fall(&halves).unwrap();
            assert!((7..=9).contains(&found.at), "{found:?}");
            assert!((found.first - 2.0).abs() < 0.2 && (found.last - 1.0).abs() < 0.15);
        }
        assert!(false_falls <= 5, "{false_falls}");
    }

    /// Parts of one stretch, each correlated with the previous part by 0.5: a 90 % interval from 32 such parts covers
    /// the true mean in less than 70 % of 1000 seeds; from batch means it covers it in at least 80 %. From batch means
    /// of independent parts it covers it in at least 88 %.
    #[test]
    fn batch_means_cover_correlated_parts() {
        let (mut plain, mut batched, mut free) = (0, 0, 0);
        let covers = |values: &[f64]| {
            let estimate = crate::estimate::estimate_of(values).unwrap();
            u32::from((estimate.mean - 1.0).abs() <= estimate.half_width.unwrap())
        };
        for seed in 0..1000 {
            let mut rng = Rng::new(seed, "batches");
            let mut noise = || 0.1 * ((0..12).map(|_| rng.unit()).sum::<f64>() - 6.0);
            let mut last = 0.0;
            let parts: Vec<f64> = (0..64)
                .map(|_| {
                    last = 0.5 * last + noise();
                    1.0 + last
                })
                .skip(32)
                .collect();
            plain += covers(&parts);
            batched += covers(&batch_means(&parts));
            let parts: Vec<f64> = (0..32).map(|_| 1.0 + noise()).collect();
            free += covers(&batch_means(&parts));
        }
        assert!(plain < 700, "{plain}");
        assert!(batched >= 800, "{batched}");
        assert!(free >= 880, "{free}");
        assert_eq!(batch_means(&[1.0; 40]).len(), 40);
        assert_eq!(batch_means(&[]), Vec::<f64>::new());
    }

    /// A rate that alternates every two values is even over four. A constant one has no cycle; a trend and single values
    /// have no window.
    #[test]
    fn a_window_covers_a_cycle() {
        let cycle: Vec<f64> = (0..64).map(|at| if at % 4 < 2 { 150.0 } else { 50.0 }).collect();
        assert_eq!(window(&cycle, 0.05), 4);
        assert_eq!(window(&[100.0; 64], 0.05), 1);
        assert_eq!(window(&(0..64).map(f64::from).collect::<Vec<_>>(), 0.05), 8);
        assert_eq!(window(&[1.0, 9.0], 0.05), 1);
        assert_eq!(window(&[], 0.05), 1);
    }

    #[test]
    fn few_or_rising_values_do_not_fall() {
        assert_eq!(fall(&[2.0, 2.0, 1.0, 1.0, 1.0]), None);
        assert_eq!(fall(&[1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 2.0]), None);
        // Without noise.
        assert_eq!(fall(&[2.0, 2.0, 2.0, 1.0, 1.0, 1.0]).map(|fall| fall.at), Some(3));
        assert!(still_falls(&[4.0, 3.0, 2.0, 1.0]) && !still_falls(&[4.0, 1.0, 1.0, 1.0]));
        assert!(!still_falls(&[1.0]));
    }
}
