//! The jobs of a run, and the one who watches them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use ssdyno_block::Time;
use ssdyno_result::{Evidence, Precise, Recording, Tape};
use ssdyno_rig::{Flow, Progress};

use crate::clock::Clock;
use crate::cost::{Usage, kernel_workers};
use crate::error::BenchError;
use crate::job::{JobFailure, Pulse, Shared};
use crate::plan::Plan;
use crate::ramp::Ramp;
use crate::report::{self, Parts};
use crate::run::{Measured, Run};
use crate::target::{Target, Unlock};
use crate::worker::{JobReport, Message, Worker};

/// How often progress is reported.
const WATCH: Duration = Duration::from_millis(50);

/// How long a run that was told to stop waits for what is outstanding, at most.
const DRAIN: Duration = Duration::from_secs(5);

/// See [`Run::execute`].
pub(crate) fn execute(
    run: &Run,
    progress: &mut dyn FnMut(&Progress) -> Flow,
) -> Result<Measured, BenchError> {
    let target = Arc::new(Target::open(&run.target, &run.access)?);
    let _unlock = Unlock(Arc::clone(&target));
    let plan = Plan::new(run, &target)?;
    let notes = plan.notes.clone();
    let (means, closed) = (plan.means, plan.closed);
    let floor = report::floor_ns(&run.source, run.keep)?;
    let mut crew = Crew::set_up(run, plan, &target)?;
    let before = Usage::of_process();
    let clock = crew.start();
    crew.watch(clock, run.options.timeout, progress);
    let usage = Usage::of_process() - before;
    let wall = Duration::from_nanos(clock.now_ns());
    let workers = kernel_workers();
    let failure = crew.failure(&run.target, run.options.timeout);
    let precision = crew.precise.as_ref().map(Precise::precision);
    let interrupted = crew.stopped;
    let (mut recording, reports) = crew.recording(clock)?;
    let parts = Parts {
        run,
        means,
        closed,
        notes,
        reports: &reports,
        usage,
        wall,
        floor,
        workers,
        failure: failure.as_ref(),
        precision,
        interrupted,
    };
    let result = parts.result(&mut recording);
    Ok(Measured { result, recording, failure })
}

/// Everything about one job that is on its way.
struct Member {
    shared: Shared,
    go: Sender<Clock>,
    report: Option<JobReport>,
    /// When it last got on, and how far it was.
    moved: Instant,
    at: (u64, u64),
    abandoned: bool,
}

impl Member {
    fn outstanding(&self) -> u64 {
        let pulse = &self.shared.pulse;
        let completed = pulse.completed.load(Ordering::Relaxed);
        pulse.issued.load(Ordering::Relaxed).saturating_sub(completed)
    }

    /// Since when nothing has been answered, though something is outstanding.
    fn stuck_for(&mut self, now: Instant) -> Duration {
        let pulse = &self.shared.pulse;
        let at = (pulse.issued.load(Ordering::Relaxed), pulse.completed.load(Ordering::Relaxed));
        // Before the first answer a request may have been issued late; it counts from there.
        if at.1 != self.at.1 || self.outstanding() == 0 || self.at.0 == self.at.1 {
            (self.moved, self.at) = (now, at);
        }
        now - self.moved
    }
}

/// All jobs of a run, and the one who watches them.
struct Crew {
    members: Vec<Member>,
    messages: Receiver<Message>,
    stop: Arc<AtomicBool>,
    ramp: Arc<Ramp>,
    stopped: bool,
    precise: Option<Precise>,
    hung: u64,
    lost: Option<usize>,
}

impl Crew {
    /// Starts the threads and waits until each is ready.
    fn set_up(run: &Run, plan: Plan, target: &Arc<Target>) -> Result<Crew, BenchError> {
        let (tell, messages) = mpsc::channel();
        let stop = Arc::new(AtomicBool::new(false));
        let ramp = Arc::new(Ramp::new(plan.ramp_up));
        let mut members = Vec::with_capacity(plan.jobs.len());
        for (index, job) in plan.jobs.into_iter().enumerate() {
            let tape = Tape::new(run.keep, run.interval, plan.ramp_up > 0);
            let shared = Shared {
                stop: Arc::clone(&stop),
                ramp: Arc::clone(&ramp),
                pulse: Arc::new(Pulse::default()),
                tape: Arc::new(Mutex::new(Some(tape))),
            };
            let worker = Worker {
                index,
                plan: job,
                means: plan.means,
                target: Arc::clone(target),
                closed: plan.closed,
                block_bytes: plan.block_bytes,
                batch: run.options.batch,
                end_ns: run.limits.duration.map_or(u64::MAX, Time::as_ns),
                shared: shared.clone(),
            };
            let (go, gone) = mpsc::channel();
            let tell = tell.clone();
            let named = std::thread::Builder::new().name(format!("job {index}"));
            named.spawn(move || worker.run(&tell, &gone)).map_err(|source| BenchError::Engine {
                what: "starting a thread for a job",
                source,
            })?;
            let (moved, at) = (Instant::now(), (0, 0));
            members.push(Member { shared, go, report: None, moved, at, abandoned: false });
        }
        for index in 0..members.len() {
            match messages.recv() {
                Ok(Message::Ready(ready)) => ready?,
                _ => return Err(BenchError::Lost { job: index }),
            }
        }
        let precise = run.limits.until.map(Precise::new);
        Ok(Crew { members, messages, stop, ramp, stopped: false, precise, hung: 0, lost: None })
    }

