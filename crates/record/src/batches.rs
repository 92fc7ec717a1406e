//! Consecutive completions in batches of equal count: what intervals and warm-up are found from.

use serde::{Deserialize, Serialize};
use ssdyno_block::Time;
use ssdyno_figures::{Interval, picoseconds};

use crate::statistics;

/// Completions that follow one another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Batch {
    /// Completions. Of several jobs it is a fraction, see [`side_by_side`](crate::side_by_side).
    pub(crate) count: f64,
    pub(crate) latency_ps: u128,
    pub(crate) bytes: u64,
    /// Completion of the last one.
    #[serde(with = "picoseconds")]
    pub(crate) end: Time,
}

/// Amounts of jobs whose batches are too few to show how they vary: what their variance would be if
/// their completions were independent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Unseen {
    /// Of the number of completions.
    pub(crate) count: f64,
    /// Of the bytes, squared.
    pub(crate) bytes: f64,
}

/// Batches of a run. Their size doubles as the run grows, so there are never more than
/// [`Batches::MOST`] and at least half as many: memory stays flat for a run of any length.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "Sent")]
pub(crate) struct Batches {
    /// Completions in a batch.
    size: u64,
    left: u64,
    open: Batch,
    done: Vec<Batch>,
    /// Groups that intervals are computed from.
    groups: usize,
    unseen: Unseen,
}

/// Batches as they travel.
#[derive(Deserialize)]
struct Sent {
    size: u64,
    left: u64,
    open: Batch,
    done: Vec<Batch>,
    groups: usize,
    unseen: Unseen,
}

impl TryFrom<Sent> for Batches {
    type Error = &'static str;

    /// Data from a network may be anything: empty batches would be filled forever.
    fn try_from(sent: Sent) -> Result<Batches, &'static str> {
        let Sent { size, left, open, done, groups, unseen } = sent;
        let is_amount = |amount: f64| amount.is_finite() && amount >= 0.0;
        let amounts = done.iter().chain([&open]).map(|batch| batch.count);
        if !amounts.chain([unseen.count, unseen.bytes]).all(is_amount) {
            return Err("a batch has a negative or infinite number of requests");
        }
        let sizes = 1..=u64::MAX / 2;
        let groups_fit = (Batches::GROUPS_LEAST..=Batches::GROUPS).contains(&groups);
        if !sizes.contains(&size) || !(1..=size).contains(&left) || !groups_fit {
            return Err("batches have no size, or too many or too few groups");
        }
        if done.len() >= Batches::MOST || !done.is_sorted_by_key(|batch| batch.end) {
            return Err("there are too many batches, or their times go backwards");
        }
        Ok(Batches { size, left, open, done, groups, unseen })
    }
}

impl Default for Batches {
    fn default() -> Self {
        Batches {
            size: Batches::FIRST,
            left: Batches::FIRST,
            open: Batch::default(),
            done: Vec::new(),
            groups: Batches::GROUPS,
            unseen: Unseen::default(),
        }
    }
}

