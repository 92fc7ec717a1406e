//! What goes wrong, and that every request completes once all the same (S1-33).

use proptest::prelude::*;
use ssdyno_block::{Fault, Time};
use ssdyno_driver_nvme::{
    DriverEvent, DriverState, IoError, IoResult, NvmeConfig, NvmeError, ResetCause,
};
use ssdyno_pci::{FunctionError, PciDevice};
use ssdyno_spec::nvme::NvmeStatus;

use crate::double::{Double, Mishap, Nature};
use crate::rig::{Rig, config, double};

fn ready() -> Rig<Double> {
    Rig::ready(double(Nature::default()), config())
}

#[test]
fn lost_interrupt_is_found_by_the_watchdog() {
    let mut rig = ready();
    let sent = rig.nvme.pci.counters().interrupts;
    rig.nvme.pci.inject_interrupt(sent, Fault::Drop);
    let begin = rig.nvme.now;
    rig.read(1, 0, 8).unwrap();
    rig.drain();
    assert!(rig.done[0].is_success());
    assert_eq!(rig.nvme.now, begin + Time::from_ms(20));
    let counters = rig.nvme.driver.counters();
    assert_eq!((counters.lost_interrupts, counters.aborts, counters.resets), (1, 0, 0));
}

#[test]
fn forgotten_command_is_aborted() {
    let mut rig = ready();
    rig.device().mishaps.insert(0, Mishap::Forgotten);
    rig.read(1, 0, 8).unwrap();
    rig.read(1, 8, 8).unwrap();
    rig.drain();
    let results: Vec<_> = rig.done.iter().map(|done| done.result).collect();
    assert_eq!(
        results,
        [
            IoResult::Completed(NvmeStatus::SUCCESS),
            IoResult::Completed(NvmeStatus::ABORT_REQUESTED)
        ]
    );
    let counters = rig.nvme.driver.counters();
    assert_eq!((counters.aborts, counters.resets), (1, 0));
    rig.check_double();
}

#[test]
fn reset_follows_where_aborts_do_not_help() {
    let mut rig = ready();
    rig.device().mishaps.insert(0, Mishap::LostForGood);
    rig.read(1, 0, 8).unwrap();
    rig.read(1, 0, 1000).unwrap();
    rig.run_while(|rig| rig.nvme.driver.state() == DriverState::Ready);
    assert_eq!(rig.nvme.driver.state(), DriverState::Recovering);
    assert_eq!(rig.read(1, 0, 8), Err(IoError::NotReady));
    rig.drain();
    assert_eq!(rig.done[1].result, IoResult::Abandoned);
    rig.run_while(|rig| rig.nvme.driver.state() == DriverState::Recovering);
    let mut events = Vec::new();
    rig.nvme.driver.take_events(&mut events);
    assert_eq!(events, [DriverEvent::Reset(ResetCause::CommandTimeout)]);
    // All 15 places are free again.
    for i in 0..15 {
        rig.read(1, i, 1).unwrap();
    }
    rig.drain();
    assert!(rig.done[2..].iter().all(|done| done.is_success()));
    rig.check_double();
}

#[test]
fn reset_can_be_asked_for() {
    let mut rig = ready();
    // More often than the driver would try on its own.
    for n in 1..=5 {
        rig.read(1, 0, 8).unwrap();
        rig.nvme.driver.reset(&mut rig.nvme.pci, rig.nvme.now, &mut rig.done).unwrap();
        assert_eq!(rig.nvme.driver.state(), DriverState::Recovering);
        let again = rig.nvme.driver.reset(&mut rig.nvme.pci, rig.nvme.now, &mut rig.done);
        assert!(matches!(again, Err(NvmeError::WrongState { .. })));
        rig.drain();
        rig.run_while(|rig| rig.nvme.driver.state() == DriverState::Recovering);
        assert_eq!(rig.nvme.driver.state(), DriverState::Ready);
        assert_eq!(rig.nvme.driver.counters().resets, n);
        assert_eq!(rig.done.last().unwrap().result, IoResult::Abandoned);
        rig.read(1, 0, 8).unwrap();
        rig.drain();
        assert!(rig.done.last().unwrap().is_success());
    }
    let mut events = Vec::new();
    rig.nvme.driver.take_events(&mut events);
    assert_eq!(events, [DriverEvent::Reset(ResetCause::Requested); 5]);
    rig.check_double();
}

