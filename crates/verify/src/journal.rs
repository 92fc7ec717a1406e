//! What must be there after a crash.
//!
//! An append-only file beside the results, on another device than the target. Before a block is
//! written its generation is noted; after each successful flush of the target a mark is noted, and
//! the journal itself made durable. All that stood before the last mark must be on the target;
//! what came after may or may not be. A torn tail of the journal is expected and left out, and told; damage
//! further up is refused, because what it promised would not be checked.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

/// First bytes: format and version.
const MAGIC: [u8; 8] = *b"SSDYNOJ2";
/// Journals of the version that did not record its run and its device.
const OLD_MAGIC: [u8; 8] = *b"SSDYNOJ1";
/// Bytes of a serial number; what is longer is cut.
const SERIAL_BYTES: usize = 64;
/// Bytes before the records: format, four numbers, serial number, sum.
const HEADER_BYTES: usize = 8 + 4 * 8 + SERIAL_BYTES + 4;
/// Bytes of a record: sum, kind, block, generation.
const RECORD_BYTES: usize = 24;
const INTENT: u32 = 1;
const MARK: u32 = 2;

/// What a journal is about; it begins with this.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Header {
    /// Number of the run.
    pub(crate) run: u64,
    /// Bytes of a block.
    pub(crate) block_bytes: u64,
    /// Blocks that are verified.
    pub(crate) blocks: u64,
    /// Size of the target, to recognise it.
    pub(crate) capacity_bytes: u64,
    /// Its serial number; empty where it has none.
    pub(crate) serial: String,
}

impl Header {
    fn bytes(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        for word in [self.run, self.block_bytes, self.blocks, self.capacity_bytes] {
            bytes.extend(word.to_le_bytes());
        }
        let mut serial = self.serial.clone().into_bytes();
        serial.resize(SERIAL_BYTES, 0);
        bytes.extend(serial);
        bytes.extend(crc32c::crc32c(&bytes).to_le_bytes());
        bytes
    }

    /// The reason why `bytes` are not a header.
    fn read(bytes: &[u8; HEADER_BYTES]) -> Result<Header, &'static str> {
        if bytes[..8] == OLD_MAGIC {
            return Err(
                "an older version wrote it, and its blocks cannot be distinguished from those of another run",
            );
        }
        if bytes[..8] != MAGIC {
            return Err("it has no journal header");
        }
        let (told, sum) = bytes.split_at(HEADER_BYTES - 4);
        if crc32c::crc32c(told).to_le_bytes() != sum {
            return Err("its header is damaged");
        }
        let serial = told[HEADER_BYTES - 4 - SERIAL_BYTES..].split(|byte| *byte == 0).next();
        let header = Header {
            run: word(bytes, 8),
            block_bytes: word(bytes, 16),
            blocks: word(bytes, 24),
            capacity_bytes: word(bytes, 32),
            serial: String::from_utf8_lossy(serial.unwrap_or_default()).into_owned(),
        };
        let fits = header.blocks.checked_mul(header.block_bytes);
        if header.block_bytes == 0 || fits.is_none_or(|bytes| bytes > header.capacity_bytes) {
            return Err("its header contradicts itself");
        }
        Ok(header)
    }
}

/// The journal's entry on one block.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Expected {
    /// Generation that a flush has made durable; 0 if none.
    pub(crate) durable: u64,
    /// Last generation that was to be written; 0 if none.
    pub(crate) intended: u64,
}

/// Everything that a journal says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Contents {
    pub(crate) header: Header,
    /// By block.
    pub(crate) expected: Vec<Expected>,
    /// Greatest generation.
    pub(crate) last_generation: u64,
    /// Writes that were noted.
    pub(crate) writes: u64,
    /// Flushes that were noted.
    pub(crate) marks: u64,
    /// Bytes of the torn tail.
    pub(crate) unused_bytes: u64,
    /// A mark speaks of more or fewer writes than stand before it.
    is_holed: bool,
}

/// A journal that is being written.
#[derive(Debug)]
pub(crate) struct Journal {
    out: BufWriter<File>,
    path: PathBuf,
}

