//! Two results side by side, as `compare --json` gives them.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::interval::Interval;
use crate::warning::Warning;

/// What may be said about a figure of the second result against the first.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The second is better, beyond what chance explains.
    Better,
    /// The second is worse, beyond what chance explains.
    Worse,
    /// The interval of the ratio holds 1, or a run has none.
    CannotTell,
    /// All figures of the two runs are equal, to the last digit.
    Identical,
    /// The runs are too unlike to say which is better: `not_comparable` says why.
    NotComparable,
}

/// A key of a spec, or of the provenance, whose values differ.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    /// The key, as `set` takes it or as the spec has it: `flash.channels`, `host.queues`; of the provenance what differs:
    /// `kernel`, `scheduler of sda`.
    pub key: String,
    /// In the first run; `null` where it is left out.
    pub first: Option<Value>,
    /// In the second run.
    pub second: Option<Value>,
    /// The user asked for this difference, with the options of a side or with a spec for each side. It keeps nothing from
    /// being compared.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub asked_for: bool,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |value: &Option<Value>| match value {
            None => "(left out)".to_owned(),
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        };
        let asked_for = if self.asked_for { ", as asked for" } else { "" };
        write!(f, "{} {} -> {}{asked_for}", self.key, text(&self.first), text(&self.second))
    }
}

/// One figure of two results.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct FigureComparison {
    /// Key of the figure: `iops`, `latency_ns.p99`.
    pub figure: String,
    /// In the first result.
    pub first: f64,
    /// In the second result.
    pub second: f64,
    /// How many times better the second is (above 1: better, whichever way the figure counts).
    pub ratio: f64,
    /// Interval around `ratio`; `null` where a result has none, or where neither bound is known.
    pub interval: Option<Interval>,
    /// What may be said.
    pub verdict: Verdict,
    /// The same in words: `1.32x ± 0.07 faster`.
    pub text: String,
}

/// All figures that two results share.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// Name of the first run: of its directory, or its target and workload.
    pub first: String,
    /// Name of the second run.
    pub second: String,
    /// In short: what may be said of the request rate, and where that says nothing, of the mean
    /// latency; or that nothing may be said.
    #[serde(default = "cannot_tell")]
    pub verdict: Verdict,
    /// What differs between the specs of the two runs; first what the user asked to differ. Between devices of different names the keys of the device file
    /// are left out.
    #[serde(default)]
    pub changed: Vec<Change>,
    /// What differs between the provenance of the two runs: version, kernel, scheduler, firmware and others; of simulated
    /// targets the version alone. Empty where a result has none. It keeps nothing from being compared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed_provenance: Vec<Change>,
    /// Why the figures must not be held against each other; empty where they may.
    #[serde(default)]
    pub not_comparable: Vec<String>,
    /// Why figures of one of the runs do not mean what they seem to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
    /// Figure by figure, IOPS first.
    pub figures: Vec<FigureComparison>,
    /// What makes the comparison unfair or says little: different workloads, partial runs, runs that
    /// are too short for intervals.
    pub notes: Vec<String>,
}

fn cannot_tell() -> Verdict {
    Verdict::CannotTell
}
