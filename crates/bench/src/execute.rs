//! A run from its target's name to its figures.

use ssdyno_figures::{KeepGoing, RunProgress, Supervisor};

use crate::error::BenchError;
use crate::run::{BenchMeasured, BenchRun};

impl BenchRun {
    /// Opens the target, loads it and works out the figures. An error before the first request is
    /// returned; a later one is in [`BenchMeasured::failure`], with what was measured.
    ///
    /// `progress` is called some 20 times a second and may stop the run.
    ///
    /// # Errors
    /// Everything that can be found out beforehand: see [`BenchError`].
    pub fn execute(
        &self,
        mut progress: &mut dyn FnMut(&RunProgress) -> KeepGoing,
    ) -> Result<BenchMeasured, BenchError> {
        self.supervise(&mut progress)
    }

    /// As [`execute`](BenchRun::execute), where `supervisor` says when it begins, too: it is asked when the target is
    /// open and each job waits for its first request.
    ///
    /// # Errors
    /// Those of [`execute`](BenchRun::execute).
    pub fn supervise(&self, supervisor: &mut dyn Supervisor) -> Result<BenchMeasured, BenchError> {
        #[cfg(target_os = "linux")]
        return crate::linux::execute(self, supervisor);
        #[cfg(not(target_os = "linux"))]
        {
            let _ = supervisor;
            Err(BenchError::System { target: self.name() })
        }
    }
}
