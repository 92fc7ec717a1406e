//! When a load was steady: entered and left.
//!
//! The rule comes from the SNIA performance test specification (section 2.1, *Steady State*: range
//! within 20 % of the average, slope of the best line within 10 %). It uses ten windows, each a
//! fiftieth of the run, and allows for noise. Unlike the test of rounds, it also reports when the
//! run left the steady state.

use ssdyno_figures::{SeriesPoint, SteadyPeriod, SteadyState, nanoseconds, rate, significant};

use crate::statistics::slope;

/// Windows a run is divided into, about.
const WINDOWS: usize = 50;
/// Fewer windows are too few to tell a state from a trend.
const WINDOWS_LEAST: usize = 20;
/// Requests of a window on average. The mean of a few requests is noise, and the rule would judge
/// the noise and not the load.
const REQUESTS_LEAST: u64 = 20;
/// Windows that must agree for a steady state to begin: a fifth of the run.
const ENTER: usize = 10;
/// Largest minus smallest window by the average of those.
const RANGE: f64 = 0.20;
/// Rise or fall of the best line over those windows by their average.
const SLOPE: f64 = 0.10;
/// Distance from the average at which two windows in a row leave a steady state.
const LEAVE: f64 = 0.10;
/// Distance at which one window is enough.
const LEAVE_AT_ONCE: f64 = 0.30;
/// Room for noise, in standard deviations of a window. Chosen so that noise alone is taken for a
/// change in less than one run of a hundred, see the test `false_alarms`.
const NOISE_RANGE: f64 = 9.0;
const NOISE_SLOPE: f64 = 4.5;
const NOISE_LEAVE: f64 = 4.5;
const NOISE_LEAVE_AT_ONCE: f64 = 9.0;

/// Finds the steady stretches of a series, the first of which begins after `warm_up_seconds`; `None` where the series is too short
/// to say. The last request was issued at `load_seconds`, and requests completed at so many different `moments`.
pub(crate) fn find(
    series: &[SeriesPoint],
    warm_up_seconds: f64,
    load_seconds: f64,
    moments: u64,
) -> Option<SteadyState> {
    let windows = windows(series, load_seconds, moments)?;
    let figures = [Figure::iops(&windows), Figure::latency(&windows)];
    let mut periods = Vec::new();
    let mut from = windows.partition_point(|window| window.from_seconds < warm_up_seconds);
    while from + ENTER <= windows.len() {
        // Both figures must be steady. In an open loop the arrivals set the rate, and only the
        // latency shows a change of the target.
        if figures.iter().any(|figure| !figure.enters(from)) {
            from += 1;
            continue;
        }
        let exits = figures.iter().filter_map(|figure| figure.leaves(from));
        let exit = exits.min_by_key(|exit| exit.at);
        let to = exit.as_ref().map_or(windows.len(), |exit| exit.at);
        // A stall is level, too: few requests and equal ones. It is not the steady state of a load.
        let requests: u64 = windows[from..to].iter().map(|window| window.requests).sum();
        if requests < REQUESTS_LEAST * (to - from) as u64 {
            from = to;
            continue;
        }
        periods.push(period(&windows[from..to], exit));
        // The window that ended the last state may begin the next one: a step leads from one
        // steady level to another.
        from = to;
    }
    let whole = match windows.as_slice() {
        [first, .., last] => last.to_seconds - first.from_seconds,
        _ => 0.0,
    };
    // The sum of no numbers is -0.0 in Rust, which would be in the JSON.
    let steady = periods.iter().fold(0.0, |sum, p| sum + (p.to_seconds - p.from_seconds));
    Some(SteadyState {
        criterion: CRITERION.to_owned(),
        warm_up_seconds: periods.first().map(|p| p.from_seconds),
        steady_share: if whole > 0.0 { (steady / whole).min(1.0) } else { 0.0 },
        periods,
        ..SteadyState::default()
    })
}

const CRITERION: &str = "rate and mean latency over ten windows, each a fiftieth of the run: range \
                         within 20 % of the average, best line within 10 % (SNIA PTS). The period \
                         ends when two windows in a row are 10 % off its average so far, or one \
                         window is 30 % off. All limits allow for the noise of a window (false \
                         alarms in less than 1 % of runs with only independent noise). Swings \
                         faster than a window count as noise";

