//! Zipf ranks in constant time and space.

use ssdyno_engine::Rng;

/// Draws ranks 0..n with weight (rank + 1)^-theta.
///
/// Rejection-inversion (W. Hörmann, G. Derflinger, "Rejection-inversion to generate variates from
/// monotone discrete distributions", ACM TOMACS 6(3), 1996): no table, exact for every n, and
/// nearly always one inversion. `rand_distr::Zipf` needs three powers a draw, which is more than
/// the whole budget of a request.
#[derive(Clone, Debug)]
pub(crate) struct Zipf {
    n: f64,
    theta: f64,
    /// 1 / (1 - theta) where theta is far enough from 1 for `ln`, which is faster than `ln_1p`:
    /// the relative error of a draw is then below 1e-12.
    power: Option<f64>,
    /// Integral of the hat up to 1.5, less the weight of rank 1.
    low: f64,
    /// Integral of the hat up to n + 0.5.
    high: f64,
    /// Draws at most this far below their rank are accepted at once.
    sure: f64,
}

/// (e^x - 1) / x, which is 1 at 0.
fn expm1_over(x: f64) -> f64 {
    if x.abs() > 1e-8 { x.exp_m1() / x } else { 1.0 + x / 2.0 }
}

/// ln(1 + x) / x, which is 1 at 0.
fn ln1p_over(x: f64) -> f64 {
    if x.abs() > 1e-8 { x.ln_1p() / x } else { 1.0 - x / 2.0 }
}

impl Zipf {
    /// `n` is 1 or more, `theta` above 0.
    pub(crate) fn new(n: u64, theta: f64) -> Zipf {
        // Near theta = 1, 1 / (1 - theta) loses its digits. `None` selects the form with ln(1 + t)
        // / t, which stays exact at the limit of theta = 1.
        let power = ((1.0 - theta).abs() > 1e-3).then(|| 1.0 / (1.0 - theta));
        let mut zipf = Zipf { n: n as f64, theta, power, low: 0.0, high: 0.0, sure: 0.0 };
        zipf.low = zipf.integral(1.5) - 1.0;
        zipf.high = zipf.integral(zipf.n + 0.5);
        // This is the constant s of the paper: below it, the hat and the weights agree so closely
        // that the draw is accepted without computing a weight.
        zipf.sure = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.weight(2.0));
        zipf
    }

    fn weight(&self, x: f64) -> f64 {
        (-self.theta * x.ln()).exp()
    }

    /// Integral of x^-theta from 1.
    fn integral(&self, x: f64) -> f64 {
        let ln = x.ln();
        expm1_over((1.0 - self.theta) * ln) * ln
    }

    #[inline]
    fn inverse(&self, y: f64) -> f64 {
        // Rounding may take the argument of ln below 0 at the far end of a steep distribution.
        let t = (y * (1.0 - self.theta)).max(-1.0);
        match self.power {
            Some(power) => ((1.0 + t).ln() * power).exp(),
            None => (ln1p_over(t) * y).exp(),
        }
    }

    /// The rank, counted from 1, up to which half of the draws lie.
    pub(crate) fn median_rank(&self) -> u64 {
        // A draw inverts a point of the integral (see `draw`), here the middle one.
        let x = self.inverse(self.low + (self.high - self.low) / 2.0);
        (x + 0.5).floor().clamp(1.0, self.n) as u64
    }

    #[inline]
    pub(crate) fn draw(&self, rng: &mut Rng) -> u64 {
        loop {
            // The draw is uniform in the integral of the hat, so its inverse has the density
            // x^-theta. Rank 1 is included as an area of exactly its weight (`low`).
            let y = self.high + rng.unit() * (self.low - self.high);
            let x = self.inverse(y);
            let rank = (x + 0.5).floor().clamp(1.0, self.n);
            if rank - x <= self.sure || y >= self.integral(rank + 0.5) - self.weight(rank) {
                return rank as u64 - 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequencies_follow_the_closed_form() {
        for (n, theta) in [(10_u64, 0.5), (1000, 0.99), (1000, 1.0), (50, 1.5), (3, 10.0), (1, 1.0)]
        {
            let zipf = Zipf::new(n, theta);
            let mut rng = Rng::new(11, "zipf");
            let draws = 400_000_u32;
            let mut seen = vec![0_u32; n as usize];
            for _ in 0..draws {
                seen[zipf.draw(&mut rng) as usize] += 1;
            }
            let norm: f64 = (1..=n).map(|k| (k as f64).powf(-theta)).sum();
            for (rank, &count) in seen.iter().enumerate() {
                let p = ((rank + 1) as f64).powf(-theta) / norm;
                let expected = p * f64::from(draws);
                // Five standard deviations and a half: over 2000 comparisons stay quiet.
                let tolerance = 5.5 * (expected * (1.0 - p)).sqrt() + 1.0;
                let off = (f64::from(count) - expected).abs();
                assert!(off <= tolerance, "n {n} theta {theta} rank {rank}: {count} {expected}");
            }
        }
    }

    #[test]
    fn half_of_the_draws_lie_up_to_the_median_rank() {
        for (n, theta) in
            [(1000_u64, 0.5), (1000, 0.99), (1000, 1.0), (50, 1.5), (3, 10.0), (1, 1.0)]
        {
            let weight = |k: u64| (k as f64).powf(-theta);
            let half = (1..=n).map(weight).sum::<f64>() / 2.0;
            let mut sum = 0.0;
            let exact = (1..=n).find(|k| {
                sum += weight(*k);
                sum >= half
            });
            let (found, exact) = (Zipf::new(n, theta).median_rank(), exact.unwrap());
            assert!(found.abs_diff(exact) <= 1, "n {n} theta {theta}: {found} {exact}");
        }
    }

    #[test]
    fn large_ranges_need_no_table() {
        let zipf = Zipf::new(268_435_456, 0.99);
        let mut rng = Rng::new(3, "zipf");
        let draws = 1_000_000_u32;
        let first = (0..draws).filter(|_| zipf.draw(&mut rng) < 1000).count() as f64;
        // Euler-Maclaurin: sum k^-s from 1 to n = zeta part cancels in the ratio of partial sums.
        let partial = |n: f64| {
            let head: f64 = (1..100).map(|k| f64::from(k).powf(-0.99)).sum();
            let tail = |x: f64| x.powf(0.01) / 0.01;
            head + tail(n) - tail(100.0) + 0.5 * (100f64.powf(-0.99) + n.powf(-0.99))
        };
        let p = partial(1000.0) / partial(268_435_456.0);
        let expected = p * f64::from(draws);
        assert!(
            (first - expected).abs() < 5.0 * (expected * (1.0 - p)).sqrt(),
            "{first} {expected}"
        );
    }
}
