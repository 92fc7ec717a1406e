//! The parts of a run to keep.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[cfg(doc)]
use crate::histogram::Histogram;

/// The data of a run that are kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Keep {
    /// A row for each request (nearly always 16 bytes each, S4-17). A simulated run keeps rows in
    /// memory until it ends; a run in wall time writes them to the disk during the run. At the end
    /// they are in `requests.parquet`.
    #[default]
    All,
    /// No rows: memory use does not grow with the length of the run. Percentiles are within
    /// 0.4 % ([`Histogram::RELATIVE_ERROR`]).
    Summary,
    /// No files. A simulated run has rows in memory, for exact percentiles. A run in wall time has no rows, as with
    /// `summary`: a fast target completes more requests in an hour than memory has room for.
    None,
}
