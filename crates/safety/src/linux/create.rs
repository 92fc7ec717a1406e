//! A scratch file: made only where the file system has the space for it.

use std::fmt;
use std::fs::{File, Metadata};
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use ssdyno_block::units::Bytes;

use crate::inspect::SafetyError;
use crate::mark;
use crate::permit::WritePermit;

/// Free space that a new file leaves to other programs, at most. A small file system keeps a twentieth of its size.
const KEPT_BYTES_MOST: u64 = 1 << 30;
const KEPT_SHARE: u64 = 20;

/// Bytes between two waits for the drive. An interrupt then never waits for a whole file in the page cache.
const SYNC_EVERY_BYTES: u64 = 128 << 20;

/// The space of a file system.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Space {
    /// Bytes that the user may still write.
    pub free_bytes: u64,
    /// Bytes of them that stay free for other programs.
    pub kept_bytes: u64,
}

impl Space {
    /// The space around `file`; `None` if the file system does not report it.
    fn around(file: &File) -> Option<Space> {
        let found = rustix::fs::fstatvfs(file.as_fd()).ok().filter(|found| found.f_blocks > 0)?;
        let bytes = |blocks: u64| blocks.saturating_mul(found.f_frsize);
        Some(Space::of(bytes(found.f_bavail), bytes(found.f_blocks)))
    }

    fn of(free_bytes: u64, size_bytes: u64) -> Space {
        Space { free_bytes, kept_bytes: (size_bytes / KEPT_SHARE).min(KEPT_BYTES_MOST) }
    }

    /// The size of the largest file that fits.
    pub fn most_bytes(&self) -> u64 {
        self.free_bytes.saturating_sub(self.kept_bytes)
    }
}

impl fmt::Display for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Free space is a number of blocks of 4 KiB, and nobody reads so many digits.
        write!(f, "{}", Bytes(self.free_bytes >> 20 << 20))
    }
}

/// Makes the file `target` of `size_bytes`, all written, so that reads find data; marks it as ours.
/// An existing file is never touched. It stops as soon as `keep_going` is false.
///
/// # Errors
/// [`SafetyError::Space`], [`SafetyError::Stopped`], [`SafetyError::Create`]; nothing is left behind then.
pub fn create(
    target: &str,
    size_bytes: u64,
    keep_going: &mut dyn FnMut() -> bool,
) -> Result<WritePermit, SafetyError> {
    let failed = |source| SafetyError::Create { target: target.to_owned(), source };
    if is_place_of_devices(Path::new(target)) {
        let why =
            "there is no device of that name, and ssdyno creates no file under /dev, /proc or /sys";
        return Err(failed(io::Error::new(io::ErrorKind::InvalidInput, why)));
    }
    let folder = Path::new(target).parent().filter(|folder| !folder.as_os_str().is_empty());
    // The space is asked for before anything is created.
    let space = File::open(folder.unwrap_or(Path::new("."))).ok().as_ref().and_then(Space::around);
    if let Some(space) = space.filter(|space| size_bytes > space.most_bytes()) {
        return Err(SafetyError::Space { target: target.to_owned(), size_bytes, space });
    }
    let new = NewFile::make(Path::new(target)).map_err(failed)?;
    let made = match fill(&new.file, size_bytes, keep_going) {
        Ok(true) => new.finish(Path::new(target)).map_err(failed),
        Ok(false) => Err(SafetyError::Stopped { target: target.to_owned() }),
        Err(source) => Err(failed(source)),
    };
    match made {
        Ok(status) => Ok(WritePermit::for_scratch(status.dev(), status.ino())),
        Err(error) => {
            // The half-written file is ours and useless. An error of the removal is ignored,
            // because the first error is the one that helps the user.
            if new.has_name {
                let _ = std::fs::remove_file(target);
            }
            Err(error)
        }
    }
}

/// A file that this program makes.
struct NewFile {
    file: File,
    /// It has its name from the start, because the file system has no files without names.
    has_name: bool,
}

