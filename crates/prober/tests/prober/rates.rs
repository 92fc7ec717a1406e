//! Rates in closed form, and counters that wrap, are reset, come and go.

use crate::common::{Machine, NET_HEADER, STAT, amount};

#[test]
fn cpu_fractions_are_quotients_of_ticks() {
    let sample = Machine::new().sample(|machine| {
        // 100 ticks: 20 user, 10 nice, 15 system, 30 idle, 10 iowait, 5 irq, 4 softirq, 6 steal; and core 1 alone.
        let stat = STAT
            .replace("cpu  100 10 50 1000 40 5 6 7", "cpu  120 20 65 1030 50 10 10 13")
            .replace("cpu1 40 6 30 500 20 0 3 3", "cpu1 40 6 30 525 20 0 3 78");
        machine.write("proc/stat", stat);
    });
    let cpu = sample.cpu.unwrap();
    let found = [
        cpu.user_fraction,
        cpu.nice_fraction,
        cpu.system_fraction,
        cpu.idle_fraction,
        cpu.iowait_fraction,
        cpu.irq_fraction,
        cpu.softirq_fraction,
        cpu.steal_fraction,
    ];
    assert_eq!(found, [0.20, 0.10, 0.15, 0.30, 0.10, 0.05, 0.04, 0.06]);
    assert!((cpu.busy_fraction() - 0.54).abs() < 1e-12);
    // No tick passed on core 0: nothing is known of it.
    assert_eq!(sample.cores.keys().collect::<Vec<_>>(), [&1]);
    assert_eq!((sample.cores[&1].idle_fraction, sample.cores[&1].steal_fraction), (0.25, 0.75));
}

#[test]
fn kernel_and_memory_figures() {
    let sample = Machine::new().sample(|machine| {
        let stat = STAT.replace("intr 5000", "intr 5600").replace("ctxt 70000", "ctxt 70900");
        let stat = stat.replace("processes 300", "processes 307");
        machine.write("proc/stat", stat.replace("procs_running 3", "procs_running 9"));
        machine.write("proc/vmstat", "pswpin 14\npswpout 25\n");
    });
    let activity = sample.activity.unwrap();
    let ns = activity.covered_ns;
    assert_eq!(amount(activity.interrupts_per_second, ns), 600.0);
    assert_eq!(amount(activity.context_switches_per_second, ns), 900.0);
    assert_eq!(amount(activity.forks_per_second, ns), 7.0);
    assert_eq!((activity.processes_running, activity.processes_blocked), (9.0, 1.0));
    let memory = sample.memory.unwrap();
    let kib = [
        (memory.total_bytes, 1000.0),
        (memory.free_bytes, 100.0),
        (memory.available_bytes, 600.0),
        (memory.shared_bytes, 30.0),
        (memory.buffers_bytes, 50.0),
        (memory.cached_bytes, 400.0),
        (memory.swap_total_bytes, 200.0),
        (memory.swap_free_bytes, 150.0),
    ];
    assert!(kib.iter().all(|(bytes, kib)| *bytes == kib * 1024.0), "{memory:?}");
    let swap = sample.swap.unwrap();
    assert_eq!(amount(swap.in_pages_per_second, swap.covered_ns), 4.0);
    assert_eq!(amount(swap.out_pages_per_second, swap.covered_ns), 5.0);
}

