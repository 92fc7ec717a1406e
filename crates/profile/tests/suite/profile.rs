//! Whole profiles of simulated devices and of a file.

use ssdyno_block::Time;
use ssdyno_block::units::Bytes;
use ssdyno_profile::{
    Method, ProfileOp, ProfilePlan, ProfileResult, ProfileTest, SizeInterval, StoppedBecause,
};
use ssdyno_session::{Failure, FailureKind, RunSpec, Unattended};

use crate::common::{Watch, direct};

fn intervals(text: &str) -> Vec<SizeInterval> {
    text.split(',').map(|interval| interval.parse().unwrap()).collect()
}

fn plan(target: &str) -> ProfilePlan {
    ProfilePlan {
        sizes: intervals("8KiB..64KiB/8KiB,64KiB..256KiB/32KiB"),
        span: Some(Bytes(4 << 20)),
        seed: 7,
        ..ProfilePlan::new(target, Method::Serra { points: 2, repeat: 1 })
    }
}

/// A small SSD of configuration A.
fn small() -> RunSpec {
    let set = ["flash.blocks_per_plane=16", "ftl.over_provisioning=0.5"];
    RunSpec { set: set.map(str::to_owned).into(), ..direct(&[]) }
}

fn execute(plan: &ProfilePlan, spec: &RunSpec, calls: u64) -> (ProfileResult, Option<Failure>) {
    let mut target = plan.open(spec, &mut Unattended).unwrap();
    let (result, failure) = plan.execute(&mut target, &mut Watch(calls)).unwrap();
    let page = ssdyno_profile::html(&result);
    roxmltree::Document::parse(&page.replacen("<!DOCTYPE html>\n", "", 1)).unwrap();
    assert!(!ssdyno_profile::text(&result).is_empty());
    (result, failure)
}

fn finished(plan: &ProfilePlan, spec: &RunSpec) -> ProfileResult {
    let (result, failure) = execute(plan, spec, u64::MAX);
    assert!(failure.is_none(), "{failure:?}");
    result
}

/// A delay does not depend on the order of addresses nor on the size: every ratio is 1, every access time the
/// delay. Tolerance: the way through the host, well below a thousandth of 100 us without a driver.
#[test]
fn a_delay_has_the_ratio_1() {
    let plan = ProfilePlan { threshold: Some(1.5), ..plan("sim:delay-100us") };
    let result = finished(&plan, &direct(&[]));
    assert_eq!(result.stopped_because, StoppedBecause::Done);
    assert_eq!(result.sizes_bytes.len(), 14);
    for ratios in [&result.read_ratio, &result.write_ratio] {
        assert_eq!(ratios.len(), 14);
        assert!(ratios.iter().all(|ratio| (ratio.estimate - 1.0).abs() < 1e-3), "{ratios:?}");
        let measured: Vec<u64> =
            ratios.iter().filter(|ratio| ratio.measured).map(|ratio| ratio.size_bytes).collect();
        assert_eq!(measured, [8 << 10, 64 << 10, 256 << 10]);
        assert!(ratios.iter().all(|ratio| ratio.low.is_none() && ratio.high.is_none()));
    }
    for point in result.curves.of(ProfileTest::RandomRead) {
        assert!((point.access_time_ns / 100_000.0 - 1.0).abs() < 0.02, "{point:?}");
    }
    // Twelve tests, each of which accesses every record of the span once.
    assert_eq!(result.measurements.len(), 12);
    assert!(
        result.measurements.iter().all(|one| one.whole && one.requests * one.size_bytes == 4 << 20)
    );
    let spent: f64 = result.measurements.iter().map(|one| one.seconds).sum();
    assert!((result.seconds_spent / spent - 1.0).abs() < 1e-12);
    assert!(result.advice.len() == 2 && result.advice.iter().all(|a| a.sizes_bytes.is_empty()));
    assert_eq!(result.noise_floor, None);
}

