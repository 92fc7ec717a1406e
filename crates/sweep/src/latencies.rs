//! Which figures follow from latencies: an overloaded run has none that mean anything.

use crate::objective::{Objective, Requirement};

/// Whether the figure of this name follows from latencies, which mean nothing in an overloaded run.
pub(crate) fn is_of_latency(figure: &str) -> bool {
    figure.starts_with("latency_ns.") || figure == "energy_delay_joule_seconds"
}

/// Whether any of these is a latency, by which overloaded designs cannot be judged.
pub(crate) fn needs_latency(objectives: &[Objective], require: &[Requirement]) -> bool {
    let objectives = objectives.iter().map(|one| one.figure);
    objectives.chain(require.iter().map(Requirement::figure)).any(is_of_latency)
}
