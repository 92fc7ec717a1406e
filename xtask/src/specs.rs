//! The dataclasses of `ssdyno/specs.py`, made from the schema of a spec, which has those of devices and workloads in it.

use std::fmt::Write;

use anyhow::{Context, Result};
use serde_json::Value;

/// The file, beside the other files of the package.
pub(crate) const FILE: &str = "crates/python/python/ssdyno/specs.py";

const HEAD: &str = r#""""The keys of specs, devices and workloads as dataclasses. Made by `cargo xtask schemas`; do not edit.

A key that is left out, or is None, is not part of the spec: its default applies, or what a preset says. Text with a unit
is a str ("4KiB", "25us").
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, Union
"#;

/// Words that cannot be the names of attributes; such a key has an underscore behind it.
const KEYWORDS: [&str; 12] =
    ["and", "as", "class", "def", "for", "from", "if", "import", "in", "is", "lambda", "not"];

/// The text of the file, from the schema `spec` as JSON.
///
/// # Errors
/// The schema is no JSON, or has another shape.
pub(crate) fn text(schema: &str) -> Result<String> {
    let schema: Value = serde_json::from_str(schema).context("the schema of specs is not JSON")?;
    let defs = schema["$defs"].as_object().context("the schema of specs has no `$defs`")?;
    let mut out = HEAD.to_owned();
    let mut classes = vec!["RunSpec"];
    class(&mut out, "RunSpec", &schema)?;
    for (name, def) in defs.iter().filter(|(_, def)| def["properties"].is_object()) {
        class(&mut out, name, def)?;
        classes.push(name);
    }
    // Behind the classes, because these are evaluated when the module is read; annotations are not.
    for (name, def) in defs.iter().filter(|(_, def)| !def["properties"].is_object()) {
        write!(out, "\n{}{name} = {}\n", comment("#: ", def), alias(def, &classes))?;
    }
    let names: Vec<String> = classes.iter().map(|name| format!("    \"{name}\",\n")).collect();
    write!(out, "\n__all__ = [\n{}]\n", names.concat())?;
    Ok(out)
}

fn class(out: &mut String, name: &str, def: &Value) -> Result<()> {
    let properties = def["properties"].as_object().context("a table has no `properties`")?;
    let required: Vec<&str> =
        def["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    write!(out, "\n\n@dataclass(kw_only=True)\nclass {name}:\n")?;
    let about = def["description"].as_str().unwrap_or("What a run is made from.");
    writeln!(
        out,
        "    \"\"\"{}\"\"\"\n",
        escaped(&about.replace('\n', "\n    ").replace("    \n", "\n"))
    )?;
    if properties.is_empty() {
        writeln!(out, "    pass")?;
    }
    for (key, property) in properties {
        let attribute = attribute(key);
        let renamed = (attribute != *key).then(|| format!("metadata={{\"key\": \"{key}\"}}"));
        let value = match (required.contains(&key.as_str()), renamed) {
            (true, None) => String::new(),
            (true, Some(renamed)) => format!(" = field({renamed})"),
            (false, None) => " = None".to_owned(),
            (false, Some(renamed)) => format!(" = field(default=None, {renamed})"),
        };
        let kind = kind(property);
        let kind = match value.contains("None") && !kind.ends_with("| None") && kind != "Any" {
            true => format!("{kind} | None"),
            false => kind,
        };
        writeln!(out, "{}    {attribute}: {kind}{value}", comment("    #: ", property))?;
    }
    Ok(())
}

/// The name of the attribute for `key`.
fn attribute(key: &str) -> String {
    let name = key.replace('-', "_");
    if KEYWORDS.contains(&name.as_str()) { name + "_" } else { name }
}

/// The description of a property, as a comment for documentation tools.
fn comment(prefix: &str, property: &Value) -> String {
    let mut text = property["description"].as_str().unwrap_or_default().to_owned();
    if let Some(default) = property.get("default").filter(|one| !one.is_null() && !one.is_object())
    {
        let _ = write!(text, "\nDefault: {default}.");
    }
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    lines.map(|line| format!("{prefix}{}\n", line.trim())).collect()
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace("\"\"\"", "\\\"\\\"\\\"")
}

/// The type of a property, as an annotation.
fn kind(property: &Value) -> String {
    kinds(property).join(" | ")
}

/// The alias of a type that is not a table. A class exists by then; other aliases may not, and have quotation marks.
fn alias(def: &Value, classes: &[&str]) -> String {
    let kinds = kinds(def).into_iter().map(|kind| {
        let is_known = classes.contains(&kind.as_str())
            || kind.starts_with(|first: char| first.is_lowercase())
            || kind.starts_with("Literal[")
            || kind == "Any"
            || kind == "None";
        if is_known && !kind.contains("list[") { kind } else { format!("\"{kind}\"") }
    });
    let kinds: Vec<String> = kinds.collect();
    match kinds.as_slice() {
        [one] => one.clone(),
        many => format!("Union[{}]", many.join(", ")),
    }
}

/// The types that a value may have; several texts are one `Literal`.
fn kinds(property: &Value) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut words: Vec<String> = Vec::new();
    let choices = ["oneOf", "anyOf"].iter().find_map(|key| property[*key].as_array());
    match choices {
        Some(choices) => {
            for choice in choices {
                match choice.get("const") {
                    Some(word) => words.push(word.to_string()),
                    None => found.extend(kinds(choice)),
                }
            }
        }
        None => found.extend(plain(property)),
    }
    if !words.is_empty() {
        found.insert(0, format!("Literal[{}]", words.join(", ")));
    }
    let mut seen = Vec::new();
    found.retain(|kind| {
        !seen.contains(kind) && {
            seen.push(kind.clone());
            true
        }
    });
    // `None` comes last.
    found.sort_by_key(|kind| kind == "None");
    found
}

