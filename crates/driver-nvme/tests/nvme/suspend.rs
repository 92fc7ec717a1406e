//! Suspend and resume: every command that was taken completes once, and the driver serves as before.

use proptest::prelude::*;
use ssdyno_block::{Fault, Time};
use ssdyno_driver_nvme::{
    DriverState, IoError, IoResult, NvmeConfig, NvmeError, Quirks, SuspendMode,
};
use ssdyno_pci::{FunctionError, PciDevice, PciFunction};
use ssdyno_spec::nvme::{feature, registers};
use ssdyno_spec::pci;

use crate::double::{Double, Mishap, Nature};
use crate::faults::{Move, moves};
use crate::rig::{Rig, config, double};

fn sleepy() -> Nature {
    let mut nature = Nature { power_states: true, ..Nature::default() };
    nature.identity.power_states = 4;
    nature
}

fn ready(nature: Nature) -> Rig<Double> {
    let mut rig = Rig::ready(double(nature), NvmeConfig { cores: 3, ..config() });
    rig.device().keep_log = true;
    rig
}

fn suspend(rig: &mut Rig<Double>, mode: SuspendMode) {
    let at = rig.at();
    rig.nvme.driver.suspend(at, mode).unwrap();
    rig.run_while(|rig| rig.nvme.driver.state() == DriverState::Stopping);
}

fn resume(rig: &mut Rig<Double>) -> Result<(), NvmeError> {
    let (before, at) = (rig.done.len(), rig.at());
    rig.nvme.pci.set_now(rig.nvme.now);
    let resumed = rig.nvme.driver.resume(&mut rig.nvme.pci, at, &mut rig.done);
    rig.settle(before);
    rig.run_while(|rig| rig.nvme.driver.state() == DriverState::Recovering);
    resumed
}

/// Simulates a machine after a power loss: registers, queues and features have their factory state, and the system has
/// restored configuration space.
fn lose_power(rig: &mut Rig<Double>) {
    // What was on its way has arrived.
    rig.nvme.now += Time::from_us(10);
    let now = rig.nvme.now;
    rig.nvme.pci.advance(now);
    PciDevice::reset(rig.device(), now);
}

fn serves(rig: &mut Rig<Double>) {
    assert_eq!(rig.nvme.driver.state(), DriverState::Ready);
    let before = rig.done.len();
    for queue in 1..=3 {
        rig.read(queue, 0, 300).unwrap();
    }
    rig.drain();
    assert!(rig.done[before..].iter().all(|done| done.is_success()));
    assert_eq!(rig.nvme.driver.counters().lost_interrupts, 0);
}

#[test]
fn a_controller_that_loses_its_power_comes_back() {
    for loses_power in [true, false] {
        let mut rig = ready(sleepy());
        let pinned = rig.nvme.driver.pinned_bytes();
        for round in 1..=3 {
            for queue in [1, 2, 3, 3] {
                rig.read(queue, 0, 8).unwrap();
            }
            let at = rig.at();
            rig.nvme.driver.suspend(at, SuspendMode::PowerOff).unwrap();
            assert_eq!(rig.nvme.driver.state(), DriverState::Stopping);
            assert_eq!(rig.read(1, 0, 8), Err(IoError::NotReady));
            rig.run_while(|rig| rig.nvme.driver.state() == DriverState::Stopping);
            assert_eq!(rig.nvme.driver.state(), DriverState::Suspended);
            // The outstanding ones were waited for, not given up.
            assert_eq!(rig.outstanding(), 0);
            assert!(rig.done.iter().all(|done| done.is_success()));
            assert_eq!(rig.device().shutdowns, round, "it was told (CC.SHN)");
            assert_eq!(rig.nvme.driver.next_deadline(), None);
            assert_eq!(rig.read(1, 0, 8), Err(IoError::NotReady));
            assert_eq!(rig.nvme.pci.config_read(pci::COMMAND) as u16 & pci::COMMAND_BUS_MASTER, 0);
            if loses_power {
                lose_power(&mut rig);
            }
            rig.nvme.now += Time::from_s(1);
            resume(&mut rig).unwrap();
            serves(&mut rig);
        }
        assert_eq!(
            (rig.nvme.driver.counters().resets, rig.nvme.driver.pinned_bytes() >= pinned),
            (0, true)
        );
        assert!(
            rig.nvme.driver.resume(&mut rig.nvme.pci, rig.nvme.now, &mut rig.done).is_err(),
            "not suspended"
        );
        rig.check_double();
        rig.nvme.driver.shutdown(&mut rig.nvme.pci, rig.nvme.now).unwrap();
        rig.run_while(|rig| rig.nvme.driver.state() == DriverState::Stopping);
        assert_eq!(
            rig.nvme.pci.memory_bytes(),
            u64::from(rig.buffer.bytes),
            "all memory is given back"
        );
    }
}

