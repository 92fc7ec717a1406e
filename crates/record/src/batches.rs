//! Consecutive completions in batches of equal count: what intervals and warm-up are found from.

use serde::{Deserialize, Serialize};
use ssdyno_block::Time;
use ssdyno_figures::{Interval, picoseconds};

use crate::statistics;

/// Completions that follow one another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Batch {
    pub(crate) latency_ps: u128,
    pub(crate) bytes: u64,
    /// Completion of the last one.
    #[serde(with = "picoseconds")]
    pub(crate) end: Time,
}

/// Batches of a run. Their size doubles as the run grows, so there are never more than
/// [`Batches::MOST`] and at least half as many: memory stays flat for a run of any length.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Batches {
    /// Completions in a batch.
    size: u64,
    left: u64,
    open: Batch,
    done: Vec<Batch>,
}

impl Default for Batches {
    fn default() -> Self {
        Batches {
            size: Batches::FIRST,
            left: Batches::FIRST,
            open: Batch::default(),
            done: Vec::new(),
        }
    }
}

impl Batches {
    // A doubling leaves half of the batches. 512 of them are still sixteen for each of the 32
    // groups, so groups differ by one batch in sixteen at most.
    const MOST: usize = 1024;
    /// Completions in a batch to begin with: five, as MSER-5 takes them.
    const FIRST: u64 = 5;
    /// Groups that intervals are computed from: few enough that each is long against the
    /// correlation of neighbouring requests, enough for a t interval near the normal one.
    pub(crate) const GROUPS: usize = 32;
    /// Fewest completions of which there are intervals of rates.
    pub(crate) const COMPLETIONS_LEAST: u64 = Batches::FIRST * Batches::GROUPS as u64;

    /// Counts `count` completions at `end`, each of which took `latency_ps` and moved `bytes`.
    #[inline]
    pub(crate) fn add(&mut self, latency_ps: u64, bytes: u64, count: u64, end: Time) {
        let mut count = count;
        loop {
            // Many completions may come at once. They are cut at the ends of batches, so that
            // every batch has exactly the same number.
            let these = count.min(self.left);
            self.open.latency_ps += u128::from(latency_ps) * u128::from(these);
            self.open.bytes += bytes * these;
            self.left -= these;
            count -= these;
            if self.left == 0 {
                self.close(end);
            }
            if count == 0 {
                return;
            }
        }
    }

    #[cold]
    fn close(&mut self, end: Time) {
        // The end of a batch is the completion of its last request. Groups of batches are
        // therefore stretches of time, and rates follow from their ends.
        self.open.end = end;
        self.done.push(std::mem::take(&mut self.open));
        if self.done.len() == Batches::MOST {
            self.halve();
        }
        self.left = self.size;
    }

    /// Doubles the size of a batch. What is left over of an odd number of them is dropped with
    /// the open one: batches are for intervals, not for sums.
    fn halve(&mut self) {
        self.size *= 2;
        self.done = self.done.chunks_exact(2).map(join).collect();
    }

    /// Adds the batches of another job. They are ordered by their ends, so that groups of them
    /// stay stretches of time.
    pub(crate) fn merge(&mut self, mut other: Batches) {
        // Batches of different sizes cannot be compared. The smaller ones are joined until both
        // are equal; sizes are powers of two times the same first size, so that always works.
        while self.size < other.size {
            self.halve();
        }
        while other.size < self.size {
            other.halve();
        }
        self.done.append(&mut other.done);
        // Batches of several jobs overlap in time. In the order of their ends a group still
        // covers one stretch of the run, which is what the correlation of neighbours is about.
        self.done.sort_by_key(|batch| batch.end);
        while self.done.len() >= Batches::MOST {
            self.halve();
        }
        (self.left, self.open) = (self.size, Batch::default());
    }

    /// Those that lie within `from` and `to` as a whole. Of the first nobody knows when it began.
    pub(crate) fn within(&self, from: Time, to: Time) -> Batches {
        let begins_within = self.done.windows(2).filter(|pair| pair[0].end >= from);
        let done = begins_within.map(|pair| pair[1]).filter(|batch| batch.end <= to).collect();
        Batches { done, open: Batch::default(), left: self.size, size: self.size }
    }

    /// Moves all ends in time.
    pub(crate) fn shift(&mut self, by: impl Fn(Time) -> Time) {
        self.done.iter_mut().for_each(|batch| batch.end = by(batch.end));
    }

    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// When each batch was complete, in seconds.
    pub(crate) fn ends_seconds(&self) -> Vec<f64> {
        self.done.iter().map(|batch| batch.end.as_s_f64()).collect()
    }

    /// Mean latency of each batch in ns, in order.
    pub(crate) fn means_ns(&self) -> Vec<f64> {
        let scale = 1e3 * self.size as f64;
        self.done.iter().map(|b| b.latency_ps as f64 / scale).collect()
    }

