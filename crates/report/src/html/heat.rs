//! Latency over time as a heat map: a cell for each stretch of time and band of latency, the stronger the more requests.

use ssdyno_figures::{LatencyMap, RunResult, nanoseconds, seconds, things};

use super::charts::{ns_tick, time_axis};
use super::plot::{Axis, Plot};

/// The picture; empty without a map.
pub(super) fn latency_heat_map(r: &RunResult) -> String {
    let Some(map) = r.latency_map.as_ref().filter(|map| !map.bands.is_empty()) else {
        return String::new();
    };
    let (from, to) = (map.bands[0].from_ns.max(1) as f64, map.bands[map.bands.len() - 1].to_ns);
    let y = Axis::logarithmic("latency", from, to as f64, ns_tick);
    let mut plot = Plot::new("Latency over time: how many requests took how long", time_axis(r), y);
    let most = map.bands.iter().flat_map(|band| &band.counts).copied().max().unwrap_or(1);
    for band in &map.bands {
        let (low, high) = (band.from_ns.max(1) as f64, band.to_ns as f64);
        for (column, count) in band.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            let (start, end) = stretch(map, column);
            let outline = [(start, low), (start, high), (end, high), (end, low)];
            let [low, high] = [low, high].map(nanoseconds);
            let title = format!(
                "{} to {}, {low} to {high}: {}",
                seconds(start),
                seconds(end),
                things(*count, "request")
            );
            // A few requests of the tail are to be seen beside millions of others: by the logarithm.
            let strength = (1.0 + *count as f64).ln() / (1.0 + most as f64).ln();
            plot.cell("heat", &outline, strength, &title);
        }
    }
    plot.name(
        "heat",
        &format!("up to {} in a cell, on a logarithmic scale", things(most, "request")),
    );
    plot.finish()
}

/// When a column begins and ends.
fn stretch(map: &LatencyMap, column: usize) -> (f64, f64) {
    let end = map.start_seconds.get(column + 1).copied().unwrap_or(map.end_seconds);
    (map.start_seconds[column], end)
}
