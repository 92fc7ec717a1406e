//! Tables as cells.

use std::collections::BTreeMap;

use ssdyno_session::Failure;

use super::as_printed::Rows;
use super::data::{Plan, Printed};
use super::simulate::Measured;
use crate::error::defect;
use crate::{FigureCell, PapersOptions, Selector};

/// Everything known when cells, claims and figures are made.
pub(super) struct Evidence<'a> {
    pub(super) printed: &'a Printed,
    pub(super) plan: &'a Plan,
    pub(super) runs: &'a BTreeMap<String, Measured>,
    pub(super) options: &'a PapersOptions,
}

/// Identifier of a cell.
pub(super) fn cell_id(table: &str, column: &str, row: &str) -> String {
    format!("S3/{table}/{column}/{row}")
}

/// Largest relative error that counts as a match.
fn tolerance(row: &str) -> f64 {
    // IOPS and running time follow from the arrivals alone (S3-24), so they must match to the
    // rounding. Energies and latencies depend on the model and match to 1 %.
    if ["iops", "running_time_seconds"].contains(&row) { 0.001 } else { 0.01 }
}

impl Evidence<'_> {
    /// All selected cells, in the order of the paper.
    pub(super) fn cells(&self, selector: &Selector) -> Result<Vec<FigureCell>, Failure> {
        let mut cells = Vec::new();
        for (name, table) in &self.printed.tables {
            for (at, column) in table.columns.iter().enumerate() {
                for row in &table.rows {
                    if !selector.selects(&cell_id(name, column, &row.name)) {
                        continue;
                    }
                    if let Some(text) = row.values.get(at) {
                        cells.push(self.cell(name, column, &row.name, text)?);
                    }
                }
            }
        }
        Ok(cells)
    }

    fn cell(
        &self,
        table: &str,
        column: &str,
        row: &str,
        text: &str,
    ) -> Result<FigureCell, Failure> {
        let id = cell_id(table, column, row);
        let wrong = |_| defect("papers/s3/printed.toml", format!("{id}: `{text}` is not a number"));
        let printed: f64 = text.parse().map_err(wrong)?;
        let remarks = self.printed.remarks.iter();
        let remarks: Vec<_> = remarks.filter(|r| r.concerns(table, column, row)).collect();
        let mut notes: Vec<String> = remarks.iter().map(|remark| remark.text.clone()).collect();
        let run = self.plan.tables.get(table).and_then(|columns| columns.get(column));
        let corrected = remarks.iter().find_map(|remark| remark.corrected);
        let (as_printed_model, ours, complete) = match run {
            // A parameter: printed, and what it should have been.
            // Tables 1 and 2 are parameters: the model of the paper uses them as printed, ours uses
            // the corrected value. A cell with a correction shows the printed error (S3-27 to
            // S3-30).
            None => (Some(printed), Some(corrected.unwrap_or(printed)), corrected.is_none()),
            Some(run) => match self.runs.get(run) {
                Some(measured) => {
                    let nand = measured.summary.device.trim_start_matches("s3-");
                    let model = Rows::as_printed(self.printed, nand, measured)?;
                    let complete = !measured.summary.partial && self.options.requests.is_none();
                    if !complete {
                        notes.push("the run is incomplete".into());
                    }
                    (model.get(row), Rows::corrected(measured).get(row), complete)
                }
                None => {
                    notes.insert(0, self.missing(run));
                    (None, None, false)
                }
            },
        };
        Ok(FigureCell {
            id,
            printed: Some(printed),
            printed_text: text.to_owned(),
            as_printed_model,
            ours,
            relative_error: ours.map(|ours| (ours - printed) / printed),
            tolerance: tolerance(row),
            expected_to_match: complete && remarks.iter().all(|r| r.matches != Some(false)),
            note: notes.join("; "),
        })
    }

    /// Why `run` is missing.
    pub(super) fn missing(&self, run: &str) -> String {
        let trace = self.plan.runs.get(run).and_then(|plan| plan.trace.as_deref());
        trace.map_or_else(
            || "not run".to_owned(),
            |trace| format!("not run: needs --trace {trace}=FILE"),
        )
    }
}
