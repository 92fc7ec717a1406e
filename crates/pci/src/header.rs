//! The header of a function: what it is, its bus numbers, its pin.

use core::fmt;

use ssdyno_spec::pci::{
    BAR0, BUS_NUMBERS, CLASS_REVISION, COMMAND, HEADER_MULTI_FUNCTION, HEADER_TYPE, INTERRUPT_LINE,
    LAYOUT_BRIDGE, LAYOUT_CARDBUS, LAYOUT_ENDPOINT, SUBSYSTEM_VENDOR_ID, VENDOR_ID,
};

use crate::config::ConfigSpace;

/// One of the four interrupt pins (PCI clause 6.2.4).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Pin(u8);

impl Pin {
    /// INTA.
    pub const A: Pin = Pin(0);
    /// INTB.
    pub const B: Pin = Pin(1);
    /// INTC.
    pub const C: Pin = Pin(2);
    /// INTD.
    pub const D: Pin = Pin(3);

    /// The pin with number `zero_based`, modulo 4.
    pub const fn from_zero_based(zero_based: u8) -> Pin {
        Pin(zero_based % 4)
    }

    /// The pin in an interrupt pin register: 1 is INTA; `None` for 0, no pin, and for what the
    /// specification reserves.
    pub const fn from_register(register: u8) -> Option<Pin> {
        match register {
            1..=4 => Some(Pin(register - 1)),
            _ => None,
        }
    }

    /// 0 is INTA.
    pub const fn zero_based(self) -> u8 {
        self.0
    }
}

impl fmt::Display for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "INT{}", char::from(b'A' + self.0))
    }
}

/// Bus numbers of a bridge (Bridge clauses 3.2.5.2 to 3.2.5.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BusNumbers {
    /// The bus towards the root.
    pub primary: u8,
    /// The bus away from the root.
    pub secondary: u8,
    /// The highest bus behind it.
    pub subordinate: u8,
}

/// The fields of the header (PCI clause 6.1, Bridge clause 3.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ConfigHeader {
    /// Vendor identifier.
    pub vendor: u16,
    /// Device identifier.
    pub device: u16,
    /// Base class, subclass, programming interface, as in 0x010802.
    pub class: u32,
    /// Revision.
    pub revision: u8,
    /// Command register.
    pub command: u16,
    /// Layout: 0 endpoint, 1 PCI-to-PCI bridge, 2 CardBus bridge.
    pub layout: u8,
    /// There may be functions 1 to 7.
    pub multi_function: bool,
    /// Vendor and device of the subsystem; endpoints only.
    pub subsystem: Option<(u16, u16)>,
    /// Base address registers as they are: 6 for endpoints, 2 for bridges, the rest 0.
    pub bars: [u32; 6],
    /// Bus numbers; layouts 1 and 2 only.
    pub bus_numbers: Option<BusNumbers>,
    /// Interrupt pin register: 1 is INTA.
    pub interrupt_pin: u8,
    /// Interrupt line register: what firmware routed; 255 is unknown.
    pub interrupt_line: u8,
}

impl ConfigHeader {
    /// Reads it.
    pub fn read(space: &mut dyn ConfigSpace) -> ConfigHeader {
        let identifiers = space.read32(VENDOR_ID);
        let class_revision = space.read32(CLASS_REVISION);
        let header_type = space.read8(HEADER_TYPE);
        let layout = header_type & !HEADER_MULTI_FUNCTION;
        let interrupts = space.read32(INTERRUPT_LINE);
        let mut bars = [0; 6];
        for (bar, offset) in bars.iter_mut().zip((BAR0..).step_by(4)).take(bar_count(layout)) {
            *bar = space.read32(offset);
        }
        let bus_numbers = matches!(layout, LAYOUT_BRIDGE | LAYOUT_CARDBUS).then(|| {
            let [primary, secondary, subordinate, _] = space.read32(BUS_NUMBERS).to_le_bytes();
            BusNumbers { primary, secondary, subordinate }
        });
        // A bridge has other registers at this offset; its subsystem is in a capability. Reading
        // the field for all layouts would show parts of a window as identifiers.
        let subsystem = (layout == LAYOUT_ENDPOINT).then(|| {
            let both = space.read32(SUBSYSTEM_VENDOR_ID);
            (both as u16, (both >> 16) as u16)
        });
        ConfigHeader {
            vendor: identifiers as u16,
            device: (identifiers >> 16) as u16,
            class: class_revision >> 8,
            revision: class_revision as u8,
            command: space.read16(COMMAND),
            layout,
            multi_function: header_type & HEADER_MULTI_FUNCTION != 0,
            subsystem,
            bars,
            bus_numbers,
            interrupt_pin: (interrupts >> 8) as u8,
            interrupt_line: interrupts as u8,
        }
    }

    /// Its pin, if it has one.
    pub fn pin(&self) -> Option<Pin> {
        Pin::from_register(self.interrupt_pin)
    }

    /// True if the whole header reads as ones: the function was removed, or has lost its power.
    pub fn is_gone(&self) -> bool {
        // Three registers must read as ones. A vendor of FFFFh alone also occurs in virtual
        // functions (SR-IOV), which are present and have a class.
        self.vendor == 0xffff && self.class == 0xff_ffff && self.layout == 0x7f
    }

    /// The class that drivers of this project distinguish (S1-8).
    pub fn device_class(&self) -> DeviceClass {
        match self.class >> 16 {
            0x01 => DeviceClass::Storage,
            0x02 => DeviceClass::Network,
            // Snippet 3.2 writes `a && b || c` without parentheses, so any class with a subordinate
            // bus would pass (S1-10). Here the class must hold in both cases.
            0x06 if self.is_bus_bridge() && self.expands() => DeviceClass::Bridge,
            _ => DeviceClass::Unknown,
        }
    }

