//! Files against the grammars of their readers.

use std::collections::BTreeMap;

use super::*;
use crate::capacity::{
    CapacityFigure, CheckedLoad, DiskFacts, Figure, MediaKind, ModerateLatency, RateBurst,
};
use crate::method::MethodName;
use crate::stopped::StoppedBecause;

const VALUES: [f64; 6] = [2.6e9, 412_345.6, 449_000.4, 1.7e9, 180_000.0, 56_000.0];

fn figure(figure: Figure, estimate: f64) -> CapacityFigure {
    CapacityFigure {
        figure,
        estimate,
        low: Some(estimate * 0.98),
        high: Some(estimate * 1.02),
        rounds: 6,
        depth: 64,
        depths: Vec::new(),
        drift: 0.0,
        burst: None,
        longest_seconds: 15.0,
    }
}

fn check(read_share: f64, measured: f64, predicted: f64) -> CheckedLoad {
    CheckedLoad {
        load: "a mix".to_owned(),
        size_bytes: 4096,
        read_share,
        depth: 64,
        measured_iops: measured,
        low: None,
        high: None,
        iocost_iops: Some(predicted),
        iocost_error: Some(predicted / measured - 1.0),
        seastar_iops: Some(predicted),
        seastar_error: Some(predicted / measured - 1.0),
    }
}

fn result() -> ProfileResult {
    let figures = Figure::ALL.into_iter().zip(VALUES).map(|(name, value)| figure(name, value));
    let moderate = ModerateLatency {
        depth: 16,
        load: 0.7,
        read_p99_us: 250.3,
        write_p99_us: Some(41.0),
        read_p99_us_saturated: Some(1001.2),
        write_p99_us_saturated: Some(40.0),
    };
    let disk = DiskFacts {
        media: Some(MediaKind::Ssd),
        number: Some("259:0".to_owned()),
        name: Some("nvme0n1".to_owned()),
        model: Some("Fast:Disk * 1TB".to_owned()),
        ..DiskFacts::default()
    };
    let capacity = CapacityResult {
        error: 0.05,
        small_bytes: 4096,
        large_bytes: 1 << 20,
        figures: figures.collect(),
        checks: vec![check(1.0, 90.0, 100.0), check(0.7, 60.0, 100.0)],
        moderate: Some(moderate),
        disk,
        cpu_limit: None,
        implausible: Vec::new(),
        warnings: vec!["something is unusual".to_owned()],
    };
    ProfileResult {
        schema_version: 1,
        target: "/dev/nvme0n1".to_owned(),
        method: MethodName::Capacity,
        seed: 3,
        span_bytes: 1 << 30,
        depth: 64,
        stopped_because: StoppedBecause::WithinError,
        seconds_spent: 90.0,
        capacity: Some(capacity),
        ..ProfileResult::default()
    }
}

/// Parses a line like `blkcg_conf_get_disk` and the loops of `ioc_cost_model_write` and `ioc_qos_write`: a device
/// number, then tokens separated by blanks, each a known token, with numbers of `match_u64` or decimals with at most
/// two places.
fn kernel_reads(text: &str) -> Option<((u32, u32), BTreeMap<String, String>)> {
    let mut lines = text.lines().filter(|line| !line.starts_with('#'));
    let (line, None) = (lines.next()?, lines.next()) else { return None };
    let (number, rest) = line.split_once([' ', '\t'])?;
    let (major, minor) = number.split_once(':')?;
    let mut tokens = BTreeMap::new();
    for token in rest.split([' ', '\t', '\n']).filter(|token| !token.is_empty()) {
        let (key, value) = token.split_once('=')?;
        let known = match key {
            "ctrl" => value == "user" || value == "auto",
            "model" => value == "linear",
            "enable" | "rlat" | "wlat" => value.parse::<u32>().is_ok(),
            "rbps" | "rseqiops" | "rrandiops" | "wbps" | "wseqiops" | "wrandiops" => {
                value.bytes().all(|byte| byte.is_ascii_digit()) && value.parse::<u64>().is_ok()
            }
            "rpct" | "wpct" | "min" | "max" => {
                let places = value.split_once('.').map_or(0, |(_, places)| places.len());
                value.len() < 32 && places <= 2 && value.parse::<f64>().is_ok()
            }
            _ => false,
        };
        if !known || tokens.insert(key.to_owned(), value.to_owned()).is_some() {
            return None;
        }
    }
    Some(((major.parse().ok()?, minor.parse().ok()?), tokens))
}

fn text(file: SchedulerFile, result: &ProfileResult) -> String {
    scheduler_file(file, result, "0.1.0").unwrap()
}

