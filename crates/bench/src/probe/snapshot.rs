//! The machine's counters at one moment, and the difference of two of them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use procfs::{Current, CurrentSI};

use ssdyno_result::probe::{CpuShares, Disk, Memory, Moved, Network, Sample, SensorPower as Power};

/// Sectors of /proc/diskstats, whatever the device's own.
const SECTOR_BYTES: u64 = 512;

/// Counters as the kernel keeps them; each only grows.
#[derive(Clone, Debug, Default)]
pub(super) struct Snapshot {
    /// On the clock of the run.
    pub(super) at: Duration,
    /// Ticks: user, system, irq, softirq, iowait, steal, idle.
    cpu: Option<[u64; 7]>,
    interrupts: Option<u64>,
    context_switches: Option<u64>,
    memory: Option<Memory>,
    /// Pages in and out.
    swapped: Option<[u64; 2]>,
    /// Packets in and out, bytes in and out.
    network: Option<[u64; 4]>,
    /// Block devices by the kernel's names for them.
    disks: BTreeMap<String, DiskCounters>,
    /// Sensors that count energy: microjoules, and where they wrap.
    energy: BTreeMap<String, (u64, u64)>,
    /// Sensors that tell power, in watts.
    power: BTreeMap<String, f64>,
}

/// What the kernel counts for a block device (Documentation/admin-guide/iostats.rst).
#[derive(Clone, Copy, Debug, Default)]
struct DiskCounters {
    reads: u64,
    writes: u64,
    trims: u64,
    flushes: u64,
    sectors_read: u64,
    sectors_written: u64,
    sectors_trimmed: u64,
    /// Time that reads took, all together.
    read_ms: u64,
    write_ms: u64,
    /// Time with anything in flight.
    busy_ms: u64,
    /// The same, multiplied with how many were in flight.
    weighted_ms: u64,
}

impl DiskCounters {
    fn of(device: &procfs::DiskStat) -> DiskCounters {
        DiskCounters {
            reads: device.reads,
            writes: device.writes,
            trims: device.discards.unwrap_or(0),
            flushes: device.flushes.unwrap_or(0),
            sectors_read: device.sectors_read,
            sectors_written: device.sectors_written,
            sectors_trimmed: device.sectors_discarded.unwrap_or(0),
            read_ms: device.time_reading,
            write_ms: device.time_writing,
            busy_ms: device.time_in_progress,
            weighted_ms: device.weighted_time_in_progress,
        }
    }

    /// From `self` to `later`, `seconds` after it.
    fn until(&self, later: &DiskCounters, seconds: f64) -> Disk {
        let since = |pick: fn(&DiskCounters) -> u64| pick(later).saturating_sub(pick(self)) as f64;
        let rate = |pick| if seconds > 0.0 { since(pick) / seconds } else { 0.0 };
        let sectors = |pick| rate(pick) * SECTOR_BYTES as f64;
        let wait_ns = |time_ms, requests| {
            let requests = since(requests);
            (requests > 0.0).then(|| since(time_ms) * 1e6 / requests)
        };
        Disk {
            reads_per_second: rate(|c| c.reads),
            writes_per_second: rate(|c| c.writes),
            trims_per_second: rate(|c| c.trims),
            flushes_per_second: rate(|c| c.flushes),
            read_bytes_per_second: sectors(|c| c.sectors_read),
            write_bytes_per_second: sectors(|c| c.sectors_written),
            trim_bytes_per_second: sectors(|c| c.sectors_trimmed),
            read_latency_ns_mean: wait_ns(|c| c.read_ms, |c| c.reads),
            write_latency_ns_mean: wait_ns(|c| c.write_ms, |c| c.writes),
            // The kernel counts whole milliseconds, at other moments than we do.
            busy_share: (rate(|c| c.busy_ms) / 1e3).min(1.0),
            in_flight_mean: rate(|c| c.weighted_ms) / 1e3,
        }
    }
}

impl Snapshot {
    /// One that says nothing.
    pub(super) fn empty(at: Duration) -> Snapshot {
        Snapshot { at, ..Snapshot::default() }
    }

