//! Start and stop (S1-21, S1-22, S1-25 to S1-28).

use proptest::prelude::*;
use ssdyno_block::{Fault, Time};
use ssdyno_driver_nvme::{
    DriverEvent, DriverState, Feature, InterruptChoice, NvmeConfig, NvmeError, QueuePolicy,
    Unusable, Weights,
};
use ssdyno_pci::{InterruptMode, PciFunction};
use ssdyno_spec::nvme::{IdentifyController, NvmeStatus, feature, registers};
use zerocopy::FromBytes;

use crate::double::{Nature, namespace};
use crate::rig::{Rig, config, double};

#[test]
fn comes_up_and_goes_down_leaving_nothing() {
    let nature = Nature { stride: 2, ..Nature::default() };
    let wanted = NvmeConfig { cores: 3, ..config() };
    let mut rig = Rig::ready(double(nature), wanted);
    assert_eq!(rig.nvme.driver.queues(), 3);
    assert_eq!(rig.nvme.driver.outstanding_limit(), 45);
    assert_eq!(rig.nvme.driver.transfer_bytes_max(), 128 * 1024);
    assert_eq!(rig.nvme.driver.interrupt_mode(), Some(InterruptMode::MsiX));
    assert_eq!((1..=3).map(|q| rig.nvme.driver.vector(q).unwrap()).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(rig.device().waiting_events.len(), 4);
    for queue in [1, 2, 3, 3] {
        rig.read(queue, 0, 8).unwrap();
    }
    // Stopping waits for the four.
    rig.nvme.driver.shutdown(&mut rig.nvme.pci, rig.nvme.now).unwrap();
    assert_eq!(rig.nvme.driver.state(), DriverState::Stopping);
    assert!(rig.read(1, 0, 8).is_err());
    rig.run_while(|rig| rig.nvme.driver.state() == DriverState::Stopping);
    assert_eq!(rig.nvme.driver.state(), DriverState::Stopped);
    assert_eq!((rig.done.len(), rig.outstanding()), (4, 0));
    assert!(rig.done.iter().all(|done| done.is_success()));
    assert_eq!(
        rig.nvme.pci.memory_bytes(),
        u64::from(rig.buffer.bytes),
        "all memory is given back"
    );
    rig.check_double();
    // And up again.
    rig.nvme.driver.start(&mut rig.nvme.pci, rig.nvme.now).unwrap();
    rig.run_while(|rig| rig.nvme.driver.state() == DriverState::Starting);
    rig.read(1, 0, 8).unwrap();
    rig.drain();
    rig.check_double();
}

#[test]
fn controller_left_running_is_reset_first() {
    let mut pci = double(Nature::default());
    pci.config_write(4, 0b110);
    pci.bar_write32(0, registers::CC, registers::CC_ENABLE | registers::CC_ENTRY_SIZES);
    pci.advance(Time::from_ms(1));
    let mut rig = Rig::ready(pci, config());
    rig.read(1, 0, 1).unwrap();
    rig.drain();
    rig.check_double();
}

/// Base 2.0c, figure 46: CC.EN of a controller that somebody else has just set is cleared only once
/// CSTS.RDY has followed; of one that never comes, after CAP.TO.
#[test]
fn controller_on_its_way_up_is_waited_for() {
    let enabled = |fault: Option<Fault>| {
        let mut pci = double(Nature::default());
        pci.config_write(4, 0b110);
        pci.bar_write32(0, registers::CC, registers::CC_ENABLE | registers::CC_ENTRY_SIZES);
        pci.advance(Time::from_ns(900));
        fault.into_iter().for_each(|fault| pci.inject(Time::from_us(5), fault));
        pci
    };
    let mut rig = Rig::ready(enabled(None), config());
    rig.read(1, 0, 1).unwrap();
    rig.drain();
    rig.check_double();
    let hangs = Fault::Hang(Time::from_s(3) - Time::from_us(5));
    let mut rig = Rig::new(enabled(Some(hangs)), config());
    rig.nvme.driver.start(&mut rig.nvme.pci, rig.nvme.now).unwrap();
    rig.run_while(|rig| rig.nvme.driver.state() == DriverState::Starting);
    // CC.EN was cleared all the same, and set: it does not come up.
    assert!(matches!(rig.nvme.driver.state(), DriverState::Failed(NvmeError::ReadyTimeout { .. })));
}

#[test]
fn pin_first_then_msix() {
    for start_poll in [Some(Time::from_us(50)), None] {
        let wanted = NvmeConfig { pin_first: true, start_poll, cores: 2, ..config() };
        let mut rig = Rig::new(double(Nature::default()), wanted);
        rig.nvme.driver.start(&mut rig.nvme.pci, rig.nvme.now).unwrap();
        let mut modes = Vec::new();
        rig.run_while(|rig| {
            modes.push(rig.nvme.driver.interrupt_mode());
            rig.nvme.driver.state() == DriverState::Starting
        });
        modes.dedup();
        let (pin, msix) = (Some(InterruptMode::Pin), Some(InterruptMode::MsiX));
        assert_eq!(modes, [None, pin, msix]);
        rig.read(2, 0, 8).unwrap();
        rig.drain();
        assert_eq!(rig.nvme.driver.counters().lost_interrupts, 0);
        rig.check_double();
    }
}

/// S1-22: nothing is lost or handled twice while the start polls, whatever the interrupts.
#[test]
fn every_kind_of_interrupt_works() {
    let choices = [
        InterruptChoice::Only(InterruptMode::Pin),
        InterruptChoice::Only(InterruptMode::Msi),
        InterruptChoice::Only(InterruptMode::MsiX),
        InterruptChoice::Polling,
    ];
    for interrupts in choices {
        for start_poll in [Some(Time::from_us(50)), None] {
            let wanted = NvmeConfig { interrupts, start_poll, cores: 4, ..config() };
            let mut rig = Rig::ready(double(Nature::default()), wanted);
            for queue in 1..=4 {
                rig.read(queue, 0, 8).unwrap();
            }
            if interrupts == InterruptChoice::Polling {
                while rig.outstanding() > 0 {
                    assert!(rig.step());
                    for queue in 1..=4 {
                        let before = rig.done.len();
                        rig.nvme.driver.poll_queue(&mut rig.nvme.pci, queue, &mut rig.done);
                        rig.settle(before);
                    }
                }
                assert_eq!(rig.nvme.pci.counters().interrupts, 0);
            }
            rig.drain();
            assert_eq!(rig.done.len(), 4);
            assert_eq!(rig.nvme.driver.counters().lost_interrupts, 0, "{interrupts:?}");
            rig.check_double();
        }
    }
}

#[test]
fn few_vectors_are_shared() {
    let nature = Nature { msix_vectors: 3, ..Nature::default() };
    let mut rig = Rig::ready(double(nature), NvmeConfig { cores: 4, ..config() });
    assert_eq!(
        (1..=4).map(|q| rig.nvme.driver.vector(q).unwrap()).collect::<Vec<_>>(),
        [1, 2, 1, 2]
    );
    for queue in 1..=4 {
        rig.read(queue, 0, 8).unwrap();
    }
    rig.drain();
    assert_eq!(rig.nvme.driver.counters().lost_interrupts, 0);
}

#[test]
fn old_controllers_have_no_lists_of_namespaces() {
    let namespaces = vec![namespace(100, 9), namespace(0, 9), namespace(50, 12)];
    let nature = Nature { version: 0x0001_0000, namespaces, ..Nature::default() };
    let rig = Rig::ready(double(nature), config());
    let ids: Vec<_> =
        rig.nvme.driver.namespaces().iter().map(|n| (n.id, n.blocks, n.block_bytes)).collect();
    assert_eq!(ids, [(1, 100, 512), (3, 50, 4096)], "one of size 0 is not active");
}

/// S1-46.
#[test]
fn what_the_driver_cannot_do_is_refused() {
    let mut protected = namespace(100, 9);
    protected.protection = 1;
    let mut interleaved = namespace(100, 9);
    interleaved.lba_format[0].metadata_bytes = 8.into();
    interleaved.format = 1 << 4;
    let mut apart = interleaved;
    apart.format = 0;
    let namespaces = vec![protected, interleaved, apart, namespace(100, 0)];
    let rig = Rig::ready(double(Nature { namespaces, ..Nature::default() }), config());
    let found: Vec<_> = rig.nvme.driver.namespaces().iter().map(|n| n.unusable).collect();
    assert_eq!(
        found,
        [
            Some(Unusable::Protection),
            Some(Unusable::InterleavedMetadata),
            None,
            Some(Unusable::BlockSize)
        ]
    );
}

/// S1-41: the class is in the creation of the queue, the weights in the feature, CC says so.
#[test]
fn weighted_classes_reach_the_controller() {
    let weights = Weights { burst_shift: 0, high: 16, medium: 8, low: 1 };
    let policy = QueuePolicy::Weighted { queues: [1, 1, 1, 1], weights };
    let wanted = NvmeConfig { policy, ..config() };
    let mut rig = Rig::ready(double(Nature::default()), wanted.clone());
    assert_eq!(
        (1..=4).map(|q| rig.device().class_of(q).unwrap()).collect::<Vec<_>>(),
        [0, 1, 2, 3]
    );
    assert_eq!(rig.device().features[&feature::ARBITRATION], 0x0f07_0000);
    assert_eq!(rig.nvme.pci.bar_read32(0, registers::CC) >> 11 & 7, 1);
    let mut without = Rig::new(double(Nature { weighted: false, ..Nature::default() }), wanted);
    let refused = without.nvme.driver.start(&mut without.nvme.pci, without.nvme.now);
    assert_eq!(refused, Err(NvmeError::NoWeightedArbitration));
}

/// Base 2.0c, figure 275: entries of 128 bytes at least, as some controllers want them.
#[test]
fn entries_that_the_controller_does_not_take_are_refused() {
    for (sizes, works) in
        [((0x66, 0x44), true), ((0, 0), true), ((0x77, 0x44), false), ((0x66, 0x55), false)]
    {
        let mut nature = Nature::default();
        (nature.identity.submission_entry_size, nature.identity.completion_entry_size) = sizes;
        let mut rig = Rig::new(double(nature), config());
        rig.nvme.driver.start(&mut rig.nvme.pci, rig.nvme.now).unwrap();
        rig.run_while(|rig| rig.nvme.driver.state() == DriverState::Starting);
        let (submission, completion) = (sizes.0 & 0xf, sizes.1 & 0xf);
        let refused = DriverState::Failed(NvmeError::EntrySizes { submission, completion });
        assert_eq!(rig.nvme.driver.state(), if works { DriverState::Ready } else { refused });
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// For any Identify data, the driver starts or gives the reason, and the controller accepts
    /// what it then sends.
    #[test]
    fn any_identity_is_driven_or_refused(
        seed in any::<u64>(),
        max_transfer in 0..=255_u8,
        version in prop::sample::select(vec![0x1_0000, 0x1_0100, 0x1_0400, 0x2_0100_u32]),
        tame in any::<bool>(),
    ) {
        // A vector of bytes would fill screens where this fails.
        let mut state = seed | 1;
        let raw = [(); 4096].map(|()| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 56) as u8
        });
        let mut identity = Box::new(IdentifyController::read_from_bytes(&raw).unwrap());
        if tame {
            (identity.submission_entry_size, identity.completion_entry_size) = (0x66, 0x44);
        }
        let nature = Nature { max_transfer, version, identity, ..Nature::default() };
        let mut rig = Rig::new(double(nature), NvmeConfig { entries: 64, ..config() });
        rig.nvme.driver.start(&mut rig.nvme.pci, rig.nvme.now).unwrap();
        rig.run_while(|rig| rig.nvme.driver.state() == DriverState::Starting);
        if rig.nvme.driver.state() == DriverState::Ready {
            rig.read(1, 0, 1).unwrap();
            rig.read(1, 8, 400).unwrap();
            rig.drain();
            rig.check_double();
        } else {
            let refused = matches!(
                rig.nvme.driver.state(),
                DriverState::Failed(NvmeError::EntrySizes { .. })
            );
            prop_assert!(refused && !tame);
        }
    }
}

