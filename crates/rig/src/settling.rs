//! Whether garbage collection has become what the load makes of it.
//!
//! A preconditioned drive is in the steady state of uniform random writes. Under another load it changes over to another
//! state, and at first so slowly that no part of a short run differs from the rest: hot and cold writes that fill 5 %
//! of a drive look steady, at 5 % below the write amplification that they end with.

use ssdyno_device::FlashReport;
use ssdyno_engine::Pool;
use ssdyno_figures::{Warning, WarningKind, seconds, significant};
use ssdyno_ftl::{Cleaning, Fill};
use ssdyno_workload::{Pattern, Source, WorkloadConfig};

use crate::uniform::{covers, covers_device, written_classes};

/// Erases of a block, on average, after which write amplification is within 3 % of its later level. Measured with
/// hot and cold and with zipf-like writes, over-provisioning .145 and .5, greedy and cost-benefit cleaning.
pub(crate) const TURNS_LEAST: f64 = 2.0;
/// The same of FIFO cleaning, with which write amplification swings by 6 % until then.
const TURNS_LEAST_FIFO: f64 = 5.0;

/// The least share of the requests that writes have in a load for which garbage collection matters.
pub(crate) const WRITES_LEAST: f64 = 0.01;

/// Garbage collection that has not settled.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Unsettled {
    /// Mean number of erases of a block since the preconditioning.
    pub(crate) turns: f64,
    /// How many times as many requests as the run has issued are needed.
    times: f64,
    /// The time limit of the load, of which a ramp-up is a part.
    limit_seconds: Option<f64>,
}

/// Overwrites of the written range that sequential writes need. Cleaning of what random writes left behind erases blocks
/// twice long before: on `config-a`, write amplification is 2.6 after two overwrites, 1.7 after four, and 1.6 after five and
/// after thirteen.
const OVERWRITES_LEAST: f64 = 5.0;

/// Overwrites of the cold pages that a load needs of which more than [`SKEW_MOST`] percent go to the hot ones. Erases do not
/// show it: on `config-a` with 99 % of the writes on 1 % of the pages, write amplification is 7.0 after two erases of each
/// block, 9.0 after 0.8 overwrites of the cold pages, and 10.3 after 1.9.
const COLD_OVERWRITES_LEAST: f64 = 2.0;
/// With 90 % of the writes on 10 % of the pages, [`TURNS_LEAST`] is enough.
const SKEW_MOST: f64 = 90.0;

/// How far garbage collection is from the state of its own that this load has; `None` where it has reached it, where
/// nothing was erased, and where the device began in it. The run wrote `written_bytes`, with its ramp-up, to `capacity_bytes`:
/// all that hosts can address where it `reaches_all`.
pub(crate) fn unsettled(
    device: &ssdyno_ssd::Config,
    source: &Source,
    (capacity_bytes, reaches_all): (u64, bool),
    (now, written_bytes): (&FlashReport, u64),
) -> Option<Unsettled> {
    // Log blocks are merged as soon as they are full: what is erased does not depend on what was written long ago.
    if !matches!(device.ftl.name.as_str(), "page" | "dftl") {
        return None;
    }
    let precondition = &device.precondition;
    if reaches_all
        && precondition.fill == Fill::Random
        && is_uniform(source, &now.pools, capacity_bytes, precondition.share)
    {
        return None;
    }
    let erases: u64 = now.planes.iter().map(|plane| plane.erases).sum();
    let blocks = now.planes.len() as u64 * u64::from(device.flash.blocks_per_plane);
    let turns = erases as f64 / blocks.max(1) as f64;
    let least = if device.ftl.cleaning == Cleaning::Fifo { TURNS_LEAST_FIFO } else { TURNS_LEAST };
    let mut times = least / turns;
    if let Some(range_bytes) = sequential_range(source, capacity_bytes) {
        let overwrites = written_bytes as f64 / range_bytes.max(1) as f64;
        times = times.max(OVERWRITES_LEAST / overwrites.max(f64::MIN_POSITIVE));
    }
    if let Some(cold_bytes) = cold_bytes(source, capacity_bytes) {
        let overwrites = written_bytes as f64 / cold_bytes;
        times = times.max(COLD_OVERWRITES_LEAST / overwrites.max(f64::MIN_POSITIVE));
    }
    let limit_seconds = match source {
        Source::Generator(load) => load.duration.map(|limit| limit.0.as_s_f64()),
        Source::Trace { .. } | Source::Jobs { .. } => None,
    };
    (turns > 0.0 && times > 1.0).then_some(Unsettled { turns, times, limit_seconds })
}

/// The bytes that a strongly skewed load writes until it has overwritten its cold pages once; `None` of other loads.
fn cold_bytes(source: &Source, capacity_bytes: u64) -> Option<f64> {
    let Source::Generator(load) = source else { return None };
    let address = &load.address;
    let [space, access] = [address.hot_space_percent, address.hot_access_percent];
    if address.pattern != Pattern::HotCold || access <= SKEW_MOST || access >= 100.0 {
        return None;
    }
    Some(range_bytes(load, capacity_bytes) as f64 * (100.0 - space) / (100.0 - access))
}

