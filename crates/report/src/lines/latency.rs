//! Latencies as text.

use ssdyno_figures::{Latency, nanoseconds};

/// Mean, the percentiles and the largest latency as they are told: with `≥` where they are lower bounds.
pub(crate) fn texts(latency: &Latency) -> [String; 6] {
    let text = |value: f64, at_most: Option<f64>| {
        let is_bound = latency.at_most.is_some() && at_most != Some(value);
        format!("{}{}", if is_bound { "≥ " } else { "" }, nanoseconds(value))
    };
    let most = latency.at_most.unwrap_or_default();
    [
        text(latency.mean, None),
        text(latency.p50, most.p50),
        text(latency.p95, most.p95),
        text(latency.p99, most.p99),
        text(latency.p99_9, most.p99_9),
        text(latency.max, None),
    ]
}
