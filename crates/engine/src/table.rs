//! Large arrays that are read at random.

use std::fmt;
use std::ops::{Deref, DerefMut};

use memmap2::MmapMut;

/// An array of `u32` on huge pages where the system has them.
///
/// A mapping table of a simulated device is read at random for every request; on pages of 4 KiB
/// each such read also misses the translation buffer of the processor, which costs as much again.
/// Where no mapping can be had the array lives on the heap.
pub struct Table {
    memory: Memory,
    len: usize,
}

enum Memory {
    Mapped(MmapMut),
    Heap(Vec<u32>),
}

impl Table {
    /// `len` entries of `value`.
    pub fn new(len: usize, value: u32) -> Table {
        let bytes = len.max(1).checked_mul(4);
        let mapped = bytes.and_then(|bytes| MmapMut::map_anon(bytes).ok());
        let memory = match mapped {
            Some(map) => {
                #[cfg(target_os = "linux")]
                // Advice: where it is refused, small pages do the same, slower.
                let _ = map.advise(memmap2::Advice::HugePage);
                Memory::Mapped(map)
            }
            None => Memory::Heap(vec![0; len]),
        };
        let mut table = Table { memory, len };
        table.fill(value);
        table
    }
}

impl Deref for Table {
    type Target = [u32];
    #[inline]
    fn deref(&self) -> &[u32] {
        match &self.memory {
            Memory::Mapped(map) => &bytemuck::cast_slice(map)[..self.len],
            Memory::Heap(heap) => heap,
        }
    }
}

impl DerefMut for Table {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u32] {
        match &mut self.memory {
            Memory::Mapped(map) => &mut bytemuck::cast_slice_mut(map)[..self.len],
            Memory::Heap(heap) => heap,
        }
    }
}

impl Clone for Table {
    fn clone(&self) -> Table {
        let mut copy = Table::new(self.len, 0);
        copy.copy_from_slice(self);
        copy
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Table of {} entries", self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::Table;

    #[test]
    fn holds_what_is_put_in() {
        for len in [0, 1, 5, 3_000_000] {
            let mut table = Table::new(len, u32::MAX);
            assert_eq!(table.len(), len);
            assert!(table.iter().all(|entry| *entry == u32::MAX));
            if let Some(last) = table.last_mut() {
                *last = 7;
            }
            assert_eq!(table.clone().last().copied(), (len > 0).then_some(7));
        }
    }
}
