//! Bytes and logical pages.

use std::ops::Range;

use ssdyno_block::Request;

/// The logical pages of a drive.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pages {
    /// Of a page.
    pub(super) bytes: u64,
    /// The logarithm of that, where it is a power of two (it nearly always is): saves dividing.
    shift: Option<u32>,
    pub(super) capacity_bytes: u64,
}

impl Pages {
    /// So many of that size.
    pub(super) fn new(count: u32, bytes: u32) -> Pages {
        Pages {
            bytes: u64::from(bytes),
            shift: bytes.is_power_of_two().then(|| bytes.trailing_zeros()),
            capacity_bytes: u64::from(count) * u64::from(bytes),
        }
    }

    /// The page that the byte at `offset_bytes` is in.
    #[inline]
    fn at(&self, offset_bytes: u64) -> u32 {
        match self.shift {
            Some(shift) => (offset_bytes >> shift) as u32,
            None => (offset_bytes / self.bytes) as u32,
        }
    }

    /// Pages that a range touches.
    #[inline]
    pub(super) fn touched(&self, offset_bytes: u64, length_bytes: u32) -> Range<u32> {
        let end = offset_bytes + u64::from(length_bytes);
        self.at(offset_bytes)..self.at(end + self.bytes - 1)
    }

    /// Pages that a range covers from their first byte to their last.
    pub(super) fn covered(&self, offset_bytes: u64, length_bytes: u32) -> Range<u32> {
        let end = offset_bytes + u64::from(length_bytes);
        self.at(offset_bytes + self.bytes - 1)..self.at(end)
    }

    /// True if `request` covers all of `page`.
    pub(super) fn is_covered(&self, page: u32, request: &Request) -> bool {
        let first = u64::from(page) * self.bytes;
        let end = request.offset_bytes + u64::from(request.length_bytes);
        request.offset_bytes <= first && first + self.bytes <= end
    }
}
