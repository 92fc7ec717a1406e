//! `ssdyno run`.

use std::str::FromStr;
use std::time::SystemTime;

use clap::{Args, Command};
use schemars::JsonSchema;
use serde::Serialize;
use ssdyno_block::counted;
use ssdyno_block::units::Span;
use ssdyno_cluster::JobPlan;
use ssdyno_figures::{Keep, RunResult};
use ssdyno_report::{RunDirectory, series_csv, summary_text};
use ssdyno_session::{
    ErrorBody, Failure, Measured, RealSpec, ResultFolder, RunSpec, given, is_real,
};
use ssdyno_sweep::Requirement;
use ssdyno_task::{Gate, Task, TaskOutcome, TaskResult, requirements};

use crate::args::{LoadArgs, span_or_zero};
use crate::commands::repeat;
use crate::consent::Terminal;
use crate::diagnose;
use crate::gates::{self, JunitArgs};
use crate::hosts::HostsArgs;
use crate::memory;
use crate::options::{in_text, option_of};
use crate::output::{Output, end};
use crate::program;
use crate::progress::{POLL_EVERY, TOGETHER_EVERY, Watch};
use crate::real::RealArgs;
use crate::replay::{self, Origin};
use crate::results::{self, HEADING, ResultsArgs, one_of, place};
use crate::swept::Swept;
use crate::task::other_result;
use crate::timeline::{TimelineArgs, TimelineFile};

#[derive(Clone, Debug, Args)]
pub(crate) struct RunArgs {
    /// Target: sim:NAME (see `ssdyno list`), FILE.toml, a block device such as /dev/nvme0n1, a file,
    /// nbd://HOST/EXPORT, iscsi://HOST/IQN/LUN, or null: (tool overhead) [default: the file that a job file
    /// names, or sim:nvme-tlc].
    ///
    /// sim:FILE.toml is the same as FILE.toml. NBD and iSCSI targets are exports of a server. A real target
    /// is opened read-only, unless --write is given.
    pub(crate) target: Option<String>,
    /// Run a spec in TOML or JSON (`ssdyno schema spec`), or repeat a run from its
    /// results/NAME/result.json. The file contains all options of the run; only --keep and the options for
    /// the results directory may be added.
    #[arg(long, value_name = "FILE", help_heading = None::<&str>)]
    pub(crate) spec: Option<String>,
    #[command(flatten)]
    pub(crate) load: LoadArgs,
    #[command(flatten)]
    pub(crate) hosts: HostsArgs,
    /// Print plain progress lines instead of the live view. This is the default if standard error is not a
    /// terminal, with TERM=dumb, or with NO_COLOR.
    #[arg(long, help_heading = None::<&str>)]
    pub(crate) no_live: bool,
    #[command(flatten)]
    pub(crate) real: RealArgs,
    /// First search for the fastest method with short runs of the load (about half a minute), then use and
    /// print this method. The replay command contains it.
    #[arg(long, help_heading = "Real targets", conflicts_with_all = ["method", "batch", "submit", "wait"])]
    pub(crate) tune: bool,
    /// Data to keep: all (a row of 16 bytes for each request: in memory for a simulated run, otherwise on
    /// disk), summary (no rows: constant memory use, percentiles within 0.4 %), or none (no files, and no
    /// rows on a real target) [default: all; summary with --hosts; with --spec the value in the file].
    #[arg(long, value_name = "WHAT", help_heading = HEADING,
          value_parser = one_of::<Keep>(&["all", "summary", "none"]))]
    pub(crate) keep: Option<Keep>,
    /// Write series.csv: rates, percentiles and the largest latency for each interval. If the run keeps
    /// rows on this machine, also write requests.csv, in the order of issue: a trace that --workload can
    /// replay.
    #[arg(long, help_heading = HEADING)]
    pub(crate) csv: bool,
    #[command(flatten)]
    pub(crate) results: ResultsArgs,
    /// Interval of the series, such as 10ms; 0 for a single point at the end [default: from the length of
    /// the run].
    #[arg(long, value_name = "TIME", value_parser = span_or_zero, help_heading = HEADING)]
    pub(crate) interval: Option<Span>,
    /// Divide the mean latency, and the latency of the slowest 1 % of the requests, into parts, for each
    /// operation. For simulated SSDs only. The figures do not change; the run takes longer.
    #[arg(long, help_heading = HEADING, conflicts_with_all = ["runs", "sweep", "latency_target", "hosts", "tune"])]
    pub(crate) why: bool,
    #[command(flatten)]
    pub(crate) timeline: TimelineArgs,
    /// Run N times (at least 2), with N consecutive seeds, starting at --seed; print means with
    /// intervals from the spread of the runs.
    ///
    /// --require is judged by these intervals. The runs keep no rows.
    #[arg(long, value_name = "N", help_heading = None::<&str>,
          conflicts_with_all = ["timeline", "tune", "csv", "hosts"])]
    pub(crate) runs: Option<u32>,
    /// Run the load at each value of a key, such as depth=1..256 or rate=1k..200k; print throughput,
    /// latency and the knee.
    ///
    /// Any numeric key of --set is possible. A..B doubles the value from A to B, A..B*F multiplies it by F,
    /// and A..B/N gives N evenly spaced values. The runs keep no rows.
    #[arg(long, value_name = "KEY=VALUES", value_parser = Swept::from_str, help_heading = None::<&str>,
          conflicts_with_all = ["runs", "timeline", "tune", "hosts", "require", "junit", "interval"])]
    pub(crate) sweep: Option<Swept>,
    /// Find the highest rate of arrivals (at random, as with --rate) at which a latency stays within a
    /// bound, such as p99=1ms. Figures: mean, p50, p95, p99, p99.9. The exit code is 1 if no rate is within
    /// the bound. The runs keep no rows.
    #[arg(long, value_name = "FIGURE=TIME", value_parser = Requirement::latency_target, help_heading = None::<&str>,
          conflicts_with_all = ["rate", "sweep", "runs", "timeline", "tune", "hosts", "require", "junit", "interval"])]
    pub(crate) latency_target: Option<Requirement>,
    /// A bound that the run must meet, such as `p99<2ms`, `iops>200k` or `energy_per_request<1m`.
    /// May be repeated.
    ///
    /// The exit code is 1 if the figure breaks the bound with 95 % confidence, and 4 if the bound lies
    /// within the interval of the figure.
    #[arg(long, value_name = "BOUND", value_parser = Requirement::of_run, help_heading = gates::HEADING)]
    pub(crate) require: Vec<Requirement>,
    #[command(flatten)]
    pub(crate) junit: JunitArgs,
}

