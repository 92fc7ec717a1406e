//! The errors of a workload: the problem, its place, and the remedy.

use std::fmt;
use std::path::PathBuf;

/// A line of a trace file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TraceLine {
    /// The file.
    pub file: PathBuf,
    /// Counted from 1; 0 where the file as a whole is meant.
    pub number: u64,
    /// The line as written, cut after 200 characters; bytes that are not UTF-8 are replaced.
    pub text: String,
}

/// A workload that cannot be built or that cannot go on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WorkloadError {
    /// Path of the key that is wrong, as `block_sizes[1].size`; `None` for traces.
    pub key: Option<String>,
    /// The problem: one sentence without a full stop.
    pub what: String,
    /// The remedy.
    pub help: Option<String>,
    /// Where in a trace; `None` for configurations.
    pub at: Option<Box<TraceLine>>,
}

impl WorkloadError {
    /// The value of `key` is wrong.
    pub fn of_key(
        key: impl Into<String>,
        what: impl Into<String>,
        help: impl Into<String>,
    ) -> Self {
        WorkloadError {
            key: Some(key.into()),
            what: what.into(),
            help: Some(help.into()),
            at: None,
        }
    }

    /// A trace is wrong.
    pub(crate) fn of_trace(
        what: impl Into<String>,
        help: impl Into<String>,
        at: TraceLine,
    ) -> Self {
        WorkloadError {
            key: None,
            what: what.into(),
            help: Some(help.into()),
            // The place is boxed: an error is part of every `Result` here, and a large one would
            // make the successful path of each call move more bytes.
            at: Some(Box::new(at)),
        }
    }
}

/// `file:line: key: what; help`.
impl fmt::Display for WorkloadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(at) = &self.at {
            write!(f, "{}:", at.file.display())?;
            // The form `file:line:` is the one of compilers, so that editors jump to the line. A
            // binary trace has no lines and gives the byte in its text instead.
            if at.number > 0 {
                write!(f, "{}:", at.number)?;
            }
            f.write_str(" ")?;
        }
        if let Some(key) = &self.key {
            write!(f, "`{key}`: ")?;
        }
        f.write_str(&self.what)?;
        if let Some(at) = self.at.as_ref().filter(|at| !at.text.is_empty()) {
            write!(f, " in {:?}", at.text)?;
        }
        if let Some(help) = &self.help {
            write!(f, "; {help}")?;
        }
        Ok(())
    }
}

impl std::error::Error for WorkloadError {}
