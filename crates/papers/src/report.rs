//! What a re-run says.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::answer::Answer;

/// One printed number and our results for it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct FigureCell {
    /// Paper, table, column, row with unit: `S3/table3/random_write/energy_joules`.
    pub id: String,
    /// The number in the paper; `null` if the paper has no number for the run: a drive of the user.
    pub printed: Option<f64>,
    /// The printed number, digit by digit.
    pub printed_text: String,
    /// Result with the paper's own printed parameters; `null` if they produce no result, or if a required run is missing.
    pub as_printed_model: Option<f64>,
    /// Result of the corrected model; `null` if it was not run.
    pub ours: Option<f64>,
    /// (ours - printed) / printed.
    pub relative_error: Option<f64>,
    /// Largest error that counts as a match, as a share of `printed`: 1 %, 0.1 % for IOPS and time.
    pub tolerance: f64,
    /// Whether the corrected model should match: its run is complete, and the printed number is not wrong.
    pub expected_to_match: bool,
    /// Note for the reader; may be empty.
    pub note: String,
}

impl FigureCell {
    /// `ours` beside `printed`. They need not match: ours depends on assumed values.
    pub(crate) fn beside(id: String, printed: f64, ours: Option<f64>, note: &str) -> FigureCell {
        FigureCell {
            id,
            printed: Some(printed),
            printed_text: format!("{printed}"),
            as_printed_model: None,
            ours,
            relative_error: ours.filter(|_| printed != 0.0).map(|ours| ours / printed - 1.0),
            tolerance: 0.05,
            expected_to_match: false,
            note: note.to_owned(),
        }
    }

    /// True if the cell was run and lies within its tolerance.
    pub fn matches(&self) -> bool {
        self.relative_error.is_some_and(|error| error.abs() <= self.tolerance)
    }
}

/// A statement about the paper, with our check.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Claim {
    /// `S3/claims/iops_are_the_loads`.
    pub id: String,
    /// The statement.
    pub text: String,
    /// Whether the statement holds; `null` if it is not decided: a required run is missing, or the statement is
    /// undecided or assumed (see `state`).
    pub holds: Option<bool>,
    /// State of the statement; `null` if a required run is missing.
    #[serde(default)]
    pub state: Option<ClaimState>,
    /// The numbers behind the decision.
    pub evidence: String,
    /// The assumed values that were varied for the statement; the decisive values first.
    #[serde(default)]
    pub assumptions: Vec<Assumption>,
}

/// A value that no paper prints, and the state of the claim with other values. Each value is varied alone.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Assumption {
    /// Name of the assumed quantity.
    pub name: String,
    /// Its keys in the host, the device, the network or the plan.
    pub keys: Vec<String>,
    /// The assumed value with its unit, or as a multiple of the value in the presets.
    pub assumed: String,
    /// Smallest plausible value.
    pub low: String,
    /// Greatest plausible value.
    pub high: String,
    /// The value without the assumed effect; `null` if there is none.
    pub neutral: Option<String>,
    /// Source of the range.
    pub reason: String,
    /// True if the state of the claim depends on the value: the claim does not hold at the neutral value, or its state
    /// changes within the range.
    pub decides: bool,
    /// State of the claim at each value that was tried, by ascending value.
    pub tried: Vec<Trial>,
}

/// A claim with one assumed value changed.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Trial {
    /// The value.
    pub value: String,
    /// State from the runs with this value: never `assumed`.
    pub state: ClaimState,
}

impl Assumption {
    /// `copies, 1.1 GB/s to 4.4 GB/s`.
    pub fn in_short(&self) -> String {
        format!("{}, {} to {}", self.name, self.low, self.high)
    }

    /// `holds from 1.4 to 5, does not hold at 1`: what the claim is where.
    pub fn ranges(&self) -> String {
        let mut parts: Vec<(ClaimState, &str, &str)> = Vec::new();
        for Trial { value, state } in &self.tried {
            match parts.last_mut() {
                // Equal neighbours are joined to a range. The values rise, so the first and the
                // last one are its ends.
                Some((known, _, to)) if known == state => *to = value,
                _ => parts.push((*state, value, value)),
            }
        }
        let told = parts.into_iter().map(|(state, from, to)| match from == to {
            true => format!("{} at {from}", state.words()),
            false => format!("{} from {from} to {to}", state.words()),
        });
        told.collect::<Vec<_>>().join(", ")
    }
}

ssdyno_block::named! {
    /// State of a statement, by the rule of `docs/claims.md`.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum ClaimState: words {
        /// The statement holds.
        Holds = "holds",
        /// The statement does not hold.
        DoesNotHold = "does not hold",
        /// The figures are too close to the boundary for a decision, or the state changes with an assumed value within
        /// its plausible range.
        Undecided = "undecided",
        /// The statement holds because its cause was assumed: it does not hold with an assumed value at its neutral
        /// value.
        Assumed = "assumed",
    }
}

impl ClaimState {
    /// Whether the statement holds, where that is decided.
    pub fn decided(self) -> Option<bool> {
        match self {
            ClaimState::Holds => Some(true),
            ClaimState::DoesNotHold => Some(false),
            // A claim that holds only because its cause was put in is not counted as confirmed.
            // Scripts that read `holds` get null for it.
            ClaimState::Undecided | ClaimState::Assumed => None,
        }
    }
}

