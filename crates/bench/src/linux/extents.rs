//! Parts of a file that hold no data: such reads never reach the drive.

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

/// The parts with data of the files that a load reads, as they were before the run.
///
/// The check uses holes (`SEEK_HOLE`), not extents (FIEMAP): ext4, XFS and btrfs report unwritten extents as holes,
/// too, unless the page cache has data for them, and it needs no privilege.
pub(crate) struct Data {
    files: Vec<FileData>,
}

impl Data {
    /// Of the files of `target`, within `reads`.
    pub(crate) fn of(target: &RealTarget, reads: &[ReadRange]) -> Data {
        let devices = target.devices();
        let ends = devices.iter().skip(1).map(|next| next.0).chain([target.capacity_bytes]);
        let files = devices.iter().zip(ends).enumerate().filter_map(|(index, (device, end))| {
            let (start, name) = device;
            let backing = Backing::of(target.descriptor(index)?, name)?;
            FileData::of(&backing, *start..end, reads)
        });
        Data { files: files.collect() }
    }

    /// That some of `reads` are served without the drive: one warning for each file with parts without data. Each of `reads`
    /// is one that was looked at, or its beginning.
    pub(crate) fn warnings(&self, reads: &[ReadRange]) -> Vec<Warning> {
        self.files.iter().filter_map(|file| file.warning(reads)).collect()
    }

    /// The share of `bytes` that holds data, as far as it is known. They are those of a read that was looked at, or its
    /// beginning.
    pub(crate) fn share(&self, bytes: &Range<u64>) -> f64 {
        let holes = self.files.iter().filter_map(|file| {
            let (all, with_data) = file.bytes_of(bytes)?;
            Some(all - with_data)
        });
        1.0 - holes.sum::<u64>() as f64 / bytes.end.saturating_sub(bytes.start).max(1) as f64
    }
}

/// The parts with data of one file, which is `device` in its target.
struct FileData {
    name: String,
    device: Range<u64>,
    looked: Vec<Looked>,
}

/// A part of a file, in bytes of the target.
struct Looked {
    bytes: Range<u64>,
    /// Its stretches of data, in order, up to `end`.
    data: Vec<Range<u64>>,
    end: u64,
}

impl Looked {
    /// Bytes that hold data from the start to `end`.
    fn up_to(&self, end: u64) -> u64 {
        let lengths = self.data.iter().map(|one| one.end.min(end).saturating_sub(one.start));
        let known: u64 = lengths.sum();
        // A badly fragmented file has millions of stretches, each a system call. The first hundred
        // thousand stand for the rest.
        let looked_at = (self.end - self.bytes.start).max(1);
        let rest = end.saturating_sub(self.end);
        known + (known as f64 / looked_at as f64 * rest as f64) as u64
    }
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

    /// The stretches of data in `bytes` of the target, where this file begins at `device`; `None` where the file system does
    /// not tell.
    fn look(&self, bytes: Range<u64>, device: u64) -> Option<Looked> {
        let file = self.file.as_fd();
        // From addresses of the target to those of the file, and back.
        let [at, end] = [bytes.start, bytes.end].map(|at| at - device + self.offset_bytes);
        let back = |at: u64| at - self.offset_bytes + device;
        let (mut at, mut data) = (at, Vec::new());
        for _ in 0..STRETCHES {
            let start = match rustix::fs::seek(file, SeekFrom::Data(at)) {
                Ok(start) if start < end => start,
                // No data up to the end of the file.
                Ok(_) | Err(rustix::io::Errno::NXIO) => {
                    at = end;
                    break;
                }
                Err(_) => return None,
            };
            let hole = rustix::fs::seek(file, SeekFrom::Hole(start)).ok()?.min(end);
            // The file grows or shrinks while it is looked at. A share of a changing file would be
            // a guess, so nothing is said.
            if hole <= start {
                return None;
            }
            data.push(back(start)..back(hole));
            at = hole;
            if at >= end {
                break;
            }
        }
        Some(Looked { end: back(at), bytes, data })
    }
}

impl FileData {
    /// Of `backing`, which is `device` in its target, within `reads`; `None` if the file system does not report holes.
    fn of(backing: &Backing, device: Range<u64>, reads: &[ReadRange]) -> Option<FileData> {
        let mut found = FileData { name: backing.name.clone(), device, looked: Vec::new() };
        for read in reads {
            let bytes = found.part(&read.bytes);
            // Copies of a job have the same ranges. A badly fragmented file takes many system calls, so each range is looked
            // at once.
            if !bytes.is_empty() && !found.looked.iter().any(|looked| looked.bytes == bytes) {
                found.looked.push(backing.look(bytes, found.device.start)?);
            }
        }
        Some(found)
    }

