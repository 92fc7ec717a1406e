//! The page map: from logical to physical pages and back.

use ssdyno_flash::{Divisor, Geometry};

use crate::tables::{Stamp, Strip, Tables};

/// In a map: this logical page holds no data.
pub(crate) const NONE: u32 = u32::MAX;

/// The tables, with the narrowest entries that suffice: three bytes for planes of up to 64 GiB with pages
/// of 4 KiB. Small tables stay in the processor's caches, and 4 TiB in 7 GB.
#[derive(Clone, Debug)]
enum Width {
    Two(Tables<u16>),
    Three(Tables<[u8; 3]>),
    Four(Tables<u32>),
}

/// `$then` of the tables, whatever their width.
macro_rules! tables {
    ($width:expr, $tables:ident => $then:expr) => {
        match $width {
            Width::Two($tables) => $then,
            Width::Three($tables) => $then,
            Width::Four($tables) => $then,
        }
    };
}

/// Both directions of a page map.
///
/// Validity is not kept: the page that lives at the place of another is its owner and nobody else,
/// so invalidation writes nothing.
///
/// The entries of a plane lie side by side. Where logical pages are dealt out to the planes in
/// turn, the *slot* of a page is therefore not its number: slots count through the pages of one
/// plane, then of the next. Cleaning a block then touches a small part of the table, which matters
/// because a table of this size is larger than what the processor's address translation covers.
/// And both ways need only tell the pages of one plane apart.
#[derive(Clone, Debug)]
pub(crate) struct Map {
    tables: Width,
    /// How many strips pages are dealt out to: one a plane, or one in all.
    strips: Divisor,
    slots_per_strip: u32,
    /// The strip of each plane; empty where there is one in all.
    strip_of_plane: Vec<u32>,
    /// The first page of the flash in each strip.
    first_pages: Vec<u32>,
    pages_per_plane: u32,
}

impl Map {
    /// For `pages` logical pages. With `residues` plane `p` holds only logical pages that leave
    /// `residues[p]` when divided by the number of planes; without, any plane holds any page.
    pub(crate) fn new(pages: u32, geometry: &Geometry, residues: Option<Vec<u32>>) -> Map {
        Map::with_room(pages, geometry, residues, 0)
    }

    /// The same with entries wide enough for at least `room` pages.
    fn with_room(pages: u32, geometry: &Geometry, residues: Option<Vec<u32>>, room: u32) -> Map {
        let strip_of_plane = residues.unwrap_or_default();
        let strips = strip_of_plane.len().max(1) as u32;
        let slots_per_strip = pages.div_ceil(strips);
        let slots = slots_per_strip as usize * strips as usize;
        let pages_per_plane = geometry.blocks_per_plane * geometry.pages_per_block.get();
        let mut first_pages = vec![0; strips as usize];
        // `get` needs the first page of a strip for each request. The list by strip spares a
        // search for the plane of the strip.
        for (plane, strip) in (0..).zip(&strip_of_plane) {
            first_pages[*strip as usize] = plane * pages_per_plane;
        }
        let all = geometry.pages();
        // Forward entries count pages of a strip and reverse entries count its slots. One width
        // serves both tables, so the larger of the two numbers decides.
        let of_strip = if strip_of_plane.is_empty() { all } else { pages_per_plane };
        let most = of_strip.max(slots_per_strip).max(room);
        Map {
            tables: if Tables::<u16>::fit(most) {
                Width::Two(Tables::new(slots, all))
            } else if Tables::<[u8; 3]>::fit(most) {
                Width::Three(Tables::new(slots, all))
            } else {
                Width::Four(Tables::new(slots, all))
            },
            strips: Divisor::new(strips),
            slots_per_strip,
            strip_of_plane,
            first_pages,
            pages_per_plane,
        }
    }

    #[inline]
    fn slot(&self, logical: u32) -> usize {
        // Logical pages are dealt out to the strips in turn: the remainder is the strip, the
        // quotient is the place in it. Without strips the divisor is 1, and the slot is the page
        // number.
        let strip = self.strips.remainder(logical) as usize;
        strip * self.slots_per_strip as usize + self.strips.quotient(logical) as usize
    }

    /// The strip of the plane that `physical` is in.
    fn strip(&self, physical: u32) -> Strip {
        let plane = physical / self.pages_per_plane;
        match self.strip_of_plane.get(plane as usize) {
            Some(strip) => Strip {
                first_page: plane * self.pages_per_plane,
                first_slot: strip * self.slots_per_strip,
            },
            None => Strip { first_page: 0, first_slot: 0 },
        }
    }

