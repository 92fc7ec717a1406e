//! The paper's files: what is printed, and which runs stand behind it.

use std::collections::BTreeMap;

use serde::Deserialize;
use ssdyno_block::units::{Bytes, Span};
use ssdyno_session::Failure;

use crate::assumptions::Changes;
use crate::error::paper_files;
use crate::measured::{Point, PointPlan};
use crate::printed::{PrintedNumber, Titled};

paper_files!("s4": Printed in "printed.toml"; assumptions in "assumptions.toml");

/// `printed.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Printed {
    /// Notes on cells, by figure or table and tool.
    pub(super) notes: BTreeMap<String, String>,
    pub(super) title: String,
    pub(super) cells: Vec<PrintedNumber>,
    pub(super) table3: PrintedSwitches,
    pub(super) table4: PrintedIscsi,
    pub(super) figure3: Pair,
    pub(super) figure5a: Pair,
}

/// Sequential read and write, random read and write.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PrintedSwitches {
    pub(super) iometer: [f64; 4],
    pub(super) spek: [f64; 4],
    pub(super) iometer_system_calls: f64,
    pub(super) spek_system_calls: f64,
}

/// MB/s with one, two and three clients.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PrintedIscsi {
    pub(super) totals: [f64; 3],
    /// Of each client.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "beside what is measured"))]
    pub(super) shares: [Vec<f64>; 3],
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Pair {
    pub(super) iometer: f64,
    pub(super) spek: f64,
}

/// `plan.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Plan {
    pub(super) notes: Vec<String>,
    pub(super) figures: Vec<Titled>,
    pub(super) seeds: Vec<u64>,
    pub(super) iscsi_seconds: f64,
    /// Delays, by name.
    pub(super) devices: BTreeMap<String, toml::Table>,
    /// Device presets with keys that differ, by name.
    pub(super) disks: BTreeMap<String, DiskPlan>,
    pub(super) stacks: BTreeMap<String, StackPlan>,
    pub(super) loads: BTreeMap<String, LoadPlan>,
    pub(super) figure3: Series,
    pub(super) figure4: Series,
    pub(super) figure5: Sizes,
    pub(super) figure7: Workers,
    pub(super) table4: Clients,
}

/// A device preset with keys that differ.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DiskPlan {
    pub(super) preset: String,
    /// Keys to set, by path.
    #[serde(default)]
    pub(super) set: BTreeMap<String, toml::Value>,
}

/// A host preset with keys that differ.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StackPlan {
    pub(super) host: String,
    /// Tables to leave out.
    #[serde(default)]
    pub(super) without: Vec<String>,
    /// Keys to set, by table.
    #[serde(default)]
    pub(super) set: BTreeMap<String, toml::Table>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LoadPlan {
    pub(super) read_percent: f64,
    pub(super) pattern: String,
    #[serde(default)]
    pub(super) range: Option<Bytes>,
    /// Requests of each worker.
    #[serde(default)]
    pub(super) requests: Option<u64>,
    /// Or so long.
    #[serde(default)]
    pub(super) seconds: Option<f64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Series {
    pub(super) size_kib: u32,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Sizes {
    pub(super) sizes_kib: Vec<u32>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Workers {
    pub(super) size_kib: u32,
    pub(super) workers: Vec<u16>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Clients {
    pub(super) size_kib: u32,
    /// Requests outstanding for each client.
    pub(super) outstanding: u32,
    pub(super) clients: Vec<u16>,
}

/// A point: one run for each seed.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Case {
    pub(super) device: String,
    pub(super) stack: String,
    pub(super) load: String,
    pub(super) size_kib: u32,
    pub(super) workers: u16,
    /// Behind a network: the name of a variant of it.
    pub(super) network: Option<&'static str>,
}

impl Case {
    pub(super) fn new(device: &str, stack: &str, load: &str, size_kib: u32, workers: u16) -> Case {
        let [device, stack, load] = [device, stack, load].map(str::to_owned);
        Case { device, stack, load, size_kib, workers, network: None }
    }
}

impl Point for Case {
    fn name(&self, seed: u64) -> String {
        let Case { device, stack, load, size_kib, workers, network } = self;
        let network = network.map(|network| format!("_{network}")).unwrap_or_default();
        format!("{load}_{size_kib}k_{stack}_{device}_x{workers}{network}_seed_{seed}")
    }
}

/// The loads of figures 5 and 6, with the letter of each.
pub(super) const LOADS: [(&str, &str); 4] = [
    ("figure5a", "sequential-read"),
    ("figure5b", "sequential-write"),
    ("figure5c", "random-read"),
    ("figure5d", "random-write"),
];

/// The loads of figure 4.
pub(super) const ZCAV: [&str; 2] = ["zcav-read", "zcav-write"];

/// The point of S4-26: each write is on the medium before the next one begins.
pub(super) fn one_after_another() -> Case {
    Case::new("seagate-write-through", "spek", "random-write", 16, 1)
}

/// The loads of table 3, in its order.
pub(super) const QUICK: [&str; 4] =
    ["quick-sequential-read", "quick-sequential-write", "quick-random-read", "quick-random-write"];

/// Stacks of figures 3, 5 and 6.
pub(super) const TOOLS: [&str; 2] = ["spek", "iometer"];

/// Stacks of figure 7: also a process on the raw interface.
pub(super) const TOOLS_OF_7: [&str; 3] = ["spek", "raw", "iometer"];

/// Stacks of figure 1.
pub(super) const FILE_SYSTEMS: [&str; 3] = ["ext2", "ext3", "ext2-sync"];

/// Loads of figure 1, with their request sizes in KiB: assumed.
pub(super) const SUITES: [(&str, u32); 3] = [("postmark", 8), ("iozone", 64), ("bonnie", 16)];

/// Variants of the network of table 4: assumed costs, and demands fitted to its rows.
pub(super) const NETWORK_VARIANTS: [&str; 2] = ["assumed", "fitted"];

impl Plan {
    /// How long the load of `case` lasts, where it is measured by time.
    pub(super) fn seconds(&self, case: &Case) -> Option<Span> {
        let load = self.loads.get(&case.load)?;
        let seconds = match case.network {
            Some(_) => Some(self.iscsi_seconds),
            None => load.seconds,
        };
        seconds.map(|seconds| Span(ssdyno_block::Time::from_s_f64(seconds)))
    }
}

impl Plan {
    pub(super) fn load() -> Result<Plan, Failure> {
        PointPlan::with(Changes::none())
    }
}
