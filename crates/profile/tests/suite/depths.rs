//! Profiles at several depths.

use ssdyno_block::Time;
use ssdyno_block::units::Bytes;
use ssdyno_figures::{KeepGoing, RunProgress};
use ssdyno_profile::{
    Method, ProfileOp, ProfilePlan, ProfileResult, ProfileTest, SessionStart, Setup, StoppedBecause,
};
use ssdyno_session::{DriverSpec, HostSpec, Observer, RunSpec, Stage, Unattended};

const ADAPTIVE: Method = Method::Adaptive { error: 0.05 };
const SERRA: Method = Method::Serra { points: 3, repeat: 1 };
const FULL: Method = Method::Full { error: 0.1 };

/// 512 records of 64 KiB, 128 of 256 KiB.
fn plan(method: Method) -> ProfilePlan {
    ProfilePlan {
        target: "sim:delay-100us".to_owned(),
        method,
        ops: vec![ProfileOp::Read, ProfileOp::Write],
        sizes: vec!["64KiB..256KiB/32KiB".parse().unwrap()],
        span: Some(Bytes(32 << 20)),
        depth: 1,
        more_depths: vec![8],
        solution: None,
        time: None,
        threshold: Some(0.5),
        seed: 7,
    }
}

/// Four servers; requests reach the device without a driver.
fn spec() -> RunSpec {
    let host = HostSpec { driver: Some(DriverSpec::Direct), ..HostSpec::default() };
    RunSpec { host, set: vec!["delay.servers=4".to_owned()], ..RunSpec::default() }
}

/// Stops when so many tests are done.
struct Until(u64);

impl<R> Observer<R> for Until {
    fn under_way(&mut self, stage: &Stage, _: &RunProgress) -> KeepGoing {
        assert!(stage.done < stage.of && stage.what.contains("depth "), "{stage:?}");
        if stage.done >= self.0 { KeepGoing::Stop } else { KeepGoing::Continue }
    }
}

fn session(plan: &ProfilePlan, before: Option<&ProfileResult>, tests: u64) -> ProfileResult {
    session_on(&spec(), plan, before, tests)
}

fn session_on(
    spec: &RunSpec,
    plan: &ProfilePlan,
    before: Option<&ProfileResult>,
    tests: u64,
) -> ProfileResult {
    let mut target = plan.open(spec, &mut Unattended).unwrap();
    let start = SessionStart { setup: Setup::of(spec), before };
    let (result, _) = plan.execute_session(&start, &mut target, &mut Until(tests)).unwrap();
    let page = ssdyno_profile::html(&result);
    roxmltree::Document::parse(&page.replacen("<!DOCTYPE html>\n", "", 1)).unwrap();
    let text = serde_json::to_string(&result).unwrap();
    assert!(serde_json::from_str::<ProfileResult>(&text).unwrap() == result);
    result
}

/// Four servers of 100 us: an access time of 100 us with one outstanding, and of 25 us with eight. Every ratio is 1.
/// Tolerance: a wave of four requests, of 64 or more that a slice has at depth 8.
#[test]
fn each_depth_has_its_access_times() {
    for method in [ADAPTIVE, SERRA, FULL] {
        let result = session(&plan(method), None, u64::MAX);
        let depths: Vec<u32> = result.of_depths().iter().map(|one| one.depth).collect();
        assert_eq!(depths, [1, 8]);
        for (one, expected) in result.of_depths().into_iter().zip([100e3, 25e3]) {
            assert!(
                ![StoppedBecause::TimeLimit, StoppedBecause::Failed].contains(&one.stopped_because)
            );
            for test in ProfileTest::ALL {
                assert_eq!(one.curves.of(test).len(), 7);
                for point in one.curves.of(test) {
                    let off = (point.access_time_ns / expected - 1.0).abs();
                    assert!(off < 4.0 / 64.0, "{method:?}, depth {}: {test}, {point:?}", one.depth);
                }
            }
            let all = one.read_ratio.iter().chain(&one.write_ratio);
            assert!(
                all.clone().count() == 14 && all.clone().all(|r| (r.estimate - 1.0).abs() < 0.05)
            );
            assert_eq!(one.advice.len(), 2);
            assert!(one.advice.iter().all(|advice| advice.sizes_bytes.len() == 7));
        }
        let text = ssdyno_profile::text(&result);
        for said in ["1, 8 outstanding", "read ratio, depth 8", "depth 8: read ratio: mean "] {
            assert!(text.contains(said), "{said}: {text}");
        }
        let page = ssdyno_profile::html(&result);
        assert!(page.contains("Access time per request, depth 8"));
    }
}

