//! Plays the records of a trace.

use std::io::Read;
use std::path::{Path, PathBuf};

use ssdyno_block::{Op, Request, Time, counted};

use super::addresses::Addresses;
use super::clock::Clock;
use super::compress::{decompress, put_back, read_ahead, unpacked_with};
use super::detect::{detect, only_dispatched};
use super::formats::{Objects, ReaderOptions, Record, Sink};
use super::input::Input;
use super::lines::Lines;
use super::number::Fault;
use super::{BlkEvent, Format, TraceOptions, TraceTiming};
use crate::config::check_device;
use crate::{Finished, TargetFacts, TraceLine, Workload, WorkloadError, WorkloadStep};

/// Bytes that are looked at to tell the format.
const HEAD: usize = 64 << 10;

/// Longest piece of a split request: far below 2^32, and a multiple of any sector and page.
const PIECE_MAX: u64 = 1 << 31;

/// The part of one record that is still to be issued.
#[derive(Clone, Copy, Debug)]
struct Piece {
    op: Op,
    at: u64,
    left: u64,
    /// When it was meant to start.
    time: Time,
    /// Only the first part of a record counts as one.
    begun: bool,
}

/// A trace as a workload.
pub(crate) struct Replay {
    input: Input,
    sink: Sink,
    file: PathBuf,
    format: Format,
    addresses: Addresses,
    clock: Clock,
    depth: u64,
    outstanding: u64,
    requests_left: u64,
    end: Time,
    next: Option<Piece>,
    done: bool,
    error: Option<WorkloadError>,
    /// Requests that were split.
    split: u64,
    remarks: Vec<String>,
}

impl Replay {
    pub(crate) fn new(
        source: Box<dyn Read + Send>,
        file: &Path,
        options: &TraceOptions,
        device: &TargetFacts,
    ) -> Result<Replay, WorkloadError> {
        check_device(device)?;
        let scale = check_options(options)?;
        let mut source = decompress(source);
        let (head, broken) = read_ahead(&mut source, HEAD);
        // A short head means that the whole file was read. The detection may then accept an
        // incomplete last line, which in a longer file could be cut in the middle of a number.
        let whole = head.len() < HEAD;
        let whole_file = |what: &str, help: &str| {
            let at = TraceLine { file: file.to_owned(), number: 0, text: String::new() };
            WorkloadError::of_trace(what, help, at)
        };
        if head.is_empty() && broken.is_none() {
            return Err(whole_file("the trace is empty", "give a file with requests"));
        }
        let mut remarks = Vec::new();
        let format = told_format(options, &head, whole, &mut remarks);
        let binary = format.is_some_and(Format::is_binary);
        if let Some(how) = unpacked_with(&head).filter(|_| !binary) {
            return Err(whole_file("this is not a trace", how));
        }
        let Some(format) = format else {
            let lines = Lines::new(put_back(head, broken, source));
            return Err(unknown_format(lines, file));
        };
        check_columns(options, format)?;
        let reader = ReaderOptions {
            event: played_event(options.event, format, &head, &mut remarks),
            objects: Objects::new(options.object_ids, device.capacity_bytes),
            columns: options.columns.as_deref(),
        };
        let input = Input::new(put_back(head.clone(), broken, source), format, &head, &reader);
        // A replay as fast as possible ignores the times even if the file has them. Unordered or
        // absurd times must not stop a replay that does not use them.
        let timed = !matches!(options.timing, TraceTiming::AsFastAsPossible { .. });
        let mut replay = Replay {
            input: input.map_err(|fault| whole_file(&fault.what, &fault.help))?,
            sink: Sink::new(options.devices.clone(), options.slot_bytes.is_some()),
            file: file.to_owned(),
            format,
            addresses: Addresses::new(*device, options.beyond_end, options.slot_bytes),
            clock: Clock::new(timed, scale, options.origin),
            depth: options.depth_limit.map_or(u64::MAX, u64::from),
            outstanding: 0,
            requests_left: options.requests.unwrap_or(u64::MAX),
            end: options.duration.unwrap_or(Time::MAX),
            next: None,
            done: false,
            error: None,
            split: 0,
            remarks,
        };
        if let TraceTiming::AsFastAsPossible { depth } = options.timing {
            replay.depth = replay.depth.min(u64::from(depth));
        }
        // The first record is read here and not with the first request, so that a file without
        // requests or with a wrong first line fails before the run starts.
        replay.next = replay.read_on()?;
        if replay.next.is_none() {
            return Err(replay.nothing());
        }
        // Without times, every request would start at time 0 and the whole trace would be
        // outstanding at once. Depth 1 is the only order that the file itself proves.
        if timed && replay.input.untimed() && options.depth_limit.is_none() {
            replay.depth = 1;
            replay.remarks.push(
                "the trace has no times: one request was outstanding at a time (a depth allows more)"
                    .to_owned(),
            );
        }
        Ok(replay)
    }

