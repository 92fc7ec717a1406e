//! A profile on the terminal.

use std::collections::BTreeSet;
use std::fmt::Write;

use ssdyno_block::units::Bytes;
use ssdyno_figures::{nanoseconds, seconds, significant};

use crate::capacity::capacity_text;
use crate::findings::DeviceState;
use crate::map::map_text;
use crate::measure::{ProfileOp, ProfileTest};
use crate::result::{ProfileResult, Ratio, RatioSummary};

/// Rows of the table at most; `--json` has all sizes.
const ROWS_MAX: usize = 24;

/// Ratios and access times by size, summary, advice and notes.
pub fn text(result: &ProfileResult) -> String {
    let mut text = String::new();
    for warning in &result.warnings {
        text.push_str(&warning.lines());
    }
    text + &figures(result)
}

fn figures(result: &ProfileResult) -> String {
    if result.capacity.is_some() {
        return capacity_text(result);
    }
    if let Some(map) = &result.map {
        return map_text(result, map);
    }
    let mut text = format!(
        "{}  profile by {}, seed {}: sequential throughput divided by random throughput\n\
         {}, {} outstanding, span {}; {}\n\n",
        result.target,
        result.method,
        result.seed,
        tests(result),
        depths(result),
        Bytes(result.span_bytes),
        why(result),
    );
    let rows = table(result, ROWS_MAX);
    let right: Vec<usize> = (0..rows[0].len()).collect();
    crate::columns::aligned(&mut text, &rows[0], &rows[1..], &right);
    let all = result.of_depths().into_iter().map(|one| sizes(one).len()).max().unwrap_or(0);
    if all > ROWS_MAX {
        let _ = writeln!(
            text,
            "  {} of {all} sizes; the JSON result contains all sizes",
            rows.len() - 1
        );
    }
    let curves = result.of_depths().into_iter().map(|one| &one.curves);
    let points =
        curves.flat_map(|curves| ProfileTest::ALL.iter().flat_map(|test| curves.of(*test)));
    if points.into_iter().any(|point| !point.measured) {
        text.push_str("  ~ estimated from the sizes that were measured\n");
    }
    text.push('\n');
    for line in summary(result) {
        let _ = writeln!(text, "{line}");
    }
    for note in notes(result) {
        let _ = writeln!(text, "note: {note}");
    }
    text
}

/// `12 tests in 3 s on the device's clock`, of all depths.
pub(crate) fn tests(result: &ProfileResult) -> String {
    let all = result.of_depths();
    let tests: usize = all.iter().map(|one| one.measurements.len()).sum();
    let spent = all.iter().map(|one| one.seconds_spent).sum();
    format!("{tests} tests in {} on the device's clock", seconds(spent))
}

/// `1, 8`.
pub(crate) fn depths(result: &ProfileResult) -> String {
    let all: Vec<String> = result.of_depths().iter().map(|one| one.depth.to_string()).collect();
    all.join(", ")
}

/// Why there are no more tests: once if that is the same at all depths.
pub(crate) fn why(result: &ProfileResult) -> String {
    let of = |one: &ProfileResult| one.stopped_because.words();
    let first = of(result);
    if result.more_depths.iter().all(|one| of(one) == first) {
        return first.to_owned();
    }
    let all = result.of_depths();
    let all: Vec<String> =
        all.iter().map(|one| format!("depth {}: {}", one.depth, of(one))).collect();
    all.join("; ")
}

/// The results of `of` at each depth, with the depth if there are several.
fn by_depth(result: &ProfileResult, of: impl Fn(&ProfileResult) -> Vec<String>) -> Vec<String> {
    if result.more_depths.is_empty() {
        return of(result);
    }
    let lines = |one: &ProfileResult| {
        let depth = one.depth;
        of(one).into_iter().map(move |line| format!("depth {depth}: {line}")).collect::<Vec<_>>()
    };
    result.of_depths().into_iter().flat_map(lines).collect()
}

/// Those of all depths.
pub(crate) fn notes(result: &ProfileResult) -> Vec<String> {
    by_depth(result, |one| one.notes.clone())
}

/// The operations of a result, with their ratios.
fn ops(result: &ProfileResult) -> Vec<(ProfileOp, &[Ratio], Option<RatioSummary>)> {
    let both = [
        (ProfileOp::Read, &result.read_ratio[..], result.summary.read),
        (ProfileOp::Write, &result.write_ratio[..], result.summary.write),
    ];
    let has = |op| {
        let (sequential, random) = ProfileTest::pair(op);
        !(result.curves.of(sequential).is_empty() && result.curves.of(random).is_empty())
    };
    both.into_iter().filter(|(op, ..)| has(*op)).collect()
}

/// Sizes about which something is known.
fn sizes(result: &ProfileResult) -> Vec<u64> {
    let known = |size: &u64| {
        ProfileTest::ALL.iter().any(|test| {
            let points = result.curves.of(*test);
            points.binary_search_by_key(size, |point| point.size_bytes).is_ok()
        })
    };
    result.sizes_bytes.iter().copied().filter(known).collect()
}

