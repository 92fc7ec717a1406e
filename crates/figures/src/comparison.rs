//! Two results side by side, as `compare --json` gives them.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::interval::Interval;
use crate::warning::Warning;

ssdyno_block::named! {
    /// Verdict on a figure of the second result, relative to the first result.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum Verdict: word {
        /// The second result is significantly better.
        Better = "better",
        /// The second result is significantly worse.
        Worse = "worse",
        /// No significant difference: the interval of the ratio contains 1, or a run has no interval.
        CannotTell = "cannot_tell",
        /// All figures of the two runs are equal, to the last digit.
        Identical = "identical",
        /// The runs differ too much to say which run is better; `not_comparable` has the reasons.
        NotComparable = "not_comparable",
    }
}

/// A key of a spec, or of the provenance, whose values differ.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    /// The key, as in `set` or in the spec: `flash.channels`, `host.queues`. For the provenance, the property that
    /// differs: `kernel`, `scheduler of sda`.
    pub key: String,
    /// Value in the first run; `null` if the key is left out.
    pub first: Option<Value>,
    /// Value in the second run.
    pub second: Option<Value>,
    /// The user asked for this difference, with the options of a side or with a spec for each side. It does not prevent
    /// a comparison.
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
    /// Value in the first result.
    pub first: f64,
    /// Value in the second result.
    pub second: f64,
    /// Whether `first` is a lower bound, because requests never completed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub first_is_lower_bound: bool,
    /// Whether `second` is a lower bound.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub second_is_lower_bound: bool,
    /// The ratio by which the second result is better; above 1 is better for every figure.
    pub ratio: f64,
    /// Interval around `ratio`; `null` if a result has no interval, or if neither bound is known.
    pub interval: Option<Interval>,
    /// Verdict on this figure.
    pub verdict: Verdict,
    /// The verdict in words: `1.32x ± 0.07 faster`.
    pub text: String,
}

/// A part of the mean latency of one operation in two results.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PartComparison {
    /// The operation: `read`, `write`, `trim`, `flush`.
    pub op: String,
    /// Key of the part, as in `latency_parts_ns`: `total`, `cleaning`.
    pub part: String,
    /// Mean time in the first result, in ns.
    pub first_ns: f64,
    /// Mean time in the second result, in ns.
    pub second_ns: f64,
}

/// All figures that two results share.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// Name of the first run: its directory, or its target and workload.
    pub first: String,
    /// Name of the second run.
    pub second: String,
    /// The verdict on the request rate. If it is not significant, the verdict on the mean latency.
    #[serde(default = "cannot_tell")]
    pub verdict: Verdict,
    /// Differences between the specs of the two runs; first the differences that the user asked for. Between devices of
    /// different names the keys of the device file are left out.
    #[serde(default)]
    pub changed: Vec<Change>,
    /// Differences between the provenance of the two runs: version, kernel, scheduler, firmware and others; for
    /// simulated targets only the version. Empty if a result has no provenance. They do not prevent a comparison.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed_provenance: Vec<Change>,
    /// Reasons why the figures cannot be compared; empty if they can.
    #[serde(default)]
    pub not_comparable: Vec<String>,
    /// Warnings of the two runs about misleading figures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
    /// Figure by figure, IOPS first.
    pub figures: Vec<FigureComparison>,
    /// Where the mean latency of each operation goes: its total, then its parts, the greatest difference first. Empty unless
    /// both results have `latency_parts_ns`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub latency_parts: Vec<PartComparison>,
    /// Reasons why the comparison is unfair or weak: different workloads, partial runs, runs that are too short for
    /// intervals.
    pub notes: Vec<String>,
}

fn cannot_tell() -> Verdict {
    Verdict::CannotTell
}
