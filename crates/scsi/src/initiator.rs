//! The other side: block requests to CDBs, as a storage stack above the driver makes them (S1-47).

use ssdyno_spec::scsi::{UnmapDescriptor, UnmapHeader, opcode};
use zerocopy::IntoBytes;

/// A command descriptor block of up to 16 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cdb {
    bytes: [u8; 16],
    length: u8,
}

impl Cdb {
    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

/// A CDB of 16 bytes with a range of blocks.
fn ranged(opcode: u8, flags: u8, lba: u64, blocks: u32) -> Cdb {
    let mut bytes = [0; 16];
    bytes[0] = opcode;
    bytes[1] = flags;
    bytes[2..10].copy_from_slice(&lba.to_be_bytes());
    bytes[10..14].copy_from_slice(&blocks.to_be_bytes());
    Cdb { bytes, length: 16 }
}

/// Builders of the CDBs that a block stack needs.
pub mod cdb {
    use super::{Cdb, opcode, ranged};

    /// READ (16) (SBC-3, table 61).
    pub fn read16(lba: u64, blocks: u32) -> Cdb {
        ranged(opcode::READ_16, 0, lba, blocks)
    }
    /// WRITE (16) (SBC-3, table 103); `force` sets FUA.
    pub fn write16(lba: u64, blocks: u32, force: bool) -> Cdb {
        ranged(opcode::WRITE_16, u8::from(force) << 3, lba, blocks)
    }
    /// SYNCHRONIZE CACHE (16) of everything (SBC-3, table 87).
    pub fn synchronize_cache16() -> Cdb {
        ranged(opcode::SYNCHRONIZE_CACHE_16, 0, 0, 0)
    }
    /// UNMAP with a parameter list of `bytes` (SBC-3, table 89).
    pub fn unmap(bytes: u16) -> Cdb {
        let mut cdb = Cdb { bytes: [0; 16], length: 10 };
        cdb.bytes[0] = opcode::UNMAP;
        cdb.bytes[7..9].copy_from_slice(&bytes.to_be_bytes());
        cdb
    }
}

/// Parameter list of an UNMAP of one range (SBC-3, tables 90 and 91).
pub fn unmap_list(lba: u64, blocks: u32) -> [u8; 24] {
    let header =
        UnmapHeader { data_length: 22.into(), descriptors_length: 16.into(), reserved: [0; 4] };
    let descriptor = UnmapDescriptor { lba: lba.into(), blocks: blocks.into(), reserved: [0; 4] };
    let mut list = [0; 24];
    list[..8].copy_from_slice(header.as_bytes());
    list[8..].copy_from_slice(descriptor.as_bytes());
    list
}

/// The SCSI layer's work for the commands that pass through it: counts, no times (S1-51). A host
/// model multiplies them with the cost of each.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Indirections {
    /// SCSI commands.
    pub cdbs: u64,
    /// NVMe commands that completed for them.
    pub nvme_commands: u64,
    /// Steps in the middle of commands: comparing, combining, making an answer of what came.
    pub steps: u64,
    /// Bytes that the translator itself looked at or moved.
    pub bytes_copied: u64,
    /// Commands with an operation code that is not known: the thesis logs each as critical.
    pub unknown_opcodes: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SBC-3, tables 61, 87, 89 and 103.
    #[test]
    fn builders() {
        assert_eq!(
            cdb::read16(0x0102_0304_0506_0708, 0x10).as_bytes(),
            [0x88, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0x10, 0, 0]
        );
        assert_eq!(
            cdb::write16(8, 0x0a0b_0c0d, true).as_bytes(),
            [0x8a, 8, 0, 0, 0, 0, 0, 0, 0, 8, 0x0a, 0x0b, 0x0c, 0x0d, 0, 0]
        );
        assert_eq!(cdb::synchronize_cache16().as_bytes()[..2], [0x91, 0]);
        assert_eq!(cdb::unmap(24).as_bytes(), [0x42, 0, 0, 0, 0, 0, 0, 0, 24, 0]);
        assert_eq!(
            unmap_list(0x1122, 0x3344),
            [0, 22, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x11, 0x22, 0, 0, 0x33, 0x44, 0, 0, 0, 0]
        );
    }
}
