//! Turns the request into jobs that can start; everything that can be refused is refused here.

mod jobs;

use std::borrow::Cow;
use std::time::Duration;

use ssdyno_block::Op;
use ssdyno_workload::{
    FioEntry, FioExit, FioJob, Source, TargetFacts, TraceOptions, TraceTiming, Workload,
    WorkloadConfig, WorkloadError, WriteData, open_trace, shared,
};

use crate::engine::passthrough::block_device_of;
use crate::engine::uring::{SLOTS_MAX, Setup, Uring};
use crate::engine::why_not::{WhyNot, why_not};
use crate::error::BenchError;
use crate::is_network;
use crate::method::{ReapWait, SubmitStrategy};
use crate::options::{BenchOptions, EngineKind, PageCache};
use crate::run::BenchRun;
use crate::share;
use crate::target::Opening;
use crate::target::{Kind, RealTarget};

/// Slots of an open loop or a trace without its own bound; a request that finds none waits, and the
/// wait counts in its latency.
const OPEN_SLOTS: u32 = 1_024;

/// Most threads of the synchronous engine.
const THREADS_MAX: u64 = 256;

/// Place for a request whose length is not known beforehand; longer ones find one too.
const UNKNOWN_BLOCK_BYTES: u32 = 128 << 10;

/// Which engine, with what.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Means {
    Null,
    Uring(Setup),
    /// NVMe commands through io_uring.
    Passthrough(Setup),
    Threads,
    /// Connections to a server; with `fua` writes are durable when they complete.
    Network {
        protocol: &'static str,
        fua: bool,
    },
}

impl Means {
    /// As in results.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Means::Null => "null",
            Means::Uring(_) => "io_uring",
            Means::Passthrough(_) => "io_uring passthrough",
            Means::Threads => "threads",
            Means::Network { protocol, .. } => protocol,
        }
    }

    /// Whether a job can spin: it can where it is not the kernel that waits.
    pub(crate) fn may_spin(self) -> bool {
        match self {
            Means::Uring(setup) | Means::Passthrough(setup) => !setup.iopoll,
            Means::Network { .. } => true,
            Means::Null | Means::Threads => false,
        }
    }
}

/// A job that can start.
pub(crate) struct JobPlan {
    pub(crate) workload: Box<dyn Workload + Send>,
    pub(crate) slots: u32,
    pub(crate) requests_max: u64,
    /// Decides about everything random.
    pub(crate) seed: u64,
    /// What its writes carry.
    pub(crate) buffer: WriteData,
    /// Cores it may run on; empty: any.
    pub(crate) cores: Vec<usize>,
    /// Requests start whenever others complete.
    pub(crate) closed: bool,
    /// How they go to the target and come back.
    pub(crate) strategy: SubmitStrategy,
    /// Where its figures belong, if they are reported apart: an index into [`LoadPlan::entries`].
    pub(crate) entry: usize,
    /// Which stream of requests it carries, perhaps with other threads; streams have ranges of their own, see
    /// [`ranges`](crate::ranges).
    pub(crate) stream: usize,
    /// Groups run one after the other.
    pub(crate) group: u32,
    /// Whom its end ends too.
    pub(crate) exit: FioExit,
    /// Time from the start of the group to that of the job.
    pub(crate) delay_ns: u64,
    /// Time from the start of the job to that of its recording; `None` where the ramp-up of the
    /// run decides.
    pub(crate) ramp_ns: Option<u64>,
}

/// All jobs of a run.
pub(crate) struct LoadPlan {
    pub(crate) means: Means,
    pub(crate) jobs: Vec<JobPlan>,
    /// Requests start whenever others complete.
    pub(crate) closed: bool,
    pub(crate) ramp_up: u64,
    /// The longest request, as far as it is known.
    pub(crate) block_bytes: u32,
    pub(crate) notes: Vec<String>,
    /// What is reported apart.
    pub(crate) entries: Vec<FioEntry>,
    /// Start of the recorded window where times decide about it; `u64::MAX` where the only job says it when it
    /// has found its depth.
    pub(crate) origin_ns: u64,
}