    /// The part of `bytes` in this file.
    fn part(&self, bytes: &Range<u64>) -> Range<u64> {
        bytes.start.max(self.device.start)..bytes.end.min(self.device.end)
    }

    /// The number of `bytes` in this file, and of those with data; `None` without any.
    fn bytes_of(&self, bytes: &Range<u64>) -> Option<(u64, u64)> {
        let part = self.part(bytes);
        let is_of = |looked: &&Looked| {
            looked.bytes.start == part.start && part.end <= looked.bytes.end && !part.is_empty()
        };
        let looked = self.looked.iter().find(is_of)?;
        Some((part.end - part.start, looked.up_to(part.end)))
    }

    /// That `reads` meet parts of this file without data. The share is that of the ranges of the jobs that meet such parts.
    fn warning(&self, reads: &[ReadRange]) -> Option<Warning> {
        let jobs = self.bytes_by_job(reads);
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

    /// The bytes of each job in this file.
    fn bytes_by_job<'a>(&self, reads: &'a [ReadRange]) -> Vec<ReadBytes<'a>> {
        let mut jobs: Vec<ReadBytes<'a>> = Vec::new();
        for read in reads {
            let Some((all, with_data)) = self.bytes_of(&read.bytes) else { continue };
            let job = read.job.as_deref();
            match jobs.iter_mut().find(|known| known.job == job) {
                Some(known) => {
                    known.all += all;
                    known.with_data += with_data;
                }
                None => jobs.push(ReadBytes { job, all, with_data }),
            }
        }
        jobs
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use ssdyno_figures::probe::Moved;

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
        let (job, bytes) = (job.map(str::to_owned), from << 20..to << 20);
        ReadRange { job, stream: 0, bytes, in_order: true, hot: None }
    }

    /// The message about `backing`, which is `device` (in MiB) in its target.
    fn told(backing: &Backing, device: Range<u64>, reads: &[ReadRange]) -> String {
        let file = FileData::of(backing, device.start << 20..device.end << 20, reads).unwrap();
        file.warning(reads).map_or(String::new(), |warning| warning.message)
    }

    /// Holes and unwritten extents, here beside data, are reported with their share; a file of data is not.
    #[test]
    fn parts_without_data_are_told_with_their_share() {
        let directory = directory();
        for allocate in [false, true] {
            for (written, share) in [(4, ""), (0, "100 %"), (1, "75 %"), (3, "25 %")] {
                let backing = backing(&directory, written, allocate);
                let message = told(&backing, 0..4, &[read(None, 0, 4)]);
                assert!(message.starts_with(share), "{message}");
                assert_eq!(message.is_empty(), written == 4, "{message}");
            }
        }
    }

    /// A file with a hole in its second half, which is the second file of a target: the share is that of the ranges
    /// that jobs read.
    #[test]
    fn the_share_is_that_of_the_range_that_is_read() {
        let directory = directory();
        let half = backing(&directory, 2, false);
        let told = |reads: &[ReadRange]| told(&half, 4..8, reads);
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

    /// 3 MiB of data and a hole of 1 MiB. Reads in order that end before the hole never meet it; after 3.5 MiB, 1 of 7 parts
    /// was in the hole; a pass and more have read all of the range.
    #[test]
    fn a_run_that_ends_before_a_hole_is_not_warned_of_it() {
        let directory = directory();
        let reads = [read(None, 0, 4)];
        let file = FileData::of(&backing(&directory, 3, false), 0..4 << 20, &reads).unwrap();
        let data = Data { files: vec![file] };
        let after = |kib: u64| {
            let moved = Moved { read_bytes: kib << 10, ..Moved::default() };
            let covered = reads[0].covered(&[moved]);
            let warning = data.warnings(std::slice::from_ref(&covered)).pop();
            let message = warning.map_or(String::new(), |warning| warning.message);
            (message.split(" of").next().unwrap().to_owned(), data.share(&covered.bytes))
        };
        assert_eq!(after(0), (String::new(), 1.0));
        assert_eq!(after(3 << 10), (String::new(), 1.0));
        assert_eq!(after(3_584), ("14 %".to_owned(), 1.0 - 1.0 / 7.0));
        assert_eq!(after(4 << 10), ("25 %".to_owned(), 0.75));
        assert_eq!(after(9 << 10), ("25 %".to_owned(), 0.75));
    }

    /// A file in more pieces than are counted goes on as it began: 40 of the first 100 B hold data.
    #[test]
    fn the_first_stretches_stand_for_the_rest() {
        let looked =
            Looked { bytes: 1_000..1_500, data: vec![1_000..1_020, 1_080..1_100], end: 1_100 };
        assert_eq!([1_010, 1_050, 1_090, 1_100].map(|end| looked.up_to(end)), [10, 20, 30, 40]);
        assert_eq!([1_200, 1_500].map(|end| looked.up_to(end)), [80, 200]);
    }
}
