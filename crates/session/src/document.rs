//! TOML texts with what was set over them, and every error at its place in them.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use ssdyno_block::ConfigError;
use toml::Table;

use crate::failure::{Failure, FailurePlace, in_place_of};
use crate::files;
use crate::overlay::Setting;
use crate::schema_keys;
use crate::toml_places;

/// A TOML text with what was set over it.
#[derive(Clone, Debug)]
pub struct Document {
    /// File or preset, for messages.
    name: String,
    is_file: bool,
    text: String,
    settings: Vec<Setting>,
}

impl Document {
    /// The content of the TOML file at `path`, and its text, for errors about its values.
    ///
    /// # Errors
    /// The file cannot be read, is not TOML, or a key of it is wrong.
    pub fn read<T: DeserializeOwned + JsonSchema>(path: &str) -> Result<(Document, T), Failure> {
        let document = Document::file(path)?;
        let read = document.parse(&schema_keys::keys(schemars::schema_for!(T).as_value()))?;
        Ok((document, read))
    }

    /// The content of a text that a user edits; messages call it `name`. `read` reads the whole
    /// text.
    ///
    /// # Errors
    /// It is not TOML, or a key is wrong.
    pub fn parse_edited<T: JsonSchema>(
        name: &str,
        text: &str,
        read: impl Fn(&str) -> Result<T, toml::de::Error>,
    ) -> Result<T, Failure> {
        let known = schema_keys::keys(schemars::schema_for!(T).as_value());
        Document::edited(name.to_owned(), text).parse_with(&known, read)
    }

    /// The value of JSON that `name` is, with the key of what is wrong with it.
    ///
    /// # Errors
    /// A key or a value that the schema does not have.
    pub fn parse_json<T>(name: &str, value: Value) -> Result<T, Failure>
    where
        T: JsonSchema + DeserializeOwned,
    {
        serde_json::from_value(value.clone()).map_err(|error| {
            // As a TOML text it has places that lead back to keys.
            let table: Option<Table> = serde_json::from_value(without_nulls(value)).ok();
            let told = table.and_then(|table| {
                let document = Document::preset(name.to_owned(), &table.to_string());
                let known = schema_keys::keys(schemars::schema_for!(T).as_value());
                document.parse::<T>(&known).err()
            });
            let failure = told.unwrap_or_else(|| {
                Failure::usage(format!("{name} is not valid: {error}"))
                    .with_help("`ssdyno schema` prints the keys and the types of their values")
            });
            Failure { place: None, ..failure }
        })
    }

    /// The text of a file.
    pub(crate) fn file(path: &str) -> Result<Document, Failure> {
        let text = files::read_text(path)?;
        Ok(Document { name: path.to_owned(), is_file: true, text, settings: Vec::new() })
    }

    /// A text that somebody writes elsewhere than in a file, and has the lines of before them.
    pub fn edited(name: String, text: &str) -> Document {
        Document { is_file: true, ..Document::preset(name, text) }
    }

    /// The text of a preset; `name` is for messages.
    pub(crate) fn preset(name: String, text: &str) -> Document {
        Document { name, is_file: false, text: text.to_owned(), settings: Vec::new() }
    }

    /// The contents of a file that are elsewhere: in the table `key` of a spec.
    pub(crate) fn contents(key: &str, table: &Table) -> Document {
        Document::preset(format!("contents.{key}"), &table.to_string())
    }

    /// `config`, which was read from this, with every key written out. Where a value does not survive that
    /// to the last digit, the text with what was set over it instead: it reads as `config` again.
    pub(crate) fn written_out<T>(&self, config: &T) -> Table
    where
        T: Serialize + DeserializeOwned + PartialEq,
    {
        let full = Table::try_from(config).ok();
        let same =
            |table: &Table| table.clone().try_into::<T>().is_ok_and(|again| again == *config);
        full.filter(same).unwrap_or_else(|| self.as_written())
    }

    /// The text as a table, with what was set over it.
    pub(crate) fn as_written(&self) -> Table {
        let mut table: Table = toml::from_str(&self.text).unwrap_or_default();
        self.settings.iter().for_each(|setting| setting.apply(&mut table));
        table
    }

    /// With those of `settings` over it that are `mine`.
    pub(crate) fn with(
        mut self,
        settings: &[Setting],
        mine: impl Fn(&Setting) -> bool,
    ) -> Document {
        self.settings = settings.iter().filter(|s| mine(s)).cloned().collect();
        self
    }

    fn place(&self, span: std::ops::Range<usize>, label: impl Into<String>) -> FailurePlace {
        FailurePlace {
            name: self.name.clone(),
            text: self.text.clone(),
            span,
            first_line: 1,
            label: label.into(),
            is_file: self.is_file,
        }
    }

