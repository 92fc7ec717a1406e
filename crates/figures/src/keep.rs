//! What of a run is kept.

use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[cfg(doc)]
use crate::histogram::Histogram;

/// What of a run is kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Keep {
    /// A row for each request (16 bytes each nearly always, S4-17), in memory until the run ends or, of a run in
    /// wall time, on the disk meanwhile; then in `requests.parquet`.
    #[default]
    All,
    /// No rows, so that memory stays flat however long the run is; percentiles are then within
    /// [`Histogram::RELATIVE_ERROR`].
    Summary,
    /// No files. A simulated run has rows in memory, for exact percentiles; a run in wall time has none, as with
    /// `Summary`: a fast target completes more requests in an hour than there is memory for rows.
    None,
}

impl FromStr for Keep {
    type Err = String;
    fn from_str(text: &str) -> Result<Keep, String> {
        match text {
            "all" => Ok(Keep::All),
            "summary" => Ok(Keep::Summary),
            "none" => Ok(Keep::None),
            _ => Err(format!("`{text}` is not one of `all`, `summary` and `none`")),
        }
    }
}
