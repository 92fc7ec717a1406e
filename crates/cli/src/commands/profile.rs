//! `ssdyno profile`.

use std::time::SystemTime;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use schemars::JsonSchema;
use serde::Serialize;
use ssdyno_block::units::{Bytes, Span};
use ssdyno_figures::Keep;
use ssdyno_profile::{Method, MethodName, ProfileOp, ProfilePlan, ProfileResult, SizeInterval};
use ssdyno_report::{ResultError, RunDirectory};
use ssdyno_session::{ErrorBody, Failure, ResultFolder};
use ssdyno_task::{ProfileTask, Task, TaskOutcome, TaskResult, stored_profile};

use crate::args::{positive_span, seed};
use crate::diagnose;
use crate::host::HostArgs;
use crate::options::{in_failure_of_task, in_text_of_task};
use crate::output::{Output, end, tell};
use crate::progress::CountMeter;
use crate::real::RealArgs;
use crate::results::{HEADING, ResultsArgs, one_of, place};
use crate::scheduler_files::{SchedulerFileArgs, SchedulerFiles};
use crate::task;

// `--method` of real targets is about submission; here it is the method of the profile.
#[derive(Debug, Args)]
#[command(mut_arg("method", |arg| arg.long("submit-method")))]
#[command(mut_arg("batch", |arg| arg.help("Completions to wait for in one call, or all (fio: iodepth_batch_complete_min) [default: set by --submit-method]")))]
#[command(mut_arg("submit", |arg| arg.help("Maximum requests in one submit call, or all (fio: iodepth_batch) [default: set by --submit-method]")))]
#[command(mut_arg("wait", |arg| arg.help("How jobs wait for completions: sleep (every latency includes the wake-up) or spin (takes a core) [default: set by --submit-method]")))]
pub(crate) struct ProfileArgs {
    /// Target: sim:NAME, FILE.toml, a block device or a file. On a real target, write tests overwrite the
    /// span and need --write; --ops read does not write.
    #[arg(required_unless_present = "merge")]
    pub(crate) target: Option<String>,
    /// Combine stored profiles of one device into one profile with narrower intervals, without a
    /// measurement. RESULT is the directory or the result.json of a profile. The combined profile can also
    /// be written as scheduler files. Profiles with different --solution are kept side by side.
    #[arg(long, value_name = "RESULT", num_args = 2..,
          conflicts_with_all = ["target", "profile_method", "sizes", "span", "points", "repeat", "error", "time", "depth",
                                "threshold", "set", "solution"])]
    merge: Vec<String>,
    /// Continue a stored profile of the same target that ended early. RESULT is its directory or its
    /// result.json. Omitted options have the values of that profile; --time applies to this session.
    #[arg(long, value_name = "RESULT", conflicts_with = "merge")]
    resume: Option<String>,
    /// How request sizes are tested: adaptive, serra, full or capacity [default: adaptive; capacity with a
    /// scheduler file].
    ///
    /// adaptive measures the least certain sizes until every ratio is within --error. serra measures some
    /// sizes and estimates the others with a line. full measures every size until its mean is within
    /// --error (slow). capacity measures rates at saturation for the configuration of I/O schedulers.
    #[arg(long = "method", id = "profile_method", value_name = "METHOD", value_parser = of_method())]
    method: Option<MethodName>,
    /// Map the 95th percentile of read latency over the rates of simultaneous reads (random, 4KiB) and
    /// writes (sequential, 128KiB). The map stops when interpolation between its points is within --error
    /// (10%), or when --time is over. Overwrites the span.
    #[arg(long, conflicts_with_all = ["merge", "profile_method", "sizes", "depth", "points", "repeat", "threshold"])]
    map: bool,
    /// Operations to test: read, write or both [default: read,write].
    #[arg(long, value_name = "OPS", value_delimiter = ',')]
    ops: Vec<ProfileOp>,
    /// Request sizes: intervals SMALLEST..LARGEST/GAP [default: 8KiB..64KiB/8KiB,64KiB..4MiB/32KiB].
    #[arg(long, value_name = "INTERVALS", value_delimiter = ',')]
    sizes: Vec<SizeInterval>,
    /// Bytes from the start of the target that every test accesses [default: 1200MiB, or all of a
    /// smaller target; all with capacity and --map].
    #[arg(long, value_name = "SIZE")]
    span: Option<Bytes>,
    /// Number of sizes that serra measures in each interval: both ends, and random sizes between them
    /// [default: 2].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..))]
    points: Option<u32>,
    /// Number of times that serra runs each test [default: 1].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    repeat: Option<u32>,
    /// Precision at which the profile stops. For adaptive, half the width of the 90 % confidence interval
    /// divided by the ratio; for full and capacity, half the width divided by the mean; for --map, the
    /// difference between interpolated and measured latency, 1% to 50% [default: 5%; 10% with full and
    /// --map].
    #[arg(long, value_name = "N%", value_parser = error_share)]
    error: Option<f64>,
    /// Time limit for all tests together, in device time; serra divides it among its tests [default: 3min;
    /// none with full].
    #[arg(long, value_name = "TIME", value_parser = positive_span)]
    time: Option<Span>,
    /// Number of outstanding requests. With several values, such as 1,8, each depth is profiled; --time
    /// limits all depths together [default: 1; capacity searches for the depth of saturation].
    #[arg(long, value_name = "N,...", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..))]
    depth: Vec<u32>,
    /// List the sizes whose ratio is at least this: for these sizes an optimisation that needs this ratio
    /// is worthwhile.
    #[arg(long, value_name = "RATIO", value_parser = ratio)]
    threshold: Option<f64>,
    /// Name of the solution in the file of --io-cost-hwdb, such as isolated-bandwidth. --merge writes
    /// profiles with different names into one file [default: ssdyno].
    #[arg(long, value_name = "NAME")]
    solution: Option<String>,
    /// Random seed: the same seed repeats the figures of a simulated target [default: 1].
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
    /// Data to keep: all (result.json and report.html) or none.
    #[arg(long, value_name = "WHAT", default_value = "all", help_heading = HEADING,
          value_parser = one_of::<Keep>(&["all", "none"]))]
    keep: Keep,
    #[command(flatten)]
    results: ResultsArgs,
}