/// A journal that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The system refused. A new journal cannot be made: nothing was written to the target. That of a run under way
    /// cannot be written, or that of an earlier run cannot be read.
    #[error("cannot {what} the journal {}: {source}", .path.display())]
    System {
        /// `make`, `write`, `read`.
        what: &'static str,
        /// Where.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It is no journal of ours, or the beginning of one.
    #[error("{} is not a journal of `ssdyno verify`: {problem}", .path.display())]
    Format {
        /// Where.
        path: PathBuf,
        /// The problem.
        problem: &'static str,
    },
    /// It has a hole: no crash does that.
    #[error("{} is damaged at byte {at_byte}: complete records follow, so an interrupted write did not cause this", .path.display())]
    Damaged {
        /// Where.
        path: PathBuf,
        /// First byte of the record that is not whole.
        at_byte: u64,
    },
}

impl JournalError {
    /// What to do about the error: one sentence without a full stop.
    pub fn help(&self) -> &'static str {
        match self {
            JournalError::System { what: "make" | "write", source, .. } if is_full(source) => {
                "free some space on the file system of the journal"
            }
            JournalError::System { what: "make", source, .. } => match source.kind() {
                ErrorKind::AlreadyExists => {
                    "name a new file: an existing journal is not overwritten"
                }
                ErrorKind::NotFound => "make the directory of the journal first",
                _ => "name a new file in a directory that you may write to",
            },
            JournalError::System { what: "write", .. } => {
                "look at the kernel's log (`dmesg`), or name a journal on another device"
            }
            JournalError::System { .. } | JournalError::Format { .. } => {
                "name the journal that the run wrote"
            }
            JournalError::Damaged { .. } => {
                "use a complete copy of the journal; without one the expected contents are not known"
            }
        }
    }
}

/// Whether a write failed because no more bytes fit.
fn is_full(source: &io::Error) -> bool {
    matches!(
        source.kind(),
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge
    )
}

impl Journal {
    /// Begins a new journal; an existing file is not touched.
    pub(crate) fn create(path: &Path, header: &Header) -> Result<Journal, JournalError> {
        let failed = |source| JournalError::System { what: "make", path: path.to_owned(), source };
        let file = File::options().write(true).create_new(true).open(path).map_err(failed)?;
        let mut journal = Journal { out: BufWriter::new(file), path: path.to_owned() };
        let begun = journal.out.write_all(&header.bytes()).and_then(|()| journal.save());
        begun.map_err(|source| {
            // A file that is not a journal would be in the way of the next attempt.
            let _ = std::fs::remove_file(path);
            failed(source)
        })?;
        Ok(journal)
    }

    /// A journal without a header.
    #[cfg(test)]
    pub(crate) fn on(file: File) -> Journal {
        Journal { out: BufWriter::new(file), path: PathBuf::from("journal") }
    }

    /// `block` is about to be written with `generation`.
    pub(crate) fn intend(&mut self, block: u64, generation: u64) -> Result<(), JournalError> {
        self.record(INTENT, block, generation)
    }

    /// All writes up to `generation` that completed are durable. On return this is, too.
    pub(crate) fn mark(&mut self, generation: u64) -> Result<(), JournalError> {
        self.record(MARK, 0, generation)?;
        self.sync()
    }

    fn record(&mut self, kind: u32, block: u64, generation: u64) -> Result<(), JournalError> {
        let mut bytes = [0; RECORD_BYTES];
        bytes[4..8].copy_from_slice(&kind.to_le_bytes());
        bytes[8..16].copy_from_slice(&block.to_le_bytes());
        bytes[16..].copy_from_slice(&generation.to_le_bytes());
        let sum = crc32c::crc32c(&bytes[4..]);
        bytes[..4].copy_from_slice(&sum.to_le_bytes());
        self.out.write_all(&bytes).map_err(|source| self.failed(source))
    }

    fn sync(&mut self) -> Result<(), JournalError> {
        self.save().map_err(|source| self.failed(source))
    }

    fn save(&mut self) -> io::Result<()> {
        self.out.flush().and_then(|()| self.out.get_ref().sync_data())
    }

    fn failed(&self, source: io::Error) -> JournalError {
        JournalError::System { what: "write", path: self.path.clone(), source }
    }
}

