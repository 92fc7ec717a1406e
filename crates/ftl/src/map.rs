//! The page map: from logical to physical pages and back.

use ssdyno_engine::{Table, prefetch};
use ssdyno_flash::{Divisor, Geometry};

use crate::page_map::NONE;
use crate::reverse::Reverse;

/// Both directions of a page map.
///
/// Validity is not kept: `forward[slot] == physical` holds for the owner of a page and for nobody
/// else, so invalidation writes nothing.
///
/// The entries of a plane lie side by side. Where logical pages are dealt out to the planes in
/// turn, the *slot* of a page is therefore not its number: slots count through the pages of one
/// plane, then of the next. Cleaning a block then touches a small part of the table, which matters
/// because a table of this size is larger than what the processor's address translation covers.
/// And the way back need only tell the pages of one plane apart, which fits in 24 bits for planes
/// of up to 64 GiB with pages of 4 KiB.
#[derive(Clone, Debug)]
pub(crate) struct Map {
    /// Physical page by slot; [`NONE`] where there is no data.
    forward: Table<u32>,
    /// Slot within the strip by physical page.
    reverse: Reverse,
    /// How many strips pages are dealt out to: one a plane, or one in all.
    strips: Divisor,
    slots_per_strip: u32,
    /// The strip of each plane; empty where there is one in all.
    strip_of_plane: Vec<u32>,
    pages_per_plane: u32,
}

impl Map {
    /// For `pages` logical pages. With `residues` plane `p` holds only logical pages that leave
    /// `residues[p]` when divided by the number of planes; without, any plane holds any page.
    pub(crate) fn new(pages: u32, geometry: &Geometry, residues: Option<Vec<u32>>) -> Map {
        let strip_of_plane = residues.unwrap_or_default();
        let strips = strip_of_plane.len().max(1) as u32;
        let slots_per_strip = pages.div_ceil(strips);
        Map {
            forward: Table::new(slots_per_strip as usize * strips as usize, NONE),
            reverse: Reverse::new(geometry.pages()),
            strips: Divisor::new(strips),
            slots_per_strip,
            strip_of_plane,
            pages_per_plane: geometry.blocks_per_plane * geometry.pages_per_block.get(),
        }
    }

    #[inline]
    fn slot(&self, logical: u32) -> usize {
        let strip = self.strips.remainder(logical) as usize;
        strip * self.slots_per_strip as usize + self.strips.quotient(logical) as usize
    }

    /// First slot of the strip of the plane that `physical` is in.
    fn base(&self, physical: u32) -> u32 {
        match self.strip_of_plane.get((physical / self.pages_per_plane) as usize) {
            Some(strip) => strip * self.slots_per_strip,
            None => 0,
        }
    }

    /// The physical page of `logical`, or [`NONE`].
    #[inline]
    pub(crate) fn get(&self, logical: u32) -> u32 {
        self.forward[self.slot(logical)]
    }

    /// Brings the entry of `logical` into the cache.
    #[inline]
    pub(crate) fn prefetch(&self, logical: u32) {
        if let Some(entry) = self.forward.get(self.slot(logical)) {
            prefetch(entry);
        }
    }

    /// Brings what is kept of `count` physical pages from `first` on into the cache.
    pub(crate) fn prefetch_pages(&self, first: u32, count: u32) {
        self.reverse.prefetch(first, count);
    }

    /// `logical` now lives at `physical`, on a plane that may hold it.
    #[inline]
    pub(crate) fn set(&mut self, logical: u32, physical: u32) {
        let slot = self.slot(logical);
        self.forward[slot] = physical;
        self.reverse.set(physical, self.strips.quotient(logical));
    }

    /// `logical` holds no data any more.
    pub(crate) fn remove(&mut self, logical: u32) {
        let slot = self.slot(logical);
        self.forward[slot] = NONE;
    }

    /// The logical page of `slot`.
    pub(crate) fn logical(&self, slot: u32) -> u32 {
        let (strip, number) = (slot / self.slots_per_strip, slot % self.slots_per_strip);
        number * self.strips.get() + strip
    }

