//! What is verified.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Something that keeps blocks: a device, a file, in tests a memory that forgets.
pub trait Medium: Sync {
    /// Fills `out` from `offset_bytes`.
    ///
    /// # Errors
    /// Those of the system.
    fn read(&self, offset_bytes: u64, out: &mut [u8]) -> io::Result<()>;
    /// Writes all of `data` at `offset_bytes`.
    ///
    /// # Errors
    /// Those of the system.
    fn write(&self, offset_bytes: u64, data: &[u8]) -> io::Result<()>;
    /// Makes durable what completed before.
    ///
    /// # Errors
    /// Those of the system.
    fn flush(&self) -> io::Result<()>;
}

impl Medium for File {
    fn read(&self, offset_bytes: u64, out: &mut [u8]) -> io::Result<()> {
        self.read_exact_at(out, offset_bytes)
    }
    fn write(&self, offset_bytes: u64, data: &[u8]) -> io::Result<()> {
        self.write_all_at(data, offset_bytes)
    }
    fn flush(&self) -> io::Result<()> {
        self.sync_data()
    }
}

/// Memory on a page boundary, as O_DIRECT wants it.
#[derive(Debug)]
pub(crate) struct Aligned {
    bytes: Vec<u8>,
    start: usize,
    length: usize,
}

impl Aligned {
    const PAGE_BYTES: usize = 4096;

    pub(crate) fn new(length: usize) -> Aligned {
        let bytes = vec![0; length + Aligned::PAGE_BYTES];
        let start = bytes.as_ptr().align_offset(Aligned::PAGE_BYTES).min(Aligned::PAGE_BYTES);
        Aligned { bytes, start, length }
    }

    pub(crate) fn as_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.start + self.length]
    }
}
