//! The Pareto front: designs that no other beats in every objective.

use crate::ceiling::Ceiling;
use crate::latencies::needs_capacity;
use crate::objective::{Objective, Requirement};
use crate::row::{DesignState, Standing, SweepRow};
use crate::swept::number;

/// A figure as a loss - less is better - with its bounds.
#[derive(Clone, Copy)]
struct Loss {
    value: f64,
    low: f64,
    high: f64,
}

impl Loss {
    fn of(row: &SweepRow, objective: Objective) -> Option<Loss> {
        let value = row.figure(objective.figure)?;
        let [low, high] = row.bounds(objective.figure)?;
        Some(match objective.more_is_better {
            true => Loss { value: -value, low: -high, high: -low },
            // The sign changes the direction, so the
            // bounds change places as well.
            false => Loss { value, low, high },
        })
    }
}

/// Whether `one` is as good as `other` everywhere and better somewhere.
fn dominates(one: &[Loss], other: &[Loss]) -> bool {
    let mut better = false;
    for (one, other) in one.iter().zip(other) {
        if one.value > other.value {
            return false;
        }
        better |= one.value < other.value;
    }
    better
}

/// Whether `one`, which dominates `other`, is better beyond both intervals somewhere.
fn surely(one: &[Loss], other: &[Loss]) -> bool {
    one.iter().zip(other).any(|(one, other)| one.high < other.low)
}

/// Says of each row where it stands. A row without one of the figures is not judged.
pub(crate) fn judge(rows: &mut [SweepRow], objectives: &[Objective], require: &[Requirement]) {
    let mut judged: Vec<(usize, Vec<Loss>)> = Vec::new();
    for (at, row) in rows.iter_mut().enumerate() {
        let is_given_up = matches!(row.state, DesignState::RuledOut | DesignState::Stopped);
        // A design that was given up is excluded by its bound,
        // although it has no complete figures.
        row.standing = is_given_up.then_some(Standing::Excluded);
        row.within_chance = false;
        if row.state != DesignState::Done {
            continue;
        }
        // A queue that grows during the whole run makes latencies a matter of the run's length. Any place
        // among the others, also one within a bound, would be due to that length. Energy and processor time
        // of a load that the target does not carry are not comparable, either.
        if row.overloaded && needs_capacity(objectives, require) {
            row.standing = Some(Standing::Overloaded);
            continue;
        }
        let losses: Option<Vec<Loss>> =
            objectives.iter().map(|objective| Loss::of(row, *objective)).collect();
        let breaks = |bound: &Requirement| row.keeps(bound) == Some(false);
        match losses {
            None => {}
            Some(_) if require.iter().any(breaks) => row.standing = Some(Standing::Excluded),
            // A bound that is broken by figures that are too good is broken in truth, so this comes after it.
            Some(_) if row.is_flattered(objectives, require) => {
                row.standing = Some(Standing::Unrepresentative);
            }
            Some(losses) => judged.push((at, losses)),
        }
    }
    // In ascending order of the losses, a row comes after all rows that dominate it. The front therefore only
    // grows, and each row is compared with the front alone.
    judged.sort_by(|(_, a), (_, b)| {
        let mut pairs = a.iter().zip(b).map(|(a, b)| a.value.total_cmp(&b.value));
        pairs.find(|order| order.is_ne()).unwrap_or(std::cmp::Ordering::Equal)
    });
    let mut front: Vec<(usize, &[Loss])> = Vec::new();
    for (at, losses) in &judged {
        let (mut beaten, mut sure) = (false, false);
        for (_, one) in front.iter().filter(|(_, one)| dominates(one, losses)) {
            beaten = true;
            // A design that is dominated by values may still be as good, if the intervals overlap in every
            // objective. It stays undecided, and the user may run it longer.
            sure |= surely(one, losses);
        }
        rows[*at].standing = Some(match (beaten, sure) {
            (false, _) => Standing::Front,
            (true, false) => Standing::Undecided,
            (true, true) => Standing::Dominated,
        });
        if rows[*at].standing == Some(Standing::Front) {
            front.push((*at, losses));
        }
    }
    for (at, losses) in &front {
        // Two figures that differ by less than their intervals keep each design on the front, however much
        // worse it is otherwise. The reader must know which ones are there for that reason alone.
        rows[*at].within_chance =
            front.iter().any(|(_, other)| surely(other, losses) && !surely(losses, other));
    }
}