    /// Lists physical page and slot of all valid pages from `first` on, `count` in one plane.
    ///
    /// Nothing branches on validity, and all entries are fetched before the first is looked at:
    /// their reads do not wait for one another.
    pub(crate) fn owners(&self, first: u32, count: u32, out: &mut Vec<(u32, u32)>) {
        let base = self.base(first);
        out.clear();
        self.reverse.each(
            first,
            count,
            |physical, number| {
                let slot = base + number;
                if let Some(entry) = self.forward.get(slot as usize) {
                    prefetch(entry);
                }
                (physical, slot)
            },
            out,
        );
        let mut valid = 0;
        for at in 0..out.len() {
            let (physical, slot) = out[at];
            out[valid] = (physical, slot);
            valid += usize::from(self.forward.get(slot as usize) == Some(&physical));
        }
        out.truncate(valid);
    }

    /// Asks memory for what [`owners`](Map::owners) reads of `count` pages from `first` on, in one plane,
    /// and for what this itself will read of the pages behind them and before `end`.
    #[inline]
    pub(crate) fn prefetch_owners(&self, first: u32, count: u32, end: u32) {
        let base = self.base(first);
        for physical in first..first + count {
            if let Some(entry) = self.forward.get((base + self.reverse.get(physical)) as usize) {
                prefetch(entry);
            }
        }
        let behind = first + count;
        self.reverse.prefetch(behind, count.min(end - behind));
    }

    /// `pages` (where they lie, and their slots) of one plane now live at `first` and behind it, in
    /// the same plane.
    #[inline]
    pub(crate) fn relocate(&mut self, first: u32, pages: &[(u32, u32)]) {
        let base = self.base(first);
        for (to, (_, slot)) in (first..).zip(pages) {
            self.forward[*slot as usize] = to;
        }
        self.reverse.set_all(first, pages.iter().map(|(_, slot)| slot - base));
    }

    /// From now on `plane`, whose good blocks are `good`, holds the first `pages` logical pages of the one
    /// plane of `sample`, which all have data: its block `n` is `good[n]`. The number of those pages, or 0
    /// where planes have no strips, and nothing is done.
    ///
    /// With strips all that is known of a plane lies side by side and is copied from front to back;
    /// page by page each of the hundreds of millions of a large device would wait for memory.
    pub(crate) fn stamp(
        &mut self,
        plane: u32,
        (sample, pages): (&Map, u32),
        good: &[u32],
        pages_per_block: Divisor,
    ) -> u32 {
        let Some(strip) = self.strip_of_plane.get(plane as usize) else { return 0 };
        let to = &mut self.forward[(strip * self.slots_per_strip) as usize..][..pages as usize];
        let slots = to.iter_mut().zip(&sample.forward[..pages as usize]);
        let first = |block: u32| good[block as usize] * pages_per_block.get();
        let blocks = sample.pages_per_plane / pages_per_block.get();
        let gaps = good
            .last()
            .zip(good.first())
            .is_some_and(|(last, first)| (last - first) as usize >= good.len());
        if gaps {
            let place =
                |from| first(pages_per_block.quotient(from)) + pages_per_block.remainder(from);
            slots.for_each(|(to, from)| *to = if *from == NONE { NONE } else { place(*from) });
            let length = pages_per_block.get();
            for block in 0..blocks {
                self.reverse.take_over(
                    first(block),
                    &sample.reverse,
                    block * length..(block + 1) * length,
                );
            }
        } else {
            let by = first(0);
            slots.for_each(|(to, from)| *to = if *from == NONE { NONE } else { from + by });
            self.reverse.take_over(by, &sample.reverse, 0..sample.pages_per_plane);
        }
        pages
    }

