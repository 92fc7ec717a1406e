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
    assert_eq!(figure["interval"]["level"], 0.99);
    let text = place.ok(&compare(&["sim:config-a", "sim:nvme-tlc", "--runs", "2"]));
    for part in ["intervals of ratios at 99 %", "sim:config-a: 2 runs", "varies by", "run  seed"] {
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

/// Options of one side: what differs stands in the first lines, and the rest is common.
#[test]
fn sides_have_options_of_their_own() {
    let place = Place::new();
    let sides = ["sim:p3600", "sim:p3600", "--a", "--queues per-core", "--b", "--queues single"];
    let text = place.ok(&compare(&sides));
    let changed: Vec<&str> = text.lines().take(3).filter(|l| l.contains("host.queues")).collect();
    assert_eq!(changed, ["changed: host.queues per-core -> single, as asked for"], "{text}");
    let figures = place.json(&compare(&sides));
    let verdict = &figures["comparisons"][0]["verdict"];
    assert!(verdict == "better" || verdict == "worse" || verdict == "cannot_tell", "{verdict}");
    assert_ne!(figures["results"][0]["iops"], figures["results"][1]["iops"]);
    // One side alone, short options, several runs.
    let repeated = place.json(&compare(&["sim:p3600", "sim:p3600", "--b", "-d 16", "--runs", "2"]));
    let depth = |side: usize| {
        let runs = repeated["repeated"][side]["runs"].as_array().unwrap();
        let depth = |run: &Value| run["spec"]["contents"]["workload"]["depth"].clone();
        runs.iter().map(depth).collect::<Vec<_>>()
    };
    assert_eq!(depth(1), [16, 16]);
    assert_ne!(depth(0), [16, 16]);
}

/// A load that the user asked to differ is judged; any other difference still forbids it.
#[test]
fn loads_that_were_asked_to_differ_are_judged() {
    let place = Place::new();
    let verdict = |args: &[&str]| {
        let compared = place.json(&compare(args));
        let verdict = compared["comparisons"][0]["verdict"].as_str().unwrap().to_owned();
        (verdict, compared["comparisons"][0]["changed"][0]["asked_for"].clone())
    };
    let sim = "sim:config-a";
    let depths = [sim, sim, "--a", "-d 1", "--b", "-d 32"];
    let text = place.ok(&compare(&depths));
    assert!(text.starts_with("changed: workload.depth 1 -> 32, as asked for\n"), "{text}");
    assert!(!text.contains("not comparable"), "{text}");
    assert_eq!(verdict(&depths), ("better".to_owned(), true.into()));
    assert_eq!(verdict(&[sim, sim, "--b", "-b 64k"]).0, "worse");
    assert_eq!(verdict(&[&depths[..], &["--runs", "2"]].concat()).1, true);
    // More bytes with fewer requests is neither faster nor slower alone.
    let text = place.ok(&compare(&[sim, sim, "--a", "-b 4k", "--b", "-b 64k"]));
    assert!(text.contains("fewer requests per second, and more bytes per second"), "{text}");
    // A stored run beside what its options name, and beside what they do not.
    place.ok(&["run", sim, "--requests", "2000", "--name", "a", "--workload", "randread"]);
    assert_ne!(verdict(&["results/a", sim, "--b", "-d 64"]).0, "not_comparable");
    let other = ["results/a", sim, "--b", "-d 64", "-b", "64k"];
    assert_eq!(verdict(&other), ("not_comparable".to_owned(), true.into()));
    // A real target stays unlike a simulated one.
    let real = ["null:", sim, "--a", "-d 64"];
    assert_eq!(verdict(&real).0, "not_comparable");
}

/// A spec file says all of its side.
#[test]
fn spec_files_are_sides() {
    let place = Place::new();
    let spec = |depth: u32| {
        format!(
            "target = \"sim:config-a\"\nworkload = \"randread\"\nrequests = 2000\n\
             set = [\"workload.depth={depth}\"]\n"
        )
    };
    place.write("a.toml", spec(1));
    place.write("b.toml", spec(32));
    let files = ["compare", "a.toml", "b.toml", "--keep", "none"];
    let text = place.ok(&files);
    assert!(text.starts_with("changed: workload.depth 1 -> 32, as asked for\n"), "{text}");
    assert!(text.contains("b.toml is faster than a.toml"), "{text}");
    let repeated = place.json(&[&files[..], &["--runs", "2"]].concat());
    assert_eq!(repeated["repeated"][1]["runs"].as_array().unwrap().len(), 2);
    let told = place.fails(2, &[&files[..], &["--seed", "4"]].concat());
    assert!(told.contains("`--seed` cannot be used with spec files"), "{told}");
    let told = place.fails(2, &[&files[..], &["--b", "-d 2"]].concat());
    assert!(told.contains("b.toml is a spec file"), "{told}");
    // Options are for the sides that are no files; a device file is none of them.
    place.write("d.toml", place.ok(&["show", "sim:config-a"]));
    place.ok(&["compare", "a.toml", "d.toml", "--requests", "500", "--keep", "none"]);
}

/// Each repetition is a run of its own, called by the whole and its number.
#[test]
fn a_repetition_is_a_side() {
    let place = Place::new();
    place.ok(&["run", "null:", "--requests", "500", "--runs", "2", "--name", "x"]);
    let sides = ["results/x/run-1/result.json", "results/x/run-2"];
    let compared = place.json(&[&["compare"], &sides[..], &["--keep", "none"]].concat());
    assert_eq!(compared["names"], serde_json::json!(["x/run-1", "x/run-2"]));
    let told = place.fails(2, &["compare", "results/x", "results/x/run-2"]);
    assert!(told.contains("results/x/run-1"), "{told}");
}

#[test]
fn options_of_a_side_are_checked() {
    let place = Place::new();
    place.ok(&["run", "sim:config-a", "--requests", "500", "--name", "a"]);
    let sim = "sim:config-a";
    for (args, message) in [
        (vec![sim, sim, "--a", "--quues single"], "in `--a`: unexpected argument '--quues'"),
        (vec![sim, sim, "--b", "--queues sngle"], "in `--b`: invalid value 'sngle'"),
        (vec![sim, sim, "--b", "--write"], "`--write` cannot be used in `--b`"),
        (vec![sim, sim, "--a", "--jobs 2"], "in `--a`: `--jobs` is for real targets"),
        (vec![sim, sim, sim, "--a", "-d 2"], "`--a` is for a comparison of two sides"),
        (vec![sim, sim, "--b", "--depth", "4"], "--b '--depth VALUE'"),
        (vec![sim], "has nothing to be compared with"),
        (vec!["results/a", sim, "--a", "-d 2"], "results/a is a result"),
        (vec![sim, "results/a", "--b", "-d 2"], "results/a is a result"),
    ] {
        let told = place.fails(2, &compare(&args));
        assert!(told.contains(message), "{message}: {told}");
    }
}

/// The output matches the schema, and contains the intervals between runs.
#[test]
fn repeated_runs_keep_to_the_schema() {
    let place = Place::new();
    let schema = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/schemas/compare.json");
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(schema).unwrap()).unwrap();
    let args = ["null:", "sim:config-a", "--runs", "2", "--b", "--seed 3"];
    let compared = place.json(&compare(&args));
    jsonschema::validator_for(&schema).unwrap().validate(&compared).unwrap();
}

