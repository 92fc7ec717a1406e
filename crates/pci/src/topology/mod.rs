//! A simulated machine: root buses, bridges and functions, as configuration space shows them.
//!
//! Stricter than hardware. An access that is misaligned or beyond the end of a space panics; what
//! real buses answer with two voices, or with silence and a crash later, is kept as a [`TopologyFault`]:
//! two bridges that claim one bus, a base address register sized while it decodes, status bits
//! cleared by the way.

mod firmware;
mod image;
mod machines;

use alloc::vec::Vec;

use ssdyno_spec::pci::{BUS_NUMBERS, COMMAND, COMMAND_IO, COMMAND_MEMORY};

use crate::config::{ConfigAccess, ConfigSpace};
use crate::header::{BusNumbers, bar_count};
use crate::{PciAddress, bars};

pub use firmware::{APERTURES, Firmware, IRQS, boot};
pub use image::{BarSpec, BridgeSpec, CapabilitySpec, FunctionSpec};
pub use machines::PciMachine;

pub(crate) use image::Image;

/// A bus of a [`Topology`]: by the order in which it was added, whatever number it has.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct BusId(usize);

/// A function of a [`Topology`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct FunctionId(usize);

/// Something that a real machine would not forgive.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TopologyFault {
    /// Two bridges on one bus forward to the same bus.
    #[error("bridges {first} and {second} both claim {address}")]
    TwoBridges {
        /// One of them.
        first: FunctionId,
        /// The other.
        second: FunctionId,
        /// The requested value.
        address: PciAddress,
    },
    /// Ones were written to a base address register that decodes.
    #[error("BAR {bar} of {address} was sized while the function answers accesses")]
    SizedWhileDecoding {
        /// The function.
        address: PciAddress,
        /// The register.
        bar: u8,
    },
    /// Ones were written to status bits, which clears them.
    #[error("a write to the command register of {address} cleared bits of its status")]
    StatusCleared {
        /// The function.
        address: PciAddress,
    },
}

impl core::fmt::Display for FunctionId {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "#{}", self.0)
    }
}

struct Bus {
    /// The bridge that leads to it; `None` for a root bus.
    bridge: Option<usize>,
    /// Segment and number of a root bus.
    root: (u32, u8),
    functions: Vec<usize>,
}

struct Node {
    bus: BusId,
    device: u8,
    function: u8,
    image: Image,
    /// The bus behind a bridge.
    secondary: Option<BusId>,
    /// It was unplugged, and reads as ones.
    gone: bool,
}

/// The machine. After power-on no bridge has bus numbers and no register an address.
#[derive(Default)]
pub struct Topology {
    buses: Vec<Bus>,
    nodes: Vec<Node>,
    /// The forbidden events.
    pub faults: Vec<TopologyFault>,
}

impl Topology {
    /// Nothing yet.
    pub fn new() -> Topology {
        Topology::default()
    }

    /// Adds a root bus.
    pub fn root(&mut self, segment: u32, number: u8) -> BusId {
        self.add_bus(None, (segment, number))
    }

    /// Adds a function.
    ///
    /// # Panics
    /// The place is taken, or does not exist: the description is wrong.
    pub fn function(
        &mut self,
        bus: BusId,
        device: u8,
        function: u8,
        spec: &FunctionSpec,
    ) -> FunctionId {
        FunctionId(self.add(bus, device, function, Image::of_function(spec)))
    }

    /// Adds a bridge, and the bus behind it.
    ///
    /// # Panics
    /// As for [`function`](Topology::function).
    pub fn bridge(
        &mut self,
        bus: BusId,
        device: u8,
        function: u8,
        spec: &BridgeSpec,
    ) -> (FunctionId, BusId) {
        let index = self.add(bus, device, function, Image::of_bridge(spec));
        let secondary = self.add_bus(Some(index), (0, 0));
        self.nodes[index].secondary = Some(secondary);
        (FunctionId(index), secondary)
    }

    /// Unplugs a function: it reads as ones from now on, and what is behind it cannot be reached.
    pub fn unplug(&mut self, function: FunctionId) {
        self.nodes[function.0].gone = true;
    }

    /// Sets bytes of a configuration space whether or not they can be written: to break it.
    pub fn poke(&mut self, function: FunctionId, offset: u16, value: u32) {
        self.nodes[function.0].image.poke(offset, value);
    }

    /// Puts the expansion ROM of `function`, if it has one, to `address` and enables it, as firmware does.
    pub fn enable_rom(&mut self, function: FunctionId, address: u32) {
        let image = &mut self.nodes[function.0].image;
        let layout = image.layout();
        bars::set_rom(image, layout, Some(address.into()));
    }

    /// The address at which `function` is reached with the bus numbers that bridges have now.
    pub fn address(&self, function: FunctionId) -> Option<PciAddress> {
        let node = &self.nodes[function.0];
        let (segment, bus) = self.number(node.bus)?;
        let address = PciAddress::new(segment, bus, node.device, node.function);
        let reached = self.resolve(address, &mut Vec::new());
        (reached == Some(function.0)).then_some(address)
    }

    /// The bridge above `function`.
    pub fn parent(&self, function: FunctionId) -> Option<FunctionId> {
        self.buses[self.nodes[function.0].bus.0].bridge.map(FunctionId)
    }

    /// The bus that `function` is on.
    pub fn bus(&self, function: FunctionId) -> BusId {
        self.nodes[function.0].bus
    }

