//! The thread of a job: set up, try, wait for the start, run, report.

use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use ssdyno_block::{Request, Time};
use ssdyno_workload::{WorkloadError, delayed};

use crate::clock::{Clock, exact_timers};
use crate::cost::Usage;
use crate::engine::Engine;
use crate::engine::null::Null;
use crate::engine::passthrough::Passthrough;
use crate::engine::threads::Threads;
use crate::engine::uring::{Setup, Uring};
use crate::error::BenchError;
use crate::job::{Ended, Job, Shared, drive};
use crate::options::{Batch, Waiting, Way};
use crate::plan::{JobPlan, Means};
use crate::ramp::Ramp;
use crate::settle::{self, Home};
use crate::target::Target;
use crate::trial::Trial;
use crate::ways::{self, Choice};

/// What a thread needs.
pub(crate) struct Worker {
    pub(crate) index: usize,
    pub(crate) plan: JobPlan,
    pub(crate) means: Means,
    pub(crate) target: Arc<Target>,
    pub(crate) block_bytes: u32,
    pub(crate) batch: Option<Batch>,
    pub(crate) waiting: Waiting,
    /// No other job runs beside it.
    pub(crate) alone: bool,
    /// Requests that it gets memory ready for.
    pub(crate) rows_prepared: usize,
    pub(crate) end_ns: u64,
    /// Start of the recorded window of the run, where times decide about it.
    pub(crate) origin_ns: u64,
    pub(crate) shared: Shared,
}

/// Tells a job to start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Go {
    pub(crate) clock: Clock,
    /// When its group started.
    pub(crate) start_ns: u64,
}

/// What a thread tells the one who watches.
#[derive(Debug)]
pub(crate) enum Message {
    /// Ready to start, or not able to.
    Ready(Result<(), BenchError>),
    /// All done.
    Ended(usize, Box<JobReport>),
}

/// What became of a job.
#[derive(Debug)]
pub(crate) struct JobReport {
    pub(crate) ended: Ended,
    pub(crate) notes: Vec<String>,
    pub(crate) trace_error: Option<WorkloadError>,
    /// Of the thread, over the run.
    pub(crate) usage: Usage,
    pub(crate) wall: Duration,
    pub(crate) system_calls: u64,
    /// What goes at a time, and how the rest is waited for.
    pub(crate) choice: Choice,
    /// Whether anything goes together: a closed loop of more than one.
    pub(crate) batched: bool,
    /// Where it stayed without being told to.
    pub(crate) home: Option<Home>,
    /// Buffers are registered with the kernel; `None` where there is nothing to register with.
    pub(crate) registered: Option<bool>,
}

impl Worker {
    /// Runs the job; `go` gives the clock that all jobs start with. Nobody may be listening any
    /// more: then it ends quietly.
    pub(crate) fn run(self, messages: &Sender<Message>, go: &Receiver<Go>) {
        let failed = |error| {
            let _ = messages.send(Message::Ready(Err(error)));
        };
        let home = match self.settle() {
            Ok(home) => home,
            Err(error) => return failed(error),
        };
        let (target, length) = (Arc::clone(&self.target), self.block_bytes);
        match self.means {
            Means::Null => self.load(Null::default(), None, home, messages, go),
            Means::Threads => self.load(Threads::new(target, length), None, home, messages, go),
            Means::Passthrough(setup) => {
                match Passthrough::new(target, self.plan.slots, length, setup) {
                    Ok(ring) => self.load(ring, None, home, messages, go),
                    Err(source) => failed(BenchError::Uring { source }),
                }
            }
            Means::Uring(setup) => match Uring::new(target, self.plan.slots, length, setup) {
                Ok(uring) => {
                    let registered = Some(uring.registered());
                    self.load(uring, registered, home, messages, go);
                }
                Err(source) => failed(BenchError::Uring { source }),
            },
        }
    }

    /// Binds the thread to its cores; where it stays without being told to, as far as no trial
    /// decides about it.
    fn settle(&self) -> Result<Option<Home>, BenchError> {
        exact_timers();
        if !self.plan.cores.is_empty() {
            let what = "binding a job to its cores";
            let bound = settle::bind(&self.plan.cores).map(|()| None);
            return bound.map_err(|source| BenchError::Engine { what, source: source.into() });
        }
        let threads = || self.target.disk_name().is_some_and(|name| name.starts_with("loop"));
        Ok(if self.may_stay() && threads() { Home::here() } else { None })
    }

    /// Whether the job may stay on one core: see [`settle`].
    fn may_stay(&self) -> bool {
        let waits = matches!(self.means, Means::Uring(Setup { iopoll: false, sqpoll: false, .. }));
        self.alone && self.plan.closed && waits && self.plan.cores.is_empty()
    }

    /// The load of trials.
    fn trial(&self) -> Trial {
        Trial {
            facts: self.target.trial_facts(),
            depth: self.plan.slots,
            block_bytes: self.block_bytes,
            // Not the blocks that the run begins with: they would be cached.
            seed: !self.plan.seed,
        }
    }

