//! A curve as text and as pictures.

use ssdyno_report::{Axis as PlotAxis, Plot, aligned, figure_format, html_table};

use crate::curve::{Curve, CurvePoint};
use crate::row::{SweepFigure, SweepResult};
use crate::text::{figure, value};
use crate::warned;

/// What the table shows of each point.
const SHOWN: [(&str, &str); 5] = [
    ("iops", "IOPS"),
    ("throughput_bytes_per_second", "throughput"),
    ("latency_ns.mean", "mean"),
    ("latency_ns.p50", "p50"),
    ("latency_ns.p99", "p99"),
];

/// The curve of `result` as a table with the knee below it; empty where it has none.
pub(crate) fn curve_text(result: &SweepResult) -> String {
    let Some(curve) = &result.curve else { return String::new() };
    let lines = aligned(&header(result, curve), rows(result, curve).into_iter(), &[]);
    let knee = knee(curve).map(|knee| format!("\n{knee}\n")).unwrap_or_default();
    lines.lines().map(|line| format!("  {line}\n")).collect::<String>() + &knee
}

/// The same for the page: pictures of rate and latency, table. The knee is for the title.
pub(crate) fn section(result: &SweepResult, curve: &Curve) -> Vec<String> {
    let header = header(result, curve);
    let names: Vec<&str> = header.iter().map(String::as_str).collect();
    let table = html_table(&names, &rows(result, curve));
    let rate = picture(result, curve, "Rate", &[("write", "iops", "IOPS")]);
    let latency = [("read", "latency_ns.p50", "p50"), ("write", "latency_ns.p99", "p99")];
    let latency = picture(result, curve, "Latency", &latency);
    vec![rate, latency, table]
}

fn header(result: &SweepResult, curve: &Curve) -> Vec<String> {
    let figures = SHOWN.iter().map(|(_, name)| (*name).to_owned());
    let warnings = warned::any(&result.rows).then(|| "warnings".to_owned());
    [curve.key.clone()].into_iter().chain(figures).chain(warnings).collect()
}

fn rows(result: &SweepResult, curve: &Curve) -> Vec<Vec<String>> {
    let cells = |point: &CurvePoint| {
        let row = result.rows.iter().find(|row| row.design == point.design);
        let figures =
            SHOWN.iter().map(|(name, _)| row.map_or_else(String::new, |row| figure(row, name)));
        let words = row.and_then(warned::words).unwrap_or_else(|| "-".to_owned());
        let warnings = warned::any(&result.rows).then_some(words);
        [value(&point.value)].into_iter().chain(figures).chain(warnings).collect()
    };
    curve.points.iter().map(cells).collect()
}

/// Where the knee is, in a line.
pub(crate) fn knee(curve: &Curve) -> Option<String> {
    let (what, key) = ("throughput divided by mean latency", &curve.key);
    let Some(knee) = &curve.knee else {
        let last = value(curve.rises_at()?);
        return Some(format!("No knee: {what} still rises at {key}={last}"));
    };
    let first = curve.points.iter().find(|point| point.power.is_some());
    let is_first = first.is_some_and(|point| point.value == knee.value);
    let place = match (&knee.above, &knee.below) {
        (Some(above), Some(below)) => format!("between {} and {}", value(above), value(below)),
        (Some(above), None) => format!("above {}", value(above)),
        (None, Some(below)) if is_first => {
            format!("below {}; no smaller value was run", value(below))
        }
        (None, Some(below)) => format!("below {}", value(below)),
        (None, None) => "the runs are too short to limit its place".to_owned(),
    };
    Some(format!("Knee at {key}={}: {what} is greatest there ({place})", value(&knee.value)))
}

/// Figures against the value, with their intervals as areas.
fn picture(
    result: &SweepResult,
    curve: &Curve,
    title: &'static str,
    lines: &[(&str, &'static str, &str)],
) -> String {
    let points = |name: &str| -> Vec<(f64, SweepFigure)> {
        let figure = |point: &CurvePoint| {
            let row = result.rows.iter().find(|row| row.design == point.design)?;
            row.figures.get(name).map(|figure| (point.number, *figure))
        };
        curve.points.iter().filter_map(figure).collect()
    };
    let all: Vec<(f64, SweepFigure)> = lines.iter().flat_map(|(_, name, _)| points(name)).collect();
    let numbers = || all.iter().map(|(number, _)| *number);
    let (first, last) = (numbers().fold(f64::INFINITY, f64::min), numbers().fold(0.0, f64::max));
    let most = all.iter().map(|(_, one)| one.high.unwrap_or(one.value)).fold(0.0, f64::max);
    // A logarithmic axis has no zero. A sweep that begins at 0
    // shows its table without pictures.
    if first <= 0.0 || all.is_empty() {
        return String::new();
    }
    let plain: fn(f64) -> String = |number| ssdyno_figures::significant(number, 4);
    let across = PlotAxis::logarithmic("value", first, last, plain);
    let format = figure_format(lines.first().map_or("", |(_, name, _)| *name));
    let mut plot = Plot::new(title, across, PlotAxis::from_zero(title, most, format));
    let ticks = curve.points.iter().map(|point| (point.number, value(&point.value)));
    plot.set_x_ticks(ticks.collect());
    plot.set_x_label(curve.key.clone());
    for (class, name, label) in lines {
        let points = points(name);
        let line = |of: &dyn Fn(&SweepFigure) -> f64| -> Vec<(f64, f64)> {
            points.iter().map(|(number, figure)| (*number, of(figure))).collect()
        };
        let top = line(&|figure| figure.high.unwrap_or(figure.value));
        let bottom = line(&|figure| figure.low.unwrap_or(figure.value));
        plot.area(class, &format!("{label}, 95 %"), &top, &bottom);
        plot.line(class, label, &line(&|figure| figure.value));
    }
    plot.finish()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{knee as knee_line, *};
    use crate::curve::Knee;

    /// A knee at the smallest value that was run may lie below it.
    #[test]
    fn a_knee_names_its_place() {
        let power = Some(SweepFigure { value: 1.0, ..SweepFigure::default() });
        let point = |number: u64| CurvePoint {
            value: json!(number),
            number: number as f64,
            design: number,
            power,
        };
        let place = |at: u64, above: Option<u64>, below: Option<u64>| {
            let value = |number: u64| json!(number);
            let knee = Knee { value: json!(at), above: above.map(value), below: below.map(value) };
            let points = [1, 2, 4].map(point).to_vec();
            knee_line(&Curve { key: "workload.depth".to_owned(), points, knee: Some(knee) })
                .unwrap()
        };
        let of = |at: u64, place: &str| {
            let text = "throughput divided by mean latency is greatest there";
            format!("Knee at workload.depth={at}: {text} ({place})")
        };
        assert_eq!(place(2, Some(1), Some(4)), of(2, "between 1 and 4"));
        assert_eq!(place(1, None, Some(2)), of(1, "below 2; no smaller value was run"));
        assert_eq!(place(2, None, Some(4)), of(2, "below 4"));
        assert_eq!(place(2, Some(1), None), of(2, "above 1"));
        assert_eq!(place(2, None, None), of(2, "the runs are too short to limit its place"));
    }
}
