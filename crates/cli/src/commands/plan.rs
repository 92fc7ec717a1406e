//! `ssdyno controller run`.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use clap::Args;
use comfy_table::{CellAlignment, Table, presets};
use schemars::JsonSchema;
use serde::Serialize;
use ssdyno_block::units::Span;
use ssdyno_cluster::{
    Hosts, PlanFile, PlanResult, PlannedStep, ProberAddress, ReachedHosts, StepResult,
};
use ssdyno_figures::Keep;
use ssdyno_report::RunDirectory;
use ssdyno_session::{
    ErrorBody, Failure, FailureKind, Goal, Measured, ResultFolder, is_real, record_provenance,
    unwritable,
};

use crate::args::positive_span;
use crate::diagnose;
use crate::hosts::ReachArgs;
use crate::options::in_text;
use crate::output::{Output, end};
use crate::program;
use crate::progress::{HostsWatch, Watch, flow, interrupted};
use crate::results::{HEADING, ResultsArgs, keep};

#[derive(Clone, Debug, Args)]
pub(crate) struct PlanArgs {
    /// The plan: a TOML file (`ssdyno schema plan`).
    #[arg(value_name = "PLAN")]
    plan: PathBuf,
    /// Also sample these machines, which carry no load, or read the metrics of these programs, as `run --probers` does.
    #[arg(long, value_name = "HOST", value_delimiter = ',')]
    probers: Vec<ProberAddress>,
    /// How often the machines are sampled.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = positive_span)]
    probe_interval: Span,
    /// Do not sample the machines.
    #[arg(long, conflicts_with_all = ["probers", "probe_interval"])]
    no_probes: bool,
    #[command(flatten)]
    reach: ReachArgs,
    /// Show progress in lines instead of the live view.
    #[arg(long, help_heading = None::<&str>)]
    no_live: bool,
    /// What to keep: summary (a directory for each step, and one table) or none (no files).
    #[arg(long, value_name = "WHAT", default_value = "summary", help_heading = HEADING,
          value_parser = keep(["summary", "none"]))]
    keep: Keep,
    #[command(flatten)]
    results: ResultsArgs,
}

/// What `controller run --json` prints.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "Plan result")]
pub(crate) struct PlanOutput {
    #[serde(flatten)]
    result: PlanResult,
    /// Where the files lie; `null` with `--keep none`, or where they could not be written.
    results_directory: Option<String>,
    /// Why the plan failed, if it did; the figures are those until then.
    error: Option<ErrorBody>,
}

/// Steps that were carried out, and where they lie.
struct Progress<'a> {
    file: &'a PlanFile,
    title: String,
    folder: Option<ResultFolder>,
    steps: Vec<StepResult>,
    failure: Option<Failure>,
}

pub(crate) fn run(args: &PlanArgs, output: Output) -> Result<(), Failure> {
    let file = PlanFile::read(&args.plan.display().to_string())?;
    let every = Duration::from_nanos(args.probe_interval.0.as_ns());
    let hosts = Hosts {
        addresses: file.hosts.clone(),
        probers: args.probers.clone(),
        probe_every: (!args.no_probes).then_some(every),
        ..args.reach.hosts()
    };
    // All hosts are there, or nothing is loaded and nothing left behind.
    let mut reached = ReachedHosts::open(&hosts, &mut |_| flow())?;
    let stem = args.plan.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let folder = args
        .results
        .create(args.keep, || RunDirectory::default_name("plan", &stem, None, SystemTime::now()))?;
    let title = format!("{stem} - plan");
    let mut progress = Progress { file: &file, title, folder, steps: Vec::new(), failure: None };
    for step in &file.steps {
        let began = program::identity().provenance();
        let mut measured = carry_out(args, &mut reached, step, file.steps.len());
        if let Ok(measured) = &mut measured {
            record_provenance(&mut measured.result, began);
        }
        let is_over =
            measured.as_ref().is_err_and(|failure| failure.kind == FailureKind::Interrupted);
        if is_over {
            progress.failure = measured.err();
            break;
        }
        progress.take(step, measured);
        if interrupted() {
            let message = format!("interrupted in step {} of {}", step.number, file.steps.len());
            progress.failure = Some(Failure::new(FailureKind::Interrupted, message));
            break;
        }
    }
    conclude(progress, output)
}

