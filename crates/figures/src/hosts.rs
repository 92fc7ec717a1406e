//! The figures of hosts, other machines and other programs in a run on several hosts.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ssdyno_prober::SystemSeries;

use crate::faults::FaultsResult;
use crate::latency::{Confidence, LatencyByOp};
use crate::provenance::Provenance;
use crate::result::{ByOp, Energy, FlashOperations, OwnCost, SeriesPoint};
use crate::tail::TailVerdict;

/// Figures of one host in the window in which all hosts were running. The figures of all hosts sum to the figures of
/// the run.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct HostRun {
    /// Name of the host, as the user gave it.
    pub name: String,
    /// Host name of the machine.
    pub machine: String,
    /// Seed of its random numbers: each host has its own.
    #[serde(default)]
    pub seed: u64,
    /// Whether the load of this host ended early, or is missing.
    pub partial: bool,
    /// Reason why the figures of this host are missing; then no figure of the run includes them. Left out if the
    /// figures are present.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<String>,
    /// Requests completed without error.
    pub requests: u64,
    /// Requests that ended in an error.
    pub errors: u64,
    /// Requests that the host gave up in the window, or that were outstanding when its run ended with the window.
    pub unanswered: u64,
    /// `requests` per second.
    pub iops: f64,
    /// Bytes read and written, per second.
    pub throughput_bytes_per_second: f64,
    /// Requests by operation.
    pub requests_by_op: ByOp<u64>,
    /// From the intended start to the completion, within 0.4 %; `null` without requests.
    pub latency_ns: Option<LatencyByOp>,
    /// Intervals around these figures, from this host's requests alone; `null` with too few requests.
    #[serde(default)]
    pub confidence: Option<Confidence>,
    /// Offset of the host's clock; positive if it is ahead of the controller's clock. Times in this result are
    /// corrected by the offset.
    pub clock_offset_ns: i64,
    /// Maximum error of the offset in either direction: half of the shortest round-trip time, plus the drift from
    /// before the run to after the run.
    pub clock_uncertainty_ns: u64,
    /// The file with the host's rows, below the directory of the result. Times in the file count from the start of this
    /// host's own window, which is `window.outside.before_seconds` before the window of the run. Left out if rows are
    /// not kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<String>,
    /// Delay of the host's start after the first host's start, within the uncertainty; `null` for a simulated target,
    /// whose time is virtual.
    pub start_skew_ns: Option<i64>,
    /// Program, machine and storage of the host. Left out by workers of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provenance: Option<Provenance>,
    /// The complete spec of the host's run, with the contents of every named file and all defaults. Left out if it differs
    /// from the spec of the first host in the seed alone, and by workers of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<BTreeMap<String, serde_json::Value>>")]
    pub spec: Option<serde_json::Value>,
    /// Figures of the host over time, in the window. Neighbouring points are joined if all hosts together would have
    /// more than 4096 points ([`HostRun::POINTS_MOST`]).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub series: Vec<SeriesPoint>,
    /// Figures that cover only the host's whole run, including the time outside the window. Left out if there are none.
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
    /// Duration for `energy_joules`; their quotient is the mean power of the device. `null` without an energy model, and in
    /// results of older versions.
    #[serde(default)]
    pub energy_seconds: Option<f64>,
    /// Operations of the flash array; `null` if the device is not known to have flash.
    pub flash_operations: Option<FlashOperations>,
    /// Number of bytes that the flash programmed divided by the number of bytes that the host wrote. Bytes that still wait in the
    /// write buffer at the end do not count as written. Bytes that later writes replaced in the buffer count as written, so the
    /// value may be below 1. `null` if the flash programmed nothing for the host.
    pub write_amplification: Option<f64>,
    /// Faults injected into this host's device and network, and the recovery; left out without faults in the
    /// configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub faults: Option<FaultsResult>,
    /// Overhead of the tool on this host.
    pub own_cost: Option<OwnCost>,
    /// Whether the 99th percentile of this host is due to the target alone; `null` for a simulated target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_believable: Option<TailVerdict>,
}

/// Metrics of another program, read during the run.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct ScrapedMetrics {
    /// Source of the metrics, as the user gave it.
    pub source: String,
    /// Times of the readings, from the start of the window on the controller's clock; negative before the window.
    pub times_seconds: Vec<f64>,
    /// By name and labels.
    pub series: Vec<MetricSeries>,
    /// Series without a finite value, each counted once, up to 200; and series beyond the first 200, counted at each
    /// reading.
    #[serde(default)]
    pub left_out: u64,
    /// Number of failed readings: each series has a gap there.
    #[serde(default)]
    pub readings_failed: u64,
    /// Error of the last failed reading.
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
    /// OpenMetrics type: `counter`, `gauge` and others.
    pub kind: String,
    /// Unit; empty if the program states none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub unit: String,
    /// Value at each of the times; `null` if a reading did not have the metric.
    pub values: Vec<Option<f64>>,
}

/// Activity of a host outside the window in which all hosts were running; no figure includes it.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct OutsideWindow {
    /// Name of the host.
    pub name: String,
    /// Time that the host ran before the window.
    pub before_seconds: f64,
    /// Time that the host ran after the window.
    pub after_seconds: f64,
    /// Requests that the host completed without error before and after the window.
    pub requests: u64,
    /// Requests that ended in an error before and after the window.
    #[serde(default)]
    pub errors: u64,
    /// Requests that the host gave up before and after the window (also counted in `errors`), or that were outstanding
    /// when the host ended after the window.
    #[serde(default)]
    pub unanswered: u64,
}

/// A machine that was sampled during the run: a worker, or a machine that was only watched, such as the server of the
/// target (S4-5).
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct ProbedSystem {
    /// Name of the machine, as the user gave it.
    pub name: String,
    /// Host name of the machine.
    pub machine: String,
    /// Whether the machine was a worker.
    pub is_worker: bool,
    /// Reason why the samples are missing. Left out if they are present.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<String>,
    /// Offset of the machine's clock; positive if it is ahead of the controller's clock. `ends_seconds` are corrected
    /// by the offset.
    pub clock_offset_ns: i64,
    /// Maximum error of the offset in either direction.
    pub clock_uncertainty_ns: u64,
    /// End of each point of `system`, from the start of the window; negative before the window. For a simulated run,
    /// from the first sample.
    pub ends_seconds: Vec<f64>,
    /// The samples.
    pub system: SystemSeries,
}
