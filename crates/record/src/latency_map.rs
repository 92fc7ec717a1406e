//! How many requests took how long, over time: a picture of a series.

use std::collections::BTreeMap;

use ssdyno_figures::{Histogram, LatencyBand, LatencyMap};

use crate::sparse::SparseHistogram;

/// Most columns: a page on a phone shows no more.
const COLUMNS: usize = 60;

/// The map of stretches that begin at these seconds and have these latencies; `None` where they are too few for a picture.
pub(crate) fn latency_map(
    stretches: &[(f64, SparseHistogram)],
    end_seconds: f64,
) -> Option<LatencyMap> {
    let together = stretches.len().div_ceil(COLUMNS).max(1);
    let columns: Vec<&[(f64, SparseHistogram)]> = stretches.chunks(together).collect();
    if columns.len() < 2 {
        return None;
    }
    let mut bands = BTreeMap::new();
    for (column, part) in columns.iter().enumerate() {
        for (bucket, count) in part.iter().flat_map(|(_, latencies)| latencies.iter()) {
            let (from_ns, to_ns) = band(bucket);
            let counts = vec![0; columns.len()];
            let band = bands.entry(from_ns).or_insert(LatencyBand { from_ns, to_ns, counts });
            band.counts[column] += count;
        }
    }
    let start_seconds = columns.iter().map(|part| part[0].0).collect();
    let bands: Vec<_> = bands.into_values().collect();
    (!bands.is_empty()).then_some(LatencyMap { start_seconds, end_seconds, bands })
}

/// First and last latency of the quarter of an octave that a bucket is in.
fn band(bucket: usize) -> (u64, u64) {
    let (from, _) = Histogram::bounds(bucket);
    if from < 4 {
        return (from, from + 1);
    }
    // Each of the four bands of an octave is longer than the one before by a quarter at most.
    // The rows of the picture stay few over many octaves.
    let quarter = 1 << (from.ilog2() - 2);
    let start = from / quarter * quarter;
    (start, start.saturating_add(quarter))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_latency_is_in_its_band() {
        for ns in [0, 1, 3, 4, 5, 7, 8, 1_000, 123_456, 98_765_432_100] {
            let (from, to) = band(Histogram::bucket(ns));
            assert!(from <= ns && ns < to, "{ns} is not in {from} to {to}");
            assert!(ns < 8 || to as f64 / from as f64 <= 1.25 + 1e-9, "{from} to {to}");
        }
    }

    #[test]
    fn neighbours_share_a_column_and_nothing_is_lost() {
        let stretch = |at: u32| {
            let mut latencies = SparseHistogram::default();
            latencies.push(Histogram::bucket(1_000) as u16, 2);
            latencies.push(Histogram::bucket(50_000) as u16, 1);
            (f64::from(at), latencies)
        };
        let map = latency_map(&(0..150).map(stretch).collect::<Vec<_>>(), 150.0).unwrap();
        assert_eq!(map.start_seconds.len(), 50);
        assert_eq!((map.start_seconds[1], map.end_seconds), (3.0, 150.0));
        let counts: Vec<_> = map.bands.iter().map(|band| (band.from_ns, band.counts[49])).collect();
        assert_eq!(counts, [(896, 6), (49_152, 3)]);
        assert_eq!(latency_map(&[stretch(0)], 1.0), None);
    }
}
