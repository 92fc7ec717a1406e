//! Errors of writing a result.

use std::io;
use std::path::{Path, PathBuf};

/// Why a result could not be made or written.
#[derive(Debug, thiserror::Error)]
pub enum ResultError {
    /// A figure is NaN or infinite; JSON has no form for it, and it would be wrong anyway.
    #[error("the figure `{figure}` is {value}, not a finite number; please report this as a bug")]
    NotFinite {
        /// Key of the figure, with dots: `latency_ns.mean`.
        figure: String,
        /// The value.
        value: f64,
    },
    /// A figure has no form in JSON.
    #[error("the result cannot be written as JSON: {0}")]
    Json(String),
    /// A file or directory could not be written. The part that was written has been removed.
    #[error("cannot write {}: {source}; {advice}", path.display())]
    Write {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
        /// The remedy.
        advice: &'static str,
    },
}

impl ResultError {
    /// The same where the rows are still in the file that the run kept them in.
    pub(crate) fn recoverable(self) -> ResultError {
        match self {
            ResultError::Write { path, source, .. } => ResultError::Write {
                path,
                source,
                advice: "free some space, then run `ssdyno recover` with this directory: it writes the file from requests.rows",
            },
            other => other,
        }
    }

    pub(crate) fn write(path: &Path, source: io::Error) -> ResultError {
        let advice = match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                "free some space, choose another results directory, or keep less (`keep=summary`)"
            }
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                "choose a results directory that you may write to, or keep nothing (`keep=none`)"
            }
            io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists => {
                "a file is in the way: choose another results directory"
            }
            _ => "check the results directory, or choose another one",
        };
        ResultError::Write { path: path.to_owned(), source, advice }
    }
}
