//! The capacity of simulated devices and of a file.

use ssdyno_block::Time;
use ssdyno_block::units::Bytes;
use ssdyno_profile::{
    CapacityResult, Figure, MediaKind, Method, ProfileOp, ProfilePlan, ProfileResult,
    SchedulerFile, StoppedBecause, scheduler_file,
};
use ssdyno_session::{RunSpec, Unattended, WriteSpec};

use crate::common::{Watch, direct};

fn plan(target: &str, time: Time) -> ProfilePlan {
    ProfilePlan {
        sizes: Vec::new(),
        time: Some(time),
        seed: 3,
        ..ProfilePlan::new(target, Method::Capacity { error: 0.05 })
    }
}

fn execute(plan: &ProfilePlan, spec: &RunSpec, calls: u64) -> (ProfileResult, bool) {
    let mut target = plan.open(spec, &mut Unattended).unwrap();
    let (result, failure) = plan.execute(&mut target, &mut Watch(calls)).unwrap();
    assert!(ssdyno_profile::text(&result).contains("capacity, seed "));
    let page = ssdyno_profile::html(&result);
    roxmltree::Document::parse(&page.replacen("<!DOCTYPE html>\n", "", 1)).unwrap();
    (result, failure.is_some())
}

fn finished(plan: &ProfilePlan, spec: &RunSpec) -> (ProfileResult, CapacityResult) {
    let (result, failed) = execute(plan, spec, u64::MAX);
    assert!(!failed);
    let capacity = result.capacity.clone().unwrap();
    (result, capacity)
}

fn value(capacity: &CapacityResult, figure: Figure) -> f64 {
    capacity.figure(figure).unwrap().estimate
}

/// Sixteen servers take 100 us for reads and 200 us for writes of any size: 160 000 and 80 000 requests per second from
/// 16 outstanding on, and 1 / (0.7 / 160 000 + 0.3 / 80 000) for the mix. A linear model of the small requests gives
/// the same. Tolerance: 1 %, of the ends of slices; 3 % for the mix, whose shares are drawn.
#[test]
fn figures_of_servers_are_those_of_the_closed_form() {
    let set = ["delay.read=100us", "delay.write=200us", "delay.servers=16"];
    let (result, capacity) = finished(&plan("sim:delay-100us", Time::from_s(20)), &direct(&set));
    assert_eq!(result.stopped_because, StoppedBecause::WithinError);
    let near =
        |value: f64, expected: f64, tolerance: f64| (value / expected - 1.0).abs() < tolerance;
    for (figure, expected) in [
        (Figure::Rbps, 160e3 * f64::from(1 << 20)),
        (Figure::Rseqiops, 160e3),
        (Figure::Rrandiops, 160e3),
        (Figure::Wbps, 80e3 * f64::from(1 << 20)),
        (Figure::Wseqiops, 80e3),
        (Figure::Wrandiops, 80e3),
    ] {
        let one = capacity.figure(figure).unwrap();
        assert!(near(one.estimate, expected, 0.01), "{one:?}");
        assert!(one.low.unwrap() <= one.estimate && one.estimate <= one.high.unwrap());
        assert_eq!((one.depth, one.burst), (16, None));
        assert!(one.rounds >= 5 && one.depths.len() >= 6);
    }
    assert_eq!(capacity.disk.media, Some(MediaKind::Ssd));
    let mix = capacity.checks.iter().find(|check| check.size_bytes == 4096).unwrap();
    let expected = 1.0 / (0.7 / 160e3 + 0.3 / 80e3);
    assert!(near(mix.measured_iops, expected, 0.03), "{mix:?}");
    assert!(mix.iocost_error.unwrap().abs() < 0.04, "{mix:?}");
    let moderate = capacity.moderate.unwrap();
    assert!(moderate.load <= 0.8 && near(moderate.read_p99_us, 100.0, 0.05), "{moderate:?}");
    assert!(capacity.implausible.is_empty(), "{:?}", capacity.implausible);
    let model = scheduler_file(SchedulerFile::IoCostModel, &result, "0").unwrap();
    assert!(model.contains("MAJ:MIN ctrl=user model=linear rbps="), "{model}");
}

