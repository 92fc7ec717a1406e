//! Which pages a load writes, and whether all of them are equally likely.

use ssdyno_engine::Pool;
use ssdyno_ftl::closed_forms::Class;
use ssdyno_workload::{HotPart, Pattern, WorkloadConfig, WorkloadKind};

/// Whether the addresses of a load without trims are drawn from the whole device.
pub(crate) fn covers_device(load: &WorkloadConfig, capacity_bytes: u64) -> bool {
    load.address.length_percent.is_none_or(|percent| percent == 100.0)
        && covers(load, capacity_bytes)
}

/// The same of the first `bytes` at least, where a share of the device is the range.
pub(crate) fn covers(load: &WorkloadConfig, bytes: u64) -> bool {
    let address = &load.address;
    let [_, _, trim] = load.op_weights();
    load.kind == WorkloadKind::Mix
        && load.writes.is_none()
        && trim == 0.0
        && address.start.0 == 0
        && address.length.is_none_or(|length| length.0 >= bytes)
        && load.sequential_percent.unwrap_or(0.0) == 0.0
}

/// The pools' shares of the writes and of the space; `None` where the pages of one are not all
/// equally likely to be written.
pub(crate) fn written_classes(workload: &WorkloadConfig, pools: &[Pool]) -> Option<Vec<Class>> {
    let pages: u32 = pools.iter().map(|pool| pool.logical_pages).sum();
    let mut end = 0;
    let ends: Vec<u32> = pools
        .iter()
        .map(|pool| {
            end += pool.logical_pages;
            end
        })
        .collect();
    let HotPart { access: writes, space } = workload.address.hot();
    // Pages up to where all are alike, and their share of the writes; then those behind.
    let (hot_end, writes) = match workload.address.pattern {
        Pattern::Random => (pages, 1.0),
        Pattern::HotCold if !workload.address.scatter => {
            // No pool has hot and cold pages, but for one by rounding.
            let is_end = |end: &&u32| (f64::from(**end) - space * f64::from(pages)).abs() <= 1.0;
            (*ends.iter().find(is_end)?, writes)
        }
        _ => return None,
    };
    let class = |(pool, end): (&Pool, &u32)| {
        let own = f64::from(pool.logical_pages);
        let writes = if *end <= hot_end {
            writes * own / f64::from(hot_end)
        } else {
            (1.0 - writes) * own / f64::from(pages - hot_end)
        };
        Class { writes, space: own / f64::from(pages) }
    };
    Some(pools.iter().zip(&ends).map(class).collect())
}
