//! Base address registers: their required sizes, and their values.

use alloc::vec::Vec;

use ssdyno_spec::pci::{
    BAR_IO, BAR_IO_ADDRESS, BAR_MEMORY_ADDRESS, BAR_PREFETCHABLE, BAR_TYPE, BAR_TYPE_64, BAR0,
    COMMAND, COMMAND_IO, COMMAND_MEMORY, EXPANSION_ROM, EXPANSION_ROM_ADDRESS,
    EXPANSION_ROM_ENABLE, EXPANSION_ROM_OF_BRIDGE, LAYOUT_BRIDGE, LAYOUT_ENDPOINT,
};

use crate::config::ConfigSpace;
use crate::header::{ConfigHeader, bar_count};

/// A base address register that exists (PCI clause 6.2.5.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bar {
    /// Number of the register, 0 to 5; for a pair of registers, the number of the lower half.
    pub index: u8,
    /// What it maps.
    pub space: BarSpace,
    /// Its required size in bytes: a power of two.
    pub bytes: u64,
    /// Its value; 0 means unassigned.
    pub address: u64,
}

/// The address space of a base address register.
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

/// A base address register as it stands, without writing to it: how much it asks for, and registers that
/// hold nothing yet, cannot be told so.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HeldBar {
    /// Number of the register, 0 to 5; for a pair of registers, the number of the lower half.
    pub index: u8,
    /// What it maps.
    pub space: BarSpace,
    /// Its value; 0 means unassigned.
    pub address: u64,
}

/// The registers of `header` that hold something, be it only their kind.
pub fn held_bars(header: &ConfigHeader) -> Vec<HeldBar> {
    let bars = if header.is_gone() { &[][..] } else { &header.bars[..bar_count(header.layout)] };
    let mut held = Vec::new();
    let mut index = 0;
    while let Some(&low) = bars.get(index) {
        let wide = low & BAR_IO == 0 && low & BAR_TYPE == BAR_TYPE_64;
        // The upper half of a 64-bit register in the last place does not exist.
        let upper = if wide { bars.get(index + 1) } else { Some(&0) };
        let space = space_of(low, wide);
        if let Some(&upper) = upper.filter(|_| low != 0) {
            let bits = if space == BarSpace::Io { BAR_IO_ADDRESS } else { BAR_MEMORY_ADDRESS };
            let address = u64::from(low & bits) | u64::from(upper) << 32;
            held.push(HeldBar { index: index as u8, space, address });
        }
        index += if wide { 2 } else { 1 };
    }
    held
}

fn space_of(low: u32, wide: bool) -> BarSpace {
    match low & BAR_IO != 0 {
        true => BarSpace::Io,
        false => BarSpace::Memory { wide, prefetchable: low & BAR_PREFETCHABLE != 0 },
    }
}

/// The registers that are there, by writing ones and reading back. Meanwhile the function answers no
/// access: a register full of ones would claim addresses that belong to others. Afterwards all is as
/// it was.
pub fn size_bars(space: &mut dyn ConfigSpace, layout: u8) -> Vec<Bar> {
    let command = space.read16(COMMAND);
    // Decoding is off while BARs are sized: between the write of all ones and the restore, the
    // function would otherwise answer at the top of the address space, where the I/O APIC and
    // firmware are.
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
    // A BAR of 4 GiB or more has no settable bit in its lower half. A test of the lower half alone
    // would treat such a BAR as absent.
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
        space: space_of(old, wide),
        bytes: 1 << settable.trailing_zeros(),
        address: u64::from(old & address_bits) | u64::from(upper_old) << 32,
    })
}

/// An expansion ROM that is enabled (PCI clause 6.2.5.2): it answers as soon as the function's memory does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rom {
    /// Its size, in bytes: a power of two.
    pub bytes: u64,
    /// What the register holds.
    pub address: u64,
}

/// Where the register of an expansion ROM is in layout `layout`.
fn rom_offset(layout: u8) -> Option<u16> {
    match layout {
        LAYOUT_ENDPOINT => Some(EXPANSION_ROM),
        LAYOUT_BRIDGE => Some(EXPANSION_ROM_OF_BRIDGE),
        _ => None,
    }
}

