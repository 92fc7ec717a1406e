//! The curve of a sweep over one number, and its knee.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::axis::Axis;
use crate::row::{DesignState, SweepFigure, SweepRow};
use crate::swept::{RATE, number};

const THROUGHPUT: &str = "throughput_bytes_per_second";
const MEAN: &str = "latency_ns.mean";

/// Throughput and latency against the varied number.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Curve {
    /// The varied key.
    pub key: String,
    /// The designs with figures, by value. The figures are in the row of the design.
    pub points: Vec<CurvePoint>,
    /// The point of the greatest power; left out with fewer than three points with a power, for keys that do not set the
    /// load, and if the last point has the greatest power: the power may rise beyond it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub knee: Option<Knee>,
}

/// A point of a curve.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CurvePoint {
    /// The value, as in the row.
    pub value: Value,
    /// The value as a number: times in nanoseconds, sizes in bytes.
    pub number: f64,
    /// Number of the row.
    pub design: u64,
    /// Throughput in bytes per second divided by mean latency in seconds; left out if a figure is missing or zero. If
    /// the mean latency is only a lower bound, the power has the lower bound 0, and the point is not the knee.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power: Option<SweepFigure>,
}

/// The point of the greatest power: with more load, latency increases more than throughput.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Knee {
    /// The value with the greatest power.
    pub value: Value,
    /// Lower bound of the knee: the greatest smaller value with significantly less power (95 %). Left out if the curve
    /// has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub above: Option<Value>,
    /// Upper bound of the knee: the smallest greater value with significantly less power (95 %). Left out if the curve
    /// has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub below: Option<Value>,
}

impl Curve {
    /// The curve of `rows`, if one number is varied and two designs or more have figures.
    pub(crate) fn of(vary: &[Axis], rows: &[SweepRow]) -> Option<Curve> {
        let [axis] = vary else { return None };
        let done = rows.iter().filter(|row| row.state == DesignState::Done);
        let point = |row: &SweepRow| {
            let value = row.values.first()?.clone();
            let (number, power) = (number(&value)?, power(row));
            Some(CurvePoint { value, number, design: row.design, power })
        };
        // A name among the values is no number. `collect` gives no curve at all then, because
        // the order of the points would be arbitrary.
        let mut points: Vec<CurvePoint> = done.map(point).collect::<Option<_>>()?;
        points.sort_by(|a, b| a.number.total_cmp(&b.number));
        // The knee is sought in the order of the numbers. Drawn designs come in any order, and
        // neighbours in the table are not neighbours on the curve.
        let knee = if is_of_load(axis.key()) { knee(&points) } else { None };
        (points.len() >= 2).then(|| Curve { key: axis.key().to_owned(), points, knee })
    }

    /// The last value, if the power still rises there: the curve then has no knee.
    pub(crate) fn rises_at(&self) -> Option<&Value> {
        let powers = powers(&self.points);
        let at = greatest(&powers).filter(|_| is_of_load(&self.key))?;
        (at + 1 == powers.len()).then_some(powers[at].0)
    }
}

/// Whether a key says how much load there is. Throughput against latency weighs load; more channels or a larger buffer have
/// no knee of that kind.
fn is_of_load(key: &str) -> bool {
    const LOADS: [&str; 6] =
        ["workload.depth", RATE, "host.threads", "real.jobs", "trace.depth", "workload.threads"];
    LOADS.contains(&key)
}

/// The bounds are those of two figures that are off at once, each to its worse side.
fn power(row: &SweepRow) -> Option<SweepFigure> {
    let [throughput, mean] = [THROUGHPUT, MEAN].map(|name| row.figures.get(name));
    let (throughput, mean) = (throughput?, mean?);
    let ratio = |bytes: f64, ns: f64| (bytes > 0.0 && ns > 0.0).then_some(bytes / (ns * 1e-9));
    let value = ratio(throughput.value, mean.value)?;
    // The lower bound of a quotient has the lower numerator and the upper denominator. It is wider than the true
    // interval, so the knee is claimed too seldom and not too often.
    let low = throughput.low.zip(mean.high).and_then(|(bytes, ns)| ratio(bytes, ns));
    // The true latency may be anything above a lower bound, and the power anything below.
    let low = if mean.is_lower_bound { Some(0.0) } else { low };
    let high = throughput.high.zip(mean.low).and_then(|(bytes, ns)| ratio(bytes, ns));
    Some(SweepFigure { value, low, high, ..SweepFigure::default() })
}

/// The points with a power.
fn powers(points: &[CurvePoint]) -> Vec<(&Value, SweepFigure)> {
    points.iter().filter_map(|point| Some((&point.value, point.power?))).collect()
}

/// The place of the greatest power that is no upper bound.
fn greatest(powers: &[(&Value, SweepFigure)]) -> Option<usize> {
    // Two points have no inside: the greater one
    // would always be a knee.
    if powers.len() < 3 {
        return None;
    }
    let all = powers.iter().map(|(_, power)| power).enumerate();
    let known = all.filter(|(_, power)| power.low.is_none_or(|low| low > 0.0));
    known.max_by(|(_, a), (_, b)| a.value.total_cmp(&b.value)).map(|(at, _)| at)
}

