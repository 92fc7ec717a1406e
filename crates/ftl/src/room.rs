//! Making room: victims are cleaned at once, a whole block at a time. In small steps: [`crate::pace`].

use ssdyno_engine::events::FlashCause;
use ssdyno_flash::FlashOp;

use crate::map::NONE;
use crate::page_map::{PageMap, Stream};
use crate::{Cleaning, ReadOnly};

impl PageMap {
    /// Makes room in `plane` before a page is written there.
    pub(crate) fn make_room(
        &mut self,
        plane: u32,
        stream: Stream,
        out: &mut Vec<FlashOp>,
    ) -> Result<(), ReadOnly> {
        let host = self.frontier_index(plane, stream);
        if self.frontiers[host].next < self.limits.data_pages {
            return Ok(());
        }
        // Most pages of the begun victim have moved already. Its erase usually costs fewer
        // copies than that of a new victim.
        self.finish_cleaning(plane, out);
        // A plane has no more closed blocks than this. FIFO has seen each of them once when its
        // patience ends, and a longer search finds nothing new.
        let patience = self.geometry.blocks_per_plane;
        self.clean_until(plane, self.limits.free_low, patience, out);
        // Without `hot_cold` survivors go to the open block of the host. Cleaning may have
        // opened a block there already, so the condition is tested again.
        if self.frontiers[host].next == self.limits.data_pages {
            // One free block must be left for cleaning itself.
            if self.blocks.free_count(plane) < 2 {
                self.read_only = true;
                return Err(ReadOnly);
            }
            self.open(plane, host).ok_or(ReadOnly)?;
        }
        // Opening took a free block. The reserve is full again before the write, so that the
        // next call starts from the same state.
        self.clean_until(plane, self.free_at_least(), patience, out);
        self.begin_cleaning(plane);
        Ok(())
    }

    /// Cleans while fewer than `enough` blocks of `plane` are free and cleaning gains something;
    /// after more than `patience` victims in a row without gain, it stops asking the policy.
    pub(crate) fn clean_until(
        &mut self,
        plane: u32,
        enough: u32,
        patience: u32,
        out: &mut Vec<FlashOp>,
    ) {
        let mut without_gain = 0;
        while self.blocks.free_count(plane) < enough {
            let stuck = without_gain > patience;
            let Some(victim) = self.choose_victim(plane, stuck) else { return };
            let valid = self.blocks.valid(victim);
            let gains = valid < self.limits.data_pages;
            // Greedy has chosen the block with the fewest valid pages. If that block is full,
            // every closed block is full. Other policies may still find a better block, and
            // moving a full one makes it young, so they get another try.
            if !gains && (stuck || self.config.cleaning == Cleaning::Greedy) {
                self.blocks.put_back(victim);
                return;
            }
            without_gain = if gains { 0 } else { without_gain + 1 };
            if !self.clean(plane, victim, out) {
                self.blocks.put_back(victim);
                return;
            }
            self.victims.count(valid, self.limits.data_pages);
            // Wear changes only by erases, so once after each erase is often enough. One block
            // at most moves for each victim, which bounds the work of a call.
            self.level_wear(plane, out);
        }
    }

    pub(crate) fn choose_victim(&mut self, plane: u32, stuck: bool) -> Option<u32> {
        if stuck {
            // A policy that looks at anything but valid pages may find nothing for long.
            let victim = self.blocks.least_valid(plane)?;
            self.blocks.forget_order(victim);
            return Some(victim);
        }
        let window = self.config.cleaning_window;
        self.config.cleaning.victim(&mut self.blocks, plane, window, &mut self.rng)
    }

    /// Moves the valid pages of `victim` and erases it; false if there was no room for them.
    pub(crate) fn clean(&mut self, plane: u32, victim: u32, out: &mut Vec<FlashOp>) -> bool {
        let first = self.geometry.first_page(victim);
        self.blocks.prefetch_wear(victim);
        let mut gather = std::mem::take(&mut self.gather);
        self.map.owners(first, self.limits.data_pages, &mut gather);
        debug_assert_eq!(gather.len() as u32, self.blocks.valid(victim));
        // A block holds pages of one stream only, so its first page speaks for all.
        let stream = match gather.first() {
            Some((_, slot)) if self.is_mapping(*slot) => Stream::Mapping,
            _ => Stream::Survivors,
        };
        // The check comes before the first copy. A victim whose pages moved only in part could
        // not be erased, and its freed space would be lost. One free block is always enough: a
        // victim holds at most one block of valid pages.
        let room = self.limits.data_pages - self.frontiers[self.frontier_index(plane, stream)].next;
        if gather.len() as u32 > room && self.blocks.free_count(plane) == 0 {
            self.gather = gather;
            return false;
        }
        // The open block may end within the victim's pages. The rest goes to the block that
        // opens next.
        let mut rest = &gather[..];
        while !rest.is_empty() {
            let moved = self.relocate(plane, stream, rest, out);
            if moved == 0 {
                break;
            }
            rest = &rest[moved..];
        }
        // A DFTL must update the table entry of each page that moved. Pages of the table itself
        // are found through the directory in RAM, so they are not listed.
        if stream == Stream::Survivors && self.mapping_from != NONE {
            self.moved.extend(gather.iter().map(|(_, slot)| self.map.logical(*slot)));
        }
        self.gather = gather;
        // The erase comes after the copies in `out`. Operations of a plane take effect in this
        // order, so no page is erased before it has been copied.
        self.blocks.erased(victim);
        out.push(FlashOp::erase(plane, first, FlashCause::Cleaning));
        true
    }

    /// True if `slot` holds a page of the mapping table itself.
    fn is_mapping(&self, slot: u32) -> bool {
        self.mapping_from != NONE && self.map.logical(slot) >= self.mapping_from
    }

    /// Moves as many of `pages` (physical, slot) as fit into the open block of `stream`.
    pub(crate) fn relocate(
        &mut self,
        plane: u32,
        stream: Stream,
        pages: &[(u32, u32)],
        out: &mut Vec<FlashOp>,
    ) -> usize {
        let Some((block, first)) = self.next_page(plane, stream) else { return 0 };
        let index = self.frontier_index(plane, stream);
        let frontier = &mut self.frontiers[index];
        // `next_page` has taken one page already, and that page is the first of the target
        // pages.
        let room = self.limits.data_pages - frontier.next + 1;
        let count = pages.len().min(room as usize);
        frontier.next += count as u32 - 1;
        let pages = &pages[..count];
        self.map.relocate(first, pages);
        let copy = |(to, (from, _)): (u32, &(u32, u32))| {
            FlashOp::copy(plane, *from, to, FlashCause::Cleaning)
        };
        out.extend((first..).zip(pages).map(copy));
        // The count of the plane does not change, because a copy stays in its plane. The old
        // block keeps its count, too: `erased` sets it to zero as a whole.
        self.blocks.add_valid(block, count as u32);
        self.close_if_full(plane, stream, FlashCause::Cleaning, out);
        count
    }

    /// Static wear levelling: moves the least worn block if it lags too far behind.
    pub(crate) fn level_wear(&mut self, plane: u32, out: &mut Vec<FlashOp>) {
        let Some((least_worn, lag)) = self.blocks.laggard(plane) else { return };
        if lag > self.config.wear_threshold {
            // The wear chose this block, not the policy. The order still lists it as a candidate
            // and would offer it again after its erase.
            self.blocks.forget_order(least_worn);
            if !self.clean(plane, least_worn, out) {
                self.blocks.put_back(least_worn);
            }
        }
    }
}