impl RunArgs {
    /// The options of `ssdyno run`.
    pub(crate) fn options() -> Command {
        RunArgs::augment_args(Command::new("run"))
    }

    /// The command that repeats the run of `spec`. Not with the name of the directory, which a second run cannot have
    /// again, nor with how progress and result are shown.
    pub(crate) fn replay(&self, spec: &RunSpec) -> String {
        let origin = match &self.spec {
            Some(file) => Origin::File(file, self.keep),
            None => Origin::Spec(spec),
        };
        let valued = |(name, value)| (name, Some(value));
        let mut rest: Vec<_> = self.hosts.given().into_iter().map(valued).collect();
        rest.extend(self.csv.then_some(("--csv", None)));
        let results = &self.results.results;
        let elsewhere = results.as_os_str() != results::DEFAULT;
        rest.extend(elsewhere.then(|| ("--results", Some(results.display().to_string()))));
        rest.extend((self.spec.is_some() && self.why).then_some(("--why", None)));
        rest.extend(self.timeline.given().into_iter().map(valued));
        rest.extend(self.runs.map(|runs| ("--runs", Some(runs.to_string()))));
        rest.extend(self.sweep.iter().map(|swept| ("--sweep", Some(swept.typed.clone()))));
        let target = self.latency_target.iter().map(|target| target.to_string().replace('<', "="));
        rest.extend(target.map(|target| ("--latency-target", Some(target))));
        rest.extend(self.require.iter().map(|bound| ("--require", Some(bound.to_string()))));
        replay::command(&RunArgs::options(), &origin, rest)
    }

