//! S1: NVM Express in Vortex - queue policies on a machine of eight cores.

mod arithmetic;
mod claims;
mod data;
mod figures;
mod simulate;

use std::collections::BTreeSet;

use claims::Check;
pub(crate) use data::assumptions;
use data::{Plan, Printed};
use simulate::Measured;
use ssdyno_session::Failure;

use crate::assumptions::{Assumptions, Changes};
use crate::claims::{ClaimedPlan, Claims, Verdict};
use crate::error::nothing;
use crate::measured::PointPlan;
use crate::{KeepGoing, PapersOptions, PapersProgress, PapersReport, Selector};

/// Figures, arithmetic and claims with a title each.
pub(crate) fn selectable() -> Result<Vec<(String, String)>, Failure> {
    let (printed, plan) = (Printed::load()?, Plan::load()?);
    let mut all = vec![("S1".to_owned(), printed.title)];
    let arithmetic = "Numbers in the text, recalculated".to_owned();
    all.push(("S1/arithmetic".to_owned(), arithmetic));
    all.extend(plan.figures.into_iter().map(|figure| (format!("S1/{}", figure.id), figure.title)));
    all.extend(claims::all()?.titles());
    Ok(all)
}

impl ClaimedPlan for Plan {
    type Check = Check;
    const CLAIMS: fn() -> Result<Claims<Check>, Failure> = claims::all;
    const ASSUMPTIONS: fn() -> Result<Assumptions, Failure> = assumptions;

    fn verdict(&self, check: Check, measured: &Measured) -> Verdict {
        check(measured)
    }
}

/// Re-runs what `selector` names.
pub(crate) fn run(
    selector: &Selector,
    options: &PapersOptions,
    progress: &mut dyn FnMut(&PapersProgress) -> KeepGoing,
) -> Result<PapersReport, Failure> {
    let (printed, plan, all) = (Printed::load()?, Plan::load()?, claims::all()?);
    let cells = arithmetic::cells(&printed, selector)?;
    let claimed = all.titles().any(|(id, _)| selector.selects(&id));
    let figures: Vec<_> = plan
        .figures
        .iter()
        .filter(|figure| selector.selects(&format!("S1/{}", figure.id)))
        .collect();
    if cells.is_empty() && figures.is_empty() && !claimed {
        return Err(nothing(selector, selectable()?));
    }
    // A claim needs the points of the figures that it is about. Points that are used by several
    // claims appear once in the set.
    let about =
        |id: &String| all.selected(selector).any(|check| check.statement.about.contains(id));
    let beside = plan.figures.iter().filter(|figure| about(&figure.id));
    let mut wanted: BTreeSet<_> = beside.flat_map(|figure| figure.cases()).collect();
    wanted.extend(figures.iter().flat_map(|figure| figure.cases()));
    let measured = Plan::simulate(&wanted, options, Changes::none(), progress)?;
    let (claims, stopped) = plan.judge(selector, &measured, options, progress)?;
    let mut notes = plan.notes.clone();
    notes.extend(options.cut_short("some claims may fail for this reason"));
    let (figures, tables) = figures.into_iter().map(|f| figures::draw(f, &measured)).unzip();
    Ok(PapersReport {
        title: printed.title.clone(),
        cells,
        claims,
        figures,
        tables,
        partial: stopped,
        runs: measured.summaries(),
        notes,
    })
}
