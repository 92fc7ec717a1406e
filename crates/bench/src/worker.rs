//! The thread of a job: set up, try, wait for the start, run, report.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};
use std::time::Duration;

use ssdyno_block::{Request, Time};
use ssdyno_workload::{WorkloadError, delayed};

use crate::batching::{self, Trial};
use crate::clock::{Clock, exact_timers};
use crate::cost::Usage;
use crate::engine::Engine;
use crate::engine::null::Null;
use crate::engine::threads::Threads;
use crate::engine::uring::{Setup, Uring};
use crate::error::BenchError;
use crate::job::{Ended, Job, Reaping, Shared, drive};
use crate::plan::{JobPlan, Means};
use crate::ramp::Ramp;
use crate::target::Target;

/// What a thread needs.
pub(crate) struct Worker {
    pub(crate) index: usize,
    pub(crate) plan: JobPlan,
    pub(crate) means: Means,
    pub(crate) target: Arc<Target>,
    pub(crate) block_bytes: u32,
    pub(crate) batch: Option<u32>,
    /// No other job runs beside it.
    pub(crate) alone: bool,
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
    /// Completions waited for at a time; `None` where each is taken at once.
    pub(crate) batch: Option<u32>,
    /// The core that it stayed on without being told to.
    pub(crate) core: Option<usize>,
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
        let core = match self.settle() {
            Ok(core) => core,
            Err(error) => return failed(error),
        };
        let (target, length) = (Arc::clone(&self.target), self.block_bytes);
        match self.means {
            Means::Null => self.load(Null::default(), None, core, messages, go),
            Means::Threads => self.load(Threads::new(target, length), None, core, messages, go),
            Means::Uring(setup) => match Uring::new(target, self.plan.slots, length, setup) {
                Ok(uring) => {
                    let registered = Some(uring.registered());
                    self.load(uring, registered, core, messages, go);
                }
                Err(source) => failed(BenchError::Uring { source }),
            },
        }
    }

    /// Binds the thread to its cores; the core that it is to stay on without being told to.
    ///
    /// A closed loop with one job sleeps and wakes ten thousand times a second. Left to the scheduler it
    /// wanders, and so do the kernel's threads that answer it: on a loop device with two cores that costs
    /// 15 % more CPU time by request and 15 % of the rate. A disk interrupts cores of its own choice, and
    /// the wrong one costs a fifth: there, and with several jobs, the scheduler knows better. An open
    /// loop must not wait for a core that is taken.
    fn settle(&self) -> Result<Option<usize>, BenchError> {
        exact_timers();
        let bind = |cores: &[usize]| {
            let mut set = rustix::thread::CpuSet::new();
            cores.iter().for_each(|core| set.set(*core));
            rustix::thread::sched_setaffinity(None, &set)
        };
        if !self.plan.cores.is_empty() {
            let what = "binding a job to its cores";
            let bound = bind(&self.plan.cores).map(|()| None);
            return bound.map_err(|source| BenchError::Engine { what, source: source.into() });
        }
        let threads = || self.target.disk_name().is_some_and(|name| name.starts_with("loop"));
        let uring = matches!(self.means, Means::Uring(_));
        let stays = self.alone && self.plan.closed && uring && threads();
        // The scheduler has just chosen it. Where it may not be bound it wanders.
        let core = rustix::thread::sched_getcpu();
        Ok((stays && bind(&[core]).is_ok()).then_some(core))
    }

    fn load<E: Engine>(
        self,
        mut engine: E,
        registered: Option<bool>,
        core: Option<usize>,
        messages: &Sender<Message>,
        go: &Receiver<Go>,
    ) {
        let reaping = self.check_polling(&mut engine).and_then(|()| self.reaping(&mut engine));
        let reaping = match reaping {
            Ok(reaping) => reaping,
            Err(error) => {
                let _ = messages.send(Message::Ready(Err(error)));
                return;
            }
        };
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
            reaping,
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
            batch: match reaping {
                Reaping::Batches(batch) if self.plan.slots > 1 => Some(batch),
                _ => None,
            },
            core,
            registered,
            ended,
        };
        let _ = messages.send(Message::Ended(self.index, Box::new(report)));
    }

    /// Whether the device can be polled, if it is to be: found out with one read.
    fn check_polling<E: Engine>(&self, engine: &mut E) -> Result<(), BenchError> {
        if !matches!(self.means, Means::Uring(Setup { iopoll: true, .. })) {
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

    /// How a closed loop waits: as asked, or as a trial tells.
    fn reaping<E: Engine>(&self, engine: &mut E) -> Result<Reaping, BenchError> {
        let several = self.plan.slots > 1 && matches!(self.means, Means::Uring(_));
        let batch = match self.batch {
            _ if !self.plan.closed => return Ok(Reaping::AtOnce),
            Some(batch) => batch.min(self.plan.slots),
            None if several => {
                let trial = Trial {
                    facts: self.target.facts(),
                    depth: self.plan.slots,
                    block_bytes: self.block_bytes,
                    // Not the blocks that the run begins with: they would be cached.
                    seed: !self.plan.seed,
                };
                batching::best(engine, &trial)?
            }
            None => 1,
        };
        Ok(Reaping::Batches(batch))
    }
}
