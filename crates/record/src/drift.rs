//! Whether latency kept its level over a run: warm-up, drift, and correlation of neighbouring stretches.
//!
//! Latencies are seldom independent, and noise alone makes any rule find something now and then. So each
//! finding has to be larger than what the noise of the rest explains, correlation allowed for. Of runs that
//! are steady - constant, independent, periodic, or correlated up to 0.7 between neighbouring 32nds of
//! the run - fewer than one in a hundred gets a note of a drift, see the test `false_alarms`.

use std::ops::Range;

use ssdyno_block::Time;
use ssdyno_figures::{
    Interval, SteadyState, Warning, WarningKind, nanoseconds, rate, seconds, significant,
};

use crate::batches::Batches;
use crate::statistics::{
    Line, lag_one, mean, ratio_interval, starts_up, student_at, warm_up, warm_up_cut,
};

/// Stretches of a run that are compared.
// As many groups as intervals use, so that a note gives the correlation of neighbours that made the
// intervals wide.
const GROUPS: usize = 32;
/// Stretches that must each be above (or below) the one before.
const EIGHTHS: usize = 8;
/// A smaller change of the mean, by the mean, is not worth a note.
const DRIFT_LEAST: f64 = 0.02;
/// A warm-up that moves the mean by less is not worth a note.
const WARM_UP_LEAST: f64 = 0.02;
/// A difference counts where noise explains it in one of two thousand runs: several are looked at in a run.
const LEVEL: f64 = 0.999_5;
/// The margin by which a warm-up must differ: its cut is the most suspicious of many.
const WARM_UP_MARGIN: f64 = 1.25;
/// Half the relative width of an interval of the rate, above which the rate cannot be called steady.
const LOOSE: f64 = 0.20;
/// Correlation of neighbouring stretches above which a note reports it: independent stretches reach it in 0.4 % of
/// runs.
const CORRELATION_TOLD: f64 = 0.42;
/// A stronger correlation is not believed.
const CORRELATION_MOST: f64 = 0.95;
/// Degrees of freedom that are left however strongly stretches are correlated.
const FREEDOM_LEAST: f64 = 3.0;

/// The findings on the latencies of a run.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Findings {
    pub(crate) warnings: Vec<Warning>,
    pub(crate) notes: Vec<String>,
    /// Length of the warm-up in the warning; 0 without a warning.
    pub(crate) warm_up_seconds: f64,
}

/// Bursts of arrivals without which no warm-up can be told: a cut is an end of a burst, and fewer ends are too few to choose from.
const BURSTS_LEAST: u64 = 10;

/// What a warm-up of a load is told with.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(crate) struct Load {
    /// Requests that arrive at the first moment of an open loop: the length of a burst. 0 or 1 without bursts.
    pub(crate) at_once: u64,
    /// Requests of the recorded window, and its length in seconds; `None` where only a part of it is judged.
    pub(crate) window: Option<(u64, f64)>,
}

impl Load {
    /// Requests until the end of the burst in which `requests` end; `None` in a load with fewer than [`BURSTS_LEAST`] bursts, of
    /// `all` requests.
    fn whole_bursts(self, requests: u64, all: u64) -> Option<u64> {
        let burst = self.at_once.max(1);
        let told = burst == 1 || all / burst >= BURSTS_LEAST;
        told.then(|| requests.div_ceil(burst) * burst).filter(|cut| *cut < all)
    }
}

/// The notes about the latencies of a run of `load` whose recorded window began at `start`, in the part `within` of this window
/// (seconds).
pub(crate) fn findings(
    batches: &Batches,
    start: Time,
    within: &Range<f64>,
    load: Load,
) -> Findings {
    let start = start.as_s_f64();
    let ends = batches.ends_seconds().into_iter().map(|end| end - start);
    let all = batches.means_ns().into_iter().zip(ends).zip(batches.counts());
    let inside = all.filter(|((_, end), _)| within.contains(end));
    let ((means, ends), counts): ((Vec<f64>, Vec<f64>), Vec<f64>) = inside.unzip();
    findings_of(&means, &ends, &counts, load)
}

