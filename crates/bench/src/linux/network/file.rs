//! A network target for callers that read and write with blocking calls: to inspect its contents, and to verify it.

use std::io;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ssdyno_block::Request;
use ssdyno_safety::{self as safety, Inspection, SafetyError};

use super::remote::Remote;
use crate::engine::network::Network;
use crate::error::BenchError;

/// The time that a call waits for its response before consent is given, when nobody watches it.
const INSPECTION_MOST: Duration = Duration::from_secs(5);

/// How long calls wait otherwise: whoever uses them watches them, and gives up earlier.
const CALL_MOST: Duration = Duration::from_secs(3600);

/// Looks at the export that `target` names, reading only: what it is, what lies on it, whether it may be written to.
///
/// # Errors
/// It cannot be reached, or not be read.
pub fn inspect_export(target: &str) -> Result<Result<Inspection, SafetyError>, BenchError> {
    let remote = Arc::new(Remote::open(target)?);
    let (read_only, name) = (remote.facts().read_only, remote.short_name());
    let file = RemoteFile::new(remote, INSPECTION_MOST);
    let facts = safety::Export { target, name: &name, size_bytes: file.size_bytes(), read_only };
    Ok(safety::inspect_export(&facts, &file))
}

/// Reads, writes and flushes of a network target. Calls of several threads are on their way together, each on a
/// connection of its own, where a flush on one is for all; one after the other elsewhere.
#[derive(Debug)]
pub struct RemoteFile {
    remote: Arc<Remote>,
    patience: Duration,
    /// Held by the only call, where a flush is for one connection.
    alone: Mutex<()>,
}

impl RemoteFile {
    fn new(remote: Arc<Remote>, patience: Duration) -> RemoteFile {
        RemoteFile { remote, patience, alone: Mutex::new(()) }
    }

    pub(crate) fn of(remote: &Arc<Remote>) -> RemoteFile {
        RemoteFile::new(Arc::clone(remote), CALL_MOST)
    }

    /// Bytes that can be reached.
    fn size_bytes(&self) -> u64 {
        let sector = u64::from(self.sector_bytes());
        self.remote.facts().size_bytes / sector * sector
    }

    fn sector_bytes(&self) -> u32 {
        self.remote.facts().sector_bytes
    }

    /// Makes durable what completed before.
    ///
    /// # Errors
    /// The server does not take flushes, or fails.
    pub fn flush(&self) -> io::Result<()> {
        self.call(&Request::flush(), &[], &mut [])
    }

    /// Carries out `request`, which is within the target and in whole blocks.
    fn call(&self, request: &Request, data: &[u8], place: &mut [u8]) -> io::Result<()> {
        let _alone = (!self.remote.facts().shares_flushes)
            .then(|| self.alone.lock().unwrap_or_else(PoisonError::into_inner));
        let link = self.remote.link().map_err(|error| io::Error::other(error.to_string()))?;
        let sizes = (1, request.length_bytes);
        let connection = Network::new(Arc::clone(&self.remote), link, sizes, None, false)?;
        connection.call(request, data, place, self.patience)
    }
}

impl FileExt for RemoteFile {
    /// Fewer bytes than requested at the end, and in one call.
    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize> {
        let end = self.size_bytes();
        let length = (out.len() as u64).min(end.saturating_sub(offset));
        if length == 0 {
            return Ok(0);
        }
        // The server takes whole blocks only.
        let sector = u64::from(self.sector_bytes());
        let (first, last) = (offset / sector * sector, (offset + length).next_multiple_of(sector));
        let most = u64::from(self.remote.facts().most_bytes).min(1 << 30) / sector * sector;
        let read = (last - first).min(most);
        let whole = (first, read) == (offset, length);
        let request = Request::read(first, read as u32);
        if whole {
            self.call(&request, &[], &mut out[..length as usize])?;
            return Ok(length as usize);
        }
        let mut blocks = vec![0; read as usize];
        self.call(&request, &[], &mut blocks)?;
        let part = &blocks[(offset - first) as usize..];
        let count = part.len().min(length as usize);
        out[..count].copy_from_slice(&part[..count]);
        Ok(count)
    }

    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<usize> {
        let sector = u64::from(self.sector_bytes());
        let most = u64::from(self.remote.facts().most_bytes) / sector * sector;
        let length = (data.len() as u64).min(most);
        if !(offset | length).is_multiple_of(sector) || offset + length > self.size_bytes() {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        let request = Request::write(offset, length as u32);
        self.call(&request, &data[..length as usize], &mut [])?;
        Ok(length as usize)
    }
}
