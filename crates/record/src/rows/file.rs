//! The file that rows lie in while a run goes on, and until they are in `requests.parquet`.
//!
//! It can be read alone. All numbers are little-endian, and each part begins at a multiple of 16 bytes:
//!
//! - a head: `SSDYNO ROWS 1\n` and two zero bytes, the length of the text that follows (8 bytes), 8 zero bytes,
//!   the text, which is JSON ([`Head`]);
//! - then chunks, each of one job: `CHUNK\n` and two zero bytes, the number of the job (4), rows (4), words
//!   (4), lengths (4), the start of the recorded window in ns (8), a checksum of the words (8), 8 zero
//!   bytes; the lengths of requests (4 each); the words of the rows (16 each), as `packed` describes them.
//!
//! A program that is killed leaves whole chunks and perhaps part of one, which does not count.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};

use serde::{Deserialize, Serialize};
use ssdyno_figures::{RunResult, Warning};
use zerocopy::IntoBytes;

use super::names::RowNames;

const HEAD_MARK: [u8; 16] = *b"SSDYNO ROWS 1\n\0\0";
const CHUNK_MARK: [u8; 8] = *b"CHUNK\n\0\0";
const CHUNK_HEAD: usize = 48;

/// Most bytes of the text of a head: more is not a file of ours.
const HEAD_MOST: u64 = 1 << 26;
/// The largest number of words of a chunk: a damaged length must not cause a huge allocation.
const WORDS_MOST: u32 = 1 << 24;
const LENGTHS_MOST: u32 = 256;
/// More jobs than any run has. The checksum covers the words alone, and tables by job are as long as the largest number.
pub(super) const JOBS_MOST: u32 = 1 << 20;

/// The facts about the run in a file of rows.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Head {
    /// The known facts about the run before it begins: target, workload, seed, configuration,
    /// method, and the names of the jobs that are reported apart.
    pub run: RunResult,
    /// For each job of the rows, the index of its report in the jobs of `run`; empty where none is reported apart.
    #[serde(default)]
    pub entry_of: Vec<usize>,
    /// Warnings that matter if the run reads.
    #[serde(default)]
    pub of_reads: Vec<Warning>,
    /// The names of jobs and devices.
    pub names: RowNames,
    /// Length of the points of the series in ns, if that was chosen.
    pub interval_ns: Option<u64>,
    /// Seconds since 1970 at which the run began.
    pub began_at: u64,
}

/// Rows of a job that lie in a file, one after the other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    /// Where its words begin.
    pub(crate) at: u64,
    pub(crate) words: usize,
    pub(crate) rows: usize,
}

/// A chunk of rows on its way to a file.
#[derive(Debug)]
pub(crate) struct Chunk {
    pub(crate) job: u32,
    pub(crate) rows: usize,
    pub(crate) words: Vec<u128>,
    pub(crate) lengths: Vec<u32>,
    pub(crate) start_ns: u64,
}

/// Bytes up to the next multiple of 16.
fn padding(bytes: u64) -> usize {
    (bytes.wrapping_neg() % 16) as usize
}

fn sum(words: &[u128]) -> u64 {
    words.iter().fold(0u64, |sum, word| {
        sum.wrapping_add(*word as u64 ^ ((*word >> 64) as u64).rotate_left(1))
    })
}

/// Writes the head at the start of `file`; says where the first chunk begins.
pub(crate) fn write_head(file: &mut File, head: &Head) -> io::Result<u64> {
    let text = serde_json::to_vec(head)?;
    let mut bytes = HEAD_MARK.to_vec();
    bytes.extend((text.len() as u64).to_le_bytes());
    bytes.extend([0; 8]);
    bytes.extend(&text);
    bytes.resize(bytes.len() + padding(bytes.len() as u64), 0);
    file.write_all(&bytes)?;
    Ok(bytes.len() as u64)
}

