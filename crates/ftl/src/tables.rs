//! Both directions of a page map, with entries of two, three or four bytes.

use std::ops::Range;

use bytemuck::Pod;
use ssdyno_engine::{HugePageTable, prefetch};
use ssdyno_flash::Divisor;

/// A number in a table.
pub(crate) trait Entry: Pod + PartialEq {
    /// The largest number that fits.
    const MOST: u32;
    /// `number`, which fits.
    fn of(number: u32) -> Self;
    /// The number.
    fn number(self) -> u32;
}

impl Entry for u16 {
    const MOST: u32 = u16::MAX as u32;
    #[inline(always)]
    fn of(number: u32) -> u16 {
        debug_assert!(number <= Self::MOST);
        number as u16
    }
    #[inline(always)]
    fn number(self) -> u32 {
        u32::from(self)
    }
}

impl Entry for [u8; 3] {
    const MOST: u32 = (1 << 24) - 1;
    #[inline(always)]
    fn of(number: u32) -> [u8; 3] {
        debug_assert!(number <= Self::MOST);
        let [a, b, c, _] = number.to_le_bytes();
        [a, b, c]
    }
    #[inline(always)]
    fn number(self) -> u32 {
        let [a, b, c] = self;
        u32::from_le_bytes([a, b, c, 0])
    }
}

impl Entry for u32 {
    const MOST: u32 = u32::MAX;
    #[inline(always)]
    fn of(number: u32) -> u32 {
        number
    }
    #[inline(always)]
    fn number(self) -> u32 {
        self
    }
}

/// Pages of the flash and slots of the map that belong together: those of a plane, or all.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Strip {
    /// The first page of the flash.
    pub(crate) first_page: u32,
    /// The first slot.
    pub(crate) first_slot: u32,
}

/// How the pages of a sample lie in a plane.
#[derive(Clone, Debug)]
pub(crate) struct Stamp<'a> {
    /// Blocks of the plane, from its first block on, in which the sample's blocks lie in order.
    pub(crate) good: &'a [u32],
    pub(crate) pages_per_block: Divisor,
    /// Slots that are stamped, and the pages of the plane.
    pub(crate) slots: Range<usize>,
    pub(crate) first_page: u32,
}

impl Stamp<'_> {
    /// The page of the plane where the sample's block `block` begins.
    fn first_of(&self, block: u32) -> u32 {
        self.good[block as usize] * self.pages_per_block.get()
    }

    /// The page of the plane that is page `page` of the sample.
    fn page(&self, page: u32) -> u32 {
        self.first_of(self.pages_per_block.quotient(page)) + self.pages_per_block.remainder(page)
    }

    /// How far each page moves, if all move as far.
    fn offset(&self) -> Option<u32> {
        let (first, last) = (self.good.first()?, self.good.last()?);
        ((last - first) as usize == self.good.len() - 1).then(|| self.first_of(0))
    }
}

/// The two tables. Entries count from the beginning of a [`Strip`].
#[derive(Clone, Debug)]
pub(crate) struct Tables<E: Entry> {
    /// By slot: the page of the flash plus one; 0 without data, so that fresh memory means no data.
    forward: HugePageTable<E>,
    /// By page of the flash: the slot of the page that was written there last.
    reverse: HugePageTable<E>,
}

impl<E: Entry> Tables<E> {
    /// No data in `slots` slots and `pages` pages.
    pub(crate) fn new(slots: usize, pages: u32) -> Tables<E> {
        Tables {
            forward: HugePageTable::new(slots, E::of(0)),
            reverse: HugePageTable::new(pages as usize, E::of(0)),
        }
    }

    /// True if a strip of `pages` pages and slots can be told apart.
    pub(crate) fn fit(pages: u32) -> bool {
        pages <= E::MOST
    }

    /// Bytes of an entry.
    #[cfg(test)]
    pub(crate) fn entry_bytes(&self) -> usize {
        size_of::<E>()
    }

    /// The page at `slot`, counted from that of its strip; `None` where there is no data.
    #[inline(always)]
    pub(crate) fn place(&self, slot: usize) -> Option<u32> {
        self.forward[slot].number().checked_sub(1)
    }

    /// Brings the entry of `slot` into the cache.
    #[inline(always)]
    pub(crate) fn prefetch(&self, slot: usize) {
        if let Some(entry) = self.forward.get(slot) {
            prefetch(entry);
        }
    }

    /// Brings the entries of `pages` of the flash into the cache.
    pub(crate) fn prefetch_pages(&self, pages: Range<u32>) {
        // Lines of a cache have 64 bytes.
        for page in pages.step_by(64 / size_of::<E>()) {
            if let Some(entry) = self.reverse.get(page as usize) {
                prefetch(entry);
            }
        }
    }

