//! `ssdyno run`.

use std::fs;
use std::path::Path;
use std::time::SystemTime;

use schemars::JsonSchema;
use serde::Serialize;
use ssdyno_result::{Keep, Recording, ResultError, RunDirectory, RunResult, summary_text};
use ssdyno_rig::{Measured, RunError};

use crate::args::RunArgs;
use crate::diagnose::{ErrorBody, Exit, Failure};
use crate::output::Output;
use crate::plan::Plan;
use crate::progress::Board;
use crate::replay;

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
    /// The command that repeats the run.
    #[serde(default)]
    replay: Option<String>,
    /// Why the run failed, if it did; the figures are those until then.
    #[serde(default)]
    error: Option<ErrorBody>,
}

pub(crate) fn run(args: &RunArgs, output: Output) -> Result<(), Failure> {
    let plan = Plan::new(&args.target, &args.load, args.keep(), args.interval.map(|i| i.0))?;
    // Made before the run: who has no place for results should hear of it at once.
    let directory = match plan.run.keep {
        Keep::None => None,
        _ => Some(Directory::create(args, &plan)?),
    };
    let mut meter = Board::new().meter(&plan.run.target, plan.goal());
    let measured = plan.run.execute(&mut |progress| meter.update(progress));
    meter.finish();
    let measured = match measured {
        Ok(measured) => measured,
        Err(error) => {
            directory.inspect(Directory::remove);
            return Err(plan.explain(&error, Exit::Usage));
        }
    };
    let Measured { result, recording, failure, .. } = measured;
    let written = directory.as_ref().map(|d| d.write(&result, &recording)).transpose();
    let mut failure = judge(&plan, &result, failure.as_ref());
    // An interrupt explains more than its consequences; a lost result is worse than the rest.
    if let Err(error) = &written {
        failure = Some(unwritable(error));
    }
    let place = written.ok().flatten();
    let replay = replay::command(args, &plan.run.target);
    let told = tell(output, &result, place, replay, failure.as_ref());
    match failure {
        Some(mut failure) => {
            failure.told = told.is_ok();
            Err(failure)
        }
        None => told,
    }
}

fn tell(
    output: Output,
    result: &RunResult,
    place: Option<String>,
    replay: String,
    failure: Option<&Failure>,
) -> Result<(), Failure> {
    if output.json {
        return output.object(&RunOutput {
            result,
            results_directory: place,
            replay: Some(replay),
            error: failure.map(Failure::body),
        });
    }
    let mut text = summary_text(result);
    if let Some(place) = place {
        text.push_str(&format!("\nResults  {place} (open report.html)"));
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
    if let Some(error) = failure {
        return Some(plan.explain(error, Exit::Failed));
    }
    let broken: Vec<String> = result
        .invariants
        .iter()
        .filter(|invariant| !invariant.holds)
        .map(|invariant| format!("{} ({})", invariant.name, invariant.detail))
        .collect();
    if !broken.is_empty() {
        let message = format!("the run breaks its own laws: {}", broken.join("; "));
        let help = "do not trust these figures; please report this with the command of the replay";
        return Some(Failure::new(Exit::Failed, message).with_help(help));
    }
    (result.errors > 0).then(|| {
        let message = format!("{} requests ended in an error", result.errors);
        let help = "the notes of the result say what became of the device";
        Failure::new(Exit::Failed, message).with_help(help)
    })
}

pub(crate) fn unwritable(error: &ResultError) -> Failure {
    // The message of the library ends with its advice.
    match error {
        ResultError::Write { path, source, advice } => {
            let message = format!("cannot write {}: {source}", path.display());
            Failure::new(Exit::Unwritable, message).with_help(*advice)
        }
        other => Failure::new(Exit::Failed, other.to_string()),
    }
}

/// The directory of the run, and whether its base was made for it.
struct Directory {
    run: RunDirectory,
    base: Option<std::path::PathBuf>,
}

impl Directory {
    fn create(args: &RunArgs, plan: &Plan) -> Result<Directory, Failure> {
        let name = args.name.clone().unwrap_or_else(|| {
            let (target, workload) = (&plan.run.target, &plan.run.workload);
            RunDirectory::default_name(target, workload, Some(plan.run.seed), SystemTime::now())
        });
        let base = (!args.results.exists()).then(|| args.results.clone());
        let run = RunDirectory::create(&args.results, &name).map_err(|e| unwritable(&e))?;
        Ok(Directory { run, base })
    }

    fn write(&self, result: &RunResult, recording: &Recording) -> Result<String, ResultError> {
        self.run.write_all(result, recording.rows())?;
        Ok(self.run.path().display().to_string())
    }

    /// After a run that never started. Only what is empty goes.
    fn remove(&self) {
        let remove = |path: &Path| {
            // It stays behind if somebody put something in; that is no error of ours.
            let _ = fs::remove_dir(path);
        };
        remove(self.run.path());
        if let Some(base) = &self.base {
            remove(base);
        }
    }
}
