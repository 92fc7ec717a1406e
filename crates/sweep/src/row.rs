//! What a sweep gives: a row a design.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ceiling::Ceiling;
use crate::curve::Curve;
use crate::generations::SearchOutcome;
use crate::plan::SweepPlan;

/// Version of the shape of [`SweepResult`]. It rises when a key is renamed, removed or changes its meaning.
pub const SWEEP_VERSION: u32 = 1;

/// What became of a design.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DesignState {
    /// It has figures.
    Done,
    /// Its values do not go together; nothing was run.
    Impossible,
    /// Its run failed; figures of it are those until then, and it is not judged.
    Failed,
    /// Its cost breaks a bound of `require`, which is known before the run: nothing was run.
    RuledOut,
    /// Its run surely broke a bound of `require` and was ended: its figures are those until then.
    Stopped,
}

/// Where a design stands among the others.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// No other design is as good in all objectives and better in one.
    Front,
    /// A design of the front is better, but by no more than the intervals of the figures.
    Undecided,
    /// A design of the front is better.
    Dominated,
    /// It breaks a bound of `require`.
    Excluded,
}

/// A figure of a design.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SweepFigure {
    /// The figure.
    pub value: f64,
    /// Lower bound of the true value, with 95 %; left out where the run cannot tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// Upper bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
}

/// A design, and what it gave.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SweepRow {
    /// Its number, from 0.
    pub design: u64,
    /// The value of each axis, in the order of `vary`.
    pub values: Vec<Value>,
    /// What became of it.
    pub state: DesignState,
    /// Why it is not done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The bound of `require` that it surely breaks, where it was not run, or not to its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<String>,
    /// Random seed of the run.
    pub seed: u64,
    /// The first 16 hexadecimal digits of the SHA-256 of its spec in JSON: equal specs have equal figures.
    pub spec_hash: String,
    /// Requests completed without error.
    #[serde(default)]
    pub requests: u64,
    /// Requests that ended in an error.
    #[serde(default)]
    pub errors: u64,
    /// Whether requests arrived faster than the target completed them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub overloaded: bool,
    /// Figures by the path of their key in `result.json`, and `cost`.
    #[serde(default)]
    pub figures: BTreeMap<String, SweepFigure>,
    /// Where it stands; left out where it is not judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub standing: Option<Standing>,
}

impl SweepRow {
    /// The row of a design that has no figures yet.
    pub(crate) fn new(design: u64, values: Vec<Value>, seed: u64) -> SweepRow {
        SweepRow {
            design,
            values,
            state: DesignState::Impossible,
            why: None,
            stopped: None,
            seed,
            spec_hash: String::new(),
            requests: 0,
            errors: 0,
            overloaded: false,
            figures: BTreeMap::new(),
            standing: None,
        }
    }

    /// A figure of the design.
    pub fn figure(&self, name: &str) -> Option<f64> {
        self.figures.get(name).map(|figure| figure.value)
    }
}

/// What a key does to an objective, over all values of the other keys.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Effect {
    /// The key that is varied.
    pub key: String,
    /// The objective.
    pub figure: String,
    /// The share of the variance of the logarithm of the objective that the values of this key explain alone, 0 to 1
    /// (eta squared). What all keys together leave is due to their interactions.
    pub share: f64,
    /// Each value with what the objective is on average there.
    pub levels: Vec<EffectLevel>,
}

/// A value of a key.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct EffectLevel {
    /// The value.
    pub value: Value,
    /// Geometric mean of the objective over the designs with it.
    pub mean: f64,
    /// How many designs have it.
    pub designs: u64,
}

/// Pairs of keys that act together.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Interactions {
    /// How many products of two keys were examined, over all objectives.
    pub examined: u64,
    /// Those whose interval excludes 1, the strongest first. The intervals of all that were examined cover the truth
    /// together with 95 %.
    pub found: Vec<Interaction>,
}

/// How the effect of one key depends on another.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Interaction {
    /// The objective.
    pub figure: String,
    /// The key whose effect is looked at.
    pub key: String,
    /// It goes from the first of these values to the second: the lowest and the highest, or of names the first and another.
    pub between: [Value; 2],
    /// The key on which that effect depends.
    pub by: String,
    /// Two of its values, likewise.
    pub at: [Value; 2],
    /// By what the objective is multiplied when `key` goes between its values, at each of the values of `by`; ordered
    /// other keys are in their middle.
    pub factors: [f64; 2],
    /// The second factor by the first; 1: the keys do not act together.
    pub ratio: f64,
    /// Lower bound of the ratio.
    pub low: f64,
    /// Upper bound of the ratio.
    pub high: f64,
}

/// A sweep, as `result.json` has it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SweepResult {
    /// [`SWEEP_VERSION`] of the program that wrote it.
    pub sweep_version: u32,
    /// What was asked for.
    pub plan: SweepPlan,
    /// How many designs the plan has; of a search, how many it asked for.
    pub designs: u64,
    /// Whether some of them were not run.
    pub partial: bool,
    /// How many have figures.
    pub done: u64,
    /// How many have values that do not go together.
    pub impossible: u64,
    /// How many failed.
    pub failed: u64,
    /// How many were not run because their cost breaks a bound.
    #[serde(default)]
    pub ruled_out: u64,
    /// How many runs ended early because they surely broke a bound.
    #[serde(default)]
    pub stopped: u64,
    /// What each key does to each objective, the greatest first.
    pub effects: Vec<Effect>,
    /// Pairs of keys that act on an objective together.
    #[serde(default)]
    pub interactions: Interactions,
    /// Throughput and latency against the key, where one number is varied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub curve: Option<Curve>,
    /// How the search went, where results decided which designs were run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<SearchOutcome>,
    /// The highest rate within the bound of `require`, of a bisection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceiling: Option<Ceiling>,
    /// A row a design, in the order of their numbers.
    pub rows: Vec<SweepRow>,
    /// What a reader of the figures must know.
    #[serde(default)]
    pub notes: Vec<String>,
}

impl SweepResult {
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
