//! The paper's files: what is printed, and which runs stand behind it.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::error::paper_files;
use crate::measured::Point;
use crate::printed::PrintedNumber;

paper_files!("s1": Printed in "printed.toml", Plan in "plan.toml"; assumptions in "assumptions.toml");

/// A queue for each core, with request buffers of 128 KiB instead of 32 KiB (S1-52).
pub(super) const LARGE_BUFFERS: &str = "per-core, 128 KiB";
/// A queue for each core, without the SCSI resource: the direct NVMe resource (S1-51).
pub(super) const DIRECT: &str = "per-core, no SCSI";

/// The two disks behind their adapter, instead of the SSD behind NVMe (S1-68).
pub(super) const DISKS: &str = "disks";

/// The drive without a host.
pub(super) const ALONE: &str = "drive alone";

/// `printed.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Printed {
    pub(super) title: String,
    pub(super) cells: Vec<PrintedNumber>,
}

/// `plan.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Plan {
    pub(super) notes: Vec<String>,
    pub(super) seeds: Vec<u64>,
    pub(super) device: DevicePlan,
    /// The preset of the two disks.
    pub(super) disks: String,
    pub(super) kinds: BTreeMap<String, KindPlan>,
    pub(super) figures: Vec<FigurePlan>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DevicePlan {
    pub(super) preset: String,
    /// Keys of the preset that differ, by table.
    pub(super) changes: BTreeMap<String, toml::Table>,
}

/// A load.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct KindPlan {
    pub(super) block_size: String,
    pub(super) pattern: String,
    pub(super) depth: u32,
    pub(super) requests_per_core: u64,
    #[serde(default)]
    pub(super) ramp_up_per_core: u64,
    /// The same of writes, however many cores there are.
    #[serde(default)]
    pub(super) ramp_up_writes: u64,
    pub(super) threads: String,
    /// Keys of the device that differ with this load, by table.
    #[serde(default)]
    pub(super) device: BTreeMap<String, toml::Table>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FigurePlan {
    pub(super) id: String,
    pub(super) title: String,
    pub(super) kind: String,
    pub(super) cores: Vec<u16>,
    pub(super) policies: Vec<String>,
    #[serde(default)]
    pub(super) by_core: bool,
}

/// A point of a figure: one run for each seed.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Case {
    pub(super) kind: String,
    pub(super) policy: String,
    pub(super) cores: u16,
    pub(super) writes: bool,
}

impl Case {
    pub(super) fn new(kind: &str, policy: &str, cores: u16, writes: bool) -> Case {
        Case { kind: kind.to_owned(), policy: policy.to_owned(), cores, writes }
    }
}

impl Point for Case {
    fn name(&self, seed: u64) -> String {
        let way = if self.writes { "write" } else { "read" };
        format!("{}_{way}_{}_{}_cores_seed_{seed}", self.kind, self.policy, self.cores)
    }
}

impl FigurePlan {
    /// Its points: reads and writes for each policy and number of cores.
    pub(super) fn cases(&self) -> Vec<Case> {
        let mut cases = Vec::new();
        for policy in &self.policies {
            for cores in &self.cores {
                let case = |writes| Case::new(&self.kind, policy, *cores, writes);
                cases.extend([false, true].map(case));
            }
        }
        if self.kind == "iops" {
            cases.extend([first_batch(), alone()]);
        }
        cases
    }
}

/// Writes of 4 KiB from eight cores into empty buffers.
pub(super) fn first_batch() -> Case {
    Case::new("burst", "per-core", 8, true)
}

/// What the drive itself completes of such writes.
pub(super) fn alone() -> Case {
    Case::new("alone", ALONE, 1, true)
}
