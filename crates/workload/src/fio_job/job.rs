//! From options to a job.

use std::path::Path;

use ssdyno_block::Time;

use super::ini;
use super::load::Load;
use super::options::OPTIONS;
use super::reader::{Answer, Purpose, Reader};
use super::values::{self, Size};
use super::{FioBatch, FioEnd, FioEngine, FioExit, FioJob, FioReplay, FioSync};
use crate::{TraceTiming, WorkloadError};

/// Reads the job file at `path`.
///
/// # Errors
/// The first broken, unknown, refused or contradictory option, with its line.
pub fn read_jobs(path: &Path) -> Result<Vec<FioJob>, WorkloadError> {
    read(path, Purpose::Load)
}

/// The jobs of the file at `path`.
pub(super) fn read(path: &Path, purpose: Purpose) -> Result<Vec<FioJob>, WorkloadError> {
    let sections = ini::read(path)?;
    let (mut group, mut set, mut exits) = (0, 0, false);
    let mut jobs: Vec<FioJob> = Vec::with_capacity(sections.len());
    for section in &sections {
        let line = section.line;
        let mut reader = Reader { path, section, line, si_prefixes: false, purpose };
        reader.si_prefixes = reader.has_si_prefixes()?;
        // A wall before the first job has no effect: there is nothing to wait for. A group for it
        // would be empty, and the group numbers would start at 1.
        let walled = reader.switch("stonewall")? || reader.switch("wait_for_previous")?;
        if reader.waits_for(&jobs, group)? || walled && !jobs.is_empty() {
            group += 1;
        }
        exits |= reader.exits()?;
        if (walled || reader.switch("new_group")?) && !jobs.is_empty() {
            set += 1;
        }
        jobs.push(FioJob { exit: FioExit { end: reader.exit_what()?, set }, ..reader.job(group)? });
    }
    // `exitall` in any section applies to the whole file, as in fio. This is known only after the
    // last section, so the ends are corrected at the end.
    if !exits {
        jobs.iter_mut().for_each(|job| job.exit.end = FioEnd::Itself);
    }
    Ok(jobs)
}