impl LoadPlan {
    /// Streams that its jobs carry.
    pub(crate) fn streams(&self) -> usize {
        self.jobs.iter().map(|job| job.stream + 1).max().unwrap_or(0)
    }

    /// How `run` wants its target to be opened.
    pub(crate) fn opening(run: &BenchRun) -> Result<Opening, BenchError> {
        let BenchOptions { page_cache, shared, .. } = run.options;
        let more = run.more.iter().map(|(name, _)| name);
        let generic = |name: &String| block_device_of(name).is_some();
        if !run.more.is_empty() && std::iter::once(&run.target).chain(more).any(generic) {
            let why = "commands go to one generic device at a time";
            return Err(BenchError::option("passthrough", why));
        }
        let more = run.more.iter().map(|(name, _)| name);
        if !run.more.is_empty() && std::iter::once(&run.target).chain(more).any(|n| is_network(n)) {
            let why = "a network target cannot be used together with other files";
            return Err(BenchError::option("filename", why));
        }
        match &run.source {
            Source::Jobs { jobs, .. } => {
                jobs::opening(jobs, page_cache).map(|opening| Opening { shared, ..opening })
            }
            _ => Ok(Opening { page_cache, shared, ..Opening::default() }),
        }
    }

    /// Plans `run` on `target`.
    pub(crate) fn new(run: &BenchRun, target: &RealTarget) -> Result<LoadPlan, BenchError> {
        let options = match &run.source {
            Source::Jobs { jobs, .. } => Cow::Owned(jobs::options(&run.options, jobs)?),
            _ => Cow::Borrowed(&run.options),
        };
        check(&options)?;
        let (means, mut notes) = means(target, &options)?;
        notes.splice(0..0, target.notes.iter().cloned());
        let facts = target.facts();
        let plan = match &run.source {
            Source::Generator(config) => {
                // The refusal comes before anything is built. A run without permission to write
                // never reaches the point where a request could be issued.
                if !target.writable {
                    refuse_changes(config, &target.name)?;
                }
                generator(run, config, &facts, means, notes)
            }
            Source::Trace { path, options } => {
                if run.options.jobs > 1 {
                    let why = "a trace is one stream, so it needs exactly one job";
                    return Err(BenchError::option("jobs", why));
                }
                let workload = open_trace(path, options, &facts)?;
                Ok(trace(run, options, workload, means, notes))
            }
            Source::Jobs { jobs, .. } => {
                let refused = |job: &&FioJob| job.changes_data() && !target.may_write(&job.files);
                if let Some(job) = jobs.iter().find(refused) {
                    return Err(refuse_job(job, run));
                }
                notes.extend(run.source.notes());
                jobs::plan(run, &options, jobs, target, means, notes)
            }
        };
        // How long those of a trace are is not known yet; what is too long fails.
        let known = match &run.source {
            Source::Generator(config) => config.disksim.is_none(),
            Source::Jobs { .. } => true,
            Source::Trace { .. } => false,
        };
        plan.and_then(|plan| fit(plan, target, known))
    }
}

/// `plan`, if its requests do not exceed the limit of the target, and the notes on its connections. Whether the lengths
/// of its requests are `known`.
fn fit(mut plan: LoadPlan, target: &RealTarget, known: bool) -> Result<LoadPlan, BenchError> {
    let Kind::Network(remote) = &target.kind else { return Ok(plan) };
    let most = remote.facts().most_bytes;
    if known && plan.block_bytes > most {
        let what =
            format!("requests of {} B; the server accepts at most {most} B", plan.block_bytes);
        let error = WorkloadError::of_key("block_size", what, "make the blocks smaller");
        return Err(BenchError::Workload(error));
    }
    if plan.jobs.len() > 1 && !remote.facts().shares_flushes {
        plan.notes.push(
            "each job has its own connection, and the server does not declare that a flush on one connection covers all (NBD_FLAG_CAN_MULTI_CONN)"
                .to_owned(),
        );
    }
    Ok(plan)
}

