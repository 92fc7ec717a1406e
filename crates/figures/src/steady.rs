//! When a load was steady.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::format::seconds;

/// The steady periods of a run.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct SteadyState {
    /// The criterion for a steady period.
    pub criterion: String,
    /// From the start of the recorded window to the first steady period; `null` without a steady
    /// period.
    pub warm_up_seconds: Option<f64>,
    /// Share of the recorded window that was steady, 0 to 1.
    pub steady_share: f64,
    /// The periods, in order.
    pub periods: Vec<SteadyPeriod>,
    /// Mean number of erases of a block since the preconditioning, if there were too few for garbage collection to settle
    /// under this load: its rate may still change slowly. `null` if it has settled, or if nothing was erased.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unsettled_block_erases: Option<f64>,
}

/// A period in which rate and latency kept their level.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct SteadyPeriod {
    /// Start, from the start of the recorded window.
    pub from_seconds: f64,
    /// End, from the start of the recorded window.
    pub to_seconds: f64,
    /// Requests per second in the period.
    pub iops: f64,
    /// Mean latency in the period.
    pub latency_ns_mean: f64,
    /// Reason for the end of the period; `null` if it lasted to the end of the run.
    pub left_because: Option<String>,
    /// Whether the rate fell or latency rose at the end of the period.
    #[serde(default)]
    pub left_slower: bool,
}

impl SteadyState {
    /// `from 3.200 s to 17.00 s, ended because ...`; in full sentences where there is nothing to list.
    pub fn text(&self) -> String {
        if self.periods.is_empty() {
            return "no steady state reached".to_owned();
        }
        let each = self.periods.iter().map(|period| {
            let from = match period.from_seconds {
                0.0 => "from the start".to_owned(),
                from => format!("from {}", seconds(from)),
            };
            match &period.left_because {
                Some(why) => {
                    format!("{from} to {}, ended because {why}", seconds(period.to_seconds))
                }
                None => format!("{from} to the end"),
            }
        });
        let text = each.collect::<Vec<_>>().join("; ");
        match self.unsettled_block_erases {
            Some(_) => text + ", but garbage collection has not settled",
            None => text,
        }
    }
}
