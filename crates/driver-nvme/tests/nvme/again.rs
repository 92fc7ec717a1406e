//! A controller that answers twice: at once, late, and after the identifier's slot is in use again. The second
//! completion ends no other command (base 2.0c, clause 3.3.3.2: one completion for a command).

use proptest::prelude::*;
use ssdyno_block::{Time, Token};
use ssdyno_driver_nvme::{AdminCommand, DriverEvent, IoResult, NvmeConfig, Quirks};
use ssdyno_spec::nvme::{NvmeStatus, cns};

use crate::double::{Double, Mishap, Nature};
use crate::rig::{Rig, config, double};

fn ready(nature: Nature, wanted: NvmeConfig) -> Rig<Double> {
    Rig::ready(double(nature), wanted)
}

fn strays(rig: &mut Rig<Double>) -> (u64, Vec<DriverEvent>) {
    let mut events = Vec::new();
    rig.nvme.driver.take_events(&mut events);
    (rig.nvme.driver.counters().strays, events)
}

/// Until `time` has passed.
fn pass(rig: &mut Rig<Double>, time: Time) {
    let until = rig.nvme.now + time;
    rig.run_while(|rig| rig.nvme.pci.next_event().is_some_and(|at| at <= until));
    rig.nvme.now = until;
}

#[test]
fn a_second_answer_at_once_is_dropped_counted_and_told() {
    let mut rig = ready(Nature::default(), config());
    rig.device().mishaps.insert(0, Mishap::Twice { later_us: 0 });
    rig.read(1, 0, 8).unwrap();
    rig.drain();
    pass(&mut rig, Time::from_ms(1));
    assert_eq!(rig.done.len(), 1);
    assert!(rig.done[0].is_success());
    let (strays, events) = strays(&mut rig);
    assert_eq!(strays, 1);
    let told = |event: &DriverEvent| matches!(event, DriverEvent::StrayCompletion { queue: 1, .. });
    assert!(matches!(&events[..], [event] if told(event)), "{events:?}");
    assert_eq!(rig.device().violations, Vec::<String>::new());
}

/// The slot is in use again, many times over: what is in it completes by its own completion alone.
#[test]
fn a_late_second_answer_does_not_end_the_next_user_of_its_slot() {
    for later_us in [1, 50, 150, 400, 1000] {
        for seed in 0..20 {
            // One slot: each command has it.
            let wanted = NvmeConfig { entries: 2, ..config() };
            let mut rig = ready(Nature { seed, ..Nature::default() }, wanted);
            rig.device().keep_log = true;
            rig.device().mishaps.insert(3, Mishap::Twice { later_us });
            for block in 0..12 {
                rig.read(1, block, 1).unwrap();
                let sent = rig.nvme.now;
                rig.drain();
                assert!(rig.nvme.now > sent, "it was answered before the controller could have it");
            }
            pass(&mut rig, Time::from_ms(2));
            // The second completion is an error: no command receives it.
            assert_eq!(rig.done.len(), 12);
            assert!(rig.done.iter().all(|done| done.is_success()), "{later_us} us, seed {seed}");
            assert_eq!(strays(&mut rig).0, 1, "{later_us} us, seed {seed}");
            let ids: Vec<u16> =
                rig.device().log.iter().map(|(_, entry, _)| entry.command_id.get()).collect();
            assert!(ids.windows(2).all(|pair| pair[0] != pair[1]), "{ids:x?}");
            assert_eq!(rig.device().violations, Vec::<String>::new());
        }
    }
}

/// Bits of the identifier that number the slots of a queue with so many.
fn slot_bits(slots: u16) -> u32 {
    u16::BITS - slots.leading_zeros()
}

/// The uses of a slot that identifiers tell apart: those of the bits that are left, 8 at most.
fn uses(slots: u16) -> u32 {
    1 << (u16::BITS - slot_bits(slots)).min(8)
}

