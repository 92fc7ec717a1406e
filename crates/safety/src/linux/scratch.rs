//! A scratch file while a run writes to it: whether it may be marked anew at the end.
//!
//! The time of change does not help during a run, because our own writes change it. So inotify(7) watches other
//! programs that open and close the file. Reads and writes are not watched, so the watch adds no cost to a
//! request. A program that opened the file for writing before the run is found in /proc when the target is
//! inspected.
//!
//! Not covered: writes of other machines to a file of a network file system.

use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};

use crate::device::System;
use crate::mark::{self, Mark};

/// A file that this program made, from the moment it is open for writing.
#[derive(Debug)]
pub struct ScratchFile {
    /// Without O_DIRECT: reads of it need no alignment.
    file: File,
    size_bytes: u64,
    /// Reports that the file was opened or closed.
    watch: OwnedFd,
}

impl ScratchFile {
    /// Watches `file`, which this program has open for writing. `None` if its mark does not fit (it may hold data of
    /// others), and if it cannot be watched. The file is then not marked again.
    pub fn watch(file: impl AsFd) -> Option<ScratchFile> {
        // The descriptor is followed and not the name: the name may lead to another file by
        // now. The permit is for the file that is open.
        let path = format!("/proc/self/fd/{}", file.as_fd().as_raw_fd());
        let file = File::options().read(true).write(true).open(&path).ok()?;
        let watch = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).ok()?;
        let events = WatchFlags::OPEN | WatchFlags::CLOSE_WRITE | WatchFlags::CLOSE_NOWRITE;
        inotify::add_watch(&watch, &path, events).ok()?;
        // The watch begins before the mark is checked. A write before the watch changed the
        // time that the mark is compared with; a later one is reported by the watch.
        if mark::check(&file) != Mark::Valid {
            return None;
        }
        let size_bytes = file.metadata().ok()?.len();
        Some(ScratchFile { file, size_bytes, watch })
    }

    /// Marks the file again after all writes have completed. If another program may have written to the file, or the
    /// size of the file changed, the old mark stays. It does not fit, so the next run asks.
    ///
    /// It reads 64 blocks of the file and takes two ticks of the kernel's clock.
    pub fn remember(&self) {
        if mark::check(&self.file) != Mark::Valid && self.is_ours().unwrap_or(false) {
            // Without a new mark the next run asks before it writes. Nothing is lost, so an
            // error here does not end a run that succeeded.
            let _ = mark::set(&self.file);
        }
    }

    /// Whether nobody else can have written to it since the watch began.
    fn is_ours(&self) -> io::Result<bool> {
        let status = self.file.metadata()?;
        if status.len() != self.size_bytes {
            return Ok(false);
        }
        let Some(seen) = self.seen()? else { return Ok(false) };
        // A close after writing alone is our own: the kernel closes the descriptors of an earlier ring in the
        // background. This program opens the file once, before the watch, so every open is another program's. Such a
        // program wrote nothing if it opened the file for reading and has closed it.
        Ok(seen.opened == 0
            || seen.closed_after_writing == 0
                && seen.opened == seen.closed_after_reading
                && System::default().users_of_file((status.dev(), status.ino()), None).is_empty())
    }

    /// Opens and closes of the file since the last call; `None` if there were more than the kernel keeps.
    fn seen(&self) -> io::Result<Option<Seen>> {
        let mut seen = Seen::default();
        let mut space = [MaybeUninit::uninit(); 4096];
        let mut reader = inotify::Reader::new(&self.watch, &mut space);
        loop {
            let event = match reader.next() {
                Ok(event) => event.events(),
                Err(rustix::io::Errno::AGAIN) => return Ok(Some(seen)),
                Err(rustix::io::Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            };
            if event.contains(ReadFlags::QUEUE_OVERFLOW) {
                return Ok(None);
            }
            seen.opened += u32::from(event.contains(ReadFlags::OPEN));
            seen.closed_after_writing += u32::from(event.contains(ReadFlags::CLOSE_WRITE));
            seen.closed_after_reading += u32::from(event.contains(ReadFlags::CLOSE_NOWRITE));
        }
    }
}

/// How often others opened and closed the file. Equal events that follow each other count once.
#[derive(Default, Debug)]
struct Seen {
    opened: u32,
    closed_after_writing: u32,
    closed_after_reading: u32,
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Read, Write};
    use std::os::unix::fs::FileExt;
    use std::path::Path;
    use std::process::{Command, Stdio};

    use super::*;

    const SIZE: u64 = 4 << 20;

    fn open(path: &Path) -> File {
        File::options().read(true).write(true).open(path).unwrap()
    }

    /// A run that writes to a new scratch file, while `meanwhile` happens to it; what the mark is worth then.
    /// `None` where the file system has no extended attributes.
    fn run_beside(meanwhile: impl FnOnce(&Path)) -> Option<Mark> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("scratch");
        crate::create(path.to_str().unwrap(), SIZE, &mut || true).unwrap();
        if mark::check(&open(&path)) == Mark::Missing {
            eprintln!("skipped: no extended attributes here");
            return None;
        }
        let ours = open(&path);
        let scratch = ScratchFile::watch(&ours).expect("it is ours");
        ours.write_all_at(&[1; 4096], 8192).unwrap();
        meanwhile(&path);
        ours.write_all_at(&[2; 4096], 4096).unwrap();
        scratch.remember();
        Some(mark::check(&open(&path)))
    }

    fn is_ours_after(meanwhile: impl FnOnce(&Path)) -> bool {
        match run_beside(meanwhile) {
            None | Some(Mark::Valid) => true,
            Some(Mark::Stale(_)) => false,
            Some(Mark::Missing) => panic!("a mark was taken away"),
        }
    }

    #[test]
    fn a_file_that_only_we_wrote_to_is_ours_again() {
        assert!(is_ours_after(|_| ()));
        assert!(is_ours_after(|path| {
            let mut data = Vec::new();
            File::open(path).unwrap().read_to_end(&mut data).unwrap();
            assert_eq!(data.len() as u64, SIZE);
        }));
    }

    /// Inside of what we write and outside, of the same size and larger, closed and still open.
    #[test]
    fn a_file_that_others_wrote_to_is_not() {
        if run_beside(|_| ()).is_none() {
            return;
        }
        for at in [8192, 3 << 20, SIZE] {
            assert!(
                !is_ours_after(|path| open(path).write_all_at(b"precious", at).unwrap()),
                "{at}"
            );
        }
        assert!(!is_ours_after(|path| open(path).set_len(SIZE / 2).unwrap()));
        let mut shell = None;
        assert!(!is_ours_after(|path| {
            let script = "exec 7<>\"$0\"; echo ready; read gone";
            let mut started = Command::new("sh");
            started.args(["-c", script]).arg(path).stdin(Stdio::piped()).stdout(Stdio::piped());
            let mut started = started.spawn().unwrap();
            let mut ready = String::new();
            BufReader::new(started.stdout.as_mut().unwrap()).read_line(&mut ready).unwrap();
            shell = Some(started);
        }));
        let mut shell = shell.unwrap();
        shell.stdin.take().unwrap().write_all(b"\n").unwrap();
        shell.wait().unwrap();
    }

    /// Between the inspection and the opening of the target, or by a run that was killed.
    #[test]
    fn a_file_that_was_written_to_before_is_not_watched() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("scratch");
        crate::create(path.to_str().unwrap(), SIZE, &mut || true).unwrap();
        open(&path).write_all_at(b"precious", 5000).unwrap();
        assert!(ScratchFile::watch(open(&path)).is_none());
    }
}
