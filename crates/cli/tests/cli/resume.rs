//! `ssdyno profile --resume`.

use serde_json::Value;

use crate::common::Place;

const SMALL: [&str; 4] = ["--span", "4MiB", "--sizes", "8KiB..64KiB/8KiB"];

/// A profile whose time is over, under the name `early`.
fn early(place: &Place, more: &[&str]) -> Value {
    let args = ["profile", "sim:delay-10us", "--seed", "5", "--name", "early"];
    place.json(&[&args[..], &SMALL, more].concat())
}

const RESUME: [&str; 4] = ["profile", "sim:delay-10us", "--resume", "results/early"];

#[test]
fn what_was_left_out_is_as_in_the_file() {
    for method in [&["--method", "full"][..], &["--ops", "read", "--threshold", "2"]] {
        let place = Place::new();
        let first = early(&place, &[method, &["--time", "20ms"]].concat());
        assert_eq!(first["stopped_because"], "time_limit");
        let all = place.json(&[&RESUME[..], &["--name", "all"]].concat());
        let schema = place.json(&["schema", "profile"]);
        assert!(jsonschema::validator_for(&schema).unwrap().is_valid(&all));
        for key in ["method", "seed", "span_bytes", "sizes_bytes", "plan"] {
            assert_eq!(first[key], all[key], "{key}");
        }
        assert_eq!(all["sessions"].as_array().unwrap().len(), 2);
        assert_eq!(all["sessions"][0], first["sessions"][0]);
        let held = first["measurements"].as_array().unwrap();
        assert_eq!(held[..], all["measurements"].as_array().unwrap()[..held.len()]);
        assert!(["done", "within_error"].contains(&all["stopped_because"].as_str().unwrap()));
        assert_eq!(all["read_ratio"].as_array().unwrap().len(), 8);
        // Nothing is left: that is not an error, and no new result.
        let finished = ["profile", "sim:delay-10us", "--resume", "results/all/result.json"];
        assert!(place.ok(&finished).contains("nothing was left to measure"));
        assert_eq!(place.json(&finished)["results_directory"], Value::Null);
        assert_eq!(std::fs::read_dir(place.path().join("results")).unwrap().count(), 2);
    }
}

#[test]
fn what_cannot_go_on_is_refused_and_leaves_nothing() {
    let place = Place::new();
    early(&place, &["--method", "serra", "--time", "1ms"]);
    place.write("text", "no json");
    let stored = place.path().join("results/early/result.json");
    let text = std::fs::read_to_string(stored).unwrap();
    place.write("half", &text[..text.len() / 2]);
    let edited = |change: &dyn Fn(&mut Value)| {
        let mut value: Value = serde_json::from_str(&text).unwrap();
        change(&mut value);
        value.to_string()
    };
    let without = |key: &str| edited(&|value| drop(value.as_object_mut().unwrap().remove(key)));
    place.write("old", without("plan"));
    place.write("capacity", edited(&|value| value["method"] = "capacity".into()));
    place.write("seconds", edited(&|value| value["measurements"][0]["seconds"] = 0.into()));
    let cases: [(&[&str], &str); 13] = [
        (&["none"], "cannot read none"),
        (&["text"], "text is not a profile"),
        (&["half"], "half is not a profile"),
        (&["old"], "has no `plan`: it was merged, or an older version"),
        (&["capacity"], "a capacity profile cannot be resumed"),
        (&["seconds"], "is damaged: measurement 1 is invalid"),
        (&["results/early", "--seed", "6"], "`--seed` is 5 in the profile to resume, and 6 now"),
        (
            &["results/early", "--span", "8MiB"],
            "`--span` is 4MiB in the profile to resume, and 8MiB now",
        ),
        (&["results/early", "--ops", "read"], "`--ops` is read,write in"),
        (&["results/early", "--method", "full"], "`--method` is serra in"),
        (&["results/early", "--depth", "2"], "`--depth` is 1 in"),
        (&["results/early", "--set", "delay.read=3us"], "`--set` is nothing in"),
        (&["results/early", "--io-cost-model", "-"], "`--method` is serra in"),
    ];
    for (args, said) in cases {
        let all = [&["profile", "sim:delay-10us", "--resume"], args].concat();
        let text = place.fails(2, &all);
        assert!(text.contains(said), "{args:?}: {text}");
    }
    let other = place.fails(2, &["profile", "sim:delay-100us", "--resume", "results/early"]);
    assert!(other.contains("`target` is sim:delay-10us in"), "{other}");
    place.fails(2, &["profile", "--resume", "results/early"]);
    assert_eq!(std::fs::read_dir(place.path().join("results")).unwrap().count(), 1);
}
