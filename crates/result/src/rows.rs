//! One row a request, in 16 bytes.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use ssdyno_block::{Op, Request, SECTOR_BYTES, Status, Time, prefetch};

use crate::memory;

/// One request, as a row gives it back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Row {
    /// Intended start, in whole nanoseconds (rounded down).
    pub issue_ns: u64,
    /// From the intended start to the completion, in whole nanoseconds (rounded down).
    pub latency_ns: u64,
    /// What it did, where and how much.
    pub request: Request,
    /// How it ended.
    pub status: Status,
}

// Layout of a packed row, from the lowest bit:
//   status 2 | op 2 | length 8 (an index) | offset 36 (sectors) | latency 36 (ns) | issue 44 (ns)
// which holds 4.8 h of run, 68 s of latency, 32 TiB of device and 255 different lengths. A row
// that does not fit is kept in full in `wide`; its packed row has the length index `WIDE` and the
// number of the wide row in place of the offset, so the order of rows is kept and nothing is lost.
const OP_AT: u32 = 2;
const LENGTH_AT: u32 = 4;
const OFFSET_AT: u32 = 12;
const LATENCY_AT: u32 = 48;
const ISSUE_AT: u32 = 84;
const OFFSET_BITS: u32 = 36;
const LATENCY_BITS: u32 = 36;
const ISSUE_BITS: u32 = 44;
const WIDE: usize = 255;

/// Rows of a chunk: 16 MiB each, so growing never copies and its cost is spread: memory comes when it
/// is first written. (Asking for huge pages made fresh memory dearer, not cheaper, on a virtual
/// machine that gives free memory back to its host.)
pub(crate) const CHUNK_ROWS: usize = 1 << 20;

/// What a row adds to the counts of the operations, 16 bits each, by its operation and status: the
/// lowest bits of a packed row.
const COUNTED: [u64; 16] = {
    let mut counted = [0; 16];
    let mut op = 0;
    while op < 4 {
        counted[op << OP_AT | Status::Ok as usize] = 1 << (op as u32 * u16::BITS);
        op += 1;
    }
    counted
};

/// A packed row without its offset and operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stamp(u128);

impl Stamp {
    /// Of rows that are kept in full.
    pub(crate) const NONE: Stamp = Stamp((WIDE as u128) << LENGTH_AT);

    #[inline]
    fn is_narrow(self) -> bool {
        (self.0 as u64 >> LENGTH_AT) as usize & 0xFF != WIDE
    }
}

/// The rows of a run, in the order they were recorded (that of completion).
#[derive(Debug)]
pub struct Rows {
    full: Vec<Vec<u128>>,
    last: Vec<u128>,
    /// The chunk after the last one: asked for while there is time to stop.
    spare: Vec<u128>,
    /// There may be no memory for the chunk after the last one.
    scarce: bool,
    /// See [`among`](Rows::among).
    among: u32,
    lengths: Vec<u32>,
    /// Index into `lengths` by the low bits of the length in sectors: a guess that is checked.
    guesses: [u8; 256],
    wide: Vec<Row>,
}

impl Default for Rows {
    fn default() -> Self {
        Rows {
            full: Vec::new(),
            last: Vec::new(),
            spare: Vec::new(),
            scarce: false,
            among: 1,
            lengths: Vec::new(),
            guesses: [0; 256],
            wide: Vec::new(),
        }
    }
}

impl Rows {
    /// Appends a row.
    #[inline]
    pub(crate) fn push(&mut self, request: &Request, issue: Time, latency_ns: u64, status: Status) {
        self.push_ns(request, issue.as_ns(), latency_ns, status);
    }

    /// Appends a row.
    #[inline]
    pub(crate) fn push_ns(
        &mut self,
        request: &Request,
        issue_ns: u64,
        latency_ns: u64,
        status: Status,
    ) {
        let row = Row { issue_ns, latency_ns, request: *request, status };
        let stamp = self.stamp(&row);
        self.push_stamped(stamp, &row);
    }

