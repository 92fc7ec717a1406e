//! Figures that theory gives for what was run, beside what was measured.

use std::collections::BTreeMap;

use ssdyno_device::DeviceFacts;
use ssdyno_ftl::{Cleaning, Fill, HotCold, closed_forms};
use ssdyno_result::{Expected, RunResult};
use ssdyno_workload::{Config as WorkloadConfig, Kind, Pattern};

use crate::run::{Run, Source};

/// Appends the write amplification of uniform random single-page writes where that is what was
/// run: page mapping without hot/cold separation, in steady state from the start.
pub(crate) fn fill(result: &mut RunResult, run: &Run, facts: &DeviceFacts) {
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
    if ftl.name != "page" || ftl.hot_cold != HotCold::Off || !whole || !unbuffered {
        return;
    }
    if !is_uniform(workload, u64::from(facts.page_bytes)) {
        return;
    }
    let pages = facts.pages_per_block;
    let (form, value) = match ftl.cleaning {
        Cleaning::Greedy => {
            ("greedy, finite block, mean field (form 3)", closed_forms::greedy(used, pages))
        }
        Cleaning::Fifo => ("FIFO, block large (form 1)", closed_forms::fifo(1.0 / used)),
        Cleaning::Random => ("random victim (form 7)", closed_forms::random_victim(used)),
        _ => return,
    };
    if let Some(value) = value {
        let inputs = BTreeMap::from([
            ("effective_utilisation".to_owned(), used),
            ("pages_per_block".to_owned(), f64::from(pages)),
        ]);
        result.expected.push(Expected {
            figure: "write_amplification".into(),
            value,
            measured: Some(measured),
            form: form.into(),
            inputs,
        });
    }
}

/// True if every write is one whole page, all pages of the device equally likely, nothing trimmed.
fn is_uniform(workload: &WorkloadConfig, page_bytes: u64) -> bool {
    let [_, write, trim] = workload.op_weights();
    let address = &workload.address;
    let alignment = workload.alignment.map_or(page_bytes, |bytes| bytes.0);
    workload.kind == Kind::Mix
        && write > 0.0
        && trim == 0.0
        && workload.sizes().iter().all(|size| size.size.0 == page_bytes)
        && alignment.is_multiple_of(page_bytes)
        && address.pattern == Pattern::Random
        && address.start.0 == 0
        && address.length.is_none()
        && address.length_percent.is_none_or(|percent| percent == 100.0)
        && workload.sequential_percent.unwrap_or(0.0) == 0.0
}
