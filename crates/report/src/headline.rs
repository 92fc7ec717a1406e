//! The figures of a run that a comparison and a table of many runs are made of.

use ssdyno_figures::{
    Interval, RunResult, bytes_per_second, joule_seconds, joules, nanoseconds, rate, significant,
};

use crate::lines::latency::bounded;

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
    /// Whether the true value can only be greater, because requests never completed.
    pub is_lower_bound: bool,
}

impl HeadlineFigure {
    /// The figure with its unit, and with `≥` where it is a lower bound.
    pub fn text(&self) -> String {
        figure_text(self.name, self.value, self.is_lower_bound)
    }
}

/// Every name that [`headline_figures`] can give, and how the figure counts.
pub const HEADLINES: [(&str, FigureKind); 11] = [
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
    ("host.cpu_ns_per_request", FigureKind::Cost),
];

/// The figures that `result` has, in the order of [`HEADLINES`]. A run without a latency, an energy model or writes has
/// fewer.
pub fn headline_figures(result: &RunResult) -> Vec<HeadlineFigure> {
    HEADLINES
        .iter()
        .filter_map(|&(name, kind)| {
            let (value, interval) = pick(result, name)?;
            let is_lower_bound = is_lower_bound(result, name);
            Some(HeadlineFigure { name, kind, value, interval, is_lower_bound })
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
        "energy_joules.per_request" => {
            let interval = confidence.and_then(|all| all.energy_joules_per_request);
            (result.energy_joules?.per_request?, interval)
        }
        "energy_delay_joule_seconds" => {
            let each = confidence.and_then(|all| all.energy_joules_per_request);
            let delay = confidence.and_then(|all| all.latency_ns.all.mean);
            let value = result.energy_delay_joule_seconds?;
            (value, each.zip(delay).and_then(|(each, delay)| product(value, each, delay)))
        }
        "write_amplification" => {
            let interval = confidence.and_then(|all| all.write_amplification);
            (result.write_amplification?, interval)
        }
        "host.cpu_ns_per_request" => {
            let interval = confidence.and_then(|all| all.host_cpu_ns_per_request);
            // Without a request that completed, the work is that for failed requests alone.
            let host = result.host.as_ref().filter(|_| result.requests > 0)?;
            (host.cpu_ns_per_request, interval)
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

/// Whether requests that never completed make a lower bound of the figure `name`.
fn is_lower_bound(result: &RunResult, name: &str) -> bool {
    let all = result.latency_ns.as_ref().map(|latency| latency.all.lower_bounds());
    let [mean, p50, p95, p99, p99_9, _] = all.unwrap_or_default();
    match name {
        "latency_ns.mean" | "energy_delay_joule_seconds" => mean,
        "latency_ns.p50" => p50,
        "latency_ns.p95" => p95,
        "latency_ns.p99" => p99,
        "latency_ns.p99_9" => p99_9,
        _ => false,
    }
}

/// A value of the figure `name` with its unit, and with `≥` where it is a lower bound.
pub fn figure_text(name: &str, value: f64, is_lower_bound: bool) -> String {
    bounded(is_lower_bound, figure_format(name)(value))
}

/// How a value of the figure `name` is shown, with its unit.
pub fn figure_format(name: &str) -> fn(f64) -> String {
    match name {
        "iops" => rate,
        "throughput_bytes_per_second" => bytes_per_second,
        "host.cpu_ns_per_request" => nanoseconds,
        name if name.starts_with("latency_ns") => nanoseconds,
        name if name.starts_with("energy_joules") => joules,
        "energy_delay_joule_seconds" => joule_seconds,
        _ => |value| significant(value, 4),
    }
}

/// The interval of a product. Both factors are of one run: slow requests also take more energy. So the bounds are
/// those of the factors multiplied, which hold however the factors depend on each other.
fn product(estimate: f64, one: Interval, other: Interval) -> Option<Interval> {
    // A device without an energy model takes 0 J: there is no share of that.
    if one.estimate <= 0.0 || other.estimate <= 0.0 {
        return None;
    }
    let share = |bound: fn(&Interval) -> f64| {
        estimate * (bound(&one) / one.estimate) * (bound(&other) / other.estimate)
    };
    Some(Interval { estimate, low: share(|i| i.low), high: share(|i| i.high), level: one.level })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bounds_of_a_product_are_those_of_its_factors_multiplied() {
        let around = |estimate: f64, half: f64| Interval {
            estimate,
            low: estimate * (1.0 - half),
            high: estimate * (1.0 + half),
            level: 0.95,
        };
        let both = product(6.0, around(2.0, 0.1), around(3.0, 0.2)).unwrap();
        assert!((both.low - 6.0 * 0.9 * 0.8).abs() < 1e-12, "{both:?}");
        assert!((both.high - 6.0 * 1.1 * 1.2).abs() < 1e-12, "{both:?}");
        assert_eq!(product(0.0, around(0.0, 0.0), around(3.0, 0.2)), None);
    }
}
