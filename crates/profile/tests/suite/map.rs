//! Maps of simulated devices with a closed form.

use ssdyno_block::Time;
use ssdyno_profile::{MapResult, Method, ProfileOp, ProfilePlan, ProfileResult, StoppedBecause};
use ssdyno_session::{DriverSpec, HostSpec, RunSpec, Unattended};

use crate::common::Until;

fn plan(target: &str, time: Time) -> ProfilePlan {
    ProfilePlan {
        sizes: Vec::new(),
        time: Some(time),
        seed: 3,
        ..ProfilePlan::new(target, Method::Map { error: 0.1 })
    }
}

fn execute(plan: &ProfilePlan, loads: u64) -> (ProfileResult, MapResult, bool) {
    let host = HostSpec { driver: Some(DriverSpec::Direct), ..HostSpec::default() };
    let spec = RunSpec { host, ..RunSpec::default() };
    let mut target = plan.open(&spec, &mut Unattended).unwrap();
    let (result, failure) = plan.execute(&mut target, &mut Until(loads)).unwrap();
    assert!(ssdyno_profile::text(&result).contains("map, seed "));
    let page = ssdyno_profile::html(&result);
    roxmltree::Document::parse(&page.replacen("<!DOCTYPE html>\n", "", 1)).unwrap();
    let map = result.map.clone().unwrap();
    // The intervals are those of the loads, whose level differs from the 90 % of a profile.
    assert!(map.measured() == 0 || page.contains("95 % interval"));
    assert!(!page.contains("90 % interval"));
    assert_eq!(ssdyno_figures::LEVEL, 0.95);
    (result, map, failure.is_some())
}

/// A rented volume of 20 000 requests per second, whatever their size, 100 us away.
fn volume() -> (tempfile::TempDir, String) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("volume.toml");
    let device = "[volume]\nunit = \"256KiB\"\nlatency = \"100us\"\n[volume.iops]\nbaseline = 20000.0\n\
                  [volume.device.delay]\ncapacity = \"4GiB\"\nread = \"1us\"\nwrite = \"1us\"\nservers = 64\n";
    std::fs::write(&path, device).unwrap();
    let name = path.to_str().unwrap().to_owned();
    (dir, name)
}

/// Reads and writes share one limit of requests: rates are reached where reads / 20 000 + writes / 20 000 is below 1, and
/// not above (seed 3; 6 % below and 8 % above: a load has about 5000 requests, 4 % may be missing, and their number has a
/// standard deviation of 1.4 %; at 93 % of the load some queues do not settle within 16 000 reads). Below a load of
/// 5 % hardly anything waits for the limit: the latency is that of the volume, 101 us, within 3 %. At half of the load the
/// wait of Poisson arrivals at a server of 50 us has a 95th percentile of 2.05 services (the M/D/1 queue of A. K. Erlang),
/// which is 203 us in all, within twice the error of the map: its own, and the noise of loads.
#[test]
fn the_map_of_a_limit_of_requests_has_its_border() {
    let (_dir, name) = volume();
    let (result, map, failed) = execute(&plan(&name, Time::from_s(240)), u64::MAX);
    assert!(!failed);
    assert_eq!(result.stopped_because, StoppedBecause::WithinError);
    assert!((map.read_iops_max / 20e3 - 1.0).abs() < 0.01, "{}", map.read_iops_max);
    let bytes = 20e3 * f64::from(128 << 10);
    assert!((map.write_bytes_per_second_max / bytes - 1.0).abs() < 0.01);
    let load = |reads: f64, written: f64| reads / 20e3 + written / bytes;
    for point in &map.points {
        let load = load(point.read_iops, point.write_bytes_per_second);
        match point.overloaded {
            true => assert!(load > 0.9, "{load}: {point:?}"),
            false => assert!(load < 1.08, "{load}: {point:?}"),
        }
        if load < 0.05 {
            assert!((point.read_p95_us.unwrap() / 101.0 - 1.0).abs() < 0.03, "{point:?}");
        }
        if let (Some(reached), true) = (point.read_iops_reached, !point.overloaded && load < 0.9) {
            // Poisson arrivals: five standard deviations of their number.
            let noise = 5.0 / (point.reads as f64).sqrt();
            assert!((reached / point.read_iops - 1.0).abs() < noise, "{point:?}");
        }
    }
    for share in [0.1, 0.3, 0.5, 0.7, 0.9] {
        let p95 = map.read_p95_us(10e3 * share, 0.5 * bytes * (1.0 - share)).unwrap();
        assert!((p95 / 203.5 - 1.0).abs() < 0.2, "{share}: {p95}");
        assert_eq!(map.read_p95_us(24e3 * share, 1.2 * bytes * (1.0 - share)), None, "{share}");
    }
    let held_out = map.held_out.unwrap();
    assert!(held_out.random && held_out.points >= 3, "{held_out:?}");
    // The error of the map, and the noise of eight points: some 5 % each.
    assert!(held_out.median <= 0.15, "{held_out:?}");
    // A full grid with the steps of the finest triangles has 17 x 17.
    assert!(map.measured() < 17 * 17 / 2, "{}", map.measured());
}

