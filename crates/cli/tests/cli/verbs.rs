//! Every verb does what its help says.

use std::collections::BTreeSet;

use crate::common::{Place, SMALL};
use serde_json::Value;

fn small(verb: &[&'static str]) -> Vec<&'static str> {
    [verb, &SMALL].concat()
}

#[test]
fn golden_help() {
    let place = Place::new();
    insta::assert_snapshot!("help", place.ok(&["--help"]));
    insta::assert_snapshot!("help_run", place.ok(&["run", "--help"]));
}

#[test]
fn run_prints_and_writes_what_it_promises() {
    let place = Place::new();
    let args = small(&["run", "sim:config-a", "--name", "a", "--seed", "7"]);
    let text = place.ok(&args);
    for part in ["IOPS", "p99.9", "Write amplification", "Energy", "results/a", "--seed 7"] {
        assert!(text.contains(part), "{part} in {text}");
    }
    for file in ["result.json", "requests.parquet", "report.html"] {
        let file = place.path().join("results/a").join(file);
        assert!(file.metadata().unwrap().len() > 100, "{}", file.display());
    }
    let stored = std::fs::read_to_string(place.path().join("results/a/result.json")).unwrap();
    let mut stored: Value = serde_json::from_str(&stored).unwrap();
    let mut printed = place.json(&[&args[..], &["--keep", "none"]].concat());
    assert_eq!(stored["requests"], 2000);
    // The replay gives the same figures; only the wall's clock differs.
    for result in [&mut stored, &mut printed] {
        let result = result.as_object_mut().unwrap();
        for key in ["wall_seconds", "simulated_requests_per_wall_second", "own_cost"] {
            result.remove(key);
        }
        for key in ["results_directory", "replay", "error"] {
            result.remove(key);
        }
    }
    assert_eq!(stored, printed);
}

#[test]
fn keep_decides_about_files() {
    let place = Place::new();
    place.ok(&small(&["run", "sim:config-a", "--keep", "none"]));
    assert!(!place.path().join("results").exists());
    place.ok(&small(&["run", "sim:config-a", "--keep", "summary", "--name", "s"]));
    assert!(place.path().join("results/s/result.json").exists());
    assert!(!place.path().join("results/s/requests.parquet").exists());
}

#[test]
fn limits_of_the_command_line_replace_those_of_the_workload() {
    let place = Place::new();
    let args = ["run", "sim:config-a", "--keep", "none", "--set", "flash.blocks_per_plane=32"];
    let result = place.json(&[&args[..], &["--for", "5ms", "--workload", "randread"]].concat());
    let seconds = result["simulated_seconds"].as_f64().unwrap();
    assert!((0.004..0.008).contains(&seconds), "{seconds}");
    let result = place.json(&[&args[..], &["--requests", "123"]].concat());
    assert_eq!(result["requests"], 123);
}

#[test]
fn traces_are_played() {
    let place = Place::new();
    let line = |n: u32| format!("{n}.0 0 {} 8 1\n", n * 8);
    place.write("a.trace", (0..200).map(line).collect::<String>());
    let args = ["run", "sim:config-a", "--keep", "none", "--workload", "a.trace"];
    let run = |more: &[&str]| place.json(&[&args[..], more].concat());
    assert_eq!(run(&[])["requests"], 200);
    assert_eq!(run(&["--requests", "50"])["requests"], 50);
    let original = run(&["--timing", "original"])["simulated_seconds"].as_f64().unwrap();
    let scaled = run(&["--timing", "scaled=0.5"])["simulated_seconds"].as_f64().unwrap();
    let fast = run(&["--timing", "fast", "--trace-depth", "4", "--trace-format", "disksim"]);
    assert!((scaled / original - 0.5).abs() < 0.05, "{scaled} {original}");
    assert!(fast["simulated_seconds"].as_f64().unwrap() < scaled);
}

#[test]
fn json_is_one_object_and_fits_its_schema() {
    let place = Place::new();
    let names = place.ok(&["schema"]);
    let names: BTreeSet<&str> = names.lines().collect();
    let all = "compare delay device error host network papers pci ring-card run workload";
    assert_eq!(names, all.split(' ').collect());
    place.ok(&small(&["run", "sim:config-a", "--name", "a"]));
    let cases: [(&str, Vec<&str>); 3] = [
        ("run", small(&["run", "sim:config-a", "--keep", "none"])),
        ("compare", vec!["compare", "results/a", "results/a/result.json"]),
        ("papers", vec!["papers", "S3/table6", "--keep", "none"]),
    ];
    for (schema, args) in cases {
        fits(&place, schema, &place.json(&args));
    }
    let error = place.call(&["run", "sim:nothing", "--json"]);
    fits(&place, "error", &crate::common::one_object(&String::from_utf8(error.stdout).unwrap()));
    for args in [
        vec!["list"],
        vec!["show", "mixed"],
        vec!["schema"],
        vec!["completion", "zsh"],
        vec!["man"],
    ] {
        place.json(&args);
    }
}

fn fits(place: &Place, schema: &str, value: &Value) {
    let schema: Value = serde_json::from_str(&place.ok(&["schema", schema])).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<String> = validator.iter_errors(value).map(|e| e.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}");
}

#[test]
fn what_show_prints_run_accepts() {
    let place = Place::new();
    let listing = place.json(&["list"]);
    let names = |what: &str| -> Vec<String> {
        let entries = listing[what].as_array().unwrap();
        entries.iter().map(|e| e["name"].as_str().unwrap().to_owned()).collect()
    };
    assert!(!names("ftls").is_empty() && !names("papers").is_empty());
    for name in names("devices").into_iter().chain(names("workloads")) {
        let once = place.ok(&["show", &name]);
        place.write("shown.toml", &once);
        assert_eq!(once, place.ok(&["show", "shown.toml"]), "{name}");
    }
    let small = ["--set", "flash.blocks_per_plane=32"];
    place.write("d.toml", place.ok(&[&["show", "sim:config-a"], &small[..]].concat()));
    place.write("w.toml", place.ok(&["show", "zipf"]));
    let figures = |target: &str, workload: &str, more: &[&str]| {
        let args = ["run", target, "--workload", workload, "--requests", "500", "--keep", "none"];
        place.json(&[&args[..], more].concat())["latency_ns"].clone()
    };
    assert_eq!(figures("d.toml", "w.toml", &[]), figures("sim:config-a", "zipf", &small));
}

#[test]
fn targets_run_side_by_side_in_the_order_given() {
    let place = Place::new();
    place.write("d.toml", place.ok(&["show", "sim:config-a"]));
    let args = small(&["compare", "sim:config-a", "d.toml", "sim:d.toml"]);
    let compared = place.json(&args);
    let results = compared["results"].as_array().unwrap();
    let targets: Vec<&str> = results.iter().map(|r| r["target"].as_str().unwrap()).collect();
    assert_eq!(targets, ["sim:config-a", "d.toml", "sim:d.toml"]);
    assert_eq!(compared["comparisons"].as_array().unwrap().len(), 2);
    assert_eq!(compared["comparisons"][0]["figures"][0]["ratio"], 1.0);
    assert!(place.ok(&args).contains("cannot tell"));
}

#[test]
fn completion_and_manual_know_all_verbs() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        assert!(place.ok(&["completion", shell]).contains("beyond-end"), "{shell}");
    }
    assert!(place.ok(&["man"]).contains("130"));
    let files = place.ok(&["man", "pages"]);
    for verb in ["run", "compare", "papers", "list", "show", "schema", "completion", "man"] {
        let page = format!("ssdyno-{verb}.1");
        assert!(files.contains(&page), "{page} in {files}");
        assert!(place.path().join("pages").join(page).is_file());
    }
}

#[test]
fn commands_of_the_readme_work() {
    let readme = concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md");
    let readme = std::fs::read_to_string(readme).unwrap();
    let place = Place::new();
    let mut seen = 0;
    let mut fenced = false;
    for line in readme.lines() {
        if line.starts_with("```") {
            fenced = !fenced;
        }
        let Some(command) = line.strip_prefix("ssdyno ").filter(|_| fenced) else { continue };
        let words = command.split(" #").next().unwrap_or_default().split_whitespace();
        let verb: Vec<&str> = words.take_while(|word| *word != ">" && *word != "|").collect();
        // Parsed as it stands; only the help is asked for.
        place.ok(&[&verb[..], &["--help"]].concat());
        seen += 1;
    }
    assert!(seen > 10, "{seen} commands");
}
