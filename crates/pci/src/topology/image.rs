//! Configuration spaces from descriptions: what they read as, and which bits can be written.

use alloc::vec;
use alloc::vec::Vec;

use ssdyno_spec::pci as spec;
use ssdyno_spec::pci::{CONFIG_BYTES, EXTENDED_CONFIG_BYTES};

use crate::Identity;
use crate::capability::Link;
use crate::config::ConfigSpace;
use crate::header::Pin;

/// A base address register.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BarSpec {
    /// I/O ports: a power of two from 4 bytes.
    Io(u32),
    /// Memory below 4 GiB: a power of two from 16 bytes.
    Memory32 {
        /// How much.
        bytes: u32,
        /// Reads have no side effects.
        prefetchable: bool,
    },
    /// Memory anywhere: a power of two from 16 bytes. Takes two registers.
    Memory64 {
        /// How much.
        bytes: u64,
        /// Reads have no side effects.
        prefetchable: bool,
    },
}

/// A capability.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CapabilitySpec {
    /// Power management.
    PowerManagement,
    /// MSI with this many vectors, a power of two to 32.
    Msi(u16),
    /// MSI-X with this many vectors; table and pending bits are in this BAR, at 0 and behind it.
    MsiX {
        /// 1 to 2048.
        vectors: u16,
        /// 0 to 5.
        bar: u8,
    },
    /// PCI Express: the code of the port (PCIe clause 7.5.3.2) and the link.
    Pcie {
        /// 0 endpoint, 4 root port, 5 upstream, 6 downstream port, 7 bridge to PCI.
        port: u8,
        /// `None` inside a root complex.
        link: Option<Link>,
    },
    /// Subsystem of a bridge.
    BridgeSubsystem {
        /// Its vendor.
        vendor: u16,
        /// The vendor's name for it.
        device: u16,
    },
    /// Serial number, an extended capability.
    SerialNumber(u64),
}

/// A function with a header of layout 0.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct FunctionSpec {
    /// Vendor and device.
    pub id: (u16, u16),
    /// As in 0x010802.
    pub class: u32,
    /// Revision.
    pub revision: u8,
    /// Base address registers, from the first on.
    pub bars: Vec<BarSpec>,
    /// Its expansion ROM: a power of two from 2048 bytes; 0: none.
    pub rom_bytes: u32,
    /// Its pin.
    pub pin: Option<Pin>,
    /// Its capabilities, in the order of the list.
    pub capabilities: Vec<CapabilitySpec>,
}

impl FunctionSpec {
    /// The self-description of a device at the end of a PCI Express link. The MSI-X table is where
    /// [`Identity::msix_place`] says.
    pub fn of(identity: &Identity, link: Link) -> FunctionSpec {
        let vectors = identity.msix_vectors;
        let place = identity.msix_place();
        let free = place.map(|place| usize::from(place.bar / 2));
        let mut bars = Vec::new();
        let used = identity.bar_bytes.iter().rposition(|&bytes| bytes != 0);
        let pairs = used.max(free).map_or(0, |last| last + 1);
        for (pair, &own) in identity.bar_bytes.iter().enumerate().take(pairs) {
            let bytes = place.filter(|_| free == Some(pair)).map_or(own, |place| place.bytes);
            bars.push(BarSpec::Memory64 { bytes, prefetchable: false });
        }
        let mut capabilities = vec![CapabilitySpec::PowerManagement];
        if identity.msi_vectors != 0 {
            capabilities.push(CapabilitySpec::Msi(identity.msi_vectors));
        }
        if let Some(place) = place {
            capabilities.push(CapabilitySpec::MsiX { vectors, bar: place.bar });
        }
        capabilities.push(CapabilitySpec::Pcie { port: 0, link: Some(link) });
        FunctionSpec {
            id: (identity.vendor, identity.device),
            class: identity.class,
            revision: identity.revision,
            bars,
            rom_bytes: 0,
            pin: Pin::from_register(identity.interrupt_pin),
            capabilities,
        }
    }
}

