use ssdyno_figures::SteadyPeriod;

use super::*;
use crate::draw::Draw;

/// Of a load without bursts, in a window that ends with the last batch.
fn findings_of(means: &[f64], ends: &[f64], counts: &[f64]) -> Findings {
    super::findings_of(means, ends, counts, Load::default())
}

/// Three bursts of 1000 requests, one a second, each of which takes 0.1 s; the first is slower. The middle of a burst is
/// no end of a warm-up. Of 30 bursts, of which two are slower, both are the warm-up, and the rate after them is that of
/// the load: 28 000 requests in 28 s.
#[test]
fn a_warm_up_of_bursts_is_of_whole_bursts() {
    let run = |bursts: usize, slow: usize, at_once: u64| {
        let level = |at: usize| if at / 200 < slow { 300.0 } else { 100.0 } + (at % 3) as f64;
        let means: Vec<f64> = (0..200 * bursts).map(level).collect();
        let end = |at: usize| (at / 200) as f64 + (at % 200 + 1) as f64 / 2_000.0;
        let ends: Vec<f64> = (0..200 * bursts).map(end).collect();
        let window = Some((1_000 * bursts as u64, bursts as f64));
        let counts = vec![5.0; means.len()];
        super::findings_of(&means, &ends, &counts, Load { at_once, window })
    };
    let warm_up = |found: &Findings| {
        let is = |one: &&Warning| one.kind == WarningKind::WarmUp;
        found.warnings.iter().find(is).map(Warning::line)
    };
    assert!(warm_up(&run(3, 1, 1)).is_some());
    assert_eq!(warm_up(&run(3, 1, 1_000)), None);
    let told = warm_up(&run(30, 2, 1_000)).unwrap();
    assert!(told.contains("without the first 2000 requests"), "{told}");
    // The second burst is complete at 1.1 s.
    assert!(told.contains(", and 968.8") || told.contains(", and 968.9"), "{told}");
    let load = Load { at_once: 1_000, window: None };
    assert_eq!(load.whole_bursts(1_090, 30_000), Some(2_000));
    assert_eq!((load.whole_bursts(1_090, 3_000), load.whole_bursts(29_500, 30_000)), (None, None));
}

impl Draw {
    /// Stationary, mean 100, correlation `rho` of neighbours.
    fn correlated(&mut self, rho: f64, spread: f64, n: usize) -> Vec<f64> {
        let mut value = self.normal();
        let mut next = || {
            value = rho * value + (1.0 - rho * rho).sqrt() * self.normal();
            100.0 * (1.0 + spread * value)
        };
        (0..n).map(|_| next()).collect()
    }

    fn periodic(&mut self, periods: f64, swing: f64, noise: f64, n: usize) -> Vec<f64> {
        let phase = std::f64::consts::TAU * self.uniform();
        let mut at = |at: usize| {
            let angle = std::f64::consts::TAU * periods * at as f64 / n as f64 + phase;
            100.0 * (1.0 + swing * angle.sin() + noise * self.normal())
        };
        (0..n).map(&mut at).collect()
    }
}

#[test]
fn a_run_without_a_steady_state_is_told_so_once() {
    let warning = unsettled(Some(&SteadyState::default())).unwrap();
    assert_eq!(warning.line(), "no steady state reached; run longer or precondition the target");
}

#[test]
fn a_rate_known_to_a_third_is_told() {
    let around = |half: f64| {
        let (low, high) = (100.0 - half, 100.0 + half);
        loose(Some(Interval { estimate: 100.0, low, high, level: 0.95 }))
    };
    assert_eq!(around(19.0), None);
    assert!(around(39.0).unwrap().message.contains("interval of ± 39 %"));
    assert!(around(150.0).unwrap().message.contains("interval wider than ± 100 %"));
}

