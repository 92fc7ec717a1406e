//! The MP table: processors, buses and the routing of interrupts, as firmware of the APIC age tells
//! them (Intel MultiProcessor Specification 1.4, chapter 4).

/// What the floating pointer structure starts with (MP clause 4.1).
pub const FLOATING_SIGNATURE: [u8; 4] = *b"_MP_";
/// Size of the floating pointer structure, in bytes; its length field counts 16-byte units.
pub const FLOATING_BYTES: usize = 16;
/// Floating pointer: physical address of the table, 32 bits.
pub const FLOATING_TABLE: usize = 4;
/// Floating pointer: length in 16-byte units, 8 bits.
pub const FLOATING_LENGTH: usize = 8;
/// Floating pointer: feature byte 1; 0 means that there is a table, else a default configuration.
pub const FLOATING_FEATURE_1: usize = 11;

/// What the table starts with (MP clause 4.2).
pub const TABLE_SIGNATURE: [u8; 4] = *b"PCMP";
/// Size of the header of the table, in bytes.
pub const HEADER_BYTES: usize = 44;
/// Header: length of the base table with header, 16 bits.
pub const HEADER_LENGTH: usize = 4;
/// Header: specification revision; 1 is 1.1, 4 is 1.4.
pub const HEADER_REVISION: usize = 6;
/// Header: name of the maker, 8 bytes of text.
pub const HEADER_OEM: usize = 8;
/// Header: name of the product, 12 bytes of text.
pub const HEADER_PRODUCT: usize = 16;
/// Header: number of entries, 16 bits.
pub const HEADER_ENTRIES: usize = 34;
/// Header: physical address of the local APICs, 32 bits.
pub const HEADER_LOCAL_APIC: usize = 36;
/// Header: length of the extended table, 16 bits.
pub const HEADER_EXTENDED_LENGTH: usize = 40;

/// Entry type: a processor, 20 bytes (MP clause 4.3.1).
pub const ENTRY_PROCESSOR: u8 = 0;
/// Entry type: a bus (MP clause 4.3.2).
pub const ENTRY_BUS: u8 = 1;
/// Entry type: an I/O APIC (MP clause 4.3.3).
pub const ENTRY_IO_APIC: u8 = 2;
/// Entry type: where an interrupt of a bus arrives at an I/O APIC (MP clause 4.3.4).
pub const ENTRY_IO_INTERRUPT: u8 = 3;
/// Entry type: where an interrupt arrives at a local APIC (MP clause 4.3.5).
pub const ENTRY_LOCAL_INTERRUPT: u8 = 4;
/// Size of a processor entry, in bytes.
pub const PROCESSOR_BYTES: usize = 20;
/// Size of every other base entry, in bytes.
pub const ENTRY_BYTES: usize = 8;
/// Name of a PCI bus in a bus entry; padded with blanks.
pub const BUS_PCI: [u8; 6] = *b"PCI   ";

/// Interrupt type of an entry: vectored, as PCI interrupts are (MP table 4-12).
pub const INTERRUPT_VECTORED: u8 = 0;
