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

/// The default device cleans a few pages at a time, which only the page map can. With another FTL it cleans
/// whole blocks, and says so; who asks for the pace is told what to type.
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
        let told = notes.iter().any(|note| note.contains("ftl.cleaning_pace"));
        assert_eq!(told, ftl != "page", "{ftl}: {notes:?}");
        let device = result["configuration"]["device_toml"].as_str().unwrap();
        let pace = if ftl == "page" { "paced" } else { "whole" };
        assert!(device.contains(&format!("cleaning_pace = \"{pace}\"")), "{ftl}: {device}");
        // Said by all who say what is run.
        let shown = place.ok(&["show", "sim:nvme-tlc", "--set", &name]);
        assert_eq!(shown.contains("# `"), ftl != "page", "{shown}");
        if ftl == "dftl" {
            let text = place.ok(&[&call[..], &FEW].concat());
            let note = "`dftl` cleans whole blocks: ftl.cleaning_pace is \"whole\"";
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(text.contains(note), "{text}");
            let asked = ["--set", "ftl.cleaning_pace=paced"];
            let error = place.fails(2, &[&call[..], &asked, &FEW].concat());
            for word in ["cleaning_pace", "whole blocks", "--set ftl.cleaning_pace=whole"] {
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
