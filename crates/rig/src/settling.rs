//! Whether garbage collection has become what the load makes of it.
//!
//! A preconditioned drive is in the steady state of uniform random writes. Under another load it changes over to another
//! state, and at first so slowly that no part of a short run differs from the rest: hot and cold writes that fill 5 %
//! of a drive look steady, at 5 % below the write amplification that they end with.

use ssdyno_device::FlashReport;
use ssdyno_ftl::Fill;
use ssdyno_workload::{Pattern, Source, WorkloadConfig, WorkloadKind};

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
    if device.precondition.fill == Fill::Random && is_uniform(source, capacity_bytes) {
        return None;
    }
    let erases: u64 = now.planes.iter().map(|plane| plane.erases).sum();
    let blocks = now.planes.len() as u64 * u64::from(device.flash.blocks_per_plane);
    let turns = erases as f64 / blocks.max(1) as f64;
    (turns > 0.0 && turns < TURNS_LEAST).then_some(turns)
}

/// Whether writes are at random over the whole device, as those of the preconditioning are.
fn is_uniform(source: &Source, capacity_bytes: u64) -> bool {
    let Source::Generator(load) = source else { return false };
    load.address.pattern == Pattern::Random && covers_device(load, capacity_bytes)
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

/// The note, with the ramp-up that `issued` requests show to be needed.
pub(crate) fn note(turns: f64, issued: u64) -> String {
    // Two digits, upwards: the last one of an estimate says nothing.
    let needed = issued as f64 * TURNS_LEAST / turns;
    let unit = 10f64.powf(needed.log10().floor() - 1.0);
    let needed = (needed / unit).ceil() * unit;
    format!(
        "garbage collection has not settled: since the preconditioning, each block was erased {turns:.2} times on average, and write amplification can change until each block was erased about {TURNS_LEAST} times; leave the beginning out with `workload.ramp_up={needed:.0}` (requests)"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_note_names_a_ramp_up_of_two_digits() {
        let text = note(0.28, 200_000);
        assert!(text.contains("0.28 times") && text.contains("ramp_up=1500000`"), "{text}");
        assert!(note(1.999, 1_000).contains("ramp_up=1100`"));
    }
}
