//! A verification as a task.

use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ssdyno_bench::{RealTarget, RemoteFile};
use ssdyno_block::units::{Bytes, Span};
use ssdyno_block::{Time, counted};
use ssdyno_figures::KeepGoing;
use ssdyno_safety::{self as safety, Access};
use ssdyno_session::{Failure, FailureKind, Prompt, WriteSpec, access, look_at_the_log};
use ssdyno_verify::{
    self as verify, Crashed, Medium, VerifyError, VerifyPlan, VerifyProgress, VerifyReport,
};

use crate::runner::{PreparedTask, TaskControl, TaskOutcome, TaskResult};

/// After a stop: how long requests under way may take.
const DRAIN: Duration = Duration::from_secs(5);

/// The verification, and its method.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct VerifyTask {
    /// A block device, a file or a network target. The task writes to it and needs `write.allowed`, except with
    /// `resume`.
    pub target: String,
    /// Random seed.
    pub seed: u64,
    /// Size of a write. Default: 4 KiB, or the target's sector if that is larger.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block_size: Option<Bytes>,
    /// Number of bytes from the start of the target to verify. Default: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub range: Option<Bytes>,
    /// Number of concurrent writes, 1 or more.
    pub threads: u32,
    /// Number of blocks to write. Default: all blocks of the range.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub writes: Option<u64>,
    /// Reads of written blocks among the requests before the final check, 0 to 99 percent.
    pub read_percent: u8,
    /// Writes of a thread between two flushes of the target, 1 or more.
    pub flush_every: u64,
    /// A new file for a journal, on another device than the target.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub journal: Option<PathBuf>,
    /// After a crash: check the target against this journal; nothing is written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resume: Option<PathBuf>,
    /// The target is treated as hung when no request completes for this long.
    pub timeout: Span,
    /// Permissions to write to the target.
    pub write: WriteSpec,
}

impl Default for VerifyTask {
    /// All of a target, with 8 threads; the target is still to be named.
    fn default() -> VerifyTask {
        VerifyTask {
            target: String::new(),
            seed: 1,
            block_size: None,
            range: None,
            threads: 8,
            writes: None,
            read_percent: 30,
            flush_every: 1000,
            journal: None,
            resume: None,
            timeout: Span(Time::from_s(30)),
            write: WriteSpec::default(),
        }
    }
}

impl VerifyTask {
    pub(crate) fn prepare(&self, prompt: &mut dyn Prompt) -> Result<PreparedTask, Failure> {
        let task = self.clone();
        let name = format!("verification of {}", self.target);
        // After a crash nothing may be written, or the evidence would be destroyed. This path
        // needs no consent and opens the target read-only.
        if let Some(journal) = self.resume.clone() {
            let carry_out = move |control: &TaskControl| task.check(&journal, control);
            return Ok(PreparedTask::new(name, Vec::new(), carry_out));
        }
        let access = access(&self.write, &self.target, prompt)?;
        if matches!(access, Access::ReadOnly) {
            return Err(Failure::usage("verifying writes to the target")
                .with_help(
                    "allow it with `write.allowed`; to check after a crash without writing, name \
                     the journal in `resume`",
                )
                .with_key("write.allowed"));
        }
        // A journal on the tested device would be lost with it, or would survive only if the device
        // works. This is checked before anything is written.
        if let Some(journal) = &self.journal {
            verify::check_journal_place(&self.target, journal)
                .map_err(|error| explain(&self.target, &error))?;
        }
        let writes_to = vec![self.target.clone()];
        let carry_out = move |control: &TaskControl| task.write(&access, control);
        Ok(PreparedTask::new(name, writes_to, carry_out))
    }

    /// Writes and reads.
    fn write(&self, access: &Access, control: &TaskControl) -> Result<TaskOutcome, Failure> {
        let target = Opened::new(&self.target, access)?;
        // A random number marks the blocks of this run. Blocks of an earlier run with the
        // same seed would otherwise pass as correct.
        let run = verify::fresh_run().map_err(|error| {
            Failure::failed(format!("cannot get a random number for the run: {error}"))
                .with_help("look at /dev/urandom")
        })?;
        let mut watch = Watch::new(self, control);
        let plan = self.plan(&target, run)?;
        let report = verify::verify(&plan, &*target.medium, &mut |progress| watch.look(progress));
        // A scratch file that was verified is known as one of ours from now on. The next
        // run may overwrite it without a new question.
        target.target.remember_scratch();
        outcome(&self.target, report, control)
    }

    /// Reads what a journal says should be there.
    fn check(&self, journal: &Path, control: &TaskControl) -> Result<TaskOutcome, Failure> {
        let target = Opened::new(&self.target, &Access::ReadOnly)?;
        let crashed = Crashed {
            journal,
            capacity_bytes: target.size_bytes,
            serial: target.serial.clone(),
            sector_bytes: target.sector_bytes,
            threads: self.threads,
        };
        let mut watch = Watch::new(self, control);
        let report =
            verify::resume(&crashed, &*target.medium, &mut |progress| watch.look(progress));
        outcome(&self.target, report, control)
    }

