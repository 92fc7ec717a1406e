//! Searches on a target whose latency is a known function of the depth: one server that needs `SERVICE` for each
//! request, so that with `d` outstanding each takes `d` times that, and the greatest depth that meets a latency
//! `T` is `T / SERVICE`, rounded down.

use std::collections::VecDeque;

use ssdyno_block::Request;

use super::*;
use crate::{FioFiles, TargetFacts, WorkloadConfig, fio_streams, read_fio_jobs, run_together};

const SERVICE: Time = Time::from_us(100);
const FACTS: TargetFacts = TargetFacts { capacity_bytes: 1 << 30, sector_bytes: 512 };

/// What a run on the target was.
struct Played {
    search: DepthSearchResult,
    notes: String,
    error: Option<String>,
    /// When it ended, and from when on it was to be recorded.
    end: Time,
    from: Time,
    /// Latencies that were to be recorded, and how many requests were issued.
    recorded: Vec<Time>,
    issued: usize,
    most_outstanding: usize,
}

/// Plays `workload`; every `slow`th request takes a hundred times as long for itself alone.
fn play(mut workload: Box<dyn Workload + Send>, slow: usize) -> Played {
    let (mut now, mut free, mut issued) = (Time::ZERO, Time::ZERO, 0);
    let mut under_way: VecDeque<(Time, Time, Request)> = VecDeque::new();
    let mut ended: Vec<(Time, Time)> = Vec::new();
    let mut most = 0;
    loop {
        while let Some((_, began, request)) = under_way.pop_front_if(|(end, ..)| *end <= now) {
            workload.completed(Finished::of(&request, now - began), now);
            ended.push((now, now - began));
        }
        match workload.next(now) {
            WorkloadStep::Issue { request, .. } => {
                issued += 1;
                free = free.max(now) + SERVICE;
                let late = if issued % slow == 0 { SERVICE * 100 } else { Time::ZERO };
                under_way.push_back((free + late, now, request));
                under_way.make_contiguous().sort_by_key(|(end, ..)| *end);
                most = most.max(under_way.len());
                assert!(issued < 2_000_000, "no end");
            }
            WorkloadStep::NotBefore(at) => {
                now = under_way.front().map_or(at, |(end, ..)| at.min(*end))
            }
            WorkloadStep::Wait => now = under_way.front().expect("waits for nothing").0,
            WorkloadStep::Done if under_way.is_empty() => break,
            WorkloadStep::Done => now = under_way.front().unwrap().0,
        }
    }
    assert_eq!(workload.next(now), WorkloadStep::Done);
    let from = workload.recorded_from(0);
    Played {
        search: workload.depth_searches().remove(0),
        notes: workload.notes().join("\n"),
        error: workload.error().map(|error| error.to_string()),
        end: now,
        from,
        recorded: ended.iter().filter(|(at, _)| *at > from).map(|(_, latency)| *latency).collect(),
        issued,
        most_outstanding: most,
    }
}

fn config(text: &str) -> Result<Box<dyn Workload + Send>, WorkloadError> {
    WorkloadConfig::from_toml(text).unwrap().build(&FACTS, 1)
}

fn fio(text: &str) -> Result<Box<dyn Workload + Send>, WorkloadError> {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    let jobs = read_fio_jobs(file.path())?;
    run_together(fio_streams(&jobs, &FioFiles::one(FACTS.capacity_bytes), 1), &FACTS)
}

fn plan(depth: u64, latency_us: u64, more: &str) -> String {
    format!(
        "depth = {depth}\nlatency_target = \"{latency_us}us\"\nlatency_window = \"100ms\"\n{more}\n"
    )
}

/// The closed form, for depths with and without a power of two, up to the most that may be tried.
#[test]
fn the_greatest_depth_that_meets_the_target_is_found() {
    for (depth, latency_us) in
        [(64, 100), (64, 1_250), (64, 799), (64, 800), (64, 6_399), (64, 9_000), (7, 599)]
    {
        let fits = (latency_us / 100).min(depth);
        let played = play(config(&plan(depth, latency_us, "")).unwrap(), usize::MAX);
        let Played { search, notes, recorded, .. } = &played;
        assert_eq!((search.depth, search.met), (fits, true), "{latency_us} us of {depth}: {notes}");
        assert!(notes.contains(&format!("depth {fits} was the greatest with")), "{notes}");
        // The recording contains one window at this depth, and nothing from other windows.
        let window = played.end - played.from;
        assert!(window >= Time::from_ms(100) && window < Time::from_ms(110), "{window}");
        assert!(recorded.iter().all(|latency| *latency <= SERVICE * fits), "{recorded:?}");
        let usual = recorded.iter().filter(|latency| **latency == SERVICE * fits).count();
        assert!(usual + 2 * fits as usize >= recorded.len() && recorded.len() >= 990, "{usual}");
        let passed = |tried: &TriedDepthResult| tried.requests_in_time == tried.requests;
        assert!(search.tried.iter().all(|tried| passed(tried) == (tried.depth <= fits)));
        assert!(played.error.is_none() && played.most_outstanding as u64 <= depth);
    }
}

