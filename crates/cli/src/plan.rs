//! From arguments to a run that can start, and from its errors back to the arguments.

use std::path::PathBuf;

use ssdyno_block::Time;
use ssdyno_block::units::Span;
use ssdyno_driver_ring::RingError;
use ssdyno_engine::events::EventReader;
use ssdyno_result::Keep;
use ssdyno_rig::{Flow, Limits, Measured, Progress, Run, RunError, Source};

use crate::args::LoadArgs;
use crate::diagnose::{Exit, Failure};
use crate::document::Document;
use crate::fio;
use crate::load;
use crate::overlay::{self, Setting};
use crate::progress::Goal;
use crate::trace_args::TraceArgs;

/// A run, and where its parts come from.
pub(crate) struct Plan {
    /// The run.
    pub(crate) run: Run,
    device: Document,
    workload: Option<Document>,
    /// What was chosen for the user.
    notes: Vec<String>,
}

/// All `--set`, checked.
pub(crate) fn settings(arguments: &[String]) -> Result<Vec<Setting>, Failure> {
    let parse = |argument: &String| {
        let setting = Setting::parse(argument)?;
        setting.check()?;
        Ok(setting)
    };
    arguments.iter().map(parse).collect()
}

impl Plan {
    /// Reads everything that the arguments name.
    pub(crate) fn new(
        target: &str,
        load: &LoadArgs,
        keep: Keep,
        interval: Option<Time>,
    ) -> Result<Plan, Failure> {
        let settings = settings(&load.set)?;
        let device = load::device(target, &settings)?;
        let (workload, source) = source(load, target, &[], &settings)?;
        let attach = load.host.attach(device.config, &source, &settings)?;
        let run = Run {
            target: device.name,
            device: attach,
            workload: load.workload(target).to_owned(),
            source,
            seed: load.seed,
            limits: Limits { until: load.until, ..Limits::default() },
            keep,
            interval,
        };
        Ok(Plan { run, device: device.document, workload, notes: device.notes })
    }

    /// Runs it, see [`Run::execute_read`]; the notes begin with what was chosen for the user.
    pub(crate) fn execute(
        &self,
        reader: Option<&mut dyn EventReader>,
        progress: &mut dyn FnMut(&Progress) -> Flow,
    ) -> Result<Measured, RunError> {
        let mut measured = self.run.execute_read(reader, progress)?;
        measured.result.notes.splice(0..0, self.notes.iter().cloned());
        Ok(measured)
    }

    /// What the run works towards.
    pub(crate) fn goal(&self) -> Goal {
        goal(&self.run.source)
    }

    /// An error of the run, at its place. `exit` for what showed only under way.
    pub(crate) fn explain(&self, error: &RunError, exit: Exit) -> Failure {
        match error {
            RunError::Device(error) => self.device.impossible(error),
            RunError::Workload(error) => {
                load::workload_failure(exit, error, self.workload.as_ref())
            }
            RunError::Host(error) => {
                let message = format!("`{}` of the host: {}", error.key, error.problem);
                Failure::usage(message).with_help(error.help.as_str()).with_key(&error.key)
            }
            RunError::Ring(RingError::BadOption { .. }) => Failure::usage(error.to_string())
                .with_help("change it in --ring; the keys are in `ssdyno run --help`"),
            RunError::Stack { .. } => {
                Failure::usage(error.to_string()).with_help("leave --stack out")
            }
            RunError::Namespaces { help, .. } => {
                Failure::usage(error.to_string()).with_help(help.as_str())
            }
            RunError::Nvme(_) | RunError::Ring(_) | RunError::Scsi(_) => {
                Failure::new(Exit::Failed, error.to_string())
                    .with_help("check the tables of the controller in the device file")
            }
            RunError::Refused { request, error } => {
                let what = format!(
                    "the device refused a {:?} of {} B at byte {}: {error}",
                    request.op, request.length_bytes, request.offset_bytes
                );
                Failure::new(Exit::Failed, what.to_lowercase())
                    .with_help("the figures are those of the requests before it")
            }
            RunError::Unprepared => Failure::new(Exit::Interrupted, error.to_string())
                .with_help("nothing was measured, and nothing is kept"),
            RunError::Gone { .. } => Failure::new(Exit::Failed, error.to_string())
                .with_help("the figures are those of the requests before it; `faults` of the device \
                            file, or --set, has what was asked for"),
            RunError::GivenUp { .. } => Failure::new(Exit::Failed, error.to_string()).with_help(
                "the figures are those of the requests before it; where no faults were asked for, the \
                 driver's time limit is shorter than what the device takes: raise --time-limit",
            ),
            RunError::Memory => Failure::new(Exit::Failed, error.to_string()).with_help(
                "the figures are those of the requests until then; --keep summary takes the same for \
                 any number of requests",
            ),
            RunError::Interrupted => Failure::new(Exit::Interrupted, "interrupted")
                .with_help("the figures are those of the requests until then"),
        }
    }
}

