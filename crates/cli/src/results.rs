//! The directory in which a verb leaves its files.

use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde::de::DeserializeOwned;
use ssdyno_figures::Keep;
use ssdyno_report::{ResultError, RunDirectory};
use ssdyno_session::{Failure, ResultFolder, unwritable};

/// Heading of the options about what is kept.
pub(crate) const HEADING: &str = "Results";

/// The default place of the directories of runs.
pub(crate) const DEFAULT: &str = "results";

/// Where files go.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = HEADING)]
pub(crate) struct ResultsArgs {
    /// Name of the results directory [default: made from the target, the seed and the time].
    #[arg(long, value_name = "NAME", value_parser = name)]
    pub(crate) name: Option<String>,
    /// Directory that contains the results directories.
    #[arg(long, value_name = "DIR", default_value = DEFAULT)]
    pub(crate) results: PathBuf,
}

/// A parser that takes `words`, each the name of a value in files.
pub(crate) fn one_of<T: DeserializeOwned + Clone + Send + Sync + 'static>(
    words: &'static [&'static str],
) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(words).try_map(|word| serde_json::from_value::<T>(word.into()))
}

/// The parser of `--name`. A name is refused before a target is made for the run, and not after it.
fn name(text: &str) -> Result<String, String> {
    match RunDirectory::is_name(text) {
        true => Ok(text.to_owned()),
        false => Err(
            "it cannot be the name of a results directory: use letters, digits, `.`, `_` and `-`; \
             `--results DIR` sets the parent directory"
                .to_owned(),
        ),
    }
}

/// The place of results that were `written`. If they could not be, `failure` says why: a lost result is worse than all
/// else.
pub(crate) fn place(
    written: Option<Result<String, ResultError>>,
    failure: &mut Option<Failure>,
) -> Option<String> {
    written.transpose().unwrap_or_else(|error| {
        *failure = Some(unwritable(&error));
        None
    })
}

impl ResultsArgs {
    /// Makes the folder, called as asked or else `default()`; `None` where no files are wanted.
    pub(crate) fn create(
        &self,
        keep: Keep,
        default: impl FnOnce() -> String,
    ) -> Result<Option<ResultFolder>, Failure> {
        if keep == Keep::None {
            return Ok(None);
        }
        let name = match &self.name {
            Some(name) => name.clone(),
            None => default(),
        };
        ResultFolder::create(&self.results, &name).map(Some)
    }
}
