//! Physical region pages: where the data of a command lies (base 2.0c, clause 4.1.1).

use crate::answer::Answer;
use ssdyno_pci::BusMaster;
use ssdyno_spec::nvme::NvmeStatus;
use zerocopy::IntoBytes;
use zerocopy::little_endian::U64;

/// Where the pages after the first are named.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Rest {
    /// There are none.
    Nothing,
    /// The second entry names the one page.
    Second,
    /// The second entry points to a list of this number of entries.
    List(u32),
}

/// The meaning of PRP1 and PRP2 for `bytes` of data.
///
/// # Errors
/// An offset that is not whole dwords, or an offset where none may be.
#[inline]
pub(super) fn classify(page_bytes: u64, prp1: u64, prp2: u64, bytes: u64) -> Answer<Rest> {
    let offset_mask = page_bytes - 1;
    let offset = prp1 & offset_mask;
    if prp1 & 3 != 0 {
        return Err(NvmeStatus::PRP_OFFSET_INVALID.with_do_not_retry());
    }
    // Only the first page may begin at an offset (base 2.0c, clause 4.1.1). What does not fit
    // behind the offset is in whole pages, so the offset decides whether there is a list.
    let rest = (offset + bytes).saturating_sub(page_bytes);
    if rest == 0 {
        return Ok(Rest::Nothing);
    }
    if rest <= page_bytes {
        // Figure 86: the second entry of two has no offset.
        let valid = prp2 & offset_mask == 0;
        return if valid { Ok(Rest::Second) } else { Err(invalid_offset()) };
    }
    // A pointer to a list is whole qwords.
    let valid = prp2 & 7 == 0;
    let pages = rest.div_ceil(page_bytes) as u32;
    if valid { Ok(Rest::List(pages)) } else { Err(invalid_offset()) }
}

fn invalid_offset() -> NvmeStatus {
    NvmeStatus::PRP_OFFSET_INVALID.with_do_not_retry()
}

/// Reads a list of `list.len()` entries at `pointer`, which may go on in further pages; gives the
/// number of reads.
///
/// # Errors
/// Memory that is not there; an entry with an offset.
pub(super) fn read_list(
    bus: &mut dyn BusMaster,
    page_bytes: u64,
    mut pointer: u64,
    list: &mut [U64],
) -> Answer<u32> {
    let mut reads = 0;
    let mut filled = 0;
    while filled < list.len() {
        // The first page of a list may begin at an offset, too, and then has room for fewer
        // entries.
        let fit = ((page_bytes - (pointer & (page_bytes - 1))) / 8) as usize;
        let left = list.len() - filled;
        // Where the list goes on, the last entry of the page points to the rest of it.
        // If exactly as many entries are left as fit, the last one is an entry and not a
        // pointer. This is why the comparison is "greater than".
        let here = if left > fit { fit - 1 } else { left };
        let part = &mut list[filled..filled + here];
        let read = bus.read(pointer, part.as_mut_bytes());
        read.map_err(|_| NvmeStatus::DATA_TRANSFER_ERROR)?;
        if part.iter().any(|entry| entry.get() & (page_bytes - 1) != 0) {
            return Err(invalid_offset());
        }
        filled += here;
        reads += 1;
        if filled < list.len() {
            let mut next = U64::ZERO;
            let read = bus.read(pointer + here as u64 * 8, next.as_mut_bytes());
            read.map_err(|_| NvmeStatus::DATA_TRANSFER_ERROR)?;
            pointer = next.get();
            // A chained page begins at its start; else a chain could be endless.
            if pointer & (page_bytes - 1) != 0 {
                return Err(invalid_offset());
            }
        }
    }
    Ok(reads)
}

/// Calls `each` with address and length of every contiguous piece of the data.
///
/// # Errors
/// The first error of `each`.
#[inline]
pub(super) fn pieces<E>(
    page_bytes: u64,
    prp1: u64,
    rest: &[U64],
    bytes: u64,
    mut each: impl FnMut(u64, u64) -> Result<(), E>,
) -> Result<(), E> {
    let first = page_bytes - (prp1 & (page_bytes - 1));
    let (mut from, mut length) = (prp1, first.min(bytes));
    let mut left = bytes - length;
    for entry in rest {
        if left == 0 {
            break;
        }
        let here = left.min(page_bytes);
        // Pages that follow one another in memory become one piece. Moving contents is then one
        // call, and hosts often give such buffers.
        if from.wrapping_add(length) == entry.get() {
            length += here;
        } else {
            each(from, length)?;
            (from, length) = (entry.get(), here);
        }
        left -= here;
    }
    each(from, length)
}
