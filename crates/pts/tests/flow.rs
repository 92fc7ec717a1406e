//! Whole tests on a small simulated device and on a file.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use ssdyno_block::Time;
use ssdyno_figures::{KeepGoing, RunProgress};
use ssdyno_pts::{PtsPlan, PtsResult, Test};
use ssdyno_session::{
    DriverSpec, Failure, FailureKind, HostSpec, KeptTarget, Observer, RunSpec, Stage, Unattended,
};

/// Configuration A with few blocks: a device of some hundred MiB.
fn small() -> KeptTarget {
    let spec = RunSpec {
        set: ["flash.blocks_per_plane=16", "ftl.over_provisioning=0.5"].map(str::to_owned).into(),
        host: HostSpec { driver: Some(DriverSpec::Direct), ..HostSpec::default() },
        ..RunSpec::default()
    };
    let plan = PtsPlan { target: "sim:config-a".into(), seed: 1, ..plan(Test::Iops) };
    plan.open(&spec, &mut Unattended).unwrap()
}

fn plan(test: Test) -> PtsPlan {
    PtsPlan {
        target: "sim:small".into(),
        test,
        round: Time::from_ms(4),
        rounds_max: 25,
        histogram: Time::from_ms(80),
        precondition: 2.0,
        active_range_percent: 100.0,
        depth: 32,
        purge: true,
        seed: 7,
    }
}

/// Stops after so many calls; counts checkpoints.
struct Watch {
    left: u64,
    checkpoints: Vec<PtsResult>,
    last: Option<Stage>,
}

impl Watch {
    fn new(left: u64) -> Watch {
        Watch { left, checkpoints: Vec::new(), last: None }
    }
}

impl Observer<PtsResult> for Watch {
    fn under_way(&mut self, stage: &Stage, _: &RunProgress) -> KeepGoing {
        self.last = Some(stage.clone());
        assert!(stage.done <= stage.of, "{stage:?}");
        self.left = self.left.saturating_sub(1);
        if self.left == 0 { KeepGoing::Stop } else { KeepGoing::Continue }
    }

    fn checkpoint(&mut self, result: &PtsResult) {
        self.checkpoints.push(result.clone());
    }
}

fn finished(plan: &PtsPlan, target: &mut KeptTarget) -> (PtsResult, Watch) {
    let mut watch = Watch::new(u64::MAX);
    let (result, failure) = plan.execute(target, &mut watch).unwrap();
    assert!(failure.is_none(), "{failure:?}");
    assert!(!result.partial);
    roxmltree::Document::parse(&ssdyno_pts::html(&result).replacen("<!DOCTYPE html>\n", "", 1))
        .unwrap();
    (result, watch)
}

#[test]
fn iops_of_a_simulated_device() {
    let (result, watch) = finished(&plan(Test::Iops), &mut small());
    let [part] = &result.parts[..] else { panic!("one part") };
    assert!(part.rounds.iter().all(|round| round.cells.len() == 56));
    assert_eq!(watch.checkpoints.len(), part.rounds.len());
    assert!(watch.checkpoints.iter().all(|checkpoint| checkpoint.partial));
    assert_eq!(result.steady, part.is_steady());
    let window = part.tracked.window.unwrap();
    assert_eq!(window.last_round as usize, part.rounds.len());
    // It stopped at the first window that is steady, and not before.
    let values = &part.tracked.values;
    let first = (5..=values.len())
        .find(|end| ssdyno_pts::Window::last(&values[..*end]).unwrap().steady)
        .unwrap_or(25);
    assert_eq!(first, values.len());
    let written = part.steps.last().unwrap().written_bytes as f64;
    let twice = 2.0 * result.settings.capacity_bytes as f64;
    assert!((written / twice - 1.0).abs() < 0.01, "{written} of {twice}");
    let cell = |read: u32, kib: u64| {
        let found =
            part.averages.iter().find(|a| a.read_percent == read && a.block_bytes == kib << 10);
        *found.unwrap()
    };
    // The average of the window is that of the tracked figure, and reads are faster than writes.
    assert!((cell(0, 4).iops / window.average - 1.0).abs() < 1e-9);
    assert!(cell(100, 4).iops > cell(0, 4).iops);
    assert!(cell(100, 128).throughput_bytes_per_second > cell(100, 4).throughput_bytes_per_second);
    assert!(ssdyno_pts::text(&result).contains("4 KiB R/W 0/100"));
}

