//! Injected faults: the program's messages, and its exit codes.

use crate::common::{Place, one_object};

/// A run of a delay with `keys`, as JSON; must end with `code`.
fn run(place: &Place, target: &[&str], keys: &[&str], code: i32) -> serde_json::Value {
    let mut args = vec!["run"];
    args.extend(target);
    args.extend(["--requests", "2000", "--keep", "none", "--json"]);
    keys.iter().for_each(|key| args.extend(["--set", *key]));
    let output = place.call(&args);
    assert_eq!(output.status.code(), Some(code), "{args:?}");
    one_object(&String::from_utf8(output.stdout).unwrap())
}

#[test]
fn late_answers_are_counted_and_the_run_succeeds() {
    let place = Place::new();
    let keys = ["faults.delay=0.1", "faults.delay_by=5ms"];
    let late = run(&place, &["sim:delay-100us"], &keys, 0);
    assert!(late["faults"]["device"]["delays"].as_u64().unwrap() > 100);
    assert_eq!(late["faults"]["requests_failed"], 0);
    assert!(late["configuration"]["device_toml"].as_str().unwrap().contains("[faults]"));
    let quiet = run(&place, &["sim:delay-100us"], &[], 0);
    assert!(quiet.get("faults").is_none());
    assert!(!quiet["configuration"]["device_toml"].as_str().unwrap().contains("faults"));
    let shown = place.ok(&["show", "sim:delay-100us", "--set", "faults.error=0.5"]);
    assert!(shown.contains("[faults]") && shown.contains("error = 0.5"), "{shown}");
    let over = ["sim:delay-100us", "--network", "s4-iscsi"];
    let lost = run(&place, &over, &["network.faults.drop=0.01"], 0);
    assert!(lost["faults"]["network"]["drops"].as_u64().unwrap() > 10);
}

/// The driver chooses a network where none is named.
#[test]
fn the_host_line_names_the_network() {
    let place = Place::new();
    let run = ["run", "sim:delay-100us", "--driver", "network", "--requests", "500"];
    let text = place.ok(&[&run[..], &["--keep", "none"]].concat());
    assert!(text.contains(": network s4-iscsi, queues a session per core"), "{text}");
}

#[test]
fn errors_and_a_device_that_is_gone_end_with_1() {
    let place = Place::new();
    let failed = run(&place, &["sim:delay-100us"], &["faults.error=0.01"], 1);
    assert_eq!(failed["partial"], false);
    assert_eq!(failed["errors"], failed["faults"]["device"]["errors"]);
    assert!(failed["error"]["message"].as_str().unwrap().contains("ended in an error"));
    // Nothing is kept: the only directory of results is that of the run whose page is read.
    let once = ["run", "sim:delay-100us", "--requests", "1", "--set", "faults.error=1"];
    let once = [&once[..], &["--keep", "none"]].concat();
    assert!(place.fails(1, &once).contains("error: 1 request ended in an error"));
    let gone = run(&place, &["sim:delay-100us"], &["faults.remove_at=20ms"], 1);
    assert_eq!((&gone["partial"], &gone["stopped_because"]), (&true.into(), &"error".into()));
    assert!(gone["error"]["message"].as_str().unwrap().starts_with("the device is gone"));
    let text = place.call(&["run", "sim:delay-100us", "--set", "faults.remove_at=20ms"]);
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(text.contains("partial") && text.contains("removed at 20.00 ms"), "{text}");
    let page = std::fs::read_dir(place.path().join("results")).unwrap().next().unwrap().unwrap();
    let page = std::fs::read_to_string(page.path().join("report.html")).unwrap();
    assert!(page.contains("Injected faults") && page.contains("removed at 20.00 ms"));
}

/// File, line and key; or the setting.
#[test]
fn impossible_faults_name_their_place() {
    let place = Place::new();
    let delay = place.ok(&["show", "sim:delay-100us"]);
    let lines = delay.lines().count() as u64;
    for (keys, line, key, says) in [
        ("error = 1.5", 2, "faults.error", "outside 0 to 1"),
        ("delay = 0.1", 2, "faults.delay", "the delay is missing"),
        ("eror = 0.1", 2, "faults.eror", "did you mean `faults.error`"),
        ("remove_at = \"0s\"", 2, "faults.remove_at", "must be above 0"),
        ("error = 0.1\nhang_at = \"1s\"", 3, "faults.hang_at", "would hang the run"),
        ("drop = 0.1", 2, "faults.drop", "no timeout"),
    ] {
        place.write("d.toml", format!("{delay}[faults]\n{keys}\n"));
        let output = place.call(&["run", "d.toml", "--keep", "none", "--json"]);
        assert_eq!(output.status.code(), Some(2), "{keys}");
        let error = &one_object(&String::from_utf8(output.stdout).unwrap())["error"];
        assert_eq!((&error["file"], &error["key"]), (&"d.toml".into(), &key.into()), "{error}");
        assert_eq!(error["line"].as_u64(), Some(lines + line), "{error}");
        let told = format!("{} {}", error["message"], error["help"]);
        assert!(told.contains(says), "{told}");
    }
    let network = place.ok(&["show", "s4-iscsi"]);
    place.write("n.toml", format!("{network}[faults]\ntries = 0\n"));
    let text = place.fails(2, &["run", "sim:delay-100us", "--network", "n.toml"]);
    assert!(text.contains("faults.tries") && text.contains("n.toml:"), "{text}");
    for (args, says) in [
        (vec!["--set", "faults.drop=-1"], "faults.drop"),
        (vec!["--set", "network.faults.drop=0.1"], "there is no network for"),
        (vec!["--network", "s4-iscsi", "--set", "network.faults.drop=2"], "network"),
        (vec!["--set", "network.faults.dorp=0.1"], "did you mean `network.faults.drop`"),
        (vec!["--retries", "2"], "needs a driver"),
        (vec!["--driver", "adapter", "--time-limit", "1s"], "is for the NVMe driver"),
        (vec!["--time-limit", "1us"], "1ms to 1h"),
    ] {
        let args = [vec!["run", "sim:delay-100us", "--keep", "none"], args].concat();
        let text = place.fails(2, &args);
        assert!(text.contains(says), "{says} in {text}");
    }
}
