//! `ssdyno sweep`.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;
use ssdyno_block::units::Span;
use ssdyno_figures::Keep;
use ssdyno_report::RunDirectory;
use ssdyno_session::{ErrorBody, Failure, ResultFolder, RunSpec, files};
use ssdyno_sweep::{
    Axis, Objective, Requirement, Sampling, Sweep, SweepPlan, SweepResult, SweepRow,
};
use ssdyno_task::{PreparedTask, Task, TaskOutcome, TaskResult};

use crate::args::{LoadArgs, positive_span, requests};
use crate::commands::run::RunArgs;
use crate::consent::Terminal;
use crate::dask::Dask;
use crate::diagnose;
use crate::options::{in_failure_of_task, in_text, in_text_of_task};
use crate::output::{Output, end};
use crate::progress::CountMeter;
use crate::real::RealArgs;
use crate::replay::{self, Origin, quoted};
use crate::results::{HEADING, ResultsArgs, one_of, place};
use crate::task;

/// Heading of the options about designs.
const DESIGNS: &str = "Designs";

#[derive(Debug, Args)]
pub(crate) struct SweepArgs {
    /// Target: sim:NAME, FILE.toml, a block device or a file; or a plan: a TOML file with the key `vary`
    /// (`ssdyno schema sweep`).
    ///
    /// A plan contains all options below, except the options for results.
    #[arg(value_name = "TARGET|PLAN", required_unless_present = "resume")]
    target: Option<String>,
    /// Vary this key over these values; see below. May be repeated: all combinations are run.
    #[arg(long, value_name = "KEY=VALUES", help_heading = DESIGNS)]
    vary: Vec<Axis>,
    /// Figures to optimise: the best design by one figure, or the Pareto front of several figures [default: mean].
    ///
    /// Figures are iops, throughput, mean, p50, p95, p99, p99.9, energy_per_request, energy_delay, wa,
    /// host_cpu, cost and cost_per_gib (the cost of a GiB of usable capacity).
    #[arg(long, value_name = "FIGURE", value_delimiter = ',', help_heading = DESIGNS)]
    objective: Vec<Objective>,
    /// A bound that designs on the front must meet, such as 'p99<2ms' or 'cost<60'. May be
    /// repeated.
    #[arg(long, value_name = "BOUND", help_heading = DESIGNS)]
    require: Vec<Requirement>,
    /// Run designs to their end even if they certainly break a bound of --require. Without this option
    /// their runs end early, and designs whose cost breaks a bound are not run; the table marks both.
    #[arg(long, help_heading = DESIGNS)]
    run_hopeless: bool,
    /// Designs to run: grid (all), random, latin-hypercube (each part of each axis once), search or
    /// bisection.
    ///
    /// search uses earlier results to choose promising designs (NSGA-II); --designs and --time are its
    /// budget. bisection finds the highest rate within the bound of --require.
    #[arg(long, value_name = "HOW", default_value = "grid", help_heading = DESIGNS,
          value_parser = one_of::<Sampling>(&["grid", "random", "latin-hypercube", "search", "bisection"]))]
    sampling: Sampling,
    /// Number of designs to draw; for a search, the maximum number of designs to run.
    #[arg(long, value_name = "N", value_parser = requests, help_heading = DESIGNS)]
    designs: Option<u64>,
    /// Random seed for the draw of designs and for a search.
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = DESIGNS)]
    draw_seed: u64,
    /// Start no design after this wall-clock time.
    #[arg(long, value_name = "TIME", value_parser = positive_span, help_heading = DESIGNS)]
    time: Option<Span>,
    /// Continue the sweep in this results directory without repeating finished designs.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["target", "vary", "name"], help_heading = DESIGNS)]
    resume: Option<PathBuf>,
    /// Run the designs on the workers of the Dask scheduler at this address, such as tcp://10.0.0.5:8786.
    /// Install the Python packages ssdyno and distributed here and on the workers. The table does not
    /// change.
    #[arg(long, value_name = "ADDRESS", help_heading = DESIGNS)]
    dask: Option<String>,
    /// Number of designs on the front to print.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = crate::args::rows,
          help_heading = DESIGNS)]
    top: usize,
    #[command(flatten)]
    load: LoadArgs,
    #[command(flatten)]
    real: RealArgs,
    /// Data to keep: all (sweep.parquet, result.json, report.html) or none.
    #[arg(long, value_name = "WHAT", default_value = "all", help_heading = HEADING,
          value_parser = one_of::<Keep>(&["all", "none"]))]
    keep: Keep,
    /// Also write the table as sweep.csv.
    #[arg(long, help_heading = HEADING)]
    csv: bool,
    #[command(flatten)]
    results: ResultsArgs,
}

