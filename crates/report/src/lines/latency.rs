//! Latencies as text.

use ssdyno_figures::{Confidence, Latency, RunResult, WarningKind, joule_seconds, nanoseconds};

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
