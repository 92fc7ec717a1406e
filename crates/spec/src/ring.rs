//! The descriptor-ring card: registers and descriptors.
//!
//! The paper (S0) names what descriptors and registers hold, not where; the layout here is ours.
//! Everything is little-endian. Clauses in brackets are the lines of the paper's requirements.
//!
//! *The ring* lies in host memory: a power of two of [`Descriptor`]s, used in a circle. Descriptor
//! number n (numbers count on forever, modulo 2^32) stands at index n modulo the size.
//!
//! *A block* is a run of descriptors, given to the card by [`NEXT_OFFSET`], then [`NEXT_SIZE`]. One
//! block at a time is with the card (S0-14). Until a descriptor comes back as a response, the host
//! does not touch it.
//!
//! *Prefetch* (S0-26, the paper's future work; the protocol is ours). The host owes: a
//! descriptor belongs to the card from the moment its owner bit is written, block or not, and that
//! bit is written last. With [`PREFETCH`] at n > 0 the card reads, when it begins the last command of
//! a block, up to n descriptors behind the block; those that are commands, belong to the card and
//! carry the number that is due are *held* and started at once. The next block begins where the last
//! one ended; its first descriptors are the held ones, which the card does not fetch again. Nothing
//! is returned before its block was given. A block smaller than what is held is
//! [`RingFault::BadBlock`].

use zerocopy::little_endian::{U32, U64};
use zerocopy::{IntoBytes, TryFromBytes};

/// Vendor identifier in configuration space: Xilinx, whose board the paper's card is.
pub const VENDOR: u16 = 0x10ee;
/// Device identifier in configuration space: "RD" for ring, descriptors; ours.
pub const DEVICE: u16 = 0x5244;
/// Class code: mass storage, other.
pub const CLASS: u32 = 0x01_80_00;
/// Size of BAR 0, which holds all registers, in bytes.
pub const BAR_BYTES: u32 = 4096;
/// What a command transfers, in bytes: one page (S0-1).
pub const PAGE_BYTES: u32 = 4096;
/// Unit of [`Descriptor::first_sector`] and [`Descriptor::sectors`], in bytes.
pub const SECTOR_BYTES: u32 = 512;

/// Reads [`IDENTIFIER_VALUE`]. Read-only, as all up to [`FEATURES`] (S0-10).
pub const IDENTIFIER: u32 = 0x00;
/// "RING" in ASCII.
pub const IDENTIFIER_VALUE: u32 = u32::from_le_bytes(*b"RING");
/// Version of this layout: 1.
pub const VERSION: u32 = 0x04;
/// Storage capacity in pages of 4 KiB, low half.
pub const CAPACITY_LOW: u32 = 0x08;
/// Storage capacity in pages of 4 KiB, high half.
pub const CAPACITY_HIGH: u32 = 0x0c;
/// What stores the data: a [`Technology`].
pub const TECHNOLOGY: u32 = 0x10;
/// Channels of the medium that work in parallel.
pub const CHANNELS: u32 = 0x14;
/// Time in which the medium reads a page, in ns.
pub const READ_TIME: u32 = 0x18;
/// Time in which the medium writes a page, in ns.
pub const WRITE_TIME: u32 = 0x1c;
/// Most descriptors in a block.
pub const MAX_BLOCK: u32 = 0x20;
/// What the card can do: `FEATURE_…`.
pub const FEATURES: u32 = 0x24;
/// Feature: [`PREFETCH`] may be above 0; bits 15:8 of [`FEATURES`] hold the most.
pub const FEATURE_PREFETCH: u32 = 1 << 0;
/// Feature: [`INTERRUPT_BATCH`] and [`INTERRUPT_TIMEOUT`] are obeyed, urgent descriptors too.
pub const FEATURE_CALIBRATED: u32 = 1 << 1;

