//! What makes figures: the recorders of a run, its rows, and the statistics.
//!
//! The runner in virtual time and the runner in wall time share this crate; it handles requests and completions, but no
//! devices and no clocks.
//!
//! The way of a figure: a [`Recorder`] takes every request of a run in virtual time (below 25 ns
//! each), a [`Tape`] every request of a job in wall time (below 10 ns). Both become a
//! [`Recording`] (several of them one, with [`Recording::merge`]), whose [`fill`](Recording::fill) puts counts, rates,
//! latencies, intervals and series into a [`RunResult`](ssdyno_figures::RunResult). The runner adds what it knows of the
//! device: energy, flash operations, busy shares, power over time. [`Rows`] are kept apart: [`write_parquet`] and
//! [`write_csv`] write them, and [`recover`] makes a result of those that a run left which was killed.
//!
//! Order, from the ground up: `statistics`; `batches` and `slices`, which intervals are found from; `quantiles` and
//! `tails`; `rows`; `totals` and `series`; `confidence`; `recording`; then `recorder` and `tape`, which end as a recording.
//!
//! Invariants that a run broke are not errors but [`Invariant`](ssdyno_figures::Invariant)s of the result; the caller
//! decides what to make of them.
//!
//! Not here: the result types (`figures`), their presentation (`report`), energy models, closed forms, probes of the
//! host, and percentiles of several runs together.

mod batches;
mod buckets;
mod confidence;
mod count_over_time;
mod csv_rows;
#[cfg(test)]
mod draw;
mod drift;
mod few;
mod hopeless;
mod jobs;
mod judge;
mod latency_map;
mod little;
pub mod memory;
mod near_limit;
mod overload;
mod parquet_rows;
mod quantiles;
mod recorder;
mod recording;
mod recover;
mod rows;
mod series;
mod side_by_side;
mod slices;
mod sparse;
mod statistics;
mod steady;
mod sums;
mod tails;
mod tape;
mod together;
mod totals;
mod until;

pub use buckets::Grid;
pub use csv_rows::write as write_csv;
pub use hopeless::Hopeless;
pub use jobs::{RatedJob, overloads_of_jobs};
pub use parquet_rows::{STATUS_NAMES, write as write_parquet};
pub use recorder::Recorder;
pub use recording::{LeftOut, Recording, RequestLoop};
pub use recover::{RecoverError, recover};
pub use rows::{Row, RowNames, Rows, RowsHead, Spool};
pub use series::Series;
pub use statistics::{mean_interval, mean_interval_at, ratio_interval, slope};
pub use tape::{Reaped, Sent, Tape};
pub use together::{Apart, HostPart, Together};
pub use until::{Evidence, Precise};

/// Fewest completions of which there are intervals of rates.
pub const COMPLETIONS_LEAST_FOR_RATES: u64 = batches::Batches::COMPLETIONS_LEAST;
/// Fewest arrivals that show an overload.
pub const ARRIVALS_LEAST_FOR_OVERLOAD: u64 = overload::POINTS as u64;
/// Fewest completions of which there are intervals of latencies.
pub const COMPLETIONS_LEAST_FOR_LATENCIES: u64 = slices::Slices::COMPLETIONS_LEAST;
