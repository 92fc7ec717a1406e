//! Reads of a small range again and again: a cache below the operating system can serve them.

use std::path::Path;

use ssdyno_block::Op;
use ssdyno_figures::significant;
use ssdyno_prober::DriveOrigin;
use ssdyno_record::Recording;

use crate::ranges::ReadRange;
use crate::target::RealTarget;

/// A larger range is not suspected. Drives have about 1 GiB of DRAM per TiB, and RAID controllers have a few GiB. The cache
/// of a virtual machine's host can be larger than any limit, but a run seldom reads a larger range twice.
const RANGE_MOST: u64 = 1 << 30;
/// Below this, most of the reads are the first ones of their block, which no cache can serve.
const TIMES_LEAST: f64 = 2.0;

/// A small range that was read several times.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Reread {
    /// Length of the range.
    pub(crate) bytes: u64,
    /// Bytes read divided by the length.
    pub(crate) times: f64,
    /// The target is, or lies on, a disk of a virtual machine.
    pub(crate) is_virtual: bool,
}

impl Reread {
    /// Of the load in `recording`, which reads `reads` on `target`; `None` if it is not suspected, if it mostly writes,
    /// and for a target whose reads do not go to a drive of this machine.
    pub(crate) fn of(
        reads: &[ReadRange],
        target: &RealTarget,
        recording: &Recording,
    ) -> Option<Reread> {
        // Requests through the page cache and targets in memory have a warning of their own.
        if target.file().is_none() || !target.direct || target.in_memory {
            return None;
        }
        let writes = recording.count(Op::Write);
        if writes > recording.count(Op::Read) {
            return None;
        }
        let bytes = length(reads, target.capacity_bytes);
        let times = suspected(bytes, recording.bytes(Op::Read))?;
        let drives = target
            .disk_name()
            .map_or_else(Vec::new, |disk| DriveOrigin::stack(Path::new("/"), &disk));
        Some(Reread { bytes, times, is_virtual: drives.iter().any(DriveOrigin::is_virtual) })
    }

    /// `the range of 64 MiB was read 25 times`.
    pub(crate) fn text(&self) -> String {
        format!(
            "the range of {} MiB was read {} times",
            significant(self.bytes as f64 / (1u64 << 20) as f64, 2),
            significant(self.times, 2)
        )
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

/// How often `bytes` were read, if that is often enough for a cache to matter.
fn suspected(bytes: u64, read_bytes: u64) -> Option<f64> {
    let times = read_bytes as f64 / bytes.max(1) as f64;
    (0 < bytes && bytes <= RANGE_MOST && times >= TIMES_LEAST).then_some(times)
}

/// Bytes in at least one of `reads` and below `capacity_bytes`.
fn length(reads: &[ReadRange], capacity_bytes: u64) -> u64 {
    let mut ranges: Vec<(u64, u64)> =
        reads.iter().map(|read| (read.bytes.start, read.bytes.end.min(capacity_bytes))).collect();
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
    use super::*;

    #[test]
    fn ranges_that_overlap_count_once() {
        let read = |start: u64, end: u64| ReadRange { job: None, bytes: start..end };
        assert_eq!(length(&[], 100), 0);
        assert_eq!(length(&[read(10, 30), read(0, 20), read(10, 15)], 100), 30);
        assert_eq!(length(&[read(90, 300), read(0, 10), read(200, 300)], 100), 20);
    }

    #[test]
    fn a_small_range_that_is_read_again_is_suspected() {
        assert_eq!(suspected(64 << 20, 1600 << 20), Some(25.0));
        assert_eq!(suspected(1 << 30, 2 << 30), Some(2.0));
        assert_eq!(suspected(1 << 30, (2 << 30) - 1), None);
        assert_eq!(suspected((1 << 30) + 1, 1 << 40), None);
        assert_eq!(suspected(0, 1 << 40), None);
        let found = Reread { bytes: 64 << 20, times: 25.0, is_virtual: false };
        let note = found.note();
        assert!(note.starts_with("the range of 64 MiB was read 25 times: a cache below"), "{note}");
        assert!(note.contains("RAID controller") && note.contains("`write.size`"), "{note}");
    }
}
