//! Lines of bounded length from any stream.

use std::io::{BufRead, BufReader, ErrorKind, Read};

use super::number::Fault;

/// Longest line; the longest of any format here has a few hundred bytes.
pub(crate) const LINE_MAX: usize = 64 << 10;

/// Reads one line at a time into one buffer.
pub(crate) struct Lines {
    reader: BufReader<Box<dyn Read + Send>>,
    buffer: Vec<u8>,
    number: u64,
}

impl Lines {
    pub(crate) fn new(reader: Box<dyn Read + Send>) -> Lines {
        Lines { reader: BufReader::with_capacity(128 << 10, reader), buffer: Vec::new(), number: 0 }
    }

    /// Number of the line last read, from 1.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// The line last read, fit to be shown: cut, and with what is not UTF-8 replaced.
    pub(crate) fn shown(&self) -> String {
        let end = self.buffer.len().min(800);
        String::from_utf8_lossy(&self.buffer[..end]).trim_end().chars().take(200).collect()
    }

    /// The next line without its end, `None` after the last.
    pub(crate) fn next_line(&mut self) -> Result<Option<&str>, Fault> {
        self.buffer.clear();
        self.number += 1;
        let mut ended = false;
        while !ended {
            let chunk = match self.reader.fill_buf() {
                Ok([]) => break,
                Ok(chunk) => chunk,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(unreadable(&error)),
            };
            let end = chunk.iter().position(|&byte| byte == b'\n');
            let taken = end.map_or(chunk.len(), |at| at + 1);
            self.buffer.extend_from_slice(&chunk[..taken]);
            self.reader.consume(taken);
            ended = end.is_some();
            // The bound protects the memory: a binary file without line feeds would otherwise be
            // read into one buffer as a whole.
            if self.buffer.len() > LINE_MAX {
                return Err(Fault::new(
                    format!("the line is longer than {LINE_MAX} bytes"),
                    "this is not a text trace, or its line ends are lost",
                ));
            }
        }
        if self.buffer.is_empty() {
            return Ok(None);
        }
        let skip = if self.number == 1 && self.buffer.starts_with(b"\xEF\xBB\xBF") { 3 } else { 0 };
        match std::str::from_utf8(&self.buffer[skip..]) {
            Ok(text) => Ok(Some(text.trim_end_matches(['\n', '\r']))),
            Err(_) => Err(not_text(self.number, &self.buffer)),
        }
    }
}

/// A line that is not text; from the first line, the kind of the file may be recognised.
fn not_text(number: u64, line: &[u8]) -> Fault {
    if number == 1 && line.starts_with(b"PAR1") {
        return Fault::new(
            "this is a Parquet file",
            "record the run with its rows as CSV, or write the rows out as CSV in the order of issue_ns",
        );
    }
    Fault::new(
        "the line is not UTF-8 text",
        "most traces are text; binary traces in oraclegeneral and vscsi format also work; convert others first",
    )
}

/// Whether the data ends where more is needed; some decoders wrap it in errors of their own.
fn ends_early(error: &std::io::Error) -> bool {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(one) = cause {
        if let Some(io) = one.downcast_ref::<std::io::Error>() {
            if io.kind() == ErrorKind::UnexpectedEof {
                return true;
            }
            // Its source leaves out the error that it holds itself.
            cause = io.get_ref().map(|inner| inner as _);
        } else {
            cause = one.source();
        }
    }
    false
}

pub(crate) fn unreadable(error: &std::io::Error) -> Fault {
    let what = if ends_early(error) {
        "the file is cut short: its compressed data ends in the middle".to_owned()
    } else {
        format!("reading failed: {error}")
    };
    Fault::new(what, "copy or compress the file again; the requests before this were read")
}
