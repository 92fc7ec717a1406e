//! Independent judges of the SCSI translation, against the whole path of a simulated drive with blocks
//! of 512 bytes and of 4 KiB: libiscsi's suite for iSCSI targets, and QEMU's tools where they are. Not
//! in `test`: it takes most of a minute, most of it asleep.

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
    let only = ["--ignored", "--nocapture"];
    Cmd::cargo(&workspace.root, test.into_iter().chain(only)).announced().stream()
}
