//! Reading rows: those of each job lie in the order of completion, and are merged where that matters.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::io;

use super::file::Segment;
use super::packed::{Block, whole_rows};
use super::row::Row;
use super::spool::Shared;
use super::strip::Strip;
use super::table::Rows;

/// The number of rows that are read at a time: the unpacked rows stay in the core's cache until they are used.
pub(crate) const BATCH_ROWS: usize = 1 << 13;

/// Rows that follow one another in the order of completion, at most [`BATCH_ROWS`].
#[derive(Clone, Copy, Debug)]
pub(crate) enum Batch<'a> {
    /// For one job, which has this number.
    Block(u32, Block<'a>),
    /// Of several, each with the number of its job.
    Rows(&'a [(u32, Row)]),
}

impl Rows {
    /// Shows `each` all rows, as they lie.
    pub(super) fn in_any_order(&self, each: &mut dyn FnMut(Block<'_>)) -> io::Result<()> {
        for strip in self.strips() {
            let mut reader = Reader::new(strip, 1);
            while reader.advance()? {
                each(reader.block());
            }
        }
        Ok(())
    }

    /// Shows `each` all rows in the order of completion.
    pub(crate) fn in_order(
        &self,
        each: &mut dyn FnMut(Batch<'_>) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut strips = self.strips().iter().filter(|strip| !strip.is_empty());
        let (Some(first), second) = (strips.next(), strips.next()) else { return Ok(()) };
        if second.is_some() {
            return self.merged(each);
        }
        // The rows of one job lie in the order of completion already. They are passed on as they
        // lie, without a comparison and without being unpacked.
        let mut reader = Reader::new(first, 1);
        while reader.advance()? {
            for part in reader.block().parts(BATCH_ROWS) {
                each(Batch::Block(first.job(), part))?;
            }
        }
        Ok(())
    }

    fn merged(&self, each: &mut dyn FnMut(Batch<'_>) -> io::Result<()>) -> io::Result<()> {
        let count = self.strips().len();
        let strips = self.strips().iter();
        let mut readers: Vec<Reader<'_>> = strips.map(|strip| Reader::new(strip, count)).collect();
        // One row of each job waits in the heap. It is replaced in its place by the next one of
        // that job, which costs one way through the heap and not two.
        let mut heads = BinaryHeap::with_capacity(readers.len());
        for (index, reader) in readers.iter_mut().enumerate() {
            heads.extend(reader.next_row()?.map(|row| Head::new(row, index)));
        }
        let mut batch = Vec::with_capacity(BATCH_ROWS);
        while let Some(mut head) = heads.peek_mut() {
            let Reverse(index) = head.index;
            let reader = &mut readers[index];
            batch.push((reader.strip.job(), head.row));
            match reader.next_row()? {
                Some(row) => *head = Head::new(row, index),
                None => drop(PeekMut::pop(head)),
            }
            if batch.len() == BATCH_ROWS {
                each(Batch::Rows(&batch))?;
                batch.clear();
            }
        }
        if batch.is_empty() { Ok(()) } else { each(Batch::Rows(&batch)) }
    }
}

/// Words that are read from a file at a time, of all jobs together, and of one.
const BUFFERS_WORDS: usize = 1 << 22;
const BUFFER_MOST: usize = 1 << 16;
const BUFFER_LEAST: usize = 1 << 8;

/// Reads the rows of one job from the first to the last.
struct Reader<'a> {
    strip: &'a Strip,
    /// Chunks in memory that were begun.
    chunks: usize,
    /// Where rows lie in a file, the next ones last.
    segments: Vec<Segment>,
    /// The rows read so far are at its start: the number of words, and of rows.
    buffer: Vec<u128>,
    words: usize,
    rows: usize,
    most: usize,
    /// The next word of what was begun last.
    at: usize,
}

impl<'a> Reader<'a> {
    /// One of so many.
    fn new(strip: &'a Strip, readers: usize) -> Reader<'a> {
        let mut segments = strip.file().map(|file| file.segments(strip.job())).unwrap_or_default();
        segments.reverse();
        // All readers share 64 MiB, so a run of many jobs needs no more memory than one of few.
        // Below 4 KiB for each the calls would cost more than the reading.
        let most = (BUFFERS_WORDS / readers.max(1)).clamp(BUFFER_LEAST, BUFFER_MOST);
        Reader { strip, chunks: 0, segments, buffer: Vec::new(), words: 0, rows: 0, most, at: 0 }
    }

    /// Goes to the next rows; false at the end.
    fn advance(&mut self) -> io::Result<bool> {
        self.at = 0;
        match self.strip.file() {
            Some(file) => self.read(file),
            None => {
                self.chunks += 1;
                Ok(self.strip.block(self.chunks - 1).is_some())
            }
        }
    }

    fn read(&mut self, file: &Shared) -> io::Result<bool> {
        (self.words, self.rows) = (0, 0);
        let Some(segment) = self.segments.last_mut() else { return Ok(false) };
        let read = segment.words.min(self.most);
        // The buffer only grows and is not cleared. Clearing would write every byte twice,
        // because the read replaces the contents.
        self.buffer.resize(self.buffer.len().max(read), 0);
        file.read(segment.at, &mut self.buffer[..read])?;
        let (words, rows) = match segment.words == segment.rows {
            true => (read, read),
            // The buffer may end in the middle of a row of several words. That row is read
            // again with the next part.
            false => whole_rows(&self.buffer[..read]),
        };
        // A buffer is longer than any row. So a row that does not end in it lies in a file that
        // was cut off or is damaged.
        if words == 0 {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a row has no end"));
        }
        (self.words, self.rows) = (words, rows);
        segment.at += 16 * words as u64;
        segment.words -= words;
        segment.rows = segment.rows.saturating_sub(rows);
        if segment.words == 0 {
            self.segments.pop();
        }
        Ok(true)
    }

    /// The rows that were begun last.
    fn block(&self) -> Block<'_> {
        if self.strip.file().is_some() {
            return Block::new(&self.buffer[..self.words], self.rows, self.strip.lengths());
        }
        let present = self.chunks.checked_sub(1).and_then(|index| self.strip.block(index));
        present.unwrap_or(Block::new(&[], 0, &[]))
    }

    fn next_row(&mut self) -> io::Result<Option<Row>> {
        loop {
            if let Some((row, next)) = self.block().row_at(self.at) {
                self.at = next;
                return Ok(Some(row));
            }
            if !self.advance()? {
                return Ok(None);
            }
        }
    }
}

/// The next row of the job that `index` reads; the earliest completion is the greatest.
///
/// The number of the job decides between rows of one moment. Each reading thus has the same order, whatever the heap did
/// before.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Head {
    done_ns: Reverse<u64>,
    index: Reverse<usize>,
    row: Row,
}

impl Head {
    fn new(row: Row, index: usize) -> Head {
        let done_ns = row.issue_ns.saturating_add(row.latency_ns);
        Head { done_ns: Reverse(done_ns), index: Reverse(index), row }
    }
}

#[cfg(test)]
mod tests {
    use ssdyno_block::{Request, Status};

    use super::*;
    use crate::rows::CHUNK_WORDS;

    #[test]
    fn chunks_keep_the_order() {
        let mut strip = Strip::of_job(7);
        let n = CHUNK_WORDS as u64 + 3;
        let request = |i: u64| Request::read(i * 4096, 4096);
        (0..n).for_each(|i| strip.push(&Row::punctual(&request(i), i, i, Status::Ok)));
        let rows = Rows::of(strip);
        assert_eq!(rows.len() as u64, n);
        let mut next = 0;
        rows.for_each(|job, row| {
            assert_eq!((job, row.latency_ns), (7, next));
            next += 1;
            Ok(())
        })
        .unwrap();
        assert_eq!(next, n);
    }

    #[test]
    fn jobs_are_merged_by_completion() {
        let mut rows = Rows::default();
        for (job, end) in [(0, 5), (2, 1), (0, 9), (2, 7), (2, 9), (0, 12)] {
            let row = Row::punctual(&Request::flush(), 0, end, Status::Ok);
            rows.strip(job).push(&row);
        }
        let mut order = Vec::new();
        rows.for_each(|job, row| {
            order.push((job, row.latency_ns));
            Ok(())
        })
        .unwrap();
        assert_eq!(order, [(2, 1), (0, 5), (2, 7), (0, 9), (2, 9), (0, 12)]);
        assert_eq!((rows.len(), rows.last_job(), rows.names().job(2)), (6, 2, "2".to_owned()));
    }
}
