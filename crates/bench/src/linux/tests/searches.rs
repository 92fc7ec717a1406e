//! Searches for a depth on real files. The speed of such targets is unknown, so the tests use targets on which every
//! depth, or none, meets the bound.

use ssdyno_workload::read_fio_jobs;

use super::*;

/// A target that half of the requests meet at any depth, on any machine.
const EASY: &str =
    "latency_target = \"50ms\"\nlatency_window = \"50ms\"\nlatency_percentile = 50.0";

/// What was tried, and how often.
fn tried(measured: &BenchMeasured) -> Vec<u64> {
    let [search] = &measured.result.depth_searches[..] else { panic!("one search") };
    search.tried.iter().map(|tried| tried.depth).collect()
}

/// Depths double up to the most that may be, which one more window confirms, and the last window is recorded alone: with the ring,
/// with threads that carry one request each, and where requests cost nothing.
#[test]
fn a_depth_that_always_meets_the_target_is_the_largest() {
    let directory = tempfile::tempdir_in("/var/tmp").unwrap();
    let name = file(directory.path(), 1 << 20);
    let ways =
        [("null:", EngineKind::Auto), (&name, EngineKind::Auto), (&name, EngineKind::Threads)];
    for (target, engine) in ways {
        let mut run = run(target, &format!("depth = 6\nramp_up = 50\n{EASY}"));
        run.options.engine = engine;
        let measured = measure(&run);
        let result = &measured.result;
        assert_eq!(tried(&measured), [1, 2, 4, 6, 6, 6], "{target} {engine:?}");
        let search = &result.depth_searches[0];
        assert_eq!((search.depth, search.met, search.depth_max), (6, true, 6));
        assert!(measured.failure.is_none() && !result.partial);
        // The figures exclude the search; they contain the requests of the last window and those outstanding at its
        // end.
        let last = search.tried.last().unwrap().requests;
        assert!((last..=last + 6).contains(&result.requests), "{} {last}", result.requests);
        assert_eq!(measured.recording.rows().unwrap().len() as u64, result.requests);
        assert!(result.simulated_seconds >= 0.05 && result.simulated_seconds < 5.0);
        let note = "latency_target: depth 6 was the greatest with 50 % of the requests in 50 ms";
        assert!(result.notes.iter().any(|told| told.starts_with(note)), "{:?}", result.notes);
    }
}

#[test]
fn a_target_that_no_depth_meets_ends_the_run_with_an_error() {
    let directory = tempfile::tempdir_in("/var/tmp").unwrap();
    let name = file(directory.path(), 1 << 20);
    let measured =
        measure(&run(&name, "depth = 4\nlatency_target = \"1ns\"\nlatency_window = \"1ms\""));
    let error = measured.failure.unwrap();
    assert!(matches!(error, BenchError::Workload(_)), "{error}");
    assert!(error.to_string().contains("no depth meets it"), "{error}");
    assert_eq!((measured.result.requests, measured.result.depth_searches[0].met), (0, false));
}

/// A job file: two copies, each of which searches and is reported apart.
#[test]
fn jobs_of_a_file_search_each_for_itself() {
    let directory = tempfile::tempdir_in("/var/tmp").unwrap();
    let name = file(directory.path(), 1 << 20);
    let path = directory.path().join("job.fio");
    let text = "[a]\nrw=randread\nbs=4k\ndirect=1\nioengine=libaio\niodepth=4\nnumjobs=2\ntime_based\nruntime=60\n\
                ramp_time=20ms\nlatency_target=50ms\nlatency_window=50ms\nlatency_percentile=50\n";
    std::fs::write(&path, text).unwrap();
    for engine in [EngineKind::Auto, EngineKind::Threads] {
        let mut run = run(&name, "");
        run.source = Source::Jobs { jobs: read_fio_jobs(&path).unwrap(), path: path.clone() };
        run.options.engine = engine;
        let BenchMeasured { result, failure, .. } = measure(&run);
        assert!(failure.is_none(), "{failure:?}");
        let found: Vec<_> = result.depth_searches.iter().map(|s| (s.depth, s.met)).collect();
        assert_eq!(found, [(4, true), (4, true)], "{engine:?}: {:?}", result.notes);
        assert_eq!(result.jobs.iter().map(|job| job.requests).sum::<u64>(), result.requests);
        assert!(result.jobs.iter().all(|job| job.requests > 0 && job.seconds < 5.0));
    }
}

/// `latency_run`: all is recorded; a search that is cut short records nothing and says so.
#[test]
fn what_is_recorded_follows_from_how_it_ends() {
    let all = measure(&run(
        "null:",
        &format!("depth = 4\nduration = \"300ms\"\nlatency_run = true\n{EASY}"),
    ));
    assert!(all.result.simulated_seconds > 0.25 && all.result.depth_searches[0].latency_run);
    let cut = measure(&run("null:", &format!("depth = 64\nduration = \"120ms\"\n{EASY}")));
    assert_eq!(cut.result.requests, 0);
    assert!(cut.result.notes.iter().any(|note| note.contains("was not over when the job ended")));
}

#[test]
fn what_excludes_a_search_is_refused() {
    let mut several = run("null:", &format!("depth = 4\n{EASY}"));
    several.options.jobs = 2;
    assert!(refusal(&several).to_string().contains("latency_target"));
    let directory = tempfile::tempdir_in("/var/tmp").unwrap();
    let mut tuned = run(&file(directory.path(), 1 << 20), &format!("depth = 4\n{EASY}"));
    tuned.options.tune = true;
    assert!(refusal(&tuned).to_string().contains("latency_target"));
}