impl ProfileArgs {
    fn method(&self) -> Option<MethodName> {
        if self.map {
            return Some(MethodName::Map);
        }
        let usual = self.schedulers.any().then_some(MethodName::Capacity);
        self.method.or(usual)
    }

    fn task(&self) -> ProfileTask {
        ProfileTask {
            target: self.target.clone().unwrap_or_default(),
            resume: self.resume.clone(),
            method: self.method(),
            ops: self.ops.clone(),
            sizes: self.sizes.clone(),
            span: self.span,
            points: self.points,
            repeat: self.repeat,
            error: self.error,
            time: self.time,
            depth: self.depth.clone(),
            threshold: self.threshold,
            solution: self.solution.clone(),
            seed: self.seed,
            set: self.set.clone(),
            host: self.host.spec(),
            real: self.real.spec(),
            write: self.real.write_spec(),
        }
    }
}

/// A parser of the methods that have no option of their own.
fn of_method() -> impl TypedValueParser<Value = MethodName> {
    let methods = MethodName::ALL.into_iter().filter(|method| *method != MethodName::Map);
    PossibleValuesParser::new(methods.map(MethodName::name))
        .try_map(|word| MethodName::named(&word).ok_or("unknown"))
}

/// `10%` as 0.1.
fn error_share(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').and_then(|text| text.trim().parse::<f64>().ok());
    let share = number.filter(|number| *number > 0.0 && *number < 100.0);
    let help = || "use a percentage above 0 and below 100, such as 10%".to_owned();
    share.map(|number| number / 100.0).ok_or_else(help)
}

