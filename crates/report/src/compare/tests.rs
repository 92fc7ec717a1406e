//! Ratios, verdicts and texts of comparisons.

use ssdyno_figures::{
    Confidence, Energy, Latency, LatencyByOp, LatencyIntervals, LatencyIntervalsByOp, WarningKind,
};

use super::*;

/// Bounds at more than twice the factor are more than 100 % off: a verdict keeps its certain end, the rest says nothing.
#[test]
fn an_interval_above_100_percent_is_not_told() {
    let told = |ratio, bounds, verdict| words(FigureKind::Latency, ratio, Some(bounds), verdict);
    let unsure = |bounds| told(1.2, bounds, Verdict::CannotTell);
    assert_eq!(unsure((0.4, 3.6)), "cannot tell (interval wider than ± 100 %)");
    assert_eq!(unsure((0.8, 1.5)), "cannot tell: 25 % slower to 50 % faster");
    assert_eq!(unsure((1.0, 1.0)), "equal");
    assert_eq!(unsure((1.0, 1.004)), "cannot tell: 0 % slower to 0.40 % faster");
    assert_eq!(told(40.0, (10.0, 160.0), Verdict::Better), "40.0x (at least 10.0) faster");
    assert_eq!(
        told(1.0 / 40.0, (1.0 / 160.0, 0.1), Verdict::Worse),
        "40.0x (at least 10.0) slower"
    );
    assert_eq!(told(4.0, (3.0, 6.0), Verdict::Better), "4.00x (3.00 to 6.00) faster");
}

fn run(iops: f64, half: f64, p99: f64) -> RunResult {
    let around = |v: f64| {
        Some(Interval { estimate: v, low: v * (1.0 - half), high: v * (1.0 + half), level: 0.95 })
    };
    let all = Latency { mean: 1e9 / iops, p99, ..Latency::default() };
    RunResult {
        target: "sim:a".into(),
        workload: "randread".into(),
        iops,
        latency_ns: Some(LatencyByOp { all, ..LatencyByOp::default() }),
        confidence: Some(Confidence {
            iops: around(iops),
            latency_ns: LatencyIntervalsByOp {
                all: LatencyIntervals { p99: around(p99), ..LatencyIntervals::default() },
                ..LatencyIntervalsByOp::default()
            },
            ..Confidence::default()
        }),
        ..RunResult::default()
    }
}

fn find<'a>(c: &'a Comparison, figure: &str) -> &'a FigureComparison {
    c.figures.iter().find(|f| f.figure == figure).unwrap()
}

#[test]
fn says_faster_slower_or_cannot_tell() {
    let (a, b) = (run(1_000.0, 0.02, 5_000.0), run(1_320.0, 0.03, 5_050.0));
    let ab = compare(&a, &b);
    let iops = find(&ab, "iops");
    assert_eq!((iops.text.as_str(), iops.verdict), ("1.32x ± 0.07 faster", Verdict::Better));
    assert_eq!((ab.verdict, compare(&b, &a).verdict), (Verdict::Better, Verdict::Worse));
    let p99 = find(&ab, "latency_ns.p99");
    assert_eq!(
        (p99.text.as_str(), p99.verdict),
        ("cannot tell: 6.1 % slower to 4.1 % faster", Verdict::CannotTell)
    );
    let ba = compare(&b, &a);
    assert_eq!(find(&ba, "iops").text, "1.32x ± 0.07 slower");
    assert_eq!(find(&ba, "iops").verdict, Verdict::Worse);
    let wide = compare(&run(1_000.0, 0.2, 1.0), &run(8_000.0, 0.25, 1.0));
    let text = &find(&wide, "iops").text;
    assert!(text.starts_with("8.00x (4.") && text.ends_with(") faster"), "{text}");
    // A mean without an interval gives a ratio and no verdict.
    let mean = find(&ab, "latency_ns.mean");
    assert_eq!(mean.text, "1.32x faster: cannot tell (too few requests)");
    assert_eq!((mean.verdict, mean.interval), (Verdict::CannotTell, None));
}

