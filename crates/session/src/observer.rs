//! Watchers of a measurement of many loads.

use ssdyno_figures::{KeepGoing, RunProgress};

/// How far a measurement is.
#[derive(Clone, Debug)]
pub struct Stage {
    /// What is under way: `round 3, 4 KiB R/W 65/35`.
    pub what: String,
    /// Tests, loads and steps done.
    pub done: u64,
    /// The same in all, as far as is known now; the measurement may need fewer.
    pub of: u64,
}

/// Who watches a measurement with a result `R`.
pub trait Observer<R> {
    /// Called many times a second; says whether to go on.
    fn under_way(&mut self, stage: &Stage, progress: &RunProgress) -> KeepGoing;

    /// Called from time to time with all that has been measured, as after an interrupt, for callers that store it in case
    /// the machine fails.
    fn checkpoint(&mut self, _result: &R) {}
}
