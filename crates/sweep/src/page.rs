//! A sweep as a page, and its files.

use ssdyno_report::{Axis as PlotAxis, Page, Plot, ResultError, figure_format, html_table};
use ssdyno_session::ResultFolder;

use crate::curve_page::{knee, section};
use crate::journal;
use crate::row::{DesignState, Standing, SweepResult, SweepRow};
use crate::table::SweepTable;
use crate::text::{
    GENERATION, cells, effect_cells, effects_line, found, generation_cells, header,
    interaction_cells, interactions_line, outcome, reasons, reference, searched, value,
};

/// Rows of all designs that the page shows; the table on the disk has all.
const ROWS_MAX: usize = 1000;

/// Reasons that the page shows.
const REASONS_MAX: usize = 20;

/// The page of a sweep: opens without a network. `command` gives what repeats a design, where the front end has such a
/// command.
pub fn html(result: &SweepResult, command: &dyn Fn(&SweepRow) -> Option<String>) -> String {
    let plan = &result.plan;
    let title = format!("{} - sweep", plan.run.target.as_deref().unwrap_or("designs"));
    let mut facts = vec![outcome(result)];
    facts.extend(result.search.as_ref().map(searched));
    facts.extend(found(result));
    facts.extend(plan.vary.iter().map(ToString::to_string));
    let mut page = Page::new(&title, result.partial, &facts);
    result.notes.iter().for_each(|note| page.note(note, true));
    if let Some(curve) = &result.curve {
        let knee = knee(curve).map(|knee| format!(": {knee}")).unwrap_or_default();
        page.section(&format!("Curve{knee}"), &section(result, curve));
    }
    let head = header(result);
    // The command that repeats a design is the purpose of the table for many readers. A front end
    // without such a command shows the hash of the spec.
    let with_command = |row: &SweepRow| {
        let mut cells = cells(result, row);
        cells.push(command(row).unwrap_or_else(|| row.spec_hash.clone()));
        cells
    };
    let mut names: Vec<&str> = head.iter().map(String::as_str).collect();
    names.push("repeated by");
    let front: Vec<Vec<String>> = result.front().into_iter().map(with_command).collect();
    page.section("Front", &[picture(result), html_table(&names, &front)]);
    let effects: Vec<Vec<String>> = result.effects.iter().map(effect_cells).collect();
    let names = ["key", "figure", "share of the variation", "mean at its values"];
    let tables = if effects.is_empty() { Vec::new() } else { vec![html_table(&names, &effects)] };
    // One key alone always explains everything.
    if plan.vary.len() > 1 {
        page.section(&effects_line(result, effects.len()), &tables);
    }
    interactions(&mut page, result);
    if let Some(search) = &result.search {
        let rows = generation_cells(search);
        let note = format!("Generations: {}", reference(search));
        page.section(&note, &[html_table(&GENERATION, &rows)]);
    }
    let reasons: Vec<Vec<String>> = reasons(result)
        .into_iter()
        .take(REASONS_MAX)
        .map(|(why, count)| vec![why, count.to_string()])
        .collect();
    if !reasons.is_empty() {
        page.section(
            "Designs that were not run to their end",
            &[html_table(&["why", "designs"], &reasons)],
        );
    }
    let standing = |row: &SweepRow| match row.standing {
        // A design that was stopped early has figures of an incomplete run. It must
        // not appear as dominated by those figures.
        _ if row.state == DesignState::Stopped => "stopped early",
        Some(Standing::Front) => "front",
        Some(Standing::Undecided) => "undecided",
        Some(Standing::Dominated) => "dominated",
        Some(Standing::Excluded) => "breaks a bound",
        Some(Standing::Overloaded) => "overloaded",
        Some(Standing::Unrepresentative) => "unrepresentative",
        None => "no figures",
    };
    let rows: Vec<Vec<String>> = result
        .rows
        .iter()
        .take(ROWS_MAX)
        .map(|row| [cells(result, row), vec![standing(row).to_owned()]].concat())
        .collect();
    let mut names: Vec<&str> = head.iter().map(String::as_str).collect();
    names.push("standing");
    let title = match result.rows.len() > ROWS_MAX {
        true => format!("The first {ROWS_MAX} designs"),
        false => "All designs".to_owned(),
    };
    page.sortable(&title, &names, &rows);
    page.finish()
}

