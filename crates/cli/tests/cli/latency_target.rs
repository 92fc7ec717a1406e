//! `ssdyno run --latency-target`.

use std::fs;

use crate::common::Place;

fn read(place: &Place, name: &str) -> Vec<u8> {
    fs::read(place.path().join("results").join(name)).unwrap()
}

/// M/D/1 with a service time of s = 10 us: the mean is s (1 + rho / (2 (1 - rho))), so that 15 us are exactly at rho = 0.5.
#[test]
fn the_highest_rate_within_a_mean_is_that_of_the_queue() {
    let place = Place::new();
    let load = ["run", "sim:delay-10us", "-w", "randread", "--requests", "20k"];
    let args = |more: &[&'static str]| [&load[..], more].concat();
    let target = ["--latency-target", "mean=15us"];
    for name in ["a", "b"] {
        let result = place.json(&args(&[&target[..], &["--name", name]].concat()));
        let found = &result["ceiling"];
        let at = |key: &str| found[key].as_f64().unwrap();
        for rate in [at("within"), at("beyond")] {
            assert!((rate / 50_000.0 - 1.0).abs() < 0.05, "{found}");
        }
        assert!(at("within") < 50_000.0 && 50_000.0 < at("beyond"), "{found}");
        assert_eq!(found["overloaded"], false);
        assert_eq!(result["rows"].as_array().unwrap().len() as u64, found["steps"]);
        assert_eq!(result["curve"]["key"], "workload.arrivals.rate");
        assert!(result["replay"].as_str().unwrap().ends_with("--latency-target mean=15us"));
    }
    for file in ["sweep.parquet", "report.html", "result.json"] {
        let [a, b] = ["a", "b"].map(|name| read(&place, &format!("{name}/{file}")));
        assert!(!a.is_empty() && a == b, "{file}");
    }
    let page = String::from_utf8(read(&place, "a/report.html")).unwrap();
    assert!(page.contains("mean &lt;= 15us up to "), "{page}");
    // No latency of the queue is below its service time; a bound of a second breaks only with the queue itself.
    let never = ["--latency-target", "mean=9us", "--keep", "none"];
    let error = place.fails(1, &args(&never));
    assert!(error.contains("mean was above 9us at every rate"), "{error}");
    let text = place.ok(&args(&["--latency-target", "p50=1s", "--keep", "none"]));
    assert!(text.contains("p50 <= 1s up to ") && text.contains("(saturated at 10"), "{text}");
    assert!(
        text.contains(
            "; at most 32 requests were outstanding, a greater depth (`-d`) may raise the rates)"
        ),
        "{text}"
    );
    let deep = ["--latency-target", "p50=1s", "--keep", "none", "-d", "100000"];
    let text = place.ok(&args(&deep));
    // One server is busy at any depth: no greater one would raise its rate.
    assert!(text.contains("(saturated at 10") && !text.contains("greater depth"), "{text}");
}

/// Nine of ten requests fail: the latency of the tenth is no reason to call the rate sustained. Sweeps judge failed requests as
/// single runs do.
#[test]
fn a_rate_at_which_requests_fail_is_not_the_answer() {
    let place = Place::new();
    let load = ["run", "sim:nvme-tlc", "-w", "randread", "--requests", "1000", "--keep", "none"];
    let args = |more: &[&'static str]| [&load[..], &["-s", "faults.error=0.9"], more].concat();
    let error = place.fails(1, &args(&["--latency-target", "p99=10ms"]));
    assert!(error.contains("no rate meets p99 <= 10ms: "), "{error}");
    assert!(error.contains(" of 1000 requests failed at "), "{error}");
    let error = place.fails(1, &args(&["--sweep", "depth=1,2"]));
    assert!(error.contains("requests ended in an error, in 2 runs"), "{error}");
    assert!(place.fails(1, &args(&[])).contains("requests ended in an error"));
}

#[test]
fn what_has_no_place_beside_a_target_of_latency_is_refused() {
    let place = Place::new();
    let cases: [(&[&str], &str); 8] = [
        (&["p98=1ms"], "`p98` is not a latency: use one of mean, p50, p95, p99, p99.9"),
        (&["iops=1ms"], "`iops` is not a latency"),
        (&["p99=1"], "with its unit"),
        (&["p99"], "FIGURE=TIME"),
        (&["p99=1ms", "--rate", "10k"], "--rate"),
        (&["p99=1ms", "--sweep", "depth=1..4"], "--sweep"),
        (&["p99=1ms", "--runs", "3"], "--runs"),
        (&["p99=1ms", "-s", "workload.arrivals.kind=fixed"], "`workload.arrivals.kind=fixed`"),
    ];
    for (more, says) in cases {
        let load = ["run", "sim:config-a", "--requests", "500", "--latency-target"];
        let errors = place.fails(2, &[&load[..], more].concat());
        assert!(errors.contains(says), "{more:?}: {errors}");
    }
    assert!(!place.path().join("results").exists());
}

/// A plan asks for the same search; a load with a length of time takes the same way to the same rate.
#[test]
fn a_plan_and_a_duration_give_the_same_rate() {
    let place = Place::new();
    let plan = r#"
sampling = "bisection"
vary = ["workload.arrivals.rate=1..1000000000"]
require = ["mean<15us"]
[run]
target = "sim:delay-10us"
workload = "randread"
requests = 20000
set = ["workload.arrivals.kind=poisson"]
"#;
    fs::write(place.path().join("plan.toml"), plan).unwrap();
    let load = ["run", "sim:delay-10us", "-w", "randread", "--latency-target", "mean=15us"];
    let none = ["--keep", "none"];
    let typed = place.json(&[&load[..], &["--requests", "20k"], &none].concat());
    let planned = place.json(&[&["sweep", "plan.toml"][..], &none].concat());
    assert_eq!(planned["ceiling"], typed["ceiling"]);
    let timed = place.json(&[&load[..], &["-t", "400ms"], &none].concat());
    let within = timed["ceiling"]["within"].as_f64().unwrap();
    assert!((within / 50_000.0 - 1.0).abs() < 0.05, "{}", timed["ceiling"]);
    // What is wrong in a plan is said before anything runs.
    for (from, to, says) in [
        ("mean<15us", "iops>1k", "exactly one bound, and it must be on a latency"),
        ("1..1000000000", "1000,2000", "over one range"),
    ] {
        fs::write(place.path().join("plan.toml"), plan.replace(from, to)).unwrap();
        let error = place.fails(2, &["sweep", "plan.toml"]);
        assert!(error.contains(says), "{error}");
    }
}
