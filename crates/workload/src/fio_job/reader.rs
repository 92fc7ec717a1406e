//! Reads options of a section by their names.

use std::path::Path;

use super::ini::{self, Entry, Section};
use super::values;
use crate::WorkloadError;

/// The purpose for which jobs are read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Purpose {
    /// A load that is measured.
    Load,
    /// Data that is written and checked.
    Verify,
}

/// Reads the options of one section.
pub(super) struct Reader<'a> {
    pub(super) path: &'a Path,
    pub(super) section: &'a Section,
    /// Of the option that was read last, for errors.
    pub(super) line: u64,
    /// `k` is 1000 and `kib` 1024 (`kb_base=1000`), wherever in the section that stands.
    pub(super) si_prefixes: bool,
    pub(super) purpose: Purpose,
}

/// Options whose values are times or names: `m` is a minute, and `4k` part of a name.
const NOT_SIZES: &[&str] = &[
    "directory",
    "filename",
    "latency_target",
    "latency_window",
    "ramp_time",
    "runtime",
    "start_delay",
    "startdelay",
    "thinktime",
    "thinktime_spin",
    "timeout",
    "wait_for",
];

pub(super) type Answer<T> = Result<T, WorkloadError>;

impl Reader<'_> {
    /// An error at the option that was read last.
    pub(super) fn wrong<T>(&self, what: impl Into<String>, help: impl Into<String>) -> Answer<T> {
        // The file is read again only for an error. Keeping its text in the reader for all jobs
        // would cost memory in every run that succeeds.
        let text = std::fs::read(self.path).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        Err(ini::at(self.path, self.line, &text, what, help))
    }

    /// The last entry called one of `names`: fio takes the last, and options have several names.
    pub(super) fn find(&mut self, names: &[&str]) -> Option<Entry> {
        let entry =
            // The search goes backwards because an option of the job follows those of `[global]` in
            // the list and overrides them.
            self.section.entries.iter().rev().find(|entry| names.contains(&entry.key.as_str()))?;
        self.line = entry.line;
        let mut entry = entry.clone();
        // `kb_base` changes sizes only. In a time, `m` means minutes, and in a name of a file `4k`
        // is text; a conversion would open another file.
        if self.si_prefixes && !NOT_SIZES.contains(&entry.key.as_str()) {
            entry.value = entry.value.as_deref().map(values::in_usual_base);
        }
        Some(entry)
    }

    pub(super) fn switch(&mut self, name: &str) -> Answer<bool> {
        let Some(entry) = self.find(&[name]) else { return Ok(false) };
        match values::switch(entry.value.as_deref()) {
            Some(on) => Ok(on),
            None => self.wrong(format!("`{name}` is neither 0 nor 1"), "use 0 or 1"),
        }
    }

    /// The text of an option that has one.
    pub(super) fn text(&mut self, name: &str) -> Option<String> {
        self.find(&[name])?.value
    }

    /// The value of an option, read by `parse`.
    pub(super) fn value<T>(
        &mut self,
        names: &[&str],
        expected: &str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Answer<Option<T>> {
        let Some(entry) = self.find(names) else { return Ok(None) };
        match entry.value.as_deref().and_then(parse) {
            Some(value) => Ok(Some(value)),
            None => {
                self.wrong(format!("`{}` is not {expected}", entry.key), format!("use {expected}"))
            }
        }
    }

    pub(super) fn has_si_prefixes(&mut self) -> Answer<bool> {
        let Some(entry) = self.find(&["kb_base"]) else { return Ok(false) };
        match entry.value.as_deref() {
            Some("1024") => Ok(false),
            Some("1000") => Ok(true),
            _ => self.wrong("`kb_base` is neither 1024 nor 1000", "use 1024 or 1000"),
        }
    }
}