/// The workload that the arguments name for `target`, which may be followed by the files `more`, and its
/// own file if it is no trace.
pub(crate) fn source(
    load: &LoadArgs,
    target: &str,
    more: &[String],
    settings: &[Setting],
) -> Result<(Option<Document>, Source), Failure> {
    if let Some(path) = &load.fio {
        refuse_workload_keys(settings, "a job file", "change the options in the file")?;
        return Ok((None, fio::source(path, target, more, load.duration.map(|span| span.0))?));
    }
    let name = load.workload(target);
    if let Some(mut generator) = load::workload(name, settings)? {
        refuse_trace_options(&load.trace)?;
        limit(&mut generator.config, load);
        return Ok((Some(generator.document), Source::Generator(generator.config)));
    }
    let help = "traces are played as --timing, --trace-depth and --beyond-end say";
    refuse_workload_keys(settings, "a trace", help)?;
    let path = PathBuf::from(name);
    Ok((None, Source::Trace { path, options: load.trace.options(load.requests, load.duration) }))
}

/// What a run of `source` works towards.
pub(crate) fn goal(source: &Source) -> Goal {
    let (requests, duration) = source.bounds(&Limits::default());
    Goal { requests, duration }
}

/// Where `--until` gives up if nothing else is said: long enough for what can be known at all,
/// and rows that fit in memory.
const UNTIL_REQUESTS_MAX: u64 = 20_000_000;
const UNTIL_TIME_MAX: Time = Time::from_s(600);

/// `--for` and `--requests` take the place of both limits of the workload; so do those of
/// `--until`, for which a workload's own are too short.
fn limit(config: &mut ssdyno_workload::Config, load: &LoadArgs) {
    if load.duration.is_some() || load.requests.is_some() {
        (config.duration, config.requests) = (load.duration, load.requests);
    } else if load.until.is_some() {
        (config.duration, config.requests) = (Some(Span(UNTIL_TIME_MAX)), Some(UNTIL_REQUESTS_MAX));
    }
}

fn refuse_trace_options(trace: &TraceArgs) -> Result<(), Failure> {
    match trace.given() {
        None => Ok(()),
        Some(option) => Err(Failure::usage(format!("`{option}` needs a trace"))
            .with_help("name a trace file with --workload, or leave the option out")),
    }
}

/// Refuses settings of the workload for `what`, which has none.
pub(crate) fn refuse_workload_keys(
    settings: &[Setting],
    what: &str,
    help: &str,
) -> Result<(), Failure> {
    match settings.iter().find(|setting| setting.key.starts_with(overlay::WORKLOAD)) {
        None => Ok(()),
        Some(setting) => Err(Failure::usage(format!("{what} has no key `{}`", setting.key))
            .with_help(help)
            .with_key(&setting.key)
            .at(Some(setting.place(true, "no effect here")))),
    }
}
