//! Tests that the tables of assumed values say what presets and plans have, and leave nothing out.

use std::collections::BTreeSet;

use toml::Value;

use crate::assumptions::{Assumptions, split};
use crate::printed::PrintedNumber;
use crate::{FigureCell, presets, s0, s1, s3, s4};

/// A paper's table, and the texts that its keys are in, by the first part of the key.
struct Paper {
    id: &'static str,
    assumptions: Assumptions,
    texts: Vec<(&'static str, String)>,
    /// Values that are worked out, not read.
    derived: &'static [&'static str],
}

fn papers() -> [Paper; 4] {
    let host = |name| ("host", presets::host(name).unwrap().text.to_owned());
    let device = |name| ("device", presets::device(name).unwrap().text.to_owned());
    let plan = |text: &str| ("plan", text.to_owned());
    let network = ssdyno_rig::NETWORKS.iter().find(|preset| preset.name == "s4-iscsi").unwrap();
    [
        Paper {
            id: "S0",
            assumptions: s0::assumptions().unwrap(),
            texts: vec![host("s0-host"), device("zc706-ring")],
            derived: &[],
        },
        Paper {
            id: "S1",
            assumptions: s1::assumptions().unwrap(),
            texts: vec![
                host("e5430"),
                device("p3600"),
                plan(include_str!("../papers/s1/plan.toml")),
            ],
            derived: &[],
        },
        Paper {
            id: "S3",
            assumptions: s3::assumptions().unwrap(),
            texts: ["s3-nand1", "s3-nand2", "s3-nand3"].map(device).to_vec(),
            derived: &[],
        },
        Paper {
            id: "S4",
            assumptions: s4::assumptions().unwrap(),
            texts: vec![
                host("s4-spek"),
                host("s4-iometer"),
                device("delay-100us"),
                device("st318452lw"),
                ("network", network.text.to_owned()),
                plan(include_str!("../papers/s4/plan.toml")),
            ],
            derived: &["network.target.surcharge"],
        },
    ]
}

/// The key as a table of assumptions has it, of one in a file: a plan has changes to presets in it.
fn told(prefix: &str, path: &str) -> String {
    match (path.split_once("changes."), path.split_once(".set.")) {
        (Some((_, key)), _) => format!("device.{key}"),
        (_, Some((_, key))) => format!("host.{key}"),
        _ => format!("{prefix}.{path}"),
    }
}

/// Keys whose line says *assumed*.
fn marked(prefix: &str, text: &str) -> BTreeSet<String> {
    let (mut section, mut keys) = (String::new(), BTreeSet::new());
    for line in text.lines() {
        if let Some(name) = line.strip_prefix('[') {
            section = name.trim_start_matches('[').split(']').next().unwrap().to_owned();
        }
        // The text is scanned line by line, because a TOML parser drops comments. The word
        // *assumed* stands only there.
        let Some((code, comment)) = line.split_once('#') else { continue };
        let Some((key, _)) = code.split_once('=') else { continue };
        if comment.to_lowercase().contains("assumed") {
            keys.insert(told(prefix, &format!("{section}.{}", key.trim())));
        }
    }
    keys
}

/// All keys with their values.
fn flat(prefix: &str, value: &Value, keys: &mut Vec<(String, Value)>) {
    match value {
        Value::Table(table) => {
            for (key, value) in table {
                let at = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
                flat(&at, value, keys);
            }
        }
        other => keys.push((prefix.to_owned(), other.clone())),
    }
}

#[test]
fn every_value_that_a_preset_marks_as_assumed_is_in_the_table() {
    for Paper { id, assumptions, texts, .. } in papers() {
        let marked: BTreeSet<String> =
            texts.iter().flat_map(|(prefix, text)| marked(prefix, text)).collect();
        let varied = assumptions.values.iter().flat_map(|value| &value.keys);
        let left_out = assumptions.left_out.iter().flat_map(|left| &left.keys);
        let known: Vec<&String> = varied.chain(left_out).collect();
        let covers = |key: &String| {
            known.iter().any(|known| match known.strip_suffix('*') {
                Some(above) => key.starts_with(above),
                None => *known == key,
            })
        };
        let missing: Vec<_> = marked.iter().filter(|key| !covers(key)).collect();
        assert!(missing.is_empty(), "{id}: assumed, and neither varied nor left out: {missing:?}");
        assert!(assumptions.left_out.iter().all(|left| !left.reason.is_empty()), "{id}");
        assert!(id == "S3" || marked.len() > 15, "{id}: {marked:?}");
    }
}

#[test]
fn the_table_has_the_values_of_the_presets() {
    for Paper { id, assumptions, texts, derived } in papers() {
        let mut all = Vec::new();
        for (prefix, text) in &texts {
            let mut keys = Vec::new();
            flat("", &Value::Table(toml::from_str(text).unwrap()), &mut keys);
            all.extend(keys.into_iter().map(|(path, value)| (told(prefix, &path), value)));
        }
        for value in &assumptions.values {
            for key in &value.keys {
                // The last one counts: a plan changes what a preset has.
                // The table repeats the value of the preset for readers. This test finds a preset
                // that was changed without its table, whose range would then be around the wrong
                // value.
                let found = all.iter().rev().find(|(known, _)| known == key);
                let found = found.map(|(_, value)| value);
                assert!(
                    found.is_some() || derived.contains(&key.as_str()),
                    "{id}: {key} is in no preset"
                );
                let (Some(found), Some(unit)) = (found, &value.unit) else { continue };
                let (number, own) = match found {
                    Value::String(text) => split(text).unwrap(),
                    Value::Integer(number) => (*number as f64, ""),
                    other => (other.as_float().unwrap(), ""),
                };
                assert_eq!((number, own), (value.assumed, unit.as_str()), "{id}: {key}");
            }
            let [least, most] = value.range;
            assert!((least..=most).contains(&value.assumed), "{id}: {}", value.name);
            assert!(value.unit.is_some() || value.assumed == 1.0, "{id}: {}", value.name);
        }
    }
}

#[test]
fn the_table_names_claims_that_there_are() {
    let all: Vec<String> = crate::selectable().unwrap().into_iter().map(|(id, _)| id).collect();
    for Paper { id, assumptions, .. } in papers() {
        for value in &assumptions.values {
            for claim in &value.claims {
                let claim = format!("{id}/claims/{claim}");
                assert!(all.contains(&claim), "{}: there is no {claim}", value.name);
            }
        }
    }
}

/// What holds for the numbers of every paper: each is worked out, is as expected, and has a reason
/// where it is not expected to match.
pub(crate) fn assert_worked_out(numbers: &[PrintedNumber], cells: &[FigureCell]) {
    assert_eq!(cells.len(), numbers.len());
    for cell in cells {
        let reason = cell.expected_to_match || cell.note.contains(": ") || cell.ours.is_none();
        assert!(reason, "no reason: {cell:?}");
        assert!(cell.matches() || !cell.expected_to_match, "{cell:?}");
    }
}
