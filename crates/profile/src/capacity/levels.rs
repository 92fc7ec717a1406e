//! Rates that fall from one level to another: the end of a burst.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// A fall below this share is not worth telling apart.
const FALL_MIN: f64 = 0.05;

/// Probability of a fall that is none, over all places where it may be.
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
    let (rest, best) = (1..=count - 3).map(split).min_by(|a, b| a.0.total_cmp(&b.0))?;
    if best.last > best.first * (1.0 - FALL_MIN) {
        return None;
    }
    let freedom = (count - 2) as f64;
    let spread = rest / freedom * (1.0 / best.at as f64 + 1.0 / (count - best.at) as f64);
    let t = (best.first - best.last) / spread.max(f64::MIN_POSITIVE).sqrt();
    let student = StudentsT::new(0.0, 1.0, freedom).ok()?;
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
