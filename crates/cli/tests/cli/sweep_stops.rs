//! Designs that a sweep ends early, or does not begin.

use serde_json::{Value, json};

use crate::common::Place;

/// Eight designs of which two channels are too slow for the bound, with enough requests to say so.
const SLOW: [&str; 17] = [
    "sweep",
    "sim:config-a",
    "--vary",
    "flash.channels=2,16",
    "--vary",
    "ftl.over_provisioning=0.2..0.35/4",
    "--set",
    "flash.blocks_per_plane=32",
    "--set",
    "workload.depth=64",
    "--workload",
    "randread",
    "--requests",
    "8k",
    "--objective",
    "p99,cost",
    "--csv",
];

/// Above what two channels reach, below what sixteen do.
const BOUND: [&str; 2] = ["--require", "iops>200k"];

fn read(place: &Place, name: &str) -> Vec<u8> {
    std::fs::read(place.path().join("results").join(name)).unwrap()
}

fn of<'a>(result: &'a Value, state: &str) -> Vec<&'a Value> {
    result["rows"].as_array().unwrap().iter().filter(|row| row["state"] == state).collect()
}

/// A design is stopped after a number of requests that nothing but the plan decides, says why, and is on no front.
#[test]
fn a_hopeless_design_is_stopped_and_says_so() {
    let place = Place::new();
    let with = |more: &[&'static str]| [&SLOW[..], &BOUND[..], more].concat();
    let result = place.json(&with(&["--name", "a"]));
    let schema = place.json(&["schema", "sweep-result"]);
    assert!(jsonschema::validator_for(&schema).unwrap().is_valid(&result));
    assert_eq!((&result["stopped"], &result["done"]), (&json!(4), &json!(4)));
    let stopped = of(&result, "stopped");
    assert_eq!(stopped.len(), 4);
    for row in stopped {
        assert_eq!((&row["values"][0], &row["stopped"]), (&json!(2), &json!("iops>200k")));
        assert_eq!(row["standing"], "excluded");
        // 2048, 2560 and 3200 requests are looked at, and what is in flight is waited for.
        let requests = row["requests"].as_u64().unwrap();
        assert!((3200..=3200 + 64).contains(&requests), "{requests}");
        let why = row["why"].as_str().unwrap();
        assert!(why.contains("`iops>200k`") && why.contains("3200 requests"), "{why}");
    }
    let csv = String::from_utf8(read(&place, "a/sweep.csv")).unwrap();
    assert!(csv.lines().next().unwrap().contains(",excluded,stopped,run_seed,"), "{csv}");
    assert_eq!(csv.matches(",true,iops>200k,").count(), 4);
    let page = String::from_utf8(read(&place, "a/report.html")).unwrap();
    assert!(page.contains("4 stopped early") && page.contains("stopped early: breaks `iops"));
    // Without it the same designs run to their end, and are excluded all the same.
    let whole = place.json(&with(&["--name", "whole", "--run-hopeless"]));
    assert_eq!((&whole["stopped"], &whole["done"]), (&json!(0), &json!(8)));
    let standings = |result: &Value| -> Vec<Value> {
        result["rows"].as_array().unwrap().iter().map(|row| row["standing"].clone()).collect()
    };
    assert_eq!(standings(&result), standings(&whole));
    for (one, other) in of(&result, "done").into_iter().zip(&of(&whole, "done")[4..]) {
        assert_eq!(one, *other);
    }
    let text = place.ok(&with(&["--name", "b"]));
    assert!(text.contains("4 designs: stopped early: breaks `iops>200k`"), "{text}");
    assert!(text.contains("8 designs: 4 done, 4 stopped early"), "{text}");
    // One core or all of them: the same bytes.
    let all = place.command(&with(&["--name", "one"]));
    let mut one = std::process::Command::new("taskset");
    one.args(["-c", "0"]).arg(all.get_program()).args(all.get_args());
    one.current_dir(place.path());
    assert!(one.output().unwrap().status.success());
    for name in ["b", "one"] {
        for file in ["sweep.parquet", "sweep.csv"] {
            let [a, b] = ["a", name].map(|name| read(&place, &format!("{name}/{file}")));
            assert!(a == b, "{name}/{file}");
        }
    }
}

/// A bound that a design keeps by less than its interval, or that is at it, stops nothing.
#[test]
fn a_bound_within_the_interval_stops_nothing() {
    let place = Place::new();
    let all = place.json(&[&SLOW[..], &["--name", "all"]].concat());
    let mean = all["rows"][0]["figures"]["latency_ns.mean"]["value"].as_f64().unwrap();
    let bound = format!("mean<{mean:.0}ns");
    let result = place.json(&[&SLOW[..], &["--name", "at", "--require", &bound]].concat());
    assert_eq!(result["stopped"], 0, "{bound}");
}

/// The cost of a design is known without a run, in a grid, too.
#[test]
fn a_design_that_costs_too_much_is_not_run() {
    let place = Place::new();
    let bound = ["--name", "a", "--require", "cost<40"];
    let result = place.json(&[&SLOW[..], &bound].concat());
    assert_eq!((&result["ruled_out"], &result["done"]), (&json!(4), &json!(4)));
    for row in of(&result, "ruled_out") {
        assert_eq!((&row["requests"], &row["stopped"]), (&json!(0), &json!("cost<40")));
        assert!(row["figures"]["cost"]["value"].as_f64().unwrap() >= 40.0);
    }
    let bound = ["--name", "b", "--require", "cost<40", "--run-hopeless"];
    let whole = place.json(&[&SLOW[..], &bound].concat());
    assert_eq!((&whole["ruled_out"], &whole["done"]), (&json!(0), &json!(8)));
    // Over-provisioning costs nothing, but leaves less to use: 1.2 and 1.35 times as much raw flash.
    let figures = |name: &str| -> Vec<f64> {
        let rows = whole["rows"].as_array().unwrap();
        rows.iter().map(|row| row["figures"][name]["value"].as_f64().unwrap()).collect()
    };
    let (costs, per_gib) = (figures("cost"), figures("cost_per_gib"));
    assert_eq!(costs[0], costs[3]);
    assert!((per_gib[3] / per_gib[0] - 1.35 / 1.2).abs() < 1e-9, "{per_gib:?}");
    let bound = format!("cost_per_gib<{}", (per_gib[0] + per_gib[1]) / 2.0);
    let result = place.json(&[&SLOW[..], &["--keep", "none", "--require", &bound]].concat());
    let kept = of(&result, "done").len() as u64;
    assert_eq!((&result["ruled_out"], &result["done"]), (&json!(8 - kept), &json!(kept)));
    assert!(kept < 8 && result["rows"][3]["state"] == "ruled_out", "{result}");
}

/// A search that ran out of time goes on, and gives what it gives with time enough.
#[test]
fn a_search_that_ran_out_of_time_goes_on() {
    let place = Place::new();
    // All designs take about a second of CPU time on a fast machine. With a tenth of the requests, an idle
    // machine finished them within the limit.
    let plan = "sampling = \"search\"\nvary = [\"flash.channels=1..8*2\", \"ftl.over_provisioning=0.15..0.3/8\"]\n\
        objectives = [\"p99\", \"cost\"]\n[run]\ntarget = \"sim:config-a\"\nworkload = \"randwrite\"\nrequests = 40000\n\
        set = [\"flash.blocks_per_plane=32\", \"workload.depth=32\"]\n";
    place.write("long.toml", format!("time = \"10m\"\n{plan}"));
    place.write("short.toml", format!("time = \"150ms\"\n{plan}"));
    let whole = place.json(&["sweep", "long.toml", "--name", "whole"]);
    assert_eq!(whole["search"]["stopped"], "exhausted");
    let cut = place.json(&["sweep", "short.toml", "--name", "cut"]);
    assert_eq!(cut["search"]["stopped"], "time");
    let notes = cut["notes"].to_string();
    assert!(notes.contains("`ssdyno sweep --resume results/cut`"), "{notes}");
    let journal = place.path().join("results/cut/sweep.jsonl");
    let (mut runs, mut designs) = (0, cut["search"]["runs"].as_u64().unwrap());
    while journal.exists() {
        let more = place.json(&["sweep", "--resume", "results/cut"]);
        let now = more["search"]["runs"].as_u64().unwrap();
        assert!(now >= designs, "{now} after {designs}");
        (runs, designs) = (runs + 1, now);
        assert!(runs < 200, "no end of the search");
    }
    assert!(runs > 0);
    assert!(read(&place, "whole/sweep.parquet") == read(&place, "cut/sweep.parquet"));
}

/// One design is left: there are no effects to speak of. By hand: two channels cost more than 8, one costs 7.438.
#[test]
fn one_design_has_no_effects_and_its_command_says_which_it_is() {
    let place = Place::new();
    let sweep = ["sweep", "sim:config-a", "--vary", "flash.channels=1,2,4", "-w", "randread"];
    let load = ["--requests", "500", "--set", "flash.blocks_per_plane=32", "--keep", "none"];
    let judged = ["--objective", "mean,cost", "--require", "cost<8"];
    let text = place.ok(&[&sweep[..], &load, &judged].concat());
    assert!(text.contains("1 done") && !text.contains("the effects cover"), "{text}");
    assert!(text.contains("2 designs: not run: the cost breaks `cost<8`"), "{text}");
    assert!(text.contains("# the first row: design 0"), "{text}");
}
