//! Is what was written what is read? Lost, torn, stale and misplaced writes, also after a crash.
//!
//! [`verify`] writes stamped blocks (address, generation, seed, CRC32C in every sector) all over a
//! range, each block once and then at random, reads them back among the writes, and in the end reads all. It knows for every block which
//! generation completed last, so an older one is a fault even if it is intact. A journal remembers
//! it beyond the run: after a crash, [`resume`] checks what a flush had promised. Every run has a number of
//! its own ([`fresh_run`]), so that what an earlier one left is never taken for its blocks.
//!
//! Each thread has blocks of its own, so that no two writes to a block are under way together and
//! there is one right answer at any time; `threads` is the depth.
//!
//! Not modelled: nothing is; it looks at what is there. Not checked: timing, ordering between blocks that were not flushed, contents that others wrote. Linux only.

#![cfg(target_os = "linux")]

mod journal;
mod medium;
mod place;
mod run;
mod stamp;
mod table;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use journal::JournalError;
pub use medium::Medium;
pub use place::check_journal_place;
pub use run::{Crashed, resume, verify};

/// What is verified, and how.
#[derive(Clone, Debug)]
pub struct VerifyPlan {
    /// Decides about everything random.
    pub seed: u64,
    /// Number of the run, which no other has: see [`fresh_run`].
    pub run: u64,
    /// Bytes of a write: a multiple of `sector_bytes`.
    pub block_bytes: u32,
    /// Bytes that are stamped by themselves: the least that the target writes as one.
    pub sector_bytes: u32,
    /// Size of the target.
    pub capacity_bytes: u64,
    /// Its serial number, where it has one: the journal is for this device alone.
    pub serial: Option<String>,
    /// Bytes from its start that are verified.
    pub range_bytes: u64,
    /// Writes under way together.
    pub threads: u32,
    /// Blocks to write, together.
    pub writes: u64,
    /// Reads of written blocks among the requests before the final check, in percent, 0 to below 100. The final check reads every
    /// written block once.
    pub read_percent: u8,
    /// Writes of a thread between two flushes.
    pub flush_every: u64,
    /// Where the journal is kept; none: no resumption.
    pub journal: Option<PathBuf>,
}

/// Fault of a block.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum VerifyFault {
    /// A generation older than a completed or flushed generation, also in a second read.
    Lost,
    /// An older generation in the first read, the right generation in the second.
    Stale,
    /// Sectors of several generations, or sectors that the test did not write.
    Torn,
    /// A block from another offset.
    Misplaced,
    /// A wrong checksum.
    Damaged,
    /// Not written by the test: zeroes, or a block of an earlier verification.
    Unwritten,
    /// Other contents that the test did not write: the write never arrived, or another program overwrote the block.
    Foreign,
    /// A generation or seed that was never written.
    Invented,
}

/// One fault.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// The fault.
    pub fault: VerifyFault,
    /// Offset of the block.
    pub offset_bytes: u64,
    /// The expected generation.
    pub expected_generation: u64,
    /// The generation found, if it could be read.
    pub found_generation: Option<u64>,
    /// Offset for which the block was written, if it is another offset.
    pub belongs_to_bytes: Option<u64>,
}

/// Findings that are kept; the rest is counted.
pub const FINDINGS_MAX: usize = 1000;

/// Result of a verification.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct VerifyReport {
    /// Writes that completed, one block each. A block may be written more than once.
    pub writes: u64,
    /// Blocks in the verified range.
    #[serde(default)]
    pub range_blocks: u64,
    /// Different blocks that were written; after a crash, those that the journal names. All others were not checked.
    #[serde(default)]
    pub written_blocks: u64,
    /// Blocks read and compared.
    pub reads: u64,
    /// Flushes.
    pub flushes: u64,
    /// Faults found.
    pub faults: u64,
    /// The first faults, in order of address.
    pub findings: Vec<Finding>,
    /// True if the test was stopped before its end.
    pub partial: bool,
    /// Wall time of the test.
    pub wall_seconds: f64,
    /// After a crash: data from the journal; otherwise `null`.
    #[serde(default)]
    pub journal: Option<JournalUse>,
}

