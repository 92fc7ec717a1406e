//! The devices, simulated once each, and what measuring them takes and gives.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use ssdyno_block::Time;
use ssdyno_block::units::Bytes;
use ssdyno_device::faults::FaultConfig;
use ssdyno_figures::{KeepGoing, RunProgress};
use ssdyno_profile::{
    Measurement, Measurements, Method, ProfileOp, ProfilePlan, ProfileResult, ProfileTest,
    REPETITIONS_MAX, REPETITIONS_MIN, Serra, Sizes, Strategy, default_sizes, estimate_of,
};
use ssdyno_session::{
    Failure, FileContents, Observer, RunSpec, Stage, StopFlag, Unattended, side_by_side,
};
use toml::Table;

use super::data::{Device, Plan};
use super::ours::OurProfile;
use crate::cache::RunId;
use crate::error::{defect, refused};
use crate::{PapersOptions, PapersProgress, RunCache, presets};

/// A test with one request size.
pub(super) type TestKey = (ProfileTest, u64);

/// Access times in nanoseconds by test and size.
pub(super) type Times = BTreeMap<TestKey, f64>;

/// One span of one device.
#[derive(PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct SpanTimes {
    /// Without slowness: seconds of every test, and its requests; each in several executions, whose tests are in other
    /// orders and whose random requests go to other places.
    #[serde(with = "as_list")]
    own: BTreeMap<TestKey, Vec<(f64, u64)>>,
    /// Our profiles, one a seed; empty where nobody asks for them.
    pub(super) ours: Vec<OurProfile>,
}

/// JSON has texts as keys only.
mod as_list {
    use serde::{Deserialize, Deserializer, Serializer};

    use super::{BTreeMap, TestKey};

    type Own = BTreeMap<TestKey, Vec<(f64, u64)>>;

    pub(super) fn serialize<S: Serializer>(own: &Own, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(own)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Own, D::Error> {
        Vec::<(TestKey, Vec<(f64, u64)>)>::deserialize(from).map(|list| list.into_iter().collect())
    }
}

impl SpanTimes {
    /// Access times without slowness: the mean of all executions. A random test of 100 requests is 3 % off by itself.
    pub(super) fn steady(&self) -> Times {
        let time = |(seconds, requests): &(f64, u64)| seconds * 1e9 / *requests as f64;
        let mean = |own: &Vec<_>| own.iter().map(time).sum::<f64>() / own.len() as f64;
        self.own.iter().map(|(key, own)| (*key, mean(own))).collect()
    }

    /// Seconds and requests of a test in execution `number`; there are only so many, which come round again.
    fn execution(&self, key: &TestKey, number: usize) -> Option<(f64, u64)> {
        let own = self.own.get(key)?;
        own.get(number % own.len().max(1)).copied()
    }
}

/// Executions of every test without slowness. Whatever a profile draws, a truth of one execution would be one of its
/// draws, too.
const EXECUTIONS: u64 = 3;

/// A device as it was simulated, and its slowness.
#[derive(Debug)]
pub(super) struct Profiled {
    pub(super) device: Device,
    slowness: FaultConfig,
    pub(super) spans: Vec<SpanTimes>,
}

/// What the complete profile of a device gave (S2-10).
#[derive(Debug)]
pub(super) struct FullProfile {
    /// Means, one a span.
    pub(super) means: Vec<Times>,
    /// One execution of all tests, and all executions, in seconds.
    pub(super) one_seconds: f64,
    pub(super) total_seconds: f64,
    /// Mean repetitions of a test.
    pub(super) repetitions: f64,
}

/// Simulates every device with every span of the plan, and `ours` our profiles of them; `None` where it was stopped.
pub(super) fn simulate(
    plan: &Plan,
    ours: bool,
    options: &PapersOptions,
    progress: &mut dyn FnMut(&PapersProgress) -> KeepGoing,
) -> Result<Option<Vec<Profiled>>, Failure> {
    // A glance has the smallest file alone.
    let glance = options.requests.is_some();
    let spans = if glance { &plan.spans_mib[..1] } else { &plan.spans_mib };
    // Our own profiles are simulated one by one, each with its slowness. They are left out if no
    // selected cell shows them.
    let seeds = match (ours, glance) {
        (false, _) => 0,
        (true, true) => 1,
        (true, false) => plan.seeds,
    };
    let jobs: Vec<(&Device, u64)> =
        plan.devices.iter().flat_map(|d| spans.iter().map(move |span| (d, span << 20))).collect();
    let of: u64 = jobs.len() as u64;
    // A piece is the unit of the cache: one profile of one seed. An interrupted campaign then loses
    // one piece and not all seeds of a device.
    let pieces = jobs.iter().flat_map(|(device, span)| {
        (0..=seeds).map(move |piece| Piece { device, span: *span, seed: options.seed, piece })
    });
    // All of them at first, so that their number is known; each is looked for when its turn comes.
    for piece in pieces {
        options.cache.plan(&piece.id()?);
    }
    options.cache.start();
    let ran = side_by_side(
        &jobs,
        options.threads,
        |(device, span), stop| {
            let piece = |piece| Piece { device, span: *span, seed: options.seed, piece };
            let steady = || one(device, *span, options.seed, stop);
            let Some(mut times) = piece(0).kept_or(&options.cache, steady)? else {
                return Ok(None);
            };
            for seed in 1..=seeds {
                let ours = || OurProfile::run(device, *span, (options.seed, seed), stop);
                match piece(seed).kept_or(&options.cache, ours)? {
                    Some(profile) => times.ours.push(profile),
                    None => return Ok(None),
                }
            }
            Ok(Some(times))
        },
        &mut |done| progress(&PapersProgress::part(done as u64, of, Vec::new())),
    )?;
    let mut ran = ran.into_iter();
    let mut all = Vec::new();
    for device in &plan.devices {
        let slowness = slowness(device)?;
        let mut of_device = Vec::new();
        for _ in spans {
            match ran.next().flatten().flatten() {
                Some(span) => of_device.push(span),
                None => return Ok(None),
            }
        }
        all.push(Profiled { device: device.clone(), slowness, spans: of_device });
    }
    Ok(Some(all))
}

/// What decides the executions without slowness (piece 0) or a profile of ours (its seed), beside the program, which
/// has the presets in it.
#[derive(Serialize)]
struct Piece<'a> {
    device: &'a Device,
    span: u64,
    seed: u64,
    piece: u64,
}