#[test]
fn an_interval_down_to_nothing_bounds_one_side() {
    let sure = run(1_000.0, 0.02, 1.0);
    // What is at most twice 100 is not a thousand, whatever it is at least.
    let slow = run(100.0, 1.0, 1.0);
    let worse = compare(&sure, &slow);
    let iops = find(&worse, "iops");
    assert_eq!(iops.verdict, Verdict::Worse, "{iops:?}");
    assert_eq!(iops.interval.unwrap().low, 0.0);
    assert!(iops.text.starts_with("10.0x (at least 3.") && iops.text.ends_with(") slower"));
    // The other way round there is no end to how much faster it may be.
    let better = compare(&slow, &sure);
    let iops = find(&better, "iops");
    assert_eq!(iops.verdict, Verdict::Better);
    assert!(iops.interval.unwrap().upper().is_none());
    assert!(iops.text.starts_with("10.0x (at least 3.") && iops.text.ends_with(") faster"));
    assert!(crate::to_json(&better).is_ok());
    let none = compare(&slow, &slow);
    assert_eq!(find(&none, "iops").text, "equal");
    assert_eq!(find(&none, "iops").interval, None);
}

/// A percentile whose upper end is not known bounds the ratio on one side.
#[test]
fn an_open_interval_bounds_one_side() {
    let sure = run(1_000.0, 0.02, 1_000.0);
    let mut open = run(1_000.0, 0.02, 5_000.0);
    let confidence = open.confidence.as_mut().unwrap();
    confidence.latency_ns.all.p99.as_mut().unwrap().high = f64::INFINITY;
    let worse = compare(&sure, &open);
    let p99 = find(&worse, "latency_ns.p99");
    assert_eq!(p99.verdict, Verdict::Worse, "{p99:?}");
    assert_eq!(p99.text, "5.00x (at least 4.81) slower");
    let better = compare(&open, &sure);
    let p99 = find(&better, "latency_ns.p99");
    assert_eq!(p99.text, "5.00x (at least 4.81) faster");
    assert!(p99.interval.unwrap().upper().is_none());
    assert!(crate::to_json(&better).unwrap().contains("\"high\": null"));
    // What is 1000 or more may well be 5000.
    let unsure = compare(&open, &run(1_000.0, 0.02, 9_000.0));
    assert_eq!(find(&unsure, "latency_ns.p99").verdict, Verdict::CannotTell);
    assert_eq!(find(&compare(&open, &open), "latency_ns.p99").interval, None);
}

/// Equal figures of which only the second ones end with its burst credits are not identical; where both have the
/// warning, and where the page cache of one side was asked for, there is a verdict.
#[test]
fn equal_figures_with_a_doubt_are_no_identity() {
    let plain = run(1_000.0, 0.02, 1_000.0);
    let spending = |kind: WarningKind| RunResult {
        warnings: vec![Warning::new(kind, "the rate depends on burst credits: 33 min")],
        ..plain.clone()
    };
    let credits = spending(WarningKind::BurstCredits);
    assert_eq!(compare(&plain, &credits).verdict, Verdict::NotComparable);
    assert_eq!(compare(&credits, &credits).verdict, Verdict::Identical);
    assert_eq!(compare(&credits, &plain).verdict, Verdict::NotComparable);
    let specs = [false, true].map(|on| serde_json::json!({ "real": { "buffered": on } }));
    let asked = AskedKeys::between(&specs[0], &specs[1]);
    let faster = |doubt: &RunResult| RunResult {
        warnings: doubt.warnings.clone(),
        ..run(9_000.0, 0.02, 100.0)
    };
    let cached = faster(&spending(WarningKind::Memory));
    assert_eq!(compare_asked(&plain, &cached, &asked).verdict, Verdict::Better);
    assert_eq!(compare(&plain, &cached).verdict, Verdict::NotComparable);
    // The page cache does not explain other doubts.
    let other = faster(&credits);
    assert_eq!(compare_asked(&plain, &other, &asked).verdict, Verdict::NotComparable);
}

