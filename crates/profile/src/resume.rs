//! Continues a profile that ended early: the required content of a result, and the parts that must be the same.
//!
//! Only measurements count; a method takes them over and requests the missing ones. Everything that decides what a
//! measurement means is compared, so that figures of two different things never mix.

use serde::Serialize;
use ssdyno_block::units::Bytes;
use ssdyno_session::{Failure, KeptTarget};

use crate::error::refused;
use crate::measure::{Measurement, Measurements, ProfileOp};
use crate::method::{Method, MethodName};
use crate::plan::ProfilePlan;
use crate::result::ProfileResult;
use crate::session::{DeviceRecord, PlanRecord, ProfileSession, Setup};
use crate::sizes::{SizeInterval, Sizes};
use crate::stopped::StoppedBecause;

/// Tests of one session at most; more in a file is damage.
const TESTS_MAX: u64 = 1 << 40;

/// Seconds of a measurement or a session at most and, of a measurement, at least; others in a file are damage. No clock
/// of a run reaches 300 years or sees a picosecond. Squares of such times and of their inverses are finite.
const SECONDS_MAX: f64 = 1e10;
const SECONDS_MIN: f64 = 1e-12;

/// The data of a session besides its plan.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct SessionStart<'a> {
    /// How the target was set up.
    pub setup: Setup,
    /// The result to go on with; [`ProfilePlan::resume`] has compared it with the plan.
    pub before: Option<&'a ProfileResult>,
}

/// A value for a message.
fn list<T: ToString>(all: &[T]) -> String {
    let texts: Vec<String> = all.iter().map(T::to_string).collect();
    if texts.is_empty() { "nothing".to_owned() } else { texts.join(",") }
}

/// A part of a spec for a message: only keys that were given.
fn given<T: Serialize>(spec: &T) -> String {
    match toml::to_string(spec) {
        Ok(text) if !text.trim().is_empty() => text.trim().replace('\n', ", "),
        _ => "the default".to_owned(),
    }
}

/// Refuses a difference in `key`.
fn same<T: PartialEq>(
    key: &str,
    file: &T,
    now: &T,
    text: impl Fn(&T) -> String,
) -> Result<(), Failure> {
    if file == now {
        return Ok(());
    }
    let (file, now) = (text(file), text(now));
    let what = format!("`{key}` is {file} in the profile to resume, and {now} now");
    let help = match key {
        "target" => format!("name {file}, or leave `resume` out to begin a new profile"),
        "capacity" | "sector" | "serial" => {
            "this is another device: leave `resume` out to begin a new profile".to_owned()
        }
        _ => "leave it out to use the value of the file, or leave `resume` out to begin a \
              new profile"
            .to_owned(),
    };
    Err(refused(what, help))
}

fn damaged(what: &str) -> Failure {
    let help = "resume another copy of the result, or leave `resume` out to begin a new profile";
    refused(format!("the profile to resume is damaged: {what}"), help)
}

/// The record of the plan in `before`.
fn record(before: &ProfileResult) -> Result<&PlanRecord, Failure> {
    if before.method == MethodName::Capacity {
        let help = "measure again with another `seed`, and merge both profiles";
        let what = "a capacity profile cannot be resumed: its depths, bursts and rounds must follow each other \
                    without a break";
        return Err(refused(what, help));
    }
    if before.method == MethodName::Map {
        let what = "a map cannot be resumed: its next point depends on all earlier points, and the device is no longer in the state after the long writes";
        return Err(refused(what, "measure again with a longer `time`"));
    }
    before.plan.as_ref().ok_or_else(|| {
        let what = "the profile to resume has no `plan`: it was merged, or an older version of ssdyno wrote it";
        refused(what, "leave `resume` out to begin a new profile")
    })
}