/// The slot has as many bits as the queue needs, its use up to 8 of the others: 4096 entries have an identifier each
/// (S1-26), and FFFFh, which stands for no command (base 2.0c, figure 206), is never used.
#[test]
fn identifiers_are_slots_and_their_uses() {
    let nature = || Nature { entries_max: 1 << 16, ..Nature::default() };
    for (entries, slots) in [(4096, 4095), (1 << 16, 4095), (100, 99), (65, 64), (64, 63), (2, 1)] {
        let mut rig = ready(nature(), NvmeConfig { entries, ..config() });
        rig.device().keep_log = true;
        assert_eq!(rig.nvme.driver.outstanding_limit(), u64::from(slots));
        let bits = slot_bits(slots);
        for use_ in 1..=if slots > 1000 { 2 } else { 17_u16 } {
            for block in 0..u64::from(slots) {
                rig.read(1, block % 100, 1).unwrap();
            }
            rig.drain();
            let log = std::mem::take(&mut rig.device().log);
            let ids = log.iter().map(|(_, entry, _)| entry.command_id.get());
            let generation = u32::from(use_) % uses(slots);
            assert!(ids.clone().all(|id| u32::from(id >> bits) == generation));
            assert!(ids.clone().all(|id| id != 0xffff));
            let mut tags: Vec<u16> = ids.map(|id| id & ((1 << bits) - 1)).collect();
            tags.sort_unstable();
            assert!(tags.into_iter().eq(0..slots), "each slot once");
        }
        rig.check_double();
    }
}

/// The identifiers of `commands` reads, of which `depth` are outstanding at a time.
fn identifiers(wanted: NvmeConfig, depth: usize, commands: u64) -> Vec<u16> {
    let mut rig = ready(Nature { entries_max: 1024, ..Nature::default() }, wanted);
    rig.device().keep_log = true;
    for block in 0..commands {
        while rig.outstanding() >= depth {
            rig.step();
        }
        rig.read(1, block % 1000, 1).unwrap();
    }
    rig.drain();
    rig.check_double();
    rig.device().log.iter().map(|(_, entry, _)| entry.command_id.get()).collect()
}

/// The fewest commands from one use of an identifier to the next.
fn commands_to_recur(identifiers: &[u16]) -> usize {
    let mut last = [None; 1 << 16];
    let mut fewest = usize::MAX;
    for (at, id) in identifiers.iter().enumerate() {
        if let Some(before) = last[usize::from(*id)].replace(at) {
            fewest = fewest.min(at - before);
        }
    }
    fewest
}

/// Free slots wait in line: at depth 1 an identifier recurs after slots times uses; without a generation,
/// after as many as there are slots.
#[test]
fn an_identifier_recurs_as_late_as_it_can() {
    for slots in [1_u16, 2, 15, 255, 300, 1023] {
        let wanted = NvmeConfig { entries: u32::from(slots) + 1, ..config() };
        let recurs = usize::from(slots) * uses(slots) as usize;
        let ids = identifiers(wanted.clone(), 1, recurs as u64 + 100);
        assert!(recurs >= 256 && (slots < 128 || recurs >= 1 << 15));
        assert_eq!(commands_to_recur(&ids), recurs, "{slots} slots");
        let plain = NvmeConfig { quirks: Some(Quirks::NO_GENERATION), ..wanted };
        let recurs = commands_to_recur(&identifiers(plain, 1, 2100));
        assert_eq!(recurs, usize::from(slots), "{slots} slots");
    }
    // Completions in any order, with half of the slots in use: no earlier than half of that.
    let wanted = NvmeConfig { entries: 1024, ..config() };
    assert!(commands_to_recur(&identifiers(wanted, 512, 70_000)) > 1 << 15);
}

/// The completion of a command that is 1 to 64 uses old arrives once more, while another is outstanding: with
/// an error, which nobody gets.
#[test]
fn a_completion_of_many_uses_ago_ends_nobodys_command() {
    for entries in [2, 16] {
        let mut rig = ready(Nature::default(), NvmeConfig { entries, ..config() });
        rig.device().keep_log = true;
        let mut sent = 0;
        for n in 0..200 {
            rig.read(1, n, 1).unwrap();
            let (now, log) = (rig.nvme.now, &rig.device().log);
            if let Some(at) = log.len().checked_sub(1 + n as usize % 64) {
                let id = log[at].1.command_id.get();
                // The double takes 500 ns and the doorbell's way at least.
                let status = NvmeStatus::UNRECOVERED_READ;
                rig.device().answer_io(now + Time::from_ns(300), 1, id, status);
                sent += 1;
            }
            rig.drain();
        }
        pass(&mut rig, Time::from_ms(1));
        assert!(sent > 100 && rig.done.len() == 200);
        assert!(rig.done.iter().all(|done| done.is_success()), "{entries} entries");
        assert_eq!(strays(&mut rig).0, sent);
    }
}