    /// The next record that is to be played; `None` at the end of the trace.
    fn read_on(&mut self) -> Result<Option<Piece>, WorkloadError> {
        loop {
            while let Some(record) = self.sink.records.pop_front() {
                match self.piece(&record) {
                    Ok(Some(piece)) => return Ok(Some(piece)),
                    Ok(None) => {}
                    Err(fault) => return Err(self.input.locate(fault, &self.file)),
                }
            }
            match self.input.read(&mut self.sink) {
                Ok(true) => {}
                Ok(false) => return Ok(None),
                Err(fault) => return Err(self.input.locate(fault, &self.file)),
            }
        }
    }

    /// There is no request in the whole trace.
    fn nothing(&self) -> WorkloadError {
        let mut found = Vec::new();
        self.sink.notes(self.input.unit(), &mut found);
        if self.addresses.beyond > 0 {
            let who = counted(self.addresses.beyond, "request lies", "requests lie");
            found.push(format!("{who} beyond the target's end"));
        }
        if self.addresses.beyond_slot > 0 {
            let who = counted(self.addresses.beyond_slot, "request lies", "requests lie");
            found.push(format!("{who} beyond the slot of its device"));
        }
        let mut what = format!("the trace has no request to replay (read as {})", self.format);
        if !found.is_empty() {
            what = format!("{what}: {}", found.join("; "));
        }
        let devices = self.sink.devices();
        let help = match (self.format, devices.as_str()) {
            (Format::Blkparse, "") => "check the format and the event (Q or D)".to_owned(),
            (_, "") => "check the format".to_owned(),
            (_, devices) => format!("check the device: the trace has {devices}"),
        };
        let at = TraceLine { file: self.file.clone(), number: 0, text: String::new() };
        WorkloadError::of_trace(what, help, at)
    }

    /// Puts a record on the target and on the run's clock.
    fn piece(&mut self, record: &Record) -> Result<Option<Piece>, Fault> {
        let Some((at, left)) = self.addresses.range(record)? else { return Ok(None) };
        let time = self.clock.start(record.time_ps)?;
        Ok(Some(Piece { op: record.op, at, left, time, begun: false }))
    }

    /// The next part of the piece, which is as long as a request and the target's end allow.
    fn part(&mut self, mut piece: Piece) -> Request {
        let capacity = self.addresses.capacity();
        // A range that wraps at the end of the target needs two requests, because one request
        // covers adjacent addresses. All parts keep the time of the record.
        let length = piece.left.min(PIECE_MAX).min(capacity - piece.at);
        let request = Request { op: piece.op, offset_bytes: piece.at, length_bytes: length as u32 };
        piece.left -= length;
        self.next = None;
        if piece.left > 0 {
            // The note counts records and not parts, so the number can be compared with the lines
            // of the file. A record of 10 GiB would otherwise count five times.
            self.split += u64::from(!piece.begun);
            piece.begun = true;
            piece.at = if piece.at + length == capacity { 0 } else { piece.at + length };
            self.next = Some(piece);
        }
        request
    }

    fn finish(&mut self, error: Option<WorkloadError>) -> WorkloadStep {
        self.done = true;
        self.next = None;
        // An error that is still to be fetched stays.
        self.error = error.or(self.error.take());
        WorkloadStep::Done
    }
}

impl Workload for Replay {
    fn next(&mut self, now: Time) -> WorkloadStep {
        if self.done || self.requests_left == 0 {
            return self.finish(None);
        }
        if self.next.is_none() {
            match self.read_on() {
                Ok(Some(piece)) => self.next = Some(piece),
                Ok(None) => return self.finish(None),
                Err(error) => return self.finish(Some(error)),
            }
        }
        let Some(piece) = self.next else { return self.finish(None) };
        let recorded = self.clock.timed() && !self.input.untimed();
        // The latency counts from the recorded time and not from the submission. A device that
        // falls behind would otherwise hide its delay (coordinated omission).
        let intended = if recorded { piece.time } else { now };
        // The end is checked before the depth. A replay whose next record lies beyond the duration lasts until its end, like
        // every open loop: its rate is that of the whole time.
        if intended.max(piece.time) >= self.end {
            return match recorded && now < self.end {
                true => WorkloadStep::NotBefore(self.end),
                false => self.finish(None),
            };
        }
        if self.outstanding >= self.depth {
            return WorkloadStep::Wait;
        }
        if piece.time > now {
            return WorkloadStep::NotBefore(piece.time);
        }
        self.outstanding += 1;
        self.requests_left -= 1;
        WorkloadStep::Issue { request: self.part(piece), intended }
    }

