//! `ssdyno profile`.

use std::path::Path;
use std::time::SystemTime;

use clap::{Args, ValueEnum};
use schemars::JsonSchema;
use serde::Serialize;
use ssdyno_block::Time;
use ssdyno_block::units::{Bytes, Span};
use ssdyno_figures::{Keep, KeepGoing, RunProgress, nanoseconds};
use ssdyno_profile::{
    Method, MethodName, Observer, ProfileError, ProfileOp, ProfilePlan, ProfileResult,
    SessionStart, Setup, SizeInterval, Stage, default_sizes,
};
use ssdyno_report::{ResultError, RunDirectory};
use ssdyno_session::{
    ErrorBody, Failure, FailureKind, HostSpec, RealSpec, ResultFolder, RunSpec, files, unwritable,
};

use crate::args::{positive_span, seed};
use crate::consent::Terminal;
use crate::host::HostArgs;
use crate::output::{Output, end, tell};
use crate::progress::CountMeter;
use crate::real::RealArgs;
use crate::results::{HEADING, ResultsArgs, keep};
use crate::scheduler_files::{SchedulerFileArgs, SchedulerFiles};

/// Time of a profile that estimates, where none is given.
const TIME: Time = Time::from_s(180);

/// Points of an interval, repetitions of a test, and the error of a mean, where none is given.
const POINTS: u32 = 2;
const REPEAT: u32 = 1;
const ERROR: f64 = 0.1;

/// Error of a ratio of the adaptive profile, or of a figure of the capacity.
const ERROR_ADAPTIVE: f64 = 0.05;

