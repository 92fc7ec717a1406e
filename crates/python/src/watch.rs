//! Waiting for something that is under way, without Python's lock.

use std::time::Duration;

use pyo3::prelude::*;
use serde::Serialize;
use ssdyno_session::{Failure, RunPhase, Runner};
use ssdyno_task::TaskRunner;

/// How often signals are looked at and progress is told.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// What is under way.
pub(crate) trait UnderWay: Sync {
    /// How far it is.
    type Snapshot: Serialize + Send;

    /// As soon as it is in another phase than `seen`, or after `timeout`.
    fn wait(&self, seen: RunPhase, timeout: Duration) -> Self::Snapshot;

    /// The phase of a snapshot.
    fn phase(snapshot: &Self::Snapshot) -> RunPhase;

    /// Stops it in order.
    fn stop(&self);

    /// Why it will never end.
    fn hung(&self) -> Option<Failure> {
        None
    }
}

impl UnderWay for Runner {
    type Snapshot = ssdyno_session::RunSnapshot;

    fn wait(&self, seen: RunPhase, timeout: Duration) -> Self::Snapshot {
        Runner::wait(self, seen, timeout)
    }

    fn phase(snapshot: &Self::Snapshot) -> RunPhase {
        snapshot.phase
    }

    fn stop(&self) {
        Runner::stop(self);
    }
}

impl UnderWay for TaskRunner {
    type Snapshot = ssdyno_task::TaskSnapshot;

    fn wait(&self, seen: RunPhase, timeout: Duration) -> Self::Snapshot {
        TaskRunner::wait(self, seen, timeout)
    }

    fn phase(snapshot: &Self::Snapshot) -> RunPhase {
        snapshot.phase
    }

    fn stop(&self) {
        TaskRunner::stop(self);
    }

    fn hung(&self) -> Option<Failure> {
        TaskRunner::hung(self)
    }
}

/// Waits until `under_way` has ended. The first exception of a signal handler (Ctrl-C) or of `progress` stops it in
/// order; the exception is given back then, and what was measured is kept.
///
/// # Errors
/// It will never end: its target does not complete requests.
pub(crate) fn watch<R: UnderWay>(
    py: Python<'_>,
    under_way: &R,
    progress: Option<&Py<PyAny>>,
) -> Result<Option<PyErr>, Failure> {
    let mut interrupt = None;
    let mut seen = RunPhase::Preparing;
    loop {
        let snapshot = py.detach(|| under_way.wait(seen, LOOK_EVERY));
        seen = R::phase(&snapshot);
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

fn tell(py: Python<'_>, progress: Option<&Py<PyAny>>, snapshot: &impl Serialize) -> PyResult<()> {
    let Some(progress) = progress else { return Ok(()) };
    // A structure of named keys always has a JSON form.
    progress.call1(py, (serde_json::to_string(snapshot).unwrap_or_default(),)).map(drop)
}
