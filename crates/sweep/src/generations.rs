//! How a search went: its generations, what their fronts cover, and why it stopped.

use std::collections::BTreeMap;

use heuropt::core::{Candidate, Evaluation};
use heuropt::metrics::hypervolume_nd;
use heuropt::pareto::non_dominated_sort;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ssdyno_block::counted;

use crate::cost::COSTS;
use crate::latencies::{needs_capacity, survives_overload};
use crate::objective::{Objective, Requirement};
use crate::row::{DesignState, SweepRow};
use crate::search::losses;

/// Objectives at the most for hypervolumes, whose exact computation grows with the front to the power of their number.
const OBJECTIVES_MAX: usize = 4;

/// How far the reference point lies beyond the worst values of the front, as a share of the range of the front.
const MARGIN: f64 = 0.1;

/// By how much a design that cannot be ranked breaks its bounds at the least: as much as a bound that is missed by its own size.
const OVERLOADED: f64 = 1.0;

/// Reason why a search began no further designs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SearchEnd {
    /// The search ran `designs` designs.
    Budget,
    /// The time limit (`time`) was reached.
    Time,
    /// No design is left.
    Exhausted,
    /// The last ten generations added nothing to the front.
    NoImprovement,
    /// The user interrupted the search.
    Interrupted,
}

/// Designs that a search chose together, from the results of earlier generations.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SearchGeneration {
    /// Number of designs run so far, without impossible or ruled-out designs.
    pub runs: u64,
    /// Number of designs on the front so far, each combination of objectives counted once.
    pub front: u64,
    /// The hypervolume: share of the box between the best values of the last front and the reference point that this
    /// front covers, 0 to 1. Left out for more than four objectives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hypervolume: Option<f64>,
}

/// Progress of a search.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SearchOutcome {
    /// The method, which is `nsga-ii`.
    pub method: String,
    /// Number of designs from the values of all axes; a range counts as at most 1001 values.
    pub space: f64,
    /// Number of designs run, without impossible or ruled-out designs.
    pub runs: u64,
    /// Reason why the search began no further designs.
    pub stopped: SearchEnd,
    /// The reference point of the hypervolumes, by objective: the worst value of the last front, plus a tenth of its
    /// range.
    pub reference: BTreeMap<String, f64>,
    /// The generations in order.
    pub generations: Vec<SearchGeneration>,
}

/// Generations over which the hypervolume of a search must have settled.
const SETTLED: usize = 4;

/// Growth of the hypervolume over these generations that counts.
const GROWTH: f64 = 0.01;

impl SearchOutcome {
    /// That the front still improved when the search ended by its budget or time.
    pub(crate) fn note(&self) -> Option<String> {
        let key = match self.stopped {
            SearchEnd::Budget => "designs",
            SearchEnd::Time => "time",
            _ => return None,
        };
        let last = self.generations.last()?.hypervolume?;
        let earlier = SETTLED.min(self.generations.len() - 1);
        let before = self.generations[self.generations.len() - 1 - earlier].hypervolume?;
        (last > 0.0 && before < last * (1.0 - GROWTH)).then(|| {
            format!(
                "the front still improved when the search ended: its hypervolume was {:.1} % of the last \
                 value {} earlier; raise `{key}`",
                100.0 * before / last,
                counted(earlier as u64, "generation", "generations")
            )
        })
    }
}

