//! The runner in virtual time: workload, host, driver and device on one clock.
//!
//! Key types: [`drive`] (the loop: ask the workload, submit, advance, reap, record), [`SimRun`] (a
//! device with what lies before it - [`Attach`] -, a workload and a seed) whose [`execute`](SimRun::execute) gives a
//! [`RunResult`](ssdyno_figures::RunResult) with energy, write amplification, expected figures and
//! invariants.
//!
//! A [`Session`] loads one device again and again and keeps its state, as a specification of rounds
//! demands.
//!
//! Errors: [`RunError`]. A run that ends early keeps what was measured and is marked partial.
//!
//! A machine of host, driver, bus and device is a target as a device alone is: the loop and all reports
//! are the same for both. Where it begins, the driver has just become ready.
//!
//! Not here: wall-clock targets (crate bench).

mod attach;
mod bounds;
mod course;
mod drift;
mod drive;
mod error;
mod expected;
mod explain;
mod faults;
mod host_report;
mod machine;
mod medium;
mod namespaces;
mod network;
mod ports;
mod report;
mod run;
mod session;
mod settling;
mod sim_target;
mod source;
mod spread;
mod streams;
mod thrash;
mod timeline;
mod uniform;

pub use attach::{Attach, DevicePath, HostOptions, HostPlan, HostSide, Stack};
pub use drive::{Drive, DriveEnd, drive};
pub use error::RunError;
pub use explain::Explain;
pub use faults::NetworkFaultConfig;
pub use network::{EndTable, LinkTable, NETWORKS, NetworkConfig, TargetTable};
pub use run::{SimMeasured, SimRun};
pub use session::{LoadResult, Session};
pub use ssdyno_figures::{KeepGoing, RunLimits, RunProgress, RunStart, Supervisor};
pub use ssdyno_workload::Source;
pub use streams::Streams;
pub use timeline::{EVENTS_MAX, Timeline};
