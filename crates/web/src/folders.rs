//! The folders of results, as a list.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use ssdyno_block::counted;
use ssdyno_figures::{RepeatedRuns, RunResult};
use ssdyno_session::{Failure, files};

use crate::answer::Refused;
use crate::view::unix_ms;

/// A file whose name is longer or larger is not one of ours.
const RESULT_BYTES_MAX: u64 = 64 << 20;

/// The rows of a run, and of a sweep, that goes on or was killed.
const ROWS_FILES: [&str; 2] = ["requests.rows", "sweep.jsonl"];

/// The kind of the result in a folder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FolderKind {
    Run,
    /// Runs of a plan.
    Plan,
    Pts,
    Profile,
    Sweep,
    Verify,
    Probe,
    Comparison,
    /// One load several times (`run --runs`).
    Repeat,
    Papers,
    /// There is no result: a run goes on elsewhere, or its program was killed.
    Unfinished,
    /// A kind that this version does not know.
    #[default]
    Other,
}

/// One folder in the list.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct FolderEntry {
    folder: String,
    kind: FolderKind,
    /// Whether there is a `report.html`.
    has_report: bool,
    target: Option<String>,
    workload: Option<String>,
    iops: Option<f64>,
    throughput_bytes_per_second: Option<f64>,
    p50_ns: Option<f64>,
    p99_ns: Option<f64>,
    energy_joules: Option<f64>,
    requests: Option<u64>,
    partial: bool,
    hosts: usize,
    unix_ms: u64,
}

/// The parts of `result.json` in the list.
#[derive(Deserialize)]
struct Headline {
    target: String,
    workload: String,
    iops: f64,
    throughput_bytes_per_second: f64,
    requests: u64,
    #[serde(default)]
    partial: bool,
    #[serde(default)]
    latency_ns: Option<Percentiles>,
    #[serde(default)]
    energy_joules: Option<Energy>,
    #[serde(default)]
    hosts: Vec<IgnoredAny>,
}

/// The entry of one load that ran several times: means over its runs.
fn repeat_entry(all: &RepeatedRuns, other: FolderEntry) -> FolderEntry {
    let mean = |name: &str| Some(all.figures.iter().find(|one| one.figure == name)?.mean);
    let first = all.runs.first();
    let runs = counted(all.runs.len() as u64, "run", "runs");
    FolderEntry {
        kind: FolderKind::Repeat,
        target: first.map(|run| run.target.clone()),
        workload: first.map(|run| format!("{}, {runs}", run.workload)),
        iops: mean("iops"),
        throughput_bytes_per_second: mean("throughput_bytes_per_second"),
        p50_ns: mean("latency_ns.p50"),
        p99_ns: mean("latency_ns.p99"),
        requests: Some(all.runs.iter().map(|run| run.requests).sum()),
        partial: all.runs.len() < all.asked as usize,
        ..other
    }
}

/// Its keys from another result, and the keys that show its kind.
#[derive(Default, Deserialize)]
#[serde(default)]
struct OtherHeadline {
    target: Option<String>,
    partial: bool,
    steps: Option<IgnoredAny>,
    parts: Option<IgnoredAny>,
    curves: Option<IgnoredAny>,
    findings: Option<IgnoredAny>,
    designs: Option<IgnoredAny>,
    samples: Option<IgnoredAny>,
    comparisons: Option<IgnoredAny>,
    claims: Option<IgnoredAny>,
}

impl OtherHeadline {
    fn kind(&self) -> FolderKind {
        let kinds = [
            (&self.steps, FolderKind::Plan),
            (&self.parts, FolderKind::Pts),
            (&self.curves, FolderKind::Profile),
            (&self.designs, FolderKind::Sweep),
            (&self.findings, FolderKind::Verify),
            (&self.samples, FolderKind::Probe),
            (&self.comparisons, FolderKind::Comparison),
            (&self.claims, FolderKind::Papers),
        ];
        let found = kinds.iter().find(|(key, _)| key.is_some());
        found.map_or(FolderKind::Other, |(_, kind)| *kind)
    }
}

#[derive(Deserialize)]
struct Percentiles {
    p50: f64,
    p99: f64,
}

// The list reads every result of the folder. A file of another program
// with the same name could be of any size.
#[derive(Deserialize)]
struct Energy {
    total: Option<f64>,
}