    /// The requested run, as a value.
    pub(crate) fn asked(&self) -> Result<RunSpec, Failure> {
        let typed = self.typed();
        let Some(file) = &self.spec else { return Ok(typed) };
        let other = RunSpec { keep: Keep::default(), why: false, ..typed };
        // The seed is always among what is given.
        let other = given("", &other).into_iter().find(|(key, value)| key != "seed" || value != 1);
        if let Some((key, _)) = other {
            let option = if key == "target" {
                "a target".to_owned()
            } else {
                format!("`{}`", option_of(&key))
            };
            return Err(Failure::usage(format!("{option} cannot be used with `--spec {file}`"))
                .with_help(format!("leave it out, or set the key {key} in a copy of the file"))
                .with_key(key));
        }
        let spec = RunSpec::read(file)?;
        self.refuse_without_hosts(file)?;
        Ok(RunSpec { keep: self.keep.unwrap_or(spec.keep), why: self.why || spec.why, ..spec })
    }

    /// A spec does not name hosts: a run on several hosts would become one on this machine, with other figures.
    fn refuse_without_hosts(&self, file: &str) -> Result<(), Failure> {
        let hosts = RunSpec::hosts_of_result(file);
        if hosts.is_empty() || !self.hosts.hosts.is_empty() {
            return Ok(());
        }
        let count = counted(hosts.len() as u64, "host", "hosts");
        let (shown, more) = hosts.split_at(hosts.len().min(8));
        let more = if more.is_empty() { "" } else { ", …" };
        let shown = shown.join(", ");
        Err(Failure::usage(format!("{file} is the result of a run on {count} ({shown}{more})"))
            .with_help(
                "add `--hosts` with the hosts; for a run on this machine alone, copy the `spec` of the result into \
                 a file, and give this file to `--spec`",
            )
            .with_key("hosts"))
    }

    /// What the options say.
    pub(crate) fn typed(&self) -> RunSpec {
        RunSpec {
            target: self.target.clone(),
            keep: self.keep.unwrap_or_default(),
            interval: self.interval,
            why: self.why,
            real: RealSpec { tune: self.tune, ..self.real.spec() },
            write: self.real.write_spec(),
            ..self.load.spec()
        }
    }
}

/// Output of `run --json`: the result and its files. `result.json` has only the result.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "Run")]
pub(crate) struct RunOutput<'a> {
    #[serde(flatten)]
    result: &'a RunResult,
    /// Directory of the result files; `null` with `--keep none`, or if they could not be written.
    #[serde(default)]
    results_directory: Option<String>,
    /// Path of the timeline; `null` if not requested, or if it could not be written.
    #[serde(default)]
    timeline: Option<String>,
    /// The command that repeats the run.
    #[serde(default)]
    replay: Option<String>,
    /// The bounds of `--require`, with the verdicts of the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    bounds: Vec<Gate>,
    /// The error, if the run failed; the figures cover the time until then.
    #[serde(default)]
    error: Option<ErrorBody>,
}

