//! The designs of a sweep, each by itself, for programs that spread them over machines.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use pyo3::prelude::*;
use ssdyno_report::RunDirectory;
use ssdyno_session::{Document, Failure, FailureKind, ResultFolder, Unattended};
use ssdyno_sweep::{Sweep, SweepPlan, SweepRow};
use ssdyno_task::{Task, TaskOutcome, TaskResult};

use crate::failure::{bad_json, exception};
use crate::outcome::Outcome;
use crate::task::{Place, conclude};

/// The version of the package: rows of one version are comparable.
#[pyfunction]
pub(crate) fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

/// Runs designs of the plan (JSON), one after the other, and gives their rows (JSON).
#[pyfunction]
pub(crate) fn sweep_rows(py: Python<'_>, plan: &str, designs: Vec<u64>) -> PyResult<Vec<String>> {
    py.detach(|| rows(plan, &designs)).map_err(|failure| exception(py, &failure))
}

/// A sweep whose rows come from elsewhere.
#[pyclass(frozen)]
pub(crate) struct Spread {
    designs: u64,
    open: Mutex<Option<(Sweep, Option<ResultFolder>)>>,
}

#[pymethods]
impl Spread {
    /// The sweep of the plan (JSON). Refuses what cannot be spread over machines. The rows are on the disk as soon as they are
    /// added, if there is a folder.
    #[new]
    #[pyo3(signature = (plan, results=None, name=None))]
    fn new(
        py: Python<'_>,
        plan: &str,
        results: Option<PathBuf>,
        name: Option<String>,
    ) -> PyResult<Spread> {
        let open = py.detach(|| begin(plan, &Place { results, name }));
        let open = open.map_err(|failure| exception(py, &failure))?;
        Ok(Spread { designs: open.0.designs(), open: Mutex::new(Some(open)) })
    }

    /// How many designs there are.
    #[getter]
    fn designs(&self) -> u64 {
        self.designs
    }

    /// Adds rows (JSON) of [`sweep_rows`].
    fn add(&self, py: Python<'_>, rows: Vec<String>) -> PyResult<()> {
        py.detach(|| self.add_rows(&rows)).map_err(|failure| exception(py, &failure))
    }

    /// The result with the rows that are there.
    #[pyo3(signature = (csv=false))]
    fn finish(&self, py: Python<'_>, csv: bool) -> PyResult<Outcome> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner).take();
        let (sweep, folder) = open.ok_or_else(|| exception(py, &finished()))?;
        let parts = py.detach(|| {
            let task = Task::Sweep(Box::new(sweep.plan().clone()));
            let (result, failure) = sweep.finish();
            let outcome = TaskOutcome { result: TaskResult::Sweep(Box::new(result)), failure };
            conclude(&task, outcome, folder.as_ref(), csv)
        });
        Outcome::new(py, parts, None)
    }
}

impl Spread {
    fn add_rows(&self, rows: &[String]) -> Result<(), Failure> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let (sweep, _) = open.as_mut().ok_or_else(finished)?;
        for row in rows {
            let row: SweepRow =
                serde_json::from_str(row).map_err(|error| bad_json("row", &error))?;
            sweep.add(row)?;
        }
        Ok(())
    }
}

fn finished() -> Failure {
    Failure::usage("the sweep is finished")
}

fn begin(plan: &str, place: &Place) -> Result<(Sweep, Option<ResultFolder>), Failure> {
    let mut sweep = prepare(plan)?;
    let run = &sweep.plan().run;
    let folder = place.create(|| {
        let target = run.target.as_deref().unwrap_or("runs");
        RunDirectory::default_name(target, "sweep", Some(run.seed), SystemTime::now())
    })?;
    if let Some(folder) = &folder {
        sweep.keep_rows_in(folder.path())?;
    }
    Ok((sweep, folder))
}

fn prepare(plan: &str) -> Result<Sweep, Failure> {
    let value = serde_json::from_str(plan).map_err(|error| bad_json("plan", &error))?;
    let plan: SweepPlan = Document::parse_json("the sweep", value)?;
    let sweep = plan.prepare(&mut Unattended)?;
    sweep.check_spread()?;
    Ok(sweep)
}

fn rows(plan: &str, designs: &[u64]) -> Result<Vec<String>, Failure> {
    let sweep = prepare(plan)?;
    let row = |design: &u64| {
        let row = sweep.row(*design).ok_or_else(|| {
            Failure::new(FailureKind::Failed, format!("design {design} of the plan was not run"))
        })?;
        // In one line: `sweep --dask` reads a row a line.
        serde_json::to_string(&row).map_err(|error| bad_json("row", &error))
    };
    designs.iter().map(row).collect()
}
