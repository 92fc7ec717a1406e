//! `ssdyno papers`.

use std::fs;
use std::time::SystemTime;

use serde::Serialize;
use ssdyno_papers::{Options, PaperError, Report};
use ssdyno_result::RunDirectory;

use crate::args::PapersArgs;
use crate::commands::run::unwritable;
use crate::diagnose::{ErrorBody, Exit, Failure};
use crate::load;
use crate::output::Output;
use crate::progress::CountMeter;

/// What `papers --json` prints.
#[derive(Serialize, schemars::JsonSchema)]
#[schemars(title = "Papers")]
pub(crate) struct PapersOutput<'a> {
    #[serde(flatten)]
    report: &'a Report,
    /// Where the report and its figures lie; `null` with `--keep none`.
    results_directory: Option<String>,
    /// Why the whole is no success, if it is none.
    error: Option<ErrorBody>,
}

pub(crate) fn run(args: &PapersArgs, output: Output) -> Result<(), Failure> {
    let mut options = Options {
        trace_directory: args.trace_dir.clone(),
        requests: args.requests,
        ..Options::default()
    };
    for trace in &args.trace {
        options.add_trace(trace).map_err(|error| explain(&error))?;
    }
    let mut meter = CountMeter::new();
    let report = ssdyno_papers::run(&args.selector, &options, &mut |p| {
        meter.update(p.done, p.of, p.running.join(", "))
    });
    meter.finish();
    let report = report.map_err(|error| explain(&error))?;
    let written = (args.keep != "none").then(|| write(args, &report)).transpose();
    let mut failure = judge(&report);
    let place = written.unwrap_or_else(|error| {
        failure = Some(error);
        None
    });
    let text = || {
        let at = place.iter().map(|place| format!("\nResults  {place} (figures as SVG)\n"));
        report.text() + &at.collect::<String>()
    };
    let told = output.either(text, || PapersOutput {
        report: &report,
        results_directory: place.clone(),
        error: failure.as_ref().map(Failure::body),
    });
    match failure {
        Some(mut failure) => {
            failure.told = told.is_ok();
            Err(failure)
        }
        None => told,
    }
}

fn judge(report: &Report) -> Option<Failure> {
    if report.partial && crate::progress::interrupted() {
        return Some(
            Failure::new(Exit::Interrupted, "interrupted")
                .with_help("the cells are those of the requests until then"),
        );
    }
    let off: Vec<&str> = report.mismatches().map(|cell| cell.id.as_str()).collect();
    if !off.is_empty() {
        let message = format!("{} cells should match and do not: {}", off.len(), off.join(", "));
        return Some(
            Failure::new(Exit::Failed, message)
                .with_help("please report this; the corrected model has changed"),
        );
    }
    None
}

/// `report.json` and a file for each figure, in a fresh directory.
fn write(args: &PapersArgs, report: &Report) -> Result<String, Failure> {
    let name = RunDirectory::default_name(
        "papers",
        &args.selector.replace('/', "-"),
        None,
        SystemTime::now(),
    );
    let directory = RunDirectory::create(&args.results, &name).map_err(|e| unwritable(&e))?;
    let json = ssdyno_result::to_json(report).map_err(|e| unwritable(&e))?;
    let figures = report.figures.iter().map(|f| (f.id.replace('/', "-") + ".svg", f.svg.as_str()));
    for (name, text) in figures.chain([("report.json".to_owned(), json.as_str())]) {
        let path = directory.path().join(name);
        fs::write(&path, text).map_err(|error| {
            Failure::new(Exit::Unwritable, format!("cannot write {}: {error}", path.display()))
                .with_help("free some space, or choose another directory with --results")
        })?;
    }
    Ok(directory.path().display().to_string())
}

fn explain(error: &PaperError) -> Failure {
    match error {
        PaperError::UnknownSelector { selector, known } => {
            Failure::usage(format!("`{selector}` names nothing in a paper"))
                .with_help(format!("there are: {known}"))
        }
        PaperError::UnknownTrace { given, known } => {
            Failure::usage(format!("`{given}` is not a trace of a paper"))
                .with_help(format!("write NAME=FILE with NAME one of: {known}"))
        }
        PaperError::Workload { error, .. } => load::workload_failure(Exit::Usage, error, None),
        other => Failure::new(Exit::Failed, other.to_string()),
    }
}
