//! The MP table: what firmware of the APIC age says about processors, buses and interrupts (S1-14).
//!
//! Key types: [`MpTable`], [`MpInterrupt`]; errors: [`MpError`]. Sources: Intel MultiProcessor
//! Specification 1.4, chapter 4. The extended table (address maps) is skipped; default
//! configurations, which have no table, are an error.

mod read;

use alloc::string::String;
use alloc::vec::Vec;

use ssdyno_spec::pci::mp::{BUS_PCI, INTERRUPT_VECTORED};

use crate::Pin;

/// What the table says.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct MpTable {
    /// Revision of the specification: 1 is 1.1, 4 is 1.4.
    pub revision: u8,
    /// Manufacturer of the machine.
    pub oem: String,
    /// Product name of the machine.
    pub product: String,
    /// Physical address of the local APICs.
    pub local_apic_address: u32,
    /// The processors.
    pub processors: Vec<Processor>,
    /// The buses.
    pub buses: Vec<MpBus>,
    /// The I/O APICs.
    pub io_apics: Vec<IoApic>,
    /// Where interrupts of buses arrive.
    pub io_interrupts: Vec<MpInterrupt>,
    /// Where interrupts of local APICs come from.
    pub local_interrupts: Vec<MpInterrupt>,
    /// Size of the extended table, in bytes; it is not read.
    pub extended_bytes: u16,
}

/// A processor (MP clause 4.3.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Processor {
    /// Identifier of its local APIC.
    pub apic_id: u8,
    /// Version of its local APIC.
    pub apic_version: u8,
    /// Bit 0: usable; bit 1: it started the machine.
    pub flags: u8,
    /// Stepping, model and family.
    pub signature: u32,
    /// The features from CPUID.
    pub features: u32,
}

/// A bus (MP clause 4.3.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MpBus {
    /// Its identifier; for PCI the bus number.
    pub id: u8,
    /// Its kind, padded with blanks, or against the specification with zeros: `PCI   `, `ISA   `.
    pub kind: [u8; 6],
}

impl MpBus {
    /// True if it is a PCI bus. Some firmware fills the name up with zeros.
    pub fn is_pci(&self) -> bool {
        self.kind.map(|byte| if byte == 0 { b' ' } else { byte }) == BUS_PCI
    }
}

/// An I/O APIC (MP clause 4.3.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IoApic {
    /// Its identifier.
    pub id: u8,
    /// Its version.
    pub version: u8,
    /// Bit 0: usable.
    pub flags: u8,
    /// Its physical address.
    pub address: u32,
}

/// Where an interrupt of a bus arrives: at an I/O APIC or at local APICs (MP clauses 4.3.4, 4.3.5).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MpInterrupt {
    /// 0 vectored, 1 non-maskable, 2 system management, 3 external (the PIC).
    pub kind: u8,
    /// Bits 1:0 polarity, bits 3:2 trigger; 0 is as the bus has it.
    pub flags: u16,
    /// The bus it comes from.
    pub source_bus: u8,
    /// On PCI the pin in bits 1:0, 0 is INTA, and the device in bits 6:2 (MP clause D.3); else the
    /// line of the bus.
    pub source_irq: u8,
    /// The APIC; 255 is all of its kind.
    pub apic: u8,
    /// Its input.
    pub input: u8,
}

impl MpInterrupt {
    /// Device and pin, as an entry of a PCI bus packs them.
    pub fn pci_source(&self) -> (u8, Pin) {
        (self.source_irq >> 2 & 0x1f, Pin::from_zero_based(self.source_irq & 3))
    }
}

impl MpTable {
    /// The entry of pin `pin` of `device` on PCI bus `bus`.
    pub fn lookup(&self, bus: u8, device: u8, pin: Pin) -> Option<&MpInterrupt> {
        self.of_device(bus, device).find(|entry| entry.pci_source().1 == pin)
    }

    /// The entries of all pins of `device` on PCI bus `bus`. Buses without an entry of their own
    /// are taken for PCI, as firmware forgets them.
    pub fn of_device(&self, bus: u8, device: u8) -> impl Iterator<Item = &MpInterrupt> {
        let mut of_bus = self.buses.iter().filter(move |entry| entry.id == bus);
        // A bus that the table does not declare counts as PCI: the caller asks only for buses of
        // PCI functions. A bus that is declared as ISA uses the same numbers with another meaning.
        let is_pci = of_bus.clone().next().is_none() || of_bus.any(MpBus::is_pci);
        self.io_interrupts.iter().filter(move |entry| {
            is_pci
                && entry.kind == INTERRUPT_VECTORED
                && entry.source_bus == bus
                && entry.pci_source().0 == device
        })
    }
}

/// Why a table cannot be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum MpError {
    /// There is none.
    #[error("no MP table: no _MP_ structure with a valid checksum in {bytes} bytes of memory")]
    Absent {
        /// What was searched.
        bytes: usize,
    },
    /// Firmware says the machine is one of the standard ones.
    #[error("firmware names default configuration {0} instead of an MP table; it routes no PCI")]
    DefaultConfiguration(u8),
    /// The pointer leads out of the memory at hand.
    #[error("the MP table is at {address:#x}, which is not in the memory that was read")]
    Elsewhere {
        /// Physical address of the table.
        address: u64,
    },
    /// It does not start with PCMP.
    #[error("no MP table: it starts with {0:02x?}, not with \"PCMP\"")]
    Signature([u8; 4]),
    /// It is cut off.
    #[error("the MP table is cut off: it needs {needed} bytes, but only {bytes} are available")]
    Short {
        /// The length in its header.
        needed: usize,
        /// What there is.
        bytes: usize,
    },
    /// Its bytes do not add up to 0.
    #[error("the MP table is damaged: its bytes add up to {sum:#04x}, not to 0")]
    Checksum {
        /// Their sum, modulo 256.
        sum: u8,
    },
    /// An entry reaches over the end.
    #[error("entry {entry} of the MP table, at offset {offset}, extends beyond its end at {end}")]
    EntryCut {
        /// Number of the entry, from 0.
        entry: u16,
        /// Where it starts.
        offset: usize,
        /// Where the table ends.
        end: usize,
    },
    /// An entry is of an unknown kind, so its length is unknown.
    #[error("entry {entry} of the MP table, at offset {offset}, is of unknown type {kind}")]
    EntryType {
        /// Number of the entry, from 0.
        entry: u16,
        /// Where it starts.
        offset: usize,
        /// Its type.
        kind: u8,
    },
}