/// The bytes of the range of `load`.
fn range_bytes(load: &WorkloadConfig, capacity_bytes: u64) -> u64 {
    let percent = load.address.length_percent.map_or(1.0, |percent| percent / 100.0);
    let whole = (capacity_bytes as f64 * percent) as u64;
    load.address.length.map_or(whole, |length| length.0.min(whole))
}

/// The bytes that a load writes in order; `None` if it does not.
fn sequential_range(source: &Source, capacity_bytes: u64) -> Option<u64> {
    let Source::Generator(load) = source else { return None };
    let address = &load.address;
    let in_order = address.pattern == Pattern::Sequential
        || load.sequential_percent.is_some_and(|percent| percent > 50.0);
    in_order.then(|| range_bytes(load, capacity_bytes))
}

/// Whether writes are at random over the `share` of the device that was preconditioned, or over each of its `pools`, as
/// those of the preconditioning are.
fn is_uniform(source: &Source, pools: &[Pool], capacity_bytes: u64, share: f64) -> bool {
    let Source::Generator(load) = source else { return false };
    let address = &load.address;
    let is_each = || !pools.is_empty() && written_classes(load, pools).is_some();
    // Hot pages that get no more than their share of the writes are as cold as the others.
    let is_flat = || {
        address.pattern == Pattern::HotCold
            && address.hot_access_percent == address.hot_space_percent
    };
    let is_even = address.pattern == Pattern::Random || is_flat() || is_each();
    // A part of the device that was filled alone is a full drive with more spare blocks.
    let part = address.length_percent.map_or(1.0, |percent| percent / 100.0);
    match share < 1.0 && (part - share).abs() < 1e-3 {
        true => is_even && covers(load, (capacity_bytes as f64 * share) as u64),
        false => is_even && covers_device(load, capacity_bytes),
    }
}

impl Unsettled {
    /// The warning of a run that issued `issued` requests.
    pub(crate) fn warning(&self, issued: u64) -> Warning {
        let message = format!(
            "garbage collection has not settled: each block was erased {} times on average since the preconditioning, and \
             write amplification can still change",
            significant(self.turns, 2)
        );
        Warning::new(WarningKind::Unsettled, message).with_help(self.remedy(issued))
    }

    /// The ramp-up that `issued` requests show to be needed.
    pub(crate) fn remedy(&self, issued: u64) -> String {
        let needed = issued as f64 * self.times;
        // Two digits, upwards: the last one of an estimate says nothing.
        let unit = 10f64.powf(needed.log10().floor() - 1.0);
        let needed = (needed / unit).ceil() * unit;
        // The ramp-up is longer than the run was: with the same limit, nothing would be recorded.
        let longer = self.limit_seconds.map(|limit| limit * (needed / issued as f64 + 1.0));
        let longer = longer.map_or_else(String::new, |limit| {
            format!(
                ", and run for at least {} (`--for`), which includes the ramp-up",
                seconds(limit)
            )
        });
        format!("leave the beginning out: `--set workload.ramp_up={needed:.0}`{longer}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1 % of the writes go to 99 % of 100 pages: 9900 pages overwrite the cold ones once.
    #[test]
    fn cold_pages_of_a_strong_skew_are_overwritten_late() {
        let cold = |space: f64, access: f64| {
            let text = format!(
                "write_percent = 100\nblock_size = \"4KiB\"\nrequests = 10\naddress = {{ pattern = \"hot-cold\", \
                 hot_space_percent = {space}, hot_access_percent = {access} }}"
            );
            let load = WorkloadConfig::from_toml(&text).unwrap();
            cold_bytes(&Source::Generator(load), 100 * 4096).map(|bytes| (bytes / 4096.0).round())
        };
        assert_eq!((cold(1.0, 99.0), cold(5.0, 95.0)), (Some(9900.0), Some(1900.0)));
        assert_eq!((cold(10.0, 90.0), cold(20.0, 80.0), cold(1.0, 100.0)), (None, None, None));
    }

    #[test]
    fn the_warning_names_a_ramp_up_of_two_digits() {
        let text = |turns, issued, limit_seconds| {
            let times = TURNS_LEAST / turns;
            Unsettled { turns, times, limit_seconds }.warning(issued).line()
        };
        let told = text(0.28, 200_000, None);
        assert!(told.contains("0.28 times") && told.ends_with("ramp_up=1500000`"), "{told}");
        assert!(text(1.999, 1_000, None).contains("ramp_up=1100`"));
        // 200 000 requests took 2 s: 1 500 000 take 15 s, and the run itself 2 s.
        let told = text(0.28, 200_000, Some(2.0));
        assert!(told.contains("ramp_up=1500000`, and run for at least 17"), "{told}");
    }
}