/// One exponential server of 100 us for reads and writes: the 95th percentile is that of the M/M/1 queue, 100 us x ln 20 /
/// (1 - load). Up to a load of 90 % of the server (seeds 3 to 5; tolerance 25 %: twice the error of the map, and the noise
/// of its points) at most one place of twenty is further off. No point beyond the server has a latency; the noise of
/// arrivals allows 3 %.
#[test]
fn the_map_of_a_queue_is_that_of_the_closed_form() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("queue.toml");
    let device = "[delay]\ncapacity = \"1GiB\"\nread = \"100us\"\nwrite = \"100us\"\nservers = 1\n\
                  spread = \"exponential\"\n";
    std::fs::write(&path, device).unwrap();
    let (mut places, mut far) = (0, Vec::new());
    for seed in 3..6 {
        let plan = ProfilePlan { seed, ..plan(path.to_str().unwrap(), Time::from_s(600)) };
        let (_, map, _) = execute(&plan, u64::MAX);
        assert!((map.read_iops_max / 1e4 - 1.0).abs() < 0.015, "{}", map.read_iops_max);
        let bytes = 1e4 * f64::from(128 << 10);
        let load = |reads: f64, written: f64| reads / 1e4 + written / bytes;
        for point in map.points.iter().filter(|point| !point.overloaded) {
            let load = load(point.read_iops, point.write_bytes_per_second);
            assert!(load < 1.03, "seed {seed}, load {load}: {point:?}");
        }
        for (x, y) in (1..20).flat_map(|x| (1..20).map(move |y| (x, y))) {
            let (reads, written) = (500.0 * f64::from(x), bytes / 20.0 * f64::from(y));
            let load = load(reads, written);
            if load > 0.901 {
                continue;
            }
            places += 1;
            let right = 100.0 * 20_f64.ln() / (1.0 - load);
            // Triangles across the border have no latency; their sides are an eighth of an axis at most.
            let Some(p95) = map.read_p95_us(reads, written) else {
                assert!(load > 0.79, "seed {seed}: nothing at {reads}, {written}");
                continue;
            };
            if !(0.8..1.25).contains(&(p95 / right)) {
                far.push((seed, reads, written / bytes, p95 / right));
            }
        }
    }
    assert!(places == 3 * 153 && far.len() * 20 <= places, "{} of {places}: {far:?}", far.len());
}

