//! Job files of fio, version 3 (fio documentation, "Job file parameters").
//!
//! [`read_fio_jobs`] gives each job as a [`FioJob`]: what it asks of a target as a workload, and
//! what it says of engine, cores and order. What cannot be carried over is refused by name and
//! line, with what to write instead; nothing is dropped in silence. Where we do something another
//! way than fio, a note says so.

mod ini;
mod job;
mod options;
mod values;

#[cfg(test)]
mod tests;

use std::path::Path;

use ssdyno_block::Time;

pub use job::read_jobs as read_fio_jobs;

use crate::{Arrivals, BlockSize, Config, Pattern};

/// How fio would issue the requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum FioEngine {
    /// One request at a time: `sync`, `psync`, `vsync`, `pvsync`, `pvsync2`.
    #[default]
    Synchronous,
    /// `io_uring`, `libaio`, `posixaio`, `io_uring_cmd` with block commands is not among them.
    Asynchronous,
    /// `null`.
    Null,
}

/// A job.
#[derive(Clone, PartialEq, Debug)]
pub struct FioJob {
    /// The name in brackets.
    pub name: String,
    /// File or device, where the job names one.
    pub file: Option<String>,
    /// How large a file that is not there should be.
    pub file_size_bytes: Option<u64>,
    /// How requests are issued.
    pub engine: FioEngine,
    /// Poll for completions (`hipri`).
    pub iopoll: bool,
    /// A kernel thread takes submissions (`sqthread_poll`).
    pub sqpoll: bool,
    /// Copies of the job.
    pub jobs: u32,
    /// Cores that they are bound to.
    pub cores: Vec<usize>,
    /// Jobs of one group run together, groups one after the other (`stonewall`).
    pub group: u32,
    /// Wait before the job begins.
    pub start_delay: Time,
    /// What is done in this time is not recorded.
    pub ramp: Time,
    /// Seed, where the job sets one.
    pub seed: Option<u64>,
    /// What a reader of the figures must know.
    pub notes: Vec<String>,
    load: Load,
}

/// What is asked of the target.
#[derive(Clone, PartialEq, Debug, Default)]
struct Load {
    depth: u32,
    /// Shares of reads, writes and trims, in percent.
    mix: [f64; 3],
    sizes: Vec<BlockSize>,
    alignment: Option<u64>,
    sequential_percent: f64,
    theta: Option<f64>,
    start_bytes: u64,
    length: Option<values::Size>,
    /// Bytes to transfer, where that is not the length.
    io_bytes: Option<values::Size>,
    requests: Option<u64>,
    runtime: Option<Time>,
    time_based: bool,
    arrivals: Option<Arrivals>,
}

impl FioJob {
    /// What the job asks of a target of `capacity_bytes`.
    pub fn workload(&self, capacity_bytes: u64) -> Config {
        let load = &self.load;
        let resolve = |size: values::Size| match size {
            values::Size::Bytes(bytes) => bytes,
            values::Size::Percent(share) => (capacity_bytes as f64 * share / 100.0) as u64,
        };
        let rest = capacity_bytes.saturating_sub(load.start_bytes);
        let step = load.sizes.iter().map(|s| s.size.0).max().unwrap_or(4096).max(1);
        let length = load.length.map_or(rest, resolve);
        let length = if load.length.is_none() { length / step * step } else { length };
        let weights: f64 = load.sizes.iter().map(|s| s.weight).sum();
        let bytes_mean: f64 =
            load.sizes.iter().map(|s| s.size.0 as f64 * s.weight).sum::<f64>() / weights.max(1e-9);
        let all = load.io_bytes.map_or(length, resolve) as f64 / bytes_mean.max(1.0);
        let jobs = u64::from(self.jobs);
        let requests = match (load.time_based, load.requests) {
            (true, _) => None,
            (false, Some(requests)) => Some(requests * jobs),
            (false, None) => Some((all.round() as u64).max(1) * jobs),
        };
        let mut config = Config {
            depth: Some(load.depth),
            threads: Some(self.jobs),
            arrivals: load.arrivals.clone(),
            read_percent: Some(load.mix[0]),
            write_percent: Some(load.mix[1]),
            trim_percent: Some(load.mix[2]),
            block_sizes: load.sizes.clone(),
            alignment: load.alignment.map(ssdyno_block::units::Bytes),
            requests,
            duration: load.runtime.map(ssdyno_block::units::Span),
            ..Config::default()
        };
        if let [one] = load.sizes.as_slice() {
            config.block_size = Some(one.size);
            config.block_sizes.clear();
        }
        config.address.start = ssdyno_block::units::Bytes(load.start_bytes);
        config.address.length = Some(ssdyno_block::units::Bytes(length));
        match load.theta {
            Some(theta) => {
                config.address.pattern = Pattern::Zipf;
                config.address.theta = theta;
            }
            None if load.sequential_percent >= 100.0 => {
                config.address.pattern = Pattern::Sequential;
            }
            None => config.sequential_percent = Some(load.sequential_percent),
        }
        config
    }

    /// Whether the job writes or trims.
    pub fn changes_data(&self) -> bool {
        self.load.mix[1] + self.load.mix[2] > 0.0
    }
}

/// True if `path` looks like a job file: for the hint where somebody gives one as a workload.
pub fn is_fio_job_file(path: &Path) -> bool {
    path.extension().is_some_and(|e| e.eq_ignore_ascii_case("fio"))
}
