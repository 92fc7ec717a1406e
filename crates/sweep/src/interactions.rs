//! Which pairs of keys act on an objective together: two-factor interactions.
//!
//! A linear model of the logarithm of the objective is fitted: main effects, which may have any shape, and a product for each
//! pair of keys. Grids and drawn designs take the same way.

use std::collections::BTreeSet;
use std::ops::Range;

use serde_json::Value;
use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::axis::Axis;
use crate::least_squares::{Solved, solve};
use crate::objective::Objective;
use crate::row::{DesignState, Interaction, Interactions, SweepRow};

/// Up to so many values of a key each has a main effect of its own; more follow a parabola.
const LEVELS_MAX: usize = 8;

/// Columns of the model at the most: with more the fit takes longer than the runs.
const COLUMNS_MAX: usize = 250;

/// Designs that take part at the most, spread over all.
const DESIGNS_MAX: usize = 20_000;

/// Probability that all intervals of a sweep cover the truth together.
const LEVEL: f64 = 0.95;

/// A ratio is not told if its upper bound is more than so many times the lower one.
const WIDEST: f64 = 100.0;

/// What a key contributes to products.
struct Term {
    axis: usize,
    values: [Value; 2],
    /// The code of the two values.
    ends: [f64; 2],
    codes: Vec<f64>,
    /// The columns of the main effect of its key.
    mains: Range<usize>,
}

/// The columns of a key in the model.
struct Factor {
    mains: Vec<Vec<f64>>,
    terms: Vec<Term>,
}

/// Examines all pairs of axes for each objective.
pub(crate) fn interactions(
    rows: &[SweepRow],
    axes: &[Axis],
    objectives: &[Objective],
) -> Interactions {
    let done: Vec<&SweepRow> = rows.iter().filter(|row| row.state == DesignState::Done).collect();
    // The fit takes time in proportion to the number of designs. Every n-th design keeps the whole range of
    // each axis, while the first ones of a grid would not.
    let step = done.len().div_ceil(DESIGNS_MAX).max(1);
    let done: Vec<&SweepRow> = done.into_iter().step_by(step).collect();
    let mut fits = Vec::new();
    for objective in objectives {
        let value = |row: &SweepRow| row.lasting_figure(objective.figure).filter(|v| *v > 0.0);
        let logarithms = done.iter().filter_map(|row| Some((*row, value(row)?.ln())));
        // A figure of infinity has an infinite logarithm, and one such
        // value would make every coefficient NaN.
        let points: Vec<(&SweepRow, f64)> = logarithms.filter(|(_, y)| y.is_finite()).collect();
        fits.extend(Fit::of(&points, axes).map(|fit| (*objective, fit, points)));
    }
    // The number of all products over all objectives enters the confidence level, so it
    // must be known before the first one is judged.
    let examined: usize = fits.iter().map(|(_, fit, _)| fit.pairs.len()).sum();
    let mut found = Vec::new();
    for (objective, fit, points) in &fits {
        let is_grid = is_grid(points, axes.len());
        found.extend(fit.found(*objective, axes, examined).into_iter().map(|one| {
            let observed =
                one.factors.filter(|_| is_grid).and_then(|_| observed(&one, points, axes));
            Interaction { fitted: observed.is_none(), factors: observed.or(one.factors), ..one }
        }));
    }
    let size = |one: &Interaction| one.ratio.map_or(-1.0, |ratio| ratio.ln().abs());
    found.sort_by(|a, b| size(b).total_cmp(&size(a)));
    Interactions { examined: examined as u64, found }
}

/// Whether `points` are all combinations of the values of their axes. Means over the other keys are then comparable.
fn is_grid(points: &[(&SweepRow, f64)], axes: usize) -> bool {
    let count = |at: usize| {
        let values = points.iter().filter_map(|(row, _)| row.values.get(at));
        values.map(ToString::to_string).collect::<BTreeSet<_>>().len()
    };
    (0..axes).map(count).product::<usize>() == points.len()
}

