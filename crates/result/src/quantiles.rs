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

/// Buckets up to this wide are counted nanosecond by nanosecond, wider ones collected and sorted.
const COUNTED_NS: u64 = 1 << 12;

/// Buckets up to this far below and above one are looked at with it, if they are no wider.
const AROUND_NS: u64 = 1 << 10;

/// One histogram bucket whose latencies are looked at one by one.
struct Probe {
    bucket: usize,
    /// The first latency of the bucket.
    low_ns: u64,
    /// By operation: how often each latency of the bucket occurs; empty for a wide one.
    counts: [Vec<u64>; 4],
    /// By operation: the latencies of a wide bucket.
    values: [Vec<u64>; 4],
}

impl Probe {
    fn new(bucket: usize) -> Probe {
        let (low_ns, past_ns) = Histogram::bounds(bucket);
        let width = past_ns - low_ns;
        let counted = if width <= COUNTED_NS { width as usize } else { 0 };
        Probe {
            bucket,
            low_ns,
            counts: std::array::from_fn(|_| vec![0; counted]),
            values: Default::default(),
        }
    }

    #[inline]
    fn add(&mut self, op: Op, latency_ns: u64, count: u64) {
        let at = (latency_ns - self.low_ns) as usize;
        match self.counts[op as usize].get_mut(at) {
            Some(counted) => *counted += count,
            None => self.values[op as usize].extend((0..count).map(|_| latency_ns)),
        }
    }

    /// The latency of `rank`, counted from 1, among those of one operation or of all.
    fn pick(&self, op: Option<Op>, rank: u64) -> Option<f64> {
        let ops = op.map_or(0..4, |op| op as usize..op as usize + 1);
        if self.counts[0].is_empty() {
            let mut values = self.values[ops].concat();
            let at = usize::try_from(rank.checked_sub(1)?).ok()?;
            return (at < values.len()).then(|| *values.select_nth_unstable(at).1 as f64);
        }
        let mut seen = 0;
        let at = (0..self.counts[0].len()).find(|at| {
            seen += self.counts[ops.clone()].iter().map(|counts| counts[*at]).sum::<u64>();
            seen >= rank
        })?;
        Some((self.low_ns + at as u64) as f64)
    }
}

/// Finds exact latencies, and remembers what a pass over the rows told.
pub(crate) struct Exact<'a> {
    rows: &'a Rows,
    probes: Vec<Probe>,
}

impl<'a> Exact<'a> {
    pub(crate) fn new(rows: &'a Rows) -> Exact<'a> {
        Exact { rows, probes: Vec::new() }
    }

    /// The exact latencies in ns at the wanted ranks, in the order of `wanted`: the histogram says in
    /// which bucket a rank lies, and only rows of that bucket are looked at. Rows that ended in an
    /// error do not count. One pass over the rows, or none where earlier ones told enough.
    pub(crate) fn find(&mut self, wanted: &[Wanted<'_>]) -> Vec<Vec<f64>> {
        let mut places: Vec<Vec<Option<(usize, u64)>>> = Vec::new();
        let known = self.probes.len();
        for want in wanted {
            let place = |rank: &u64| {
                let (bucket, below) = want.histogram.locate(*rank)?;
                Some((self.probe(bucket), rank - below))
            };
            places.push(want.ranks.iter().map(place).collect());
        }
        self.gather(known);
        let mut all = Vec::with_capacity(wanted.len());
        for (want, ranks) in wanted.iter().zip(&places) {
            let pick = |place: &Option<(usize, u64)>| {
                let (probe, rank) = (*place)?;
                self.probes[probe].pick(want.op, rank.max(1))
            };
            all.push(ranks.iter().map(|place| pick(place).unwrap_or(0.0)).collect());
        }
        all
    }

    /// The probe of `bucket`. A new one brings those around it, as far as they are cheap: the bounds
    /// of an interval around this figure will be asked for next, and save a pass there.
    fn probe(&mut self, bucket: usize) -> usize {
        if let Some(known) = self.probes.iter().position(|p| p.bucket == bucket) {
            return known;
        }
        let new = self.probes.len();
        self.probes.push(Probe::new(bucket));
        let (low_ns, past_ns) = Histogram::bounds(bucket);
        let around = Histogram::bucket(low_ns.saturating_sub(AROUND_NS))
            ..=Histogram::bucket(past_ns.saturating_add(AROUND_NS));
        for beside in around {
            let (low_ns, past_ns) = Histogram::bounds(beside);
            if past_ns - low_ns <= AROUND_NS && self.probes.iter().all(|p| p.bucket != beside) {
                self.probes.push(Probe::new(beside));
            }
        }
        new
    }

    /// Fills the probes from number `known` on.
    fn gather(&mut self, known: usize) {
        /// No probe looks at this bucket.
        const NONE: u16 = u16::MAX;
        let probes = &mut self.probes[known..];
        let Some(last) = probes.iter().map(|p| p.bucket).max() else { return };
        let mut probe_of = vec![NONE; last + 1];
        for (index, probe) in probes.iter().enumerate() {
            probe_of[probe.bucket] = index as u16;
        }
        self.rows.for_each_ok(|op, latency_ns, count| {
            if let Some(&index) = probe_of.get(Histogram::bucket(latency_ns))
                && index != NONE
            {
                probes[usize::from(index)].add(op, latency_ns, count);
            }
        });
    }
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
            let mut reads = Histogram::default();
            let (mut sorted, mut sorted_reads) = (Vec::new(), Vec::new());
            for (v, op, status) in &values {
                let request = Request { op: Op::ALL[*op], offset_bytes: 0, length_bytes: 512 };
                let status = if *status == 0 { Status::Error } else { Status::Ok };
                rows.push(&request, Time::ZERO, v * scale, status);
                if status == Status::Ok {
                    all.add(v * scale);
                    sorted.push(v * scale);
                }
                if status == Status::Ok && request.op == Op::Read {
                    reads.add(v * scale);
                    sorted_reads.push(v * scale);
                }
            }
            sorted.sort_unstable();
            sorted_reads.sort_unstable();
            let ranks = |values: &[u64]| (1..=values.len() as u64).collect();
            let wanted = [
                Wanted { op: None, histogram: &all, ranks: ranks(&sorted) },
                Wanted { op: Some(Op::Read), histogram: &reads, ranks: ranks(&sorted_reads) },
            ];
            let got = Exact::new(&rows).find(&wanted);
            let want = |values: &[u64]| values.iter().map(|v| *v as f64).collect::<Vec<_>>();
            prop_assert_eq!(&got[0], &want(&sorted));
            prop_assert_eq!(&got[1], &want(&sorted_reads));
        }
    }
}
