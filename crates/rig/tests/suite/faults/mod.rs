//! Injected faults (S4-48): what fails, comes late, gets lost, hangs or is removed, on every way to a
//! device.

mod random;

use ssdyno_block::Time;
use ssdyno_controller_ring::RingConfig;
use ssdyno_device::DeviceSpec;
use ssdyno_device::delay::DelayConfig;
use ssdyno_device::faults::FaultConfig;
use ssdyno_driver_nvme::{NvmeConfig, QueuePolicy};
use ssdyno_driver_ring::{CompletionPolicy, RingDriverOptions as RingOptions};
use ssdyno_figures::{DeviceFaults, DriverActionKind, FaultsResult, RunResult, StopReason};
use ssdyno_host::{CompletionWait, ThreadMode};
use ssdyno_rig::{
    Attach, DevicePath, HostOptions, HostPlan, KeepGoing, NETWORKS, NetworkConfig,
    NetworkFaultConfig, RunError, SimMeasured, SimRun, Source, Stack,
};

use crate::common;

fn faults(keys: &str) -> FaultConfig {
    toml::from_str(keys).unwrap()
}

fn load(depth: u32, write_percent: u32, requests: u32) -> String {
    format!(
        "write_percent = {write_percent}\nblock_size = \"4KiB\"\nthreads = {}\ndepth = {depth}\nrequests = {requests}",
        depth.min(4)
    )
}

/// A drive with `keys` under an NVMe driver that waits 10 ms for an answer.
fn nvme(keys: &str, options: &HostOptions, policy: QueuePolicy, load: &str, seed: u64) -> SimRun {
    let mut device = common::device();
    device.faults = faults(keys);
    device.nvme.get_or_insert_default().queue_entries = 4096;
    let driver = NvmeConfig {
        policy,
        io_timeout: Time::from_ms(10),
        admin_timeout: Time::from_ms(40),
        ..NvmeConfig::default()
    };
    common::run(device, driver, ("server", options), load, seed)
}

fn one_core() -> HostOptions {
    HostOptions { cores: Some(1), ..HostOptions::default() }
}

/// The plan of a host with one core for `load`.
fn plan(name: &str, load: &str) -> (HostPlan, Source) {
    let load = ssdyno_workload::WorkloadConfig::from_toml(load).unwrap();
    let preset = ssdyno_host::presets::find(name).unwrap();
    let config = ssdyno_host::HostConfig::parse(preset.text).unwrap();
    let options = HostOptions { mode: Some(ThreadMode::Sync), ..one_core() };
    (HostPlan::new(name, config, &options, Some(&load)), Source::Generator(load))
}

fn of(device: Attach, source: Source, seed: u64) -> SimRun {
    SimRun { seed, ..common::of(device, source) }
}

/// A ring card with DRAM and a driver that waits 5 ms for an answer.
fn ring(keys: &str, load: &str, seed: u64) -> SimRun {
    let mut card = RingConfig::parse(ssdyno_controller_ring::presets::CARDS[0].text).unwrap();
    card.faults = faults(keys);
    let driver = RingOptions { timeout: Time::from_ms(5), ..RingOptions::default() };
    let (host, source) = plan("server", load);
    of(Attach::behind(card, host, DevicePath::Ring(Box::new(driver))), source, seed)
}

fn delay(keys: &str) -> DeviceSpec {
    let text = "[delay]\ncapacity = \"1GiB\"\nread = \"100us\"\nwrite = \"100us\"";
    let mut config = DelayConfig::parse(text).unwrap();
    config.faults = faults(keys);
    DeviceSpec::new(config)
}

fn direct(keys: &str, load: &str, seed: u64) -> SimRun {
    let source = Source::Generator(ssdyno_workload::WorkloadConfig::from_toml(load).unwrap());
    of(delay(keys).into(), source, seed)
}

/// A delay behind a network with `keys`.
fn network(keys: &str, device: &str, load: &str, seed: u64) -> SimRun {
    let mut network = NetworkConfig::parse(NETWORKS[0].text).unwrap();
    network.faults = toml::from_str::<NetworkFaultConfig>(keys).unwrap();
    let (host, source) = plan("server", load);
    let path = DevicePath::Network(Box::new(network));
    of(Attach::behind(delay(device), host, path), source, seed)
}

