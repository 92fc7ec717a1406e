//! Profiles that end early and go on.

use std::collections::BTreeMap;

use ssdyno_block::Time;
use ssdyno_block::units::Bytes;
use ssdyno_profile::{
    Method, ProfileOp, ProfilePlan, ProfileResult, ProfileTest, Ratio, SessionStart, Setup,
    SizeInterval, StoppedBecause,
};
use ssdyno_session::{Failure, FailureKind, RunSpec, Unattended};

use crate::common::{Until, direct};

fn plan(target: &str, method: Method) -> ProfilePlan {
    let sizes: Vec<SizeInterval> = ["8KiB..64KiB/8KiB", "64KiB..256KiB/32KiB"]
        .map(|interval| interval.parse().unwrap())
        .into();
    ProfilePlan { sizes, span: Some(Bytes(4 << 20)), seed: 7, ..ProfilePlan::new(target, method) }
}

fn session(
    plan: &ProfilePlan,
    spec: &RunSpec,
    before: Option<&ProfileResult>,
    tests: u64,
) -> (ProfileResult, Option<Failure>) {
    let mut target = plan.open(spec, &mut Unattended).unwrap();
    let start = SessionStart { setup: Setup::of(spec), before };
    let (result, failure) = plan.execute_session(&start, &mut target, &mut Until(tests)).unwrap();
    assert!(!ssdyno_profile::text(&result).is_empty());
    // As it lies in a file.
    let text = serde_json::to_string(&result).unwrap();
    assert!(serde_json::from_str::<ProfileResult>(&text).unwrap() == result);
    (result, failure)
}

fn finished(plan: &ProfilePlan, spec: &RunSpec, before: Option<&ProfileResult>) -> ProfileResult {
    let (result, failure) = session(plan, spec, before, u64::MAX);
    assert!(failure.is_none(), "{failure:?}");
    result
}

fn interrupted(
    plan: &ProfilePlan,
    spec: &RunSpec,
    before: Option<&ProfileResult>,
    tests: u64,
) -> ProfileResult {
    let (result, failure) = session(plan, spec, before, tests);
    assert!(failure.is_some_and(|failure| failure.kind == FailureKind::Interrupted));
    assert_eq!(result.stopped_because, StoppedBecause::Interrupted);
    result
}

fn counts(result: &ProfileResult) -> BTreeMap<(ProfileTest, u64), usize> {
    let mut counts = BTreeMap::new();
    for one in &result.measurements {
        *counts.entry((one.test, one.size_bytes)).or_default() += 1;
    }
    counts
}

/// A delay has no state: whole tests interrupted anywhere and resumed twice have the access times of those that
/// were not, and each cell was measured as often. Tolerance: rounding of a nanosecond.
#[test]
fn whole_tests_give_the_same_figures() {
    for method in [Method::Serra { points: 3, repeat: 2 }, Method::Full { error: 0.1 }] {
        let (plan, spec) = (plan("sim:delay-100us", method), direct(&[]));
        let once = finished(&plan, &spec, None);
        assert_eq!((once.sessions.len(), once.stopped_because), (1, StoppedBecause::Done));
        assert!(plan.is_finished(&once));
        for (first, second) in [(1, 1), (2, 9), (15, 3), (23, 1)] {
            let early = interrupted(&plan, &spec, None, first);
            assert!(!plan.is_finished(&early));
            let later = interrupted(&plan, &spec, Some(&early), second);
            let all = finished(&plan, &spec, Some(&later));
            assert_eq!(all.stopped_because, StoppedBecause::Done);
            assert_eq!(counts(&all), counts(&once));
            assert_eq!(all.measurements[..first as usize], early.measurements[..]);
            let parts: Vec<u64> = all.sessions.iter().map(|one| one.measurements).collect();
            assert_eq!(parts.len(), 3);
            assert_eq!((parts[0], parts[1]), (first, second));
            let spent: f64 = all.sessions.iter().map(|one| one.seconds_spent).sum();
            assert!((all.seconds_spent / spent - 1.0).abs() < 1e-12);
            assert!(all.notes.iter().any(|note| note.contains("3 sessions")), "{:?}", all.notes);
            for test in ProfileTest::ALL {
                for (one, other) in once.curves.of(test).iter().zip(all.curves.of(test)) {
                    let off = (one.access_time_ns - other.access_time_ns).abs();
                    assert!(off < 1.0 && one.repetitions == other.repetitions, "{one:?} {other:?}");
                }
            }
        }
    }
}

