//! S2: SeRRa, the ratio of sequential to random throughput from a few measurements.

mod campaign;
mod cells;
mod claims;
mod data;
mod figures;
mod ours;
mod outcome;

use data::{Plan, Printed};
use outcome::Outcome;
use ssdyno_session::Failure;

use crate::error::nothing;
use crate::{KeepGoing, PapersOptions, PapersProgress, PapersReport, Selector};

/// Tables, figures, arithmetic and claims with a title each.
pub(crate) fn selectable() -> Result<Vec<(String, String)>, Failure> {
    let (printed, plan) = (Printed::load()?, Plan::load()?);
    let mut all = vec![("S2".to_owned(), printed.title)];
    all.extend(plan.tables.iter().chain(&plan.figures).map(|part| part.of("S2")));
    all.extend(claims::all()?.titles());
    Ok(all)
}

/// Re-runs what `selector` names.
pub(crate) fn run(
    selector: &Selector,
    options: &PapersOptions,
    progress: &mut dyn FnMut(&PapersProgress) -> KeepGoing,
) -> Result<PapersReport, Failure> {
    let (printed, plan) = (Printed::load()?, Plan::load()?);
    let selectable = selectable()?;
    let selected = |id: &str| selector.reaches(id) || selector.selects(id);
    if !selectable.iter().any(|(id, _)| selected(id)) {
        return Err(nothing(selector, selectable));
    }
    // What the paper prints needs no device.
    let simulated =
        |(id, _): &(String, String)| id != "S2" && id != "S2/arithmetic" && selected(id);
    let is_ours = |id: &str| id == "S2/ours" || id.starts_with("S2/claims/ours_");
    let with_ours = selectable.iter().any(|(id, _)| is_ours(id) && selected(id));
    let profiled = match selectable.iter().any(simulated) {
        true => campaign::simulate(&plan, with_ours, options, progress)?,
        false => None,
    };
    let partial = profiled.is_none() && selectable.iter().any(simulated);
    let outcome = profiled.map(|profiled| Outcome::new(&plan, &profiled));
    let outcome = outcome.as_ref();
    let chosen = plan.figures.iter().filter(|figure| selector.reaches(&figure.of("S2").0));
    let drawn = chosen.filter_map(|figure| Some(figures::draw(figure, outcome?)));
    let (figures, tables) = drawn.unzip();
    let mut notes = plan.notes.clone();
    if with_ours {
        notes.push(plan.note_on_ours.clone());
    }
    notes.extend(options.cut_short(
        "only the smallest file was profiled, and some claims may fail for this reason",
    ));
    Ok(PapersReport {
        title: printed.title.clone(),
        cells: cells::cells(selector, &plan, &printed, outcome)?,
        claims: claims::claims(selector, outcome)?,
        figures,
        tables,
        partial,
        runs: Vec::new(),
        notes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What follows from printed numbers does so without a device.
    #[test]
    fn arithmetic_needs_no_device() {
        let selector = "S2/arithmetic".parse().unwrap();
        let report =
            run(&selector, &PapersOptions::default(), &mut |_| KeepGoing::Continue).unwrap();
        assert_eq!(report.cells.len(), 1 + 2 * 11);
        assert_eq!(report.mismatches().count(), 0, "{:?}", report.mismatches().next());
        assert!(report.claims.is_empty());
    }
}
