//! Expansion ROMs that firmware left enabled, and bridges without room: a register listed as placed responds, unless
//! its function is reported as off, and no other function responds there.

use proptest::prelude::*;
use ssdyno_pci::assign::{Apertures, Assignment, Holder, NoRoom, Resource};
use ssdyno_pci::topology::{APERTURES, BarSpec, BridgeSpec, FunctionId, FunctionSpec, Topology};
use ssdyno_pci::window::Range;
use ssdyno_pci::{RootBus, assign, scan};

use crate::decode::{Decode, Decoded};
use crate::random_tree::{additions, build};

fn function(bar_bytes: &[u32], rom_bytes: u32) -> FunctionSpec {
    let bar = |&bytes: &u32| BarSpec::Memory32 { bytes, prefetchable: false };
    let bars = bar_bytes.iter().map(bar).collect();
    FunctionSpec { id: (1, 2), class: 0x01_0802, bars, rom_bytes, ..FunctionSpec::default() }
}

fn bridge(bar_bytes: &[u32], rom_bytes: u32) -> BridgeSpec {
    let bars = function(bar_bytes, 0).bars;
    BridgeSpec {
        id: (3, 4),
        bars,
        rom_bytes,
        io: Some(true),
        prefetch: Some(true),
        ..BridgeSpec::default()
    }
}

/// Memory of so many bytes, and no prefetchable one.
fn memory(bytes: u64) -> Apertures {
    Apertures { memory: Range { start: 0xf000_0000, bytes }, prefetch: None, ..APERTURES }
}

/// Assigns, and checks that exactly the listed registers respond.
fn assigned(topology: &mut Topology, apertures: &Apertures) -> Assignment {
    let mut tree = scan(topology, &[RootBus::FIRST]);
    let done = assign(topology, &mut tree, 0, apertures);
    check(topology, &done).unwrap();
    done
}

fn check(topology: &Topology, done: &Assignment) -> Result<(), TestCaseError> {
    prop_assert_eq!(topology.decode_faults(), vec![]);
    let decoded = topology.decoded();
    let answers = |resource: &&Resource, index| {
        decoded.iter().any(|one: &Decoded| {
            let address = topology.address(one.function);
            address == Some(resource.address)
                && one.bar.index == index
                && one.range == resource.range
        })
    };
    for resource in &done.resources {
        let index = match resource.holder {
            Holder::Bar(index) => index,
            Holder::Rom => Decoded::ROM,
            Holder::Window(_) => continue,
        };
        // A function that lacks an address for one register stays off, with the other registers set; the missing one is
        // reported.
        let is_off = |failure: &NoRoom| {
            failure.address == resource.address && matches!(failure.holder, Holder::Bar(_))
        };
        if done.failures.iter().any(is_off) {
            continue;
        }
        prop_assert!(answers(&resource, index), "{:?} is listed and does not answer", resource);
    }
    Ok(())
}

fn range(done: &Assignment, address: &str, holder: Holder) -> Option<Range> {
    let address = address.parse().unwrap();
    let found = done.resources.iter().find(|r| r.address == address && r.holder == holder);
    found.map(|resource| resource.range)
}

/// The aperture has room for the ROM and the register, and the first gap is where the ROM is.
#[test]
fn no_register_is_placed_on_an_enabled_rom() {
    for memory_on in [0, 2] {
        let mut topology = Topology::new();
        let root = topology.root(0, 0);
        let card = topology.function(root, 1, 0, &function(&[1 << 14], 1 << 16));
        topology.function(root, 2, 0, &function(&[1 << 16], 1 << 16));
        topology.enable_rom(card, 0xf000_0000);
        topology.poke(card, 4, memory_on);
        let done = assigned(&mut topology, &memory(1 << 20));
        assert_eq!(done.failures, []);
        let rom = Range { start: 0xf000_0000, bytes: 1 << 16 };
        assert_eq!(range(&done, "00:01.0", Holder::Rom), Some(rom), "firmware's place is kept");
        assert!(!range(&done, "00:02.0", Holder::Bar(0)).unwrap().overlaps(rom));
        // One that is not enabled needs no room.
        assert_eq!(range(&done, "00:02.0", Holder::Rom), None);
        assert_eq!(
            topology.decoded().iter().filter(|one| one.bar.index == Decoded::ROM).count(),
            1
        );
    }
}

