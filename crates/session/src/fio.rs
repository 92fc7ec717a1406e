//! Job files of fio: their targets, and their loads.

use std::path::{Path, PathBuf};

use ssdyno_bench::NULL;
use ssdyno_block::Time;
use ssdyno_rig::Source;
use ssdyno_workload::{
    FioEngine, FioJob, FioReplay, Format, TraceOptions, WorkloadError, read_fio_jobs,
};

use crate::failure::{Failure, FailureKind};
use crate::named::{is_real, workload_failure};
use crate::spec::RunSpec;

/// The load of `spec`, and its files: without a named target, those that the jobs name.
pub(crate) fn targets(spec: &RunSpec) -> Result<(String, Vec<String>), Failure> {
    let Some(path) = &spec.fio else { return Ok((spec.target().to_owned(), Vec::new())) };
    let jobs = read(Path::new(path))?;
    let (mut target, mut more) = (spec.target.clone(), Vec::new());
    if target.is_none() {
        refuse_nameless(Path::new(path), &jobs)?;
        let mut names = named(&jobs).into_iter();
        target = names.next();
        more.extend(names);
    }
    #[cfg(target_os = "linux")]
    for target in target.iter().chain(&more) {
        let missing = is_path(target) && !Path::new(target).exists();
        if missing && spec.contents.device.is_none() && spec.write.size.is_none() {
            return Err(Failure::usage(format!("there is no device or file `{target}`"))
                .with_help(make_help(&jobs))
                .with_key("target"));
        }
    }
    Ok((target.unwrap_or_else(|| spec.target().to_owned()), more))
}

/// Refuses a job that names no file, where the command line names no target: fio would make a file in this
/// directory.
fn refuse_nameless(path: &Path, jobs: &[FioJob]) -> Result<(), Failure> {
    let nameless = |job: &&FioJob| job.files.is_empty() && job.engine != FioEngine::Null;
    let Some(job) = jobs.iter().find(nameless) else { return Ok(()) };
    let made = format!("./{}.0.0", job.name);
    let size = job.file_size_bytes.unwrap_or(1 << 30);
    let writes = if job.changes_data() { " and `write.allowed=true`" } else { "" };
    let message = format!("{}: the job [{}] names no file or device", path.display(), job.name);
    Err(Failure::usage(message).with_help(format!(
        "name a target: a device such as /dev/nvme0n1, a simulated one such as sim:nvme-tlc, or the file that fio would create: {made} with `write.size={size}B`{writes}; or add `filename` to the job"
    )))
}

/// The features of `job` that a simulated target lacks.
fn simulated(job: &mut FioJob) {
    let name = job.name.clone();
    let lacks = [
        (std::mem::take(&mut job.buffered), "direct=0", "a simulated target has no page cache"),
        (std::mem::take(&mut job.nowait), "nowait", "a simulated target has no kernel to wait in"),
        (
            job.batch.take().is_some(),
            "iodepth_batch …",
            "a simulated target takes requests one by one (`host.doorbell`, `host.threads` and `host.completion` configure the driver)",
        ),
        (
            job.engine == FioEngine::Passthrough,
            "ioengine=io_uring_cmd",
            "a simulated target has its own driver; the load is the same",
        ),
    ];
    let lacking = lacks.into_iter().filter(|(asked, ..)| *asked);
    job.notes.extend(lacking.map(|(_, option, why)| format!("[{name}]: {option} ignored: {why}")));
    job.flush_instead_of_sync();
}

/// The recording that the only job of a file replays.
fn replay(path: &Path, jobs: &[FioJob], duration: Option<Time>) -> Result<Option<Source>, Failure> {
    let Some(job) = jobs.iter().find(|job| job.replay.is_some()) else { return Ok(None) };
    let FioReplay { path: recording, timing, depth } = match (&job.replay, jobs) {
        (Some(replay), [_]) => replay.clone(),
        _ => {
            let message = format!(
                "{}: the job [{}] replays a recording (read_iolog) alongside other jobs",
                path.display(),
                job.name
            );
            return Err(Failure::usage(message).with_help(
                "move it to a separate file: a recording is one stream, which runs alone",
            ));
        }
    };
    let options = TraceOptions {
        format: Some(Format::Fio),
        timing,
        depth_limit: Some(depth),
        duration,
        ..TraceOptions::default()
    };
    Ok(Some(Source::Trace { path: recording, options }))
}

/// Whether any of `jobs` writes to the file `name`, or trims it.
#[cfg(target_os = "linux")]
pub(crate) fn changes(jobs: &[FioJob], name: &String) -> bool {
    jobs.iter().any(|job| job.changes_data() && job.files.contains(name))
}

