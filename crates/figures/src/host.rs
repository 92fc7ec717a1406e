//! What the simulated host did for a run.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::latency::LatencyByOp;

/// What the host added to a run: CPU time, interrupts, locks. Figures are of the whole run, with
/// ramp-up, by request handed in.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct HostResult {
    /// The machine: the name of a host preset or file.
    pub host: String,
    /// The driver: `nvme`, `ring`.
    pub driver: String,
    /// How commands are spread over queues.
    pub queues: String,
    /// What lies between process and driver: `block` or `scsi`.
    pub stack: String,
    /// How threads issue: `sync`, `async`, `batch=N`.
    pub threads: String,
    /// How they learn of completions: `interrupt`, `poll`, `hybrid`.
    pub completion: String,
    /// CPU time.
    pub cpu_ns_per_request: f64,
    /// CPU time by what it went into; the rows sum to `cpu_ns_per_request`.
    pub cpu_ns_per_request_by_cause: BTreeMap<String, f64>,
    /// Commands of the driver: a request may become several.
    pub commands_per_request: f64,
    /// Switches to a thread, from another or from idleness.
    pub context_switches_per_request: f64,
    /// Switches to idleness. With those to a thread they are what Linux counts (S4-38); `null` in
    /// results of older versions.
    #[serde(default)]
    pub switches_to_idle_per_request: Option<f64>,
    /// System calls.
    #[serde(default)]
    pub system_calls_per_request: Option<f64>,
    /// Interrupts taken.
    pub interrupts_per_request: f64,
    /// Register writes, posted.
    pub register_writes_per_request: f64,
    /// Register reads, for which a core stalls.
    pub register_reads_per_request: f64,
    /// Waiting for locks.
    pub lock_wait_ns_per_request: f64,
    /// Share of locks that another core held when they were wanted; `null` where none were taken.
    pub locks_contended_share: Option<f64>,
    /// Times that a thread had to wait for room in a queue, or for a buffer.
    pub queue_full_per_request: f64,
    /// Bytes that the device completed until the last request was reported, by second, both from the start
    /// of the recorded window; `null` where no request is reported before the device completed it (S1-56).
    pub device_completed_bytes_per_second: Option<f64>,
    /// Each namespace that was chosen, with `--namespaces` (S1-43).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub namespaces: Vec<NamespaceResult>,
    /// Each core that took part.
    pub cores: Vec<HostCore>,
    /// What the page cache did; `null` without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<CacheResult>,
    /// The network to the device; `null` without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkResult>,
    /// Estimate of what the cores took: powers of the host file over busy and idle time.
    pub energy: HostEnergy,
    /// The host file as resolved TOML, with every key.
    pub host_toml: String,
}

/// What the page cache and the file system of the host did, over the whole run and after it, until
/// nothing was dirty any more.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct CacheResult {
    /// Pages that reads asked for.
    pub pages_read: u64,
    /// Of these, found in the cache or already on their way.
    pub pages_hit: u64,
    /// `pages_hit` by `pages_read`; `null` where nothing was read.
    pub hit_ratio: Option<f64>,
    /// Pages read ahead of their use.
    pub pages_ahead: u64,
    /// Pages that writes made dirty; one that already was does not count again.
    pub pages_dirtied: u64,
    /// Pages written back.
    pub pages_written: u64,
    /// Commands that wrote them.
    pub write_commands: u64,
    /// Pages written to the journal.
    pub journal_pages: u64,
    /// Pages of metadata read.
    pub metadata_reads: u64,
    /// Times a writer had to wait because too much was dirty.
    pub throttled: u64,
    /// Most pages dirty or being written at a time.
    pub dirty_pages_max: u64,
}

/// A namespace under its share of the load, over the whole run.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct NamespaceResult {
    /// Its identifier.
    pub namespace: u32,
    /// Its logical block, in bytes.
    pub block_bytes: u32,
    /// Its size, in bytes; what of it is loaded is as long as the smallest of all that are.
    pub capacity_bytes: u64,
    /// Threads that load it, counted from 0; empty where it is the only one.
    pub threads: Vec<u32>,
    /// Requests completed without error.
    pub requests: u64,
    /// Requests that ended in an error.
    pub errors: u64,
    /// `requests` by second.
    pub iops: f64,
    /// Bytes read and written, by second.
    pub throughput_bytes_per_second: f64,
    /// From the submission to the completion; `null` without requests.
    pub latency_ns: Option<LatencyByOp>,
}

/// Link and target machine of a device behind a network (S4-42).
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct NetworkResult {
    /// Share of the time that the target's cores work, 0 to 1.
    pub target_cpu_share: f64,
    /// Work of the target for a command and its answer.
    pub target_cpu_ns_per_command: f64,
    /// Share of the time that the link carries something to the target, 0 to 1.
    pub link_to_target_share: f64,
    /// Share of the time that it carries something to the host, 0 to 1.
    pub link_to_host_share: f64,
    /// The network file as resolved TOML, with every key.
    pub network_toml: String,
}

/// A core of the host.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct HostCore {
    /// Share of the time at work, 0 to 1. The time includes what the machine writes back after the last
    /// completion, and so does the work; the rates below end with the last completion.
    pub busy_share: f64,
    /// Requests reported to threads of this core, by second.
    pub iops: f64,
    /// Bytes of them read and written, by second.
    pub throughput_bytes_per_second: f64,
}

/// Energy of the host's cores that took part: an estimate.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct HostEnergy {
    /// At work and idle.
    pub total_joules: f64,
    /// What the work added: busy time by active less idle power.
    pub above_idle_joules: f64,
    /// `above_idle_joules` by request; `null` without requests.
    pub above_idle_joules_per_request: Option<f64>,
}
