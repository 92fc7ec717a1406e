//! The mark on files that this program made: scratch files, which it may overwrite without being asked.
//!
//! A mark that only says *made by ssdyno* outlives the data: `cp precious scratch` replaces the contents
//! and keeps the extended attribute, and `cp -a scratch copy` takes it along. So the mark describes the
//! file in the state in which it was set: inode, size, and the time of the last change of the inode (ctime).
//! No program can set that time (utimensat(2) sets it to now). So the mark becomes stale after a write of one
//! byte, also where the time of modification is set back, as `rsync -t` does. The mark also has a checksum of
//! sampled blocks, because the clock of the system can be set back. The checksum alone is not enough: it does
//! not cover the bytes between the samples.
//!
//! A run that writes sets the mark again at its end, if no other program wrote to the file
//! ([`scratch`](crate::scratch)). A run that is killed leaves the old mark, which does not fit any more.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;

use rustix::fs::{XattrFlags, fgetxattr, fremovexattr, fsetxattr};
use rustix::time::{ClockId, Timespec, clock_gettime};

use crate::signature::for_each_sample;

/// The extended attribute.
const NAME: &str = "user.ssdyno.created";

/// How often [`set`] tries to predict the time of change. A try takes two ticks of the kernel (2 to 20 ms). It
/// fails if another program makes the kernel hand out a later time between the tick and the setting.
const TRIES: u32 = 20;

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

/// Of a file whose inode was changed after it was marked.
pub(crate) const CHANGED: Mark = Mark::Stale("it was written, renamed or otherwise changed since");

/// The contents of a mark about a file.
#[derive(PartialEq, Eq, Debug)]
struct Facts {
    inode: u64,
    size_bytes: u64,
    changed_s: i64,
    changed_ns: i64,
    checksum: u32,
}

impl Facts {
    fn of(file: &File) -> io::Result<Facts> {
        let status = file.metadata()?;
        Ok(Facts {
            inode: status.ino(),
            size_bytes: status.len(),
            changed_s: status.ctime(),
            changed_ns: status.ctime_nsec(),
            checksum: checksum(file, status.len())?,
        })
    }

    /// As it stands in the attribute.
    fn text(&self) -> String {
        let Facts { inode, size_bytes, changed_s, changed_ns, checksum } = self;
        format!("3 {inode} {size_bytes} {changed_s} {changed_ns} {checksum:08x}")
    }

