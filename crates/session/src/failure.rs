//! A failure: one message, its place, and the remedy.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The effect of a [`Failure`] on the run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// A run failed or is partial.
    Failed,
    /// A bound lies within the interval of its figure, or there was nothing to check: it is unknown whether the run meets it.
    Undecided,
    /// Arguments, configuration or input are wrong; nothing was run.
    Usage,
    /// Results could not be written.
    Unwritable,
    /// Interrupted by the user.
    Interrupted,
}

/// A text and a marked place in it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct FailurePlace {
    /// File, preset or argument.
    pub name: String,
    /// The full text, or some lines of the text.
    pub text: String,
    /// Bytes of `text`.
    pub span: Range<usize>,
    /// Number of the first line of `text`, from 1.
    pub first_line: usize,
    /// The note to write under the span.
    pub label: String,
    /// Whether `name` is a file.
    pub is_file: bool,
}

impl FailurePlace {
    /// Line and column of the start, both from 1; the column counts characters.
    pub fn line_and_column(&self) -> (usize, usize) {
        let before = self.text.get(..self.span.start).unwrap_or(&self.text);
        let line = before.matches('\n').count();
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count();
        (self.first_line + line, column + 1)
    }
}

/// The reason why a run cannot start or failed partway.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Failure {
    /// The effect on the run.
    pub kind: FailureKind,
    /// The error, in one sentence.
    pub message: String,
    /// The remedy.
    pub help: Option<String>,
    /// The place of the error.
    pub place: Option<Box<FailurePlace>>,
    /// The file, if the error has no line in it.
    pub file: Option<String>,
    /// The key of a configuration, or of a [`RunSpec`](crate::RunSpec).
    pub key: Option<String>,
}

/// An error as a JSON object. Keys that do not apply are `null`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ErrorBody {
    /// The error, in one sentence.
    pub message: String,
    /// The remedy.
    pub help: Option<String>,
    /// The file.
    pub file: Option<String>,
    /// Its line, from 1.
    pub line: Option<usize>,
    /// The character in the line, from 1.
    pub column: Option<usize>,
    /// The key of a configuration, as `--set` takes it, or of a spec (`ssdyno schema spec`).
    pub key: Option<String>,
}

/// What the help of a run that ended early says about its figures.
const UP_TO_THAT_POINT: &str = "the figures cover the requests up to that point";

impl Failure {
    /// One with a message alone.
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Failure {
        Failure { kind, message: message.into(), help: None, place: None, file: None, key: None }
    }

    /// Something that did not work as asked ([`FailureKind::Failed`]).
    pub fn failed(message: impl Into<String>) -> Failure {
        Failure::new(FailureKind::Failed, message)
    }

    /// The request is wrong.
    pub fn usage(message: impl Into<String>) -> Failure {
        Failure::new(FailureKind::Usage, message)
    }

