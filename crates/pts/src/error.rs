//! What can go wrong.

use ssdyno_block::counted;
use ssdyno_session::{Failure, FailureKind, look_at_the_log};

/// Why a test could not start, or ended early.
#[derive(Debug, thiserror::Error)]
pub enum PtsError {
    /// The plan does not suit the target.
    #[error("{what}")]
    Plan {
        /// What does not.
        what: String,
        /// The remedy.
        help: String,
    },
    /// The target cannot be loaded.
    #[error(transparent)]
    Target(Failure),
    /// Requests of a load ended in errors: their figures would be those of an unwell device.
    #[error("{} ended in an error ({load})", counted(*errors, "request", "requests"))]
    Requests {
        /// Number of errors.
        errors: u64,
        /// Under which load.
        load: String,
        /// The target.
        target: String,
    },
    /// Told to stop.
    #[error("interrupted")]
    Interrupted,
}

impl From<Failure> for PtsError {
    fn from(failure: Failure) -> PtsError {
        match failure.kind {
            // A load that was interrupted before it began is not a failure of the target. Rounds
            // before it may have measured something.
            FailureKind::Interrupted => PtsError::Interrupted,
            _ => PtsError::Target(failure),
        }
    }
}

impl PtsError {
    /// The remedy.
    pub fn help(&self) -> String {
        match self {
            PtsError::Plan { help, .. } => help.clone(),
            PtsError::Target(failure) => failure.help.clone().unwrap_or_default(),
            PtsError::Requests { target, .. } => {
                let look = look_at_the_log(target);
                format!("{look}; a worn or failing device cannot be tested")
            }
            PtsError::Interrupted => "the completed rounds are in the result".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kernel of this machine has not seen the requests of a network target.
    #[test]
    fn the_log_is_that_of_the_target() {
        let help = |target: &str| {
            let (load, target) = ("4KiB reads".to_owned(), target.to_owned());
            PtsError::Requests { errors: 1, load, target }.help()
        };
        assert!(help("/dev/nvme0n1").starts_with("look at the kernel's log (`dmesg`); a worn"));
        assert!(
            help("iscsi://10.0.0.1/iqn.2024-01.a:b/0").starts_with("look at the log of the server")
        );
        assert!(help("nbd://10.0.0.1/x").starts_with("look at the log of the server"));
        assert!(help("sim:p3600").starts_with("look at the keys `faults` of the device; a worn"));
    }

    /// A load in the middle of a test that was stopped while it was being set up: what was measured before
    /// it counts.
    #[test]
    fn a_load_that_was_stopped_before_it_began_is_an_interrupt() {
        let of = |kind| PtsError::from(Failure::new(kind, "stopped"));
        let stopped = of(FailureKind::Interrupted);
        assert!(matches!(stopped, PtsError::Interrupted) && stopped.help().contains("rounds"));
        assert!(matches!(of(FailureKind::Failed), PtsError::Target(_)));
    }
}
