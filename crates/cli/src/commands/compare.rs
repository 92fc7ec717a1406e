//! `ssdyno compare`.

use std::time::SystemTime;

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;
use ssdyno_figures::Keep;
use ssdyno_report::{RunDirectory, SortBy, comparison_text, repeated_text, runs_table, runs_text};
use ssdyno_session::{ErrorBody, Failure, ResultFolder, RunSpec, given, refuse_real};
use ssdyno_sweep::Objective;
use ssdyno_task::{
    CompareResult, CompareTask, Gate, SlowerLimit, Task, TaskOutcome, TaskResult, not_slower,
};

use crate::diagnose;
use crate::gates::{self, JunitArgs};
use crate::options::{in_text, option_of};
use crate::output::{Output, end};
use crate::progress::CountMeter;
use crate::results::{HEADING, ResultsArgs, one_of, place};
use crate::side::SideArgs;
use crate::task;

#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// Results directories or result.json files; or targets and spec files, which are run first. The other
    /// sides are compared with the first.
    ///
    /// Simulated targets run at the same time. Real targets run one after the other and are read-only,
    /// unless --write is given.
    #[arg(required = true, num_args = 1.., value_name = "RESULT|TARGET|SPEC")]
    pub(crate) sides: Vec<String>,
    /// Print one table with a row for each run, sorted by this figure, the best run first: iops,
    /// throughput, mean, p50, p95, p99, p99.9, energy_per_request, energy_delay, wa, host_cpu.
    #[arg(long, value_name = "FIGURE", value_parser = Objective::of_run, help_heading = None::<&str>)]
    pub(crate) sort: Option<Objective>,
    /// Number of rows of the table to print [default: all].
    #[arg(long, value_name = "N", value_parser = crate::args::rows, help_heading = None::<&str>)]
    pub(crate) top: Option<usize>,
    /// Run each side N times (at least 2) in turn (A B A B), and judge by the spread between the runs. For
    /// targets only.
    ///
    /// Figures are means over the runs, with 95 % intervals; ratios have 99 % intervals. Run 1 uses the seed of --seed, run 2 the next
    /// seed; the seeds are the same on every side.
    #[arg(long, value_name = "N", help_heading = None::<&str>)]
    pub(crate) runs: Option<u32>,
    /// Options of `run` for the first of two targets only, such as --a '--queues single -d 16'.
    ///
    /// They take precedence over the common options. Give consent to write outside of --a.
    #[arg(long, value_name = "OPTIONS", allow_hyphen_values = true, help_heading = None::<&str>)]
    pub(crate) a: Option<String>,
    /// The same for the second target.
    #[arg(long, value_name = "OPTIONS", allow_hyphen_values = true, help_heading = None::<&str>)]
    pub(crate) b: Option<String>,
    /// Also print where the mean latency of each side goes: queue, firmware, bus, die, garbage collection. For
    /// simulated SSDs only.
    #[arg(long, help_heading = None::<&str>)]
    pub(crate) why: bool,
    #[command(flatten)]
    pub(crate) common: SideArgs,
    /// Data to keep: all (result.json and report.html of the comparison) or none.
    #[arg(long, value_name = "WHAT", default_value = "all", help_heading = HEADING,
          value_parser = one_of::<Keep>(&["all", "none"]))]
    pub(crate) keep: Keep,
    /// Write comparison.csv: a line for each side, and with --runs also for each run, with all figures,
    /// bounds and ratios.
    #[arg(long, help_heading = HEADING)]
    pub(crate) csv: bool,
    #[command(flatten)]
    pub(crate) results: ResultsArgs,
    /// Limit for how much slower the other sides may be than the first: 5% limits request rate and mean
    /// latency, p99=10% limits one figure. May be repeated.
    ///
    /// The exit code is 1 if a side is slower than the limit with 99 % confidence. It is 4 if the limit
    /// lies within the interval of the ratio, or if the runs are not comparable.
    #[arg(long, value_name = "[FIGURE=]PERCENT", help_heading = gates::HEADING)]
    pub(crate) fail_if_slower: Vec<SlowerLimit>,
    #[command(flatten)]
    pub(crate) junit: JunitArgs,
}

