//! Finding all functions of a machine, through its bridges (S1-8).

use alloc::vec::Vec;

use ssdyno_spec::pci::VENDOR_ID;

use crate::PciAddress;
use crate::address::{DEVICES, FUNCTIONS};
use crate::config::{At, ConfigAccess, ConfigSpace};
use crate::numbers;
use crate::tree::{Function, Note, Tree};

/// A bus that no bridge leads to, and the bus numbers that are the host's to use behind it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RootBus {
    /// Its segment.
    pub segment: u32,
    /// Its number.
    pub bus: u8,
    /// The highest number that may be given to a bus behind it.
    pub bus_max: u8,
}

impl RootBus {
    /// The only root bus of a small machine: bus 0 of segment 0, with all numbers.
    pub const FIRST: RootBus = RootBus { segment: 0, bus: 0, bus_max: 255 };
}

/// All functions behind `roots`. If the access knows its functions beforehand, those are read and nothing is written.
/// Else buses are scanned, and bridges that firmware left without sound bus numbers get some (S1-9); sound ones keep
/// theirs, as long as that leaves enough for the others.
pub fn scan(access: &mut dyn ConfigAccess, roots: &[RootBus]) -> Tree {
    if let Some(known) = access.known() {
        return Tree::new(known.into_iter().map(|at| Function::read(access, at)).collect());
    }
    let mut notes: Vec<Note> = Vec::new();
    let mut functions = Vec::new();
    for root in roots {
        if !numbers::are_sound(access, *root) {
            numbers::give(access, *root, &mut notes);
        }
        functions.extend(walk(access, *root));
    }
    let mut tree = Tree::new(functions);
    tree.notes.splice(0..0, notes);
    tree
}

/// Reads everything behind `root` with the bus numbers as they are. Each bus is visited once.
pub(crate) fn walk(access: &mut dyn ConfigAccess, root: RootBus) -> Vec<Function> {
    let mut functions = Vec::new();
    let mut visited = [false; 256];
    let mut waiting = alloc::vec![(root.bus, false)];
    while let Some((bus, one_device)) = waiting.pop() {
        // Two bridges can claim one secondary bus. Without the check its functions would appear
        // twice, and a broken pair of bridges could make the scan endless.
        if core::mem::replace(&mut visited[usize::from(bus)], true) {
            continue;
        }
        for function in on_bus(access, root.segment, bus, one_device) {
            if let Some(numbers) = function.header.bridge().filter(|n| n.secondary > bus) {
                waiting.push((numbers.secondary, leads_to_one_device(&function)));
            }
            functions.push(function);
        }
    }
    functions
}

/// The functions on one bus. Only device 0 is asked for where `one_device` says so: on a link some
/// devices answer to every number.
pub(crate) fn on_bus(
    access: &mut dyn ConfigAccess,
    segment: u32,
    bus: u8,
    one_device: bool,
) -> Vec<Function> {
    let mut found = Vec::new();
    for device in 0..if one_device { 1 } else { DEVICES } {
        let first = PciAddress::new(segment, bus, device, 0);
        // Without function 0 there is no device (PCI clause 3.2.2.3.4).
        if !answers(access, first) {
            continue;
        }
        let function = Function::read(access, first);
        // A single-function device may decode only the device number and answer for all eight
        // functions. A probe of functions 1 to 7 would then find seven copies.
        let count = if function.header.multi_function { FUNCTIONS } else { 1 };
        found.push(function);
        for number in 1..count {
            let address = first.with_function(number);
            if answers(access, address) {
                found.push(Function::read(access, address));
            }
        }
    }
    found
}

/// True if a link with one device is behind `bridge`.
pub(crate) fn leads_to_one_device(bridge: &Function) -> bool {
    bridge.capabilities.pcie().is_some_and(|pcie| pcie.port.has_one_device_behind())
}

/// Whether there is a function. Vendor 0xffff means no function (PCI clause 6.2.1); some bridges return zeros instead.
/// 0xffff0001 means *retry later* (PCIe clause 2.3.2); software that does not wait cannot use the function.
fn answers(access: &mut dyn ConfigAccess, address: PciAddress) -> bool {
    let identifiers = At::new(access, address).read32(VENDOR_ID);
    // FFFFh means that no device answers; some broken boards return 0000h for an empty slot.
    // FFFF0001h is Configuration Request Retry Status: the device is not ready yet.
    !matches!(identifiers as u16, 0xffff | 0x0000) && identifiers != 0xffff_0001
}
