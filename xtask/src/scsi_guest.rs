//! A stock Linux against the simulated drive: Debian in a virtual machine, with open-iscsi, sg3-utils, two
//! file systems and fio. Not in `test`: it takes minutes, and a download the first time.

use anyhow::Result;

use crate::command::Cmd;
use crate::guest;
use crate::workspace::Workspace;

/// Makes the guest where it is missing, and runs it with blocks of both sizes.
///
/// # Errors
/// Those of [`guest::made`].
pub(crate) fn run(workspace: &Workspace) -> Result<bool> {
    let folder = guest::made(workspace)?;
    let test = ["test", "-p", "ssdyno-iscsi", "--test", "iscsi", "--"];
    let only = ["--ignored", "--nocapture", "--test-threads=1", "stock_linux"];
    Cmd::cargo(&workspace.root, test.into_iter().chain(only))
        .env("SSDYNO_GUEST", folder.display().to_string())
        .announced()
        .stream()
}
