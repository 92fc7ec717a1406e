//! FTLs are exchanged by one setting.

use crate::common::Place;

/// A few planes of the default device, and few requests.
const FEW: [&str; 8] = [
    "--requests",
    "200",
    "--set",
    "flash.blocks_per_plane=64",
    "--set",
    "flash.channels=1",
    "--keep",
    "none",
];

/// The default device cleans a few pages at a time, which only the page map can. With another FTL its key is
/// left out, and a note says so; who asks for the pace is told what to type.
#[test]
fn any_ftl_runs_on_the_default_device() {
    let place = Place::new();
    for ftl in ["page", "dftl", "block", "bast", "fast", "agrawal"] {
        let name = format!("ftl.name={ftl}");
        // It has no wear levelling either, and says so.
        let wear = if ftl == "agrawal" { "off" } else { "dynamic" };
        let wear = format!("ftl.wear_levelling={wear}");
        let call = ["run", "--workload", "randwrite", "--set", &name, "--set", &wear];
        let result = place.json(&[&call[..], &FEW].concat());
        let notes: Vec<&str> =
            result["notes"].as_array().unwrap().iter().filter_map(|note| note.as_str()).collect();
        let told = notes.iter().any(|note| note.contains("ftl.page.cleaning_pace"));
        assert_eq!(told, ftl != "page", "{ftl}: {notes:?}");
        let device = result["configuration"]["device_toml"].as_str().unwrap();
        let paced = device.contains("[ftl.page]\ncleaning_pace = \"paced\"");
        assert_eq!(paced, ftl == "page", "{ftl}: {device}");
        // Printed by all verbs that say what they run.
        let shown = place.ok(&["show", "sim:nvme-tlc", "--set", &name]);
        assert_eq!(shown.contains("# ignored"), ftl != "page", "{shown}");
        if ftl == "dftl" {
            let text = place.ok(&[&call[..], &FEW].concat());
            let note = "ignored ftl.page.cleaning_pace of the device file: the FTL `dftl` has no such keys";
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(text.contains(note), "{text}");
            let asked = ["--set", "ftl.page.cleaning_pace=paced"];
            let error = place.fails(2, &[&call[..], &asked, &FEW].concat());
            for word in ["cleaning_pace", "leave it out", "--set ftl.name=page"] {
                assert!(error.contains(word), "{word} is not in {error}");
            }
        }
    }
}

/// A file that asks for what cannot be is refused at its line, as before.
#[test]
fn a_file_with_a_pace_that_its_ftl_has_not_is_refused() {
    let place = Place::new();
    let shown = place.ok(&["show", "sim:nvme-tlc"]);
    place.write("device.toml", shown.replace("name = \"page\"", "name = \"dftl\""));
    let error = place.fails(2, &["run", "device.toml", "--requests", "10"]);
    assert!(error.contains("cleaning_pace") && error.contains("device.toml:"), "{error}");
}

/// Keys of one FTL are in a table of its own: the places where they were name them.
#[test]
fn keys_of_one_ftl_are_in_its_table() {
    let place = Place::new();
    let page = place.ok(&["show", "sim:config-a"]);
    for (key, value, write) in [
        ("mapping_cache", "\"64KiB\"", "set `ftl.dftl.mapping_cache`"),
        ("log_blocks", "0.1", "set `ftl.bast.log_blocks` or `ftl.fast.log_blocks`"),
        ("cleaning_pace", "\"paced\"", "set `ftl.page.cleaning_pace`"),
        ("classes", "[]", "set `ftl.page.classes`"),
    ] {
        let set = format!("ftl.{key}={value}");
        let error = place.fails(2, &["run", "sim:config-a", "--set", &set]);
        assert!(error.contains(write), "{error}");
        place.write("old.toml", page.replace("[ftl]\n", &format!("[ftl]\n{key} = {value}\n")));
        let error = place.fails(2, &["run", "old.toml"]);
        assert!(error.contains(write) && error.contains("old.toml:"), "{error}");
    }
    // Keys of another FTL would have no effect; keys of the named FTL are repeated.
    let cache = ["--set", "ftl.dftl.mapping_cache=64KiB"];
    let error = place.fails(2, &[&["run", "sim:config-a"][..], &cache].concat());
    assert!(error.contains("`page` does not have this key"), "{error}");
    let call = ["run", "sim:nvme-tlc", "--workload", "randwrite", "--set", "ftl.name=dftl"];
    let set = place.json(&[&call[..], &cache, &FEW].concat());
    let device = set["configuration"]["device_toml"].as_str().unwrap();
    assert!(device.contains("[ftl.dftl]\nmapping_cache = \"64KiB\""), "{device}");
    place.write("dftl.toml", device);
    let call =
        ["run", "dftl.toml", "--workload", "randwrite", "--requests", "200", "--keep", "none"];
    let file = place.json(&call);
    for figures in ["latency_ns", "energy_joules", "flash_operations"] {
        assert!(file[figures].is_object(), "{figures}");
        assert_eq!(file[figures], set[figures], "{figures}");
    }
}