    /// The physical page of `logical`, or [`NONE`].
    #[inline]
    pub(crate) fn get(&self, logical: u32) -> u32 {
        let slot = self.slot(logical);
        match tables!(&self.tables, tables => tables.place(slot)) {
            Some(place) => self.first_pages[self.strips.remainder(logical) as usize] + place,
            None => NONE,
        }
    }

    /// Brings the entry of `logical` into the cache.
    #[inline]
    pub(crate) fn prefetch(&self, logical: u32) {
        let slot = self.slot(logical);
        tables!(&self.tables, tables => tables.prefetch(slot));
    }

    /// Brings what is kept of `count` physical pages from `first` on into the cache.
    pub(crate) fn prefetch_pages(&self, first: u32, count: u32) {
        tables!(&self.tables, tables => tables.prefetch_pages(first..first + count));
    }

    /// `logical` now lives at `physical`, on a plane that may hold it.
    #[inline]
    pub(crate) fn set(&mut self, logical: u32, physical: u32) {
        let number = self.strips.remainder(logical);
        let strip = Strip {
            first_page: self.first_pages[number as usize],
            first_slot: number * self.slots_per_strip,
        };
        let slot = strip.first_slot + self.strips.quotient(logical);
        tables!(&mut self.tables, tables => tables.set(strip, slot, physical));
    }

    /// `logical` holds no data any more.
    pub(crate) fn remove(&mut self, logical: u32) {
        let slot = self.slot(logical);
        tables!(&mut self.tables, tables => tables.remove(slot));
    }

    /// The logical page of `slot`.
    pub(crate) fn logical(&self, slot: u32) -> u32 {
        let (strip, number) = (slot / self.slots_per_strip, slot % self.slots_per_strip);
        number * self.strips.get() + strip
    }

    /// Lists physical page and slot of all valid pages from `first` on, `count` in one plane.
    pub(crate) fn owners(&self, first: u32, count: u32, out: &mut Vec<(u32, u32)>) {
        let strip = self.strip(first);
        tables!(&self.tables, tables => tables.owners(strip, first..first + count, out));
    }

    /// Asks memory for what [`owners`](Map::owners) reads of `count` pages from `first` on, in one plane,
    /// and for what this itself will read of the pages behind them and before `end`.
    #[inline]
    pub(crate) fn prefetch_owners(&self, first: u32, count: u32, end: u32) {
        let strip = self.strip(first);
        tables!(&self.tables, tables => tables.prefetch_owners(strip, first..first + count, end));
    }

    /// `pages` (where they lie, and their slots) of one plane now live at `first` and behind it, in
    /// the same plane.
    #[inline]
    pub(crate) fn relocate(&mut self, first: u32, pages: &[(u32, u32)]) {
        let strip = self.strip(first);
        tables!(&mut self.tables, tables => tables.relocate(strip, first, pages));
    }

