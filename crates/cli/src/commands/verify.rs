//! `ssdyno verify`.

use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;
use ssdyno_bench::{RealTarget, RemoteFile};
use ssdyno_block::counted;
use ssdyno_block::units::{Bytes, Span};
use ssdyno_safety::{self as safety, Access};
use ssdyno_session::{ErrorBody, Failure, FailureKind, access, named};
use ssdyno_verify::{
    self as verify, Crashed, Medium, VerifyError, VerifyPlan, VerifyProgress, VerifyReport,
};
use ssdyno_workload::read_fio_verify;

use crate::args::positive_span;
use crate::consent::{Terminal, WriteArgs};
use crate::diagnose::exit_code;
use crate::output::{Output, end};
use crate::progress::{CountMeter, interrupted};

#[derive(Clone, Debug, Args)]
pub(crate) struct VerifyArgs {
    /// A block device, a file or a network target [default: the one that a job file names].
    #[arg(required_unless_present = "fio")]
    target: Option<String>,
    /// A job file of fio with one job and its `verify`: block size, range, threads, share of reads, writes,
    /// flushes and seed are the job's; order and stamps are those of this program.
    #[arg(long, value_name = "FILE.fio", conflicts_with_all = [
        "seed", "block_size", "range", "threads", "writes", "read_percent", "flush_every", "resume",
    ])]
    fio: Option<PathBuf>,
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
        "journal", "write", "size", "seed", "block_size", "range", "writes", "read_percent",
        "flush_every",
    ])]
    pub(crate) resume: Option<PathBuf>,
    /// Treat the target as hung when no request completes for this long.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = positive_span)]
    pub(crate) timeout: Span,
}

impl VerifyArgs {
    /// What is verified, once it is decided.
    fn target(&self) -> &str {
        self.target.as_deref().unwrap_or_default()
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

/// What `verify --json` prints.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "Verify")]
pub(crate) struct VerifyOutput<'a> {
    /// What was verified.
    target: &'a str,
    /// The seed: the same again with `--seed`; `null` after a crash, where nothing is drawn.
    seed: Option<u64>,
    #[serde(flatten)]
    report: &'a VerifyReport,
    /// Why the whole is no success, if it is none.
    error: Option<ErrorBody>,
}

/// After an interrupt: how long requests under way may take.
const DRAIN: Duration = Duration::from_secs(5);

/// Ends the program where the target never answers: threads that wait for it cannot be taken back.
struct Watchdog<'a> {
    target: &'a str,
    timeout: Duration,
    output: Output,
    requests: u64,
    since: Instant,
}

impl Watchdog<'_> {
    fn look(&mut self, requests: u64) {
        if requests != self.requests {
            (self.requests, self.since) = (requests, Instant::now());
        }
        let (patience, kind) = match interrupted() {
            true => (self.timeout.min(DRAIN), FailureKind::Interrupted),
            false => (self.timeout, FailureKind::Failed),
        };
        if self.since.elapsed() < patience {
            return;
        }
        let (target, seconds) = (self.target, patience.as_secs_f64());
        let message = format!("{target} hangs: no request completed for {seconds} s");
        let failure = Failure::new(kind, message).with_help(
            "look at the kernel's log (`dmesg`); what was written is in the journal, if one was \
             asked for: --resume checks it",
        );
        crate::report(&failure, self.output);
        std::process::exit(i32::from(exit_code(kind)));
    }
}

pub(crate) fn run(args: &VerifyArgs, output: Output) -> Result<(), Failure> {
    let args = &args.resolved()?;
    let mut meter = CountMeter::new();
    let timeout = Duration::from_nanos(args.timeout.0.as_ns());
    let mut watchdog =
        Watchdog { target: args.target(), timeout, output, requests: 0, since: Instant::now() };
    let report = match &args.resume {
        Some(journal) => {
            let target = open(args.target(), &Access::ReadOnly)?;
            watchdog.since = Instant::now();
            let mut update = |p: &VerifyProgress| {
                watchdog.look(p.requests);
                meter.update(p.done, p.of, faults(p.faults))
            };
            let crashed = Crashed {
                journal,
                capacity_bytes: target.size_bytes,
                serial: target.serial.clone(),
                sector_bytes: target.sector_bytes,
                threads: args.threads,
            };
            verify::resume(&crashed, &*target.medium, &mut update)
        }
        None => {
            let access = access(&args.write.spec(), args.target(), &mut Terminal)?;
            if matches!(access, Access::ReadOnly) {
                return Err(Failure::usage("verifying writes to the target").with_help(
                    "add --write; to check after a crash without writing: --resume JOURNAL",
                ));
            }
            if let Some(journal) = &args.journal {
                verify::check_journal_place(args.target(), journal)
                    .map_err(|error| explain(&error))?;
            }
            let target = open(args.target(), &access)?;
            watchdog.since = Instant::now();
            let mut update = |p: &VerifyProgress| {
                watchdog.look(p.requests);
                meter.update(p.done, p.of, faults(p.faults))
            };
            let run = verify::fresh_run().map_err(|error| {
                Failure::new(FailureKind::Failed, format!("no random number for the run: {error}"))
                    .with_help("look at /dev/urandom")
            })?;
            let plan = plan(args, &target, run);
            let report = verify::verify(&plan, &*target.medium, &mut update);
            target.target.remember_scratch();
            report
        }
    };
    meter.finish();
    let report = report.map_err(|error| explain(&error))?;
    let failure = judge(&report);
    let told = output.either(
        || text(args, &report),
        || VerifyOutput {
            target: args.target(),
            seed: args.resume.is_none().then_some(args.seed),
            report: &report,
            error: failure.as_ref().map(Failure::body),
        },
    );
    end(told, failure)
}

