//! A profile as a page.

use ssdyno_block::units::Bytes;
use ssdyno_figures::{nanoseconds, significant};
use ssdyno_report::{Axis, Page, Plot, html_table};

use crate::capacity::capacity_html;
use crate::map::map_html;
use crate::measure::{ProfileOp, ProfileTest};
use crate::result::{ProfileResult, Ratio};
use crate::text::{depths, notes, summary, table, tests, why};

/// Ticks of an axis of sizes at most.
const TICKS_MAX: usize = 12;

/// The report: one file, opens without a network. It has the ratios, the four access-time curves (the paper's
/// Fig. 1, S2-13) and a table of all sizes.
pub fn html(result: &ProfileResult) -> String {
    if let Some(capacity) = &result.capacity {
        return capacity_html(result, capacity);
    }
    if let Some(map) = &result.map {
        return map_html(result, map);
    }
    let facts = [
        format!("method {}", result.method),
        format!("seed {}", result.seed),
        format!("{} outstanding", depths(result)),
        format!("span {}", Bytes(result.span_bytes)),
        tests(result),
        why(result),
    ];
    let partial = result.of_depths().iter().any(|one| one.stopped_because.is_early());
    let mut page = Page::new(&format!("{} - profile", result.target), partial, &facts);
    for warning in &result.warnings {
        page.note(&format!("Warning: {}", warning.line()), true);
    }
    for note in notes(result) {
        page.note(&note, false);
    }
    let lines: Vec<Vec<String>> = summary(result).into_iter().map(|line| vec![line]).collect();
    let mut blocks = vec![html_table(&["sequential throughput divided by random"], &lines)];
    if result.more_depths.is_empty() {
        blocks.push(ratios(result));
    } else {
        blocks.extend([ProfileOp::Read, ProfileOp::Write].map(|op| ratios_by_depth(result, op)));
    }
    page.section("Ratio", &blocks);
    for one in result.of_depths() {
        let title = match result.more_depths.is_empty() {
            true => "Access time per request".to_owned(),
            false => format!("Access time per request, depth {}", one.depth),
        };
        page.section(&title, &[curves(one)]);
    }
    let rows = table(result, usize::MAX);
    let header: Vec<&str> = rows[0].iter().map(String::as_str).collect();
    page.section("All sizes (~ estimated)", &[html_table(&header, &rows[1..])]);
    page.finish()
}

/// A logarithmic axis of request sizes; `None` without a size.
fn size_axis(result: &ProfileResult) -> Option<(Axis, Vec<(f64, String)>)> {
    let (first, last) = (*result.sizes_bytes.first()?, *result.sizes_bytes.last()?);
    let format = |size: f64| Bytes(size as u64).to_string();
    let axis = Axis::logarithmic("request size", first as f64, last as f64, format);
    let powers: Vec<u64> = (0..63).map(|power| 1 << power).collect();
    let inside: Vec<u64> = powers.into_iter().filter(|p| (first..=last).contains(p)).collect();
    let every = inside.len() / TICKS_MAX + 1;
    let ticks = inside.iter().step_by(every).map(|size| (*size as f64, format(*size as f64)));
    Some((axis, ticks.collect()))
}

/// Ratios by size: the look and the name of each line, with its ratios.
fn ratio_plot(
    result: &ProfileResult,
    title: &'static str,
    lines: &[(&str, String, &[Ratio])],
) -> String {
    let greatest = lines.iter().flat_map(|(.., ratios)| *ratios).map(|ratio| ratio.estimate);
    let greatest = greatest.fold(1.0, f64::max);
    let Some((x, ticks)) = size_axis(result) else { return String::new() };
    let ends = (x.from, x.to);
    let y = Axis::from_zero("sequential / random", greatest, |ratio| significant(ratio, 3));
    let mut plot = Plot::new(title, x, y);
    plot.set_x_ticks(ticks);
    plot.line("bus", "1: no difference", &[(ends.0, 1.0), (ends.1, 1.0)]);
    for (look, name, ratios) in lines.iter().filter(|(.., ratios)| !ratios.is_empty()) {
        let points: Vec<(f64, f64)> =
            ratios.iter().map(|ratio| (ratio.size_bytes as f64, ratio.estimate)).collect();
        plot.line(look, name, &points);
    }
    plot.finish()
}

fn ratios(result: &ProfileResult) -> String {
    let lines = [
        ("read", "reads".to_owned(), &result.read_ratio[..]),
        ("write", "writes".to_owned(), &result.write_ratio[..]),
    ];
    ratio_plot(result, "Sequential to random throughput ratio", &lines)
}

/// The ratios of one operation, a line for each depth; empty without one.
fn ratios_by_depth(result: &ProfileResult, op: ProfileOp) -> String {
    const LOOKS: [&str; 4] = ["read", "write", "trim", "flush"];
    let all = result.of_depths();
    let looks = all.iter().zip(LOOKS.iter().cycle());
    let lines: Vec<(&str, String, &[Ratio])> =
        looks.map(|(one, look)| (*look, format!("depth {}", one.depth), one.ratios(op))).collect();
    if lines.iter().all(|(.., ratios)| ratios.is_empty()) {
        return String::new();
    }
    let title = match op {
        ProfileOp::Read => "Sequential to random throughput ratio of reads by depth",
        ProfileOp::Write => "Sequential to random throughput ratio of writes by depth",
    };
    ratio_plot(result, title, &lines)
}

fn curves(result: &ProfileResult) -> String {
    let looks = [
        (ProfileTest::SequentialRead, "read"),
        (ProfileTest::RandomRead, "trim"),
        (ProfileTest::SequentialWrite, "write"),
        (ProfileTest::RandomWrite, "flush"),
    ];
    let greatest = looks.iter().flat_map(|(test, _)| result.curves.of(*test));
    let greatest = greatest.map(|point| point.access_time_ns).fold(0.0, f64::max);
    let Some((mut x, _)) = size_axis(result) else { return String::new() };
    // The paper draws access time over size on linear axes (Fig. 1, S2-13). On a logarithmic
    // axis its straight lines would be curves.
    (x.log, x.from) = (false, 0.0);
    let y = Axis::from_zero("time per request", greatest, nanoseconds);
    let mut plot = Plot::new("Access time by request size", x, y);
    let step = (result.sizes_bytes.last().copied().unwrap_or(1) / 8).max(1);
    let ticks = (0..=8).map(|at| at * step);
    plot.set_x_ticks(ticks.map(|size| (size as f64, Bytes(size).to_string())).collect());
    for (test, class) in looks {
        let curve = result.curves.of(test);
        if !curve.is_empty() {
            let points: Vec<(f64, f64)> =
                curve.iter().map(|p| (p.size_bytes as f64, p.access_time_ns)).collect();
            plot.line(class, &test.to_string(), &points);
        }
    }
    plot.finish()
}
