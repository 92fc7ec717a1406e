//! From configuration to generator: every check, each with its key.

mod address;

use ssdyno_block::Time;

use super::{
    ArrivalKind, Arrivals, BlockSize, DiskSimSynthetic, WorkloadConfig, WorkloadKind, WritesApart,
};
use crate::depth::{Before, searching};
use crate::generator::arrivals::{Gap, Pacing};
use crate::generator::disksim::DiskSim;
use crate::generator::place::{ONE, threshold};
use crate::generator::{Apart, Generator, Limits, Mix, Mixed, WritePlaces};
use crate::{LatencyTarget, TargetFacts, Workload, WorkloadError};

/// Longest mean gap: with more, a run of a few requests leaves the range of [`Time`].
const GAP_MAX: Time = Time::from_s(86_400);
/// Longest request; keeps lengths in 32 bits with room to spare.
pub(crate) const SIZE_MAX: u64 = 1 << 31;
const THREADS_MAX: u32 = 65_536;
/// S4-8 asks for 8; JESD219 has 12 and fio takes 64.
const SIZES_MAX: usize = 64;

fn fail<T>(key: &str, what: impl Into<String>, help: &str) -> Result<T, WorkloadError> {
    Err(WorkloadError::of_key(key, what, help))
}

impl WorkloadConfig {
    /// Checks the configuration against `device` and makes the workload. `seed` and the
    /// configuration decide every request.
    ///
    /// # Errors
    /// The first key that is wrong.
    pub fn build(
        &self,
        device: &TargetFacts,
        seed: u64,
    ) -> Result<Box<dyn Workload + Send>, WorkloadError> {
        build(self, device, Seeds { requests: seed, places: seed })
    }

    /// Makes the part of a load that one of several jobs has: `seed` decides its requests, and `seed_of_load` the popular places,
    /// which are those of all jobs. With popular places of their own, jobs would read a load that is less skewed.
    ///
    /// # Errors
    /// The first key that is wrong.
    pub fn build_share(
        &self,
        device: &TargetFacts,
        seed: u64,
        seed_of_load: u64,
    ) -> Result<Box<dyn Workload + Send>, WorkloadError> {
        build(self, device, Seeds { requests: seed, places: seed_of_load })
    }
}

/// What decides the random numbers of a workload.
#[derive(Clone, Copy)]
struct Seeds {
    requests: u64,
    /// Of the popular places.
    places: u64,
}

fn build(
    config: &WorkloadConfig,
    device: &TargetFacts,
    seeds: Seeds,
) -> Result<Box<dyn Workload + Send>, WorkloadError> {
    // The device comes first: all later checks divide by its sector size and subtract from its
    // capacity, so an impossible device would cause a panic there.
    check_device(device)?;
    config.buffer.check()?;
    let limits = limits(config)?;
    if config.kind == WorkloadKind::DiskSimSynthetic {
        return Ok(Box::new(disksim(config, device, limits, seeds.requests)?));
    }
    if config.disksim.is_some() {
        return fail("disksim", "it has no effect with kind = \"mix\"", DISKSIM_HELP);
    }
    let sizes = config.sizes();
    check_sizes(config, &sizes, device)?;
    // The threads are checked here, before the addresses: `address::place` divides the range by
    // their number.
    let (pacing, limits) = pacing(config, limits)?;
    let mix = mix(config, &sizes)?;
    let place = address::place(config, &sizes, device, seeds)?;
    // A latency target wraps the generator from outside. It only lowers the depth and never changes
    // a request, so a run with the found depth sends the same requests.
    let target = latency_target(config)?;
    let others = Mixed { mix, place };
    let generator: Box<dyn Workload + Send> = match &config.writes {
        None => Box::new(Generator::new(limits, pacing, others, seeds.requests)),
        Some(writes) => {
            let writes = writes_apart(config, writes, device, seeds)?;
            Box::new(Generator::new(limits, pacing, Apart { others, writes }, seeds.requests))
        }
    };
    Ok(match target {
        None => generator,
        Some(target) => {
            // With all recorded the ramp-up is the recorder's.
            let completions = if config.searches() { config.ramp_up } else { 0 };
            let before = Before { time: Time::ZERO, completions };
            searching(generator, target, limits.depth, before, None)
        }
    })
}

