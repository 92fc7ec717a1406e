//! The load of a section: directions, sizes, places, rates, limits.

use ssdyno_block::Time;

use super::FioEngine;
use super::distribution::{self, Distribution};
use super::flow::Share;
use super::ini::Entry;
use super::places::Strides;
use super::reader::{Answer, Reader};
use super::requests::Service;
use super::shape::{Shape, Think};
use super::sizes::Sizes;
use super::values::{self, Size, directions, percent};
use super::watch::Watch;
use crate::{ArrivalKind, Arrivals, LatencyTarget};

/// The load of one copy of a job, before the target is known.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Load {
    pub(super) depth: u32,
    /// Shares of reads, writes and trims, in percent.
    pub(super) mix: [f64; 3],
    /// For reads, writes and trims, as everything that is threefold here.
    pub(super) sizes: [Sizes; 3],
    pub(super) alignments: [Option<u64>; 3],
    /// Whether places are random, and in how many percent of the cases.
    pub(super) random: bool,
    pub(super) random_percent: [f64; 3],
    pub(super) distributions: [Distribution; 3],
    /// Each block is asked for once before any is again.
    pub(super) mapped: bool,
    pub(super) modifier: Modifier,
    pub(super) strides: Option<Strides>,
    /// Its share of the requests of several jobs.
    pub(super) share: Option<Share>,
    /// How its files are served.
    pub(super) service: Service,
    pub(super) start: Option<Size>,
    /// Added to the start for each copy before this one.
    pub(super) increment: Option<Size>,
    /// The unit to which a start given as a share is rounded up.
    pub(super) start_align: Option<u64>,
    pub(super) length: Option<Size>,
    /// Size of the file, where it is told apart from `length`: the range ends there then, and `length` is
    /// how much is moved (fio documentation, `filesize`).
    pub(super) file_bytes: Option<u64>,
    /// Bytes to transfer, where that is not the length.
    pub(super) io_bytes: Option<Size>,
    pub(super) requests: Option<u64>,
    /// How often all of it is done.
    pub(super) loops: u64,
    pub(super) runtime: Option<Time>,
    pub(super) time_based: bool,
    pub(super) arrivals: Option<Arrivals>,
    pub(super) shape: Shape,
    /// Outstanding requests at which a queue that was full is filled again.
    pub(super) low: Option<u64>,
    /// The latencies that its depth is to meet.
    pub(super) target: Option<LatencyTarget>,
    pub(super) watch: Watch,
    /// The options as they stand in the file, for errors that show with the target.
    pub(super) lines: Vec<Entry>,
}

/// The text after the direction (`rw=read:4k`, `rw=randread:8`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Modifier {
    /// Added to the place of each sequential request.
    pub(super) gap: i64,
    /// Requests from one random place to the next.
    pub(super) run: u64,
    /// Within a run the place stays the same.
    pub(super) identical: bool,
}

impl Default for Modifier {
    fn default() -> Modifier {
        Modifier { gap: 0, run: 1, identical: false }
    }
}