/// A PCI-to-PCI bridge.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct BridgeSpec {
    /// Vendor and device.
    pub id: (u16, u16),
    /// Base address registers: two at most.
    pub bars: Vec<BarSpec>,
    /// Its expansion ROM: a power of two from 2048 bytes; 0: none.
    pub rom_bytes: u32,
    /// Its own pin, for hot plug or errors.
    pub pin: Option<Pin>,
    /// The I/O window: `None` there is none, else whether it reaches above 64 KiB.
    pub io: Option<bool>,
    /// The prefetchable window: `None` there is none, else whether it reaches above 4 GiB.
    pub prefetch: Option<bool>,
    /// Its capabilities.
    pub capabilities: Vec<CapabilitySpec>,
}

/// Where a capability has to be, if not behind the one before it.
type Place = fn(&CapabilitySpec) -> Option<u16>;

/// A configuration space, byte by byte.
#[derive(Clone, Debug)]
pub(crate) struct Image {
    values: Vec<u8>,
    writable: Vec<u8>,
}

impl Image {
    pub(super) fn of_function(spec: &FunctionSpec) -> Image {
        Image::of_function_at(spec, |_| None)
    }

    /// The same with capabilities where `place` puts them; the others follow one another.
    pub(crate) fn of_function_at(spec: &FunctionSpec, place: Place) -> Image {
        let mut image =
            Image::common(spec.id, spec.class, spec.revision, &spec.capabilities, place);
        image.bars(&spec.bars, 6);
        image.rom(spec::EXPANSION_ROM, spec.rom_bytes);
        image.set(spec::INTERRUPT_LINE, pin_register(spec.pin), 0xff);
        image
    }

    pub(super) fn of_bridge(spec: &BridgeSpec) -> Image {
        let mut image = Image::common(spec.id, 0x06_0400, 0, &spec.capabilities, |_| None);
        image.values[usize::from(spec::HEADER_TYPE)] = spec::LAYOUT_BRIDGE;
        image.bars(&spec.bars, 2);
        image.rom(spec::EXPANSION_ROM_OF_BRIDGE, spec.rom_bytes);
        image.set(spec::BUS_NUMBERS, 0, u32::MAX);
        let nibbles = |wide: bool| if wide { 0x0001_0001 } else { 0 };
        if let Some(wide) = spec.io {
            image.set(spec::IO_WINDOW, if wide { 0x0101 } else { 0 }, 0xf0f0);
            image.set(spec::IO_WINDOW_UPPER, 0, if wide { u32::MAX } else { 0 });
        }
        image.set(spec::MEMORY_WINDOW, 0, 0xfff0_fff0);
        if let Some(wide) = spec.prefetch {
            image.set(spec::PREFETCH_WINDOW, nibbles(wide), 0xfff0_fff0);
            let upper = if wide { u32::MAX } else { 0 };
            image.set(spec::PREFETCH_BASE_UPPER, 0, upper);
            image.set(spec::PREFETCH_LIMIT_UPPER, 0, upper);
        }
        image.set(spec::INTERRUPT_LINE, pin_register(spec.pin), 0xff);
        image
    }

    fn common(
        id: (u16, u16),
        class: u32,
        revision: u8,
        list: &[CapabilitySpec],
        place: Place,
    ) -> Image {
        let is_express = list.iter().any(|c| matches!(c, CapabilitySpec::Pcie { .. }));
        let bytes = usize::from(if is_express { EXTENDED_CONFIG_BYTES } else { CONFIG_BYTES });
        let mut image = Image { values: vec![0; bytes], writable: vec![0; bytes] };
        image.set(spec::VENDOR_ID, u32::from(id.1) << 16 | u32::from(id.0), 0);
        image.set(spec::COMMAND, 0, 0x0547);
        image.set(spec::CLASS_REVISION, class << 8 | u32::from(revision), 0);
        image.list(list, place);
        image
    }

