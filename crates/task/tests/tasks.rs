//! Each task from its value to its result, whole and stopped.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::time::{Duration, Instant};

use ssdyno_block::Time;
use ssdyno_block::units::{Bytes, Span};
use ssdyno_session::{DriverSpec, FailureKind, HostSpec, RunPhase, Unattended, WriteSpec};
use ssdyno_task::{ProbeTask, ProfileTask, PtsTask, Task, TaskResult, TaskRunner, VerifyTask};

/// The latency test of a device of some hundred MiB, of short rounds.
fn pts() -> PtsTask {
    PtsTask {
        target: "sim:config-a".to_owned(),
        test: ssdyno_pts::Test::Latency,
        round: Some(Span(Time::from_ms(4))),
        precondition: 1.0,
        set: ["flash.blocks_per_plane=16", "ftl.over_provisioning=0.5"].map(str::to_owned).into(),
        host: HostSpec { driver: Some(DriverSpec::Direct), ..HostSpec::default() },
        ..PtsTask::default()
    }
}

/// A profile of a device that needs 10 us for any request.
fn profile() -> ProfileTask {
    ProfileTask {
        target: "sim:delay-10us".to_owned(),
        sizes: vec!["8KiB..64KiB/8KiB".parse().unwrap()],
        time: Some(Span(Time::from_s(2))),
        ..ProfileTask::default()
    }
}

/// A verification of a new file in `dir`.
fn verify(dir: &tempfile::TempDir) -> VerifyTask {
    VerifyTask {
        target: dir.path().join("target").display().to_string(),
        write: WriteSpec { allowed: true, size: Some(Bytes(1 << 20)), ..WriteSpec::default() },
        ..VerifyTask::default()
    }
}

fn start(task: &Task) -> TaskRunner {
    task.prepare(&mut Unattended).unwrap().start().unwrap()
}

/// Waits for the end and sees that snapshots go forward.
fn to_the_end(runner: &TaskRunner) {
    let mut last = runner.poll();
    while last.phase != RunPhase::Ended {
        let now = runner.wait(last.phase, Duration::from_millis(5));
        assert!(now.sequence >= last.sequence && now.phase >= last.phase);
        assert!(now.done >= last.done && now.done <= now.of, "{now:?}");
        last = now;
    }
}

#[test]
fn a_run_is_a_task() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("target");
    std::fs::write(&file, vec![1; 1 << 20]).unwrap();
    for (text, real) in [
        ("target = \"sim:delay-10us\"\nrequests = 3000".to_owned(), false),
        (
            format!(
                "target = \"{}\"\nrequests = 3000\nreal = {{ buffered = true }}",
                file.display()
            ),
            true,
        ),
    ] {
        let task = Task::from_toml("the spec", &text).unwrap();
        let prepared = task.prepare(&mut Unattended).unwrap();
        let plan = prepared.run().unwrap();
        assert_eq!((plan.is_real().unwrap(), plan.goal().requests), (real, Some(3000)));
        // Nothing is written to a target that is only read.
        assert_eq!(prepared.writes_to(), [""; 0]);
        let runner = prepared.start().unwrap();
        to_the_end(&runner);
        let outcome = runner.result().unwrap();
        let TaskResult::Run(measured) = outcome.result else { panic!("another result") };
        assert_eq!((outcome.failure, measured.result.requests), (None, 3000));
    }
}

#[test]
fn a_run_that_is_stopped_keeps_what_it_measured() {
    let task = Task::from_toml("the spec", "target = \"null:\"\nfor = \"1h\"\nkeep = \"summary\"");
    let runner = start(&task.unwrap());
    let patience = Instant::now() + Duration::from_secs(60);
    let mut last = runner.poll();
    while last.done == 0 {
        assert!(Instant::now() < patience, "no request: {last:?}");
        last = runner.wait(last.phase, Duration::from_millis(5));
    }
    assert!(last.share_done.is_some_and(|share| share < 0.1), "{last:?}");
    runner.stop();
    let outcome = runner.result().unwrap();
    let TaskResult::Run(measured) = outcome.result else { panic!("another result") };
    assert!(measured.result.partial && measured.result.requests > 0);
    assert_eq!(outcome.failure.map(|failure| failure.kind), Some(FailureKind::Interrupted));
}

#[test]
fn other_hosts_are_for_runs_alone() {
    let task = Task::Profile(Box::new(profile()));
    let hosts = ssdyno_cluster::Hosts::default();
    let failure = task.prepare_on(hosts, &mut Unattended).unwrap_err();
    assert_eq!(failure.body().key.as_deref(), Some("hosts"));
}

#[test]
fn a_snia_test_runs_to_its_end_and_gives_checkpoints() {
    let runner = start(&Task::Pts(Box::new(pts())));
    to_the_end(&runner);
    let Some(TaskResult::Pts(partial)) = runner.take_partial() else { panic!("no checkpoint") };
    assert!(partial.partial && runner.take_partial().is_none());
    let outcome = runner.result().unwrap();
    let TaskResult::Pts(result) = outcome.result else { panic!("another result") };
    assert_eq!(outcome.failure, None);
    assert!(!result.partial && !result.parts[0].rounds.is_empty());
    assert_eq!(result.settings.histogram_seconds, 0.08, "20 rounds");
}

