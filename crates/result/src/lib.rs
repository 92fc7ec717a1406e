//! What a run leaves behind: rows, statistics, series, JSON, Parquet, HTML.
//!
//! Shared by the runner in virtual time and the one in wall time; it knows requests and
//! completions, no devices and no clocks.
//!
//! The way of a figure: a [`Recorder`] takes every request of a run in virtual time (below 25 ns
//! each), a [`Tape`] every request of a job in wall time (below 10 ns). Both become a
//! [`Recording`] (several of them one, with [`Recording::merge`]), whose [`fill`](Recording::fill) puts counts, rates, latencies, intervals and
//! series into a [`RunResult`] - the shape of `result.json`. The runner adds what it knows of the
//! device: energy, flash operations, busy shares, power over time. From a
//! `RunResult` alone come the text for the terminal ([`summary_text`]), the page
//! ([`report_html`]) and comparisons ([`compare`]); a [`RunDirectory`] writes them and the rows.
//!
//! Errors: [`ResultError`] for figures that are not finite and for files that cannot be written,
//! naming the figure or the path and what to do. Invariants that a run broke are no errors but
//! [`Invariant`]s of the result; the caller decides what to make of them.
//!
//! Not here: energy models, closed forms, probes of the host; percentiles of several runs
//! together.

mod batches;
mod buckets;
mod compare;
mod confidence;
mod csv_rows;
mod depth;
mod directory;
mod drift;
mod error;
mod faults;
mod finite;
mod format;
mod histogram;
mod host;
mod hosts;
mod jobs;
mod latency;
mod little;
mod live_snapshot;
pub mod memory;
mod method;
mod parquet_rows;
pub mod probe;
mod progress;
mod quantiles;
mod recorder;
mod recording;
mod recover;
mod report;
mod result;
mod rows;
mod series;
mod series_csv;
mod slices;
mod sparse;
mod statistics;
mod steady;
mod stop;
mod tails;
mod tape;
mod text;
mod together;
mod until;

pub use buckets::Grid;
pub use compare::{Comparison, FigureComparison, Verdict, compare};
pub use depth::{DepthSearchResult, TriedDepthResult};
pub use directory::RunDirectory;
pub use error::ResultError;
pub use faults::{DeviceFaults, DriverRecovery, FaultsResult, NetworkFaults};
pub use finite::to_json;
pub use format::{bytes_per_second, joules, nanoseconds, rate, seconds, significant, watts};
pub use histogram::Histogram;
pub use host::{CacheResult, HostCore, HostEnergy, HostResult, NamespaceResult, NetworkResult};
pub use hosts::{HostRun, MetricSeries, OutsideWindow, ProbedSystem, ScrapedMetrics};
pub use jobs::JobResult;
pub use live_snapshot::LiveSnapshot;
pub use method::{MethodResult, MethodSettings, TunedMethod};
pub use progress::{KeepGoing, RunLimits, RunProgress, RunStart, Supervisor};
pub use recorder::{Keep, Recorder};
pub use recording::Recording;
pub use recover::{RecoverError, recover};
pub use report::{Axis, Page, Plot, table as html_table};
pub use report::{comparison_html, figure_text, report_html};
pub use result::{
    BusyShare, ByOp, Confidence, Configuration, Energy, EnergyRow, Expected, FlashOperations,
    Invariant, IssueDelay, Latency, LatencyAtMost, LatencyBin, LatencyByOp, LatencyIntervals,
    LatencyIntervalsByOp, LoadWindow, OwnCost, PackageEnergy, PartBusy, Power, RunResult,
    SCHEMA_VERSION, SeriesPoint, schema,
};
pub use rows::{Row, RowNames, Rows, RowsHead, Spool};
pub use series::Series;
pub use statistics::{Interval, LEVEL};
pub use steady::{SteadyPeriod, SteadyState, slope};
pub use stop::{Ending, StopReason};
pub use tape::{Reaped, Sent, Tape};
pub use text::summary_text;
pub use together::{Apart, HostPart, Together};
pub use until::{Evidence, Metric, Precise, Precision, Until};
