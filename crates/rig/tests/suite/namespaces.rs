//! Namespaces in a run (S1-43): one that is chosen, one for each thread, blocks of different sizes.

use crate::common;

use common::measure;
use ssdyno_block::Time;
use ssdyno_block::units::Bytes;
use ssdyno_device::nvme::NamespaceConfig;
use ssdyno_driver_nvme::NvmeConfig;
use ssdyno_host::ThreadMode;
use ssdyno_rig::{HostOptions, KeepGoing, RunError, SimRun, Stack};
use ssdyno_ssd::{Config, presets};

/// Three namespaces: two of 256 MiB, with blocks of 512 B and of 4 KiB, and the rest.
fn device() -> Config {
    let mut device = common::device();
    let namespace = |size: Option<u64>, block| NamespaceConfig {
        size: size.map(Bytes),
        block_size: Bytes(block),
    };
    let nvme = device.nvme.get_or_insert_default();
    nvme.namespaces = vec![
        namespace(Some(256 << 20), 512),
        namespace(Some(256 << 20), 4096),
        namespace(None, 512),
    ];
    device
}

fn run(options: HostOptions, workload: &str) -> SimRun {
    common::run(device(), NvmeConfig::default(), ("server", &options), workload, 3)
}

fn chosen(namespaces: &[u32], mode: ThreadMode) -> HostOptions {
    let namespaces = namespaces.to_vec();
    HostOptions { namespaces, mode: Some(mode), ..HostOptions::default() }
}

const MIXED: &str = "read_percent = 50\nwrite_percent = 40\ntrim_percent = 10\nblock_size = \"8KiB\"\ndepth = 9\nthreads = 3\nrequests = 3_000";

#[test]
fn each_thread_has_its_own() {
    for (stack, mode) in [(Stack::Block, ThreadMode::Async), (Stack::Scsi, ThreadMode::Batch)] {
        let options = HostOptions { stack: Some(stack), ..chosen(&[1, 2, 3], mode) };
        let result = measure(&run(options, MIXED));
        assert_eq!((result.requests, result.errors), (3000, 0));
        let namespaces = &result.host.as_ref().unwrap().namespaces;
        let told: Vec<_> =
            namespaces.iter().map(|n| (n.namespace, n.block_bytes, &n.threads[..])).collect();
        assert_eq!(told, [(1, 512, &[0][..]), (2, 4096, &[1][..]), (3, 512, &[2][..])]);
        assert_eq!(namespaces[0].capacity_bytes, 256 << 20);
        assert!(namespaces[2].capacity_bytes > 256 << 20);
        // Asynchronous threads get what they request; all work is done in one of the namespaces.
        assert_eq!(namespaces.iter().map(|n| n.requests).sum::<u64>(), 3000);
        assert!(namespaces.iter().all(|n| n.requests > 800), "{namespaces:?}");
        let iops: f64 = namespaces.iter().map(|n| n.iops).sum();
        assert!((iops / result.iops - 1.0).abs() < 0.02, "{iops} and {}", result.iops);
    }
}

/// Commands that never complete end the load of one namespace after that of another. All have the window of the run, with a
/// ramp-up, too.
#[test]
fn rates_of_namespaces_are_those_of_the_window_of_the_run() {
    let of = |load: &str| {
        let mut device = device();
        device.faults = toml::from_str("drop = 0.02").unwrap();
        let options = chosen(&[1, 2, 3], ThreadMode::Async);
        let driver = NvmeConfig { io_timeout: Time::from_ms(10), ..NvmeConfig::default() };
        measure(&common::run(device, driver, ("server", &options), load, 3))
    };
    let result = of(MIXED);
    let namespaces = &result.host.as_ref().unwrap().namespaces;
    assert!(result.errors > 0 && namespaces.iter().map(|n| n.errors).sum::<u64>() == result.errors);
    let iops: f64 = namespaces.iter().map(|n| n.iops).sum();
    assert!((iops / result.iops - 1.0).abs() < 1e-9, "{iops} and {}", result.iops);
    assert!(namespaces.iter().any(|n| n.latency_ns.as_ref().unwrap().all.at_most.is_some()));
    let result = of(&format!("{MIXED}\nramp_up = 1_000"));
    let namespaces = &result.host.as_ref().unwrap().namespaces;
    let requests: u64 = namespaces.iter().map(|n| n.requests).sum();
    // Other completions of the moment at which the window begins.
    assert!(requests.abs_diff(result.requests) <= 9, "{requests} of {}", result.requests);
    let iops: f64 = namespaces.iter().map(|n| n.iops).sum();
    assert!((iops / result.iops - 1.0).abs() < 0.01, "{iops} and {}", result.iops);
}

#[test]
fn threads_may_share_one() {
    let writes =
        "write_percent = 100\nblock_size = \"4KiB\"\ndepth = 8\nthreads = 2\nrequests = 4_000";
    let written = |ids: &[u32]| measure(&run(chosen(ids, ThreadMode::Async), writes));
    let one = written(&[1, 1]);
    let namespaces = &one.host.as_ref().unwrap().namespaces;
    assert_eq!(namespaces.len(), 1);
    assert_eq!(namespaces[0].threads, [0, 1]);
    assert_eq!(namespaces[0].requests, 4000);
    let two = written(&[2, 3]);
    let requests = two.host.as_ref().unwrap().namespaces[1].requests;
    assert!((1900..=2100).contains(&requests), "{requests}");
}

