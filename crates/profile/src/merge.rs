//! Several profiles of one device made one, with narrower intervals.
//!
//! Each figure is the mean of those of the profiles on a logarithmic scale (`pool.rs`). Where profiles differ by more than
//! their intervals explain, all intervals of the operation are wider by the Birge ratio, the root of Cochran's Q over its
//! degrees of freedom (R. T. Birge, Physical Review 40, 1932). Without this factor, a device that differs from day to day
//! would get an interval that covers no day.
//!
//! A figure without an interval in one of the profiles gets Student's t over the profiles.
//!
//! Capacities of different solutions are not made one: they are kept side by side.

use std::collections::BTreeMap;

use ssdyno_session::Failure;

use crate::capacity;
use crate::error::refused;
use crate::estimate::CurvePoint;
use crate::findings::{Breakpoint, LackOfFit, Verdict};
use crate::measure::{ProfileOp, ProfileTest};
use crate::method::MethodName;
use crate::pool::{Known, Pooled, birge, pooled};
use crate::result::{ByTest, ProfileResult, ProfileSummary, Ratio, RatioSummary};
use crate::session::ProfileSession;
use crate::solution;
use crate::stopped::StoppedBecause;

/// Makes one of `profiles`, in their order. Those of one solution become one; the other solutions follow the first in
/// `more_solutions`.
///
/// # Errors
/// There are fewer than two, or they are not of the same thing: they differ in what they measured, in span or depth.
/// Different solutions are of different devices, or their names give the same key.
pub fn merge(profiles: &[ProfileResult]) -> Result<ProfileResult, Failure> {
    if profiles.len() < 2 {
        return Err(refused("one profile cannot be merged", "name two or more results"));
    }
    if profiles.iter().any(|one| one.map.is_some()) {
        let help = "measure one map with a longer `time`, or a smaller `error`";
        return Err(refused("maps cannot be merged, because each has its own points", help));
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
fn one_device(first: &ProfileResult, other: &ProfileResult, number: usize) -> Result<(), Failure> {
    let device = |one: &ProfileResult| {
        let disk = &one.capacity.as_ref()?.disk;
        let firmware = disk.firmware.as_deref().unwrap_or("unknown");
        Some(match &disk.model {
            Some(model) => format!("model {model}, firmware {firmware}"),
            None => format!("target {}, without a model", one.target),
        })
    };
    let refused = |what: String, help: &str| Err(refused(what, help));
    let help = "merge profiles of one device, or give every profile the same `solution`";
    match (device(first), device(other)) {
        (Some(one), Some(two)) if one != two => refused(
            format!(
                "profile {number} is of a different device ({two}) from profile 1 ({one}); all solutions of a file must be of the same device"
            ),
            help,
        ),
        (Some(_), Some(_)) => Ok(()),
        _ => refused(
            format!(
                "profile {number} or profile 1 has no capacity result, which profiles with different solutions need"
            ),
            "solutions are for `method=capacity`",
        ),
    }
}

/// Makes one of two or more profiles of one solution; `numbers` are those of their arguments.
fn merge_solution(profiles: &[ProfileResult], numbers: &[usize]) -> Result<ProfileResult, Failure> {
    let first = &profiles[0];
    for (at, other) in profiles.iter().enumerate().skip(1) {
        alike(first, other, numbers[at])?;
        if let Some(before) = profiles[..at].iter().position(|one| is_copy(one, other)) {
            let (number, before) = (numbers[at], numbers[before]);
            let what = format!("profile {number} has the same measurements as profile {before}");
            return Err(refused(what, "merge profiles of different seeds or times"));
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
    merged.warnings = all().flat_map(|one| one.warnings.iter().cloned()).collect();
    merged.warnings.dedup();
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
/// does not identify a profile: two profiles of a real device usually have the same seed.
fn is_copy(one: &ProfileResult, other: &ProfileResult) -> bool {
    one.measurements == other.measurements && one.capacity == other.capacity
}

/// Refuses two profiles that are not of the same thing.
fn alike(first: &ProfileResult, other: &ProfileResult, number: usize) -> Result<(), Failure> {
    let differ = |what: &str, one: String, two: String| {
        let what = format!(
            "profile {number} has {what} {two}, and the first {one}: they cannot be merged"
        );
        Err(refused(what, "merge profiles that differ only in time and seed"))
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
    let mut of_op = |op| {
        let (all, factor) = merge_op(profiles, &sizes, op);
        widest = widest.max(factor);
        all
    };
    merged.read_ratio = of_op(ProfileOp::Read);
    merged.write_ratio = of_op(ProfileOp::Write);
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
            "the profiles differ by more than their intervals explain: intervals were widened by a \
             factor of up to {widest:.2}"
        ));
    }
}

/// Measurements that a figure of a curve is a mean of, and the degrees of freedom of its interval.
#[derive(Clone, Copy)]
struct Effort {
    repetitions: f64,
    freedom: f64,
}

/// The effort of `test` at `size`, as far as the curve shows it.
fn effort(profile: &ProfileResult, test: ProfileTest, size: u64) -> Effort {
    let curve = profile.curves.of(test);
    let measured = || curve.iter().map(|one| f64::from(one.repetitions)).filter(|one| *one > 0.0);
    let own = curve.iter().find(|one| one.size_bytes == size).map_or(0, |one| one.repetitions);
    // A size on a line or a curve has the repetitions of a usual size that was measured.
    let mean = measured().sum::<f64>() / measured().count().max(1) as f64;
    let repetitions = if own > 0 { f64::from(own) } else { mean };
    let freedom = match profile.method {
        // Its own repetitions alone give the interval of a measured size.
        MethodName::Serra | MethodName::Full if own > 0 => f64::from(own) - 1.0,
        // The noise of all sizes gives the interval. Sizes of another interval of `sizes` count
        // too: fewer degrees of freedom would make the variance too small.
        _ => measured().map(|repetitions| repetitions - 1.0).sum(),
    };
    Effort { repetitions, freedom }
}

/// The ratios of one operation, and by how much their intervals are wider.
fn merge_op(profiles: &[ProfileResult], sizes: &[u64], op: ProfileOp) -> (Vec<Ratio>, f64) {
    let of_size = |size: &u64| {
        let mut known = Vec::new();
        let mut measured = false;
        for profile in profiles {
            let ratios = profile.ratios(op).iter();
            for ratio in ratios.filter(|ratio| ratio.size_bytes == *size) {
                let (sequential, random) = ProfileTest::pair(op);
                let both = [sequential, random].map(|test| effort(profile, test, *size));
                // The half width of a ratio is the root of both squares. The greater number
                // makes its variance greater rather than smaller.
                let freedom = both[0].freedom.max(both[1].freedom);
                let repetitions = f64::midpoint(both[0].repetitions, both[1].repetitions);
                let ends = (ratio.low, ratio.high);
                known.push(Known::new(ratio.estimate, ends, repetitions, freedom));
                measured |= ratio.measured;
            }
        }
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
        let points = profiles.iter().flat_map(|one| {
            let points = one.curves.of(test).iter();
            points.filter(|point| point.size_bytes == *size).map(move |point| (one, point))
        });
        let (mut known, mut measured, mut repetitions) = (Vec::new(), false, 0u32);
        for (profile, point) in points {
            let effort = effort(profile, test, *size);
            let ends = (point.low, point.high);
            known.push(Known::new(point.access_time_ns, ends, effort.repetitions, effort.freedom));
            measured |= point.measured;
            // An edited file may have numbers whose sum overflows.
            repetitions = repetitions.saturating_add(point.repetitions);
        }
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

/// The value of all profiles if they agree.
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
    use crate::measure::Measurement;
    use crate::method::Method;
    use crate::plan::ProfilePlan;
    use crate::plan::tests::plan;

    /// A profile of one size whose sequential and random reads took 1 us and 2 us, with this number of repetitions.
    fn profile(repetitions: u32, factor: f64) -> ProfileResult {
        let plan = ProfilePlan { method: Method::Full { error: 0.1 }, ..plan() };
        let point = |time: f64| CurvePoint {
            size_bytes: 8192,
            access_time_ns: time * factor,
            low: Some(time * factor * 0.98),
            high: Some(time * factor * 1.02),
            measured: true,
            repetitions,
        };
        let mut one = ProfileResult::empty(&plan, StoppedBecause::Done);
        one.sizes_bytes = vec![8192];
        // Profiles with the same measurements are copies and cannot be merged.
        let seconds = 2e-6 * factor;
        one.measurements = vec![Measurement::whole(ProfileTest::RandomRead, 8192, 1, seconds)];
        one.curves = ByTest::from_fn(|test| match test {
            ProfileTest::SequentialRead => vec![point(1e3)],
            ProfileTest::RandomRead => vec![point(2e3)],
            _ => Vec::new(),
        });
        one.read_ratio = crate::result::ratios(
            one.curves.of(ProfileTest::SequentialRead),
            one.curves.of(ProfileTest::RandomRead),
        );
        one
    }

    fn random(one: &ProfileResult) -> CurvePoint {
        one.curves.of(ProfileTest::RandomRead)[0]
    }

    /// An edited result may have any number of repetitions.
    #[test]
    fn huge_numbers_of_repetitions_do_not_overflow() {
        let merged = merge(&[profile(u32::MAX, 1.0), profile(6, 1.01), profile(6, 1.02)]);
        let point = random(&merged.unwrap());
        assert_eq!(point.repetitions, u32::MAX);
        assert!(point.low.unwrap() < point.access_time_ns && point.high.unwrap().is_finite());
    }

    /// A profile of 30 repetitions counts three times as much as one of 10: the logarithms of 1 and 1.04 give 1.04 to the
    /// power of a quarter.
    #[test]
    fn repetitions_are_the_weights() {
        let merged = merge(&[profile(30, 1.0), profile(10, 1.04)]).unwrap();
        let time = random(&merged).access_time_ns;
        assert!((time / 2e3 - 1.04_f64.powf(0.25)).abs() < 1e-9, "{time}");
        assert_eq!(random(&merged).repetitions, 40);
    }
}
