//! The busy shares of devices that consist of other parts than a controller with flash.

use crate::common::Place;

/// The busy share of each part, by path.
fn busy(place: &Place, options: &[&str]) -> (f64, Vec<(String, f64)>) {
    let load = ["--requests", "2000", "--keep", "none"];
    let result = place.json(&[&["run"], options, &load[..]].concat());
    let parts = result["busy_by_part"].as_array().unwrap().iter();
    let share = |part: &serde_json::Value| {
        (part["part"].as_str().unwrap().to_owned(), part["share"].as_f64().unwrap())
    };
    (result["iops"].as_f64().unwrap(), parts.map(share).collect())
}

/// The cores of an array's controller obey the utilisation law: rate times 50 us. That a request is
/// somewhere inside is not work of the controller.
#[test]
fn the_controller_of_an_array_is_as_busy_as_its_cores() {
    let place = Place::new();
    let (rate, parts) = busy(&place, &["sim:s1-sas-pair", "-w", "randread", "-d", "2"]);
    let core = parts.iter().find(|part| part.0 == "array.core[0]").unwrap().1;
    assert!((core / (rate * 50e-6) - 1.0).abs() < 0.01, "{core} at {rate}/s");
    let most = parts.iter().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap();
    assert!(most.0.ends_with(".mechanism"), "{parts:?}");
}

/// A disk with a full queue has a part that is busy all the time, though the arm rests while a sector
/// comes round.
#[test]
fn a_disk_at_its_limit_has_a_saturated_part() {
    let place = Place::new();
    let (_, parts) = busy(&place, &["sim:exos-x20", "-w", "mixed", "-d", "32"]);
    let of = |name: &str| parts.iter().find(|part| part.0 == name).unwrap().1;
    assert!(of("mechanism") > 0.99 && of("arm") < 0.8, "{parts:?}");
    // What the disk reads ahead is work of the mechanism.
    let (_, parts) = busy(&place, &["sim:exos-x20", "-w", "seqread"]);
    let of = |name: &str| parts.iter().find(|part| part.0 == name).unwrap().1;
    assert!(of("mechanism") > 0.85 && of("mechanism") >= of("channel") - 1e-9, "{parts:?}");
    let ahead = ["sim:exos-x20", "-w", "seqread", "-d", "1", "-b", "128k", "-s"];
    let (_, parts) = busy(&place, &[&ahead[..], &["disk.cache.read_ahead=0B"]].concat());
    let of = |name: &str| parts.iter().find(|part| part.0 == name).unwrap().1;
    assert!(of("mechanism") > 0.9 && of("channel") < 0.5, "{parts:?}");
    let (_, parts) = busy(&place, &["sim:exos-x20", "-w", "randread", "--rate", "20"]);
    let mechanism = parts.iter().find(|part| part.0 == "mechanism").unwrap().1;
    assert!((0.1..0.6).contains(&mechanism), "{parts:?}");
}
