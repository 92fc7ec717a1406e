//! What is asked of a target: seeded generators, weighted mixes, bursts and traces.
//!
//! Key types: [`Workload`] (answers "what next?" with a [`Step`]), [`Config`] (the TOML form of a
//! generator, checked and built by [`Config::build`]), [`open_trace`] (a recorded load of any
//! supported [`Format`], streamed), [`presets`] (the named workloads of the product).
//!
//! Workloads are passive and pure: they own no clock, never sleep and draw numbers only from a
//! seeded [`ssdyno_engine::Rng`]. The same workload therefore drives a runner in virtual time and
//! one in wall time. `next` does not allocate.
//!
//! Errors: [`WorkloadError`] says what is wrong, in which key of a configuration or in which line
//! of a trace, and what to do. A trace that turns bad in the middle ends ([`Step::Done`]) and
//! keeps its error for [`Workload::error`]. Nothing here panics on outside input.
//!
//! Not modelled: data contents of simulated targets ([`Buffer`] is for real ones), dependencies between the
//! requests of a trace (a request does not wait for the one whose answer caused it), and which
//! thread a completion belongs to (threads take turns, see [`Config::threads`]).

mod config;
mod error;
mod fio_job;
mod generator;
pub mod presets;
mod source;
mod trace;

pub use config::{
    Address, ArrivalKind, Arrivals, BlockSize, Buffer, Config, DEFAULT_REQUESTS, DiskSimSynthetic,
    Kind, Numbers, Pattern,
};
pub use error::{TraceLine, WorkloadError};
pub use fio_job::{
    FioBatch, FioEnd, FioEngine, FioEntry, FioExit, FioFile, FioFiles, FioJob, FioRange, FioReplay,
    FioStream, FioSync, FioVerify, delayed, fio_entries, fio_streams, is_fio_job_file,
    read_fio_jobs, read_fio_verify, run_together,
};
pub use source::{Source, first_recorded};
pub use trace::{
    BeyondEnd, BlkEvent, Format, ObjectIds, Timing, TraceOptions, TraceOrigin, open_trace,
    read_trace,
};

use ssdyno_block::{Request, Time};

/// What a workload wants next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// Issue `request` now; `intended` is when it was meant to start (<= now): latency counts
    /// from there.
    Issue {
        /// What to issue.
        request: Request,
        /// When it was meant to start: never later than `now`.
        intended: Time,
    },
    /// Nothing before this time (> now); ask again then, or after a completion.
    NotBefore(Time),
    /// Nothing until a completion.
    Wait,
    /// Nothing any more.
    Done,
}

/// A stream of requests that reacts to nothing but time and the number of completions.
///
/// The workload owes: every request is a non-empty (but for a flush) range of whole sectors inside
/// the device it was built for; `intended` never goes back within a stream and is never later than `now`; a
/// [`Step::NotBefore`] is later than `now`; after [`Step::Done`] nothing else follows;
/// [`Step::Wait`] is only said while a request is outstanding.
///
/// The runner owes: `now` never goes back, over all calls; each [`Step::Issue`] is issued and
/// answered by one call of [`completed`](Workload::completed).
pub trait Workload {
    /// The next step at `now`. Pure in its inputs: same seed and same sequence of calls give the
    /// same answers.
    fn next(&mut self, now: Time) -> Step;

    /// Requests that [`next`](Workload::next) will probably issue, the nearest first, of which the
    /// second half are told of for the first time. Empty where they are not known, or where all
    /// were told of. A hint that lets a simulator fetch ahead what they will need.
    fn upcoming(&self) -> &[Request] {
        &[]
    }

    /// One of the requests issued completed at `now`.
    fn completed(&mut self, now: Time);

    /// As `count` calls of [`completed`](Workload::completed), for a runner that reaps many at once.
    fn completed_many(&mut self, count: u64, now: Time) {
        for _ in 0..count {
            self.completed(now);
        }
    }

    /// The stream of the request that was issued last, where several run side by side: each knows
    /// how many of its own are outstanding.
    fn stream(&self) -> u32 {
        0
    }

    /// As [`completed`](Workload::completed), by a runner that remembers streams: one of the
    /// requests of `stream` completed. A workload of several streams needs to be told so.
    fn completed_in(&mut self, stream: u32, now: Time) {
        let _ = stream;
        self.completed(now);
    }

    /// From when requests of `stream` are to be recorded: what completes before is its ramp. Known
    /// from its first request on.
    fn recorded_from(&self, stream: u32) -> Time {
        let _ = stream;
        Time::ZERO
    }

    /// Warnings collected while reading (trace lines skipped, split, late …), for the report.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    /// Takes the error that ended the workload, if one did. To be asked after [`Step::Done`].
    fn error(&mut self) -> Option<WorkloadError> {
        None
    }
}

/// What a workload must know of its target.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DeviceFacts {
    /// Size in bytes: the first address that is out of range.
    pub capacity_bytes: u64,
    /// Unit of address and length in bytes; a power of two, 512 or more.
    pub sector_bytes: u32,
}
