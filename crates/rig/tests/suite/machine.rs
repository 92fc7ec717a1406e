//! Whole machines - host, driver, bus, controller, flash - and what the host adds.

use common::measure;
use ssdyno_block::Time;
use ssdyno_controller_ring::RingConfig;
use ssdyno_driver_nvme::{HeadDoorbell, NvmeConfig, QueuePolicy, Weights};
use ssdyno_driver_ring::{BlockPolicy, CompletionPolicy, RingDriverOptions as RingOptions};
use ssdyno_engine::events::{Busy, EventReader, PartKind};
use ssdyno_figures::{HostResult, RunProgress, RunResult};
use ssdyno_host::{CompletionWait, ThreadMode};
use ssdyno_rig::{Attach, DevicePath, HostOptions, KeepGoing, RunError, SimRun, Source, Stack};
use ssdyno_ssd::{Config, presets};

use crate::common;

/// A small SSD whose controller has room for everything that a test requests.
fn device() -> Config {
    let mut device = common::device();
    let nvme = device.nvme.get_or_insert_default();
    nvme.io_queues = 31;
    nvme.queue_entries = 4096;
    device
}

fn load(threads: u32, depth: u32, size: &str, write_percent: u32, requests: u64) -> String {
    format!(
        "write_percent = {write_percent}\nblock_size = \"{size}\"\ndepth = {depth}\nthreads = {threads}\nrequests = {requests}"
    )
}

fn run(
    policy: QueuePolicy,
    options: &HostOptions,
    host: &str,
    workload: &str,
    seed: u64,
) -> SimRun {
    let driver = NvmeConfig { policy, ..NvmeConfig::default() };
    common::run(device(), driver, (host, options), workload, seed)
}

fn host(result: &RunResult) -> &HostResult {
    result.host.as_ref().unwrap()
}

/// The ramp-up is in no figure of the host: rates by core add up to the rate of the run.
#[test]
fn the_host_is_measured_in_the_window_of_the_run() {
    let measure = |ramp_up: u32| {
        let load = format!("{}\nramp_up = {ramp_up}", load(4, 4, "4KiB", 0, 6_000));
        let device = run(QueuePolicy::PerCore, &HostOptions::default(), "server", &load, 1);
        common::measure(&device)
    };
    for ramp_up in [0, 3_000] {
        let result = measure(ramp_up);
        let cores = &host(&result).cores;
        let sum: f64 = cores.iter().map(|core| core.iops).sum();
        assert!((sum / result.iops - 1.0).abs() < 0.01, "{ramp_up}: {sum} of {}", result.iops);
        let busy: f64 = cores.iter().map(|core| core.busy_share).sum();
        let expected = host(&result).cpu_ns_per_request * result.iops / 1e9;
        assert!((busy / expected - 1.0).abs() < 0.02, "{ramp_up}: {busy} of {expected}");
    }
}

const POLICIES: [QueuePolicy; 5] = [
    QueuePolicy::RoundRobin { as_printed: false },
    QueuePolicy::RoundRobin { as_printed: true },
    QueuePolicy::PerCore,
    QueuePolicy::PerCorePool,
    QueuePolicy::Single,
];

/// Every policy, mode and way of waiting, twice the same; the invariants hold in each.
#[test]
fn every_way_keeps_the_invariants_and_repeats() {
    let modes = [ThreadMode::Sync, ThreadMode::Async, ThreadMode::Batch];
    let ways = [CompletionWait::Interrupt, CompletionWait::Poll, CompletionWait::Hybrid];
    let mixed = "read_percent = 60\nwrite_percent = 30\ntrim_percent = 10\nblock_size = \"16KiB\"\ndepth = 6\nthreads = 4\nrequests = 1500";
    for (index, policy) in POLICIES.into_iter().enumerate() {
        for (n, mode) in modes.into_iter().enumerate() {
            let options = HostOptions {
                cores: Some(4),
                mode: Some(mode),
                waiting: ways[(index + n) % 3],
                stack: (n == 1).then_some(Stack::Scsi),
                doorbell_per_batch: n == 2,
                ..HostOptions::default()
            };
            let preset = if index % 2 == 0 { "server" } else { "e5430" };
            let run = run(policy, &options, preset, mixed, 3);
            let figures = |result: RunResult| {
                let result = RunResult { wall_seconds: 0.0, own_cost: None, ..result };
                let result = RunResult { simulated_requests_per_wall_second: None, ..result };
                ssdyno_report::to_json(&result).unwrap()
            };
            let first = figures(measure(&run));
            assert!(first == figures(measure(&run)), "{policy:?} {mode:?} differs from run to run");
        }
    }
}