/// Appends `chunk`, which begins at byte `at`; gives its segment.
pub(crate) fn append(file: &mut File, at: u64, chunk: &Chunk) -> io::Result<Segment> {
    let Chunk { job, rows, words, lengths, start_ns } = chunk;
    // Head and words are two writes. A program that is killed in between leaves a chunk that is
    // too short, which the length and the checksum tell.
    let mut bytes = CHUNK_MARK.to_vec();
    for number in [*job, *rows as u32, words.len() as u32, lengths.len() as u32] {
        bytes.extend(number.to_le_bytes());
    }
    bytes.extend(start_ns.to_le_bytes());
    bytes.extend(sum(words).to_le_bytes());
    bytes.extend([0; 8]);
    lengths.iter().for_each(|length| bytes.extend(length.to_le_bytes()));
    bytes.resize(bytes.len() + padding(bytes.len() as u64), 0);
    file.write_all(&bytes)?;
    if cfg!(target_endian = "little") {
        file.write_all(words.as_bytes())?;
    } else {
        words.iter().try_for_each(|word| file.write_all(&word.to_le_bytes()))?;
    }
    Ok(Segment { at: at + bytes.len() as u64, words: words.len(), rows: *rows })
}

/// Reads `words.len()` words from byte `at` on.
pub(crate) fn read_words(file: &mut File, at: u64, words: &mut [u128]) -> io::Result<()> {
    file.seek(SeekFrom::Start(at))?;
    file.read_exact(words.as_mut_bytes())?;
    if cfg!(target_endian = "big") {
        words.iter_mut().for_each(|word| *word = u128::from_le(*word));
    }
    Ok(())
}

/// Reads the head; says where the first chunk begins. `None` where this is not a file of rows.
pub(crate) fn read_head(file: &mut File) -> io::Result<Option<(Head, u64)>> {
    file.seek(SeekFrom::Start(0))?;
    let mut mark = [0; 32];
    match file.read_exact(&mut mark) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        other => other?,
    }
    let length = number(&mark[16..24]);
    if mark[..16] != HEAD_MARK || length > HEAD_MOST || length > file.metadata()?.len() {
        return Ok(None);
    }
    let mut text = vec![0; length as usize];
    file.read_exact(&mut text)?;
    let at = 32 + length;
    let head = serde_json::from_slice(&text).ok();
    Ok(head.map(|head| (head, at + padding(at) as u64)))
}

/// A little-endian number of 8 bytes or fewer.
fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, byte| (number << 8) | u64::from(*byte))
}

/// The chunk that [`read_chunk`] found, without its words: where they are, and where the next chunk begins.
pub(crate) struct Found {
    pub(crate) chunk: Chunk,
    pub(crate) segment: Segment,
    pub(crate) next: u64,
}

/// Reads the chunk at byte `at`; `None` where there is no whole one. Its words are in `words` then.
pub(crate) fn read_chunk(
    file: &mut File,
    at: u64,
    words: &mut Vec<u128>,
) -> io::Result<Option<Found>> {
    let end = file.metadata()?.len();
    if at + CHUNK_HEAD as u64 > end {
        return Ok(None);
    }
    file.seek(SeekFrom::Start(at))?;
    let mut head = [0; CHUNK_HEAD];
    file.read_exact(&mut head)?;
    let [job, rows, count, lengths] =
        [8, 12, 16, 20].map(|from: usize| number(&head[from..from + 4]) as u32);
    let (start_ns, expected) = (number(&head[24..32]), number(&head[32..40]));
    // The lengths are looked at before memory is asked for. They come from a file that may be
    // damaged.
    let is_sound = head[..8] == CHUNK_MARK
        && job < JOBS_MOST
        && count <= WORDS_MOST
        && lengths <= LENGTHS_MOST;
    let lengths_end = at + CHUNK_HEAD as u64 + 4 * u64::from(lengths);
    let words_at = lengths_end + padding(lengths_end) as u64;
    let next = words_at + 16 * u64::from(count);
    if !is_sound || next > end {
        return Ok(None);
    }
    let mut list = vec![0; 4 * lengths as usize];
    file.read_exact(&mut list)?;
    words.resize(count as usize, 0);
    read_words(file, words_at, words)?;
    // Space of a file may be there before its contents are (after a power failure). The mark
    // alone does not tell that; a checksum does.
    if sum(words) != expected || super::packed::whole_rows(words) != (words.len(), rows as usize) {
        return Ok(None);
    }
    let lengths = list.chunks_exact(4).map(|bytes| number(bytes) as u32).collect();
    let chunk = Chunk { job, rows: rows as usize, words: Vec::new(), lengths, start_ns };
    let segment = Segment { at: words_at, words: count as usize, rows: rows as usize };
    Ok(Some(Found { chunk, segment, next }))
}