/// The list, which reads each file once.
#[derive(Debug, Default)]
pub(crate) struct FolderList {
    read: Mutex<BTreeMap<PathBuf, (SystemTime, FolderEntry)>>,
}

impl FolderList {
    /// The folders with a result in `base`, and those of runs without a result, newest first. `current` is that of the
    /// run that goes on here, which has no result yet.
    pub(crate) fn entries(&self, base: &Path, current: Option<&str>) -> Vec<FolderEntry> {
        let mut known = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut found, mut unfinished) = (BTreeMap::new(), Vec::new());
        // A folder that does not exist yet has no results. It is made by the first run, and
        // an error here would greet every new user.
        for entry in fs::read_dir(base).into_iter().flatten().flatten() {
            let file = entry.path().join("result.json");
            let Ok(folder) = entry.file_name().into_string() else { continue };
            let Ok(meta) = fs::metadata(&file) else {
                if current != Some(&folder) {
                    unfinished.extend(unfinished_entry(&entry.path(), folder));
                }
                continue;
            };
            let Ok(changed) = meta.modified() else { continue };
            if !meta.is_file() || meta.len() > RESULT_BYTES_MAX {
                continue;
            }
            // A result is parsed again only if its file changed. A folder may hold thousands of
            // results, and the page asks for the list often.
            let before = known.remove(&file).filter(|(when, _)| *when == changed);
            let entry = before.map_or_else(|| read_entry(&file, folder, changed), |(_, old)| old);
            found.insert(file, (changed, entry));
        }
        // The new map replaces the old one, so entries of removed
        // folders do not stay in memory.
        *known = found;
        let mut entries: Vec<FolderEntry> =
            known.values().map(|(_, one)| one.clone()).chain(unfinished).collect();
        entries.sort_by(|a, b| (b.unix_ms, &a.folder).cmp(&(a.unix_ms, &b.folder)));
        entries
    }
}

/// The folder of a run that left no result: it is empty, or has a file with the rows.
fn unfinished_entry(path: &Path, folder: String) -> Option<FolderEntry> {
    let mut files = fs::read_dir(path).ok()?.flatten();
    // A folder that belongs to somebody else may lie here, too. Only an empty one
    // or one with rows looks like a run of ours.
    let is_ours = ROWS_FILES.iter().any(|name| path.join(name).is_file()) || files.next().is_none();
    let changed = fs::metadata(path).and_then(|meta| meta.modified()).ok()?;
    let unix_ms = unix_ms(changed);
    is_ours.then(|| FolderEntry {
        folder,
        kind: FolderKind::Unfinished,
        unix_ms,
        ..FolderEntry::default()
    })
}

fn read_entry(file: &Path, folder: String, changed: SystemTime) -> FolderEntry {
    let has_report = file.with_file_name("report.html").is_file();
    let unix_ms = unix_ms(changed);
    let other = FolderEntry { folder, has_report, unix_ms, ..FolderEntry::default() };
    let text = fs::read(file).unwrap_or_default();
    // Other kinds of results lack the keys of a run. They are
    // recognised by a key that only one kind has.
    let Ok(head) = serde_json::from_slice::<Headline>(&text) else {
        if let Ok(all) = serde_json::from_slice::<RepeatedRuns>(&text) {
            return repeat_entry(&all, other);
        }
        let head: OtherHeadline = serde_json::from_slice(&text).unwrap_or_default();
        let kind = head.kind();
        return FolderEntry { kind, target: head.target, partial: head.partial, ..other };
    };
    FolderEntry {
        kind: FolderKind::Run,
        target: Some(head.target),
        workload: Some(head.workload),
        iops: Some(head.iops),
        throughput_bytes_per_second: Some(head.throughput_bytes_per_second),
        p50_ns: head.latency_ns.as_ref().map(|latency| latency.p50),
        p99_ns: head.latency_ns.as_ref().map(|latency| latency.p99),
        energy_joules: head.energy_joules.and_then(|energy| energy.total),
        requests: Some(head.requests),
        partial: head.partial,
        hosts: head.hosts.len(),
        ..other
    }
}

