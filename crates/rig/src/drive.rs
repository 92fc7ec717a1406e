//! The loop.

use std::time::Duration;

use ssdyno_block::{Completion, Request, SubmitError, Time, Token};
use ssdyno_device::Device;
use ssdyno_energy::Meter;
use ssdyno_engine::events::EventReader;
use ssdyno_result::{Precise, Precision, Recorder, Until};
use ssdyno_workload::{Step, Workload};

/// Device events are shown to their readers in batches of about this many: they stay in the
/// fastest cache between writer and readers.
const EVENT_BATCH: usize = 512;

/// Turns of the loop between two reports of progress: some milliseconds.
const PROGRESS_EVERY: u32 = 1 << 13;

/// Where a run stops issuing, whatever the workload would do.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Limits {
    /// Requests issued.
    pub requests: Option<u64>,
    /// Time since the start.
    pub duration: Option<Time>,
    /// How well figures are to be known; the run ends when they are.
    pub until: Option<Until>,
}

/// How far a run is.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Progress {
    /// Virtual time.
    pub now: Time,
    /// Requests issued.
    pub issued: u64,
    /// Requests completed.
    pub completed: u64,
    /// Mean latency so far, in ns; 0 before the first completion.
    pub latency_ns_mean: f64,
}

/// Whether to go on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flow {
    /// Go on.
    Continue,
    /// Issue nothing more, wait for what is in flight, and end as a partial run.
    Stop,
}

/// What is driven.
pub struct Drive<'a> {
    /// The target.
    pub device: &'a mut dyn Device,
    /// What is asked of it.
    pub workload: &'a mut dyn Workload,
    /// Who hears of every request.
    pub recorder: &'a mut Recorder,
    /// Who turns device events into joules; it starts anew where the recorder's ramp-up ends.
    pub meter: &'a mut Meter,
    /// Who else hears of device events.
    pub readers: &'a mut [&'a mut dyn EventReader],
    /// Where to stop.
    pub limits: Limits,
    /// When it begins on the device's clock: not before it has settled from what it did before.
    pub start: Time,
}

/// How a run ended.
#[derive(Clone, PartialEq, Debug)]
pub struct Ended {
    /// When the last request completed.
    pub last_completion: Time,
    /// When the device had finished all it began.
    pub settled: Time,
    /// Requests issued.
    pub issued: u64,
    /// True if it was told to stop.
    pub stopped: bool,
    /// What became of [`Limits::until`], if it was set.
    pub precision: Option<Precision>,
    /// Why a request could not be issued, if that ended the run.
    pub refused: Option<(Request, SubmitError)>,
    /// Wall-clock time of the loop.
    pub wall: Duration,
}

/// Runs until the workload is done or a limit is reached, and all requests are answered.
///
/// `progress` is called every few milliseconds and may stop the run.
pub fn drive(mut drive: Drive<'_>, progress: &mut dyn FnMut(&Progress) -> Flow) -> Ended {
    let started = std::time::Instant::now();
    let mut state = State { now: drive.start, ..State::default() };
    // Limits count from the start.
    drive.limits.duration = drive.limits.duration.map(|length| drive.start.saturating_add(length));
    let mut turns = 0u32;
    let mut batch = Vec::with_capacity(64);
    // Due: the workload must be asked.
    let mut due = true;
    let mut precise = drive.limits.until.map(Precise::new);
    let mut ramping_up = drive.recorder.window_start().is_none();
    loop {
        if due {
            state.issue(&mut drive);
            drive.device.expect(drive.workload.upcoming());
            due = false;
        }
        let Some(next) = drive.device.towards_answer(state.wake, &mut batch) else { break };
        state.now = next;
        for completion in batch.drain(..) {
            state.complete(&mut drive, &completion);
            due = true;
        }
        due |= state.wake.is_some_and(|wake| wake <= next);
        if drive.device.events().len() >= EVENT_BATCH || ramping_up && due {
            state.show_events(&mut drive);
            if let (true, Some(start)) = (ramping_up, drive.recorder.window_start()) {
                ramping_up = false;
                drive.meter.reset(start);
            }
        }
        if let Some(precise) = &mut precise
            && precise.due(drive.recorder.completed())
            && !state.done
            && precise.look(drive.recorder.completed(), &drive.recorder.evidence())
        {
            state.stop();
        }
        turns += 1;
        if turns.is_multiple_of(PROGRESS_EVERY)
            && progress(&state.progress(drive.recorder)) == Flow::Stop
        {
            state.stopped = true;
            state.stop();
        }
    }
    state.show_events(&mut drive);
    Ended {
        last_completion: state.last_completion,
        settled: state.now,
        issued: state.issued,
        stopped: state.stopped,
        precision: precise.map(|precise| precise.precision()),
        refused: state.refused,
        wall: started.elapsed(),
    }
}

