//! Our figures beside those of fio. Nothing is installed here: what is missing is named with what to
//! type, because a peer that appears by itself is one that nobody chose.

use std::path::Path;

use anyhow::{Result, bail};

use crate::command::Cmd;
use crate::setup;
use crate::workspace::Workspace;

/// Runs the comparison with `runs` runs of `seconds` each.
///
/// # Errors
/// There is no fio to compare with.
pub(crate) fn run(workspace: &Workspace, runs: u64, seconds: u64) -> Result<bool> {
    if !Cmd::new("fio").args(["--version"]).works() {
        bail!("fio is missing; type: sudo apt-get install fio");
    }
    for (missing, lost) in [
        (!setup::is_root(), "not root: no loop device, and its goals stay open (use sudo)"),
        (!Cmd::new("losetup").args(["--version"]).works(), "losetup is missing (package mount)"),
        (!Path::new("/dev/shm").is_dir(), "there is no /dev/shm: no target in memory"),
    ] {
        if missing {
            eprintln!("note: {lost}");
        }
    }
    let (runs, seconds) = (runs.to_string(), seconds.to_string());
    let bench = ["bench", "-p", "ssdyno-bench", "--bench", "peers", "--"];
    let options = ["--runs", &runs, "--seconds", &seconds];
    Cmd::cargo(&workspace.root, bench.into_iter().chain(options)).announced().stream()
}
