//! The meaning of the keys of files, specs and results, from the schemas, with their values in presets.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use serde_json::Value as Json;
use ssdyno_block::Preset;
use ssdyno_device::DeviceKind;

use crate::failure::{Failure, in_place_of};
use crate::kinds::DEVICE_KINDS;

use crate::schema_keys::{NETWORK, WORKLOAD, entries, published};

pub use crate::schema_keys::{KeyEntry, KeyWord, PresetValue, schema_of};

/// A kind of file: its name, the prefix of its keys, its schema, and the presets that are such files.
type FileKind = (&'static str, &'static str, Json, &'static [Preset]);

fn files() -> Vec<FileKind> {
    let devices = DEVICE_KINDS.all().iter();
    let of_device = |kind: &DeviceKind| published(kind.schema().to_value());
    let mut all: Vec<FileKind> =
        devices.map(|kind| (kind.name, "", of_device(kind), kind.presets)).collect();
    let workloads = ssdyno_workload::presets::ALL;
    all.push(("workload", WORKLOAD, schema_of::<ssdyno_workload::WorkloadConfig>(), workloads));
    all.push(("network", NETWORK, schema_of::<ssdyno_rig::NetworkConfig>(), ssdyno_rig::NETWORKS));
    all.push(("host", "", schema_of::<ssdyno_host::HostConfig>(), ssdyno_host::presets::ALL));
    all.push(("spec", "", schema_of::<crate::RunSpec>(), &[]));
    all.push(("result", "", schema_of::<ssdyno_figures::RunResult>(), &[]));
    all
}

/// Every key, by kind of file and in the order of the schema. A key that means the same in several kinds of file is there
/// once.
pub fn reference() -> &'static [KeyEntry] {
    static ALL: LazyLock<Vec<KeyEntry>> = LazyLock::new(|| {
        let mut all: Vec<KeyEntry> = Vec::new();
        for (file, prefix, schema, presets) in files() {
            // The files in a spec have entries of their own.
            let own = |entry: &KeyEntry| !entry.key.starts_with("contents.");
            for mut entry in entries(&schema).into_iter().filter(own) {
                // Each result has all its keys; what some leave out says so.
                entry.required &= file != "result";
                entry.presets =
                    presets.iter().filter_map(|one| value_in(one, &entry.key)).collect();
                entry.key.insert_str(0, prefix);
                let same = |one: &&mut KeyEntry| {
                    (&one.key, &one.meaning, &one.form, &one.default)
                        == (&entry.key, &entry.meaning, &entry.form, &entry.default)
                };
                match all.iter_mut().find(same) {
                    Some(one) => {
                        one.files.push(file.to_owned());
                        one.presets.append(&mut entry.presets);
                    }
                    None => all.push(KeyEntry { files: vec![file.to_owned()], ..entry }),
                }
            }
        }
        all
    });
    &ALL
}

/// The entries that `wanted` means: the key itself, or, where no key has that name, the keys that end with it.
///
/// # Errors
/// There is no such key; the help has the nearest.
pub fn explain(wanted: &str) -> Result<Vec<&'static KeyEntry>, Failure> {
    let wanted = wanted.split('=').next().unwrap_or_default().trim().trim_end_matches('.');
    let found = |is: &dyn Fn(&str) -> bool| {
        reference().iter().filter(|entry| is(&entry.key)).collect::<Vec<_>>()
    };
    let exact = found(&|key| key == wanted);
    if !exact.is_empty() {
        return Ok(exact);
    }
    let ending = found(&|key| key.strip_suffix(wanted).is_some_and(|rest| rest.ends_with('.')));
    if !wanted.is_empty() && !ending.is_empty() {
        return Ok(ending);
    }
    let known: BTreeSet<String> = reference().iter().map(|entry| entry.key.clone()).collect();
    let help = in_place_of(wanted, &known);
    let help = help.unwrap_or_else(|| "`ssdyno explain` lists all keys".to_owned());
    Err(Failure::usage(format!("there is no key `{wanted}`")).with_help(help).with_key(wanted))
}

/// The keys right below a table, in the order of the schema.
pub fn below(entry: &KeyEntry) -> impl Iterator<Item = &'static KeyEntry> {
    let (table, files) = (entry.key.clone(), entry.files.clone());
    reference().iter().filter(move |one| {
        let name = one.key.strip_prefix(&table).map(|rest| rest.trim_start_matches("[]"));
        let name = name.and_then(|rest| rest.strip_prefix('.'));
        name.is_some_and(|name| !name.contains('.')) && one.files.iter().any(|f| files.contains(f))
    })
}

