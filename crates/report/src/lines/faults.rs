//! Lines and rows about faults and what was done about them.

use std::fmt::Write;

use ssdyno_figures::{FaultsResult, counts_in_words, seconds, significant};

/// The component and its events, for tables.
pub(crate) fn rows(faults: &FaultsResult) -> Vec<[String; 2]> {
    let mut rows = Vec::new();
    let mut row = |who: &str, what: Vec<String>| {
        let what = if what.is_empty() { "nothing".to_owned() } else { what.join(", ") };
        rows.push([who.to_owned(), what]);
    };
    if let Some(device) = faults.device {
        let mut what = counts_in_words(&[
            (device.errors, "error", "errors"),
            (device.delays, "delayed completion", "delayed completions"),
            (device.drops, "command dropped", "commands dropped"),
            (device.lost_interrupts, "interrupt lost", "interrupts lost"),
        ]);
        what.extend(device.hung_at_seconds.map(|at| format!("hung at {}", seconds(at))));
        let slowed = device.slowed_percent.map(|slow| significant(slow, 3));
        what.extend(slowed.map(|slow| format!("slowed by {slow} % on average")));
        what.extend(device.removed_at_seconds.map(|at| format!("removed at {}", seconds(at))));
        row("device", what);
    }
    if let Some(network) = faults.network {
        let what = counts_in_words(&[
            (network.delays, "late message", "late messages"),
            (network.drops, "message lost", "messages lost"),
            (network.errors, "message damaged", "messages damaged"),
            (network.session_resets, "broken session", "broken sessions"),
            (network.commands_resent, "command sent again", "commands sent again"),
            (network.commands_given_up, "command given up", "commands given up"),
        ]);
        row("network", what);
    }
    row("driver", faults.driver.words());
    if let Some(when) = faults.driver_acted_at() {
        row("", vec![when]);
    }
    if !faults.sense.is_empty() {
        row("sense data", faults.sense.iter().map(|(of, n)| format!("{n} {of}")).collect());
    }
    let failed = (faults.requests_failed, "request failed", "requests failed");
    row("workload", counts_in_words(&[failed]));
    rows
}

/// The heading of the table.
pub(crate) fn title(faults: &FaultsResult) -> &'static str {
    match (&faults.device, &faults.network) {
        (None, None) => "Error recovery",
        _ => "Injected faults",
    }
}

/// A few lines for the terminal.
pub(crate) fn text(faults: &FaultsResult) -> String {
    let mut text = format!("\n{}\n", title(faults));
    for [who, what] in rows(faults) {
        let _ = writeln!(text, "  {who:<12} {what}");
    }
    text
}

#[cfg(test)]
mod tests {
    use ssdyno_figures::{DeviceFaults, DriverAction, DriverActionKind, DriverRecovery};

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
            driver_actions: vec![
                DriverAction { time_ns: 31_200_000_000, kind: DriverActionKind::Abort },
                DriverAction { time_ns: 31_200_000_001, kind: DriverActionKind::Abort },
                DriverAction { time_ns: 61_200_000_000, kind: DriverActionKind::Reset },
            ],
            requests_failed: 1,
            ..FaultsResult::default()
        };
        let shown = text(&faults);
        assert!(shown.contains("device       1 error, 2 commands dropped, hung at 2.0"), "{shown}");
        assert!(shown.contains("driver       2 aborts, 1 reset\n"), "{shown}");
        assert!(
            shown.contains("\n               2 aborts at 31.20 s, reset at 61.20 s\n"),
            "{shown}"
        );
        assert!(shown.contains("workload     1 request failed\n"), "{shown}");
        assert!(!shown.contains("network"), "{shown}");
        let none = text(&FaultsResult::default());
        assert!(none.contains("workload     nothing"), "{none}");
        assert!(none.starts_with("\nError recovery\n"), "{none}");
        assert!(shown.starts_with("\nInjected faults\n"), "{shown}");
        assert_eq!(FaultsResult::default().driver_did(), None);
        assert_eq!(faults.driver_did().as_deref(), Some("2 aborts, 1 reset"));
    }
}
