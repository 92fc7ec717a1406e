//! Exact percentiles from rows, without sorting them.

use ssdyno_block::Op;

use crate::histogram::Histogram;
use crate::rows::Rows;

/// The latencies asked for: of one operation, or of all together.
#[derive(Clone, Debug)]
pub(crate) struct Wanted<'a> {
    pub(crate) op: Option<Op>,
    pub(crate) histogram: &'a Histogram,
    /// Ranks, 1 to the total of the histogram.
    pub(crate) ranks: Vec<u64>,
}

/// Rank of a share (0 to 1) among `count`: the nearest rank, 1 to `count`.
pub(crate) fn rank(share: f64, count: u64) -> u64 {
    // 0.999 * 1000 is 999.0000000000001 in floating point; the rank is 999.
    ((share * count as f64 * (1.0 - 1e-12)).ceil() as u64).clamp(1, count.max(1))
}

/// One histogram bucket whose latencies are looked at one by one.
struct Probe {
    op: Option<Op>,
    bucket: usize,
    values: Vec<u64>,
}

/// The exact latencies in ns at the wanted ranks, in the order of `wanted`. One pass over the
/// rows: the histogram says in which bucket a rank lies, and only rows of that bucket are sorted.
/// Rows that ended in an error do not count.
pub(crate) fn exact(rows: &Rows, wanted: &[Wanted<'_>]) -> Vec<Vec<f64>> {
    let mut probes: Vec<Probe> = Vec::new();
    let mut places: Vec<Vec<Option<(usize, u64)>>> = Vec::new();
    for want in wanted {
        let place = |rank: &u64| {
            let (bucket, below) = want.histogram.locate(*rank)?;
            let known = probes.iter().position(|p| (p.op, p.bucket) == (want.op, bucket));
            let probe = known.unwrap_or(probes.len());
            if known.is_none() {
                probes.push(Probe { op: want.op, bucket, values: Vec::new() });
            }
            Some((probe, rank - below))
        };
        places.push(want.ranks.iter().map(place).collect());
    }
    gather(rows, &mut probes);
    let mut pick = |place: &Option<(usize, u64)>| {
        let Some((probe, rank)) = *place else { return 0.0 };
        let values = &mut probes[probe].values;
        let at = (rank.max(1) - 1) as usize;
        if at < values.len() { *values.select_nth_unstable(at).1 as f64 } else { 0.0 }
    };
    places.iter().map(|ranks| ranks.iter().map(&mut pick).collect()).collect()
}

fn gather(rows: &Rows, probes: &mut [Probe]) {
    let last = probes.iter().map(|p| p.bucket).max().unwrap_or(0);
    let mut probed = vec![false; last + 1];
    for probe in probes.iter() {
        probed[probe.bucket] = true;
    }
    rows.for_each_ok(|op, latency_ns| {
        let bucket = Histogram::bucket(latency_ns);
        if !probed.get(bucket).is_some_and(|p| *p) {
            return;
        }
        for probe in probes.iter_mut() {
            if probe.bucket == bucket && probe.op.is_none_or(|wanted| wanted == op) {
                probe.values.push(latency_ns);
            }
        }
    });
}

/// For each limit, the share of every one of `batches` equal runs of consecutive rows that does
/// not exceed it. `count` is the number of rows without error.
pub(crate) fn shares_below(
    rows: &Rows,
    limits: &[f64],
    batches: usize,
    count: u64,
) -> Vec<Vec<f64>> {
    let each = (count / batches as u64).max(1);
    let mut shares = vec![vec![0.0; batches]; limits.len()];
    let limits: Vec<u64> = limits.iter().map(|l| *l as u64).collect();
    let mut below = vec![0u64; limits.len()];
    let (mut seen, mut batch) = (0, 0);
    rows.for_each_ok(|_, latency_ns| {
        if batch == batches {
            return;
        }
        for (n, limit) in below.iter_mut().zip(&limits) {
            *n += u64::from(latency_ns <= *limit);
        }
        seen += 1;
        if seen == each {
            for (share, n) in shares.iter_mut().zip(&mut below) {
                share[batch] = *n as f64 / each as f64;
                *n = 0;
            }
            (seen, batch) = (0, batch + 1);
        }
    });
    shares
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use ssdyno_block::{Request, Status, Time};

    use super::*;

    #[test]
    fn nearest_rank() {
        assert_eq!([rank(0.5, 1), rank(0.5, 2), rank(0.5, 3), rank(0.999, 1000)], [1, 1, 2, 999]);
        assert_eq!([rank(0.999, 1001), rank(0.0, 5), rank(1.0, 5)], [1000, 1, 5]);
    }

    proptest! {
        #[test]
        fn equals_sorting(
            values in prop::collection::vec((0u64..5_000, 0usize..3, 0u8..8), 1..400),
            scale in 1u64..1_000_000,
        ) {
            let mut rows = Rows::default();
            let mut all = Histogram::default();
            let mut sorted = Vec::new();
            for (v, op, status) in &values {
                let request = Request { op: Op::ALL[*op], offset_bytes: 0, length_bytes: 512 };
                let status = if *status == 0 { Status::Error } else { Status::Ok };
                rows.push(&request, Time::ZERO, v * scale, status);
                if status == Status::Ok {
                    all.add(v * scale);
                    sorted.push(v * scale);
                }
            }
            sorted.sort_unstable();
            let ranks: Vec<u64> = (1..=sorted.len() as u64).collect();
            let got = exact(&rows, &[Wanted { op: None, histogram: &all, ranks }]);
            let want: Vec<f64> = sorted.iter().map(|v| *v as f64).collect();
            prop_assert_eq!(&got[0], &want);
        }
    }

    #[test]
    fn shares_are_by_batch() {
        let mut rows = Rows::default();
        for i in 0..40 {
            rows.push(&Request::read(0, 512), Time::ZERO, i, Status::Ok);
        }
        let shares = shares_below(&rows, &[14.0], 4, 40);
        assert_eq!(shares, [[1.0, 0.5, 0.0, 0.0]]);
    }
}
