//! Finished runs on the disk. The next start of the same program finds them there.
//!
//! A hash of everything that decides a run identifies it, in a folder of the program that made it. The first line of a file
//! is its head, the second line is the result. If a file is damaged, the run is repeated.

mod pace;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use ssdyno_session::{Failure, FailureKind, ResultFolder};

use pace::Pace;

/// Changes when files of an older form cannot be read any more.
const CACHE_VERSION: u32 = 1;

/// Number of builds whose folders are kept: two programs that are compared, and the program that is being changed.
const BUILDS_KEPT: usize = 3;

// 128 bits of SHA-256: with a million runs, the probability of two equal names is about 1e-27. The
// full length would only make the names longer.
/// Digits of a hash in the name of a file: two runs never have the same in practice.
const DIGITS: usize = 32;

/// Finished runs of papers, on the disk or only counted. Clones share one cache.
///
/// Without a directory (the default) the cache keeps no run. It still knows the progress of the runs.
#[derive(Clone, Debug, Default)]
pub struct RunCache(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    store: Option<Store>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct Store {
    /// Durations of runs, of all programs.
    base: ResultFolder,
    /// Runs of this program.
    runs: ResultFolder,
    build: String,
    fresh: bool,
}

/// The progress of the runs of a paper.
#[derive(Debug, Default)]
struct State {
    label: String,
    /// Durations in an earlier start.
    last: Times,
    pace: Pace,
    planned: BTreeSet<String>,
    /// Seconds of the finished runs.
    done: BTreeMap<String, f64>,
    cached: u64,
    kept: u64,
    notes: Vec<String>,
}

/// Durations of the runs of one command, by identifier.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Times {
    /// True if these are all runs of the command, because it was not interrupted.
    whole: bool,
    seconds: BTreeMap<String, f64>,
}

/// The first line of a file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    cache_version: u32,
    build: String,
    id: String,
    /// For people.
    name: String,
    seconds: f64,
    /// SHA-256 of the second line.
    sha256: String,
}

/// A hash of everything that decides a run.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct RunId(String);

impl RunId {
    /// The identifier of a run of `kind` that `what` alone decides.
    pub(crate) fn new(kind: &str, what: &impl Serialize) -> Result<RunId, serde_json::Error> {
        // The kind is part of the hash. Two kinds of runs may have the same parameters, and one
        // would read the result of the other.
        serde_json::to_string(&(kind, what)).map(|text| RunId(short_hash(&text)))
    }
}

/// The progress of all runs of a report.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RunsProgress {
    /// Number of finished runs.
    pub done: u64,
    /// Number of known runs.
    pub of: u64,
    /// Number of finished runs that an earlier start kept.
    pub cached: u64,
    /// True if `of` may still rise: the assumed values that are tried depend on results, and no earlier start was complete.
    pub more_may_come: bool,
    /// Seconds that the known runs still take, estimated from the durations of other runs; `None` before a run has ended.
    pub seconds_left: Option<f64>,
}

/// Counts of the runs of a paper.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CacheCounts {
    /// Finished runs of the report.
    pub ended: u64,
    /// Finished runs that were on the disk before.
    pub cached: u64,
    /// Finished runs that are on the disk now.
    pub kept: u64,
    /// A sentence for each file that could not be used or written.
    pub notes: Vec<String>,
}

impl RunCache {
    /// The runs in `directory` of the program that `build` names. Any other program must have another name, even if only its
    /// source differs. `version` makes the name of its folder readable. With `fresh`, runs on the disk are repeated and
    /// replaced.
    ///
    /// # Errors
    /// [`FailureKind::Unwritable`] where the directory cannot be made.
    pub fn open(
        directory: &Path,
        version: &str,
        build: &str,
        fresh: bool,
    ) -> Result<RunCache, Failure> {
        let short = short_hash(build);
        let runs = directory.join(format!("{version}-{}", &short[..12]));
        std::fs::create_dir_all(&runs).map_err(|error| {
            let message = format!("cannot create {}: {error}", runs.display());
            Failure::new(FailureKind::Unwritable, message)
                .with_help("choose another place with `--results`, or `--keep none`")
        })?;
        // The folder of this build is made first and is excluded by its path. Its time of change
        // could be older than that of other builds, and an age limit alone would remove it.
        forget_old_builds(directory, &runs);
        let store = Store {
            base: ResultFolder::open(directory)?,
            runs: ResultFolder::open(&runs)?,
            build: build.to_owned(),
            fresh,
        };
        Ok(RunCache(Arc::new(Shared { store: Some(store), state: Mutex::default() })))
    }

    /// The directory of the kept runs; `None` if runs are not kept.
    pub fn directory(&self) -> Option<&Path> {
        self.0.store.as_ref().map(|store| store.base.path())
    }

