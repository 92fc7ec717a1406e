//! One run, from files to figures.

use ssdyno_block::Time;
use ssdyno_device::DeviceReport;
use ssdyno_driver_nvme::NvmeError;
use ssdyno_engine::events::EventReader;
use ssdyno_figures::{
    BrokenBound, Keep, KeepGoing, RunLimits, RunProgress, RunResult, RunStart, Supervisor,
};
use ssdyno_pci::FunctionError;
use ssdyno_record::{Recorder, Recording, RowNames};
use ssdyno_workload::{Source, Workload};

use crate::attach::Attach;
use crate::drive::{Drive, DriveEnd, drive};
use crate::error::RunError;
use crate::explain::{self, Explain};
use crate::machine;
use crate::ports::PathFigures;
use crate::report;
use crate::sim_target::SimTarget;
use crate::source::{Load, load};
use crate::streams::Streams;

/// A run in virtual time.
#[derive(Clone, Debug)]
pub struct SimRun {
    /// Name of the target in results, such as `sim:nvme-tlc`.
    pub target: String,
    /// The device, and the path between it and the workload.
    pub device: Attach,
    /// Name of the workload in results.
    pub workload: String,
    /// The workload.
    pub source: Source,
    /// Decides about everything random.
    pub seed: u64,
    /// Where to stop before the workload does.
    pub limits: RunLimits,
    /// The parts of each request to keep.
    pub keep: Keep,
    /// Length of the points of the series; `None`: by the length of the run.
    pub interval: Option<Time>,
    /// Find out what the latency of requests consists of.
    pub why: bool,
}

/// What a run gave.
#[derive(Debug)]
pub struct SimMeasured {
    /// All figures.
    pub result: RunResult,
    /// Rows and distributions.
    pub recording: Recording,
    /// Energy in all its detail.
    pub energy: ssdyno_energy::Breakdown,
    /// The one of [`RunLimits::bounds`] that ended the run.
    pub broken: Option<BrokenBound>,
    /// Why the run ended early, if it did: the result is partial then.
    pub failure: Option<RunError>,
}

impl SimRun {
    /// The end of an open loop with a duration, which lasts that long even if its last request completes earlier: ten requests
    /// in 10 ms would otherwise have the rate of the 9 ms between them. The start for all other runs.
    fn lasted(&self, ended: &DriveEnd) -> Time {
        let (requests, end) = self.limits.with(self.source.bounds());
        let open = match &self.source {
            Source::Generator(config) => !config.is_closed_loop(),
            // A trace may have ended long before.
            Source::Trace { .. } => ended.done_at >= end,
            Source::Jobs { .. } => false,
        };
        let cut = ended.stopped
            || ended.out_of_memory
            || ended.broken.is_some()
            || ended.refused.is_some()
            || ended.gone.is_some()
            || ended.precision.is_some_and(|precision| precision.reached);
        let done = requests.is_some_and(|most| ended.issued >= most);
        end.filter(|_| open && !cut && !done).unwrap_or_default()
    }

    /// Builds the device and the workload, preconditions the device, drives it to the end and works
    /// out the figures. An error before the first request is returned; a later one is in
    /// [`SimMeasured::failure`], with what was measured.
    ///
    /// `progress` is called every few milliseconds, while the device is prepared and while it is
    /// loaded, and may stop the run.
    ///
    /// # Errors
    /// Everything that can be found out beforehand; [`RunError::Unprepared`] where `progress` ended
    /// the preparation.
    pub fn execute(
        &self,
        mut progress: &mut dyn FnMut(&RunProgress) -> KeepGoing,
    ) -> Result<SimMeasured, RunError> {
        self.supervise(None, &mut progress)
    }

