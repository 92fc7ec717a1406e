//! The tables of the page. Each gives its HTML, empty where the run has nothing to show.

use std::fmt::Write;

use ssdyno_figures::{
    Energy, Interval, MetricSeries, RunResult, ScrapedMetrics, bytes_per_second, count, joules,
    nanoseconds, percent, rate, seconds, significant,
};

use super::markup::escape;
use super::page::table;
use super::plot::short;
use crate::lines;
use crate::lines::energy::energy_used;
use crate::lines::latency::{NamedLatency, inside_device, of_requests, texts, with_interval};
use crate::text::{self, deviation, own_cost, precision};

pub(super) fn latency(r: &RunResult) -> String {
    let Some((all, by_op)) = of_requests(r) else { return String::new() };
    let row = |of: NamedLatency| {
        let [mean, p50, p95, p99, p99_9, max] = texts(&of.latency, of.requests);
        let figures = [mean, p50, p95, p99, p99_9].into_iter().zip(of.intervals.list());
        let mut row = vec![of.name.to_owned(), count(of.requests)];
        row.extend(figures.map(|(text, interval)| with_interval(text, interval)));
        row.insert(3, nanoseconds(of.latency.min));
        row.push(max);
        row
    };
    let inside = inside_device(r, "all, inside the device");
    let rows: Vec<_> = [all].into_iter().chain(by_op).chain(inside).map(row).collect();
    let header = ["", "requests", "mean", "min", "p50", "p95", "p99", "p99.9", "max"];
    table(&header, &rows)
}

pub(super) fn jobs(r: &RunResult) -> String {
    let rows: Vec<Vec<String>> = r.jobs.iter().map(lines::jobs::row).collect();
    table(&lines::jobs::HEADER, &rows)
}

/// Each host of several, in the columns of the jobs.
pub(super) fn hosts(r: &RunResult) -> String {
    let rows = lines::hosts::host_rows(r);
    let mut head = lines::jobs::HEADER;
    head[0] = "Host";
    table(&head, &rows)
}

/// Each machine that was sampled.
/// Of each source a table: of a series its first and last value, and between which it was.
pub(super) fn metrics(r: &RunResult) -> Vec<String> {
    let table_of = |source: &ScrapedMetrics| {
        let rows: Vec<Vec<String>> = source.series.iter().map(metric_row).collect();
        table(&[lines::hosts::line(source).as_str(), "first", "last", "least", "most"], &rows)
    };
    r.metrics.iter().map(table_of).collect()
}

fn metric_row(series: &MetricSeries) -> Vec<String> {
    let labels: Vec<String> =
        series.labels.iter().map(|(name, value)| format!("{name}=\"{value}\"")).collect();
    let name = match labels.is_empty() {
        true => series.name.clone(),
        false => format!("{}{{{}}}", series.name, labels.join(",")),
    };
    let known = || series.values.iter().copied().flatten();
    let text = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |v| significant(v, 6));
    let ends =
        [known().next(), known().next_back(), known().reduce(f64::min), known().reduce(f64::max)];
    std::iter::once(name).chain(ends.map(text)).collect()
}

pub(super) fn systems(r: &RunResult) -> String {
    let rows: Vec<Vec<String>> = r.systems.iter().map(lines::hosts::system_row).collect();
    table(&lines::hosts::SYSTEM_TITLES, &rows)
}

/// When the load was steady, in words, and the stretches.
pub(super) fn steady(r: &RunResult) -> String {
    let Some(steady) = &r.steady_state else { return String::new() };
    let row = |p: &ssdyno_figures::SteadyPeriod| {
        let left = p.left_because.clone().unwrap_or_else(|| "the run ended".to_owned());
        let (iops, latency) = (rate(p.iops), nanoseconds(p.latency_ns_mean));
        vec![seconds(p.from_seconds), seconds(p.to_seconds), iops, latency, left]
    };
    let rows: Vec<_> = steady.periods.iter().map(row).collect();
    let whole = matches!(&steady.periods[..], [only] if only.left_because.is_none());
    let table = match whole {
        true => String::new(),
        false => table(&["steady from", "to", "IOPS", "mean latency", "ended because"], &rows),
    };
    let (text, criterion) =
        (escape(&text::steady(r).unwrap_or_default()), escape(&steady.criterion));
    format!("<p>Steady {text}.</p>\n{table}<p class=\"fine\">Steady: {criterion}.</p>\n")
}

pub(super) fn energy(r: &RunResult) -> String {
    let Some(Energy { total, .. }) = energy_used(r) else { return String::new() };
    let row = |e: &ssdyno_figures::EnergyRow| {
        let share = percent(e.joules / total);
        vec![e.part.clone(), e.activity.clone(), joules(e.joules), share, seconds(e.seconds)]
    };
    let rows: Vec<_> = r.energy_by_part.iter().map(row).collect();
    table(&["part", "activity", "energy", "share", "time, all parts of the kind"], &rows)
}

