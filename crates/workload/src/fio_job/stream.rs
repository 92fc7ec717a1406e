//! The requests of the copies of jobs to a target.

use std::collections::BTreeMap;
use std::sync::Arc;

use ssdyno_block::Time;
use ssdyno_engine::Rng;

use super::distribution::{Distribution, Picker, Zone, in_zones};
use super::files::{FioFiles, FioRange};
use super::flow::{Flow, flowing};
use super::load::Load;
use super::low::draining;
use super::map::Map;
use super::places::{Places, Way};
use super::requests::{Files, Requests, Turns};
use super::shape::{Limits as ShapeLimits, shaped};
use super::shared::shared;
use super::sizes::Sizes;
use super::values::Size;
use super::watch::watched;
use super::{FioEngine, FioExit, FioJob};
use crate::config::{arrival_process, check_device};
use crate::depth::{Before, searching};
use crate::error::TraceLine;
use crate::generator::arrivals::Pacing;
use crate::generator::place::threshold;
use crate::generator::{Generator, Limits};
use crate::{Arrivals, HotPart, TargetFacts, Workload, WorkloadError, WrittenPlaces};

/// One copy of a job: a stream of requests of its own, whose time counts from its start.
#[derive(Clone, Debug)]
pub struct FioStream {
    /// Which section of the file it comes from, counted from 0.
    pub job: usize,
    /// Which copy of it, counted from 0.
    pub copy: u32,
    /// Where its figures belong: an index into [`fio_entries`].
    pub entry: usize,
    /// See [`FioJob::group`].
    pub group: u32,
    /// See [`FioJob::exit`].
    pub exit: FioExit,
    /// See [`FioJob::start_delay`].
    pub start_delay: Time,
    /// See [`FioJob::ramp`].
    pub ramp: Time,
    /// Cores it may run on; empty: any.
    pub cores: Vec<usize>,
    /// How fio would issue its requests.
    pub engine: FioEngine,
    /// Decides about everything random.
    pub seed: u64,
    /// Most requests outstanding.
    pub depth: u32,
    /// When requests arrive, if there is a rate; none: whenever others complete.
    pub arrivals: Option<Arrivals>,
    /// No request is issued at this time or later; the ramp is part of it.
    pub duration: Option<Time>,
    /// Requests to issue at most.
    pub requests: Option<u64>,
    /// Bytes to move at most, but for the rest of the last request; none: until the time is over.
    pub bytes: Option<u64>,
    /// Its parts of each of its files; at least one.
    pub ranges: Vec<FioRange>,
    /// Bytes after which a pass begins again wherever it is; `u64::MAX` where it ends with the range.
    pass_bytes: u64,
    /// Addresses at which its files are flushed, if the target is made of several.
    flushes: Vec<u64>,
    /// The streams that it keeps in proportion with.
    flow: Option<Arc<Flow>>,
    load: Load,
    at: TraceLine,
}

/// The unit of a report: a section, or one copy of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FioEntry {
    /// Name of the section.
    pub name: String,
    /// See [`FioJob::group`].
    pub group: u32,
    /// Streams in it.
    pub copies: u32,
    /// Most requests outstanding in all of its streams, if the job has a rate; `None` without a rate.
    pub rated_depth: Option<u64>,
    /// See [`FioJob::pauses`].
    pub pauses: bool,
}

/// The units of separate reports, as in fio: each copy, or with `group_reporting` each section.
pub fn fio_entries(jobs: &[FioJob]) -> Vec<FioEntry> {
    let entries = jobs.iter().flat_map(|job| {
        let (rows, copies) = if job.copies_as_one { (1, job.copies) } else { (job.copies, 1) };
        let depth = u64::from(job.load.depth) * u64::from(copies);
        let rated_depth = job.load.arrivals.as_ref().map(|_| depth);
        let (name, pauses) = (job.name.clone(), job.pauses());
        let entry = FioEntry { name, group: job.group, copies, rated_depth, pauses };
        std::iter::repeat_n(entry, rows as usize)
    });
    entries.collect()
}

