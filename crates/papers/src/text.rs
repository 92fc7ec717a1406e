//! The report for the terminal.

use std::fmt::Write;

use crate::{Assumption, ClaimState, FigureCell, PapersReport, RunSummary};

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
    // Widths count characters and not bytes: `±` has two bytes in UTF-8 and would shift all columns
    // behind it.
    let width = |at: usize| {
        rows.iter().filter_map(|row| row.get(at)).map(|cell| cell.chars().count()).max()
    };
    let widths: Vec<usize> = (0..columns).map(|at| width(at).unwrap_or(0)).collect();
    for row in rows {
        let mut line = String::new();
        for (at, cell) in row.iter().enumerate() {
            // Figures lean to the right, so that a longer number is visibly a larger one. Names
            // lean to the left.
            let pad = " ".repeat(widths[at] - cell.chars().count());
            let gap = if at == 0 { "  " } else { "   " };
            line.push_str(gap);
            line.push_str(&if at == 0 { format!("{cell}{pad}") } else { format!("{pad}{cell}") });
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
}

impl PapersReport {
    /// Everything but the drawings, in columns: printed, as-printed model, corrected model, error,
    /// note.
    pub fn text(&self) -> String {
        let mut out = format!("{}\n", self.title);
        let mut notes: Vec<&str> = Vec::new();
        // Each table once, in the order of their first cells.
        let mut tables: Vec<(&str, Vec<&FigureCell>)> = Vec::new();
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
            let answer = claim.state.map_or("not checked", ClaimState::words);
            let _ = writeln!(out, "  {answer}: {}\n      {}", claim.text, claim.evidence);
            for assumption in claim.assumptions.iter().filter(|assumption| assumption.decides) {
                let Assumption { name, assumed, low, high, .. } = assumption;
                let _ = writeln!(
                    out,
                    "      depends on: {name}, {assumed} assumed, {low} to {high} plausible: {}",
                    assumption.ranges()
                );
            }
            // Values that do not decide are listed as well. A reader sees that they were varied and
            // not forgotten.
            let others = claim.assumptions.iter().filter(|assumption| !assumption.decides);
            let others: Vec<String> = others.map(|other| other.in_short()).collect();
            if !others.is_empty() {
                let _ = writeln!(out, "      the same with: {}", others.join("; "));
            }
        }
        if let Some(claim) = self.claims.iter().find(|claim| claim.holds == Some(false)) {
            let paper = claim.id.split('/').next().unwrap_or_default().to_lowercase();
            let _ = writeln!(
                out,
                "  For the reasons why claims do not hold, see papers/{paper}/notes.md in the source"
            );
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
        cells: &[&'a FigureCell],
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
                // Equal notes share one number. Tables have the same note in most of their cells,
                // and its text in each row would hide the figures.
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

    /// A row for each run, seeds taken together, without the columns that say nothing of any of them.
    fn text_of_runs(&self, out: &mut String) {
        let rows = by_seed(&self.runs);
        let told: Vec<&Column> = COLUMNS.iter().filter(|column| column.tells(&rows)).collect();
        if rows.is_empty() {
            return;
        }
        let seeds = rows.iter().map(|(_, runs)| runs.len()).max().unwrap_or(1);
        let merged = if seeds > 1 { format!(" (means of {seeds} seeds)") } else { String::new() };
        let _ = writeln!(out, "\nRuns: values that the paper does not print{merged}");
        let head = std::iter::once("run").chain(told.iter().map(|column| column.title));
        let mut lines = vec![head.map(str::to_owned).collect::<Vec<_>>()];
        lines.extend(rows.iter().map(|(name, runs)| {
            let part = if runs.iter().any(|run| run.partial) { " (part)" } else { "" };
            let name = format!("{name}{part}");
            std::iter::once(name).chain(told.iter().map(|column| column.cell(runs))).collect()
        }));
        aligned(out, &lines);
    }
}

/// What is told of a run.
struct Column {
    title: &'static str,
    value: fn(&RunSummary) -> Option<f64>,
    text: fn(f64) -> String,
}

/// In the order of the table.
const COLUMNS: [Column; 9] = [
    Column {
        title: "latency",
        value: |run| Some(run.device_latency_ms),
        text: |ms| format!("{ms:.6} ms"),
    },
    Column {
        title: "with wait",
        value: |run| Some(run.latency_ms),
        text: |ms| format!("{ms:.6} ms"),
    },
    Column {
        title: "busy",
        value: |run| Some(100.0 * run.busy_share),
        text: |percent| format!("{percent:.2} %"),
    },
    Column { title: "erased", value: |run| Some(run.erases as f64), text: |n| format!("{n:.0}") },
    Column {
        title: "moved",
        value: |run| Some(run.relocations as f64),
        text: |n| format!("{n:.0}"),
    },
    Column { title: "WA", value: |run| run.write_amplification, text: number },
    Column {
        title: "above idle",
        value: |run| Some(run.above_idle_joules),
        text: |joules| format!("{joules:.2} J"),
    },
    Column {
        title: "per request",
        value: |run| Some(1e6 * run.joules_per_request),
        text: |microjoules| format!("{microjoules:.1} uJ"),
    },
    Column {
        title: "took",
        value: |run| Some(run.wall_seconds),
        text: |seconds| format!("{seconds:.1} s"),
    },
];

impl Column {
    /// Whether it reads other than zero for any of the runs.
    fn tells(&self, rows: &[(&str, Vec<&RunSummary>)]) -> bool {
        // The printed text is compared and not the number. A value that rounds to zero would fill a
        // column with zeros.
        let nothing = (self.text)(0.0);
        let mut values = rows.iter().flat_map(|(_, runs)| runs).filter_map(|run| (self.value)(run));
        values.any(|value| (self.text)(value) != nothing)
    }

    /// The mean over `runs`.
    fn cell(&self, runs: &[&RunSummary]) -> String {
        let values: Option<Vec<f64>> = runs.iter().map(|run| (self.value)(run)).collect();
        let mean = |values: Vec<f64>| values.iter().sum::<f64>() / values.len() as f64;
        values.map_or_else(|| "-".to_owned(), |values| (self.text)(mean(values)))
    }
}

/// Runs that differ in their seed alone, under the name that they share.
fn by_seed(runs: &[RunSummary]) -> Vec<(&str, Vec<&RunSummary>)> {
    let mut rows: Vec<(&str, Vec<&RunSummary>)> = Vec::new();
    let mut places = std::collections::BTreeMap::new();
    for run in runs {
        let name = without_seed(&run.name);
        let at = *places.entry(name).or_insert_with(|| {
            rows.push((name, Vec::new()));
            rows.len() - 1
        });
        rows[at].1.push(run);
    }
    rows
}

/// `per-core_1_cores` of `per-core_1_cores_seed_3`.
fn without_seed(name: &str) -> &str {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    // Only a number after the last `_seed_` is removed: a name of a load can contain the word
    // itself, as the test below shows.
    name.rsplit_once("_seed_").filter(|(_, seed)| is_number(seed)).map_or(name, |(name, _)| name)
}

/// `S3/table3` of `S3/table3/random_write/iops`.
fn table_of(id: &str) -> &str {
    let end = id.match_indices('/').nth(1).map_or(id.len(), |(at, _)| at);
    &id[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_share_a_row_and_columns_that_say_nothing_are_left_out() {
        let run = |name: &str, latency_ms, relocations| RunSummary {
            name: name.to_owned(),
            device: "delay-10us".to_owned(),
            workload: "randread".to_owned(),
            requests: 10,
            simulated_seconds: 1.0,
            wall_seconds: 0.01,
            device_latency_ms: latency_ms,
            latency_ms: 2.0 * latency_ms,
            busy_share: 0.0,
            erases: 0,
            relocations,
            write_amplification: None,
            above_idle_joules: 0.0,
            joules_per_request: 0.0,
            partial: name == "b_seed_2",
        };
        let mut report = PapersReport {
            runs: vec![run("a_seed_1", 1.0, 3), run("b_seed_1", 5.0, 0), run("a_seed_2", 3.0, 5)],
            ..PapersReport::default()
        };
        report.runs.push(run("b_seed_2", 7.0, 0));
        let mut text = String::new();
        report.text_of_runs(&mut text);
        let expected = "
Runs: values that the paper does not print (means of 2 seeds)
  run            latency      with wait   moved
  a          2.000000 ms    4.000000 ms       4
  b (part)   6.000000 ms   12.000000 ms       0
";
        assert_eq!(text, expected);
        assert_eq!(without_seed("random_seed_mix"), "random_seed_mix");
    }
}
