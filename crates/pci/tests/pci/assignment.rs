//! S1-9: sizes and addresses of registers and windows that firmware did not set.

use proptest::prelude::*;
use ssdyno_pci::assign::{Apertures, Holder, Resource};
use ssdyno_pci::bars::{Bar, BarSpace, size_bars};
use ssdyno_pci::config::{At, ConfigAccess, ConfigSpace};
use ssdyno_pci::topology::{APERTURES, BarSpec, BridgeSpec, FunctionSpec, Topology};
use ssdyno_pci::window::{Range, WindowKind, read_window};
use ssdyno_pci::{PciAddress, RootBus, assign, scan};

use crate::decode::Decode;
use crate::random_tree::{additions, build};

const COMMAND: u16 = 0x04;

fn with_bars(bars: &[BarSpec]) -> FunctionSpec {
    FunctionSpec { id: (1, 2), class: 0x01_0802, bars: bars.to_vec(), ..FunctionSpec::default() }
}

fn bridge() -> BridgeSpec {
    BridgeSpec { id: (3, 4), io: Some(true), prefetch: Some(true), ..BridgeSpec::default() }
}

const MEMORY: BarSpec = BarSpec::Memory64 { bytes: 1 << 14, prefetchable: false };

/// Scans, assigns, and checks what is decoded.
fn set_up(topology: &mut Topology) -> Vec<Resource> {
    let mut tree = scan(topology, &[RootBus::FIRST]);
    let done = assign(topology, &mut tree, 0, &APERTURES);
    assert_eq!(done.failures, []);
    assert_eq!(topology.faults, []);
    assert_eq!(topology.decode_faults(), []);
    done.resources
}

fn at(resources: &[Resource], address: &str, holder: Holder) -> Option<Range> {
    let address: PciAddress = address.parse().unwrap();
    let found = resources.iter().find(|r| r.address == address && r.holder == holder);
    found.map(|resource| resource.range)
}

/// A function whose registers behave as clause 6.2.5.1 says, with some oddities of real ones.
struct Registers {
    dwords: [u32; 64],
    masks: [u32; 64],
    decoding_while_sized: bool,
}

impl ConfigSpace for Registers {
    fn read32(&mut self, offset: u16) -> u32 {
        self.dwords[usize::from(offset / 4)]
    }
    fn write32(&mut self, offset: u16, value: u32) {
        let index = usize::from(offset / 4);
        let ones = value == u32::MAX && offset >= 0x10;
        self.decoding_while_sized |= ones && self.dwords[1] & 3 != 0;
        self.dwords[index] = self.dwords[index] & !self.masks[index] | value & self.masks[index];
    }
    fn bytes(&mut self) -> u16 {
        256
    }
}

/// Sizes registers that hold `values` and have `masks`; everything must be as before.
fn sized(values: &[u32], masks: &[u32]) -> Vec<Bar> {
    let mut space = Registers { dwords: [0; 64], masks: [0; 64], decoding_while_sized: false };
    space.dwords[1] = 0x0010_0403;
    space.masks[1] = 0xffff;
    space.dwords[4..4 + values.len()].copy_from_slice(values);
    space.masks[4..4 + masks.len()].copy_from_slice(masks);
    let before = space.dwords;
    let bars = size_bars(&mut space, 0);
    assert_eq!(space.dwords, before, "sizing leaves no trace");
    assert!(!space.decoding_while_sized);
    bars
}

#[test]
fn sizes_of_all_kinds_of_registers() {
    let memory = |wide, prefetchable| BarSpace::Memory { wide, prefetchable };
    let bars = sized(
        &[0xfebf_0000, 0x0000_c001, 0x0000_000c, 0x0000_0008, 0xe000_0008, 0],
        &[0xffff_0000, 0xffff_ffe0, 0xc000_0000, 0xffff_ffff, 0xff00_0000, 0],
    );
    assert_eq!(
        bars,
        [
            Bar { index: 0, space: memory(false, false), bytes: 1 << 16, address: 0xfebf_0000 },
            Bar { index: 1, space: BarSpace::Io, bytes: 32, address: 0xc000 },
            Bar { index: 2, space: memory(true, true), bytes: 1 << 30, address: 0x8_0000_0000 },
            Bar { index: 4, space: memory(false, true), bytes: 1 << 24, address: 0xe000_0000 },
        ]
    );
    // 8 GiB: nothing of the lower half can be set.
    let large = sized(&[0x4, 0x10], &[0, 0xffff_fffe]);
    assert_eq!((large[0].bytes, large[0].address), (1 << 33, 0x10_0000_0000));
    // 16 bits of ports, as clause 6.2.5.1 allows.
    assert_eq!(sized(&[0x1], &[0xfff0])[0].bytes, 16);
    // The upper half of the last register would be a CardBus pointer.
    assert_eq!(sized(&[0, 0, 0, 0, 0, 0x4], &[0, 0, 0, 0, 0, 0xffff_0000]), []);
}

