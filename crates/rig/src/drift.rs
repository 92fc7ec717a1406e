//! Whether write amplification kept its level.
//!
//! A mean over a run that began in another state than it ended in is that of no state. Latency shows a
//! drift of cleaning late: most of what cleaning costs is hidden while the device has time left.

use ssdyno_figures::WarningKind;

use crate::course::{Course, Point};

/// Windows that a run is divided into.
const WINDOWS: usize = 20;
/// Of those, how many at the beginning are compared with how many at the end: a tenth of the run.
const COMPARED: usize = 2;
/// Pages that the host must write in each window.
const PAGES_LEAST: f64 = 1_000.0;
/// Smaller changes are not worth a word.
const CHANGE_LEAST: f64 = 0.01;
/// Standard deviations of a window beyond which a change is not noise: less than one run in a thousand
/// is told of a drift that is none, see the test `noise_is_no_drift`.
const DEVIATIONS: f64 = 6.0;

/// A change of write amplification in the course of a run.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Drift {
    /// Whether write amplification rose, which makes a longer run slower.
    pub(crate) kind: WarningKind,
    /// From where to where.
    pub(crate) message: String,
    /// What to do about it.
    pub(crate) remedy: &'static str,
}

impl Course {
    /// The drift, where there was one; pages have `page_bytes`.
    pub(crate) fn drift(&self, page_bytes: u32) -> Option<Drift> {
        let windows = self.windows(f64::from(page_bytes))?;
        let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
        // The tenths at both ends are compared. A regression over the whole run would miss a level
        // that falls quickly at the start and is constant afterwards.
        let (first, last) = (mean(&windows[..COMPARED]), mean(&windows[WINDOWS - COMPARED..]));
        // Both conditions must hold: a change must be larger than the noise and large enough to
        // matter. A long run would otherwise report a drift of 0.01 %.
        let least = (CHANGE_LEAST * last).max(DEVIATIONS * noise(&windows));
        ((last - first).abs() > least).then(|| Drift {
            kind: if last > first { WarningKind::Slowing } else { WarningKind::NotSteady },
            message: format!(
                "not steady: write amplification drifts from {first:.2} in the first tenth of the run to {last:.2} in the last"
            ),
            remedy: "run longer, and leave the beginning out with `workload.ramp_up=N` (requests)",
        })
    }

    /// Write amplification of equal parts of the run; `None` where they are too few or too short.
    fn windows(&self, page_bytes: f64) -> Option<Vec<f64>> {
        let points = self.since_full();
        let each = (points.len().checked_sub(1)?) / WINDOWS;
        if each == 0 {
            return None;
        }
        let window = |pair: &[Point]| {
            let [before, after] = pair else { return None };
            let pages = (after.written_bytes - before.written_bytes) as f64 / page_bytes;
            // A window with few writes has a ratio of small numbers. A single erased block could
            // change it by several percent.
            (pages >= PAGES_LEAST).then(|| (after.programmed - before.programmed) as f64 / pages)
        };
        let ends: Vec<_> = points.iter().copied().step_by(each).take(WINDOWS + 1).collect();
        ends.windows(2).map(window).collect()
    }
}

/// Standard deviation of a window, as far as it is noise: second differences see neither level nor
/// trend, and of independent noise their variance is six times its own.
fn noise(windows: &[f64]) -> f64 {
    // Var(w0 - 2 w1 + w2) = (1 + 4 + 1) times the variance of one window. The variance of the
    // windows themselves would contain the drift, which then would hide itself.
    let second = |w: &[f64]| (w[0] - 2.0 * w[1] + w[2]).powi(2);
    let squares: Vec<f64> = windows.windows(3).map(second).collect();
    (squares.iter().sum::<f64>() / squares.len().max(1) as f64 / 6.0).sqrt()
}

#[cfg(test)]
mod tests {
    use ssdyno_engine::Rng;

    use super::*;

    const PAGE: u32 = 4096;

    /// A run of `turns` turns, each of which writes a page and programs `pages(share of the run)`.
    fn track(turns: u32, mut pages: impl FnMut(f64) -> f64) -> Course {
        let (mut track, mut programmed) = (Course::new(0), 0.0);
        for turn in 1..=turns {
            programmed += pages(f64::from(turn) / f64::from(turns));
            let written_bytes = u64::from(turn) * u64::from(PAGE);
            track.turn(|| Point {
                written_bytes,
                programmed: programmed as u64,
                ..Point::default()
            });
        }
        track
    }

    /// Five programs more or less each time, at random: 1000 runs of 30 000 to 70 000 writes, where the
    /// noise of a window is 0.13 to 0.2 of 6.
    #[test]
    fn noise_is_no_drift() {
        for seed in 0..1_000 {
            let mut rng = Rng::new(seed, "drift");
            let track = track(30_000 + 40 * seed as u32, |_| 6.0 + 10.0 * (rng.unit() - 0.5));
            assert_eq!(track.drift(PAGE), None, "seed {seed}");
        }
    }

    #[test]
    fn a_drift_is_told_with_its_numbers() {
        let sinks = track(400_000, |share| 6.0 + 3.36 * (-5.0 * share).exp());
        let note = sinks.drift(PAGE).unwrap().message;
        assert!(note.contains("8.6") && note.contains("6.0"), "{note}");
        let mut rng = Rng::new(1, "drift");
        let rises = track(200_000, |share| 6.0 + 0.6 * share + 10.0 * (rng.unit() - 0.5));
        assert!(rises.drift(PAGE).is_some());
        // Half a percent, without noise: not worth a word.
        assert_eq!(track(400_000, |share| 6.0 + 0.03 * share).drift(PAGE), None);
    }

    #[test]
    fn short_runs_and_runs_without_writes_are_silent() {
        assert_eq!(track(5_000, |share| 1.0 + share).drift(PAGE), None);
        assert_eq!(Course::new(0).drift(PAGE), None);
        let mut reads = Course::new(0);
        (0..1_000).for_each(|_| reads.note(Point::default()));
        assert_eq!(reads.drift(PAGE), None);
    }
}
