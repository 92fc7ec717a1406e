//! vfio-user: the VFIO device interface as messages over a UNIX stream socket.
//!
//! Sources: the vfio-user protocol specification in QEMU's documentation
//! (`docs/interop/vfio-user.rst`), named by section below; regions, interrupts and their flags are those of
//! Linux' `include/uapi/linux/vfio.h`. Everything is in the byte order of the host, which is
//! little-endian on every machine that we run on; here it is written down as such.
//!
//! A message is a [`VfioUserHeader`], then what its command says. Descriptors of files travel as ancillary data
//! of its first byte.

use zerocopy::little_endian::{U16, U32, U64};

/// Commands, [`VfioUserHeader::command`] (section *Commands*).
pub mod command {
    /// Both sides send their version and their capabilities.
    pub const VERSION: u16 = 1;
    /// The client gives memory for DMA.
    pub const DMA_MAP: u16 = 2;
    /// The client takes memory for DMA back.
    pub const DMA_UNMAP: u16 = 3;
    /// How many regions and interrupts there are.
    pub const DEVICE_GET_INFO: u16 = 4;
    /// Size and kind of a region.
    pub const DEVICE_GET_REGION_INFO: u16 = 5;
    /// How many interrupts of a kind there are.
    pub const DEVICE_GET_IRQ_INFO: u16 = 7;
    /// Where interrupts go.
    pub const DEVICE_SET_IRQS: u16 = 8;
    /// Reads of a region.
    pub const REGION_READ: u16 = 9;
    /// Writes to a region.
    pub const REGION_WRITE: u16 = 10;
    /// The server reads memory that it cannot map.
    pub const DMA_READ: u16 = 11;
    /// The server writes memory that it cannot map.
    pub const DMA_WRITE: u16 = 12;
    /// The device is reset.
    pub const DEVICE_RESET: u16 = 13;
}

wire! {
    /// What every message begins with (section *Header*): 16 bytes.
    #[derive(Default)]
    pub struct VfioUserHeader {
        /// A reply carries that of its command.
        pub message_id: U16,
        /// One of [`command`].
        pub command: U16,
        /// Size of the message with this header, in bytes.
        pub message_bytes: U32,
        /// `FLAG_…`.
        pub flags: U32,
        /// A number of errno(3), in a reply with [`FLAG_ERROR`].
        pub error: U32,
    }
}

/// Size of a [`VfioUserHeader`], in bytes.
pub const HEADER_BYTES: usize = size_of::<VfioUserHeader>();
/// [`VfioUserHeader::flags`], bits 3:0: a reply; 0: a command.
pub const FLAG_REPLY: u32 = 1;
/// [`VfioUserHeader::flags`]: the bits that say which of the two it is.
pub const FLAG_TYPE: u32 = 0xf;
/// [`VfioUserHeader::flags`]: nobody waits for a reply, and none is sent.
pub const FLAG_NO_REPLY: u32 = 1 << 4;
/// [`VfioUserHeader::flags`]: a reply says what went wrong, and nothing else.
pub const FLAG_ERROR: u32 = 1 << 5;

wire! {
    /// Begins [`command::VERSION`] and its reply; JSON that ends with a zero byte follows.
    #[derive(Default)]
    pub struct VfioUserVersion {
        /// Both sides must have the same.
        pub major: U16,
        /// The lower one of both counts.
        pub minor: U16,
    }

    /// [`command::DMA_MAP`].
    #[derive(Default)]
    pub struct DmaMap {
        /// Size of this, in bytes.
        pub argument_bytes: U32,
        /// `DMA_…`.
        pub flags: U32,
        /// Where in the file it begins, in bytes.
        pub offset: U64,
        /// Where the device finds it.
        pub address: U64,
        /// Its size, in bytes.
        pub bytes: U64,
    }
}

/// [`DmaMap::flags`]: the device may read.
pub const DMA_READABLE: u32 = 1 << 0;
/// [`DmaMap::flags`]: the device may write.
pub const DMA_WRITABLE: u32 = 1 << 1;

wire! {
    /// [`command::DMA_UNMAP`] and its reply.
    #[derive(Default)]
    pub struct DmaUnmap {
        /// Size of this, in bytes.
        pub argument_bytes: U32,
        /// `UNMAP_…`.
        pub flags: U32,
        /// Where the device found it.
        pub address: U64,
        /// Its size, in bytes.
        pub bytes: U64,
    }
}

/// [`DmaUnmap::flags`]: which pages were written is wanted, too.
pub const UNMAP_DIRTY_BITMAP: u32 = 1 << 0;
/// [`DmaUnmap::flags`]: everything; address and size are 0.
pub const UNMAP_ALL: u32 = 1 << 1;

wire! {
    /// [`command::DEVICE_GET_INFO`] and its reply.
    #[derive(Default)]
    pub struct DeviceInfo {
        /// Size of this, in bytes.
        pub argument_bytes: U32,
        /// `DEVICE_…`.
        pub flags: U32,
        /// Regions.
        pub regions: U32,
        /// Kinds of interrupts.
        pub interrupts: U32,
    }
}

/// [`DeviceInfo::flags`]: it can be reset.
pub const DEVICE_RESETS: u32 = 1 << 0;
/// [`DeviceInfo::flags`]: a PCI function.
pub const DEVICE_PCI: u32 = 1 << 1;

