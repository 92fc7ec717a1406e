//! A load that ran several times, as tables: the figures over its runs, and a row for each run.

use serde_json::Value;
use ssdyno_block::counted;
use ssdyno_figures::{FigureSpread, RepeatedRuns, RunResult, Warning, common_notes};

use crate::headline::{figure_format, figure_text, headline_figures};
use crate::side_by_side::aligned;

/// Figures of the row of a run: a line of a terminal holds no more.
const COLUMNS: [&str; 4] = ["iops", "latency_ns.mean", "latency_ns.p99", "latency_ns.p99_9"];

/// Tables with their headers first: the figures over the runs of `side`, and the runs, a row each.
pub(crate) fn repeated_tables(side: &RepeatedRuns) -> [Vec<Vec<String>>; 2] {
    let header = ["Figure", "mean", "95 % interval", "least", "greatest", "varies by"];
    let header = header.map(str::to_owned).to_vec();
    let over = side.figures.iter().map(|figure| row(figure).to_vec());
    let over = [header].into_iter().chain(over).collect();
    let mut header = vec!["run".to_owned(), "seed".to_owned()];
    header.extend(COLUMNS.map(str::to_owned));
    let each = side.runs.iter().zip(1..).map(|(run, number)| run_row(run, number));
    [over, [header].into_iter().chain(each).collect()]
}

fn row(figure: &FigureSpread) -> [String; 6] {
    let format = figure_format(&figure.figure);
    let interval = figure.interval.map(|i| match i.high - i.estimate > i.estimate.abs() {
        true if figure.is_lower_bound => format!("at least {}", format(i.low)),
        // Like the figures of a run: such bounds carry no information.
        true => "not within ± 100 %".to_owned(),
        false => format!("{} to {}", format(i.low), format(i.high)),
    });
    let shown = |value| figure_text(&figure.figure, value, figure.is_lower_bound);
    let varies = figure.coefficient_of_variation.map(|by| format!("{:.2} %", by * 100.0));
    let none = || "-".to_owned();
    [
        figure.figure.clone(),
        shown(figure.mean),
        interval.unwrap_or_else(none),
        shown(figure.min),
        shown(figure.max),
        varies.unwrap_or_else(none),
    ]
}

fn run_row(run: &RunResult, number: usize) -> Vec<String> {
    let seed = run.spec.as_ref().and_then(|spec| spec.get("seed")).map(Value::to_string);
    let mut row = vec![number.to_string(), seed.unwrap_or_else(|| "-".to_owned())];
    let figures = headline_figures(run);
    row.extend(COLUMNS.map(|name| match figures.iter().find(|figure| figure.name == name) {
        Some(figure) => figure.text(),
        None => "-".to_owned(),
    }));
    row
}

/// The runs of `side` as text.
pub fn repeated_text(side: &RepeatedRuns) -> String {
    let [over, each] = repeated_tables(side).map(|rows| match rows.split_first() {
        Some((header, rows)) => {
            let right: Vec<usize> = (1..header.len()).collect();
            aligned(header, rows.iter().cloned(), &right)
        }
        None => String::new(),
    });
    let runs = counted(side.runs.len() as u64, "run", "runs");
    let of = match side.runs.len() < side.asked as usize {
        true => format!(" of {} requested", side.asked),
        false => String::new(),
    };
    let warnings: String = warnings(side).iter().map(|line| format!("warning: {line}\n")).collect();
    let notes: String = notes(side).iter().map(|note| format!("note: {note}\n")).collect();
    format!("{}: {runs}{of}\n{warnings}{notes}{over}\n{each}", side.name)
}

/// The notes that all runs of `side` have. A note of one run alone stands in the result of that run.
pub(crate) fn notes(side: &RepeatedRuns) -> Vec<&String> {
    common_notes(side.runs.iter().map(|run| run.notes.as_slice()))
}

