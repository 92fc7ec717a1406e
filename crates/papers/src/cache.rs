//! Runs on the disk: kept as they end, and found by the next start of the same program.
//!
//! A run is found by a hash of everything that decides it, in a folder of the program that made it. A file has a head on
//! its first line and the result on its second. What cannot be read, or is not what was written, is run again.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;
use std::time::{Instant, SystemTime};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use ssdyno_session::{Failure, FailureKind, ResultFolder};

/// Changes when files of an older form cannot be read any more.
const CACHE_VERSION: u32 = 1;

/// Folders of builds that stay: enough to compare two programs, and the one that is being changed.
const BUILDS_KEPT: usize = 3;

/// Digits of a hash in the name of a file: as good as unique among all runs that anybody makes.
const DIGITS: usize = 32;

/// Runs of papers that have ended, on the disk or only counted. Clones are the same cache.
///
/// Without a directory (the default) nothing is kept; how far the runs are is known all the same.
#[derive(Clone, Debug, Default)]
pub struct RunCache(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    store: Option<Store>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct Store {
    /// How long runs took, whichever program made them.
    base: ResultFolder,
    /// The runs of this program.
    runs: ResultFolder,
    build: String,
    fresh: bool,
}

/// How far the runs of a paper are.
#[derive(Debug, Default)]
struct State {
    label: String,
    threads: usize,
    /// Seconds that runs took the last time, by identifier.
    last: Times,
    planned: BTreeSet<String>,
    /// Seconds of those that have ended.
    done: BTreeMap<String, f64>,
    cached: u64,
    kept: u64,
    notes: Vec<String>,
    /// Runs that were made now, and their seconds.
    ran: u64,
    ran_seconds: f64,
    /// Seconds of those of them that were made the last time, too: now and then.
    now_and_then: [f64; 2],
    /// Seconds, by the last time, of what has not ended; and how many of those it did not have.
    open_seconds: f64,
    open_unknown: u64,
    /// When each thread ended its last run.
    laps: HashMap<ThreadId, Instant>,
    begun: Option<Instant>,
}

/// How long the runs behind one command took.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Times {
    /// Whether these are all runs of the command: it was not interrupted.
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

/// What decides a run, hashed.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct RunId(String);

impl RunId {
    /// Of a run of `kind` that nothing but `what` decides.
    pub(crate) fn new(kind: &str, what: &impl Serialize) -> Result<RunId, serde_json::Error> {
        serde_json::to_string(&(kind, what)).map(|text| RunId(short_hash(&text)))
    }
}

/// How far all runs behind a report are.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RunsProgress {
    /// Those that have ended.
    pub done: u64,
    /// Those that are known of.
    pub of: u64,
    /// Those of `done` that were kept by an earlier start.
    pub cached: u64,
    /// True if `of` may still rise: which assumed values are tried follows from answers, and no earlier start was whole.
    pub more_may_come: bool,
    /// What those that are known of will still take, in s, by the time that others took; `None` before one has ended.
    pub seconds_left: Option<f64>,
}

/// What a cache did for a paper.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CacheCounts {
    /// Runs behind the report that have ended.
    pub ended: u64,
    /// Those of them that were on the disk.
    pub cached: u64,
    /// Those of them that are on the disk now.
    pub kept: u64,
    /// Files that could not be used or written, a sentence each.
    pub notes: Vec<String>,
}

