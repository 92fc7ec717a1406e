//! The shape of a profile.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ssdyno_figures::Warning;

use crate::capacity::CapacityResult;
use crate::estimate::CurvePoint;
use crate::findings::{Breakpoint, LackOfFit, Verdict};
use crate::map::MapResult;
use crate::measure::{Measurement, ProfileOp, ProfileTest};
use crate::method::MethodName;
use crate::plan::ProfilePlan;
use crate::session::{PlanRecord, ProfileSession};
use crate::solution;
use crate::stopped::StoppedBecause;

/// Version of the shape of [`ProfileResult`].
const SCHEMA_VERSION: u32 = 1;

/// All figures of one profile, as in `result.json` and `--json` (S2-1). New keys do not raise `schema_version`; renamed
/// keys do.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct ProfileResult {
    /// Version of this format.
    pub schema_version: u32,
    /// Name of the target, as the user gave it.
    pub target: String,
    /// The method that chose the sizes.
    pub method: MethodName,
    /// The seed that repeats the profile.
    pub seed: u64,
    /// Bytes from the start of the target that every test accesses.
    pub span_bytes: u64,
    /// Requests outstanding; for several depths (`more_depths`) the first depth. All other figures here are for this
    /// depth.
    pub depth: u32,
    /// Reason why the profile has no more tests.
    pub stopped_because: StoppedBecause,
    /// Total time of all tests, on the clock of the device.
    pub seconds_spent: f64,
    /// Wall time of the profile; the only figure that differs between two simulations with the same seed.
    pub wall_seconds: f64,
    /// Every request size of the plan once, ascending.
    pub sizes_bytes: Vec<u64>,
    /// Throughput of sequential reads divided by throughput of random reads. A size without data is left out; empty
    /// without reads.
    pub read_ratio: Vec<Ratio>,
    /// Throughput of sequential writes divided by throughput of random writes, as `read_ratio`.
    pub write_ratio: Vec<Ratio>,
    /// Mean, minimum and maximum of both ratios.
    pub summary: ProfileSummary,
    /// Access time per request by size, for each test.
    pub curves: ByTest,
    /// Whether the device was steady; `unknown` with methods that have no reference points.
    pub verdict: Verdict,
    /// Breakpoints of the curve of each test; empty with methods other than `adaptive`.
    pub breakpoints: BTreeMap<ProfileTest, Vec<Breakpoint>>,
    /// For each test, how well the fitted curve matches the measured sizes; empty unless the method is `adaptive`.
    pub lack_of_fit: BTreeMap<ProfileTest, LackOfFit>,
    /// Difference between repetitions of the same test: the median over tests and sizes of the standard deviation
    /// divided by the mean; `null` without repetitions.
    pub noise_floor: Option<f64>,
    /// Request sizes for which an optimisation pays; empty without `--threshold`.
    pub advice: Vec<Advice>,
    /// All tests in the order of the measurements.
    pub measurements: Vec<Measurement>,
    /// Result of `capacity`; left out with other methods. With it, the figures of ratios are empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<CapacityResult>,
    /// Result of `--map`; left out without it. With it, the figures of ratios are empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub map: Option<MapResult>,
    /// The plan that `--resume` compares; `null` in merged profiles, with `capacity` and `map`, and in results of older
    /// versions.
    #[serde(default)]
    pub plan: Option<PlanRecord>,
    /// The measuring sessions, in order: more than one after `--resume` and in merged profiles. Empty with `capacity`
    /// or `map` and in results of older versions.
    #[serde(default)]
    pub sessions: Vec<ProfileSession>,
    /// The profiles of the further depths of `--depth N,N`, each in this format, without `plan`. Left out with one
    /// depth.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub more_depths: Vec<ProfileResult>,
    /// Name of the solution for the capacity in systemd's hardware database (`--solution`); left out without a name;
    /// the default is `ssdyno`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub solution: Option<String>,
    /// The capacities of the further solutions of the same device, each in this format: after `--merge` of profiles
    /// with different `--solution`. All other figures here are for the first solution. Left out with one solution.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub more_solutions: Vec<ProfileResult>,
    /// Warnings about misleading figures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
    /// Notes on the figures.
    pub notes: Vec<String>,
}

