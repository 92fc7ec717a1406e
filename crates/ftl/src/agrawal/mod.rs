//! The log-structured page-mapping FTL of Agrawal et al., "Design Tradeoffs for SSD Performance"
//! (USENIX ATC 2008), as the tables of S3 used it.
//!
//! Each package is a device of its own: logical page n lives in package n modulo the packages, and
//! everything below is decided there. A write goes to the plane with the most free pages among
//! those whose open block is newer than the block that holds the old data, so that after a loss of
//! power the newest copy of a page is the one with the highest block sequence. The last page of a
//! block holds its summary. A package is cleaned in the foreground only, before its next
//! operation: block by block, plane after plane, until no plane is low (S3-26, S3-39).
//!
//! It differs from `page` in what decides the last per cent of those tables: next-fit instead of
//! first-in-first-out allocation, allocation at the next write instead of at the close, the order
//! of planes in cleaning, and ties between victims.

mod package;

use ssdyno_block::ConfigError;
use ssdyno_engine::Rng;
use ssdyno_flash::{Divisor, FlashOp, Geometry};

use crate::contract::FtlFacts;
use crate::random_writes::RandomWrites;
use crate::{
    Cleaning, Fill, Ftl, FtlConfig, HotCold, Plane, Precondition, PrepareWatch, ReadOnly,
    WearLevelling,
};
use package::{Package, Shape};
use ssdyno_engine::{Health, PrepareError, Victims};

/// The FTL: its packages, side by side.
#[derive(Clone, Debug)]
pub(crate) struct Agrawal {
    packages: Vec<Package>,
    stripe: Divisor,
    blocks_per_package: u32,
    logical_pages: u32,
    /// Good blocks of a plane that hold neither data to be cleaned nor the reserve: for the closed
    /// form only.
    free_low: u32,
    geometry: Geometry,
    data_pages: u32,
    read_only: bool,
}

impl Agrawal {
    pub(crate) fn new(facts: &FtlFacts<'_>) -> Result<Agrawal, ConfigError> {
        let (geometry, config) = (facts.geometry, facts.config);
        check_choices(config)?;
        let mut endurance = facts.endurance();
        let all = geometry.blocks();
        let endures: Vec<u32> =
            if endurance.matters() { (0..all).map(|_| endurance.draw()).collect() } else { vec![] };
        let per_plane = endures.chunks(geometry.blocks_per_plane as usize);
        let bad = |plane: &[u32]| plane.iter().filter(|limit| **limit == 0).count() as u32;
        let bad_most = per_plane.map(bad).max().unwrap_or(0);
        // Two more than the mere page map keeps: the threshold is inclusive, and the last block of
        // the initial fill is never cleaned.
        let limits = config.limits(&geometry, bad_most + 2)?;
        let low = (config.free_blocks_low * f64::from(geometry.blocks_per_plane)) as u32;
        let dies = geometry.dies();
        let shape = Shape {
            planes: geometry.planes_per_die,
            blocks_per_plane: geometry.blocks_per_plane,
            pages_per_block: geometry.pages_per_block,
            data_pages: limits.data_pages,
            free_low: low.max(1),
        };
        let blocks_per_package = shape.blocks();
        let logical_pages = limits.logical_pages;
        let packages = (0..dies).map(|number| {
            let die = die_of_package(&geometry, number);
            let from = (die * blocks_per_package) as usize;
            let endures = endures.get(from..from + blocks_per_package as usize);
            let pages = share(logical_pages, number, dies);
            Package::new(shape, die, pages, endures.unwrap_or_default())
        });
        Ok(Agrawal {
            packages: packages.collect(),
            stripe: Divisor::new(dies),
            blocks_per_package,
            logical_pages,
            free_low: shape.free_low + 1,
            geometry,
            data_pages: limits.data_pages,
            read_only: false,
        })
    }

    /// The package of logical page `page`, and the page's number there.
    #[inline]
    fn place(&self, page: u32) -> (usize, u32) {
        (self.stripe.remainder(page) as usize, self.stripe.quotient(page))
    }

    /// The package that holds block `block`, and the block's number there.
    fn package_of_block(&self, block: u32) -> Option<(&Package, u32)> {
        let die = block / self.blocks_per_package;
        let package = self.packages.iter().find(|package| package.die() == die)?;
        Some((package, block % self.blocks_per_package))
    }

    /// Brings every package into the steady state of uniform random writes over `pages` pages,
    /// `together` at a time.
    fn fill_steady(
        &mut self,
        (pages, together): (u32, u32),
        seed: u64,
        watch: &mut PrepareWatch<'_>,
    ) -> Result<(), PrepareError> {
        let dies = self.stripe.get();
        // Packages are independent and alike: one is written over and over, and copies of it, some
        // way on for each, serve for all. Where blocks are bad, each must go its own way.
        let alike = self.packages.iter().all(Package::is_flawless);
        let warm_ups = if alike { 1 } else { u64::from(dies) };
        let warm_up = warm_ups * package::WARM_UP;
        let local = share(pages, 0, dies);
        let advances = if alike { u64::from(dies - 1) } else { 0 };
        watch.expect(u64::from(local) * warm_up + advances * package::advance_steps(local));
        let mut source: Option<package::Overwriter> = None;
        for number in 0..dies {
            let local = share(pages, number, dies);
            let package = &mut self.packages[number as usize];
            match &mut source {
                Some(source) if alike => {
                    source.advance(watch)?;
                    package.become_copy(source.package(), local);
                }
                _ => {
                    // Each package that goes its own way draws its own pages. With one seed for
                    // all, every package would clean at the same writes.
                    let rng = Rng::new(seed.wrapping_add(u64::from(number)), "precondition");
                    let random = RandomWrites::new(rng, local.max(1), (dies, together));
                    let overwriter =
                        package::Overwriter::new(package.clone(), (local, random), watch)?;
                    package.become_copy(overwriter.package(), local);
                    source = Some(overwriter);
                }
            }
        }
        Ok(())
    }
}