impl RunCache {
    /// Runs in `directory`, made by the program that `build` names: any other program must have another name, also
    /// where only its source differs. `version` makes the name of its folder readable. `fresh`: runs that are there are
    /// made again, and replaced.
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
            let message = format!("cannot make {}: {error}", runs.display());
            Failure::new(FailureKind::Unwritable, message)
                .with_help("choose another place with `--results`, or `--keep none`")
        })?;
        forget_old_builds(directory, &runs);
        let store = Store {
            base: ResultFolder::open(directory)?,
            runs: ResultFolder::open(&runs)?,
            build: build.to_owned(),
            fresh,
        };
        Ok(RunCache(Arc::new(Shared { store: Some(store), state: Mutex::default() })))
    }

    /// Where runs are kept, if they are.
    pub fn directory(&self) -> Option<&Path> {
        self.0.store.as_ref().map(|store| store.base.path())
    }

    /// What it did since a paper was begun.
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
        let open_seconds = last.seconds.values().sum();
        *self.state() = State { label, threads, last, open_seconds, ..State::default() };
    }

    /// They have ended; `whole`: all of them.
    pub(crate) fn end(&self, whole: bool) {
        let mut state = self.state();
        let Some(store) = self.0.store.as_ref().filter(|_| !state.done.is_empty()) else { return };
        let mut seconds = state.done.clone();
        if !whole {
            let last = state.last.seconds.iter().map(|(id, time)| (id.clone(), *time));
            for (id, time) in last {
                seconds.entry(id).or_insert(time);
            }
        }
        let times = Times { whole: whole || state.last.whole, seconds };
        let Ok(text) = serde_json::to_string(&times) else { return };
        if let Err(error) = store.base.write_texts([(times_file(&state.label), text.as_str())]) {
            state.note_once(format!("times of runs are not kept: {error}"));
        }
    }

    /// The run `id` will be looked for.
    pub(crate) fn plan(&self, id: &RunId) {
        self.state().plan(id);
    }

    /// The result of the run `id`, if it is there. The run counts as planned from now on.
    pub(crate) fn find<T: DeserializeOwned>(&self, id: &RunId) -> Option<T> {
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
        let mut state = self.state();
        state.laps.clear();
        state.begun = Some(Instant::now());
    }

    /// Keeps what the run `id` gave, which this thread made since its last one.
    pub(crate) fn keep<T>(&self, id: &RunId, name: &str, value: &T)
    where
        T: Serialize + DeserializeOwned + PartialEq,
    {
        let seconds = self.state().lap();
        self.state().ended(id, seconds, false);
        let Some(store) = &self.0.store else { return };
        match store.write(id, name, seconds, value) {
            Ok(()) => self.state().kept += 1,
            // The result is there; only the next start has to make it again.
            Err(problem) => self.state().note_once(format!("runs are not kept: {problem}")),
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
        if !own || head.id != id.0 {
            return Err("it is of another run".to_owned());
        }
        if head.sha256 != hash(value) {
            return Err("it is cut off or changed".to_owned());
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
            Ok(again) if again == *value => {}
            Ok(_) => return Err(format!("{name} is another one when it is read")),
            Err(error) => return Err(format!("{name} cannot be read again: {error}")),
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
            self.open_unknown += 1;
        }
    }

    fn ended(&mut self, RunId(id): &RunId, seconds: f64, cached: bool) {
        let last = self.last.seconds.get(id).copied();
        if !cached {
            self.ran += 1;
            self.ran_seconds += seconds;
            let [now, then] = &mut self.now_and_then;
            *now += last.map_or(0.0, |_| seconds);
            *then += last.unwrap_or(0.0);
        }
        // A variation may come down to a run that was made before.
        if self.done.insert(id.clone(), seconds).is_none() {
            self.cached += u64::from(cached);
            self.kept += u64::from(cached);
            match last {
                Some(last) => self.open_seconds -= last,
                None => self.open_unknown -= 1,
            }
        }
    }

    /// Seconds since this thread ended its last run, or since the first began: a run does not say what building its
    /// device took, which is most of it where the device is filled first.
    fn lap(&mut self) -> f64 {
        let now = Instant::now();
        let last = self.laps.insert(std::thread::current().id(), now).or(self.begun);
        last.map_or(0.0, |last| now.duration_since(last).as_secs_f64())
    }

    fn progress(&self) -> RunsProgress {
        let done = self.done.len() as u64;
        let of = self.last.seconds.len() as u64
            + self.planned.iter().filter(|id| !self.last.seconds.contains_key(*id)).count() as u64;
        let [now, then] = self.now_and_then;
        let pace = if then > 0.0 { now / then } else { 1.0 };
        let each = match (self.ran, self.last.seconds.len()) {
            (0, 0) => None,
            (0, n) => Some(self.last.seconds.values().sum::<f64>() / n as f64),
            (n, _) => Some(self.ran_seconds / n as f64),
        };
        let unknown = match self.open_unknown {
            0 => Some(0.0),
            n => each.map(|each| each * n as f64),
        };
        let known = self.open_seconds.max(0.0) * pace;
        let seconds_left = unknown.map(|unknown| (known + unknown) / self.threads.max(1) as f64);
        RunsProgress {
            done,
            of,
            cached: self.cached,
            more_may_come: !self.last.whole,
            seconds_left,
        }
    }

    fn unusable(&mut self, path: &Path, problem: impl std::fmt::Display) {
        self.notes.push(format!("{} cannot be used: {problem}; run again", path.display()));
    }

    /// What is wrong with one file is wrong with all, and there are hundreds.
    fn note_once(&mut self, note: String) {
        if !self.notes.iter().any(|known| known.starts_with("runs are not kept")) {
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
