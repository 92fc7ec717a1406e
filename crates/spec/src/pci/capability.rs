//! Capability structures (PCI clause 6.7 and appendix H, PCIe clause 7).

/// Capability identifier: power management.
pub const CAPABILITY_POWER_MANAGEMENT: u8 = 0x01;
/// Capability identifier: message signalled interrupts.
pub const CAPABILITY_MSI: u8 = 0x05;
/// Capability identifier: subsystem of a bridge (Bridge clause 4.2.2).
pub const CAPABILITY_BRIDGE_SUBSYSTEM: u8 = 0x0d;
/// Capability identifier: PCI Express.
pub const CAPABILITY_PCIE: u8 = 0x10;
/// Capability identifier: MSI-X.
pub const CAPABILITY_MSIX: u8 = 0x11;

/// First offset at which a capability may stand.
pub const CAPABILITY_FIRST: u16 = 0x40;
/// First offset of extended capabilities.
pub const EXTENDED_CAPABILITY_FIRST: u16 = 0x100;

/// Extended capability: serial number of the device (PCIe clause 7.9.3).
pub const EXTENDED_SERIAL_NUMBER: u16 = 0x0003;

/// Power management, offset 2: version in 2:0, D1 in bit 9, D2 in bit 10 (PCI PM 1.2, 3.2.3).
pub const PM_CAPABILITIES: u16 = 2;
/// Power management, offset 4: power state in 1:0 (PCI PM 1.2, 3.2.4).
pub const PM_CONTROL: u16 = 4;

/// MSI, offset 2: message control (PCI clause 6.8.1.3).
pub const MSI_CONTROL: u16 = 2;
/// MSI control: enabled.
pub const MSI_ENABLE: u16 = 1 << 0;
/// MSI control: the address has 64 bits.
pub const MSI_64_BIT: u16 = 1 << 7;
/// MSI control: a mask bit for each vector.
pub const MSI_MASKABLE: u16 = 1 << 8;

/// MSI-X, offset 2: message control; bits 10:0 are vectors - 1 (PCI clause 6.8.2.3).
pub const MSIX_CONTROL: u16 = 2;
/// MSI-X control: size of the table - 1.
pub const MSIX_TABLE_SIZE: u16 = 0x7ff;
/// MSI-X control: all vectors are masked.
pub const MSIX_FUNCTION_MASK: u16 = 1 << 14;
/// MSI-X control: enabled.
pub const MSIX_ENABLE: u16 = 1 << 15;
/// MSI-X, offset 4: where the table is; BAR in 2:0, the rest is the offset (PCI clause 6.8.2.4).
pub const MSIX_TABLE: u16 = 4;
/// MSI-X, offset 8: where the pending bits are, as [`MSIX_TABLE`].
pub const MSIX_PENDING: u16 = 8;

/// PCI Express, offset 2: version in 3:0, port type in 7:4, slot in bit 8 (PCIe clause 7.5.3.2).
pub const PCIE_CAPABILITIES: u16 = 2;
/// PCI Express, offset 4: device capabilities; bits 2:0 give the largest payload.
pub const PCIE_DEVICE_CAPABILITIES: u16 = 4;
/// PCI Express, offset 12: link capabilities; speed in 3:0, width in 9:4 (PCIe clause 7.5.3.6).
pub const PCIE_LINK_CAPABILITIES: u16 = 12;
/// PCI Express, offset 18: link status; speed in 3:0, width in 9:4 (PCIe clause 7.5.3.8).
pub const PCIE_LINK_STATUS: u16 = 18;
/// PCI Express, offset 40: device control 2 (PCIe clause 7.5.3.16).
pub const PCIE_DEVICE_CONTROL_2: u16 = 40;
/// Device control 2: the port forwards to functions 8 to 255.
pub const PCIE_ARI_FORWARDING: u16 = 1 << 5;
