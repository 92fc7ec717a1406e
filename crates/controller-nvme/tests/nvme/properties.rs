//! For any register writes of a host, the controller neither panics nor completes a command twice.

use std::collections::BTreeSet;

use proptest::prelude::*;
use ssdyno_block::{Fault, Time};
use ssdyno_controller_nvme::{ControllerFault, Effect};
use ssdyno_pci::PciDevice;
use ssdyno_spec::nvme::{NvmeStatus, SubmissionEntry, registers};
use zerocopy::{FromBytes, IntoBytes};

use crate::support::{BASE, DATA, FixedTime, Host, host_with, read};

#[derive(Clone, Debug)]
enum Step {
    /// An entry of random bits, some of them sensible.
    Entry {
        queue: u16,
        bits: [u64; 8],
        opcode: u8,
        sensible: u8,
    },
    Ring(u16),
    Doorbell(u32, u32),
    Register(u32, u32),
    Wait(u32),
    Take(u16),
    Fault(u8, u64),
}

fn step() -> impl Strategy<Value = Step> {
    let queue = 0u16..4;
    let registers = prop::sample::select(vec![
        registers::INTMS,
        registers::INTMC,
        registers::CC,
        registers::CSTS,
        registers::NSSR,
        registers::AQA,
        registers::ASQ,
        registers::ACQ,
        0x800,
    ]);
    prop_oneof![
        8 => (queue.clone(), any::<[u64; 8]>(), 0u8..0x20, any::<u8>())
            .prop_map(|(queue, bits, opcode, sensible)| Step::Entry { queue, bits, opcode, sensible }),
        4 => queue.clone().prop_map(Step::Ring),
        1 => (0u32..0x80, 0u32..80).prop_map(|(at, value)| Step::Doorbell(at * 4, value)),
        1 => (registers, any::<u32>(), any::<bool>())
            .prop_map(|(at, value, small)| Step::Register(at, if small { value & 0xf } else { value })),
        4 => (0u32..40_000).prop_map(Step::Wait),
        4 => queue.prop_map(Step::Take),
        1 => (0u8..3, 0u64..200).prop_map(|(what, at)| Step::Fault(what, at)),
    ]
}

/// Makes parts of a random entry what a host would write.
fn tame(bits: [u64; 8], opcode: u8, sensible: u8) -> SubmissionEntry {
    let mut entry = SubmissionEntry::read_from_bytes(bits.as_bytes()).unwrap();
    if sensible & 1 != 0 {
        entry.opcode = opcode;
    }
    if sensible & 2 != 0 {
        entry.flags = 0;
        entry.namespace_id = (entry.namespace_id.get() % 3).into();
    }
    if sensible & 4 != 0 {
        entry.prp1 = ((DATA + entry.prp1.get() % 0x10_0000) & !3).into();
        entry.prp2 = ((DATA + entry.prp2.get() % 0x10_0000) & !0xfff).into();
    }
    if sensible & 8 != 0 {
        entry.dword10 = (entry.dword10.get() & 0x00ff_001f).into();
        entry.dword11 = (entry.dword11.get() & 0x0003_0007).into();
    }
    if sensible & 16 != 0 {
        // With FUA, or without.
        entry.dword12 = (entry.dword12.get() & 0x4000_01ff).into();
    }
    entry.command_id = (entry.command_id.get() % 512).into();
    entry
}

fn play(host: &mut Host<FixedTime>, step: &Step) {
    match *step {
        Step::Entry { queue, bits, opcode, sensible } => {
            if host.pairs[usize::from(queue)].is_some() {
                host.push(queue, tame(bits, opcode, sensible));
            }
        }
        Step::Ring(queue) => {
            if host.pairs[usize::from(queue)].is_some() {
                host.ring(queue);
            }
        }
        Step::Doorbell(at, value) => host.write(registers::DOORBELLS + at, value),
        Step::Register(at, value) => host.write(at, value),
        Step::Wait(ns) => host.run_until(host.now + Time::from_ns(u64::from(ns))),
        Step::Take(queue) => {
            if host.pairs[usize::from(queue)].is_some() {
                host.reap(queue);
            }
        }
        Step::Fault(what, at) => {
            let effect = match what {
                0 => Effect::Fail(NvmeStatus::WRITE_FAULT),
                1 => Effect::Meet(Fault::Delay(Time::from_us(50))),
                _ => Effect::Meet(Fault::Drop),
            };
            let blocks = at..at + 500;
            host.controller.inject(ControllerFault {
                opcode: None,
                namespace: 1,
                blocks,
                times: 2,
                effect,
            });
        }
    }
}

