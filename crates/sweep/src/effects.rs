//! What each key does to each objective: its main effect.

use std::collections::HashMap;

use serde_json::Value;
use ssdyno_figures::significant;

use crate::axis::Axis;
use crate::objective::Objective;
use crate::row::{DesignState, Effect, EffectLevel, SweepRow};
use crate::shares::{Explained, explained};
use crate::swept::number;
use crate::text::value as typed;

/// Names of a key at the most, and values that are listed one by one.
const LEVELS_MAX: usize = 64;

/// Up to so many numbers of a key each has a column of its own in the model of drawn designs; more follow a parabola.
const COLUMNS_MAX: usize = 8;

/// Into so many ranges the values of a key are divided if they are too many for a list.
const RANGES: usize = 5;

/// Designs that take part in the model of drawn designs at the most, spread over all.
const DESIGNS_MAX: usize = 20_000;

/// Probability that chance makes any effect of a sweep count.
const CHANCE: f64 = 0.05;

/// A design with the logarithm of the objective.
type Point<'a> = (&'a SweepRow, f64);

/// The effects of all axes: the greatest share first, and those within chance last.
pub(crate) fn effects(rows: &[SweepRow], axes: &[Axis], objectives: &[Objective]) -> Vec<Effect> {
    let mut all: Vec<(Effect, f64)> = Vec::new();
    for objective in objectives {
        all.extend(of_objective(rows, axes, *objective).unwrap_or_default());
    }
    // Bonferroni: with ten keys and two objectives, one share in twenty would otherwise pass by chance in nearly
    // every sweep.
    let limit = CHANCE / all.len().max(1) as f64;
    let mark = |(effect, chance): (Effect, f64)| Effect { within_chance: chance > limit, ..effect };
    let mut all: Vec<Effect> = all.into_iter().map(mark).collect();
    all.sort_by(|a, b| a.within_chance.cmp(&b.within_chance).then(b.share.total_cmp(&a.share)));
    all
}

/// Each effect with the probability that a key without influence has it.
fn of_objective(
    rows: &[SweepRow],
    axes: &[Axis],
    objective: Objective,
) -> Option<Vec<(Effect, f64)>> {
    let done = rows.iter().filter(|row| row.state == DesignState::Done);
    // The logarithm makes effects factors. Latencies span decades, and one slow design
    // would otherwise explain all of the variation.
    let logarithm = |row: &SweepRow| {
        row.lasting_figure(objective.figure).map(f64::ln).filter(|value| value.is_finite())
    };
    let points: Vec<Point<'_>> = done.filter_map(|row| Some((row, logarithm(row)?))).collect();
    let mean = points.iter().map(|(_, y)| y).sum::<f64>() / points.len() as f64;
    let total: f64 = points.iter().map(|(_, y)| (y - mean).powi(2)).sum();
    // If nothing differs, nothing can be explained. The quotient below would
    // divide rounding errors by rounding errors.
    if points.len() < 2 || total <= 1e-18 * points.len() as f64 {
        return None;
    }
    let keys = axes.iter().enumerate().filter_map(|(at, axis)| Levels::of(&points, at, axis));
    let keys: Vec<Levels> = keys.collect();
    let combinations: f64 = keys.iter().map(|key| key.values.len() as f64).product();
    let shares = match combinations == points.len() as f64 {
        // Of a complete grid, the sum of squares between the values of a key divided by the total is exact: each
        // value meets the same values of the other keys.
        true => keys.iter().map(|key| key.eta_squared(&points, mean, total)).collect(),
        false => drawn(&keys, &points)?,
    };
    let effect = |(key, explained): (&Levels, Explained)| {
        let effect = Effect {
            key: axes[key.axis].key().to_owned(),
            figure: objective.figure.to_owned(),
            share: explained.share,
            within_chance: false,
            levels: key.table(&points),
        };
        (effect, explained.chance)
    };
    Some(keys.iter().zip(shares).map(effect).collect())
}

