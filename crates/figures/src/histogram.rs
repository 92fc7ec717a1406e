//! A histogram of latencies with a bounded relative error.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Sub-buckets of an octave, as a power of two.
// 128 sub-buckets an octave: a value is at most half a bucket, 1/256 of itself, off. Latencies
// below 256 ns are exact, which matters for the overhead of the tool.
const SUB_BITS: u32 = 7;
const SUB: usize = 1 << SUB_BITS;
/// Two linear octaves (0 to 255 ns, exact), then one for each further bit of a u64.
const BUCKETS: usize = (64 - SUB_BITS as usize + 1) * SUB;

/// Counts of latencies in nanoseconds, log-linear: exact below 256 ns, then 128 equal buckets per octave, so the
/// middle of a bucket is at most 1/256 (0.4 %) off.
///
/// This type replaces `hdrhistogram`: it records a value with one shift and one add, without range checks or resizing,
/// because a hot path of 25 ns uses it twice. The exact percentiles from rows also need its bucket borders. It
/// occupies 58 KiB of memory, but a run touches only the cache lines of its latencies.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "LatencyCounts", into = "LatencyCounts")]
#[schemars(with = "LatencyCounts")]
pub struct Histogram {
    counts: Vec<u64>,
    total: u64,
}

/// Counts of latencies by bucket, without the empty buckets. Histograms of several hosts are added bucket by bucket; the
/// sum is exact.
///
/// Buckets are 1 ns wide below 256 ns. Above, each octave has 128 of equal width.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
struct LatencyCounts {
    /// The shortest latency of each bucket, ascending.
    from_ns: Vec<u64>,
    /// Latencies in each of these buckets.
    counts: Vec<u64>,
}

impl From<Histogram> for LatencyCounts {
    fn from(histogram: Histogram) -> LatencyCounts {
        let used = histogram.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        let (from_ns, counts) = used.map(|(at, count)| (Histogram::bounds(at).0, *count)).unzip();
        LatencyCounts { from_ns, counts }
    }
}

impl TryFrom<LatencyCounts> for Histogram {
    type Error = String;

    /// Data from a network may be anything: invalid buckets and sums that overflow are refused.
    fn try_from(sparse: LatencyCounts) -> Result<Histogram, String> {
        let LatencyCounts { from_ns, counts } = sparse;
        if from_ns.len() != counts.len() {
            let (buckets, numbers) = (from_ns.len(), counts.len());
            return Err(format!("a histogram has {buckets} buckets and {numbers} counts"));
        }
        let mut histogram = Histogram::default();
        for (ns, count) in from_ns.into_iter().zip(counts) {
            let bucket = Histogram::bucket(ns);
            // A bucket must begin exactly where this program's buckets begin. A histogram of
            // another resolution would be added to the wrong latencies without a sign.
            if Histogram::bounds(bucket).0 != ns || histogram.counts[bucket] > 0 {
                return Err(format!(
                    "no bucket of a histogram begins at {ns} ns, or this bucket appears twice"
                ));
            }
            let total = histogram.total.checked_add(count);
            histogram.total = total.ok_or("a histogram counts more than 2^64 latencies")?;
            histogram.counts[bucket] = count;
        }
        Ok(histogram)
    }
}

impl Default for Histogram {
    fn default() -> Self {
        Histogram { counts: vec![0; BUCKETS], total: 0 }
    }
}

impl Histogram {
    /// Largest relative error of [`value_at`](Histogram::value_at).
    pub const RELATIVE_ERROR: f64 = 1.0 / (2 * SUB) as f64;

    /// Number of the last bucket.
    pub const LAST: usize = BUCKETS - 1;

    /// Latencies counted in `bucket`.
    #[inline]
    pub fn count_in(&self, bucket: usize) -> u64 {
        self.counts[bucket]
    }

    /// Latencies counted in each bucket.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// Counts `count` latencies that lie in `bucket`.
    #[inline]
    pub fn add_bucket(&mut self, bucket: usize, count: u64) {
        self.counts[bucket] += count;
        self.total += count;
    }

    /// Number of the bucket that holds `ns`.
    #[inline]
    pub fn bucket(ns: u64) -> usize {
        // `| SUB` puts the linear part into the first octave, so that there is no branch.
        let shift = 63 - (ns | SUB as u64).leading_zeros() - SUB_BITS;
        ((shift as usize) << SUB_BITS) + (ns >> shift) as usize
    }

    /// First value of a bucket, and one past its last (saturated at 2^64 - 1).
    pub fn bounds(bucket: usize) -> (u64, u64) {
        let low = |b: usize| {
            let shift = (b >> SUB_BITS).saturating_sub(1) as u32;
            // The end of the last bucket is 2^64, which 64 bits do not hold. The sum is made in
            // 128 bits and saturates.
            (((b - ((shift as usize) << SUB_BITS)) as u128) << shift).min(u64::MAX.into()) as u64
        };
        (low(bucket), low(bucket + 1))
    }

    /// Counts one latency.
    #[inline]
    pub fn add(&mut self, ns: u64) {
        self.counts[Histogram::bucket(ns)] += 1;
        self.total += 1;
    }

    /// Counts one latency `count` times.
    #[inline]
    pub fn add_many(&mut self, ns: u64, count: u64) {
        self.add_bucket(Histogram::bucket(ns), count);
    }

