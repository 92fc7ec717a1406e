//! Closed forms of write amplification: what a page-mapping FTL must show under uniform random
//! single-page writes, and a few patterns beyond.
//!
//! Symbols: `alpha` = physical / logical pages in the steady state, the free reserve excluded;
//! utilisation = 1 / `alpha`, see [`Ftl::effective_utilisation`](crate::Ftl::effective_utilisation);
//! write amplification = (host writes + relocations) / host writes, at least 1. All forms hold for
//! many blocks; which also need many pages in a block is said at each.
//!
//! Arguments outside a form's range give `None`, never a wrong number.

/// The principal branch of Lambert's W: the w >= -1 with w exp(w) = x, for x >= -1/e.
fn lambert_w0(x: f64) -> Option<f64> {
    let least = -(-1.0f64).exp();
    if !x.is_finite() || x < least - 1e-15 {
        return None;
    }
    // Around the branch point W is a series in the root of the distance from it.
    let root = (2.0 * (std::f64::consts::E * x + 1.0)).max(0.0).sqrt();
    let near = -1.0 + root * (1.0 - root / 3.0 + root * root * 11.0 / 72.0);
    if root < 1e-4 {
        return Some(near);
    }
    let mut w = if x < 1.0 { near.min(1.0) } else { x.ln_1p() };
    for _ in 0..64 {
        // Halley's step.
        let exp = w.exp();
        let error = w * exp - x;
        let slope = exp * (w + 1.0) - (w + 2.0) * error / (2.0 * w + 2.0);
        let next = w - error / slope;
        if (next - w).abs() <= 1e-15 * (1.0 + w.abs()) {
            return Some(next);
        }
        w = next;
    }
    Some(w)
}

/// Form 1: FIFO cleaning, and greedy cleaning of very large blocks; 1 - 1/A = exp(-alpha / A).
///
/// Desnoyers, "Analytic modeling of SSD write performance", SYSTOR 2012; the same expression for
/// greedy with infinite blocks: Xiang and Kurkoski, arXiv:1110.4245. Range: `alpha` > 1.
pub fn fifo(alpha: f64) -> Option<f64> {
    if !alpha.is_finite() || alpha <= 1.0 {
        return None;
    }
    Some(alpha / (alpha + lambert_w0(-alpha * (-alpha).exp())?))
}

/// Form 3: greedy cleaning with blocks of `pages_per_block`, the mean field over many blocks.
///
/// The fixed point of Bux and Iliadis, Performance Evaluation 67(11), 2010, and of Van Houdt,
/// SIGMETRICS 2013, with d to infinity. Range: 0 < `utilisation` < 1 as long as a cleaned block
/// has room for at least one page.
pub fn greedy(utilisation: f64, pages_per_block: u32) -> Option<f64> {
    if !(utilisation > 0.0 && utilisation < 1.0) || pages_per_block == 0 {
        return None;
    }
    let b = f64::from(pages_per_block);
    // Victims have m or m - 1 valid pages, for the one m that makes both shares possible.
    let mut harmonic_tail = 0.0; // 1/(m+1) + … + 1/b
    for valid in (0..pages_per_block).rev() {
        harmonic_tail += 1.0 / f64::from(valid + 1);
        let m = f64::from(valid);
        let amplification = (b - m / utilisation) / ((b - m) - m * harmonic_tail);
        let at_m = 1.0 - amplification * utilisation * harmonic_tail;
        let below = m * at_m / (utilisation * amplification);
        let slack = 1e-9;
        if amplification >= 1.0 - slack && at_m >= -slack && (-slack..=1.0 + slack).contains(&below)
        {
            return Some(amplification);
        }
    }
    None
}

/// Form 7: any closed block is the victim, all equally likely; alpha / (alpha - 1). Also the most
/// that any sensible policy should cost. Range: 0 <= `utilisation` < 1.
pub fn random_victim(utilisation: f64) -> Option<f64> {
    (0.0..1.0).contains(&utilisation).then(|| 1.0 / (1.0 - utilisation))
}

/// A class of pages that are equally likely to be overwritten.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Class {
    /// Its share of all writes; the shares of all classes add up to 1.
    pub writes: f64,
    /// Its share of the logical space; the shares of all classes add up to 1.
    pub space: f64,
}

