//! Why a profile ended.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

ssdyno_block::named! {
    /// Reason why a profile has no more tests.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum StoppedBecause: words {
        /// Every test of the method was run.
        #[default]
        Done = "every test was run",
        /// Every ratio (`capacity`: every figure; `map`: interpolation) is within `--error`.
        WithinError = "every ratio is within `error`",
        /// More measurements would not bring the other ratios within `--error`.
        NoiseFloor = "more measurements would not narrow the ratios (noise floor)",
        /// The time limit was reached (`--time`).
        TimeLimit = "the time limit was reached (`time`)",
        /// The user interrupted the profile.
        Interrupted = "it was interrupted",
        /// The target failed.
        Failed = "the target failed",
    }
}

impl StoppedBecause {
    /// Whether the profile has less than its plan asked for.
    pub(crate) fn is_early(self) -> bool {
        matches!(self, StoppedBecause::Interrupted | StoppedBecause::Failed)
    }
}
