//! The facts about its device that the device server needs.

use crate::facts::{ControllerFacts, DeallocatedReads, NamespaceFacts, Optional, padded};

/// Why a device cannot be shown as a logical unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum DiskFactsError {
    /// SCSI counts blocks of at least 512 bytes, and the size must be a power of two.
    #[error("a device with blocks of {block_bytes} bytes: 512 to 65536, powers of two, are served")]
    BlockSize {
        /// Its block.
        block_bytes: u32,
    },
    /// A device of no blocks.
    #[error("a device without blocks; give it a capacity")]
    Empty,
    /// A physical block that is no power of two.
    #[error("a physical block of {bytes} bytes: it must be a power of two, such as 4096")]
    PhysicalBlock {
        /// The requested value.
        bytes: u32,
    },
}

/// A direct access block device (SBC-3): one logical unit, LUN 0.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DiskFacts {
    /// T10 vendor identification, ASCII padded with blanks.
    pub vendor: [u8; 8],
    /// Product identification; the first 16 characters are shown.
    pub product: [u8; 40],
    /// Unit serial number, ASCII padded with blanks.
    pub serial: [u8; 20],
    /// Product revision; the last four characters are shown.
    pub revision: [u8; 8],
    /// NAA identifier of the logical unit (SPC-4, 7.8.6.6); zero: none.
    pub naa: [u8; 8],
    /// Its size, in logical blocks.
    pub blocks: u64,
    /// Bytes of a logical block, a power of two.
    pub block_bytes: u32,
    /// Bytes of a physical block, a power of two; less than a logical one: as that.
    pub physical_block_bytes: u32,
    /// Turns of the medium per minute; 0: not known.
    pub rotation_rpm: u16,
    /// No medium turns.
    pub solid_state: bool,
    /// What was written can be lost with the power until it is flushed: WCE can be set.
    pub volatile_write_cache: bool,
    /// It takes unmapped ranges, which read as zeroes afterwards: logical block provisioning.
    pub unmaps: bool,
    /// Nothing can be written.
    pub write_protected: bool,
    /// Longest block command, in bytes; 0: not limited.
    pub transfer_bytes_max: u32,
    /// Blocks that are best moved together, as the chunk of an array; 0: not known.
    pub granularity_blocks: u16,
    /// Blocks of the best transfer, as the stripe of an array; 0: not known.
    pub optimal_blocks: u32,
}

impl DiskFacts {
    /// A device of which nothing is known but its names and size.
    pub fn plain(product: &str, serial: &str, blocks: u64, block_bytes: u32) -> DiskFacts {
        DiskFacts {
            vendor: padded("SSDyno"),
            product: padded(product),
            serial: padded(serial),
            revision: padded("1"),
            naa: [0; 8],
            blocks,
            block_bytes,
            physical_block_bytes: 0,
            rotation_rpm: 0,
            solid_state: false,
            volatile_write_cache: false,
            unmaps: false,
            write_protected: false,
            transfer_bytes_max: 0,
            granularity_blocks: 0,
            optimal_blocks: 0,
        }
    }

    pub(crate) fn check(&self) -> Result<(), DiskFactsError> {
        let block_bytes = self.block_bytes;
        let bytes = self.physical_block_bytes;
        if !block_bytes.is_power_of_two() || !(512..=65536).contains(&block_bytes) {
            return Err(DiskFactsError::BlockSize { block_bytes });
        }
        if bytes != 0 && !bytes.is_power_of_two() {
            return Err(DiskFactsError::PhysicalBlock { bytes });
        }
        if self.blocks == 0 { Err(DiskFactsError::Empty) } else { Ok(()) }
    }

    /// As the checks that all targets share want it.
    pub(crate) fn unit(&self) -> NamespaceFacts {
        NamespaceFacts {
            deallocated_reads: DeallocatedReads::Zeroes,
            write_zeroes_deallocates: true,
            write_protected: self.write_protected,
            ..NamespaceFacts::plain(1, self.blocks, self.block_bytes)
        }
    }

    /// The capabilities of the device, and its names.
    pub(crate) fn controller(&self) -> ControllerFacts {
        ControllerFacts {
            serial: self.serial,
            model: self.product,
            firmware: self.revision,
            // Lengths of block commands have 32 bits.
            transfer_bytes_max: match self.transfer_bytes_max {
                0 => 1 << 31,
                most => most.min(1 << 31),
            },
            volatile_write_cache: self.volatile_write_cache,
            optional: Optional { verify: true, write_zeroes: self.unmaps, ..Optional::default() },
            ..ControllerFacts::named("", "", "")
        }
    }
}