    /// The counts since the paper was begun.
    pub fn counts(&self) -> CacheCounts {
        let state = self.state();
        CacheCounts {
            ended: state.done.len() as u64,
            cached: state.cached,
            kept: state.kept,
            notes: state.notes.clone(),
        }
    }

    /// Removes the directories where nothing was kept: a command that is refused leaves nothing.
    pub fn remove_if_empty(&self) {
        let Some(store) = &self.0.store else { return };
        for folder in [&store.runs, &store.base] {
            // One that is not empty stays: this call does not remove it.
            // `remove_dir` fails for a directory with contents, which is the test. A look first and
            // a removal afterwards would race with another program that stores a run in between.
            let _ = std::fs::remove_dir(folder.path());
        }
    }

    /// The runs of what `label` names begin, so many side by side.
    pub(crate) fn begin(&self, label: String, threads: usize) {
        let read = |store: &Store| {
            let text = std::fs::read(store.base.path().join(times_file(&label))).ok()?;
            // Times are a help only: what is damaged is not known.
            serde_json::from_slice::<Times>(&text).ok()
        };
        let last = self.0.store.as_ref().and_then(read).unwrap_or_default();
        let pace = Pace::new(threads, &last);
        *self.state() = State { label, last, pace, ..State::default() };
    }

    /// They have ended; `whole`: all of them.
    pub(crate) fn end(&self, whole: bool) {
        let mut state = self.state();
        let Some(store) = self.0.store.as_ref().filter(|_| !state.done.is_empty()) else { return };
        let mut seconds = state.done.clone();
        // After an interruption, the times of the previous start are kept for runs that were not
        // reached. Without them, the next estimate would miss these runs.
        if !whole {
            let last = state.last.seconds.iter().map(|(id, time)| (id.clone(), *time));
            for (id, time) in last {
                seconds.entry(id).or_insert(time);
            }
        }
        let times = Times { whole: whole || state.last.whole, seconds };
        let Ok(text) = serde_json::to_string(&times) else { return };
        if let Err(error) = store.base.write_texts([(times_file(&state.label), text.as_str())]) {
            state.note_once(format!("cannot store the times of runs: {error}"));
        }
    }

    /// The run `id` will be looked for.
    pub(crate) fn plan(&self, id: &RunId) {
        self.state().plan(id);
    }

