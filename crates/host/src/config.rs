//! The contents of a host file.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ssdyno_block::units::{Bandwidth, Bytes, Span, Watts};
use ssdyno_block::{ConfigError, Time};

use crate::cache::{CacheConfig, FileSystemConfig, check_cache, check_file_system, error};
use crate::cost::{Cost, Frequency};

/// A host file that cannot be used.
#[derive(Clone, Debug, thiserror::Error)]
pub enum LoadError {
    /// Not TOML, or a key or value that the schema does not have.
    #[error("{}", .0.message())]
    Syntax(#[from] toml::de::Error),
    /// Well-formed, but impossible.
    #[error(transparent)]
    Value(#[from] ConfigError),
}

/// A host file.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HostConfig {
    /// One line about the machine, and where its numbers come from.
    #[serde(default)]
    pub description: String,
    /// The processor.
    pub cpu: CpuConfig,
    /// Cost of each operation for the core that executes it (S0-34).
    pub costs: CostConfig,
    /// How locks pass from core to core.
    #[serde(default)]
    pub lock: LockConfig,
    /// The layer between a process and the driver.
    #[serde(default)]
    pub stack: StackConfig,
    /// The page cache; if omitted, direct I/O.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<CacheConfig>,
    /// The file system over the page cache; if omitted, the page cache caches the block device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_system: Option<FileSystemConfig>,
    /// How threads issue requests if the command line does not set it.
    #[serde(default)]
    pub threads: ThreadMode,
}

/// The `[cpu]` table.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CpuConfig {
    /// Cores, 1 to 1024.
    pub cores: u16,
    /// Clock of the cores, for the conversion of costs in cycles.
    pub clock: Frequency,
    /// Time from idle to the first instruction (leaving a C-state): a delay, not work.
    #[serde(default)]
    pub idle_exit: Span,
    /// Maximum time of uninterrupted work before a thread yields the core.
    #[serde(default = "time_slice")]
    pub time_slice: Span,
    /// Power of one core while it works, for the estimate of energy.
    pub active_power: Watts,
    /// Power of one core while it idles.
    pub idle_power: Watts,
}

fn time_slice() -> Span {
    Span(Time::from_ms(4))
}

/// The `[costs]` table. All keys except `interrupt_delivery` are CPU time of a core.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CostConfig {
    /// Kernel entry and exit, once per request; with asynchronous threads and batches once for all requests issued
    /// together.
    pub system_call: Cost,
    /// The block layer, once per request.
    pub request: Cost,
    /// The block layer, once per piece (bio) of a request that goes to the driver.
    pub piece: Cost,
    /// Translation to SCSI and back, once per command; only with the SCSI stack (S1-51).
    pub scsi: Cost,
    /// The driver: building and issuing one command.
    pub command: Cost,
    /// Acquiring and releasing a free lock.
    pub lock: Cost,
    /// Time from one core's release of a lock to the start of the next core: cache lines move.
    pub lock_handover: Cost,
    /// A posted register write.
    pub register_write: Cost,
    /// A register read: the core stalls (S1-4).
    pub register_read: Cost,
    /// Time from a register write to its arrival at the device: a delay, not work. It occupies the port.
    pub register_delivery: Span,
    /// Time from the message of the device to the handler's core: a delay, not work. It occupies the port.
    pub interrupt_delivery: Span,
    /// Interrupt entry, dispatch to the handler, and exit.
    pub interrupt: Cost,
    /// Handling one completed command.
    pub completion: Cost,
    /// Waking a thread, on the core that wakes it.
    pub wakeup: Cost,
    /// Switching to another thread.
    pub context_switch: Cost,
    /// One poll for completions.
    pub poll: Cost,
    /// Rate of the copy between process and kernel buffers; needed with `stack.copy`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub copy: Option<Bandwidth>,
}

/// The order in which cores get a lock, or a place in a full queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LockOrder {
    /// In order of arrival: MCS and ticket locks.
    #[default]
    Fifo,
    /// Random, with a favoured core: test-and-set locks (S1-39, S1-59).
    Random,
}

/// The `[lock]` table.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LockConfig {
    /// `fifo` or `random`.
    pub order: LockOrder,
    /// Probability of the favoured core relative to each other core, 1 or more; for `random`.
    pub favoured_weight: f64,
}

impl Default for LockConfig {
    fn default() -> LockConfig {
        LockConfig { order: LockOrder::Fifo, favoured_weight: 1.0 }
    }
}

/// The `[stack]` table.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct StackConfig {
    /// System calls per request (S4-38: about 14 of IoMeter's, 0 of a kernel module), each at the cost of
    /// `costs.system_call`.
    pub system_calls: u32,
    /// Context switches per request in addition to the switches due to waiting (S4-38): helper threads of the process,
    /// each at the cost of `costs.context_switch`.
    pub extra_switches: f64,
    /// Copy data between the process and buffers of the kernel. If false, the device reads and writes the process'
    /// memory (direct I/O).
    pub copy: bool,
    /// Maximum size of the pieces of a request that go to the driver as one command (S1-52: 32 KiB; S0-1: one page).
    /// If omitted, pieces are as large as the driver accepts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buffer: Option<Bytes>,
    /// Number of kernel buffers: the maximum number of commands between submission and completion. If omitted, no
    /// limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buffers: Option<u32>,
    /// A write is complete for its thread when its data is copied and all its commands are with the driver (S1-56).
    /// Needs `copy`.
    pub write_behind: bool,
}