/// What `preset` gives `key`. Presets are plain: a key and its value begin in one line, and their source is behind or above
/// them.
fn value_in(preset: &Preset, key: &str) -> Option<PresetValue> {
    let (mut table, mut above) = (String::new(), Vec::new());
    let mut lines = preset.text.lines().map(str::trim);
    while let Some(line) = lines.next() {
        if let Some(comment) = line.strip_prefix('#') {
            above.push(comment.trim());
            continue;
        }
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.split(']').next()) {
            table = format!("{name}.");
        } else if let Some((name, rest)) = line.split_once('=')
            && key.strip_prefix(table.trim_start_matches('.')) == Some(name.trim())
        {
            let (value, comment) = without_comment(rest);
            let source = if comment.is_empty() { above.join(" ") } else { comment.to_owned() };
            let (preset, mut value) = (preset.name.to_owned(), value.to_owned());
            let is_open = |value: &str| value.matches('[').count() > value.matches(']').count();
            while is_open(&value) {
                let Some(next) = lines.next() else { break };
                value.push_str(without_comment(next).0);
                value.push(' ');
            }
            let value = value.trim_end().replace(", ]", "]");
            return Some(PresetValue { preset, value, source });
        }
        above.clear();
    }
    None
}

/// A TOML value and the comment behind it.
fn without_comment(text: &str) -> (&str, &str) {
    let mut quoted = false;
    for (at, letter) in text.char_indices() {
        match letter {
            '"' => quoted = !quoted,
            '#' if !quoted => return (text[..at].trim(), text[at + 1..].trim()),
            _ => {}
        }
    }
    (text.trim(), "")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(key: &str) -> &'static KeyEntry {
        explain(key).unwrap()[0]
    }

    #[test]
    fn every_key_has_a_meaning_and_a_form() {
        let all = reference();
        let lacks = |entry: &&KeyEntry| entry.meaning.is_empty() || entry.form.is_empty();
        let lacking: Vec<&str> = all.iter().filter(lacks).map(|entry| &*entry.key).collect();
        assert!(
            lacking.is_empty() && all.len() > 700,
            "{} of {}: {lacking:?}",
            lacking.len(),
            all.len()
        );
    }

    #[test]
    fn texts_have_no_links_and_no_word_is_listed_twice() {
        for entry in reference() {
            let texts = entry.words.iter().map(|word| &word.meaning).chain([&entry.meaning]);
            let linked = texts.filter(|text| text.contains("[`")).collect::<Vec<_>>();
            assert!(linked.is_empty(), "{}: {linked:?}", entry.key);
            let words: BTreeSet<&str> = entry.words.iter().map(|word| &*word.word).collect();
            assert_eq!(words.len(), entry.words.len(), "{}: {:?}", entry.key, entry.words);
        }
        let link = one("host_link.kind");
        assert!(link.words.iter().all(|word| !word.meaning.is_empty()), "{link:?}");
    }

    #[test]
    fn words_ranges_defaults_and_sources_are_those_of_the_files() {
        let pace = one("ftl.page.cleaning_pace");
        let words: Vec<&str> = pace.words.iter().map(|word| &*word.word).collect();
        assert!(words == ["whole", "paced"] && pace.form == "a word", "{pace:?}");
        let kind = one("host_link.kind");
        assert!(kind.words.iter().any(|word| word.word == "pcie" && !word.meaning.is_empty()));
        let read = one("flash.read_time");
        let tlc = read.presets.iter().find(|one| one.preset == "nvme-tlc").unwrap();
        assert_eq!(tlc.value, "[\"45us\", \"60us\", \"75us\"]");
        assert_eq!(tlc.source, "assumed: lower, middle, upper page");
        let depth = one("workload.depth");
        let oltp = depth.presets.iter().find(|one| one.preset == "oltp").unwrap();
        assert!(oltp.value == "256" && oltp.source.starts_with("At most this many"), "{oltp:?}");
        let sizes = one("workload.block_sizes");
        let spek = sizes.presets.iter().find(|one| one.preset == "spek").unwrap();
        assert!(spek.value.ends_with(']') && spek.value.contains("64KiB"), "{spek:?}");
        assert_eq!(one("host_link.max_payload").default, Some(Json::from("256B")));
        assert!(one("flash.channels").required && !pace.required);
    }

    #[test]
    fn keys_are_found_by_their_end_and_tables_have_keys() {
        let found = explain("cleaning_pace").unwrap();
        assert!(found.iter().any(|entry| entry.key == "ftl.page.cleaning_pace"), "{found:?}");
        let figure = one("latency_ns.p99");
        assert!(figure.files == ["result"], "{figure:?}");
        let flash = explain("flash").unwrap();
        let sizes = explain("workload.block_sizes").unwrap();
        assert!(below(sizes[0]).any(|one| one.key == "workload.block_sizes[].weight"));
        assert!(flash.iter().any(|entry| below(entry).any(|one| one.key == "flash.channels")));
        let error = explain("flash.chanels").unwrap_err();
        assert!(error.help.is_some_and(|help| help.contains("flash.channels")));
        assert!(explain("").is_err());
    }

    #[test]
    fn comments_are_not_values() {
        assert_eq!(without_comment(" \"a # b\"  # c"), ("\"a # b\"", "c"));
        assert_eq!(without_comment("4"), ("4", ""));
    }
}
