//! How far each block is programmed.

use ssdyno_engine::{HugePageTable, prefetch};

/// Pages programmed in each block since its erase.
///
/// Nearly all blocks of a device in use are full, and nearly all reads go to them. One bit a block
/// says so: for a device of 1 TiB that is 0.5 MiB, which stays in the processor's caches where the
/// numbers themselves would not.
#[derive(Clone, Debug)]
pub(super) struct Written {
    full: Vec<u64>,
    /// Of those that are not full.
    pages: HugePageTable<u16>,
    pages_per_block: u16,
}

impl Written {
    /// `blocks` erased blocks.
    pub(super) fn new(blocks: u32, pages_per_block: u32) -> Written {
        Written {
            full: vec![0; (blocks as usize).div_ceil(64)],
            pages: HugePageTable::new(blocks as usize, 0),
            pages_per_block: pages_per_block as u16,
        }
    }

    /// States that `pages` of `block` are programmed.
    #[inline]
    pub(super) fn set(&mut self, block: u32, pages: u16) {
        let bit = 1 << (block & 63);
        let word = &mut self.full[(block >> 6) as usize];
        if pages == self.pages_per_block {
            *word |= bit;
        } else {
            // The number is written only if the block is not full. A full block is known by its
            // bit alone, which left 33 MB untouched on a device of 4 TiB.
            *word &= !bit;
            self.pages[block as usize] = pages;
        }
    }

    /// States that page `number` of `block` is programmed now, and all before it; how many were until now.
    #[inline]
    pub(super) fn advance(&mut self, block: u32, number: u16) -> u16 {
        // The number of a full block is not kept. A program into it is a bug of the FTL; the
        // caller compares the returned number and reports it.
        if self.is_full(block) {
            return self.pages_per_block;
        }
        let before = std::mem::replace(&mut self.pages[block as usize], number + 1);
        if number + 1 == self.pages_per_block {
            self.full[(block >> 6) as usize] |= 1 << (block & 63);
        }
        before
    }

    /// Brings into the cache what [`holds`](Written::holds) looks at first.
    #[inline]
    pub(super) fn prefetch(&self, block: u32) {
        prefetch(&self.full[(block >> 6) as usize]);
    }

    /// Brings into the cache what [`set`](Written::set) changes.
    #[inline]
    pub(super) fn prefetch_pages(&self, block: u32) {
        self.prefetch(block);
        prefetch(&self.pages[block as usize]);
    }

    /// Pages of `block` that are programmed.
    #[cfg(test)]
    fn pages(&self, block: u32) -> u16 {
        if self.is_full(block) { self.pages_per_block } else { self.pages[block as usize] }
    }

    #[inline]
    fn is_full(&self, block: u32) -> bool {
        self.full[(block >> 6) as usize] >> (block & 63) & 1 == 1
    }

    /// True if page `number` of `block` is programmed.
    #[inline]
    pub(super) fn holds(&self, block: u32, number: u32) -> bool {
        self.is_full(block) || number < u32::from(self.pages[block as usize])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn holds_what_was_set(sets in prop::collection::vec((0u32..130, 0u16..=5), 0..200)) {
            let mut written = Written::new(130, 5);
            let mut model = [0u16; 130];
            for (block, pages) in sets {
                if pages > model[block as usize] {
                    prop_assert_eq!(written.advance(block, pages - 1), model[block as usize]);
                } else {
                    written.set(block, pages);
                }
                model[block as usize] = pages;
            }
            for (block, pages) in (0..).zip(model) {
                prop_assert_eq!(written.pages(block), pages);
                for number in 0..5 {
                    prop_assert_eq!(written.holds(block, number), number < u32::from(pages));
                }
            }
        }
    }
}
