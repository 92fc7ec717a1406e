//! The meaning of each option of fio. What is in no group of `options.toml` is unknown and refused by name.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use serde::Deserialize;

/// The groups; `options.toml` says what each means.
pub(super) static OPTIONS: LazyLock<Options> =
    LazyLock::new(|| toml::from_str(include_str!("options.toml")).unwrap_or_default());

/// See `options.toml`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Options {
    pub(super) without_effect: BTreeSet<String>,
    pub(super) used: BTreeSet<String>,
    pub(super) verified: BTreeSet<String>,
    refused: Vec<Refused>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Refused {
    help: String,
    options: Vec<String>,
}

impl Options {
    /// What to do instead of an option that is not supported.
    pub(super) fn refusal(&self, name: &str) -> Option<&str> {
        let refused = |group: &&Refused| group.options.iter().any(|option| option == name);
        self.refused.iter().find(refused).map(|group| group.help.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_option_is_in_one_group() {
        let read: Options = toml::from_str(include_str!("options.toml")).unwrap();
        let refused = read.refused.iter().flat_map(|group| &group.options);
        let mut all: Vec<&String> =
            read.without_effect.iter().chain(&read.used).chain(refused).collect();
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count, "an option is in two groups");
        assert!(read.verified.iter().all(|name| all.contains(&name)));
    }
}
