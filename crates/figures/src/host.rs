//! The work of the simulated host in a run.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::latency::LatencyByOp;

/// Costs of the host in the recorded window of a run: CPU time, interrupts, locks. Costs and counts per request are
/// those of all requests divided by the number of requests that completed without error, like the energy of the drive.
/// If no request completed without error, they are of the whole window.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct HostResult {
    /// The machine: the name of a host preset or file.
    pub host: String,
    /// The driver: `nvme`, `ring`.
    pub driver: String,
    /// How commands are distributed over queues.
    pub queues: String,
    /// The layer between process and driver: `block` or `scsi`.
    pub stack: String,
    /// Mode of issuing requests: `sync`, `async`, `batch=N`.
    pub threads: String,
    /// How threads wait for completions: `interrupt`, `poll`, `hybrid`.
    pub completion: String,
    /// CPU time of all cores of the host for a request, interrupts and kernel threads included.
    pub cpu_ns_per_request: f64,
    /// CPU time by cause; the rows sum to `cpu_ns_per_request`.
    pub cpu_ns_per_request_by_cause: BTreeMap<String, f64>,
    /// Commands of the driver. A request may be split into several commands.
    pub commands_per_request: f64,
    /// Switches to a thread, from another thread or from the idle task.
    pub context_switches_per_request: f64,
    /// Switches to the idle task. Linux counts these and the switches to threads (S4-38). `null` in results of older
    /// versions.
    #[serde(default)]
    pub switches_to_idle_per_request: Option<f64>,
    /// System calls.
    #[serde(default)]
    pub system_calls_per_request: Option<f64>,
    /// Interrupts taken.
    pub interrupts_per_request: f64,
    /// Register writes, posted.
    pub register_writes_per_request: f64,
    /// Register reads; a core stalls during each.
    pub register_reads_per_request: f64,
    /// Waiting for locks.
    pub lock_wait_ns_per_request: f64,
    /// Share of lock operations that found the lock held by another core; `null` without lock operations.
    pub locks_contended_share: Option<f64>,
    /// Times that a thread had to wait for room in a queue, or for a buffer.
    pub queue_full_per_request: f64,
    /// Bytes per second that the device completed, from the start of the recorded window until the
    /// last request was reported; `null` if no request is reported before the device completed it
    /// (S1-56).
    pub device_completed_bytes_per_second: Option<f64>,
    /// Each namespace of `--namespaces` (S1-43).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub namespaces: Vec<NamespaceResult>,
    /// Each core that took part.
    pub cores: Vec<HostCore>,
    /// Figures of the page cache; `null` without a page cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<CacheResult>,
    /// The network to the device; `null` without a network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkResult>,
    /// Estimated energy of the cores: powers of the host file times busy and idle time.
    pub energy: HostEnergy,
    /// The host file as resolved TOML, with every key.
    pub host_toml: String,
}

/// Figures of the page cache and the file system of the host, over the whole run and after it, until no page was dirty.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct CacheResult {
    /// Pages requested by reads.
    pub pages_read: u64,
    /// Of these pages, the number that were in the cache or already being read.
    pub pages_hit: u64,
    /// `pages_hit` divided by `pages_read`; `null` without reads.
    pub hit_ratio: Option<f64>,
    /// Pages read ahead of their use.
    pub pages_ahead: u64,
    /// Pages that writes made dirty. A page that was already dirty does not count again.
    pub pages_dirtied: u64,
    /// Pages written back.
    pub pages_written: u64,
    /// Commands that wrote back pages.
    pub write_commands: u64,
    /// Pages written to the journal.
    pub journal_pages: u64,
    /// Pages of metadata read.
    pub metadata_reads: u64,
    /// Number of times a writer had to wait because too many pages were dirty.
    pub throttled: u64,
    /// Maximum number of pages dirty or being written at the same time.
    pub dirty_pages_max: u64,
}

/// Figures of a namespace under its share of the load, in the recorded window of the run.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct NamespaceResult {
    /// Identifier of the namespace.
    pub namespace: u32,
    /// Logical block size of the namespace, in bytes.
    pub block_bytes: u32,
    /// Size of the namespace in bytes. In every namespace the load covers as many bytes as the smallest loaded
    /// namespace has.
    pub capacity_bytes: u64,
    /// Threads that load the namespace, counted from 0; empty for a single namespace.
    pub threads: Vec<u32>,
    /// Requests completed without error.
    pub requests: u64,
    /// Requests that ended in an error.
    pub errors: u64,
    /// `requests` per second of the recorded window of the run, which is the same for all namespaces.
    pub iops: f64,
    /// Bytes read and written, per second.
    pub throughput_bytes_per_second: f64,
    /// From the submission to the completion, or to the end of the wait for requests that never completed. `null` without
    /// requests.
    pub latency_ns: Option<LatencyByOp>,
}

/// Link and storage server of a device behind a network (S4-42).
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct NetworkResult {
    /// Share of the time that the server's cores are busy, 0 to 1.
    pub target_cpu_share: f64,
    /// CPU time of the server for a command and its completion.
    pub target_cpu_ns_per_command: f64,
    /// Share of the time that the link transfers data to the server, 0 to 1.
    pub link_to_target_share: f64,
    /// Share of the time that the link transfers data to the host, 0 to 1.
    pub link_to_host_share: f64,
    /// The network file as resolved TOML, with every key.
    pub network_toml: String,
}

/// A core of the host.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct HostCore {
    /// Share of the time that the core is busy, 0 to 1. Time and work include the write-back after the last completion;
    /// the rates below end with the last completion.
    pub busy_share: f64,
    /// Requests per second that completed without error, reported to threads of this core. The sum of the cores is
    /// `iops` of the run.
    pub iops: f64,
    /// Bytes per second read and written by these requests.
    pub throughput_bytes_per_second: f64,
}

/// Energy of the host's cores that took part: an estimate.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct HostEnergy {
    /// Energy of the cores, busy and idle.
    pub total_joules: f64,
    /// Energy that the load added: busy time times the difference between active and idle power.
    pub above_idle_joules: f64,
    /// `above_idle_joules` divided by the number of requests that completed without error; `null` without such requests.
    pub above_idle_joules_per_request: Option<f64>,
}
