//! From a capacity profile to its result, text and page.

use std::fmt::Write;

use ssdyno_figures::{bytes_per_second, nanoseconds, rate, seconds, significant};
use ssdyno_report::{Page, html_table};

use super::linear::predicted;
use super::load::{CapacityTest, Figure};
use super::plausible::{CPU_BUSY, implausible, media, warnings};
use super::result::{CapacityFigure, CapacityResult, CheckedLoad, DiskFacts, MediaKind, RateBurst};
use super::run::{CapacityRun, ROUNDS_MIN};
use super::state::TestState;
use crate::credits::credits_text;
use crate::estimate::LEVEL;
use crate::result::ProfileResult;
use crate::stopped::StoppedBecause;

/// All findings so far.
pub(crate) fn result_of(run: &CapacityRun<'_>, stopped_because: StoppedBecause) -> ProfileResult {
    let sizes = &run.sizes;
    let mut capacity = CapacityResult {
        error: run.error,
        small_bytes: sizes.small,
        large_bytes: sizes.large,
        figures: run.states.iter().filter_map(|state| figure(run, state)).collect(),
        checks: Vec::new(),
        moderate: run.latencies(),
        disk: disk(run),
        cpu_limit: run.cpu.clone().filter(|cpu| cpu.share > CPU_BUSY),
        implausible: Vec::new(),
        warnings: Vec::new(),
    };
    let checks = run.states.iter().filter_map(|state| check(run, state, &capacity));
    capacity.checks = checks.collect();
    capacity.implausible = implausible(&capacity);
    capacity.warnings = credits(&run.states);
    capacity.warnings.extend(warnings(&capacity));
    if run.loads.is_real && run.loads.filled < sizes.span {
        capacity.warnings.push(format!(
            "{} of the span of {} bytes were written here before the reads: reads of parts that \
             were never written do not access the medium",
            run.loads.filled, sizes.span
        ));
    }
    let mut result = run.loads.result(stopped_because);
    let more = capacity.figures.iter().filter(|one| one.rounds as usize > ROUNDS_MIN).count();
    if stopped_because == StoppedBecause::WithinError && more > 0 {
        result.notes.push(format!(
            "{more} figures took more than {ROUNDS_MIN} rounds and stopped at the first interval within `error`: such \
             intervals cover the mean in about 86 % of cases, not in {:.0} %",
            LEVEL * 100.0
        ));
    }
    ProfileResult {
        depth: run.states.iter().map(|state| state.depth).max().unwrap_or(1),
        sizes_bytes: vec![sizes.small, sizes.middle, sizes.large],
        capacity: Some(capacity),
        solution: run.loads.plan.solution.clone(),
        ..result
    }
}

/// The warning of figures whose last load used burst credits: a scheduler would be configured for a rate that ends.
fn credits(states: &[TestState]) -> Vec<String> {
    let of_figure = |state: &TestState| Some((state.test.figure()?.key(), state.credits.clone()?));
    let (keys, told): (Vec<_>, Vec<_>) = states.iter().filter_map(of_figure).unzip();
    let what = format!("the volume does not sustain {}", keys.join(", "));
    let text = |one| credits_text(one, &what);
    told.first().map(text).into_iter().collect()
}

fn figure(run: &CapacityRun<'_>, state: &TestState) -> Option<CapacityFigure> {
    let figure = state.test.figure()?;
    let estimate = state.estimate()?;
    let size = state.test.size(&run.sizes);
    let factor = if figure.is_bandwidth() { size as f64 } else { 1.0 };
    let half = estimate.half_width;
    Some(CapacityFigure {
        figure,
        estimate: estimate.mean * factor,
        low: half.map(|half| (estimate.mean - half).max(0.0) * factor),
        high: half.map(|half| (estimate.mean + half) * factor),
        rounds: state.sustained().len() as u32,
        depth: state.depth,
        depths: state.depths.clone(),
        drift: state.drift(),
        burst: state.burst(size).map(|burst| RateBurst {
            rate: burst.rate * factor,
            sustained: burst.sustained * factor,
            ..burst
        }),
        longest_seconds: state.longest,
    })
}

