//! Queue pairs with owners of their own: whatever the order in which owners and the controller object
//! have their turns, every command completes once, to the owner of its pair.

use ssdyno_block::{Fault, Time, Token};
use ssdyno_driver_nvme::{
    Controller, DataBuffer, DriverEvent, DriverState, IoCommand, IoError, IoResult, NvmeConfig,
    NvmeDriver, NvmeError, QueuePair, ResetCause,
};
use ssdyno_pci::{DmaRegion, FunctionError, PciFunction, SimulatedPci};
use ssdyno_spec::nvme::NvmeStatus;

use crate::double::{Double, Mishap, Nature, namespace};
use crate::owner::Owner;
use crate::rig::{config, double};

/// Owners and a controller object that have their turns when the test says so.
pub(crate) struct Split {
    pub(crate) pci: SimulatedPci<Double>,
    pub(crate) controller: Controller,
    pub(crate) owners: Vec<Owner>,
    pub(crate) buffer: DmaRegion,
    pub(crate) now: Time,
}

impl Split {
    pub(crate) fn new(nature: Nature, config: NvmeConfig) -> Split {
        let mut pci = double(nature);
        let buffer = pci.dma_allocate(8 << 20).unwrap();
        let mut controller = Controller::new(config);
        let mut now = Time::ZERO;
        let clock = |pci: &mut SimulatedPci<Double>| tick(pci, &mut now);
        controller.start_and_wait(&mut pci, clock).unwrap();
        let owners = controller.take_pairs().into_iter().map(Owner::new).collect();
        Split { pci, controller, owners, buffer, now }
    }

    fn four() -> Split {
        Split::new(Nature::default(), NvmeConfig { cores: 4, ..config() })
    }

    pub(crate) fn pass(&mut self, time: Time) {
        self.now += time;
        self.pci.advance(self.now);
        self.pci.set_now(self.now);
    }

    pub(crate) fn read(&mut self, owner: usize, blocks: u32) -> Result<(), IoError> {
        self.owners[owner].read(&mut self.pci, self.now, &self.buffer, blocks)
    }

    pub(crate) fn poll(&mut self, owner: usize) {
        self.owners[owner].poll(&mut self.pci);
    }

    pub(crate) fn attend(&mut self, owner: usize) -> bool {
        self.owners[owner].attend(&mut self.pci, self.now)
    }

    /// The controller object's turn: interrupts of its vector, and what is due.
    pub(crate) fn control(&mut self) {
        let mut vectors = Vec::new();
        self.pci.take_interrupts(self.now, &mut vectors);
        for vector in vectors {
            self.controller.on_interrupt(&mut self.pci, self.now, vector);
        }
        self.controller.poll(&mut self.pci, self.now);
    }

    pub(crate) fn calls(&mut self) -> Vec<u16> {
        let mut calls = Vec::new();
        self.controller.calls(&mut calls);
        calls
    }

    /// Everybody has turns, those who are called and those whose time it is, until `done`.
    fn run_until(&mut self, done: impl Fn(&Split) -> bool) {
        for _ in 0..100_000 {
            if done(self) {
                return;
            }
            self.control();
            for queue in self.calls() {
                self.attend(usize::from(queue) - 1);
            }
            for owner in 0..self.owners.len() {
                self.poll(owner);
                if self.owners[owner].pair.next_deadline().is_some_and(|at| at <= self.now) {
                    self.attend(owner);
                }
            }
            self.pass(Time::from_us(20));
        }
        panic!("still {:?}, {} outstanding", self.controller.state(), self.outstanding());
    }

    fn run_until_state(&mut self, state: DriverState) {
        self.run_until(|split| split.controller.state() == state);
    }

    pub(crate) fn outstanding(&self) -> usize {
        self.owners.iter().map(|owner| owner.outstanding.len()).sum()
    }