/// Bit 0: on. Writing 0 resets the card: before the next read of a register is answered, it has
/// dropped every block and stopped touching host memory.
pub const CONTROL: u32 = 0x40;
/// [`CONTROL`]: on.
pub const CONTROL_ENABLE: u32 = 1 << 0;
/// State: `STATUS_…`. All ones: the card is gone.
pub const STATUS: u32 = 0x44;
/// [`STATUS`]: on.
pub const STATUS_ENABLED: u32 = 1 << 0;
/// [`STATUS`]: a block is with the card.
pub const STATUS_BUSY: u32 = 1 << 1;
/// [`STATUS`]: the host broke the protocol, see bits 15:8 for the [`RingFault`]; the first one stays
/// until the card is reset.
pub const STATUS_FAULT: u32 = 1 << 2;
/// Address of the ring, low half: a multiple of [`DESCRIPTOR_BYTES`]. This and the rest up to [`PREFETCH`] are read when the card is
/// switched on.
pub const RING_LOW: u32 = 0x48;
/// Address of the ring, high half.
pub const RING_HIGH: u32 = 0x4c;
/// Descriptors in the ring: a power of two, 2 to 65536 (S0-9).
pub const RING_SIZE: u32 = 0x50;
/// Bits 1:0: a [`ResponseMode`]; bits 31:16: descriptors in a subset, at least 1 in that mode.
pub const RESPONSE: u32 = 0x54;
/// Descriptors held of the next block, at most; 0: none.
pub const PREFETCH: u32 = 0x58;
/// Returned descriptors to an interrupt. 0: only a block's end interrupts. A block's end and an
/// urgent descriptor interrupt always.
pub const INTERRUPT_BATCH: u32 = 0x5c;
/// Longest time from a return to its interrupt where the batch is not full, in ns; 0: forever.
pub const INTERRUPT_TIMEOUT: u32 = 0x60;
/// Bit 0: no interrupt is sent; one that falls due is sent when the bit is cleared.
pub const INTERRUPT_MASK: u32 = 0x64;
/// Written: releases the interrupt pin. Not needed with message signalled interrupts.
pub const INTERRUPT_ACKNOWLEDGE: u32 = 0x68;
/// Index of the first descriptor of the next block (S0-13).
pub const NEXT_OFFSET: u32 = 0x80;
/// Descriptors of the next block, 1 to [`MAX_BLOCK`]: writing it gives the block to the card (S0-13).
pub const NEXT_SIZE: u32 = 0x84;

/// The technology of the storage.
#[derive(Clone, Copy, PartialEq, Eq, Debug, TryFromBytes)]
#[repr(u32)]
pub enum Technology {
    /// DRAM.
    Dram = 1,
    /// NAND flash.
    Flash = 2,
    /// Phase-change memory.
    Pcm = 3,
}

/// How descriptors come back.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, TryFromBytes)]
#[repr(u32)]
pub enum ResponseMode {
    /// A: the complete block at once (S0-16).
    #[default]
    Block = 0,
    /// B: each descriptor when its command completes (S0-17).
    Each = 1,
    /// C: in subsets (S0-18).
    Subsets = 2,
}

impl ResponseMode {
    /// The mode in bits 1:0 of [`RESPONSE`]; `None`: reserved.
    pub fn from_bits(bits: u32) -> Option<ResponseMode> {
        ResponseMode::try_read_from_bytes((bits & 3).as_bytes()).ok()
    }
}

/// How the host broke the protocol: bits 15:8 of [`STATUS`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum RingFault {
    /// Switched on with a ring, response mode or prefetch that cannot be.
    BadSetup = 1,
    /// A block was given while one is with the card; it was ignored (S0-14).
    BlockOutstanding = 2,
    /// A block of no descriptors, of too many, outside the ring, or smaller than what is held.
    BadBlock = 3,
    /// The host changed a descriptor that was with the card (S0-14).
    Ownership = 4,
    /// The ring is not memory that the card may touch.
    RingUnreachable = 5,
}

/// What a command does: bits 3:2 of [`Descriptor::control`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum RingCommandKind {
    /// One page, or sectors of it, to the host.
    Read = 0,
    /// One page, or sectors of it, from the host.
    Write = 1,
    /// The pages no longer hold data; no transfer.
    Trim = 2,
    /// Everything completed before is durable when this completes; no transfer.
    Flush = 3,
}

/// [`Descriptor::control`]: belongs to the card (S0-11). Written last.
pub const OWNER_DEVICE: u32 = 1 << 0;
/// [`Descriptor::control`]: a response; else a command.
pub const RESPONSE_FLAG: u32 = 1 << 1;
/// [`Descriptor::control`]: interrupts as soon as it is returned.
pub const URGENT: u32 = 1 << 8;

/// [`Descriptor::status`]: done.
pub const STATUS_SUCCESS: u8 = 0;
/// [`Descriptor::status`]: not done, see [`Descriptor::error`].
pub const STATUS_ERROR: u8 = 1;

