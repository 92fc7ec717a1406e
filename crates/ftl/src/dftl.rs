//! DFTL: the mapping table lives in flash, and only the part in use in RAM.
//!
//! After Gupta, Kim and Urgaonkar, "DFTL: a flash translation layer employing demand-based
//! selective caching of page-level address mappings", ASPLOS 2009:
//!
//! * The table is cut into *translation pages* of page size / 4 entries. They are kept as extra
//!   logical pages behind the host's in a [`PageMap`], in blocks of their own, and cleaned with
//!   it. Where each one is stands in the global translation directory, in RAM.
//! * Entries in use are in the cached mapping table, see [`Cache`]. A miss reads the translation
//!   page; throwing out a dirty entry reads and writes its translation page, and with it all
//!   dirty entries of that page (the paper's batching).
//! * Cleaning a data block changes entries: in the cache at once (the paper's lazy copying), else
//!   their translation pages are rewritten, each once for all entries that changed meanwhile. At
//!   most a block's worth of them is rewritten in one call, so that every call ends soon; the rest
//!   waits, one bit a translation page, for the next.
//!
//! Reads and writes of translation pages that a request must wait for have the cause `Mapping`,
//! those that cleaning made necessary `MappingUpdate`. A logical page that holds no data is recognised
//! without a look-up.
//!
//! As in the paper, one policy chooses among data and translation blocks. Translation pages are rewritten
//! often, so that greedy cleaning finds their blocks stale and frees them at little cost. FIFO, windowed and
//! random cleaning leave them among the data. Each translation page written then makes cleaning move about as
//! many pages as a page of the host does, and those make further translation pages out of date. Where that is
//! one or more, a call rewrites as many as it may: the device thrashes (`tests/mapping_in_one_pool.rs`).

use std::collections::VecDeque;

use ssdyno_block::ConfigError;
use ssdyno_engine::Rng;
use ssdyno_engine::events::FlashCause;
use ssdyno_flash::FlashOp;

use crate::contract::FtlFacts;
use crate::mapping_cache::Cache;
use crate::page_map::{PageMap, Stream};
use crate::random_writes::RandomWrites;
use crate::sample::{Sampled, Written};
use crate::{Fill, Ftl, HotCold, Plane, Precondition, PrepareWatch, ReadOnly, sample};
use ssdyno_engine::{Health, PlaneUse, PrepareError, Victims};

/// Bytes of an entry in flash: a physical page number.
const FLASH_ENTRY_BYTES: u32 = 4;
/// Bytes of an entry in the cache: logical and physical page number.
const CACHE_ENTRY_BYTES: u64 = 8;

/// The DFTL.
#[derive(Clone, Debug)]
pub(crate) struct Dftl {
    inner: PageMap,
    cache: Cache,
    host_pages: u32,
    /// Translation pages that cleaning made out of date, waiting to be rewritten, see
    /// [`device_page`](Dftl::device_page).
    stale: VecDeque<u32>,
    is_stale: Vec<bool>,
    /// The number of the device's translation pages that each page here represents: 1, and on a
    /// sample plane the number of planes of the device.
    stands_for: u32,
}

impl Dftl {
    pub(crate) fn new(facts: &FtlFacts<'_>) -> Result<Dftl, ConfigError> {
        if facts.config.hot_cold == HotCold::Classes {
            return Err(ConfigError::new(
                "ftl.hot_cold",
                "`dftl` keeps the host's pages in one pool",
                "use \"off\" or \"survivors\", or use the `page` FTL",
            ));
        }
        let entries = facts.geometry.page_bytes / FLASH_ENTRY_BYTES;
        let inner = PageMap::with_mapping(facts, |pages| pages.div_ceil(entries))?;
        let host_pages = inner.limits.logical_pages;
        let table_bytes = u64::from(host_pages) * u64::from(FLASH_ENTRY_BYTES);
        let cache_bytes = match facts.config.dftl.mapping_cache {
            Some(bytes) => bytes.0,
            None => (table_bytes / 32).max(CACHE_ENTRY_BYTES),
        };
        if cache_bytes < CACHE_ENTRY_BYTES {
            return Err(ConfigError::new(
                "ftl.dftl.mapping_cache",
                format!("{cache_bytes} B cannot hold one entry of {CACHE_ENTRY_BYTES} B"),
                format!("use at least \"{CACHE_ENTRY_BYTES}B\"; 1/32 of the table is usual"),
            ));
        }
        let capacity = (cache_bytes / CACHE_ENTRY_BYTES).min(u64::from(host_pages)) as u32;
        Ok(Dftl::assemble(inner, capacity, entries, 1))
    }