/// One load several times: the figures over the runs, each run, and what is kept.
#[test]
fn one_load_runs_several_times() {
    let place = Place::new();
    let load = ["run", "sim:config-a", "-w", "randread", "--requests", "1000", "--seed", "7"];
    let run = |more: &[&'static str]| [&load[..], more].concat();
    let all = place.json(&run(&["--runs", "3", "--name", "r", "--require", "iops>1"]));
    assert_eq!((seeds(&all), &all["asked"]), (vec![7, 8, 9], &3.into()));
    assert_eq!(all["bounds"][0]["verdict"], "holds");
    assert!(all["replay"].as_str().unwrap().contains("--runs 3"), "{}", all["replay"]);
    let schema = place.json(&["schema", "repeat"]);
    jsonschema::validator_for(&schema).unwrap().validate(&all).unwrap();
    for file in ["report.html", "result.json", "run-1/report.html", "run-3/result.json"] {
        assert!(place.path().join("results/r").join(file).is_file(), "{file}");
    }
    // Its second run is a result as any other.
    let alone = place.json(&[&load[..6], &["--seed", "8", "--keep", "none"]].concat());
    assert_eq!(all["runs"][1]["iops"], alone["iops"]);
    let text = place.ok(&run(&["--runs", "2", "--keep", "none"]));
    for part in ["sim:config-a: 2 runs", "95 % interval", "varies by", "run  seed", "Replay"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let broken = place.fails(1, &run(&["--runs", "2", "--keep", "none", "--require", "iops<1"]));
    assert!(broken.contains("iops<1"), "{broken}");
    for more in [&["--csv"][..], &["--timeline", "t.json"], &["--tune"], &["--hosts", "a"]] {
        let told = place.fails(2, &run(&[&["--runs", "2"], more].concat()));
        assert!(told.contains(&format!("'--runs <N>' cannot be used with '{}", more[0])), "{told}");
    }
    assert!(place.fails(2, &run(&["--runs", "1"])).contains("`--runs` must be 2 or more"));
}

/// Results of several runs are compared over their runs, as if `compare` had run them; beside a single run they are not.
#[test]
fn stored_repetitions_are_compared_over_their_runs() {
    let place = Place::new();
    let load = ["run", "sim:p3600", "-w", "randread", "--requests", "1000", "--runs", "3"];
    place.ok(&[&load[..], &["--name", "a"]].concat());
    place.ok(&[&load[..], &["--name", "b", "--queues", "single"]].concat());
    let stored = place.json(&["compare", "results/a", "results/b", "--keep", "none"]);
    assert_eq!(stored["repeated"].as_array().unwrap().len(), 2);
    let ran = ["sim:p3600", "sim:p3600", "-w", "randread", "--requests", "1000", "--runs", "3"];
    let ran = [&["compare"][..], &ran, &["--b", "--queues single", "--keep", "none"]].concat();
    let figures = |compared: &Value| compared["comparisons"][0]["figures"].clone();
    assert_eq!(figures(&stored), figures(&place.json(&ran)));
    let mixed = ["compare", "results/a", "results/b/run-1", "--keep", "none"];
    assert!(place.fails(2, &mixed).contains("name one of its runs"));
    let page = place.fails(2, &["compare", "results/a/report.html", "results/b"]);
    assert!(page.contains("is a page, not a result"), "{page}");
}

#[test]
fn a_comparison_is_written_as_csv() {
    let place = Place::new();
    let sides =
        ["compare", "sim:p3600", "sim:p3600", "--b", "--queues single", "--requests", "2000"];
    place.ok(&[&sides[..], &["--csv", "--runs", "2", "--name", "c"]].concat());
    let text = std::fs::read_to_string(place.path().join("results/c/comparison.csv")).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 7, "{text}");
    assert!(lines[0].starts_with("name,run,") && lines[0].contains(",host.queues,"), "{text}");
    assert!(lines[4].starts_with("sim:p3600 (2),,") && lines[4].contains("single"), "{text}");
    let told = place.fails(2, &[&sides[..], &["--csv", "--keep", "none"]].concat());
    assert!(told.contains("`--keep none`"), "{told}");
}

/// Rounds that are whole are kept, on both sides alike.
#[cfg(unix)]
#[test]
fn an_interrupt_keeps_whole_rounds() {
    use std::process::Stdio;
    use std::thread::sleep;
    use std::time::Duration;

    use rustix::process::{Pid, Signal, kill_process};

    let place = Place::new();
    let args = ["--json", "compare", "null:", "null:", "--for", "100ms", "--runs", "1000"];
    let mut command = place.command(&[&args[..], &["--name", "i"]].concat());
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    for _ in 0..1000 {
        if place.path().join("results/i").exists() {
            break;
        }
        sleep(Duration::from_millis(10));
    }
    // A round takes 200 ms and what starts and ends its runs: some are whole then, on a busy machine, too.
    sleep(Duration::from_secs(4));
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    let compared: Value = serde_json::from_slice(&output.stdout).unwrap();
    let ran = |side: usize| compared["repeated"][side]["runs"].as_array().unwrap().len();
    assert_eq!(ran(0), ran(1));
    assert!((1..1000).contains(&ran(0)), "{}", ran(0));
    let message = compared["error"]["message"].as_str().unwrap();
    assert!(message.contains(&format!("{} of 1000 rounds ran to the end", ran(0))), "{message}");
}