fn shared() -> Host<FixedTime> {
    // With a volatile cache, which some commands have flushed.
    let cache = "[buffer]\npolicy = \"lru\"\nsize = \"64KiB\"\n[queue]";
    let keys = "io_queues = 6\nqueue_entries = 64\ncontents = true";
    let mut config = crate::support::config(keys, &[("[queue]", cache)]);
    config.queue.depth = 12;
    let mut host = host_with(&config);
    for id in 1..4u16 {
        host.create_pair(id, 8 + u32::from(id) * 7);
    }
    host
}

proptest! {
    /// Whatever comes, the controller goes on, and works again after a reset.
    #[test]
    fn nothing_that_a_host_does_breaks_the_controller(
        steps in prop::collection::vec(step(), 1..150)
    ) {
        let mut host = shared();
        steps.iter().for_each(|step| play(&mut host, step));
        host.controller.clear_faults();
        host.write(registers::CC, registers::CC_ENTRY_SIZES | registers::CC_ENABLE);
        host.write(registers::CC, registers::CC_ENTRY_SIZES);
        host.write(registers::CSTS, registers::CSTS_SUBSYSTEM_RESET);
        prop_assert_eq!(host.read(registers::CSTS), 0);
        host.run_until(host.now + Time::from_s(1));
        prop_assert_eq!(host.controller.commands_in_flight(), 0);
        host.enable();
        host.create_pair(1, 16);
        let works = host.command(1, read(0)).status();
        // The namespace may be gone or formatted; the controller is not.
        prop_assert!(works != NvmeStatus::INTERNAL_ERROR && works != NvmeStatus::COMMAND_ID_CONFLICT);
        for _ in 0..40 {
            host.command(1, read(0));
        }
    }

    /// Every I/O command that a well-behaved host submits completes exactly once.
    #[test]
    fn every_command_is_answered_once(
        commands in prop::collection::vec((1u16..4, any::<[u64; 8]>(), 0u8..0x10, 0u32..3_000), 1..120),
        coalescing in 0u32..0x400,
        lost in 0u32..3,
    ) {
        let mut host = shared();
        host.admin(crate::support::set_feature(8, coalescing));
        let mut waiting: Vec<BTreeSet<u16>> = vec![BTreeSet::new(); 4];
        let mut answered = 0;
        for (number, (queue, bits, opcode, wait)) in (1u16..).zip(&commands) {
            let mut command = tame(*bits, *opcode, 0x1f);
            // Identifiers of its own, never 0.
            command.command_id = number.into();
            let room = host.pairs[usize::from(*queue)].unwrap().entries as usize - 1;
            loop {
                for c in host.reap(*queue) {
                    prop_assert!(waiting[usize::from(*queue)].remove(&c.command_id.get()), "{:?}", c);
                    answered += 1;
                }
                if waiting[usize::from(*queue)].len() < room {
                    break;
                }
                prop_assert!(host.step(Time::MAX), "a full queue that never empties");
            }
            waiting[usize::from(*queue)].insert(number);
            host.push(*queue, command);
            host.ring(*queue);
            host.run_until(host.now + Time::from_ns(u64::from(*wait)));
        }
        host.controller.lose_interrupts(lost);
        for _ in 0..200 {
            host.settle();
            for queue in 1..4u16 {
                for c in host.reap(queue) {
                    prop_assert!(waiting[usize::from(queue)].remove(&c.command_id.get()), "{:?}", c);
                    answered += 1;
                }
            }
        }
        prop_assert_eq!(answered, commands.len());
        prop_assert_eq!(host.controller.commands_in_flight(), 0);
        prop_assert!(host.controller.next_event().is_none());
        prop_assert!(host.bus.memory.len() as u64 + BASE > DATA);
    }
}
