//! Clocks of any origin: what the driver does and when does not depend on what its clock said at first.
//!
//! Picoseconds in 64 bits end after 213 days, nanoseconds after 584 years; both ends are crossed here, at
//! any moment of a timeout, an abort, a reset, a start and a stop.

use proptest::prelude::*;
use ssdyno_block::{Fault, MonotonicTime, Time};
use ssdyno_driver_nvme::{DriverState, IoResult};
use ssdyno_spec::nvme::NvmeStatus;

use crate::double::{Double, Mishap, Nature};
use crate::faults::{Move, moves, play};
use crate::rig::{Rig, config, double};

/// The ends of 2^64 ps and of 2^64 ns.
const ENDS: [u128; 2] = [1 << 64, (1 << 64) * 1000];

/// So long before each end, and at zero: from the moment of the start to beyond everything that happens.
fn origins() -> Vec<MonotonicTime> {
    let before_ns =
        [0, 1, 500, 1_000_000, 2_000_000, 12_000_000, 22_000_000, 30_000_000, 40_000_000_000];
    let near = |end: u128| before_ns.map(|ns| MonotonicTime::from_ps(end - ns * 1000));
    ENDS.into_iter().flat_map(near).chain([MonotonicTime::ZERO]).collect()
}

fn ready(origin: MonotonicTime) -> Rig<Double> {
    Rig::at_origin(origin, double(Nature::default()), config()).started()
}

/// Everything that completed, and when, from the moment at which the driver was ready.
fn story(rig: &Rig<Double>, begin: Time) -> (Vec<IoResult>, Time, u64, u64, u64) {
    let counters = rig.nvme.driver.counters();
    let results = rig.done.iter().map(|done| done.result).collect();
    (results, rig.nvme.now - begin, counters.lost_interrupts, counters.aborts, counters.resets)
}

#[test]
fn a_deadline_is_named_just_before_every_end() {
    for origin in origins() {
        let mut rig = ready(origin);
        rig.read(1, 0, 8).unwrap();
        // That of the start's last admin command, or that of the read.
        let due = origin.after(rig.nvme.now + Time::from_ms(20));
        let named = rig.nvme.driver.next_deadline();
        assert!(named > Some(rig.at()) && named <= Some(due), "origin {origin:?}: {named:?}");
        rig.drain();
        rig.check_double();
    }
}

#[test]
fn lost_interrupt_is_found_across_every_end() {
    for origin in origins() {
        let mut rig = ready(origin);
        let (begin, sent) = (rig.nvme.now, rig.nvme.pci.counters().interrupts);
        rig.nvme.pci.inject_interrupt(sent, Fault::Drop);
        rig.read(1, 0, 8).unwrap();
        rig.drain();
        let success = vec![IoResult::Completed(NvmeStatus::SUCCESS)];
        assert_eq!(story(&rig, begin), (success, Time::from_ms(20), 1, 0, 0), "origin {origin:?}");
    }
}

#[test]
fn aborts_and_resets_come_across_every_end() {
    let mut first = None;
    for origin in origins() {
        let mut rig = ready(origin);
        let begin = rig.nvme.now;
        rig.device().mishaps.insert(0, Mishap::Forgotten);
        rig.device().mishaps.insert(1, Mishap::LostForGood);
        rig.read(1, 0, 8).unwrap();
        rig.drain();
        rig.read(1, 8, 8).unwrap();
        rig.drain();
        rig.run_while(|rig| rig.nvme.driver.state() == DriverState::Recovering);
        assert_eq!(rig.nvme.driver.state(), DriverState::Ready);
        let told = story(&rig, begin);
        let results = [IoResult::Completed(NvmeStatus::ABORT_REQUESTED), IoResult::Abandoned];
        assert_eq!((told.0.as_slice(), told.3, told.4), (&results[..], 2, 1));
        assert_eq!(first.get_or_insert(told.clone()), &told, "origin {origin:?}");
        let at = rig.at();
        rig.nvme.driver.shutdown(&mut rig.nvme.pci, at).unwrap();
        rig.run_while(|rig| rig.nvme.driver.state() == DriverState::Stopping);
        assert_eq!(rig.nvme.driver.state(), DriverState::Stopped);
        rig.check_double();
    }
}

/// The limit that the controller itself gives (CAP.TO), across an end.
#[test]
fn controller_that_never_becomes_ready_is_given_up_across_every_end() {
    for origin in origins() {
        let mut pci = double(Nature::default());
        pci.inject(Time::from_us(2), Fault::Hang(Time::MAX));
        let mut rig = Rig::at_origin(origin, pci, config());
        let at = rig.at();
        rig.nvme.driver.start(&mut rig.nvme.pci, at).unwrap();
        rig.run_while(|rig| rig.nvme.driver.state() == DriverState::Starting);
        assert!(matches!(rig.nvme.driver.state(), DriverState::Failed(_)));
        assert!(
            rig.nvme.now >= Time::from_s(1) && rig.nvme.now < Time::from_ms(1005),
            "{}",
            rig.nvme.now
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Whatever happens: the same at every origin, to the picosecond.
    #[test]
    fn nothing_depends_on_the_origin(
        moves in moves(),
        seed in any::<u64>(),
        end in prop::sample::select(ENDS.to_vec()),
        before_us in 0..200_000_u64,
        mishaps in prop::collection::btree_map(
            0..100_u64,
            prop_oneof![Just(Mishap::Fails), Just(Mishap::Forgotten), Just(Mishap::LostForGood)],
            0..4,
        ),
    ) {
        let run = |origin: MonotonicTime, moves: &[Move]| {
            let nature = Nature { seed, ..Nature::default() };
            let mut rig = Rig::at_origin(origin, double(nature), config()).started();
            rig.device().mishaps = mishaps.clone();
            play(&mut rig, moves);
            (story(&rig, Time::ZERO), rig.nvme.driver.state())
        };
        let origin = MonotonicTime::from_ps(end - u128::from(before_us) * 1_000_000);
        prop_assert_eq!(run(origin, &moves), run(MonotonicTime::ZERO, &moves));
    }
}
