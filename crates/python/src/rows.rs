//! Rows as Arrow, over the PyCapsule interface of its C data interface.

use std::sync::{Mutex, OnceLock, PoisonError};

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatch, RecordBatchIterator};
use pyo3::exceptions::PyMemoryError;
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use ssdyno_record::Recording;
use ssdyno_sweep::SweepTable;

use crate::table;

/// A table. Columns are made the first time that they are asked for; after that every reader shares them.
#[pyclass(frozen)]
pub(crate) struct Rows {
    source: Source,
    batch: OnceLock<RecordBatch>,
    count: usize,
}

/// What the columns are made of.
enum Source {
    /// Packed rows of a run. Behind a lock, because rows in a file are read through one handle.
    Run(Box<Mutex<Recording>>),
    Sweep(Box<SweepTable>),
}

impl Rows {
    /// The requests of a run.
    pub(crate) fn of_run(recording: Recording) -> Rows {
        let count = recording.rows().map_or(0, ssdyno_record::Rows::len);
        Rows { source: Source::Run(Box::new(Mutex::new(recording))), batch: OnceLock::new(), count }
    }

    /// The designs of a sweep.
    pub(crate) fn of_sweep(table: SweepTable, count: usize) -> Rows {
        Rows { source: Source::Sweep(Box::new(table)), batch: OnceLock::new(), count }
    }

    fn batch(&self) -> PyResult<&RecordBatch> {
        if let Some(batch) = self.batch.get() {
            return Ok(batch);
        }
        let made = match &self.source {
            Source::Run(recording) => {
                let recording = recording.lock().unwrap_or_else(PoisonError::into_inner);
                recording.rows().map(table::of_rows).unwrap_or_else(|| Ok(table::empty()))
            }
            Source::Sweep(sweep) => table::of_sweep(sweep),
        };
        let made =
            made.map_err(|error| PyOSError::new_err(format!("cannot read the rows: {error}")))?;
        Ok(self.batch.get_or_init(|| made))
    }
}

#[pymethods]
impl Rows {
    fn __len__(&self) -> usize {
        self.count
    }

    /// The stream that pyarrow, pandas, polars and DuckDB read. A schema that is asked for is a wish, which this
    /// producer does not fulfil, as the interface allows.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        let batch = py.detach(|| self.batch().cloned())?;
        let schema = batch.schema();
        let reader = RecordBatchIterator::new([Ok(batch)], schema);
        let stream = FFI_ArrowArrayStream::new(Box::new(reader));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
            .map_err(|error| PyMemoryError::new_err(error.to_string()))
    }
}
