//! Exact percentiles from rows, without sorting them.

use std::io;

use ssdyno_block::Op;
use ssdyno_figures::Histogram;

use crate::rows::Rows;

/// Shares that a [`Latency`](ssdyno_figures::Latency) prints.
pub(crate) const SHARES: [f64; 4] = [0.50, 0.95, 0.99, 0.999];

/// The latencies asked for: of one operation, or of all together.
#[derive(Clone, Debug)]
pub(crate) struct Wanted<'a> {
    pub(crate) op: Option<Op>,
    pub(crate) histogram: &'a Histogram,
    /// Ranks, 1 to the total of the histogram.
    pub(crate) ranks: Vec<u64>,
}

impl Wanted<'_> {
    /// The latencies from the histogram.
    pub(crate) fn estimated(&self) -> Vec<f64> {
        self.ranks.iter().map(|rank| self.histogram.value_at(*rank).unwrap_or(0.0)).collect()
    }
}

/// Buckets up to this wide are counted nanosecond by nanosecond, wider ones collected and sorted.
// A bucket of 4096 ns counted by the nanosecond needs 32 KiB for each operation. Wider buckets
// are rare and their latencies few, so collecting those costs less.
const COUNTED_NS: u64 = 1 << 12;

/// Most latencies that are collected for one bucket, of all operations; where more lie in it, it is counted, in steps as
/// fine as [`STEPS`] of them are.
const COLLECTED_MOST: u64 = 1 << 20;
const STEPS: u64 = 1 << 16;

/// Buckets up to this far below and above one are looked at with it, if they are no wider.
const AROUND_NS: u64 = 1 << 10;

/// One histogram bucket whose latencies are looked at one by one.
struct Probe {
    bucket: usize,
    /// The first latency of the bucket.
    low_ns: u64,
    /// Nanoseconds of a step.
    step_ns: u64,
    /// By operation: how often the latencies of each step of the bucket occur; empty where they are collected.
    counts: [Vec<u64>; 4],
    /// How many are collected.
    collected: u64,
    /// By operation: the latencies of a wide bucket.
    values: [Vec<u64>; 4],
}

impl Probe {
    /// Of `bucket`.
    fn new(bucket: usize) -> Probe {
        let (low_ns, past_ns) = Histogram::bounds(bucket);
        let width = past_ns - low_ns;
        let steps = if width <= COUNTED_NS { width } else { 0 };
        Probe {
            bucket,
            low_ns,
            step_ns: 1,
            counts: std::array::from_fn(|_| vec![0; steps as usize]),
            collected: 0,
            values: Default::default(),
        }
    }

    /// Collects `count` latencies of a wide bucket, as long as they are few.
    #[cold]
    fn collect(&mut self, op: Op, latency_ns: u64, count: u64) {
        // The rows of all operations pass here, whichever operation was requested. Only their sum
        // keeps memory bounded.
        self.collected = self.collected.saturating_add(count);
        if self.collected <= COLLECTED_MOST {
            self.values[op as usize].extend((0..count).map(|_| latency_ns));
            return;
        }
        let (low_ns, past_ns) = Histogram::bounds(self.bucket);
        let width = past_ns - low_ns;
        self.step_ns = width.div_ceil(STEPS);
        for (counts, values) in self.counts.iter_mut().zip(&mut self.values) {
            *counts = vec![0; STEPS.min(width) as usize];
            for value in std::mem::take(values) {
                counts[((value - low_ns) / self.step_ns) as usize] += 1;
            }
        }
        self.add(op, latency_ns, count);
    }

    #[inline]
    fn add(&mut self, op: Op, latency_ns: u64, count: u64) {
        let at = ((latency_ns - self.low_ns) / self.step_ns) as usize;
        match self.counts[op as usize].get_mut(at) {
            Some(counted) => *counted += count,
            None => self.collect(op, latency_ns, count),
        }
    }

    /// The latency of `rank`, counted from 1, among those of one operation or of all.
    fn pick(&self, op: Option<Op>, rank: u64) -> Option<f64> {
        let ops = op.map_or(0..4, |op| op as usize..op as usize + 1);
        if self.counts[0].is_empty() {
            let mut values = self.values[ops].concat();
            let at = usize::try_from(rank.checked_sub(1)?).ok()?;
            // Selecting one rank takes linear time. Sorting all latencies of the bucket would do
            // more than was asked for.
            return (at < values.len()).then(|| *values.select_nth_unstable(at).1 as f64);
        }
        let mut seen = 0;
        let at = (0..self.counts[0].len()).find(|at| {
            seen += self.counts[ops.clone()].iter().map(|counts| counts[*at]).sum::<u64>();
            seen >= rank
        })?;
        // The middle of a step, which is the latency itself where a step is a nanosecond.
        Some((self.low_ns + at as u64 * self.step_ns + (self.step_ns - 1) / 2) as f64)
    }
}

/// Finds exact latencies, and keeps the results of a pass over the rows.
pub(crate) struct Exact<'a> {
    rows: &'a Rows,
    probes: Vec<Probe>,
    /// Why rows could not be read.
    error: Option<io::Error>,
}