    /// The configuration, of which `known` are all keys.
    pub(crate) fn parse<T: DeserializeOwned>(
        &self,
        known: &BTreeSet<String>,
    ) -> Result<T, Failure> {
        self.parse_with(known, |text| toml::from_str(text))
    }

    /// The same, where `read` reads the whole text.
    pub(crate) fn parse_with<T>(
        &self,
        known: &BTreeSet<String>,
        read: impl Fn(&str) -> Result<T, toml::de::Error>,
    ) -> Result<T, Failure> {
        let mut table: Table = toml::from_str(&self.text).map_err(|error| self.not_toml(&error))?;
        if self.settings.is_empty() {
            return read(&self.text).map_err(|e| self.wrong_key(&e, &self.text, known));
        }
        self.settings.iter().for_each(|setting| setting.apply(&mut table));
        let merged = table.to_string();
        read(&merged).map_err(|error| self.wrong_key(&error, &merged, known))
    }

    /// An error of the syntax: there is no tree of keys to look it up in.
    fn not_toml(&self, error: &toml::de::Error) -> Failure {
        let place = error.span().map(|span| self.place(span, "here"));
        let message = error.message();
        let key = error.span().and_then(|span| toml_places::key_near(&self.text, span.start));
        let (what, help) = match (message, &key) {
            ("duplicate key", Some(key)) => {
                (format!("`{key}` is written twice"), "keep one of the two".to_owned())
            }
            (_, Some(key)) if message.contains("too large") || message.contains("as i128") => {
                (format!("the number of `{key}` is too large"), format!("use at most {}", i64::MAX))
            }
            _ => (message.to_owned(), "see https://toml.io for the syntax".to_owned()),
        };
        let failure = Failure::usage(format!("{} is not valid TOML: {what}", self.name));
        let failure = failure.with_help(help).at(place);
        match key {
            Some(key) => failure.with_key(key),
            None => failure,
        }
    }

    /// An error of the schema; `text` is what was parsed.
    fn wrong_key(&self, error: &toml::de::Error, text: &str, known: &BTreeSet<String>) -> Failure {
        let mut path = error.span().map(|s| toml_places::path_at(text, &s)).unwrap_or_default();
        let message = error.message();
        let join_with =
            |path: &[String], name: &str| toml_places::join(&[path, &[name.to_owned()]].concat());
        let is_known = |key: &str| {
            known
                .iter()
                .any(|k| k.strip_prefix(key).is_some_and(|r| r.is_empty() || r.starts_with('.')))
        };
        let quoted = |prefix: &str| {
            let rest = message.strip_prefix(prefix)?;
            rest.split('`').next().map(str::to_owned)
        };
        if let Some(name) = quoted("unknown field `") {
            if path.last() != Some(&name) {
                path.push(name);
            }
            let key = toml_places::join(&path);
            let expected = message.split_once(", ").map(|(_, rest)| rest.to_owned());
            let expected = || expected.unwrap_or_else(|| "remove it".to_owned());
            let help = if known.contains(&key) {
                // A key of another kind of the same table, such as of a link.
                format!("it does not apply to this kind: {}", expected())
            } else {
                in_place_of(&key, known).unwrap_or_else(expected)
            };
            let mut failure =
                self.about(&key, format!("there is no key `{key}`"), help, "unknown key");
            if let Some(span) = toml_places::find_name(&self.text, &path) {
                failure = failure.at(Some(self.place(span, "unknown key")));
            }
            return failure;
        }
        if let Some(name) = quoted("missing field `") {
            let mut key = join_with(&path, &name);
            // If a whole table is missing, the error points at its first parent that exists.
            while !path.is_empty() && !is_known(&key) {
                path.pop();
                key = join_with(&path, &name);
            }
            let help =
                "add it; `ssdyno show` prints a complete file; the types are in `ssdyno schema`";
            return self.about(&key, format!("the key `{key}` is missing"), help, "missing here");
        }
        let key = toml_places::join(&path);
        let message = words(message);
        let help = format!(
            "`ssdyno explain {key}` gives the type and the values; `ssdyno show` prints a complete file"
        );
        // Where several forms are allowed serde says only which.
        let expected = if message.starts_with("a ") { "expected " } else { "" };
        self.about(&key, format!("`{key}`: {expected}{message}"), &help, "wrong value")
    }

    /// A complaint about the value of `key`: at the setting that decides about it, or in the text.
    pub fn about(
        &self,
        key: &str,
        message: impl Into<String>,
        help: impl Into<String>,
        label: &str,
    ) -> Failure {
        let path = toml_places::split(key);
        let failure = Failure::usage(message).with_help(help).with_key(key);
        if let Some(setting) = self.settings.iter().rev().find(|s| s.touches(&path)) {
            return failure.at(Some(setting.place(false, label)));
        }
        let Some((span, exact)) = toml_places::find(&self.text, &path) else {
            // Not written, nor is its table: the whole file is meant.
            let place = self.place(0..0, format!("`{key}` is not in this file"));
            return failure.at(Some(place));
        };
        let label = match exact || label.starts_with("missing") {
            true => label.to_owned(),
            false => format!("`{key}` is not set here: its default applies"),
        };
        failure.at(Some(self.place(span, label)))
    }

