//! The thread of a job: set up, wait for the start, run, report.

use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use ssdyno_block::{Request, Time};
use ssdyno_workload::{DepthSearchResult, WorkloadError, delayed};

use crate::clock::{Clock, exact_timers};
use crate::content::Content;
use crate::cost::Usage;
use crate::engine::Engine;
use crate::engine::network::Network;
use crate::engine::null::Null;
use crate::engine::passthrough::Passthrough;
use crate::engine::threads::Threads;
use crate::engine::uring::{Setup, Uring};
use crate::error::BenchError;
use crate::job::{Ended, Job, drive};
use crate::pinning;
use crate::plan::{JobPlan, Means};
use crate::pulse::Shared;
use crate::ramp::Ramp;
use crate::target::{Kind, RealTarget};

/// What a thread needs.
pub(crate) struct Worker {
    pub(crate) index: usize,
    pub(crate) plan: JobPlan,
    pub(crate) means: Means,
    pub(crate) target: Arc<RealTarget>,
    pub(crate) block_bytes: u32,
    /// No other job runs beside it, and the run leaves the choice of the core to us.
    pub(crate) may_stay: bool,
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

/// The messages of a thread to the supervisor.
#[derive(Debug)]
pub(crate) enum Message {
    /// Ready to start, or not able to.
    Ready(Result<(), BenchError>),
    /// All done.
    Ended(usize, Box<JobReport>),
}

/// The outcome of a job.
#[derive(Debug)]
pub(crate) struct JobReport {
    pub(crate) ended: Ended,
    /// Its requests started whenever others completed.
    pub(crate) closed: bool,
    pub(crate) notes: Vec<String>,
    pub(crate) depth_searches: Vec<DepthSearchResult>,
    pub(crate) trace_error: Option<WorkloadError>,
    /// Of the thread, over the run.
    pub(crate) usage: Usage,
    pub(crate) wall: Duration,
    pub(crate) system_calls: u64,
    /// How long after the start of the run it began, where it is of the first group.
    pub(crate) late_ns: Option<u64>,
    /// The core that it stayed on without being told to.
    pub(crate) stayed: Option<usize>,
    /// Buffers are registered with the kernel; `None` where there is nothing to register with.
    pub(crate) registered: Option<bool>,
    /// Why its engine can carry out nothing more.
    pub(crate) trouble: Option<String>,
}

impl Worker {
    /// Runs the job; `go` gives the clock that all jobs start with. The receiver may be gone: then
    /// it ends quietly.
    pub(crate) fn run(self, messages: &Sender<Message>, go: &Receiver<Go>) {
        let failed = |error| {
            let _ = messages.send(Message::Ready(Err(error)));
        };
        let stayed = match self.settle() {
            Ok(stayed) => stayed,
            Err(error) => return failed(error),
        };
        let (target, length) = (Arc::clone(&self.target), self.block_bytes);
        let content = || Content::new(&self.plan.buffer, self.plan.seed);
        // Data for writes is made only if the target may be written to. A reading job then has
        // half the memory, and it holds no data that could be written by mistake.
        let content = target.writable.then(content);
        match self.means {
            Means::Null => self.load(Null::default(), None, stayed, messages, go),
            Means::Threads => {
                self.load(Threads::new(target, length, content), None, stayed, messages, go);
            }
            Means::Network { fua, .. } => match self.connect(content, fua) {
                Ok(network) => self.load(network, None, stayed, messages, go),
                Err(error) => failed(error),
            },
            Means::Passthrough(setup) => {
                match Passthrough::new(target, self.plan.slots, length, content, setup) {
                    Ok(ring) => self.load(ring, None, stayed, messages, go),
                    Err(source) => failed(BenchError::Uring { source }),
                }
            }
            Means::Uring(setup) => {
                match Uring::new(target, self.plan.slots, length, content, setup) {
                    Ok(uring) => {
                        let registered = Some(uring.registered());
                        self.load(uring, registered, stayed, messages, go);
                    }
                    Err(source) => failed(BenchError::Uring { source }),
                }
            }
        }
    }

    /// A connection to the network target for this job.
    fn connect(&self, content: Option<Content>, fua: bool) -> Result<Network, BenchError> {
        let Kind::Network(remote) = &self.target.kind else {
            return Err(BenchError::Lost { job: self.index });
        };
        let (remote, sizes) = (Arc::clone(remote), (self.plan.slots, self.block_bytes));
        let link = remote.link()?;
        Network::new(remote, link, sizes, content, fua)
            .map_err(|source| BenchError::Engine { what: "preparing a connection", source })
    }

