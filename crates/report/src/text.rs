//! The result on one screen of a terminal.

use std::fmt::Write;

use ssdyno_figures::{
    Interval, RunResult, StopReason, Warning, WarningKind, bytes_per_second, count, joules,
    nanoseconds, percent, rate, seconds, significant, things, watts,
};

use crate::headline::headline_figures;
use crate::intervals::{either_side, plus_minus};
use crate::lines;
use crate::lines::energy::{above_idle, energy_used, mean_power, parts, settling};
use crate::lines::hosts::{SYSTEM_TITLES, system_row};
use crate::lines::jobs::HEADER;
use crate::lines::latency::{NamedLatency, inside_device, of_requests};
use crate::side_by_side::aligned;

/// The first screen: rates, latencies by operation, write amplification, energy, expected beside
/// measured, notes, and the invariants that did not hold. No colours, so it can be piped and compared.
pub fn summary_text(result: &RunResult) -> String {
    let mut text = String::new();
    head(&mut text, result);
    latencies(&mut text, result);
    text.push_str(&result.latency_parts_ns.as_ref().map(lines::parts::text).unwrap_or_default());
    jobs(&mut text, result);
    flash(&mut text, result);
    energy(&mut text, result);
    if let Some(host) = &result.host {
        let confidence = result.confidence.as_ref();
        let cpu = confidence.and_then(|all| all.host_cpu_ns_per_request);
        let network = result.spec.as_ref().and_then(|spec| spec.pointer("/host/network")?.as_str());
        text += &lines::host::text(host, cpu, network);
    }
    text.push_str(&result.faults.as_ref().map(lines::faults::text).unwrap_or_default());
    text.push_str(&result.machine.as_ref().map(lines::machine::text).unwrap_or_default());
    expected(&mut text, result);
    remarks(&mut text, result);
    text
}

/// Appends a line; writing to a string cannot fail.
fn line(text: &mut String, args: std::fmt::Arguments<'_>) {
    let _ = text.write_fmt(args);
    text.push('\n');
}

fn head(text: &mut String, r: &RunResult) {
    let seed = r.seed.map(|s| format!(", seed {s}")).unwrap_or_default();
    let partial = if r.partial { "  (partial: the run was cut short)" } else { "" };
    line(text, format_args!("{}  {}{seed}{partial}", r.target, r.workload));
    let errors = match r.errors {
        0 => String::new(),
        1 => ", 1 error".into(),
        n => format!(", {} errors", count(n)),
    };
    let unanswered = match r.unanswered {
        0 => String::new(),
        n => format!(", {} never completed", count(n)),
    };
    let clock = simulated(r).unwrap_or_else(|| format!("in {}", seconds(r.simulated_seconds)));
    line(text, format_args!("{}{errors}{unanswered}, {clock}", requests(r.requests)));
    for warning in &r.warnings {
        line(text, format_args!("warning: {}", warning.message));
        if let Some(help) = &warning.help {
            line(text, format_args!("  = help: {help}"));
        }
    }
    if let Some(verdict) = &r.p99_believable {
        line(text, format_args!("p99 believable: {}", verdict.text()));
    }
    text.push('\n');
    let confidence = lines::latency::believed(r);
    let iops = confidence.and_then(|c| c.iops);
    line(text, format_args!("IOPS        {}{}", rate_of(r, r.iops, rate), plus_minus(iops)));
    let interval = confidence.and_then(|c| c.throughput_bytes_per_second);
    let throughput = rate_of(r, r.throughput_bytes_per_second, bytes_per_second);
    line(text, format_args!("Throughput  {throughput}{}", plus_minus(interval)));
    if let Some(steady) = steady(r) {
        line(text, format_args!("Steady      {steady}"));
    }
    if let Some(stopped) = precision(r) {
        line(text, format_args!("Stopped     {stopped}"));
    }
}