    /// Reads everything; `disks` are names of block devices in the kernel.
    pub(super) fn take(at: Duration, disks: &[String], sensors: &Sensors) -> Snapshot {
        let mut now = Snapshot::empty(at);
        if let Ok(stat) = procfs::KernelStats::current() {
            let total = &stat.total;
            let or_zero = |ticks: Option<u64>| ticks.unwrap_or(0);
            now.cpu = Some([
                total.user + total.nice,
                total.system,
                or_zero(total.irq),
                or_zero(total.softirq),
                or_zero(total.iowait),
                or_zero(total.steal),
                total.idle,
            ]);
            now.context_switches = Some(stat.ctxt);
        }
        now.interrupts = interrupts();
        now.read_memory();
        if let Ok(all) = procfs::net::dev_status() {
            let mut sums = [0; 4];
            for device in all.values().filter(|device| device.name != "lo") {
                let own = [
                    device.recv_packets,
                    device.sent_packets,
                    device.recv_bytes,
                    device.sent_bytes,
                ];
                sums.iter_mut().zip(own).for_each(|(sum, own)| *sum += own);
            }
            now.network = Some(sums);
        }
        // Reading them takes time that grows with the number of devices: not for nothing.
        if !disks.is_empty()
            && let Ok(all) = procfs::diskstats()
        {
            let wanted = all.iter().filter(|device| disks.contains(&device.name));
            now.disks = wanted.map(|d| (d.name.clone(), DiskCounters::of(d))).collect();
        }
        (now.energy, now.power) = sensors.read();
        now
    }

    fn read_memory(&mut self) {
        if let Ok(memory) = procfs::Meminfo::current() {
            self.memory = Some(Memory {
                free_bytes: memory.mem_free,
                shared_bytes: memory.shmem.unwrap_or(0),
                buffered_bytes: memory.buffers,
                cached_bytes: memory.cached,
                swap_used_bytes: memory.swap_total.saturating_sub(memory.swap_free),
                ..Memory::default()
            });
        }
        if let Ok(all) = procfs::vmstat() {
            let count = |name| all.get(name).map_or(0, |count| (*count).max(0) as u64);
            self.swapped = Some([count("pswpin"), count("pswpout")]);
        }
    }

    /// What happened from `self` to `later`.
    pub(super) fn until(&self, later: &Snapshot) -> Sample {
        let length_seconds = later.at.saturating_sub(self.at).as_secs_f64();
        // Two snapshots in one tick of the clock: nothing can be said about rates.
        let rate = |before: u64, after: u64| match length_seconds {
            0.0 => 0.0,
            seconds => after.saturating_sub(before) as f64 / seconds,
        };
        let rates = |before: Option<u64>, after: Option<u64>| Some(rate(before?, after?));
        let memory = later.memory.map(|memory| {
            let page = rustix::param::page_size() as f64;
            let [inwards, outwards] = match (self.swapped, later.swapped) {
                (Some(a), Some(b)) => [0, 1].map(|at| rate(a[at], b[at]) * page),
                _ => [0.0; 2],
            };
            Memory {
                swap_in_bytes_per_second: inwards,
                swap_out_bytes_per_second: outwards,
                ..memory
            }
        });
        Sample {
            start_seconds: self.at.as_secs_f64(),
            length_seconds,
            cpu: self.cpu.zip(later.cpu).and_then(|(a, b)| cpu_shares(a, b)),
            interrupts_per_second: rates(self.interrupts, later.interrupts),
            context_switches_per_second: rates(self.context_switches, later.context_switches),
            memory,
            network: self.network.zip(later.network).map(|(a, b)| {
                let [packets_in, packets_out, bytes_in, bytes_out] =
                    [0, 1, 2, 3].map(|at| rate(a[at], b[at]));
                Network {
                    packets_in_per_second: packets_in,
                    packets_out_per_second: packets_out,
                    bytes_in_per_second: bytes_in,
                    bytes_out_per_second: bytes_out,
                }
            }),
            disk: None,
            disks: self.disks_until(later, length_seconds),
            power: self.power_until(later, length_seconds),
        }
    }

