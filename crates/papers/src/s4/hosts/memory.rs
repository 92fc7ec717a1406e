//! Files that are in memory only.

use std::fs::File;
use std::io::Write;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::fs::{MemfdFlags, memfd_create};
use ssdyno_session::Failure;

/// A file that is in memory and goes with us.
pub(super) struct MemoryFile(File);

impl MemoryFile {
    pub(super) fn new(name: &str, contents: &[u8]) -> Result<MemoryFile, Failure> {
        let cannot = |error: std::io::Error| {
            Failure::failed(format!("no memory for the target's data: {error}"))
        };
        let file: OwnedFd =
            // A file in memory has no disk behind it, so table 4 measures the network and the
            // target's CPU (S4-46). It vanishes with the process, even after a kill.
            memfd_create(name, MemfdFlags::CLOEXEC).map_err(|error| cannot(error.into()))?;
        let mut file = File::from(file);
        file.write_all(contents).map_err(cannot)?;
        Ok(MemoryFile(file))
    }

    /// Its name for programs that run while it is open.
    pub(super) fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_in_memory_can_be_read_by_others() {
        let file = MemoryFile::new("x", b"contents").unwrap();
        assert_eq!(std::fs::read(file.path()).unwrap(), b"contents");
    }
}