/// What the host adds: one read at a time takes the device's time and the sum of the costs.
#[test]
fn the_host_adds_its_costs_to_one_read() {
    let one = load(1, 1, "4KiB", 0, 2_000);
    let options = HostOptions { cores: Some(1), ..HostOptions::default() };
    let with = measure(&run(QueuePolicy::PerCore, &options, "server", &one, 1));
    let mut alone = run(QueuePolicy::PerCore, &options, "server", &one, 1);
    let mut plain = device();
    plain.nvme = None;
    alone.device = plain.into();
    let without = measure(&alone);
    let mean = |result: &RunResult| result.latency_ns.as_ref().unwrap().all.mean;
    let added = mean(&with) - mean(&without);
    // Preset server: call 100, request 330, command 120, doorbell 150; fetch 900 and more on the wire;
    // completion 300; message 300, idle exit 1000, interrupt 600, completion 180, doorbell 60,
    // wake-up 250, switch 900.
    assert!((4_900.0..5_800.0).contains(&added), "{added} ns");
    let host = host(&with);
    assert!((2_400.0..2_700.0).contains(&host.cpu_ns_per_request), "{}", host.cpu_ns_per_request);
    let sum: f64 = host.cpu_ns_per_request_by_cause.values().sum();
    assert!((sum / host.cpu_ns_per_request - 1.0).abs() < 1e-9);
    assert!((host.interrupts_per_request - 1.0).abs() < 1e-3);
    assert!((host.register_writes_per_request - 2.0).abs() < 1e-3);
    // S1-4, S1-25: none, neither for a command nor for its completion; the driver keeps what it once read.
    assert!(host.register_reads_per_request < f64::EPSILON, "{}", host.register_reads_per_request);
    assert!(host.energy.above_idle_joules > 0.0);
}

/// S1-51: the indirections of the SCSI stack cost CPU, and with it throughput where CPU is short.
#[test]
fn the_scsi_stack_costs_what_it_says() {
    let busy = load(1, 32, "4KiB", 0, 20_000);
    let rate = |scsi: bool| {
        let stack = scsi.then_some(Stack::Scsi);
        let options = HostOptions { cores: Some(1), stack, ..HostOptions::default() };
        let result = measure(&run(QueuePolicy::PerCore, &options, "server", &busy, 1));
        let translation = host(&result).cpu_ns_per_request_by_cause["scsi"];
        (result.iops, host(&result).cpu_ns_per_request, translation)
    };
    let ((block, block_cpu, none), (scsi, scsi_cpu, translation)) = (rate(false), rate(true));
    assert!((translation - 350.0).abs() < 1e-6 && none == 0.0, "{translation} and {none}");
    // A slower core has more to do at each interrupt, so not all of it is added.
    assert!((200.0..351.0).contains(&(scsi_cpu - block_cpu)), "{block_cpu} and {scsi_cpu}");
    assert!(block > scsi, "{block} and {scsi}");
}

/// S1-47: the driver reports the stack that it is made for, and has it; a request for another stack gets an error.
#[test]
fn the_stack_is_what_the_driver_reports() {
    let few = load(1, 4, "4KiB", 0, 500);
    let built = |reports: bool, wished| {
        let options = HostOptions { stack: wished, ..HostOptions::default() };
        let mut run = run(QueuePolicy::PerCore, &options, "server", &few, 1);
        let Some(DevicePath::Nvme(driver)) = run.device.path_mut() else { unreachable!() };
        driver.scsi = reports;
        run
    };
    let has = |run: &SimRun| {
        let result = measure(run);
        let cost = host(&result).cpu_ns_per_request_by_cause["scsi"];
        assert_eq!(cost > 0.0, host(&result).stack == "scsi");
        assert_eq!(cost > 0.0, result.invariants.iter().any(|invariant| invariant.name == "scsi"));
        host(&result).stack.clone()
    };
    assert_eq!(has(&built(true, None)), "scsi");
    assert_eq!(has(&built(false, None)), "block");
    assert_eq!(has(&built(true, Some(Stack::Scsi))), "scsi");
    assert_eq!(has(&built(false, Some(Stack::Block))), "block");
    for (reports, wished) in [(true, Stack::Block), (false, Stack::Scsi)] {
        let error = built(reports, Some(wished)).execute(&mut |_| KeepGoing::Continue).unwrap_err();
        let told = matches!(error, RunError::Stack { wished: w, .. } if w == wished);
        assert!(told && error.to_string().contains(wished.name()), "{error}");
    }
}

