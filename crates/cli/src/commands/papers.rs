//! `ssdyno papers`.

use std::path::PathBuf;
use std::time::SystemTime;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde::Serialize;
use ssdyno_block::counted;
use ssdyno_block::units::Span;
use ssdyno_figures::Keep;
use ssdyno_papers::{
    CacheCounts, HostsOptions, PapersOptions, PapersReport, RunCache, RunsProgress, Vary,
};
use ssdyno_report::{ResultError, RunDirectory, to_json};
use ssdyno_session::{ErrorBody, Failure, FailureKind, ResultFolder};

use crate::args::requests;
use crate::diagnose;
use crate::output::{Output, end, tell};
use crate::progress::CountMeter;
use crate::results::{HEADING, ResultsArgs, one_of, place};

/// Where runs are kept, below the directory of results.
const CACHE: &str = "papers-cache";

#[derive(Debug, Args)]
pub(crate) struct PapersArgs {
    /// A paper or a part of it: S3, S3/table5, S3/figure3, S3/claims (see `ssdyno list papers`).
    #[arg(default_value = "S3")]
    pub(crate) selector: String,
    /// A trace from the paper, such as iozone=FILE or postmark=FILE. May be repeated.
    #[arg(long, value_name = "NAME=FILE")]
    pub(crate) trace: Vec<String>,
    /// For `papers disks`: a drive file to compare with the trace of the same name. May be repeated.
    #[arg(long, value_name = "NAME=FILE")]
    pub(crate) device: Vec<String>,
    /// Directory to search for NAME.trace, which may be compressed.
    #[arg(long, value_name = "DIR")]
    pub(crate) trace_dir: Option<PathBuf>,
    /// Limit each run to this many requests, for a quick look. The cells are then not expected to match.
    #[arg(long, value_name = "N", value_parser = requests)]
    pub(crate) requests: Option<u64>,
    /// Claims to run again with other values instead of assumed values: listed (claims that depend on
    /// assumed values), all (slow), or none (claims that may depend on assumed values stay undecided).
    #[arg(long, value_name = "WHAT", default_value = "listed", value_parser = vary())]
    pub(crate) vary: Vary,
    /// Measure S4's table 4, figure 7 and ramp-up over a temporary network on this machine: network
    /// namespaces, nbd-server, workers. Needs Linux, root, and the packages iproute2 and nbd-server
    /// (docs/many_hosts.md).
    #[arg(long, conflicts_with_all = ["trace", "device", "trace_dir", "requests"])]
    pub(crate) hosts: bool,
    /// With --hosts: length of each load, at least 300ms.
    #[arg(long = "for", value_name = "TIME", default_value = "1.5s", requires = "hosts")]
    pub(crate) duration: Span,
    /// With --hosts: number of repetitions of each load, at least 3.
    #[arg(long, value_name = "N", default_value_t = 3, requires = "hosts",
          value_parser = clap::value_parser!(u32).range(3..=100))]
    pub(crate) repeat: u32,
    /// Repeat all runs. Without this option, the command reuses simulated runs of S0, S1, S2 and S4
    /// that the same program stored earlier, in `papers-cache` below the directory of --results.
    #[arg(long, help_heading = HEADING)]
    pub(crate) fresh: bool,
    /// Data to keep: all (report.json, the figures, and runs for later reuse) or none.
    #[arg(long, value_name = "WHAT", default_value = "all", help_heading = HEADING,
          value_parser = one_of::<Keep>(&["all", "none"]))]
    pub(crate) keep: Keep,
    #[command(flatten)]
    pub(crate) results: ResultsArgs,
}

impl PapersArgs {
    /// How experiments over a network are measured, if they are.
    fn hosts(&self) -> Result<Option<HostsOptions>, Failure> {
        if !self.hosts {
            return Ok(None);
        }
        let seconds = self.duration.0.as_s_f64();
        if seconds < 0.3 {
            return Err(Failure::usage("`--for` must be at least 300ms")
                .with_help("progress and CPU time are read ten times a second"));
        }
        let program = std::env::current_exe().map_err(|error| {
            let message = format!("cannot find the path of this program: {error}");
            Failure::new(FailureKind::Failed, message).with_help("start it by its full path")
        })?;
        let version = env!("CARGO_PKG_VERSION").to_owned();
        Ok(Some(HostsOptions { program, version, seconds, repeats: self.repeat }))
    }

    /// Where runs are kept, if they are.
    fn cache(&self) -> Result<RunCache, Failure> {
        if self.keep == Keep::None {
            return Ok(RunCache::default());
        }
        let Some(build) = crate::program::build() else {
            tell("note: this program's file cannot be read, so runs are not kept or reused\n");
            return Ok(RunCache::default());
        };
        let directory = self.results.results.join(CACHE);
        RunCache::open(&directory, env!("CARGO_PKG_VERSION"), &build, self.fresh)
    }
}

/// The words of `--vary`.
fn vary() -> impl TypedValueParser<Value = Vary> {
    PossibleValuesParser::new(["listed", "all", "none"]).map(|word| match word.as_str() {
        "all" => Vary::All,
        "none" => Vary::None,
        _ => Vary::Listed,
    })
}

/// Output of `papers --json`.
#[derive(Serialize, schemars::JsonSchema)]
#[schemars(title = "Papers")]
pub(crate) struct PapersOutput<'a> {
    #[serde(flatten)]
    report: &'a PapersReport,
    /// Directory of the report and its figures; `null` with `--keep none`.
    results_directory: Option<String>,
    /// The error, if the command failed.
    error: Option<ErrorBody>,
}