    /// From now on `plane`, whose good blocks are `good`, holds the first `pages` logical pages of the single plane of
    /// `sample`, which all have data: its block `n` is `good[n]`. The number of those pages, or 0 where nothing is
    /// done: where planes have no strips, or so many blocks are bad that the sample has narrower entries.
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
        // Without strips the pages of a plane are scattered over the whole table. A copy from
        // front to back is impossible then, and the caller sets page by page.
        let Some(strip) = self.strip_of_plane.get(plane as usize) else { return 0 };
        let first_slot = (strip * self.slots_per_strip) as usize;
        let first_page = plane * self.pages_per_plane;
        let first_block = pages_per_block.quotient(first_page);
        let blocks = sample.pages_per_plane / pages_per_block.get();
        // A bad block shifts all blocks after it. Block n of the sample stands for the n-th good
        // block of the plane, which is why the list and no constant offset goes into the stamp.
        let good: Vec<u32> =
            good.iter().take(blocks as usize).map(|block| block - first_block).collect();
        let slots = first_slot..first_slot + pages as usize;
        let stamp = Stamp { good: &good, pages_per_block, slots, first_page };
        // Entries of different widths cannot be copied as bytes. The widths differ only if bad
        // blocks make the sample's plane small enough for a narrower entry.
        match (&mut self.tables, &sample.tables) {
            (Width::Two(to), Width::Two(from)) => to.stamp(from, &stamp),
            (Width::Three(to), Width::Three(from)) => to.stamp(from, &stamp),
            (Width::Four(to), Width::Four(from)) => to.stamp(from, &stamp),
            _ => return 0,
        }
        pages
    }

    /// Logical page and place of all that hold data, from logical page `first` on, where there is one strip.
    pub(crate) fn from(&self, first: u32) -> Box<dyn Iterator<Item = (u32, u32)> + '_> {
        debug_assert_eq!(self.strips.get(), 1);
        tables!(&self.tables, tables => Box::new(tables.from(first)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Pages for which two bytes suffice, three, four.
    const ROOMS: [u32; 3] = [0, 1 << 16, 1 << 24];

    /// This number of planes.
    fn geometry(planes: u32, blocks_per_plane: u32, pages_per_block: u32) -> Geometry {
        Geometry {
            channels: planes,
            chips_per_channel: 1,
            dies_per_chip: 1,
            planes_per_die: 1,
            blocks_per_plane,
            pages_per_block: Divisor::new(pages_per_block),
            page_bytes: 512,
        }
    }

    proptest! {
        /// Against two plain tables, striped over planes in any order and not striped.
        #[test]
        fn is_two_plain_tables(
            planes in 1u32..6,
            striped: bool,
            room in prop::sample::select(ROOMS.to_vec()),
            turn in 0u32..6,
            writes in prop::collection::vec((0u32..1000, 0u32..1000), 1..200),
        ) {
            let geometry = geometry(planes, 5, 7);
            let pages = planes * 30 - 1;
            let residues: Vec<u32> = (0..planes).map(|plane| (plane + turn) % planes).collect();
            let mut map =
                Map::with_room(pages, &geometry, striped.then(|| residues.clone()), room);
            let mut forward = vec![NONE; pages as usize];
            let mut owner = vec![NONE; geometry.pages() as usize];
            for (page, place) in writes {
                let logical = page % pages;
                let plane = match striped {
                    true => residues.iter().position(|r| *r == logical % planes).unwrap() as u32,
                    false => page % planes,
                };
                let physical = plane * 35 + place % 35;
                // Valid data is never overwritten.
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
        /// A stamped plane equals a plane whose pages were set one by one, with and without bad blocks, and if the
        /// neighbouring planes hold other data.
        #[test]
        fn a_stamp_is_page_by_page(
            bad in 0u32..3,
            room in prop::sample::select(ROOMS.to_vec()),
            pages in 20u32..=28,
            places in Just((0u32..28).collect::<Vec<_>>()).prop_shuffle(),
            stale in prop::collection::vec((0u32..28, 0u32..20), 0..10),
        ) {
            let geometry = geometry(3, 6, 7);
            // Four blocks of the six are used; those that are bad lie among them or behind them.
            let good: Vec<u32> = (6..12).filter(|block| bad == 0 || *block != 6 + 2 * bad).collect();
            let one_plane = geometry.of_one_plane(4);
            let mut sample = Map::with_room(28, &one_plane, Some(vec![0]), room);
            stale.iter().for_each(|(place, page)| sample.set(*page, *place));
            (0..28).zip(places).for_each(|(page, place)| sample.set(page, place));
            let residues = vec![1, 2, 0];
            let mut stamped = Map::with_room(84, &geometry, Some(residues), room);
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

    /// The least number of bytes in which all pages of a plane can be told apart, and "no data".
    #[test]
    fn entries_are_as_wide_as_they_must_be() {
        let bytes = |map: &Map| tables!(&map.tables, tables => tables.entry_bytes());
        for (pages, width) in [(65_535, 2), (65_536, 3), ((1 << 24) - 1, 3), (1 << 24, 4)] {
            let mut map = Map::new(2 * pages, &geometry(2, pages, 1), Some(vec![0, 1]));
            assert_eq!(bytes(&map), width, "{pages} pages");
            // The last page of the last plane, and the first.
            map.set(2 * pages - 1, 2 * pages - 1);
            map.set(0, pages - 1);
            assert_eq!(
                [2 * pages - 1, 0, 1].map(|page| map.get(page)),
                [2 * pages - 1, pages - 1, NONE]
            );
            let mut owners = Vec::new();
            map.owners(2 * pages - 2, 2, &mut owners);
            assert_eq!(owners.last(), Some(&(2 * pages - 1, 2 * pages - 1)));
            // Without strips the pages of all planes are distinguished.
            let one = Map::new(2 * pages, &geometry(2, pages, 1), None);
            assert_eq!(bytes(&one), if 2 * pages < 1 << 24 { 3 } else { 4 });
        }
    }

    /// A plane with other entries than the sample is left alone.
    #[test]
    fn a_narrower_sample_is_not_stamped() {
        let geometry = geometry(1, 4, 4);
        let mut sample = Map::new(8, &geometry, Some(vec![0]));
        (0..8).for_each(|page| sample.set(page, page));
        let mut map = Map::with_room(8, &geometry, Some(vec![0]), ROOMS[1]);
        assert_eq!(map.stamp(0, (&sample, 8), &[0, 1, 2, 3], Divisor::new(4)), 0);
        assert_eq!(map.get(0), NONE);
    }
}