/// A file of a folder in `base`. Names that lead elsewhere are of no folder.
pub(crate) fn path_of(base: &Path, folder: &str, file: &str) -> Result<PathBuf, Refused> {
    // One normal component only: `..`, an absolute path, or a slash in an encoded
    // name would lead out of the folder of results.
    let is_plain = |name: &str| {
        let mut parts = Path::new(name).components();
        matches!(parts.next(), Some(std::path::Component::Normal(_))) && parts.next().is_none()
    };
    let path = base.join(folder).join(file);
    if !is_plain(folder) || !is_plain(file) || !path.is_file() {
        return Err(Refused::absent(format!("there is no {file} of a run `{folder}`")));
    }
    Ok(path)
}

/// The result in a folder.
pub(crate) fn result_of(base: &Path, folder: &str) -> Result<RunResult, Refused> {
    let path = path_of(base, folder, "result.json")?;
    let text = files::read_text(&path.display().to_string())?;
    serde_json::from_str(&text).map_err(|error| {
        Failure::usage(format!("{folder} is not the result of a run: {error}"))
            .with_help("compare two runs")
            .into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_has_whole_folders_newest_first() {
        let base = tempfile::tempdir().unwrap();
        let write = |folder: &str, text: &str| {
            fs::create_dir(base.path().join(folder)).unwrap();
            fs::write(base.path().join(folder).join("result.json"), text).unwrap();
        };
        let result = RunResult { target: "sim:x".to_owned(), iops: 5.0, ..RunResult::default() };
        write("run", &serde_json::to_string(&result).unwrap());
        write("profile", "{\"method\": \"serra\", \"curves\": []}");
        write("plan", "{\"plan\": \"x\", \"partial\": true, \"steps\": []}");
        let repeated = RepeatedRuns {
            name: "sim:x".to_owned(),
            asked: 3,
            runs: vec![result.clone(), result],
            ..RepeatedRuns::default()
        };
        write("repeat", &serde_json::to_string(&repeated).unwrap());
        write("foreign", "[1]");
        write("broken", "{");
        for (folder, file) in [("killed", "requests.rows"), ("pictures", "a.png"), ("here", "")] {
            fs::create_dir(base.path().join(folder)).unwrap();
            if !file.is_empty() {
                fs::write(base.path().join(folder).join(file), "x").unwrap();
            }
        }
        fs::create_dir(base.path().join("empty")).unwrap();
        fs::write(base.path().join("run/report.html"), "x").unwrap();
        let list = FolderList::default();
        let kinds: BTreeMap<String, FolderKind> = list
            .entries(base.path(), Some("here"))
            .into_iter()
            .map(|e| (e.folder, e.kind))
            .collect();
        let expected = [
            ("broken", FolderKind::Other),
            ("empty", FolderKind::Unfinished),
            ("foreign", FolderKind::Other),
            ("killed", FolderKind::Unfinished),
            ("plan", FolderKind::Plan),
            ("profile", FolderKind::Profile),
            ("repeat", FolderKind::Repeat),
            ("run", FolderKind::Run),
        ];
        assert_eq!(kinds, expected.map(|(name, kind)| (name.to_owned(), kind)).into());
        let entries = list.entries(base.path(), None);
        assert!(entries.windows(2).all(|two| two[0].unix_ms >= two[1].unix_ms));
        let run = entries.iter().find(|entry| entry.kind == FolderKind::Run).unwrap();
        assert_eq!((run.target.as_deref(), run.iops), (Some("sim:x"), Some(5.0)));
        let repeat = entries.iter().find(|entry| entry.kind == FolderKind::Repeat).unwrap();
        assert_eq!((repeat.target.as_deref(), repeat.partial), (Some("sim:x"), true));
        assert_eq!(entries.iter().filter(|entry| entry.has_report).count(), 1);
        assert!(list.entries(Path::new("/nowhere"), None).is_empty());
    }

    #[test]
    fn nothing_outside_the_folder_is_given() {
        let base = tempfile::tempdir().unwrap();
        fs::create_dir_all(base.path().join("results/run")).unwrap();
        fs::write(base.path().join("secret"), "x").unwrap();
        fs::write(base.path().join("results/run/result.json"), "{}").unwrap();
        let results = base.path().join("results");
        assert!(path_of(&results, "run", "result.json").is_ok());
        for (folder, file) in [
            ("..", "secret"),
            ("run", "../../secret"),
            (".", "secret"),
            ("", "x"),
            ("/etc", "passwd"),
            ("run/..", "x"),
        ] {
            assert!(path_of(&results, folder, file).is_err(), "{folder} {file}");
        }
    }
}