/// What a search judges `row` by: losses, and by how much it breaks bounds. A row without the figures is the worst.
pub(crate) fn evaluation(
    row: &SweepRow,
    objectives: &[Objective],
    require: &[Requirement],
) -> Evaluation {
    let loss = |one: &Objective| {
        let value = row.figure(one.figure).filter(|value| value.is_finite())?;
        Some(if one.more_is_better { -value } else { value })
    };
    let all: Option<Vec<f64>> = objectives.iter().map(loss).collect();
    let excess = |bound: &Requirement| {
        row.figure(bound.figure()).map_or(f64::INFINITY, |value| bound.excess(value))
    };
    match all {
        Some(all) if row.state == DesignState::Stopped => {
            // Requests that were in flight at the end may have brought the figure back within its bound. The run
            // did break the bound, so the excess stays above zero.
            let excess: f64 = require.iter().map(excess).sum();
            Evaluation::constrained(all, excess.max(f64::MIN_POSITIVE))
        }
        Some(all)
            if row.state == DesignState::Done
                && row.overloaded
                && needs_capacity(objectives, require) =>
        {
            // The search needs a direction here, too: of two overloaded designs the one that completes more
            // requests per second is nearer to the rate of arrivals.
            let others = require.iter().filter(|bound| survives_overload(bound.figure()));
            let behind = 1.0 / row.figure("iops").unwrap_or_default().max(1.0);
            Evaluation::constrained(all, OVERLOADED + others.map(excess).sum::<f64>() + behind)
        }
        // A design that looks better than it is must not lead the search to others like it.
        Some(all) if row.state == DesignState::Done && row.is_flattered(objectives, require) => {
            let excess: f64 = require.iter().map(excess).sum();
            Evaluation::constrained(all, OVERLOADED + excess)
        }
        Some(all) if row.state == DesignState::Done => {
            Evaluation::constrained(all, require.iter().map(excess).sum())
        }
        _ => {
            // The search needs a direction: a design that is ruled out by 1 % is nearer to
            // the bounds than one at ten times the cost.
            let is_cost = |bound: &&Requirement| COSTS.contains(&bound.figure());
            let costs =
                require.iter().filter(|bound| row.state == DesignState::RuledOut && is_cost(bound));
            let excess: f64 = costs.map(excess).sum();
            let excess = if excess > 0.0 { excess } else { f64::INFINITY };
            Evaluation::constrained(vec![0.0; objectives.len()], excess)
        }
    }
}

/// The fronts of a search, generation by generation.
#[derive(Default)]
pub(crate) struct Fronts {
    /// Losses of the front of all until now, each once.
    front: Vec<Vec<f64>>,
    /// Runs until then, and the front.
    past: Vec<(u64, Vec<Vec<f64>>)>,
    /// The worst loss of any feasible design.
    worst: Vec<f64>,
    /// By how much bounds are broken at the least, until a design keeps all.
    excess: Option<f64>,
}

impl Fronts {
    /// Ends a generation after `runs` runs in all; says whether its designs moved the front, or came nearer to the bounds while
    /// there is none.
    pub(crate) fn add(&mut self, evaluations: &[Evaluation], runs: u64) -> bool {
        let feasible = evaluations.iter().filter(|one| one.is_feasible());
        // The front of all generations so far is kept, not only that of the last. Each
        // generation is compared with everything before it.
        let mut all = self.front.clone();
        for one in feasible {
            match self.worst.is_empty() {
                true => self.worst.clone_from(&one.objectives),
                false => {
                    let pairs = self.worst.iter_mut().zip(&one.objectives);
                    pairs.for_each(|(worst, value)| *worst = worst.max(*value));
                }
            }
            // Equal combinations of losses count once. Several designs with the same figures
            // would otherwise look like a larger front.
            if !all.contains(&one.objectives) {
                all.push(one.objectives.clone());
            }
        }
        let known = self.front.len();
        let candidates: Vec<Candidate<()>> = candidates(&all);
        let first = non_dominated_sort(&candidates, &losses(self.worst.len())).into_iter().next();
        let first = first.unwrap_or_default();
        let is_moved = first.iter().any(|at| *at >= known);
        self.front = first.into_iter().map(|at| all[at].clone()).collect();
        self.past.push((runs, self.front.clone()));
        // Before any design keeps all bounds, coming nearer to them is progress, too. Without this rule
        // the search would give up after ten generations.
        let least = evaluations.iter().map(|one| one.constraint_violation).reduce(f64::min);
        let is_nearer = least.is_some_and(|least| least < self.excess.unwrap_or(f64::INFINITY));
        if is_nearer {
            self.excess = least;
        }
        is_moved || (is_nearer && self.front.is_empty())
    }

    /// The generations, and the reference point by objective.
    pub(crate) fn conclude(
        self,
        objectives: &[Objective],
    ) -> (Vec<SearchGeneration>, BTreeMap<String, f64>) {
        // One reference point for all generations, from the last front. With a point of its own for
        // each of them the hypervolumes could not be compared.
        let reference = reference(&self.front, &self.worst);
        let most = volume(&ideal(&self.front), &reference);
        let generations = self.past.iter().map(|(runs, front)| SearchGeneration {
            runs: *runs,
            front: front.len() as u64,
            hypervolume: most.map(|most| volume(front, &reference).unwrap_or_default() / most),
        });
        let values = objectives.iter().zip(&reference).map(|(objective, loss)| {
            let value = if objective.more_is_better { -loss } else { *loss };
            (objective.figure.to_owned(), value)
        });
        (generations.collect(), values.collect())
    }
}