/// One request in 50 is slow, whatever the depth: a percentile of 98 allows for it, one of 99 never does.
#[test]
fn a_percentile_allows_for_some_that_are_slow() {
    let found = play(config(&plan(32, 1_000, "latency_percentile = 97.0")).unwrap(), 50);
    assert_eq!((found.search.depth, found.search.met), (10, true), "{}", found.notes);
    let never = play(config(&plan(32, 1_000, "latency_percentile = 99.0")).unwrap(), 50);
    let error = never.error.unwrap();
    assert!(error.starts_with("`latency_target`: no depth meets it: with one request"), "{error}");
    // The note says the same as the error, which was taken before.
    assert!(never.notes.contains("no depth has 99 % of the requests"), "{}", never.notes);
    assert!(!never.search.met && never.from == Time::MAX && never.search.depth == 1);
    assert_eq!(never.search.tried.len(), 3, "three windows in a row");
    // With all in time asked for, the first slow one ends it.
    let at_once = play(config(&plan(32, 50, "")).unwrap(), usize::MAX);
    assert!(at_once.error.unwrap().contains("no other one outstanding"));
    assert_eq!(at_once.issued, 1);
}

/// Request 3500 is late. The windows have 1000 requests: those of depths 1, 2 and 4 pass before it, and the second one of
/// depth 4 fails. Then 3 is found, confirmed and recorded, in 3000 requests.
#[test]
fn a_depth_that_is_not_confirmed_is_in_no_figure() {
    let played = play(config(&plan(4, 400, "")).unwrap(), 3_500);
    let depths: Vec<u64> = played.search.tried.iter().map(|tried| tried.depth).collect();
    assert_eq!(depths, [1, 2, 4, 4, 3, 3, 3], "{}", played.notes);
    assert_eq!((played.search.depth, played.search.met), (3, true));
    assert!(played.notes.ends_with("the figures cover this depth only"), "{}", played.notes);
    assert!(played.recorded.iter().all(|latency| *latency <= SERVICE * 3));
    let window = played.end - played.from;
    assert!(window >= Time::from_ms(100) && window < Time::from_ms(101), "{window}");
    // By hand: 1002 requests of 300 us, less 300 us as the first two found the server free, in 100.2 ms.
    let stayed: f64 = played.recorded.iter().map(|latency| latency.as_s_f64()).sum();
    let outstanding = stayed / window.as_s_f64();
    assert!((outstanding - 3.0).abs() < 0.02, "{outstanding}");
}

/// Windows of depth 1 have 1000 requests. Request 2500 is in the third one, which is recorded: it has 899 requests in time
/// and a late one, as 10 ms are the late one's. The depth stays, and the window is as long as any.
#[test]
fn the_recorded_window_no_longer_decides_about_the_depth() {
    let played = play(config(&plan(1, 100, "")).unwrap(), 2_500);
    assert_eq!((played.search.depth, played.search.met, played.search.tried.len()), (1, true, 3));
    assert_eq!((played.from, played.end), (Time::from_ms(200), Time::from_ms(300)));
    assert_eq!(played.recorded.len(), 900);
    let told = "this depth only, and 99.89 % of their requests were in time";
    assert!(played.notes.ends_with(told), "{}", played.notes);
}

/// Where the job ends first there is no result, and it says so.
#[test]
fn a_search_that_is_cut_short_says_so() {
    let cut = play(config(&plan(64, 1_250, "duration = \"250ms\"")).unwrap(), usize::MAX);
    assert!(cut.error.is_none() && !cut.search.met && cut.from == Time::MAX);
    assert!(cut.notes.contains("was not over when the job ended (tried 1, 2)"), "{}", cut.notes);
    let early = play(config(&plan(64, 1_250, "requests = 10")).unwrap(), usize::MAX);
    assert!(early.notes.contains("no window ended"), "{}", early.notes);
    // Depths 1, 2 and 4 pass in 300 ms: 4 is the most that may be, but the window that confirms it does not end.
    let unconfirmed = play(config(&plan(4, 1_250, "duration = \"350ms\"")).unwrap(), usize::MAX);
    assert!(!unconfirmed.search.met && unconfirmed.from == Time::MAX);
    let told = "was not over when the job ended (tried 1, 2, 4): more requests or time are needed";
    assert!(unconfirmed.notes.ends_with(told), "{}", unconfirmed.notes);
}

/// `latency_run`: all is recorded, and the job ends by its own limits.
#[test]
fn with_latency_run_the_depth_follows() {
    let text = plan(64, 1_250, "latency_run = true\nduration = \"5s\"");
    let played = play(config(&text).unwrap(), usize::MAX);
    assert_eq!(played.from, Time::ZERO);
    assert!((12..=13).contains(&played.search.depth), "{}", played.notes);
    assert!(played.end > Time::from_ms(4_990) && played.search.tried.len() > 30);
    assert!(played.notes.contains("of all depths"), "{}", played.notes);
}