/// The streams of `jobs` on a target that consists of `files`, in the order of the job file. `seed`
/// is for jobs without one.
pub fn fio_streams(jobs: &[FioJob], files: &FioFiles, seed: u64) -> Vec<FioStream> {
    let mut streams: Vec<FioStream> = Vec::new();
    let mut flows: BTreeMap<u64, Arc<Flow>> = BTreeMap::new();
    let mut entry = 0;
    for (index, job) in jobs.iter().enumerate() {
        for copy in 0..job.copies {
            // Streams must differ: by their place in the file, or as copies of a seeded job.
            // The golden ratio multiplier below spreads consecutive numbers over all bits of the
            // seed. With seed + 1 alone, copies would start from neighbouring states of the
            // generator.
            let (base, number) = match job.seed {
                Some(seed) => (seed, u64::from(copy)),
                None => (seed, streams.len() as u64),
            };
            streams.push(FioStream {
                job: index,
                entry,
                flow: job.load.share.map(|share| Arc::clone(flows.entry(share.id).or_default())),
                seed: base.wrapping_add(number.wrapping_mul(0x9E37_79B9_7F4A_7C15)),
                ..job.stream(copy, files)
            });
            entry += usize::from(!job.copies_as_one);
        }
        entry += usize::from(job.copies_as_one);
    }
    streams
}

impl FioStream {
    /// Whether it begins with a search for a depth, which is not recorded.
    pub fn searches(&self) -> bool {
        self.load.target.is_some_and(|target| !target.keeps_adapting)
    }

    /// The longest request.
    pub fn block_bytes_max(&self) -> u64 {
        self.load.block_max()
    }

    /// The places that it writes on a target with pages of `page_bytes`; `None` where it does not write at random, or not in
    /// a single range.
    pub(crate) fn written_places(&self, page_bytes: f64) -> Option<WrittenPlaces> {
        let (load, [range]) = (&self.load, &self.ranges[..]) else { return None };
        if !load.random || load.mix[1] <= 0.0 || load.strides.is_some() {
            return None;
        }
        let (range_bytes, write_bytes) = (range.length_bytes as f64, load.sizes[1].mean());
        WrittenPlaces::new(range_bytes, [write_bytes, page_bytes], |places| {
            load.distributions[1].classes(places, range_bytes)
        })
    }

    /// Whether its reads go from the start of its only range to the end, and then again.
    pub fn reads_in_order(&self) -> bool {
        let load = &self.load;
        let whole_passes = self.pass_bytes == u64::MAX && self.ranges.len() == 1;
        whole_passes && !load.random && load.modifier.gap == 0 && load.strides.is_none()
    }

    /// The part of a range of `length_bytes` that many of its reads go to; `None` if all parts are alike, if some reads are
    /// sequential, and for a list of blocks or a normal distribution.
    pub fn hot_part(&self, length_bytes: u64) -> Option<HotPart> {
        let load = &self.load;
        if !load.random || load.random_percent[0] < 100.0 || load.modifier.run > 1 {
            return None;
        }
        // The zone with the most requests per byte.
        let hottest = |zones: &[Zone], whole: f64| {
            let parts = in_zones(zones, whole).into_iter();
            parts.max_by(|a, b| (a.access / a.space).total_cmp(&(b.access / b.space)))
        };
        match &load.distributions[0] {
            Distribution::Zipf(theta) => {
                let align = load.alignments[0].unwrap_or(load.sizes[0].min()).max(1);
                Some(HotPart::of_zipf(length_bytes / align, *theta))
            }
            Distribution::Pareto(h) => Some(HotPart { space: *h, access: 1.0 - h }),
            Distribution::Zoned(zones) => hottest(zones, 100.0),
            Distribution::ZonedBytes(zones) => hottest(zones, length_bytes as f64),
            Distribution::Uniform | Distribution::Normal(_) | Distribution::Sequence(..) => None,
        }
    }

