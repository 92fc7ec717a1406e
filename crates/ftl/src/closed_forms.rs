//! Closed forms of write amplification: the expected values of a page-mapping FTL under uniform
//! random single-page writes, and under a few other patterns.
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
    // At x = -1/e the slope of W is infinite, and iterations converge slowly. The error of the
    // series is of the fourth order of the root, about 1e-17 where the root is below 1e-4.
    let root = (2.0 * (std::f64::consts::E * x + 1.0)).max(0.0).sqrt();
    let near = -1.0 + root * (1.0 - root / 3.0 + root * root * 11.0 / 72.0);
    if root < 1e-4 {
        return Some(near);
    }
    // Halley's iteration converges to the third order from a start on the right branch. The
    // series is good below 1; above, W grows like the logarithm.
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
        // `at_m` and `below` are shares of blocks with m and m - 1 valid pages. Only one m makes
        // both of them lie between 0 and 1; the small slack admits the borders between two
        // values of m.
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

/// True if shares are shares and add up to 1; classes may be without writes.
fn complete(classes: &[Class]) -> bool {
    let writes: f64 = classes.iter().map(|class| class.writes).sum();
    let space: f64 = classes.iter().map(|class| class.space).sum();
    let is_share = |share: f64| (0.0..=1.0).contains(&share);
    classes.iter().all(|class| is_share(class.writes) && is_share(class.space) && class.space > 0.0)
        && (writes - 1.0).abs() < 1e-6
        && (space - 1.0).abs() < 1e-6
}