/// Output of `compare --json`.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "Compare")]
pub(crate) struct CompareOutput {
    #[serde(flatten)]
    result: CompareResult,
    /// Directory of the result files; `null` with `--keep none`, or if they could not be written.
    #[serde(default)]
    results_directory: Option<String>,
    /// The limits of `--fail-if-slower`, with the verdicts of the comparisons.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    bounds: Vec<Gate>,
    /// The error of a run, if a run failed.
    error: Option<ErrorBody>,
}

pub(crate) fn run(args: &CompareArgs, output: Output) -> Result<(), Failure> {
    check_options(args)?;
    args.junit.check(args.fail_if_slower.len(), "--fail-if-slower 5%")?;
    if args.csv && args.keep == Keep::None {
        return Err(Failure::usage("`--csv` writes a file, but `--keep none` keeps no files")
            .with_help("leave one of the two out"));
    }
    let (mut run, mut specs) = (args.common.spec(), specs(args)?);
    refuse_options(args, &run)?;
    [Some(&mut run)]
        .into_iter()
        .chain(specs.iter_mut().map(Option::as_mut))
        .flatten()
        .for_each(|spec| spec.why |= args.why);
    let compare = CompareTask { sides: args.sides.clone(), run, specs, runs: args.runs };
    let prepared = task::prepare(&Task::Compare(Box::new(compare)))?;
    // Created before the runs, so that a user without a place for results gets the error at once.
    let directory = directory(args)?;
    let outcome = task::watch(prepared, output, Some(CountMeter::new()), None);
    // Where nothing is compared nothing is left behind.
    let outcome = outcome.inspect_err(|_| directory.iter().for_each(ResultFolder::remove))?;
    let TaskOutcome { result: TaskResult::Compare(result), mut failure } = outcome else {
        return Err(task::other_result());
    };
    let text = text(args, &result);
    let page = result.html();
    let csv = args.csv.then(|| result.csv());
    let limits = &args.fail_if_slower;
    let bounds: Vec<Gate> =
        result.comparisons.iter().flat_map(|comparison| not_slower(limits, comparison)).collect();
    let broken = args.junit.conclude("compare", &bounds);
    let text = text + &gates::lines(&bounds);
    let (results_directory, error) = (None, None);
    let mut compared = CompareOutput { result: *result, results_directory, bounds, error };
    let write = |directory: ResultFolder| {
        let csv = csv.iter().map(|text| ("comparison.csv".to_owned(), text.as_str()));
        directory.write_texts(csv)?;
        directory.write_page(&page, &compared)
    };
    compared.results_directory = place(directory.map(write), &mut failure);
    failure = failure.or(broken);
    compared.error = failure.as_ref().map(diagnose::body);
    let place = compared.results_directory.clone();
    let place = place.map(|place| format!("\nResults  {place} (open report.html)\n"));
    let told = output.either(|| text + &place.unwrap_or_default(), || compared);
    end(told, failure)
}

/// Two sides figure by figure, more as one table; then the runs of each, where there were several.
fn text(args: &CompareArgs, result: &CompareResult) -> String {
    let mut text = sides_text(args, result);
    for side in &result.repeated {
        text.push('\n');
        text.push_str(&repeated_text(side));
    }
    in_text(&text)
}

fn sides_text(args: &CompareArgs, result: &CompareResult) -> String {
    if let ([comparison], None) = (result.comparisons.as_slice(), args.sort) {
        return comparison_text(comparison);
    }
    let sort = args.sort.map(|by| SortBy { figure: by.figure, greatest_first: by.more_is_better });
    let (names, results, figures) = (&result.names, &result.results, result.figures());
    let table = runs_table(names, results, &figures, &result.comparisons, sort);
    let mut text = runs_text(&table, args.top.unwrap_or(usize::MAX));
    for (name, comparison) in result.names.iter().skip(1).zip(&result.comparisons) {
        for warning in &comparison.warnings {
            text.push_str(&format!("Warning: {name}: {}\n", warning.line()));
        }
        for why in comparison.not_comparable.iter().chain(&comparison.notes) {
            text.push_str(&format!("Note: {name}: {why}\n"));
        }
    }
    text
}

fn directory(args: &CompareArgs) -> Result<Option<ResultFolder>, Failure> {
    args.results.create(args.keep, || {
        let sides: Vec<&str> =
            args.sides.iter().map(|side| side.trim_end_matches('/')).filter_map(last).collect();
        RunDirectory::default_name("compare", &sides.join("-vs-"), None, SystemTime::now())
    })
}

