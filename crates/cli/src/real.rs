//! Real targets: from arguments to a run in wall time, and from its errors back to the arguments.

use std::path::Path;
use std::time::Duration;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use ssdyno_bench::{
    ALL, Access, BenchError, Method, NULL, Options, PageCache, Probing, Run, Waiting,
};
use ssdyno_block::units::Span;
use ssdyno_result::Keep;
use ssdyno_rig::Limits;
#[cfg(target_os = "linux")]
use ssdyno_rig::Source;

use crate::args::{LoadArgs, positive_span};
use crate::commands::compare::CompareArgs;
use crate::commands::run::RunArgs;
#[cfg(target_os = "linux")]
use crate::consent::WriteArgs;
use crate::diagnose::{Exit, Failure};
use crate::document::Document;
#[cfg(target_os = "linux")]
use crate::fio;
use crate::load;
use crate::overlay;
use crate::plan::{self, settings};

/// How a real target is loaded, and what allows writing to it: what verbs take that load one.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Real targets")]
pub(crate) struct RealArgs {
    /// What carries requests out: io_uring, threads (pread and pwrite, a thread for each request
    /// outstanding) or auto (io_uring where the kernel needs no workers for it) [default: auto].
    #[arg(long, value_name = "ENGINE",
          value_parser = PossibleValuesParser::new(["auto", "io_uring", "threads"]))]
    pub(crate) engine: Option<String>,
    /// Poll the device for completions instead of waiting for interrupts; the device needs queues
    /// for it.
    #[arg(long)]
    pub(crate) iopoll: bool,
    /// Let a thread of the kernel take submissions, at the price of a core.
    #[arg(long)]
    pub(crate) sqpoll: bool,
    /// Go through this machine's page cache, which is emptied of the target before (direct=0 of fio): reads
    /// may never reach the target, and a write ends when it is in memory.
    #[arg(long, conflicts_with = "iopoll")]
    pub(crate) buffered: bool,
    /// Threads that share the load [default: 1].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) jobs: Option<u32>,
    /// Cores that jobs are bound to, in turn, such as 0,2 [default: any; the only job of a closed
    /// loop that sleeps stays where it starts on a loop device].
    #[arg(long, value_name = "CORES", value_delimiter = ',')]
    pub(crate) pin: Vec<usize>,
    /// How requests go to the kernel and come back: default (sleep; submit what is ready, two in a
    /// call, reap what is there), efficient (sleep until all that is outstanding has completed: least CPU time), latency
    /// (one at a time, spinning: no wake-up in the latencies, at the price of a core) [default: default].
    #[arg(long, value_name = "METHOD", 
          value_parser = PossibleValuesParser::new(Method::ALL.map(Method::name)).try_map(|name| name.parse::<Method>()))]
    pub(crate) method: Option<Method>,
    /// Completions that a closed loop waits for at a time, or all [default: the method's].
    #[arg(long, value_name = "N", value_parser = batch)]
    pub(crate) batch: Option<u32>,
    /// Requests that go to the kernel with one call at most, or all (fio: iodepth_batch) [default: the
    /// method's].
    #[arg(long, value_name = "N", value_parser = batch)]
    pub(crate) submit: Option<u32>,
    /// How jobs wait for completions: sleep until the kernel wakes them, which is in every latency, or
    /// spin, which takes a core [default: the method's].
    #[arg(long, value_name = "HOW", conflicts_with = "iopoll",
          value_parser = PossibleValuesParser::new(["sleep", "spin"]).try_map(|how| how.parse::<Waiting>()))]
    pub(crate) wait: Option<Waiting>,
    /// Without an answer for so long the target is taken to hang [default: 30s].
    #[arg(long, value_name = "TIME", value_parser = positive_span)]
    pub(crate) timeout: Option<Span>,
    /// Do not sample the machine (processors, interrupts, memory, network, the device's own
    /// counters, power) while the target is loaded.
    #[arg(long, conflicts_with = "probe_interval")]
    pub(crate) no_probes: bool,
    /// Sample the machine this often [default: 100ms, or longer where that would take more than a
    /// thousandth of a processor].
    #[arg(long, value_name = "TIME", value_parser = positive_span)]
    pub(crate) probe_interval: Option<Span>,
    #[cfg(target_os = "linux")]
    #[command(flatten)]
    pub(crate) write: WriteArgs,
}