    /// A copy of the configuration space of `function`: writes to it, as for sizing, have no effect here.
    pub fn space(&self, function: FunctionId) -> impl ConfigSpace + use<> {
        self.nodes[function.0].image.clone()
    }

    /// All functions, in the order in which they were added.
    pub fn functions(&self) -> impl Iterator<Item = FunctionId> {
        (0..self.nodes.len()).map(FunctionId)
    }

    fn add_bus(&mut self, bridge: Option<usize>, root: (u32, u8)) -> BusId {
        self.buses.push(Bus { bridge, root, functions: Vec::new() });
        BusId(self.buses.len() - 1)
    }

    fn add(&mut self, bus: BusId, device: u8, function: u8, mut image: Image) -> usize {
        let place = PciAddress::new(0, 0, device, function);
        let mates: Vec<usize> = self.buses[bus.0].functions.clone();
        let same = |&mate: &usize| self.nodes[mate].device == device;
        let taken = mates.iter().any(|m| same(m) && self.nodes[*m].function == function);
        assert!(!taken, "device {device} function {} is there already", place.function());
        let mates: Vec<usize> = mates.into_iter().filter(same).collect();
        if !mates.is_empty() {
            image.set_multi_function();
            mates.iter().for_each(|&mate| self.nodes[mate].image.set_multi_function());
        }
        let index = self.nodes.len();
        self.nodes.push(Node { bus, device, function, image, secondary: None, gone: false });
        self.buses[bus.0].functions.push(index);
        index
    }

    /// Segment and number of a bus, as its bridge has it now.
    fn number(&self, bus: BusId) -> Option<(u32, u8)> {
        let Bus { bridge, root, .. } = &self.buses[bus.0];
        let Some(bridge) = *bridge else { return Some(*root) };
        let (segment, _) = self.number(self.nodes[bridge].bus)?;
        let secondary = self.bus_numbers(bridge).secondary;
        (secondary != 0).then_some((segment, secondary))
    }

    fn bus_numbers(&self, bridge: usize) -> BusNumbers {
        let dword = self.nodes[bridge].image.read(BUS_NUMBERS);
        let [primary, secondary, subordinate, _] = dword.to_le_bytes();
        BusNumbers { primary, secondary, subordinate }
    }

    /// The function that responds at `address`, found downwards from the root bus as bridges
    /// forward it.
    fn resolve(&self, address: PciAddress, faults: &mut Vec<TopologyFault>) -> Option<usize> {
        let roots = self.buses.iter().enumerate().filter(|(_, bus)| {
            bus.bridge.is_none() && bus.root.0 == address.segment && bus.root.1 <= address.bus
        });
        let (root, bus) = roots.max_by_key(|(_, bus)| bus.root.1)?;
        let mut at = root;
        let mut number = bus.root.1;
        // Each step goes one bridge down; there is no way up again.
        while number != address.bus {
            let forwards = |&&index: &&usize| {
                let BusNumbers { secondary, subordinate, .. } = self.bus_numbers(index);
                let node = &self.nodes[index];
                let in_range = secondary <= address.bus && address.bus <= subordinate;
                node.secondary.is_some() && !node.gone && secondary != 0 && in_range
            };
            let mut claims = self.buses[at].functions.iter().filter(forwards);
            let bridge = *claims.next()?;
            if let Some(&other) = claims.next() {
                let (first, second) = (FunctionId(bridge), FunctionId(other));
                faults.push(TopologyFault::TwoBridges { first, second, address });
            }
            at = self.nodes[bridge].secondary?.0;
            number = self.bus_numbers(bridge).secondary;
        }
        let functions = self.buses[at].functions.iter().copied();
        functions.into_iter().find(|&index| {
            let node = &self.nodes[index];
            let place = (node.device, node.function) == (address.device(), address.function());
            place && !node.gone
        })
    }

    fn check_write(&mut self, index: usize, address: PciAddress, offset: u16, value: u32) {
        let image = &self.nodes[index].image;
        let decodes = image.read(COMMAND) as u16 & (COMMAND_IO | COMMAND_MEMORY) != 0;
        let count = bar_count(image.layout()) as u8;
        let bar = (0..count).find(|&bar| bars::bar_offset(bar) == offset);
        if let Some(bar) = bar.filter(|_| decodes && value == u32::MAX) {
            self.faults.push(TopologyFault::SizedWhileDecoding { address, bar });
        }
        if offset == COMMAND && value >> 16 != 0 {
            self.faults.push(TopologyFault::StatusCleared { address });
        }
    }
}

impl ConfigAccess for Topology {
    fn read(&mut self, address: PciAddress, offset: u16) -> u32 {
        assert!(offset.is_multiple_of(4), "a dword of configuration space at {offset:#x}");
        let mut faults = Vec::new();
        let found = self.resolve(address, &mut faults);
        self.faults.append(&mut faults);
        found.map_or(u32::MAX, |index| self.nodes[index].image.read(offset))
    }

    fn write(&mut self, address: PciAddress, offset: u16, value: u32) {
        assert!(offset.is_multiple_of(4), "a dword of configuration space at {offset:#x}");
        let mut faults = Vec::new();
        let found = self.resolve(address, &mut faults);
        self.faults.append(&mut faults);
        if let Some(index) = found {
            self.check_write(index, address, offset, value);
            self.nodes[index].image.write(offset, value);
        }
    }

    fn bytes(&mut self, address: PciAddress) -> u16 {
        let found = self.resolve(address, &mut Vec::new());
        found.map_or(0, |index| self.nodes[index].image.bytes())
    }
}
