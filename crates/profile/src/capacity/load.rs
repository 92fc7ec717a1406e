//! The loads of a capacity profile.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ssdyno_block::units::Bytes;
use ssdyno_engine::Rng;
use ssdyno_workload::{AddressPattern, Pattern, WorkloadConfig};

use crate::measure::ProfileOp;

use super::state::DEPTH_MAX;

/// Size of the requests of the iops figures where the sector allows it: a page of the kernel's model.
pub(crate) const SMALL_BYTES: u64 = 4096;
/// Size of the requests of the bandwidth figures. Seastar's iotune uses the same.
pub(crate) const LARGE_BYTES: u64 = 1 << 20;
/// Size of the requests of the larger checked loads: between those of the fitted ones.
pub(crate) const MIDDLE_BYTES: u64 = 64 << 10;
/// Share of reads of the mixed loads, in percent.
pub(crate) const MIX_READ_PERCENT: f64 = 70.0;

ssdyno_block::named! {
    /// One figure of the kernel's linear cost model, by its name in the model.
    #[derive(
        Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema,
    )]
    #[serde(rename_all = "lowercase")]
    pub enum Figure: key {
        // Keys and order are those of `io.cost.model`.
        /// Bandwidth of large sequential reads, in bytes per second.
        Rbps = "rbps",
        /// Small sequential reads per second.
        Rseqiops = "rseqiops",
        /// Small random reads per second.
        Rrandiops = "rrandiops",
        /// Bandwidth of large sequential writes, in bytes per second.
        Wbps = "wbps",
        /// Small sequential writes per second.
        Wseqiops = "wseqiops",
        /// Small random writes per second.
        Wrandiops = "wrandiops",
    }
}

impl Figure {
    /// Its operation.
    pub fn op(self) -> ProfileOp {
        match self {
            Figure::Rbps | Figure::Rseqiops | Figure::Rrandiops => ProfileOp::Read,
            Figure::Wbps | Figure::Wseqiops | Figure::Wrandiops => ProfileOp::Write,
        }
    }

    /// Whether it is a bandwidth, measured with large requests.
    pub fn is_bandwidth(self) -> bool {
        matches!(self, Figure::Rbps | Figure::Wbps)
    }

    fn is_random(self) -> bool {
        matches!(self, Figure::Rrandiops | Figure::Wrandiops)
    }
}

/// A load of a capacity profile.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum CapacityTest {
    /// The load of a figure.
    Figure(Figure),
    /// Random reads of 64 KiB, which no figure is fitted to.
    CheckReads,
    /// 70 % random reads and 30 % random writes of the small size, which no figure is fitted to.
    CheckSmallMix,
    /// The same with 64 KiB.
    CheckLargeMix,
}

/// Sizes of the loads on a target.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct LoadSizes {
    pub(crate) small: u64,
    pub(crate) large: u64,
    pub(crate) middle: u64,
    pub(crate) span: u64,
}

impl CapacityTest {
    /// Those of `ops`: the figures first.
    pub(crate) fn of(ops: &[ProfileOp]) -> Vec<CapacityTest> {
        let writes = ops.contains(&ProfileOp::Write);
        let figures = Figure::ALL.into_iter().filter(|figure| ops.contains(&figure.op()));
        let mut all: Vec<CapacityTest> = figures.map(CapacityTest::Figure).collect();
        all.push(CapacityTest::CheckReads);
        if writes {
            all.extend([CapacityTest::CheckSmallMix, CapacityTest::CheckLargeMix]);
        }
        all
    }

    pub(crate) fn figure(self) -> Option<Figure> {
        match self {
            CapacityTest::Figure(figure) => Some(figure),
            _ => None,
        }
    }

    /// Share of reads, 0 to 1.
    pub(crate) fn read_share(self) -> f64 {
        match self {
            CapacityTest::Figure(figure) if figure.op() == ProfileOp::Write => 0.0,
            CapacityTest::CheckSmallMix | CapacityTest::CheckLargeMix => MIX_READ_PERCENT / 100.0,
            _ => 1.0,
        }
    }

    pub(crate) fn size(self, sizes: &LoadSizes) -> u64 {
        match self {
            CapacityTest::Figure(figure) if figure.is_bandwidth() => sizes.large,
            CapacityTest::Figure(_) | CapacityTest::CheckSmallMix => sizes.small,
            CapacityTest::CheckReads | CapacityTest::CheckLargeMix => sizes.middle,
        }
    }

    /// In words, with the size.
    pub(crate) fn words(self, sizes: &LoadSizes) -> String {
        let size = Bytes(self.size(sizes));
        match self {
            CapacityTest::Figure(figure) => {
                let order = if figure.is_random() { "random" } else { "sequential" };
                format!("{order} {}s of {size}", figure.op())
            }
            CapacityTest::CheckReads => format!("random reads of {size}"),
            CapacityTest::CheckSmallMix | CapacityTest::CheckLargeMix => {
                format!("{MIX_READ_PERCENT} % random reads, rest random writes, of {size}")
            }
        }
    }

