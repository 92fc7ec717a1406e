//! Firmware of a simulated machine: what a driver finds when it starts.

use alloc::borrow::ToOwned;
use alloc::vec::Vec;

use ssdyno_spec::pci::mp::{BUS_PCI, INTERRUPT_VECTORED};
use ssdyno_spec::pci::{COMMAND, INTERRUPT_LINE};

use crate::assign::Apertures;
use crate::bars::{set_bar, size_bars};
use crate::config::{At, ConfigSpace};
use crate::mp::{IoApic, MpBus, MpInterrupt, MpTable, Processor};
use crate::routing::steps;
use crate::tree::Tree;
use crate::window::Range;
use crate::{Pin, RootBus, assign, scan};

use super::{FunctionId, Topology};

/// How firmware left the machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Firmware {
    /// It set up everything, and wrote an MP table of what is on bus 0.
    Full,
    /// As before, but it does not know this function and left it alone (S1-23): no addresses, no
    /// interrupt line.
    Overlooks(FunctionId),
    /// It did nothing, and there is no MP table: the state is that after power-on.
    None,
}

/// Addresses behind the root bus, as QEMU's machine `pc` has them.
pub const APERTURES: Apertures = Apertures {
    io: Some(Range { start: 0xc000, bytes: 0x4000 }),
    memory: Range { start: 0xc000_0000, bytes: 0x3ec0_0000 },
    prefetch: Some(Range { start: 0x1_0000_0000, bytes: 0x1f_0000_0000 }),
};

/// What the four interrupt links of the chipset are connected to, as in QEMU's machine `pc`.
pub const IRQS: [u8; 4] = [10, 10, 11, 11];

/// Runs firmware, and gives the MP table it wrote.
///
/// The chipset connects pin p of device d on bus 0 to link (p + d - 1) mod 4, as the PIIX3 in QEMU's
/// machine `pc` does; firmware enters the interrupt of every pin, swizzled, into the interrupt line
/// registers. Like SeaBIOS it lists in the MP table only the pins that functions on bus 0 have.
pub fn boot(topology: &mut Topology, firmware: Firmware) -> Option<MpTable> {
    if firmware == Firmware::None {
        return None;
    }
    let mut tree = scan(topology, &[RootBus::FIRST]);
    assign(topology, &mut tree, 0, &APERTURES);
    let mut table = MpTable {
        revision: 4,
        oem: "SSDYNO".to_owned(),
        product: "SIMULATED".to_owned(),
        local_apic_address: 0xfee0_0000,
        processors: [Processor {
            apic_id: 0,
            apic_version: 0x14,
            flags: 3,
            signature: 0x600,
            features: 0x201,
        }]
        .into(),
        buses: [MpBus { id: 0, kind: BUS_PCI }, MpBus { id: 1, kind: *b"ISA   " }].into(),
        io_apics: [IoApic { id: 0, version: 0x11, flags: 1, address: 0xfec0_0000 }].into(),
        ..MpTable::default()
    };
    for index in 0..tree.functions.len() {
        let address = tree.functions[index].address;
        let Some((irq, pin)) = irq(&tree, index) else { continue };
        let mut space = At::new(topology, address);
        let dword = space.read32(INTERRUPT_LINE) & !0xff;
        space.write32(INTERRUPT_LINE, dword | u32::from(irq));
        // Firmware lists only the root bus, as the MP specification allows. Devices behind bridges
        // must then be found by swizzling, which is the case that S1-15 examines.
        if address.bus == 0 && table.lookup(0, address.device(), pin).is_none() {
            table.io_interrupts.push(MpInterrupt {
                kind: INTERRUPT_VECTORED,
                flags: 1,
                source_bus: 0,
                source_irq: address.device() << 2 | pin.zero_based(),
                apic: 0,
                input: irq,
            });
        }
    }
    if let Firmware::Overlooks(function) = firmware {
        overlook(topology, function);
        let root = topology.parent(function).is_none();
        if let Some(address) = topology.address(function).filter(|_| root) {
            table.io_interrupts.retain(|entry| entry.pci_source().0 != address.device());
        }
    }
    Some(table)
}

/// The interrupt of a function's pin, and the pin.
fn irq(tree: &Tree, index: usize) -> Option<(u8, Pin)> {
    let function = &tree.functions[index];
    let pin = function.header.pin()?;
    let steps: Vec<_> = steps(tree, index, pin);
    let (device, at_root) =
        steps.last().map_or((function.address.device(), pin), |s| (s.bridge.device(), s.pin));
    // The rotation by the device number spreads the INTA pins of the slots over four links. Without
    // it, nearly all functions would share one interrupt, because most use INTA only (S1-20).
    let link = usize::from(at_root.zero_based() + device + 3) % 4;
    Some((IRQS[link], pin))
}

/// Puts a function back to where power-on left it; 255 is what firmware writes for *unknown*.
fn overlook(topology: &mut Topology, function: FunctionId) {
    let Some(address) = topology.address(function) else { return };
    let layout = topology.nodes[function.0].image.layout();
    let mut space = At::new(topology, address);
    // S1-23: a function that firmware does not recognise stays undecoded and without addresses. A
    // driver must find, configure and use it all the same.
    space.write32(COMMAND, 0);
    for bar in size_bars(&mut space, layout) {
        set_bar(&mut space, &bar, 0);
    }
    let dword = space.read32(INTERRUPT_LINE) | 0xff;
    space.write32(INTERRUPT_LINE, dword);
}