/// Reads the journal at `path`; a torn tail is left out.
pub(crate) fn read(path: &Path) -> Result<Contents, JournalError> {
    let failed = |source| JournalError::System { what: "read", path: path.to_owned(), source };
    let wrong = |problem| JournalError::Format { path: path.to_owned(), problem };
    let mut input = BufReader::new(File::open(path).map_err(failed)?);
    let mut bytes = [0; HEADER_BYTES];
    match input.read_exact(&mut bytes) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            return Err(wrong("it is too short"));
        }
        other => other.map_err(failed)?,
    }
    let header = Header::read(&bytes).map_err(wrong)?;
    let blocks = usize::try_from(header.blocks)
        .map_err(|_| wrong("it needs a machine with a larger address space"))?;
    let mut contents = Contents {
        header,
        expected: vec![Expected::default(); blocks],
        last_generation: 0,
        writes: 0,
        marks: 0,
        unused_bytes: 0,
        is_holed: false,
    };
    let mut tail = contents.replay(&mut input).map_err(failed)?;
    input.read_to_end(&mut tail).map_err(failed)?;
    contents.unused_bytes = tail.len() as u64;
    if contents.is_holed || contents.goes_on(&tail) {
        let records = contents.writes + contents.marks;
        let at_byte = (HEADER_BYTES as u64) + records * RECORD_BYTES as u64;
        return Err(JournalError::Damaged { path: path.to_owned(), at_byte });
    }
    Ok(contents)
}

fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap_or_default())
}

/// What a record says.
#[derive(Clone, Copy)]
enum Record {
    Intent { block: u64, generation: u64 },
    Mark { generation: u64 },
}

impl Record {
    /// `None` where it is not whole.
    fn read(bytes: &[u8], blocks: u64) -> Option<Record> {
        let sum = u32::from_le_bytes(bytes.get(..4)?.try_into().ok()?);
        if bytes.len() != RECORD_BYTES || sum != crc32c::crc32c(&bytes[4..]) {
            return None;
        }
        let kind = u32::from_le_bytes(bytes[4..8].try_into().ok()?);
        let (block, generation) = (word(bytes, 8), word(bytes, 16));
        match kind {
            INTENT if block < blocks => Some(Record::Intent { block, generation }),
            MARK => Some(Record::Mark { generation }),
            _ => None,
        }
    }
}

impl Contents {
    /// Blocks that must be there.
    pub(crate) fn promised(&self) -> u64 {
        self.expected.iter().filter(|expected| expected.durable > 0).count() as u64
    }

    /// Takes records up to the first that is not whole, whose bytes it gives back.
    fn replay(&mut self, input: &mut impl Read) -> io::Result<Vec<u8>> {
        // Intents since the last mark: a mark makes them durable, together.
        let mut open: Vec<u64> = Vec::new();
        let mut marked = 0;
        loop {
            let mut bytes = Vec::with_capacity(RECORD_BYTES);
            input.by_ref().take(RECORD_BYTES as u64).read_to_end(&mut bytes)?;
            match Record::read(&bytes, self.header.blocks) {
                None => return Ok(bytes),
                Some(Record::Mark { generation }) => {
                    // Every generation is noted once before the mark that speaks for it.
                    if generation.checked_sub(marked) != Some(open.len() as u64) {
                        self.is_holed = true;
                        return Ok(bytes);
                    }
                    marked = generation;
                    self.marks += 1;
                    self.last_generation = self.last_generation.max(generation);
                    for block in open.drain(..) {
                        let expected = &mut self.expected[block as usize];
                        expected.durable = expected.intended;
                    }
                }
                Some(Record::Intent { block, generation }) => {
                    self.writes += 1;
                    self.last_generation = self.last_generation.max(generation);
                    open.push(block);
                    self.expected[block as usize].intended = generation;
                }
            }
        }
    }

