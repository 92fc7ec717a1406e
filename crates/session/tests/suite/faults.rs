//! Random faults on every preset under every workload: whatever goes wrong, every invariant holds, and no part has
//! less than no time or energy in a state.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

use ssdyno_block::units::Span;
use ssdyno_block::{Rng, Time};
use ssdyno_device::DeviceSpec;
use ssdyno_device::faults::FaultConfig;
use ssdyno_figures::RunResult;
use ssdyno_session::{DEVICE_KINDS, DriverSpec, HostSpec, RunSpec, Unattended, resolve};

/// The figures of a run, which may have ended with its device.
fn run(spec: &RunSpec) -> RunResult {
    let prepared = resolve(spec, &mut Unattended).unwrap_or_else(|failure| panic!("{failure}"));
    prepared.start().unwrap().result().unwrap().result
}

/// What of `result` cannot be.
fn impossible(result: &RunResult) -> Vec<String> {
    let broken = result.invariants.iter().filter(|one| !one.holds);
    let mut found: Vec<_> = broken.map(|one| format!("{}: {}", one.name, one.detail)).collect();
    let rows = result.energy_by_part.iter().filter(|row| row.seconds < 0.0 || row.joules < 0.0);
    found.extend(rows.map(|row| format!("{row:?}")));
    found
}

/// Keys for a device of `kind` and its load, and how long the NVMe driver waits.
fn faults(random: &mut Rng, device: &DeviceSpec, kind: &str) -> (Vec<String>, Option<Span>) {
    let mut set = Vec::new();
    let mut maybe = |random: &mut Rng, keys: &dyn Fn(&mut Rng) -> Vec<String>| {
        if random.below(2) == 0 {
            set.extend(keys(random));
        }
    };
    maybe(random, &|r| vec![format!("faults.error={}", r.unit() * 0.05)]);
    maybe(random, &|r| {
        let by = format!("faults.delay_by={}us", 1 + r.below(15_000));
        vec![format!("faults.delay={}", 0.001 + r.unit() * 0.05), by]
    });
    maybe(random, &|r| vec![format!("faults.drop={}", r.unit() * 0.02)]);
    maybe(random, &|r| vec![format!("faults.lost_interrupts={}", r.unit() * 0.02)]);
    maybe(random, &|r| vec![format!("faults.hang_at={}us", 1 + r.below(20_000))]);
    if random.below(4) == 0 {
        set.push(format!("faults.remove_at={}us", 1 + random.below(40_000)));
    }
    // A small one takes as long to fill as it must.
    if kind == "ssd"
        && device.get::<ssdyno_ssd::Config>().is_some_and(|c| c.flash.blocks_per_plane > 64)
    {
        set.push("flash.blocks_per_plane=64".to_owned());
        set.push("ftl.over_provisioning=0.25".to_owned());
    }
    let limit = (random.below(2) == 0).then(|| Span(Time::from_ms(1 + random.below(20))));
    (set, limit)
}

/// Seeds count from 1; a run that fails is named with all that it takes to repeat it.
#[test]
fn every_invariant_holds_whatever_fails() {
    let mut seed = 0;
    let mut bad = Vec::new();
    for kind in DEVICE_KINDS.all() {
        for preset in kind.presets {
            let device = DEVICE_KINDS.parse(preset.text).unwrap();
            let driver = match device.own_driver() {
                true => DriverSpec::Ring,
                false if device.nvme().is_some() => DriverSpec::Nvme,
                false => DriverSpec::Direct,
            };
            for workload in ssdyno_workload::presets::names() {
                seed += 1;
                let mut random = Rng::new(seed, "faults");
                // Not every workload on every preset, which would take minutes: every one of both.
                if random.below(3) > 0 {
                    continue;
                }
                let (mut set, time_limit) = faults(&mut random, &device, kind.name);
                let time_limit = time_limit.filter(|_| driver == DriverSpec::Nvme);
                if driver == DriverSpec::Direct {
                    // Without a driver nobody has a timeout, or an interrupt to lose.
                    set.retain(|key| !["drop", "hang", "lost"].iter().any(|no| key.contains(no)));
                }
                let is_plain = !workload.starts_with("s3");
                if !is_plain {
                    // As much as the smallest has.
                    set.push("workload.disksim.space=64MiB".to_owned());
                }
                // More of them than the device takes at a time.
                if random.below(3) == 0 && is_plain {
                    set.push(format!("workload.depth={}", 1 << random.below(10)));
                }
                // Requests that cross a boundary become several commands.
                if random.below(2) == 0 && is_plain {
                    let size = format!("{}KiB", 4 << random.below(6) | 4);
                    let text = ssdyno_workload::presets::text(workload).unwrap();
                    set.push(match text.contains("\nblock_sizes") {
                        true => {
                            format!("workload.block_sizes=[{{ size = \"{size}\", weight = 1 }}]")
                        }
                        false => format!("workload.block_size={size}"),
                    });
                }
                let spec = RunSpec {
                    target: Some(format!("sim:{}", preset.name)),
                    workload: Some(workload.to_owned()),
                    requests: Some(300),
                    seed,
                    host: HostSpec { driver: Some(driver), time_limit, ..HostSpec::default() },
                    set,
                    ..RunSpec::default()
                };
                let found = impossible(&run(&spec));
                if !found.is_empty() {
                    bad.push(format!("{spec:?}: {found:?}"));
                }
            }
        }
    }
    assert!(bad.is_empty(), "{} of the runs:\n{}", bad.len(), bad.join("\n"));
}