#[test]
fn the_kernel_reads_its_lines() {
    let model = text(SchedulerFile::IoCostModel, &result());
    let (number, tokens) = kernel_reads(&model).unwrap();
    assert_eq!((number, tokens.len()), ((259, 0), 8));
    assert_eq!((tokens["rbps"].as_str(), tokens["rseqiops"].as_str()), ("2600000000", "412346"));
    let qos = text(SchedulerFile::IoCostQos, &result());
    let (_, tokens) = kernel_reads(&qos).unwrap();
    assert_eq!((tokens["rlat"].as_str(), tokens["wlat"].as_str()), ("501", "41"));
    // A mixed load got 60 % of what was promised.
    assert_eq!((tokens["min"].as_str(), tokens["max"].as_str()), ("60.00", "100.00"));
    assert!(kernel_reads("259:0 rbps=1 nonsense=2").is_none());
    assert!(kernel_reads("MAJ:MIN rbps=1").is_none());
}

#[test]
fn comments_say_where_figures_come_from() {
    let model = text(SchedulerFile::IoCostModel, &result());
    for part in [
        "profile of /dev/nvme0n1: method capacity, seed 3",
        "rbps        2.600 GB/s   2.548 GB/s to 2.652 GB/s",
        "a mix: measured 60.00, io.cost.model says 100.0, error +66.7 %",
        "no burst within 15.00 s",
        "Warning: something is unusual.",
        "nvme0n1, the whole disk",
    ] {
        assert!(model.contains(part), "{part}:\n{model}");
    }
    let mut unknown = result();
    unknown.capacity.as_mut().unwrap().disk.number = None;
    let model = text(SchedulerFile::IoCostModel, &unknown);
    assert!(
        model.contains("# Replace MAJ:MIN") && model.contains("\nMAJ:MIN ctrl=user"),
        "{model}"
    );
}

/// 90 000 requests of 4 KiB per second write 369 MB in a second. A burst with these bytes lasts for one second by itself;
/// with other tests between its rounds it lasts longer, and the comment says so.
#[test]
fn a_burst_over_rounds_contains_other_tests() {
    let with = |seconds: f64| {
        let burst = RateBurst { rate: 90e3, sustained: 60e3, seconds, bytes: 90e3 * 4096.0 };
        let mut result = result();
        result.capacity.as_mut().unwrap().figures[5].burst = Some(burst);
        text(SchedulerFile::IoCostModel, &result)
    };
    let alone = with(1.0);
    assert!(alone.contains("burst 90.00 kIOPS for 1.000 s (368.6 MB), then 60.00"), "{alone}");
    let between = with(24.36);
    assert!(between.contains("for 24.36 s with other tests (368.6 MB), then"), "{between}");
}

#[test]
fn the_hardware_database_has_model_and_qos() {
    let entry = text(SchedulerFile::IoCostHwdb, &result());
    let lines: Vec<&str> = entry.lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!(lines[1], "block:*:name:Fast?Disk ? 1TB:fwrev:*:");
    assert_eq!(lines[2], " IOCOST_SOLUTIONS=ssdyno");
    assert!(lines[3].starts_with(" IOCOST_MODEL_SSDYNO=rbps=2600000000 "), "{entry}");
    assert!(lines[4].starts_with(" IOCOST_QOS_SSDYNO=rpct=99.00 "), "{entry}");
}

/// The models and the parameters of quality by solution, as `get_known_solutions` and `query_named_solution` of systemd's
/// `iocost.c` find them; `None` where a key is missing or stands twice, or a line is of no solution.
fn systemd_reads(text: &str) -> Option<Vec<(String, String, String)>> {
    let lines = text.lines().filter_map(|line| line.strip_prefix(' '));
    let mut keys = BTreeMap::new();
    for line in lines {
        let (key, value) = line.split_once('=')?;
        if keys.insert(key.to_owned(), value.to_owned()).is_some() {
            return None;
        }
    }
    let names = keys.remove("IOCOST_SOLUTIONS")?;
    let mut solutions = Vec::new();
    for name in names.split(' ') {
        let upper = name.to_uppercase().replace('-', "_");
        let model = keys.remove(&format!("IOCOST_MODEL_{upper}"))?;
        solutions.push((name.to_owned(), model, keys.remove(&format!("IOCOST_QOS_{upper}"))?));
    }
    keys.is_empty().then_some(solutions)
}

