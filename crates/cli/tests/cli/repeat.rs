//! Sides that run several times (docs/statistics.md, *Repeated runs*).

use serde_json::Value;

use crate::common::Place;

const LOAD: [&str; 6] = ["--workload", "randread", "--requests", "2000", "--keep", "none"];

fn compare<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&["compare"], more, &LOAD[..]].concat()
}

fn seeds(side: &Value) -> Vec<u64> {
    let runs = side["runs"].as_array().unwrap();
    runs.iter().map(|run| run["spec"]["seed"].as_u64().unwrap()).collect()
}

#[test]
fn sides_are_compared_over_their_runs() {
    let place = Place::new();
    let sides = ["sim:config-a", "sim:nvme-tlc", "--runs", "3", "--seed", "7"];
    let compared = place.json(&compare(&sides));
    let repeated = compared["repeated"].as_array().unwrap();
    assert_eq!(repeated.len(), 2);
    for side in repeated {
        assert_eq!((seeds(side), &side["asked"]), (vec![7, 8, 9], &3.into()));
        let iops = &side["figures"][0];
        let each: Vec<f64> =
            side["runs"].as_array().unwrap().iter().map(|r| r["iops"].as_f64().unwrap()).collect();
        let mean = each.iter().sum::<f64>() / 3.0;
        assert!((iops["mean"].as_f64().unwrap() / mean - 1.0).abs() < 1e-12);
        assert!(iops["interval"]["low"].as_f64().unwrap() < mean);
        assert_eq!(iops["interval"]["level"], 0.95);
    }
    let figure = &compared["comparisons"][0]["figures"][0];
    assert_eq!(figure["first"], repeated[0]["figures"][0]["mean"]);
    assert_eq!(figure["interval"]["level"], 0.95);
    let text = place.ok(&compare(&["sim:config-a", "sim:nvme-tlc", "--runs", "2"]));
    for part in ["intervals of ratios at 95 %", "sim:config-a: 2 runs", "varies by", "run  seed"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    // Of three sides: one table with the means.
    let text = place.ok(&compare(&["null:", "null:", "null:", "--runs", "2"]));
    assert!(text.contains("null: (3): 2 runs"), "{text}");
}

#[test]
fn what_cannot_be_repeated_is_refused() {
    let place = Place::new();
    place.ok(&["run", "sim:config-a", "--requests", "500", "--name", "a"]);
    for (runs, message) in [
        (["results/a", "sim:config-a", "--runs", "2"], "results/a is a result"),
        (["sim:config-a", "results/a/result.json", "--runs", "2"], "result.json is a result"),
        (["sim:config-a", "sim:config-a", "--runs", "1"], "`--runs` must be 2 or more"),
        (["sim:config-a", "sim:config-a", "--runs", "0"], "`--runs` must be 2 or more"),
        (["sim:config-a", "sim:config-a", "--runs", "1001"], "`--runs` must be 1000 at most"),
    ] {
        let told = place.fails(2, &compare(&runs));
        assert!(told.contains(message), "{message}: {told}");
    }
}

/// The same seeds on both sides: what the seed moves cancels out, and identical sides are told to be so.
#[test]
fn bounds_are_judged_by_the_spread_between_runs() {
    let place = Place::new();
    let bounded = |second: &str, code| {
        let args = ["sim:config-a", second, "--runs", "3", "--fail-if-slower", "5%"];
        let junit = [&compare(&args)[..], &["--junit", "b.xml"]].concat();
        let output = place.call(&junit);
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        std::fs::read_to_string(place.path().join("b.xml")).unwrap()
    };
    assert!(bounded("sim:config-a", 0).contains("failures=\"0\""));
    assert!(bounded("sim:exos-x20", 1).contains("failures=\"2\""));
}
