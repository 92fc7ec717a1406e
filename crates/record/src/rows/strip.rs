//! The rows of one job, while they are recorded and afterwards.

use ssdyno_block::Request;

use super::file::Chunk;
use super::packed::{Block, Lengths, ROW_WORDS, Stamp, push_long};
use super::row::Row;
use super::spool::{Line, Shared};
use crate::memory;

/// Words of a chunk in memory: 16 MiB each, so growing never copies and its cost is spread: memory comes when
/// it is first written. (Asking for huge pages made fresh memory dearer, not cheaper, on a virtual
/// machine that gives free memory back to its host.)
pub(crate) const CHUNK_WORDS: usize = 1 << 20;

/// Words of memory that is fresh from the system: more than 32 MiB, of which hardly any is used.
const FRESH_WORDS: usize = (32 << 20) / 16 + (1 << 16);

/// Rows in the order they were recorded (that of completion).
#[derive(Debug, Default)]
pub(crate) struct Strip {
    /// Number of the job, from 0.
    job: u32,
    last: Vec<u128>,
    /// Words of `last` beyond one for each row.
    extra: usize,
    full: Full,
    lengths: Lengths,
    /// Start of the recorded window.
    start_ns: u64,
}

/// Where full chunks are.
#[derive(Debug)]
enum Full {
    Memory(Held),
    File(Line),
}

impl Default for Full {
    fn default() -> Full {
        Full::Memory(Held::default())
    }
}

/// Chunks in memory.
#[derive(Debug, Default)]
struct Held {
    /// Each with the number of its rows.
    chunks: Vec<(Vec<u128>, usize)>,
    /// The chunk after the last chunk: it is requested while there is time to stop.
    spare: Vec<u128>,
    /// There may be no memory for the chunk after the last chunk.
    scarce: bool,
    /// See [`Strip::among`].
    among: u32,
}

impl Held {
    fn next(&mut self) -> Vec<u128> {
        let next = match self.spare.capacity() {
            // There is no spare chunk before the first row, and after a caller that went on
            // although `must_end` was true. Only the usual allocation is left then.
            0 => Vec::with_capacity(CHUNK_WORDS),
            _ => std::mem::take(&mut self.spare),
        };
        // The next chunk is asked for one chunk ahead. So memory runs out while there still is
        // room for the requests that are under way.
        self.scarce =
            !memory::reserve(&mut self.spare, CHUNK_WORDS) || memory::is_scarce(self.among.max(1));
        next
    }
}

impl Strip {
    pub(crate) fn of_job(job: u32) -> Strip {
        Strip { job, ..Strip::default() }
    }

    /// Rows of job number `job` that lie in a file, of requests that have these lengths.
    pub(crate) fn in_file(job: u32, line: Line, lengths: Lengths) -> Strip {
        Strip { job, full: Full::File(line), lengths, ..Strip::default() }
    }

    pub(crate) fn job(&self) -> u32 {
        self.job
    }

    /// Becomes that of job number `job`.
    pub(crate) fn set_job(&mut self, job: u32) {
        self.job = job;
    }

    /// From now on rows go to a file. Call it before the first.
    pub(crate) fn go_to(&mut self, line: Line) {
        self.full = Full::File(line);
    }

    /// The recorded window begins at `start_ns`.
    pub(crate) fn start_at(&mut self, start_ns: u64) {
        self.start_ns = start_ns;
    }

    /// The part of `row` that it shares with rows that differ only in operation and place.
    #[inline]
    pub(crate) fn stamp(&mut self, row: &Row) -> Stamp {
        self.lengths.stamp(row)
    }

    /// Appends a row.
    #[inline]
    pub(crate) fn push(&mut self, row: &Row) {
        let stamp = self.stamp(row);
        self.push_stamped(stamp, &row.request, || *row);
    }

    /// Appends the row of `request` with its stamp, or that of a row like it; `row` is asked for the whole
    /// where that is not enough.
    #[inline]
    pub(crate) fn push_stamped(
        &mut self,
        stamp: Stamp,
        request: &Request,
        row: impl FnOnce() -> Row,
    ) {
        // There is room for the longest row, although nearly all take one word. A row thus never
        // lies in two chunks, and `push` below never allocates.
        if self.last.capacity() - self.last.len() < ROW_WORDS {
            self.next_chunk();
        }
        match stamp.word(request) {
            Some(word) => self.last.push(word),
            None => self.push_long(&row()),
        }
    }

    #[inline(never)]
    fn push_long(&mut self, row: &Row) {
        let before = self.last.len();
        push_long(row, &mut self.last);
        self.extra += self.last.len() - before - 1;
    }

    #[cold]
    fn next_chunk(&mut self) {
        let rows = self.rows_in_last();
        match &mut self.full {
            Full::Memory(held) => {
                let chunk = std::mem::replace(&mut self.last, held.next());
                if rows > 0 {
                    held.chunks.push((chunk, rows));
                }
                self.extra = 0;
            }
            Full::File(line) if self.last.capacity() == 0 => self.last = line.first(),
            Full::File(_) => self.exchange(false),
        }
    }