impl NewFile {
    /// Makes the file for `target`, which must not exist.
    fn make(target: &Path) -> io::Result<NewFile> {
        // A file without a name is gone with the program, however it ends: a second interrupt or `kill -9` during minutes of
        // writing would otherwise leave a large useless file.
        let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty());
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(0o666);
        if target.symlink_metadata().is_err()
            && let Ok(file) = rustix::fs::open(folder.unwrap_or(Path::new(".")), flags, mode)
        {
            return Ok(NewFile { file: file.into(), has_name: false });
        }
        let mut options = File::options();
        let file = options.read(true).write(true).create_new(true).open(target)?;
        Ok(NewFile { file, has_name: true })
    }

    /// Gives the file the name `target`, if it has none, and marks it. A file that came to lie there meanwhile stays as it is.
    fn finish(&self, target: &Path) -> io::Result<Metadata> {
        if !self.has_name {
            // open(2), O_TMPFILE: without CAP_DAC_READ_SEARCH, the link in /proc is the way to a file without a name.
            let source = format!("/proc/self/fd/{}", self.file.as_raw_fd());
            rustix::fs::linkat(CWD, source, CWD, target, AtFlags::SYMLINK_FOLLOW)?;
        }
        // The mark has the time of the last change of the inode, which the new name sets: it comes after it. Some file systems
        // have no extended attributes. The file then has no mark, and the next run asks before it writes.
        let _ = mark::set(&self.file);
        self.file.metadata()
    }
}

/// Writes data, not zeroes: some devices and file systems do not store those. False: stopped before the end.
fn fill(
    mut file: &File,
    size_bytes: u64,
    keep_going: &mut dyn FnMut() -> bool,
) -> io::Result<bool> {
    let mut block = vec![0u8; 1 << 20];
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for word in block.chunks_exact_mut(8) {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        word.copy_from_slice(&(state ^ state >> 29).to_le_bytes());
    }
    let mut done = 0;
    while done < size_bytes {
        if !keep_going() {
            return Ok(false);
        }
        let length = (size_bytes - done).min(block.len() as u64);
        file.write_all(&block[..length as usize])?;
        done += length;
        if done.is_multiple_of(SYNC_EVERY_BYTES) {
            file.sync_data()?;
        }
    }
    file.sync_all()?;
    Ok(true)
}

/// Whether `path` lies where the kernel has its devices and settings, so that a regular file there is a mistake:
/// /dev, /proc and /sys, but not /dev/shm, which is for files.
pub fn is_place_of_devices(path: &Path) -> bool {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    // A folder may be a symbolic link or may be reached through `..`. Only its true name says
    // whether it lies in /dev.
    let folder = absolute.parent().unwrap_or(Path::new("/"));
    let folder = std::fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    ["/dev", "/proc", "/sys"].iter().any(|place| folder.starts_with(place))
        && !folder.starts_with("/dev/shm")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_made_is_not_left_behind() {
        let message = create("/proc/ssdyno", 1, &mut || true).unwrap_err();
        assert!(message.to_string().contains("/proc/ssdyno"));
    }

    #[test]
    fn a_file_that_does_not_fit_is_refused_before_anything_is_written() {
        let place = tempfile::tempdir().unwrap();
        let target = place.path().join("new").display().to_string();
        let refused = create(&target, 100 << 50, &mut || unreachable!("nothing is written"));
        let error = refused.unwrap_err();
        let text = error.to_string();
        assert!(text.contains("needs 102400TiB, but the file system has "), "{text}");
        assert!(matches!(error, SafetyError::Space { .. }), "{error}");
        assert!(!Path::new(&target).exists());
    }

    #[test]
    fn a_margin_stays_free() {
        let small = Space::of(2 << 30, 3 << 30);
        assert_eq!(small.kept_bytes, (3 << 30) / 20);
        assert_eq!(Space::of(500 << 30, 1 << 40).most_bytes(), 499 << 30);
        assert_eq!(Space::of(1, 1 << 40).most_bytes(), 0);
    }

    #[test]
    fn an_interrupt_removes_the_unfinished_file() {
        let place = tempfile::tempdir().unwrap();
        let target = place.path().join("new").display().to_string();
        let mut calls = 0;
        let made = create(&target, 8 << 20, &mut || {
            calls += 1;
            calls < 3
        });
        assert!(matches!(made, Err(SafetyError::Stopped { .. })), "{made:?}");
        assert_eq!((calls, Path::new(&target).exists()), (3, false));
    }

    /// A program that is killed removes nothing: the file must not have its name before it is whole.
    #[test]
    fn an_unfinished_file_has_no_name_where_the_file_system_can() {
        let place = tempfile::tempdir().unwrap();
        let target = place.path().join("new");
        let has_unnamed = !NewFile::make(&target).unwrap().has_name;
        let mut seen = Vec::new();
        let name = target.display().to_string();
        create(&name, 2 << 20, &mut || {
            seen.push(target.exists());
            true
        })
        .unwrap();
        if has_unnamed {
            assert_eq!(seen, [false, false]);
        }
        assert_eq!(std::fs::metadata(&target).unwrap().len(), 2 << 20);
        assert!(create(&name, 4096, &mut || true).is_err(), "an existing file stays");
        assert_eq!(std::fs::metadata(&target).unwrap().len(), 2 << 20);
    }
}
