//! What is to be done.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ssdyno_block::Time;
use ssdyno_block::units::Bytes;
use ssdyno_figures::{bytes_per_second, nanoseconds, rate};
use ssdyno_session::Failure;
use ssdyno_workload::{AddressPattern, Pattern, TargetFacts, WorkloadConfig};

use crate::result::PtsCell;
use crate::rule::WINDOW_ROUNDS;

ssdyno_block::named! {
    /// A test of the specification.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum Test: name {
        /// Random requests: eight block sizes by seven mixes of reads and writes.
        #[default]
        Iops = "iops",
        /// Sequential requests of 1024 KiB and 128 KiB, each size as a separate test.
        Throughput = "throughput",
        /// Random requests one at a time: three block sizes by three mixes.
        Latency = "latency",
    }
}

/// A figure that decides on steady state: its key in a cell, its value there, what it is, and its text.
type Figure = (&'static str, fn(&PtsCell) -> Option<f64>, &'static str, fn(f64) -> String);

impl Test {
    /// The figure that the test tracks.
    pub(crate) fn tracked(self) -> Figure {
        match self {
            Test::Iops => ("iops", |cell| Some(cell.iops), "requests per second", rate),
            Test::Throughput => {
                let pick = |cell: &PtsCell| Some(cell.throughput_bytes_per_second);
                ("throughput_bytes_per_second", pick, "bytes per second", bytes_per_second)
            }
            Test::Latency => {
                ("latency_ns_mean", |cell| cell.latency_ns_mean, "mean latency", nanoseconds)
            }
        }
    }
}

impl fmt::Display for Test {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Test {
    type Err = String;
    fn from_str(text: &str) -> Result<Test, String> {
        Test::named(text)
            .ok_or_else(|| format!("`{text}` is not one of iops, throughput and latency"))
    }
}

const KIB: u64 = 1 << 10;

/// Size of the writes of the workload independent preconditioning.
pub(crate) const PRECONDITION_BLOCK: u64 = 128 * KIB;

/// Block size of the tracked figure of the tests with random requests.
const TRACKED_BLOCK: u64 = 4 * KIB;

/// One load of a round.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Load {
    pub(crate) read_percent: u32,
    pub(crate) block_bytes: u64,
    pub(crate) sequential: bool,
}

impl Load {
    pub(crate) fn name(&self) -> String {
        let (read, write) = (self.read_percent, 100 - self.read_percent);
        format!("{} R/W {read}/{write}", block_name(self.block_bytes))
    }
}

/// `4 KiB`, `0.5 KiB`.
pub(crate) fn block_name(bytes: u64) -> String {
    format!("{} KiB", bytes as f64 / KIB as f64)
}

/// Loads of a part of a test, in the order of a round, and the one whose figure is tracked.
#[derive(Clone, Debug)]
pub(crate) struct PartPlan {
    pub(crate) name: String,
    pub(crate) loads: Vec<Load>,
    pub(crate) tracked: Load,
}

/// A test and how it goes about it.
#[derive(Clone, PartialEq, Debug)]
pub struct PtsPlan {
    /// Name of the target in results.
    pub target: String,
    /// The test.
    pub test: Test,
    /// How long each load of a round runs, on the clock of the device. The specification says one
    /// minute.
    pub round: Time,
    /// Rounds after which it is given up. The specification says 25.
    pub rounds_max: u32,
    /// How long the tracked load of the latency test runs once more after the rounds, with every
    /// answer in a histogram; 0: not at all. The specification says 20 minutes.
    pub histogram: Time,
    /// How many times the device is written over sequentially before. The specification says 2.
    pub precondition: f64,
    /// Percentage of the device, from its start, that the rounds use: greater than 0, at most 100.
    pub active_range_percent: f64,
    /// Requests outstanding, 1 or more; always 1 in the latency test.
    pub depth: u32,
    /// Whether the device is to be purged first.
    pub purge: bool,
    /// Decides about everything random.
    pub seed: u64,
}

/// Longest load of a test. The clock ends after 213 days, and a test has dozens of loads.
const LOAD_MOST: Time = Time::from_s(7 * 86_400);

