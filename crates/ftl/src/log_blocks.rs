//! The common part of FTLs that map whole blocks: [`Block`](crate::block_map),
//! [`BAST`](crate::bast) and [`FAST`](crate::fast) differ only in their [`Policy`].
//!
//! Logical pages are dealt out to the planes in turn, in the static order of the page map, so that
//! long transfers use all planes; the pages that fall to a plane are cut into *logical blocks* of
//! one block each. A logical block and its logs stay in their plane, so that copies do. A *data
//! block* holds each page at its own offset; pages are programmed upwards, and offsets may be left
//! out.
//!
//! The simulator knows where every page is; the controller that is modelled needs only what
//! `map_ram_bytes` says. A logical page's program is awaited by the host; copies and erases of
//! merges are not, but being ahead of the program in the same plane they delay it all the same.

use std::fmt::Debug;

use ssdyno_block::ConfigError;
use ssdyno_engine::Rng;
use ssdyno_engine::events::FlashCause;
use ssdyno_flash::FlashOp;

pub(crate) use crate::block_store::{Place, Shares, Store};
use crate::blocks::Searches;
use crate::contract::FtlFacts;
use crate::map::NONE;
use crate::own_keys::LogBlockConfig;
use crate::placement::Chooser;
use crate::random_writes::RandomWrites;
use crate::{
    Blocks, Endurance, Fill, Ftl, FtlConfig, Plane, Precondition, PrepareWatch, ReadOnly, sample,
};
use ssdyno_engine::{Health, PrepareError};

/// The policy of one plane; there is one instance per plane, independent of the others.
pub(crate) trait Policy: Clone + Debug + Send + Sync {
    /// Its keys, if it uses log blocks.
    fn logs(config: &FtlConfig) -> Option<&LogBlockConfig> {
        let _ = config;
        None
    }

    fn new(shares: Shares) -> Self;

    /// Writes `offset` of `place`.
    fn write(
        &mut self,
        store: &mut Store,
        place: Place,
        offset: u32,
        out: &mut Vec<FlashOp>,
    ) -> Result<(), ReadOnly>;

    /// A page of `place` was forgotten.
    fn trimmed(&mut self, store: &mut Store, place: Place, out: &mut Vec<FlashOp>);

    /// Merges whatever is best merged next in `plane`; false if there is nothing to merge.
    fn merge_one(&mut self, store: &mut Store, plane: u32, out: &mut Vec<FlashOp>) -> bool;

    /// Replaces every physical block it knows by `to(block)`.
    fn relocate(&mut self, to: &dyn Fn(u32) -> u32);

    /// Random writes in a plane, after which the logs are in their steady state.
    fn settling_writes(shares: Shares) -> u64;

    /// RAM for the mapping of a plane, in bytes.
    fn ram_bytes(shares: Shares) -> u64;
}

/// An FTL that maps blocks.
#[derive(Clone, Debug)]
pub(crate) struct BlockFtl<P> {
    store: Store,
    policies: Vec<P>,
}

impl<P: Policy> BlockFtl<P> {
    pub(crate) fn new(facts: &FtlFacts<'_>) -> Result<BlockFtl<P>, ConfigError> {
        Ok(BlockFtl::assemble(Store::new(facts, P::logs(facts.config))?))
    }

    fn assemble(store: Store) -> BlockFtl<P> {
        let policies = vec![P::new(store.shares); store.geometry.planes() as usize];
        BlockFtl { store, policies }
    }

    fn fill_in_order(
        &mut self,
        pages: u32,
        watch: &mut PrepareWatch<'_>,
    ) -> Result<(), PrepareError> {
        watch.expect(u64::from(pages));
        let mut out = Vec::new();
        for page in 0..pages {
            watch.step_of(out.len())?;
            out.clear();
            self.write(page, Plane::Any, &mut out).map_err(|_| sample::cannot_fill(page))?;
        }
        Ok(())
    }

    /// One plane with the policy and the number of good blocks of the whole device.
    fn sample_plane(&self, pages: u32, seed: u64) -> BlockFtl<P> {
        let whole = &self.store;
        // The sample has the good blocks of the worst plane, so that its state fits into every
        // plane. Its blocks never go bad, because preconditioning must not use up their life.
        let good = whole.geometry.blocks_per_plane - whole.blocks.bad_most();
        let geometry = whole.geometry.of_one_plane(good);
        let b = whole.pages_per_block();
        let searches = Searches { window: 0, wear: whole.config.wear_levelling };
        let blocks = Blocks::new(1, good, b, searches, Endurance::endless(seed));
        let config = whole.config.clone();
        let chooser = Chooser::single();
        BlockFtl::assemble(Store::assemble(geometry, whole.shares, config, blocks, chooser, pages))
    }

    /// The steady state of uniform random writes, `together` pages at a time, made by the FTL's own
    /// code on one plane and stamped on all, some writes further on for each; see [`crate::sample`].
    fn fill_steady(
        &mut self,
        (pages, together): (u32, u32),
        seed: u64,
        watch: &mut PrepareWatch<'_>,
    ) -> Result<(), PrepareError> {
        let planes = self.store.geometry.planes();
        let per_plane = pages.div_ceil(planes);
        if per_plane == 0 {
            return Ok(());
        }
        let mut sample = self.sample_plane(per_plane, seed);
        let rng = Rng::new(seed, "precondition");
        let mut random = RandomWrites::new(rng, per_plane, (planes, together));
        let mut out = Vec::new();
        // Pages that are written together go to one log.
        let writes = P::settling_writes(self.store.shares) * u64::from(random.at_a_time());
        // A few more writes separate neighbouring planes. With equal states all planes would
        // merge at the same moments of the run.
        let step = writes / 20 + 1;
        watch.expect(writes + step * u64::from(planes - 1) + sample::stamps(planes, per_plane));
        sample.fill_in_order(per_plane, watch)?;
        let mut due = writes;
        for plane in 0..planes {
            for _ in 0..std::mem::replace(&mut due, step) {
                watch.step_of(out.len())?;
                let page = random.next();
                out.clear();
                sample.write(page, Plane::Any, &mut out).map_err(|_| sample::cannot_fill(page))?;
            }
            self.stamp(plane, pages, &sample);
            watch.step(sample::stamps(1, per_plane))?;
        }
        Ok(())
    }

