//! A controller that answers twice: at once, late, and after the identifier's slot is in use again. The second
//! answer ends nobody's command (base 2.0c, clause 3.3.3.2: one completion for a command).

use proptest::prelude::*;
use ssdyno_block::{Time, Token};
use ssdyno_driver_nvme::{AdminCommand, DriverEvent, IoResult, NvmeConfig};
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
            // The second answer is an error: nobody got it.
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

/// As Linux: 12 bits for the slot, 4 for its use; so 4096 entries have an identifier each (S1-26).
#[test]
fn identifiers_are_slots_and_their_uses() {
    let nature = || Nature { entries_max: 1 << 16, ..Nature::default() };
    for (entries, slots) in [(4096, 4095), (1 << 16, 4095), (100, 99)] {
        let mut rig = ready(nature(), NvmeConfig { entries, ..config() });
        rig.device().keep_log = true;
        assert_eq!(rig.nvme.driver.outstanding_limit(), slots);
        for use_ in 1..=if slots > 1000 { 2 } else { 17_u16 } {
            for block in 0..slots {
                rig.read(1, block % 100, 1).unwrap();
            }
            rig.drain();
            let log = std::mem::take(&mut rig.device().log);
            let ids = log.iter().map(|(_, entry, _)| entry.command_id.get());
            assert!(ids.clone().all(|id| id >> 12 == use_ % 16 && id != 0xffff));
            let mut tags: Vec<u16> = ids.map(|id| id & 0xfff).collect();
            tags.sort_unstable();
            assert!(tags.into_iter().eq(0..slots as u16), "each slot once");
        }
        rig.check_double();
    }
}

/// An identifier that nobody ever used, and one beyond the queue.
#[test]
fn answers_that_nobody_asked_for_are_dropped() {
    let mut rig = ready(Nature::default(), config());
    rig.read(1, 0, 8).unwrap();
    rig.drain();
    let now = rig.nvme.now;
    for id in [0x0fff, 0xf000, 5, 14, 15] {
        rig.device().answer_io(now, 1, id);
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

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Whatever completes twice and when: each request ends once, with the answer that is its own, as long
    /// as its slot was not used sixteen times meanwhile.
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
