//! Runs side by side as a task: of stored results, and of targets that are run for it.

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ssdyno_block::counted;
use ssdyno_figures::{Comparison, Keep, KeepGoing, RepeatedRuns, RunResult};
use ssdyno_report::{
    AskedKeys, HeadlineFigure, compare_asked, compare_runs, comparison_csv, comparison_html,
    headline_figures, repeated_figures,
};
use ssdyno_session::{
    Failure, FailureKind, Measured, Prepared, Prompt, RunList, RunListProgress, RunPhase, RunSpec,
    files, named, resolve,
};

use crate::repeat::Rounds;
use crate::runner::{PreparedTask, TaskControl, TaskOutcome, TaskResult};

/// Results and targets to compare.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CompareTask {
    /// Two or more sides: directories of runs, `result.json` files, or targets, which the task runs. The first side is
    /// the baseline. Simulated targets run at the same time, real targets one after the other.
    pub sides: Vec<String>,
    /// How targets are run; `real` and `write` apply to real targets only.
    pub run: RunSpec,
    /// A spec for each side, in the order of the sides, instead of `run`; `null` or no entry:
    /// `run`. A spec without a target loads the side's target. Differences between the specs are
    /// intended and do not prevent a comparison.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub specs: Vec<Option<RunSpec>>,
    /// Number of runs of each side, in turn: 2 or more. The figures are then means over the runs, with intervals from
    /// the spread between the runs. Run *i* has the seed plus *i*. With it, a single side is enough.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runs: Option<u32>,
}

/// Result of `compare`.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct CompareResult {
    /// Name of each run, in the order of the sides.
    #[serde(default)]
    pub names: Vec<String>,
    /// The results, in the order of the sides; for sides that ran several times, the first run.
    pub results: Vec<RunResult>,
    /// Comparisons of each further result with the first result.
    pub comparisons: Vec<Comparison>,
    /// The runs of each side, in the order of the sides, if sides ran several times.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repeated: Vec<RepeatedRuns>,
}

/// Runs of a side at most: all of them are prepared before the first begins.
const RUNS_MOST: u32 = 1000;

/// What stored runs lack beside runs that `compare` makes itself.
const NOT_IN_TURN: &str = "the sides ran one after the other, not in turn: a change of the machine between them looks \
    like a difference of the sides";

/// A side before it has a result.
enum Side {
    Stored(Box<RunResult>),
    ToRun(Box<Prepared>),
}

impl CompareTask {
    /// Whether `side` is a result, and not a target.
    pub fn is_stored(side: &str) -> bool {
        let path = Path::new(side);
        // A directory or a file of JSON is a result, whatever is in it. Looking inside would make the
        // meaning of a side depend on a file that may be damaged.
        path.is_dir() || path.extension().is_some_and(|e| e.eq_ignore_ascii_case("json"))
    }

    /// Whether `side` is a real target.
    pub fn is_real(side: &str) -> bool {
        !CompareTask::is_stored(side) && named::is_real(side)
    }

    /// Whether side `at` loads a real target.
    pub fn loads_real(&self, at: usize) -> bool {
        match (self.specs.get(at), self.sides.get(at)) {
            (Some(Some(spec)), side) => {
                let target = spec.target.as_ref().or(side);
                // A spec with a device of its own simulates it. The name of the side is then only a
                // name, also if it looks like a path below `/dev`.
                spec.contents.device.is_none()
                    && target.is_some_and(|target| named::is_real(target))
            }
            (_, side) => side.is_some_and(|side| CompareTask::is_real(side)),
        }
    }

    /// Whether side `at` is a result, and not run.
    fn reads(&self, at: usize) -> bool {
        !matches!(self.specs.get(at), Some(Some(_))) && CompareTask::is_stored(&self.sides[at])
    }