/// Percentiles that are known exactly: a difference of 0.3 % is one, without the width of a bin.
#[test]
fn exact_percentiles_are_compared_exactly() {
    let at = |p50: f64| {
        let mut run = run(1_000.0, 0.02, p50);
        let exact = Interval { estimate: p50, low: p50, high: p50, level: ssdyno_figures::LEVEL };
        run.latency_ns.as_mut().unwrap().all.p50 = p50;
        run.confidence.as_mut().unwrap().latency_ns.all.p50 = Some(exact);
        run
    };
    let compared = compare(&at(1_000.0), &at(1_003.0));
    let p50 = find(&compared, "latency_ns.p50");
    assert_eq!(p50.verdict, Verdict::Worse, "{p50:?}");
    assert_eq!(p50.text, "1.0030x ± 0.0000 slower");
    assert_eq!(find(&compare(&at(1_000.0), &at(1_000.0)), "latency_ns.p50").text, "equal");
}

#[test]
fn runs_that_are_too_short_are_told_what_they_lack() {
    let with = |requests, iops, mean| {
        let interval = |has: bool| has.then(Interval::default);
        let mut result = run(1_000.0, 0.02, 5_000.0);
        result.requests = requests;
        let confidence = result.confidence.as_mut().unwrap();
        confidence.iops = interval(iops);
        confidence.latency_ns.all.mean = interval(mean);
        result
    };
    let long = with(10_000, true, true);
    assert!(compare(&long, &long).notes.is_empty());
    let notes = |run: &RunResult| compare(&long, run).notes.join("");
    let short = "the second run is too short for an interval of ";
    for (run, why) in [
        (with(100, false, false), "IOPS and latency (100 requests, at least 256 are needed)"),
        (with(200, true, false), "latency (200 requests, at least 256 are needed)"),
        (with(1, false, false), "IOPS and latency (1 request, at least 256 are needed)"),
        (with(300, false, true), "IOPS (300 requests, too few for each of the jobs that"),
    ] {
        let told = notes(&run);
        assert!(told.starts_with(&format!("{short}{why}")), "{told}");
        assert!(told.contains("`requests=10000`") && told.contains("`until=1%`"), "{told}");
    }
    let first = compare(&with(100, false, false), &long).notes.join("");
    assert!(first.starts_with("the first run is too short"), "{first}");
    assert_eq!(notes(&with(0, false, false)), "");
}

#[test]
fn methods_that_differ_are_named() {
    let with = |wait: &str| {
        let method = ssdyno_figures::MethodResult { wait: wait.to_owned(), ..Default::default() };
        RunResult { method: Some(method), ..run(1_000.0, 0.02, 5_000.0) }
    };
    let told = compare(&with("sleep"), &with("spin")).notes.join("");
    assert!(told.contains("the methods differ: wait sleep and spin"), "{told}");
    for other in [with("sleep"), run(1_000.0, 0.02, 5_000.0)] {
        let told = compare(&with("sleep"), &other).notes.join("");
        assert!(!told.contains("methods"), "{told}");
    }
}

/// A device that died early, and one that refuses half of its requests, are not compared.
#[test]
fn failed_runs_are_not_comparable() {
    let sound = run(1_000.0, 0.02, 5_000.0);
    let failed = |errors, partial| {
        let bad = RunResult { requests: 100, errors, partial, ..run(500.0, 0.02, 5_000.0) };
        compare(&sound, &bad)
    };
    let dead = failed(1, true);
    assert_eq!(dead.verdict, Verdict::NotComparable);
    assert!(dead.not_comparable[0].starts_with("the second run ended early"), "{dead:?}");
    let half = failed(100, false);
    assert_eq!(half.not_comparable, ["50 % of the requests of the second run ended in an error"]);
    // One of a hundred is told, and judged.
    let few = failed(1, false);
    assert_eq!((few.verdict, few.not_comparable.len()), (Verdict::Worse, 0));
    assert!(few.notes[0].starts_with("1 request of the second run ended in an error"));
}

