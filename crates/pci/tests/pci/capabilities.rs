//! S1-13: the walk along capabilities, after PCI Local Bus 3.0 clause 6.7 and PCIe clause 7.6.3.

use proptest::prelude::*;
use ssdyno_pci::capability::{CapabilityKind, CapabilityList, Link, ListFault, Pcie, PciePort};
use ssdyno_pci::config::{At, Snapshot};
use ssdyno_pci::topology::{BarSpec, CapabilitySpec, FunctionSpec, Topology};
use ssdyno_pci::{PciAddress, RootBus, scan};

const HERE: PciAddress = PciAddress::new(0, 0, 0, 0);

/// An image of `bytes` with a capability list that starts at `first`, and these bytes set.
fn read(bytes: usize, first: u8, set: &[(usize, &[u8])]) -> CapabilityList {
    let mut image = vec![0; bytes];
    image[0x06] = 0x10;
    image[0x34] = first;
    set.iter().for_each(|(at, part)| image[*at..at + part.len()].copy_from_slice(part));
    let mut snapshot = Snapshot::new();
    snapshot.add(HERE, image);
    CapabilityList::read(&mut At::new(&mut snapshot, HERE), 0)
}

#[test]
fn a_list_as_an_nvme_drive_has_it() {
    let power_management = [0x01, 0x50, 0x03, 0x00, 0x08, 0x00, 0x00, 0x00];
    let msix = [0x11, 0x60, 0x1f, 0x80, 0x00, 0x20, 0x00, 0x00, 0x00, 0x30, 0x00, 0x00];
    let mut pcie = [0; 60];
    pcie[..8].copy_from_slice(&[0x10, 0x00, 0x02, 0x00, 0x01, 0, 0, 0]);
    pcie[12..16].copy_from_slice(&[0x43, 0x00, 0x00, 0x00]);
    pcie[18..20].copy_from_slice(&[0x22, 0x10]);
    let serial = [3, 0, 1, 0, 0x21, 0x43, 0x65, 0x87, 0x78, 0x56, 0x34, 0x12];
    let found = read(
        4096,
        // The two lowest bits are to be masked.
        0x43,
        &[(0x40, &power_management), (0x50, &msix), (0x60, &pcie), (0x100, &serial)],
    );
    let kinds: Vec<CapabilityKind> = found.all.iter().map(|capability| capability.kind).collect();
    assert_eq!(
        kinds,
        [
            CapabilityKind::PowerManagement { version: 3, d1: false, d2: false, state: 0 },
            CapabilityKind::MsiX {
                vectors: 32,
                table: (0, 0x2000),
                pending: (0, 0x3000),
                enabled: true,
                masked: false,
            },
            CapabilityKind::Pcie(Pcie {
                port: PciePort::Endpoint,
                slot: false,
                payload_bytes_max: 256,
                link_max: Some(Link { generation: 3, lanes: 4 }),
                link: Some(Link { generation: 2, lanes: 2 }),
                ari_forwarding: false,
            }),
            CapabilityKind::SerialNumber(0x1234_5678_8765_4321),
        ]
    );
    assert_eq!((found.msix_vectors(), found.msi_vectors(), found.faults.len()), (32, 0, 0));
}

#[test]
fn msi_in_all_its_sizes() {
    for (code, vectors) in [(0, 1), (1, 2), (5, 32), (6, 32), (7, 32)] {
        let control = code << 1 | 1 | 0x80;
        let found = read(256, 0x40, &[(0x40, &[0x05, 0, control, 1])]);
        let msi = CapabilityKind::Msi { vectors, wide: true, maskable: true, enabled: true };
        assert_eq!(found.all[0].kind, msi);
    }
}

#[test]
fn lists_that_are_broken_end() {
    let circle = read(256, 0x40, &[(0x40, &[9, 0x50]), (0x50, &[9, 0x40])]);
    assert_eq!(circle.all.len(), 2);
    assert_eq!(circle.faults, [ListFault::Circle { offset: 0x40 }]);
    let into_header = read(256, 0x40, &[(0x40, &[9, 0x10])]);
    assert_eq!(into_header.faults, [ListFault::IntoHeader { offset: 0x10 }]);
    let silent = read(256, 0x40, &[(0x40, &[0xff, 0xff])]);
    assert_eq!(silent.faults, [ListFault::Silent { offset: 0x40 }]);
    // `lspci -x` saves the header only.
    let cut = read(64, 0x40, &[]);
    assert_eq!(cut.faults, [ListFault::Unknown { offset: 0x40, bytes: 64 }]);
    assert!(cut.faults[0].to_string().contains("only 64 bytes"));
}

