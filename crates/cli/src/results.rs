//! The directory in which a verb leaves its files.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde::Serialize;
use ssdyno_result::{Keep, Recording, ResultError, RunDirectory, RunResult, to_json};
use ssdyno_session::{Failure, FailureKind};

/// Heading of the options about what is kept.
pub(crate) const HEADING: &str = "Results";

/// Where directories of runs lie if nobody says.
pub(crate) const DEFAULT: &str = "results";

/// Where files go.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = HEADING)]
pub(crate) struct ResultsArgs {
    /// Name of the directory [default: what was run, its seed and the time].
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Where directories of runs lie.
    #[arg(long, value_name = "DIR", default_value = DEFAULT)]
    pub(crate) results: PathBuf,
}

/// A parser of `--keep` that takes `words`, each the name of a [`Keep`].
pub(crate) fn keep<const N: usize>(
    words: [&'static str; N],
) -> impl TypedValueParser<Value = Keep> {
    PossibleValuesParser::new(words).try_map(|word| word.parse::<Keep>())
}

/// A fresh directory, and the one around it if that was made for it.
#[derive(Debug)]
pub(crate) struct Directory {
    run: RunDirectory,
    base: Option<PathBuf>,
}

impl Directory {
    /// Makes the directory, called as asked or else `default()`; `None` where no files are wanted.
    pub(crate) fn create(
        keep: Keep,
        args: &ResultsArgs,
        default: impl FnOnce() -> String,
    ) -> Result<Option<Directory>, Failure> {
        if keep == Keep::None {
            return Ok(None);
        }
        let name = args.name.clone().unwrap_or_else(default);
        let base = (!args.results.exists()).then(|| args.results.clone());
        let run = RunDirectory::create(&args.results, &name).map_err(|e| unwritable(&e))?;
        Ok(Some(Directory { run, base }))
    }

    /// All files of a run, with its rows as `csv`, too, where that is wanted; gives the place.
    pub(crate) fn write_run(
        &self,
        result: &RunResult,
        recording: &Recording,
        csv: bool,
    ) -> Result<String, ResultError> {
        self.run.write_all(result, recording.rows(), csv)?;
        Ok(self.place())
    }

    /// `report.html` and `result.json`; gives the place.
    pub(crate) fn write_page(
        &self,
        page: &str,
        result: &impl Serialize,
    ) -> Result<String, ResultError> {
        self.run.write_figures(&to_json(result)?, page)?;
        Ok(self.place())
    }

    /// Files of which only the verb knows; gives the place.
    pub(crate) fn write_texts<'a>(
        &self,
        files: impl IntoIterator<Item = (String, &'a str)>,
    ) -> Result<String, ResultError> {
        for (name, text) in files {
            self.run.write_text(&name, text)?;
        }
        Ok(self.place())
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        self.run.path()
    }

    fn place(&self) -> String {
        self.run.path().display().to_string()
    }

    /// After a run that never started. Only what is empty goes.
    pub(crate) fn remove(&self) {
        let remove = |path: &Path| {
            // It stays behind if somebody put something in; that is no error of ours.
            let _ = fs::remove_dir(path);
        };
        remove(self.run.path());
        if let Some(base) = &self.base {
            remove(base);
        }
    }
}

/// The failure to write results.
pub(crate) fn unwritable(error: &ResultError) -> Failure {
    // The message of the library ends with its advice.
    match error {
        ResultError::Write { path, source, advice } => {
            let message = format!("cannot write {}: {source}", path.display());
            Failure::new(FailureKind::Unwritable, message).with_help(*advice)
        }
        other => Failure::new(FailureKind::Failed, other.to_string()),
    }
}
