//! Lines and rows about hosts, machines and other programs of a run on several hosts.

use ssdyno_figures::{
    HostRun, ProbedSystem, ScrapedMetrics, bytes_per_second, count, percent, rate,
};
use ssdyno_prober::{CpuFractions, DiskRates, KernelActivity, NetworkRates};

use super::latency::texts;

/// A line about it.
pub(crate) fn line(metrics: &ScrapedMetrics) -> String {
    let ScrapedMetrics { source, series, times_seconds, left_out, readings_failed, .. } = metrics;
    let mut line = format!("{source}: {} series, {} readings", series.len(), times_seconds.len());
    if *readings_failed > 0 {
        let why = metrics.last_error.as_deref().unwrap_or("unknown");
        line.push_str(&format!(", {readings_failed} failed ({why})"));
    }
    if *left_out > 0 {
        line.push_str("; more series than 200: name prefixes after `#`");
    }
    line
}

/// Titles of [`system_row`].
pub(crate) const SYSTEM_TITLES: [&str; 8] = [
    "System",
    "CPU",
    "CPU max",
    "interrupts",
    "switches",
    "network in",
    "network out",
    "busiest disk",
];

/// Its means over the whole time as a row of text; `-` is not known.
pub(crate) fn system_row(system: &ProbedSystem) -> Vec<String> {
    let mut row = vec![system.name.clone()];
    let points = &system.system.points;
    let whole = points
        .iter()
        .skip(1)
        .fold(points.first().cloned(), |sum, point| sum.map(|sum| sum.join(point)));
    let Some(whole) = whole else {
        row.extend(std::iter::repeat_n("-".to_owned(), 7));
        return row;
    };
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let mean = &whole.mean;
    let busy = |cpu: &Option<CpuFractions>| cpu.as_ref().map(CpuFractions::busy_fraction);
    // The maxima of the kinds are of different moments, and their sum is of none.
    let busiest = points.iter().filter_map(|point| busy(&point.mean.cpu)).max_by(f64::total_cmp);
    let activity = |figure: fn(&KernelActivity) -> f64| {
        or_dash(mean.activity.as_ref().map(|all| rate(figure(all)) + "/s"))
    };
    // Loopback is no network: a controller of the same machine is on it.
    let cards = || mean.interfaces.iter().filter(|(name, _)| *name != "lo").map(|(_, card)| card);
    let network = |figure: fn(&NetworkRates) -> f64| match cards().next() {
        Some(_) => bytes_per_second(cards().map(figure).sum()),
        // Those without traffic are left out.
        None => "idle".to_owned(),
    };
    let moved = |disk: &DiskRates| disk.read_bytes_per_second + disk.write_bytes_per_second;
    // A sum would count partitions twice.
    let disk = mean.disks.iter().max_by(|(_, a), (_, b)| moved(a).total_cmp(&moved(b)));
    row.extend([
        or_dash(busy(&mean.cpu).map(percent)),
        or_dash(busiest.map(percent)),
        activity(|all| all.interrupts_per_second),
        activity(|all| all.context_switches_per_second),
        network(|card| card.receive_bytes_per_second),
        network(|card| card.transmit_bytes_per_second),
        disk.map_or("idle".to_owned(), |(name, disk)| {
            format!("{name} {}", bytes_per_second(moved(disk)))
        }),
    ]);
    row
}

/// Requests, rates and latencies as a row of text, in the columns of the jobs.
pub(crate) fn host_row(host: &HostRun) -> Vec<String> {
    let mut row = vec![host.name.clone()];
    if host.lost.is_some() {
        row.extend(["lost".to_owned(), "-".to_owned(), "-".to_owned()]);
    } else {
        row.extend([
            count(host.requests),
            rate(host.iops),
            bytes_per_second(host.throughput_bytes_per_second),
        ]);
    }
    match &host.latency_ns {
        Some(latency) => {
            let [mean, p50, _, p99, p99_9, max] = texts(&latency.all, host.requests);
            row.extend([mean, p50, p99, p99_9, max]);
        }
        None => row.extend(std::iter::repeat_n("-".to_owned(), 5)),
    }
    row
}
