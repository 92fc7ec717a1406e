//! Loads that ran several times: the figures over the runs, and two of them side by side.

use ssdyno_block::counted;
use ssdyno_figures::{
    Comparison, FigureComparison, FigureSpread, Interval, RepeatedRuns, RunResult, Verdict,
};
use ssdyno_record::{mean_interval, mean_interval_at};

use crate::changes::{AskedKeys, flaws};
use crate::compare::{RATIO_LEVEL, compare_asked, concluded, judged, warnings, with_lower_bounds};
use crate::headline::{FigureKind, HEADLINES, HeadlineFigure, headline_figures};
use crate::unfair::{Unfair, unfair};

/// The figures that all of `runs` have, over the runs: the mean of the figures of the runs with a 95 % interval of
/// Student's t, since the runs are independent of each other, and how far they spread.
pub fn spread(runs: &[RunResult]) -> Vec<FigureSpread> {
    let over = |name: &str| {
        let values = values(runs, name)?;
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let varies = values.len() > 1 && mean != 0.0;
        let is_lower_bound = any_lower_bound(runs, name);
        // The spread between lower bounds says nothing of how far the true figures lie above them.
        let high = |high: f64| if is_lower_bound { f64::INFINITY } else { high };
        Some(FigureSpread {
            figure: name.to_owned(),
            mean,
            is_lower_bound,
            // No figure is below zero, however wide its interval is.
            interval: mean_interval(&values).map(|all| Interval {
                low: all.low.max(0.0),
                high: high(all.high),
                ..all
            }),
            min: values.iter().copied().fold(f64::INFINITY, f64::min),
            max: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            coefficient_of_variation: varies.then(|| (squares / (count - 1.0)).sqrt() / mean.abs()),
        })
    };
    HEADLINES.iter().filter_map(|(name, _)| over(name)).collect()
}

/// The figures of `side` as those of one run: means, with the intervals between runs.
pub fn repeated_figures(side: &RepeatedRuns) -> Vec<HeadlineFigure> {
    let of = |&(name, kind): &(&'static str, FigureKind)| {
        let FigureSpread { mean, interval, is_lower_bound, .. } =
            *side.figures.iter().find(|f| f.figure == name)?;
        Some(HeadlineFigure { name, kind, value: mean, interval, is_lower_bound })
    };
    HEADLINES.iter().filter_map(of).collect()
}

/// The figure `name` of `run`.
fn figure(run: &RunResult, name: &str) -> Option<HeadlineFigure> {
    headline_figures(run).into_iter().find(|figure| figure.name == name)
}

/// The figure `name` of each run; `None` where a run has none.
fn values(runs: &[RunResult], name: &str) -> Option<Vec<f64>> {
    let values: Vec<f64> =
        runs.iter().map(|run| Some(figure(run, name)?.value)).collect::<Option<_>>()?;
    (!values.is_empty() && values.iter().all(|value| value.is_finite())).then_some(values)
}

/// Whether the figure `name` of any of `runs` is a lower bound.
fn any_lower_bound(runs: &[RunResult], name: &str) -> bool {
    runs.iter().filter_map(|run| figure(run, name)).any(|figure| figure.is_lower_bound)
}

/// Compares `second` with `first`, which ran as often, run by run: run *i* of both has the same seed, or the same round.
///
/// The ratio of a figure is the geometric mean of the ratios of the pairs. Its 95 % interval is that of Student's t of the mean
/// of their logarithms: what moves both runs of a pair alike, such as the addresses that a seed draws or a machine that grows
/// warm, cancels out. The figures beside it are means over the runs.
///
/// A single pair has no spread: it is compared as two runs are. The user asked the sides to differ in `asked`.
pub fn compare_runs(
    first: &[RunResult],
    second: &[RunResult],
    asked: &AskedKeys,
) -> Option<Comparison> {
    let (one, other) = (first.first()?, second.first()?);
    if first.len().min(second.len()) < 2 {
        return Some(compare_asked(one, other, asked));
    }
    let figures: Vec<FigureComparison> =
        HEADLINES.iter().filter_map(|figure| paired(*figure, first, second)).collect();
    let mut all = concluded((one, other), asked, figures, Vec::new());
    all.warnings.clear();
    let mut notes: Vec<(Unfair, u64)> = Vec::new();
    for (round, (one, other)) in (1..).zip(first.iter().zip(second)) {
        // One round that failed, or in which a side looks better than it is, moves the mean of its side.
        let flaws = flaws(one, other, Some(all.verdict), asked);
        if all.not_comparable.is_empty() && !flaws.is_empty() {
            let of_round = |why: String| format!("{why} (round {round})");
            all.not_comparable = flaws.into_iter().map(of_round).collect();
            all.verdict = Verdict::NotComparable;
        }
        let names = ["first", "second"].map(|side| format!("run {round} of the {side} target"));
        let names = names.each_ref().map(String::as_str);
        // Each run has its own numbers in what it warns of: one of a kind is enough.
        for warning in warnings([one, other], names) {
            if !all.warnings.iter().any(|known| known.kind == warning.kind) {
                all.warnings.push(warning);
            }
        }
        for unfair in unfair(one, other, names) {
            match notes.iter_mut().find(|(known, _)| known.key == unfair.key) {
                Some((_, more)) => *more += 1,
                None => notes.push((unfair, 0)),
            }
        }
    }
    all.notes.extend(notes.into_iter().map(|(unfair, more)| match more {
        0 => unfair.text,
        more => format!("{} ({} as well)", unfair.text, counted(more, "other run", "other runs")),
    }));
    Some(all)
}

