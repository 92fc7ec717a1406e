//! `ssdyno run --sweep KEY=VALUES`: one load at each value of a number.

use std::time::SystemTime;

use ssdyno_report::RunDirectory;
use ssdyno_session::{Failure, RunSpec};
use ssdyno_sweep::{Objective, RATE, SweepPlan};
use ssdyno_task::Task;

use crate::commands::run::RunArgs;
use crate::commands::sweep::{Shown, conclude};
use crate::output::Output;
use crate::swept::Swept;
use crate::task;

/// What designs of the curve are compared by in the table.
const OBJECTIVES: [&str; 2] = ["iops", "p99"];

/// Runs the load of `args` at each value of `swept`.
pub(crate) fn run(args: &RunArgs, swept: &Swept, output: Output) -> Result<(), Failure> {
    let spec = args.asked()?;
    let replay = args.replay(&spec.with_names(spec.target()));
    let keep = spec.keep;
    let objectives = OBJECTIVES.iter().filter_map(|name| name.parse::<Objective>().ok());
    let plan = SweepPlan {
        run: with_arrivals(spec, swept.axis.key()),
        vary: vec![swept.axis.clone()],
        objectives: objectives.collect(),
        ..SweepPlan::default()
    };
    let prepared = task::prepare(&Task::Sweep(Box::new(plan.clone())))?;
    // Made before the runs: a user without a place for results should read that at once.
    let folder = args.results.create(keep, || {
        let load = format!("{}-sweep", plan.run.load(plan.run.target()));
        RunDirectory::default_name(plan.run.target(), &load, Some(plan.run.seed), SystemTime::now())
    })?;
    let shown = Shown { top: 0, csv: args.csv, replay: Some(replay) };
    conclude(prepared, folder, &plan, &shown, output)
}

/// A rate makes an open loop of the load, as `--rate` does; what `--set` says about arrivals goes over it.
fn with_arrivals(mut spec: RunSpec, key: &str) -> RunSpec {
    if key == RATE {
        spec.set.insert(0, "workload.arrivals.kind=poisson".to_owned());
    }
    spec
}