/// A ratio above zero.
fn ratio(text: &str) -> Result<f64, String> {
    let ratio = text.trim().parse::<f64>().ok().filter(|ratio| *ratio > 0.0 && ratio.is_finite());
    ratio.ok_or_else(|| "use a ratio above 0, such as 1.5".to_owned())
}

/// Output of `profile --json`. `result.json` has only the result.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "Profile")]
pub(crate) struct ProfileOutput<'a> {
    #[serde(flatten)]
    result: &'a ProfileResult,
    /// Directory of the result files; `null` with `--keep none`, or if they could not be written.
    results_directory: Option<String>,
    /// The error, if the profile failed; the figures cover the time until then.
    error: Option<ErrorBody>,
}

pub(crate) fn run(args: &ProfileArgs, output: Output) -> Result<(), Failure> {
    if !args.merge.is_empty() {
        return merge(args, output);
    }
    let asked = args.task();
    let outline = asked.outline().map_err(in_failure_of_task)?;
    if let Some(finished) = outline.finished() {
        return nothing_left(&finished, output);
    }
    let plan = &outline.plan;
    let files = args.schedulers.open(plan, output)?;
    let prepared = task::prepare(&Task::Profile(Box::new(asked)));
    let prepared = prepared.inspect_err(|_| files.remove_new())?;
    // Created before the tests, so that a user without a place for results gets the error at once.
    let directory = directory(args, plan).inspect_err(|_| files.remove_new())?;
    let checkpoint = &mut |result: TaskResult| {
        if let (Some(directory), TaskResult::Profile(result)) = (&directory, &result) {
            // Only a safety net: what cannot be written is said at the end.
            let _ = write(directory, result);
        }
        Ok(())
    };
    let outcome = task::watch(prepared, output, Some(CountMeter::new()), Some(checkpoint));
    let outcome = outcome.inspect_err(|_| {
        // Without measurements nothing is left behind.
        files.remove_new();
        directory.iter().for_each(ResultFolder::remove);
    })?;
    let TaskOutcome { result: TaskResult::Profile(result), failure } = outcome else {
        return Err(task::other_result());
    };
    report(&result, directory.as_ref(), &files, failure, output)
}

/// Prints the finished profile `result`, which stays where it is.
fn nothing_left(result: &ProfileResult, output: Output) -> Result<(), Failure> {
    let told = output.either(
        || in_text_of_task(&ssdyno_profile::text(result)),
        || ProfileOutput { result, results_directory: None, error: None },
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
    let place = place(directory.map(|directory| write(directory, result)), &mut failure);
    let made = files.write(result, output).unwrap_or_else(|error| {
        failure.get_or_insert(error);
        Vec::new()
    });
    if files.takes_output() {
        tell(&in_text_of_task(&ssdyno_profile::text(result)));
        return end(Ok(()), failure);
    }
    let told = output.either(
        || {
            let mut text = in_text_of_task(&ssdyno_profile::text(result));
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
            error: failure.as_ref().map(diagnose::body),
        },
    );
    end(told, failure)
}

/// Makes one of stored profiles.
fn merge(args: &ProfileArgs, output: Output) -> Result<(), Failure> {
    let profiles =
        args.merge.iter().map(|name| stored_profile(name)).collect::<Result<Vec<_>, _>>()?;
    let merged = ssdyno_profile::merge(&profiles).map_err(in_failure_of_task)?;
    let mut plan = args.task().outline().map_err(in_failure_of_task)?.plan;
    plan.target.clone_from(&merged.target);
    if let Some(capacity) = &merged.capacity {
        // The figures for scheduler files.
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

fn directory(args: &ProfileArgs, plan: &ProfilePlan) -> Result<Option<ResultFolder>, Failure> {
    let what = if args.merge.is_empty() { "profile" } else { "merged-profile" };
    args.results.create(args.keep, || {
        RunDirectory::default_name(&plan.target, what, Some(plan.seed), SystemTime::now())
    })
}

fn write(directory: &ResultFolder, result: &ProfileResult) -> Result<String, ResultError> {
    directory.write_page(&ssdyno_profile::html(result), result)
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
