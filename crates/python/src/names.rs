//! Presets, and the keys of devices and workloads.

use pyo3::prelude::*;
use ssdyno_session::{
    Failure, FailureKind, catalogue, device_keys, named, settings, workload_keys,
};

use crate::failure::exception;

/// Names and descriptions of all presets, by kind.
#[pyfunction]
pub(crate) fn presets() -> Vec<(&'static str, Vec<(String, String)>)> {
    let kinds = [
        ("devices", catalogue::devices()),
        ("hosts", catalogue::hosts()),
        ("networks", catalogue::networks()),
        ("workloads", catalogue::workloads()),
    ];
    kinds
        .into_iter()
        .map(|(kind, all)| (kind, all.into_iter().map(|e| (e.name, e.description)).collect()))
        .collect()
}

/// All keys of a device or a workload.
#[pyfunction]
pub(crate) fn keys(kind: &str) -> Vec<&'static str> {
    let keys = if kind == "workload" { workload_keys() } else { device_keys() };
    keys.iter().map(String::as_str).collect()
}

/// Refuses keys that do not exist; values are checked when they are used.
#[pyfunction]
pub(crate) fn check_settings(py: Python<'_>, set: Vec<String>) -> PyResult<()> {
    settings(&set).map(drop).map_err(|failure| exception(py, &failure))
}

/// Everything that a device or a workload consists of, with `set` over it, as TOML and as JSON.
#[pyfunction]
pub(crate) fn resolved(
    py: Python<'_>,
    kind: &str,
    name: &str,
    set: Vec<String>,
) -> PyResult<(String, String)> {
    resolve(kind, name, &set).map_err(|failure| exception(py, &failure))
}

fn resolve(kind: &str, name: &str, set: &[String]) -> Result<(String, String), Failure> {
    let set = settings(set)?;
    let text = if kind == "workload" {
        let Some(workload) = named::workload(None, name, &set)? else {
            return Err(Failure::usage(format!("{name} is a trace"))
                .with_help("give it to `run` as the workload"));
        };
        // A structure of tables and plain values always has a TOML form.
        toml::to_string_pretty(&workload.config.resolved()).unwrap_or_default()
    } else {
        named::device(None, name, &set)?.config.to_toml()
    };
    let json = toml::from_str::<toml::Table>(&text)
        .map_err(|error| error.to_string())
        .and_then(|table| serde_json::to_string(&table).map_err(|error| error.to_string()))
        .map_err(|error| Failure::new(FailureKind::Failed, error))?;
    Ok((text, json))
}
