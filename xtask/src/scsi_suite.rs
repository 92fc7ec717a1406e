//! Independent judges of the SCSI translation and of the SCSI device server, against the whole path of a
//! simulated drive with blocks of 512 bytes and of 4 KiB, and against disks and an SSD without an NVMe
//! controller: libiscsi's suite for iSCSI targets, and QEMU's tools where they are. Not in `test`: it takes
//! some minutes, most of them asleep.

use std::path::Path;

use anyhow::{Context, Result};

use crate::command::Cmd;
use crate::setup;
use crate::workspace::Workspace;

/// Where the tests look for the suite's program; they know it by the same name.
const PROGRAM: &str = "SSDYNO_ISCSI_TEST_CU";

/// Runs the suite, Debian's or the one at `suite`; what fails and is not the suite's fault is a failure.
///
/// # Errors
/// There is no iscsi-test-cu, and it cannot be installed.
pub(crate) fn run(workspace: &Workspace, suite: Option<&Path>) -> Result<bool> {
    let test = ["test", "-p", "ssdyno-iscsi", "--test", "iscsi", "--"];
    let only = ["--ignored", "--nocapture"];
    let command = Cmd::cargo(&workspace.root, test.into_iter().chain(only));
    let command = match suite {
        None => {
            setup::program("iscsi-test-cu", "libiscsi-bin")?;
            command
        }
        Some(path) => {
            let missing = || format!("--suite {}: there is no such program", path.display());
            let path = path.canonicalize().with_context(missing)?;
            command.env(PROGRAM, path.display().to_string())
        }
    };
    command.announced().stream()
}