fn interactions(page: &mut Page, result: &SweepResult) {
    if result.interactions.examined > 0 {
        let found = result.interactions.found.iter();
        let rows: Vec<Vec<String>> = found.map(interaction_cells).collect();
        let names = ["key", "figure", "effect", "effect", "ratio (second / first)"];
        let tables = if rows.is_empty() { Vec::new() } else { vec![html_table(&names, &rows)] };
        page.section(&interactions_line(&result.interactions), &tables);
    }
}

/// The first two objectives against each other; nothing for one.
fn picture(result: &SweepResult) -> String {
    let [x, y, ..] = result.plan.objectives.as_slice() else { return String::new() };
    let points: Vec<(&SweepRow, f64, f64)> = result
        .rows
        .iter()
        .filter(|row| {
            let left_out = [Standing::Overloaded, Standing::Unrepresentative];
            row.standing.is_some_and(|standing| !left_out.contains(&standing))
        })
        .filter_map(|row| Some((row, row.figure(x.figure)?, row.figure(y.figure)?)))
        // The axes are logarithmic, and zero has no place on them. Such
        // designs are still in the table.
        .filter(|(_, x, y)| *x > 0.0 && *y > 0.0)
        .collect();
    let axis = |figure: &'static str, pick: &dyn Fn(&(&SweepRow, f64, f64)) -> f64| {
        let values = || points.iter().map(pick);
        let (low, high) = (values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max));
        PlotAxis::logarithmic(figure, low, high, figure_format(figure))
    };
    if points.is_empty() {
        return String::new();
    }
    let (across, up) = (axis(x.figure, &|point| point.1), axis(y.figure, &|point| point.2));
    let mut plot = Plot::new("Designs", across, up);
    plot.name("write", "front");
    plot.name("read", "others");
    // The points of the front are drawn last, so they lie above the
    // others and can be seen and touched.
    let is_front = |row: &SweepRow| row.standing == Some(Standing::Front);
    for front in [false, true] {
        for (row, x, y) in points.iter().filter(|(row, ..)| is_front(row) == front) {
            let values: Vec<String> = result
                .plan
                .vary
                .iter()
                .zip(&row.values)
                .map(|(axis, one)| format!("{} = {}", axis.key(), value(one)))
                .collect();
            let title = format!("design {}: {}", row.design, values.join(", "));
            plot.point(if front { "write" } else { "read" }, (*x, *y), &title);
        }
    }
    plot.finish()
}

/// Writes `sweep.parquet`, `sweep.csv` where it is wanted, `report.html` and, last, `result.json` into `folder`; gives the
/// place. `command` is that of [`html`].
///
/// # Errors
/// The first file that cannot be written. The other files are there nevertheless, and so is the journal of the rows.
pub fn write(
    result: &SweepResult,
    folder: &ResultFolder,
    csv: bool,
    command: &dyn Fn(&SweepRow) -> Option<String>,
) -> Result<String, ResultError> {
    // The table for programs has all rows, the page at most 1000. `result.json`
    // appears last: a folder with it is complete.
    let table = SweepTable::of(result);
    let parquet = folder.write_file("sweep.parquet", |file| table.write_parquet(file));
    // A sweep that goes on has the file of its first part, which lacks designs.
    let text = match csv || folder.path().join("sweep.csv").exists() {
        true => folder.write_file("sweep.csv", |file| table.write_csv(file)).map(drop),
        false => Ok(()),
    };
    // A table that cannot be written must not take the result with it: that has all rows, too.
    let place = folder.write_page(&html(result, command), result)?;
    parquet?;
    text?;
    // The journal is the only copy of the rows until everything is written.
    result.finished_journal.iter().for_each(|journal| journal::remove(journal));
    Ok(place)
}