/// One window.
#[derive(Clone, Copy, Debug)]
struct Window {
    from_seconds: f64,
    to_seconds: f64,
    requests: u64,
    latency_ns_sum: f64,
}

impl Window {
    fn seconds(&self) -> f64 {
        self.to_seconds - self.from_seconds
    }
}

fn windows(series: &[SeriesPoint], load_seconds: f64, moments: u64) -> Option<Vec<Window>> {
    // A device that completes 32 requests at once makes one observation, and not 32: its moments are rounds, too.
    let of_moments = points_of(usize::try_from(moments).unwrap_or(usize::MAX), series.len());
    // Behind the last request that was issued, only the outstanding requests end: one that waits
    // for the garbage collection can fill several points alone. Their rate is not a rate of the
    // load, so points are left out that the load covers by less than nine tenths. The rest of the
    // last point is one of them.
    let length = series.first()?.length_seconds;
    let covered = series.partition_point(|p| p.start_seconds + 0.9 * length <= load_seconds);
    let series = &series[..covered];
    let each = (series.len() / WINDOWS).max(1).max(points_of_rounds(series)).max(of_moments);
    let window = |points: &[SeriesPoint]| {
        let last = points.last();
        Window {
            from_seconds: points.first().map_or(0.0, |p| p.start_seconds),
            to_seconds: last.map_or(0.0, |p| p.start_seconds + p.length_seconds),
            requests: points.iter().map(SeriesPoint::requests).sum(),
            latency_ns_sum: points
                .iter()
                .filter_map(|p| Some(p.latency_ns_mean? * p.requests() as f64))
                .sum(),
        }
    };
    let mut windows: Vec<Window> = series.chunks_exact(each).map(window).collect();
    // The start of a point and its length are rounded, so a window may seem to end after the
    // next one begins. Periods must not overlap, so the start of the next window decides.
    for at in 1..windows.len() {
        windows[at - 1].to_seconds = windows[at].from_seconds;
    }
    let requests: u64 = windows.iter().map(|window| window.requests).sum();
    let enough =
        windows.len() >= WINDOWS_LEAST && requests >= REQUESTS_LEAST * windows.len() as u64;
    enough.then_some(windows)
}

/// Rounds that a window contains at least, if the load comes in rounds: one more or less is then within the limits.
const ROUNDS_LEAST: usize = 10;

/// The points of a window that contains enough rounds; 0 if the load does not come in rounds.
///
/// The requests of a closed loop complete together if they all take equally long, as those of bursts do. A window with one or
/// two of such rounds, by turns, would show a change of the rate by half that is only its own place.
fn points_of_rounds(series: &[SeriesPoint]) -> usize {
    let is_empty = |point: &SeriesPoint| point.requests() == 0;
    let empty = series.iter().filter(|point| is_empty(point)).count();
    let rounds = series.chunk_by(|a, b| is_empty(a) == is_empty(b));
    let rounds =
        rounds.filter(|points| points.first().is_some_and(|first| !is_empty(first))).count();
    // A load that stalled has empty points as well, but they lie together.
    let comes_in_rounds = 2 * empty >= series.len() && rounds >= WINDOWS_LEAST;
    if comes_in_rounds { points_of(rounds, series.len()) } else { 0 }
}

/// The points of a window that contains enough of the `rounds` in all `points`.
fn points_of(rounds: usize, points: usize) -> usize {
    (ROUNDS_LEAST * points).div_ceil(rounds.max(1))
}

fn period(windows: &[Window], exit: Option<Exit>) -> SteadyPeriod {
    let requests: u64 = windows.iter().map(|window| window.requests).sum();
    let seconds: f64 = windows.iter().map(Window::seconds).sum();
    let latency: f64 = windows.iter().map(|window| window.latency_ns_sum).sum();
    SteadyPeriod {
        from_seconds: windows.first().map_or(0.0, |window| window.from_seconds),
        to_seconds: windows.last().map_or(0.0, |window| window.to_seconds),
        iops: if seconds > 0.0 { requests as f64 / seconds } else { 0.0 },
        latency_ns_mean: latency / requests.max(1) as f64,
        left_slower: exit.as_ref().is_some_and(|exit| exit.slower),
        left_because: exit.map(|exit| exit.why),
    }
}