/// The warnings of the runs of `side`, and a line about lower bounds if some figures are. Each kind of warning has one line: that
/// of the first run that has it, with the numbers of the other runs. The
/// runs of a side have the same load, so their warnings differ in numbers alone.
pub(crate) fn warnings(side: &RepeatedRuns) -> Vec<String> {
    let mut found: Vec<(&Warning, Vec<usize>)> = Vec::new();
    for (run, number) in side.runs.iter().zip(1..) {
        for warning in &run.warnings {
            match found.iter_mut().find(|(first, _)| first.kind == warning.kind) {
                // Two warnings of one kind are two matters if one run has both.
                Some((_, runs)) if runs.last() != Some(&number) => runs.push(number),
                _ => found.push((warning, vec![number])),
            }
        }
    }
    let line = |(warning, runs): &(&Warning, Vec<usize>)| {
        let also = match runs.as_slice() {
            [_, also @ ..] if !also.is_empty() => {
                let also: Vec<String> = also.iter().map(usize::to_string).collect();
                let runs = if also.len() == 1 { "run" } else { "runs" };
                format!(" (also {runs} {})", also.join(", "))
            }
            _ => String::new(),
        };
        format!("run {} of {}: {}{also}", runs[0], side.asked, warning.line())
    };
    let mut lines: Vec<String> = found.iter().map(line).collect();
    lines.extend(unanswered(side));
    lines
}

/// What the sign of lower bounds means, where there are some.
fn unanswered(side: &RepeatedRuns) -> Option<String> {
    let requests: u64 = side.runs.iter().map(|run| run.unanswered).sum();
    let runs = side.runs.iter().filter(|run| run.unanswered > 0).count() as u64;
    (requests > 0).then(|| {
        format!(
            "{} in {} never completed: each counts with the time of its wait, so figures marked ≥ are lower bounds",
            counted(requests, "request", "requests"),
            counted(runs, "run", "runs")
        )
    })
}

#[cfg(test)]
mod tests {
    use ssdyno_figures::WarningKind;

    use super::*;

    #[test]
    fn warnings_of_runs_come_before_the_figures_and_name_their_runs() {
        let run = |warnings| RunResult { warnings, requests: 1, ..RunResult::default() };
        let warning = |kind, text: &str| Warning::new(kind, text).with_help("run longer");
        let buffer = || warning(WarningKind::NotExhausted, "the write buffer never filled");
        let drift = warning(WarningKind::NotSteady, "not steady");
        let runs = vec![run(vec![buffer()]), run(vec![buffer(), drift]), run(vec![buffer()])];
        let figures = crate::spread(&runs);
        let text = repeated_text(&RepeatedRuns { name: "a".into(), asked: 3, runs, figures });
        let at = |what: &str| text.find(what).unwrap_or_else(|| panic!("{what}: {text}"));
        let first =
            "warning: run 1 of 3: the write buffer never filled; run longer (also runs 2, 3)";
        assert!(at(first) < at("warning: run 2 of 3: not steady; run longer\n"), "{text}");
        assert!(at("not steady") < at("Figure"), "{text}");
    }

    #[test]
    fn notes_of_all_runs_are_shown_once() {
        let run = |notes: &[&str]| {
            let notes = notes.iter().map(|note| (*note).to_owned()).collect();
            RunResult { notes, requests: 1, ..RunResult::default() }
        };
        let runs = vec![run(&["all", "one"]), run(&["all"])];
        let figures = crate::spread(&runs);
        let text = repeated_text(&RepeatedRuns { name: "a".into(), asked: 2, runs, figures });
        assert!(text.starts_with("a: 2 runs\nnote: all\nFigure"), "{text}");
        assert!(!text.contains("one"), "{text}");
    }

    /// Two runs of which one is three times as fast: Student's t has one degree of freedom and a factor of 12.7.
    #[test]
    fn intervals_above_100_percent_are_not_told() {
        let over = |iops: [f64; 2]| {
            let runs = iops.map(|iops| RunResult { iops, requests: 1, ..RunResult::default() });
            let figures = crate::spread(&runs);
            let side = RepeatedRuns { name: "a".into(), asked: 2, runs: runs.into(), figures };
            let [over, _] = repeated_tables(&side);
            over[1][..3].join(", ")
        };
        assert_eq!(over([50_000.0, 150_000.0]), "iops, 100.0 k, not within ± 100 %");
        assert_eq!(over([99_900.0, 100_100.0]), "iops, 100.0 k, 98.73 k to 101.3 k");
    }
}
