//! Bounds that decide the exit code (docs/ci.md).

use serde_json::Value;

use crate::common::{Place, one_object};

const RUN: [&str; 8] =
    ["run", "sim:config-a", "--workload", "randread", "--requests", "20000", "--keep", "summary"];

/// Exit code and object of a verb.
fn ended(place: &Place, args: &[&str]) -> (Option<i32>, Value) {
    let output = place.call(&[args, &["--json"]].concat());
    (output.status.code(), one_object(&String::from_utf8(output.stdout).unwrap()))
}

#[test]
fn a_run_is_judged_by_its_bounds() {
    let place = Place::new();
    let bounded = |name: &str, bounds: &[&str]| {
        let bounds: Vec<&str> = bounds.iter().flat_map(|bound| ["--require", bound]).collect();
        ended(&place, &[&RUN[..], &["--name", name, "--junit", "b.xml"], &bounds].concat())
    };
    let (code, held) = bounded("held", &["p99<1s", "iops>1", "energy_per_request<1"]);
    assert_eq!((code, &held["error"]), (Some(0), &Value::Null));
    assert_eq!(held["bounds"].as_array().unwrap().len(), 3);
    assert!(held["bounds"].as_array().unwrap().iter().all(|bound| bound["verdict"] == "holds"));
    assert!(held["replay"].as_str().unwrap().contains("--require 'p99<1s'"));
    let junit = std::fs::read_to_string(place.path().join("b.xml")).unwrap();
    assert!(junit.contains("tests=\"3\"") && junit.contains("failures=\"0\""), "{junit}");

    let (code, broken) = bounded("broken", &["p99<1s", "iops<1"]);
    assert_eq!((code, &broken["bounds"][1]["verdict"]), (Some(1), &"broken".into()));
    // The result is kept all the same.
    assert!(place.path().join("results/broken/result.json").exists());
    let junit = std::fs::read_to_string(place.path().join("b.xml")).unwrap();
    assert!(junit.contains("failures=\"1\""), "{junit}");

    // Within the interval, whatever it is.
    let iops = held["iops"].as_f64().unwrap();
    let (code, undecided) = bounded("undecided", &[&format!("iops>{iops}")]);
    assert_eq!((code, &undecided["bounds"][0]["verdict"]), (Some(4), &"undecided".into()));
}

#[test]
fn a_comparison_is_judged_by_its_limits() {
    let place = Place::new();
    place.ok(&[&RUN[..], &["--name", "base"]].concat());
    place.ok(&[&RUN[..], &["--name", "same"]].concat());
    place.ok(&[&RUN[..], &["--name", "slow", "--set", "flash.read_time=500us"]].concat());
    place.ok(&[&RUN[..], &["--name", "unlike", "--set", "workload.block_size=64KiB"]].concat());
    let judged = |other: &str, limit: &str| {
        let results = ["results/base".to_owned(), format!("results/{other}")];
        let args = ["compare", &results[0], &results[1], "--keep", "none", "--fail-if-slower"];
        ended(&place, &[&args[..], &[limit]].concat())
    };
    assert_eq!(judged("same", "0%").0, Some(0));
    assert_eq!(judged("slow", "5%").0, Some(1));
    assert_eq!(judged("slow", "p99=5%").0, Some(1));
    assert_eq!(judged("slow", "100000%").0, Some(0));
    let (code, unlike) = judged("unlike", "5%");
    assert_eq!(code, Some(4));
    assert!(unlike["error"]["message"].as_str().unwrap().contains("not comparable"), "{unlike}");
}

#[test]
fn wrong_bounds_are_refused_before_anything_runs() {
    let place = Place::new();
    for wrong in ["p99<2", "speed<3", "p99", "iops>x"] {
        place.fails(2, &[&RUN[..], &["--require", wrong]].concat());
    }
    for args in [
        &[&RUN[..], &["--junit", "b.xml"]].concat()[..],
        &["compare", "sim:config-a", "sim:p3600", "--fail-if-slower", "5"],
        &["compare", "sim:config-a", "sim:p3600", "--junit", "b.xml"],
    ] {
        place.fails(2, args);
    }
    assert!(!place.path().join("results").exists());
    // A report that cannot be written is not a success, and the result is there.
    let args = ["--require", "iops>1", "--junit", "none/b.xml", "--name", "a"];
    place.fails(3, &[&RUN[..], &args].concat());
    assert!(place.path().join("results/a/result.json").exists());
}
