//! Several profiles of one device made one, with narrower intervals.
//!
//! Each figure is the mean of those of the profiles on a logarithmic scale, with weights from their intervals (the fixed
//! effect of a meta-analysis). Where profiles differ by more than their intervals explain, all intervals of the
//! operation are wider by the Birge ratio, the root of Cochran's Q over its degrees of freedom (R. T. Birge, Physical
//! Review 40, 1932). Without this factor, a device that differs from day to day would get an interval that covers no day.
//!
//! A figure without an interval in one of the profiles gets Student's t over the profiles.
//!
//! Capacities of different solutions are not made one: they are kept side by side.

use std::collections::BTreeMap;

use crate::capacity;
use crate::error::ProfileError;
use crate::estimate::{CurvePoint, Estimate, estimate_of};
use crate::findings::{Breakpoint, LackOfFit, Verdict};
use crate::measure::{ProfileOp, ProfileTest};
use crate::result::{ByTest, ProfileResult, ProfileSummary, Ratio, RatioSummary};
use crate::session::ProfileSession;
use crate::solution;
use crate::stopped::StoppedBecause;

/// The 95 % quantile of the normal distribution: half of a 90 % interval in standard deviations.
const HALF_WIDTH: f64 = 1.644_853_6;

/// A figure of one profile.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known {
    pub(crate) estimate: f64,
    /// Half the width of the interval divided by the estimate.
    pub(crate) half: Option<f64>,
}

impl Known {
    pub(crate) fn new(estimate: f64, low: Option<f64>, high: Option<f64>) -> Known {
        let half = low.zip(high).map(|(low, high)| (high - low) / 2.0 / estimate);
        // A weight is one divided by the square of the width. An interval of width 0, as of a
        // simulated device without noise, would outweigh all others.
        Known { estimate, half: half.filter(|half| *half > 0.0 && half.is_finite()) }
    }
}

/// Figures of several profiles made one.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Pooled {
    pub(crate) estimate: f64,
    pub(crate) low: Option<f64>,
    pub(crate) high: Option<f64>,
    /// Cochran's Q, and its degrees of freedom: 0 where no interval says how far they may differ.
    spread: (f64, usize),
}

/// The figure that `all` are of; `None` without a positive one.
pub(crate) fn pooled(all: &[Known]) -> Option<Pooled> {
    let usable = |known: &&Known| known.estimate > 0.0 && known.estimate.is_finite();
    let all: Vec<&Known> = all.iter().filter(usable).collect();
    let weights: Option<Vec<f64>> =
        all.iter().map(|known| known.half.map(|half| (HALF_WIDTH / half).powi(2))).collect();
    // A profile without an interval has no weight. All profiles then count alike, and their
    // spread alone says how far the mean may be off.
    let Some(weights) = weights else {
        let logs: Vec<f64> = all.iter().map(|known| known.estimate.ln()).collect();
        let Estimate { mean, half_width } = estimate_of(&logs)?;
        let end = |sign: f64| half_width.map(|half| (mean + sign * half).exp());
        return Some(Pooled {
            estimate: mean.exp(),
            low: end(-1.0),
            high: end(1.0),
            spread: (0.0, 0),
        });
    };
    let sum: f64 = weights.iter().sum();
    let logs = all.iter().zip(&weights).map(|(known, weight)| (known.estimate.ln(), *weight));
    let mean = logs.clone().map(|(log, weight)| log * weight).sum::<f64>() / sum;
    let q = logs.map(|(log, weight)| weight * (log - mean).powi(2)).sum();
    let half = HALF_WIDTH / sum.sqrt();
    (!all.is_empty()).then(|| Pooled {
        estimate: mean.exp(),
        low: Some((mean - half).exp()),
        high: Some((mean + half).exp()),
        spread: (q, all.len() - 1),
    })
}

/// By how much intervals are wider because of `spreads` that they do not explain; 1 or more.
pub(crate) fn birge(spreads: impl Iterator<Item = Pooled>) -> f64 {
    let sum = |(q, n): (f64, usize), one: Pooled| (q + one.spread.0, n + one.spread.1);
    let (q, freedom) = spreads.fold((0.0, 0), sum);
    // All sizes share one factor: with two profiles, Q of a single size has one degree of
    // freedom. Below 1 the profiles agree by chance, which makes no interval narrower.
    if freedom == 0 { 1.0 } else { (q / freedom as f64).sqrt().max(1.0) }
}

