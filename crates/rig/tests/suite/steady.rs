//! After random preconditioning, a drive serves the first random writes like the last: with the same mean and 99th
//! percentile of latency. These figures also show facts that the count of programs does not
//! (`crates/ftl/tests/suite/steady.rs`): when cleaning happens, and the state of the planes' queues.
//!
//! The write buffer is empty at first, as after idleness. That is not a state of the flash, and is left out with a
//! ramp-up. Nothing is timed, and nothing is drawn but from fixed seeds.

use ssdyno_figures::Keep;
use ssdyno_ftl::buffer::BufferPolicy;
use ssdyno_ftl::{Cleaning, WearLevelling};
use ssdyno_rig::{KeepGoing, SimMeasured, SimRun};
use ssdyno_ssd::{Config, presets};

use crate::common;

/// Parts that each end of a run is divided into, for its standard error.
const PARTS: usize = 20;
/// Times that the buffer is filled before the first request that counts.
const BUFFERS: u64 = 8;

/// Random writes of a page, 32 outstanding, once the buffer is full.
fn run(device: &Config, requests: u64, seed: u64) -> SimMeasured {
    let ramp_up = BUFFERS * device.buffer.size.0 / device.flash.page_size.0;
    let load = format!(
        "write_percent = 100\nblock_size = \"4KiB\"\ndepth = 32\nramp_up = {ramp_up}\n\
         requests = {}",
        ramp_up + requests
    );
    let run = SimRun { seed, keep: Keep::None, ..common::direct(device.clone(), &load) };
    run.execute(&mut |_| KeepGoing::Continue).unwrap()
}

/// A figure of some requests, and its standard error by the means of parts.
#[derive(Clone, Copy)]
struct Figure {
    mean: f64,
    error: f64,
}

impl Figure {
    fn of(parts: &[f64]) -> Figure {
        let count = parts.len() as f64;
        // Differences of neighbours do not see a drift.
        let squares: f64 = parts.windows(2).map(|w| (w[0] - w[1]).powi(2) / 2.0).sum();
        let error = (squares / (count - 1.0) / count).sqrt();
        Figure { mean: parts.iter().sum::<f64>() / count, error }
    }
}

/// What became of a figure from the first 5 % of the runs with some seeds to the last.
struct Change {
    name: &'static str,
    first: f64,
    last: f64,
    /// Share, and its standard error.
    change: f64,
    error: f64,
}

impl Change {
    fn of(name: &'static str, ends: &[(Figure, Figure)]) -> Change {
        let count = ends.len() as f64;
        let mean = |pick: fn(&(Figure, Figure)) -> f64| ends.iter().map(pick).sum::<f64>() / count;
        let (first, last) = (mean(|ends| ends.0.mean), mean(|ends| ends.1.mean));
        let squares = mean(|(first, last)| first.error.powi(2) + last.error.powi(2));
        let error = (squares / count).sqrt() / last;
        Change { name, first, last, change: first / last - 1.0, error }
    }

    /// More than 0.5 %, and more than five standard errors.
    fn is_drift(&self) -> bool {
        self.change.abs() > (5.0 * self.error).max(0.005)
    }

    fn text(&self) -> String {
        let Change { name, first, last, change, error } = self;
        format!(
            "{name} {:.2} us, then {:.2}: {:+.2} %, standard error {:.2} %",
            first / 1e3,
            last / 1e3,
            100.0 * change,
            100.0 * error
        )
    }
}

/// Mean and 99th percentile of the first and of the last 5 % of `requests`.
fn latencies(device: &Config, (seeds, requests): (u64, u64)) -> [Change; 2] {
    let (mut means, mut tails) = (Vec::new(), Vec::new());
    for seed in 0..seeds {
        let measured = run(device, requests, seed);
        assert!(measured.failure.is_none(), "{:?}", measured.failure);
        let mut all = Vec::with_capacity(requests as usize);
        let rows = measured.recording.rows().unwrap();
        rows.for_each(|_, row| {
            all.push(row.latency_ns);
            Ok(())
        })
        .unwrap();
        let end = all.len() / 20;
        let figures = |requests: &[u64]| {
            let parts = || requests.chunks_exact(requests.len() / PARTS);
            let mean = |part: &[u64]| part.iter().sum::<u64>() as f64 / part.len() as f64;
            let tail = |part: &[u64]| {
                let mut sorted = part.to_vec();
                let at = sorted.len() * 99 / 100;
                *sorted.select_nth_unstable(at).1 as f64
            };
            let means: Vec<f64> = parts().map(mean).collect();
            let tails: Vec<f64> = parts().map(tail).collect();
            [Figure::of(&means), Figure::of(&tails)]
        };
        let ([mean, tail], [mean_then, tail_then]) =
            (figures(&all[..end]), figures(&all[all.len() - end..]));
        means.push((mean, mean_then));
        tails.push((tail, tail_then));
    }
    [Change::of("mean", &means), Change::of("p99", &tails)]
}

