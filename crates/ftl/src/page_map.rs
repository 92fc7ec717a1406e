//! Page mapping: every logical page may live in any physical page.

use ssdyno_block::ConfigError;
use ssdyno_engine::Rng;
use ssdyno_engine::events::FlashCause;
use ssdyno_flash::{Divisor, FlashOp, Geometry};

use crate::contract::FtlFacts;
use crate::map::{Map, NONE};
use crate::own_keys::CleaningPace;
use crate::pace::Begun;
use crate::placement::Chooser;
use crate::{
    Blocks, Fill, Ftl, FtlConfig, FtlLimits, HotCold, Plane, Precondition, PrepareWatch, ReadOnly,
    sample,
};
use ssdyno_engine::{Health, PlaneUse, PrepareError, Victims};

/// The open block of a plane.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frontier {
    /// The block; [`NONE`] before the first write.
    pub(crate) block: u32,
    /// Its next page.
    pub(crate) next: u32,
}

/// The pages written to a plane, and its valid pages.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PlaneCounts {
    /// Pages written that cleaning did not move: those of the host, those of the mapping table.
    written: [u64; 2],
    /// Valid pages.
    pub(crate) valid: u32,
}

/// Which open block a page goes to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stream {
    Host,
    Survivors,
    /// Pages of the mapping table itself, where they live in flash.
    Mapping,
}

/// The page-mapping FTL, and the base of those that refine it.
#[derive(Clone, Debug)]
pub(crate) struct PageMap {
    pub(crate) geometry: Geometry,
    blocks_in_plane: Divisor,
    pub(crate) limits: FtlLimits,
    pub(crate) config: FtlConfig,
    pub(crate) map: Map,
    pub(crate) blocks: Blocks,
    /// One or two a plane: host, survivors.
    pub(crate) frontiers: Vec<Frontier>,
    /// The pages written to each plane, and its valid pages.
    pub(crate) planes: Vec<PlaneCounts>,
    pub(crate) chooser: Chooser,
    pub(crate) rng: Rng,
    pub(crate) read_only: bool,
    pub(crate) gather: Vec<(u32, u32)>,
    /// The block of each plane that is being cleaned in steps.
    pub(crate) begun: Vec<Begun>,
    /// The blocks that cleaning chose, by what was valid in them.
    pub(crate) victims: Victims,
    /// Logical pages from here on are pages of the mapping table, kept in blocks of their own.
    pub(crate) mapping_from: u32,
    /// With a mapping table in flash: pages of the host that cleaning moved.
    pub(crate) moved: Vec<u32>,
}

impl PageMap {
    pub(crate) fn new(facts: &FtlFacts<'_>) -> Result<PageMap, ConfigError> {
        PageMap::with_mapping(facts, |_| 0)
    }

    /// A page map that also holds `mapping_pages(logical pages)` pages of a mapping table behind
    /// the host's.
    pub(crate) fn with_mapping(
        facts: &FtlFacts<'_>,
        mapping_pages: impl Fn(u32) -> u32,
    ) -> Result<PageMap, ConfigError> {
        let geometry = facts.geometry;
        let chooser = Chooser::new(facts.config, facts.flash, &geometry)?;
        let mut config = facts.config.clone();
        if config.hot_cold != HotCold::Off && geometry.blocks_per_plane < 8 {
            config.hot_cold = HotCold::Off;
        }
        // The factory's bad blocks are known only once drawn; the limits depend on them.
        let blocks = Blocks::new(
            geometry.planes(),
            geometry.blocks_per_plane,
            geometry.pages_per_block.get().saturating_sub(config.summary_pages),
            config.searches(geometry.blocks_per_plane),
            facts.endurance(),
        );
        let limits = config.limits_with_mapping(&geometry, blocks.bad_most(), mapping_pages)?;
        Ok(PageMap::assemble(geometry, limits, config, blocks, chooser, facts.seed))
    }

