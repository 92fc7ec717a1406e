//! The requests to a target: seeded generators, weighted mixes, bursts and traces.
//!
//! Key types: [`Workload`] (answers "what next?" with a [`WorkloadStep`]), [`WorkloadConfig`] (the TOML form of a
//! generator, checked and built by [`WorkloadConfig::build`]), [`open_trace`] (a recorded load of any
//! supported [`Format`], streamed), [`presets`] (the named workloads of the product).
//!
//! Workloads are passive and pure: they own no clock, never sleep and draw numbers only from a
//! seeded [`ssdyno_engine::Rng`]. The same workload therefore drives a runner in virtual time and
//! one in wall time. `next` does not allocate.
//!
//! Errors: [`WorkloadError`] describes the problem, the key of a configuration or the line of a trace, and the remedy.
//! A trace that turns bad in the middle ends ([`WorkloadStep::Done`]) and keeps its error for [`Workload::error`].
//! Nothing here panics on outside input.
//!
//! Not modelled: data contents of simulated targets ([`WriteData`] is for real ones), dependencies between the
//! requests of a trace (a request does not wait for the one whose answer caused it), and which
//! thread a completion belongs to (threads take turns, see [`WorkloadConfig::threads`]).

mod config;
mod depth;
mod error;
mod fio_job;
mod generator;
mod hot;
pub mod presets;
mod source;
mod trace;
mod written_places;

pub use config::{
    AddressPattern, ArrivalKind, Arrivals, BlockSize, DEFAULT_REQUESTS, DiskSimSynthetic, Numbers,
    Pattern, WorkloadConfig, WorkloadKind, WriteData, WritesApart,
};
pub use depth::{DepthSearchResult, LatencyTarget, TriedDepthResult};
pub use error::{TraceLine, WorkloadError};
pub use fio_job::{
    FioBatch, FioEnd, FioEngine, FioEntry, FioExit, FioFile, FioFiles, FioJob, FioRange, FioReplay,
    FioStream, FioSync, FioVerify, delayed, fio_entries, fio_streams, read_fio_jobs,
    read_fio_verify, run_together, shared,
};
pub use hot::HotPart;
pub use source::{Source, first_recorded};
pub use trace::{
    BeyondEnd, BlkEvent, Format, ObjectIds, TraceOptions, TraceOrigin, TraceTiming, decompress,
    open_trace, read_trace,
};
pub use written_places::WrittenPlaces;

use ssdyno_block::{Op, Request, Time};

/// The next step of a workload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WorkloadStep {
    /// Issue `request` now; `intended` is when it was meant to start (<= now): latency counts
    /// from there.
    Issue {
        /// What to issue.
        request: Request,
        /// When it was meant to start: never later than `now`.
        intended: Time,
    },
    /// No request before this time (> now); ask again then, or after a completion.
    NotBefore(Time),
    /// Nothing until a completion.
    Wait,
    /// Nothing any more.
    Done,
}

/// A request that came back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Finished {
    /// From its intended start to its completion.
    pub latency: Time,
    /// Which stream it is of: what [`Workload::stream`] said when it was issued.
    pub stream: u32,
    /// What it did.
    pub op: Op,
    /// Whether it did so without an error.
    pub is_ok: bool,
}

impl Finished {
    // A runner that reaps thousands of completions at once does not look up their latencies. An
    // error cannot be reported in this way, so only workloads that ignore the outcome may receive
    // it.
    /// A request of which a runner only reports that it is back.
    pub const UNKNOWN: Finished =
        Finished { latency: Time::ZERO, stream: 0, op: Op::Flush, is_ok: true };

    /// A request of a workload of one stream that took `latency`.
    pub const fn of(request: &Request, latency: Time) -> Finished {
        Finished { latency, stream: 0, op: request.op, is_ok: true }
    }
}

