//! How rows lie in memory and in a file: words of 16 bytes, one a row nearly always.

use ssdyno_block::{Op, Request, SECTOR_BYTES, Status, prefetch};

use super::row::Row;

// Layout of a word, from the lowest bit:
//   status 2 | op 2 | length 8 (an index) | offset 36 (sectors) | latency 36 (ns) | issue 44 (ns)
// which holds 4.8 h of run, 68 s of latency, 32 TiB of device and 254 different lengths, of a request that
// was submitted when it was meant to start and met no error of the system.
//
// Another one has a second word, told by the length index `LONG`:
//   length 32 (bytes) | errno 16 | 16 unused | submission behind the intended start 64 (ns)
// One that does not fit in that has three words, told by the index `WIDE`:
//   status 2 | op 2 | `WIDE` 8 | errno 16 | 4 unused | length 32 (bytes)
//   issue 64 (ns) | latency 64 (ns)
//   offset 64 (bytes) | submission 64 (ns)
// So the order of rows is kept, nothing is lost, and words tell everything but the lengths.
const OP_AT: u32 = 2;
const LENGTH_AT: u32 = 4;
const OFFSET_AT: u32 = 12;
const LATENCY_AT: u32 = 48;
const ISSUE_AT: u32 = 84;
const OFFSET_BITS: u32 = 36;
const LATENCY_BITS: u32 = 36;
const ISSUE_BITS: u32 = 44;
const LONG: usize = 254;
const WIDE: usize = 255;
const WIDE_ERRNO_AT: u32 = 12;
const WIDE_LENGTH_AT: u32 = 32;
const LONG_ERRNO_AT: u32 = 32;
const LONG_DELAY_AT: u32 = 64;

/// Most words of a row.
pub(crate) const ROW_WORDS: usize = 3;

/// The increments of the counts of operations by a row, 16 bits each, by its operation and status:
/// the lowest bits of its first word.
const COUNTED: [u64; 16] = {
    let mut counted = [0; 16];
    let mut op = 0;
    while op < 4 {
        let one = 1 << (op as u32 * u16::BITS);
        counted[op << OP_AT | Status::Ok as usize] = one;
        counted[op << OP_AT | Status::Abandoned as usize] = one;
        op += 1;
    }
    counted
};

const STATUS: [Status; 4] = [Status::Ok, Status::Error, Status::ReadOnly, Status::Abandoned];

/// A word without its offset and operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stamp(u128);

impl Stamp {
    /// Of rows of several words.
    pub(crate) const NONE: Stamp = Stamp((WIDE as u128) << LENGTH_AT);

    #[inline]
    fn length_index(self) -> usize {
        (self.0 as u64 >> LENGTH_AT) as usize & 0xFF
    }

    /// The row of `request` in one word, if it fits.
    #[inline]
    pub(crate) fn word(self, request: &Request) -> Option<u128> {
        // The rotation moves the bits below a sector to the top. One comparison then refuses an
        // offset that is too large and one that is not a whole sector.
        let sectors = request.offset_bytes.rotate_right(SECTOR_BYTES.trailing_zeros());
        (self.length_index() < LONG && sectors >> OFFSET_BITS == 0)
            .then(|| self.0 | (u128::from(sectors) << OFFSET_AT) | ((request.op as u128) << OP_AT))
    }
}

/// The lengths of requests that rows of one word have an index into.
#[derive(Clone, Debug)]
pub(crate) struct Lengths {
    list: Vec<u32>,
    /// Index into `list` by the low bits of the length in sectors: a guess that is checked.
    guesses: [u8; 256],
}

impl Default for Lengths {
    fn default() -> Lengths {
        Lengths { list: Vec::with_capacity(LONG), guesses: [0; 256] }
    }
}

impl Lengths {
    pub(crate) fn of(list: Vec<u32>) -> Lengths {
        Lengths { list, ..Lengths::default() }
    }

    pub(crate) fn list(&self) -> &[u32] {
        &self.list
    }

