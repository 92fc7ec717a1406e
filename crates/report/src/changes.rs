//! What differs between the specs of two runs, and whether their figures may be held against each other.

use std::collections::BTreeMap;

use serde_json::Value;
use ssdyno_figures::{Change, RunResult};

/// Keys that decide neither figures nor what they mean: the shape, texts for people, and what is kept.
const SAME_ALL_THE_SAME: [&str; 5] = ["version", "description", "keep", "interval", "write"];

/// Keys of a load that say how long it goes on, and not what it is.
const LENGTH: [&str; 3] = ["workload.requests", "workload.duration", "workload.ramp_up"];

/// What keys of the host file begin with.
const OF_HOST: &str = "contents.host.";

/// The keys of which the values differ, in the order of the spec; keys of the device only where both have the same name,
/// because between two devices nearly all differ.
pub(crate) fn changes(first: &RunResult, second: &RunResult) -> Vec<Change> {
    let (one, other) = (keys(first), keys(second));
    let mut names: Vec<&String> = one.keys().chain(other.keys()).collect();
    names.sort();
    names.dedup();
    let same_device = first.target == second.target;
    // A run without a host has none of its keys: that there is one, `host.driver` says.
    let has_host = |keys: &BTreeMap<String, Value>| keys.keys().any(|key| key.starts_with(OF_HOST));
    let both_have_host = has_host(&one) && has_host(&other);
    names
        .into_iter()
        .filter(|name| one.get(*name) != other.get(*name))
        .filter(|name| same_device || !is_of_device(name))
        .filter(|name| both_have_host || !name.starts_with(OF_HOST))
        .map(|name| Change {
            key: name.clone(),
            first: one.get(name).cloned(),
            second: other.get(name).cloned(),
        })
        .collect()
}

/// Why the figures of two runs must not be held against each other; empty where they may.
pub(crate) fn obstacles(first: &RunResult, second: &RunResult, changes: &[Change]) -> Vec<String> {
    let mut why = Vec::new();
    let is_real = |run: &RunResult| run.simulated_requests_per_wall_second.is_none();
    if is_real(first) != is_real(second) {
        why.push("one target is real, the other is simulated".to_owned());
    }
    if first.page_cache != second.page_cache && is_real(first) == is_real(second) {
        why.push("one run went through the page cache, the other did not".to_owned());
    }
    let of_load: Vec<&str> =
        changes.iter().map(|change| change.key.as_str()).filter(|k| is_of_load(k)).collect();
    let without_spec = first.spec.is_none() || second.spec.is_none();
    if !of_load.is_empty() {
        why.push(format!("the loads differ ({})", of_load.join(", ")));
    } else if without_spec && first.workload != second.workload {
        why.push(format!("the loads differ ({} and {})", first.workload, second.workload));
    }
    why
}

/// Whether a key with this name is one of the device file.
fn is_of_device(key: &str) -> bool {
    let table = key.split('.').next().unwrap_or_default();
    !matches!(
        table,
        "target"
            | "workload"
            | "fio"
            | "seed"
            | "for"
            | "requests"
            | "until"
            | "set"
            | "trace"
            | "host"
            | "real"
            | "network"
            | "contents"
            | "files"
    )
}

/// Whether it is one of the load.
fn is_of_load(key: &str) -> bool {
    let of_load = ["workload.", "trace.", "files"].iter().any(|start| key.starts_with(start));
    of_load && !LENGTH.contains(&key)
}

/// Every key of the spec of `run` with its value. The keys of a device file have no table before them, those of the files
/// of workload and network have `workload.` and `network.`: as `set` takes them.
fn keys(run: &RunResult) -> BTreeMap<String, Value> {
    let mut all = BTreeMap::new();
    let Some(Value::Object(spec)) = &run.spec else { return all };
    for (name, value) in spec {
        if name == "contents" {
            continue;
        }
        // The name of a load says nothing that its keys do not say.
        let has_contents = spec.get("contents").is_some_and(|c| c.get("workload").is_some());
        if !(name == "workload" && has_contents) {
            flatten(name, value, &mut all);
        }
    }
    if let Some(Value::Object(contents)) = spec.get("contents") {
        for (file, value) in contents {
            let Value::Object(inner) = value else {
                flatten(file, value, &mut all);
                continue;
            };
            for (name, value) in inner {
                let key = match file.as_str() {
                    "device" => name.clone(),
                    "host" => format!("{OF_HOST}{name}"),
                    file => format!("{file}.{name}"),
                };
                flatten(&key, value, &mut all);
            }
        }
    }
    all
}

fn flatten(key: &str, value: &Value, all: &mut BTreeMap<String, Value>) {
    let (first, last) =
        (key.split('.').next().unwrap_or(key), key.rsplit('.').next().unwrap_or(key));
    if SAME_ALL_THE_SAME.contains(&last) || SAME_ALL_THE_SAME.contains(&first) {
        return;
    }
    match value {
        Value::Object(inner) => {
            inner.iter().for_each(|(name, value)| flatten(&format!("{key}.{name}"), value, all));
        }
        // A key that is left out is as one without a value.
        Value::Null => {}
        value => {
            all.insert(key.to_owned(), value.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn run(target: &str, spec: Value) -> RunResult {
        RunResult {
            target: target.into(),
            workload: "w".into(),
            simulated_requests_per_wall_second: Some(1.0),
            spec: Some(spec),
            ..RunResult::default()
        }
    }

    fn spec(block: &str, channels: u32, seed: u64) -> Value {
        json!({
            "version": 1, "target": "sim:a", "workload": "randread", "seed": seed, "keep": "none",
            "contents": {
                "device": { "description": format!("{channels}"), "flash": { "channels": channels } },
                "workload": { "block_size": block, "requests": seed },
            },
        })
    }

    #[test]
    fn keys_that_differ_are_named_as_they_are_typed() {
        let (a, b) = (run("sim:a", spec("4KiB", 8, 1)), run("sim:a", spec("64KiB", 16, 2)));
        let told: Vec<String> = changes(&a, &b).iter().map(ToString::to_string).collect();
        assert_eq!(
            told,
            [
                "flash.channels 8 -> 16",
                "seed 1 -> 2",
                "workload.block_size 4KiB -> 64KiB",
                "workload.requests 1 -> 2"
            ]
        );
        let why = obstacles(&a, &b, &changes(&a, &b));
        assert_eq!(why, ["the loads differ (workload.block_size)"]);
        // Between two devices nearly all keys differ.
        let other = run("sim:b", spec("4KiB", 16, 1));
        assert_eq!(changes(&a, &other), []);
        assert!(obstacles(&a, &other, &[]).is_empty());
    }

    #[test]
    fn unlike_targets_are_not_held_against_each_other() {
        let a = run("sim:a", spec("4KiB", 8, 1));
        let real = RunResult {
            simulated_requests_per_wall_second: None,
            page_cache: Some(false),
            ..a.clone()
        };
        let buffered = RunResult { page_cache: Some(true), ..real.clone() };
        assert!(obstacles(&a, &real, &[])[0].contains("simulated"));
        assert!(obstacles(&buffered, &real, &[])[0].contains("page cache"));
        // Results of old programs have no spec.
        let [old, older] =
            ["x", "y"].map(|name| RunResult { spec: None, workload: name.into(), ..a.clone() });
        assert_eq!(obstacles(&old, &older, &[]), ["the loads differ (x and y)"]);
    }
}