/// The drive settles between two loads: its buffer is empty and its blocks are free again, so short loads are constant.
#[test]
fn rounds_that_a_write_buffer_took_are_not_steady() {
    let spec = RunSpec {
        set: [
            "flash.blocks_per_plane=16",
            "ftl.over_provisioning=0.5",
            "buffer.policy=lru",
            "buffer.size=16MiB",
        ]
        .map(str::to_owned)
        .into(),
        host: HostSpec { driver: Some(DriverSpec::Direct), ..HostSpec::default() },
        ..RunSpec::default()
    };
    let short = PtsPlan { target: "sim:config-a".into(), seed: 1, ..plan(Test::Iops) };
    let mut target = short.open(&spec, &mut Unattended).unwrap();
    let (result, _) = finished(&short, &mut target);
    let part = &result.parts[0];
    assert!(part.is_constant() && !part.is_steady() && !result.steady, "{:?}", part.tracked);
    let text = ssdyno_pts::text(&result);
    assert!(text.contains("constant, but NOT steady"), "{text}");
    let warning = &result.warnings[0];
    assert!(warning.message.contains("write buffer never filled"), "{warning:?}");
    assert!(warning.help.as_ref().unwrap().contains("--round"), "{warning:?}");
}

#[test]
fn only_the_latency_test_has_a_histogram_and_only_where_it_is_wanted() {
    let short =
        |test| PtsPlan { rounds_max: 5, round: Time::from_ms(1), precondition: 0.1, ..plan(test) };
    let none = PtsPlan { histogram: Time::ZERO, ..short(Test::Latency) };
    assert!(finished(&none, &mut small()).0.parts[0].histogram.is_none());
    assert!(finished(&short(Test::Iops), &mut small()).0.parts[0].histogram.is_none());
}

#[test]
fn the_same_seed_gives_the_same_rounds() {
    let plan =
        PtsPlan { precondition: 0.1, round: Time::from_ms(1), rounds_max: 5, ..plan(Test::Iops) };
    let (first, _) = finished(&plan, &mut small());
    let (again, _) = finished(&plan, &mut small());
    assert!(first == again);
}

#[test]
fn throughput_has_a_part_for_each_block_size() {
    let (result, _) = finished(&plan(Test::Throughput), &mut small());
    let names: Vec<&str> = result.parts.iter().map(|part| part.name.as_str()).collect();
    assert_eq!(names, ["sequential 1024 KiB", "sequential 128 KiB"]);
    for part in &result.parts {
        assert_eq!(part.steps.len(), 2, "purged and written over each");
        assert_eq!(part.averages.len(), 2);
    }
}

#[test]
fn latency_is_that_of_one_request_at_a_time() {
    let (result, watch) = finished(&plan(Test::Latency), &mut small());
    let [part] = &result.parts[..] else { panic!("one part") };
    // One checkpoint more than rounds: the long load at the end, all of whose answers are in bins.
    assert_eq!(watch.checkpoints.len(), part.rounds.len() + 1);
    let histogram = part.histogram.as_ref().unwrap();
    assert_eq!(histogram.load, "4 KiB R/W 0/100");
    assert!((histogram.seconds / 0.08 - 1.0).abs() < 0.01, "{}", histogram.seconds);
    assert_eq!(histogram.requests, histogram.bins.iter().map(|bin| bin.count).sum::<u64>());
    assert!(histogram.bins.windows(2).all(|two| two[0].to_ns <= two[1].from_ns));
    let middle = |bin: &ssdyno_figures::LatencyBin| (bin.from_ns + bin.to_ns) as f64 / 2.0;
    let sum: f64 = histogram.bins.iter().map(|bin| bin.count as f64 * middle(bin)).sum();
    let mean = sum / histogram.requests as f64;
    assert!((mean / histogram.latency_ns_mean.unwrap() - 1.0).abs() < 0.02, "{mean}");
    // One at a time: the load took as long as its answers.
    assert!((sum / 1e9 / histogram.seconds - 1.0).abs() < 0.02);
    assert!(ssdyno_pts::text(&result).contains("response times of 4 KiB R/W 0/100"));
    assert!(ssdyno_pts::html(&result).contains("Response time histogram"));
    assert_eq!(part.averages.len(), 9);
    for cell in part.rounds.iter().flat_map(|round| &round.cells) {
        // One at a time: rate times latency is one (Little).
        let together = cell.iops * cell.latency_ns_mean.unwrap() / 1e9;
        assert!((together - 1.0).abs() < 0.01, "{cell:?}");
        assert!(cell.latency_ns_max >= cell.latency_ns_mean);
    }
}

