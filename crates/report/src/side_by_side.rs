//! Comparisons as text, and many runs as one table.

use std::fmt::Write;

use comfy_table::{CellAlignment, Table, presets};
use serde_json::Value;
use ssdyno_block::counted;
use ssdyno_figures::{Comparison, RunResult, Verdict, significant};

use crate::changes::value_of;
use crate::headline::{HeadlineFigure, figure_text};
use crate::lines::parts::compared_row;

/// Keys that differ which are shown; the JSON form has all.
const CHANGES_SHOWN: usize = 8;

/// Figures of the table of many runs: a line of a terminal holds no more.
const COLUMNS: [&str; 8] = [
    "iops",
    "latency_ns.mean",
    "latency_ns.p50",
    "latency_ns.p99",
    "latency_ns.p99_9",
    "energy_joules.per_request",
    "write_amplification",
    "host.cpu_ns_per_request",
];

/// Keys that differ among many runs which become columns.
const KEYS_MOST: usize = 4;

/// A comparison of two runs: what differs first, then the figures, then what may be said.
pub fn comparison_text(comparison: &Comparison) -> String {
    let Comparison { first, second, changed, .. } = comparison;
    let mut text = String::new();
    // All of it: it is short, and explains what no key of a spec does.
    for change in &comparison.changed_provenance {
        let _ = writeln!(text, "changed: {change}");
    }
    for change in changed.iter().take(CHANGES_SHOWN) {
        let _ = writeln!(text, "changed: {change}");
    }
    if changed.len() > CHANGES_SHOWN {
        let more = counted((changed.len() - CHANGES_SHOWN) as u64, "more key", "more keys");
        let _ = writeln!(text, "changed: {more}");
    }
    for why in &comparison.not_comparable {
        let _ = writeln!(text, "not comparable: {why}");
    }
    for warning in &comparison.warnings {
        let _ = writeln!(text, "warning: {}", warning.line());
    }
    if !text.is_empty() {
        text.push('\n');
    }
    let rows = comparison.figures.iter().map(|figure| {
        let mark = match figure.verdict {
            // Between unlike runs a mark would be a verdict.
            _ if comparison.verdict == Verdict::NotComparable => "",
            Verdict::Better => "+",
            Verdict::Worse => "-",
            _ => "",
        };
        [
            figure.figure.clone(),
            figure_text(&figure.figure, figure.first, figure.first_is_lower_bound),
            figure_text(&figure.figure, figure.second, figure.second_is_lower_bound),
            mark.to_owned(),
            figure.text.clone(),
        ]
        .to_vec()
    });
    let header = ["Figure", first, second, "", &format!("{second} is")].map(str::to_owned).to_vec();
    text.push_str(&aligned(&header, rows, &[1, 2]));
    if !comparison.latency_parts.is_empty() {
        text.push('\n');
        let header = ["Where the mean latency goes", first, second, "difference"];
        let rows = comparison.latency_parts.iter().map(|part| compared_row(part).to_vec());
        text.push_str(&aligned(&header.map(str::to_owned), rows, &[1, 2, 3]));
    }
    let level = match (comparison.verdict, level(comparison)) {
        (Verdict::Identical | Verdict::NotComparable, _) | (_, None) => String::new(),
        (_, Some(level)) => format!(" (intervals of ratios at {level})"),
    };
    let _ = writeln!(text, "\nVerdict  {}{level}", verdict(comparison));
    for note in &comparison.notes {
        let _ = writeln!(text, "Note: {note}");
    }
    text
}

/// The level of the intervals of ratios, such as `99 %`.
pub(crate) fn level(comparison: &Comparison) -> Option<String> {
    let interval = comparison.figures.iter().find_map(|figure| figure.interval)?;
    Some(format!("{:.0} %", interval.level * 100.0))
}

/// Figures of what a request takes, with their names in a sentence. Tail latencies are among them: a driver that merges
/// interrupts can serve more requests, and let some wait longer.
const TAKEN: [(&str, &str); 6] = [
    ("latency_ns.mean", "mean latency"),
    ("latency_ns.p50", "p50"),
    ("host.cpu_ns_per_request", "host CPU time per request"),
    ("energy_joules.per_request", "drive energy per request"),
    ("latency_ns.p99", "p99"),
    ("latency_ns.p99_9", "p99.9"),
];

/// What the better side pays for it, or the worse one saves: `, at 41.0 times the host CPU time`. Polling is faster
/// than interrupts, and nobody would choose it without that number.
fn price(comparison: &Comparison) -> String {
    let mut text = String::new();
    for (name, what) in TAKEN {
        let found = comparison.figures.iter().find(|figure| figure.figure == name);
        let opposed = found.filter(|figure| {
            matches!(
                (comparison.verdict, figure.verdict),
                (Verdict::Better, Verdict::Worse) | (Verdict::Worse, Verdict::Better)
            )
        });
        if let Some(figure) = opposed {
            let factor = significant(1.0 / figure.ratio, 3);
            let _ = write!(text, ", at {factor} times the {what}");
        }
    }
    text
}

