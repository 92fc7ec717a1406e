//! S3: the SSD simulator with energy of Lee and Won.

mod as_printed;
mod cells;
mod claims;
mod data;
mod figures;
mod load;
mod simulate;

use std::collections::BTreeSet;

use cells::{Evidence, cell_id};
#[cfg(test)]
pub(crate) use data::assumptions;
use data::{Plan, Printed};
use ssdyno_session::Failure;

use crate::assumptions::Changes;
use crate::error::nothing;
use crate::{KeepGoing, PapersOptions, PapersProgress, PapersReport, Selector};

/// Names of the traces that runs need.
pub(crate) fn trace_names() -> Result<Vec<String>, Failure> {
    let plan = Plan::load()?;
    let names: BTreeSet<_> = plan.runs.into_values().filter_map(|run| run.trace).collect();
    Ok(names.into_iter().collect())
}

/// Tables, figures and claims with a title each.
pub(crate) fn selectable() -> Result<Vec<(String, String)>, Failure> {
    let (printed, plan) = (Printed::load()?, Plan::load()?);
    let mut all = vec![("S3".to_owned(), printed.title)];
    all.extend(printed.tables.iter().map(|(id, table)| {
        (format!("S3/{id}"), format!("{} ({})", table.title, table.requirement))
    }));
    all.extend(plan.figures.into_iter().map(|figure| (format!("S3/{}", figure.id), figure.title)));
    all.extend(claims::all()?.titles());
    Ok(all)
}

/// Names of the runs behind what `selector` names; `None` if it names nothing.
fn needed(
    selector: &Selector,
    printed: &Printed,
    plan: &Plan,
) -> Result<Option<BTreeSet<String>>, Failure> {
    let all = claims::all()?;
    // Only the runs behind the selected cells, figures and claims are executed. A single cell needs
    // one of the ten runs.
    // A claim that only stands beside a table uses what was run for the table.
    let claims = all.named(selector);
    let mut runs: BTreeSet<String> =
        claims.flat_map(|check| &check.statement.runs).cloned().collect();
    let mut named = all.titles().any(|(id, _)| selector.selects(&id));
    for (name, table) in &printed.tables {
        for column in &table.columns {
            if table.rows.iter().any(|row| selector.selects(&cell_id(name, column, &row.name))) {
                named = true;
                runs.extend(plan.tables.get(name).and_then(|columns| columns.get(column)).cloned());
            }
        }
    }
    for figure in &plan.figures {
        if selector.selects(&format!("S3/{}", figure.id)) {
            named = true;
            let tables = figure.tables.iter().filter_map(|table| plan.tables.get(table));
            runs.extend(tables.flat_map(|columns| columns.values().cloned()));
        }
    }
    Ok(named.then_some(runs))
}

/// Re-runs what `selector` names.
pub(crate) fn run(
    selector: &Selector,
    options: &PapersOptions,
    progress: &mut dyn FnMut(&PapersProgress) -> KeepGoing,
) -> Result<PapersReport, Failure> {
    let (printed, plan) = (Printed::load()?, Plan::load()?);
    let Some(needed) = needed(selector, &printed, &plan)? else {
        return Err(nothing(selector, selectable()?));
    };
    // S3-43: the traces are data of third parties and not part of the program. Runs without their
    // trace are listed as missing, and all others are executed.
    let can_run = |trace: &Option<String>| {
        trace.as_deref().is_none_or(|trace| options.trace(trace).is_some())
    };
    let planned =
        plan.runs.iter().filter(|(name, run)| needed.contains(*name) && can_run(&run.trace));
    let mut planned: Vec<_> = planned.map(|(name, run)| (name.as_str(), run)).collect();
    // The longest first, so that the last core is not left with it: small pages, then writes.
    planned.sort_by_key(|(name, run)| (run.device.clone(), !name.contains("write"), *name));
    let runs = simulate::simulate_all(&planned, options, Changes::none(), progress)?;
    let evidence = Evidence { printed: &printed, plan: &plan, runs: &runs, options };
    let (claims, stopped) = evidence.judge(selector, progress)?;
    let mut notes = Vec::new();
    notes.extend(options.cut_short("cells are not expected to match"));
    let missing: BTreeSet<&str> = needed
        .iter()
        .filter(|name| !runs.contains_key(*name))
        .filter_map(|name| plan.runs.get(name)?.trace.as_deref())
        .collect();
    for trace in missing {
        notes.push(format!(
            "No trace `{trace}`: its cells are empty. Give it as --trace {trace}=FILE (DiskSim ASCII)."
        ));
    }
    if !runs.is_empty() {
        notes.push(
            "As printed: tables 1 and 2 taken literally, without queueing or cleaning; counts of \
             operations and time in service, which are not printed, are ours."
                .to_owned(),
        );
    }
    Ok(PapersReport {
        title: printed.title.clone(),
        cells: evidence.cells(selector)?,
        claims,
        figures: evidence.figures(selector),
        // The cells are the numbers of its figures.
        tables: Vec::new(),
        partial: stopped,
        runs: runs.values().map(|run| run.summary.clone()).collect(),
        notes,
    })
}