    /// Binds the thread to its cores; the core where it stays without being told to.
    fn settle(&self) -> Result<Option<usize>, BenchError> {
        // The slack of timers belongs to the thread. It is set here and not by the thread that
        // starts the jobs, because every job sleeps in its own.
        exact_timers();
        if !self.plan.cores.is_empty() {
            let what = "binding a job to its cores";
            let bound = pinning::bind(&self.plan.cores).map(|()| None);
            return bound.map_err(|source| BenchError::Engine { what, source: source.into() });
        }
        // Only a loop device is completed by threads of the kernel that wander with the job.
        // Elsewhere the scheduler decides, see `pinning`.
        let threads = || self.target.disk_name().is_some_and(|name| name.starts_with("loop"));
        Ok(if self.may_stay() && threads() { pinning::stay_here() } else { None })
    }

    /// Whether the job may stay on one core: see [`pinning`].
    fn may_stay(&self) -> bool {
        // A job that polls never sleeps, so no thread has to be woken near it. Being bound would
        // only take its freedom.
        let waits = matches!(self.means, Means::Uring(Setup { iopoll: false, sqpoll: false, .. }));
        self.may_stay
            && self.plan.closed
            // At depth 1 the bound job drives the answering thread to another core: 48 k instead
            // of 72 k IOPS on a loop device.
            && self.plan.slots > 1
            && waits
            && !self.plan.strategy.spins()
    }

    fn load<E: Engine>(
        self,
        mut engine: E,
        registered: Option<bool>,
        stayed: Option<usize>,
        messages: &Sender<Message>,
        go: &Receiver<Go>,
    ) {
        // Every step that can fail comes before the job reports ready. The clock of the run starts
        // only if every job can begin.
        if let Err(error) = self.check_polling(&mut engine) {
            let _ = messages.send(Message::Ready(Err(error)));
            return;
        }
        self.prepare_tape();
        // Setting up and the trial read have made calls of their own. The figures count those of
        // the load alone.
        let calls_before = engine.system_calls();
        if messages.send(Message::Ready(Ok(()))).is_err() {
            return;
        }
        // The sender is gone if another job could not be made ready. There is no run then, and no
        // report is expected.
        let Ok(Go { clock, start_ns }) = go.recv() else { return };
        clock.wait_for_start();
        // The lateness is taken before anything else is built. It shows how well several jobs, or
        // several hosts, begin together (S4).
        let late_ns = clock.now_ns() - start_ns;
        let start_ns = start_ns + self.plan.delay_ns;
        let mut shared = self.shared;
        if let Some(ramp_ns) = self.plan.ramp_ns {
            shared.ramp = Arc::new(Ramp::until(start_ns + ramp_ns));
        }
        let mut job = Job {
            workload: delayed(self.plan.workload, Time::from_ns(start_ns)),
            origin_ns: self.plan.ramp_ns.map(|_| self.origin_ns),
            slots: self.plan.slots,
            strategy: self.plan.strategy,
            requests_max: self.plan.requests_max,
            end_ns: self.end_ns,
            writable: self.target.writable,
            clock,
            shared,
        };
        // The usage of the thread begins here: setting up the ring and the memory is no cost of
        // a request.
        let (before, began) = (Usage::of_thread(), std::time::Instant::now());
        let ended = drive(&mut job, &mut engine);
        let report = JobReport {
            late_ns: (start_ns == 0).then_some(late_ns),
            usage: Usage::of_thread() - before,
            wall: began.elapsed(),
            notes: [job.workload.notes(), engine.remarks()].concat(),
            depth_searches: job.workload.depth_searches(),
            trace_error: job.workload.error(),
            system_calls: engine.system_calls() - calls_before,
            stayed,
            registered,
            trouble: engine.trouble(),
            closed: self.plan.closed,
            ended,
        };
        // The report is complete before the connection is given back. The later work of another job
        // on it is not in these figures.
        engine.end();
        let _ = messages.send(Message::Ended(self.index, Box::new(report)));
    }

    /// Gets memory for what will be recorded, before the clock runs.
    fn prepare_tape(&self) {
        // A fresh page costs up to 10 us on a virtual machine. Touched inside the loop, it would
        // be part of the latency of the requests around it.
        let rows = self.rows_prepared.min(self.plan.requests_max.try_into().unwrap_or(usize::MAX));
        let mut tape = self.shared.tape.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tape) = tape.as_mut() {
            tape.prepare(rows);
        }
    }

    /// Whether the device can be polled, if it is to be: found out with one read.
    fn check_polling<E: Engine>(&self, engine: &mut E) -> Result<(), BenchError> {
        let (Means::Uring(setup) | Means::Passthrough(setup)) = self.means else { return Ok(()) };
        // A ring with IOPOLL can be made whatever the file is. Only a request shows whether the
        // device has queues for polling.
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
                let why = "the device has no queues for polled completions";
                Err(BenchError::option("iopoll", why))
            }
            _ => Ok(()),
        }
    }
}
