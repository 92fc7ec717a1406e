//! Large arrays that are read at random.

use std::fmt;
use std::ops::{Deref, DerefMut};

use bytemuck::Pod;
use memmap2::MmapMut;

/// An array of numbers on huge pages where the system has them.
///
/// A mapping table of a simulated device is read at random for every request; on pages of 4 KiB
/// each such read also misses the translation buffer of the processor, which costs as much again.
/// Where no mapping can be had the array lives on the heap.
pub struct Table<T> {
    memory: Memory<T>,
    len: usize,
}

enum Memory<T> {
    Mapped(MmapMut),
    Heap(Vec<T>),
}

impl<T: Pod> Table<T> {
    /// `len` entries of `value`.
    pub fn new(len: usize, value: T) -> Table<T> {
        let bytes = len.max(1).checked_mul(size_of::<T>());
        let mapped = bytes.and_then(|bytes| MmapMut::map_anon(bytes).ok());
        let memory = match mapped {
            Some(map) => {
                #[cfg(target_os = "linux")]
                // Advice: where it is refused, small pages do the same, slower.
                let _ = map.advise(memmap2::Advice::HugePage);
                Memory::Mapped(map)
            }
            None => Memory::Heap(vec![value; len]),
        };
        let mut table = Table { memory, len };
        match bytemuck::bytes_of(&value) {
            // Fresh pages are zero; they come when they are first written, and not all at once here.
            [0, rest @ ..] if rest.iter().all(|byte| *byte == 0) => {}
            [first, rest @ ..] if rest.iter().all(|byte| byte == first) => {
                bytemuck::cast_slice_mut(&mut table).fill(*first);
            }
            _ => table.fill(value),
        }
        table
    }
}

impl<T: Pod> Deref for Table<T> {
    type Target = [T];
    #[inline]
    fn deref(&self) -> &[T] {
        match &self.memory {
            Memory::Mapped(map) => bytemuck::cast_slice(&map[..self.len * size_of::<T>()]),
            Memory::Heap(heap) => heap,
        }
    }
}

impl<T: Pod> DerefMut for Table<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        match &mut self.memory {
            Memory::Mapped(map) => bytemuck::cast_slice_mut(&mut map[..self.len * size_of::<T>()]),
            Memory::Heap(heap) => heap,
        }
    }
}

impl<T: Pod> Clone for Table<T> {
    fn clone(&self) -> Table<T> {
        let mut copy = Table::new(self.len, T::zeroed());
        copy.copy_from_slice(self);
        copy
    }
}

impl<T> fmt::Debug for Table<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Table of {} entries", self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::Table;

    #[test]
    fn entries_of_odd_sizes_fit() {
        let mut table: Table<[u8; 3]> = Table::new(7, [1, 2, 3]);
        table[6] = [4, 5, 6];
        assert_eq!((table[0], table[6], table.len()), ([1, 2, 3], [4, 5, 6], 7));
    }

    #[test]
    fn holds_what_is_put_in() {
        for len in [0, 1, 5, 3_000_000] {
            let mut table: Table<u32> = Table::new(len, u32::MAX);
            assert_eq!(table.len(), len);
            assert!(table.iter().all(|entry| *entry == u32::MAX));
            if let Some(last) = table.last_mut() {
                *last = 7;
            }
            assert_eq!(table.clone().last().copied(), (len > 0).then_some(7));
        }
    }
}