/// Folded, because a device may have hundreds.
pub(super) fn packages(r: &RunResult) -> String {
    if r.energy_by_package.is_empty() {
        return String::new();
    }
    let row = |(number, p): (usize, &ssdyno_figures::PackageEnergy)| {
        let mut row = vec![number.to_string(), joules(p.joules), joules(p.idle_joules)];
        row.extend([p.reads, p.programs, p.erases].map(count));
        let times = [p.read_seconds, p.program_seconds, p.erase_seconds, p.transfer_seconds];
        row.extend(times.map(seconds));
        row
    };
    let rows: Vec<_> = r.energy_by_package.iter().enumerate().map(row).collect();
    let header = [
        "package",
        "energy",
        "of which idle",
        "reads",
        "programs",
        "erases",
        "reading",
        "programming",
        "erasing",
        "transferring",
    ];
    let table = table(&header, &rows);
    format!("<details><summary>Each flash package</summary>{table}</details>\n")
}

pub(super) fn host(r: &RunResult) -> String {
    let rows: Vec<Vec<String>> =
        r.host.iter().flat_map(lines::host::rows).map(|row| row.to_vec()).collect();
    table(&["host", "per request"], &rows)
}

pub(super) fn faults(r: &RunResult) -> String {
    let rows: Vec<Vec<String>> =
        r.faults.iter().flat_map(lines::faults::rows).map(|row| row.to_vec()).collect();
    if rows.is_empty() { String::new() } else { table(&["", "injected faults"], &rows) }
}

pub(super) fn host_cores(r: &RunResult) -> String {
    let row = |(index, core): (usize, &ssdyno_figures::HostCore)| {
        let throughput = bytes_per_second(core.throughput_bytes_per_second);
        vec![format!("core {index}"), percent(core.busy_share), rate(core.iops), throughput]
    };
    let cores = r.host.iter().flat_map(|host| host.cores.iter().enumerate());
    table(&["", "busy", "IOPS", "throughput"], &cores.map(row).collect::<Vec<_>>())
}

/// Empty where none was chosen.
pub(super) fn namespaces(r: &RunResult) -> String {
    let row = |n: &ssdyno_figures::NamespaceResult| {
        let [mean, p99] = lines::host::latencies(n);
        let throughput = bytes_per_second(n.throughput_bytes_per_second);
        vec![
            lines::host::name(n),
            format!("{} B", n.block_bytes),
            rate(n.iops),
            throughput,
            mean,
            p99,
        ]
    };
    let rows: Vec<_> = r.host.iter().flat_map(|host| &host.namespaces).map(row).collect();
    match rows.is_empty() {
        true => String::new(),
        false => table(&["", "block", "IOPS", "throughput", "mean latency", "p99"], &rows),
    }
}

pub(super) fn flash(r: &RunResult) -> String {
    let mut rows = Vec::new();
    if let Some(f) = r.flash_operations {
        rows.push(vec!["pages read".into(), count(f.reads)]);
        rows.push(vec!["pages programmed".into(), count(f.programs)]);
        rows.push(vec!["blocks erased".into(), count(f.erases)]);
        rows.push(vec!["pages moved by cleaning".into(), count(f.relocations)]);
        if f.mapping_programs > 0 {
            rows.push(vec![
                "pages of the mapping table programmed".into(),
                count(f.mapping_programs),
            ]);
        }
    }
    if let Some(victims) = &r.gc_victims {
        rows.push(vec!["victims".into(), lines::victims::summary(victims)]);
    }
    let amplification = r.write_amplification.map(|w| significant(w, 4));
    rows.extend(amplification.map(|w| vec!["write amplification".into(), w]));
    table(&["", "in the recorded window"], &rows)
}

pub(super) fn expected(r: &RunResult) -> String {
    let row = |e: &ssdyno_figures::Expected| {
        let inputs: Vec<String> =
            e.inputs.iter().map(|(k, v)| format!("{k} = {}", short(significant(*v, 4)))).collect();
        let measured = e.measured.map_or("-".into(), |m| significant(m, 4));
        let off = deviation(e, r);
        let value = significant(e.value, 4);
        vec![e.figure.clone(), value, measured, off, e.form.clone(), inputs.join(", ")]
    };
    let rows: Vec<_> = r.expected.iter().map(row).collect();
    let header = ["figure", "expected", "measured", "off", "closed form", "inputs"];
    table(&header, &rows)
}

pub(super) fn invariants(r: &RunResult) -> String {
    let row = |i: &ssdyno_figures::Invariant| {
        let holds = if i.holds { "✓ holds" } else { "✗ BROKEN" };
        vec![i.name.clone(), holds.to_owned(), i.detail.clone()]
    };
    let rows: Vec<_> = r.invariants.iter().map(row).collect();
    table(&["invariant", "", "numbers"], &rows)
}

