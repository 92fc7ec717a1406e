//! The files that a killed run leaves: its rows, and the information in them.

use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ssdyno_block::{Completion, Status, Time, Token, counted};
use ssdyno_figures::{JobResult, Keep, RunResult, StopReason, TailVerdict};

use crate::recorder::Recorder;
use crate::recording::Recording;
use crate::rows::{ROOM_FILE, ROWS_FILE, Rows, RowsHead, Shared, read_chunk, read_head};

/// How long the kernel may take to let go of what a program that was killed had locked.
const LINGERS_MOST: Duration = Duration::from_secs(2);

/// The rows of a running job in the file are never older, in ns: they are handed over once a second, and written in the second
/// after that.
const LOST_MOST_NS: u64 = 2_000_000_000;

/// Why nothing can be recovered.
#[derive(Debug, thiserror::Error)]
pub enum RecoverError {
    /// There is no file with rows, or it cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The rows have been written already, and the figures too.
    #[error("{} has nothing to recover: its result is complete", directory.display())]
    Complete {
        /// The directory.
        directory: PathBuf,
    },
    /// The run goes on.
    #[error("{} is in use: the run is not finished", path.display())]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// It is something else.
    #[error("{} is not a file with rows of a run, or a newer version of this program wrote it", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// It has no rows.
    #[error("{} has no row: the run was killed in its first two seconds", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
}

impl RecoverError {
    /// The remedy.
    pub fn help(&self) -> &'static str {
        match self {
            RecoverError::Read { source, .. } if source.kind() == io::ErrorKind::NotFound => {
                "name the directory of a killed run: it contains requests.rows"
            }
            RecoverError::Read { .. } => "check the directory",
            RecoverError::Complete { .. } => "open its report.html",
            RecoverError::InUse { .. } => {
                "wait until the run ends, or interrupt it: it keeps its results"
            }
            RecoverError::Foreign { .. } => "use the version of the program that wrote it",
            RecoverError::Empty { .. } => "run it again",
        }
    }
}

/// Reads the rows that a run left in `directory`, and works out the figures that follow from them: those of a
/// partial run. Its files are for the caller to write; the file with rows stays until
/// `RunDirectory::write_rows` has written them.
///
/// # Errors
/// There are no rows, the run is still active, or the rows cannot be read.
pub fn recover(directory: &Path) -> Result<(RunResult, Recording), RecoverError> {
    let path = directory.join(ROWS_FILE);
    let failed = |source| RecoverError::Read { path: path.clone(), source };
    let mut file = match File::open(&path) {
        // A second `recover`: what it would do is done.
        Err(error)
            if error.kind() == io::ErrorKind::NotFound
                && directory.join("result.json").is_file() =>
        {
            return Err(RecoverError::Complete { directory: directory.to_owned() });
        }
        opened => opened.map_err(failed)?,
    };
    if is_in_use(&file) {
        return Err(RecoverError::InUse { path });
    }
    // The room was kept for the figures of this moment. Without the file the figures may still
    // find room, so an error is ignored.
    let _ = std::fs::remove_file(directory.join(ROOM_FILE));
    let Some((head, at)) = read_head(&mut file).map_err(failed)? else {
        return Err(RecoverError::Foreign { path });
    };
    let (rows, starts_ns) = index(path.clone(), file, at).map_err(failed)?;
    let found = figures(head, rows, &starts_ns).map_err(failed)?;
    found.ok_or(RecoverError::Empty { path })
}

/// Whether somebody writes to `file`. Locks of a killed program are released a moment later.
fn is_in_use(file: &File) -> bool {
    let began = Instant::now();
    loop {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) if began.elapsed() < LINGERS_MOST => {
                std::thread::sleep(LINGERS_MOST / 40);
            }
            Err(TryLockError::WouldBlock) => return true,
            // Some file systems of networks have no locks. The run that wrote there could not
            // take one either, so nothing can be known.
            Ok(()) | Err(TryLockError::Error(_)) => return false,
        }
    }
}

/// Where the rows are, and the start of the recorded window of each job that has any.
fn index(path: PathBuf, mut file: File, mut at: u64) -> io::Result<(Rows, BTreeMap<u32, u64>)> {
    let mut found = Vec::new();
    let mut words = Vec::new();
    let mut lengths: Vec<Vec<u32>> = Vec::new();
    let mut starts_ns = BTreeMap::new();
    while let Some(next) = read_chunk(&mut file, at, &mut words)? {
        let job = next.chunk.job as usize;
        lengths.resize(lengths.len().max(job + 1), Vec::new());
        // The list of lengths of a job only grows, and a chunk contains the list so far. So the
        // last chunk has the lengths of all.
        lengths[job] = next.chunk.lengths;
        starts_ns.entry(next.chunk.job).or_insert(next.chunk.start_ns);
        found.push((next.chunk.job, next.segment));
        at = next.next;
    }
    let shared = Shared::new(path, file, 0);
    found.iter().for_each(|(job, segment)| shared.add(*job, *segment));
    Ok((Rows::in_file(Arc::new(shared), lengths), starts_ns))
}

