//! Drift of slices, and its meaning for the device.

use ssdyno_block::units::Bytes;
use ssdyno_figures::{seconds, significant};

use crate::findings::{DeviceState, Verdict};
use crate::measure::Cell;
use crate::measure::{Burst, ProfileTest};
use crate::model::f_tail;

/// Slices below which nothing is said.
const REFERENCES_MIN: usize = 6;

/// Probability of a false drift, over all places where a level may change.
const FALSE_DRIFT: f64 = 0.001;

/// Changes below this share of the access time are not worth a verdict.
const CHANGE_MIN: f64 = 0.05;

/// The change of the access times of a test over time, divided by those of its curve.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(crate) struct Trend {
    points: usize,
    /// Change of the access time from the first to the last level divided by its mean; 0 without a drift.
    change: f64,
    /// Device time at which the level changed; `None` for a gradual drift.
    at: Option<f64>,
    /// The two levels; the mean; the slope divided by the mean, and the device time of the mean.
    levels: [f64; 2],
    mean: f64,
    slope: f64,
    clock: f64,
    /// Relative variance of the correction.
    variance: f64,
}

/// The speed of the device to which slices are corrected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Level {
    /// That after the speed changed.
    Last,
    /// The mean over all slices.
    Mean,
}

impl Level {
    /// The same for both tests of a ratio: what looks like two levels in one of them can look like a slope, or like noise,
    /// in the other, and a test without correction has the speed of the mean.
    pub(crate) fn of<'a>(mut trends: impl Iterator<Item = Option<&'a Trend>>) -> Level {
        let jumps = trends.all(|trend| trend.is_some_and(|trend| trend.at.is_some()));
        if jumps { Level::Last } else { Level::Mean }
    }
}

fn squares(values: &[(f64, f64)]) -> (f64, f64) {
    let mean = values.iter().map(|value| value.1).sum::<f64>() / values.len() as f64;
    (mean, values.iter().map(|value| (value.1 - mean).powi(2)).sum())
}

impl Trend {
    /// Of a `series` of device time and access time. Two levels compete with a line; the better one must beat
    /// a constant.
    pub(crate) fn of(series: &[(f64, f64)]) -> Trend {
        let points = series.len();
        let steady = Trend { points, ..Trend::default() };
        if points < REFERENCES_MIN {
            return steady;
        }
        let (mean, all) = squares(series);
        let freedom = points as f64 - 2.0;
        // Sums of the distances from the mean, and of their squares, up to each slice.
        let add = |(sum, square): &mut (f64, f64), value: &(f64, f64)| {
            let distance = value.1 - mean;
            (*sum, *square) = (*sum + distance, *square + distance * distance);
            Some((*sum, *square))
        };
        // Running sums give the squares on both sides of every split in one step. A sum for
        // each split would take a time that grows with the square of the slices.
        let sums: Vec<(f64, f64)> = series.iter().scan((0.0, 0.0), add).collect();
        let level = |at: usize| {
            let sum = sums[at - 1].0;
            let (below, above) = (at as f64, (points - at) as f64);
            let (a, b) = (sum / below, (sums[points - 1].0 - sum) / above);
            let rest = sums[points - 1].1 - a * a * below - b * b * above;
            let (a, b, rest) = (mean + a, mean + b, rest.max(0.0));
            let known = 1.0 / below + 1.0 / above;
            // An estimate is the mean of slices of both levels, and only slices of the first
            // level are corrected. So the variance of the correction counts with the square of
            // their share. With the whole variance, intervals after a jump covered 0.993
            // instead of 0.944.
            let corrected = below / points as f64;
            let trend = Trend {
                change: (b - a) / mean,
                at: Some(series[at - 1].0),
                levels: [a, b],
                mean,
                variance: rest / freedom * known * corrected * corrected,
                ..steady
            };
            (rest, trend)
        };
        let levels = (2..points - 1).map(level);
        let clock = series.iter().map(|value| value.0).sum::<f64>() / points as f64;
        let spread: f64 = series.iter().map(|value| (value.0 - clock).powi(2)).sum();
        let both: f64 = series.iter().map(|value| (value.0 - clock) * (value.1 - mean)).sum();
        let slope = both / spread.max(f64::MIN_POSITIVE);
        let whole = series[points - 1].0 - series[0].0;
        let rest = all - slope * both;
        let line = Trend {
            change: slope * whole / mean,
            slope: slope / mean,
            clock,
            variance: rest / freedom / points as f64,
            ..steady
        };
        let best = levels.chain([(rest, line)]).min_by(|a, b| a.0.total_cmp(&b.0));
        let Some((rest, trend)) = best else { return steady };
        // A simulated device may have no noise, and then the rest is zero. The lower bound
        // keeps F finite.
        let f = (all - rest) / (rest.max(all * 1e-12) / freedom);
        // The place of the change was chosen from all slices. So the probability is multiplied
        // by the number of places.
        let chance = f_tail(f, 1.0, freedom) * points as f64;
        if chance >= FALSE_DRIFT { steady } else { trend }
    }

    /// Whether there is a drift.
    pub(crate) fn is_certain(&self) -> bool {
        self.change != 0.0
    }