impl Load {
    /// Directions that the job has.
    pub(super) fn used(&self) -> impl Iterator<Item = usize> + '_ {
        (0..3).filter(|direction| self.mix[*direction] > 0.0)
    }

    /// Whether the directions take turns: each has a constant rate. Poisson arrivals of several rates are those of the sum,
    /// with a direction drawn for each.
    pub(super) fn has_turns(&self) -> bool {
        let constant = |arrivals: &Arrivals| arrivals.kind == ArrivalKind::Fixed;
        self.used().count() > 1 && self.arrivals.as_ref().is_some_and(constant)
    }

    /// Where copy number `copy` begins in a file of `end_bytes`: shares lead to the next block of the
    /// shortest size, or of `offset_align` (fio's filesetup.c, `get_start_offset`).
    pub(super) fn start_bytes(&self, end_bytes: u64, copy: u32) -> u64 {
        let resolve = |size: Option<Size>| match size {
            None => 0,
            Some(Size::Bytes(bytes)) => bytes,
            Some(Size::Percent(share)) => (end_bytes as f64 * share / 100.0) as u64,
        };
        let steps = resolve(self.increment).saturating_mul(u64::from(copy));
        let start = resolve(self.start).saturating_add(steps);
        let is_share = |size: Option<Size>| matches!(size, Some(Size::Percent(_)));
        // A start in bytes is taken as it is, and a wrong one is an error later. Rounding it here
        // would move the range without the knowledge of the user.
        if !is_share(self.start) && !is_share(self.increment) {
            return start;
        }
        let shortest = self.sizes.iter().map(Sizes::min).min().unwrap_or(1);
        start.div_ceil(self.start_align.unwrap_or(shortest)) * self.start_align.unwrap_or(shortest)
    }

    /// Bytes to move in all by a job with a size of `size` that moves `once` in one pass. As in fio a
    /// pass ends with the range or after `io_size` (in percent: of the size); there are at least
    /// `loops` passes, and more until `io_size` was moved.
    pub(super) fn bytes_in_all(&self, size: u64, once: u64) -> u64 {
        let Some(asked) = self.asked_bytes(size) else { return once.saturating_mul(self.loops) };
        // The minimum of 1 prevents a division by zero for a range without any block. Such a range
        // is rejected later, with the line of its option.
        let once = asked.min(once).max(1);
        let passes = self.loops.max(asked.div_ceil(once));
        once.saturating_mul(passes).min(asked.saturating_mul(self.loops))
    }

    /// What `io_size` says.
    fn asked_bytes(&self, size: u64) -> Option<u64> {
        Some(match self.io_bytes? {
            Size::Bytes(bytes) => bytes,
            Size::Percent(share) => (size as f64 * share / 100.0) as u64,
        })
    }

    /// After how many bytes a pass of sequential reads and writes ends: each direction is then somewhere
    /// in the range, and both begin again. `None` where the end of the range ends it.
    pub(super) fn pass_bytes(&self, size: u64, once: u64) -> Option<u64> {
        // Reads and writes have separate positions in a sequential mix, so one reaches the end of
        // the range before the other. Bytes decide, because there is no common end.
        let mixed = self.used().count() > 1 && !self.random && !self.time_based;
        mixed.then(|| self.asked_bytes(size).unwrap_or(once).min(once).max(1))
    }

    /// The bytes that one pass over `range` bytes moves if holes are left; `None` if there are none, if sizes differ,
    /// or if the pass continues until everything was moved (`wraps`).
    pub(super) fn bytes_between_holes(&self, range: u64, wraps: bool) -> Option<u64> {
        let (block, fixed) = (self.block_max(), self.block_min() == self.block_max());
        let gap = u64::try_from(self.modifier.gap).ok().filter(|gap| *gap > 0)?;
        // The closed form counts requests of one size at equal distances. In all other cases the
        // number is a result of draws, so the pass ends when the places are used up.
        if self.random || !fixed || self.strides.is_some() || self.used().count() > 1 {
            return None;
        }
        let requests = range.div_ceil(block + gap);
        let last = requests.saturating_sub(1) * (block + gap);
        match wraps {
            // With wrapping, the last request ends inside of the range and the pass goes on from
            // the start. It ends one request earlier if the last one would cross the end.
            true if last + block <= range => None,
            true => Some((requests - 1) * block),
            false => Some(requests * block),
        }
    }

    /// The length of a block of the map: the shortest request of any direction, also if the job has no requests of this
    /// direction (fio's `rw_min_bs`).
    pub(super) fn map_unit(&self) -> u64 {
        self.sizes.iter().map(Sizes::min).min().unwrap_or(1)
    }

    /// The longest request.
    pub(super) fn block_max(&self) -> u64 {
        self.used().map(|direction| self.sizes[direction].max()).max().unwrap_or(1)
    }

    /// The shortest one.
    pub(super) fn block_min(&self) -> u64 {
        self.used().map(|direction| self.sizes[direction].min()).min().unwrap_or(1)
    }
}

