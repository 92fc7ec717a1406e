//! A complete FTL in one file: every plane is a ring of blocks, written at the head and cleaned at
//! the tail. `docs/add_an_ftl.md` walks through it; running it runs the conformance suite.

use std::error::Error;

use ssdyno_block::ConfigError;
use ssdyno_engine::Rng;
use ssdyno_engine::events::FlashCause;
use ssdyno_engine::{Health, PrepareError};
use ssdyno_flash::{FlashOp, Geometry};
use ssdyno_ftl::conformance::{check_built, ftl_config, small_flash};
use ssdyno_ftl::{Fill, Ftl, FtlFacts, Plane, Precondition, PrepareWatch, ReadOnly};

/// The blocks of a plane in use: `used` of them from `tail` on, around the ring.
#[derive(Clone, Debug)]
struct Ring {
    tail: u32,
    used: u32,
    /// Next page of the block at the head.
    next: u32,
}

/// The ring log.
#[derive(Clone, Debug)]
pub(crate) struct RingLog {
    geometry: Geometry,
    /// Where each logical page is.
    map: Vec<Option<u32>>,
    /// Whose data each physical page holds, as long as that is valid.
    owner: Vec<Option<u32>>,
    rings: Vec<Ring>,
}

impl RingLog {
    /// Checks the numbers and makes a fresh one.
    pub(crate) fn new(facts: &FtlFacts<'_>) -> Result<RingLog, ConfigError> {
        if facts.endurance().matters() {
            return Err(ConfigError::new(
                "flash.endurance_cycles",
                "the ring log cannot step over bad blocks",
                "leave out flash.endurance_cycles and flash.factory_bad, or use the `page` FTL",
            ));
        }
        let geometry = facts.geometry;
        let logical_pages = facts.config.logical_pages(&geometry)?;
        let (planes, b) = (geometry.planes(), geometry.pages_per_block.get());
        // One block stays free for cleaning, and one page must be stale, or nothing is gained.
        let room = (geometry.blocks_per_plane - 1) * b;
        if logical_pages.div_ceil(planes) >= room {
            let physical = f64::from(geometry.blocks_per_plane * b);
            let least = physical / f64::from(room.saturating_sub(1).max(1)) - 1.0;
            return Err(ConfigError::new(
                "ftl.over_provisioning",
                format!("{} leaves no block to clean with", facts.config.over_provisioning),
                format!(
                    "raise ftl.over_provisioning to at least {:.3}, or use more blocks in a plane \
                     (flash.blocks_per_plane)",
                    least + 0.001
                ),
            ));
        }
        Ok(RingLog {
            geometry,
            map: vec![None; logical_pages as usize],
            owner: vec![None; geometry.pages() as usize],
            rings: vec![Ring { tail: 0, used: 0, next: b }; planes as usize],
        })
    }

    fn block_at(&self, plane: u32, position: u32) -> u32 {
        let n = self.geometry.blocks_per_plane;
        plane * n + (self.rings[plane as usize].tail + position) % n
    }

    /// Takes the next page at the head of `plane` for logical page `page`.
    fn append(&mut self, plane: u32, page: u32) -> u32 {
        let ring = &mut self.rings[plane as usize];
        if ring.next == self.geometry.pages_per_block.get() {
            ring.used += 1;
            ring.next = 0;
        }
        ring.next += 1;
        let (used, number) = (ring.used, ring.next - 1);
        let physical = self.geometry.first_page(self.block_at(plane, used - 1)) + number;
        self.forget(page);
        self.map[page as usize] = Some(physical);
        self.owner[physical as usize] = Some(page);
        physical
    }

    fn forget(&mut self, page: u32) {
        if let Some(old) = self.map[page as usize].take() {
            self.owner[old as usize] = None;
        }
    }

