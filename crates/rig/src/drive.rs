//! The loop.

mod end;

use std::sync::Arc;
use std::time::{Duration, Instant};

use cpu_time::ThreadTime;
use ssdyno_block::{Completion, Op, Request, Status, SubmitError, Time, Token};
use ssdyno_device::{Device, DeviceReport};
use ssdyno_energy::DeviceMeter;
use ssdyno_engine::events::EventReader;
use ssdyno_figures::{KeepGoing, LiveSnapshot, RunLimits, RunProgress};
use ssdyno_record::{Hopeless, Precise, Recorder};
use ssdyno_workload::{Finished, Workload, WorkloadStep};

use crate::course::{Course, Point};
use crate::explain::Explain;
use crate::streams::Streams;
pub use end::DriveEnd;

/// Device events are shown to their readers in batches of about this many: they stay in the
/// fastest cache between writer and readers.
const EVENT_BATCH: usize = 512;

/// Turns of the loop after which progress is reported, and memory looked after: some milliseconds.
const PROGRESS_EVERY: u32 = 1 << 13;

/// Where a request is much work for the simulator, so many turns take minutes: after this time progress is
/// reported in any case.
const REPORT_WITHIN: Duration = Duration::from_millis(20);

/// Turns of the loop between two looks at the clock for that.
const CLOCK_EVERY: u32 = 1 << 6;

/// Requests issued at once between two looks at the clock.
const CLOCK_EVERY_ISSUED: u64 = 4;

/// CPU time that a run that was told to stop spends on what is in flight. Other than where cleaning
/// thrashes, that takes a millisecond.
const DRAIN_WITHIN: Duration = Duration::from_millis(500);

/// What is driven.
pub struct Drive<'a> {
    /// The target.
    pub device: &'a mut dyn Device,
    /// What is asked of it.
    pub workload: &'a mut dyn Workload,
    /// Who hears of every request.
    pub recorder: &'a mut Recorder,
    /// Who turns device events into joules; it starts anew where the recorder's ramp-up ends.
    pub meter: &'a mut DeviceMeter,
    /// Who else hears of device events.
    pub readers: &'a mut [&'a mut dyn EventReader],
    /// Who hears of the requests of each stream, where the workload has several.
    pub streams: Option<&'a mut Streams>,
    /// Who hears what each request spent its time on.
    pub explain: Option<&'a mut Explain>,
    /// Where to stop.
    pub limits: RunLimits,
    /// When it begins on the device's clock: not before it has settled from what it did before.
    pub start: Time,
}