/// The same of the means of batches, of their ends, where those are known, and of their requests.
fn findings_of(means: &[f64], ends: &[f64], counts: &[f64], load: Load) -> Findings {
    let mut found = Findings::default();
    let cut = warm_up_of(means).and_then(|cut| at_whole_bursts(cut, counts, load));
    if let Some((cut, requests)) = cut {
        let (with, without) = (mean(means), mean(&means[cut..]));
        let change = 100.0 * (without - with) / with;
        let rates = rate_after(ends, cut, counts, load.window).unwrap_or_default();
        found.warm_up_seconds = ends.get(cut - 1).copied().unwrap_or(0.0);
        let length = seconds(found.warm_up_seconds);
        let message = format!(
            "the figures contain a warm-up: without the first {requests} requests ({length}) mean latency is {change:+.1} % (MSER){rates}"
        );
        let warning = Warning::new(WarningKind::WarmUp, message);
        found.warnings.push(
            warning.with_help(format!(
                "leave the warm-up out with `--set workload.ramp_up={requests}`"
            )),
        );
    }
    let cut = cut.map(|(cut, _)| cut);
    // A warm-up looks like a drift. It is cut off first, so that one cause gives one warning.
    // The cut is known to be real by then.
    let rest = &means[cut.unwrap_or(0)..];
    let groups = stretches(rest, GROUPS);
    let mut unsteady = |kind, message: String| {
        let warning = Warning::new(kind, message);
        found.warnings.push(warning.with_help("run longer or precondition the target"));
    };
    let drift = drift(&groups);
    let elsewhere = cut.is_none() && ends_elsewhere(means);
    if let Some(Drift { first, last }) = drift {
        // Figures of a run that slows down are better than those of a longer run.
        let slows = last > first;
        let kind = if slows { WarningKind::Slowing } else { WarningKind::NotSteady };
        // By the first eighth: by the mean of the run, a fall could exceed 100 %.
        let change = significant(100.0 * (last / first - 1.0).abs(), 3);
        let word = if slows { "rises" } else { "falls" };
        let [first, last] = [first, last].map(nanoseconds);
        unsteady(
            kind,
            format!(
                "not steady: mean latency {word} by {change} % ({first} to {last}) from the first to the last eighth of the run"
            ),
        );
    } else if elsewhere {
        let (first, second) = means.split_at(means.len() / 2);
        let slows = mean(second) > mean(first);
        unsteady(
            if slows { WarningKind::Slowing } else { WarningKind::NotSteady },
            "not steady (MSER): latency still changes in the second half of the requests"
                .to_owned(),
        );
    }
    let lag = lag_one(&groups);
    // A drift makes neighbours alike, too. The note about correlation is for runs that go
    // nowhere, where it is the only explanation of wide intervals.
    if groups.len() == GROUPS && lag > CORRELATION_TOLD && drift.is_none() && !elsewhere {
        found.notes.push(format!(
            "latencies of neighbouring parts of the run are correlated ({lag:.2}), so the intervals are wide; run longer for narrower intervals"
        ));
    }
    found
}

/// The batches before the end of the burst in which the first `cut` of them end, and the requests until then.
fn at_whole_bursts(cut: usize, counts: &[f64], load: Load) -> Option<(usize, u64)> {
    let sum = |counts: &[f64]| counts.iter().sum::<f64>().round() as u64;
    let requests = load.whole_bursts(sum(&counts[..cut]), sum(counts))?;
    let mut before = 0.0;
    let inside = |count: &&f64| {
        before += **count;
        before <= requests as f64 + 0.5
    };
    let cut = counts.iter().take_while(inside).count().max(cut);
    (cut < counts.len()).then_some((cut, requests))
}

