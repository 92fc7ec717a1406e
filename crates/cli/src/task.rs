//! A task of the command line: prepared, watched to its end, and its failures in the words of options.

use ssdyno_block::counted;
use ssdyno_figures::nanoseconds;
use ssdyno_session::{Failure, FailureKind, RunPhase, option_of};
use ssdyno_task::{PreparedTask, Task, TaskOutcome, TaskResult, TaskSnapshot};

use crate::consent::Terminal;
use crate::diagnose::exit_code;
use crate::output::Output;
use crate::progress::{CountMeter, POLL_EVERY, interrupted};

/// Keys of tasks that failures name, each of which has an option.
const KEYS: [&str; 15] = [
    "write.allowed",
    "active_range_percent",
    "journal",
    "resume",
    "method",
    "ops",
    "span",
    "set",
    "seed",
    "error",
    "points",
    "repeat",
    "sizes",
    "depth",
    "threshold",
];

/// Called with what was measured since the last call.
pub(crate) type TakePartial<'a> = dyn FnMut(TaskResult) -> Result<(), Failure> + 'a;

/// Prepares `task`; the person at the terminal is asked before anything may be written.
pub(crate) fn prepare(task: &Task) -> Result<PreparedTask, Failure> {
    task.prepare(&mut Terminal).map_err(with_options)
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
            let failure = with_options(failure);
            crate::report(&failure, output);
            std::process::exit(i32::from(exit_code(failure.kind)));
        }
        if snapshot.phase == RunPhase::Ended {
            break;
        }
        if interrupted() && !stopped {
            stopped = true;
            runner.stop();
        }
        // What was said about the end stays on the screen.
        if let (Some(meter), RunPhase::Loaded, false) = (&mut meter, snapshot.phase, stopped) {
            meter.update(snapshot.done, snapshot.of, message(&snapshot));
        }
        snapshot = runner.wait(snapshot.phase, POLL_EVERY);
    }
    if let Some(meter) = meter {
        meter.finish();
    }
    let outcome = runner.result().map_err(with_options)?;
    Ok(TaskOutcome { failure: outcome.failure.map(with_options), ..outcome })
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

/// The option of a key of a task.
fn option(key: &str) -> String {
    match key {
        "active_range_percent" => "--active-range".to_owned(),
        key => option_of(key),
    }
}

/// `failure` with options in place of the keys that its text names. What is wrong in a file or in the value of
/// an option keeps its words: keys in it are other keys.
pub(crate) fn with_options(mut failure: Failure) -> Failure {
    let in_file = failure.file.is_some() || failure.place.as_ref().is_some_and(|p| p.is_file);
    if in_file {
        return failure;
    }
    for key in KEYS {
        let (key, option) = (format!("`{key}`"), format!("`{}`", option(key)));
        if failure.place.is_none() {
            failure.message = failure.message.replace(&key, &option);
        }
        failure.help = failure.help.map(|help| help.replace(&key, &option));
    }
    failure
}

/// A result of another task than was asked for.
pub(crate) fn other_result() -> Failure {
    let message = "the result is of another task";
    Failure::new(FailureKind::Failed, message)
        .with_help("please report this with the command that did it")
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::args::Cli;

    #[test]
    fn keys_in_texts_become_options() {
        let failure = Failure::usage("`write.allowed` is false").with_help("use `resume`, `dmesg`");
        let shown = with_options(failure);
        assert_eq!(shown.message, "`--write` is false");
        assert_eq!(shown.help.as_deref(), Some("use `--resume`, `dmesg`"));
        let in_file = Failure::usage("there is no key `depth`").in_file("device.toml");
        assert_eq!(with_options(in_file.clone()), in_file);
        // Each is an option of a verb that starts a task.
        let command = Cli::command();
        let verbs = ["pts", "profile", "verify", "probe"];
        let verbs: Vec<_> = verbs.iter().filter_map(|verb| command.find_subcommand(verb)).collect();
        for key in KEYS {
            let option = option(key);
            let has = |verb: &&clap::Command| {
                verb.get_arguments().any(|known| known.get_long() == option.strip_prefix("--"))
            };
            assert!(verbs.iter().any(has), "{key}: {option}");
        }
    }
}