    /// What `row` has in common with those that differ from it in operation and place only.
    #[inline]
    pub(crate) fn stamp(&mut self, row: &Row) -> Stamp {
        let length = self.length_index(row.request.length_bytes);
        if (row.issue_ns >> ISSUE_BITS) | (row.latency_ns >> LATENCY_BITS) != 0 {
            return Stamp::NONE;
        }
        let tail = ((length as u64) << LENGTH_AT) | row.status as u64;
        let times =
            (u128::from(row.latency_ns) << LATENCY_AT) | (u128::from(row.issue_ns) << ISSUE_AT);
        Stamp(times | u128::from(tail))
    }

    /// Appends a row with its stamp, or that of a row like it.
    #[inline]
    pub(crate) fn push_stamped(&mut self, stamp: Stamp, row: &Row) {
        // An offset that is no whole sector has its odd bits on top after this.
        let sectors = row.request.offset_bytes.rotate_right(SECTOR_BYTES.trailing_zeros());
        let packed = if stamp.is_narrow() && sectors >> OFFSET_BITS == 0 {
            stamp.0 | (u128::from(sectors) << OFFSET_AT) | ((row.request.op as u128) << OP_AT)
        } else {
            self.push_wide(*row)
        };
        if self.last.len() == self.last.capacity() {
            self.next_chunk();
        }
        self.last.push(packed);
    }

    #[cold]
    fn push_wide(&mut self, row: Row) -> u128 {
        self.wide.push(row);
        ((WIDE as u128) << LENGTH_AT) | ((self.wide.len() as u128 - 1) << OFFSET_AT)
    }

    #[cold]
    fn next_chunk(&mut self) {
        let next = match self.spare.capacity() {
            // The first, or of one who does not stop when told to.
            0 => Vec::with_capacity(CHUNK_ROWS),
            _ => std::mem::take(&mut self.spare),
        };
        self.add_chunk(next);
        self.scarce =
            !memory::reserve(&mut self.spare, CHUNK_ROWS) || memory::is_scarce(self.among);
    }

    /// Goes on in `next`, which is empty.
    fn add_chunk(&mut self, next: Vec<u128>) {
        let chunk = std::mem::replace(&mut self.last, next);
        if !chunk.is_empty() {
            self.full.push(chunk);
        }
    }

    /// Writes to the memory of the first `count` rows, at most a chunk's: a page that a system hands out
    /// costs most when it is first written (microseconds on a virtual machine), and this is not the run.
    pub(crate) fn prepare(&mut self, count: usize) {
        if self.is_empty() && self.last.capacity() == 0 {
            self.next_chunk();
            self.last.resize(count.min(CHUNK_ROWS), 0);
            self.last.clear();
        }
    }

    /// As many jobs keep rows beside one another: what is left of memory is for all of them.
    pub(crate) fn among(&mut self, jobs: u32) {
        self.among = jobs;
    }

    /// Whether recording should end, because memory does: what is under way still finds room, half a
    /// chunk of it.
    #[inline]
    pub(crate) fn must_end(&self) -> bool {
        self.scarce && self.last.len() > CHUNK_ROWS / 2
    }

    #[inline]
    fn length_index(&mut self, length_bytes: u32) -> usize {
        let slot = (length_bytes / SECTOR_BYTES) as usize % self.guesses.len();
        let guess = usize::from(self.guesses[slot]);
        if self.lengths.get(guess) == Some(&length_bytes) {
            guess
        } else {
            self.search_length(length_bytes, slot)
        }
    }

    #[cold]
    fn search_length(&mut self, length_bytes: u32, slot: usize) -> usize {
        let found = self.lengths.iter().position(|l| *l == length_bytes);
        let index = found.unwrap_or(self.lengths.len());
        if index >= WIDE {
            return WIDE;
        }
        if found.is_none() {
            self.lengths.push(length_bytes);
        }
        self.guesses[slot] = index as u8;
        index
    }

