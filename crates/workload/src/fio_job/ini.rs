//! The form of a job file: sections, inheritance from `global`, variables.

use std::fs;
use std::path::Path;

use crate::{TraceLine, WorkloadError};

/// An option as it was written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Entry {
    pub(super) key: String,
    /// `None` where only the key stands: a switch that is on.
    pub(super) value: Option<String>,
    pub(super) line: u64,
}

/// A job with the options of the `global` sections before it; a later one overrides an earlier one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Section {
    pub(super) name: String,
    pub(super) line: u64,
    pub(super) entries: Vec<Entry>,
}

/// More than any job file; keeps an endless file out.
const TEXT_BYTES_MAX: u64 = 1 << 20;

/// Reads the sections of the file at `path`.
pub(super) fn read(path: &Path) -> Result<Vec<Section>, WorkloadError> {
    let whole = |what: String, help: &str| {
        let at = TraceLine { file: path.to_owned(), number: 0, text: String::new() };
        WorkloadError::of_trace(what, help, at)
    };
    let length =
        fs::metadata(path).map_err(|e| whole(format!("cannot read it: {e}"), "check the path"));
    // The size is checked before the file is read. A trace or a device named by mistake could be
    // larger than the memory.
    if length?.len() > TEXT_BYTES_MAX {
        return Err(whole("it is larger than 1 MiB".to_owned(), "name a fio job file"));
    }
    let text =
        fs::read(path).map_err(|e| whole(format!("cannot read it: {e}"), "check the path"))?;
    // Names of files and comments need not be UTF-8. Replaced characters keep the line numbers
    // right, while a rejection could not name a line.
    let text = String::from_utf8_lossy(&text);
    let sections = parse(&text, &|name| std::env::var(name).ok())
        .map_err(|(line, what, help)| at(path, line, &text, what, help))?;
    if sections.is_empty() {
        return Err(whole("it has no job".to_owned(), "a job begins with its name in [brackets]"));
    }
    Ok(sections)
}

/// An error at line `number`.
pub(super) fn at(
    path: &Path,
    number: u64,
    text: &str,
    what: impl Into<String>,
    help: impl Into<String>,
) -> WorkloadError {
    let line = text.lines().nth(number.saturating_sub(1) as usize).unwrap_or_default();
    let line: String = line.trim().chars().take(200).collect();
    WorkloadError::of_trace(what, help, TraceLine { file: path.to_owned(), number, text: line })
}

type Broken = (u64, String, &'static str);

fn parse(text: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<Vec<Section>, Broken> {
    let mut global: Vec<Entry> = Vec::new();
    let mut sections: Vec<Section> = Vec::new();
    let mut in_global = true;
    let mut begun = false;
    for (line, number) in text.lines().zip(1u64..) {
        // A comment may follow an option.
        let line = line.split(['#', ';']).next().unwrap_or_default();
        let line = line.trim_start_matches('\u{feff}').trim();
        if line.is_empty() {
            continue;
        }
        if let Some(rest) = line.strip_prefix('[') {
            let Some((name, _)) = rest.split_once(']') else {
                return Err((number, "a section has no closing bracket".to_owned(), "add it"));
            };
            begun = true;
            // A section copies the globals that precede it. A later `[global]` applies only to
            // later jobs, as in fio, so one file can describe several groups of settings.
            in_global = name == "global";
            if !in_global {
                let entries = global.clone();
                sections.push(Section { name: name.to_owned(), line: number, entries });
            }
            continue;
        }
        if !begun {
            let what = "an option precedes the first section";
            return Err((number, what.to_owned(), "put it under [global] or a job"));
        }
        // A silently ignored include would run the job without its options. The file alone is also
        // what the result stores, and it must describe the whole load.
        if line.split_whitespace().next() == Some("include") {
            let what = "included files are not read";
            return Err((number, what.to_owned(), "copy the file's options here"));
        }
        let (key, value) = match line.split_once('=') {
            Some((key, value)) => (key.trim(), Some(expand(value.trim(), number, variable)?)),
            None => (line, None),
        };
        let entry = Entry { key: key.to_owned(), value, line: number };
        match sections.last_mut() {
            Some(section) if !in_global => section.entries.push(entry),
            _ => global.push(entry),
        }
    }
    Ok(sections)
}

/// Environment variables as `${NAME}`, and fio's own words.
fn expand(
    value: &str,
    line: u64,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<String, Broken> {
    let mut out = String::new();
    let mut rest = value;
    while let Some((before, after)) = rest.split_once("${") {
        out.push_str(before);
        let Some((name, after)) = after.split_once('}') else {
            return Err((line, "a variable has no closing brace".to_owned(), "add it"));
        };
        // An unset variable is an error. The shell rule (an empty text) could turn
        // `filename=${DISK}1` into a path that exists and that nobody meant.
        let Some(value) = variable(name) else {
            return Err((
                line,
                format!("the variable {name} is not set"),
                "set it in the environment",
            ));
        };
        out.push_str(&value);
        rest = after;
    }
    out.push_str(rest);
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    Ok(out.replace("$ncpus", &cores.to_string()).replace("$pagesize", "4096"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn none(_: &str) -> Option<String> {
        None
    }

    #[test]
    fn jobs_inherit_from_the_globals_before_them() {
        let text =
            "; comment\n[global]\nbs=4k\t; four\n\n[a]\nrw=read\nthread\n[global]\nbs=8k\n[b]\n";
        let sections = parse(text, &none).unwrap();
        let keys = |at: usize| -> Vec<(&str, Option<&str>, u64)> {
            let entries = sections[at].entries.iter();
            entries.map(|e| (e.key.as_str(), e.value.as_deref(), e.line)).collect()
        };
        assert_eq!(keys(0), [("bs", Some("4k"), 3), ("rw", Some("read"), 6), ("thread", None, 7)]);
        assert_eq!(keys(1), [("bs", Some("4k"), 3), ("bs", Some("8k"), 9)]);
        assert_eq!((sections[1].name.as_str(), sections[1].line), ("b", 10));
    }

    #[test]
    fn variables_are_put_in() {
        let known = |name: &str| (name == "DISK").then(|| "/dev/x".to_owned());
        let sections = parse("[a]\nfilename=${DISK}1\n", &known).unwrap();
        assert_eq!(sections[0].entries[0].value.as_deref(), Some("/dev/x1"));
        assert_eq!(parse("[a]\nfilename=${OTHER}\n", &known).unwrap_err().0, 2);
    }

    #[test]
    fn what_is_broken_is_named_by_its_line() {
        for (text, line) in
            [("bs=4k\n", 1), ("[a\n", 1), ("[a]\nx=${Y\n", 2), ("[a]\ninclude f\n", 2)]
        {
            assert_eq!(parse(text, &none).unwrap_err().0, line, "{text}");
        }
    }
}
