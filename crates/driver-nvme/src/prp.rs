//! Physical region pages: where the data of a command is, as the controller wants it told
//! (base 2.0c, clause 4.1.1).

use ssdyno_pci::{DmaPiece, DmaPool, FunctionError, PciFunction};
use ssdyno_spec::nvme::{DatasetRange, PAGE_BYTES};
use zerocopy::IntoBytes;

use crate::shared::NoHeap;
use crate::{DataBuffer, IoCommand, IoError, IoOperation, Namespace};

/// A command of this number of bytes needs no list.
pub(crate) const PAGE: u64 = PAGE_BYTES as u64;
/// Entries of a page of a list.
const PAGE_ENTRIES: u32 = PAGE_BYTES / 8;
/// Lists come in stretches of this, or of one list where that is longer.
const CHUNK_BYTES: u32 = 16 * 1024;

/// Page lists of the commands of a queue that need one: those of more than two pages, and Dataset
/// Management. Memory for them is pinned when more of them are outstanding than ever before, in stretches
/// of 16 KiB, and kept: at most as many lists as commands.
#[derive(Debug)]
pub(crate) struct Lists {
    pub(crate) pool: DmaPool,
}

impl Lists {
    /// Lists for `commands` commands of up to `transfer_bytes`, a multiple of the page; none is shorter
    /// than `bytes_min`.
    pub(crate) fn new(commands: u32, transfer_bytes: u32, bytes_min: u32) -> Result<Lists, NoHeap> {
        let bytes = list_bytes(transfer_bytes / PAGE_BYTES).max(bytes_min);
        Ok(Lists { pool: DmaPool::new(bytes, CHUNK_BYTES, commands)? })
    }

    /// Ranges of Dataset Management that a list has room for.
    pub(crate) fn ranges_max(&self) -> u32 {
        (self.pool.piece_bytes() / size_of::<DatasetRange>() as u32).min(256)
    }

    /// Some command of `command` may need a list.
    #[inline(always)]
    pub(crate) fn may_be_needed(&self, command: &IoCommand<'_>, namespace: &Namespace) -> bool {
        match command.operation {
            IoOperation::Dataset { .. } => true,
            _ if !command.operation.moves_blocks() => false,
            _ => u64::from(command.blocks) * u64::from(namespace.block_bytes) > PAGE,
        }
    }

    /// Has a list for each of `commands` commands, for which there are slots.
    #[inline]
    pub(crate) fn prepare<F: PciFunction>(
        &mut self,
        f: &mut F,
        commands: u32,
    ) -> Result<(), IoError> {
        let Err(FunctionError::NoMemory { bytes }) = self.pool.reserve(f, commands) else {
            return Ok(());
        };
        // Lists of other commands come back; if there are none, waiting does not help.
        Err(if self.pool.taken() > 0 { IoError::Full } else { IoError::NoMemory { bytes } })
    }

    /// Takes a list that was [prepared](Lists::prepare).
    #[inline]
    fn take<F: PciFunction>(&mut self, f: &mut F) -> DmaPiece {
        let list = self.pool.take(f);
        debug_assert!(matches!(list, Ok(Some(_))), "nobody prepared it");
        list.ok().flatten().unwrap_or(DmaPiece::NONE)
    }

    /// PRP1 and PRP2 for `bytes` of `buffer` from its byte `skip` on. The buffer was
    /// [checked](check); `list` is the list that was taken, if one was needed.
    #[inline(always)]
    pub(crate) fn describe<F: PciFunction>(
        &mut self,
        f: &mut F,
        list: &mut DmaPiece,
        buffer: &DataBuffer<'_>,
        skip: u64,
        bytes: u64,
    ) -> (u64, u64) {
        let first = address(buffer, skip);
        // PRP1 may begin inside a page; all further entries name whole pages (base 2.0c, clause
        // 4.1.1). The first page therefore takes less data than the others.
        let in_first = PAGE - first % PAGE;
        if bytes <= in_first {
            return (first, 0);
        }
        let second = skip + in_first;
        if bytes <= in_first + PAGE {
            return (first, address(buffer, second));
        }
        let pages = (bytes - in_first).div_ceil(PAGE) as u32;
        *list = self.take(f);
        (first, self.write(f, *list, pages, |i| address(buffer, second + u64::from(i) * PAGE)))
    }

    /// Writes a list of `pages` entries and gives its address. The last entry of a full page points to
    /// the next page where more entries follow.
    fn write<F: PciFunction>(
        &self,
        f: &mut F,
        list: DmaPiece,
        pages: u32,
        entry: impl Fn(u32) -> u64,
    ) -> u64 {
        let (region, start) = self.pool.place(list);
        // Entries are written in batches of 256 bytes. One call of the function for each entry
        // would be one for every 8 bytes of a list.
        let mut batch = [0_u64; 32];
        let (mut done, mut slot) = (0, 0);
        while done < pages {
            let mut n = 0;
            while n < batch.len() && done < pages {
                let last_of_page = (slot + n as u32) % PAGE_ENTRIES == PAGE_ENTRIES - 1;
                // If exactly one entry is left, it takes the last place of the page itself. A
                // pointer to a page with one entry would be legal but would cost the controller
                // another read.
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

    /// Writes `ranges` of Dataset Management into a list, and gives their address.
    pub(crate) fn write_ranges<F: PciFunction>(
        &mut self,
        f: &mut F,
        list: &mut DmaPiece,
        ranges: &[DatasetRange],
    ) -> u64 {
        *list = self.take(f);
        let (region, start) = self.pool.place(*list);
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
            // Addresses are checked before a slot is taken. A controller that finds a bad PRP
            // entry ends the command with an error, or worse, uses it.
            let needed = (u64::from(*offset) + bytes).div_ceil(PAGE) as usize;
            offset.is_multiple_of(4)
                && *offset < PAGE_BYTES
                && pages.get(..needed).is_some_and(|p| p.iter().all(|a| a.is_multiple_of(PAGE)))
        }
    };
    if good { Ok(()) } else { Err(IoError::BadBuffer) }
}
