//! What can go wrong.

use ssdyno_workload::WorkloadError;

use crate::Selector;

/// Why a paper could not be re-run.
#[derive(Debug, thiserror::Error)]
pub enum PaperError {
    /// The selector names nothing.
    #[error("`{selector}` matches nothing; use one of: {known}")]
    UnknownSelector {
        /// What was written.
        selector: String,
        /// What could be written.
        known: String,
    },
    /// An option `--trace` that is not NAME=FILE with a name that some run needs.
    #[error("`{given}` is not a trace of a paper; give NAME=FILE, where NAME is one of: {known}")]
    UnknownTrace {
        /// What was written.
        given: String,
        /// The names.
        known: String,
    },
    /// An option `--device` that is not NAME=FILE.
    #[error("`{given}` is not NAME=FILE; give the file of a hard disk after the name")]
    NoDevice {
        /// What was written.
        given: String,
    },
    /// A load that cannot be built or read.
    #[error("run {run}: {error}")]
    Workload {
        /// Which run.
        run: String,
        /// What is wrong with its load.
        error: WorkloadError,
    },
    /// A run that the device refused.
    #[error("run {run}: {problem}")]
    Refused {
        /// Which run.
        run: String,
        /// What happened.
        problem: String,
    },
    /// The selector names nothing that is measured over a network.
    #[error("`{selector}` is not measured over a network")]
    NotOverNetwork {
        /// What was written.
        selector: String,
    },
    /// Experiments over a network that cannot be carried out.
    #[error("{problem}{}{help}", if help.is_empty() { "" } else { "; " })]
    Hosts {
        /// The problem.
        problem: String,
        /// What to do; may be empty.
        help: String,
    },
    /// A file of the paper or a preset that is part of the program is broken: a defect of the
    /// program, not of its use.
    #[error("{file} is broken: {problem}")]
    Defect {
        /// Which file.
        file: String,
        /// The problem.
        problem: String,
    },
}

/// `file`, which is part of the program, is broken.
pub(crate) fn defect(file: &str, problem: impl ToString) -> PaperError {
    PaperError::Defect { file: file.to_owned(), problem: problem.to_string() }
}

/// Reads `text`, the contents of `file`, which is part of the program.
pub(crate) fn parse<T: serde::de::DeserializeOwned>(
    file: &str,
    text: &str,
) -> Result<T, PaperError> {
    toml::from_str(text).map_err(|error: toml::de::Error| defect(file, error))
}

/// How files in the folder of a paper are read: `load` of the type of each, and `assumptions` where it is named. For
/// modules two folders below `src`.
macro_rules! paper_files {
    ($paper:literal: $($type:ident in $file:literal),* $(; assumptions in $assumptions:literal)?) => {
        $(impl $type {
            pub(super) fn load() -> Result<$type, $crate::PaperError> {
                let text = include_str!(concat!("../../papers/", $paper, "/", $file));
                $crate::error::parse(concat!("papers/", $paper, "/", $file), text)
            }
        })*

        $(/// What the paper does not say.
        pub(crate) fn assumptions() -> Result<$crate::assumptions::Assumptions, $crate::PaperError> {
            let text = include_str!(concat!("../../papers/", $paper, "/", $assumptions));
            let file = concat!("papers/", $paper, "/", $assumptions);
            $crate::error::parse(file, text)
        })?
    };
}
pub(crate) use paper_files;

impl PaperError {
    /// `selector` names nothing among `selectable`. Claims are named together: there are many.
    pub(crate) fn nothing(selector: &Selector, selectable: Vec<(String, String)>) -> PaperError {
        let mut known: Vec<String> = Vec::new();
        for (id, _) in selectable {
            // There are about 20 claims per paper. Each of them in the message would push the
            // tables and figures out of sight.
            let id = id.find("/claims/").map_or(id.as_str(), |at| &id[..at + "/claims".len()]);
            if known.last().is_none_or(|last| last != id) {
                known.push(id.to_owned());
            }
        }
        PaperError::UnknownSelector { selector: selector.to_string(), known: known.join(", ") }
    }
}
