//! The cost of the watchdog: it checks the late commands and those that have ended, not all outstanding commands each
//! time.

use ssdyno_block::Time;
use ssdyno_driver_nvme::{DriverState, IoResult, NvmeConfig};

use crate::double::{Double, Mishap, Nature};
use crate::rig::{Rig, config, double};

fn rig(commands: u32, abort_limit: u8) -> Rig<Double> {
    let nature = Nature { entries_max: 4096, abort_limit, ..Nature::default() };
    Rig::ready(double(nature), NvmeConfig { entries: commands + 1, ..config() })
}

/// So many commands, each late on its own, a microsecond after the one before; steps of the watchdog until
/// the reset that follows.
fn steps_of_hung(commands: u32) -> u64 {
    let mut rig = rig(commands, 0);
    for n in 0..commands {
        rig.device().mishaps.insert(n.into(), Mishap::LostForGood);
        rig.read(1, 0, 1).unwrap();
        rig.nvme.now += Time::from_us(1);
    }
    rig.drain();
    rig.run_while(|rig| rig.nvme.driver.state() == DriverState::Recovering);
    assert!(rig.done.iter().all(|done| done.result == IoResult::Abandoned));
    assert_eq!(rig.nvme.driver.counters().resets, 1);
    rig.nvme.driver.counters().watchdog_steps
}

#[test]
fn each_late_command_costs_the_same_however_many_are_late() {
    for commands in [16, 256, 2048, 4095] {
        let steps = steps_of_hung(commands);
        // A call looks at the first of each line a few times; there is one call for each command.
        assert!(steps <= 20 * u64::from(commands) + 100, "{commands} commands: {steps} steps");
        assert!(steps >= u64::from(commands), "{commands} commands: {steps} steps");
    }
}

/// All late at once, in one call.
#[test]
fn a_thousand_late_at_once_are_looked_at_once() {
    for commands in [10, 100, 1000, 4095] {
        let mut rig = rig(commands, 255);
        for n in 0..commands {
            rig.device().mishaps.insert(n.into(), Mishap::LostForGood);
            rig.read(1, 0, 1).unwrap();
        }
        let due = rig.nvme.now + Time::from_ms(20);
        rig.run_while(|rig| rig.nvme.now < due);
        let steps = rig.nvme.driver.counters().watchdog_steps;
        assert!(steps <= 20 * u64::from(commands) + 100, "{commands} commands: {steps} steps");
        assert!(rig.nvme.driver.counters().aborts > 0);
        rig.drain();
    }
}

/// A command that hangs while a hundred thousand others end does not fill the line, and is found at its time.
#[test]
fn one_hung_command_is_found_among_many_that_end() {
    let mut rig = rig(15, 1);
    rig.device().mishaps.insert(0, Mishap::Forgotten);
    rig.read(1, 0, 1).unwrap();
    let begin = rig.nvme.now;
    let mut sent = 1;
    while rig.nvme.now < begin + Time::from_ms(19) {
        while rig.outstanding() < 15 && rig.read(1, sent % 1000, 1).is_ok() {
            sent += 1;
        }
        rig.step();
    }
    assert!(sent > 3000, "{sent}");
    rig.drain();
    let counters = rig.nvme.driver.counters();
    assert_eq!((counters.aborts, counters.resets, counters.strays), (1, 0, 0));
    assert_eq!(rig.done.iter().filter(|done| !done.is_success()).count(), 1);
    assert!(rig.nvme.now < begin + Time::from_ms(21));
    // One step for each that ended, when the line is tidied, and few besides.
    assert!(counters.watchdog_steps <= 3 * sent, "{} of {sent}", counters.watchdog_steps);
    rig.check_double();
}
