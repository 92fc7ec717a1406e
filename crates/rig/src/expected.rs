//! Figures that theory gives for what was run, beside what was measured.

use std::collections::BTreeMap;

use ssdyno_device::DeviceReport;
use ssdyno_engine::Pool;
use ssdyno_figures::{Expected, RunResult};
use ssdyno_ftl::closed_forms::{self, Class};
use ssdyno_ftl::{Cleaning, CleaningPace, Fill, HotCold, Placement, WearLevelling};
use ssdyno_workload::{HotPart, Pattern, Source, WorkloadConfig};

use crate::attach::Attach;
use crate::uniform::{covers_device, written_classes};

/// Appends the theoretical write amplification of random single-page writes if the run consisted of them: page mapping
/// in steady state, in one pool or in pools for classes of pages that are written uniformly. These are in it from the
/// start, as preconditioned; hot and cold pages in one pool are after a ramp-up of [`SETTLED_AFTER`].
///
/// No figure with bad blocks: planes then are not equally full.
pub(crate) fn fill(
    result: &mut RunResult,
    (attach, source): (&Attach, &Source),
    (before, after): (&DeviceReport, &DeviceReport),
    capacity_bytes: u64,
) {
    let Source::Generator(workload) = source else { return };
    let (Some(measured), Some(device)) = (result.write_amplification, attach.ssd()) else {
        return;
    };
    let Some(facts) = before.flash() else { return };
    if !facts.pools.is_empty() {
        note_other_classes(result, workload, &facts.pools);
    }
    if !is_of_policy(device)
        || after.health().bad_blocks > 0
        || !is_by_page(workload, facts.page_bytes, capacity_bytes)
    {
        return;
    }
    let logical_pages = capacity_bytes / u64::from(facts.page_bytes);
    // Data of other namespaces stay as they are and make blocks of their own.
    if !attach.is_reached_by(capacity_bytes, before) {
        return;
    }
    let found = match facts.effective_utilisation {
        Some(used) => {
            let used = used * attach.reachable_share(before);
            let Some(found) = form(device, workload, used, logical_pages) else { return };
            let blocks = device.flash.blocks_per_plane;
            let room =
                |result: &mut RunResult| has_room_noted(result, blocks, used, data_pages(device));
            if !has_blocks_enough(result, blocks) || !room(result) {
                return;
            }
            found
        }
        None => {
            let Some(classes) = written_classes(workload, &facts.pools) else { return };
            let found = pools_form(device, &classes, &facts.pools);
            let Some((found, blocks)) = found else { return };
            if !has_pools_enough(result, blocks) {
                return;
            }
            found
        }
    };
    if !has_cleaned_enough(result, facts.pools.len().max(1) as u64) {
        return;
    }
    let pages = facts.pages_per_block;
    let summary_pages = device.ftl.summary_pages;
    let Found { form, value, mut inputs } = found;
    inputs.insert("pages_per_block".to_owned(), f64::from(pages));
    if summary_pages > 0 {
        inputs.insert("summary_pages_per_block".to_owned(), f64::from(summary_pages));
    }
    if workload.address.pattern == Pattern::HotCold {
        let HotPart { access: writes, space } = workload.address.hot();
        inputs.insert("hot_share_of_writes".to_owned(), writes);
        inputs.insert("hot_share_of_space".to_owned(), space);
    }
    // Summaries are programmed with the pages of each block.
    let programmed = f64::from(pages + summary_pages) / f64::from(pages);
    let chance = chance(result, device, workload, measured);
    result.expected.push(Expected {
        figure: "write_amplification".into(),
        value: value * programmed,
        measured: Some(measured),
        chance,
        accuracy: chance.map(|_| ACCURACY),
        form: form.into(),
        inputs,
    });
}

/// The forms are of infinitely many blocks and pages. Over 40 seeds with 200 blocks a plane and more, the mean
/// was within 0.6 % of each form of uniform writes. A long run has less chance than that.
const ACCURACY: f64 = 0.006;
/// Standard deviation of the write amplification of pages that are written uniformly, as a share of it,
/// times the root of the host's pages: greedy, FIFO and windowed cleaning take blocks that are much alike.
/// Over 40 seeds .40 to .55, with 8, 55 and 99 pages a block and over-provisioning .2, .51 and 1.3.
const DEVIATION_BY_PAGES: f64 = 0.55;
/// The same, per block of the host, if the victim is random: it has had a random time to lose its pages, so all its
/// pages share the same age. In the same measurements .31 to .51.
const DEVIATION_BY_BLOCKS: f64 = 0.51;
/// The number of standard deviations within which 95 % of a normal distribution lie.
const WITHIN_95: f64 = 1.96;