/// Runs until the workload is done or a limit is reached, and all requests complete.
///
/// `progress` is called every few milliseconds and may stop the run.
pub fn drive(
    mut drive: Drive<'_>,
    progress: &mut dyn FnMut(&RunProgress) -> KeepGoing,
) -> DriveEnd {
    let started = Instant::now();
    let begins_later = drive.recorder.begins_later();
    let mut state =
        State { now: drive.start, begins_later, reported: Some(started), ..State::default() };
    // Limits count from the start.
    // A session reuses the clock of the device: its loads follow one another. A limit from time
    // zero would end the second load before its first request.
    drive.limits.duration = drive.limits.duration.map(|length| drive.start.saturating_add(length));
    let mut turns = 0u32;
    let mut batch = Vec::with_capacity(64);
    // Due: the workload must be asked.
    let mut due = true;
    // Until recording starts: after so many completions, or at a time that is known.
    let mut ramping_up = drive.recorder.window_start() != Some(drive.start);
    let mut start = drive.recorder.window_start().filter(|_| ramping_up);
    let mut watch = Watch::new(&drive.limits);
    // Twice the size of the buffer: the flash drains it while it fills for the first time, so it is
    // full only after more bytes than its size were written.
    let filling_bytes = 2 * DeviceReport::of(drive.device).write_buffer_bytes();
    let mut course = Course::new(filling_bytes);
    if !ramping_up {
        course.note(state.point(&drive));
    }
    // Counters of the device start with its preconditioning. The difference to these first values is
    // the work of the run alone.
    state.note_counts(&drive);
    let mut draining = None;
    loop {
        if due {
            state.issue(&mut drive, progress);
            state.note_waiting(&drive);
            due = false;
        }
        let wake = state.wake_or(start);
        // One call advances through all events until a completion. A call per event would return to
        // this loop several times for each request of an SSD.
        let Some(next) = drive.device.run_until_completion(wake, &mut batch) else { break };
        state.now = next;
        for completion in &batch {
            state.complete(&mut drive, completion);
            due = true;
        }
        batch.clear();
        // The device may stop at the wake-up time without a completion. An open loop then has an
        // arrival that is due, although nothing has completed.
        due |= wake.is_some_and(|wake| wake <= next);
        let full = drive.device.events().len() >= EVENT_BATCH;
        if full || ramping_up && due {
            state.show_events(&mut drive);
            if let (true, Some(at)) = (ramping_up, drive.recorder.window_start())
                && at <= next
            {
                (ramping_up, start) = (false, None);
                state.begin_window(&mut drive, at);
                course.note(state.point(&drive));
            }
        }
        if let Some(watch) = &mut watch
            && !state.done
            // Writes into an empty buffer all take the same short time. Precision would be reached
            // at once, for a figure that is not the figure of the device.
            && (state.written_bytes == 0 || state.written_bytes >= filling_bytes)
            && watch.turn(drive.recorder)
        {
            state.stop();
        }
        if !ramping_up {
            course.turn(|| state.point(&drive));
        }
        turns += 1;
        if turns.is_multiple_of(PROGRESS_EVERY) {
            state.look_after_memory(drive.recorder);
            state.report(drive.recorder, progress);
        } else if full || turns.is_multiple_of(CLOCK_EVERY) {
            state.report_in_time(drive.recorder, progress);
        }
        // What is in flight then stays unanswered, as where a device hangs.
        if state.stopped && draining.get_or_insert_with(ThreadTime::now).elapsed() > DRAIN_WITHIN {
            break;
        }
    }
    state.show_events(&mut drive);
    // Requests that never complete are recorded with their waiting time. Without them, a device
    // that hangs would have better percentiles than one that is slow.
    state.give_up(&mut drive);
    state.reports[1] = DeviceReport::of(drive.device);
    state.end(watch, started.elapsed(), course)
}

/// Who ends a run by its figures.
struct Watch {
    precise: Option<Precise>,
    hopeless: Option<Hopeless>,
}

impl Watch {
    /// `None` where no figure ends the run.
    fn new(limits: &RunLimits) -> Option<Watch> {
        let (precise, hopeless) = (limits.until.map(Precise::new), Hopeless::new(&limits.bounds));
        (precise.is_some() || hopeless.is_some()).then_some(Watch { precise, hopeless })
    }

    /// Looks at the figures where it is time to; true if they end the run.
    fn turn(&mut self, recorder: &Recorder) -> bool {
        let completed = recorder.completed();
        let precise = self.precise.as_mut().filter(|precise| precise.due(completed));
        let hopeless = self.hopeless.as_mut().filter(|hopeless| hopeless.due(completed));
        if precise.is_none() && hopeless.is_none() {
            return false;
        }
        // Both judges use one evaluation of the data. It goes over the series, so it is computed
        // only when one of them is due.
        let evidence = recorder.evidence();
        let is_precise = precise.is_some_and(|precise| precise.look(completed, &evidence));
        is_precise || hopeless.is_some_and(|hopeless| hopeless.look(completed, &evidence))
    }
}

// The request is kept outside of the target, because a target returns only the token. A copy in
// each target would be a second source for the same facts.
/// A request on its way.
#[derive(Clone, Copy)]
struct Sent {
    request: Request,
    intended: Time,
    /// When the target took it.
    submitted: Time,
    stream: u32,
}

