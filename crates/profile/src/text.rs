//! A profile on the terminal.

use std::fmt::Write;

use ssdyno_block::units::Bytes;
use ssdyno_result::{nanoseconds, seconds, significant};

use crate::capacity::capacity_text;
use crate::findings::DeviceState;
use crate::measure::{ProfileOp, ProfileTest};
use crate::result::{ProfileResult, Ratio, RatioSummary};

/// Rows of the table at most; `--json` has all sizes.
const ROWS_MAX: usize = 24;

/// Ratios and access times by size, summary, advice and notes.
pub fn text(result: &ProfileResult) -> String {
    if let Some(capacity) = &result.capacity {
        return capacity_text(result, capacity);
    }
    let mut text = format!(
        "{}  profile by {}, seed {}: sequential throughput divided by random throughput\n\
         {} tests in {} on the device's clock, {} outstanding, span {}; {}\n\n",
        result.target,
        result.method,
        result.seed,
        result.measurements.len(),
        seconds(result.seconds_spent),
        result.depth,
        Bytes(result.span_bytes),
        result.stopped_because.words(),
    );
    let rows = table(result, ROWS_MAX);
    let widths: Vec<usize> = (0..rows[0].len())
        .map(|at| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or(0))
        .collect();
    for row in &rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            let _ = write!(line, "  {}{cell}", " ".repeat(width - cell.chars().count()));
        }
        let _ = writeln!(text, "{}", line.trim_end());
    }
    let all = sizes(result).len();
    if all > ROWS_MAX {
        let _ = writeln!(text, "  {} of {all} sizes; --json prints all of them", rows.len() - 1);
    }
    let points = ProfileTest::ALL.iter().flat_map(|test| result.curves.of(*test));
    if points.into_iter().any(|point| !point.measured) {
        text.push_str("  ~ estimated from the sizes that were measured\n");
    }
    text.push('\n');
    for line in summary(result) {
        let _ = writeln!(text, "{line}");
    }
    for note in &result.notes {
        let _ = writeln!(text, "note: {note}");
    }
    text
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

/// A header and a row a size, `rows` of them at most: the first, the last, and evenly between.
pub(crate) fn table(result: &ProfileResult, rows: usize) -> Vec<Vec<String>> {
    let ops = ops(result);
    let mut header = vec!["size".to_owned()];
    for (op, ..) in &ops {
        header.extend([format!("{op} ratio"), format!("sequential {op}"), format!("random {op}")]);
    }
    let mut table = vec![header];
    let sizes = sizes(result);
    let shown = sizes.len().min(rows);
    for row in 0..shown {
        let size = sizes[row * (sizes.len() - 1) / (shown - 1).max(1)];
        let mut cells = vec![Bytes(size).to_string()];
        for (op, ratios, _) in &ops {
            let found = ratios.iter().find(|ratio| ratio.size_bytes == size);
            cells.push(found.map_or("-".to_owned(), ratio));
            let (sequential, random) = ProfileTest::pair(*op);
            for test in [sequential, random] {
                let point = result.curves.of(test).iter().find(|p| p.size_bytes == size);
                cells.push(point.map_or("-".to_owned(), |point| nanoseconds(point.access_time_ns)));
            }
        }
        table.push(cells);
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

/// A line for each operation, the noise floor and the advice.
pub(crate) fn summary(result: &ProfileResult) -> Vec<String> {
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
            lines.push(format!("{test}: another line from {} on", sizes.join(", ")));
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
            "an optimisation that needs a {op} ratio of {threshold} pays at {sizes}"
        ));
    }
    lines
}