    fn list(&mut self, list: &[CapabilitySpec], place: Place) {
        let mut at = spec::CAPABILITY_FIRST;
        let mut extended_at = spec::EXTENDED_CAPABILITY_FIRST;
        // The pointer that the next one is entered into.
        let mut pointer = usize::from(spec::CAPABILITIES);
        for capability in list {
            if let CapabilitySpec::SerialNumber(serial) = capability {
                let bytes = 12;
                self.set(extended_at, u32::from(spec::EXTENDED_SERIAL_NUMBER) | 1 << 16, 0);
                self.set(extended_at + 4, *serial as u32, 0);
                self.set(extended_at + 8, (*serial >> 32) as u32, 0);
                if extended_at > spec::EXTENDED_CAPABILITY_FIRST {
                    let before = extended_at - bytes;
                    let head = self.read(before) | u32::from(extended_at) << 20;
                    self.set(before, head, 0);
                }
                extended_at += bytes;
                continue;
            }
            at = place(capability).unwrap_or(at);
            self.values[pointer] = at as u8;
            self.values[usize::from(spec::STATUS)] |= spec::STATUS_CAPABILITIES as u8;
            pointer = usize::from(at) + 1;
            at += self.capability(at, *capability);
        }
    }

    /// Puts a capability at `at`; gives its size.
    fn capability(&mut self, at: u16, capability: CapabilitySpec) -> u16 {
        match capability {
            CapabilitySpec::PowerManagement => {
                // Version 3 of PCI Power Management 1.2; D3hot does not reset (PMCSR bit 3).
                self.set(at, u32::from(spec::CAPABILITY_POWER_MANAGEMENT) | 3 << 16, 0);
                self.set(at + 4, 1 << 3, 3);
                8
            }
            CapabilitySpec::Msi(vectors) => {
                let fits = vectors.is_power_of_two() && vectors <= 32;
                assert!(fits, "{vectors} vectors of MSI");
                let control = spec::MSI_64_BIT | (vectors.trailing_zeros() as u16) << 1;
                let writable = u32::from(spec::MSI_ENABLE | 7 << 4) << 16;
                let head = u32::from(spec::CAPABILITY_MSI) | u32::from(control) << 16;
                self.set(at, head, writable);
                self.set(at + 4, 0, !3);
                self.set(at + 8, 0, !0);
                self.set(at + 12, 0, 0xffff);
                16
            }
            CapabilitySpec::MsiX { vectors, bar } => {
                let writable = u32::from(spec::MSIX_ENABLE | spec::MSIX_FUNCTION_MASK) << 16;
                let head = u32::from(spec::CAPABILITY_MSIX) | u32::from(vectors - 1) << 16;
                self.set(at, head, writable);
                self.set(at + spec::MSIX_TABLE, u32::from(bar), 0);
                let pending = u32::from(vectors) * 16;
                self.set(at + spec::MSIX_PENDING, pending | u32::from(bar), 0);
                12
            }
            CapabilitySpec::Pcie { port, link } => {
                let head = u32::from(spec::CAPABILITY_PCIE) | (2 | u32::from(port) << 4) << 16;
                self.set(at, head, 0);
                // Payloads of 256 bytes.
                self.set(at + spec::PCIE_DEVICE_CAPABILITIES, 1, 0);
                let code = |l: Link| u32::from(l.generation) | u32::from(l.lanes) << 4;
                let code = link.map_or(0, code);
                self.set(at + spec::PCIE_LINK_CAPABILITIES, code, 0);
                self.set(at + spec::PCIE_LINK_STATUS - 2, code << 16, 0);
                let forwarding = u32::from(spec::PCIE_ARI_FORWARDING);
                self.set(at + spec::PCIE_DEVICE_CONTROL_2, 0, forwarding);
                60
            }
            CapabilitySpec::BridgeSubsystem { vendor, device } => {
                self.set(at, u32::from(spec::CAPABILITY_BRIDGE_SUBSYSTEM), 0);
                self.set(at + 4, u32::from(device) << 16 | u32::from(vendor), 0);
                8
            }
            CapabilitySpec::SerialNumber(_) => 0,
        }
    }

