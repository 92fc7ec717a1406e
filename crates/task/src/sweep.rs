//! A sweep over designs as a task.

use ssdyno_figures::KeepGoing;
use ssdyno_session::{Failure, Prompt};
use ssdyno_sweep::{Sampling, Sweep, SweepPlan, SweepProgress, SweepResult, Workers};

use crate::runner::{PreparedTask, TaskControl, TaskOutcome, TaskResult};

/// The plan as a task.
pub(crate) fn prepare(plan: &SweepPlan, prompt: &mut dyn Prompt) -> Result<PreparedTask, Failure> {
    plan.prepare(prompt).map(PreparedTask::from)
}

/// The end of a sweep, and whether it is a success.
type Ended = Result<(SweepResult, Option<Failure>), Failure>;

impl From<Sweep> for PreparedTask {
    /// A sweep that can start, or go on after it was cut off.
    fn from(sweep: Sweep) -> PreparedTask {
        prepared(sweep, Sweep::execute)
    }
}

impl PreparedTask {
    /// The sweep, whose designs `workers` run. `start` is called once, with the numbers of the designs that have no row.
    pub fn spread<W: Workers>(
        sweep: Sweep,
        start: impl FnOnce(&Sweep, &[u64]) -> Result<W, Failure> + Send + 'static,
    ) -> PreparedTask {
        prepared(sweep, |sweep, watch| sweep.gather(start, watch))
    }
}

fn prepared(
    sweep: Sweep,
    execute: impl FnOnce(Sweep, &mut dyn FnMut(SweepProgress) -> KeepGoing) -> Ended + Send + 'static,
) -> PreparedTask {
    let run = &sweep.plan().run;
    // The sweep varies no target if writing is allowed (`SweepPlan::prepare` refuses
    // that), so one name is enough for the consent.
    let writes_to = match sweep.is_real() && run.write.allowed {
        true => run.target.iter().cloned().collect(),
        false => Vec::new(),
    };
    let name = match sweep.is_search() {
        true if sweep.plan().sampling == Sampling::Bisection => "bisection of the rate".to_owned(),
        true => format!("search, up to {} designs", sweep.designs()),
        false => format!("{} designs", sweep.designs()),
    };
    let carry_out = move |control: &TaskControl| carry_out(sweep, control, execute);
    PreparedTask::new(name, writes_to, carry_out)
}

fn carry_out(
    mut sweep: Sweep,
    control: &TaskControl,
    execute: impl FnOnce(Sweep, &mut dyn FnMut(SweepProgress) -> KeepGoing) -> Ended,
) -> Result<TaskOutcome, Failure> {
    // The journal is opened before the first design runs. A folder that cannot
    // be written must not show after hours.
    if let Some(folder) = control.folder() {
        sweep.keep_rows_in(folder)?;
    }
    let watch = &mut |progress: SweepProgress| {
        control.report(|snapshot| {
            (snapshot.done, snapshot.of) = (progress.done, progress.of);
            snapshot.step = step(progress);
        })
    };
    let (result, failure) = execute(sweep, watch)?;
    // A few short designs may be over before a front end looks for the first time. This
    // report gives it a final state in any case.
    control.report(|snapshot| {
        (snapshot.done, snapshot.of) = (result.rows.len() as u64, result.designs);
        snapshot.step = format!("{} of {} designs", snapshot.done, snapshot.of);
    });
    Ok(TaskOutcome { result: TaskResult::Sweep(Box::new(result)), failure })
}

fn step(progress: SweepProgress) -> String {
    let mut step = format!("{} of {} designs", progress.done, progress.of);
    if progress.impossible > 0 {
        step += &format!(", {} impossible", progress.impossible);
    }
    if let Some(left) = progress.left_s {
        step += &format!(", {} left", ssdyno_figures::seconds(left));
    }
    step
}
