//! The shape of a PTS result.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ssdyno_figures::{LatencyBin, Warning};

use crate::plan::Test;
use crate::rule::Window;

/// All figures of one test, as `result.json` and `--json` give them. Additions do not raise
/// `schema_version`, renames do.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PtsResult {
    /// Version of this shape.
    pub schema_version: u32,
    /// What was tested, as the user named it.
    pub target: String,
    /// Which test.
    pub test: Test,
    /// Specification and version.
    pub specification: String,
    /// The seed that repeats it.
    pub seed: u64,
    /// Whether it ended before its work was done. What was measured until then is here.
    pub partial: bool,
    /// Whether every part reached steady state.
    pub steady: bool,
    /// How it was set up.
    pub settings: Settings,
    /// The parts: one, or for throughput one for each block size.
    pub parts: Vec<PtsPart>,
    /// Why the figures do not mean what they seem to; shown above them.
    #[serde(default)]
    pub warnings: Vec<Warning>,
    /// What a reader of the figures must know.
    pub notes: Vec<String>,
}

/// How a test was set up.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Settings {
    /// Length of each load of a round, on the clock of the device; 60 in the specification.
    pub round_seconds: f64,
    /// Rounds after which it is given up; 25 in the specification.
    pub rounds_max: u32,
    /// Length of the load of the response time histogram; 1200 in the specification, 0 where there is
    /// none.
    #[serde(default)]
    pub histogram_seconds: f64,
    /// Requests outstanding.
    pub outstanding: u32,
    /// Sequential overwrites of the whole device before the rounds; 2 in the specification.
    pub precondition_times: f64,
    /// Size of the target.
    pub capacity_bytes: u64,
    /// Part of it that the rounds use, from its start.
    pub active_range_bytes: u64,
    /// Unit of its addresses.
    pub sector_bytes: u32,
}

/// One part of a test: preparation, and rounds until it is steady.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct PtsPart {
    /// What it is: `random, 32 outstanding`, `sequential 128 KiB`.
    pub name: String,
    /// What was done before the rounds.
    pub steps: Vec<PtsStep>,
    /// The rounds.
    pub rounds: Vec<Round>,
    /// The figure that decides about steady state.
    pub tracked: Tracked,
    /// Each load, averaged over the measurement window (the last rounds, where it is not steady).
    pub averages: Vec<Average>,
    /// All answers of the tracked load in one long run after the rounds; of the latency test only.
    #[serde(default)]
    pub histogram: Option<PtsHistogram>,
}

/// How long answers took, in a run of one load.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct PtsHistogram {
    /// The load.
    pub load: String,
    /// How long it ran, on the clock of the device; 1200 in the specification.
    pub seconds: f64,
    /// Requests that completed.
    pub requests: u64,
    /// Mean latency; `null` without a completed request.
    pub latency_ns_mean: Option<f64>,
    /// 99.999th percentile of the latency, within 2 %; `null` where there were fewer than 100 000
    /// requests.
    pub latency_ns_p99_999: Option<f64>,
    /// Largest latency; `null` without a completed request.
    pub latency_ns_max: Option<f64>,
    /// Requests by latency, in ascending order; latencies without one are left out.
    pub bins: Vec<LatencyBin>,
}

/// A step before the rounds.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PtsStep {
    /// `purge`, `workload_independent_preconditioning`.
    pub step: String,
    /// What was done.
    pub detail: String,
    /// How long it took, on the clock of the device.
    pub seconds: f64,
    /// Bytes written.
    pub written_bytes: u64,
}

/// One round: every load once.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Round {
    /// Its number, from 1.
    pub round: u32,
    /// Its loads, in the order they ran.
    pub cells: Vec<PtsCell>,
}

/// One load of a round.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct PtsCell {
    /// Reads among the requests, in percent; the others are writes.
    pub read_percent: u32,
    /// Size of every request.
    pub block_bytes: u64,
    /// Requests per second.
    pub iops: f64,
    /// Bytes per second.
    pub throughput_bytes_per_second: f64,
    /// Mean latency; `null` without a completed request.
    pub latency_ns_mean: Option<f64>,
    /// 99.999th percentile of the latency, within 2 %; `null` where there were fewer than 100 000
    /// requests.
    pub latency_ns_p99_999: Option<f64>,
    /// Largest latency; `null` without a completed request.
    pub latency_ns_max: Option<f64>,
    /// Bytes written.
    pub written_bytes: u64,
}

/// The figure that decides about steady state, round by round.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Tracked {
    /// Key of the figure in a cell: `iops`, `throughput_bytes_per_second`, `latency_ns_mean`.
    pub figure: String,
    /// The load whose figure it is.
    pub load: String,
    /// Its value in each finished round.
    pub values: Vec<f64>,
    /// The last five rounds and the rule; `null` before there are five.
    pub window: Option<Window>,
}

/// A load averaged over the measurement window.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Average {
    /// Reads among the requests, in percent.
    pub read_percent: u32,
    /// Size of every request.
    pub block_bytes: u64,
    /// Mean of the rounds' requests per second.
    pub iops: f64,
    /// Mean of the rounds' bytes per second.
    pub throughput_bytes_per_second: f64,
    /// Mean of the rounds' mean latencies.
    pub latency_ns_mean: Option<f64>,
    /// Largest of the rounds' 99.999th percentiles.
    pub latency_ns_p99_999: Option<f64>,
    /// Largest latency of all rounds of the window.
    pub latency_ns_max: Option<f64>,
}

impl PtsPart {
    /// Whether the tracked figure is in steady state.
    pub fn is_steady(&self) -> bool {
        self.tracked.window.is_some_and(|window| window.steady)
    }

    /// Works out the averages from the finished rounds of the window, or of what there is of it.
    pub(crate) fn average(&mut self, loads: usize) {
        let whole: Vec<&Round> = self.rounds.iter().filter(|r| r.cells.len() == loads).collect();
        let window = &whole[whole.len().saturating_sub(crate::rule::WINDOW_ROUNDS)..];
        let rounds = window.len() as f64;
        self.averages = (0..if window.is_empty() { 0 } else { loads })
            .map(|at| {
                let cells = || window.iter().map(|round| round.cells[at]);
                let mean =
                    |pick: fn(&PtsCell) -> f64| cells().map(|c| pick(&c)).sum::<f64>() / rounds;
                let latencies: Option<f64> = cells().map(|cell| cell.latency_ns_mean).sum();
                let first = window[0].cells[at];
                Average {
                    read_percent: first.read_percent,
                    block_bytes: first.block_bytes,
                    iops: mean(|cell| cell.iops),
                    throughput_bytes_per_second: mean(|cell| cell.throughput_bytes_per_second),
                    latency_ns_mean: latencies.map(|sum| sum / rounds),
                    latency_ns_p99_999: largest(cells().map(|c| c.latency_ns_p99_999)),
                    latency_ns_max: largest(cells().map(|c| c.latency_ns_max)),
                }
            })
            .collect();
    }
}

/// The largest; `None` where one is missing.
fn largest(mut values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    values.try_fold(0.0, |most: f64, value| Some(most.max(value?)))
}

/// The JSON schema of [`PtsResult`] (JSON Schema 2020-12), as published with the program.
pub fn schema() -> schemars::Schema {
    schemars::schema_for!(PtsResult)
}