/// Before a whole test other than a sequential write, the span is written: 512 records of 8 KiB take 51.2 ms.
#[test]
fn the_span_is_written_again_before_the_other_tests() {
    let (plan, spec) =
        (plan("sim:delay-100us", Method::Serra { points: 2, repeat: 1 }), direct(&[]));
    let settling = |plan: &ProfilePlan, tests| {
        let early = interrupted(plan, &spec, None, tests);
        finished(plan, &spec, Some(&early)).sessions[1].settling_seconds
    };
    assert!((settling(&plan, 2) / 0.0512 - 1.0).abs() < 1e-3);
    assert_eq!(settling(&plan, 4), 0.0);
    // Nothing is ever written without writes in the plan.
    assert_eq!(settling(&ProfilePlan { ops: vec![ProfileOp::Read], ..plan }, 1), 0.0);
}

fn overlap(one: &Ratio, other: &Ratio) -> bool {
    one.size_bytes == other.size_bytes
        && one.low.unwrap() <= other.high.unwrap()
        && other.low.unwrap() <= one.high.unwrap()
}

/// Delays with an exponential spread, twelve seeds (7 to 18), interrupted in the first pass or later, once or three
/// times: the ratios have the same sizes, and at least 95 % of the 90 % intervals meet those of a profile without a break
/// (two independent ones miss each other with a probability of about 2 %). The true ratio of 1 is inside about as often
/// as without a break: 10 % of the cases less at most, because the sizes of a curve are correlated.
#[test]
fn an_adaptive_profile_goes_on() {
    let method = Method::Adaptive { error: 0.05 };
    let spec = direct(&["delay.spread=exponential"]);
    let (mut meet, mut inside, mut inside_once, mut of) = (0, 0, 0, 0);
    for seed in 7..19 {
        let plan = ProfilePlan { seed, ..plan("sim:delay-100us", method) };
        let once = finished(&plan, &spec, None);
        let stops = [vec![3], vec![20], vec![60], vec![10, 10, 40]][seed as usize % 4].clone();
        let mut before = None;
        for stop in &stops {
            before = Some(interrupted(&plan, &spec, before.as_ref(), *stop));
        }
        let before = before.unwrap();
        let all = finished(&plan, &spec, Some(&before));
        assert_eq!(all.sessions.len(), stops.len() + 1);
        assert_eq!(all.measurements[..before.measurements.len()], before.measurements[..]);
        let both = [(&once.read_ratio, &all.read_ratio), (&once.write_ratio, &all.write_ratio)];
        for (one, other) in both {
            assert_eq!((one.len(), other.len()), (14, 14));
            of += one.len();
            let covers = |one: &&Ratio| one.low.unwrap() <= 1.0 && one.high.unwrap() >= 1.0;
            meet += one.iter().zip(other).filter(|(one, other)| overlap(one, other)).count();
            inside += other.iter().filter(covers).count();
            inside_once += one.iter().filter(covers).count();
        }
        // What the file held was not measured again: not many more slices than without a break.
        let (slices, usual) = (all.measurements.len(), once.measurements.len());
        println!("seed {seed}, {stops:?}: {slices} slices, {usual} without a break");
        assert!(slices < 2 * usual + 20, "{slices} {usual}");
    }
    println!("meet {meet}, inside {inside}, without a break {inside_once}, of {of}");
    assert!(meet * 100 >= of * 95 && inside * 10 + of >= inside_once * 10);
}