#[test]
fn the_same_seed_gives_the_same_figures() {
    let set = ["flash.blocks_per_plane=16", "ftl.over_provisioning=0.5"];
    let plan = plan("sim:config-a", Time::from_s(60));
    let once = |plan: &ProfilePlan| finished(plan, &direct(&set)).1;
    let first = once(&plan);
    assert!(first == once(&plan));
    assert_eq!(first.figures.len(), 6);
    assert!(first.figures != once(&ProfilePlan { seed: 4, ..plan }).figures);
}

/// A volume with 20 000 credits of requests: 4000 a second until they are used up, then 1000 (the baseline). The file has
/// what is sustained.
#[test]
fn credits_are_a_burst() {
    let set =
        ["volume.iops.baseline=1000.0", "volume.iops.burst=4000.0", "volume.iops.bucket=20000.0"];
    let plan = plan("sim:volume-gp2-100g", Time::from_s(180));
    let (_, capacity) = finished(&plan, &direct(&set));
    for figure in [Figure::Wrandiops, Figure::Rrandiops] {
        let estimate = value(&capacity, figure);
        assert!((estimate / 1000.0 - 1.0).abs() < 0.05, "{figure:?}: {estimate}");
    }
    // 20 000 credits, of which 3000 more a second are used than come.
    let burst = capacity.figure(Figure::Wrandiops).unwrap().burst.unwrap();
    let near = |value: f64, expected: f64| (value / expected - 1.0).abs() < 0.1;
    assert!(near(burst.rate, 4000.0) && near(burst.sustained, 1000.0), "{burst:?}");
    assert!(near(burst.seconds, 20.0 / 3.0), "{burst:?}");
}

/// A write-back cache of 128 MiB over one server of 1 ms a destage of 4 KiB: reads between the rounds let it empty, but
/// 1000 destages a second are sustained. Each carries one sequential write; an eighth of random writes over 1 GiB meets
/// data that are in the cache still. Tolerance: 5 %.
#[test]
fn a_cache_that_empties_between_rounds_is_not_sustained() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("cache.toml");
    let device = "[array]\nstripe = \"4KiB\"\n[array.controller]\nlatency = \"50us\"\ncores = 1\n\
                  cache = \"128MiB\"\nwrite_back = true\n[[array.members]]\n[array.members.delay]\n\
                  capacity = \"1GiB\"\nread = \"100us\"\nwrite = \"1ms\"\nservers = 1\n";
    std::fs::write(&path, device).unwrap();
    let plan = plan(path.to_str().unwrap(), Time::from_s(180));
    let (_, capacity) = finished(&plan, &direct(&[]));
    for (figure, expected) in
        [(Figure::Wseqiops, 1000.0), (Figure::Wrandiops, 1000.0 / (1.0 - 0.125))]
    {
        let estimate = value(&capacity, figure);
        assert!((estimate / expected - 1.0).abs() < 0.05, "{figure:?}: {estimate}");
    }
}

/// Cleaning lets the rate of random writes swing by half within 0.14 s. Rounds of 0.1 s that all begin with an empty buffer
/// meet one part of this cycle: 52.3 k per second. A long run with ramp-up sustains 64.1 k. Tolerance: 10 %, for the state
/// that the other tests leave.
#[test]
fn rounds_cover_cycles_of_cleaning() {
    let plan = ProfilePlan { seed: 1, ..plan("sim:gen4-consumer", Time::from_s(60)) };
    let (_, capacity) = finished(&plan, &RunSpec::default());
    let estimate = value(&capacity, Figure::Wrandiops);
    assert!((estimate / 64.1e3 - 1.0).abs() < 0.1, "{:?}", capacity.figure(Figure::Wrandiops));
}