/// The factors of `one` that the designs of a grid show, from geometric means over the other keys. Those of the model follow its
/// shape: a product moves both ends, also where only one of them changes.
fn observed(one: &Interaction, points: &[(&SweepRow, f64)], axes: &[Axis]) -> Option<[f64; 2]> {
    let place = |key: &str| axes.iter().position(|axis| axis.key() == key);
    let (key, by) = (place(&one.key)?, place(&one.by)?);
    let mean = |value: &Value, at: &Value| {
        let is_one =
            |row: &SweepRow| row.values.get(key) == Some(value) && row.values.get(by) == Some(at);
        let all: Vec<f64> = points.iter().filter(|(row, _)| is_one(row)).map(|(_, y)| *y).collect();
        (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64)
    };
    let factor = |at: &Value| Some((mean(&one.between[1], at)? - mean(&one.between[0], at)?).exp());
    Some([factor(&one.at[0])?, factor(&one.at[1])?])
}

/// Two terms and the coefficient of their product with its standard error.
struct Pair {
    terms: [usize; 2],
    coefficient: f64,
    error: f64,
}

/// The model of one objective.
struct Fit {
    terms: Vec<Term>,
    /// By what the logarithm changes between the values of each term, the other keys in their middle.
    mains: Vec<f64>,
    pairs: Vec<Pair>,
    freedom: f64,
}

impl Fit {
    fn of(points: &[(&SweepRow, f64)], axes: &[Axis]) -> Option<Fit> {
        let factors: Vec<Factor> = axes
            .iter()
            .enumerate()
            .filter_map(|(at, axis)| factor(points, at, axis.is_ordered()))
            .collect();
        let mut columns: Vec<Vec<f64>> = Vec::new();
        let mut terms = Vec::new();
        for factor in factors {
            let mains = columns.len()..columns.len() + factor.mains.len();
            columns.extend(factor.mains);
            terms.extend(factor.terms.into_iter().map(|one| Term { mains: mains.clone(), ..one }));
        }
        let first = columns.len();
        let mut pairs = Vec::new();
        for one in 0..terms.len() {
            for other in one + 1..terms.len() {
                // Two terms of one key are levels of a name. Their product is always zero,
                // because a design has one value of each key.
                if terms[one].axis != terms[other].axis {
                    pairs.push([one, other]);
                }
            }
        }
        // The time of the fit grows with the square of the columns. With more than 250 of them it
        // takes longer than the runs, so there is no fit then.
        if pairs.is_empty() || first + pairs.len() > COLUMNS_MAX {
            return None;
        }
        let product = |[one, other]: &[usize; 2]| -> Vec<f64> {
            terms[*one].codes.iter().zip(&terms[*other].codes).map(|(a, b)| a * b).collect()
        };
        columns.extend(pairs.iter().map(product));
        let y: Vec<f64> = points.iter().map(|(_, y)| *y).collect();
        let solved = solve(&columns, &y)?;
        let pair = |(at, terms): (usize, [usize; 2])| {
            let (coefficient, error) = solved.coefficients[first + at]?;
            Some(Pair { terms, coefficient, error })
        };
        let pairs: Vec<Pair> = pairs.into_iter().enumerate().filter_map(pair).collect();
        let mains = terms.iter().map(|term| change(term, points, &columns, &solved)).collect();
        Some(Fit { terms, mains, pairs, freedom: solved.freedom })
    }

