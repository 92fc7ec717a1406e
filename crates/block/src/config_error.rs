//! The error of a value of a configuration file.

use alloc::format;
use alloc::string::String;
use core::fmt::Display;
use core::ops::RangeInclusive;

/// A value that cannot be, and what to do about it: of a device, a host or a network.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{key}: {problem}")]
pub struct ConfigError {
    /// The key, as a path through the file: `flash.channels`.
    pub key: String,
    /// The problem.
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

    /// Checks that `value`, which stands at `key`, is in `range`.
    ///
    /// # Errors
    /// It is not.
    pub fn within<T: PartialOrd + Display>(
        key: impl Into<String>,
        value: T,
        range: RangeInclusive<T>,
        help: impl Into<String>,
    ) -> Result<(), ConfigError> {
        if range.contains(&value) {
            return Ok(());
        }
        let problem = format!("{value} is outside {} to {}", range.start(), range.end());
        Err(ConfigError::new(key, problem, help))
    }

    /// Checks that `span`, a time which stands at `key`, is not longer than `most`.
    ///
    /// # Errors
    /// It is longer.
    pub fn no_longer<T: PartialOrd + Display>(
        key: impl Into<String>,
        span: T,
        most: T,
        help: impl Into<String>,
    ) -> Result<(), ConfigError> {
        if span <= most {
            return Ok(());
        }
        Err(ConfigError::new(key, format!("{span} is longer than {most}"), help))
    }
}
