//! The keys of a schema: what each means and takes.

use std::collections::BTreeSet;

use schemars::{JsonSchema, schema_for};
use serde::Serialize;
use serde_json::Value as Json;

/// The prefix of keys that belong to the workload.
pub(crate) const WORKLOAD: &str = "workload.";

/// The prefix of keys that belong to the network.
pub(crate) const NETWORK: &str = "network.";

/// Behind the key of a list, before the keys of its values.
const IN_LIST: &str = "[]";

/// Deeper than any configuration; keeps a schema that refers to itself in bounds.
const DEEPEST: usize = 16;

/// A key and its meaning.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct KeyEntry {
    /// With dots, and with the prefix that `--set` needs: `flash.channels`, `workload.depth`.
    pub key: String,
    /// The kinds of file with the key: `ssd`, `disk`, `workload`, `spec`, `result`.
    pub files: Vec<String>,
    /// Meaning, unit, and source (a clause, a paper).
    pub meaning: String,
    /// The allowed values, in words.
    pub form: String,
    /// The words among the allowed values.
    pub words: Vec<KeyWord>,
    /// The value if a file leaves the key out; only for an optional key with a default.
    pub default: Option<Json>,
    /// Whether a file must have the key.
    pub required: bool,
    /// The values of the key in the presets.
    pub presets: Vec<PresetValue>,
}

/// A word that is a value of a key.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct KeyWord {
    /// The word as it is written in a file.
    pub word: String,
    /// Meaning of the word; may be empty.
    pub meaning: String,
}

/// The value of a key in a preset.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct PresetValue {
    /// The name of the preset.
    pub preset: String,
    /// The value as it is written in the preset's file.
    pub value: String,
    /// Source of the value, or *assumed*, as in the file; may be empty.
    pub source: String,
}

impl KeyEntry {
    /// Whether the key can be set alone; those in the values of a list cannot.
    pub(crate) fn can_be_set(&self) -> bool {
        !self.key.contains(IN_LIST)
    }
}

/// The schema of `T` as users read it, without the links of its documentation.
pub fn schema_of<T: JsonSchema>() -> Json {
    published(schema_for!(T).to_value())
}

/// `schema` with descriptions that have no links.
pub(crate) fn published(mut schema: Json) -> Json {
    remove_links(&mut schema);
    schema
}

fn remove_links(node: &mut Json) {
    match node {
        Json::Object(fields) => {
            for (name, value) in fields {
                match value {
                    Json::String(text) if name == "description" => *text = without_links(text),
                    value => remove_links(value),
                }
            }
        }
        Json::Array(values) => values.iter_mut().for_each(remove_links),
        _ => {}
    }
}

/// `text` without the links of documentation: each becomes its label. Code spans stay as they are, with their brackets.
fn without_links(text: &str) -> String {
    let (mut plain, mut rest) = (String::new(), text);
    while let Some(at) = rest.find(['`', '[']) {
        plain.push_str(&rest[..at]);
        rest = &rest[at..];
        let (shown, after) = link(rest).unwrap_or_else(|| {
            let code = rest.strip_prefix('`').and_then(|rest| rest.find('`'));
            rest.split_at(code.map_or(1, |length| length + 2))
        });
        plain.push_str(shown);
        rest = after;
    }
    plain + rest
}

/// The label of the link that `text` begins with, and the text after the link.
fn link(text: &str) -> Option<(&str, &str)> {
    let (label, after) = text.strip_prefix('[')?.split_once(']')?;
    let target = after.strip_prefix('(').and_then(|rest| rest.split_once(')'));
    match target {
        Some((_, after)) => Some((label, after)),
        None => label.starts_with('`').then_some((label, after)),
    }
}

/// Every key of a schema that can be set alone.
pub(crate) fn keys(schema: &Json) -> BTreeSet<String> {
    let all = entries(schema).into_iter().filter(KeyEntry::can_be_set);
    all.map(|entry| entry.key).collect()
}

/// Every key of a schema with its meaning, in the order of the schema. The fields that only files can tell are empty.
pub(crate) fn entries(schema: &Json) -> Vec<KeyEntry> {
    let mut found = Vec::new();
    collect(schema, schema, "", 0, &mut found);
    found
}

fn collect(root: &Json, node: &Json, prefix: &str, depth: usize, found: &mut Vec<KeyEntry>) {
    if depth > DEEPEST {
        return;
    }
    if let Some(target) = target(root, node) {
        collect(root, target, prefix, depth + 1, found);
    }
    for choice in choices(node) {
        collect(root, choice, prefix, depth + 1, found);
    }
    if let Some(items) = node.get("items") {
        collect(root, items, &format!("{prefix}{IN_LIST}"), depth + 1, found);
    }
    let required = node["required"].as_array().map(Vec::as_slice).unwrap_or_default();
    for (name, property) in node["properties"].as_object().into_iter().flatten() {
        let key = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
        let required = required.iter().any(|one| one == name);
        let entry = entry(root, &key, property, text(&node["description"]), required);
        match found.iter_mut().find(|one| one.key == key) {
            // One of several shapes of the table around it: each shape has a word of its own.
            Some(one) => {
                entry.words.into_iter().for_each(|word| add(&mut one.words, word));
                one.required &= entry.required;
            }
            None => found.push(entry),
        }
        collect(root, property, &key, depth + 1, found);
    }
}