impl RealArgs {
    /// The options that were given, as they are typed, but those of [`WriteArgs`].
    pub(crate) fn given(&self) -> Vec<(&'static str, Option<String>)> {
        let mut given = Vec::new();
        given.extend(self.engine.clone().map(|engine| ("--engine", Some(engine))));
        given.extend(self.iopoll.then_some(("--iopoll", None)));
        given.extend(self.sqpoll.then_some(("--sqpoll", None)));
        given.extend(self.buffered.then_some(("--buffered", None)));
        given.extend(self.jobs.map(|jobs| ("--jobs", Some(jobs.to_string()))));
        if !self.pin.is_empty() {
            let cores: Vec<String> = self.pin.iter().map(usize::to_string).collect();
            given.push(("--pin", Some(cores.join(","))));
        }
        given.extend(self.method.map(|method| ("--method", Some(method.name().to_owned()))));
        given.extend(self.batch.map(|batch| ("--batch", Some(batch_text(batch)))));
        given.extend(self.submit.map(|submit| ("--submit", Some(batch_text(submit)))));
        given.extend(self.wait.map(|how| ("--wait", Some(how.name().to_owned()))));
        given.extend(self.timeout.map(|timeout| ("--timeout", Some(timeout.to_string()))));
        given.extend(self.no_probes.then_some(("--no-probes", None)));
        let interval = self.probe_interval.map(|interval| interval.to_string());
        given.extend(interval.map(|interval| ("--probe-interval", Some(interval))));
        given
    }

    /// Refuses what was given, of [`WriteArgs`], too, for a simulated target, where it would mean
    /// nothing. `instead` says what to name for it.
    pub(crate) fn refuse(&self, instead: &str) -> Result<(), Failure> {
        let mut given = self.given();
        #[cfg(target_os = "linux")]
        given.extend(self.write.given());
        given.first().map_or(Ok(()), |(option, _)| Err(for_real_targets(option, instead)))
    }

    /// What was given, over what is usual.
    pub(crate) fn options(&self) -> Options {
        let usual = Options::default();
        Options {
            engine: self.engine.as_ref().and_then(|e| e.parse().ok()).unwrap_or(usual.engine),
            iopoll: self.iopoll,
            sqpoll: self.sqpoll,
            sync_writes: usual.sync_writes,
            page_cache: if self.buffered { PageCache::Emptied } else { usual.page_cache },
            nowait: usual.nowait,
            jobs: self.jobs.unwrap_or(usual.jobs),
            cores: self.pin.clone(),
            method: self.method.unwrap_or(usual.method),
            batch: self.batch,
            submit: self.submit,
            waiting: self.wait,
            tune: false,
            timeout: self
                .timeout
                .map_or(usual.timeout, |timeout| Duration::from_nanos(timeout.0.as_ns())),
            probing: match self.probe_interval {
                _ if self.no_probes => Probing::Off,
                Some(interval) => Probing::Every(Duration::from_nanos(interval.0.as_ns())),
                None => Probing::Auto,
            },
        }
    }
}

/// Why `option` is refused for a simulated target; `instead` says what to name for it.
pub(crate) fn for_real_targets(option: &str, instead: &str) -> Failure {
    let mut help = format!("leave it out, or name {instead}");
    if matches!(option, "--write" | "--size") {
        // Without a slash it is taken for the name of a simulated device.
        help += "; a file that is to be made is named with its path, such as ./NAME";
    }
    Failure::usage(format!("`{option}` is for real targets")).with_help(help)
}

/// A number above zero, or `all`.
fn batch(text: &str) -> Result<u32, String> {
    if text == "all" {
        return Ok(ALL);
    }
    let number = text.parse().ok().filter(|number| (1..ALL).contains(number));
    number.ok_or_else(|| "it must be a whole number above zero, or all".to_owned())
}

fn batch_text(batch: u32) -> String {
    if batch == ALL { "all".to_owned() } else { batch.to_string() }
}

/// Whether `target` names something real: `null:`, a path, or a file that is no configuration.
pub(crate) fn is_real(target: &str) -> bool {
    // A word alone may be the name of a simulated device: also that of a directory beside it.
    let is_path = target.contains('/')
        || Path::new(target).metadata().is_ok_and(|found| !found.file_type().is_dir());
    target == NULL || (is_path && !target.starts_with("sim:") && !load::is_toml(target))
}

