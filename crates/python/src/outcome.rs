//! What a run or a task gave.

use pyo3::prelude::*;
use ssdyno_session::Failure;

use crate::failure;
use crate::rows::Rows;

/// Figures, rows, and what went wrong. Nothing that was measured is lost to an error: both are in here.
#[pyclass(frozen)]
pub(crate) struct Outcome {
    /// The result as JSON; `None` where nothing was measured.
    #[pyo3(get)]
    json: Option<String>,
    /// Where the files lie; `None` if none were requested.
    #[pyo3(get)]
    place: Option<String>,
    /// Kind and body (JSON) of what went wrong.
    #[pyo3(get)]
    failure: Option<(&'static str, String)>,
    /// A row for each request, or for each design of a sweep.
    #[pyo3(get)]
    rows: Option<Py<Rows>>,
    /// The exception that a signal handler or the progress function raised meanwhile.
    #[pyo3(get)]
    interrupt: Option<Py<PyAny>>,
}

/// The parts of an [`Outcome`].
#[derive(Default)]
pub(crate) struct Parts {
    pub(crate) json: Option<String>,
    pub(crate) place: Option<String>,
    pub(crate) failure: Option<Failure>,
    pub(crate) rows: Option<Rows>,
}

impl Outcome {
    /// With what stopped it, if anything did.
    pub(crate) fn new(py: Python<'_>, parts: Parts, interrupt: Option<PyErr>) -> PyResult<Outcome> {
        Ok(Outcome {
            json: parts.json,
            place: parts.place,
            failure: parts.failure.as_ref().map(failure::parts),
            rows: parts.rows.map(|rows| Py::new(py, rows)).transpose()?,
            interrupt: interrupt.map(|error| error.into_value(py).into_any()),
        })
    }
}
