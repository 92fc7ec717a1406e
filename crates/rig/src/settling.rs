//! Whether garbage collection has become what the load makes of it.
//!
//! A preconditioned drive is in the steady state of uniform random writes. Under another load it changes over to another
//! state, and at first so slowly that no part of a short run differs from the rest: hot and cold writes that fill 5 %
//! of a drive look steady, at 5 % below the write amplification that they end with.

use ssdyno_device::FlashReport;
use ssdyno_engine::Pool;
use ssdyno_figures::{Warning, WarningKind, significant};
use ssdyno_ftl::Fill;
use ssdyno_workload::{Pattern, Source, WorkloadConfig, WorkloadKind};

use crate::expected::written_classes;

/// Erases of a block, on average, after which write amplification is within 3 % of its later level. Measured with
/// hot and cold and with zipf-like writes, over-provisioning .145 and .5, greedy and cost-benefit cleaning; FIFO swings by
/// 6 % until five.
pub(crate) const TURNS_LEAST: f64 = 2.0;

/// How often a block was erased on average since the preconditioning, where that is too seldom for this load to
/// have reached its own state; `None` where it has, where nothing was erased, and where the device began in it.
pub(crate) fn turns(
    device: &ssdyno_ssd::Config,
    source: &Source,
    capacity_bytes: u64,
    now: &FlashReport,
) -> Option<f64> {
    // Log blocks are merged as soon as they are full: what is erased does not depend on what was written long ago.
    if !matches!(device.ftl.name.as_str(), "page" | "dftl") {
        return None;
    }
    if device.precondition.fill == Fill::Random && is_uniform(source, &now.pools, capacity_bytes) {
        return None;
    }
    let erases: u64 = now.planes.iter().map(|plane| plane.erases).sum();
    let blocks = now.planes.len() as u64 * u64::from(device.flash.blocks_per_plane);
    let turns = erases as f64 / blocks.max(1) as f64;
    (turns > 0.0 && turns < TURNS_LEAST).then_some(turns)
}

/// Whether writes are at random over the whole device, or over each of its `pools`, as those of the
/// preconditioning are.
fn is_uniform(source: &Source, pools: &[Pool], capacity_bytes: u64) -> bool {
    let Source::Generator(load) = source else { return false };
    let is_each = || !pools.is_empty() && written_classes(load, pools).is_some();
    (load.address.pattern == Pattern::Random || is_each()) && covers_device(load, capacity_bytes)
}

/// Whether the addresses of a load without trims are drawn from the whole device.
pub(crate) fn covers_device(load: &WorkloadConfig, capacity_bytes: u64) -> bool {
    let address = &load.address;
    let [_, _, trim] = load.op_weights();
    load.kind == WorkloadKind::Mix
        && load.writes.is_none()
        && trim == 0.0
        && address.start.0 == 0
        && address.length.is_none_or(|length| length.0 >= capacity_bytes)
        && address.length_percent.is_none_or(|percent| percent == 100.0)
        && load.sequential_percent.unwrap_or(0.0) == 0.0
}

/// The warning, with the ramp-up that `issued` requests show to be needed.
pub(crate) fn warning(turns: f64, issued: u64) -> Warning {
    // Two digits, upwards: the last one of an estimate says nothing.
    let needed = issued as f64 * TURNS_LEAST / turns;
    let unit = 10f64.powf(needed.log10().floor() - 1.0);
    let needed = (needed / unit).ceil() * unit;
    let message = format!(
        "garbage collection has not settled: each block was erased {} times on average since the preconditioning; until {TURNS_LEAST} erases, write amplification can still change",
        significant(turns, 2)
    );
    Warning::new(WarningKind::Unsettled, message)
        .with_help(format!("leave the beginning out: `--set workload.ramp_up={needed:.0}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_warning_names_a_ramp_up_of_two_digits() {
        let text = warning(0.28, 200_000).line();
        assert!(text.contains("0.28 times") && text.contains("ramp_up=1500000`"), "{text}");
        assert!(warning(1.999, 1_000).line().contains("ramp_up=1100`"));
    }
}