wire! {
    /// [`command::DEVICE_GET_REGION_INFO`] and its reply; capabilities may follow.
    #[derive(Default)]
    pub struct RegionInfo {
        /// Size of this and of the capabilities, in bytes.
        pub argument_bytes: U32,
        /// `REGION_…`.
        pub flags: U32,
        /// Which one: 0 to 5 a base address register, or [`REGION_CONFIG`].
        pub index: U32,
        /// Where the capabilities begin, from the start of this; 0: there are none.
        pub capabilities: U32,
        /// Its size, in bytes; 0: there is none.
        pub bytes: U64,
        /// Where it begins in the file that came with it.
        pub offset: U64,
    }
}

/// [`RegionInfo::flags`]: may be read.
pub const REGION_READABLE: u32 = 1 << 0;
/// [`RegionInfo::flags`]: may be written.
pub const REGION_WRITABLE: u32 = 1 << 1;
/// Base address registers are regions 0 to 5.
pub const REGION_BARS: u32 = 6;
/// Configuration space.
pub const REGION_CONFIG: u32 = 7;
/// Regions of a PCI function, with the expansion ROM (6) and VGA (8).
pub const REGIONS: u32 = 9;

wire! {
    /// [`command::DEVICE_GET_IRQ_INFO`] and its reply.
    #[derive(Default)]
    pub struct InterruptInfo {
        /// Size of this, in bytes.
        pub argument_bytes: U32,
        /// `INTERRUPT_…`.
        pub flags: U32,
        /// Which kind: [`PIN`], [`MSI`], [`MSIX`].
        pub index: U32,
        /// How many.
        pub count: U32,
    }
}

/// The pin.
pub const PIN: u32 = 0;
/// Message signalled interrupts.
pub const MSI: u32 = 1;
/// Message signalled interrupts, extended.
pub const MSIX: u32 = 2;
/// Kinds of interrupts of a PCI function, with errors (3) and requests (4).
pub const INTERRUPTS: u32 = 5;
/// [`InterruptInfo::flags`]: told by an eventfd.
pub const INTERRUPT_EVENTFD: u32 = 1 << 0;
/// [`InterruptInfo::flags`]: can be masked.
pub const INTERRUPT_MASKABLE: u32 = 1 << 1;
/// [`InterruptInfo::flags`]: masks itself when it comes.
pub const INTERRUPT_AUTOMASKED: u32 = 1 << 2;

wire! {
    /// [`command::DEVICE_SET_IRQS`]; bytes of data may follow, and eventfds come with it.
    #[derive(Default)]
    pub struct SetInterrupts {
        /// Size of this and of the data, in bytes.
        pub argument_bytes: U32,
        /// One of `SET_DATA_…` and one of `SET_ACTION_…`.
        pub flags: U32,
        /// Which kind.
        pub index: U32,
        /// The first.
        pub start: U32,
        /// How many.
        pub count: U32,
    }
}

/// [`SetInterrupts::flags`]: it is for all of them.
pub const SET_DATA_NONE: u32 = 1 << 0;
/// [`SetInterrupts::flags`]: a byte for each says whether it is meant.
pub const SET_DATA_BOOL: u32 = 1 << 1;
/// [`SetInterrupts::flags`]: an eventfd for each.
pub const SET_DATA_EVENTFD: u32 = 1 << 2;
/// [`SetInterrupts::flags`]: bits that say what the data is.
pub const SET_DATA: u32 = 7;
/// [`SetInterrupts::flags`]: no more of it.
pub const SET_ACTION_MASK: u32 = 1 << 3;
/// [`SetInterrupts::flags`]: again.
pub const SET_ACTION_UNMASK: u32 = 1 << 4;
/// [`SetInterrupts::flags`]: with eventfds, where it goes; else it is to come now. With a count of 0
/// all of the kind are off.
pub const SET_ACTION_TRIGGER: u32 = 1 << 5;
/// [`SetInterrupts::flags`]: bits that say what is to be done.
pub const SET_ACTION: u32 = 7 << 3;

wire! {
    /// Begins [`command::REGION_READ`], [`command::REGION_WRITE`] and their replies; data follows the reply
    /// of a read and the command of a write.
    #[derive(Default)]
    pub struct RegionAccess {
        /// Where in the region, in bytes.
        pub offset: U64,
        /// Which one.
        pub region: U32,
        /// Bytes of data.
        pub count: U32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sizes as the specification's tables give them.
    #[test]
    fn sizes_are_those_of_the_specification() {
        let sizes = [
            (size_of::<VfioUserHeader>(), 16),
            (size_of::<VfioUserVersion>(), 4),
            (size_of::<DmaMap>(), 32),
            (size_of::<DmaUnmap>(), 24),
            (size_of::<DeviceInfo>(), 16),
            (size_of::<RegionInfo>(), 32),
            (size_of::<InterruptInfo>(), 16),
            (size_of::<SetInterrupts>(), 20),
            (size_of::<RegionAccess>(), 16),
        ];
        for (at, (is, should)) in sizes.into_iter().enumerate() {
            assert_eq!(is, should, "number {at}");
        }
    }
}
