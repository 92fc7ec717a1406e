//! Histograms of which most buckets are empty, in little memory.

use serde::{Deserialize, Serialize};
use ssdyno_figures::{Histogram, rank};

/// Bits of a count; the number of its bucket is above them.
const COUNT_BITS: u32 = 48;

/// How often each bucket of a [`Histogram`] occurs, without the empty ones: 8 bytes each.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Vec<u64>", into = "Vec<u64>")]
pub(crate) struct SparseHistogram {
    /// Bucket and count of each, ascending by bucket.
    entries: Vec<u64>,
}

impl From<SparseHistogram> for Vec<u64> {
    fn from(sparse: SparseHistogram) -> Vec<u64> {
        sparse.entries
    }
}

impl TryFrom<Vec<u64>> for SparseHistogram {
    type Error = &'static str;

    /// Data from a network may be anything: an invalid bucket would be an index out of bounds.
    fn try_from(entries: Vec<u64>) -> Result<SparseHistogram, &'static str> {
        let bucket = |entry: &u64| (entry >> COUNT_BITS) as usize;
        let ascends = entries.is_sorted_by(|a, b| bucket(a) < bucket(b));
        if !ascends || entries.last().is_some_and(|last| bucket(last) > Histogram::LAST) {
            return Err("the buckets of a histogram do not ascend, or do not exist");
        }
        Ok(SparseHistogram { entries })
    }
}

fn packed(bucket: u16, count: u64) -> u64 {
    // A count of 2^48 would take nine years at a million requests per second. The limit only
    // keeps a wrong count out of the bits of the bucket.
    (u64::from(bucket) << COUNT_BITS) | count.min((1 << COUNT_BITS) - 1)
}

impl SparseHistogram {
    /// Appends a bucket, which is behind all others.
    pub(crate) fn push(&mut self, bucket: u16, count: u64) {
        self.entries.push(packed(bucket, count));
    }

    /// Bucket and count of each that is not empty, ascending.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        self.entries.iter().map(|entry| {
            let bucket = (entry >> COUNT_BITS) as usize;
            (bucket, entry & ((1 << COUNT_BITS) - 1))
        })
    }

    /// Latencies counted.
    pub(crate) fn total(&self) -> u64 {
        self.iter().map(|(_, count)| count).sum()
    }

    /// Latencies in buckets up to `bucket`.
    pub(crate) fn up_to(&self, bucket: usize) -> u64 {
        self.iter().take_while(|(at, _)| *at <= bucket).map(|(_, count)| count).sum()
    }

    /// The latency below which `share` (0 to 1) of all are, in ns: the nearest rank, and the middle of its
    /// bucket. `None` where nothing was counted.
    pub(crate) fn at_share(&self, share: f64) -> Option<f64> {
        let rank = rank(share, self.total());
        let mut seen = 0;
        let (bucket, _) = self.iter().find(|(_, count)| {
            seen += count;
            seen >= rank
        })?;
        Some(Histogram::middle(bucket))
    }

    /// Adds the counts of `other`.
    pub(crate) fn merge(&mut self, other: &SparseHistogram) {
        if self.entries.is_empty() {
            self.entries.clone_from(&other.entries);
            return;
        }
        // Both lists ascend, so one pass over them is enough. The result needs a list of its
        // own, because an entry between two others would move all that follow.
        let mine = std::mem::take(&mut self.entries);
        let (mine, theirs) = (SparseHistogram { entries: mine }, other);
        let (mut a, mut b) = (mine.iter().peekable(), theirs.iter().peekable());
        while let Some((bucket, count)) = match (a.peek(), b.peek()) {
            (Some(x), Some(y)) if x.0 == y.0 => Some((x.0, x.1 + y.1)),
            (Some(x), Some(y)) => Some(*x.min(y)),
            (x, y) => x.or(y).copied(),
        } {
            a.next_if(|x| x.0 == bucket);
            b.next_if(|y| y.0 == bucket);
            self.push(bucket as u16, count);
        }
    }

    /// Counts everything into `histogram`.
    pub(crate) fn count_into(&self, histogram: &mut Histogram) {
        self.iter().for_each(|(bucket, count)| histogram.add_bucket(bucket, count));
    }
}

/// Latencies that are counted for a while and then removed. The counter remembers which buckets it touched, so removal
/// costs as much as the counted latencies and not the size of a histogram.
#[derive(Clone, Debug)]
pub(crate) struct Gathered {
    counts: Vec<u64>,
    touched: Vec<u16>,
}

impl Default for Gathered {
    fn default() -> Gathered {
        Gathered { counts: vec![0; Histogram::LAST + 1], touched: Vec::new() }
    }
}

impl Gathered {
    /// Counts one latency `count` times.
    #[inline]
    pub(crate) fn add(&mut self, ns: u64, count: u64) {
        let bucket = Histogram::bucket(ns);
        let counted = &mut self.counts[bucket];
        if *counted == 0 {
            self.touched.push(bucket as u16);
        }
        *counted += count;
    }

    /// Moves what was counted to `to`.
    pub(crate) fn move_to(&mut self, to: &mut SparseHistogram) {
        if self.touched.is_empty() {
            return;
        }
        // Buckets were noted in the order in which they were first hit. The list that they go to
        // must ascend, since `merge` and `up_to` rely on that.
        self.touched.sort_unstable();
        let mut gathered = SparseHistogram::default();
        for bucket in self.touched.drain(..) {
            gathered.push(bucket, std::mem::take(&mut self.counts[usize::from(bucket)]));
        }
        to.merge(&gathered);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// However they are gathered and merged, as one histogram of all of them.
        #[test]
        fn equals_a_whole_histogram(
            parts in prop::collection::vec(
                prop::collection::vec((any::<u64>(), 0u32..64, 1u64..5), 0..60), 1..6),
            share in 0.0f64..1.0,
        ) {
            let (mut sparse, mut gathered) = (SparseHistogram::default(), Gathered::default());
            let mut whole = Histogram::default();
            for part in &parts {
                for (value, shift, count) in part {
                    gathered.add(value >> shift, *count);
                    whole.add_many(value >> shift, *count);
                }
                gathered.move_to(&mut sparse);
            }
            prop_assert_eq!(sparse.total(), whole.total());
            prop_assert_eq!(sparse.at_share(share), whole.value_at(rank(share, whole.total())));
            let mut again = Histogram::default();
            sparse.count_into(&mut again);
            prop_assert_eq!(again, whole);
            prop_assert!(sparse.iter().is_sorted());
        }
    }
}