    /// Checks the stream against `device` and makes its workload, which begins at time 0.
    ///
    /// # Errors
    /// Features that the target lacks, reported at the job's section.
    pub fn build(&self, device: &TargetFacts) -> Result<Box<dyn Workload + Send>, WorkloadError> {
        let limits = Limits {
            left: self.requests.unwrap_or(u64::MAX),
            end: self.duration.unwrap_or(Time::MAX),
            depth: u64::from(self.depth),
        };
        let pacing = match &self.arrivals {
            None => Pacing::Closed,
            Some(arrivals) => arrival_process(arrivals).map_err(|e| self.wrong("rate", e.what))?,
        };
        let requests = self.requests(device)?;
        let shape_limits = ShapeLimits {
            depth: u64::from(self.depth),
            end: limits.end,
            requests: self.requests_in_all().unwrap_or(u64::MAX),
        };
        let inner = Box::new(Generator::new(limits, pacing, requests, self.seed).at_once());
        let workload = shaped(inner, self.load.shape, shape_limits, &self.flushes);
        // The order of the wrappers matters. Flushes of the shape count in the queue that drains,
        // and the search for a depth must see both. Shares come last, because they count requests
        // of any kind.
        let workload = draining(workload, u64::from(self.depth), self.load.low);
        let workload = match self.load.target {
            None => workload,
            Some(target) => {
                let before = Before { time: self.ramp, completions: 0 };
                searching(workload, target, u64::from(self.depth), before, Some(self.at.clone()))
            }
        };
        let workload = watched(workload, self.load.watch, self.at.clone());
        Ok(match (&self.flow, self.load.share) {
            (Some(flow), Some(share)) => flowing(workload, flow, share),
            _ => workload,
        })
    }

    /// As [`build`](FioStream::build), in `parts` parts for threads that carry one request at a time.
    ///
    /// # Errors
    /// As there.
    pub fn build_shared(
        &self,
        device: &TargetFacts,
        parts: u64,
    ) -> Result<Vec<Box<dyn Workload + Send>>, WorkloadError> {
        Ok(shared(self.build(device)?, parts))
    }

    fn wrong(&self, option: &str, what: impl std::fmt::Display) -> WorkloadError {
        WorkloadError {
            key: None,
            what: format!("{option} - {what}"),
            help: None,
            at: Some(Box::new(self.at.clone())),
        }
    }

    /// An error that points at the option's own line, where the file has one.
    fn refuse<T>(&self, option: &str, what: String, help: String) -> Result<T, WorkloadError> {
        let names = names_of(option);
        let written = self.load.lines.iter().rev().find(|line| names.contains(&line.key.as_str()));
        let at = match written {
            Some(line) => {
                let text = match &line.value {
                    Some(value) => format!("{}={value}", line.key),
                    None => line.key.clone(),
                };
                TraceLine { file: self.at.file.clone(), number: line.line, text }
            }
            None => self.at.clone(),
        };
        Err(WorkloadError { help: Some(help), at: Some(Box::new(at)), ..self.wrong(option, what) })
    }

    /// How many requests there will be, where that is known: after the last one no flush follows.
    fn requests_in_all(&self) -> Option<u64> {
        let (shortest, longest) = (self.load.block_min(), self.load.block_max());
        let by_bytes =
            self.bytes.filter(|_| shortest == longest).map(|bytes| bytes.div_ceil(longest));
        [self.requests, by_bytes].into_iter().flatten().min()
    }

    /// The values checked against the target, each with the name of its option.
    fn check(&self, device: &TargetFacts) -> Result<(), WorkloadError> {
        check_device(device)?;
        let load = &self.load;
        let sector = u64::from(device.sector_bytes);
        let whole = |bytes: u64| bytes.is_multiple_of(sector);
        // Sectors are checked here and not by the reader of jobs: a job file does not know the
        // target, and O_DIRECT fails with EINVAL for a request of half a sector.
        let help = format!("give a multiple of the target's sector, {sector} B");
        for way in load.used() {
            let (shortest, longest) = (load.sizes[way].min(), load.sizes[way].max());
            let all = match &load.sizes[way] {
                Sizes::Split(all) => all.iter().map(|(size, _)| *size).collect(),
                Sizes::Range(..) => vec![shortest, longest],
            };
            if let Some(size) = all.into_iter().find(|size| !whole(*size)) {
                let what = format!("{size} B is not a multiple of the sector");
                return self.refuse("bs", what, help);
            }
            if load.alignments[way].is_some_and(|alignment| !whole(alignment)) {
                return self.refuse("blockalign", "not a multiple of the sector".to_owned(), help);
            }
        }
        let unit = load.modifier.gap.unsigned_abs();
        let strides = load.strides.is_none_or(|s| [s.size, s.range, s.skip].into_iter().all(whole));
        if !whole(unit) || !strides {
            let option = if strides { "rw" } else { "zonesize" };
            return self.refuse(option, "not a multiple of the sector".to_owned(), help);
        }
        self.ranges.iter().try_for_each(|range| self.check_range(range, device))
    }

