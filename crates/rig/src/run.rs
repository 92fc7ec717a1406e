//! One run, from files to figures.

use std::path::PathBuf;

use ssdyno_block::{Request, SubmitError, Time};
use ssdyno_device::Device;
use ssdyno_driver_nvme::NvmeError;
use ssdyno_driver_ring::RingError;
use ssdyno_energy::Meter;
use ssdyno_flash::ConfigError;
use ssdyno_result::{Keep, Recorder, Recording, RunResult};
use ssdyno_workload::{
    Config as WorkloadConfig, DeviceFacts, TraceOptions, Workload, WorkloadError, open_trace,
};

use crate::attach::Attach;
use crate::drive::{Drive, Ended, Flow, Limits, Progress, drive};
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
}

impl Source {
    /// Requests (with ramp-up) and time after which it is done, as far as it says.
    pub fn bounds(&self) -> (Option<u64>, Option<Time>) {
        match self {
            Source::Generator(config) => {
                (config.total_requests(), config.duration.map(|span| span.0))
            }
            Source::Trace { options, .. } => (options.requests, options.duration),
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
    Host(#[from] ssdyno_host::ConfigError),
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
}

impl From<ssdyno_energy::ConfigError> for RunError {
    fn from(e: ssdyno_energy::ConfigError) -> RunError {
        RunError::Device(ConfigError { key: e.key, problem: e.problem, help: e.help })
    }
}

impl Run {
    /// Builds the device, drives it to the end and works out the figures. An error before the first
    /// request is returned; a later one is in [`Measured::failure`], with what was measured.
    pub fn execute(
        &self,
        progress: &mut dyn FnMut(&Progress) -> Flow,
    ) -> Result<Measured, RunError> {
        let mut device = machine::build(&self.device, self.seed)?;
        let facts = device.facts();
        let mut meter =
            Meter::new(self.device.energy(), &report::energy_facts(&self.device, &facts))?;
        let (mut workload, ramp_up) = self.workload(device.as_device())?;
        let mut recorder = Recorder::new(self.keep, self.interval).skip_first(ramp_up);
        let cpu = cpu_time::ThreadTime::now();
        let ended = drive(
            Drive {
                device: device.as_device(),
                workload: workload.as_mut(),
                recorder: &mut recorder,
                meter: &mut meter,
                readers: &mut [],
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
            notes: workload.notes(),
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

    fn workload(
        &self,
        device: &dyn Device,
    ) -> Result<(Box<dyn Workload + Send>, u64), WorkloadError> {
        let facts = DeviceFacts {
            capacity_bytes: device.capacity_bytes(),
            sector_bytes: device.sector_bytes(),
        };
        match &self.source {
            Source::Generator(config) => Ok((config.build(&facts, self.seed)?, config.ramp_up)),
            Source::Trace { path, options } => Ok((open_trace(path, options, &facts)?, 0)),
        }
    }
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