/// The places of writes that are not those of the other requests.
fn writes_apart(
    config: &WorkloadConfig,
    writes: &WritesApart,
    device: &TargetFacts,
    seeds: Seeds,
) -> Result<WritePlaces, WorkloadError> {
    // Writes apart pass the same checks as a workload of their own. A second set of checks would
    // differ from the first one sooner or later.
    let alone = config.writes_alone(writes);
    let of_table = |error: WorkloadError| {
        // The table has no number of threads.
        let key = error.key.map(|key| if key == "threads" { key } else { format!("writes.{key}") });
        WorkloadError { key, ..error }
    };
    check_sizes(&alone, &alone.sizes(), device).map_err(of_table)?;
    let place = address::place(&alone, &alone.sizes(), device, seeds).map_err(of_table)?;
    Ok(WritePlaces { length_bytes: writes.block_size.0 as u32, place })
}

/// The latencies that the depth is to meet.
fn latency_target(config: &WorkloadConfig) -> Result<Option<LatencyTarget>, WorkloadError> {
    let Some(latency) = config.latency_target else {
        let given = [
            ("latency_window", config.latency_window.is_some()),
            ("latency_percentile", config.latency_percentile.is_some()),
            ("latency_run", config.latency_run.is_some()),
        ];
        return match given.into_iter().find(|(_, is_given)| *is_given) {
            None => Ok(None),
            Some((key, _)) => {
                let help = "add latency_target = \"500us\", or remove it";
                fail(key, "it has no effect without latency_target", help)
            }
        };
    };
    if config.arrivals.is_some() {
        let what = "an open loop has no depth to adjust: requests arrive at their own rate";
        return fail("latency_target", what, "remove the table `arrivals`, or this key");
    }
    // There is no default window. A useful one depends on the device: 1 s holds about 100 requests
    // of a disk at depth 1 and 100,000 of an SSD.
    let Some(window) = config.latency_window else {
        let what = "the duration of a try is missing (latency_window)";
        return fail("latency_target", what, "add latency_window = \"1s\"");
    };
    let target = LatencyTarget {
        latency: latency.0,
        window: window.0,
        percentile: config.latency_percentile.unwrap_or(100.0),
        keeps_adapting: config.latency_run.unwrap_or(false),
    };
    match target.fault() {
        None => Ok(Some(target)),
        Some((key, what, help)) => fail(&format!("latency_{key}"), what, help),
    }
}

const DISKSIM_HELP: &str = "set kind = \"disksim-synthetic\" or remove the table";

/// Both generators and traces stand on these.
pub(crate) fn check_device(device: &TargetFacts) -> Result<(), WorkloadError> {
    let sector = device.sector_bytes;
    let sane = sector >= 512 && sector.is_power_of_two() && u64::from(sector) < SIZE_MAX;
    if sane && device.capacity_bytes >= u64::from(sector) {
        return Ok(());
    }
    Err(WorkloadError {
        key: None,
        what: format!(
            "a target of {} B with sectors of {sector} B cannot be used",
            device.capacity_bytes
        ),
        help: Some("the sector size must be a power of two of at least 512 B, and the target must have at least one sector".to_owned()),
        at: None,
    })
}

fn limits(config: &WorkloadConfig) -> Result<Limits, WorkloadError> {
    if config.requests == Some(0) {
        return fail("requests", "0 requests", "give 1 or more, or leave it out");
    }
    if config.duration.is_some_and(|duration| duration.0 == Time::ZERO) {
        return fail("duration", "a duration of 0", "give a time above 0, or leave it out");
    }
    Ok(Limits {
        // The ramp-up is part of the total, because S4-10 counts completions before the recording
        // begins. The user still gets all the requests that he asked for.
        left: config.total_requests().unwrap_or(u64::MAX),
        end: config.duration.map_or(Time::MAX, |duration| duration.0),
        depth: u64::MAX,
    })
}

