//! A comparison as CSV.

use ssdyno_block::each_once;
use ssdyno_figures::{Comparison, Interval, RepeatedRuns, RunResult, csv_cell};

use crate::headline::{HEADLINES, HeadlineFigure, headline_figures};
use crate::repeat::repeated_figures;

/// Sides as CSV, a line each; where they ran several times the lines of the runs follow the line of their side.
/// Columns: name, number of the run (empty: the side), the keys that differ between the sides, the verdict, then of
/// each figure its value with bounds, and the ratio to the first side with bounds and verdict. Unknown values are
/// empty; times are in nanoseconds.
///
/// `comparisons` are those of the other sides against the first.
pub fn comparison_csv(
    names: &[String],
    results: &[RunResult],
    comparisons: &[Comparison],
    repeated: &[RepeatedRuns],
) -> String {
    let changed = comparisons.iter().flat_map(|comparison| &comparison.changed);
    let keys = each_once(changed.map(|change| change.key.as_str()));
    let mut header = vec!["name".to_owned(), "run".to_owned()];
    header.extend(keys.iter().map(|key| (*key).to_owned()));
    header.push("verdict".to_owned());
    for (figure, _) in HEADLINES {
        let of = ["", " low", " high", " ratio", " ratio low", " ratio high", " verdict"];
        header.extend(of.map(|what| format!("{figure}{what}")));
    }
    let mut lines = vec![header];
    for (at, name) in names.iter().enumerate() {
        let against = at.checked_sub(1).and_then(|other| comparisons.get(other));
        let start = |run: String, verdict: &str| {
            let mut cells = vec![name.clone(), run];
            cells.extend(keys.iter().map(|key| value_of(comparisons, against, key)));
            cells.push(verdict.to_owned());
            cells
        };
        let figures = match (repeated.get(at), results.get(at)) {
            (Some(side), _) => repeated_figures(side),
            (None, Some(result)) => headline_figures(result),
            (None, None) => continue,
        };
        let verdict = against.map_or("", |comparison| comparison.verdict.word());
        lines.push([start(String::new(), verdict), cells(&figures, against)].concat());
        let runs = repeated.get(at).map(|side| side.runs.as_slice()).unwrap_or_default();
        for (run, number) in runs.iter().zip(1..) {
            let figures = headline_figures(run);
            lines.push([start(number.to_string(), ""), cells(&figures, None)].concat());
        }
    }
    let line = |cells: Vec<String>| cells.iter().map(|cell| csv_cell(cell)).collect::<Vec<_>>();
    lines.into_iter().map(|cells| line(cells).join(",") + "\n").collect()
}

fn cells(figures: &[HeadlineFigure], against: Option<&Comparison>) -> Vec<String> {
    let mut cells = Vec::new();
    for (name, _) in HEADLINES {
        let figure = figures.iter().find(|figure| figure.name == name);
        cells.push(figure.map(|figure| figure.value.to_string()).unwrap_or_default());
        cells.extend(bounds(figure.and_then(|figure| figure.interval)));
        let ratio = against.and_then(|all| all.figures.iter().find(|one| one.figure == name));
        cells.push(ratio.map(|one| one.ratio.to_string()).unwrap_or_default());
        cells.extend(bounds(ratio.and_then(|one| one.interval)));
        cells.push(ratio.map_or("", |one| one.verdict.word()).to_owned());
    }
    cells
}

/// The lower and the upper bound; the latter is empty where it is not known.
fn bounds(interval: Option<Interval>) -> [String; 2] {
    let low = interval.map(|interval| interval.low.to_string());
    let high = interval.and_then(|interval| interval.upper()).map(|high| high.to_string());
    [low.unwrap_or_default(), high.unwrap_or_default()]
}

/// The value of `key` on the side that `against` compares with the first; on the first one without it, or where it does not
/// differ.
fn value_of(comparisons: &[Comparison], against: Option<&Comparison>, key: &str) -> String {
    let of = |comparison: &Comparison| comparison.changed.iter().find(|c| c.key == key).cloned();
    let value = match against.and_then(of) {
        Some(change) => change.second,
        None => comparisons.iter().find_map(of).and_then(|change| change.first),
    };
    match value {
        None => String::new(),
        Some(serde_json::Value::String(text)) => text,
        Some(other) => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(iops: f64) -> RunResult {
        RunResult { iops, ..RunResult::default() }
    }

    fn lines(text: &str) -> Vec<Vec<&str>> {
        text.lines().map(|line| line.split(',').collect()).collect()
    }

    #[test]
    fn each_side_is_a_line_with_all_columns() {
        let results = [run(100.0), run(150.0)];
        let compared = [crate::compare(&results[0], &results[1])];
        let text = comparison_csv(&["a".into(), "b \"x\"".into()], &results, &compared, &[]);
        let lines = lines(&text);
        assert_eq!(lines.len(), 3);
        assert!(lines.iter().all(|line| line.len() == lines[0].len()), "{text}");
        let cell = |line: usize, name: &str| {
            lines[line][lines[0].iter().position(|column| *column == name).unwrap()]
        };
        assert_eq!((cell(1, "iops"), cell(1, "iops ratio"), cell(1, "verdict")), ("100", "", ""));
        assert_eq!((cell(2, "iops"), cell(2, "iops ratio")), ("150", "1.5"));
        assert_eq!((cell(2, "name"), cell(2, "iops verdict")), ("\"b \"\"x\"\"\"", "cannot_tell"));
    }

    #[test]
    fn runs_follow_their_side() {
        let side = |name: &str, iops: &[f64]| {
            let runs: Vec<RunResult> = iops.iter().map(|iops| run(*iops)).collect();
            let figures = crate::spread(&runs);
            RepeatedRuns { name: name.into(), asked: 2, runs, figures }
        };
        let sides = [side("a", &[90.0, 110.0]), side("b", &[180.0, 220.0])];
        let compared =
            [crate::compare_runs(&sides[0].runs, &sides[1].runs, &Default::default()).unwrap()];
        let names = ["a".to_owned(), "b".to_owned()];
        let text = comparison_csv(&names, &[], &compared, &sides);
        let lines = lines(&text);
        let starts: Vec<[&str; 2]> = lines[1..].iter().map(|line| [line[0], line[1]]).collect();
        assert_eq!(starts, [["a", ""], ["a", "1"], ["a", "2"], ["b", ""], ["b", "1"], ["b", "2"]]);
        let iops = lines[0].iter().position(|column| *column == "iops").unwrap();
        let values: Vec<&str> = lines[1..].iter().map(|line| line[iops]).collect();
        assert_eq!(values, ["100", "90", "110", "200", "180", "220"]);
        assert!(!lines[1][iops + 1].is_empty() && lines[2][iops + 1].is_empty(), "{text}");
    }
}
