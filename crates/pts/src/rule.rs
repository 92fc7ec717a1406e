//! When a device is in steady state.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ssdyno_record::slope;

/// Rounds of a measurement window (PTS 2.0.2: the definition of steady state, and step 3 of each
/// test: rounds x-4 to x).
pub const WINDOW_ROUNDS: usize = 5;

/// Largest minus smallest value of the window by its average, at most.
pub const RANGE_MOST: f64 = 0.20;

/// Rise or fall of the best line over the window by the average, at most.
pub const SLOPE_MOST: f64 = 0.10;

/// What floating point may add to a value that is exactly on the border.
const ROUNDING: f64 = 1e-12;

/// The last rounds of a tracked figure, and whether they are steady.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Window {
    /// First round of the window, counted from 1.
    pub first_round: u32,
    /// Last round of the window.
    pub last_round: u32,
    /// Average of the figure over the window.
    pub average: f64,
    /// (largest - smallest) / average; at most 0.20 in steady state.
    pub range_excursion: f64,
    /// |rise of the best line over the window| / average; at most 0.10 in steady state.
    pub slope_excursion: f64,
    /// The best line (least squares) at the first round of the window.
    pub fit_first: f64,
    /// The best line at the last round of the window.
    pub fit_last: f64,
    /// Whether both excursions are within their bounds.
    pub steady: bool,
}

impl Window {
    /// The window that ends with the last of `values`, one a round from round 1 on; `None` before
    /// there are enough rounds.
    pub fn last(values: &[f64]) -> Option<Window> {
        let first = values.len().checked_sub(WINDOW_ROUNDS)?;
        let inside = &values[first..];
        let average = inside.iter().sum::<f64>() / WINDOW_ROUNDS as f64;
        let most = inside.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let least = inside.iter().copied().fold(f64::INFINITY, f64::min);
        // The slope is per round. The specification limits the rise of the best line over the
        // window, which spans four steps between five rounds.
        let rise = slope(inside) * (WINDOW_ROUNDS - 1) as f64;
        // A device that completes nothing has an average of zero. Its excursion counts as the
        // whole average, because five rounds of nothing are no steady state.
        let share = |amount: f64| if average > 0.0 { amount / average } else { 1.0 };
        let (range_excursion, slope_excursion) = (share(most - least), share(rise.abs()));
        Some(Window {
            first_round: first as u32 + 1,
            last_round: values.len() as u32,
            average,
            range_excursion,
            slope_excursion,
            fit_first: average - rise / 2.0,
            fit_last: average + rise / 2.0,
            // A value exactly on the border is steady. Rounding of the division may lift it
            // above the border, so the comparison has room for that.
            steady: range_excursion <= RANGE_MOST + ROUNDING
                && slope_excursion <= SLOPE_MOST + ROUNDING,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn steady(values: &[f64]) -> bool {
        Window::last(values).unwrap().steady
    }

    #[test]
    fn five_rounds_are_needed() {
        assert!(Window::last(&[100.0; 4]).is_none());
        let window = Window::last(&[1.0, 100.0, 100.0, 100.0, 100.0, 100.0]).unwrap();
        assert_eq!((window.first_round, window.last_round, window.steady), (2, 6, true));
        assert!(!steady(&[0.0; 5]));
    }

    /// The line stays well within its bound: only the range decides.
    #[test]
    fn the_range_may_be_20_percent_and_no_more() {
        let rounds = |range: f64| {
            let (high, low) = (100.0 + range / 2.0, 100.0 - range / 2.0);
            [100.0, high, 100.0, low, 100.0]
        };
        // High in round 2 and low in round 4 tilt the line by 20 / 10 a round, 8 over the window.
        let tilted = Window::last(&rounds(20.0)).unwrap();
        assert!((tilted.slope_excursion - 0.08).abs() < 1e-12, "{tilted:?}");
        assert!((tilted.range_excursion - 0.20).abs() < 1e-12 && tilted.steady, "{tilted:?}");
        assert!(!steady(&rounds(20.001)));
        assert!(steady(&[110.0, 95.0, 90.0, 95.0, 110.0]), "range 20 of 100, flat");
        assert!(!steady(&[110.1, 95.0, 89.8, 95.0, 110.1]), "range 20.3 of 100, flat");
    }

    /// On a straight line range and slope excursion are the same: the slope decides at 10 %.
    #[test]
    fn the_line_may_rise_10_percent_and_no_more() {
        let line = |rise: f64| [0.0, 0.25, 0.5, 0.75, 1.0].map(|x| 100.0 + rise * (x - 0.5));
        for sign in [1.0, -1.0] {
            let border = Window::last(&line(10.0 * sign)).unwrap();
            assert!((border.slope_excursion - 0.10).abs() < 1e-12 && border.steady, "{border:?}");
            assert!((border.fit_first - (100.0 - 5.0 * sign)).abs() < 1e-9);
            assert!((border.fit_last - (100.0 + 5.0 * sign)).abs() < 1e-9);
            assert!(!steady(&line(10.001 * sign)));
        }
    }

    proptest! {
        #[test]
        fn the_unit_does_not_matter(
            values in prop::collection::vec(1.0f64..1e6, 5..30), unit in 1e-6f64..1e6,
        ) {
            let scaled: Vec<f64> = values.iter().map(|v| v * unit).collect();
            let (a, b) = (Window::last(&values).unwrap(), Window::last(&scaled).unwrap());
            prop_assert!((a.range_excursion - b.range_excursion).abs() < 1e-9);
            prop_assert!((a.slope_excursion - b.slope_excursion).abs() < 1e-9);
            prop_assert!(a.slope_excursion <= 1.2 * a.range_excursion + 1e-9);
        }
    }
}