impl ProfileResult {
    /// Of `plan`, without figures.
    pub(crate) fn empty(plan: &ProfilePlan, stopped_because: StoppedBecause) -> ProfileResult {
        ProfileResult {
            schema_version: SCHEMA_VERSION,
            target: plan.target.clone(),
            method: plan.method.name(),
            seed: plan.seed,
            depth: plan.depth,
            stopped_because,
            ..ProfileResult::default()
        }
    }

    /// The profile of each depth, in the order that was given.
    pub fn of_depths(&self) -> Vec<&ProfileResult> {
        [self].into_iter().chain(&self.more_depths).collect()
    }

    /// The profile of each solution, in the order of the merged profiles.
    pub fn of_solutions(&self) -> Vec<&ProfileResult> {
        [self].into_iter().chain(&self.more_solutions).collect()
    }

    /// The name of its solution: `ssdyno` without one.
    pub fn solution_name(&self) -> &str {
        self.solution.as_deref().unwrap_or(solution::UNNAMED)
    }

    /// The ratios of `op` at the first depth.
    pub fn ratios(&self, op: ProfileOp) -> &[Ratio] {
        match op {
            ProfileOp::Read => &self.read_ratio,
            ProfileOp::Write => &self.write_ratio,
        }
    }
}

/// The ratio of one request size.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Ratio {
    /// Size of every request.
    pub size_bytes: u64,
    /// Throughput of sequential requests divided by throughput of random requests: above 1 if sequential is faster.
    pub estimate: f64,
    /// Lower end of the 90 % interval, from the intervals of both access times by the delta method; `null` without
    /// repetitions.
    pub low: Option<f64>,
    /// Upper end of the 90 % interval; `null` without repetitions.
    pub high: Option<f64>,
    /// Whether both access times were measured and not estimated.
    pub measured: bool,
}

/// The ratios of both operations over all sizes (S2-1).
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct ProfileSummary {
    /// Summary of `read_ratio`; `null` if it is empty.
    pub read: Option<RatioSummary>,
    /// Summary of `write_ratio`; `null` if it is empty.
    pub write: Option<RatioSummary>,
}

/// Ratios of one operation over all sizes (S2-6).
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RatioSummary {
    /// Arithmetic mean.
    pub mean: f64,
    /// Smallest ratio.
    pub min: f64,
    /// Greatest ratio.
    pub max: f64,
}

impl RatioSummary {
    /// Of `ratios`; `None` without one.
    pub fn of(ratios: &[Ratio]) -> Option<RatioSummary> {
        let all = || ratios.iter().map(|ratio| ratio.estimate);
        (!ratios.is_empty()).then(|| RatioSummary {
            mean: all().sum::<f64>() / ratios.len() as f64,
            min: all().fold(f64::INFINITY, f64::min),
            max: all().fold(0.0, f64::max),
        })
    }
}

/// A curve for each test; empty for a test that was not run.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct ByTest {
    /// Sequential writes.
    pub sequential_write: Vec<CurvePoint>,
    /// Sequential reads.
    pub sequential_read: Vec<CurvePoint>,
    /// Random reads.
    pub random_read: Vec<CurvePoint>,
    /// Random writes.
    pub random_write: Vec<CurvePoint>,
}

impl ByTest {
    /// The curve of each test from `curve`.
    pub(crate) fn from_fn(curve: impl Fn(ProfileTest) -> Vec<CurvePoint>) -> ByTest {
        ByTest {
            sequential_write: curve(ProfileTest::SequentialWrite),
            sequential_read: curve(ProfileTest::SequentialRead),
            random_read: curve(ProfileTest::RandomRead),
            random_write: curve(ProfileTest::RandomWrite),
        }
    }

