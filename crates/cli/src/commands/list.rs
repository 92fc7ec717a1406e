//! `ssdyno list`.

use serde::Serialize;
use ssdyno_device::presets;

use crate::args::{ListArgs, ListWhat};
use crate::diagnose::{Exit, Failure};
use crate::output::Output;

/// One thing that can be named.
#[derive(Serialize)]
struct Entry {
    name: String,
    description: String,
}

#[derive(Serialize)]
struct Listing {
    #[serde(skip_serializing_if = "Option::is_none")]
    devices: Option<Vec<Entry>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hosts: Option<Vec<Entry>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    networks: Option<Vec<Entry>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    workloads: Option<Vec<Entry>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ftls: Option<Vec<Entry>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    papers: Option<Vec<Entry>>,
}

pub(crate) fn run(args: &ListArgs, output: Output) -> Result<(), Failure> {
    let wanted = |what| args.what.is_none_or(|only| only == what);
    let listing = Listing {
        devices: wanted(ListWhat::Devices).then(devices),
        hosts: wanted(ListWhat::Hosts).then(hosts),
        networks: wanted(ListWhat::Networks).then(networks),
        workloads: wanted(ListWhat::Workloads).then(workloads),
        ftls: wanted(ListWhat::Ftls).then(ftls),
        papers: wanted(ListWhat::Papers).then(papers).transpose()?,
    };
    output.either(|| listing.text(), || &listing)
}

impl Listing {
    fn text(&self) -> String {
        let parts = [
            ("Devices (targets)", &self.devices),
            ("Hosts (--host)", &self.hosts),
            ("Networks (--network)", &self.networks),
            ("Workloads (--workload)", &self.workloads),
            ("FTLs (--set ftl.name=)", &self.ftls),
            ("Papers (ssdyno papers ...)", &self.papers),
        ];
        let part = |(title, entries): (&str, &Option<Vec<Entry>>)| {
            let entries = entries.as_ref()?;
            let width = entries.iter().map(|e| e.name.len()).max().unwrap_or(0);
            let line =
                |e: &Entry| format!("  {:width$}  {}", e.name, e.description).trim_end().to_owned();
            let lines: Vec<String> = entries.iter().map(line).collect();
            Some(format!("{title}\n{}\n", lines.join("\n")))
        };
        parts.into_iter().filter_map(part).collect::<Vec<_>>().join("\n")
    }
}

/// What a configuration says about itself.
fn description(text: &str) -> String {
    let table: Option<toml::Table> = toml::from_str(text).ok();
    let said = table.as_ref().and_then(|table| table.get("description")?.as_str());
    said.unwrap_or_default().to_owned()
}

fn devices() -> Vec<Entry> {
    let entry = |preset: &presets::Preset| Entry {
        name: format!("sim:{}", preset.name),
        description: description(preset.text),
    };
    presets::every().map(entry).collect()
}

fn hosts() -> Vec<Entry> {
    let entry = |preset: &ssdyno_host::presets::Preset| Entry {
        name: preset.name.to_owned(),
        description: description(preset.text),
    };
    ssdyno_host::presets::ALL.iter().map(entry).collect()
}

fn networks() -> Vec<Entry> {
    let entry = |preset: &ssdyno_rig::NetworkPreset| Entry {
        name: preset.name.to_owned(),
        description: description(preset.text),
    };
    ssdyno_rig::NETWORKS.iter().map(entry).collect()
}

fn workloads() -> Vec<Entry> {
    let entry = |name: &str| Entry {
        name: name.to_owned(),
        description: ssdyno_workload::presets::summary(name).unwrap_or_default().to_owned(),
    };
    ssdyno_workload::presets::names().map(entry).collect()
}

fn ftls() -> Vec<Entry> {
    let describe = |name: &str| match name {
        "page" => "page map: any page anywhere",
        "dftl" => "page map of which only a part is in RAM (demand-paged)",
        "block" => "block map: whole blocks only",
        "bast" => "block map with a log block for each block being written",
        "fast" => "block map with log blocks shared by all blocks",
        "agrawal" => "page map of the simulator behind S3, with its cleaning",
        _ => "",
    };
    let entry =
        |name: &str| Entry { name: name.to_owned(), description: describe(name).to_owned() };
    ssdyno_ftl::names().map(entry).collect()
}

fn papers() -> Result<Vec<Entry>, Failure> {
    let all = ssdyno_papers::selectable()
        .map_err(|error| Failure::new(Exit::Failed, error.to_string()))?;
    Ok(all.into_iter().map(|(name, description)| Entry { name, description }).collect())
}