    /// Reads [`text`](Facts::text); `None` for anything else, such as the marks of version 1, which
    /// described nothing, and of version 2, which believed the time of modification.
    fn parse(text: &[u8]) -> Option<Facts> {
        let mut words = std::str::from_utf8(text).ok()?.strip_prefix("3 ")?.split(' ');
        let facts = Facts {
            inode: words.next()?.parse().ok()?,
            size_bytes: words.next()?.parse().ok()?,
            changed_s: words.next()?.parse().ok()?,
            changed_ns: words.next()?.parse().ok()?,
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

/// Marks `file`, which must be readable and may be written to by this user, as it is now.
///
/// Setting the attribute changes the inode, so the mark must predict the time of its own setting. The kernel
/// takes that time from a clock that moves once a tick, and the mark is set right after a tick. Since Linux
/// 6.13 an inode whose time was read gets a finer time at its next change; a first setting of the attribute
/// uses that finer time up. The predicted time is compared with the true one; a wrong prediction is repeated.
///
/// # Errors
/// The file cannot be read, its file system has no extended attributes, or its times are not those of this
/// machine's clock (a network file system); then there is no mark.
pub(crate) fn set(file: &File) -> io::Result<()> {
    let mut facts = Facts::of(file)?;
    for _ in 0..TRIES {
        put(file, "3")?;
        let tick = next_tick();
        (facts.changed_s, facts.changed_ns) = (tick.tv_sec, tick.tv_nsec);
        put(file, &facts.text())?;
        let status = file.metadata()?;
        // The prediction was right, and the mark describes the inode. A wrong prediction would
        // leave a mark that is stale from the start, so the setting is repeated.
        if (status.ctime(), status.ctime_nsec()) == (facts.changed_s, facts.changed_ns) {
            // Before Linux 6.13 a change within the same tick gets the same time, and the mark
            // would still fit. So the tick must pass before anybody can write.
            next_tick();
            return Ok(());
        }
    }
    remove(file)?;
    Err(io::ErrorKind::TimedOut.into())
}

/// Takes the mark away.
pub(crate) fn remove(file: &File) -> io::Result<()> {
    Ok(fremovexattr(file, NAME)?)
}

fn put(file: &File, text: &str) -> io::Result<()> {
    Ok(fsetxattr(file, NAME, text.as_bytes(), XattrFlags::empty())?)
}

/// Waits until the clock of the file systems has moved; returns the new time.
fn next_tick() -> Timespec {
    let before = clock_gettime(ClockId::RealtimeCoarse);
    loop {
        let now = clock_gettime(ClockId::RealtimeCoarse);
        if now != before {
            return now;
        }
        std::hint::spin_loop();
    }
}

/// What the mark of `file` is worth. What cannot be read is not believed.
pub(crate) fn check(file: &File) -> Mark {
    let mut text = [0u8; 128];
    let marked = match fgetxattr(file, NAME, &mut text) {
        Ok(length) => &text[..length],
        // No mark of this program is that long, so another program wrote it. It is treated as a
        // mark that does not fit, which makes the run ask.
        Err(rustix::io::Errno::RANGE) => &[],
        Err(_) => return Mark::Missing,
    };
    let Some(marked) = Facts::parse(marked) else {
        return Mark::Stale("the mark is from another version, or a run did not end normally");
    };
    // A file that cannot be read cannot be compared with its mark. The mark then counts as
    // stale, because only a certain mark permits writing.
    let Ok(found) = Facts::of(file) else { return Mark::Stale("it cannot be read") };
    if marked.inode != found.inode {
        Mark::Stale("it is a copy")
    } else if marked.size_bytes != found.size_bytes {
        Mark::Stale("its size changed")
    } else if (marked.changed_s, marked.changed_ns) != (found.changed_s, found.changed_ns) {
        CHANGED
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
        assert_eq!(check(&open(&scratch)), CHANGED);
        set(&open(&scratch)).unwrap();
        open(&scratch).write_all(b"a line").unwrap();
        assert_eq!(check(&open(&scratch)), CHANGED);
        set(&open(&scratch)).unwrap();
        open(&scratch).set_len(SIZE as u64 / 2).unwrap();
        assert_eq!(check(&open(&scratch)), Mark::Stale("its size changed"));
    }

    /// `rsync --inplace -t`, `touch -r`: the time of modification is set back. Each length is tried where no
    /// sample lies: 14 bytes, and blocks of 4 KiB.
    #[test]
    fn a_time_that_was_set_back_does_not_help() {
        let dir = tempfile::tempdir().unwrap();
        let Some(scratch) = marked(dir.path()) else { return };
        let file = open(&scratch);
        for (length, offsets) in [(14, [27_000, 77_000]), (4096, [28_000, 78_000])] {
            let modified = file.metadata().unwrap().modified().unwrap();
            let before = checksum(&file, SIZE as u64).unwrap();
            for offset in offsets {
                file.write_all_at(&vec![9u8; length], offset).unwrap();
            }
            file.set_modified(modified).unwrap();
            assert_eq!(checksum(&file, SIZE as u64).unwrap(), before, "no sample tells");
            assert_eq!(check(&file), CHANGED);
            set(&file).unwrap();
            assert_eq!(check(&file), Mark::Valid);
        }
    }

    /// A change right after the mark has another time, however fast it comes.
    #[test]
    fn a_change_at_once_is_seen() {
        let dir = tempfile::tempdir().unwrap();
        let Some(scratch) = marked(dir.path()) else { return };
        let file = open(&scratch);
        for turn in 0..20 {
            set(&file).unwrap();
            file.write_all_at(b"x", 77_777).unwrap();
            assert_eq!(check(&file), CHANGED, "{turn}");
        }
    }

    #[test]
    fn nothing_else_is_a_mark() {
        let dir = tempfile::tempdir().unwrap();
        let Some(scratch) = marked(dir.path()) else { return };
        let moved = dir.path().join("moved");
        std::fs::rename(&scratch, &moved).unwrap();
        let other = Mark::Stale("the mark is from another version, or a run did not end normally");
        let long = "3 ".repeat(200);
        for text in ["1", "", "3", "2 1 2 3 4 0", "3 1 2", "3 1 2 3 4 zz", "3 1 2 3 4 0 5", &long] {
            fsetxattr(open(&moved), NAME, text.as_bytes(), XattrFlags::empty()).unwrap();
            assert_eq!(check(&open(&moved)), other);
        }
        remove(&open(&moved)).unwrap();
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
