//! What is charged where.

use ssdyno_block::Time;
use ssdyno_controller_nvme::NvmeController;
use ssdyno_device::HostLink;
use ssdyno_spec::nvme::{SubmissionEntry, nvm, registers};
use ssdyno_ssd::Ssd;

use crate::support::{DATA, Host, LATENCY, LIST, config, host, read, transfer, write};

fn wire(bytes: u64) -> Time {
    HostLink::new(&config("", &[]).host_link).unwrap().time_for(bytes)
}
const FETCH: Time = Time::from_ns(900);
const COMPLETE: Time = Time::from_ns(300);

/// From doorbell to interrupt, of one command of queue 1.
fn latency<D: ssdyno_device::Device>(host: &mut Host<D>, command: SubmissionEntry) -> Time {
    host.push(1, command);
    let start = host.now;
    host.ring(1);
    host.settle();
    assert!(host.reap(1)[0].status().is_success());
    host.bus.interrupts.last().unwrap().0 - start
}

/// A single 4-KiB read at depth 1 takes the sum of its parts, and nothing twice.
#[test]
fn a_single_read_takes_the_sum_of_its_parts() {
    let firmware = "[controller]\ncommand_time = \"1us\"\npage_time = \"100ns\"\ndram_bandwidth = \"3.2GB/s\"\n[queue]";
    let config = config("", &[("[queue]", firmware)]);
    let ssd = Ssd::new(&config, 1).unwrap();
    let mut host =
        Host::new(NvmeController::in_front_of(ssd, config.nvme_setup().unwrap()).unwrap());
    host.enable();
    host.create_pair(1, 8);
    let channel = Time::from_ps(12_300_301); // 4 KiB at 333 MB/s
    let dram = Time::from_ns(1280);
    let device = Time::from_ns(1100) + Time::from_us(50) + channel + dram + wire(4096);
    let around = wire(64) + FETCH + wire(16) + COMPLETE + wire(4);
    assert_eq!(latency(&mut host, read(0)), around + device);
    let device = Time::from_ns(1100) + wire(4096) + dram + channel + Time::from_us(500);
    assert_eq!(latency(&mut host, write(0)), around + device);
}

/// A list costs one more read of host memory for each of its pages.
#[test]
fn a_list_of_pages_is_fetched_first() {
    let mut host = host("");
    host.create_pair(1, 8);
    let around = wire(64) + FETCH + LATENCY + wire(16) + COMPLETE + wire(4);
    assert_eq!(latency(&mut host, read(0)), around);
    let large = |at: u64| SubmissionEntry { prp2: at.into(), ..transfer(nvm::READ, 0, 256) };
    // 31 entries of 8 bytes are read as four entries of a queue are.
    assert_eq!(latency(&mut host, large(LIST)), around + wire(256) + FETCH);
    // One entry at the end of a page, and the rest in the next.
    let end = LIST + 3 * 4096 - 16;
    host.data(end, 8).copy_from_slice(&DATA.to_le_bytes());
    host.data(end + 8, 8).copy_from_slice(&LIST.to_le_bytes());
    assert_eq!(latency(&mut host, large(end)), around + wire(256) + FETCH * 2);
}

/// Entries of a burst share a read; reads under way share the wire.
#[test]
fn fetches_share_round_trips() {
    let mut host = host("arbitration_burst = 8\nfetches = 1");
    host.create_pair(1, 64);
    for block in 0..16 {
        host.push(1, read(block * 8));
    }
    let start = host.now;
    let before = host.controller.counters();
    host.ring(1);
    host.settle();
    let counters = host.controller.counters();
    assert_eq!(counters.fetches - before.fetches, 2);
    assert_eq!(counters.commands - before.commands, 16);
    assert_eq!(counters.completions - before.completions, 16);
    // The second read begins when the first is there; eight completions share the wire.
    let last = (wire(64 * 8) + FETCH) * 2 + LATENCY + (wire(16) + wire(4)) * 8 + COMPLETE;
    assert_eq!(host.bus.interrupts.last().unwrap().0 - start, last);
}

/// Admin commands take `admin_time`, not the device's.
#[test]
fn admin_commands_take_their_time() {
    let mut host = host("admin_time = \"25us\"");
    let start = host.now;
    host.push(0, crate::support::identify(1, 0));
    host.ring(0);
    host.settle();
    let around = wire(64) + FETCH + Time::from_us(25) + wire(16) + COMPLETE + wire(4);
    assert_eq!(host.bus.interrupts.last().unwrap().0 - start, around);
}

/// The link's own latency would be a second charge.
#[test]
fn a_latency_of_the_link_is_refused() {
    let config = config("", &[("lanes = 4", "lanes = 4\nlatency = \"2us\"")]);
    let error =
        NvmeController::in_front_of(Ssd::new(&config, 1).unwrap(), config.nvme_setup().unwrap())
            .unwrap_err();
    assert_eq!(error.key, "host_link.latency");
    assert!(error.problem.contains("2 us"), "{error}");
}

/// An SSD without the table has no controller, and one whose keys are impossible is refused.
#[test]
fn impossible_tables_are_refused() {
    let mut without = config("", &[]);
    without.nvme = None;
    assert!(without.nvme_setup().is_none());
    for (keys, key) in [
        ("version = \"3.0\"", "nvme.version"),
        ("io_queues = 0", "nvme.io_queues"),
        ("queue_entries = 1", "nvme.queue_entries"),
        ("max_transfer = \"6KiB\"", "nvme.max_transfer"),
        ("max_transfer = \"4KiB\"", "nvme.max_transfer"),
        ("arbitration_burst = 3", "nvme.arbitration_burst"),
        ("doorbell_stride = \"6B\"", "nvme.doorbell_stride"),
        ("msi_vectors = 3", "nvme.msi_vectors"),
        ("fetch_entries = 65", "nvme.fetch_entries"),
        ("serial = \"123456789012345678901\"", "nvme.serial"),
        ("fetch_latency = \"2s\"", "nvme.fetch_latency"),
        ("ready_time = \"128s\"", "nvme.ready_time"),
        ("operational_states = []", "nvme.operational_states"),
    ] {
        let error = Ssd::new(&config(keys, &[]), 1).unwrap_err();
        assert_eq!(error.key, key);
    }
    for (keys, what) in [
        ("namespaces = [{ block_size = \"1KiB\" }]", "1KiB"),
        ("namespaces = [{ size = \"1GiB\" }]", "does not fit"),
    ] {
        let config = config(keys, &[]);
        let error = NvmeController::in_front_of(
            Ssd::new(&config, 1).unwrap(),
            config.nvme_setup().unwrap(),
        )
        .unwrap_err();
        assert!(error.key == "nvme.namespaces" && error.problem.contains(what), "{error}");
    }
    assert_eq!(registers::submission_doorbell(1, 0), 0x1008);
}
