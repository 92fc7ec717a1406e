//! What a probe reports: one interval of the machine.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The machine over one interval (S4-18 … S4-20). What the machine cannot tell is `null`.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Sample {
    /// Start of the interval, on the clock of the run.
    pub start_seconds: f64,
    /// Its length.
    pub length_seconds: f64,
    /// Where the processors spent it.
    pub cpu: Option<CpuShares>,
    /// Interrupts served.
    pub interrupts_per_second: Option<f64>,
    /// Context switches of the whole machine.
    pub context_switches_per_second: Option<f64>,
    /// Memory at the end of the interval.
    pub memory: Option<Memory>,
    /// Network interfaces that are not the loopback, together.
    pub network: Option<Network>,
    /// The device under test, by its own counters.
    pub disk: Option<Disk>,
    /// Power by sensor.
    pub power: Option<Vec<Power>>,
}

/// Shares of all processors' time, 0 to 1; they sum to 1 (proc_stat(5)).
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct CpuShares {
    /// User code, nice or not.
    pub user: f64,
    /// The kernel for a process.
    pub system: f64,
    /// Hardware interrupts.
    pub irq: f64,
    /// Soft interrupts.
    pub softirq: f64,
    /// Idle while a request was outstanding.
    pub iowait: f64,
    /// Taken by the hypervisor.
    pub steal: f64,
    /// Idle.
    pub idle: f64,
}

impl CpuShares {
    /// Everything but idleness, 0 to 1.
    pub fn busy(&self) -> f64 {
        1.0 - self.idle - self.iowait
    }
}

/// Memory and swapping.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Memory {
    /// Not used at all.
    pub free_bytes: u64,
    /// Shared (tmpfs and the like).
    pub shared_bytes: u64,
    /// Buffers of block devices.
    pub buffered_bytes: u64,
    /// The page cache.
    pub cached_bytes: u64,
    /// Swap space in use.
    pub swap_used_bytes: u64,
    /// Read back from swap.
    pub swap_in_bytes_per_second: f64,
    /// Written to swap.
    pub swap_out_bytes_per_second: f64,
}

/// Traffic of the network (S4-19).
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Network {
    /// Packets received.
    pub packets_in_per_second: f64,
    /// Packets sent.
    pub packets_out_per_second: f64,
    /// Bytes received.
    pub bytes_in_per_second: f64,
    /// Bytes sent.
    pub bytes_out_per_second: f64,
}

/// A block device by its own counters (Documentation/admin-guide/iostats.rst).
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Disk {
    /// Reads completed.
    pub reads_per_second: f64,
    /// Writes completed.
    pub writes_per_second: f64,
    /// Bytes read.
    pub read_bytes_per_second: f64,
    /// Bytes written.
    pub write_bytes_per_second: f64,
    /// Share of the interval with something in flight, 0 to 1.
    pub busy_share: f64,
    /// Requests in flight, mean over the interval.
    pub in_flight_mean: f64,
}

/// A sensor's mean power.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Power {
    /// As the machine names it: `package-0`, `dram`.
    pub sensor: String,
    /// Mean over the interval.
    pub watts: f64,
}
