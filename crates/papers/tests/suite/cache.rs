//! Runs that are kept: what was interrupted goes on, and gives what an uninterrupted start gives.

use std::path::{Path, PathBuf};

use crate::common::rerun;
use ssdyno_papers::{
    CacheCounts, KeepGoing, PapersOptions, PapersReport, RunCache, RunSummary, Vary, run,
};

const SELECTOR: &str = "S1/claims/writes_look_faster";

/// Its runs: reads and writes of the SSD and of the disks, with five seeds each.
const RUNS: u64 = 4 * 5;

fn options(cache: RunCache) -> PapersOptions {
    PapersOptions { requests: Some(40), vary: Vary::None, cache, ..PapersOptions::default() }
}

fn open(place: &Path, build: &str) -> RunCache {
    RunCache::open(place, "1.0", build, false).unwrap()
}

fn counts(cache: &RunCache) -> (u64, u64, u64) {
    let CacheCounts { ended, cached, kept, .. } = cache.counts();
    (ended, cached, kept)
}

/// All of a report but the time on the wall, of which no two starts have the same.
fn without_wall(report: &PapersReport) -> String {
    let still = |run: &RunSummary| RunSummary { wall_seconds: 0.0, ..run.clone() };
    let runs = report.runs.iter().map(still).collect();
    serde_json::to_string(&PapersReport { runs, ..report.clone() }).unwrap()
}

fn json(report: &PapersReport) -> String {
    serde_json::to_string(report).unwrap()
}

/// The files of runs.
fn files(place: &Path) -> Vec<PathBuf> {
    let below = |path: &Path| -> Vec<PathBuf> {
        path.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect()
    };
    let folders = below(place).into_iter().filter(|path| path.is_dir());
    let mut files: Vec<PathBuf> = folders.flat_map(|folder| below(&folder)).collect();
    files.sort();
    files
}

#[test]
fn what_was_interrupted_goes_on_and_gives_the_same() {
    let whole = rerun(SELECTOR, &options(RunCache::default()));
    let place = tempfile::tempdir().unwrap();
    let first = open(place.path(), "a");
    let one = PapersOptions { threads: Some(1), ..options(first.clone()) };
    let cut = run(SELECTOR, &one, &mut |p| match p.runs {
        Some(runs) if runs.done >= 3 => KeepGoing::Stop,
        _ => KeepGoing::Continue,
    });
    assert!(cut.unwrap().partial);
    let (ended, cached, kept) = counts(&first);
    assert!((3..RUNS).contains(&ended) && cached == 0 && kept == ended, "{ended} {kept}");
    assert_eq!(files(place.path()).len() as u64, kept);

    let second = open(place.path(), "a");
    let went_on = rerun(SELECTOR, &options(second.clone()));
    assert_eq!(counts(&second), (RUNS, kept, RUNS));
    assert_eq!(without_wall(&went_on), without_wall(&whole));

    // Byte by byte, with the time on the wall of the runs as they were made.
    let third = open(place.path(), "a");
    let again = rerun(SELECTOR, &options(third.clone()));
    assert_eq!(counts(&third), (RUNS, RUNS, RUNS));
    assert_eq!(json(&again), json(&went_on));
    assert!(third.counts().notes.is_empty(), "{:?}", third.counts());
}

#[test]
fn damaged_files_are_noted_and_their_runs_made_again() {
    let place = tempfile::tempdir().unwrap();
    let whole = rerun(SELECTOR, &options(open(place.path(), "a")));
    let files = files(place.path());
    let text = std::fs::read_to_string(&files[0]).unwrap();
    std::fs::write(&files[0], &text[..text.len() / 2]).unwrap();
    std::fs::write(&files[1], "").unwrap();
    // Another digit is still JSON.
    let text = std::fs::read_to_string(&files[2]).unwrap();
    let (head, value) = text.split_once('\n').unwrap();
    let changed = value.replacen("\"requests\":40", "\"requests\":41", 1);
    assert_ne!(changed, value);
    std::fs::write(&files[2], format!("{head}\n{changed}")).unwrap();
    // The file of another run under this one's name.
    std::fs::copy(&files[4], &files[3]).unwrap();
    std::fs::write(&files[5], [0xff, 0xfe]).unwrap();

    let cache = open(place.path(), "a");
    let again = rerun(SELECTOR, &options(cache.clone()));
    assert_eq!(counts(&cache), (RUNS, RUNS - 5, RUNS));
    assert_eq!(cache.counts().notes.len(), 5, "{:?}", cache.counts().notes);
    assert_eq!(without_wall(&again), without_wall(&whole));
    let cache = open(place.path(), "a");
    rerun(SELECTOR, &options(cache.clone()));
    assert_eq!(counts(&cache), (RUNS, RUNS, RUNS), "what was damaged is whole again");
}

