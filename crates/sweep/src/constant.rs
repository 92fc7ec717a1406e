//! Objectives that the varied keys do not change: a front by one of them says less than it seems to.

use std::collections::HashMap;

use crate::axis::Axis;
use crate::cost::COST;
use crate::objective::Objective;
use crate::row::{DesignState, SweepRow};

/// A note for each objective that is the same in all designs, or at all values of a key.
pub(crate) fn notes(rows: &[SweepRow], axes: &[Axis], objectives: &[Objective]) -> Vec<String> {
    let done: Vec<&SweepRow> = rows.iter().filter(|row| row.state == DesignState::Done).collect();
    let note = |objective: &Objective| {
        let figure = objective.figure;
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
