//! A profile as a task.

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ssdyno_block::Time;
use ssdyno_block::units::{Bytes, Span};
use ssdyno_profile::{
    Method, MethodName, ProfileOp, ProfilePlan, ProfileResult, SessionStart, Setup, SizeInterval,
    default_sizes,
};
use ssdyno_session::{Failure, HostSpec, Prepared, Prompt, RealSpec, RunSpec, WriteSpec, files};

use crate::runner::{PreparedTask, TaskControl, TaskOutcome, TaskResult, Watch};

/// Time of a profile that estimates, where none is given.
const TIME: Time = Time::from_s(180);

/// Points of an interval, repetitions of a test, and the error of a mean, where none is given.
const POINTS: u32 = 2;
const REPEAT: u32 = 1;
const ERROR: f64 = 0.1;

/// Error of a ratio of the adaptive profile, or of a figure of the capacity.
const ERROR_ADAPTIVE: f64 = 0.05;

/// A profile and its target. With `resume`, a key that is left out has the value of the stored profile.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ProfileTask {
    /// The target: `sim:NAME`, `FILE.toml`, a block device or a file. On a real target the write tests overwrite the
    /// span and need `write.allowed`.
    pub target: String,
    /// The stored profile to continue: its directory or its `result.json`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resume: Option<String>,
    /// Method of the tests of request sizes. Default: `adaptive`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<MethodName>,
    /// Operations to profile. Without `write`, nothing is written. Default: reads and writes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ops: Vec<ProfileOp>,
    /// Request sizes: intervals of `SMALLEST..LARGEST/GAP`. Default: `8KiB..64KiB/8KiB` and `64KiB..4MiB/32KiB`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<String>")]
    pub sizes: Vec<SizeInterval>,
    /// Bytes from the start of the target that every test accesses. Default: 1200 MiB, or all of a smaller target;
    /// all with `capacity` and `map`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub span: Option<Bytes>,
    /// Sizes that `serra` measures in each interval, 2 or more. Default: 2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub points: Option<u32>,
    /// Number of times `serra` measures each test, 1 or more. Default: 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repeat: Option<u32>,
    /// Precision at which a method stops, above 0 and below 1: half the width of the 90 % interval divided by the ratio
    /// or the mean; for `map`, the difference between interpolated and measured latency. Default: 0.05, 0.1 with `full`
    /// and `map`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<f64>,
    /// Time limit for all tests together, on the clock of the device. Default: 3 min, none with `full`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<Span>,
    /// Requests outstanding, 1 or more; with several depths, each is profiled. Default: 1; `capacity` and `map` search.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub depth: Vec<u32>,
    /// The ratio from which an optimisation pays, for the advice; above 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threshold: Option<f64>,
    /// Name of the capacity in systemd's hardware database. Default: `ssdyno`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub solution: Option<String>,
    /// Random seed. Default: 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Keys of the device, as `KEY=VALUE`. A later entry overrides an earlier entry.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub set: Vec<String>,
    /// The host between the profile and a simulated device.
    pub host: HostSpec,
    /// How the run loads a real target.
    pub real: RealSpec,
    /// Permissions to write to a real target.
    pub write: WriteSpec,
}

/// A profile before its target is opened.
#[derive(Clone, PartialEq, Debug)]
pub struct ProfileOutline {
    /// The plan of the measurement.
    pub plan: ProfilePlan,
    /// The stored profile to go on with.
    pub before: Option<ProfileResult>,
    /// Whether the stored profile has everything that the plan asks for.
    pub is_finished: bool,
    spec: RunSpec,
    setup: Setup,
}

impl ProfileOutline {
    /// The stored profile, where nothing is left to measure.
    pub fn finished(&self) -> Option<ProfileResult> {
        let mut result = self.before.clone().filter(|_| self.is_finished)?;
        let note = "the profile to resume is finished: nothing was left to measure";
        result.notes.push(note.to_owned());
        Some(result)
    }
}

