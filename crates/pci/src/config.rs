//! Access to configuration space: of all functions of a machine, and of one.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use ssdyno_spec::pci::{COMMAND, EXTENDED_CONFIG_BYTES};

use crate::{PciAddress, PciFunction};

/// The configuration space of a machine.
///
/// Every address may be asked for. The implementation owes: where no function answers, a read gives
/// ones and a write is lost (PCI clause 6.1), and nothing else happens. The caller owes: offsets are
/// multiples of 4 and below [`bytes`](ConfigAccess::bytes).
pub trait ConfigAccess {
    /// The dword at `offset` of the function at `address`.
    fn read(&mut self, address: PciAddress, offset: u16) -> u32;
    /// Sets the dword at `offset` of the function at `address`.
    fn write(&mut self, address: PciAddress, offset: u16, value: u32);
    /// How much of the space can be reached: 4096, 256 by the ports of conventional PCI, less where
    /// a saved image ends early or the reader has no right to more.
    fn bytes(&mut self, address: PciAddress) -> u16;
    /// The functions to look at, where that is known beforehand, as from a saved image; `None` where
    /// one must scan.
    fn known(&self) -> Option<Vec<PciAddress>> {
        None
    }
}

/// The configuration space of one function.
pub trait ConfigSpace {
    /// The dword at `offset`, a multiple of 4.
    fn read32(&mut self, offset: u16) -> u32;
    /// Sets the dword at `offset`, a multiple of 4.
    fn write32(&mut self, offset: u16, value: u32);
    /// See [`ConfigAccess::bytes`].
    fn bytes(&mut self) -> u16;

    /// The 16 bits at `offset`, a multiple of 2.
    fn read16(&mut self, offset: u16) -> u16 {
        (self.read32(offset & !3) >> (8 * (offset & 2))) as u16
    }
    /// The byte at `offset`.
    fn read8(&mut self, offset: u16) -> u8 {
        (self.read32(offset & !3) >> (8 * (offset & 3))) as u8
    }
    /// Clears and sets bits of the command register. The status register beside it is left as it
    /// is: its bits are cleared by writing ones (PCI clause 6.2.3), so zeros are written.
    fn change_command(&mut self, clear: u16, set: u16) {
        // The dword also contains the Status register, whose error bits are cleared by a one.
        // Zeroes are written there, so that a change of the command register loses no recorded
        // error.
        let command = self.read16(COMMAND) & !clear | set;
        self.write32(COMMAND, u32::from(command));
    }
}

/// One function of a machine.
pub struct At<'a> {
    access: &'a mut dyn ConfigAccess,
    address: PciAddress,
}

impl<'a> At<'a> {
    /// The function at `address`.
    pub fn new(access: &'a mut dyn ConfigAccess, address: PciAddress) -> At<'a> {
        At { access, address }
    }
}

impl ConfigSpace for At<'_> {
    fn read32(&mut self, offset: u16) -> u32 {
        self.access.read(self.address, offset)
    }
    fn write32(&mut self, offset: u16, value: u32) {
        self.access.write(self.address, offset, value);
    }
    fn bytes(&mut self) -> u16 {
        self.access.bytes(self.address)
    }
}

/// The configuration space of a function that a driver holds.
pub struct OfFunction<'a>(pub &'a mut dyn PciFunction);

impl ConfigSpace for OfFunction<'_> {
    fn read32(&mut self, offset: u16) -> u32 {
        self.0.config_read(offset)
    }
    fn write32(&mut self, offset: u16, value: u32) {
        self.0.config_write(offset, value);
    }
    fn bytes(&mut self) -> u16 {
        EXTENDED_CONFIG_BYTES
    }
}

/// Configuration spaces as they were at one moment: a saved dump, or the files of sysfs. Bytes outside an image read as
/// ones; writes are lost.
#[derive(Clone, Default, Debug)]
pub struct Snapshot {
    images: BTreeMap<PciAddress, Vec<u8>>,
}

impl Snapshot {
    /// Nothing yet.
    pub fn new() -> Snapshot {
        Snapshot::default()
    }

    /// Adds the image of a function: its first bytes, as far as they are known, at most 4096.
    /// False if there is one of this address already; then it stays.
    pub fn add(&mut self, address: PciAddress, mut image: Vec<u8>) -> bool {
        image.truncate(usize::from(EXTENDED_CONFIG_BYTES));
        // Configuration space is read in dwords. A partial dword at the end of a cut file would
        // otherwise read as ones and look like a register with all bits set.
        image.truncate(image.len() & !3);
        let free = !self.images.contains_key(&address);
        if free {
            self.images.insert(address, image);
        }
        free
    }

    /// How many functions are in it.
    pub fn len(&self) -> usize {
        self.images.len()
    }

    /// True if no function is in it.
    pub fn is_empty(&self) -> bool {
        self.images.is_empty()
    }
}

impl ConfigAccess for Snapshot {
    fn read(&mut self, address: PciAddress, offset: u16) -> u32 {
        let start = usize::from(offset);
        let dword = self.images.get(&address).and_then(|image| image.get(start..start + 4));
        dword.and_then(|d| d.try_into().ok()).map_or(u32::MAX, u32::from_le_bytes)
    }
    fn write(&mut self, _address: PciAddress, _offset: u16, _value: u32) {}
    fn bytes(&mut self, address: PciAddress) -> u16 {
        self.images.get(&address).map_or(0, |image| image.len() as u16)
    }
    fn known(&self) -> Option<Vec<PciAddress>> {
        Some(self.images.keys().copied().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: PciAddress = PciAddress::new(0, 1, 2, 3);

    #[test]
    fn parts_of_a_dword() {
        let mut snapshot = Snapshot::new();
        assert!(snapshot.add(HERE, alloc::vec![0x11, 0x22, 0x33, 0x44, 0x55]));
        assert!(!snapshot.add(HERE, Vec::new()), "the first image of an address stays");
        let mut space = At::new(&mut snapshot, HERE);
        assert_eq!((space.read8(0), space.read8(1), space.read8(3)), (0x11, 0x22, 0x44));
        assert_eq!((space.read16(0), space.read16(2)), (0x2211, 0x4433));
        assert_eq!((space.bytes(), space.read32(4)), (4, u32::MAX), "half a dword is not enough");
        assert_eq!(At::new(&mut snapshot, PciAddress::new(0, 0, 0, 0)).read32(0), u32::MAX);
    }

    /// Remembers the last write.
    struct Command(u32);

    impl ConfigSpace for Command {
        fn read32(&mut self, _offset: u16) -> u32 {
            self.0
        }
        fn write32(&mut self, offset: u16, value: u32) {
            assert_eq!(offset, COMMAND);
            self.0 = value;
        }
        fn bytes(&mut self) -> u16 {
            256
        }
    }

    #[test]
    fn a_change_of_the_command_clears_no_status() {
        let mut space = Command(0xf910_0007);
        space.change_command(0x3, 0x400);
        assert_eq!(space.0, 0x0000_0404);
    }
}