impl Default for StackConfig {
    fn default() -> StackConfig {
        StackConfig {
            system_calls: 1,
            extra_switches: 0.0,
            copy: false,
            buffer: None,
            buffers: None,
            write_behind: false,
        }
    }
}

ssdyno_block::named! {
    /// How threads issue requests.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum ThreadMode: name {
        /// One request at a time: every outstanding request has its own thread (S0-5).
        #[default]
        Sync = "sync",
        /// Each thread keeps its share of the requests outstanding, and issues new requests as they complete.
        Async = "async",
        /// Each thread issues its share, then waits for all requests of the share (S1-64).
        Batch = "batch",
    }
}

ssdyno_block::named! {
    /// How a thread waits for a completion.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum CompletionWait: name {
        /// The thread sleeps until the interrupt of the device.
        #[default]
        Interrupt = "interrupt",
        /// The thread polls until the completion arrives, unless another thread wants the core.
        Poll = "poll",
        /// The thread sleeps for half of the mean time of the last requests, then polls.
        Hybrid = "hybrid",
    }
}

/// How a host is used.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HostUse {
    /// The number of cores used, from 1 to all cores of the host; threads are distributed over them
    /// in turn.
    pub cores: u16,
    /// How threads issue requests.
    pub mode: ThreadMode,
    /// Threads with [`ThreadMode::Async`] and [`ThreadMode::Batch`].
    pub threads: u32,
    /// How they learn of completions.
    pub waiting: CompletionWait,
    /// Requests go through the SCSI translation.
    pub scsi: bool,
    /// Doorbells once for all commands that a thread issues together, not for each.
    pub doorbell_per_batch: bool,
    /// Priority classes of the threads, 0 the first to be served to 3: the nth thread has the nth, and
    /// so on in turn (S1-41, S1-42). Empty: all have class 2.
    pub classes: Vec<u8>,
}

impl HostConfig {
    /// Reads a host file.
    ///
    /// # Errors
    /// [`LoadError`] describes the error, and its key.
    pub fn parse(text: &str) -> Result<HostConfig, LoadError> {
        let config: HostConfig = toml::from_str(text)?;
        config.check()?;
        Ok(config)
    }

    /// The full resolved form.
    pub fn to_toml(&self) -> String {
        // A struct of tables and plain values always has a TOML form.
        toml::to_string_pretty(self).unwrap_or_default()
    }

    /// Checks the values against each other.
    ///
    /// # Errors
    /// [`ConfigError`] names the key.
    pub fn check(&self) -> Result<(), ConfigError> {
        if self.cpu.cores == 0 || self.cpu.cores > 1024 {
            return error(
                "cpu.cores",
                "outside 1 to 1024",
                "set the number of cores of the machine",
            );
        }
        if !(1.0..=1e6).contains(&self.lock.favoured_weight) {
            return error(
                "lock.favoured_weight",
                "outside 1 to 1000000",
                "use 1 for a draw without bias, 3 for one core with three times the chances",
            );
        }
        if self.stack.copy && !self.costs.copy.is_some_and(|rate| rate.0 >= 1e6) {
            return error(
                "costs.copy",
                "missing or below 1MB/s, although stack.copy asks for copies",
                "set the bandwidth of a copy, such as \"3GB/s\", or set stack.copy = false",
            );
        }
        self.check_cache()?;
        if self.stack.write_behind && !self.stack.copy {
            return error(
                "stack.write_behind",
                "needs stack.copy: without a copy, the process cannot reuse its memory before the device has read it",
                "set stack.copy = true, or stack.write_behind = false",
            );
        }
        let whole = |bytes: Bytes| bytes.0 > 0 && bytes.0.is_multiple_of(512) && bytes.0 <= 1 << 30;
        if !self.stack.buffer.is_none_or(whole) {
            return error(
                "stack.buffer",
                "not a multiple of 512 bytes up to 1GiB",
                "use a size such as \"32KiB\"",
            );
        }
        if self.stack.buffers == Some(0) {
            return error("stack.buffers", "0 buffers", "use 1 or more, or leave it out");
        }
        let long =
            self.costs.all().into_iter().any(|cost| cost.at(self.cpu.clock).as_s_f64() > 1.0)
                || self.costs.interrupt_delivery.0.as_s_f64() > 1.0
                || self.cpu.idle_exit.0.as_s_f64() > 1.0;
        if long {
            return error(
                "costs",
                "one of the times is longer than 1s",
                "such times are below a millisecond",
            );
        }
        Ok(())
    }

    fn check_cache(&self) -> Result<(), ConfigError> {
        if self.stack.system_calls > 10_000 || !(0.0..=1e4).contains(&self.stack.extra_switches) {
            let help = "set the system calls and switches of one request, such as 14 and 2.8";
            return error("stack.system_calls", "calls or switches outside 0 to 10000", help);
        }
        if let Some(cache) = &self.cache {
            if !self.costs.copy.is_some_and(|rate| rate.0 >= 1e6) {
                let help = "set the bandwidth of a copy out of the cache, such as \"3GB/s\"";
                return error("costs.copy", "missing or below 1MB/s, with a page cache", help);
            }
            check_cache(cache)?;
        }
        match &self.file_system {
            Some(table) => check_file_system(table, self.cache.as_ref()),
            None => Ok(()),
        }
    }
}

impl CostConfig {
    fn all(&self) -> [Cost; 14] {
        [
            self.system_call,
            self.request,
            self.piece,
            self.scsi,
            self.command,
            self.lock,
            self.lock_handover,
            self.register_write,
            self.register_read,
            self.interrupt,
            self.completion,
            self.wakeup,
            self.context_switch,
            self.poll,
        ]
    }
}
