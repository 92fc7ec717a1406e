//! S1-8 to S1-11: every function once, with its parent, whatever firmware left behind.

use proptest::prelude::*;
use ssdyno_pci::config::{ConfigAccess, Snapshot};
use ssdyno_pci::topology::{BridgeSpec, CapabilitySpec, FunctionSpec, Topology};
use ssdyno_pci::tree::Oddity;
use ssdyno_pci::{BusNumbers, DeviceClass, PciAddress, RootBus, Tree, scan};

use crate::random_tree::{additions, bridges, build};

/// Offset of the bus numbers.
const BUSES: u16 = 0x18;

fn endpoint() -> FunctionSpec {
    FunctionSpec { id: (0x8086, 0x0953), class: 0x01_0802, ..FunctionSpec::default() }
}

fn bridge() -> BridgeSpec {
    BridgeSpec { id: (0x1b36, 1), ..BridgeSpec::default() }
}

fn addresses(tree: &Tree) -> Vec<String> {
    tree.functions.iter().map(|function| function.address.to_string()).collect()
}

/// A bridge with fixed numbers.
fn numbered(topology: &mut Topology, at: &str, numbers: [u8; 3]) {
    let [primary, secondary, subordinate] = numbers;
    let dword = u32::from_le_bytes([primary, secondary, subordinate, 0]);
    topology.write(at.parse().unwrap(), BUSES, dword);
}

fn numbers_of(tree: &Tree, at: &str) -> BusNumbers {
    tree.functions[tree.find(at.parse().unwrap()).unwrap()].header.bus_numbers.unwrap()
}

#[test]
fn power_on_state_is_numbered_depth_first() {
    let mut topology = Topology::new();
    let root = topology.root(0, 0);
    let (_, a) = topology.bridge(root, 1, 0, &bridge());
    let (_, b) = topology.bridge(root, 2, 0, &bridge());
    let (_, c) = topology.bridge(a, 0, 0, &bridge());
    for bus in [a, b, c] {
        topology.function(bus, 3, 0, &endpoint());
    }
    let tree = scan(&mut topology, &[RootBus::FIRST]);
    assert_eq!(
        addresses(&tree),
        [
            "0000:00:01.0",
            "0000:00:02.0",
            "0000:01:00.0",
            "0000:01:03.0",
            "0000:02:03.0",
            "0000:03:03.0"
        ]
    );
    let first = BusNumbers { primary: 0, secondary: 1, subordinate: 2 };
    assert_eq!(numbers_of(&tree, "00:01.0"), first);
    let nested = BusNumbers { primary: 1, secondary: 2, subordinate: 2 };
    assert_eq!(numbers_of(&tree, "01:00.0"), nested);
    assert_eq!(tree.functions[5].parent, tree.find("00:02.0".parse().unwrap()));
    assert_eq!(tree.functions[0].parent, None);
    assert_eq!(tree.functions[0].header.device_class(), DeviceClass::Bridge);
    assert!(tree.notes.is_empty() && topology.faults.is_empty());
}

#[test]
fn what_firmware_numbered_stays() {
    let mut topology = Topology::new();
    let root = topology.root(0, 0);
    let (_, a) = topology.bridge(root, 1, 0, &bridge());
    let (_, b) = topology.bridge(root, 2, 0, &bridge());
    topology.function(a, 0, 0, &endpoint());
    topology.function(b, 0, 0, &endpoint());
    numbered(&mut topology, "00:02.0", [0, 1, 1]);
    // The second bridge has bus 1 from firmware; the first one is new and gets a free number.
    let tree = scan(&mut topology, &[RootBus::FIRST]);
    assert_eq!(numbers_of(&tree, "00:02.0").secondary, 1);
    assert_eq!(numbers_of(&tree, "00:01.0").secondary, 2);
    // A new bridge inside a full range widens it, up to where the next one begins.
    let (_, c) = topology.bridge(b, 4, 0, &bridge());
    topology.function(c, 5, 0, &endpoint());
    numbered(&mut topology, "00:01.0", [0, 9, 9]);
    let tree = scan(&mut topology, &[RootBus::FIRST]);
    let widened = BusNumbers { primary: 0, secondary: 1, subordinate: 2 };
    assert_eq!(numbers_of(&tree, "00:02.0"), widened);
    assert!(tree.find("02:05.0".parse().unwrap()).is_some());
    assert!(tree.find("09:00.0".parse().unwrap()).is_some());
    assert_eq!(topology.faults, []);
}