impl Batches {
    // A doubling leaves half of the batches. 512 of them are still sixteen for each of the 32
    // groups, so groups differ by at most one batch in sixteen.
    pub(crate) const MOST: usize = 1024;
    /// Completions in a batch to begin with: five, as MSER-5 takes them.
    pub(crate) const FIRST: u64 = 5;
    /// Groups that intervals are computed from: few enough that each is long against the
    /// correlation of neighbouring requests, enough for a t interval near the normal one.
    pub(crate) const GROUPS: usize = 32;
    /// Fewest groups of several jobs, of which one has few batches.
    pub(crate) const GROUPS_LEAST: usize = 8;
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
        self.open.count = self.size as f64;
        self.done.push(std::mem::take(&mut self.open));
        if self.done.len() == Batches::MOST {
            self.halve();
        }
        self.left = self.size;
    }

    /// Doubles the size of a batch. An odd batch at the end is dropped together with the open
    /// batch: batches serve intervals, not sums.
    fn halve(&mut self) {
        self.size *= 2;
        self.done = self.done.chunks_exact(2).map(join).collect();
    }

    /// Ends the last batch, which is not full, at `end`. It counts where jobs are put side by side.
    pub(crate) fn end(&mut self, end: Time) {
        self.open.count = (self.size - self.left) as f64;
        self.open.end = end;
    }

    /// Stretches of time of several jobs.
    pub(crate) fn of_stretches(done: Vec<Batch>, groups: usize, unseen: Unseen) -> Batches {
        Batches { done, groups, unseen, ..Batches::default() }
    }

    /// All batches in order, with the one that [`end`](Batches::end) has ended.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Batch> + Clone {
        self.done.iter().chain(Some(&self.open).filter(|open| open.count > 0.0))
    }

    /// Groups that intervals are computed from.
    pub(crate) fn group_count(&self) -> usize {
        self.groups
    }

    /// See [`Unseen`].
    pub(crate) fn unseen(&self) -> Unseen {
        self.unseen
    }

    /// Moves all ends in time.
    pub(crate) fn shift(&mut self, by: impl Fn(Time) -> Time) {
        self.done.iter_mut().chain([&mut self.open]).for_each(|batch| batch.end = by(batch.end));
    }

    /// Those that hold completions: a silent stretch has no latency.
    fn with_completions(&self) -> impl Iterator<Item = &Batch> {
        self.done.iter().filter(|batch| batch.count > 0.0)
    }

    /// Completions of each batch.
    pub(crate) fn counts(&self) -> Vec<f64> {
        self.with_completions().map(|batch| batch.count).collect()
    }

    /// When each batch was complete, in seconds.
    pub(crate) fn ends_seconds(&self) -> Vec<f64> {
        self.with_completions().map(|batch| batch.end.as_s_f64()).collect()
    }

    /// Mean latency of each batch in ns, in order.
    pub(crate) fn means_ns(&self) -> Vec<f64> {
        self.with_completions().map(|b| b.latency_ps as f64 / (1e3 * b.count)).collect()
    }

    /// Groups of all batches, [`Batches::GROUPS`] of one job, as equal as may be; `None` where there are too
    /// few.
    pub(crate) fn groups(&self, start: Time) -> Option<Groups> {
        // The borders follow from the whole number of batches. With a fixed size of a group the
        // last ones would be left over, and the end of the run with them.
        let border = |group: usize| group * self.done.len() / self.groups;
        let group = |at: usize| &self.done[border(at)..border(at + 1)];
        let enough = self.done.len() >= Batches::GROUPS;
        enough.then(|| Groups {
            start,
            groups: (0..self.groups).map(|at| join(group(at))).collect(),
            unseen: self.unseen,
        })
    }
}

fn rate(amounts: &[f64], seconds: &[f64]) -> Option<f64> {
    let rate = amounts.iter().sum::<f64>() / seconds.iter().sum::<f64>();
    rate.is_finite().then_some(rate)
}

fn join(batches: &[Batch]) -> Batch {
    batches.iter().fold(Batch::default(), |sum, b| Batch {
        count: sum.count + b.count,
        latency_ps: sum.latency_ps + b.latency_ps,
        bytes: sum.bytes + b.bytes,
        end: sum.end.max(b.end),
    })
}

/// Groups of batches: all of a run but the batch that is not full.
#[derive(Clone, Debug)]
pub(crate) struct Groups {
    start: Time,
    /// The sum of each.
    groups: Vec<Batch>,
    unseen: Unseen,
}

impl Groups {
    fn counts(&self) -> Vec<f64> {
        self.groups.iter().map(|sum| sum.count).collect()
    }

    fn bytes(&self) -> Vec<f64> {
        self.groups.iter().map(|sum| sum.bytes as f64).collect()
    }

    fn seconds(&self) -> Vec<f64> {
        // The first group begins at the start of the recorded window and not at its first
        // completion. Otherwise a slow first request would not count in the rate.
        let mut before = self.start;
        let span = |sum: &Batch| {
            let seconds = sum.end.saturating_sub(before).as_s_f64();
            before = before.max(sum.end);
            seconds
        };
        self.groups.iter().map(span).collect()
    }

    /// Interval around `iops`: completions by the time that they took.
    pub(crate) fn iops(&self, iops: f64) -> Option<Interval> {
        statistics::ratio_interval_with(iops, &self.counts(), &self.seconds(), self.unseen.count)
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
        statistics::relative_distance(&self.counts(), &self.seconds(), self.unseen.count)
    }

    /// How far the bytes per second may be off, see [`statistics::relative_distance`].
    pub(crate) fn throughput_distance(&self) -> Option<f64> {
        statistics::relative_distance(&self.bytes(), &self.seconds(), self.unseen.bytes)
    }

    /// Interval around `throughput` in bytes per second.
    pub(crate) fn throughput(&self, throughput: f64) -> Option<Interval> {
        statistics::ratio_interval_with(
            throughput,
            &self.bytes(),
            &self.seconds(),
            self.unseen.bytes,
        )
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
