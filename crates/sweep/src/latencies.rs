//! Which figures an overloaded run gives that do not depend on its length.

use crate::cost::COSTS;
use crate::objective::{Objective, Requirement};

/// Whether an overloaded run has a figure of this name that can be compared: its rate is the capacity of the target,
/// and a cost needs no run. Latencies grow with the length of the run, and energy and processor time are of a load that
/// the target does not carry.
pub(crate) fn survives_overload(figure: &str) -> bool {
    matches!(figure, "iops" | "throughput_bytes_per_second") || COSTS.contains(&figure)
}

/// Whether any of these is a figure by which overloaded designs cannot be judged.
pub(crate) fn needs_capacity(objectives: &[Objective], require: &[Requirement]) -> bool {
    let objectives = objectives.iter().map(|one| one.figure);
    let mut all = objectives.chain(require.iter().map(Requirement::figure));
    !all.all(survives_overload)
}

/// Whether any of these is a figure of a run: all but costs.
pub(crate) fn needs_run(objectives: &[Objective], require: &[Requirement]) -> bool {
    let objectives = objectives.iter().map(|one| one.figure);
    let mut all = objectives.chain(require.iter().map(Requirement::figure));
    !all.all(|figure| COSTS.contains(&figure))
}
