//! The command line: one definition for parsing, help, manual and completion. What only one verb
//! takes stands beside that verb, in `commands`; what several take is in `args`.

use clap::{Parser, Subcommand};

use crate::commands::compare::CompareArgs;
use crate::commands::completion::CompletionArgs;
use crate::commands::controller::ControllerArgs;
use crate::commands::explain::ExplainArgs;
use crate::commands::list::ListArgs;
use crate::commands::man::ManArgs;
use crate::commands::papers::PapersArgs;
use crate::commands::pci::PciArgs;
#[cfg(target_os = "linux")]
use crate::commands::probe::ProbeArgs;
use crate::commands::profile::ProfileArgs;
use crate::commands::pts::PtsArgs;
use crate::commands::recover::RecoverArgs;
use crate::commands::run::RunArgs;
use crate::commands::schema::SchemaArgs;
use crate::commands::show::ShowArgs;
use crate::commands::sweep::SweepArgs;
use crate::commands::ui::UiArgs;
#[cfg(target_os = "linux")]
use crate::commands::verify::VerifyArgs;
use crate::commands::worker::{ProberArgs, WorkerArgs};

/// Benchmark real and simulated storage devices: speed, latency and energy.
#[derive(Debug, Parser)]
#[command(name = "ssdyno", version)]
pub(crate) struct Cli {
    /// Print exactly one JSON object on standard output, also for errors.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Load a target; print and store speed, latency, energy and write amplification.
    Run(Box<RunArgs>),
    /// Compare runs or targets with confidence intervals and significance tests.
    Compare(Box<CompareArgs>),
    /// Run many designs of a device or settings of a load; print and store a table, the best designs and
    /// the effect of each key.
    Sweep(Box<SweepArgs>),
    /// Run a SNIA performance test: IOPS, throughput or latency in steady state. Destroys all data on the
    /// target.
    Pts(Box<PtsArgs>),
    /// Measure the ratio of sequential to random throughput for each request size. Destroys the data in the
    /// span, unless only reads are measured.
    Profile(Box<ProfileArgs>),
    /// Re-run the tables and figures of a paper; print the paper's value, the simulated value and the
    /// error.
    Papers(PapersArgs),
    /// Print the PCI functions of a machine: bridges, capabilities, routed interrupts.
    Pci(PciArgs),
    /// Write marked blocks, read them back, and report lost, torn, stale or misplaced data.
    #[cfg(target_os = "linux")]
    Verify(Box<VerifyArgs>),
    /// Sample this machine: processors, interrupts, memory, network, a device, power.
    #[cfg(target_os = "linux")]
    Probe(ProbeArgs),
    /// Load targets on this machine for a controller on another machine: `ssdyno run --hosts`.
    Worker(WorkerArgs),
    /// Sample this machine for a controller on another machine: `ssdyno run --probers`.
    Prober(ProberArgs),
    /// Run a plan on several hosts, or manage the certificates of workers on a network.
    Controller(ControllerArgs),
    /// Start, watch and compare runs in a browser.
    Ui(UiArgs),
    /// Rebuild the results of a killed run from the rows that it wrote.
    Recover(RecoverArgs),
    /// List devices, hosts, workloads, FTLs and papers.
    List(ListArgs),
    /// Print a device, host, network or workload as a complete TOML file, which `run` accepts.
    Show(ShowArgs),
    /// Explain a key of a file, a spec or a result: meaning, unit, values, default, and its value in each
    /// preset.
    Explain(ExplainArgs),
    /// Print the names of the published JSON schemas, or one of them.
    Schema(SchemaArgs),
    /// Print a completion script for a shell.
    Completion(CompletionArgs),
    /// Print the manual page, or write all pages into a directory.
    Man(ManArgs),
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn definitions_are_sound() {
        Cli::command().debug_assert();
    }
}