    /// The rows of several jobs, each in order of completion, as one list in that order. It takes no
    /// memory of its own: it begins in what the jobs asked for ahead, and goes on in chunks that have
    /// been copied.
    pub(crate) fn merge(mut parts: Vec<Rows>) -> Rows {
        let spares = parts.iter_mut().map(|part| std::mem::take(&mut part.spare));
        let mut empty: Vec<Vec<u128>> = spares.filter(|spare| spare.capacity() > 0).collect();
        let mut drains: Vec<Drain> = parts.into_iter().map(Drain::new).collect();
        let mut heads = BinaryHeap::with_capacity(drains.len());
        let mut merged = Rows::default();
        for (index, drain) in drains.iter_mut().enumerate() {
            heads.extend(drain.next(&mut empty).map(|row| Head { row, index }));
        }
        while let Some(mut head) = heads.peek_mut() {
            if merged.last.len() == merged.last.capacity() {
                merged.add_chunk(empty.pop().unwrap_or_else(|| Vec::with_capacity(CHUNK_ROWS)));
            }
            let Row { issue_ns, latency_ns, request, status } = head.row;
            merged.push_ns(&request, issue_ns, latency_ns, status);
            match drains[head.index].next(&mut empty) {
                Some(row) => head.row = row,
                None => drop(PeekMut::pop(head)),
            }
        }
        merged
    }

    /// Every length of rows that are not wide; a row has an index into them.
    pub(crate) fn narrow_lengths(&self) -> &[u32] {
        &self.lengths
    }

    /// Rows that are kept in full, in order.
    pub(crate) fn wide(&self) -> &[Row] {
        &self.wide
    }

    /// Rows recorded.
    pub fn len(&self) -> usize {
        self.full.len() * CHUNK_ROWS + self.last.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The rows, in the order they were recorded.
    pub fn iter(&self) -> impl Iterator<Item = Row> {
        self.chunks().flat_map(|chunk| chunk.iter())
    }

    /// Operation and latency of every row without error, with the number of such rows, for each
    /// stretch of rows of one latency: the passes that statistics make. Looks at nothing else, which is
    /// several times as fast as whole rows; what is reaped together often took the same time.
    #[inline]
    pub(crate) fn for_each_ok(&self, mut visit: impl FnMut(Op, u64, u64)) {
        /// Rows of a stretch: as many as the counts of the operations have room for, side by side.
        const STRETCH: u32 = u16::MAX as u32;
        let mut tell = |latency_ns: u64, mut counts: u64| {
            while counts != 0 {
                let op = counts.trailing_zeros() / u16::BITS;
                let at = op * u16::BITS;
                visit(Op::ALL[op as usize], latency_ns, u64::from((counts >> at) as u16));
                counts &= !(u64::from(u16::MAX) << at);
            }
        };
        let (mut latency_ns, mut counts, mut left) = (0, 0, STRETCH);
        for chunk in self.full.iter().chain(std::iter::once(&self.last)) {
            for packed in fetched_ahead(chunk) {
                let low = *packed as u64;
                let mut fate = low & ((1 << LENGTH_AT) - 1);
                let mut this_ns = (*packed >> LATENCY_AT) as u64 & ((1 << LATENCY_BITS) - 1);
                if (low >> LENGTH_AT) as usize & 0xFF == WIDE {
                    let row = self.unpack(*packed);
                    fate = ((row.request.op as u64) << OP_AT) | row.status as u64;
                    this_ns = row.latency_ns;
                }
                if this_ns != latency_ns || left == 0 {
                    tell(latency_ns, counts);
                    (latency_ns, counts, left) = (this_ns, 0, STRETCH);
                }
                counts += COUNTED[fate as usize];
                left -= 1;
            }
        }
        tell(latency_ns, counts);
    }

    /// The rows by chunks, for writers that work on many rows at once.
    pub(crate) fn chunks(&self) -> impl Iterator<Item = Chunk<'_>> {
        let packed = self.full.iter().chain(std::iter::once(&self.last));
        packed.map(|packed| Chunk { rows: self, packed })
    }

