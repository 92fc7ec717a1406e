//! How a paper is re-run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ssdyno_session::Failure;

use crate::cache::RunsProgress;
use crate::{RunCache, Selector};

/// Endings under which a trace is looked for in [`PapersOptions::trace_directory`].
const ENDINGS: [&str; 5] = ["", ".gz", ".zst", ".xz", ".bz2"];

/// How a paper is re-run.
#[derive(Clone, Debug, Default)]
pub struct PapersOptions {
    /// Trace files by name, as `--trace NAME=FILE` gives them.
    pub traces: BTreeMap<String, PathBuf>,
    /// Drive files by name, as `--device NAME=FILE` gives them, for `disks`.
    pub devices: BTreeMap<String, PathBuf>,
    /// Where `NAME.trace`, possibly compressed, is looked for when no file was given.
    pub trace_directory: Option<PathBuf>,
    /// Seed of whatever is random. Nothing in S3 is: its generator has its own seeds.
    pub seed: u64,
    /// Runs at most so many requests each: a glance, whose cells are not expected to match.
    pub requests: Option<u64>,
    /// For which claims assumed values are varied.
    pub vary: Vary,
    /// Simulations side by side; `None`: one for each core.
    pub threads: Option<usize>,
    /// Measures S4's experiments over a network, which is made on this machine. Needs Linux and root.
    pub hosts: Option<HostsOptions>,
    /// Where simulated runs are kept and found. What is measured on this machine is measured each time.
    pub cache: RunCache,
}

/// How S4's experiments over a network are measured.
#[derive(Clone, PartialEq, Debug)]
pub struct HostsOptions {
    /// The program that is started as a worker for each client: `ssdyno`.
    pub program: PathBuf,
    /// Its version.
    pub version: String,
    /// How long each load lasts, in s.
    pub seconds: f64,
    /// How often each load is carried out.
    pub repeats: u32,
}

/// For which claims values are varied that a paper does not print (`docs/claims.md`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Vary {
    /// For those that the paper's `assumptions.toml` names: the others do not depend on them.
    #[default]
    Listed,
    /// Each for every claim: slow.
    All,
    /// For none: quick, and claims that may depend on a value stay undecided.
    None,
}

impl PapersOptions {
    /// Adds the drive file `NAME=FILE`, to be held against the trace of that name.
    ///
    /// # Errors
    /// No `=`, or nothing before or behind it.
    pub fn add_device(&mut self, text: &str) -> Result<(), Failure> {
        match text.split_once('=') {
            Some((name, file)) if !name.is_empty() && !name.contains('/') && !file.is_empty() => {
                self.devices.insert(name.to_owned(), PathBuf::from(file));
                Ok(())
            }
            _ => Err(Failure::usage(format!("`--device {text}` is not NAME=FILE")).with_help(
                "give the file of a hard disk after the name, and add --trace NAME=FILE",
            )),
        }
    }

    /// The note of a glance: of a report whose `what` a run of full length would have to show.
    pub(crate) fn cut_short(&self, what: &str) -> Option<String> {
        self.requests.map(|_| format!("Runs were cut short by request: {what}."))
    }

    /// What is re-run, for people and for the times of its runs.
    pub(crate) fn label(&self, selector: &Selector) -> String {
        let (traces, devices) = (self.traces.keys(), self.devices.keys());
        // The label identifies the set of runs for the estimate of the remaining time. Other traces
        // make other runs, whose durations must not be mixed with these.
        let files: Vec<&str> = traces.chain(devices).map(String::as_str).collect();
        format!(
            "{selector} {:?} {:?} {:?} {files:?}",
            self.requests, self.vary, self.trace_directory
        )
    }

    /// The file of the trace called `name`, if there is one.
    pub(crate) fn trace(&self, name: &str) -> Option<PathBuf> {
        if let Some(path) = self.traces.get(name) {
            return Some(path.clone());
        }
        let directory = self.trace_directory.as_deref()?;
        let file = |ending| directory.join(format!("{name}.trace{ending}"));
        // The plain file comes first: it needs no decompression. Compressed traces of several GB
        // are common, so all usual endings are tried.
        ENDINGS.into_iter().map(file).find(|path: &PathBuf| Path::is_file(path))
    }
}

/// How far the simulations are.
#[derive(Clone, PartialEq, Debug)]
pub struct PapersProgress {
    /// Requests simulated, all runs together.
    pub done: u64,
    /// Requests to simulate, all runs together.
    pub of: u64,
    /// Runs under way.
    pub running: Vec<String>,
    /// All runs behind the report, where they are counted.
    pub runs: Option<RunsProgress>,
}

impl PapersProgress {
    /// `done` of `of` in a part of the work.
    pub(crate) fn part(done: u64, of: u64, running: Vec<String>) -> PapersProgress {
        PapersProgress { done, of, running, runs: None }
    }
}