    pub(crate) fn prepare(&self, prompt: &mut dyn Prompt) -> Result<PreparedTask, Failure> {
        self.check()?;
        let to_run = (0..self.sides.len()).filter(|at| !self.reads(*at));
        // All targets of a comparison get the same default load, because other loads could not be compared. A
        // stored result is not run, so it has no say in that.
        let run = self.run.clone().for_all(to_run.map(|at| &self.sides[at]));
        let specs = (0..self.sides.len()).map(|at| (!self.reads(at)).then(|| self.spec(at, &run)));
        let specs: Vec<Option<RunSpec>> = specs.collect();
        // Consent is shown for each real target that may be written. Simulated sides have
        // no `write`, so they are not in this list.
        let writes_to = specs.iter().flatten().filter(|spec| spec.write.allowed);
        let writes_to = writes_to.map(|spec| spec.target().to_owned()).collect();
        let names = names(&self.sides);
        let asked = (1..self.sides.len()).map(|at| self.asked(&specs, at, &run)).collect();
        if let Some(runs) = self.runs {
            // Repeated sides have intervals from the spread between runs. They take another path,
            // because a stored result cannot be run again.
            let specs: Vec<RunSpec> = specs.into_iter().flatten().collect();
            return repeated(&specs, names, asked, runs, writes_to, prompt);
        }
        if let Some(repeated) = self.stored_repetitions() {
            let name = counted(repeated.len() as u64, "side", "sides") + " of stored runs";
            let carry_out = move |_: &TaskControl| {
                let is_real = |run: &RunResult| run.simulated_requests_per_wall_second.is_none();
                let real = repeated.iter().flat_map(|side| &side.runs).any(is_real);
                let mut result = CompareResult::of_repeated(names, repeated, &asked);
                let comparisons = result.comparisons.iter_mut().filter(|_| real);
                for comparison in comparisons {
                    comparison.notes.push(NOT_IN_TURN.to_owned());
                }
                let result = TaskResult::Compare(Box::new(result));
                Ok(TaskOutcome { result, failure: None })
            };
            return Ok(PreparedTask::new(name, writes_to, carry_out));
        }
        let sides = self.sides.iter().zip(specs).map(|(side, spec)| match spec {
            None => read(side),
            Some(spec) => resolve(&spec, prompt).map(|prepared| Side::ToRun(Box::new(prepared))),
        });
        let sides: Vec<Side> = sides.collect::<Result<_, _>>()?;
        // All sides are resolved before the first one runs. A mistake in the last side
        // must not show after an hour of the first.
        let name = counted(sides.len() as u64, "run", "runs") + " side by side";
        let carry_out = move |control: &TaskControl| {
            let (results, failure) = run_all(sides, control)?;
            let result = CompareResult::of(names, results, &asked);
            Ok(TaskOutcome { result: TaskResult::Compare(Box::new(result)), failure })
        };
        Ok(PreparedTask::new(name, writes_to, carry_out))
    }

    /// The sides, if each is the result of several runs (`run --runs`). Beside a single run such a side has no interval
    /// that could be compared, so the usual reading refuses it and names one of its runs.
    fn stored_repetitions(&self) -> Option<Vec<RepeatedRuns>> {
        let read = |at: usize| {
            let path = Path::new(&self.sides[at]);
            let file = if path.is_dir() { path.join("result.json") } else { path.to_owned() };
            let text =
                files::read_text(&file.display().to_string()).ok().filter(|_| self.reads(at))?;
            let repeated: RepeatedRuns = serde_json::from_str(&text).ok()?;
            (repeated.runs.len() > 1).then_some(repeated)
        };
        (0..self.sides.len()).map(read).collect()
    }

    fn check(&self) -> Result<(), Failure> {
        let sides = self.sides.len();
        let is_page = |side: &&String| {
            Path::new(side).extension().is_some_and(|end| end.eq_ignore_ascii_case("html"))
        };
        if let Some(page) = self.sides.iter().find(is_page) {
            // As a target, a page would be measured as a file.
            return Err(Failure::usage(format!("{page} is a page, not a result"))
                .with_help("name its directory, or the result.json in it")
                .with_key("sides"));
        }
        if sides < 2 && (sides == 0 || self.runs.is_none()) {
            return Err(Failure::usage("nothing to compare")
                .with_help("name at least two results or targets")
                .with_key("sides"));
        }
        if !self.specs.is_empty() && self.specs.len() != sides {
            return Err(Failure::usage("the number of `specs` differs from the number of `sides`")
                .with_help("give a spec or null for each side")
                .with_key("specs"));
        }
        if self.runs.is_some_and(|runs| runs < 2) {
            return Err(Failure::usage("one run has no spread: `runs` must be 2 or more")
                .with_help("use 2 or more, such as `runs=5`, or leave it out")
                .with_key("runs"));
        }
        // All runs are prepared before the first begins, and each takes memory. The
        // limit turns a typing error into a message.
        if self.runs.is_some_and(|runs| runs > RUNS_MOST) {
            return Err(Failure::usage(format!("`runs` must be {RUNS_MOST} at most"))
                .with_help("use fewer runs, and make them longer if necessary")
                .with_key("runs"));
        }
        if let (Some(at), Some(_)) = ((0..sides).find(|at| self.reads(*at)), self.runs) {
            let what = format!("{} is a result, which cannot be run again", self.sides[at]);
            return Err(Failure::usage(what)
                .with_help("name its target, or leave `runs` out to compare one run of each")
                .with_key("runs"));
        }
        Ok(())
    }

