//! The texts of the help, from `help.toml`.

use std::collections::BTreeMap;

use serde::Deserialize;

/// `help.toml`.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Help {
    pub(crate) exit_codes: String,
    pub(crate) texts: BTreeMap<String, String>,
    pub(crate) other_tools: BTreeMap<String, String>,
    pub(crate) verbs: Vec<VerbHelp>,
}

/// The help of a verb, see `help.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct VerbHelp {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) everyday: Vec<String>,
    pub(crate) below: Option<String>,
    pub(crate) examples: Vec<[String; 2]>,
}

impl Help {
    /// Reads `help.toml`, which is part of the program. The golden outputs of the help find a file that cannot be read.
    pub(crate) fn load() -> Help {
        toml::from_str(include_str!("help.toml")).unwrap_or_default()
    }
}