/// The line of a device whose latency drifts.
fn drift(what: &str, device: &Config, runs: (u64, u64)) -> Option<String> {
    let changes = latencies(device, runs);
    let told = changes.each_ref().map(Change::text).join("; ");
    println!("{what}, {} x {} requests: {told}", runs.0, runs.1);
    changes.iter().any(Change::is_drift).then(|| format!("{what}: {told}"))
}

/// `device` with another FTL, which cleans at a pace that it can keep; `agrawal` levels no wear.
fn with_ftl(device: &Config, name: &str, cleaning: Cleaning) -> Config {
    let mut device = device.clone();
    device.ftl.name = name.into();
    device.ftl.cleaning = cleaning;
    device.ftl.leave_out_tables(|_| false);
    if name == "agrawal" {
        device.ftl.wear_levelling = WearLevelling::Off;
    }
    device
}

fn preset() -> Config {
    Config::parse(presets::find("nvme-tlc").unwrap().text).unwrap()
}

/// The default drive with little flash and a small buffer.
fn small() -> Config {
    let mut device = preset();
    let flash = &mut device.flash;
    (flash.channels, flash.chips_per_channel, flash.dies_per_chip) = (2, 1, 2);
    (flash.blocks_per_plane, flash.pages_per_block) = (256, 64);
    device.ftl.over_provisioning = 0.25;
    device.buffer.size = ssdyno_block::units::Bytes(512 << 10);
    device
}

const POLICIES: [(&str, Cleaning); 6] = [
    ("greedy", Cleaning::Greedy),
    ("fifo", Cleaning::Fifo),
    ("random", Cleaning::Random),
    ("d-choices", Cleaning::DChoices),
    ("cost-benefit", Cleaning::CostBenefit),
    ("windowed", Cleaning::Windowed),
];

#[test]
fn first_writes_take_as_long_as_later_ones() {
    let mut found = Vec::new();
    for (name, cleaning) in [
        ("page", Cleaning::Greedy),
        ("page", Cleaning::CostBenefit),
        ("dftl", Cleaning::Greedy),
        ("agrawal", Cleaning::Greedy),
    ] {
        let device = with_ftl(&small(), name, cleaning);
        found.extend(drift(&format!("{name}, {cleaning:?}"), &device, (2, 200_000)));
    }
    assert!(found.is_empty(), "not steady:\n{}", found.join("\n"));
}

/// The device tells its FTL that the buffer writes back whole logical blocks, whose pages become stale
/// together.
#[test]
fn first_blocks_of_a_buffer_take_as_long_as_later_ones() {
    let mut device = small();
    (device.flash.channels, device.flash.dies_per_chip, device.flash.planes_per_die) = (1, 1, 2);
    device.buffer.policy = BufferPolicy::Bplru;
    device.buffer.size = ssdyno_block::units::Bytes(64 << 10);
    let drift = drift("page, whole blocks", &device, (2, 12_000));
    assert!(drift.is_none(), "{drift:?}");
}

/// 10 million writes to the default drive; fewer where one costs more than six programs, so that each case
/// has at most 60 million of them.
fn soak(device: &Config, ftls: &[(&str, &[(&str, Cleaning)])]) {
    let mut found = Vec::new();
    for (name, policies) in ftls {
        for (policy, cleaning) in *policies {
            let device = with_ftl(device, name, *cleaning);
            let cost = run(&device, 10_000, 0).result.write_amplification.unwrap();
            let requests = (60e6 / cost).min(10e6) as u64;
            found.extend(drift(&format!("{name}, {policy}"), &device, (1, requests)));
        }
    }
    assert!(found.is_empty(), "not steady:\n{}", found.join("\n"));
}

#[test]
#[ignore = "soak: 60 million writes, two CPU minutes"]
fn latency_of_a_page_map_is_steady_for_ten_million_writes() {
    soak(&preset(), &[("page", &POLICIES)]);
}

#[test]
#[ignore = "soak: 60 million programs for each of four FTLs"]
fn latency_of_maps_of_blocks_is_steady() {
    let greedy = &POLICIES[..1];
    soak(&preset(), &["block", "bast", "fast", "agrawal"].map(|name| (name, greedy)));
}

/// Where victims are nearly full, each page that is moved costs a page of the table, and those have to be cleaned
/// in turn: with the 12 % spare blocks of the default drive a write costs 14 programs with greedy cleaning, and
/// 3 200 with `fifo` or `random`. Those have 80 % spare here, as in `crates/ftl/tests/suite/steady.rs`.
#[test]
#[ignore = "soak: 60 million programs for each policy of cleaning"]
fn latency_of_a_dftl_is_steady() {
    let is_costly = |policy: &&(&str, Cleaning)| ["fifo", "random", "windowed"].contains(&policy.0);
    let (costly, others): (Vec<_>, Vec<_>) = POLICIES.iter().partition(is_costly);
    soak(&preset(), &[("dftl", &others)]);
    let mut roomy = preset();
    roomy.ftl.over_provisioning = 0.8;
    soak(&roomy, &[("dftl", &costly)]);
}
