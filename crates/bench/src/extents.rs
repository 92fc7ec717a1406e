//! Parts of a file that hold no data: such reads never reach the drive.

use std::collections::BTreeMap;
use std::fs::File;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{FileType, SeekFrom};
use ssdyno_figures::{Warning, WarningKind, significant};
use ssdyno_safety::file_system;

use crate::ranges::ReadRange;
use crate::target::RealTarget;

/// A smaller share without data moves no figure that anybody looks at.
const LEAST: f64 = 0.01;
/// Stretches of data that are counted; a file in more pieces is taken to go on like that.
const STRETCHES: usize = 100_000;

/// That some of `reads` are served without the drive: one warning for each file of `target` with such parts.
///
/// The check uses holes (`SEEK_HOLE`), not extents (FIEMAP): ext4, XFS and btrfs report unwritten extents as holes,
/// too, unless the page cache has data for them, and it needs no privilege.
pub(crate) fn warnings(target: &RealTarget, reads: &[ReadRange]) -> Vec<Warning> {
    let devices = target.devices();
    let ends = devices.iter().skip(1).map(|next| next.0).chain([target.capacity_bytes]);
    let found = devices.iter().zip(ends).enumerate().filter_map(|(index, ((start, name), end))| {
        let backing = Backing::of(target.descriptor(index)?, name)?;
        backing.warning(&(*start..end), reads)
    });
    found.collect()
}

/// The file that holds the data of a file or device: the file itself, or the file below a loop device.
struct Backing {
    name: String,
    file: OwnedFd,
    /// Where the data begins in the file.
    offset_bytes: u64,
}

/// The bytes that a job, or another load, reads in a file.
struct ReadBytes<'a> {
    job: Option<&'a str>,
    all: u64,
    with_data: u64,
}

impl Backing {
    /// Of the open file or device `file`, named `name`; `None` for a file in memory, and for a device that is no loop
    /// device.
    fn of(file: BorrowedFd<'_>, name: &str) -> Option<Backing> {
        let status = rustix::fs::fstat(file).ok()?;
        if FileType::from_raw_mode(status.st_mode) == FileType::BlockDevice {
            return Backing::of_loop(&crate::probe::disk_of(&status)?);
        }
        if rustix::fs::fstatfs(file).is_ok_and(|found| file_system::is_in_memory(&found)) {
            return None;
        }
        let file = file.try_clone_to_owned().ok()?;
        Some(Backing { name: name.to_owned(), file, offset_bytes: 0 })
    }

    /// Of the loop device that the kernel calls `disk` (or one of its partitions).
    fn of_loop(disk: &str) -> Option<Backing> {
        let folder = std::fs::canonicalize(format!("/sys/class/block/{disk}")).ok()?;
        // The file is named beside a whole loop device; a partition lies one folder below it.
        let whole = folder.ancestors().take(2).find(|folder| folder.join("loop").is_dir())?;
        let read = |path: std::path::PathBuf| {
            Some(std::fs::read_to_string(path).ok()?.trim_end_matches('\n').to_owned())
        };
        let name = read(whole.join("loop/backing_file"))?;
        let offset: u64 = read(whole.join("loop/offset"))?.parse().ok()?;
        let start = match folder == whole {
            true => 0,
            false => read(folder.join("start"))?.parse::<u64>().ok()? * 512,
        };
        let file = File::open(&name).ok()?.into();
        Some(Backing { name, file, offset_bytes: offset + start })
    }

