//! `ssdyno compare`.

use std::num::NonZero;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use comfy_table::{CellAlignment, Table, presets};
use schemars::JsonSchema;
use serde::Serialize;
use ssdyno_result::{
    Comparison, FigureComparison, Keep, RunResult, Verdict, bytes_per_second, joules, nanoseconds,
    rate, significant,
};

use crate::args::CompareArgs;
use crate::commands::run::judge;
use crate::diagnose::{ErrorBody, Exit, Failure};
use crate::load;
use crate::output::Output;
use crate::plan::Plan;
use crate::progress::{Board, Meter};

/// What `compare --json` prints.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "Compare")]
pub(crate) struct CompareOutput {
    /// The results, in the order of the arguments.
    results: Vec<RunResult>,
    /// Each result but the first against the first.
    comparisons: Vec<Comparison>,
    /// What was wrong with a run, if anything was.
    error: Option<ErrorBody>,
}

/// A side before it has a result.
enum Side {
    Stored(Box<RunResult>),
    ToRun(Box<Plan>),
}

/// A side with its result, and what was wrong with its run.
type Outcome = Result<(RunResult, Option<Failure>), Failure>;

pub(crate) fn run(args: &CompareArgs, output: Output) -> Result<(), Failure> {
    let sides = args.sides.iter().map(|side| read(side, args)).collect::<Result<Vec<_>, _>>()?;
    let mut results = Vec::new();
    let mut failure: Option<Failure> = None;
    for outcome in run_all(sides) {
        let (result, wrong) = outcome?;
        results.push(result);
        failure = failure.or(wrong);
    }
    let Some((first, others)) = results.split_first() else {
        return Err(Failure::usage("nothing to compare"));
    };
    let comparisons: Vec<Comparison> =
        others.iter().map(|other| ssdyno_result::compare(first, other)).collect();
    let text = comparisons.iter().map(comparison_text).collect::<Vec<_>>().join("\n");
    let body = failure.as_ref().map(Failure::body);
    let told = output.either(|| text, || CompareOutput { results, comparisons, error: body });
    match failure {
        Some(mut failure) => {
            failure.told = told.is_ok();
            Err(failure)
        }
        None => told,
    }
}

fn read(side: &str, args: &CompareArgs) -> Result<Side, Failure> {
    let path = Path::new(side);
    let is_json = path.extension().is_some_and(|e| e.eq_ignore_ascii_case("json"));
    if path.is_dir() {
        let file = path.join("result.json");
        if !file.is_file() {
            return Err(Failure::usage(format!("{side} holds no result.json"))
                .with_help("name the directory of one run, such as results/NAME"));
        }
        return stored(&file.display().to_string());
    }
    if is_json {
        return stored(side);
    }
    // Rows are needed for the intervals, files are not.
    Plan::new(side, &args.load, Keep::None, None).map(|plan| Side::ToRun(Box::new(plan)))
}

fn stored(file: &str) -> Result<Side, Failure> {
    let text = load::read_text(file)?;
    let result = serde_json::from_str(&text).map_err(|error| {
        let message = format!("{file}:{}:{}: not a result: {error}", error.line(), error.column());
        Failure::usage(message).with_help("name a result.json that `ssdyno run` wrote")
    })?;
    Ok(Side::Stored(Box::new(result)))
}

/// Runs side by side, on all cores; outcomes in the order of the sides.
fn run_all(sides: Vec<Side>) -> Vec<Outcome> {
    let board = Board::new();
    let workers = thread::available_parallelism().map_or(1, NonZero::get).min(sides.len());
    let outcomes: Vec<Mutex<Option<Outcome>>> = sides.iter().map(|_| Mutex::new(None)).collect();
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some(at) = Some(next.fetch_add(1, Ordering::Relaxed))
                    && let (Some(side), Some(place)) = (sides.get(at), outcomes.get(at))
                {
                    let outcome = settle(side, &board);
                    if let Ok(mut place) = place.lock() {
                        *place = Some(outcome);
                    }
                }
            });
        }
    });
    let lost = || Err(Failure::new(Exit::Failed, "a run ended without a result"));
    outcomes
        .into_iter()
        .map(|place| place.into_inner().ok().flatten().unwrap_or_else(lost))
        .collect()
}

fn settle(side: &Side, board: &Board) -> Outcome {
    match side {
        Side::Stored(result) => Ok(((**result).clone(), None)),
        Side::ToRun(plan) => execute(plan, board.meter(&plan.run.target, plan.goal())),
    }
}

fn execute(plan: &Plan, mut meter: Meter) -> Outcome {
    let measured = plan.run.execute(&mut |progress| meter.update(progress));
    meter.finish();
    let measured = measured.map_err(|error| plan.explain(&error, Exit::Usage))?;
    let failure = judge(plan, &measured.result, measured.failure.as_ref());
    Ok((measured.result, failure))
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
            value(figure, figure.first),
            value(figure, figure.second),
            mark.to_owned(),
            figure.text.clone(),
        ]);
    }
    let mut text = format!("first   {}\nsecond  {}\n\n", comparison.first, comparison.second);
    for line in table.lines() {
        text.push_str(line.trim_end());
        text.push('\n');
    }
    for note in &comparison.notes {
        text.push_str(&format!("Note: {note}\n"));
    }
    text
}

fn value(figure: &FigureComparison, value: f64) -> String {
    match figure.figure.as_str() {
        "iops" => rate(value),
        "throughput_bytes_per_second" => bytes_per_second(value),
        name if name.starts_with("latency_ns") => nanoseconds(value),
        name if name.starts_with("energy_joules") => joules(value),
        _ => significant(value, 4),
    }
}
