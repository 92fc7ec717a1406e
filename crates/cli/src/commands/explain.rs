//! `ssdyno explain`.

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;
use ssdyno_session::Failure;
use ssdyno_session::reference::{KeyEntry, KeyWord, below, explain, reference};

use crate::output::Output;

/// Columns of a terminal.
const WIDTH: usize = 80;

/// Columns before a text that belongs to a word.
const INDENT: usize = 10;

/// Keys of one name that are explained in full.
const MOST_WHOLE: usize = 4;

#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// A key of a file, a spec or a result, such as flash.channels, workload.depth, queues or latency_ns.p99; or a table
    /// [default: every key with its meaning, one a line].
    pub(crate) key: Option<String>,
}

/// What `explain --json` prints.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "Explain")]
pub(crate) struct ExplainOutput {
    /// The keys of that name.
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
        (None, true) => fact("default", "none: a file must have it"),
        (None, false) => {}
    }
    let keys: Vec<&KeyEntry> = below(entry).collect();
    let words = entry.words.iter().map(|KeyWord { word, meaning }| (&**word, &**meaning));
    text.push_str(&list("words", words));
    text.push_str(&list(
        "keys",
        keys.iter().map(|one| {
            let name = one.key.rsplit('.').next().unwrap_or_default();
            (name, first_sentence(&one.meaning))
        }),
    ));
    let name_width = entry.presets.iter().map(|one| one.preset.len()).max().unwrap_or(0);
    let presets: Vec<(String, &str)> = (entry.presets.iter())
        .map(|one| (format!("{:name_width$}  {}", one.preset, one.value), &*one.source))
        .collect();
    text + &list("presets", presets.iter().map(|(one, source)| (&**one, *source)))
}

/// Words with their meanings below a title; nothing where there are none.
fn list<'a>(title: &str, entries: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let entries: Vec<_> = entries.collect();
    if entries.is_empty() {
        return String::new();
    }
    let longest = entries.iter().map(|(word, _)| word.chars().count()).max().unwrap_or(0);
    // A long value has a line for itself, so that the others keep their column.
    let width = longest.min(WIDTH / 2 - 4);
    let line = |(word, meaning): &(&str, &str)| {
        let body = wrapped(meaning, width + 6);
        match word.chars().count() {
            _ if meaning.is_empty() => format!("    {word}\n"),
            long if long > width => format!("    {word}\n{body}"),
            _ => format!("    {word:width$}  {}", body.trim_start()),
        }
    };
    let lines: String = entries.iter().map(line).collect();
    format!("\n  {title}\n{lines}")
}

/// Lines of at most [`WIDTH`] columns, `indent` columns in.
fn wrapped(text: &str, indent: usize) -> String {
    let (mut lines, mut line) = (String::new(), String::new());
    for word in text.split_whitespace() {
        if !line.is_empty() && indent + line.chars().count() + 1 + word.chars().count() > WIDTH {
            lines.push_str(&format!("{:indent$}{line}\n", ""));
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines + &format!("{:indent$}{line}\n", "")
}

fn first_sentence(text: &str) -> &str {
    text.split_once(". ").map_or(text, |(first, _)| first).trim_end_matches('.')
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn text_is_wrapped_between_words() {
        let text = wrapped(&"word ".repeat(40), 4);
        assert!(text.lines().all(|line| line.len() <= WIDTH && line.starts_with("    word")));
        assert_eq!(text.split_whitespace().count(), 40);
        assert_eq!(first_sentence("One. Two."), "One");
        assert_eq!(first_sentence("1.5 of it."), "1.5 of it");
    }
}