/// What `run` gave; every invariant held.
fn measure(run: &SimRun) -> SimMeasured {
    let measured = run.execute(&mut |_| KeepGoing::Continue).unwrap();
    for invariant in &measured.result.invariants {
        assert!(invariant.holds, "{invariant:?}");
    }
    measured
}

/// The figures of a run that came to its end.
fn figures(run: &SimRun) -> RunResult {
    let measured = measure(run);
    assert!(measured.failure.is_none(), "{:?}", measured.failure);
    assert!(!measured.result.partial);
    measured.result
}

fn told(result: &RunResult) -> &FaultsResult {
    result.faults.as_ref().unwrap()
}

fn device_of(result: &RunResult) -> DeviceFaults {
    told(result).device.unwrap()
}

fn mean_ns(result: &RunResult) -> f64 {
    result.latency_ns.as_ref().unwrap().all.mean
}

/// Five standard deviations of a binomial around its mean.
fn is_share(count: u64, n: u32, share: f64) -> bool {
    let mean = f64::from(n) * share;
    (count as f64 - mean).abs() <= 5.0 * (mean * (1.0 - share)).sqrt()
}

/// Without configured faults the result reports none, and the load on the device is the same with
/// and without faults.
#[test]
fn without_faults_nothing_is_told_and_the_load_is_the_same() {
    let load = load(4, 40, 5_000);
    let none = figures(&nvme("", &one_core(), QueuePolicy::PerCore, &load, 1));
    assert_eq!(none.faults, None);
    let keys = "delay = 0.2\ndelay_by = \"50us\"";
    let late = figures(&nvme(keys, &one_core(), QueuePolicy::PerCore, &load, 1));
    assert_eq!(none.requests_by_op, late.requests_by_op);
    assert!(mean_ns(&late) > mean_ns(&none) + 5_000.0);
    assert!(is_share(device_of(&late).delays, 5_000, 0.2));
}

/// Each command that fails is a request that fails, however it goes; nothing else does.
#[test]
fn errors_reach_the_workload_on_every_way() {
    let (load, n) = (load(4, 40, 6_000), 6_000);
    let keys = "error = 0.02";
    for seed in [1, 2] {
        let scsi = HostOptions { stack: Some(Stack::Scsi), ..one_core() };
        let runs = [
            nvme(keys, &one_core(), QueuePolicy::PerCore, &load, seed),
            nvme(keys, &scsi, QueuePolicy::Single, &load, seed),
            ring(keys, &load, seed),
            direct(keys, &load, seed),
            network("", keys, &load, seed),
        ];
        for run in runs {
            let result = figures(&run);
            let device = device_of(&result);
            assert!(is_share(device.errors, n, 0.02), "seed {seed}: {}", device.errors);
            assert_eq!((device.delays, device.drops, device.lost_interrupts), (0, 0, 0));
            let way = result.host.as_ref().map(|host| (&host.driver, &host.stack));
            assert_eq!(result.errors, device.errors, "{way:?}");
            assert_eq!(result.requests + result.errors, u64::from(n));
            assert_eq!(told(&result).requests_failed, device.errors);
            let sense: u64 = told(&result).sense.values().sum();
            let translated = result.host.as_ref().is_some_and(|host| host.stack == "scsi");
            assert_eq!(sense, if translated { device.errors } else { 0 });
            if translated {
                let names: Vec<_> = told(&result).sense.keys().cloned().collect();
                assert_eq!(names, ["MEDIUM ERROR 03h/00h", "MEDIUM ERROR 11h/00h"]);
            }
        }
    }
}

/// A delay alone, one request at a time: mean = 100 us + share that was late x `delay_by`, exact to the
/// rounding of the mean.
#[test]
fn delays_add_what_was_said() {
    for seed in [1, 2, 3] {
        let n = 4_000;
        let run = direct("delay = 0.05\ndelay_by = \"7ms\"", &load(1, 50, n), seed);
        let result = figures(&run);
        let late = device_of(&result).delays;
        assert!(is_share(late, n, 0.05), "seed {seed}: {late}");
        let expected = 1e5 + late as f64 / f64::from(n) * 7e6;
        assert!((mean_ns(&result) - expected).abs() < 1e-3, "{} ns", mean_ns(&result));
    }
}

