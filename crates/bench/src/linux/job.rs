//! The loop of one job: ask the workload, submit, wait, reap, record.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ssdyno_block::{Op, Request, Status, Time};
use ssdyno_figures::probe::Moved;
use ssdyno_record::{Sent, Tape};
use ssdyno_workload::{Finished, Workload, WorkloadStep};

use crate::clock::{Clock, Margin};
use crate::delays::Delays;
use crate::engine::{Engine, Outcome};
use crate::faults::Faults;
use crate::method::SubmitStrategy;
use crate::pulse::{Pulse, Shared};
use crate::ramp::Ramp;

/// How long a job waits for a moment, or for the rest of a batch, before it looks up.
const TICK: Duration = Duration::from_millis(50);

/// A spinning job sleeps after this time: the wake-up is then a small part. And it looks so often before it looks at
/// the clock.
const SPIN_NS: u64 = 1_000_000;
const LOOKS_BY_CLOCK: u32 = 16;

/// One job.
pub(crate) struct Job {
    pub(crate) workload: Box<dyn Workload + Send>,
    /// Most requests outstanding.
    pub(crate) slots: u32,
    /// How requests go to the target and come back.
    pub(crate) strategy: SubmitStrategy,
    /// Requests to issue at most.
    pub(crate) requests_max: u64,
    /// Nothing is issued at this time or later.
    pub(crate) end_ns: u64,
    /// Whether the target may be written to.
    pub(crate) writable: bool,
    /// Where a time ends the ramp-up: the start of the recorded window of the run, which other
    /// jobs may have begun.
    pub(crate) origin_ns: Option<u64>,
    pub(crate) clock: Clock,
    pub(crate) shared: Shared,
}

impl Job {
    /// From when it is recorded, where a time decides about it; `None` while that is not known, as its depth is
    /// being searched for.
    fn recorded_from_ns(&self) -> Option<u64> {
        let found = Some(self.workload.recorded_from(0)).filter(|from| *from < Time::MAX)?;
        self.shared.ramp.start_ns().map(|start_ns| start_ns.max(found.as_ns()))
    }

    /// A job by itself, without limits, that only reads: it has no supervisor, and everything is recorded on `tape`
    /// from the start.
    pub(crate) fn alone(
        workload: Box<dyn Workload + Send>,
        slots: u32,
        strategy: SubmitStrategy,
        tape: Arc<Mutex<Option<Tape>>>,
    ) -> Job {
        Job {
            workload,
            slots,
            strategy,
            requests_max: u64::MAX,
            end_ns: u64::MAX,
            writable: false,
            origin_ns: None,
            clock: Clock::start(),
            shared: Shared {
                stop: Arc::new(AtomicBool::new(false)),
                ramp: Arc::new(Ramp::new(0)),
                pulse: Arc::new(Pulse::default()),
                tape,
            },
        }
    }
}

/// How a job ended.
#[derive(Debug)]
pub(crate) struct Ended {
    /// The time when the last request completed, or when it was known that there is none.
    pub(crate) end_ns: u64,
    pub(crate) issued: u64,
    pub(crate) faults: Faults,
    pub(crate) delays: Delays,
    /// The bytes moved without being recorded: the ramp-up.
    pub(crate) unrecorded: Moved,
    pub(crate) failure: Option<JobFailure>,
}

/// The reason why a job ended early.
#[derive(Debug)]
pub(crate) enum JobFailure {
    /// The target went away.
    Gone { request: Request, count: u64, source: io::Error },
    /// The workload wants to write, which is not permitted.
    ReadOnly(Op),
    /// The engine failed.
    Engine(io::Error),
    /// There is no memory for more rows.
    Memory,
}