#[test]
fn resets_in_a_row_have_an_end() {
    let mut rig = ready();
    for n in 0..100 {
        rig.device().mishaps.insert(n, Mishap::LostForGood);
    }
    while rig.nvme.driver.state() != DriverState::Failed(NvmeError::Unresponsive { resets: 3 }) {
        match rig.read(1, 0, 8) {
            Ok(_) | Err(IoError::NotReady | IoError::Full) => assert!(rig.step()),
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!(rig.outstanding(), 0);
    assert_eq!(rig.read(1, 0, 8), Err(IoError::Gone));
    assert_eq!(rig.nvme.driver.next_deadline(), None);
    assert_eq!(rig.nvme.driver.counters().resets, 3);
    rig.check();
}

#[test]
fn pulled_device_ends_all() {
    let mut rig = ready();
    for i in 0..15 {
        rig.read(1, i, 1).unwrap();
    }
    rig.nvme.pci.inject(rig.nvme.now + Time::from_us(20), Fault::Remove);
    rig.drain();
    let given_up = rig.done.iter().filter(|done| done.result == IoResult::Abandoned).count();
    assert!(given_up > 0 && rig.done.len() == 15);
    let gone = NvmeError::Function(FunctionError::Gone);
    assert_eq!(rig.nvme.driver.state(), DriverState::Failed(gone));
    rig.check();
    // The slot tells: no waiting.
    let mut rig = ready();
    rig.read(1, 0, 1).unwrap();
    rig.nvme.pci.inject(rig.nvme.now, Fault::Remove);
    rig.nvme.driver.removed(&mut rig.nvme.pci, &mut rig.done);
    rig.settle(0);
    assert_eq!((rig.done.len(), rig.outstanding()), (1, 0));
}

#[test]
fn short_standstill_is_survived() {
    let mut rig = ready();
    let now = rig.nvme.now;
    rig.nvme.pci.inject(now, Fault::Hang(Time::from_ms(25)));
    rig.read(1, 0, 8).unwrap();
    rig.drain();
    // The abort came too late or found it done; the read was completed by the controller.
    assert!(rig.done[0].is_success(), "{:?}", rig.done);
    assert_eq!(rig.nvme.driver.counters().resets, 0);
    rig.check_double();
}

#[test]
fn shutdown_with_a_lost_command_ends_in_a_reset() {
    let mut rig = ready();
    rig.device().mishaps.insert(0, Mishap::LostForGood);
    rig.read(1, 0, 8).unwrap();
    rig.nvme.driver.shutdown(&mut rig.nvme.pci, rig.nvme.now).unwrap();
    rig.run_while(|rig| rig.nvme.driver.state() != DriverState::Stopped);
    assert_eq!(rig.nvme.driver.state(), DriverState::Stopped);
    assert_eq!((rig.outstanding(), rig.done[0].result), (0, IoResult::Abandoned));
    assert_eq!(rig.nvme.pci.memory_bytes(), u64::from(rig.buffer.bytes));
    rig.check();
}

/// One move of a user, or of fate.
#[derive(Clone, Debug)]
pub(crate) enum Move {
    Read { queue: u16, block: u64, blocks: u32 },
    Steps(u8),
    LoseInterrupt(u8),
    DelayInterrupt(u8, u16),
    Standstill(u16),
    Remove,
    Shutdown,
    Rescan,
    Reset,
}

pub(crate) fn moves() -> impl Strategy<Value = Vec<Move>> {
    let read = (1..4_u16, 0..10_000_u64, 1..1200_u32)
        .prop_map(|(queue, block, blocks)| Move::Read { queue, block, blocks });
    let one = prop_oneof![
        30 => read,
        10 => (1..20_u8).prop_map(Move::Steps),
        2 => (0..10_u8).prop_map(Move::LoseInterrupt),
        2 => (0..10_u8, 0..50_000_u16).prop_map(|(n, us)| Move::DelayInterrupt(n, us)),
        1 => (1..60_000_u16).prop_map(Move::Standstill),
        1 => Just(Move::Rescan),
        1 => Just(Move::Reset),
    ];
    let last =
        prop_oneof![4 => Just(Move::Steps(1)), 1 => Just(Move::Remove), 1 => Just(Move::Shutdown)];
    (prop::collection::vec(one, 1..150), last, prop::collection::vec(Just(Move::Steps(3)), 0..3))
        .prop_map(|(mut all, last, rest)| {
            all.push(last);
            all.extend(rest);
            all
        })
}

/// Makes the moves and waits for the end of every request. [`Rig`] fails on a second answer, on a
/// missing one, and on an access to memory that is not the controller's.
pub(crate) fn play<D: PciDevice>(rig: &mut Rig<D>, moves: &[Move]) {
    moves.iter().for_each(|step| make(rig, step));
    rig.drain();
    rig.check();
}

pub(crate) fn make<D: PciDevice>(rig: &mut Rig<D>, step: &Move) {
    match *step {
        Move::Read { queue, block, blocks } => {
            let queues = rig.nvme.driver.queues().max(1);
            let _ = rig.read(1 + queue % queues, block, blocks);
        }
        Move::Steps(n) => {
            for _ in 0..n {
                rig.step();
            }
        }
        Move::LoseInterrupt(n) => {
            let number = rig.nvme.pci.counters().interrupts + u64::from(n);
            rig.nvme.pci.inject_interrupt(number, Fault::Drop);
        }
        Move::DelayInterrupt(n, us) => {
            let number = rig.nvme.pci.counters().interrupts + u64::from(n);
            let late = Fault::Delay(Time::from_us(u64::from(us)));
            rig.nvme.pci.inject_interrupt(number, late);
        }
        Move::Standstill(us) => {
            rig.nvme.pci.inject(rig.nvme.now, Fault::Hang(Time::from_us(u64::from(us))));
        }
        Move::Remove => rig.nvme.pci.inject(rig.nvme.now, Fault::Remove),
        Move::Shutdown => {
            let at = rig.at();
            let _ = rig.nvme.driver.shutdown(&mut rig.nvme.pci, at);
        }
        Move::Reset => {
            let (before, at) = (rig.done.len(), rig.at());
            rig.nvme.pci.set_now(rig.nvme.now);
            let _ = rig.nvme.driver.reset(&mut rig.nvme.pci, at, &mut rig.done);
            rig.settle(before);
        }
        Move::Rescan => {
            let at = rig.at();
            let _ = rig.nvme.driver.rescan(&mut rig.nvme.pci, at);
        }
    }
}

proptest! {
    #[test]
    fn every_request_is_answered_once(
        seed in any::<u64>(),
        moves in moves(),
        mishaps in prop::collection::btree_map(
            0..200_u64,
            prop_oneof![Just(Mishap::Fails), Just(Mishap::Forgotten), Just(Mishap::LostForGood)],
            0..6,
        ),
        entries in 2..20_u32,
        interrupts in 0..3_u8,
    ) {
        use ssdyno_driver_nvme::InterruptChoice::{Best, Only};
        use ssdyno_pci::InterruptMode::{Msi, Pin};
        let interrupts = [Best, Only(Pin), Only(Msi)][usize::from(interrupts)];
        let wanted = NvmeConfig { entries, cores: 3, interrupts, ..config() };
        let mut rig = Rig::ready(double(Nature { seed, ..Nature::default() }), wanted);
        rig.device().mishaps = mishaps;
        play(&mut rig, &moves);
        prop_assert_eq!(&rig.device().violations, &Vec::<String>::new());
        let counters = rig.nvme.driver.counters();
        // After a standstill the controller may answer both to the abort and to its command's
        // identifier's next user; the double never answers twice.
        prop_assert_eq!(counters.strays, 0);
    }
}
