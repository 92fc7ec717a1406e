//! Job files of fio: which target they are for, and what they ask of it.

use std::path::{Path, PathBuf};

use ssdyno_bench::NULL;
use ssdyno_rig::Source;
use ssdyno_workload::{FioEngine, FioJob, WorkloadError, read_fio_jobs};

use crate::commands::run::RunArgs;
use crate::diagnose::{Exit, Failure};
use crate::load;
use crate::real::is_real;

/// `args` with a target: where none was given, the one file that all jobs name.
pub(crate) fn with_target(args: &RunArgs) -> Result<RunArgs, Failure> {
    let mut args = args.clone();
    let Some(path) = &args.load.fio else { return Ok(args) };
    let jobs = read(path)?;
    if args.target.is_none() {
        args.target = named_by_all(path, &jobs)?;
    }
    #[cfg(target_os = "linux")]
    if let Some(target) = &args.target
        && is_path(target)
        && !Path::new(target).exists()
        && args.write.size.is_none()
    {
        return Err(Failure::usage(format!("there is no device or file `{target}`"))
            .with_help(make_help(&jobs)));
    }
    Ok(args)
}

/// How to make the file that the jobs want.
#[cfg(target_os = "linux")]
fn make_help(jobs: &[FioJob]) -> String {
    let size = jobs.iter().filter_map(|job| job.file_size_bytes).max().unwrap_or(1 << 30);
    format!("check the path, or make a file as large as the jobs ask for with --size {size}B")
}

/// The jobs of the file at `path` as a load for `target`.
pub(crate) fn source(path: &Path, target: &str) -> Result<Source, Failure> {
    let mut jobs = read(path)?;
    for job in &mut jobs {
        agree(path, job, target)?;
        if !is_real(target) {
            job.flush_instead_of_sync();
        }
    }
    Ok(Source::Jobs { path: path.to_owned(), jobs })
}

fn read(path: &Path) -> Result<Vec<FioJob>, Failure> {
    let explain = |error: WorkloadError| load::workload_failure(Exit::Usage, &error, None);
    read_fio_jobs(path).map_err(explain)
}

/// True if `target` is neither a simulated device nor `null:`.
#[cfg(target_os = "linux")]
fn is_path(target: &str) -> bool {
    let simulated = target.starts_with("sim:") || load::is_toml(target);
    target != NULL && !simulated
}

/// The file that all jobs name; `null:` where fio would do nothing; `None` where nothing is named.
fn named_by_all(path: &Path, jobs: &[FioJob]) -> Result<Option<String>, Failure> {
    if jobs.iter().all(|job| job.engine == FioEngine::Null) {
        return Ok(Some(NULL.to_owned()));
    }
    let mut names: Vec<&str> = jobs.iter().filter_map(|job| job.file.as_deref()).collect();
    names.dedup();
    match names.as_slice() {
        [] => Ok(None),
        // A word alone is a file here, not the name of a simulated device.
        [name] if !name.contains('/') => Ok(Some(format!("./{name}"))),
        [name] => Ok(Some((*name).to_owned())),
        [first, second, ..] => {
            let what = format!("{}: jobs are for `{first}` and `{second}`", path.display());
            Err(Failure::usage(what).with_help(
                "name the one target that all are to load: ssdyno run TARGET --fio FILE",
            ))
        }
    }
}

/// Whether the file that `job` names is `target`; a made-up one, or one that stands for a device
/// that is not there, gets a note.
fn agree(path: &Path, job: &mut FioJob, target: &str) -> Result<(), Failure> {
    let Some(file) = &job.file else { return Ok(()) };
    if same(file, target) {
        return Ok(());
    }
    if job.file_is_named && is_real(target) && target != NULL {
        let what = format!(
            "{}: the job [{}] is for `{file}`, not for `{target}`",
            path.display(),
            job.name
        );
        return Err(Failure::usage(what)
            .with_help("leave the target out, or remove `filename` from the job"));
    }
    job.notes.push(format!("the target takes the place of the jobs' own files (`{file}` …)"));
    Ok(())
}

fn same(file: &str, target: &str) -> bool {
    let real = |name: &str| std::fs::canonicalize(name).unwrap_or_else(|_| PathBuf::from(name));
    file == target || real(file) == real(target)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(text: &str) -> Result<Option<String>, Failure> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        let jobs = read(file.path()).unwrap_or_else(|failure| panic!("{}", failure.render()));
        named_by_all(file.path(), &jobs)
    }

    #[test]
    fn the_one_file_of_all_jobs_is_the_target() {
        let name = |text: &str| named(text).ok().flatten();
        assert_eq!(name("[a]\nfilename=/dev/x\n[b]\nfilename=/dev/x\n").as_deref(), Some("/dev/x"));
        assert_eq!(name("[a]\nfilename=image\n").as_deref(), Some("./image"));
        assert_eq!(name("[a]\nioengine=null\n").as_deref(), Some(NULL));
        assert_eq!(name("[a]\nrw=read\n"), None);
        assert!(named("[a]\nfilename=/dev/x\n[b]\nfilename=/dev/y\n").is_err());
        assert!(named("[global]\ndirectory=/mnt\n[a]\n[b]\n").is_err());
    }

    #[test]
    fn a_named_file_must_be_the_target_if_that_is_real() {
        let job = |text: &str| {
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(file.path(), text).unwrap();
            read(file.path()).unwrap_or_else(|failure| panic!("{}", failure.render())).remove(0)
        };
        let agrees = |text: &str, target: &str| {
            let mut job = job(text);
            agree(Path::new("x.fio"), &mut job, target).map(|()| job.notes.len()).ok()
        };
        let usual = job("[a]\ndirect=1\nrw=read\n").notes.len();
        let named = "[a]\ndirect=1\nrw=read\nfilename=/dev/x\n";
        assert_eq!(agrees(named, "/dev/x"), Some(usual));
        assert_eq!(agrees(named, "/dev/y"), None);
        assert_eq!(agrees(named, "sim:nvme-tlc"), Some(usual + 1));
        assert_eq!(agrees(named, NULL), Some(usual + 1));
        let made = "[a]\ndirect=1\nrw=read\ndirectory=/mnt\n";
        assert_eq!(agrees(made, "/dev/y"), Some(usual + 1));
    }
}
