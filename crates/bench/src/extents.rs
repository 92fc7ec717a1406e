//! Parts of a file that hold no data: such reads never reach the drive.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::SeekFrom;
use ssdyno_figures::{Warning, WarningKind, significant};

/// A smaller share without data moves no figure that anybody looks at.
const LEAST: f64 = 0.01;
/// Stretches of data that are counted; a file in more pieces is taken to go on like that.
const STRETCHES: usize = 100_000;

/// That reads of `file`, named `name` and `size_bytes` long, are served without the drive, as far as they are.
///
/// The check uses holes (`SEEK_HOLE`), not extents (FIEMAP): ext4, XFS and btrfs report unwritten extents as holes,
/// too, unless the page cache has data for them, and it needs no privilege.
pub(crate) fn of_file(file: BorrowedFd<'_>, name: &str, size_bytes: u64) -> Option<Warning> {
    let data = data_bytes(file, 0, size_bytes)?;
    warning(name, size_bytes, data)
}

/// The same of the file below the loop device that the kernel calls `disk` (or one of its partitions).
pub(crate) fn of_loop(disk: &str, size_bytes: u64) -> Option<Warning> {
    let folder = std::fs::canonicalize(format!("/sys/class/block/{disk}")).ok()?;
    // The file is named beside a whole loop device; a partition lies one folder below it.
    let whole = folder.ancestors().take(2).find(|folder| folder.join("loop").is_dir())?;
    let read = |path: std::path::PathBuf| {
        Some(std::fs::read_to_string(path).ok()?.trim_end_matches('\n').to_owned())
    };
    let backing = read(whole.join("loop/backing_file"))?;
    let offset: u64 = read(whole.join("loop/offset"))?.parse().ok()?;
    let start = match folder == whole {
        true => 0,
        false => read(folder.join("start"))?.parse::<u64>().ok()? * 512,
    };
    let file = File::open(&backing).ok()?;
    let data = data_bytes(file.as_fd(), offset + start, size_bytes)?;
    warning(&backing, size_bytes, data)
}

fn warning(name: &str, size_bytes: u64, data_bytes: u64) -> Option<Warning> {
    let share = 1.0 - data_bytes as f64 / size_bytes.max(1) as f64;
    (size_bytes > 0 && share >= LEAST).then(|| {
        let message = format!(
            "{} % of {name} held no data before the run (holes or unwritten extents): reads of \
             these parts never reach the drive",
            significant(100.0 * share, 2)
        );
        let help = "write the whole file once before you read it";
        Warning::new(WarningKind::NoMedia, message).with_help(help)
    })
}

/// Bytes that hold data, of `size_bytes` from `from` on; `None` where the file system does not tell.
fn data_bytes(file: BorrowedFd<'_>, from: u64, size_bytes: u64) -> Option<u64> {
    let end = from + size_bytes;
    let (mut at, mut data) = (from, 0);
    for _ in 0..STRETCHES {
        let start = match rustix::fs::seek(file, SeekFrom::Data(at)) {
            Ok(start) if start < end => start,
            // No data up to the end of the file.
            Ok(_) | Err(rustix::io::Errno::NXIO) => return Some(data),
            Err(_) => return None,
        };
        let hole = rustix::fs::seek(file, SeekFrom::Hole(start)).ok()?.min(end);
        // A file that grows or shrinks meanwhile.
        // The file changes while it is looked at. A share of a changing file would be a guess,
        // so nothing is said. The warning is left out then.
        if hole <= start {
            return None;
        }
        data += hole - start;
        at = hole;
        if at >= end {
            return Some(data);
        }
    }
    // A badly fragmented file has millions of stretches, each a system call. The first hundred
    // thousand stand for the rest.
    let looked_at = (at - from).max(1);
    Some((data as f64 / looked_at as f64 * size_bytes as f64) as u64)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::*;

    /// Holes and unwritten extents, here beside data, are reported with their share; a file of data is not.
    #[test]
    fn parts_without_data_are_told_with_their_share() {
        // Beside the program: tmpfs has no unwritten extents.
        let directory =
            tempfile::tempdir_in(std::env::current_exe().unwrap().parent().unwrap()).unwrap();
        let told = |written: usize, allocate: bool| {
            let file = File::create(directory.path().join("file")).unwrap();
            file.set_len(4 << 20).unwrap();
            if allocate {
                let none = rustix::fs::FallocateFlags::empty();
                if rustix::fs::fallocate(&file, none, 0, 4 << 20).is_err() {
                    eprintln!("part skipped: the file system does not allocate");
                }
            }
            file.write_all_at(&vec![1; written << 20], 0).unwrap();
            file.sync_all().unwrap();
            of_file(file.as_fd(), "file", 4 << 20).map(|warning| warning.message)
        };
        for allocate in [false, true] {
            assert_eq!(told(4, allocate), None);
            for (written, share) in [(0, "100 %"), (1, "75 %"), (3, "25 %")] {
                let message = told(written, allocate).unwrap();
                assert!(message.starts_with(share), "{message}");
            }
        }
    }
}
