//! The figures of a run: the shapes that are serialised, and nothing that makes them.
//!
//! Who reads a result needs this crate alone: a page, a binding for another language, a tool that compares. The shape of
//! `result.json` is [`RunResult`]; that of `compare --json` is [`Comparison`]; that of a run that goes on is
//! [`RunProgress`], with a [`LiveSnapshot`]. `record` makes them, `report` shows them.
//!
//! Besides the types, the crate contains the operations of a reader on them:
//! - [`Histogram`], because a [`LiveSnapshot`] has one: two snapshots are subtracted from each other, and the
//!   percentiles of the difference are its. It is the only histogram that is serialised in a shape; the sparse one of
//!   series and slices travels inside a recording alone, and is in `record`.
//! - [`Interval`], a figure with its bounds. What bounds are found by is in `record`.
//! - numbers as people read them: [`seconds`], [`rate`], [`significant`] and others, as some shapes have words in them.
//! - what a run is told while it goes on: [`Supervisor`], [`KeepGoing`], [`RunLimits`], [`Keep`].
//!
//! Schemas are part of the program's interface: `docs/schemas` has one of each shape.
//!
//! Not here: what computes a figure from requests (`record`), and text, pages and files made of figures (`report`).

mod bound;
mod calendar;
mod comparison;
mod faults;
mod format;
mod histogram;
mod host;
mod hosts;
mod interval;
mod jobs;
mod keep;
mod latency;
mod latency_map;
mod latency_parts;
mod live_snapshot;
mod method;
pub mod picoseconds;
pub mod probe;
mod progress;
mod provenance;
mod repeated;
mod result;
mod steady;
mod stop;
mod tail;
mod until;
mod victims;
mod warning;

pub use bound::{BrokenBound, FigureBound};
pub use calendar::rfc3339;
pub use comparison::{Change, Comparison, FigureComparison, PartComparison, Verdict};
pub use faults::{
    DeviceFaults, DriverAction, DriverActionKind, DriverRecovery, FaultsResult, NetworkFaults,
};
pub use format::{
    bytes_per_second, count, counts_in_words, csv_cell, joule_seconds, joules, nanoseconds,
    percent, rate, seconds, significant, things, watts,
};
pub use histogram::{Histogram, rank};
pub use host::{CacheResult, HostCore, HostEnergy, HostResult, NamespaceResult, NetworkResult};
pub use hosts::{HostRun, MetricSeries, OutsideWindow, ProbedSystem, ScrapedMetrics, WholeRun};
pub use interval::{Interval, LEVEL};
pub use jobs::JobResult;
pub use keep::Keep;
pub use latency::{
    Confidence, Latency, LatencyAtMost, LatencyByOp, LatencyIntervals, LatencyIntervalsByOp,
    requests_needed,
};
pub use latency_map::{LatencyBand, LatencyMap};
pub use latency_parts::{LatencyPartsByOp, MeanParts, OpLatencyParts};
pub use live_snapshot::LiveSnapshot;
pub use method::{MethodResult, MethodSettings, TunedMethod};
pub use progress::{KeepGoing, RunLimits, RunProgress, RunStart, Supervisor};
pub use provenance::Provenance;
pub use repeated::{FigureSpread, RepeatedRuns, common_notes};
pub use result::{
    BusyShare, ByOp, Configuration, Energy, EnergyRow, Expected, FlashOperations, Invariant,
    IssueDelay, LatencyBin, LoadWindow, OwnCost, PackageEnergy, PartBusy, Power, RunResult,
    SCHEMA_VERSION, SeriesPoint, schema,
};
pub use ssdyno_workload::{DepthSearchResult, TriedDepthResult};
pub use steady::{SteadyPeriod, SteadyState};
pub use stop::{Ending, StopReason};
pub use tail::TailVerdict;
pub use until::{Metric, Precision, Until};
pub use victims::GcVictims;
pub use warning::{DEPTH_ENOUGH, MORE_REQUESTS, Warning, WarningKind};
