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
    /// Version of this format.
    pub schema_version: u32,
    /// Name of the target, as the user gave it.
    pub target: String,
    /// The test.
    pub test: Test,
    /// Specification and version.
    pub specification: String,
    /// The seed that repeats the test.
    pub seed: u64,
    /// Whether the test ended early. The result then covers only the completed part.
    pub partial: bool,
    /// Whether every part reached steady state.
    pub steady: bool,
    /// Settings of the test.
    pub settings: Settings,
    /// The parts: one, or for throughput one part for each block size.
    pub parts: Vec<PtsPart>,
    /// Warnings about misleading figures; shown above the figures.
    #[serde(default)]
    pub warnings: Vec<Warning>,
    /// Notes on the figures.
    pub notes: Vec<String>,
}

/// Settings of a test.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Settings {
    /// Length of each load of a round, on the clock of the device; 60 in the specification.
    pub round_seconds: f64,
    /// Maximum number of rounds; 25 in the specification.
    pub rounds_max: u32,
    /// Length of the load of the response time histogram; 1200 in the specification, 0 without the histogram.
    #[serde(default)]
    pub histogram_seconds: f64,
    /// Requests outstanding.
    pub outstanding: u32,
    /// Sequential overwrites of the whole device before the rounds; 2 in the specification.
    pub precondition_times: f64,
    /// Size of the target.
    pub capacity_bytes: u64,
    /// Part of the target that the rounds use, from its start.
    pub active_range_bytes: u64,
    /// Sector size of the target.
    pub sector_bytes: u32,
}

/// One part of a test: preparation, and rounds until steady state.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct PtsPart {
    /// Name of the part: `random, 32 outstanding`, `sequential 128 KiB`.
    pub name: String,
    /// Steps before the rounds.
    pub steps: Vec<PtsStep>,
    /// The rounds.
    pub rounds: Vec<Round>,
    /// The figure that decides on steady state.
    pub tracked: Tracked,
    /// Each load, averaged over the measurement window (the last rounds without steady state).
    pub averages: Vec<Average>,
    /// All completions of the tracked load in one long run after the rounds; only for the latency test.
    #[serde(default)]
    pub histogram: Option<PtsHistogram>,
}

/// Response times in a run of one load.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct PtsHistogram {
    /// The load.
    pub load: String,
    /// Length of the run, on the clock of the device; 1200 in the specification.
    pub seconds: f64,
    /// Requests that completed.
    pub requests: u64,
    /// Mean latency; `null` without a completed request.
    pub latency_ns_mean: Option<f64>,
    /// 99.999th percentile of the latency, within 2 %; `null` with fewer than 100 000 requests.
    pub latency_ns_p99_999: Option<f64>,
    /// Largest latency; `null` without a completed request.
    pub latency_ns_max: Option<f64>,
    /// Requests by latency, in ascending order; latencies without requests are left out.
    pub bins: Vec<LatencyBin>,
}

/// A step before the rounds.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PtsStep {
    /// `purge`, `workload_independent_preconditioning`.
    pub step: String,
    /// The work of the step.
    pub detail: String,
    /// Duration of the step, on the clock of the device.
    pub seconds: f64,
    /// Bytes written.
    pub written_bytes: u64,
}

/// One round: every load once.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Round {
    /// Number of the round, from 1.
    pub round: u32,
    /// Loads of the round, in the order of their runs.
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
    /// 99.999th percentile of the latency, within 2 %; `null` with fewer than 100 000 requests.
    pub latency_ns_p99_999: Option<f64>,
    /// Largest latency; `null` without a completed request.
    pub latency_ns_max: Option<f64>,
    /// Bytes written.
    pub written_bytes: u64,
}

/// The figure that decides on steady state, round by round.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Tracked {
    /// Key of the figure in a cell: `iops`, `throughput_bytes_per_second`, `latency_ns_mean`.
    pub figure: String,
    /// The load of the figure.
    pub load: String,
    /// Value of the figure in each finished round.
    pub values: Vec<f64>,
    /// The last five rounds and the rule; `null` with fewer than five rounds.
    pub window: Option<Window>,
    /// Why a constant figure need not be that of the steady state, for example because the write buffer took the writes; `null`
    /// without such a reason.
    #[serde(default)]
    pub doubt: Option<String>,
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
    /// Whether the tracked figure meets the rule of the specification.
    pub fn is_constant(&self) -> bool {
        self.tracked.window.is_some_and(|window| window.steady)
    }

    /// Whether the part is in steady state: the rule is met, and nothing says that the rounds were too short for it.
    pub fn is_steady(&self) -> bool {
        self.is_constant() && self.tracked.doubt.is_none()
    }

    /// Bytes that the loads of all rounds wrote.
    pub(crate) fn rounds_written_bytes(&self) -> u64 {
        self.rounds.iter().flat_map(|round| &round.cells).map(|cell| cell.written_bytes).sum()
    }

    /// Works out the averages from the finished rounds of the window, or of what there is of it.
    pub(crate) fn average(&mut self, loads: usize) {
        // An interrupted round has fewer cells than the others. Its loads would have one value
        // more than the rest, so the averages leave it out.
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
    // A round without the percentile had too few requests for it. The largest of the others
    // would then be a lower bound that looks like a figure.
    values.try_fold(0.0, |most: f64, value| Some(most.max(value?)))
}

/// The JSON schema of [`PtsResult`] (JSON Schema 2020-12), as published with the program.
pub fn schema() -> schemars::Schema {
    schemars::schema_for!(PtsResult)
}
