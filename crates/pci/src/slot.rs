//! The configuration space that a device's [`Identity`] asks for.

use alloc::boxed::Box;
use alloc::vec;

use ssdyno_spec::pci as spec;

use crate::{Identity, MsixPlace};

/// Bytes of configuration space of a PCI Express function (PCIe 5.0, clause 7.2.2).
const BYTES: usize = 4096;
/// Where the capabilities are.
const POWER_MANAGEMENT: u16 = 0x40;
const MSI: u16 = 0x50;
const MSIX: u16 = 0x70;
const PCIE: u16 = 0x80;
/// Bit in a 64-bit memory BAR that says so (PCI 3.0, clause 6.2.5.1).
const BAR_64_BIT: u32 = 0b100;
/// MSI and MSI-X message control: on.
const MSI_ENABLE: u32 = 1 << 16;
const MSIX_ENABLE: u32 = 1 << 31;
const MSIX_FUNCTION_MASK: u32 = 1 << 30;

/// A type 0 header with power management, MSI, MSI-X and PCI Express capabilities. Each bit is
/// writable or not; writable bits start at 0, as after a reset.
///
/// For code that puts a [`PciDevice`](crate::PciDevice) into a slot: the simulated connector, and
/// the server that shows a device to other programs.
#[derive(Debug)]
pub struct SlotConfig {
    values: Box<[u32]>,
    writable: Box<[u32]>,
    has_msi: bool,
    has_msix: bool,
    decodes: bool,
    masters: bool,
    pin_off: bool,
}

impl SlotConfig {
    /// As `identity` wants it, after a reset: nothing is decoded, nothing is sent.
    ///
    /// # Panics
    /// If the identity cannot be put into configuration space: a BAR that is no power of two, or
    /// none left for the MSI-X table.
    pub fn new(identity: &Identity) -> SlotConfig {
        let msix = identity.msix_place();
        let mut space = SlotConfig {
            values: vec![0; BYTES / 4].into_boxed_slice(),
            writable: vec![0; BYTES / 4].into_boxed_slice(),
            has_msi: identity.msi_vectors != 0,
            has_msix: msix.is_some(),
            decodes: false,
            masters: false,
            pin_off: false,
        };
        space.header(identity, msix);
        space.capabilities(identity, msix);
        space
    }

    fn put(&mut self, offset: u16, value: u32, writable: u32) {
        self.values[usize::from(offset / 4)] = value;
        self.writable[usize::from(offset / 4)] = writable;
    }

    fn header(&mut self, identity: &Identity, msix: Option<MsixPlace>) {
        let ids = u32::from(identity.device) << 16 | u32::from(identity.vendor);
        self.put(spec::VENDOR_ID, ids, 0);
        let command =
            spec::COMMAND_MEMORY | spec::COMMAND_BUS_MASTER | spec::COMMAND_INTERRUPT_DISABLE;
        let status = u32::from(spec::STATUS_CAPABILITIES) << 16;
        self.put(spec::COMMAND, status, u32::from(command));
        self.put(spec::CLASS_REVISION, identity.class << 8 | u32::from(identity.revision), 0);
        for pair in 0..3_u16 {
            let own = identity.bar_bytes[usize::from(pair)];
            let table = msix.filter(|m| u16::from(m.bar) == pair * 2).map_or(0, |m| m.bytes);
            // The MSI-X table can share a BAR with the registers of the device. The BAR then needs
            // the size of the larger part, because a BAR has exactly one size.
            let bytes = own.max(table);
            assert!(bytes == 0 || bytes.is_power_of_two(), "BAR {pair} has {bytes} bytes");
            if bytes >= 16 {
                let mask = !(bytes - 1);
                let low = spec::BAR0 + pair * 8;
                // The writable mask implements the sizing protocol: software writes ones and reads
                // back zeroes below the size. The type bits are read-only, so they survive the
                // write.
                self.put(low, BAR_64_BIT, mask as u32);
                self.put(low + 4, 0, (mask >> 32) as u32);
            }
        }
        self.put(spec::CAPABILITIES, u32::from(POWER_MANAGEMENT), 0);
        self.put(spec::INTERRUPT_LINE, u32::from(identity.interrupt_pin) << 8, 0xff);
    }