    /// In what side `at` differs from the first because the user said so. A result was there before: what is run beside it
    /// differs as asked for in what its own options say over `run`.
    fn asked(&self, specs: &[Option<RunSpec>], at: usize, run: &RunSpec) -> AskedKeys {
        let own = |at: usize| self.specs.get(at).is_some_and(Option::is_some);
        let options = |at: usize| self.specs.get(at)?.as_ref().filter(|own| own.target.is_none());
        // A comparison refuses loads that differ. The differences that the user requested are
        // collected here, so that only accidental differences are refused.
        match (&specs[0], &specs[at]) {
            (Some(first), Some(second)) if own(0) || own(at) => between(first, second),
            // A stored result has no spec at hand. The options that the other side has of its own
            // are then the ones that the user asked for.
            (Some(_), None) => options(0).map_or_else(AskedKeys::default, |own| between(own, run)),
            (None, Some(_)) => options(at).map_or_else(AskedKeys::default, |own| between(run, own)),
            _ => AskedKeys::default(),
        }
    }

    /// The run of side `at` if only `run` is given.
    fn spec(&self, at: usize, run: &RunSpec) -> RunSpec {
        let side = &self.sides[at];
        // Rows in memory make percentiles exact. Nothing is written, because a
        // comparison has no directory for each side.
        if let Some(Some(spec)) = self.specs.get(at) {
            let target = spec.target.clone().or_else(|| Some(side.clone()));
            return RunSpec { target, keep: Keep::None, ..spec.clone() };
        }
        let mut spec = RunSpec { target: Some(side.clone()), keep: Keep::None, ..run.clone() };
        // A simulated side has no real target. Keys for real targets would make
        // its spec differ from a run of it alone.
        if !named::is_real(side) {
            (spec.real, spec.write) = Default::default();
        }
        spec
    }
}

/// In what two specs differ beside their targets, which are sides and no options.
fn between(first: &RunSpec, second: &RunSpec) -> AskedKeys {
    let [first, second] = [first, second].map(|spec| {
        // A structure of named keys always has a JSON form. Targets are sides,
        // so they never count as a difference.
        serde_json::to_value(RunSpec { target: None, ..spec.clone() }).unwrap_or_default()
    });
    AskedKeys::between(&first, &second)
}

/// The task that runs each of `specs` as often as `runs` says, in turn.
fn repeated(
    specs: &[RunSpec],
    names: Vec<String>,
    asked: Vec<AskedKeys>,
    runs: u32,
    writes_to: Vec<String>,
    prompt: &mut dyn Prompt,
) -> Result<PreparedTask, Failure> {
    let rounds = Rounds::prepare(specs, runs, prompt)?;
    let name = format!("{} of {runs} runs", counted(specs.len() as u64, "side", "sides"));
    let carry_out = move |control: &TaskControl| {
        let (repeated, failure) =
            rounds.carry_out(&names, &mut |list, progress| report(list, progress, control))?;
        let result = CompareResult::of_repeated(names, repeated, &asked);
        Ok(TaskOutcome { result: TaskResult::Compare(Box::new(result)), failure })
    };
    Ok(PreparedTask::new(name, writes_to, carry_out))
}

impl CompareResult {
    /// Holds the other `results` against the first, from which each was asked to differ in `asked`; runs are called `names`.
    fn of(names: Vec<String>, results: Vec<RunResult>, asked: &[AskedKeys]) -> CompareResult {
        let others = results.iter().skip(1).zip(asked);
        let comparisons = others.map(|(other, asked)| compare_asked(&results[0], other, asked));
        let comparisons = called(&names, comparisons.collect());
        CompareResult { names, results, comparisons, repeated: Vec::new() }
    }

    /// Holds the other sides against the first, run by run.
    fn of_repeated(
        names: Vec<String>,
        repeated: Vec<RepeatedRuns>,
        asked: &[AskedKeys],
    ) -> CompareResult {
        let others = repeated.iter().skip(1).zip(asked);
        let against = |(other, asked): (&RepeatedRuns, &AskedKeys)| {
            compare_runs(&repeated[0].runs, &other.runs, asked)
        };
        let comparisons = others.filter_map(against);
        let mut comparisons = called(&names, comparisons.collect());
        for comparison in &mut comparisons {
            let ran = repeated.iter().map(|side| side.runs.len()).min().unwrap_or(0);
            let asked = repeated.iter().map(|side| side.asked).max().unwrap_or(0);
            // The first side stands for all: a round counts only if all of its sides ran to the
            // end, so all sides have equally many runs.
            if ran < asked as usize {
                comparison.notes.push(format!("only {ran} of {asked} rounds ran to the end"));
            }
        }
        let results = repeated.iter().filter_map(|side| side.runs.first().cloned()).collect();
        CompareResult { names, results, comparisons, repeated }
    }

    /// The figures of each side, in the order of the sides: those of its run, or over its runs.
    pub fn figures(&self) -> Vec<Vec<HeadlineFigure>> {
        match self.repeated.is_empty() {
            true => self.results.iter().map(headline_figures).collect(),
            false => self.repeated.iter().map(repeated_figures).collect(),
        }
    }