/// When the run was steady; not "to the end" where a warning says that it was not.
pub(crate) fn steady(r: &RunResult) -> Option<String> {
    let steady = r.steady_state.as_ref()?;
    let against =
        |warning: &Warning| warning.kind.is_unsteady() || warning.kind == WarningKind::Overloaded;
    let to_the_end = matches!(&steady.periods[..], [one] if one.left_because.is_none());
    let is_doubted = to_the_end && r.warnings.iter().any(against);
    let on_stock = r.warnings.iter().any(|warning| warning.kind.lives_on_stock());
    Some(match (is_doubted, to_the_end && on_stock) {
        (true, _) => "not shown: see the warning above".to_owned(),
        // A buffer, credits or free blocks keep a rate constant until they are used up.
        (false, true) => {
            steady.text() + "; a longer run would have other figures: see the warning above"
        }
        (false, false) => steady.text(),
    })
}

/// Why a run that was to be precise stopped; `None` where no precision was asked for.
pub(crate) fn precision(r: &RunResult) -> Option<String> {
    let p = r.until?;
    let percent = |half: f64| match half {
        half if half > 1.0 => "wider than ± 100 %".to_owned(),
        half => format!("± {} %", significant(100.0 * half, 2)),
    };
    let asked = percent(p.asked);
    let why = match r.stopped_because {
        Some(StopReason::Requests) => "the number of requests was reached",
        Some(StopReason::Duration) => "the duration was reached",
        Some(StopReason::Interrupted) => "it was interrupted",
        Some(StopReason::Memory) => "memory ran out",
        Some(StopReason::Error) => "of an error",
        Some(StopReason::Killed) => "the program was killed",
        _ => "the workload was done",
    };
    let Some(half) = p.at_stop else {
        return Some(format!(
            "because {why}, before the interval of {} had an upper bound; requested {asked}",
            p.metric
        ));
    };
    let known = format!("interval of {}: {}, requested {asked}", p.metric, percent(half));
    // The table has the interval of the whole run, which is found with more care than each look during the run.
    if p.reached {
        return Some(format!("interval of {} within {asked}, as requested", p.metric));
    }
    let longer = longer(half, p.asked, r.simulated_seconds);
    Some(format!("because {why}; {known}: {longer}"))
}

/// How long the run should have been, as far as that can be told: intervals shrink with the root of
/// the time.
fn longer(half: f64, asked: f64, seconds: f64) -> String {
    if half <= asked {
        return "three checks must agree, each a quarter of the run after the previous check"
            .to_owned();
    }
    let needed = seconds * (half / asked).powi(2);
    let needed = ssdyno_figures::seconds(significant_to(needed));
    format!("about {needed} are needed if the load and the device do not change")
}

/// An estimate has no more than two digits.
fn significant_to(value: f64) -> f64 {
    significant(value, 2).parse().unwrap_or(value)
}

/// Appends a table without borders whose first column is text and the rest numbers.
fn push_table(text: &mut String, header: &[&str], rows: impl IntoIterator<Item = Vec<String>>) {
    let header: Vec<String> = header.iter().map(|cell| (*cell).to_owned()).collect();
    let right: Vec<usize> = (1..header.len()).collect();
    text.push('\n');
    text.push_str(&aligned(&header, rows.into_iter(), &right));
}

/// Each job of a file with several, each host of several, and each machine that was sampled.
fn jobs(text: &mut String, r: &RunResult) {
    let jobs: Vec<Vec<String>> = r.jobs.iter().map(lines::jobs::row).collect();
    for (name, rows) in [("Job", jobs), ("Host", lines::hosts::host_rows(r))] {
        if !rows.is_empty() {
            let mut head = HEADER;
            head[0] = name;
            push_table(text, &head, rows);
        }
    }
    if !r.systems.is_empty() {
        push_table(text, &SYSTEM_TITLES, r.systems.iter().map(system_row));
    }
    for metrics in &r.metrics {
        text.push_str(&format!("\nMetrics {}\n", lines::hosts::line(metrics)));
    }
}

/// Columns of latencies side by side: with the names of the rows they fill a terminal of 80 characters.
const LATENCY_COLUMNS: usize = 5;