    fn capabilities(&mut self, identity: &Identity, msix: Option<MsixPlace>) {
        let head = |id: u8, next: u16| u32::from(id) | u32::from(next) << 8;
        let after_msi = if msix.is_some() { MSIX } else { PCIE };
        let after_power = if self.has_msi { MSI } else { after_msi };
        // Version 3 of PCI Power Management 1.2; D3hot does not reset (PMCSR bit 3).
        self.put(
            POWER_MANAGEMENT,
            head(spec::CAPABILITY_POWER_MANAGEMENT, after_power) | 3 << 16,
            0,
        );
        self.put(POWER_MANAGEMENT + 4, 1 << 3, 0b11);
        if self.has_msi {
            let count = identity.msi_vectors;
            assert!(count.is_power_of_two() && count <= 32, "{count} vectors of MSI");
            // 64-bit addresses; bits 3:1 how many it can, bits 6:4 how many it may.
            let control = 1 << 7 | count.trailing_zeros() << 1;
            self.put(
                MSI,
                head(spec::CAPABILITY_MSI, after_msi) | control << 16,
                MSI_ENABLE | 0b111 << 20,
            );
            self.put(MSI + 4, 0, !0b11);
            self.put(MSI + 8, 0, !0);
            self.put(MSI + 12, 0, 0xffff);
        }
        if let Some(place) = msix {
            let size = u32::from(identity.msix_vectors - 1);
            self.put(
                MSIX,
                head(spec::CAPABILITY_MSIX, PCIE) | size << 16,
                MSIX_ENABLE | MSIX_FUNCTION_MASK,
            );
            self.put(MSIX + 4, u32::from(place.bar), 0);
            self.put(MSIX + 8, place.pending_offset | u32::from(place.bar), 0);
        }
        // Version 2, an endpoint (device type 0).
        self.put(PCIE, head(spec::CAPABILITY_PCIE, 0) | 2 << 16, 0);
        self.set_link(3, 4);
    }

    /// The fields of link capabilities and link status (PCIe 5.0, clauses 7.5.3.6 and 7.5.3.8).
    pub fn set_link(&mut self, generation: u8, lanes: u8) {
        let link = u32::from(generation & 0xf) | u32::from(lanes & 0x3f) << 4;
        self.put(PCIE + 0x0c, link, 0);
        self.put(PCIE + 0x10, link << 16, 0);
    }

    /// The dword at `offset`; ones beyond the end.
    ///
    /// # Panics
    /// If `offset` is not a multiple of 4.
    pub fn read(&self, offset: u16) -> u32 {
        assert!(offset.is_multiple_of(4), "configuration dword at {offset:#x}");
        self.values.get(usize::from(offset / 4)).copied().unwrap_or(!0)
    }

    /// Sets what can be set of the dword at `offset`.
    ///
    /// # Panics
    /// If `offset` is not a multiple of 4.
    pub fn write(&mut self, offset: u16, value: u32) {
        assert!(offset.is_multiple_of(4), "configuration dword at {offset:#x}");
        let index = usize::from(offset / 4);
        if let (Some(old), Some(&mask)) = (self.values.get_mut(index), self.writable.get(index)) {
            *old = *old & !mask | value & mask;
        }
        let command = self.values[usize::from(spec::COMMAND / 4)] as u16;
        // In D3hot a function answers only configuration accesses (PCI Power Management). A driver
        // that forgets to return to D0 must fail here, as it does on hardware.
        let awake = self.values[usize::from(POWER_MANAGEMENT / 4 + 1)] & 0b11 == 0;
        self.decodes = awake && command & spec::COMMAND_MEMORY != 0;
        self.masters = awake && command & spec::COMMAND_BUS_MASTER != 0;
        self.pin_off = command & spec::COMMAND_INTERRUPT_DISABLE != 0;
    }

    fn set(&mut self, offset: u16, bit: u32, on: bool) {
        let old = self.values[usize::from(offset / 4)];
        self.write(offset, if on { old | bit } else { old & !bit });
    }

    /// Switches message signalled interrupts on and off, as their mode wants it; MSI gets `vectors`.
    pub fn enable_messages(&mut self, msi: Option<u16>, msix: bool) {
        if self.has_msi {
            let granted = msi.map_or(0, u16::trailing_zeros);
            let old = self.values[usize::from(MSI / 4)] & !(0b111 << 20);
            self.write(MSI, old | granted << 20);
            self.set(MSI, MSI_ENABLE, msi.is_some());
        }
        if self.has_msix {
            self.set(MSIX, MSIX_ENABLE, msix);
        }
    }

    /// The function answers memory accesses: it may, and is awake.
    #[inline]
    pub fn decodes(&self) -> bool {
        self.decodes
    }

    /// The function may reach host memory, and send messages.
    #[inline]
    pub fn masters(&self) -> bool {
        self.masters
    }

    /// The host does not want to hear of the pin.
    #[inline]
    pub fn pin_off(&self) -> bool {
        self.pin_off
    }

    /// MSI-X as a whole is masked.
    pub fn function_masked(&self) -> bool {
        self.has_msix && self.values[usize::from(MSIX / 4)] & MSIX_FUNCTION_MASK != 0
    }
}