    /// Copies the state of `sample` to `plane`, with the pages below `pages`.
    fn stamp(&mut self, plane: u32, pages: u32, sample: &BlockFtl<P>) {
        let store = &mut self.store;
        let good = store.blocks.good(plane);
        store.blocks.stamp(plane, &sample.store.blocks, &good);
        for (from, to) in good.iter().enumerate().take(sample.store.written.len()) {
            store.written[*to as usize] = sample.store.written[from];
        }
        let local = sample.store.geometry;
        for (index, at) in sample.store.map.iter().enumerate() {
            if *at == NONE {
                continue;
            }
            let block = good[local.block_of_page(*at) as usize];
            // The product may exceed 32 bits for the last page of a large device, and it is
            // compared with the number of pages before it is narrowed.
            let page = index as u64 * u64::from(store.planes.get())
                + u64::from(store.residues[plane as usize]);
            if page >= u64::from(pages) {
                // This plane has one page fewer than the fullest: its place holds stale data.
                store.blocks.invalidate(block);
                continue;
            }
            let physical = store.geometry.first_page(block) + local.pages_per_block.remainder(*at);
            store.map[page as usize] = physical;
            store.reverse.set(physical, page as u32);
        }
        let to = |block: u32| good.get(block as usize).copied().unwrap_or(NONE);
        for (block, data) in sample.store.data.iter().enumerate() {
            store.set_data(Place { plane, block: block as u32 }, to(*data));
        }
        let mut policy = sample.policies[0].clone();
        // The policy is cloned from plane 0 of the sample and names blocks of the sample. They
        // become the good blocks of this plane in the same order.
        policy.relocate(&to);
        self.policies[plane as usize] = policy;
    }
}

impl<P: Policy> Ftl for BlockFtl<P> {
    fn logical_pages(&self) -> u32 {
        self.store.logical_pages
    }

    fn read(&mut self, page: u32, out: &mut Vec<FlashOp>) -> bool {
        let Some(physical) = self.locate(page) else { return false };
        out.push(FlashOp::read(self.store.chooser.home(page), physical, FlashCause::Host));
        true
    }

    fn write(&mut self, page: u32, _: Plane, out: &mut Vec<FlashOp>) -> Result<(), ReadOnly> {
        if self.store.read_only {
            return Err(ReadOnly);
        }
        let (place, offset) = self.store.place(page);
        let policy = &mut self.policies[place.plane as usize];
        let wrote = policy.write(&mut self.store, place, offset, out);
        self.store.read_only = wrote.is_err();
        wrote
    }

    fn trim(&mut self, page: u32, out: &mut Vec<FlashOp>) {
        let Some(at) = self.locate(page) else { return };
        // The map changes before the policy is informed. `trimmed` looks for logs and data blocks
        // without a valid page and must not count this one.
        self.store.map[page as usize] = NONE;
        self.store.blocks.invalidate(self.store.geometry.block_of_page(at));
        let (place, _) = self.store.place(page);
        self.policies[place.plane as usize].trimmed(&mut self.store, place, out);
    }

    fn locate(&self, page: u32) -> Option<u32> {
        Some(self.store.map[page as usize]).filter(|physical| *physical != NONE)
    }

    #[inline]
    fn prefetch(&self, page: u32) {
        if let Some(entry) = self.store.map.get(page as usize) {
            ssdyno_engine::prefetch(entry);
        }
    }

    fn background(&mut self, plane: u32, out: &mut Vec<FlashOp>) -> bool {
        let blocks = f64::from(self.store.geometry.blocks_per_plane);
        let enough = (self.store.config.free_blocks_background * blocks).ceil() as u32;
        !self.store.read_only
            && self.store.blocks.free_count(plane) < enough
            // One merge for each call: a call ends after a bounded amount of work, and the
            // device can serve a request of the host in between.
            && self.policies[plane as usize].merge_one(&mut self.store, plane, out)
    }

    fn precondition(
        &mut self,
        how: &Precondition,
        seed: u64,
        watch: &mut PrepareWatch<'_>,
    ) -> Result<(), PrepareError> {
        let pages = how.pages(self.store.logical_pages)?;
        match how.fill {
            Fill::Empty => Ok(()),
            Fill::Sequential => self.fill_in_order(pages, watch),
            Fill::Random => self.fill_steady((pages, how.together), seed, watch),
        }
    }

    fn pages_written(&self, block: u32) -> u32 {
        self.store.written(block)
    }

    fn map_ram_bytes(&self) -> u64 {
        P::ram_bytes(self.store.shares) * u64::from(self.store.geometry.planes())
    }

    fn health(&self) -> Health {
        self.store.blocks.health(self.store.read_only)
    }

    fn erases(&self, block: u32) -> u32 {
        self.store.blocks.erases(block)
    }

    fn start_worn(&mut self, erases: &[u32]) {
        self.store.blocks.start_worn(|block| erases[block as usize]);
    }
}
