//! What `papers/s2` has: the plan and the printed numbers.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use ssdyno_session::Failure;

use crate::error::{defect, paper_files};
use crate::printed::Titled;

paper_files!("s2": Printed in "printed.toml", Plan in "plan.toml");

/// The kinds of devices of the paper, and all together.
pub(super) const CLASSES: [&str; 4] = ["hdd", "raid", "ssd", "all"];

/// One of the nine devices.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Device {
    pub(super) name: String,
    pub(super) preset: String,
    pub(super) class: String,
}

impl Device {
    /// Whether it is of `class`; every device is of `all`.
    pub(super) fn is(&self, class: &str) -> bool {
        class == "all" || self.class == class
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Plan {
    pub(super) notes: Vec<String>,
    pub(super) note_on_ours: String,
    pub(super) tables: Vec<Titled>,
    pub(super) figures: Vec<Titled>,
    pub(super) spans_mib: Vec<u64>,
    pub(super) seeds: u64,
    pub(super) error: f64,
    pub(super) points: Vec<u32>,
    pub(super) repetitions: Vec<u32>,
    pub(super) devices: Vec<Device>,
}

const PRINTED: &str = "papers/s2/printed.toml";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Printed {
    pub(super) title: String,
    pub(super) table1: BTreeMap<String, Vec<f64>>,
    pub(super) table3: BTreeMap<String, Vec<f64>>,
    pub(super) table4: BTreeMap<String, Vec<f64>>,
    pub(super) table5: BTreeMap<String, Vec<f64>>,
    pub(super) table6: BTreeMap<String, Vec<f64>>,
    pub(super) repetitions: BTreeMap<String, f64>,
}

impl Printed {
    /// The numbers of a row.
    pub(super) fn row<'a>(
        table: &'a BTreeMap<String, Vec<f64>>,
        row: &str,
    ) -> Result<&'a [f64], Failure> {
        let numbers = table.get(row).map(Vec::as_slice);
        numbers.ok_or_else(|| defect(PRINTED, format!("there is no row `{row}`")))
    }
}