// `--method` of real targets is about submission; here it is the method of the profile.
#[derive(Debug, Args)]
#[command(mut_arg("method", |arg| arg.long("submit-method")))]
#[command(mut_arg("batch", |arg| arg.help("Completions to wait for in one call, or all (fio: iodepth_batch_complete_min) [default: set by --submit-method]")))]
#[command(mut_arg("submit", |arg| arg.help("Maximum requests in one submit call, or all (fio: iodepth_batch) [default: set by --submit-method]")))]
#[command(mut_arg("wait", |arg| arg.help("How jobs wait for completions: sleep (every latency includes the wake-up) or spin (takes a core) [default: set by --submit-method]")))]
pub(crate) struct ProfileArgs {
    /// What to profile: sim:NAME, FILE.toml, a block device or a file. On a real target the write tests
    /// write over the span and need --write; --ops read does not write.
    #[arg(required_unless_present = "merge")]
    pub(crate) target: Option<String>,
    /// Combine stored profiles of one device into one profile with narrower intervals; nothing is measured.
    /// RESULT is the directory or the result.json of a profile. Scheduler files can be written from the
    /// combined profile. Profiles with different --solution are kept side by side.
    #[arg(long, value_name = "RESULT", num_args = 2..,
          conflicts_with_all = ["target", "profile_method", "sizes", "span", "points", "repeat", "error", "time", "depth",
                                "threshold", "set", "solution"])]
    merge: Vec<String>,
    /// Continue a stored profile of the same target that ended early. RESULT is its directory or its
    /// result.json. Options that are left out have the values of that profile; --time is for this session.
    #[arg(long, value_name = "RESULT", conflicts_with = "merge")]
    resume: Option<String>,
    /// How request sizes are tested: adaptive measures where the answer is least certain until every ratio
    /// is within --error; serra measures some sizes and estimates the others with a line; full measures
    /// every size until its mean is known (slow); capacity measures rates at saturation for the
    /// configuration of I/O schedulers [default: adaptive; capacity with a scheduler file].
    #[arg(long = "method", id = "profile_method", value_name = "METHOD", value_enum)]
    method: Option<ProfileMethod>,
    /// Measure the 95th percentile of read latency over the rates of reads and writes, both at once, and draw it:
    /// random reads of 4KiB, sequential writes of 128KiB. Points are chosen until interpolation between them is
    /// within --error (10%), or --time is over. Writes over the span.
    #[arg(long, conflicts_with_all = ["merge", "profile_method", "sizes", "depth", "points", "repeat", "threshold"])]
    map: bool,
    /// Which operations: read, write or both. Without write, nothing is written [default: read,write].
    #[arg(long, value_name = "OPS", value_delimiter = ',', value_parser = op)]
    ops: Vec<ProfileOp>,
    /// Request sizes: intervals of SMALLEST..LARGEST/GAP [default: 8KiB..64KiB/8KiB,64KiB..4MiB/32KiB].
    #[arg(long, value_name = "INTERVALS", value_delimiter = ',', value_parser = interval)]
    sizes: Vec<SizeInterval>,
    /// Bytes from the start of the target that every test accesses [default: 1200MiB, or all of a
    /// smaller target; all with capacity and --map].
    #[arg(long, value_name = "SIZE")]
    span: Option<Bytes>,
    /// Sizes that serra measures in each interval: both ends, the others drawn at random [default: 2].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..))]
    points: Option<u32>,
    /// How many times serra measures each test [default: 1].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    repeat: Option<u32>,
    /// Half the width of the 90 % confidence interval at which adaptive stops, divided by the ratio, or full
    /// or capacity stops repeating a test, divided by the mean; --map: difference of interpolated and measured
    /// latency, 1% to 50% [default: 5%, 10% with full and --map].
    #[arg(long, value_name = "N%", value_parser = error_share)]
    error: Option<f64>,
    /// Time limit for all tests together, on the clock of the device; serra shares it among its tests
    /// [default: 3min, none with full].
    #[arg(long, value_name = "TIME", value_parser = positive_span)]
    time: Option<Span>,
    /// Requests outstanding. With several values, such as 1,8, each depth is profiled; --time is for all of them
    /// together [default: 1; capacity searches for the depth of saturation].
    #[arg(long, value_name = "N,...", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..))]
    depth: Vec<u32>,
    /// Report the sizes whose ratio is at least this: where an optimisation that needs this ratio pays.
    #[arg(long, value_name = "RATIO", value_parser = ratio)]
    threshold: Option<f64>,
    /// Name of the capacity in the file of --io-cost-hwdb, such as isolated-bandwidth; --merge puts profiles with
    /// different names into one file [default: ssdyno].
    #[arg(long, value_name = "NAME")]
    solution: Option<String>,
    /// Random seed: the same seed gives the same figures on a simulated target [default: 1].
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = seed)]
    seed: Option<u64>,
    /// Set a key of the device; see below. May be repeated.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    #[command(flatten)]
    schedulers: SchedulerFileArgs,
    #[command(flatten)]
    host: HostArgs,
    #[command(flatten)]
    real: RealArgs,
    /// What to keep: all (result.json and report.html) or none.
    #[arg(long, value_name = "WHAT", default_value = "all", help_heading = HEADING,
          value_parser = keep(["all", "none"]))]
    keep: Keep,
    #[command(flatten)]
    results: ResultsArgs,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum ProfileMethod {
    Adaptive,
    Serra,
    Full,
    Capacity,
    #[value(skip)]
    Map,
}

impl ProfileArgs {
    /// `file`: the plan of the profile to resume.
    fn method(&self, file: Option<&ProfilePlan>) -> ProfileMethod {
        if self.map {
            return ProfileMethod::Map;
        }
        let usual = match file.map(|plan| plan.method.name()) {
            _ if self.schedulers.any() => ProfileMethod::Capacity,
            None | Some(MethodName::Adaptive) => ProfileMethod::Adaptive,
            Some(MethodName::Serra) => ProfileMethod::Serra,
            Some(MethodName::Full) => ProfileMethod::Full,
            Some(MethodName::Capacity) => ProfileMethod::Capacity,
            Some(MethodName::Map) => ProfileMethod::Map,
        };
        self.method.unwrap_or(usual)
    }
}

fn op(text: &str) -> Result<ProfileOp, String> {
    text.parse()
}

fn interval(text: &str) -> Result<SizeInterval, String> {
    text.parse()
}

/// `10%` as 0.1.
fn error_share(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').and_then(|text| text.trim().parse::<f64>().ok());
    let share = number.filter(|number| *number > 0.0 && *number < 100.0);
    let help = || "write a percentage above 0 and below 100, such as 10%".to_owned();
    share.map(|number| number / 100.0).ok_or_else(help)
}