impl PtsPlan {
    /// The parts of the test on a device; `notes` says what is left out.
    pub(crate) fn parts(
        &self,
        facts: &TargetFacts,
        notes: &mut Vec<String>,
    ) -> Result<Vec<PartPlan>, Failure> {
        self.check()?;
        let active = facts.capacity_bytes as f64 * self.active_range_percent / 100.0;
        // A block that is not a multiple of the sector cannot be requested directly: 0.5 KiB does
        // not exist on a device with sectors of 4096 bytes. It is left out, and a note says so.
        let fits = |block: u64| {
            block.is_multiple_of(u64::from(facts.sector_bytes)) && block as f64 <= active
        };
        let blocks: &[u64] = match self.test {
            Test::Iops => &[1024, 128, 64, 32, 16, 8, 4],
            Test::Throughput => &[1024, 128],
            Test::Latency => &[8, 4],
        };
        let mut blocks: Vec<u64> = blocks.iter().map(|kib| kib * KIB).collect();
        if self.test != Test::Throughput {
            blocks.push(KIB / 2);
        }
        let (possible, left_out): (Vec<u64>, Vec<u64>) = blocks.into_iter().partition(|b| fits(*b));
        if !left_out.is_empty() {
            let names: Vec<String> = left_out.iter().map(|block| block_name(*block)).collect();
            notes.push(format!(
                "left out: blocks of {} (not a multiple of the sector, {} B, or larger than the \
                 active range)",
                names.join(", "),
                facts.sector_bytes
            ));
        }
        let mixes: &[u32] = match self.test {
            Test::Iops => &[100, 95, 65, 50, 35, 5, 0],
            Test::Throughput => &[100, 0],
            Test::Latency => &[100, 65, 0],
        };
        let sequential = self.test == Test::Throughput;
        let loads = |blocks: &[u64]| {
            let one = |read_percent: u32, block_bytes: u64| Load {
                read_percent,
                block_bytes,
                sequential,
            };
            let mut loads = Vec::new();
            // The order is that of the specification: all block sizes of one mix, from
            // large to small, and then the next mix. Each load changes the state that
            // the next one finds.
            for mix in mixes {
                loads.extend(blocks.iter().map(|block| one(*mix, *block)));
            }
            loads
        };
        if sequential {
            // Each block size of the throughput test is a separate test. So it is a part of its
            // own, with a purge, preconditioning and rounds.
            let part = |block: &u64| PartPlan {
                name: format!("sequential {}", block_name(*block)),
                loads: loads(&[*block]),
                tracked: Load { read_percent: 0, block_bytes: *block, sequential },
            };
            let parts: Vec<PartPlan> = possible.iter().map(part).collect();
            return if parts.is_empty() { Err(self.too_small()) } else { Ok(parts) };
        }
        // Steady state is defined on writes of 4 KiB. Without them the rounds would have no
        // figure to track, and no round would end the test.
        if !possible.contains(&TRACKED_BLOCK) {
            return Err(self.too_small());
        }
        let tracked = Load { read_percent: 0, block_bytes: TRACKED_BLOCK, sequential };
        let name = format!("random, {} outstanding", self.outstanding());
        Ok(vec![PartPlan { name, loads: loads(&possible), tracked }])
    }

    fn too_small(&self) -> Failure {
        Failure::usage("the active range of the target is too small for the blocks of this test")
            .with_help("use a larger target or a larger `active_range_percent`")
    }

    fn check(&self) -> Result<(), Failure> {
        let refuse = |what: &str, help: &str| Err(Failure::usage(what).with_help(help));
        // The comparison is written so that NaN is refused, too. A range of NaN would become a
        // range of zero bytes later.
        if !(self.active_range_percent > 0.0 && self.active_range_percent <= 100.0) {
            return refuse(
                "the active range must be a percentage of the device",
                "use 1 to 100 percent",
            );
        }
        if !(self.precondition >= 0.0 && self.precondition <= 100.0) {
            return refuse(
                "the amount of preconditioning is out of range",
                "set it to 0 to 100 times the capacity, such as 2",
            );
        }
        if (self.rounds_max as usize) < WINDOW_ROUNDS {
            return refuse("steady state needs five rounds", "allow 5 rounds or more");
        }
        if self.round == Time::ZERO || self.depth == 0 {
            return refuse(
                "a load needs at least one request",
                "set a time above 0 and at least one request",
            );
        }
        if self.round.max(self.histogram().unwrap_or_default()) > LOAD_MOST {
            return refuse(
                &format!("a load is longer than {LOAD_MOST}, the limit of the clock"),
                "use a shorter `round`; the histogram of the latency test is 20 times as long",
            );
        }
        Ok(())
    }

    /// Length of the load whose answers are all kept; `None` if there is none.
    pub(crate) fn histogram(&self) -> Option<Time> {
        (self.test == Test::Latency && self.histogram > Time::ZERO).then_some(self.histogram)
    }

    /// Requests outstanding.
    pub(crate) fn outstanding(&self) -> u32 {
        if self.test == Test::Latency { 1 } else { self.depth }
    }

