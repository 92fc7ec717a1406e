//! Any order of turns of the owners of queue pairs and of the controller object, and anything that may
//! go wrong between: every command completes once.

use proptest::prelude::*;
use ssdyno_block::{Fault, Time};
use ssdyno_driver_nvme::{DriverState, NvmeConfig};

use crate::double::{Mishap, Nature};
use crate::rig::config;
use crate::split::Split;

/// Whose turn it is, or what goes wrong.
#[derive(Clone, Debug)]
enum Turn {
    Read { owner: usize, blocks: u32 },
    Poll(usize),
    Attend(usize),
    Control,
    Called,
    Pass { us: u16 },
    Reset,
    Rescan,
    Standstill { us: u16 },
    Mishap(u8, bool),
    Drop(usize),
}

fn turns() -> impl Strategy<Value = Vec<Turn>> {
    let read = (0..4_usize, 1..1200_u32).prop_map(|(owner, blocks)| Turn::Read { owner, blocks });
    prop::collection::vec(
        prop_oneof![
            30 => read,
            10 => (0..4_usize).prop_map(Turn::Poll),
            6 => (0..4_usize).prop_map(Turn::Attend),
            10 => Just(Turn::Control),
            6 => Just(Turn::Called),
            12 => (1..500_u16).prop_map(|us| Turn::Pass { us }),
            2 => (10_000..40_000_u16).prop_map(|us| Turn::Pass { us }),
            2 => Just(Turn::Reset),
            2 => Just(Turn::Rescan),
            1 => (1..30_000_u16).prop_map(|us| Turn::Standstill { us }),
            1 => (0..20_u8, any::<bool>()).prop_map(|(n, lost)| Turn::Mishap(n, lost)),
            1 => (0..40_usize).prop_map(Turn::Drop),
        ],
        1..200,
    )
}

fn take_turn(split: &mut Split, turn: &Turn) {
    match *turn {
        Turn::Read { owner, blocks } => _ = split.read(owner % split.owners.len(), blocks),
        Turn::Poll(owner) => split.poll(owner % split.owners.len()),
        Turn::Attend(owner) => _ = split.attend(owner % split.owners.len()),
        Turn::Control => split.control(),
        Turn::Called => {
            for queue in split.calls() {
                if let Some(at) = split.owners.iter().position(|o| o.pair.id() == queue) {
                    split.attend(at);
                }
            }
        }
        Turn::Pass { us } => split.pass(Time::from_us(u64::from(us))),
        Turn::Reset => _ = split.controller.reset(&mut split.pci, split.now),
        Turn::Rescan => _ = split.controller.rescan(&mut split.pci, split.now),
        Turn::Standstill { us } => {
            split.pci.inject(split.now, Fault::Hang(Time::from_us(u64::from(us))));
        }
        Turn::Mishap(n, lost) => {
            let device = split.pci.device_mut();
            let mishap = if lost { Mishap::LostForGood } else { Mishap::Forgotten };
            device.mishaps.insert(device.taken + u64::from(n), mishap);
        }
        // Rarely: most numbers name nobody.
        Turn::Drop(owner) => {
            if owner == 0 && split.owners.len() > 1 {
                split.owners.pop();
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn every_command_is_answered_once_whoever_has_a_turn(
        turns in turns(),
        seed in any::<u64>(),
        end in 0..3,
    ) {
        let nature = Nature { seed, ..Nature::default() };
        // Nobody is late for a reset here: a doorbell after the limit would be the owner's fault.
        let patient = Time::from_s(5);
        let limits = NvmeConfig { cores: 4, resets_max: 1000, owner_timeout: patient, ..config() };
        let mut split = Split::new(nature, limits);
        for turn in &turns {
            take_turn(&mut split, turn);
        }
        match end {
            0 => {
                let begun = split.controller.shutdown(&mut split.pci, split.now);
                prop_assert!(begun.is_ok() || split.controller.state() != DriverState::Ready);
            }
            1 => {
                // Work that one standstill postponed, and another replaced, comes first.
                split.pass(Time::ZERO);
                split.pci.inject(split.now, Fault::Remove);
                split.controller.removed(&mut split.pci);
            }
            _ => {}
        }
        // Gaps between queue numbers: some pairs were dropped.
        let dropped = split.owners.len() < 4;
        for _ in 0..400_000 {
            let over = split.outstanding() == 0
                && !matches!(split.controller.state(), DriverState::Recovering | DriverState::Stopping);
            if over && split.calls().is_empty() {
                break;
            }
            split.control();
            take_turn(&mut split, &Turn::Called);
            for owner in 0..split.owners.len() {
                split.poll(owner);
                if split.owners[owner].pair.next_deadline().is_some_and(|at| at <= split.now) {
                    split.attend(owner);
                }
            }
            let step = if split.outstanding() == 0 { Time::from_us(50) } else { Time::from_ms(1) };
            split.pass(step);
        }
        prop_assert_eq!(split.outstanding(), 0, "{:?}", split.controller.state());
        if end == 1 && !dropped {
            prop_assert_eq!(split.pci.memory_bytes(), u64::from(split.buffer.bytes));
        }
        prop_assert_eq!(split.pci.faults(), []);
        prop_assert_eq!(&split.pci.device_mut().violations, &Vec::<String>::new());
    }
}
