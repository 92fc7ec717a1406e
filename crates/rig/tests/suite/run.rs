//! Whole runs compared with closed forms, and the guarantees of a run.

use ssdyno_block::Time;
use ssdyno_figures::{Keep, RunResult};
use ssdyno_rig::{
    Attach, DevicePath, HostOptions, HostPlan, KeepGoing, RunError, RunLimits, RunProgress,
    Session, SimMeasured, SimRun,
};
use ssdyno_ssd::{Config, presets};

use crate::common;

/// Configuration A with fewer blocks and some lines replaced.
fn config(changes: &[(&str, &str)]) -> Config {
    let mut text = presets::find("config-a").unwrap().text.to_owned();
    for (from, to) in changes {
        assert!(text.contains(from), "{from} is not in the preset");
        text = text.replace(from, to);
    }
    Config::parse(&text).unwrap()
}

fn run(device: Config, workload: &str, seed: u64) -> SimRun {
    SimRun { seed, keep: Keep::All, ..common::direct(device, workload) }
}

fn measure(run: &SimRun) -> SimMeasured {
    let measured = run.execute(&mut |_| KeepGoing::Continue).unwrap();
    assert!(measured.failure.is_none(), "{:?}", measured.failure);
    for invariant in &measured.result.invariants {
        assert!(invariant.holds, "{invariant:?}");
    }
    measured
}

const WRITES: &str = "write_percent = 100\nblock_size = \"4KiB\"\ndepth = 32\nrequests = 200000";
const READS: &str = "read_percent = 100\nblock_size = \"4KiB\"\ndepth = 32\nrequests = 60000";

/// Mean field, blocks without end; here 128 planes of 512 blocks. Tolerance 1 %: 200 000 writes
/// are about 18 000 cleanings; seed 1.
#[test]
fn write_amplification_is_the_closed_form_from_the_first_request_on() {
    let measured = measure(&run(config(&[]), WRITES, 1));
    let [expected] = &measured.result.expected[..] else { panic!("one expected figure") };
    let ratio = measured.result.write_amplification.unwrap() / expected.value;
    assert!((ratio - 1.0).abs() < 0.01, "{ratio}: {expected:?}");
    assert!((expected.inputs["effective_utilisation"] - 0.9197).abs() < 1e-4);
    let result = &measured.result;
    let each = result.energy_joules.unwrap().per_request.unwrap();
    let product = each * result.latency_ns.as_ref().unwrap().all.mean / 1e9;
    assert_eq!(result.energy_delay_joule_seconds, Some(product), "X-6");
}

/// Every package has its account (S3-6), and together they are the flash.
#[test]
fn packages_sum_to_the_flash() {
    let load = "read_percent = 50\nblock_size = \"4KiB\"\ndepth = 32\nrequests = 8000";
    let result = measure(&run(config(&[]), load, 1)).result;
    let packages = &result.energy_by_package;
    // Configuration A: 8 channels of 4 chips with 2 dies each.
    assert_eq!(packages.len(), 32);
    let joules: f64 = packages.iter().map(|package| package.joules).sum();
    let flash = result.energy_joules.unwrap().flash;
    assert!((joules / flash - 1.0).abs() < 1e-9, "{joules} J of {flash} J");
    let operations = result.flash_operations.unwrap();
    assert_eq!(packages.iter().map(|p| p.reads).sum::<u64>(), operations.reads);
    assert_eq!(packages.iter().map(|p| p.programs).sum::<u64>(), operations.programs);
    assert_eq!(packages.iter().map(|p| p.erases).sum::<u64>(), operations.erases);
    // By hand: 3.3 V, 15 mA while a die works, 5 mA while data crosses the bus.
    for package in packages {
        let array = package.read_seconds + package.program_seconds + package.erase_seconds;
        let busy = 3.3 * (0.015 * array + 0.005 * package.transfer_seconds);
        assert!((package.joules - package.idle_joules - busy).abs() < 1e-9 * flash);
        assert!(package.read_seconds >= package.reads as f64 * 49e-6 / 2.0, "two planes join");
    }
}

