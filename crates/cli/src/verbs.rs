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

/// Shown below the help of the program.
const EXIT_CODES: &str = "\
Exit codes:
  0    done
  1    a run failed or is partial: the device refused or failed requests, no request completed,
       a trace is damaged, an invariant is violated, a bound is broken, a paper's cell does not
       match as required
  2    wrong arguments, configuration or input; nothing was run
  3    results could not be written
  4    a bound of --require or --fail-if-slower is undecided: it is within the interval; or
       `verify --resume` had nothing to check
  130  interrupted (Ctrl-C, SIGTERM, SIGHUP); the results so far are written and marked
       partial. A second interrupt ends the program at once";

macro_rules! set_help {
    ($($workload:literal)?) => {
        concat!(
            "Keys of --set:\n",
            "  KEY           a key of the device file: flash.channels=4, ftl.cleaning=fifo\n",
            $($workload,)?
            "  faults.KEY    fault injection: faults.error=0.001, faults.remove_at=5s (docs/faults.md)\n",
            "  A value is TOML; anything else is a string, so flash.read_time=25us needs no quotes.\n",
            "  The last value for a key applies. `ssdyno show` prints all keys, `ssdyno explain KEY` explains one."
        )
    };
}

/// Shown below the help of verbs with `--set`.
const SET: &str = set_help!(
    "  workload.KEY  a key of the workload file: workload.depth=8, workload.address.theta=0.9\n\
     \x20 network.KEY   a key of the network file: network.faults.drop=0.01\n"
);

/// The same where the loads are given.
const SET_DEVICE: &str = set_help!();

/// Shown below the help of `sweep`.
const SWEEP: &str = "\
Values of --vary:
  KEY=4,8,16        a list; KEY is a key of a spec (target, seed, host.queues) or of --set
  KEY=0.07..0.28/5  five evenly spaced values, including both ends
  KEY=1..256*2      each value is twice the previous value
  KEY=25us..100us/4 with a unit
  KEY=0.07..0.28    any value between the ends, for random designs (--sampling)
Figures of --objective and --require:
  iops, throughput, mean, p50, p95, p99, p99.9, energy_per_request, energy_delay, wa, host_cpu, cost,
  cost_per_gib";

/// Benchmark real and simulated storage devices: speed, latency and energy.
#[derive(Debug, Parser)]
#[command(name = "ssdyno", version, after_help = EXIT_CODES)]
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
    #[command(after_long_help = SET)]
    Run(Box<RunArgs>),
    /// Compare runs or targets with confidence intervals and significance tests.
    #[command(after_long_help = SET)]
    Compare(Box<CompareArgs>),
    /// Run many designs of a device or settings of a load; print and store a table, the best designs and
    /// the effect of each key.
    #[command(after_long_help = SWEEP)]
    Sweep(Box<SweepArgs>),
    /// Run a SNIA performance test: IOPS, throughput or latency in steady state. Destroys all data on the
    /// target.
    #[command(after_long_help = SET_DEVICE)]
    Pts(Box<PtsArgs>),
    /// Measure the ratio of sequential to random throughput for each request size. Destroys the data in the
    /// span, unless only reads are measured.
    #[command(after_long_help = SET_DEVICE)]
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
    #[command(after_long_help = SET)]
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