    fn found(&self, objective: Objective, axes: &[Axis], examined: usize) -> Vec<Interaction> {
        let Ok(student) = StudentsT::new(0.0, 1.0, self.freedom) else { return Vec::new() };
        // Bonferroni: the level is divided by the number of products. All intervals together then cover
        // the truth with 95 %, and chance finds are rare.
        let quantile = student.inverse_cdf(1.0 - (1.0 - LEVEL) / 2.0 / examined.max(1) as f64);
        let interaction = |pair: &Pair| {
            let [one, other] = pair.terms.map(|at| &self.terms[at]);
            let span = (one.ends[1] - one.ends[0]) * (other.ends[1] - other.ends[0]);
            let (middle, half) = (pair.coefficient * span, quantile * pair.error * span);
            // An exact simulation can leave an error of zero. What remains then is rounding,
            // which must not be reported as an interaction.
            if half.is_nan() || middle.abs() <= half.max(1e-9) {
                return None;
            }
            // The factor of the first key depends on the end of the second one. The main effect holds in the
            // middle, and the product adds half of the span on each side.
            let factor = |end: f64| {
                let own = pair.coefficient * (one.ends[1] - one.ends[0]) * end;
                (self.mains[pair.terms[0]] + own).exp()
            };
            // Few designs and many columns give bounds such as 1.5 to 4e10. The estimate within them is
            // arbitrary, and only the bound nearer to 1 says something.
            let is_known = 2.0 * half <= WIDEST.ln();
            let bound = |at: f64, is_near: bool| (is_known || is_near).then_some(at.exp());
            Some(Interaction {
                figure: objective.figure.to_owned(),
                key: axes[one.axis].key().to_owned(),
                between: one.values.clone(),
                by: axes[other.axis].key().to_owned(),
                at: other.values.clone(),
                factors: is_known.then(|| other.ends.map(factor)),
                fitted: true,
                ratio: is_known.then_some(middle.exp()),
                low: bound(middle - half, middle > 0.0),
                high: bound(middle + half, middle < 0.0),
            })
        };
        self.pairs.iter().filter_map(interaction).collect()
    }
}

/// Main effects and terms of axis `at`; `None` where it has one value only.
fn factor(points: &[(&SweepRow, f64)], at: usize, is_ordered: bool) -> Option<Factor> {
    let value = |row: &SweepRow| row.values.get(at).cloned().unwrap_or_default();
    let mut levels: Vec<Value> = Vec::new();
    if is_ordered {
        levels.extend(points.iter().map(|(row, _)| value(row)));
        levels.sort_by(|a, b| amount(a).total_cmp(&amount(b)));
        levels.dedup();
    } else {
        for (row, _) in points {
            let value = value(row);
            if !levels.contains(&value) {
                levels.push(value);
            }
        }
    }
    let (first, last) = (levels.first()?.clone(), levels.last()?.clone());
    if levels.len() < 2 || (!is_ordered && levels.len() > LEVELS_MAX) {
        return None;
    }
    let place = |row: &SweepRow| match is_ordered {
        true => {
            // The levels are sorted, so a binary search finds the place. A linear search would compare each
            // of 20000 designs with each of its 20000 levels.
            let own = amount(&value(row));
            levels.partition_point(|level| amount(level).total_cmp(&own).is_lt())
        }
        false => levels.iter().position(|level| *level == value(row)).unwrap_or(0),
    };
    let places: Vec<usize> = points.iter().map(|(row, _)| place(row)).collect();
    let last_place = (levels.len() - 1) as f64;
    // The codes are places and not values: a doubling axis (1, 2, 4, …, 256) would
    // otherwise be one far point and many near ones.
    let code = |place: &usize| 2.0 * *place as f64 / last_place - 1.0;
    let is = |level: usize| -> Vec<f64> {
        places.iter().map(|place| f64::from(u8::from(*place == level))).collect()
    };
    let codes: Vec<f64> = places.iter().map(code).collect();
    // Up to eight values each have a main effect of their own, of any shape. More values follow a
    // parabola, so that the columns stay fewer than the designs.
    let mains = match levels.len() <= LEVELS_MAX {
        true => (1..levels.len()).map(is).collect(),
        false => vec![codes.clone(), codes.iter().map(|code| code * code).collect()],
    };
    let term = |level: usize| Term {
        axis: at,
        values: [first.clone(), levels[level].clone()],
        ends: [0.0, 1.0],
        codes: is(level),
        mains: 0..0,
    };
    let terms = match is_ordered {
        true => {
            vec![Term { axis: at, values: [first, last], ends: [-1.0, 1.0], codes, mains: 0..0 }]
        }
        false => (1..levels.len()).map(term).collect(),
    };
    Some(Factor { mains, terms })
}