#[test]
fn a_snia_test_that_is_stopped_keeps_its_rounds() {
    let runner = start(&Task::Pts(Box::new(PtsTask { rounds_max: 1_000_000, ..pts() })));
    let patience = Instant::now() + Duration::from_secs(60);
    while runner.take_partial().is_none() {
        assert!(Instant::now() < patience, "no round ended: {:?}", runner.poll());
        std::thread::sleep(Duration::from_millis(1));
        if runner.poll().phase == RunPhase::Ended {
            break;
        }
    }
    runner.stop();
    let outcome = runner.result().unwrap();
    let TaskResult::Pts(result) = outcome.result else { panic!("another result") };
    assert!(!result.parts[0].rounds.is_empty());
    // A test that was over before it was stopped is whole.
    assert_eq!(result.partial, outcome.failure.is_some());
    assert!(outcome.failure.is_none_or(|failure| failure.kind == FailureKind::Interrupted));
}

#[test]
fn a_profile_finds_that_a_delay_does_not_know_random_from_sequential() {
    let runner = start(&Task::Profile(Box::new(profile())));
    to_the_end(&runner);
    let outcome = runner.result().unwrap();
    let TaskResult::Profile(result) = outcome.result else { panic!("another result") };
    assert_eq!(outcome.failure, None);
    assert!(!result.read_ratio.is_empty());
    // Every request takes 10 us wherever it is, so each ratio is 1; the profile stops within its error, 5 %. Seed 1.
    for ratio in &result.read_ratio {
        assert!((ratio.estimate - 1.0).abs() < 0.05, "{ratio:?}");
    }
}

#[test]
fn a_key_for_another_method_is_refused_by_its_name() {
    let wrong = ProfileTask { points: Some(3), ..profile() };
    let refused = Task::Profile(Box::new(wrong)).prepare(&mut Unattended).unwrap_err();
    assert_eq!(refused.key.as_deref(), Some("points"));
    assert_eq!(refused.message, "`points` is for `method` serra");
}

#[test]
fn a_target_that_is_written_to_is_named_before_the_start() {
    let dir = tempfile::tempdir().unwrap();
    let task = verify(&dir);
    let prepared = Task::Verify(Box::new(task.clone())).prepare(&mut Unattended).unwrap();
    assert_eq!(prepared.writes_to(), std::slice::from_ref(&task.target));
    let simulated = Task::Pts(Box::new(pts())).prepare(&mut Unattended).unwrap();
    assert!(simulated.writes_to().is_empty());
    let forbidden = VerifyTask { write: WriteSpec::default(), ..task };
    let refused = Task::Verify(Box::new(forbidden)).prepare(&mut Unattended).unwrap_err();
    assert_eq!(refused.key.as_deref(), Some("write.allowed"));
}

#[test]
fn a_verification_reads_what_it_wrote() {
    let dir = tempfile::tempdir().unwrap();
    let runner = start(&Task::Verify(Box::new(verify(&dir))));
    to_the_end(&runner);
    let outcome = runner.result().unwrap();
    let TaskResult::Verify(report) = outcome.result else { panic!("another result") };
    assert_eq!((outcome.failure, report.faults, report.partial), (None, 0, false));
    // 1 MiB of 4 KiB blocks, each thread the same number of them.
    assert_eq!(report.writes, 256);
}

#[test]
fn samples_that_were_taken_are_not_in_the_result() {
    let interval = Span(Time::from_ms(20));
    let task = Task::Probe(ProbeTask { interval, samples: 4, ..ProbeTask::default() });
    let whole = start(&task).result().unwrap();
    let TaskResult::Probe(samples) = whole.result else { panic!("another result") };
    assert_eq!((samples.len(), whole.failure), (4, None));
    let runner = start(&task);
    let mut taken = 0;
    while taken == 0 {
        if let Some(TaskResult::Probe(samples)) = runner.take_partial() {
            taken = samples.len();
        }
    }
    let TaskResult::Probe(rest) = runner.result().unwrap().result else { panic!("another result") };
    assert_eq!(taken + rest.len(), 4);
}

#[test]
fn a_probe_that_is_stopped_ends_at_once_with_its_samples() {
    let interval = Span(Time::from_s(3600));
    let runner = start(&Task::Probe(ProbeTask { interval, ..ProbeTask::default() }));
    let began = Instant::now();
    runner.stop();
    let outcome = runner.result().unwrap();
    assert!(began.elapsed() < Duration::from_secs(60));
    assert!(matches!(outcome.result, TaskResult::Probe(samples) if samples.is_empty()));
    assert_eq!(outcome.failure.map(|failure| failure.kind), Some(FailureKind::Interrupted));
}

#[test]
fn a_task_can_be_written_down() {
    let dir = tempfile::tempdir().unwrap();
    for task in [
        Task::Pts(Box::new(pts())),
        Task::Verify(Box::new(verify(&dir))),
        Task::Probe(ProbeTask::default()),
        Task::Profile(Box::new(profile())),
    ] {
        let text = serde_json::to_string(&task).unwrap();
        assert_eq!(serde_json::from_str::<Task>(&text).unwrap(), task, "{text}");
    }
    let short = r#"{"task": "pts", "target": "sim:config-a", "test": "throughput"}"#;
    let Task::Pts(task) = serde_json::from_str(short).unwrap() else { panic!("another task") };
    assert_eq!((task.rounds_max, task.depth, task.purge), (25, 32, true));
    assert!(serde_json::from_str::<Task>(r#"{"task": "pts", "rounds": 3}"#).is_err());
}
