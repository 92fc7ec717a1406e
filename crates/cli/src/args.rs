//! The command line: one definition for parsing, help, manual and completion.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
#[cfg(target_os = "linux")]
use ssdyno_block::Time;
use ssdyno_block::units::{Bytes, Span};
use ssdyno_result::{Keep, Until};
use ssdyno_workload::{BeyondEnd, Format, Timing};

use crate::commands::pci::PciArgs;
use crate::commands::pts::PtsArgs;
#[cfg(target_os = "linux")]
use crate::consent::WriteArgs;
use crate::host::HostArgs;
use crate::real::{self, RealArgs};
use crate::results::{self, ResultsArgs, keep};
use crate::timeline::TimelineArgs;

/// Shown below the help of the program.
const EXIT_CODES: &str = "\
Exit codes:
  0    done
  1    a run failed or is partial: the device refused or failed requests, a trace is damaged
       further down, an invariant is broken, a cell of a paper that should match does not
  2    wrong arguments, configuration or input; nothing was run
  3    results could not be written
  130  interrupted (Ctrl-C, SIGTERM); what was measured is written and marked partial.
       A second interrupt ends the program at once";

macro_rules! set_help {
    ($($workload:literal)?) => {
        concat!(
            "Keys of --set:\n",
            "  KEY           of the device file, with dots: flash.channels=4, ftl.cleaning=fifo\n",
            $($workload,)?
            "  A value is read as TOML; what is no TOML is text, so flash.read_time=25us needs no quotes.\n",
            "  Later settings win. `ssdyno show` prints all keys, `ssdyno schema device` explains them."
        )
    };
}

/// Shown below the help of verbs with `--set`.
const SET: &str = set_help!(
    "  workload.KEY  of the workload file: workload.depth=8, workload.address.theta=0.9\n"
);

/// The same where the loads are given.
const SET_DEVICE: &str = set_help!();

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
    #[command(after_help = SET)]
    Run(Box<RunArgs>),
    /// Lay results or targets side by side, with intervals and verdicts.
    #[command(after_help = SET)]
    Compare(Box<CompareArgs>),
    /// Test a device as the SNIA performance test specification says: IOPS, throughput or latency
    /// in steady state. Everything on the target is lost.
    #[command(after_help = SET_DEVICE)]
    Pts(Box<PtsArgs>),
    /// Re-run a paper's tables and figures: printed value, our value, error, and why.
    Papers(PapersArgs),
    /// Print the PCI functions of a machine: bridges, capabilities, routed interrupts.
    Pci(PciArgs),
    /// Write stamped blocks, read them back, and say what is lost, torn, stale or misplaced.
    #[cfg(target_os = "linux")]
    Verify(Box<VerifyArgs>),
    /// Sample this machine: processors, interrupts, memory, network, a device, power.
    #[cfg(target_os = "linux")]
    Probe(ProbeArgs),
    /// List devices, hosts, workloads, FTLs and papers.
    List(ListArgs),
    /// Print a device, host, network or workload as a complete TOML file, which `run` accepts.
    #[command(after_help = SET)]
    Show(ShowArgs),
    /// Print the names of the published JSON schemas, or one of them.
    Schema(SchemaArgs),
    /// Print a completion script for a shell.
    Completion(CompletionArgs),
    /// Print the manual page, or write all pages into a directory.
    Man(ManArgs),
}