/// How to make the file that the jobs want.
#[cfg(target_os = "linux")]
fn make_help(jobs: &[FioJob]) -> String {
    let size = jobs.iter().filter_map(|job| job.file_size_bytes).max().unwrap_or(1 << 30);
    format!("check the path, or make a file as large as the jobs ask for with `write.size={size}B`")
}

/// The jobs of the file at `path` as a load for `target` with the files `more` behind it; each ends after
/// `duration` at the latest.
pub(crate) fn source(
    path: &str,
    target: &str,
    more: &[String],
    duration: Option<Time>,
) -> Result<Source, Failure> {
    let path = Path::new(path);
    let mut jobs = read(path)?;
    for job in &mut jobs {
        agree(path, job, target, more)?;
        if let Some(duration) = duration {
            job.end_after(duration);
        }
        if !is_real(target) {
            simulated(job);
        }
    }
    if let Some(source) = replay(path, &jobs, duration)? {
        return Ok(source);
    }
    Ok(Source::Jobs { path: path.to_owned(), jobs })
}

fn read(path: &Path) -> Result<Vec<FioJob>, Failure> {
    let explain = |error: WorkloadError| workload_failure(FailureKind::Usage, &error, None);
    read_fio_jobs(path).map_err(explain)
}

/// True if `target` is neither a simulated device, a network target nor `null:`.
#[cfg(target_os = "linux")]
fn is_path(target: &str) -> bool {
    let simulated = target.starts_with("sim:") || crate::named::is_toml(target);
    target != NULL && !simulated && !ssdyno_bench::is_network(target)
}

/// The files that jobs name, each once; `null:` where fio would do nothing; none where nothing is
/// named.
fn named(jobs: &[FioJob]) -> Vec<String> {
    if jobs.iter().all(|job| job.engine == FioEngine::Null) {
        return vec![NULL.to_owned()];
    }
    let mut names: Vec<String> = Vec::new();
    for name in jobs.iter().flat_map(|job| &job.files) {
        // A word alone is a file here, not the name of a simulated device.
        let name = if name.contains('/') { name.clone() } else { format!("./{name}") };
        if !names.iter().any(|other| same(other, &name)) {
            names.push(name);
        }
    }
    names
}

/// Whether the files that `job` names are those that are loaded: then they are called as those are. A
/// made-up one, or one that stands for a device that is not there, gets a note.
fn agree(path: &Path, job: &mut FioJob, target: &str, more: &[String]) -> Result<(), Failure> {
    let Some(first) = job.files.first().cloned() else {
        job.notes.extend(lined_up(job));
        return Ok(());
    };
    let loaded = |name: &String| {
        let all = std::iter::once(target).chain(more.iter().map(String::as_str));
        all.into_iter().find(|loaded| same(loaded, name)).map(str::to_owned)
    };
    let all: Option<Vec<String>> = job.files.iter().map(loaded).collect();
    if let Some(all) = all {
        job.files = all;
        return Ok(());
    }
    if job.files_are_named && is_real(target) && target != NULL {
        let other = job.files.iter().find(|name| loaded(name).is_none()).unwrap_or(&first);
        let what = format!(
            "{}: the job [{}] is for `{other}`, not for `{target}`",
            path.display(),
            job.name
        );
        return Err(Failure::usage(what)
            .with_help("leave the target out, or remove `filename` from the job"));
    }
    job.notes.push(format!("the target replaces the jobs' own files (`{first}` …)"));
    job.notes.extend(lined_up(job));
    Ok(())
}

/// Where the files of `job` lie that are parts of the target, if there are several.
fn lined_up(job: &FioJob) -> Option<String> {
    let (name, count) = (&job.name, job.file_count);
    (count > 1).then(|| {
        format!("[{name}]: its {count} files are placed one after the other on the target")
    })
}

fn same(file: &str, target: &str) -> bool {
    let real = |name: &str| std::fs::canonicalize(name).unwrap_or_else(|_| PathBuf::from(name));
    file == target || real(file) == real(target)
}

#[cfg(test)]
mod tests {
    use ssdyno_workload::TraceTiming;

    use super::*;

