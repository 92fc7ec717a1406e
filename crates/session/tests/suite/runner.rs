//! A run under way: the same calls for virtual and for wall time.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it must be")]

use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ssdyno_block::units::Span;
use ssdyno_figures::{LoadWindow, StopReason};
use ssdyno_session::{
    BeginAt, FailureKind, Measured, RunList, RunPhase, RunSnapshot, RunSpec, Runner, Unattended,
    WriteSpec, resolve,
};

const A_WHILE: Duration = Duration::from_millis(20);

fn started(spec: &RunSpec) -> Runner {
    let prepared = resolve(spec, &mut Unattended).unwrap_or_else(|failure| panic!("{failure}"));
    prepared.start().unwrap()
}

/// A simulation that would go on for days.
fn simulation() -> RunSpec {
    RunSpec {
        target: Some("sim:config-a".to_owned()),
        workload: Some("mixed".to_owned()),
        duration: Some(Span("100000s".parse::<Span>().unwrap().0)),
        set: vec!["flash.blocks_per_plane=32".to_owned(), "flash.channels=2".to_owned()],
        ..RunSpec::default()
    }
}

/// Reads a scratch file in `place` for as long as nobody stops it.
#[cfg(target_os = "linux")]
fn scratch(place: &Path) -> RunSpec {
    RunSpec {
        target: Some(place.join("scratch").to_str().unwrap().to_owned()),
        duration: Some(Span("1000s".parse::<Span>().unwrap().0)),
        write: WriteSpec { size: "1MiB".parse().ok(), ..WriteSpec::default() },
        ..RunSpec::default()
    }
}

