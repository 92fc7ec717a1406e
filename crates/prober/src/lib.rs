//! Samples the state of a machine on a timeline (S4-5, S4-18 to S4-20).
//!
//! Key types: [`SystemCounters`] are the counters of the kernel at one moment, read below the directories of
//! [`Sources`]. The difference of two of them is a [`SystemSample`]: rates and levels of CPU, memory, network, disks,
//! power and pressure. A [`Prober`] takes samples in a thread and keeps a [`SystemSeries`] of bounded size.
//! [`MachineOrigin`] and [`StorageOrigin`] describe a machine and its storage, not their activity. [`OpenMetricsWriter`]
//! writes a sample for Prometheus, and [`read_open_metrics`] reads the metrics of other programs.
//!
//! Errors: a source that cannot be read does not spoil the others. Its figures are missing, and
//! [`SystemCounters::errors`] has a [`SourceError`] with file and line. A figure that is not known is missing and
//! never 0. Nothing here panics on the text of a file or of a network.
//!
//! Time: a sample has the monotonic time and the calendar time of its end. The monotonic clock is `CLOCK_MONOTONIC`
//! on Linux, so all processes of a machine have the same one.
//!
//! Not here: networks, command lines, printing, single processes, temperatures. Files of other systems than Linux
//! are not known: there every source is unreadable.

mod clock;
mod counters;
mod figures;
mod join;
mod open_metrics;
mod origin;
mod prober;
mod rates;
mod sample;
mod series;
mod sources;

pub use clock::monotonic_ns;
pub use counters::{PowerSensors, SystemCounters};
pub use open_metrics::{
    MetricKind, MetricLabels, MetricPoint, OpenMetricsError, OpenMetricsWriter, read_open_metrics,
};
pub use origin::{
    DriveOrigin, FileOrigin, MachineOrigin, StorageOrigin, drive_model, drive_serial, names, value,
};
pub use prober::{Prober, ProberError, ProberOptions};
pub use sample::{
    CpuFractions, DiscardRates, DiskRates, FlushRates, KernelActivity, MemoryLevels, NetworkRates,
    SensorLevel, StalledTime, SwapRates, SystemSample,
};
pub use series::{SystemPoint, SystemSeries};
pub use sources::{SourceError, Sources};
