//! The parameters of a run, and its results.

use std::path::PathBuf;

use ssdyno_block::Time;
use ssdyno_figures::{Keep, Provenance, RunLimits, RunResult};
use ssdyno_record::Recording;
use ssdyno_safety::Access;
use ssdyno_workload::Source;

use crate::error::BenchError;
use crate::options::BenchOptions;

/// A run in wall time.
#[derive(Debug)]
pub struct BenchRun {
    /// `null:`, the path of a block device or a file, or the name of a network target.
    pub target: String,
    /// Whether it may be written to.
    pub access: Access,
    /// Further files or devices that a job file names: their addresses follow those of the target.
    pub more: Vec<(String, Access)>,
    /// Name of the workload in results.
    pub workload: String,
    /// The workload.
    pub source: Source,
    /// Decides about everything random.
    pub seed: u64,
    /// Where to stop before the workload does.
    pub limits: RunLimits,
    /// The parts of each request to keep.
    pub keep: Keep,
    /// The directory of results, where rows go to a file while the run goes on; without one they are in memory.
    pub rows_in: Option<RowsPlace>,
    /// Length of the points of the series; `None`: by the length of the run.
    pub interval: Option<Time>,
    /// How to go about it.
    pub options: BenchOptions,
}

/// Where rows go while a run goes on, so that one that is killed leaves them.
#[derive(Clone, Debug)]
pub struct RowsPlace {
    /// The directory of results.
    pub directory: PathBuf,
    /// The spec of the run in the result, if it is made from these rows.
    pub spec: Option<serde_json::Value>,
    /// The machine, the program and the target before the run, if they are recorded.
    pub provenance: Option<Provenance>,
}

/// What a run gave.
#[derive(Debug)]
pub struct BenchMeasured {
    /// All figures.
    pub result: RunResult,
    /// Rows and distributions.
    pub recording: Recording,
    /// Why the run ended early, if it did: the result is partial then.
    pub failure: Option<BenchError>,
}

impl BenchRun {
    /// The load, in one line.
    pub fn name(&self) -> String {
        let more = self.more.iter().map(|(name, _)| name.as_str());
        std::iter::once(self.target.as_str()).chain(more).collect::<Vec<_>>().join(" + ")
    }
}