    /// Whether `tail` has, anywhere, a mark with a record behind it. A record is written only after the mark
    /// before it is durable with all before that: then the hole was made later, by no crash.
    fn goes_on(&self, tail: &[u8]) -> bool {
        let read = |at: usize| Record::read(tail.get(at..at + RECORD_BYTES)?, self.header.blocks);
        (0..tail.len().saturating_sub(RECORD_BYTES)).any(|at| {
            // The sum is reckoned where a mark may be.
            tail[at + 4..at + 8] == MARK.to_le_bytes()
                && matches!(read(at), Some(Record::Mark { .. }))
                && read(at + RECORD_BYTES).is_some()
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn header() -> Header {
        let serial = "S3RIAL".to_owned();
        Header { run: 7, block_bytes: 4096, blocks: 10, capacity_bytes: 1 << 20, serial }
    }

    fn written(steps: &[Option<u64>]) -> Vec<u8> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal");
        let mut journal = Journal::create(&path, &header()).unwrap();
        let mut generation = 0;
        for step in steps {
            match step {
                Some(block) => {
                    generation += 1;
                    journal.intend(*block, generation).unwrap();
                }
                None => journal.mark(generation).unwrap(),
            }
        }
        journal.sync().unwrap();
        std::fs::read(path).unwrap()
    }

    fn parsed(bytes: &[u8]) -> Result<Contents, JournalError> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        read(file.path())
    }

    #[test]
    fn a_mark_makes_what_came_before_durable() {
        let bytes = written(&[Some(3), Some(4), None, Some(3)]);
        let contents = parsed(&bytes).unwrap();
        assert_eq!(contents.header, header());
        assert_eq!((contents.writes, contents.marks, contents.unused_bytes), (3, 1, 0));
        assert_eq!(contents.expected[3], Expected { durable: 1, intended: 3 });
        assert_eq!(contents.expected[4], Expected { durable: 2, intended: 2 });
        assert_eq!(contents.expected[5], Expected::default());
        assert_eq!(contents.last_generation, 3);
    }

    proptest! {
        /// However much of the tail is lost, what is left promises no more than it should.
        #[test]
        fn a_torn_tail_promises_less_never_more(
            steps in prop::collection::vec(prop::option::weighted(0.9, 0u64..10), 0..12),
            cut in 0usize..400,
            flip in prop::option::of(0usize..400),
        ) {
            let whole = written(&steps);
            let mut torn = whole[..cut.min(whole.len())].to_vec();
            if let Some(byte) = flip.and_then(|at| torn.get_mut(at)) {
                *byte ^= 0x10;
            }
            let all = parsed(&whole).unwrap();
            if let Ok(some) = parsed(&torn) {
                for (some, all) in some.expected.iter().zip(&all.expected) {
                    prop_assert!(some.durable <= all.durable && some.intended <= all.intended);
                }
            }
        }
    }

    #[test]
    fn other_files_are_refused_by_name() {
        for (bytes, why) in [(&b"x"[..], "too short"), (&[b'x'; 200][..], "has no journal header")]
        {
            let message = parsed(bytes).unwrap_err().to_string();
            assert!(message.contains(why), "{message}");
        }
        let mut damaged = written(&[]);
        damaged[9] ^= 1;
        assert!(parsed(&damaged).unwrap_err().to_string().contains("header is damaged"));
        let old = [&OLD_MAGIC[..], &[0; 200]].concat();
        assert!(parsed(&old).unwrap_err().to_string().contains("older version"));
    }

    #[test]
    fn a_hole_is_refused_and_a_torn_end_is_told() {
        let whole = written(&[Some(1), None, Some(2), Some(3), None, Some(4), None]);
        let record = |number: usize| HEADER_BYTES + number * RECORD_BYTES;
        let flipped = |number: usize| {
            let mut bytes = whole.clone();
            bytes[record(number) + 9] ^= 1;
            parsed(&bytes)
        };
        // A mark follows, and a record that only a durable mark lets be written.
        for hole in 0..4 {
            match flipped(hole) {
                Err(JournalError::Damaged { at_byte, .. }) => {
                    assert_eq!(at_byte, record(hole) as u64, "{hole}");
                }
                other => panic!("{hole}: {other:?}"),
            }
        }
        // Cut out, with what is left at other places, or whole records.
        for cut in [1, 7, RECORD_BYTES - 1, RECORD_BYTES] {
            let bytes = [&whole[..record(2)], &whole[record(2) + cut..]].concat();
            assert!(matches!(parsed(&bytes), Err(JournalError::Damaged { .. })), "{cut}");
        }
        let twice = [&whole[..record(3)], &whole[record(2)..]].concat();
        assert!(matches!(parsed(&twice), Err(JournalError::Damaged { .. })));
        // Nothing proves that the last mark was ever durable.
        for torn in 5..7 {
            let contents = flipped(torn).unwrap();
            assert_eq!(contents.unused_bytes, (whole.len() - record(torn)) as u64);
            assert_eq!(contents.marks, 2);
        }
        let cut = parsed(&whole[..record(2) + 5]).unwrap();
        assert_eq!((cut.writes, cut.marks, cut.promised(), cut.unused_bytes), (1, 1, 1, 5));
    }
}