#[test]
fn nothing_is_found_by_another_build_with_another_option_or_fresh() {
    let place = tempfile::tempdir().unwrap();
    rerun(SELECTOR, &options(open(place.path(), "a")));
    let cached = |build: &str, fresh: bool, change: &dyn Fn(&mut PapersOptions)| {
        let cache = RunCache::open(place.path(), "1.0", build, fresh).unwrap();
        let mut options = options(cache.clone());
        change(&mut options);
        rerun(SELECTOR, &options);
        cache.counts().cached
    };
    assert_eq!(cached("b", false, &|_| {}), 0);
    assert_eq!(cached("a", true, &|_| {}), 0);
    assert_eq!(cached("a", false, &|options| options.requests = Some(39)), 0);
    assert_eq!(cached("a", false, &|options| options.seed = 1000), 0);
    // What does not decide a run: the number of threads.
    assert_eq!(cached("a", false, &|options| options.threads = Some(1)), RUNS);
}

/// The plan of the last start has the number of runs and their times.
#[test]
fn the_time_left_is_known_from_the_last_start() {
    let place = tempfile::tempdir().unwrap();
    let mut seen = Vec::new();
    for build in ["a", "b"] {
        let mut first = None;
        let options = options(open(place.path(), build));
        run(SELECTOR, &options, &mut |p| {
            first = first.or(p.runs);
            KeepGoing::Continue
        })
        .unwrap();
        seen.push(first.unwrap());
    }
    let [unknown, known] = seen[..] else { panic!("{seen:?}") };
    assert_eq!((unknown.of, unknown.more_may_come), (RUNS, true));
    assert_eq!((known.of, known.more_may_come), (RUNS, false));
    assert!(known.seconds_left.is_some_and(|left| left > 0.0), "{known:?}");
}

/// Not only of S1: points of the other papers are read as they were written.
#[test]
fn runs_of_other_papers_are_kept() {
    for selector in ["S0/mixed", "S4/figure7a"] {
        let place = tempfile::tempdir().unwrap();
        let first = open(place.path(), "a");
        let made = rerun(selector, &options(first.clone()));
        let (ended, _, kept) = counts(&first);
        assert!(ended > 0 && kept == ended, "{selector}: {:?}", first.counts());
        let second = open(place.path(), "a");
        assert_eq!(json(&rerun(selector, &options(second.clone()))), json(&made));
        assert_eq!(counts(&second), (ended, ended, ended));
    }
}

/// Each build of a developer finds no run of the one before: without an end the disk would fill.
#[test]
fn only_the_last_builds_are_kept() {
    let place = tempfile::tempdir().unwrap();
    let mine = ["notes-deadbeef", "1.0-deadbeefcafe.json"];
    std::fs::create_dir(place.path().join(mine[0])).unwrap();
    std::fs::write(place.path().join(mine[1]), "").unwrap();
    let folders = |place: &Path| -> Vec<PathBuf> {
        let paths = place.read_dir().unwrap().map(|entry| entry.unwrap().path());
        paths.filter(|path| path.is_dir()).collect()
    };
    for build in ["a", "b", "c", "d", "a"] {
        open(place.path(), build);
        // The order of the builds is that of their times, which a file system may round.
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert_eq!(folders(place.path()).len(), 3 + 1, "{:?}", folders(place.path()));
    assert!(mine.iter().all(|name| place.path().join(name).exists()));
    let last = open(place.path(), "a");
    assert!(last.directory().is_some() && folders(place.path()).len() == 4);
}
