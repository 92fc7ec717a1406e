//! From failures to exceptions.

use pyo3::prelude::*;
use ssdyno_session::{Failure, FailureKind};

/// Kind and body of a failure, as JSON, for `ssdyno._errors.error_of`.
pub(crate) fn parts(failure: &Failure) -> (&'static str, String) {
    let kind = match failure.kind {
        FailureKind::Failed => "failed",
        FailureKind::Usage => "usage",
        FailureKind::Unwritable => "unwritable",
        FailureKind::Interrupted => "interrupted",
        FailureKind::Undecided => "undecided",
    };
    // A structure of named keys always has a JSON form.
    (kind, serde_json::to_string(&failure.body()).unwrap_or_default())
}

/// The exception that says what `failure` says. The classes are written in Python, where they have documentation.
pub(crate) fn exception(py: Python<'_>, failure: &Failure) -> PyErr {
    let made = py
        .import("ssdyno._errors")
        .and_then(|module| module.getattr("error_of"))
        .and_then(|error_of| error_of.call1(parts(failure)));
    match made {
        Ok(exception) => PyErr::from_value(exception),
        Err(error) => error,
    }
}

/// What is wrong with JSON that the other half of the package wrote.
pub(crate) fn bad_json(what: &str, error: &serde_json::Error) -> Failure {
    Failure::usage(format!("cannot read the {what}: {error}"))
        .with_help("docs/schemas has the keys of a spec and their types")
}
