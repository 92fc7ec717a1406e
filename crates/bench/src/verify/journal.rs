//! What must be there after a crash.
//!
//! An append-only file beside the results, on another device than the target. Before a block is
//! written its generation is noted; after each successful flush of the target a mark is noted, and
//! the journal itself made durable. All that stood before the last mark must be on the target;
//! what came after may or may not be. A torn tail of the journal is expected and ignored.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

/// First bytes: format and version.
const MAGIC: [u8; 8] = *b"SSDYNOJ1";
/// Bytes of a record: sum, kind, block, generation.
const RECORD_BYTES: usize = 24;
const INTENT: u32 = 1;
const MARK: u32 = 2;

/// What a journal is about; it begins with this.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Header {
    /// Seed of the run.
    pub(super) seed: u64,
    /// Bytes of a block.
    pub(super) block_bytes: u64,
    /// Blocks that are verified.
    pub(super) blocks: u64,
    /// Size of the target, to recognise it.
    pub(super) capacity_bytes: u64,
}

/// What a journal says of one block.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Expected {
    /// Generation that a flush has made durable; 0 if none.
    pub(super) durable: u64,
    /// Last generation that was to be written; 0 if none.
    pub(super) intended: u64,
}

/// Everything that a journal says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Contents {
    pub(super) header: Header,
    /// By block.
    pub(super) expected: Vec<Expected>,
    /// Greatest generation.
    pub(super) last_generation: u64,
}

/// A journal that is being written.
#[derive(Debug)]
pub(super) struct Journal {
    out: BufWriter<File>,
    path: PathBuf,
}

/// A journal that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The file cannot be read or written.
    #[error("journal {}: {source}", .path.display())]
    File {
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
        /// What is wrong.
        problem: &'static str,
    },
}

impl Journal {
    /// Begins a new journal; an existing file is not touched.
    pub(super) fn create(path: &Path, header: &Header) -> Result<Journal, JournalError> {
        let failed = |source| JournalError::File { path: path.to_owned(), source };
        let file = File::options().write(true).create_new(true).open(path).map_err(failed)?;
        let mut journal = Journal { out: BufWriter::new(file), path: path.to_owned() };
        let mut bytes = MAGIC.to_vec();
        for word in [header.seed, header.block_bytes, header.blocks, header.capacity_bytes] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend(crc32c::crc32c(&bytes).to_le_bytes());
        journal.out.write_all(&bytes).map_err(failed)?;
        journal.sync()?;
        Ok(journal)
    }

    /// `block` is about to be written with `generation`.
    pub(super) fn intend(&mut self, block: u64, generation: u64) -> Result<(), JournalError> {
        self.record(INTENT, block, generation)
    }

    /// All writes up to `generation` that were answered are durable. On return this is, too.
    pub(super) fn mark(&mut self, generation: u64) -> Result<(), JournalError> {
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
        let done = self.out.flush().and_then(|()| self.out.get_ref().sync_data());
        done.map_err(|source| self.failed(source))
    }

    fn failed(&self, source: io::Error) -> JournalError {
        JournalError::File { path: self.path.clone(), source }
    }
}

/// Reads the journal at `path`; what follows a torn record is left out.
pub(super) fn read(path: &Path) -> Result<Contents, JournalError> {
    let failed = |source| JournalError::File { path: path.to_owned(), source };
    let wrong = |problem| JournalError::Format { path: path.to_owned(), problem };
    let mut input = BufReader::new(File::open(path).map_err(failed)?);
    let mut bytes = [0; 8 + 4 * 8 + 4];
    match input.read_exact(&mut bytes) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            return Err(wrong("it is too short"));
        }
        other => other.map_err(failed)?,
    }
    if bytes[..8] != MAGIC {
        return Err(wrong("it begins otherwise"));
    }
    if crc32c::crc32c(&bytes[..40])
        != u32::from_le_bytes([bytes[40], bytes[41], bytes[42], bytes[43]])
    {
        return Err(wrong("its header is damaged"));
    }
    let word = |at: usize| word(&bytes, at);
    let header =
        Header { seed: word(8), block_bytes: word(16), blocks: word(24), capacity_bytes: word(32) };
    let fits = header.blocks.checked_mul(header.block_bytes);
    if header.block_bytes == 0 || fits.is_none_or(|bytes| bytes > header.capacity_bytes) {
        return Err(wrong("its header contradicts itself"));
    }
    let blocks = usize::try_from(header.blocks).map_err(|_| wrong("it is for a larger machine"))?;
    let mut contents =
        Contents { header, expected: vec![Expected::default(); blocks], last_generation: 0 };
    contents.replay(&mut input).map_err(failed)?;
    Ok(contents)
}

fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap_or_default())
}

impl Contents {
    fn replay(&mut self, input: &mut impl Read) -> io::Result<()> {
        let mut record = [0; RECORD_BYTES];
        // Intents since the last mark: a mark makes them durable, together.
        let mut open: Vec<u64> = Vec::new();
        loop {
            match input.read_exact(&mut record) {
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
                other => other?,
            }
            let sum = u32::from_le_bytes([record[0], record[1], record[2], record[3]]);
            let kind = u32::from_le_bytes([record[4], record[5], record[6], record[7]]);
            let (block, generation) = (word(&record, 8), word(&record, 16));
            let known = matches!(kind, INTENT | MARK) && block < self.header.blocks.max(1);
            if sum != crc32c::crc32c(&record[4..]) || !known {
                return Ok(());
            }
            self.last_generation = self.last_generation.max(generation);
            if kind == MARK {
                for block in open.drain(..) {
                    let expected = &mut self.expected[block as usize];
                    expected.durable = expected.intended;
                }
            } else {
                open.push(block);
                self.expected[block as usize].intended = generation;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HEADER: Header =
        Header { seed: 7, block_bytes: 4096, blocks: 10, capacity_bytes: 1 << 20 };

    fn written(steps: &[Option<u64>]) -> Vec<u8> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal");
        let mut journal = Journal::create(&path, &HEADER).unwrap();
        for (step, generation) in steps.iter().zip(1..) {
            match step {
                Some(block) => journal.intend(*block, generation).unwrap(),
                None => journal.mark(generation - 1).unwrap(),
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
        assert_eq!(contents.header, HEADER);
        assert_eq!(contents.expected[3], Expected { durable: 1, intended: 4 });
        assert_eq!(contents.expected[4], Expected { durable: 2, intended: 2 });
        assert_eq!(contents.expected[5], Expected::default());
        assert_eq!(contents.last_generation, 4);
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
        for (bytes, why) in [(&b"x"[..], "too short"), (&[b'x'; 100][..], "begins otherwise")] {
            let message = parsed(bytes).unwrap_err().to_string();
            assert!(message.contains(why), "{message}");
        }
        let mut damaged = written(&[]);
        damaged[9] ^= 1;
        assert!(parsed(&damaged).unwrap_err().to_string().contains("header is damaged"));
    }
}