    /// Its sides and runs as CSV.
    pub fn csv(&self) -> String {
        comparison_csv(&self.names, &self.results, &self.comparisons, &self.repeated)
    }

    /// The page of it.
    pub fn html(&self) -> String {
        comparison_html(&self.results, &self.comparisons, &self.repeated)
    }
}

/// `comparisons`, of which both sides have the names of their runs.
fn called(names: &[String], comparisons: Vec<Comparison>) -> Vec<Comparison> {
    let named = |(comparison, name): (Comparison, &String)| Comparison {
        first: names[0].clone(),
        second: name.clone(),
        ..comparison
    };
    comparisons.into_iter().zip(names.iter().skip(1)).map(named).collect()
}

/// What runs are called: directories by their last part, targets as they were given; with a number where two would be called
/// the same.
fn names(sides: &[String]) -> Vec<String> {
    let last = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
    let short = |side: &String| {
        let path = Path::new(side);
        let file = path.file_name().is_some_and(|name| name == "result.json");
        // `result.json` is the same for all runs. The directory
        // has the name that the user gave.
        let path = if file { path.parent().unwrap_or(path) } else { path };
        if !CompareTask::is_stored(side) {
            return side.clone();
        }
        let name = last(path).unwrap_or_else(|| side.clone());
        // `run-1` says little without the name of what was repeated, so the name
        // of the directory above comes before it.
        let is_repetition = name.strip_prefix("run-").is_some_and(|n| n.parse::<u32>().is_ok());
        match path.parent().and_then(last).filter(|_| is_repetition) {
            Some(whole) => format!("{whole}/{name}"),
            None => name,
        }
    };
    // Two sides with the same name could not be told apart in the table. Both get their
    // number, because neither is more the original.
    let names: Vec<String> = sides.iter().map(short).collect();
    let is_twice = |name: &String| names.iter().filter(|other| *other == name).count() > 1;
    let numbered = |(at, name): (usize, &String)| match is_twice(name) {
        true => format!("{name} ({})", at + 1),
        false => name.clone(),
    };
    names.iter().enumerate().map(numbered).collect()
}

fn read(side: &str) -> Result<Side, Failure> {
    let path = Path::new(side);
    if !path.is_dir() {
        return stored(side);
    }
    let file = path.join("result.json");
    if !file.is_file() {
        return Err(Failure::usage(format!("{side} holds no result.json"))
            .with_help("name the directory of one run, such as results/NAME"));
    }
    stored(&file.display().to_string())
}

fn stored(file: &str) -> Result<Side, Failure> {
    // The user may name the result of a repeated run, which has no figures of its
    // own. The help then names its first run.
    let text = files::read_text(file)?;
    let first_run = Path::new(file).with_file_name("run-1");
    let of_several = first_run.join("result.json").is_file();
    let result = serde_json::from_str(&text).map_err(|error| {
        let why = match text.trim_ascii().is_empty() {
            true => format!("{file} is empty"),
            false => {
                let (line, column) = (error.line(), error.column().max(1));
                let why = error.to_string();
                // The place stands once, in front, as compilers write it. The parser
                // would repeat it at the end of its message.
                let why = why.split(" at line ").next().unwrap_or_default();
                format!("{file}:{line}:{column}: not a result: {why}")
            }
        };
        let help = match of_several {
            true => format!("name one of its runs, such as {}", first_run.display()),
            false => "name a result.json that `ssdyno run` wrote".to_owned(),
        };
        Failure::usage(why).with_help(help)
    })?;
    Ok(Side::Stored(Box::new(result)))
}

/// Runs what has to be run, and gives the results in the order of the sides, and what was wrong with a run. Once a side could
/// not start the others are given up: with what is missing nothing can be compared.
fn run_all(
    sides: Vec<Side>,
    control: &TaskControl,
) -> Result<(Vec<RunResult>, Option<Failure>), Failure> {
    // Stored results need no run. Their places are kept, so that the results
    // come back in the order of the sides.
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
    // Short runs may be over before a front end looks for the first time. This
    // report gives it a final state in any case.
    control.report(|snapshot| {
        snapshot.done = stored.len() as u64;
        (snapshot.of, snapshot.step) = (snapshot.done, "comparing".to_owned());
    });
    let interrupted = || {
        Failure::new(FailureKind::Interrupted, "interrupted before all sides had run")
            .with_help("nothing was compared, so there is no result")
    };
    let mut failure = None;
    let mut results = Vec::new();
    for outcome in stored {
        // A comparison with a missing side would have to invent it. An interrupt
        // therefore gives no result, unlike in other tasks.
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
    // The slowest run decides when the task is over, so its progress is shown. A
    // mean would stop near the end and wait there.
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
