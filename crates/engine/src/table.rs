//! Large arrays that are read at random.

use std::fmt;
use std::ops::{Deref, DerefMut};

use bytemuck::Pod;

/// An array of numbers on huge pages where the system has them.
///
/// A mapping table of a simulated device is read at random for every request; on pages of 4 KiB
/// each such read also misses the translation buffer of the processor, which costs as much again.
pub struct HugePageTable<T> {
    entries: Vec<T>,
}

impl<T: Pod> HugePageTable<T> {
    /// `len` entries of `value`.
    pub fn new(len: usize, value: T) -> HugePageTable<T> {
        if bytemuck::bytes_of(&value).iter().all(|byte| *byte == 0) {
            // Fresh pages are zero; they come when they are first written, and not all at once here.
            let mut entries = bytemuck::zeroed_vec(len);
            want_huge_pages(&mut entries);
            return HugePageTable { entries };
        }
        let mut entries = Vec::with_capacity(len);
        want_huge_pages(&mut entries);
        entries.resize(len, value);
        HugePageTable { entries }
    }
}

impl<T> Deref for HugePageTable<T> {
    type Target = [T];
    #[inline]
    fn deref(&self) -> &[T] {
        &self.entries
    }
}

impl<T> DerefMut for HugePageTable<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.entries
    }
}

impl<T: Copy> Clone for HugePageTable<T> {
    fn clone(&self) -> HugePageTable<T> {
        let mut entries = Vec::with_capacity(self.len());
        want_huge_pages(&mut entries);
        entries.extend_from_slice(self);
        HugePageTable { entries }
    }
}

impl<T> fmt::Debug for HugePageTable<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Table of {} entries", self.len())
    }
}

/// Asks for huge pages under all that `entries` has room for, which is best done before anything is
/// in it. Advice: where it is refused small pages do the same, slower.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "advice on memory is given by address; proof at the call")]
fn want_huge_pages<T>(entries: &mut Vec<T>) {
    use rustix::mm::{Advice, madvise};
    /// What is smaller than some huge pages would hardly have a whole one.
    const WORTH_IT_BYTES: usize = 4 << 20;
    /// The largest pages that Linux is built with.
    const PAGE_BYTES_MOST: usize = 64 << 10;
    let (start, bytes) = (entries.as_mut_ptr(), entries.capacity() * size_of::<T>());
    if bytes < WORTH_IT_BYTES {
        return;
    }
    // Advice begins with a page. (Asking for the size of one would read what the kernel left for
    // this process, which emulators forge.)
    let before = start.addr() % PAGE_BYTES_MOST;
    let first = start.wrapping_byte_sub(before);
    // SAFETY: MADV_HUGEPAGE changes neither contents nor protection of any page, only what pages
    // are made of (madvise(2)): nothing that reads or writes them can tell. This also holds for the
    // memory before the array in its first page; if nothing is mapped, nothing happens.
    let _ = unsafe { madvise(first.cast(), before + bytes, Advice::LinuxHugepage) };
}

/// Elsewhere nobody is asked.
#[cfg(not(target_os = "linux"))]
fn want_huge_pages<T>(_: &mut Vec<T>) {}

#[cfg(test)]
mod tests {
    use super::HugePageTable;

    #[test]
    fn entries_of_odd_sizes_fit() {
        let mut table: HugePageTable<[u8; 3]> = HugePageTable::new(7, [1, 2, 3]);
        table[6] = [4, 5, 6];
        assert_eq!((table[0], table[6], table.len()), ([1, 2, 3], [4, 5, 6], 7));
    }

    #[test]
    fn holds_what_is_put_in() {
        for len in [0, 1, 5, 3_000_000] {
            for value in [0, u32::MAX] {
                let mut table: HugePageTable<u32> = HugePageTable::new(len, value);
                assert_eq!(table.len(), len);
                assert!(table.iter().all(|entry| *entry == value));
                if let Some(last) = table.last_mut() {
                    *last = 7;
                }
                assert_eq!(table.clone().last().copied(), (len > 0).then_some(7));
            }
        }
    }

    /// Says whether the pages of a large table are marked for huge pages, wherever it begins.
    #[cfg(target_os = "linux")]
    #[test]
    fn large_tables_are_advised() {
        if !std::path::Path::new("/sys/kernel/mm/transparent_hugepage").exists() {
            return eprintln!("this kernel has no transparent huge pages");
        }
        let table: HugePageTable<u8> = HugePageTable::new(64 << 20, 1);
        let middle = table[32 << 20..].as_ptr().addr();
        let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let mut inside = false;
        let flags = maps.lines().find(|line| {
            let range = line.split_once(' ').and_then(|(range, _)| range.split_once('-'));
            let address = |text| usize::from_str_radix(text, 16).ok();
            if let Some((Some(from), Some(to))) = range.map(|(a, b)| (address(a), address(b))) {
                inside = (from..to).contains(&middle);
            }
            inside && line.starts_with("VmFlags:")
        });
        assert!(flags.is_some_and(|flags| flags.contains(" hg")), "{flags:?}");
    }
}