fn paired(
    (name, kind): (&str, FigureKind),
    first: &[RunResult],
    second: &[RunResult],
) -> Option<FigureComparison> {
    let (one, other) = (values(first, name)?, values(second, name)?);
    let logarithm = |(first, second): (&f64, &f64)| {
        let ratio = if kind.more_is_better() { second / first } else { first / second };
        (ratio.is_finite() && ratio > 0.0).then(|| ratio.ln())
    };
    let logarithms: Vec<f64> = one.iter().zip(&other).map(logarithm).collect::<Option<_>>()?;
    // As between two runs: with ten figures at 95 %, every third pair of equal sides would have a verdict on one of them.
    let interval = mean_interval_at(&logarithms, RATIO_LEVEL)?;
    // A percentile of a histogram is the middle of a bin: equal ones may differ by the width of it.
    let is_percentile = name.starts_with("latency_ns.p");
    let bins = first.iter().chain(second).filter_map(|run| run.percentile_error_max);
    let least = if is_percentile { bins.fold(0.0, f64::max) } else { 0.0 };
    let half = ((interval.high - interval.low) / 2.0).max(least);
    // The ratio of a figure that can be a lower bound is the first value by the second.
    let open = [first, second].map(|runs| any_lower_bound(runs, name));
    let low = if open[1] { 0.0 } else { (interval.estimate - half).exp() };
    let high = if open[0] { f64::INFINITY } else { (interval.estimate + half).exp() };
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let means = (mean(&one), mean(&other));
    let bounds = Some(((low, high), interval.level));
    Some(with_lower_bounds(judged((name, kind), means, interval.estimate.exp(), bounds), open))
}

#[cfg(test)]
mod tests {
    use ssdyno_figures::{Latency, LatencyAtMost, LatencyByOp, Verdict};

    use super::*;

    /// The median is exact, and the mean is a lower bound: requests never completed.
    fn unanswered(mean: f64) -> RunResult {
        let most = LatencyAtMost { p50: Some(5.0), ..LatencyAtMost::default() };
        let all = Latency { mean, p50: 5.0, p99: 10.0, at_most: Some(most), ..Latency::default() };
        let latency_ns = Some(LatencyByOp { all, ..LatencyByOp::default() });
        RunResult { iops: 1.0, requests: 1, unanswered: 2, latency_ns, ..RunResult::default() }
    }

    #[test]
    fn lower_bounds_of_runs_stay_lower_bounds() {
        let runs = [7.0, 7.1].map(unanswered).to_vec();
        let figures = spread(&runs);
        let of = |name: &str| figures.iter().find(|figure| figure.figure == name).unwrap();
        let mean = of("latency_ns.mean");
        assert!(mean.is_lower_bound && mean.interval.unwrap().upper().is_none(), "{mean:?}");
        assert!(!of("latency_ns.p50").is_lower_bound && !of("iops").is_lower_bound);
        let side =
            RepeatedRuns { name: "a".into(), asked: 2, runs: runs.clone(), figures: spread(&runs) };
        let text = crate::repeated_text(&side);
        assert!(text.contains("≥ 7.") && text.contains("at least"), "{text}");
        assert!(text.contains("warning: 4 requests in 2 runs never completed"), "{text}");
        // Whatever both bounds are, the true figures can be anything above them.
        let other = [14.0, 14.2].map(unanswered).to_vec();
        let all = compare_runs(&runs, &other, &AskedKeys::default()).unwrap();
        let of = |name: &str| all.figures.iter().find(|figure| figure.figure == name).unwrap();
        let mean = of("latency_ns.mean");
        assert_eq!((mean.verdict, mean.interval), (Verdict::CannotTell, None));
        assert_eq!(mean.text, "cannot tell (both are lower bounds)");
        assert!(crate::comparison_text(&all).contains("≥ 14"), "{all:?}");
    }

