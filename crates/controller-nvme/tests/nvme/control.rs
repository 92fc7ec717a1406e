//! Registers, enabling, reset and shutdown (base 2.0c, clauses 3.1.3 and 3.5 to 3.7).

use ssdyno_block::{Op, Time};
use ssdyno_controller_nvme::NvmeController;
use ssdyno_pci::PciDevice;
use ssdyno_spec::nvme::registers::{self, ControllerCapabilities};
use ssdyno_spec::nvme::{AsynchronousEvent, admin, page};

use crate::support::{FixedTime, Host, LATENCY, config, entry, host, host_with, read};

fn fresh() -> Host<FixedTime> {
    Host::new(
        NvmeController::in_front_of(FixedTime::default(), config("", &[]).nvme_setup().unwrap())
            .unwrap(),
    )
}

/// Base 2.0c, figures 36 and 37; S1-25.
#[test]
fn capabilities_are_those_of_the_device_file() {
    let keys = "queue_entries = 256\ndoorbell_stride = \"16B\"\nready_time = \"1200ms\"\nversion = \"1.2\"";
    let mut host = host(keys);
    let low = host.read(registers::CAP);
    let capabilities =
        ControllerCapabilities(u64::from(low) | u64::from(host.read(registers::CAP + 4)) << 32);
    assert_eq!(capabilities.queue_entries_max(), 256);
    assert!(capabilities.contiguous_queues() && capabilities.weighted_round_robin());
    assert!(capabilities.nvm_command_set());
    assert_eq!((capabilities.doorbell_stride(), capabilities.timeout_500ms()), (2, 4));
    assert_eq!((capabilities.page_shift_min(), capabilities.page_shift_max()), (12, 16));
    assert_eq!(host.read(registers::VS), 0x1_0200);
    // The doorbells are where the stride says.
    host.create_pair(1, 8);
    assert!(host.command(1, read(0)).status().is_success());
}

/// Base 2.0c, figure 36: CRMS and CRTO come with version 2.0.
#[test]
fn ready_timeouts_are_given_from_version_2_on() {
    let mut new = host("ready_time = \"700ms\"");
    assert_eq!(new.read(registers::CAP + 4) >> 27 & 3, 1);
    assert_eq!(new.read(registers::CRTO), 3);
    let mut old = host("version = \"1.4\"");
    assert_eq!(old.read(registers::CAP + 4) >> 27 & 3, 0);
    assert_eq!(old.read(registers::CRTO), 0);
}

/// Base 2.0c, clause 3.5.1.
#[test]
fn becomes_ready_after_its_time_and_not_before() {
    let mut host = fresh();
    host.enable_with(registers::CC_ENTRY_SIZES | registers::CC_ENABLE);
    host.run_until(Time::from_us(9_999));
    assert_eq!(host.read(registers::CSTS), 0);
    // Doorbells before that are not heard.
    host.write(registers::submission_doorbell(0, 0), 1);
    host.run_until(Time::from_us(10_000));
    assert_eq!(host.read(registers::CSTS), registers::CSTS_READY);
    assert_eq!(host.bus.reads, []);
    assert_eq!(host.controller.counters().bad_doorbells, 0);
}

/// Base 2.0c, figures 46 to 49 and clause 9.5.
#[test]
fn an_illegal_set_up_is_fatal_until_the_next_reset() {
    let good = registers::CC_ENTRY_SIZES | registers::CC_ENABLE;
    let page_size = 5 << 7;
    let command_set = 1 << 4;
    let arbitration = 2 << 11;
    for wrong in [page_size, command_set, arbitration] {
        let mut host = fresh();
        host.enable_with(good | wrong);
        assert_eq!(host.read(registers::CSTS), registers::CSTS_FATAL, "{wrong:#x}");
        host.settle();
        assert_eq!(host.read(registers::CSTS), registers::CSTS_FATAL);
        host.write(registers::CC, 0);
        assert_eq!(host.read(registers::CSTS), 0);
        host.enable();
    }
    // A queue of one entry; a queue that is not on a page.
    for (register, value) in [(registers::AQA, 15 << 16), (registers::ACQ, 0x10_0800)] {
        let mut host = fresh();
        host.write(registers::AQA, 15 << 16 | 15);
        host.write(registers::ASQ, 0x10_0000);
        host.write(registers::ACQ, 0x10_8000);
        host.write(register, value);
        host.write(registers::CC, good);
        // The low bits of ACQ are reserved and cannot be set.
        let fatal = if register == registers::AQA { registers::CSTS_FATAL } else { 0 };
        assert_eq!(host.read(registers::CSTS), fatal);
    }
    let mut plain = Host::new(
        NvmeController::in_front_of(
            FixedTime::default(),
            config("weighted_round_robin = false", &[]).nvme_setup().unwrap(),
        )
        .unwrap(),
    );
    plain.enable_with(good | registers::CC_ARBITRATION_WEIGHTED);
    assert_eq!(plain.read(registers::CSTS), registers::CSTS_FATAL, "not offered");
}