    /// Hands what there is to the writer; `keep` it where that has no empty chunk in its place.
    fn exchange(&mut self, keep: bool) {
        // The words that come back may be an empty chunk or the same one. Only in the second
        // case there are extra words to be remembered.
        let chunk = self.take_chunk();
        if let Full::File(line) = &self.full {
            let (extra, words) = (chunk.words.len() - chunk.rows, chunk.words.len());
            let (last, gone) = line.exchange(chunk, keep);
            self.last = last;
            self.extra = if gone || self.last.len() != words { 0 } else { extra };
        }
    }

    fn take_chunk(&mut self) -> Chunk {
        let rows = self.rows_in_last();
        self.extra = 0;
        let words = std::mem::take(&mut self.last);
        let (job, start_ns) = (self.job, self.start_ns);
        Chunk { job, rows, words, lengths: self.lengths.list().to_vec(), start_ns }
    }

    /// Hands what there is by now to the writer, where there is one: what a program that is killed leaves.
    pub(crate) fn hand_over(&mut self) {
        if matches!(self.full, Full::File(_)) && !self.last.is_empty() {
            self.exchange(true);
        }
    }

    /// Hands over the rest, where there is a writer: nothing is recorded any more.
    pub(crate) fn end(&mut self) {
        if self.last.is_empty() {
            return;
        }
        if let Full::File(_) = self.full {
            let chunk = self.take_chunk();
            if let Full::File(line) = &self.full {
                line.end(chunk);
            }
        }
    }

    fn rows_in_last(&self) -> usize {
        self.last.len() - self.extra
    }

    /// Writes to the memory of the first `count` rows, at most a chunk's: a page that a system hands out
    /// costs most when it is first written (microseconds on a virtual machine), and this is not the run.
    pub(crate) fn prepare(&mut self, count: usize) {
        if !self.is_empty() {
            return;
        }
        if self.last.capacity() == 0 {
            self.next_chunk();
        }
        self.last.resize(count.min(self.last.capacity()), 0);
        self.last.clear();
    }

    /// Begins with memory that was never used before: an allocation of this size does not reuse freed memory
    /// (mallopt(3), M_MMAP_THRESHOLD: at most 32 MiB).
    pub(crate) fn take_fresh(&mut self) {
        let mut fresh = Vec::new();
        if self.is_empty() && memory::reserve(&mut fresh, FRESH_WORDS) {
            self.last = fresh;
        }
    }

    /// The given number of jobs keeps rows at the same time: they share the remaining memory.
    pub(crate) fn among(&mut self, jobs: u32) {
        if let Full::Memory(held) = &mut self.full {
            held.among = jobs;
        }
    }

    /// Whether recording should end because memory is used up: outstanding requests still find room, half a chunk of
    /// it.
    #[inline]
    pub(crate) fn must_end(&self) -> bool {
        match &self.full {
            Full::Memory(held) => held.scarce && self.last.len() > CHUNK_WORDS / 2,
            Full::File(_) => false,
        }
    }

    /// The file that its rows are in, if they are.
    pub(crate) fn file(&self) -> Option<&Shared> {
        match &self.full {
            Full::Memory(_) => None,
            Full::File(line) => Some(line.shared()),
        }
    }

    /// Rows recorded.
    pub(crate) fn len(&self) -> usize {
        let before: usize = match &self.full {
            Full::Memory(held) => held.chunks.iter().map(|(_, rows)| rows).sum(),
            Full::File(line) => line.shared().rows(self.job),
        };
        before + self.rows_in_last()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn lengths(&self) -> &[u32] {
        self.lengths.list()
    }

    /// Chunk number `index` of those in memory, from 0.
    pub(crate) fn block(&self, index: usize) -> Option<Block<'_>> {
        let block = |words, rows| Block::new(words, rows, self.lengths());
        let Full::Memory(held) = &self.full else { return None };
        match held.chunks.get(index) {
            Some((words, rows)) => Some(block(words, *rows)),
            None if index == held.chunks.len() => Some(block(&self.last, self.rows_in_last())),
            None => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usual(i: u64) -> Row {
        Row::punctual(&Request::read(i * 4096, 4096), i, i, ssdyno_block::Status::Ok)
    }

    #[test]
    fn the_end_is_told_half_a_chunk_ahead() {
        let mut rows = Strip::of_job(0);
        rows.push(&usual(1));
        let set = |rows: &mut Strip, scarce| match &mut rows.full {
            Full::Memory(held) => held.scarce = scarce,
            Full::File(_) => unreachable!(),
        };
        set(&mut rows, true);
        assert!(!rows.must_end(), "a short run has room");
        while rows.len() <= CHUNK_WORDS / 2 {
            rows.push(&usual(1));
        }
        assert!(rows.must_end());
        set(&mut rows, false);
        assert!(!rows.must_end());
    }

    /// Rows are written to the prepared memory, which contains no rows yet.
    #[test]
    fn prepared_memory_is_used() {
        let mut rows = Strip::of_job(0);
        rows.prepare(1000);
        assert!(rows.is_empty());
        let place = rows.last.as_ptr();
        (0..2000).for_each(|i| rows.push(&usual(i)));
        assert_eq!((rows.len(), rows.block(0).unwrap().iter().count()), (2000, 2000));
        assert_eq!(rows.last.as_ptr(), place);
        rows.prepare(1000);
        assert_eq!(rows.len(), 2000, "too late to change anything");
    }
}
