//! The content of a trace: lines, or records of a fixed length.

use std::io::Read;
use std::path::Path;

use super::Format;
use super::formats::{LineReader, ReaderOptions, RecordReader, Sink, line_reader, record_reader};
use super::lines::Lines;
use super::number::Fault;
use super::records::Records;
use crate::{TraceLine, WorkloadError};

/// The rest of a trace.
pub(crate) enum Input {
    Text { lines: Lines, reader: Box<dyn LineReader> },
    Binary { records: Records, reader: Box<dyn RecordReader> },
}

impl Input {
    /// Reads `source`, which begins with `head`, as `format`.
    pub(crate) fn new(
        source: Box<dyn Read + Send>,
        format: Format,
        head: &[u8],
        options: &ReaderOptions<'_>,
    ) -> Result<Input, Fault> {
        if format.is_binary() {
            let reader = record_reader(format, head, options)?;
            return Ok(Input::Binary { records: Records::new(source, reader.size()), reader });
        }
        Ok(Input::Text { lines: Lines::new(source), reader: line_reader(format, options)? })
    }

    /// Reads on until something was found or passed over; `false` at the end.
    pub(crate) fn read(&mut self, sink: &mut Sink) -> Result<bool, Fault> {
        match self {
            // Comments and empty lines count as read, so that the numbers of lines in errors are
            // those that an editor shows.
            Input::Text { lines, reader } => {
                let Some(line) = lines.next_line()? else { return Ok(false) };
                let content = line.trim();
                if content.is_empty() || content.starts_with('#') {
                    return Ok(true);
                }
                reader.line(if reader.keeps_blanks() { line } else { content }, sink)?;
            }
            Input::Binary { records, reader } => {
                let Some(record) = records.next_record()? else { return Ok(false) };
                reader.record(record, sink)?;
            }
        }
        Ok(true)
    }

    /// The requests of this trace carry no times.
    pub(crate) fn untimed(&self) -> bool {
        match self {
            Input::Text { reader, .. } => reader.untimed(),
            Input::Binary { .. } => false,
        }
    }

    /// Its content.
    pub(crate) fn unit(&self) -> &'static str {
        match self {
            Input::Text { .. } => "line",
            Input::Binary { .. } => "record",
        }
    }

    /// The notes on the trace for a reader of the figures.
    pub(crate) fn notes(&self) -> Vec<&'static str> {
        match self {
            Input::Text { reader, .. } => reader.notes(),
            Input::Binary { reader, .. } => reader.notes(),
        }
    }

    /// The problem with the part that was read last.
    pub(crate) fn locate(&self, fault: Fault, file: &Path) -> WorkloadError {
        let file = file.to_owned();
        match self {
            Input::Text { lines, .. } => {
                let at = TraceLine { file, number: lines.number(), text: lines.shown() };
                WorkloadError::of_trace(fault.what, fault.help, at)
            }
            Input::Binary { records, .. } => {
                // A hex editor finds a byte, and a tool that counts records finds a number. The
                // error therefore gives both of them.
                let (byte, number) = (records.byte(), records.number());
                let what = format!("byte {byte} (record {number}): {}", fault.what);
                let at = TraceLine { file, number: 0, text: String::new() };
                WorkloadError::of_trace(what, fault.help, at)
            }
        }
    }
}