/// Two solutions, the second with a tenth of each rate and no name of its own.
#[test]
fn the_hardware_database_has_all_solutions() {
    let mut both = ProfileResult { solution: Some("isolated-bandwidth".to_owned()), ..result() };
    let mut slow = result();
    slow.capacity.as_mut().unwrap().figures.iter_mut().for_each(|one| one.estimate /= 10.0);
    both.more_solutions = vec![slow];
    let entry = text(SchedulerFile::IoCostHwdb, &both);
    let found = systemd_reads(&entry).unwrap();
    let names: Vec<&str> = found.iter().map(|(name, ..)| name.as_str()).collect();
    assert_eq!(names, ["isolated-bandwidth", "ssdyno"], "{entry}");
    assert!(found[0].1.starts_with("rbps=2600000000 "), "{entry}");
    assert!(found[1].1.starts_with("rbps=260000000 "), "{entry}");
    assert!(entry.contains(" IOCOST_MODEL_ISOLATED_BANDWIDTH=rbps="), "{entry}");
    assert!(entry.contains(" IOCOST_QOS_ISOLATED_BANDWIDTH=rpct="), "{entry}");
    assert!(entry.contains("error 5 %, solution isolated-bandwidth\n"), "{entry}");
    assert_eq!(entry.matches("block:*:name:").count(), 1);

    let refused = |file, change: &dyn Fn(&mut ProfileResult)| {
        let mut both = both.clone();
        change(&mut both);
        scheduler_file(file, &both, "0.1.0").unwrap_err()
    };
    let hwdb = SchedulerFile::IoCostHwdb;
    let same = refused(hwdb, &|all| all.solution = Some("SSDyno".to_owned()));
    assert!(same.contains("SSDyno and ssdyno have the same key IOCOST_MODEL_SSDYNO"), "{same}");
    let bad = refused(hwdb, &|all| all.solution = Some("a b".to_owned()));
    assert!(bad.contains("is not a valid name"), "{bad}");
    let lacking = |all: &mut ProfileResult| {
        all.more_solutions[0].capacity.as_mut().unwrap().figures.truncate(3);
    };
    assert!(refused(hwdb, &lacking).starts_with("solution ssdyno: wbps was not measured"));
    for file in [SchedulerFile::IoCostModel, SchedulerFile::MClock, SchedulerFile::IoProperties] {
        assert!(refused(file, &|_| ()).contains("isolated-bandwidth, ssdyno"));
    }
}

#[test]
fn seastar_and_ceph_have_their_keys() {
    let yaml = text(SchedulerFile::IoProperties, &result());
    let body: Vec<&str> = yaml.lines().filter(|line| !line.trim_start().starts_with('#')).collect();
    let expected = [
        "disks:",
        "  - mountpoint: /MOUNTPOINT",
        "    read_iops: 449000",
        "    read_bandwidth: 2600000000",
        "    write_iops: 56000",
        "    write_bandwidth: 1700000000",
    ];
    assert_eq!(body, expected, "{yaml}");
    assert!(yaml.contains("# rate_factor: 0.6"), "{yaml}");
    let ceph = text(SchedulerFile::MClock, &result());
    assert!(ceph.contains("[osd]\nosd_mclock_max_capacity_iops_ssd = 56000\n"), "{ceph}");
    assert!(ceph.contains("osd_mclock_max_sequential_bandwidth_ssd = 1700000000\n"), "{ceph}");
    let mut slow = result();
    slow.capacity.as_mut().unwrap().disk.media = Some(MediaKind::Hdd);
    let ceph = text(SchedulerFile::MClock, &slow);
    assert!(ceph.contains("_hdd = 56000") && ceph.contains("would discard 56000"), "{ceph}");
}

#[test]
fn what_cannot_be_right_is_refused() {
    let refused = |change: &dyn Fn(&mut CapacityResult)| {
        let mut result = result();
        change(result.capacity.as_mut().unwrap());
        scheduler_file(SchedulerFile::IoCostModel, &result, "0.1.0").unwrap_err()
    };
    assert_eq!(refused(&|c| c.implausible.push("it is wrong".to_owned())), "it is wrong");
    assert!(refused(&|c| c.figures[3].low = None).contains("wbps"));
    assert!(refused(&|c| c.figures.truncate(3)).contains("wbps"));
    let mut none = result();
    none.capacity.as_mut().unwrap().moderate = None;
    assert!(scheduler_file(SchedulerFile::IoCostQos, &none, "0.1.0").is_err());
    assert!(scheduler_file(SchedulerFile::IoCostModel, &none, "0.1.0").is_ok());
}

/// A file name may have any character but `/` and 0. None of them ends a comment.
#[test]
fn names_stay_in_their_comments() {
    let clean = result();
    let mut odd = result();
    odd.target =
        "/data/a\n259:0 ctrl=user model=linear rbps=1\r\u{85}\u{2028}disks:\u{1b}[0m".to_owned();
    let disk = &mut odd.capacity.as_mut().unwrap().disk;
    disk.name = Some("a\nb".to_owned());
    disk.below = vec!["c\nd".to_owned()];
    for file in [
        SchedulerFile::IoCostModel,
        SchedulerFile::IoCostQos,
        SchedulerFile::IoCostHwdb,
        SchedulerFile::IoProperties,
        SchedulerFile::MClock,
    ] {
        let text = |result: &ProfileResult| scheduler_file(file, result, "1").unwrap();
        let read = |text: &str| -> Vec<String> {
            let lines = text.split(['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}']);
            lines.filter(|line| !line.trim_start().starts_with('#')).map(str::to_owned).collect()
        };
        assert_eq!(read(&text(&odd)), read(&text(&clean)), "{file:?}");
        assert!(!text(&odd).contains('\u{1b}'));
        assert!(
            matches!(file, SchedulerFile::IoCostHwdb) || text(&odd).contains(r"/data/a\n259:0")
        );
    }
}