/// The write buffer of 16 MiB holds the writes of a mix for 0.3 s. After that, 77.5 k requests per second are sustained
/// from depth 8 on (a run with ramp-up), and 34.6 k at depth 2, where hardly a write waits. The moderate load is in relation
/// to what is sustained, not to the burst. Tolerance: 10 % of the rate, for the state that the other tests leave.
#[test]
fn a_moderate_load_is_a_part_of_what_is_sustained() {
    let (_, capacity) = finished(&plan("sim:nvme-tlc", Time::from_s(60)), &RunSpec::default());
    let mut mixes = capacity.checks.iter().filter(|check| check.read_share < 1.0);
    let mix = mixes.find(|check| check.size_bytes == 4096).unwrap();
    assert!((mix.measured_iops / 77.5e3 - 1.0).abs() < 0.1, "{mix:?}");
    let moderate = capacity.moderate.unwrap();
    assert!(moderate.depth < 8 && moderate.load < 0.9, "{moderate:?}");
    assert!(moderate.write_p99_us < moderate.write_p99_us_saturated, "{moderate:?}");
    assert!(moderate.read_p99_us <= moderate.read_p99_us_saturated.unwrap(), "{moderate:?}");
}

#[test]
fn a_hard_disk_is_told_by_its_arm() {
    let (_, capacity) = finished(&plan("sim:st39102lw", Time::from_s(180)), &direct(&[]));
    assert_eq!(capacity.disk.media, Some(MediaKind::Hdd));
    assert!(value(&capacity, Figure::Rseqiops) > 5.0 * value(&capacity, Figure::Rrandiops));
}

/// Requests of which only the bytes cost time: IOPS equal bandwidth divided by size, and add no
/// information.
#[test]
fn iops_that_are_bandwidth_give_no_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("bus.toml");
    let device = "[volume]\nlatency = \"1us\"\n[volume.bandwidth]\nbaseline = \"100MiB/s\"\n\
                  [volume.device.delay]\ncapacity = \"1GiB\"\nread = \"1us\"\nwrite = \"1us\"\nservers = 64\n";
    std::fs::write(&path, device).unwrap();
    let plan = plan(path.to_str().unwrap(), Time::from_s(120));
    let (result, capacity) = finished(&plan, &direct(&[]));
    assert_eq!(capacity.implausible.len(), 2, "{:?}", capacity.figures);
    let refused = scheduler_file(SchedulerFile::IoCostModel, &result, "0").unwrap_err();
    assert!(refused.contains("bandwidth divided by the request size"), "{refused}");
}

#[test]
fn reads_alone_have_three_figures_and_no_file() {
    let plan =
        ProfilePlan { ops: vec![ProfileOp::Read], ..plan("sim:delay-10us", Time::from_s(5)) };
    let (result, capacity) = finished(&plan, &direct(&[]));
    assert_eq!((capacity.figures.len(), capacity.checks.len()), (3, 1));
    assert!(scheduler_file(SchedulerFile::MClock, &result, "0").unwrap_err().contains("wbps"));
    assert!(capacity.moderate.unwrap().write_p99_us.is_none());
}

#[test]
fn the_time_limit_and_an_interrupt_keep_what_there_is() {
    let short = plan("sim:delay-100us", Time::from_ms(400));
    let (result, _) = execute(&ProfilePlan { time: None, ..short.clone() }, &direct(&[]), 40);
    assert_eq!(result.stopped_because, StoppedBecause::Interrupted);
    let short = ProfilePlan {
        method: Method::Capacity { error: 1e-9 },
        ..plan("sim:p3600", Time::from_s(1))
    };
    let (result, capacity) = finished(&short, &direct(&[]));
    assert_eq!(result.stopped_because, StoppedBecause::TimeLimit);
    assert!(result.seconds_spent < 1.1, "{}", result.seconds_spent);
    assert!(capacity.figures.len() <= 6);
}

#[cfg(target_os = "linux")]
#[test]
fn the_capacity_of_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file");
    let write = WriteSpec { allowed: true, size: Some(Bytes(32 << 20)), ..WriteSpec::default() };
    let spec = RunSpec { write, ..RunSpec::default() };
    let plan = plan(path.to_str().unwrap(), Time::from_s(8));
    let (result, capacity) = finished(&plan, &spec);
    assert_eq!(result.span_bytes, 32 << 20);
    assert!(!capacity.figures.is_empty());
}

