//! Devices behind an adapter or a network, against operational analysis: throughput is that of the
//! bottleneck, and a part's busy share is throughput times its demand.

use proptest::prelude::*;
use ssdyno_block::Time;
use ssdyno_block::units::Span;
use ssdyno_controller_ring::RingConfig;
use ssdyno_device::DeviceSpec;
use ssdyno_device::delay::DelayConfig;
use ssdyno_figures::RunResult;
use ssdyno_host::ThreadMode;
use ssdyno_rig::{
    Attach, DevicePath, HostOptions, HostPlan, KeepGoing, NETWORKS, NetworkConfig, SimRun, Source,
};

use crate::common;

fn device(delay_us: f64, servers: u32) -> DeviceSpec {
    let text = format!(
        "[delay]\ncapacity = \"1GiB\"\nread = \"{delay_us}us\"\nwrite = \"{delay_us}us\"\nservers = {servers}"
    );
    DeviceSpec::new(DelayConfig::parse(&text).unwrap())
}

fn workload(
    cores: u16,
    depth: u32,
    size: &str,
    write_percent: u32,
) -> ssdyno_workload::WorkloadConfig {
    let text = format!(
        "write_percent = {write_percent}\nblock_size = \"{size}\"\nthreads = {cores}\ndepth = {depth}\nrequests = 20000\nramp_up = 200"
    );
    ssdyno_workload::WorkloadConfig::from_toml(&text).unwrap()
}

fn measure(
    device: DeviceSpec,
    network: Option<NetworkConfig>,
    host: &str,
    cores: u16,
    load: ssdyno_workload::WorkloadConfig,
) -> RunResult {
    let preset = ssdyno_host::presets::find(host).unwrap();
    let config = ssdyno_host::HostConfig::parse(preset.text).unwrap();
    let path = network.map_or(DevicePath::Adapter, |it| DevicePath::Network(Box::new(it)));
    attached(device, path, config, cores, load)
}

fn attached(
    device: DeviceSpec,
    path: DevicePath,
    config: ssdyno_host::HostConfig,
    cores: u16,
    load: ssdyno_workload::WorkloadConfig,
) -> RunResult {
    let options =
        HostOptions { cores: Some(cores), mode: Some(ThreadMode::Sync), ..HostOptions::default() };
    let host = HostPlan::new("host", config, &options, Some(&load));
    let attach = Attach::behind(device, host, path);
    let run = SimRun { target: "sim:delay".into(), ..common::of(attach, Source::Generator(load)) };
    let measured = run.execute(&mut |_| KeepGoing::Continue).unwrap();
    assert!(measured.failure.is_none());
    for invariant in &measured.result.invariants {
        assert!(invariant.holds, "{invariant:?}");
    }
    measured.result
}

/// One worker of s4-spek: device, the work before and after it, two delays of the adapter. The work
/// after the doorbell overlaps.
#[test]
fn one_worker_waits_for_the_sum() {
    let result = measure(device(100.0, 1), None, "s4-spek", 1, workload(1, 1, "4KiB", 0));
    let before = 1.0 + 2.0 + 2.0;
    let after = 2.0 + 2.0 + 0.5 + 4.27;
    let expected = before + 0.5 + 100.0 + 1.0 + after;
    let mean = result.latency_ns.unwrap().all.mean / 1e3;
    assert!((mean - expected).abs() < 0.01, "{mean} us, not {expected}");
    let host = result.host.unwrap();
    assert_eq!(host.system_calls_per_request, Some(0.0));
    let switches = host.context_switches_per_request + host.switches_to_idle_per_request.unwrap();
    assert!((switches - 2.0).abs() < 0.001, "to the thread and to idleness: {switches}");
}

/// The device takes 10 us for each request. What the driver, the network, the interrupt and the wait for
/// a busy core add is not time in the device.
#[test]
fn time_in_the_device_is_the_devices_own() {
    for path in [None, Some(network())] {
        for depth in [1, 32] {
            let load = workload(1, depth, "4KiB", 30);
            let result = measure(device(10.0, 64), path.clone(), "s4-spek", 1, load);
            let (all, inside) = (result.latency_ns.unwrap().all, result.device_latency_ns.unwrap());
            assert!(all.mean > 20_000.0, "{all:?}");
            assert_eq!((inside.mean, inside.max), (10_000.0, 10_000.0), "depth {depth} {path:?}");
        }
    }
}