#[derive(Clone, Debug, Args)]
pub(crate) struct RunArgs {
    /// What to load: sim:NAME (see `ssdyno list`), sim:FILE.toml or FILE.toml; or a real target: a
    /// block device such as /dev/nvme0n1, a file, or null: (the floor of the tool), read-only
    /// unless --write says otherwise.
    /// [default: the file that a job file names, or sim:nvme-tlc].
    pub(crate) target: Option<String>,
    #[command(flatten)]
    pub(crate) load: LoadArgs,
    /// Show progress in lines instead of the live view, as it is where standard error is no terminal,
    /// with TERM=dumb or with NO_COLOR.
    #[arg(long, help_heading = None::<&str>)]
    pub(crate) no_live: bool,
    #[command(flatten)]
    pub(crate) real: RealArgs,
    #[cfg(target_os = "linux")]
    #[command(flatten)]
    pub(crate) write: WriteArgs,
    /// What to keep: all (a row for each request: 16 bytes of memory each), summary (no rows: memory stays flat,
    /// percentiles within 0.4 %), or
    /// none (no files).
    #[arg(long, value_name = "WHAT", default_value = "all", help_heading = results::HEADING,
          value_parser = keep(["all", "summary", "none"]))]
    pub(crate) keep: Keep,
    /// Write the rows as requests.csv, too, in the order of issue: a trace that --workload plays.
    #[arg(long, help_heading = results::HEADING)]
    pub(crate) csv: bool,
    #[command(flatten)]
    pub(crate) results: ResultsArgs,
    /// Length of the points of the series, such as 10ms; 0 for a single one, at the end [default: by
    /// the length of the run].
    #[arg(long, value_name = "TIME", value_parser = span_or_zero, help_heading = results::HEADING)]
    pub(crate) interval: Option<Span>,
    #[command(flatten)]
    pub(crate) timeline: TimelineArgs,
}

/// The first of the presets.
const DEFAULT_TARGET: &str = "sim:nvme-tlc";

impl RunArgs {
    /// Length of the points of the series: at nothing one that no run fills (S4-15).
    pub(crate) fn series_interval(&self) -> Option<Time> {
        const WHOLE_RUN: Time = Time::from_s(10_000_000);
        let interval = self.interval?.0;
        Some(if interval == Time::ZERO { WHOLE_RUN } else { interval })
    }

    /// What to load, once it is decided.
    pub(crate) fn target(&self) -> &str {
        self.target.as_deref().unwrap_or(DEFAULT_TARGET)
    }
}

/// What is asked of a target.
#[derive(Clone, Debug, Args)]
pub(crate) struct LoadArgs {
    /// A preset (see `ssdyno list`), FILE.toml, or a trace, compressed or not [default: mixed; for
    /// a device or a file, which are read-only unless --write says otherwise, randread].
    #[arg(long, value_name = "WORKLOAD")]
    pub(crate) workload: Option<String>,
    /// A job file of fio in place of a workload: its jobs run at once, groups (stonewall) one after
    /// the other. What cannot be carried over is named with its line.
    #[arg(long, value_name = "FILE.fio",
          conflicts_with_all = ["workload", "duration", "requests", "trace_format", "timing",
                                "trace_depth", "trace_device", "beyond_end"])]
    pub(crate) fio: Option<PathBuf>,
    /// Decides about everything random: same seed, same figures.
    #[arg(long, value_name = "N", default_value_t = 1, allow_negative_numbers = true)]
    pub(crate) seed: u64,
    /// Stop issuing after this time of the device, such as 10s.
    #[arg(long = "for", value_name = "TIME", value_parser = positive_span,
          conflicts_with = "requests")]
    pub(crate) duration: Option<Span>,
    /// Issue this many requests (5000, 40k, 1.5M), after the ramp-up of a workload that has one.
    #[arg(long, value_name = "N", value_parser = requests)]
    pub(crate) requests: Option<u64>,
    /// Stop when the 95 % intervals of mean latency and IOPS are ± this narrow, such as 1%; or that
    /// of one figure: p99=2% (mean, iops, throughput, p50, p95, p99, p99.9). --for or --requests is
    /// the limit then [default: 10 minutes, at most 20 million requests].
    #[arg(long, value_name = "[FIGURE=]N%")]
    pub(crate) until: Option<Until>,
    /// Set a key of the device or the workload; see below. May be repeated.
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    #[command(flatten)]
    pub(crate) trace: TraceArgs,
    #[command(flatten)]
    pub(crate) host: HostArgs,
}

impl LoadArgs {
    /// The workload to load `target` with: as asked, or a default that the target permits.
    pub(crate) fn workload(&self, target: &str) -> &str {
        if let Some(name) = self.fio.as_ref().and_then(|file| file.to_str()) {
            return name;
        }
        self.workload.as_deref().unwrap_or(if is_written_to(target) { "mixed" } else { "randread" })
    }

