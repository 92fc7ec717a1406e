//! The runner in virtual time: workload and device on one clock.
//!
//! Key types: [`drive`] (the loop: ask the workload, submit, advance, reap, record), [`Run`] (a
//! device file, a workload and a seed) whose [`execute`](Run::execute) gives a
//! [`RunResult`](ssdyno_result::RunResult) with energy, write amplification, expected figures and
//! invariants.
//!
//! Errors: [`RunError`]. A run that ends early keeps what was measured and is marked partial.
//!
//! Not here: wall-clock targets (crate bench), drivers and hosts between workload and device.

mod drive;
mod expected;
mod report;
mod run;

pub use drive::{Drive, Ended, Flow, Limits, Progress, drive};
pub use run::{Measured, Run, RunError, Source};