pub(super) fn confidence(r: &RunResult) -> String {
    let Some(c) = &r.confidence else { return String::new() };
    let number = |v: f64| significant(v, 5);
    let mut rows = Vec::new();
    let mut add = |name: &str, interval: Option<Interval>, show: &dyn Fn(f64) -> String| {
        rows.push(match interval {
            Some(i) => {
                let high = i.upper().map_or("unknown".to_owned(), show);
                vec![name.to_owned(), show(i.estimate), show(i.low), high]
            }
            None => vec![name.to_owned(), "-".into(), "-".into(), "run too short".into()],
        });
    };
    add("IOPS", c.iops, &number);
    add("throughput, bytes/s", c.throughput_bytes_per_second, &number);
    let l = &c.latency_ns.all;
    for (name, interval) in
        [("mean", l.mean), ("p50", l.p50), ("p95", l.p95), ("p99", l.p99), ("p99.9", l.p99_9)]
    {
        add(&format!("latency, {name}"), interval, &nanoseconds);
    }
    let rows = table(&["figure", "estimate", "low", "high"], &rows);
    format!("{rows}<p class=\"fine\">{}</p>\n", escape(&c.meaning))
}

pub(super) fn configuration(r: &RunResult) -> String {
    let Some(c) = &r.configuration else { return String::new() };
    let mut html = String::new();
    let host = r.host.as_ref().map(|host| ("Host", &host.host_toml));
    let device = [("Device", &c.device_toml), ("Workload", &c.workload_toml)];
    for (name, toml) in device.into_iter().chain(host) {
        if !toml.is_empty() {
            let toml = escape(toml);
            let _ = writeln!(
                html,
                "<details><summary>{name}, resolved</summary><pre>{toml}</pre></details>"
            );
        }
    }
    html
}

/// Why figures do not mean what they seem to: above them.
pub(super) fn warnings(page: &mut String, r: &RunResult) {
    if r.warnings.is_empty() && r.p99_believable.is_none() {
        return;
    }
    page.push_str("<section id=\"warnings\">\n");
    for warning in &r.warnings {
        let help = warning.help.as_ref().map(|help| format!("<br/>{}", escape(help)));
        let (message, help) = (escape(&warning.message), help.unwrap_or_default());
        let _ = writeln!(page, "<p class=\"note bad\"><b>Warning:</b> {message}{help}</p>");
    }
    if let Some(verdict) = &r.p99_believable {
        let class = if verdict.believable { "note" } else { "note bad" };
        let text = escape(&verdict.text());
        let _ = writeln!(page, "<p class=\"{class}\"><b>p99 believable:</b> {text}</p>");
    }
    page.push_str("</section>\n");
}

/// A note; of the search for a method the outcome, with what was tried folded.
fn remark(note: &str) -> String {
    match note.split_once(" (").filter(|_| note.starts_with("tuned: ")) {
        Some((outcome, tried)) => format!(
            "<details class=\"note\"><summary>{}</summary>({}</details>\n",
            escape(outcome),
            escape(tried)
        ),
        None => format!("<p class=\"note\">{}</p>\n", escape(note)),
    }
}

/// Violated invariants, notes and the tool's overhead: above everything else, because they say whether
/// the figures may be believed.
pub(super) fn remarks(page: &mut String, r: &RunResult) {
    page.push_str("<section id=\"notes\">\n");
    for invariant in r.invariants.iter().filter(|i| !i.holds) {
        let (name, detail) = (escape(&invariant.name), escape(&invariant.detail));
        let _ = writeln!(page, "<p class=\"note bad\"><b>{name} is broken:</b> {detail}</p>");
    }
    for note in &r.notes {
        page.push_str(&remark(note));
    }
    if let Some(stopped) = precision(r) {
        let _ = writeln!(page, "<p class=\"fine\">Stopped: {}.</p>", escape(&stopped));
    }
    if let Some(cost) = r.own_cost {
        let _ =
            writeln!(page, "<p class=\"fine\">Tool overhead: {}.</p>", escape(&own_cost(&cost)));
    }
    page.push_str("</section>\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_search_tried_is_folded() {
        let html = remark("tuned: `batch=8` is the cheapest (k IOPS in 5 to 9 runs: a < 1)");
        assert!(
            html.contains("<summary>tuned: `batch=8` is the cheapest</summary>(k IOPS"),
            "{html}"
        );
        assert!(html.contains("a &lt; 1)</details>"), "{html}");
        assert_eq!(remark("rows (some) are lost"), "<p class=\"note\">rows (some) are lost</p>\n");
    }
}
