//! The functions of a machine, and which bridge each is behind.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::fmt;

use crate::capability::{CapabilityList, ListFault};
use crate::config::{At, ConfigAccess};
use crate::header::ConfigHeader;
use crate::{DeviceClass, PciAddress};

/// One function, as in its configuration space.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Function {
    /// Where it is.
    pub address: PciAddress,
    /// Its header.
    pub header: ConfigHeader,
    /// Its capabilities.
    pub capabilities: CapabilityList,
    /// Index of the bridge whose secondary bus it is on; `None` on a root bus (S1-11).
    pub parent: Option<usize>,
}

impl Function {
    /// Reads the function at `address`, whose parent is not known yet.
    pub fn read(access: &mut dyn ConfigAccess, address: PciAddress) -> Function {
        let mut space = At::new(access, address);
        let header = ConfigHeader::read(&mut space);
        let capabilities = CapabilityList::read(&mut space, header.layout);
        Function { address, header, capabilities, parent: None }
    }

    /// Whether firmware set it up: gave an address to one of its base address registers, or let it
    /// answer (S1-23). Only for classes that cannot do without registers; `None` for others.
    pub fn firmware_knew_it(&self) -> Option<bool> {
        // Bridges and system devices work without BARs, so zero registers prove nothing for them.
        // Storage and network functions need registers, so zero means that firmware did not know
        // them.
        if !matches!(self.header.device_class(), DeviceClass::Storage | DeviceClass::Network) {
            return None;
        }
        let decodes = self.header.command & 3 != 0;
        let address = |bar: u32| if bar & 1 != 0 { bar & !3 } else { bar & !0xf };
        Some(decodes || self.header.bars.iter().any(|&bar| address(bar) != 0))
    }
}

/// Something in configuration space that is not as it should be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Note {
    /// Of which function.
    pub address: PciAddress,
    /// What.
    pub what: Oddity,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.address, self.what)
    }
}

/// An irregularity.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Oddity {
    /// See [`ListFault`].
    #[error("{0}")]
    List(ListFault),
    /// Every register reads as ones.
    #[error("the function does not answer; it was removed or has lost its power")]
    Gone,
    /// A register holds what the specification reserves.
    #[error("interrupt pin {0} does not exist; treated as none")]
    NoSuchPin(u8),
    /// The bridge leads back to its own bus or one before it.
    #[error(
        "the bridge leads to bus {secondary:#04x}, which is not behind bus {bus:#04x}; ignored"
    )]
    LeadsUp {
        /// The bus it is on.
        bus: u8,
        /// The bus it leads to.
        secondary: u8,
    },
    /// The bridge ends before it begins.
    #[error(
        "the bridge leads to buses {secondary:#04x} to {subordinate:#04x}, which is not a range"
    )]
    EmptyRange {
        /// The first bus behind it.
        secondary: u8,
        /// The last one.
        subordinate: u8,
    },
    /// The primary bus number is wrong.
    #[error("the register of the bridge names bus {primary:#04x} as its primary bus")]
    WrongPrimary {
        /// What it says.
        primary: u8,
    },
    /// Two bridges lead to one bus.
    #[error("the bridge leads to bus {secondary:#04x}, as {first} does; ignored")]
    SameBus {
        /// That bus.
        secondary: u8,
        /// The bridge that is believed.
        first: PciAddress,
    },
    /// Buses behind the bridge are not all behind the bridge before it.
    #[error("the bridge leads up to bus {subordinate:#04x}, the bridge before it to {limit:#04x}")]
    BeyondParent {
        /// The last bus behind it.
        subordinate: u8,
        /// The last bus behind its parent.
        limit: u8,
    },
    /// No bus number is left.
    #[error(
        "there is no bus number left for the bus behind the bridge; its devices cannot be reached"
    )]
    NoBusNumber,
}

/// All functions of a machine in the order of their addresses.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Tree {
    /// The functions.
    pub functions: Vec<Function>,
    /// What is wrong with them.
    pub notes: Vec<Note>,
}

