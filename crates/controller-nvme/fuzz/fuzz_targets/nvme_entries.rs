//! Submission queue entries and register writes of any shape: the controller may refuse, never panic,
//! and works after a reset.

#![no_main]

use libfuzzer_sys::fuzz_target;
use ssdyno_block::Time;
use ssdyno_pci::PciDevice;
use ssdyno_spec::nvme::registers;
use zerocopy::FromBytes;

#[path = "../../tests/nvme/support.rs"]
#[expect(dead_code, reason = "the tests use all of it")]
mod support;

/// Each 65 bytes are a step: what to do, and an entry or a register with its value.
const STEP_BYTES: usize = 65;

fuzz_target!(|data: &[u8]| {
    let mut config = support::config("io_queues = 4\nqueue_entries = 32\ncontents = true", &[]);
    config.queue.depth = 8;
    let mut host = support::host_with(&config);
    host.create_pair(1, 16);
    host.create_pair(2, 5);
    for step in data.chunks_exact(STEP_BYTES) {
        let (what, rest) = (step[0], &step[1..]);
        let number =
            |at: usize| u32::from_le_bytes([rest[at], rest[at + 1], rest[at + 2], rest[at + 3]]);
        let queue = u16::from(what >> 4) % 3;
        match what & 7 {
            0..3 => {
                let Ok(entry) = ssdyno_spec::nvme::SubmissionEntry::read_from_bytes(rest) else {
                    return;
                };
                host.push(queue, entry);
                host.ring(queue);
            }
            3 => host.write(number(0) & 0x3ffc, number(4)),
            4 => {
                host.reap(queue);
            }
            5 => host.run_until(host.now + Time::from_ns(u64::from(number(0) >> 12))),
            6 => host.write(registers::DOORBELLS + (number(0) & 0x3c), number(4) & 0x1f),
            _ => {
                host.controller.bar_read(host.now, 0, number(0) & 0x3ffc);
            }
        }
    }
    host.write(registers::CC, registers::CC_ENTRY_SIZES | registers::CC_ENABLE);
    host.write(registers::CC, registers::CC_ENTRY_SIZES);
    host.write(registers::CSTS, registers::CSTS_SUBSYSTEM_RESET);
    host.run_until(host.now + Time::from_s(10));
    assert_eq!(host.controller.commands_in_flight(), 0);
    host.enable();
});
