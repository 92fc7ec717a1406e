//! Figures that theory gives for what was run, beside what was measured.

use std::collections::BTreeMap;

use ssdyno_device::DeviceFacts;
use ssdyno_ftl::closed_forms::{self, Class};
use ssdyno_ftl::{Cleaning, CleaningPace, Fill, Health, HotCold, Placement, WearLevelling};
use ssdyno_result::{Expected, RunResult};
use ssdyno_workload::{Config as WorkloadConfig, Kind, Pattern};

use crate::run::Run;
use crate::source::Source;

/// Appends the write amplification of random single-page writes where that is what was run: page
/// mapping without hot/cold separation, in steady state. Uniform writes are in it from the start,
/// as preconditioned; hot and cold ones after a ramp-up of [`SETTLED_AFTER`].
///
/// Nothing where blocks are bad: planes then are not equally full.
pub(crate) fn fill(
    result: &mut RunResult,
    run: &Run,
    (facts, health): (&DeviceFacts, Health),
    capacity_bytes: u64,
) {
    let Source::Generator(workload) = &run.source else { return };
    let (Some(measured), Some(used)) = (result.write_amplification, facts.effective_utilisation)
    else {
        return;
    };
    let Some(device) = run.device.ssd() else { return };
    if !is_of_policy(device) || health.bad_blocks > 0 || !is_by_page(workload, facts.page_bytes) {
        return;
    }
    let logical_pages = capacity_bytes / u64::from(facts.page_bytes);
    let Some((form, value)) = form(device, workload, used, logical_pages) else { return };
    if !has_blocks_enough(result, device.flash.blocks_per_plane) || !has_cleaned_enough(result) {
        return;
    }
    let pages = facts.pages_per_block;
    let summary_pages = device.ftl.summary_pages;
    let mut inputs = BTreeMap::from([
        ("effective_utilisation".to_owned(), used),
        ("pages_per_block".to_owned(), f64::from(pages)),
    ]);
    if summary_pages > 0 {
        inputs.insert("summary_pages_per_block".to_owned(), f64::from(summary_pages));
    }
    if workload.address.pattern == Pattern::HotCold {
        let [writes, space] = hot(workload);
        inputs.insert("hot_share_of_writes".to_owned(), writes);
        inputs.insert("hot_share_of_space".to_owned(), space);
    }
    // Summaries are programmed with the pages of each block.
    let programmed = f64::from(pages + summary_pages) / f64::from(pages);
    result.expected.push(Expected {
        figure: "write_amplification".into(),
        value: value * programmed,
        measured: Some(measured),
        form: form.into(),
        inputs,
    });
}

/// True if blocks are cleaned as the policy says and for want of room, and for nothing else, in
/// planes that are equally full from the start.
fn is_of_policy(device: &ssdyno_device::Config) -> bool {
    let ftl = &device.ftl;
    let precondition = &device.precondition;
    ftl.name == "page"
        && precondition.fill == Fill::Random
        && precondition.share == 1.0
        && device.buffer == ssdyno_ftl::buffer::BufferConfig::default()
        // Cleaning ahead of need moves more; where pages change planes these are not equally full.
        && ftl.free_blocks_background == 0.0
        && ftl.placement == Placement::Static
        && ftl.hot_cold == HotCold::Off
        // Blocks that it moves are not those that the policy would clean.
        && ftl.wear_levelling != WearLevelling::Static
}

