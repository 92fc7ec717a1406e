//! One device under several loads, one after the other.

use ssdyno_block::{Op, Time};
use ssdyno_device::DeviceReport;
use ssdyno_energy::DeviceMeter;
use ssdyno_figures::{Keep, KeepGoing, RunLimits, RunProgress, RunResult};
use ssdyno_record::{Recorder, Recording, RequestLoop};
use ssdyno_workload::{TargetFacts, WorkloadConfig, delayed};

use crate::attach::Attach;
use crate::drive::{Drive, drive};
use crate::error::RunError;
use crate::machine;
use crate::medium::{self, Written};
use crate::report;
use crate::run;
use crate::sim_target::SimTarget;

/// Length of the first bucket of the series of a load: less than any request takes.
const FIRST_INTERVAL: Time = Time::from_us(1);

/// A device that keeps its state from load to load: what was written stays written, what is worn
/// stays worn. Each load begins when the device has settled after the previous load.
pub struct Session {
    target: Box<dyn SimTarget>,
    meter: DeviceMeter,
    now: Time,
    /// See [`Attach::reachable_share`].
    reachable_share: f64,
    /// The device is in the state that its file says.
    preconditioned: bool,
}

/// The result of one load of a [`Session`].
#[derive(Debug)]
pub struct LoadResult {
    /// The figures that follow from requests: no energy, no flash operations.
    pub result: RunResult,
    /// Distributions, and rows where they were kept.
    pub recording: Recording,
    /// Told to stop.
    pub stopped: bool,
}

impl Session {
    /// Builds the device; the first [`load`](Session::load) preconditions it.
    ///
    /// # Errors
    /// It is impossible.
    pub fn new(attach: &Attach, seed: u64) -> Result<Session, RunError> {
        let target = machine::build(attach, seed, false)?;
        let said = DeviceReport::of(target.device());
        let (meter, reachable_share) = (report::meter(&said)?, attach.reachable_share(&said));
        Ok(Session { target, meter, now: Time::ZERO, reachable_share, preconditioned: false })
    }

    /// Size and sector of the device.
    pub fn facts(&self) -> TargetFacts {
        machine::facts(self.target.device())
    }

    /// Whether the device, or one that it consists of, has flash.
    pub fn has_flash(&self) -> bool {
        DeviceReport::of(self.target.device()).units().iter().any(|unit| unit.flash.is_some())
    }

    /// Bytes that the write buffers of the device hold together; 0 without one.
    pub fn write_buffer_bytes(&self) -> u64 {
        DeviceReport::of(self.target.device()).write_buffer_bytes()
    }

    /// Loads the device until the workload is done or a limit, counted from here, is reached.
    ///
    /// # Errors
    /// The workload is impossible, or the device refused a request; [`RunError::Unprepared`] where
    /// `progress` ended the preparation, after which the session can only be thrown away.
    pub fn load(
        &mut self,
        workload: &WorkloadConfig,
        seed: u64,
        limits: RunLimits,
        progress: &mut dyn FnMut(&RunProgress) -> KeepGoing,
    ) -> Result<LoadResult, RunError> {
        let built = workload.build(&self.facts(), seed)?;
        // The preparation is part of the first load, because only a load has a callback for its
        // progress. It happens once, so later loads find the state that the earlier ones left.
        if !self.preconditioned {
            let watcher = &mut |share| progress(&RunProgress::preparing(share)) != KeepGoing::Stop;
            self.target.as_device().precondition(watcher)?;
            self.preconditioned = true;
        }
        // The moments of an open loop count from the start of the load.
        let mut generator = match &workload.arrivals {
            None => built,
            Some(_) => delayed(built, self.now),
        };
        // A slice of a profile has a few dozen requests, and its first ones do not count. Buckets that are longer than a request
        // would hide when the others began.
        let recorder = Recorder::new(Keep::Summary, None).with_first_interval(FIRST_INTERVAL);
        let mut recorder = match workload.ramp_up {
            0 => recorder.start_recording_at(self.now),
            first => recorder.skip_first(first),
        };
        // The meter restarts at the time of the device, whose clock is not set back between loads.
        // The device may have events in its queue, and an event in the past is an error.
        self.meter.reset(self.now);
        let before = DeviceReport::of(self.target.device());
        let ended = drive(
            Drive {
                device: self.target.as_device(),
                workload: generator.as_mut(),
                recorder: &mut recorder,
                meter: &mut self.meter,
                readers: &mut [],
                streams: None,
                explain: None,
                limits,
                start: self.now,
            },
            progress,
        );
        // The next load begins after all work of this one. Otherwise its first requests would wait
        // behind garbage collection of the previous round.
        self.now = ended.settled.max(ended.last_completion);
        if let Some((request, error)) = ended.refused {
            return Err(RunError::Refused { request, error });
        }
        if let Some(at) = ended.gone {
            return Err(run::gone(self.target.as_ref(), at));
        }
        let mut recording = recorder.finish(ended.last_completion);
        let mut result = RunResult { partial: ended.stopped, ..RunResult::default() };
        let is_closed = workload.is_closed_loop();
        recording.set_request_loop(RequestLoop::new(is_closed, workload.outstanding_limit()));
        recording.fill(&mut result);
        // A device that settles between loads has an empty buffer and free blocks again. A short load measures those.
        let after = DeviceReport::of(self.target.device());
        let written = Written {
            all_bytes: ended.written_bytes,
            recorded_bytes: recording.bytes(Op::Write),
            programmed_bytes: medium::programmed_bytes(&before, &after) as f64,
            buffered_bytes: ended.buffered_bytes,
            waiting_bytes: ended.waiting_bytes,
            flushes: recording.count(Op::Flush),
            trims: recording.count(Op::Trim),
        };
        let share = self.reachable_share;
        result.warnings.extend(medium::warnings(&before, &after, written, share));
        let seconds = recording.window().as_s_f64();
        result.warnings.extend(medium::credits(&ended.window, &after, seconds, false));
        Ok(LoadResult { result, recording, stopped: ended.stopped })
    }
}
