//! Preconditioning: a used device at once.
//!
//! The steady state of uniform random writes is not computed from a formula but made by the FTL's
//! own code: one plane is written over and over without flash or clock until it is in balance, and
//! its state, some way on for each, is stamped on all planes. So it is the steady state of *this*
//! policy on planes of *this* size, and the closed forms remain an independent check.

use ssdyno_block::ConfigError;
use ssdyno_engine::Rng;
use ssdyno_flash::FlashOp;

use crate::page_map::{Frontier, NONE, PageMap};
use crate::placement::Chooser;
use crate::{Blocks, Endurance, Ftl, Limits, Plane, PrepareError, Watch};

/// Overwrites of the sample plane before its first use. Greedy cleaning needs about three to
/// forget an ordered fill at a utilisation of 0.9.
const WARM_UP: u64 = 6;

/// Writes every page below `pages` once, in order: as many steps.
pub(crate) fn fill_in_order(
    ftl: &mut PageMap,
    pages: u32,
    watch: &mut Watch<'_>,
) -> Result<(), PrepareError> {
    let mut out = Vec::new();
    for page in 0..pages {
        watch.step(1)?;
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

/// Puts `ftl` into the steady state of uniform random writes over the pages below `pages`.
pub(crate) fn fill_steady(
    ftl: &mut PageMap,
    pages: u32,
    seed: u64,
    watch: &mut Watch<'_>,
) -> Result<(), PrepareError> {
    let planes = ftl.geometry.planes();
    let mut homes = vec![0; planes as usize];
    for residue in 0..planes {
        homes[ftl.chooser.home(residue) as usize] = residue;
    }
    let per_plane = pages.div_ceil(planes);
    if per_plane == 0 {
        return Ok(());
    }
    let step = between_planes(per_plane);
    let mut plane = SamplePlane::new(ftl, per_plane, seed, watch)?;
    plane.overwrite(u64::from(per_plane) * WARM_UP, watch)?;
    for target in 0..planes {
        plane.overwrite(step, watch)?;
        stamp(ftl, target, homes[target as usize], pages, &plane.ftl);
        watch.step(stamps(1, per_plane))?;
    }
    Ok(())
}

/// One plane with the policies, limits and number of good blocks of the whole device.
struct SamplePlane {
    ftl: PageMap,
    pages: u32,
    rng: Rng,
    out: Vec<FlashOp>,
}

impl SamplePlane {
    fn new(
        whole: &PageMap,
        pages: u32,
        seed: u64,
        watch: &mut Watch<'_>,
    ) -> Result<SamplePlane, PrepareError> {
        let good = whole.geometry.blocks_per_plane - whole.blocks.bad_most();
        let geometry = whole.geometry.of_one_plane(good);
        let searches = whole.config.searches(good);
        let endless = Endurance::endless(seed);
        let blocks = Blocks::new(1, good, whole.limits.data_pages, searches, endless);
        let limits = Limits { logical_pages: pages, mapping_pages: 0, ..whole.limits };
        let config = whole.config.clone();
        let mut ftl = PageMap::assemble(geometry, limits, config, blocks, Chooser::single(), seed);
        fill_in_order(&mut ftl, pages, watch)?;
        Ok(SamplePlane { ftl, pages, rng: Rng::new(seed, "precondition"), out: Vec::new() })
    }

    fn overwrite(&mut self, writes: u64, watch: &mut Watch<'_>) -> Result<(), PrepareError> {
        for _ in 0..writes {
            watch.step(1)?;
            let page = self.rng.below(u64::from(self.pages)) as u32;
            self.out.clear();
            self.ftl.write(page, Plane::Any, &mut self.out).map_err(|_| cannot_fill(page))?;
        }
        Ok(())
    }
}

/// Copies the state of the sample to `plane`, whose logical pages are `residue`, `residue` +
/// planes, … below `pages`.
fn stamp(ftl: &mut PageMap, plane: u32, residue: u32, pages: u32, sample: &PageMap) {
    let planes = ftl.geometry.planes();
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
    let mut valid = 0;
    for (local, at) in sample.map.iter() {
        let number = sample.geometry.pages_per_block.remainder(at);
        let block = good[sample.geometry.block_of_page(at) as usize];
        let logical = u64::from(residue) + u64::from(local) * u64::from(planes);
        if logical >= u64::from(pages) {
            // This plane has one page fewer than the fullest: its place holds stale data.
            ftl.blocks.invalidate(block);
            continue;
        }
        let physical = ftl.geometry.first_page(block) + number;
        ftl.map.set(logical as u32, physical);
        valid += 1;
    }
    ftl.valid[plane as usize] = valid;
}