impl Reader<'_> {
    /// Reads the load of the section.
    pub(super) fn load(&mut self, engine: FioEngine, notes: &mut Vec<String>) -> Answer<Load> {
        let (mut mix, random, modifier) = self.directions()?;
        let sizes = self.sizes()?;
        let depth =
            self.value(&["iodepth"], "a number of 1 or more", values::whole_in(1..=65_536))?;
        let mut depth = depth.unwrap_or(1) as u32;
        // A system call such as pread returns after its completion, so only one is outstanding per
        // thread. A deeper queue would measure an engine that the job does not name.
        if engine == FioEngine::Synchronous && depth > 1 {
            notes
                .push("a synchronous engine has one request at a time: iodepth counts as 1".into());
            depth = 1;
        }
        let arrivals = self.arrivals(&sizes, &mut mix, notes)?;
        let runtime = self.value(&["runtime", "timeout"], "a time such as 60s", values::seconds)?;
        let time_based = self.switch("time_based")?;
        if time_based && runtime.is_none_or(|runtime| runtime == Time::ZERO) {
            return self.wrong("time_based needs a runtime", "add runtime=60");
        }
        let size = |text: &str| values::size(text);
        let loops = self.value(&["loops"], "a number of 1 or more", values::whole_in(1..))?;
        let random_percent = self
            .value(&["percentage_random"], "0 to 100", |text| directions(text, percent))?
            .unwrap_or_default();
        let distributions = self.distributions()?;
        let alignments = self.alignments(random)?;
        let mut load = Load {
            depth,
            mix,
            alignments,
            random,
            random_percent: random_percent.map(|share| share.unwrap_or(100.0)),
            distributions,
            mapped: false,
            modifier,
            strides: self.strides()?,
            share: self.share()?,
            service: self.service()?,
            start: self.value(&["offset", "fileoffset"], "a size such as 1g or 50%", size)?,
            increment: self.value(&["offset_increment"], "a size such as 1g or 5%", size)?,
            start_align: self
                .value(&["offset_align"], "a size such as 4k", values::bytes)?
                .filter(|size| *size > 0),
            length: self
                .value(&["size"], "a size such as 1g or 50%", size)?
                .filter(|size| *size != Size::Bytes(0)),
            file_bytes: self
                .value(&["filesize"], "one size such as 1g", values::bytes)?
                .filter(|size| *size > 0),
            io_bytes: self
                .value(&["io_size", "io_limit"], "a size such as 1g or 50%", size)?
                .filter(|size| *size != Size::Bytes(0)),
            requests: self
                .value(&["number_ios"], "a number", values::whole)?
                .filter(|requests| *requests > 0),
            loops: loops.unwrap_or(1),
            runtime: runtime.filter(|runtime| *runtime > Time::ZERO),
            time_based,
            arrivals,
            sizes,
            shape: self.shape(notes)?,
            low: self.value(&["iodepth_low"], "a number", values::whole)?.filter(|low| *low > 0),
            target: None,
            watch: Watch::default(),
            lines: Vec::new(),
        };
        // These three depend on other options of the load: the rate, the low mark and the sizes.
        // They are read last, when all the others are known.
        load.target = self.latency_target(&load, notes)?;
        load.watch = self.watch(&load)?;
        load.mapped = random && self.is_mapped(&load, notes)?;
        Ok(load)
    }

    /// Whether each block is asked for once before any is again. As in fio other alignments than the
    /// block size, and distributions that are not uniform, do without.
    fn is_mapped(&mut self, load: &Load, notes: &mut Vec<String>) -> Answer<bool> {
        let uniform = load.distributions.iter().all(|one| *one == Distribution::Uniform);
        // A map makes each block equally frequent after a pass. It would therefore turn any
        // distribution back into a uniform one.
        if self.switch("norandommap")? || !uniform {
            return Ok(false);
        }
        // Also where only a direction that the job does not have has its own.
        let own = (0..3).any(|way| {
            load.alignments[way].is_some_and(|alignment| alignment != load.sizes[way].min())
        });
        if own {
            notes.push(
                "blockalign draws each place anew, so it excludes a map of the blocks".to_owned(),
            );
        }
        Ok(!own)
    }

    fn alignments(&mut self, random: bool) -> Answer<[Option<u64>; 3]> {
        let size = |text: &str| values::bytes(text).filter(|size| *size > 0);
        let all = self
            .value(&["ba", "blockalign"], "a size such as 4k", |text| directions(text, size))?
            .unwrap_or_default();
        // It is for random places alone.
        // Sequential requests follow the end of their predecessor. An alignment there would leave
        // holes, which only `rw=read:4k` is meant to do.
        Ok(if random { all } else { [None; 3] })
    }

    fn distributions(&mut self) -> Answer<[Distribution; 3]> {
        let strides = self.switch("random_sequence_stride")?;
        let Some(entry) = self.find(&["random_distribution"]) else {
            return Ok(Default::default());
        };
        match distribution::parse(entry.value.as_deref().unwrap_or_default(), strides) {
            Ok(all) => Ok(all),
            Err((what, help)) => self.wrong(what, help),
        }
    }

    /// Parts of the target that are visited one after the other.
    fn strides(&mut self) -> Answer<Option<Strides>> {
        let bytes = |text: &str| values::bytes(text);
        let size = self.value(&["zonesize"], "a size such as 256m", bytes)?;
        let range = self.value(&["zonerange"], "a size such as 256m", bytes)?;
        let skip = self.value(&["zoneskip"], "a size such as 2g", bytes)?;
        let mode = self.text("zonemode");
        match mode.as_deref() {
            None | Some("none") => return Ok(None),
            Some("strided") => {}
            Some(_) => {
                return self.wrong(
                    "zoned devices are not supported",
                    "set zonemode=strided for parts of a device, or leave it out",
                );
            }
        }
        let Some(size) = size.filter(|size| *size > 0) else {
            return self.wrong("zonemode=strided needs a zonesize", "add zonesize=256m");
        };
        let range = range.filter(|range| *range > 0).unwrap_or(size);
        Ok(Some(Strides { size, range, skip: skip.unwrap_or(0) }))
    }

    /// Pauses and flushes.
    fn shape(&mut self, notes: &mut Vec<String>) -> Answer<Shape> {
        let time = |text: &str| values::time(text, "us");
        let think = self.value(&["thinktime"], "a time in us, or such as 5ms", time)?;
        let blocks =
            self.value(&["thinktime_blocks"], "a number of 1 or more", values::whole_in(1..))?;
        let think = think.filter(|time| *time > Time::ZERO);
        // Spinning and sleeping differ in CPU time only; the requests are the same. The option is
        // therefore noted and not rejected.
        if think.is_some() && self.find(&["thinktime_spin"]).is_some() {
            notes.push(
                "the job sleeps during its think time (in fio it spins for thinktime_spin)".into(),
            );
        }
        if self.find(&["randrepeat"]).is_some() && !self.switch("randrepeat")? {
            notes.push(
                "the seed determines all random numbers (fio: randrepeat=0 differs in each run)"
                    .into(),
            );
        }
        let every = self.value(&["fsync", "fdatasync"], "a number of writes", values::whole)?;
        let work = self.value(&["thinktime_iotime"], "a time such as 9s", values::seconds)?;
        let work = work.filter(|time| *time > Time::ZERO);
        if work.is_some() && think.is_none() {
            return self.wrong("thinktime_iotime needs a thinktime", "add thinktime=1s");
        }
        // Alone, the time of work decides.
        let usual = if work.is_some() { u64::MAX } else { 1 };
        Ok(Shape {
            think: think.map(|time| Think { time, blocks: blocks.unwrap_or(usual), work }),
            flush_every: every.filter(|writes| *writes > 0),
            flush_at_end: self.switch("end_fsync")? || self.switch("fsync_on_close")?,
        })
    }

    /// Shares of reads, writes and trims, whether places are random, and the text after the colon.
    fn directions(&mut self) -> Answer<([f64; 3], bool, Modifier)> {
        // Each of the two sets both shares, so the later one wins (fio: `str_rwmix_read_cb`, `str_rwmix_write_cb`).
        let names = ["rwmixread", "rwmixwrite"];
        let is_write = self.find(&names).is_some_and(|entry| entry.key == names[1]);
        let share = self.value(&names, "0 to 100", percent)?.unwrap_or(50.0);
        let read = if is_write { 100.0 - share } else { share };
        let mixed = [read, 100.0 - read, 0.0];
        let identical = match self.text("rw_sequencer").as_deref() {
            None | Some("sequential") => false,
            Some("identical") => true,
            Some(_) => {
                return self.wrong("`rw_sequencer` is unknown", "use sequential or identical");
            }
        };
        let Some(entry) = self.find(&["rw", "readwrite"]) else {
            return Ok(([100.0, 0.0, 0.0], false, Modifier::default()));
        };
        let text = entry.value.as_deref().unwrap_or_default();
        let (direction, suffix) = text.split_once(':').map_or((text, None), |(d, s)| (d, Some(s)));
        let (mix, random) = match direction {
            "read" => ([100.0, 0.0, 0.0], false),
            "write" => ([0.0, 100.0, 0.0], false),
            "trim" => ([0.0, 0.0, 100.0], false),
            "randread" => ([100.0, 0.0, 0.0], true),
            "randwrite" => ([0.0, 100.0, 0.0], true),
            "randtrim" => ([0.0, 0.0, 100.0], true),
            "rw" | "readwrite" => (mixed, false),
            "randrw" => (mixed, true),
            other => {
                return self.wrong(
                    format!("fio's direction `{other}` is not supported"),
                    "use read, write, trim, randread, randwrite, randtrim, rw or randrw",
                );
            }
        };
        let mut modifier = Modifier { identical, ..Modifier::default() };
        match suffix {
            None => {}
            // One suffix has two meanings in fio: a number of requests for random loads and a
            // distance in bytes for sequential ones. `randread:8` must not be read as a hole of 8
            // bytes.
            Some(text) if random => match values::whole_in(1..)(text) {
                Some(run) => modifier.run = run,
                None => {
                    return self.wrong(
                        format!("`{text}` is not a number of requests"),
                        "use a form such as rw=randread:8 for a new place every eight requests",
                    );
                }
            },
            Some(text) => match values::gap(text) {
                Some(gap) => modifier.gap = gap,
                None => {
                    return self.wrong(
                        format!("`{text}` is not a distance"),
                        "use a form such as rw=read:4k to skip 4 KiB after each request, or rw=read:-8k to read backwards",
                    );
                }
            },
        }
        Ok((mix, random, modifier))
    }

    /// When requests arrive, if there is a rate. In fio each direction has its own: then the rates
    /// decide about the mix.
    fn arrivals(
        &mut self,
        sizes: &[Sizes; 3],
        mix: &mut [f64; 3],
        notes: &mut Vec<String>,
    ) -> Answer<Option<Arrivals>> {
        let per_direction =
            |text: &str| directions(text, |part| values::whole(part).map(|n| n as f64));
        let by_count = self.value(&["rate_iops"], "requests per second", per_direction)?;
        let by_bytes = self.value(&["rate"], "a rate such as 10m", |text| {
            directions(text, |part| values::bytes(part).map(|bytes| bytes as f64))
        })?;
        let by_bytes = by_bytes.map(|rates| {
            let all = rates.into_iter().zip(sizes);
            let all: Vec<Option<f64>> = all.map(|(rate, s)| Some(rate? / s.mean())).collect();
            [all[0], all[1], all[2]]
        });
        // Bytes per second are divided by the mean size, because arrivals are requests. The mean
        // over many requests is the rate that was asked for; single seconds can differ.
        let Some(rates) = by_count.or(by_bytes) else { return Ok(None) };
        let kind = match self.text("rate_process").as_deref() {
            None | Some("linear") => ArrivalKind::Fixed,
            Some("poisson") => ArrivalKind::Poisson,
            Some(other) => {
                return self
                    .wrong(format!("`{other}` is not a rate process"), "use linear or poisson");
            }
        };
        let used: Vec<usize> = (0..3).filter(|direction| mix[*direction] > 0.0).collect();
        // A load that is half open and half closed has no defined latency: the closed part waits
        // behind the open one, so its rate depends on the device.
        if used.iter().any(|direction| rates[*direction].is_none_or(|rate| rate <= 0.0)) {
            return self.wrong(
                "a direction has no rate: part of the load would be open and part closed",
                "give every direction a rate above 0, or use a job for each",
            );
        }
        let rate_of = |direction: usize| rates[direction].unwrap_or(0.0);
        let rate: f64 = used.iter().map(|direction| rate_of(*direction)).sum();
        if used.len() > 1 {
            used.iter().for_each(|direction| mix[*direction] = 100.0 * rate_of(*direction) / rate);
            notes.push(
                "each direction has its own rate, as in fio: the rates decide the mix".into(),
            );
        }
        notes.push(
            "the rate is an arrival rate: requests arrive even if the target does not keep up, and \
             latency counts from the arrival"
                .into(),
        );
        Ok(Some(Arrivals { kind, rate: Some(rate), mean_gap: None, length: None, interval: None }))
    }
}