/// A command that never completes costs the timeout and the abort, a few us; a retry makes it good.
#[test]
fn a_dropped_command_costs_the_time_limit() {
    let (n, keys) = (3_000, "drop = 0.002");
    let load = load(1, 0, n);
    let failing = figures(&nvme(keys, &one_core(), QueuePolicy::PerCore, &load, 1));
    let drops = device_of(&failing).drops;
    assert!(drops > 0 && is_share(drops, n, 0.002), "{drops}");
    assert_eq!((failing.errors, told(&failing).driver.aborts), (drops, drops));
    assert_eq!(told(&failing).driver.resets, 0);
    // Nobody knows how long an aborted command would have taken: it counts as at least its wait.
    let latency = failing.latency_ns.as_ref().unwrap().all;
    let most = latency.at_most.unwrap();
    assert_eq!(failing.unanswered, drops);
    assert!((10.0e6..10.1e6).contains(&latency.max), "{} ns", latency.max);
    assert!(latency.p99_9 > 9.9e6 && most.p99_9.is_none(), "{} ns", latency.p99_9);
    assert_eq!(most.p99, Some(latency.p99), "less than 1 % is aborted");
    let quiet = figures(&nvme("", &one_core(), QueuePolicy::PerCore, &load, 1));
    let lost = failing.simulated_seconds - quiet.simulated_seconds;
    // Less the time that it would have taken, and an abort more.
    let each = lost / drops as f64 + mean_ns(&quiet) / 1e9;
    assert!((0.010..0.010_1).contains(&each), "{each} s for each of {drops}");
    let again = HostOptions { retries: 3, ..one_core() };
    let good = figures(&nvme(keys, &again, QueuePolicy::PerCore, &load, 1));
    let max = good.latency_ns.as_ref().unwrap().all.max;
    assert_eq!((good.errors, told(&good).requests_failed), (0, 0));
    assert_eq!(told(&good).driver.retries, device_of(&good).drops);
    assert!((10.0e6..10.4e6).contains(&max), "{max} ns");
}

/// What is given again costs the driver's CPU time again, and a failed completion is one that is handled.
#[test]
fn what_is_given_again_costs_cpu_time() {
    let n = 3_000;
    let load = load(1, 30, n);
    let again = HostOptions { retries: 10, ..one_core() };
    let nvme = |keys| figures(&nvme(keys, &again, QueuePolicy::PerCore, &load, 1));
    let breaks = "reset = 0.05\nreconnect = \"1ms\"";
    let (drive, failing) = (nvme(""), nvme("error = 0.1"));
    let (link, broken) =
        (figures(&network("", "", &load, 1)), figures(&network(breaks, "", &load, 1)));
    let retries = told(&failing).driver.retries;
    let resent = told(&broken).network.unwrap().commands_resent;
    assert!(is_share(retries, n, 0.111) && resent > 100, "{retries} {resent}");
    for (quiet, result, cause, more) in [
        (&drive, &failing, "driver", retries),
        (&drive, &failing, "completion", retries),
        (&link, &broken, "driver", resent),
    ] {
        assert_eq!((result.errors, result.requests), (0, u64::from(n)));
        let cpu = |of: &RunResult| of.host.as_ref().unwrap().cpu_ns_per_request_by_cause[cause];
        let each = cpu(result) / cpu(quiet) - 1.0;
        assert!((each - more as f64 / f64::from(n)).abs() < 1e-9, "{cause}: {each} for {more}");
    }
}

/// Half of the requests fail. Rates of cores and costs of a request are those of the other half, as are the rate of the run and
/// the energy of the drive.
#[test]
fn figures_of_the_host_are_of_requests_that_complete_without_error() {
    let two = HostOptions { cores: Some(2), ..HostOptions::default() };
    let result = figures(&nvme("error = 0.5", &two, QueuePolicy::PerCore, &load(4, 0, 2_000), 1));
    assert!(is_share(result.errors, 2_000, 0.5), "{}", result.errors);
    let host = result.host.as_ref().unwrap();
    let iops: f64 = host.cores.iter().map(|core| core.iops).sum();
    assert!((iops / result.iops - 1.0).abs() < 1e-6, "{iops} and {}", result.iops);
    let bytes: f64 = host.cores.iter().map(|core| core.throughput_bytes_per_second).sum();
    assert!((bytes / result.throughput_bytes_per_second - 1.0).abs() < 1e-6, "{bytes}");
    let energy = host.energy;
    let each = energy.above_idle_joules_per_request.unwrap();
    let good = energy.above_idle_joules / each;
    assert!((good / result.requests as f64 - 1.0).abs() < 1e-9, "{good} of {}", result.requests);
    assert!(host.commands_per_request > 1.8, "{}", host.commands_per_request);
}