/// The rate of the batches from `cut` on, with its interval. The interval of the whole run excludes the warm-up from
/// its spread, so it covers neither this rate nor that of the run. The rate counts to the end of the `window`, if it is known:
/// after the last completion the load may pause.
fn rate_after(
    ends: &[f64],
    cut: usize,
    counts: &[f64],
    window: Option<(u64, f64)>,
) -> Option<String> {
    let before: f64 = counts.get(..cut)?.iter().sum();
    let rest = ends.get(cut - 1..).filter(|rest| rest.len() > 1)?;
    let counts = &counts[cut..];
    let (n, count) = (rest.len() - 1, GROUPS.min(rest.len() - 1));
    let bounds: Vec<usize> = (0..=count).map(|at| at * n / count).collect();
    let pairs = || bounds.windows(2);
    let requests: Vec<f64> = pairs().map(|w| counts[w[0]..w[1]].iter().sum()).collect();
    let lengths: Vec<f64> = pairs().map(|w| rest[w[1]] - rest[w[0]]).collect();
    let whole = rest[n] - rest[0];
    if whole <= 0.0 {
        return None;
    }
    let iops = match window {
        Some((requests, seconds)) if seconds > rest[n] => {
            (requests as f64 - before) / (seconds - rest[0])
        }
        _ => counts.iter().sum::<f64>() / whole,
    };
    let interval = ratio_interval(iops, &requests, &lengths);
    let half = interval.and_then(|interval| interval.relative_half_width());
    let half = half.filter(|half| *half <= 1.0).map(|half| {
        // Batches of equal length differ by rounding alone.
        let percent = if half < 1e-6 { 0.0 } else { 100.0 * half };
        format!(" ± {} %", significant(percent, if percent < 0.1 { 1 } else { 2 }))
    });
    Some(format!(", and {} IOPS{}", rate(iops), half.unwrap_or_default()))
}

/// A rate that is known less well than the rule of a steady state lets it vary
/// (20 %, see [`steady`](crate::steady)).
pub(crate) fn loose(rate: Option<Interval>) -> Option<Warning> {
    let half = rate?.relative_half_width().filter(|half| *half > LOOSE)?;
    let known = match half {
        half if half > 1.0 => "has an interval wider than ± 100 %".to_owned(),
        half => format!("has an interval of ± {} %", significant(100.0 * half, 2)),
    };
    let message = format!("the rate {known}: the rate varies, or the run is too short");
    Some(Warning::new(WarningKind::NotSteady, message).with_help("run longer"))
}

/// That a run did not end in a steady state, or never had one.
pub(crate) fn unsettled(found: Option<&SteadyState>) -> Option<Warning> {
    let (kind, message) = match found?.periods.last() {
        None => (WarningKind::NotSteady, "no steady state reached".to_owned()),
        Some(last) => {
            let why = last.left_because.as_ref()?;
            let kind = if last.left_slower { WarningKind::Slowing } else { WarningKind::NotSteady };
            (kind, format!("not steady at the end: {why}"))
        }
    };
    Some(Warning::new(kind, message).with_help("run longer or precondition the target"))
}

/// The mean of each of `count` equal stretches; of fewer where there are fewer values.
fn stretches(means: &[f64], count: usize) -> Vec<f64> {
    let (n, count) = (means.len(), count.min(means.len()));
    (0..count).map(|at| mean(&means[at * n / count..(at + 1) * n / count])).collect()
}

/// The mean latencies of the first and the last eighth of a run.
#[derive(Clone, Copy, Debug)]
struct Drift {
    first: f64,
    last: f64,
}

/// The first and the last eighth, where the level changes all the time: along a line that is steeper than noise
/// explains, or from each eighth to the next.
fn drift(groups: &[f64]) -> Option<Drift> {
    if groups.len() < GROUPS {
        return None;
    }
    let eighths = stretches(groups, EIGHTHS);
    let change = (eighths[EIGHTHS - 1] - eighths[0]) / mean(groups);
    // Eight values in order by chance have a probability of 2 in 8!, which is 1 in 20160. Such a
    // run drifts even if the line through it is not steep against its noise.
    let rises = eighths.windows(2).all(|pair| pair[0] < pair[1]);
    let falls = eighths.windows(2).all(|pair| pair[0] > pair[1]);
    let line = Line::through(groups);
    // The slope is per group. Over the whole run it is what a reader would see as the change
    // from the beginning to the end.
    let along = (line.slope * (groups.len() - 1) as f64 / mean(groups)).abs();
    let noise = Noise::new(line.correlation, groups.len(), 2.0);
    let steep = along >= DRIFT_LEAST && noise.exceeded(line.slope, line.error);
    let found = Drift { first: eighths[0], last: eighths[EIGHTHS - 1] };
    ((steep || rises || falls) && change.abs() >= DRIFT_LEAST).then_some(found)
}