#[test]
fn network_and_disk_figures() {
    let sample = Machine::new().sample(|machine| {
        machine.network("eth0:1100 12 4 6 9 9 9 9 2500 27 9 12 9 9 9 9");
        // 10 reads of 80 sectors in 5 ms, 20 writes of 160 sectors in 9 ms, 8 in flight, a flush in 2 ms.
        machine
            .write("proc/diskstats", "8 0 sda 110 1 880 55 220 2 1760 99 8 70 152 3 0 24 1 6 8\n");
    });
    let network = sample.interfaces["eth0"];
    let found = [
        network.receive_bytes_per_second,
        network.receive_packets_per_second,
        network.receive_errors_per_second,
        network.receive_drops_per_second,
        network.transmit_bytes_per_second,
        network.transmit_packets_per_second,
        network.transmit_errors_per_second,
        network.transmit_drops_per_second,
    ];
    let found = found.map(|rate| amount(rate, network.covered_ns));
    assert_eq!(found, [100.0, 2.0, 3.0, 4.0, 500.0, 7.0, 6.0, 8.0]);
    let disk = sample.disks["sda"];
    let found = [
        disk.reads_per_second,
        disk.read_bytes_per_second,
        disk.read_seconds_per_second * 1e3,
        disk.writes_per_second,
        disk.write_bytes_per_second,
        disk.write_seconds_per_second * 1e3,
        disk.requests_in_flight_mean * 1e3,
    ];
    let found = found.map(|rate| amount(rate, disk.covered_ns));
    assert_eq!(found, [10.0, 40960.0, 5.0, 20.0, 81920.0, 9.0, 12.0]);
    assert_eq!((disk.requests_in_flight, disk.busy_fraction), (8.0, 0.0));
    assert!((disk.read_latency_ns_mean().unwrap() - 500_000.0).abs() < 1e-6);
    assert!((disk.write_latency_ns_mean().unwrap() - 450_000.0).abs() < 1e-6);
    let discards = sample.discards["sda"];
    assert_eq!(amount(discards.discards_per_second, discards.covered_ns), 3.0);
    assert_eq!(amount(discards.discard_bytes_per_second, discards.covered_ns), 24.0 * 512.0);
    let flushes = sample.flushes["sda"];
    assert_eq!(amount(flushes.flushes_per_second, flushes.covered_ns), 1.0);
}

#[test]
fn what_was_reset_is_missing_and_what_wraps_is_not() {
    let machine = Machine::new();
    // Milliseconds wrap after 2^32: 296 ms before, 5 after.
    machine.write("proc/diskstats", "8 0 sda 100 1 800 4294967000 1 1 1 1 0 1 1\n");
    let sample = machine.sample(|machine| {
        machine.write("proc/diskstats", "8 0 sda 102 1 800 5 1 1 1 1 0 1 1\n");
        // Fewer packets, but more bytes than before.
        machine.network("eth0: 9000 2 1 2 0 0 0 0 9000 20 3 4 0 0 0 0");
        machine.write("proc/stat", STAT.replace("ctxt 70000", "ctxt 12"));
    });
    let disk = sample.disks["sda"];
    assert!((amount(disk.read_seconds_per_second, disk.covered_ns) - 0.301).abs() < 1e-9);
    assert!(sample.interfaces.is_empty(), "{:?}", sample.interfaces);
    assert_eq!((sample.activity, sample.flushes.len()), (None, 0));
    // Another device of the same name, and one whose times went back without a wrap.
    for line in [
        "8 16 sda 900 1 9000 60 900 2 9000 90 3 70 140",
        "8 0 sda 100 1 800 49 200 2 1600 90 3 70 140",
    ] {
        let sample = Machine::new().sample(|machine| machine.write("proc/diskstats", line));
        assert!(sample.disks.is_empty(), "{line}: {:?}", sample.disks);
    }
}

#[test]
fn idle_time_may_go_back_a_little_but_not_be_reset() {
    let with = |cpu: &str| STAT.replace("cpu  100 10 50 1000 40", cpu);
    let sample = Machine::new().sample(|m| m.write("proc/stat", with("cpu  110 10 50 1010 38")));
    let cpu = sample.cpu.unwrap();
    assert_eq!((cpu.user_fraction, cpu.idle_fraction, cpu.iowait_fraction), (0.5, 0.5, 0.0));
    for reset in ["cpu  110 10 50 900 40", "cpu  110 10 49 1100 40"] {
        let sample = Machine::new().sample(|m| m.write("proc/stat", with(reset)));
        assert_eq!(sample.cpu, None, "{reset}");
    }
}

#[test]
fn interfaces_disks_and_cores_come_and_go() {
    let eth0 = "eth0: 1000 10 1 2 0 0 0 0 2000 20 3 4 0 0 0 0\n";
    let eth1 = "eth1: 70000 10 1 2 0 0 0 0 2000 20 3 4 0 0 0 0\n";
    let machine = Machine::new();
    let plugged = machine.sample(|machine| {
        machine.network(format!("{eth0}{eth1}").trim_end());
        machine.write("proc/stat", STAT.replace("cpu1 40", "cpu7 40"));
        machine.write("proc/diskstats", "");
    });
    // A rate of the new one would be all that it did since it began, over one interval.
    assert_eq!(plugged.interfaces.keys().collect::<Vec<_>>(), ["eth0"]);
    assert!(plugged.disks.is_empty() && plugged.cores.is_empty());
    let both = machine.sample(|_| ());
    assert_eq!(both.interfaces.keys().collect::<Vec<_>>(), ["eth0", "eth1"]);
    assert_eq!(both.interfaces["eth1"].receive_bytes_per_second, 0.0);
    let unplugged = machine.sample(|machine| machine.write("proc/net/dev", NET_HEADER));
    assert!(unplugged.interfaces.is_empty());
}

