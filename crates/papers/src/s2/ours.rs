//! Our profile (`--method adaptive`) of the same devices: its errors, its intervals and its time.
//!
//! Each profile is run on the device with its slowness: slices are too short to work them out from whole tests.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use ssdyno_block::Time;
use ssdyno_profile::{Method, ProfileOp, Ratio};
use ssdyno_session::{Failure, StopFlag};
use toml::Table;

use super::campaign::{self, Times, mean_ratio, size_ratios};
use super::data::Device;
use super::outcome::percentile;
use crate::presets;

/// The defaults of `ssdyno profile`: half the width of the 90 % interval of a ratio, and the time of all tests.
const ERROR: f64 = 0.05;
const TIME: Time = Time::from_s(180);

/// One profile of one span.
#[derive(PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct OurProfile {
    ratios: BTreeMap<ProfileOp, Vec<Ratio>>,
    /// On the clock of the device.
    pub(super) seconds: f64,
}

impl OurProfile {
    /// Profiles `span` bytes of `device`, with the seeds of the device and of the profile; `None` where it was stopped.
    pub(super) fn run(
        device: &Device,
        span: u64,
        seeds: (u64, u64),
        stop: &StopFlag,
    ) -> Result<Option<OurProfile>, Failure> {
        let table: Table = presets::device(&device.preset)?.read(toml::from_str)?;
        let method = Method::Adaptive { error: ERROR };
        let result = campaign::profile(device, table, method, Some(TIME), span, seeds, stop)?;
        Ok(result.map(|result| {
            let of = |op| (op, result.ratios(op).to_vec());
            // Only the ratios and the time are kept. The measurements of all slices would need much
            // more space in the cache, and no cell shows them.
            let ratios = [ProfileOp::Read, ProfileOp::Write].map(of).into();
            OurProfile { ratios, seconds: result.seconds_spent }
        }))
    }
}

/// How far ratios are from the truth.
#[derive(Clone, Debug, Default)]
pub(super) struct Errors {
    /// Relative errors of the ratio of each size.
    pub(super) sizes: Vec<f64>,
    /// Relative errors of the mean over all sizes: what the paper has.
    pub(super) means: Vec<f64>,
    /// Intervals that have the truth in them, and all.
    covered: u64,
    intervals: u64,
}

impl Errors {
    /// Adds the ratios of access times that have no intervals.
    pub(super) fn add_times(&mut self, found: &Times, truth: &Times, op: ProfileOp) {
        let truths: BTreeMap<u64, f64> = size_ratios(truth, op).collect();
        for (size, ratio) in size_ratios(found, op) {
            let error = truths.get(&size).map(|truth| (ratio / truth - 1.0).abs());
            self.sizes.extend(error);
        }
        let means = mean_ratio(found, op).zip(mean_ratio(truth, op));
        self.means.extend(means.map(|(found, truth)| (found / truth - 1.0).abs()));
    }

    /// Adds what a profile of ours found.
    pub(super) fn add_profile(&mut self, profile: &OurProfile, truth: &Times, op: ProfileOp) {
        let truths: BTreeMap<u64, f64> = size_ratios(truth, op).collect();
        let ratios = profile.ratios.get(&op).map_or(&[][..], Vec::as_slice);
        for ratio in ratios {
            let Some(truth) = truths.get(&ratio.size_bytes) else { continue };
            self.sizes.push((ratio.estimate / truth - 1.0).abs());
            if let Some((low, high)) = ratio.low.zip(ratio.high) {
                self.intervals += 1;
                // An interval is correct if it contains the truth as often as it states: 90 of 100.
                // Small errors with intervals that are too narrow would look good without this
                // count.
                self.covered += u64::from((low..=high).contains(truth));
            }
        }
        // The mean over the sizes is what the paper compares (S2-26). It hides errors of opposite
        // sign, so the errors of single sizes are listed beside it.
        let mean = ratios.iter().map(|ratio| ratio.estimate).sum::<f64>() / ratios.len() as f64;
        if let Some(truth) = mean_ratio(truth, op).filter(|_| !ratios.is_empty()) {
            self.means.push((mean / truth - 1.0).abs());
        }
    }

    /// Adds those of another device.
    pub(super) fn merge(&mut self, other: &Errors) {
        self.sizes.extend(&other.sizes);
        self.means.extend(&other.means);
        self.covered += other.covered;
        self.intervals += other.intervals;
    }

    /// In percent, of the ratios of single sizes.
    pub(super) fn percentile(&self, share: f64) -> Option<f64> {
        percentile(self.sizes.iter().copied(), share).map(|error| error * 100.0)
    }

