//! Reads of a small range again and again: a cache below the operating system can serve them.

use std::path::Path;

use ssdyno_figures::probe::Moved;
use ssdyno_figures::significant;
use ssdyno_prober::DriveOrigin;

use crate::extents::Data;
use crate::ranges::ReadRange;
use crate::target::RealTarget;

/// A larger range is not suspected. Drives have about 1 GiB of DRAM per TiB, and RAID controllers have a few GiB. The cache
/// of a virtual machine's host can be larger than any limit, but a run seldom reads a larger range twice.
const RANGE_MOST: u64 = 1 << 30;
/// Below this, most of the reads are the first ones of their block, which no cache can serve.
const TIMES_LEAST: f64 = 2.0;

/// A hot part with a smaller share of the reads moves the figures less than other doubts do.
const HOT_LEAST: f64 = 0.1;

/// A small range that was read several times.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Reread {
    /// The job that read it, of several jobs.
    pub(crate) job: Option<String>,
    /// It is the hot part of the job's range, with this share of the job's reads.
    pub(crate) hot: Option<f64>,
    /// Length of the range.
    pub(crate) bytes: u64,
    /// Bytes read divided by the length.
    pub(crate) times: f64,
    /// The target is, or lies on, a disk of a virtual machine.
    pub(crate) is_virtual: bool,
}

impl Reread {
    /// Of each job that `reads` `target`, whose streams moved `by_stream`; of all jobs together if no job alone is suspected.
    /// None of a job that mostly writes, and none on a target whose reads do not go to a drive of this machine. Reads without
    /// `data` count nowhere.
    pub(crate) fn find(
        reads: &[ReadRange],
        by_stream: &[Moved],
        data: &Data,
        target: &RealTarget,
    ) -> Vec<Reread> {
        // Requests through the page cache and targets in memory have a warning of their own.
        if target.file().is_none() || !target.direct || target.in_memory {
            return Vec::new();
        }
        let drives = target
            .disk_name()
            .map_or_else(Vec::new, |disk| DriveOrigin::stack(Path::new("/"), &disk));
        let is_virtual = drives.iter().any(DriveOrigin::is_virtual);
        let share = |read: &ReadRange| data.share(&read.bytes);
        let found = suspects(reads, by_stream, share).into_iter();
        found.map(|found| Reread { is_virtual, ..found }).collect()
    }

    /// `the range of 64 MiB was read 25 times`.
    pub(crate) fn text(&self) -> String {
        let bytes = significant(self.bytes as f64 / (1u64 << 20) as f64, 2);
        let what = match self.hot {
            None => format!("the range of {bytes} MiB"),
            Some(share) => {
                format!("the hot part of {bytes} MiB ({:.0} % of the reads)", 100.0 * share)
            }
        };
        let job = self.job.as_ref().map_or(String::new(), |job| format!(" of [{job}]"));
        format!("{what}{job} was read {} times", significant(self.times, 2))
    }

    /// For a reader of the figures, with the remedy.
    pub(crate) fn note(&self) -> String {
        let whose = match self.is_virtual {
            true => "of the virtual disk's host",
            false => "of the drive, of a RAID controller or of a virtual machine's host",
        };
        format!(
            "{}: a cache below the operating system ({whose}) may have served the reads; read a \
             larger range of the target, or a larger file (`write.size`)",
            self.text()
        )
    }
}

/// The small ranges that were read several times, as [`Reread::find`] says; `data` is the share of a range that holds data.
fn suspects(
    reads: &[ReadRange],
    by_stream: &[Moved],
    data: impl Fn(&ReadRange) -> f64,
) -> Vec<Reread> {
    let mut jobs: Vec<&Option<String>> = Vec::new();
    for read in reads {
        if !jobs.contains(&&read.job) {
            jobs.push(&read.job);
        }
    }
    let of = |is_of: &dyn Fn(&ReadRange) -> bool| {
        let reads: Vec<&ReadRange> = reads.iter().filter(|read| is_of(read)).collect();
        suspect(&reads, by_stream, &data)
    };
    let alone = jobs.iter().filter_map(|job| {
        let name = if jobs.len() > 1 { (*job).clone() } else { None };
        of(&|read| read.job == **job).map(|found| Reread { job: name, ..found })
    });
    let alone: Vec<Reread> = alone.collect();
    match alone.is_empty() {
        true => of(&|_| true).into_iter().collect(),
        false => alone,
    }
}

