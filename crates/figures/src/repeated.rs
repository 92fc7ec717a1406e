//! One load that ran several times, and how far its figures spread between the runs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::interval::Interval;
use crate::result::RunResult;

/// One figure over several runs.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct FigureSpread {
    /// Key of the figure: `iops`, `latency_ns.p99`.
    pub figure: String,
    /// Mean of the figures of the runs.
    pub mean: f64,
    /// Whether the figure of a run is a lower bound, because requests never completed. The mean is then a lower bound,
    /// too, and its interval has no upper bound.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_lower_bound: bool,
    /// 95 % interval of the mean, from the spread between the runs; `null` for fewer than two runs.
    pub interval: Option<Interval>,
    /// Smallest value of the runs.
    pub min: f64,
    /// Greatest value of the runs.
    pub max: f64,
    /// Standard deviation between the runs divided by the mean; `null` for fewer than two runs or a mean of 0.
    pub coefficient_of_variation: Option<f64>,
}

/// A load that ran several times.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct RepeatedRuns {
    /// Name of the load.
    pub name: String,
    /// Number of requested runs.
    pub asked: u32,
    /// The complete runs, in the order of the rounds.
    pub runs: Vec<RunResult>,
    /// Figure by figure over `runs`.
    pub figures: Vec<FigureSpread>,
}
