//! Block mapping: only the block of a page can be chosen, its offset there is fixed.
//!
//! The table has one entry a block, and pays for it with copies. A page that the data block has
//! not passed yet is programmed in place. Else a *replacement block* is opened: the valid pages
//! before the written one are copied, it is programmed, and the replacement block stays open, so
//! that sequential writes go on there without a copy. It takes the data block's place as soon as
//! nothing in that is valid. A write that would go backwards first completes the replacement (the
//! pages after are copied, the old block is erased) and then opens the next. When no block is
//! free, the replacement that was opened first is completed.
//!
//! `ftl.cleaning` and `ftl.free_blocks_low` have no meaning here.

use std::collections::VecDeque;

use ssdyno_flash::FlashOp;

use crate::ReadOnly;
use crate::log_blocks::{Place, Policy, Shares, Store};
use crate::map::NONE;

/// The replacement blocks of a plane.
#[derive(Clone, Debug)]
pub(crate) struct BlockMap {
    /// Replacement block of each logical block.
    replacement: Vec<u32>,
    /// When each logical block's replacement was opened, as a count of those opened.
    opened: Vec<u64>,
    /// Replacements that were opened, as their count and logical block, the first in front; stale
    /// where that has none any more, or another.
    order: VecDeque<(u64, u32)>,
    /// Replacements that there are.
    live: u32,
    /// Replacements opened so far.
    count: u64,
}

impl BlockMap {
    /// Completes the replacement of `place` and puts it into its data block's place.
    fn complete(&mut self, store: &mut Store, place: Place, out: &mut Vec<FlashOp>) {
        let block = self.replacement[place.block as usize];
        // Pages before the end of the replacement were copied when it was opened or went
        // forwards. Only the offsets behind its end are still in the data block.
        store.gather(place, store.written(block)..store.pages_per_block(), None, block, out);
        self.replace_if_dead(store, place, out);
    }

    /// Lets the replacement take over once nothing in the data block is valid.
    fn replace_if_dead(&mut self, store: &mut Store, place: Place, out: &mut Vec<FlashOp>) {
        let replacement = self.replacement[place.block as usize];
        if replacement == NONE {
            return store.drop_dead_data(place, out);
        }
        // The replacement takes over without a copy. This happens when sequential writes have
        // overwritten or trims have given up every page of the data block.
        if store.blocks.valid(store.data(place)) == 0 {
            store.replace_data(place, replacement, out);
            self.replacement[place.block as usize] = NONE;
            self.live -= 1;
        }
    }

    /// Opens a replacement of `place`.
    fn open(&mut self, store: &mut Store, place: Place) -> Result<(), ReadOnly> {
        self.replacement[place.block as usize] = store.open(place.plane)?;
        self.live += 1;
        self.count += 1;
        self.opened[place.block as usize] = self.count;
        self.order.push_back((self.count, place.block));
        // Replacements that took over leave stale entries. The clean-up runs after as many new
        // entries as there are live ones, so it costs constant time for each opening on average.
        if self.order.len() > 2 * self.live as usize + 64 {
            let mut order = std::mem::take(&mut self.order);
            order.retain(|(opened, block)| self.is_open(*opened, *block));
            self.order = order;
        }
        Ok(())
    }

    /// True if the replacement of logical block `block` that was opened as number `opened` is
    /// still its replacement.
    fn is_open(&self, opened: u64, block: u32) -> bool {
        self.replacement[block as usize] != NONE && self.opened[block as usize] == opened
    }

    /// Completes replacements until a block is free.
    fn make_room(
        &mut self,
        store: &mut Store,
        plane: u32,
        out: &mut Vec<FlashOp>,
    ) -> Result<(), ReadOnly> {
        // Each merge frees a block, unless that went bad.
        for _ in 0..=self.live {
            if store.blocks.free_count(plane) > 0 {
                return Ok(());
            }
            self.merge_one(store, plane, out);
        }
        Err(ReadOnly)
    }
}

impl Policy for BlockMap {
    fn new(shares: Shares) -> BlockMap {
        let replacement = vec![NONE; shares.logical_blocks as usize];
        let opened = vec![0; shares.logical_blocks as usize];
        BlockMap { replacement, opened, order: VecDeque::new(), live: 0, count: 0 }
    }

    fn write(
        &mut self,
        store: &mut Store,
        place: Place,
        offset: u32,
        out: &mut Vec<FlashOp>,
    ) -> Result<(), ReadOnly> {
        let at = place.block as usize;
        // Pages of a block are programmed upwards only. A lower offset is behind the write
        // pointer of the replacement and needs a fresh block.
        if self.replacement[at] != NONE && offset < store.written(self.replacement[at]) {
            self.complete(store, place, out);
        }
        if self.replacement[at] == NONE {
            if store.data(place) == NONE {
                self.make_room(store, place.plane, out)?;
            }
            if store.write_in_place(place, offset, out)? {
                return Ok(());
            }
            self.make_room(store, place.plane, out)?;
            self.open(store, place)?;
        }
        let block = self.replacement[at];
        // The pages that the write leaves out are copied first, in order. After the write their
        // offsets in this block could not be programmed any more.
        store.gather(place, store.written(block)..offset, None, block, out);
        store.program(place, offset, (block, offset), out);
        self.replace_if_dead(store, place, out);
        Ok(())
    }

    fn trimmed(&mut self, store: &mut Store, place: Place, out: &mut Vec<FlashOp>) {
        self.replace_if_dead(store, place, out);
    }

    fn merge_one(&mut self, store: &mut Store, plane: u32, out: &mut Vec<FlashOp>) -> bool {
        while let Some((opened, block)) = self.order.front().copied() {
            if self.is_open(opened, block) {
                self.complete(store, Place { plane, block }, out);
                return true;
            }
            self.order.pop_front();
        }
        false
    }

    fn relocate(&mut self, to: &dyn Fn(u32) -> u32) {
        for block in &mut self.replacement {
            *block = to(*block);
        }
    }

    fn settling_writes(shares: Shares) -> u64 {
        // Opens every spare block as a replacement several times over.
        8 * u64::from(shares.spare)
    }

    /// Data block (4 B), replacement block (4 B) and how far it is written (2 B).
    fn ram_bytes(shares: Shares) -> u64 {
        10 * u64::from(shares.logical_blocks)
    }
}
