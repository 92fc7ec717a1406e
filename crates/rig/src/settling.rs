//! Whether garbage collection has become what the load makes of it.
//!
//! A preconditioned drive is in the steady state of uniform random writes. Under another load it changes over to another
//! state, and at first so slowly that no part of a short run differs from the rest: hot and cold writes that fill 5 %
//! of a drive look steady, at 5 % below the write amplification that they end with.
//!
//! A block from before the load holds pages of any popularity. Cleaning takes it when it has as few valid pages as any
//! victim: when the load has overwritten as large a share of the pages as a victim has invalid ones, also a block of which
//! all pages were valid. Under a strongly skewed load that is late, and erases do not show it: they are those of the blocks
//! with hot pages. Measured on `config-a` with one channel and one chip, in writes by the number of logical pages: write
//! amplification is within 1.1 % of its last level when the rule is met (hot and cold 1/99: after 9, 5/95: 1.5, 1/90: 1.0;
//! zipf 1.2: 0.9, 1.5: 7.5). After two erases of each block, which takes 0.2 writes for each page, it is up to 32 % below it.

use ssdyno_device::FlashReport;
use ssdyno_engine::Pool;
use ssdyno_figures::{Warning, WarningKind, seconds, significant};
use ssdyno_ftl::{Cleaning, Fill};
use ssdyno_workload::{Pattern, Source, WrittenPlaces};

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
    /// The share of the pages that were overwritten, and the share that is needed, where it is larger.
    overwritten: Option<[f64; 2]>,
    /// The time limit of the load, of which a ramp-up is a part.
    limit_seconds: Option<f64>,
}

/// Overwrites of the written range that sequential writes need. Cleaning of what random writes left behind erases blocks
/// twice long before: on `config-a`, write amplification is 2.6 after two overwrites, 1.7 after four, and 1.6 after five and
/// after thirteen.
const OVERWRITES_LEAST: f64 = 5.0;

/// The largest share of the pages that must have been overwritten. With more invalid pages than valid ones in a victim, write
/// amplification is below 2: an old block that stays takes no more than a part of many spare pages.
const OVERWRITTEN_MOST: f64 = 0.5;

/// Above this number of requests, a ramp-up takes longer than a quarter of an hour (a million requests per second).
const RAMP_UP_MOST: f64 = 1e9;

