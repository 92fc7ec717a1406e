//! A result on the terminal.

use std::fmt::Write;

use ssdyno_figures::{bytes_per_second, nanoseconds, rate, seconds, significant};
use ssdyno_report::aligned;

use crate::plan::{Test, block_name};
use crate::result::{Average, PtsHistogram, PtsPart, PtsResult, Tracked};
use crate::rule::{RANGE_MOST, SLOPE_MOST, Window};

/// Tables of all parts, the measurement window, and notes.
pub fn text(result: &PtsResult) -> String {
    let mut text = format!(
        "{}  PTS {}, seed {}{}\n",
        result.target,
        result.test,
        result.seed,
        if result.partial { "  (partial: the test was cut short)" } else { "" }
    );
    for warning in &result.warnings {
        text.push_str(&warning.lines());
    }
    for part in &result.parts {
        let _ = writeln!(text, "\n{}", part.name);
        for step in &part.steps {
            let took = if step.seconds > 0.0 {
                format!(" ({})", seconds(step.seconds))
            } else {
                String::new()
            };
            let _ = writeln!(text, "  {}: {}{took}", step.step.replace('_', " "), step.detail);
        }
        let _ = writeln!(text, "  {}", verdict(part));
        for (name, rows) in tables(result.test, part) {
            let _ = writeln!(text, "\n  {name}");
            let right: Vec<usize> = (0..rows[0].len()).collect();
            for line in aligned(&rows[0], rows[1..].iter().cloned(), &right).lines() {
                let _ = writeln!(text, "   {line}");
            }
        }
        if let Some(histogram) = &part.histogram {
            let _ = writeln!(text, "\n  {}", summary(histogram));
        }
    }
    if !result.notes.is_empty() {
        text.push('\n');
    }
    for note in &result.notes {
        let _ = writeln!(text, "note: {note}");
    }
    text
}

/// The figures beside a response time histogram.
pub(crate) fn summary(histogram: &PtsHistogram) -> String {
    let PtsHistogram { load, requests, .. } = histogram;
    let latency = |value: Option<f64>| value.map_or("-".to_owned(), nanoseconds);
    format!(
        "response times of {load} over {}: {requests} requests, mean {}, 99.999 % within {}, \
         largest {}",
        seconds(histogram.seconds),
        latency(histogram.latency_ns_mean),
        latency(histogram.latency_ns_p99_999),
        latency(histogram.latency_ns_max),
    )
}

/// Whether the tracked figure is steady, with the numbers of the rule.
pub(crate) fn verdict(part: &PtsPart) -> String {
    let Tracked { load, values, window, doubt, .. } = &part.tracked;
    let Some(Window { first_round, last_round, range_excursion, slope_excursion, steady, .. }) =
        window
    else {
        return format!("{} rounds of {load}: steady state needs five", values.len());
    };
    let percent = |share: f64| significant(100.0 * share, 3);
    format!(
        "{} in rounds {first_round} to {last_round} ({load}: range {} % of the average, at most \
         {} %; slope {} %, at most {} %)",
        match (steady, doubt) {
            (true, None) => "steady",
            (true, Some(_)) => "constant, but NOT steady (see the warning),",
            (false, _) => "NOT steady",
        },
        percent(*range_excursion),
        percent(RANGE_MOST),
        percent(*slope_excursion),
        percent(SLOPE_MOST),
    )
}

/// The tables of the specification: rows are block sizes, columns mixes.
pub(crate) fn tables(test: Test, part: &PtsPart) -> Vec<(String, Vec<Vec<String>>)> {
    if part.averages.is_empty() {
        return Vec::new();
    }
    let latency = |value: Option<f64>| value.map_or("-".to_owned(), nanoseconds);
    type Show<'a> = &'a dyn Fn(&Average) -> String;
    let all: &[(&str, Show<'_>)] = match test {
        Test::Iops => &[("IOPS, average of the window", &|a| rate(a.iops))],
        Test::Throughput => &[("throughput, average of the window", &|a| {
            bytes_per_second(a.throughput_bytes_per_second)
        })],
        Test::Latency => &[
            ("mean latency, average of the window", &|a| latency(a.latency_ns_mean)),
            ("99.999th percentile of the latency", &|a| latency(a.latency_ns_p99_999)),
            ("largest latency", &|a| latency(a.latency_ns_max)),
        ],
    };
    all.iter().map(|(name, show)| ((*name).to_owned(), matrix(part, show))).collect()
}

fn matrix(part: &PtsPart, show: &dyn Fn(&Average) -> String) -> Vec<Vec<String>> {
    let (mut blocks, mut mixes) = (Vec::new(), Vec::new());
    for cell in &part.averages {
        // Rows and columns follow from the averages and not from the plan. A part may lack
        // blocks that the target cannot have.
        if !blocks.contains(&cell.block_bytes) {
            blocks.push(cell.block_bytes);
        }
        if !mixes.contains(&cell.read_percent) {
            mixes.push(cell.read_percent);
        }
    }
    let mut rows = vec![vec!["read/write".to_owned()]];
    rows[0].extend(mixes.iter().map(|read| format!("{read}/{}", 100 - read)));
    for block in blocks {
        let mut row = vec![block_name(block)];
        for mix in &mixes {
            let found = |a: &&Average| a.block_bytes == block && a.read_percent == *mix;
            row.push(part.averages.iter().find(found).map_or("-".to_owned(), show));
        }
        rows.push(row);
    }
    rows
}
