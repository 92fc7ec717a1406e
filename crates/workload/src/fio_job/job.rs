//! From options to a job.

use std::path::Path;

use ssdyno_block::Time;
use ssdyno_block::units::Bytes;

use super::ini::{self, Entry, Section};
use super::options::{REFUSED, USED, WITHOUT_EFFECT};
use super::values::{self, Size};
use super::{FioEngine, FioJob, Load};
use crate::{ArrivalKind, Arrivals, BlockSize, WorkloadError};

/// Most different sizes of a workload.
const SIZES_MAX: usize = 64;

/// Reads the job file at `path`.
///
/// # Errors
/// What is broken, unknown, refused or contradictory first, with its line.
pub fn read_jobs(path: &Path) -> Result<Vec<FioJob>, WorkloadError> {
    let sections = ini::read(path)?;
    let mut group = 0;
    let mut jobs = Vec::with_capacity(sections.len());
    for section in &sections {
        let mut reader = Reader { path, section, line: section.line };
        let walled = reader.switch("stonewall")? || reader.switch("wait_for_previous")?;
        if walled && !jobs.is_empty() {
            group += 1;
        }
        jobs.push(reader.job(group)?);
    }
    Ok(jobs)
}

struct Reader<'a> {
    path: &'a Path,
    section: &'a Section,
    /// Of the option that was read last, for errors.
    line: u64,
}

type Answer<T> = Result<T, WorkloadError>;

