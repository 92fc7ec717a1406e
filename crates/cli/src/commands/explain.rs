//! `ssdyno explain`.

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;
use ssdyno_session::Failure;
use ssdyno_session::reference::{KeyEntry, KeyWord, below, explain, reference};

use crate::columns::{list, wrapped};
use crate::output::Output;

/// Columns before a text that belongs to a word.
const INDENT: usize = 10;

/// Keys of one name that are explained in full.
const MOST_WHOLE: usize = 4;

#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// A key of a file, a spec or a result, such as flash.channels, workload.depth, queues or
    /// latency_ns.p99; or a table [default: every key with its meaning, one per line].
    pub(crate) key: Option<String>,
}

/// Output of `explain --json`.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "Explain")]
pub(crate) struct ExplainOutput {
    /// All keys with the given name.
    keys: &'static [KeyEntry],
}

pub(crate) fn run(args: &ExplainArgs, output: Output) -> Result<(), Failure> {
    let Some(key) = &args.key else {
        return output.either(|| lines(reference().iter()), || ExplainOutput { keys: reference() });
    };
    let found = explain(key)?;
    #[derive(Serialize)]
    struct Found<'a> {
        keys: &'a [&'a KeyEntry],
    }
    let text = || match found.len() {
        0..=MOST_WHOLE => found.iter().map(|entry| text(entry)).collect::<Vec<_>>().join("\n"),
        _ => lines(found.iter().copied()),
    };
    output.either(text, || Found { keys: &found })
}

/// A line a key, for `grep`.
fn lines<'a>(entries: impl Iterator<Item = &'a KeyEntry>) -> String {
    let line = |entry: &KeyEntry| format!("{}  {}\n", entry.key, first_sentence(&entry.meaning));
    entries.map(line).collect()
}

fn text(entry: &KeyEntry) -> String {
    let mut text = format!("{}\n", entry.key);
    text.push_str(&wrapped(&entry.meaning, 2));
    text.push('\n');
    let mut fact = |name: &str, what: &str| {
        let body = wrapped(what, INDENT + 2);
        text.push_str(&format!("  {name:INDENT$}{}", body.trim_start()));
    };
    fact("files", &entry.files.join(", "));
    fact("value", &entry.form);
    // The keys of a table have defaults of their own.
    let default =
        entry.default.as_ref().filter(|value| !value.is_object()).map(ToString::to_string);
    match (default, entry.required) {
        (Some(default), _) => fact("default", &default),
        (None, true) => fact("default", "none: the file must set it"),
        (None, false) => {}
    }
    let keys: Vec<&KeyEntry> = below(entry).collect();
    let words = entry.words.iter().map(|KeyWord { word, meaning }| (&**word, &**meaning));
    let mut part = |title: &str, lines: String| {
        if !lines.is_empty() {
            text.push_str(&format!("\n  {title}\n{lines}"));
        }
    };
    part("words", list(4, words));
    let names: Vec<(&str, String)> = keys
        .iter()
        .map(|one| (one.key.rsplit('.').next().unwrap_or_default(), with_words(one)))
        .collect();
    part("keys", list(4, names.iter().map(|(name, meaning)| (*name, &**meaning))));
    let name_width = entry.presets.iter().map(|one| one.preset.len()).max().unwrap_or(0);
    let presets: Vec<(String, &str)> = (entry.presets.iter())
        .map(|one| (format!("{:name_width$}  {}", one.preset, one.value), &*one.source))
        .collect();
    part("presets", list(4, presets.iter().map(|(one, source)| (&**one, *source))));
    text
}

/// The first sentence of a key, with its words if it does not name them.
fn with_words(entry: &KeyEntry) -> String {
    let meaning = first_sentence(&entry.meaning);
    let words: Vec<&str> = entry.words.iter().map(|one| &*one.word).collect();
    match words.iter().all(|word| meaning.contains(word)) {
        true => meaning.to_owned(),
        false => format!("{meaning}: {}", words.join(", ")),
    }
}

fn first_sentence(text: &str) -> &str {
    text.split_once(". ").map_or(text, |(first, _)| first).trim_end_matches('.')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::WIDTH;

    #[test]
    fn lines_fit_a_terminal_and_say_what_is_known() {
        for entry in reference() {
            let text = text(entry);
            let long =
                text.lines().find(|line| line.chars().count() > WIDTH && line.contains("  "));
            // A value of a preset is never cut.
            let is_value = |line: &str| entry.presets.iter().any(|one| line.contains(&one.value));
            assert!(long.is_none_or(is_value), "{long:?}");
        }
        let cleaning = text(explain("ftl.cleaning").unwrap()[0]);
        for part in ["greedy", "d-choices", "Van Houdt", "presets", "nvme-tlc"] {
            let words: Vec<&str> = cleaning.split_whitespace().collect();
            assert!(words.join(" ").contains(part), "{cleaning}");
        }
    }

    #[test]
    fn the_keys_of_a_table_name_their_words() {
        let precondition = text(explain("precondition").unwrap()[0]);
        let words: Vec<&str> = precondition.split_whitespace().collect();
        assert!(words.join(" ").contains(": empty, sequential, random"), "{precondition}");
    }

    #[test]
    fn first_sentences() {
        assert_eq!(first_sentence("One. Two."), "One");
        assert_eq!(first_sentence("1.5 of it."), "1.5 of it");
    }
}
