//! `--timeline`: what the parts of a simulated device did when, for trace viewers.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use clap::Args;
use ssdyno_block::Time;
use ssdyno_block::units::Span;
use ssdyno_engine::events::{Busy, EventReader, UnitNames};
use ssdyno_figures::FaultsResult;
use ssdyno_record::Rows;
use ssdyno_rig::{EVENTS_MAX, Timeline};
use ssdyno_session::{Failure, FailureKind};

/// How every timeline begins, and hardly anything else.
const HEAD: &[u8] = b"{\"displayTimeUnit\"";

/// The options.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Timeline")]
pub(crate) struct TimelineArgs {
    /// Write the busy times of each part of a simulated device, and the requests, to this file: JSON for
    /// ui.perfetto.dev or chrome://tracing, at most one million events.
    #[arg(long, value_name = "FILE")]
    pub(crate) timeline: Option<PathBuf>,
    /// Begin the timeline at this device time [default: 0s].
    #[arg(long, value_name = "TIME", requires = "timeline")]
    timeline_from: Option<Span>,
}

impl TimelineArgs {
    /// The options that were given, as they are typed.
    pub(crate) fn given(&self) -> Vec<(&'static str, String)> {
        let file = self.timeline.as_ref().map(|file| file.display().to_string());
        let from = self.timeline_from.map(|from| from.to_string());
        let all = [("--timeline", file), ("--timeline-from", from)];
        all.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }
}

/// A timeline, and the file that it will be in.
#[derive(Debug)]
pub(crate) struct TimelineFile {
    timeline: Arc<Mutex<Timeline>>,
    path: PathBuf,
    /// It was not there before.
    fresh: bool,
}

impl TimelineFile {
    /// Creates the file before the run, so that a user who cannot write it gets the error at once.
    pub(crate) fn create(args: &TimelineArgs) -> Result<Option<TimelineFile>, Failure> {
        let Some(path) = args.timeline.clone() else { return Ok(None) };
        let fresh = !path.exists();
        if !fresh && !may_replace(&path) {
            let help = "name another file, or remove this file if you no longer need it";
            return Err(Failure::usage(no_timeline(&path)).with_help(help));
        }
        // Kept as it is until there is something to write.
        let opened = OpenOptions::new().write(true).create(true).truncate(false).open(&path);
        opened.map_err(|error| unwritable(&path, &error))?;
        let from = args.timeline_from.map_or(Time::ZERO, |from| from.0);
        let timeline = Arc::new(Mutex::new(Timeline::new(from, Time::MAX, EVENTS_MAX)));
        Ok(Some(TimelineFile { timeline, path, fresh }))
    }

    /// The reader that fills it during the run.
    pub(crate) fn reader(&self) -> Box<dyn EventReader + Send> {
        Box::new(TimelineReader(Arc::clone(&self.timeline)))
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the file; returns a line with its place and its contents. Nothing is left of a file
    /// that could not be written whole.
    pub(crate) fn write(
        &self,
        rows: Option<&Rows>,
        faults: Option<&FaultsResult>,
    ) -> Result<String, Failure> {
        // Something else may have come to lie there during the run.
        let replaceable = match may_replace(&self.path) || !self.path.exists() {
            true => Ok(()),
            false => Err(Failure::new(FailureKind::Unwritable, no_timeline(&self.path))
                .with_help("name another file with --timeline")),
        };
        replaceable?;
        let timeline = locked(&self.timeline);
        let written = File::create(&self.path).and_then(|file| {
            let mut out = BufWriter::with_capacity(1 << 20, file);
            timeline.write(rows, faults, &mut out)?;
            out.flush()
        });
        written.map_err(|error| {
            self.remove();
            unwritable(&self.path, &error)
        })?;
        let (path, kept) = (self.path.display(), timeline.kept());
        let mut line = format!("{path} (open in ui.perfetto.dev; {kept} events");
        match timeline.left_out() {
            0 => {}
            more => line.push_str(&format!("; the file omits {more} later events")),
        }
        if rows.is_none() {
            line.push_str("; no requests, because their rows were not kept");
        }
        Ok(line + ")")
    }

    /// After a run that never began.
    pub(crate) fn discard(&self) {
        if self.fresh {
            self.remove();
        }
    }

    fn remove(&self) {
        if is_regular(&self.path) {
            // It may be gone already; there is nothing more to do.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Hands events to a timeline that the run and the command line share; it takes them in batches.
struct TimelineReader(Arc<Mutex<Timeline>>);

impl EventReader for TimelineReader {
    fn name_units(&mut self, units: &[UnitNames]) {
        locked(&self.0).name_units(units);
    }

    fn read(&mut self, events: &[Busy]) {
        locked(&self.0).read(events);
    }
}

/// A panic elsewhere leaves it as it was.
fn locked(timeline: &Mutex<Timeline>) -> MutexGuard<'_, Timeline> {
    timeline.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(unix)]
fn is_disk(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt;
    path.metadata().is_ok_and(|metadata| metadata.file_type().is_block_device())
}

#[cfg(not(unix))]
fn is_disk(_: &Path) -> bool {
    false
}

fn is_regular(path: &Path) -> bool {
    path.metadata().is_ok_and(|metadata| metadata.is_file())
}

fn no_timeline(path: &Path) -> String {
    format!("{} exists and is not a timeline", path.display())
}

/// Pipes and the like, empty files, and timelines of earlier runs; never a disk.
fn may_replace(path: &Path) -> bool {
    if !is_regular(path) {
        return !is_disk(path);
    }
    let mut head = Vec::new();
    let read = File::open(path).and_then(|f| f.take(HEAD.len() as u64).read_to_end(&mut head));
    read.is_ok() && (head.is_empty() || head == HEAD)
}

fn unwritable(path: &Path, error: &io::Error) -> Failure {
    let help = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "free some space or name a file elsewhere; the figures of the run are not affected"
        }
        io::ErrorKind::NotFound => "make the directory first",
        _ => "name a file that you may write with --timeline",
    };
    Failure::new(
        FailureKind::Unwritable,
        format!("cannot write the timeline {}: {error}", path.display()),
    )
    .with_help(help)
}
