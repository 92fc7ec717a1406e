//! Whether the tail of the latencies of a run can be believed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whether the 99th percentile of a run is due to the target alone.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct TailVerdict {
    /// Whether no known fact contradicts the percentile.
    pub believable: bool,
    /// Facts that contradict the percentile; without such facts, the facts that were checked.
    pub reasons: Vec<String>,
}

impl TailVerdict {
    /// `yes, because …` or `no, because …`.
    pub fn text(&self) -> String {
        let word = if self.believable { "yes" } else { "no" };
        format!("{word}, because {}", self.reasons.join("; "))
    }
}
