//! Latencies as text.

use ssdyno_figures::{
    Confidence, Interval, Latency, LatencyByOp, LatencyIntervals, RunResult, WarningKind,
    joule_seconds, nanoseconds,
};

use crate::intervals::either_side;

/// Requests without which a percentile is the largest latency.
const LEAST: [u64; 6] = [1, 1, 20, 100, 1_000, 1];

/// Mean, percentiles and largest latency of this number of requests, as text: with `≥` for lower bounds, and `too few`
/// if this number of requests does not determine the percentile.
pub(crate) fn texts(latency: &Latency, requests: u64) -> [String; 6] {
    let values = [latency.mean, latency.p50, latency.p95, latency.p99, latency.p99_9, latency.max];
    let bounds = latency.lower_bounds();
    let mut texts: [String; 6] =
        std::array::from_fn(|at| bounded(bounds[at], nanoseconds(values[at])));
    for (text, least) in texts.iter_mut().zip(LEAST) {
        // Lower bounds are of more requests than completed.
        if requests < least && latency.at_most.is_none() {
            "too few".clone_into(text);
        }
    }
    texts
}

/// `text` of a figure, with its interval on a line below it.
pub(crate) fn with_interval(text: String, interval: Option<Interval>) -> String {
    match interval {
        Some(interval) => format!("{text}\n{}", either_side(&interval)),
        None => text,
    }
}

/// Mean, median, 99th and 99.9th percentile and maximum, with their intervals, for the columns of a table.
pub(crate) fn columns(
    latency: Option<&LatencyByOp>,
    requests: u64,
    around: LatencyIntervals,
) -> [String; 5] {
    let Some(latency) = latency else { return std::array::from_fn(|_| "-".to_owned()) };
    let [mean, p50, _, p99, p99_9, max] = texts(&latency.all, requests);
    [
        with_interval(mean, around.mean),
        with_interval(p50, around.p50),
        with_interval(p99, around.p99),
        with_interval(p99_9, around.p99_9),
        max,
    ]
}

/// The latencies of one kind of request.
pub(crate) struct NamedLatency {
    pub(crate) name: &'static str,
    pub(crate) requests: u64,
    pub(crate) latency: Latency,
    pub(crate) intervals: LatencyIntervals,
}

/// The latencies of all requests, and those of each operation that the run has; `None` if no request completed.
pub(crate) fn of_requests(r: &RunResult) -> Option<(NamedLatency, Vec<NamedLatency>)> {
    let (latency, n) = (r.latency_ns.as_ref()?, &r.requests_by_op);
    let around = believed(r).map(|all| all.latency_ns).unwrap_or_default();
    let by_op = [
        ("read", n.read, latency.read, around.read),
        ("write", n.write, latency.write, around.write),
        ("trim", n.trim, latency.trim, around.trim),
        ("flush", n.flush, latency.flush, around.flush),
    ];
    let by_op = by_op.into_iter().filter_map(|(name, requests, latency, intervals)| {
        let intervals = intervals.unwrap_or_default();
        Some(NamedLatency { name, requests, latency: latency?, intervals })
    });
    let (requests, latency, intervals) = (r.requests, latency.all, around.all);
    Some((NamedLatency { name: "all", requests, latency, intervals }, by_op.collect()))
}

/// The latencies of all requests inside the device, with the `name` that the table gives to them.
pub(crate) fn inside_device(r: &RunResult, name: &'static str) -> Option<NamedLatency> {
    let (requests, latency) = (r.requests, r.device_latency_ns?);
    let intervals = believed(r).map(|all| all.device_latency_ns).unwrap_or_default();
    Some(NamedLatency { name, requests, latency, intervals })
}

/// `text` of a figure, with the sign of a lower bound where it is one.
pub(crate) fn bounded(is_lower_bound: bool, text: String) -> String {
    if is_lower_bound { format!("≥ {text}") } else { text }
}

/// `energy x delay` of a run: a lower bound where its mean latency is one.
pub(crate) fn energy_delay(r: &RunResult) -> Option<String> {
    let delay = r.latency_ns.as_ref().map(|latency| latency.all.lower_bounds()[0]);
    let text = joule_seconds(r.energy_delay_joule_seconds?);
    Some(format!("energy x delay {}", bounded(delay.unwrap_or_default(), text)))
}

/// The intervals of a run, where a warning does not deny them: those of a load without a level would claim one.
pub(crate) fn believed(r: &RunResult) -> Option<&Confidence> {
    let denied = r.warns_of_unsteadiness() || r.warns_of(WarningKind::Overloaded);
    r.confidence.as_ref().filter(|_| !denied)
}

#[cfg(test)]
mod tests {
    use ssdyno_figures::Warning;

    use super::*;

    #[test]
    fn a_run_that_is_not_steady_has_no_intervals() {
        let mut run = RunResult { confidence: Some(Confidence::default()), ..RunResult::default() };
        assert!(believed(&run).is_some());
        run.warnings.push(Warning::new(WarningKind::WarmUp, "warm-up"));
        assert!(believed(&run).is_some());
        run.warnings.push(Warning::new(WarningKind::Overloaded, "overloaded"));
        assert_eq!(believed(&run), None);
    }
}