#[test]
fn a_run_that_slows_down_is_told_from_one_that_speeds_up() {
    let kind = |left_slower| {
        let left_because = Some("mean latency changed".to_owned());
        let period = SteadyPeriod { left_because, left_slower, ..SteadyPeriod::default() };
        let found = SteadyState { periods: vec![period], ..SteadyState::default() };
        unsettled(Some(&found)).unwrap().kind
    };
    assert_eq!(kind(true), WarningKind::Slowing);
    assert_eq!(kind(false), WarningKind::NotSteady);
    let line = |sign: f64| -> Vec<f64> {
        (0..640).map(|at| 100.0 + sign * 20.0 * f64::from(at) / 640.0).collect()
    };
    let drift = |sign| {
        let counts = vec![5.0; 640];
        findings_of(&line(sign), &[], &counts).warnings.remove(0).kind
    };
    assert_eq!(drift(1.0), WarningKind::Slowing);
    assert_eq!(drift(-1.0), WarningKind::NotSteady);
}

/// The warning of a warm-up gives the rate without it: its requests are in the headline.
#[test]
fn a_warm_up_is_told_with_the_rate_without_it() {
    let slow = |at: usize| at >= 60;
    let means: Vec<f64> =
        (0..600).map(|at| if slow(at) { 100.0 } else { 20.0 } + (at % 3) as f64).collect();
    let ends: Vec<f64> =
        (0..600).map(|at| if slow(at) { at as f64 - 48.0 } else { at as f64 * 0.2 }).collect();
    let found = findings_of(&means, &ends, &vec![5.0; means.len()]);
    let message = &found.warnings.first().unwrap().message;
    assert!(message.contains("the first 300 requests"), "{message}");
    assert!(message.contains(", and 5.0"), "{message}");
}

/// The interval covers the part after the warm-up: with gaps that vary by a tenth it covers the true rate, 50 per
/// second, and not the rate of the whole run, of which a third is ten times as fast.
#[test]
fn the_rate_after_a_warm_up_has_its_own_interval() {
    let mut draw = Draw(7);
    let mut now = 0.0;
    let ends: Vec<f64> = (0..900)
        .map(|at| {
            now += if at < 300 { 0.01 } else { 0.1 } * (1.0 + 0.1 * draw.normal());
            now
        })
        .collect();
    let told = rate_after(&ends, 300, &vec![5.0; ends.len()], None).unwrap();
    let (iops, half) = told.trim_start_matches(", and ").split_once(" IOPS ± ").unwrap();
    let iops: f64 = iops.parse().unwrap();
    let half: f64 = half.trim_end_matches(" %").parse().unwrap();
    assert!((iops / 50.0 - 1.0).abs() < half / 100.0, "{told}");
    assert!(half < 2.0 && iops < 60.0, "{told}");
    assert_eq!(rate_after(&[], 1, &[], None), None);
}

fn texts(means: &[f64]) -> Vec<String> {
    let Findings { warnings, notes, .. } = findings_of(means, &[], &vec![5.0; means.len()]);
    warnings.into_iter().map(|one| one.message).chain(notes).collect()
}

fn drifts(means: &[f64]) -> bool {
    findings_of(means, &[], &vec![5.0; means.len()])
        .warnings
        .iter()
        .any(|one| one.kind.is_unsteady())
}

fn warms_up(means: &[f64]) -> bool {
    findings_of(means, &[], &vec![5.0; means.len()])
        .warnings
        .iter()
        .any(|one| one.kind == WarningKind::WarmUp)
}

/// How many of 1000 seeds get a note of a drift, and how many one of a warm-up.
fn found(make: impl Fn(&mut Draw) -> Vec<f64>) -> (usize, usize) {
    let runs = (0..1_000).map(|seed| make(&mut Draw(seed)));
    runs.fold((0, 0), |(drift, warm_up), means| {
        (drift + usize::from(drifts(&means)), warm_up + usize::from(warms_up(&means)))
    })
}

/// Constant latencies, whose means differ by rounding alone, get no note of any kind.
#[test]
fn constant_latencies_get_no_note() {
    for (latency_ps, requests) in [(62_303_177, 2_000), (1, 20_000), (99_999_999_999, 3_333)] {
        let mut batches = Batches::default();
        for at in 0..requests {
            batches.add(latency_ps, 4096, 1, ssdyno_block::Time::from_ps(latency_ps * at));
        }
        assert_eq!(
            findings(&batches, Time::ZERO, &(0.0..f64::INFINITY), Load::default()),
            Findings::default(),
            "{latency_ps} ps, {requests}"
        );
    }
    for n in 10..200 {
        assert_eq!(
            findings_of(&vec![62_303.177_f64; n], &[], &vec![5.0; n]),
            Findings::default(),
            "{n}"
        );
    }
}