    fn check_range(&self, range: &FioRange, device: &TargetFacts) -> Result<(), WorkloadError> {
        let load = &self.load;
        let offset = range.start_bytes - range.file_start_bytes;
        if !range.start_bytes.is_multiple_of(u64::from(device.sector_bytes)) {
            let help = format!("give a multiple of the target's sector, {} B", device.sector_bytes);
            let what = format!("{offset} B is not at the beginning of a sector");
            return self.refuse("offset", what, help);
        }
        let (count, capacity) = (self.ranges.len(), range.file_end_bytes - range.file_start_bytes);
        if range.file_end_bytes > device.capacity_bytes {
            let what = format!("{count} files of {capacity} B do not fit on the target");
            let help =
                format!("it has {} B: fewer files, or a smaller size", device.capacity_bytes);
            return self.refuse("nrfiles", what, help);
        }
        if offset >= capacity {
            let what = "the range starts beyond the end of the target".to_owned();
            return self.refuse("offset", what, format!("the target has {capacity} B"));
        }
        let left = capacity - offset;
        let size = if load.file_bytes.is_some() { "filesize" } else { "size" };
        if range.length_bytes > left {
            let what = format!("{} B, which ends beyond the end of the target", range.length_bytes);
            return self.refuse(size, what, format!("{left} B remain after the offset"));
        }
        if range.length_bytes == 0 {
            let what = "the range has no whole block".to_owned();
            return self.refuse(size, what, "make it larger, or the offset smaller".to_owned());
        }
        let room = load.strides.map_or(range.length_bytes, |strides| strides.range.min(left));
        if load.block_max() > room {
            let what = format!("{} B do not fit in a range of {room} B", load.block_max());
            return self.refuse("bs", what, "make the block smaller or the size larger".to_owned());
        }
        Ok(())
    }

    fn requests(&self, device: &TargetFacts) -> Result<Requests, WorkloadError> {
        self.check(device)?;
        let load = &self.load;
        let mut rng = Rng::new(self.seed, "workload scatter");
        // Scattering has a random stream of its own. With a shared one, the order of random blocks
        // would change as soon as another option draws a number.
        let places = self.ranges.iter().map(|range| self.places(range, device, &mut rng));
        let files = Files::new(places.collect::<Result<_, _>>()?, load.service);
        let [read, write, trim] = load.mix;
        let write_share = if write + trim > 0.0 { write / (write + trim) } else { 0.0 };
        let again = self.bytes.is_none() || load.io_bytes.is_some() || load.loops > 1;
        Ok(Requests {
            read: threshold(read / (read + write + trim)),
            write: threshold(write_share),
            turns: load.has_turns().then(|| Turns::new(load.mix)),
            files,
            run: load.modifier.run,
            run_left: 1,
            left: self.bytes.unwrap_or(u64::MAX),
            pass: self.pass_bytes,
            pass_left: self.pass_bytes,
            again: again || matches!(self.ranges[..], [FioRange { wraps: true, .. }]),
        })
    }