fn knee(points: &[CurvePoint]) -> Option<Knee> {
    let powers = powers(points);
    let at = greatest(&powers)?;
    // If the power still rises at the last value, the greatest one is only the last that was tried.
    // Calling it a knee would stop the user from going on.
    if at + 1 == powers.len() {
        return None;
    }
    let (value, best) = powers[at];
    // A neighbour counts as lower only if its whole interval is below. Without
    // intervals the values themselves decide.
    let least = best.low.unwrap_or(best.value);
    let is_less = |(_, power): &&(&Value, SweepFigure)| power.high.unwrap_or(power.value) < least;
    let name = |(value, _): &(&Value, SweepFigure)| (*value).clone();
    Some(Knee {
        value: value.clone(),
        above: powers[..at].iter().rev().find(is_less).map(name),
        below: powers[at + 1..].iter().find(is_less).map(name),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;

    fn row(design: u64, value: Value, throughput: f64, mean: f64, share: f64) -> SweepRow {
        let figure = |value: f64| SweepFigure {
            value,
            low: Some(value * (1.0 - share)),
            high: Some(value * (1.0 + share)),
            ..SweepFigure::default()
        };
        let figures = [(THROUGHPUT, throughput), (MEAN, mean)];
        SweepRow {
            state: DesignState::Done,
            figures: figures.map(|(name, value)| (name.to_owned(), figure(value))).into(),
            ..SweepRow::new(design, vec![value], 1)
        }
    }

    fn curve(rows: &[SweepRow]) -> Curve {
        Curve::of(&["workload.depth=1,2".parse().unwrap()], rows).unwrap()
    }

    /// P servers of time s in a closed loop of depth d: min(d, P) / s requests a second, each of max(d, P) / P times s.
    #[test]
    fn the_knee_of_a_closed_loop_is_at_its_parallelism() {
        for servers in [2u32, 4, 16] {
            let depths = [64u32, 1, 2, 4, 8, 16, 32];
            let rows = depths.map(|depth| {
                let rate = f64::from(depth.min(servers)) / 10e-6;
                let mean = 10e3 * f64::from(depth.max(servers)) / f64::from(servers);
                row(u64::from(depth), json!(depth), rate * 4096.0, mean, 0.01)
            });
            let curve = curve(&rows);
            let order: Vec<f64> = curve.points.iter().map(|point| point.number).collect();
            assert_eq!(order, [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0]);
            let (above, below) = (Some(json!(servers / 2)), Some(json!(servers * 2)));
            assert_eq!(curve.knee, Some(Knee { value: json!(servers), above, below }));
        }
    }

    /// M/D/1: mean = s (1 + rho / (2 (1 - rho))); rho / mean is greatest where rho is 2 - sqrt 2 = 0.586.
    #[test]
    fn the_knee_of_random_arrivals_is_where_the_queue_has_its_greatest_power() {
        let rows: Vec<SweepRow> = (1..100u32)
            .map(|percent| {
                let rho = f64::from(percent) / 100.0;
                let mean = 10e3 * (1.0 + rho / (2.0 * (1.0 - rho)));
                row(percent.into(), json!(percent), rho * 1e5, mean, 0.0)
            })
            .collect();
        assert_eq!(curve(&rows).knee.unwrap().value, json!(59));
    }

    #[test]
    fn a_knee_is_no_more_exact_than_its_figures_and_may_be_at_an_end() {
        // 10, 19.8, 20, 19.9, 5: the three in the middle cannot be told apart.
        let power = |at: u64, value: f64, share: f64| row(at, json!(at), value, 1e9, share);
        let rows: Vec<SweepRow> = [10.0, 19.8, 20.0, 19.9, 5.0]
            .iter()
            .zip(1..)
            .map(|(value, at)| power(at, *value, 0.02))
            .collect();
        let knee = curve(&rows).knee.unwrap();
        assert_eq!(
            (knee.value, knee.above, knee.below),
            (json!(3), Some(json!(1)), Some(json!(5)))
        );
        let rising: Vec<SweepRow> = (1..5).map(|at| power(at, at as f64, 0.0)).collect();
        let risen = curve(&rising);
        assert_eq!((&risen.knee, risen.rises_at()), (&None, Some(&json!(4))));
        let short = curve(&rising[..2]);
        assert_eq!((&short.knee, short.rises_at()), (&None, None));
        let seeds = Curve::of(&["seed=1,2".parse().unwrap()], &rows).unwrap();
        assert_eq!((seeds.points.len(), &seeds.knee, seeds.rises_at()), (5, &None, None));
    }

    /// The true latency of the third point, and so its power, may be anything.
    #[test]
    fn a_latency_that_is_a_lower_bound_has_no_knee() {
        let mut rows: Vec<SweepRow> = [10.0, 20.0, 30.0, 5.0]
            .iter()
            .zip(1..)
            .map(|(value, at)| row(at, json!(at), *value, 1e9, 0.0))
            .collect();
        assert_eq!(curve(&rows).knee.unwrap().value, json!(3));
        rows[2].figures.get_mut(MEAN).unwrap().is_lower_bound = true;
        assert_eq!(curve(&rows).knee.unwrap().value, json!(2));
    }

    #[test]
    fn names_and_several_keys_have_no_curve() {
        let axis: Axis = "target=a,b".parse().unwrap();
        let named = [row(0, json!("a"), 1.0, 1.0, 0.0), row(1, json!("b"), 1.0, 1.0, 0.0)];
        assert_eq!(Curve::of(std::slice::from_ref(&axis), &named), None);
        assert_eq!(Curve::of(&[axis.clone(), axis], &[]), None);
        let mut empty = row(0, json!(1), 1.0, 1.0, 0.0);
        empty.figures = BTreeMap::new();
        assert_eq!(curve(&[empty, row(1, json!(2), 1.0, 1.0, 0.0)]).points[0].power, None);
    }
}
