//! What a machine did over an interval.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::figures::figures;

/// The machine over one interval (S4-18 to S4-20). A group that is `null`, or a missing name, is unknown: its source
/// could not be read, or its counters were reset in the interval.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct SystemSample {
    /// Number of the sample, counted from 1 by the prober; 0 without a prober. For joined samples, the number of the
    /// last sample.
    pub sequence: u64,
    /// End of the interval on the monotonic clock of the machine (`CLOCK_MONOTONIC`), in ns.
    pub monotonic_ns: u64,
    /// End of the interval on the calendar clock, in ns since 1970 (UTC). This clock can be set while the prober runs.
    pub unix_ns: u64,
    /// Length of the interval on the monotonic clock, in ns.
    pub interval_ns: u64,
    /// CPU time by kind, all cores together (proc_stat(5)).
    pub cpu: Option<CpuFractions>,
    /// CPU time by kind of each core, by its number in the kernel.
    #[serde(default)]
    pub cores: BTreeMap<u32, CpuFractions>,
    /// Interrupts, context switches, processes.
    pub activity: Option<KernelActivity>,
    /// Memory and swap space at the end of the interval.
    pub memory: Option<MemoryLevels>,
    /// Traffic between memory and swap space.
    pub swap: Option<SwapRates>,
    /// Network interfaces by name, with the loopback `lo` (proc_pid_net(5), `/proc/net/dev`).
    #[serde(default)]
    pub interfaces: BTreeMap<String, NetworkRates>,
    /// Block devices by kernel name, partitions beside their disk: a sum over all entries counts the requests of
    /// partitions twice (Documentation/admin-guide/iostats.rst).
    #[serde(default)]
    pub disks: BTreeMap<String, DiskRates>,
    /// Discards (trims) of block devices; since Linux 4.18.
    #[serde(default)]
    pub discards: BTreeMap<String, DiscardRates>,
    /// Flushes of block devices; since Linux 5.5.
    #[serde(default)]
    pub flushes: BTreeMap<String, FlushRates>,
    /// Power by sensor. A RAPL zone (Documentation/power/powercap/powercap.rst) has a name such as
    /// `package-0 (intel-rapl:0)`. A zone `intel-rapl:0:0` is part of zone `intel-rapl:0`. Usually only root may read
    /// RAPL zones. A hwmon sensor (Documentation/hwmon/sysfs-interface.rst) has a name such as `power_meter power1`.
    #[serde(default)]
    pub power: BTreeMap<String, SensorLevel>,
    /// Pressure stall information (Documentation/accounting/psi.rst): `cpu_some`, `io_some`, `io_full`,
    /// `memory_some`, `memory_full` and, since Linux 5.13, `cpu_full`.
    #[serde(default)]
    pub pressure: BTreeMap<String, StalledTime>,
}

figures! {
    /// CPU time by kind; the fractions sum to 1. Time of virtual machines that this machine runs is in `user` and `nice`.
    CpuFractions[8], "cpu_" {
        /// Fraction of CPU time in user mode, 0 to 1.
        user_fraction: "fraction",
        /// Fraction of CPU time in user mode at low priority, 0 to 1.
        nice_fraction: "fraction",
        /// Fraction of CPU time in the kernel, 0 to 1.
        system_fraction: "fraction",
        /// Fraction of CPU time spent idle, 0 to 1.
        idle_fraction: "fraction",
        /// Fraction of CPU time spent idle while a request was outstanding, 0 to 1.
        iowait_fraction: "fraction",
        /// Fraction of CPU time in hardware interrupts, 0 to 1.
        irq_fraction: "fraction",
        /// Fraction of CPU time in soft interrupts, 0 to 1.
        softirq_fraction: "fraction",
        /// Fraction of CPU time that the hypervisor gave to other virtual machines, 0 to 1.
        steal_fraction: "fraction",
    }
}

impl CpuFractions {
    /// Everything but idle time and time given to others, 0 to 1.
    pub fn busy_fraction(&self) -> f64 {
        // The sum of the other fractions would differ from this by the rounding of five numbers.
        // `clamp` removes the rest, which may be below zero.
        (1.0 - self.idle_fraction - self.iowait_fraction - self.steal_fraction).clamp(0.0, 1.0)
    }
}

figures! {
    /// Activity of the kernel, from `/proc/stat`.
    KernelActivity[5], "" {
        /// Interrupts served per second.
        interrupts_per_second: "per_second",
        /// Context switches per second.
        context_switches_per_second: "per_second",
        /// Processes and threads created per second.
        forks_per_second: "per_second",
        /// Running or runnable threads at the end of the interval, including the prober.
        processes_running: "",
        /// Threads that waited for I/O at the end of the interval.
        processes_blocked: "",
    }
}