/// Pages of package `number` when `pages` pages are striped over `packages`.
fn share(pages: u32, number: u32, packages: u32) -> u32 {
    pages.saturating_sub(number).div_ceil(packages)
}

/// Consecutive packages of the stripe lie on different channels.
fn die_of_package(geometry: &Geometry, number: u32) -> u32 {
    // Neighbouring logical pages are in neighbouring packages. On different channels their
    // transfers do not wait for one another.
    let dies_per_channel = geometry.dies() / geometry.channels;
    (number % geometry.channels) * dies_per_channel + number / geometry.channels
}

/// This FTL has its policies built in: what asks for others is refused, not ignored.
fn check_choices(config: &FtlConfig) -> Result<(), ConfigError> {
    let built_in = |key: &str, what: &str, help: &str| {
        Err(ConfigError::new(key, format!("`agrawal` {what}"), help))
    };
    // A key that is accepted without effect would be reported as the setting of the run. A
    // reader would compare policies that were never used.
    if config.cleaning != Cleaning::Greedy {
        return built_in(
            "ftl.cleaning",
            "always cleans the block with the fewest valid pages",
            "use \"greedy\", or set ftl.name = \"page\"",
        );
    }
    if config.hot_cold != HotCold::Off {
        return built_in(
            "ftl.hot_cold",
            "has one open block per plane",
            "use \"off\", or set ftl.name = \"page\"",
        );
    }
    if config.wear_levelling != WearLevelling::Off {
        return built_in(
            "ftl.wear_levelling",
            "is the wear-agnostic variant of S3",
            "use \"off\", or set ftl.name = \"page\"",
        );
    }
    if config.free_blocks_background != 0.0 {
        return built_in(
            "ftl.free_blocks_background",
            "cleans in the foreground only",
            "leave it out, or use ftl.name = \"page\"",
        );
    }
    Ok(())
}

impl Ftl for Agrawal {
    fn logical_pages(&self) -> u32 {
        self.logical_pages
    }

    fn read(&mut self, page: u32, out: &mut Vec<FlashOp>) -> bool {
        let (package, local) = self.place(page);
        self.packages[package].read(local, out)
    }

    fn write(&mut self, page: u32, _: Plane, out: &mut Vec<FlashOp>) -> Result<(), ReadOnly> {
        if self.read_only {
            return Err(ReadOnly);
        }
        let (package, local) = self.place(page);
        let wrote = self.packages[package].write(local, out);
        self.read_only = wrote.is_err();
        wrote
    }

    fn trim(&mut self, page: u32, _: &mut Vec<FlashOp>) {
        let (package, local) = self.place(page);
        self.packages[package].forget(local);
    }

    fn locate(&self, page: u32) -> Option<u32> {
        let (package, local) = self.place(page);
        self.packages[package].locate(local)
    }

    fn precondition(
        &mut self,
        how: &Precondition,
        seed: u64,
        watch: &mut PrepareWatch<'_>,
    ) -> Result<(), PrepareError> {
        let pages = how.pages(self.logical_pages)?;
        if how.fill == Fill::Empty {
            return Ok(());
        }
        let dies = self.stripe.get();
        for (number, package) in self.packages.iter_mut().enumerate() {
            package.fill_dense(share(pages, number as u32, dies));
        }
        if how.fill == Fill::Random {
            self.fill_steady((pages, how.together), seed, watch)?;
        }
        Ok(())
    }

    fn pages_written(&self, block: u32) -> u32 {
        self.package_of_block(block).map_or(0, |(package, local)| package.pages_written(local))
    }

    fn map_ram_bytes(&self) -> u64 {
        4 * u64::from(self.logical_pages)
    }

    fn health(&self) -> Health {
        let erases = || self.packages.iter().map(Package::erases_range);
        Health {
            read_only: self.read_only,
            bad_blocks: self.packages.iter().map(Package::bad_blocks).sum(),
            erases_min: erases().map(|(least, _)| least).min().unwrap_or(0),
            erases_max: erases().map(|(_, most)| most).max().unwrap_or(0),
        }
    }

    fn erases(&self, block: u32) -> u32 {
        self.package_of_block(block).map_or(0, |(package, local)| package.erases(local))
    }

    fn start_worn(&mut self, erases: &[u32]) {
        for package in &mut self.packages {
            let from = (package.die() * self.blocks_per_package) as usize;
            package.start_worn(&erases[from..from + self.blocks_per_package as usize]);
        }
    }

    fn victims(&self) -> Option<Victims> {
        self.packages.iter().map(Package::victims).reduce(Victims::with)
    }

    fn effective_utilisation(&self) -> Option<f64> {
        let planes = f64::from(self.geometry.planes());
        let bad: u32 = self.packages.iter().map(Package::bad_blocks).sum();
        let kept = f64::from(self.free_low) + f64::from(bad) / planes;
        let closed = f64::from(self.geometry.blocks_per_plane) - kept;
        let logical = f64::from(self.logical_pages) / planes;
        Some(logical / (closed * f64::from(self.data_pages)))
    }
}