fn carry_out(
    args: &PlanArgs,
    hosts: &mut ReachedHosts,
    step: &PlannedStep,
    of: usize,
) -> Result<Measured, Failure> {
    let spec = &step.load.common;
    let count = step.load.hosts.len() as u64;
    let goal = Goal {
        requests: spec.requests.map(|requests| requests.saturating_mul(count)),
        duration: spec.duration.map(|span| span.0),
    };
    let name = format!("step {} of {of}: {}", step.number, step.name);
    let load = spec.workload.as_deref().unwrap_or("default");
    let meter = Watch::new(&name, load, goal, !args.no_live, is_real(spec)?);
    let mut meter = HostsWatch::new(meter);
    let measured = hosts.run(&step.load, &mut |hosts| meter.update(hosts));
    meter.finish();
    measured
}

impl Progress<'_> {
    /// Writes a step as soon as it is over, with the table so far: whatever ends this program takes no step that was
    /// measured.
    fn take(&mut self, step: &PlannedStep, measured: Result<Measured, Failure>) {
        let mut directory = None;
        if let (Some(folder), Ok(measured)) = (&self.folder, &measured) {
            match write_step(folder.path(), step, measured) {
                Ok(name) => directory = Some(name),
                Err(failure) => self.failure = Some(failure),
            }
        }
        self.steps.push(StepResult::of(step, measured.as_ref(), directory));
        if let Some(Err(failure)) = self.folder.as_ref().map(|folder| self.write(folder)) {
            self.failure = Some(failure);
        }
        let wrong = measured.map_or_else(Some, |measured| measured.failure);
        self.failure = self.failure.take().or(wrong);
    }

    fn result(&self) -> PlanResult {
        PlanResult::new(self.file.plan.clone(), self.file.steps.len(), self.steps.clone())
    }

    fn write(&self, folder: &ResultFolder) -> Result<String, Failure> {
        let result = self.result();
        let csv = result.csv();
        let texts = [("steps.csv".to_owned(), csv.as_str())];
        folder.write_texts(texts).map_err(|error| unwritable(&error))?;
        folder.write_page(&result.html(&self.title), &result).map_err(|error| unwritable(&error))
    }
}

/// Writes the result of a step into a directory of its own; gives its name.
fn write_step(
    directory: &Path,
    step: &PlannedStep,
    measured: &Measured,
) -> Result<String, Failure> {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let name: String = step.name.chars().take(40).map(plain).collect();
    let name = format!("{:03}-{name}", step.number);
    let folder = ResultFolder::create(directory, &name)?;
    let written = folder.write_run(&measured.result, &measured.recording, false);
    written.map_err(|error| unwritable(&error))?;
    Ok(name)
}

fn conclude(progress: Progress<'_>, output: Output) -> Result<(), Failure> {
    let result = progress.result();
    let Progress { folder, failure, .. } = progress;
    let place = folder.filter(|folder| {
        let is_empty = result.steps.is_empty();
        if is_empty {
            folder.remove();
        }
        !is_empty
    });
    let place = place.map(|folder| folder.path().display().to_string());
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
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(rows.next().unwrap_or_default());
    table.add_rows(rows);
    for (at, column) in table.column_iter_mut().enumerate() {
        let is_text = at == 1;
        let side = if is_text { CellAlignment::Left } else { CellAlignment::Right };
        column.set_cell_alignment(side);
        column.set_padding((0, 2));
    }
    let lines: Vec<String> = table.lines().map(|line| line.trim_end().to_owned()).collect();
    lines.join("\n") + "\n"
}