impl Reader<'_> {
    fn wrong<T>(&self, what: impl Into<String>, help: impl Into<String>) -> Answer<T> {
        let text = std::fs::read(self.path).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        Err(ini::at(self.path, self.line, &text, what, help))
    }

    /// The last entry called one of `names`: fio takes the last, and options have several names.
    fn find(&mut self, names: &[&str]) -> Option<Entry> {
        let entry =
            self.section.entries.iter().rev().find(|entry| names.contains(&entry.key.as_str()))?;
        self.line = entry.line;
        Some(entry.clone())
    }

    fn switch(&mut self, name: &str) -> Answer<bool> {
        let Some(entry) = self.find(&[name]) else { return Ok(false) };
        match values::switch(entry.value.as_deref()) {
            Some(on) => Ok(on),
            None => self.wrong(format!("`{name}` is neither 0 nor 1"), "write 0 or 1"),
        }
    }

    /// The value of an option, read by `parse`.
    fn value<T>(
        &mut self,
        names: &[&str],
        expected: &str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Answer<Option<T>> {
        let Some(entry) = self.find(names) else { return Ok(None) };
        match entry.value.as_deref().and_then(parse) {
            Some(value) => Ok(Some(value)),
            None => self
                .wrong(format!("`{}` is not {expected}", entry.key), format!("write {expected}")),
        }
    }

    fn job(&mut self, group: u32) -> Answer<FioJob> {
        let mut notes = Vec::new();
        // A foreign engine explains its options.
        let engine = self.engine()?;
        self.check_names(&mut notes)?;
        let size = |text: &str| values::size(text);
        let jobs = self.value(&["numjobs"], "a number from 1 to 4096", |text| {
            values::whole(text).filter(|jobs| (1..=4096).contains(jobs))
        })?;
        let jobs = jobs.unwrap_or(1) as u32;
        let load = self.load(engine, jobs, &mut notes)?;
        let direct = self.find(&["direct"]).is_some() && self.switch("direct")?;
        if !direct && engine != FioEngine::Null {
            notes.push(
                "direct=1 is used whatever the job says: requests go past the page cache".into(),
            );
        }
        let seed = self.value(&["randseed"], "a number", values::whole)?;
        let file_size = self.value(&["filesize"], "a size such as 1g", size)?;
        let file_size_bytes = match file_size.or(load.length) {
            Some(Size::Bytes(bytes)) => Some(bytes + load.start_bytes),
            _ => None,
        };
        Ok(FioJob {
            name: self.section.name.clone(),
            file: self.file()?,
            file_size_bytes,
            engine,
            iopoll: self.switch("hipri")?,
            sqpoll: self.switch("sqthread_poll")?,
            jobs,
            cores: self
                .value(&["cpus_allowed"], "a list of cores such as 0-3,6", values::cores)?
                .unwrap_or_default(),
            group,
            start_delay: self
                .value(&["startdelay"], "a time such as 5s", values::seconds)?
                .unwrap_or(Time::ZERO),
            ramp: self
                .value(&["ramp_time"], "a time such as 5s", values::seconds)?
                .unwrap_or(Time::ZERO),
            seed,
            notes,
            load,
        })
    }

    /// Every option must be known; those without effect are named once.
    fn check_names(&mut self, notes: &mut Vec<String>) -> Answer<()> {
        let mut without: Vec<&str> = Vec::new();
        for entry in &self.section.entries {
            self.line = entry.line;
            let key = entry.key.as_str();
            // Switched off is as good as not written.
            let off = matches!(entry.value.as_deref(), Some("0" | "none" | "false"));
            if let Some((_, help)) = REFUSED.iter().find(|(name, _)| *name == key) {
                let one = matches!(key, "loops" | "nrfiles") && entry.value.as_deref() == Some("1");
                if !off && !one {
                    return self.wrong(format!("fio's option `{key}` is not offered"), *help);
                }
            } else if WITHOUT_EFFECT.contains(&key) {
                if !without.contains(&key) {
                    without.push(key);
                }
            } else if !USED.contains(&key) {
                let help = "remove it, or tell us what you use it for";
                return self.wrong(format!("fio's option `{key}` is not known"), help);
            }
        }
        if !without.is_empty() {
            notes.push(format!("fio options without effect here: {}", without.join(", ")));
        }
        Ok(())
    }

    fn engine(&mut self) -> Answer<FioEngine> {
        let Some(entry) = self.find(&["ioengine"]) else { return Ok(FioEngine::Synchronous) };
        match entry.value.as_deref().unwrap_or_default() {
            "sync" | "psync" | "vsync" | "pvsync" | "pvsync2" => Ok(FioEngine::Synchronous),
            "io_uring" | "libaio" | "posixaio" => Ok(FioEngine::Asynchronous),
            "null" => Ok(FioEngine::Null),
            other => self.wrong(
                format!("fio's engine `{other}` is not offered"),
                "write io_uring, psync or null; networked and special targets have none yet",
            ),
        }
    }

    fn file(&mut self) -> Answer<Option<String>> {
        let directory = self.find(&["directory"]).and_then(|entry| entry.value);
        let name = self.find(&["filename"]).and_then(|entry| entry.value);
        let Some(name) = name else {
            // fio makes a file named by the job there.
            return Ok(directory.map(|directory| format!("{directory}/{}.0.0", self.section.name)));
        };
        let plain = name.replace("\\:", "\u{0}");
        if plain.contains(':') {
            return self.wrong("several files in one job are not offered", "write a job for each");
        }
        let name = plain.replace('\u{0}', ":");
        Ok(Some(match directory {
            Some(directory) if !name.starts_with('/') => format!("{directory}/{name}"),
            _ => name,
        }))
    }

    fn load(&mut self, engine: FioEngine, jobs: u32, notes: &mut Vec<String>) -> Answer<Load> {
        let (mix, random) = self.directions()?;
        let sizes = self.sizes()?;
        let sequential_percent = match self.value(&["percentage_random"], "0 to 100", percent)? {
            Some(random) => 100.0 - random,
            None if random => 0.0,
            None => 100.0,
        };
        if sequential_percent >= 100.0 && jobs > 1 {
            notes.push("the copies of a sequential job have a part of the range each".into());
        }
        let norandommap = self.find(&["norandommap"]).is_some();
        if sequential_percent < 100.0 && !norandommap {
            notes.push("random places are drawn anew each time (fio: norandommap=1)".into());
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
        let arrivals = self.arrivals(&sizes, notes)?;
        let runtime = self.value(&["runtime", "timeout"], "a time such as 60s", values::seconds)?;
        let time_based = self.switch("time_based")?;
        if time_based && runtime.is_none_or(|runtime| runtime == Time::ZERO) {
            return self.wrong("time_based needs a runtime", "add runtime=60");
        }
        let size = |text: &str| values::size(text);
        let start =
            self.value(&["offset"], "a size in bytes such as 1g", |text| match size(text)? {
                Size::Bytes(bytes) => Some(bytes),
                Size::Percent(_) => None,
            })?;
        Ok(Load {
            depth,
            mix,
            alignment: self.value(&["ba", "blockalign"], "a size such as 4k", values::bytes)?,
            sequential_percent,
            theta: self.theta()?,
            start_bytes: start.unwrap_or(0),
            length: self.value(&["size"], "a size such as 1g or 50%", size)?,
            io_bytes: self.value(&["io_size"], "a size such as 1g or 50%", size)?,
            requests: self.value(&["number_ios"], "a number", values::whole)?,
            runtime: runtime.filter(|runtime| *runtime > Time::ZERO),
            time_based,
            arrivals,
            sizes,
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

    fn arrivals(
        &mut self,
        sizes: &[BlockSize],
        notes: &mut Vec<String>,
    ) -> Answer<Option<Arrivals>> {
        let by_count = self.value(&["rate_iops"], "requests per second", values::whole)?;
        let by_bytes = self.value(&["rate"], "a rate such as 10m", values::bytes)?;
        let weights: f64 = sizes.iter().map(|size| size.weight).sum();
        let mean: f64 = sizes.iter().map(|s| s.size.0 as f64 * s.weight).sum::<f64>() / weights;
        let rate = match (by_count, by_bytes) {
            (Some(rate), _) => rate as f64,
            (None, Some(bytes)) => bytes as f64 / mean,
            (None, None) => return Ok(None),
        };
        let kind = match self.find(&["rate_process"]).and_then(|entry| entry.value).as_deref() {
            None | Some("linear") => ArrivalKind::Fixed,
            Some("poisson") => ArrivalKind::Poisson,
            Some(other) => {
                return self
                    .wrong(format!("`{other}` is no rate process"), "write linear or poisson");
            }
        };
        if rate <= 0.0 {
            return self.wrong("a rate of nothing", "write a rate above 0");
        }
        notes.push(
            "the rate is that of arrivals: they come whether or not the target keeps up, and \
             latency counts from the arrival"
                .into(),
        );
        Ok(Some(Arrivals { kind, rate: Some(rate), mean_gap: None, length: None, interval: None }))
    }
}

fn percent(text: &str) -> Option<f64> {
    let value: f64 = text.trim_end_matches('%').trim().parse().ok()?;
    (0.0..=100.0).contains(&value).then_some(value)
}
