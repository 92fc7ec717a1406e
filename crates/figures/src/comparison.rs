//! Two results side by side, as `compare --json` gives them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::interval::Interval;

/// What may be said about a figure of the second result against the first.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The second is better, beyond what chance explains.
    Better,
    /// The second is worse, beyond what chance explains.
    Worse,
    /// The interval of the ratio holds 1, or a run has none.
    CannotTell,
}

/// One figure of two results.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct FigureComparison {
    /// Key of the figure: `iops`, `latency_ns.p99`.
    pub figure: String,
    /// In the first result.
    pub first: f64,
    /// In the second result.
    pub second: f64,
    /// How many times better the second is (above 1: better, whichever way the figure counts).
    pub ratio: f64,
    /// Interval around `ratio`; `null` where a result has none, or where neither bound is known.
    pub interval: Option<Interval>,
    /// What may be said.
    pub verdict: Verdict,
    /// The same in words: `1.32x ± 0.07 faster`.
    pub text: String,
}

/// All figures that two results share.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// Target and workload of the first result.
    pub first: String,
    /// Target and workload of the second result.
    pub second: String,
    /// In short: what may be said of the request rate, and where that says nothing, of the mean
    /// latency.
    #[serde(default = "cannot_tell")]
    pub verdict: Verdict,
    /// Figure by figure, IOPS first.
    pub figures: Vec<FigureComparison>,
    /// What makes the comparison unfair or says little: different workloads, partial runs, runs that
    /// are too short for intervals.
    pub notes: Vec<String>,
}

fn cannot_tell() -> Verdict {
    Verdict::CannotTell
}
