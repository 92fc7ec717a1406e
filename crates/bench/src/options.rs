//! How a target is loaded, as far as it is not the workload's affair.

use std::str::FromStr;
use std::time::Duration;

/// The name of the target that completes at once.
pub const NULL: &str = "null:";

/// What carries requests out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum EngineKind {
    /// io_uring where it works without workers of the kernel, threads elsewhere.
    #[default]
    Auto,
    /// io_uring.
    Uring,
    /// One thread for each request outstanding, with pread(2) and pwrite(2).
    Threads,
}

impl FromStr for EngineKind {
    type Err = String;
    fn from_str(text: &str) -> Result<EngineKind, String> {
        match text {
            "auto" => Ok(EngineKind::Auto),
            "io_uring" => Ok(EngineKind::Uring),
            "threads" => Ok(EngineKind::Threads),
            _ => Err(format!("`{text}` is not one of `auto`, `io_uring` and `threads`")),
        }
    }
}

/// Whether the machine is probed while the target is loaded (S4-18 … S4-20).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Probing {
    /// As often as a thousandth of one processor pays for, ten times a second at most.
    #[default]
    Auto,
    /// At this interval, whatever it costs.
    Every(Duration),
    /// Not at all.
    Off,
}

/// What of a write is durable when it is answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum SyncWrites {
    /// Nothing: that takes a flush.
    #[default]
    No,
    /// Its data, and what is needed to find it (open(2), O_DSYNC).
    Data,
    /// Everything about the file (O_SYNC).
    Whole,
}

/// Whether requests pass the page cache of this machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum PageCache {
    /// They go past it (open(2), O_DIRECT), where the file system lets them.
    #[default]
    Bypassed,
    /// They go through it; what it has of the target is dropped before the run.
    Emptied,
    /// They go through it, with what it has already.
    Kept,
}

/// How a target is opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Opening {
    pub(crate) sync_writes: SyncWrites,
    pub(crate) page_cache: PageCache,
}

/// How the tool goes about it. The defaults suit every target.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// What carries requests out.
    pub engine: EngineKind,
    /// io_uring: poll the device for completions instead of waiting for interrupts. The device
    /// must have queues for it.
    pub iopoll: bool,
    /// io_uring: a thread of the kernel takes submissions, at the price of a core.
    pub sqpoll: bool,
    /// What of a write is durable when it is answered.
    pub sync_writes: SyncWrites,
    /// Whether requests pass the page cache.
    pub page_cache: PageCache,
    /// io_uring: a request that would have to wait in the kernel fails instead (RWF_NOWAIT).
    pub nowait: bool,
    /// Threads that carry the load, each on its own; they share the workload.
    pub jobs: u32,
    /// Cores that jobs are bound to, in turn; empty: wherever the system puts them, but the only job
    /// of a closed loop with io_uring stays where a loop device's threads follow it, or where a disk
    /// with one queue interrupts, if a trial is faster there.
    pub cores: Vec<usize>,
    /// How many requests of a closed loop go at a time; `None`: what a short trial before the run finds
    /// to be the cheapest of the fastest.
    pub batch: Option<Batch>,
    /// How jobs wait for completions.
    pub waiting: Waiting,
    /// Without a completion for so long the target is taken to hang, and the run ends.
    pub timeout: Duration,
    /// Whether the machine is probed meanwhile.
    pub probing: Probing,
}

/// How a job waits for completions.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Waiting {
    /// A closed loop with one job spins where a trial shows that it is faster by more than a twentieth;
    /// others sleep.
    #[default]
    Auto,
    /// Until the kernel wakes it: what that takes is in every latency.
    Sleep,
    /// Looking for completions all the time, which takes a core. io_uring without IOPOLL.
    Spin,
}

impl FromStr for Waiting {
    type Err = String;
    fn from_str(text: &str) -> Result<Waiting, String> {
        match text {
            "auto" => Ok(Waiting::Auto),
            "sleep" => Ok(Waiting::Sleep),
            "spin" => Ok(Waiting::Spin),
            _ => Err(format!("`{text}` is not one of `auto`, `sleep` and `spin`")),
        }
    }
}

/// How many requests go to the target and back at a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Batch {
    /// Completions that are waited for: 1 has the truest latencies of single requests, more cost less
    /// (fewer system calls and switches).
    pub complete: u32,
    /// Requests that are handed over together, at most: fewer let the first one begin while the others
    /// are prepared, and cost more.
    pub submit: u32,
}

impl Batch {
    /// Whatever can be reaped, and all that there is to hand over: nobody waits in vain.
    pub(crate) const AT_ONCE: Batch = Batch::of(1);

    /// So many completions; whatever is to be handed over goes together.
    #[must_use]
    pub const fn of(complete: u32) -> Batch {
        Batch { complete, submit: u32::MAX }
    }
}

/// The way of a job: what goes at a time, and how the rest is waited for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Way {
    pub(crate) batch: Batch,
    /// It spins rather than sleep.
    pub(crate) awake: bool,
}

impl Way {
    /// Asleep.
    pub(crate) const fn of(batch: Batch) -> Way {
        Way { batch, awake: false }
    }

    /// Spinning.
    pub(crate) const fn awake(batch: Batch) -> Way {
        Way { batch, awake: true }
    }
}

impl Default for Options {
    fn default() -> Options {
        Options {
            engine: EngineKind::Auto,
            iopoll: false,
            sqpoll: false,
            sync_writes: SyncWrites::No,
            page_cache: PageCache::Bypassed,
            nowait: false,
            jobs: 1,
            cores: Vec::new(),
            batch: None,
            waiting: Waiting::Auto,
            timeout: Duration::from_secs(30),
            probing: Probing::Auto,
        }
    }
}