impl ProfileTask {
    /// What is measured, with the values of the stored profile in place.
    ///
    /// # Errors
    /// Keys do not go together, or the stored profile cannot be read or is another one.
    pub fn outline(&self) -> Result<ProfileOutline, Failure> {
        let before = self.resume.as_deref().map(stored_profile).transpose()?;
        // The plan of the stored profile gives the values of keys that are left out. Continuing
        // with other values would mix two measurements.
        let file = before.as_ref().map(ProfilePlan::of_result).transpose()?;
        let plan = self.plan(file.as_ref())?;
        let spec = self.spec(before.as_ref());
        let (setup, mut is_finished) = (Setup::of(&spec), false);
        if let Some(before) = &before {
            plan.resume(before, &setup)?;
            is_finished = plan.is_finished(before);
        }
        Ok(ProfileOutline { plan, before, is_finished, spec, setup })
    }

    pub(crate) fn prepare(&self, prompt: &mut dyn Prompt) -> Result<PreparedTask, Failure> {
        let outline = self.outline()?;
        let name = format!("profile of {}", self.target);
        // A finished profile needs neither its target nor consent. The drive may be
        // gone, and the stored result is still valid.
        if let Some(result) = outline.finished() {
            let result = TaskResult::Profile(Box::new(result));
            let carry_out = move |_: &TaskControl| Ok(TaskOutcome { result, failure: None });
            return Ok(PreparedTask::new(name, Vec::new(), carry_out));
        }
        let prepared = outline.plan.resolve(&outline.spec, prompt)?;
        let writes = prepared.is_real() && prepared.asked().write.allowed;
        let writes_to = if writes { vec![self.target.clone()] } else { Vec::new() };
        let carry_out = move |control: &TaskControl| carry_out(&outline, prepared, control);
        Ok(PreparedTask::new(name, writes_to, carry_out))
    }

    /// What was not given is as in `file`, the plan of the profile to resume.
    fn plan(&self, file: Option<&ProfilePlan>) -> Result<ProfilePlan, Failure> {
        let method = self.method(file)?;
        let usual = (method.name() != MethodName::Full).then_some(TIME);
        let sizes = match &self.sizes {
            // A map has sizes of its own. The usual sizes may be larger than a small span, and the
            // plan would be refused for sizes that nobody uses.
            _ if method.name() == MethodName::Map => Vec::new(),
            none if none.is_empty() => file.map_or_else(default_sizes, |plan| plan.sizes.clone()),
            given => given.clone(),
        };
        let ops = match &self.ops {
            none if none.is_empty() => {
                let both = || vec![ProfileOp::Read, ProfileOp::Write];
                file.map_or_else(both, |plan| plan.ops.clone())
            }
            given => given.clone(),
        };
        let depths = match &self.depth {
            none if none.is_empty() => file.map_or_else(|| vec![1], ProfilePlan::depths),
            given => given.clone(),
        };
        let mut depths = depths.into_iter();
        Ok(ProfilePlan {
            target: self.target.clone(),
            method,
            ops,
            sizes,
            span: self.span.or(file.and_then(|plan| plan.span)),
            depth: depths.next().unwrap_or(1),
            more_depths: depths.collect(),
            solution: self.solution.clone(),
            // The time limit is not taken from the stored profile: it limits this
            // session, and the earlier one has used its own.
            time: self.time.map(|time| time.0).or(usual),
            threshold: self.threshold.or(file.and_then(|plan| plan.threshold)),
            seed: self.seed.or(file.map(|plan| plan.seed)).unwrap_or(1),
        })
    }

    fn method(&self, file: Option<&ProfilePlan>) -> Result<Method, Failure> {
        let file = file.map(|plan| plan.method);
        let name = self.method.or(file.map(|method| method.name())).unwrap_or(MethodName::Adaptive);
        self.refuse_keys(name)?;
        let error = |usual| {
            // Errors of different methods mean different things (a ratio, a mean). A
            // value is taken over only by the same method.
            let of_file = match file {
                Some(Method::Adaptive { error }) if name == MethodName::Adaptive => Some(error),
                Some(Method::Full { error }) if name == MethodName::Full => Some(error),
                _ => None,
            };
            self.error.or(of_file).unwrap_or(usual)
        };
        let (points, repeat) = match file {
            Some(Method::Serra { points, repeat }) => (points, repeat),
            _ => (POINTS, REPEAT),
        };
        Ok(match name {
            MethodName::Capacity => Method::Capacity { error: error(ERROR_ADAPTIVE) },
            MethodName::Adaptive => Method::Adaptive { error: error(ERROR_ADAPTIVE) },
            MethodName::Serra => Method::Serra {
                points: self.points.unwrap_or(points),
                repeat: self.repeat.unwrap_or(repeat),
            },
            MethodName::Full => Method::Full { error: error(ERROR) },
            MethodName::Map => Method::Map { error: error(ERROR) },
        })
    }