fn pacing(config: &WorkloadConfig, mut limits: Limits) -> Result<(Pacing, Limits), WorkloadError> {
    let threads = config.threads.unwrap_or(1);
    if !(1..=THREADS_MAX).contains(&threads) {
        return fail("threads", format!("{threads} threads"), "give 1 to 65536");
    }
    if config.depth == Some(0) {
        return fail("depth", "depth must be at least 1", "give 1 or more");
    }
    let depth = config.depth.map(|depth| u64::from(depth) * u64::from(threads));
    let pacing = match &config.arrivals {
        None => Pacing::Closed,
        Some(arrivals) => arrival_process(arrivals)?,
    };
    // A closed loop without a depth has one request per thread, as the synchronous threads of S0-5.
    // An open loop has no bound: a bound would turn an overload into a closed loop.
    limits.depth = match pacing {
        Pacing::Closed => depth.unwrap_or(u64::from(threads)),
        _ => depth.unwrap_or(u64::MAX),
    };
    Ok((pacing, limits))
}

pub(crate) fn arrival_process(arrivals: &Arrivals) -> Result<Pacing, WorkloadError> {
    if arrivals.kind == ArrivalKind::Bursts {
        return bursts(arrivals);
    }
    if arrivals.length.is_some() || arrivals.interval.is_some() {
        let key = if arrivals.length.is_some() { "arrivals.length" } else { "arrivals.interval" };
        return fail(key, "only bursts have it", "set kind = \"bursts\" or remove it");
    }
    let gap = mean_gap(arrivals)?;
    Ok(match arrivals.kind {
        ArrivalKind::Poisson => Pacing::Poisson { mean_ps: gap.as_ps() as f64 },
        ArrivalKind::Uniform => Pacing::Uniform { most: gap * 2 },
        // A rate keeps its fraction of a picosecond (`Gap::of_rate`). The rounded mean gap of 3e6
        // per second would be wrong by 1 ppm, which is one request in a million.
        ArrivalKind::Fixed | ArrivalKind::Bursts => {
            Pacing::Fixed(arrivals.rate.and_then(Gap::of_rate).unwrap_or(Gap::whole(gap)))
        }
    })
}

fn mean_gap(arrivals: &Arrivals) -> Result<Time, WorkloadError> {
    let (key, gap) = match (arrivals.rate, arrivals.mean_gap) {
        (Some(_), Some(_)) => {
            return fail("arrivals.mean_gap", "both rate and mean_gap are given", "keep one");
        }
        (None, None) => {
            return fail(
                "arrivals",
                "the arrival rate is missing",
                "add rate = 2000 (per second) or mean_gap = \"500us\"",
            );
        }
        (Some(rate), None) if rate.is_finite() && rate > 0.0 => {
            ("arrivals.rate", Time::from_s_f64(1.0 / rate))
        }
        (Some(rate), None) => {
            return fail(
                "arrivals.rate",
                format!("{rate} arrivals per second"),
                "give a number above 0",
            );
        }
        (None, Some(gap)) => ("arrivals.mean_gap", gap.0),
    };
    if gap == Time::ZERO || gap > GAP_MAX {
        return fail(key, format!("a mean gap of {gap}"), "stay between 1 ps and a day");
    }
    Ok(gap)
}

fn bursts(arrivals: &Arrivals) -> Result<Pacing, WorkloadError> {
    if arrivals.rate.is_some() || arrivals.mean_gap.is_some() {
        let key = if arrivals.rate.is_some() { "arrivals.rate" } else { "arrivals.mean_gap" };
        return fail(key, "bursts have no rate", "give length and interval instead");
    }
    let Some(interval) = arrivals.interval.map(|interval| interval.0) else {
        return fail("arrivals", "interval is missing", "add interval = \"10ms\"");
    };
    let Some(length) = arrivals.length else {
        return fail("arrivals", "length is missing", "add length = 32 (requests per burst)");
    };
    if length == 0 {
        return fail("arrivals.length", "a burst of no requests", "give 1 or more");
    }
    // The upper bound keeps sums of intervals in 64 bits of picoseconds, which are 213 days. The
    // same bound holds for the gaps of the other processes.
    if interval > GAP_MAX {
        return fail("arrivals.interval", format!("{interval}"), "stay within a day");
    }
    // S4-11: an interval of 0 is continuous load.
    if interval == Time::ZERO {
        return Ok(Pacing::Closed);
    }
    Ok(Pacing::Bursts { length, interval, left: length })
}

