//! Memory that the client has given the device.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;

use rustix::fs::{FileType, fstat};
use rustix::io::Errno;
use ssdyno_pci::{DmaDirection, DmaFault};
use ssdyno_spec::vfio_user::{self as layout, DmaMap, DmaUnmap};

use crate::memory::Shared;

/// Windows at most, which is the protocol's default.
const WINDOWS_MAX: usize = 65_535;
/// The granularity of addresses and sizes, in bytes.
const PAGE_BYTES: u64 = 4096;

/// A window: some memory, at an address of the device's.
#[derive(Debug)]
struct Window {
    bytes: u64,
    readable: bool,
    writable: bool,
    /// None where it came without a descriptor: the device cannot reach it.
    memory: Option<Shared>,
}

/// All windows, by address. None overlaps another.
#[derive(Debug, Default)]
pub(super) struct Maps {
    windows: BTreeMap<u64, Window>,
}

/// A part of an access that lies in one window.
struct Piece<'a> {
    memory: &'a Shared,
    /// Where in the window, where in the access, and how much, in bytes.
    inside: usize,
    done: usize,
    here: usize,
}

impl Maps {
    pub(super) fn map(&mut self, asked: &DmaMap, file: Option<OwnedFd>) -> Result<(), Errno> {
        let (address, bytes) = (asked.address.get(), asked.bytes.get());
        let offset = asked.offset.get();
        let aligned = [address, bytes, offset].iter().all(|at| at.is_multiple_of(PAGE_BYTES));
        let end = address.checked_add(bytes).ok_or(Errno::INVAL)?;
        if bytes == 0 || !aligned {
            return Err(Errno::INVAL);
        }
        if self.overlaps(address, end) {
            return Err(Errno::EXIST);
        }
        if self.windows.len() == WINDOWS_MAX {
            return Err(Errno::NOSPC);
        }
        let flag = |flag| asked.flags.get() & flag != 0;
        let (readable, writable) = (flag(layout::DMA_READABLE), flag(layout::DMA_WRITABLE));
        let memory = match file {
            Some(file) => Some(map_file(&file, offset, bytes, writable)?),
            None => None,
        };
        self.windows.insert(address, Window { bytes, readable, writable, memory });
        Ok(())
    }

    pub(super) fn unmap(&mut self, asked: &DmaUnmap) -> Result<(), Errno> {
        if asked.flags.get() & layout::UNMAP_DIRTY_BITMAP != 0 {
            return Err(Errno::NOTSUP);
        }
        if asked.flags.get() & layout::UNMAP_ALL != 0 {
            self.clear();
            return Ok(());
        }
        let (address, bytes) = (asked.address.get(), asked.bytes.get());
        let end = address.checked_add(bytes).ok_or(Errno::INVAL)?;
        let inside: Vec<u64> =
            self.windows.range(address..end.max(address)).map(|w| *w.0).collect();
        // Whole windows only: one cannot be cut.
        let before = self.windows.range(..address).next_back();
        let cut = before.is_some_and(|(start, window)| start + window.bytes > address)
            || inside.last().is_some_and(|last| last + self.windows[last].bytes > end);
        if cut {
            return Err(Errno::INVAL);
        }
        if inside.is_empty() {
            return Err(Errno::NOENT);
        }
        for start in inside {
            self.windows.remove(&start);
        }
        Ok(())
    }

    /// Nothing is shared any more.
    pub(super) fn clear(&mut self) {
        self.windows.clear();
    }

    fn overlaps(&self, address: u64, end: u64) -> bool {
        let last = self.windows.range(..end).next_back();
        last.is_some_and(|(start, window)| start + window.bytes > address)
    }

