//! Waiting for a task without Python's lock.

use std::time::Duration;

use pyo3::prelude::*;
use ssdyno_session::{Failure, RunPhase};
use ssdyno_task::{TaskRunner, TaskSnapshot};

/// How often signals are looked at and progress is told.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Waits until `under_way` has ended. The first exception of a signal handler (Ctrl-C) or of `progress` stops it in
/// order; the exception is given back then, and what was measured is kept.
///
/// # Errors
/// It will never end: its target does not complete requests.
pub(crate) fn watch(
    py: Python<'_>,
    under_way: &TaskRunner,
    progress: Option<&Py<PyAny>>,
) -> Result<Option<PyErr>, Failure> {
    let mut interrupt = None;
    let mut seen = RunPhase::Preparing;
    loop {
        let snapshot = py.detach(|| under_way.wait(seen, LOOK_EVERY));
        seen = snapshot.phase;
        if interrupt.is_none() {
            let told = py.check_signals().and_then(|()| tell(py, progress, &snapshot));
            if let Err(error) = told {
                under_way.stop();
                interrupt = Some(error);
            }
        }
        if let Some(hung) = under_way.hung() {
            return Err(hung);
        }
        if seen == RunPhase::Ended {
            return Ok(interrupt);
        }
    }
}

fn tell(py: Python<'_>, progress: Option<&Py<PyAny>>, snapshot: &TaskSnapshot) -> PyResult<()> {
    let Some(progress) = progress else { return Ok(()) };
    // A structure of named keys always has a JSON form.
    progress.call1(py, (serde_json::to_string(snapshot).unwrap_or_default(),)).map(drop)
}