/// A write-back cache of 8 MiB over one server of 1 ms a destage of 4 KiB. A new session begins with an empty cache; its
/// writes must count at the sustained rate, not at that of the cache. Tolerance: the intervals of both.
#[test]
fn the_burst_ends_again_before_writes_count() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("cache.toml");
    let device = "[array]\nstripe = \"4KiB\"\n[array.controller]\nlatency = \"50us\"\ncores = 1\n\
                  cache = \"8MiB\"\nwrite_back = true\n[[array.members]]\n[array.members.delay]\n\
                  capacity = \"256MiB\"\nread = \"100us\"\nwrite = \"1ms\"\nservers = 1\n";
    std::fs::write(&path, device).unwrap();
    let plan = ProfilePlan {
        ops: vec![ProfileOp::Write],
        span: Some(Bytes(256 << 20)),
        ..plan(path.to_str().unwrap(), Method::Adaptive { error: 0.05 })
    };
    let spec = direct(&[]);
    let once = finished(&plan, &spec, None);
    let bursts = |all: &[ssdyno_profile::Measurement]| {
        all.iter().any(|one| one.burst.is_some_and(|burst| burst.settled))
    };
    assert!(bursts(&once.measurements));
    for stop in [2, once.measurements.len() as u64 / 2] {
        let early = interrupted(&plan, &spec, None, stop);
        let all = finished(&plan, &spec, Some(&early));
        let later = &all.measurements[early.measurements.len()..];
        assert!(bursts(later), "the second session saw no burst");
        for (one, other) in once.write_ratio.iter().zip(&all.write_ratio) {
            assert!(overlap(one, other), "{one:?} {other:?}");
        }
        for test in [ProfileTest::SequentialWrite, ProfileTest::RandomWrite] {
            for (one, other) in once.curves.of(test).iter().zip(all.curves.of(test)) {
                let meet = one.low <= other.high && other.low <= one.high;
                assert!(meet, "{test}: {one:?} {other:?}");
            }
        }
    }
}

/// `--time` and 25 failed requests in a row leave a result that goes on, too.
#[test]
fn other_ends_go_on() {
    let method = Method::Adaptive { error: 0.05 };
    let long = ProfilePlan { ops: vec![ProfileOp::Read], ..plan("sim:delay-100us", method) };
    let short = ProfilePlan { time: Some(Time::from_ms(50)), ..long.clone() };
    let early = finished(&short, &direct(&[]), None);
    assert_eq!(early.stopped_because, StoppedBecause::TimeLimit);
    let all = finished(&long, &direct(&[]), Some(&early));
    assert_eq!(all.stopped_because, StoppedBecause::WithinError);
    assert!(all.read_ratio.iter().all(|one| (one.estimate - 1.0).abs() < 0.01));
    // The goal may be another one; then a finished profile goes on.
    let narrower = ProfilePlan { method: Method::Adaptive { error: 0.01 }, ..long.clone() };
    assert!(long.is_finished(&all) && !narrower.is_finished(&all));
    // `serra` cut by its time: completed cut tests remain, and the tests that did not count are measured.
    let serra = Method::Serra { points: 3, repeat: 1 };
    let short = ProfilePlan { time: Some(Time::from_us(2000)), method: serra, ..long.clone() };
    let early = finished(&short, &direct(&[]), None);
    let missing = early.sessions[0].dropped;
    assert!(missing > 0 && early.stopped_because == StoppedBecause::Done, "{early:?}");
    let long = ProfilePlan { method: serra, ..long };
    assert!(!long.is_finished(&early));
    let all = finished(&long, &direct(&[]), Some(&early));
    assert_eq!(all.sessions[1].measurements, missing);
    assert!(long.is_finished(&all));
}