    /// Splits an access at the ends of windows, and calls `each`; does nothing if a part of it is
    /// not allowed. Windows that touch are as one.
    fn access(
        &self,
        address: u64,
        bytes: u64,
        way: DmaDirection,
        mut each: impl FnMut(Piece<'_>),
    ) -> Result<(), DmaFault> {
        let fault = DmaFault { address, bytes };
        let end = address.checked_add(bytes).ok_or(fault)?;
        for do_it in [false, true] {
            let mut at = address;
            while at < end {
                let (start, window) = self.windows.range(..=at).next_back().ok_or(fault)?;
                let here = (start + window.bytes).min(end).checked_sub(at).filter(|here| *here > 0);
                let allowed = match way {
                    DmaDirection::FromHost => window.readable,
                    DmaDirection::ToHost => window.writable,
                };
                let memory = window.memory.as_ref().filter(|_| allowed).ok_or(fault)?;
                let here = here.ok_or(fault)? as usize;
                if do_it {
                    let (inside, done) = ((at - start) as usize, (at - address) as usize);
                    each(Piece { memory, inside, done, here });
                }
                at += here as u64;
            }
        }
        Ok(())
    }

    pub(super) fn read(&self, address: u64, out: &mut [u8]) -> Result<(), DmaFault> {
        self.access(address, out.len() as u64, DmaDirection::FromHost, |piece| {
            piece.memory.read(piece.inside, &mut out[piece.done..piece.done + piece.here]);
        })
    }

    pub(super) fn write(&self, address: u64, bytes: &[u8]) -> Result<(), DmaFault> {
        self.access(address, bytes.len() as u64, DmaDirection::ToHost, |piece| {
            piece.memory.write(piece.inside, &bytes[piece.done..piece.done + piece.here]);
        })
    }

    pub(super) fn touch(
        &self,
        address: u64,
        bytes: u64,
        way: DmaDirection,
    ) -> Result<(), DmaFault> {
        self.access(address, bytes, way, |_| ())
    }
}

/// Maps a part of a client's file, if it has that part: an access behind its end would kill us.
fn map_file(file: &OwnedFd, offset: u64, bytes: u64, writable: bool) -> Result<Shared, Errno> {
    let facts = fstat(file)?;
    let end = offset.checked_add(bytes).ok_or(Errno::INVAL)?;
    let is_file = FileType::from_raw_mode(facts.st_mode) == FileType::RegularFile;
    if !is_file || end > facts.st_size as u64 {
        return Err(Errno::INVAL);
    }
    Shared::map(file, offset, bytes as usize, writable)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

    use super::*;

    fn file(pages: u64) -> OwnedFd {
        let file = memfd_create("test", MemfdFlags::CLOEXEC).unwrap();
        ftruncate(&file, pages * 4096).unwrap();
        file
    }

    fn asked(address: u64, bytes: u64, flags: u32) -> DmaMap {
        DmaMap {
            address: address.into(),
            bytes: bytes.into(),
            flags: flags.into(),
            ..DmaMap::default()
        }
    }

    fn gone(address: u64, bytes: u64, flags: u32) -> DmaUnmap {
        DmaUnmap {
            address: address.into(),
            bytes: bytes.into(),
            flags: flags.into(),
            ..DmaUnmap::default()
        }
    }

    #[test]
    fn what_cannot_be_mapped_is_refused() {
        let mut maps = Maps::default();
        for (address, bytes, error) in [
            (0, 0, Errno::INVAL),
            (0, 4095, Errno::INVAL),
            (1, 4096, Errno::INVAL),
            (!0xfff, 8192, Errno::INVAL),
            // Longer than the file.
            (0, 3 * 4096, Errno::INVAL),
        ] {
            let refused = maps.map(&asked(address, bytes, 3), Some(file(2)));
            assert_eq!(refused, Err(error), "{bytes:#x} bytes at {address:#x}");
        }
        let null = std::fs::File::open("/dev/null").unwrap();
        assert_eq!(maps.map(&asked(0, 4096, 3), Some(null.into())), Err(Errno::INVAL));
        assert_eq!(maps.map(&asked(4096, 8192, 3), Some(file(2))), Ok(()));
        for address in [4096, 8192] {
            assert_eq!(maps.map(&asked(address, 4096, 3), None), Err(Errno::EXIST));
        }
        assert_eq!(maps.unmap(&gone(4096, 4096, 0)), Err(Errno::INVAL), "no window is cut");
        assert_eq!(maps.unmap(&gone(8192, 4096, 0)), Err(Errno::INVAL), "no window is cut");
        assert_eq!(maps.unmap(&gone(0x10_0000, 4096, 0)), Err(Errno::NOENT));
        assert_eq!(maps.unmap(&gone(!0, 4096, 0)), Err(Errno::INVAL));
        assert_eq!(maps.unmap(&gone(4096, 8192, layout::UNMAP_DIRTY_BITMAP)), Err(Errno::NOTSUP));
        assert_eq!(maps.unmap(&gone(4096, 8192, 0)), Ok(()));
        assert_eq!(maps.map(&asked(4096, 8192, 3), None), Ok(()));
        assert_eq!(maps.unmap(&gone(0, 0, layout::UNMAP_ALL)), Ok(()));
        assert!(maps.windows.is_empty());
    }

    #[test]
    fn windows_have_rights_and_may_have_no_memory() {
        let mut maps = Maps::default();
        maps.map(&asked(0, 4096, layout::DMA_READABLE), Some(file(1))).unwrap();
        maps.map(&asked(8192, 4096, layout::DMA_WRITABLE), Some(file(1))).unwrap();
        maps.map(&asked(12288, 4096, 3), None).unwrap();
        let mut byte = [0];
        assert!(maps.read(0, &mut byte).is_ok() && maps.write(0, &byte).is_err());
        assert!(maps.read(8192, &mut byte).is_err() && maps.write(8192, &byte).is_ok());
        assert!(maps.read(12288, &mut byte).is_err() && maps.write(12288, &byte).is_err());
        assert!(maps.touch(4095, 2, DmaDirection::FromHost).is_err());
        assert!(maps.touch(!0, 2, DmaDirection::FromHost).is_err());
    }

    proptest! {
        /// Windows of 1 to 3 pages, some side by side, as one array with holes.
        #[test]
        fn accesses_go_through_windows_that_touch(
            windows in prop::collection::btree_map(0u64..16, 1u64..4, 1..8),
            steps in prop::collection::vec((0u64..80_000, 0usize..9000), 1..20),
        ) {
            let mut maps = Maps::default();
            let mut there = vec![false; 100_000];
            for (page, count) in windows {
                let (address, bytes) = (page * 4096, count * 4096);
                if maps.map(&asked(address, bytes, 3), Some(file(count))).is_ok() {
                    there[address as usize..(address + bytes) as usize].fill(true);
                }
            }
            let mut array = vec![0; 100_000];
            for (number, (address, bytes)) in (1u8..).zip(steps) {
                let range = address as usize..address as usize + bytes;
                let whole = there[range.clone()].iter().all(|there| *there);
                let wrote = maps.write(address, &vec![number; bytes]);
                prop_assert_eq!(wrote.is_ok(), whole);
                if whole {
                    array[range.clone()].fill(number);
                }
                let mut seen = vec![0; bytes];
                prop_assert_eq!(maps.read(address, &mut seen).is_ok(), whole);
                prop_assert!(!whole || seen == array[range]);
            }
        }
    }
}