fn plan(args: &VerifyArgs, target: &Opened, run: u64) -> VerifyPlan {
    let block_bytes = args.block_size.map_or(target.sector_bytes.max(4096), |size| size.0 as u32);
    let range_bytes = args.range.map_or(target.size_bytes, |range| range.0);
    let blocks = range_bytes / u64::from(block_bytes.max(1));
    VerifyPlan {
        seed: args.seed,
        run,
        serial: target.serial.clone(),
        block_bytes,
        sector_bytes: target.sector_bytes,
        capacity_bytes: target.size_bytes,
        range_bytes,
        threads: args.threads,
        // By default as many writes as there are blocks: most are written, many again.
        writes: args.writes.unwrap_or(blocks),
        read_percent: args.read_percent,
        flush_every: args.flush_every,
        journal: args.journal.clone(),
    }
}

struct Opened {
    medium: Box<dyn Medium>,
    size_bytes: u64,
    sector_bytes: u32,
    /// Of a device that has one.
    serial: Option<String>,
    /// Keeps the lock.
    target: RealTarget,
}

/// The same checks as for a run.
fn open(name: &str, access: &Access) -> Result<Opened, Failure> {
    // Before the target is opened: from then on a scratch file is watched, and this would count as another program
    // that opens it.
    let serial = safety::inspect(name).ok().and_then(|found| found.serial().map(str::to_owned));
    let target = RealTarget::open(name, access)
        .map_err(|error| Failure::usage(error.to_string()).with_help(error.help()))?;
    let facts = target.facts();
    let medium = medium(&target).map_err(|error| {
        Failure::usage(format!("cannot open {name}: {error}")).with_help("close some files")
    })?;
    let Some(medium) = medium else {
        return Err(Failure::usage(format!("{name} keeps nothing that could be verified"))
            .with_help("name a block device, a file or a network target"));
    };
    let (size_bytes, sector_bytes) = (facts.capacity_bytes, facts.sector_bytes);
    Ok(Opened { medium, size_bytes, sector_bytes, serial, target })
}

/// What of `target` can be verified; `None` where it keeps nothing.
fn medium(target: &RealTarget) -> io::Result<Option<Box<dyn Medium>>> {
    if let Some(remote) = target.to_remote_file() {
        return Ok(Some(Box::new(Remote(remote))));
    }
    Ok(target.to_file()?.map(|file| Box::new(file) as Box<dyn Medium>))
}

/// A network target.
struct Remote(RemoteFile);

impl Medium for Remote {
    fn read(&self, offset_bytes: u64, out: &mut [u8]) -> io::Result<()> {
        self.0.read_exact_at(out, offset_bytes)
    }

    fn write(&self, offset_bytes: u64, data: &[u8]) -> io::Result<()> {
        self.0.write_all_at(data, offset_bytes)
    }

    fn flush(&self) -> io::Result<()> {
        self.0.flush()
    }
}

fn faults(count: u64) -> String {
    counted(count, "fault", "faults")
}

fn judge(report: &VerifyReport) -> Option<Failure> {
    if report.faults > 0 {
        let who = counted(report.faults, "block is", "blocks are");
        let message = format!("{who} not what was written");
        return Some(
            Failure::new(FailureKind::Failed, message)
                .with_help("do not trust this target with data; the findings say where and what"),
        );
    }
    (report.partial && interrupted()).then(|| {
        Failure::new(FailureKind::Interrupted, "interrupted").with_help(
            "what was written is in the journal, if one was asked for: --resume checks it",
        )
    })
}

fn explain(error: &VerifyError) -> Failure {
    let kind = match error {
        VerifyError::Target { .. } | VerifyError::NothingOfRun { .. } => FailureKind::Failed,
        _ => FailureKind::Usage,
    };
    Failure::new(kind, error.to_string()).with_help(error.help())
}

fn text(args: &VerifyArgs, report: &VerifyReport) -> String {
    let promised = report.journal.map(|journal| journal.promised_blocks);
    let verdict = match (report.faults, promised) {
        (0, Some(0)) => "nothing could be checked: no flush completed before the journal ends",
        (0, Some(_)) => "every block that was flushed is there",
        (0, None) => "every block is what was written",
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
    if let Some(journal) = report.journal {
        text.push_str(&format!(
            "  the journal tells of {} and {}, which promise {}\n",
            counted(journal.writes, "write", "writes"),
            counted(journal.flushes, "flush", "flushes"),
            counted(journal.promised_blocks, "block", "blocks"),
        ));
        if journal.unused_bytes > 0 {
            text.push_str(&format!(
                "  its last {} B are torn, as after a crash, and left out\n",
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
