//! Base address registers: what they ask for, and what they hold.

use alloc::vec::Vec;

use ssdyno_spec::pci::{
    BAR_IO, BAR_IO_ADDRESS, BAR_MEMORY_ADDRESS, BAR_PREFETCHABLE, BAR_TYPE, BAR_TYPE_64, BAR0,
    COMMAND, COMMAND_IO, COMMAND_MEMORY,
};

use crate::config::ConfigSpace;
use crate::header::bar_count;

/// A base address register that exists (PCI clause 6.2.5.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bar {
    /// Its number, 0 to 5; that of its lower half if it takes two.
    pub index: u8,
    /// What it maps.
    pub space: BarSpace,
    /// What it asks for, in bytes: a power of two.
    pub bytes: u64,
    /// What it holds; 0 is nothing yet.
    pub address: u64,
}

/// What a base address register maps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BarSpace {
    /// I/O ports.
    Io,
    /// Memory.
    Memory {
        /// It may lie above 4 GiB.
        wide: bool,
        /// Reads have no side effects and may be merged.
        prefetchable: bool,
    },
}

/// The registers that are there, by writing ones and reading back. Meanwhile the function answers no
/// access: a register full of ones would claim addresses that belong to others. Afterwards all is as
/// it was.
pub fn size_bars(space: &mut dyn ConfigSpace, layout: u8) -> Vec<Bar> {
    let command = space.read16(COMMAND);
    let decoding = command & (COMMAND_IO | COMMAND_MEMORY);
    if decoding != 0 {
        space.change_command(decoding, 0);
    }
    let count = bar_count(layout) as u8;
    let mut bars = Vec::new();
    let mut index = 0;
    while index < count {
        let old = space.read32(bar_offset(index));
        let wide = old & BAR_IO == 0 && old & BAR_TYPE == BAR_TYPE_64;
        // The upper half of a 64-bit register in the last place does not exist.
        if !wide || index + 1 < count {
            bars.extend(size_bar(space, index, old, wide));
        }
        index += if wide { 2 } else { 1 };
    }
    if decoding != 0 {
        space.change_command(0, decoding);
    }
    bars
}

fn size_bar(space: &mut dyn ConfigSpace, index: u8, old: u32, wide: bool) -> Option<Bar> {
    let low_bits = ones_back(space, bar_offset(index), old);
    let is_io = old & BAR_IO != 0;
    let (upper_old, upper_bits) = if wide {
        let upper_old = space.read32(bar_offset(index + 1));
        (upper_old, ones_back(space, bar_offset(index + 1), upper_old))
    } else {
        // All address bits above those that can be set are as if they could.
        (0, u32::MAX)
    };
    let address_bits = if is_io { BAR_IO_ADDRESS } else { BAR_MEMORY_ADDRESS };
    let mut low = low_bits & address_bits;
    if low == 0 && !(wide && upper_bits != 0) {
        return None;
    }
    // Ports above 64 KiB need not be decoded (PCI clause 6.2.5.1).
    if is_io && low >> 16 == 0 {
        low |= 0xffff_0000;
    }
    let settable = u64::from(low) | u64::from(upper_bits) << 32;
    Some(Bar {
        index,
        space: match is_io {
            true => BarSpace::Io,
            false => BarSpace::Memory { wide, prefetchable: old & BAR_PREFETCHABLE != 0 },
        },
        bytes: 1 << settable.trailing_zeros(),
        address: u64::from(old & address_bits) | u64::from(upper_old) << 32,
    })
}

/// What a register reads as after ones were written; puts `old` back.
fn ones_back(space: &mut dyn ConfigSpace, offset: u16, old: u32) -> u32 {
    space.write32(offset, u32::MAX);
    let back = space.read32(offset);
    space.write32(offset, old);
    back
}

/// Offset of base address register `index`.
pub fn bar_offset(index: u8) -> u16 {
    BAR0 + 4 * u16::from(index)
}

/// Sets the address of `bar`. The function must not answer accesses meanwhile.
pub fn set_bar(space: &mut dyn ConfigSpace, bar: &Bar, address: u64) {
    space.write32(bar_offset(bar.index), address as u32);
    if let BarSpace::Memory { wide: true, .. } = bar.space {
        space.write32(bar_offset(bar.index + 1), (address >> 32) as u32);
    }
}