/// Takes the rates that a bisection did not accept off the front: their latencies may keep the bound by their values, but
/// not by their intervals, or only because requests failed.
pub(crate) fn reject(rows: &mut [SweepRow], ceiling: &Ceiling) {
    let is_ranked = |row: &&mut SweepRow| {
        use Standing::{Dominated, Front, Undecided};
        matches!(row.standing, Some(Front | Undecided | Dominated))
    };
    for row in rows.iter_mut().filter(is_ranked) {
        let Some(rate) = row.values.first().and_then(number) else { continue };
        if ceiling.beyond.is_some_and(|beyond| rate >= beyond) {
            row.standing = Some(Standing::Excluded);
        } else if ceiling.undecided.contains(&rate) {
            row.standing = Some(Standing::Undecided);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::row::SweepFigure;

    fn row(p99: f64, half: Option<f64>, cost: f64) -> SweepRow {
        let latency = SweepFigure {
            value: p99,
            low: half.map(|h| p99 - h),
            high: half.map(|h| p99 + h),
            ..SweepFigure::default()
        };
        let cost = SweepFigure { value: cost, ..SweepFigure::default() };
        SweepRow {
            state: DesignState::Done,
            figures: [("latency_ns.p99".to_owned(), latency), ("cost".to_owned(), cost)].into(),
            ..SweepRow::new(0, Vec::new(), 1)
        }
    }

    fn objectives() -> Vec<Objective> {
        ["p99", "cost"].map(|text| text.parse().unwrap()).to_vec()
    }

    fn standings(rows: &mut [SweepRow], require: &[&str]) -> Vec<Option<Standing>> {
        let require: Vec<Requirement> = require.iter().map(|text| text.parse().unwrap()).collect();
        judge(rows, &objectives(), &require);
        rows.iter().map(|row| row.standing).collect()
    }

    #[test]
    fn a_front_by_hand() {
        use Standing::{Dominated, Excluded, Front, Undecided};
        let mut rows = [
            row(100.0, Some(5.0), 50.0),
            row(200.0, Some(5.0), 20.0),
            // Worse than the first in both, and surely in cost.
            row(110.0, Some(50.0), 60.0),
            // Of the same cost as the first: the intervals overlap.
            row(104.0, Some(5.0), 50.0),
            // Of the same cost, and beyond the intervals.
            row(120.0, Some(5.0), 50.0),
            // The same as the first.
            row(100.0, Some(5.0), 50.0),
        ];
        let wanted = [Front, Front, Dominated, Undecided, Dominated, Front].map(Some);
        assert_eq!(standings(&mut rows, &[]), wanted);
        let wanted = [Front, Excluded, Dominated, Undecided, Dominated, Front].map(Some);
        assert_eq!(standings(&mut rows, &["p99<150ns"]), wanted);
        rows[0].state = DesignState::Failed;
        rows[5].figures.remove("cost");
        rows[3].overloaded = true;
        assert_eq!(standings(&mut rows, &[])[3], Some(Standing::Overloaded));
        rows[3].overloaded = false;
        let all = standings(&mut rows, &[]);
        assert_eq!((all[0], all[5], all[3]), (None, None, Some(Front)));
    }

    /// The second design is clearly slower, and cheaper within the intervals alone: it is on the front by chance. The
    /// third is clearly cheaper than the others.
    #[test]
    fn a_design_may_be_on_the_front_within_chance() {
        let design = |p99: f64, cpu: f64| {
            let figure = |value: f64| SweepFigure {
                value,
                low: Some(value * 0.99),
                high: Some(value * 1.01),
                ..SweepFigure::default()
            };
            let figures = [("latency_ns.p99", p99), ("host.cpu_ns_per_request", cpu)];
            SweepRow {
                state: DesignState::Done,
                figures: figures.map(|(name, value)| (name.to_owned(), figure(value))).into(),
                ..SweepRow::new(0, Vec::new(), 1)
            }
        };
        let mut rows = [design(100.0, 2593.0), design(200.0, 2590.0), design(300.0, 1000.0)];
        judge(&mut rows, &["p99", "host_cpu"].map(|text| text.parse().unwrap()), &[]);
        assert!(rows.iter().all(|row| row.standing == Some(Standing::Front)));
        assert_eq!(rows.map(|row| row.within_chance), [false, true, false]);
    }

    /// A run that a buffer absorbed is not ranked by its figures, but by its cost; a bound that it breaks is broken.
    #[test]
    fn a_design_that_looks_better_than_it_is_has_no_rank() {
        let mut rows = [row(100.0, Some(5.0), 50.0), row(10.0, Some(1.0), 60.0)];
        rows[1].warnings = vec![ssdyno_figures::WarningKind::NotExhausted];
        let wanted = [Standing::Front, Standing::Unrepresentative].map(Some);
        assert_eq!(standings(&mut rows, &[]), wanted);
        let wanted = [Standing::Front, Standing::Excluded].map(Some);
        assert_eq!(standings(&mut rows, &["cost<55"]), wanted);
        judge(&mut rows, &["cost".parse().unwrap()], &[]);
        assert_eq!(rows[1].standing, Some(Standing::Dominated));
    }

    /// A run that gives no interval may be off by any amount: a design that is worse by its value is not surely worse. A cost
    /// is exact.
    #[test]
    fn a_figure_without_an_interval_is_not_exact() {
        use Standing::{Dominated, Front, Undecided};
        let mut rows =
            [row(100.0, Some(5.0), 50.0), row(200.0, None, 50.0), row(150.0, None, 60.0)];
        assert_eq!(standings(&mut rows, &[]), [Front, Undecided, Dominated].map(Some));
        judge(&mut rows, &["p99".parse().unwrap()], &[]);
        let by_latency = rows.each_ref().map(|row| row.standing);
        assert_eq!(by_latency, [Front, Undecided, Undecided].map(Some));
    }

    /// Requests that were given up after 1 µs make 1 µs of any latency: the design that gives up first is not the best.
    #[test]
    fn a_latency_that_is_a_lower_bound_has_no_rank() {
        use Standing::{Dominated, Excluded, Front, Unrepresentative};
        let mut rows = [row(100.0, Some(5.0), 50.0), row(10.0, None, 40.0)];
        rows[1].figures.get_mut("latency_ns.p99").unwrap().is_lower_bound = true;
        assert_eq!(standings(&mut rows, &[]), [Front, Unrepresentative].map(Some));
        assert_eq!(rows[1].lasting_figure("latency_ns.p99"), None);
        assert_eq!(rows[1].lasting_figure("cost"), Some(40.0));
        let cost: [Objective; 1] = ["cost".parse().unwrap()];
        let mut by_cost = |require: &str| {
            judge(&mut rows, &cost, &[require.parse().unwrap()]);
            [rows[0].standing, rows[1].standing]
        };
        // 10 ns may be far above the bound in truth, or below it.
        assert_eq!(by_cost("p99<150ns"), [Front, Unrepresentative].map(Some));
        assert_eq!(by_cost("p99>50ns"), [Front, Unrepresentative].map(Some));
        assert_eq!(by_cost("p99<9ns"), [Excluded, Excluded].map(Some));
        assert_eq!(by_cost("p99>9ns"), [Dominated, Front].map(Some));
    }

    /// 3000 is above the accepted rate and has a p99 below the bound, but its interval includes the bound. Requests failed at
    /// 4000.
    #[test]
    fn rates_that_a_bisection_rejects_are_not_on_the_front() {
        let bound: Requirement = "p99<1ms".parse().unwrap();
        let objectives: [Objective; 2] = ["iops", "p99"].map(|text| text.parse().unwrap());
        let mut rows = [4000.0, 1000.0, 2000.0, 3000.0].map(|rate| {
            let iops = SweepFigure { value: rate, ..SweepFigure::default() };
            let mut row = row(rate, None, 1.0);
            row.figures.insert("iops".to_owned(), iops);
            SweepRow { values: vec![serde_json::json!(rate)], ..row }
        });
        judge(&mut rows, &objectives, std::slice::from_ref(&bound));
        assert!(rows.iter().all(|row| row.standing == Some(Standing::Front)));
        let ceiling = Ceiling {
            within: Some(2000.0),
            beyond: Some(4000.0),
            undecided: vec![3000.0],
            ..Ceiling::new(&bound, 1000.0)
        };
        reject(&mut rows, &ceiling);
        let wanted = [Standing::Excluded, Standing::Front, Standing::Front, Standing::Undecided];
        assert_eq!(rows.map(|row| row.standing), wanted.map(Some));
    }

    proptest! {
        /// Against the definition, pair by pair.
        #[test]
        fn a_front_is_what_nothing_dominates(points in prop::collection::vec((0u32..20, 0u32..20), 1..60)) {
            let mut rows: Vec<SweepRow> =
                points.iter().map(|(a, b)| row(f64::from(*a), None, f64::from(*b))).collect();
            let standings = standings(&mut rows, &[]);
            for (at, (a, b)) in points.iter().enumerate() {
                let beaten = points.iter().any(|(c, d)| c <= a && d <= b && (c, d) != (a, b));
                prop_assert_eq!(standings[at] == Some(Standing::Front), !beaten);
            }
        }
    }
}
