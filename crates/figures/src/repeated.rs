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

/// The notes that all `runs` have, in the order of the first run; none without runs.
pub fn common_notes<'a>(mut runs: impl Iterator<Item = &'a [String]>) -> Vec<&'a String> {
    let Some(first) = runs.next() else { return Vec::new() };
    let mut common: Vec<&String> = first.iter().collect();
    for notes in runs {
        common.retain(|note| notes.contains(note));
    }
    common
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_that_one_run_lacks_are_not_common() {
        let runs = [vec!["b", "a", "c"], vec!["a", "b"], vec!["d", "a", "b"]];
        let runs = runs.map(|notes| notes.into_iter().map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(common_notes(runs.iter().map(Vec::as_slice)), ["b", "a"]);
        assert_eq!(common_notes(runs[..1].iter().map(Vec::as_slice)), ["b", "a", "c"]);
        assert_eq!(common_notes([].into_iter()), Vec::<&String>::new());
    }
}