impl Piece<'_> {
    fn id(&self) -> Result<RunId, Failure> {
        RunId::new("profile", self).map_err(|error| defect("papers", error))
    }

    /// What is kept of it, or what `make` gives, which is kept then; `None` where it was stopped.
    fn kept_or<T>(
        &self,
        cache: &RunCache,
        make: impl FnOnce() -> Result<Option<T>, Failure>,
    ) -> Result<Option<T>, Failure>
    where
        T: Serialize + DeserializeOwned + PartialEq,
    {
        let id = self.id()?;
        if let Some(kept) = cache.find(&id) {
            return Ok(Some(kept));
        }
        let made = make()?;
        if let Some(made) = &made {
            let name = format!("{} {} MiB {}", self.device.name, self.span >> 20, self.piece);
            cache.keep(&id, &name, made);
        }
        Ok(made)
    }
}

/// The `[faults]` of the device's preset.
fn slowness(device: &Device) -> Result<FaultConfig, Failure> {
    let preset = presets::device(&device.preset)?;
    let table: Table = preset.read(toml::from_str)?;
    let faults = table.get("faults").cloned().unwrap_or_else(|| Table::new().into());
    faults.try_into().map_err(|error: toml::de::Error| defect(&preset.file, error))
}

/// Every size and test, without slowness, [`EXECUTIONS`] times on the device of `device_seed`; `None` where it was stopped.
fn one(
    device: &Device,
    span: u64,
    device_seed: u64,
    stop: &StopFlag,
) -> Result<Option<SpanTimes>, Failure> {
    // Faults are removed from the preset for these executions. Slowness is applied afterwards by
    // `elapsed`, so one simulation serves all seeds of the slowness.
    let preset = presets::device(&device.preset)?;
    let text = preset.changed(&["faults".to_owned()], &BTreeMap::new())?;
    // More points than any interval has sizes: all of them, each once.
    let method = Method::Serra { points: u32::MAX, repeat: 1 };
    let table: Table = toml::from_str(&text).map_err(|error| defect(&preset.file, error))?;
    let mut own: BTreeMap<TestKey, Vec<(f64, u64)>> = BTreeMap::new();
    // The device keeps its seed, and only the order of the tests and the random places differ.
    // Three executions cost three simulations but average the 3 % of one random test.
    for execution in 1..=EXECUTIONS {
        let seeds = (device_seed, device_seed.wrapping_add(1000 * execution));
        let Some(result) = profile(device, table.clone(), method, None, span, seeds, stop)? else {
            return Ok(None);
        };
        for m in &result.measurements {
            own.entry((m.test, m.size_bytes)).or_default().push((m.seconds, m.requests));
        }
    }
    Ok(Some(SpanTimes { own, ours: Vec::new() }))
}