fn entry(root: &Json, key: &str, property: &Json, around: String, required: bool) -> KeyEntry {
    let mut words = Vec::new();
    let form = form(root, property, 0, &mut words);
    let mut meaning = text(&property["description"]);
    if let Some(word) = property["const"].as_str() {
        add(&mut words, KeyWord { word: word.to_owned(), meaning: around });
        if meaning.is_empty() {
            // The tag of a table of several shapes; schemas have no place for its description.
            "Kind of the table; it decides which other keys are valid.".clone_into(&mut meaning);
        }
    }
    let of_type = || target(root, property).map(|target| text(&target["description"]));
    let default = property.get("default").filter(|value| !value.is_null()).cloned();
    KeyEntry {
        key: key.to_owned(),
        files: Vec::new(),
        meaning: Some(meaning).filter(|text| !text.is_empty()).or_else(of_type).unwrap_or_default(),
        form,
        words,
        default,
        required,
        presets: Vec::new(),
    }
}

/// Adds a word to `words`, or its meaning where the word is listed without one.
fn add(words: &mut Vec<KeyWord>, new: KeyWord) {
    match words.iter_mut().find(|one| one.word == new.word) {
        Some(one) if one.meaning.is_empty() => one.meaning = new.meaning,
        Some(_) => {}
        None => words.push(new),
    }
}

/// The values that a schema takes, in words; the words among them go to `words`.
fn form(root: &Json, node: &Json, depth: usize, words: &mut Vec<KeyWord>) -> String {
    if depth > DEEPEST {
        return String::new();
    }
    if let Some(target) = target(root, node) {
        return form(root, target, depth + 1, words);
    }
    if let Some(word) = node["const"].as_str() {
        add(words, KeyWord { word: word.to_owned(), meaning: text(&node["description"]) });
        return "a word".to_owned();
    }
    let mut forms: Vec<String> = Vec::new();
    for choice in choices(node).filter(|choice| choice["type"] != "null") {
        let form = form(root, choice, depth + 1, words);
        if !forms.contains(&form) {
            forms.push(form);
        }
    }
    for word in node["enum"].as_array().into_iter().flatten().filter_map(Json::as_str) {
        add(words, KeyWord { word: word.to_owned(), meaning: String::new() });
    }
    if !forms.is_empty() {
        return forms.join(", or ");
    }
    // A value that may be absent has two types.
    let kinds = node["type"].as_array().cloned().unwrap_or_else(|| vec![node["type"].clone()]);
    match kinds.iter().filter_map(Json::as_str).find(|kind| *kind != "null") {
        Some("integer") => ranged("a whole number", node),
        Some("number") => ranged("a number", node),
        Some("boolean") => "true or false".to_owned(),
        Some("object") => "a table".to_owned(),
        Some("array") => {
            let item = form(root, &node["items"], depth + 1, words);
            if item.is_empty() {
                "a list".to_owned()
            } else {
                format!("a list; each value is {item}")
            }
        }
        Some("string") if node.get("enum").is_some() => "a word".to_owned(),
        // A type that is written as text says how.
        Some("string") if node.get("pattern").is_some() || depth > 0 => {
            let how = text(&node["description"]);
            let how = how.strip_prefix("must be ").unwrap_or(&how).trim_end_matches('.');
            if how.is_empty() { "text".to_owned() } else { how.to_owned() }
        }
        Some("string") => "text".to_owned(),
        _ => String::new(),
    }
}

fn ranged(what: &str, node: &Json) -> String {
    let bound = |key: &str| node[key].as_f64();
    match (bound("minimum"), bound("maximum")) {
        (Some(low), Some(high)) => format!("{what}, {low} to {high}"),
        (Some(low), None) if low > 0.0 => format!("{what}, at least {low}"),
        (None, Some(high)) => format!("{what}, at most {high}"),
        _ => what.to_owned(),
    }
}

/// The target of a reference in a schema.
fn target<'a>(root: &'a Json, node: &Json) -> Option<&'a Json> {
    root.pointer(node["$ref"].as_str()?.strip_prefix('#')?)
}

fn choices(node: &Json) -> impl Iterator<Item = &Json> {
    let lists = ["oneOf", "anyOf", "allOf"].into_iter();
    lists.flat_map(|list| node[list].as_array().into_iter().flatten())
}

/// A description in one line.
fn text(description: &Json) -> String {
    let words = description.as_str().unwrap_or_default().split_whitespace();
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_become_their_labels_and_code_stays() {
        for (text, plain) in [
            ("In the order of [`A::b`].", "In the order of `A::b`."),
            ("Of a [`Spec`](crate::Spec), or [a file](crate::File).", "Of a `Spec`, or a file."),
            (
                "The table `[flash]`, [default: all], `a[0](b)` [",
                "The table `[flash]`, [default: all], `a[0](b)` [",
            ),
            ("`open", "`open"),
        ] {
            assert_eq!(without_links(text), plain);
        }
    }
}
