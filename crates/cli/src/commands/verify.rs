//! `ssdyno verify`.

use std::path::PathBuf;

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;
use ssdyno_block::counted;
use ssdyno_block::units::{Bytes, Span};
use ssdyno_session::{ErrorBody, Failure, FailureKind, named};
use ssdyno_task::{Task, TaskOutcome, TaskResult, VerifyTask};
use ssdyno_verify::VerifyReport;
use ssdyno_workload::read_fio_verify;

use crate::args::positive_span;
use crate::consent::WriteArgs;
use crate::diagnose;
use crate::output::{Output, end};
use crate::progress::CountMeter;
use crate::task;

#[derive(Clone, Debug, Args)]
pub(crate) struct VerifyArgs {
    /// A block device, a file or a network target [default: the target that a job file names].
    #[arg(required_unless_present = "fio")]
    target: Option<String>,
    /// A fio job file with one job and its `verify`. Block size, range, threads, share of reads, writes,
    /// flushes and seed come from the job; this program decides the order and the timestamps.
    #[arg(long, value_name = "FILE.fio", conflicts_with_all = [
        "seed", "block_size", "range", "threads", "writes", "read_percent", "flush_every", "resume",
    ])]
    fio: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) write: WriteArgs,
    /// Random seed.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Size of each write [default: 4KiB, or the target's sector size if it is larger].
    #[arg(long, value_name = "SIZE")]
    pub(crate) block_size: Option<Bytes>,
    /// Number of bytes to verify, from the start of the target [default: all].
    #[arg(long, value_name = "SIZE")]
    pub(crate) range: Option<Bytes>,
    /// Number of threads; each has one outstanding request.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(crate) threads: u32,
    /// Number of blocks to write [default: the number of blocks in the range].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) writes: Option<u64>,
    /// Percentage of reads among the requests before the final check, which reads every written block.
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u8).range(0..=99))]
    pub(crate) read_percent: u8,
    /// Number of writes of a thread between two flushes of the target.
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) flush_every: u64,
    /// Write a journal for --resume to this new file. It must be on another device than the target.
    #[arg(long, value_name = "FILE")]
    pub(crate) journal: Option<PathBuf>,
    /// After a crash: check the target against this journal, without writing.
    #[arg(long, value_name = "FILE", conflicts_with_all = [
        "journal", "write", "size", "seed", "block_size", "range", "writes", "read_percent",
        "flush_every",
    ])]
    pub(crate) resume: Option<PathBuf>,
    /// Treat the target as hung if no request completes for this long.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = positive_span)]
    pub(crate) timeout: Span,
}

impl VerifyArgs {
    /// What is verified, once it is decided.
    fn target(&self) -> &str {
        self.target.as_deref().unwrap_or_default()
    }

    fn task(&self) -> VerifyTask {
        VerifyTask {
            target: self.target().to_owned(),
            seed: self.seed,
            block_size: self.block_size,
            range: self.range,
            threads: self.threads,
            writes: self.writes,
            read_percent: self.read_percent,
            flush_every: self.flush_every,
            journal: self.journal.clone(),
            resume: self.resume.clone(),
            timeout: self.timeout,
            write: self.write.spec(),
        }
    }

    /// With what the job file says in place.
    fn resolved(&self) -> Result<VerifyArgs, Failure> {
        let mut args = self.clone();
        let Some(path) = &self.fio else { return Ok(args) };
        let job = read_fio_verify(path)
            .map_err(|error| named::workload_failure(FailureKind::Usage, &error, None))?;
        if args.target.is_none() {
            args.target = job.files.first().cloned();
        }
        if args.target.is_none() {
            let (file, name) = (path.display(), &job.name);
            return Err(Failure::usage(format!(
                "{file}: the job [{name}] names no file or device"
            ))
            .with_help(format!("name it: `ssdyno verify TARGET --fio {file} --write`")));
        }
        args.block_size = Some(Bytes(u64::from(job.block_bytes)));
        args.range = job.range_bytes.map(Bytes);
        args.threads = job.depth.min(256);
        args.read_percent = job.read_percent;
        args.writes = job.writes;
        args.flush_every = job.flush_every.unwrap_or(args.flush_every);
        args.seed = job.seed.unwrap_or(args.seed);
        Ok(args)
    }
}