    /// The result of the run `id`, if it is there. The run counts as planned from now on.
    pub(crate) fn find<T: DeserializeOwned>(&self, id: &RunId) -> Option<T> {
        // A lookup plans the run. Claims ask for points while they are judged, and the total must
        // contain them before they are simulated.
        self.plan(id);
        let store = self.0.store.as_ref().filter(|store| !store.fresh)?;
        let path = store.file(id);
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
            Err(error) => {
                self.state().unusable(&path, error);
                return None;
            }
        };
        match store.read(id, &text) {
            Ok((head, value)) => {
                self.state().ended(id, head.seconds, true);
                Some(value)
            }
            Err(problem) => {
                self.state().unusable(&path, problem);
                None
            }
        }
    }

    /// Those that were planned begin now, side by side.
    pub(crate) fn start(&self) {
        self.state().pace.begin();
    }

    /// Keeps what the run `id` gave, which this thread made since its last one.
    pub(crate) fn keep<T>(&self, id: &RunId, name: &str, value: &T)
    where
        T: Serialize + DeserializeOwned + PartialEq,
    {
        // The lock is released before the file is written. A write under the lock would make all
        // other threads wait for the disk.
        let seconds = self.state().pace.lap();
        self.state().ended(id, seconds, false);
        let Some(store) = &self.0.store else { return };
        match store.write(id, name, seconds, value) {
            Ok(()) => self.state().kept += 1,
            // The result is there; only the next start has to make it again.
            Err(problem) => self.state().note_once(format!("cannot store runs: {problem}")),
        }
    }

    /// How far all runs are, if there are some.
    pub(crate) fn progress(&self) -> Option<RunsProgress> {
        let state = self.state();
        (!state.planned.is_empty()).then(|| state.progress())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Counts are whole between any two statements.
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store {
    fn file(&self, id: &RunId) -> PathBuf {
        self.runs.path().join(file_name(id))
    }

    fn read<T: DeserializeOwned>(&self, id: &RunId, text: &str) -> Result<(Head, T), String> {
        let (head, value) = text.split_once('\n').ok_or("it is cut off")?;
        let head: Head = serde_json::from_str(head).map_err(|error| error.to_string())?;
        let own = head.cache_version == CACHE_VERSION && head.build == self.build;
        // The name of the file is a hash, but the contents could be a copy of another file. The
        // head repeats the full identity, so a renamed file is not accepted.
        if !own || head.id != id.0 {
            return Err("it belongs to another run".to_owned());
        }
        if head.sha256 != hash(value) {
            return Err("it is truncated or was changed".to_owned());
        }
        let value = serde_json::from_str(value).map_err(|error| error.to_string())?;
        Ok((head, value))
    }

    /// Writes `value`, if exactly that is read again: a report must not depend on whether its runs were kept.
    fn write<T>(&self, id: &RunId, name: &str, seconds: f64, value: &T) -> Result<(), String>
    where
        T: Serialize + DeserializeOwned + PartialEq,
    {
        let text = serde_json::to_string(value).map_err(|error| error.to_string())?;
        match serde_json::from_str::<T>(&text) {
            // A float that loses a digit in JSON would give a slightly different report from the
            // cache. Such a run is not stored, so a report never depends on the cache.
            Ok(again) if again == *value => {}
            Ok(_) => return Err(format!("{name} differs when it is read back")),
            Err(error) => return Err(format!("{name} cannot be read back: {error}")),
        }
        let head = Head {
            cache_version: CACHE_VERSION,
            build: self.build.clone(),
            id: id.0.clone(),
            name: name.to_owned(),
            seconds,
            sha256: hash(&text),
        };
        let head = serde_json::to_string(&head).map_err(|error| error.to_string())?;
        let whole = format!("{head}\n{text}");
        let written = self.runs.write_texts([(file_name(id), whole.as_str())]);
        written.map(drop).map_err(|error| error.to_string())
    }
}

impl State {
    fn plan(&mut self, RunId(id): &RunId) {
        if self.planned.insert(id.clone()) && !self.last.seconds.contains_key(id) {
            self.pace.plan_unknown();
        }
    }

    fn ended(&mut self, RunId(id): &RunId, seconds: f64, cached: bool) {
        let last = self.last.seconds.get(id).copied();
        if !cached {
            self.pace.made(seconds, last);
        }
        // A variation may be equal to an earlier run.
        // A value that is varied back to its assumed level is the same run. It counts once, or the
        // progress would exceed the total.
        if self.done.insert(id.clone(), seconds).is_none() {
            self.cached += u64::from(cached);
            self.kept += u64::from(cached);
            self.pace.ended(last);
        }
    }

    fn progress(&self) -> RunsProgress {
        let known = &self.last.seconds;
        let new = self.planned.iter().filter(|id| !known.contains_key(*id)).count();
        RunsProgress {
            done: self.done.len() as u64,
            of: (known.len() + new) as u64,
            cached: self.cached,
            more_may_come: !self.last.whole,
            seconds_left: self.pace.seconds_left(&self.last),
        }
    }

    fn unusable(&mut self, path: &Path, problem: impl std::fmt::Display) {
        self.notes.push(format!("{} cannot be used: {problem}; run again", path.display()));
    }

    /// What is wrong with one file is wrong with all, and there are hundreds.
    fn note_once(&mut self, note: String) {
        if !self.notes.iter().any(|known| known.starts_with("cannot store")) {
            self.notes.push(note);
        }
    }
}

/// Removes the folders of all builds but the last [`BUILDS_KEPT`], `ours` among them. A build of a developer
/// finds nothing of the one before, and a whole S1 needs more than 100 MB.
fn forget_old_builds(directory: &Path, ours: &Path) {
    let Ok(entries) = std::fs::read_dir(directory) else { return };
    let mut builds: Vec<(SystemTime, PathBuf)> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path != ours && path.is_dir() && is_of_a_build(path))
        .filter_map(|path| Some((path.metadata().ok()?.modified().ok()?, path)))
        .collect();
    builds.sort_by(|one, other| other.cmp(one));
    for (_, path) in builds.into_iter().skip(BUILDS_KEPT - 1) {
        // A folder that stays costs space only.
        let _ = std::fs::remove_dir_all(path);
    }
}

/// True for the names that [`RunCache::open`] gives: a version and twelve digits of a hash. Nothing else in the
/// directory is removed.
fn is_of_a_build(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.rsplit_once('-').is_some_and(|(version, hash)| {
        let is_hash = hash.len() == 12 && hash.bytes().all(|digit| digit.is_ascii_hexdigit());
        // The user chooses the directory, and it can contain other folders. Only names of exactly
        // this form are removed, and nothing else in it.
        is_hash && version.starts_with(|first: char| first.is_ascii_digit())
    })
}

fn file_name(RunId(id): &RunId) -> String {
    format!("{id}.json")
}

fn times_file(label: &str) -> String {
    format!("times-{}.json", &short_hash(label)[..12])
}

fn hash(text: &str) -> String {
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn short_hash(text: &str) -> String {
    hash(text).chars().take(DIGITS).collect()
}