/// The range, or the hot part of a range, that `reads` read several times.
fn suspect(
    reads: &[&ReadRange],
    by_stream: &[Moved],
    data: impl Fn(&ReadRange) -> f64,
) -> Option<Reread> {
    let mut moved = Moved::default();
    // Of the ranges: their length, the bytes with data, the reads of these; and the same of hot parts.
    let (mut all, mut with_data, mut read_bytes) = (0.0, 0.0, 0.0);
    let (mut hot_bytes, mut hot_read_bytes) = (0.0, 0.0);
    for (at, read) in reads.iter().enumerate() {
        let of_stream = |other: &&&ReadRange| other.stream == read.stream;
        let mine = by_stream.get(read.stream).copied().unwrap_or_default();
        if !reads[..at].iter().any(|other| of_stream(&other)) {
            moved.merge(&mine);
        }
        // The files of a stream have equal shares of its reads.
        let files = reads.iter().filter(of_stream).count() as f64;
        let (length, share) = (read.bytes.end.saturating_sub(read.bytes.start) as f64, data(read));
        let its_bytes = share * mine.read_bytes as f64 / files;
        all += length;
        with_data += share * length;
        read_bytes += its_bytes;
        if let Some(hot) = read.hot {
            // Jobs that share a load have the same popular places, copies of a job of a file places of their own.
            let is_known = |other: &&ReadRange| other.job.is_none() && other.bytes == read.bytes;
            let bytes = if reads[..at].iter().any(is_known) { 0.0 } else { share * length };
            hot_bytes += hot.space * bytes;
            hot_read_bytes += hot.access * its_bytes;
        }
    }
    if moved.writes > moved.reads || all == 0.0 {
        return None;
    }
    let of = |bytes: f64, read_bytes: f64, hot: Option<f64>| {
        let (bytes, read_bytes) = (bytes.round() as u64, read_bytes.round() as u64);
        let times = suspected(bytes, read_bytes)?;
        Some(Reread { job: None, hot, bytes, times, is_virtual: false })
    };
    let hot_share = hot_read_bytes / read_bytes.max(1.0);
    let hot = || of(hot_bytes, hot_read_bytes, Some(hot_share)).filter(|_| hot_share >= HOT_LEAST);
    of(length(reads) as f64 * with_data / all, read_bytes, None).or_else(hot)
}

/// How often `bytes` were read, if that is often enough for a cache to matter.
fn suspected(bytes: u64, read_bytes: u64) -> Option<f64> {
    let times = read_bytes as f64 / bytes.max(1) as f64;
    (0 < bytes && bytes <= RANGE_MOST && times >= TIMES_LEAST).then_some(times)
}

/// Bytes in at least one of `reads`.
fn length(reads: &[&ReadRange]) -> u64 {
    let mut ranges: Vec<(u64, u64)> =
        reads.iter().map(|read| (read.bytes.start, read.bytes.end)).collect();
    ranges.sort_unstable();
    let (mut length, mut covered) = (0, 0);
    for (start, end) in ranges {
        length += end.saturating_sub(start.max(covered));
        covered = covered.max(end);
    }
    length
}

#[cfg(test)]
mod tests {
    use ssdyno_workload::HotPart;

    use super::*;

    const MIB: u64 = 1 << 20;

    /// `job` reads the MiB from `from` to `to` in stream number `stream`.
    fn read(job: &str, stream: usize, from: u64, to: u64) -> ReadRange {
        let (job, bytes) = (Some(job.to_owned()), from * MIB..to * MIB);
        ReadRange { job, stream, bytes, in_order: false, hot: None }
    }

    /// A stream that reads so many MiB.
    fn moved(mib: u64) -> Moved {
        Moved { reads: mib, read_bytes: mib * MIB, ..Moved::default() }
    }