fn check_sizes(
    config: &WorkloadConfig,
    sizes: &[BlockSize],
    device: &TargetFacts,
) -> Result<(), WorkloadError> {
    let several = !config.block_sizes.is_empty();
    if several && config.block_size.is_some() {
        return fail("block_size", "both block_size and block_sizes are given", "keep one");
    }
    if sizes.len() > SIZES_MAX {
        let what = format!("{} block sizes", sizes.len());
        return fail("block_sizes", what, "give at most 64; a paper uses at most 8 (S4-8)");
    }
    for (index, entry) in sizes.iter().enumerate() {
        let key = if several { format!("block_sizes[{index}].size") } else { "block_size".into() };
        check_size(&key, entry.size.0, device)?;
        if !(entry.weight.is_finite() && entry.weight >= 0.0) {
            let key = format!("block_sizes[{index}].weight");
            return fail(&key, format!("a weight of {}", entry.weight), "give 0 or more");
        }
    }
    // Weights are only compared with their sum, so the shares of S4-8 can be given in percent, as
    // fractions or as counts. A sum of 0 would divide by zero.
    let sum: f64 = sizes.iter().map(|entry| entry.weight).sum();
    if !(sum.is_finite() && sum > 0.0) {
        return fail(
            "block_sizes",
            "the weights sum to 0",
            "give at least one size a weight above 0",
        );
    }
    Ok(())
}

fn check_size(key: &str, size: u64, device: &TargetFacts) -> Result<(), WorkloadError> {
    let sector = u64::from(device.sector_bytes);
    if size == 0 || !size.is_multiple_of(sector) {
        let problem =
            format!("{size} B is not a positive multiple of the target's sector, {sector} B");
        let help = format!("give a multiple of {sector} B; kB are 1000 bytes, KiB and k are 1024");
        return fail(key, problem, &help);
    }
    if size > SIZE_MAX {
        return fail(key, format!("{size} B in one request"), "give 2GiB at most");
    }
    Ok(())
}

fn mix(config: &WorkloadConfig, sizes: &[BlockSize]) -> Result<Mix, WorkloadError> {
    let given = [config.read_percent, config.write_percent, config.trim_percent];
    let keys = ["read_percent", "write_percent", "trim_percent"];
    for (key, value) in keys.into_iter().zip(given) {
        if value.is_some_and(|value| !(value.is_finite() && value >= 0.0)) {
            let what = format!("a weight of {}", value.unwrap_or_default());
            return fail(key, what, "give 0 or more");
        }
    }
    let sum: f64 = given.into_iter().flatten().sum();
    // If both shares are given they are weights and may have any sum. If one is missing, the given
    // one must be a percentage, because the other one is derived from it.
    if config.read_percent.is_none() != config.write_percent.is_none() && sum > 100.0 {
        // The one that is absent gets what the others leave of 100.
        let (key, absent) = match config.read_percent {
            Some(_) => (keys[0], keys[1]),
            None => (keys[1], keys[0]),
        };
        let over = keys.into_iter().zip(given).find(|(_, value)| value.is_some_and(|v| v > 100.0));
        let what = match over {
            Some((over, _)) => format!("{over} is more than 100"),
            None => format!("the given shares sum to {sum}, which leaves nothing for {absent}"),
        };
        return fail(
            over.map_or(key, |(over, _)| over),
            what,
            &format!("give shares that sum to at most 100, or give {absent} too"),
        );
    }
    let is_one_given = config.read_percent.is_none() != config.write_percent.is_none();
    if is_one_given
        && sum == 100.0
        && config.trim_percent.is_some_and(|trim| trim > 0.0 && trim < 100.0)
    {
        // `trim_percent=30` on a load of 70 % reads would silently take all of its writes away.
        let absent = if config.read_percent.is_none() { keys[0] } else { keys[1] };
        let what = format!("the given shares sum to 100, which leaves nothing for {absent}");
        return fail(keys[2], what, &format!("give {absent} too, also if it is 0"));
    }
    let [read, write, trim] = config.op_weights();
    let sum = read + write + trim;
    if !(sum.is_finite() && sum > 0.0) {
        let key = keys.into_iter().zip(given).find(|(_, value)| value.is_some());
        let key = key.map_or(keys[0], |(key, _)| key);
        return fail(key, "no operation is left", "give reads, writes or trims a share above 0");
    }
    let total: f64 = sizes.iter().map(|entry| entry.weight).sum();
    let mut upto = 0.0;
    let mut cumulative: Vec<(u32, u64)> = Vec::with_capacity(sizes.len());
    for entry in sizes {
        upto += entry.weight;
        // The thresholds are cumulative, so one random number selects a size. A draw per size would
        // change the number of draws with the order of the list.
        cumulative.push((entry.size.0 as u32, threshold(upto / total)));
    }
    let write = if write + trim > 0.0 { write / (write + trim) } else { 0.0 };
    Ok(Mix { read: threshold(read / sum), write: threshold(write), sizes: cumulative })
}