    /// Refuses keys that are for other methods than `name`.
    fn refuse_keys(&self, name: MethodName) -> Result<(), Failure> {
        let of_ratios = "adaptive, serra or full";
        let (serra, capacity) = (name == MethodName::Serra, name == MethodName::Capacity);
        // A key that the method ignores is refused. The user would otherwise believe
        // that it had an effect on the measurement.
        let wrong = [
            (serra && self.error.is_some(), "error", "adaptive, full or capacity"),
            (!serra && self.points.is_some(), "points", "serra"),
            (!serra && self.repeat.is_some(), "repeat", "serra"),
            (capacity && !self.sizes.is_empty(), "sizes", of_ratios),
            (capacity && !self.depth.is_empty(), "depth", of_ratios),
            (capacity && self.threshold.is_some(), "threshold", of_ratios),
        ];
        match wrong.into_iter().find(|(is_wrong, ..)| *is_wrong) {
            None => Ok(()),
            Some((_, key, of)) => Err(Failure::usage(format!("`{key}` is for `method` {of}"))
                .with_help(format!("leave it out, or profile with `method` {of}"))
                .with_key(key)),
        }
    }

    /// The path before the target, the way it is loaded, and the permissions for that. Without such
    /// keys it is as in `before`, the profile to resume.
    fn spec(&self, before: Option<&ProfileResult>) -> RunSpec {
        let (mut host, mut real, mut set) =
            (self.host.clone(), self.real.clone(), self.set.clone());
        if let Some(setup) = before.and_then(|before| Some(&before.plan.as_ref()?.setup)) {
            if set.is_empty() {
                set.clone_from(&setup.set);
            }
            if host == HostSpec::default() {
                host = setup.host.clone();
            }
            // These three keys do not change what is measured. They are taken from this call, also
            // when the others come from the stored profile.
            let RealSpec { timeout, no_probes, probe_interval, .. } = real;
            let kept = RealSpec { timeout, no_probes, probe_interval, ..RealSpec::default() };
            if real == kept {
                real = RealSpec { timeout, no_probes, probe_interval, ..setup.real.clone() };
            }
        }
        RunSpec { set, host, real, write: self.write.clone(), ..RunSpec::default() }
    }
}

/// The profile in the directory or file `name`.
///
/// # Errors
/// It cannot be read, or is not a profile.
pub fn stored_profile(name: &str) -> Result<ProfileResult, Failure> {
    let path = Path::new(name);
    let file = if path.is_dir() { path.join("result.json") } else { path.to_owned() };
    let text = files::read_text(&file.display().to_string())?;
    serde_json::from_str(&text).map_err(|error| {
        Failure::usage(format!("{} is not a profile: {error}", file.display()))
            .with_help("name the directory or the result.json of `ssdyno profile`")
    })
}

fn carry_out(
    outline: &ProfileOutline,
    prepared: Prepared,
    control: &TaskControl,
) -> Result<TaskOutcome, Failure> {
    let mut target = prepared.keep()?;
    let start = SessionStart { setup: outline.setup.clone(), before: outline.before.as_ref() };
    let mut watch = Watch { control, kept: TaskResult::Profile };
    let (mut result, failure) = outline.plan.execute_session(&start, &mut target, &mut watch)?;
    // The notes of the target come first: they say under which
    // conditions everything else was measured.
    result.notes.splice(0..0, target.notes().iter().cloned());
    Ok(TaskOutcome { result: TaskResult::Profile(Box::new(result)), failure })
}
