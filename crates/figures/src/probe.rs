//! The samples of the machine while a target was loaded (S4-18 … S4-20), as in results.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ssdyno_block::Op;

use crate::format::{count, things};

/// Activity of the machine during the load of a real target, on the same timeline as the series.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct MachineActivity {
    /// The device whose own counters were read, by its kernel name: the target, or the device below a file; `null`
    /// without a device.
    pub device: Option<String>,
    /// Samples in order without gaps, from the start of the load to its end.
    pub samples: Vec<Sample>,
    /// The device's counters beside the counts of the run; `null` without a device, or if requests never completed.
    pub device_check: Option<DeviceCheck>,
}

/// The device's own counters beside the counts of the run, for the same requests.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct DeviceCheck {
    /// Requests and bytes of the run, with its ramp-up.
    pub run: Moved,
    /// Requests and bytes that the device counted during the run, from all programs (/proc/diskstats).
    pub device: Moved,
    /// Whether both counts of bytes agree within 1 % and 64 KiB. If the target is a file, other programs use its device
    /// too: then the device must have moved at least as many bytes.
    pub agrees: bool,
    /// The comparison in words, with the likely reason of a difference.
    pub detail: String,
}

/// Requests and bytes between the host and a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Moved {
    /// Reads completed.
    pub reads: u64,
    /// Writes completed.
    pub writes: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
}

/// The machine over one interval (S4-18 … S4-20). A value that the machine does not provide is `null`.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Sample {
    /// Start of the interval. In a result it counts from the start of the recorded window, as the points of the series
    /// do, and is negative in a ramp-up; otherwise from the start of the probe.
    pub start_seconds: f64,
    /// Length of the interval.
    pub length_seconds: f64,
    /// Shares of processor time.
    pub cpu: Option<CpuShares>,
    /// Interrupts served.
    pub interrupts_per_second: Option<f64>,
    /// Context switches of the whole machine.
    pub context_switches_per_second: Option<f64>,
    /// Memory at the end of the interval.
    pub memory: Option<Memory>,
    /// All network interfaces together, without the loopback.
    pub network: Option<Network>,
    /// The device under test, by its own counters; `null` if `probe` samples several devices.
    pub disk: Option<Disk>,
    /// Block devices that `probe` samples, by kernel name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub disks: BTreeMap<String, Disk>,
    /// Power by sensor.
    pub power: Option<Vec<SensorPower>>,
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
    /// Trims (discards) completed.
    #[serde(default)]
    pub trims_per_second: f64,
    /// Flushes completed.
    #[serde(default)]
    pub flushes_per_second: f64,
    /// Bytes trimmed.
    #[serde(default)]
    pub trim_bytes_per_second: f64,
    /// Mean time of a read, from the kernel's queue to its completion (`r_await` of iostat); `null` without completed
    /// reads. The kernel counts in ms.
    #[serde(default)]
    pub read_latency_ns_mean: Option<f64>,
    /// Mean time of a write (`w_await`); `null` without completed writes.
    #[serde(default)]
    pub write_latency_ns_mean: Option<f64>,
    /// Share of the interval with requests in flight, 0 to 1 (`%util`).
    pub busy_share: f64,
    /// Requests in flight, mean over the interval (`aqu-sz`).
    pub in_flight_mean: f64,
}

/// A sensor's mean power.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct SensorPower {
    /// Name of the sensor on the machine: `package-0`, `dram`.
    pub sensor: String,
    /// Mean over the interval.
    pub watts: f64,
}

impl Moved {
    /// Adds a request of `bytes`; trims and flushes move nothing.
    pub fn add(&mut self, op: Op, bytes: u64) {
        match op {
            Op::Read => (self.reads, self.read_bytes) = (self.reads + 1, self.read_bytes + bytes),
            Op::Write => {
                (self.writes, self.write_bytes) = (self.writes + 1, self.write_bytes + bytes);
            }
            Op::Trim | Op::Flush => {}
        }
    }

    /// Adds what another job moved.
    pub fn merge(&mut self, other: &Moved) {
        self.reads += other.reads;
        self.writes += other.writes;
        self.read_bytes += other.read_bytes;
        self.write_bytes += other.write_bytes;
    }

    fn bytes(&self) -> u64 {
        self.read_bytes + self.write_bytes
    }

    fn text(&self) -> String {
        let mut parts = Vec::new();
        for (what, requests, bytes) in
            [("read", self.reads, self.read_bytes), ("write", self.writes, self.write_bytes)]
        {
            if requests > 0 || bytes > 0 {
                parts.push(format!("{} of {} B", things(requests, what), count(bytes)));
            }
        }
        if parts.is_empty() { "nothing".to_owned() } else { parts.join(" and ") }
    }
}

