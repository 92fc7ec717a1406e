//! Where a result comes from, in `result.json` and in what `compare` says.

use serde_json::Value;

use crate::common::Place;

fn stored(place: &Place, name: &str) -> Value {
    let path = place.path().join("results").join(name).join("result.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// `result` without what differs between equal runs, as text.
fn figures(mut result: Value) -> String {
    let all = result.as_object_mut().unwrap();
    for key in ["provenance", "wall_seconds", "simulated_requests_per_wall_second", "own_cost"] {
        all.remove(key);
    }
    result.to_string()
}

#[test]
fn equal_runs_differ_in_their_provenance_alone() {
    let place = Place::new();
    for name in ["a", "b"] {
        let args = ["run", "sim:config-a", "--requests", "500", "--keep", "summary"];
        place.ok(&[&args[..], &["--name", name]].concat());
    }
    let (a, b) = (stored(&place, "a"), stored(&place, "b"));
    assert_eq!(figures(a.clone()), figures(b.clone()));
    let of = &a["provenance"];
    assert_eq!(of["command"], "ssdyno run sim:config-a --requests 500 --keep summary --name a");
    assert_ne!(of["command"], b["provenance"]["command"]);
    assert_eq!(of["version"], env!("CARGO_PKG_VERSION"));
    let started = of["started"].as_str().unwrap();
    assert!(started.len() == 20 && started.ends_with('Z'), "{started}");
    assert!(of["machine"]["architecture"].is_string() && of["storage"].is_null(), "{of}");
    let page = std::fs::read_to_string(place.path().join("results/a/report.html")).unwrap();
    assert!(page.contains("<h2>Provenance</h2>") && page.contains("--name a"));
    // Rows of a sweep and sides that are compared have none: they are equal to the last byte.
    let compared = place.json(&["compare", "results/a", "results/b"]);
    assert!(compared["comparisons"][0]["changed_provenance"].is_null(), "{compared}");
    let run = ["compare", "sim:config-a", "sim:config-a", "--requests", "200", "--keep", "none"];
    assert!(place.json(&run)["results"][0]["provenance"].is_null());
}

#[cfg(target_os = "linux")]
#[test]
fn a_comparison_of_real_targets_says_what_else_differs() {
    let place = Place::new();
    place.write("file", vec![7u8; 1 << 20]);
    let load =
        ["run", "./file", "--workload", "randread", "--requests", "500", "--keep", "summary"];
    place.ok(&[&load[..], &["--name", "a"]].concat());
    let mut result = stored(&place, "a");
    let file = &result["provenance"]["storage"][0]["file"];
    assert_eq!(file["size_bytes"], 1 << 20, "{}", result["provenance"]);
    let kernel = result["provenance"]["machine"]["kernel"].as_str().unwrap().to_owned();
    // The same on another kernel, by another program.
    let of = result["provenance"].as_object_mut().unwrap();
    of["machine"]["kernel"] = "99.1".into();
    of["version"] = "99.0.0".into();
    place.write("other.json", result.to_string());
    let text = place.ok(&["compare", "results/a", "other.json"]);
    let version = text.lines().next().unwrap();
    assert!(version.starts_with("changed: version ") && version.contains(" -> 99.0.0"), "{text}");
    assert!(text.contains(&format!("changed: kernel {kernel} -> 99.1\n")), "{text}");
    // A result of an older program has none.
    result.as_object_mut().unwrap().remove("provenance");
    place.write("old.json", result.to_string());
    let text = place.ok(&["compare", "results/a", "old.json"]);
    assert!(!text.contains("changed:"), "{text}");
}
