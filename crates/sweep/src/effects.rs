//! What each key does to each objective: its main effect.

use serde_json::Value;

use crate::axis::Axis;
use crate::objective::Objective;
use crate::row::{DesignState, Effect, EffectLevel, SweepRow};

/// An axis with more different values than that has no table of them: they were drawn from a range.
const LEVELS_MAX: usize = 64;

/// The effects of all axes, the greatest share first.
pub(crate) fn effects(rows: &[SweepRow], axes: &[Axis], objectives: &[Objective]) -> Vec<Effect> {
    let mut all = Vec::new();
    for objective in objectives {
        let done = rows.iter().filter(|row| row.state == DesignState::Done);
        let points: Vec<(&SweepRow, f64)> = done
            // The logarithm makes effects factors. Latencies span decades, and one slow design
            // would otherwise explain all of the variation.
            .filter_map(|row| Some((row, row.figure(objective.figure).filter(|v| *v > 0.0)?.ln())))
            .collect();
        let mean = points.iter().map(|(_, y)| y).sum::<f64>() / points.len() as f64;
        let total: f64 = points.iter().map(|(_, y)| (y - mean).powi(2)).sum();
        // If nothing differs, nothing can be explained. The quotient below would
        // divide rounding errors by rounding errors.
        if points.len() < 2 || total <= 1e-18 * points.len() as f64 {
            continue;
        }
        all.extend(axes.iter().enumerate().filter_map(|(at, axis)| {
            let levels = levels(&points, at)?;
            // The sum of squares between the values of a key, divided by the total, is eta squared. It
            // needs no model and works for names as for numbers.
            let between: f64 = levels.iter().map(|(_, sum, n)| n * (sum / n - mean).powi(2)).sum();
            let level = |(value, sum, n): &(Value, f64, f64)| EffectLevel {
                value: value.clone(),
                mean: (sum / n).exp(),
                designs: *n as u64,
            };
            Some(Effect {
                key: axis.key().to_owned(),
                figure: objective.figure.to_owned(),
                share: (between / total).clamp(0.0, 1.0),
                levels: levels.iter().map(level).collect(),
            })
        }));
    }
    all.sort_by(|a, b| b.share.total_cmp(&a.share));
    all
}

/// Each value of axis `at`, in the order of its first design, with the sum and the number of its points.
fn levels(points: &[(&SweepRow, f64)], at: usize) -> Option<Vec<(Value, f64, f64)>> {
    let mut levels: Vec<(Value, f64, f64)> = Vec::new();
    for (row, y) in points {
        let value = row.values.get(at)?;
        match levels.iter().position(|(known, ..)| known == value) {
            Some(at) => {
                let (_, sum, n) = &mut levels[at];
                *sum += y;
                *n += 1.0;
            }
            // A range gives each design another value. A table with one line for each of them says
            // nothing, and each mean would be a single design.
            None if levels.len() == LEVELS_MAX => return None,
            None => levels.push((value.clone(), *y, 1.0)),
        }
    }
    (levels.len() > 1).then_some(levels)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::row::SweepFigure;

    /// y = 10^a * 2^b over a grid of a in {0, 1}, b in {0, 1}: the variances of the logarithms are ln(10)^2 / 4 and
    /// ln(2)^2 / 4, and they add up to the whole.
    #[test]
    fn shares_by_closed_form() {
        let rows: Vec<SweepRow> = [(0, 0), (0, 1), (1, 0), (1, 1)]
            .iter()
            .map(|(a, b)| {
                let value = 10f64.powi(*a) * 2f64.powi(*b);
                let figure = SweepFigure { value, low: None, high: None };
                SweepRow {
                    state: DesignState::Done,
                    figures: [("iops".to_owned(), figure)].into(),
                    ..SweepRow::new(0, vec![json!(a), json!(b)], 1)
                }
            })
            .collect();
        let axes = ["b=0,1", "a=0,1"].map(|text| text.parse::<Axis>().unwrap());
        let swapped: Vec<SweepRow> = rows
            .into_iter()
            .map(|row| SweepRow { values: row.values.iter().rev().cloned().collect(), ..row })
            .collect();
        let all = effects(&swapped, &axes, &["iops".parse().unwrap()]);
        let (ten, two) = (10f64.ln().powi(2), 2f64.ln().powi(2));
        assert_eq!(all[0].key, "a");
        assert!((all[0].share - ten / (ten + two)).abs() < 1e-12);
        assert!((all[0].share + all[1].share - 1.0).abs() < 1e-12);
        assert!((all[0].levels[1].mean - 10.0 * 2f64.sqrt()).abs() < 1e-9);
        assert_eq!(all[0].levels[0].designs, 2);
    }
}
