//! An independent judge of the SCSI translation: libiscsi's suite for iSCSI targets, against the whole
//! path of a simulated drive. Not in `test`: it takes half a minute, most of it asleep.

use anyhow::Result;

use crate::command::Cmd;
use crate::setup;
use crate::workspace::Workspace;

/// Runs the suite; what fails and is not known to is a failure.
///
/// # Errors
/// There is no iscsi-test-cu, and it cannot be installed.
pub(crate) fn run(workspace: &Workspace) -> Result<bool> {
    setup::program("iscsi-test-cu", "libiscsi-bin")?;
    let test = ["test", "-p", "ssdyno-iscsi", "--test", "iscsi", "--"];
    let only = ["--ignored", "--exact", "conformance::independent_suite_passes", "--nocapture"];
    Cmd::cargo(&workspace.root, test.into_iter().chain(only)).announced().stream()
}