fn is_interrupted(failure: Option<&Failure>) -> bool {
    failure.is_some_and(|failure| failure.kind == FailureKind::Interrupted)
}

#[test]
fn an_interrupt_keeps_what_was_measured() {
    let mut watch = Watch::new(150);
    let (result, failure) = plan(Test::Iops).execute(&mut small(), &mut watch).unwrap();
    assert!(is_interrupted(failure.as_ref()) && result.partial && !result.steady);
    let part = &result.parts[0];
    let cells: usize = part.rounds.iter().map(|round| round.cells.len()).sum();
    assert!(cells > 56, "{cells}");
    assert_eq!(part.averages.len(), 56, "of the round that is whole");
    let page = ssdyno_pts::html(&result);
    assert!(page.contains("cut short"));
    // At the very first moment there is nothing to keep, and the test does not panic.
    let (none, _) = plan(Test::Iops).execute(&mut small(), &mut Watch::new(1)).unwrap();
    assert!(none.partial && none.parts[0].rounds.is_empty());
    assert!(!ssdyno_pts::text(&none).is_empty() && !ssdyno_pts::html(&none).is_empty());
}

/// Stops the preconditioning after its first writes.
struct StopEarly;

impl Observer<PtsResult> for StopEarly {
    fn under_way(&mut self, stage: &Stage, progress: &RunProgress) -> KeepGoing {
        let stop = stage.what.starts_with("overwriting") && progress.completed > 0;
        if stop { KeepGoing::Stop } else { KeepGoing::Continue }
    }
}

#[test]
fn an_interrupted_preconditioning_has_what_it_wrote() {
    let long = PtsPlan { precondition: 100.0, ..plan(Test::Iops) };
    let (result, failure) = long.execute(&mut small(), &mut StopEarly).unwrap();
    assert!(is_interrupted(failure.as_ref()) && result.partial);
    let step = result.parts[0].steps.last().unwrap();
    let times = step.written_bytes as f64 / result.settings.capacity_bytes as f64;
    let told = step.detail.strip_prefix("sequential writes of 128 KiB, ").unwrap();
    let told = told.strip_suffix(" instead of 100 times the capacity").unwrap();
    let told: f64 = told.parse().unwrap();
    assert!(times > 0.0 && times < 100.0 && (told / times - 1.0).abs() < 0.06, "{step:?}");
    // No load of a round ran.
    assert_eq!((result.notes, result.warnings), (vec![], vec![]));
}

/// No cache that fills, and no flash that is cleaned: what is constant stays so.
#[test]
fn a_device_without_cache_and_flash_is_steady_when_it_is_constant() {
    let short = PtsPlan {
        target: "sim:delay-100us".into(),
        rounds_max: 5,
        precondition: 0.0,
        histogram: Time::ZERO,
        ..plan(Test::Latency)
    };
    let spec = RunSpec {
        host: HostSpec { driver: Some(DriverSpec::Direct), ..HostSpec::default() },
        ..RunSpec::default()
    };
    let mut target = short.open(&spec, &mut Unattended).unwrap();
    let (result, _) = finished(&short, &mut target);
    assert!(result.steady && result.warnings.is_empty(), "{:?}", result.warnings);
}

#[test]
fn a_device_too_small_is_refused() {
    let tiny = PtsPlan { active_range_percent: 1e-6, ..plan(Test::Iops) };
    let refused = tiny.execute(&mut small(), &mut Watch::new(u64::MAX));
    assert!(refused.is_err_and(|failure| failure.kind == FailureKind::Usage));
}

#[cfg(target_os = "linux")]
#[test]
fn a_file() {
    let directory = tempfile::tempdir().unwrap();
    let target = directory.path().join("target").display().to_string();
    let short = PtsPlan { rounds_max: 5, round: Time::from_ms(5), depth: 4, ..plan(Test::Latency) };
    let short = PtsPlan { target, ..short };
    let mut spec = RunSpec::default();
    spec.write.size = "16MiB".parse().ok();
    // It is not made to be read: what the test writes to must be allowed.
    let refused = short.open(&spec, &mut Unattended).err().unwrap();
    assert!(refused.help.unwrap().contains("`write.allowed`"));
    spec.write.allowed = true;
    let (result, _) = finished(&short, &mut short.open(&spec, &mut Unattended).unwrap());
    assert_eq!(result.parts[0].tracked.values.len(), 5);
    assert!(result.notes.iter().any(|note| note.contains("one minute")), "{:?}", result.notes);
}
