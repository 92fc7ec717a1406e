//! Whether the tail of the latencies of a run can be believed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whether the 99th percentile of a run is due to the target alone.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct TailVerdict {
    /// Whether all checks found the percentile credible.
    pub believable: bool,
    /// Findings against the percentile; without findings, the checks that were made.
    pub reasons: Vec<String>,
}

impl TailVerdict {
    /// `yes, because …` or `no, because …`.
    pub fn text(&self) -> String {
        let word = if self.believable { "yes" } else { "no" };
        format!("{word}, because {}", self.reasons.join("; "))
    }
}