    /// The same default for all `targets`: they are to be compared.
    pub(crate) fn for_all<'a>(mut self, targets: impl Iterator<Item = &'a String>) -> LoadArgs {
        if self.fio.is_none() && !targets.into_iter().all(|target| is_written_to(target)) {
            self.workload.get_or_insert_with(|| "randread".to_owned());
        }
        self
    }
}

/// Whether writing to `target` harms nobody.
fn is_written_to(target: &str) -> bool {
    !real::is_real(target) || target == ssdyno_bench::NULL
}

/// How a trace is read and played.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Traces")]
pub(crate) struct TraceArgs {
    /// disksim, mqsim, msr, blkparse, fio or csv [default: told from the content].
    #[arg(long, value_name = "FORMAT", value_parser = trace_format)]
    pub(crate) trace_format: Option<Format>,
    /// When requests start: original, scaled=FACTOR (0.5 is twice as fast), or fast (as soon as
    /// fewer than --trace-depth are outstanding) [default: original].
    #[arg(long, value_name = "TIMING", value_parser = timing)]
    pub(crate) timing: Option<Timing>,
    /// Most requests outstanding; later ones wait, and their latency counts from the recorded
    /// time [default: no limit; 32 with --timing fast].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) trace_depth: Option<u32>,
    /// Only the requests of this device of the trace [default: all].
    #[arg(long, value_name = "DEVICE")]
    pub(crate) trace_device: Option<String>,
    /// What becomes of requests behind the end of the target [default: fail].
    #[arg(long, value_name = "WHAT")]
    pub(crate) beyond_end: Option<BeyondEndArg>,
}

impl TraceArgs {
    /// The first option that was given.
    pub(crate) fn given(&self) -> Option<&'static str> {
        [
            (self.trace_format.is_some(), "--trace-format"),
            (self.timing.is_some(), "--timing"),
            (self.trace_depth.is_some(), "--trace-depth"),
            (self.trace_device.is_some(), "--trace-device"),
            (self.beyond_end.is_some(), "--beyond-end"),
        ]
        .into_iter()
        .find_map(|(given, name)| given.then_some(name))
    }
}

/// See [`BeyondEnd`].
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum BeyondEndArg {
    /// The run ends with an error.
    Fail,
    /// Addresses are taken modulo the size of the target.
    Wrap,
    /// They are left out, and counted.
    Skip,
}

impl BeyondEndArg {
    pub(crate) fn name(self) -> &'static str {
        match self {
            BeyondEndArg::Fail => "fail",
            BeyondEndArg::Wrap => "wrap",
            BeyondEndArg::Skip => "skip",
        }
    }
}

impl From<BeyondEndArg> for BeyondEnd {
    fn from(arg: BeyondEndArg) -> BeyondEnd {
        match arg {
            BeyondEndArg::Fail => BeyondEnd::Fail,
            BeyondEndArg::Wrap => BeyondEnd::Wrap,
            BeyondEndArg::Skip => BeyondEnd::Skip,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// Directories of runs, result.json files, or targets, which are then run: simulated ones side
    /// by side, real ones one after the other, read-only unless --write says otherwise. The first is
    /// what the others are compared with.
    #[arg(required = true, num_args = 2.., value_name = "RESULT|TARGET")]
    pub(crate) sides: Vec<String>,
    #[command(flatten)]
    pub(crate) load: LoadArgs,
    #[command(flatten)]
    pub(crate) real: RealArgs,
    #[cfg(target_os = "linux")]
    #[command(flatten)]
    pub(crate) write: WriteArgs,
    /// What to keep: all (result.json and report.html of the comparison) or none.
    #[arg(long, value_name = "WHAT", default_value = "all", help_heading = results::HEADING,
          value_parser = keep(["all", "none"]))]
    pub(crate) keep: Keep,
    #[command(flatten)]
    pub(crate) results: ResultsArgs,
}