#[derive(Default)]
struct State {
    now: Time,
    /// When the workload wants to be asked again.
    wake: Option<Time>,
    done: bool,
    stopped: bool,
    out_of_memory: bool,
    issued: u64,
    written_bytes: u64,
    /// What the device said when recording began, and when the run was over.
    reports: [DeviceReport; 2],
    /// Bytes in write buffers when no more requests were to come.
    waiting_bytes: Option<u64>,
    last_completion: Time,
    refused: Option<(Request, SubmitError)>,
    failed: u64,
    /// When no more requests were to come.
    done_at: Option<Time>,
    gone: Option<Time>,
    /// The workload says when recording begins.
    begins_later: bool,
    /// The next report of progress is to have a glance.
    look: bool,
    /// When progress was reported last.
    reported: Option<Instant>,
    /// A request that found the target full.
    held: Option<Sent>,
    in_flight: Vec<Sent>,
    free: Vec<u32>,
}

impl State {
    /// When the device is to return without a completion. The beginning of the window, at `start`, is one: without it, the device
    /// could pass this time inside one call, and energy of the ramp-up would be counted.
    fn wake_or(&self, start: Option<Time>) -> Option<Time> {
        self.wake.into_iter().chain(start).min()
    }

    fn show_events(&self, drive: &mut Drive<'_>) {
        drive.meter.advance(self.now);
        let events = drive.device.events();
        events.show_to(drive.meter);
        for reader in drive.readers.iter_mut() {
            events.show_to(*reader);
        }
        events.clear();
    }

    /// Recording starts at `at`.
    fn begin_window(&mut self, drive: &mut Drive<'_>, at: Time) {
        // Meter, device and victims restart at the same time as the recording. Energy per request
        // would otherwise divide the energy of the whole run by the requests of the window.
        drive.meter.reset(at);
        drive.device.begin_window(at);
        self.note_counts(drive);
    }

    /// Keeps what the device has counted until recording begins.
    fn note_counts(&mut self, drive: &Drive<'_>) {
        self.reports[0] = DeviceReport::of(drive.device);
    }

    /// Keeps what waits in write buffers when the last request is issued. Later the device writes it back, and nobody waits
    /// for that.
    fn note_waiting(&mut self, drive: &Drive<'_>) {
        if self.done && self.waiting_bytes.is_none() {
            self.waiting_bytes = Some(DeviceReport::of(drive.device).buffered_bytes());
        }
    }

    fn stop(&mut self) {
        self.done = true;
        self.done_at = self.done_at.or(Some(self.now));
        self.wake = None;
        // A held request was never accepted, so it needs no completion. It does not count as
        // issued, and the conservation of requests still holds.
        self.held = None;
    }

    fn over(&self, limits: &RunLimits) -> bool {
        limits.requests.is_some_and(|most| self.issued >= most)
            || limits.duration.is_some_and(|end| self.now >= end)
    }

    /// Issues all that the workload wants now.
    fn issue(
        &mut self,
        drive: &mut Drive<'_>,
        progress: &mut dyn FnMut(&RunProgress) -> KeepGoing,
    ) {
        self.wake = None;
        // The held request goes first. The workload has already counted it, and a newer one must
        // not overtake it in the order of a trace.
        if let Some(held) = self.held.take()
            && !self.submit(drive, held)
        {
            return;
        }
        let mut at_once = 0u64;
        while !self.done {
            if self.over(&drive.limits) {
                return self.stop();
            }
            at_once += 1;
            if at_once.is_multiple_of(CLOCK_EVERY_ISSUED) {
                self.report_in_time(drive.recorder, progress);
            }
            match drive.workload.next(self.now) {
                WorkloadStep::Issue { request, intended } => {
                    let upcoming = drive.workload.upcoming();
                    if !upcoming.is_empty() {
                        // A hint about the next addresses lets the simulator load their table
                        // entries into the processor cache early. It changes no result, only the
                        // speed of the simulation.
                        drive.device.expect(upcoming);
                    }
                    let stream = drive.workload.stream();
                    let submitted = self.now;
                    if !self.submit(drive, Sent { request, intended, submitted, stream }) {
                        return;
                    }
                }
                WorkloadStep::NotBefore(at) => {
                    // A limit of time also ends the waiting.
                    let at = drive.limits.duration.map_or(at, |end| end.min(at));
                    self.wake = Some(at.max(self.now));
                    return;
                }
                WorkloadStep::Wait => return,
                WorkloadStep::Done => self.stop(),
            }
        }
    }