    fn runs(iops: &[f64]) -> Vec<RunResult> {
        iops.iter().map(|iops| RunResult { iops: *iops, ..RunResult::default() }).collect()
    }

    fn compare(first: &[f64], second: &[f64]) -> Option<Comparison> {
        compare_runs(&runs(first), &runs(second), &AskedKeys::default())
    }

    /// One round in which a side fails spoils the comparison, and the reason names the round.
    #[test]
    fn a_round_that_failed_is_named() {
        let first = runs(&[10.0, 10.1, 10.2]);
        let mut second = runs(&[20.0, 20.1, 20.2]);
        let whole = compare_runs(&first, &second, &AskedKeys::default()).unwrap();
        assert_eq!(whole.verdict, Verdict::Better);
        (second[1].errors, second[1].partial) = (1, true);
        let failed = compare_runs(&first, &second, &AskedKeys::default()).unwrap();
        assert_eq!(failed.verdict, Verdict::NotComparable);
        assert!(
            failed.not_comparable[0].ends_with("with 1 failed request (round 2)"),
            "{failed:?}"
        );
        let told = failed.notes.join("\n");
        assert!(told.contains("run 2 of the second target is partial"), "{told}");
        // The same note of more runs comes once.
        second[2].partial = true;
        let failed = compare_runs(&first, &second, &AskedKeys::default()).unwrap().notes.join("\n");
        assert!(failed.contains("is partial (1 other run as well)"), "{failed}");
    }

    /// 1, 2, 3, 4, 5: mean 3, standard deviation 1.5811, t(0.975, 4) = 2.776445 (tables), half 1.963243.
    #[test]
    fn the_interval_is_that_of_students_t() {
        let iops = &spread(&runs(&[2.0, 1.0, 4.0, 3.0, 5.0]))[0];
        assert_eq!((iops.figure.as_str(), iops.mean, iops.min, iops.max), ("iops", 3.0, 1.0, 5.0));
        let interval = iops.interval.unwrap();
        assert!((interval.high - 4.963_243).abs() < 1e-5, "{interval:?}");
        assert!((interval.low - 1.036_757).abs() < 1e-5, "{interval:?}");
        assert!((iops.coefficient_of_variation.unwrap() - 0.527_046).abs() < 1e-6);
        let once = &spread(&runs(&[7.0]))[0];
        assert_eq!((once.mean, once.interval, once.coefficient_of_variation), (7.0, None, None));
    }

    /// Logarithms of the ratios 0.1, 0.2 and 0.3: mean 0.2, standard deviation 0.1, t(0.995, 2) = 9.924843,
    /// half 0.573011.
    #[test]
    fn ratios_are_paired() {
        let first = [100.0, 1_000.0, 10_000.0];
        let second: Vec<f64> =
            first.iter().zip([0.1, 0.2, 0.3]).map(|(v, log): (&f64, f64)| v * log.exp()).collect();
        let compared = compare(&first, &second).unwrap();
        let iops = &compared.figures[0];
        let interval = iops.interval.unwrap();
        assert!((iops.ratio - 0.2_f64.exp()).abs() < 1e-9, "{iops:?}");
        assert!((interval.low.ln() - (0.2 - 0.573_011)).abs() < 1e-5, "{interval:?}");
        assert!((interval.high.ln() - (0.2 + 0.573_011)).abs() < 1e-5, "{interval:?}");
        assert_eq!((iops.first, interval.level), (3_700.0, 0.99));
        assert_eq!(iops.verdict, Verdict::CannotTell);
        // The runs differ a hundred times more than the sides: only pairs tell it.
        let second: Vec<f64> = first.iter().zip([1.09, 1.1, 1.11]).map(|(v, by)| v * by).collect();
        let compared = compare(&first, &second).unwrap();
        assert_eq!(compared.verdict, Verdict::Better);
        let same = compare(&first, &first).unwrap();
        assert_eq!(same.verdict, Verdict::Identical);
        assert!(compare(&[], &first).is_none());
    }
}