/// A run that a buffer carried does not win; it may lose.
#[test]
fn a_run_that_looks_better_than_it_is_does_not_win() {
    let sound = run(1_000.0, 0.02, 5_000.0);
    let mut flattered = run(5_000.0, 0.02, 1_000.0);
    flattered.warnings.push(Warning::new(WarningKind::NotExhausted, "the buffer never filled"));
    for (compared, which) in
        [(compare(&sound, &flattered), "second"), (compare(&flattered, &sound), "first")]
    {
        assert_eq!(compared.verdict, Verdict::NotComparable);
        let why = format!("the {which} run may look better than it is (the buffer never filled)");
        assert_eq!(compared.not_comparable, [why]);
    }
    flattered.iops = 500.0;
    let slow = RunResult { warnings: flattered.warnings.clone(), ..run(500.0, 0.02, 9_000.0) };
    assert_eq!(compare(&sound, &slow).verdict, Verdict::Worse);
    // The same holds for both: they are alike.
    assert_eq!(compare(&slow, &flattered).not_comparable, [""; 0]);
}

#[test]
fn overloaded_runs_are_not_comparable() {
    let plain = run(1_000.0, 0.02, 5_000.0);
    let mut slower = run(500.0, 0.02, 50_000.0);
    slower.warnings.push(Warning::new(WarningKind::Overloaded, "overloaded 2.0x"));
    let reasons = |first: &RunResult, second: &RunResult| {
        let compared = compare(first, second);
        assert_eq!(compared.verdict, Verdict::NotComparable);
        compared.not_comparable
    };
    let why = |which| format!("{which} latencies depend on the length of the run");
    assert_eq!(reasons(&plain, &slower), [why("the second run is overloaded: its")]);
    assert_eq!(reasons(&slower, &plain), [why("the first run is overloaded: its")]);
    slower.warnings.push(Warning::new(WarningKind::WarmUp, "a warm-up"));
    let mut other = run(600.0, 0.02, 40_000.0);
    other.warnings.push(Warning::new(WarningKind::Overloaded, "overloaded 1.7x"));
    assert_eq!(reasons(&slower, &other), [why("both runs are overloaded: their")]);
}

#[test]
fn nothing_is_divided_by_nothing() {
    let mut empty = run(1_000.0, 0.02, 5_000.0);
    empty.iops = 0.0;
    empty.latency_ns = None;
    empty.partial = true;
    empty.workload = "seqread".into();
    empty.energy_joules = Some(Energy::default());
    let c = compare(&run(1_000.0, 0.02, 5_000.0), &empty);
    assert!(c.figures.is_empty(), "{:?}", c.figures);
    assert_eq!(c.notes, ["the second run is partial"]);
    assert_eq!(c.not_comparable, ["the loads differ (randread and seqread)"]);
    assert_eq!(c.verdict, Verdict::NotComparable);
}

/// A page cache writes back after seconds of sleep: most of that energy is none of the window's.
#[test]
fn energy_beyond_the_window_is_noted() {
    let uses_energy = |seconds| RunResult {
        requests: 1,
        simulated_seconds: 10.0,
        energy_joules: Some(Energy { total: 2.0, per_request: Some(2.0), ..Energy::default() }),
        energy_seconds: Some(seconds),
        ..run(1_000.0, 0.02, 5_000.0)
    };
    let told = |first: &RunResult, second: &RunResult| -> Vec<String> {
        let notes = compare(first, second).notes.into_iter();
        notes.filter(|note| note.contains("energy")).collect()
    };
    let (plain, cached) = (uses_energy(10.0), uses_energy(40.0));
    let why = "covers 40.00 s: all work was finished 30.00 s after the last completion";
    assert_eq!(told(&plain, &cached), [format!("the energy of the second run {why}")]);
    assert_eq!(told(&plain, &plain), [""; 0]);
    // Without an energy model on one side no energies are compared.
    let real = RunResult { energy_joules: None, energy_seconds: None, ..plain };
    assert_eq!(told(&real, &cached), [""; 0]);
}