    fn start(&mut self) -> Clock {
        let clock = Clock::start();
        for member in &mut self.members {
            member.moved = Instant::now();
            // A job that died meanwhile is found missing later.
            let _ = member.go.send(clock);
        }
        clock
    }

    /// Until every job has ended or was given up.
    fn watch(
        &mut self,
        clock: Clock,
        timeout: Duration,
        progress: &mut dyn FnMut(&Progress) -> Flow,
    ) {
        let mut told_at = Instant::now();
        while self.members.iter().any(|m| m.report.is_none() && !m.abandoned) {
            match self.messages.recv_timeout(WATCH.saturating_sub(told_at.elapsed())) {
                Ok(Message::Ended(index, report)) => {
                    // What ended early ends the run.
                    if report.ended.failure.is_some() || report.trace_error.is_some() {
                        self.stop.store(true, Ordering::Relaxed);
                    }
                    self.members[index].report = Some(*report);
                }
                Ok(Message::Ready(_)) => {}
                Err(RecvTimeoutError::Timeout) => {
                    told_at = Instant::now();
                    if !self.stopped && progress(&self.progress(clock)) == Flow::Stop {
                        self.stopped = true;
                        self.stop.store(true, Ordering::Relaxed);
                    }
                    self.look();
                    self.give_up(if self.stopped { timeout.min(DRAIN) } else { timeout });
                }
                Err(RecvTimeoutError::Disconnected) => {
                    let missing = |m: &Member| m.report.is_none() && !m.abandoned;
                    self.lost = self.members.iter().position(missing);
                    return;
                }
            }
        }
    }

    /// Ends the run where its figures are known as well as was asked for.
    fn look(&mut self) {
        let Some(precise) = &mut self.precise else { return };
        let completed = |m: &Member| m.shared.pulse.completed.load(Ordering::Relaxed);
        let completed = self.members.iter().map(completed).sum();
        if self.stop.load(Ordering::Relaxed) || !precise.due(completed) {
            return;
        }
        // A job waits for its tape a moment then; looks are rare.
        let evidence = self.members.iter().filter_map(|member| {
            let tape = member.shared.tape.lock().unwrap_or_else(PoisonError::into_inner);
            tape.as_ref().and_then(Tape::evidence)
        });
        if Evidence::merge(evidence).is_some_and(|evidence| precise.look(completed, &evidence)) {
            self.stop.store(true, Ordering::Relaxed);
        }
    }

    /// Gives up jobs that got no answer for `timeout`, and ends the others.
    fn give_up(&mut self, timeout: Duration) {
        let now = Instant::now();
        for member in self.members.iter_mut().filter(|m| m.report.is_none() && !m.abandoned) {
            if member.stuck_for(now) >= timeout {
                member.abandoned = true;
                self.hung += member.outstanding();
                self.stop.store(true, Ordering::Relaxed);
            }
        }
    }

    fn progress(&self, clock: Clock) -> Progress {
        let sum = |pick: fn(&Pulse) -> &std::sync::atomic::AtomicU64| -> u64 {
            self.members.iter().map(|m| pick(&m.shared.pulse).load(Ordering::Relaxed)).sum()
        };
        let completed = sum(|pulse| &pulse.completed);
        Progress {
            now: Time::from_ns(clock.now_ns()),
            issued: sum(|pulse| &pulse.issued),
            completed,
            latency_ns_mean: sum(|pulse| &pulse.latency_ns) as f64 / completed.max(1) as f64,
        }
    }

    /// Why the run ended early, the weightiest reason first.
    fn failure(&mut self, target: &str, timeout: Duration) -> Option<BenchError> {
        let target = || target.to_owned();
        for report in self.members.iter_mut().filter_map(|m| m.report.as_mut()) {
            if let Some(error) = report.trace_error.take() {
                return Some(BenchError::Workload(error));
            }
            match report.ended.failure.take() {
                Some(JobFailure::Gone { request, count, source }) => {
                    return Some(BenchError::Gone { target: target(), count, request, source });
                }
                Some(JobFailure::ReadOnly(op)) => {
                    return Some(BenchError::ReadOnly { target: target(), op });
                }
                Some(JobFailure::Engine(source)) => {
                    return Some(BenchError::Engine { what: "submitting requests", source });
                }
                None => {}
            }
        }
        if let Some(job) = self.lost {
            return Some(BenchError::Lost { job });
        }
        if self.stopped {
            return Some(BenchError::Interrupted);
        }
        let hung = BenchError::Hang { target: target(), outstanding: self.hung, waited: timeout };
        (self.hung > 0).then_some(hung)
    }

    /// What all jobs recorded, and their reports.
    fn recording(self, clock: Clock) -> Result<(Recording, Vec<JobReport>), BenchError> {
        let ends = self.members.iter().filter_map(|m| m.report.as_ref()).map(|r| r.ended.end_ns);
        let given_up = self.members.iter().any(|m| m.report.is_none());
        let end_ns = if given_up { clock.now_ns() } else { ends.max().unwrap_or(0) };
        let mut recordings = Vec::with_capacity(self.members.len());
        let mut reports = Vec::with_capacity(self.members.len());
        for member in self.members {
            let tape = member.shared.tape.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(mut tape) = tape {
                // A job may have ended before another one ended the ramp-up.
                if let (true, Some(start_ns)) = (tape.ramping_up(), self.ramp.start_ns()) {
                    tape.start_at(start_ns);
                }
                recordings.push(tape.finish(end_ns));
            }
            reports.extend(member.report);
        }
        let recording = Recording::merge(recordings).ok_or(BenchError::Lost { job: 0 })?;
        Ok((recording, reports))
    }
}