    /// In percent, of the mean ratios.
    pub(super) fn mean_percentile(&self, share: f64) -> Option<f64> {
        percentile(self.means.iter().copied(), share).map(|error| error * 100.0)
    }

    /// Intervals with the truth in them, in percent.
    pub(super) fn coverage(&self) -> Option<f64> {
        (self.intervals > 0).then(|| self.covered as f64 / self.intervals as f64 * 100.0)
    }
}

/// SeRRa with one repetition and our profile, both against the same truth.
#[derive(Clone, Debug, Default)]
pub(super) struct Beside {
    /// Against the complete profile, which is the truth of the paper's errors.
    pub(super) serra: Errors,
    pub(super) ours: Errors,
    /// Ours against every test of the same device without slowness: what complete profiles come to with ever more
    /// repetitions.
    pub(super) steady: Errors,
    /// Device time of all spans; mean over the seeds.
    pub(super) serra_seconds: f64,
    pub(super) our_seconds: f64,
}

impl Beside {
    pub(super) fn merge(&mut self, other: &Beside) {
        self.serra.merge(&other.serra);
        self.ours.merge(&other.ours);
        self.steady.merge(&other.steady);
        self.serra_seconds += other.serra_seconds;
        self.our_seconds += other.our_seconds;
    }

    /// Our time divided by SeRRa's.
    pub(super) fn quotient(&self) -> Option<f64> {
        (self.serra_seconds > 0.0).then(|| self.our_seconds / self.serra_seconds)
    }

    /// The cells of a device, and the figure of each.
    pub(super) fn cells(&self) -> [(&'static str, Option<f64>); 14] {
        [
            ("serra_median_error_percent", self.serra.percentile(0.5)),
            ("serra_p95_error_percent", self.serra.percentile(0.95)),
            ("serra_mean_ratio_median_error_percent", self.serra.mean_percentile(0.5)),
            ("serra_minutes", Some(self.serra_seconds / 60.0)),
            ("median_error_percent", self.ours.percentile(0.5)),
            ("p95_error_percent", self.ours.percentile(0.95)),
            ("mean_ratio_median_error_percent", self.ours.mean_percentile(0.5)),
            ("mean_ratio_p95_error_percent", self.ours.mean_percentile(0.95)),
            ("coverage_percent", self.ours.coverage()),
            ("steady_median_error_percent", self.steady.percentile(0.5)),
            ("steady_p95_error_percent", self.steady.percentile(0.95)),
            ("steady_coverage_percent", self.steady.coverage()),
            ("minutes", Some(self.our_seconds / 60.0)),
            ("of_serra_time", self.quotient()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ssdyno_profile::ProfileTest;

    /// Sequential requests of sizes 1 and 2 take 10 ns, random ones what is given.
    fn times(random: [f64; 2]) -> Times {
        let (sequential, other) = ProfileTest::pair(ProfileOp::Read);
        let all = [(1, random[0]), (2, random[1])];
        all.into_iter()
            .flat_map(|(size, time)| [((sequential, size), 10.0), ((other, size), time)])
            .collect()
    }

    fn ratio(size_bytes: u64, estimate: f64, half: f64) -> Ratio {
        let (low, high) = (Some(estimate - half), Some(estimate + half));
        Ratio { size_bytes, estimate, low, high, measured: true }
    }

    #[test]
    fn errors_are_those_of_each_size_and_of_the_mean() {
        let truth = times([20.0, 40.0]);
        let mut errors = Errors::default();
        errors.add_times(&times([22.0, 38.0]), &truth, ProfileOp::Read);
        // 10 % too much and 5 % too little; the means are both 3.
        assert!((errors.percentile(0.5).unwrap() - 7.5).abs() < 1e-9, "{errors:?}");
        assert!(errors.mean_percentile(0.5).unwrap() < 1e-9, "{errors:?}");
        assert_eq!(errors.coverage(), None);
        let found = vec![ratio(1, 2.2, 0.3), ratio(2, 3.8, 0.1)];
        let profile = OurProfile { ratios: [(ProfileOp::Read, found)].into(), seconds: 1.0 };
        let mut ours = Errors::default();
        ours.add_profile(&profile, &truth, ProfileOp::Read);
        assert!((ours.percentile(0.5).unwrap() - 7.5).abs() < 1e-9, "{ours:?}");
        // 2 lies between 1.9 and 2.5, 4 not between 3.7 and 3.9.
        assert_eq!(ours.coverage(), Some(50.0));
        ours.add_profile(&profile, &truth, ProfileOp::Write);
        assert_eq!(ours.sizes.len(), 2);
    }
}
