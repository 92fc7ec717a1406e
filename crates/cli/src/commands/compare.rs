//! `ssdyno compare`.

use std::path::Path;
use std::time::SystemTime;

use clap::Args;
use comfy_table::{CellAlignment, Table, presets};
use schemars::JsonSchema;
use serde::Serialize;
use ssdyno_figures::{Comparison, Keep, RunResult, Verdict};
use ssdyno_report::{RunDirectory, comparison_html, figure_format};
use ssdyno_session::{
    ErrorBody, Failure, FailureKind, Measured, Prepared, ResultFolder, RunList, RunListProgress,
    RunPhase, RunSpec, files, named, refuse_real, resolve, unwritable,
};

use crate::args::LoadArgs;
use crate::consent::Terminal;
use crate::diagnose;
use crate::options::in_text;
use crate::output::{Output, end};
use crate::progress::{Board, Meter, flow};
use crate::real::RealArgs;
use crate::results::{HEADING, ResultsArgs, keep};

#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// Directories of runs, result.json files, or targets, which are then run: simulated ones side
    /// by side, real ones one after the other, read-only unless --write says otherwise. The first is
    /// what the others are compared with.
    #[arg(required = true, num_args = 2.., value_name = "RESULT|TARGET")]
    pub(crate) sides: Vec<String>,
    #[command(flatten)]
    pub(crate) load: LoadArgs,
    #[command(flatten)]
    pub(crate) real: RealArgs,
    /// What to keep: all (result.json and report.html of the comparison) or none.
    #[arg(long, value_name = "WHAT", default_value = "all", help_heading = HEADING,
          value_parser = keep(["all", "none"]))]
    pub(crate) keep: Keep,
    #[command(flatten)]
    pub(crate) results: ResultsArgs,
}

/// What `compare --json` prints.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "Compare")]
pub(crate) struct CompareOutput {
    /// The results, in the order of the arguments.
    results: Vec<RunResult>,
    /// Each result but the first against the first.
    comparisons: Vec<Comparison>,
    /// Where the files lie; `null` with `--keep none`, or where they could not be written.
    #[serde(default)]
    results_directory: Option<String>,
    /// What was wrong with a run, if anything was.
    error: Option<ErrorBody>,
}

/// A side before it has a result.
enum Side {
    Stored(Box<RunResult>),
    ToRun(Box<Prepared>),
}

/// A side with its result, and what was wrong with its run.
type Outcome = (RunResult, Option<Failure>);