#[derive(Default)]
struct State {
    now: Time,
    /// When the workload wants to be asked again.
    wake: Option<Time>,
    done: bool,
    stopped: bool,
    issued: u64,
    last_completion: Time,
    refused: Option<(Request, SubmitError)>,
    /// A request that found the target full.
    held: Option<(Request, Time)>,
    in_flight: Vec<(Request, Time)>,
    free: Vec<u32>,
}

impl State {
    fn show_events(&self, drive: &mut Drive<'_>) {
        drive.meter.advance(self.now);
        let events = drive.device.events();
        events.show_to(drive.meter);
        for reader in drive.readers.iter_mut() {
            events.show_to(*reader);
        }
        events.clear();
    }

    fn stop(&mut self) {
        self.done = true;
        self.wake = None;
        self.held = None;
    }

    fn over(&self, limits: &Limits) -> bool {
        limits.requests.is_some_and(|most| self.issued >= most)
            || limits.duration.is_some_and(|end| self.now >= end)
    }

    /// Issues all that the workload wants now.
    fn issue(&mut self, drive: &mut Drive<'_>) {
        self.wake = None;
        if let Some((request, intended)) = self.held.take()
            && !self.submit(drive, request, intended)
        {
            return;
        }
        while !self.done {
            if self.over(&drive.limits) {
                return self.stop();
            }
            match drive.workload.next(self.now) {
                Step::Issue { request, intended } => {
                    if !self.submit(drive, request, intended) {
                        return;
                    }
                }
                Step::NotBefore(at) => {
                    // A limit of time also ends the waiting.
                    let at = drive.limits.duration.map_or(at, |end| end.min(at));
                    self.wake = Some(at.max(self.now));
                    return;
                }
                Step::Wait => return,
                Step::Done => self.stop(),
            }
        }
    }

    /// False if nothing more can be issued now.
    fn submit(&mut self, drive: &mut Drive<'_>, request: Request, intended: Time) -> bool {
        let token = self.free.pop().unwrap_or(self.in_flight.len() as u32);
        match drive.device.submit(self.now, request, Token(token)) {
            Ok(()) => {
                drive.recorder.arrived(intended);
                match self.in_flight.get_mut(token as usize) {
                    Some(place) => *place = (request, intended),
                    None => self.in_flight.push((request, intended)),
                }
                self.issued += 1;
                true
            }
            Err(SubmitError::Full) => {
                if (token as usize) < self.in_flight.len() {
                    self.free.push(token);
                }
                self.held = Some((request, intended));
                false
            }
            Err(error) => {
                self.refused = Some((request, error));
                self.stop();
                false
            }
        }
    }

    #[inline]
    fn complete(&mut self, drive: &mut Drive<'_>, completion: &Completion) {
        let token = completion.token.0;
        let (request, intended) = self.in_flight[token as usize];
        self.free.push(token);
        drive.recorder.record(&request, intended, completion);
        drive.workload.completed(self.now);
        self.last_completion = completion.completed;
    }

    fn progress(&self, recorder: &Recorder) -> Progress {
        let recorded = recorder.recorded().max(1);
        Progress {
            now: self.now,
            issued: self.issued,
            completed: recorder.completed(),
            latency_ns_mean: recorder.latency_ps_sum() as f64 / recorded as f64 / 1e3,
        }
    }
}
