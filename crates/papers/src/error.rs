//! What can go wrong.

use std::fmt::Display;

use serde::de::DeserializeOwned;
use ssdyno_session::Failure;

use crate::Selector;

/// `file`, which is part of the program, is broken.
pub(crate) fn defect(file: &str, problem: impl Display) -> Failure {
    Failure::failed(format!("{file} is broken: {problem}"))
}

/// Reads `text`, the contents of `file`, which is part of the program.
pub(crate) fn parse<T: DeserializeOwned>(file: &str, text: &str) -> Result<T, Failure> {
    toml::from_str(text).map_err(|error: toml::de::Error| defect(file, error))
}

/// How files in the folder of a paper are read: `load` of the type of each, and `assumptions` where it is named. For
/// modules two folders below `src`.
macro_rules! paper_files {
    ($paper:literal: $($type:ident in $file:literal),* $(; assumptions in $assumptions:literal)?) => {
        $(impl $type {
            pub(super) fn load() -> Result<$type, ssdyno_session::Failure> {
                let text = include_str!(concat!("../../papers/", $paper, "/", $file));
                $crate::error::parse(concat!("papers/", $paper, "/", $file), text)
            }
        })*

        $(/// What the paper does not say.
        pub(crate) fn assumptions() -> Result<$crate::assumptions::Assumptions, ssdyno_session::Failure> {
            let text = include_str!(concat!("../../papers/", $paper, "/", $assumptions));
            let file = concat!("papers/", $paper, "/", $assumptions);
            $crate::error::parse(file, text)
        })?
    };
}
pub(crate) use paper_files;

/// `selector` names nothing among `selectable`. Claims are named together: there are many.
pub(crate) fn nothing(selector: &Selector, selectable: Vec<(String, String)>) -> Failure {
    let mut known: Vec<String> = Vec::new();
    for (id, _) in selectable {
        // There are about 20 claims per paper. Each of them in the message would push the
        // tables and figures out of sight.
        let id = id.find("/claims/").map_or(id.as_str(), |at| &id[..at + "/claims".len()]);
        if known.last().is_none_or(|last| last != id) {
            known.push(id.to_owned());
        }
    }
    Failure::usage(format!("`{selector}` is not a figure, table or claim of a paper"))
        .with_help(format!("use one of: {}", known.join(", ")))
}

/// The run called `run` was refused.
pub(crate) fn refused(run: &str, problem: impl Display) -> Failure {
    Failure::failed(format!("run {run}: {problem}"))
}
