//! What went wrong in a simulated run, mostly injected, and what was done about it (S4-48).

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::format::push_counted;

/// What went wrong because the tables `[faults]` of device and network asked for it, or because the driver's
/// timeout was shorter than what the device took, and what became of it. Counts are of the whole run,
/// with ramp-up.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct FaultsResult {
    /// What the device did; `null` where its file asks for nothing.
    pub device: Option<DeviceFaults>,
    /// What the network did; `null` where its file asks for nothing, or there is none.
    pub network: Option<NetworkFaults>,
    /// What the driver did about it.
    pub driver: DriverRecovery,
    /// How commands ended that the SCSI stack reported with sense data, by sense key and additional
    /// sense, such as `MEDIUM ERROR 11h/00h`; empty without that stack.
    #[serde(default)]
    pub sense: BTreeMap<String, u64>,
    /// Requests that ended in an error for the workload.
    pub requests_failed: u64,
}

/// Faults that a device injected.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct DeviceFaults {
    /// Commands that ended with an error.
    pub errors: u64,
    /// Commands that completed late.
    pub delays: u64,
    /// Commands that never completed.
    pub drops: u64,
    /// Interrupts that never arrived.
    pub lost_interrupts: u64,
    /// When it stood still, from the start of the run; `null` where it did not.
    pub hung_at_seconds: Option<f64>,
    /// When it was removed, from the start of the run; `null` where it was not.
    pub removed_at_seconds: Option<f64>,
}

/// Faults that a network injected. A command and its answer are a message each.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct NetworkFaults {
    /// Messages that arrived late.
    pub delays: u64,
    /// Messages that were lost, and sent again.
    pub drops: u64,
    /// Messages that arrived damaged, were rejected, and sent again.
    pub errors: u64,
    /// Times that a session broke.
    pub session_resets: u64,
    /// Commands that were given to the target again because their session had broken.
    pub commands_resent: u64,
    /// Commands that were given up because their session broke too often.
    pub commands_given_up: u64,
}

/// What a driver did when no completion came.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct DriverRecovery {
    /// Answers that the timeout found, because no interrupt had come.
    pub interrupts_missed: u64,
    /// Commands that it asked the device to abort.
    pub aborts: u64,
    /// Resets of the device.
    pub resets: u64,
    /// Commands that were given up in a reset, or because the device was gone.
    pub abandoned: u64,
    /// Commands that failed and were given to the device again (`--retries`).
    pub retries: u64,
}

impl DriverRecovery {
    /// What it did, in words; empty if nothing.
    pub fn words(&self) -> Vec<String> {
        let mut what = Vec::new();
        push_counted(
            &mut what,
            self.interrupts_missed,
            "completion found late",
            "completions found late",
        );
        push_counted(&mut what, self.aborts, "abort", "aborts");
        push_counted(&mut what, self.resets, "reset", "resets");
        push_counted(&mut what, self.abandoned, "command given up", "commands given up");
        push_counted(&mut what, self.retries, "retry", "retries");
        what
    }
}

impl FaultsResult {
    /// What the driver did, in words; none if nothing.
    pub fn driver_did(&self) -> Option<String> {
        let what = self.driver.words();
        (!what.is_empty()).then(|| what.join(", "))
    }
}
