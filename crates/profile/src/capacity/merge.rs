//! Capacities of one device, measured several times, made one.

use ssdyno_session::Failure;

use super::linear::predicted;
use super::load::Figure;
use super::result::{CapacityFigure, CapacityResult, CheckedLoad};
use crate::error::refused;
use crate::pool::{Known, Pooled, birge, pooled};

/// The merged capacity, and the notes for its reader. `numbers` are those of the profiles, for messages.
///
/// # Errors
/// They differ in request sizes, or in the kind of the medium.
pub(crate) fn merge(
    all: &[&CapacityResult],
    numbers: &[usize],
) -> Result<(CapacityResult, Option<String>), Failure> {
    let first = all[0];
    for (other, number) in all.iter().zip(numbers) {
        let refused = |what: &str| {
            let what = format!("profile {number} has {what}: they cannot be merged");
            Err(refused(what, "merge profiles of one device"))
        };
        if (first.small_bytes, first.large_bytes) != (other.small_bytes, other.large_bytes) {
            return refused("other request sizes than the first");
        }
        if first.disk.media != other.disk.media {
            return refused("another kind of medium than the first");
        }
    }
    let found: Vec<(Vec<&CapacityFigure>, Pooled)> = Figure::ALL
        .into_iter()
        .filter_map(|figure| {
            let found: Vec<&CapacityFigure> =
                all.iter().filter_map(|one| one.figure(figure)).collect();
            let known = |one: &&CapacityFigure| {
                let rounds = f64::from(one.rounds);
                Known::new(one.estimate, (one.low, one.high), rounds, rounds - 1.0)
            };
            let known: Vec<Known> = found.iter().map(known).collect();
            Some((found, pooled(&known)?))
        })
        .collect();
    // All figures share one factor: with two profiles, Q of a single figure has one degree of
    // freedom and says little about the device.
    let factor = birge(found.iter().map(|(_, pooled)| *pooled));
    let mut merged = CapacityResult {
        figures: found
            .iter()
            .map(|(found, pooled)| figure(found, pooled.widened(factor)))
            .collect(),
        implausible: union(all, |one| &one.implausible),
        warnings: union(all, |one| &one.warnings),
        ..first.clone()
    };
    merged.checks = first.checks.iter().map(|check| checked(check, all, &merged)).collect();
    let note = (factor > 1.0).then(|| {
        format!(
            "the profiles differ by more than their intervals explain: intervals were widened by a \
             factor of {factor:.2}"
        )
    });
    Ok((merged, note))
}

/// The notes of all of them, each once.
fn union(all: &[&CapacityResult], list: impl Fn(&CapacityResult) -> &Vec<String>) -> Vec<String> {
    let mut said: Vec<String> = Vec::new();
    for text in all.iter().flat_map(|one| list(one)) {
        if !said.contains(text) {
            said.push(text.clone());
        }
    }
    said
}

/// Depths and burst are those of the surest profile.
fn figure(found: &[&CapacityFigure], pooled: Pooled) -> CapacityFigure {
    let width = |one: &&&CapacityFigure| one.relative_half_width().unwrap_or(f64::INFINITY);
    let surest = found.iter().min_by(|a, b| width(a).total_cmp(&width(b))).unwrap_or(&found[0]);
    CapacityFigure {
        estimate: pooled.estimate,
        low: pooled.low,
        high: pooled.high,
        rounds: found.iter().map(|one| one.rounds).fold(0, u32::saturating_add),
        burst: surest.burst.or_else(|| found.iter().find_map(|one| one.burst)),
        longest_seconds: found.iter().map(|one| one.longest_seconds).fold(0.0, f64::max),
        ..(*surest).clone()
    }
}

/// The load of `check`, measured by all and predicted with the merged figures.
fn checked(check: &CheckedLoad, all: &[&CapacityResult], merged: &CapacityResult) -> CheckedLoad {
    let same = |one: &&CheckedLoad| {
        (one.size_bytes, one.read_share) == (check.size_bytes, check.read_share)
    };
    let known = |one: &&CapacityResult| {
        let check = one.checks.iter().find(same)?;
        // Every load runs once in a round. The figures say how many rounds there were.
        let rounds = f64::from(one.figures.iter().map(|figure| figure.rounds).max().unwrap_or(0));
        let ends = (check.low, check.high);
        Some(Known::new(check.measured_iops, ends, rounds, rounds - 1.0))
    };
    let known: Vec<Known> = all.iter().filter_map(known).collect();
    let Some(measured) = pooled(&known) else { return check.clone() };
    // A checked load is not a figure of the model. The agreement of its measurements is not evidence
    // for that of the figures, so it has its own factor.
    let measured = measured.widened(birge([measured].into_iter()));
    let (iocost_iops, seastar_iops) = predicted(merged, check.read_share, check.size_bytes);
    let error = |iops: Option<f64>| iops.map(|iops| iops / measured.estimate - 1.0);
    CheckedLoad {
        measured_iops: measured.estimate,
        low: measured.low,
        high: measured.high,
        iocost_iops,
        iocost_error: error(iocost_iops),
        seastar_iops,
        seastar_error: error(seastar_iops),
        ..check.clone()
    }
}