    #[inline]
    fn index(&mut self, length_bytes: u32) -> usize {
        // Most loads have few lengths. The guess saves the search through the list, and a wrong
        // one costs no more than that search.
        let slot = (length_bytes / SECTOR_BYTES) as usize % self.guesses.len();
        let guess = usize::from(self.guesses[slot]);
        if self.list.get(guess) == Some(&length_bytes) {
            guess
        } else {
            self.search(length_bytes, slot)
        }
    }

    #[cold]
    fn search(&mut self, length_bytes: u32, slot: usize) -> usize {
        let found = self.list.iter().position(|l| *l == length_bytes);
        let index = found.unwrap_or(self.list.len());
        if index >= LONG {
            return LONG;
        }
        if found.is_none() {
            self.list.push(length_bytes);
        }
        self.guesses[slot] = index as u8;
        index
    }

    /// The part of `row` that it shares with rows that differ only in operation and place.
    #[inline]
    pub(crate) fn stamp(&mut self, row: &Row) -> Stamp {
        let length = self.index(row.request.length_bytes);
        let is_long = (row.submit_ns != row.issue_ns) | (row.errno != 0);
        // The conditions are joined as numbers: one branch decides for all of them, and it
        // nearly always goes the same way.
        if (row.issue_ns >> ISSUE_BITS) | (row.latency_ns >> LATENCY_BITS) | u64::from(is_long) != 0
        {
            return Stamp::NONE;
        }
        Stamp(word(length, row))
    }
}

/// The first word of a row of one or two, without its offset and operation.
fn word(length: usize, row: &Row) -> u128 {
    let tail = ((length as u64) << LENGTH_AT) | row.status as u64;
    let times = (u128::from(row.latency_ns) << LATENCY_AT) | (u128::from(row.issue_ns) << ISSUE_AT);
    times | u128::from(tail)
}

/// Appends a row of two words or three, for which `words` has room.
pub(crate) fn push_long(row: &Row, words: &mut Vec<u128>) {
    let Row { issue_ns, latency_ns, submit_ns, errno, request, status } = *row;
    let length = u128::from(request.length_bytes);
    let fits = (issue_ns >> ISSUE_BITS) | (latency_ns >> LATENCY_BITS) == 0;
    let long = fits.then(|| Stamp(word(0, row)).word(&request)).flatten();
    if let Some(first) = long {
        // The difference may be negative: a submission before the intended start wraps here, and
        // wraps back when the row is read.
        let delay = u128::from(submit_ns.wrapping_sub(issue_ns));
        words.push(first | ((LONG as u128) << LENGTH_AT));
        words.push(length | (u128::from(errno) << LONG_ERRNO_AT) | (delay << LONG_DELAY_AT));
        return;
    }
    let kind = ((WIDE as u64) << LENGTH_AT) | ((request.op as u64) << OP_AT) | status as u64;
    let kind = kind | (u64::from(errno) << WIDE_ERRNO_AT);
    words.push(u128::from(kind) | (length << WIDE_LENGTH_AT));
    words.push(u128::from(issue_ns) | (u128::from(latency_ns) << 64));
    words.push(u128::from(request.offset_bytes) | (u128::from(submit_ns) << 64));
}

/// How many words the row has that begins with this one.
#[inline]
fn words_of(first: u128) -> usize {
    match (first as u64 >> LENGTH_AT) as usize & 0xFF {
        LONG => 2,
        WIDE => ROW_WORDS,
        _ => 1,
    }
}

/// Words of whole rows at the start of `words`, and how many rows.
pub(crate) fn whole_rows(words: &[u128]) -> (usize, usize) {
    let (mut at, mut rows) = (0, 0);
    while let Some(first) = words.get(at) {
        let end = at + words_of(*first);
        if end > words.len() {
            break;
        }
        (at, rows) = (end, rows + 1);
    }
    (at, rows)
}

/// Rows that follow one another, of one job.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block<'a> {
    words: &'a [u128],
    rows: usize,
    /// See [`Lengths::list`].
    lengths: &'a [u32],
}