/// S1-31: a head doorbell for each completion is a register write for each.
#[test]
fn head_doorbells_are_counted() {
    let busy = load(1, 64, "4KiB", 0, 20_000);
    let options = HostOptions {
        cores: Some(1),
        mode: Some(ThreadMode::Batch),
        doorbell_per_batch: true,
        ..HostOptions::default()
    };
    let mut each = run(QueuePolicy::PerCore, &options, "server", &busy, 1);
    let batch = measure(&each);
    if let Some(DevicePath::Nvme(driver)) = each.device.path_mut() {
        driver.head_doorbell = HeadDoorbell::PerCompletion;
    }
    let each = measure(&each);
    let writes = |result: &RunResult| host(result).register_writes_per_request;
    assert!(writes(&batch) < 1.0, "{}", writes(&batch));
    assert!(writes(&each) > 1.0 && writes(&each) < 1.1, "{}", writes(&each));
}

/// S1-41, S1-42, figure 6.1 of the thesis: with weights of the controller, or with more queues if the controller weighs
/// none, threads of the better class get more; without either, all get the same.
#[test]
fn classes_of_threads_share_the_device_as_told() {
    let weights = Weights { burst_shift: 0, high: 16, medium: 8, low: 4 };
    let share = |policy, classes: &[u8]| {
        let options = HostOptions {
            cores: Some(4),
            mode: Some(ThreadMode::Async),
            classes: classes.to_vec(),
            ..HostOptions::default()
        };
        let busy = load(4, 128, "4KiB", 0, 30_000);
        let mut run = run(policy, &options, "server", &busy, 1);
        // The controller decides where commands wait for it in their queues.
        if let Some(device) = run.device.ssd_mut() {
            device.queue.depth = 128;
        }
        let result = measure(&run);
        let cores = &host(&result).cores;
        let of = |first| cores.iter().skip(first).step_by(2).map(|core| core.iops).sum::<f64>();
        of(0) / of(1)
    };
    // Threads 0 and 2 are of the high class, 1 and 3 of the low one: 16 to 4, 4 queues to 1.
    let classes = [1, 3];
    let weighted = share(QueuePolicy::Weighted { queues: [1, 1, 1, 1], weights }, &classes);
    let more = share(QueuePolicy::MoreQueues { queues: [0, 4, 0, 1] }, &classes);
    let alike = share(QueuePolicy::MoreQueues { queues: [0, 4, 0, 1] }, &[1, 1]);
    assert!((0.98..1.02).contains(&alike), "{alike}");
    assert!((3.6..4.4).contains(&weighted), "{weighted}");
    assert!((3.6..4.4).contains(&more), "{more}");
}

/// S1-56: writes are reported faster than the device does them.
#[test]
fn copied_writes_are_reported_early() {
    let writes = load(1, 1, "32KiB", 100, 1_500);
    let options = HostOptions { cores: Some(1), ..HostOptions::default() };
    let result = measure(&run(QueuePolicy::PerCore, &options, "e5430", &writes, 1));
    let device = host(&result).device_completed_bytes_per_second.unwrap();
    assert!(device < 0.9 * result.throughput_bytes_per_second, "{device}");
    let reads =
        measure(&run(QueuePolicy::PerCore, &options, "e5430", &load(1, 1, "32KiB", 0, 500), 1));
    assert!(reads.throughput_bytes_per_second < result.throughput_bytes_per_second);
    assert_eq!(host(&reads).device_completed_bytes_per_second, None);
}