    /// The texts about `reads`, of which all but those of the job `hole` hold data.
    fn told(reads: &[ReadRange], by_stream: &[Moved]) -> Vec<String> {
        let data = |read: &ReadRange| if read.job.as_deref() == Some("hole") { 0.0 } else { 1.0 };
        suspects(reads, by_stream, data).iter().map(Reread::text).collect()
    }

    #[test]
    fn ranges_that_overlap_count_once() {
        let of = |ranges: &[(u64, u64)]| {
            let reads: Vec<_> = ranges.iter().map(|(from, to)| read("a", 0, *from, *to)).collect();
            length(&reads.iter().collect::<Vec<_>>()) / MIB
        };
        assert_eq!(of(&[]), 0);
        assert_eq!(of(&[(10, 30), (0, 20), (10, 15)]), 30);
    }

    /// The large job reads 10 GiB once, the small one 64 MiB 25 times. Two copies of 64 MiB are one range.
    #[test]
    fn each_job_is_judged_on_its_own_range() {
        let (large, small) = (read("large", 0, 0, 10_240), read("small", 1, 0, 64));
        let by_stream = [moved(10_240), moved(1_600)];
        let text = "the range of 64 MiB of [small] was read 25 times";
        assert_eq!(told(&[large.clone(), small.clone()], &by_stream), [text]);
        assert_eq!(told(&[small], &by_stream), ["the range of 64 MiB was read 25 times"]);
        assert_eq!(told(&[large], &by_stream), [""; 0]);
        let copies = [read("a", 0, 0, 64), read("a", 1, 0, 64)];
        assert_eq!(told(&copies, &[moved(64); 2]), ["the range of 64 MiB was read 2.0 times"]);
        // Neither job reads the range twice, both together do.
        let jobs = [read("a", 0, 0, 64), read("b", 1, 0, 64)];
        assert_eq!(told(&jobs, &[moved(64); 2]), ["the range of 64 MiB was read 2.0 times"]);
        let writes = Moved { writes: 2_000, ..moved(1_600) };
        assert_eq!(told(&[read("a", 0, 0, 64)], &[writes]), [""; 0]);
    }

    /// 3 of 4 GiB of reads are of a hole; the other GiB is read once.
    #[test]
    fn reads_of_a_hole_count_nowhere() {
        let jobs = [read("hole", 0, 0, 256), read("data", 1, 256, 1_280)];
        assert_eq!(told(&jobs, &[moved(3_072), moved(1_024)]), [""; 0]);
        assert_eq!(told(&jobs[..1], &[moved(3_072)]), [""; 0]);
    }

    /// 80 % of 10 GiB of reads go to 1 % of 10 GiB: 8192 MiB / 102.4 MiB = 80 times. Of 100 MiB, 102.4 MiB are not read twice.
    #[test]
    fn a_hot_part_is_suspected_alone() {
        let hot = |access| {
            let hot = Some(HotPart { space: 0.01, access });
            ReadRange { hot, ..read("a", 0, 0, 10_240) }
        };
        let text = "the hot part of 102 MiB (80 % of the reads) was read 80 times";
        assert_eq!(told(&[hot(0.8)], &[moved(10_240)]), [text]);
        assert_eq!(told(&[hot(0.8)], &[moved(100)]), [""; 0]);
        assert_eq!(told(&[hot(0.05)], &[moved(10_240)]), [""; 0], "too few of the reads");
    }

    #[test]
    fn a_small_range_that_is_read_again_is_suspected() {
        assert_eq!(suspected(64 << 20, 1600 << 20), Some(25.0));
        assert_eq!(suspected(1 << 30, 2 << 30), Some(2.0));
        assert_eq!(suspected(1 << 30, (2 << 30) - 1), None);
        assert_eq!(suspected((1 << 30) + 1, 1 << 40), None);
        assert_eq!(suspected(0, 1 << 40), None);
        let found =
            Reread { job: None, hot: None, bytes: 64 << 20, times: 25.0, is_virtual: false };
        let note = found.note();
        assert!(note.starts_with("the range of 64 MiB was read 25 times: a cache below"), "{note}");
        assert!(note.contains("RAID controller") && note.contains("`write.size`"), "{note}");
    }
}