/// A ratio above zero.
fn ratio(text: &str) -> Result<f64, String> {
    let ratio = text.trim().parse::<f64>().ok().filter(|ratio| *ratio > 0.0 && ratio.is_finite());
    ratio.ok_or_else(|| "write a ratio above 0, such as 1.5".to_owned())
}

/// What `profile --json` prints. `result.json` has the result alone.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "Profile")]
pub(crate) struct ProfileOutput<'a> {
    #[serde(flatten)]
    result: &'a ProfileResult,
    /// Where the files lie; `null` with `--keep none`, or where they could not be written.
    results_directory: Option<String>,
    /// Why the profile failed, if it did; the figures are those until then.
    error: Option<ErrorBody>,
}

pub(crate) fn run(args: &ProfileArgs, output: Output) -> Result<(), Failure> {
    if !args.merge.is_empty() {
        return merge(args, output);
    }
    let before = args.resume.as_deref().map(stored).transpose()?;
    let refuse = |error| explain(error, FailureKind::Usage);
    let file = before.as_ref().map(ProfilePlan::of_result).transpose().map_err(refuse)?;
    let plan = plan(args, file.as_ref())?;
    let spec = spec(args, before.as_ref());
    let start = SessionStart { setup: Setup::of(&spec), before: before.as_ref() };
    if let Some(before) = &before {
        plan.resume(before, &start.setup).map_err(refuse)?;
        if plan.is_finished(before) {
            return nothing_left(before, output);
        }
    }
    let files = args.schedulers.open(&plan, output)?;
    let opened = plan.open(&spec, &mut Terminal);
    let mut target = opened.inspect_err(|_| files.remove_new())?;
    // Made before the tests: who has no place for results should hear of it at once.
    let directory = directory(args, &plan).inspect_err(|_| files.remove_new())?;
    let mut watch = Watch { meter: CountMeter::new(), directory: directory.as_ref() };
    let executed = plan.execute_session(&start, &mut target, &mut watch);
    watch.meter.finish();
    let (mut result, failure) = executed.map_err(|error| {
        // Nothing was measured: nothing is left behind.
        files.remove_new();
        directory.iter().for_each(ResultFolder::remove);
        explain(error, FailureKind::Usage)
    })?;
    result.notes.splice(0..0, target.notes().iter().cloned());
    let failure = failure.map(|error| explain(error, FailureKind::Failed));
    report(&result, directory.as_ref(), &files, failure, output)
}

/// Prints the finished profile `before`, which stays where it is.
fn nothing_left(before: &ProfileResult, output: Output) -> Result<(), Failure> {
    let mut result = before.clone();
    result.notes.push("the profile to resume is finished: nothing was left to measure".to_owned());
    let told = output.either(
        || ssdyno_profile::text(&result),
        || ProfileOutput { result: &result, results_directory: None, error: None },
    );
    end(told, None)
}

/// Prints and keeps `result`.
fn report(
    result: &ProfileResult,
    directory: Option<&ResultFolder>,
    files: &SchedulerFiles,
    mut failure: Option<Failure>,
    output: Output,
) -> Result<(), Failure> {
    let written = directory.map(|directory| write(directory, result)).transpose();
    if let Err(error) = &written {
        failure = Some(unwritable(error));
    }
    let place = written.ok().flatten();
    let made = files.write(result, output).unwrap_or_else(|error| {
        failure.get_or_insert(error);
        Vec::new()
    });
    if files.takes_output() {
        tell(&ssdyno_profile::text(result));
        return end(Ok(()), failure);
    }
    let told = output.either(
        || {
            let mut text = ssdyno_profile::text(result);
            for name in &made {
                text.push_str(&format!("\nWritten  {name}"));
            }
            if let Some(place) = &place {
                text.push_str(&format!("\nResults  {place} (open report.html)\n"));
            }
            text
        },
        || ProfileOutput {
            result,
            results_directory: place.clone(),
            error: failure.as_ref().map(Failure::body),
        },
    );
    end(told, failure)
}

