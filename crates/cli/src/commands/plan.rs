//! `ssdyno controller run`.

use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;
use ssdyno_block::units::Span;
use ssdyno_cluster::{
    Hosts, PlanFile, PlanOutcome, PlanResult, PlanRun, PlannedStep, ProberAddress,
};
use ssdyno_figures::{Keep, KeepGoing};
use ssdyno_report::{RunDirectory, aligned};
use ssdyno_session::{ErrorBody, Failure, is_real};

use crate::args::positive_span;
use crate::diagnose;
use crate::hosts::ReachArgs;
use crate::options::in_text;
use crate::output::{Output, end};
use crate::program;
use crate::progress::{TOGETHER_EVERY, Watch, flow, interrupted};
use crate::results::{HEADING, ResultsArgs, one_of};

#[derive(Clone, Debug, Args)]
pub(crate) struct PlanArgs {
    /// The plan: a TOML file (`ssdyno schema plan`).
    #[arg(value_name = "PLAN")]
    plan: PathBuf,
    /// Also sample these machines, which run no load, or read the metrics of these programs, as with `run
    /// --probers`.
    #[arg(long, value_name = "HOST", value_delimiter = ',')]
    probers: Vec<ProberAddress>,
    /// Interval between samples of the machines.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = positive_span)]
    probe_interval: Span,
    /// Do not sample the machines.
    #[arg(long, conflicts_with_all = ["probers", "probe_interval"])]
    no_probes: bool,
    #[command(flatten)]
    reach: ReachArgs,
    /// Print plain progress lines instead of the live view.
    #[arg(long, help_heading = None::<&str>)]
    no_live: bool,
    /// Data to keep: summary (a directory for each step, and one table) or none (no files).
    #[arg(long, value_name = "WHAT", default_value = "summary", help_heading = HEADING,
          value_parser = one_of::<Keep>(&["summary", "none"]))]
    keep: Keep,
    #[command(flatten)]
    results: ResultsArgs,
}

/// Output of `controller run --json`.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "Plan result")]
pub(crate) struct PlanOutput {
    #[serde(flatten)]
    result: PlanResult,
    /// Directory of the result files; `null` with `--keep none`, or if they could not be written.
    results_directory: Option<String>,
    /// The error, if the plan failed; the figures cover the time until then.
    error: Option<ErrorBody>,
}

pub(crate) fn run(args: &PlanArgs, output: Output) -> Result<(), Failure> {
    let file = PlanFile::read(&args.plan.display().to_string())?;
    let every = Duration::from_nanos(args.probe_interval.0.as_ns());
    let hosts = Hosts {
        probers: args.probers.clone(),
        probe_every: (!args.no_probes).then_some(every),
        ..args.reach.hosts()
    };
    // All hosts are there, or nothing is loaded and nothing left behind.
    let mut plan = PlanRun::open(file, &hosts, &mut |_| flow())?;
    let stem = args.plan.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let folder = args
        .results
        .create(args.keep, || RunDirectory::default_name("plan", &stem, None, SystemTime::now()))?;
    if let Some(folder) = folder {
        plan.keep_in(folder, format!("{stem} - plan"));
    }
    while let Some(step) = plan.next() {
        let mut meter = meter(args, step, plan.step_count())?;
        let mut told: Option<Instant> = None;
        let began = program::identity().provenance();
        plan.step(began, interrupted, &mut |hosts| {
            if told.is_some_and(|told| told.elapsed() < TOGETHER_EVERY) {
                return flow();
            }
            told = Some(Instant::now());
            match meter.update(&hosts.merged()) {
                KeepGoing::Stop => KeepGoing::Stop,
                // Workers tell distributions by themselves.
                KeepGoing::Continue | KeepGoing::LiveSnapshot => KeepGoing::Continue,
            }
        });
        meter.finish();
    }
    conclude(plan.end(), output)
}

/// The progress of `step`.
fn meter(args: &PlanArgs, step: &PlannedStep, of: usize) -> Result<Watch, Failure> {
    let spec = &step.load.common;
    let name = format!("step {} of {of}: {}", step.number, step.name);
    let load = spec.workload.as_deref().unwrap_or("default");
    Ok(Watch::new(&name, load, step.goal(), !args.no_live, is_real(spec)?))
}

fn conclude(outcome: PlanOutcome, output: Output) -> Result<(), Failure> {
    let PlanOutcome { result, failure, folder } = outcome;
    let place = folder.map(|folder| folder.path().display().to_string());
    let mut text = table_text(&result);
    for complaint in result.complaints() {
        text.push_str(&format!("{}\n", in_text(&complaint)));
    }
    if let Some(place) = &place {
        text.push_str(&format!("\nResults  {place} (open report.html; steps.csv has the table)\n"));
    }
    let told = output.either(
        || text,
        || PlanOutput {
            result,
            results_directory: place.clone(),
            error: failure.as_ref().map(diagnose::body),
        },
    );
    end(told, failure)
}

fn table_text(result: &PlanResult) -> String {
    let mut rows = result.table().into_iter();
    let header = rows.next().unwrap_or_default();
    let numbers: Vec<usize> = (0..header.len()).filter(|at| *at != 1).collect();
    aligned(&header, rows, &numbers)
}