impl<'a> RunOutput<'a> {
    /// Of a result that lies at `place`.
    pub(crate) fn of(result: &'a RunResult, place: Option<String>) -> RunOutput<'a> {
        let (timeline, replay, bounds, error) = (None, None, Vec::new(), None);
        RunOutput { result, results_directory: place, timeline, replay, bounds, error }
    }
}

pub(crate) fn run(args: &RunArgs, output: Output) -> Result<(), Failure> {
    if let Some(runs) = args.runs {
        return repeat::run(args, runs, output);
    }
    args.junit.check(args.require.len(), "--require p99<2ms")?;
    let mut spec = args.asked()?;
    let hosts = args.hosts.hosts(&spec.real)?;
    if hosts.is_none() && args.timeline.timeline.is_some() && is_real(&spec)? {
        return Err(Failure::usage("`--timeline` applies only to simulated targets")
            .with_help("a real device does not show its internal events; requests.parquet contains its requests"));
    }
    if hosts.is_some() && args.keep.is_none() && args.spec.is_none() {
        // Rows of many hosts fill the disk of this host: they are fetched only if requested.
        spec.keep = Keep::Summary;
    }
    let is_here = hosts.is_none();
    let task = Task::Run(Box::new(spec));
    let mut prepared = match hosts {
        Some(hosts) => task.prepare_on(hosts, &mut Terminal)?,
        None => task.prepare(&mut Terminal)?,
    };
    let plan = prepared.run().ok_or_else(other_result)?;
    let (name, goal, is_real) = (plan.name(), plan.goal(), plan.is_real()?);
    // Created before the run, so that a user without a place for results gets the error at once.
    let timeline = TimelineFile::create(&args.timeline)?;
    let directory = directory(args, plan, is_here)
        .inspect_err(|_| timeline.iter().for_each(TimelineFile::discard))?;
    // Rows of a real run are on the disk before they are many, or there are none.
    if is_here && !is_real {
        memory::look_ahead(plan.asked().keep, goal);
    }
    let meter = Watch::new(&name, plan.load(), goal, !args.no_live, is_real);
    if let Some(directory) = &directory {
        prepared.keep_in(directory.path().to_owned());
    }
    prepared.record_provenance(program::identity());
    if let Some(file) = &timeline {
        prepared.read_by(file.reader());
    }
    let every = if is_here { POLL_EVERY } else { TOGETHER_EVERY };
    match prepared.start().and_then(|runner| meter.watch(runner, every)) {
        Ok(outcome) => conclude(args, output, &Files { directory, timeline }, outcome),
        Err(failure) => {
            timeline.iter().for_each(TimelineFile::discard);
            directory.inspect(ResultFolder::remove);
            Err(failure)
        }
    }
}

fn directory(
    args: &RunArgs,
    plan: &JobPlan,
    is_here: bool,
) -> Result<Option<ResultFolder>, Failure> {
    let RunSpec { keep, seed, .. } = *plan.asked();
    if is_here && args.csv && keep != Keep::All {
        return Err(Failure::usage("`--csv` writes rows, but `--keep` discards them")
            .with_help("leave one of the two out"));
    }
    args.results.create(keep, || {
        RunDirectory::default_name(&plan.target(), plan.load(), Some(seed), SystemTime::now())
    })
}

/// Writes and prints the results.
fn conclude(
    args: &RunArgs,
    output: Output,
    files: &Files,
    outcome: TaskOutcome,
) -> Result<(), Failure> {
    let TaskOutcome { result: TaskResult::Run(measured), mut failure } = outcome else {
        return Err(other_result());
    };
    let Measured { result, recording, by_name, .. } = *measured;
    let (result, recording) = (&result, &recording);
    let write = |folder: &ResultFolder| {
        let series = args.csv.then(|| ("series.csv".to_owned(), series_csv(result)));
        folder.write_texts(series.iter().map(|(name, text)| (name.clone(), text.as_str())))?;
        folder.write_run(result, recording, args.csv)
    };
    // An interrupt explains more than its consequences; a lost result is worse than the rest.
    let place = place(files.directory.as_ref().map(write), &mut failure);
    // After the results: what becomes of it does not touch them.
    let drawn = |file: &TimelineFile| {
        let line = file.write(recording.rows(), result.faults.as_ref())?;
        Ok((file.path().display().to_string(), line))
    };
    let timeline = files.timeline.as_ref().map(drawn).transpose();
    let gates = requirements(&args.require, result);
    let broken = args.junit.conclude(&result.target, &gates);
    failure = failure.or(broken);
    let told = Told {
        place,
        gates,
        replay: args.replay(&by_name),
        timeline: timeline.unwrap_or_else(|error| {
            failure = Some(error);
            None
        }),
    };
    let told = tell(output, result, told, failure.as_ref());
    end(told, failure)
}

/// What is said beside the result.
struct Told {
    place: Option<String>,
    /// Path, and a line about it.
    timeline: Option<(String, String)>,
    replay: String,
    gates: Vec<Gate>,
}

fn tell(
    output: Output,
    result: &RunResult,
    told: Told,
    failure: Option<&Failure>,
) -> Result<(), Failure> {
    let Told { place, timeline, replay, gates } = told;
    if output.json {
        return output.object(&RunOutput {
            result,
            results_directory: place,
            timeline: timeline.map(|(path, _)| path),
            replay: Some(replay),
            bounds: gates,
            error: failure.map(diagnose::body),
        });
    }
    let mut text = in_text(&summary_text(result));
    if let Some(place) = place {
        text.push_str(&format!("\nResults  {place} (open report.html)"));
    }
    if let Some((_, timeline)) = timeline {
        text.push_str(&format!("\nTimeline {timeline}"));
    }
    text.push_str(&format!("\nReplay   {replay}\n"));
    text.push_str(&gates::lines(&gates));
    output.text(&text)
}

/// Where things are kept.
struct Files {
    directory: Option<ResultFolder>,
    timeline: Option<TimelineFile>,
}
