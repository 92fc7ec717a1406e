//! A spec in a file: TOML, JSON, or the result of a run.

use std::collections::BTreeSet;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use super::RunSpec;
use crate::document::Document;
use crate::failure::{Failure, FailurePlace};
use crate::files;
use crate::named::is_toml;
use crate::schema_keys;

impl RunSpec {
    /// Reads a spec: from TOML (`FILE.toml`), JSON, a `result.json` that has one, or the directory of a
    /// result.
    ///
    /// # Errors
    /// The file cannot be read, a key of it is wrong, or the result is of a program that wrote no spec.
    pub fn read(path: &str) -> Result<RunSpec, Failure> {
        let inside = Path::new(path).join("result.json");
        if Path::new(path).is_dir() && inside.is_file() {
            return RunSpec::read(&inside.display().to_string());
        }
        if is_toml(path) {
            return Document::file(path)?.parse(&keys());
        }
        let text = files::read_text(path)?;
        let value: Value =
            serde_json::from_str(&text).map_err(|error| not_json(path, &text, &error))?;
        let spec = spec_of(path, value)?;
        RunSpec::from_json(path, spec).map_err(|failure| failure.in_file(path))
    }

    /// The names of the hosts of the run whose result, or the directory of whose result, is at `path`. None if it was a run
    /// of one machine, or if there is no result: a spec does not name hosts.
    pub fn hosts_of_result(path: &str) -> Vec<String> {
        #[derive(Deserialize)]
        struct OfResult {
            #[serde(default)]
            hosts: Vec<OfHost>,
        }
        #[derive(Deserialize)]
        struct OfHost {
            name: String,
        }
        let path = Path::new(path);
        let file = if path.is_dir() { path.join("result.json") } else { path.to_owned() };
        // A pipe has been read already, and reading it again would wait for more.
        if !file.is_file() {
            return Vec::new();
        }
        let text = std::fs::read_to_string(file).unwrap_or_default();
        // A spec in TOML or JSON has no such list. Its errors were reported when it was read.
        let result = serde_json::from_str::<OfResult>(&text).ok();
        result.map_or_else(Vec::new, |result| {
            result.hosts.into_iter().map(|host| host.name).collect()
        })
    }

    /// Whether `path` is a TOML file with a spec in it, and not with a device: it names a target, a workload or a job file.
    pub fn is_file(path: &str) -> bool {
        let table = || std::fs::read_to_string(path).ok()?.parse::<toml::Table>().ok();
        let is_spec = |table: toml::Table| {
            ["target", "workload", "fio"].iter().any(|key| table.contains_key(*key))
        };
        is_toml(path) && table().is_some_and(is_spec)
    }

    /// The spec in a value of JSON, which messages call `name`.
    ///
    /// # Errors
    /// A key is wrong.
    pub fn from_json(name: &str, spec: Value) -> Result<RunSpec, Failure> {
        Document::parse_json(name, spec)
    }

    /// The spec in a text of TOML, which messages call `name`.
    ///
    /// # Errors
    /// It is not TOML, or a key is wrong.
    pub fn from_toml(name: &str, text: &str) -> Result<RunSpec, Failure> {
        Document::edited(name.to_owned(), text).parse(&keys())
    }

    /// As TOML, which [`read`](RunSpec::read) takes.
    pub fn to_toml(&self) -> String {
        // A structure of tables and plain values always has a TOML form.
        toml::to_string_pretty(self).unwrap_or_default()
    }
}

/// Every key of a spec.
fn keys() -> BTreeSet<String> {
    schema_keys::keys(schemars::schema_for!(RunSpec).as_value())
}

/// The spec in a file, which may be a result.
fn spec_of(path: &str, value: Value) -> Result<Value, Failure> {
    let is_result = value.get("schema_version").is_some();
    match value {
        Value::Object(mut result) if is_result => match result.remove("spec") {
            Some(spec @ Value::Object(_)) => Ok(spec),
            _ => Err(Failure::usage(format!("{path} has no spec: an older program wrote it"))
                .with_help("name a result of this version, or write a spec")
                .with_key("spec")
                .in_file(path)),
        },
        Value::Object(_) => Ok(value),
        _ => Err(Failure::usage(format!("{path} is not a spec: it must be an object"))
            .with_help("`ssdyno schema spec` has its keys")
            .in_file(path)),
    }
}

fn not_json(path: &str, text: &str, error: &serde_json::Error) -> Failure {
    let line_start = text.split_inclusive('\n').take(error.line().saturating_sub(1));
    let start = line_start.map(str::len).sum::<usize>() + error.column().saturating_sub(1);
    let what = error.to_string();
    // The place is said once, in front.
    let what = what.split(" at line ").next().unwrap_or_default();
    let start = (0..=start.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    let start = start.unwrap_or_default();
    let place = FailurePlace {
        name: path.to_owned(),
        text: text.to_owned(),
        span: start..start,
        first_line: 1,
        label: "here".to_owned(),
        is_file: true,
    };
    Failure::usage(format!("{path} is not valid JSON: {what}"))
        .with_help("write a spec as JSON, or as TOML into a file that ends in .toml")
        .at(Some(place))
}
