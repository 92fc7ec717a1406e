//! Numbers that follow from the `[ftl]` table and the geometry.

use ssdyno_block::ConfigError;
use ssdyno_flash::Geometry;

use crate::blocks::Searches;
use crate::{FtlConfig, HotCold};

/// Numbers that follow from `[ftl]` and the geometry, checked against each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FtlLimits {
    /// Pages that the host sees.
    pub logical_pages: u32,
    /// Pages of the mapping table that are kept in flash behind them.
    pub mapping_pages: u32,
    /// Pages of a block that hold data.
    pub data_pages: u32,
    /// Cleaning goes on while fewer blocks of a plane are free.
    pub free_low: u32,
    /// Background cleaning goes on while fewer blocks of a plane are free.
    pub free_background: u32,
    /// Blocks of a plane that are open for writing at a time.
    pub frontiers: u32,
    /// Most valid pages a plane may hold so that cleaning always gains something.
    pub valid_most: u32,
}

impl FtlConfig {
    /// Checks the numbers and derives [`FtlLimits`] for an FTL that maps pages; `bad_most` is the
    /// largest number of bad blocks that a plane starts with.
    pub fn limits(&self, geometry: &Geometry, bad_most: u32) -> Result<FtlLimits, ConfigError> {
        self.limits_with_mapping(geometry, bad_most, |_| 0)
    }

    /// As [`limits`](FtlConfig::limits) for an FTL that keeps its mapping table in flash, in
    /// `mapping_pages(logical pages)` pages and blocks of their own.
    pub(crate) fn limits_with_mapping(
        &self,
        geometry: &Geometry,
        bad_most: u32,
        mapping_pages: impl Fn(u32) -> u32,
    ) -> Result<FtlLimits, ConfigError> {
        let blocks = geometry.blocks_per_plane;
        self.check_shares(geometry)?;
        let logical_pages = self.logical_pages(geometry)?;
        let data_pages = geometry.pages_per_block.get() - self.summary_pages;
        // Two: one to open, one to move pages to while its successor is being made.
        let free_low = ((self.free_blocks_low * f64::from(blocks)).ceil() as u32).max(2);
        let free_background = (self.free_blocks_background * f64::from(blocks)).ceil() as u32;
        let with_table = |logical: u32| logical.saturating_add(mapping_pages(logical));
        let hot_cold = u32::from(self.hot_cold != HotCold::Off);
        let frontiers = 1 + hot_cold + u32::from(with_table(logical_pages) > logical_pages);
        // Every plane gets the same share of logical pages, so the plane with the most bad
        // blocks decides whether the device can hold them.
        let kept = free_low + frontiers + bad_most;
        let valid_most = u64::from(blocks.saturating_sub(kept)) * u64::from(data_pages);
        let per_plane = |logical| with_table(logical).div_ceil(geometry.planes());
        // Strictly fewer valid pages than the closed blocks hold: at least one page of some
        // closed block is invalid then, and greedy cleaning always gains a page. With equality
        // cleaning could move full blocks forever.
        let fits = |logical| u64::from(per_plane(logical)) < valid_most;
        if !fits(logical_pages) {
            let problem = format!(
                "{} is too small: {} pages, including the mapping table, must fit into each plane, which has \
                 {blocks} blocks of {data_pages} data pages, of which {kept} are reserved, open or bad",
                self.over_provisioning,
                per_plane(logical_pages)
            );
            return Err(self.cannot_hold(geometry, problem, "lower ftl.free_blocks_low, ", fits));
        }
        Ok(FtlLimits {
            logical_pages,
            mapping_pages: with_table(logical_pages) - logical_pages,
            data_pages,
            free_low,
            free_background,
            frontiers,
            valid_most: (valid_most - 1) as u32,
        })
    }

    /// That summaries leave room for data, and that shares of a plane are shares.
    pub(crate) fn check_shares(&self, geometry: &Geometry) -> Result<(), ConfigError> {
        let pages_per_block = geometry.pages_per_block.get();
        if self.summary_pages >= pages_per_block {
            return Err(ConfigError::new(
                "ftl.summary_pages",
                format!("{} of {pages_per_block} pages leave no room for data", self.summary_pages),
                "use 0 or 1",
            ));
        }
        for (key, share) in [
            ("free_blocks_low", self.free_blocks_low),
            ("free_blocks_background", self.free_blocks_background),
        ] {
            if !(0.0..1.0).contains(&share) {
                return Err(ConfigError::new(
                    format!("ftl.{key}"),
                    format!("{share} is not 0 or more and less than 1"),
                    "use a share of a plane's blocks, such as 0.05",
                ));
            }
        }
        Ok(())
    }

    /// The searches of a page map in planes of `blocks`.
    pub(crate) fn searches(&self, blocks: u32) -> Searches {
        let window = self.cleaning.oldest_looked_at(self.cleaning_window, blocks);
        Searches { window, wear: self.wear_levelling }
    }

    /// Pages that the host sees: physical / (1 + over-provisioning), rounded down.
    pub fn logical_pages(&self, geometry: &Geometry) -> Result<u32, ConfigError> {
        // The small addition keeps a quotient such as 127.9999999 from losing a page, because
        // the quotient of exact numbers would be 128.
        let op = self.over_provisioning;
        let pages = (f64::from(geometry.pages()) / (1.0 + op) + 1e-6) as u32;
        if !op.is_finite() || op < 0.0 || pages < geometry.planes() {
            return Err(ConfigError::new(
                "ftl.over_provisioning",
                format!("{op} leaves no usable logical space"),
                "set physical / logical - 1, such as 0.07 or 0.28",
            ));
        }
        Ok(pages)
    }

    /// Too little over-provisioning: names the least, in steps of 0.0001, whose number of logical
    /// pages `fits`, and what else would help: `or_else`, such as "lower ftl.free_blocks_low, ".
    pub(crate) fn cannot_hold(
        &self,
        geometry: &Geometry,
        problem: String,
        or_else: &str,
        fits: impl Fn(u32) -> bool,
    ) -> ConfigError {
        let logical = |steps: u64| {
            let over_provisioning = steps as f64 / 1e4;
            FtlConfig { over_provisioning, ..self.clone() }.logical_pages(geometry).ok()
        };
        // More over-provisioning means fewer logical pages, down to one a plane.
        let most = f64::from(geometry.pages() / geometry.planes()) * 1e4;
        // More over-provisioning leaves fewer logical pages, so `fits` changes once from false to
        // true and bisection finds the place. Above it there may be too few logical pages for the
        // planes; `is_none_or` counts this as enough, and the test below distinguishes the two
        // cases.
        let (mut too_few, mut enough) = (0u64, most as u64);
        while enough - too_few > 1 {
            let middle = u64::midpoint(too_few, enough);
            if logical(middle).is_none_or(&fits) { enough = middle } else { too_few = middle }
        }
        let help = match logical(enough) {
            Some(pages) if fits(pages) => format!(
                "raise ftl.over_provisioning to at least {:.4}, {or_else}or use more blocks in a \
                 plane (flash.blocks_per_plane)",
                enough as f64 / 1e4
            ),
            _ => format!(
                "{or_else}use more blocks in a plane: flash.blocks_per_plane = {} is all reserve",
                geometry.blocks_per_plane
            ),
        };
        ConfigError::new("ftl.over_provisioning", problem, help)
    }
}
