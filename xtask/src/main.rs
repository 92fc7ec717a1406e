//! The project's chores behind one command: `cargo xtask CHORE`.
//!
//! Key parts: [`plan`] (which steps `check` and `test` consist of), [`report`] (runs steps, times
//! them, sums up), [`layers`] (no dependency arrow points up), [`circles`] (few
//! files import one another), [`tidy`] (house rules that the
//! compiler does not know), [`setup`] (installs what is missing, or names it).
//!
//! Errors: a step that fails never stops the ones after it; the exit code is 1 when any failed,
//! and each failure names the command that runs it alone.
//!
//! Not here: anything that the product needs at run time.

mod artifacts;
mod circles;
mod command;
mod dist;
mod fuzz;
mod guest;
mod hosts;
mod iocost_guest;
mod layers;
mod mqsim;
mod nvme_guest;
mod peers;
mod plan;
mod python;
mod reference;
mod report;
mod schemas;
mod scsi_guest;
mod scsi_suite;
mod setup;
mod shown;
mod soak;
mod specs;
mod tidy;
mod workspace;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Args, Parser, Subcommand};

use crate::command::Cmd;
use crate::workspace::Workspace;

/// The project's chores.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
pub(crate) struct Cli {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Debug, Subcommand)]
enum Chore {
    /// Before every commit: format, layering, import circles, tidy rules, lints, documentation, quick tests.
    Check(Selection),
    /// Everything the project checks: `check`, all tests, examples, commands of the documents, schemas, other
    /// systems.
    Test(Selection),
    /// Run the benchmarks, the speed of simulation among them.
    Bench {
        /// Only benchmarks whose name contains this text.
        filter: Option<String>,
    },
    /// Measure beside fio, in the same minute (or beside MQSim): tables, the goals, and what was reached of
    /// them.
    Peers {
        /// Runs of each, in turn, whose medians decide [default: 10, or 5 with --quick].
        #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
        runs: Option<u64>,
        /// Length of a run, in seconds [default: 3, or 2 with --quick].
        #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
        seconds: Option<u64>,
        /// Fewer and shorter runs: what happens once a run weighs more.
        #[arg(long)]
        quick: bool,
        /// fio's t/io_uring, built from fio's source (make t/io_uring): compared with as well
        /// [default: what the environment variable SSDYNO_T_IO_URING names].
        #[arg(long, value_name = "FILE")]
        t_io_uring: Option<PathBuf>,
        /// MQSim, built from its source: the simulator is compared with it, and nothing with fio; 5 runs
        /// unless --runs or --quick (2) says otherwise, of some ten minutes each.
        #[arg(long, value_name = "FILE", conflicts_with_all = ["t_io_uring", "seconds"])]
        mqsim: Option<PathBuf>,
    },
    /// Measure a run on many workers of this machine: start skew by a trace of packets, CPU of the controller, cost of a
    /// request in a worker (three minutes; as root).
    Hosts {
        /// Workers.
        #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u16).range(1..=256))]
        workers: u16,
        /// Runs of each kind, whose medians decide.
        #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..))]
        runs: u16,
        /// A program that is built already [default: one is built as it is packaged].
        #[arg(long, value_name = "FILE")]
        program: Option<PathBuf>,
        /// Measure a load on all workers beside fio's client and servers instead (needs fio).
        #[arg(long)]
        fio: bool,
    },
    /// Run libiscsi's suite for iSCSI targets and QEMU's tools against the simulated drive (a minute).
    ScsiSuite {
        /// Your own build of the suite's program, iscsi-test-cu, instead of Debian's.
        #[arg(long, value_name = "PATH")]
        suite: Option<PathBuf>,
    },
    /// Let a stock Linux in a virtual machine use the simulated drive: tools, file systems, resets
    /// (minutes; makes its guest the first time, as root).
    ScsiGuest,
    /// Read two of QEMU's devices in a Linux guest, a SAS 1078 and an NVMe drive behind two bridges, with
    /// 1 to 8 threads (minutes; makes its guest the first time, as root).
    NvmeGuest,
    /// Load the scheduler files of `profile` into a stock Linux kernel, and profile a disk of known rates
    /// there (minutes; makes its guest the first time, as root).
    IocostGuest,
    /// Compare the NVMe driver's table of quirks with that of Linux.
    Quirks {
        /// drivers/nvme/host/pci.c of the version of Linux that crates/driver-nvme/src/quirks.rs names.
        file: PathBuf,
    },
    /// Run all tests, the ignored ones too, with ever more random cases until the time is used up.
    Soak {
        /// Time to spend on running, in minutes; building comes on top.
        #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=10_080))]
        minutes: u64,
        /// Only tests whose name contains this text.
        filter: Option<String>,
    },
    /// Feed parsers with coverage-guided random input (needs a nightly compiler).
    Fuzz {
        /// The fuzz target; all of them, one after the other, when left out.
        target: Option<String>,
        /// Time to spend on each target, in seconds.
        #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=604_800))]
        seconds: u64,
    },
    /// Write the published JSON schemas into docs/schemas/, and the Python dataclasses that are made from them.
    Schemas {
        /// Only say whether the published schemas are those of the code.
        #[arg(long)]
        check: bool,
    },
    /// Build the Python package into target/python/wheels/release (pip install FILE.whl).
    Wheel,
    /// Build the packages of a release into target/packages: static programs for Linux on x86_64 and aarch64 as archives
    /// and Debian packages, the directory of a container, and checksums (half an hour).
    Dist {
        /// Only this processor or target (repeatable): x86_64, aarch64 [default: all].
        #[arg(long = "target", value_name = "TARGET")]
        targets: Vec<String>,
        /// Package the programs that this command built before, as they are.
        #[arg(long)]
        no_build: bool,
    },
    /// Run the golden tests (names that contain `golden`) against their stored outputs.
    Golden {
        /// Store what the code prints now; look at the difference before you commit it.
        #[arg(long)]
        accept: bool,
    },
}