/// Planes that work together for different causes: each page counts for its own. Without a buffer
/// and with requests of a page, what was programmed is what the host wrote and what was moved.
#[test]
fn joined_planes_count_for_their_own_cause() {
    let copy = ("copy = \"copy-back\"", "copy = \"controller\"");
    let result = measure(&run(config(&[copy]), &WRITES.replace("200000", "3000"), 1)).result;
    let operations = result.flash_operations.unwrap();
    assert_eq!(operations.programs, 3_000 + operations.relocations);
    assert_eq!(operations.reads, operations.relocations);
}

/// Cleaning ahead of need and pages that change planes are outside of every closed form.
#[test]
fn no_closed_form_stands_where_none_holds() {
    let load = WRITES.replace("200000", "4000");
    let kept = "free_blocks_low = 0.05";
    let ahead = format!("{kept}\nfree_blocks_background = 0.08");
    let placement = ("placement = \"static\"", "placement = \"round-robin\"");
    for change in [(kept, ahead.as_str()), placement] {
        let result = measure(&run(config(&[change]), &load, 1)).result;
        assert!(result.expected.is_empty(), "{change:?}: {:?}", result.expected);
    }
}

#[test]
fn what_cannot_be_is_told() {
    let load = WRITES.replace("200000", "100");
    let said = |config: Config, load: &str, what: &str| {
        let result = measure(&run(config, load, 1)).result;
        result.notes.iter().any(|note| note.contains(what))
    };
    let kept = "free_blocks_low = 0.05";
    let ahead = |share| config(&[(kept, &format!("{kept}\nfree_blocks_background = {share}"))]);
    assert!(said(ahead(0.2), &load, "a full device leaves 12.7 % at most"));
    assert!(!said(ahead(0.1), &load, "free_blocks_background"));
    let late = "arrivals = { kind = \"poisson\", rate = 10 }\nduration = \"1us\"";
    assert!(said(config(&[]), late, "No request was issued"));
}

/// A few blocks cleaned by chance are not enough for a closed form: the result says so instead.
#[test]
fn a_closed_form_waits_for_enough_cleaning() {
    for requests in [1, 100, 1_000] {
        let load = WRITES.replace("200000", &requests.to_string());
        let result = measure(&run(config(&[]), &load, 1)).result;
        assert!(result.expected.is_empty(), "{requests}: {:?}", result.expected);
        let said = result.notes.iter().any(|note| note.contains("blocks were cleaned"));
        assert!(said, "{requests}: {:?}", result.notes);
    }
    let load = WRITES.replace("200000", "4000");
    let result = measure(&run(config(&[]), &load, 1)).result;
    let [expected] = &result.expected[..] else { panic!("one expected figure") };
    let ratio = result.write_amplification.unwrap() / expected.value;
    assert!((ratio - 1.0).abs() < 0.05, "{ratio}");
    assert!(!result.notes.iter().any(|note| note.contains("cleaned")), "{:?}", result.notes);
}

/// Form 4; 16 planes of 512 blocks of 32 pages. Tolerance 1 %, seeds 1 and 2: 400 000 writes after
/// a ramp-up of twice the logical pages. Before it has mixed nothing is promised.
#[test]
fn hot_and_cold_writes_settle_at_their_closed_form() {
    let mut device = config(&[]);
    (device.flash.channels, device.flash.chips_per_channel) = (2, 2);
    device.flash.pages_per_block = 32;
    device.ftl.over_provisioning = 0.2;
    device.ftl.cleaning = ssdyno_ftl::Cleaning::Fifo;
    for (access, space, seed) in [(80, 20, 1), (72, 14, 2)] {
        let load = |ramp_up: u64| {
            format!(
                "write_percent = 100\nblock_size = \"4KiB\"\ndepth = 32\nrequests = 400000\n\
                 ramp_up = {ramp_up}\naddress = {{ pattern = \"hot-cold\", \
                 hot_access_percent = {access}, hot_space_percent = {space} }}"
            )
        };
        let measured = measure(&run(device.clone(), &load(450_000), seed));
        let [expected] = &measured.result.expected[..] else { panic!("one expected figure") };
        let ratio = measured.result.write_amplification.unwrap() / expected.value;
        assert!((ratio - 1.0).abs() < 0.01, "{ratio}: {expected:?}");
        assert!(expected.form.contains("form 4"));
        assert!(measure(&run(device.clone(), &load(1_000), seed)).result.expected.is_empty());
    }
}