    /// As [`execute`](SimRun::execute), where `supervisor` says when it begins, too, and `reader` hears of every
    /// event of the device and of the cores of the host: a [`Timeline`](crate::Timeline), say.
    ///
    /// # Errors
    /// Those of [`execute`](SimRun::execute).
    pub fn supervise(
        &self,
        reader: Option<&mut dyn EventReader>,
        supervisor: &mut dyn Supervisor,
    ) -> Result<SimMeasured, RunError> {
        let told = reader.is_some();
        let mut device = machine::build(&self.device, self.seed, told)?;
        // The meter is built twice. This first one only reports errors of the energy model before
        // the preconditioning, which takes seconds for a large device.
        report::meter(&DeviceReport::of(device.device()))?;
        // The workload is checked before the preconditioning as well: a wrong block size must not
        // cost the user the time of preparing a large device.
        let load = load(&self.source, &machine::facts(device.device()), self.seed)?;
        let watcher =
            &mut |share| supervisor.report(&RunProgress::preparing(share)) != KeepGoing::Stop;
        device.as_device().precondition(watcher)?;
        // A device that needs no preparation never asked.
        let stopped = supervisor.report(&RunProgress::preparing(1.0)) == KeepGoing::Stop;
        // On several hosts, all runs prepare first and start together. A run that starts as soon as
        // it is ready would load the device before the others.
        if stopped || supervisor.ready() == RunStart::Never {
            return Err(RunError::Unprepared);
        }
        let before = DeviceReport::of(device.device());
        let mut meter = report::meter(&before)?;
        let mut recorder = self.recorder(&load);
        let (mut workload, mut streams) = (load.workload, load.streams);
        let mut readers = Vec::from_iter(reader.map(|reader| reader as &mut dyn EventReader));
        readers.iter_mut().for_each(|reader| reader.name_units(&before.names()));
        let host = self.device.host.is_some();
        let mut explain = self.why.then(|| Explain::ask(device.as_device(), host)).flatten();
        let cpu = cpu_time::ThreadTime::now();
        let mut ended = drive(
            Drive {
                device: device.as_device(),
                workload: workload.as_mut(),
                recorder: &mut recorder,
                meter: &mut meter,
                readers: &mut readers,
                streams: streams.as_mut(),
                explain: explain.as_mut(),
                limits: self.limits.clone(),
                start: Time::ZERO,
            },
            &mut |progress| supervisor.report(progress),
        );
        let cpu = cpu.elapsed();
        let start = recorder.window_start();
        ended.last_completion = ended.last_completion.max(self.lasted(&ended));
        let mut recording = recorder.finish(ended.last_completion);
        recording.name_rows(RowNames {
            jobs: streams.as_ref().map(Streams::names).unwrap_or_default(),
            devices: vec![(0, self.target.clone())],
        });
        // The energy ends when the device has settled. Writes in its buffer are programmed after
        // the last completion, and their energy belongs to the requests of the run.
        let end = ended.settled.max(recording.end());
        let by_unit = report::finished(meter, device.device(), (recording.start(), end));
        let energy = &by_unit.whole;
        let failure = failure(&ended, device.as_ref(), workload.as_mut());
        let namespaces = device.namespaces(recording.end());
        let streams = streams.map(|streams| streams.finish(recording.start()));
        let (jobs, overloads) = streams.unwrap_or_default();
        let mut result = report::Parts {
            run: self,
            namespaces,
            target: device.as_ref(),
            before: &before,
            ended: &ended,
            energy,
            by_unit: &by_unit,
            window_known: start.is_some(),
            cpu,
            notes: self.source.notes().into_iter().chain(workload.notes()).collect(),
            jobs,
            overloads,
            failure: failure.as_ref(),
        }
        .result(&mut recording);
        explain::fill(&mut result, self.why, explain.as_ref(), self.device.device.faults());
        result.depth_searches = workload.depth_searches();
        Ok(SimMeasured { result, recording, energy: by_unit.whole, broken: ended.broken, failure })
    }
}

impl SimRun {
    /// A recorder that begins when the ramp-up of `load` has ended.
    fn recorder(&self, load: &Load) -> Recorder {
        let recorder = Recorder::new(self.keep, self.interval).skip_first(load.ramp_up);
        match load.begin {
            None => recorder.begin_later(),
            Some(Time::ZERO) => recorder,
            Some(begin) => recorder.start_recording_at(begin),
        }
    }
}

fn failure(
    ended: &DriveEnd,
    target: &dyn SimTarget,
    workload: &mut dyn Workload,
) -> Option<RunError> {
    // The order is from cause to effect: a refused request also stops the run, and the stop alone
    // would be reported as an interruption by the user.
    if let Some((request, error)) = ended.refused {
        return Some(RunError::Refused { request, error });
    }
    if let Some(error) = workload.error() {
        return Some(RunError::Workload(error));
    }
    if let Some(at) = ended.gone {
        return Some(gone(target, at));
    }
    if ended.out_of_memory {
        return Some(RunError::Memory);
    }
    ended.stopped.then_some(RunError::Interrupted)
}

/// From `at` on requests to `target` found no device.
pub(crate) fn gone(target: &dyn SimTarget, at: Time) -> RunError {
    let mut path = PathFigures::default();
    target.path(at, &mut path);
    // A driver that gives up has its own reason, such as a failed reset. Only a removed function is
    // reported as a device that is gone.
    match path.gone_because {
        None | Some(NvmeError::Function(FunctionError::Gone)) => RunError::Gone { at },
        Some(error) => RunError::GivenUp { at, error },
    }
}