/// Output of `verify --json`.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "Verify")]
pub(crate) struct VerifyOutput<'a> {
    /// Name of the target, as the user gave it.
    target: &'a str,
    /// The seed, for a repetition with `--seed`; `null` after a crash, because the check uses no
    /// random numbers.
    seed: Option<u64>,
    #[serde(flatten)]
    report: &'a VerifyReport,
    /// The error, if the command failed.
    error: Option<ErrorBody>,
}

pub(crate) fn run(args: &VerifyArgs, output: Output) -> Result<(), Failure> {
    let args = &args.resolved()?;
    let prepared = task::prepare(&Task::Verify(Box::new(args.task())))?;
    let outcome = task::watch(prepared, output, Some(CountMeter::new()), None)?;
    let TaskOutcome { result: TaskResult::Verify(report), failure } = outcome else {
        return Err(task::other_result());
    };
    let told = output.either(
        || text(args, &report),
        || VerifyOutput {
            target: args.target(),
            seed: args.resume.is_none().then_some(args.seed),
            report: &report,
            error: failure.as_ref().map(diagnose::body),
        },
    );
    end(told, failure)
}

fn text(args: &VerifyArgs, report: &VerifyReport) -> String {
    let promised = report.journal.map(|journal| journal.promised_blocks);
    let all = report.written_blocks == report.range_blocks;
    let verdict = match (report.faults, promised) {
        (0, _) if report.partial => "stopped early; the blocks that were read back have no fault",
        (0, Some(0)) => "nothing could be checked: no flush completed before the journal ends",
        (0, Some(_)) => "every flushed block has the data that was written",
        (0, None) if all => "every block has the data that was written",
        (0, None) => "every written block has the data that was written",
        _ => "FAULTS",
    };
    let mut text = format!(
        "{}: {verdict}\n  written {}, read {}, flushes {}, faults {}, {:.1} s\n",
        args.target(),
        report.writes,
        report.reads,
        report.flushes,
        report.faults,
        report.wall_seconds,
    );
    // A share of the range says nothing about the rest, so the text does not leave it to arithmetic.
    let checked = report.journal.is_none() && !report.partial;
    if checked && report.written_blocks < report.range_blocks {
        text.push_str(&format!(
            "  {} of {} blocks were written and checked; more writes (`--writes`) reach the others\n",
            report.written_blocks, report.range_blocks
        ));
    }
    if let Some(journal) = report.journal {
        text.push_str(&format!(
            "  the journal records {} and {}; the target must contain {}\n",
            counted(journal.writes, "write", "writes"),
            counted(journal.flushes, "flush", "flushes"),
            counted(journal.promised_blocks, "block", "blocks"),
        ));
        if journal.unused_bytes > 0 {
            text.push_str(&format!(
                "  its last {} B are incomplete, as after a crash, and are ignored\n",
                journal.unused_bytes
            ));
        }
    }
    for finding in report.findings.iter().take(20) {
        let name = format!("{:?}", finding.fault).to_lowercase();
        text.push_str(&format!("  {name:<10} at byte {}", finding.offset_bytes));
        if let Some(from) = finding.belongs_to_bytes {
            text.push_str(&format!(", belongs to byte {from}"));
        }
        let found = finding.found_generation.map_or("none".to_owned(), |g| g.to_string());
        text.push_str(&format!(
            ", write {} expected, {found} found\n",
            finding.expected_generation
        ));
    }
    if report.findings.len() > 20 {
        text.push_str("  (more with --json)\n");
    }
    text
}
