//! The report for the terminal.

use std::fmt::Write;

use crate::{Cell, Report, RunSummary};

/// A number with as many digits as tell something.
fn number(value: f64) -> String {
    let digits = match value.abs() {
        0.0 => 0,
        magnitude if magnitude >= 100.0 => 2,
        magnitude if magnitude >= 1.0 => 3,
        _ => 4,
    };
    format!("{value:.digits$}")
}

fn optional(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), number)
}

/// Lines of equal columns; the first column leans left, the others right.
fn aligned(out: &mut String, rows: &[Vec<String>]) {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |at: usize| {
        rows.iter().filter_map(|row| row.get(at)).map(|cell| cell.chars().count()).max()
    };
    let widths: Vec<usize> = (0..columns).map(|at| width(at).unwrap_or(0)).collect();
    for row in rows {
        let mut line = String::new();
        for (at, cell) in row.iter().enumerate() {
            let pad = " ".repeat(widths[at] - cell.chars().count());
            let gap = if at == 0 { "  " } else { "   " };
            line.push_str(gap);
            line.push_str(&if at == 0 { format!("{cell}{pad}") } else { format!("{pad}{cell}") });
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
}

impl Report {
    /// Everything but the drawings, in columns: printed, as-printed model, corrected model, error,
    /// note.
    pub fn text(&self) -> String {
        let mut out = format!("{}\n", self.title);
        let mut notes: Vec<&str> = Vec::new();
        // Each table once, in the order of their first cells.
        let mut tables: Vec<(&str, Vec<&Cell>)> = Vec::new();
        for cell in &self.cells {
            let table = table_of(&cell.id);
            match tables.iter_mut().find(|(known, _)| *known == table) {
                Some((_, cells)) => cells.push(cell),
                None => tables.push((table, vec![cell])),
            }
        }
        for (table, cells) in tables {
            self.table(&mut out, table, &cells, &mut notes);
        }
        for (at, note) in notes.iter().enumerate() {
            let _ = writeln!(out, "{}[{}] {note}", if at == 0 { "\n" } else { "" }, at + 1);
        }
        for table in &self.tables {
            let _ = writeln!(out, "\n{}: {}", table.id, table.title);
            aligned(
                &mut out,
                &[std::slice::from_ref(&table.columns), table.rows.as_slice()].concat(),
            );
        }
        self.text_of_runs(&mut out);
        if !self.claims.is_empty() {
            out.push_str("\nClaims\n");
        }
        for claim in &self.claims {
            let answer = match claim.holds {
                Some(true) => "holds",
                Some(false) => "does not hold",
                None => "not checked",
            };
            let _ = writeln!(out, "  {answer}: {}\n      {}", claim.text, claim.evidence);
        }
        if let Some(claim) = self.claims.iter().find(|claim| claim.holds == Some(false)) {
            let paper = claim.id.split('/').next().unwrap_or_default().to_lowercase();
            let _ =
                writeln!(out, "  Why claims do not hold: papers/{paper}/notes.md of the source");
        }
        if !self.notes.is_empty() {
            out.push('\n');
        }
        for note in &self.notes {
            let _ = writeln!(out, "{note}");
        }
        out
    }

    fn table<'a>(
        &self,
        out: &mut String,
        table: &str,
        cells: &[&'a Cell],
        notes: &mut Vec<&'a str>,
    ) {
        let _ = writeln!(out, "\n{table}");
        let head = ["cell", "printed", "as printed", "corrected", "error", "", "note"];
        let mut rows = vec![head.map(str::to_owned).to_vec()];
        for cell in cells {
            let error = cell.relative_error.map(|error| format!("{:+.2} %", error * 100.0));
            let mark = match (cell.expected_to_match, cell.matches()) {
                (true, true) => "ok",
                (true, false) => "OFF",
                (false, _) => "",
            };
            let mut numbers = Vec::new();
            for note in cell.note.split("; ").filter(|note| !note.is_empty()) {
                let known = notes.iter().position(|other| *other == note);
                let at = known.unwrap_or_else(|| {
                    notes.push(note);
                    notes.len() - 1
                });
                numbers.push(format!("[{}]", at + 1));
            }
            rows.push(vec![
                cell.id.strip_prefix(table).unwrap_or(&cell.id).trim_start_matches('/').to_owned(),
                cell.printed_text.clone(),
                optional(cell.as_printed_model),
                optional(cell.ours),
                error.unwrap_or_else(|| "-".to_owned()),
                mark.to_owned(),
                numbers.concat(),
            ]);
        }
        aligned(out, &rows);
    }

    fn text_of_runs(&self, out: &mut String) {
        if self.runs.is_empty() {
            return;
        }
        out.push_str("\nRuns: what the paper does not print\n");
        let head = [
            "run",
            "latency",
            "with wait",
            "busy",
            "erased",
            "moved",
            "WA",
            "above idle",
            "per request",
            "took",
        ];
        let mut rows = vec![head.map(str::to_owned).to_vec()];
        rows.extend(self.runs.iter().map(run_row));
        aligned(out, &rows);
    }
}

fn run_row(run: &RunSummary) -> Vec<String> {
    vec![
        format!("{}{}", run.name, if run.partial { " (part)" } else { "" }),
        format!("{:.6} ms", run.device_latency_ms),
        format!("{:.6} ms", run.latency_ms),
        format!("{:.2} %", run.busy_share * 100.0),
        run.erases.to_string(),
        run.relocations.to_string(),
        optional(run.write_amplification),
        format!("{:.2} J", run.above_idle_joules),
        format!("{:.1} uJ", run.joules_per_request * 1e6),
        format!("{:.1} s", run.wall_seconds),
    ]
}

/// `S3/table3` of `S3/table3/random_write/iops`.
fn table_of(id: &str) -> &str {
    let end = id.match_indices('/').nth(1).map_or(id.len(), |(at, _)| at);
    &id[..end]
}
