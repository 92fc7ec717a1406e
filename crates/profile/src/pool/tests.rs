use super::*;
use ssdyno_engine::Rng;

/// With a variance that is known.
fn known(estimate: f64, half: f64) -> Known {
    let ends = (Some(estimate * (1.0 - half)), Some(estimate * (1.0 + half)));
    Known::new(estimate, ends, 1.0, f64::INFINITY)
}

/// Two of the same width: their geometric mean, and an interval narrower by the root of two.
#[test]
fn two_alike_are_surer_by_the_root_of_two() {
    let one = pooled(&[known(2.0, 0.05), known(2.0, 0.05)]).unwrap();
    let half = (one.high.unwrap() / one.low.unwrap()).ln() / 2.0;
    assert!((half - 0.05 / 2.0_f64.sqrt()).abs() < 1e-9 && (one.estimate - 2.0).abs() < 1e-12);
    assert_eq!(birge([one].into_iter()), 1.0);
    // The surer one counts for more: weights 1 and 1/16.
    let one = pooled(&[known(2.0, 0.01), known(4.0, 0.04)]).unwrap();
    assert!((one.estimate.ln() - (2.0_f64.ln() * 16.0 + 4.0_f64.ln()) / 17.0).abs() < 1e-9);
    // They differ by far more than that: the interval covers the difference.
    let wide = one.widened(birge([one].into_iter()));
    assert!(wide.low.unwrap() < 2.0 && wide.high.unwrap() > one.high.unwrap());
}

#[test]
fn without_intervals_the_profiles_are_repetitions() {
    let bare = |estimate| Known::new(estimate, (None, None), 1.0, 1.0);
    let one = pooled(&[bare(1.0), bare(4.0)]).unwrap();
    assert!((one.estimate - 2.0).abs() < 1e-12 && one.low.unwrap() < 1.0);
    assert_eq!(pooled(&[bare(3.0)]).unwrap().low, None);
    assert_eq!(pooled(&[]), None);
    assert_eq!(pooled(&[bare(0.0), bare(f64::NAN)]), None);
}

fn normal(rng: &mut Rng) -> f64 {
    let (radius, turn) = ((2.0 * rng.exponential()).sqrt(), rng.unit());
    radius * (std::f64::consts::TAU * turn).cos()
}

fn covers(one: &Pooled, truth: f64) -> bool {
    one.low.unwrap() <= truth && truth <= one.high.unwrap()
}

/// 90 % intervals of three profiles with known noise cover the truth in 90 % of 4000 cases (seed 11), within
/// three standard errors of the share.
#[test]
fn merged_intervals_cover_what_they_say() {
    let mut rng = Rng::new(11, "merge");
    let mut covered = 0;
    for _ in 0..4000 {
        let noisy: Vec<Known> = [0.01, 0.02, 0.03]
            .into_iter()
            .map(|deviation| {
                known(3.0 * (deviation * normal(&mut rng)).exp(), 1.644_853_6 * deviation)
            })
            .collect();
        covered += u32::from(covers(&pooled(&noisy).unwrap(), 3.0));
    }
    let share = f64::from(covered) / 4000.0;
    assert!((share - 0.9).abs() < 3.0 * (0.09_f64 / 4000.0).sqrt(), "{share}");
}

/// A figure of one profile: the mean of repetitions with this standard deviation, and its interval of Student's t.
fn measured(rng: &mut Rng, truth: f64, deviation: f64, repetitions: usize) -> Known {
    let times: Vec<f64> =
        (0..repetitions).map(|_| truth * (1.0 + deviation * normal(rng))).collect();
    let Estimate { mean, half_width } = estimate_of(&times).unwrap();
    let ends = (half_width.map(|half| mean - half), half_width.map(|half| mean + half));
    Known::new(mean, ends, repetitions as f64, repetitions as f64 - 1.0)
}

/// Shares of `trials` in which the intervals cover the truth, without and with the common factor of six figures.
fn coverage(seed: u64, profiles: usize, repetitions: usize, deviations: &[f64]) -> (f64, f64) {
    const TRIALS: usize = 500;
    let mut rng = Rng::new(seed, "merge of few repetitions");
    let (mut alone, mut widened) = (0, 0);
    for _ in 0..TRIALS {
        let mut figure = || {
            let all: Vec<Known> = (0..profiles)
                .map(|at| measured(&mut rng, 3.0, deviations[at % deviations.len()], repetitions))
                .collect();
            pooled(&all).unwrap()
        };
        let six: Vec<Pooled> = (0..6).map(|_| figure()).collect();
        let factor = birge(six.iter().copied());
        alone += six.iter().filter(|one| covers(one, 3.0)).count();
        widened += six.iter().filter(|one| covers(&one.widened(factor), 3.0)).count();
    }
    let share = |count: usize| count as f64 / (6 * TRIALS) as f64;
    (share(alone), share(widened))
}

/// Merges 2, 5 and 20 profiles of 2 and 5 repetitions, with equal standard deviations and with some four times as large
/// as others, for six figures each (seed 12, 3000 intervals, whose share has a standard error of 0.0055). With their
/// common factor at least 90 % of the intervals cover the truth, within three standard errors. The factor never narrows
/// an interval, so they cover up to 94 % with 5 and 20 profiles. With weights from the intervals it was 43 % with 20
/// profiles of 2 repetitions. Without the factor the approximation of Welch is off by at most 2 % where there is one
/// degree of freedom.
#[test]
fn few_repetitions_cover() {
    let error = 3.0 * (0.09_f64 / 3000.0).sqrt();
    for profiles in [2, 5, 20] {
        for repetitions in [2, 5] {
            for deviations in [&[0.02][..], &[0.01, 0.04]] {
                let (alone, widened) = coverage(12, profiles, repetitions, deviations);
                let case =
                    format!("{profiles} of {repetitions}, {deviations:?}: {alone} {widened}");
                let most = if profiles == 2 { 0.965 } else { 0.94 };
                assert!(widened >= 0.9 - error && widened <= most + error, "{case}");
                let welch = if repetitions == 2 { 0.02 } else { 0.0 };
                assert!((alone - 0.9).abs() <= welch + error, "{case}");
            }
        }
    }
}

/// Profiles that differ by three times their own noise, as those of different days do: the factor of six figures covers
/// that, too (seed 13, 5 and 20 profiles of 5 repetitions).
#[test]
fn profiles_of_different_days_are_covered() {
    let mut rng = Rng::new(13, "merge of days");
    for profiles in [5, 20] {
        let mut covered = 0;
        for _ in 0..500 {
            let mut figure = || {
                let one = |rng: &mut Rng| {
                    let truth = 3.0 * (0.06 / 5.0_f64.sqrt() * normal(rng)).exp();
                    measured(rng, truth, 0.02, 5)
                };
                let all: Vec<Known> = (0..profiles).map(|_| one(&mut rng)).collect();
                pooled(&all).unwrap()
            };
            let six: Vec<Pooled> = (0..6).map(|_| figure()).collect();
            let factor = birge(six.iter().copied());
            covered += six.iter().filter(|one| covers(&one.widened(factor), 3.0)).count();
        }
        let share = covered as f64 / 3000.0;
        assert!(
            (share - 0.9).abs() <= 3.0 * (0.09_f64 / 3000.0).sqrt() + 0.015,
            "{profiles}: {share}"
        );
    }
}
