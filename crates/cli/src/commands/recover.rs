//! `ssdyno recover`.

use std::path::{Path, PathBuf};

use clap::Args;
use ssdyno_figures::RunResult;
use ssdyno_record::RecoverError;
use ssdyno_report::{RunDirectory, summary_text};
use ssdyno_session::{Failure, FailureKind, unwritable};

use super::run::RunOutput;
use crate::options::in_text;
use crate::output::Output;

#[derive(Debug, Args)]
pub(crate) struct RecoverArgs {
    /// Results directory of a run that was killed, or that had no space for requests.parquet.
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,
    /// Also write the rows as requests.csv, in the order of issue.
    #[arg(long)]
    pub(crate) csv: bool,
}

pub(crate) fn run(args: &RecoverArgs, output: Output) -> Result<(), Failure> {
    let (recovered, recording) = ssdyno_record::recover(&args.directory).map_err(failure)?;
    let directory = RunDirectory::open(&args.directory).map_err(|error| unwritable(&error))?;
    let Some(rows) = recording.rows() else { return Ok(()) };
    // A run that ended has told more than its rows do.
    let own = directory.has_figures().then(|| figures(&args.directory)).transpose()?;
    match &own {
        Some(_) => directory.write_rows(rows, args.csv),
        None => directory.write_all(&recovered, Some(rows), args.csv),
    }
    .map_err(|error| unwritable(&error))?;
    let result = own.as_ref().unwrap_or(&recovered);
    let place = args.directory.display().to_string();
    if output.json {
        return output.object(&RunOutput::of(result, Some(place)));
    }
    let mut text = in_text(&summary_text(result));
    text.push_str(&format!("\nResults  {place} (open report.html)\n"));
    output.text(&text)
}

/// The figures that the run itself wrote.
fn figures(directory: &Path) -> Result<RunResult, Failure> {
    let path = directory.join("result.json");
    let broken = |error: String| {
        let message = format!("cannot read {}: {error}", path.display());
        let help =
            "move it away; `recover` then writes the figures that it can compute from the rows";
        Failure::new(FailureKind::Usage, message).with_help(help)
    };
    let text = std::fs::read_to_string(&path).map_err(|error| broken(error.to_string()))?;
    serde_json::from_str(&text).map_err(|error| broken(error.to_string()))
}

fn failure(error: RecoverError) -> Failure {
    Failure::new(FailureKind::Usage, error.to_string()).with_help(error.help())
}