/// n q / (n + q - 1) / S is exact for exponential service; q requests on n dies with constant
/// service lie between that and the bound of busy dies n (1 - (1 - 1/n)^q) / S.
#[test]
fn reads_reach_what_closed_networks_give() {
    let result = measure(&run(config(&[]), READS, 2)).result;
    let service = 50e-6 + 4096.0 / 333e6;
    let (n, q) = (64.0, 32.0);
    let exponential = n * q / (n + q - 1.0) / service;
    let busy = n * (1.0 - (1.0_f64 - 1.0 / n).powf(q)) / service;
    assert!(result.iops > 0.97 * exponential.min(busy), "{} {exponential} {busy}", result.iops);
    assert!(result.iops < q / service, "{}", result.iops);
    // One request at a time waits for nothing.
    let alone = measure(&run(config(&[]), &READS.replace("depth = 32", "depth = 1"), 2)).result;
    let mean = alone.latency_ns.unwrap().all.mean;
    assert!((mean - service * 1e9).abs() < 1.0, "{mean}");
}

/// M/D/1 on one die: W = rho S / (2 (1 - rho)). Tolerance 4 %: 200 000 arrivals at rho 0.5; seed 3.
#[test]
fn one_die_with_poisson_arrivals_is_m_d_1() {
    let one = config(&[
        ("channels = 8", "channels = 1"),
        ("chips_per_channel = 4", "chips_per_channel = 1"),
        ("dies_per_chip = 2", "dies_per_chip = 1"),
        ("planes_per_die = 2", "planes_per_die = 1"),
    ]);
    let service = 50e-6 + 4096.0 / 333e6;
    let rho = 0.5;
    let load = format!(
        "read_percent = 100\nblock_size = \"4KiB\"\nrequests = 200000\n[arrivals]\nkind = \"poisson\"\nrate = {}",
        rho / service
    );
    let result = measure(&run(one, &load, 3)).result;
    let expected = service + rho * service / (2.0 * (1.0 - rho));
    let ratio = result.latency_ns.unwrap().all.mean / 1e9 / expected;
    assert!((ratio - 1.0).abs() < 0.04, "{ratio}");
}

/// Ten requests, the last of them at 9 ms: the rate is that of the 10 ms which the load lasted, and so is the energy.
#[test]
fn an_open_loop_lasts_as_long_as_its_duration() {
    let load = |end: &str| {
        format!(
            "read_percent = 100\nblock_size = \"4KiB\"\n{end}\n[arrivals]\nkind = \"fixed\"\nmean_gap = \"1ms\""
        )
    };
    let result = measure(&run(config(&[]), &load("duration = \"10ms\""), 1)).result;
    assert_eq!((result.requests, result.simulated_seconds, result.iops), (10, 0.01, 1000.0));
    assert_eq!(result.energy_seconds, Some(0.01));
    assert_eq!(result.stopped_because, Some(ssdyno_figures::StopReason::Duration));
    // Requests end this load, long before its duration.
    let result = measure(&run(config(&[]), &load("requests = 5\nduration = \"1s\""), 1)).result;
    assert!(result.requests == 5 && result.simulated_seconds < 0.005, "{result:?}");
}

/// A delay has no energy model: zero joules would rank it before every drive.
#[test]
fn a_device_without_an_energy_model_has_no_energy() {
    let text = "[delay]\ncapacity = \"1GiB\"\nread = \"100us\"\nwrite = \"100us\"";
    let delay = ssdyno_device::delay::DelayConfig::parse(text).unwrap();
    let load = "read_percent = 100\nblock_size = \"4KiB\"\nrequests = 100";
    let device = ssdyno_device::DeviceSpec::new(delay);
    let result = measure(&SimRun { device: device.into(), ..run(config(&[]), load, 1) }).result;
    assert_eq!(result.requests, 100);
    assert_eq!((result.energy_joules, result.energy_seconds), (None, None));
    assert_eq!(result.energy_delay_joule_seconds, None);
    assert!(result.energy_by_part.is_empty());
    assert!(result.series.iter().all(|point| point.power_watts.is_none()));
}