    /// [`Batches::GROUPS`] groups of all batches, as equal as may be; `None` where there are too
    /// few.
    pub(crate) fn groups(&self, start: Time) -> Option<Groups> {
        // The borders follow from the whole number of batches. With a fixed size of a group the
        // last ones would be left over, and the end of the run with them.
        let border = |group: usize| group * self.done.len() / Batches::GROUPS;
        let group = |at: usize| &self.done[border(at)..border(at + 1)];
        let enough = self.done.len() >= Batches::GROUPS;
        enough.then(|| Groups {
            batch: self.size,
            start,
            groups: (0..Batches::GROUPS).map(|at| (group(at).len(), join(group(at)))).collect(),
        })
    }
}

fn rate(amounts: &[f64], seconds: &[f64]) -> Option<f64> {
    let rate = amounts.iter().sum::<f64>() / seconds.iter().sum::<f64>();
    rate.is_finite().then_some(rate)
}

fn join(batches: &[Batch]) -> Batch {
    batches.iter().fold(Batch::default(), |sum, b| Batch {
        latency_ps: sum.latency_ps + b.latency_ps,
        bytes: sum.bytes + b.bytes,
        end: sum.end.max(b.end),
    })
}

/// Groups of batches: all of a run but the batch that is not full.
#[derive(Clone, Debug)]
pub(crate) struct Groups {
    /// Completions in a batch.
    batch: u64,
    start: Time,
    /// How many batches, and their sums.
    groups: Vec<(usize, Batch)>,
}

impl Groups {
    fn counts(&self) -> Vec<f64> {
        self.groups.iter().map(|(batches, _)| self.batch as f64 * *batches as f64).collect()
    }

    fn bytes(&self) -> Vec<f64> {
        self.groups.iter().map(|(_, sum)| sum.bytes as f64).collect()
    }

    fn seconds(&self) -> Vec<f64> {
        // The first group begins at the start of the recorded window and not at its first
        // completion. Otherwise a slow first request would not count in the rate.
        let mut before = self.start;
        let span = |(_, sum): &(usize, Batch)| {
            let seconds = sum.end.saturating_sub(before).as_s_f64();
            before = before.max(sum.end);
            seconds
        };
        self.groups.iter().map(span).collect()
    }

    /// Interval around `iops`: completions by the time that they took.
    pub(crate) fn iops(&self, iops: f64) -> Option<Interval> {
        statistics::ratio_interval(iops, &self.counts(), &self.seconds())
    }

    /// The requests per second of the groups themselves.
    pub(crate) fn own_iops(&self) -> Option<f64> {
        rate(&self.counts(), &self.seconds())
    }

    /// The bytes per second of the groups themselves.
    pub(crate) fn own_throughput(&self) -> Option<f64> {
        rate(&self.bytes(), &self.seconds())
    }

    /// How far the requests per second may be off, see [`statistics::relative_distance`].
    pub(crate) fn iops_distance(&self) -> Option<f64> {
        statistics::relative_distance(&self.counts(), &self.seconds())
    }

    /// How far the bytes per second may be off, see [`statistics::relative_distance`].
    pub(crate) fn throughput_distance(&self) -> Option<f64> {
        statistics::relative_distance(&self.bytes(), &self.seconds())
    }

    /// Interval around `throughput` in bytes per second.
    pub(crate) fn throughput(&self, throughput: f64) -> Option<Interval> {
        statistics::ratio_interval(throughput, &self.bytes(), &self.seconds())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_flat_and_nothing_is_lost() {
        let mut batches = Batches::default();
        for i in 0..1_000_000u64 {
            batches.add(1_000 * i, 512, 1, Time::from_ns(i));
        }
        assert!(batches.done.len() < Batches::MOST && batches.done.len() >= Batches::MOST / 2 - 1);
        let counted = batches.done.len() as u64 * batches.size + (batches.size - batches.left);
        assert_eq!(counted, 1_000_000);
        let sum: u128 =
            batches.done.iter().map(|b| b.latency_ps).sum::<u128>() + batches.open.latency_ps;
        assert_eq!(sum, (0..1_000_000u128).map(|i| 1_000 * i).sum());
    }

    #[test]
    fn a_steady_rate_has_a_narrow_interval() {
        let mut batches = Batches::default();
        for i in 0..10_000u64 {
            batches.add(5_000, 4096, 1, Time::from_us(i + 1));
        }
        let groups = batches.groups(Time::ZERO).unwrap();
        let iops = groups.iops(1e6).unwrap();
        assert!((iops.low - 1e6).abs() < 1.0 && (iops.high - 1e6).abs() < 1.0, "{iops:?}");
        assert!(batches.means_ns().iter().all(|m| *m == 5.0));
        assert!(Batches::default().groups(Time::ZERO).is_none());
    }
}