impl<'a> Block<'a> {
    pub(crate) fn new(words: &'a [u128], rows: usize, lengths: &'a [u32]) -> Block<'a> {
        Block { words, rows, lengths }
    }

    pub(crate) fn len(self) -> usize {
        self.rows
    }

    /// Whether each row is one word: it was submitted when it was meant to start, and met no error of the
    /// system.
    pub(crate) fn is_plain(self) -> bool {
        self.rows == self.words.len()
    }

    /// Intended start, latency and offset of each row, where all rows are one word.
    #[inline]
    pub(crate) fn numbers(self) -> impl Iterator<Item = (u64, u64, u64)> + 'a {
        self.words.iter().map(|word| {
            let field = |at: u32, bits: u32| (word >> at) as u64 & ((1 << bits) - 1);
            let offset_bytes = field(OFFSET_AT, OFFSET_BITS) * u64::from(SECTOR_BYTES);
            (field(ISSUE_AT, ISSUE_BITS), field(LATENCY_AT, LATENCY_BITS), offset_bytes)
        })
    }

    pub(crate) fn iter(self) -> impl Iterator<Item = Row> + 'a {
        let mut at = 0;
        std::iter::from_fn(move || {
            let (row, next) = self.row_at(at)?;
            at = next;
            Some(row)
        })
    }

    /// The row that begins at word `at`, and the beginning of the next row. Each word is prefetched well before it is
    /// used: on small pages, which lie anywhere, the processor does not detect a stream beyond the end of a page.
    #[inline]
    pub(crate) fn row_at(self, at: usize) -> Option<(Row, usize)> {
        const AHEAD: usize = 128;
        let first = *self.words.get(at)?;
        if let Some(later) = self.words.get(at + AHEAD) {
            prefetch(later);
        }
        let low = first as u64;
        let length = (low >> LENGTH_AT) as usize & 0xFF;
        let field = |at: u32, bits: u32| (first >> at) as u64 & ((1 << bits) - 1);
        let (op, status) = (Op::ALL[(low >> OP_AT) as usize & 3], STATUS[low as usize & 3]);
        if length == WIDE {
            return self.wide_at(at, op, status);
        }
        let issue_ns = field(ISSUE_AT, ISSUE_BITS);
        let offset_bytes = field(OFFSET_AT, OFFSET_BITS) * u64::from(SECTOR_BYTES);
        let mut row = Row {
            issue_ns,
            latency_ns: field(LATENCY_AT, LATENCY_BITS),
            submit_ns: issue_ns,
            errno: 0,
            request: Request { op, offset_bytes, length_bytes: 0 },
            status,
        };
        if length == LONG {
            let second = *self.words.get(at + 1)?;
            row.request.length_bytes = second as u32;
            row.errno = (second >> LONG_ERRNO_AT) as u16;
            row.submit_ns = issue_ns.wrapping_add((second >> LONG_DELAY_AT) as u64);
            return Some((row, at + 2));
        }
        // A file that was damaged or written by another program may have any index. A length of
        // zero is better than a panic while rows are recovered.
        row.request.length_bytes = self.lengths.get(length).copied().unwrap_or(0);
        Some((row, at + 1))
    }

    #[cold]
    fn wide_at(self, at: usize, op: Op, status: Status) -> Option<(Row, usize)> {
        let [first, times, last] = *self.words.get(at..at + ROW_WORDS)? else { return None };
        let length_bytes = (first >> WIDE_LENGTH_AT) as u32;
        let row = Row {
            issue_ns: times as u64,
            latency_ns: (times >> 64) as u64,
            submit_ns: (last >> 64) as u64,
            errno: (first >> WIDE_ERRNO_AT) as u16,
            request: Request { op, offset_bytes: last as u64, length_bytes },
            status,
        };
        Some((row, at + ROW_WORDS))
    }

    /// Whether all rows have the same operation, length and status; false where some have several words.
    pub(crate) fn is_uniform(self) -> bool {
        let kind = |word: &u128| *word as u64 & ((1 << OFFSET_AT) - 1);
        let Some(first) = self.words.first().map(kind) else { return false };
        self.is_plain() && self.words.iter().all(|row| kind(row) == first)
    }

    /// The first row alone, of rows of one word.
    pub(crate) fn first(self) -> Block<'a> {
        let words = &self.words[..self.words.len().min(1)];
        Block { words, rows: words.len(), ..self }
    }

    /// The block in parts of this number of rows, the last of which may be shorter.
    pub(crate) fn parts(self, rows: usize) -> impl Iterator<Item = Block<'a>> {
        let mut rest = self;
        std::iter::from_fn(move || {
            if rest.words.is_empty() {
                return None;
            }
            let (words, rows) = match rest.is_plain() {
                true => (rest.words.len().min(rows), rest.words.len().min(rows)),
                false => rest.first_rows(rows),
            };
            let part = Block { words: &rest.words[..words], rows, ..rest };
            rest = Block { words: &rest.words[words..], rows: rest.rows - rows, ..rest };
            (rows > 0).then_some(part)
        })
    }

    /// Words of the first `most` rows, and how many rows there are of them.
    fn first_rows(self, most: usize) -> (usize, usize) {
        let (mut at, mut rows) = (0, 0);
        while rows < most.min(self.rows)
            && let Some(first) = self.words.get(at)
        {
            (at, rows) = (at + words_of(*first), rows + 1);
        }
        (at.min(self.words.len()), rows)
    }

    /// Operation and latency of every row with a latency (it has no error, or never completed and counts with its
    /// wait), and the number of such rows, for each stretch of rows with one latency: the passes that statistics make.
    /// It reads nothing else, which is several times as fast as whole rows; requests reaped together often took the
    /// same time.
    #[inline]
    pub(crate) fn for_each_latency(self, mut visit: impl FnMut(Op, u64, u64)) {
        /// Rows of a stretch: as many as the counts of the operations have room for, side by side.
        const STRETCH: u32 = u16::MAX as u32;
        const AHEAD: usize = 128;
        let mut tell = |latency_ns: u64, mut counts: u64| {
            while counts != 0 {
                let op = counts.trailing_zeros() / u16::BITS;
                let at = op * u16::BITS;
                visit(Op::ALL[op as usize], latency_ns, u64::from((counts >> at) as u16));
                counts &= !(u64::from(u16::MAX) << at);
            }
        };
        let (mut latency_ns, mut counts, mut left) = (0, 0, STRETCH);
        let mut add = |word: u128, this_ns: u64| {
            if this_ns != latency_ns || left == 0 {
                tell(latency_ns, counts);
                (latency_ns, counts, left) = (this_ns, 0, STRETCH);
            }
            counts += COUNTED[word as usize & ((1 << LENGTH_AT) - 1)];
            left -= 1;
        };
        let narrow_ns = |word: u128| (word >> LATENCY_AT) as u64 & ((1 << LATENCY_BITS) - 1);
        if self.is_plain() {
            for (at, word) in self.words.iter().enumerate() {
                if let Some(later) = self.words.get(at + AHEAD) {
                    prefetch(later);
                }
                add(*word, narrow_ns(*word));
            }
        } else {
            let mut at = 0;
            while let Some(word) = self.words.get(at) {
                let words = words_of(*word);
                let wide = (words == ROW_WORDS).then(|| self.words.get(at + 1)).flatten();
                add(*word, wide.map_or(narrow_ns(*word), |times| (times >> 64) as u64));
                at += words;
            }
        }
        tell(latency_ns, counts);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Rows that fit in a word, and rows that need more for any reason.
    pub(crate) fn any_row() -> impl Strategy<Value = Row> {
        let narrow = (0u64..1 << 44, 0u64..1 << 36, 0u64..1 << 36, 0u32..400);
        let wide = (any::<u64>(), any::<u64>(), any::<u64>(), any::<u32>());
        let fields = prop_oneof![
            4 => narrow.prop_map(|(i, l, o, n)| (i, l, o * 512, n * 512)),
            1 => wide,
        ];
        let late = prop_oneof![3 => Just(0), 1 => 0u64..1 << 40, 1 => any::<u64>()];
        let errno = prop_oneof![4 => Just(0u16), 1 => any::<u16>()];
        (fields, late, errno, 0usize..4, 0usize..4).prop_map(|(fields, late, errno, op, status)| {
            let (i, l, o, n) = fields;
            let issue_ns = i % (u64::MAX / 1_000);
            Row {
                issue_ns,
                latency_ns: l,
                submit_ns: issue_ns.wrapping_add(late),
                errno,
                request: Request { op: Op::ALL[op], offset_bytes: o, length_bytes: n },
                status: STATUS[status],
            }
        })
    }

    fn push(row: &Row, lengths: &mut Lengths, words: &mut Vec<u128>) {
        match lengths.stamp(row).word(&row.request) {
            Some(word) => words.push(word),
            None => push_long(row, words),
        }
    }

    proptest! {
        #[test]
        fn every_row_comes_back(
            rows in prop::collection::vec(any_row(), 0..600),
            part in 1usize..50,
            cut in 0usize..1_000,
        ) {
            let (mut lengths, mut words) = (Lengths::default(), Vec::new());
            rows.iter().for_each(|row| push(row, &mut lengths, &mut words));
            let block = Block::new(&words, rows.len(), lengths.list());
            prop_assert_eq!(block.iter().collect::<Vec<_>>(), rows.clone());
            let parts: Vec<_> = block.parts(part).collect();
            prop_assert!(parts.iter().rev().skip(1).all(|p| p.len() == part));
            prop_assert_eq!(parts.iter().flat_map(|p| p.iter()).collect::<Vec<_>>(), rows.clone());
            // A file may end in half a row.
            let (whole, count) = whole_rows(&words[..cut.min(words.len())]);
            let cut = Block::new(&words[..whole], count, lengths.list());
            prop_assert_eq!(cut.iter().collect::<Vec<_>>(), rows[..count].to_vec());
        }

        #[test]
        fn those_with_a_latency_are_all_told(rows in prop::collection::vec(any_row(), 0..400)) {
            let (mut lengths, mut words) = (Lengths::default(), Vec::new());
            rows.iter().for_each(|row| push(row, &mut lengths, &mut words));
            let mut told = Vec::new();
            Block::new(&words, rows.len(), lengths.list()).for_each_latency(|op, latency, count| {
                told.extend(std::iter::repeat_n((op as u8, latency), count as usize));
            });
            let counts = |row: &&Row| matches!(row.status, Status::Ok | Status::Abandoned);
            let mut want: Vec<_> = rows.iter().filter(counts).map(|r| (r.request.op as u8, r.latency_ns)).collect();
            told.sort_unstable();
            want.sort_unstable();
            prop_assert_eq!(told, want);
        }
    }

    #[test]
    fn one_word_is_enough_for_what_is_usual() {
        let (mut lengths, mut words) = (Lengths::default(), Vec::new());
        let usual = Row {
            issue_ns: (1 << 44) - 1,
            latency_ns: (1 << 36) - 1,
            submit_ns: (1 << 44) - 1,
            errno: 0,
            request: Request::read(((1 << 36) - 1) * 512, 4096),
            status: Status::Ok,
        };
        push(&usual, &mut lengths, &mut words);
        assert_eq!(words.len(), 1);
        push(&Row { submit_ns: u64::MAX, ..usual }, &mut lengths, &mut words);
        assert_eq!(words.len(), 3, "a late submission takes two");
        push(&Row { errno: 5, ..usual }, &mut lengths, &mut words);
        assert_eq!(words.len(), 5);
        push(&Row { latency_ns: 1 << 36, ..usual }, &mut lengths, &mut words);
        assert_eq!(words.len(), 8);
    }
}