    /// The workload of one load.
    pub(crate) fn config(&self, load: &Load) -> WorkloadConfig {
        WorkloadConfig {
            depth: Some(self.outstanding()),
            read_percent: Some(f64::from(load.read_percent)),
            write_percent: Some(f64::from(100 - load.read_percent)),
            block_size: Some(Bytes(load.block_bytes)),
            address: AddressPattern {
                pattern: if load.sequential { Pattern::Sequential } else { Pattern::Random },
                length_percent: Some(self.active_range_percent),
                ..AddressPattern::default()
            },
            // The time ends the load, as the specification has it. The number is only so large
            // that no device completes it in the time.
            requests: Some(u64::MAX / 2),
            ..WorkloadConfig::default()
        }
    }

    /// The sequential writes before the rounds; `None` if there are none.
    pub(crate) fn precondition(&self, facts: &TargetFacts) -> Option<WorkloadConfig> {
        let block = PRECONDITION_BLOCK.min(facts.capacity_bytes);
        // A target may be smaller than 128 KiB. The block then is the whole target, rounded
        // down to whole sectors.
        let block = block / u64::from(facts.sector_bytes) * u64::from(facts.sector_bytes);
        let bytes = facts.capacity_bytes as f64 * self.precondition;
        let requests = (bytes / block.max(1) as f64).ceil() as u64;
        (requests > 0).then(|| WorkloadConfig {
            depth: Some(self.depth),
            read_percent: Some(0.0),
            write_percent: Some(100.0),
            block_size: Some(Bytes(block)),
            address: AddressPattern { pattern: Pattern::Sequential, ..AddressPattern::default() },
            requests: Some(requests),
            ..WorkloadConfig::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FACTS: TargetFacts = TargetFacts { capacity_bytes: 1 << 30, sector_bytes: 512 };

    pub(crate) fn plan(test: Test) -> PtsPlan {
        PtsPlan {
            target: "sim:x".into(),
            test,
            round: Time::from_ms(10),
            rounds_max: 25,
            histogram: Time::from_ms(200),
            precondition: 2.0,
            active_range_percent: 100.0,
            depth: 32,
            purge: true,
            seed: 1,
        }
    }

    #[test]
    fn a_plan_out_of_range_is_refused_with_its_reason() {
        let refused = |plan: PtsPlan| plan.check().unwrap_err().to_string();
        for precondition in [-1.0, 101.0, f64::NAN] {
            let text = refused(PtsPlan { precondition, ..plan(Test::Iops) });
            assert!(text.contains("out of range"), "{precondition}: {text}");
        }
        let round = Time::from_s(480 * 3_600);
        assert!(refused(PtsPlan { round, ..plan(Test::Iops) }).contains("longer than"));
        let long = PtsPlan { histogram: Time::MAX, ..plan(Test::Latency) };
        assert!(refused(long).contains("longer than"));
        assert!(plan(Test::Latency).check().is_ok());
    }

    #[test]
    fn the_matrices_of_the_specification() {
        let parts = |test| plan(test).parts(&FACTS, &mut Vec::new()).unwrap();
        let [iops] = &parts(Test::Iops)[..] else { panic!("one part") };
        assert_eq!(iops.loads.len(), 56);
        assert_eq!(iops.loads[0].name(), "1024 KiB R/W 100/0");
        assert_eq!(iops.loads[55].name(), "0.5 KiB R/W 0/100");
        assert_eq!(iops.tracked.name(), "4 KiB R/W 0/100");
        assert_eq!(parts(Test::Throughput).len(), 2);
        let [latency] = &parts(Test::Latency)[..] else { panic!("one part") };
        assert_eq!(latency.loads.len(), 9);
        assert_eq!(plan(Test::Latency).outstanding(), 1);
        assert!(plan(Test::Iops).config(&iops.loads[3]).build(&FACTS, 1).is_ok());
        let before = plan(Test::Iops).precondition(&FACTS).unwrap();
        assert_eq!(before.requests, Some(2 * (1 << 30) / (128 << 10)));
    }

    #[test]
    fn what_does_not_fit_is_left_out_and_said() {
        let facts = TargetFacts { capacity_bytes: 1 << 20, sector_bytes: 4096 };
        let mut notes = Vec::new();
        let small = PtsPlan { active_range_percent: 50.0, ..plan(Test::Iops) };
        let parts = small.parts(&facts, &mut notes).unwrap();
        assert_eq!(parts[0].loads.len(), 6 * 7);
        assert!(notes[0].contains("1024 KiB, 0.5 KiB"), "{notes:?}");
        let tiny = TargetFacts { capacity_bytes: 2048, sector_bytes: 512 };
        assert!(small.parts(&tiny, &mut notes).is_err());
        let none = PtsPlan { active_range_percent: f64::NAN, ..plan(Test::Iops) };
        assert!(none.parts(&FACTS, &mut notes).is_err());
        assert!(PtsPlan { rounds_max: 4, ..plan(Test::Iops) }.parts(&FACTS, &mut notes).is_err());
    }
}