/// Two capacities of a noisy device, merged: each figure lies between the two, and the random reads are within 5 % of the
/// closed form (16 servers of 100 us: 160 000 per second). Both profiles have one seed, as those of a real device usually
/// have: only equal measurements are a copy.
#[test]
fn capacities_are_merged() {
    let set = ["delay.read=100us", "delay.servers=16", "delay.spread=exponential"];
    let reads =
        ProfilePlan { ops: vec![ProfileOp::Read], ..plan("sim:delay-100us", Time::from_s(20)) };
    let (first, one) = finished(&reads, &direct(&set));
    let (second, other) = finished(&ProfilePlan { seed: 4, ..reads }, &direct(&set));
    let second = ProfileResult { seed: first.seed, ..second };
    let merged = ssdyno_profile::merge(&[first.clone(), second.clone()]).unwrap();
    let capacity = merged.capacity.as_ref().unwrap();
    for figure in [Figure::Rbps, Figure::Rseqiops, Figure::Rrandiops] {
        let [a, b, m] = [&one, &other, capacity].map(|all| all.figure(figure).unwrap());
        let (low, high) = (a.estimate.min(b.estimate), a.estimate.max(b.estimate));
        assert!(low <= m.estimate && m.estimate <= high, "{m:?}");
        assert_eq!(m.rounds, a.rounds + b.rounds);
        assert!(m.low.unwrap() < m.estimate && m.estimate < m.high.unwrap(), "{m:?}");
    }
    let iops = value(capacity, Figure::Rrandiops);
    assert!((iops / 160e3 - 1.0).abs() < 0.05, "{iops}");
    let check = &capacity.checks[0];
    assert!(
        (check.iocost_iops.unwrap() / check.measured_iops - 1.0 - check.iocost_error.unwrap())
            .abs()
            < 1e-9
    );
    assert!(ssdyno_profile::text(&merged).contains("made of 2 profiles"));

    let refused = |other: ProfileResult| {
        ssdyno_profile::merge(&[first.clone(), other]).unwrap_err().to_string()
    };
    assert!(refused(first.clone()).contains("the same measurements as profile 1"));
    let small_bytes = 512;
    let odd = Some(CapacityResult { small_bytes, ..other.clone() });
    assert!(refused(ProfileResult { capacity: odd, ..second.clone() }).contains("request sizes"));
    assert!(refused(ProfileResult { capacity: None, ..second }).contains("the method"));
}