pub(crate) fn run(args: &PapersArgs, output: Output) -> Result<(), Failure> {
    let mut options = PapersOptions {
        trace_directory: args.trace_dir.clone(),
        requests: args.requests,
        vary: args.vary,
        hosts: args.hosts()?,
        ..PapersOptions::default()
    };
    for device in &args.device {
        options.add_device(device)?;
    }
    for trace in &args.trace {
        options.add_trace(trace)?;
    }
    // Created before the runs, so that a user without a place for results gets the error at once.
    let directory = args.results.create(args.keep, || {
        let selector = args.selector.replace('/', "-");
        RunDirectory::default_name("papers", &selector, None, SystemTime::now())
    })?;
    // After the directory of the report, which removes what it has made if the command is refused.
    options.cache =
        args.cache().inspect_err(|_| directory.iter().for_each(ResultFolder::remove))?;
    let mut meter = CountMeter::new();
    let report = ssdyno_papers::run(&args.selector, &options, &mut |p| match &p.runs {
        Some(runs) => meter.update(runs.done, runs.of, message(&args.selector, runs, &p.running)),
        None => meter.update(p.done, p.of, p.running.join(", ")),
    });
    meter.finish();
    tell_cache(&options.cache);
    let report = report.inspect_err(|_| {
        options.cache.remove_if_empty();
        directory.iter().for_each(ResultFolder::remove);
    })?;
    let mut failure = judge(&report, &options.cache);
    let place = place(directory.map(|directory| write(&directory, &report)), &mut failure);
    let text = || {
        let at = place.iter().map(|place| format!("\nResults  {place} (figures as SVG)\n"));
        report.text() + &at.collect::<String>()
    };
    let told = output.either(text, || PapersOutput {
        report: &report,
        results_directory: place.clone(),
        error: failure.as_ref().map(diagnose::body),
    });
    end(told, failure)
}

/// `S1: 212 of 940 runs, 180 kept, 4 min left; assumed: copies at 1.1 GB/s`.
fn message(selector: &str, runs: &RunsProgress, under_way: &[String]) -> String {
    let RunsProgress { done, of, cached, more_may_come, seconds_left } = *runs;
    let least = if more_may_come { "at least " } else { "" };
    let mut text = format!("{selector}: {done} of {least}{of} runs");
    if cached > 0 {
        text.push_str(&format!(", {cached} kept"));
    }
    if let Some(left) = seconds_left {
        text.push_str(&format!(", {least}{} left", time_left(left)));
    }
    under_way.iter().for_each(|what| text.push_str(&format!("; {what}")));
    text
}

/// `40 s`, `7 min`, `2.5 h`.
fn time_left(seconds: f64) -> String {
    match seconds {
        s if s < 90.0 => format!("{s:.0} s"),
        s if s < 90.0 * 60.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

/// Prints the number of runs from earlier starts on standard error: the output is the same without them.
fn tell_cache(cache: &RunCache) {
    let CacheCounts { ended, cached, notes, .. } = cache.counts();
    notes.iter().for_each(|note| tell(&format!("note: {note}\n")));
    if let (Some(place), true) = (cache.directory(), cached > 0) {
        let place = place.display();
        tell(&format!("{cached} of {ended} runs came from {place}; --fresh repeats them\n"));
    }
}

fn judge(report: &PapersReport, cache: &RunCache) -> Option<Failure> {
    if report.partial && crate::progress::interrupted() {
        let help = match (cache.directory(), cache.counts().kept) {
            (Some(place), kept) if kept > 0 => format!(
                "the cells cover the requests up to that point; {} in {}; the same command continues from them",
                counted(kept, "run is kept", "runs are kept"),
                place.display()
            ),
            _ => "the cells cover the requests up to that point".to_owned(),
        };
        return Some(Failure::new(FailureKind::Interrupted, "interrupted").with_help(help));
    }
    let off: Vec<&str> = report.mismatches().map(|cell| cell.id.as_str()).collect();
    if !off.is_empty() {
        let message = format!("{} cells should match but do not: {}", off.len(), off.join(", "));
        return Some(
            Failure::new(FailureKind::Failed, message)
                .with_help("please report this; the corrected model has changed"),
        );
    }
    None
}

/// A file for each figure, and `report.json`.
fn write(directory: &ResultFolder, report: &PapersReport) -> Result<String, ResultError> {
    let json = to_json(report)?;
    let figures = report.figures.iter().map(|f| (f.id.replace('/', "-") + ".svg", f.svg.as_str()));
    directory.write_texts(figures.chain([("report.json".to_owned(), json.as_str())]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_says_what_is_known() {
        let first = RunsProgress {
            done: 3,
            of: 84,
            cached: 0,
            more_may_come: true,
            seconds_left: Some(40.2),
        };
        assert_eq!(message("S1", &first, &[]), "S1: 3 of at least 84 runs, at least 40 s left");
        let again =
            RunsProgress { cached: 2, more_may_come: false, seconds_left: Some(6000.0), ..first };
        let under_way = ["assumed: copies at 1.1 GB/s".to_owned()];
        assert_eq!(
            message("S1", &again, &under_way),
            "S1: 3 of 84 runs, 2 kept, 1.7 h left; assumed: copies at 1.1 GB/s"
        );
        assert_eq!(time_left(119.0), "2 min");
    }
}
