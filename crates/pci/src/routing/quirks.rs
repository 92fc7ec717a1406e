//! What the thesis printed about swizzling, as it printed it: for `--vortex-quirks`.
//!
//! The rule is [`swizzle`](super::swizzle). The thesis has three that differ from it and from each
//! other; all are here, to be laid beside the right one.

use crate::Pin;
use crate::mp::MpTable;
use crate::tree::Tree;

/// Equation 2: the number of the *bus* of the child takes the place of its device number (S1-17).
pub const fn equation_2(pin: Pin, bus: u8) -> Pin {
    Pin::from_zero_based(pin.zero_based() + bus % 4)
}

/// Table 3.1: the device number is subtracted (S1-18). Right for even device numbers, and where the
/// example of the text comes from.
pub const fn table_3_1(pin: Pin, device: u8) -> Pin {
    // The 4 keeps the sum positive. For even device numbers, +d and -d are equal modulo 4, so the
    // rows for devices 0 and 2 of table 3.1 agree with the specification (S1-18).
    Pin::from_zero_based(pin.zero_based() + 4 - device % 4)
}

/// The pin on the root bus when `rule` is used at each bridge; it gets the pin and index of the
/// function below the bridge.
pub fn pin_at_root(
    tree: &Tree,
    index: usize,
    pin: Pin,
    rule: impl Fn(Pin, crate::PciAddress) -> Pin,
) -> Pin {
    let mut below = index;
    tree.path_to_root(index).fold(pin, |pin, bridge| {
        let at = tree.functions[core::mem::replace(&mut below, bridge)].address;
        rule(pin, at)
    })
}

/// How the search of snippet 3.5 ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Snippet35 {
    /// The input of the entry that was copied last: of the pin if `exact`, else of whatever pin of a
    /// device on the way came last in the table. `None` means that the details stay as they were,
    /// unset, while the function reports success.
    pub input: Option<u8>,
    /// The pin of the entry was compared, and equal.
    pub exact: bool,
    /// The variable `pin` at the end. It starts 1-based, and is 0-based after the first bridge.
    pub pin: i32,
    /// Bridges that were passed.
    pub bridges: usize,
}

/// Snippet 3.5, with both mistakes of S1-19: the bridge's own device number is used instead of that
/// of the device below it, and 1 is subtracted from the pin at each bridge. The remainder is that of
/// C, which may be negative. The entry's pin is taken 1-based for the device itself, as the register
/// is, and 0-based above, as the variable then is: the reading that is kindest to the thesis.
pub fn snippet_3_5(tree: &Tree, index: usize, table: &MpTable) -> Option<Snippet35> {
    let function = tree.functions.get(index)?;
    let mut pin = i32::from(function.header.pin()?.zero_based()) + 1;
    let mut found = Snippet35 { input: None, exact: false, pin, bridges: 0 };
    let mut device = function;
    let mut bridges = tree.path_to_root(index);
    loop {
        let at = device.address;
        for entry in table.of_device(at.bus, at.device()) {
            found.input = Some(entry.input);
            let one_based = i32::from(found.bridges == 0);
            if i32::from(entry.pci_source().1.zero_based()) + one_based == pin {
                return Some(Snippet35 { exact: true, pin, ..found });
            }
        }
        let Some(bridge) = bridges.next() else { break };
        device = &tree.functions[bridge];
        // `device` is already the bridge here: the assignment before this line repeats the order of
        // the snippet. The subtraction is correct once; at the second bridge the pin is already
        // zero-based.
        pin = (pin - 1 + i32::from(device.address.device())) % 4;
        found.bridges += 1;
        found.pin = pin;
    }
    Some(found)
}
