//! The mark on files that this program made: scratch files, which it may overwrite without being asked.
//!
//! A mark that only says *made by ssdyno* outlives the data: `cp precious scratch` replaces the contents
//! and keeps the extended attribute, and `cp -a scratch copy` takes it along. So the mark describes the
//! very file and the very data that it was set for: inode, size, time of last modification, and a
//! checksum of blocks spread over the file. Whatever differs makes the mark worthless. A run that writes
//! sets it anew at its end; a run that is killed leaves the old one, which no longer fits.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;

use rustix::fs::{XattrFlags, fgetxattr, fsetxattr};

use crate::signature::for_each_sample;

/// The extended attribute.
const NAME: &str = "user.ssdyno.created";

/// What a file's mark is worth.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mark {
    /// This program made the file, and nobody else has written to it since.
    Valid,
    /// There is a mark, but it does not fit the file: what differs.
    Stale(&'static str),
    /// There is none.
    Missing,
}

/// What a mark says of a file.
#[derive(PartialEq, Eq, Debug)]
struct Facts {
    inode: u64,
    size_bytes: u64,
    modified_s: i64,
    modified_ns: i64,
    checksum: u32,
}

impl Facts {
    fn of(file: &File) -> io::Result<Facts> {
        let status = file.metadata()?;
        Ok(Facts {
            inode: status.ino(),
            size_bytes: status.len(),
            modified_s: status.mtime(),
            modified_ns: status.mtime_nsec(),
            checksum: checksum(file, status.len())?,
        })
    }

    /// As it stands in the attribute.
    fn text(&self) -> String {
        let Facts { inode, size_bytes, modified_s, modified_ns, checksum } = self;
        format!("2 {inode} {size_bytes} {modified_s} {modified_ns} {checksum:08x}")
    }

    /// Reads [`text`](Facts::text); `None` for anything else, such as the marks of version 1, which
    /// described nothing.
    fn parse(text: &[u8]) -> Option<Facts> {
        let mut words = std::str::from_utf8(text).ok()?.strip_prefix("2 ")?.split(' ');
        let facts = Facts {
            inode: words.next()?.parse().ok()?,
            size_bytes: words.next()?.parse().ok()?,
            modified_s: words.next()?.parse().ok()?,
            modified_ns: words.next()?.parse().ok()?,
            checksum: u32::from_str_radix(words.next()?, 16).ok()?,
        };
        words.next().is_none().then_some(facts)
    }
}

/// Of blocks that are spread over the file.
fn checksum(file: &File, size_bytes: u64) -> io::Result<u32> {
    let mut sum = 0;
    for_each_sample(file, size_bytes, |block| sum = crc32c::crc32c_append(sum, block))?;
    Ok(sum)
}

/// Marks `file`, which must be readable and writable, as it is now.
///
/// # Errors
/// The file cannot be read, or its file system has no extended attributes.
pub(crate) fn set(file: &File) -> io::Result<()> {
    let text = Facts::of(file)?.text();
    Ok(fsetxattr(file, NAME, text.as_bytes(), XattrFlags::empty())?)
}