impl DeviceCheck {
    /// Compares the counters of `name` with the requests of the run; `failed` more requests ended in an error. `whole`:
    /// the target is that very device, and not a file on it; `direct`: nothing is cached on the way.
    pub fn new(
        name: &str,
        (whole, direct): (bool, bool),
        failed: u64,
        run: Moved,
        device: Moved,
    ) -> DeviceCheck {
        let near = |run: u64, device: u64| match device > run {
            // Other programs may add a little. What the run read and the device did not is never theirs: a
            // short run of 48 requests, of which a third came from a cache, is off by 64 KiB alone.
            true => !whole || device - run <= device / 100 + (64 << 10),
            false => run - device <= run / 100,
        };
        let agrees =
            near(run.read_bytes, device.read_bytes) && near(run.write_bytes, device.write_bytes);
        let mut detail = format!("{name} counted {}", device.text());
        if !agrees {
            detail.push_str(&format!(", the run {}", run.text()));
            detail.push_str(match device.bytes() < run.bytes() {
                true if device == Moved::default() => {
                    ": it keeps no statistics (queue/iostats), or the requests were served from a cache"
                }
                true if !direct => ": the others were served from the page cache",
                true => ": the others were served from a cache, a hole or an unwritten extent",
                false if failed > 0 => ": it counts requests that failed as well",
                false => ": another program uses it, or the system read ahead",
            });
        } else if !near_requests(run, device) {
            detail.push_str(match whole {
                true => ": the kernel split or joined requests",
                false => ", with the requests of its file system and of other programs",
            });
        }
        DeviceCheck { run, device, agrees, detail }
    }
}

/// Whether both counted the same requests and bytes.
fn near_requests(run: Moved, device: Moved) -> bool {
    let near = |a: u64, b: u64| a.abs_diff(b) <= a.max(b) / 100 + 16;
    let bytes = |run: u64, device: u64| run.abs_diff(device) <= device / 100 + (64 << 10);
    near(run.reads, device.reads)
        && near(run.writes, device.writes)
        && bytes(run.read_bytes, device.read_bytes)
        && bytes(run.write_bytes, device.write_bytes)
}

impl DeviceCheck {
    /// Whether the device did what the run asked for, in words. The counters of a device that holds a file include the requests of
    /// others, so that they can show no more than a lower bound.
    pub fn verdict(&self) -> &'static str {
        match (self.agrees, near_requests(self.run, self.device)) {
            (true, true) => "matches the run",
            (true, false) if self.device.bytes() > self.run.bytes() => "more than the run",
            (true, false) => "matches the run",
            (false, _) => "does NOT match the run",
        }
    }
}

impl MachineActivity {
    /// The mean of a figure over the samples that have it, by their length.
    pub fn mean(&self, pick: impl Fn(&Sample) -> Option<f64>) -> Option<f64> {
        let mut sums = (0.0, 0.0);
        for sample in &self.samples {
            if let Some(value) = pick(sample) {
                sums.0 += value * sample.length_seconds;
                sums.1 += sample.length_seconds;
            }
        }
        (sums.1 > 0.0).then(|| sums.0 / sums.1)
    }

    /// Names of the sensors of power; empty where the machine has none.
    pub fn sensors(&self) -> Vec<&str> {
        let first = self.samples.iter().find_map(|sample| sample.power.as_ref());
        first.into_iter().flatten().map(|power| power.sensor.as_str()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(reads: u64, read_bytes: u64) -> Moved {
        Moved { reads, read_bytes, ..Moved::default() }
    }

    #[test]
    fn two_accounts_of_the_same_requests_agree_and_others_do_not() {
        let check = |run, device| DeviceCheck::new("sda", (true, true), 0, run, device);
        let same = check(read(1000, 4_096_000), read(1000, 4_096_000));
        assert!(
            same.agrees && same.detail.ends_with(" B") && same.detail.starts_with("sda counted 1"),
            "{same:?}"
        );
        let once = check(read(1, 4096), read(1, 4096)).detail;
        assert!(once.contains("1 read of 4 096 B"), "{once}");
        let split = check(read(1000, 1 << 30), read(4000, 1 << 30));
        assert!(split.agrees && split.detail.contains("split"), "{split:?}");
        for (run, device, why) in [
            (read(1000, 4_096_000), Moved::default(), "no statistics"),
            (read(1000, 4_096_000), read(500, 2_048_000), "served from a cache"),
            (read(48, 196_608), read(32, 131_072), "served from a cache"),
            (read(1000, 4_096_000), read(2000, 8_192_000), "another program"),
        ] {
            let check = check(run, device);
            assert!(!check.agrees && check.detail.contains(why), "{check:?}");
        }
        let failing = DeviceCheck::new("sda", (true, true), 9, read(9, 1 << 20), read(18, 2 << 20));
        assert!(
            !failing.agrees && failing.detail.ends_with("failed as well"),
            "{}",
            failing.detail
        );
        let file = DeviceCheck::new("sda", (false, false), 0, read(9, 1 << 20), read(1, 4096));
        assert!(!file.agrees && file.detail.contains("page cache"), "{file:?}");
        let file = DeviceCheck::new("sda", (false, true), 0, read(9, 4 << 20), read(99, 9 << 20));
        assert!(file.agrees && file.detail.contains("of other programs"), "{file:?}");
        assert_eq!((same.verdict(), file.verdict()), ("matches the run", "more than the run"));
        // As many writes, and 9 % more bytes.
        let more =
            DeviceCheck::new("sda", (false, true), 0, read(1000, 4 << 20), read(1001, 4_600_000));
        assert_eq!(more.verdict(), "more than the run", "{more:?}");
    }

    #[test]
    fn means_are_by_length_and_of_what_is_known() {
        let sample = |length_seconds, switches| Sample {
            length_seconds,
            context_switches_per_second: switches,
            ..Sample::default()
        };
        let samples = vec![sample(1.0, Some(10.0)), sample(3.0, Some(2.0)), sample(9.0, None)];
        let machine = MachineActivity { samples, ..MachineActivity::default() };
        assert_eq!(machine.mean(|s| s.context_switches_per_second), Some(4.0));
        assert_eq!(machine.mean(|s| s.interrupts_per_second), None);
    }
}