    /// Moves what is valid at the tail to the head and erases the tail.
    fn clean(&mut self, plane: u32, out: &mut Vec<FlashOp>) {
        let first = self.geometry.first_page(self.block_at(plane, 0));
        for from in first..first + self.geometry.pages_per_block.get() {
            if let Some(page) = self.owner[from as usize] {
                let to = self.append(plane, page);
                out.push(FlashOp::copy(plane, from, to, FlashCause::Cleaning));
            }
        }
        out.push(FlashOp::erase(plane, first, FlashCause::Cleaning));
        let ring = &mut self.rings[plane as usize];
        ring.tail = (ring.tail + 1) % self.geometry.blocks_per_plane;
        ring.used -= 1;
    }
}

impl Ftl for RingLog {
    fn logical_pages(&self) -> u32 {
        self.map.len() as u32
    }

    fn read(&mut self, page: u32, out: &mut Vec<FlashOp>) -> bool {
        let Some(at) = self.locate(page) else { return false };
        out.push(FlashOp::read(page % self.geometry.planes(), at, FlashCause::Host));
        true
    }

    fn write(&mut self, page: u32, _: Plane, out: &mut Vec<FlashOp>) -> Result<(), ReadOnly> {
        let plane = page % self.geometry.planes();
        // Ends after one turn at most: some page in the ring is stale.
        loop {
            let ring = &self.rings[plane as usize];
            let full = ring.next == self.geometry.pages_per_block.get();
            if !full || ring.used + 1 < self.geometry.blocks_per_plane {
                break;
            }
            self.clean(plane, out);
        }
        let at = self.append(plane, page);
        out.push(FlashOp::program(plane, at, FlashCause::Host));
        Ok(())
    }

    fn trim(&mut self, page: u32, _: &mut Vec<FlashOp>) {
        self.forget(page);
    }

    fn locate(&self, page: u32) -> Option<u32> {
        self.map[page as usize]
    }

    fn precondition(
        &mut self,
        how: &Precondition,
        seed: u64,
        watch: &mut PrepareWatch<'_>,
    ) -> Result<(), PrepareError> {
        let pages = how.pages(self.logical_pages())?;
        let mut rng = Rng::new(seed, "precondition");
        let overwrites = match how.fill {
            Fill::Empty => return Ok(()),
            Fill::Sequential => 0,
            Fill::Random => 4 * u64::from(pages),
        };
        let random = (0..overwrites).map(|_| rng.below(u64::from(pages)) as u32);
        let mut out = Vec::new();
        watch.expect(u64::from(pages) + overwrites);
        for page in (0..pages).chain(random) {
            watch.step(1)?;
            out.clear();
            // It refuses nothing: no block ever fails.
            let _ = self.write(page, Plane::Any, &mut out);
        }
        Ok(())
    }

    fn pages_written(&self, block: u32) -> u32 {
        let n = self.geometry.blocks_per_plane;
        let ring = &self.rings[(block / n) as usize];
        match (block % n + n - ring.tail) % n {
            position if position + 1 < ring.used => self.geometry.pages_per_block.get(),
            position if position + 1 == ring.used => ring.next,
            _ => 0,
        }
    }

    fn map_ram_bytes(&self) -> u64 {
        4 * self.map.len() as u64
    }

    fn health(&self) -> Health {
        Health::default()
    }
}

/// Runs the suite on devices small enough to be full all the time.
pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let config = ftl_config("ring-log", 0.4, "");
    for (channels, planes, blocks, pages) in [(1, 1, 4, 4), (2, 2, 24, 8), (3, 1, 9, 5)] {
        let flash = small_flash(channels, planes, blocks, pages);
        for fill in [Fill::Empty, Fill::Sequential, Fill::Random] {
            let facts =
                FtlFacts { geometry: flash.geometry()?, flash: &flash, config: &config, seed: 1 };
            check_built(&mut RingLog::new(&facts)?, &flash, fill, 1, 5_000);
        }
    }
    println!("the ring log keeps every promise of an FTL");
    Ok(())
}