    fn bars(&mut self, bars: &[BarSpec], count: u8) {
        // The writable mask implements the sizing protocol: software writes ones and reads back
        // zeroes below the size. The type bits are read-only, so they survive the write.
        let mut index = 0;
        for bar in bars {
            let offset = crate::bars::bar_offset(index);
            let flags = |prefetchable| if prefetchable { spec::BAR_PREFETCHABLE } else { 0 };
            match *bar {
                BarSpec::Io(bytes) => {
                    assert!(bytes.is_power_of_two() && bytes >= 4, "an I/O BAR of {bytes} bytes");
                    self.set(offset, spec::BAR_IO, !(bytes - 1));
                    index += 1;
                }
                BarSpec::Memory32 { bytes, prefetchable } => {
                    assert!(bytes.is_power_of_two() && bytes >= 16, "a BAR of {bytes} bytes");
                    self.set(offset, flags(prefetchable), !(bytes - 1));
                    index += 1;
                }
                // A pair that is left free.
                BarSpec::Memory64 { bytes: 0, .. } => index += 2,
                BarSpec::Memory64 { bytes, prefetchable } => {
                    assert!(bytes.is_power_of_two() && bytes >= 16, "a BAR of {bytes} bytes");
                    let mask = !(bytes - 1);
                    let low = spec::BAR_TYPE_64 | flags(prefetchable);
                    self.set(offset, low, mask as u32);
                    self.set(offset + 4, 0, (mask >> 32) as u32);
                    index += 2;
                }
            }
        }
        assert!(index <= count, "{index} base address registers, {count} fit");
    }

    fn rom(&mut self, offset: u16, bytes: u32) {
        if bytes != 0 {
            assert!(bytes.is_power_of_two() && bytes >= 2048, "a ROM of {bytes} bytes");
            self.set(offset, 0, !(bytes - 1) | spec::EXPANSION_ROM_ENABLE);
        }
    }

    pub(crate) fn set(&mut self, offset: u16, value: u32, writable: u32) {
        let at = usize::from(offset);
        self.values[at..at + 4].copy_from_slice(&value.to_le_bytes());
        self.writable[at..at + 4].copy_from_slice(&writable.to_le_bytes());
    }

    pub(super) fn set_multi_function(&mut self) {
        self.values[usize::from(spec::HEADER_TYPE)] |= spec::HEADER_MULTI_FUNCTION;
    }

    pub(super) fn layout(&self) -> u8 {
        self.values[usize::from(spec::HEADER_TYPE)] & !spec::HEADER_MULTI_FUNCTION
    }

    pub(crate) fn bytes(&self) -> u16 {
        self.values.len() as u16
    }

    pub(crate) fn read(&self, offset: u16) -> u32 {
        let at = usize::from(offset);
        let dword = self.values.get(at..at + 4).and_then(|dword| dword.try_into().ok());
        dword.map_or_else(|| panic!("offset {offset:#x} is beyond the end"), u32::from_le_bytes)
    }

    pub(crate) fn write(&mut self, offset: u16, value: u32) {
        assert!(offset < self.bytes(), "offset {offset:#x} is beyond the end");
        let at = usize::from(offset);
        let both = self.values[at..].iter_mut().zip(&self.writable[at..]);
        for ((old, writable), new) in both.zip(value.to_le_bytes()) {
            *old = *old & !writable | new & writable;
        }
    }

    pub(super) fn poke(&mut self, offset: u16, value: u32) {
        let at = usize::from(offset);
        self.values[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }
}

fn pin_register(pin: Option<Pin>) -> u32 {
    pin.map_or(0, |pin| u32::from(pin.zero_based() + 1) << 8)
}

impl ConfigSpace for Image {
    fn read32(&mut self, offset: u16) -> u32 {
        self.read(offset)
    }
    fn write32(&mut self, offset: u16, value: u32) {
        self.write(offset, value);
    }
    fn bytes(&mut self) -> u16 {
        Image::bytes(self)
    }
}