fn disksim(
    config: &WorkloadConfig,
    device: &TargetFacts,
    limits: Limits,
    seed: u64,
) -> Result<DiskSim, WorkloadError> {
    if let Some(key) = foreign_key(config) {
        let help = "remove it; the table `disksim` has the parameters of this kind";
        return fail(&key, "it has no effect with kind = \"disksim-synthetic\"", help);
    }
    let parameters = config.disksim.clone().unwrap_or_default();
    check_disksim(&parameters, device)?;
    Ok(DiskSim::new(&parameters, limits, seed))
}

/// A key that only a mix heeds and that is not at its default.
fn foreign_key(config: &WorkloadConfig) -> Option<String> {
    // The comparison works on the serialised form. A list of fields in this function would miss
    // every key that is added later.
    let mut rest = config.clone();
    rest.kind = WorkloadKind::Mix;
    rest.requests = None;
    rest.duration = None;
    rest.ramp_up = 0;
    rest.disksim = None;
    let given = toml::Table::try_from(&rest).ok()?;
    let default = toml::Table::try_from(WorkloadConfig::default()).ok()?;
    given.into_iter().find(|(key, value)| default.get(key) != Some(value)).map(|(key, _)| key)
}

fn check_disksim(p: &DiskSimSynthetic, device: &TargetFacts) -> Result<(), WorkloadError> {
    check_size("disksim.block", p.block.0, device)?;
    if p.gap_max.0 == Time::ZERO || p.gap_max.0 > GAP_MAX {
        let what = format!("gaps up to {}", p.gap_max.0);
        return fail("disksim.gap_max", what, "stay between 1 ps and a day");
    }
    // Sizes reach 37 times the mean; they must stay in 32 bits.
    if !(512..=(64 << 20)).contains(&p.mean_size.0) {
        return fail("disksim.mean_size", format!("{}", p.mean_size), "give 512B to 64MiB");
    }
    for (key, share) in [
        ("disksim.sequential_probability", p.sequential_probability),
        ("disksim.read_probability", p.read_probability),
    ] {
        if !(0.0..=1.0).contains(&share) {
            return fail(key, format!("a probability of {share}"), "give 0 to 1");
        }
    }
    // Places and sizes are drawn until they fit: with less room that takes forever.
    let least = 8 * (p.block.0 + p.mean_size.0);
    if p.space.0 < least {
        let help = format!("give at least \"{least}B\": eight blocks and mean sizes");
        return fail("disksim.space", format!("{} B", p.space.0), &help);
    }
    if p.space.0 > device.capacity_bytes {
        let help = format!("the target has {} B", device.capacity_bytes);
        return fail("disksim.space", "the space ends beyond the end of the target", &help);
    }
    Ok(())
}

// A probability of 1 is the whole scale: `happens` relies on it.
const _: () = assert!(ONE == 1 << 53);