/// Data from a journal.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct JournalUse {
    /// Number of writes in the journal.
    pub writes: u64,
    /// Flushes that completed.
    pub flushes: u64,
    /// Blocks that must be on the target. With 0, there was nothing to check.
    pub promised_blocks: u64,
    /// Bytes of an incomplete end, which are ignored.
    pub unused_bytes: u64,
}

/// A number that no other run has: 64 random bits of the system.
///
/// # Errors
/// The system has none.
pub fn fresh_run() -> std::io::Result<u64> {
    let mut bytes = [0; 8];
    std::io::Read::read_exact(&mut std::fs::File::open("/dev/urandom")?, &mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}

/// How far it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VerifyProgress {
    /// Blocks done in this phase.
    pub done: u64,
    /// Of so many.
    pub of: u64,
    /// Faults so far.
    pub faults: u64,
    /// Requests completed so far: while this hangs, the target does not answer.
    pub requests: u64,
}

/// Time between two reports of progress.
const PROGRESS_EVERY: Duration = Duration::from_millis(100);

/// Why a verification could not go on.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// Sizes that do not fit together.
    #[error("{key}: {problem}")]
    Plan {
        /// Field of [`VerifyPlan`].
        key: &'static str,
        /// The problem.
        problem: String,
    },
    /// The run ended early. Everything before is in the report.
    #[error("{cause}")]
    EndedEarly {
        /// The report until then; it is partial.
        report: Box<VerifyReport>,
        /// Why the run ended.
        cause: Box<VerifyError>,
    },
    /// The target failed a request: no data is wrong, but none came either.
    #[error("the target failed to {what} at byte {offset_bytes}: {source}")]
    Target {
        /// `read`, `write`, `flush`.
        what: &'static str,
        /// Where.
        offset_bytes: u64,
        /// What the system said.
        source: std::io::Error,
    },
    /// The journal.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The journal would be lost together with the data that it tells of.
    #[error("the journal {} would be on the file system that contains {target}", .journal.display())]
    SameFileSystem {
        /// The target.
        target: String,
        /// Where the journal was to be.
        journal: PathBuf,
    },
    /// The journal is of another target.
    #[error("the journal is of a target of {journal_bytes} B, this one has {capacity_bytes} B")]
    OtherTarget {
        /// Size by the journal.
        journal_bytes: u64,
        /// Size found.
        capacity_bytes: u64,
    },
    /// The journal is of a device with another serial number.
    #[error("the journal is of the device with serial number `{journal}`, this one has `{found}`")]
    OtherSerial {
        /// By the journal.
        journal: String,
        /// Found.
        found: String,
    },
    /// Nothing on the target is of the run that the journal is of.
    #[error(
        "the target has no block of the journal's run: it is another target, or it has lost all {blocks} blocks that it should keep"
    )]
    NothingOfRun {
        /// Blocks that a flush had promised.
        blocks: u64,
    },
}

impl VerifyError {
    /// What to do about it: one sentence without a full stop. `look` says where to look for why the target failed a
    /// request, in a part of a sentence.
    pub fn help(&self, look: &str) -> String {
        let text = match self {
            VerifyError::EndedEarly { cause, .. } => return cause.help(look),
            VerifyError::Target { .. } => return format!("{look}; {JOURNAL_TELLS}"),
            VerifyError::Plan { .. } => "correct the option",
            VerifyError::SameFileSystem { .. } => {
                "a crash that loses the data may lose the journal, too: name a new file on another \
                 device"
            }
            VerifyError::Journal(error) => error.help(),
            VerifyError::OtherTarget { .. } | VerifyError::OtherSerial { .. } => {
                "name the target that the journal was written for"
            }
            VerifyError::NothingOfRun { .. } => {
                "name the target that the journal was written for; if this is that target, do not trust it with data"
            }
        };
        text.to_owned()
    }
}

/// What remains of a run that ended early.
pub const JOURNAL_TELLS: &str =
    "the journal, if you set one, records what was written: `resume` checks it";