    /// With an empty cache of `capacity` entries, `entries` to a translation page, each of which stands
    /// for as many.
    fn assemble(inner: PageMap, capacity: u32, entries: u32, stands_for: u32) -> Dftl {
        let host_pages = inner.limits.logical_pages;
        let translation_pages = host_pages.div_ceil(entries) * stands_for;
        Dftl {
            inner,
            cache: Cache::new(capacity, host_pages, entries),
            host_pages,
            stale: VecDeque::with_capacity(translation_pages as usize),
            is_stale: vec![false; translation_pages as usize],
            stands_for,
        }
    }

    /// The translation page of the device that the entry of `page` is in. The page numbers of a plane are as far apart
    /// on the device as it has planes. Cleaning therefore touches many translation pages on the device; the sample
    /// plane has few, so each of them represents several.
    fn device_page(&self, page: u32) -> u32 {
        let number = u64::from(page) * u64::from(self.stands_for);
        (number / u64::from(self.cache.group_size())) as u32
    }

    fn translation_page(&self, number: u32) -> u32 {
        self.host_pages + number
    }

    /// Where translation page `number` is; `None` before it was first written.
    fn directory(&self, number: u32) -> Option<u32> {
        self.inner.locate(self.translation_page(number))
    }

    fn read_translation_page(
        &self,
        number: u32,
        cause: FlashCause,
        out: &mut Vec<FlashOp>,
    ) -> bool {
        let Some(at) = self.directory(number) else { return false };
        let geometry = &self.inner.geometry;
        let plane = geometry.block_of_page(at) / geometry.blocks_per_plane;
        out.push(FlashOp::read(plane, at, cause));
        true
    }

    /// Takes note of what cleaning moved: cached entries become dirty, the others' translation
    /// pages out of date.
    fn note_moves(&mut self) {
        // Lent out by the map, as `self` could not be while its moves are taken.
        let mut moved = std::mem::take(&mut self.inner.moved);
        for page in moved.drain(..) {
            if !self.cache.make_dirty(page) {
                let number = self.device_page(page);
                if !std::mem::replace(&mut self.is_stale[number as usize], true) {
                    self.stale.push_back(number);
                }
            }
        }
        self.inner.moved = moved;
    }

    /// Writes translation page `number` as it must be now.
    fn write_translation_page(
        &mut self,
        number: u32,
        cause: FlashCause,
        out: &mut Vec<FlashOp>,
    ) -> Result<(), ReadOnly> {
        if self.inner.read_only {
            return Err(ReadOnly);
        }
        // A translation page is rewritten as a whole. The entries that did not change come from
        // the old version, which must be read first.
        self.read_translation_page(number, cause, out);
        let page = self.translation_page(number);
        let plane = self.inner.choose_table_plane(page);
        let room = self.inner.make_room(plane, Stream::Mapping, out);
        // Cleaning may have moved pages although it failed to free a block. The moves are noted
        // before the error is returned, or the table would point to the old places.
        self.note_moves();
        room?;
        self.inner.append(plane, page, cause, out)?;
        // Entries become clean only now. If `append` failed, they are still dirty and not lost.
        // Entries that cleaning changed in `make_room` are part of this version, because it is
        // written after them.
        self.cache.clean_group(number);
        Ok(())
    }

