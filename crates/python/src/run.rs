//! One run.

use std::path::PathBuf;
use std::time::SystemTime;

use pyo3::prelude::*;
use ssdyno_report::{RunDirectory, series_csv, to_json};
use ssdyno_session::{
    BeginAt, Failure, Measured, Prepared, ResultFolder, RunSpec, Unattended, lost_rows, resolve,
    unwritable,
};

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

/// Carries out the run that `spec` (JSON) asks for. `progress` is called with snapshots (JSON).
#[pyfunction]
#[pyo3(signature = (spec, results=None, name=None, csv=false, progress=None))]
pub(crate) fn run(
    py: Python<'_>,
    spec: &str,
    results: Option<PathBuf>,
    name: Option<String>,
    csv: bool,
    progress: Option<Py<PyAny>>,
) -> PyResult<Outcome> {
    let place = Place { results, name };
    let prepared = py.detach(|| prepare(spec, &place));
    let (prepared, folder) = prepared.map_err(|failure| exception(py, &failure))?;
    let runner = py.detach(|| prepared.start()).map_err(|failure| exception(py, &failure))?;
    runner.begin(BeginAt::Once);
    let interrupt =
        watch(py, &runner, progress.as_ref()).map_err(|failure| exception(py, &failure))?;
    let parts = py.detach(|| match runner.result() {
        Ok(measured) => conclude(measured, folder.as_ref(), csv),
        Err(failure) => {
            folder.iter().for_each(ResultFolder::remove);
            Parts { failure: Some(failure), ..Parts::default() }
        }
    });
    Outcome::new(py, parts, interrupt)
}

/// Nobody is asked: what the spec does not allow is refused.
fn prepare(spec: &str, place: &Place) -> Result<(Prepared, Option<ResultFolder>), Failure> {
    let spec = serde_json::from_str(spec).map_err(|error| bad_json("spec", &error))?;
    let mut prepared = resolve(&RunSpec::from_json("the spec", spec)?, &mut Unattended)?;
    let (load, seed) = (prepared.load(), prepared.asked().seed);
    let default =
        || RunDirectory::default_name(&prepared.name(), load, Some(seed), SystemTime::now());
    let folder = place.create(default)?;
    if let Some(folder) = &folder {
        prepared.keep_rows_in(folder.path().to_owned());
    }
    Ok((prepared, folder))
}

/// Writes what was measured, if that is wanted.
fn conclude(measured: Measured, folder: Option<&ResultFolder>, csv: bool) -> Parts {
    let Measured { result, recording, mut failure, .. } = measured;
    let write = |folder: &ResultFolder| {
        let series = csv.then(|| ("series.csv".to_owned(), series_csv(&result)));
        folder.write_texts(series.iter().map(|(name, text)| (name.clone(), text.as_str())))?;
        folder.write_run(&result, &recording, csv)
    };
    let written = folder.map(write).transpose();
    failure = lost_rows(&recording).or(failure);
    // An interrupt explains more than its consequences; a lost result is worse than the rest.
    let place = written.unwrap_or_else(|error| {
        failure = Some(unwritable(&error));
        None
    });
    let json =
        to_json(&result).map_err(|error| failure.get_or_insert(unwritable(&error)).kind).ok();
    let rows = recording.rows().is_some().then(|| Rows::of_run(recording));
    Parts { json, place, failure, rows }
}
