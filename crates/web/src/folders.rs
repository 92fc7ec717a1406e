//! The folders of results, as a list.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use ssdyno_figures::RunResult;
use ssdyno_session::{Failure, files};

use crate::answer::Refused;

/// A file whose name is longer or larger is not one of ours.
const RESULT_BYTES_MAX: u64 = 64 << 20;

/// One folder in the list.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct FolderEntry {
    folder: String,
    /// `run`, or `other`: a profile, a comparison, a SNIA test, a verification, samples.
    kind: &'static str,
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

/// What of `result.json` the list has.
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
    hosts: Vec<serde::de::IgnoredAny>,
}

/// What it has of the result of another task.
#[derive(Default, Deserialize)]
struct OtherHeadline {
    #[serde(default)]
    target: Option<String>,
    #[serde(default)]
    partial: bool,
}

#[derive(Deserialize)]
struct Percentiles {
    p50: f64,
    p99: f64,
}

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
    /// The folders with a result in `base`, newest first.
    pub(crate) fn entries(&self, base: &Path) -> Vec<FolderEntry> {
        let mut known = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let mut found = BTreeMap::new();
        // A folder that is not there yet has no results.
        for entry in fs::read_dir(base).into_iter().flatten().flatten() {
            let file = entry.path().join("result.json");
            let Ok(meta) = fs::metadata(&file) else { continue };
            let Ok(changed) = meta.modified() else { continue };
            if !meta.is_file() || meta.len() > RESULT_BYTES_MAX {
                continue;
            }
            let Ok(folder) = entry.file_name().into_string() else { continue };
            let before = known.remove(&file).filter(|(when, _)| *when == changed);
            let entry = before.map_or_else(|| read_entry(&file, folder, changed), |(_, old)| old);
            found.insert(file, (changed, entry));
        }
        *known = found;
        let mut entries: Vec<FolderEntry> = known.values().map(|(_, one)| one.clone()).collect();
        entries.sort_by(|a, b| (b.unix_ms, &a.folder).cmp(&(a.unix_ms, &b.folder)));
        entries
    }
}

fn read_entry(file: &Path, folder: String, changed: SystemTime) -> FolderEntry {
    let unix_ms = changed.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64;
    let other = FolderEntry { folder, kind: "other", unix_ms, ..FolderEntry::default() };
    let text = fs::read(file).unwrap_or_default();
    let headline: Option<Headline> = serde_json::from_slice(&text).ok();
    let Some(Headline { target, workload, iops, .. }) = &headline else {
        let OtherHeadline { target, partial } = serde_json::from_slice(&text).unwrap_or_default();
        return FolderEntry { target, partial, ..other };
    };
    let (target, workload, iops) = (Some(target.clone()), Some(workload.clone()), Some(*iops));
    let Some(head) = headline else { return other };
    FolderEntry {
        kind: "run",
        target,
        workload,
        iops,
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
        write("profile", "{\"method\": \"serra\"}");
        write("broken", "{");
        fs::create_dir(base.path().join("unfinished")).unwrap();
        let list = FolderList::default();
        let kinds: BTreeMap<String, &str> =
            list.entries(base.path()).into_iter().map(|e| (e.folder, e.kind)).collect();
        let expected = [("broken", "other"), ("profile", "other"), ("run", "run")];
        assert_eq!(kinds, expected.map(|(name, kind)| (name.to_owned(), kind)).into());
        let entries = list.entries(base.path());
        assert!(entries.windows(2).all(|two| two[0].unix_ms >= two[1].unix_ms));
        let run = entries.iter().find(|entry| entry.kind == "run").unwrap();
        assert_eq!((run.target.as_deref(), run.iops), (Some("sim:x"), Some(5.0)));
        assert!(list.entries(Path::new("/nowhere")).is_empty());
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