    /// False if nothing more can be issued now.
    #[inline(always)]
    fn submit(&mut self, drive: &mut Drive<'_>, sent: Sent) -> bool {
        let sent = Sent { submitted: self.now, ..sent };
        let Sent { request, intended, stream, .. } = sent;
        // Tokens are reused, so the table stays as small as the depth. The last one freed is taken
        // first, because its entry is still in the cache of the processor.
        let token = self.free.pop().unwrap_or(self.in_flight.len() as u32);
        match drive.device.submit(self.now, request, Token(token)) {
            Ok(()) => {
                if self.begins_later {
                    self.begin_recording(drive, stream);
                }
                // The arrival is recorded only after the device has accepted the request. A refused
                // request would otherwise count as outstanding for ever in Little's law.
                drive.recorder.arrived(intended);
                if let Some(streams) = drive.streams.as_deref_mut() {
                    streams.arrived(stream, intended, drive.workload.recorded_from(stream));
                }
                match self.in_flight.get_mut(token as usize) {
                    Some(place) => *place = sent,
                    None => self.in_flight.push(sent),
                }
                self.issued += 1;
                if request.op == Op::Write {
                    self.written_bytes += u64::from(request.length_bytes);
                }
                true
            }
            Err(error) => {
                if (token as usize) < self.in_flight.len() {
                    self.free.push(token);
                }
                if error == SubmitError::Full {
                    self.held = Some(sent);
                    return false;
                }
                // Any error but a full queue is a defect of the set-up, such as an address beyond
                // the end. The run ends, and the results until then are marked partial.
                self.refused = Some((request, error));
                self.stop();
                false
            }
        }
    }

    /// Begins to record where the first stream has found its depth.
    #[cold]
    fn begin_recording(&mut self, drive: &mut Drive<'_>, stream: u32) {
        let from = drive.workload.recorded_from(stream);
        if from < Time::MAX {
            drive.recorder.begin_recording_at(from);
            self.begins_later = false;
        }
    }

    #[inline]
    fn complete(&mut self, drive: &mut Drive<'_>, completion: &Completion) {
        let token = completion.token.0;
        let Sent { request, intended, submitted, stream } = self.in_flight[token as usize];
        self.free.push(token);
        let counts = match drive.streams.as_deref_mut() {
            Some(streams) => streams.record(stream, &request, intended, completion),
            None => true,
        };
        if counts {
            // Before the recording: the request that ends the ramp-up is the last one outside the window, which begins
            // at its completion.
            let window = drive.recorder.window_start();
            drive.recorder.record_of(stream, &request, [intended, submitted], completion);
            self.explain(drive, window, (&request, [intended, submitted]), completion);
        } else {
            drive.recorder.leave_out(&request, intended, completion.completed);
        }
        // Latency counts from the intended start. Counting from the submission would leave out the
        // wait for a full device: the coordinated omission of closed measurements.
        let latency = completion.completed.saturating_sub(intended);
        let is_ok = completion.status == Status::Ok;
        let finished = Finished { latency, stream, op: request.op, is_ok };
        drive.workload.completed(finished, self.now);
        self.last_completion = completion.completed;
        if !is_ok {
            self.failed(drive, completion.completed);
        }
    }

