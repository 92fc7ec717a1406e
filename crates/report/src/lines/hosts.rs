//! Lines and rows about hosts, machines and other programs of a run on several hosts.

use ssdyno_block::counted;
use ssdyno_figures::{
    Confidence, HostRun, ProbedSystem, RunResult, ScrapedMetrics, bytes_per_second, count, percent,
    rate,
};
use ssdyno_prober::{CpuFractions, DiskRates, KernelActivity, NetworkRates};

use super::latency::{believed, columns, with_interval};

/// Series that are kept of one program at most.
const SERIES_MOST: usize = 200;

/// A line about it.
pub(crate) fn line(metrics: &ScrapedMetrics) -> String {
    let ScrapedMetrics { source, series, times_seconds, left_out, readings_failed, .. } = metrics;
    let mut line = format!("{source}: {} series, {} readings", series.len(), times_seconds.len());
    if *readings_failed > 0 {
        let why = metrics.last_error.as_deref().unwrap_or("unknown");
        line.push_str(&format!(", {readings_failed} failed ({why})"));
    }
    match *left_out {
        0 => {}
        // The other reason to leave series out is that there are too many.
        few if series.len() < SERIES_MOST => {
            let without = counted(few, "series has", "series have");
            line.push_str(&format!("; {without} no finite value"));
        }
        _ => line.push_str("; more than 200 series: name prefixes after `#`"),
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

/// Requests, rates and latencies of each host of `r` as rows of text, in the columns of the jobs: below a figure its interval.
pub(crate) fn host_rows(r: &RunResult) -> Vec<Vec<String>> {
    // If the run has no intervals for a reason, its hosts have none for the same reason.
    let are_believed = believed(r).is_some();
    let row = |host| host_row(host, host.confidence.as_ref().filter(|_| are_believed));
    r.hosts.iter().map(row).collect()
}

fn host_row(host: &HostRun, confidence: Option<&Confidence>) -> Vec<String> {
    let mut row = vec![host.name.clone()];
    if host.lost.is_some() {
        row.extend(["lost".to_owned(), "-".to_owned(), "-".to_owned()]);
    } else {
        let moved = confidence.and_then(|all| all.throughput_bytes_per_second);
        row.extend([
            count(host.requests),
            with_interval(rate(host.iops), confidence.and_then(|all| all.iops)),
            with_interval(bytes_per_second(host.throughput_bytes_per_second), moved),
        ]);
    }
    let around = confidence.map(|all| all.latency_ns.all).unwrap_or_default();
    row.extend(columns(host.latency_ns.as_ref(), host.requests, around));
    row
}

#[cfg(test)]
mod tests {
    use ssdyno_figures::{
        Interval, Latency, LatencyByOp, LatencyIntervals, LatencyIntervalsByOp, Warning,
    };
    use ssdyno_figures::{MetricSeries, WarningKind};

    use super::*;

    #[test]
    fn series_that_are_left_out_have_their_reason() {
        let of = |left_out, count| {
            let series = vec![MetricSeries::default(); count];
            line(&ScrapedMetrics { left_out, series, ..ScrapedMetrics::default() })
        };
        assert!(of(1, 2).ends_with("1 series has no finite value"), "{}", of(1, 2));
        assert!(of(9, SERIES_MOST).contains("more than 200 series"));
        assert!(of(0, 2).ends_with("0 readings"));
    }

    #[test]
    fn a_host_has_its_intervals_below_its_figures() {
        let around = |estimate: f64, side: f64| {
            Some(Interval { estimate, low: estimate - side, high: estimate + side, level: 0.95 })
        };
        let latency = Latency { mean: 1e3, p50: 1e3, p99: 2e3, p99_9: 2e3, ..Latency::default() };
        // The interval of the largest percentile is wider than the figure.
        let intervals = LatencyIntervals {
            mean: around(1e3, 30.0),
            p99_9: around(2e3, 2e3 * 1.5),
            ..LatencyIntervals::default()
        };
        let host = HostRun {
            name: "a".into(),
            requests: 5_000,
            iops: 500.0,
            latency_ns: Some(LatencyByOp { all: latency, ..LatencyByOp::default() }),
            confidence: Some(Confidence {
                iops: around(500.0, 10.0),
                latency_ns: LatencyIntervalsByOp { all: intervals, ..Default::default() },
                ..Confidence::default()
            }),
            ..HostRun::default()
        };
        let mut run = RunResult {
            hosts: vec![host],
            confidence: Some(Confidence::default()),
            ..RunResult::default()
        };
        let row = host_rows(&run).remove(0);
        assert!(row[2].ends_with("\n± 2.0 %") && row[4].ends_with("\n± 3.0 %"), "{row:?}");
        assert!(!row[3].contains('\n') && !row[6].contains('\n'), "{row:?}");
        assert!(row[7].ends_with("\nunknown"), "{row:?}");
        run.warnings.push(Warning::new(WarningKind::NotSteady, "not steady"));
        assert!(host_rows(&run)[0].iter().all(|cell| !cell.contains('\n')));
    }
}
