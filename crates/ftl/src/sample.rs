//! Preconditioning: a used device at once.
//!
//! The steady state of uniform random writes is not computed from a formula but made by the FTL's
//! own code: one plane is written over and over without flash or clock until it is in balance, and
//! its state, some way on for each, is stamped on all planes. So it is the steady state of *this*
//! policy on planes of *this* size, and the closed forms remain an independent check.
//!
//! The behaviour of one plane must therefore not depend on their number: ages of blocks are counted in blocks closed in
//! their plane, and a sample of a DFTL has its share of the mapping cache.

use ssdyno_block::ConfigError;
use ssdyno_engine::Rng;

use crate::map::NONE;
use crate::page_map::{Frontier, PageMap};
use crate::placement::Chooser;
use crate::random_writes::RandomWrites;
use crate::{Blocks, Endurance, Ftl, FtlLimits, Plane, PrepareWatch};
use ssdyno_engine::PrepareError;

/// Overwrites of the sample plane before its first use. Greedy cleaning needs about three to
/// forget an ordered fill at a utilisation of 0.9.
const WARM_UP: u64 = 6;

/// Writes every page below `pages` once, in order: as many steps.
pub(crate) fn fill_in_order(
    ftl: &mut PageMap,
    pages: u32,
    watch: &mut PrepareWatch<'_>,
) -> Result<(), PrepareError> {
    let mut out = Vec::new();
    for page in 0..pages {
        watch.step_of(out.len())?;
        out.clear();
        ftl.write(page, Plane::Any, &mut out).map_err(|_| cannot_fill(page))?;
    }
    Ok(())
}

pub(crate) fn cannot_fill(page: u32) -> ConfigError {
    ConfigError::new(
        "precondition.fill",
        format!("the device became read-only at logical page {page} while it was filled"),
        "raise ftl.over_provisioning or flash.endurance_cycles, or lower flash.factory_bad",
    )
}

/// Steps that stamping `planes` planes of `pages` pages counts for: a page costs less than a write.
pub(crate) fn stamps(planes: u32, pages: u32) -> u64 {
    // Stamping copies tables from front to back, while a write chooses a plane and changes both
    // maps. The eighth only shapes the progress display; no result depends on it.
    u64::from(planes) * u64::from(pages) / 8
}

/// Writes between the states of two planes: far enough apart that neighbouring planes are not alike;
/// on large planes a smaller share suffices, since their state hardly varies.
fn between_planes(per_plane: u32) -> u64 {
    let step = u64::from(per_plane) * 3 / 10;
    step.clamp(1, 20_000.max(u64::from(per_plane) / 100))
}

/// Steps of [`fill_steady`].
pub(crate) fn steady_steps(planes: u32, pages: u32) -> u64 {
    let per_plane = pages.div_ceil(planes);
    u64::from(per_plane) * (1 + WARM_UP)
        + between_planes(per_plane) * u64::from(planes)
        + stamps(planes, per_plane)
}

/// An FTL on a [`PageMap`], whose steady state one plane shows.
pub(crate) trait Sampled: Ftl + Sized {
    /// One plane of it with its policies, limits and number of good blocks. It is first filled in order with the first
    /// number of `pages`; the second number of them is then written at a time.
    fn one_plane(
        &self,
        pages: (u32, u32),
        seed: u64,
        watch: &mut PrepareWatch<'_>,
    ) -> Result<Self, PrepareError>;

    /// The page map under it.
    fn page_map(&mut self) -> &mut PageMap;
}

impl Sampled for PageMap {
    fn one_plane(
        &self,
        (pages, _): (u32, u32),
        seed: u64,
        watch: &mut PrepareWatch<'_>,
    ) -> Result<PageMap, PrepareError> {
        let mut plane = empty_plane(self, pages, 0, seed);
        fill_in_order(&mut plane, pages, watch)?;
        Ok(plane)
    }

    fn page_map(&mut self) -> &mut PageMap {
        self
    }
}

/// One plane of `whole` for `pages` pages of the host and `table_pages` of a mapping table.
pub(crate) fn empty_plane(whole: &PageMap, pages: u32, table_pages: u32, seed: u64) -> PageMap {
    // Planes hold equal shares of the data. The sample has the blocks of the worst plane, so
    // that its state fits on every plane.
    let good = whole.geometry.blocks_per_plane - whole.blocks.bad_most();
    let geometry = whole.geometry.of_one_plane(good);
    let searches = whole.config.searches(good);
    // Preconditioning overwrites each page many times. With a finite life the sample's blocks
    // would go bad before the run begins.
    let endless = Endurance::endless(seed);
    let blocks = Blocks::new(1, good, whole.limits.data_pages, searches, endless);
    let limits = FtlLimits { logical_pages: pages, mapping_pages: table_pages, ..whole.limits };
    let config = whole.config.clone();
    PageMap::assemble(geometry, limits, config, blocks, Chooser::single(), seed)
}

/// Where random writes went.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Written {
    /// To pages below this one.
    pub(crate) pages: u32,
    /// With this number of the first pages of the mapping table, if one is kept in flash.
    pub(crate) table_pages: u32,
    /// To this number of pages at a time, see
    /// [`Precondition::together`](crate::Precondition::together).
    pub(crate) together: u32,
}