    fn jobs(text: &str) -> Vec<FioJob> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        read(file.path()).unwrap_or_else(|failure| panic!("{failure}"))
    }

    #[test]
    fn the_files_of_all_jobs_are_the_target() {
        let names = |text: &str| named(&jobs(text));
        assert_eq!(names("[a]\nfilename=/dev/x\n[b]\nfilename=/dev/x\n"), ["/dev/x"]);
        assert_eq!(names("[a]\nfilename=image\n"), ["./image"]);
        assert_eq!(names("[a]\nioengine=null\n"), [NULL]);
        assert_eq!(names("[a]\nrw=read\n"), [""; 0]);
        let two = "[a]\nfilename=/dev/x\n[b]\nfilename=/dev/y:/dev/x:./z\\:1\n";
        assert_eq!(names(two), ["/dev/x", "/dev/y", "./z:1"]);
        // However it is written.
        assert_eq!(names("[a]\nfilename=/etc\n[b]\nfilename=/etc/../etc\n"), ["/etc"]);
        let made = "[global]\ndirectory=/mnt\n[a]\nnrfiles=2\n[b]\n";
        assert_eq!(names(made), ["/mnt/a.0.0", "/mnt/a.0.1", "/mnt/b.0.0"]);
    }

    #[test]
    fn a_job_without_a_file_says_what_to_type() {
        let refused = |text: &str| {
            let refused = refuse_nameless(Path::new("x.fio"), &jobs(text));
            refused
                .err()
                .map(|failure| format!("{failure} {}", failure.help.as_deref().unwrap_or_default()))
        };
        let text = refused("[a]\nrw=write\nsize=1m\n").unwrap();
        assert!(text.contains("[a] names no file") && text.contains("./a.0.0"), "{text}");
        assert!(text.contains("`write.size=1048576B` and `write.allowed=true`"), "{text}");
        // Others name theirs: fio would make one for this one all the same.
        assert!(refused("[b]\nfilename=/dev/x\n[a]\nrw=read\n").unwrap().contains("[a]"));
        assert_eq!(refused("[a]\nfilename=/dev/x\n"), None);
        assert_eq!(refused("[a]\nioengine=null\nsize=1m\n"), None);
        assert_eq!(refused("[a]\ndirectory=/mnt\nsize=1m\n"), None);
    }

    #[test]
    fn a_recording_is_replayed_alone() {
        let of = |text: &str| replay(Path::new("x.fio"), &jobs(text), None);
        let replays = "[a]\nread_iolog=io.log\niodepth=4\nioengine=io_uring\n";
        let Ok(Some(Source::Trace { path, options })) = of(replays) else { panic!("no trace") };
        assert_eq!(path, PathBuf::from("io.log"));
        assert_eq!((options.depth_limit, options.timing), (Some(4), TraceTiming::Original));
        let at = |more: &str| match of(&format!("{replays}{more}")) {
            Ok(Some(Source::Trace { options, .. })) => options.timing,
            _ => panic!("no trace"),
        };
        assert_eq!(at("replay_no_stall=1\n"), TraceTiming::AsFastAsPossible { depth: 4 });
        // At half the speed.
        assert_eq!(at("replay_time_scale=50\n"), TraceTiming::Scaled(2.0));
        assert!(of("[a]\nrw=read\n").unwrap().is_none());
        assert!(of(&format!("{replays}[b]\nrw=read\n")).is_err());
    }

    #[test]
    fn what_a_simulated_target_lacks_is_said() {
        let text = "[a]\ndirect=0\nfadvise_hint=0\nnowait=1\niodepth=4\nioengine=io_uring_cmd\n\
                    iodepth_batch=2\n";
        let mut job = jobs(text).remove(0);
        let before = job.notes.len();
        simulated(&mut job);
        assert_eq!(job.notes.len(), before + 4, "{:?}", job.notes);
        assert!(!job.buffered && !job.nowait && job.batch.is_none());
    }

    #[test]
    fn a_named_file_must_be_the_target_if_that_is_real() {
        let agrees = |text: &str, target: &str| {
            let mut job = jobs(text).remove(0);
            agree(Path::new("x.fio"), &mut job, target, &[]).map(|()| job.notes.len()).ok()
        };
        let usual = jobs("[a]\ndirect=1\nrw=read\n").remove(0).notes.len();
        let named = "[a]\ndirect=1\nrw=read\nfilename=/dev/x\n";
        assert_eq!(agrees(named, "/dev/x"), Some(usual));
        assert_eq!(agrees(named, "/dev/y"), None);
        assert_eq!(agrees(named, "sim:nvme-tlc"), Some(usual + 1));
        assert_eq!(agrees(named, NULL), Some(usual + 1));
        let made = "[a]\ndirect=1\nrw=read\ndirectory=/mnt\n";
        assert_eq!(agrees(made, "/dev/y"), Some(usual + 1));
        // Both of two, under the names that they are opened by.
        let both = "[a]\ndirect=1\nrw=read\nfilename=/etc:/dev/y\n";
        assert_eq!(agrees(both, "/etc"), None);
        assert_eq!(agrees(both, "sim:nvme-tlc"), Some(usual + 2));
        let mut job = jobs(both).remove(0);
        let more = ["/etc/../etc".to_owned()];
        assert!(agree(Path::new("x.fio"), &mut job, "/dev/y", &more).is_ok());
        assert_eq!(job.files, ["/etc/../etc", "/dev/y"]);
        assert_eq!(job.notes.len(), usual);
    }
}