impl<'a> Exact<'a> {
    pub(crate) fn new(rows: &'a Rows) -> Exact<'a> {
        Exact { rows, probes: Vec::new(), error: None }
    }

    /// The reason why rows could not be read, if any: the figures then have the resolution of the
    /// histograms.
    pub(crate) fn error(&self) -> Option<&io::Error> {
        self.error.as_ref()
    }

    /// The exact latencies in ns at the wanted ranks, in the order of `wanted`: the histogram gives the bucket of a
    /// rank, and only rows of that bucket are read. Rows that ended in an error do not count; those that never
    /// completed do, and are in the histograms. This takes one pass over the rows, or none if earlier passes already
    /// found the values. If a bucket of 8 ms or more contains more than [`COLLECTED_MOST`] rows, latencies are exact to
    /// 1/65536 of the bucket, which is less than a millionth: memory has a bound for any number of rows.
    pub(crate) fn find(&mut self, wanted: &[Wanted<'_>]) -> Vec<Vec<f64>> {
        let mut places: Vec<Vec<Option<(usize, u64)>>> = Vec::new();
        // Probes of earlier questions keep their counts. Only new ones need a pass over the
        // rows, which may be gigabytes in a file.
        let known = self.probes.len();
        for want in wanted {
            let place = |rank: &u64| {
                let (bucket, below) = want.histogram.locate(*rank)?;
                Some((self.probe(bucket), rank - below))
            };
            places.push(want.ranks.iter().map(place).collect());
        }
        if self.error.is_none() {
            self.error = self.gather(known).err();
        }
        // A row file that cannot be read must not cost the figures of the run. The histograms
        // have them to within 0.4 %.
        if self.error.is_some() {
            return wanted.iter().map(Wanted::estimated).collect();
        }
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

    /// The probe of `bucket`. A new bucket brings the buckets around it, as far as they are cheap: the bounds of an
    /// interval around this figure come next, and save a pass there.
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
    fn gather(&mut self, known: usize) -> io::Result<()> {
        /// No probe looks at this bucket.
        const NONE: u16 = u16::MAX;
        let probes = &mut self.probes[known..];
        let Some(last) = probes.iter().map(|p| p.bucket).max() else { return Ok(()) };
        let mut probe_of = vec![NONE; last + 1];
        for (index, probe) in probes.iter().enumerate() {
            probe_of[probe.bucket] = index as u16;
        }
        self.rows.for_each_latency(|op, latency_ns, count| {
            if let Some(&index) = probe_of.get(Histogram::bucket(latency_ns))
                && index != NONE
            {
                probes[usize::from(index)].add(op, latency_ns, count);
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use ssdyno_block::{Request, Status};

    use super::*;
    use crate::rows::Row;

    /// More latencies in one wide bucket than are collected: memory has a bound, and the figure is within a
    /// millionth.
    #[test]
    fn a_crowded_bucket_is_counted_in_steps() {
        let bucket = Histogram::bucket(1_000_000_000);
        let (low_ns, past_ns) = Histogram::bounds(bucket);
        let mut probe = Probe::new(bucket);
        let step = (past_ns - low_ns) / 1_000;
        (0..1_000).for_each(|i| probe.add(Op::Write, low_ns + i * step, 2_000));
        assert!(probe.values.iter().all(Vec::is_empty));
        for rank in [1, 999_999, 2_000_000] {
            let want = (low_ns + (rank - 1) / 2_000 * step) as f64;
            let off = probe.pick(Some(Op::Write), rank).unwrap() / want - 1.0;
            assert!(off.abs() < 1e-6, "{rank}: {off}");
        }
        assert_eq!(probe.pick(None, 2_000_001), None);
    }

    /// Few reads and very many writes lie in the bucket that a percentile of the reads asks for.
    #[test]
    fn latencies_of_other_operations_do_not_fill_the_memory() {
        let bucket = Histogram::bucket(1_000_000_000);
        let (low_ns, _) = Histogram::bounds(bucket);
        let mut probe = Probe::new(bucket);
        for at in 0..100 {
            probe.add(Op::Read, low_ns + at, 1);
            probe.add(Op::Write, low_ns + 1_000 + at, COLLECTED_MOST / 10);
        }
        let kept: usize = probe.values.iter().map(Vec::len).sum();
        assert!(kept as u64 <= COLLECTED_MOST, "{kept}");
        let off = probe.pick(Some(Op::Read), 50).unwrap() / (low_ns + 49) as f64 - 1.0;
        assert!(off.abs() < 1e-6, "{off}");
        let many = COLLECTED_MOST / 10 * 100;
        let last = probe.pick(None, 100 + many).unwrap() / (low_ns + 1_099) as f64 - 1.0;
        assert!(last.abs() < 1e-6 && probe.pick(None, 101 + many).is_none(), "{last}");
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
                rows.strip(0).push(&Row::punctual(&request, 0, v * scale, status));
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