    /// Writes back the translation page of the cached `page`.
    fn write_back(&mut self, page: u32, out: &mut Vec<FlashOp>) -> Result<(), ReadOnly> {
        let number = self.cache.group_of(page);
        self.write_translation_page(number, FlashCause::Mapping, out)?;
        // The version just written contains what cleaning had changed. The number stays in the
        // queue, and `rewrite_stale` skips it there: removing it would need a search. A page that
        // is out of date again meanwhile has two places, of which the first that comes rewrites
        // it. A call adds one such place and takes up to a block's worth, so they stay few.
        let number = self.device_page(page);
        self.is_stale[number as usize] = false;
        Ok(())
    }

    /// Rewrites translation pages that cleaning made out of date, at most a block's worth. Each
    /// may cause cleaning that makes others out of date, so this need not come to an end.
    fn rewrite_stale(&mut self, out: &mut Vec<FlashOp>) {
        let mut left = self.inner.limits.data_pages;
        while left > 0 {
            let Some(number) = self.stale.pop_front() else { return };
            if !self.is_stale[number as usize] {
                continue;
            }
            let page = number / self.stands_for;
            // The mark stays set during the write. Cleaning in `make_room` may move pages of
            // this very translation page; their entries are in the version that follows, so they
            // need no second place in the queue.
            if self.write_translation_page(page, FlashCause::MappingUpdate, out).is_err() {
                self.stale.push_front(number);
                return;
            }
            self.is_stale[number as usize] = false;
            left -= 1;
        }
    }

    /// Brings the entry of `page` into the cache; true if a translation page had to be read.
    fn look_up(&mut self, page: u32, out: &mut Vec<FlashOp>) -> Result<bool, ReadOnly> {
        if self.cache.touch(page) {
            return Ok(false);
        }
        if self.cache.is_full() {
            let victim = self.cache.oldest();
            // The entry is written before it leaves the cache. If the write fails, the entry is
            // still there and the mapping of its page is not lost.
            if self.cache.is_dirty(victim) {
                self.write_back(victim, out)?;
            }
            self.cache.remove(victim);
        }
        self.cache.insert(page);
        let number = self.cache.group_of(page);
        Ok(self.read_translation_page(number, FlashCause::Mapping, out))
    }

    /// Writes translation pages of data below `pages` that are not in flash yet.
    fn complete_table(
        &mut self,
        pages: u32,
        watch: &mut PrepareWatch<'_>,
    ) -> Result<(), PrepareError> {
        let mut out = Vec::new();
        for number in 0..self.cache.groups(pages) {
            watch.step_of(out.len())?;
            out.clear();
            if self.directory(number).is_none() {
                let wrote = self.write_translation_page(number, FlashCause::Mapping, &mut out);
                wrote.map_err(|_| sample::cannot_fill(pages))?;
            }
        }
        Ok(())
    }

    /// Steps of [`complete_table`](Dftl::complete_table) and
    /// [`fill_cache_at_random`](Dftl::fill_cache_at_random), once for a sample plane and once for the device.
    fn table_steps(&self, pages: u32) -> u64 {
        let planes = self.inner.geometry.planes();
        let steps = |pages: u32, capacity: u32| {
            u64::from(self.cache.groups(pages)) + u64::from(capacity.min(pages))
        };
        let capacity = self.cache.capacity();
        steps(pages, capacity) + steps(pages.div_ceil(planes), capacity.div_ceil(planes))
    }

