//! Finding and reading the table.

use alloc::borrow::ToOwned;
use alloc::string::String;

use ssdyno_spec::pci::mp::{
    ENTRY_BUS, ENTRY_BYTES, ENTRY_IO_APIC, ENTRY_IO_INTERRUPT, ENTRY_LOCAL_INTERRUPT,
    ENTRY_PROCESSOR, FLOATING_BYTES, FLOATING_FEATURE_1, FLOATING_LENGTH, FLOATING_SIGNATURE,
    FLOATING_TABLE, HEADER_BYTES, HEADER_ENTRIES, HEADER_EXTENDED_LENGTH, HEADER_LENGTH,
    HEADER_LOCAL_APIC, HEADER_OEM, HEADER_PRODUCT, HEADER_REVISION, PROCESSOR_BYTES,
    TABLE_SIGNATURE,
};

use super::{IoApic, MpBus, MpError, MpInterrupt, MpTable, Processor};

impl MpTable {
    /// Finds the table in `memory`, which starts at physical address `base`: in the first KiB of the extended BIOS data
    /// area, the last KiB of base memory, or from 0xf0000 to 0xfffff (MP clause 4). The caller passes the memory to
    /// search.
    ///
    /// # Errors
    /// There is no table, or it is elsewhere or damaged.
    pub fn find(memory: &[u8], base: u64) -> Result<MpTable, MpError> {
        let floating = floating_pointer(memory).ok_or(MpError::Absent { bytes: memory.len() })?;
        // A default configuration describes machines by a number instead of a table. It contains no
        // PCI entries of its own, so a routed interrupt cannot be found in it.
        if floating[FLOATING_FEATURE_1] != 0 {
            return Err(MpError::DefaultConfiguration(floating[FLOATING_FEATURE_1]));
        }
        let address = u64::from(u32_at(floating, FLOATING_TABLE));
        let table = address.checked_sub(base).and_then(|offset| usize::try_from(offset).ok());
        let table = table.and_then(|offset| memory.get(offset..));
        match table {
            Some(table) if !table.is_empty() && address != 0 => MpTable::parse(table),
            _ => Err(MpError::Elsewhere { address }),
        }
    }

    /// Where the floating pointer in `memory` says the table is; `None` where there is no sound
    /// floating pointer, or it names a default configuration instead.
    pub fn address(memory: &[u8]) -> Option<u64> {
        let floating = floating_pointer(memory).filter(|f| f[FLOATING_FEATURE_1] == 0);
        floating.map(|floating| u64::from(u32_at(floating, FLOATING_TABLE)))
    }

    /// Reads the table that `table` starts with; what follows it is not looked at.
    ///
    /// # Errors
    /// It is not a table, cut off or damaged.
    pub fn parse(table: &[u8]) -> Result<MpTable, MpError> {
        let short = |needed| MpError::Short { needed, bytes: table.len() };
        let header = table.get(..HEADER_BYTES).ok_or(short(HEADER_BYTES))?;
        if !header.starts_with(&TABLE_SIGNATURE) {
            return Err(MpError::Signature(bytes_at(header, 0)));
        }
        // The length comes from firmware and is not trusted: the slice is checked before use, and
        // the checksum covers exactly this length.
        let end = usize::from(u16_at(header, HEADER_LENGTH));
        let base = table.get(..end).ok_or(short(end))?;
        if end < HEADER_BYTES {
            return Err(MpError::Short { needed: HEADER_BYTES, bytes: end });
        }
        let sum = sum(base);
        if sum != 0 {
            return Err(MpError::Checksum { sum });
        }
        let mut read = MpTable {
            revision: header[HEADER_REVISION],
            oem: text(&header[HEADER_OEM..HEADER_PRODUCT]),
            product: text(&header[HEADER_PRODUCT..HEADER_PRODUCT + 12]),
            local_apic_address: u32_at(header, HEADER_LOCAL_APIC),
            extended_bytes: u16_at(header, HEADER_EXTENDED_LENGTH),
            ..MpTable::default()
        };
        read.entries(base, u16_at(header, HEADER_ENTRIES))?;
        Ok(read)
    }

    fn entries(&mut self, base: &[u8], count: u16) -> Result<(), MpError> {
        let end = base.len();
        let mut offset = HEADER_BYTES;
        for entry in 0..count {
            let cut = MpError::EntryCut { entry, offset, end };
            let kind = *base.get(offset).ok_or(cut)?;
            let bytes = match kind {
                ENTRY_PROCESSOR => PROCESSOR_BYTES,
                ENTRY_BUS | ENTRY_IO_APIC | ENTRY_IO_INTERRUPT | ENTRY_LOCAL_INTERRUPT => {
                    ENTRY_BYTES
                }
                // The length of an unknown entry is unknown too, so the entries behind it cannot be
                // found. Skipping a guessed length would read interrupts from the middle of an
                // entry.
                kind => return Err(MpError::EntryType { entry, offset, kind }),
            };
            self.entry(kind, base.get(offset..offset + bytes).ok_or(cut)?);
            offset += bytes;
        }
        Ok(())
    }

    fn entry(&mut self, kind: u8, e: &[u8]) {
        match kind {
            ENTRY_PROCESSOR => self.processors.push(Processor {
                apic_id: e[1],
                apic_version: e[2],
                flags: e[3],
                signature: u32_at(e, 4),
                features: u32_at(e, 8),
            }),
            ENTRY_BUS => self.buses.push(MpBus { id: e[1], kind: bytes_at(e, 2) }),
            ENTRY_IO_APIC => self.io_apics.push(IoApic {
                id: e[1],
                version: e[2],
                flags: e[3],
                address: u32_at(e, 4),
            }),
            ENTRY_IO_INTERRUPT => self.io_interrupts.push(interrupt(e)),
            _ => self.local_interrupts.push(interrupt(e)),
        }
    }
}

fn interrupt(e: &[u8]) -> MpInterrupt {
    MpInterrupt {
        kind: e[1],
        flags: u16_at(e, 2),
        source_bus: e[4],
        source_irq: e[5],
        apic: e[6],
        input: e[7],
    }
}

/// The first sound floating pointer on a 16-byte boundary (MP clause 4.1).
fn floating_pointer(memory: &[u8]) -> Option<&[u8]> {
    memory.chunks(16).enumerate().find_map(|(index, chunk)| {
        if !chunk.starts_with(&FLOATING_SIGNATURE) || chunk.len() < FLOATING_BYTES {
            return None;
        }
        let bytes = 16 * usize::from(chunk[FLOATING_LENGTH]);
        let whole = memory.get(16 * index..16 * index + bytes)?;
        // The signature _MP_ can occur in other data. The checksum rejects these places and the
        // search continues with the next 16-byte boundary, as the specification prescribes.
        (bytes != 0 && sum(whole) == 0).then_some(whole)
    })
}

/// The sum of all bytes, modulo 256.
fn sum(bytes: &[u8]) -> u8 {
    bytes.iter().fold(0, |sum, byte| sum.wrapping_add(*byte))
}

/// `N` bytes; zeros where they are not there.
fn bytes_at<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes.get(at..at + N).and_then(|part| part.try_into().ok()).unwrap_or([0; N])
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(bytes_at(bytes, at))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes_at(bytes, at))
}

/// Text padded with blanks or zeros; what cannot be printed becomes a dot.
fn text(bytes: &[u8]) -> String {
    let printable = |byte: &u8| match byte {
        b' '..=b'~' => char::from(*byte),
        0 => ' ',
        _ => '.',
    };
    bytes.iter().map(printable).collect::<String>().trim_end().to_owned()
}
