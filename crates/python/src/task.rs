//! Comparisons, sweeps and profiles.

use std::path::PathBuf;
use std::time::SystemTime;

use pyo3::prelude::*;
use ssdyno_report::{ResultError, RunDirectory, comparison_html, to_json};
use ssdyno_session::{Document, Failure, ResultFolder, Unattended, unwritable};
use ssdyno_sweep::SweepTable;
use ssdyno_task::{PreparedTask, Task, TaskOutcome, TaskResult};

use crate::failure::{bad_json, exception};
use crate::outcome::{Outcome, Parts};
use crate::rows::Rows;
use crate::run::Place;
use crate::watch::watch;

/// Carries out a task of this kind (`compare`, `sweep`, `profile`), which `task` (JSON) describes. `progress` is called
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
    let (prepared, folder) = py.detach(|| prepare(kind, task, &place)).map_err(raised)?;
    let runner = prepared.start().map_err(raised)?;
    let interrupt = watch(py, &runner, progress.as_ref()).map_err(raised)?;
    let parts = py.detach(|| match runner.result() {
        Ok(outcome) => conclude(outcome, folder.as_ref(), csv),
        Err(failure) => {
            folder.iter().for_each(ResultFolder::remove);
            Parts { failure: Some(failure), ..Parts::default() }
        }
    });
    Outcome::new(py, parts, interrupt)
}

/// Nobody is asked: what the task does not allow is refused.
fn prepare(
    kind: &str,
    task: &str,
    place: &Place,
) -> Result<(PreparedTask, Option<ResultFolder>), Failure> {
    let value = serde_json::from_str(task).map_err(|error| bad_json("task", &error))?;
    // By its kind, not as a `Task`: errors in a tagged value have no places, and so no keys.
    let task = match kind {
        "compare" => Task::Compare(Document::parse_json("the comparison", value)?),
        "profile" => Task::Profile(Document::parse_json("the profile", value)?),
        "sweep" => Task::Sweep(Document::parse_json("the sweep", value)?),
        other => return Err(Failure::usage(format!("there is no task `{other}`"))),
    };
    let mut prepared = task.prepare(&mut Unattended)?;
    let target = task.target().unwrap_or("runs");
    let folder = place.create(|| {
        RunDirectory::default_name(target, task.kind(), task.seed(), SystemTime::now())
    })?;
    if let Some(folder) = &folder {
        prepared.keep_in(folder.path().to_owned());
    }
    Ok((prepared, folder))
}

pub(crate) fn conclude(outcome: TaskOutcome, folder: Option<&ResultFolder>, csv: bool) -> Parts {
    let TaskOutcome { result, mut failure } = outcome;
    let written = folder.map(|folder| write(&result, folder, csv)).transpose();
    let place = written.unwrap_or_else(|error| {
        failure = Some(unwritable(&error));
        None
    });
    let (json, rows) = match &result {
        TaskResult::Run(measured) => (to_json(&measured.result), None),
        TaskResult::Compare(compared) => (to_json(compared), None),
        TaskResult::Profile(profile) => (to_json(profile), None),
        TaskResult::Sweep(sweep) => {
            let table = SweepTable::of(sweep);
            (to_json(sweep), Some(Rows::of_sweep(table, sweep.rows.len())))
        }
        TaskResult::Pts(pts) => (to_json(pts), None),
        #[cfg(target_os = "linux")]
        TaskResult::Verify(report) => (to_json(report), None),
        #[cfg(target_os = "linux")]
        TaskResult::Probe(samples) => (to_json(samples), None),
    };
    let json = json.map_err(|error| failure.get_or_insert(unwritable(&error)).kind).ok();
    Parts { json, place, failure, rows }
}

fn write(result: &TaskResult, folder: &ResultFolder, csv: bool) -> Result<String, ResultError> {
    match result {
        TaskResult::Compare(compared) => {
            let page = comparison_html(&compared.results, &compared.comparisons);
            folder.write_page(&page, compared)
        }
        TaskResult::Profile(profile) => folder.write_page(&ssdyno_profile::html(profile), profile),
        TaskResult::Sweep(sweep) => ssdyno_sweep::write(sweep, folder, csv, &|_| None),
        // No function of the package asks for another one.
        _ => folder.write_texts([]),
    }
}
