//! How a target is loaded, as far as it is not the workload's affair.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::method::{Method, ReapWait, SubmitStrategy};

/// The name of the target that completes at once.
pub const NULL: &str = "null:";

/// The engine that issues requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EngineKind {
    /// io_uring if it works without kernel workers, threads otherwise.
    #[default]
    Auto,
    /// io_uring.
    #[serde(rename = "io_uring")]
    Uring,
    /// One thread for each outstanding request, with pread(2) and pwrite(2).
    Threads,
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

/// How the tool goes about it. The defaults suit every target.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BenchOptions {
    /// The engine that issues requests.
    pub engine: EngineKind,
    /// io_uring: poll the device for completions instead of waiting for interrupts. The device
    /// must have queues for it.
    pub iopoll: bool,
    /// io_uring: a thread of the kernel takes submissions, at the price of a core.
    pub sqpoll: bool,
    /// Whether requests pass the page cache.
    pub page_cache: PageCache,
    /// io_uring: a request that would have to wait in the kernel fails instead (RWF_NOWAIT).
    pub nowait: bool,
    /// Others that share their targets, too, may read the target meanwhile: they are one run, as several workers of a
    /// machine are. A target that is written to is never shared.
    pub shared: bool,
    /// Threads that carry the load, each on its own; they share the workload.
    pub jobs: u32,
    /// Cores that jobs are bound to, in turn; empty: wherever the system puts them.
    pub cores: Vec<usize>,
    /// Without `cores`, the only job of a closed loop with io_uring on a loop device stays on the core
    /// where it starts, unless it has one request at a time or the run is [`shared`](Self::shared).
    pub stay: bool,
    /// How requests go to the target and come back.
    pub method: Method,
    /// In place of the method's: [`SubmitStrategy::complete`].
    pub batch: Option<u32>,
    /// In place of the method's: [`SubmitStrategy::submit`].
    pub submit: Option<u32>,
    /// In place of the method's: how jobs wait for completions.
    pub waiting: Option<ReapWait>,
    /// Search for the fastest method before the run, and use it. The result is in
    /// [`MethodResult`](ssdyno_figures::MethodResult).
    pub tune: bool,
    /// Without a completion for so long the target is treated as hung, and the run ends.
    pub timeout: Duration,
    /// Whether the machine is probed meanwhile.
    pub probing: Probing,
}

impl Default for BenchOptions {
    fn default() -> BenchOptions {
        BenchOptions {
            engine: EngineKind::Auto,
            iopoll: false,
            sqpoll: false,
            // Through the page cache most requests would be answered by memory of this machine.
            // The figures of a run without options must be those of the device.
            page_cache: PageCache::Bypassed,
            nowait: false,
            shared: false,
            jobs: 1,
            cores: Vec::new(),
            stay: true,
            method: Method::Default,
            batch: None,
            submit: None,
            waiting: None,
            tune: false,
            timeout: Duration::from_secs(30),
            probing: Probing::Auto,
        }
    }
}

impl BenchOptions {
    /// The parts of the method, those that were given by themselves in their places.
    pub fn strategy(&self) -> SubmitStrategy {
        // Each part that was given wins over that of the name. One part can thus be changed
        // while the rest of the method stays comparable with other runs.
        let named = self.method.strategy();
        SubmitStrategy {
            complete: self.batch.unwrap_or(named.complete),
            submit: self.submit.unwrap_or(named.submit),
            waiting: self.waiting.unwrap_or(named.waiting),
        }
    }
}