/// What a path ends with.
fn last(path: &str) -> Option<&str> {
    path.rsplit(['/', '\\']).next()
}

/// What is run for each side, where options say it for one of them, or its spec file.
fn specs(args: &CompareArgs) -> Result<Vec<Option<RunSpec>>, Failure> {
    let options = [("--a", &args.a), ("--b", &args.b)];
    // `num_args = 2..` would refuse two sides with an option between them: it is for each group of values.
    if let [only] = &args.sides[..] {
        let help = "name a second results directory, target or spec file";
        return Err(
            Failure::usage(format!("{only} has nothing to be compared with")).with_help(help)
        );
    }
    let first = options.iter().find(|(_, text)| text.is_some());
    if let (Some((first, text)), true) = (first, args.sides.len() != 2) {
        // The shell gives the value of an option that is not quoted as a third side.
        let option =
            text.as_deref().filter(|text| text.starts_with('-') && !text.contains([' ', '=']));
        let help = match option {
            Some(option) => {
                format!("quote an option together with its value: {first} '{option} VALUE'")
            }
            None => "for more than two targets, run each and compare the results".to_owned(),
        };
        return Err(
            Failure::usage(format!("`{first}` is for a comparison of two sides")).with_help(help)
        );
    }
    let own = |(at, side): (usize, &String)| {
        let own = options.get(at).and_then(|(option, text)| Some((*option, text.as_ref()?)));
        match (RunSpec::is_file(side), own) {
            (false, None) => Ok(None),
            (false, Some((option, text))) => of_options(args, side, option, text).map(Some),
            (true, None) => of_file(side).map(Some),
            (true, Some((option, _))) => Err(Failure::usage(format!(
                "{side} is a spec file, but `{option}` applies only to a target"
            ))
            .with_help(format!("leave `{option}` out, and write its keys into the file"))),
        }
    };
    let specs: Vec<Option<RunSpec>> =
        args.sides.iter().enumerate().map(own).collect::<Result<_, _>>()?;
    Ok(if specs.iter().all(Option::is_none) { Vec::new() } else { specs })
}

fn of_options(
    args: &CompareArgs,
    side: &str,
    option: &str,
    text: &str,
) -> Result<RunSpec, Failure> {
    if CompareTask::is_stored(side) {
        return Err(Failure::usage(format!(
            "{side} is a result, but `{option}` applies only to a \
                                           target"
        ))
        .with_help(format!("leave `{option}` out, or name the target of the result")));
    }
    let spec = args.common.with(option, text, CompareTask::is_real(side))?;
    // As for sides without options: what is not said must not differ.
    Ok(spec.for_all(&args.sides))
}

fn of_file(file: &str) -> Result<RunSpec, Failure> {
    let spec = RunSpec::read(file)?;
    if spec.target.is_none() && spec.fio.is_some() {
        return Err(Failure::usage(format!("{file} does not name its target"))
            .with_help("set `target` to the file or device of the job file")
            .with_key("target"));
    }
    Ok(RunSpec { target: Some(spec.target().to_owned()), ..spec })
}

/// A spec file says all of its side: options that no side takes would do nothing.
fn refuse_options(args: &CompareArgs, run: &RunSpec) -> Result<(), Failure> {
    if !args.sides.iter().all(|side| RunSpec::is_file(side)) {
        return Ok(());
    }
    // The seed is always among what is given.
    let other = given("", run).into_iter().find(|(key, value)| key != "seed" || value != 1);
    let Some((key, _)) = other else { return Ok(()) };
    Err(Failure::usage(format!("`{}` cannot be used with spec files", option_of(&key)))
        .with_help(format!("leave it out, or set the key {key} in the files"))
        .with_key(key))
}

/// Options of real targets need one.
fn check_options(args: &CompareArgs) -> Result<(), Failure> {
    match args.sides.iter().any(|side| CompareTask::is_real(side)) {
        true => Ok(()),
        false => {
            let (real, write) = (args.common.real.spec(), args.common.real.write_spec());
            refuse_real(&real, &write, "a device, a file or `null:` among the sides")
        }
    }
}
