//! Runs side by side as a task: of stored results, and of targets that are run for it.

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ssdyno_block::counted;
use ssdyno_figures::{Comparison, Keep, KeepGoing, RunResult};
use ssdyno_session::{
    Failure, FailureKind, Measured, Prepared, Prompt, RunList, RunListProgress, RunPhase, RunSpec,
    files, named, resolve,
};

use crate::runner::{PreparedTask, TaskControl, TaskOutcome, TaskResult};

/// Results and targets that are held against each other.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CompareTask {
    /// Directories of runs, files `result.json`, or targets, which are run; two or more. The others are compared with the
    /// first. Simulated targets run side by side, real ones one after the other.
    pub sides: Vec<String>,
    /// How targets are run; `real` and `write` are for real ones alone.
    pub run: RunSpec,
}

/// What `compare` gives.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct CompareResult {
    /// What each run is called, in the order of the sides.
    #[serde(default)]
    pub names: Vec<String>,
    /// The results, in the order of the sides.
    pub results: Vec<RunResult>,
    /// Each result but the first against the first.
    pub comparisons: Vec<Comparison>,
}

/// A side before it has a result.
enum Side {
    Stored(Box<RunResult>),
    ToRun(Box<Prepared>),
}

impl CompareTask {
    /// Whether `side` is a result, and not a target.
    pub fn is_stored(side: &str) -> bool {
        let path = Path::new(side);
        path.is_dir() || path.extension().is_some_and(|e| e.eq_ignore_ascii_case("json"))
    }

    /// Whether `side` is a real target.
    pub fn is_real(side: &str) -> bool {
        !CompareTask::is_stored(side) && named::is_real(side)
    }

    pub(crate) fn prepare(&self, prompt: &mut dyn Prompt) -> Result<PreparedTask, Failure> {
        if self.sides.len() < 2 {
            return Err(Failure::usage("nothing to compare")
                .with_help("name two results or targets, or more")
                .with_key("sides"));
        }
        let run = self.run.clone();
        let run = run.for_all(self.sides.iter().filter(|side| !CompareTask::is_stored(side)));
        let sides: Vec<Side> =
            self.sides.iter().map(|side| read(side, &run, prompt)).collect::<Result<_, _>>()?;
        let writes_to = match self.run.write.allowed {
            true => self.sides.iter().filter(|side| CompareTask::is_real(side)).cloned().collect(),
            false => Vec::new(),
        };
        let name = counted(sides.len() as u64, "run", "runs") + " side by side";
        let names = names(&self.sides);
        let carry_out = move |control: &TaskControl| {
            let (results, failure) = run_all(sides, control)?;
            let result = CompareResult::of(names, results);
            Ok(TaskOutcome { result: TaskResult::Compare(Box::new(result)), failure })
        };
        Ok(PreparedTask::new(name, writes_to, carry_out))
    }
}

impl CompareResult {
    /// Holds the other `results` against the first; runs are called `names`.
    fn of(names: Vec<String>, results: Vec<RunResult>) -> CompareResult {
        let Some((first, others)) = results.split_first() else { return CompareResult::default() };
        let named = |(other, name): (&RunResult, &String)| Comparison {
            first: names[0].clone(),
            second: name.clone(),
            ..ssdyno_report::compare(first, other)
        };
        let comparisons = others.iter().zip(&names[1..]).map(named).collect();
        CompareResult { names, results, comparisons }
    }
}

/// What runs are called: directories by their last part, targets as they were given; with a number where two would be called
/// the same.
fn names(sides: &[String]) -> Vec<String> {
    let short = |side: &String| {
        let path = Path::new(side);
        let file = path.file_name().is_some_and(|name| name == "result.json");
        let path = if file { path.parent().unwrap_or(path) } else { path };
        match CompareTask::is_stored(side) {
            true => {
                path.file_name().map_or_else(|| side.clone(), |n| n.to_string_lossy().into_owned())
            }
            false => side.clone(),
        }
    };
    let names: Vec<String> = sides.iter().map(short).collect();
    let is_twice = |name: &String| names.iter().filter(|other| *other == name).count() > 1;
    let numbered = |(at, name): (usize, &String)| match is_twice(name) {
        true => format!("{name} ({})", at + 1),
        false => name.clone(),
    };
    names.iter().enumerate().map(numbered).collect()
}