#[test]
fn refused_feature_is_an_event_and_no_failure() {
    let features = vec![
        Feature::PowerState(3),
        Feature::InterruptCoalescing { entries: 8, time_100us: 2 },
        Feature::VolatileWriteCache(true),
    ];
    let mut rig = Rig::ready(double(Nature::default()), NvmeConfig { features, ..config() });
    let mut events = Vec::new();
    rig.nvme.driver.take_events(&mut events);
    let refused = DriverEvent::FeatureRefused {
        identifier: feature::POWER_MANAGEMENT,
        status: NvmeStatus::INVALID_FIELD,
    };
    assert_eq!(events, [refused]);
    assert_eq!(rig.device().features[&feature::INTERRUPT_COALESCING], 0x207);
    assert_eq!(rig.device().features[&feature::VOLATILE_WRITE_CACHE], 1);
}

/// S1-38: 128 commands on one queue, even where the controller has room for more.
#[test]
fn limits_of_mfi() {
    let nature = Nature { entries_max: 4096, ..Nature::default() };
    let wanted = NvmeConfig { policy: QueuePolicy::Single, cores: 8, entries: 4096, ..config() };
    let mut rig = Rig::ready(double(nature), wanted);
    let taken = (0..1000).take_while(|_| rig.read(1, 0, 1).is_ok()).count();
    assert_eq!((rig.nvme.driver.queues(), taken), (1, 128));
    rig.drain();
    rig.check_double();
}