    /// With what to do.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Failure {
        self.help = Some(help.into());
        self
    }

    /// The same where no figures are shown: without what the help says about them.
    #[must_use]
    pub fn without_figures(mut self) -> Failure {
        let help = self.help.take().map(|help| {
            let parts = help.split("; ").filter(|part| *part != UP_TO_THAT_POINT);
            parts.collect::<Vec<_>>().join("; ")
        });
        self.help = help.filter(|help| !help.is_empty());
        self
    }

    /// With where it is.
    #[must_use]
    pub fn at(mut self, place: Option<FailurePlace>) -> Failure {
        self.place = place.map(Box::new);
        self
    }

    /// The file that is meant, where no line of it is to blame.
    #[must_use]
    pub fn in_file(mut self, file: impl Into<String>) -> Failure {
        self.file = Some(file.into());
        self
    }

    /// With the key that is wrong.
    #[must_use]
    pub fn with_key(mut self, key: impl Into<String>) -> Failure {
        self.key = Some(key.into());
        self
    }

    /// As an object of JSON.
    pub fn body(&self) -> ErrorBody {
        let file = self.place.as_ref().filter(|place| place.is_file);
        let (line, column) = file.map(|place| place.line_and_column()).unzip();
        ErrorBody {
            message: self.message.clone(),
            help: self.help.clone(),
            file: file.map(|place| place.name.clone()).or_else(|| self.file.clone()),
            line,
            column,
            key: self.key.clone(),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

/// The candidate that was probably meant: the one that ends alike, or the one with the fewest
/// typing errors, if they are few.
pub fn nearest<'a>(wanted: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let last = |key: &str| key.rsplit('.').next().unwrap_or_default().to_owned();
    let distance = |candidate: &str| {
        let whole = strsim::damerau_levenshtein(wanted, candidate);
        // A right key in the wrong table, or in none, is as near as one typing error.
        let by_last = strsim::damerau_levenshtein(&last(wanted), &last(candidate));
        whole.min(by_last + 1)
    };
    let best = candidates.into_iter().map(|c| (distance(c), c)).min_by_key(|(d, _)| *d);
    let allowed = (last(wanted).chars().count() / 3).max(1);
    best.filter(|(distance, _)| *distance <= allowed).map(|(_, candidate)| candidate)
}

/// What other programs call keys of a run: modules of Linux, and older names of tables.
const ELSEWHERE: [(&str, &str); 7] = [
    ("nvme.timeout", "host.time_limit"),
    ("nvme.io_timeout", "host.time_limit"),
    ("nvme.time_limit", "host.time_limit"),
    ("nvme_core.io_timeout", "host.time_limit"),
    ("host.timeout", "host.time_limit"),
    ("nvme.max_retries", "host.retries"),
    ("nvme_core.max_retries", "host.retries"),
];

/// What to write in place of `wanted`, which is none of the keys `known`: what was probably meant, or
/// where it is where the table of the key was divided (`ftl.mapping_cache`: `ftl.dftl.mapping_cache`).
pub(crate) fn in_place_of(wanted: &str, known: &BTreeSet<String>) -> Option<String> {
    if let Some((_, key)) = ELSEWHERE.iter().find(|(name, _)| *name == wanted) {
        return Some(format!("did you mean `{key}`?"));
    }
    let below = |key: &&String| {
        let (table, name) = wanted.rsplit_once('.')?;
        key.strip_prefix(table)?.strip_prefix('.')?.strip_suffix(name)?.strip_suffix('.').map(drop)
    };
    let below: Vec<String> =
        known.iter().filter(|key| below(key).is_some()).map(|key| format!("`{key}`")).collect();
    if !below.is_empty() {
        return Some(format!("set {}", below.join(" or ")));
    }
    let near = nearest(wanted, known.iter().map(String::as_str));
    near.map(|key| format!("did you mean `{key}`?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_speaks_of_no_figures_where_there_are_none() {
        let help = |text: &str| Failure::usage("x").with_help(text).without_figures().help;
        assert_eq!(help(UP_TO_THAT_POINT), None);
        let look = "look at the log of the server";
        assert_eq!(help(&format!("{look}; {UP_TO_THAT_POINT}")).as_deref(), Some(look));
        #[cfg(target_os = "linux")]
        {
            let gone = ssdyno_bench::BenchError::Interrupted.help();
            assert_eq!(help(&gone), None, "the two texts are one");
        }
    }

    #[test]
    fn suggestions_are_near() {
        let keys = ["flash.channels", "flash.chips_per_channel", "workload.depth"];
        assert_eq!(nearest("flash.chanels", keys), Some("flash.channels"));
        assert_eq!(nearest("depth", keys), Some("workload.depth"));
        assert_eq!(nearest("ftl.channels", keys), Some("flash.channels"));
        assert_eq!(nearest("zzzzzz", keys), None);
    }

    #[test]
    fn names_of_other_programs_lead_to_keys_that_exist() {
        for (name, key) in ELSEWHERE {
            assert!(crate::reference::explain(key).is_ok_and(|found| found[0].key == key), "{key}");
            let known = crate::reference::explain(name).is_ok_and(|found| found[0].key == name);
            assert!(!known, "{name} is a key");
        }
    }

    #[test]
    fn keys_that_are_in_tables_of_their_own_are_found_there() {
        let keys = ["ftl.bast.log_blocks", "ftl.dftl.mapping_cache", "ftl.fast.log_blocks", "x.y"];
        let known: BTreeSet<String> = keys.map(str::to_owned).into();
        for (wanted, help) in [
            ("ftl.mapping_cache", Some("set `ftl.dftl.mapping_cache`")),
            ("ftl.log_blocks", Some("set `ftl.bast.log_blocks` or `ftl.fast.log_blocks`")),
            ("x.z", Some("did you mean `x.y`?")),
            ("zzzzzz", None),
            ("nvme.timeout", Some("did you mean `host.time_limit`?")),
        ] {
            assert_eq!(in_place_of(wanted, &known).as_deref(), help, "{wanted}");
        }
    }
}