    /// Requests outstanding at most. A target without asynchronous requests carries a sequential load as this number of
    /// streams, and [`least_records`] may be all that a load has.
    pub(crate) fn depth_most(self, sizes: &LoadSizes) -> u32 {
        match self {
            CapacityTest::Figure(figure) if !figure.is_random() => {
                let records = sizes.span / self.size(sizes);
                (records / 2).clamp(1, u64::from(DEPTH_MAX)) as u32
            }
            _ => DEPTH_MAX,
        }
    }

    /// The load, without an end of its own. A sequential one begins at a `place` of the span and wraps.
    pub(crate) fn config(self, sizes: &LoadSizes, depth: u32, place: Place) -> WorkloadConfig {
        let size = self.size(sizes);
        let records = sizes.span / size;
        let random = !matches!(self, CapacityTest::Figure(figure) if !figure.is_random());
        let mut address = AddressPattern {
            pattern: if random { Pattern::Random } else { Pattern::Sequential },
            length: Some(Bytes(records * size)),
            ..AddressPattern::default()
        };
        if !random {
            let least = if place.is_long { records.div_ceil(2) } else { least_records(records) };
            let first = (place.share * (records - least + 1) as f64) as u64;
            address.start = Bytes(first * size);
            address.length = Some(Bytes((records - first) * size));
        }
        let reads = self.read_share() * 100.0;
        WorkloadConfig {
            depth: Some(depth.min(self.depth_most(sizes))),
            read_percent: Some(reads),
            write_percent: Some(100.0 - reads),
            block_size: Some(Bytes(size)),
            address,
            // The time ends the load. The number is only so large that the workload
            // never ends before.
            requests: Some(1 << 40),
            ..WorkloadConfig::default()
        }
    }
}

/// Where a sequential load begins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// 0 to 1: from the first record that is possible to the last one, which excludes 1.
    pub(crate) share: f64,
    /// Whether half of the span has to follow: a long write to less could find its own data in a cache.
    pub(crate) is_long: bool,
}

impl Place {
    /// The place of the load number `turn` of a kind, the first of which `seed` draws.
    ///
    /// Multiples of the golden ratio are spread evenly, however many of them there are. Places drawn one by one gave some
    /// profiles of a disk five fast tracks, and with them an interval that was narrow and wrong.
    pub(crate) fn number(turn: usize, seed: u64) -> Place {
        const GOLDEN: f64 = 0.618_033_988_749_894_9;
        let first = Rng::new(seed, "capacity start").unit();
        Place { share: (first + turn as f64 * GOLDEN).fract(), is_long: false }
    }
}

/// The fewest of `records` that follow the start of a short load.
///
/// A disk is twice as fast at its start as at its end. Starts in the first half alone gave sequential rates that were 18 %
/// above the mean of the whole disk. Less than a sixteenth would be the same records again and again for a fast device.
fn least_records(records: u64) -> u64 {
    (records / 16).max(u64::from(DEPTH_MAX)).min(records.div_ceil(2))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The places of short loads are spread over the span, those of long ones over its first half.
    #[test]
    fn sequential_loads_begin_everywhere() {
        let sizes = LoadSizes { small: 4096, large: 1 << 20, middle: 65_536, span: 1 << 40 };
        let starts = |is_long| {
            let start = |turn| {
                let place = Place { is_long, ..Place::number(turn, 1) };
                let address = CapacityTest::Figure(Figure::Rbps).config(&sizes, 8, place).address;
                assert_eq!(address.start.0 + address.length.unwrap().0, sizes.span);
                address.start.0 as f64 / sizes.span as f64
            };
            let all: Vec<f64> = (0..1000).map(start).collect();
            (all.iter().sum::<f64>() / 1000.0, all.iter().copied().fold(0.0, f64::max))
        };
        let near = |(mean, most): (f64, f64), end: f64| {
            assert!(
                (mean - end / 2.0).abs() < 0.03 && most > 0.98 * end && most <= end,
                "{mean} {most}"
            );
        };
        near(starts(false), 15.0 / 16.0);
        near(starts(true), 0.5);
    }

    #[test]
    fn loads_of_operations() {
        assert_eq!(CapacityTest::of(&[ProfileOp::Read]).len(), 4);
        let all = CapacityTest::of(&[ProfileOp::Write, ProfileOp::Read]);
        assert_eq!(all.len(), 9);
        assert!(all.iter().take(6).all(|test| test.figure().is_some()));
        let sizes = LoadSizes { small: 4096, large: 1 << 20, middle: 65_536, span: 64 << 20 };
        let facts = ssdyno_workload::TargetFacts { capacity_bytes: 64 << 20, sector_bytes: 4096 };
        for test in all {
            // Each of these streams has its own request.
            let most = test.config(&sizes, 256, Place::number(0, 1)).depth.unwrap();
            assert_eq!(most, if test.size(&sizes) == sizes.large { 32 } else { 256 }, "{test:?}");
            for seed in 0..20 {
                let config = test.config(&sizes, 8, Place::number(0, seed));
                assert!(config.build(&facts, seed).is_ok(), "{test:?}");
                let end = config.address.start.0 + config.address.length.unwrap().0;
                assert!(end <= sizes.span, "{test:?}");
            }
        }
    }
}
