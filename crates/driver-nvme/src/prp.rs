//! Physical region pages: where the data of a command is, as the controller wants it told
//! (base 2.0c, clause 4.1.1).

use alloc::vec::Vec;

use ssdyno_pci::{DmaRegion, FunctionError, PciFunction};
use ssdyno_spec::nvme::{DatasetRange, PAGE_BYTES};
use zerocopy::IntoBytes;

use crate::{DataBuffer, IoError};

const PAGE: u64 = PAGE_BYTES as u64;
/// Entries of a page of a list.
const PAGE_ENTRIES: u32 = PAGE_BYTES / 8;
/// Lists are allocated in stretches of this, or of one list where that is longer.
const CHUNK_BYTES: u32 = 64 * 1024;

/// Room for one list for each command of a queue, allocated once (S1-30).
#[derive(Debug)]
pub(crate) struct Lists {
    chunks: Vec<DmaRegion>,
    list_bytes: u32,
    per_chunk: u32,
}

impl Lists {
    /// Lists for `commands` commands of up to `transfer_bytes`, a multiple of the page.
    pub(crate) fn new<F: PciFunction>(
        f: &mut F,
        commands: u32,
        transfer_bytes: u32,
    ) -> Result<Lists, FunctionError> {
        let list_bytes = list_bytes(transfer_bytes / PAGE_BYTES);
        let per_chunk = (CHUNK_BYTES / list_bytes).clamp(1, commands);
        let mut lists = Lists { chunks: Vec::new(), list_bytes, per_chunk };
        for _ in 0..commands.div_ceil(per_chunk) {
            match f.dma_allocate(per_chunk * list_bytes) {
                Ok(chunk) => lists.chunks.push(chunk),
                Err(error) => {
                    lists.free(f);
                    return Err(error);
                }
            }
        }
        Ok(lists)
    }

    pub(crate) fn free<F: PciFunction>(&mut self, f: &mut F) {
        for chunk in self.chunks.drain(..) {
            f.dma_free(chunk);
        }
    }

    /// Ranges of Dataset Management that a list has room for.
    pub(crate) fn ranges_max(&self) -> u32 {
        (self.list_bytes / size_of::<DatasetRange>() as u32).min(256)
    }

    fn place(&self, command: u16) -> (DmaRegion, u32) {
        let chunk = self.chunks[(u32::from(command) / self.per_chunk) as usize];
        (chunk, u32::from(command) % self.per_chunk * self.list_bytes)
    }

    /// PRP1 and PRP2 for `bytes` of `buffer` from its byte `skip` on. The buffer was
    /// [checked](check); the list, if one is needed, is that of `command`.
    #[inline(always)]
    pub(crate) fn describe<F: PciFunction>(
        &self,
        f: &mut F,
        command: u16,
        buffer: &DataBuffer<'_>,
        skip: u64,
        bytes: u64,
    ) -> (u64, u64) {
        let first = address(buffer, skip);
        let in_first = PAGE - first % PAGE;
        if bytes <= in_first {
            return (first, 0);
        }
        let second = skip + in_first;
        if bytes <= in_first + PAGE {
            return (first, address(buffer, second));
        }
        let pages = (bytes - in_first).div_ceil(PAGE) as u32;
        (first, self.write(f, command, pages, |i| address(buffer, second + u64::from(i) * PAGE)))
    }

    /// Writes a list of `pages` entries and gives its address. The last entry of a full page points to
    /// the next page where more entries follow.
    fn write<F: PciFunction>(
        &self,
        f: &mut F,
        command: u16,
        pages: u32,
        entry: impl Fn(u32) -> u64,
    ) -> u64 {
        let (region, start) = self.place(command);
        let mut batch = [0_u64; 32];
        let (mut done, mut slot) = (0, 0);
        while done < pages {
            let mut n = 0;
            while n < batch.len() && done < pages {
                let last_of_page = (slot + n as u32) % PAGE_ENTRIES == PAGE_ENTRIES - 1;
                batch[n] = if last_of_page && pages - done > 1 {
                    region.address + u64::from(start + (slot + n as u32 + 1) * 8)
                } else {
                    done += 1;
                    entry(done - 1)
                }
                .to_le();
                n += 1;
            }
            f.dma_write(&region, start + slot * 8, batch[..n].as_bytes());
            slot += n as u32;
        }
        region.address + u64::from(start)
    }

    /// Writes `ranges` of Dataset Management where the list of `command` is, and gives their address.
    pub(crate) fn write_ranges<F: PciFunction>(
        &self,
        f: &mut F,
        command: u16,
        ranges: &[DatasetRange],
    ) -> u64 {
        let (region, start) = self.place(command);
        f.dma_write(&region, start, ranges.as_bytes());
        region.address + u64::from(start)
    }
}

/// Bytes of a list for `entries` pages. A list of one page stays in one page: a power of two. (The
/// first page of the data is in PRP1, so an unaligned transfer needs no entry more.)
fn list_bytes(entries: u32) -> u32 {
    if entries <= PAGE_ENTRIES {
        // Room for 16 bytes at least: one range of Dataset Management.
        return (entries * 8).next_power_of_two().max(16);
    }
    // All pages but the last give one entry to the pointer.
    (entries - 1).div_ceil(PAGE_ENTRIES - 1) * PAGE_BYTES
}

/// The address of byte `at` of the buffer.
#[inline]
fn address(buffer: &DataBuffer<'_>, at: u64) -> u64 {
    match buffer {
        DataBuffer::None => 0,
        DataBuffer::Contiguous(start) => start + at,
        DataBuffer::Pages { pages, offset } => {
            let at = at + u64::from(*offset);
            pages[(at / PAGE) as usize] + at % PAGE
        }
    }
}

/// Whether `bytes` fit in `buffer`, and are aligned as PRP entries have to be.
#[inline]
pub(crate) fn check(buffer: &DataBuffer<'_>, bytes: u64) -> Result<(), IoError> {
    let good = match buffer {
        DataBuffer::None => false,
        DataBuffer::Contiguous(start) => {
            start.is_multiple_of(4) && start.checked_add(bytes).is_some()
        }
        DataBuffer::Pages { pages, offset } => {
            let needed = (u64::from(*offset) + bytes).div_ceil(PAGE) as usize;
            offset.is_multiple_of(4)
                && *offset < PAGE_BYTES
                && pages.get(..needed).is_some_and(|p| p.iter().all(|a| a.is_multiple_of(PAGE)))
        }
    };
    if good { Ok(()) } else { Err(IoError::BadBuffer) }
}
