//! One run, from files to figures.

use std::path::PathBuf;

use ssdyno_block::{ConfigError, Request, SubmitError, Time};
use ssdyno_device::Device;
use ssdyno_device::PrepareError;
use ssdyno_driver_nvme::NvmeError;
use ssdyno_driver_ring::RingError;
use ssdyno_energy::Meter;
use ssdyno_engine::events::EventReader;
use ssdyno_result::{Keep, Recorder, Recording, RunResult};
use ssdyno_workload::{
    Config as WorkloadConfig, DeviceFacts, FioFiles, FioJob, FioStream, TraceOptions, Workload,
    WorkloadError, fio_entries, fio_streams, open_trace, run_together,
};

use crate::attach::Attach;
use crate::drive::{Drive, Ended, Flow, Limits, Progress, drive};
use crate::streams::Streams;
use crate::{machine, report};

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
            Source::Trace { path, .. } => format!("# trace {}\n", path.display()),
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
}

impl Source {
    /// What a reader of the figures must know of the workload.
    pub fn notes(&self) -> Vec<String> {
        let Source::Jobs { jobs, .. } = self else { return Vec::new() };
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
}

/// When the first of `streams` is recorded, from the start of the run.
pub fn first_recorded(streams: &[FioStream]) -> Time {
    let first = streams.iter().map(|stream| stream.group).min();
    let first = streams.iter().filter(|stream| Some(stream.group) == first);
    first.map(|stream| stream.start_delay.saturating_add(stream.ramp)).min().unwrap_or(Time::ZERO)
}

impl Source {
    /// Requests (with ramp-up) and time after which it is done, as far as it says.
    pub fn bounds(&self) -> (Option<u64>, Option<Time>) {
        match self {
            Source::Generator(config) => {
                (config.total_requests(), config.duration.map(|span| span.0))
            }
            Source::Trace { options, .. } => (options.requests, options.duration),
            // Each job has its own.
            Source::Jobs { .. } => (None, None),
        }
    }
}

/// A run in virtual time.
#[derive(Clone, Debug)]
pub struct Run {
    /// Name of the target in results, such as `sim:nvme-tlc`.
    pub target: String,
    /// The device, and what lies between it and the workload.
    pub device: Attach,
    /// Name of the workload in results.
    pub workload: String,
    /// The workload.
    pub source: Source,
    /// Decides about everything random.
    pub seed: u64,
    /// Where to stop before the workload does.
    pub limits: Limits,
    /// What is kept of each request.
    pub keep: Keep,
    /// Length of the points of the series; `None`: by the length of the run.
    pub interval: Option<Time>,
}

/// What a run gave.
#[derive(Debug)]
pub struct Measured {
    /// All figures.
    pub result: RunResult,
    /// Rows and distributions.
    pub recording: Recording,
    /// Energy in all its detail.
    pub energy: ssdyno_energy::Breakdown,
    /// Why the run ended early, if it did: the result is partial then.
    pub failure: Option<RunError>,
}

/// Why a run could not start, or ended early.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The device file is impossible.
    #[error(transparent)]
    Device(#[from] ConfigError),
    /// The workload is impossible, or its trace is damaged.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// The host file is impossible, or cannot be used as asked.
    #[error(transparent)]
    Host(ConfigError),
    /// The NVMe driver could not start its controller.
    #[error("the NVMe driver cannot start: {0}")]
    Nvme(#[from] NvmeError),
    /// The SCSI translation cannot show the namespace.
    #[error("the SCSI stack cannot show the device: {0}")]
    Scsi(#[from] ssdyno_scsi::FactsError),
    /// The ring driver could not start its card.
    #[error("the ring driver cannot start: {0}")]
    Ring(#[from] RingError),
    /// The device refused a request.
    #[error("request {request:?} was refused: {error}")]
    Refused {
        /// The request.
        request: Request,
        /// Why.
        error: SubmitError,
    },
    /// The run was told to stop.
    #[error("interrupted")]
    Interrupted,
    /// The run was told to stop before it began.
    #[error("interrupted while the device was being prepared")]
    Unprepared,
}

impl From<PrepareError> for RunError {
    fn from(error: PrepareError) -> RunError {
        match error {
            PrepareError::Config(error) => RunError::Device(error),
            PrepareError::Interrupted => RunError::Unprepared,
        }
    }
}

impl Run {
    /// Builds the device, drives it to the end and works out the figures. An error before the first
    /// request is returned; a later one is in [`Measured::failure`], with what was measured.
    ///
    /// `progress` is called every few milliseconds, while the device is prepared and while it is
    /// loaded, and may stop the run.
    ///
    /// # Errors
    /// Everything that can be found out beforehand; [`RunError::Unprepared`] where `progress` ended
    /// the preparation.
    pub fn execute(
        &self,
        progress: &mut dyn FnMut(&Progress) -> Flow,
    ) -> Result<Measured, RunError> {
        self.execute_read(None, progress)
    }

    /// As [`execute`](Run::execute), where `reader` hears of every event of the device and of the cores
    /// of the host: a [`Timeline`](crate::Timeline), say.
    ///
    /// # Errors
    /// Those of [`execute`](Run::execute).
    pub fn execute_read(
        &self,
        reader: Option<&mut dyn EventReader>,
        progress: &mut dyn FnMut(&Progress) -> Flow,
    ) -> Result<Measured, RunError> {
        let told = reader.is_some();
        let mut device = machine::build(&self.device, self.seed, told, &mut |share| {
            let preparing = Progress { preparing: Some(share), ..Progress::default() };
            progress(&preparing) != Flow::Stop
        })?;
        let facts = device.facts();
        let mut meter =
            Meter::new(self.device.energy(), &report::energy_facts(&self.device, &facts))?;
        let load = self.load(device.as_device())?;
        let (mut workload, mut streams) = (load.workload, load.streams);
        let mut recorder = Recorder::new(self.keep, self.interval).skip_first(load.ramp_up);
        if load.ramp > Time::ZERO {
            recorder = recorder.start_recording_at(load.ramp);
        }
        let mut readers = Vec::from_iter(reader.map(|reader| reader as &mut dyn EventReader));
        let cpu = cpu_time::ThreadTime::now();
        let ended = drive(
            Drive {
                device: device.as_device(),
                workload: workload.as_mut(),
                recorder: &mut recorder,
                meter: &mut meter,
                readers: &mut readers,
                streams: streams.as_mut(),
                limits: self.limits,
                start: Time::ZERO,
            },
            progress,
        );
        let cpu = cpu.elapsed();
        let start = recorder.window_start();
        let mut recording = recorder.finish(ended.last_completion);
        let energy = meter.finish(ended.settled.max(recording.end()));
        let failure = failure(&ended, workload.as_mut());
        let result = report::Parts {
            run: self,
            target: device.as_ref(),
            facts: &facts,
            ended: &ended,
            energy: &energy,
            window_known: start.is_some(),
            cpu,
            notes: self.source.notes().into_iter().chain(workload.notes()).collect(),
            jobs: streams.map(|streams| streams.finish(recording.start())).unwrap_or_default(),
            failure: failure.as_ref(),
        }
        .result(&mut recording);
        Ok(Measured { result, recording, energy, failure })
    }

    /// Requests to issue (with ramp-up) and time at most, whether the workload says so or the run.
    pub(crate) fn bounds(&self) -> (Option<u64>, Option<Time>) {
        let (requests, duration) = self.source.bounds();
        let least = |a: Option<u64>, b: Option<u64>| a.into_iter().chain(b).min();
        let shortest = duration.into_iter().chain(self.limits.duration).min();
        (least(requests, self.limits.requests), shortest)
    }

    fn load(&self, device: &dyn Device) -> Result<Load, WorkloadError> {
        let facts = DeviceFacts {
            capacity_bytes: device.capacity_bytes(),
            sector_bytes: device.sector_bytes(),
        };
        let plain = |workload, ramp_up| Load { workload, ramp_up, ramp: Time::ZERO, streams: None };
        match &self.source {
            Source::Generator(config) => {
                Ok(plain(config.build(&facts, self.seed)?, config.ramp_up))
            }
            Source::Trace { path, options } => Ok(plain(open_trace(path, options, &facts)?, 0)),
            Source::Jobs { jobs, .. } => {
                let streams = fio_streams(jobs, &FioFiles::one(facts.capacity_bytes), self.seed);
                let entry_of = streams.iter().map(|stream| stream.entry).collect();
                Ok(Load {
                    ramp_up: 0,
                    ramp: first_recorded(&streams),
                    workload: run_together(streams, &facts)?,
                    streams: Some(Streams::new(fio_entries(jobs), entry_of)),
                })
            }
        }
    }
}

/// A workload that is ready to run.
struct Load {
    workload: Box<dyn Workload + Send>,
    /// Completions before recording starts.
    ramp_up: u64,
    /// Time before recording starts.
    ramp: Time,
    /// Where the workload has several.
    streams: Option<Streams>,
}

fn failure(ended: &Ended, workload: &mut dyn Workload) -> Option<RunError> {
    if let Some((request, error)) = ended.refused {
        return Some(RunError::Refused { request, error });
    }
    if let Some(error) = workload.error() {
        return Some(RunError::Workload(error));
    }
    ended.stopped.then_some(RunError::Interrupted)
}
