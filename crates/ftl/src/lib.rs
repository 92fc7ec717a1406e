//! Flash translation layers: where a logical page lives, and how room is made for the next one.
//!
//! Key types: the [`Ftl`] contract with its suite in [`conformance`]; [`FtlConfig`] (the `[ftl]` table
//! of a device file) and [`build`], which makes an FTL by name; [`Cleaning`] policies; the write
//! buffer in [`buffer`]; what write amplification must come out at in [`closed_forms`].
//!
//! FTLs: `page` (page map), `dftl` (its table in flash, cached), `block` (block map), `bast` and
//! `fast` (block maps with log blocks), `agrawal`. `docs/add_an_ftl.md` adds another.
//!
//! Errors: [`ConfigError`](ssdyno_block::ConfigError) names the key that is wrong. A device that
//! can take no more writes returns [`ReadOnly`]; this crate never panics on input of a host.
//!
//! Not modelled: loss of power and recovery of the map, read disturb and refresh, compression.

mod agrawal;
mod bast;
mod block_map;
mod block_store;
mod blocks;
pub mod buffer;
mod classes;
mod cleaning;
pub mod closed_forms;
mod config;
pub mod conformance;
mod contract;
mod dftl;
mod fast;
mod life;
mod limits;
mod log_blocks;
mod map;
mod mapping_cache;
mod order;
mod own_keys;
mod pace;
mod page_map;
mod placement;
mod random_writes;
mod ranks;
mod registry;
mod reverse;
mod room;
mod sample;
mod tables;
mod used;
mod watch;
mod wear;

#[cfg(test)]
mod search_tests;

pub use blocks::Blocks;
pub use config::{Cleaning, Fill, FtlConfig, HotCold, Placement, Precondition, WearLevelling};
pub use contract::{Ftl, FtlFacts, Plane, ReadOnly};
pub use life::Endurance;
pub use limits::FtlLimits;
pub use own_keys::{CleaningPace, DftlConfig, LogBlockConfig, PageClass, PageMapConfig};
pub use registry::{build, descriptions, names};
pub use used::precondition;
pub use watch::PrepareWatch;