    fn check(&mut self) {
        assert_eq!(self.pci.faults(), []);
        assert_eq!(self.pci.device_mut().violations, Vec::<String>::new());
        let strays = self.owners.iter().map(|owner| owner.pair.counters().strays);
        assert_eq!(self.controller.counters().strays + strays.sum::<u64>(), 0);
    }
}

fn tick(pci: &mut SimulatedPci<Double>, now: &mut Time) -> Time {
    *now += Time::from_us(10);
    pci.advance(*now);
    pci.set_now(*now);
    *now
}

#[test]
fn parts_can_go_to_other_threads() {
    fn goes<T: Send>() {}
    goes::<QueuePair>();
    goes::<Controller>();
    goes::<NvmeDriver>();
}

#[test]
fn each_core_reads_through_its_own_pair() {
    let mut split = Split::four();
    assert_eq!(split.controller.queues(), 4);
    for core in 0..4_u16 {
        let queues = split.controller.selector().queues_of(core);
        assert_eq!(queues, core + 1..=core + 1);
        let pair = &split.owners[usize::from(core)].pair;
        assert_eq!((pair.id(), pair.vector(), pair.entries()), (core + 1, Some(core + 1), 16));
    }
    for owner in 0..4 {
        for _ in 0..15 {
            split.read(owner, 8).unwrap();
        }
        assert_eq!(split.read(owner, 8), Err(IoError::Full));
    }
    split.pass(Time::from_ms(1));
    for owner in 0..4 {
        split.poll(owner);
        let pair = &split.owners[owner].pair;
        assert_eq!((pair.outstanding(), pair.counters().commands), (0, 15));
    }
    assert!(split.calls().is_empty());
    split.check();
}

#[test]
fn reset_waits_for_every_owner() {
    let mut split = Split::four();
    for owner in 0..4 {
        split.read(owner, 8).unwrap();
    }
    split.controller.reset(&mut split.pci, split.now).unwrap();
    assert_eq!(split.controller.state(), DriverState::Recovering);
    assert_eq!(split.read(0, 8), Err(IoError::NotReady));
    assert_eq!(split.calls(), [1, 2, 3, 4]);
    for owner in [0, 2, 3] {
        assert!(split.attend(owner), "the controller object waits for this");
        assert_eq!(split.owners[owner].pair.next_deadline(), None, "nothing to look after");
    }
    let enabled = |split: &mut Split| split.pci.bar_read32(0, 0x14) & 1 == 1;
    split.pass(Time::from_ms(1));
    split.control();
    assert!(enabled(&mut split), "an owner still has its hands on the rings");
    assert_eq!(split.calls(), [2]);
    // It is not waited for beyond one timeout: the device is to be kept from memory.
    split.pass(Time::from_ms(10));
    split.control();
    assert!(!enabled(&mut split));
    split.pass(Time::from_ms(1));
    split.control();
    assert_eq!(split.calls(), [1, 2, 3, 4], "they are to give up what is outstanding");
    for owner in [0, 2, 3] {
        split.attend(owner);
    }
    // But the controller is not enabled before the last ring is empty.
    for _ in 0..100 {
        split.pass(Time::from_ms(10));
        split.control();
    }
    assert!(!enabled(&mut split));
    assert_eq!(split.calls(), [2]);
    split.attend(1);
    split.run_until_state(DriverState::Ready);
    assert_eq!(split.owners[1].results(), [IoResult::Abandoned]);
    let counters = split.controller.counters();
    assert_eq!(counters.resets, 1);
    let mut events = Vec::new();
    split.controller.take_events(&mut events);
    assert_eq!(events, [DriverEvent::Reset(ResetCause::Requested)]);
    for owner in 0..4 {
        split.read(owner, 8).unwrap();
    }
    split.run_until(|split| split.outstanding() == 0);
    assert!(split.owners.iter().all(|owner| owner.done[1].is_success()));
    split.check();
}

#[test]
fn what_was_answered_before_a_reset_counts() {
    let mut split = Split::four();
    split.read(0, 8).unwrap();
    split.pass(Time::from_ms(1));
    split.controller.reset(&mut split.pci, split.now).unwrap();
    split.run_until_state(DriverState::Ready);
    assert_eq!(split.owners[0].results(), [IoResult::Completed(NvmeStatus::SUCCESS)]);
    split.check();
}