/// A column of the table: its heading, and the cell of a size.
type Column<'a> = (String, Box<dyn Fn(u64) -> String + 'a>);

/// The ratios of each depth; beside those of a single depth, the times behind them.
fn columns(result: &ProfileResult) -> Vec<Column<'_>> {
    let all = result.of_depths();
    let mut columns: Vec<Column<'_>> = Vec::new();
    for op in [ProfileOp::Read, ProfileOp::Write] {
        if !all.iter().any(|one| ops(one).iter().any(|(other, ..)| *other == op)) {
            continue;
        }
        for one in &all {
            let depth = format!("{op} ratio, depth {}", one.depth);
            let alone = result.more_depths.is_empty().then(|| format!("{op} ratio"));
            let ratios = one.ratios(op);
            let found = move |size: u64| ratios.iter().find(move |ratio| ratio.size_bytes == size);
            let cell = move |size| found(size).map_or("-".to_owned(), ratio);
            columns.push((alone.unwrap_or(depth), Box::new(cell)));
        }
        let (sequential, random) = ProfileTest::pair(op);
        for test in [sequential, random].into_iter().filter(|_| result.more_depths.is_empty()) {
            let points = result.curves.of(test);
            let found = move |size: u64| points.iter().find(move |point| point.size_bytes == size);
            let cell = move |size| {
                found(size).map_or("-".to_owned(), |point| nanoseconds(point.access_time_ns))
            };
            columns.push((test.to_string(), Box::new(cell)));
        }
    }
    columns
}

/// A header and a row a size, `rows` of them at most: the first, the last, and evenly between.
pub(crate) fn table(result: &ProfileResult, rows: usize) -> Vec<Vec<String>> {
    let columns = columns(result);
    let headings = columns.iter().map(|(heading, _)| heading.clone());
    let mut table: Vec<Vec<String>> =
        vec![["size".to_owned()].into_iter().chain(headings).collect()];
    let known: BTreeSet<u64> = result.of_depths().into_iter().flat_map(sizes).collect();
    let known: Vec<u64> = known.into_iter().collect();
    let shown = known.len().min(rows);
    for row in 0..shown {
        // The rows are spread evenly over the sizes and include both ends. The first rows alone
        // would show the small requests only.
        let size = known[row * (known.len() - 1) / (shown - 1).max(1)];
        let cells = columns.iter().map(|(_, cell)| cell(size));
        table.push([Bytes(size).to_string()].into_iter().chain(cells).collect());
    }
    table
}

fn ratio(ratio: &Ratio) -> String {
    let sign = if ratio.measured { "" } else { "~" };
    let interval = ratio.low.zip(ratio.high).map_or(String::new(), |(low, high)| {
        format!(" [{}, {}]", significant(low, 3), significant(high, 3))
    });
    format!("{sign}{}{interval}", significant(ratio.estimate, 3))
}

/// A line for each operation, the noise floor and the advice, of all depths.
pub(crate) fn summary(result: &ProfileResult) -> Vec<String> {
    by_depth(result, summary_of_depth)
}

fn summary_of_depth(result: &ProfileResult) -> Vec<String> {
    let mut lines = Vec::new();
    for (op, _, summary) in ops(result) {
        if let Some(RatioSummary { mean, min, max }) = summary {
            let [mean, min, max] = [mean, min, max].map(|ratio| significant(ratio, 3));
            lines.push(format!("{op} ratio: mean {mean}, minimum {min}, maximum {max}"));
        }
    }
    if !result.verdict.text.is_empty() {
        let state = match result.verdict.state {
            DeviceState::Steady => "steady",
            DeviceState::Burst => "burst",
            DeviceState::Throttled => "throttled",
            DeviceState::Unknown => "unknown",
        };
        lines.push(format!("device: {state} ({})", result.verdict.text));
    }
    for (test, all) in &result.breakpoints {
        let kept = all.iter().filter(|one| one.held_out_agrees);
        let sizes: Vec<String> = kept.map(|one| Bytes(one.size_bytes).to_string()).collect();
        if !sizes.is_empty() {
            lines.push(format!("{test}: a different line begins at {}", sizes.join(", ")));
        }
    }
    if let Some(noise) = result.noise_floor {
        let percent = significant(noise * 100.0, 2);
        lines.push(format!("noise floor: repetitions of a test differ by {percent} % (median)"));
    }
    for advice in &result.advice {
        let of = match advice.op {
            ProfileOp::Read => result.read_ratio.len(),
            ProfileOp::Write => result.write_ratio.len(),
        };
        let threshold = significant(advice.threshold, 3);
        let sizes = match (advice.sizes_bytes.first(), advice.sizes_bytes.last()) {
            (Some(first), Some(last)) => format!(
                "{} of {of} sizes, from {} to {}",
                advice.sizes_bytes.len(),
                Bytes(*first),
                Bytes(*last)
            ),
            _ => format!("none of {of} sizes"),
        };
        let op = advice.op;
        lines.push(format!(
            "an optimisation that needs a {op} ratio of {threshold} pays off at {sizes}"
        ));
    }
    lines
}