/// A lost interrupt: with one request at a time the timeout finds the completion.
#[test]
fn a_lost_interrupt_is_found_by_the_time_limit() {
    let keys = "lost_interrupts = 0.002";
    let result = figures(&nvme(keys, &one_core(), QueuePolicy::PerCore, &load(1, 0, 3_000), 1));
    let lost = device_of(&result).lost_interrupts;
    assert!(lost > 0 && is_share(lost, 3_000, 0.002), "{lost}");
    assert_eq!(told(&result).driver.interrupts_missed, lost);
    assert_eq!((result.errors, told(&result).driver.aborts), (0, 0));
    let max = result.latency_ns.as_ref().unwrap().all.max;
    assert!((10.0e6..10.2e6).contains(&max), "{max} ns");
}

/// A controller that hangs is reset, and the run goes on; what it had in hand failed.
#[test]
fn a_device_that_stands_still_is_reset_and_the_run_goes_on() {
    let load = load(8, 30, 8_000);
    let keys = "hang_at = \"5ms\"";
    for run in [
        nvme(keys, &one_core(), QueuePolicy::PerCore, &load, 1),
        nvme(
            keys,
            &HostOptions { waiting: CompletionWait::Poll, ..one_core() },
            QueuePolicy::Single,
            &load,
            1,
        ),
        ring(keys, &load, 1),
    ] {
        let result = figures(&run);
        let way = result.host.as_ref().unwrap();
        assert_eq!(
            device_of(&result).hung_at_seconds,
            Some(0.005),
            "{} {}",
            way.driver,
            way.completion
        );
        assert_eq!(told(&result).driver.resets, 1);
        assert_eq!(result.requests + result.errors, 8_000);
        assert!((1..=32).contains(&result.errors), "{} errors", result.errors);
        // The requests that the reset gave up never completed: their latency is at least their
        // wait.
        assert_eq!(result.unanswered, result.errors);
        let latency = result.latency_ns.as_ref().unwrap().all;
        let most = latency.at_most.unwrap();
        assert_eq!(most.p50, Some(latency.p50), "nearly all were answered");
        assert!(result.errors < 9 || most.p99_9.is_none());
    }
    // With retries only the time of a command shows the fault.
    let again = HostOptions { retries: 1, ..one_core() };
    let result = figures(&nvme(keys, &again, QueuePolicy::PerCore, &load, 1));
    assert_eq!((result.errors, result.requests), (0, 8_000));
    assert_eq!(told(&result).driver.abandoned, told(&result).driver.retries);
}

/// The timer of a command expires twice, as in Linux (`nvme_timeout`): the driver aborts the command, then resets the
/// controller. So the command waits twice the timeout, whatever an admin command may take.
#[test]
fn a_reset_comes_after_twice_the_time_limit() {
    let keys = "hang_at = \"5ms\"";
    let result = figures(&nvme(keys, &one_core(), QueuePolicy::PerCore, &load(1, 0, 3_000), 1));
    assert_eq!((told(&result).driver.aborts, told(&result).driver.resets), (1, 1));
    let max = result.latency_ns.as_ref().unwrap().all.max;
    assert!((20.0e6..20.2e6).contains(&max), "{max} ns");
    // The result says when: the device got the command by 5 ms, and had less than 0.3 ms for it.
    let [abort, reset] = told(&result).driver_actions[..] else { panic!("two actions") };
    assert_eq!((abort.kind, reset.kind), (DriverActionKind::Abort, DriverActionKind::Reset));
    assert!((14.7e6..=15.0e6).contains(&(abort.time_ns as f64)), "{abort:?}");
    assert_eq!(reset.time_ns - abort.time_ns, 10_000_000);
    let card = figures(&ring(keys, &load(1, 0, 3_000), 1));
    let [reset] = told(&card).driver_actions[..] else { panic!("one reset") };
    assert_eq!(reset.kind, DriverActionKind::Reset);
    // Its driver waits 5 ms.
    assert!((9.7e6..10.2e6).contains(&(reset.time_ns as f64)), "{reset:?}");
    // A result keeps the first hundred.
    let many =
        figures(&nvme("drop = 0.3", &one_core(), QueuePolicy::PerCore, &load(1, 0, 3_000), 1));
    assert!(told(&many).driver.aborts > 800 && told(&many).driver_actions.len() == 100);
}

