//! Writes that come early change nothing but how many steps are taken.

use alloc::vec::Vec;

use proptest::prelude::*;
use ssdyno_spec::pci as spec;

use super::super::*;
use crate::BusMaster;

/// Register 0: so much room is made. Register 4: a job that takes so many nanoseconds; at its end it
/// needs room, or waits for it, and then interrupts. Like completions of an NVMe queue. Any register
/// reads as the number of jobs done.
#[derive(Default)]
struct Jobs {
    early: bool,
    room: u32,
    due: Vec<Time>,
    held: u32,
    log: Vec<Time>,
    steps: u32,
}

impl Jobs {
    fn done(&mut self, at: Time, bus: &mut dyn BusMaster) {
        self.room -= 1;
        self.log.push(at);
        bus.interrupt(at, 0);
    }
}

impl PciDevice for Jobs {
    fn identity(&self) -> Identity {
        Identity {
            vendor: 1,
            device: 2,
            class: 0x01_0802,
            revision: 0,
            bar_bytes: [16384, 0, 0],
            msix_vectors: 4,
            msi_vectors: 0,
            interrupt_pin: 0,
        }
    }
    fn bar_read(&mut self, _: Time, _: u8, _: u32) -> u32 {
        self.log.len() as u32
    }
    fn bar_write(&mut self, now: Time, _: u8, offset: u32, value: u32) {
        match offset {
            0 => self.room += value,
            _ => self.due.push(now + Time::from_ns(u64::from(value))),
        }
    }
    fn may_come_early(&self, _: u8, offset: u32, _: u32) -> bool {
        self.early && offset == 0 && self.held == 0 && self.due.len() <= self.room as usize
    }
    fn reset(&mut self, _: Time) {
        self.due.clear();
        (self.room, self.held) = (0, 0);
    }
    fn advance(&mut self, now: Time, bus: &mut dyn BusMaster) {
        self.steps += 1;
        while self.held > 0 && self.room > 0 {
            self.held -= 1;
            self.done(now, bus);
        }
        let ended = self.due.iter().filter(|due| **due <= now).count();
        self.due.retain(|due| *due > now);
        for _ in 0..ended {
            match self.room {
                0 => self.held += 1,
                _ => self.done(now, bus),
            }
        }
    }
    fn next_event(&self) -> Option<Time> {
        self.due.iter().min().copied()
    }
}

/// What the host does.
#[derive(Clone, Debug)]
enum Action {
    /// A core whose time is so much ahead of the host's writes a register.
    Write { ahead_ns: u64, job: bool, value: u32 },
    /// A core reads, which pushes what was written along.
    Read,
    /// Time passes, in one go or from event to event.
    Run { ns: u64, on: bool },
}

fn action() -> impl Strategy<Value = Action> {
    let write = (0u64..400, any::<bool>(), 1u32..600).prop_map(|(ahead_ns, job, value)| {
        Action::Write { ahead_ns, job, value: if job { value } else { value % 3 + 1 } }
    });
    let run = (1u64..500, any::<bool>()).prop_map(|(ns, on)| Action::Run { ns, on });
    prop_oneof![5 => write, 4 => run, 1 => Just(Action::Read)]
}

struct Outcome {
    log: Vec<Time>,
    reads: Vec<u32>,
    interrupts: Vec<(Time, u16)>,
    steps: u32,
}

fn play(early: bool, stuck: Option<(u64, u64)>, actions: &[Action]) -> Outcome {
    let timing = PciTiming {
        posted_write: Time::from_ns(100),
        read_round_trip: Time::from_ns(300),
        interrupt: Time::from_ns(250),
    };
    let mut pci = SimulatedPci::new(Jobs { early, ..Jobs::default() }, timing);
    let command = spec::COMMAND_MEMORY | spec::COMMAND_BUS_MASTER;
    pci.config_write(spec::COMMAND, u32::from(command));
    assert_eq!(pci.enable_interrupts(InterruptMode::MsiX, 1), Ok(1));
    if let Some((from, length)) = stuck {
        pci.inject(Time::from_ns(from), Fault::Hang(Time::from_ns(length)));
    }
    let (mut now, mut reads, mut interrupts) = (Time::ZERO, Vec::new(), Vec::new());
    let mut until = |pci: &mut SimulatedPci<Jobs>, end: Time, on: bool| {
        let mut got = Vec::new();
        while let Some(at) = pci.next_event().filter(|at| *at <= end) {
            let reached = if on { pci.run(end) } else { at };
            pci.advance(reached);
            pci.take_interrupts(reached, &mut got);
            interrupts.extend(got.drain(..).map(|vector| (reached, vector)));
        }
    };
    for action in actions {
        match action {
            Action::Write { ahead_ns, job, value } => {
                pci.set_now(now + Time::from_ns(*ahead_ns));
                pci.bar_write32(0, if *job { 4 } else { 0 }, *value);
            }
            Action::Read => {
                pci.set_now(now);
                reads.push(pci.bar_read32(0, 0));
            }
            Action::Run { ns, on } => {
                now += Time::from_ns(*ns);
                until(&mut pci, now, *on);
            }
        }
    }
    until(&mut pci, Time::from_ms(1), true);
    pci.advance(Time::from_ms(1));
    let Jobs { log, steps, .. } = core::mem::take(&mut pci.device);
    Outcome { log, reads, interrupts, steps }
}

proptest! {
    #[test]
    fn coming_early_is_not_seen(
        stuck in proptest::option::of((0u64..5000, 1u64..3000)),
        actions in prop::collection::vec(action(), 0..80),
    ) {
        let (plain, early) = (play(false, stuck, &actions), play(true, stuck, &actions));
        prop_assert_eq!(plain.log, early.log);
        prop_assert_eq!(plain.reads, early.reads);
        prop_assert_eq!(plain.interrupts, early.interrupts);
        prop_assert!(early.steps <= plain.steps);
    }
}

#[test]
fn room_that_nobody_needs_costs_no_step() {
    let write = |job, value| Action::Write { ahead_ns: 0, job, value };
    let run = Action::Run { ns: 1000, on: true };
    let actions = [write(false, 2), write(true, 50), run.clone(), write(false, 1), run];
    let (plain, early) = (play(false, None, &actions), play(true, None, &actions));
    assert_eq!((plain.steps, early.steps), (4, 2));
    assert_eq!(plain.log, [Time::from_ns(150)]);
}