#[test]
fn a_controller_keeps_its_queues_in_a_power_state() {
    let mut rig = ready(sleepy());
    rig.read(2, 0, 8).unwrap();
    suspend(&mut rig, SuspendMode::PowerState);
    assert_eq!(rig.nvme.driver.state(), DriverState::Suspended);
    assert_eq!((rig.outstanding(), rig.device().shutdowns), (0, 0));
    assert_eq!(rig.device().features[&feature::POWER_MANAGEMENT], 4, "the deepest");
    assert_eq!(rig.nvme.pci.bar_read32(0, registers::CC) & 1, 1);
    assert_eq!(rig.read(1, 0, 8), Err(IoError::NotReady));
    resume(&mut rig).unwrap();
    assert_eq!(rig.device().features[&feature::POWER_MANAGEMENT], 0, "as before");
    serves(&mut rig);
    assert_eq!(rig.nvme.driver.counters().resets, 0);
    // One that lost its power all the same is brought up anew.
    suspend(&mut rig, SuspendMode::PowerState);
    lose_power(&mut rig);
    resume(&mut rig).unwrap();
    serves(&mut rig);
    rig.check_double();
}

/// No such state, one that the controller refuses, and a quirk: it is shut down.
#[test]
fn where_a_power_state_does_not_do_the_controller_is_shut_down() {
    let shallow = Nature::default();
    let mut refusing = sleepy();
    refusing.power_states = false;
    for (nature, quirks) in
        [(shallow, None), (refusing, None), (sleepy(), Some(Quirks::SUSPEND_BY_SHUTDOWN))]
    {
        let wanted = NvmeConfig { cores: 3, quirks, ..config() };
        let mut rig = Rig::ready(double(nature), wanted);
        suspend(&mut rig, SuspendMode::PowerState);
        assert_eq!(rig.nvme.driver.state(), DriverState::Suspended);
        assert_eq!(rig.device().shutdowns, 1);
        resume(&mut rig).unwrap();
        serves(&mut rig);
        rig.check_double();
    }
    let quirks = Some(Quirks::NO_DEEPEST_POWER);
    let mut rig = Rig::ready(double(sleepy()), NvmeConfig { quirks, ..config() });
    suspend(&mut rig, SuspendMode::PowerState);
    assert_eq!(rig.device().features[&feature::POWER_MANAGEMENT], 3, "not the deepest");
}

/// The system sleeps all the same: the command is given up, once.
#[test]
fn a_command_that_hangs_does_not_keep_the_system_awake() {
    for mode in [SuspendMode::PowerOff, SuspendMode::PowerState] {
        let mut rig = ready(sleepy());
        rig.device().mishaps.insert(0, Mishap::LostForGood);
        rig.read(1, 0, 8).unwrap();
        rig.read(2, 0, 8).unwrap();
        suspend(&mut rig, mode);
        rig.run_while(|rig| rig.nvme.driver.state() == DriverState::Recovering);
        assert_eq!(rig.nvme.driver.state(), DriverState::Suspended);
        let mut results: Vec<_> = rig.done.iter().map(|done| done.result).collect();
        results.sort_by_key(|result| *result == IoResult::Abandoned);
        assert!(rig.outstanding() == 0 && results.len() == 2);
        assert_eq!(results[1], IoResult::Abandoned);
        resume(&mut rig).unwrap();
        serves(&mut rig);
    }
}