/// Puts `ftl` into the steady state of uniform random writes.
pub(crate) fn fill_steady<F: Sampled>(
    ftl: &mut F,
    written: Written,
    seed: u64,
    watch: &mut PrepareWatch<'_>,
) -> Result<(), PrepareError> {
    let Written { pages, table_pages, together } = written;
    let map = ftl.page_map();
    let planes = map.geometry.planes();
    let mut homes = vec![0; planes as usize];
    for residue in 0..planes {
        homes[map.chooser.home(residue) as usize] = residue;
    }
    let per_plane = pages.div_ceil(planes);
    if per_plane == 0 {
        return Ok(());
    }
    let step = between_planes(per_plane);
    // The writes have a random stream of their own. Preconditioning with another length
    // therefore leaves the random numbers of the run unchanged.
    let rng = Rng::new(seed, "precondition");
    let mut random = RandomWrites::new(rng, per_plane, (planes, together));
    let mut sample = ftl.one_plane((per_plane, random.at_a_time()), seed, watch)?;
    overwrite(&mut sample, u64::from(per_plane) * WARM_UP, &mut random, watch)?;
    for (plane, residue) in (0..).zip(homes) {
        // Without writes in between all planes would have the same free pages. They would run
        // out of free blocks at the same moment, and the run would begin with all planes
        // cleaning together.
        overwrite(&mut sample, step, &mut random, watch)?;
        let home = Home { plane, residue, pages, table_pages };
        stamp(ftl.page_map(), &home, sample.page_map());
        watch.step(stamps(1, per_plane))?;
    }
    Ok(())
}

/// Operations of the flash for a write, on average, from which on [`overwrite`] ends early.
///
/// What settles a device is how often its blocks are erased and not how much the host writes. A
/// mapping table that thrashes costs hundreds of operations a write, and the writes that a healthy device
/// needs took minutes there. A healthy DFTL stays below 25.
const OPERATIONS_EACH: u64 = 40;

/// Writes `writes` pages at random, or as many as take [`OPERATIONS_EACH`] times as many operations.
pub(crate) fn overwrite(
    ftl: &mut impl Ftl,
    writes: u64,
    random: &mut RandomWrites,
    watch: &mut PrepareWatch<'_>,
) -> Result<(), PrepareError> {
    let mut out = Vec::new();
    let mut left = writes * OPERATIONS_EACH;
    for written in 0..writes {
        let Some(rest) = left.checked_sub(out.len() as u64) else {
            return watch.step(writes - written);
        };
        left = rest;
        watch.step_of(out.len())?;
        let page = random.next();
        out.clear();
        ftl.write(page, Plane::Any, &mut out).map_err(|_| cannot_fill(page))?;
    }
    Ok(())
}

/// A plane and the pages that belong to it.
struct Home {
    plane: u32,
    /// What numbers of its pages leave when divided by the number of planes.
    residue: u32,
    /// Pages of the device that hold data.
    pages: u32,
    /// Pages of the mapping table that do.
    table_pages: u32,
}

impl Home {
    /// How many of the pages that hold data, without those of a table, belong to the plane.
    fn pages_of_plane(&self, ftl: &PageMap) -> u32 {
        self.pages.saturating_sub(self.residue).div_ceil(ftl.geometry.planes())
    }

    /// The logical page of `ftl` that is page `local` of the `sample`; `None` if the plane has one
    /// page fewer than the fullest.
    fn page(&self, ftl: &PageMap, sample: &PageMap, local: u32) -> Option<u32> {
        let planes = ftl.geometry.planes();
        let nth = |first: u32, local: u32| u64::from(first) + u64::from(local) * u64::from(planes);
        let Some(number) = local.checked_sub(sample.mapping_from) else {
            let page = nth(self.residue, local);
            return (page < u64::from(self.pages)).then_some(page as u32);
        };
        // Pages of the table are dealt out to the planes in turn after those of the host.
        // The first page of the table follows the last page of the host in the static order.
        // This finds the number of the first table page that falls to the plane.
        let host = ftl.limits.logical_pages;
        let first = (self.residue + planes - host % planes) % planes;
        let page = nth(first, number);
        (page < u64::from(self.table_pages)).then(|| host + page as u32)
    }
}

/// Copies the state of the sample to the plane of `home`.
fn stamp(ftl: &mut PageMap, home: &Home, sample: &PageMap) {
    let plane = home.plane;
    let good = ftl.blocks.good(plane);
    ftl.blocks.stamp(plane, &sample.blocks, &good);
    let frontiers = ftl.limits.frontiers;
    for stream in 0..frontiers {
        let Frontier { block, next } = sample.frontiers[stream as usize];
        let block = good.get(block as usize).copied().unwrap_or(NONE);
        ftl.frontiers[(plane * frontiers + stream) as usize] = Frontier { block, next };
    }
    ftl.begun[plane as usize] =
        sample.begun[0].moved(|block| good.get(block as usize).copied().unwrap_or(NONE));
    let pages_per_block = ftl.geometry.pages_per_block;
    let copied = match sample.mapping_from {
        NONE => {
            ftl.map.stamp(plane, (&sample.map, home.pages_of_plane(ftl)), &good, pages_per_block)
        }
        // Pages of the table have other places among the plane's than in the sample.
        _ => 0,
    };
    // The sample is a plane with the most pages. Whatever the copy above did not take over is
    // set page by page: pages of a mapping table, and all pages where planes have no strips.
    let mut valid = copied;
    for (local, at) in sample.map.from(copied) {
        let number = pages_per_block.remainder(at);
        let block = good[sample.geometry.block_of_page(at) as usize];
        let Some(logical) = home.page(ftl, sample, local) else {
            // Its place holds stale data.
            ftl.blocks.invalidate(block);
            continue;
        };
        let physical = ftl.geometry.first_page(block) + number;
        ftl.map.set(logical, physical);
        valid += 1;
    }
    ftl.planes[plane as usize].valid = valid;
}