fn complete(classes: &[Class]) -> bool {
    let sound = |share: f64| share > 0.0 && share <= 1.0;
    let writes: f64 = classes.iter().map(|class| class.writes).sum();
    let space: f64 = classes.iter().map(|class| class.space).sum();
    classes.iter().all(|class| sound(class.writes) && sound(class.space))
        && (writes - 1.0).abs() < 1e-6
        && (space - 1.0).abs() < 1e-6
}

/// Form 4: classes of different heat in one FIFO pool;
/// A = sum of r / (1 - exp(-(r / f) alpha / A)) with r the share of writes and f that of space.
///
/// Desnoyers 2012. Range: `alpha` > 1, shares above 0 that add up to 1.
pub fn one_pool(classes: &[Class], alpha: f64) -> Option<f64> {
    if !alpha.is_finite() || alpha <= 1.0 || !complete(classes) {
        return None;
    }
    let excess = |amplification: f64| {
        let sum: f64 = classes
            .iter()
            .map(|class| {
                let heat = class.writes / class.space;
                class.writes / -(-heat * alpha / amplification).exp_m1()
            })
            .sum();
        sum - amplification
    };
    // For a large A the sum tends to A / alpha, which is less than A.
    let mut high = 2.0;
    while excess(high) > 0.0 {
        high *= 2.0;
        if high > 1e12 {
            return None;
        }
    }
    Some(bisect(1.0, high, excess))
}

/// Form 5: one pool for each class, `alphas` physical / logical pages of each;
/// A = sum of r A1(alpha) with A1 = `one`, the form of the policy that cleans them: [`fifo`], or
/// `|alpha| greedy(1.0 / alpha, pages_per_block)`.
///
/// Desnoyers 2012; Stoica and Ailamaki, VLDB 2013. Range: every alpha in that of `one`; classes may
/// be without writes.
pub fn separate_pools(
    classes: &[Class],
    alphas: &[f64],
    one: impl Fn(f64) -> Option<f64>,
) -> Option<f64> {
    let writes: f64 = classes.iter().map(|class| class.writes).sum();
    let sound = classes.iter().all(|class| (0.0..=1.0).contains(&class.writes));
    if classes.len() != alphas.len() || !sound || (writes - 1.0).abs() > 1e-6 {
        return None;
    }
    classes.iter().zip(alphas).map(|(class, alpha)| Some(class.writes * one(*alpha)?)).sum()
}

/// The `alphas` that make [`separate_pools`] of [`fifo`] least, for pools that share `alpha`: the sum
/// of f alpha over the classes is `alpha`. Range: `alpha` > 1, shares above 0 that add up to 1.
pub fn best_pools(classes: &[Class], alpha: f64) -> Option<Vec<f64>> {
    if !alpha.is_finite() || alpha <= 1.0 || !complete(classes) {
        return None;
    }
    // At the optimum one more physical page gains the same in every pool: r / f * -A1' = price.
    let gain = |alpha: f64| {
        let amplification = fifo(alpha).unwrap_or(f64::INFINITY);
        let over = amplification - 1.0;
        amplification * over / (amplification - alpha * over)
    };
    let pool = |class: &Class, price: f64| {
        let wanted = price * class.space / class.writes;
        // gain falls from infinity at 1 towards 0.
        let spare = bisect(-30.0, 8.0, |ln_spare: f64| gain(1.0 + ln_spare.exp()) - wanted);
        1.0 + spare.exp()
    };
    let ln_price = bisect(-100.0, 100.0, |ln_price: f64| {
        classes.iter().map(|class| class.space * pool(class, ln_price.exp())).sum::<f64>() - alpha
    });
    Some(classes.iter().map(|class| pool(class, ln_price.exp())).collect())
}

/// Form 6: the mean share of the logical space in use when a share `trims` of all requests are
/// trims of a page in use and the others write a page drawn uniformly; (1 - 2q) / (1 - q).
/// Divide `alpha` by it, or multiply the utilisation, before using form 1 or 3.
///
/// Frankie, Hughes and Kreutz-Delgado, arXiv:1208.1794. Range: 0 <= `trims` < 1/2.
pub fn share_in_use(trims: f64) -> Option<f64> {
    (0.0..0.5).contains(&trims).then(|| (1.0 - 2.0 * trims) / (1.0 - trims))
}