#[test]
fn requested_resets_do_not_exhaust_the_driver() {
    let mut split = Split::four();
    for n in 1..=10 {
        split.controller.reset(&mut split.pci, split.now).unwrap();
        split.run_until_state(DriverState::Ready);
        assert_eq!(split.controller.counters().resets, n);
    }
    assert!(split.calls().is_empty());
    split.check();
}

#[test]
fn sleeping_owner_is_called_when_an_interrupt_is_lost() {
    let mut split = Split::four();
    let sent = split.pci.counters().interrupts;
    split.pci.inject_interrupt(sent, Fault::Drop);
    split.read(2, 8).unwrap();
    // The limits of the start's own commands are over.
    split.pass(Time::from_ms(15));
    split.control();
    let due = split.owners[2].pair.next_deadline();
    assert_eq!(split.controller.next_deadline(), due);
    split.pass(Time::from_ms(5));
    split.control();
    assert_eq!(split.calls(), [3]);
    assert!(split.calls().is_empty(), "called once");
    assert!(split.controller.next_deadline() > Some(split.now.into()), "and not for ever");
    split.attend(2);
    assert!(split.owners[2].done[0].is_success());
    assert_eq!(split.owners[2].pair.counters().lost_interrupts, 1);
    // The next timeout is watched over at once.
    split.read(2, 8).unwrap();
    let due = split.owners[2].pair.next_deadline();
    assert_eq!(split.controller.next_deadline(), due);
    split.check();
}

#[test]
fn aborts_are_wished_by_a_pair_and_sent_by_the_controller_object() {
    let mut split = Split::four();
    // ACL is 1: two at a time.
    for n in 0..6 {
        split.pci.device_mut().mishaps.insert(n, Mishap::Forgotten);
    }
    for _ in 0..3 {
        split.read(0, 8).unwrap();
        split.read(1, 8).unwrap();
    }
    split.pass(Time::from_ms(20));
    assert!(split.attend(0) && split.attend(1), "the controller object is to send aborts");
    split.control();
    assert_eq!(split.controller.counters().aborts, 2);
    split.run_until(|split| split.outstanding() == 0);
    let counters = split.controller.counters();
    assert_eq!((counters.aborts, counters.resets), (6, 0));
    let aborted = IoResult::Completed(NvmeStatus::ABORT_REQUESTED);
    assert!(split.owners[..2].iter().all(|owner| owner.results() == [aborted; 3]));
    split.check();
}

#[test]
fn wish_is_withdrawn_when_its_command_is_answered() {
    let mut split = Split::four();
    let now = split.now;
    split.pci.inject(now, Fault::Hang(Time::from_ms(25)));
    split.read(0, 8).unwrap();
    split.pass(Time::from_ms(20));
    assert!(split.attend(0));
    // It was only slow; the identifier may be used again before the controller object has its turn.
    split.pass(Time::from_ms(6));
    split.poll(0);
    assert!(split.owners[0].done[0].is_success());
    split.read(0, 8).unwrap();
    split.control();
    assert_eq!(split.controller.counters().aborts, 0);
    split.run_until(|split| split.outstanding() == 0);
    assert!(split.owners[0].done[1].is_success());
    split.check();
}

#[test]
fn reset_follows_where_aborts_do_not_help() {
    let mut split = Split::four();
    split.pci.device_mut().mishaps.insert(0, Mishap::LostForGood);
    split.read(0, 8).unwrap();
    split.run_until(|split| split.outstanding() == 0);
    split.run_until_state(DriverState::Ready);
    let counters = split.controller.counters();
    assert_eq!((counters.aborts, counters.resets), (1, 1));
    assert_eq!(split.owners[0].results(), [IoResult::Abandoned]);
    split.check();
}

