//! `ssdyno run --sweep KEY=VALUES`: one load at each value of a number. `--latency-target`: at rates around the highest that keeps a bound.

use std::time::SystemTime;

use ssdyno_report::RunDirectory;
use ssdyno_session::{Failure, RunSpec};
use ssdyno_sweep::{Objective, RATE, Requirement, Sampling, SweepPlan};
use ssdyno_task::Task;

use crate::commands::run::RunArgs;
use crate::commands::sweep::{Shown, conclude};
use crate::output::Output;
use crate::swept::Swept;
use crate::task;

/// The figure by which the designs of the curve are compared in the table.
const OBJECTIVES: [&str; 2] = ["iops", "p99"];

/// Keys that say how requests arrive.
const ARRIVALS: &str = "workload.arrivals.";

/// Rates that a search may try; it begins at that of one request at a time.
const RATES: &str = "1..1000000000";

/// Runs the load of `args` at each value of `swept`.
pub(crate) fn run(args: &RunArgs, swept: &Swept, output: Output) -> Result<(), Failure> {
    let spec = args.asked()?;
    let run = with_arrivals(spec.clone(), swept.axis.key());
    let plan = SweepPlan { run, vary: vec![swept.axis.clone()], ..SweepPlan::default() };
    carry_out(args, &spec, plan, output)
}

/// Searches for the highest rate of arrivals that keeps `target`.
pub(crate) fn search(args: &RunArgs, target: &Requirement, output: Output) -> Result<(), Failure> {
    let spec = args.asked()?;
    if let Some(setting) = spec.set.iter().find(|one| one.trim().starts_with(ARRIVALS)) {
        return Err(Failure::usage(format!(
            "`{setting}` cannot be used with `--latency-target`, which decides how requests arrive"
        ))
        .with_help("leave one of the two out"));
    }
    let rates = format!("{RATE}={RATES}").parse().map_err(Failure::usage)?;
    let plan = SweepPlan {
        run: with_arrivals(spec.clone(), RATE),
        vary: vec![rates],
        sampling: Sampling::Bisection,
        require: vec![target.clone()],
        ..SweepPlan::default()
    };
    carry_out(args, &spec, plan, output)
}

fn carry_out(
    args: &RunArgs,
    spec: &RunSpec,
    plan: SweepPlan,
    output: Output,
) -> Result<(), Failure> {
    let replay = args.replay(&spec.with_names(spec.target()));
    let keep = spec.keep;
    let objectives = OBJECTIVES.iter().filter_map(|name| name.parse::<Objective>().ok());
    let plan = SweepPlan { objectives: objectives.collect(), ..plan };
    let prepared = task::prepare(&Task::Sweep(Box::new(plan.clone())))?;
    // Made before the runs: a user without a place for results should read that at once.
    let folder = args.results.create(keep, || {
        let load = format!("{}-sweep", plan.run.load(plan.run.target()));
        RunDirectory::default_name(plan.run.target(), &load, Some(plan.run.seed), SystemTime::now())
    })?;
    let shown = Shown { top: 0, csv: args.csv, replay: Some(replay), is_file: false, is_run: true };
    conclude(prepared, folder, &plan, &shown, output)
}

/// A rate makes an open loop of the load, as `--rate` does; what `--set` says about arrivals goes over it.
fn with_arrivals(mut spec: RunSpec, key: &str) -> RunSpec {
    if key == RATE {
        spec.set.insert(0, "workload.arrivals.kind=poisson".to_owned());
    }
    spec
}