#[test]
fn windows_hold_what_is_behind_three_levels_of_bridges() {
    let mut topology = Topology::new();
    let mut bus = topology.root(0, 0);
    for device in 1..4 {
        topology.function(bus, device + 4, 0, &with_bars(&[MEMORY, BarSpec::Io(64)]));
        bus = topology.bridge(bus, device, 0, &bridge()).1;
    }
    let wide = BarSpec::Memory64 { bytes: 1 << 33, prefetchable: true };
    let narrow = BarSpec::Memory32 { bytes: 1 << 22, prefetchable: true };
    topology.function(bus, 0, 0, &with_bars(&[wide, narrow, BarSpec::Io(16)]));
    let resources = set_up(&mut topology);
    let window = |address, kind| at(&resources, address, Holder::Window(kind)).unwrap();
    for kind in WindowKind::ALL {
        let outer = window("00:01.0", kind);
        let middle = window("01:02.0", kind);
        let inner = window("02:03.0", kind);
        assert!(outer.contains(middle) && middle.contains(inner), "{kind:?}");
        // The registers contain the assigned values.
        let mut space = At::new(&mut topology, "02:03.0".parse().unwrap());
        assert_eq!(read_window(&mut space, kind), Some(inner));
    }
    // Prefetchable memory of 64 bits goes above 4 GiB, that of 32 bits stays below.
    assert!(window("02:03.0", WindowKind::Prefetch).start >= 1 << 32);
    assert!(at(&resources, "03:00.0", Holder::Bar(2)).unwrap().end() <= 1 << 32);
    // Bridges carry transfers of the devices behind them.
    assert_eq!(topology.read("02:03.0".parse().unwrap(), COMMAND) & 7, 7);
    assert_eq!(topology.read("03:00.0".parse().unwrap(), COMMAND) & 7, 3, "a driver's decision");
}

#[test]
fn what_firmware_placed_stays_and_the_rest_goes_beside() {
    let mut topology = Topology::new();
    let root = topology.root(0, 0);
    let (_, bus) = topology.bridge(root, 1, 0, &bridge());
    topology.function(bus, 0, 0, &with_bars(&[MEMORY]));
    topology.function(root, 2, 0, &with_bars(&[MEMORY, BarSpec::Io(64)]));
    let before = set_up(&mut topology);
    // Two more devices arrive: on the root bus, and behind the bridge, where there is room.
    topology.function(
        root,
        3,
        0,
        &with_bars(&[BarSpec::Memory64 { bytes: 1 << 20, prefetchable: false }]),
    );
    topology.function(bus, 7, 0, &with_bars(&[MEMORY]));
    let after = set_up(&mut topology);
    for old in &before {
        let same = after.iter().find(|r| (r.address, r.holder) == (old.address, old.holder));
        assert_eq!(same.map(|r| (r.range, r.kept)), Some((old.range, true)), "{old:?}");
    }
    let new: Vec<_> = after.iter().filter(|r| !r.kept).map(|r| r.address.to_string()).collect();
    assert_eq!(new, ["0000:00:03.0", "0000:01:07.0"]);
    // One that does not fit in makes its bridge's window move, and nothing else.
    topology.function(
        bus,
        8,
        0,
        &with_bars(&[BarSpec::Memory64 { bytes: 1 << 21, prefetchable: false }]),
    );
    let moved = set_up(&mut topology);
    let window =
        |resources: &[Resource]| at(resources, "00:01.0", Holder::Window(WindowKind::Memory));
    assert_ne!(window(&moved), window(&after));
    for function in ["00:02.0", "00:03.0"] {
        assert_eq!(at(&moved, function, Holder::Bar(0)), at(&after, function, Holder::Bar(0)));
    }
}

#[test]
fn registers_of_firmware_that_collide_are_moved() {
    let mut topology = Topology::new();
    let root = topology.root(0, 0);
    let functions = [1, 2].map(|device| topology.function(root, device, 0, &with_bars(&[MEMORY])));
    for function in functions {
        topology.poke(function, 0x10, 0xfebf_0004);
    }
    let resources = set_up(&mut topology);
    assert_eq!(at(&resources, "00:01.0", Holder::Bar(0)).unwrap().start, 0xfebf_0000);
    assert_ne!(at(&resources, "00:02.0", Holder::Bar(0)).unwrap().start, 0xfebf_0000);
}