#[test]
fn bridges_that_lead_up_or_to_one_bus_are_numbered_anew() {
    let mut topology = Topology::new();
    let root = topology.root(0, 0);
    let (_, a) = topology.bridge(root, 1, 0, &bridge());
    let (_, b) = topology.bridge(root, 2, 0, &bridge());
    let (_, c) = topology.bridge(a, 0, 0, &bridge());
    for bus in [a, b, c] {
        topology.function(bus, 1, 0, &endpoint());
    }
    numbered(&mut topology, "00:01.0", [0, 1, 5]);
    numbered(&mut topology, "00:02.0", [0, 1, 5]);
    numbered(&mut topology, "01:00.0", [1, 0, 7]);
    topology.faults.clear();
    let tree = scan(&mut topology, &[RootBus::FIRST]);
    assert_eq!(tree.functions.len(), 6, "{:?}", addresses(&tree));
    assert_eq!(numbers_of(&tree, "00:01.0").secondary, 1, "the first one of a bus keeps it");
    assert!(tree.notes.is_empty());
    assert!(tree.functions.iter().filter(|f| f.parent.is_some()).count() == 4);
}

#[test]
fn numbers_run_out() {
    let mut topology = Topology::new();
    let root = topology.root(0, 0xfe);
    let (_, a) = topology.bridge(root, 1, 0, &bridge());
    let (_, b) = topology.bridge(root, 2, 0, &bridge());
    topology.function(a, 0, 0, &endpoint());
    topology.function(b, 0, 0, &endpoint());
    let tree = scan(&mut topology, &[RootBus { segment: 0, bus: 0xfe, bus_max: 0xff }]);
    assert_eq!(addresses(&tree), ["0000:fe:01.0", "0000:fe:02.0", "0000:ff:00.0"]);
    let [note] = &tree.notes[..] else { panic!("{:?}", tree.notes) };
    assert_eq!((note.address.device(), note.what), (2, Oddity::NoBusNumber));
    assert_eq!(tree.functions[1].header.device_class(), DeviceClass::Unknown, "it leads nowhere");
}

#[test]
fn a_device_needs_function_0_and_the_flag_for_more() {
    let mut topology = Topology::new();
    let root = topology.root(0, 0);
    let headless = topology.function(root, 3, 0, &endpoint());
    topology.function(root, 3, 1, &endpoint());
    topology.function(root, 4, 0, &endpoint());
    topology.function(root, 4, 7, &endpoint());
    let single = topology.function(root, 5, 0, &endpoint());
    topology.function(root, 5, 2, &endpoint());
    topology.unplug(headless);
    // Without bit 7 of the header type the others are not looked for.
    topology.poke(single, 0x0c, 0);
    let tree = scan(&mut topology, &[RootBus::FIRST]);
    assert_eq!(addresses(&tree), ["0000:00:04.0", "0000:00:04.7", "0000:00:05.0"]);
}

/// A device on a link that answers to all numbers, as some do.
struct Echo(Topology);

impl ConfigAccess for Echo {
    fn read(&mut self, address: PciAddress, offset: u16) -> u32 {
        let device = if address.bus == 1 { 0 } else { address.device() };
        let address = PciAddress::new(0, address.bus, device, address.function());
        self.0.read(address, offset)
    }
    fn write(&mut self, address: PciAddress, offset: u16, value: u32) {
        self.0.write(address, offset, value);
    }
    fn bytes(&mut self, address: PciAddress) -> u16 {
        self.0.bytes(address)
    }
}

#[test]
fn one_device_is_behind_a_root_port() {
    let mut topology = Topology::new();
    let root = topology.root(0, 0);
    let port = CapabilitySpec::Pcie { port: 4, link: None };
    let (_, bus) =
        topology.bridge(root, 0x1c, 0, &BridgeSpec { capabilities: vec![port], ..bridge() });
    topology.function(bus, 0, 0, &endpoint());
    let tree = scan(&mut Echo(topology), &[RootBus::FIRST]);
    assert_eq!(addresses(&tree), ["0000:00:1c.0", "0000:01:00.0"]);
}