/// Makes one of stored profiles.
fn merge(args: &ProfileArgs, output: Output) -> Result<(), Failure> {
    let profiles = args.merge.iter().map(|name| stored(name)).collect::<Result<Vec<_>, _>>()?;
    let merged = ssdyno_profile::merge(&profiles);
    let merged = merged.map_err(|error| explain(error, FailureKind::Usage))?;
    let mut plan = plan(args, None)?;
    plan.target.clone_from(&merged.target);
    if let Some(capacity) = &merged.capacity {
        // What scheduler files can be made of.
        plan.method = Method::Capacity { error: capacity.error };
        plan.ops = ops_of_all(&merged);
    }
    let files = args.schedulers.open(&plan, output)?;
    let directory = directory(args, &plan).inspect_err(|_| files.remove_new())?;
    report(&merged, directory.as_ref(), &files, None, output)
}

/// The operations of which every solution has figures.
fn ops_of_all(merged: &ProfileResult) -> Vec<ProfileOp> {
    let has = |one: &ProfileResult, op| {
        let figures = one.capacity.iter().flat_map(|capacity| &capacity.figures);
        figures.into_iter().any(|one| one.figure.op() == op)
    };
    let all = [ProfileOp::Read, ProfileOp::Write];
    all.into_iter().filter(|op| merged.of_solutions().iter().all(|one| has(one, *op))).collect()
}

/// The profile in the directory or file `name`.
fn stored(name: &str) -> Result<ProfileResult, Failure> {
    let path = Path::new(name);
    let file = if path.is_dir() { path.join("result.json") } else { path.to_owned() };
    let text = files::read_text(&file.display().to_string())?;
    serde_json::from_str(&text).map_err(|error| {
        Failure::usage(format!("{} is no profile: {error}", file.display()))
            .with_help("name the directory or the result.json of `ssdyno profile`")
    })
}

/// The plan of the options; what was not given is as in `file`, the plan of the profile to resume.
fn plan(args: &ProfileArgs, file: Option<&ProfilePlan>) -> Result<ProfilePlan, Failure> {
    let method = method(args, file)?;
    let usual = (method.name() != MethodName::Full).then_some(TIME);
    let sizes = match &args.sizes {
        // A map has sizes of its own, which may fit into a span that these do not.
        _ if args.map => Vec::new(),
        none if none.is_empty() => file.map_or_else(default_sizes, |plan| plan.sizes.clone()),
        given => given.clone(),
    };
    let ops = match &args.ops {
        none if none.is_empty() => {
            let both = || vec![ProfileOp::Read, ProfileOp::Write];
            file.map_or_else(both, |plan| plan.ops.clone())
        }
        given => given.clone(),
    };
    let mut depths = match &args.depth {
        none if none.is_empty() => file.map_or_else(|| vec![1], ProfilePlan::depths),
        given => given.clone(),
    };
    let more_depths = depths.split_off(1);
    Ok(ProfilePlan {
        target: args.target.clone().unwrap_or_default(),
        method,
        ops,
        sizes,
        span: args.span.or(file.and_then(|plan| plan.span)),
        depth: depths[0],
        more_depths,
        solution: args.solution.clone(),
        time: args.time.map(|time| time.0).or(usual),
        threshold: args.threshold.or(file.and_then(|plan| plan.threshold)),
        seed: args.seed.or(file.map(|plan| plan.seed)).unwrap_or(1),
    })
}

fn method(args: &ProfileArgs, file: Option<&ProfilePlan>) -> Result<Method, Failure> {
    let refuse = |option: &str, of: &str| {
        let help = format!("leave it out, or profile with --method {of}");
        Err(Failure::usage(format!("`{option}` is for --method {of}")).with_help(help))
    };
    let of_ratios = "adaptive, serra or full";
    let (kind, file) = (args.method(file), file.map(|plan| plan.method));
    let error = |usual| {
        let of_file = match file {
            Some(Method::Adaptive { error }) if kind == ProfileMethod::Adaptive => Some(error),
            Some(Method::Full { error }) if kind == ProfileMethod::Full => Some(error),
            _ => None,
        };
        args.error.or(of_file).unwrap_or(usual)
    };
    let (points, repeat) = match file {
        Some(Method::Serra { points, repeat }) => (points, repeat),
        _ => (POINTS, REPEAT),
    };
    Ok(match kind {
        ProfileMethod::Serra if args.error.is_some() => {
            return refuse("--error", "adaptive, full or capacity");
        }
        other if other != ProfileMethod::Serra && args.points.is_some() => {
            return refuse("--points", "serra");
        }
        other if other != ProfileMethod::Serra && args.repeat.is_some() => {
            return refuse("--repeat", "serra");
        }
        ProfileMethod::Capacity if !args.sizes.is_empty() => return refuse("--sizes", of_ratios),
        ProfileMethod::Capacity if !args.depth.is_empty() => return refuse("--depth", of_ratios),
        ProfileMethod::Capacity if args.threshold.is_some() => {
            return refuse("--threshold", of_ratios);
        }
        ProfileMethod::Capacity => Method::Capacity { error: error(ERROR_ADAPTIVE) },
        ProfileMethod::Adaptive => Method::Adaptive { error: error(ERROR_ADAPTIVE) },
        ProfileMethod::Serra => Method::Serra {
            points: args.points.unwrap_or(points),
            repeat: args.repeat.unwrap_or(repeat),
        },
        ProfileMethod::Full => Method::Full { error: error(ERROR) },
        ProfileMethod::Map => Method::Map { error: error(ERROR) },
    })
}

