//! Files, presets and settings to configurations, with every error at its place.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;

use serde::de::DeserializeOwned;
use ssdyno_block::{ConfigError, Preset};
use ssdyno_device::presets;
use ssdyno_rig::{NETWORKS, NetworkConfig};
use ssdyno_workload::{Config as WorkloadConfig, WorkloadError};

use crate::diagnose::{Exit, Failure, Place, nearest};
use crate::host::DeviceFile;
use crate::overlay::{self, Setting};
use crate::toml_places;

/// More than any configuration; keeps an endless file out.
const TEXT_BYTES_MAX: u64 = 16 << 20;

/// A TOML text with what was set over it.
#[derive(Clone, Debug)]
pub(crate) struct Document {
    /// File or preset, for messages.
    name: String,
    is_file: bool,
    text: String,
    settings: Vec<Setting>,
}

/// A configuration and where it comes from.
#[derive(Clone, Debug)]
pub(crate) struct Loaded<T> {
    /// What the user called it.
    pub(crate) name: String,
    /// All keys.
    pub(crate) config: T,
    /// For errors that show only when it is used.
    pub(crate) document: Document,
}

/// The device that `target` names: `sim:NAME`, `sim:FILE.toml` or `FILE.toml`.
pub(crate) fn device(target: &str, settings: &[Setting]) -> Result<Loaded<DeviceFile>, Failure> {
    let name = target.strip_prefix("sim:").unwrap_or(target);
    let document = if is_toml(name) {
        Document::file(name)?
    } else if let Some(preset) = ssdyno_device::presets::find(name) {
        Document::preset(format!("sim:{name}"), preset.text)
    } else {
        return Err(unknown_device(target));
    };
    let document = document.with(settings, |s| !s.key.starts_with(overlay::WORKLOAD));
    let keys = overlay::device_keys();
    let config = match kind(&document.text) {
        Kind::Card => DeviceFile::Card(document.parse(&keys)?),
        Kind::Delay => DeviceFile::Delay(document.parse(&keys)?),
        Kind::Ssd => DeviceFile::Ssd(document.parse(&keys)?),
    };
    Ok(Loaded { name: canonical(target, name), config, document })
}

/// Kinds of device files.
enum Kind {
    Ssd,
    Card,
    Delay,
}

/// What the text describes, as far as it can be read.
fn kind(text: &str) -> Kind {
    let table: toml::Table = toml::from_str(text).unwrap_or_default();
    if table.contains_key("card") {
        Kind::Card
    } else if table.contains_key("delay") {
        Kind::Delay
    } else {
        Kind::Ssd
    }
}

/// The host that `name` names: a preset or `FILE.toml`.
pub(crate) fn host(name: &str) -> Result<Loaded<ssdyno_host::Config>, Failure> {
    let document = if is_toml(name) {
        Document::file(name)?
    } else if let Some(preset) = ssdyno_host::presets::find(name) {
        Document::preset(format!("host {name}"), preset.text)
    } else {
        let presets = ssdyno_host::presets::ALL.iter().map(|preset| preset.name);
        let help = match nearest(name, presets) {
            Some(near) => format!("did you mean `{near}`? `ssdyno list hosts` shows all"),
            None => "`ssdyno list hosts` shows all; a file.toml will do too".to_owned(),
        };
        return Err(Failure::usage(format!("there is no host `{name}`")).with_help(help));
    };
    let config: ssdyno_host::Config = document.parse(&overlay::host_keys())?;
    config.check().map_err(|error| document.impossible(&error))?;
    Ok(Loaded { name: name.to_owned(), config, document })
}

/// The network that `name` names: a preset or `FILE.toml`.
pub(crate) fn network(name: &str) -> Result<Loaded<NetworkConfig>, Failure> {
    let document = if is_toml(name) {
        Document::file(name)?
    } else if let Some(preset) = Preset::find(NETWORKS, name) {
        Document::preset(format!("network {name}"), preset.text)
    } else {
        let known: Vec<&str> = NETWORKS.iter().map(|preset| preset.name).collect();
        let help = format!("write one of {}, or a file that ends in .toml", known.join(", "));
        return Err(Failure::usage(format!("there is no network `{name}`")).with_help(help));
    };
    let config: NetworkConfig = document.parse(&overlay::network_keys())?;
    config.check().map_err(|error| document.impossible(&error))?;
    Ok(Loaded { name: name.to_owned(), config, document })
}

/// `sim:NAME`, whether or not the prefix was written.
fn canonical(target: &str, name: &str) -> String {
    if target == name && !is_toml(name) { format!("sim:{name}") } else { target.to_owned() }
}

/// True if `name` is that of a configuration file.
pub(crate) fn is_toml(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|e| e.eq_ignore_ascii_case("toml"))
}

