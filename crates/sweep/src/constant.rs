//! Objectives that the varied keys do not change: a front by one of them says less than it seems to.

use std::collections::HashMap;

use ssdyno_block::counted;

use crate::axis::Axis;
use crate::cost::COST;
use crate::objective::Objective;
use crate::row::{DesignState, SweepRow};

/// A note for each objective that is the same in all designs, or at all values of a key.
pub(crate) fn notes(rows: &[SweepRow], axes: &[Axis], objectives: &[Objective]) -> Vec<String> {
    let done: Vec<&SweepRow> = rows.iter().filter(|row| row.state == DesignState::Done).collect();
    let note = |objective: &Objective| {
        let figure = objective.figure;
        // The true figure of a lower bound is unknown, so it is neither the same nor another one.
        if done.iter().any(|row| row.is_lower_bound(figure)) {
            return None;
        }
        let designs: Vec<(&SweepRow, f64)> =
            done.iter().filter_map(|row| Some((*row, row.figure(figure)?))).collect();
        let (_, first) = *designs.first()?;
        if designs.len() < 2 {
            return None;
        }
        let help = match figure {
            COST => "; `cost_per_gib` depends on the usable capacity, too",
            _ => "",
        };
        if designs.iter().all(|(_, value)| *value == first) {
            return Some(format!("`{figure}` is the same in all designs{help}"));
        }
        if let Some(note) = within_intervals(&designs, figure) {
            return Some(note);
        }
        let idle: Vec<&str> = axes
            .iter()
            .enumerate()
            .filter(|(at, _)| is_idle(&designs, *at))
            .map(|(_, axis)| axis.key())
            .collect();
        (!idle.is_empty())
            .then(|| format!("`{figure}` is the same at all values of {}{help}", idle.join(", ")))
    };
    objectives.iter().filter_map(note).collect()
}

/// The note that the intervals of `figure` of all designs have a value in common; `None` where fewer than two designs have an
/// interval. A figure without one may have any precision, so it changes nothing.
fn within_intervals(designs: &[(&SweepRow, f64)], figure: &str) -> Option<String> {
    let bounds = designs.iter().filter_map(|(row, _)| row.bounds(figure));
    let known: Vec<[f64; 2]> = bounds.filter(|[low, _]| low.is_finite()).collect();
    let low = known.iter().map(|[low, _]| *low).fold(f64::NEG_INFINITY, f64::max);
    let high = known.iter().map(|[_, high]| *high).fold(f64::INFINITY, f64::min);
    if known.len() < 2 || low > high {
        return None;
    }
    let without = (designs.len() - known.len()) as u64;
    let without = match without {
        0 => String::new(),
        _ => format!(" ({} no interval)", counted(without, "design has", "designs have")),
    };
    Some(format!(
        "no two designs differ in `{figure}` by more than their 95 % intervals{without}: the order of the designs can be chance. \
         Run longer"
    ))
}

/// Whether designs that differ in the key `at` alone have the same figure; not if there are none of these.
fn is_idle(designs: &[(&SweepRow, f64)], at: usize) -> bool {
    let mut known: HashMap<String, f64> = HashMap::new();
    let mut is_compared = false;
    for (row, value) in designs {
        let others = row.values.iter().enumerate().filter(|(other, _)| *other != at);
        let others: Vec<String> = others.map(|(_, value)| value.to_string()).collect();
        match known.insert(others.join(" "), *value) {
            Some(before) if before != *value => return false,
            Some(_) => is_compared = true,
            None => {}
        }
    }
    is_compared
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::row::SweepFigure;

    fn rows(figures: &[SweepFigure]) -> Vec<SweepRow> {
        let row = |(at, figure): (u64, &SweepFigure)| SweepRow {
            state: DesignState::Done,
            figures: [("write_amplification".to_owned(), *figure)].into(),
            ..SweepRow::new(at, vec![json!(at)], 1)
        };
        (0..).zip(figures).map(row).collect()
    }

    fn told(figures: &[SweepFigure]) -> Vec<String> {
        let axes = ["ftl.over_provisioning=0.1,0.2,0.3".parse::<Axis>().unwrap()];
        notes(&rows(figures), &axes, &["wa".parse().unwrap()])
    }

    #[test]
    fn figures_within_their_intervals_are_told() {
        let around = |value: f64| SweepFigure {
            value,
            low: Some(value - 0.5),
            high: Some(value + 0.5),
            ..SweepFigure::default()
        };
        let without = SweepFigure { value: 9.0, ..SweepFigure::default() };
        let why =
            "no two designs differ in `write_amplification` by more than their 95 % intervals";
        let chance = "the order of the designs can be chance. Run longer";
        assert_eq!(told(&[around(2.0), around(2.9)]), [format!("{why}: {chance}")]);
        let some = format!("{why} (1 design has no interval): {chance}");
        assert_eq!(told(&[around(2.0), without, around(2.9)]), [some]);
        assert_eq!(told(&[around(2.0), around(2.5), around(3.1)]), Vec::<String>::new());
        // Of one interval and of none nothing is said.
        assert_eq!(told(&[around(2.0), without]), Vec::<String>::new());
    }

    /// The same lower bound in two designs says nothing of their true figures.
    #[test]
    fn lower_bounds_are_not_the_same() {
        let figure =
            |is_lower_bound| SweepFigure { value: 2.0, is_lower_bound, ..SweepFigure::default() };
        assert_eq!(told(&[figure(false); 2]), ["`write_amplification` is the same in all designs"]);
        assert_eq!(told(&[figure(true); 2]), Vec::<String>::new());
        assert_eq!(told(&[figure(false), figure(true)]), Vec::<String>::new());
    }

    #[test]
    fn a_cost_that_a_key_does_not_change_is_told() {
        let rows = |cost: fn(u64, u64) -> u64| -> Vec<SweepRow> {
            let row = |at: u64| {
                let value = cost(at / 2, at % 2) as f64;
                let figure = SweepFigure { value, ..SweepFigure::default() };
                SweepRow {
                    state: DesignState::Done,
                    figures: [(COST.to_owned(), figure)].into(),
                    ..SweepRow::new(at, vec![json!(at / 2), json!(at % 2)], 1)
                }
            };
            (0..4).map(row).collect()
        };
        let axes = ["flash.channels=0,1", "ftl.over_provisioning=0,1"];
        let axes = axes.map(|text| text.parse::<Axis>().unwrap());
        let told = |cost| notes(&rows(cost), &axes, &["cost".parse().unwrap()]);
        let help = "; `cost_per_gib` depends on the usable capacity, too";
        let key = "ftl.over_provisioning";
        assert_eq!(
            told(|a, _| 1 + a),
            [format!("`cost` is the same at all values of {key}{help}")]
        );
        assert_eq!(told(|_, _| 1), [format!("`cost` is the same in all designs{help}")]);
        assert_eq!(told(|a, b| a + 3 * b), Vec::<String>::new());
    }
}
