//! The presets with an NVMe controller against the data sheets that they are made from. Each figure
//! is measured over the controller, with queue pairs in host memory; host software takes no time.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "nvme/support.rs"]
#[expect(dead_code, reason = "the tests of the controller use all of it")]
mod support;

use ssdyno_block::{BlockTarget, Time};
use ssdyno_controller_nvme::NvmeController;
use ssdyno_ftl::Fill;
use ssdyno_spec::nvme::{nvm, registers};
use ssdyno_ssd::{Config, Ssd, presets};

use support::Host;

/// A load: `bytes` at a time, `depth` commands outstanding, `percent` of them reads.
#[derive(Clone, Copy, Debug)]
struct Load {
    bytes: u32,
    depth: u32,
    reads_percent: u64,
    random: bool,
    commands: u32,
    /// Commands before the measurement begins.
    warm_up: u32,
}

const RANDOM: Load = Load {
    bytes: 4096,
    depth: 256,
    reads_percent: 100,
    random: true,
    commands: 20_000,
    warm_up: 4_000,
};
const SEQUENTIAL: Load = Load {
    bytes: 131_072,
    depth: 64,
    reads_percent: 100,
    random: false,
    commands: 3_000,
    warm_up: 600,
};

/// Commands a second in the steady state. Sequential figures are those of a device that was written in
/// order, as data sheets have it; random ones of a device in the steady state of random writes.
fn measure(config: &Config, load: Load) -> f64 {
    let mut config = config.clone();
    config.precondition.fill = if load.random { Fill::Random } else { Fill::Sequential };
    let ssd = Ssd::new(&config, 1).unwrap();
    let blocks = ssd.capacity_bytes() / 512;
    let mut host =
        Host::new(NvmeController::in_front_of(ssd, config.nvme_setup().unwrap()).unwrap());
    host.enable_with(registers::CC_ENTRY_SIZES | registers::CC_ENABLE);
    host.settle();
    let entries = (load.depth + 1).clamp(2, 500);
    host.create_pair(1, entries);
    host.create_pair(2, entries);
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let per_command = u64::from(load.bytes / 512);
    let mut next = |number: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let place = if load.random { state >> 20 } else { number };
        let opcode = if state % 100 < load.reads_percent { nvm::READ } else { nvm::WRITE };
        let first = place % (blocks / per_command) * per_command;
        support::transfer(opcode, first, per_command as u32)
    };
    let (mut sent, mut done, mut start) = (0, 0, Time::ZERO);
    let half = load.depth.div_ceil(2);
    for queue in [1, 2] {
        for _ in 0..if queue == 1 { half } else { load.depth - half } {
            host.push(queue, next(sent));
            sent += 1;
        }
    }
    for queue in [1, 2].into_iter().take(load.depth.min(2) as usize) {
        host.ring(queue);
    }
    while done < load.commands {
        assert!(host.step(Time::MAX), "{done} of {sent}");
        host.bus.reads.clear();
        host.bus.touched.clear();
        if host.bus.interrupts.is_empty() {
            continue;
        }
        let vectors: Vec<u16> = host.bus.interrupts.drain(..).map(|(_, vector)| vector).collect();
        for queue in vectors {
            let ended = host.reap(queue);
            assert!(ended.iter().all(|c| c.status().is_success()), "{ended:?}");
            if ended.is_empty() {
                continue;
            }
            for _ in &ended {
                host.push(queue, next(sent));
                sent += 1;
                done += 1;
                if done == load.warm_up {
                    start = host.now;
                }
            }
            host.ring(queue);
        }
    }
    f64::from(done - load.warm_up) / (host.now - start).as_s_f64()
}

/// True if the figure is within a tenth of the sheet's.
fn compare(preset: &str, config: &Config, load: Load, sheet: f64) -> bool {
    let unit = if load.bytes == 4096 { 1.0 } else { f64::from(load.bytes) };
    let got = measure(config, load) * unit;
    let error = got / sheet - 1.0;
    println!("{preset} {load:?}: {got:.4e}, sheet {sheet:.4e}, {:+.1} %", error * 100.0);
    error.abs() < 0.1
}

/// A figure of reads: a device with an eighth of the blocks has the same.
#[track_caller]
fn check_reads(preset: &str, load: Load, sheet: f64) {
    let mut config = Config::parse(presets::find(preset).unwrap().text).unwrap();
    config.flash.blocks_per_plane /= 8;
    config.ftl.over_provisioning = 0.25;
    assert!(compare(preset, &config, load, sheet));
}

/// A figure of writes: of the whole device, in the steady state.
fn check_writes(preset: &str, load: Load, sheet: f64) -> bool {
    let config = Config::parse(presets::find(preset).unwrap().text).unwrap();
    compare(preset, &config, load, sheet)
}

/// Intel 330569: 450 K IOPS, 2600 MB/s (S1-66).
#[test]
fn p3600_reads_as_its_sheet_says() {
    check_reads("p3600", RANDOM, 450e3);
    check_reads("p3600", SEQUENTIAL, 2600e6);
}

/// Samsung 980 PRO 1TB: 1000 K IOPS, 7000 MB/s, 22 K IOPS at depth 1.
#[test]
fn gen4_consumer_reads_as_its_sheet_says() {
    check_reads("gen4-consumer", Load { depth: 512, ..RANDOM }, 1000e3);
    check_reads("gen4-consumer", SEQUENTIAL, 7000e6);
    let one = Load { depth: 1, commands: 2_000, warm_up: 100, ..RANDOM };
    check_reads("gen4-consumer", one, 22e3);
}

/// Samsung PM1743: 2500 K IOPS, 13000 MB/s.
#[test]
fn gen5_datacenter_reads_as_its_sheet_says() {
    check_reads("gen5-datacenter", Load { depth: 980, ..RANDOM }, 2500e3);
    check_reads("gen5-datacenter", SEQUENTIAL, 13000e6);
}

/// The sheets' writes: 56 K IOPS and 1700 MB/s, 160 K IOPS with 70 % reads (S1-66); 2000 MB/s behind the
/// SLC cache; 250 K IOPS and 6600 MB/s.
#[test]
fn presets_write_as_their_sheets_say() {
    let random = Load { reads_percent: 0, commands: 150_000, warm_up: 50_000, ..RANDOM };
    let sequential = Load { reads_percent: 0, commands: 12_000, warm_up: 2_000, ..SEQUENTIAL };
    let figures = [
        ("p3600", random, 56e3),
        ("p3600", Load { reads_percent: 70, ..random }, 160e3),
        ("p3600", sequential, 1700e6),
        ("gen4-consumer", sequential, 2000e6),
        ("gen5-datacenter", Load { depth: 980, ..random }, 250e3),
        ("gen5-datacenter", sequential, 6600e6),
    ];
    let off = figures.into_iter().filter(|(name, load, sheet)| !check_writes(name, *load, *sheet));
    assert_eq!(off.count(), 0, "figures off their sheets are printed above");
}
