//! Every verb does what its help says.

use std::collections::BTreeSet;
#[cfg(target_os = "linux")]
use std::process::Stdio;
#[cfg(target_os = "linux")]
use std::time::Duration;

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
    for part in ["IOPS", "p99.9", "Write amplification", "Drive energy", "results/a", "--seed 7"] {
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
    // The replay gives the same figures; only the wall's clock and the command differ.
    for result in [&mut stored, &mut printed] {
        let result = result.as_object_mut().unwrap();
        for key in ["provenance", "wall_seconds", "simulated_requests_per_wall_second", "own_cost"]
        {
            result.remove(key);
        }
        for key in ["results_directory", "timeline", "replay", "error"] {
            result.remove(key);
        }
        // What is kept is not the same.
        result.remove("spec");
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

/// X-9: the recording is a trace whose requests arrive at their times, in their order.
#[test]
fn a_recorded_run_can_be_played() {
    let place = Place::new();
    let recorded = place.json(&small(&["run", "sim:config-a", "--name", "r", "--csv"]));
    let rows = std::fs::read_to_string(place.path().join("results/r/requests.csv")).unwrap();
    assert_eq!(rows.lines().count() as u64, 1 + recorded["requests"].as_u64().unwrap());
    let trace = ["--workload", "results/r/requests.csv", "--keep", "none"];
    let played = place.json(&[&["run", "sim:config-a"], &SMALL[2..], &trace].concat());
    assert_eq!(played["requests_by_op"], recorded["requests_by_op"]);
    let mean = |result: &Value| result["latency_ns"]["mean"].as_f64().unwrap();
    let ratio = mean(&played) / mean(&recorded);
    assert!((ratio - 1.0).abs() < 0.01, "{ratio}");
    // In the order of completion lines would be late.
    assert!(
        !played["notes"].to_string().contains("earlier than the previous line"),
        "{}",
        played["notes"]
    );
    let refused = small(&["run", "sim:config-a", "--keep", "summary", "--csv"]);
    assert!(place.fails(2, &refused).contains("--csv"));
}

#[cfg(target_os = "linux")]
#[test]
fn a_real_target_is_only_read_unless_asked_otherwise() {
    let place = Place::new();
    place.write("target", vec![0x5A; 1 << 20]);
    let args = ["run", "./target", "--requests", "500", "--keep", "none"];
    let result = place.json(&args);
    assert_eq!(
        (&result["workload"], &result["requests_by_op"]["read"]),
        (&"randread".into(), &500.into())
    );
    for preset in ["latency", "throughput", "spek"] {
        let result = place.json(&[&args[..], &["--workload", preset]].concat());
        assert_eq!(result["requests"], 500, "{preset}");
    }
    assert_eq!(
        place.json(&["run", "./target", "--for", "20ms", "--workload", "quick", "--keep", "none"])
            ["requests_by_op"]["write"],
        0
    );
    let refused = place.fails(2, &[&args[..], &["--workload", "mixed"]].concat());
    assert!(refused.contains("--write"), "{refused}");
    assert_eq!(std::fs::read(place.path().join("target")).unwrap(), vec![0x5A; 1 << 20]);
    // Where nothing can be lost the default stays.
    for target in ["null:", "sim:config-a"] {
        assert_eq!(
            place.json(&["run", target, "--requests", "500", "--keep", "none"])["workload"],
            "mixed"
        );
    }
}

/// A job file as people write them.
const JOB_FILE: &str = "; two loads, one after the other\n[global]\nbs=4k\nioengine=libaio\ndirect=1\n\
    size=2m\nnorandommap\n\n[mix]\nrw=randrw\nrwmixread=75\niodepth=8\nnumjobs=2\n\n[scan]\nstonewall\n\
    rw=read\nbs=128k\nramp_time=1ms\nruntime=50ms\ntime_based\n";

#[test]
fn a_job_file_runs_on_a_simulated_device_and_repeats() {
    let place = Place::new();
    place.write("a.fio", JOB_FILE);
    let args = ["run", "sim:config-a", "--fio", "a.fio", "--keep", "none"];
    let result = place.json(&args);
    let jobs = result["jobs"].as_array().unwrap();
    let figures: Vec<_> =
        jobs.iter().map(|j| (j["name"].as_str().unwrap(), j["group"].as_u64().unwrap())).collect();
    assert_eq!(figures, [("mix", 0), ("mix", 0), ("scan", 1)]);
    assert_eq!((&jobs[0]["requests"], &jobs[1]["requests"]), (&512.into(), &512.into()));
    assert!((jobs[2]["seconds"].as_f64().unwrap() - 0.05).abs() < 0.005, "{}", jobs[2]);
    let sum: u64 = jobs.iter().map(|job| job["requests"].as_u64().unwrap()).sum();
    assert_eq!(result["requests"], sum);
    assert!(result["replay"].as_str().unwrap().contains("--fio a.fio"));
    // Virtual time: again the very same.
    assert_eq!(place.json(&args)["jobs"], result["jobs"]);
    let text = place.ok(&args);
    assert!(text.contains("Job ") && text.contains("scan"), "{text}");
    // Each row has the name of its job, also the rows of copies.
    place.ok(&["run", "sim:config-a", "--fio", "a.fio", "--csv", "--name", "rows"]);
    let rows = std::fs::read_to_string(place.path().join("results/rows/requests.csv")).unwrap();
    let of = |job: &str| rows.lines().filter(|line| line.split(',').nth(7) == Some(job)).count();
    assert_eq!([of("mix.0"), of("mix.1")], [512; 2]);
    assert_eq!(of("scan") as u64, jobs[2]["requests"].as_u64().unwrap());
}

/// Pages that were read ahead take no time in the device, which would otherwise look like a device of 0 ns.
#[test]
fn reads_that_the_page_cache_serves_are_noted() {
    let place = Place::new();
    let run = |host: &str| {
        let load = ["--workload", "seqread", "-b", "4k", "--requests", "2000", "--keep", "none"];
        place.json(&[&["run", "sim:nvme-tlc", "--host", host], &load[..]].concat())
    };
    let cached = run("s4-iometer");
    assert_eq!(cached["device_latency_ns"]["p50"], 0.0);
    let notes = cached["notes"].to_string();
    assert!(notes.contains("of the requests spent no time in the device"), "{notes}");
    let direct = run("s4-spek")["notes"].to_string();
    assert!(!direct.contains("no time in the device"), "{direct}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_job_file_names_its_target_and_needs_permission_to_write() {
    let place = Place::new();
    place.write("target", vec![0x5A; 4 << 20]);
    place.write("r.fio", "[a]\nfilename=target\nrw=randread\nsize=1m\n");
    let result = place.json(&["run", "--fio", "r.fio", "--keep", "none"]);
    assert_eq!((&result["target"], &result["requests"]), (&"./target".into(), &256.into()));
    place.write("other", vec![0; 4096]);
    let refused = place.fails(2, &["run", "./other", "--fio", "r.fio"]);
    assert!(refused.contains("[a] is for `target`"), "{refused}");
    place.write("w.fio", format!("{JOB_FILE}\n[w]\nrw=write\n"));
    let refused = place.fails(2, &["run", "./target", "--fio", "w.fio", "--keep", "none"]);
    assert!(refused.contains("[mix]") && refused.contains("--write"), "{refused}");
    assert_eq!(std::fs::read(place.path().join("target")).unwrap(), vec![0x5A; 4 << 20]);
    place.write("n.fio", "[a]\nioengine=null\nrw=write\nsize=4m\n");
    assert_eq!(place.json(&["run", "--fio", "n.fio", "--keep", "none"])["target"], "null:");
    place.write("bad.fio", "[a]\nrw=read\n\nfrobnicate=1\n");
    let refused = place.fails(2, &["run", "null:", "--fio", "bad.fio"]);
    assert!(refused.contains("bad.fio:4: fio's option `frobnicate`"), "{refused}");
    place.write("gone.fio", "[a]\nfilename=gone\nsize=8m\n");
    let refused = place.fails(2, &["run", "--fio", "gone.fio"]);
    assert!(refused.contains("--size 8388608B"), "{refused}");
    place.fails(2, &["run", "null:", "--fio", "r.fio", "--workload", "quick"]);
    place.fails(2, &["run", "null:", "--fio", "r.fio", "--set", "workload.depth=3"]);
}

/// The most memory, in KiB, that a run of `requests` against `null:` had in use, with --keep summary.
#[cfg(target_os = "linux")]
fn memory_kib(place: &Place, requests: &str) -> u64 {
    let args =
        ["run", "null:", "--keep", "summary", "--workload", "randread", "--requests", requests];
    let mut run = place.command(&args);
    let mut run = run.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let status = format!("/proc/{}/status", run.id());
    let mut most = 0;
    while run.try_wait().unwrap().is_none() {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
        most = most.max(kib.unwrap_or(0));
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(run.wait().unwrap().success() && most > 0);
    most
}

/// S4-17: without rows memory does not depend on how many requests there are. Rows of 18 million
/// requests would be 280 MiB. Tolerance 8 MiB: equal runs differ by up to 2 MiB, and on a busy machine by 4 MiB.
#[cfg(target_os = "linux")]
#[test]
fn memory_is_flat_without_rows() {
    let place = Place::new();
    let (short, long) = (memory_kib(&place, "2000000"), memory_kib(&place, "20000000"));
    assert!(long < short + 8192, "{short} KiB for 2 million requests, {long} KiB for 20 million");
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
    let all = "array compare delay device disk error explain failure host network papers pci plan plan-result profile pts repeat ring-card run \
               snapshot spec sweep sweep-result task volume workload";
    let mut all: BTreeSet<&str> = all.split(' ').collect();
    if cfg!(target_os = "linux") {
        all.extend(["probe", "verify"]);
    }
    assert_eq!(names, all);
    place.ok(&small(&["run", "sim:config-a", "--name", "a"]));
    let cases: [(&str, Vec<&str>); 4] = [
        ("run", small(&["run", "sim:config-a", "--keep", "none"])),
        ("compare", vec!["compare", "results/a", "results/a/result.json", "--keep", "none"]),
        ("papers", vec!["papers", "S3/table6", "--keep", "none"]),
        ("explain", vec!["explain", "flash.read_time"]),
    ];
    for (schema, args) in cases {
        let printed = place.json(&args);
        fits(&place, schema, &printed);
        if schema == "run" {
            fits(&place, "spec", &printed["spec"]);
        }
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

/// What `nvme id-ctrl` saved becomes a device file that runs; `--set` has the last word.
#[test]
fn identity_of_a_real_controller() {
    let place = Place::new();
    let saved = "NVME Identify Controller:\nvid : 0x1b36\nmn : A drive\nmdts : 5\nver : 10200\n\
                 ps 0 : mp:9.00W operational enlat:0 exlat:0 rrt:0 rrl:0\n";
    place.write("saved.txt", saved);
    let show = ["show", "sim:gen4-consumer", "--id-ctrl", "saved.txt", "--set", "nvme.serial=mine"];
    let shown = place.ok(&show);
    for part in ["# - id-ctrl does not contain", "\"A drive\"", "\"mine\"", "\"128KiB\"", "\"9W\""]
    {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    place.write("drive.toml", shown);
    place.ok(&["show", "sim:drive.toml"]);
    place.ok(&["run", "drive.toml", "--requests", "200", "--keep", "none"]);
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
    assert_eq!(compared["comparisons"][0]["verdict"], "identical");
    assert!(place.ok(&args).contains("identical"));
}

/// What differs comes first, and unlike runs get no verdict.
#[test]
fn a_comparison_says_what_differs_before_its_figures() {
    let place = Place::new();
    let load = ["--workload", "randread"];
    let run = |name: &'static str, more: &[&'static str]| {
        let args = small(&["run", "sim:config-a", "--name", name]);
        place.ok(&[&args[..], &load, more].concat());
    };
    run("base", &[]);
    run("slow", &["--set", "flash.read_time=100us"]);
    run("large", &["--set", "workload.block_size=64KiB"]);
    let compare = |more: &[&'static str]| [&["compare", "--keep", "none"][..], more].concat();
    let text = place.ok(&compare(&["results/base", "results/slow"]));
    // Both are too short for their tails, which is said between the two.
    assert!(text.starts_with("changed: flash.read_time 50us -> 100us\nwarning: both"), "{text}");
    assert!(text.contains("\n\nFigure"), "{text}");
    assert!(text.contains("Verdict  slow is slower than base"), "{text}");
    let args = compare(&["results/base", "results/large"]);
    let text = place.ok(&args);
    assert!(text.starts_with("changed: workload.block_size 4KiB -> 64KiB\n"), "{text}");
    assert!(
        text.contains("not comparable, because the loads differ (workload.block_size)"),
        "{text}"
    );
    assert_eq!(place.json(&args)["comparisons"][0]["verdict"], "not_comparable");
    // More than two are one table, in the order that is asked for.
    let all = ["results/large", "results/base", "results/slow", "--sort", "p99", "--top", "2"];
    let text = place.ok(&compare(&all));
    let runs: Vec<&str> = text.lines().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(runs[..3], ["run", "base", "slow"], "{text}");
    assert!(text.contains("… and 1 more"), "{text}");
}

#[test]
fn completion_and_manual_know_all_verbs() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        assert!(place.ok(&["completion", shell]).contains("beyond-end"), "{shell}");
    }
    assert!(place.ok(&["man"]).contains("130"));
    let files = place.ok(&["man", "pages"]);
    for verb in ["run", "compare", "papers", "list", "show", "controller-invite", "man"] {
        let page = format!("ssdyno-{verb}.1");
        assert!(files.contains(&page), "{page} in {files}");
        assert!(place.path().join("pages").join(page).is_file());
    }
    // Another version's pages are replaced, files of others are not.
    place.ok(&["man", "pages"]);
    std::fs::write(place.path().join("pages/ssdyno-run.1"), "mine").unwrap();
    let told = place.fails(2, &["man", "pages"]);
    assert!(told.contains("ssdyno-run.1 exists"), "{told}");
}

#[test]
fn commands_of_the_reference_work() {
    let readme = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/command_line.md");
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