fn spec(device: &str, workload: &str, requests: u64, set: &[&str]) -> RunSpec {
    RunSpec {
        target: Some(format!("sim:{device}")),
        workload: Some(workload.to_owned()),
        requests: Some(requests),
        set: set.iter().map(|set| (*set).to_owned()).collect(),
        ..RunSpec::default()
    }
}

/// Requests that were split into several commands are given up at a reset, some of them half answered: the account is
/// one of commands.
#[test]
fn split_requests_are_given_up_command_by_command() {
    for (block, hang) in [("256KiB", "1ms"), ("1MiB", "3ms"), ("132KiB", "2ms")] {
        let size = format!("workload.block_size={block}");
        let hang = format!("faults.hang_at={hang}");
        let result = run(&spec("p3600", "randread", 1_500, &[&size, &hang]));
        assert!(result.unanswered > 0, "{block}");
        assert_eq!(impossible(&result), [""; 0], "{block}");
    }
}

/// The firmware reserves time for its commands long before they end: busy time and slow-mode time of a core never
/// overlap.
#[test]
fn a_core_is_in_one_state_at_a_time() {
    for (limit, requests) in [("1ms", 2_000), ("5ms", 1_500)] {
        let set = ["workload.depth=1024", "workload.block_size=1MiB"];
        let mut spec = spec("nvme-tlc", "randwrite", requests, &set);
        spec.host.time_limit = Some(limit.parse().unwrap());
        assert_eq!(impossible(&run(&spec)), [""; 0], "{limit}");
    }
}

/// After a member of an array is removed, its requests fail at once, which is not a latency: all counted requests took
/// as long as a member takes, or were given up while waiting.
#[test]
fn what_a_removed_member_refuses_is_in_no_latency() {
    let delay = "{ delay = { capacity = \"1MiB\", read = \"10us\", write = \"10us\" }";
    let file = format!(
        "[array]\nstripe = \"4KiB\"\nmembers = [{delay} }}, {delay}, faults = {{ remove_at = \"1ms\" }} }}]"
    );
    let mut spec = spec("delay-10us", "randread", 2_000, &["workload.depth=1"]);
    spec.host.driver = Some(DriverSpec::Direct);
    spec.contents.device = Some(toml::from_str(&file).unwrap());
    let result = run(&spec);
    assert!((800..1_200).contains(&result.errors), "{} errors", result.errors);
    assert!(result.unanswered <= 1, "{} unanswered", result.unanswered);
    let latency = result.latency_ns.unwrap().all;
    assert!(latency.mean > 9_990.0 && latency.p50 >= 10_000.0, "{latency:?}");
}

/// A slow device takes longer for everything by the same share, also where it works ahead of its host: a disk that reads
/// ahead, a drive whose buffer is written back. If answers alone were late, a stream would take as long as ever. The energy
/// of a part goes with the time that it works.
#[test]
fn all_of_a_slow_device_is_slow() {
    for (device, workload, keys) in [
        ("hds721032", "seqread", &["workload.block_size=64KiB", "workload.depth=1"][..]),
        ("hds721032", "randread", &["workload.depth=1"]),
        ("nvme-tlc", "seqwrite", &["flash.blocks_per_plane=64", "ftl.over_provisioning=0.25"]),
        ("nvme-tlc", "randread", &["flash.blocks_per_plane=64", "ftl.over_provisioning=0.25"]),
    ] {
        let ran = |more: &[&str]| {
            let mut spec = spec(device, workload, 3_000, &[keys, more].concat());
            spec.host.driver = Some(DriverSpec::Direct);
            let result = run(&spec);
            assert_eq!(impossible(&result), [""; 0], "{device} {workload}");
            result
        };
        let slow = ran(&["faults.slow_by=0.8", "faults.slow_for=24h"]);
        let quick = ran(&[]);
        let factor = FaultConfig {
            slow_by: 0.8,
            slow_for: Some(Span(Time::from_s(86_400))),
            ..FaultConfig::default()
        }
        .slowness(1, Time::ZERO);
        assert!(factor > 1.1, "{factor}");
        let times = slow.simulated_seconds / quick.simulated_seconds;
        assert!((times / factor - 1.0).abs() < 1e-3, "{device} {workload}: {times} {factor}");
        // A core without work slows its clock after a time of the host's.
        let rows = slow.energy_by_part.iter().zip(&quick.energy_by_part);
        for (slow, quick) in rows.filter(|(_, quick)| quick.part != "core" && quick.seconds > 0.0) {
            let times = slow.seconds / quick.seconds;
            assert!((times / factor - 1.0).abs() < 1e-3, "{device} {workload}: {slow:?} {quick:?}");
        }
    }
}
