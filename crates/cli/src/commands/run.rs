//! `ssdyno run`.

use std::time::SystemTime;

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;
use ssdyno_block::units::Span;
use ssdyno_block::{Time, counted};
use ssdyno_engine::events::EventReader;
use ssdyno_result::{Keep, Recording, Rows, RunDirectory, RunResult, summary_text};
use ssdyno_rig::{Measured, RunError};

use crate::args::{LoadArgs, span_or_zero};
use crate::diagnose::{ErrorBody, Exit, Failure};
use crate::fio;
use crate::memory;
use crate::output::{Output, end};
use crate::plan::{self, Plan};
use crate::progress::{Goal, Watch};
use crate::real::{self, RealArgs, RealPlan};
use crate::replay;
use crate::results::{Directory, HEADING, ResultsArgs, keep, unwritable};
use crate::timeline::{TimelineArgs, TimelineFile};

#[derive(Clone, Debug, Args)]
pub(crate) struct RunArgs {
    /// What to load: sim:NAME (see `ssdyno list`), sim:FILE.toml or FILE.toml; or a real target: a
    /// block device such as /dev/nvme0n1, a file, or null: (the floor of the tool), read-only
    /// unless --write says otherwise.
    /// [default: the file that a job file names, or sim:nvme-tlc].
    pub(crate) target: Option<String>,
    #[command(flatten)]
    pub(crate) load: LoadArgs,
    /// Show progress in lines instead of the live view, as it is where standard error is no terminal,
    /// with TERM=dumb or with NO_COLOR.
    #[arg(long, help_heading = None::<&str>)]
    pub(crate) no_live: bool,
    #[command(flatten)]
    pub(crate) real: RealArgs,
    /// Search for the fastest method first, by short runs of the load itself (some half minute), use it,
    /// and print the options that pin it.
    #[arg(long, help_heading = "Real targets", conflicts_with_all = ["method", "batch", "submit", "wait"])]
    pub(crate) tune: bool,
    /// What to keep: all (a row for each request: 16 bytes of memory each), summary (no rows:
    /// memory stays flat, percentiles within 0.4 %), or none (no files).
    #[arg(long, value_name = "WHAT", default_value = "all", help_heading = HEADING,
          value_parser = keep(["all", "summary", "none"]))]
    pub(crate) keep: Keep,
    /// Write the rows as requests.csv, too, in the order of issue: a trace that --workload plays.
    #[arg(long, help_heading = HEADING)]
    pub(crate) csv: bool,
    #[command(flatten)]
    pub(crate) results: ResultsArgs,
    /// Length of the points of the series, such as 10ms; 0 for a single one, at the end [default: by
    /// the length of the run].
    #[arg(long, value_name = "TIME", value_parser = span_or_zero, help_heading = HEADING)]
    pub(crate) interval: Option<Span>,
    #[command(flatten)]
    pub(crate) timeline: TimelineArgs,
}

/// The first of the presets.
const DEFAULT_TARGET: &str = "sim:nvme-tlc";

impl RunArgs {
    /// Length of the points of the series: at nothing one that no run fills (S4-15).
    pub(crate) fn series_interval(&self) -> Option<Time> {
        const WHOLE_RUN: Time = Time::from_s(10_000_000);
        let interval = self.interval?.0;
        Some(if interval == Time::ZERO { WHOLE_RUN } else { interval })
    }

    /// What to load, once it is decided.
    pub(crate) fn target(&self) -> &str {
        self.target.as_deref().unwrap_or(DEFAULT_TARGET)
    }
}

/// What `run --json` prints: the result, and what became of it. `result.json` has the result
/// alone.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "Run")]
pub(crate) struct RunOutput<'a> {
    #[serde(flatten)]
    result: &'a RunResult,
    /// Where the files lie; `null` with `--keep none`, or where they could not be written.
    #[serde(default)]
    results_directory: Option<String>,
    /// Where the timeline lies; `null` where none was asked for, or it could not be written.
    #[serde(default)]
    timeline: Option<String>,
    /// The command that repeats the run.
    #[serde(default)]
    replay: Option<String>,
    /// Why the run failed, if it did; the figures are those until then.
    #[serde(default)]
    error: Option<ErrorBody>,
}

