//! The tests of a profile, and their measurements.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An operation that has a ratio.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum ProfileOp {
    /// Reads.
    Read,
    /// Writes.
    Write,
}

impl FromStr for ProfileOp {
    type Err = String;
    fn from_str(text: &str) -> Result<ProfileOp, String> {
        match text.trim() {
            "read" => Ok(ProfileOp::Read),
            "write" => Ok(ProfileOp::Write),
            _ => Err("use read, write or read,write".to_owned()),
        }
    }
}

impl fmt::Display for ProfileOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == ProfileOp::Read { "read" } else { "write" })
    }
}

ssdyno_block::named! {
    /// The four tests of the paper (S2-5). Each accesses every record of the span once (S2-7).
    #[derive(
        Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema,
    )]
    #[serde(rename_all = "snake_case")]
    pub enum ProfileTest: name {
        // In the order in which IOzone runs them: a file is written before it is read.
        /// Writes from the start of the span to its end.
        SequentialWrite = "sequential write",
        /// Reads from the start of the span to its end.
        SequentialRead = "sequential read",
        /// Reads of every record in random order.
        RandomRead = "random read",
        /// Writes of every record in random order.
        RandomWrite = "random write",
    }
}

/// A test and a request size.
pub(crate) type Cell = (ProfileTest, u64);

impl ProfileTest {
    /// Those of `ops`, in the order of [`ALL`](ProfileTest::ALL).
    pub fn of(ops: &[ProfileOp]) -> Vec<ProfileTest> {
        ProfileTest::ALL.into_iter().filter(|test| ops.contains(&test.op())).collect()
    }

    /// Its operation.
    pub fn op(self) -> ProfileOp {
        match self {
            ProfileTest::SequentialRead | ProfileTest::RandomRead => ProfileOp::Read,
            ProfileTest::SequentialWrite | ProfileTest::RandomWrite => ProfileOp::Write,
        }
    }

    /// Whether records are accessed in random order.
    pub fn is_random(self) -> bool {
        matches!(self, ProfileTest::RandomRead | ProfileTest::RandomWrite)
    }

    /// Sequential and random test of `op`.
    pub fn pair(op: ProfileOp) -> (ProfileTest, ProfileTest) {
        match op {
            ProfileOp::Read => (ProfileTest::SequentialRead, ProfileTest::RandomRead),
            ProfileOp::Write => (ProfileTest::SequentialWrite, ProfileTest::RandomWrite),
        }
    }
}

impl fmt::Display for ProfileTest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One measurement of one test with one request size.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Measurement {
    /// The test.
    pub test: ProfileTest,
    /// Size of every request.
    pub size_bytes: u64,
    /// Number of requests that count, without the `lead` of a slice.
    pub requests: u64,
    /// Total time of these requests, on the clock of the device.
    pub seconds: f64,
    /// Whether the test accessed every record of the span. If not, it was a slice, or the time limit ended the test.
    pub whole: bool,
    /// Requests of a slice that do not count: they changed the pattern, or filled the write cache.
    #[serde(default)]
    pub lead: u64,
    /// The faster start of the writes; `null` without a burst, and with methods that measure only whole tests.
    #[serde(default)]
    pub burst: Option<Burst>,
}

/// The fast start of writes: a cache absorbs them until it is full.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Burst {
    /// Requests until the rate dropped.
    pub requests: u64,
    /// Time of these requests.
    pub seconds: f64,
    /// Bytes that the host was ahead of the sustained rate at the end of the slice: the contents of the cache.
    pub held_bytes: f64,
    /// `held_bytes` divided by the bytes of a whole test, 0 to 1.
    pub share: f64,
    /// Whether enough requests followed the burst for the sustained rate. If not, a slice does not count.
    pub settled: bool,
}

impl Measurement {
    /// A whole test of `requests` in `seconds`, without a burst.
    pub fn whole(test: ProfileTest, size_bytes: u64, requests: u64, seconds: f64) -> Measurement {
        Measurement { test, size_bytes, requests, seconds, whole: true, lead: 0, burst: None }
    }