    pub(crate) fn assemble(
        geometry: Geometry,
        limits: FtlLimits,
        config: FtlConfig,
        blocks: Blocks,
        chooser: Chooser,
        seed: u64,
    ) -> PageMap {
        // The frontiers of a plane lie side by side. A write that looks at several streams of a
        // plane finds them next to one another in memory.
        let frontiers = geometry.planes() * limits.frontiers;
        PageMap {
            geometry,
            blocks_in_plane: Divisor::new(geometry.blocks_per_plane),
            limits,
            config,
            map: Map::new(
                limits.logical_pages + limits.mapping_pages,
                &geometry,
                chooser.residues(),
            ),
            blocks,
            // `next` equals `data_pages` although no block is open. The first write takes the
            // same path as a write that finds its block full, and no write has to test for a
            // missing block.
            frontiers: vec![Frontier { block: NONE, next: limits.data_pages }; frontiers as usize],
            planes: vec![PlaneCounts::default(); geometry.planes() as usize],
            chooser,
            rng: Rng::new(seed, "cleaning"),
            read_only: false,
            gather: Vec::with_capacity(limits.data_pages as usize),
            begun: vec![Begun::NOTHING; geometry.planes() as usize],
            victims: Victims::default(),
            mapping_from: if limits.mapping_pages > 0 { limits.logical_pages } else { NONE },
            moved: Vec::new(),
        }
    }

    #[inline]
    fn plane_of(&self, block: u32) -> u32 {
        self.blocks_in_plane.quotient(block)
    }

    pub(crate) fn frontier_index(&self, plane: u32, stream: Stream) -> usize {
        // The mapping stream is the last one. The indexes of the other streams are the same with
        // and without a mapping table in flash. Without `hot_cold` survivors share the block of
        // the host.
        let stream = match stream {
            Stream::Host => 0,
            Stream::Survivors => u32::from(self.config.hot_cold != HotCold::Off),
            Stream::Mapping => self.limits.frontiers - 1,
        };
        (plane * self.limits.frontiers + stream) as usize
    }

    pub(crate) fn open(&mut self, plane: u32, index: usize) -> Option<()> {
        let block = self.blocks.open(plane)?;
        self.frontiers[index] = Frontier { block, next: 0 };
        // When this block is full, the data of the next block will be in the cache.
        if let Some(next) = self.blocks.next_free(plane) {
            self.map.prefetch_pages(self.geometry.first_page(next), self.limits.data_pages);
            self.blocks.prefetch(next);
        }
        Some(())
    }

    /// The next free page of `plane`'s open block; `None` if there is no block to open.
    #[inline]
    pub(crate) fn next_page(&mut self, plane: u32, stream: Stream) -> Option<(u32, u32)> {
        let index = self.frontier_index(plane, stream);
        if self.frontiers[index].next == self.limits.data_pages {
            self.open(plane, index)?;
        }
        let frontier = &mut self.frontiers[index];
        let page = self.geometry.first_page(frontier.block) + frontier.next;
        frontier.next += 1;
        Some((frontier.block, page))
    }

    /// Closes the block that was just filled, writing its summary.
    #[inline]
    pub(crate) fn close_if_full(
        &mut self,
        plane: u32,
        stream: Stream,
        cause: FlashCause,
        out: &mut Vec<FlashOp>,
    ) {
        let Frontier { block, next } = self.frontiers[self.frontier_index(plane, stream)];
        if next < self.limits.data_pages {
            return;
        }
        let first = self.geometry.first_page(block);
        // The host did not write the summary. A summary that counted as `Host` would lower the
        // write amplification, because host programs are its divisor.
        let cause = if cause.follows_cleaning() { cause } else { FlashCause::Mapping };
        for summary in 0..self.config.summary_pages {
            let mut op = FlashOp::program(plane, first + next + summary, cause);
            // The summary page transfers one sector. S3-33 charges the program of a whole page
            // for it (writes / 63) but no page transfer.
            op.sector_only = true;
            out.push(op);
        }
        self.blocks.close(block);
    }

