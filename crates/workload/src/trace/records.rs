//! Records of a fixed length from any stream.

use std::io::{BufReader, ErrorKind, Read};

use super::lines::unreadable;
use super::number::Fault;

/// Longest record of any format here.
const RECORD_MAX: usize = 40;

/// Reads one record at a time into one buffer.
pub(crate) struct Records {
    reader: BufReader<Box<dyn Read + Send>>,
    buffer: [u8; RECORD_MAX],
    size: usize,
    /// Records read, with the one that failed.
    count: u64,
}

impl Records {
    /// Of `size` bytes each, [`RECORD_MAX`] at most.
    pub(crate) fn new(reader: Box<dyn Read + Send>, size: usize) -> Records {
        // A record has 24 to 40 bytes. Without a buffer each would be a system call, which costs
        // more than the record itself.
        let reader = BufReader::with_capacity(128 << 10, reader);
        Records { reader, buffer: [0; RECORD_MAX], size: size.min(RECORD_MAX), count: 0 }
    }

    /// Number of the record last read, from 1.
    pub(crate) fn number(&self) -> u64 {
        self.count
    }

    /// Where the record last read begins.
    pub(crate) fn byte(&self) -> u64 {
        self.count.saturating_sub(1) * self.size as u64
    }

    /// The next record, `None` after the last.
    pub(crate) fn next_record(&mut self) -> Result<Option<&[u8]>, Fault> {
        self.count += 1;
        let mut filled = 0;
        while filled < self.size {
            match self.reader.read(&mut self.buffer[filled..self.size]) {
                Ok(0) if filled == 0 => return Ok(None),
                Ok(0) => {
                    let what =
                        format!("the last record is cut short: {filled} bytes of {}", self.size);
                    let help = "copy the file again; the requests before this were read";
                    return Err(Fault::new(what, help));
                }
                Ok(count) => filled += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(unreadable(&error)),
            }
        }
        Ok(Some(&self.buffer[..self.size]))
    }
}
