//! A task of the command line: prepared, watched to its end, and its failures in the words of options.

use ssdyno_block::counted;
use ssdyno_figures::nanoseconds;
use ssdyno_session::{Failure, FailureKind, RunPhase};
use ssdyno_task::{PreparedTask, Task, TaskOutcome, TaskResult, TaskSnapshot};

use crate::consent::Terminal;
use crate::diagnose::exit_code;
use crate::options::in_failure_of_task;
use crate::output::{Output, report};
use crate::progress::{CountMeter, POLL_EVERY, interrupted};

/// Called with what was measured since the last call.
pub(crate) type TakePartial<'a> = dyn FnMut(TaskResult) -> Result<(), Failure> + 'a;

/// Prepares `task`; the person at the terminal is asked before anything may be written.
pub(crate) fn prepare(task: &Task) -> Result<PreparedTask, Failure> {
    task.prepare(&mut Terminal).map_err(in_failure_of_task)
}

/// Carries `prepared` out and shows with `meter` how far it is; an interrupt stops it. A target that hangs ends the program.
/// Without `take` the outcome has everything that was measured.
pub(crate) fn watch(
    prepared: PreparedTask,
    output: Output,
    mut meter: Option<CountMeter>,
    mut take: Option<&mut TakePartial<'_>>,
) -> Result<TaskOutcome, Failure> {
    let runner = prepared.start()?;
    let (mut snapshot, mut stopped) = (runner.poll(), false);
    loop {
        if let Some(take) = &mut take
            && let Some(partial) = runner.take_partial()
        {
            take(partial)?;
        }
        if let Some(failure) = runner.hung() {
            let failure = in_failure_of_task(failure);
            report(&failure, output);
            std::process::exit(i32::from(exit_code(failure.kind)));
        }
        if snapshot.phase == RunPhase::Ended {
            break;
        }
        if interrupted() && !stopped {
            stopped = true;
            runner.stop();
        }
        // The message about the end stays on the screen.
        if let (Some(meter), RunPhase::Loaded, false) = (&mut meter, snapshot.phase, stopped) {
            meter.update(snapshot.done, snapshot.of, message(&snapshot));
        }
        snapshot = runner.wait(snapshot.phase, POLL_EVERY);
    }
    if let Some(meter) = meter {
        meter.finish();
    }
    let outcome = runner.result().map_err(in_failure_of_task)?;
    Ok(TaskOutcome { failure: outcome.failure.map(in_failure_of_task), ..outcome })
}

fn message(snapshot: &TaskSnapshot) -> String {
    if let Some(faults) = snapshot.faults {
        return counted(faults, "fault", "faults");
    }
    let mut what = snapshot.step.clone();
    if snapshot.progress.completed > 0 {
        what += &format!(", mean latency {}", nanoseconds(snapshot.progress.latency_ns_mean));
    }
    what
}

/// A result of another task than was asked for.
pub(crate) fn other_result() -> Failure {
    let message = "the result is of another task";
    Failure::new(FailureKind::Failed, message)
        .with_help("please report this with the command that you ran")
}