#[test]
fn several_roots_and_segments() {
    let mut topology = Topology::new();
    let roots = [(0, 0), (0, 0x80), (1, 0)].map(|(segment, bus)| {
        let root = topology.root(segment, bus);
        let (_, behind) = topology.bridge(root, 0, 0, &bridge());
        topology.function(behind, 0, 0, &endpoint());
        RootBus { segment, bus, bus_max: if (segment, bus) == (0, 0) { 0x7f } else { 0xff } }
    });
    let tree = scan(&mut topology, &roots);
    let found = [
        "0000:00:00.0",
        "0000:01:00.0",
        "0000:80:00.0",
        "0000:81:00.0",
        "0001:00:00.0",
        "0001:01:00.0",
    ];
    assert_eq!(addresses(&tree), found);
    let parents: Vec<_> = tree.functions.iter().map(|function| function.parent).collect();
    assert_eq!(parents, [None, Some(0), None, Some(2), None, Some(4)]);
}

/// A snapshot of bridges (bus, primary, secondary, subordinate), one a device.
fn saved(bridges: &[(u8, u8, u8, u8)]) -> Tree {
    let mut snapshot = Snapshot::new();
    for (device, &(bus, primary, secondary, subordinate)) in bridges.iter().enumerate() {
        let mut image = vec![0; 64];
        image[..4].copy_from_slice(&[0x86, 0x80, 1, 0]);
        image[0x0a..0x0c].copy_from_slice(&[4, 6]);
        image[0x0e] = 1;
        image[0x18..0x1b].copy_from_slice(&[primary, secondary, subordinate]);
        snapshot.add(PciAddress::new(0, bus, device as u8, 0), image);
    }
    scan(&mut snapshot, &[])
}

#[test]
fn malformed_saved_trees_are_described() {
    let tree = saved(&[
        (0, 0, 1, 2),
        (1, 1, 0, 3),
        (1, 1, 1, 1),
        (0, 0, 1, 1),
        (1, 0, 2, 9),
        (2, 2, 9, 8),
    ]);
    let notes: Vec<String> = tree.notes.iter().map(ToString::to_string).collect();
    let expected = [
        "0000:00:03.0: the bridge leads to bus 0x01, as 0000:00:00.0 does; ignored",
        "0000:01:01.0: the bridge leads to bus 0x00, which is not behind bus 0x01; ignored",
        "0000:01:02.0: the bridge leads to bus 0x01, which is not behind bus 0x01; ignored",
        "0000:01:04.0: the register of the bridge names bus 0x00 as its primary bus",
        "0000:01:04.0: the bridge leads up to bus 0x09, the bridge before it to 0x02",
        "0000:02:05.0: the bridge leads to buses 0x09 to 0x08, which is not a range",
    ];
    assert_eq!(notes, expected);
    assert_eq!(tree.functions[tree.find("00:03.0".parse().unwrap()).unwrap()].parent, None);
    let deepest = tree.find("02:05.0".parse().unwrap()).unwrap();
    let path: Vec<_> = tree.path_to_root(deepest).map(|at| tree.functions[at].address).collect();
    assert_eq!(path, ["01:04.0".parse().unwrap(), "00:00.0".parse().unwrap()]);
}

#[test]
fn ones_everywhere_are_nobody_or_gone() {
    struct Ones;
    impl ConfigAccess for Ones {
        fn read(&mut self, _address: PciAddress, _offset: u16) -> u32 {
            u32::MAX
        }
        fn write(&mut self, _address: PciAddress, _offset: u16, _value: u32) {}
        fn bytes(&mut self, _address: PciAddress) -> u16 {
            4096
        }
    }
    assert!(scan(&mut Ones, &[RootBus::FIRST]).functions.is_empty());
    let mut snapshot = Snapshot::new();
    snapshot.add(PciAddress::new(0, 3, 0, 0), vec![0xff; 4096]);
    let tree = scan(&mut snapshot, &[]);
    assert_eq!(tree.notes.iter().map(|note| note.what).collect::<Vec<_>>(), [Oddity::Gone]);
    assert_eq!(tree.functions[0].header.device_class(), DeviceClass::Unknown);
}

