//! The directory of a run: `results/<run>/` with `result.json`, `requests.parquet`, `report.html`.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use ssdyno_figures::{RunResult, rfc3339};
use ssdyno_record::{Rows, write_csv, write_parquet};

use crate::error::ResultError;
use crate::finite::to_json;
use crate::html::report_html;

/// Directories of one name that are tried before giving up.
const MOST_OF_ONE_NAME: u32 = 10_000;

/// A fresh directory for one run.
///
/// Files are written beside their place and renamed when they are whole, so a reader never sees half a file.
/// `result.json` is written last: a directory that contains it is complete, and files missing there were not requested
/// or could not be written.
#[derive(Debug)]
pub struct RunDirectory {
    path: PathBuf,
}

impl RunDirectory {
    /// The directory of a run that ended without writing everything.
    ///
    /// # Errors
    /// [`ResultError::Write`] where it is not a directory.
    pub fn open(path: &Path) -> Result<RunDirectory, ResultError> {
        match fs::metadata(path) {
            Ok(found) if found.is_dir() => Ok(RunDirectory { path: path.to_owned() }),
            Ok(_) => Err(ResultError::write(path, io::ErrorKind::NotADirectory.into())),
            Err(error) => Err(ResultError::write(path, error)),
        }
    }

    /// Whether it has figures.
    pub fn has_figures(&self) -> bool {
        self.path.join("result.json").exists()
    }

    /// Makes `base/name`, and `base` where it is missing. An existing run is never overwritten:
    /// the name gets `-2`, `-3` and so on.
    ///
    /// # Errors
    /// [`ResultError::Write`] where the directory cannot be made.
    pub fn create(base: &Path, name: &str) -> Result<RunDirectory, ResultError> {
        fs::create_dir_all(base).map_err(|e| ResultError::write(base, e))?;
        let name = safe(name);
        for number in 1..=MOST_OF_ONE_NAME {
            let path = match number {
                1 => base.join(&name),
                n => base.join(format!("{name}-{n}")),
            };
            match fs::create_dir(&path) {
                Ok(()) => return Ok(RunDirectory { path }),
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(ResultError::write(&path, e)),
            }
        }
        let full = io::Error::from(io::ErrorKind::AlreadyExists);
        Err(ResultError::write(&base.join(name), full))
    }

    /// Whether a directory can be called `name`: it has only characters that are safe in file names everywhere, no
    /// leading dot or dash, and 120 characters at most.
    pub fn is_name(name: &str) -> bool {
        safe(name) == name
    }

