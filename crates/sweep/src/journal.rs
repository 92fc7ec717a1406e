//! The rows of a sweep on the disk while it goes on: `sweep.jsonl`.
//!
//! The first line is the plan, each other line a row. A line is written with one call when its design is done, so a killed
//! program loses nothing but the designs under way; a last line that is not whole is left out.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use ssdyno_session::{Failure, FailureKind};

use crate::plan::SweepPlan;
use crate::row::{SWEEP_VERSION, SweepRow};

/// Name of the file in the folder of results.
const NAME: &str = "sweep.jsonl";

#[derive(Serialize, Deserialize)]
struct Head {
    sweep_version: u32,
    plan: SweepPlan,
}

/// An open journal.
#[derive(Debug)]
pub(crate) struct Journal {
    file: File,
    path: String,
}

impl Journal {
    /// Begins the journal of `plan` in `folder`.
    pub(crate) fn create(folder: &Path, plan: &SweepPlan) -> Result<Journal, Failure> {
        let path = folder.join(NAME);
        // `create_new`: the journal of another sweep in the same folder is never
        // overwritten. It may be days of work.
        let options = OpenOptions::new().append(true).create_new(true).open(&path);
        let file = options.map_err(|error| unwritable(&path, &error))?;
        lock(&file, &path)?;
        let mut journal = Journal { file, path: path.display().to_string() };
        journal.line(&Head { sweep_version: SWEEP_VERSION, plan: plan.clone() })?;
        Ok(journal)
    }

    /// The plan and the rows of the journal in `folder`, and the journal, which goes on.
    pub(crate) fn open(folder: &Path) -> Result<(SweepPlan, Vec<SweepRow>, Journal), Failure> {
        let path = folder.join(NAME);
        let name = path.display().to_string();
        let unreadable = |error: io::Error| {
            Failure::usage(format!("cannot read {name}: {error}"))
                .with_help("give the results directory of a sweep, such as results/NAME")
        };
        let file = OpenOptions::new().read(true).append(true).open(&path);
        let file = file.map_err(|error| match error.kind() {
            // The journal goes when the result is whole.
            io::ErrorKind::NotFound if folder.join("result.json").is_file() => {
                let what = format!("{} has no unfinished sweep", folder.display());
                Failure::usage(what)
                    .with_help("its results are complete: start a new sweep to change the plan")
            }
            _ => unreadable(error),
        })?;
        lock(&file, &path)?;
        let mut lines = BufReader::new(&file);
        let (mut text, mut whole, mut number) = (Vec::new(), 0u64, 0u64);
        let (mut head, mut rows) = (None, Vec::new());
        loop {
            text.clear();
            let read = lines.read_until(b'\n', &mut text).map_err(unreadable)?;
            number += 1;
            // A last line without a line feed was cut off by a crash or a full disk.
            // Its design has no row and is run again.
            if !text.ends_with(b"\n") {
                break;
            }
            // A damaged line in the middle is an error and not skipped: nothing says how
            // many lines are affected. The user decides.
            let wrong = |error: serde_json::Error| {
                Failure::usage(format!("{name}:{number}: not a line of a sweep: {error}"))
                    .with_help("remove the line; its design is run again")
            };
            match &head {
                None => head = Some(serde_json::from_slice::<Head>(&text).map_err(wrong)?),
                Some(_) => rows.push(serde_json::from_slice(&text).map_err(wrong)?),
            }
            whole += read as u64;
        }
        let Some(Head { sweep_version, plan }) = head else {
            return Err(Failure::usage(format!("{name} has no plan"))
                .with_help("start the sweep again; no design had finished"));
        };
        // The meaning of a row may have changed with the version. Mixing rows of two versions
        // would give a table that no program can explain.
        if sweep_version != SWEEP_VERSION {
            return Err(Failure::usage(format!(
                "{name} has format version {sweep_version}; this program reads version {SWEEP_VERSION}"
            ))
            .with_help("continue with the version of ssdyno that started the sweep"));
        }
        // The part of a line that was cut off is removed. The next row would otherwise
        // be glued to it, and both would be lost.
        file.set_len(whole).map_err(|error| unwritable(&path, &error))?;
        Ok((plan, rows, Journal { file, path: name }))
    }

    /// Adds a row.
    pub(crate) fn add(&mut self, row: &SweepRow) -> Result<(), Failure> {
        self.line(row)
    }

    fn line(&mut self, value: &impl Serialize) -> Result<(), Failure> {
        let path = self.path.clone();
        let text = serde_json::to_vec(value).map_err(|error| Failure::failed(error.to_string()));
        let mut text = text?;
        // The line feed goes into the same call as the row. A crash between two
        // calls would leave a row that looks cut off.
        text.push(b'\n');
        self.file.write_all(&text).map_err(|error| unwritable(Path::new(&path), &error))
    }