fn latencies(text: &mut String, r: &RunResult) {
    let Some((all, by_op)) = of_requests(r) else {
        line(text, format_args!("Latency     none: no request completed"));
        return;
    };
    let mut columns = vec![all];
    match &by_op[..] {
        [only] => line(text, format_args!("Operations  {}", only.name)),
        _ => columns.extend(by_op),
    }
    columns.extend(inside_device(r, "in device"));
    for columns in columns.chunks(LATENCY_COLUMNS) {
        push_latencies(text, columns);
    }
}

/// A figure a row, with its intervals below it.
fn push_latencies(text: &mut String, columns: &[NamedLatency]) {
    let cells = |head: &str, cell: &dyn Fn(&NamedLatency) -> String| -> Vec<String> {
        std::iter::once(head.to_owned()).chain(columns.iter().map(cell)).collect()
    };
    let mut rows = vec![cells("requests", &|c| count(c.requests))];
    let names = ["mean", "p50", "p95", "p99", "p99.9", "max"];
    for (row, name) in names.into_iter().enumerate() {
        rows.push(cells(name, &|c| lines::latency::texts(&c.latency, c.requests)[row].clone()));
        let interval = |c: &NamedLatency| c.intervals.list().get(row).copied().flatten();
        // The maximum has none in any run.
        if columns.iter().any(|c| interval(c).is_some()) {
            let either_side = |c: &NamedLatency| match interval(c) {
                Some(interval) => either_side(&interval),
                None => "too few".to_owned(),
            };
            rows.push(cells("  95 %", &either_side));
        }
    }
    let head: Vec<&str> = ["Latency"].into_iter().chain(columns.iter().map(|c| c.name)).collect();
    push_table(text, &head, rows);
}

fn flash(text: &mut String, r: &RunResult) {
    if r.write_amplification.is_none() && r.flash_operations.is_none() {
        return;
    }
    text.push('\n');
    if let Some(amplification) = r.write_amplification {
        let interval = r.confidence.as_ref().and_then(|all| all.write_amplification);
        let value = significant(amplification, 4) + &plus_minus(interval);
        line(text, format_args!("Write amplification  {value}"));
    }
    if let Some(victims) = &r.gc_victims {
        line(text, format_args!("Victims              {}", lines::victims::summary(victims)));
    }
    if let Some(f) = r.flash_operations {
        line(
            text,
            format_args!(
                "Flash operations     {}, {}, {}, {}{}",
                things(f.reads, "read"),
                things(f.programs, "program"),
                things(f.erases, "erase"),
                things(f.relocations, "relocation"),
                match f.mapping_programs {
                    0 => String::new(),
                    pages => format!(", {}", things(pages, "mapping program")),
                }
            ),
        );
    }
}

fn energy(text: &mut String, r: &RunResult) {
    let Some(e) = energy_used(r) else { return };
    // Above the table: seconds of sleep at the end decide the mean power and the energy per request.
    if let Some(whole) = settling(r, "The energy") {
        line(text, format_args!("\n{whole}."));
    }
    let rows = parts(&e).into_iter().map(|(name, value)| {
        let power = mean_power(r, value).map_or("-".into(), watts);
        vec![name.to_owned(), joules(value), percent(value / e.total), power]
    });
    push_table(text, &["Drive energy", "joules", "share", "mean power"], rows);
    let interval = r.confidence.as_ref().and_then(|all| all.energy_joules_per_request);
    let each =
        e.per_request.map(|j| format!("{} per request{}, ", joules(j), plus_minus(interval)));
    let each = each.unwrap_or_default();
    let product = lines::latency::energy_delay(r).map(|product| format!(", {product}"));
    line(text, format_args!("{each}{}{}", above_idle(&e), product.unwrap_or_default()));
}

/// A rate of a run in words: a run of no time has none.
pub(crate) fn rate_of(r: &RunResult, value: f64, words: fn(f64) -> String) -> String {
    if r.simulated_seconds > 0.0 || r.requests == 0 { words(value) } else { "-".into() }
}

/// `10 s simulated in 2 s (5 000 requests/s)`; `None` where nothing was simulated.
pub(crate) fn simulated(r: &RunResult) -> Option<String> {
    let speed = rate(r.simulated_requests_per_wall_second?);
    let (length, wall) = (seconds(r.simulated_seconds), seconds(r.wall_seconds));
    Some(format!("{length} simulated in {wall} ({speed} requests/s)"))
}

