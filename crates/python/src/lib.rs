//! The compiled half of the Python package `ssdyno`.
//!
//! Key parts: `task` (a run, a comparison, a sweep, a profile), `Outcome` (its result), `spread` (the designs of a sweep,
//! each by itself), `Rows` (rows as Arrow), `names` (presets and keys).
//!
//! The boundary is thin: specs come as JSON, figures go as JSON, rows go as Arrow. The other half, in
//! `python/ssdyno`, makes objects with attributes of them.
//!
//! Errors are Python's `ssdyno.Error` with `key` and `help`: see `failure`.
//!
//! While a run is under way Python's lock is released, and signals are looked at: see `watch`.
//!
//! Not here: models, statistics and file formats; they are in the crates below.

mod failure;
mod names;
mod outcome;
mod rows;
mod spread;
mod table;
mod task;
mod watch;

/// What Python imports as `ssdyno._ssdyno`.
#[pyo3::pymodule]
mod _ssdyno {
    #[pymodule_export]
    use crate::names::{check_settings, keys, presets, resolved};
    #[pymodule_export]
    use crate::outcome::Outcome;
    #[pymodule_export]
    use crate::rows::Rows;
    #[pymodule_export]
    use crate::spread::{Spread, sweep_rows, version};
    #[pymodule_export]
    use crate::task::task;
}