/// Depths share the time: with `adaptive` evenly, slice by slice, so that a drift spreads over both; the others take half
/// each. Tolerance of `adaptive`: a slice of 0.1 s.
#[test]
fn depths_share_the_time() {
    for (method, most) in [(ADAPTIVE, 1.0), (SERRA, 0.1), (FULL, 0.1)] {
        let limit = most * 0.4;
        let time = Some(Time::from_ns((limit * 1e9) as u64));
        let result = session(&ProfilePlan { time, ..plan(method) }, None, u64::MAX);
        let spent: Vec<f64> = result.of_depths().iter().map(|one| one.seconds_spent).collect();
        let sum: f64 = spent.iter().sum();
        assert!(sum <= limit * 1.01, "{method:?}: {spent:?} of {limit}");
        assert!(spent.iter().all(|one| *one <= limit / 2.0 + 0.1 * most), "{method:?}: {spent:?}");
        assert!(result.of_depths().iter().all(|one| !one.measurements.is_empty()));
    }
}

#[test]
fn several_depths_go_on() {
    for method in [SERRA, FULL] {
        let plan = plan(method);
        let once = session(&plan, None, u64::MAX);
        let of_depth = once.measurements.len() as u64;
        // In the first depth, and in the second one.
        for stop in [3, of_depth + 3] {
            let early = session(&plan, None, stop);
            assert!(!plan.is_finished(&early));
            let all = session(&plan, Some(&early), u64::MAX);
            assert!(plan.is_finished(&all));
            for (one, other) in once.of_depths().into_iter().zip(all.of_depths()) {
                assert_eq!(one.measurements.len(), other.measurements.len());
                assert_eq!(other.sessions.len(), 2);
            }
            let held: usize = early.of_depths().iter().map(|one| one.measurements.len()).sum();
            assert_eq!(held as u64, stop);
        }
    }
    let plan = plan(ADAPTIVE);
    let early = session(&plan, None, 30);
    assert!(early.of_depths().iter().all(|one| !one.measurements.is_empty()), "not in turn");
    let all = session(&plan, Some(&early), u64::MAX);
    for (one, other) in early.of_depths().into_iter().zip(all.of_depths()) {
        assert_eq!(one.measurements[..], other.measurements[..one.measurements.len()]);
        for ratio in &other.read_ratio {
            assert!((ratio.estimate - 1.0).abs() < 0.05, "{ratio:?}");
        }
    }
    for more_depths in [vec![], vec![4], vec![8, 4]] {
        let other = ProfilePlan { more_depths, ..plan.clone() };
        let error = other.resume(&early, &Setup::of(&spec())).unwrap_err();
        assert!(error.to_string().contains("`depth` is 1,8 in"), "{error}");
    }
    // Damage at the second depth is found, too.
    let mut broken = early.clone();
    broken.more_depths[0].measurements[0].seconds = 0.0;
    assert!(plan.resume(&broken, &Setup::of(&spec())).unwrap_err().to_string().contains("damaged"));
}

#[test]
fn profiles_of_the_same_depths_merge() {
    let mut noisy = spec();
    noisy.set.push("delay.spread=exponential".to_owned());
    let of = |seed, more_depths, tests| {
        session_on(&noisy, &ProfilePlan { seed, more_depths, ..plan(FULL) }, None, tests)
    };
    // The second one ended early.
    let both = [of(1, vec![8], u64::MAX), of(2, vec![8], 200)];
    let merged = ssdyno_profile::merge(&both).unwrap();
    for (one, other) in merged.of_depths().into_iter().zip(both[0].of_depths()) {
        assert_eq!((one.depth, one.read_ratio.len()), (other.depth, 7));
    }
    let error = ssdyno_profile::merge(&[both[0].clone(), of(2, vec![4], u64::MAX)]).unwrap_err();
    assert!(error.to_string().contains("the depth 1,4, and the first 1,8"), "{error}");
}