impl Tree {
    /// Links `functions` to their parents.
    pub fn new(mut functions: Vec<Function>) -> Tree {
        functions.sort_by_key(|function| function.address);
        // A dump can contain a function twice. Two entries would produce two bridges for one
        // secondary bus, and the tree would report an oddity that the machine does not have.
        functions.dedup_by_key(|function| function.address);
        let mut tree = Tree { functions, notes: Vec::new() };
        tree.note_oddities();
        let bridges = tree.bridges();
        for function in &mut tree.functions {
            let bus = (function.address.segment, function.address.bus);
            function.parent = bridges.get(&bus).copied();
        }
        tree.note_ranges();
        tree
    }

    /// The function at `address`.
    pub fn find(&self, address: PciAddress) -> Option<usize> {
        self.functions.binary_search_by_key(&address, |function| function.address).ok()
    }

    /// The bridges between `index` and the root, the nearest first.
    ///
    /// Each is on a lower bus than the one before, so there are less than 256.
    pub fn path_to_root(&self, index: usize) -> impl Iterator<Item = usize> {
        let parent = |index: &usize| self.functions.get(*index).and_then(|f| f.parent);
        core::iter::successors(parent(&index), parent)
    }

    /// The functions behind `bridge`, or on root buses.
    pub fn behind(&self, bridge: Option<usize>) -> impl Iterator<Item = usize> {
        let here = move |(index, f): (usize, &Function)| (f.parent == bridge).then_some(index);
        self.functions.iter().enumerate().filter_map(here)
    }

    /// The bridge that leads to each bus, by segment and bus. A bridge must lead to a higher bus
    /// than its own, so nobody is its own ancestor; the first one of a bus is believed.
    fn bridges(&mut self) -> BTreeMap<(u32, u8), usize> {
        let mut bridges = BTreeMap::new();
        for (index, function) in self.functions.iter().enumerate() {
            let PciAddress { segment, bus, .. } = function.address;
            let Some(numbers) = function.header.bridge() else { continue };
            let secondary = numbers.secondary;
            // A bridge that leads to its own or a lower bus makes a cycle in the parent links, and
            // `path_to_root` would not end. S1-11: a device is never its own parent.
            let oddity = if secondary <= bus {
                Oddity::LeadsUp { bus, secondary }
            } else if let Some(&first) = bridges.get(&(segment, secondary)) {
                let first: &Function = &self.functions[first];
                Oddity::SameBus { secondary, first: first.address }
            } else {
                bridges.insert((segment, secondary), index);
                continue;
            };
            self.notes.push(Note { address: function.address, what: oddity });
        }
        bridges
    }

    fn note_oddities(&mut self) {
        for function in &self.functions {
            let address = function.address;
            let mut note = |what| self.notes.push(Note { address, what });
            if function.header.is_gone() {
                note(Oddity::Gone);
                continue;
            }
            if function.header.interrupt_pin > 4 {
                note(Oddity::NoSuchPin(function.header.interrupt_pin));
            }
            function.capabilities.faults.iter().for_each(|&fault| note(Oddity::List(fault)));
        }
    }

    fn note_ranges(&mut self) {
        for function in &self.functions {
            let address = function.address;
            let Some(numbers) = function.header.bridge() else { continue };
            if numbers.secondary <= address.bus {
                continue;
            }
            let mut note = |what| self.notes.push(Note { address, what });
            let (secondary, subordinate) = (numbers.secondary, numbers.subordinate);
            if subordinate < secondary {
                note(Oddity::EmptyRange { secondary, subordinate });
            }
            if numbers.primary != address.bus {
                note(Oddity::WrongPrimary { primary: numbers.primary });
            }
            let limit = function.parent.and_then(|parent| self.functions[parent].header.bridge());
            if let Some(limit) = limit.map(|n| n.subordinate).filter(|&l| subordinate > l) {
                note(Oddity::BeyondParent { subordinate, limit });
            }
        }
    }
}
