//! What went wrong in a simulated run, mostly injected, and what was done about it (S4-48).

use std::collections::BTreeMap;
use std::fmt::Write;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::format::{count, seconds};

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
    fn words(&self) -> Vec<String> {
        let mut what = Vec::new();
        some(&mut what, self.interrupts_missed, "completion found late", "completions found late");
        some(&mut what, self.aborts, "abort", "aborts");
        some(&mut what, self.resets, "reset", "resets");
        some(&mut what, self.abandoned, "command given up", "commands given up");
        some(&mut what, self.retries, "retry", "retries");
        what
    }
}

/// `2 errors`, `1 error`; nothing for none.
fn some(list: &mut Vec<String>, n: u64, one: &str, many: &str) {
    if n > 0 {
        list.push(format!("{} {}", count(n), if n == 1 { one } else { many }));
    }
}

impl FaultsResult {
    /// Who, and what of it, for tables.
    pub(crate) fn rows(&self) -> Vec<[String; 2]> {
        let mut rows = Vec::new();
        let mut row = |who: &str, what: Vec<String>| {
            let what = if what.is_empty() { "nothing".to_owned() } else { what.join(", ") };
            rows.push([who.to_owned(), what]);
        };
        if let Some(device) = self.device {
            let mut what = Vec::new();
            some(&mut what, device.errors, "error", "errors");
            some(&mut what, device.delays, "delayed completion", "delayed completions");
            some(&mut what, device.drops, "command dropped", "commands dropped");
            some(&mut what, device.lost_interrupts, "interrupt lost", "interrupts lost");
            what.extend(device.hung_at_seconds.map(|at| format!("stood still at {}", seconds(at))));
            what.extend(device.removed_at_seconds.map(|at| format!("removed at {}", seconds(at))));
            row("device", what);
        }
        if let Some(network) = self.network {
            let mut what = Vec::new();
            some(&mut what, network.delays, "late message", "late messages");
            some(&mut what, network.drops, "message lost", "messages lost");
            some(&mut what, network.errors, "message damaged", "messages damaged");
            some(&mut what, network.session_resets, "broken session", "broken sessions");
            some(&mut what, network.commands_resent, "command sent again", "commands sent again");
            some(&mut what, network.commands_given_up, "command given up", "commands given up");
            row("network", what);
        }
        row("driver", self.driver.words());
        if !self.sense.is_empty() {
            row("sense data", self.sense.iter().map(|(of, n)| format!("{n} {of}")).collect());
        }
        let mut what = Vec::new();
        some(&mut what, self.requests_failed, "request failed", "requests failed");
        row("workload", what);
        rows
    }

    /// What the driver did, in words; none if nothing.
    pub fn driver_did(&self) -> Option<String> {
        let what = self.driver.words();
        (!what.is_empty()).then(|| what.join(", "))
    }

    /// The heading of the table.
    pub(crate) fn title(&self) -> &'static str {
        match (&self.device, &self.network) {
            (None, None) => "Error recovery",
            _ => "Injected faults",
        }
    }

    /// A few lines for the terminal.
    pub(crate) fn text(&self) -> String {
        let mut text = format!("\n{}\n", self.title());
        for [who, what] in self.rows() {
            let _ = writeln!(text, "  {who:<12} {what}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_count_what_there_was() {
        let device = DeviceFaults {
            errors: 1,
            drops: 2,
            hung_at_seconds: Some(2.0),
            ..DeviceFaults::default()
        };
        let faults = FaultsResult {
            device: Some(device),
            driver: DriverRecovery { aborts: 2, resets: 1, ..DriverRecovery::default() },
            requests_failed: 1,
            ..FaultsResult::default()
        };
        let text = faults.text();
        assert!(
            text.contains("device       1 error, 2 commands dropped, stood still at 2.0"),
            "{text}"
        );
        assert!(text.contains("driver       2 aborts, 1 reset\n"), "{text}");
        assert!(text.contains("workload     1 request failed\n"), "{text}");
        assert!(!text.contains("network"), "{text}");
        let none = FaultsResult::default().text();
        assert!(none.contains("workload     nothing"), "{none}");
        assert!(none.starts_with("\nError recovery\n"), "{none}");
        assert!(text.starts_with("\nInjected faults\n"), "{text}");
        assert_eq!(FaultsResult::default().driver_did(), None);
        assert_eq!(faults.driver_did().as_deref(), Some("2 aborts, 1 reset"));
    }
}
