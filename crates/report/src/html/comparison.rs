//! Results side by side, as a page.

use ssdyno_block::counted;
use ssdyno_figures::{
    Comparison, FigureComparison, RepeatedRuns, RunResult, SeriesPoint, Verdict, nanoseconds, rate,
    seconds, significant,
};

use super::page::{Page, table, table_of};
use super::plot::{Axis, Plot, short};
use crate::headline::{figure_text, headline_figures};
use crate::lines::parts::compared_row;
use crate::repeat::repeated_figures;
use crate::repeat_text::{notes, repeated_tables, warnings};
use crate::side_by_side::{level, runs_table, verdict};
use crate::text::requests;

/// Colours of the lines, by side; more are not drawn.
const COLOURS: [&str; 4] = ["read", "write", "trim", "flush"];

/// The page of a comparison: opens without a network. `results` in the order of the arguments,
/// `comparisons` each of the others against the first; `repeated` the runs of each, where there were several.
pub fn comparison_html(
    results: &[RunResult],
    comparisons: &[Comparison],
    repeated: &[RepeatedRuns],
) -> String {
    let names = names(results, comparisons, repeated);
    let fact = |(name, r): (&String, &RunResult)| {
        format!("{name}: {} {}, {}", r.target, r.workload, requests(r.requests))
    };
    let facts: Vec<String> = names.iter().zip(results).map(fact).collect();
    let partial = results.iter().any(|result| result.partial);
    let mut page = Page::new(&title(&names), partial, &facts);
    if comparisons.len() > 1 {
        let figures: Vec<_> = match repeated.is_empty() {
            true => results.iter().map(headline_figures).collect(),
            false => repeated.iter().map(repeated_figures).collect(),
        };
        let all = runs_table(&names, results, &figures, comparisons, None);
        page.section("All runs", &[table_of(&all)]);
    }
    // A comparison has the warnings of its runs; a load that is compared with nothing has them here.
    if comparisons.is_empty() {
        for line in repeated.iter().flat_map(warnings) {
            page.note(&format!("Warning: {line}"), true);
        }
    }
    comparisons.iter().for_each(|comparison| compared(&mut page, comparison));
    repeated.iter().for_each(|side| runs_of(&mut page, side));
    let pictures = [
        over_time(&names, results, "Requests per second", "requests per second", rate, |p| {
            Some(p.iops)
        }),
        over_time(&names, results, "Mean latency", "latency", nanoseconds, |p| p.latency_ns_mean),
    ];
    page.section("Over time", &[format!("<div class=\"pair\">{}</div>\n", pictures.concat())]);
    page.finish()
}

/// Two runs: what speaks against it first, then what differs, the figures, and where the time goes.
fn compared(page: &mut Page, comparison: &Comparison) {
    for why in &comparison.not_comparable {
        page.note(&format!("Not comparable: {why}"), true);
    }
    for warning in &comparison.warnings {
        page.note(&format!("Warning: {}", warning.line()), true);
    }
    for note in &comparison.notes {
        page.note(note, false);
    }
    let row = |f: &FigureComparison| {
        let verdict = match f.verdict {
            Verdict::Better => "better",
            Verdict::Worse => "worse",
            _ => "cannot tell",
        };
        let interval = f.interval.map(|i| match i.upper() {
            Some(high) => format!("{} to {}", significant(i.low, 4), significant(high, 4)),
            None => format!("at least {}", significant(i.low, 4)),
        });
        vec![
            f.figure.clone(),
            figure_text(&f.figure, f.first, f.first_is_lower_bound),
            figure_text(&f.figure, f.second, f.second_is_lower_bound),
            significant(f.ratio, 4),
            interval.unwrap_or_else(|| "-".to_owned()),
            verdict.to_owned(),
            f.text.clone(),
        ]
    };
    let rows: Vec<Vec<String>> = comparison.figures.iter().map(row).collect();
    let (first, second) = (comparison.first.as_str(), comparison.second.as_str());
    let is = format!("{second} is");
    let interval = level(comparison).unwrap_or_default() + " interval";
    let header = ["figure", first, second, "times better", &interval, "verdict", is.as_str()];
    let changed = comparison.changed_provenance.iter().chain(&comparison.changed);
    let changed = changed.map(|change| vec![change.to_string()]);
    let changed = table(&["changed"], &changed.collect::<Vec<_>>());
    let title = format!("{second} against {first}: {}", verdict(comparison));
    let parts = comparison.latency_parts.iter().map(|part| compared_row(part).to_vec());
    let parts: Vec<Vec<String>> = parts.collect();
    let parts = match parts.is_empty() {
        true => String::new(),
        false => table(&["where the mean latency goes", first, second, "difference"], &parts),
    };
    page.section(&title, &[changed, table(&header, &rows), parts]);
}

