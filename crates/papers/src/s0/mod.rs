//! S0: the descriptor ring whose blocks grow and shrink with the load.

mod arithmetic;
mod checks;
mod claims;
mod data;
mod figures;
mod simulate;
mod stall;

use checks::Evidence;
use claims::Check;
pub(crate) use data::assumptions;
use data::{Plan, Printed};
use simulate::Measured;
use ssdyno_session::Failure;

use crate::assumptions::{Assumptions, Changes};
use crate::claims::{ClaimCheck, ClaimedPlan, Claims, Verdict};
use crate::error::nothing;
use crate::measured::PointPlan;
use crate::{KeepGoing, PapersOptions, PapersProgress, PapersReport, Selector};

/// Figures, arithmetic and claims with a title each.
pub(crate) fn selectable() -> Result<Vec<(String, String)>, Failure> {
    let (printed, plan) = (Printed::load()?, Plan::load()?);
    let mut all = vec![("S0".to_owned(), printed.title)];
    all.push(("S0/arithmetic".to_owned(), "Numbers in the text, recalculated".to_owned()));
    all.extend(plan.figures.iter().map(|figure| figure.of("S0")));
    all.extend(claims::all()?.titles());
    Ok(all)
}

impl ClaimedPlan for Plan {
    type Check = Check;
    const CLAIMS: fn() -> Result<Claims<Check>, Failure> = claims::all;
    const ASSUMPTIONS: fn() -> Result<Assumptions, Failure> = assumptions;

    fn verdict(&self, check: Check, measured: &Measured) -> Verdict {
        check(&Evidence { plan: self, measured })
    }

    fn unknown(check: &ClaimCheck<Check>) -> &'static str {
        match check.name.starts_with("disk_") {
            true => "needs a hard disk; not run on the disk model yet",
            false => "not run",
        }
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
    let selected = |id: &str| {
        let below = ["", "/read", "/write", "/throughput", "/latency", "/curve"];
        below.iter().any(|suffix| selector.selects(&format!("S0/{id}{suffix}")))
    };
    let chosen: Vec<_> = plan.figures.iter().filter(|figure| selected(&figure.id)).collect();
    let claimed = all.titles().any(|(id, _)| selector.selects(&id));
    if cells.is_empty() && chosen.is_empty() && !claimed {
        return Err(nothing(selector, selectable()?));
    }
    let needed = all.named(selector).flat_map(|check| &check.statement.about).map(String::as_str);
    let needed = needed.chain(chosen.iter().map(|figure| figure.id.as_str()));
    let cases = figures::points(needed, &plan);
    let measured = Plan::simulate(&cases, options, Changes::none(), progress)?;
    let (claims, stopped) = plan.judge(selector, &measured, options, progress)?;
    let (mut figures, mut tables) = (Vec::new(), Vec::new());
    for figure in chosen {
        let (drawings, table) = figures::draw(figure, &plan, &measured);
        figures.extend(drawings);
        tables.push(table);
    }
    let mut notes = plan.notes.clone();
    notes.extend(options.cut_short("some claims may fail for this reason"));
    Ok(PapersReport {
        title: printed.title,
        cells,
        claims,
        figures,
        tables,
        partial: stopped,
        runs: measured.summaries(),
        notes,
    })
}