#[test]
fn the_same_seed_gives_the_same_figures() {
    let plan =
        ProfilePlan { method: Method::Serra { points: 3, repeat: 2 }, ..plan("sim:config-a") };
    let once = |plan: &ProfilePlan| ProfileResult { wall_seconds: 0.0, ..finished(plan, &small()) };
    let first = once(&plan);
    assert!(first == once(&plan));
    assert!(first.noise_floor.is_some());
    assert!(first.read_ratio.iter().all(|ratio| ratio.low.is_some()));
    assert!(first.measurements != once(&ProfilePlan { seed: 8, ..plan }).measurements);
}

#[test]
fn a_full_profile_measures_every_size_six_times_or_more() {
    let plan = ProfilePlan {
        method: Method::Full { error: 0.1 },
        ops: vec![ProfileOp::Read],
        sizes: intervals("8KiB..32KiB/8KiB"),
        ..plan("sim:config-a")
    };
    let result = finished(&plan, &small());
    let curve = result.curves.of(ProfileTest::RandomRead);
    assert!(curve.len() == 4 && curve.iter().all(|point| point.repetitions >= 6));
    assert!(result.read_ratio.iter().all(|ratio| ratio.measured && ratio.low.is_some()));
    assert!(result.write_ratio.is_empty() && result.summary.write.is_none());
}

#[test]
fn the_time_limit_and_an_interrupt_keep_what_was_measured() {
    // 512 records of 8 KiB take 51 ms; all twelve tests take 0.25 s.
    let short = ProfilePlan { time: Some(Time::from_ms(100)), ..plan("sim:delay-100us") };
    let result = finished(&short, &direct(&[]));
    assert_eq!(result.stopped_because, StoppedBecause::Done);
    assert!(result.seconds_spent <= 0.1002, "{}", result.seconds_spent);
    assert!(result.measurements.iter().any(|one| !one.whole));
    assert!(result.notes.iter().any(|note| note.contains("`time`")), "{:?}", result.notes);
    // The headline does not contradict this note.
    let text = ssdyno_profile::text(&result);
    assert!(text.contains("; every test was run\n"), "{text}");
    // What was cut has the same access time.
    assert!(result.read_ratio.iter().all(|ratio| (ratio.estimate - 1.0).abs() < 0.01));
    // A complete profile does not share: it ends where the time does.
    let full = ProfilePlan { method: Method::Full { error: 0.1 }, ..short };
    let result = finished(&full, &direct(&[]));
    assert_eq!(result.stopped_because, StoppedBecause::TimeLimit);
    assert!(result.read_ratio.len() < 14);
    let (result, failure) = execute(&plan("sim:delay-100us"), &direct(&[]), 6);
    assert!(failure.is_some_and(|failure| failure.kind == FailureKind::Interrupted));
    assert_eq!(result.stopped_because, StoppedBecause::Interrupted);
    assert!(!result.measurements.is_empty() && result.measurements.len() < 6);
    // At the very first moment there is nothing to keep, and the profile does not panic.
    let (none, _) = execute(&plan("sim:delay-100us"), &direct(&[]), 1);
    assert!(none.measurements.is_empty() && none.summary.read.is_none());
}

#[test]
fn a_small_device_is_used_whole_and_that_is_said() {
    let plan = ProfilePlan { span: None, ops: vec![ProfileOp::Read], ..plan("sim:config-a") };
    let result = finished(&plan, &small());
    assert!(result.span_bytes < 1200 << 20);
    assert!(result.notes.iter().any(|note| note.contains("usual span")), "{:?}", result.notes);
}