/// The ramp-up comes before the search: requests of a plan, time of a job file.
#[test]
fn the_search_begins_after_the_ramp_up() {
    let played = play(config(&plan(64, 450, "ramp_up = 5000")).unwrap(), usize::MAX);
    let first = played.search.tried[0];
    let start = (SERVICE * 5_000).as_s_f64();
    assert_eq!((first.depth, first.start_seconds, played.search.depth), (1, start, 4));
    let text =
        "[a]\nrw=randread\nioengine=libaio\niodepth=64\nlatency_target=450\nlatency_window=100ms\n";
    let played =
        play(fio(&format!("{text}ramp_time=2s\ntime_based\nruntime=60\n")).unwrap(), usize::MAX);
    assert_eq!((played.search.tried[0].start_seconds, played.search.depth), (2.0, 4));
    assert!(played.notes.contains("[a]: latency_target: depth 4"), "{}", played.notes);
}

/// fio's example (examples/latency-profile.fio), with its units: microseconds if no unit is given.
#[test]
fn job_files_are_honoured() {
    let text = "[a]\nrw=randread\nbs=128k\ndirect=1\nioengine=libaio\niodepth=32\nlatency_target=1050\n\
                latency_window=50000\nlatency_percentile=99.0\n";
    let played = play(fio(&format!("{text}time_based\nruntime=600\n")).unwrap(), usize::MAX);
    let search = &played.search;
    assert_eq!((search.latency_target_ns, search.latency_window_ns), (1_050_000, 50_000_000));
    assert_eq!((search.latency_percentile, search.latency_run), (99.0, false));
    assert_eq!((played.search.depth, played.search.job.as_deref()), (10, Some("a")));
    assert!(played.end < Time::from_s(2), "it ends when the depth is found");
    let played = play(fio(&format!("{text}latency_run=1\nsize=512m\n")).unwrap(), usize::MAX);
    assert!(played.search.latency_run && played.issued == 4096);
    // Off, as in fio.
    assert!(fio(&text.replace("=1050", "=0")).unwrap().depth_searches().is_empty());
}

fn refused(made: Result<Box<dyn Workload + Send>, WorkloadError>) -> String {
    made.err().expect("it is refused").to_string()
}

#[test]
fn what_cannot_be_met_or_judged_is_refused_where_it_stands() {
    for (keys, told) in [
        (
            "latency_target = \"0s\"\nlatency_window = \"1s\"",
            "`latency_target`: a latency of 0 is impossible",
        ),
        ("latency_target = \"1ms\"", "add latency_window"),
        (
            "latency_target = \"1ms\"\nlatency_window = \"999us\"",
            "`latency_window`: a window of 999 us is shorter",
        ),
        (
            "latency_target = \"1ms\"\nlatency_window = \"1s\"\nlatency_percentile = 100.5",
            "give 0 to 100",
        ),
        (
            "latency_target = \"1ms\"\nlatency_window = \"1s\"\nlatency_percentile = -1.0",
            "give 0 to 100",
        ),
        (
            "latency_target = \"1ms\"\nlatency_window = \"1s\"\nlatency_percentile = nan",
            "give 0 to 100",
        ),
        ("latency_window = \"1s\"", "without latency_target"),
        ("latency_run = true", "without latency_target"),
        (
            "latency_target = \"1ms\"\nlatency_window = \"1s\"\n[arrivals]\nkind = \"poisson\"\nrate = 10.0",
            "an open loop",
        ),
        (
            "kind = \"disksim-synthetic\"\nlatency_target = \"1ms\"",
            "`latency_target`: it has no effect",
        ),
    ] {
        let error = refused(config(keys));
        assert!(error.contains(told), "{keys}: {error}");
    }
    let job = "[a]\nrw=randread\nioengine=libaio\niodepth=8\n";
    for (options, line, told) in [
        ("latency_target=1ms\n", 5, "latency_window"),
        ("latency_target=1ms\nlatency_window=10us\n", 6, "shorter than the latency"),
        ("latency_target=1ms\nlatency_window=1s\nlatency_percentile=101\n", 7, "0 to 100"),
        ("latency_target=soon\nlatency_window=1s\n", 5, "a time"),
        ("latency_target=1ms\nlatency_window=1s\nrate_iops=100\n", 5, "a rate"),
        ("latency_target=1ms\nlatency_window=1s\niodepth_low=2\n", 5, "iodepth_low"),
    ] {
        let error = refused(fio(&format!("{job}{options}")));
        assert!(error.contains(told) && error.contains(&format!(":{line}:")), "{options}: {error}");
    }
    // There is nothing to choose from, but the target can be met or not.
    let one = play(config(&plan(1, 100, "")).unwrap(), usize::MAX);
    assert_eq!((one.search.depth, one.search.met), (1, true));
}
