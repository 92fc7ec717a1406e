//! What the copies of jobs ask of a target.

use ssdyno_block::Time;
use ssdyno_block::units::{Bytes, Span};

use super::shape::shaped;
use super::values::Size;
use super::{FioEngine, FioJob};
use crate::error::TraceLine;
use crate::{Config, DeviceFacts, Pattern, Workload, WorkloadError};

/// One copy of a job: a stream of requests of its own, whose time counts from its start.
#[derive(Clone, PartialEq, Debug)]
pub struct FioStream {
    /// Which section of the file it comes from, counted from 0.
    pub job: usize,
    /// Which copy of it, counted from 0.
    pub copy: u32,
    /// Where its figures belong: an index into [`fio_entries`].
    pub entry: usize,
    /// See [`FioJob::group`].
    pub group: u32,
    /// See [`FioJob::start_delay`].
    pub start_delay: Time,
    /// See [`FioJob::ramp`].
    pub ramp: Time,
    /// Cores it may run on; empty: any.
    pub cores: Vec<usize>,
    /// How fio would issue its requests.
    pub engine: FioEngine,
    /// Decides about everything random.
    pub seed: u64,
    /// What is asked of the target but for pauses and flushes.
    pub config: Config,
    shape: super::shape::Shape,
    at: TraceLine,
}

/// What is reported together: a section, or one copy of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FioEntry {
    /// Name of the section.
    pub name: String,
    /// See [`FioJob::group`].
    pub group: u32,
    /// Streams in it.
    pub copies: u32,
}

/// What is reported apart, as fio does: each copy, or with `group_reporting` each section.
pub fn fio_entries(jobs: &[FioJob]) -> Vec<FioEntry> {
    let entries = jobs.iter().flat_map(|job| {
        let (rows, copies) = if job.copies_as_one { (1, job.copies) } else { (job.copies, 1) };
        let entry = FioEntry { name: job.name.clone(), group: job.group, copies };
        std::iter::repeat_n(entry, rows as usize)
    });
    entries.collect()
}

/// What `jobs` ask of a target of `capacity_bytes`, in the order of the file. `seed` is for jobs
/// without one.
pub fn fio_streams(jobs: &[FioJob], capacity_bytes: u64, seed: u64) -> Vec<FioStream> {
    let mut streams: Vec<FioStream> = Vec::new();
    let mut entry = 0;
    for (index, job) in jobs.iter().enumerate() {
        for copy in 0..job.copies {
            // Streams must differ: by their place in the file, or as copies of a seeded job.
            let (base, number) = match job.seed {
                Some(seed) => (seed, u64::from(copy)),
                None => (seed, streams.len() as u64),
            };
            streams.push(FioStream {
                job: index,
                copy,
                entry,
                group: job.group,
                start_delay: job.start_delay,
                ramp: job.ramp,
                cores: job.cores_of(copy),
                engine: job.engine,
                seed: base.wrapping_add(number.wrapping_mul(0x9E37_79B9_7F4A_7C15)),
                config: job.config(copy, capacity_bytes),
                shape: job.load.shape,
                at: job.line(),
            });
            entry += usize::from(!job.copies_as_one);
        }
        entry += usize::from(job.copies_as_one);
    }
    streams
}

impl FioStream {
    /// Checks the stream against `device` and makes its workload, which begins at time 0.
    ///
    /// # Errors
    /// What the target cannot do, at the job's section.
    pub fn build(&self, device: &DeviceFacts) -> Result<Box<dyn Workload + Send>, WorkloadError> {
        let inner = self.config.build(device, self.seed).map_err(|mut error| {
            let key = error.key.take().map(|key| format!("{} - ", fio_name(&key)));
            error.what = format!("{}{}", key.unwrap_or_default(), error.what);
            error.at = Some(Box::new(self.at.clone()));
            error
        })?;
        let end = self.config.duration.map(|duration| duration.0);
        Ok(shaped(inner, self.shape, self.config.depth, end, self.config.requests))
    }

    /// A part of the stream, which does `config` of it with a seed of its own.
    #[must_use]
    pub fn part(&self, config: Config, seed: u64) -> FioStream {
        FioStream { config, seed, ..self.clone() }
    }
}

/// The option that became the key of a configuration.
fn fio_name(key: &str) -> &str {
    match key {
        "address.length" | "address.length_percent" => "size",
        "address.start" => "offset",
        "alignment" => "blockalign",
        "depth" => "iodepth",
        "requests" => "number_ios",
        "duration" => "runtime",
        "block_size" => "bs",
        _ if key.starts_with("block_sizes") => "bssplit",
        _ if key.starts_with("arrivals") => "rate",
        other => other,
    }
}

impl FioJob {
    fn line(&self) -> TraceLine {
        let (file, number) = self.at.clone();
        TraceLine { file, number, text: format!("[{}]", self.name) }
    }

    fn cores_of(&self, copy: u32) -> Vec<usize> {
        match self.split_cores && !self.cores.is_empty() {
            true => vec![self.cores[copy as usize % self.cores.len()]],
            false => self.cores.clone(),
        }
    }

    /// What copy number `copy` asks of a target of `capacity_bytes`.
    fn config(&self, copy: u32, capacity_bytes: u64) -> Config {
        let load = &self.load;
        let resolve = |size: Size| match size {
            Size::Bytes(bytes) => bytes,
            Size::Percent(share) => (capacity_bytes as f64 * share / 100.0) as u64,
        };
        let step = load.sizes.iter().map(|s| s.size.0).max().unwrap_or(4096).max(1);
        // Shares are cut to whole blocks, as fio does.
        let whole = |size: Size| match size {
            Size::Bytes(bytes) => bytes,
            Size::Percent(_) => resolve(size) / step * step,
        };
        let increment = load.increment.map_or(0, whole).saturating_mul(u64::from(copy));
        let start = load.start.map_or(0, whole).saturating_add(increment);
        let rest = capacity_bytes.saturating_sub(start) / step * step;
        let length = load.length.map_or(rest, whole);
        let all = load.io_bytes.map_or(length, resolve) as f64 / load.bytes_mean().max(1.0);
        // With one size nothing partial is issued.
        let all = if load.sizes.len() == 1 { all.floor() } else { all.round() };
        let all = (all as u64).max(1).saturating_mul(load.loops);
        let requests = match load.time_based {
            true => None,
            false => Some(load.requests.map_or(all, |most| most.min(all))),
        };
        let mut config = Config {
            depth: Some(load.depth),
            arrivals: load.arrivals.clone(),
            read_percent: Some(load.mix[0]),
            write_percent: Some(load.mix[1]),
            trim_percent: Some(load.mix[2]),
            alignment: load.alignment.map(Bytes),
            requests,
            // fio adds the ramp to the time of a job.
            duration: load.runtime.map(|runtime| Span(runtime.saturating_add(self.ramp))),
            ..Config::default()
        };
        match load.sizes.as_slice() {
            [one] => config.block_size = Some(one.size),
            several => config.block_sizes = several.to_vec(),
        }
        config.address.start = Bytes(start);
        config.address.length = Some(Bytes(length));
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
}