/// As soon as `is_so`.
fn when(runner: &Runner, is_so: impl Fn(&RunSnapshot) -> bool) -> RunSnapshot {
    loop {
        let now = runner.poll();
        assert!(now.phase != RunPhase::Ended, "{now:?}");
        if is_so(&now) {
            return now;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Everything that was measured until it was stopped.
fn is_whole(measured: &Measured, seen: u64) {
    let Measured { result, recording, failure, .. } = measured;
    assert_eq!(failure.as_ref().unwrap().kind, FailureKind::Interrupted);
    assert!(result.partial && result.errors == 0 && result.requests >= seen, "{result:?}");
    assert_eq!(result.stopped_because, Some(StopReason::Interrupted));
    assert_eq!(recording.rows().unwrap().len() as u64, result.requests);
    let series: u64 = result.series.iter().map(|p| p.reads + p.writes + p.trims).sum();
    assert_eq!(series, result.requests);
    assert!(result.invariants.iter().all(|invariant| invariant.holds));
    assert!(result.latency_ns.is_some() && result.spec.is_some());
}

#[test]
fn a_simulation_is_stopped_in_the_middle_and_keeps_what_it_measured() {
    let runner = started(&simulation());
    when(&runner, |now| now.phase == RunPhase::Ready);
    std::thread::sleep(A_WHILE);
    assert_eq!(runner.poll().phase, RunPhase::Ready, "it waits until it is told to begin");
    // Its time is its own: a moment far away is now.
    runner.begin(BeginAt::Moment(SystemTime::now() + Duration::from_secs(3600)));
    runner.look();
    let seen = when(&runner, |now| now.progress.glance.is_some());
    assert!(seen.phase == RunPhase::Loaded && seen.progress.now.as_ns() > 0, "{seen:?}");
    // Another viewer sees it, too, and what goes to another machine is what is seen here.
    let (glance, other) = (seen.progress.glance.clone(), runner.poll());
    assert_eq!(other.progress.glance, glance);
    let text = serde_json::to_string(&other).unwrap();
    assert_eq!(serde_json::from_str::<RunSnapshot>(&text).unwrap(), other);
    assert!(glance.unwrap().now <= seen.progress.now && other.sequence >= seen.sequence);
    runner.stop();
    let ended = runner.wait(RunPhase::Loaded, Duration::from_secs(60));
    assert_eq!(ended.phase, RunPhase::Ended);
    assert!(ended.sequence > seen.sequence);
    assert_eq!(runner.poll(), ended, "nothing changes after the end");
    let measured = runner.result().unwrap();
    assert_eq!(measured.result.window, None);
    is_whole(&measured, seen.progress.completed);
}

#[cfg(target_os = "linux")]
#[test]
fn a_real_run_is_stopped_in_the_middle_and_keeps_what_it_measured() {
    let place = tempfile::tempdir().unwrap();
    let runner = started(&scratch(place.path()));
    runner.begin(BeginAt::Once);
    when(&runner, |now| now.progress.completed > 50);
    runner.look();
    let seen = when(&runner, |now| now.progress.glance.is_some());
    runner.stop();
    let measured = runner.result().unwrap();
    assert!(measured.result.window.as_ref().unwrap().start_unix_ns > 0);
    is_whole(&measured, seen.progress.completed);
}

#[test]
fn a_run_that_never_began_has_no_result() {
    let runner = started(&simulation());
    when(&runner, |now| now.phase == RunPhase::Ready);
    runner.stop();
    assert_eq!(runner.result().unwrap_err().kind, FailureKind::Interrupted);
    // One that nobody wants any more is stopped and waited for.
    drop(started(&simulation()));
}

#[cfg(target_os = "linux")]
#[test]
fn a_run_that_waits_for_its_moment_can_be_stopped() {
    let place = tempfile::tempdir().unwrap();
    let runner = started(&scratch(place.path()));
    runner.begin(BeginAt::Moment(SystemTime::now() + Duration::from_secs(3600)));
    when(&runner, |now| now.phase == RunPhase::Ready);
    runner.stop();
    assert_eq!(runner.result().unwrap_err().kind, FailureKind::Interrupted);
}

#[cfg(target_os = "linux")]
#[test]
fn a_moment_that_is_over_is_now_and_the_result_says_so() {
    let place = tempfile::tempdir().unwrap();
    let spec = RunSpec { duration: None, requests: Some(100), ..scratch(place.path()) };
    let runner = started(&spec);
    runner.begin(BeginAt::Moment(SystemTime::now() - Duration::from_secs(2)));
    let result = runner.result().unwrap().result;
    assert!(result.window.as_ref().unwrap().late_ns > 2_000_000_000, "{:?}", result.window);
    assert!(result.notes.iter().any(|note| note.contains("after the given start time")));
}

/// The largest difference between the windows of two runs with the same start time on a busy machine. Left alone it is
/// some microseconds.
#[cfg(target_os = "linux")]
const APART_NS: u64 = 100_000_000;

#[cfg(target_os = "linux")]
fn begin_together(runners: &[Runner], moment: SystemTime) {
    runners.iter().for_each(|runner| runner.begin(BeginAt::Moment(moment)));
}

/// Two threads of one process, and then two processes: they agree on nothing but the moment.
#[cfg(target_os = "linux")]
#[test]
fn runs_begin_together() {
    let places = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let short = |place: &Path| RunSpec { duration: None, requests: Some(500), ..scratch(place) };
    let runners = places.each_ref().map(|place| started(&short(place.path())));
    runners.iter().for_each(|runner| drop(when(runner, |now| now.phase == RunPhase::Ready)));
    let moment = SystemTime::now() + Duration::from_millis(150);
    begin_together(&runners, moment);
    let windows = runners.map(|runner| runner.result().unwrap().result.window.unwrap());
    agree(&windows, moment);

    // Until then they have started, and opened their targets.
    let moment = SystemTime::now() + Duration::from_secs(2);
    let children = places.each_ref().map(|place| {
        std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "runner::one_of_two_processes", "--ignored", "--nocapture"])
            .env(PLACE, place.path())
            .env(MOMENT, unix_ns(moment).to_string())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap()
    });
    let windows = children.map(|child| {
        let output = child.wait_with_output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        let line = text.lines().find_map(|line| line.split_once("window ")).unwrap().1;
        serde_json::from_str::<LoadWindow>(line).unwrap()
    });
    agree(&windows, moment);
}

#[cfg(target_os = "linux")]
fn agree(windows: &[LoadWindow; 2], moment: SystemTime) {
    let began = windows.each_ref().map(|window| window.start_unix_ns);
    assert!(began[0].abs_diff(began[1]) < APART_NS, "{windows:?}");
    assert!(began.iter().all(|at| at.abs_diff(unix_ns(moment)) < APART_NS), "{windows:?}");
    assert!(windows.iter().all(|window| window.late_ns < APART_NS), "{windows:?}");
}

#[cfg(target_os = "linux")]
fn unix_ns(moment: SystemTime) -> u64 {
    moment.duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64
}

const PLACE: &str = "SSDYNO_TEST_PLACE";
const MOMENT: &str = "SSDYNO_TEST_MOMENT";

#[cfg(target_os = "linux")]
#[ignore = "started by runs_begin_together, in a process of its own"]
#[test]
fn one_of_two_processes() {
    let Some(place) = std::env::var_os(PLACE) else { return };
    let moment = std::env::var(MOMENT).unwrap().parse().unwrap();
    let spec = RunSpec { duration: None, requests: Some(500), ..scratch(Path::new(&place)) };
    let runner = started(&spec);
    runner.begin(BeginAt::Moment(UNIX_EPOCH + Duration::from_nanos(moment)));
    let window = runner.result().unwrap().result.window.unwrap();
    println!("\nwindow {}", serde_json::to_string(&window).unwrap());
}

/// Many, of both kinds: in the order of the list, and stopped all at once.
#[cfg(target_os = "linux")]
#[test]
fn a_list_of_runs_keeps_its_order_and_is_stopped_as_a_whole() {
    let place = tempfile::tempdir().unwrap();
    let few =
        |spec: RunSpec, requests| RunSpec { duration: None, requests: Some(requests), ..spec };
    let prepared = |spec: &RunSpec| resolve(spec, &mut Unattended).unwrap();
    let specs = [few(scratch(place.path()), 30), few(simulation(), 3000), few(simulation(), 200)];
    let mut seen = 0;
    let requests = RunList::new(specs.iter().map(prepared).collect())
        .execute(
            |number, measured| measured.map(|all| (number, all.result.requests)),
            &mut |progress| {
                seen = seen.max(progress.ended());
                ssdyno_figures::KeepGoing::Continue
            },
        )
        .unwrap();
    assert_eq!(requests, [Some((0, 30)), Some((1, 3000)), Some((2, 200))]);
    assert!(seen <= 3);
    // Stopped while the first goes on: that one is kept, the others never begin.
    let specs = [simulation(), simulation(), scratch(place.path())];
    let outcomes = RunList::new(specs.iter().map(prepared).collect())
        .over(Some(1))
        .execute(|_, measured| measured.map(|all| all.result.partial), &mut |progress| {
            match progress.runs().next().unwrap().phase {
                RunPhase::Loaded => ssdyno_figures::KeepGoing::Stop,
                _ => ssdyno_figures::KeepGoing::Continue,
            }
        })
        .unwrap();
    assert_eq!(outcomes, [Some(true), None, None]);
    // Stopped while they are prepared: there is nothing to keep, and nothing is wrong.
    let outcomes = RunList::new(specs.iter().map(prepared).collect())
        .execute(|_, measured| measured.map(|all| all.result.partial), &mut |_| {
            ssdyno_figures::KeepGoing::Stop
        })
        .unwrap();
    assert!(outcomes.iter().all(|outcome| outcome.is_none_or(|partial| partial)), "{outcomes:?}");
}