impl ProfilePlan {
    /// The plan of the profile `before`, without a time limit.
    ///
    /// # Errors
    /// It cannot be resumed, or is damaged.
    pub fn of_result(before: &ProfileResult) -> Result<ProfilePlan, Failure> {
        let record = record(before)?;
        // A damaged file may lack the error of its method. `check` refuses NaN, so the user
        // learns of the damage and no default hides it.
        let error = record.error.unwrap_or(f64::NAN);
        let method = match before.method {
            MethodName::Serra => Method::Serra {
                points: record.points.unwrap_or(0),
                repeat: record.repeat.unwrap_or(0),
            },
            MethodName::Full => Method::Full { error },
            MethodName::Adaptive => Method::Adaptive { error },
            MethodName::Capacity => Method::Capacity { error },
            MethodName::Map => Method::Map { error },
        };
        let sizes: Result<Vec<SizeInterval>, String> =
            record.sizes.iter().map(|text| text.parse()).collect();
        let plan = ProfilePlan {
            target: before.target.clone(),
            method,
            ops: record.ops.clone(),
            sizes: sizes.map_err(|error| damaged(&format!("`sizes`: {error}")))?,
            span: Some(Bytes(before.span_bytes)),
            depth: before.depth,
            more_depths: before.more_depths.iter().map(|one| one.depth).collect(),
            solution: None,
            time: None,
            threshold: record.threshold,
            seed: before.seed,
        };
        plan.check().map_err(|error| damaged(&format!("its plan is invalid ({error})")))?;
        Ok(plan)
    }

    /// Compares the plan with that of `before`, whose measurements must be sound. The goal (`--error`, `--points`,
    /// `--repeat`, `--threshold`, `--time`) may be another one.
    ///
    /// # Errors
    /// Something differs, or `before` cannot be resumed.
    pub fn resume(&self, before: &ProfileResult, setup: &Setup) -> Result<(), Failure> {
        let file = ProfilePlan::of_result(before)?;
        let of_file = &record(before)?.setup;
        let sorted = |ops: &[ProfileOp]| {
            let mut ops = ops.to_vec();
            ops.sort_unstable();
            ops.dedup();
            ops
        };
        same("target", &file.target, &self.target, String::clone)?;
        same("method", &file.method.name(), &self.method.name(), MethodName::to_string)?;
        same("ops", &sorted(&file.ops), &sorted(&self.ops), |all| list(all))?;
        same("sizes", &file.sizes, &self.sizes, |all| list(all))?;
        // A plan without a span takes that of the file. `same_device` compares it with the span
        // on the target later.
        if let Some(span) = self.span {
            same("span", &Bytes(before.span_bytes), &span, Bytes::to_string)?;
        }
        same("depth", &file.depths(), &self.depths(), |all| list(all))?;
        same("seed", &file.seed, &self.seed, u64::to_string)?;
        same("set", &of_file.set, &setup.set, |all| list(all))?;
        same("host", &of_file.host, &setup.host, given)?;
        same("real", &of_file.real, &setup.real, given)?;
        let sizes = Sizes::new(&file.sizes);
        for one in before.of_depths() {
            if one.span_bytes != before.span_bytes || one.method != before.method {
                return Err(damaged(&format!("depth {} has another span or method", one.depth)));
            }
            check_measurements(one, &sizes)?;
        }
        Ok(())
    }

    /// Whether the profile `before` is complete: its method ended it, and no goal is nearer now.
    pub fn is_finished(&self, before: &ProfileResult) -> bool {
        let error = before.plan.as_ref().and_then(|plan| plan.error);
        let is_finished = |one: &&ProfileResult| match one.stopped_because {
            // More slices did not narrow the intervals, whatever the goal was. A longer session
            // would measure the same noise again.
            StoppedBecause::NoiseFloor => true,
            StoppedBecause::WithinError => self.method.error() >= error,
            StoppedBecause::Done => {
                let mut strategy = self.strategy(one.span_bytes);
                strategy.resume(&sessions(one));
                let mut all = Measurements::default();
                one.measurements.iter().for_each(|one| all.add(*one));
                strategy.tests_left(&all) == 0
            }
            _ => false,
        };
        before.of_depths().iter().all(is_finished)
    }

    /// The stored part of the plan.
    pub(crate) fn record(&self, target: &KeptTarget, setup: &Setup) -> PlanRecord {
        let (points, repeat) = match self.method {
            Method::Serra { points, repeat } => (Some(points), Some(repeat)),
            _ => (None, None),
        };
        PlanRecord {
            ops: self.ops.clone(),
            sizes: self.sizes.iter().map(SizeInterval::to_string).collect(),
            error: self.method.error(),
            points,
            repeat,
            threshold: self.threshold,
            device: device(&self.target, target),
            setup: setup.clone(),
        }
    }
}

