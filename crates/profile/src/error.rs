//! What can go wrong.

use ssdyno_block::counted;
use ssdyno_session::{Failure, FailureKind, look_at_the_log};

/// Why a profile could not start, or ended early.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
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
    /// Requests of a whole test, or of many slices in a row, ended in errors.
    #[error("{} ended in an error, the last in {test}", counted(*errors, "request", "requests"))]
    Requests {
        /// Number of errors.
        errors: u64,
        /// In which test.
        test: String,
        /// The target.
        target: String,
    },
    /// Told to stop.
    #[error("interrupted")]
    Interrupted,
}

impl From<Failure> for ProfileError {
    fn from(failure: Failure) -> ProfileError {
        match failure.kind {
            // A load that was interrupted before it began is not a failure of the target. Tests
            // before it may have measured something.
            FailureKind::Interrupted => ProfileError::Interrupted,
            _ => ProfileError::Target(failure),
        }
    }
}

impl ProfileError {
    /// The remedy.
    pub fn help(&self) -> String {
        match self {
            ProfileError::Plan { help, .. } => help.clone(),
            ProfileError::Target(failure) => failure.help.clone().unwrap_or_default(),
            ProfileError::Requests { target, .. } => {
                let look = look_at_the_log(target);
                format!("{look}; `method=adaptive` leaves slices with failed requests out")
            }
            ProfileError::Interrupted => "the completed tests are in the result".to_owned(),
        }
    }

    pub(crate) fn plan(what: impl Into<String>, help: impl Into<String>) -> ProfileError {
        ProfileError::Plan { what: what.into(), help: help.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kernel of this machine has not seen the requests of a network target.
    #[test]
    fn the_log_is_that_of_the_target() {
        let help = |target: &str| {
            let (test, target) = ("a test".to_owned(), target.to_owned());
            ProfileError::Requests { errors: 1, test, target }.help()
        };
        assert!(help("/dev/nvme0n1").starts_with("look at the kernel's log (`dmesg`); `method"));
        assert!(help("nbd://10.0.0.1/x").starts_with("look at the log of the server; `method"));
    }
}