impl Pooled {
    /// With an interval that is `factor` as wide.
    pub(crate) fn widened(self, factor: f64) -> Pooled {
        // The interval is one of logarithms. A power makes it wider by the factor there, and
        // keeps its lower end above zero.
        let end =
            |end: Option<f64>| end.map(|end| self.estimate * (end / self.estimate).powf(factor));
        Pooled { low: end(self.low), high: end(self.high), ..self }
    }
}

/// Makes one of `profiles`, in their order. Those of one solution become one; the other solutions follow the first in
/// `more_solutions`.
///
/// # Errors
/// There are fewer than two, or they are not of the same thing: they differ in what they measured, in span or depth.
/// Different solutions are of different devices, or their names give the same key.
pub fn merge(profiles: &[ProfileResult]) -> Result<ProfileResult, ProfileError> {
    if profiles.len() < 2 {
        return Err(ProfileError::plan("one profile cannot be merged", "name two or more results"));
    }
    if profiles.iter().any(|one| one.map.is_some()) {
        let help = "measure one map with a longer `time`, or a smaller `error`";
        return Err(ProfileError::plan("maps cannot be merged: each chose its own points", help));
    }
    // A merged profile may have several solutions. Each keeps the number of its argument, so
    // that a message names the file that the user gave.
    let mut all: Vec<(usize, ProfileResult)> = Vec::new();
    for (at, profile) in profiles.iter().enumerate() {
        let alone =
            |one: &ProfileResult| ProfileResult { more_solutions: Vec::new(), ..one.clone() };
        all.extend(profile.of_solutions().into_iter().map(|one| (at + 1, alone(one))));
    }
    let mut names: Vec<&str> = Vec::new();
    for (_, one) in &all {
        if !names.contains(&one.solution_name()) {
            names.push(one.solution_name());
        }
    }
    solution::check_all(&names)?;
    if names.len() > 1 {
        all.iter().try_for_each(|(number, other)| one_device(&all[0].1, other, *number))?;
    }
    let of_name = |name: &&str| {
        let same = all.iter().filter(|(_, one)| one.solution_name() == *name);
        let (numbers, same): (Vec<usize>, Vec<ProfileResult>) = same.cloned().unzip();
        if let [alone] = &same[..] { Ok(alone.clone()) } else { merge_solution(&same, &numbers) }
    };
    let mut solutions = names.iter().map(of_name).collect::<Result<Vec<_>, _>>()?;
    let more_solutions = solutions.split_off(1);
    let mut merged = ProfileResult { more_solutions, ..solutions.remove(0) };
    merged.notes.splice(0..0, names_differ(profiles));
    Ok(merged)
}

/// That targets have different names, which a device may have after a restart.
fn names_differ(profiles: &[ProfileResult]) -> Option<String> {
    let names: Vec<&str> = profiles.iter().map(|one| one.target.as_str()).collect();
    let differ = names.iter().any(|name| *name != names[0]);
    differ.then(|| format!("the targets have different names: {}", names.join(", ")))
}

/// Refuses a solution of another device than the first: one entry of the hardware database has both. The model and the
/// firmware are what that database matches. A device without a model is known by the name of its target only.
fn one_device(
    first: &ProfileResult,
    other: &ProfileResult,
    number: usize,
) -> Result<(), ProfileError> {
    let device = |one: &ProfileResult| {
        let disk = &one.capacity.as_ref()?.disk;
        let firmware = disk.firmware.as_deref().unwrap_or("unknown");
        Some(match &disk.model {
            Some(model) => format!("model {model}, firmware {firmware}"),
            None => format!("target {}, without a model", one.target),
        })
    };
    let refused = |what: String, help: &str| Err(ProfileError::plan(what, help));
    let help = "merge profiles of one device, or give every profile the same `solution`";
    match (device(first), device(other)) {
        (Some(one), Some(two)) if one != two => refused(
            format!(
                "profile {number} is of another device ({two}) than profile 1 ({one}): solutions are of one device"
            ),
            help,
        ),
        (Some(_), Some(_)) => Ok(()),
        _ => refused(
            format!("profile {number} or profile 1 has no capacity, and their solutions differ"),
            "solutions are for `method=capacity`",
        ),
    }
}

