//! Recorded loads: formats, options, opening.

mod compress;
mod detect;
mod formats;
mod lines;
mod number;
mod replay;

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::str::FromStr;

use ssdyno_block::Time;

use crate::{DeviceFacts, TraceLine, Workload, WorkloadError};

/// The forms a trace may have. Fields are separated as each format says; lines end with LF or
/// CR LF; empty lines and lines that begin with `#` are passed over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// DiskSim ASCII: `time_ms devno blkno size flags`, in sectors of 512 B; flags hexadecimal,
    /// bit 0 set for a read (DiskSim 4.0 manual, "Input traces").
    DiskSim,
    /// MQSim ASCII: `time_ns devno lba size type`, in sectors of 512 B; type 0 write, 1 read.
    MqSim,
    /// MSR Cambridge (SNIA IOTTA 388): `Timestamp,Hostname,DiskNumber,Type,Offset,Size,Response`;
    /// time in units of 100 ns since 1601, offset and size in bytes.
    Msr,
    /// The default text of `blkparse`: `maj,min cpu sequence time_s pid action rwbs sector + n`.
    Blkparse,
    /// fio iolog, version 2 (no times, but `wait`) or 3 (times in us, as fio 3.31 and later write
    /// them; its manual gives no unit).
    Fio,
    /// Comma-, semicolon- or tab-separated with a header that names the columns and their units:
    /// `time_{s,ms,us,ns,ps}` or `issue_…` (may be missing), `op`, `offset_{bytes,sectors}`,
    /// `length_{bytes,sectors}`, and perhaps `device`; others are passed over. So what `run --csv`
    /// writes is a trace.
    Csv,
}

impl Format {
    /// Every format.
    pub const ALL: [Format; 6] =
        [Format::DiskSim, Format::MqSim, Format::Msr, Format::Blkparse, Format::Fio, Format::Csv];

    /// The name in options and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Format::DiskSim => "disksim",
            Format::MqSim => "mqsim",
            Format::Msr => "msr",
            Format::Blkparse => "blkparse",
            Format::Fio => "fio",
            Format::Csv => "csv",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Format {
    type Err = WorkloadError;
    fn from_str(text: &str) -> Result<Format, WorkloadError> {
        Format::ALL.into_iter().find(|format| format.name() == text).ok_or_else(|| {
            let names = Format::ALL.map(Format::name).join(", ");
            let what = format!("`{text}` is no trace format");
            WorkloadError::of_key("format", what, format!("known are {names}"))
        })
    }
}

/// When the requests of a trace start.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub enum Timing {
    /// As recorded.
    #[default]
    Original,
    /// Recorded times multiplied by this, above 0: 0.5 runs twice as fast.
    Scaled(f64),
    /// As soon as fewer than `depth` are outstanding, in the order of the file.
    AsFastAsPossible {
        /// Requests outstanding, 1 or more.
        depth: u32,
    },
}

/// What becomes of a request that ends behind the last byte of the target.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum BeyondEnd {
    /// The workload ends with an error.
    #[default]
    Fail,
    /// Addresses are taken modulo the target's size; a request over the end is split. A request
    /// longer than the target is an error.
    Wrap,
    /// It is left out, and counted in the notes.
    Skip,
}

/// Which event of `blkparse` counts as the start of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BlkEvent {
    /// `Q`: queued by who wanted it. What a target's user asked for.
    Queue,
    /// `D`: sent to the driver, after merging and sorting.
    Dispatch,
}

/// How to read and play a trace.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct TraceOptions {
    /// `None`: told from the content.
    pub format: Option<Format>,
    /// When requests start.
    pub timing: Timing,
    /// Most outstanding, 1 or more: later arrivals wait, and latency counts from their recorded
    /// time. `None`: no limit, but 1 for a trace without times. With
    /// [`Timing::AsFastAsPossible`] the smaller of both depths holds.
    pub depth_limit: Option<u32>,
    /// What becomes of requests behind the target's end.
    pub beyond_end: BeyondEnd,
    /// Only the requests of this device: DiskSim and MQSim device number, MSR host, disk or
    /// `host.disk`, blkparse `maj,min`, fio file name, CSV column `device`. `None`: all, as if they
    /// were one device.
    pub device: Option<String>,
    /// The event of `blkparse` that counts. `None`: queueing, or dispatch where the beginning of the
    /// trace has only that (`blktrace -a issue`).
    pub event: Option<BlkEvent>,
    /// True: the first request starts at 0. False: times count from the trace's own 0. `None`:
    /// true for MSR and CSV, whose clock usually is the calendar's, false for the others.
    pub from_first: Option<bool>,
    /// At most so many requests, 1 or more (pieces of a split one count).
    pub requests: Option<u64>,
    /// Nothing is issued that was meant to start at this time (of the run) or later.
    pub duration: Option<Time>,
}

/// Opens a trace file of any supported format as a workload. Compression (gzip, zstd, xz, bzip2,
/// lz4) and, unless given, the format are told from the content, never from the name. The file is
/// streamed; only one line at a time is held.
///
/// # Errors
/// The file cannot be read, its format is not known, its first request is already wrong, or an
/// option is. Whatever is wrong further down ends the workload with [`Workload::error`].
pub fn open_trace(
    path: &Path,
    options: &TraceOptions,
    device: &DeviceFacts,
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
    device: &DeviceFacts,
) -> Result<Box<dyn Workload + Send>, WorkloadError> {
    Ok(Box::new(replay::Replay::new(reader, name, options, device)?))
}
