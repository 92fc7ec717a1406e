//! The machine's counters at one moment, and the difference of two of them in the shape of results.

use std::collections::BTreeMap;
use std::time::Duration;

use ssdyno_figures::probe::{CpuShares, Disk, Memory, Moved, Network, Sample, SensorPower};
use ssdyno_prober::{DiskRates, NetworkRates, PowerSensors, Sources, SystemCounters, SystemSample};

/// The interface that leads nowhere.
const LOOPBACK: &str = "lo";

/// Counters as the kernel keeps them; each only grows.
#[derive(Clone, Debug, Default)]
pub(super) struct Snapshot {
    /// On the clock of the run.
    pub(super) at: Duration,
    pub(super) counters: SystemCounters,
}

impl Snapshot {
    /// Reads everything; `disks` are names of block devices in the kernel.
    pub(super) fn take(at: Duration, disks: &[String], sensors: &PowerSensors) -> Snapshot {
        let mut counters = SystemCounters::read_with(&Sources::default(), sensors);
        counters.keep_disks(|name| disks.iter().any(|disk| disk == name));
        Snapshot { at, counters }
    }

    /// The activity from `self` to `later`.
    pub(super) fn until(&self, later: &Snapshot) -> Sample {
        Sample {
            start_seconds: self.at.as_secs_f64(),
            length_seconds: later.at.saturating_sub(self.at).as_secs_f64(),
            ..sample(&later.counters.since(&self.counters))
        }
    }

    /// The transfers of the device `disk` from `self` to `later`, by its own counters.
    pub(super) fn moved_until(&self, later: &Snapshot, disk: &str) -> Option<Moved> {
        moved(&later.counters.since(&self.counters), disk)
    }
}

/// Without its times.
fn sample(system: &SystemSample) -> Sample {
    Sample {
        cpu: system.cpu.map(|cpu| CpuShares {
            user: cpu.user_fraction + cpu.nice_fraction,
            system: cpu.system_fraction,
            irq: cpu.irq_fraction,
            softirq: cpu.softirq_fraction,
            iowait: cpu.iowait_fraction,
            steal: cpu.steal_fraction,
            idle: cpu.idle_fraction,
        }),
        interrupts_per_second: system.activity.map(|all| all.interrupts_per_second),
        context_switches_per_second: system.activity.map(|all| all.context_switches_per_second),
        memory: memory(system),
        network: network(&system.interfaces),
        disks: disks(system),
        power: power(system),
        ..Sample::default()
    }
}

fn memory(system: &SystemSample) -> Option<Memory> {
    let memory = system.memory?;
    let page_bytes = rustix::param::page_size() as f64;
    // A kernel without swap counts no pages of it.
    let swap = system.swap.unwrap_or_default();
    Some(Memory {
        free_bytes: memory.free_bytes as u64,
        shared_bytes: memory.shared_bytes as u64,
        buffered_bytes: memory.buffers_bytes as u64,
        cached_bytes: memory.cached_bytes as u64,
        swap_used_bytes: (memory.swap_total_bytes - memory.swap_free_bytes).max(0.0) as u64,
        swap_in_bytes_per_second: swap.in_pages_per_second * page_bytes,
        swap_out_bytes_per_second: swap.out_pages_per_second * page_bytes,
    })
}

/// All interfaces together but the loopback; `None` where nothing is known of any.
fn network(interfaces: &BTreeMap<String, NetworkRates>) -> Option<Network> {
    let mut sum = Network::default();
    for (_, rates) in interfaces.iter().filter(|(name, _)| *name != LOOPBACK) {
        sum.packets_in_per_second += rates.receive_packets_per_second;
        sum.packets_out_per_second += rates.transmit_packets_per_second;
        sum.bytes_in_per_second += rates.receive_bytes_per_second;
        sum.bytes_out_per_second += rates.transmit_bytes_per_second;
    }
    (!interfaces.is_empty()).then_some(sum)
}

fn disks(system: &SystemSample) -> BTreeMap<String, Disk> {
    let disk = |(name, rates): (&String, &DiskRates)| {
        // Kernels before 4.18 and 5.5 do not count them.
        let discards = system.discards.get(name).copied().unwrap_or_default();
        let flushes = system.flushes.get(name).copied().unwrap_or_default();
        let disk = Disk {
            reads_per_second: rates.reads_per_second,
            writes_per_second: rates.writes_per_second,
            trims_per_second: discards.discards_per_second,
            flushes_per_second: flushes.flushes_per_second,
            read_bytes_per_second: rates.read_bytes_per_second,
            write_bytes_per_second: rates.write_bytes_per_second,
            trim_bytes_per_second: discards.discard_bytes_per_second,
            read_latency_ns_mean: rates.read_latency_ns_mean(),
            write_latency_ns_mean: rates.write_latency_ns_mean(),
            busy_share: rates.busy_fraction,
            in_flight_mean: rates.requests_in_flight_mean,
        };
        (name.clone(), disk)
    };
    system.disks.iter().map(disk).collect()
}

