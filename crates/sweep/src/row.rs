//! What a sweep gives: a row a design.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use ssdyno_block::counted;
use ssdyno_figures::{Warning, WarningKind};
use ssdyno_session::Failure;

use crate::ceiling::{Ceiling, FailedRequests};
use crate::cost::COSTS;
use crate::curve::Curve;
use crate::generations::SearchOutcome;
use crate::latencies::{needs_run, survives_overload};
use crate::objective::{Objective, Requirement};
use crate::plan::SweepPlan;

/// Version of the shape of [`SweepResult`]. It rises when a key is renamed, removed or changes its meaning.
pub const SWEEP_VERSION: u32 = 1;

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

ssdyno_block::named! {
    /// State of a design.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum DesignState: word {
        /// The design has figures.
        Done = "done",
        /// The values are not a valid combination; nothing was run.
        #[default]
        Impossible = "impossible",
        /// The run failed; its figures cover the time until the failure, and the design is not ranked.
        Failed = "failed",
        /// The cost breaks a bound of `require` before the run: nothing was run.
        RuledOut = "ruled_out",
        /// The run certainly broke a bound of `require` and was ended: its figures cover the time until then.
        Stopped = "stopped",
    }
}

/// Rank of a design among the others.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// No other design is as good in all objectives and better in one.
    Front,
    /// A design of the front is better, but only within the intervals of the figures. Of a bisection, also a rate that
    /// may be within the bound or beyond it.
    Undecided,
    /// A design of the front is better.
    Dominated,
    /// The design breaks a bound of `require`. Of a bisection, also a rate at which requests fail.
    Excluded,
    /// The design is overloaded, and an objective or a bound is not a rate or a cost: the figures describe a load that
    /// the target does not sustain, so the design is not ranked.
    Overloaded,
    /// A warning says that the figures can look better than they are, for example because a write buffer absorbed the
    /// run, or an objective or a bound depends on a figure that is only a lower bound. The design is not ranked.
    Unrepresentative,
}

/// A figure of a design.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct SweepFigure {
    /// The figure.
    pub value: f64,
    /// Whether `value` is itself a lower bound, because requests never completed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_lower_bound: bool,
    /// Lower bound of the true value, with 95 %; left out if the run does not give it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// Upper bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
}

/// A design and its figures.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct SweepRow {
    /// Number of the design, from 0.
    pub design: u64,
    /// The value of each axis, in the order of `vary`.
    pub values: Vec<Value>,
    /// State of the design.
    pub state: DesignState,
    /// Reason if the design is not `done`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The bound of `require` that the design certainly breaks, if it was not run, or not to its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<String>,
    /// Random seed of the run.
    pub seed: u64,
    /// The first 16 hexadecimal digits of the SHA-256 of the design's spec in JSON: equal specs have equal figures.
    pub spec_hash: String,
    /// Requests completed without error.
    #[serde(default)]
    pub requests: u64,
    /// Requests that ended in an error.
    #[serde(default)]
    pub errors: u64,
    /// Requests that never completed: given up (also counted in `errors`), or outstanding at the end of the run. With
    /// such requests, latencies can be lower bounds.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unanswered: u64,
    /// Whether requests arrived faster than the target completed them. The latencies then grow with the length of the
    /// run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub overloaded: bool,
    /// Greatest number of outstanding requests of an overloaded run; left out without such a limit. The target may
    /// complete more requests per second with more outstanding.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outstanding_limit: Option<u64>,
    /// Kinds of the warnings of the run, each once. `ssdyno run` of the design shows their texts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<WarningKind>,
    /// The warning because of which the figures can look better than they are, with its remedy; of several, the one that requires
    /// the most writes. Left out without such a warning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flattered_by: Option<Warning>,
    /// Notes of the run. The notes of the sweep contain those that all designs with figures have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Figures by the path of their key in `result.json`, `cost`, and `cost_per_gib`: the cost of an SSD divided by its
    /// usable capacity in GiB.
    #[serde(default)]
    pub figures: BTreeMap<String, SweepFigure>,
    /// Rank of the design; left out if it is not ranked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub standing: Option<Standing>,
    /// Whether the design is on the front within chance: another design of the front is clearly better in an objective
    /// and not clearly worse in any, by their 95 % intervals.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub within_chance: bool,
}

impl SweepRow {
    /// The row of a design that has no figures yet.
    pub(crate) fn new(design: u64, values: Vec<Value>, seed: u64) -> SweepRow {
        SweepRow { design, values, seed, ..SweepRow::default() }
    }

    /// The requests that failed; `None` if none did.
    pub(crate) fn failed_requests(&self) -> Option<FailedRequests> {
        // Those given up are in both counts.
        let failed = self.errors.max(self.unanswered);
        let requests = self.requests + failed;
        (failed > 0).then_some(FailedRequests { failed, requests })
    }