    fn plan(&self, target: &Opened, run: u64) -> Result<VerifyPlan, Failure> {
        // Drives with sectors above 4 KiB exist. A block below the sector would need a read
        // before each write, and a crash could tear it.
        let usual = target.sector_bytes.max(4096);
        // Cut to 32 bits, 4 GiB and 4 KiB would be blocks of 4 KiB: other blocks than asked for would pass.
        let block_bytes = match self.block_size {
            Some(size) => u32::try_from(size.0).map_err(|_| too_large(size))?,
            None => usual,
        };
        let range_bytes = self.range.map_or(target.size_bytes, |range| range.0);
        if range_bytes > target.size_bytes {
            return Err(too_long(Bytes(range_bytes), Bytes(target.size_bytes)));
        }
        let blocks = range_bytes / u64::from(block_bytes.max(1));
        Ok(VerifyPlan {
            seed: self.seed,
            run,
            serial: target.serial.clone(),
            block_bytes,
            sector_bytes: target.sector_bytes,
            capacity_bytes: target.size_bytes,
            range_bytes,
            threads: self.threads,
            // By default there are as many writes as blocks: each block is written once.
            writes: self.writes.unwrap_or(blocks),
            read_percent: self.read_percent,
            flush_every: self.flush_every,
            journal: self.journal.clone(),
        })
    }
}

fn too_large(size: Bytes) -> Failure {
    Failure::usage(format!("blocks of {size} are too large"))
        .with_help("give a `block_size` below 4GiB")
        .with_key("block_size")
}

fn too_long(range: Bytes, size: Bytes) -> Failure {
    Failure::usage(format!("the target has {size}, which is less than the range of {range}"))
        .with_help(format!("give a `range` of {size} or less"))
        .with_key("range")
}

/// Tells how far a verification is, and notices a target that never answers.
struct Watch<'a> {
    control: &'a TaskControl,
    target: &'a str,
    timeout: Duration,
    /// Requests completed when it was last asked, and since when there are so many.
    requests: u64,
    since: Instant,
}

impl<'a> Watch<'a> {
    fn new(task: &'a VerifyTask, control: &'a TaskControl) -> Watch<'a> {
        let timeout = Duration::from_nanos(task.timeout.0.as_ns());
        Watch { control, target: &task.target, timeout, requests: 0, since: Instant::now() }
    }

    fn look(&mut self, progress: &VerifyProgress) -> KeepGoing {
        if progress.requests != self.requests {
            (self.requests, self.since) = (progress.requests, Instant::now());
        }
        // After a stop the user waits. Five seconds suffice for every request of a healthy device,
        // while the timeout of the plan may be minutes.
        let (patience, kind) = match self.control.is_stopped() {
            true => (self.timeout.min(DRAIN), FailureKind::Interrupted),
            false => (self.timeout, FailureKind::Failed),
        };
        let hangs = self.since.elapsed() >= patience;
        // The state is reported in both directions. A device that completes a
        // request after a long pause is no longer hung.
        self.control.hang(hangs.then(|| hung(self.target, patience, kind)));
        self.control.report(|snapshot| {
            "verifying".clone_into(&mut snapshot.step);
            (snapshot.done, snapshot.of) = (progress.done, progress.of);
            snapshot.faults = Some(progress.faults);
        })
    }
}