    /// Fills the cache as random writes to the pages below `pages`, `together` of them at a time, do:
    /// all entries equally likely, half of them used twice. All are dirty: their groups are written
    /// back once before that is as it stays, which [`settling_writes`](Dftl::settling_writes) allow for.
    fn fill_cache_at_random(
        &mut self,
        (pages, together): (u32, u32),
        seed: u64,
        watch: &mut PrepareWatch<'_>,
    ) -> Result<(), PrepareError> {
        let mut rng = Rng::new(seed, "precondition cache");
        let (count, sets) = (self.cache.capacity().min(pages), pages.div_ceil(together));
        // Drawing until one is new takes ever longer; shuffling all takes memory.
        let mut shuffled: Vec<u32> = if count > pages / 2 { (0..sets).collect() } else { vec![] };
        let (mut number, mut drawn) = (0, 0_u32);
        while number < count {
            let set = match shuffled.len() as u64 {
                0 => loop {
                    let set = rng.below(u64::from(sets)) as u32;
                    if !self.cache.holds(set * together) {
                        break set;
                    }
                },
                all => {
                    let at = u64::from(drawn) + rng.below(all - u64::from(drawn));
                    shuffled.swap(drawn as usize, at as usize);
                    shuffled[drawn as usize]
                }
            };
            drawn += 1;
            let end = pages.min((set + 1) * together);
            for page in (set * together..end).take((count - number) as usize) {
                watch.step(1)?;
                self.cache.insert(page);
                if number < self.cache.capacity() / 2 {
                    self.cache.touch(page);
                }
                self.cache.make_dirty(page);
                number += 1;
            }
        }
        Ok(())
    }

    /// Simulates random writes to the pages below `pages`, `together` of them at a time, from a
    /// cache that is full and dirty to a cache with its stationary number of dirty entries.
    ///
    /// A small cache is filled anew twice; in a large one, translation pages of which an entry is
    /// thrown out are written back, each several times. Where nothing is thrown out, all stays dirty.
    /// Entries of pages that are written together leave together, and with one write of their
    /// translation page. A small device is written over and over, since its planes are too small to
    /// sample well.
    fn settling_writes(&self, pages: u32, together: u32) -> u64 {
        let (capacity, pages) = (u64::from(self.cache.capacity()), u64::from(pages));
        let groups = u64::from(self.cache.groups(pages as u32));
        // A random write misses the cache with probability (pages - capacity) / pages. The
        // quotient turns a number of write-backs into the number of writes that cause them.
        let misses = pages.saturating_sub(capacity).max(1);
        let written_back = (4 * groups).saturating_mul(pages) / misses * u64::from(together);
        let writes = (2 * capacity).min(32 * groups) + written_back;
        writes.min(pages).max((8 * pages).min(200_000))
    }
}

impl Sampled for Dftl {
    /// With its share of the cache. Its translation pages have as many entries as those of the device, so each is
    /// written back as often.
    fn one_plane(
        &self,
        (pages, together): (u32, u32),
        seed: u64,
        watch: &mut PrepareWatch<'_>,
    ) -> Result<Dftl, PrepareError> {
        let planes = self.inner.geometry.planes();
        let groups = self.cache.groups(pages);
        let mut inner = sample::empty_plane(&self.inner, pages, groups, seed);
        sample::fill_in_order(&mut inner, pages, watch)?;
        let capacity = self.cache.capacity().div_ceil(planes).min(pages);
        let mut plane = Dftl::assemble(inner, capacity, self.cache.group_size(), planes);
        plane.complete_table(pages, watch)?;
        plane.fill_cache_at_random((pages, together), seed, watch)?;
        Ok(plane)
    }

    fn page_map(&mut self) -> &mut PageMap {
        &mut self.inner
    }
}

impl Ftl for Dftl {
    fn logical_pages(&self) -> u32 {
        self.host_pages
    }

    fn read(&mut self, page: u32, out: &mut Vec<FlashOp>) -> bool {
        if self.inner.locate(page).is_none() {
            return false;
        }
        let before = out.len();
        let waits = if self.inner.read_only && !self.cache.holds(page) {
            // Nothing can be thrown out of the cache any more.
            let number = self.cache.group_of(page);
            self.read_translation_page(number, FlashCause::Mapping, out)
        } else {
            // A device that turns read-only here still reads.
            let _ = self.look_up(page, out);
            out.len() > before
        };
        self.inner.read(page, out);
        if let Some(data) = out.last_mut() {
            // The read of the data needs the physical page number. It starts only after the read
            // of the translation page has ended, so a miss costs two reads in sequence.
            data.after_mapping = waits;
        }
        self.rewrite_stale(out);
        true
    }