    #[inline]
    fn unpack(&self, packed: u128) -> Row {
        let low = packed as u64;
        let length = (low >> LENGTH_AT) as usize & 0xFF;
        let field = |at: u32, bits: u32| (packed >> at) as u64 & ((1 << bits) - 1);
        let sectors = field(OFFSET_AT, OFFSET_BITS);
        if length == WIDE {
            return self.wide[sectors as usize];
        }
        Row {
            issue_ns: field(ISSUE_AT, ISSUE_BITS),
            latency_ns: field(LATENCY_AT, LATENCY_BITS),
            request: Request {
                op: Op::ALL[(low >> OP_AT) as usize & 3],
                offset_bytes: sectors * u64::from(SECTOR_BYTES),
                length_bytes: self.lengths[length],
            },
            status: STATUS[low as usize & 3],
        }
    }
}

/// Packed rows in order, each asked of memory well before it is looked at: on small pages, which lie
/// anywhere, the processor sees no stream beyond the end of one.
#[inline]
fn fetched_ahead(packed: &[u128]) -> impl Iterator<Item = &u128> {
    const AHEAD: usize = 128;
    packed.iter().enumerate().map(|(at, row)| {
        if let Some(later) = packed.get(at + AHEAD) {
            prefetch(later);
        }
        row
    })
}

/// Takes rows from the front, and gives back chunks that are done with.
struct Drain {
    rows: Rows,
    chunks: std::vec::IntoIter<Vec<u128>>,
    chunk: Vec<u128>,
    /// The next row in `chunk`.
    at: usize,
}

impl Drain {
    fn new(mut rows: Rows) -> Drain {
        let mut chunks = std::mem::take(&mut rows.full);
        chunks.push(std::mem::take(&mut rows.last));
        Drain { rows, chunks: chunks.into_iter(), chunk: Vec::new(), at: 0 }
    }

    /// The next row; `empty` gets the chunk before it, when that is done with.
    fn next(&mut self, empty: &mut Vec<Vec<u128>>) -> Option<Row> {
        loop {
            if let Some(packed) = self.chunk.get(self.at) {
                self.at += 1;
                return Some(self.rows.unpack(*packed));
            }
            let next = self.chunks.next()?;
            let mut done = std::mem::replace(&mut self.chunk, next);
            self.at = 0;
            if done.capacity() > 0 {
                done.clear();
                empty.push(done);
            }
        }
    }
}

/// The next row of job `index`; the earliest completion is the greatest.
struct Head {
    row: Row,
    index: usize,
}

impl Head {
    fn key(&self) -> (Reverse<u64>, Reverse<usize>) {
        (Reverse(self.row.issue_ns.saturating_add(self.row.latency_ns)), Reverse(self.index))
    }
}

impl Ord for Head {
    fn cmp(&self, other: &Head) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

impl PartialOrd for Head {
    fn partial_cmp(&self, other: &Head) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Head {
    fn eq(&self, other: &Head) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Head {}

const STATUS: [Status; 4] = [Status::Ok, Status::Error, Status::ReadOnly, Status::Abandoned];

/// Up to [`CHUNK_ROWS`] rows.
#[derive(Clone, Copy)]
pub(crate) struct Chunk<'a> {
    rows: &'a Rows,
    packed: &'a [u128],
}

impl<'a> Chunk<'a> {
    pub(crate) fn len(self) -> usize {
        self.packed.len()
    }

    pub(crate) fn iter(self) -> impl Iterator<Item = Row> + 'a {
        fetched_ahead(self.packed).map(move |packed| self.rows.unpack(*packed))
    }

    /// Each row, with the index of its length in [`Rows::narrow_lengths`]; `None` for a wide one.
    pub(crate) fn iter_with_length(self) -> impl Iterator<Item = (Row, Option<u32>)> + 'a {
        self.packed.iter().map(move |packed| {
            let length = (*packed as u64 >> LENGTH_AT) as u32 & 0xFF;
            (self.rows.unpack(*packed), (length as usize != WIDE).then_some(length))
        })
    }