/// A difference is reported with both values; a damaged profile is refused.
#[test]
fn another_profile_is_refused() {
    let method = Method::Serra { points: 2, repeat: 1 };
    let (same, spec) = (plan("sim:delay-100us", method), direct(&[]));
    let before = interrupted(&same, &spec, None, 3);
    let refused = |plan: ProfilePlan, spec: &RunSpec, before: &ProfileResult, said: &str| {
        let mut target = plan.open(spec, &mut Unattended).unwrap();
        let start = SessionStart { setup: Setup::of(spec), before: Some(before) };
        let error = plan.execute_session(&start, &mut target, &mut Until(99)).unwrap_err();
        assert!(error.to_string().contains(said), "{error}");
        assert!(error.help.is_some_and(|help| !help.is_empty()));
    };
    let other = |change: fn(&mut ProfilePlan)| {
        let mut plan = same.clone();
        change(&mut plan);
        plan
    };
    let set = direct(&["delay.read=50us"]);
    for (plan, spec, said) in [
        (
            other(|plan| plan.target = "sim:delay-10us".into()),
            &spec,
            "`target` is sim:delay-100us in the profile to resume, and sim:delay-10us now",
        ),
        (other(|plan| plan.method = Method::Full { error: 0.1 }), &spec, "`method` is serra"),
        (other(|plan| plan.ops = vec![ProfileOp::Read]), &spec, "`ops` is read,write"),
        (other(|plan| plan.sizes.truncate(1)), &spec, "`sizes` is 8KiB..64KiB/8KiB,64KiB"),
        (other(|plan| plan.span = Some(Bytes(8 << 20))), &spec, "`span` is 4MiB"),
        (other(|plan| plan.span = None), &spec, "`span` is 4194304 bytes"),
        (other(|plan| plan.depth = 8), &spec, "`depth` is 1 in the profile to resume, and 8 now"),
        (other(|plan| plan.seed = 8), &spec, "`seed` is 7"),
        (same.clone(), &set, "`set` is nothing"),
        (same.clone(), &RunSpec::default(), "`host` is driver = \"direct\""),
    ] {
        refused(plan, spec, &before, said);
    }
    let broken = |change: fn(&mut ProfileResult)| {
        let mut result = before.clone();
        change(&mut result);
        result
    };
    for (before, said) in [
        (broken(|one| one.plan = None), "no `plan`"),
        (broken(|one| one.measurements.truncate(2)), "its sessions have 3 measurements"),
        (broken(|one| one.sessions.clear()), "its sessions have 0 measurements"),
        (broken(|one| one.sessions[0].tests = u64::MAX), "session 1 has an invalid number"),
        (broken(|one| one.measurements[1].seconds = -1.0), "measurement 2 is invalid"),
        (broken(|one| one.measurements[1].seconds = 1e300), "measurement 2 is invalid"),
        (broken(|one| one.measurements[1].seconds = 1e-300), "measurement 2 is invalid"),
        (broken(|one| one.sessions[0].seconds_spent = 1e300), "session 1 has an invalid number"),
        (broken(|one| one.measurements[2].requests = u64::MAX), "measurement 3 is invalid"),
        (broken(|one| one.measurements[0].lead = u64::MAX), "measurement 1 is invalid"),
        (broken(|one| one.measurements[0].size_bytes = 0), "measurement 1 is invalid"),
        (broken(|one| one.plan.as_mut().unwrap().sizes.push("8".into())), "`sizes`: "),
        (broken(|one| one.plan.as_mut().unwrap().points = None), "its plan is invalid"),
        (broken(|one| one.plan.as_mut().unwrap().device.capacity_bytes += 1), "`capacity` is"),
        (
            broken(|one| one.plan.as_mut().unwrap().device.serial = Some("S1".into())),
            "`serial` is S1",
        ),
    ] {
        refused(same.clone(), &spec, &before, said);
    }
    let merged = ssdyno_profile::merge(&[before.clone(), finished(&same, &spec, None)]);
    refused(same.clone(), &spec, &merged.unwrap(), "no `plan`: it was merged");
}