/// Where `f`, positive at `low` and falling, crosses zero.
fn bisect(mut low: f64, mut high: f64, f: impl Fn(f64) -> f64) -> f64 {
    for _ in 0..200 {
        let middle = f64::midpoint(low, high);
        if f(middle) > 0.0 {
            low = middle;
        } else {
            high = middle;
        }
    }
    f64::midpoint(low, high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn close(found: Option<f64>, expected: f64, tolerance: f64) {
        let found = found.expect("in range");
        assert!((found - expected).abs() <= tolerance, "{found} instead of {expected}");
    }

    #[test]
    fn anchors_of_single_pools() {
        close(fifo(1.3), 2.3642, 5e-5);
        // (pages per block, utilisation, form 3, form 1), computed independently with 4 decimals.
        for (b, u, mean_field, infinite) in [
            (16, 0.90, 3.9792, 5.1738),
            (16, 0.70, 1.7215, 1.8759),
            (16, 0.50, 1.1965, 1.2550),
            (32, 0.85, 3.2037, 3.5209),
            (64, 0.80, 2.5999, 2.6933),
            (128, 0.90, 4.9876, 5.1738),
            (128, 0.50, 1.2469, 1.2550),
        ] {
            // The anchors' utilisation is the integer ratio of 4096 blocks: 3686 / 4096 for 0.9.
            let u = (u * 4096.0f64).round() / 4096.0;
            close(greedy(u, b), mean_field, 1e-4 * mean_field);
            close(fifo(1.0 / u), infinite, 1e-4 * infinite);
        }
        close(random_victim(0.8), 5.0, 1e-12);
    }

    #[test]
    fn anchors_of_hot_and_cold() {
        let skewed = |r: f64, f: f64| {
            [Class { writes: r, space: f }, Class { writes: 1.0 - r, space: 1.0 - f }]
        };
        close(one_pool(&skewed(0.7258, 0.1420), 1.0914), 6.5892, 1e-3);
        // Without a difference in heat, one pool is form 1 whatever the classes.
        close(one_pool(&skewed(0.3, 0.3), 1.25), fifo(1.25).unwrap(), 1e-9);
        // The best pools beat any other division, and one pool.
        let classes = skewed(0.8, 0.2);
        let best = best_pools(&classes, 1.25).unwrap();
        assert!((0.2 * best[0] + 0.8 * best[1] - 1.25).abs() < 1e-6, "{best:?}");
        let least = separate_pools(&classes, &best, fifo).unwrap();
        assert!(least < one_pool(&classes, 1.25).unwrap());
        for shift in [-0.05, -0.01, 0.01, 0.05] {
            let other = [best[0] + 4.0 * shift, best[1] - shift];
            assert!(separate_pools(&classes, &other, fifo).unwrap() > least, "{shift}");
        }
    }

    #[test]
    fn trim_frees_space() {
        close(share_in_use(0.0), 1.0, 0.0);
        close(share_in_use(0.25), 2.0 / 3.0, 1e-12);
    }

    #[test]
    fn outside_the_range_is_none() {
        assert_eq!(fifo(1.0), None);
        assert_eq!(fifo(f64::NAN), None);
        assert_eq!(greedy(1.0, 64), None);
        assert_eq!(greedy(0.5, 0), None);
        assert_eq!(random_victim(1.0), None);
        assert_eq!(lambert_w0(-1.0), None);
        assert_eq!(share_in_use(0.5), None);
        assert_eq!(one_pool(&[Class { writes: 0.5, space: 1.0 }], 1.2), None);
        assert_eq!(separate_pools(&[Class { writes: 1.0, space: 1.0 }], &[], fifo), None);
    }

    proptest! {
        #[test]
        fn lambert_inverts(w in -0.999f64..20.0) {
            let x = w * w.exp();
            prop_assert!((lambert_w0(x).unwrap() - w).abs() < 1e-7, "{w}");
        }

        #[test]
        fn forms_are_ordered(u in 0.2f64..0.95, b in 8u32..256) {
            // A larger block costs more, FIFO is greedy's limit, random is the worst.
            if let (Some(small), Some(large)) = (greedy(u, b), greedy(u, 2 * b)) {
                prop_assert!(1.0 - 1e-9 <= small && small <= large + 1e-9);
                prop_assert!(large <= fifo(1.0 / u).unwrap() + 1e-9);
            }
            prop_assert!(fifo(1.0 / u).unwrap() <= random_victim(u).unwrap() + 1e-9);
            let fixed = fifo(1.0 / u).unwrap();
            prop_assert!((1.0 - 1.0 / fixed - (-1.0 / u / fixed).exp()).abs() < 1e-9);
        }

        #[test]
        fn greedy_always_has_its_one_m(u in 0.02f64..0.97, b in 64u32..512) {
            prop_assert!(greedy(u, b).is_some());
        }
    }
}