#[derive(Debug, Args)]
struct Selection {
    /// Run only the steps of this name (repeatable); the final table shows the names.
    #[arg(long, value_name = "STEP")]
    only: Vec<String>,
}

fn main() -> ExitCode {
    match chore(Cli::parse().chore) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Runs one chore; `Ok(false)` means that it ran and found a failure, already reported.
fn chore(chore: Chore) -> Result<bool> {
    let workspace = Workspace::load()?;
    match chore {
        Chore::Check(selection) => {
            report::run(&workspace, "check", plan::check(&workspace), &selection.only)
        }
        Chore::Test(selection) => {
            report::run(&workspace, "test", plan::test(&workspace), &selection.only)
        }
        Chore::Bench { filter } => bench(&workspace, filter.as_deref()),
        Chore::Peers { runs, quick, mqsim: Some(mqsim), .. } => {
            let runs = runs.unwrap_or(if quick { 2 } else { 5 });
            peers::run_mqsim(&workspace, &mqsim, runs)
        }
        Chore::Peers { runs, seconds, quick, t_io_uring, mqsim: None } => {
            let (usual_runs, usual_seconds) = if quick { (5, 2) } else { (10, 3) };
            let (runs, seconds) = (runs.unwrap_or(usual_runs), seconds.unwrap_or(usual_seconds));
            let named = std::env::var_os("SSDYNO_T_IO_URING").map(PathBuf::from);
            peers::run(&workspace, runs, seconds, t_io_uring.or(named).as_deref())
        }
        Chore::Hosts { workers, runs, program, fio } => {
            hosts::run(&workspace, workers.into(), runs.into(), program.as_deref(), fio)
        }
        Chore::ScsiSuite { suite } => scsi_suite::run(&workspace, suite.as_deref()),
        Chore::ScsiGuest => scsi_guest::run(&workspace),
        Chore::NvmeGuest => nvme_guest::run(&workspace),
        Chore::IocostGuest => iocost_guest::run(&workspace),
        Chore::Quirks { file } => quirks(&workspace, &file),
        Chore::Soak { minutes, filter } => soak::run(&workspace, minutes, filter.as_deref()),
        Chore::Fuzz { target, seconds } => fuzz::run(&workspace, target.as_deref(), seconds),
        Chore::Schemas { check } => schemas::run(&workspace, check),
        Chore::Wheel => python::wheel(&workspace),
        Chore::Dist { targets, no_build } => dist::run(&workspace, &targets, !no_build),
        Chore::Golden { accept } => golden(&workspace, accept),
    }
}

/// Runs each criterion benchmark of the workspace, release profile.
fn bench(workspace: &Workspace, filter: Option<&str>) -> Result<bool> {
    let benches = workspace.targets_of_kind("bench");
    anyhow::ensure!(!benches.is_empty(), "no package has a [[bench]] target");
    let mut ok = true;
    for (package, bench) in benches {
        let mut cmd = Cmd::cargo(&workspace.root, ["bench", "-p", package, "--bench", bench]);
        if let Some(filter) = filter {
            cmd = cmd.args(["--", filter]);
        }
        ok &= cmd.announced().stream()?;
    }
    Ok(ok)
}

/// Runs the test that compares the table of quirks with Linux's file.
fn quirks(workspace: &Workspace, file: &Path) -> Result<bool> {
    let file = file.canonicalize().with_context(|| format!("cannot read {}", file.display()))?;
    let test = "the_table_of_quirks_is_that_of_linux";
    Cmd::cargo(
        &workspace.root,
        ["test", "--workspace", "--test", "nvme", test, "--", "--nocapture"],
    )
    .env("SSDYNO_LINUX_NVME_PCI_C", file.display().to_string())
    .announced()
    .stream()
}

/// Runs the golden tests; with `accept` their stored outputs are rewritten.
fn golden(workspace: &Workspace, accept: bool) -> Result<bool> {
    let update = if accept { "always" } else { "no" };
    Cmd::cargo(&workspace.root, ["test", "--workspace", "--no-fail-fast", "golden"])
        .env("INSTA_UPDATE", update)
        .announced()
        .stream()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_line_definition_is_consistent() {
        <Cli as clap::CommandFactory>::command().debug_assert();
    }
}
