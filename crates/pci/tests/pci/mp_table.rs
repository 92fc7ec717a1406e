//! S1-14: the MP table, after the MultiProcessor Specification 1.4, chapter 4.

use proptest::prelude::*;
use ssdyno_pci::mp::{IoApic, MpBus, MpInterrupt, Processor};
use ssdyno_pci::{MpError, MpTable, Pin};

use crate::mp_write::{to_memory, to_table};

/// Written by hand: two processors, buses PCI 0 and ISA 1, an I/O APIC, the entries of 00:03 INTA
/// and 00:1d INTD, an ISA interrupt and a local one.
fn by_hand() -> Vec<u8> {
    let mut table = b"PCMP\x84\x00\x04\x00OEM00000PROD00000000\x00\x00\x00\x00\x00\x00".to_vec();
    table.extend([9, 0, 0x00, 0x00, 0xe0, 0xfe, 0x10, 0, 0xaa, 0]);
    for (apic, flags) in [(0, 3), (1, 1)] {
        table.extend([0, apic, 0x14, flags, 0xc1, 0x06, 0, 0, 0xff, 0xfb, 0x8b, 0x07]);
        table.extend([0; 8]);
    }
    table.extend(b"\x01\x00PCI   ");
    table.extend(b"\x01\x01ISA   ");
    table.extend([2, 2, 0x11, 1, 0, 0, 0xc0, 0xfe]);
    table.extend([3, 0, 0x0f, 0, 0, 3 << 2, 2, 16]);
    table.extend([3, 0, 0x0f, 0, 0, 0x1d << 2 | 3, 2, 19]);
    table.extend([3, 0, 0, 0, 1, 4, 2, 4]);
    table.extend([4, 3, 0, 0, 1, 0, 0xff, 0]);
    assert_eq!(table.len(), 44 + 2 * 20 + 7 * 8);
    table[4] = table.len() as u8;
    seal(&mut table, 7);
    table
}

/// Makes the bytes add up to 0.
fn seal(bytes: &mut [u8], checksum: usize) {
    bytes[checksum] = 0;
    let sum: u8 = bytes.iter().fold(0, |sum, byte| sum.wrapping_add(*byte));
    bytes[checksum] = sum.wrapping_neg();
}

#[test]
fn a_table_written_by_hand() {
    let table = MpTable::parse(&by_hand()).unwrap();
    assert_eq!(
        (table.revision, table.oem.as_str(), table.product.as_str()),
        (4, "OEM00000", "PROD00000000")
    );
    assert_eq!((table.processors.len(), table.local_apic_address), (2, 0xfee0_0000));
    assert_eq!((table.processors[0].flags, table.processors[1].apic_id), (3, 1));
    assert_eq!(table.processors[0].features, 0x078b_fbff);
    assert!(table.buses[0].is_pci() && !table.buses[1].is_pci());
    assert_eq!(table.io_apics, [IoApic { id: 2, version: 0x11, flags: 1, address: 0xfec0_0000 }]);
    assert_eq!((table.local_interrupts[0].kind, table.extended_bytes), (3, 0x10));
    assert_eq!(table.io_interrupts[1].pci_source(), (0x1d, Pin::D));
    assert_eq!(table.lookup(0, 3, Pin::A).map(|entry| (entry.apic, entry.input)), Some((2, 16)));
    assert_eq!(table.lookup(0, 0x1d, Pin::D).map(|entry| entry.input), Some(19));
    assert_eq!(table.lookup(0, 3, Pin::B), None);
    // Line 4 of the ISA bus is encoded like device 1 INTA, but is not an entry of a PCI pin.
    assert_eq!(table.lookup(1, 1, Pin::A), None);
}

