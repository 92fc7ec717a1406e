//! `ssdyno pts`.

use std::time::SystemTime;

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;
use ssdyno_block::units::Span;
use ssdyno_figures::Keep;
use ssdyno_pts::{PtsResult, Test};
use ssdyno_report::{ResultError, RunDirectory};
use ssdyno_session::{ErrorBody, Failure, ResultFolder};
use ssdyno_task::{PtsTask, Task, TaskOutcome, TaskResult};

use crate::args::positive_span;
use crate::diagnose;
use crate::host::HostArgs;
use crate::options::in_text_of_task;
use crate::output::{Output, end};
use crate::progress::CountMeter;
use crate::real::RealArgs;
use crate::results::{HEADING, ResultsArgs, one_of, place};
use crate::task;

#[derive(Debug, Args)]
pub(crate) struct PtsArgs {
    /// Target: sim:NAME, FILE.toml, a block device or a file. A real target is overwritten and needs
    /// --write.
    pub(crate) target: String,
    /// Test to run: iops, throughput or latency.
    #[arg(long, value_name = "TEST", default_value = "iops")]
    test: Test,
    /// Device time of each load in a round [default: 1min on a real target, as in the specification; 100ms
    /// on a simulated target].
    #[arg(long, value_name = "TIME", value_parser = positive_span, conflicts_with = "quick")]
    round: Option<Span>,
    /// Short loads: 1s on a real target, 10ms on a simulated target.
    #[arg(long)]
    quick: bool,
    /// Length of the last load of the latency test, which repeats the tracked load for the histogram of all
    /// response times; 0s omits it [default: 20 times the length of a round; 20 minutes on a real target,
    /// as in the specification].
    #[arg(long, value_name = "TIME")]
    histogram: Option<Span>,
    /// Maximum number of rounds.
    #[arg(long, value_name = "N", default_value_t = 25, value_parser = clap::value_parser!(u32).range(5..))]
    rounds_max: u32,
    /// Number of sequential overwrites of the device before the rounds; 0 for none.
    #[arg(long, value_name = "TIMES", default_value_t = 2.0)]
    precondition: f64,
    /// Percentage of the device, from its start, that the rounds use.
    #[arg(long, value_name = "N%", default_value = "100%", value_parser = percent)]
    active_range: f64,
    /// Number of outstanding requests. The latency test always uses 1.
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..))]
    depth: u32,
    /// Do not discard or format the device before the test.
    #[arg(long)]
    no_purge: bool,
    /// Random seed.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Set a key of the device; see below. May be repeated.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    #[command(flatten)]
    host: HostArgs,
    #[command(flatten)]
    real: RealArgs,
    /// Data to keep: all (result.json and report.html) or none.
    #[arg(long, value_name = "WHAT", default_value = "all", help_heading = HEADING,
          value_parser = one_of::<Keep>(&["all", "none"]))]
    keep: Keep,
    #[command(flatten)]
    results: ResultsArgs,
}

impl PtsArgs {
    fn task(&self) -> PtsTask {
        PtsTask {
            target: self.target.clone(),
            test: self.test,
            round: self.round,
            quick: self.quick,
            histogram: self.histogram,
            rounds_max: self.rounds_max,
            precondition: self.precondition,
            active_range_percent: self.active_range,
            depth: self.depth,
            purge: !self.no_purge,
            seed: self.seed,
            set: self.set.clone(),
            host: self.host.spec(),
            real: self.real.spec(),
            write: self.real.write_spec(),
        }
    }
}

/// `50%` or `50`.
fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim().parse::<f64>().ok();
    let sane = number.filter(|number| *number > 0.0 && *number <= 100.0);
    sane.ok_or_else(|| "use a percentage above 0 and up to 100, such as 75%".to_owned())
}

/// Output of `pts --json`. `result.json` has only the result.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "Pts")]
pub(crate) struct PtsOutput<'a> {
    #[serde(flatten)]
    result: &'a PtsResult,
    /// Directory of the result files; `null` with `--keep none`, or if they could not be written.
    results_directory: Option<String>,
    /// The error, if the test failed; the figures cover the time until then.
    error: Option<ErrorBody>,
}

pub(crate) fn run(args: &PtsArgs, output: Output) -> Result<(), Failure> {
    let prepared = task::prepare(&Task::Pts(Box::new(args.task())))?;
    // Created before the test, so that a user without a place for results gets the error at once.
    let directory = directory(args)?;
    let checkpoint = &mut |result: TaskResult| {
        if let (Some(directory), TaskResult::Pts(result)) = (&directory, &result) {
            // Only a safety net: what cannot be written is said at the end.
            let _ = write(directory, result);
        }
        Ok(())
    };
    let outcome = task::watch(prepared, output, Some(CountMeter::new()), Some(checkpoint));
    // Without measurements nothing is left behind.
    let outcome = outcome.inspect_err(|_| directory.iter().for_each(ResultFolder::remove))?;
    let TaskOutcome { result: TaskResult::Pts(result), mut failure } = outcome else {
        return Err(task::other_result());
    };
    let written = directory.as_ref().map(|directory| write(directory, &result));
    let place = place(written, &mut failure);
    let told = output.either(
        || {
            let mut text = in_text_of_task(&ssdyno_pts::text(&result));
            if let Some(place) = &place {
                text.push_str(&format!("\nResults  {place} (open report.html)\n"));
            }
            text
        },
        || PtsOutput {
            result: &result,
            results_directory: place.clone(),
            error: failure.as_ref().map(diagnose::body),
        },
    );
    end(told, failure)
}

fn directory(args: &PtsArgs) -> Result<Option<ResultFolder>, Failure> {
    args.results.create(args.keep, || {
        let test = format!("pts-{}", args.test);
        RunDirectory::default_name(&args.target, &test, Some(args.seed), SystemTime::now())
    })
}

fn write(directory: &ResultFolder, result: &PtsResult) -> Result<String, ResultError> {
    directory.write_page(&ssdyno_pts::html(result), result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages() {
        assert_eq!(percent("75%"), Ok(75.0));
        assert_eq!(percent("100"), Ok(100.0));
        for wrong in ["", "0%", "101%", "-5", "nan", "x%"] {
            assert!(percent(wrong).is_err(), "{wrong}");
        }
    }
}