/// The deviation by chance of the write amplification of a run of this length.
fn chance(
    result: &RunResult,
    device: &ssdyno_ssd::Config,
    workload: &WorkloadConfig,
    amplification: f64,
) -> Option<f64> {
    let one_pool = device.ftl.hot_cold == HotCold::Off;
    if !one_pool || workload.address.pattern != Pattern::Random {
        return None;
    }
    let host_pages = result.flash_operations?.programs as f64 / amplification;
    let deviation = match device.ftl.cleaning {
        Cleaning::Greedy | Cleaning::Fifo => DEVIATION_BY_PAGES / host_pages.sqrt(),
        Cleaning::Random => {
            DEVIATION_BY_BLOCKS / (host_pages / f64::from(data_pages(device))).sqrt()
        }
        _ => return None,
    };
    Some(WITHIN_95 * deviation)
}

/// A closed form that applies.
struct Found {
    /// Its name.
    form: &'static str,
    /// The write amplification, summaries of blocks aside.
    value: f64,
    /// The inputs of the formula, except those that are the same for all.
    inputs: BTreeMap<String, f64>,
}

/// True if blocks are cleaned as the policy says and for want of room, and for nothing else, in
/// planes that are equally full from the start.
fn is_of_policy(device: &ssdyno_ssd::Config) -> bool {
    let ftl = &device.ftl;
    let precondition = &device.precondition;
    ftl.name == "page"
        && precondition.fill == Fill::Random
        && precondition.share == 1.0
        && device.buffer == ssdyno_ftl::buffer::BufferConfig::default()
        // Cleaning ahead of need moves more; where pages change planes these are not equally full.
        && ftl.free_blocks_background == 0.0
        && ftl.placement == Placement::Static
        && ftl.hot_cold != HotCold::Survivors
        // Blocks that it moves are not those that the policy would clean.
        && ftl.wear_levelling != WearLevelling::Static
}

/// The closed form of what is run, by name and with its value.
fn form(
    device: &ssdyno_ssd::Config,
    workload: &WorkloadConfig,
    used: f64,
    logical_pages: u64,
) -> Option<Found> {
    let ftl = &device.ftl;
    let pages = data_pages(device);
    let (form, value) = match (workload.address.pattern, ftl.cleaning) {
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
            let HotPart { access: writes, space } = workload.address.hot();
            let classes =
                [Class { writes, space }, Class { writes: 1.0 - writes, space: 1.0 - space }];
            let value = closed_forms::one_pool(&classes, 1.0 / used);
            ("FIFO, hot and cold in one pool (form 4)", value)
        }
        _ => return None,
    };
    let value = value.filter(|value| holds_paced(device, *value))?;
    let inputs = BTreeMap::from([("effective_utilisation".to_owned(), used)]);
    Some(Found { form, value, inputs })
}

/// Pages of a block that hold data.
fn data_pages(device: &ssdyno_ssd::Config) -> u32 {
    device.flash.pages_per_block - device.ftl.summary_pages
}

/// True if the pace of cleaning does not matter to a form that gives `value` for a pool.
fn holds_paced(device: &ssdyno_ssd::Config, value: f64) -> bool {
    match (device.ftl.page.cleaning_pace, device.ftl.cleaning) {
        (CleaningPace::Whole, _) | (_, Cleaning::Greedy) => true,
        // Paced cleaning passes over victims of which every page is valid, where the forms move
        // them. After one turn a page is valid with 1 - 1/A.
        (_, Cleaning::Fifo) => {
            (1.0 - 1.0 / value).powf(f64::from(data_pages(device))) < FULL_VICTIMS_MOST
        }
        _ => false,
    }
}

/// Form 5, where every pool is written uniformly; and the blocks that pools have, see
/// [`has_pools_enough`].
fn pools_form(
    device: &ssdyno_ssd::Config,
    classes: &[Class],
    pools: &[Pool],
) -> Option<(Found, f64)> {
    let pages = data_pages(device);
    let (form, one): (_, &dyn Fn(f64) -> Option<f64>) = match device.ftl.cleaning {
        Cleaning::Greedy => ("separate pools (form 5), each greedy (form 3)", &|alpha| {
            closed_forms::greedy(1.0 / alpha, pages)
        }),
        Cleaning::Fifo => ("separate pools (form 5), each FIFO (form 1)", &closed_forms::fifo),
        Cleaning::Random => {
            ("separate pools (form 5), each with random victims (form 7)", &|alpha| {
                closed_forms::random_victim(1.0 / alpha)
            })
        }
        _ => return None,
    };
    let alphas: Vec<f64> = pools.iter().map(|pool| 1.0 / pool.utilisation).collect();
    let value = closed_forms::separate_pools(classes, &alphas, one)?;
    let mut inputs = BTreeMap::new();
    let (mut blocks_inverse, mut holds) = (0.0, true);
    for (number, (class, pool)) in (1..).zip(classes.iter().zip(pools)) {
        let mut insert = |what, value| inputs.insert(format!("class_{number}_{what}"), value);
        insert("effective_utilisation", pool.utilisation);
        insert("share_of_writes", class.writes);
        insert("share_of_space", class.space);
        if class.writes > 0.0 {
            let own = one(1.0 / pool.utilisation)?;
            holds &=
                holds_paced(device, own) && has_room(pool.blocks_least, pool.utilisation, pages);
            blocks_inverse += class.writes * own / value / f64::from(pool.blocks_least);
        }
    }
    holds.then_some((Found { form, value, inputs }, 1.0 / blocks_inverse))
}