    fn write(&mut self, page: u32, plane: Plane, out: &mut Vec<FlashOp>) -> Result<(), ReadOnly> {
        if self.inner.read_only {
            return Err(ReadOnly);
        }
        self.look_up(page, out)?;
        let wrote = self.inner.write(page, plane, out);
        // The moves are noted also if the write failed: pages that were moved before the failure
        // have new places in either case.
        self.note_moves();
        wrote?;
        self.cache.make_dirty(page);
        self.rewrite_stale(out);
        Ok(())
    }

    fn trim(&mut self, page: u32, out: &mut Vec<FlashOp>) {
        if self.inner.locate(page).is_none() {
            return;
        }
        if !self.inner.read_only && self.look_up(page, out).is_ok() {
            self.cache.make_dirty(page);
        }
        self.inner.trim(page, out);
        self.rewrite_stale(out);
    }

    fn locate(&self, page: u32) -> Option<u32> {
        self.inner.locate(page)
    }

    fn prefetch(&self, page: u32) {
        self.inner.prefetch(page);
    }

    #[inline]
    fn prefetch_place(&self, physical: u32) {
        self.inner.prefetch_place(physical);
    }

    /// Only cleaning: the translation pages it makes out of date may be on other planes and are
    /// rewritten with the next request.
    fn background(&mut self, plane: u32, out: &mut Vec<FlashOp>) -> bool {
        let worked = self.inner.background(plane, out);
        self.note_moves();
        worked
    }

    fn flush(&mut self, out: &mut Vec<FlashOp>) {
        for number in 0..self.is_stale.len() as u32 {
            if self.is_stale[number as usize] || self.cache.is_group_dirty(number) {
                if self.write_translation_page(number, FlashCause::Mapping, out).is_err() {
                    return;
                }
                self.is_stale[number as usize] = false;
            }
        }
    }

    fn precondition(
        &mut self,
        how: &Precondition,
        seed: u64,
        watch: &mut PrepareWatch<'_>,
    ) -> Result<(), PrepareError> {
        let pages = how.pages(self.host_pages)?;
        match how.fill {
            Fill::Empty => return Ok(()),
            Fill::Sequential => {
                watch.expect(u64::from(pages) + u64::from(self.cache.groups(pages)));
                sample::fill_in_order(&mut self.inner, pages, watch)?;
                self.complete_table(pages, watch)?;
                // The entries written last are still there.
                let cached = self.cache.capacity().min(pages);
                (pages - cached..pages).for_each(|page| self.cache.insert(page));
            }
            Fill::Random => {
                let together = how.together;
                let settling = self.settling_writes(pages, together);
                let steady = sample::steady_steps(self.inner.geometry.planes(), pages);
                watch.expect(steady + self.table_steps(pages) + settling);
                let table_pages = self.cache.groups(pages);
                let written = Written { pages, table_pages, together };
                sample::fill_steady(self, written, seed, watch)?;
                self.complete_table(pages, watch)?;
                self.fill_cache_at_random((pages, together), seed, watch)?;
                let rng = Rng::new(seed, "precondition mapping");
                let mut random = RandomWrites::new(rng, pages, (1, together));
                sample::overwrite(self, settling, &mut random, watch)?;
            }
        }
        self.inner.blocks.forget_wear();
        Ok(())
    }

    fn pages_written(&self, block: u32) -> u32 {
        self.inner.pages_written(block)
    }

    fn map_ram_bytes(&self) -> u64 {
        let directory = self.is_stale.len() as u64 * u64::from(FLASH_ENTRY_BYTES);
        u64::from(self.cache.capacity()) * CACHE_ENTRY_BYTES + directory
    }

    fn health(&self) -> Health {
        self.inner.health()
    }

    fn erases(&self, block: u32) -> u32 {
        self.inner.erases(block)
    }

    fn start_worn(&mut self, erases: &[u32]) {
        self.inner.start_worn(erases);
    }

    fn planes(&self) -> Vec<PlaneUse> {
        self.inner.planes()
    }

    fn victims(&self) -> Option<Victims> {
        self.inner.victims()
    }
}
