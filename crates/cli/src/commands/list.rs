//! `ssdyno list`.

use clap::{Args, ValueEnum};
use serde::Serialize;
use ssdyno_block::Preset;
use ssdyno_session::{DEVICE_KINDS, Failure, FailureKind};

use crate::output::Output;

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// What to list [default: everything].
    pub(crate) what: Option<ListWhat>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum ListWhat {
    Devices,
    Hosts,
    Networks,
    Workloads,
    Ftls,
    Papers,
}

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
        devices: wanted(ListWhat::Devices).then(|| presets("sim:", DEVICE_KINDS.presets())),
        hosts: wanted(ListWhat::Hosts).then(|| presets("", ssdyno_host::presets::ALL)),
        networks: wanted(ListWhat::Networks).then(|| presets("", ssdyno_rig::NETWORKS)),
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

/// Presets with what their files say about themselves.
fn presets<'a>(prefix: &str, all: impl IntoIterator<Item = &'a Preset>) -> Vec<Entry> {
    let entry = |preset: &Preset| {
        let table: toml::Table = toml::from_str(preset.text).unwrap_or_default();
        let description = table.get("description").and_then(toml::Value::as_str);
        Entry {
            name: format!("{prefix}{}", preset.name),
            description: description.unwrap_or_default().to_owned(),
        }
    };
    all.into_iter().map(entry).collect()
}

fn workloads() -> Vec<Entry> {
    let entry = |name: &str| Entry {
        name: name.to_owned(),
        description: ssdyno_workload::presets::summary(name).unwrap_or_default().to_owned(),
    };
    ssdyno_workload::presets::names().map(entry).collect()
}

fn ftls() -> Vec<Entry> {
    let entry = |(name, description): (&str, &str)| Entry {
        name: name.to_owned(),
        description: description.to_owned(),
    };
    ssdyno_ftl::descriptions().map(entry).collect()
}

fn papers() -> Result<Vec<Entry>, Failure> {
    let all = ssdyno_papers::selectable()
        .map_err(|error| Failure::new(FailureKind::Failed, error.to_string()))?;
    Ok(all.into_iter().map(|(name, description)| Entry { name, description }).collect())
}