/// Why a command was not done: [`Descriptor::error`], valid in a response with [`STATUS_ERROR`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, TryFromBytes)]
#[repr(u8)]
pub enum ErrorKind {
    /// The range ends behind the last page, is empty or not on a page.
    OutOfRange = 1,
    /// The medium could not give or take the data.
    Medium = 2,
    /// The data's address is not memory that the card may touch.
    HostMemory = 3,
    /// Not a command that belongs to the card, or not the one that was due.
    NotACommand = 4,
    /// The host changed the descriptor while it was with the card.
    Ownership = 5,
    /// The medium takes no more writes: end of life.
    ReadOnly = 6,
}

impl ErrorKind {
    /// From [`Descriptor::error`].
    pub fn from_bits(bits: u8) -> Option<ErrorKind> {
        ErrorKind::try_read_from_bytes(&[bits]).ok()
    }
}

wire! {
    /// A descriptor: 32 bytes (S0-11; the size is assumed, S0-52).
    #[derive(Default)]
    pub struct Descriptor = (DESCRIPTOR_BYTES as usize) {
        /// [`OWNER_DEVICE`], [`RESPONSE_FLAG`], [`RingCommandKind`] in bits 3:2, [`URGENT`].
        pub control: U32,
        /// [`STATUS_SUCCESS`] or [`STATUS_ERROR`]; valid in a response.
        pub status: u8,
        /// An [`ErrorKind`]; valid in a response with [`STATUS_ERROR`].
        pub error: u8,
        /// First sector of the page that the command means, 0 to 7. The whole page crosses the link,
        /// padded (S0-3); sectors outside the range are neither stored nor valid.
        pub first_sector: u8,
        /// Sectors that the command means, 1 to 8; 0 in trims and flushes.
        pub sectors: u8,
        /// Address of the page in host memory; 0 in trims and flushes.
        pub host_address: U64,
        /// Offset of the page on the medium, in bytes; a multiple of [`PAGE_BYTES`].
        pub device_offset: U64,
        /// Pages: 1 in reads and writes, any number in trims, 0 in flushes.
        pub pages: U32,
        /// Number of the descriptor: how many were written before it, modulo 2^32. A response repeats it.
        pub number: U32,
    }
}

/// Size of a descriptor, in bytes.
pub const DESCRIPTOR_BYTES: u32 = 32;

impl Descriptor {
    /// True if it belongs to the card.
    pub const fn is_with_device(&self) -> bool {
        self.control.get() & OWNER_DEVICE != 0
    }
    /// True if it is a command; else a response.
    pub const fn is_command(&self) -> bool {
        self.control.get() & RESPONSE_FLAG == 0
    }
    /// What it does.
    pub const fn kind(&self) -> RingCommandKind {
        match self.control.get() >> 2 & 3 {
            0 => RingCommandKind::Read,
            1 => RingCommandKind::Write,
            2 => RingCommandKind::Trim,
            _ => RingCommandKind::Flush,
        }
    }
    /// True if its return interrupts at once.
    pub const fn is_urgent(&self) -> bool {
        self.control.get() & URGENT != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_stand_where_the_layout_says() {
        let descriptor = Descriptor {
            control: U32::new(OWNER_DEVICE | (RingCommandKind::Write as u32) << 2 | URGENT),
            status: 1,
            error: 2,
            first_sector: 3,
            sectors: 4,
            host_address: U64::new(0x1122_3344_5566_7000),
            device_offset: U64::new(0x8000),
            pages: U32::new(1),
            number: U32::new(0xfeed_beef),
        };
        let bytes = [
            0x05, 0x01, 0, 0, 1, 2, 3, 4, 0x00, 0x70, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 0, 0x80,
            0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0xef, 0xbe, 0xed, 0xfe,
        ];
        assert_eq!(descriptor.as_bytes(), bytes);
        assert_eq!(descriptor.kind(), RingCommandKind::Write);
        assert!(descriptor.is_with_device() && descriptor.is_command() && descriptor.is_urgent());
    }

    #[test]
    fn codes_survive_the_way_there_and_back() {
        for bits in 0..=255 {
            assert!(ErrorKind::from_bits(bits).is_none_or(|error| error as u8 == bits));
        }
        for bits in 0..4 {
            assert!(ResponseMode::from_bits(bits).is_none_or(|mode| mode as u32 == bits));
        }
    }
}
