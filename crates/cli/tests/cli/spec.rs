//! Runs from a spec, and results that repeat themselves.

use serde_json::Value;

use crate::common::{Place, SMALL};

/// Everything but what the wall's clock says, where the result comes from, and what is said beside it.
fn figures(mut result: Value) -> Value {
    let object = result.as_object_mut().unwrap();
    let clock = ["provenance", "wall_seconds", "simulated_requests_per_wall_second", "own_cost"];
    let beside = ["results_directory", "timeline", "replay", "error"];
    clock.iter().chain(&beside).for_each(|key| drop(object.remove(*key)));
    result
}

fn stored(place: &Place, name: &str) -> Value {
    let path = place.path().join("results").join(name).join("result.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn a_result_repeats_itself_to_the_last_digit() {
    let place = Place::new();
    for (name, args) in [
        ("plain", vec!["run", "sim:config-a", "--seed", "7", "--keep", "summary"]),
        (
            "nvme",
            vec![
                "run",
                "sim:config-a",
                "--driver",
                "nvme",
                "--queues",
                "single",
                "--interval",
                "1ms",
            ],
        ),
        ("ring", vec!["run", "sim:zc706-ring", "--requests", "512", "--ring", "block=dynamic"]),
    ] {
        let small = if name == "ring" { &[][..] } else { &SMALL };
        place.ok(&[&args[..], small, &["--name", name]].concat());
        let again = format!("{name}-again");
        let file = format!("results/{name}/result.json");
        let text = place.ok(&["run", "--spec", &file, "--name", &again]);
        assert!(text.contains(&format!("ssdyno run --spec {file}")), "{text}");
        let (first, second) = (stored(&place, name), stored(&place, &again));
        assert!(first["spec"]["contents"]["device"].is_object(), "{}", first["spec"]);
        assert_eq!(figures(first), figures(second), "{name}");
    }
}

#[test]
fn a_job_file_and_a_trace_are_repeated() {
    let place = Place::new();
    place.write("a.fio", "[a]\nrw=randrw\nbs=4k\nsize=2m\niodepth=4\n");
    place
        .write("a.csv", "time_us,op,offset_bytes,length_bytes\n0,read,0,4096\n9,write,8192,8192\n");
    for (name, load) in [("fio", ["--fio", "a.fio"]), ("trace", ["--workload", "a.csv"])] {
        place.ok(&[&["run", "sim:config-a", "--name", name], &load[..]].concat());
        let result = format!("results/{name}");
        place.ok(&["run", "--spec", &result, "--name", "again"]);
        assert_eq!(figures(stored(&place, name)), figures(stored(&place, "again")));
        std::fs::remove_dir_all(place.path().join("results/again")).unwrap();
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_real_result_is_repeated_with_the_same_spec() {
    let place = Place::new();
    place.write("target", vec![0x5A; 1 << 20]);
    let args = ["run", "./target", "--requests", "500", "--no-probes", "--set", "workload.depth=2"];
    place.ok(&[&args[..], &["--name", "a", "--submit", "all"]].concat());
    place.ok(&["run", "--spec", "results/a/result.json", "--name", "b"]);
    let (first, second) = (stored(&place, "a"), stored(&place, "b"));
    assert_eq!(first["spec"], second["spec"]);
    let real = &first["spec"]["real"];
    assert_eq!((&real["submit"], &real["method"]), (&"all".into(), &"default".into()));
    assert_eq!((&second["requests"], &second["target"]), (&500.into(), &"./target".into()));
}

/// The spec contains the permission to write as typed, and nothing else.
#[cfg(target_os = "linux")]
#[test]
fn a_spec_allows_no_more_than_was_typed() {
    let place = Place::new();
    place.write("target", vec![0x5A; 1 << 20]);
    place.write("s.toml", "target = \"./target\"\nworkload = \"randwrite\"\nrequests = 10\n");
    assert!(place.fails(2, &["run", "--spec", "s.toml"]).contains("`write.allowed`"));
    let allowed =
        "target = \"./target\"\nworkload = \"randwrite\"\nrequests = 10\n[write]\nallowed = true\n";
    place.write("s.toml", allowed);
    // A file that ssdyno did not make.
    assert!(place.fails(2, &["run", "--spec", "s.toml"]).contains("--overwrite"));
    assert_eq!(std::fs::read(place.path().join("target")).unwrap(), vec![0x5A; 1 << 20]);
}

#[test]
fn a_spec_stands_alone() {
    let place = Place::new();
    let spec = "target = \"sim:config-a\"\nrequests = 2000\nkeep = \"none\"\nset = [\"flash.channels=2\"]\n";
    place.write("s.toml", spec);
    let result = place.json(&["run", "--spec", "s.toml"]);
    assert_eq!(result["requests"], 2000);
    assert_eq!(result["replay"], "ssdyno run --spec s.toml");
    assert!(!place.path().join("results").exists());
    place.ok(&["run", "--spec", "s.toml", "--keep", "summary", "--name", "kept"]);
    assert_eq!(stored(&place, "kept")["spec"]["keep"], "summary");
    for (option, value) in [
        ("--seed", "2"),
        ("--workload", "mixed"),
        ("--cores", "2"),
        ("--jobs", "2"),
        ("--for", "1s"),
    ] {
        let told = place.fails(2, &["run", "--spec", "s.toml", option, value]);
        assert!(told.contains(option) && told.contains("--spec s.toml"), "{told}");
    }
    assert!(place.fails(2, &["run", "sim:config-a", "--spec", "s.toml"]).contains("a target"));
    place.write("wrong.toml", "target = \"sim:config-a\"\n[host]\ncors = 2\n");
    let output = place.call(&["run", "--spec", "wrong.toml", "--json"]);
    let error: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&error["error"]["key"], &error["error"]["line"]), (&"host.cors".into(), &3.into()));
    assert!(error["error"]["help"].as_str().unwrap().contains("host.cores"));
}