/// A core that does not come holds a reset up for its timeout, not for that of admin commands, and is
/// waited for before the controller comes up again; its commands complete all the same.
#[test]
fn reset_goes_on_without_a_core_that_does_not_come() {
    let limits = NvmeConfig {
        cores: 4,
        admin_timeout: Time::from_s(60),
        owner_timeout: Time::from_ms(2),
        ..config()
    };
    let mut split = Split::new(Nature::default(), limits);
    for owner in 0..4 {
        split.read(owner, 8).unwrap();
    }
    split.controller.reset(&mut split.pci, split.now).unwrap();
    let begin = split.now;
    let turn = |split: &mut Split| {
        for owner in 0..3 {
            split.attend(owner);
        }
        split.control();
        split.pass(Time::from_us(20));
    };
    while split.controller.counters().resets == 0 {
        turn(&mut split);
        assert!(split.now < begin + Time::from_ms(3), "the reset still waits");
    }
    assert!(split.now >= begin + Time::from_ms(2));
    for _ in 0..1000 {
        turn(&mut split);
    }
    assert_ne!(split.controller.state(), DriverState::Ready, "its doorbell could come any time");
    assert_eq!(split.calls(), [4]);
    split.run_until(|split| split.outstanding() == 0);
    split.run_until_state(DriverState::Ready);
    assert_eq!(split.owners[3].results(), [IoResult::Abandoned]);
    split.read(3, 8).unwrap();
    split.run_until(|split| split.outstanding() == 0);
    split.check();
}

#[test]
fn pair_goes_back_and_is_taken_again() {
    let mut split = Split::four();
    split.read(1, 8).unwrap();
    let Owner { pair, mut outstanding, .. } = split.owners.remove(1);
    let mut pair = split.controller.give_back(pair).expect_err("somebody has to answer");
    split.pass(Time::from_ms(1));
    let mut done = Vec::new();
    pair.poll(&mut split.pci, &mut done);
    assert!(outstanding.remove(&done[0].token.0) && done[0].is_success());
    split.controller.give_back(pair).unwrap();
    // A reset does without its owner.
    split.controller.reset(&mut split.pci, split.now).unwrap();
    assert_eq!(split.calls(), [1_u16, 3, 4]);
    for _ in 0..1000 {
        for owner in 0..3 {
            split.attend(owner);
        }
        split.control();
        split.pass(Time::from_us(20));
    }
    assert_eq!(split.controller.state(), DriverState::Ready);
    let mut pairs = split.controller.take_pairs();
    assert_eq!(pairs.len(), 1);
    let pair = pairs.remove(0);
    assert_eq!((pair.id(), pair.outstanding()), (2, 0));
    split.owners.insert(1, Owner::new(pair));
    split.read(1, 8).unwrap();
    split.run_until(|split| split.outstanding() == 0);
    assert!(split.owners[1].done[0].is_success());
    split.check();
    // That of another controller stays where it is.
    let stranger = Split::four().owners.remove(0).pair;
    assert!(split.controller.give_back(stranger).is_err());
}

#[test]
fn dropped_pair_holds_nobody_up() {
    let mut split = Split::four();
    split.read(3, 8).unwrap();
    split.owners.pop();
    split.controller.reset(&mut split.pci, split.now).unwrap();
    split.run_until_state(DriverState::Ready);
    split.controller.shutdown(&mut split.pci, split.now).unwrap();
    split.run_until_state(DriverState::Stopped);
    split.check();
}

