//! Recorded loads: formats, options, opening.

mod addresses;
mod clock;
mod compress;
pub use compress::decompress;
mod detect;
mod detect_records;
mod format;
mod formats;
mod input;
mod lines;
mod number;
mod options;
mod records;
mod replay;

use std::fs::File;
use std::io::Read;
use std::path::Path;

pub use format::Format;
pub use options::{BeyondEnd, BlkEvent, ObjectIds, TraceOptions, TraceOrigin, TraceTiming};

use crate::{TargetFacts, TraceLine, Workload, WorkloadError};

/// Opens a trace file of any supported format as a workload. Compression (gzip, zstd, xz, bzip2,
/// lz4) and, unless given, the format are told from the content, never from the name. The file is
/// streamed; only one line at a time is held.
///
/// # Errors
/// The file cannot be read, its format is not known, its first request is already wrong, or an
/// option is. A later error ends the workload with [`Workload::error`].
pub fn open_trace(
    path: &Path,
    options: &TraceOptions,
    device: &TargetFacts,
) -> Result<Box<dyn Workload + Send>, WorkloadError> {
    let unreadable = |error: std::io::Error| {
        let at = TraceLine { file: path.to_owned(), number: 0, text: String::new() };
        WorkloadError::of_trace(
            format!("the trace cannot be opened: {error}"),
            "check the path and its permissions",
            at,
        )
    };
    let file = File::open(path).map_err(unreadable)?;
    // Opening a directory for reading succeeds on Linux, and only the first read fails. The early
    // check gives an error that names the reason.
    if file.metadata().map_err(unreadable)?.is_dir() {
        return Err(unreadable(std::io::ErrorKind::IsADirectory.into()));
    }
    read_trace(Box::new(file), path, options, device)
}

/// As [`open_trace`], from any reader; `name` stands for the file in messages.
///
/// # Errors
/// As [`open_trace`].
pub fn read_trace(
    reader: Box<dyn Read + Send>,
    name: &Path,
    options: &TraceOptions,
    device: &TargetFacts,
) -> Result<Box<dyn Workload + Send>, WorkloadError> {
    Ok(Box::new(replay::Replay::new(reader, name, options, device)?))
}
