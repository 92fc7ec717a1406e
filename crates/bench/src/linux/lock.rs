//! The lock that keeps other runs away from a target.

use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FileType, FlockOperation};
use rustix::io::Errno;

use crate::error::BenchError;

/// How long the kernel may take to let go of what a program that has ended had locked: a ring goes down
/// in the background, on a busy machine for seconds.
const LINGERS_MOST: Duration = Duration::from_secs(10);
const TRY_EVERY: Duration = Duration::from_millis(50);

/// Keeps other runs away: two at once would disturb each other. The lock goes with the file
/// (flock(2)); device managers respect it too (systemd, "Locking Block Device Access").
///
/// A device may have several nodes, and be part of another device. The returned locks must be kept as long as the
/// target: they are locks of the device's usual node and, shared with its other partitions, of the disk. With `shared`
/// others that share it, too, may have it as well.
pub(crate) fn lock(name: &str, file: &OwnedFd, shared: bool) -> Result<Vec<OwnedFd>, BenchError> {
    let own = match shared {
        true => FlockOperation::NonBlockingLockShared,
        false => FlockOperation::NonBlockingLockExclusive,
    };
    take(name, file, own)?;
    let mut others = Vec::new();
    // flock(2) belongs to an inode. Two nodes of one device, or a disk and its partition, are
    // different inodes, and a lock on one says nothing about the other.
    for (node, is_shared) in nodes(file) {
        // A program that may not open it cannot be kept away either.
        let Ok(other) = File::open(node).map(OwnedFd::from) else { continue };
        let how = match is_shared {
            true => FlockOperation::NonBlockingLockShared,
            false => own,
        };
        take(name, &other, how)?;
        others.push(other);
    }
    Ok(others)
}

/// The usual node of the device `file`, if it is another node, and the node of its disk if it is a partition (a shared
/// lock); nothing for a regular file.
fn nodes(file: &OwnedFd) -> Vec<(PathBuf, bool)> {
    let Ok(status) = rustix::fs::fstat(file) else { return Vec::new() };
    if FileType::from_raw_mode(status.st_mode) != FileType::BlockDevice {
        return Vec::new();
    }
    let (major, minor) = (rustix::fs::major(status.st_rdev), rustix::fs::minor(status.st_rdev));
    let Ok(itself) = fs::canonicalize(format!("/sys/dev/block/{major}:{minor}")) else {
        return Vec::new();
    };
    // A slash in a name is an exclamation mark there (Documentation/ABI, sysfs-block).
    let node = |path: &Path| {
        let name = path.file_name()?.to_str()?.replace('!', "/");
        Some(Path::new("/dev").join(name))
    };
    let mut nodes = Vec::new();
    if let Some(usual) = node(&itself)
        && let Ok(found) = fs::metadata(&usual)
        && (found.dev(), found.ino()) != (status.st_dev, status.st_ino)
        && found.rdev() == status.st_rdev
    {
        nodes.push((usual, false));
    }
    if itself.join("partition").exists() {
        nodes.extend(itself.parent().and_then(node).map(|disk| (disk, true)));
    }
    nodes
}

fn take(name: &str, file: &OwnedFd, how: FlockOperation) -> Result<(), BenchError> {
    let began = Instant::now();
    loop {
        match rustix::fs::flock(file, how) {
            Err(Errno::WOULDBLOCK) => {}
            // A file system without locks cannot keep anybody away.
            _ => return Ok(()),
        }
        // The kernel keeps the lock of a program that has ended until its ring is taken down.
        // Only such a lock is waited for; one whose holder lives is reported at once.
        if began.elapsed() >= LINGERS_MOST || !holder_is_gone(file).unwrap_or(false) {
            return Err(BenchError::Busy { target: name.to_owned() });
        }
        std::thread::sleep(TRY_EVERY);
    }
}

/// Whether the lock of `file` is left over from a program that has ended.
fn holder_is_gone(file: &OwnedFd) -> io::Result<bool> {
    let status = rustix::fs::fstat(file)?;
    let device = (rustix::fs::major(status.st_dev), rustix::fs::minor(status.st_dev));
    let locks = fs::read_to_string("/proc/locks")?;
    let holders = holders(&locks, device, status.st_ino);
    // One that is gone altogether is not shown.
    Ok(holders.into_iter().all(has_ended))
}

/// A process that is not there, or waits for its parent to take note of its end.
fn has_ended(process: u32) -> bool {
    let Ok(status) = fs::read_to_string(format!("/proc/{process}/stat")) else { return true };
    // The name before the state is in brackets, and may hold some itself (proc_pid_stat(5)).
    let state = status.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    matches!(state, Some('Z' | 'X'))
}

/// Processes with a lock of flock(2) on the file, from the text of /proc/locks (proc_locks(5)), which does
/// not show those of other name spaces.
fn holders(locks: &str, device: (u32, u32), inode: u64) -> Vec<u32> {
    let wanted = format!("{:02x}:{:02x}:{inode}", device.0, device.1);
    let of_line = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        // Processes that wait for a lock have an arrow in the second field.
        let [_, "FLOCK", _, _, process, file, ..] = fields[..] else { return None };
        (file == wanted).then(|| process.parse().unwrap_or(0))
    };
    locks.lines().filter_map(of_line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holders_are_found_by_file() {
        let locks = "1: POSIX  ADVISORY  WRITE 11 00:06:96 0 EOF\n\
                     2: FLOCK  ADVISORY  WRITE 4321 00:06:96 0 EOF\n\
                     2: -> FLOCK  ADVISORY  WRITE 77 00:06:96 0 EOF\n\
                     3: FLOCK  ADVISORY  WRITE 12 fe:00:96 0 EOF\nrubbish\n";
        assert_eq!(holders(locks, (0, 6), 96), [4321]);
        assert_eq!(holders(locks, (254, 0), 96), [12]);
        assert!(holders(locks, (0, 6), 9).is_empty());
    }

    #[test]
    fn those_who_share_a_target_keep_the_others_away() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let open = || OwnedFd::from(File::open(file.path()).unwrap());
        let (first, second, alone) = (open(), open(), open());
        assert!(lock("x", &first, true).is_ok() && lock("x", &second, true).is_ok());
        assert!(matches!(lock("x", &alone, false), Err(BenchError::Busy { .. })));
        drop((first, second));
        assert!(lock("x", &alone, false).is_ok());
        assert!(matches!(lock("x", &open(), true), Err(BenchError::Busy { .. })));
    }

    #[test]
    fn the_living_hold_their_locks() {
        assert!(!has_ended(std::process::id()));
        assert!(!has_ended(1));
        let child = std::process::Command::new("true").spawn();
        let Ok(mut child) = child else { return };
        let began = Instant::now();
        while !has_ended(child.id()) && began.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(has_ended(child.id()), "not waited for yet");
        assert!(child.wait().is_ok());
    }
}
