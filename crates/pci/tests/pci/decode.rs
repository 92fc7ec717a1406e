//! Which addresses are decoded, and whether each has one owner that can be reached.

use ssdyno_pci::bars::{Bar, BarSpace, enabled_rom, size_bars};
use ssdyno_pci::config::ConfigSpace;
use ssdyno_pci::topology::{FunctionId, Topology};
use ssdyno_pci::window::{Range, WindowKind, read_window};
use ssdyno_spec::pci::{COMMAND, COMMAND_IO, COMMAND_MEMORY};

/// A base address register, or an expansion ROM, that answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Decoded {
    /// Of which function.
    pub(crate) function: FunctionId,
    /// Which register; an expansion ROM has index [`ROM`](Decoded::ROM).
    pub(crate) bar: Bar,
    /// The addresses.
    pub(crate) range: Range,
}

impl Decoded {
    /// The index of the register of an expansion ROM, which is not a base address register.
    pub(crate) const ROM: u8 = 6;

    fn is_io(&self) -> bool {
        self.bar.space == BarSpace::Io
    }
}

/// Addresses that do not work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum DecodeFault {
    /// Two registers answer to one address.
    Overlap(Decoded, Decoded),
    /// The address is not a multiple of the size.
    Misaligned(Decoded),
    /// A bridge above does not pass the addresses on.
    Unreachable(Decoded, FunctionId),
    /// A bridge beside passes them on, too.
    Claimed(Decoded, FunctionId),
}

/// What a machine decodes.
pub(crate) trait Decode {
    /// Everything that answers to an access.
    fn decoded(&self) -> Vec<Decoded>;

    /// The errors of the decoded addresses.
    fn decode_faults(&self) -> Vec<DecodeFault>;
}

impl Decode for Topology {
    fn decoded(&self) -> Vec<Decoded> {
        let mut all = Vec::new();
        for function in self.functions() {
            let mut space = self.space(function);
            let command = space.read16(COMMAND);
            let layout = layout(&mut space);
            let bars = size_bars(&mut space, layout);
            let rom = enabled_rom(&mut space, layout).map(|rom| Bar {
                index: Decoded::ROM,
                space: BarSpace::Memory { wide: false, prefetchable: false },
                bytes: rom.bytes,
                address: rom.address,
            });
            for bar in bars.into_iter().chain(rom) {
                let is_io = bar.space == BarSpace::Io;
                let enabled = command & if is_io { COMMAND_IO } else { COMMAND_MEMORY } != 0;
                let range = Range { start: bar.address, bytes: bar.bytes };
                if enabled {
                    all.push(Decoded { function, bar, range });
                }
            }
        }
        all
    }

    fn decode_faults(&self) -> Vec<DecodeFault> {
        let all = self.decoded();
        let mut faults = Vec::new();
        for (index, one) in all.iter().enumerate() {
            if !one.range.start.is_multiple_of(one.bar.bytes) {
                faults.push(DecodeFault::Misaligned(*one));
            }
            for other in &all[index + 1..] {
                if one.is_io() == other.is_io() && one.range.overlaps(other.range) {
                    faults.push(DecodeFault::Overlap(*one, *other));
                }
            }
            check_path(self, one, &mut faults);
        }
        faults
    }
}

/// The layout of the header; 1 is that of a bridge.
fn layout(space: &mut dyn ConfigSpace) -> u8 {
    (space.read32(0x0c) >> 16) as u8 & 0x7f
}

/// All bridges above pass it on, and no bridge beside one of them does.
fn check_path(topology: &Topology, one: &Decoded, faults: &mut Vec<DecodeFault>) {
    let mut below = one.function;
    loop {
        let bus = topology.bus(below);
        for mate in topology.functions().filter(|mate| topology.bus(*mate) == bus) {
            // A bridge beside the path can have a wrong window that claims the same address.
            // Two agents that claim one transaction damage both transfers on a conventional
            // bus.
            let aside = mate != below && layout(&mut topology.space(mate)) == 1;
            if aside && passes_on(topology, mate, one).1 {
                faults.push(DecodeFault::Claimed(*one, mate));
            }
        }
        let Some(bridge) = topology.parent(below) else { return };
        if !passes_on(topology, bridge, one).0 {
            faults.push(DecodeFault::Unreachable(*one, bridge));
        }
        below = bridge;
    }
}

/// Whether a bridge passes on all of the addresses, and whether it passes on some.
fn passes_on(topology: &Topology, bridge: FunctionId, one: &Decoded) -> (bool, bool) {
    let mut space = topology.space(bridge);
    let bit = if one.is_io() { COMMAND_IO } else { COMMAND_MEMORY };
    if space.read16(COMMAND) & bit == 0 {
        return (false, false);
    }
    let kinds: &[WindowKind] =
        if one.is_io() { &[WindowKind::Io] } else { &[WindowKind::Memory, WindowKind::Prefetch] };
    let windows = kinds.iter().filter_map(|&kind| read_window(&mut space, kind));
    let windows: Vec<Range> = windows.collect();
    // A function needs one window that contains its whole range, but a partial overlap of a
    // foreign window is already a conflict. Therefore both results are returned.
    let all = windows.iter().any(|window| window.contains(one.range));
    let some = windows.iter().any(|window| window.overlaps(one.range));
    (all, some)
}
