//! Memory that two processes share.

use std::os::fd::AsFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

use rustix::io;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// A part of a file, mapped. The other process may change it at any time, so it is reached by atomic
/// accesses only: in the order of addresses, each seen after those before it, as a write over PCI Express
/// is (PCIe 5.0, clause 2.4.3).
#[derive(Debug)]
pub(crate) struct Shared {
    start: NonNull<u8>,
    bytes: usize,
}

#[expect(unsafe_code, reason = "a pointer is not Send by itself")]
// SAFETY: nothing but this object knows the mapping, and it has no tie to the thread that made it.
unsafe impl Send for Shared {}

impl Shared {
    /// Maps `bytes` from `offset` of `file` for reading, and for writing if `writable`. The file must be
    /// as long, and stay so: whoever shortens it ends this process (SIGBUS).
    #[expect(unsafe_code, reason = "no safe wrapper maps a file that others write")]
    pub(crate) fn map(
        file: impl AsFd,
        offset: u64,
        bytes: usize,
        writable: bool,
    ) -> io::Result<Shared> {
        let protection =
            if writable { ProtFlags::READ | ProtFlags::WRITE } else { ProtFlags::READ };
        // SAFETY: the kernel chooses the place, so no memory of ours is replaced.
        let start = unsafe {
            mmap(std::ptr::null_mut(), bytes, protection, MapFlags::SHARED, file, offset)?
        };
        let start = NonNull::new(start.cast()).ok_or(io::Errno::NOMEM)?;
        Ok(Shared { start, bytes })
    }

    fn check(&self, offset: usize, bytes: usize) {
        let end = offset.checked_add(bytes);
        assert!(end.is_some_and(|end| end <= self.bytes), "{bytes} bytes at {offset} of {self:?}");
    }

    #[expect(unsafe_code, reason = "memory that is shared is known by its address")]
    fn byte(&self, at: usize) -> &AtomicU8 {
        debug_assert!(at < self.bytes);
        // SAFETY: `at` is inside the mapping, as callers check, which lives as long as `self`; inside this
        // process all accesses are atomic.
        unsafe { AtomicU8::from_ptr(self.start.as_ptr().add(at)) }
    }

    #[expect(unsafe_code, reason = "memory that is shared is known by its address")]
    fn word(&self, at: usize) -> &AtomicU32 {
        debug_assert!(at.is_multiple_of(4) && at + 4 <= self.bytes);
        // SAFETY: as for `byte`; `at` is a multiple of 4, and mappings begin on a page.
        unsafe { AtomicU32::from_ptr(self.start.as_ptr().add(at).cast()) }
    }

    /// Bytes before the first word of `bytes` from `offset` on.
    fn head(offset: usize, bytes: usize) -> usize {
        (offset.wrapping_neg() & 3).min(bytes)
    }

    /// Copies out from `offset` on.
    ///
    /// Panics where that leaves the mapping, as all accesses do.
    pub(crate) fn read(&self, offset: usize, out: &mut [u8]) {
        self.check(offset, out.len());
        let (head, rest) = out.split_at_mut(Shared::head(offset, out.len()));
        let (words, tail) = rest.as_chunks_mut::<4>();
        let mut at = offset;
        for byte in head {
            *byte = self.byte(at).load(Ordering::Acquire);
            at += 1;
        }
        for word in words {
            *word = self.word(at).load(Ordering::Acquire).to_ne_bytes();
            at += 4;
        }
        for byte in tail {
            *byte = self.byte(at).load(Ordering::Acquire);
            at += 1;
        }
    }

    /// Copies in from `offset` on.
    pub(crate) fn write(&self, offset: usize, bytes: &[u8]) {
        self.check(offset, bytes.len());
        let (head, rest) = bytes.split_at(Shared::head(offset, bytes.len()));
        let (words, tail) = rest.as_chunks::<4>();
        let mut at = offset;
        for byte in head {
            self.byte(at).store(*byte, Ordering::Release);
            at += 1;
        }
        for word in words {
            self.word(at).store(u32::from_ne_bytes(*word), Ordering::Release);
            at += 4;
        }
        for byte in tail {
            self.byte(at).store(*byte, Ordering::Release);
            at += 1;
        }
    }

    /// The little-endian dword at `offset`, a multiple of 4; what is read later was read later.
    pub(crate) fn load32(&self, offset: usize) -> u32 {
        self.check(offset, 4);
        assert!(offset.is_multiple_of(4), "a dword at {offset:#x}");
        u32::from_le(self.word(offset).load(Ordering::Acquire))
    }
}

impl Drop for Shared {
    #[expect(unsafe_code, reason = "what was mapped by address is unmapped by address")]
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and nothing can reach it after this. That it cannot be unmapped is no reason to
        // panic.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

    use super::*;

    fn pages(count: u64) -> std::os::fd::OwnedFd {
        let file = memfd_create("test", MemfdFlags::CLOEXEC).unwrap();
        ftruncate(&file, count * 4096).unwrap();
        file
    }

    proptest! {
        /// Two mappings of one file, written through one and read through the other, as one array.
        #[test]
        fn both_sides_see_the_same(
            steps in prop::collection::vec((0usize..8000, 0usize..192, any::<u8>()), 1..30)
        ) {
            let file = pages(3);
            let ours = Shared::map(&file, 4096, 8192, true).unwrap();
            let theirs = Shared::map(&file, 0, 12288, false).unwrap();
            let mut array = vec![0; 8192];
            for (offset, bytes, fill) in steps {
                let data: Vec<u8> = (0..bytes).map(|at| fill.wrapping_add(at as u8)).collect();
                array[offset..offset + bytes].copy_from_slice(&data);
                ours.write(offset, &data);
                let mut seen = vec![0; bytes];
                theirs.read(4096 + offset, &mut seen);
                prop_assert_eq!(seen, data);
            }
            let mut all = vec![0; 8192];
            theirs.read(4096, &mut all);
            prop_assert!(all == array);
            let word = u32::from_le_bytes([array[400], array[401], array[402], array[403]]);
            prop_assert_eq!(ours.load32(400), word);
        }
    }

    #[test]
    #[should_panic(expected = "4 bytes at 4094")]
    fn an_access_that_leaves_the_mapping_is_a_bug() {
        let file = pages(1);
        Shared::map(&file, 0, 4096, true).unwrap().write(4094, &[0; 4]);
    }
}