/// Makes one of two or more profiles of one solution; `numbers` are those of their arguments.
fn merge_solution(
    profiles: &[ProfileResult],
    numbers: &[usize],
) -> Result<ProfileResult, ProfileError> {
    let first = &profiles[0];
    for (at, other) in profiles.iter().enumerate().skip(1) {
        alike(first, other, numbers[at])?;
        if let Some(before) = profiles[..at].iter().position(|one| is_copy(one, other)) {
            let (number, before) = (numbers[at], numbers[before]);
            let what = format!("profile {number} has the same measurements as profile {before}");
            return Err(ProfileError::plan(what, "merge profiles of different seeds or times"));
        }
    }
    let mut merged = first.clone();
    let all = || profiles.iter();
    merged.stopped_because = StoppedBecause::Done;
    // A merged profile has several seeds and several states of the device. Without a plan
    // `resume` refuses it.
    merged.plan = None;
    merged.sessions = all_sessions(profiles);
    merged.seconds_spent = all().map(|one| one.seconds_spent).sum();
    merged.wall_seconds = all().map(|one| one.wall_seconds).sum();
    merged.measurements = all().flat_map(|one| one.measurements.iter().cloned()).collect();
    merged.sizes_bytes = all().flat_map(|one| one.sizes_bytes.iter().copied()).collect();
    merged.sizes_bytes.sort_unstable();
    merged.sizes_bytes.dedup();
    let noises: Vec<f64> = all().filter_map(|one| one.noise_floor).collect();
    merged.noise_floor =
        (!noises.is_empty()).then(|| noises.iter().sum::<f64>() / noises.len() as f64);
    merged.notes = vec![notes(profiles)];
    merged.notes.extend(all().flat_map(|one| one.notes.iter().cloned()));
    merged.notes.dedup();
    if first.capacity.is_some() {
        // All have one: they are alike.
        let capacities: Vec<_> = all().filter_map(|one| one.capacity.as_ref()).collect();
        let (capacity, note) = capacity::merge(&capacities, numbers)?;
        merged.capacity = Some(capacity);
        merged.notes.extend(note);
        return Ok(merged);
    }
    merge_ratios(profiles, &mut merged);
    for at in 0..first.more_depths.len() {
        let of_depth: Vec<ProfileResult> = all().map(|one| one.more_depths[at].clone()).collect();
        merged.more_depths[at] = merge_solution(&of_depth, numbers)?;
    }
    Ok(merged)
}

fn all_sessions(profiles: &[ProfileResult]) -> Vec<ProfileSession> {
    profiles.iter().flat_map(|one| one.sessions.iter().copied()).collect()
}

fn notes(profiles: &[ProfileResult]) -> String {
    let seeds: Vec<String> = profiles.iter().map(|one| one.seed.to_string()).collect();
    format!("made of {} profiles, seeds {}", profiles.len(), seeds.join(", "))
}

/// Whether two profiles have the same measurements, which count once. A capacity has figures in their place. The seed
/// does not tell: two profiles of a real device usually have the same one.
fn is_copy(one: &ProfileResult, other: &ProfileResult) -> bool {
    one.measurements == other.measurements && one.capacity == other.capacity
}

/// Refuses two profiles that are not of the same thing.
fn alike(first: &ProfileResult, other: &ProfileResult, number: usize) -> Result<(), ProfileError> {
    let differ = |what: &str, one: String, two: String| {
        let what = format!(
            "profile {number} has {what} {two}, and the first {one}: they cannot be merged"
        );
        Err(ProfileError::plan(what, "merge profiles that differ in nothing but time and seed"))
    };
    if first.capacity.is_some() != other.capacity.is_some() {
        return differ("the method", first.method.to_string(), other.method.to_string());
    }
    if first.span_bytes != other.span_bytes {
        return differ("the span", first.span_bytes.to_string(), other.span_bytes.to_string());
    }
    let depths = |one: &ProfileResult| {
        let all: Vec<String> = one.of_depths().iter().map(|one| one.depth.to_string()).collect();
        all.join(",")
    };
    if first.capacity.is_none() && depths(first) != depths(other) {
        return differ("the depth", depths(first), depths(other));
    }
    Ok(())
}