impl From<Answer> for ClaimState {
    fn from(answer: Answer) -> ClaimState {
        match answer {
            Answer::Yes => ClaimState::Holds,
            Answer::No => ClaimState::DoesNotHold,
            Answer::Near => ClaimState::Undecided,
        }
    }
}

/// A drawn figure.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Figure {
    /// `S3/figure3`.
    pub id: String,
    /// Title of the figure.
    pub title: String,
    /// The drawing, a complete SVG document.
    pub svg: String,
}

/// The numbers behind a figure that prints no numbers: columns of text.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct FigureTable {
    /// Identifier of the figure: `S0/figure5`.
    pub id: String,
    /// Title of the table.
    pub title: String,
    /// Headings of the columns, each with its unit.
    pub columns: Vec<String>,
    /// Rows, each with one cell per column.
    pub rows: Vec<Vec<String>>,
}

/// A row of a table: each cell behind the heading of its column.
pub(crate) type Row = Vec<(&'static str, String)>;

impl FigureTable {
    /// A table of `rows`, which all have the same headings.
    pub(crate) fn of(id: impl Into<String>, title: &str, rows: Vec<Row>) -> FigureTable {
        let headings = rows.first().into_iter().flatten().map(|(heading, _)| *heading);
        let headings: Vec<&str> = headings.collect();
        let cells = |row: Row| row.into_iter().map(|(_, cell)| cell).collect();
        FigureTable::new(id, title, headings, rows.into_iter().map(cells).collect())
    }

    /// A table with these headings.
    pub(crate) fn new<C: Into<String>>(
        id: impl Into<String>,
        title: impl Into<String>,
        columns: impl IntoIterator<Item = C>,
        rows: Vec<Vec<String>>,
    ) -> FigureTable {
        let columns = columns.into_iter().map(Into::into).collect();
        FigureTable { id: id.into(), title: title.into(), columns, rows }
    }
}

impl Figure {
    /// The drawing called `id`, and the table of its numbers.
    pub(crate) fn with_table<C: Into<String>>(
        id: String,
        title: &str,
        svg: String,
        columns: impl IntoIterator<Item = C>,
        rows: Vec<Vec<String>>,
    ) -> (Figure, FigureTable) {
        let table = FigureTable::new(id.clone(), title, columns, rows);
        (Figure { id, title: title.to_owned(), svg }, table)
    }
}

/// A simulation behind the cells, with figures that the paper does not print.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct RunSummary {
    /// Name in the plan.
    pub name: String,
    /// Device preset.
    pub device: String,
    /// Workload preset or trace.
    pub workload: String,
    /// Requests completed.
    pub requests: u64,
    /// Arrival of the last request, in s.
    pub simulated_seconds: f64,
    /// Wall time of the simulation.
    pub wall_seconds: f64,
    /// Mean latency inside the device, as in the paper.
    pub device_latency_ms: f64,
    /// Mean latency with the wait before the device (S3-37).
    pub latency_ms: f64,
    /// Share of the time with at least one request in service, 0 to 1 (S3-31).
    pub busy_share: f64,
    /// Blocks erased.
    pub erases: u64,
    /// Valid pages moved by cleaning.
    pub relocations: u64,
    /// Number of pages programmed divided by the number of pages the host wrote, without summaries; `null` without
    /// writes.
    pub write_amplification: Option<f64>,
    /// Energy above the energy of the idle device (S3-42).
    pub above_idle_joules: f64,
    /// Energy per request, idle share included (S3-42), in J.
    pub joules_per_request: f64,
    /// True if the simulation was stopped before its end.
    pub partial: bool,
}

impl RunSummary {
    /// What every paper tells of a run.
    pub(crate) fn of(name: String, result: &ssdyno_figures::RunResult) -> RunSummary {
        RunSummary {
            name,
            device: result.target.clone(),
            workload: result.workload.clone(),
            requests: result.requests,
            // Energies and erases stay at zero for papers without them. The terminal leaves out
            // columns that are zero in all runs.
            simulated_seconds: result.simulated_seconds,
            wall_seconds: result.wall_seconds,
            device_latency_ms: result.device_latency_ns.map_or(0.0, |l| l.mean / 1e6),
            latency_ms: result.latency_ns.as_ref().map_or(0.0, |l| l.all.mean / 1e6),
            write_amplification: result.write_amplification,
            partial: result.partial,
            ..RunSummary::default()
        }
    }
}

/// Everything about the selected part of a paper.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct PapersReport {
    /// Title of the paper.
    pub title: String,
    /// Printed numbers beside our results.
    pub cells: Vec<FigureCell>,
    /// Checked statements.
    pub claims: Vec<Claim>,
    /// Drawn figures.
    pub figures: Vec<Figure>,
    /// The numbers of figures.
    #[serde(default)]
    pub tables: Vec<FigureTable>,
    /// The simulations behind the results.
    pub runs: Vec<RunSummary>,
    /// Notes on the report.
    pub notes: Vec<String>,
    /// True if a simulation was stopped before its end.
    pub partial: bool,
}

impl PapersReport {
    /// Cells that should match and do not.
    pub fn mismatches(&self) -> impl Iterator<Item = &FigureCell> {
        // Cells whose printed number is wrong (E) do not count as mismatches. A difference from a
        // wrong number would otherwise look like an error of ours.
        self.cells.iter().filter(|cell| cell.expected_to_match && !cell.matches())
    }
}
