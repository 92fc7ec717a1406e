//! Where the interrupt pin of a function arrives (S1-15).
//!
//! Sources, the best first: an entry of the MP table, for the function itself or, swizzled, for the
//! first bridge above it that has one; what the operating system found out (ACPI, say); the interrupt
//! line register that firmware left. An entry of another pin of the same device is no entry: taking
//! it is what makes guests without ACPI time out on a device behind a bridge.

pub mod quirks;

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::{self, Write};

use crate::mp::MpTable;
use crate::tree::Tree;
use crate::{PciAddress, Pin};

/// The pin of the bridge that pin `pin` of device `device` on its secondary bus is wired to (Bridge
/// clause 9.1, table 9-1; S1-16).
pub const fn swizzle(pin: Pin, device: u8) -> Pin {
    Pin::from_zero_based(pin.zero_based() + device % 4)
}

/// One bridge on the way to the root.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RoutingStep {
    /// The bridge.
    pub bridge: PciAddress,
    /// Its pin that the interrupt comes out of.
    pub pin: Pin,
}

/// No entry for the pin, nor for those of the bridges above it (`VXERR_NEXIST`, S1-15).
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("NEXIST: the MP table has no entry for {pin} of {at}, nor for anything on the way there")]
pub struct NoEntry {
    /// The last function that was looked up: on a root bus.
    pub at: PciAddress,
    /// Its pin.
    pub pin: Pin,
}

/// An entry of the MP table that was found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry {
    /// Bridges between the function and the one that the entry is for; 0 is the function itself.
    pub bridges: usize,
    /// The I/O APIC; 255 is all of them.
    pub apic: u8,
    /// Its input. With one I/O APIC this is the number of the interrupt.
    pub input: u8,
}

ssdyno_block::named! {
    /// How an interrupt was found.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
    pub enum Via: name {
        /// The MP table has the function.
        MpTable = "mp-table",
        /// The MP table has a bridge above it.
        Swizzle = "swizzle",
        /// The operating system says it.
        OperatingSystem = "operating-system",
        /// The interrupt line register says it.
        InterruptLine = "interrupt-line",
    }
}

/// The pin of a function, and all that is known of where it arrives.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Route {
    /// The function.
    pub function: PciAddress,
    /// Its pin.
    pub pin: Pin,
    /// The bridges up to the root, the nearest first.
    pub steps: Vec<RoutingStep>,
    /// The entry of the MP table; `None` if there is no table.
    pub mp: Option<Result<Entry, NoEntry>>,
    /// The input that an MP entry of *another* pin of the same device on the root bus has: looks
    /// near, and is wrong.
    pub other_pin: Option<(Pin, u8)>,
    /// The interrupt from the operating system.
    pub operating_system: Option<u32>,
    /// The interrupt line register; `None` for 0 and 255, which mean that nothing is connected, or
    /// that it is not known (PCI clause 6.2.4).
    pub interrupt_line: Option<u8>,
}

impl Route {
    /// Collects what there is about the pin of function `index`; `None` if it has none.
    /// `operating_system` is its interrupt for this pin.
    pub fn find(
        tree: &Tree,
        index: usize,
        mp: Option<&MpTable>,
        operating_system: Option<u32>,
    ) -> Option<Route> {
        let function = tree.functions.get(index).filter(|f| !f.header.is_gone())?;
        let pin = function.header.pin()?;
        let steps = steps(tree, index, pin);
        let line = function.header.interrupt_line;
        let found = mp.map(|table| look_up(table, function.address, pin, &steps));
        let top = top(function.address, pin, &steps);
        // The entry of another pin is looked up only to explain a failure. It is never used: a
        // guest without ACPI that takes such an entry waits for an interrupt that belongs to
        // another device.
        let other = mp.filter(|_| found.is_some_and(|entry| entry.is_err())).and_then(|table| {
            let entry = table.of_device(top.0.bus, top.0.device()).next()?;
            Some((entry.pci_source().1, entry.input))
        });
        Some(Route {
            function: function.address,
            pin,
            steps,
            mp: found,
            other_pin: other,
            operating_system,
            interrupt_line: (line != 0 && line != 255).then_some(line),
        })
    }

    /// The pin on the root bus.
    pub fn pin_at_root(&self) -> Pin {
        self.steps.last().map_or(self.pin, |step| step.pin)
    }

    /// All that say a number, the best first.
    pub fn sources(&self) -> Vec<(Via, u32)> {
        // The order is from the most specific source to the least. The interrupt line register is
        // last, because firmware writes it for the PIC, and its number is invalid with an I/O APIC.
        let entry = self.mp.and_then(Result::ok);
        let via = |entry: Entry| if entry.bridges == 0 { Via::MpTable } else { Via::Swizzle };
        let sources = [
            entry.map(|entry| (via(entry), u32::from(entry.input))),
            self.operating_system.map(|irq| (Via::OperatingSystem, irq)),
            self.interrupt_line.map(|line| (Via::InterruptLine, u32::from(line))),
        ];
        sources.into_iter().flatten().collect()
    }