fn read(side: &str, run: &RunSpec, prompt: &mut dyn Prompt) -> Result<Side, Failure> {
    let path = Path::new(side);
    if path.is_dir() {
        let file = path.join("result.json");
        if !file.is_file() {
            return Err(Failure::usage(format!("{side} holds no result.json"))
                .with_help("name the directory of one run, such as results/NAME"));
        }
        return stored(&file.display().to_string());
    }
    if CompareTask::is_stored(side) {
        return stored(side);
    }
    // Rows make percentiles exact; files are not needed.
    let mut spec = RunSpec { target: Some(side.to_owned()), keep: Keep::None, ..run.clone() };
    if !named::is_real(side) {
        (spec.real, spec.write) = Default::default();
    }
    resolve(&spec, prompt).map(|prepared| Side::ToRun(Box::new(prepared)))
}

fn stored(file: &str) -> Result<Side, Failure> {
    let text = files::read_text(file)?;
    let result = serde_json::from_str(&text).map_err(|error| {
        let why = match text.trim_ascii().is_empty() {
            true => format!("{file} is empty"),
            false => {
                let (line, column) = (error.line(), error.column().max(1));
                let why = error.to_string();
                // The place is said once, in front.
                let why = why.split(" at line ").next().unwrap_or_default();
                format!("{file}:{line}:{column}: not a result: {why}")
            }
        };
        Failure::usage(why).with_help("name a result.json that `ssdyno run` wrote")
    })?;
    Ok(Side::Stored(Box::new(result)))
}

/// Runs what has to be run, and gives the results in the order of the sides, and what was wrong with a run. Once a side could
/// not start the others are given up: with what is missing nothing can be compared.
fn run_all(
    sides: Vec<Side>,
    control: &TaskControl,
) -> Result<(Vec<RunResult>, Option<Failure>), Failure> {
    let (mut stored, mut runs) = (Vec::new(), Vec::new());
    for side in sides {
        match side {
            Side::Stored(result) => stored.push(Some((*result, None))),
            Side::ToRun(prepared) => {
                stored.push(None);
                runs.push(*prepared);
            }
        }
    }
    let list = RunList::new(runs);
    let watch = &mut |progress: &RunListProgress<'_>| report(&list, progress, control);
    let outcome = |_, ended: Result<Measured, Failure>| ended.map(|all| (all.result, all.failure));
    let mut measured = list.execute(outcome, watch)?.into_iter();
    // Runs may be over before anybody looks.
    control.report(|snapshot| {
        snapshot.done = stored.len() as u64;
        (snapshot.of, snapshot.step) = (snapshot.done, "comparing".to_owned());
    });
    let interrupted = || {
        Failure::new(FailureKind::Interrupted, "interrupted before all sides had run")
            .with_help("nothing was compared, and nothing is kept")
    };
    let mut failure = None;
    let mut results = Vec::new();
    for outcome in stored {
        let outcome = outcome.or_else(|| measured.next().flatten());
        let (result, wrong) = outcome.ok_or_else(interrupted)?;
        failure = failure.or(wrong);
        results.push(result);
    }
    Ok((results, failure))
}

/// Shows the run that has furthest to go.
fn report(list: &RunList, progress: &RunListProgress<'_>, control: &TaskControl) -> KeepGoing {
    let runs = list.runs().iter().zip(progress.runs());
    let going = runs.filter(|(_, snapshot)| snapshot.phase != RunPhase::Ended);
    let share = |(run, snapshot): &(&Prepared, _)| {
        let snapshot: &ssdyno_session::RunSnapshot = snapshot;
        run.goal().share(&snapshot.progress).unwrap_or(0.0)
    };
    let slowest = going.min_by(|a, b| share(a).total_cmp(&share(b)));
    let ended = progress.ended() as u64;
    control.report(|snapshot| {
        (snapshot.done, snapshot.of) = (ended, list.runs().len() as u64);
        if let Some((run, one)) = slowest {
            snapshot.step = format!("{} of {} runs, {}", ended, snapshot.of, run.name());
            snapshot.progress = one.progress;
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_have_names() {
        let place = tempfile::tempdir().unwrap();
        let path = |name: &str| place.path().join(name).display().to_string();
        std::fs::create_dir(place.path().join("base")).unwrap();
        let sides = [
            path("base"),
            path("other/result.json"),
            "sim:p3600".to_owned(),
            "sim:p3600".to_owned(),
        ];
        assert_eq!(names(&sides), ["base", "other", "sim:p3600 (3)", "sim:p3600 (4)"]);
    }
}