/// The cause that ended a steady state.
struct Exit {
    at: usize,
    why: String,
    /// Whether the rate fell or latency rose.
    slower: bool,
}

/// One figure by window.
struct Figure {
    name: &'static str,
    show: fn(f64) -> String,
    values: Vec<f64>,
    /// Whether a larger value means a slower target.
    rises_slower: bool,
    /// Standard deviation of a window, as far as it is noise.
    noise: f64,
}

impl Figure {
    fn iops(windows: &[Window]) -> Figure {
        let rate_of = |w: &Window| match w.seconds() {
            s if s > 0.0 => w.requests as f64 / s,
            _ => 0.0,
        };
        Figure::new("the request rate", rate, false, windows.iter().map(rate_of).collect())
    }

    fn latency(windows: &[Window]) -> Figure {
        let mut last = 0.0;
        let mut mean = |w: &Window| {
            // A window without completions has no latency, and zero would look like a fast
            // device. It keeps the latency before; its rate shows the stall.
            if w.requests > 0 {
                last = w.latency_ns_sum / w.requests as f64;
            }
            last
        };
        Figure::new("mean latency", nanoseconds, true, windows.iter().map(&mut mean).collect())
    }

    fn new(
        name: &'static str,
        show: fn(f64) -> String,
        rises_slower: bool,
        values: Vec<f64>,
    ) -> Figure {
        // Second differences see neither level nor trend, and slow swings hardly: of independent
        // noise their variance is six times its own. The median ignores single steps.
        let second = |w: &[f64]| (w[0] - 2.0 * w[1] + w[2]).abs();
        let mut differences: Vec<f64> = values.windows(3).map(second).collect();
        differences.sort_unstable_by(f64::total_cmp);
        let median = differences.get(differences.len() / 2).copied().unwrap_or(0.0);
        Figure { name, show, values, rises_slower, noise: median / 0.6745 / 6f64.sqrt() }
    }

    /// Whether a steady state may begin at window `from`.
    fn enters(&self, from: usize) -> bool {
        let values = &self.values[from..from + ENTER];
        let mean = average(values);
        let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        // The limits of the specification are shares of the mean. Noise alone has a range of
        // several deviations over ten windows, so a noisy target would never be steady without
        // the room for it.
        let line = slope(values) * (ENTER - 1) as f64;
        most - least <= (RANGE * mean).max(NOISE_RANGE * self.noise)
            && line.abs() <= (SLOPE * mean).max(NOISE_SLOPE * self.noise)
    }

    /// Where a steady state that began at window `from` ends; `None` if it lasts.
    fn leaves(&self, from: usize) -> Option<Exit> {
        let mut sum: f64 = self.values[from..from + ENTER].iter().sum();
        for at in from + ENTER..self.values.len() {
            let mean = sum / (at - from) as f64;
            let off = |at: usize| self.values.get(at).map_or(0.0, |value| value - mean);
            let (near, far) = (
                (LEAVE * mean).max(NOISE_LEAVE * self.noise),
                (LEAVE_AT_ONCE * mean).max(NOISE_LEAVE_AT_ONCE * self.noise),
            );
            let now = off(at);
            // The second window must be off to the same side. One above and one below are noise
            // and no other level.
            let follows = off(at + 1) * now.signum() > near;
            if now.abs() > far || (now.abs() > near && follows) {
                let to = if follows { average(&self.values[at..at + 2]) } else { self.values[at] };
                let slower = (to > mean) == self.rises_slower;
                return Some(Exit { at, why: self.change(mean, to), slower });
            }
            sum += self.values[at];
        }
        None
    }

    /// The change of the level from `from` to `to`; a change from 0 has no percentage.
    fn change(&self, from: f64, to: f64) -> String {
        let word = if to > from { "rose" } else { "fell" };
        let (shown_from, shown_to) = ((self.show)(from), (self.show)(to));
        let change = 100.0 * (to / from - 1.0);
        if !change.is_finite() {
            return format!("{} {word} from {shown_from} to {shown_to}", self.name);
        }
        let share = significant(change.abs(), 2);
        format!("{} {word} by {share} % ({shown_from} to {shown_to})", self.name)
    }
}

