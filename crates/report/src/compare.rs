//! Two results side by side.

use ssdyno_block::counted;
use ssdyno_figures::{
    Comparison, FigureComparison, Interval, RunResult, Verdict, Warning, significant,
};
use ssdyno_record::{COMPLETIONS_LEAST_FOR_LATENCIES, COMPLETIONS_LEAST_FOR_RATES};

use crate::changes::{AskedKeys, changes, flaws, obstacles};
use crate::headline::{FigureKind, headline_figures};
use crate::lines::parts::compared_parts;
use crate::provenance::provenance_changes;
use crate::unfair::unfair;

/// What more and less of a figure is called, where more of its goodness comes first.
fn words_of(kind: FigureKind) -> (&'static str, &'static str) {
    match kind {
        FigureKind::Rate | FigureKind::Latency => ("faster", "slower"),
        FigureKind::Cost => ("less", "more"),
    }
}

/// Compares `second` with `first`, figure by figure.
///
/// The interval of a ratio follows from those of its figures on the logarithmic scale, side by
/// side, the runs being independent (Zou and Donner 2008, *MOVER*), at a level of 99 %: so of two
/// runs of the same thing with different seeds *all* figures together get the verdict *cannot
/// tell* more than nine times of ten. The verdict is that where the interval holds 1.
pub fn compare(first: &RunResult, second: &RunResult) -> Comparison {
    compare_asked(first, second, &AskedKeys::default())
}

/// As [`compare`], of runs that the user asked to differ in `asked`: a load that differs in nothing else is judged.
pub fn compare_asked(first: &RunResult, second: &RunResult, asked: &AskedKeys) -> Comparison {
    let others = headline_figures(second);
    let figures: Vec<FigureComparison> = headline_figures(first)
        .iter()
        .filter_map(|one| {
            let other = others.iter().find(|other| other.name == one.name)?;
            let open = [one.is_lower_bound, other.is_lower_bound];
            let (first, second) = ((one.value, one.interval), (other.value, other.interval));
            Some(with_lower_bounds(figure(one.name, one.kind, first, second)?, open))
        })
        .collect();
    concluded((first, second), asked, figures, notes(first, second))
}

/// What `figures` of two runs, or of the runs that these stand for, let one say.
pub(crate) fn concluded(
    (first, second): (&RunResult, &RunResult),
    asked: &AskedKeys,
    figures: Vec<FigureComparison>,
    mut notes: Vec<String>,
) -> Comparison {
    let names = (title(first), title(second));
    let verdict = ["iops", "latency_ns.mean"].into_iter().find_map(|name| {
        let figure = figures.iter().find(|figure| figure.figure == name)?;
        (figure.verdict != Verdict::CannotTell).then_some(figure.verdict)
    });
    let warnings = warnings([first, second], RUNS);
    let changed = changes(first, second, asked);
    let changed_provenance = provenance_changes(first, second);
    let obstacles = obstacles(first, second, &changed, asked);
    let mut not_comparable = obstacles.why;
    not_comparable.extend(flaws(first, second, verdict, asked));
    if obstacles.can_be_asked_for {
        notes.push(ON_PURPOSE.to_owned());
    }
    let same = |figure: &FigureComparison| figure.first.to_bits() == figure.second.to_bits();
    let is_same = !figures.is_empty()
        && figures.iter().all(same)
        && (first.requests, first.errors) == (second.requests, second.errors);
    let verdict = match verdict {
        // A run beside itself is identical whatever its flaws are. Equal figures with other warnings are not.
        _ if is_same && (not_comparable.is_empty() || first.warnings == second.warnings) => {
            Verdict::Identical
        }
        _ if !not_comparable.is_empty() => Verdict::NotComparable,
        verdict => verdict.unwrap_or(Verdict::CannotTell),
    };
    let mut figures = figures;
    if verdict == Verdict::Identical {
        // The intervals would say `cannot tell` of what is the same to the last digit.
        figures.iter_mut().for_each(|figure| "equal".clone_into(&mut figure.text));
    }
    let latency_parts = compared_parts(first, second);
    let (first, second) = names;
    Comparison {
        first,
        second,
        verdict,
        changed,
        changed_provenance,
        not_comparable,
        warnings,
        latency_parts,
        figures,
        notes,
    }
}

/// How two runs that differ are compared all the same.
const ON_PURPOSE: &str = "to compare such runs on purpose, let `ssdyno compare` run both targets, and name the \
    difference with `--a` and `--b`";

