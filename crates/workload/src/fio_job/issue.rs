//! How the requests of a job go to its target.

use std::path::PathBuf;

use crate::TraceTiming;

/// How fio would issue the requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum FioEngine {
    /// One request at a time: `sync`, `psync`, `vsync`, `pvsync`, `pvsync2`.
    #[default]
    Synchronous,
    /// `io_uring`, `libaio`, `posixaio`.
    Asynchronous,
    /// `io_uring_cmd`: NVMe commands to a generic device, `/dev/ng0n1`.
    Passthrough,
    /// `null`.
    Null,
}

/// The part of a write that is durable when it completes (fio: `sync`; open(2), O_SYNC and
/// O_DSYNC).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum FioSync {
    /// Nothing: that takes a flush.
    #[default]
    None,
    /// Its data, and the metadata that is needed to find it (`sync=dsync`).
    Data,
    // O_SYNC and O_DSYNC differ for files only: a block device has no metadata of its own. Both
    // become a write with force unit access or a flush in the kernel.
    /// Everything about the file (`sync=1`, `sync=sync`).
    Whole,
}

/// How many requests go to the target and back at a time (`iodepth_batch`, `iodepth_batch_complete_min`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FioBatch {
    /// Completions that are waited for.
    pub complete: u32,
    /// Requests that are handed over together, at most.
    pub submit: u32,
}

/// A recording that a job replays (`read_iolog`).
#[derive(Clone, PartialEq, Debug)]
pub struct FioReplay {
    /// The file.
    pub path: PathBuf,
    /// When its requests start.
    pub timing: TraceTiming,
    /// Requests outstanding at most.
    pub depth: u32,
}