    /// The curve of `test`.
    pub fn of(&self, test: ProfileTest) -> &[CurvePoint] {
        match test {
            ProfileTest::SequentialWrite => &self.sequential_write,
            ProfileTest::SequentialRead => &self.sequential_read,
            ProfileTest::RandomRead => &self.random_read,
            ProfileTest::RandomWrite => &self.random_write,
        }
    }
}

/// Request sizes for which an optimisation pays that makes random accesses sequential (aggregation, reordering; S2-18).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Advice {
    /// Operation of the accesses.
    pub op: ProfileOp,
    /// The ratio from which the optimisation pays.
    pub threshold: f64,
    /// Request sizes whose ratio is at least `threshold`, ascending.
    pub sizes_bytes: Vec<u64>,
}

/// The ratios for the sizes in both curves: the access time of `random` divided by that of `sequential`. This equals
/// the throughput of sequential requests divided by that of random requests, because both have the same size.
pub fn ratios(sequential: &[CurvePoint], random: &[CurvePoint]) -> Vec<Ratio> {
    let of = |first: &CurvePoint| {
        let at = random.binary_search_by_key(&first.size_bytes, |point| point.size_bytes).ok()?;
        let second = &random[at];
        let estimate = second.access_time_ns / first.access_time_ns;
        let widths = first.relative_half_width().zip(second.relative_half_width());
        // Both access times are independent, so their relative errors add as squares (delta
        // method). Without both intervals nothing is known about the ratio.
        let half = widths.map(|(a, b)| estimate * a.hypot(b));
        Some(Ratio {
            size_bytes: first.size_bytes,
            estimate,
            low: half.map(|half| (estimate - half).max(0.0)),
            high: half.map(|half| estimate + half),
            measured: first.measured && second.measured,
        })
    };
    sequential.iter().filter_map(of).collect()
}

/// The break-even of an optimisation: the sizes of `ratios`, in bytes, at which one that pays from a ratio of
/// `threshold` on pays (S2-18).
pub fn pays_from(ratios: &[Ratio], threshold: f64) -> Vec<u64> {
    let pays = ratios.iter().filter(|ratio| ratio.estimate >= threshold);
    pays.map(|ratio| ratio.size_bytes).collect()
}

/// The JSON schema of [`ProfileResult`] (JSON Schema 2020-12), as published with the program.
pub fn schema() -> schemars::Schema {
    schemars::schema_for!(ProfileResult)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(size_bytes: u64, access_time_ns: f64, half: Option<f64>) -> CurvePoint {
        let low = half.map(|half| access_time_ns - half);
        let high = half.map(|half| access_time_ns + half);
        CurvePoint { size_bytes, access_time_ns, low, high, measured: true, repetitions: 1 }
    }

    #[test]
    fn a_ratio_is_random_time_by_sequential_time() {
        let sequential = [point(1, 10.0, Some(0.3)), point(2, 20.0, None), point(4, 40.0, None)];
        let random = [point(1, 20.0, Some(0.8)), point(4, 30.0, None)];
        let all = ratios(&sequential, &random);
        assert_eq!(all.len(), 2);
        // 3 % and 4 % together are 5 %.
        assert!((all[0].estimate - 2.0).abs() < 1e-12 && all[0].measured);
        assert!(
            (all[0].low.unwrap() - 1.9).abs() < 1e-9 && (all[0].high.unwrap() - 2.1).abs() < 1e-9
        );
        assert_eq!((all[1].estimate, all[1].low), (0.75, None));
        let summary = RatioSummary::of(&all).unwrap();
        assert_eq!((summary.mean, summary.min, summary.max), (1.375, 0.75, 2.0));
        assert_eq!(RatioSummary::of(&[]), None);
        assert_eq!(pays_from(&all, 2.0), [1]);
        assert_eq!(pays_from(&all, 0.5), [1, 4]);
        assert!(pays_from(&all, 2.1).is_empty());
    }
}
