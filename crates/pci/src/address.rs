//! Where a function is: segment, bus, device, function.

use core::fmt;
use core::str::FromStr;

/// The address of a function in configuration space (PCI clause 3.2.2.3.2), as in `0000:01:03.0`.
///
/// Addresses sort in the order in which a scan meets them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PciAddress {
    /// Segment group, or "domain": 0 but on large machines and behind some controllers.
    pub segment: u32,
    /// Bus, 0 to 255.
    pub bus: u8,
    /// Device on the bus, 0 to 31.
    device: u8,
    /// Function of the device, 0 to 7.
    function: u8,
}

/// Devices on a bus.
pub(crate) const DEVICES: u8 = 32;
/// Functions of a device.
pub(crate) const FUNCTIONS: u8 = 8;

impl PciAddress {
    /// The address with these parts.
    ///
    /// # Panics
    /// There are 32 devices on a bus and 8 functions in a device; more is a bug of the caller.
    pub const fn new(segment: u32, bus: u8, device: u8, function: u8) -> PciAddress {
        assert!(device < DEVICES && function < FUNCTIONS, "no such device or function");
        PciAddress { segment, bus, device, function }
    }

    /// Device on the bus, 0 to 31.
    pub const fn device(self) -> u8 {
        self.device
    }

    /// Function of the device, 0 to 7.
    pub const fn function(self) -> u8 {
        self.function
    }

    /// Another function of the same device.
    ///
    /// # Panics
    /// As for [`PciAddress::new`].
    pub const fn with_function(self, function: u8) -> PciAddress {
        PciAddress::new(self.segment, self.bus, self.device, function)
    }
}

impl fmt::Display for PciAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PciAddress { segment, bus, device, function } = self;
        write!(f, "{segment:04x}:{bus:02x}:{device:02x}.{function}")
    }
}

/// A text is no [`PciAddress`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("not the address of a PCI function; use a form such as 0000:01:03.0 or 01:03.0")]
pub struct AddressError;

impl FromStr for PciAddress {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<PciAddress, AddressError> {
        let (buses, function) = text.rsplit_once('.').ok_or(AddressError)?;
        let (buses, device) = buses.rsplit_once(':').ok_or(AddressError)?;
        let (segment, bus) = buses.rsplit_once(':').unwrap_or(("0", buses));
        let segment = hexadecimal(segment, 8)?;
        let bus = hexadecimal(bus, 2)? as u8;
        let (device, function) = (hexadecimal(device, 2)?, hexadecimal(function, 1)?);
        if device >= u32::from(DEVICES) || function >= u32::from(FUNCTIONS) {
            return Err(AddressError);
        }
        Ok(PciAddress { segment, bus, device: device as u8, function: function as u8 })
    }
}

fn hexadecimal(text: &str, digits_max: usize) -> Result<u32, AddressError> {
    let sound = text.len() <= digits_max && text.bytes().all(|b| b.is_ascii_hexdigit());
    sound.then(|| u32::from_str_radix(text, 16).ok()).flatten().ok_or(AddressError)
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn with_and_without_a_segment() {
        assert_eq!("01:03.0".parse(), Ok(PciAddress::new(0, 1, 3, 0)));
        assert_eq!("0001:ff:1f.7".parse(), Ok(PciAddress::new(1, 255, 31, 7)));
        // Domains behind Intel's volume management device start at 0x10000.
        assert_eq!("10000:e0:06.0".parse(), Ok(PciAddress::new(0x10000, 0xe0, 6, 0)));
    }

    #[test]
    fn what_is_no_address() {
        for wrong in [
            "",
            ".",
            ":.",
            "0",
            "1.0",
            "00:20.0",
            "00:00.8",
            "00:00.00",
            "100:00.0",
            "+1:00.0",
            "0:0:0:0.0",
            "00:1f.-1",
            "0000:zz:00.0",
            " 00:00.0",
            "00:000.0",
            "00:00.0 ",
        ] {
            assert_eq!(wrong.parse::<PciAddress>(), Err(AddressError), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn text_and_back(segment: u32, bus: u8, device in 0..32_u8, function in 0..8_u8) {
            let address = PciAddress::new(segment, bus, device, function);
            prop_assert_eq!(address.to_string().parse(), Ok(address));
        }
    }
}
