//! Our figures beside those of fio and MQSim. Nothing is installed here: what is missing is named with what to
//! type, because a peer that appears by itself is one that nobody chose.

use std::path::Path;

use anyhow::{Result, bail};

use crate::command::Cmd;
use crate::mqsim::{self, Plan};
use crate::setup;
use crate::workspace::Workspace;

/// Builds our program, and runs the comparison with `runs` runs of `seconds` each; `raw` is fio's
/// `t/io_uring`, built from its source.
///
/// # Errors
/// There is no fio to compare with, or no such program.
pub(crate) fn run(
    workspace: &Workspace,
    runs: u64,
    seconds: u64,
    raw: Option<&Path>,
) -> Result<bool> {
    if !Cmd::new("fio").args(["--version"]).works() {
        bail!("fio is missing; type: sudo apt-get install fio");
    }
    if let Some(raw) = raw.filter(|raw| !raw.is_file()) {
        bail!(
            "{} is not there; build it in fio's source: ./configure && make t/io_uring",
            raw.display()
        );
    }
    for (missing, lost) in [
        (raw.is_none(), "no --t-io-uring FILE: it is in no package, and its goal stays open"),
        (!setup::is_root(), "not root: no loop device, and its goals stay open (use sudo)"),
        (!Cmd::new("losetup").args(["--version"]).works(), "losetup is missing (package mount)"),
        (!Path::new("/dev/shm").is_dir(), "there is no /dev/shm: no target in memory"),
    ] {
        if missing {
            eprintln!("note: {lost}");
        }
    }
    let Some(ours) = build(workspace)? else { return Ok(false) };
    let (runs, seconds) = (runs.to_string(), seconds.to_string());
    let bench = ["bench", "-p", "ssdyno-bench", "--bench", "peers", "--"];
    let options = ["--ours", &ours, "--runs", &runs, "--seconds", &seconds];
    // The benchmark runs in its own directory.
    let raw = raw.map(std::path::absolute).transpose()?.map(|raw| raw.display().to_string());
    let raw = raw.iter().flat_map(|raw| ["--t-io-uring", raw.as_str()]);
    let arguments = bench.into_iter().chain(options).chain(raw);
    Cmd::cargo(&workspace.root, arguments).announced().stream()
}

/// Builds our program, and compares our simulator with `mqsim`, in `runs` runs of each.
///
/// # Errors
/// There is no such program, or it did not do as MQSim does.
pub(crate) fn run_mqsim(workspace: &Workspace, mqsim: &Path, runs: u64) -> Result<bool> {
    if !mqsim.is_file() {
        bail!(
            "{} is not there; build it in MQSim's source (make), and name the program",
            mqsim.display()
        );
    }
    let Some(ours) = build(workspace)? else { return Ok(false) };
    mqsim::compare(Path::new(&ours), mqsim, &mqsim::directory(workspace), &Plan::new(runs))
}

/// Our program as it is packaged; `None` where that failed, which cargo has said.
pub(crate) fn build(workspace: &Workspace) -> Result<Option<String>> {
    let build = Cmd::cargo(&workspace.root, ["build", "--profile", "dist", "-p", "ssdyno"]);
    let program = workspace.target_directory.join("dist/ssdyno").display().to_string();
    Ok(build.announced().stream()?.then_some(program))
}