/// Merges profiles of two solutions: those of one name become one profile (two of equal width give the geometric mean,
/// narrower by the root of two and by twice the degrees of freedom); the other profile stays as it is. All are made of
/// one measurement with its figures shifted.
#[test]
fn solutions_are_kept_side_by_side() {
    let reads =
        ProfilePlan { ops: vec![ProfileOp::Read], ..plan("sim:delay-100us", Time::from_s(5)) };
    let named = ProfilePlan { solution: Some("isolation".to_owned()), ..reads };
    let (first, _) = finished(&named, &direct(&[]));
    assert_eq!(first.solution_name(), "isolation");
    let of = |name: Option<&str>, estimate: f64| {
        let mut one = ProfileResult { solution: name.map(str::to_owned), ..first.clone() };
        for figure in &mut one.capacity.as_mut().unwrap().figures {
            figure.estimate = estimate;
            (figure.low, figure.high) = (Some(estimate * 0.99), Some(estimate * 1.01));
            figure.rounds = 6;
        }
        one
    };
    // The interval is wide enough for the difference: no Birge ratio.
    let all = [of(Some("isolation"), 1000.0), of(None, 500.0), of(Some("isolation"), 1005.0)];
    let merged = ssdyno_profile::merge(&all).unwrap();
    let names: Vec<&str> = merged.of_solutions().iter().map(|one| one.solution_name()).collect();
    assert_eq!(names, ["isolation", "ssdyno"]);
    assert_eq!(merged.more_solutions, [all[1].clone()]);
    let figure = merged.capacity.as_ref().unwrap().figure(Figure::Rrandiops).unwrap();
    assert!((figure.estimate - (1000.0_f64 * 1005.0).sqrt()).abs() < 0.01, "{figure:?}");
    let half = (figure.high.unwrap() / figure.low.unwrap()).ln() / 2.0;
    // Student's t with 10 degrees of freedom instead of 5 (tables): 1.812461 and 2.015048.
    let expected = 0.01 / 2.0_f64.sqrt() * 1.812_461 / 2.015_048;
    assert!((half - expected).abs() < 1e-4, "{half}");
    // A merged profile is merged again, solution by solution.
    let again = ssdyno_profile::merge(&[merged.clone(), of(None, 501.0)]).unwrap();
    assert_eq!(again.capacity, merged.capacity);
    let unnamed = again.more_solutions[0].capacity.as_ref().unwrap();
    let figure = unnamed.figure(Figure::Rrandiops).unwrap();
    assert!((figure.estimate - (500.0_f64 * 501.0).sqrt()).abs() < 0.01, "{figure:?}");
    assert!(again.more_solutions[0].more_solutions.is_empty());
    let text = ssdyno_profile::text(&again);
    assert!(text.contains("solution isolation; ") && text.contains("made of 2 profiles"), "{text}");
    let page = ssdyno_profile::html(&again);
    roxmltree::Document::parse(&page.replacen("<!DOCTYPE html>\n", "", 1)).unwrap();
    assert!(page.contains("Figures, solution ssdyno"));

    let refused = |other: ProfileResult| {
        ssdyno_profile::merge(&[all[0].clone(), other]).unwrap_err().to_string()
    };
    let same = refused(of(Some("Isolation"), 1.0));
    assert!(same.contains("have the same key IOCOST_MODEL_ISOLATION"), "{same}");
    assert!(refused(of(Some("a=b"), 1.0)).contains("is not a valid name"));
    let other = ProfileResult { target: "sim:other".to_owned(), ..all[1].clone() };
    let other = refused(other);
    assert!(other.contains("profile 2 is of a different device (target sim:other"), "{other}");
    let none = refused(ProfileResult { capacity: None, ..all[1].clone() });
    assert!(none.contains("has no capacity"), "{none}");
    // One model is one device, whatever its name is after a restart; another firmware has an entry of its own.
    let real = |one: &ProfileResult, target: &str, firmware: &str| {
        let mut one = ProfileResult { target: target.to_owned(), ..one.clone() };
        let disk = &mut one.capacity.as_mut().unwrap().disk;
        (disk.model, disk.firmware) = (Some("M1".to_owned()), Some(firmware.to_owned()));
        one
    };
    let both = [real(&all[0], "/dev/nvme0n1", "A"), real(&all[1], "/dev/nvme1n1", "A")];
    let merged = ssdyno_profile::merge(&both).unwrap();
    assert!(merged.notes[0].contains("different names: /dev/nvme0n1, /dev/nvme1n1"));
    assert_eq!(merged.more_solutions.len(), 1);
    let both = [real(&all[0], "/dev/nvme0n1", "A"), real(&all[1], "/dev/nvme0n1", "B")];
    let error = ssdyno_profile::merge(&both).unwrap_err().to_string();
    assert!(error.contains("model M1, firmware B"), "{error}");
}

/// A volume with credits for an hour: its rate is that of the burst, and the report does not call it sustained. A
/// volume without credits has no such warning.
#[test]
fn credits_that_last_are_a_warning() {
    let about = |initial: &str| {
        let set = ["volume.iops.baseline=1000.0", "volume.iops.burst=4000.0", initial];
        let plan = plan("sim:volume-gp2-100g", Time::from_s(20));
        let (result, capacity) = finished(&plan, &direct(&set));
        assert!(result.notes.iter().all(|note| !note.contains("credits")), "{:?}", result.notes);
        capacity.warnings.into_iter().find(|text| text.contains("credits"))
    };
    let told = about("volume.iops.bucket=10800000.0").unwrap();
    assert!(told.starts_with("the volume does not sustain rrandiops, wrandiops ("), "{told}");
    // 3000 credits more a second are used than come: an hour, less the 20 s of the profile. The start of a load uses
    // somewhat fewer.
    let minutes = |text: &str| told.contains(&format!("they last {text}"));
    assert!((minutes("59.") || minutes("60.")) && told.contains(" min more"), "{told}");
    assert!(told.contains("completes 1.000 k requests per second"), "{told}");
    assert!(told.ends_with("start without credits: `--set volume.initial=0`"), "{told}");
    // A bucket that starts empty fills during the sequential loads, which take fewer credits than come.
    assert_eq!(about("volume.iops.bucket=0.0"), None);
}