/// What two runs are called that are not repeated.
const RUNS: [&str; 2] = ["the first run", "the second run"];

/// Those of both runs; what both say is said once.
pub(crate) fn warnings([first, second]: [&RunResult; 2], names: [&str; 2]) -> Vec<Warning> {
    let both = |warning: &&Warning| second.warnings.contains(warning);
    let shared = first.warnings.iter().filter(both).map(|one| one.clone().of("both runs"));
    let [first, second] =
        [(names[0], first, second), (names[1], second, first)].map(|(which, run, other)| {
            let alone = run.warnings.iter().filter(|one| !other.warnings.contains(one));
            alone.map(|one| one.clone().of(which)).collect::<Vec<_>>()
        });
    shared.chain(first).chain(second).collect()
}

/// A figure and its interval.
type Measured = (f64, Option<Interval>);

fn title(result: &RunResult) -> String {
    format!("{} {}", result.target, result.workload)
}

fn notes(first: &RunResult, second: &RunResult) -> Vec<String> {
    let mut notes: Vec<String> =
        unfair(first, second, RUNS).into_iter().map(|unfair| unfair.text).collect();
    notes.extend(too_short("first", first));
    notes.extend(too_short("second", second));
    notes
}

/// Why a run has no interval of its rate or of its latency, and what to type.
fn too_short(which: &str, result: &RunResult) -> Option<String> {
    let confidence = result.confidence.as_ref();
    let rate = confidence.is_some_and(|c| c.iops.is_some());
    let latency = confidence.is_some_and(|c| c.latency_ns.all.mean.is_some());
    let (of, least) = match (rate, latency) {
        _ if result.requests == 0 => return None,
        (true, true) => return None,
        (true, false) => ("latency", COMPLETIONS_LEAST_FOR_LATENCIES),
        (false, true) => ("IOPS", COMPLETIONS_LEAST_FOR_RATES),
        (false, false) => ("IOPS and latency", COMPLETIONS_LEAST_FOR_LATENCIES),
    };
    let has = counted(result.requests, "request", "requests");
    let has = match result.requests < least {
        true => format!("{has}, at least {least} are needed"),
        // Each job is cut into batches by itself.
        false => format!("{has}, too few for each of the jobs that issued them"),
    };
    Some(format!(
        "the {which} run is too short for an interval of {of} ({has}): give it `requests=10000` or \
         more, or set the precision with `until=1%`"
    ))
}

fn figure(
    name: &str,
    kind: FigureKind,
    first: Measured,
    second: Measured,
) -> Option<FigureComparison> {
    let ratio = match kind {
        FigureKind::Rate => second.0 / first.0,
        FigureKind::Latency | FigureKind::Cost => first.0 / second.0,
    };
    if !(ratio.is_finite() && ratio > 0.0) {
        return None;
    }
    let (above, below) = match kind {
        FigureKind::Rate => (second, first),
        FigureKind::Latency | FigureKind::Cost => (first, second),
    };
    let bounds = ratio_bounds(ratio, above, below);
    Some(judged(
        (name, kind),
        (first.0, second.0),
        ratio,
        bounds.map(|bounds| (bounds, RATIO_LEVEL)),
    ))
}

/// A figure of two sides, the second `ratio` times better, with bounds of the ratio and their level where there are some.
pub(crate) fn judged(
    (name, kind): (&str, FigureKind),
    (first, second): (f64, f64),
    ratio: f64,
    bounds: Option<((f64, f64), f64)>,
) -> FigureComparison {
    let level = bounds.map_or(RATIO_LEVEL, |(_, level)| level);
    let bounds = bounds.map(|(bounds, _)| bounds);
    let verdict = match bounds {
        Some((low, _)) if low > 1.0 => Verdict::Better,
        Some((_, high)) if high < 1.0 => Verdict::Worse,
        _ => Verdict::CannotTell,
    };
    let text = words(kind, ratio, bounds, verdict);
    let bounds = bounds.filter(|bounds| *bounds != UNKNOWN);
    let interval = bounds.map(|(low, high)| Interval { estimate: ratio, low, high, level });
    FigureComparison {
        figure: name.into(),
        first,
        second,
        first_is_lower_bound: false,
        second_is_lower_bound: false,
        ratio,
        interval,
        verdict,
        text,
    }
}

/// `figure` with what is known of its values: whether the first and the second are lower bounds.
pub(crate) fn with_lower_bounds(
    mut figure: FigureComparison,
    [first, second]: [bool; 2],
) -> FigureComparison {
    (figure.first_is_lower_bound, figure.second_is_lower_bound) = (first, second);
    if first && second {
        "cannot tell (both are lower bounds)".clone_into(&mut figure.text);
        (figure.verdict, figure.interval) = (Verdict::CannotTell, None);
    }
    figure
}