fn hung(target: &str, patience: Duration, kind: FailureKind) -> Failure {
    let seconds = patience.as_secs_f64();
    let message = format!("{target} hangs: no request completed for {seconds} s");
    Failure::new(kind, message).with_help(format!(
        "{}; {}",
        look_at_the_log(target),
        verify::JOURNAL_TELLS
    ))
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

impl Opened {
    /// The same checks as for a run.
    fn new(name: &str, access: &Access) -> Result<Opened, Failure> {
        // The serial number is read before the target is opened. From then on a scratch file is watched, and this
        // inspection would count as another program that opens it.
        let serial = safety::inspect(name).ok().and_then(|found| found.serial().map(str::to_owned));
        let target = RealTarget::open(name, access)
            .map_err(|error| Failure::usage(error.to_string()).with_help(error.help()))?;
        let facts = target.facts();
        let medium = medium(&target).map_err(|error| {
            Failure::usage(format!("cannot open {name}: {error}")).with_help("close some files")
        })?;
        let Some(medium) = medium else {
            return Err(Failure::usage(format!(
                "{name} does not store data, so it cannot be verified"
            ))
            .with_help("name a block device, a file or a network target"));
        };
        let (size_bytes, sector_bytes) = (facts.capacity_bytes, facts.sector_bytes);
        Ok(Opened { medium, size_bytes, sector_bytes, serial, target })
    }
}

/// The part of `target` that can be verified; `None` where it keeps nothing.
fn medium(target: &RealTarget) -> io::Result<Option<Box<dyn Medium>>> {
    // A network target has no file descriptor that could be shared. It has
    // its own type with the same operations.
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

fn outcome(
    target: &str,
    report: Result<VerifyReport, VerifyError>,
    control: &TaskControl,
) -> Result<TaskOutcome, Failure> {
    let (report, early) = match report {
        Ok(report) => (report, None),
        Err(error) => {
            let failure = explain(target, &error);
            match error {
                VerifyError::EndedEarly { report, .. } => (*report, Some(failure)),
                _ => return Err(failure),
            }
        }
    };
    let failure = judge(&report, early, control.is_stopped());
    Ok(TaskOutcome { result: TaskResult::Verify(Box::new(report)), failure })
}

/// What is wrong with the verification; `early` is why it ended before its end.
fn judge(report: &VerifyReport, early: Option<Failure>, stopped: bool) -> Option<Failure> {
    // Faults come before an interrupt: a user who stops a verification must still
    // learn that the device returned wrong data.
    if report.faults > 0 {
        let who = counted(report.faults, "block is", "blocks are");
        let early = early.map_or(String::new(), |early| format!("; {early}"));
        let message = format!("{who} different from the data that was written{early}");
        return Some(Failure::failed(message).with_help(
            "do not trust this target with data; the findings list the offsets and \
                            kinds of the errors",
        ));
    }
    if early.is_some() {
        return early;
    }
    if report.partial && stopped {
        let interrupted = Failure::new(FailureKind::Interrupted, "interrupted");
        return Some(interrupted.with_help(verify::JOURNAL_TELLS));
    }
    // A script would take success for a target that was checked.
    let nothing = report.journal.is_some_and(|journal| journal.promised_blocks == 0);
    nothing.then(|| {
        let why = "nothing could be checked: no flush completed before the journal ends";
        Failure::new(FailureKind::Undecided, why)
            .with_help("set `flush_every` to a lower value in the next run")
    })
}

fn explain(target: &str, error: &VerifyError) -> Failure {
    let kind = match error {
        // These errors come from the device, its content, or the journal of a run under way. All others are mistakes in the request,
        // and the exit code tells scripts which is which.
        VerifyError::EndedEarly { .. } | VerifyError::NothingOfRun { .. } => FailureKind::Failed,
        _ => FailureKind::Usage,
    };
    Failure::new(kind, error.to_string()).with_help(error.help(look_at_the_log(target)))
}

#[cfg(test)]
mod tests {
    use ssdyno_verify::JournalUse;

    use super::*;

    fn early(target: &str) -> Failure {
        let source = io::Error::from(io::ErrorKind::BrokenPipe);
        let cause = VerifyError::Target { what: "write", offset_bytes: 0, source };
        let report = Box::new(VerifyReport { partial: true, ..VerifyReport::default() });
        explain(target, &VerifyError::EndedEarly { report, cause: Box::new(cause) })
    }

    /// The kernel of this machine has not seen the requests of a network target.
    #[test]
    fn a_failed_target_names_the_log_of_the_one_who_failed() {
        let help = |target: &str| early(target).help.unwrap();
        assert!(help("iscsi://10.0.0.1/iqn.x/0").contains("log of the server"));
        assert!(help("/dev/sdx").contains("dmesg"));
        let hung = |target: &str| hung(target, DRAIN, FailureKind::Failed).help.unwrap();
        assert!(hung("nbd://10.0.0.1/x").contains("log of the server"));
    }

    #[test]
    fn what_was_not_checked_is_no_success() {
        let after = |promised_blocks, faults| VerifyReport {
            faults,
            journal: Some(JournalUse { promised_blocks, ..JournalUse::default() }),
            ..VerifyReport::default()
        };
        let kind = |report: &VerifyReport, early: Option<Failure>| {
            judge(report, early, false).map(|failure| failure.kind)
        };
        assert_eq!(kind(&after(0, 0), None), Some(FailureKind::Undecided));
        assert_eq!(kind(&after(1, 0), None), None);
        assert_eq!(kind(&after(0, 1), None), Some(FailureKind::Failed));
        let partial = VerifyReport { partial: true, ..VerifyReport::default() };
        assert_eq!(kind(&partial, Some(early("/dev/sdx"))), Some(FailureKind::Failed));
    }

    #[test]
    fn a_range_beyond_the_target_names_both_sizes() {
        let failure = too_long(Bytes(1 << 40), Bytes(8 << 20));
        assert_eq!(failure.message, "the target has 8MiB, which is less than the range of 1TiB");
        assert_eq!(failure.help.unwrap(), "give a `range` of 8MiB or less");
    }
}