/// What the device completed is counted from the start of the recorded window: a load that begins 50 ms later
/// is the same load. (After 100 ms the drive would be asleep, and wake up first.)
#[test]
fn early_reports_are_counted_from_the_start_of_the_window() {
    let options = HostOptions { cores: Some(1), ..HostOptions::default() };
    let device_rate = |delay: &str| {
        let text = format!("[w]\nrw=write\nbs=32k\nio_size=48m\n{delay}");
        let mut run =
            run(QueuePolicy::PerCore, &options, "e5430", &load(1, 1, "32KiB", 100, 1_500), 1);
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        let jobs = ssdyno_workload::read_fio_jobs(file.path()).unwrap();
        run.source = Source::Jobs { path: "late.fio".into(), jobs };
        let result = measure(&run);
        (
            result.throughput_bytes_per_second,
            host(&result).device_completed_bytes_per_second.unwrap(),
        )
    };
    let (at_once, late) = (device_rate(""), device_rate("startdelay=50ms\n"));
    let same = |a: f64, b: f64| (a / b - 1.0).abs() < 0.01;
    assert!(same(at_once.0, late.0) && same(at_once.1, late.1), "{at_once:?} {late:?}");
}

/// Polling completes earlier and costs more CPU time; the rest does not change.
#[test]
fn polling_is_faster_and_dearer() {
    let one = load(1, 1, "4KiB", 0, 2_000);
    let figures = |waiting| {
        let options = HostOptions { cores: Some(1), waiting, ..HostOptions::default() };
        let result = measure(&run(QueuePolicy::PerCore, &options, "server", &one, 1));
        (result.latency_ns.as_ref().unwrap().all.mean, host(&result).cpu_ns_per_request)
    };
    let (interrupt, interrupt_cpu) = figures(CompletionWait::Interrupt);
    let (poll, poll_cpu) = figures(CompletionWait::Poll);
    let (hybrid, hybrid_cpu) = figures(CompletionWait::Hybrid);
    assert!(poll + 1_500.0 < interrupt, "{poll} and {interrupt}");
    assert!(hybrid < interrupt && hybrid >= poll - 1.0);
    assert!(interrupt_cpu < hybrid_cpu && hybrid_cpu < poll_cpu);
}

/// A driver that cannot drive the device is an error, and no panic.
#[test]
fn a_path_needs_a_device_of_its_kind() {
    let few = load(1, 4, "4KiB", 0, 500);
    let mut run = run(QueuePolicy::PerCore, &HostOptions::default(), "server", &few, 1);
    let card = RingConfig::parse(ssdyno_controller_ring::presets::CARDS[0].text).unwrap();
    run.device.device = card.into();
    let error = run.execute(&mut |_| KeepGoing::Continue).unwrap_err();
    assert!(error.to_string().contains("the driver `nvme` cannot drive"), "{error}");
}

/// Every device that can stand behind a driver is started by it, and answers.
#[test]
fn every_preset_comes_up_behind_its_driver() {
    let mixed = load(4, 8, "8KiB", 30, 1_000);
    let run = run(QueuePolicy::PerCore, &HostOptions::default(), "server", &mixed, 1);
    let Some(side) = &run.device.host else { unreachable!() };
    for preset in presets::SSDS {
        let mut config = Config::parse(preset.text).unwrap();
        if config.nvme.is_none() {
            continue;
        }
        config.flash.blocks_per_plane = config.flash.blocks_per_plane.min(64);
        config.ftl.over_provisioning = config.ftl.over_provisioning.max(0.25);
        let device = Attach { device: config.into(), host: Some(side.clone()) };
        let result = measure(&SimRun { target: preset.name.into(), device, ..run.clone() });
        assert_eq!(result.requests, 1_000, "{}", preset.name);
    }
    for preset in ssdyno_controller_ring::presets::CARDS {
        let card = RingConfig::parse(preset.text).unwrap();
        for driver in ring_options() {
            let path = DevicePath::Ring(Box::new(driver));
            let device = Attach::behind(card.clone(), (*side.plan).clone(), path);
            let result = measure(&SimRun { target: preset.name.into(), device, ..run.clone() });
            assert_eq!(result.requests, 1_000, "{}", preset.name);
        }
    }
}