/// A stream of requests that reacts to nothing but time and what completes: how many, and where it
/// [`heeds_latency`](Workload::heeds_latency) how long each took.
///
/// The workload owes: every request is a non-empty (but for a flush) range of whole sectors inside
/// the device it was built for; `intended` never goes back within a stream and is never later than `now`; a
/// [`WorkloadStep::NotBefore`] is later than `now`; after [`WorkloadStep::Done`] nothing else follows;
/// [`WorkloadStep::Wait`] is only said while a request is outstanding.
///
/// The runner owes: `now` never goes back, over all calls; each [`WorkloadStep::Issue`] is issued and
/// answered by one call of [`completed`](Workload::completed), with its stream, its latency and how it ended.
pub trait Workload {
    /// The next step at `now`. Pure in its inputs: same seed and same sequence of calls give the
    /// same answers.
    fn next(&mut self, now: Time) -> WorkloadStep;

    /// The workload that this one wraps, if it wraps one. If a wrapper does not answer a question, the wrapped workload
    /// answers it, so a new question need not be forwarded in every wrapper. Steps and completions are no questions: a
    /// wrapper passes them on by itself, because it may change them.
    fn inner(&self) -> Option<&dyn Workload> {
        None
    }

    /// [`inner`](Workload::inner), to take its error.
    fn inner_mut(&mut self) -> Option<&mut dyn Workload> {
        None
    }

    /// Requests that [`next`](Workload::next) will probably issue, the nearest first, of which the
    /// second half are told of for the first time. Empty where they are not known, or where all
    /// were told of. A hint that lets a simulator fetch ahead what they will need.
    fn upcoming(&self) -> &[Request] {
        self.inner().map_or(&[], |inner| inner.upcoming())
    }

    /// One of the requests issued completed at `now`.
    fn completed(&mut self, finished: Finished, now: Time);

    /// Whether what it does depends on how requests ended and how long they took. Asked once, before the
    /// first request.
    fn heeds_latency(&self) -> bool {
        self.inner().is_some_and(|inner| inner.heeds_latency())
    }

    /// As `count` calls of [`completed`](Workload::completed), for a runner that reaps many at once; not for
    /// a workload that [`heeds_latency`](Workload::heeds_latency).
    fn completed_many(&mut self, count: u64, now: Time) {
        // The default calls `completed` one by one, so that a wrapper need not know this function.
        // A generator overrides it with one subtraction, because it only counts.
        for _ in 0..count {
            self.completed(Finished::UNKNOWN, now);
        }
    }

    /// The stream of the request that was issued last, where several run side by side: each knows
    /// how many of its own are outstanding.
    fn stream(&self) -> u32 {
        0
    }

    /// From when requests of `stream` are to be recorded: what completes before is its ramp, or the search
    /// for its depth. [`Time::MAX`] while that is not known; otherwise known from its first request on, and
    /// later requests do not change it.
    fn recorded_from(&self, stream: u32) -> Time {
        self.inner().map_or(Time::ZERO, |inner| inner.recorded_from(stream))
    }

    /// The outcomes of the searches for a depth, of each stream that searches.
    fn depth_searches(&self) -> Vec<DepthSearchResult> {
        self.inner().map_or_else(Vec::new, |inner| inner.depth_searches())
    }

    /// Warnings collected while reading (trace lines skipped, split, late …), for the report.
    fn notes(&self) -> Vec<String> {
        self.inner().map_or_else(Vec::new, |inner| inner.notes())
    }

    /// Takes the error that ended the workload, if one did. To be asked after [`WorkloadStep::Done`].
    fn error(&mut self) -> Option<WorkloadError> {
        self.inner_mut().and_then(|inner| inner.error())
    }
}

/// [`Workload::inner`] and [`Workload::inner_mut`] of a wrapper whose workload is in its field `inner`.
macro_rules! wraps_inner {
    () => {
        fn inner(&self) -> Option<&dyn $crate::Workload> {
            Some(self.inner.as_ref())
        }

        fn inner_mut(&mut self) -> Option<&mut dyn $crate::Workload> {
            Some(self.inner.as_mut())
        }
    };
}
pub(crate) use wraps_inner;

/// The facts about its target that a workload needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TargetFacts {
    /// Size in bytes: the first address that is out of range.
    pub capacity_bytes: u64,
    /// Unit of address and length in bytes; a power of two, 512 or more.
    pub sector_bytes: u32,
}
