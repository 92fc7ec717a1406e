//! `ssdyno list`.

use clap::{Args, ValueEnum};
use serde::Serialize;
use ssdyno_session::{CatalogueEntry, Failure, FailureKind, catalogue};

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

#[derive(Serialize)]
struct Listing {
    #[serde(skip_serializing_if = "Option::is_none")]
    devices: Option<Vec<CatalogueEntry>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hosts: Option<Vec<CatalogueEntry>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    networks: Option<Vec<CatalogueEntry>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    workloads: Option<Vec<CatalogueEntry>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ftls: Option<Vec<CatalogueEntry>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    papers: Option<Vec<CatalogueEntry>>,
}

pub(crate) fn run(args: &ListArgs, output: Output) -> Result<(), Failure> {
    let wanted = |what| args.what.is_none_or(|only| only == what);
    let listing = Listing {
        devices: wanted(ListWhat::Devices).then(catalogue::devices),
        hosts: wanted(ListWhat::Hosts).then(catalogue::hosts),
        networks: wanted(ListWhat::Networks).then(catalogue::networks),
        workloads: wanted(ListWhat::Workloads).then(catalogue::workloads),
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
        let part = |(title, entries): (&str, &Option<Vec<CatalogueEntry>>)| {
            let entries = entries.as_ref()?;
            let width = entries.iter().map(|e| e.name.len()).max().unwrap_or(0);
            let line = |e: &CatalogueEntry| {
                format!("  {:width$}  {}", e.name, e.description).trim_end().to_owned()
            };
            let lines: Vec<String> = entries.iter().map(line).collect();
            Some(format!("{title}\n{}\n", lines.join("\n")))
        };
        parts.into_iter().filter_map(part).collect::<Vec<_>>().join("\n")
    }
}

fn ftls() -> Vec<CatalogueEntry> {
    ssdyno_ftl::descriptions().map(|(name, what)| CatalogueEntry::new(name, what)).collect()
}

fn papers() -> Result<Vec<CatalogueEntry>, Failure> {
    let all = ssdyno_papers::selectable()
        .map_err(|error| Failure::new(FailureKind::Failed, error.to_string()))?;
    Ok(all.into_iter().map(|(name, what)| CatalogueEntry::new(name, what)).collect())
}