fn merge_ratios(profiles: &[ProfileResult], merged: &mut ProfileResult) {
    let sizes = merged.sizes_bytes.clone();
    let mut widest = 1.0_f64;
    let mut of_op = |ratios: &dyn Fn(&ProfileResult) -> Vec<Ratio>| {
        let (all, factor) = merge_op(profiles, &sizes, ratios);
        widest = widest.max(factor);
        all
    };
    merged.read_ratio = of_op(&|one| one.read_ratio.clone());
    merged.write_ratio = of_op(&|one| one.write_ratio.clone());
    merged.summary = ProfileSummary {
        read: RatioSummary::of(&merged.read_ratio),
        write: RatioSummary::of(&merged.write_ratio),
    };
    merged.curves = ByTest::from_fn(|test| merge_curve(profiles, &sizes, test));
    merged.verdict = verdict(profiles);
    merged.breakpoints = breakpoints(profiles);
    merged.lack_of_fit = lack_of_fit(profiles);
    for advice in &mut merged.advice {
        let ratios = match advice.op {
            ProfileOp::Read => &merged.read_ratio,
            ProfileOp::Write => &merged.write_ratio,
        };
        advice.sizes_bytes = crate::pays_from(ratios, advice.threshold);
    }
    if widest > 1.0 {
        merged.notes.push(format!(
            "the profiles differ by more than their intervals explain: intervals are up to {widest:.2} times as wide \
             as they would be"
        ));
    }
}

/// The ratios of one operation, and by how much their intervals are wider.
fn merge_op(
    profiles: &[ProfileResult],
    sizes: &[u64],
    ratios: &dyn Fn(&ProfileResult) -> Vec<Ratio>,
) -> (Vec<Ratio>, f64) {
    let all: Vec<Vec<Ratio>> = profiles.iter().map(ratios).collect();
    let of_size = |size: &u64| {
        let found: Vec<Ratio> =
            all.iter().flatten().filter(|ratio| ratio.size_bytes == *size).copied().collect();
        let known: Vec<Known> =
            found.iter().map(|one| Known::new(one.estimate, one.low, one.high)).collect();
        let measured = found.iter().any(|ratio| ratio.measured);
        pooled(&known).map(|pooled| (*size, measured, pooled))
    };
    let merged: Vec<(u64, bool, Pooled)> = sizes.iter().filter_map(of_size).collect();
    let factor = birge(merged.iter().map(|(.., pooled)| *pooled));
    let ratio = |(size_bytes, measured, pooled): (u64, bool, Pooled)| {
        let Pooled { estimate, low, high, .. } = pooled.widened(factor);
        Ratio { size_bytes, estimate, low, high, measured }
    };
    (merged.into_iter().map(ratio).collect(), factor)
}

fn merge_curve(profiles: &[ProfileResult], sizes: &[u64], test: ProfileTest) -> Vec<CurvePoint> {
    let of_size = |size: &u64| {
        let points = profiles.iter().flat_map(|one| one.curves.of(test));
        let found: Vec<&CurvePoint> = points.filter(|point| point.size_bytes == *size).collect();
        let known: Vec<Known> =
            found.iter().map(|one| Known::new(one.access_time_ns, one.low, one.high)).collect();
        let measured = found.iter().any(|point| point.measured);
        let repetitions = found.iter().map(|point| point.repetitions).sum();
        pooled(&known).map(|pooled| (*size, measured, repetitions, pooled))
    };
    let merged: Vec<(u64, bool, u32, Pooled)> = sizes.iter().filter_map(of_size).collect();
    let factor = birge(merged.iter().map(|(.., pooled)| *pooled));
    let point = |(size_bytes, measured, repetitions, pooled): (u64, bool, u32, Pooled)| {
        let Pooled { estimate: access_time_ns, low, high, .. } = pooled.widened(factor);
        CurvePoint { size_bytes, access_time_ns, low, high, measured, repetitions }
    };
    merged.into_iter().map(point).collect()
}

/// That of all where they agree.
fn verdict(profiles: &[ProfileResult]) -> Verdict {
    let first = &profiles[0].verdict;
    if profiles.iter().all(|one| one.verdict.state == first.state) {
        return first.clone();
    }
    let texts: Vec<&str> = profiles.iter().map(|one| one.verdict.text.as_str()).collect();
    Verdict {
        text: format!("the profiles do not agree: {}", texts.join("; ")),
        ..Verdict::default()
    }
}

