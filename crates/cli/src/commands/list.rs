//! `ssdyno list`: what comes with the program.

use clap::Args;
use clap::builder::PossibleValuesParser;
use serde_json::{Map, json};
use ssdyno_session::{CatalogueEntry, Failure, catalogue};

use crate::columns::list;
use crate::output::Output;

/// Entries of one kind: its name, its title, and what lists them.
type Kind = (&'static str, &'static str, fn() -> Result<Vec<CatalogueEntry>, Failure>);

const KINDS: [Kind; 6] = [
    ("devices", "Devices (targets)", || Ok(catalogue::devices())),
    ("hosts", "Hosts (--host)", || Ok(catalogue::hosts())),
    ("networks", "Networks (--network)", || Ok(catalogue::networks())),
    ("workloads", "Workloads (--workload)", || Ok(catalogue::workloads())),
    ("ftls", "FTLs (--set ftl.name=)", || Ok(ftls())),
    ("papers", "Papers (ssdyno papers ...)", papers),
];

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Kind of entries to list [default: everything].
    #[arg(value_parser = PossibleValuesParser::new(KINDS.map(|(name, ..)| name)))]
    pub(crate) what: Option<String>,
    /// List only entries whose name or description contains all these words. Case is ignored.
    pub(crate) words: Vec<String>,
}

pub(crate) fn run(args: &ListArgs, output: Output) -> Result<(), Failure> {
    let words: Vec<String> = args.words.iter().map(|word| word.to_lowercase()).collect();
    let has_words = |entry: &CatalogueEntry| {
        let text = format!("{} {}", entry.name, entry.description).to_lowercase();
        words.iter().all(|word| text.contains(word))
    };
    let mut parts = Vec::new();
    for (name, title, entries) in KINDS {
        if args.what.as_deref().is_none_or(|only| only == name) {
            let mut entries = entries()?;
            entries.retain(has_words);
            parts.push((name, title, entries));
        }
    }
    if parts.iter().all(|(.., entries)| entries.is_empty()) {
        let message = format!("no name or description matches `{}`", args.words.join(" "));
        return Err(Failure::usage(message).with_help("remove a word"));
    }
    let text = || {
        let filled = parts.iter().filter(|(.., entries)| !entries.is_empty());
        let part = |(_, title, entries): &(&str, &str, Vec<CatalogueEntry>)| {
            let lines = list(2, entries.iter().map(|one| (&*one.name, &*one.description)));
            format!("{title}\n{lines}")
        };
        filled.map(part).collect::<Vec<_>>().join("\n")
    };
    let value = |(name, _, entries): &(&str, _, _)| ((*name).to_owned(), json!(entries));
    output.either(text, || parts.iter().map(value).collect::<Map<_, _>>())
}

fn ftls() -> Vec<CatalogueEntry> {
    ssdyno_ftl::descriptions().map(|(name, what)| CatalogueEntry::new(name, what)).collect()
}

pub(super) fn papers() -> Result<Vec<CatalogueEntry>, Failure> {
    let all = ssdyno_papers::selectable()?;
    Ok(all.into_iter().map(|(name, what)| CatalogueEntry::new(name, what)).collect())
}
