//! What a re-run says.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::answer::Answer;

/// One printed number and what becomes of it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct FigureCell {
    /// Paper, table, column, row with unit: `S3/table3/random_write/energy_joules`.
    pub id: String,
    /// What the paper prints; `null` where it prints nothing of what was run: a drive of the user's.
    pub printed: Option<f64>,
    /// The same, digit by digit.
    pub printed_text: String,
    /// What the paper's own printed parameters give; `null` where they give nothing, or where what
    /// they need was not run.
    pub as_printed_model: Option<f64>,
    /// What the corrected model gives; `null` where it was not run.
    pub ours: Option<f64>,
    /// (ours - printed) / printed.
    pub relative_error: Option<f64>,
    /// Largest error that counts as a match, as a share of `printed`: 1 %, 0.1 % for IOPS and time.
    pub tolerance: f64,
    /// Whether the corrected model should match: it was run in full, and the printed
    /// number is not wrong.
    pub expected_to_match: bool,
    /// What a reader must know; empty where nothing.
    pub note: String,
}

impl FigureCell {
    /// True if the cell was run and lies within its tolerance.
    pub fn matches(&self) -> bool {
        self.relative_error.is_some_and(|error| error.abs() <= self.tolerance)
    }
}

/// A statement about the paper, checked.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Claim {
    /// `S3/claims/iops_are_the_loads`.
    pub id: String,
    /// The statement.
    pub text: String,
    /// Whether it holds; `null` where that is not decided: what it needs was not run, it is undecided,
    /// or assumed (see `state`).
    pub holds: Option<bool>,
    /// What is to be thought of it; `null` where what it needs was not run.
    #[serde(default)]
    pub state: Option<ClaimState>,
    /// The numbers behind the answer.
    pub evidence: String,
    /// The assumed values that were varied for it; those that decide it first.
    #[serde(default)]
    pub assumptions: Vec<Assumption>,
}

/// A value that no paper prints, and what the claim is with others in its place. Each is varied alone.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Assumption {
    /// What it is.
    pub name: String,
    /// Where it stands: keys of the host, the device, the network or the plan.
    pub keys: Vec<String>,
    /// What is assumed, with its unit, or as a multiple of what the presets have.
    pub assumed: String,
    /// The least that is plausible.
    pub low: String,
    /// The most.
    pub high: String,
    /// The value at which the effect is not put in; `null` where there is none.
    pub neutral: Option<String>,
    /// Where the range comes from.
    pub reason: String,
    /// True if the state of the claim follows from it: the claim is gone at the neutral value, or is
    /// another one within the range.
    pub decides: bool,
    /// What the claim is at each value that was tried, by rising value.
    pub tried: Vec<Trial>,
}

/// A claim with one assumed value changed.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Trial {
    /// The value.
    pub value: String,
    /// What the runs with it say: never `assumed`.
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
    /// What is to be thought of a statement, by the rule of `docs/claims.md`.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum ClaimState: words {
        /// It holds.
        Holds = "holds",
        /// It does not.
        DoesNotHold = "does not hold",
        /// Its figures are too near to its boundary to say, or it is another one with an assumed value
        /// elsewhere in its plausible range.
        Undecided = "undecided",
        /// It holds because its cause was put in: it does not with an assumed value at its neutral one.
        Assumed = "assumed",
    }
}

impl ClaimState {
    /// Whether the statement holds, where that is decided.
    pub fn decided(self) -> Option<bool> {
        match self {
            ClaimState::Holds => Some(true),
            ClaimState::DoesNotHold => Some(false),
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

/// A figure, drawn.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Figure {
    /// `S3/figure3`.
    pub id: String,
    /// What it shows.
    pub title: String,
    /// The drawing, a complete SVG document.
    pub svg: String,
}

/// The numbers behind a figure that prints none of its own: columns of text for people.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct FigureTable {
    /// `S0/figure5`: that of the figure.
    pub id: String,
    /// What it shows.
    pub title: String,
    /// Heads of the columns, each with its unit.
    pub columns: Vec<String>,
    /// Rows, as many cells each as there are columns.
    pub rows: Vec<Vec<String>>,
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
    /// What the simulation took.
    pub wall_seconds: f64,
    /// Mean latency inside the device: what the paper prints.
    pub device_latency_ms: f64,
    /// Mean latency with the wait before the device (S3-37).
    pub latency_ms: f64,
    /// Share of the time with at least one request in service, 0 to 1 (S3-31).
    pub busy_share: f64,
    /// Blocks erased.
    pub erases: u64,
    /// Valid pages moved by cleaning.
    pub relocations: u64,
    /// Pages programmed by page written by the host, summaries left out; `null` without writes.
    pub write_amplification: Option<f64>,
    /// Energy above that of the idle device (S3-42).
    pub above_idle_joules: f64,
    /// Energy by request, idle share included (S3-42), in J.
    pub joules_per_request: f64,
    /// True if it was stopped before its end.
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
    /// Printed numbers beside ours.
    pub cells: Vec<FigureCell>,
    /// Statements, checked.
    pub claims: Vec<Claim>,
    /// Figures, drawn.
    pub figures: Vec<Figure>,
    /// The numbers of figures.
    #[serde(default)]
    pub tables: Vec<FigureTable>,
    /// The simulations behind them.
    pub runs: Vec<RunSummary>,
    /// What a reader must know of the whole.
    pub notes: Vec<String>,
    /// True if something was stopped before its end.
    pub partial: bool,
}

impl PapersReport {
    /// Cells that should match and do not.
    pub fn mismatches(&self) -> impl Iterator<Item = &FigureCell> {
        self.cells.iter().filter(|cell| cell.expected_to_match && !cell.matches())
    }
}