/// A cache of 16 MiB before one server that writes 131 MB/s: within 5 s a point may last for 0.1 s and write 16 MB at most, and
/// the cache takes all writes. The warning names the time in which the lowest rate of the coarse grid writes twice the cache
/// (8 x 16 MiB / 131 MB/s = 1.02 s, which is 2 % of 51 to 52 s), and a map of this time has no warning.
#[test]
fn points_that_a_write_buffer_took_are_a_warning() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("cache.toml");
    let device = "[array]\nstripe = \"128KiB\"\n[array.controller]\nlatency = \"50us\"\ncores = 1\n\
                  cache = \"16MiB\"\nwrite_back = true\n[[array.members]]\n[array.members.delay]\n\
                  capacity = \"1GiB\"\nread = \"100us\"\nwrite = \"1ms\"\nservers = 1\n";
    std::fs::write(&path, device).unwrap();
    let of = |time| execute(&plan(path.to_str().unwrap(), time), u64::MAX).0;
    let short = of(Time::from_s(5));
    assert_eq!(short.warnings.len(), 1, "{:?}", short.warnings);
    let help = short.warnings[0].help.clone().unwrap();
    let seconds = help.strip_prefix("profile with `time=").and_then(|rest| rest.split_once("s`"));
    let seconds: u64 = seconds.unwrap().0.parse().unwrap();
    assert!((50..=54).contains(&seconds), "{help}");
    let text = ssdyno_profile::text(&short);
    assert!(text.starts_with("warning: ") && text.contains("(16MiB)"), "{text}");
    let long = of(Time::from_s(seconds));
    assert!(long.warnings.is_empty(), "{:?}", long.warnings);
}

#[test]
fn the_same_seed_gives_the_same_map() {
    let (_dir, name) = volume();
    let plan = plan(&name, Time::from_s(10));
    let (_, first, _) = execute(&plan, u64::MAX);
    assert!(first == execute(&plan, u64::MAX).1);
    let other = execute(&ProfilePlan { seed: 4, ..plan }, u64::MAX).1;
    assert!(first.points != other.points);
}

#[test]
fn time_and_an_interrupt_keep_the_points() {
    let (_dir, name) = volume();
    let (result, map, failed) = execute(&plan(&name, Time::from_s(2)), u64::MAX);
    assert!(!failed && result.seconds_spent < 2.2);
    assert_eq!(result.stopped_because, StoppedBecause::TimeLimit);
    assert!(map.measured() > 0);
    let (result, map, failed) = execute(&plan(&name, Time::from_s(120)), 30);
    assert!(failed && map.measured() > 0 && !map.triangles.is_empty());
    assert_eq!(result.stopped_because, StoppedBecause::Interrupted);
    // Before the first point there is nothing to draw. The time did not end the map, and rates that were not
    // measured are not 0.
    let (result, map, _) = execute(&plan(&name, Time::from_s(120)), 0);
    assert!(map.points.is_empty());
    let text = ssdyno_profile::text(&result);
    assert!(text.contains("the coarse grid of the map is not complete"), "{text}");
    assert!(!text.contains("highest rates") && !text.contains("too short"), "{text}");
    // Two loads are part of the search for the highest rate of writes.
    let (result, ..) = execute(&plan(&name, Time::from_s(120)), 2);
    let text = ssdyno_profile::text(&result);
    assert!(text.contains("highest rates alone so far: sequential writes of 128KiB at "), "{text}");
    assert!(!text.contains("random reads"), "{text}");
}

#[test]
fn what_has_no_map_is_said() {
    let (_dir, name) = volume();
    let usual = || plan(&name, Time::from_s(120));
    for (plan, said) in [
        (
            ProfilePlan { ops: vec![ProfileOp::Read], ..usual() },
            "`method=map` needs reads and writes",
        ),
        (
            ProfilePlan { time: Some(Time::from_ms(500)), ..usual() },
            "`time` is too short for a map",
        ),
        (ProfilePlan { method: Method::Map { error: 0.001 }, ..usual() }, "`error` of a map"),
    ] {
        let refused = plan.open(&RunSpec::default(), &mut Unattended).err().unwrap();
        assert!(refused.to_string().contains(said), "{refused}");
    }
    let (result, ..) = execute(&plan(&name, Time::from_s(2)), u64::MAX);
    let other = ProfileResult { seed: 4, ..result.clone() };
    let refused = ssdyno_profile::merge(&[result, other]).unwrap_err();
    assert!(refused.to_string().contains("maps cannot be merged"), "{refused}");
}
