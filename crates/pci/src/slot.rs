//! The configuration space that a device's [`Identity`] asks for.

use ssdyno_spec::pci as spec;

use crate::Identity;
use crate::capability::Link;
use crate::topology::{CapabilitySpec, FunctionSpec, Image};

/// Where the capabilities are.
const POWER_MANAGEMENT: u16 = 0x40;
const MSI: u16 = 0x50;
const MSIX: u16 = 0x70;
const PCIE: u16 = 0x80;
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
    image: Image,
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
        let function = FunctionSpec::of(identity, Link { generation: 3, lanes: 4 });
        let mut image = Image::of_function_at(&function, |capability| match capability {
            CapabilitySpec::PowerManagement => Some(POWER_MANAGEMENT),
            CapabilitySpec::Msi(_) => Some(MSI),
            CapabilitySpec::MsiX { .. } => Some(MSIX),
            _ => Some(PCIE),
        });
        let command =
            spec::COMMAND_MEMORY | spec::COMMAND_BUS_MASTER | spec::COMMAND_INTERRUPT_DISABLE;
        let status = u32::from(spec::STATUS_CAPABILITIES) << 16;
        image.set(spec::COMMAND, status, u32::from(command));
        // Payloads of 128 bytes, and nothing to forward to.
        image.set(PCIE + spec::PCIE_DEVICE_CAPABILITIES, 0, 0);
        image.set(PCIE + spec::PCIE_DEVICE_CONTROL_2, 0, 0);
        SlotConfig {
            image,
            has_msi: identity.msi_vectors != 0,
            has_msix: identity.msix_vectors != 0,
            decodes: false,
            masters: false,
            pin_off: false,
        }
    }

    /// The fields of link capabilities and link status (PCIe 5.0, clauses 7.5.3.6 and 7.5.3.8).
    pub fn set_link(&mut self, generation: u8, lanes: u8) {
        let link = u32::from(generation & 0xf) | u32::from(lanes & 0x3f) << 4;
        self.image.set(PCIE + spec::PCIE_LINK_CAPABILITIES, link, 0);
        self.image.set(PCIE + spec::PCIE_LINK_STATUS - 2, link << 16, 0);
    }

    /// The dword at `offset`; ones beyond the end.
    ///
    /// # Panics
    /// If `offset` is not a multiple of 4.
    pub fn read(&self, offset: u16) -> u32 {
        assert!(offset.is_multiple_of(4), "configuration dword at {offset:#x}");
        if offset < self.image.bytes() { self.image.read(offset) } else { !0 }
    }

    /// Sets what can be set of the dword at `offset`.
    ///
    /// # Panics
    /// If `offset` is not a multiple of 4.
    pub fn write(&mut self, offset: u16, value: u32) {
        assert!(offset.is_multiple_of(4), "configuration dword at {offset:#x}");
        if offset < self.image.bytes() {
            self.image.write(offset, value);
        }
        let command = self.image.read(spec::COMMAND) as u16;
        // In D3hot a function answers only configuration accesses (PCI Power Management). A driver
        // that forgets to return to D0 must fail here, as it does on hardware.
        let awake = self.image.read(POWER_MANAGEMENT + 4) & 0b11 == 0;
        self.decodes = awake && command & spec::COMMAND_MEMORY != 0;
        self.masters = awake && command & spec::COMMAND_BUS_MASTER != 0;
        self.pin_off = command & spec::COMMAND_INTERRUPT_DISABLE != 0;
    }

    fn set(&mut self, offset: u16, bit: u32, on: bool) {
        let old = self.image.read(offset);
        self.write(offset, if on { old | bit } else { old & !bit });
    }

    /// Switches message signalled interrupts on and off, as their mode wants it; MSI gets `vectors`.
    pub fn enable_messages(&mut self, msi: Option<u16>, msix: bool) {
        if self.has_msi {
            let granted = msi.map_or(0, u16::trailing_zeros);
            let old = self.image.read(MSI) & !(0b111 << 20);
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
        self.has_msix && self.image.read(MSIX) & MSIX_FUNCTION_MASK != 0
    }
}