fn power(system: &SystemSample) -> Option<Vec<SensorPower>> {
    let all = system.power.iter();
    let all: Vec<SensorPower> = all
        .map(|(sensor, level)| SensorPower { sensor: sensor.clone(), watts: level.watts })
        .collect();
    (!all.is_empty()).then_some(all)
}

fn moved(system: &SystemSample, disk: &str) -> Option<Moved> {
    let rates = system.disks.get(disk)?;
    // The rates are quotients of these whole numbers and the time: rounding gives them back below 2^52.
    let amount = |rate: f64| (rate * rates.covered_ns as f64 / 1e9).round() as u64;
    Some(Moved {
        reads: amount(rates.reads_per_second),
        writes: amount(rates.writes_per_second),
        read_bytes: amount(rates.read_bytes_per_second),
        write_bytes: amount(rates.write_bytes_per_second),
    })
}

#[cfg(test)]
mod tests {
    use ssdyno_prober::{CpuFractions, DiscardRates, MemoryLevels, SensorLevel, SwapRates};

    use super::*;

    fn named<T>(name: &str, value: T) -> BTreeMap<String, T> {
        BTreeMap::from([(name.to_owned(), value)])
    }

    #[test]
    fn a_sample_has_the_figures_of_the_prober() {
        let disk = DiskRates {
            covered_ns: 3_000_000_000,
            reads_per_second: 100.0 / 3.0,
            read_bytes_per_second: 409_600.0 / 3.0,
            read_seconds_per_second: 0.5 / 3.0,
            busy_fraction: 0.5,
            requests_in_flight_mean: 4.0,
            ..DiskRates::default()
        };
        let discards = DiscardRates {
            discards_per_second: 2.0,
            discard_bytes_per_second: 8192.0,
            ..DiscardRates::default()
        };
        let system = SystemSample {
            cpu: Some(CpuFractions {
                user_fraction: 0.25,
                nice_fraction: 0.25,
                steal_fraction: 0.125,
                idle_fraction: 0.375,
                ..CpuFractions::default()
            }),
            memory: Some(MemoryLevels {
                swap_total_bytes: 9.0,
                swap_free_bytes: 4.0,
                ..MemoryLevels::default()
            }),
            swap: Some(SwapRates { in_pages_per_second: 2.0, ..SwapRates::default() }),
            disks: named("sda", disk),
            discards: named("sda", discards),
            power: named("dram", SensorLevel { watts: 2.5, ..SensorLevel::default() }),
            ..SystemSample::default()
        };
        let found = sample(&system);
        let cpu = found.cpu.unwrap();
        assert_eq!((cpu.user, cpu.steal, cpu.idle, cpu.busy()), (0.5, 0.125, 0.375, 0.625));
        let memory = found.memory.unwrap();
        assert_eq!(memory.swap_used_bytes, 5);
        assert_eq!(memory.swap_in_bytes_per_second, 2.0 * rustix::param::page_size() as f64);
        let disk = found.disks["sda"];
        // 500 ms over 100 reads; nothing was written.
        assert!((disk.read_latency_ns_mean.unwrap() - 5e6).abs() < 1e-6);
        assert_eq!((disk.write_latency_ns_mean, disk.busy_share), (None, 0.5));
        assert_eq!((disk.trims_per_second, disk.trim_bytes_per_second), (2.0, 8192.0));
        assert_eq!((disk.flushes_per_second, disk.in_flight_mean), (0.0, 4.0));
        assert_eq!(found.power.unwrap(), [SensorPower { sensor: "dram".to_owned(), watts: 2.5 }]);
        assert_eq!((found.network, found.interrupts_per_second), (None, None));
        let moved_bytes = moved(&system, "sda").unwrap();
        assert_eq!((moved_bytes.reads, moved_bytes.read_bytes), (100, 409_600));
        assert_eq!(moved(&system, "sdb"), None);
    }

    #[test]
    fn interfaces_are_added_without_the_loopback() {
        let rates = |bytes| NetworkRates {
            receive_bytes_per_second: bytes,
            transmit_packets_per_second: 1.0,
            ..NetworkRates::default()
        };
        let mut all = named(LOOPBACK, rates(100.0));
        assert_eq!(network(&all), Some(Network::default()));
        all.extend([("eth0".to_owned(), rates(1.0)), ("eth1".to_owned(), rates(2.0))]);
        let sum = network(&all).unwrap();
        assert_eq!((sum.bytes_in_per_second, sum.packets_out_per_second), (3.0, 2.0));
    }
}
