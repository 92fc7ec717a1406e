//! `--timeline`, and the preparation of large devices.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::common::{Place, SMALL, one_object};

#[test]
fn a_timeline_is_a_trace_that_viewers_read() {
    let place = Place::new();
    let args = [&["run", "sim:config-a", "--keep", "none", "--timeline", "t.json"], &SMALL[..]];
    let printed = place.json(&args.concat());
    assert_eq!(printed["timeline"], "t.json");
    let text = std::fs::read_to_string(place.path().join("t.json")).unwrap();
    let trace = one_object(&text);
    let events = trace["traceEvents"].as_array().unwrap();
    let mut named = BTreeSet::new();
    let mut requests = 0;
    for event in events {
        let thread = (event["pid"].as_u64().unwrap(), event["tid"].as_u64().unwrap());
        match event["ph"].as_str().unwrap() {
            "M" if event["name"] == "thread_name" => assert!(named.insert(thread)),
            "M" => assert_eq!(event["name"], "process_name"),
            "X" => {
                assert!(event["ts"].as_f64().unwrap() >= 0.0 && event["dur"].as_f64().is_some());
                assert!(named.contains(&thread), "{event} has no name");
            }
            "b" => requests += 1,
            "e" => assert!(event["id"].is_u64()),
            other => panic!("{other}: {event}"),
        }
    }
    assert_eq!(printed["requests"], requests);
    // Once more over the first one; from a time on there are fewer.
    let later = [&args.concat()[..], &["--timeline-from", "5ms"]].concat();
    place.json(&later);
    let text = std::fs::read_to_string(place.path().join("t.json")).unwrap();
    let late = one_object(&text)["traceEvents"].as_array().unwrap().len();
    assert!(late < events.len(), "{late}");
}

/// The drives of an array and their parts have the names that the results give them.
#[test]
fn a_timeline_names_the_parts_of_each_drive() {
    let place = Place::new();
    place.json(&["run", "sim:s1-sas-pair", "--requests", "50", "--timeline", "t.json"]);
    let text = std::fs::read_to_string(place.path().join("t.json")).unwrap();
    let trace = one_object(&text);
    let names: BTreeSet<&str> = trace["traceEvents"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|event| event["args"]["name"].as_str())
        .collect();
    for name in ["array.disk[0] part", "array.disk[1] part", "arm"] {
        assert!(names.contains(name), "{names:?}");
    }
}

#[test]
fn a_timeline_that_cannot_be_written_costs_no_result() {
    let place = Place::new();
    place.write("precious", "of somebody else\n");
    let run = |file: &'static str, name: &'static str| {
        [&["run", "sim:config-a", "--timeline", file, "--name", name], &SMALL[..]].concat()
    };
    assert!(place.fails(2, &run("precious", "a")).contains("is not a timeline"));
    assert!(place.fails(3, &run("none/t.json", "a")).contains("make the directory"));
    assert!(!place.path().join("results").exists(), "nothing ran, nothing may be left");
    assert!(place.fails(2, &["run", "null:", "--timeline", "t.json"]).contains("simulated"));
    if std::path::Path::new("/dev/full").exists() {
        let output = place.call(&[&run("/dev/full", "full")[..], &["--json"]].concat());
        assert_eq!(output.status.code(), Some(3));
        let object = one_object(&String::from_utf8(output.stdout).unwrap());
        assert_eq!(object["requests"], 2000);
        assert!(object["error"]["message"].as_str().unwrap().contains("/dev/full"), "{object}");
        assert_eq!(object["timeline"], Value::Null);
        assert!(place.path().join("results/full/result.json").is_file(), "the result is kept");
    }
}

#[cfg(unix)]
#[test]
fn an_interrupt_during_the_preparation_leaves_nothing() {
    use std::process::Stdio;
    use std::time::{Duration, Instant};

    let place = Place::new();
    // 128 GiB: seconds of preparation.
    let args = ["run", "sim:config-a", "--set", "flash.blocks_per_plane=4096"];
    let args = [&args[..], &["--name", "i", "--timeline", "t.json", "--json"]].concat();
    let mut command = place.command(&args);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let began = Instant::now();
    // The directory is made after the handler is set.
    while !place.path().join("results/i").exists() {
        assert!(began.elapsed() < Duration::from_secs(30), "it does not start");
        std::thread::sleep(Duration::from_millis(2));
    }
    let kill = ["-s", "INT", &child.id().to_string()];
    assert!(std::process::Command::new("kill").args(kill).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let object = one_object(&String::from_utf8(output.stdout).unwrap());
    let message = object["error"]["message"].as_str().unwrap();
    assert!(message.contains("while the device was being prepared"), "{message}");
    assert!(object["requests"].is_null(), "no result: {object}");
    for file in ["results", "t.json"] {
        assert!(!place.path().join(file).exists(), "{file} is left");
    }
}