#[derive(Debug, Args)]
pub(crate) struct PapersArgs {
    /// A paper or a part of it: S3, S3/table5, S3/figure3, S3/claims (see `ssdyno list papers`).
    #[arg(default_value = "S3")]
    pub(crate) selector: String,
    /// A trace that the paper used, such as iozone=FILE or postmark=FILE. May be repeated.
    #[arg(long, value_name = "NAME=FILE")]
    pub(crate) trace: Vec<String>,
    /// Where NAME.trace, perhaps compressed, is looked for.
    #[arg(long, value_name = "DIR")]
    pub(crate) trace_dir: Option<PathBuf>,
    /// Run at most so many requests each: a glance, whose cells are not expected to match.
    #[arg(long, value_name = "N", value_parser = requests)]
    pub(crate) requests: Option<u64>,
    /// What to keep: all (report.json and the figures) or none.
    #[arg(long, value_name = "WHAT", default_value = "all", help_heading = results::HEADING,
          value_parser = keep(["all", "none"]))]
    pub(crate) keep: Keep,
    #[command(flatten)]
    pub(crate) results: ResultsArgs,
}

#[cfg(target_os = "linux")]
#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    /// A block device or a file.
    pub(crate) target: String,
    #[command(flatten)]
    pub(crate) write: WriteArgs,
    /// Decides about everything random.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Bytes of a write [default: 4KiB, or the target's sector if that is larger].
    #[arg(long, value_name = "SIZE")]
    pub(crate) block_size: Option<Bytes>,
    /// Verify this much from the start [default: all].
    #[arg(long, value_name = "SIZE")]
    pub(crate) range: Option<Bytes>,
    /// Writes under way together.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(crate) threads: u32,
    /// Blocks to write [default: as many as the range holds].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) writes: Option<u64>,
    /// Reads among the requests, in percent.
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u8).range(0..=99))]
    pub(crate) read_percent: u8,
    /// Writes of a thread between two flushes of the target.
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) flush_every: u64,
    /// Keep a journal in this new file, on another device than the target, for --resume.
    #[arg(long, value_name = "FILE")]
    pub(crate) journal: Option<PathBuf>,
    /// After a crash: check the target against this journal; nothing is written.
    #[arg(long, value_name = "FILE", conflicts_with_all = [
        "journal", "write", "seed", "block_size", "range", "writes", "read_percent", "flush_every",
    ])]
    pub(crate) resume: Option<PathBuf>,
    /// Without an answer for so long the target is taken to hang.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = positive_span)]
    pub(crate) timeout: Span,
}

#[cfg(target_os = "linux")]
#[derive(Debug, Args)]
pub(crate) struct ProbeArgs {
    /// A block device whose own counters are shown, such as /dev/nvme0n1.
    #[arg(long, value_name = "DEVICE")]
    pub(crate) device: Option<String>,
    /// Length of a sample.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = positive_span)]
    pub(crate) interval: Span,
    /// How many samples.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) samples: u32,
}

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// What to list [default: everything].
    pub(crate) what: Option<ListWhat>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum ListWhat {
    Devices,
    Hosts,
    Networks,
    Workloads,
    Ftls,
    Papers,
}

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// sim:NAME, a host, a network, a workload, or FILE.toml with one of them.
    pub(crate) what: String,
    /// Give the simulated controller the identity of a real one: what `nvme id-ctrl` saved, as text,
    /// with -o json or with -b. Save what is shown as FILE.toml and run it as sim:FILE.toml.
    #[arg(long, value_name = "FILE")]
    pub(crate) id_ctrl: Option<std::path::PathBuf>,
    /// Set a key of the device or the workload; see below. May be repeated.
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct SchemaArgs {
    /// Which schema [default: their names, one a line].
    pub(crate) name: Option<SchemaName>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum SchemaName {
    Run,
    Device,
    RingCard,
    Delay,
    Network,
    Host,
    Workload,
    Compare,
    Papers,
    Pci,
    Pts,
    #[cfg(target_os = "linux")]
    Verify,
    #[cfg(target_os = "linux")]
    Probe,
    Error,
}

#[derive(Debug, Args)]
pub(crate) struct CompletionArgs {
    /// The shell.
    pub(crate) shell: Shell,
}

#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// Where to write a page for the program and one for each verb.
    pub(crate) directory: Option<PathBuf>,
}