    /// Where the job stays, by a trial where nothing is decided yet.
    fn find_home<E: Engine>(
        &self,
        engine: &mut E,
        home: Option<Home>,
    ) -> Result<Option<Home>, BenchError> {
        let disk = self.target.disk_name().filter(|_| home.is_none() && self.may_stay());
        let Some(disk) = disk else { return Ok(home) };
        // Whichever batch comes of it: half of what may be outstanding is never far from the best.
        let batch = self.batch.unwrap_or(Batch::of((self.plan.slots / 2).max(1)));
        settle::by_interrupts(engine, &self.trial(), Way::of(batch), &disk)
    }

    fn load<E: Engine>(
        self,
        mut engine: E,
        registered: Option<bool>,
        home: Option<Home>,
        messages: &Sender<Message>,
        go: &Receiver<Go>,
    ) {
        let tried = self.check_polling(&mut engine).and_then(|()| {
            let home = self.find_home(&mut engine, home)?;
            Ok((home, self.choose(&mut engine)?))
        });
        let (home, choice) = match tried {
            Ok(tried) => tried,
            Err(error) => {
                let _ = messages.send(Message::Ready(Err(error)));
                return;
            }
        };
        self.prepare_tape();
        let calls_before = engine.system_calls();
        if messages.send(Message::Ready(Ok(()))).is_err() {
            return;
        }
        let Ok(Go { clock, start_ns }) = go.recv() else { return };
        let start_ns = start_ns + self.plan.delay_ns;
        let mut shared = self.shared;
        if let Some(ramp_ns) = self.plan.ramp_ns {
            shared.ramp = Arc::new(Ramp::until(start_ns + ramp_ns));
        }
        let mut job = Job {
            workload: delayed(self.plan.workload, Time::from_ns(start_ns)),
            origin_ns: self.plan.ramp_ns.map(|_| self.origin_ns),
            slots: self.plan.slots,
            way: choice.way,
            requests_max: self.plan.requests_max,
            end_ns: self.end_ns,
            writable: self.target.writable,
            clock,
            shared,
        };
        let (before, began) = (Usage::of_thread(), std::time::Instant::now());
        let ended = drive(&mut job, &mut engine);
        let report = JobReport {
            usage: Usage::of_thread() - before,
            wall: began.elapsed(),
            notes: job.workload.notes(),
            trace_error: job.workload.error(),
            system_calls: engine.system_calls() - calls_before,
            batched: self.plan.closed && self.plan.slots > 1,
            choice,
            home,
            registered,
            ended,
        };
        let _ = messages.send(Message::Ended(self.index, Box::new(report)));
    }

    /// Gets memory for what will be recorded, before the clock runs.
    fn prepare_tape(&self) {
        let rows = self.rows_prepared.min(self.plan.requests_max.try_into().unwrap_or(usize::MAX));
        let mut tape = self.shared.tape.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tape) = tape.as_mut() {
            tape.prepare(rows);
        }
    }

    /// Whether the device can be polled, if it is to be: found out with one read.
    fn check_polling<E: Engine>(&self, engine: &mut E) -> Result<(), BenchError> {
        let (Means::Uring(setup) | Means::Passthrough(setup)) = self.means else { return Ok(()) };
        if !setup.iopoll {
            return Ok(());
        }
        engine.push(0, &Request::read(0, self.target.sector_bytes));
        let mut answer = None;
        while answer.is_none() {
            engine
                .turn(1, Some(Duration::from_secs(1)))
                .map_err(|source| BenchError::Engine { what: "polling for completions", source })?;
            engine.reap(|_, outcome| answer = Some(outcome));
        }
        match answer {
            Some(outcome) if [-libc::EOPNOTSUPP, -libc::EINVAL].contains(&outcome) => {
                let why = "the device has no queues for polled completions".to_owned();
                Err(BenchError::Option { option: "iopoll", why })
            }
            _ => Ok(()),
        }
    }

    /// What goes at a time, and how the rest is waited for: as asked, or as a trial tells.
    fn choose<E: Engine>(&self, engine: &mut E) -> Result<Choice, BenchError> {
        let asked = self.waiting == Waiting::Spin;
        let only = |batch: Batch| Choice::only(Way { batch, awake: asked });
        let waits = matches!(self.means, Means::Uring(Setup { iopoll: false, .. }));
        Ok(match self.batch {
            _ if !self.plan.closed => only(Batch::AT_ONCE),
            Some(Batch { complete, submit }) => {
                only(Batch { complete: complete.min(self.plan.slots), submit })
            }
            None if matches!(self.means, Means::Uring(_)) => {
                let waiting = match self.waiting {
                    // Several would take several cores, and nobody said that they are free.
                    Waiting::Auto if !waits || !self.alone || settle::others_want_cores() => {
                        Waiting::Sleep
                    }
                    waiting => waiting,
                };
                ways::best(engine, &self.trial(), waiting)?
            }
            None => only(Batch::AT_ONCE),
        })
    }
}