/// `1 request`, `2 000 requests`.
pub(crate) fn requests(n: u64) -> String {
    things(n, "request")
}

fn expected(text: &mut String, r: &RunResult) {
    if r.expected.is_empty() {
        return;
    }
    let rows = r.expected.iter().map(|e| {
        let measured = e.measured.map_or("-".into(), |m| significant(m, 4));
        let name = format!("{} ({})", e.figure, e.form);
        vec![name, significant(e.value, 4), measured, deviation(e, r)]
    });
    push_table(text, &["Expected", "form", "measured", "off"], rows);
}

/// How far a measured figure is off what was expected, and how far chance may take it: `+0.31 % (within ± 0.44 % between
/// seeds)`. Where theory does not say the latter, the interval of the figure does, if it has one. The text says which of
/// both it is: the interval is printed beside the figure, and is the wider one for write amplification.
pub(crate) fn deviation(expected: &ssdyno_figures::Expected, result: &RunResult) -> String {
    let Some(measured) = expected.measured.filter(|_| expected.value != 0.0) else {
        return "-".into();
    };
    let off = format!("{:+.2} %", 100.0 * (measured / expected.value - 1.0));
    let words = |is_within: bool| if is_within { "within" } else { "outside" };
    if let Some(chance) = expected.chance {
        // A long run has less chance than the form has error: without the second, every long run would be outside.
        let accuracy = expected.accuracy.unwrap_or(0.0);
        let is_within = (measured / expected.value - 1.0).abs() <= chance + accuracy;
        let of_form = match accuracy > 0.0 {
            true => format!(" and ± {:.1} % of the form", 100.0 * accuracy),
            false => String::new(),
        };
        return format!(
            "{off} ({} ± {:.2} % between seeds{of_form})",
            words(is_within),
            100.0 * chance
        );
    }
    let figures = headline_figures(result);
    let figure = figures.iter().find(|figure| figure.name == expected.figure);
    match figure.and_then(|figure| figure.interval) {
        Some(Interval { low, high, .. }) => {
            let is_within = low <= expected.value && expected.value <= high;
            let to = if high.is_finite() { significant(high, 4) } else { "∞".to_owned() };
            format!("{off} ({} its interval, {} to {to})", words(is_within), significant(low, 4))
        }
        None => off,
    }
}

fn remarks(text: &mut String, r: &RunResult) {
    if let Some(cost) = r.own_cost {
        line(text, format_args!("\nTool overhead  {}", own_cost(&cost)));
    }
    let broken: Vec<_> = r.invariants.iter().filter(|i| !i.holds).collect();
    if !(r.notes.is_empty() && broken.is_empty()) {
        text.push('\n');
    }
    for invariant in broken {
        line(text, format_args!("BROKEN  {}: {}", invariant.name, invariant.detail));
    }
    for note in &r.notes {
        line(text, format_args!("note: {note}"));
    }
}

