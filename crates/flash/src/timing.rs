//! How long operations take, resolved to picoseconds.

use ssdyno_block::Time;

use crate::Divisor;

/// Times of one flash part on its bus.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FlashTiming {
    /// Array read by page type.
    pub(crate) read: [Time; 4],
    /// Array program by page type.
    pub(crate) program: [Time; 4],
    /// Page types in a block.
    pub(crate) levels: Divisor,
    /// Block erase.
    pub erase: Time,
    /// One page with its spare bytes over the bus.
    pub transfer: Time,
    /// One sector with its share of the spare bytes over the bus.
    pub sector_transfer: Time,
    /// Command and address cycles of one operation.
    pub command: Time,
    /// Suspending, and again resuming.
    pub suspend: Time,
    /// A page from the page register to the cache register, tRCBSY.
    pub cache_read: Time,
    /// A page from the cache register to the page register, tCBSY.
    pub cache_program: Time,
}

impl FlashTiming {
    /// Page types in a block: page n has type n modulo this.
    pub fn page_types(&self) -> u32 {
        self.levels.get()
    }
    /// Array read of page `page_in_block`.
    #[inline]
    pub fn read(&self, page_in_block: u32) -> Time {
        // The mask changes no valid index: a block has at most four page types. It informs the
        // compiler, so the access needs no bounds check.
        self.read[(self.levels.remainder(page_in_block) & 3) as usize]
    }
    /// Array program of page `page_in_block`.
    #[inline]
    pub fn program(&self, page_in_block: u32) -> Time {
        self.program[(self.levels.remainder(page_in_block) & 3) as usize]
    }
}