/// With real drivers it has the ways over PCI Express as well. A host that is twenty times slower
/// changes nothing at depth 1. At depth 16 it may make the device less busy, and never busier.
#[test]
fn time_in_the_device_does_not_contain_a_slow_host() {
    let card = RingConfig::parse(ssdyno_controller_ring::presets::CARDS[0].text).unwrap();
    let mut drive = common::device();
    drive.nvme.get_or_insert_default();
    let cases = [
        (DeviceSpec::new(drive), DevicePath::Nvme(Box::default())),
        (DeviceSpec::new(card), DevicePath::Ring(Box::default())),
    ];
    for (device, path) in cases {
        for depth in [1, 16] {
            let run = |us: u64| {
                let preset = ssdyno_host::presets::find("s4-spek").unwrap();
                let mut config = ssdyno_host::HostConfig::parse(preset.text).unwrap();
                let costs = &mut config.costs;
                for cost in [&mut costs.completion, &mut costs.interrupt, &mut costs.wakeup] {
                    *cost = format!("{}us", us).parse().unwrap();
                }
                let load = workload(1, depth, "4KiB", 0);
                attached(device.clone(), path.clone(), config, 1, load)
            };
            let (fast, slow) = (run(1), run(20));
            let all = |result: &RunResult| result.latency_ns.as_ref().unwrap().all.mean;
            let inside = |result: &RunResult| result.device_latency_ns.as_ref().unwrap().mean;
            let name = format!("{path:?} depth {depth}");
            assert!(all(&slow) > all(&fast) + 20_000.0, "{name}");
            let change = inside(&slow) / inside(&fast);
            let least = if depth == 1 { 0.999 } else { 0.1 };
            assert!((least..1.01).contains(&change), "{name}: {change}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    /// The least of depth / time, servers / delay and cores / work bounds the rate, and where one is
    /// far below the others it is reached. It never falls below what is left if each request waits for
    /// all others wherever it could (Lazowska, Quantitative System Performance, clause 5.2).
    #[test]
    fn an_adapter_gives_what_the_bottleneck_allows(
        cores in 1u16..8, depth in 1u32..6, servers in 1u32..8, delay_us in 5u32..300,
    ) {
        let load = workload(cores, depth, "4KiB", 30);
        let delay = f64::from(delay_us);
        let result = measure(device(delay, servers), None, "s4-spek", cores, load);
        let host = result.host.as_ref().unwrap();
        let work = host.cpu_ns_per_request / 1e3;
        let outstanding = f64::from(depth) * f64::from(cores);
        let bounds =
            [outstanding / (delay + 14.77), f64::from(servers) / delay, f64::from(cores) / work];
        let least = bounds.into_iter().fold(f64::INFINITY, f64::min);
        let rate = result.iops / 1e6;
        prop_assert!(rate <= least * 1.003, "{rate} of {bounds:?}");
        let second = bounds.iter().filter(|b| **b > least).fold(f64::INFINITY, |a, b| a.min(*b));
        if second > 10.0 * least {
            prop_assert!(rate > 0.97 * least, "{rate} of {bounds:?}");
        }
        let before = ((outstanding - 1.0) / f64::from(servers)).floor() * delay;
        // Nothing overlaps either; the adapter's two delays are 1.5 us.
        let worst = outstanding / (delay + 1.5 + before + outstanding * work);
        prop_assert!(rate > worst * 0.997, "{rate}, at worst {worst}");
    }
}

fn network() -> NetworkConfig {
    NetworkConfig::parse(NETWORKS[0].text).unwrap()
}

/// The utilisation law: busy share = throughput x demand, and at most one.
#[test]
fn a_network_target_obeys_the_utilisation_law() {
    for (cores, depth, size, write_percent) in
        [(1, 1, "32KiB", 0), (3, 4, "32KiB", 0), (2, 8, "4KiB", 100), (4, 4, "64KiB", 50)]
    {
        let load = workload(cores, depth, size, write_percent);
        let result = measure(device(100.0, 64), Some(network()), "s4-spek", cores, load);
        let net = result.host.as_ref().unwrap().network.clone().unwrap();
        let share = result.iops * net.target_cpu_ns_per_command / 1e9;
        assert!((net.target_cpu_share / share - 1.0).abs() < 0.02, "{share} {net:?}");
        assert!(net.target_cpu_share <= 1.0 && net.link_to_host_share <= 1.0, "{net:?}");
    }
}

/// Each of the three can be the bottleneck, and gives its rate: the target's cores, the link, and
/// the depth over all that a request waits for.
#[test]
fn a_network_gives_what_its_bottleneck_allows() {
    let run = |change: fn(&mut NetworkConfig), depth| {
        let mut network = network();
        change(&mut network);
        let load = workload(2, depth, "32KiB", 0);
        let result = measure(device(10.0, 64), Some(network), "s4-spek", 2, load);
        let net = result.host.as_ref().unwrap().network.clone().unwrap();
        (result, net)
    };
    let (result, net) = run(|_| {}, 16);
    let cpu = 1e9 / net.target_cpu_ns_per_command;
    assert!((result.iops / cpu - 1.0).abs() < 0.01, "target: {} v. {cpu}", result.iops);
    // Two clients work for one request at a time each, beside the target.
    let (result, net) = run(|n| n.link.rate.0 = 10e6, 16);
    let wire = 10e6 / (32_816.0 + 23.0 * 78.0);
    assert!((result.iops / wire - 1.0).abs() < 0.01, "link: {} v. {wire}", result.iops);
    assert!(net.link_to_host_share > 0.99 && net.target_cpu_share < 0.5, "{net:?}");
    let (result, _) = run(|n| n.link.latency = Span(Time::from_ms(50)), 1);
    let mean = result.latency_ns.unwrap().all.mean / 1e9;
    assert!((result.iops * mean / 2.0 - 1.0).abs() < 0.01, "Little's law");
    assert!((0.1..0.105).contains(&mean), "twice the way, and little more: {mean}");
}

/// With costs that do not depend on the load more sessions never lower the total (monotonicity of
/// closed networks); with a surcharge they do (S4-42).
#[test]
fn only_work_that_grows_with_the_sessions_makes_the_total_fall() {
    let totals = |surcharge: f64| -> Vec<f64> {
        let run = |cores: u16| {
            let mut network = network();
            network.target.switches = 0.0;
            network.target.surcharge = surcharge;
            let load = workload(cores, 8, "32KiB", 0);
            measure(device(10.0, 64), Some(network), "s4-spek", cores, load).iops
        };
        (1..=4).map(run).collect()
    };
    let flat = totals(0.0);
    assert!(flat.windows(2).all(|two| two[1] > two[0] * 0.995), "{flat:?}");
    let falling = totals(0.3);
    assert!(falling[3] < 0.8 * falling[1], "{falling:?}");
    // Two and three sessions, always at work: 1 + s and 1 + 2 s.
    let ratio = falling[2] / falling[1];
    assert!((ratio - 1.3 / 1.6).abs() < 0.01, "{ratio}");
}
