//! What can go wrong.

use ssdyno_bench::BenchError;
use ssdyno_rig::RunError;

/// Why a test could not start, or ended early.
#[derive(Debug, thiserror::Error)]
pub enum PtsError {
    /// The plan does not suit the target.
    #[error("{what}")]
    Plan {
        /// What does not.
        what: String,
        /// What to do.
        help: String,
    },
    /// A load of a simulated device failed.
    #[error(transparent)]
    Simulated(RunError),
    /// A load of a real target failed.
    #[error(transparent)]
    Real(BenchError),
    /// Requests of a load ended in errors: their figures would be those of an unwell device.
    #[error("{errors} requests ended in an error ({load})")]
    Requests {
        /// How many.
        errors: u64,
        /// Under which load.
        load: String,
    },
    /// Told to stop.
    #[error("interrupted")]
    Interrupted,
}

impl From<RunError> for PtsError {
    fn from(error: RunError) -> PtsError {
        match error {
            // There may be rounds before the load that did not begin.
            RunError::Unprepared => PtsError::Interrupted,
            other => PtsError::Simulated(other),
        }
    }
}

impl From<BenchError> for PtsError {
    fn from(error: BenchError) -> PtsError {
        match error {
            BenchError::Unprepared => PtsError::Interrupted,
            other => PtsError::Real(other),
        }
    }
}

impl PtsError {
    /// What to do.
    pub fn help(&self) -> String {
        match self {
            PtsError::Plan { help, .. } => help.clone(),
            PtsError::Simulated(_) => "check the device file and the arguments".to_owned(),
            PtsError::Real(error) => error.help().to_string(),
            PtsError::Requests { .. } => {
                "look at the kernel's log (dmesg); a worn or failing device cannot be tested".into()
            }
            PtsError::Interrupted => "the rounds measured until then are in the result".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A load in the middle of a test that was stopped while it was being set up: what was measured before
    /// it counts.
    #[test]
    fn a_load_that_was_stopped_before_it_began_is_an_interrupt() {
        let real = PtsError::from(BenchError::Unprepared);
        let simulated = PtsError::from(RunError::Unprepared);
        for error in [real, simulated] {
            assert!(matches!(error, PtsError::Interrupted));
            assert!(error.help().contains("rounds"));
        }
        assert!(matches!(PtsError::from(BenchError::Interrupted), PtsError::Real(_)));
    }
}
