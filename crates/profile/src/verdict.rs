//! Drift of reference points, and what it says about the device.

use ssdyno_result::{seconds, significant};

use crate::findings::{DeviceState, Verdict};
use crate::measure::ProfileTest;
use crate::model::f_tail;

/// Reference points below which nothing is said.
const REFERENCES_MIN: usize = 6;

/// Probability of a drift that is none, over all places where a level may change.
const FALSE_DRIFT: f64 = 0.001;

/// Changes below this share of the access time are not worth a verdict.
const CHANGE_MIN: f64 = 0.05;

/// What a reference point did over time.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(crate) struct Trend {
    points: usize,
    /// Change of the access time from the first to the last level divided by its mean; 0 without a drift.
    change: f64,
    /// Device time at which the level changed; `None` for a gradual drift.
    at: Option<f64>,
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
        let level = |at: usize| {
            let (first, last) = series.split_at(at);
            let ((a, below), (b, above)) = (squares(first), squares(last));
            (below + above, (b - a) / mean, Some(first[at - 1].0))
        };
        let levels = (2..points - 1).map(level);
        let clock = series.iter().map(|value| value.0).sum::<f64>() / points as f64;
        let spread: f64 = series.iter().map(|value| (value.0 - clock).powi(2)).sum();
        let both: f64 = series.iter().map(|value| (value.0 - clock) * (value.1 - mean)).sum();
        let slope = both / spread.max(f64::MIN_POSITIVE);
        let whole = series[points - 1].0 - series[0].0;
        let line = (all - slope * both, slope * whole / mean, None);
        let Some((rest, change, at)) = levels.chain([line]).min_by(|a, b| a.0.total_cmp(&b.0))
        else {
            return steady;
        };
        let freedom = points as f64 - 2.0;
        let f = (all - rest) / (rest.max(all * 1e-12) / freedom);
        let chance = f_tail(f, 1.0, freedom) * points as f64;
        if chance >= FALSE_DRIFT || change.abs() < CHANGE_MIN {
            return steady;
        }
        Trend { points, change, at }
    }

    /// Relative variance that the drift adds to an estimate: that of a uniform spread over the change.
    pub(crate) fn variance(&self) -> f64 {
        self.change * self.change / 12.0
    }
}

/// The verdict of the reference points of all tests: the largest drift decides.
pub(crate) fn verdict(trends: &[(ProfileTest, Trend)]) -> Verdict {
    let known = trends.iter().filter(|(_, trend)| trend.points >= REFERENCES_MIN);
    let Some((test, trend)) = known.max_by(|a, b| a.1.change.abs().total_cmp(&b.1.change.abs()))
    else {
        let text = format!("fewer than {REFERENCES_MIN} reference measurements of each test");
        return Verdict { text, ..Verdict::default() };
    };
    let percent = significant(trend.change.abs() * 100.0, 2);
    let (state, text) = match (trend.change, trend.at) {
        (0.0, _) => {
            let text = format!("{} reference measurements of each test do not drift", trend.points);
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
    Verdict { state, burst_seconds, text }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(time: impl Fn(usize) -> f64) -> Verdict {
        let series: Vec<(f64, f64)> =
            (0..20).map(|at| (at as f64, time(at) * (1.0 + 0.01 * (at % 2) as f64))).collect();
        verdict(&[(ProfileTest::RandomWrite, Trend::of(&series))])
    }

    #[test]
    fn levels_are_bursts_and_slopes_are_throttling() {
        assert_eq!(of(|_| 10.0).state, DeviceState::Steady);
        let burst = of(|at| if at < 8 { 10.0 } else { 30.0 });
        assert_eq!((burst.state, burst.burst_seconds), (DeviceState::Burst, Some(7.0)));
        assert_eq!(of(|at| 10.0 + at as f64).state, DeviceState::Throttled);
        assert_eq!(of(|at| 40.0 - at as f64).state, DeviceState::Unknown);
        assert_eq!(verdict(&[]).state, DeviceState::Unknown);
    }
}
