//! The paper's files: what is printed, and which runs stand behind it.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::error::paper_files;

paper_files!("s3": Printed in "printed.toml", Plan in "plan.toml"; assumptions in "assumptions.toml");

/// `printed.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Printed {
    pub(super) title: String,
    pub(super) tables: BTreeMap<String, PrintedTable>,
    pub(super) remarks: Vec<Remark>,
}

/// One printed table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PrintedTable {
    pub(super) title: String,
    pub(super) requirement: String,
    pub(super) columns: Vec<String>,
    pub(super) rows: Vec<PrintedRow>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PrintedRow {
    pub(super) name: String,
    /// One for each column, as printed.
    pub(super) values: Vec<String>,
}

/// What stands beside some cells.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Remark {
    /// Pattern of ids.
    cells: String,
    /// What a parameter should have been.
    pub(super) corrected: Option<f64>,
    /// False: the corrected model is right to differ.
    pub(super) matches: Option<bool>,
    pub(super) text: String,
}

impl Remark {
    pub(super) fn concerns(&self, table: &str, column: &str, row: &str) -> bool {
        let mut parts = self.cells.split('/');
        [table, column, row].iter().all(|own| parts.next().is_some_and(|p| p == "*" || p == *own))
    }
}

/// `plan.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Plan {
    pub(super) runs: BTreeMap<String, RunPlan>,
    /// Run of each column of each table.
    pub(super) tables: BTreeMap<String, BTreeMap<String, String>>,
    pub(super) figures: Vec<FigurePlan>,
}

/// A device under a load: a workload preset or a trace.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RunPlan {
    pub(super) device: String,
    pub(super) workload: Option<String>,
    pub(super) trace: Option<String>,
}

impl RunPlan {
    /// What a reader is told the load is.
    pub(super) fn load_name(&self) -> &str {
        self.workload.as_deref().or(self.trace.as_deref()).unwrap_or("nothing")
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FigurePlan {
    pub(super) id: String,
    pub(super) title: String,
    pub(super) kind: FigureKind,
    pub(super) tables: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum FigureKind {
    Energy,
    Latency,
}

impl Printed {
    /// The number printed in `table`, `column`, `row`.
    pub(super) fn value(&self, table: &str, column: &str, row: &str) -> Option<f64> {
        let table = self.tables.get(table)?;
        let column = table.columns.iter().position(|name| name == column)?;
        let row = table.rows.iter().find(|known| known.name == row)?;
        row.values.get(column)?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_complete_and_agree() {
        let (printed, plan) = (Printed::load().unwrap(), Plan::load().unwrap());
        let mut cells = 0;
        for (name, table) in &printed.tables {
            for row in &table.rows {
                assert_eq!(row.values.len(), table.columns.len(), "{name}/{}", row.name);
                for value in &row.values {
                    value.parse::<f64>().unwrap();
                    cells += 1;
                }
            }
            let simulated = !["setup", "table1", "table2"].contains(&&**name);
            for column in table.columns.iter().filter(|_| simulated) {
                assert!(plan.runs.contains_key(&plan.tables[name][column]), "{name}/{column}");
            }
        }
        // 3 + 12 + 10 x 3 parameters, 8 rows of 4 + 2 + 3 + 3 columns.
        assert_eq!(cells, 45 + 8 * 12);
        for (name, run) in &plan.runs {
            assert!(run.workload.is_some() != run.trace.is_some(), "{name}");
        }
        for remark in &printed.remarks {
            let used = printed.tables.iter().any(|(name, table)| {
                table.columns.iter().any(|column| {
                    table.rows.iter().any(|row| remark.concerns(name, column, &row.name))
                })
            });
            assert!(used, "{remark:?} concerns no cell");
            // Notes are joined with it, and taken apart again for footnotes.
            assert!(!remark.text.contains("; "), "{remark:?}");
        }
    }
}