#[test]
fn without_room_a_function_stays_off_and_is_named() {
    let mut topology = Topology::new();
    let root = topology.root(0, 0);
    topology.function(root, 1, 0, &with_bars(&[MEMORY]));
    let large = BarSpec::Memory32 { bytes: 1 << 30, prefetchable: false };
    topology.function(root, 2, 0, &with_bars(&[large, BarSpec::Io(64)]));
    // A bridge without a window for ports.
    let (_, bus) = topology.bridge(root, 3, 0, &BridgeSpec { io: None, ..bridge() });
    topology.function(bus, 0, 0, &with_bars(&[MEMORY, BarSpec::Io(64)]));
    let mut tree = scan(&mut topology, &[RootBus::FIRST]);
    let memory = Range { start: 0xf000_0000, bytes: 0x0100_0000 };
    let apertures = Apertures { memory, prefetch: None, ..APERTURES };
    let done = assign(&mut topology, &mut tree, 0, &apertures);
    let failures: Vec<String> = done.failures.iter().map(ToString::to_string).collect();
    assert_eq!(failures.len(), 2, "{failures:?}");
    assert!(failures[1].starts_with("0000:01:00.0: no addresses are left for BAR 2 (64 bytes)"));
    assert!(failures[0].starts_with("0000:00:02.0: no addresses are left for BAR 0 (1073741824"));
    assert_eq!(topology.decode_faults(), []);
    assert_eq!(topology.read("00:01.0".parse().unwrap(), COMMAND) & 3, 2);
    assert_eq!(topology.read("00:02.0".parse().unwrap(), COMMAND) & 3, 1, "its ports answer");
    assert_eq!(topology.read("01:00.0".parse().unwrap(), COMMAND) & 3, 2);
}

#[test]
fn an_older_bridge_has_a_prefetchable_window_of_32_bits_or_none() {
    for prefetch in [None, Some(false)] {
        let mut topology = Topology::new();
        let root = topology.root(0, 0);
        let (_, bus) = topology.bridge(root, 3, 0, &BridgeSpec { prefetch, ..bridge() });
        let wide = BarSpec::Memory64 { bytes: 1 << 24, prefetchable: true };
        topology.function(bus, 0, 0, &with_bars(&[wide]));
        let resources = set_up(&mut topology);
        assert!(at(&resources, "01:00.0", Holder::Bar(0)).unwrap().end() <= 1 << 32);
        let kind = if prefetch.is_some() { WindowKind::Prefetch } else { WindowKind::Memory };
        assert!(at(&resources, "00:03.0", Holder::Window(kind)).is_some());
    }
}

proptest! {
    /// In any tree, all registers that can have addresses have some, no two registers share
    /// addresses, and all bridges above forward them. Doing it again changes nothing.
    #[test]
    fn any_tree_gets_addresses(additions in additions()) {
        let mut topology = build(&additions);
        let mut tree = scan(&mut topology, &[RootBus::FIRST]);
        // As much as 40 functions can need, at a coarse grain.
        let apertures = Apertures { io: Some(Range { start: 0x1000, bytes: 0xff_f000 }), ..APERTURES };
        let done = assign(&mut topology, &mut tree, 0, &apertures);
        prop_assert_eq!(&topology.faults, &[]);
        prop_assert_eq!(topology.decode_faults(), vec![]);
        // Allowed failures: ports behind a bridge that forwards none, or 16 bits of them only.
        for failure in &done.failures {
            let io = matches!(failure.holder, Holder::Window(WindowKind::Io)) || failure.bytes < 256;
            prop_assert!(io, "{}", failure);
        }
        for resource in &done.resources {
            prop_assert!(!resource.kept);
            let mut space = At::new(&mut topology, resource.address);
            match resource.holder {
                Holder::Window(kind) => {
                    prop_assert_eq!(read_window(&mut space, kind), Some(resource.range));
                }
                Holder::Rom => prop_assert!(false, "no ROM is enabled"),
                Holder::Bar(index) => {
                    let low = space.read32(0x10 + 4 * u16::from(index));
                    prop_assert_eq!(u64::from(low) & 0xffff_fff0, resource.range.start & 0xffff_fff0);
                }
            }
        }
        let mut tree = scan(&mut topology, &[RootBus::FIRST]);
        let again = assign(&mut topology, &mut tree, 0, &apertures);
        let ranges = |resources: &[Resource]| {
            resources.iter().map(|r| (r.address, r.range)).collect::<Vec<_>>()
        };
        prop_assert_eq!(ranges(&again.resources), ranges(&done.resources));
        prop_assert!(again.resources.iter().all(|resource| resource.kept));
        prop_assert_eq!(topology.decode_faults(), vec![]);
    }
}