#[test]
fn extended_lists_that_are_broken_end() {
    let pcie: (usize, &[u8]) = (0x40, &[0x10, 0, 2, 0]);
    let empty = read(4096, 0x40, &[pcie]);
    assert_eq!((empty.all.len(), empty.faults.len()), (1, 0));
    let circle = read(4096, 0x40, &[pcie, (0x100, &[1, 0, 1, 0x20]), (0x200, &[2, 0, 1, 0x10])]);
    assert_eq!(circle.all.len(), 3);
    assert_eq!(circle.faults, [ListFault::Circle { offset: 0x100 }]);
    let into_header = read(4096, 0x40, &[pcie, (0x100, &[1, 0, 1, 0x04])]);
    assert_eq!(into_header.faults, [ListFault::IntoHeader { offset: 0x40 }]);
    let hidden = read(4096, 0x40, &[pcie, (0x100, &[0, 0, 1, 0x15]), (0x150, &[1, 0, 1, 0])]);
    assert_eq!(hidden.all[1].kind, CapabilityKind::OtherExtended(1), "identifier 0 is a filler");
    // Conventional functions have none, whatever is there.
    let conventional = read(4096, 0x40, &[(0x40, &[9, 0]), (0x100, &[1, 0, 1, 0])]);
    assert_eq!(conventional.all.len(), 1);
}

#[test]
fn without_the_status_bit_there_is_no_list() {
    let mut snapshot = Snapshot::new();
    let mut image = vec![0; 256];
    image[0x34] = 0x40;
    image[0x40] = 0x09;
    snapshot.add(HERE, image);
    let found = CapabilityList::read(&mut At::new(&mut snapshot, HERE), 0);
    assert_eq!(found, CapabilityList::default());
}

#[test]
fn what_the_topology_describes_is_what_is_read() {
    let mut topology = Topology::new();
    let root = topology.root(0, 0);
    let link = Link { generation: 4, lanes: 4 };
    let spec = FunctionSpec {
        id: (1, 2),
        bars: vec![BarSpec::Memory64 { bytes: 1 << 16, prefetchable: false }],
        capabilities: vec![
            CapabilitySpec::Msi(8),
            CapabilitySpec::MsiX { vectors: 2048, bar: 0 },
            CapabilitySpec::Pcie { port: 9, link: None },
            CapabilitySpec::SerialNumber(7),
            CapabilitySpec::SerialNumber(8),
            CapabilitySpec::BridgeSubsystem { vendor: 3, device: 4 },
        ],
        ..FunctionSpec::default()
    };
    topology.function(root, 0, 0, &spec);
    let ports = CapabilitySpec::Pcie { port: 1, link: Some(link) };
    topology.function(root, 1, 0, &FunctionSpec { capabilities: vec![ports], ..spec });
    let tree = scan(&mut topology, &[RootBus::FIRST]);
    let [first, second] = &tree.functions[..] else { panic!("{tree:?}") };
    let found = &first.capabilities;
    assert_eq!((found.msi_vectors(), found.msix_vectors(), found.all.len()), (8, 2048, 6));
    assert_eq!(found.pcie().map(|pcie| (pcie.port, pcie.link)), Some((PciePort::Integrated, None)));
    let subsystem = CapabilityKind::BridgeSubsystem { vendor: 3, device: 4 };
    assert!(found.all.iter().any(|capability| capability.kind == subsystem));
    assert!(found.all.iter().any(|c| c.kind == CapabilityKind::SerialNumber(8)));
    let pcie = second.capabilities.pcie().unwrap();
    assert_eq!((pcie.port, pcie.link_max), (PciePort::LegacyEndpoint, Some(link)));
}

proptest! {
    /// Whatever is in a space, no offset is given twice, and the walk ends.
    #[test]
    fn any_bytes_end(image in prop::collection::vec(any::<u8>(), 64..600), layout in 0..4_u8) {
        let mut image = image;
        image[0x06] |= 0x10;
        // A PCI Express capability, so that the extended list is walked.
        if image.len() > 0x44 {
            image[0x34] = 0x40;
            image[0x40] = 0x10;
        }
        let mut snapshot = Snapshot::new();
        snapshot.add(HERE, image);
        let found = CapabilityList::read(&mut At::new(&mut snapshot, HERE), layout);
        let mut offsets: Vec<u16> = found.all.iter().map(|capability| capability.offset).collect();
        let count = offsets.len();
        offsets.sort_unstable();
        offsets.dedup();
        prop_assert_eq!(offsets.len(), count);
        prop_assert!(found.faults.len() <= 2);
    }
}