/// The same behind a bridge, in a window that stays and in one that has to move, and of a bridge.
#[test]
fn roms_behind_bridges_stay_or_move_with_their_window() {
    let mut topology = Topology::new();
    let root = topology.root(0, 0);
    let (port, bus) = topology.bridge(root, 3, 0, &bridge(&[], 1 << 11));
    let card = topology.function(bus, 0, 0, &function(&[1 << 14], 1 << 16));
    let first = assigned(&mut topology, &memory(8 << 20));
    let window = Holder::Window(ssdyno_pci::window::WindowKind::Memory);
    let at = range(&first, "00:03.0", window).unwrap();
    // At the end of the window: the gap before it stays the first one.
    topology.enable_rom(card, (at.end() - (1 << 16)) as u32);
    topology.enable_rom(port, 0xf070_0000);
    topology.function(bus, 1, 0, &function(&[1 << 18], 0));
    let kept = assigned(&mut topology, &memory(8 << 20));
    assert_eq!((kept.failures.len(), range(&kept, "00:03.0", window)), (0, Some(at)));
    assert_eq!(range(&kept, "01:00.0", Holder::Rom).unwrap().end(), at.end());
    assert_eq!(range(&kept, "00:03.0", Holder::Rom).unwrap().start, 0xf070_0000);
    topology.function(bus, 2, 0, &function(&[1 << 21], 0));
    let moved = assigned(&mut topology, &memory(8 << 20));
    let new = range(&moved, "00:03.0", window).unwrap();
    assert!(moved.failures.is_empty() && new != at);
    assert!(new.contains(range(&moved, "01:00.0", Holder::Rom).unwrap()));
}

/// Where there is no room for it, a ROM is switched off, and its function works.
#[test]
fn a_rom_without_room_is_switched_off_alone() {
    let mut topology = Topology::new();
    let root = topology.root(0, 0);
    let card = topology.function(root, 1, 0, &function(&[1 << 20], 1 << 20));
    // It collides with the register.
    topology.poke(card, 0x10, 0xf000_0000);
    topology.enable_rom(card, 0xf000_0000);
    let done = assigned(&mut topology, &memory(1 << 20));
    assert!(range(&done, "00:01.0", Holder::Bar(0)).is_some());
    assert_eq!(range(&done, "00:01.0", Holder::Rom), None);
    let [failure] = &done.failures[..] else { panic!("{:?}", done.failures) };
    let expected = "0000:00:01.0: no addresses are left for the expansion ROM (1048576 bytes); it stays off. \
        Give the root bus a larger aperture";
    assert_eq!(failure.to_string(), expected);
}

/// A bridge whose own register finds no room answers no memory access and passes none on: nothing behind it
/// is placed.
#[test]
fn nothing_is_placed_behind_a_bridge_that_is_off() {
    let mut topology = Topology::new();
    let root = topology.root(0, 0);
    let (_, bus) = topology.bridge(root, 1, 0, &bridge(&[1 << 16], 0));
    let (_, below) = topology.bridge(bus, 0, 0, &bridge(&[], 0));
    topology.function(below, 0, 0, &function(&[1 << 20], 0));
    topology.function(
        root,
        2,
        0,
        &FunctionSpec { bars: vec![BarSpec::Io(64)], ..function(&[], 0) },
    );
    let done = assigned(&mut topology, &memory(1 << 20));
    let lost: Vec<String> =
        done.failures.iter().map(|f| format!("{} {}", f.address, f.holder)).collect();
    assert_eq!(
        lost,
        [
            "0000:00:01.0 BAR 0",
            "0000:00:01.0 memory window",
            "0000:01:00.0 memory window",
            "0000:02:00.0 BAR 0",
        ]
    );
    let left: Vec<String> = done.resources.iter().map(|r| r.address.to_string()).collect();
    assert_eq!(left, ["0000:00:02.0"]);
    // With room for both everything works.
    let mut topology = Topology::new();
    let root = topology.root(0, 0);
    let (_, bus) = topology.bridge(root, 1, 0, &bridge(&[1 << 16], 0));
    topology.function(bus, 0, 0, &function(&[1 << 20], 0));
    assert_eq!(assigned(&mut topology, &memory(2 << 20)).failures, []);
}

proptest! {
    /// Whichever registers find room: the listed ones respond, and nothing else at their addresses. Once more, with the
    /// addresses that are there now and some ROMs enabled.
    #[test]
    fn what_is_listed_answers(
        additions in additions(),
        bits in 20..28_u32,
        roms in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let mut topology = build(&additions);
        let apertures = Apertures { io: Some(Range { start: 0x1000, bytes: 0x3000 }), ..memory(1 << bits) };
        let mut tree = scan(&mut topology, &[RootBus::FIRST]);
        let done = assign(&mut topology, &mut tree, 0, &apertures);
        check(&topology, &done)?;
        let functions: Vec<FunctionId> = topology.functions().collect();
        for (place, rom) in roms.iter().enumerate() {
            topology.enable_rom(*rom.get(&functions), 0xf000_0000 + (place << 16) as u32);
        }
        let mut tree = scan(&mut topology, &[RootBus::FIRST]);
        let done = assign(&mut topology, &mut tree, 0, &apertures);
        check(&topology, &done)?;
    }
}