    /// Each block device that is in both.
    fn disks_until(&self, later: &Snapshot, seconds: f64) -> BTreeMap<String, Disk> {
        let both = self.disks.iter().filter_map(|(name, before)| {
            Some((name.clone(), before.until(later.disks.get(name)?, seconds)))
        });
        both.collect()
    }

    /// What the device `disk` moved from `self` to `later`, by its own account.
    pub(super) fn moved_until(&self, later: &Snapshot, disk: &str) -> Option<Moved> {
        let (before, after) = (self.disks.get(disk)?, later.disks.get(disk)?);
        let since = |pick: fn(&DiskCounters) -> u64| pick(after).saturating_sub(pick(before));
        Some(Moved {
            reads: since(|c| c.reads),
            writes: since(|c| c.writes),
            read_bytes: since(|c| c.sectors_read) * SECTOR_BYTES,
            write_bytes: since(|c| c.sectors_written) * SECTOR_BYTES,
        })
    }

    fn power_until(&self, later: &Snapshot, seconds: f64) -> Option<Vec<Power>> {
        let counted = later.energy.iter().filter_map(|(sensor, (after, wraps_at))| {
            let (before, _) = self.energy.get(sensor)?;
            let microjoules = match after.checked_sub(*before) {
                Some(difference) => difference,
                None => (wraps_at - before) + after,
            };
            let watts = if seconds > 0.0 { microjoules as f64 / 1e6 / seconds } else { 0.0 };
            Some(Power { sensor: sensor.clone(), watts })
        });
        // What tells power itself: the mean of both ends.
        let told = later.power.iter().filter_map(|(sensor, after)| {
            let before = self.power.get(sensor)?;
            Some(Power { sensor: sensor.clone(), watts: (before + after) / 2.0 })
        });
        let all: Vec<Power> = counted.chain(told).collect();
        (!all.is_empty()).then_some(all)
    }
}

/// `None` where no tick passed.
fn cpu_shares(before: [u64; 7], after: [u64; 7]) -> Option<CpuShares> {
    let mut ticks = [0; 7];
    for (at, tick) in ticks.iter_mut().enumerate() {
        // Idle times may go back a little (proc_stat(5)).
        *tick = after[at].saturating_sub(before[at]);
    }
    let all: u64 = ticks.iter().sum();
    let [user, system, irq, softirq, iowait, steal, idle] =
        ticks.map(|tick| tick as f64 / all as f64);
    (all > 0).then_some(CpuShares { user, system, irq, softirq, iowait, steal, idle })
}

/// The first number of the line `intr`: all interrupts since the start.
fn interrupts() -> Option<u64> {
    let text = fs::read_to_string("/proc/stat").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("intr "))?;
    line.split(' ').next()?.parse().ok()
}

/// Where the machine tells of power.
#[derive(Clone, Debug, Default)]
pub(super) struct Sensors {
    /// Directories of RAPL zones (Documentation/power/powercap/powercap.rst).
    zones: Vec<(String, PathBuf)>,
    /// Files in microwatts (Documentation/hwmon/sysfs-interface.rst).
    meters: Vec<(String, PathBuf)>,
}

impl Sensors {
    /// Looks below `sys`, normally `/sys`.
    pub(super) fn find(sys: &Path) -> Sensors {
        let mut sensors = Sensors::default();
        for zone in directories(&sys.join("class/powercap")) {
            if let (Some(name), true) = (text(&zone.join("name")), zone.join("energy_uj").exists())
            {
                let place = zone.file_name().unwrap_or_default().to_string_lossy().into_owned();
                sensors.zones.push((format!("{name} ({place})"), zone));
            }
        }
        for monitor in directories(&sys.join("class/hwmon")) {
            let name = text(&monitor.join("name")).unwrap_or_else(|| "hwmon".to_owned());
            for number in 1..=16 {
                let file = ["input", "average"].map(|kind| format!("power{number}_{kind}"));
                let file = file.map(|file| monitor.join(file)).into_iter().find(|f| f.exists());
                if let Some(file) = file {
                    sensors.meters.push((format!("{name} power{number}"), file));
                }
            }
        }
        sensors
    }