    /// Hears what the device says of a request that was just recorded.
    #[inline]
    fn explain(
        &self,
        drive: &mut Drive<'_>,
        window: Option<Time>,
        (request, [intended, submitted]): (&Request, [Time; 2]),
        completion: &Completion,
    ) {
        let Some(explain) = &mut drive.explain else { return };
        let in_window = window.is_some_and(|at| at <= completion.completed);
        // The parts must sum to the mean latency, which contains only the successful requests of
        // the window. A failed request ends early and would make the parts too short.
        let counts = in_window && completion.status == Status::Ok;
        let latency = completion.completed.saturating_sub(intended);
        let waited = submitted.saturating_sub(intended);
        explain.completed(drive.device, (request, latency, waited), counts);
    }

    /// Nothing happens any more: what is still outstanding never completes.
    fn give_up(&self, drive: &mut Drive<'_>) {
        let mut outstanding = vec![true; self.in_flight.len()];
        self.free.iter().for_each(|place| outstanding[*place as usize] = false);
        let end = self.now.max(self.last_completion);
        for (sent, _) in self.in_flight.iter().zip(outstanding).filter(|(_, is)| *is) {
            let Sent { request, intended, submitted, stream } = *sent;
            let times = [intended, submitted];
            if let Some(streams) = drive.streams.as_deref_mut() {
                streams.never_answered(stream, &request, times, end);
            }
            drive.recorder.never_answered(stream, &request, times, end);
        }
    }

    /// A request failed; perhaps because the device is gone, and the others would too.
    #[cold]
    fn failed(&mut self, drive: &mut Drive<'_>, at: Time) {
        self.failed += 1;
        // A removed device fails every request at once. A closed loop would otherwise go on and
        // fill the recording with errors that take no time.
        if self.gone.is_none() && drive.device.is_gone() {
            self.gone = Some(at);
            self.stop();
        }
    }

    /// Ends the run where there is no memory for more rows. Looked at after a fixed number of turns, so
    /// that the moment does not depend on the clock.
    fn look_after_memory(&mut self, recorder: &Recorder) {
        if recorder.must_end() {
            // A run that has just ended has lost nothing. Only a run that still wanted to issue is
            // reported as cut off by the memory.
            self.out_of_memory |= !self.done;
            self.stop();
        }
    }

    /// Reports, if it is time.
    fn report_in_time(
        &mut self,
        recorder: &Recorder,
        progress: &mut dyn FnMut(&RunProgress) -> KeepGoing,
    ) {
        // Wall-clock time decides only about reports, never about the simulated run. Equal seeds
        // therefore give equal results on any machine.
        if self.reported.is_none_or(|reported| reported.elapsed() >= REPORT_WITHIN) {
            self.report(recorder, progress);
        }
    }

    fn report(&mut self, recorder: &Recorder, progress: &mut dyn FnMut(&RunProgress) -> KeepGoing) {
        let flow = progress(&self.progress(recorder));
        self.reported = Some(Instant::now());
        // The snapshot is made for the next report and only on request. Percentiles of a live run
        // cost a copy of the histograms.
        self.look = flow == KeepGoing::LiveSnapshot;
        if flow == KeepGoing::Stop {
            self.stopped = true;
            self.stop();
        }
    }

    /// The counts that figures have their intervals from.
    fn point(&self, drive: &Drive<'_>) -> Point {
        Point {
            completed: drive.recorder.recorded(),
            written_bytes: self.written_bytes,
            programmed: drive.meter.pages_programmed(),
            host_cpu: drive.device.host_cpu(),
        }
    }

    fn progress(&self, recorder: &Recorder) -> RunProgress {
        let recorded = recorder.recorded().max(1);
        let (now, completed) = (self.now, recorder.completed());
        let glance = || Arc::new(LiveSnapshot { now, completed, ..recorder.glance() });
        RunProgress {
            preparing: None,
            now,
            issued: self.issued,
            completed,
            latency_ns_mean: recorder.latency_ps_sum() as f64 / recorded as f64 / 1e3,
            glance: self.look.then(glance),
        }
    }
}