/// When each job ended: what had not completed by then never did, and is not an error.
fn ends(rows: &Rows) -> io::Result<BTreeMap<u32, u64>> {
    let mut ends_ns = BTreeMap::new();
    rows.for_each(|job, row| {
        let end_ns = ends_ns.entry(job).or_insert(0u64);
        *end_ns = row.issue_ns.saturating_add(row.latency_ns).max(*end_ns);
        Ok(())
    })?;
    Ok(ends_ns)
}

/// Until when the rows of all jobs are known that ran when the program was killed. Each job hands its rows over at times of its
/// own. After the first of the last of these times, the rates would lack a job.
fn known_until(ends_ns: &BTreeMap<u32, u64>) -> u64 {
    let last = ends_ns.values().copied().max().unwrap_or(0);
    // A job whose rows end earlier than that had ended by itself.
    let ran = ends_ns.values().copied().filter(|end_ns| last - end_ns <= LOST_MOST_NS);
    ran.min().unwrap_or(last)
}

/// What the jobs of a run recorded, all together and each that is reported apart.
struct Jobs {
    all: Recording,
    apart: Vec<JobResult>,
}

/// Records the rows again. Each job has a recorder of its own, as in the run itself: the rows of a file are in order within a
/// job only, and a single recorder would take the change from one job to the next for a change of the rates.
///
/// `None` without rows.
fn record_again(
    head: &RowsHead,
    rows: &Rows,
    starts_ns: &BTreeMap<u32, u64>,
) -> io::Result<Option<Jobs>> {
    let interval = head.interval_ns.map(Time::from_ns);
    let recorder = |start_ns: &u64| {
        Recorder::new(Keep::Summary, interval).start_recording_at(Time::from_ns(*start_ns))
    };
    let mut recorders: BTreeMap<u32, (u64, Recorder)> =
        starts_ns.iter().map(|(job, start)| (*job, (*start, recorder(start)))).collect();
    let ends_ns = ends(rows)?;
    let end = Time::from_ns(known_until(&ends_ns));
    rows.for_each(|job, row| {
        let Some((start_ns, recorder)) = recorders.get_mut(&job) else { return Ok(()) };
        let completed = Time::from_ns(row.issue_ns.saturating_add(row.latency_ns));
        if row.status == Status::Abandoned && Some(&completed.as_ns()) == ends_ns.get(&job) {
            let times = [row.issue_ns, row.submit_ns].map(Time::from_ns);
            recorder.never_answered(job, &row.request, times, completed.min(end));
            return Ok(());
        }
        if completed > end {
            return Ok(());
        }
        let completion = Completion {
            token: Token(0),
            status: row.status,
            accepted: Time::from_ns(row.submit_ns),
            // Both times of a row were rounded down. Their sum may lie just before the start of
            // the window, and the recorder would count the request as ramp-up.
            completed: completed.max(Time::from_ns(*start_ns)),
        };
        recorder.record(&row.request, Time::from_ns(row.issue_ns), &completion);
        Ok(())
    })?;
    let entries = &head.run.jobs;
    let mut parts: Vec<Vec<Recording>> = Vec::new();
    parts.resize_with(entries.len().max(1), Vec::new);
    for (job, (_, recorder)) in recorders {
        let entry = head.entry_of.get(job as usize).filter(|entry| **entry < entries.len());
        // Jobs that are reported apart have an end of their own.
        let own = entry.and_then(|_| ends_ns.get(&job)).map(|end_ns| Time::from_ns(*end_ns));
        let recording = recorder.finish(own.unwrap_or(end).min(end));
        parts[entry.copied().unwrap_or(0)].push(recording);
    }
    let merged: Vec<_> = parts.into_iter().map(Recording::merge).collect();
    // A job may start later than others. The window of the run begins with the first of them.
    let start = merged.iter().flatten().map(Recording::start).min().unwrap_or_default();
    let figures = |(entry, recording): (&JobResult, &Option<Recording>)| {
        let figures = recording.as_ref().map(|recording| recording.job_result(start));
        let (name, group, copies) = (entry.name.clone(), entry.group, entry.copies);
        JobResult { name, group, copies, ..figures.unwrap_or_default() }
    };
    let apart = entries.iter().zip(&merged).map(figures).collect();
    let all = Recording::merge(merged.into_iter().flatten().collect());
    Ok(all.map(|all| Jobs { all, apart }))
}

