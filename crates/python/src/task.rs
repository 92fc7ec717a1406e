//! Runs, comparisons, sweeps and profiles.

use std::path::PathBuf;

use pyo3::prelude::*;
use ssdyno_report::to_json;
use ssdyno_session::{Document, Failure, ResultFolder, RunSpec, Unattended, unwritable};
use ssdyno_sweep::SweepTable;
use ssdyno_task::{PreparedTask, Task, TaskOutcome, TaskResult};

use crate::failure::{bad_json, exception};
use crate::outcome::{Outcome, Parts};
use crate::rows::Rows;
use crate::watch::watch;

/// Where files go.
pub(crate) struct Place {
    /// Where directories of runs lie; `None`: no files.
    pub(crate) results: Option<PathBuf>,
    /// Name of the directory.
    pub(crate) name: Option<String>,
}

impl Place {
    /// Makes the directory, called as asked or else `default()`.
    pub(crate) fn create(
        &self,
        default: impl FnOnce() -> String,
    ) -> Result<Option<ResultFolder>, Failure> {
        let Some(results) = &self.results else { return Ok(None) };
        let name = self.name.clone().unwrap_or_else(default);
        ResultFolder::create(results, &name).map(Some)
    }
}

/// Carries out a task of this kind (`run`, `compare`, `sweep`, `profile`), which `task` (JSON) describes. `progress` is called
/// with snapshots (JSON).
#[pyfunction]
#[pyo3(signature = (kind, task, results=None, name=None, csv=false, progress=None))]
pub(crate) fn task(
    py: Python<'_>,
    kind: &str,
    task: &str,
    results: Option<PathBuf>,
    name: Option<String>,
    csv: bool,
    progress: Option<Py<PyAny>>,
) -> PyResult<Outcome> {
    let place = Place { results, name };
    let raised = |failure: Failure| exception(py, &failure);
    let (task, prepared, folder) = py.detach(|| prepare(kind, task, &place)).map_err(raised)?;
    let runner = prepared.start().map_err(raised)?;
    let interrupt = watch(py, &runner, progress.as_ref()).map_err(raised)?;
    let parts = py.detach(|| match runner.result() {
        Ok(outcome) => conclude(&task, outcome, folder.as_ref(), csv),
        Err(failure) => {
            folder.iter().for_each(ResultFolder::remove);
            Parts { failure: Some(failure), ..Parts::default() }
        }
    });
    Outcome::new(py, parts, interrupt)
}

/// There is no prompt: everything that the task does not allow is refused.
fn prepare(
    kind: &str,
    task: &str,
    place: &Place,
) -> Result<(Task, PreparedTask, Option<ResultFolder>), Failure> {
    let value = serde_json::from_str(task).map_err(|error| bad_json("task", &error))?;
    // By its kind, not as a `Task`: errors in a tagged value have no places, and so no keys.
    let task = match kind {
        "run" => Task::Run(Box::new(RunSpec::from_json("the spec", value)?)),
        "compare" => Task::Compare(Document::parse_json("the comparison", value)?),
        "profile" => Task::Profile(Document::parse_json("the profile", value)?),
        "sweep" => Task::Sweep(Document::parse_json("the sweep", value)?),
        other => return Err(Failure::usage(format!("there is no task `{other}`"))),
    };
    let mut prepared = task.prepare(&mut Unattended)?;
    let folder = place.create(|| task.folder_name(&prepared))?;
    if let Some(folder) = &folder {
        prepared.keep_in(folder.path().to_owned());
    }
    Ok((task, prepared, folder))
}

pub(crate) fn conclude(
    task: &Task,
    outcome: TaskOutcome,
    folder: Option<&ResultFolder>,
    csv: bool,
) -> Parts {
    let TaskOutcome { result, mut failure } = outcome;
    let written = folder.map(|folder| result.write(task, folder, csv)).transpose();
    // An interrupt explains more than its consequences; a lost result is worse than the rest.
    let place = written.unwrap_or_else(|error| {
        failure = Some(unwritable(&error));
        None
    });
    let (json, rows) = match result {
        TaskResult::Run(measured) => {
            let has_rows = measured.recording.rows().is_some();
            let json = to_json(&measured.result);
            (json, has_rows.then(|| Rows::of_run(measured.recording)))
        }
        TaskResult::Compare(compared) => (to_json(&compared), None),
        TaskResult::Profile(profile) => (to_json(&profile), None),
        TaskResult::Sweep(sweep) => {
            let table = SweepTable::of(&sweep);
            (to_json(&sweep), Some(Rows::of_sweep(table, sweep.rows.len())))
        }
        TaskResult::Pts(pts) => (to_json(&pts), None),
        TaskResult::Plan(plan) => (to_json(&plan), None),
        #[cfg(target_os = "linux")]
        TaskResult::Verify(report) => (to_json(&report), None),
        #[cfg(target_os = "linux")]
        TaskResult::Probe(samples) => (to_json(&samples), None),
    };
    let json = json.map_err(|error| failure.get_or_insert(unwritable(&error)).kind).ok();
    Parts { json, place, failure, rows }
}
