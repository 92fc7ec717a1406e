//! What makes a comparison of two runs unfair, although it is possible.

use ssdyno_block::counted;
use ssdyno_figures::RunResult;

use crate::lines::energy::{energy_used, settling};

/// A reason why a comparison of two runs is unfair.
pub(crate) struct Unfair {
    /// The side and the kind of the reason: repeated runs of a side have the same reason with other numbers.
    pub(crate) key: (usize, &'static str),
    pub(crate) text: String,
}

/// What makes a comparison of two runs unfair.
pub(crate) fn unfair(first: &RunResult, second: &RunResult, names: [&str; 2]) -> Vec<Unfair> {
    let mut notes = Vec::new();
    let mut note = |side, kind, text| notes.push(Unfair { key: (side, kind), text });
    let methods = first.method.as_ref().zip(second.method.as_ref());
    if let Some(differences) = methods.and_then(|(one, other)| one.differences(other)) {
        let text = format!(
            "the methods differ: {differences}; so the comparison covers both the targets and the methods"
        );
        note(0, "methods", text);
    }
    let both_use_energy = [first, second].iter().all(|run| energy_used(run).is_some());
    for (side, (which, result)) in names.into_iter().zip([first, second]).enumerate() {
        // Seconds of sleep after the last completion can be most of the energy per request of one side.
        let covers = settling(result, &format!("the energy of {which}"));
        if let Some(text) = covers.filter(|_| both_use_energy) {
            note(side, "energy", text);
        }
        if result.partial {
            note(side, "partial", format!("{which} is partial"));
        }
        if result.errors > 0 {
            let requests = counted(result.errors, "request", "requests");
            let others = match result.unanswered {
                0 => "rates and latencies exclude them",
                _ => "rates exclude them",
            };
            let text = format!("{requests} of {which} ended in an error: {others}");
            note(side, "errors", text);
        }
        if result.unanswered > 0 {
            let requests = counted(result.unanswered, "request", "requests");
            let text =
                format!("the latencies of {which} are lower bounds: {requests} never completed");
            note(side, "unanswered", text);
        }
        // Intervals do not know of it: they describe a run beside other programs, or one through a busy core.
        if let Some(verdict) = result.p99_believable.as_ref().filter(|v| !v.believable) {
            let why = verdict.reasons.join("; ");
            note(side, "p99", format!("the p99 of {which} is not believable, because {why}"));
        }
        for broken in result.invariants.iter().filter(|i| !i.holds) {
            let text =
                format!("{which} violates the invariant `{}`: {}", broken.name, broken.detail);
            note(side, "invariant", text);
        }
    }
    notes
}