/// Form 4: classes of different heat in one FIFO pool;
/// A = sum of r / (1 - exp(-(r / f) alpha / A)) with r the share of writes and f that of space.
///
/// Desnoyers 2012. Range: `alpha` > 1, shares above 0 that add up to 1.
pub fn one_pool(classes: &[Class], alpha: f64) -> Option<f64> {
    let all_written = classes.iter().all(|class| class.writes > 0.0);
    if !alpha.is_finite() || alpha <= 1.0 || !complete(classes) || !all_written {
        return None;
    }
    // The excess falls with A from a positive value just above 1, so its zero is unique and
    // bisection cannot miss it.
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
/// Desnoyers 2012; Stoica and Ailamaki, VLDB 2013. Range: every alpha in that of `one`, but for
/// classes without writes.
pub fn separate_pools(
    classes: &[Class],
    alphas: &[f64],
    one: impl Fn(f64) -> Option<f64>,
) -> Option<f64> {
    if classes.len() != alphas.len() || !complete(classes) {
        return None;
    }
    let written = classes.iter().zip(alphas).filter(|(class, _)| class.writes > 0.0);
    written.map(|(class, alpha)| Some(class.writes * one(*alpha)?)).sum()
}

/// The `alphas` that make [`separate_pools`] least, for pools that share `alpha`: the sum of f alpha
/// over the classes is `alpha`. Range: `alpha` > 1, shares that add up to 1.
///
/// Form 3 has as many kinks as a block has pages, and with them several local minima: 3 % apart with
/// 16 pages a block. So all divisions of the spare pages in thousandths are looked at.
pub fn best_pools(
    classes: &[Class],
    alpha: f64,
    one: impl Fn(f64) -> Option<f64>,
) -> Option<Vec<f64>> {
    if !alpha.is_finite() || alpha <= 1.0 || !complete(classes) {
        return None;
    }
    let alpha_of = |class: &Class, pieces: usize| {
        1.0 + pieces as f64 / PIECES as f64 * (alpha - 1.0) / class.space
    };
    let cost = |class: &Class, pieces| match class.writes {
        0.0 => 0.0,
        writes => writes * one(alpha_of(class, pieces)).unwrap_or(f64::INFINITY),
    };
    // The least cost of the classes so far with this number of pieces, and the number of pieces of
    // the last class. Dynamic programming over the classes: the least cost of the first k classes
    // with n pieces needs only the costs of k - 1 classes. Trying all divisions would cost PIECES
    // to the power of the number of classes.
    let mut least = vec![f64::INFINITY; PIECES + 1];
    least[0] = 0.0;
    let mut chosen = Vec::new();
    for class in classes {
        let costs: Vec<f64> = (0..=PIECES).map(|pieces| cost(class, pieces)).collect();
        let best = |all: usize| {
            let with = |own: &usize| least[all - own] + costs[*own];
            let own = (0..=all).min_by(|a, b| with(a).total_cmp(&with(b))).unwrap_or(0);
            (with(&own), own)
        };
        let (costs, owns): (Vec<f64>, Vec<usize>) = (0..=PIECES).map(best).unzip();
        least = costs;
        chosen.push(owns);
    }
    if !least[PIECES].is_finite() {
        return None;
    }
    // The choice of the last class is known for all pieces. Each choice gives the number of pieces
    // left for the classes before it, so the way back runs from the last class to the first.
    let mut left = PIECES;
    let last_first = classes.iter().zip(chosen).rev();
    let mut alphas: Vec<f64> = last_first
        .map(|(class, owns)| {
            let own = owns[left];
            left -= own;
            alpha_of(class, own)
        })
        .collect();
    alphas.reverse();
    Some(alphas)
}

/// Pieces of the spare pages of which [`best_pools`] gives each pool a whole number.
const PIECES: usize = 1000;

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
    // 200 halvings reach the resolution of a double from any start that `one_pool` can pass. A
    // fixed count needs no tolerance, and the result is the same on every machine.
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
        let best = best_pools(&classes, 1.25, fifo).unwrap();
        assert!((0.2 * best[0] + 0.8 * best[1] - 1.25).abs() < 1e-6, "{best:?}");
        let least = separate_pools(&classes, &best, fifo).unwrap();
        assert!(least < one_pool(&classes, 1.25).unwrap());
        for shift in [-0.05, -0.01, 0.01, 0.05] {
            let other = [best[0] + 4.0 * shift, best[1] - shift];
            assert!(separate_pools(&classes, &other, fifo).unwrap() > least, "{shift}");
        }
        // At the best of a smooth form one more page gains the same in every pool: for random victims
        // spare pages are as the root of r f.
        let best = best_pools(&classes, 1.25, |alpha| random_victim(1.0 / alpha)).unwrap();
        close(Some(best[0]), 1.0 + 0.25 * 0.5 / 0.2, 2e-3);
        // A class without writes gets nothing.
        let still = [
            Class { writes: 0.0, space: 0.5 },
            Class { writes: 1.0, space: 0.25 },
            Class { writes: 0.0, space: 0.25 },
        ];
        let best = best_pools(&still, 1.1, fifo).unwrap();
        assert_eq!((best[0], best[2]), (1.0, 1.0));
        close(separate_pools(&still, &best, fifo), fifo(1.4).unwrap(), 1e-9);
    }

    /// Among the kinks of form 3: no better division of three classes is found by chance.
    #[test]
    fn best_pools_of_small_blocks_are_best() {
        let classes =
            [(0.6, 0.1), (0.3, 0.3), (0.1, 0.6)].map(|(writes, space)| Class { writes, space });
        for (alpha, b) in [(1.05, 16), (1.1, 16), (1.25, 8), (1.6, 32)] {
            let one = |alpha: f64| greedy(1.0 / alpha, b);
            let least = separate_pools(&classes, &best_pools(&classes, alpha, one).unwrap(), one);
            for (first, second) in (1..60).flat_map(|a| (1..60).map(move |b| (a, b))) {
                let third = 60_u32.saturating_sub(first + second);
                let spare = [first, second, third].map(|part| f64::from(part) / 60.0);
                let alphas: Vec<f64> = classes
                    .iter()
                    .zip(spare)
                    .map(|(class, spare)| 1.0 + spare * (alpha - 1.0) / class.space)
                    .collect();
                if third > 0
                    && let Some(other) = separate_pools(&classes, &alphas, one)
                {
                    assert!(least.unwrap() < other * 1.001, "{spare:?}: {other}, {least:?}");
                }
            }
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