    fn read(&self) -> (BTreeMap<String, (u64, u64)>, BTreeMap<String, f64>) {
        let number = |path: PathBuf| text(&path)?.parse::<u64>().ok();
        let energy = self.zones.iter().filter_map(|(name, zone)| {
            let wraps_at = number(zone.join("max_energy_range_uj")).unwrap_or(u64::MAX);
            Some((name.clone(), (number(zone.join("energy_uj"))?, wraps_at)))
        });
        let power = self
            .meters
            .iter()
            .filter_map(|(name, file)| Some((name.clone(), number(file.clone())? as f64 / 1e6)));
        (energy.collect(), power.collect())
    }
}

fn directories(path: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort_unstable();
    paths
}

fn text(path: &Path) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_sum_to_one_and_nothing_is_said_of_no_time() {
        let shares = cpu_shares([0; 7], [10, 20, 1, 2, 3, 4, 60]).unwrap();
        let sum = shares.busy() + shares.idle + shares.iowait;
        assert!((sum - 1.0).abs() < 1e-12 && (shares.user - 0.1).abs() < 1e-12);
        assert_eq!(cpu_shares([5; 7], [5; 7]), None);
    }

    #[test]
    fn rates_are_differences_by_time() {
        let at = |at, disk| Snapshot {
            at: Duration::from_millis(at),
            disks: BTreeMap::from([("sda".to_owned(), disk)]),
            interrupts: Some(at * 3),
            ..Snapshot::default()
        };
        let before = DiskCounters {
            reads: 100,
            writes: 50,
            sectors_read: 800,
            sectors_written: 400,
            read_ms: 7,
            busy_ms: 10,
            weighted_ms: 20,
            ..DiskCounters::default()
        };
        let after = DiskCounters {
            reads: 300,
            sectors_read: 2400,
            read_ms: 507,
            busy_ms: 1010,
            weighted_ms: 8020,
            trims: 4,
            sectors_trimmed: 32,
            flushes: 2,
            ..before
        };
        let sample = at(1000, before).until(&at(3000, after));
        let disk = sample.disks["sda"];
        assert_eq!(disk.reads_per_second, 100.0);
        assert_eq!(disk.read_bytes_per_second, 800.0 * 512.0);
        assert_eq!((disk.busy_share, disk.in_flight_mean), (0.5, 4.0));
        // 500 ms over 200 reads; nothing was written.
        assert_eq!(disk.read_latency_ns_mean, Some(2_500_000.0));
        assert_eq!(disk.write_latency_ns_mean, None);
        assert_eq!((disk.trims_per_second, disk.flushes_per_second), (2.0, 1.0));
        assert_eq!(disk.trim_bytes_per_second, 16.0 * 512.0);
        let moved = at(1000, before).moved_until(&at(3000, after), "sda").unwrap();
        assert_eq!((moved.reads, moved.read_bytes), (200, 1600 * 512));
        assert_eq!(at(1000, before).moved_until(&at(3000, after), "sdb"), None);
        assert_eq!(sample.interrupts_per_second, Some(3000.0));
        assert_eq!((sample.start_seconds, sample.length_seconds), (1.0, 2.0));
        assert_eq!((sample.cpu, sample.power), (None, None));
    }

    #[test]
    fn counters_of_energy_wrap() {
        let dir = tempfile::tempdir().unwrap();
        let zone = dir.path().join("class/powercap/intel-rapl:0");
        fs::create_dir_all(&zone).unwrap();
        let write = |name: &str, text: &str| fs::write(zone.join(name), text).unwrap();
        write("name", "package-0\n");
        write("max_energy_range_uj", "1000000000\n");
        write("energy_uj", "999000000\n");
        let sensors = Sensors::find(dir.path());
        let before = Snapshot::take(Duration::ZERO, &[], &sensors);
        write("energy_uj", "4000000\n");
        let after = Snapshot::take(Duration::from_secs(2), &[], &sensors);
        let power = before.until(&after).power.unwrap();
        assert_eq!(power.len(), 1);
        assert_eq!(power[0].sensor, "package-0 (intel-rapl:0)");
        assert_eq!(power[0].watts, 2.5);
    }
}