/// A profile of reads and writes of the first `span` bytes of `device`, which is built from `table`; `None` where it was
/// stopped. The device has its own seed, and the profile another: a device of another seed is another one, whose spindles
/// stand at other angles, and its truth is 4 to 7 % away where it has several.
pub(super) fn profile(
    device: &Device,
    table: Table,
    method: Method,
    time: Option<Time>,
    span: u64,
    (device_seed, seed): (u64, u64),
    stop: &StopFlag,
) -> Result<Option<ProfileResult>, Failure> {
    let plan = ProfilePlan {
        span: Some(Bytes(span)),
        time,
        seed,
        ..ProfilePlan::new(format!("sim:{}", device.preset), method)
    };
    let contents = FileContents { device: Some(table), ..FileContents::default() };
    let spec = RunSpec { contents, ..RunSpec::default() };
    let wrong = |error: Failure| refused(&device.name, error);
    // The target is opened with the seed of the device and the plan runs with its own. One seed for
    // both would measure another drive in every repetition.
    let built = ProfilePlan { seed: device_seed, ..plan.clone() };
    let mut target = built.open(&spec, &mut Unattended).map_err(wrong)?;
    let ran = plan.execute(&mut target, &mut Watch(stop));
    // The flag is looked at before the result: a profile that was stopped returns what it has, and
    // half a profile must not be stored as a piece.
    if stop.flow() == KeepGoing::Stop {
        return Ok(None);
    }
    let (result, failure) = ran.map_err(wrong)?;
    failure.map_or(Ok(Some(result)), |error| Err(wrong(error)))
}

/// Stops a profile where the whole is stopped.
struct Watch<'a>(&'a StopFlag);

impl<R> Observer<R> for Watch<'_> {
    fn under_way(&mut self, _: &Stage, _: &RunProgress) -> KeepGoing {
        self.0.flow()
    }
}

impl Profiled {
    /// How long what takes `own` seconds takes from `at` on, with the slowness of `seed`.
    fn elapsed(&self, seed: u64, at: f64, own: f64) -> f64 {
        let Some(period) = self.slowness.slow_for.map(|span| span.0.as_s_f64()) else { return own };
        let (mut now, mut left) = (at, own);
        // Counted, not worked out from the time: a quotient that is rounded down would stay in its period.
        let mut number = (now / period).floor();
        loop {
            // The middle of a period is looked up. Its borders belong to two periods, and rounding
            // would decide which factor applies.
            let middle = Time::from_s_f64((number + 0.5) * period);
            let factor = self.slowness.slowness(seed, middle);
            let end = (number + 1.0) * period;
            if now + left * factor <= end {
                return now + left * factor - at;
            }
            // Work in a period is its length divided by the slowness. The remaining work continues
            // in the next period, so a long test averages over many factors, as on a real device.
            left = (left - (end - now).max(0.0) / factor).max(0.0);
            now = end;
            number += 1.0;
        }
    }

    /// The complete profile: passes over all tests, each until its mean is known well enough.
    pub(super) fn full(&self, plan: &Plan, seed: u64) -> FullProfile {
        // The full profile interleaves all spans and tests in each pass, as the paper's runs do.
        // One test repeated in a row would lie within one period of slowness and appear too exact.
        let keys: Vec<(usize, TestKey)> = self
            .spans
            .iter()
            .enumerate()
            .flat_map(|(index, span)| span.own.keys().map(move |key| (index, *key)))
            .collect();
        let mut seen: BTreeMap<(usize, TestKey), Vec<f64>> = BTreeMap::new();
        let mut open = keys.clone();
        let (mut now, mut one_seconds, mut passes) = (0.0, 0.0, 0);
        while !open.is_empty() && passes < REPETITIONS_MAX {
            for (index, key) in &open {
                let execution = self.spans[*index].execution(key, passes);
                let Some((own, requests)) = execution else { continue };
                let took = self.elapsed(seed, now, own);
                now += took;
                seen.entry((*index, *key)).or_default().push(took * 1e9 / requests as f64);
            }
            passes += 1;
            if passes == 1 {
                one_seconds = now;
            }
            open.retain(|key| {
                let times = &seen[key];
                let estimate = estimate_of(times).and_then(|e| Some(e.half_width? / e.mean));
                // S2-10: at least 6 runs and at most 10 % error at 90 % confidence. The minimum
                // prevents that two runs which agree by chance end a test.
                times.len() < REPETITIONS_MIN || estimate.is_none_or(|r| r > plan.error)
            });
        }
        let repetitions = seen.values().map(Vec::len).sum::<usize>() as f64 / seen.len() as f64;
        let mut means = vec![Times::new(); self.spans.len()];
        for ((index, key), times) in seen {
            means[index].insert(key, times.iter().sum::<f64>() / times.len() as f64);
        }
        FullProfile { means, one_seconds, total_seconds: now, repetitions }
    }