impl<'a> RunOutput<'a> {
    /// Of a result that lies at `place`.
    pub(crate) fn of(result: &'a RunResult, place: Option<String>) -> RunOutput<'a> {
        RunOutput { result, results_directory: place, timeline: None, replay: None, error: None }
    }
}

pub(crate) fn run(args: &RunArgs, output: Output) -> Result<(), Failure> {
    let (args, more) = &fio::with_target(args)?;
    if real::is_real(args.target()) {
        return run_real(args, more, output);
    }
    args.real.refuse("a device, a file or null:")?;
    if args.tune {
        return Err(real::for_real_targets("--tune", "a device or a file"));
    }
    let plan = Plan::new(args.target(), &args.load, args.keep, args.series_interval())?;
    // Made before the run: who has no place for results should hear of it at once.
    let mut timeline = TimelineFile::create(&args.timeline)?;
    let directory = directory(args, &plan.run.target)
        .inspect_err(|_| timeline.iter().for_each(TimelineFile::discard))?;
    memory::look_ahead(args.keep, plan.goal());
    let mut meter = watch(args, &plan.run.target, plan.goal(), false);
    let reader = timeline.as_mut().map(|file| &mut file.timeline as &mut dyn EventReader);
    let measured = plan.execute(reader, &mut |progress| meter.update(progress));
    meter.finish();
    match measured {
        Ok(Measured { result, recording, failure, .. }) => {
            let failure = judge(&plan, &result, failure.as_ref());
            let files = Files { directory, timeline };
            conclude(args, output, Some(&plan.run.target), &files, (&result, &recording), failure)
        }
        Err(error) => {
            timeline.iter().for_each(TimelineFile::discard);
            directory.inspect(Directory::remove);
            Err(plan.explain(&error, Exit::Usage))
        }
    }
}

fn run_real(args: &RunArgs, more: &[String], output: Output) -> Result<(), Failure> {
    if args.timeline.timeline.is_some() {
        return Err(Failure::usage("`--timeline` is for simulated targets")
            .with_help("nobody sees into a real device; requests.parquet has its requests"));
    }
    let mut plan = RealPlan::new(args, more)?;
    let name = plan.run.name();
    let directory = directory(args, &name)?;
    plan.run.rows_in = directory.as_ref().map(|directory| directory.path().to_owned());
    let goal = plan::goal(&plan.run.source);
    // Other rows are on the disk before they are many.
    if args.keep == Keep::None {
        memory::look_ahead(args.keep, goal);
    }
    let mut meter = watch(args, &name, goal, true);
    let measured = plan.run.execute(&mut |progress| meter.update(progress));
    meter.finish();
    match measured {
        Ok(ssdyno_bench::Measured { result, recording, failure }) => {
            let failure = failure.map(|error| plan.explain(&error, Exit::Failed));
            let failure = failure.or_else(|| judge_result(&result));
            let files = Files { directory, timeline: None };
            // Several are named by the job file alone.
            let target = more.is_empty().then_some(plan.run.target.as_str());
            conclude(args, output, target, &files, (&result, &recording), failure)
        }
        Err(error) => {
            directory.inspect(Directory::remove);
            Err(plan.explain(&error, Exit::Usage))
        }
    }
}

fn directory(args: &RunArgs, target: &str) -> Result<Option<Directory>, Failure> {
    if args.csv && args.keep != Keep::All {
        return Err(Failure::usage("`--csv` writes rows, and `--keep` leaves them out")
            .with_help("leave one of the two out"));
    }
    Directory::create(args.keep, &args.results, || {
        let (workload, seed) = (args.load.workload(target), args.load.seed);
        RunDirectory::default_name(target, workload, Some(seed), SystemTime::now())
    })
}

fn watch(args: &RunArgs, target: &str, goal: Goal, real: bool) -> Watch {
    Watch::new(target, args.load.workload(target), goal, !args.no_live, real)
}

/// Writes and tells what was measured.
fn conclude(
    args: &RunArgs,
    output: Output,
    target: Option<&str>,
    files: &Files,
    (result, recording): (&RunResult, &Recording),
    mut failure: Option<Failure>,
) -> Result<(), Failure> {
    let write = |d: &Directory| d.write_run(result, recording, args.csv);
    let written = files.directory.as_ref().map(write).transpose();
    if let Some((lost, Some(error))) = recording.rows().map(Rows::lost)
        && lost > 0
    {
        let whose = counted(lost, "request", "requests");
        let message =
            format!("the rows of {whose} are lost: the disk of the results is full ({error})");
        let help = "free some space, choose another --results, or keep less (--keep summary)";
        failure = Some(Failure::new(Exit::Unwritable, message).with_help(help));
    }
    // An interrupt explains more than its consequences; a lost result is worse than the rest.
    if let Err(error) = &written {
        failure = Some(unwritable(error));
    }
    // After the results: what becomes of it does not touch them.
    let drawn = |file: &TimelineFile| {
        Ok((file.path().display().to_string(), file.write(recording.rows())?))
    };
    let timeline = files.timeline.as_ref().map(drawn).transpose();
    let told = Told {
        place: written.ok().flatten(),
        replay: replay::command(args, target, result.method.as_ref()),
        timeline: timeline.unwrap_or_else(|error| {
            failure = Some(error);
            None
        }),
    };
    let told = tell(output, result, told, failure.as_ref());
    end(told, failure)
}

/// What is said beside the result.
struct Told {
    place: Option<String>,
    /// Path, and a line about it.
    timeline: Option<(String, String)>,
    replay: String,
}

fn tell(
    output: Output,
    result: &RunResult,
    told: Told,
    failure: Option<&Failure>,
) -> Result<(), Failure> {
    let Told { place, timeline, replay } = told;
    if output.json {
        return output.object(&RunOutput {
            result,
            results_directory: place,
            timeline: timeline.map(|(path, _)| path),
            replay: Some(replay),
            error: failure.map(Failure::body),
        });
    }
    let mut text = summary_text(result);
    if let Some(place) = place {
        text.push_str(&format!("\nResults  {place} (open report.html)"));
    }
    if let Some((_, timeline)) = timeline {
        text.push_str(&format!("\nTimeline {timeline}"));
    }
    text.push_str(&format!("\nReplay   {replay}\n"));
    output.text(&text)
}

/// What keeps a finished run from being a success.
pub(crate) fn judge(
    plan: &Plan,
    result: &RunResult,
    failure: Option<&RunError>,
) -> Option<Failure> {
    match failure {
        Some(error) => Some(plan.explain(error, Exit::Failed)),
        None => judge_result(result),
    }
}

/// What of its own figures keeps a finished run from being a success.
pub(crate) fn judge_result(result: &RunResult) -> Option<Failure> {
    let broken = || result.invariants.iter().filter(|invariant| !invariant.holds);
    // No fault of the simulation: as the paper's driver does, and what else is broken follows.
    if let Some(stall) = broken().find(|invariant| invariant.name == "ring_goes_on") {
        let message = format!("the driver is stalled: {}", stall.detail);
        let help = "run a number of requests that fills the blocks, with a depth of a block or more; \
                    or give --ring partial-after=100us, or block=dynamic";
        return Some(Failure::new(Exit::Failed, message).with_help(help));
    }
    let broken: Vec<String> =
        broken().map(|invariant| format!("{} ({})", invariant.name, invariant.detail)).collect();
    if !broken.is_empty() {
        let message = format!("the run breaks its own laws: {}", broken.join("; "));
        let help = "do not trust these figures; please report this with the command of the replay";
        return Some(Failure::new(Exit::Failed, message).with_help(help));
    }
    (result.errors > 0).then(|| {
        let who = counted(result.errors, "request", "requests");
        let message = format!("{who} ended in an error");
        let help = match &result.faults {
            Some(faults) if faults.device.is_none() && faults.network.is_none() => {
                "the notes of the result say why; it counts what the driver did about it"
            }
            Some(_) => "faults were asked for: the result counts what went wrong and what was done about it",
            None => "the notes of the result say what became of the device",
        };
        Failure::new(Exit::Failed, message).with_help(help)
    })
}

/// Where things are kept.
struct Files {
    directory: Option<Directory>,
    timeline: Option<TimelineFile>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_target_is_the_first_preset() {
        assert_eq!(DEFAULT_TARGET, format!("sim:{}", ssdyno_device::presets::ALL[0].name));
    }
}