/// The closed form of what is run, by name and with its value.
fn form(
    device: &ssdyno_device::Config,
    workload: &WorkloadConfig,
    used: f64,
    logical_pages: u64,
) -> Option<(&'static str, f64)> {
    let ftl = &device.ftl;
    let pages = device.flash.pages_per_block - ftl.summary_pages;
    let (name, value) = match (workload.address.pattern, ftl.cleaning) {
        (Pattern::Random, Cleaning::Greedy) => {
            ("greedy, finite block, mean field (form 3)", closed_forms::greedy(used, pages))
        }
        (Pattern::Random, Cleaning::Fifo) => {
            ("FIFO, block large (form 1)", closed_forms::fifo(1.0 / used))
        }
        (Pattern::Random, Cleaning::Random) => {
            ("random victim (form 7)", closed_forms::random_victim(used))
        }
        (Pattern::HotCold, Cleaning::Fifo) if has_settled(workload, logical_pages) => {
            let [writes, space] = hot(workload);
            let classes =
                [Class { writes, space }, Class { writes: 1.0 - writes, space: 1.0 - space }];
            let value = closed_forms::one_pool(&classes, 1.0 / used);
            ("FIFO, hot and cold in one pool (form 4)", value)
        }
        _ => return None,
    };
    let holds = |value: &f64| match (ftl.cleaning_pace, ftl.cleaning) {
        (CleaningPace::Whole, _) | (_, Cleaning::Greedy) => true,
        // Paced cleaning passes over victims of which every page is valid, where the forms move
        // them. After one turn a page is valid with 1 - 1/A.
        (_, Cleaning::Fifo) => (1.0 - 1.0 / value).powf(f64::from(pages)) < FULL_VICTIMS_MOST,
        _ => false,
    };
    value.filter(holds).map(|value| (name, value))
}

/// The hot part's shares of writes and of space.
fn hot(workload: &WorkloadConfig) -> [f64; 2] {
    [workload.address.hot_access_percent, workload.address.hot_space_percent].map(|p| p / 100.0)
}

/// Share of victims without a page to gain up to which they do not matter.
const FULL_VICTIMS_MOST: f64 = 1e-3;

/// Blocks of a plane from which on the forms, which are for pools without end, are within 1 % (of a
/// hundred blocks: 2 %; of 50: 6 %, the more the fewer pages a block has).
const BLOCKS_LEAST: u32 = 200;

/// Tells why not in the notes.
fn has_blocks_enough(result: &mut RunResult, blocks_per_plane: u32) -> bool {
    if blocks_per_plane < BLOCKS_LEAST {
        result.notes.push(format!(
            "no expected write amplification: planes have {blocks_per_plane} blocks, and with \
             fewer than {BLOCKS_LEAST} the closed forms are too far off"
        ));
    }
    blocks_per_plane >= BLOCKS_LEAST
}

/// Blocks cleaned from which on write amplification is put beside its closed form. Fewer come when
/// the planes' open blocks happen to be full: counted alone they would spread by 7 % at this number,
/// and spread less, since each plane cleans in turn.
const CLEANED_LEAST: u64 = 200;

/// Tells why not in the notes.
fn has_cleaned_enough(result: &mut RunResult) -> bool {
    let cleaned = result.flash_operations.map_or(0, |operations| operations.erases);
    if cleaned < CLEANED_LEAST {
        result.notes.push(format!(
            "no expected write amplification: {cleaned} blocks were cleaned, and with fewer than \
             {CLEANED_LEAST} it is a matter of chance; run longer"
        ));
    }
    cleaned >= CLEANED_LEAST
}

/// Writes of the ramp-up by logical pages after which hot and cold pages are mixed as they stay:
/// several times as many as one turn of the pool takes.
const SETTLED_AFTER: f64 = 2.0;

fn has_settled(workload: &WorkloadConfig, logical_pages: u64) -> bool {
    let [read, write, trim] = workload.op_weights();
    let writes = workload.ramp_up as f64 * write / (read + write + trim);
    writes >= SETTLED_AFTER * logical_pages as f64
}

/// True if every write is one whole page of the whole device, and nothing is trimmed.
fn is_by_page(workload: &WorkloadConfig, page_bytes: u32) -> bool {
    let page_bytes = u64::from(page_bytes);
    let [_, write, trim] = workload.op_weights();
    let address = &workload.address;
    let alignment = workload.alignment.map_or(page_bytes, |bytes| bytes.0);
    workload.kind == Kind::Mix
        && write > 0.0
        && trim == 0.0
        && workload.sizes().iter().all(|size| size.size.0 == page_bytes)
        && alignment.is_multiple_of(page_bytes)
        && address.start.0 == 0
        && address.length.is_none()
        && address.length_percent.is_none_or(|percent| percent == 100.0)
        && workload.sequential_percent.unwrap_or(0.0) == 0.0
}