/// A number, or the number at the beginning of a text such as `25us`: all values of an ordered axis have the same unit.
fn amount(value: &Value) -> f64 {
    let text = value.as_str().unwrap_or_default();
    let end = text.find(|c: char| !matches!(c, '0'..='9' | '.' | '-')).unwrap_or(text.len());
    value.as_f64().or_else(|| text[..end].parse().ok()).unwrap_or(0.0)
}

/// By what the main effects of the axis of `term` alone change between its values.
fn change(term: &Term, points: &[(&SweepRow, f64)], columns: &[Vec<f64>], solved: &Solved) -> f64 {
    let design = |value: &Value| {
        points.iter().position(|(row, _)| row.values.get(term.axis) == Some(value)).unwrap_or(0)
    };
    let [from, to] = [design(&term.values[0]), design(&term.values[1])];
    let one = |at: usize| {
        let coefficient = solved.coefficients[at].map_or(0.0, |(coefficient, _)| coefficient);
        coefficient * (columns[at][to] - columns[at][from])
    };
    term.mains.clone().map(one).sum()
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg64;
    use serde_json::json;

    use super::*;
    use crate::row::SweepFigure;

    /// Designs over `a`, `b` and the names `c`, whose logarithm is `y` of their codes and a noise of up to 0.05.
    fn designs(seed: u64, y: &dyn Fn(f64, f64, usize) -> f64) -> (Vec<SweepRow>, [Axis; 3]) {
        let mut rng = Pcg64::seed_from_u64(seed);
        let names = ["x", "y", "z"];
        let mut rows = Vec::new();
        for a in 0..4 {
            for b in 0..3 {
                for (c, name) in names.iter().enumerate() {
                    let (code_a, code_b) = (f64::from(a) / 1.5 - 1.0, f64::from(b) - 1.0);
                    let noise = rng.random_range(-0.05..0.05);
                    let value = (y(code_a, code_b, c) + noise).exp();
                    let figure = SweepFigure { value, ..SweepFigure::default() };
                    rows.push(SweepRow {
                        state: DesignState::Done,
                        figures: [("iops".to_owned(), figure)].into(),
                        ..SweepRow::new(0, vec![json!(1 << a), json!(b), json!(name)], 1)
                    });
                }
            }
        }
        (rows, ["a=1,2,4,8", "b=0,1,2", "c=x,y,z"].map(|text| text.parse().unwrap()))
    }

    fn of(seed: u64, y: &dyn Fn(f64, f64, usize) -> f64) -> Interactions {
        let (rows, axes) = designs(seed, y);
        interactions(&rows, &axes, &["iops".parse().unwrap()])
    }

    /// a times b: log y = 0.3 a² + 0.2 b + 0.25 a b, where a and b go from -1 to 1, and c has nothing to do with it.
    #[test]
    fn a_product_of_two_keys_is_found_with_its_size() {
        let all = of(1, &|a, b, c| 0.3 * a * a + 0.2 * a + 0.2 * b + 0.25 * a * b + c as f64);
        // a and b, and each with y and z in place of x.
        assert_eq!((all.examined, all.found.len()), (5, 1), "{:?}", all.found);
        let one = &all.found[0];
        assert_eq!((&*one.key, &*one.by), ("a", "b"));
        assert_eq!((&one.between, &one.at), (&[json!(1), json!(8)], &[json!(0), json!(2)]));
        let (low, high) = (one.low.unwrap(), one.high.unwrap());
        assert!(low < 1f64.exp() && 1f64.exp() < high && low > 2.0, "{one:?}");
        let factors = one.factors.unwrap();
        assert!((factors[0].ln() + 0.1).abs() < 0.1 && (factors[1].ln() - 0.9).abs() < 0.1);
    }

    /// The first key has no effect at the lower end of the second. The model has main effects and a product, so it shows one there.
    #[test]
    fn factors_of_a_grid_are_those_of_its_designs_and_others_are_fitted() {
        let (rows, axes) = designs(1, &|a, b, _| if b > 0.0 { a } else { 0.0 });
        let found = |rows: &[SweepRow]| {
            let all = interactions(rows, &axes, &["iops".parse().unwrap()]);
            all.found.into_iter().find(|one| (&*one.key, &*one.by) == ("a", "b")).unwrap()
        };
        let one = found(&rows);
        // Means of three values with a noise of up to 0.05.
        let factors = one.factors.unwrap().map(f64::ln);
        assert!(factors[0].abs() < 0.1 && (factors[1] - 2.0).abs() < 0.1 && !one.fitted, "{one:?}");
        let one = found(&rows[..35]);
        assert!(one.fitted && one.factors.unwrap()[0].ln() < -0.2, "{one:?}");
        assert!(crate::text::interaction_cells(&one).join(" ").contains("fitted x "));
    }

    #[test]
    fn a_name_that_changes_the_effect_of_a_key_is_found() {
        let all = of(2, &|a, b, c| a + b + if c == 2 { 0.4 * a } else { 0.0 });
        assert_eq!(all.found.len(), 1, "{:?}", all.found);
        let one = &all.found[0];
        assert_eq!((&*one.key, &*one.by, &one.at), ("a", "c", &[json!("x"), json!("z")]));
        let (ratio, factors) = (one.ratio.unwrap(), one.factors.unwrap());
        assert!((ratio.ln() - 0.8).abs() < 0.1 && (factors[0].ln() - 2.0).abs() < 0.1);
    }

    /// All intervals together cover with 95 %: of 400 sweeps without interactions 20 show one, give or take three times 4.4.
    #[test]
    fn chance_shows_an_interaction_in_one_of_twenty_sweeps_at_most() {
        let shown = (0..400).filter(|seed| {
            !of(*seed, &|a, b, c| 0.5 * a + 0.3 * b + 0.1 * c as f64).found.is_empty()
        });
        let shown = shown.count();
        assert!((2..=33).contains(&shown), "{shown}");
    }

    /// Ten times the product and two hundred times the noise: an interval far above a factor of 100.
    #[test]
    fn a_ratio_that_is_hardly_known_is_not_told() {
        let (mut rows, axes) = designs(1, &|a, b, _| 6.0 * a * b);
        let mut rng = Pcg64::seed_from_u64(1);
        for row in &mut rows {
            row.figures.get_mut("iops").unwrap().value *= rng.random_range(-4.0f64..4.0).exp();
        }
        let all = interactions(&rows, &axes, &["iops".parse().unwrap()]);
        let one = &all.found[0];
        assert_eq!((&*one.key, &*one.by), ("a", "b"), "{all:?}");
        assert_eq!((one.factors, one.ratio, one.high), (None, None, None));
        assert!(one.low.is_some_and(|low| low > 1.0), "{one:?}");
        let cells = crate::text::interaction_cells(one).join(" ");
        assert!(cells.contains("ratio at least ") && cells.contains("b = 0 and 2"), "{cells}");
        let json = serde_json::to_value(one).unwrap();
        assert!(json.get("ratio").is_none() && json.get("high").is_none(), "{json}");
    }

    #[test]
    fn too_few_designs_examine_nothing() {
        let (rows, axes) = designs(1, &|a, b, _| a * b);
        let few = interactions(&rows[..6], &axes, &["iops".parse().unwrap()]);
        assert_eq!(few, Interactions::default());
        assert_eq!(interactions(&rows, &axes[..1], &["iops".parse().unwrap()]), few);
    }
}
