//! Latencies as text.

use ssdyno_figures::{Latency, nanoseconds};

/// Requests without which a percentile is the largest latency.
const LEAST: [u64; 6] = [1, 1, 20, 100, 1_000, 1];

/// Mean, the percentiles and the largest latency of so many requests as they are told: with `≥` where they
/// are lower bounds, `too few` where that many requests have no such percentile.
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
