//! Figures 3 to 6, printed beside re-run.

use super::as_printed::Rows;
use super::cells::Evidence;
use super::data::{FigureKind, FigurePlan};
use crate::chart::{Bar, Bars, Line, Lines, Places};
use crate::{Figure, Selector};

/// Parts of the stacked bars, bottom up: row and label.
const PARTS: [(&str, &str); 4] = [
    ("flash_joules", "Flash"),
    ("cpu_joules", "CPU"),
    ("ram_joules", "RAM"),
    ("bus_joules", "Bus"),
];

impl Evidence<'_> {
    /// The selected figures.
    pub(super) fn figures(&self, selector: &Selector) -> Vec<Figure> {
        let selected =
            self.plan.figures.iter().filter(|plan| selector.selects(&format!("S3/{}", plan.id)));
        let drawn = selected.map(|plan| Figure {
            id: format!("S3/{}", plan.id),
            title: plan.title.clone(),
            svg: match plan.kind {
                FigureKind::Energy => self.energy(plan),
                FigureKind::Latency => self.latency(plan),
            },
        });
        drawn.collect()
    }

    /// What the corrected model gives for a cell.
    fn ours(&self, table: &str, column: &str, row: &str) -> Option<f64> {
        let run = self.plan.tables.get(table)?.get(column)?;
        Rows::corrected(self.runs.get(run)?).get(row)
    }

    /// The load of a table of chips; empty for the others.
    fn prefix(table: &str) -> &'static str {
        match table {
            "table5" => "IOzone ",
            "table6" => "PostMark ",
            _ => "",
        }
    }

    fn energy(&self, plan: &FigurePlan) -> String {
        let mut bars = Vec::new();
        for table in &plan.tables {
            let Some(content) = self.printed.tables.get(table) else { continue };
            for column in &content.columns {
                let group = format!("{}{}", Self::prefix(table), column.replace('_', " "));
                // A bar with a missing part is not drawn. A stack without it would be a smaller
                // total and look like a saving of energy.
                let stack = |value: &dyn Fn(&str) -> Option<f64>| {
                    PARTS.iter().map(|(row, _)| value(row)).collect::<Option<Vec<f64>>>()
                };
                bars.push(Bar {
                    group: group.clone(),
                    label: "printed",
                    parts: stack(&|row| self.printed.value(table, column, row)),
                });
                bars.push(Bar {
                    group,
                    label: "ours",
                    parts: stack(&|row| self.ours(table, column, row)),
                });
            }
        }
        let parts = PARTS.map(|(_, label)| label);
        Bars { title: &plan.title, unit: "energy (J)", parts: &parts, bars }.draw()
    }

    fn latency(&self, plan: &FigurePlan) -> String {
        let mut lines = Vec::new();
        let mut places = Vec::new();
        for table in &plan.tables {
            let Some(content) = self.printed.tables.get(table) else { continue };
            let values = |value: &dyn Fn(&str) -> Option<f64>| {
                content.columns.iter().map(|column| value(column)).collect()
            };
            // The pages of 2, 4 and 8 KiB stand at their sizes, so a straight line in figure 5 is a
            // straight line in the drawing. The three chips as names would distort it.
            places = content
                .columns
                .iter()
                .filter_map(|column| self.printed.value("table2", column, "page_size_kib"))
                .collect();
            let prefix = Self::prefix(table);
            lines.push(Line {
                label: format!("{prefix}printed"),
                values: values(&|column| self.printed.value(table, column, "latency_ms")),
                dashed: true,
            });
            lines.push(Line {
                label: format!("{prefix}ours"),
                values: values(&|column| self.ours(table, column, "latency_ms")),
                dashed: false,
            });
        }
        let (title, unit) = (plan.title.as_str(), "response latency (ms)");
        let places = Places::Values(places);
        Lines { title, unit, across: "page size (KiB)", places, lines }.draw()
    }
}