/// Probability with which the interval of a ratio covers the true one.
pub(crate) const RATIO_LEVEL: f64 = 0.99;

/// Bounds of a ratio that say nothing.
const UNKNOWN: (f64, f64) = (0.0, f64::INFINITY);

/// How much wider than an interval at 95 % one at 99 % is: Student's t with 15 degrees of freedom,
/// about the fewest that our intervals are made with.
const WIDER: f64 = 2.947 / 2.131;

/// Bounds of `above / below`; `None` where one of them has none. Where one reaches down to 0, or has
/// no upper bound, the ratio is bounded on one side alone: it is 0 below, or infinite above.
///
/// The interval of a percentile from a histogram reaches to the ends of its bins, so the error of the bin is in it.
fn ratio_bounds(ratio: f64, above: Measured, below: Measured) -> Option<(f64, f64)> {
    // Distances to the bounds as logarithms: down and up.
    let sides = |(value, interval): Measured| {
        let Interval { low, high, .. } = interval?;
        Some((WIDER * (value / low).ln(), WIDER * (high / value).ln()))
    };
    let ((above_down, above_up), (below_down, below_up)) = (sides(above)?, sides(below)?);
    let low = ratio * (-above_down.hypot(below_up)).exp();
    let high = ratio * above_up.hypot(below_down).exp();
    Some((low, high))
}

/// Half widths above this share of the factor are shown as an interval.
const WIDE: f64 = 0.15;

/// A bound at more than so many times the factor is more than 100 % off, and is not told.
const VAGUE: f64 = 2.0;

fn words(kind: FigureKind, ratio: f64, bounds: Option<(f64, f64)>, verdict: Verdict) -> String {
    let (better, worse) = words_of(kind);
    let (factor, word) = if ratio >= 1.0 { (ratio, better) } else { (1.0 / ratio, worse) };
    if let (Verdict::CannotTell, Some((low, high))) = (verdict, bounds) {
        return undecided((low, high), (better, worse));
    }
    let Some((low, high)) = bounds else {
        let why = match kind {
            FigureKind::Rate | FigureKind::Latency => ": cannot tell (too few requests)",
            FigureKind::Cost => " (no interval)",
        };
        return format!("{}x {word}{why}", significant(factor, 3));
    };
    // Of the factor as it is shown, whichever way round.
    let half = factor * (high / low).ln() / 2.0;
    let shown = if half < WIDE * factor {
        let decimals = decimals_for(half);
        format!("{factor:.decimals$}x ± {half:.decimals$}")
    } else {
        // The interval is symmetric in the logarithm; so wide, "±" would say something else.
        let (low, high) = match ratio >= 1.0 {
            true => (low, high),
            false => (1.0 / high, 1.0 / low),
        };
        let is_known = high <= VAGUE * factor;
        let [factor, low] = [factor, low].map(|x| significant(x, 3));
        match is_known {
            true => format!("{factor}x ({low} to {})", significant(high, 3)),
            false => format!("{factor}x (at least {low})"),
        }
    };
    format!("{shown} {word}")
}

/// A ratio whose bounds hold 1, as both ends: which side of 1 the ratio itself lies on is chance, so neither word is
/// the answer.
fn undecided((low, high): (f64, f64), (better, worse): (&str, &str)) -> String {
    if (low, high) == (1.0, 1.0) {
        return "equal".to_owned();
    }
    if 1.0 / low > VAGUE || high > VAGUE {
        return "cannot tell (interval wider than ± 100 %)".to_owned();
    }
    let percent = |share: f64| significant(100.0 * share, 2);
    let ends = [(1.0 / low - 1.0, worse), (high - 1.0, better)];
    let ends = ends.map(|(share, word)| match share {
        // Less than a millionth is rounding.
        share if share < 1e-6 => format!("0 % {word}"),
        share => format!("{} % {word}", percent(share)),
    });
    format!("cannot tell: {} to {}", ends[0], ends[1])
}

/// Decimals that show one or two digits of the uncertainty: two to four.
fn decimals_for(half: f64) -> usize {
    match half {
        h if h >= 10.0 => 0,
        h if h >= 1.0 => 1,
        h if h >= 0.01 => 2,
        h if h >= 0.001 => 3,
        _ => 4,
    }
}

#[cfg(test)]
mod tests;