    fn places(
        &self,
        part: &FioRange,
        device: &TargetFacts,
        rng: &mut Rng,
    ) -> Result<Places, WorkloadError> {
        let load = &self.load;
        let range = load.strides.map_or(part.length_bytes, |strides| strides.range);
        let mut way = |direction: usize| {
            let sizes = load.sizes[direction].clone();
            let align = load.alignments[direction].unwrap_or(sizes.min());
            let used = load.mix[direction] > 0.0;
            let room = range.saturating_sub(sizes.min().saturating_sub(align));
            let (how, blocks) = match used {
                true => (&load.distributions[direction], (room / align).max(1)),
                // A direction that the job does not use gets one block. A distribution over all
                // blocks could fail its checks (a sequence beyond the range) for a direction
                // without requests.
                false => (&Distribution::Uniform, 1),
            };
            let picker = Picker::new(how, blocks, align, rng)
                .map_err(|what| self.wrong("random_distribution", what))?;
            let random = threshold(load.random_percent[direction] / 100.0);
            Ok(Way { sizes, align, random, picker, end: 0, start: 0 })
        };
        let ways = [way(0)?, way(1)?, way(2)?];
        let map = load.mapped.then(|| Map::new((range / load.map_unit()).max(1)));
        Ok(Places {
            ways,
            start: part.start_bytes,
            length: part.length_bytes,
            capacity: part.file_end_bytes.min(device.capacity_bytes),
            file_start: part.file_start_bytes,
            base: part.start_bytes,
            random: load.random,
            gap: load.modifier.gap,
            identical: load.modifier.identical,
            map,
            strides: load.strides,
            strode: 0,
            wraps: part.wraps,
        })
    }
}

/// The name of an option in job files, and of the options with the same meaning.
fn names_of(option: &str) -> &'static [&'static str] {
    match option {
        "bs" => &["bs", "blocksize", "bsrange", "blocksize_range", "bssplit"],
        "blockalign" => &["blockalign", "ba"],
        "rw" => &["rw", "readwrite"],
        "offset" => &["offset", "fileoffset", "offset_increment", "offset_align"],
        "size" => &["size", "io_limit", "io_size"],
        "filesize" => &["filesize"],
        "zonesize" => &["zonesize", "zonerange", "zoneskip"],
        "nrfiles" => &["nrfiles", "nr_files", "filename"],
        _ => &[],
    }
}

impl FioJob {
    pub(super) fn line(&self) -> TraceLine {
        let (file, number) = self.at.clone();
        TraceLine { file, number, text: format!("[{}]", self.name) }
    }

    fn cores_of(&self, copy: u32) -> Vec<usize> {
        match self.split_cores && !self.cores.is_empty() {
            true => vec![self.cores[copy as usize % self.cores.len()]],
            false => self.cores.clone(),
        }
    }

    /// The stream of copy number `copy` on `files`.
    fn stream(&self, copy: u32, files: &FioFiles) -> FioStream {
        let load = &self.load;
        let ranges = self.ranges(copy, files);
        let all: u64 = ranges.iter().fold(0, |sum, range| sum.saturating_add(range.length_bytes));
        // With the size of the file told apart, `size` is how much is moved, up to the end of it.
        // A pass cannot move more than its ranges contain. Without the minimum, the number of
        // requests in all would be too high, and the flush after the last request would come at the
        // wrong place.
        let moved = match load.length {
            Some(Size::Bytes(bytes)) => bytes.min(all),
            _ => all,
        };
        let between = |range: &FioRange| match range.wraps && ranges.len() > 1 {
            true => None,
            false => load.bytes_between_holes(range.length_bytes, range.wraps),
        };
        let once = ranges.iter().map(between).sum::<Option<u64>>().unwrap_or(moved).min(moved);
        let starts = ranges.iter().map(|range| range.file_start_bytes);
        let flushes = if files.are_several() { starts.collect() } else { Vec::new() };
        FioStream {
            job: 0,
            copy,
            entry: 0,
            group: self.group,
            exit: self.exit,
            start_delay: self.start_delay,
            ramp: self.ramp,
            cores: self.cores_of(copy),
            engine: self.engine,
            seed: 0,
            depth: load.depth,
            arrivals: load.arrivals.clone(),
            // fio adds the ramp to the time of a job.
            duration: load.runtime.map(|runtime| runtime.saturating_add(self.ramp)),
            // As in fio, time goes before their number.
            requests: load
                .requests
                .filter(|_| !load.time_based)
                .map(|requests| requests.saturating_mul(load.loops)),
            pass_bytes: load.pass_bytes(moved, once).unwrap_or(u64::MAX),
            bytes: (!load.time_based).then(|| load.bytes_in_all(moved, once)),
            ranges,
            flushes,
            flow: None,
            load: load.clone(),
            at: self.line(),
        }
    }
}
