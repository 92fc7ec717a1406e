//! `--json`: always valid, one object, also on error; and it matches the schemas.

use serde_json::Value;

use crate::common::{Place, one_object};

fn assert_schema(place: &Place, name: &str, object: &Value) {
    let schema = one_object(&place.ok(&["schema", name]));
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<String> =
        validator.iter_errors(object).map(|e| format!("{}: {e}", e.instance_path())).collect();
    assert!(errors.is_empty(), "{name}: {errors:#?} in {object}");
    assert!(!validator.is_valid(&serde_json::json!({ "target": 3 })), "{name} takes anything");
}

#[test]
fn every_verb_with_bad_input_prints_one_error_object() {
    let place = Place::new();
    place.write("small", "x");
    place.write("file", vec![7u8; 1 << 20]);
    place.write("garbled", "\u{0}\u{1}{{{");
    place.write("garbled.json", "{\"target\": ");
    std::fs::create_dir(place.path().join("directory")).unwrap();
    let cases = "
        run sim:none | run none.toml | run ./none | run ./directory | run ./small | run /dev/null
        run ./file --workload none | run ./file --workload garbled | run ./file --set flash.channels=2
        run ./file --set workload.block_size=1000B | run ./file --set workload.block_size=2MiB
        run ./file --set workload.alignment=100B | run ./file --workload randwrite
        run ./file --write --workload randwrite | run ./file --jobs 0 | run ./file --pin 99999
        run ./file --timeout 1ms | run ./file --iopoll --engine threads | run ./file --driver nvme
        run ./file --probe-interval 0s | run ./file --no-probes --probe-interval 1s | run null: --queues x
        run sim:config-a --no-probes | run sim:config-a --timeline directory | run sim:config-a --seed x
        run sim:config-a --set flash.channels=99999 | run sim:config-a --results file
        compare sim:none sim:none | compare none none | compare garbled.json garbled.json | compare one
        papers S9 | papers S3/none | papers --trace none | papers S3 --requests 0
        pci none | pci garbled | pci directory | pci sim:none
        verify ./none | verify ./file | verify ./directory --write | verify ./small --write --overwrite
        verify null: --write | verify ./file --write | verify ./file --resume none | verify ./file --threads 0
        verify ./file --resume garbled | verify ./file --write --overwrite --block-size 1000B
        verify ./file --write --overwrite --block-size 4194304KiB
        verify ./file --write --overwrite --block-size 4194308KiB
        verify ./file --write --overwrite --range 1TiB | verify ./file --write --overwrite --range 0B
        verify ./file --write --overwrite --journal directory | verify ./new --write --size 0B
        probe --device none | probe --device ./none | probe --device /proc/self/stat | probe --interval 0s
        probe --samples 1000001 | probe --interval 999us
        probe --samples 0 | probe --interval 9 | list none | show none | show sim:none | show garbled
        show sim:config-a --set x | schema none | completion none | man file | none | run --none
    ";
    let mut tried = 0;
    for case in cases.lines().flat_map(|line| line.split('|')).map(str::trim) {
        let words: Vec<&str> = case.split_whitespace().collect();
        if words.is_empty() {
            continue;
        }
        let output = place.call(&[&words[..], &["--json"]].concat());
        let code = output.status.code();
        assert!([Some(1), Some(2), Some(3)].contains(&code), "{case}: {output:?}");
        let object = one_object(&String::from_utf8(output.stdout).unwrap());
        let error = &object["error"];
        assert!(error["message"].as_str().is_some_and(|m| m.len() > 5), "{case}: {object}");
        assert!(error["help"].is_string(), "{case} says not what to do: {object}");
        assert_schema(&place, "error", &object);
        tried += 1;
    }
    assert!(tried > 60, "{tried}");
}

#[test]
fn what_real_verbs_print_is_what_their_schemas_say() {
    let place = Place::new();
    let verify = ["verify", "./t", "--write", "--size", "4MiB", "--writes", "200"];
    let verified = place.json(&verify);
    assert_schema(&place, "verify", &verified);
    assert_eq!((&verified["faults"], &verified["error"]), (&0.into(), &Value::Null));
    let probed = place.json(&["probe", "--samples", "2", "--interval", "50ms"]);
    assert_schema(&place, "probe", &probed);
    assert_eq!(probed["samples"].as_array().unwrap().len(), 2);
    let run = ["run", "./t", "--for", "300ms", "--workload", "randread", "--keep", "none"];
    let result = place.json(&[&run[..], &["--probe-interval", "50ms"]].concat());
    assert_schema(&place, "run", &result);
    let samples = result["machine"]["samples"].as_array().unwrap();
    assert!(samples.len() >= 3, "{samples:?}");
    // One timeline: the samples cover the series.
    let end = |point: &Value| {
        point["start_seconds"].as_f64().unwrap() + point["length_seconds"].as_f64().unwrap()
    };
    let series = result["series"].as_array().unwrap();
    let (ours, theirs) = (end(samples.last().unwrap()), end(series.last().unwrap()));
    assert!(ours >= theirs - 0.001 && ours < theirs + 0.5, "{ours} {theirs}");
    assert!(samples[0]["start_seconds"].as_f64().unwrap().abs() < 0.01);
    let quiet = place.json(&[&run[..], &["--no-probes"]].concat());
    assert_eq!(quiet["machine"], Value::Null);
    // Reported at the end alone (S4-15).
    for target in ["./t", "sim:nvme-tlc"] {
        let load = ["--workload", "randread", "--requests", "500", "--keep", "none"];
        let once = place.json(&[&["run", target, "--interval", "0"], &load[..]].concat());
        let series = once["series"].as_array().unwrap();
        assert_eq!((series.len(), &series[0]["reads"]), (1, &500.into()), "{target}");
    }
}