#[test]
fn energy_wraps_where_the_zone_says_so() {
    let machine = Machine::new();
    assert!(machine.sample(|_| ()).power.is_empty(), "a missing zone is not an error");
    machine.zone(262_143_328_000);
    let sample = machine.sample(|machine| {
        std::thread::sleep(std::time::Duration::from_millis(2));
        machine.zone(1_150);
    });
    let zone = sample.power["package-0 (intel-rapl:0)"];
    let microjoules = zone.watts * zone.covered_ns as f64 / 1e3;
    assert!((microjoules - 2_000.0).abs() < 1e-6, "{microjoules}");
    // A counter that was reset to 0 in the middle of its range, within milliseconds: no machine draws so much.
    machine.zone(131_000_000_000);
    assert!(machine.sample(|machine| machine.zone(0)).power.is_empty());
}

#[test]
fn sensors_of_hwmon_have_the_mean_of_both_ends() {
    let machine = Machine::new();
    machine.write("sys/class/hwmon/hwmon3/name", "power_meter\n");
    // Not a sensor, not power, and the second file of sensor 1.
    for file in ["power_x_input", "temp1_input", "power1_input", "power1_cap"] {
        machine.write(&format!("sys/class/hwmon/hwmon3/{file}"), "1\n");
    }
    let meter = |machine: &Machine, microwatts: &str| {
        machine.write("sys/class/hwmon/hwmon3/power1_average", microwatts);
    };
    meter(&machine, "30000000\n");
    let sample = machine.sample(|machine| meter(machine, "50000000\n"));
    assert_eq!(sample.power.len(), 1);
    assert_eq!(sample.power["power_meter power1"].watts, 40.0);
}

/// A driver has one monitor for each of its cards.
#[test]
fn two_cards_of_one_driver_are_two_sensors() {
    let machine = Machine::new();
    for (place, name, microwatts) in [
        ("hwmon1", "amdgpu", "5000000"),
        ("hwmon2", "amdgpu", "7000000"),
        ("hwmon4", "psu", "9000000"),
    ] {
        machine.write(&format!("sys/class/hwmon/{place}/name"), format!("{name}\n"));
        machine
            .write(&format!("sys/class/hwmon/{place}/power1_average"), format!("{microwatts}\n"));
    }
    let sample = machine.sample(|_| ());
    let watts: Vec<_> = sample.power.iter().map(|(name, one)| (name.as_str(), one.watts)).collect();
    let expected =
        [("amdgpu (hwmon1) power1", 5.0), ("amdgpu (hwmon2) power1", 7.0), ("psu power1", 9.0)];
    assert_eq!(watts, expected);
}

#[test]
fn disks_that_nobody_asked_for_are_forgotten() {
    let machine = Machine::new();
    let (before, mut after) = (machine.read(), machine.read());
    assert_eq!(after.since(&before).disks.len(), 1);
    after.keep_disks(|name| name != "sda");
    assert!(after.since(&before).disks.is_empty());
}

#[test]
fn pressure_is_time_lost() {
    let machine = Machine::new();
    let text = |some: u64, full: u64| {
        format!(
            "some avg10=1.32 avg60=4.19 avg300=4.47 total={some}\nfull avg10=0.00 total={full}\n"
        )
    };
    machine.write("proc/pressure/io", text(5_000, 90));
    let sample =
        machine.sample(|machine| machine.write("proc/pressure/io", text(5_100, 10_000_000)));
    let some = sample.pressure["io_some"];
    assert!(
        (some.stalled_fraction * some.covered_ns as f64 / 1e3 - 100.0).abs() < 1e-6
            || some.stalled_fraction == 1.0
    );
    assert_eq!(sample.pressure["io_full"].stalled_fraction, 1.0);
    assert_eq!(sample.pressure.len(), 2);
}

#[test]
fn an_interval_that_is_none_has_no_rates() {
    let machine = Machine::new();
    let (first, second) = (machine.read(), machine.read());
    for sample in [first.since(&second), first.since(&first)] {
        assert_eq!(sample.interval_ns, 0);
        assert_eq!((sample.activity, sample.memory, sample.swap), (None, None, None));
        assert!(sample.interfaces.is_empty() && sample.disks.is_empty());
    }
}