    /// How slow the device was at `clock`, divided by how slow it was in the end or on average.
    pub(crate) fn level(&self, clock: f64, level: Level) -> f64 {
        let [first, last] = self.levels;
        let Some(at) = self.at else {
            // A line may reach zero outside of the slices that it was fitted to. The bound
            // keeps every corrected time positive.
            return (1.0 + self.slope * (clock - self.clock)).max(0.1);
        };
        let own = if clock <= at { first } else { last };
        let to = if level == Level::Last { last } else { self.mean };
        if to > 0.0 { own / to } else { 1.0 }
    }

    /// Relative variance that the drift adds to an estimate.
    pub(crate) fn variance(&self) -> f64 {
        self.variance
    }
}

/// The verdict of the slices of all tests: the largest drift decides, then the burst of a write cache.
pub(crate) fn verdict(trends: &[(ProfileTest, Trend)], burst: Option<(Cell, Burst)>) -> Verdict {
    let mut verdict = drift(trends);
    let Some(((test, size), burst)) = burst else { return verdict };
    let held = Bytes(burst.held_bytes.round() as u64);
    let text = format!(
        "a write cache absorbs {held} in the first {} of {test} of {}; slices begin after that",
        seconds(burst.seconds),
        Bytes(size),
    );
    verdict.burst_bytes = Some(burst.held_bytes.round() as u64);
    if verdict.burst_seconds.is_none() {
        verdict.burst_seconds = Some(burst.seconds);
    }
    if verdict.state == DeviceState::Steady {
        verdict.state = DeviceState::Burst;
    }
    verdict.text = format!("{}; {text}", verdict.text);
    verdict
}

fn drift(trends: &[(ProfileTest, Trend)]) -> Verdict {
    let known = trends.iter().filter(|(_, trend)| trend.points >= REFERENCES_MIN);
    let Some((test, trend)) = known.max_by(|a, b| a.1.change.abs().total_cmp(&b.1.change.abs()))
    else {
        let text = format!("fewer than {REFERENCES_MIN} slices of each test");
        return Verdict { text, ..Verdict::default() };
    };
    let percent = significant(trend.change.abs() * 100.0, 2);
    let (state, text) = match (trend.change, trend.at) {
        (change, _) if change.abs() < CHANGE_MIN => {
            let points = trends.iter().map(|(_, trend)| trend.points);
            // Fewer slices give no information on a drift, so a test with fewer slices does not
            // count. The text says that other tests are left out.
            let known = points.clone().filter(|points| *points >= REFERENCES_MIN);
            let few = points.count() - known.clone().count();
            let least = known.min().unwrap_or(0);
            let text = match few {
                0 => format!("{least} or more slices of each test do not drift"),
                few => format!(
                    "{least} or more slices of a test do not drift; {few} of {} tests have fewer than {REFERENCES_MIN} slices",
                    trends.len()
                ),
            };
            (DeviceState::Steady, text)
        }
        (change, Some(at)) if change > 0.0 => {
            let text = format!("{test} became {percent} % slower after {}", seconds(at));
            (DeviceState::Burst, text)
        }
        (change, None) if change > 0.0 => {
            let text = format!("{test} became {percent} % slower over the whole profile");
            (DeviceState::Throttled, text)
        }
        _ => (DeviceState::Unknown, format!("{test} became {percent} % faster")),
    };
    let burst_seconds = trend.at.filter(|_| state == DeviceState::Burst);
    Verdict { state, burst_seconds, text, ..Verdict::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(time: impl Fn(usize) -> f64) -> Verdict {
        let series: Vec<(f64, f64)> =
            (0..20).map(|at| (at as f64, time(at) * (1.0 + 0.01 * (at % 2) as f64))).collect();
        verdict(&[(ProfileTest::RandomWrite, Trend::of(&series))], None)
    }

    #[test]
    fn levels_are_bursts_and_slopes_are_throttling() {
        assert_eq!(of(|_| 10.0).state, DeviceState::Steady);
        let burst = of(|at| if at < 8 { 10.0 } else { 30.0 });
        assert_eq!((burst.state, burst.burst_seconds), (DeviceState::Burst, Some(7.0)));
        assert_eq!(of(|at| 10.0 + at as f64).state, DeviceState::Throttled);
        assert_eq!(of(|at| 40.0 - at as f64).state, DeviceState::Unknown);
        assert_eq!(verdict(&[], None).state, DeviceState::Unknown);
    }

    /// Two slices of a test give no information on its drift: the text gives the number of the test that is known.
    #[test]
    fn a_test_with_few_slices_is_not_in_the_number() {
        let series = |slices: u32| -> Vec<(f64, f64)> {
            (0..slices).map(|at| (f64::from(at), 10.0 + 0.1 * f64::from(at % 2))).collect()
        };
        let [many, few] = [20, 2].map(|slices| Trend::of(&series(slices)));
        let of = |trends: &[(ProfileTest, Trend)]| verdict(trends, None).text;
        let both = of(&[(ProfileTest::RandomRead, many), (ProfileTest::SequentialRead, few)]);
        assert_eq!(
            both,
            "20 or more slices of a test do not drift; 1 of 2 tests have fewer than 6 slices"
        );
        let one = of(&[(ProfileTest::RandomRead, many)]);
        assert_eq!(one, "20 or more slices of each test do not drift");
    }
}