    /// Elapsed time divided by requests: the paper's access time per request. For a slice it is the time of a test of
    /// the whole span: the sustained rate, less the bytes that a write cache absorbs once. A whole test has its burst
    /// in it.
    pub fn access_time_ns(&self) -> f64 {
        // A cache absorbs this share once, and the whole test is shorter by it. The sustained
        // rate alone would make the test of the whole span too slow.
        let absorbed = self.burst.filter(|_| !self.whole).map_or(0.0, |burst| burst.share);
        self.seconds * 1e9 / self.requests as f64 * (1.0 - absorbed)
    }

    /// Whether it says how fast the test is: a slice that ended in a burst does not.
    pub fn counts(&self) -> bool {
        self.whole || self.burst.is_none_or(|burst| burst.settled)
    }
}

/// Everything that was measured so far, in its order.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Measurements {
    all: Vec<Measurement>,
    times: BTreeMap<(ProfileTest, u64), Vec<f64>>,
}

impl Measurements {
    /// Adds one. A slice without a completed request or without a time gives no information and is
    /// left out.
    pub fn add(&mut self, measurement: Measurement) {
        // Both numbers are divisors later. A test that ended before its first completion has no
        // request, and a device without any delay takes no time.
        if measurement.requests == 0 || measurement.seconds <= 0.0 {
            return;
        }
        let key = (measurement.test, measurement.size_bytes);
        if measurement.counts() {
            self.times.entry(key).or_default().push(measurement.access_time_ns());
        }
        self.all.push(measurement);
    }

    /// All of them, in their order.
    pub fn all(&self) -> &[Measurement] {
        &self.all
    }

    /// Access times in nanoseconds of `test` with `size_bytes`, one a repetition; empty where it was not done.
    pub fn times(&self, test: ProfileTest, size_bytes: u64) -> &[f64] {
        self.times.get(&(test, size_bytes)).map_or(&[], Vec::as_slice)
    }

    /// Median over tests and sizes of the relative standard deviation of repetitions: how far two repetitions of
    /// the same test differ. `None` where nothing was repeated.
    pub fn noise_floor(&self) -> Option<f64> {
        let repeated = self.times.values().filter(|times| times.len() > 1);
        let mut spreads: Vec<f64> = repeated
            .map(|times| {
                let mean = times.iter().sum::<f64>() / times.len() as f64;
                let squares: f64 = times.iter().map(|time| (time - mean).powi(2)).sum();
                // The divisor is n - 1, because the mean comes from the same values. Division
                // by the mean makes sizes comparable whose times differ by orders of magnitude.
                (squares / (times.len() - 1) as f64).sqrt() / mean
            })
            .collect();
        spreads.sort_by(f64::total_cmp);
        let half = spreads.len() / 2;
        match spreads.len() {
            0 => None,
            odd if odd % 2 == 1 => Some(spreads[half]),
            _ => Some(spreads[half - 1].midpoint(spreads[half])),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(seconds: f64) -> Measurement {
        Measurement::whole(ProfileTest::RandomRead, 8192, 1000, seconds)
    }

    #[test]
    fn access_time_is_elapsed_time_by_requests() {
        assert_eq!(one(0.01).access_time_ns(), 10_000.0);
    }

    #[test]
    fn the_noise_floor_needs_repetitions() {
        let mut all = Measurements::default();
        all.add(one(0.9));
        assert_eq!(all.noise_floor(), None);
        all.add(one(1.1));
        // Standard deviation of 0.9 and 1.1: the root of 0.02.
        assert!((all.noise_floor().unwrap() - 0.02_f64.sqrt()).abs() < 1e-12);
        all.add(Measurement { requests: 0, ..one(1.0) });
        assert_eq!(all.all().len(), 2);
    }

    #[test]
    fn tests_of_operations() {
        use ProfileTest::*;
        assert_eq!(ProfileTest::of(&[ProfileOp::Read]), [SequentialRead, RandomRead]);
        let both = [ProfileOp::Write, ProfileOp::Read];
        assert_eq!(ProfileTest::of(&both), ProfileTest::ALL);
        assert!("trim".parse::<ProfileOp>().is_err());
    }
}