/// Output of `sweep --json`. `result.json` has only the result.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "Sweep result")]
pub(crate) struct SweepOutput<'a> {
    #[serde(flatten)]
    result: &'a SweepResult,
    /// Directory of the result files; `null` with `--keep none`, or if they could not be written.
    results_directory: Option<String>,
    /// The command that repeats the sweep, for a sweep of `ssdyno run`.
    #[serde(skip_serializing_if = "Option::is_none")]
    replay: Option<String>,
    /// The error, if the sweep failed; the rows cover the time until then.
    error: Option<ErrorBody>,
}

impl SweepArgs {
    fn plan(&self) -> Result<SweepPlan, Failure> {
        let target = self.target.clone().unwrap_or_default();
        if is_plan(&target) {
            self.refuse_options(&target)?;
            return SweepPlan::read(&target);
        }
        Ok(self.typed(self.target.clone()))
    }

    /// Refuses options that a plan has: beside it they would be ignored.
    fn refuse_options(&self, plan: &str) -> Result<(), Failure> {
        if self.typed(None) == SweepPlan::default() {
            return Ok(());
        }
        Err(Failure::usage(format!("{plan} already sets the designs and the load"))
            .with_help("change them in the plan; only --top, --keep, --csv and the options of the results directory can be added"))
    }

    /// The plan that the options ask for.
    fn typed(&self, target: Option<String>) -> SweepPlan {
        let run = RunSpec {
            target,
            real: self.real.spec(),
            write: self.real.write_spec(),
            ..self.load.spec()
        };
        let mut plan = SweepPlan {
            run,
            vary: self.vary.clone(),
            sampling: self.sampling,
            designs: self.designs,
            draw_seed: self.draw_seed,
            require: self.require.clone(),
            run_hopeless: self.run_hopeless,
            time: self.time,
            ..SweepPlan::default()
        };
        if !self.objective.is_empty() {
            plan.objectives.clone_from(&self.objective);
        }
        plan
    }

    /// The sweep, on this machine or on the workers of Dask.
    fn prepared(&self, sweep: Sweep) -> Result<PreparedTask, Failure> {
        let Some(address) = self.dask.clone() else { return Ok(PreparedTask::from(sweep)) };
        // Before anything starts: what cannot be spread is a mistake in the command.
        sweep.check_spread().map_err(in_failure_of_task)?;
        Ok(PreparedTask::spread(sweep, move |sweep, missing| Dask::start(&address, sweep, missing)))
    }
}

/// Whether `target` is a TOML file with the key `vary`: device files have none.
fn is_plan(target: &str) -> bool {
    let is_toml = Path::new(target).extension().is_some_and(|e| e.eq_ignore_ascii_case("toml"));
    let text = if is_toml { files::read_text(target).unwrap_or_default() } else { String::new() };
    toml::from_str::<toml::Table>(&text).is_ok_and(|table| table.contains_key("vary"))
}

pub(crate) fn run(args: &SweepArgs, output: Output) -> Result<(), Failure> {
    let (prepared, folder, plan) = match &args.resume {
        Some(folder) => {
            args.refuse_options(&folder.display().to_string())?;
            let sweep = Sweep::resume(folder, &mut Terminal).map_err(in_failure_of_task)?;
            let plan = sweep.plan().clone();
            (args.prepared(sweep)?, Some(ResultFolder::open(folder)?), plan)
        }
        None => {
            let plan = args.plan()?;
            let prepared = match args.dask {
                Some(_) => {
                    args.prepared(plan.prepare(&mut Terminal).map_err(in_failure_of_task)?)?
                }
                None => task::prepare(&Task::Sweep(Box::new(plan.clone())))?,
            };
            // Made before the runs: a user without a place for results should read that at once.
            (prepared, directory(args, &plan)?, plan)
        }
    };
    let is_file = args.target.as_deref().is_some_and(is_plan);
    let shown = Shown { top: args.top, csv: args.csv, replay: None, is_file, is_run: false };
    conclude(prepared, folder, &plan, &shown, output)
}

