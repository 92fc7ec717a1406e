//! The figures of a run that a comparison and a table of many runs are made of.

use ssdyno_figures::{
    Interval, RunResult, bytes_per_second, joule_seconds, joules, nanoseconds, rate, significant,
};

/// How a figure counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FigureKind {
    /// Work per second: more is better.
    Rate,
    /// Time of a request: less is better.
    Latency,
    /// Energy or wear for the same work: less is better.
    Cost,
}

impl FigureKind {
    /// Whether a greater value is better.
    pub fn more_is_better(self) -> bool {
        self == FigureKind::Rate
    }
}

/// A figure of a run that runs are compared by.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct HeadlineFigure {
    /// The path of its key in `result.json`: `iops`, `latency_ns.p99`. The unit is the last part of the path that has
    /// one.
    pub name: &'static str,
    /// How it counts.
    pub kind: FigureKind,
    /// The figure.
    pub value: f64,
    /// Bounds of the true value, where the run is long enough.
    pub interval: Option<Interval>,
}

/// Every name that [`headline_figures`] can give, and how the figure counts.
pub const HEADLINES: [(&str, FigureKind); 10] = [
    ("iops", FigureKind::Rate),
    ("throughput_bytes_per_second", FigureKind::Rate),
    ("latency_ns.mean", FigureKind::Latency),
    ("latency_ns.p50", FigureKind::Latency),
    ("latency_ns.p95", FigureKind::Latency),
    ("latency_ns.p99", FigureKind::Latency),
    ("latency_ns.p99_9", FigureKind::Latency),
    ("energy_joules.per_request", FigureKind::Cost),
    ("energy_delay_joule_seconds", FigureKind::Cost),
    ("write_amplification", FigureKind::Cost),
];

/// The figures that `result` has, in the order of [`HEADLINES`]. A run without a latency, an energy model or writes has
/// fewer.
pub fn headline_figures(result: &RunResult) -> Vec<HeadlineFigure> {
    HEADLINES
        .iter()
        .filter_map(|&(name, kind)| {
            let (value, interval) = pick(result, name)?;
            Some(HeadlineFigure { name, kind, value, interval })
        })
        .collect()
}

fn pick(result: &RunResult, name: &str) -> Option<(f64, Option<Interval>)> {
    let confidence = result.confidence.as_ref();
    Some(match name {
        "iops" => (result.iops, confidence.and_then(|all| all.iops)),
        "throughput_bytes_per_second" => {
            let interval = confidence.and_then(|all| all.throughput_bytes_per_second);
            (result.throughput_bytes_per_second, interval)
        }
        "energy_joules.per_request" => (result.energy_joules?.per_request?, None),
        "energy_delay_joule_seconds" => (result.energy_delay_joule_seconds?, None),
        "write_amplification" => {
            let value = result.write_amplification?;
            (value, write_amplification_interval(result, value))
        }
        _ => {
            let latency = result.latency_ns.as_ref()?.all;
            let [mean, p50, p95, p99, p99_9] =
                confidence.map(|all| all.latency_ns.all).unwrap_or_default().list();
            match name.strip_prefix("latency_ns.")? {
                "mean" => (latency.mean, mean),
                "p50" => (latency.p50, p50),
                "p95" => (latency.p95, p95),
                "p99" => (latency.p99, p99),
                "p99_9" => (latency.p99_9, p99_9),
                _ => return None,
            }
        }
    })
}

/// How a value of the figure `name` is shown, with its unit.
pub fn figure_format(name: &str) -> fn(f64) -> String {
    match name {
        "iops" => rate,
        "throughput_bytes_per_second" => bytes_per_second,
        name if name.starts_with("latency_ns") => nanoseconds,
        name if name.starts_with("energy_joules") => joules,
        "energy_delay_joule_seconds" => joule_seconds,
        _ => |value| significant(value, 4),
    }
}

/// 95 % of a normal distribution lie within so many standard deviations.
const NORMAL_95: f64 = 1.96;

/// Bounds of a write amplification `wa` = 1 / (1 - v), where v is the mean share of valid pages in the blocks that were
/// cleaned. Over E erases the standard error of v is at most sqrt(v (1 - v) / E), that of shares of which each is 0 or 1
/// (Bernoulli), as long as victims are independent; so that of `wa` is at most wa sqrt((wa - 1) / E). Without erases
/// nothing is known.
fn write_amplification_interval(result: &RunResult, wa: f64) -> Option<Interval> {
    let erases = result.flash_operations.as_ref()?.erases;
    if erases == 0 || wa < 1.0 {
        return None;
    }
    let half = NORMAL_95 * wa * ((wa - 1.0) / erases as f64).sqrt();
    // Less than one program for each write is impossible where nothing is trimmed or merged in the buffer.
    let low = (wa - half).max(1.0_f64.min(wa));
    Some(Interval { estimate: wa, low, high: wa + half, level: ssdyno_figures::LEVEL })
}