/// Base 2.0c, figure 46: page size, arbitration and command set are chosen with CC.EN; the sizes of
/// entries may be written later.
#[test]
fn what_was_chosen_stays_while_enabled() {
    let mut host = fresh();
    host.enable();
    let good = registers::CC_ENTRY_SIZES | registers::CC_ENABLE;
    host.write(registers::CC, registers::CC_ENABLE | 4 << 7 | 1 << 11 | 6 << 4);
    assert_eq!(host.read(registers::CC), registers::CC_ENABLE);
    host.write(registers::CC, good);
    assert_eq!(host.read(registers::CC), good);
    host.write(registers::CC, 4 << 7);
    assert_eq!(host.read(registers::CC) >> 7 & 0xf, 4, "with CC.EN = 0 they may");
}

/// Base 2.0c, clause 9.5: what the controller cannot reach of its queues is fatal.
#[test]
fn queues_outside_of_memory_are_fatal() {
    let mut host = fresh();
    host.write(registers::AQA, 15 << 16 | 15);
    host.write(registers::ASQ, 0xdead_0000);
    host.write(registers::ACQ, 0x10_8000);
    host.write(registers::CC, registers::CC_ENTRY_SIZES | registers::CC_ENABLE);
    host.settle();
    host.write(registers::submission_doorbell(0, 0), 1);
    host.settle();
    assert_eq!(host.bus.faults, 1);
    assert_ne!(host.read(registers::CSTS) & registers::CSTS_FATAL, 0);
}

/// Base 2.0c, clause 3.7.2.
#[test]
fn a_reset_forgets_queues_and_commands() {
    let mut host = host("");
    host.create_pair(1, 32);
    for block in 0..8 {
        host.push(1, read(block * 8));
    }
    host.ring(1);
    // Some are fetched and at the device, some are not.
    host.run_until(host.now + LATENCY / 2);
    assert_eq!(host.controller.commands_in_flight(), 8);
    host.write(registers::CC, registers::CC_ENTRY_SIZES);
    assert_eq!(host.read(registers::CSTS), 0);
    assert_eq!(host.controller.commands_in_flight(), 0);
    // AQA, ASQ and ACQ are kept.
    assert_eq!(host.read(registers::AQA), 15 << 16 | 15);
    host.settle();
    assert_eq!(host.take(1), [], "no completion after a reset");
    let interrupts = host.bus.interrupts.len();
    host.enable();
    host.create_pair(1, 32);
    assert!(host.command(1, read(0)).status().is_success());
    assert!(host.bus.interrupts.len() > interrupts);
    // All 64 places of the controller are there again.
    assert_eq!(host.controller.device().seen.len(), 9);
}

/// Base 2.0c, clause 3.7.1: NSSR, and NSSRO that stays until it is cleared.
#[test]
fn a_subsystem_reset_clears_the_queue_registers_too() {
    let mut host = host("");
    host.write(registers::NSSR, 0x1234);
    assert_eq!(host.read(registers::CSTS), registers::CSTS_READY);
    host.write(registers::NSSR, registers::NSSR_RESET);
    assert_eq!(host.read(registers::CSTS), registers::CSTS_SUBSYSTEM_RESET);
    assert_eq!((host.read(registers::CC), host.read(registers::AQA)), (0, 0));
    host.write(registers::CSTS, registers::CSTS_SUBSYSTEM_RESET);
    assert_eq!(host.read(registers::CSTS), 0);
    host.enable();
}

/// PCIe 5.0, clause 6.6.2: the admin queue registers go as well, and nothing moves any more.
#[test]
fn a_function_level_reset_is_like_power_on() {
    let mut host = host("");
    host.create_pair(1, 8);
    host.push(1, read(0));
    host.ring(1);
    let now = host.now;
    host.controller.reset(now);
    let mut fresh = fresh();
    for register in (0..registers::DOORBELLS).step_by(4) {
        assert_eq!(host.read(register), fresh.read(register), "{register:#x}");
    }
    let reads = host.bus.reads.len();
    host.settle();
    assert_eq!((host.take(1).len(), host.bus.reads.len()), (0, reads));
}