/// Runs until the workload is done, a limit is reached or somebody says stop, and everything
/// issued has completed.
pub(crate) fn drive<E: Engine>(job: &mut Job, engine: &mut E) -> Ended {
    let mut state = State::new(job);
    let tape = Arc::clone(&job.shared.tape);
    if let Some(tape) = tape.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
        tape.make_places(job.slots);
    }
    loop {
        {
            let mut tape = tape.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(tape) = tape.as_mut() else { return state.abandoned(engine) };
            // The clock was read since the last requests, also where there are more for this call.
            state.begin_window(job, tape);
            if !state.more {
                state.reap(job, engine, tape);
                if tape.must_end() && !state.done {
                    state.fail(JobFailure::Memory);
                }
            }
            state.issue(job, engine, tape);
            // The supervisor sees the outstanding requests before this job waits for them.
            job.shared.pulse.issued.store(state.issued, Ordering::Relaxed);
            if job.shared.pulse.asked.load(Ordering::Relaxed) {
                job.shared.pulse.tell(tape);
            }
        }
        // Here the supervisor can take the tape away: a system may carry out the requests within the call, and then
        // blocks for as long as the target does.
        let passed = if state.more {
            let handed_over = engine.turn(0, None);
            // The target has not received the next requests yet: the call is not part of their
            // latencies.
            state.now_ns = job.clock.now_ns();
            handed_over
        } else if state.outstanding == 0 && state.done {
            return state.end();
        } else {
            let waited = state.wait(job, engine);
            state.now_ns = job.clock.now_ns();
            waited
        };
        if let Err(error) = passed {
            state.fail(JobFailure::Engine(error));
            return state.end();
        }
    }
}

/// Looks for `want` completions all the time, for as long as that is worth it; says whether they are there.
fn spin<E: Engine>(job: &Job, engine: &mut E, want: u32) -> io::Result<bool> {
    engine.turn(0, None)?;
    let end_ns = job.clock.now_ns() + SPIN_NS;
    loop {
        for _ in 0..LOOKS_BY_CLOCK {
            if engine.ready(want)? {
                return Ok(true);
            }
            std::hint::spin_loop();
        }
        if job.clock.now_ns() >= end_ns {
            return Ok(false);
        }
    }
}

/// The information about a request for the workload.
#[inline]
fn finished(request: &Request, latency_ns: u64, status: Status) -> Finished {
    let is_ok = status == Status::Ok;
    Finished { is_ok, ..Finished::of(request, Time::from_ns(latency_ns)) }
}

struct State {
    free: Vec<u32>,
    now_ns: u64,
    outstanding: u32,
    issued: u64,
    completed: u64,
    /// When the workload wants to be asked again; `u64::MAX` after a completion only.
    wake_ns: u64,
    /// The last answer of the workload was that it waits for a completion, or there was no slot.
    full: bool,
    /// As many as one call hands over are pushed, and there are more to issue at this time.
    more: bool,
    ramping_up: bool,
    /// The workload learns of each request.
    heeds_latency: bool,
    failing: bool,
    done: bool,
    /// To wake up in time.
    margin: Margin,
    faults: Faults,
    delays: Delays,
    unrecorded: Moved,
    failure: Option<JobFailure>,
}

impl State {
    fn new(job: &Job) -> State {
        State {
            free: (0..job.slots).rev().collect(),
            now_ns: job.clock.now_ns(),
            outstanding: 0,
            issued: 0,
            completed: 0,
            wake_ns: u64::MAX,
            full: false,
            more: false,
            ramping_up: job.origin_ns.is_some() || job.shared.ramp.start_ns() != Some(0),
            heeds_latency: job.workload.heeds_latency(),
            failing: false,
            done: false,
            margin: Margin::new(),
            faults: Faults::default(),
            delays: Delays::default(),
            unrecorded: Moved::default(),
            failure: None,
        }
    }

    fn end(self) -> Ended {
        Ended {
            end_ns: self.now_ns,
            issued: self.issued,
            faults: self.faults,
            delays: self.delays,
            unrecorded: self.unrecorded,
            failure: self.failure,
        }
    }

    #[cold]
    fn fail(&mut self, failure: JobFailure) {
        self.done = true;
        self.failure.get_or_insert(failure);
    }

    /// Begins to record, where a time decides about it and has come. No earlier report to the tape
    /// has a later time: the clock was read once since.
    #[inline]
    fn begin_window(&mut self, job: &Job, tape: &mut Tape) {
        if self.ramping_up
            && let (Some(origin_ns), Some(start_ns)) = (job.origin_ns, job.recorded_from_ns())
            && self.now_ns >= start_ns
        {
            self.ramping_up = false;
            tape.start_within(start_ns, origin_ns.min(start_ns));
            self.delays = Delays::default();
        }
    }

    /// No other job waits for this one any more. Our memory must stay until the last request
    /// completes.
    #[cold]
    fn abandoned<E: Engine>(mut self, engine: &mut E) -> Ended {
        engine.give_up();
        while self.outstanding > 0 && engine.turn(1, Some(TICK)).is_ok() {
            engine.reap(|_, _| self.outstanding -= 1);
        }
        self.end()
    }

