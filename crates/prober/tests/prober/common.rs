//! A machine whose files the test writes.

use std::fs;
use std::path::PathBuf;

use ssdyno_prober::{Sources, SystemCounters, SystemSample};

pub(crate) const STAT: &str = "\
cpu  100 10 50 1000 40 5 6 7 3 1
cpu0 60 4 20 500 20 5 3 4 3 1
cpu1 40 6 30 500 20 0 3 3 0 0
intr 5000 1 2 3
ctxt 70000
btime 1795642696
processes 300
procs_running 3
procs_blocked 1
softirq 9 1 2
";

pub(crate) const MEMINFO: &str = "\
MemTotal:       1000 kB
MemFree:         100 kB
MemAvailable:    600 kB
Buffers:          50 kB
Cached:          400 kB
SwapCached:        0 kB
SwapTotal:       200 kB
SwapFree:        150 kB
Shmem:            30 kB
HugePages_Total:   0
";

pub(crate) const NET_HEADER: &str = "\
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
";

/// A machine with two cores, one interface and one disk.
pub(crate) struct Machine {
    dir: tempfile::TempDir,
}

impl Machine {
    pub(crate) fn new() -> Machine {
        let machine = Machine { dir: tempfile::tempdir().unwrap() };
        machine.write("proc/stat", STAT);
        machine.write("proc/meminfo", MEMINFO);
        machine.write("proc/vmstat", "nr_free_pages 9\npswpin 10\npswpout 20\n");
        machine.network("eth0: 1000 10 1 2 0 0 0 0 2000 20 3 4 0 0 0 0");
        machine
            .write("proc/diskstats", "8 0 sda 100 1 800 50 200 2 1600 90 3 70 140 0 0 0 0 5 6\n");
        machine
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn network(&self, lines: &str) {
        self.write("proc/net/dev", format!("{NET_HEADER}{lines}\n"));
    }

    pub(crate) fn zone(&self, microjoules: u64) {
        self.write("sys/class/powercap/intel-rapl:0/name", "package-0\n");
        self.write("sys/class/powercap/intel-rapl:0/max_energy_range_uj", "262143328850\n");
        self.write("sys/class/powercap/intel-rapl:0/energy_uj", format!("{microjoules}\n"));
    }

    pub(crate) fn read(&self) -> SystemCounters {
        SystemCounters::read(&Sources { proc: self.path("proc"), sys: self.path("sys") })
    }

    /// What the machine did from now on, until `change` has been made.
    pub(crate) fn sample(&self, change: impl FnOnce(&Machine)) -> SystemSample {
        let before = self.read();
        assert_eq!(before.errors(), []);
        change(self);
        let after = self.read();
        assert_eq!(after.errors(), []);
        after.since(&before)
    }
}

/// The amount of which `rate` is the rate over `covered_ns`. Rates are quotients of doubles: within 1e-12.
pub(crate) fn amount(rate: f64, covered_ns: u64) -> f64 {
    let amount = rate * covered_ns as f64 / 1e9;
    if (amount - amount.round()).abs() <= 1e-12 * amount.abs().max(1.0) {
        amount.round()
    } else {
        amount
    }
}