#[test]
fn a_controller_that_is_gone_after_the_resume_says_so() {
    for mode in [SuspendMode::PowerOff, SuspendMode::PowerState] {
        let mut rig = ready(sleepy());
        suspend(&mut rig, mode);
        rig.nvme.pci.inject(rig.nvme.now, Fault::Remove);
        let now = rig.nvme.now;
        rig.nvme.pci.advance(now);
        assert_eq!(resume(&mut rig), Err(NvmeError::Function(FunctionError::Gone)));
        assert!(matches!(rig.nvme.driver.state(), DriverState::Failed(_)));
        assert_eq!(rig.nvme.pci.memory_bytes(), u64::from(rig.buffer.bytes));
    }
}

#[test]
fn a_suspended_controller_can_be_removed_and_stopped() {
    let mut rig = ready(sleepy());
    suspend(&mut rig, SuspendMode::PowerOff);
    rig.nvme.driver.shutdown(&mut rig.nvme.pci, rig.nvme.now).unwrap();
    rig.nvme.driver.poll(&mut rig.nvme.pci, rig.nvme.now, &mut rig.done);
    assert_eq!(rig.nvme.driver.state(), DriverState::Stopped);
    assert_eq!(rig.nvme.pci.memory_bytes(), u64::from(rig.buffer.bytes));
    let mut rig = ready(sleepy());
    suspend(&mut rig, SuspendMode::PowerState);
    let asleep = rig.nvme.driver.shutdown(&mut rig.nvme.pci, rig.nvme.now);
    assert!(matches!(asleep, Err(NvmeError::WrongState { .. })), "resume it first");
    rig.nvme.driver.removed(&mut rig.nvme.pci, &mut rig.done);
    assert!(matches!(rig.nvme.driver.state(), DriverState::Failed(_)));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Suspended at any moment of any trouble, with or without its power: every request that was taken is
    /// answered once, and the driver serves after the resume or has failed for good.
    #[test]
    fn every_request_is_answered_once_across_suspends(
        before in moves(),
        seed in any::<u64>(),
        by_state in any::<bool>(),
        loses_power in any::<bool>(),
        mishaps in prop::collection::btree_map(
            0..100_u64,
            prop_oneof![Just(Mishap::Fails), Just(Mishap::Forgotten), Just(Mishap::LostForGood)],
            0..4,
        ),
    ) {
        let mut rig = ready(Nature { seed, ..sleepy() });
        rig.device().mishaps = mishaps;
        for step in before.iter().filter(|m| !matches!(m, Move::Remove | Move::Shutdown)) {
            crate::faults::make(&mut rig, step);
        }
        let mode = if by_state { SuspendMode::PowerState } else { SuspendMode::PowerOff };
        rig.run_while(|rig| rig.nvme.driver.state() == DriverState::Recovering);
        let at = rig.at();
        if rig.nvme.driver.suspend(at, mode).is_ok() {
            rig.run_while(|rig| {
                matches!(rig.nvme.driver.state(), DriverState::Stopping | DriverState::Recovering)
            });
            if rig.nvme.driver.state() == DriverState::Suspended {
                prop_assert_eq!(rig.outstanding(), 0);
                rig.device().mishaps.clear();
                if loses_power {
                    lose_power(&mut rig);
                }
                rig.nvme.now += Time::from_s(1);
                resume(&mut rig).unwrap();
                prop_assert_eq!(rig.nvme.driver.state(), DriverState::Ready);
                rig.read(1, 0, 300).unwrap();
            }
        }
        rig.drain();
        rig.check();
        prop_assert_eq!(&rig.device().violations, &Vec::<String>::new());
    }
}