    /// A figure of the design.
    pub fn figure(&self, name: &str) -> Option<f64> {
        self.figures.get(name).map(|figure| figure.value)
    }

    /// Whether a warning says that the figures can look better than they are, beside those of other designs.
    pub fn is_unrepresentative(&self) -> bool {
        // The queue of an overloaded run grows, so its latency rises. Its rate is the capacity of the target all the same.
        let by_queue = |kind: WarningKind| self.overloaded && kind == WarningKind::Slowing;
        self.warnings.iter().any(|kind| favours(*kind) && !by_queue(*kind))
    }

    /// Bounds of the true value of the figure `name`, with 95 %. A cost is exact. A run that gives no interval says nothing
    /// of the precision of its figure, so any value is possible.
    pub(crate) fn bounds(&self, name: &str) -> Option<[f64; 2]> {
        let figure = self.figures.get(name)?;
        Some(match figure.low {
            // A missing upper bound means that the interval is open: the true value
            // may be anything above the lower bound.
            Some(low) => [low, figure.high.unwrap_or(f64::INFINITY)],
            None if COSTS.contains(&name) => [figure.value; 2],
            None => [f64::NEG_INFINITY, f64::INFINITY],
        })
    }

    /// Whether the figure `name` is only a lower bound.
    pub(crate) fn is_lower_bound(&self, name: &str) -> bool {
        self.figures.get(name).is_some_and(|figure| figure.is_lower_bound)
    }

    /// Whether the design keeps `bound`; `None` if its figure is a lower bound below the bound. Without the figure, it does
    /// not.
    pub(crate) fn keeps(&self, bound: &Requirement) -> Option<bool> {
        let Some(figure) = self.figures.get(bound.figure()) else { return Some(false) };
        bound.decides(figure.value, figure.is_lower_bound)
    }

    /// Whether an objective is only a lower bound, or a bound of `require` is undecided because its figure is one.
    pub(crate) fn is_open(&self, objectives: &[Objective], require: &[Requirement]) -> bool {
        objectives.iter().any(|one| self.is_lower_bound(one.figure))
            || require.iter().any(|bound| self.keeps(bound).is_none())
    }

    /// Whether the design has no rank by these, because its figures can look better than they are.
    pub(crate) fn is_flattered(&self, objectives: &[Objective], require: &[Requirement]) -> bool {
        self.is_open(objectives, require)
            || (self.is_unrepresentative() && needs_run(objectives, require))
    }

    /// The same as [`figure`](SweepRow::figure), without figures that cannot be compared: those of an overloaded run
    /// but its rate, lower bounds, and all of a run that looks better than it is. Costs are always there.
    pub(crate) fn lasting_figure(&self, name: &str) -> Option<f64> {
        let is_lost = (self.overloaded && !survives_overload(name))
            || self.is_lower_bound(name)
            || (self.is_unrepresentative() && !COSTS.contains(&name));
        self.figure(name).filter(|_| !is_lost)
    }
}

/// Whether a warning of this kind favours one design over another. Garbage collection settles only after millions of
/// requests, so under a skewed load it is unsettled in all designs of a sweep, and each is then as far from its end. A
/// front without these designs would be empty; a note names them.
pub(crate) fn favours(kind: WarningKind) -> bool {
    kind.flatters() && kind != WarningKind::Unsettled
}

/// Effect of a key on an objective, over all values of the other keys.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Effect {
    /// The varied key.
    pub key: String,
    /// The objective.
    pub figure: String,
    /// Share of the variance of the logarithm of the objective that the values of this key explain alone, 0 to 1. In a
    /// complete grid, it is eta squared, and the rest after all keys is due to their interactions. In other designs, it is
    /// the variance of the part of this key in a linear model of all keys, minus the average contribution of chance.
    pub share: f64,
    /// Whether chance alone may explain this share: the key may have no influence. With 95 %
    /// confidence, all other shares of the sweep are real. In a complete grid, chance plays no
    /// part.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub within_chance: bool,
    /// Empty for a search, whose designs at two values differ in other keys, too. Otherwise
    /// each value with the mean of the objective: numbers and sizes by value, names in the order of the axis.
    pub levels: Vec<EffectLevel>,
}

/// A value of a key.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct EffectLevel {
    /// The value. More than 8 values that were drawn from a range, and more than 64 other values, are divided
    /// into five ranges, such as `0.07 to 0.12`.
    pub value: Value,
    /// Geometric mean of the objective over the designs with this value.
    pub mean: f64,
    /// Number of designs with this value.
    pub designs: u64,
}

/// Pairs of keys that interact.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Interactions {
    /// Number of products of two keys that were examined, over all objectives.
    pub examined: u64,
    /// Interactions whose interval excludes 1, the strongest first, those without a ratio last. The intervals of all examined interactions together
    /// cover the true values with 95 %.
    pub found: Vec<Interaction>,
}