    /// A name from what was run and when: `sim-config-a-randread-7-20261121T010203Z`.
    pub fn default_name(
        target: &str,
        workload: &str,
        seed: Option<u64>,
        when: SystemTime,
    ) -> String {
        let last = |text: &str| text.rsplit(['/', '\\']).next().unwrap_or_default().to_owned();
        let target = if target.contains(':') { target.to_owned() } else { last(target) };
        let seed = seed.map(|s| format!("-{s}")).unwrap_or_default();
        let seconds = when.duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
        safe(&format!("{target}-{}{seed}-{}", last(workload), utc(seconds)))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes `requests.parquet`: a row a request with `issue_ns`, `latency_ns`, `op`,
    /// `offset_bytes`, `length_bytes`, `status`, `submit_ns`, `job`, `device` and `errno`.
    ///
    /// # Errors
    /// [`ResultError::Write`]; nothing is left of the file then.
    pub fn write_parquet(&self, rows: &Rows) -> Result<PathBuf, ResultError> {
        self.write_file("requests.parquet", |file| write_parquet(rows, file))
    }

    /// Writes `requests.csv`: the columns of `requests.parquet`, in the order of issue, as a trace has to
    /// be. Takes memory for as many rows as complete in the time of the longest latency.
    ///
    /// # Errors
    /// [`ResultError::Write`]; nothing is left of the file then.
    pub fn write_csv(&self, rows: &Rows) -> Result<PathBuf, ResultError> {
        self.write_file("requests.csv", |file| write_csv(rows, file))
    }

    /// Writes everything there is: the rows, as `csv`, too, where that is wanted, `report.html` and, last,
    /// `result.json`. A file that cannot be written does not keep the others from being written.
    ///
    /// # Errors
    /// The first of: [`ResultError::NotFinite`] for a figure that JSON cannot hold, before anything is
    /// written; [`ResultError::Write`] for a file of which nothing is left.
    pub fn write_all(
        &self,
        result: &RunResult,
        rows: Option<&Rows>,
        csv: bool,
    ) -> Result<(), ResultError> {
        self.write_with(&to_json(result)?, &report_html(result), || {
            let Some(rows) = rows else { return Ok(()) };
            self.write_rows(rows, csv)
        })
    }

    /// Writes rows, as `csv`, too, where that is wanted. What they lay in before goes when they are whole.
    ///
    /// # Errors
    /// The first of: [`ResultError::Write`] for a file of which nothing is left.
    pub fn write_rows(&self, rows: &Rows, csv: bool) -> Result<(), ResultError> {
        let parquet = self.write_parquet(rows);
        let csv = if csv { self.write_csv(rows).map(drop) } else { Ok(()) };
        let written = parquet.and(csv);
        match written {
            // It is only in the way then, and may be removed by hand.
            Ok(()) => rows.remove_file().or(Ok(())),
            Err(error) if rows.are_in_file() => Err(error.recoverable()),
            Err(error) => Err(error),
        }
    }

    /// Writes the figures of a run of any kind: `report.html` with `page` and, last, `result.json` with
    /// `json`. Either is written whether or not the other can be.
    ///
    /// # Errors
    /// [`ResultError::Write`] for the first of which nothing is left.
    pub fn write_figures(&self, json: &str, page: &str) -> Result<(), ResultError> {
        self.write_with(json, page, || Ok(()))
    }

    /// As [`write_figures`](RunDirectory::write_figures), with what `large` writes.
    ///
    /// The figures are small and worth most: they take their room on the disk before the page does, and
    /// both before what is large, which may fill it. They appear last.
    fn write_with(
        &self,
        json: &str,
        page: &str,
        large: impl FnOnce() -> Result<(), ResultError>,
    ) -> Result<(), ResultError> {
        let figures = self.prepare_text("result.json", json);
        let page = self.write_text("report.html", page);
        let large = large();
        let figures = figures.and_then(Prepared::appear);
        large.and(page).and(figures).map(drop)
    }

    /// Writes a text of another kind of run, such as its page, whole or not at all; what was there
    /// under the name is replaced.
    ///
    /// # Errors
    /// [`ResultError::Write`]; what was there is kept then.
    pub fn write_text(&self, name: &str, text: &str) -> Result<PathBuf, ResultError> {
        self.prepare_text(name, text)?.appear()
    }

    fn prepare_text(&self, name: &str, text: &str) -> Result<Prepared, ResultError> {
        self.prepare(name, |mut file| {
            file.write_all(text.as_bytes())?;
            file.sync_all()
        })
    }

    /// Writes a file that `fill` fills, whole or not at all; what was there under the name is replaced.
    ///
    /// # Errors
    /// [`ResultError::Write`]; what was there is kept then.
    pub fn write_file(
        &self,
        name: &str,
        fill: impl FnOnce(File) -> io::Result<()>,
    ) -> Result<PathBuf, ResultError> {
        self.prepare(name, fill)?.appear()
    }

    /// A whole file beside its place.
    fn prepare(
        &self,
        name: &str,
        fill: impl FnOnce(File) -> io::Result<()>,
    ) -> Result<Prepared, ResultError> {
        let path = self.path.join(name);
        let prepared = Prepared { unfinished: self.path.join(format!("{name}.tmp")), path };
        match File::create(&prepared.unfinished).and_then(fill) {
            Ok(()) => Ok(prepared),
            Err(error) => Err(prepared.give_up(error)),
        }
    }
}

/// A file that is whole, but not in its place.
struct Prepared {
    path: PathBuf,
    unfinished: PathBuf,
}

impl Prepared {
    /// Puts it there.
    fn appear(self) -> Result<PathBuf, ResultError> {
        match fs::rename(&self.unfinished, &self.path) {
            Ok(()) => Ok(self.path),
            Err(error) => Err(self.give_up(error)),
        }
    }