fn plain(property: &Value) -> Vec<String> {
    if let Some(name) = property["$ref"].as_str() {
        return vec![name.rsplit('/').next().unwrap_or(name).to_owned()];
    }
    if let Some(words) = property["enum"].as_array() {
        let words: Vec<String> = words.iter().map(Value::to_string).collect();
        return vec![format!("Literal[{}]", words.join(", "))];
    }
    let types: Vec<&str> = match &property["type"] {
        Value::String(one) => vec![one],
        Value::Array(all) => all.iter().filter_map(Value::as_str).collect(),
        _ => return vec!["Any".to_owned()],
    };
    types.iter().map(|name| json_type(name, property)).collect()
}

fn json_type(name: &str, property: &Value) -> String {
    match name {
        "string" => "str".to_owned(),
        "integer" => "int".to_owned(),
        "number" => "float".to_owned(),
        "boolean" => "bool".to_owned(),
        "null" => "None".to_owned(),
        "array" if property["items"].is_object() => format!("list[{}]", kind(&property["items"])),
        "array" => "list[Any]".to_owned(),
        "object" if property["additionalProperties"].is_object() => {
            format!("dict[str, {}]", kind(&property["additionalProperties"]))
        }
        _ => "dict[str, Any]".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_types_and_choices_become_dataclasses() {
        let schema = r##"{"properties": {
            "for": {"anyOf": [{"$ref": "#/$defs/Span"}, {"type": "null"}], "description": "How long."},
            "last-level": {"type": "array", "items": {"type": "integer"}}},
            "required": ["last-level"],
            "$defs": {
                "Span": {"type": "string", "description": "A time."},
                "Kind": {"oneOf": [{"const": "a"}, {"const": "b"}]},
                "Inner": {"properties": {"kind": {"$ref": "#/$defs/Kind", "default": "a"}}}}}"##;
        let text = text(schema).unwrap();
        for part in [
            "    #: How long.\n    for_: Span | None = field(default=None, metadata={\"key\": \"for\"})\n",
            "    last_level: list[int] = field(metadata={\"key\": \"last-level\"})\n",
            "class Inner:\n",
            "    #: Default: \"a\".\n    kind: Kind | None = None\n",
            "#: A time.\nSpan = str\n",
            "Kind = Literal[\"a\", \"b\"]\n",
        ] {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
    }
}