    /// Puts logical page `page` at the next place in `plane` and forgets where it was.
    pub(crate) fn append(
        &mut self,
        plane: u32,
        page: u32,
        cause: FlashCause,
        out: &mut Vec<FlashOp>,
    ) -> Result<(), ReadOnly> {
        let stream = if page < self.mapping_from { Stream::Host } else { Stream::Mapping };
        // The new page is taken before the old one is forgotten. If the plane has no page left,
        // the old data stays valid, and the read-only device still returns it.
        let (block, physical) = self.next_page(plane, stream).ok_or(ReadOnly)?;
        self.forget(page);
        self.map.set(page, physical);
        self.blocks.add_valid(block, 1);
        let counts = &mut self.planes[plane as usize];
        counts.valid += 1;
        counts.written[usize::from(stream == Stream::Mapping)] += 1;
        out.push(FlashOp::program(plane, physical, cause));
        self.close_if_full(plane, stream, cause, out);
        Ok(())
    }

    /// Invalidates the data of `page`, if it has any.
    #[inline]
    fn forget(&mut self, page: u32) {
        // The reverse map is not touched. A page is valid only if the forward map points to it,
        // so the old entry is stale as soon as the caller changes the forward map.
        let old = self.map.get(page);
        if old != NONE {
            let block = self.geometry.block_of_page(old);
            self.blocks.invalidate(block);
            let plane = self.plane_of(block);
            self.planes[plane as usize].valid -= 1;
        }
    }

    /// The plane for the next write of `page`.
    #[inline]
    pub(crate) fn choose_plane(&mut self, page: u32, plane: Plane) -> u32 {
        let (planes, most) = (&self.planes, self.limits.valid_most);
        self.chooser.choose(page, plane, |plane| most.saturating_sub(planes[plane as usize].valid))
    }

    /// The plane for the next write of `page`, which is one of the mapping table.
    pub(crate) fn choose_table_plane(&mut self, page: u32) -> u32 {
        let (planes, most) = (&self.planes, self.limits.valid_most);
        let room = |plane: u32| most.saturating_sub(planes[plane as usize].valid);
        self.chooser.choose_for_table(page, room)
    }

    /// Valid pages that `plane` holds when all that are not reserved or open are valid.
    fn capacity(&self, plane: u32) -> u32 {
        let FtlLimits { free_low, free_background, frontiers, data_pages, .. } = self.limits;
        // A begun victim is neither closed nor free until its last page has moved. Paced
        // cleaning has one such block in a plane at nearly all times.
        let begun = u32::from(self.config.page.cleaning_pace == CleaningPace::Paced);
        let kept = free_low.max(free_background) + frontiers - 1 + begun;
        let good = self.geometry.blocks_per_plane - self.blocks.bad_count(plane);
        good.saturating_sub(kept) * data_pages
    }

    /// Makes room in `plane` and writes `page` of the host there.
    #[inline(always)]
    pub(crate) fn write_in(
        &mut self,
        plane: u32,
        page: u32,
        out: &mut Vec<FlashOp>,
    ) -> Result<(), ReadOnly> {
        self.make_room(plane, Stream::Host, out)?;
        self.clean_a_little(plane, out);
        // The copies may have filled the open block.
        self.make_room(plane, Stream::Host, out)?;
        self.append(plane, page, FlashCause::Host, out)
    }
}

impl Ftl for PageMap {
    fn logical_pages(&self) -> u32 {
        self.limits.logical_pages
    }

    fn read(&mut self, page: u32, out: &mut Vec<FlashOp>) -> bool {
        let physical = self.map.get(page);
        if physical == NONE {
            return false;
        }
        let block = self.geometry.block_of_page(physical);
        let plane = self.plane_of(block);
        out.push(FlashOp::read(plane, physical, FlashCause::Host));
        true
    }

    fn write(&mut self, page: u32, plane: Plane, out: &mut Vec<FlashOp>) -> Result<(), ReadOnly> {
        if self.read_only {
            return Err(ReadOnly);
        }
        let plane = self.choose_plane(page, plane);
        self.write_in(plane, page, out)
    }

    fn trim(&mut self, page: u32, _: &mut Vec<FlashOp>) {
        // `forget` finds the block of the old data through the map. The entry must still be
        // there, so `remove` comes second.
        self.forget(page);
        self.map.remove(page);
    }

