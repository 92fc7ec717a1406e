//! The runner in wall time: loads a block device, a file or nothing, and measures it.
//!
//! Key types: [`BenchRun`] (a target, a workload and a seed) whose [`execute`](BenchRun::execute) gives
//! [`BenchMeasured`], the same [`RunResult`](ssdyno_figures::RunResult) that a run in virtual time
//! gives; [`BenchOptions`] (engine, jobs, cores) with a [`Method`] (batches, waiting); [`Access`](ssdyno_safety::Access) (nothing is
//! written without a permit).
//!
//! The path of a request: each job is a thread that takes the due requests from its workload,
//! pushes them to its engine, waits for completions, reads the clock once for all requests that it
//! reaps, and lets a [`Tape`](ssdyno_record::Tape) record them. Latency counts from the *intended*
//! start: in an open loop or a trace the wait for a place in the queue, or for us, is part of it.
//!
//! Beside the measuring loop: [`probe`] (what the machine does meanwhile).
//!
//! Engines: io_uring (registered buffers and files, batched submission and reaping), threads with
//! pread(2) and pwrite(2), connections to servers (`network`: NBD, iSCSI), and nothing. The tool measures and states what it costs itself
//! (S4-21, S4-45).
//!
//! Errors: [`BenchError`] describes the error and its place; its [`help`](BenchError::help)
//! describes the remedy. A run that ends early keeps what was measured and is marked partial.
//!
//! Not modelled: nothing is; this measures. Not here: other hosts.
//! Completions are stamped when they are reaped: a batch of them shares one moment.
//!
//! Linux only; elsewhere every run ends with [`BenchError::System`].

mod error;
mod execute;
#[cfg(target_os = "linux")]
mod linux;
mod method;
mod options;
mod run;
mod schemes;

pub use error::{BenchError, look_at_the_log};
#[cfg(target_os = "linux")]
use linux::*;
#[cfg(target_os = "linux")]
pub use linux::{
    Neighbours, RealTarget, RemoteFile, block_device_of, inspect_export, outlive_file_size_limit,
    probe,
};
pub use method::{ALL, Method, ReapWait, SubmitStrategy};
pub use options::{BenchOptions, EngineKind, NULL, PageCache, Probing};
pub use run::{BenchMeasured, BenchRun, RowsPlace};
pub use schemes::is_network;