/// Those of all; one that any profile saw agree with held-out measurements agrees.
fn breakpoints(profiles: &[ProfileResult]) -> BTreeMap<ProfileTest, Vec<Breakpoint>> {
    let mut by_test: BTreeMap<ProfileTest, BTreeMap<u64, bool>> = BTreeMap::new();
    for (test, found) in profiles.iter().flat_map(|one| &one.breakpoints) {
        let sizes = by_test.entry(*test).or_default();
        for one in found {
            *sizes.entry(one.size_bytes).or_default() |= one.held_out_agrees;
        }
    }
    let list = |sizes: BTreeMap<u64, bool>| {
        let one = |(size_bytes, held_out_agrees)| Breakpoint { size_bytes, held_out_agrees };
        sizes.into_iter().map(one).collect()
    };
    by_test.into_iter().map(|(test, sizes)| (test, list(sizes))).collect()
}

/// The worst of each test.
fn lack_of_fit(profiles: &[ProfileResult]) -> BTreeMap<ProfileTest, LackOfFit> {
    let mut worst: BTreeMap<ProfileTest, LackOfFit> = BTreeMap::new();
    for (test, found) in profiles.iter().flat_map(|one| &one.lack_of_fit) {
        let place = worst.entry(*test).or_insert(*found);
        if found.relative > place.relative {
            *place = *found;
        }
    }
    worst
}

#[cfg(test)]
mod tests {
    use super::*;
    use ssdyno_engine::Rng;

    fn known(estimate: f64, half: f64) -> Known {
        Known::new(estimate, Some(estimate * (1.0 - half)), Some(estimate * (1.0 + half)))
    }

    /// Two of the same width: their geometric mean, and an interval narrower by the root of two.
    #[test]
    fn two_alike_are_surer_by_the_root_of_two() {
        let one = pooled(&[known(2.0, 0.05), known(2.0, 0.05)]).unwrap();
        let half = (one.high.unwrap() / one.low.unwrap()).ln() / 2.0;
        assert!((half - 0.05 / 2.0_f64.sqrt()).abs() < 1e-9 && (one.estimate - 2.0).abs() < 1e-12);
        assert_eq!(birge([one].into_iter()), 1.0);
        // The surer one counts for more: weights 1 and 1/16.
        let one = pooled(&[known(2.0, 0.01), known(4.0, 0.04)]).unwrap();
        assert!((one.estimate.ln() - (2.0_f64.ln() * 16.0 + 4.0_f64.ln()) / 17.0).abs() < 1e-9);
        // They differ by far more than that: the interval covers the difference.
        let wide = one.widened(birge([one].into_iter()));
        assert!(wide.low.unwrap() < 2.0 && wide.high.unwrap() > one.high.unwrap());
    }

    #[test]
    fn without_intervals_the_profiles_are_repetitions() {
        let bare = |estimate| Known::new(estimate, None, None);
        let one = pooled(&[bare(1.0), bare(4.0)]).unwrap();
        assert!((one.estimate - 2.0).abs() < 1e-12 && one.low.unwrap() < 1.0);
        assert_eq!(pooled(&[bare(3.0)]).unwrap().low, None);
        assert_eq!(pooled(&[]), None);
        assert_eq!(pooled(&[bare(0.0), bare(f64::NAN)]), None);
    }

    /// 90 % intervals of three profiles with known noise cover the truth in 90 % of 4000 cases (seed 11), within
    /// three standard errors of the share.
    #[test]
    fn merged_intervals_cover_what_they_say() {
        let mut rng = Rng::new(11, "merge");
        let mut normal = || {
            let (radius, turn) = ((2.0 * rng.exponential()).sqrt(), rng.unit());
            radius * (std::f64::consts::TAU * turn).cos()
        };
        let mut covered = 0;
        for _ in 0..4000 {
            let noisy: Vec<Known> = [0.01, 0.02, 0.03]
                .into_iter()
                .map(|deviation| known(3.0 * (deviation * normal()).exp(), HALF_WIDTH * deviation))
                .collect();
            let Pooled { low, high, .. } = pooled(&noisy).unwrap();
            covered += u32::from(low.unwrap() <= 3.0 && 3.0 <= high.unwrap());
        }
        let share = f64::from(covered) / 4000.0;
        assert!((share - 0.9).abs() < 3.0 * (0.09_f64 / 4000.0).sqrt(), "{share}");
    }
}