/// Leading batches that are warm-up, where they differ from the rest by more than its noise and move the
/// mean.
fn warm_up_of(means: &[f64]) -> Option<usize> {
    let cut = warm_up(means).filter(|cut| *cut > 0)?;
    let (front, rest) = means.split_at(cut);
    // A warm-up that does not move the mean costs the reader nothing. A warning about it would
    // hide those that matter.
    let moves = (mean(means) - mean(rest)).abs() > WARM_UP_LEAST * mean(means);
    // A start that fades slowly leaves a rest that still changes. The noise of that rest is too
    // large to show the difference, so a start-up counts as well.
    (moves && (differs(front, rest) || starts_up(means))).then_some(cut)
}

/// True if `front` differs from `rest` by more than the noise of the latter.
fn differs(front: &[f64], rest: &[f64]) -> bool {
    let groups = stretches(rest, 3 * GROUPS / 4);
    let (count, level) = (groups.len() as f64, mean(&groups));
    let squares: f64 = groups.iter().map(|group| (group - level).powi(2)).sum();
    // The front is compared as if it were cut into stretches of the same length as the rest. Its
    // mean then has a standard error from the same variance.
    let fronts = front.len() as f64 * count / rest.len() as f64;
    let error = (squares / (count - 1.0) * (1.0 / fronts + 1.0 / count)).sqrt();
    let noise = Noise::new(lag_one(&groups), groups.len(), 1.0);
    noise.exceeded(mean(front) - level, WARM_UP_MARGIN * error)
}

/// True if the best cut is so late that the rest is not a steady state, and if the halves, and the parts before and
/// after the cut, differ by more than noise.
fn ends_elsewhere(means: &[f64]) -> bool {
    if warm_up(means).is_some() {
        return false;
    }
    let (first, second) = means.split_at(means.len() / 2);
    let apart = (mean(first) - mean(second)).abs() > DRIFT_LEAST * mean(means);
    if !apart {
        return false;
    }
    let groups = stretches(means, GROUPS);
    let at = warm_up_cut(means) as f64 / means.len() as f64 * groups.len() as f64;
    let at = (at.round() as usize).clamp(1, groups.len() - 1);
    let (before, behind) = groups.split_at(at);
    let levels = [mean(before), mean(behind)];
    let residual = |(group, level): (&f64, f64)| group - level;
    let residuals: Vec<f64> = (before.iter().map(|group| residual((group, levels[0]))))
        .chain(behind.iter().map(|group| residual((group, levels[1]))))
        .collect();
    let squares: f64 = residuals.iter().map(|residual| residual * residual).sum();
    let share = 1.0 / before.len() as f64 + 1.0 / behind.len() as f64;
    // Two levels were fitted, so two degrees of freedom are gone. The error is that of a
    // difference of two means of unequal numbers.
    let error = (squares / (groups.len() as f64 - 2.0) * share).sqrt();
    let noise = Noise::new(lag_one(&residuals), groups.len(), 2.0);
    noise.exceeded(levels[0] - levels[1], error)
}

/// The effect of correlated neighbours on a standard error: the factor of a first-order autoregressive process, as for
/// intervals (see [`statistics::ratio`](crate::statistics::ratio)).
struct Noise {
    inflation: f64,
    freedom: f64,
}

impl Noise {
    /// For `count` values around a form with this number of parameters, whose neighbours have this correlation.
    fn new(seen: f64, count: usize, parameters: f64) -> Noise {
        let n = count as f64;
        // A fitted form follows the values, which lowers the correlation of what is left.
        // Kendall (Biometrika 41, 1954) gives the size of this bias.
        let truly = (seen + parameters / n) / (1.0 - (2.0 + parameters) / n);
        let correlation = truly.clamp(0.0, CORRELATION_MOST);
        let inflation = (1.0 + correlation) / (1.0 - correlation);
        Noise { inflation, freedom: (n / inflation - parameters).max(FREEDOM_LEAST) }
    }

    /// True if `difference` is more than noise explains, `error` being what independent values give.
    fn exceeded(&self, difference: f64, error: f64) -> bool {
        // The level is 0.9995 and not 0.95, because several differences are looked at in each
        // run. At 0.95 one steady run in twenty would get a warning from each of them.
        let student = student_at(self.freedom, LEVEL).unwrap_or(f64::INFINITY);
        difference.abs() > student * error * self.inflation.sqrt()
    }
}

#[cfg(test)]
mod tests;