/// Found by the property below: a bridge that needs one number takes it from the gap in which one that
/// needs three would have fitted.
#[test]
fn sound_numbers_give_way_where_others_would_go_without() {
    let mut topology = Topology::new();
    let root = topology.root(0, 0);
    let (_, outer) = topology.bridge(root, 0, 0, &bridge());
    let (first, _) = topology.bridge(outer, 0, 0, &bridge());
    topology.bridge(outer, 1, 0, &bridge());
    let (deep, behind) = topology.bridge(outer, 2, 0, &bridge());
    let (_, deeper) = topology.bridge(behind, 0, 0, &bridge());
    topology.bridge(deeper, 0, 0, &bridge());
    // Keeps the outer one from growing.
    topology.bridge(root, 1, 0, &bridge());
    scan(&mut topology, &[RootBus::FIRST]);
    for lost in [first, deep] {
        topology.poke(lost, BUSES, 0);
    }
    let tree = scan(&mut topology, &[RootBus::FIRST]);
    assert_eq!(tree.functions.len(), 7);
    assert!(tree.notes.is_empty(), "{:?}", tree.notes);
}

proptest! {
    #[test]
    fn every_function_once_with_its_parent(additions in additions()) {
        let mut topology = build(&additions);
        let tree = scan(&mut topology, &[RootBus::FIRST]);
        prop_assert_eq!(&topology.faults, &[]);
        prop_assert_eq!(tree.functions.len(), topology.functions().count());
        prop_assert!(tree.notes.is_empty(), "{:?}", tree.notes);
        for function in topology.functions() {
            let address = topology.address(function).expect("every function has an address");
            let index = tree.find(address).expect("it was found");
            let parent = topology.parent(function).and_then(|bridge| topology.address(bridge));
            let found = tree.functions[index].parent.map(|parent| tree.functions[parent].address);
            prop_assert_eq!(found, parent);
            prop_assert_ne!(tree.functions[index].parent, Some(index));
        }
    }

    /// Firmware numbered the machine; then some bridges lost their numbers, or got wild ones.
    #[test]
    fn nothing_is_lost_with_the_numbers_of_some_bridges(
        additions in additions(),
        lost in prop::collection::vec((any::<prop::sample::Index>(), prop::option::of(any::<u32>())), 1..4),
    ) {
        let mut topology = build(&additions);
        scan(&mut topology, &[RootBus::FIRST]);
        let bridges = bridges(&topology);
        for (index, numbers) in &lost {
            if let Some(bridge) = bridges.get(index.index(bridges.len().max(1))) {
                topology.poke(*bridge, BUSES, numbers.unwrap_or(0));
            }
        }
        topology.faults.clear();
        let tree = scan(&mut topology, &[RootBus::FIRST]);
        let parts = tree.functions.windows(2).all(|pair| pair[0].address < pair[1].address);
        prop_assert!(parts, "an address twice");
        if lost.iter().all(|(_, numbers)| numbers.is_none()) {
            prop_assert_eq!(tree.functions.len(), topology.functions().count());
            prop_assert_eq!(&topology.faults, &[]);
        }
        for index in 0..tree.functions.len() {
            prop_assert!(tree.path_to_root(index).count() < 256);
        }
    }

    /// Any bytes at any address, as from a damaged file.
    #[test]
    fn any_snapshot_is_a_tree(
        images in prop::collection::vec(
            (any::<u8>(), 0..32_u8, 0..8_u8, prop::collection::vec(any::<u8>(), 64..320), any::<bool>()),
            0..24,
        ),
    ) {
        let mut snapshot = Snapshot::new();
        for (bus, device, function, mut image, bridge) in images {
            if bridge {
                image[0x0a..0x0c].copy_from_slice(&[4, 6]);
                image[0x0e] = 1;
                // Near numbers, so that bridges meet.
                image[0x19] %= 16;
            }
            snapshot.add(PciAddress::new(0, bus % 16, device, function), image);
        }
        let count = snapshot.len();
        let tree = scan(&mut snapshot, &[RootBus::FIRST]);
        prop_assert_eq!(tree.functions.len(), count);
        for (index, function) in tree.functions.iter().enumerate() {
            prop_assert!(tree.path_to_root(index).all(|bridge| bridge != index));
            if let Some(parent) = function.parent {
                let numbers = tree.functions[parent].header.bridge().expect("a bridge");
                prop_assert_eq!(numbers.secondary, function.address.bus);
            }
        }
    }
}
