//! The contract between an FTL and the device around it.

use std::fmt::Debug;

use dyn_clone::DynClone;
use ssdyno_engine::{Health, PlaneUse, Pool, PrepareError, Victims};
use ssdyno_flash::{FlashConfig, FlashOp, Geometry};

use crate::{Endurance, FtlConfig, Precondition, PrepareWatch};

/// The device reached its end of life: too many blocks are bad to take another write.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the device is read-only: no block can be cleaned any more")]
pub struct ReadOnly;

/// Which plane a write should go to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Plane {
    /// The FTL decides.
    Any,
    /// The device would like this one, because it is the least busy. The FTL may decide otherwise.
    Preferred(u32),
}

/// A flash translation layer: policy only. It has no clock and no flash.
///
/// The FTL owes: operations come out in an order that is right if they were executed one after
/// another at once; per plane they *will* take effect in that order. Programs go upwards in a
/// block and only into erased pages. A copy stays in its plane. A read returns what the last write
/// of the page put there. Every call ends after a bounded amount of work, whatever the state.
///
/// The caller owes: logical pages below [`logical_pages`](Ftl::logical_pages), operations executed
/// in the order given (reads may overtake if they find the same data), and nothing else: the FTL
/// need not wait for completions, because a block that was given back by an erase is not reached
/// by later programs before that erase, in the plane's own order.
///
/// A copy is independent and continues as the original would: designs that begin with the same used
/// state share it, see [`precondition`](crate::precondition).
pub trait Ftl: Debug + Send + Sync + DynClone {
    /// Pages that the host sees.
    fn logical_pages(&self) -> u32;

    /// Appends what must be done to read logical page `page`; false if it holds no data (the
    /// device then answers zeros without touching flash).
    fn read(&mut self, page: u32, out: &mut Vec<FlashOp>) -> bool;

    /// Appends what must be done to write logical page `page`.
    fn write(&mut self, page: u32, plane: Plane, out: &mut Vec<FlashOp>) -> Result<(), ReadOnly>;

    /// Forgets logical page `page`.
    fn trim(&mut self, page: u32, out: &mut Vec<FlashOp>);

    /// The physical page that holds `page` now.
    fn locate(&self, page: u32) -> Option<u32>;

    /// `page` will be needed soon: may prefetch its data into the processor's caches, see
    /// [`ssdyno_engine::prefetch`]. Only the speed of the simulator depends on it.
    fn prefetch(&self, page: u32) {
        let _ = page;
    }

    /// Like [`prefetch`](Ftl::prefetch), for the data on the block of `physical`, whose page will be overwritten soon.
    fn prefetch_place(&self, physical: u32) {
        let _ = physical;
    }

    /// Appends work worth doing while plane `plane` has nothing else to do; false if there is none.
    fn background(&mut self, plane: u32, out: &mut Vec<FlashOp>) -> bool {
        let _ = (plane, out);
        false
    }

    /// Appends what makes the mapping table itself durable.
    fn flush(&mut self, out: &mut Vec<FlashOp>) {
        let _ = out;
    }

    /// Puts the FTL, fresh from [`build`](crate::build), into a used state at once, without operations. It reports to
    /// `watch` the expected amount of work and the end of each part; an interrupted FTL can only be discarded.
    fn precondition(
        &mut self,
        how: &Precondition,
        seed: u64,
        watch: &mut PrepareWatch<'_>,
    ) -> Result<(), PrepareError>;

    /// Pages programmed in block `block`, for the flash to agree with after preconditioning.
    fn pages_written(&self, block: u32) -> u32;

    /// RAM that the mapping tables need in a real controller, in bytes.
    fn map_ram_bytes(&self) -> u64;

    /// How worn the flash is.
    fn health(&self) -> Health;

    /// Erases that block `block` has seen, where they are counted.
    fn erases(&self, block: u32) -> u32 {
        let _ = block;
        0
    }

    /// Tells an FTL fresh from [`build`](crate::build) how often each block has been erased already: the device it
    /// stands for is used, and was erased as a whole. A block that does not survive as many is bad. An FTL without wear
    /// counts may ignore it.
    fn start_worn(&mut self, erases: &[u32]) {
        let _ = erases;
    }

    /// The share of the pages available to data (free reserve excluded) that hold valid data when
    /// the logical space is full: the utilisation of the closed forms of write amplification.
    /// `None` where those forms do not apply.
    fn effective_utilisation(&self) -> Option<f64> {
        None
    }

    /// The pages written to each plane, and the pages it holds; empty if pages have no choice of plane.
    fn planes(&self) -> Vec<PlaneUse> {
        Vec::new()
    }

    /// The blocks that garbage collection has cleaned since the FTL was made, preconditioning included; `None` where it does not
    /// clean blocks of pages, but merges logs with blocks.
    fn victims(&self) -> Option<Victims> {
        None
    }

    /// The pools of an FTL with one pool for each class of logical pages; such an FTL has no single
    /// effective utilisation.
    fn pools(&self) -> Vec<Pool> {
        Vec::new()
    }
}

/// The parameters from which an FTL is made.
#[derive(Debug)]
pub struct FtlFacts<'a> {
    /// Sizes and addresses of the flash.
    pub geometry: Geometry,
    /// The `[flash]` table.
    pub flash: &'a FlashConfig,
    /// The `[ftl]` table.
    pub config: &'a FtlConfig,
    /// Seed of everything random in the FTL.
    pub seed: u64,
}

impl FtlFacts<'_> {
    /// When blocks fail.
    pub fn endurance(&self) -> Endurance {
        Endurance::new(self.flash, self.seed)
    }
}
