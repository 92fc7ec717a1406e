//! Burst credits of a volume: a rate that a profile measures with them is not sustained.

use ssdyno_figures::{RunResult, Warning, WarningKind};

/// The warning of a load whose rate depends on burst credits.
pub(crate) fn credits_of(result: &RunResult) -> Option<Warning> {
    result.warnings.iter().find(|warning| warning.kind == WarningKind::BurstCredits).cloned()
}

/// The text of such a warning; `which` says what is not sustained.
pub(crate) fn credits_text(warning: &Warning, which: &str) -> String {
    let help = warning.help.as_deref().unwrap_or_default();
    format!("{which} ({}). To profile the sustained rate, {help}", warning.message)
}
