//! The presets that can be named, with their files' descriptions.

use serde::Serialize;
use ssdyno_block::Preset;

use crate::kinds::DEVICE_KINDS;

/// One thing that can be named.
#[derive(Clone, Debug, Serialize)]
pub struct CatalogueEntry {
    /// As specs name it.
    pub name: String,
    /// Its description, in a line.
    pub description: String,
}

impl CatalogueEntry {
    /// A name with what it is.
    pub fn new(name: impl Into<String>, description: impl Into<String>) -> CatalogueEntry {
        CatalogueEntry { name: name.into(), description: description.into() }
    }
}

/// Simulated devices: targets.
pub fn devices() -> Vec<CatalogueEntry> {
    presets("sim:", DEVICE_KINDS.presets())
}

/// Hosts.
pub fn hosts() -> Vec<CatalogueEntry> {
    presets("", ssdyno_host::presets::ALL)
}

/// Networks.
pub fn networks() -> Vec<CatalogueEntry> {
    presets("", ssdyno_rig::NETWORKS)
}

/// Workloads.
pub fn workloads() -> Vec<CatalogueEntry> {
    let summary = |name| ssdyno_workload::presets::summary(name).unwrap_or_default();
    ssdyno_workload::presets::names().map(|name| CatalogueEntry::new(name, summary(name))).collect()
}

fn presets<'a>(prefix: &str, all: impl IntoIterator<Item = &'a Preset>) -> Vec<CatalogueEntry> {
    let entry = |preset: &Preset| {
        let table: toml::Table = toml::from_str(preset.text).unwrap_or_default();
        let description = table.get("description").and_then(toml::Value::as_str);
        CatalogueEntry::new(format!("{prefix}{}", preset.name), description.unwrap_or_default())
    };
    all.into_iter().map(entry).collect()
}
