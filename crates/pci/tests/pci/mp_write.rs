//! Writing a table, as firmware does.

use ssdyno_pci::MpTable;
use ssdyno_pci::mp::MpInterrupt;
use ssdyno_spec::pci::mp::{
    ENTRY_BUS, ENTRY_IO_APIC, ENTRY_IO_INTERRUPT, ENTRY_LOCAL_INTERRUPT, ENTRY_PROCESSOR,
    FLOATING_BYTES, FLOATING_SIGNATURE, HEADER_BYTES, TABLE_SIGNATURE,
};

/// Where the checksum is in the header, and in the floating pointer (MP clauses 4.1, 4.2).
const HEADER_CHECKSUM: usize = 7;
const FLOATING_CHECKSUM: usize = 10;

/// The floating pointer and the table behind it, for physical address `base`. The extended table
/// is left out. Text beyond its 8 and 12 bytes is cut, as are entries beyond 64 KiB.
pub(crate) fn to_memory(of: &MpTable, base: u32) -> Vec<u8> {
    let mut memory = Vec::from(FLOATING_SIGNATURE);
    memory.extend(base.wrapping_add(FLOATING_BYTES as u32).to_le_bytes());
    memory.extend([1, of.revision, 0, 0, 0, 0, 0, 0]);
    memory[FLOATING_CHECKSUM] = sum(&memory).wrapping_neg();
    memory.extend(to_table(of));
    memory
}

/// The table.
pub(crate) fn to_table(of: &MpTable) -> Vec<u8> {
    let mut entries = entries_to_bytes(of);
    let bytes_max = usize::from(u16::MAX) - HEADER_BYTES;
    let mut count: u16 = 0;
    let mut body = Vec::new();
    for entry in entries.drain(..) {
        if body.len() + entry.len() > bytes_max {
            break;
        }
        body.extend(entry);
        count += 1;
    }
    let mut table = Vec::from(TABLE_SIGNATURE);
    table.extend(((HEADER_BYTES + body.len()) as u16).to_le_bytes());
    table.extend([of.revision, 0]);
    let padded = |text: &str, to: usize| {
        let blanks = std::iter::repeat_n(b' ', to);
        text.bytes().chain(blanks).take(to).collect::<Vec<u8>>()
    };
    table.extend(padded(&of.oem, 8));
    table.extend(padded(&of.product, 12));
    // No table of the maker's own.
    table.extend([0; 6]);
    table.extend(count.to_le_bytes());
    table.extend(of.local_apic_address.to_le_bytes());
    table.extend([0; 4]);
    table.extend(body);
    table[HEADER_CHECKSUM] = sum(&table).wrapping_neg();
    table
}

fn entries_to_bytes(of: &MpTable) -> Vec<Vec<u8>> {
    let mut entries = Vec::new();
    for p in &of.processors {
        let mut entry = vec![ENTRY_PROCESSOR, p.apic_id, p.apic_version, p.flags];
        entry.extend(p.signature.to_le_bytes());
        entry.extend(p.features.to_le_bytes());
        entry.extend([0; 8]);
        entries.push(entry);
    }
    for bus in &of.buses {
        let mut entry = vec![ENTRY_BUS, bus.id];
        entry.extend(bus.kind);
        entries.push(entry);
    }
    for apic in &of.io_apics {
        let mut entry = vec![ENTRY_IO_APIC, apic.id, apic.version, apic.flags];
        entry.extend(apic.address.to_le_bytes());
        entries.push(entry);
    }
    for i in &of.io_interrupts {
        let MpInterrupt { kind, flags, source_bus, source_irq, apic, input } = *i;
        let [low, high] = flags.to_le_bytes();
        let rest = [source_bus, source_irq, apic, input];
        entries.push([&[ENTRY_IO_INTERRUPT, kind, low, high], &rest[..]].concat());
    }
    for i in &of.local_interrupts {
        let MpInterrupt { kind, flags, source_bus, source_irq, apic, input } = *i;
        let [low, high] = flags.to_le_bytes();
        let rest = [source_bus, source_irq, apic, input];
        entries.push([&[ENTRY_LOCAL_INTERRUPT, kind, low, high], &rest[..]].concat());
    }
    entries
}

fn sum(bytes: &[u8]) -> u8 {
    bytes.iter().fold(0, |sum, byte| sum.wrapping_add(*byte))
}