    /// Whether all rows have the same operation, length and status; wide ones are not compared.
    pub(crate) fn is_uniform(self) -> bool {
        let kind = |packed: &u128| *packed as u64 & ((1 << OFFSET_AT) - 1);
        let Some(first) = self.packed.first().map(kind) else { return false };
        (first >> LENGTH_AT) as usize != WIDE && self.packed.iter().all(|row| kind(row) == first)
    }

    /// The first row alone.
    pub(crate) fn first(self) -> Chunk<'a> {
        Chunk { packed: &self.packed[..self.packed.len().min(1)], ..self }
    }

    /// The chunk in parts of so many rows, the last of which may be shorter.
    pub(crate) fn parts(self, rows: usize) -> impl Iterator<Item = Chunk<'a>> {
        self.packed.chunks(rows).map(move |packed| Chunk { rows: self.rows, packed })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_row() -> impl Strategy<Value = Row> {
        let narrow = (0u64..1 << 44, 0u64..1 << 36, 0u64..1 << 36, 0u32..400);
        let wide = (any::<u64>(), any::<u64>(), any::<u64>(), any::<u32>());
        let fields = prop_oneof![
            4 => narrow.prop_map(|(i, l, o, n)| (i, l, o * 512, n * 512)),
            1 => wide,
        ];
        (fields, 0usize..4, 0usize..4).prop_map(|((i, l, o, n), op, status)| Row {
            issue_ns: i % (u64::MAX / 1_000),
            latency_ns: l,
            request: Request { op: Op::ALL[op], offset_bytes: o, length_bytes: n },
            status: STATUS[status],
        })
    }

    proptest! {
        #[test]
        fn every_row_comes_back(rows in prop::collection::vec(any_row(), 0..600)) {
            let mut packed = Rows::default();
            for r in &rows {
                packed.push(&r.request, Time::from_ns(r.issue_ns), r.latency_ns, r.status);
            }
            prop_assert_eq!(packed.len(), rows.len());
            prop_assert_eq!(packed.iter().collect::<Vec<_>>(), rows);
        }
    }

    #[test]
    fn the_end_is_told_half_a_chunk_ahead() {
        let mut rows = Rows::default();
        let push = |rows: &mut Rows| {
            rows.push(&Request::read(0, 4096), Time::from_ns(1), 1, Status::Ok);
        };
        push(&mut rows);
        rows.scarce = true;
        assert!(!rows.must_end(), "a short run has room");
        while rows.len() <= CHUNK_ROWS / 2 {
            push(&mut rows);
        }
        assert!(rows.must_end());
        rows.scarce = false;
        assert!(!rows.must_end());
    }

    /// What was got ready is what rows are written to, and none of it is a row.
    #[test]
    fn prepared_memory_is_used() {
        let mut rows = Rows::default();
        rows.prepare(1000);
        assert!(rows.is_empty() && rows.iter().next().is_none());
        let place = rows.last.as_ptr();
        for _ in 0..2000 {
            rows.push(&Request::read(0, 4096), Time::from_ns(1), 1, Status::Ok);
        }
        assert_eq!((rows.len(), rows.iter().count()), (2000, 2000));
        assert_eq!(rows.last.as_ptr(), place);
        rows.prepare(1000);
        assert_eq!(rows.len(), 2000, "too late to change anything");
    }

    #[test]
    fn chunks_keep_the_order() {
        let mut rows = Rows::default();
        let n = 2 * CHUNK_ROWS as u64 + 3;
        for i in 0..n {
            rows.push(&Request::read(i * 4096, 4096), Time::from_ns(i), i, Status::Ok);
        }
        assert_eq!(rows.len() as u64, n);
        assert!(rows.iter().map(|r| r.latency_ns).eq(0..n));
        assert!(rows.wide.is_empty());
    }
}
