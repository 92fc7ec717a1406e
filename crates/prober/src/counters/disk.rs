//! `/proc/diskstats` (Documentation/admin-guide/iostats.rst).

use std::collections::BTreeMap;

use crate::sources::{SourceError, SourceLine, SourceText, Sources};

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct DiskCounters {
    /// Major and minor number: another device of the same name has others, usually.
    pub(crate) device: [u64; 2],
    /// Reads, sectors read, writes, sectors written: they never wrap.
    pub(crate) counts: [u64; 4],
    /// Time of reads, of writes, with anything in flight, and that multiplied by the number in flight. These are
    /// `unsigned int` in the kernel and wrap after 2^32 ms.
    pub(crate) times_ms: [u64; 4],
    /// Requests in flight, now.
    pub(crate) in_flight: u64,
    /// Discards, sectors discarded, and their time in ms, which wraps.
    pub(crate) discards: Option<([u64; 2], [u64; 1])>,
    /// Flushes, and their time in ms, which wraps.
    pub(crate) flushes: Option<([u64; 1], [u64; 1])>,
}

pub(super) fn read(sources: &Sources) -> Result<BTreeMap<String, DiskCounters>, SourceError> {
    let source = SourceText::read(sources.proc.join("diskstats"))?;
    source.lines().map(|line| disk(&line)).collect()
}

fn disk(line: &SourceLine<'_>) -> Result<(String, DiskCounters), SourceError> {
    let mut words = line.text.split_ascii_whitespace().peekable();
    let device = line.numbers(&mut words, "device number")?;
    let name = words.next().ok_or_else(|| line.error("the line ends before the name"))?;
    // Merged requests are left out: the block layer made one request of two neighbours, and the
    // merged one was never served by the drive itself.
    let [reads, _, sectors_read, read_ms] = line.numbers(&mut words, "counter of reads")?;
    let [writes, _, sectors_written, write_ms] = line.numbers(&mut words, "counter of writes")?;
    let [in_flight, busy_ms, weighted_ms] = line.numbers(&mut words, "counter of requests")?;
    let mut discards = None;
    // Discards exist since Linux 4.18 and flushes since Linux 5.5. An older kernel
    // ends the line here, and that is not an error.
    if words.peek().is_some() {
        let [count, _, sectors, ms] = line.numbers(&mut words, "counter of discards")?;
        discards = Some(([count, sectors], [ms]));
    }
    let mut flushes = None;
    if words.peek().is_some() {
        let [count, ms] = line.numbers(&mut words, "counter of flushes")?;
        flushes = Some(([count], [ms]));
    }
    let counters = DiskCounters {
        device,
        counts: [reads, sectors_read, writes, sectors_written],
        times_ms: [read_ms, write_ms, busy_ms, weighted_ms],
        in_flight,
        // Later kernels may append further columns. They are ignored: the meaning of the
        // columns before them never changes (iostats.rst).
        discards,
        flushes,
    };
    Ok((name.to_owned(), counters))
}