/// Refuses a `before` of another device, or of another span on it.
pub(crate) fn same_device(
    before: &ProfileResult,
    now: &PlanRecord,
    span: u64,
) -> Result<(), Failure> {
    let file = &record(before)?.device;
    same("serial", &file.serial, &now.device.serial, |serial| {
        serial.clone().unwrap_or_else(|| "unknown".to_owned())
    })?;
    let bytes = |bytes: &u64| format!("{bytes} bytes");
    same("capacity", &file.capacity_bytes, &now.device.capacity_bytes, bytes)?;
    same("sector", &file.sector_bytes, &now.device.sector_bytes, u32::to_string)?;
    same("span", &before.span_bytes, &span, bytes)
}

fn device(name: &str, target: &KeptTarget) -> DeviceRecord {
    let facts = target.facts();
    #[cfg(target_os = "linux")]
    let serial = target.is_real().then(|| ssdyno_safety::inspect(name).ok());
    #[cfg(target_os = "linux")]
    let serial = serial.flatten().and_then(|found| found.serial().map(str::to_owned));
    #[cfg(not(target_os = "linux"))]
    let serial = None;
    let _ = name;
    DeviceRecord { capacity_bytes: facts.capacity_bytes, sector_bytes: facts.sector_bytes, serial }
}

/// The measurements of each session.
pub(crate) fn sessions(before: &ProfileResult) -> Vec<&[Measurement]> {
    let mut rest = &before.measurements[..];
    let mut all = Vec::new();
    for session in &before.sessions {
        // A damaged file may claim more measurements than it lists. `check_measurements`
        // refuses it; this function must not panic before that.
        let (these, others) = rest.split_at(rest.len().min(session.measurements as usize));
        all.push(these);
        rest = others;
    }
    all
}

/// Refuses measurements that no profile writes.
fn check_measurements(before: &ProfileResult, sizes: &Sizes) -> Result<(), Failure> {
    // The sum saturates: the numbers of a damaged file may overflow. The comparison
    // below refuses them.
    let sum = |sum: u64, one: &ProfileSession| sum.saturating_add(one.measurements);
    let listed = before.sessions.iter().fold(0, sum);
    if listed != before.measurements.len() as u64 || before.sessions.is_empty() {
        let found = before.measurements.len();
        return Err(damaged(&format!(
            "its sessions have {listed} measurements, but it lists {found}"
        )));
    }
    let positive = |seconds: f64| (0.0..=SECONDS_MAX).contains(&seconds);
    let odd = |one: &ProfileSession| {
        let seconds = [one.seconds_spent, one.settling_seconds];
        one.tests > TESTS_MAX || !seconds.into_iter().all(positive)
    };
    if !positive(before.wall_seconds) {
        return Err(damaged("`wall_seconds` is invalid"));
    }
    if let Some(at) = before.sessions.iter().position(odd) {
        return Err(damaged(&format!("session {} has an invalid number", at + 1)));
    }
    // The file may have been edited. A measurement without requests or with a NaN would reach
    // every mean and every interval.
    let odd = |one: &Measurement| {
        let records = before.span_bytes.checked_div(one.size_bytes).unwrap_or(0);
        let burst = one.burst.is_none_or(|burst| {
            let share = burst.share.is_finite() && (0.0..=1.0).contains(&burst.share);
            burst.requests <= records
                && share
                && positive(burst.seconds)
                && (0.0..=before.span_bytes as f64).contains(&burst.held_bytes)
        });
        let known = sizes.distinct().binary_search(&one.size_bytes).is_ok();
        let requests = (1..=records).contains(&one.requests) && one.lead <= records;
        let seconds = (SECONDS_MIN..=SECONDS_MAX).contains(&one.seconds);
        !(known && requests && burst && seconds)
    };
    match before.measurements.iter().position(odd) {
        Some(at) => Err(damaged(&format!("measurement {} is invalid", at + 1))),
        None => Ok(()),
    }
}