    fn locate(&self, page: u32) -> Option<u32> {
        Some(self.map.get(page)).filter(|physical| *physical != NONE)
    }

    #[inline]
    fn prefetch(&self, page: u32) {
        self.map.prefetch(page);
    }

    #[inline]
    fn prefetch_place(&self, physical: u32) {
        self.blocks.prefetch(self.geometry.block_of_page(physical));
    }

    fn background(&mut self, plane: u32, out: &mut Vec<FlashOp>) -> bool {
        let before = out.len();
        let free = self.blocks.free_count(plane);
        // Where so many can never be free there is an end, too: each call gains a page at least.
        let data_pages = self.limits.data_pages;
        let gains = |block| self.blocks.valid(block) < data_pages;
        if free < self.limits.free_background && self.blocks.least_valid(plane).is_some_and(gains) {
            // Most pages of a begun victim have moved already, so it usually frees a block with
            // fewer copies than a new one. Its cleaning ends before another victim is chosen.
            self.finish_cleaning(plane, out);
            self.clean_until(plane, free + 1, 0, out);
        }
        out.len() > before
    }

    fn precondition(
        &mut self,
        how: &Precondition,
        seed: u64,
        watch: &mut PrepareWatch<'_>,
    ) -> Result<(), PrepareError> {
        let pages = how.pages(self.limits.logical_pages)?;
        match how.fill {
            Fill::Empty => Ok(()),
            Fill::Sequential => {
                watch.expect(u64::from(pages));
                sample::fill_in_order(self, pages, watch)
            }
            Fill::Random => {
                watch.expect(sample::steady_steps(self.geometry.planes(), pages));
                let written = sample::Written { pages, table_pages: 0, together: how.together };
                sample::fill_steady(self, written, seed, watch)
            }
        }
    }

    fn pages_written(&self, block: u32) -> u32 {
        let plane = self.plane_of(block);
        // A begun victim is taken out of the closed blocks, but its pages stay programmed until
        // the erase. The flash must see a full block there.
        if self.blocks.is_closed(block) || self.begun[plane as usize].victim == block {
            return self.geometry.pages_per_block.get();
        }
        let range = plane * self.limits.frontiers..(plane + 1) * self.limits.frontiers;
        let mut open = range.map(|index| self.frontiers[index as usize]);
        // A full one is closed, and perhaps erased since.
        open.find(|frontier| frontier.block == block && frontier.next < self.limits.data_pages)
            .map_or(0, |frontier| frontier.next)
    }

    fn map_ram_bytes(&self) -> u64 {
        4 * u64::from(self.limits.logical_pages)
    }

    fn health(&self) -> Health {
        self.blocks.health(self.read_only)
    }

    fn erases(&self, block: u32) -> u32 {
        self.blocks.erases(block)
    }

    fn start_worn(&mut self, erases: &[u32]) {
        self.blocks.start_worn(|block| erases[block as usize]);
    }

    fn planes(&self) -> Vec<PlaneUse> {
        let pages = self.limits.logical_pages + self.limits.mapping_pages;
        let share = pages.div_ceil(self.geometry.planes());
        let plane = |(plane, counts): (u32, &PlaneCounts)| PlaneUse {
            host_pages: counts.written[0],
            table_pages: counts.written[1],
            erases: self.blocks.erases_of_plane(plane),
            valid: counts.valid,
            share,
            capacity: self.capacity(plane),
        };
        (0..).zip(&self.planes).map(plane).collect()
    }

    fn victims(&self) -> Option<Victims> {
        Some(self.victims)
    }

    fn effective_utilisation(&self) -> Option<f64> {
        // The closed forms assume that all blocks hold data when a victim is chosen. The blocks
        // of the reserve and the bad blocks never do, so they do not count.
        let planes = f64::from(self.geometry.planes());
        let logical = f64::from(self.limits.logical_pages) / planes;
        let bad = f64::from(self.blocks.bad_total()) / planes;
        let closed = f64::from(self.geometry.blocks_per_plane - self.limits.free_low) - bad;
        Some(logical / (closed * f64::from(self.limits.data_pages)))
    }
}