/// Firmware fills the name of a bus up with blanks, as it should, or with zeros.
#[test]
fn names_of_buses_end_where_they_end() {
    for (name, pci) in [
        (b"PCI   ", true),
        (b"PCI\0\0\0", true),
        (b"PCI \0\0", true),
        (b"PCMCIA", false),
        (b"ISA   ", false),
        (b"PC    ", false),
        (b"      ", false),
    ] {
        let mut bytes = by_hand();
        bytes[86..92].copy_from_slice(name);
        seal(&mut bytes, 7);
        let table = MpTable::parse(&bytes).unwrap();
        assert_eq!(table.buses[0].is_pci(), pci, "{name:?}");
        assert_eq!(table.lookup(0, 3, Pin::A).is_some(), pci, "{name:?}");
    }
}

/// MP clause 4.3.4: entries of NMI, SMI and the PIC are no interrupts of a pin, wherever they stand.
#[test]
fn only_vectored_entries_route_pins() {
    let entry = |kind, input| MpInterrupt {
        kind,
        flags: 0,
        source_bus: 0,
        source_irq: 3 << 2,
        apic: 2,
        input,
    };
    let mut table =
        MpTable { io_interrupts: (1..=3).map(|k| entry(k, k)).collect(), ..MpTable::default() };
    assert_eq!((table.lookup(0, 3, Pin::A), table.of_device(0, 3).count()), (None, 0));
    table.io_interrupts.push(entry(0, 16));
    assert_eq!(table.lookup(0, 3, Pin::A).map(|entry| entry.input), Some(16));
}

#[test]
fn the_extended_table_is_skipped() {
    let mut memory = by_hand();
    // An entry of type 128, 20 bytes, that nobody reads.
    memory.extend([128, 20]);
    memory.extend([0xee; 18]);
    assert_eq!(MpTable::parse(&memory), MpTable::parse(&by_hand()));
}

#[test]
fn damage_is_named() {
    let good = by_hand();
    let broken = |change: fn(&mut Vec<u8>)| {
        let mut table = good.clone();
        change(&mut table);
        MpTable::parse(&table).unwrap_err()
    };
    let bytes = good.len();
    assert_eq!(
        broken(|t| t[60] ^= 1),
        MpError::Checksum { sum: if good[60] & 1 == 0 { 1 } else { 255 } }
    );
    assert_eq!(broken(|t| t[0] = b'Q'), MpError::Signature(*b"QCMP"));
    assert_eq!(broken(|t| t.truncate(100)), MpError::Short { needed: bytes, bytes: 100 });
    assert_eq!(broken(|t| t.truncate(20)), MpError::Short { needed: 44, bytes: 20 });
    let tiny = MpError::Short { needed: 44, bytes: 10 };
    assert_eq!(
        broken(|t| {
            t[4] = 10;
            seal(&mut t[..10], 7)
        }),
        tiny
    );
    let unknown = MpError::EntryType { entry: 2, offset: 84, kind: 9 };
    assert_eq!(
        broken(|t| {
            t[84] = 9;
            seal(t, 7)
        }),
        unknown
    );
    let more = MpError::EntryCut { entry: 9, offset: bytes, end: bytes };
    assert_eq!(
        broken(|t| {
            t[34] = 200;
            seal(t, 7)
        }),
        more
    );
    assert_eq!(MpTable::parse(&[]), Err(MpError::Short { needed: 44, bytes: 0 }));
}