/// A device that is idle after its last request sleeps, as it does before the next one. By hand: 100 ms awake, and the rest in
/// the deepest state.
#[test]
fn a_device_sleeps_after_its_last_request() {
    let device = Config::parse(presets::find("nvme-tlc").unwrap().text).unwrap();
    let load = |seconds: u32| {
        format!(
            "read_percent = 100\nblock_size = \"4KiB\"\nduration = \"{seconds}s\"\n[arrivals]\nkind = \"fixed\"\nmean_gap = \"1000s\""
        )
    };
    let joules = |seconds: u32| {
        let result = measure(&run(device.clone(), &load(seconds), 1)).result;
        assert_eq!((result.requests, result.energy_seconds), (1, Some(f64::from(seconds))));
        result.energy_joules.unwrap()
    };
    // The second half of the time is slept through: it costs what the deepest state draws.
    let (short, long) = (joules(50), joules(100));
    let deepest = device.power.states.iter().map(|state| state.power.0).fold(1.0, f64::min);
    assert!(((long.total - short.total) / 50.0 / deepest - 1.0).abs() < 1e-6, "{short:?} {long:?}");
    assert!((long.above_idle - short.above_idle).abs() < 1e-6, "{short:?} {long:?}");
}

/// The output of a run without wall-clock times.
fn figures(result: &RunResult) -> RunResult {
    RunResult {
        wall_seconds: 0.0,
        simulated_requests_per_wall_second: None,
        own_cost: None,
        ..result.clone()
    }
}

#[test]
fn every_preset_gives_the_same_bytes_twice() {
    let mixed = "read_percent = 60\nwrite_percent = 30\ntrim_percent = 10\nblock_size = \"8KiB\"\ndepth = 16\nrequests = 4000";
    for preset in presets::SSDS {
        let mut device = Config::parse(preset.text).unwrap();
        device.flash.blocks_per_plane = device.flash.blocks_per_plane.min(128);
        device.ftl.over_provisioning = device.ftl.over_provisioning.max(0.25);
        let run = run(device, mixed, 5);
        let text = |m: &SimMeasured| ssdyno_report::to_json(&figures(&m.result)).unwrap();
        let (first, again) = (measure(&run), measure(&run));
        assert!(text(&first) == text(&again), "{} differs from run to run", preset.name);
        let energy = first.result.energy_joules.unwrap();
        let sum = energy.flash + energy.cpu + energy.dram + energy.bus;
        assert!((sum / energy.total - 1.0).abs() < 1e-9);
    }
}

#[test]
fn a_slow_mode_and_sleep_save_energy_and_say_so() {
    let sparse = "read_percent = 100\nblock_size = \"4KiB\"\nrequests = 40\n[arrivals]\nkind = \"poisson\"\nrate = 20";
    let preset = presets::find("nvme-tlc").unwrap();
    let mut device = Config::parse(preset.text).unwrap();
    device.flash.blocks_per_plane = 64;
    device.ftl.over_provisioning = 0.25;
    let mut awake = device.clone();
    awake.power.states.clear();
    awake.energy.cpu.slow_when_idle_after = None;
    let total = |device: &Config| {
        let result = measure(&run(device.clone(), sparse, 1)).result;
        (result.energy_joules.unwrap().total, result.notes.join("\n"))
    };
    let (saving, said) = total(&device);
    let (plain, _) = total(&awake);
    assert!(saving < 0.8 * plain, "{saving} J against {plain} J");
    assert!(said.contains("Slowing the idle CPU saved"), "{said}");
}

#[test]
fn an_interrupted_run_keeps_what_it_has() {
    let run = run(config(&[]), READS, 1);
    let measured = run.execute(&mut |progress| {
        if progress.completed > 20_000 { KeepGoing::Stop } else { KeepGoing::Continue }
    });
    let measured = measured.unwrap();
    assert!(matches!(measured.failure, Some(RunError::Interrupted)));
    assert!(measured.result.partial && measured.result.requests > 20_000);
    assert!(measured.result.requests < 60_000);
}

#[test]
fn limits_end_a_run_in_time() {
    let mut run = run(config(&[]), READS, 1);
    run.limits.duration = Some(Time::from_ms(5));
    let seconds = measure(&run).result.simulated_seconds;
    assert!((0.005..0.006).contains(&seconds), "{seconds}");
    run.limits = RunLimits { requests: Some(123), ..RunLimits::default() };
    assert_eq!(measure(&run).result.requests, 123);
}

#[test]
fn an_impossible_device_names_the_key() {
    let tight = config(&[("over_provisioning = 0.1454753722794959", "over_provisioning = 0.01")]);
    match run(tight, READS, 1).execute(&mut |_| KeepGoing::Continue) {
        Err(RunError::Device(error)) => {
            assert_eq!(error.key, "ftl.over_provisioning");
            assert!(error.help.contains("at least"), "{}", error.help);
        }
        other => panic!("{:?}", other.map(|m| m.failure)),
    }
}