    fn give_up(&self, error: io::Error) -> ResultError {
        // It may not even exist; the error that matters is the first one.
        let _ = fs::remove_file(&self.unfinished);
        ResultError::write(&self.path, error)
    }
}

/// Only characters that are safe in file names everywhere, no leading dot or dash, 120 at most.
fn safe(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' };
    let text: String = name.chars().map(plain).take(120).collect();
    let text = text.trim_start_matches(['.', '-']);
    if text.is_empty() { "run".into() } else { text.to_owned() }
}

/// `20261121T010203Z`: ISO 8601 basic form, which sorts and needs no escaping.
fn utc(seconds: u64) -> String {
    rfc3339(seconds).replace(['-', ':'], "")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn names_are_safe_and_say_what_was_run() {
        let when = UNIX_EPOCH + Duration::from_secs(1_795_222_923);
        let name = RunDirectory::default_name("sim:config-a", "mixes/my load.toml", Some(7), when);
        assert_eq!(name, "sim-config-a-my-load.toml-7-20261121T010203Z");
        let name = RunDirectory::default_name("/dev/nvme0n1", "randread", None, when);
        assert_eq!(name, "nvme0n1-randread-20261121T010203Z");
        assert_eq!(safe("../../etc"), "etc");
        assert_eq!(safe("…"), "run");
        assert_eq!(utc(951_782_400), "20000229T000000Z");
        assert_eq!(utc(0), "19700101T000000Z");
    }

    #[test]
    fn never_overwrites() {
        let base = tempfile::tempdir().unwrap();
        let make = || RunDirectory::create(&base.path().join("results"), "a").unwrap();
        let names: Vec<_> = (0..3).map(|_| make().path().file_name().unwrap().to_owned()).collect();
        assert_eq!(names, ["a", "a-2", "a-3"]);
    }

    #[test]
    fn writes_whole_files_only() {
        let base = tempfile::tempdir().unwrap();
        let run = RunDirectory::create(base.path(), "a").unwrap();
        run.write_all(&RunResult::default(), Some(&Rows::default()), false).unwrap();
        let mut names: Vec<_> =
            fs::read_dir(run.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["report.html", "requests.parquet", "result.json"]);
        let bad = RunResult { iops: f64::NAN, ..RunResult::default() };
        let run = RunDirectory::create(base.path(), "b").unwrap();
        assert!(run.write_all(&bad, None, false).is_err());
        assert_eq!(fs::read_dir(run.path()).unwrap().count(), 0);
    }

    /// A program that waits for `result.json` finds the rest: all other files got their names
    /// before it.
    #[cfg(unix)]
    #[test]
    fn the_result_comes_last_and_whatever_happens_to_the_rest() {
        use std::os::unix::fs::MetadataExt as _;

        let base = tempfile::tempdir().unwrap();
        let run = RunDirectory::create(base.path(), "a").unwrap();
        run.write_all(&RunResult::default(), Some(&Rows::default()), false).unwrap();
        // A new name is a change of the file.
        let named = |name| {
            let data = fs::metadata(run.path().join(name)).unwrap();
            (data.ctime(), data.ctime_nsec())
        };
        let (report, rows) = (named("report.html"), named("requests.parquet"));
        assert!(named("result.json") >= report.max(rows));
        let run = RunDirectory::create(base.path(), "b").unwrap();
        fs::create_dir(run.path().join("report.html.tmp")).unwrap();
        let error = run.write_all(&RunResult::default(), None, false).unwrap_err().to_string();
        assert!(error.contains("report.html"), "{error}");
        assert!(run.path().join("result.json").exists());
    }

    /// Other files that fill the disk come after the figures have their space.
    #[test]
    fn figures_take_their_room_before_what_is_large() {
        let base = tempfile::tempdir().unwrap();
        let run = RunDirectory::create(base.path(), "a").unwrap();
        let large = || {
            assert!(run.path().join("result.json.tmp").exists());
            assert!(run.path().join("report.html").exists());
            assert!(!run.path().join("result.json").exists(), "it comes last");
            let full = io::Error::from(io::ErrorKind::StorageFull);
            Err(ResultError::write(&run.path().join("requests.parquet"), full))
        };
        let error = run.write_with("{}", "<p>", large).unwrap_err().to_string();
        assert!(error.contains("requests.parquet"), "{error}");
        assert!(run.path().join("result.json").exists());
        let both = RunDirectory::create(base.path(), "b").unwrap();
        both.write_all(&RunResult::default(), Some(&Rows::default()), true).unwrap();
        assert!(both.path().join("requests.csv").exists());
    }

    #[test]
    fn a_full_disk_is_said_and_leaves_nothing() {
        let base = tempfile::tempdir().unwrap();
        let run = RunDirectory::create(base.path(), "a").unwrap();
        let error = run
            .write_file("result.json", |_| Err(io::ErrorKind::StorageFull.into()))
            .unwrap_err()
            .to_string();
        assert!(error.contains("result.json") && error.contains("free some space"), "{error}");
        assert_eq!(fs::read_dir(run.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_file_in_the_way_is_said() {
        let base = tempfile::tempdir().unwrap();
        let file = base.path().join("results");
        fs::write(&file, "x").unwrap();
        let error = RunDirectory::create(&file, "a").unwrap_err().to_string();
        assert!(error.contains("results") && error.contains("in the way"), "{error}");
    }
}