#[test]
fn the_floating_pointer_leads_to_the_table() {
    let base = 0xf_0000_u32;
    let mut memory = vec![0; 0x1_0000];
    let mut floating = b"_MP_".to_vec();
    floating.extend((base + 0x600).to_le_bytes());
    floating.extend([1, 4, 0, 0, 0, 0, 0, 0]);
    seal(&mut floating, 10);
    // One that is not on a 16-byte boundary, and one with a wrong sum, come first.
    memory[0x104..0x114].copy_from_slice(&floating);
    memory[0x200..0x210].copy_from_slice(&floating);
    memory[0x20f] ^= 1;
    memory[0x300..0x310].copy_from_slice(&floating);
    memory[0x600..0x600 + by_hand().len()].copy_from_slice(&by_hand());
    assert_eq!(MpTable::find(&memory, u64::from(base)), MpTable::parse(&by_hand()));
    assert_eq!(MpTable::address(&memory), Some(u64::from(base) + 0x600));
    let elsewhere = MpError::Elsewhere { address: 0xf_0600 };
    assert_eq!(MpTable::find(&memory[..0x500], u64::from(base)), Err(elsewhere));
    assert_eq!(MpTable::find(&memory, 0x10_0000), Err(elsewhere));
    assert_eq!(MpTable::find(&[0; 64], 0), Err(MpError::Absent { bytes: 64 }));
    floating[11] = 5;
    seal(&mut floating, 10);
    memory[0x300..0x310].copy_from_slice(&floating);
    assert_eq!(MpTable::find(&memory, u64::from(base)), Err(MpError::DefaultConfiguration(5)));
}

fn tables() -> impl Strategy<Value = MpTable> {
    let processors = prop::collection::vec(any::<(u8, u8, u8, u32, u32)>(), 0..4);
    let interrupts = prop::collection::vec(any::<(u8, u16, u8, u8, u8, u8)>(), 0..20);
    let buses = prop::collection::vec((any::<u8>(), any::<bool>()), 0..5);
    (processors, buses, interrupts.clone(), interrupts).prop_map(
        |(processors, buses, io, local)| {
            let processor = |(apic_id, apic_version, flags, signature, features)| Processor {
                apic_id,
                apic_version,
                flags,
                signature,
                features,
            };
            let bus = |(id, pci): (u8, bool)| MpBus {
                id,
                kind: if pci { *b"PCI   " } else { *b"ISA   " },
            };
            MpTable {
                revision: 4,
                oem: "MAKER".into(),
                product: "A PRODUCT".into(),
                local_apic_address: 0xfee0_0000,
                processors: processors.into_iter().map(processor).collect(),
                buses: buses.into_iter().map(bus).collect(),
                io_apics: vec![IoApic { id: 7, version: 1, flags: 1, address: 5 }],
                io_interrupts: io
                    .into_iter()
                    .map(|(kind, flags, source_bus, source_irq, apic, input)| MpInterrupt {
                        kind,
                        flags,
                        source_bus,
                        source_irq,
                        apic,
                        input,
                    })
                    .collect(),
                local_interrupts: local
                    .into_iter()
                    .map(|(kind, flags, source_bus, source_irq, apic, input)| MpInterrupt {
                        kind,
                        flags,
                        source_bus,
                        source_irq,
                        apic,
                        input,
                    })
                    .collect(),
                extended_bytes: 0,
            }
        },
    )
}

proptest! {
    #[test]
    fn written_and_read(table in tables(), base in any::<u16>()) {
        let base = u32::from(base) << 4;
        let memory = to_memory(&table, base);
        prop_assert_eq!(MpTable::find(&memory, u64::from(base)), Ok(table));
    }

    /// One byte that changes is always noticed.
    #[test]
    fn no_damage_is_overlooked(table in tables(), at in any::<prop::sample::Index>(), by in 1..=255_u8) {
        let mut bytes = to_table(&table);
        let at = at.index(bytes.len());
        bytes[at] = bytes[at].wrapping_add(by);
        prop_assert!(MpTable::parse(&bytes).is_err());
    }

    #[test]
    fn any_bytes_end(bytes in prop::collection::vec(any::<u8>(), 0..200), sealed: bool) {
        let mut bytes = bytes;
        if sealed && bytes.len() >= 48 {
            let length = bytes.len();
            bytes[..4].copy_from_slice(b"PCMP");
            bytes[4] = length as u8;
            bytes[5] = 0;
            seal(&mut bytes, 7);
        }
        let _ = MpTable::parse(&bytes);
        let _ = MpTable::find(&bytes, 0);
    }
}
