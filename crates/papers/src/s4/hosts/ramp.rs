//! When a rate is steady.

/// How near the means of later times a rate has to be, as a share.
const NEAR: f64 = 0.1;

/// A rate from `start` on, until that of the next one.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Rate {
    /// In s, after the start of the load.
    pub(super) start: f64,
    pub(super) rate: f64,
}

/// The first time from which on the mean of `window` successive rates is within 10 % of the mean of the second half of all.
/// `None` where there are too few rates, or none is.
pub(super) fn steady(rates: &[Rate], window: usize) -> Option<f64> {
    if rates.len() < 2 * window.max(1) {
        return None;
    }
    let mean = |part: &[Rate]| part.iter().map(|one| one.rate).sum::<f64>() / part.len() as f64;
    // The second half stands for the steady rate. A maximum would be a single high sample, and no
    // later window would come within 10 % of it.
    let late = mean(&rates[rates.len() / 2..]);
    let mut windows = rates.windows(window.max(1));
    windows.find(|part| (mean(part) / late - 1.0).abs() <= NEAR).map(|part| part[0].start)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rates(rate: impl Fn(usize) -> f64, count: usize) -> Vec<Rate> {
        (0..count).map(|n| Rate { start: n as f64, rate: rate(n) }).collect()
    }

    #[test]
    fn a_ramp_is_steady_where_it_ends() {
        // Up by a tenth of the whole in each of ten steps: rates 8, 9 and 10 have the mean 90 %.
        let ramp = rates(|n| (n as f64 / 10.0).min(1.0) * 500.0, 100);
        assert_eq!(steady(&ramp, 3), Some(8.0));
        assert_eq!(steady(&rates(|_| 7.0, 20), 5), Some(0.0));
        // Too fast at first is as little steady.
        assert_eq!(steady(&rates(|n| if n < 4 { 900.0 } else { 300.0 }, 40), 1), Some(4.0));
    }

    #[test]
    fn without_rates_nothing_is_steady() {
        assert_eq!(steady(&[], 3), None);
        assert_eq!(steady(&rates(|_| 1.0, 5), 3), None);
        assert_eq!(steady(&rates(|_| 0.0, 50), 3), None);
        assert_eq!(steady(&rates(|n| if n % 2 == 0 { 0.0 } else { 10.0 }, 50), 1), None);
    }
}