/// Dependence of one key's effect on another key.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Interaction {
    /// The objective.
    pub figure: String,
    /// The key with the effect.
    pub key: String,
    /// The first and the second value of the key: the lowest and the highest, or for names the first and another name.
    pub between: [Value; 2],
    /// The key on which the effect depends.
    pub by: String,
    /// Two values of that key, selected in the same way.
    pub at: [Value; 2],
    /// Factor on the objective from the first to the second value of `key`, at each of the values of `by`. In a complete grid:
    /// of the geometric means over the other keys. Otherwise `fitted`. Left out if the ratio is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub factors: Option<[f64; 2]>,
    /// Whether `factors` are those of the fitted model, with other ordered keys at their middle.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fitted: bool,
    /// The second factor divided by the first, in the fitted model; 1: the keys do not interact. Left out if the upper
    /// bound of its interval is more than 100 times the lower bound: the designs then do not
    /// determine the ratio.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio: Option<f64>,
    /// Lower bound of the ratio. Without a ratio, only the bound that is nearer to 1 is present.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// Upper bound of the ratio; without a ratio, left out like the lower bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
}

/// A sweep, as in `result.json`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SweepResult {
    /// Version of this format ([`SWEEP_VERSION`]) in the program that wrote the result.
    pub sweep_version: u32,
    /// The plan.
    pub plan: SweepPlan,
    /// Number of designs in the plan; for a search, the requested number.
    pub designs: u64,
    /// Whether some designs were not run.
    pub partial: bool,
    /// Number of designs with figures.
    pub done: u64,
    /// Number of designs with invalid combinations of values.
    pub impossible: u64,
    /// Number of designs that failed.
    pub failed: u64,
    /// Number of designs that were not run because their cost breaks a bound.
    #[serde(default)]
    pub ruled_out: u64,
    /// Number of runs that ended early because they certainly broke a bound.
    #[serde(default)]
    pub stopped: u64,
    /// Number of the designs with figures that are overloaded: requests arrived faster than the target completed them.
    /// They are excluded from the front if an objective or a bound is not a rate or a cost, and from the effects on other
    /// figures.
    #[serde(default)]
    pub overloaded: u64,
    /// Number of the designs with figures that can look better than they are, according to a warning. They are
    /// excluded from the front and from the effects, except for costs. The number includes designs for which an
    /// objective or an undecided bound of `require` is only a lower bound; these are excluded from the effects on that
    /// figure alone.
    #[serde(default)]
    pub unrepresentative: u64,
    /// Effects of each key on each objective, the greatest first; effects that chance may explain come last.
    pub effects: Vec<Effect>,
    /// Pairs of keys that interact in an objective.
    #[serde(default)]
    pub interactions: Interactions,
    /// Throughput and latency against the key, if one number is varied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub curve: Option<Curve>,
    /// Progress of the search, if earlier results decided which designs were run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<SearchOutcome>,
    /// The highest rate within the bound of `require`, for a bisection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceiling: Option<Ceiling>,
    /// One row per design, in the order of their numbers.
    pub rows: Vec<SweepRow>,
    /// Notes on the figures.
    #[serde(default)]
    pub notes: Vec<String>,
    /// The journal of a sweep with nothing left to run, which is removed when the result is written.
    #[serde(skip)]
    pub(crate) finished_journal: Option<PathBuf>,
}

impl SweepResult {
    /// Why a sweep of one load is no success although all its runs ended: requests failed, as a single run judges it.
    pub fn failed_requests(&self) -> Option<Failure> {
        // A bisection says by its ceiling what its failures mean.
        let is_bisection = self.ceiling.is_some();
        let failed: u64 = self.rows.iter().map(|row| row.errors).sum();
        (failed > 0 && !is_bisection).then(|| {
            let runs = self.rows.iter().filter(|row| row.errors > 0).count() as u64;
            let message = format!(
                "{} ended in an error, in {}",
                counted(failed, "request", "requests"),
                counted(runs, "run", "runs")
            );
            Failure::failed(message)
                .with_help("`ssdyno run` with the value of such a row shows why its requests fail")
        })
    }

    /// The designs of the front, the best by the first objective first.
    pub fn front(&self) -> Vec<&SweepRow> {
        let is_front = |row: &&SweepRow| row.standing == Some(Standing::Front);
        let mut front: Vec<&SweepRow> = self.rows.iter().filter(is_front).collect();
        if let Some(objective) = self.plan.objectives.first() {
            let key = |row: &SweepRow| row.figure(objective.figure).unwrap_or(f64::NAN);
            front.sort_by(|a, b| match objective.more_is_better {
                true => key(b).total_cmp(&key(a)),
                false => key(a).total_cmp(&key(b)),
            });
        }
        front
    }
}
