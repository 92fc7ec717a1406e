//! S4: SPEK, a block-level benchmark that runs in the kernel.

mod arithmetic;
mod claims;
mod data;
mod figures;
#[cfg(target_os = "linux")]
mod hosts;
mod machine;
mod printed_cells;
mod simulate;

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

/// Figures, tables, arithmetic and claims with a title each.
pub(crate) fn selectable() -> Result<Vec<(String, String)>, Failure> {
    let (printed, plan) = (Printed::load()?, Plan::load()?);
    let mut all = vec![("S4".to_owned(), printed.title)];
    all.push(("S4/arithmetic".to_owned(), "Numbers in the text, recalculated".to_owned()));
    all.extend(plan.figures.iter().map(|figure| figure.of("S4")));
    all.extend(claims::all()?.titles());
    #[cfg(target_os = "linux")]
    all.extend(hosts::selectable()?);
    Ok(all)
}

impl ClaimedPlan for Plan {
    type Check = Check;
    const CLAIMS: fn() -> Result<Claims<Check>, Failure> = claims::all;
    const ASSUMPTIONS: fn() -> Result<Assumptions, Failure> = assumptions;

    fn verdict(&self, check: Check, measured: &Measured) -> Verdict {
        check(self, measured)
    }
}

/// Re-runs what `selector` names.
pub(crate) fn run(
    selector: &Selector,
    options: &PapersOptions,
    progress: &mut dyn FnMut(&PapersProgress) -> KeepGoing,
) -> Result<PapersReport, Failure> {
    #[cfg(target_os = "linux")]
    if let Some(measured) = &options.hosts {
        return hosts::run(selector, options, measured, progress);
    }
    if options.hosts.is_some() || (selector.reaches("S4/hosts") && !selector.selects("S4")) {
        return Err(Failure::failed(format!("`{selector}` is measured over a network"))
            .with_help("on Linux, as root: `ssdyno papers S4 --hosts`"));
    }
    let (printed, plan, all) = (Printed::load()?, Plan::load()?, claims::all()?);
    let mut cells = arithmetic::cells(&printed, selector)?;
    let chosen = plan.figures.iter().filter(|figure| selector.reaches(&figure.of("S4").0));
    let chosen: Vec<_> = chosen.collect();
    let claimed = all.titles().any(|(id, _)| selector.selects(&id));
    if cells.is_empty() && chosen.is_empty() && !claimed {
        return Err(nothing(selector, selectable()?));
    }
    let needed =
        all.selected(selector).flat_map(|check| &check.statement.about).map(String::as_str);
    let drawn = chosen.iter().map(|figure| figure.id.as_str());
    let cases = figures::points(needed.chain(drawn), &plan);
    let measured = Plan::simulate(&cases, options, Changes::none(), progress)?;
    let (claims, stopped) = plan.judge(selector, &measured, options, progress)?;
    cells.extend(printed_cells::cells(selector, &plan, &printed, &measured));
    let (mut figures, mut tables) = (Vec::new(), Vec::new());
    for figure in &chosen {
        if figure.id == figures::MACHINE {
            tables.extend(machine::tables(&figure.title, options.requests));
            continue;
        }
        let (drawing, table) = figures::draw(figure, &plan, &measured);
        figures.push(drawing);
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
