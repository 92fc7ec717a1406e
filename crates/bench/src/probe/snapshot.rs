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
    /// Reads, writes, sectors read and written, ms busy, ms weighted.
    disk: Option<[u64; 6]>,
    /// Sensors that count energy: microjoules, and where they wrap.
    energy: BTreeMap<String, (u64, u64)>,
    /// Sensors that tell power, in watts.
    power: BTreeMap<String, f64>,
}

impl Snapshot {
    /// One that says nothing.
    pub(super) fn empty(at: Duration) -> Snapshot {
        Snapshot { at, ..Snapshot::default() }
    }

    /// Reads everything; `disk` is the name of the device in the kernel.
    pub(super) fn take(at: Duration, disk: Option<&str>, sensors: &Sensors) -> Snapshot {
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
        if let (Some(name), Ok(all)) = (disk, procfs::diskstats()) {
            now.disk = all.iter().find(|device| device.name == name).map(|device| {
                [
                    device.reads,
                    device.writes,
                    device.sectors_read,
                    device.sectors_written,
                    device.time_in_progress,
                    device.weighted_time_in_progress,
                ]
            });
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
            disk: self.disk.zip(later.disk).map(|(a, b)| {
                let [reads, writes, sectors_read, sectors_written, busy_ms, weighted_ms] =
                    [0, 1, 2, 3, 4, 5].map(|at| rate(a[at], b[at]));
                Disk {
                    reads_per_second: reads,
                    writes_per_second: writes,
                    read_bytes_per_second: sectors_read * SECTOR_BYTES as f64,
                    write_bytes_per_second: sectors_written * SECTOR_BYTES as f64,
                    // The kernel counts whole milliseconds, at other moments than we do.
                    busy_share: (busy_ms / 1e3).min(1.0),
                    in_flight_mean: weighted_ms / 1e3,
                }
            }),
            power: self.power_until(later, length_seconds),
        }
    }

    /// What the device moved from `self` to `later`, by its own account.
    pub(super) fn moved_until(&self, later: &Snapshot) -> Option<Moved> {
        let (before, after) = (self.disk?, later.disk?);
        let since = |at: usize| after[at].saturating_sub(before[at]);
        Some(Moved {
            reads: since(0),
            writes: since(1),
            read_bytes: since(2) * SECTOR_BYTES,
            write_bytes: since(3) * SECTOR_BYTES,
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
            disk: Some(disk),
            interrupts: Some(at * 3),
            ..Snapshot::default()
        };
        let sample = at(1000, [100, 50, 800, 400, 10, 20])
            .until(&at(3000, [300, 50, 2400, 400, 1010, 8020]));
        let disk = sample.disk.unwrap();
        assert_eq!(disk.reads_per_second, 100.0);
        assert_eq!(disk.read_bytes_per_second, 800.0 * 512.0);
        assert_eq!((disk.busy_share, disk.in_flight_mean), (0.5, 4.0));
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
        let before = Snapshot::take(Duration::ZERO, None, &sensors);
        write("energy_uj", "4000000\n");
        let after = Snapshot::take(Duration::from_secs(2), None, &sensors);
        let power = before.until(&after).power.unwrap();
        assert_eq!(power.len(), 1);
        assert_eq!(power[0].sensor, "package-0 (intel-rapl:0)");
        assert_eq!(power[0].watts, 2.5);
    }
}
