//! Where requests go: the range of addresses, its slots, and how one of them is chosen.

use ssdyno_engine::{Rng, Scatter};

use super::{Seeds, fail};
use crate::config::{AddressPattern, BlockSize, Pattern, WorkloadConfig};
use crate::generator::place::{Choice, Cursor, Place, threshold};
use crate::generator::zipf::Zipf;
use crate::{TargetFacts, WorkloadError};

/// The range of addresses: first byte, length, and the alignment.
struct Range {
    start: u64,
    length: u64,
    alignment: u64,
}

fn range(
    config: &WorkloadConfig,
    sizes: &[BlockSize],
    device: &TargetFacts,
) -> Result<Range, WorkloadError> {
    let sector = u64::from(device.sector_bytes);
    let smallest = sizes.iter().map(|entry| entry.size.0).min().unwrap_or(sector);
    // The default alignment is the smallest size. The largest one would leave most offsets out for
    // small requests, and the sector would make nearly all requests straddle pages of the flash.
    let alignment = config.alignment.map_or(smallest, |alignment| alignment.0);
    if alignment == 0 || !alignment.is_multiple_of(sector) {
        let problem =
            format!("{alignment} B is not a positive multiple of the target's sector, {sector} B");
        let help = format!("give a multiple of {sector} B");
        return fail("alignment", problem, &help);
    }
    let address = &config.address;
    let start = address.start.0;
    if !start.is_multiple_of(alignment) {
        let down = start - start % alignment;
        let help = format!("give \"{down}B\" or set alignment (now {alignment} B)");
        return fail("address.start", "not a multiple of the alignment", &help);
    }
    let capacity = device.capacity_bytes;
    if start >= capacity {
        let help = format!("the target has {capacity} B");
        return fail("address.start", "the range starts beyond the end of the target", &help);
    }
    let (key, length) = range_length(address, capacity)?;
    if length > capacity - start {
        let help = format!("{} B remain after address.start", capacity - start);
        return fail(key, "the range ends beyond the end of the target", &help);
    }
    // A percentage seldom yields whole sectors. The length is rounded down, because a partial
    // sector cannot be addressed.
    let length = length - length % sector;
    let largest = sizes.iter().map(|entry| entry.size.0).max().unwrap_or(sector);
    if largest > length {
        let what = format!("a block of {largest} B does not fit in the range of {length} B");
        let key = if config.block_sizes.is_empty() {
            "block_size".to_owned()
        } else {
            // The key names the entry that is too large. With up to 64 sizes, the name of the list
            // alone would not help.
            let index = sizes.iter().position(|entry| entry.size.0 == largest).unwrap_or(0);
            format!("block_sizes[{index}].size")
        };
        return fail(&key, what, "make the block smaller or the range longer");
    }
    Ok(Range { start, length, alignment })
}

fn range_length(
    address: &AddressPattern,
    capacity: u64,
) -> Result<(&'static str, u64), WorkloadError> {
    match (address.length, address.length_percent) {
        (Some(_), Some(_)) => {
            fail("address.length", "both length and length_percent are given", "keep one")
        }
        (Some(length), None) if length.0 == 0 => {
            fail("address.length", "an empty range", "give a length above 0 or leave it out")
        }
        (Some(length), None) => Ok(("address.length", length.0)),
        (None, Some(percent)) if percent > 0.0 && percent <= 100.0 => {
            // The product is computed in floating point, whose 53 bits are exact to one byte only
            // up to 8 PiB. The minimum below removes a result that rounding puts above the
            // capacity.
            let length = (capacity as f64 * (percent / 100.0)) as u64;
            Ok(("address.length_percent", length.min(capacity)))
        }
        (None, Some(percent)) => {
            let what = format!("{percent} % of the target");
            fail("address.length_percent", what, "use a percentage above 0 and up to 100")
        }
        (None, None) => Ok(("address.length", capacity - address.start.0)),
    }
}