fn average(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::draw::Draw;

    /// Of a load whose requests complete one by one.
    fn find(series: &[SeriesPoint], warm_up: f64, load: f64) -> Option<SteadyState> {
        super::find(series, warm_up, load, u64::MAX)
    }

    /// A series of `levels`, the share of the usual rate in each point, of 100 ms.
    fn series(levels: &[f64]) -> Vec<SeriesPoint> {
        let point = |(at, level): (usize, &f64)| SeriesPoint {
            start_seconds: at as f64 / 10.0,
            length_seconds: 0.1,
            reads: (10_000.0 * level).max(0.0) as u64,
            latency_ns_mean: Some(100_000.0 / level.max(1e-3)),
            ..SeriesPoint::default()
        };
        levels.iter().enumerate().map(point).collect()
    }

    fn found(levels: &[f64]) -> SteadyState {
        find(&series(levels), 0.0, levels.len() as f64 / 10.0).unwrap()
    }

    fn noise(seed: u64, spread: f64, points: usize) -> Vec<f64> {
        let mut state = seed;
        let mut uniform = || {
            state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mut z = state;
            z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
        };
        // The sum of twelve uniform values is nearly normal with variance one.
        let mut normal = || (0..12).map(|_| uniform()).sum::<f64>() - 6.0;
        (0..points).map(|_| 1.0 + spread * normal()).collect()
    }

    /// Steady for the rule of the series from the start, but told as a warm-up for a while: the figures of the stretch are those behind it.
    #[test]
    fn a_warm_up_is_not_steady() {
        let levels = [vec![1.04; 8], vec![1.0; 92]].concat();
        let whole = find(&series(&levels), 0.0, 10.0).unwrap();
        assert_eq!(whole.warm_up_seconds, Some(0.0));
        let end = series(&levels)[8].start_seconds;
        let behind = find(&series(&levels), end, 10.0).unwrap();
        assert_eq!(behind.warm_up_seconds, Some(end));
        assert!(behind.periods[0].iops < whole.periods[0].iops, "{behind:?} {whole:?}");
        assert!(behind.steady_share < 0.93);
    }

    /// A constant device at depth 32: rounds of 32 requests, with empty points between them. 62 rounds are too few to
    /// say, and 620 are steady from start to end.
    #[test]
    fn equal_rounds_are_no_change_of_the_rate() {
        let rounds = |count: usize| {
            let at = |at: usize| if at % 8 == 7 { 0.1 } else { 0.0 };
            let levels: Vec<f64> = (0..8 * count).map(at).collect();
            find(&series(&levels), 0.0, levels.len() as f64 / 10.0)
        };
        assert_eq!(rounds(62), None);
        for count in [200, 217, 620, 1001] {
            let state = rounds(count).unwrap();
            assert!(state.steady_share > 0.9 && state.periods.len() == 1, "{count}: {state:?}");
        }
        // A stall is no round: the points before it are judged as before.
        let stalled = [vec![1.0; 60], vec![0.0; 140]].concat();
        assert!(found(&stalled).steady_share < 0.5);
    }

    /// `batches` batches of 32 requests, each after the mean gap of a batch (1 s) with a jitter of 5 %, in a series of
    /// `points`; the last third has gaps that are `slower` times as long.
    fn of_batches(seed: u64, batches: u32, points: usize, slower: f64) -> Option<SteadyState> {
        let mut draw = Draw(seed);
        let mut now = 0.0;
        let ends: Vec<f64> = (0..batches)
            .map(|at| {
                let level = if 3 * at >= 2 * batches { slower } else { 1.0 };
                now += level * (1.0 + 0.05 * draw.normal());
                now
            })
            .collect();
        let length_seconds = now / points as f64;
        let mut series: Vec<SeriesPoint> = (0..points)
            .map(|at| SeriesPoint {
                start_seconds: at as f64 * length_seconds,
                length_seconds,
                latency_ns_mean: Some(1e9),
                ..SeriesPoint::default()
            })
            .collect();
        for end in ends {
            let at = ((end / length_seconds) as usize).min(points - 1);
            series[at].reads += 32;
        }
        super::find(&series, 0.0, now, u64::from(batches))
    }

    /// A device that completes 32 requests at once, 40 runs (seeds 1 to 40) each: at most one of them is called unsteady, at
    /// any number of points for a batch. 156 batches (5000 requests) are too few to say. A rate that falls by 30 % after
    /// two thirds of 1250 batches, at 833 s of 1429 s, is in no steady period together with the rate before.
    #[test]
    fn completions_in_batches_are_no_change_of_the_rate() {
        let is_left = |state: &SteadyState| {
            state.periods.first().is_none_or(|first| first.left_because.is_some())
        };
        for points in [100, 256, 340, 500] {
            for batches in [156, 220, 312, 625] {
                let runs = (1..=40).filter_map(|seed| of_batches(seed, batches, points, 1.0));
                let alarms = runs.filter(|state| is_left(state)).count();
                assert!(alarms <= 1, "{alarms} of 40: {batches} batches in {points} points");
            }
            assert_eq!(of_batches(1, 156, points, 1.0), None);
            for seed in 1..=40 {
                let state = of_batches(seed, 1250, points, 1.0 / 0.7).unwrap();
                let spans = |p: &SteadyPeriod| p.from_seconds < 700.0 && p.to_seconds > 1000.0;
                assert!(!state.periods.iter().any(spans), "{seed}, {points}: {state:?}");
            }
        }
    }

    /// 1000 runs of independent noise of 1, 5 and 15 % a window (seeds 0 to 999): at most 10 of
    /// each are not steady from start to end.
    #[test]
    fn false_alarms() {
        for spread in [0.01, 0.05, 0.15] {
            let alarms = (0..1_000)
                .filter(|seed| found(&noise(*seed, spread, 50)).steady_share < 1.0)
                .count();
            assert!(alarms <= 10, "{alarms} of 1000 at {spread}");
        }
    }

    #[test]
    fn too_short_to_say() {
        assert!(find(&[], 0.0, 10.0).is_none());
        assert!(find(&series(&[1.0; 19]), 0.0, 1.9).is_none());
        let few = series(&[0.001; 50]);
        assert!(find(&few, 0.0, 5.0).is_none(), "ten requests a point");
    }

    /// The last request is issued at 4.75 s; requests that wait for garbage collection end by 5 s.
    #[test]
    fn requests_that_end_after_the_load_are_no_change_of_its_rate() {
        let mut levels = vec![1.0; 50];
        levels[47..].copy_from_slice(&[0.6, 0.01, 0.001]);
        let drained = find(&series(&levels), 0.0, 4.75).unwrap();
        assert_eq!((drained.periods.len(), drained.steady_share), (1, 1.0), "{drained:?}");
        let kept = find(&series(&levels), 0.0, 5.0).unwrap();
        assert!(kept.periods[0].left_slower, "{kept:?}");
    }

    /// Between two bursts of writes the drive cleans, and answers one request in a window.
    #[test]
    fn a_stall_is_no_steady_state() {
        let mut levels = vec![1.0; 60];
        levels[20..36].fill(0.0001);
        let found = found(&levels);
        let times: Vec<_> = found.periods.iter().map(|p| (p.from_seconds, p.to_seconds)).collect();
        assert_eq!(times, [(0.0, 2.0), (3.6, 6.0)], "{found:?}");
    }

    #[test]
    fn warm_up_then_steady_then_left() {
        let mut levels = vec![2.0; 16];
        levels.extend([1.0; 54]);
        levels.extend([0.6; 30]);
        let found = found(&levels);
        let times: Vec<_> = found.periods.iter().map(|p| (p.from_seconds, p.to_seconds)).collect();
        // Windows are two points here; the fast start is too short to be steady itself.
        assert_eq!(times, [(1.6, 7.0), (7.0, 10.0)]);
        let why = found.periods[0].left_because.as_deref().unwrap();
        assert_eq!(why, "the request rate fell by 40 % (100.0 k to 60.00 k)");
        assert!(found.periods[0].left_slower);
        assert!((found.steady_share - 0.84).abs() < 1e-9 && found.warm_up_seconds == Some(1.6));
        assert!(found.text().starts_with("from 1.600 s to 7.000 s, ended because "));
        assert!(found.text().ends_with("; from 7.000 s to the end"), "{}", found.text());
    }

    #[test]
    fn a_stall_of_one_window_ends_it_and_it_is_entered_again() {
        let mut levels = vec![1.0; 50];
        levels[25] = 0.0;
        let found = found(&levels);
        assert_eq!(found.periods.len(), 2, "{found:?}");
        assert!(found.periods[0].left_because.as_deref().unwrap().contains("fell by 100 %"));
        assert_eq!(found.periods[1].from_seconds, 2.6);
    }

    #[test]
    fn no_steady_period_is_a_share_of_plus_zero() {
        let levels: Vec<f64> = (0..50).map(|at| f64::from(at + 1) / 10.0).collect();
        let found = found(&levels);
        assert_eq!(found.periods.len(), 0, "{found:?}");
        assert!(found.steady_share == 0.0 && found.steady_share.is_sign_positive());
    }

    /// A trace with a lead-in: no request is no load that could be steady.
    #[test]
    fn a_start_from_nothing_is_no_steady_state() {
        let mut levels = vec![0.0; 20];
        levels.extend([1.0; 30]);
        let found = found(&levels);
        assert_eq!((found.periods.len(), found.periods[0].from_seconds), (1, 2.0), "{found:?}");
    }

    proptest! {
        #[test]
        fn a_step_is_found_where_it_is(
            seed in any::<u64>(), at in 15usize..35, to in prop_oneof![0.3..0.7, 1.5..3.0],
        ) {
            let mut levels = noise(seed, 0.02, 50);
            levels[at..].iter_mut().for_each(|level| *level *= to);
            let found = found(&levels);
            let left = &found.periods[0];
            prop_assert!((left.to_seconds - at as f64 / 10.0).abs() < 0.01, "{found:?}");
            let word = if to < 1.0 { "rate fell" } else { "rate rose" };
            prop_assert!(left.left_because.as_deref().unwrap().contains(word), "{found:?}");
            prop_assert_eq!(left.left_slower, to < 1.0);
            prop_assert_eq!(found.periods.len(), 2);
        }

        /// To twice the level and more, or to half of it and less, from start to end.
        #[test]
        fn a_ramp_is_never_steady_for_long(
            seed in any::<u64>(), to in prop_oneof![0.1..0.4, 2.5..6.0],
        ) {
            let mut levels = noise(seed, 0.01, 50);
            for (at, level) in levels.iter_mut().enumerate() {
                *level *= 1.0 + (to - 1.0) * at as f64 / 49.0;
            }
            let found = found(&levels);
            // The top of a steep ramp changes least in proportion.
            prop_assert!(found.steady_share <= 0.5, "{found:?}");
        }

        #[test]
        fn a_slow_swing_is_not_steady(
            seed in any::<u64>(), period in 12.0..18.0f64, swing in 0.3..0.6f64, phase in 0.0..6.3f64,
        ) {
            let mut levels = noise(seed, 0.01, 50);
            for (at, level) in levels.iter_mut().enumerate() {
                *level *= 1.0 + swing * (std::f64::consts::TAU * at as f64 / period + phase).sin();
            }
            prop_assert!(found(&levels).steady_share == 0.0, "{:?}", found(&levels));
        }

        #[test]
        fn periods_are_in_order_and_inside(levels in prop::collection::vec(0.0f64..3.0, 20..600)) {
            if let Some(found) = find(&series(&levels), 0.0, levels.len() as f64 / 10.0) {
                let mut last = 0.0;
                for period in &found.periods {
                    prop_assert!(last <= period.from_seconds);
                    prop_assert!(period.from_seconds < period.to_seconds);
                    prop_assert!(period.iops.is_finite() && period.latency_ns_mean.is_finite());
                    last = period.to_seconds;
                }
                prop_assert!(last <= levels.len() as f64 / 10.0 + 1e-9);
                prop_assert!((0.0..=1.0).contains(&found.steady_share));
            }
        }
    }
}