    /// The best of them.
    pub fn chosen(&self) -> Option<(Via, u32)> {
        self.sources().first().copied()
    }

    /// True if two of them contain different numbers.
    pub fn disagrees(&self) -> bool {
        let sources = self.sources();
        sources.iter().any(|(_, irq)| sources.first().is_some_and(|(_, first)| first != irq))
    }

    /// Why the choice fell as it did, in one sentence or a few.
    pub fn explanation(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = self.explain(&mut text);
        text
    }

    fn explain(&self, text: &mut String) -> fmt::Result {
        match self.mp {
            None => write!(text, "no MP table; ")?,
            Some(Ok(Entry { bridges, apic, input })) => {
                let at = top(self.function, self.pin, self.steps.get(..bridges).unwrap_or(&[]));
                write!(text, "the MP table leads {} of {} to input {input} of ", at.1, at.0)?;
                match apic {
                    0xff => write!(text, "all I/O APICs; ")?,
                    id => write!(text, "I/O APIC {id}; ")?,
                }
            }
            Some(Err(error)) => {
                write!(text, "{error}; ")?;
                if let Some((pin, input)) = self.other_pin {
                    let (at, _) = top(self.function, self.pin, &self.steps);
                    let it = "is another interrupt";
                    write!(text, "its entry for {pin} of {at}, input {input}, {it}; ")?;
                }
            }
        }
        if let Some(irq) = self.operating_system {
            write!(text, "the operating system says {irq}; ")?;
        }
        match self.interrupt_line {
            Some(line) => {
                write!(text, "the interrupt line register (written by firmware) contains {line}")?
            }
            None => write!(text, "firmware left the interrupt line register unset")?,
        }
        if self.interrupt_line.is_some_and(|line| line > 15) {
            write!(text, ", which the specification reserves")?;
        }
        match self.chosen() {
            Some((via, irq)) if self.disagrees() => {
                write!(text, ". They disagree: {} ({irq}) is used", via.name())
            }
            Some((via, irq)) => write!(text, ". Used: {} ({irq})", via.name()),
            None => write!(
                text,
                ". The interrupt is unknown: use message signalled interrupts, or poll"
            ),
        }
    }
}

/// The way of `pin` through the bridges above function `index`, each swizzling it by the number of
/// the device that is below it; CardBus bridges bring it out at their own.
pub fn steps(tree: &Tree, index: usize, pin: Pin) -> Vec<RoutingStep> {
    let Some(mut below) = tree.functions.get(index) else { return Vec::new() };
    let mut pin = pin;
    let mut steps = Vec::new();
    for bridge in tree.path_to_root(index).map(|bridge| &tree.functions[bridge]) {
        // The swizzle uses the device number of the function below the bridge, not that of the
        // bridge. Snippet 3.5 of the thesis uses the bridge (S1-19), which fails whenever both
        // numbers differ.
        pin = behind(bridge, below, pin);
        below = bridge;
        steps.push(RoutingStep { bridge: bridge.address, pin });
    }
    steps
}

/// The pin of `bridge` at which `pin` of `device` behind it comes out.
fn behind(bridge: &crate::tree::Function, device: &crate::tree::Function, pin: Pin) -> Pin {
    // A socket has one interrupt, and the bridge brings it out at its own pin, which of the second
    // function of a bridge for two sockets is INTB (PC Card Standard 8.0, volume 2: CINT#).
    let socket = bridge.header.layout == ssdyno_spec::pci::LAYOUT_CARDBUS;
    match bridge.header.pin().filter(|_| socket) {
        Some(own) => own,
        None => swizzle(pin, device_on_link(bridge, device)),
    }
}

/// The number of `device` below `bridge`; where functions 8 to 255 are in use it is 0 for all of
/// them, and its bits belong to the function (PCIe clause 6.13).
fn device_on_link(bridge: &crate::tree::Function, device: &crate::tree::Function) -> u8 {
    let ari = bridge.capabilities.pcie().is_some_and(|pcie| pcie.ari_forwarding);
    if ari { 0 } else { device.address.device() }
}

/// The function and pin at the end of `steps`.
fn top(function: PciAddress, pin: Pin, steps: &[RoutingStep]) -> (PciAddress, Pin) {
    steps.last().map_or((function, pin), |step| (step.bridge, step.pin))
}

fn look_up(
    table: &MpTable,
    function: PciAddress,
    pin: Pin,
    steps: &[RoutingStep],
) -> Result<Entry, NoEntry> {
    let places = core::iter::once((function, pin));
    let places = places.chain(steps.iter().map(|step| (step.bridge, step.pin)));
    for (bridges, (at, pin)) in places.enumerate() {
        // The table knows segment 0 only.
        // The MP specification knows no PCI segments. Without this filter, a device on segment 1
        // would receive the interrupt of the device with the same bus and number on segment 0.
        let entry = table.lookup(at.bus, at.device(), pin).filter(|_| at.segment == 0);
        if let Some(entry) = entry {
            return Ok(Entry { bridges, apic: entry.apic, input: entry.input });
        }
    }
    let (at, pin) = top(function, pin, steps);
    Err(NoEntry { at, pin })
}
