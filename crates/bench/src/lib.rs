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

#[cfg(target_os = "linux")]
mod believable;
#[cfg(target_os = "linux")]
mod buffers;
#[cfg(target_os = "linux")]
mod clock;
#[cfg(target_os = "linux")]
mod content;
#[cfg(target_os = "linux")]
mod cost;
#[cfg(target_os = "linux")]
mod delays;
#[cfg(target_os = "linux")]
mod engine;
mod error;
mod execute;
#[cfg(target_os = "linux")]
mod extents;
#[cfg(target_os = "linux")]
mod faults;
#[cfg(target_os = "linux")]
mod job;
#[cfg(target_os = "linux")]
mod job_set;
#[cfg(target_os = "linux")]
mod limits;
#[cfg(target_os = "linux")]
mod lock;
#[cfg(target_os = "linux")]
mod machine;
#[cfg(target_os = "linux")]
mod measure;
#[cfg(target_os = "linux")]
mod member;
mod method;
#[cfg(target_os = "linux")]
mod neighbours;
mod network;
mod options;
#[cfg(target_os = "linux")]
mod overhead;
#[cfg(target_os = "linux")]
mod pinning;
#[cfg(target_os = "linux")]
mod plan;
#[cfg(target_os = "linux")]
pub mod probe;
#[cfg(target_os = "linux")]
mod pulse;
#[cfg(target_os = "linux")]
mod ramp;
#[cfg(target_os = "linux")]
mod ranges;
#[cfg(target_os = "linux")]
mod report;
#[cfg(target_os = "linux")]
mod reread;
mod run;
#[cfg(target_os = "linux")]
mod share;
#[cfg(target_os = "linux")]
mod spool;
#[cfg(target_os = "linux")]
mod start;
#[cfg(target_os = "linux")]
mod target;
#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests;
#[cfg(target_os = "linux")]
mod tuning;
#[cfg(target_os = "linux")]
mod worker;

#[cfg(target_os = "linux")]
pub use engine::passthrough::block_device_of;
pub use error::{BenchError, look_at_the_log};
#[cfg(target_os = "linux")]
pub use limits::outlive_file_size_limit;
pub use method::{ALL, Method, ReapWait, SubmitStrategy};
#[cfg(target_os = "linux")]
pub use neighbours::Neighbours;
pub use network::is_network;
#[cfg(target_os = "linux")]
pub use network::{RemoteFile, inspect_export};
pub use options::{BenchOptions, EngineKind, NULL, PageCache, Probing, SyncWrites};
pub use run::{BenchMeasured, BenchRun, RowsPlace};
#[cfg(target_os = "linux")]
pub use target::RealTarget;