fn check(options: &BenchOptions) -> Result<(), BenchError> {
    let refuse = |option, why: &str| Err(BenchError::option(option, why));
    if options.jobs == 0 {
        return refuse("jobs", "at least one job is needed");
    }
    for (option, batch) in [("batch", options.batch), ("submit", options.submit)] {
        if batch == Some(0) {
            return refuse(option, "a batch needs at least one request");
        }
    }
    if options.timeout < Duration::from_millis(100) {
        return refuse("timeout", "a timeout below 100 ms does not show that a device hangs");
    }
    if options.engine == EngineKind::Threads && (options.iopoll || options.sqpoll) {
        let option = if options.iopoll { "iopoll" } else { "sqpoll" };
        return refuse(option, "only the engine io_uring supports this option");
    }
    if options.engine == EngineKind::Threads && options.nowait {
        return refuse("nowait", "only the engine io_uring supports this option");
    }
    if options.iopoll && options.page_cache != PageCache::Bypassed {
        return refuse("iopoll", "polling for completions needs direct I/O");
    }
    if options.waiting == Some(ReapWait::Spin) {
        match options.engine {
            EngineKind::Threads => {
                return refuse(
                    "wait",
                    "with the engine `threads`, each request has its own thread, which sleeps",
                );
            }
            _ if options.iopoll => return refuse("wait", "with iopoll the kernel spins"),
            _ => {}
        }
    }
    allowed(&options.cores).map(|_| ())
}

/// `wanted`, if this process may run on all of them.
fn allowed(wanted: &[usize]) -> Result<Vec<usize>, BenchError> {
    let cores = rustix::thread::sched_getaffinity(None).map_err(|source| BenchError::Engine {
        what: "asking for the cores that may be used",
        source: source.into(),
    })?;
    let most = rustix::thread::CpuSet::MAX_CPU;
    // A core outside the mask of the process would make binding fail in the thread. Here the
    // message can name the core.
    match wanted.iter().find(|core| **core >= most || !cores.is_set(**core)) {
        Some(core) => Err(BenchError::option(
            "cores",
            format!("core {core} does not exist or this process may not use it"),
        )),
        None => Ok(wanted.to_vec()),
    }
}

/// How a job with `slots` requests goes about it. A thread that carries one request at a time waits in its
/// own call, and so does one for which the kernel polls.
fn strategy(options: &BenchOptions, means: Means, slots: u32, closed: bool) -> SubmitStrategy {
    let asked = options.strategy().of_job(slots, closed);
    let waiting = if means.may_spin() { asked.waiting } else { ReapWait::Sleep };
    SubmitStrategy { waiting, ..asked }
}

/// The engine, and why if it is not the one to expect.
fn means(target: &RealTarget, options: &BenchOptions) -> Result<(Means, Vec<String>), BenchError> {
    if matches!(target.kind, Kind::Null) {
        return Ok((Means::Null, Vec::new()));
    }
    let BenchOptions { iopoll, sqpoll, nowait, .. } = *options;
    let uring = Means::Uring(Setup { iopoll, sqpoll, nowait });
    let asked = options.engine == EngineKind::Uring || iopoll || sqpoll || nowait;
    if let Kind::Network(remote) = &target.kind {
        if asked || options.engine != EngineKind::Auto {
            let why = "a network target has its own engine and uses no kernel engine";
            return Err(BenchError::option("engine", why));
        }
        return Ok((
            Means::Network { protocol: remote.protocol(), fua: target.durable_writes },
            Vec::new(),
        ));
    }
    if options.engine == EngineKind::Threads {
        return Ok((Means::Threads, Vec::new()));
    }
    if target.generic.is_some() {
        if options.engine == EngineKind::Threads || nowait || !target.direct {
            let why = "commands to a generic device go through io_uring, past any page cache";
            return Err(BenchError::option("passthrough", why));
        }
        let available = Uring::available().map_err(|source| BenchError::Uring { source });
        return available
            .map(|()| (Means::Passthrough(Setup { iopoll, sqpoll, nowait }), Vec::new()));
    }
    // io_uring cannot begin such requests without waiting and hands each one to a worker of the
    // kernel. Plain threads cost less and are what the kernel would use anyway.
    let punted = target.in_memory || !target.direct;
    if punted && !asked {
        let note = "engine: threads, because io_uring would pass every request for this file system to kernel workers";
        return Ok((Means::Threads, vec![note.to_owned()]));
    }
    match Uring::available() {
        Ok(()) => Ok((uring, Vec::new())),
        Err(source) if asked => Err(BenchError::Uring { source }),
        Err(source) => {
            let WhyNot { reason, remedy } = why_not(&source);
            let note = format!(
                "engine: threads, because io_uring cannot be used ({reason}); io_uring needs less \
                 CPU time per request: {remedy}"
            );
            Ok((Means::Threads, vec![note]))
        }
    }
}

