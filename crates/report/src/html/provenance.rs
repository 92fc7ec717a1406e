//! Where the result comes from, on the page: of the run, and of each host.

use ssdyno_figures::{Provenance, RunResult};

use super::markup::escape;
use super::page::table;
use crate::provenance::{facts, version};

/// A table that opens, of the run and of each of its hosts; none where nothing was recorded.
pub(super) fn tables(r: &RunResult) -> Vec<String> {
    let of_run = r.provenance.iter().map(|of| ("Program, machine and storage".to_owned(), of));
    let of_hosts =
        r.hosts.iter().filter_map(|host| Some((host.name.clone(), host.provenance.as_ref()?)));
    of_run.chain(of_hosts).map(|(name, of)| details(&name, of)).collect()
}

fn details(name: &str, of: &Provenance) -> String {
    let row = |name: &str, value: &str| vec![name.to_owned(), value.to_owned()];
    let mut rows = vec![row("version", &version(of)), row("started", &of.started)];
    rows.extend(of.command.iter().map(|command| row("command", command)));
    rows.extend(facts(of).iter().map(|fact| row(&fact.label(), &fact.value)));
    let (name, table) = (escape(name), table(&["", "value"], &rows));
    format!("<details><summary>{name}</summary>{table}</details>\n")
}