/// Figures that differ although rate and mean latency do not, in the order in which they are told.
const BESIDE: [(&str, &str); 8] = [
    ("latency_ns.p50", "p50"),
    ("latency_ns.p95", "p95"),
    ("latency_ns.p99", "p99"),
    ("latency_ns.p99_9", "p99.9"),
    ("host.cpu_ns_per_request", "host CPU time per request"),
    ("energy_joules.per_request", "drive energy per request"),
    ("write_amplification", "write amplification"),
    ("throughput_bytes_per_second", "throughput"),
];

/// The significant differences of other figures than rate and mean latency: `5.0 % higher p99, 54 % higher host CPU time
/// per request`. Two drivers at the same depth have the same rate, and one of them can take twice the CPU time.
fn beside(comparison: &Comparison) -> Option<String> {
    let told = BESIDE.iter().filter_map(|(name, what)| {
        let figure = comparison.figures.iter().find(|figure| figure.figure == *name)?;
        if !matches!(figure.verdict, Verdict::Better | Verdict::Worse) {
            return None;
        }
        let change = figure.second / figure.first - 1.0;
        let word = if change > 0.0 { "higher" } else { "lower" };
        let percent = |share: f64| significant(100.0 * share.abs(), 2);
        // A ratio that is bounded on one side alone is shown by that bound: the ratio itself can be far from the truth.
        let least = figure.interval.and_then(|interval| match figure.verdict {
            Verdict::Worse if interval.low == 0.0 => Some(1.0 / interval.high - 1.0),
            Verdict::Better if interval.upper().is_none() => Some(1.0 - 1.0 / interval.low),
            _ => None,
        });
        Some(match least {
            Some(least) => format!("at least {} % {word} {what}", percent(least)),
            None => format!("{} % {word} {what}", percent(change)),
        })
    });
    let told: Vec<String> = told.collect();
    (!told.is_empty()).then(|| told.join(", "))
}

/// What may be said, in a sentence.
pub fn verdict(comparison: &Comparison) -> String {
    let Comparison { first, second, .. } = comparison;
    let of = |name: &str| {
        comparison.figures.iter().find(|figure| figure.figure == name).map(|figure| figure.verdict)
    };
    // Larger requests are fewer: who asked for other sizes wants to know of both.
    match (comparison.verdict, of("iops"), of("throughput_bytes_per_second")) {
        (Verdict::Worse, Some(Verdict::Worse), Some(Verdict::Better)) => {
            return format!(
                "{second} serves fewer requests per second, and more bytes per second than {first}"
            );
        }
        (Verdict::Better, Some(Verdict::Better), Some(Verdict::Worse)) => {
            return format!(
                "{second} serves more requests per second, and fewer bytes per second than {first}"
            );
        }
        _ => {}
    }
    match comparison.verdict {
        Verdict::Better => format!("{second} is faster than {first}{}", price(comparison)),
        Verdict::Worse => format!("{second} is slower than {first}{}", price(comparison)),
        Verdict::CannotTell => match beside(comparison) {
            None => "cannot tell which is faster".to_owned(),
            Some(others) => format!(
                "cannot tell which is faster by rate and mean latency; {second} has {others} than {first}"
            ),
        },
        Verdict::Identical => "identical: all figures are equal".to_owned(),
        Verdict::NotComparable => {
            format!("not comparable, because {}", comparison.not_comparable.join("; "))
        }
    }
}

/// The order of the rows of many runs.
#[derive(Clone, Copy, Debug)]
pub struct SortBy<'a> {
    /// The path of the figure, such as `latency_ns.p99`.
    pub figure: &'a str,
    /// Whether the greatest comes first.
    pub greatest_first: bool,
}