/// Reports that the hot pages of the workload differ from those of the classes, with the remedy.
fn note_other_classes(result: &mut RunResult, workload: &WorkloadConfig, pools: &[Pool]) {
    let address = &workload.address;
    let scattered = match address.pattern {
        Pattern::HotCold | Pattern::Zipf if address.scatter => {
            "are scattered over all channels: add `workload.address.scatter=false`"
        }
        Pattern::HotCold if written_classes(workload, pools).is_none() => {
            "end within a class: set workload.address.hot_space_percent to the end of a class"
        }
        _ => return,
    };
    result.notes.push(format!(
        "ftl.page.classes do not keep hot and cold pages apart: the workload's hot pages {scattered}"
    ));
}

/// Spare blocks of a pool, times the pages of a block, of which sixteen count, from which on the forms
/// hold in it. They take the spare blocks for a continuum: FIFO with two pages a block is 3 % off with
/// 10 spare blocks of 100, and 9 % with 5.
const ROOM_LEAST: f64 = 128.0;

fn has_room(blocks: u32, utilisation: f64, pages: u32) -> bool {
    let spare = f64::from(blocks) * (1.0 - utilisation);
    spare * f64::from(pages.min(16)) >= ROOM_LEAST
}

/// `holds`, of what the forms need; tells `why` not in the notes.
fn noted(result: &mut RunResult, holds: bool, why: std::fmt::Arguments<'_>) -> bool {
    if !holds {
        result.notes.push(format!("no expected write amplification: {why}"));
    }
    holds
}

/// Tells why not in the notes.
fn has_room_noted(result: &mut RunResult, blocks: u32, utilisation: f64, pages: u32) -> bool {
    let spare = f64::from(blocks) * (1.0 - utilisation);
    let why = format_args!(
        "planes have {spare:.0} spare blocks of {pages} pages, which is too few for the closed forms"
    );
    noted(result, has_room(blocks, utilisation, pages), why)
}

/// Share of victims without a page to gain up to which they do not matter.
const FULL_VICTIMS_MOST: f64 = 1e-3;

/// Blocks of a plane from which on the forms, which are for pools without end, are within 1 % (of a
/// hundred blocks: 2 %; of 50: 6 %, the more the fewer pages a block has).
const BLOCKS_LEAST: u32 = 200;

/// Tells why not in the notes.
fn has_blocks_enough(result: &mut RunResult, blocks_per_plane: u32) -> bool {
    let why = format_args!(
        "planes have {blocks_per_plane} blocks, and the closed forms need at least {BLOCKS_LEAST}"
    );
    noted(result, blocks_per_plane >= BLOCKS_LEAST, why)
}

/// The same for pools: harmonic mean of their blocks, weighted by the pages that are programmed there.
/// A hot pool is small but has much spare, where the forms are nearer: within 1 % mostly, and 2 %.
const POOL_BLOCKS_LEAST: f64 = 100.0;

/// Tells why not in the notes.
fn has_pools_enough(result: &mut RunResult, blocks: f64) -> bool {
    let why = format_args!(
        "the pools of a plane have an effective mean of {blocks:.0} blocks, and the closed forms \
         need at least {POOL_BLOCKS_LEAST}"
    );
    noted(result, blocks >= POOL_BLOCKS_LEAST, why)
}

/// Blocks cleaned, in each pool, from which on write amplification is put beside its closed form. Fewer come when
/// the planes' open blocks happen to be full: counted alone they would spread by 7 % at this number,
/// and spread less, since each plane cleans in turn.
const CLEANED_LEAST: u64 = 200;

/// Tells why not in the notes.
fn has_cleaned_enough(result: &mut RunResult, pools: u64) -> bool {
    let least = CLEANED_LEAST * pools;
    let cleaned = result.flash_operations.map_or(0, |operations| operations.erases);
    let why = format_args!(
        "{cleaned} blocks were cleaned, and an estimate needs at least {least}; run longer"
    );
    noted(result, cleaned >= least, why)
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
fn is_by_page(workload: &WorkloadConfig, page_bytes: u32, capacity_bytes: u64) -> bool {
    let page_bytes = u64::from(page_bytes);
    let [_, write, _] = workload.op_weights();
    let alignment = workload.alignment.map_or(page_bytes, |bytes| bytes.0);
    covers_device(workload, capacity_bytes)
        && write > 0.0
        && workload.sizes().iter().all(|size| size.size.0 == page_bytes)
        && alignment.is_multiple_of(page_bytes)
}
