//! Who watches a profile.

use ssdyno_figures::{KeepGoing, RunProgress};

use crate::result::ProfileResult;

/// How far a profile is.
#[derive(Clone, Debug)]
pub struct Stage {
    /// What is under way: `random read, 64KiB`.
    pub what: String,
    /// Tests done.
    pub done: u64,
    /// Tests in all, as far as is known now.
    pub of: u64,
}

/// Who watches a profile.
pub trait Observer {
    /// Called many times a second; says whether to go on.
    fn under_way(&mut self, stage: &Stage, progress: &RunProgress) -> KeepGoing;

    /// Called every few seconds with all measurements, for callers that store them in case the machine fails.
    fn checkpoint(&mut self, result: &ProfileResult);
}
