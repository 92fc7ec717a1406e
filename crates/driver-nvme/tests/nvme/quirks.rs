//! Boundaries that commands do not cross (NOIOB; NVM command set 1.0c, figure 97), and controllers with
//! quirks.

use proptest::prelude::*;
use ssdyno_block::Time;
use ssdyno_driver_nvme::{
    DriverEvent, DriverState, Feature, IoCommand, IoError, NvmeConfig, NvmeError, Quirks,
};
use ssdyno_pci::InterruptMode;
use ssdyno_spec::nvme::{IdentifyNamespace, feature, nvm};

use crate::double::{Double, Nature, namespace};
use crate::rig::{Rig, config, double, logging};

fn with_boundary(blocks: u16) -> IdentifyNamespace {
    let mut namespace = namespace(1 << 20, 9);
    namespace.io_boundary = blocks.into();
    namespace
}

/// First block and blocks of each command that the controller got.
fn commands(rig: &mut Rig<Double>) -> Vec<(u64, u32)> {
    let log = std::mem::take(&mut rig.device().log);
    let place = |dword10: u32, dword11: u32| u64::from(dword10) | u64::from(dword11) << 32;
    let told = |e: &ssdyno_spec::nvme::SubmissionEntry| {
        (place(e.dword10.get(), e.dword11.get()), (e.dword12.get() & 0xffff) + 1)
    };
    log.iter().map(|(_, entry, _)| told(entry)).collect()
}

#[test]
fn requests_are_split_at_the_boundary_of_their_namespace() {
    let nature = Nature { namespaces: vec![with_boundary(64)], ..Nature::default() };
    let mut rig = logging(nature, config());
    assert_eq!(rig.nvme.driver.namespaces()[0].boundary_blocks, 64);
    for (first, blocks, expected) in [
        // Inside, up to the boundary, and from it on: one command, as without it.
        (0, 64, vec![(0, 64)]),
        (1, 63, vec![(1, 63)]),
        (64, 1, vec![(64, 1)]),
        (127, 1, vec![(127, 1)]),
        // Across.
        (63, 2, vec![(63, 1), (64, 1)]),
        (60, 8, vec![(60, 4), (64, 4)]),
        (10, 150, vec![(10, 54), (64, 64), (128, 32)]),
        ((1 << 20) - 70, 70, vec![((1 << 20) - 70, 6), ((1 << 20) - 64, 64)]),
    ] {
        rig.read(1, first, blocks).unwrap();
        rig.drain();
        assert_eq!(commands(&mut rig), expected);
    }
    // What moves no data is not.
    rig.submit(1, &IoCommand::write_zeroes(1, 60, 8)).unwrap();
    rig.drain();
    assert_eq!(commands(&mut rig), [(60, 8)]);
    // 15 commands at most: so many boundaries can be crossed.
    let too_long = rig.read(1, 63, 1 + 14 * 64 + 1);
    assert_eq!(too_long, Err(IoError::TooLarge { commands: 16, slots: 15 }));
    rig.read(1, 63, 1 + 14 * 64).unwrap();
    rig.drain();
    assert!(rig.done.iter().all(|done| done.is_success()));
    rig.check_double();
}

/// As Linux does: none, and none that is no power of two.
#[test]
fn odd_boundaries_are_none() {
    for blocks in [0, 3, 96, u16::MAX] {
        let nature = Nature { namespaces: vec![with_boundary(blocks)], ..Nature::default() };
        let mut rig = logging(nature, config());
        assert_eq!(rig.nvme.driver.namespaces()[0].boundary_blocks, 0);
        rig.read(1, 90, 200).unwrap();
        rig.drain();
        assert_eq!(commands(&mut rig), [(90, 200)]);
    }
}