/// Name and access of a further file.
#[cfg(target_os = "linux")]
fn pair((name, access): &mut (String, Access)) -> (&String, &mut Access) {
    (name, access)
}

/// A run on a real target, and where its workload comes from.
pub(crate) struct RealPlan {
    /// The run.
    pub(crate) run: Run,
    workload: Option<Document>,
}

impl RealPlan {
    /// The plan of `ssdyno run`, on a target that is followed by the files `more`.
    pub(crate) fn new(args: &RunArgs, more: &[String]) -> Result<RealPlan, Failure> {
        let mut plan = RealPlan::reading(args.target(), more, &args.load, args.keep)?;
        plan.run.interval = args.series_interval();
        plan.run.options = Options { tune: args.tune, ..args.real.options() };
        #[cfg(target_os = "linux")]
        plan.permit(&args.real.write)?;
        Ok(plan)
    }

    /// The plan of one side of `ssdyno compare`.
    pub(crate) fn side(
        target: &str,
        args: &CompareArgs,
        load: &LoadArgs,
    ) -> Result<RealPlan, Failure> {
        let mut plan = RealPlan::reading(target, &[], load, Keep::None)?;
        plan.run.options = args.real.options();
        #[cfg(target_os = "linux")]
        plan.permit(&args.real.write)?;
        Ok(plan)
    }

    /// Opens the target as it was consented to. To be called when everything else was found sound.
    #[cfg(target_os = "linux")]
    fn permit(&mut self, write: &WriteArgs) -> Result<(), Failure> {
        let Run { target, access, more, source, .. } = &mut self.run;
        // Of several files only those that a job changes are opened for it.
        let read_only = WriteArgs { write: false, ..write.clone() };
        let several = !more.is_empty();
        let changed = |name: &String| match &*source {
            Source::Jobs { jobs, .. } if several => fio::changes(jobs, name),
            _ => true,
        };
        for (name, access) in std::iter::once((&*target, access)).chain(more.iter_mut().map(pair)) {
            *access = if changed(name) { write } else { &read_only }.access(name)?;
        }
        Ok(())
    }

    /// A run that may only read, with what is usual for the rest.
    fn reading(
        target: &str,
        more: &[String],
        load: &LoadArgs,
        keep: Keep,
    ) -> Result<RealPlan, Failure> {
        if let Some((option, _)) = load.host.given().first() {
            return Err(Failure::usage(format!("`{option}` is for simulated targets"))
                .with_help("leave it out: here this machine is the host"));
        }
        let settings = settings(&load.set)?;
        if let Some(setting) = settings.iter().find(|s| !s.key.starts_with(overlay::WORKLOAD)) {
            return Err(Failure::usage(format!("a real target has no key `{}`", setting.key))
                .with_help("only keys of the workload can be set: workload.KEY=VALUE")
                .with_key(&setting.key)
                .at(Some(setting.place(true, "no effect on a real target"))));
        }
        let (workload, source) = plan::source(load, target, more, &settings)?;
        let run = Run {
            target: target.to_owned(),
            access: Access::ReadOnly,
            more: more.iter().map(|name| (name.clone(), Access::ReadOnly)).collect(),
            workload: load.workload(target).to_owned(),
            source,
            seed: load.seed,
            limits: Limits { until: load.until, ..Limits::default() },
            keep,
            rows_in: None,
            interval: None,
            options: Options::default(),
        };
        Ok(RealPlan { run, workload })
    }

    /// An error of the run, at its place. `exit` for what showed only under way.
    pub(crate) fn explain(&self, error: &BenchError, exit: Exit) -> Failure {
        let exit = match error {
            BenchError::Workload(error) => {
                return load::workload_failure(exit, error, self.workload.as_ref());
            }
            BenchError::Interrupted | BenchError::Unprepared => Exit::Interrupted,
            // Nothing is wrong with what was asked for.
            BenchError::Silent { .. } => Exit::Failed,
            _ => exit,
        };
        Failure::new(exit, error.to_string()).with_help(error.help())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_real_and_presets_are_not() {
        for real in ["null:", "/dev/nvme0n1", "./x", "images/a.img"] {
            assert!(is_real(real), "{real}");
        }
        for simulated in ["sim:nvme-tlc", "nvme-tlc", "sim:./x.toml", "./x.toml", "X.TOML"] {
            assert!(!is_real(simulated), "{simulated}");
        }
    }
}
