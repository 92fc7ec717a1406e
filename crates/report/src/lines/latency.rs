//! Latencies as text.

use ssdyno_figures::{Confidence, Latency, RunResult, WarningKind, nanoseconds};

/// Requests without which a percentile is the largest latency.
const LEAST: [u64; 6] = [1, 1, 20, 100, 1_000, 1];

/// Mean, percentiles and largest latency of this number of requests, as text: with `≥` for lower bounds, and `too few`
/// if this number of requests does not determine the percentile.
pub(crate) fn texts(latency: &Latency, requests: u64) -> [String; 6] {
    let text = |value: f64, at_most: Option<f64>| {
        let is_bound = latency.at_most.is_some() && at_most != Some(value);
        format!("{}{}", if is_bound { "≥ " } else { "" }, nanoseconds(value))
    };
    let most = latency.at_most.unwrap_or_default();
    let mut texts = [
        text(latency.mean, None),
        text(latency.p50, most.p50),
        text(latency.p95, most.p95),
        text(latency.p99, most.p99),
        text(latency.p99_9, most.p99_9),
        text(latency.max, None),
    ];
    for (text, least) in texts.iter_mut().zip(LEAST) {
        // Lower bounds are of more requests than completed.
        if requests < least && latency.at_most.is_none() {
            "too few".clone_into(text);
        }
    }
    texts
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