pub(super) fn place(
    config: &WorkloadConfig,
    sizes: &[BlockSize],
    device: &TargetFacts,
    seeds: Seeds,
) -> Result<Place, WorkloadError> {
    let range = range(config, sizes, device)?;
    let Range { start, length, alignment } = range;
    // A request of `size` can start at every aligned offset from 0 to length - size, including both
    // ends. Without the + 1 the last slot of the range would never be used.
    let slots_of = |size: u64| (length - size) / alignment + 1;
    // Each size has its own number of slots. With the slots of the largest size, small requests
    // would never reach the end of the range; with those of the smallest, large ones would cross
    // it.
    let slots: Vec<u64> = sizes.iter().map(|entry| slots_of(entry.size.0)).collect();
    let largest = sizes.iter().map(|entry| entry.size.0).max().unwrap_or(alignment);
    let sequential = sequential_share(config)?;
    // Ranks must mean the same block for every size: those where the largest fits.
    let choice = choice(config, slots_of(largest), seeds)?;
    let threads = u64::from(config.threads.unwrap_or(1));
    let cursors = if config.address.pattern == Pattern::Sequential {
        // Sequential threads get private parts, as the threads of Diskhog (S1-55). With a common
        // cursor the stream would be one sequence, whatever the number of threads.
        let part = length / threads / alignment * alignment;
        if part < largest {
            let what = format!("each of {threads} threads would have {part} B");
            let help = "fewer threads, smaller blocks or a longer range are needed";
            return fail("threads", what, help);
        }
        let firsts = (0..threads).map(|thread| start + thread * part);
        // The last thread also takes what the division leaves.
        let ends = (1..threads).map(|thread| start + thread * part).chain([start + length]);
        firsts.zip(ends).map(|(first, end)| Cursor { first, end, at: first }).collect()
    } else {
        let whole = Cursor { first: start, end: start + length, at: start };
        vec![whole; threads as usize]
    };
    let round_up = sizes.iter().any(|entry| !entry.size.0.is_multiple_of(alignment));
    Ok(Place {
        start,
        alignment,
        slots,
        choice,
        sequential: threshold(sequential),
        cursors,
        turn: 0,
        round_up,
    })
}

/// 0 to 1.
fn sequential_share(config: &WorkloadConfig) -> Result<f64, WorkloadError> {
    let key = "sequential_percent";
    match (config.sequential_percent, config.address.pattern) {
        (Some(percent), _) if !(0.0..=100.0).contains(&percent) => {
            fail(key, format!("{percent} %"), "give 0 to 100")
        }
        (Some(percent), Pattern::Sequential) if percent < 100.0 => fail(
            key,
            format!("{percent} % of the pattern \"sequential\""),
            "set address.pattern = \"random\" for the requests that are not sequential",
        ),
        (Some(percent), Pattern::RandomOnce) if percent > 0.0 => fail(
            key,
            format!("{percent} % of the pattern \"random-once\""),
            "leave it out, or set address.pattern = \"random\"",
        ),
        (Some(percent), _) => Ok(percent / 100.0),
        (None, Pattern::Sequential) => Ok(1.0),
        (None, _) => Ok(0.0),
    }
}

fn choice(config: &WorkloadConfig, slots: u64, seeds: Seeds) -> Result<Choice, WorkloadError> {
    let address = &config.address;
    // Of every pattern: a key that is not used yet is used when the pattern is changed.
    let numbers = [
        ("address.theta", address.theta),
        ("address.hot_space_percent", address.hot_space_percent),
        ("address.hot_access_percent", address.hot_access_percent),
    ];
    if let Some((key, number)) = numbers.into_iter().find(|(_, number)| !number.is_finite()) {
        return fail(
            key,
            format!("{number} is not a finite number"),
            "give a number, or leave it out",
        );
    }
    let scatter = || {
        let mut rng = Rng::new(seeds.places, "workload scatter");
        address.scatter.then(|| Scatter::new(slots, &mut rng))
    };
    Ok(match address.pattern {
        Pattern::Sequential => Choice::Never,
        Pattern::Random => Choice::Uniform,
        Pattern::RandomOnce => {
            if config.block_sizes.len() > 1 {
                let what = "the pattern \"random-once\" with several block sizes";
                let help = "keep one size, or set address.pattern = \"random\"";
                return fail("block_sizes", what, help);
            }
            // S2-7: the random test visits every record once. A permutation without a table needs
            // constant memory, while a list of visited slots would take 2 GiB for 1 TiB of 4 KiB
            // records.
            let order = Scatter::new(slots, &mut Rng::new(seeds.requests, "workload order"));
            Choice::Once { slots, next: 0, order }
        }
        Pattern::Zipf => {
            let theta = address.theta;
            if !(theta > 0.0 && theta <= 10.0) {
                let help = "use a number greater than 0 and at most 10; for equal weights use \
                            pattern = \"random\"";
                return fail("address.theta", format!("an exponent of {theta}"), help);
            }
            Choice::Zipf { zipf: Zipf::new(slots, theta), scatter: scatter() }
        }
        Pattern::HotCold => {
            let (space, access) = (address.hot_space_percent, address.hot_access_percent);
            if !(space > 0.0 && space < 100.0) {
                let what = format!("{space} % of the range");
                return fail(
                    "address.hot_space_percent",
                    what,
                    "use a percentage above 0 and below 100",
                );
            }
            if !(0.0..=100.0).contains(&access) {
                let what = format!("{access} % of the requests");
                return fail("address.hot_access_percent", what, "give 0 to 100");
            }
            if slots < 2 {
                let what = "the range has no room for a hot and a cold part";
                return fail("address.pattern", what, "make the range longer");
            }
            let hot = (slots as f64 * (space / 100.0)).round() as u64;
            // Rounding could leave one of both parts without a slot in a short range. The draw from
            // an empty part would then ask for a random number below 0.
            let hot = hot.clamp(1, slots - 1);
            Choice::HotCold { hot, slots, threshold: threshold(access / 100.0), scatter: scatter() }
        }
    })
}
