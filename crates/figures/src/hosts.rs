//! What hosts, other machines and other programs did in a run on several hosts.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ssdyno_prober::SystemSeries;

use crate::latency::{Confidence, LatencyByOp};
use crate::provenance::Provenance;
use crate::result::{ByOp, Energy, FlashOperations, OwnCost, SeriesPoint};
use crate::tail::TailVerdict;

/// What one host did in the window in which all hosts were running. The figures of all hosts sum to those of the run.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct HostRun {
    /// Its name, as the user gave it.
    pub name: String,
    /// What its machine calls itself.
    pub machine: String,
    /// Seed of its random numbers: each host has its own.
    #[serde(default)]
    pub seed: u64,
    /// Whether its part ended early, or is missing.
    pub partial: bool,
    /// Why its figures are missing: they are in no figure of the run then. Left out where they are there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<String>,
    /// Requests completed without error.
    pub requests: u64,
    /// Requests that ended in an error.
    pub errors: u64,
    /// Requests that never completed, in the window or after it.
    pub unanswered: u64,
    /// `requests` by second.
    pub iops: f64,
    /// Bytes read and written, by second.
    pub throughput_bytes_per_second: f64,
    /// Requests by operation.
    pub requests_by_op: ByOp<u64>,
    /// From the intended start to the completion, within 0.4 %; `null` without requests.
    pub latency_ns: Option<LatencyByOp>,
    /// Intervals around these figures, by its own requests alone; `null` where it has too few of them.
    #[serde(default)]
    pub confidence: Option<Confidence>,
    /// By how much its clock was ahead of the controller's. Times in this result are corrected by it.
    pub clock_offset_ns: i64,
    /// The offset may be wrong by this much to either side: half of the fastest answer, and the drift from before to
    /// after the run.
    pub clock_uncertainty_ns: u64,
    /// The file with its rows, below the directory of the result; times in it count from the start of this host's own
    /// window, `window.outside.before_seconds` before that of the run. Left out where rows are not kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<String>,
    /// How long after the first host it began, within the uncertainty; `null` for a simulated target, whose time is
    /// its own.
    pub start_skew_ns: Option<i64>,
    /// Its program, its machine and its storage. Left out by workers of older programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provenance: Option<Provenance>,
    /// Its figures over time, in the window. Neighbours are joined where all hosts together would have more than
    /// [`HostRun::POINTS_MOST`] points.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub series: Vec<SeriesPoint>,
    /// What is known of its whole run only: with what it did outside the window. Left out where nothing is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whole_run: Option<WholeRun>,
}

impl HostRun {
    /// Points of the series of all hosts together at most, about 2 MB of JSON.
    pub const POINTS_MOST: usize = 4096;
}

/// Figures of a host that cannot be cut to the window in which all hosts were running.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct WholeRun {
    /// Energy of its simulated device; `null` without an energy model.
    pub energy_joules: Option<Energy>,
    /// Operations of the flash array; `null` for a device that is not known to be flash.
    pub flash_operations: Option<FlashOperations>,
    /// Pages programmed by page written by the host; `null` where nothing was written.
    pub write_amplification: Option<f64>,
    /// What the tool cost there.
    pub own_cost: Option<OwnCost>,
    /// Whether its 99th percentile is that of the target alone; `null` for a simulated target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_believable: Option<TailVerdict>,
}

/// Metrics of another program, read while the run went on.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct ScrapedMetrics {
    /// Where they were read, as the user gave it.
    pub source: String,
    /// When, from the start of the window on the controller's clock; before it, they are negative.
    pub times_seconds: Vec<f64>,
    /// By name and labels.
    pub series: Vec<MetricSeries>,
    /// Series beyond the first 200, counted at each reading.
    #[serde(default)]
    pub left_out: u64,
    /// Readings that failed: there is a gap in each series.
    #[serde(default)]
    pub readings_failed: u64,
    /// Why the last of them did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
}

/// One metric over time.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct MetricSeries {
    /// The name with suffix: `http_requests_total`.
    pub name: String,
    /// Its labels.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// What it is, as OpenMetrics calls it: `counter`, `gauge` and others.
    pub kind: String,
    /// Its unit; empty where the program says none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub unit: String,
    /// Its value at each of the times; `null` where it was not there.
    pub values: Vec<Option<f64>>,
}

/// What a host did outside the window in which all hosts were running; it is in no figure.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct OutsideWindow {
    /// Name of the host.
    pub name: String,
    /// How long it ran before the window.
    pub before_seconds: f64,
    /// How long it ran after the window.
    pub after_seconds: f64,
    /// Requests without error that it completed before and after.
    pub requests: u64,
}

/// A machine that was sampled while the run went on: one that carried load, or one that was only watched, such as the
/// server of the target (S4-5).
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct ProbedSystem {
    /// Its name, as the user gave it.
    pub name: String,
    /// What its machine calls itself.
    pub machine: String,
    /// Whether it carried load.
    pub is_worker: bool,
    /// Why its samples are missing. Left out where they are there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<String>,
    /// By how much its clock was ahead of the controller's. `ends_seconds` are corrected by it.
    pub clock_offset_ns: i64,
    /// The offset may be wrong by this much to either side.
    pub clock_uncertainty_ns: u64,
    /// End of each point of `system`, from the start of the window: below zero before it. Where the run is simulated,
    /// from the first sample.
    pub ends_seconds: Vec<f64>,
    /// What was sampled.
    pub system: SystemSeries,
}