    /// SeRRa on span number `index`: `points` sizes of each interval, `repeat` times; the curves and the
    /// seconds spent.
    pub(super) fn serra(&self, index: usize, points: u32, repeat: u32, seed: u64) -> (Times, f64) {
        let sizes = Sizes::new(&default_sizes());
        let span = &self.spans[index];
        let mut serra = Serra::new(sizes, ProfileTest::ALL.to_vec(), points, repeat, seed);
        let mut all = Measurements::default();
        // It begins somewhere, not where the complete profile did.
        let mut now = 1e6;
        let mut executed: BTreeMap<TestKey, usize> = BTreeMap::new();
        // The strategy is the one of the product and not a copy of it. A change there shows in
        // these tables at once.
        while let ssdyno_profile::NextTest::Measure { test, size_bytes, .. } = serra.next(&all) {
            let number = executed.entry((test, size_bytes)).or_insert(seed as usize);
            let Some((own, requests)) = span.execution(&(test, size_bytes), *number) else {
                continue;
            };
            *number += 1;
            let seconds = self.elapsed(seed, now, own);
            now += seconds;
            all.add(Measurement::whole(test, size_bytes, requests, seconds));
        }
        let curves = ProfileTest::ALL.into_iter().flat_map(|test| {
            let points = serra.curve(test, &all);
            points.into_iter().map(move |point| ((test, point.size_bytes), point.access_time_ns))
        });
        (curves.collect(), now - 1e6)
    }

    /// Seconds of all tests with `sizes` alone, and of all, without slowness: what fewer sizes save (S2-30).
    pub(super) fn seconds_of_extremes(&self) -> (f64, f64) {
        // S2-30: two points per interval are its extremes, and both intervals share 64 KiB. These
        // three of 134 sizes contain the slow 8 KiB random tests, so they take far more than 3/134
        // of the time.
        let extremes = [8 << 10, 64 << 10, 4 << 20];
        let own = || self.spans.iter().flat_map(|span| &span.own);
        let of = |some: bool| {
            own()
                .filter(|((_, size), _)| !some || extremes.contains(size))
                .flat_map(|(_, own)| own)
                .map(|(seconds, _)| seconds)
                .sum::<f64>()
        };
        (of(true), of(false))
    }
}

/// The ratio of random to sequential access time of each size.
pub(super) fn size_ratios(times: &Times, op: ProfileOp) -> impl Iterator<Item = (u64, f64)> {
    let (sequential, random) = ProfileTest::pair(op);
    let of_test = times.iter().filter(move |((test, _), _)| *test == sequential);
    of_test.filter_map(move |((_, size), time)| Some((*size, times.get(&(random, *size))? / time)))
}

/// The mean over all sizes of the ratio of random to sequential access time.
pub(super) fn mean_ratio(times: &Times, op: ProfileOp) -> Option<f64> {
    // The paper averages the ratio over the sizes and not the times. A ratio of mean times would be
    // decided by the largest sizes alone.
    let ratios: Vec<f64> = size_ratios(times, op).map(|(_, ratio)| ratio).collect();
    (!ratios.is_empty()).then(|| ratios.iter().sum::<f64>() / ratios.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Access times are fractions, and keys of a map are no texts: both are read as they were written.
    #[test]
    fn pieces_are_kept() {
        let place = tempfile::tempdir().unwrap();
        let device = Plan::load().unwrap().devices.remove(0);
        let key = (ProfileTest::pair(ProfileOp::Read).0, 4096);
        let made =
            || SpanTimes { own: [(key, vec![(0.1 + 0.2, 3), (1e-9, 1)])].into(), ours: Vec::new() };
        let cache = RunCache::open(place.path(), "1.0", "a", false).unwrap();
        let piece = |seed| Piece { device: &device, span: 1 << 20, seed, piece: 0 };
        let first = piece(1).kept_or(&cache, || Ok(Some(made()))).unwrap();
        let again = piece(1).kept_or(&cache, || panic!("it is kept")).unwrap();
        assert_eq!((first, again), (Some(made()), Some(made())));
        // Another seed, and what was stopped, are not found.
        for _ in 0..2 {
            let stopped = piece(2).kept_or::<SpanTimes>(&cache, || Ok(None)).unwrap();
            assert_eq!(stopped, None);
        }
    }
}