fn check(
    run: &CapacityRun<'_>,
    state: &TestState,
    capacity: &CapacityResult,
) -> Option<CheckedLoad> {
    if state.test.figure().is_some() {
        return None;
    }
    let measured = state.estimate()?;
    let (size_bytes, read_share) = (state.test.size(&run.sizes), state.test.read_share());
    let (iocost_iops, seastar_iops) = predicted(capacity, read_share, size_bytes);
    let error = |predicted: Option<f64>| predicted.map(|iops| iops / measured.mean - 1.0);
    Some(CheckedLoad {
        load: state.test.words(&run.sizes),
        size_bytes,
        read_share,
        depth: state.depth,
        measured_iops: measured.mean,
        low: measured.half_width.map(|half| (measured.mean - half).max(0.0)),
        high: measured.half_width.map(|half| measured.mean + half),
        iocost_iops,
        iocost_error: error(iocost_iops),
        seastar_iops,
        seastar_error: error(seastar_iops),
    })
}

fn disk(run: &CapacityRun<'_>) -> DiskFacts {
    let first = |figure| {
        let state = run.states.iter().find(|s| s.test == CapacityTest::Figure(figure))?;
        // The first depth is 1. There each request waits for the medium, which distinguishes a disk
        // from an SSD; at saturation the queue hides the difference.
        state.depths.first().map(|one| one.iops)
    };
    let rates = first(Figure::Rrandiops).zip(first(Figure::Rseqiops));
    let measured = rates.map(|(random, sequential)| media(random, sequential));
    #[cfg_attr(
        not(target_os = "linux"),
        allow(unused_mut, reason = "the rest is known on Linux only")
    )]
    let mut facts = DiskFacts { media: measured, ..DiskFacts::default() };
    #[cfg(target_os = "linux")]
    if run.loads.is_real
        && let Some(disk) = ssdyno_safety::DiskIdentity::of(run.loads.plan.target.as_ref())
    {
        facts.rotational = disk.rotational;
        facts.number = Some(format!("{}:{}", disk.number.0, disk.number.1));
        facts.name = Some(disk.name);
        facts.model = disk.model;
        facts.firmware = disk.firmware;
        facts.below = disk.below;
    }
    facts
}

/// A figure with its unit.
pub(crate) fn shown(figure: Figure, value: f64) -> String {
    if figure.is_bandwidth() {
        return bytes_per_second(value);
    }
    let text = rate(value);
    let gap = if text.ends_with(char::is_alphabetic) { "" } else { " " };
    format!("{text}{gap}IOPS")
}

/// A share in percent, without zeroes at its end.
pub(crate) fn percent(share: f64) -> f64 {
    (share * 1e5).round() / 1e3
}

/// `± 1.20 %`, or that nothing was repeated.
pub(crate) fn half_width(one: &CapacityFigure) -> String {
    let half = one.relative_half_width();
    half.map_or("no interval".to_owned(), |half| format!("± {:.2} %", half * 100.0))
}

/// A burst that lasted longer than its own tests by this factor contains other tests.
const OTHERS: f64 = 1.5;

/// The burst of a figure in words.
pub(crate) fn burst(one: &CapacityFigure, small_bytes: u64) -> Option<String> {
    let unit = if one.figure.is_bandwidth() { 1.0 } else { small_bytes as f64 };
    one.burst.map(|burst| {
        // A burst that ends between rounds lasts while other tests run. Its bytes divided by its
        // rate give the time of its own tests alone.
        let own = burst.bytes / (burst.rate * unit);
        let others = if burst.seconds > OTHERS * own { " with other tests" } else { "" };
        format!(
            "burst {} for {}{others} ({}B), then {}",
            shown(one.figure, burst.rate),
            seconds(burst.seconds),
            rate(burst.bytes),
            shown(one.figure, burst.sustained),
        )
    })
}

fn figure_rows(capacity: &CapacityResult) -> Vec<Vec<String>> {
    let row = |one: &CapacityFigure| {
        vec![
            one.figure.key().to_owned(),
            shown(one.figure, one.estimate),
            half_width(one),
            one.depth.to_string(),
            one.rounds.to_string(),
            burst(one, capacity.small_bytes).unwrap_or_default(),
        ]
    };
    capacity.figures.iter().map(row).collect()
}

fn check_rows(capacity: &CapacityResult) -> Vec<Vec<String>> {
    let predicted = |iops: Option<f64>, error: Option<f64>| {
        iops.zip(error).map_or("-".to_owned(), |(iops, error)| {
            format!("{} ({:+.1} %)", rate(iops), error * 100.0)
        })
    };
    let row = |one: &CheckedLoad| {
        vec![
            one.load.clone(),
            rate(one.measured_iops),
            predicted(one.iocost_iops, one.iocost_error),
            predicted(one.seastar_iops, one.seastar_error),
        ]
    };
    capacity.checks.iter().map(row).collect()
}

