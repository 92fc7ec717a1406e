//! `ssdyno run --runs N`: one load several times.

use std::time::SystemTime;

use schemars::JsonSchema;
use serde::Serialize;
use ssdyno_figures::RepeatedRuns;
use ssdyno_report::{ResultError, RunDirectory, repeated_text};
use ssdyno_session::{ErrorBody, Failure, ResultFolder, RunSpec};
use ssdyno_task::{CompareTask, Gate, Task, TaskOutcome, TaskResult, repeated_requirements};

use crate::commands::run::RunArgs;
use crate::diagnose;
use crate::gates;
use crate::options::in_text;
use crate::output::{Output, end};
use crate::progress::CountMeter;
use crate::results::place;
use crate::task::{self, other_result};

/// Output of `run --runs N --json`, and contents of `result.json`.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "Repeat")]
pub(crate) struct RepeatOutput {
    #[serde(flatten)]
    repeated: RepeatedRuns,
    /// Directory of the result files; `null` with `--keep none`, or if they could not be written.
    results_directory: Option<String>,
    /// The command that repeats the runs.
    replay: String,
    /// The bounds of `--require`, with the verdicts of the runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    bounds: Vec<Gate>,
    /// The error of a run, if a run failed.
    error: Option<ErrorBody>,
}

/// Runs the load of `args` `runs` times.
pub(crate) fn run(args: &RunArgs, runs: u32, output: Output) -> Result<(), Failure> {
    args.junit.check(args.require.len(), "--require p99<2ms")?;
    let spec = args.asked()?;
    check(&spec)?;
    let spec = RunSpec { target: Some(spec.target().to_owned()), ..spec };
    let compare = CompareTask {
        sides: vec![spec.target().to_owned()],
        specs: vec![Some(spec.clone())],
        run: spec.clone(),
        runs: Some(runs),
    };
    let prepared = task::prepare(&Task::Compare(Box::new(compare)))?;
    // Created before the runs, so that a user without a place for results gets the error at once.
    let folder = args.results.create(spec.keep, || {
        let load = format!("{}-{runs}-runs", spec.load(spec.target()));
        RunDirectory::default_name(spec.target(), &load, Some(spec.seed), SystemTime::now())
    })?;
    let outcome = task::watch(prepared, output, Some(CountMeter::new()), None);
    let outcome = outcome.inspect_err(|_| folder.iter().for_each(ResultFolder::remove))?;
    let TaskOutcome { result: TaskResult::Compare(mut result), mut failure } = outcome else {
        return Err(other_result());
    };
    let page = result.html();
    let repeated = result.repeated.pop().ok_or_else(other_result)?;
    let bounds = repeated_requirements(&args.require, &repeated);
    let broken = args.junit.conclude(&repeated.name, &bounds);
    let text = in_text(&repeated_text(&repeated));
    let replay = args.replay(&spec);
    let mut told = RepeatOutput { repeated, results_directory: None, replay, bounds, error: None };
    let written = folder.map(|folder| write(&folder, &page, &told));
    told.results_directory = place(written, &mut failure);
    failure = failure.or(broken);
    told.error = failure.as_ref().map(diagnose::body);
    let place = told.results_directory.iter();
    let place: String = place.map(|at| format!("\nResults  {at} (open report.html)")).collect();
    let below = format!("{place}\nReplay   {}\n{}", told.replay, gates::lines(&told.bounds));
    end(output.either(|| text + &below, || told), failure)
}

/// A search in each run would give different methods for the runs. And the runs are called by their target.
fn check(spec: &RunSpec) -> Result<(), Failure> {
    if spec.target.is_none() && spec.fio.is_some() {
        return Err(Failure::usage("`--runs` needs the name of the target")
            .with_help("give the file or device of the job file before the options")
            .with_key("target"));
    }
    match spec.real.tune {
        true => Err(Failure::usage("`real.tune` cannot be used with `--runs`")
            .with_help("search once without `--runs`; the replay command names the method")
            .with_key("real.tune")),
        false => Ok(()),
    }
}

/// Each run with its page in a directory of its own, and last the page and the figures of all.
fn write(folder: &ResultFolder, page: &str, all: &RepeatOutput) -> Result<String, ResultError> {
    for (run, number) in all.repeated.runs.iter().zip(1..) {
        let own = RunDirectory::create(folder.path(), &format!("run-{number}"))?;
        own.write_all(run, None, false)?;
    }
    folder.write_page(page, all)
}
