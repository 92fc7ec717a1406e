//! Bounds that decide the exit code, and their report for build servers.

use std::path::PathBuf;

use clap::Args;
use ssdyno_session::{Failure, FailureKind};
use ssdyno_task::{Gate, gate_failure, junit};

/// Heading of the options.
pub(crate) const HEADING: &str = "Bounds";

/// Where bounds are reported.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = HEADING)]
pub(crate) struct JunitArgs {
    /// Write the bounds and their verdicts to this file as JUnit XML: a broken bound is a failure, an
    /// undecided bound is an error.
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
}

impl JunitArgs {
    /// A report without bounds would say that all is well.
    pub(crate) fn check(&self, bounds: usize, option: &str) -> Result<(), Failure> {
        if self.junit.is_some() && bounds == 0 {
            return Err(Failure::usage("`--junit` reports bounds, but the command has no bound")
                .with_help(format!("add `{option}`, or leave it out")));
        }
        Ok(())
    }

    /// Writes the report of `gates`, which are those of `suite`; gives why the verb is not a success.
    pub(crate) fn conclude(&self, suite: &str, gates: &[Gate]) -> Option<Failure> {
        let written = self.junit.as_ref().map(|path| {
            let unwritable = |error: std::io::Error| {
                let message = format!("cannot write {}: {error}", path.display());
                Failure::new(FailureKind::Unwritable, message)
                    .with_help("name a file in a directory that can be written to")
            };
            std::fs::write(path, junit(suite, gates)?).map_err(unwritable)
        });
        // A report that is missing hides the bounds from whoever reads it.
        written.and_then(Result::err).or_else(|| gate_failure(gates))
    }
}

/// The bounds, a line each.
pub(crate) fn lines(gates: &[Gate]) -> String {
    gates.iter().map(|gate| format!("Bound    {}\n", gate.line())).collect()
}