/// Steady runs of 160, 600 and 1000 batches, 1000 seeds each: fewer than 1 % of them get a note of a
/// drift, and fewer than 1 % one of a warm-up, whatever the noise. `rho` says how strongly neighbours a 32nd
/// of the run apart are correlated.
#[test]
fn false_alarms() {
    const LENGTHS: [usize; 3] = [160, 600, 1_000];
    let rare = |what: &str, make: &dyn Fn(&mut Draw, usize) -> Vec<f64>| {
        let all = LENGTHS.map(|n| found(|draw| make(draw, n)));
        let (drift, warm_up) = all.iter().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        assert!(drift < 30 && warm_up < 30, "{what}: {all:?} of 1000 each");
    };
    for (rho, spread) in [(0.0, 0.05), (0.0, 1.0), (0.05, 0.3), (0.3, 0.1), (0.6, 0.3)] {
        let correlated = |draw: &mut Draw, n: usize| {
            let of_batches = f64::powf(rho, 32.0 / n as f64);
            draw.correlated(of_batches, spread, n)
        };
        rare(&format!("correlated by {rho}, spread {spread}"), &correlated);
    }
    rare("exponential", &|draw, n| (0..n).map(|_| -draw.uniform().ln()).collect());
    // A single period in a run does not show that it repeats.
    for periods in [2.0, 3.5, 8.0, 30.0] {
        for noise in [0.0, 0.01, 0.1] {
            let periodic = |draw: &mut Draw, n| draw.periodic(periods, 0.05, noise, n);
            rare(&format!("{periods} periods, noise {noise}"), &periodic);
        }
    }
}

/// True changes are seen in at least 95 of 100 runs: lines of 3 % and more, exponentials, steps near the end; with
/// noise of 2 % and 10 % a batch. A warm-up is reported as such.
#[test]
fn true_drifts_are_seen() {
    let n = 600;
    let seen = |level: &dyn Fn(f64) -> f64, noise: f64, sees: fn(&[f64]) -> bool| {
        let run = |seed| {
            let mut draw = Draw(seed);
            let mean = |at: usize| level(at as f64 / n as f64) * (1.0 + noise * draw.normal());
            (0..n).map(mean).collect::<Vec<f64>>()
        };
        (0..100).filter(|seed| sees(&run(*seed))).count()
    };
    for sign in [1.0, -1.0] {
        for (change, noise) in [(0.03, 0.0), (0.03, 0.02), (0.10, 0.0), (0.10, 0.10)] {
            let count = seen(&|x| 1.0 + sign * change * x, noise, drifts);
            assert!(count >= 95, "{count}: a line of {change}, noise {noise}");
        }
        for tau in [0.4, 1.0] {
            let level = |x: f64| 1.0 + sign * 0.3 * (-x / tau).exp();
            for noise in [0.0, 0.02] {
                let count = seen(&level, noise, drifts);
                assert!(count >= 95, "{count}: exponential, {tau}, noise {noise}");
            }
        }
        let step = |x: f64| if x < 0.75 { 1.0 } else { 1.0 + sign * 0.2 };
        assert!(seen(&step, 0.02, drifts) >= 95);
        let fills = |x: f64| if x < 0.1 { 1.0 - 0.8 * sign } else { 1.0 };
        assert!(seen(&fills, 0.02, warms_up) >= 95);
        let cools = |x: f64| 1.0 + sign * 0.5 * (-x / 0.1).exp();
        assert!(seen(&cools, 0.02, warms_up) >= 95);
    }
}

/// The note gives the change with its sign.
#[test]
fn a_drift_is_told_in_per_cent() {
    let falls: Vec<f64> = (0..640).map(|at| 110.0 - 20.0 * at as f64 / 640.0).collect();
    let notes = texts(&falls);
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert!(
        notes[0].contains("falls by 16.1 % (108.8 ns to 91.27 ns) from the first"),
        "{notes:?}"
    );
}

/// Correlated, but nowhere else at the end: intervals are wide, and the note says why.
#[test]
fn correlation_is_told_as_such() {
    let notes = texts(&Draw(3).correlated(0.99, 0.1, 1_000));
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert!(notes[0].contains("neighbouring parts of the run are correlated"), "{notes:?}");
}
