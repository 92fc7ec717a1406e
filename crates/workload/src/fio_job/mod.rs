//! Job files of fio, version 3 (fio documentation, "Job file parameters").
//!
//! [`read_fio_jobs`] gives each section as a [`FioJob`]; [`fio_streams`] gives what its copies ask of a target of a
//! given size, each a [`FioStream`] that can be built into a workload of its own (for jobs that are threads);
//! [`run_together`] joins them all into one workload (for a runner with one clock). An option that cannot be converted
//! is refused by name and line, with an alternative; no option is silently dropped. Where we do something another way
//! than fio, a note says so.

mod buffer;
mod delayed;
mod distribution;
mod exit;
mod files;
mod flow;
mod ini;
mod issue;
mod job;
mod latency;
mod load;
mod low;
mod map;
mod options;
mod places;
mod reader;
mod requests;
mod served;
mod shape;
mod shared;
mod sizes;
mod stream;
mod together;
mod unlike;
mod values;
mod verify;
mod watch;

#[cfg(test)]
mod tests;

use std::path::PathBuf;

use ssdyno_block::Time;
use ssdyno_block::units::Span;

pub use delayed::delayed;
pub use exit::{FioEnd, FioExit};
pub use files::{FioFile, FioFiles, FioRange};
pub use issue::{FioBatch, FioEngine, FioReplay, FioSync};
pub use job::read_jobs as read_fio_jobs;
pub use shared::shared;
pub use stream::{FioEntry, FioStream, fio_entries, fio_streams};
pub use together::run_together;
pub use verify::{FioVerify, read_fio_verify};

use load::Load;

use crate::WriteData;

/// A section of a job file.
#[derive(Clone, PartialEq, Debug)]
pub struct FioJob {
    /// The name in brackets.
    pub name: String,
    /// Files or devices, where the job names any, or a directory for them.
    pub files: Vec<String>,
    /// Whether `files` were named themselves (`filename`), and not made up in a `directory`.
    pub files_are_named: bool,
    /// How many files the job has (`nrfiles`, or those that are named); 1 or more.
    pub file_count: u32,
    /// How large a file that is not there should be.
    pub file_size_bytes: Option<u64>,
    /// How requests are issued.
    pub engine: FioEngine,
    /// Poll for completions (`hipri`).
    pub iopoll: bool,
    /// A kernel thread takes submissions (`sqthread_poll`).
    pub sqpoll: bool,
    /// The part of a write that is durable when it completes.
    pub sync: FioSync,
    /// Requests go through the page cache (`direct=0`, `buffered=1`).
    pub buffered: bool,
    /// The file's pages in the page cache are dropped before the job (`invalidate`).
    pub invalidate: bool,
    /// Requests that would have to wait in the kernel fail (`nowait`).
    pub nowait: bool,
    /// How many requests go at a time, where the job says it.
    pub batch: Option<FioBatch>,
    /// The recording that it replays instead of its own load.
    pub replay: Option<FioReplay>,
    /// What its writes carry.
    pub buffer: WriteData,
    /// Copies of the job, each with all of its load (`numjobs`).
    pub copies: u32,
    /// Cores that they are bound to.
    pub cores: Vec<usize>,
    /// Each copy has one of `cores` for itself, in turn (`cpus_allowed_policy=split`).
    pub split_cores: bool,
    /// Copies are reported as one (`group_reporting`).
    pub copies_as_one: bool,
    /// Jobs of one group run together, groups one after the other (`stonewall`).
    pub group: u32,
    /// Whom the end of the job ends too (`exitall`).
    pub exit: FioExit,
    /// Wait before the job begins.
    pub start_delay: Time,
    /// Requests in this time are not recorded.
    pub ramp: Time,
    /// Seed, where the job sets one.
    pub seed: Option<u64>,
    /// Why the load of a real target is not that of fio.
    pub warnings: Vec<String>,
    /// Notes that a reader of the figures needs.
    pub notes: Vec<String>,
    /// The options that hold for the section, those of `global` before it first.
    pub options: Vec<(String, Option<String>)>,
    /// Where the section begins, for errors that show with the target.
    at: (PathBuf, u64),
    load: Load,
}

impl FioJob {
    /// Whether the job reads.
    pub fn reads(&self) -> bool {
        self.load.mix[0] > 0.0
    }

    /// Whether the job writes or trims.
    pub fn changes_data(&self) -> bool {
        self.load.mix[1] + self.load.mix[2] > 0.0
    }

    /// Whether the job pauses between its requests (`thinktime`).
    pub fn pauses(&self) -> bool {
        self.load.shape.think.is_some()
    }

    /// Ends the job at most `time` after its start (and ramp-up); if its own `runtime` was longer, or if it had none, a
    /// note says so.
    pub fn end_after(&mut self, time: Time) {
        let own = self.load.runtime;
        // A limit only shortens a job. The job's own shorter time remains, because it is part of
        // the load that its author described.
        if own.is_some_and(|own| own <= time) {
            return;
        }
        self.load.runtime = Some(time);
        let instead = own.map_or(String::new(), |own| format!(" instead of {}", Span(own)));
        let name = &self.name;
        self.notes.push(format!("[{name}]: ends after {} at the latest{instead}", Span(time)));
    }

    /// For targets that know no durable write: a flush follows each write in its place, and a note
    /// says so.
    pub fn flush_instead_of_sync(&mut self) {
        // A job without writes has nothing that must become durable. A flush there would add
        // requests that fio does not send.
        if self.sync == FioSync::None || self.load.mix[1] == 0.0 {
            return;
        }
        self.sync = FioSync::None;
        // A flush after each write gives the same durability as `O_DSYNC`. It makes the device
        // empty its whole cache, so the cost is higher, and the note says so.
        self.load.shape.flush_every = Some(1);
        self.notes.push(
            "sync: each write is followed by a flush, which counts as a separate request".into(),
        );
    }
}
