//! `report.html`: one file with everything in it, made from a [`RunResult`] alone.
//!
//! Pictures are SVG of our own making, because their colours must follow the style sheet (light
//! and dark), which drawing libraries write into every element. The page is well-formed XML too,
//! so a test can parse it.

mod charts;
mod comparison;
mod heat;
mod machine;
mod markup;
mod page;
mod parts;
mod plot;
mod provenance;
mod tables;
mod zoom;

use std::fmt::Write;

use markup::{escape, pair};
use ssdyno_figures::{
    Interval, RunResult, bytes_per_second, count, joules, rate, seconds, significant, watts,
};

use crate::intervals::{either_side, plus_minus};
use crate::lines;
use crate::lines::energy;
use crate::text;
pub use comparison::comparison_html;
pub use page::{Page, table};
pub use plot::{Axis, Plot};

/// The page of a run: opens without a network, in light and dark.
pub fn report_html(result: &RunResult) -> String {
    let mut page = head(result);
    tables::warnings(&mut page, result);
    cards(&mut page, result);
    tables::remarks(&mut page, result);
    section(
        &mut page,
        "latency",
        "Latency",
        &[
            tables::latency(result),
            tables::jobs(result),
            tables::hosts(result),
            pair(charts::latency_histogram(result), charts::latency_percentiles(result)),
        ],
    );
    let parts = parts::blocks(result);
    if !parts.is_empty() {
        section(&mut page, "parts", "Where the time goes", &parts);
    }
    let mut time = vec![
        tables::steady(result),
        pair(charts::iops_over_time(result), charts::throughput_over_time(result)),
        pair(charts::latency_over_time(result), heat::latency_heat_map(result)),
        pair(charts::power_over_time(result), String::new()),
    ];
    time.extend(charts::hosts_over_time(result));
    section(&mut page, "time", "Over time", &time);
    if let Some(machine) = &result.machine {
        section(&mut page, "machine", "The machine meanwhile", &machine::blocks(result, machine));
    }
    if !result.systems.is_empty() {
        section(&mut page, "systems", "Machines during the run", &[tables::systems(result)]);
    }
    if !result.metrics.is_empty() {
        section(&mut page, "metrics", "Metrics of other programs", &tables::metrics(result));
    }
    let energy = [charts::energy_by_part(result), tables::energy(result), tables::packages(result)];
    inside(&mut page, result, "energy", "Energy by part", &energy);
    inside(&mut page, result, "busy", "Busy share of every part", &charts::busy(result));
    if result.host.is_some() {
        let blocks = [pair(tables::host(result), tables::host_cores(result))];
        let blocks = [blocks[0].clone(), tables::namespaces(result)];
        section(&mut page, "host", "Host", &blocks);
    }
    if let Some(faults) = &result.faults {
        section(&mut page, "faults", lines::faults::title(faults), &[tables::faults(result)]);
    }
    inside(&mut page, result, "flash", "Flash", &[charts::victims(result), tables::flash(result)]);
    inside(&mut page, result, "expected", "Expected and measured", &[tables::expected(result)]);
    section(&mut page, "invariants", "Invariants", &[tables::invariants(result)]);
    section(&mut page, "confidence", "Confidence", &[tables::confidence(result)]);
    section(&mut page, "configuration", "Configuration", &[tables::configuration(result)]);
    let provenance = provenance::tables(result);
    if !provenance.is_empty() {
        section(&mut page, "provenance", "Provenance", &provenance);
    }
    page::finished(page)
}

/// A section; an empty section says so, so that no reader searches for it in vain.
fn section(page: &mut String, id: &str, title: &str, blocks: &[String]) {
    let _ = writeln!(page, "<section id=\"{id}\"><h2>{title}</h2>");
    if blocks.iter().all(String::is_empty) {
        page.push_str("<p class=\"none\">not available for this run</p>\n");
    }
    for block in blocks {
        page.push_str(block);
    }
    page.push_str("</section>\n");
}

