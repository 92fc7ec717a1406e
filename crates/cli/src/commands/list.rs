//! `ssdyno list`.

use clap::{Args, ValueEnum};
use serde::Serialize;
use ssdyno_session::{CatalogueEntry, Failure, FailureKind, catalogue};

use crate::columns::list;
use crate::output::Output;

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Kind of entries to list [default: everything].
    pub(crate) what: Option<ListWhat>,
    /// List only entries whose name or description contains all these words. Case is ignored.
    pub(crate) words: Vec<String>,
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
    let listing = listing.with(&args.words);
    if listing.parts().iter().all(|(_, entries)| entries.as_ref().is_none_or(Vec::is_empty)) {
        let message = format!("no name or description matches `{}`", args.words.join(" "));
        return Err(Failure::usage(message).with_help("remove a word"));
    }
    output.either(|| listing.text(), || &listing)
}

impl Listing {
    /// The entries that have all of `words`.
    fn with(mut self, words: &[String]) -> Listing {
        let words: Vec<String> = words.iter().map(|word| word.to_lowercase()).collect();
        let has = |entry: &CatalogueEntry| {
            let text = format!("{} {}", entry.name, entry.description).to_lowercase();
            words.iter().all(|word| text.contains(word))
        };
        let Listing { devices, hosts, networks, workloads, ftls, papers } = &mut self;
        for entries in [devices, hosts, networks, workloads, ftls, papers].into_iter().flatten() {
            entries.retain(has);
        }
        self
    }

    fn parts(&self) -> [(&'static str, &Option<Vec<CatalogueEntry>>); 6] {
        [
            ("Devices (targets)", &self.devices),
            ("Hosts (--host)", &self.hosts),
            ("Networks (--network)", &self.networks),
            ("Workloads (--workload)", &self.workloads),
            ("FTLs (--set ftl.name=)", &self.ftls),
            ("Papers (ssdyno papers ...)", &self.papers),
        ]
    }

    fn text(&self) -> String {
        let part = |(title, entries): (&str, &Option<Vec<CatalogueEntry>>)| {
            let entries = entries.as_ref().filter(|entries| !entries.is_empty())?;
            let lines = list(2, entries.iter().map(|one| (&*one.name, &*one.description)));
            Some(format!("{title}\n{lines}"))
        };
        self.parts().into_iter().filter_map(part).collect::<Vec<_>>().join("\n")
    }
}

fn ftls() -> Vec<CatalogueEntry> {
    ssdyno_ftl::descriptions().map(|(name, what)| CatalogueEntry::new(name, what)).collect()
}

pub(super) fn papers() -> Result<Vec<CatalogueEntry>, Failure> {
    let all = ssdyno_papers::selectable()
        .map_err(|error| Failure::new(FailureKind::Failed, error.to_string()))?;
    Ok(all.into_iter().map(|(name, what)| CatalogueEntry::new(name, what)).collect())
}
