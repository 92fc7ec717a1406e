//! Warnings that a reader must see before the figures: reasons why the figures may mislead.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Reason why figures are misleading. Later versions may add kinds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WarningKind {
    /// Requests arrive faster than the target completes them: the queue grows, and latencies with it.
    Overloaded,
    /// Figures include a warm-up that differs from the rest of the run.
    WarmUp,
    /// Rate or latency changes over the run: the figures depend on the length of the run.
    NotSteady,
    /// The run has too few requests for a figure.
    FewRequests,
    /// A write buffer, a cache or a fresh drive absorbed the load: figures of a longer load differ.
    NotExhausted,
    /// Reads were served without the media: from holes, unwritten or trimmed blocks.
    NoMedia,
    /// The target is memory, or a cache in memory served it (page cache).
    Memory,
    /// The load differs from the load that its author described.
    OtherLoad,
    /// Other programs, or the tool itself, affected the figures.
    Machine,
}

/// A warning of a run. Front ends show warnings above the figures.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Warning {
    /// Kind of the warning, for programs.
    pub kind: WarningKind,
    /// The problem, with its numbers.
    pub message: String,
    /// The remedy; `null` without a remedy.
    #[serde(default)]
    pub help: Option<String>,
}

impl Warning {
    /// A warning without help.
    pub fn new(kind: WarningKind, message: impl Into<String>) -> Warning {
        Warning { kind, message: message.into(), help: None }
    }

    /// The same, with what to do about it.
    #[must_use]
    pub fn with_help(self, help: impl Into<String>) -> Warning {
        Warning { help: Some(help.into()), ..self }
    }

    /// The same of one of several runs or hosts.
    #[must_use]
    pub fn of(self, whose: &str) -> Warning {
        Warning { message: format!("{whose}: {}", self.message), ..self }
    }

    /// Message and help in one line.
    pub fn line(&self) -> String {
        match &self.help {
            Some(help) => format!("{}; {help}", self.message),
            None => self.message.clone(),
        }
    }
}