/// How far garbage collection is from the state of its own that this load has; `None` where it has reached it, where
/// nothing was erased, and where the device began in it. The run wrote `written_bytes`, with its ramp-up, to `capacity_bytes`:
/// all that hosts can address where it `reaches_all`. `invalid` is the share of the pages of a victim that were not valid any
/// more, if there were victims.
pub(crate) fn unsettled(
    device: &ssdyno_ssd::Config,
    source: &Source,
    (capacity_bytes, reaches_all): (u64, bool),
    (now, written_bytes, invalid): (&FlashReport, u64, Option<f64>),
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
    // A stream that goes on over what a stream wrote before it overwrites blocks as a whole.
    let is_one_stream = matches!(source, Source::Generator(load) if load.is_one_stream());
    if precondition.fill == Fill::Sequential && invalid == Some(1.0) && is_one_stream {
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
    let needed = invalid.filter(|_| takes_the_emptiest(device.ftl.cleaning));
    let places = source.written_places(capacity_bytes, now.page_bytes);
    let late = places.zip(needed).and_then(|(places, needed)| {
        too_few_overwritten(&places, written_bytes as f64, needed.min(OVERWRITTEN_MOST))
    });
    times = times.max(late.map_or(0.0, |(_, times)| times));
    let limit_seconds = match source {
        Source::Generator(load) => load.duration.map(|limit| limit.0.as_s_f64()),
        Source::Trace { .. } | Source::Jobs { .. } => None,
    };
    let overwritten = late.map(|(shares, _)| shares);
    let unsettled = Unsettled { turns, times, overwritten, limit_seconds };
    (turns > 0.0 && times > 1.0).then_some(unsettled)
}

/// Whether a block with many valid pages stays until they are overwritten. Cleaning that does not look at them takes every
/// block in its turn.
fn takes_the_emptiest(cleaning: Cleaning) -> bool {
    !matches!(cleaning, Cleaning::Fifo | Cleaning::Random)
}

/// Where less than a share of `needed` of the `places` was overwritten with `written_bytes`: the share that was, `needed`, and
/// how many times as many bytes are needed.
fn too_few_overwritten(
    places: &WrittenPlaces,
    written_bytes: f64,
    needed: f64,
) -> Option<([f64; 2], f64)> {
    let share = places.overwritten(written_bytes);
    let times = places.bytes_until(needed) / written_bytes.max(1.0);
    (share < needed).then_some(([share, needed], times))
}

/// The bytes that a load writes in order; `None` if it does not.
fn sequential_range(source: &Source, capacity_bytes: u64) -> Option<u64> {
    let Source::Generator(load) = source else { return None };
    let address = &load.address;
    let in_order = address.pattern == Pattern::Sequential
        || load.sequential_percent.is_some_and(|percent| percent > 50.0);
    in_order.then(|| address.range_bytes(capacity_bytes))
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
        let why = match self.overwritten {
            Some([share, needed]) => format!(
                "{} % of the pages that the load writes were overwritten since the preconditioning, and write amplification \
                 still rises until {} % have been overwritten",
                significant(share * 100.0, 2),
                significant(needed * 100.0, 2)
            ),
            None => format!(
                "each block was erased {} times on average since the preconditioning, and write amplification can still \
                 change",
                significant(self.turns, 2)
            ),
        };
        let message = format!("garbage collection has not settled: {why}");
        Warning::new(WarningKind::Unsettled, message).with_help(self.remedy(issued))
    }

    /// The ramp-up that `issued` requests show to be needed.
    pub(crate) fn remedy(&self, issued: u64) -> String {
        let needed = issued as f64 * self.times;
        if needed > RAMP_UP_MOST {
            return "the ramp-up that this load needs takes too long; a device with fewer blocks \
                    (`flash.blocks_per_plane`) or a shorter range of addresses settles after fewer requests"
                .to_owned();
        }
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
    use ssdyno_workload::WorkloadConfig;

    use super::*;

    fn places(address: &str, pages: u64) -> WrittenPlaces {
        let text = format!("write_percent = 100\nblock_size = \"4KiB\"\naddress = {{ {address} }}");
        let load = Source::Generator(WorkloadConfig::from_toml(&text).unwrap());
        load.written_places(pages * 4096, 4096).unwrap()
    }

    /// 1 % of the writes go to 99 % of 100 pages, and victims have 10 % of invalid pages. The hot page is the first percent; of
    /// the others 9 of 99 must be overwritten: 99 ln(99/90) writes to them, 9900 ln(1.1) in all.
    #[test]
    fn cold_pages_of_a_strong_skew_are_overwritten_late() {
        let cold = "pattern = \"hot-cold\", hot_space_percent = 1, hot_access_percent = 99";
        let late = |writes: f64| too_few_overwritten(&places(cold, 100), writes * 4096.0, 0.1);
        let by_hand = 9900.0 * 1.1f64.ln();
        let ([share, needed], times) = late(by_hand / 2.0).unwrap();
        assert!((times / 2.0 - 1.0).abs() < 2e-3, "{times}");
        // The root of 1.1 is 1.0488: 1 + 99 (1 - 1 / 1.0488) of 100 pages.
        assert!((share - 0.056_07).abs() < 1e-4 && needed == 0.1, "{share}");
        assert_eq!(late(by_hand * 1.01), None);
    }

    /// The popularity k^-1.2 of 114 426 pages, where victims have 10 % of invalid pages: by a sum over all pages, 0.91 writes
    /// for each page. With the exponent 1.5 it is 7.5, and 0.36 with 0.99.
    #[test]
    fn unpopular_pages_are_overwritten_late() {
        for (theta, invalid, writes) in
            [(1.2, 1.0 / 9.71, 0.908), (1.5, 1.0 / 10.53, 7.543), (0.99, 1.0 / 8.38, 0.355)]
        {
            let of = places(&format!("pattern = \"zipf\", theta = {theta}"), 114_426);
            let bytes = writes * 114_426.0 * 4096.0;
            let (_, times) = too_few_overwritten(&of, bytes / 3.0, invalid).unwrap();
            assert!((times / 3.0 - 1.0).abs() < 0.01, "{theta}: {times}");
            assert_eq!(too_few_overwritten(&of, bytes * 1.01, invalid), None);
        }
    }

    #[test]
    fn the_warning_says_how_much_is_to_be_overwritten() {
        let unsettled = |times| {
            let overwritten = Some([0.0213, 0.104]);
            Unsettled { turns: 3.0, times, overwritten, limit_seconds: None }
        };
        let told = unsettled(4.0).warning(200_000).line();
        assert!(
            told.contains("2.1 % of the pages that the load writes were overwritten"),
            "{told}"
        );
        assert!(told.contains("still rises until 10 % have been"), "{told}");
        assert!(told.ends_with("ramp_up=800000`"), "{told}");
        for times in [1e9, f64::INFINITY] {
            let told = unsettled(times).warning(200_000).line();
            assert!(told.contains("fewer blocks") && !told.contains("ramp_up="), "{told}");
        }
    }

    #[test]
    fn the_warning_names_a_ramp_up_of_two_digits() {
        let text = |turns, issued, limit_seconds| {
            let times = TURNS_LEAST / turns;
            Unsettled { turns, times, overwritten: None, limit_seconds }.warning(issued).line()
        };
        let told = text(0.28, 200_000, None);
        assert!(told.contains("0.28 times") && told.ends_with("ramp_up=1500000`"), "{told}");
        assert!(text(1.999, 1_000, None).contains("ramp_up=1100`"));
        // 200 000 requests took 2 s: 1 500 000 take 15 s, and the run itself 2 s.
        let told = text(0.28, 200_000, Some(2.0));
        assert!(told.contains("ramp_up=1500000`, and run for at least 17"), "{told}");
    }
}