/// The tool's overhead in words.
pub(crate) fn own_cost(cost: &ssdyno_figures::OwnCost) -> String {
    let mut text = format!("per request {} CPU", nanoseconds(cost.cpu_ns_per_request));
    if let (Some(user), Some(system)) =
        (cost.user_cpu_ns_per_request, cost.system_cpu_ns_per_request)
    {
        let _ = write!(text, " ({} user, {} system)", nanoseconds(user), nanoseconds(system));
    }
    for (value, what) in [
        (cost.syscalls_per_request, "system calls"),
        (cost.context_switches_per_request, "context switches"),
    ] {
        if let Some(value) = value {
            let _ = write!(text, ", {} {what}", significant(value, 3));
        }
    }
    if let Some(floor) = cost.floor_cpu_ns_per_request {
        let _ = write!(
            text,
            "; about {} CPU of the tool alone, measured before the run",
            nanoseconds(floor)
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use ssdyno_figures::{Metric, Precision, Warning, WarningKind};

    #[test]
    fn an_upper_end_that_is_not_known_is_open() {
        let around = |high| Interval { estimate: 100.0, low: 62.0, high, level: 0.95 };
        assert_eq!(either_side(&around(112.0)), "-38 +12 %");
        assert_eq!(either_side(&around(f64::INFINITY)), "-38 +∞ %");
        assert_eq!(either_side(&around(201.0)), "-38 +∞ %");
        assert_eq!(plus_minus(Some(around(f64::INFINITY))), "");
        assert_eq!(plus_minus(Some(around(138.0))), " ± 38 %");
        assert_eq!(plus_minus(Some(around(112.0))), " -38 +12 %");
        assert_eq!(plus_minus(Some(around(400.0))), " (interval wider than ± 100 %)");
    }

    /// Where theory has no bound for chance, the interval of the figure is one.
    #[test]
    fn a_deviation_is_within_chance_or_beyond_it() {
        let expected = ssdyno_figures::Expected {
            figure: "iops".to_owned(),
            value: 104.0,
            measured: Some(100.0),
            ..ssdyno_figures::Expected::default()
        };
        let known = |high: f64| {
            let iops = Some(Interval { estimate: 100.0, low: 95.0, high, level: 0.95 });
            let confidence = Some(ssdyno_figures::Confidence { iops, ..Default::default() });
            deviation(&expected, &RunResult { confidence, ..RunResult::default() })
        };
        assert_eq!(known(105.0), "-3.85 % (within its interval, 95.00 to 105.0)");
        assert_eq!(known(103.0), "-3.85 % (outside its interval, 95.00 to 103.0)");
        assert_eq!(known(f64::INFINITY), "-3.85 % (within its interval, 95.00 to ∞)");
        // Theory knows better; without either nothing is said.
        assert_eq!(deviation(&expected, &RunResult::default()), "-3.85 %");
        let bounded = ssdyno_figures::Expected { chance: Some(0.01), ..expected.clone() };
        let told = deviation(&bounded, &RunResult::default());
        assert_eq!(told, "-3.85 % (outside ± 1.00 % between seeds)");
        // The form itself is not exact.
        let inexact = ssdyno_figures::Expected {
            accuracy: Some(0.006),
            chance: Some(0.033),
            ..expected.clone()
        };
        let told = deviation(&inexact, &RunResult::default());
        assert_eq!(told, "-3.85 % (within ± 3.30 % between seeds and ± 0.6 % of the form)");
    }

    /// Warnings that change the meaning of figures come first; all others come after the figures.
    #[test]
    fn warnings_come_before_the_figures() {
        let notes = vec!["one more thing".to_owned()];
        let warning = Warning::new(WarningKind::Overloaded, "overloaded 1.7x");
        let warnings = vec![warning.with_help("lower the rate")];
        let text = summary_text(&RunResult { notes, warnings, ..RunResult::default() });
        let at = |what: &str| text.find(what).unwrap_or_else(|| panic!("{what}: {text}"));
        assert!(at("warning: overloaded 1.7x") < at("= help: lower the rate"), "{text}");
        assert!(at("lower the rate") < at("IOPS") && at("IOPS") < at("one more thing"), "{text}");
    }

    #[test]
    fn a_run_that_was_not_long_enough_says_how_long_it_should_have_been() {
        let stopped = |at_stop, reached| {
            let until = Precision { metric: Metric::Mean, asked: 0.05, at_stop, reached };
            let result = RunResult {
                until: Some(until),
                stopped_because: Some(StopReason::Duration),
                simulated_seconds: 10.0,
                ..RunResult::default()
            };
            precision(&result).unwrap()
        };
        // Three times as wide: nine times as long.
        let wide = stopped(Some(0.15), false);
        assert!(wide.contains(": ± 15 %, requested ± 5.0 %: about 90.00 s"), "{wide}");
        assert!(stopped(Some(0.04), false).contains("three checks"));
        assert!(stopped(None, false).contains("before the interval of"));
        let reached = stopped(Some(0.04), true);
        assert_eq!(reached, "interval of mean within ± 5.0 %, as requested");
    }
}