impl Reader<'_> {
    /// Whether the job begins when another job has ended (`wait_for`) and so opens a group: if the other job is all of
    /// the present `group`, this is the same.
    fn waits_for(&mut self, before: &[FioJob], group: u32) -> Answer<bool> {
        let Some(entry) = self.find(&["wait_for"]) else { return Ok(false) };
        let name = entry.value.unwrap_or_default();
        if name == "none" || name.is_empty() {
            return Ok(false);
        }
        let Some(other) = before.iter().rev().find(|job| job.name == name) else {
            return self.wrong(
                format!("wait_for does not name an earlier job: `{name}`"),
                "name a job that precedes this one",
            );
        };
        if other.group < group {
            return Ok(false);
        }
        if before.iter().any(|job| job.group == group && job.name != name) {
            return self.wrong(
                format!(
                    "jobs other than `{name}` run before this job, so it cannot wait for `{name}` alone"
                ),
                "use stonewall, which waits for all jobs before",
            );
        }
        Ok(true)
    }

    fn job(&mut self, group: u32) -> Answer<FioJob> {
        let mut notes = Vec::new();
        // A foreign engine explains its options.
        let engine = self.engine()?;
        self.check_names(&mut notes)?;
        let copies =
            self.value(&["numjobs"], "a number from 1 to 4096", values::whole_in(1..=4096))?;
        let mut load = self.load(engine, &mut notes)?;
        // The load keeps its lines: some values can be judged only when the size of the target is
        // known, and the error should still name the line of the option.
        load.lines.clone_from(&self.section.entries);
        let mut warnings = Vec::new();
        let buffered = self.buffered(engine, [&mut warnings, &mut notes])?;
        let batch = self.batch(&load)?;
        self.check_unlike(&load)?;
        let replay = self.replay(&load)?;
        // A start given as a share needs the size of the file, which does not exist yet. Only a
        // start in bytes adds to the size that the file must have.
        let start = match load.start {
            Some(Size::Bytes(bytes)) => bytes,
            _ => 0,
        };
        let (files, files_are_named, file_count) = self.files()?;
        let file_size_bytes = match (load.file_bytes, load.length) {
            (Some(bytes), _) => Some(bytes),
            (None, Some(Size::Bytes(bytes))) => {
                Some(bytes.div_ceil(u64::from(file_count)).saturating_add(start))
            }
            _ => None,
        };
        self.check_files(file_count, &load, &mut notes)?;
        let time = |text: &str| values::seconds(text);
        Ok(FioJob {
            name: self.section.name.clone(),
            files,
            files_are_named,
            file_count,
            file_size_bytes,
            engine,
            iopoll: self.switch("hipri")?,
            sqpoll: self.switch("sqthread_poll")?,
            sync: self.sync()?,
            buffered,
            invalidate: self.find(&["invalidate"]).is_none() || self.switch("invalidate")?,
            nowait: self.switch("nowait")?,
            batch,
            replay,
            buffer: self.buffer()?,
            copies: copies.unwrap_or(1) as u32,
            cores: self
                .value(&["cpus_allowed"], "a list of cores such as 0-3,6", values::cores)?
                .unwrap_or_default(),
            split_cores: self.splits_cores()?,
            copies_as_one: self.switch("group_reporting")?,
            group,
            exit: FioExit::default(),
            start_delay: self
                .value(&["startdelay", "start_delay"], "a time such as 5s", time)?
                .unwrap_or(Time::ZERO),
            ramp: self.value(&["ramp_time"], "a time such as 5s", time)?.unwrap_or(Time::ZERO),
            seed: self.value(&["randseed"], "a number", values::whole)?,
            warnings,
            notes,
            options: self
                .section
                .entries
                .iter()
                .map(|e| (e.key.clone(), e.value.clone()))
                .collect(),
            at: (self.path.to_owned(), self.section.line),
            load,
        })
    }

    /// Whether requests go through the page cache. Where the job does not say it, they would in fio; here
    /// they go past it, and a warning says so.
    fn buffered(
        &mut self,
        engine: FioEngine,
        [warnings, notes]: [&mut Vec<String>; 2],
    ) -> Answer<bool> {
        let told = self.find(&["buffered", "direct"]);
        let told = told.map(|entry| entry.key);
        let buffered = match told.as_deref() {
            Some("buffered") => self.switch("buffered")?,
            Some(_) => !self.switch("direct")?,
            // fio's default is the page cache. Here the default is direct I/O, as S4-3 asks for a
            // benchmark that bypasses the cache; the warning below prevents a silent difference.
            None => false,
        };
        if told.is_none() && engine != FioEngine::Null {
            warnings.push(
                "requests bypass the page cache (direct=1): the job does not set `direct`, and fio would use the page cache (direct=0)"
                    .into(),
            );
        }
        let buffered = buffered && engine != FioEngine::Null;
        if buffered && self.switch("fadvise_hint")? {
            let what = "the page cache gets no hints (fadvise_hint)";
            return self.wrong(what, "set fadvise_hint=0");
        }
        if buffered && self.find(&["fadvise_hint"]).is_none() {
            notes.push(
                "the page cache gets no hint whether requests are random (fio: fadvise_hint)"
                    .into(),
            );
        }
        Ok(buffered)
    }

    /// How many requests go at a time.
    fn batch(&mut self, load: &Load) -> Answer<Option<FioBatch>> {
        let number = |text: &str| values::whole(text).and_then(|number| u32::try_from(number).ok());
        let submit =
            self.value(&["iodepth_batch", "iodepth_batch_submit"], "a number of requests", number)?;
        let names = ["iodepth_batch_complete", "iodepth_batch_complete_min"];
        let complete = self.value(&names, "a number of requests", number)?;
        // Polling is a setting of the whole run here and not of a job. The error names the setting
        // instead of quietly waiting for an interrupt.
        if complete == Some(0) {
            let what = "the job polls for completions all the time";
            return self.wrong(what, "leave it out, and run with `--wait spin`");
        }
        if complete.is_some_and(|complete| complete > load.depth) {
            let what = "more completions than the iodepth";
            return self.wrong(what, "give at most the iodepth");
        }
        if submit.is_none() && complete.is_none() {
            return Ok(None);
        }
        // As in fio: one where nothing is said, all for 0.
        let submit = submit.map_or(1, |submit| if submit == 0 { u32::MAX } else { submit });
        Ok(Some(FioBatch { complete: complete.unwrap_or(1), submit }))
    }

    /// The recording that the job replays.
    fn replay(&mut self, load: &Load) -> Answer<Option<FioReplay>> {
        let Some(entry) = self.find(&["read_iolog"]) else { return Ok(None) };
        let path = entry.value.unwrap_or_default();
        // fio accepts lists with colons and standard input. A stream from standard input cannot be
        // replayed by a second copy or repeated later.
        if path.is_empty() || path == "-" || path.contains(':') {
            let what = "`read_iolog` does not name exactly one file";
            return self.wrong(what, "name one recording, with a job for each");
        }
        if self.value(&["numjobs"], "a number", values::whole)?.is_some_and(|jobs| jobs > 1) {
            return self.wrong("several copies of a recording", "set numjobs=1");
        }
        let percent = values::whole_in(1..);
        let scale = self.value(&["replay_time_scale"], "a share in percent, above 0", percent)?;
        let timing = match (self.switch("replay_no_stall")?, scale) {
            (true, _) => TraceTiming::AsFastAsPossible { depth: load.depth },
            // As fio: at 50 % it takes twice as long.
            (false, Some(percent)) if percent != 100 => TraceTiming::Scaled(100.0 / percent as f64),
            (false, _) => TraceTiming::Original,
        };
        Ok(Some(FioReplay { path: path.into(), timing, depth: load.depth }))
    }

    fn sync(&mut self) -> Answer<FioSync> {
        let Some(entry) = self.find(&["sync"]) else { return Ok(FioSync::None) };
        match entry.value.as_deref() {
            Some("0" | "none") => Ok(FioSync::None),
            Some("1" | "sync") | None => Ok(FioSync::Whole),
            Some("dsync") => Ok(FioSync::Data),
            _ => self.wrong("`sync` is unknown", "use none, sync or dsync"),
        }
    }

    fn splits_cores(&mut self) -> Answer<bool> {
        let Some(entry) = self.find(&["cpus_allowed_policy"]) else { return Ok(false) };
        match entry.value.as_deref() {
            Some("shared") => Ok(false),
            Some("split") => Ok(true),
            _ => self.wrong("`cpus_allowed_policy` is unknown", "use shared or split"),
        }
    }

    /// Every option must be known; those without effect are named once.
    fn check_names(&mut self, notes: &mut Vec<String>) -> Answer<()> {
        let mut without: Vec<&str> = Vec::new();
        let verifies = self.purpose == Purpose::Verify;
        if verifies {
            self.check_verify()?;
        }
        for entry in &self.section.entries {
            self.line = entry.line;
            let key = entry.key.as_str();
            // Switched off is as good as not written.
            // Many shared job files contain `verify=0` or `cmdprio=0` from a template. Rejecting
            // them would reject files whose load is fully supported.
            let off = matches!(entry.value.as_deref(), Some("0" | "none" | "false"));
            if verifies && OPTIONS.verified.contains(key) {
                continue;
            }
            if let Some(help) = OPTIONS.refusal(key) {
                if !off {
                    return self.wrong(format!("fio's option `{key}` is not supported"), help);
                }
            } else if OPTIONS.without_effect.contains(key) {
                if !without.contains(&key) {
                    without.push(key);
                }
            } else if !OPTIONS.used.contains(key) {
                let help = "remove it, or tell us what you use it for";
                return self.wrong(format!("fio's option `{key}` is not known"), help);
            }
        }
        if !without.is_empty() {
            notes.push(format!("fio options without effect here: {}", without.join(", ")));
        }
        Ok(())
    }

    /// A job that is to be checked says so.
    fn check_verify(&mut self) -> Answer<()> {
        let method = self.text("verify");
        if method.is_none_or(|method| method == "0" || method == "none") {
            return self.wrong("the job has no verify", "add verify=crc32c");
        }
        if self.find(&["do_verify"]).is_some() && !self.switch("do_verify")? {
            return self.wrong("do_verify=0 writes without checking", "leave it out");
        }
        Ok(())
    }

    fn engine(&mut self) -> Answer<FioEngine> {
        let Some(entry) = self.find(&["ioengine"]) else { return Ok(FioEngine::Synchronous) };
        match entry.value.as_deref().unwrap_or_default() {
            "sync" | "psync" | "vsync" | "pvsync" | "pvsync2" => Ok(FioEngine::Synchronous),
            "io_uring" | "libaio" | "posixaio" => Ok(FioEngine::Asynchronous),
            "io_uring_cmd" => self.passthrough(),
            "null" => Ok(FioEngine::Null),
            other => self.wrong(
                format!("fio's engine `{other}` is not supported"),
                "use io_uring, psync or null; networked and special targets are not supported yet",
            ),
        }
    }

    /// Commands that go to an NVMe drive as they are.
    fn passthrough(&mut self) -> Answer<FioEngine> {
        let kind = self.text("cmd_type");
        if kind.as_deref().is_some_and(|kind| kind != "nvme") {
            return self.wrong("`cmd_type` is not nvme", "set cmd_type=nvme");
        }
        Ok(FioEngine::Passthrough)
    }
}