    /// Issues the requests that the workload wants now: all of them, or as many as one call may
    /// submit.
    #[inline]
    fn issue<E: Engine>(&mut self, job: &mut Job, engine: &mut E, tape: &mut Tape) {
        let was_full = std::mem::replace(&mut self.full, false);
        self.more = false;
        self.wake_ns = u64::MAX;
        let now = Time::from_ns(self.now_ns);
        let over = self.now_ns >= job.end_ns || job.shared.stop.load(Ordering::Relaxed);
        self.done |= over;
        let (mut punctual, mut pushed) = (0, 0);
        while !self.done {
            let Some(&slot) = self.free.last() else {
                self.full = true;
                break;
            };
            match job.workload.next(now) {
                WorkloadStep::Issue { request, intended } => {
                    if request.op != Op::Read && !self.may_change(job, request.op) {
                        break;
                    }
                    self.free.pop();
                    let mut intended_ns = self.now_ns;
                    if intended == now {
                        punctual += 1;
                    } else {
                        intended_ns = intended.as_ns();
                        tape.issued_late(intended_ns);
                    }
                    self.delays.add(self.now_ns - intended_ns, was_full);
                    let accepted_ns = self.now_ns;
                    tape.keep(slot, Sent { request, intended_ns, accepted_ns });
                    engine.push(slot, &request);
                    self.outstanding += 1;
                    self.issued += 1;
                    pushed += 1;
                    self.done = self.issued >= job.requests_max;
                    if E::HANDS_OVER && pushed == job.strategy.submit && !self.done {
                        (self.more, self.full) = (true, was_full);
                        break;
                    }
                }
                WorkloadStep::NotBefore(at) => {
                    // A moment within a nanosecond has come when the next one has.
                    self.wake_ns = at.as_ps().div_ceil(1_000).min(job.end_ns);
                    break;
                }
                WorkloadStep::Wait => {
                    self.full = true;
                    break;
                }
                WorkloadStep::Done => self.done = true,
            }
        }
        tape.issued(self.now_ns, punctual);
    }

    fn may_change(&mut self, job: &Job, op: Op) -> bool {
        let may = job.writable || op == Op::Flush;
        if !may {
            self.fail(JobFailure::ReadOnly(op));
        }
        may
    }

    /// Waits for completions, or until the workload wants to be asked again.
    #[inline]
    fn wait<E: Engine>(&mut self, job: &Job, engine: &mut E) -> io::Result<()> {
        if self.wake_ns != u64::MAX {
            return self.wait_for_time(job, engine);
        }
        let want = job.strategy.complete.min(self.outstanding);
        if job.strategy.spins() && spin(job, engine, want)? {
            return Ok(());
        }
        if want == 1 {
            // Asked for in a call of its own, as fio does: where a thread of the kernel completes the
            // request in our place meanwhile, as that of a loop device on our core, there is no need to
            // sleep (two switches of which one is cheap, instead of going to sleep and being woken).
            engine.turn(0, None)?;
        }
        // Before the first completion nothing can be done, and whoever watches gives up a target that
        // does not answer: a timer for each wait would be in vain. The rest of a batch is another
        // matter: one request that stalls must not keep the answers of the others.
        engine.turn(want, (want > 1).then_some(TICK))
    }

    /// Sleeps for most of the time and spins for the rest.
    fn wait_for_time<E: Engine>(&mut self, job: &Job, engine: &mut E) -> io::Result<()> {
        let now_ns = job.clock.now_ns();
        let left = Duration::from_nanos(self.wake_ns.saturating_sub(now_ns));
        let mut sleep = left.saturating_sub(self.margin.get()).min(TICK);
        if job.strategy.spins() && self.outstanding > 0 {
            sleep = Duration::ZERO;
        }
        if self.outstanding > 0 {
            engine.turn(u32::from(!sleep.is_zero()), Some(sleep))?;
        } else if !sleep.is_zero() {
            std::thread::sleep(sleep);
        }
        if sleep == TICK {
            return Ok(());
        }
        let (until_ns, woke_ns) = (now_ns + sleep.as_nanos() as u64, job.clock.now_ns());
        if !sleep.is_zero() && woke_ns >= until_ns {
            self.margin.learn(woke_ns - until_ns);
        }
        // A spinning job returns from the wait as often as a sleeping job.
        let end_ns = self.wake_ns.min(now_ns + TICK.as_nanos() as u64);
        while job.clock.now_ns() < end_ns {
            if self.outstanding > 0 && engine.ready(1)? {
                return Ok(());
            }
            std::hint::spin_loop();
        }
        Ok(())
    }