fn refuse_job(job: &FioJob, run: &BenchRun) -> BenchError {
    BenchError::ReadOnlyJob { target: run.name(), job: job.name.clone() }
}

/// Refuses a load that changes data.
fn refuse_changes(config: &WorkloadConfig, target: &str) -> Result<(), BenchError> {
    let [_, write, trim] = config.op_weights();
    let op = match (write > 0.0, trim > 0.0) {
        (true, _) => Op::Write,
        (_, true) => Op::Trim,
        _ => return Ok(()),
    };
    Err(BenchError::ReadOnly { target: target.to_owned(), op })
}

impl BenchRun {
    /// Refuses a load that changes data, where no file may be changed. It can be asked before the files exist.
    ///
    /// # Errors
    /// The load writes or trims. That of a trace shows on the way only.
    pub fn refuse_changes(&self) -> Result<(), BenchError> {
        match &self.source {
            Source::Generator(config) => refuse_changes(config, &self.target),
            Source::Trace { .. } => Ok(()),
            Source::Jobs { jobs, .. } => match jobs.iter().find(|job| job.changes_data()) {
                Some(job) => Err(refuse_job(job, self)),
                None => Ok(()),
            },
        }
    }
}

fn generator(
    run: &BenchRun,
    config: &WorkloadConfig,
    facts: &TargetFacts,
    means: Means,
    mut notes: Vec<String>,
) -> Result<LoadPlan, BenchError> {
    let closed = config.is_closed_loop();
    let adapts = config.latency_target.is_some();
    if adapts && run.options.jobs > 1 {
        return Err(BenchError::option("jobs", "latency_target needs exactly one job"));
    }
    let jobs = match means {
        Means::Threads => threads_wanted(run, config, closed, &mut notes)?,
        _ => run.options.jobs,
    };
    let block_bytes = match &config.disksim {
        Some(_) => UNKNOWN_BLOCK_BYTES,
        None => config.block_bytes_max() as u32,
    };
    // A job without a request has nothing to do.
    let total = [config.total_requests(), run.limits.requests].into_iter().flatten().min();
    let busy = total.unwrap_or(u64::MAX).clamp(1, u64::from(jobs)) as u32;
    if busy < jobs {
        notes.push(format!(
            "only {busy} of {jobs} jobs run, because the run has only {}",
            ssdyno_block::counted(u64::from(busy), "request", "requests")
        ));
    }
    let jobs = busy;
    // A changing depth belongs to one load; its threads take the requests in turn. A search changes
    // one depth. Jobs with depths of their own could not follow it, so they take requests of one
    // workload in turn.
    let parts = if adapts { jobs } else { 1 };
    let shares = share::shares(config, jobs / parts, facts)?;
    let mut plans = Vec::with_capacity(jobs as usize);
    for (index, share) in shares.iter().enumerate() {
        let seed = share::seed(run.seed, index as u32);
        let depth = share.outstanding_limit().unwrap_or(u64::from(OPEN_SLOTS));
        if closed && depth > u64::from(SLOTS_MAX) {
            let what = format!("{depth} requests outstanding; the limit per job is {SLOTS_MAX}");
            let help = "lower it, or share it among more `real.jobs`";
            return Err(BenchError::Workload(WorkloadError::of_key("depth", what, help)));
        }
        let slots = if means == Means::Threads { 1 } else { depth.min(u64::from(SLOTS_MAX)) };
        let requests = run.limits.requests;
        let workload = share.build_share(facts, seed, run.seed)?;
        let workloads = match parts {
            1 => vec![workload],
            _ => shared(workload, u64::from(parts)),
        };
        for workload in workloads {
            let number = plans.len() as u32;
            plans.push(JobPlan {
                workload,
                slots: slots as u32,
                requests_max: requests.map_or(u64::MAX, |r| share::part(r, number, jobs)),
                seed,
                buffer: config.buffer,
                cores: core(&run.options, number as usize).into_iter().collect(),
                closed,
                strategy: strategy(&run.options, means, slots as u32, closed),
                entry: 0,
                stream: index,
                group: 0,
                exit: FioExit::default(),
                delay_ns: 0,
                // A search counts the ramp-up itself, and says when it is over.
                ramp_ns: config.searches().then_some(0),
            });
        }
    }
    let ramp_up = if config.searches() { 0 } else { config.ramp_up };
    let origin_ns = if plans.len() == 1 { u64::MAX } else { 0 };
    let entries = Vec::new();
    Ok(LoadPlan { means, jobs: plans, closed, ramp_up, block_bytes, notes, entries, origin_ns })
}

