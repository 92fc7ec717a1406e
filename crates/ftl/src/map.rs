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
        out.extend((first..first + count).map(|physical| {
            let slot = base + self.reverse.get(physical);
            if let Some(entry) = self.forward.get(slot as usize) {
                prefetch(entry);
            }
            (physical, slot)
        }));
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

    /// What lies at `from` and has `slot` now lives at `to`, in the same plane.
    #[inline]
    pub(crate) fn relocate(&mut self, slot: u32, from: u32, to: u32) {
        self.forward[slot as usize] = to;
        self.reverse.copy(from, to);
    }

    /// Logical and physical page of all that hold data.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, u32)> {
        let strips = (0..).zip(self.forward.chunks(self.slots_per_strip.max(1) as usize));
        let count = self.strips.get();
        strips.flat_map(move |(strip, slots)| {
            let used = (0..).zip(slots).filter(|(_, physical)| **physical != NONE);
            used.map(move |(number, physical)| (number * count + strip, *physical))
        })
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
            let mut all: Vec<_> = map.iter().collect();
            all.sort_unstable();
            prop_assert_eq!(all, held);
        }
    }
}