    /// The page at `slot` of `strip` now lives in `physical`.
    #[inline(always)]
    pub(crate) fn set(&mut self, strip: Strip, slot: u32, physical: u32) {
        // The one that is added keeps 0 free for "no data". The largest entry equals the number
        // of pages in the strip, and `fit` compares exactly that number with the width.
        self.forward[slot as usize] = E::of(physical - strip.first_page + 1);
        self.reverse[physical as usize] = E::of(slot - strip.first_slot);
    }

    /// There is no data at `slot` any more.
    pub(crate) fn remove(&mut self, slot: usize) {
        self.forward[slot] = E::of(0);
    }

    /// Lists physical page and slot of all valid pages among `pages`, which are of `strip`.
    ///
    /// Nothing branches on validity, and all entries are fetched before the first is looked at:
    /// their reads do not wait for one another.
    #[inline]
    pub(crate) fn owners(&self, strip: Strip, pages: Range<u32>, out: &mut Vec<(u32, u32)>) {
        let numbers = &self.reverse[pages.start as usize..pages.end as usize];
        out.clear();
        out.extend(pages.zip(numbers).map(|(physical, number)| {
            let slot = strip.first_slot + number.number();
            self.prefetch(slot as usize);
            (physical, slot)
        }));
        // A page that was never written may name any slot, or none: 0 is not a place.
        let place = |slot: u32| self.forward.get(slot as usize).map_or(0, |entry| entry.number());
        // The loop writes every pair and counts only the valid ones. The next pair overwrites an
        // invalid pair. A branch on validity would be mispredicted often: in steady state
        // neither outcome is rare.
        let mut valid = 0;
        for at in 0..out.len() {
            let (physical, slot) = out[at];
            out[valid] = (physical, slot);
            valid += usize::from(place(slot) == physical - strip.first_page + 1);
        }
        out.truncate(valid);
    }

    /// Asks memory for what [`owners`](Tables::owners) reads of `pages`, and for what this itself will
    /// read of the pages behind them and before `end`.
    #[inline]
    pub(crate) fn prefetch_owners(&self, strip: Strip, pages: Range<u32>, end: u32) {
        for number in &self.reverse[pages.start as usize..pages.end as usize] {
            self.prefetch((strip.first_slot + number.number()) as usize);
        }
        // The reverse entries of the next pages are asked for now, so that the next call can
        // read them and ask for the forward entries that they name. Two dependent misses become
        // two steps apart.
        self.prefetch_pages(pages.end..end.min(pages.end + pages.len() as u32));
    }

    /// `pages` (where they lie, and their slots) of `strip` now live at `first` and behind it.
    #[inline]
    pub(crate) fn relocate(&mut self, strip: Strip, first: u32, pages: &[(u32, u32)]) {
        // The reverse entries of the old places keep their values. They become stale as soon as
        // the forward entries change, and the caller erases the old block.
        for (place, (_, slot)) in (first - strip.first_page + 1..).zip(pages) {
            self.forward[*slot as usize] = E::of(place);
        }
        let numbers = &mut self.reverse[first as usize..first as usize + pages.len()];
        for (number, (_, slot)) in numbers.iter_mut().zip(pages) {
            *number = E::of(slot - strip.first_slot);
        }
    }

    /// Makes the plane of `stamp` equal to the single plane of `sample`, whose pages all have data.
    pub(crate) fn stamp(&mut self, sample: &Tables<E>, stamp: &Stamp<'_>) {
        let from = &sample.forward[..stamp.slots.len()];
        let to = &mut self.forward[stamp.slots.clone()];
        match stamp.offset() {
            Some(0) => to.copy_from_slice(from),
            Some(offset) => copy_moved(to, from, |page| page + offset),
            None => copy_moved(to, from, |page| stamp.page(page)),
        }
        // Reverse entries count slots from the beginning of a strip, and local page n has slot n
        // in the sample and in the plane. The values are copied unchanged; only their places
        // move by block. Stale entries are copied, too. They stay stale, because the forward map
        // decides.
        let length = match stamp.offset() {
            Some(_) => sample.reverse.len(),
            None => stamp.pages_per_block.get() as usize,
        };
        for (block, numbers) in (0..).zip(sample.reverse.chunks(length)) {
            let first = (stamp.first_page + stamp.first_of(block)) as usize;
            self.reverse[first..first + numbers.len()].copy_from_slice(numbers);
        }
    }

    /// The places of all slots from `first` on that hold data, with their slots.
    pub(crate) fn from(&self, first: u32) -> impl Iterator<Item = (u32, u32)> {
        let slots = self.forward.iter().skip(first as usize);
        (first..)
            .zip(slots)
            .filter_map(|(slot, entry)| Some((slot, entry.number().checked_sub(1)?)))
    }
}

/// Copies places, each of which is `moved`.
fn copy_moved<E: Entry>(to: &mut [E], from: &[E], moved: impl Fn(u32) -> u32) {
    for (to, from) in to.iter_mut().zip(from) {
        *to = E::of(from.number().checked_sub(1).map_or(0, |page| moved(page) + 1));
    }
}