figures! {
    /// Memory at the end of the interval, from `/proc/meminfo`.
    MemoryLevels[8], "memory_" {
        /// Memory that the kernel manages, in bytes.
        total_bytes: "bytes",
        /// Unused memory, in bytes.
        free_bytes: "bytes",
        /// Memory available to programs without swapping, in bytes.
        available_bytes: "bytes",
        /// Shared memory and tmpfs, in bytes.
        shared_bytes: "bytes",
        /// Buffers of block devices, in bytes.
        buffers_bytes: "bytes",
        /// Page cache with shared memory, in bytes.
        cached_bytes: "bytes",
        /// Swap space, in bytes.
        swap_total_bytes: "bytes",
        /// Unused swap space, in bytes.
        swap_free_bytes: "bytes",
    }
}

figures! {
    /// Swapping, from `/proc/vmstat`.
    SwapRates[2], "swap_" {
        /// Pages read back from swap space per second.
        in_pages_per_second: "pages_per_second",
        /// Pages written to swap space per second.
        out_pages_per_second: "pages_per_second",
    }
}

figures! {
    /// Traffic of a network interface (S4-19).
    NetworkRates[8], "network_" {
        /// Bytes received per second.
        receive_bytes_per_second: "bytes_per_second",
        /// Packets received per second.
        receive_packets_per_second: "packets_per_second",
        /// Packets received with an error, per second.
        receive_errors_per_second: "per_second",
        /// Packets received and dropped, per second.
        receive_drops_per_second: "per_second",
        /// Bytes sent per second.
        transmit_bytes_per_second: "bytes_per_second",
        /// Packets sent per second.
        transmit_packets_per_second: "packets_per_second",
        /// Packets that could not be sent because of an error, per second.
        transmit_errors_per_second: "per_second",
        /// Packets dropped before they were sent, per second.
        transmit_drops_per_second: "per_second",
    }
}

figures! {
    /// A block device by its own counters. The kernel counts whole milliseconds.
    DiskRates[9], "disk_" {
        /// Reads completed per second.
        reads_per_second: "per_second",
        /// Bytes read per second.
        read_bytes_per_second: "bytes_per_second",
        /// Total time of reads per second: the mean number of reads in flight.
        read_seconds_per_second: "seconds_per_second",
        /// Writes completed per second.
        writes_per_second: "per_second",
        /// Bytes written per second.
        write_bytes_per_second: "bytes_per_second",
        /// Sum of the write times, divided by the length of the interval: the mean number of writes in flight.
        write_seconds_per_second: "seconds_per_second",
        /// Requests in flight at the end of the interval.
        requests_in_flight: "",
        /// Fraction of time with at least one request in flight, 0 to 1 (%util of iostat).
        busy_fraction: "fraction",
        /// Mean number of requests in flight over the interval (aqu-sz of iostat).
        requests_in_flight_mean: "",
    }
}

impl DiskRates {
    /// Mean time of a read in ns (r_await of iostat); `None` if no read completed.
    pub fn read_latency_ns_mean(&self) -> Option<f64> {
        mean_ns(self.read_seconds_per_second, self.reads_per_second)
    }

    /// Mean time of a write in ns (w_await of iostat); `None` if no write completed.
    pub fn write_latency_ns_mean(&self) -> Option<f64> {
        mean_ns(self.write_seconds_per_second, self.writes_per_second)
    }
}

fn mean_ns(seconds_per_second: f64, per_second: f64) -> Option<f64> {
    (per_second > 0.0).then(|| seconds_per_second * 1e9 / per_second)
}

figures! {
    /// Discards (trims) of a block device.
    DiscardRates[3], "disk_" {
        /// Discards completed per second.
        discards_per_second: "per_second",
        /// Bytes discarded per second.
        discard_bytes_per_second: "bytes_per_second",
        /// Total time of discards per second.
        discard_seconds_per_second: "seconds_per_second",
    }
}

figures! {
    /// Flushes of a block device.
    FlushRates[2], "disk_" {
        /// Flushes completed per second.
        flushes_per_second: "per_second",
        /// Total time of flushes per second.
        flush_seconds_per_second: "seconds_per_second",
    }
}

figures! {
    /// Power of a sensor.
    SensorLevel[1], "power_" {
        /// Mean power over the interval, in watts; for a hwmon sensor, the mean of its readings at both ends.
        watts: "watts",
    }
}

figures! {
    /// Time that threads lost because a resource was scarce.
    StalledTime[1], "pressure_" {
        /// Fraction of time in which some (or all) threads waited for the resource, 0 to 1.
        stalled_fraction: "fraction",
    }
}