#[cfg(target_os = "linux")]
#[test]
fn a_file_is_written_with_permission_and_never_by_reads() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().join("target");
    let writes = ProfilePlan { target: place.display().to_string(), span: None, ..plan("") };
    let mut spec = RunSpec::default();
    spec.write.size = "4MiB".parse().ok();
    let refused = writes.open(&spec, &mut Unattended).err().unwrap();
    assert!(refused.help.unwrap().contains("`ops=read`"));
    assert!(!place.exists());
    spec.write.allowed = true;
    let result = finished(&writes, &spec);
    assert!(!result.read_ratio.is_empty() && !result.write_ratio.is_empty());
    // Somebody else's file: reads alone leave every byte, with permission to write, too.
    let other = directory.path().join("other");
    std::fs::write(&other, vec![7; 1 << 20]).unwrap();
    let target = other.display().to_string();
    let reads = ProfilePlan { target, ops: vec![ProfileOp::Read], ..writes };
    for spec in [RunSpec::default(), spec] {
        let spec = RunSpec {
            write: ssdyno_session::WriteSpec { size: None, ..spec.write.clone() },
            ..spec
        };
        let result = finished(&reads, &spec);
        assert_eq!(result.read_ratio.len(), 14);
        assert!(std::fs::read(&other).unwrap().iter().all(|byte| *byte == 7));
    }
}

/// Merges two profiles of a noisy device: each interval is narrower than the wider of the two, the mean width falls by
/// about the root of two (20 to 40 %), and the intervals contain the true ratio of 1 as often as they claim.
#[test]
fn merged_profiles_are_surer() {
    let spec = RunSpec { set: vec!["delay.spread=exponential".to_owned()], ..direct(&[]) };
    let method = Method::Full { error: 0.1 };
    let of_seed = |seed| finished(&ProfilePlan { seed, method, ..plan("sim:delay-100us") }, &spec);
    let both = [of_seed(1), of_seed(2)];
    let merged = ssdyno_profile::merge(&both).unwrap();
    assert_eq!(merged.measurements.len(), both[0].measurements.len() + both[1].measurements.len());
    let width = |profile: &ProfileResult| {
        let all = profile.read_ratio.iter().chain(&profile.write_ratio);
        let widths: Vec<f64> = all.map(|one| (one.high.unwrap() / one.low.unwrap()).ln()).collect();
        widths.iter().sum::<f64>() / widths.len() as f64
    };
    let narrower = width(&merged) / (width(&both[0]).hypot(width(&both[1])) / 2.0_f64.sqrt());
    assert!((0.6..0.8).contains(&narrower), "{narrower}");
    let all = merged.read_ratio.iter().chain(&merged.write_ratio);
    let inside = all.clone().filter(|one| one.low.unwrap() <= 1.0 && one.high.unwrap() >= 1.0);
    assert!(inside.count() * 10 >= all.count() * 8);
    assert!(!ssdyno_profile::text(&merged).is_empty());

    let refused = |other: &ProfileResult, why: &str| {
        let error = ssdyno_profile::merge(&[both[0].clone(), other.clone()]).unwrap_err();
        assert!(error.to_string().contains(why), "{error}");
    };
    refused(&ProfileResult { span_bytes: 1 << 20, ..both[1].clone() }, "the span");
    refused(&ProfileResult { depth: 8, ..both[1].clone() }, "the depth");
    refused(&both[0], "the same measurements as profile 1");
    assert!(ssdyno_profile::merge(&both[..1]).is_err());
}

/// A device that fails one request in 500 is profiled all the same: slices with failed requests do not count. One that
/// fails all ends the profile.
#[test]
fn slices_with_failed_requests_do_not_count() {
    let method = Method::Adaptive { error: 0.05 };
    let ops = vec![ProfileOp::Read];
    let plan = ProfilePlan { method, ops, time: Some(Time::from_s(60)), ..plan("sim:delay-100us") };
    let failing = |share: &str| {
        let set = vec![format!("faults.error={share}")];
        RunSpec { set, ..direct(&[]) }
    };
    let (result, failure) = execute(&plan, &failing("0.002"), u64::MAX);
    assert!(failure.is_none(), "{failure:?}");
    assert_eq!(result.read_ratio.len(), result.sizes_bytes.len());
    assert!(result.read_ratio.iter().all(|one| (one.estimate - 1.0).abs() < 0.01));
    assert!(result.notes.iter().any(|note| note.contains("do not count")), "{:?}", result.notes);
    let mut target = plan.open(&failing("1"), &mut Unattended).unwrap();
    let error = plan.execute(&mut target, &mut Watch(u64::MAX)).unwrap_err();
    assert!(error.message.contains("ended in an error, the last in"), "{error:?}");
}