    /// The file, which is no longer held.
    pub(crate) fn into_path(self) -> PathBuf {
        self.path.into()
    }
}

/// Takes a journal away once the rows are in the results.
pub(crate) fn remove(journal: &Path) {
    // A journal that stays behind does no harm: `resume` finds
    // every design in it and runs nothing.
    let _ = fs::remove_file(journal);
}

/// Two programs with one journal would each run the other's designs, and the second would cut off the line that the first one
/// writes at that moment.
fn lock(file: &File, path: &Path) -> Result<(), Failure> {
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => Err(Failure::usage(format!(
            "another program is running the sweep of {}",
            path.display()
        ))
        .with_help("wait until it ends, or interrupt it")),
        // A file system without locks is no reason to refuse the sweep.
        Ok(()) | Err(TryLockError::Error(_)) => Ok(()),
    }
}

fn unwritable(path: &Path, error: &io::Error) -> Failure {
    Failure::new(FailureKind::Unwritable, format!("cannot write {}: {error}", path.display()))
        .with_help("free some space or choose another directory, and continue with `resume`")
}

#[cfg(test)]
mod tests {
    use ssdyno_figures::KeepGoing;
    use ssdyno_session::{ResultFolder, Unattended};

    use super::*;
    use crate::Sweep;

    const PLAN: &str = r#"
        vary = ["workload.depth=1,2"]
        [run]
        target = "sim:delay-10us"
        requests = 200
    "#;

    fn begun(folder: &Path) -> Sweep {
        let plan = SweepPlan::from_toml("plan.toml", PLAN).unwrap();
        let mut sweep = plan.prepare(&mut Unattended).unwrap();
        sweep.keep_rows_in(folder).unwrap();
        sweep
    }

    #[test]
    fn two_programs_do_not_run_one_sweep() {
        let place = tempfile::tempdir().unwrap();
        let sweep = begun(place.path());
        let refused = Sweep::resume(place.path(), &mut Unattended).unwrap_err();
        assert!(refused.message.contains("another program is running"), "{refused:?}");
        drop(sweep);
        assert_eq!(Sweep::resume(place.path(), &mut Unattended).unwrap().designs(), 2);
    }

    /// The first part of a sweep wrote its table as CSV. The part that goes on renews the table without being asked again; a
    /// sweep without such a table gets none.
    #[test]
    fn a_sweep_that_goes_on_renews_its_csv() {
        for had_one in [true, false] {
            let place = tempfile::tempdir().unwrap();
            let csv = place.path().join("sweep.csv");
            drop(begun(place.path()));
            if had_one {
                fs::write(&csv, "a table without designs").unwrap();
            }
            let resumed = Sweep::resume(place.path(), &mut Unattended).unwrap();
            let (result, _) = resumed.execute(&mut |_| KeepGoing::Continue).unwrap();
            let folder = ResultFolder::open(place.path()).unwrap();
            crate::write(&result, &folder, false, &|_| None).unwrap();
            assert_eq!(csv.exists(), had_one);
            let text = fs::read_to_string(&csv).unwrap_or_default();
            assert_eq!(text.lines().count(), if had_one { 1 + 2 } else { 0 }, "{text}");
        }
    }

    #[test]
    fn a_table_that_cannot_be_written_takes_nothing_with_it() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        let sweep = begun(place.path());
        let (result, failure) = sweep.execute(&mut |_| KeepGoing::Continue).unwrap();
        assert_eq!((result.done, failure), (2, None));
        // A directory that is not empty stays, whoever runs the test.
        fs::create_dir_all(at("sweep.parquet/in the way")).unwrap();
        let folder = ResultFolder::open(place.path()).unwrap();
        let write = |result| crate::write(result, &folder, true, &|_| None);
        let error = write(&result).unwrap_err();
        assert!(error.to_string().contains("sweep.parquet"), "{error}");
        for name in ["sweep.csv", "report.html", "result.json", "sweep.jsonl"] {
            assert!(at(name).is_file(), "{name}");
        }
        fs::remove_dir_all(at("sweep.parquet")).unwrap();
        let resumed = Sweep::resume(place.path(), &mut Unattended).unwrap();
        let (again, _) = resumed.execute(&mut |_| KeepGoing::Continue).unwrap();
        assert_eq!(again, result);
        write(&again).unwrap();
        assert!(at("sweep.parquet").is_file() && !at("sweep.jsonl").exists());
        let finished = Sweep::resume(place.path(), &mut Unattended).unwrap_err();
        assert!(finished.message.ends_with("has no unfinished sweep"), "{finished:?}");
    }
}