    /// Records what has completed.
    #[inline]
    fn reap<E: Engine>(&mut self, job: &mut Job, engine: &mut E, tape: &mut Tape) {
        if self.outstanding == 0 {
            return;
        }
        if self.ramping_up {
            return self.reap_ramping_up(job, engine, tape);
        }
        let mut reaped = tape.reaped(self.now_ns);
        let now = Time::from_ns(self.now_ns);
        let before = self.completed;
        let mut heeded = self.heeds_latency.then_some(&mut job.workload);
        engine.reap(|slot, outcome| {
            let Sent { request, intended_ns, accepted_ns } = reaped.take(slot);
            self.complete(slot);
            let status = self.status(&request, outcome);
            match status {
                Status::Ok => reaped.add(&request, intended_ns, accepted_ns, Status::Ok),
                status => {
                    let errno = Faults::errno(outcome);
                    reaped.add_failed(&request, intended_ns, accepted_ns, status, errno);
                }
            }
            if let Some(workload) = &mut heeded {
                workload.completed(finished(&request, self.now_ns - intended_ns, status), now);
            }
        });
        drop(reaped);
        if self.completed != before {
            if !self.heeds_latency {
                job.workload.completed_many(self.completed - before, now);
            }
            self.report(job, tape);
        }
    }

    /// As [`reap`](State::reap), where the first ones may be ramp-up.
    #[cold]
    fn reap_ramping_up<E: Engine>(&mut self, job: &mut Job, engine: &mut E, tape: &mut Tape) {
        let mut outcomes: Vec<(u32, Outcome)> = Vec::new();
        engine.reap(|slot, outcome| outcomes.push((slot, outcome)));
        if outcomes.is_empty() {
            return;
        }
        let (skip, start_ns) = match job.origin_ns {
            // A time decides, and it has not come.
            Some(_) => (outcomes.len() as u64, None),
            None => job.shared.ramp.claim(outcomes.len() as u64, &job.clock),
        };
        let (skipped, recorded) = outcomes.split_at(skip as usize);
        let now = Time::from_ns(self.now_ns);
        let mut reaped = tape.reaped(self.now_ns);
        for (slot, outcome) in skipped {
            let Sent { request, intended_ns, .. } = reaped.take(*slot);
            self.complete(*slot);
            let status = self.status(&request, *outcome);
            if status == Status::Ok {
                self.unrecorded.add(request.op, u64::from(request.length_bytes));
            }
            reaped.skip();
            job.workload.completed(finished(&request, self.now_ns - intended_ns, status), now);
        }
        drop(reaped);
        if let Some(start_ns) = start_ns {
            self.ramping_up = false;
            tape.start_at(start_ns);
            self.delays = Delays::default();
        }
        let mut reaped = tape.reaped(self.now_ns);
        for (slot, outcome) in recorded {
            let Sent { request, intended_ns, accepted_ns } = reaped.take(*slot);
            self.complete(*slot);
            let status = self.status(&request, *outcome);
            let errno = Faults::errno(*outcome);
            reaped.add_failed(&request, intended_ns, accepted_ns, status, errno);
            job.workload.completed(finished(&request, self.now_ns - intended_ns, status), now);
        }
        drop(reaped);
        self.report(job, tape);
    }

    /// The request of a slot has come back.
    #[inline]
    fn complete(&mut self, slot: u32) {
        self.free.push(slot);
        self.outstanding -= 1;
        self.completed += 1;
    }

    #[inline]
    fn status(&mut self, request: &Request, outcome: Outcome) -> Status {
        if Faults::is_ok(request, outcome) {
            if self.failing {
                self.failing = false;
                self.faults.end_row();
            }
            return Status::Ok;
        }
        self.failing = true;
        if let Some((count, source)) = self.faults.add(request, outcome) {
            self.fail(JobFailure::Gone { request: *request, count, source });
        }
        Status::Error
    }

    #[inline]
    fn report(&self, job: &Job, tape: &Tape) {
        let pulse = &job.shared.pulse;
        pulse.completed.store(self.completed, Ordering::Relaxed);
        pulse.latency_ns.store(tape.latency_ns_sum(), Ordering::Relaxed);
    }
}