/// A time; nothing needs no unit.
fn span_or_zero(text: &str) -> Result<Span, String> {
    if text.trim() == "0" {
        return Ok(Span(Time::ZERO));
    }
    text.parse().map_err(|error: ssdyno_block::units::UnitError| error.to_string())
}

/// A time above zero.
pub(crate) fn positive_span(text: &str) -> Result<Span, String> {
    let span: Span =
        text.parse().map_err(|error: ssdyno_block::units::UnitError| error.to_string())?;
    if span.0 == Time::ZERO {
        return Err("it must be more than nothing".to_owned());
    }
    Ok(span)
}

/// A number of requests above zero: a whole one, in thousands (k), millions (M) or milliards (G).
fn requests(text: &str) -> Result<u64, String> {
    let help = || "it must be a whole number above zero, such as 5000, 40k or 1.5M".to_owned();
    let (number, factor) = match text.chars().last() {
        Some('k' | 'K') => (&text[..text.len() - 1], 1e3),
        Some('M') => (&text[..text.len() - 1], 1e6),
        Some('G') => (&text[..text.len() - 1], 1e9),
        _ => return text.replace('_', "").parse().ok().filter(|n| *n > 0).ok_or_else(help),
    };
    let plain = number.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'_'));
    let count = number.replace('_', "").parse::<f64>().ok().filter(|_| plain).ok_or_else(help)?;
    // Nine digits after the point at most: what is left is the noise of the multiplication.
    let count = (count * factor * 1e3).round() / 1e3;
    if count.fract() != 0.0 || !(1.0..=1e15).contains(&count) {
        return Err(help());
    }
    Ok(count as u64)
}

fn trace_format(text: &str) -> Result<Format, String> {
    let names = || Format::ALL.map(Format::name).join(", ");
    text.parse().map_err(|_| format!("known are {}", names()))
}

fn timing(text: &str) -> Result<Timing, String> {
    match text {
        "original" => Ok(Timing::Original),
        "fast" => Ok(Timing::AsFastAsPossible { depth: FAST_DEPTH }),
        _ => {
            let factor = text.strip_prefix("scaled=").and_then(|factor| factor.parse().ok());
            let sane = factor.filter(|factor: &f64| factor.is_finite() && *factor > 0.0);
            let help = "write original, scaled=FACTOR with a factor above 0, or fast";
            sane.map(Timing::Scaled).ok_or_else(|| help.to_owned())
        }
    }
}

/// Requests outstanding with `--timing fast` where `--trace-depth` does not say.
pub(crate) const FAST_DEPTH: u32 = 32;

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn definitions_are_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn requests_are_counted_in_thousands_and_millions() {
        let read = [("1", 1), ("40k", 40_000), ("1.5M", 1_500_000), ("2G", 2_000_000_000)];
        for (text, count) in read.into_iter().chain([("1_000", 1000), ("1.001k", 1001)]) {
            assert_eq!(requests(text), Ok(count), "{text}");
        }
        for text in ["", "k", "0", "0k", "-1", "1.5", "1.0001k", "1e3k", "nank", "4KiB", "9999999G"]
        {
            assert!(requests(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_default_target_is_the_first_preset() {
        assert_eq!(DEFAULT_TARGET, format!("sim:{}", ssdyno_device::presets::ALL[0].name));
    }

    #[test]
    fn timings() {
        assert_eq!(timing("scaled=0.5"), Ok(Timing::Scaled(0.5)));
        for wrong in ["", "scaled", "scaled=", "scaled=0", "scaled=-1", "scaled=inf", "scaled=nan"]
        {
            assert!(timing(wrong).is_err(), "{wrong}");
        }
        assert!(positive_span("0s").is_err() && positive_span("10").is_err());
        assert!(span_or_zero("0").is_ok() && span_or_zero("10").is_err());
    }
}