/// A device that is being prepared can be watched and given up, and is the same when watched.
#[test]
fn preparation_is_told_of_and_can_be_ended() {
    let run = run(config(&[]), &READS.replace("60000", "100"), 3);
    let mut shares = Vec::new();
    let watched = run.execute(&mut |progress| {
        shares.extend(progress.preparing);
        KeepGoing::Continue
    });
    assert!(shares.len() > 3, "{shares:?}");
    assert!(shares.is_sorted() && shares.iter().all(|s| (0.0..=1.0).contains(s)), "{shares:?}");
    let mut calls = 0;
    let ended = run.execute(&mut |progress| {
        assert!(progress.preparing.is_some(), "the load began all the same");
        calls += 1;
        if calls < 3 { KeepGoing::Continue } else { KeepGoing::Stop }
    });
    assert!(matches!(ended, Err(RunError::Unprepared)), "{ended:?}");
    assert_eq!(calls, 3, "the first word was heard");
    let again = run.execute(&mut |_| KeepGoing::Continue).unwrap().result;
    assert_eq!(watched.unwrap().result.latency_ns, again.latency_ns);
}

/// An error in a workload or a host is reported before the preconditioning, which takes seconds for a drive of 1 TiB,
/// however the drive is attached.
#[test]
fn mistakes_are_told_before_the_device_is_prepared() {
    // Pages of 64 KiB keep the tables small; there are 16 million all the same.
    let large = || {
        config(&[
            ("page_size = \"4KiB\"", "page_size = \"64KiB\""),
            ("blocks_per_plane = 512", "blocks_per_plane = 2048"),
        ])
    };
    let mut nvme = large();
    nvme.nvme.get_or_insert_with(Default::default);
    let host = |cores| {
        let config = ssdyno_host::HostConfig::parse(ssdyno_host::presets::ALL[0].text).unwrap();
        let options = HostOptions { cores: Some(cores), ..HostOptions::default() };
        HostPlan::new("server", config, &options, None)
    };
    let nvme = |cores| Attach::behind(nvme.clone(), host(cores), DevicePath::Nvme(Box::default()));
    let adapter = |cores| Attach::behind(large(), host(cores), DevicePath::Adapter);
    let run = |device: Attach, workload| SimRun { device, ..run(config(&[]), workload, 1) };
    // Sectors are the unit of every target, and a host has no 60000 cores.
    let (odd, good) = ("block_size = \"4097B\"", "block_size = \"4KiB\"");
    let mut unwatched = |_: &RunProgress| -> KeepGoing { panic!("the device is being prepared") };
    for device in [large().into(), nvme(2), adapter(2)] {
        match run(device, odd).execute(&mut unwatched) {
            Err(RunError::Workload(error)) => assert_eq!(error.key.unwrap(), "block_size"),
            other => panic!("{other:?}"),
        }
    }
    for device in [nvme(60_000), adapter(60_000)] {
        let ended = run(device, good).execute(&mut unwatched);
        assert!(matches!(ended, Err(RunError::Host(_))), "{ended:?}");
    }
    let odd = ssdyno_workload::WorkloadConfig::from_toml(odd).unwrap();
    let mut session = Session::new(&large().into(), 1).unwrap();
    let ended = session.load(&odd, 1, RunLimits::default(), &mut unwatched);
    assert!(matches!(ended, Err(RunError::Workload(_))), "{ended:?}");
}

/// Writes into an empty buffer are all alike: their narrow interval says nothing of those that
/// follow. This drive has 32 MiB of buffer; without the rule the run ends after 3231 requests.
#[test]
fn until_waits_for_the_write_buffer() {
    let device = Config::parse(presets::find("gen4-consumer").unwrap().text).unwrap();
    let mut run = run(device, WRITES, 1);
    run.limits.until = Some("p50=2%".parse().unwrap());
    run.limits.requests = Some(30_000);
    run.keep = Keep::None;
    let result = measure(&run).result;
    let written = result.requests * 4096;
    assert!(written >= 2 * (32 << 20), "{written} bytes were written");
    assert!(result.write_amplification.unwrap() > 1.0);
}