/// What the mark of `file` is worth. What cannot be read is not believed.
pub(crate) fn check(file: &File) -> Mark {
    let mut text = [0u8; 128];
    let marked = match fgetxattr(file, NAME, &mut text) {
        Ok(length) => &text[..length],
        // Longer than any mark of ours.
        Err(rustix::io::Errno::RANGE) => &[],
        Err(_) => return Mark::Missing,
    };
    let Some(marked) = Facts::parse(marked) else {
        return Mark::Stale("the mark is of another version");
    };
    let Ok(found) = Facts::of(file) else { return Mark::Stale("it cannot be read") };
    if marked.inode != found.inode {
        Mark::Stale("it is a copy")
    } else if marked.size_bytes != found.size_bytes {
        Mark::Stale("its size changed")
    } else if (marked.modified_s, marked.modified_ns) != (found.modified_s, found.modified_ns) {
        Mark::Stale("it was written since")
    } else if marked.checksum != found.checksum {
        Mark::Stale("its contents changed")
    } else {
        Mark::Valid
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::fs::FileExt;
    use std::path::Path;

    use super::*;

    const SIZE: usize = 3 << 20;

    fn open(path: &Path) -> File {
        File::options().read(true).write(true).open(path).unwrap()
    }

    /// A marked file; `None` where the file system has no extended attributes.
    fn marked(dir: &Path) -> Option<std::path::PathBuf> {
        let path = dir.join("scratch");
        std::fs::write(&path, vec![7u8; SIZE]).unwrap();
        if let Err(error) = set(&open(&path)) {
            eprintln!("skipped: no extended attributes here ({error})");
            return None;
        }
        assert_eq!(check(&open(&path)), Mark::Valid);
        Some(path)
    }

    fn cp(arguments: &[&str], from: &Path, to: &Path) {
        let status = std::process::Command::new("cp").args(arguments).arg(from).arg(to).status();
        assert!(status.unwrap().success());
    }

    /// Each way in which data of others come under a mark, or a mark over data of others.
    #[test]
    fn a_mark_does_not_outlive_its_data() {
        let dir = tempfile::tempdir().unwrap();
        let Some(scratch) = marked(dir.path()) else { return };
        let precious = dir.path().join("precious");
        std::fs::write(&precious, vec![9u8; SIZE]).unwrap();

        let copy = dir.path().join("copy");
        cp(&["-a"], &scratch, &copy);
        assert_eq!(check(&open(&copy)), Mark::Stale("it is a copy"));

        // As large as the scratch file.
        cp(&[], &precious, &scratch);
        assert_eq!(check(&open(&scratch)), Mark::Stale("it was written since"));
        set(&open(&scratch)).unwrap();
        open(&scratch).write_all(b"a line").unwrap();
        assert_eq!(check(&open(&scratch)), Mark::Stale("it was written since"));
        set(&open(&scratch)).unwrap();
        open(&scratch).set_len(SIZE as u64 / 2).unwrap();
        assert_eq!(check(&open(&scratch)), Mark::Stale("its size changed"));
    }

    /// `rsync --inplace -t`, `touch -r`: the time of modification is set back.
    #[test]
    fn a_time_that_was_set_back_does_not_help() {
        let dir = tempfile::tempdir().unwrap();
        let Some(scratch) = marked(dir.path()) else { return };
        let file = open(&scratch);
        let modified = file.metadata().unwrap().modified().unwrap();
        file.write_all_at(&vec![9u8; SIZE], 0).unwrap();
        file.set_modified(modified).unwrap();
        assert_eq!(check(&file), Mark::Stale("its contents changed"));
    }

    #[test]
    fn a_mark_moves_with_its_file_and_nothing_else_is_one() {
        let dir = tempfile::tempdir().unwrap();
        let Some(scratch) = marked(dir.path()) else { return };
        let moved = dir.path().join("moved");
        std::fs::rename(&scratch, &moved).unwrap();
        assert_eq!(check(&open(&moved)), Mark::Valid);
        let long = "2 ".repeat(200);
        for text in ["1", "", "2 1 2", "2 1 2 3 4 zz", "2 1 2 3 4 0 5", &long] {
            fsetxattr(open(&moved), NAME, text.as_bytes(), XattrFlags::empty()).unwrap();
            assert_eq!(check(&open(&moved)), Mark::Stale("the mark is of another version"));
        }
        rustix::fs::fremovexattr(open(&moved), NAME).unwrap();
        assert_eq!(check(&open(&moved)), Mark::Missing);
    }

    /// Small files have the same block many times; an empty one has none.
    #[test]
    fn files_of_any_size_are_marked() {
        let dir = tempfile::tempdir().unwrap();
        if marked(dir.path()).is_none() {
            return;
        }
        for size in [0, 1, 4095, 4096, 4097, 300_000] {
            let path = dir.path().join(size.to_string());
            std::fs::write(&path, vec![1u8; size]).unwrap();
            set(&open(&path)).unwrap();
            assert_eq!(check(&open(&path)), Mark::Valid, "{size}");
        }
    }
}