/// Intel's P3500, P3600 and P3700 are older than NOIOB: their stripe is their largest transfer, 128 KiB.
#[test]
fn stripes_of_older_drives_are_boundaries() {
    let nature = || Nature { pci: (0x8086, 0x0953), max_transfer: 5, ..Nature::default() };
    let mut rig = logging(nature(), config());
    assert_eq!(rig.nvme.driver.quirks(), Quirks::STRIPE_IS_MAX_TRANSFER);
    rig.read(1, 248, 16).unwrap();
    rig.read(1, 256, 256).unwrap();
    rig.drain();
    assert_eq!(commands(&mut rig), [(248, 8), (256, 8), (256, 256)]);
    // With a smaller transfer of the driver's own the stripe stays.
    let small = NvmeConfig { transfer_bytes_max: 32 * 1024, ..config() };
    let mut rig = logging(nature(), small);
    rig.read(1, 200, 100).unwrap();
    rig.drain();
    assert_eq!(commands(&mut rig), [(200, 56), (256, 44)]);
    // A controller that reports this has none.
    let none = NvmeConfig { quirks: Some(Quirks::NONE), ..config() };
    let mut rig = logging(nature(), none);
    rig.read(1, 248, 16).unwrap();
    rig.drain();
    assert_eq!(commands(&mut rig), [(248, 16)]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Every block is moved once, from or to its own place in the buffer, and no command crosses a boundary.
    #[test]
    fn split_requests_move_every_block_to_its_place(
        shift in 0_u32..12,
        requests in prop::collection::vec((0_u64..5000, 1_u32..700), 1..12),
    ) {
        let namespaces = vec![with_boundary(1 << shift)];
        let nature = Nature { namespaces, entries_max: 4096, ..Nature::default() };
        let mut rig = logging(nature, NvmeConfig { entries: 1024, ..config() });
        let at = rig.buffer.address;
        for (first, blocks) in requests {
            rig.read(1, first, blocks).unwrap();
            rig.drain();
            let mut next = first;
            for (_, entry, pieces) in std::mem::take(&mut rig.device().log) {
                let begin = u64::from(entry.dword10.get());
                let end = begin + u64::from(entry.dword12.get() & 0xffff) + 1;
                prop_assert_eq!(begin, next);
                prop_assert_eq!(begin >> shift, (end - 1) >> shift);
                let mut place = at + (begin - first) * 512;
                for (address, bytes) in pieces {
                    prop_assert_eq!(address, place);
                    place += bytes;
                }
                prop_assert_eq!(place, at + (end - first) * 512);
                next = end;
            }
            prop_assert_eq!(next, first + u64::from(blocks));
        }
        rig.check_double();
    }
}

#[test]
fn some_controllers_are_left_alone_before_they_are_asked() {
    let first_look = |pci| {
        let mut rig = Rig::ready(double(Nature { pci, ..Nature::default() }), config());
        rig.nvme.driver.reset(&mut rig.nvme.pci, rig.nvme.now, &mut rig.done).unwrap();
        rig.run_while(|rig| rig.nvme.driver.state() == DriverState::Recovering);
        assert_eq!(rig.nvme.driver.state(), DriverState::Ready);
        rig.device().first_look.unwrap()
    };
    // Seagate Nytro: 2.3 s from the write, which takes 200 ns to the controller.
    assert!(first_look((0x1bb1, 0x0100)) > Time::from_ms(2299));
    assert!(first_look((0x1b36, 0x0010)) < Time::from_ms(1));
}

#[test]
fn commands_that_a_controller_does_wrong_are_not_used() {
    // Sandisk Skyhawk.
    let mut rig = logging(Nature { pci: (0x15b7, 0x2001), ..Nature::default() }, config());
    let zeroes = rig.submit(1, &IoCommand::write_zeroes(1, 0, 8));
    assert_eq!(zeroes, Err(IoError::Unsupported { opcode: nvm::WRITE_ZEROES }));
    // QEMU's first controller: namespaces by number.
    let nature = Nature {
        pci: (0x8086, 0x5845),
        namespaces: vec![namespace(100, 9), namespace(0, 9), namespace(50, 12)],
        ..Nature::default()
    };
    let rig = logging(nature, config());
    let ids: Vec<u32> = rig.nvme.driver.namespaces().iter().map(|n| n.id).collect();
    assert_eq!(ids, [1, 3], "one of size 0 is not active, which a list would not have known");
}

#[test]
fn interrupts_and_queues_are_those_that_a_controller_can_bear() {
    let with = |quirks| {
        let wanted = NvmeConfig { quirks: Some(quirks), cores: 3, ..config() };
        let mut rig = Rig::ready(double(Nature::default()), wanted);
        for queue in 1..=3 {
            rig.read(queue, 0, 8).unwrap();
        }
        rig.drain();
        assert!(rig.nvme.driver.counters().lost_interrupts == 0);
        rig.check_double();
        rig
    };
    let rig = with(Quirks::SINGLE_VECTOR);
    assert!((1..=3).all(|queue| rig.nvme.driver.vector(queue) == Some(0)));
    let mut rig = with(Quirks::MEDIUM_PRIORITY);
    assert!((1..=3).all(|queue| rig.device().class_of(queue) == Some(2)));
    let mut rig = with(Quirks::ONE_COMMAND);
    rig.read(1, 0, 1).unwrap();
    assert_eq!(rig.read(1, 0, 1), Err(IoError::Full));
    // Without MSI-X the pin is next, not MSI.
    let msi = |quirks| {
        let wanted = NvmeConfig { quirks: Some(quirks), ..config() };
        let rig = Rig::ready(double(Nature { msix_vectors: 0, ..Nature::default() }), wanted);
        rig.nvme.driver.interrupt_mode()
    };
    assert_eq!(msi(Quirks::BROKEN_MSI), Some(InterruptMode::Pin));
    assert_eq!(msi(Quirks::NONE), Some(InterruptMode::Msi));
}

/// A controller that finds a command by its identifier alone gets none beyond its queue.
#[test]
fn identifiers_without_a_generation_stay_below_the_queue() {
    for (quirks, complains) in [(Quirks::NO_GENERATION, false), (Quirks::NONE, true)] {
        let nature = Nature { identifiers_max: 64, ..Nature::default() };
        let wanted = NvmeConfig { quirks: Some(quirks), ..config() };
        let mut rig = Rig::new(double(nature), wanted).started();
        for block in 0..40 {
            rig.read(1, block, 1).unwrap();
            rig.drain();
        }
        assert_eq!(!rig.device().violations.is_empty(), complains);
    }
}

#[test]
fn controllers_that_this_driver_cannot_serve_are_refused() {
    // Apple's T2: entries of 128 bytes.
    let mut rig = Rig::new(double(Nature { pci: (0x106b, 0x2005), ..Nature::default() }), config());
    let refused = rig.nvme.driver.start(&mut rig.nvme.pci, rig.nvme.now);
    assert_eq!(refused, Err(NvmeError::EntrySizes { submission: 7, completion: 4 }));
    assert_eq!(rig.nvme.driver.state(), DriverState::Stopped);
}

/// The quirks by model and firmware; the driver reports what they forbid.
#[test]
fn autonomous_power_is_withheld_from_those_that_die_of_it() {
    let start = |model: &str, target| {
        let mut nature = Nature::default();
        nature.identity.vendor = 0x1179.into();
        nature.identity.power_states = 4;
        nature.identity.model = [b' '; 40];
        nature.identity.model[..model.len()].copy_from_slice(model.as_bytes());
        let features =
            vec![Feature::autonomous_power(3, target, 100), Feature::VolatileWriteCache(true)];
        let mut rig = Rig::ready(double(nature), NvmeConfig { features, ..config() });
        let mut events = Vec::new();
        rig.nvme.driver.take_events(&mut events);
        assert!(rig.device().features.contains_key(&feature::VOLATILE_WRITE_CACHE));
        (rig.device().features.contains_key(&feature::AUTONOMOUS_POWER), events)
    };
    let withheld = DriverEvent::FeatureWithheld { identifier: feature::AUTONOMOUS_POWER };
    assert_eq!(start("THNSF5256GPUK TOSHIBA", 3), (false, vec![withheld]));
    assert_eq!(start("THNSF5256GPUK TOSHIBA 2", 3), (true, vec![]));
    // The deepest state alone.
    let start = |target| {
        let mut nature = Nature { pci: (0x2646, 0x2263), ..Nature::default() };
        nature.identity.power_states = 4;
        let features = vec![Feature::autonomous_power(3, target, 100)];
        let mut rig = Rig::ready(double(nature), NvmeConfig { features, ..config() });
        rig.device().features.contains_key(&feature::AUTONOMOUS_POWER)
    };
    assert!(start(3) && !start(4));
}