    fn completed(&mut self, _finished: Finished, _now: Time) {
        self.outstanding = self.outstanding.saturating_sub(1);
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = self.remarks.clone();
        notes.extend(self.input.notes().into_iter().map(str::to_owned));
        notes.extend(self.clock.note().filter(|_| !self.input.untimed()));
        self.sink.notes(self.input.unit(), &mut notes);
        let Addresses { widened, wrapped, beyond, beyond_slot, .. } = self.addresses;
        let (late, split) = (self.clock.late, self.split);
        for (count, one, many) in [
            (
                late,
                "request is earlier than the previous line; it started at the same time",
                "requests are earlier than the previous line; they started at the same time",
            ),
            (
                split,
                "request was split: it is too long for one request, or crosses the target's end",
                "requests were split: each is too long for one request, or crosses the target's end",
            ),
            (
                widened,
                "request was widened to whole sectors of the target",
                "requests were widened to whole sectors of the target",
            ),
            (
                wrapped,
                "request ended beyond the target's end; its address was wrapped",
                "requests ended beyond the target's end; their addresses were wrapped",
            ),
            (
                beyond,
                "request was left out: it ends beyond the target's end",
                "requests were left out: they end beyond the target's end",
            ),
            (
                beyond_slot,
                "request was left out: it ends beyond the slot of its device",
                "requests were left out: they end beyond the slots of their devices",
            ),
        ] {
            if count > 0 {
                notes.push(counted(count, one, many));
            }
        }
        notes
    }

    fn error(&mut self) -> Option<WorkloadError> {
        self.error.take()
    }
}

/// Checks the options and returns the factor on times.
fn check_options(options: &TraceOptions) -> Result<f64, WorkloadError> {
    let none =
        |key: &str| Err(WorkloadError::of_key(key, "0 allows no requests", "give 1 or more"));
    let zero = [
        ("depth_limit", options.depth_limit == Some(0)),
        ("requests", options.requests == Some(0)),
        ("slot_bytes", options.slot_bytes == Some(0)),
        ("duration", options.duration == Some(Time::ZERO)),
    ];
    if let Some((key, _)) = zero.into_iter().find(|(_, is_zero)| *is_zero) {
        return none(key);
    }
    match options.timing {
        TraceTiming::AsFastAsPossible { depth: 0 } => none("depth"),
        TraceTiming::Scaled(factor) if !(factor.is_finite() && factor > 0.0) => {
            let what = format!("times cannot be scaled by {factor}");
            let help = "give a number above 0: 0.5 runs twice as fast";
            Err(WorkloadError::of_key("timing", what, help))
        }
        TraceTiming::Scaled(factor) => Ok(factor),
        _ => Ok(1.0),
    }
}

/// Only CSV has columns that may be named.
fn check_columns(options: &TraceOptions, format: Format) -> Result<(), WorkloadError> {
    if options.columns.is_none() || format == Format::Csv {
        return Ok(());
    }
    let what = format!("a trace of the format {format} has its own columns");
    Err(WorkloadError::of_key("columns", what, "leave `trace.columns` out"))
}

/// Which event of `blkparse` starts a request.
fn played_event(
    wanted: Option<BlkEvent>,
    format: Format,
    head: &[u8],
    remarks: &mut Vec<String>,
) -> BlkEvent {
    if wanted.is_none() && format == Format::Blkparse && only_dispatched(head) {
        remarks.push("no event Q (queued): requests start with D (dispatched)".to_owned());
        return BlkEvent::Dispatch;
    }
    wanted.unwrap_or(BlkEvent::Queue)
}

/// The format that was named, or what the beginning of the text looks like.
fn told_format(
    options: &TraceOptions,
    head: &[u8],
    whole: bool,
    remarks: &mut Vec<String>,
) -> Option<Format> {
    if options.format.is_some() {
        return options.format;
    }
    if options.columns.is_some() {
        return Some(Format::Csv);
    }
    let detected = detect(head, whole)?;
    remarks.push(detection_remark(detected.format, detected.doubtful));
    Some(detected.format)
}

fn detection_remark(format: Format, doubtful: bool) -> String {
    if doubtful {
        format!(
            "the trace was read as {format} (times in ns); DiskSim traces with whole milliseconds look the same: if this is a DiskSim trace, set `trace.format=disksim`"
        )
    } else {
        format!("the trace was read as {format}, which was recognised from its content")
    }
}

fn unknown_format(mut lines: Lines, file: &Path) -> WorkloadError {
    // The first line of content, or what keeps it from being read, tells most.
    let mut what = "the format of the trace is not known".to_owned();
    let names = Format::ALL.map(Format::name).join(", ");
    let mut help = format!("name the format: `trace.format` with one of {names}");
    loop {
        match lines.next_line() {
            Ok(Some(line)) if line.trim().is_empty() || line.starts_with('#') => {}
            Ok(Some(line)) => {
                if line.contains(',') {
                    help += "; the first line of csv names the columns, as \
                             `time_us,op,offset_bytes,length_bytes`";
                }
                break;
            }
            Ok(None) => {
                what = "the trace has no line with content".to_owned();
                break;
            }
            Err(fault) => {
                // A file that is not text has no lines to show.
                let at = TraceLine { file: file.to_owned(), number: 0, text: String::new() };
                let help = format!("{}; or {help}", fault.help);
                return WorkloadError::of_trace(fault.what, help, at);
            }
        }
    }
    let at = TraceLine { file: file.to_owned(), number: lines.number(), text: lines.shown() };
    WorkloadError::of_trace(what, help, at)
}