/// An identifier that was never used, and one beyond the queue.
#[test]
fn answers_that_nobody_asked_for_are_dropped() {
    let mut rig = ready(Nature::default(), config());
    rig.read(1, 0, 8).unwrap();
    rig.drain();
    let now = rig.nvme.now;
    for id in [0x0fff, 0xf000, 5, 14, 15] {
        rig.device().answer_io(now, 1, id, NvmeStatus::SUCCESS);
    }
    pass(&mut rig, Time::from_ms(1));
    assert_eq!(strays(&mut rig).0, 5);
    for block in 0..15 {
        rig.read(1, block, 1).unwrap();
    }
    rig.drain();
    assert!(rig.done.iter().all(|done| done.is_success()));
}

#[test]
fn an_admin_command_is_not_ended_by_the_second_answer_of_the_one_before() {
    let mut rig = ready(Nature::default(), config());
    // Four wait for events, so the fifth slot is that of every command here.
    for n in 0..20 {
        let command = AdminCommand::identify(cns::NAMESPACE, 1);
        rig.nvme.driver.submit_admin(&mut rig.nvme.pci, rig.nvme.now, &command, Token(n)).unwrap();
        let mut done = Vec::new();
        for _ in 0..100 {
            rig.step();
            rig.nvme.driver.take_admin(&mut done);
            if !done.is_empty() {
                break;
            }
        }
        let [end] = &done[..] else { panic!("{done:?}") };
        assert_eq!((end.token, end.status), (Token(n), Some(NvmeStatus::SUCCESS)));
        // Again, with an error, while the next one is outstanding.
        let (now, id) = (rig.nvme.now, rig.device().last_admin);
        rig.device().answer_admin_again(now + Time::from_ns(300), id);
    }
    pass(&mut rig, Time::from_ms(1));
    let (strays, events) = strays(&mut rig);
    assert_eq!(strays, 20);
    assert!(events.iter().all(|e| matches!(e, DriverEvent::StrayCompletion { queue: 0, .. })));
}

/// 32 entries have 5 bits of the identifier, so that an admin slot has 2048 uses.
#[test]
fn an_admin_identifier_recurs_after_2048_commands() {
    let mut rig = ready(Nature::default(), config());
    let mut ids = Vec::new();
    for n in 0..2100 {
        let command = AdminCommand::identify(cns::NAMESPACE, 1);
        rig.nvme.driver.submit_admin(&mut rig.nvme.pci, rig.nvme.now, &command, Token(n)).unwrap();
        let mut done = Vec::new();
        while done.is_empty() {
            rig.step();
            rig.nvme.driver.take_admin(&mut done);
        }
        ids.push(rig.device().last_admin);
    }
    assert_eq!(commands_to_recur(&ids), 2048);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Any command may complete twice at any time: each request ends once, with its own result.
    #[test]
    fn every_request_gets_its_own_answer(
        twice in prop::collection::btree_map(0..200_u64, 0..300_u32, 1..40),
        entries in 2..10_u32,
        seed in any::<u64>(),
    ) {
        let wanted = NvmeConfig { entries, ..config() };
        let mut rig = ready(Nature { seed, ..Nature::default() }, wanted);
        let again = twice.iter().map(|(n, us)| (*n, Mishap::Twice { later_us: *us }));
        rig.device().mishaps = again.collect();
        for block in 0..200 {
            while rig.read(1, block, 1).is_err() {
                prop_assert!(rig.step());
            }
        }
        rig.drain();
        pass(&mut rig, Time::from_ms(2));
        let good = |result: IoResult| result == IoResult::Completed(NvmeStatus::SUCCESS);
        prop_assert!(rig.done.len() == 200 && rig.done.iter().all(|done| good(done.result)));
        prop_assert_eq!(rig.nvme.driver.counters().strays, twice.len() as u64);
        prop_assert_eq!(rig.nvme.driver.counters().resets, 0);
        prop_assert_eq!(&rig.device().violations, &Vec::<String>::new());
    }
}
