//! The folder in which a run, or anything else that is measured, leaves its files.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;
use ssdyno_block::counted;
use ssdyno_figures::RunResult;
use ssdyno_record::{Recording, Rows};
use ssdyno_report::{ResultError, RunDirectory, to_json};

use crate::failure::{Failure, FailureKind};

/// A fresh directory, and the one around it if that was made for it.
#[derive(Debug)]
pub struct ResultFolder {
    run: RunDirectory,
    base: Option<PathBuf>,
}

impl ResultFolder {
    /// Makes `base/name`; the name gets a number where one is there.
    ///
    /// # Errors
    /// [`FailureKind::Unwritable`].
    pub fn create(base: &Path, name: &str) -> Result<ResultFolder, Failure> {
        let made = (!base.exists()).then(|| base.to_owned());
        let run = RunDirectory::create(base, name).map_err(|e| unwritable(&e))?;
        Ok(ResultFolder { run, base: made })
    }

    /// The directory at `path`, which is there already.
    ///
    /// # Errors
    /// [`FailureKind::Unwritable`] where it is not a directory.
    pub fn open(path: &Path) -> Result<ResultFolder, Failure> {
        let run = RunDirectory::open(path).map_err(|e| unwritable(&e))?;
        Ok(ResultFolder { run, base: None })
    }

    /// All files of a run, with its rows as `csv`, too, where that is wanted; gives the place.
    ///
    /// # Errors
    /// The first file that cannot be written; the others are there.
    pub fn write_run(
        &self,
        result: &RunResult,
        recording: &Recording,
        csv: bool,
    ) -> Result<String, ResultError> {
        self.run.write_all(result, recording.rows(), csv)?;
        Ok(self.place())
    }

    /// `report.html` and `result.json`; gives the place.
    ///
    /// # Errors
    /// The first file that cannot be written; the other is there.
    pub fn write_page(&self, page: &str, result: &impl Serialize) -> Result<String, ResultError> {
        self.run.write_figures(&to_json(result)?, page)?;
        Ok(self.place())
    }

    /// Files of which only their writer knows; gives the place.
    ///
    /// # Errors
    /// The first file that cannot be written.
    pub fn write_texts<'a>(
        &self,
        files: impl IntoIterator<Item = (String, &'a str)>,
    ) -> Result<String, ResultError> {
        for (name, text) in files {
            self.run.write_text(&name, text)?;
        }
        Ok(self.place())
    }

    /// Writes a file that `fill` fills, whole or not at all.
    ///
    /// # Errors
    /// [`ResultError::Write`]; nothing is left of the file then.
    pub fn write_file(
        &self,
        name: &str,
        fill: impl FnOnce(fs::File) -> io::Result<()>,
    ) -> Result<(), ResultError> {
        self.run.write_file(name, fill).map(drop)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.run.path()
    }

    fn place(&self) -> String {
        self.run.path().display().to_string()
    }

    /// After a run that never started. Only what is empty goes.
    pub fn remove(&self) {
        let remove = |path: &Path| {
            // It stays behind if somebody put something in; that is not an error of ours.
            let _ = fs::remove_dir(path);
        };
        remove(self.run.path());
        if let Some(base) = &self.base {
            remove(base);
        }
    }
}

/// The failure of a run whose rows did not all reach the disk.
pub fn lost_rows(recording: &Recording) -> Option<Failure> {
    let (lost, error) = recording.rows().map(Rows::lost)?;
    let error = error.filter(|_| lost > 0)?;
    let whose = counted(lost, "request", "requests");
    let message =
        format!("the rows of {whose} are lost: the disk of the results is full ({error})");
    let help = "free some space, choose another place for results, or keep less: a summary";
    Some(Failure::new(FailureKind::Unwritable, message).with_help(help))
}

/// The failure to write results.
pub fn unwritable(error: &ResultError) -> Failure {
    // The message of the library ends with its advice.
    match error {
        ResultError::Write { path, source, advice } => {
            let message = format!("cannot write {}: {source}", path.display());
            Failure::new(FailureKind::Unwritable, message).with_help(*advice)
        }
        other => Failure::new(FailureKind::Failed, other.to_string()),
    }
}