/// Many runs as one table, a row a run, with the header first: name, the keys that differ from the first run, the figures
/// of each run that `all` has, and what may be said against the first run. `runs` have the specs, in the order of `names`.
/// `sort` is by a figure; runs without the figure come last.
pub fn runs_table(
    names: &[String],
    runs: &[RunResult],
    all: &[Vec<HeadlineFigure>],
    comparisons: &[Comparison],
    sort: Option<SortBy<'_>>,
) -> Vec<Vec<String>> {
    let keys = differing(comparisons);
    let has = |name: &&str| all.iter().flatten().any(|figure| figure.name == *name);
    let figures: Vec<&str> = COLUMNS.into_iter().filter(has).collect();
    let mut header = vec!["run".to_owned()];
    header.extend(keys.iter().cloned());
    let short = |name: &&str| match name.split_once('.') {
        Some(("latency_ns", percentile)) => percentile.replace('_', "."),
        Some(("host", _)) => "cpu/request".to_owned(),
        Some((energy, _)) => energy.trim_end_matches("_joules").to_owned() + "/request",
        None => (*name).to_owned(),
    };
    header.extend(figures.iter().map(short));
    header.push(format!("against {}", names.first().map_or("the first", String::as_str)));
    let found = |at: usize, name: &str| all[at].iter().find(|figure| figure.name == name);
    let row = |at: usize| {
        let mut row = vec![names[at].clone()];
        row.extend(keys.iter().map(|key| key_of(comparisons, runs, at, key)));
        row.extend(
            figures
                .iter()
                .map(|name| found(at, name).map_or_else(|| "-".to_owned(), HeadlineFigure::text)),
        );
        row.push(match at.checked_sub(1).and_then(|other| comparisons.get(other)) {
            Some(comparison) => in_short(comparison),
            None => "-".to_owned(),
        });
        row
    };
    let mut order: Vec<usize> = (0..all.len().min(names.len())).collect();
    if let Some(SortBy { figure, greatest_first }) = sort {
        let key = |at: &usize| {
            let value = found(*at, figure).map(|figure| figure.value);
            value.map_or(f64::INFINITY, |value| if greatest_first { -value } else { value })
        };
        order.sort_by(|a, b| key(a).total_cmp(&key(b)));
    }
    [header].into_iter().chain(order.into_iter().map(row)).collect()
}

/// [`runs_table`] as text; `top` rows at the most.
pub fn runs_text(table: &[Vec<String>], top: usize) -> String {
    let Some((header, rows)) = table.split_first() else { return String::new() };
    let right: Vec<usize> = (1..header.len().saturating_sub(1)).collect();
    let mut text = aligned(header, rows.iter().take(top).cloned(), &right);
    if rows.len() > top {
        let _ = writeln!(text, "… and {} more", rows.len() - top);
    }
    text
}

/// The keys that differ from the first run in any other, those of most runs first.
fn differing(comparisons: &[Comparison]) -> Vec<String> {
    let mut keys: Vec<(&str, usize)> = Vec::new();
    for change in comparisons.iter().flat_map(|comparison| &comparison.changed) {
        match keys.iter_mut().find(|(key, _)| *key == change.key) {
            Some((_, count)) => *count += 1,
            None => keys.push((&change.key, 1)),
        }
    }
    keys.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    keys.into_iter().take(KEYS_MOST).map(|(key, _)| key.to_owned()).collect()
}

/// The value of `key` in run `at`: as its comparison tells it, else by its spec. A key that is not among the changes need not be
/// equal: between two drivers or devices the changes leave out what follows from the driver or the device.
fn key_of(comparisons: &[Comparison], runs: &[RunResult], at: usize, key: &str) -> String {
    let of = |comparison: &Comparison| comparison.changed.iter().find(|c| c.key == key).cloned();
    let value = match at.checked_sub(1) {
        None => comparisons.iter().find_map(of).map(|change| change.first),
        Some(other) => comparisons.get(other).and_then(of).map(|change| change.second),
    };
    match value.unwrap_or_else(|| runs.get(at).and_then(|run| value_of(run, key))) {
        None => "-".to_owned(),
        Some(Value::String(text)) => text,
        Some(other) => other.to_string(),
    }
}

fn in_short(comparison: &Comparison) -> String {
    let iops = comparison.figures.iter().find(|figure| figure.figure == "iops");
    match comparison.verdict {
        Verdict::Identical => "identical".to_owned(),
        Verdict::NotComparable => "not comparable".to_owned(),
        _ => iops.map_or_else(|| "-".to_owned(), |iops| iops.text.clone()),
    }
}

