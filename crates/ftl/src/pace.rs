//! Cleaning in small steps.
//!
//! A victim that is cleaned at once is a whole block of copies before the write that needed room:
//! with 256 pages a block, a hundred milliseconds. Paced, each write of the host is preceded by as
//! many copies as are needed so that the victim is empty when the open block is full: with v valid
//! pages of b, v / (b - v) copies a write. Victims are chosen at the same moments and by the same
//! policy, so write amplification is the same where the policy finds a page to gain. A victim
//! without one is passed over: with random victims, or FIFO and a few pages a block, that is often,
//! and write amplification is lower than of whole blocks.

use ssdyno_engine::events::FlashCause;
use ssdyno_flash::FlashOp;

use crate::map::NONE;
use crate::own_keys::CleaningPace;
use crate::page_map::{PageMap, Stream};

/// The block of a plane that is being cleaned.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Begun {
    /// [`NONE`] where none is.
    pub(crate) victim: u32,
    /// Its first page that was not looked at yet.
    next: u32,
    /// Its first page whose owner was not fetched yet: a step looks at so few that each would wait for
    /// memory, one after another.
    fetched: u32,
    /// Pages of the host that may be written until it must be empty: what it gains.
    writes: u32,
    /// Pages moved out of it.
    moved: u32,
}

impl Begun {
    pub(crate) const NOTHING: Begun =
        Begun { victim: NONE, next: 0, fetched: 0, writes: 0, moved: 0 };

    /// The same cleaning, of the block `to(victim)`.
    pub(crate) fn moved(self, to: impl Fn(u32) -> u32) -> Begun {
        Begun { victim: to(self.victim), ..self }
    }
}

/// Pages of the current victim that are prefetched ahead of the next page: those of a few steps.
// Paced cleaning waited for memory at each step before it fetched ahead. A random write of the
// preset nvme-tlc took 1815 ns through the whole path then, and 1585 ns afterwards.
const AHEAD: u32 = 8;

impl PageMap {
    /// How many blocks of `plane` must be free when its victim is merely begun.
    pub(crate) fn free_at_least(&self) -> u32 {
        // The begun victim stands for the missing block: it is free by the time that the open
        // block is full.
        match self.config.page.cleaning_pace {
            CleaningPace::Whole => self.limits.free_low,
            CleaningPace::Paced => self.limits.free_low - 1,
        }
    }

    /// Begins a victim in `plane`, if one is due and none is begun.
    pub(crate) fn begin_cleaning(&mut self, plane: u32) {
        if self.config.page.cleaning_pace == CleaningPace::Whole
            || self.begun[plane as usize].victim != NONE
            || self.blocks.free_count(plane) >= self.limits.free_low
        {
            return;
        }
        let Some(victim) = self.choose_victim(plane, false) else { return };
        let writes = self.limits.data_pages - self.blocks.valid(victim);
        if writes == 0 {
            // Nothing to gain; the next open block asks again.
            return self.blocks.put_back(victim);
        }
        // The victim must not be chosen again while it empties. Its count of valid pages stays,
        // because the host may still overwrite pages in it.
        self.blocks.take_out(victim);
        self.begun[plane as usize] = Begun { victim, writes, ..Begun::NOTHING };
        self.fetch_ahead(plane);
    }

    /// Before a page of the host is written: the share of the cleaning that falls to it.
    #[inline]
    pub(crate) fn clean_a_little(&mut self, plane: u32, out: &mut Vec<FlashOp>) {
        let begun = &mut self.begun[plane as usize];
        if begun.victim == NONE {
            return;
        }
        // The share is computed again from the remainder. Pages that the host overwrites meanwhile
        // make the later steps smaller. Once the budget is used up, the division by 1 moves all the
        // rest at once.
        let writes = begun.writes.max(1);
        begun.writes = writes - 1;
        let left = self.blocks.valid(begun.victim);
        self.clean_pages(plane, left.div_ceil(writes), out);
    }

    /// Ends the cleaning that was begun in `plane`.
    pub(crate) fn finish_cleaning(&mut self, plane: u32, out: &mut Vec<FlashOp>) {
        if self.begun[plane as usize].victim != NONE {
            self.clean_pages(plane, self.limits.data_pages, out);
        }
    }

    /// Moves `count` pages of the current victim, if it has that many, and erases it when it is
    /// empty.
    fn clean_pages(&mut self, plane: u32, count: u32, out: &mut Vec<FlashOp>) {
        let Begun { victim, mut next, .. } = self.begun[plane as usize];
        let first = self.geometry.first_page(victim);
        let mut moved = 0;
        let mut one = std::mem::take(&mut self.gather);
        // The loop ends at the last valid page. The pages behind it are stale, and looking at
        // them would cost memory accesses for nothing.
        while moved < count && self.blocks.valid(victim) > 0 && next < self.limits.data_pages {
            self.map.owners(first + next, 1, &mut one);
            if !one.is_empty() {
                // No block is free. `next` stays at this page, so that a later step tries the
                // same page again and no valid page is left behind.
                if self.relocate(plane, Stream::Survivors, &one, out) == 0 {
                    break;
                }
                // `relocate` leaves the place where a page was to its caller, who erases it.
                self.blocks.invalidate(victim);
                moved += 1;
            }
            next += 1;
        }
        self.gather = one;
        let begun = &mut self.begun[plane as usize];
        (begun.next, begun.moved) = (next, begun.moved + moved);
        if self.blocks.valid(victim) == 0 {
            // Pages that the host overwrote since then cost no copy.
            self.victims.count(begun.moved, self.limits.data_pages);
            self.begun[plane as usize] = Begun::NOTHING;
            self.blocks.erased(victim);
            out.push(FlashOp::erase(plane, first, FlashCause::Cleaning));
            // Levelling may open or erase blocks. It runs before the next victim is chosen, so
            // that the choice sees the blocks as they are.
            self.level_wear(plane, out);
            self.begin_cleaning(plane);
        } else {
            self.fetch_ahead(plane);
        }
    }

    /// Asks memory for what the next steps in `plane` will look at.
    #[inline]
    fn fetch_ahead(&mut self, plane: u32) {
        let begun = &mut self.begun[plane as usize];
        let upto = (begun.next + AHEAD).min(self.limits.data_pages);
        if begun.victim == NONE || upto <= begun.fetched {
            return;
        }
        let first = self.geometry.first_page(begun.victim);
        let count = upto - begun.fetched.max(begun.next);
        self.map.prefetch_owners(first + upto - count, count, first + self.limits.data_pages);
        begun.fetched = upto;
    }
}
