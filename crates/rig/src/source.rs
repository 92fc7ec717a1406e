//! What a run asks of its device.

use std::path::PathBuf;

use ssdyno_block::Time;
use ssdyno_workload::{
    Config as WorkloadConfig, DeviceFacts, FioFiles, FioJob, FioStream, TraceOptions, Workload,
    WorkloadError, fio_entries, fio_streams, open_trace, run_together,
};

use crate::drive::Limits;
use crate::streams::Streams;

/// What is asked of the device.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one a run")]
pub enum Source {
    /// A generator.
    Generator(WorkloadConfig),
    /// A recorded load.
    Trace {
        /// The file.
        path: PathBuf,
        /// How it is read and played.
        options: TraceOptions,
    },
    /// The jobs of a fio job file.
    Jobs {
        /// The file.
        path: PathBuf,
        /// Its sections.
        jobs: Vec<FioJob>,
    },
}

impl Source {
    /// What repeats the workload, as TOML: of a target that is `files`.
    pub fn to_toml(&self, files: &FioFiles, seed: u64) -> String {
        match self {
            Source::Generator(config) => {
                toml::to_string_pretty(&config.resolved()).unwrap_or_default()
            }
            Source::Trace { path, options } => {
                let lines = options.describe().into_iter().map(|line| format!("# {line}\n"));
                format!("# trace {}\n{}", path.display(), lines.collect::<String>())
            }
            Source::Jobs { path, jobs } => {
                let mut text = format!("# fio job file {}\n", path.display());
                for stream in fio_streams(jobs, files, seed) {
                    let job = &jobs[stream.job];
                    let (copy, group, seed) = (stream.copy, stream.group, stream.seed);
                    let parts = stream.ranges.iter().map(|range| {
                        let start = range.start_bytes;
                        format!("{start} to {}", start.saturating_add(range.length_bytes))
                    });
                    let parts = parts.collect::<Vec<_>>().join(", ");
                    text.push_str(&format!(
                        "\n# [{}], copy {copy}, group {group}, seed {seed}, bytes {parts}\n",
                        job.name,
                    ));
                    for (key, value) in &job.options {
                        let value = value.as_ref().map_or(String::new(), |v| format!("={v}"));
                        text.push_str(&format!("# {key}{value}\n"));
                    }
                }
                text
            }
        }
    }

    /// What a reader of the figures must know of the workload.
    pub fn notes(&self) -> Vec<String> {
        let jobs = match self {
            Source::Jobs { jobs, .. } => jobs,
            Source::Generator(config) if !config.buffer.is_default() => {
                return vec![
                    "buffer: a simulated target stores no data; the keys have no effect".to_owned(),
                ];
            }
            _ => return Vec::new(),
        };
        let mut notes: Vec<String> = Vec::new();
        for job in jobs {
            for note in job.notes.iter().map(|note| format!("job file: {note}")) {
                if !notes.contains(&note) {
                    notes.push(note);
                }
            }
        }
        if jobs.iter().any(|job| job.group > 0) {
            notes.push(
                "job file: groups ran one after the other; the figures of all together are over \
                 all of the time, those of each job over its own"
                    .to_owned(),
            );
        }
        notes
    }

    /// Requests (with ramp-up) and time at most, whether it says so itself or `limits` do.
    pub fn bounds(&self, limits: &Limits) -> (Option<u64>, Option<Time>) {
        let (requests, duration) = match self {
            Source::Generator(config) => {
                (config.total_requests(), config.duration.map(|span| span.0))
            }
            Source::Trace { options, .. } => (options.requests, options.duration),
            // Each job has its own.
            Source::Jobs { .. } => (None, None),
        };
        (
            requests.into_iter().chain(limits.requests).min(),
            duration.into_iter().chain(limits.duration).min(),
        )
    }

    /// The workload for a device of `facts`.
    ///
    /// # Errors
    /// It is impossible on that device, or its trace cannot be read.
    pub(crate) fn load(&self, facts: &DeviceFacts, seed: u64) -> Result<Load, WorkloadError> {
        let plain = |workload, ramp_up| Load { workload, ramp_up, ramp: Time::ZERO, streams: None };
        match self {
            Source::Generator(config) => Ok(plain(config.build(facts, seed)?, config.ramp_up)),
            Source::Trace { path, options } => Ok(plain(open_trace(path, options, facts)?, 0)),
            Source::Jobs { jobs, .. } => {
                let streams = fio_streams(jobs, &FioFiles::one(facts.capacity_bytes), seed);
                let entry_of = streams.iter().map(|stream| stream.entry).collect();
                Ok(Load {
                    ramp_up: 0,
                    ramp: first_recorded(&streams),
                    workload: run_together(streams, facts)?,
                    streams: Some(Streams::new(fio_entries(jobs), entry_of)),
                })
            }
        }
    }
}

/// A workload that is ready to run.
pub(crate) struct Load {
    pub(crate) workload: Box<dyn Workload + Send>,
    /// Completions before recording starts.
    pub(crate) ramp_up: u64,
    /// Time before recording starts.
    pub(crate) ramp: Time,
    /// Where the workload has several.
    pub(crate) streams: Option<Streams>,
}

/// When the first of `streams` is recorded, from the start of the run.
pub fn first_recorded(streams: &[FioStream]) -> Time {
    let first = streams.iter().map(|stream| stream.group).min();
    let first = streams.iter().filter(|stream| Some(stream.group) == first);
    first.map(|stream| stream.start_delay.saturating_add(stream.ramp)).min().unwrap_or(Time::ZERO)
}