/// What lies before the target, how it is loaded, and what permits that.
/// Without such options it is as in `before`, the profile to resume.
fn spec(args: &ProfileArgs, before: Option<&ProfileResult>) -> RunSpec {
    let (mut host, mut real, mut set) = (args.host.spec(), args.real.spec(), args.set.clone());
    if let Some(setup) = before.and_then(|before| Some(&before.plan.as_ref()?.setup)) {
        if set.is_empty() {
            set.clone_from(&setup.set);
        }
        if host == HostSpec::default() {
            host = setup.host.clone();
        }
        let RealSpec { timeout, no_probes, probe_interval, .. } = real;
        let kept = RealSpec { timeout, no_probes, probe_interval, ..RealSpec::default() };
        if real == kept {
            real = RealSpec { timeout, no_probes, probe_interval, ..setup.real.clone() };
        }
    }
    RunSpec { set, host, real, write: args.real.write_spec(), ..RunSpec::default() }
}

fn directory(args: &ProfileArgs, plan: &ProfilePlan) -> Result<Option<ResultFolder>, Failure> {
    let what = if args.merge.is_empty() { "profile" } else { "merged-profile" };
    args.results.create(args.keep, || {
        RunDirectory::default_name(&plan.target, what, Some(plan.seed), SystemTime::now())
    })
}

fn write(directory: &ResultFolder, result: &ProfileResult) -> Result<String, ResultError> {
    directory.write_page(&ssdyno_profile::html(result), result)
}

fn explain(error: ProfileError, kind: FailureKind) -> Failure {
    match error {
        ProfileError::Interrupted => {
            Failure::new(FailureKind::Interrupted, error.to_string()).with_help(error.help())
        }
        ProfileError::Target(failure) => Failure { kind, ..failure },
        // Nothing is wrong with what was asked for.
        ProfileError::Requests { .. } => {
            Failure::new(FailureKind::Failed, error.to_string()).with_help(error.help())
        }
        ProfileError::Plan { .. } => Failure::new(kind, error.to_string()).with_help(error.help()),
    }
}

struct Watch<'a> {
    meter: CountMeter,
    directory: Option<&'a ResultFolder>,
}

impl Observer for Watch<'_> {
    fn under_way(&mut self, stage: &Stage, progress: &RunProgress) -> KeepGoing {
        let mut what = stage.what.clone();
        if progress.completed > 0 {
            what += &format!(", mean latency {}", nanoseconds(progress.latency_ns_mean));
        }
        self.meter.update(stage.done, stage.of, what)
    }

    fn checkpoint(&mut self, result: &ProfileResult) {
        if let Some(directory) = self.directory {
            // Only a safety net: what cannot be written is said at the end.
            let _ = write(directory, result);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_and_ratios() {
        assert_eq!(error_share("10%"), Ok(0.1));
        for wrong in ["", "0%", "100%", "-5%", "nan%", "x%", "0.1"] {
            assert!(error_share(wrong).is_err(), "{wrong}");
        }
        assert_eq!(ratio("1.5"), Ok(1.5));
        for wrong in ["", "0", "-1", "inf", "nan", "x"] {
            assert!(ratio(wrong).is_err(), "{wrong}");
        }
    }
}
