//! Figures that theory gives for what was run, beside what was measured.

use std::collections::BTreeMap;

use ssdyno_device::DeviceFacts;
use ssdyno_ftl::closed_forms::{self, Class};
use ssdyno_ftl::{Cleaning, Fill, HotCold, Placement};
use ssdyno_result::{Expected, RunResult};
use ssdyno_workload::{Config as WorkloadConfig, Kind, Pattern};

use crate::run::{Run, Source};

/// Appends the write amplification of random single-page writes where that is what was run: page
/// mapping without hot/cold separation, in steady state. Uniform writes are in it from the start,
/// as preconditioned; hot and cold ones after a ramp-up of [`SETTLED_AFTER`].
pub(crate) fn fill(result: &mut RunResult, run: &Run, facts: &DeviceFacts, capacity_bytes: u64) {
    let Source::Generator(workload) = &run.source else { return };
    let (Some(measured), Some(used)) = (result.write_amplification, facts.effective_utilisation)
    else {
        return;
    };
    let Some(device) = run.device.ssd() else { return };
    let ftl = &device.ftl;
    let precondition = &device.precondition;
    let whole = precondition.fill == Fill::Random && precondition.share == 1.0;
    let unbuffered = device.buffer == ssdyno_ftl::buffer::BufferConfig::default();
    // Cleaning ahead of need moves more; where pages change planes these are not equally full.
    let as_needed = ftl.free_blocks_background == 0.0 && ftl.placement == Placement::Static;
    let plain = ftl.hot_cold == HotCold::Off && as_needed && unbuffered;
    if ftl.name != "page" || !whole || !plain {
        return;
    }
    let page_bytes = u64::from(facts.page_bytes);
    if !is_by_page(workload, page_bytes) {
        return;
    }
    let pages = facts.pages_per_block;
    let address = &workload.address;
    let hot = [address.hot_access_percent, address.hot_space_percent].map(|p| p / 100.0);
    let (form, value) = match (address.pattern, ftl.cleaning) {
        (Pattern::Random, Cleaning::Greedy) => {
            ("greedy, finite block, mean field (form 3)", closed_forms::greedy(used, pages))
        }
        (Pattern::Random, Cleaning::Fifo) => {
            ("FIFO, block large (form 1)", closed_forms::fifo(1.0 / used))
        }
        (Pattern::Random, Cleaning::Random) => {
            ("random victim (form 7)", closed_forms::random_victim(used))
        }
        (Pattern::HotCold, Cleaning::Fifo)
            if has_settled(workload, capacity_bytes / page_bytes) =>
        {
            let [writes, space] = hot;
            let classes =
                [Class { writes, space }, Class { writes: 1.0 - writes, space: 1.0 - space }];
            let value = closed_forms::one_pool(&classes, 1.0 / used);
            ("FIFO, hot and cold in one pool (form 4)", value)
        }
        _ => return,
    };
    if let Some(value) = value
        && has_cleaned_enough(result)
    {
        let mut inputs = BTreeMap::from([
            ("effective_utilisation".to_owned(), used),
            ("pages_per_block".to_owned(), f64::from(pages)),
        ]);
        if address.pattern == Pattern::HotCold {
            inputs.insert("hot_share_of_writes".to_owned(), hot[0]);
            inputs.insert("hot_share_of_space".to_owned(), hot[1]);
        }
        result.expected.push(Expected {
            figure: "write_amplification".into(),
            value,
            measured: Some(measured),
            form: form.into(),
            inputs,
        });
    }
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
fn is_by_page(workload: &WorkloadConfig, page_bytes: u64) -> bool {
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