/// The names of the sides, in their order.
fn names(
    results: &[RunResult],
    comparisons: &[Comparison],
    repeated: &[RepeatedRuns],
) -> Vec<String> {
    match (comparisons, repeated) {
        ([], []) => results.iter().map(|r| format!("{} {}", r.target, r.workload)).collect(),
        ([], repeated) => repeated.iter().map(|side| side.name.clone()).collect(),
        ([one, ..], _) => {
            let others = comparisons.iter().map(|comparison| comparison.second.clone());
            [one.first.clone()].into_iter().chain(others).collect()
        }
    }
}

/// The title of the page, with the names of its runs: of many the first.
fn title(names: &[String]) -> String {
    match names {
        [] => "Comparison".to_owned(),
        [one] => format!("{one} - repeated runs"),
        [one, other] => format!("{other} against {one}"),
        [one, others @ ..] => {
            format!("{} against {one}", counted(others.len() as u64, "run", "runs"))
        }
    }
}

/// The figures over the runs of `side`, and the runs.
fn runs_of(page: &mut Page, side: &RepeatedRuns) {
    let tables = repeated_tables(side).map(|rows| table_of(&rows));
    for note in notes(side) {
        page.note(&format!("{}: {note}", side.name), false);
    }
    let runs = counted(side.runs.len() as u64, "run", "runs");
    page.section(&format!("{}: {runs}", side.name), &tables);
}

fn over_time(
    names: &[String],
    results: &[RunResult],
    title: &'static str,
    label: &'static str,
    format: fn(f64) -> String,
    pick: fn(&SeriesPoint) -> Option<f64>,
) -> String {
    let line = |r: &RunResult| -> Vec<(f64, f64)> {
        let level = |p: &SeriesPoint| {
            let value = pick(p)?;
            Some([(p.start_seconds, value), (p.start_seconds + p.length_seconds, value)])
        };
        r.series.iter().filter_map(level).flatten().collect()
    };
    let lines: Vec<_> = results.iter().take(COLOURS.len()).map(line).collect();
    let points = || lines.iter().flatten();
    let (end, most) =
        points().fold((0.0, 0.0), |(x, y): (f64, f64), point| (x.max(point.0), y.max(point.1)));
    if end <= 0.0 {
        return String::new();
    }
    let x = Axis { label: "time", from: 0.0, to: end, log: false, format: |s| short(seconds(s)) };
    let mut plot = Plot::new(title, x, Axis::from_zero(label, most, format));
    for ((line, name), colour) in lines.iter().zip(names).zip(COLOURS) {
        plot.line(colour, name, line);
    }
    plot.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_of_hostile_names_and_empty_runs() {
        let hostile = RunResult { target: "<b>&\"".into(), iops: 5.0, ..RunResult::default() };
        let results = [hostile, RunResult { iops: 6.0, ..RunResult::default() }];
        let comparison = crate::compare(&results[0], &results[1]);
        let called =
            Comparison { first: "base".into(), second: "<new>".into(), ..comparison.clone() };
        let page = comparison_html(&results, std::slice::from_ref(&called), &[]);
        assert!(page.contains("<title>&lt;new&gt; against base</title>"), "{page}");
        assert!(page.contains("base: &lt;b&gt;&amp;&quot;"), "{page}");
        let page = comparison_html(&results, &[called.clone(), called], &[]);
        assert!(page.contains("<title>2 runs against base</title>"), "{page}");
        let page = comparison_html(&results, &[comparison], &[]);
        roxmltree::Document::parse(&page.replacen("<!DOCTYPE html>\n", "", 1)).unwrap();
        assert!(page.contains("&lt;b&gt;") && page.contains("too few requests"), "{page}");
    }
}
