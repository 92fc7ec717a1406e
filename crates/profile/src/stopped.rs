//! Why a profile ended.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Why a profile has no more tests.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StoppedBecause {
    /// Every test of the method was done.
    Done,
    /// Every ratio (`capacity`: every figure; `map`: interpolation) is within `--error`.
    WithinError,
    /// More measurements would not bring the other ratios within `--error`.
    NoiseFloor,
    /// The time was over (`--time`).
    TimeLimit,
    /// It was interrupted.
    Interrupted,
    /// The target failed.
    Failed,
}

impl StoppedBecause {
    /// In words.
    pub(crate) fn words(self) -> &'static str {
        match self {
            StoppedBecause::Done => "every test was done",
            StoppedBecause::WithinError => "every ratio is within `error`",
            StoppedBecause::NoiseFloor => {
                "more measurements would not narrow the ratios (noise floor)"
            }
            StoppedBecause::TimeLimit => "the time limit was reached (`time`)",
            StoppedBecause::Interrupted => "it was interrupted",
            StoppedBecause::Failed => "the target failed",
        }
    }
}
