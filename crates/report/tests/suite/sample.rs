//! A made-up run: a mixed load on an imaginary SSD of 8 channels and 64 dies. Seed 7, splitmix64.

use std::collections::BTreeMap;

use ssdyno_block::Time;
use ssdyno_figures::{
    BusyShare, Configuration, Energy, EnergyRow, Expected, FlashOperations, GcVictims, Keep,
    LatencyPartsByOp, MeanParts, OpLatencyParts, OwnCost, PackageEnergy, Power, RunResult,
};
use ssdyno_record::{Recorder, Recording};

use crate::load::{feed, load};

pub(crate) fn recording(keep: Keep) -> Recording {
    let mut recorder = Recorder::new(keep, None);
    feed(&mut recorder, &load(20_000, 7));
    recorder.finish(Time::ZERO)
}

pub(crate) fn result(keep: Keep) -> RunResult {
    let mut recording = recording(keep);
    let mut result = RunResult {
        target: "sim:sample".into(),
        workload: "mixed".into(),
        seed: Some(7),
        ..RunResult::default()
    };
    recording.fill(&mut result);
    add_device(&mut result, recording.end());
    result
}

/// One of two packages.
fn package(joules: f64, seconds: f64) -> PackageEnergy {
    PackageEnergy {
        joules,
        idle_joules: 0.0,
        reads: 12_000,
        programs: 10_500,
        erases: 164,
        read_seconds: seconds * 0.45,
        program_seconds: seconds * 1.05,
        erase_seconds: 0.0,
        transfer_seconds: 0.0,
    }
}

fn expected() -> Expected {
    Expected {
        figure: "write_amplification".into(),
        value: 2.881,
        measured: Some(2.897),
        chance: Some(0.0123),
        accuracy: Some(0.006),
        form: "greedy, mean field".into(),
        inputs: BTreeMap::from([
            ("pages_per_block".into(), 64.0),
            ("effective_utilisation".into(), 0.8),
        ]),
    }
}

/// Reads with a tail, and writes of which there are too few for one.
fn parts() -> LatencyPartsByOp {
    let mean = MeanParts {
        total: 100_000.0,
        host: 9_000.0,
        link: 1_500.0,
        channel: 14_500.0,
        flash: 50_000.0,
        programs: 20_000.0,
        cleaning: 5_000.0,
        ..MeanParts::default()
    };
    let slow = MeanParts {
        total: 2_000_000.0,
        erases: 1_200_000.0,
        cleaning: 705_000.0,
        programs: 20_000.0,
        ..mean
    };
    let read = OpLatencyParts { requests: 14_000, mean, slowest_1_percent: Some(slow) };
    let write = OpLatencyParts { requests: 600, mean: slow, slowest_1_percent: None };
    LatencyPartsByOp { read: Some(read), write: Some(write), ..LatencyPartsByOp::default() }
}

fn add_device(r: &mut RunResult, end: Time) {
    let seconds = end.as_s_f64();
    let (extra_from, extra_to) = (seconds / 3.0, seconds / 2.0);
    let (mut flash, cpu, dram, bus) = (0.0, 0.35 * seconds, 0.12 * seconds, 0.05 * seconds);
    for point in &mut r.series {
        let (from, length) = (point.start_seconds, point.length_seconds);
        let extra = ((from + length).min(extra_to) - from.max(extra_from)).max(0.0);
        let watts = 0.9 + 0.4 * extra / length;
        flash += watts * length;
        let total = watts + 0.35 + 0.12 + 0.05;
        point.power_watts =
            Some(Power { total, flash: watts, cpu: 0.35, dram: 0.12, bus: 0.05, parts: 0.0 });
    }
    let total = flash + cpu + dram + bus;
    r.energy_joules = Some(Energy {
        total,
        flash,
        cpu,
        dram,
        bus,
        parts: 0.0,
        per_request: Some(total / r.requests as f64),
        above_idle: total * 0.6,
    });
    let row = |part: &str, activity: &str, joules: f64| EnergyRow {
        part: part.into(),
        activity: activity.into(),
        joules,
        seconds: seconds * 3.0,
    };
    r.energy_by_part = vec![
        row("die", "program", flash * 0.7),
        row("die", "read", flash * 0.3),
        row("core", "execute", cpu),
        row("dram", "active", dram),
        row("channel", "transfer", bus),
    ];
    r.energy_by_package = vec![package(flash / 2.0, seconds); 2];
    r.write_amplification = Some(2.897);
    let (reads, programs, erases, relocations) = (24_000, 21_000, 328, 14_000);
    let mapping_programs = 0;
    let operations = FlashOperations { reads, programs, erases, relocations, mapping_programs };
    r.flash_operations = Some(operations);
    let mut by_valid_share = vec![0; 20];
    by_valid_share[12..15].copy_from_slice(&[80, 200, 48]);
    r.gc_victims = GcVictims::new(by_valid_share, 0.667);
    let share = |n: usize, base: f64| (0..n).map(|i| base + 0.03 * (i % 7) as f64).collect();
    r.busy_share = Some(BusyShare {
        channels: share(8, 0.2),
        dies: share(64, 0.55),
        cores: vec![0.31],
        dram: Some(0.05),
        host_link: Some(0.04),
        in_service: Some(1.0),
    });
    r.latency_parts_ns = Some(parts());
    r.wall_seconds = 0.012;
    r.simulated_requests_per_wall_second = Some(1_666_667.0);
    r.own_cost = Some(OwnCost {
        cpu_ns_per_request: 600.0,
        syscalls_per_request: None,
        context_switches_per_request: Some(0.0002),
        ..OwnCost::default()
    });
    r.expected = vec![expected()];
    r.notes.push("sample data: no device like this exists".into());
    r.configuration = Some(Configuration {
        device_toml: "[flash]\nchannels = 8\nread_time = \"50us\" # <tR & bus>\n".into(),
        workload_toml: "mix = { read = 0.7 }\n".into(),
    });
}
