//! What a section asks of the target: directions, sizes, places, rates, limits.

use ssdyno_block::Time;
use ssdyno_block::units::Bytes;

use super::FioEngine;
use super::job::{Answer, Reader};
use super::shape::{Shape, Think};
use super::values::{self, Size};
use crate::{ArrivalKind, Arrivals, BlockSize};

/// Most different sizes of a workload.
const SIZES_MAX: usize = 64;

/// What one copy of a job asks of the target, before the target is known.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Load {
    pub(super) depth: u32,
    /// Shares of reads, writes and trims, in percent.
    pub(super) mix: [f64; 3],
    pub(super) sizes: Vec<BlockSize>,
    pub(super) alignment: Option<u64>,
    pub(super) sequential_percent: f64,
    /// Exponent of a Zipf distribution.
    pub(super) theta: Option<f64>,
    pub(super) start: Option<Size>,
    /// Added to the start for each copy before this one.
    pub(super) increment: Option<Size>,
    pub(super) length: Option<Size>,
    /// Bytes to transfer, where that is not the length.
    pub(super) io_bytes: Option<Size>,
    pub(super) requests: Option<u64>,
    /// How often all of it is done.
    pub(super) loops: u64,
    pub(super) runtime: Option<Time>,
    pub(super) time_based: bool,
    pub(super) arrivals: Option<Arrivals>,
    pub(super) shape: Shape,
}

impl Load {
    /// The mean size of a request, by the weights of the sizes.
    pub(super) fn bytes_mean(&self) -> f64 {
        let weights: f64 = self.sizes.iter().map(|s| s.weight).sum();
        self.sizes.iter().map(|s| s.size.0 as f64 * s.weight).sum::<f64>() / weights.max(1e-9)
    }
}

