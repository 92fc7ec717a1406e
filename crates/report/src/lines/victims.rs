//! The victims of garbage collection, in a line.

use ssdyno_figures::{GcVictims, significant, things};

/// How many blocks, and how much of them was valid.
pub(crate) fn summary(victims: &GcVictims) -> String {
    let &GcVictims { valid_mean, valid_p10, valid_p90, .. } = victims;
    let [mean, low, high] = [valid_mean, valid_p10, valid_p90].map(|share| 100.0 * share);
    format!(
        "{}, {} % of their pages valid (10th to 90th percentile {low:.0} to {high:.0} %)",
        things(victims.blocks, "block"),
        significant(mean, 3),
    )
}