/// How many threads the synchronous engine needs to have as many outstanding as asked for.
fn threads_wanted(
    run: &BenchRun,
    config: &WorkloadConfig,
    closed: bool,
    notes: &mut Vec<String>,
) -> Result<u32, BenchError> {
    if !closed {
        notes.push(ONE_AT_A_TIME.to_owned());
        return Ok(run.options.jobs);
    }
    let wanted = config.outstanding_limit().unwrap_or(1).max(u64::from(run.options.jobs));
    if wanted > THREADS_MAX {
        return Err(BenchError::option(
            "engine",
            format!(
                "{wanted} requests outstanding need as many threads; the limit is {THREADS_MAX}"
            ),
        ));
    }
    Ok(wanted as u32)
}

const ONE_AT_A_TIME: &str = "each thread handles one request at a time: requests that arrive \
                             meanwhile wait, and their latency counts from their arrival";

fn trace(
    run: &BenchRun,
    options: &TraceOptions,
    workload: Box<dyn Workload + Send>,
    means: Means,
    mut notes: Vec<String>,
) -> LoadPlan {
    let (closed, depth) = match options.timing {
        TraceTiming::AsFastAsPossible { depth } => (true, Some(depth)),
        _ => (false, options.depth_limit),
    };
    let mut slots = depth.unwrap_or(OPEN_SLOTS).clamp(1, SLOTS_MAX);
    if means == Means::Threads && slots > 1 {
        notes.push(ONE_AT_A_TIME.to_owned());
        slots = 1;
    }
    let job = JobPlan {
        workload,
        slots,
        requests_max: run.limits.requests.unwrap_or(u64::MAX),
        seed: run.seed,
        buffer: WriteData::default(),
        cores: core(&run.options, 0).into_iter().collect(),
        closed,
        strategy: strategy(&run.options, means, slots, closed),
        entry: 0,
        stream: 0,
        group: 0,
        exit: FioExit::default(),
        delay_ns: 0,
        ramp_ns: None,
    };
    LoadPlan {
        means,
        jobs: vec![job],
        closed,
        ramp_up: 0,
        block_bytes: UNKNOWN_BLOCK_BYTES,
        notes,
        entries: Vec::new(),
        origin_ns: 0,
    }
}

fn core(options: &BenchOptions, job: usize) -> Option<usize> {
    let cores = &options.cores;
    (!cores.is_empty()).then(|| cores[job % cores.len()])
}
