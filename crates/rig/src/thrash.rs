//! Detects a mapping table that takes nearly all of the flash's work.
//!
//! A DFTL keeps its table in flash. Each page that cleaning moves may make a translation page out of date,
//! which is rewritten. Greedy cleaning finds the blocks of those soon, since they become stale first. Policies
//! that look at a block's age or at nothing (FIFO, windowed, random) leave them among the data for a whole
//! turn, so that less room is left for data, more pages are valid where it cleans, and more translation pages
//! are rewritten. From one translation page rewritten for each page written on, this feeds itself.

use ssdyno_device::FlashReport;
use ssdyno_engine::PlaneUse;
use ssdyno_ftl::{Cleaning, FtlConfig};

/// Write amplification from which on cleaning and mapping take nearly all of the work: nine of ten programs.
const NEARLY_ALL: f64 = 10.0;

/// Times 1/(1 - u). Random victims, the costliest policy, cost that much without a table. Greedy cleaning costs
/// about half of it, and a translation page for each page programmed doubles that: a healthy DFTL comes near
/// 1, and half as much again is room for the difference. With u = .95 and 16 planes of 64 blocks, greedy cleaning
/// comes to 0.7, windowed to 1.8, FIFO to 2.1 and random to 3.8.
const BEYOND_DATA: f64 = 1.5;

/// Erased blocks that are needed at least: the number of programs is estimated from the erases.
const ERASED_LEAST: u64 = 200;

/// Bytes of an entry in the mapping cache.
const ENTRY_BYTES: u64 = 8;

/// The text of the note for a device with `logical_pages`, from the counters `before` and `now`; `None` where the table
/// does not thrash.
pub(crate) fn note(
    ftl: &FtlConfig,
    logical_pages: u64,
    before: &FlashReport,
    now: &FlashReport,
) -> Option<String> {
    let grown = |count: fn(&PlaneUse) -> u64| -> u64 {
        let planes = before.planes.iter().zip(&now.planes);
        planes.map(|(before, now)| count(now).saturating_sub(count(before))).sum()
    };
    let (host, table) = (grown(|plane| plane.host_pages), grown(|plane| plane.table_pages));
    let erased = grown(|plane| plane.erases);
    let capacity = now.planes.iter().map(|plane| plane.capacity).min()?;
    let share = now.planes.iter().map(|plane| plane.share).max()?;
    // A page-mapped FTL has no pages of a table in the flash. Without erased blocks, nothing is
    // known about the programs of this run.
    if host == 0 || table == 0 || erased < ERASED_LEAST || share >= capacity {
        return None;
    }
    // 1 / (1 - u) with u = share / capacity: the cost of random victims without any table. The
    // comparison removes the part that over-provisioning alone explains.
    let data_alone = f64::from(capacity) / f64::from(capacity - share);
    let programmed = erased as f64 * f64::from(now.pages_per_block) / host as f64;
    if programmed < NEARLY_ALL.max(BEYOND_DATA * data_alone) {
        return None;
    }
    let table = table as f64 / host as f64;
    let entries = match ftl.dftl.mapping_cache {
        Some(bytes) => bytes.0 / ENTRY_BYTES,
        // 1/32 of a table whose entries have half the size.
        None => logical_pages / 64,
    };
    let held = (entries as f64 / logical_pages.max(1) as f64).min(1.0) * 100.0;
    let policy = match ftl.cleaning {
        Cleaning::Greedy => "",
        _ => "set ftl.cleaning = \"greedy\", or ",
    };
    Some(format!(
        "The mapping table thrashes: for each page of the host the flash programs {programmed:.0} pages, of \
         which {table:.1} are rewritten translation pages and {:.1} are pages that cleaning moved. To avoid \
         this, {policy}raise ftl.over_provisioning, or raise ftl.dftl.mapping_cache until it holds nearly all \
         entries (it holds {held:.1} %).",
        (programmed - table - 1.0).max(0.0),
    ))
}