/// The shares of designs that are no complete grid.
fn drawn(keys: &[Levels], points: &[Point<'_>]) -> Option<Vec<Explained>> {
    // The time of the fit is in proportion to the number of designs. Every n-th design keeps the whole
    // range of each axis.
    let step = points.len().div_ceil(DESIGNS_MAX).max(1);
    let columns: Vec<Vec<Vec<f64>>> = keys.iter().map(|key| key.columns(step)).collect();
    let y: Vec<f64> = points.iter().step_by(step).map(|(_, y)| *y).collect();
    explained(&columns, &y)
}

/// The different values of a key, and which of them each point has.
struct Levels {
    axis: usize,
    /// Numbers and sizes by value, names in the order of the axis.
    values: Vec<Value>,
    is_ordered: bool,
    /// They were drawn from a range without steps.
    is_range: bool,
    places: Vec<usize>,
}

impl Levels {
    /// The values of axis `at`; `None` of one value, and of more names than a table can have.
    fn of(points: &[Point<'_>], at: usize, axis: &Axis) -> Option<Levels> {
        let (mut found, mut places) = (HashMap::new(), Vec::with_capacity(points.len()));
        let mut values: Vec<Value> = Vec::new();
        for (row, _) in points {
            let value = row.values.get(at)?;
            let place = *found.entry(value.to_string()).or_insert(values.len());
            if place == values.len() {
                values.push(value.clone());
            }
            places.push(place);
        }
        let is_ordered = values.iter().all(|value| number(value).is_some());
        if values.len() < 2 || (!is_ordered && values.len() > LEVELS_MAX) {
            return None;
        }
        let typed: HashMap<String, usize> = (0..axis.count().unwrap_or(0))
            .filter_map(|at| Some((axis.value(at)?.to_string(), at)))
            .collect();
        let key = |value: &Value| match is_ordered {
            true => number(value).unwrap_or_default(),
            false => typed.get(&value.to_string()).map_or(f64::INFINITY, |at| *at as f64),
        };
        let keys: Vec<f64> = values.iter().map(key).collect();
        let mut order: Vec<usize> = (0..values.len()).collect();
        order.sort_by(|a, b| keys[*a].total_cmp(&keys[*b]));
        let mut ranks = vec![0; values.len()];
        order.iter().enumerate().for_each(|(rank, place)| ranks[*place] = rank);
        places.iter_mut().for_each(|place| *place = ranks[*place]);
        let values = order.iter().map(|place| values[*place].clone()).collect();
        Some(Levels { axis: at, values, is_ordered, is_range: axis.count().is_none(), places })
    }

    /// Sum and number of the logarithms in each of `count` groups, of which `group` says the one of a place.
    fn sums(
        &self,
        points: &[Point<'_>],
        count: usize,
        group: impl Fn(usize) -> usize,
    ) -> Vec<(f64, f64)> {
        let mut sums = vec![(0.0, 0.0); count];
        for (place, (_, y)) in self.places.iter().zip(points) {
            let (sum, n) = &mut sums[group(*place)];
            *sum += y;
            *n += 1.0;
        }
        sums
    }

    fn eta_squared(&self, points: &[Point<'_>], mean: f64, total: f64) -> Explained {
        let sums = self.sums(points, self.values.len(), |place| place);
        let between: f64 = sums.iter().map(|(sum, n)| n * (sum / n - mean).powi(2)).sum();
        Explained { share: (between / total).clamp(0.0, 1.0), chance: 0.0 }
    }

    /// The columns of the key in a linear model, for every point that `step` leaves.
    fn columns(&self, step: usize) -> Vec<Vec<f64>> {
        let places = || self.places.iter().step_by(step);
        if self.is_ordered && self.values.len() > COLUMNS_MAX {
            // A column for each of 500 drawn values would explain everything. Ranks are the codes, because
            // a doubling axis would otherwise be one far point and many near ones.
            let last = (self.values.len() - 1) as f64;
            let codes: Vec<f64> = places().map(|at| 2.0 * *at as f64 / last - 1.0).collect();
            let squares = codes.iter().map(|code| code * code).collect();
            return vec![codes, squares];
        }
        let is = |level: usize| -> Vec<f64> {
            places().map(|at| f64::from(u8::from(*at == level))).collect()
        };
        (1..self.values.len()).map(is).collect()
    }

    /// Each value with its mean. Of very many, a range of values each: a mean would otherwise be a single design.
    fn table(&self, points: &[Point<'_>]) -> Vec<EffectLevel> {
        let all = self.values.len();
        let is_grouped = all > LEVELS_MAX || (self.is_range && all > COLUMNS_MAX);
        let count = if is_grouped { RANGES } else { all };
        let sums = self.sums(points, count, |place| place * count / all);
        let name = |group: usize| {
            let first = (group * all).div_ceil(count);
            let last = ((group + 1) * all).div_ceil(count) - 1;
            match first == last {
                true => self.values[first].clone(),
                false => {
                    let [low, high] = [first, last].map(|at| short(&self.values[at]));
                    Value::String(format!("{low} to {high}"))
                }
            }
        };
        let level = |(group, (sum, n)): (usize, &(f64, f64))| EffectLevel {
            value: name(group),
            mean: (sum / n).exp(),
            designs: *n as u64,
        };
        sums.iter().enumerate().map(level).collect()
    }
}

/// A drawn value without the digits that nobody needs in a table.
fn short(value: &Value) -> String {
    let fraction = value.as_f64().filter(|number| number.fract() != 0.0);
    fraction.map_or_else(|| typed(value), |number| significant(number, 4))
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg64;
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
                let figure = SweepFigure { value, ..SweepFigure::default() };
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

    /// Designs with figures by `cost` of their values.
    fn rows(designs: Vec<Vec<Value>>, cost: impl Fn(&[Value]) -> f64) -> Vec<SweepRow> {
        let row = |(number, values): (u64, Vec<Value>)| {
            let figure = SweepFigure { value: cost(&values), ..SweepFigure::default() };
            SweepRow {
                state: DesignState::Done,
                figures: [("cost".to_owned(), figure)].into(),
                ..SweepRow::new(number, values, 1)
            }
        };
        (0..).zip(designs).map(row).collect()
    }

    /// A cost of channels and dies, which no name of a policy changes: a key without influence counts in one of twenty sweeps
    /// at the most, and one with influence in each.
    #[test]
    fn drawn_designs_credit_no_key_without_influence() {
        let keys = ["channels=1,2,4,8", "policy=greedy,fifo,random,lru", "space=0.07..0.4"];
        let axes = keys.map(|text| text.parse::<Axis>().unwrap());
        let (mut credited, mut missed) = (0, 0);
        for seed in 0..200 {
            let mut rng = Pcg64::seed_from_u64(seed);
            let mut draw = || axes.iter().map(|axis| axis.at(rng.random())).collect();
            let designs: Vec<Vec<Value>> = (0..40).map(|_| draw()).collect();
            let cost = |values: &[Value]| {
                (4.0 + values[0].as_f64().unwrap() * 0.6) * (1.0 + values[2].as_f64().unwrap())
            };
            let all = effects(&rows(designs, cost), &axes, &["cost".parse().unwrap()]);
            let counts = |key: &str| {
                let effect = all.iter().find(|effect| effect.key == key).unwrap();
                effect.share >= 0.01 && !effect.within_chance
            };
            credited += u32::from(counts("policy"));
            missed += u32::from(!counts("channels") || !counts("space"));
        }
        assert!(credited <= 10 && missed == 0, "{credited} credited, {missed} missed");
    }

    /// Random noise in place of a cost: no key counts in 95 % of the sweeps, however many keys there are.
    #[test]
    fn noise_is_within_chance() {
        let axes: Vec<Axis> = (0..6).map(|at| format!("k{at}=a,b,c,d").parse().unwrap()).collect();
        let credited = (0..200).filter(|seed| {
            let mut rng = Pcg64::seed_from_u64(*seed);
            let designs: Vec<Vec<Value>> =
                (0..60).map(|_| axes.iter().map(|axis| axis.at(rng.random())).collect()).collect();
            let noise: Vec<f64> = designs.iter().map(|_| rng.random_range(1.0..2.0)).collect();
            let mut noise = noise.into_iter();
            let mut all = rows(designs, |_| 1.0);
            for row in &mut all {
                row.figures.get_mut("cost").unwrap().value = noise.next().unwrap();
            }
            let all = effects(&all, &axes, &["cost".parse().unwrap()]);
            all.len() != 6 || all.iter().any(|effect| !effect.within_chance)
        });
        let credited = credited.count();
        assert!((1..=20).contains(&credited), "{credited}");
    }

    #[test]
    fn values_are_sorted_and_many_of_them_are_ranges() {
        let keys = ["size=64KiB,4KiB,16KiB", "name=b,c,a", "space=0.0..1.0"];
        let axes = keys.map(|text| text.parse::<Axis>().unwrap());
        let (sizes, names) = (["16KiB", "64KiB", "4KiB"], ["a", "b", "c"]);
        let design = |at: usize| {
            let space = ((at * 7) % 100) as f64 / 100.0;
            vec![json!(sizes[at % 3]), json!(names[at / 3 % 3]), json!(space)]
        };
        let all = rows((0..100).map(design).collect(), |values| {
            values[2].as_f64().unwrap().exp() + values[0].as_str().unwrap().len() as f64
        });
        let all = effects(&all, &axes, &["cost".parse().unwrap()]);
        let levels = |key: &str| -> Vec<String> {
            let effect = all.iter().find(|effect| effect.key == key).unwrap();
            assert_eq!(effect.levels.iter().map(|level| level.designs).sum::<u64>(), 100);
            effect.levels.iter().map(|level| typed(&level.value)).collect()
        };
        assert_eq!(levels("size"), ["4KiB", "16KiB", "64KiB"]);
        assert_eq!(levels("name"), ["b", "c", "a"]);
        let ranges = [
            "0.0 to 0.1900",
            "0.2000 to 0.3900",
            "0.4000 to 0.5900",
            "0.6000 to 0.7900",
            "0.8000 to 0.9900",
        ];
        assert_eq!(levels("space"), ranges);
    }

    /// 20 draws of channels, names and a range, where the channels alone decide: their share is the whole, however the others happen
    /// to be correlated with them.
    #[test]
    fn the_only_key_that_decides_explains_everything() {
        let keys = ["channels=1,2,4,8", "policy=greedy,fifo,random,lru", "space=0.07..0.4"];
        let axes = keys.map(|text| text.parse::<Axis>().unwrap());
        for seed in 0..50 {
            let mut rng = Pcg64::seed_from_u64(seed);
            let mut draw = || axes.iter().map(|axis| axis.at(rng.random())).collect();
            let designs: Vec<Vec<Value>> = (0..20).map(|_| draw()).collect();
            let cost = |values: &[Value]| 4.0 + values[0].as_f64().unwrap();
            let all = effects(&rows(designs, cost), &axes, &["cost".parse().unwrap()]);
            assert_eq!((&*all[0].key, all[0].within_chance), ("channels", false));
            assert!(all[0].share > 0.999, "{all:?}");
            assert!(all[1..].iter().all(|one| one.within_chance && one.share == 0.0), "{all:?}");
        }
    }

    #[test]
    fn fewer_designs_than_columns_have_no_effects() {
        let axes = ["a=w,x,y,z", "b=w,x,y,z"].map(|text| text.parse::<Axis>().unwrap());
        let designs = [("w", "x"), ("x", "y"), ("y", "z"), ("z", "w"), ("w", "y")];
        let designs = designs.map(|(a, b)| vec![json!(a), json!(b)]).to_vec();
        let all = rows(designs, |values| values[0].to_string().as_bytes()[1].into());
        assert_eq!(effects(&all, &axes, &["cost".parse().unwrap()]), []);
    }
}