/// After a removal nothing completes but with errors; the run ends there, and says why.
#[test]
fn a_device_that_is_pulled_ends_the_run() {
    let load = load(8, 30, 50_000);
    let keys = "remove_at = \"5ms\"";
    let scsi = HostOptions { stack: Some(Stack::Scsi), retries: 2, ..one_core() };
    for (run, notices_within) in [
        (nvme(keys, &one_core(), QueuePolicy::PerCore, &load, 1), 0.001),
        (nvme(keys, &scsi, QueuePolicy::PerCorePool, &load, 1), 0.001),
        (direct(keys, &load, 1), 0.000_1),
        // Its answers cross the network.
        (network("", keys, &load, 1), 0.01),
        (ring(keys, &load, 1), 0.000_1),
    ] {
        let SimMeasured { result, failure, .. } = measure(&run);
        let Some(RunError::Gone { at }) = failure else { panic!("{failure:?}") };
        let late = at.as_s_f64() - 0.005;
        assert!((0.0..notices_within).contains(&late), "noticed at {at}");
        assert!(result.partial && result.stopped_because == Some(StopReason::Error));
        assert_eq!(device_of(&result).removed_at_seconds, Some(0.005));
        let way = run.device.host().map(|host| &host.name);
        assert!((1..=32).contains(&result.errors), "{way:?}: {} errors", result.errors);
        assert!(result.requests > 20 && result.requests < 49_000);
        assert!(result.notes.iter().any(|note| note.contains("the device is gone")));
    }
}

/// One at a time over a network: each lost message costs `resend_after`, exactly.
#[test]
fn lost_messages_cost_their_time_to_resend() {
    let n = 3_000;
    let load = load(1, 30, n);
    let quiet = figures(&network("", "", &load, 1));
    assert_eq!(quiet.faults, None);
    for seed in [1, 2] {
        let quiet = figures(&network("", "", &load, seed));
        let result = figures(&network("drop = 0.02\nresend_after = \"9ms\"", "", &load, seed));
        let drops = told(&result).network.unwrap().drops;
        // Two messages each, and those that are sent again.
        assert!(is_share(drops, 2 * n, 0.0204), "seed {seed}: {drops}");
        let added = (mean_ns(&result) - mean_ns(&quiet)) * f64::from(n);
        assert!((added / (drops as f64 * 9e6) - 1.0).abs() < 1e-6, "{added} ns for {drops}");
        assert_eq!(result.errors, 0);
    }
}

/// A session that breaks begins its commands again after `reconnect`; too often, and they fail.
#[test]
fn broken_sessions_begin_again() {
    let (n, keys) = (3_000, "reset = 0.005\nreconnect = \"30ms\"");
    let load = load(1, 30, n);
    let (quiet, result) =
        (figures(&network("", "", &load, 1)), figures(&network(keys, "", &load, 1)));
    let counts = told(&result).network.unwrap();
    assert!(counts.session_resets > 0 && is_share(counts.session_resets, 2 * n, 0.00505));
    assert_eq!((counts.session_resets, result.errors), (counts.commands_resent, 0));
    let added = (mean_ns(&result) - mean_ns(&quiet)) * f64::from(n) / counts.session_resets as f64;
    // What was done until then is lost as well: up to a whole round.
    assert!((30e6..30e6 + mean_ns(&quiet)).contains(&added), "{added} ns");
    let once = figures(&network(&format!("{keys}\ntries = 1"), "", &load, 1));
    let counts = told(&once).network.unwrap();
    assert_eq!(counts.commands_resent, 0);
    assert_eq!((once.errors, told(&once).requests_failed), (counts.commands_given_up, once.errors));
    assert_eq!(counts.commands_given_up, counts.session_resets);
    let all = figures(&network("reset_at = \"100ms\"\nreconnect = \"1s\"", "", &load, 1));
    assert_eq!(told(&all).network.unwrap().session_resets, 1);
    assert!(all.latency_ns.unwrap().all.max > 1e9);
}