    /// An error of a part of the device.
    pub fn impossible(&self, error: &ConfigError) -> Failure {
        let message = format!("`{}`: {}", error.key, error.problem);
        self.about(&error.key, message, error.help.as_str(), "this value")
    }
}

/// A message of the reader without the names of types.
fn words(message: &str) -> String {
    const TYPES: [(&str, &str); 6] = [
        ("expected u32", "expected a whole number of 0 to 4 294 967 295"),
        ("expected u64", "expected a whole number of 0 or more"),
        ("expected f64", "expected a number"),
        ("expected struct ", "expected a table: "),
        ("wanted string or table", "expected a name in quotes"),
        ("wanted exactly 1 element, found 0 elements", "expected a name in quotes"),
    ];
    let text = TYPES.iter().fold(message.to_owned(), |text, (from, to)| text.replace(from, to));
    // The quoted value may be a number of 300 digits or a whole text.
    let short = |part: &str| match part.char_indices().nth(60) {
        Some((at, _)) => format!("{}…", &part[..at]),
        None => part.to_owned(),
    };
    let parts = text.split('`').enumerate();
    let parts = parts.map(|(n, part)| if n % 2 == 1 { short(part) } else { part.to_owned() });
    parts.collect::<Vec<_>>().join("`")
}

/// TOML has no null.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(table) => {
            let kept = table.into_iter().filter(|(_, value)| !value.is_null());
            Value::Object(kept.map(|(key, value)| (key, without_nulls(value))).collect())
        }
        Value::Array(list) => Value::Array(list.into_iter().map(without_nulls).collect()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn outcome(text: &str, settings: &[Setting]) -> Result<ssdyno_ssd::Config, Failure> {
        let document = Document::preset("d.toml".into(), text).with(settings, |_| true);
        document.parse(crate::overlay::device_keys())
    }

    #[test]
    fn what_is_no_toml_names_key_and_remedy() {
        let good = ssdyno_ssd::presets::SSDS[0].text;
        let twice = good.replacen("[ftl]\n", "[ftl]\nname = \"page\"\nname = \"page\"\n", 1);
        let large = good.replacen("channels = 8", "channels = 99999999999999999999", 1);
        for (text, key, says, help) in [
            (twice, "ftl.name", "twice", "keep one"),
            (large, "flash.channels", "too large", "at most 9223372036854775807"),
        ] {
            let body = outcome(&text, &[]).unwrap_err().body();
            assert_eq!(body.key.as_deref(), Some(key));
            assert!(body.message.contains(says), "{}", body.message);
            assert!(body.help.unwrap().contains(help));
        }
        let wrong = good.replacen("copy = \"controller\"", "copy = 1e300", 1);
        let message = outcome(&wrong, &[]).unwrap_err().body().message;
        assert!(message.contains("a name in quotes"), "{message}");
        let wrong = good.replacen("erase_time = \"5ms\"", "erase_time = 1e300", 1);
        let message = outcome(&wrong, &[]).unwrap_err().body().message;
        assert!(message.contains("a time with its unit") && message.len() < 200, "{message}");
    }

    proptest! {
        /// For any file and setting: a configuration, or an error that can be shown.
        #[test]
        fn any_text_and_any_setting_end_in_a_message(
            text in "([a-z\\[\\]{}.=\"#µ 0-9]{0,12}\n){0,6}",
            key in "(flash|ftl|host_link|x)(\\.[a-z]{1,6}){0,2}",
            value in "\\PC{0,12}",
        ) {
            let settings: Vec<Setting> =
                Setting::parse(&format!("{key}={value}")).into_iter().collect();
            for settings in [&[], settings.as_slice()] {
                if let Err(failure) = outcome(&text, settings) {
                    prop_assert!(!failure.message.is_empty());
                    prop_assert!(failure.body().line.is_none_or(|line| line >= 1));
                }
            }
        }

        /// One key of a good file garbled: the message names a line of the file.
        #[test]
        fn a_garbled_line_is_named(at in 0usize..40, junk in "[a-z=\"\\[ ]{1,8}") {
            let good = ssdyno_ssd::presets::SSDS[0].text;
            let mut lines: Vec<&str> = good.lines().collect();
            let at = at % lines.len();
            lines[at] = &junk;
            let text = lines.join("\n");
            if let Err(failure) = outcome(&text, &[]) {
                prop_assert!(failure.place.is_some(), "{failure}");
            }
        }
    }
}
