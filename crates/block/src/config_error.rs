//! What is wrong with a value of a configuration file.

use alloc::string::String;

/// A value that cannot be, and what to do about it: of a device, a host or a network.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{key}: {problem}")]
pub struct ConfigError {
    /// The key, as a path through the file: `flash.channels`.
    pub key: String,
    /// What is wrong with it.
    pub problem: String,
    /// What to write instead.
    pub help: String,
}

impl ConfigError {
    /// An error at `key`.
    pub fn new(
        key: impl Into<String>,
        problem: impl Into<String>,
        help: impl Into<String>,
    ) -> ConfigError {
        ConfigError { key: key.into(), problem: problem.into(), help: help.into() }
    }
}