    /// Logical page and place of all that hold data, from logical page `first` on, where there is one strip.
    pub(crate) fn from(&self, first: u32) -> impl Iterator<Item = (u32, u32)> {
        debug_assert_eq!(self.strips.get(), 1);
        let slots = self.forward.iter().copied().skip(first as usize);
        (first..).zip(slots).filter(|(_, place)| *place != NONE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against two plain tables, striped over planes in any order and not striped.
        #[test]
        fn is_two_plain_tables(
            planes in 1u32..6,
            striped: bool,
            turn in 0u32..6,
            writes in prop::collection::vec((0u32..1000, 0u32..1000), 1..200),
        ) {
            let geometry = Geometry {
                channels: planes,
                chips_per_channel: 1,
                dies_per_chip: 1,
                planes_per_die: 1,
                blocks_per_plane: 5,
                pages_per_block: Divisor::new(7),
                page_bytes: 512,
            };
            let pages = planes * 30 - 1;
            let residues: Vec<u32> = (0..planes).map(|plane| (plane + turn) % planes).collect();
            let mut map = Map::new(pages, &geometry, striped.then(|| residues.clone()));
            let mut forward = vec![NONE; pages as usize];
            let mut owner = vec![NONE; geometry.pages() as usize];
            for (page, place) in writes {
                let logical = page % pages;
                let plane = match striped {
                    true => residues.iter().position(|r| *r == logical % planes).unwrap() as u32,
                    false => page % planes,
                };
                let physical = plane * 35 + place % 35;
                // Nothing is written where valid data lies.
                if owner[physical as usize] != NONE && forward[owner[physical as usize] as usize] == physical {
                    map.remove(owner[physical as usize]);
                    forward[owner[physical as usize] as usize] = NONE;
                }
                map.set(logical, physical);
                forward[logical as usize] = physical;
                owner[physical as usize] = logical;
            }
            for (logical, physical) in (0..).zip(&forward) {
                prop_assert_eq!(map.get(logical), *physical);
            }
            let mut seen = Vec::new();
            for plane in 0..planes {
                let mut found = Vec::new();
                map.owners(plane * 35, 35, &mut found);
                seen.extend(found.into_iter().map(|(physical, slot)| (map.logical(slot), physical)));
            }
            seen.sort_unstable();
            let held = (0..).zip(forward).filter(|(_, physical)| *physical != NONE);
            let held: Vec<(u32, u32)> = held.collect();
            prop_assert_eq!(&seen, &held);
        }
    }

    proptest! {
        /// A stamped plane holds what it would if its pages were set one by one, with bad blocks (and
        /// without), and where the planes beside it hold something else.
        #[test]
        fn a_stamp_is_page_by_page(
            bad in 0u32..3,
            pages in 20u32..=28,
            places in Just((0u32..28).collect::<Vec<_>>()).prop_shuffle(),
            stale in prop::collection::vec((0u32..28, 0u32..20), 0..10),
        ) {
            let geometry = Geometry {
                channels: 3,
                chips_per_channel: 1,
                dies_per_chip: 1,
                planes_per_die: 1,
                blocks_per_plane: 6,
                pages_per_block: Divisor::new(7),
                page_bytes: 512,
            };
            // Four blocks of the six are used; those that are bad lie among them or behind them.
            let good: Vec<u32> = (6..12).filter(|block| bad == 0 || *block != 6 + 2 * bad).collect();
            let mut sample = Map::new(28, &geometry.of_one_plane(4), Some(vec![0]));
            stale.iter().for_each(|(place, page)| sample.set(*page, *place));
            (0..28).zip(places).for_each(|(page, place)| sample.set(page, place));
            let residues = vec![1, 2, 0];
            let mut stamped = Map::new(84, &geometry, Some(residues));
            stamped.set(3, 12 * 7);
            let mut set = stamped.clone();
            prop_assert_eq!(
                stamped.stamp(1, (&sample, pages), &good, geometry.pages_per_block),
                pages
            );
            for local in 0..pages {
                let at = sample.get(local);
                set.set(2 + local * 3, good[(at / 7) as usize] * 7 + at % 7);
            }
            let held = |map: &Map| (0..84).map(|page| map.get(page)).collect::<Vec<_>>();
            prop_assert_eq!(held(&stamped), held(&set));
            for block in 0..18 {
                let (mut one, mut other) = (Vec::new(), Vec::new());
                stamped.owners(block * 7, 7, &mut one);
                set.owners(block * 7, 7, &mut other);
                prop_assert_eq!(one, other);
            }
        }
    }
}