/// Lines of `header` and `rows` in columns two blanks apart; columns with the numbers `right` are aligned at their right.
pub fn aligned(
    header: &[String],
    rows: impl Iterator<Item = Vec<String>>,
    right: &[usize],
) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(header.to_vec());
    for (index, column) in table.column_iter_mut().enumerate() {
        let is_right = right.contains(&index);
        column.set_cell_alignment(if is_right {
            CellAlignment::Right
        } else {
            CellAlignment::Left
        });
        column.set_padding((0, 2));
    }
    rows.for_each(|row| {
        table.add_row(row);
    });
    let mut text = String::new();
    for line in table.lines() {
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use ssdyno_figures::{Change, FigureComparison};

    use super::*;
    use crate::headline::headline_figures;

    fn run(iops: f64) -> RunResult {
        RunResult { iops, requests: 1, ..RunResult::default() }
    }

    fn verdict_of(comparison: Comparison) -> String {
        verdict(&comparison)
    }

    #[test]
    fn a_verdict_names_what_the_faster_side_takes_more() {
        let figure = |name: &str, ratio: f64, verdict| FigureComparison {
            figure: name.to_owned(),
            first: 1.0,
            second: 1.0,
            first_is_lower_bound: false,
            second_is_lower_bound: false,
            ratio,
            interval: None,
            verdict,
            text: String::new(),
        };
        let compared = |rate, cpu: (f64, Verdict)| {
            let figures =
                vec![figure("iops", 1.0, rate), figure("host.cpu_ns_per_request", cpu.0, cpu.1)];
            let all = crate::compare(&run(1.0), &run(2.0));
            verdict_of(Comparison {
                verdict: rate,
                figures,
                first: "a".into(),
                second: "b".into(),
                ..all
            })
        };
        assert_eq!(
            compared(Verdict::Better, (0.025, Verdict::Worse)),
            "b is faster than a, at 40.0 times the host CPU time per request"
        );
        assert!(compared(Verdict::Worse, (40.0, Verdict::Better)).contains("at 0.0250 times"));
        assert_eq!(compared(Verdict::Better, (2.0, Verdict::Better)), "b is faster than a");
        assert_eq!(compared(Verdict::Better, (0.99, Verdict::CannotTell)), "b is faster than a");
        // No difference in rate and mean latency is none in the others.
        let taken = |first, second, verdict| {
            let cpu = FigureComparison {
                first,
                second,
                ..figure("host.cpu_ns_per_request", first / second, verdict)
            };
            let figures = vec![figure("iops", 1.0, Verdict::CannotTell), cpu];
            let all = crate::compare(&run(1.0), &run(2.0));
            verdict_of(Comparison { verdict: Verdict::CannotTell, figures, ..all })
        };
        assert!(
            taken(2.0, 3.08, Verdict::Worse)
                .contains("has 54 % higher host CPU time per request than")
        );
        assert_eq!(taken(2.0, 2.01, Verdict::CannotTell), "cannot tell which is faster");
    }

    /// A run without a key has no value of the key, although the changes between two drivers leave the key out.
    #[test]
    fn a_run_shows_no_setting_that_its_spec_does_not_have() {
        let with = |host: Value| RunResult {
            target: "sim:a".into(),
            spec: Some(json!({ "target": "sim:a", "host": host })),
            ..run(1.0)
        };
        let runs = [
            with(json!({ "driver": "nvme", "cores": 8 })),
            with(json!({ "driver": "direct" })),
            with(json!({ "driver": "nvme", "cores": 1 })),
            with(json!({ "driver": "scsi", "cores": 8 })),
        ];
        let comparisons: Vec<_> =
            runs.iter().skip(1).map(|other| crate::compare(&runs[0], other)).collect();
        let names = ["nvme", "direct", "one", "scsi"].map(str::to_owned);
        let figures = runs.each_ref().map(headline_figures);
        let table = runs_table(&names, &runs, &figures, &comparisons, None);
        let at = table[0].iter().position(|name| name == "host.cores").unwrap();
        let cores: Vec<&str> = table[1..].iter().map(|row| row[at].as_str()).collect();
        assert_eq!(cores, ["8", "-", "1", "8"]);
    }

    #[test]
    fn many_runs_are_one_table() {
        let names = ["a", "b", "c"].map(str::to_owned);
        let results = [run(100.0), run(300.0), run(200.0)];
        let against = |at: usize, second: u32| Comparison {
            changed_provenance: Vec::new(),
            changed: vec![Change {
                key: "flash.channels".into(),
                first: Some(1.into()),
                second: Some(second.into()),
                asked_for: false,
            }],
            ..crate::compare(&results[0], &results[at])
        };
        let comparisons = [against(1, 4), against(2, 2)];
        let figures = results.each_ref().map(headline_figures);
        let sort = SortBy { figure: "iops", greatest_first: true };
        let table = runs_table(&names, &results, &figures, &comparisons, Some(sort));
        assert_eq!(table[0][..3], ["run", "flash.channels", "iops"]);
        let order: Vec<&str> = table[1..].iter().map(|row| row[0].as_str()).collect();
        assert_eq!(order, ["b", "c", "a"]);
        let keys: Vec<&str> = table[1..].iter().map(|row| row[1].as_str()).collect();
        assert_eq!(keys, ["4", "2", "1"]);
        let text = runs_text(&table, 2);
        assert!(text.lines().count() == 4 && text.ends_with("… and 1 more\n"), "{text}");
    }
}