impl Reader<'_> {
    /// Reads what the section asks of the target.
    pub(super) fn load(&mut self, engine: FioEngine, notes: &mut Vec<String>) -> Answer<Load> {
        let (mut mix, random) = self.directions()?;
        let sizes = self.sizes()?;
        let sequential_percent = match self.value(&["percentage_random"], "0 to 100", percent)? {
            Some(random) => 100.0 - random,
            None if random => 0.0,
            None => 100.0,
        };
        if sequential_percent < 100.0 && !self.switch("norandommap")? {
            notes.push("random places are drawn anew each time (fio: norandommap=1)".into());
        }
        if sequential_percent > 0.0 && mix.iter().filter(|share| **share > 0.0).count() > 1 {
            notes.push(
                "sequential reads and writes follow one another (fio: each direction has a place \
                 of its own)"
                    .into(),
            );
        }
        let depth = self.value(&["iodepth"], "a number of 1 or more", |text| {
            values::whole(text).filter(|depth| (1..=65_536).contains(depth))
        })?;
        let mut depth = depth.unwrap_or(1) as u32;
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
        let loops = self.value(&["loops"], "a number of 1 or more", |text| {
            values::whole(text).filter(|loops| *loops >= 1)
        })?;
        Ok(Load {
            depth,
            mix,
            alignment: self.value(&["ba", "blockalign"], "a size such as 4k", values::bytes)?,
            sequential_percent,
            theta: self.theta()?,
            start: self.value(&["offset"], "a size such as 1g or 50%", size)?,
            increment: self.value(&["offset_increment"], "a size such as 1g or 5%", size)?,
            length: self.value(&["size"], "a size such as 1g or 50%", size)?,
            io_bytes: self.value(&["io_size", "io_limit"], "a size such as 1g or 50%", size)?,
            requests: self.value(&["number_ios"], "a number", values::whole)?,
            loops: loops.unwrap_or(1),
            runtime: runtime.filter(|runtime| *runtime > Time::ZERO),
            time_based,
            arrivals,
            sizes,
            shape: self.shape(notes)?,
        })
    }

    /// Pauses and flushes.
    fn shape(&mut self, notes: &mut Vec<String>) -> Answer<Shape> {
        let time = |text: &str| values::time(text, "us");
        let think = self.value(&["thinktime"], "a time in us, or such as 5ms", time)?;
        let blocks = self.value(&["thinktime_blocks"], "a number of 1 or more", |text| {
            values::whole(text).filter(|blocks| *blocks >= 1)
        })?;
        let think = think.filter(|time| *time > Time::ZERO);
        if think.is_some() && self.find(&["thinktime_spin"]).is_some() {
            notes.push("think time is spent sleeping (fio: thinktime_spin of it spinning)".into());
        }
        let every = self.value(&["fsync", "fdatasync"], "a number of writes", values::whole)?;
        Ok(Shape {
            think: think.map(|time| Think { time, blocks: blocks.unwrap_or(1) }),
            flush_every: every.filter(|writes| *writes > 0),
        })
    }

    /// Shares of reads, writes and trims, and whether places are random.
    fn directions(&mut self) -> Answer<([f64; 3], bool)> {
        let read = self.value(&["rwmixread"], "0 to 100", percent)?;
        let write = self.value(&["rwmixwrite"], "0 to 100", percent)?;
        let read = read.or(write.map(|write| 100.0 - write)).unwrap_or(50.0);
        let mixed = [read, 100.0 - read, 0.0];
        let Some(entry) = self.find(&["rw", "readwrite"]) else {
            return Ok(([100.0, 0.0, 0.0], false));
        };
        Ok(match entry.value.as_deref().unwrap_or_default() {
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
                    format!("fio's direction `{other}` is not offered"),
                    "write read, write, trim, randread, randwrite, randtrim, rw or randrw",
                );
            }
        })
    }

    /// Sizes with their weights.
    fn sizes(&mut self) -> Answer<Vec<BlockSize>> {
        if let Some(entry) = self.find(&["bssplit"]) {
            return self.split(entry.value.as_deref().unwrap_or_default());
        }
        if let Some(entry) = self.find(&["bsrange", "blocksize_range"]) {
            let text = entry.value.unwrap_or_default();
            let ends = text.split_once('-').and_then(|(low, high)| {
                Some((values::bytes(low)?, values::bytes(high)?)).filter(|(low, _)| *low > 0)
            });
            let Some((low, high)) = ends else {
                return self.wrong("`bsrange` is not a range such as 4k-16k", "write 4k-16k");
            };
            let sizes: Vec<BlockSize> = (1..=SIZES_MAX as u64 + 1)
                .map(|times| times * low)
                .take_while(|size| *size <= high)
                .map(|size| BlockSize { size: Bytes(size), weight: 1.0 })
                .collect();
            if sizes.is_empty() || sizes.len() > SIZES_MAX {
                return self.wrong(
                    format!(
                        "`bsrange` stands for {} sizes; 1 to {SIZES_MAX} can be mixed",
                        high / low
                    ),
                    "write bssplit with the sizes that matter",
                );
            }
            return Ok(sizes);
        }
        let Some(entry) = self.find(&["bs", "blocksize"]) else {
            return Ok(vec![BlockSize { size: Bytes(4096), weight: 1.0 }]);
        };
        let text = entry.value.unwrap_or_default();
        let all: Option<Vec<u64>> = text.split(',').map(values::bytes).collect();
        match all.as_deref() {
            Some([first, others @ ..]) if *first > 0 && others.iter().all(|size| size == first) => {
                Ok(vec![BlockSize { size: Bytes(*first), weight: 1.0 }])
            }
            Some([_, _, ..]) => self.wrong(
                "sizes that differ between reads and writes are not offered",
                "write a job for reads and one for writes",
            ),
            _ => self.wrong("`bs` is not a size such as 4k", "write bs=4k"),
        }
    }

    /// `bssplit=4k/10:64k/50:32k/`: sizes without a share have what is left, equally.
    fn split(&mut self, text: &str) -> Answer<Vec<BlockSize>> {
        if text.contains(',') {
            return self.wrong(
                "splits that differ between reads and writes are not offered",
                "write a job for reads and one for writes",
            );
        }
        let mut sizes = Vec::new();
        let mut open = Vec::new();
        for part in text.split(':') {
            let (size, share) = part.split_once('/').unwrap_or((part, ""));
            let weight = if share.is_empty() { None } else { percent(share) };
            let Some(size) = values::bytes(size).filter(|size| *size > 0) else {
                return self
                    .wrong(format!("`{part}` is not a size and a share"), "write 4k/60:16k/40");
            };
            if weight.is_none() {
                if !share.is_empty() {
                    return self.wrong(format!("`{share}` is not a share"), "write 0 to 100");
                }
                open.push(sizes.len());
            }
            sizes.push(BlockSize { size: Bytes(size), weight: weight.unwrap_or(0.0) });
        }
        let given: f64 = sizes.iter().map(|size| size.weight).sum();
        for at in &open {
            sizes[*at].weight = (100.0 - given).max(0.0) / open.len() as f64;
        }
        sizes.retain(|size| size.weight > 0.0);
        if sizes.is_empty() || sizes.len() > SIZES_MAX {
            return self.wrong(
                format!(
                    "`bssplit` has {} sizes with a share; 1 to {SIZES_MAX} can be mixed",
                    sizes.len()
                ),
                "leave out the rarest",
            );
        }
        Ok(sizes)
    }

    fn theta(&mut self) -> Answer<Option<f64>> {
        let Some(entry) = self.find(&["random_distribution"]) else { return Ok(None) };
        let text = entry.value.unwrap_or_default();
        let (name, parameter) = text.split_once(':').unwrap_or((text.as_str(), ""));
        match (name, parameter.parse::<f64>()) {
            ("random", _) => Ok(None),
            ("zipf", Ok(theta)) if theta > 0.0 && theta <= 10.0 => Ok(Some(theta)),
            ("zipf", _) => self.wrong("zipf needs an exponent above 0, to 10", "write zipf:1.2"),
            _ => self.wrong(
                format!("fio's distribution `{name}` is not offered"),
                "write random or zipf:1.2; a workload file has hot-cold as well",
            ),
        }
    }

    /// When requests arrive, if there is a rate. In fio each direction has its own: then the rates
    /// decide about the mix.
    fn arrivals(
        &mut self,
        sizes: &[BlockSize],
        mix: &mut [f64; 3],
        notes: &mut Vec<String>,
    ) -> Answer<Option<Arrivals>> {
        let weights: f64 = sizes.iter().map(|size| size.weight).sum();
        let mean: f64 = sizes.iter().map(|s| s.size.0 as f64 * s.weight).sum::<f64>() / weights;
        let per_direction =
            |text: &str| directions(text, |part| values::whole(part).map(|n| n as f64));
        let by_count = self.value(&["rate_iops"], "requests per second", per_direction)?;
        let by_bytes = self.value(&["rate"], "a rate such as 10m", |text| {
            directions(text, |part| values::bytes(part).map(|bytes| bytes as f64 / mean))
        })?;
        let Some(rates) = by_count.or(by_bytes) else { return Ok(None) };
        let kind = match self.find(&["rate_process"]).and_then(|entry| entry.value).as_deref() {
            None | Some("linear") => ArrivalKind::Fixed,
            Some("poisson") => ArrivalKind::Poisson,
            Some(other) => {
                return self
                    .wrong(format!("`{other}` is no rate process"), "write linear or poisson");
            }
        };
        let used: Vec<usize> = (0..3).filter(|direction| mix[*direction] > 0.0).collect();
        if used.iter().any(|direction| rates[*direction].is_none_or(|rate| rate <= 0.0)) {
            return self.wrong(
                "a direction has no rate: part of the load would be open and part closed",
                "give every direction a rate above 0, or write a job for each",
            );
        }
        let rate_of = |direction: usize| rates[direction].unwrap_or(0.0);
        let rate: f64 = used.iter().map(|direction| rate_of(*direction)).sum();
        if used.len() > 1 {
            used.iter().for_each(|direction| mix[*direction] = 100.0 * rate_of(*direction) / rate);
            notes.push(
                "each direction has its own rate, as in fio: they decide about the mix".into(),
            );
        }
        notes.push(
            "the rate is that of arrivals: they come whether or not the target keeps up, and \
             latency counts from the arrival"
                .into(),
        );
        Ok(Some(Arrivals { kind, rate: Some(rate), mean_gap: None, length: None, interval: None }))
    }
}

/// `reads,writes,trims`: one value is for all, an empty one says nothing, and what is left out is as
/// the one before.
fn directions(text: &str, parse: impl Fn(&str) -> Option<f64>) -> Option<[Option<f64>; 3]> {
    let mut values = [None; 3];
    let mut last = None;
    let mut parts = text.split(',').map(str::trim);
    for value in &mut values {
        if let Some(part) = parts.next() {
            last = if part.is_empty() { None } else { Some(parse(part)?) };
        }
        *value = last;
    }
    parts.next().is_none().then_some(values)
}

fn percent(text: &str) -> Option<f64> {
    let value: f64 = text.trim_end_matches('%').trim().parse().ok()?;
    (0.0..=100.0).contains(&value).then_some(value)
}
