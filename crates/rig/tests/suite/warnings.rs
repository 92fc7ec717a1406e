//! Warnings of whole runs: each is absent where it would be wrong.

use ssdyno_device::delay::DelayConfig;
use ssdyno_device::volume::VolumeConfig;
use ssdyno_device::{DeviceKind, DeviceKinds};
use ssdyno_figures::{RunResult, WarningKind};
use ssdyno_rig::{Attach, KeepGoing};
use ssdyno_ssd::{Config, presets};

use crate::common;

fn measure(device: impl Into<Attach>, load: &str) -> RunResult {
    common::direct(device, load).execute(&mut |_| KeepGoing::Continue).unwrap().result
}

/// A drive of 256 blocks of 64 pages with `ftl`. Config-a has no write buffer.
fn small(preset: &str, ftl: &str) -> Config {
    let mut device = Config::parse(presets::find(preset).unwrap().text).unwrap();
    let flash = &mut device.flash;
    (flash.channels, flash.chips_per_channel, flash.dies_per_chip) = (1, 1, 1);
    (flash.planes_per_die, flash.blocks_per_plane) = (1, 256);
    device.ftl.name = ftl.into();
    device
}

/// Every FTL programs and erases. No device without a buffer says that its buffer never filled, and
/// the interval of write amplification that such a warning takes away is there.
#[test]
fn a_device_without_a_buffer_has_no_warning_about_it() {
    let load = "write_percent = 100\nblock_size = \"4KiB\"\ndepth = 8\nrequests = 20000";
    for ftl in ["page", "dftl", "block", "bast", "fast"] {
        let result = measure(small("config-a", ftl), load);
        let told = result.warnings.iter().find(|it| it.kind == WarningKind::NotExhausted);
        assert_eq!(told, None, "{ftl}");
        assert!(result.flash_operations.unwrap().erases > 1000, "{ftl}");
        let interval = result.confidence.unwrap().write_amplification;
        assert!(interval.is_some(), "{ftl}");
    }
}

/// The warnings of free blocks and of a buffer that never filled appear for every FTL.
#[test]
fn free_blocks_and_buffers_are_told_whatever_the_ftl() {
    let load = |requests: u32| {
        format!("write_percent = 100\nblock_size = \"4KiB\"\ndepth = 8\nrequests = {requests}")
    };
    for ftl in ["page", "fast", "bast"] {
        let told = |result: RunResult| {
            let warning =
                result.warnings.into_iter().find(|it| it.kind == WarningKind::NotExhausted);
            warning.map(|it| it.message).unwrap_or_default()
        };
        let mut empty = small("config-a", ftl);
        empty.precondition.share = 0.0;
        let message = told(measure(empty, &load(100)));
        assert!(message.starts_with("no block was erased: all 400KiB"), "{ftl}: {message}");
        let mut buffered = small("config-a", ftl);
        buffered.buffer.policy = ssdyno_ftl::buffer::BufferPolicy::Fifo;
        buffered.buffer.size = ssdyno_block::units::Bytes(4 << 20);
        let message = told(measure(buffered.clone(), &load(500)));
        assert!(message.starts_with("the write buffer never filled: it holds 4MiB"), "{message}");
        let message = told(measure(buffered, &load(60_000)));
        assert_eq!(message, "", "{ftl}");
    }
}

/// 5 400 credits of a volume with 300 IOPS last for 2 s of 3 000 IOPS. A run of 10 s has two rates, and its mean is neither;
/// after a ramp-up of 2 s it has one; of 200 000 requests the burst is 3 %.
#[test]
fn credits_that_ran_out_during_the_run_are_told() {
    const KINDS: DeviceKinds = DeviceKinds::new(&[
        DeviceKind::of::<DelayConfig>(&[]),
        DeviceKind::of::<VolumeConfig>(&[]),
    ]);
    let volume = "[volume]\ndevice = { delay = { capacity = \"1GiB\", read = \"100us\", write = \"100us\" } }\n\
                  [volume.iops]\nbaseline = 300.0\nburst = 3000.0\nbucket = 5400.0\n";
    let told = |keys: &str| {
        let load = format!("read_percent = 100\nblock_size = \"4KiB\"\ndepth = 32\n{keys}");
        let result = measure(KINDS.parse(volume).unwrap(), &load);
        let told = result.warnings.iter().filter(|it| it.kind == WarningKind::BurstCredits);
        let told: Vec<_> = told.map(|it| it.line()).collect();
        (result.iops, told)
    };
    let (iops, all) = told("requests = 8400");
    assert!((iops - 840.0).abs() < 10.0, "{iops}");
    assert!(all[0].contains("64 % of what the limit let through was paid with credits"), "{all:?}");
    assert!(all[0].contains("(each up to `volume.unit`) without credits"), "{all:?}");
    assert!(all[0].contains("`workload.ramp_up`"), "{all:?}");
    let (iops, none) = told("requests = 8400\nramp_up = 6200");
    assert!((iops - 300.0).abs() < 1.0, "{iops}");
    assert!(none.is_empty(), "{none:?}");
    let (_, none) = told("requests = 200000");
    assert!(none.is_empty(), "{none:?}");
    let (_, left) = told("requests = 3000");
    assert!(left[0].contains("they last 999.7 ms more"), "{left:?}");
}

/// Four writes among thousands of reads change no figure of the reads: collection that has not
/// settled is no reason to doubt them, and an erase or two give write amplification no interval.
#[test]
fn a_few_writes_do_not_put_reads_in_doubt() {
    let load = "read_percent = 99.98\nwrite_percent = 0.02\nblock_size = \"4KiB\"\ndepth = 4\n\
                requests = 20000\naddress = { pattern = \"zipf\" }";
    let mut device = small("config-a", "page");
    device.flash.blocks_per_plane = 1024;
    let result = measure(device.clone(), load);
    assert!((1..8).contains(&result.requests_by_op.write), "{:?}", result.requests_by_op);
    assert!(!result.warns_of(WarningKind::Unsettled), "{:?}", result.warnings);
    assert_eq!(result.confidence.unwrap().write_amplification, None);
    let many = load.replace("99.98", "50").replace("0.02", "50");
    assert!(measure(device, &many).warns_of(WarningKind::Unsettled));
}