#[test]
fn removal_is_answered_by_each_owner_and_memory_comes_back() {
    let mut split = Split::four();
    for owner in 0..4 {
        split.read(owner, 100).unwrap();
    }
    split.pci.inject(split.now, Fault::Remove);
    split.controller.removed(&mut split.pci);
    let gone = DriverState::Failed(NvmeError::Function(FunctionError::Gone));
    assert_eq!((split.controller.state(), split.controller.queues()), (gone, 0));
    assert_eq!(split.read(0, 8), Err(IoError::Gone));
    assert_eq!(split.calls(), [1, 2, 3, 4]);
    for owner in 0..4 {
        assert!(split.pci.memory_bytes() > u64::from(split.buffer.bytes));
        split.attend(owner);
        assert!(split.owners[owner].pair.is_over());
        assert_eq!(split.owners[owner].results(), [IoResult::Abandoned]);
    }
    assert!(split.calls().is_empty());
    assert_eq!(split.pci.memory_bytes(), u64::from(split.buffer.bytes));
    assert_eq!(split.read(0, 8), Err(IoError::Gone));
    assert_eq!(split.controller.next_deadline(), None);
    split.check();
}

#[test]
fn pairs_of_an_earlier_start_do_not_disturb_the_next() {
    let mut split = Split::four();
    split.read(0, 8).unwrap();
    split.controller.shutdown(&mut split.pci, split.now).unwrap();
    assert_eq!(split.read(0, 8), Err(IoError::NotReady));
    split.run_until_state(DriverState::Stopped);
    assert!(split.owners[0].done[0].is_success());
    // They have not yet seen the end.
    let mut old = std::mem::take(&mut split.owners);
    let mut now = split.now;
    let clock = |pci: &mut SimulatedPci<Double>| tick(pci, &mut now);
    split.controller.start_and_wait(&mut split.pci, clock).unwrap();
    split.now = now;
    split.owners = split.controller.take_pairs().into_iter().map(Owner::new).collect();
    assert_eq!(split.owners.len(), 4);
    split.read(0, 8).unwrap();
    for owner in &mut old {
        owner.attend(&mut split.pci, split.now);
        assert!(owner.pair.is_over());
    }
    split.run_until(|split| split.outstanding() == 0);
    assert!(split.owners[0].done[0].is_success());
    split.check();
}

#[test]
fn pairs_learn_of_namespaces_from_a_scan() {
    let mut split = Split::four();
    assert_eq!(split.owners[0].pair.namespaces(), []);
    split.poll(0);
    assert_eq!(split.owners[0].pair.namespaces().len(), 1);
    split.pci.device_mut().nature.namespaces = vec![namespace(64, 12), namespace(128, 9)];
    split.controller.rescan(&mut split.pci, split.now).unwrap();
    for _ in 0..100 {
        split.pass(Time::from_us(20));
        split.control();
    }
    assert_eq!(split.controller.namespaces().len(), 2);
    // The owner need not be called: its next command is checked by what holds now.
    assert!(split.calls().is_empty());
    assert_eq!(split.read(0, 65), Err(IoError::OutOfRange { blocks: 64 }));
    split.read(0, 64).unwrap();
    split.run_until(|split| split.outstanding() == 0);
    split.check();
}

#[test]
fn driver_comes_apart_with_commands_under_way() {
    let mut pci = double(Nature::default());
    let buffer = pci.dma_allocate(1 << 20).unwrap();
    let mut driver = NvmeDriver::new(NvmeConfig { cores: 2, ..config() });
    let mut now = Time::ZERO;
    let clock = |pci: &mut SimulatedPci<Double>| tick(pci, &mut now);
    driver.start_and_wait(&mut pci, clock).unwrap();
    let read = IoCommand::read(1, 0, 8, DataBuffer::Contiguous(buffer.address));
    driver.submit(&mut pci, now, 2, &read, Token(5)).unwrap();
    let (mut controller, mut pairs) = driver.into_parts();
    assert_eq!((pairs.len(), pairs[1].outstanding()), (2, 1));
    assert!(controller.next_deadline() <= pairs[1].next_deadline());
    now += Time::from_ms(1);
    pci.advance(now);
    let mut done = Vec::new();
    assert_eq!(pairs[0].on_interrupt(&mut pci, 2, &mut done), 0, "not its vector");
    assert_eq!(pairs[1].on_interrupt(&mut pci, 2, &mut done), 1);
    assert_eq!(done[0].token, Token(5));
    controller.removed(&mut pci);
}