/// Of 64 MiB of flash, one namespace has 32 MiB, which 20 000 writes fill twice. No host can write the rest of the pages, so the
/// drive does not fill any further.
#[test]
fn a_drive_is_full_when_its_namespaces_are() {
    let fills = |mebibytes: u64, pattern: &str| {
        let mut device = Config::parse(presets::find("config-a").unwrap().text).unwrap();
        let flash = &mut device.flash;
        (flash.channels, flash.chips_per_channel, flash.dies_per_chip) = (1, 1, 1);
        (flash.planes_per_die, flash.blocks_per_plane) = (1, 256);
        device.precondition.share = 0.0;
        let size = Some(Bytes(mebibytes << 20));
        let namespace = NamespaceConfig { size, block_size: Bytes(512) };
        device.nvme.get_or_insert_default().namespaces = vec![namespace];
        let load = format!(
            "write_percent = 100\nblock_size = \"4KiB\"\ndepth = 8\nrequests = 20000\n\
             [address]\npattern = \"{pattern}\""
        );
        let options = HostOptions::default();
        let run = common::run(device, NvmeConfig::default(), ("server", &options), &load, 3);
        measure(&run).warnings.iter().any(|it| it.message.starts_with("the drive fills"))
    };
    assert!(!fills(32, "sequential"));
    // Random writes miss a fifth of 48 MiB.
    assert!(fills(48, "random"));
}

/// The capacity without a namespace works like over-provisioning: write amplification from the first write on is the closed form
/// of the smaller utilisation. Within 2 %: seed 3, 1 024 blocks. Where other namespaces hold data, no closed form applies.
#[test]
fn capacity_without_a_namespace_is_spare_room() {
    let writes = |sizes: &[u64]| {
        let mut device = Config::parse(presets::find("config-a").unwrap().text).unwrap();
        let flash = &mut device.flash;
        (flash.channels, flash.chips_per_channel, flash.dies_per_chip) = (1, 1, 2);
        (flash.planes_per_die, flash.blocks_per_plane) = (1, 512);
        let namespace = |mebibytes: &u64| NamespaceConfig {
            size: Some(Bytes(mebibytes << 20)),
            block_size: Bytes(512),
        };
        let nvme = device.nvme.get_or_insert_default();
        nvme.namespaces = sizes.iter().map(namespace).collect();
        let load = "write_percent = 100\nblock_size = \"4KiB\"\ndepth = 32\nrequests = 100000";
        let options = HostOptions::default();
        measure(&common::run(device, NvmeConfig::default(), ("server", &options), load, 3))
    };
    let mut last = f64::INFINITY;
    for mebibytes in [208, 180, 150] {
        let result = writes(&[mebibytes]);
        assert_eq!(result.warnings, [], "{mebibytes}");
        let [expected] = &result.expected[..] else { panic!("one expected figure") };
        let measured = result.write_amplification.unwrap();
        let ratio = measured / expected.value;
        assert!((ratio - 1.0).abs() < 0.02, "{mebibytes} MiB: {ratio}, {expected:?}");
        assert!(measured < last - 0.2, "{measured} after {last}");
        last = measured;
    }
    let beside_another = writes(&[104, 104]);
    assert_eq!(beside_another.expected, []);
}

#[test]
fn one_namespace_is_the_whole_device_of_the_workload() {
    let reads = |size: &str| {
        format!("write_percent = 0\nblock_size = \"{size}\"\ndepth = 4\nrequests = 2_000")
    };
    // Blocks of 512 B where the namespace has them, and not where it does not.
    measure(&run(chosen(&[1], ThreadMode::Async), &reads("512B")));
    measure(&run(chosen(&[3], ThreadMode::Sync), &reads("512B")));
    let refused = run(chosen(&[2], ThreadMode::Async), &reads("512B"));
    assert!(refused.execute(&mut |_| KeepGoing::Continue).is_err());
    let second = measure(&run(chosen(&[2], ThreadMode::Async), &reads("4KiB")));
    let host = second.host.unwrap();
    assert_eq!(host.namespaces[0].namespace, 2);
    assert_eq!(host.namespaces[0].threads, [] as [u32; 0]);
    assert_eq!(host.namespaces[0].requests, 2000);
    // Without a named namespace the load uses the first: the figures are the same.
    let default = measure(&run(chosen(&[], ThreadMode::Async), &reads("4KiB")));
    let first = measure(&run(chosen(&[1], ThreadMode::Async), &reads("4KiB")));
    assert_eq!(default.latency_ns, first.latency_ns);
    assert!(default.host.unwrap().namespaces.is_empty());
}

#[test]
fn what_cannot_be_is_told() {
    let told = |ids: &[u32], mode, workload: &str| {
        let run = run(chosen(ids, mode), workload);
        match run.execute(&mut |_| KeepGoing::Continue).unwrap_err() {
            RunError::Namespaces { problem, .. } => problem,
            other => panic!("{other}"),
        }
    };
    assert!(told(&[7], ThreadMode::Async, MIXED).contains("no namespace 7; it has: 1, 2, 3"));
    assert!(told(&[1, 2, 9], ThreadMode::Async, MIXED).contains("no namespace 9"));
    assert!(told(&[1, 2], ThreadMode::Async, MIXED).contains("2 namespaces for 3 threads"));
    assert!(told(&[1, 2, 3, 1], ThreadMode::Batch, MIXED).contains("4 namespaces for 3 threads"));
    assert!(told(&[1, 2, 3], ThreadMode::Sync, MIXED).contains("3 namespaces for 9 threads"));
    let open = "block_size = \"4KiB\"\nrequests = 100\n[arrivals]\nkind = \"poisson\"\nrate = 1000";
    assert!(told(&[1, 2], ThreadMode::Sync, open).contains("is not fixed"));
}