/// S1-22: after the time that the controller itself gives (CAP.TO, base 2.0c, figure 36); 0 is taken
/// for its unit.
#[test]
fn controller_that_never_becomes_ready_is_given_up() {
    for (timeout_500ms, limit) in [(0, 500), (1, 500), (2, 1000), (255, 127_500)] {
        let mut pci = double(Nature { timeout_500ms, ..Nature::default() });
        pci.inject(Time::from_us(2), Fault::Hang(Time::MAX));
        let mut rig = Rig::new(pci, config());
        rig.nvme.driver.start(&mut rig.nvme.pci, rig.nvme.now).unwrap();
        rig.run_while(|rig| rig.nvme.driver.state() == DriverState::Starting);
        let limit = Time::from_ms(limit);
        let error = NvmeError::ReadyTimeout { ready: true, limit };
        assert_eq!(rig.nvme.driver.state(), DriverState::Failed(error));
        assert!(
            rig.nvme.now >= limit && rig.nvme.now < limit + Time::from_ms(5),
            "{}",
            rig.nvme.now
        );
        assert_eq!(rig.nvme.pci.memory_bytes(), u64::from(rig.buffer.bytes));
        rig.check();
    }
}

#[test]
fn no_memory_is_an_error_at_any_time() {
    let mut failures = 0;
    for limit in (0..40).map(|i| (8 << 20) + i * 2048) {
        let mut pci = double(Nature::default());
        pci.set_memory_limit(limit);
        let mut rig = Rig::new(pci, NvmeConfig { cores: 4, ..config() });
        rig.nvme.driver.start(&mut rig.nvme.pci, rig.nvme.now).unwrap();
        rig.run_while(|rig| rig.nvme.driver.state() == DriverState::Starting);
        match rig.nvme.driver.state() {
            DriverState::Failed(NvmeError::Function(_)) => {
                failures += 1;
                assert_eq!(rig.nvme.pci.memory_bytes(), u64::from(rig.buffer.bytes));
            }
            state => assert_eq!(state, DriverState::Ready),
        }
        rig.check();
    }
    assert!(failures > 10 && failures < 40);
}

#[test]
fn no_controller_at_all() {
    let mut pci = double(Nature::default());
    pci.inject(Time::ZERO, Fault::Remove);
    let mut rig = Rig::new(pci, config());
    assert!(rig.nvme.driver.start(&mut rig.nvme.pci, rig.nvme.now).is_err());
    assert_eq!(rig.nvme.driver.state(), DriverState::Stopped);
}