fn unknown_device(target: &str) -> Failure {
    let presets: Vec<String> = presets::every().map(|p| format!("sim:{}", p.name)).collect();
    let help = match nearest(target, presets.iter().map(String::as_str)) {
        Some(near) => format!("did you mean `{near}`? `ssdyno list devices` shows all"),
        None => format!(
            "write one of {}, a file that ends in .toml, or the path of a real device or file",
            presets.join(", ")
        ),
    };
    Failure::usage(format!("there is no target `{target}`")).with_help(help)
}

/// The generator that `name` names (a preset or `FILE.toml`); `None` if it should be a trace.
pub(crate) fn workload(
    name: &str,
    settings: &[Setting],
) -> Result<Option<Loaded<WorkloadConfig>>, Failure> {
    let document = if let Some(text) = ssdyno_workload::presets::text(name) {
        Document::preset(format!("preset {name}"), text)
    } else if is_toml(name) {
        Document::file(name)?
    } else if Path::new(name).exists() {
        return Ok(None);
    } else {
        return Err(unknown_workload(name));
    };
    let document = document.with(settings, |s| s.key.starts_with(overlay::WORKLOAD));
    let config = document.parse(&overlay::workload_keys())?;
    Ok(Some(Loaded { name: name.to_owned(), config, document }))
}

fn unknown_workload(name: &str) -> Failure {
    if name == "pts" {
        return Failure::usage("`pts` is a test of many loads, not one")
            .with_help("`ssdyno pts TARGET` runs it; `ssdyno pts --help` tells more");
    }
    if name.contains(['/', '\\', '.']) {
        return cannot(name, "there is no such file", "check the path of the workload or trace");
    }
    let help = match nearest(name, ssdyno_workload::presets::names()) {
        Some(near) => format!("did you mean `{near}`? `ssdyno list workloads` shows all"),
        None => "`ssdyno list workloads` shows all presets; a file.toml or a trace will do too"
            .to_owned(),
    };
    Failure::usage(format!("there is no workload `{name}`")).with_help(help)
}

/// Reads a text file, with a message for whatever may be wrong with it.
pub(crate) fn read_text(path: &str) -> Result<String, Failure> {
    let bytes = read_bytes(path)?;
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let text = String::from_utf8_lossy(error.as_bytes()).into_owned();
        // The replacement character stands where the first wrong byte was: three bytes long.
        let (span, label) = (valid..valid + 3, "not UTF-8".to_owned());
        let place =
            Place { name: path.to_owned(), text, span, first_line: 1, label, is_file: true };
        cannot(path, "it is not UTF-8 text", "save it as UTF-8").at(Some(place))
    })
}

fn cannot(path: &str, why: &str, help: &str) -> Failure {
    Failure::usage(format!("cannot read {path}: {why}")).with_help(help).in_file(path)
}

/// Reads a small file, with a message for whatever may be wrong with it.
pub(crate) fn read_bytes(path: &str) -> Result<Vec<u8>, Failure> {
    let cannot = |why: &str, help: &str| cannot(path, why, help);
    let is_directory = || cannot("it is a directory", "name the file in it");
    let file = File::open(path).map_err(|error| match error.kind() {
        ErrorKind::NotFound => cannot("there is no such file", "check the path"),
        ErrorKind::PermissionDenied => cannot("permission denied", "check its permissions"),
        ErrorKind::IsADirectory => is_directory(),
        _ => cannot(&error.to_string(), "check the path"),
    })?;
    if file.metadata().is_ok_and(|data| data.is_dir()) {
        return Err(is_directory());
    }
    let mut bytes = Vec::new();
    file.take(TEXT_BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| cannot(&error.to_string(), "check the file"))?;
    if bytes.len() as u64 > TEXT_BYTES_MAX {
        return Err(cannot("it is larger than 16 MiB", "name a configuration or a result"));
    }
    Ok(bytes)
}

impl Document {
    fn file(path: &str) -> Result<Document, Failure> {
        let text = read_text(path)?;
        Ok(Document { name: path.to_owned(), is_file: true, text, settings: Vec::new() })
    }

    fn preset(name: String, text: &str) -> Document {
        Document { name, is_file: false, text: text.to_owned(), settings: Vec::new() }
    }

    fn with(mut self, settings: &[Setting], mine: impl Fn(&Setting) -> bool) -> Document {
        self.settings = settings.iter().filter(|s| mine(s)).cloned().collect();
        self
    }

    fn place(&self, span: std::ops::Range<usize>, label: impl Into<String>) -> Place {
        Place {
            name: self.name.clone(),
            text: self.text.clone(),
            span,
            first_line: 1,
            label: label.into(),
            is_file: self.is_file,
        }
    }

