//! Where a result comes from: the program, the machine, the storage.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ssdyno_prober::{MachineOrigin, StorageOrigin};

/// Origin of a result. It does not affect the figures of a simulated run, and exact comparisons ignore it.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Provenance {
    /// Version of the program.
    pub version: String,
    /// Commit of the source, as 40 hexadecimal digits; `null` if the source was not in a repository, or for a front end
    /// other than the command line.
    pub commit: Option<String>,
    /// The command as it was typed, without passwords and serial numbers; `null` without a command.
    pub command: Option<String>,
    /// Start of the run: date and time in UTC (RFC 3339).
    pub started: String,
    /// The machine of the run; left out for a run on several hosts, each of which has its own entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<MachineOrigin>,
    /// Each real target that is a block device or a file, in the order of the run; empty for a simulated target.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub storage: Vec<StorageOrigin>,
}
