//! Which addresses are decoded, and whether each has one owner that can be reached.

use alloc::vec::Vec;

use ssdyno_spec::pci::{COMMAND, COMMAND_IO, COMMAND_MEMORY};

use crate::bars::{Bar, BarSpace, enabled_rom, size_bars};
use crate::config::ConfigSpace;
use crate::window::{Range, WindowKind, read_window};

use super::image::Image;
use super::{FunctionId, Topology};

/// A base address register, or an expansion ROM, that answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Decoded {
    /// Of which function.
    pub function: FunctionId,
    /// Which register; an expansion ROM has index [`ROM`](Decoded::ROM).
    pub bar: Bar,
    /// The addresses.
    pub range: Range,
}

impl Decoded {
    /// The index of the register of an expansion ROM, which is not a base address register.
    pub const ROM: u8 = 6;

    fn is_io(&self) -> bool {
        self.bar.space == BarSpace::Io
    }
}

/// Addresses that do not work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DecodeFault {
    /// Two registers answer to one address.
    Overlap(Decoded, Decoded),
    /// The address is not a multiple of the size.
    Misaligned(Decoded),
    /// A bridge above does not pass the addresses on.
    Unreachable(Decoded, FunctionId),
    /// A bridge beside passes them on, too.
    Claimed(Decoded, FunctionId),
}

impl Topology {
    /// Everything that answers to an access.
    pub fn decoded(&self) -> Vec<Decoded> {
        let mut all = Vec::new();
        for function in self.functions() {
            let image = &self.nodes[function.0].image;
            let command = image.read(COMMAND) as u16;
            // On a copy: sizing writes.
            let bars = size_bars(&mut image.clone(), image.layout());
            let rom = enabled_rom(&mut image.clone(), image.layout()).map(|rom| Bar {
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

    /// The errors of the decoded addresses.
    pub fn decode_faults(&self) -> Vec<DecodeFault> {
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
            self.check_path(one, &mut faults);
        }
        faults
    }

    /// All bridges above pass it on, and no bridge beside one of them does.
    fn check_path(&self, one: &Decoded, faults: &mut Vec<DecodeFault>) {
        let mut below = one.function;
        loop {
            let bus = self.nodes[below.0].bus;
            for &mate in &self.buses[bus.0].functions {
                // A bridge beside the path can have a wrong window that claims the same address.
                // Two agents that claim one transaction damage both transfers on a conventional
                // bus.
                let aside = mate != below.0 && self.nodes[mate].secondary.is_some();
                if aside && self.passes_on(mate, one).1 {
                    faults.push(DecodeFault::Claimed(*one, FunctionId(mate)));
                }
            }
            let Some(bridge) = self.parent(below) else { return };
            if !self.passes_on(bridge.0, one).0 {
                faults.push(DecodeFault::Unreachable(*one, bridge));
            }
            below = bridge;
        }
    }

    /// Whether a bridge passes on all of the addresses, and whether it passes on some.
    fn passes_on(&self, bridge: usize, one: &Decoded) -> (bool, bool) {
        let image = &self.nodes[bridge].image;
        let bit = if one.is_io() { COMMAND_IO } else { COMMAND_MEMORY };
        if image.read(COMMAND) as u16 & bit == 0 {
            return (false, false);
        }
        let kinds: &[WindowKind] = if one.is_io() {
            &[WindowKind::Io]
        } else {
            &[WindowKind::Memory, WindowKind::Prefetch]
        };
        let windows = kinds.iter().filter_map(|&kind| read_window(&mut image.clone(), kind));
        let windows: Vec<Range> = windows.collect();
        // A function needs one window that contains its whole range, but a partial overlap of a
        // foreign window is already a conflict. Therefore both results are returned.
        let all = windows.iter().any(|window| window.contains(one.range));
        let some = windows.iter().any(|window| window.overlaps(one.range));
        (all, some)
    }
}

impl ConfigSpace for Image {
    fn read32(&mut self, offset: u16) -> u32 {
        self.read(offset)
    }
    fn write32(&mut self, offset: u16, value: u32) {
        self.write(offset, value);
    }
    fn bytes(&mut self) -> u16 {
        Image::bytes(self)
    }
}