    fn parse<T: DeserializeOwned>(&self, known: &BTreeSet<String>) -> Result<T, Failure> {
        let mut table: toml::Table =
            toml::from_str(&self.text).map_err(|error| self.not_toml(&error))?;
        if self.settings.is_empty() {
            return toml::from_str(&self.text).map_err(|e| self.wrong_key(&e, &self.text, known));
        }
        self.settings.iter().for_each(|setting| setting.apply(&mut table));
        let merged = table.to_string();
        toml::from_str(&merged).map_err(|error| self.wrong_key(&error, &merged, known))
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
            (_, Some(key)) if message.contains("too large") || message.contains("as i128") => (
                format!("the number of `{key}` is too large"),
                format!("write at most {} there", i64::MAX),
            ),
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
            let help = match nearest(&key, known.iter().map(String::as_str)) {
                // A key of another kind of the same table, such as of a link.
                Some(near) if near == key => {
                    format!("it does not go with this kind: {}", expected())
                }
                Some(near) => format!("did you mean `{near}`?"),
                None => expected(),
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
            // A table that is missing as a whole is told of at the first one that is there.
            while !path.is_empty() && !is_known(&key) {
                path.pop();
                key = join_with(&path, &name);
            }
            let help = "add it; `ssdyno show sim:nvme-tlc` prints a complete device file";
            return self.about(&key, format!("the key `{key}` is missing"), help, "missing here");
        }
        let key = toml_places::join(&path);
        let message = words(message);
        let help = "`ssdyno show` prints a complete file; the types are in `ssdyno schema`";
        // Where several forms are allowed serde says only which.
        let expected = if message.starts_with("a ") { "expected " } else { "" };
        self.about(&key, format!("`{key}`: {expected}{message}"), help, "wrong value")
    }

    /// A complaint about the value of `key`: at the setting that decides about it, or in the text.
    pub(crate) fn about(
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
            false => format!("`{key}` is not written here: its default applies"),
        };
        failure.at(Some(self.place(span, label)))
    }

    /// An error of a part of the device.
    pub(crate) fn impossible(&self, error: &ConfigError) -> Failure {
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
    // What is quoted may be a number of 300 digits or a whole text.
    let short = |part: &str| match part.char_indices().nth(60) {
        Some((at, _)) => format!("{}…", &part[..at]),
        None => part.to_owned(),
    };
    let parts = text.split('`').enumerate();
    let parts = parts.map(|(n, part)| if n % 2 == 1 { short(part) } else { part.to_owned() });
    parts.collect::<Vec<_>>().join("`")
}

/// An error of a workload or a trace.
pub(crate) fn workload_failure(
    exit: Exit,
    error: &WorkloadError,
    document: Option<&Document>,
) -> Failure {
    let help = error.help.clone().unwrap_or_else(|| "check the workload".to_owned());
    let mut failure = match (&error.key, document, &error.at) {
        (Some(key), Some(document), _) => {
            let message = format!("`{key}`: {}", error.what);
            document.about(key, message, help, "this value")
        }
        (_, _, Some(at)) if at.number > 0 => {
            let place = Place {
                name: at.file.display().to_string(),
                text: at.text.clone(),
                span: 0..at.text.len(),
                first_line: usize::try_from(at.number).unwrap_or(usize::MAX),
                label: "this line".to_owned(),
                is_file: true,
            };
            let message = format!("{}:{}: {}", at.file.display(), at.number, error.what);
            Failure::usage(message).with_help(help).at(Some(place))
        }
        (_, _, Some(at)) => {
            let file = at.file.display().to_string();
            Failure::usage(format!("{file}: {}", error.what)).with_help(help).in_file(file)
        }
        _ => Failure::usage(error.what.clone()).with_help(help),
    };
    failure.exit = exit;
    failure.key = failure.key.or_else(|| error.key.clone());
    failure
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn outcome(text: &str, settings: &[Setting]) -> Result<ssdyno_device::Config, Failure> {
        let document = Document::preset("d.toml".into(), text).with(settings, |_| true);
        document.parse(&overlay::device_keys())
    }

    #[test]
    fn what_is_no_toml_names_key_and_remedy() {
        let good = ssdyno_device::presets::ALL[0].text;
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
        /// Whatever is in the file or the setting: a configuration, or an error that can be shown.
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
                    prop_assert!(!failure.render().is_empty());
                    prop_assert!(failure.body().line.is_none_or(|line| line >= 1));
                }
            }
        }

        /// One key of a good file garbled: the message names a line of the file.
        #[test]
        fn a_garbled_line_is_named(at in 0usize..40, junk in "[a-z=\"\\[ ]{1,8}") {
            let good = ssdyno_device::presets::ALL[0].text;
            let mut lines: Vec<&str> = good.lines().collect();
            let at = at % lines.len();
            lines[at] = &junk;
            let text = lines.join("\n");
            if let Err(failure) = outcome(&text, &[]) {
                prop_assert!(failure.place.is_some(), "{}", failure.render());
            }
        }
    }
}