    /// True for what can lead to another PCI bus, whether or not it has bus numbers: the class and
    /// the layout of a PCI-to-PCI, semi-transparent or CardBus bridge.
    pub fn is_bus_bridge(&self) -> bool {
        matches!(self.class >> 8, 0x0604 | 0x0607 | 0x0609) && self.bus_numbers.is_some()
    }

    /// The buses behind it, if it is a bridge that leads to one: layout, class *and* a secondary or
    /// subordinate number. S1-10: the thesis lets a subordinate number alone pass, which in an
    /// endpoint is a part of a base address.
    pub fn bridge(&self) -> Option<BusNumbers> {
        self.bus_numbers.filter(|_| self.device_class() == DeviceClass::Bridge)
    }

    fn expands(&self) -> bool {
        self.bus_numbers.is_some_and(|n| n.secondary != 0 || n.subordinate != 0)
    }
}

/// Base address registers in layout `layout` (PCI clause 6.2.5, Bridge clause 3.2.5.1). A CardBus
/// bridge has one, for its own registers.
pub(crate) fn bar_count(layout: u8) -> usize {
    match layout {
        LAYOUT_ENDPOINT => 6,
        LAYOUT_BRIDGE => 2,
        LAYOUT_CARDBUS => 1,
        _ => 0,
    }
}

ssdyno_block::named! {
    /// Classes that have class drivers (S1-8).
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
    pub enum DeviceClass: name {
        /// Base class 2.
        Network = "network",
        /// Base class 1.
        Storage = "storage",
        /// A bridge to another PCI bus that firmware or a scan gave a number.
        Bridge = "bridge",
        /// Everything else.
        Unknown = "unknown",
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    /// 64 bytes with a few of them set.
    struct Image([u8; 64]);

    impl Image {
        fn with(bytes: &[(u16, u8)]) -> ConfigHeader {
            let mut image = [0; 64];
            bytes.iter().for_each(|&(at, value)| image[usize::from(at)] = value);
            ConfigHeader::read(&mut Image(image))
        }
    }

    impl ConfigSpace for Image {
        fn read32(&mut self, offset: u16) -> u32 {
            let start = usize::from(offset);
            self.0[start..start + 4].try_into().map_or(0, u32::from_le_bytes)
        }
        fn write32(&mut self, _offset: u16, _value: u32) {}
        fn bytes(&mut self) -> u16 {
            64
        }
    }

    #[test]
    fn pins() {
        assert_eq!(
            [0, 1, 4, 5, 255].map(Pin::from_register),
            [None, Some(Pin::A), Some(Pin::D), None, None]
        );
        assert_eq!(Pin::from_zero_based(6), Pin::C);
        assert_eq!(Pin::D.to_string(), "INTD");
    }

    #[test]
    fn classes_of_s1_8() {
        let class = |base, sub| Image::with(&[(0x0b, base), (0x0a, sub)]).device_class();
        assert_eq!(class(0x01, 0x08), DeviceClass::Storage);
        assert_eq!(class(0x02, 0x00), DeviceClass::Network);
        assert_eq!(class(0x06, 0x00), DeviceClass::Unknown, "a host bridge has no bus numbers");
        assert_eq!(class(0x03, 0x00), DeviceClass::Unknown);
    }

    #[test]
    fn a_bridge_needs_a_layout_a_class_and_a_bus() {
        let bridge = |layout, base, sub, secondary, subordinate| {
            let bytes =
                [(0x0e, layout), (0x0b, base), (0x0a, sub), (0x19, secondary), (0x1a, subordinate)];
            Image::with(&bytes).bridge().is_some()
        };
        assert!(bridge(1, 6, 4, 1, 1) && bridge(0x81, 6, 4, 1, 0) && bridge(1, 6, 4, 0, 1));
        assert!(!bridge(1, 6, 4, 0, 0), "leads nowhere");
        // What `a && b || c` of the thesis' snippet 3.2 lets pass (S1-10).
        assert!(!bridge(0, 1, 8, 0, 7), "in layout 0 these are bits of a base address");
        assert!(!bridge(1, 1, 8, 0, 7) && !bridge(0, 6, 4, 1, 1));
        assert!(bridge(2, 6, 7, 3, 3), "CardBus bridges lead to a bus, too");
    }

    #[test]
    fn the_header_of_each_layout() {
        let endpoint = Image::with(&[(0, 0x86), (1, 0x80), (2, 0x53), (3, 0x09), (0x24, 4)]);
        assert_eq!((endpoint.vendor, endpoint.device, endpoint.bars[5]), (0x8086, 0x0953, 4));
        assert_eq!(endpoint.bus_numbers, None);
        assert_eq!(Image::with(&[(0x2c, 1), (0x2e, 2)]).subsystem, Some((1, 2)));
        let bridge = Image::with(&[(0x0e, 1), (0x18, 1), (0x19, 2), (0x1a, 3), (0x3d, 1)]);
        let numbers = BusNumbers { primary: 1, secondary: 2, subordinate: 3 };
        assert_eq!((bridge.bus_numbers, bridge.pin()), (Some(numbers), Some(Pin::A)));
        assert_eq!((bridge.bars, bridge.subsystem), ([0; 6], None), "bus numbers are not a BAR");
        assert!(ConfigHeader::read(&mut Image([0xff; 64])).is_gone());
    }
}
