//! Windows of a PCI-to-PCI bridge: the addresses that it passes on (Bridge clause 3.2.5).

use ssdyno_spec::pci::{
    IO_WINDOW, IO_WINDOW_BYTES, IO_WINDOW_UPPER, MEMORY_WINDOW, MEMORY_WINDOW_BYTES,
    PREFETCH_BASE_UPPER, PREFETCH_LIMIT_UPPER, PREFETCH_WINDOW, WINDOW_TYPE, WINDOW_WIDE,
};

use crate::config::ConfigSpace;

/// The three kinds of addresses that a bridge passes on separately.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum WindowKind {
    /// I/O ports.
    Io,
    /// Memory, below 4 GiB behind a bridge.
    Memory,
    /// Prefetchable memory.
    Prefetch,
}

impl WindowKind {
    /// All of them.
    pub const ALL: [WindowKind; 3] = [WindowKind::Io, WindowKind::Memory, WindowKind::Prefetch];

    /// The granularity of sizes and addresses of its windows.
    pub fn window_step_bytes(self) -> u64 {
        match self {
            WindowKind::Io => IO_WINDOW_BYTES,
            WindowKind::Memory | WindowKind::Prefetch => MEMORY_WINDOW_BYTES,
        }
    }
}

/// Some addresses in a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Range {
    /// The first.
    pub start: u64,
    /// How many; not 0.
    pub bytes: u64,
}

impl Range {
    /// The first address behind it.
    pub fn end(self) -> u64 {
        self.start.saturating_add(self.bytes)
    }

    /// True if all of `other` is in it.
    pub fn contains(self, other: Range) -> bool {
        self.start <= other.start && other.end() <= self.end()
    }

    /// True if some address is in both.
    pub fn overlaps(self, other: Range) -> bool {
        self.start < other.end() && other.start < self.end()
    }
}

/// How far the addresses of a window reach; `None` where the bridge has no such window.
pub(crate) fn is_wide(space: &mut dyn ConfigSpace, kind: WindowKind) -> Option<bool> {
    if kind == WindowKind::Memory {
        return Some(false);
    }
    let offset = if kind == WindowKind::Io { IO_WINDOW } else { PREFETCH_WINDOW };
    let old = space.read32(offset);
    // A window that is not there is hard-wired to zeros (Bridge clauses 3.2.5.6, 3.2.5.9): try to
    // close it. The status bits beside the I/O window are cleared by ones, so zeros go there.
    let closed = if kind == WindowKind::Io { 0x0000_00f0 } else { 0x0000_fff0 };
    let keep = if kind == WindowKind::Io { 0x0000_ffff } else { u32::MAX };
    space.write32(offset, closed);
    let back = space.read32(offset);
    space.write32(offset, old & keep);
    (back & closed != 0).then_some(old & WINDOW_TYPE == WINDOW_WIDE)
}

/// The range that the bridge forwards now; `None` if nothing. A window at address 0 was never set.
pub fn read_window(space: &mut dyn ConfigSpace, kind: WindowKind) -> Option<Range> {
    let step = kind.window_step_bytes();
    let (base, limit) = match kind {
        WindowKind::Io => {
            let both = space.read32(IO_WINDOW);
            let wide = both & WINDOW_TYPE == WINDOW_WIDE;
            let upper = if wide { space.read32(IO_WINDOW_UPPER) } else { 0 };
            let part = |low: u32, high: u32| u64::from((low & 0xf0) << 8 | high << 16);
            (part(both, upper & 0xffff), part(both >> 8, upper >> 16))
        }
        WindowKind::Memory | WindowKind::Prefetch => {
            let prefetch = kind == WindowKind::Prefetch;
            let both = space.read32(if prefetch { PREFETCH_WINDOW } else { MEMORY_WINDOW });
            // Of the two memory windows, only the prefetchable one has upper registers for 64-bit
            // addresses. The plain memory window is always below 4 GiB.
            let wide = prefetch && both & WINDOW_TYPE == WINDOW_WIDE;
            let mut upper = |offset| if wide { space.read32(offset) } else { 0 };
            let (base_upper, limit_upper) =
                (upper(PREFETCH_BASE_UPPER), upper(PREFETCH_LIMIT_UPPER));
            let part =
                |low: u32, high: u32| u64::from((low & 0xfff0) << 16) | u64::from(high) << 32;
            (part(both, base_upper), part(both >> 16, limit_upper))
        }
    };
    // A base above the limit is how a bridge expresses a closed window. The checked subtraction
    // maps it to `None`; a wrapped difference would be a window of almost 4 GiB.
    let bytes = limit.checked_sub(base)?.saturating_add(step);
    (base != 0).then_some(Range { start: base, bytes })
}

/// Makes the bridge pass on `range`, or nothing. It must not pass anything on meanwhile.
pub(crate) fn set_window(space: &mut dyn ConfigSpace, kind: WindowKind, range: Option<Range>) {
    // Nothing is a base above the limit.
    let step = kind.window_step_bytes();
    // The highest base with the lowest limit is closed for every implementation. Zero in both
    // registers would open the first 1 MiB of memory (or 4 KiB of ports) instead.
    let highest = match kind {
        WindowKind::Io => 0xf000,
        WindowKind::Memory | WindowKind::Prefetch => 0xfff0_0000,
    };
    let (base, limit) = match range {
        Some(range) => (range.start, range.end() - step),
        None => (highest, 0),
    };
    match kind {
        WindowKind::Io => {
            let part = |address: u64| (address >> 8 & 0xf0) as u32;
            space.write32(IO_WINDOW, part(base) | part(limit) << 8);
            let upper = |address: u64| (address >> 16 & 0xffff) as u32;
            space.write32(IO_WINDOW_UPPER, upper(base) | upper(limit) << 16);
        }
        WindowKind::Memory | WindowKind::Prefetch => {
            let prefetch = kind == WindowKind::Prefetch;
            let part = |address: u64| (address >> 16 & 0xfff0) as u32;
            let offset = if prefetch { PREFETCH_WINDOW } else { MEMORY_WINDOW };
            space.write32(offset, part(base) | part(limit) << 16);
            if prefetch {
                space.write32(PREFETCH_BASE_UPPER, (base >> 32) as u32);
                space.write32(PREFETCH_LIMIT_UPPER, (limit >> 32) as u32);
            }
        }
    }
}