/// Every way of the ring driver to hear of completions, and a static block that never becomes full.
fn ring_options() -> Vec<RingOptions> {
    let of = |completion| RingOptions { completion, ..RingOptions::default() };
    let timeout = Time::from_us(20);
    vec![
        RingOptions::default(),
        of(CompletionPolicy::PerReturn),
        of(CompletionPolicy::Napi { budget: 4 }),
        of(CompletionPolicy::Calibrated { threshold: 4, timeout }),
        of(CompletionPolicy::HybridPolling { interval: Time::from_us(2) }),
        RingOptions {
            block: BlockPolicy::Static(32),
            partial_after: Some(timeout),
            ..RingOptions::default()
        },
    ]
}

/// The device empties its write buffer after the last completion: energy, busy shares and the time that
/// they are of go on until it has, with a host before it as without.
#[test]
fn energy_is_counted_until_the_device_has_settled() {
    let mut run = run(
        QueuePolicy::PerCore,
        &HostOptions::default(),
        "server",
        &load(4, 8, "4KiB", 100, 4_000),
        3,
    );
    // 16 MB into a buffer that holds them all, on little flash.
    let device = run.device.ssd_mut().unwrap();
    device.flash.channels = 1;
    device.flash.chips_per_channel = 1;
    let alone = Attach::from(device.clone());
    let with_host = measure(&run);
    run.device = alone;
    for result in [with_host, measure(&run)] {
        let (whole, answered) = (result.energy_seconds.unwrap(), result.simulated_seconds);
        assert!(whole > 2.0 * answered, "{whole} s, {answered} s until the last answer");
        let energy = result.energy_joules.unwrap();
        let of_series: f64 = result
            .series
            .iter()
            .map(|point| point.power_watts.unwrap().total * point.length_seconds)
            .sum();
        assert!(of_series < 0.7 * energy.total, "{of_series} J of {} J", energy.total);
    }
}

/// With a timeline each core of the host has a lane, and is as busy there as in the report; the figures are
/// those without one.
#[test]
fn cores_of_the_host_are_on_the_timeline() {
    struct Lanes(Vec<(u16, u64, u64)>);
    impl EventReader for Lanes {
        fn read(&mut self, events: &[Busy]) {
            let ps = Time::as_ps;
            let host = events.iter().filter(|event| event.part.kind == PartKind::HostCore);
            self.0.extend(host.map(|e| (e.part.index, ps(e.from), ps(e.to))));
        }
    }
    for (policy, scsi) in [(QueuePolicy::PerCore, false), (QueuePolicy::Single, true)] {
        let stack = scsi.then_some(Stack::Scsi);
        let options = HostOptions { cores: Some(3), stack, ..HostOptions::default() };
        let run = run(policy, &options, "server", &load(3, 4, "4KiB", 30, 2_000), 5);
        let mut lanes = Lanes(Vec::new());
        let told = run
            .supervise(Some(&mut lanes), &mut |_: &RunProgress| KeepGoing::Continue)
            .unwrap()
            .result;
        let figures = |result: &RunResult| {
            let mut result = result.clone();
            (result.wall_seconds, result.own_cost) = (0.0, None);
            result.simulated_requests_per_wall_second = None;
            ssdyno_report::to_json(&result).unwrap()
        };
        assert_eq!(figures(&told), figures(&measure(&run)));
        lanes.0.sort_unstable();
        let cores = &host(&told).cores;
        assert_eq!(cores.len(), 3);
        let end = lanes.0.iter().map(|lane| lane.2).max().unwrap() as f64;
        for (core, report) in cores.iter().enumerate() {
            let own: Vec<_> = lanes.0.iter().filter(|lane| usize::from(lane.0) == core).collect();
            assert!(own.windows(2).all(|pair| pair[0].2 <= pair[1].1), "core {core} overlaps");
            let busy = own.iter().map(|lane| lane.2 - lane.1).sum::<u64>() as f64 / end;
            // What of a hand-over an interrupt hides takes no time; the run ends a little later.
            assert!((busy - report.busy_share).abs() < 0.01 * busy, "{busy} {report:?}");
        }
    }
}