const FIGURES: [&str; 6] = ["figure", "sustained", "90 % interval", "depth", "rounds", "burst"];
const CHECKS: [&str; 4] = ["load that was not fitted", "measured/s", "io.cost.model", "Seastar"];

fn lines(capacity: &CapacityResult) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(media) = capacity.disk.media {
        let word = if media == MediaKind::Hdd { "hard disk" } else { "SSD" };
        lines.push(format!("medium by measurement: {word}"));
    }
    if let Some(moderate) = capacity.moderate {
        let writes = moderate.write_p99_us.map(|us| format!(", writes {}", nanoseconds(us * 1e3)));
        lines.push(format!(
            "p99 latency at {} % of the sustained rate (depth {}): reads {}{}",
            significant(moderate.load * 100.0, 2),
            moderate.depth,
            nanoseconds(moderate.read_p99_us * 1e3),
            writes.unwrap_or_default(),
        ));
    }
    lines.extend(capacity.implausible.iter().map(|reason| format!("implausible: {reason}")));
    lines.extend(capacity.warnings.iter().map(|warning| format!("warning: {warning}")));
    lines
}

/// The work done, in parts.
fn facts(result: &ProfileResult, capacity: &CapacityResult) -> Vec<String> {
    let stopped = match result.stopped_because {
        StoppedBecause::WithinError => {
            format!("every figure is within {} %", percent(capacity.error))
        }
        other => other.words().to_owned(),
    };
    let solution = result.solution.as_ref().map(|name| format!("solution {name}"));
    let of_all = [
        format!("capacity, seed {}", result.seed),
        format!("{} on the device's clock", seconds(result.seconds_spent)),
        format!("span {}B", rate(result.span_bytes as f64)),
        stopped,
    ];
    solution.into_iter().chain(of_all).collect()
}

fn table(text: &mut String, header: &[&str], rows: &[Vec<String>]) {
    let header: Vec<String> = header.iter().map(|cell| (*cell).to_owned()).collect();
    crate::columns::aligned(text, &header, rows, &[]);
    text.push('\n');
}

/// A capacity profile on the terminal, its solutions one after the other.
pub(crate) fn capacity_text(result: &ProfileResult) -> String {
    let all = result.of_solutions().into_iter();
    let texts: Vec<String> =
        all.filter_map(|one| Some(solution_text(one, one.capacity.as_ref()?))).collect();
    texts.join("\n")
}

fn solution_text(result: &ProfileResult, capacity: &CapacityResult) -> String {
    let mut text = format!("{}  {}\n\n", result.target, facts(result, capacity).join("; "));
    table(&mut text, &FIGURES, &figure_rows(capacity));
    if !capacity.checks.is_empty() {
        table(&mut text, &CHECKS, &check_rows(capacity));
    }
    for line in lines(capacity) {
        let _ = writeln!(text, "{line}");
    }
    for note in &result.notes {
        let _ = writeln!(text, "note: {note}");
    }
    text
}

/// A capacity profile as a page, its solutions one after the other.
pub(crate) fn capacity_html(result: &ProfileResult, capacity: &CapacityResult) -> String {
    let all = result.of_solutions();
    let partial = all.iter().any(|one| one.stopped_because.is_early());
    let title = format!("{} - capacity", result.target);
    let mut page = Page::new(&title, partial, &facts(result, capacity));
    for warning in &result.warnings {
        page.note(&format!("Warning: {}", warning.line()), true);
    }
    for one in all {
        let Some(capacity) = &one.capacity else { continue };
        let (of, said) = match result.more_solutions.is_empty() {
            true => (String::new(), String::new()),
            false => (
                format!(", solution {}", one.solution_name()),
                format!("solution {}: ", one.solution_name()),
            ),
        };
        if !said.is_empty() {
            page.note(&format!("{said}{}", facts(one, capacity).join("; ")), false);
        }
        for line in lines(capacity).iter().chain(&one.notes) {
            page.note(&format!("{said}{line}"), false);
        }
        page.section(&format!("Figures{of}"), &[html_table(&FIGURES, &figure_rows(capacity))]);
        let checks = html_table(&CHECKS, &check_rows(capacity));
        page.section(&format!("Predicted and measured{of}"), &[checks]);
    }
    page.finish()
}