/// However often sessions break, a command is given up once: each one given up is a request that failed.
/// And each is sent `tries` times before: with one outstanding, all that a break costs is one more
/// time, so breaks = sent again + given up.
#[test]
fn a_command_is_given_up_once() {
    for (depth, tries, seed) in [(1, 5, 1), (32, 5, 1), (32, 5, 2), (32, 1, 1), (64, 2, 3)] {
        let keys = format!("reset = 0.5\nreconnect = \"1ms\"\ntries = {tries}");
        let result = figures(&network(&keys, "", &load(depth, 30, 2_000), seed));
        let counts = told(&result).network.unwrap();
        let what = format!("depth {depth}, tries {tries}: {counts:?}");
        assert!(result.errors > 100, "{what}");
        assert_eq!(counts.commands_given_up, result.errors, "{what}");
        assert_eq!(told(&result).requests_failed, result.errors, "{what}");
        assert!(counts.commands_resent >= (tries - 1) * result.errors, "{what}");
        if depth == 1 {
            assert_eq!(counts.session_resets, counts.commands_resent + result.errors, "{what}");
        }
    }
}

/// One at a time at a share of 0.5, a try breaks with 0.75 (two messages), so five do with 0.75^5. And a command
/// that waits for its session has not set out: that the session breaks meanwhile costs it no try. Of many
/// that set out one after the other, a break hits those before it: two on average, not all that wait.
#[test]
fn waiting_for_a_session_costs_no_try() {
    let n = 4_000;
    for seed in [1, 2] {
        let keys = "reset = 0.5\nreconnect = \"1ms\"\ntries = 5";
        let result = figures(&network(keys, "", &load(1, 30, n), seed));
        assert!(is_share(result.errors, n, 0.75f64.powi(5)), "{} failed", result.errors);
        let keys = "reset = 0.5\nreconnect = \"1ms\"\ntries = 1";
        let result = figures(&network(keys, "", &load(64, 30, n), seed));
        let breaks = told(&result).network.unwrap().session_resets;
        assert!(result.errors <= 3 * breaks, "{} failed in {breaks} breaks", result.errors);
    }
}

/// Faults that nobody could notice or get over are refused before the run, by their key.
#[test]
fn what_would_hang_the_run_is_refused() {
    let small = load(1, 0, 10);
    let key = |run: SimRun| match run.execute(&mut |_| KeepGoing::Continue) {
        Err(RunError::Device(error)) => {
            assert!(!error.help.is_empty());
            error.key
        }
        other => panic!("{other:?}"),
    };
    for (keys, name) in [
        ("drop = 0.1", "faults.drop"),
        ("hang_at = \"1s\"", "faults.hang_at"),
        ("lost_interrupts = 0.1", "faults.lost_interrupts"),
        ("error = 7", "faults.error"),
    ] {
        assert_eq!(key(direct(keys, &small, 1)), name);
        assert_eq!(key(network("", keys, &small, 1)), name);
        let (host, source) = plan("server", &small);
        let adapter = Attach::behind(delay(keys), host, DevicePath::Adapter);
        assert_eq!(key(of(adapter, source, 1)), name);
    }
    assert_eq!(key(network("tries = 0", "", &small, 1)), "faults.tries");
    let lost = "lost_interrupts = 0.1";
    let polls = HostOptions { waiting: CompletionWait::Poll, ..one_core() };
    let run = nvme(lost, &polls, QueuePolicy::PerCore, &small, 1);
    assert_eq!(key(run), "faults.lost_interrupts");
    let mut run = ring(lost, &small, 1);
    if let Some(DevicePath::Ring(driver)) = run.device.path_mut() {
        driver.completion = CompletionPolicy::HybridPolling { interval: Time::from_us(5) };
    }
    assert_eq!(key(run), "faults.lost_interrupts");
}