#[cfg(test)]
impl Fronts {
    pub(crate) fn losses(&self) -> Vec<Vec<f64>> {
        self.front.clone()
    }
}

fn candidates(losses: &[Vec<f64>]) -> Vec<Candidate<()>> {
    losses.iter().map(|one| Candidate::new((), Evaluation::new(one.clone()))).collect()
}

/// The point of the least losses, alone.
fn ideal(front: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let least = |one: Vec<f64>, other: &Vec<f64>| {
        one.iter().zip(other).map(|(a, b)| a.min(*b)).collect::<Vec<f64>>()
    };
    front.first().map(|first| front.iter().fold(first.clone(), least)).into_iter().collect()
}

/// The worst of the front and a tenth of its range more. Where the front has one value of a loss, the worst of all designs
/// takes the place of the worst of the front.
fn reference(front: &[Vec<f64>], worst: &[f64]) -> Vec<f64> {
    let beyond = |(at, worst): (usize, &f64)| {
        let values = || front.iter().map(|one| one[at]);
        let low = values().fold(f64::INFINITY, f64::min);
        let high = values().fold(f64::NEG_INFINITY, f64::max);
        // If all designs have the same loss, the range is zero, and so would be every
        // volume. A tenth of the value takes its place.
        let high = if high > low { high } else { *worst };
        let range = if high > low { high - low } else { low.abs().max(f64::MIN_POSITIVE) };
        high + MARGIN * range
    };
    worst.iter().enumerate().map(beyond).collect()
}

/// What `front` covers; `None` where there is nothing, or where it would take too long.
pub(crate) fn volume(front: &[Vec<f64>], reference: &[f64]) -> Option<f64> {
    let is_known = (1..=OBJECTIVES_MAX).contains(&reference.len()) && !front.is_empty();
    is_known.then(|| hypervolume_nd(&candidates(front), &losses(reference.len()), reference))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::SweepFigure;

    #[test]
    fn a_search_that_still_improves_says_so() {
        let search = |stopped, volumes: [f64; 5]| SearchOutcome {
            method: "nsga-ii".to_owned(),
            space: 1e6,
            runs: 100,
            stopped,
            reference: BTreeMap::new(),
            generations: volumes
                .map(|one| SearchGeneration { runs: 20, front: 3, hypervolume: Some(one) })
                .to_vec(),
        };
        let rising = [0.5, 0.6, 0.778, 0.79, 0.8];
        let told = search(SearchEnd::Budget, rising).note().unwrap();
        // 0.5 of 0.8, four generations before the last one.
        assert!(told.contains("62.5 %") && told.ends_with("raise `designs`"), "{told}");
        assert!(search(SearchEnd::Time, rising).note().unwrap().ends_with("raise `time`"));
        assert_eq!(search(SearchEnd::NoImprovement, rising).note(), None);
        assert_eq!(search(SearchEnd::Budget, [0.799, 0.5, 0.8, 0.8, 0.8]).note(), None);
    }

    #[test]
    fn an_overloaded_design_is_worse_than_any_other_and_has_a_direction() {
        let row = |overloaded, iops, p99| {
            let figure = |value| SweepFigure { value, ..SweepFigure::default() };
            let figures = [("iops", iops), ("latency_ns.p99", p99)];
            let figures = figures.map(|(name, value)| (name.to_owned(), figure(value))).into();
            let state = DesignState::Done;
            SweepRow { overloaded, state, figures, ..SweepRow::new(0, Vec::new(), 1) }
        };
        let violation = |row: SweepRow, objective: &str| {
            evaluation(&row, &[objective.parse().unwrap()], &[]).constraint_violation
        };
        assert_eq!(violation(row(false, 1000.0, 1e6), "p99"), 0.0);
        let [slow, fast] = [1000.0, 2000.0].map(|iops| violation(row(true, iops, 1e3), "p99"));
        assert!(slow > fast && fast > 0.0, "{slow} {fast}");
        assert_eq!(violation(row(true, 1000.0, 1e3), "iops"), 0.0);
    }
}