/// The expansion ROM, where there is one and firmware left it enabled. Its register is written as those of
/// [`size_bars`] are.
pub fn enabled_rom(space: &mut dyn ConfigSpace, layout: u8) -> Option<Rom> {
    let offset = rom_offset(layout)?;
    let old = space.read32(offset);
    // A ROM that is off needs no addresses, and boot ROMs are large. All ones come from a function
    // that does not answer; the enable bit would be set in this value.
    if old & EXPANSION_ROM_ENABLE == 0 || old == u32::MAX {
        return None;
    }
    let decoding = space.read16(COMMAND) & COMMAND_MEMORY;
    space.change_command(decoding, 0);
    space.write32(offset, EXPANSION_ROM_ADDRESS);
    let bits = space.read32(offset) & EXPANSION_ROM_ADDRESS;
    space.write32(offset, old);
    space.change_command(0, decoding);
    // A register without settable bits is not implemented. `trailing_zeros` of 0 is 32, so the
    // shift alone would report a ROM of 4 GiB.
    let bytes = (bits != 0).then(|| 1 << bits.trailing_zeros())?;
    Some(Rom { bytes, address: u64::from(old & EXPANSION_ROM_ADDRESS) })
}

/// Puts the expansion ROM to `address`, below 4 GiB and enabled, or switches it off. The function must not answer
/// accesses meanwhile.
pub fn set_rom(space: &mut dyn ConfigSpace, layout: u8, address: Option<u64>) {
    if let Some(offset) = rom_offset(layout) {
        let value = address.map_or(0, |address| address as u32 | EXPANSION_ROM_ENABLE);
        space.write32(offset, value);
    }
}

// The old value is written back at once and not after all BARs are read. If a register reacts
// badly, at most one register has a wrong value.
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

#[cfg(test)]
mod tests {
    use ssdyno_spec::pci::{HEADER_TYPE, LAYOUT_CARDBUS};

    use crate::PciAddress;
    use crate::config::{At, Snapshot};

    use super::*;

    /// The contents of these registers for a function of this layout.
    fn held(layout: u8, bars: [u32; 6]) -> Vec<HeldBar> {
        let mut image = [0; 64];
        image[usize::from(HEADER_TYPE)] = layout;
        for (slot, bar) in image[usize::from(BAR0)..].chunks_exact_mut(4).zip(bars) {
            slot.copy_from_slice(&bar.to_le_bytes());
        }
        let (mut snapshot, at) = (Snapshot::default(), PciAddress::new(0, 0, 0, 0));
        snapshot.add(at, image.to_vec());
        held_bars(&ConfigHeader::read(&mut At::new(&mut snapshot, at)))
    }

    fn bar(index: u8, space: BarSpace, address: u64) -> HeldBar {
        HeldBar { index, space, address }
    }

    /// PCI clause 6.2.5.1.
    #[test]
    fn registers_as_they_stand() {
        let memory = |wide, prefetchable| BarSpace::Memory { wide, prefetchable };
        let bars = [0xfe80_000c, 0x12, 0, 0xe001, 0xd000_0000, 0x8];
        let expected = [
            bar(0, memory(true, true), 0x12_fe80_0000),
            bar(3, BarSpace::Io, 0xe000),
            bar(4, memory(false, false), 0xd000_0000),
            bar(5, memory(false, true), 0),
        ];
        assert_eq!(held(0, bars), expected);
        // Half of a register is not a register, and neither are the following dwords in other
        // layouts.
        assert_eq!(held(0, [0, 0, 0, 0, 0, 0xfe80_0004]), []);
        let first = [bar(0, memory(false, false), 0xd000_0000)];
        let bars = [0xd000_0000, 0, 0x0020_2000, 0x0101_e0e1, 0xfff0_fff0, 0xd1];
        assert_eq!(held(LAYOUT_BRIDGE, bars), first);
        let bars = [0xd000_0000, 0x0200_00a0, 0xb005_0402, 0x8000_0000, 0, 0];
        assert_eq!(held(LAYOUT_CARDBUS, bars), first);
        assert_eq!(held(0x7f, [u32::MAX; 6]), []);
    }
}
