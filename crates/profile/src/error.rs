//! Why a profile could not start, or ended early.

use ssdyno_block::counted;
use ssdyno_session::{Failure, FailureKind, look_at_the_log};

/// The plan does not suit the target or the profile to resume: `what` is wrong, and `help` is the remedy.
pub(crate) fn refused(what: impl Into<String>, help: impl Into<String>) -> Failure {
    Failure::usage(what).with_help(help)
}

/// Told to stop.
pub(crate) fn interrupted() -> Failure {
    Failure::new(FailureKind::Interrupted, "interrupted")
}

/// Requests of a whole test, or of many slices in a row, ended in errors, the last in `test`.
pub(crate) fn requests_failed(errors: u64, test: &str, target: &str) -> Failure {
    let errors = counted(errors, "request", "requests");
    let look = look_at_the_log(target);
    // The request is valid: the target failed requests. The kind decides the exit code, so it must
    // not be a usage error.
    Failure::failed(format!("{errors} ended in an error, the last in {test}"))
        .with_help(format!("{look}; `method=adaptive` leaves slices with failed requests out"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kernel of this machine has not seen the requests of a network target.
    #[test]
    fn the_log_is_that_of_the_target() {
        let help = |target: &str| requests_failed(1, "a test", target).help.unwrap();
        assert!(help("/dev/nvme0n1").starts_with("look at the kernel's log (`dmesg`); `method"));
        assert!(help("nbd://10.0.0.1/x").starts_with("look at the log of the server; `method"));
    }
}