pub(crate) fn run(args: &CompareArgs, output: Output) -> Result<(), Failure> {
    let load = args.load.spec().for_all(args.sides.iter().filter(|side| !is_stored(side)));
    check_options(args)?;
    let sides =
        args.sides.iter().map(|side| read(side, args, &load)).collect::<Result<Vec<_>, _>>()?;
    // Made before the runs: who has no place for results should hear of it at once.
    let directory = directory(args)?;
    let mut results = Vec::new();
    let mut failure: Option<Failure> = None;
    // Where nothing is compared nothing is left behind.
    let outcomes =
        run_all(sides).inspect_err(|_| directory.iter().for_each(ResultFolder::remove))?;
    for (result, wrong) in outcomes {
        results.push(result);
        failure = failure.or(wrong);
    }
    let Some((first, others)) = results.split_first() else {
        return Err(Failure::usage("nothing to compare"));
    };
    let comparisons: Vec<Comparison> =
        others.iter().map(|other| ssdyno_report::compare(first, other)).collect();
    let text = comparisons.iter().map(comparison_text).collect::<Vec<_>>().join("\n");
    let mut compared = CompareOutput { results, comparisons, results_directory: None, error: None };
    let page = comparison_html(&compared.results, &compared.comparisons);
    match directory.map(|directory| directory.write_page(&page, &compared)).transpose() {
        Ok(place) => compared.results_directory = place,
        Err(error) => failure = Some(unwritable(&error)),
    }
    compared.error = failure.as_ref().map(diagnose::body);
    let place = compared.results_directory.clone();
    let place = place.map(|place| format!("\nResults  {place} (open report.html)\n"));
    let told = output.either(|| text + &place.unwrap_or_default(), || compared);
    end(told, failure)
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

/// Whether `side` is a result, and not a target.
fn is_stored(side: &str) -> bool {
    let path = Path::new(side);
    path.is_dir() || path.extension().is_some_and(|e| e.eq_ignore_ascii_case("json"))
}

/// Options of real targets need one.
fn check_options(args: &CompareArgs) -> Result<(), Failure> {
    let real = |side: &String| !is_stored(side) && named::is_real(side);
    match args.sides.iter().any(real) {
        true => Ok(()),
        false => {
            let (real, write) = (args.real.spec(), args.real.write_spec());
            refuse_real(&real, &write, "a device, a file or null: among the sides")
        }
    }
}

fn read(side: &str, args: &CompareArgs, load: &RunSpec) -> Result<Side, Failure> {
    let path = Path::new(side);
    if path.is_dir() {
        let file = path.join("result.json");
        if !file.is_file() {
            return Err(Failure::usage(format!("{side} holds no result.json"))
                .with_help("name the directory of one run, such as results/NAME"));
        }
        return stored(&file.display().to_string());
    }
    if is_stored(side) {
        return stored(side);
    }
    // Rows make percentiles exact; files are not needed.
    let spec = RunSpec { target: Some(side.to_owned()), keep: Keep::None, ..load.clone() };
    let spec = match named::is_real(side) {
        true => RunSpec { real: args.real.spec(), write: args.real.write_spec(), ..spec },
        false => spec,
    };
    resolve(&spec, &mut Terminal).map(|prepared| Side::ToRun(Box::new(prepared)))
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

/// Runs what has to be run, and gives the outcomes in the order of the sides. Once a side could not start the
/// others are given up: with what is missing nothing can be compared.
fn run_all(sides: Vec<Side>) -> Result<Vec<Outcome>, Failure> {
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
    let board = Board::new();
    let meter = |run: &Prepared| Some(board.meter(&run.name(), run.goal()));
    let mut meters: Vec<Option<Meter>> = runs.iter().map(meter).collect();
    let watch = &mut |progress: &RunListProgress<'_>| {
        for (meter, snapshot) in meters.iter_mut().zip(progress.runs()) {
            if snapshot.phase == RunPhase::Ended {
                meter.take().into_iter().for_each(Meter::finish);
            } else if let Some(meter) = meter {
                meter.update(&snapshot.progress);
            }
        }
        flow()
    };
    let outcome = |_, ended: Result<Measured, Failure>| ended.map(|all| (all.result, all.failure));
    let measured = RunList::new(runs).execute(outcome, watch)?;
    let interrupted = || {
        Failure::new(FailureKind::Interrupted, "interrupted before all sides had run")
            .with_help("nothing was compared, and nothing is kept")
    };
    let mut measured = measured.into_iter();
    let whole = |outcome: Option<Outcome>| {
        outcome.or_else(|| measured.next().flatten()).ok_or_else(interrupted)
    };
    stored.into_iter().map(whole).collect()
}

fn comparison_text(comparison: &Comparison) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(["Figure", "first", "second", "", "second is"]);
    for (index, column) in table.column_iter_mut().enumerate() {
        let right = matches!(index, 1 | 2);
        column.set_cell_alignment(if right { CellAlignment::Right } else { CellAlignment::Left });
        column.set_padding((0, 2));
    }
    for figure in &comparison.figures {
        let mark = match figure.verdict {
            Verdict::Better => "+",
            Verdict::Worse => "-",
            Verdict::CannotTell => "",
        };
        table.add_row([
            figure.figure.clone(),
            figure_format(&figure.figure)(figure.first),
            figure_format(&figure.figure)(figure.second),
            mark.to_owned(),
            figure.text.clone(),
        ]);
    }
    let mut text = format!("first   {}\nsecond  {}\n\n", comparison.first, comparison.second);
    for line in table.lines() {
        text.push_str(line.trim_end());
        text.push('\n');
    }
    let verdict = match comparison.verdict {
        Verdict::Better => "the second is faster",
        Verdict::Worse => "the second is slower",
        Verdict::CannotTell => "cannot tell which is faster",
    };
    text.push_str(&format!("\nVerdict  {verdict} (intervals of ratios at 99 %)\n"));
    for note in &comparison.notes {
        text.push_str(&format!("Note: {}\n", in_text(note)));
    }
    text
}