/// Base 2.0c, clause 3.6.
#[test]
fn shutdown_flushes_a_volatile_cache_and_stops() {
    let buffered =
        config("", &[("[queue]", "[buffer]\npolicy = \"lru\"\nsize = \"64KiB\"\n[queue]")]);
    let status = |host: &mut Host<FixedTime>| host.read(registers::CSTS) >> 2 & 3;
    for (config, normal, flushes) in
        [(&buffered, true, 1), (&buffered, false, 0), (&config("", &[]), true, 0)]
    {
        let mut host = host_with(config);
        host.create_pair(1, 8);
        let wish = if normal { 1 << 14 } else { 2 << 14 };
        let enabled = registers::CC_ENTRY_SIZES | registers::CC_ENABLE;
        host.write(registers::CC, enabled | wish);
        assert_eq!(status(&mut host), 1, "in progress");
        host.settle();
        assert_eq!(status(&mut host), 2, "complete");
        let flushed = host.controller.device().seen.iter().filter(|r| r.op == Op::Flush);
        assert_eq!(flushed.count(), flushes);
        // Commands are not taken any more, until after a reset.
        host.push(1, read(0));
        host.ring(1);
        host.settle();
        assert_eq!(host.take(1), []);
        host.write(registers::CC, registers::CC_ENTRY_SIZES);
        assert_eq!(status(&mut host), 0);
        host.enable();
    }
}

/// Base 2.0c, clause 5.2.1, figure 147.
#[test]
fn doorbells_that_cannot_be_are_reported() {
    let mut host = host("");
    host.create_pair(1, 8);
    let value = AsynchronousEvent::INVALID_DOORBELL_VALUE;
    let register = AsynchronousEvent::INVALID_DOORBELL;
    let cases = [
        (registers::submission_doorbell(1, 0), 8, value),
        (registers::submission_doorbell(1, 0), 0, value),
        (registers::completion_doorbell(1, 0), 1, value),
        (registers::completion_doorbell(1, 0), 9, value),
        (registers::submission_doorbell(2, 0), 1, register),
        (registers::completion_doorbell(2, 0), 1, register),
        (registers::submission_doorbell(500, 0), 1, register),
        (0x1002, 1, register),
    ];
    for (number, (offset, written, event)) in (1..).zip(cases) {
        host.push(0, entry(admin::ASYNCHRONOUS_EVENT_REQUEST, 0, [0; 3]));
        host.ring(0);
        host.settle();
        assert_eq!(host.reap(0), [], "nothing to report yet");
        host.write(offset, written);
        host.settle();
        let completion = host.reap(0).remove(0);
        assert_eq!(AsynchronousEvent::from_dword(completion.dword0.get()), event, "{offset:#x}");
        assert_eq!(host.controller.counters().bad_doorbells, number);
        // Events of the kind come again once the log page was read.
        host.admin(entry(admin::GET_LOG_PAGE, 0, [15 << 16 | u32::from(page::ERROR), 0, 0]));
    }
    host.push(1, read(0));
    host.ring(1);
    host.settle();
    assert_eq!(host.take(1).len(), 1, "the queue itself is unharmed");
}

/// Base 2.0c, clause 3.1.3: accesses to missing registers do nothing.
#[test]
fn other_registers_read_as_zero() {
    let mut host = host("");
    for offset in [0x38, 0x40, 0x6c, 0x100, 0xffc] {
        host.write(offset, !0);
        assert_eq!(host.read(offset), 0);
    }
    assert_eq!(host.controller.bar_read(host.now, 2, 0), 0);
    host.controller.bar_write(host.now, 2, registers::CC, 0);
    assert_eq!(host.read(registers::CSTS), registers::CSTS_READY);
}

/// PCI: the BAR holds all doorbells.
#[test]
fn identity_fits_the_queues() {
    let identity = host("io_queues = 31\nmsix_vectors = 9").controller.identity();
    assert_eq!((identity.class, identity.msix_vectors), (0x01_08_02, 9));
    assert_eq!(identity.bar_bytes, [16384, 0, 0]);
    let identity = host("io_queues = 1000\ndoorbell_stride = \"64B\"").controller.identity();
    assert_eq!((identity.bar_bytes[0], identity.msix_vectors), (1 << 18, 1001));
}
