//! `pci.ids`: the vendor and the name of a function.
//!
//! The list that pciutils and hwdata install, <https://pci-ids.ucw.cz>: a vendor in each line that begins with four
//! hexadecimal digits, its devices below it after one tab, their subsystems after two; classes after `C`.

use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;

/// Names by identifier, of the functions that were asked for.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct PciIds {
    vendors: BTreeMap<u16, String>,
    devices: BTreeMap<(u16, u16), String>,
}

impl PciIds {
    /// Reads the names of `wanted`, vendors with devices, from the text of the list. Lines in another
    /// format are skipped, because the list may gain new ones.
    pub fn parse(text: &str, wanted: &[(u16, u16)]) -> PciIds {
        let mut names = PciIds::default();
        let mut vendor = None;
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix('\t') {
                if let (Some(vendor), Some((device, name))) = (vendor, entry(rest))
                    && wanted.contains(&(vendor, device))
                {
                    names.devices.insert((vendor, device), name.to_owned());
                }
            } else if !line.starts_with('#') && !line.is_empty() {
                let found = entry(line).filter(|(id, _)| wanted.iter().any(|(want, _)| want == id));
                vendor = found.map(|(id, _)| id);
                names.vendors.extend(found.map(|(id, name)| (id, name.to_owned())));
            }
        }
        names
    }

    /// `Intel Corporation NVMe Datacenter SSD`, as lspci has it; `None` where not even the vendor is known.
    pub fn name(&self, vendor: u16, device: u16) -> Option<String> {
        let maker = self.vendors.get(&vendor)?;
        Some(match self.devices.get(&(vendor, device)) {
            Some(name) => format!("{maker} {name}"),
            None => format!("{maker} Device {device:04x}"),
        })
    }
}

/// Identifier and name of `8086  Intel Corporation`.
fn entry(line: &str) -> Option<(u16, &str)> {
    let (id, name) = line.split_once("  ")?;
    let sound = id.len() == 4 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    let id = u16::from_str_radix(id, 16).ok().filter(|_| sound)?;
    Some((id, name.trim())).filter(|(_, name)| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LIST: &str = "# A comment\n\n0e11  Maker One\n\t0001  First\n\t\t0e11 0001  Board of a subsystem\n\t0002  Second  (two blanks)\n1234  Maker Two\n\t0001  Other\nC 01  Mass storage controller\n\t08  Non-Volatile memory controller\n\t\t02  NVM Express\n";

    #[test]
    fn makers_and_names() {
        let wanted = [(0x0e11, 1), (0x0e11, 2), (0x1234, 9), (0xffff, 1)];
        let ids = PciIds::parse(LIST, &wanted);
        let name = |vendor, device| ids.name(vendor, device);
        assert_eq!(name(0x0e11, 1).as_deref(), Some("Maker One First"));
        assert_eq!(name(0x0e11, 2).as_deref(), Some("Maker One Second  (two blanks)"));
        assert_eq!(name(0x1234, 9).as_deref(), Some("Maker Two Device 0009"));
        assert_eq!(name(0xffff, 1), None);
        // Only requested entries are kept, and classes do not count as devices of the last vendor.
        assert_eq!(ids.name(0x1234, 1).as_deref(), Some("Maker Two Device 0001"));
        assert_eq!((ids.vendors.len(), ids.devices.len()), (2, 2));
    }

    proptest! {
        #[test]
        fn any_text_ends(text in "([0-9a-fC#\t]{0,6} {0,2}[ -~]{0,8}\n){0,12}") {
            let _ = PciIds::parse(&text, &[(0x8086, 0), (0, 0)]);
        }
    }
}