/// A section about the inside of a device, which is invisible for a real device: it is left out if it is empty.
fn inside(page: &mut String, result: &RunResult, id: &str, title: &str, blocks: &[String]) {
    let real = result.simulated_requests_per_wall_second.is_none();
    if !real || !blocks.iter().all(String::is_empty) {
        section(page, id, title, blocks);
    }
}

fn head(r: &RunResult) -> String {
    let mut facts = vec![format!("workload <b>{}</b>", escape(&r.workload))];
    facts.extend(r.seed.map(|s| format!("seed {s}")));
    facts.push(text::requests(r.requests));
    if r.errors > 0 {
        let errors = if r.errors == 1 { "error" } else { "errors" };
        facts.push(format!("<b class=\"bad\">{} {errors}</b>", count(r.errors)));
    }
    let measured = || format!("{} measured", seconds(r.simulated_seconds));
    facts.push(text::simulated(r).unwrap_or_else(measured));
    let partial = match r.partial {
        true => " <span class=\"badge\">partial: the run was cut short</span>",
        false => "",
    };
    let title = escape(&format!("{} - {}", r.target, r.workload));
    let heading = escape(&r.target) + partial;
    page::begin(&title, &heading, &facts.join(" · "))
}

fn cards(page: &mut String, r: &RunResult) {
    page.push_str("<section id=\"figures\" class=\"cards\">\n");
    let mut card = |name: &str, value: String, detail: &str| {
        let _ = writeln!(
            page,
            "<div class=\"card\"><span>{name}</span><b>{value}</b><small>{detail}</small></div>"
        );
    };
    let confidence = lines::latency::believed(r);
    let within = |interval: Option<Interval>| plus_minus(interval).trim_start().to_owned();
    card("IOPS", text::rate_of(r, r.iops, rate), &within(confidence.and_then(|c| c.iops)));
    let throughput = text::rate_of(r, r.throughput_bytes_per_second, bytes_per_second);
    let interval = confidence.and_then(|c| c.throughput_bytes_per_second);
    card("Throughput", throughput, &within(interval));
    if let Some(latency) = &r.latency_ns {
        let (l, c) = (&latency.all, confidence.map(|c| c.latency_ns.all).unwrap_or_default());
        let between = |i: Option<Interval>| i.as_ref().map(either_side).unwrap_or_default();
        let [mean, p50, _, p99, p99_9, max] = lines::latency::texts(l, r.requests);
        card("Mean latency", mean, &within(c.mean));
        card("p50", p50, &between(c.p50));
        card("p99", p99, &between(c.p99));
        card("p99.9", p99_9, &between(c.p99_9));
        card("Max", max, "");
    }
    if let Some(amplification) = r.write_amplification {
        let interval = within(confidence.and_then(|all| all.write_amplification));
        card("Write amplification", significant(amplification, 4), &interval);
    }
    if let Some(e) = energy::energy_used(r) {
        let interval = confidence.and_then(|all| all.energy_joules_per_request);
        let mut above = match within(interval) {
            interval if interval.is_empty() => energy::above_idle(&e),
            interval => format!("{interval}, {}", energy::above_idle(&e)),
        };
        if let Some(product) = lines::latency::energy_delay(r) {
            above += &format!(", {product}");
        }
        card("Energy per request", e.per_request.map_or("-".into(), joules), &above);
        if let Some(power) = energy::mean_power(r, e.total) {
            let of = energy::settling(r, "the energy").map(|whole| format!("; {whole}"));
            let of = of.unwrap_or_default();
            card("Mean power", watts(power), &format!("{} in total{of}", joules(e.total)));
        }
    }
    page.push_str("</section>\n");
}

#[cfg(test)]
mod tests {
    #[test]
    fn nothing_escapes() {
        assert_eq!(super::escape("<b a=\"1\">&\u{1}"), "&lt;b a=&quot;1&quot;&gt;&amp;\u{FFFD}");
    }
}