    /// Adds the counts of `other`.
    pub fn merge(&mut self, other: &Histogram) {
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine += theirs;
        }
        self.total += other.total;
    }

    /// The counts since `earlier`, a former state of the same histogram.
    pub fn since(&self, earlier: &Histogram) -> Histogram {
        let pairs = self.counts.iter().zip(&earlier.counts);
        // Counts only grow, so a difference cannot be negative. Saturating keeps a histogram
        // that was exchanged meanwhile from becoming a huge one.
        let counts: Vec<u64> = pairs.map(|(now, then)| now.saturating_sub(*then)).collect();
        Histogram { total: counts.iter().sum(), counts }
    }

    /// Latencies counted.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Bucket that holds the latency of `rank` (1 to `total`), and how many lie in buckets below.
    pub fn locate(&self, rank: u64) -> Option<(usize, u64)> {
        let mut below = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            if below + count >= rank {
                // A rank of 0 would be found in the first bucket even if that is empty. It has
                // no latency, so there is no answer.
                return (*count > 0).then_some((bucket, below));
            }
            below += count;
        }
        None
    }

    /// The latency of `rank` (1 to `total`) in ns: the middle of its bucket.
    pub fn value_at(&self, rank: u64) -> Option<f64> {
        Some(Histogram::middle(self.locate(rank)?.0))
    }

    /// The middle of a bucket, in ns.
    pub fn middle(bucket: usize) -> f64 {
        let (low, past) = Histogram::bounds(bucket);
        // The middle of the integers that the bucket holds. In a bucket of one nanosecond that
        // is the value itself.
        low as f64 + (past - low - 1) as f64 / 2.0
    }

    /// The buckets that hold something, `per_octave` (a power of two up to 128) to an octave:
    /// first value, one past the last, count.
    pub fn bins(&self, per_octave: usize) -> Vec<(u64, u64, u64)> {
        let join = (SUB / per_octave.clamp(1, SUB)).max(1);
        let mut bins = Vec::new();
        for (i, group) in self.counts.chunks(join).enumerate() {
            let count: u64 = group.iter().sum();
            if count > 0 {
                let (low, _) = Histogram::bounds(i * join);
                let (_, past) = Histogram::bounds(i * join + group.len() - 1);
                bins.push((low, past, count));
            }
        }
        bins
    }
}

/// Rank of a share (0 to 1) among `count`: the nearest rank, 1 to `count`.
pub fn rank(share: f64, count: u64) -> u64 {
    // 0.999 * 1000 is 999.0000000000001 in floating point; the rank is 999.
    // The factor takes off what the product is too large by rounding. It is far larger than a
    // rounding error and far smaller than one rank of any run that fits into memory.
    ((share * count as f64 * (1.0 - 1e-12)).ceil() as u64).clamp(1, count.max(1))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_ends_of_the_range_have_a_bucket() {
        assert_eq!(Histogram::bucket(0), 0);
        assert_eq!(Histogram::bucket(u64::MAX), BUCKETS - 1);
        assert_eq!(Histogram::bounds(255), (255, 256));
        assert_eq!(Histogram::bounds(256), (256, 258));
    }

    #[test]
    fn what_comes_from_elsewhere_is_refused_where_it_cannot_be() {
        for (text, why) in [
            (r#"{"from_ns":[257],"counts":[1]}"#, "begins at 257 ns"),
            (r#"{"from_ns":[3,3],"counts":[1,1]}"#, "twice"),
            (r#"{"from_ns":[3],"counts":[]}"#, "1 buckets and 0 counts"),
            (r#"{"from_ns":[3,4],"counts":[18446744073709551615,1]}"#, "2^64"),
        ] {
            let error = serde_json::from_str::<Histogram>(text).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }

    proptest! {
        #[test]
        fn it_travels(values in prop::collection::vec((any::<u64>(), 0u32..64), 0..200)) {
            let mut histogram = Histogram::default();
            values.iter().for_each(|(value, bits)| histogram.add(value >> bits));
            let text = serde_json::to_string(&histogram).unwrap();
            prop_assert_eq!(serde_json::from_str::<Histogram>(&text).unwrap(), histogram);
        }

        #[test]
        fn bounds_hold_the_value(bits in 0u32..64, value in any::<u64>()) {
            let ns = value >> bits;
            let (low, past) = Histogram::bounds(Histogram::bucket(ns));
            prop_assert!(low <= ns && (ns < past || past == u64::MAX));
            let width = (past - low - 1) as f64;
            prop_assert!(width / 2.0 <= Histogram::RELATIVE_ERROR * low.max(1) as f64);
        }

        #[test]
        fn ranks_are_within_the_stated_error(
            mut values in prop::collection::vec(0u64..10_000_000_000, 1..300),
            per_octave in prop::sample::select(vec![8usize, 32, 128]),
        ) {
            let (mut a, mut b) = (Histogram::default(), Histogram::default());
            for (i, v) in values.iter().enumerate() {
                if i % 2 == 0 { a.add(*v) } else { b.add(*v) }
            }
            a.merge(&b);
            values.sort_unstable();
            for (i, v) in values.iter().enumerate() {
                let got = a.value_at(i as u64 + 1).unwrap();
                let off = (got - *v as f64).abs();
                prop_assert!(off <= Histogram::RELATIVE_ERROR * *v as f64 + 1e-9);
            }
            let counted: u64 = a.bins(per_octave).iter().map(|b| b.2).sum();
            prop_assert_eq!(counted, values.len() as u64);
        }
    }

    #[test]
    fn nearest_rank() {
        assert_eq!([rank(0.5, 1), rank(0.5, 2), rank(0.5, 3), rank(0.999, 1000)], [1, 1, 2, 999]);
        assert_eq!([rank(0.999, 1001), rank(0.0, 5), rank(1.0, 5)], [1000, 1, 5]);
    }
}
