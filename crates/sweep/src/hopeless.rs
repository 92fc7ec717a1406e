//! Designs that surely break a bound: which are not run, and which end early.

use ssdyno_figures::{BrokenBound, FigureBound, Interval, Metric};
use ssdyno_report::figure_format;

use crate::objective::Requirement;
use crate::plan::SweepPlan;

/// What a run can be watched for; `None` of figures that are known at its end only.
pub(crate) fn watched(bound: &Requirement) -> Option<FigureBound> {
    let metric = match bound.figure() {
        "latency_ns.mean" => Metric::Mean,
        "latency_ns.p50" => Metric::P50,
        "latency_ns.p95" => Metric::P95,
        "latency_ns.p99" => Metric::P99,
        "latency_ns.p99_9" => Metric::P99_9,
        "iops" => Metric::Iops,
        "throughput_bytes_per_second" => Metric::Throughput,
        _ => return None,
    };
    Some(FigureBound { metric, is_below: bound.holds(f64::NEG_INFINITY), bound: bound.bound() })
}

/// The bound for which a design of these costs, by name, needs no run: it is not to be on the front.
pub(crate) fn ruled_out<'a>(
    plan: &'a SweepPlan,
    costs: &[(&'static str, f64)],
) -> Option<&'a Requirement> {
    // A bisection and `run_hopeless` want every figure. Only then is
    // the cost no reason to skip a run.
    let costs = if plan.stops_hopeless() { costs } else { &[] };
    let breaks = |bound: &&Requirement| {
        costs.iter().any(|(name, cost)| bound.figure() == *name && !bound.holds(*cost))
    };
    plan.require.iter().find(breaks)
}

/// Why a run ended early.
pub(crate) fn stopped_because(bound: &Requirement, broken: &BrokenBound) -> String {
    let show = figure_format(bound.figure());
    let Interval { low, .. } = broken.interval;
    let interval = match broken.interval.upper() {
        Some(high) => format!("between {} and {}", show(low), show(high)),
        None => format!("at least {}", show(low)),
    };
    format!(
        "stopped early: after {} requests `{bound}` is broken: {interval} with 95 % confidence",
        broken.requests
    )
}