/// How a sweep is shown.
pub(crate) struct Shown {
    /// Number of designs on the front to print.
    pub(crate) top: usize,
    /// Whether the table is written as CSV, too.
    pub(crate) csv: bool,
    /// The command that repeats it, where that is printed.
    pub(crate) replay: Option<String>,
    /// Whether the plan is a file, in which the user writes keys.
    pub(crate) is_file: bool,
    /// Whether `ssdyno run` asked for it: failed requests are then an error, as of a single run.
    pub(crate) is_run: bool,
}

/// Runs the designs, and writes and prints their results.
pub(crate) fn conclude(
    mut prepared: PreparedTask,
    folder: Option<ResultFolder>,
    plan: &SweepPlan,
    shown: &Shown,
    output: Output,
) -> Result<(), Failure> {
    if let Some(folder) = &folder {
        prepared.keep_in(folder.path().to_owned());
    }
    let outcome = task::watch(prepared, output, Some(CountMeter::new()), None);
    // Without measurements nothing is left behind.
    let outcome = outcome.inspect_err(|_| folder.iter().for_each(ResultFolder::remove))?;
    let TaskOutcome { result: TaskResult::Sweep(mut result), mut failure } = outcome else {
        return Err(task::other_result());
    };
    if let Some(folder) = &folder {
        result.notes.iter_mut().for_each(|note| *note = continued(note, folder.path()));
    }
    let command = |row: &SweepRow| plan.spec(&row.values).ok().map(|spec| command(&spec));
    let write = |folder: &ResultFolder| ssdyno_sweep::write(&result, folder, shown.csv, &command);
    let place = place(folder.as_ref().map(write), &mut failure);
    if shown.is_run {
        failure = failure.or_else(|| result.failed_requests());
    }
    if let Some(folder) = &folder {
        failure = failure.map(|failure| with_place(failure, folder.path()));
    }
    let told = output.either(
        || {
            let text = ssdyno_sweep::text(&result, shown.top);
            let mut text = if shown.is_file { in_text(&text) } else { in_text_of_task(&text) };
            let best = || {
                let row = *result.front().first()?;
                Some(format!("{}  # the first row: design {}", command(row)?, row.design))
            };
            match &shown.replay {
                Some(replay) => text.push_str(&format!("\nReplay   {replay}\n")),
                None => {
                    best().iter().for_each(|best| text.push_str(&format!("\nRepeat   {best}\n")))
                }
            }
            if let Some(place) = &place {
                text.push_str(&format!("Results  {place} (sweep.parquet; open report.html)\n"));
            }
            text
        },
        || SweepOutput {
            result: &result,
            results_directory: place.clone(),
            replay: shown.replay.clone(),
            error: failure.as_ref().map(diagnose::body),
        },
    );
    end(told, failure)
}

/// `failure` with the command that continues the sweep in `folder`.
fn with_place(mut failure: Failure, folder: &Path) -> Failure {
    failure.help = failure.help.map(|help| continued(&help, folder));
    failure
}

/// `text` with the command that continues the sweep in `folder`. `run --sweep` has no `--resume`.
fn continued(text: &str, folder: &Path) -> String {
    let command = format!("`ssdyno sweep --resume {}`", quoted(&folder.display().to_string()));
    text.replace("`--resume`", &command).replace("`resume`", &command)
}

/// The command that runs a design again, with everything that a run keeps.
fn command(spec: &RunSpec) -> String {
    let spec = RunSpec { keep: Keep::All, ..spec.clone() };
    replay::command(&RunArgs::options(), &Origin::Spec(&spec), Vec::new())
}

fn directory(args: &SweepArgs, plan: &SweepPlan) -> Result<Option<ResultFolder>, Failure> {
    args.results.create(args.keep, || {
        let target = plan.run.target.as_deref().unwrap_or("designs");
        RunDirectory::default_name(target, "sweep", Some(plan.run.seed), SystemTime::now())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_that_ran_out_of_time_names_the_command_that_continues_it() {
        let note = "`time` ended the search early: continue with `resume`";
        assert_eq!(
            continued(note, Path::new("results/a")),
            "`time` ended the search early: continue with `ssdyno sweep --resume results/a`"
        );
    }

    #[test]
    fn an_interrupted_sweep_names_the_command_that_continues_it() {
        for named in ["`resume`", "`--resume`"] {
            let failure = Failure::usage("interrupted").with_help(format!("continue with {named}"));
            let shown = with_place(failure, Path::new("results/a b"));
            let help = "continue with `ssdyno sweep --resume 'results/a b'`";
            assert_eq!(shown.help.as_deref(), Some(help));
        }
    }
}
