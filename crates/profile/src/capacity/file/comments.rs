//! The comments at the head of each file: where its figures come from, and how far to trust them.

use ssdyno_figures::{rate, seconds};

use super::kind::SchedulerFile;
use super::one_line::one_line;
use crate::capacity::report::{burst, percent, shown};
use crate::capacity::result::{CapacityFigure, CapacityResult, CheckedLoad};
use crate::result::ProfileResult;
use crate::stopped::StoppedBecause;

/// Lines that begin with `#`. No dates: the same profile gives the same file.
pub(super) fn comments(
    file: SchedulerFile,
    result: &ProfileResult,
    capacity: &CapacityResult,
    version: &str,
) -> String {
    let solution = result.solution.as_ref();
    let mut lines = vec![
        format!(
            "ssdyno {version}, profile of {}: method capacity, seed {}, error {} %{}",
            result.target,
            result.seed,
            percent(capacity.error),
            solution.map_or(String::new(), |name| format!(", solution {name}")),
        ),
        format!(
            "{} of tests over {}B; {}",
            seconds(result.seconds_spent),
            rate(result.span_bytes as f64),
            match result.stopped_because {
                StoppedBecause::WithinError => "every figure is within the requested error",
                other => other.words(),
            }
        ),
        String::new(),
        "figure      sustained    90 % interval               depth  rounds".to_owned(),
    ];
    for figure in file.needs() {
        if let Some(one) = capacity.figure(*figure) {
            lines.extend(figure_lines(one, capacity.small_bytes));
        }
    }
    if !capacity.checks.is_empty() {
        lines.push(String::new());
        lines.push("Loads that are not used in a fit, in requests per second:".to_owned());
        lines.extend(capacity.checks.iter().map(|check| check_line(file, check)));
    }
    if !capacity.warnings.is_empty() {
        lines.push(String::new());
        lines.extend(capacity.warnings.iter().map(|warning| format!("Warning: {warning}.")));
    }
    lines.push(String::new());
    let mut text = String::new();
    for line in lines {
        text += format!("# {}", one_line(&line)).trim_end();
        text.push('\n');
    }
    text
}

fn figure_lines(one: &CapacityFigure, small_bytes: u64) -> Vec<String> {
    let interval = one.low.zip(one.high).map_or("none".to_owned(), |(low, high)| {
        format!("{} to {}", shown(one.figure, low), shown(one.figure, high))
    });
    let mut lines = vec![format!(
        "{:<10}  {:<11}  {interval:<26}  {:<5}  {}",
        one.figure.key(),
        shown(one.figure, one.estimate),
        one.depth,
        one.rounds,
    )];
    let is_write = one.figure.op() == crate::measure::ProfileOp::Write;
    match burst(one, small_bytes) {
        Some(burst) => lines.push(format!("            {burst}")),
        None if is_write => lines.push(format!(
            "            no burst within {} of continuous load",
            seconds(one.longest_seconds)
        )),
        None => {}
    }
    lines
}

fn check_line(file: SchedulerFile, check: &CheckedLoad) -> String {
    let (iops, error) = match file {
        SchedulerFile::IoProperties => (check.seastar_iops, check.seastar_error),
        _ => (check.iocost_iops, check.iocost_error),
    };
    let model =
        if file == SchedulerFile::IoProperties { "Seastar's model" } else { "io.cost.model" };
    let predicted = iops.zip(error).map_or("not predicted".to_owned(), |(iops, error)| {
        format!("{model} says {}, error {:+.1} %", rate(iops), error * 100.0)
    });
    format!("{}: measured {}, {predicted}", check.load, rate(check.measured_iops))
}
