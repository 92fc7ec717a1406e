//! Where a result comes from: the program, the machine, the storage.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ssdyno_prober::{MachineOrigin, StorageOrigin};

/// Where a result comes from. It decides no figure of a simulated run, and is in nothing that is compared to the last digit.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Provenance {
    /// Version of the program.
    pub version: String,
    /// Commit of its source, as 40 hexadecimal digits; `null` where it was built from a source without a repository, or by
    /// another front end than the command line.
    pub commit: Option<String>,
    /// The command as it was typed, without passwords and serial numbers; `null` where none was typed.
    pub command: Option<String>,
    /// When the run started: date and time in UTC (RFC 3339).
    pub started: String,
    /// The machine on which it ran; left out of a run on several hosts, each of which has its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<MachineOrigin>,
    /// Each real target that is a block device or a file, in the order of the run; empty for a simulated one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub storage: Vec<StorageOrigin>,
}