/// The figures of what was recorded; `None` without rows.
fn figures(
    head: RowsHead,
    mut rows: Rows,
    starts_ns: &BTreeMap<u32, u64>,
) -> io::Result<Option<(RunResult, Recording)>> {
    let Some(Jobs { all: mut recording, apart }) = record_again(&head, &rows, starts_ns)? else {
        return Ok(None);
    };
    rows.name(head.names);
    let count = rows.len();
    recording.rows = Some(rows);
    let mut result =
        RunResult { partial: true, stopped_because: Some(StopReason::Killed), ..head.run };
    result.jobs = apart;
    recording.fill(&mut result);
    if result.requests_by_op.read > 0 {
        result.warnings.extend(head.of_reads);
    }
    result.wall_seconds = recording.end().as_s_f64();
    if result.latency_ns.is_some() && result.target != "null:" {
        // The samples of the machine were in memory only. Without a verdict the p99 of a busy machine would look as
        // good as any.
        let why = "the program was killed, and the samples of the machine were lost";
        result.p99_believable =
            Some(TailVerdict { believable: false, reasons: vec![why.to_owned()] });
    }
    let ends = match starts_ns.len() {
        0 | 1 => "",
        _ => "; the figures end where the rows of a running job end first",
    };
    result.notes.push(format!(
        "recovered from the rows of {}: the program was killed during the run; up to two seconds before that, the probe samples and the tool overhead are missing{ends}",
        counted(count as u64, "request", "requests")
    ));
    Ok(Some((result, recording)))
}

#[cfg(test)]
mod tests {
    use ssdyno_block::Request;

    use super::*;
    use crate::tape::{Sent, Tape};
    use ssdyno_figures::Interval;

    /// A run of two jobs that recorded all of its rows, and was killed before it wrote its result. A request timed out,
    /// another one was outstanding at the end.
    #[test]
    fn a_run_that_was_recorded_to_its_end_has_the_same_figures() {
        let jobs = (0..2).map(|job| {
            let mut tape = Tape::new(Keep::All, None, false).of_job(job, 2);
            tape.make_places(1);
            let (read, write) = (Request::read(0, 4096), Request::write(0, 512));
            for at in 0..1_000 {
                tape.issued(at * 1_000, 1);
                let status = if at == 500 { Status::Abandoned } else { Status::Ok };
                let request = if at % 3 == 0 { &write } else { &read };
                tape.reaped(at * 1_000 + 700).add(request, at * 1_000, at * 1_000, status);
            }
            tape.issued(1_000_000, 1);
            let (intended_ns, accepted_ns) = (1_000_000, 1_000_000);
            tape.keep(0, Sent { request: read, intended_ns, accepted_ns });
            tape.finish(9_000_000)
        });
        let mut recording = Recording::merge(jobs.collect()).unwrap();
        let mut want = RunResult::default();
        recording.fill(&mut want);
        let rows = recording.rows.take().unwrap();
        let starts_ns = BTreeMap::from([(0, 0), (1, 0)]);
        let (got, _) = figures(RowsHead::default(), rows, &starts_ns).unwrap().unwrap();
        assert_eq!((want.errors, want.unanswered, want.requests), (2, 4, 1_998));
        assert_eq!(
            (got.errors, got.unanswered, got.requests),
            (want.errors, want.unanswered, want.requests)
        );
        assert_eq!((got.iops, got.simulated_seconds), (want.iops, want.simulated_seconds));
        assert_eq!(got.latency_ns, want.latency_ns);
        assert_eq!(got.series, want.series);
        assert_eq!(got.confidence, want.confidence);
    }

    /// A job of large requests beside one of small requests, whose rows were handed over 5 ms later: throughput is steady until
    /// the rows of the first one end, and its interval narrow. Each job that is reported apart has its figures.
    #[test]
    fn unlike_jobs_are_recovered_side_by_side() {
        let tapes = [(4_096, 15_000), (65_536, 10_000)].map(|(bytes, last)| {
            let mut tape = Tape::new(Keep::All, None, false).of_job(u32::from(bytes > 4_096), 2);
            tape.make_places(1);
            for at in 0..last {
                tape.issued(at * 1_000, 1);
                let request = Request::read(0, bytes);
                tape.reaped(at * 1_000 + 700).add(&request, at * 1_000, at * 1_000, Status::Ok);
            }
            tape.finish(last * 1_000)
        });
        let rows = Recording::merge(tapes.into()).unwrap().rows.unwrap();
        let entry = |name: &str| JobResult { name: name.to_owned(), ..JobResult::default() };
        let jobs = vec![entry("small"), entry("large")];
        let run = RunResult { jobs, ..RunResult::default() };
        let head = RowsHead { run, entry_of: vec![0, 1], ..RowsHead::default() };
        let starts_ns = BTreeMap::from([(0, 0), (1, 0)]);
        let (got, _) = figures(head, rows, &starts_ns).unwrap().unwrap();
        let jobs: Vec<_> = got.jobs.iter().map(|job| (&job.name[..], job.requests)).collect();
        assert_eq!(jobs, [("small", 10_000), ("large", 10_000)]);
        let ratio =
            got.jobs[1].throughput_bytes_per_second / got.jobs[0].throughput_bytes_per_second;
        assert!((ratio - 16.0).abs() < 1e-9, "{ratio}");
        let Interval { low, high, .. } =
            got.confidence.unwrap().throughput_bytes_per_second.unwrap();
        assert!(high - low < 0.02 * got.throughput_bytes_per_second, "{low} to {high}");
    }
}