    /// That the part of `reads` in `device`, the place of this file in its target, meets parts without data. The share is
    /// that of the ranges of the jobs that meet such parts.
    fn warning(&self, device: &Range<u64>, reads: &[ReadRange]) -> Option<Warning> {
        let jobs = self.bytes_by_job(device, reads)?;
        let meets = |job: &&ReadBytes<'_>| {
            job.all.saturating_sub(job.with_data) as f64 >= LEAST * job.all as f64
        };
        let met: Vec<&ReadBytes<'_>> = jobs.iter().filter(meets).collect();
        let all: u64 = met.iter().map(|job| job.all).sum();
        let with_data: u64 = met.iter().map(|job| job.with_data).sum();
        if all == 0 {
            return None;
        }
        let names: Vec<String> =
            met.iter().filter_map(|job| Some(format!("[{}]", job.job?))).collect();
        let ranges = match names.as_slice() {
            _ if met.len() == jobs.len() => "the range that the load reads".to_owned(),
            [name] => format!("the range that {name} reads"),
            names => format!("the ranges that {} read", names.join(", ")),
        };
        let message = format!(
            "{} % of {ranges} in {} held no data before the run (holes or unwritten extents): reads \
             of these parts never reach the drive",
            significant(100.0 * (1.0 - with_data as f64 / all as f64), 2),
            self.name
        );
        let help = "write the whole file once before you read it";
        Some(Warning::new(WarningKind::NoMedia, message).with_help(help))
    }

    /// The bytes of each job in this file, which is `device` in its target; `None` if the file system does not report holes.
    fn bytes_by_job<'a>(
        &self,
        device: &Range<u64>,
        reads: &'a [ReadRange],
    ) -> Option<Vec<ReadBytes<'a>>> {
        // Copies of a job have the same ranges. A badly fragmented file takes many system calls, so each range is looked
        // at once.
        let mut known: BTreeMap<(u64, u64), u64> = BTreeMap::new();
        let mut jobs: Vec<ReadBytes<'a>> = Vec::new();
        for read in reads {
            let start = read.bytes.start.max(device.start);
            let end = read.bytes.end.min(device.end);
            if start >= end {
                continue;
            }
            let with_data = match known.get(&(start, end)) {
                Some(bytes) => *bytes,
                None => {
                    let from = self.offset_bytes + (start - device.start);
                    let bytes = data_bytes(self.file.as_fd(), from, end - start)?;
                    known.insert((start, end), bytes);
                    bytes
                }
            };
            let job = read.job.as_deref();
            let all = end - start;
            match jobs.iter_mut().find(|known| known.job == job) {
                Some(known) => {
                    known.all += all;
                    known.with_data += with_data;
                }
                None => jobs.push(ReadBytes { job, all, with_data }),
            }
        }
        Some(jobs)
    }
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

    /// A file of 4 MiB with `written` MiB of data at its start, beside the program: tmpfs has no unwritten extents.
    fn backing(directory: &tempfile::TempDir, written: usize, allocate: bool) -> Backing {
        let file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(directory.path().join("file"))
            .unwrap();
        file.set_len(4 << 20).unwrap();
        if allocate {
            let none = rustix::fs::FallocateFlags::empty();
            if rustix::fs::fallocate(&file, none, 0, 4 << 20).is_err() {
                eprintln!("part skipped: the file system does not allocate");
            }
        }
        file.write_all_at(&vec![1; written << 20], 0).unwrap();
        file.sync_all().unwrap();
        Backing { name: "file".to_owned(), file: file.into(), offset_bytes: 0 }
    }

    fn directory() -> tempfile::TempDir {
        tempfile::tempdir_in(std::env::current_exe().unwrap().parent().unwrap()).unwrap()
    }

    /// `job` reads the MiB from `from` to `to`.
    fn read(job: Option<&str>, from: u64, to: u64) -> ReadRange {
        ReadRange { job: job.map(str::to_owned), bytes: from << 20..to << 20 }
    }

    /// Holes and unwritten extents, here beside data, are reported with their share; a file of data is not.
    #[test]
    fn parts_without_data_are_told_with_their_share() {
        let directory = directory();
        let told = |written: usize, allocate: bool| {
            let warning =
                backing(&directory, written, allocate).warning(&(0..4 << 20), &[read(None, 0, 4)]);
            warning.map(|warning| warning.message)
        };
        for allocate in [false, true] {
            assert_eq!(told(4, allocate), None);
            for (written, share) in [(0, "100 %"), (1, "75 %"), (3, "25 %")] {
                let message = told(written, allocate).unwrap();
                assert!(message.starts_with(share), "{message}");
            }
        }
    }

    /// A file with a hole in its second half, which is the second file of a target: the share is that of the ranges
    /// that jobs read.
    #[test]
    fn the_share_is_that_of_the_range_that_is_read() {
        let directory = directory();
        let half = backing(&directory, 2, false);
        let told = |reads: &[ReadRange]| {
            let warning = half.warning(&(4 << 20..8 << 20), reads);
            warning.map_or(String::new(), |warning| warning.message)
        };
        assert_eq!(told(&[read(None, 4, 6)]), "");
        assert_eq!(told(&[read(None, 0, 4)]), "", "the other file");
        let [a, b, c] = [read(Some("a"), 4, 6), read(Some("b"), 6, 8), read(Some("c"), 5, 7)];
        for (reads, start) in [
            (vec![read(None, 6, 8)], "100 % of the range that the load reads in file held no data"),
            (vec![read(None, 0, 8)], "50 % of the range that the load reads in file held no data"),
            (vec![a.clone(), c.clone()], "50 % of the range that [c] reads in file held no data"),
            (vec![b.clone(), c.clone()], "75 % of the range that the load reads in file held"),
            (vec![a, b, c], "75 % of the ranges that [b], [c] read in file held no data"),
        ] {
            assert!(told(&reads).starts_with(start), "{}", told(&reads));
        }
    }
}
