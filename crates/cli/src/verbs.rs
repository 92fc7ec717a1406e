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
  1    a run failed or is partial: the device refused or failed requests, a trace is damaged
       further down, an invariant or a bound is broken, a cell of a paper that should match does not
  2    wrong arguments, configuration or input; nothing was run
  3    results could not be written
  4    a bound of --require or --fail-if-slower is undecided: it is within the interval
  130  interrupted (Ctrl-C, SIGTERM, SIGHUP); what was measured is written and marked
       partial. A second interrupt ends the program at once";

macro_rules! set_help {
    ($($workload:literal)?) => {
        concat!(
            "Keys of --set:\n",
            "  KEY           of the device file, with dots: flash.channels=4, ftl.cleaning=fifo\n",
            $($workload,)?
            "  faults.KEY    fault injection: faults.error=0.001, faults.remove_at=5s (docs/faults.md)\n",
            "  A value is TOML; anything else is a string, so flash.read_time=25us needs no quotes.\n",
            "  Later settings win. `ssdyno show` prints all keys, `ssdyno explain KEY` explains one."
        )
    };
}

/// Shown below the help of verbs with `--set`.
const SET: &str = set_help!(
    "  workload.KEY  of the workload file: workload.depth=8, workload.address.theta=0.9\n\
     \x20 network.KEY   of the network file: network.faults.drop=0.01\n"
);

/// The same where the loads are given.
const SET_DEVICE: &str = set_help!();

/// Shown below the help of `sweep`.
const SWEEP: &str = "\
Values of --vary:
  KEY=4,8,16        these; KEY is one of a spec (target, seed, host.queues) or one that --set takes
  KEY=0.07..0.28/5  five values, evenly spaced, with both ends
  KEY=1..256*2      each twice the one before
  KEY=25us..100us/4 with a unit
  KEY=0.07..0.28    anything between, for designs that are drawn (--sampling)
Figures of --objective and --require:
  iops, throughput, mean, p50, p95, p99, p99.9, energy_per_request, energy_delay, wa, cost";

/// A dynamometer for storage: speed, latency, energy and character of a block device.
#[derive(Debug, Parser)]
#[command(name = "ssdyno", version, after_help = EXIT_CODES)]
pub(crate) struct Cli {
    /// Print one JSON object on standard output and nothing else there, also for errors.
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
    /// Run many designs of a device or settings of a load; print and store one table, the best designs, the effect of each key.
    #[command(after_long_help = SWEEP)]
    Sweep(Box<SweepArgs>),
    /// Test a device as the SNIA performance test specification says: IOPS, throughput or latency
    /// in steady state. Destroys all data on the target.
    #[command(after_long_help = SET_DEVICE)]
    Pts(Box<PtsArgs>),
    /// Measure by request size how much faster sequential accesses are than random ones, for reads and writes.
    /// Destroys the data in the span unless only reads are measured.
    #[command(after_long_help = SET_DEVICE)]
    Profile(Box<ProfileArgs>),
    /// Re-run a paper's tables and figures: printed value, our value, error, and why.
    Papers(PapersArgs),
    /// Print the PCI functions of a machine: bridges, capabilities, routed interrupts.
    Pci(PciArgs),
    /// Write marked blocks, read them back, and report lost, torn, stale or misplaced data.
    #[cfg(target_os = "linux")]
    Verify(Box<VerifyArgs>),
    /// Sample this machine: processors, interrupts, memory, network, a device, power.
    #[cfg(target_os = "linux")]
    Probe(ProbeArgs),
    /// Load targets of this machine for a controller elsewhere: `ssdyno run --hosts`.
    Worker(WorkerArgs),
    /// Sample this machine for a controller elsewhere: `ssdyno run --probers`.
    Prober(ProberArgs),
    /// Carry out a plan on several hosts, or invite workers that this machine may use over a network.
    Controller(ControllerArgs),
    /// Start, watch and compare runs in a browser.
    Ui(UiArgs),
    /// Rebuild the results of a run that was killed from the rows it had written.
    Recover(RecoverArgs),
    /// List devices, hosts, workloads, FTLs and papers.
    List(ListArgs),
    /// Print a device, host, network or workload as a complete TOML file, which `run` accepts.
    #[command(after_long_help = SET)]
    Show(ShowArgs),
    /// Explain a key of a file, a spec or a result: meaning, unit, values, default, and what presets give it.
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
