//! Names of classes and capabilities (PCI Code and ID Assignment 1.11). A line of a table is a code, whose
//! number of digits tells its kind, and the name.

/// Base classes, with subclasses, with programming interfaces (chapter 1).
const CLASSES: &str = include_str!("classes.txt");
/// Capabilities (chapter 2) of two digits, extended capabilities (chapter 3) of four.
const CAPABILITIES: &str = include_str!("capabilities.txt");

/// Name of `class`, consisting of base class, subclass and programming interface as in 0x010802;
/// the name of the base class if the subclass has none here.
pub fn subclass_name(class: u32) -> &'static str {
    let name = |shift, digits| name_of(CLASSES, (class & 0xff_ffff) >> shift, digits);
    let name = name(0, 6).or_else(|| name(8, 4)).or_else(|| name(16, 2));
    name.unwrap_or("Device of unknown class")
}

/// Name of capability `id`.
pub fn capability_name(id: u8) -> &'static str {
    name_of(CAPABILITIES, id.into(), 2).unwrap_or("unknown")
}

/// Name of extended capability `id`.
pub fn extended_capability_name(id: u16) -> &'static str {
    name_of(CAPABILITIES, id.into(), 4).unwrap_or("unknown")
}

fn name_of(table: &'static str, code: u32, digits: usize) -> Option<&'static str> {
    let mut entries = table.lines().filter_map(|line| line.split_once(' '));
    let is = |key: &str| key.len() == digits && u32::from_str_radix(key, 16) == Ok(code);
    entries.find(|entry| is(entry.0)).map(|entry| entry.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subclass_without_a_name_has_that_of_its_class() {
        assert_eq!(subclass_name(0x01_08_02), "NVM Express controller");
        assert_eq!(subclass_name(0x01_08_01), "Non-volatile memory controller");
        assert_eq!(subclass_name(0x01_80_00), "Mass storage controller");
        assert_eq!(subclass_name(0xff_00_00), "Device of unknown class");
    }

    #[test]
    fn capabilities_and_extended_ones_are_told_apart() {
        assert_eq!(capability_name(0x01), "power management");
        assert_eq!(extended_capability_name(0x0001), "advanced error reporting");
        assert_eq!(extended_capability_name(0x000c), "unknown");
    }
}
