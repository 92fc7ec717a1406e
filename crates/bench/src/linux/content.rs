//! The data of writes: new for each write, with the requested compressibility and repetition.
//!
//! Targets that compress or deduplicate are fast for data that is always the same, so nothing is written twice
//! unless that is asked for. The generator (xorshift64: Marsaglia, *Xorshift RNGs*, 2003, in lanes side by
//! side, which compilers turn into vector instructions) fills the request's own memory at some 10 bytes a
//! nanosecond. It is seeded: the same run writes the same data. No compressor finds what is left of its
//! structure; it is not meant for more.

use ssdyno_engine::Rng;
use ssdyno_workload::WriteData;

/// Numbers made at a time: as many as vector registers hold beside what the work takes.
// One generator needs the number before the next. Sixteen of them side by side are independent,
// and the compiler fills whole vector registers with them.
const LANES: usize = 16;
const STEP_BYTES: usize = 8 * LANES;

/// A stream of bytes that neither repeats nor compresses.
#[derive(Clone, Debug)]
struct Lanes([u64; LANES]);

impl Lanes {
    fn new(rng: &mut Rng) -> Lanes {
        // Zero would stay zero.
        Lanes(std::array::from_fn(|_| rng.below(u64::MAX) | 1))
    }

    fn fill(&mut self, bytes: &mut [u8]) {
        // The lanes are copied so that they can stay in registers during the loop. Through
        // `self` they would be stored at each step.
        let mut lanes = self.0;
        let (steps, rest) = bytes.as_chunks_mut::<STEP_BYTES>();
        for step in steps {
            advance(&mut lanes);
            for (word, lane) in step.as_chunks_mut::<8>().0.iter_mut().zip(&lanes) {
                *word = lane.to_le_bytes();
            }
        }
        if !rest.is_empty() {
            advance(&mut lanes);
            let mut last = [0; STEP_BYTES];
            for (word, lane) in last.as_chunks_mut::<8>().0.iter_mut().zip(&lanes) {
                *word = lane.to_le_bytes();
            }
            rest.copy_from_slice(&last[..rest.len()]);
        }
        self.0 = lanes;
    }
}

#[inline(always)]
fn advance(lanes: &mut [u64; LANES]) {
    for lane in lanes {
        *lane ^= *lane << 13;
        *lane ^= *lane >> 7;
        *lane ^= *lane << 17;
    }
}

/// The data of one job's writes.
#[derive(Clone, Debug)]
pub(crate) struct Content {
    lanes: Lanes,
    /// From which the last data that was fresh was made.
    last: Lanes,
    /// Decides which writes repeat it.
    draws: Rng,
    /// Share of the writes that do, 0 to 1.
    repeated: f64,
    /// Share of each chunk that is zeroes, 0 to 1.
    zeroes: f64,
    /// Bytes of a chunk; 0: the whole request.
    chunk_bytes: usize,
    refill: bool,
}

impl Content {
    /// As `buffer` says, from `seed`.
    pub(crate) fn new(buffer: &WriteData, seed: u64) -> Content {
        let lanes = Lanes::new(&mut Rng::new(seed, "content"));
        Content {
            last: lanes.clone(),
            lanes,
            draws: Rng::new(seed, "repeated content"),
            repeated: buffer.dedupe.0 / 100.0,
            zeroes: buffer.compress.0 / 100.0,
            chunk_bytes: usize::try_from(buffer.compress_chunk.0).unwrap_or(0),
            refill: buffer.refill,
        }
    }

    /// Whether each write has data of its own.
    pub(crate) fn refills(&self) -> bool {
        self.refill
    }

    /// Fills `bytes` with what the next write carries.
    pub(crate) fn fill(&mut self, bytes: &mut [u8]) {
        if self.repeated > 0.0 {
            if self.draws.unit() < self.repeated {
                let mut again = self.last.clone();
                return self.fill_from(&mut again, bytes);
            }
            // The state before the data is enough to make the same data again. Keeping the data
            // itself would cost a copy of each write.
            self.last = self.lanes.clone();
        }
        let mut lanes = self.lanes.clone();
        self.fill_from(&mut lanes, bytes);
        self.lanes = lanes;
    }

    fn fill_from(&self, lanes: &mut Lanes, bytes: &mut [u8]) {
        if self.zeroes == 0.0 {
            return lanes.fill(bytes);
        }
        let chunk_bytes = if self.chunk_bytes == 0 { bytes.len() } else { self.chunk_bytes };
        for chunk in bytes.chunks_mut(chunk_bytes.max(1)) {
            // As fio does: the random part of a chunk comes first, in whole bytes.
            let random = (chunk.len() as f64 * (1.0 - self.zeroes)) as usize;
            let (random, zeroes) = chunk.split_at_mut(random);
            lanes.fill(random);
            zeroes.fill(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::io::Write as _;

    use ssdyno_block::units::{Bytes, Percent};

    use super::*;

    const BLOCK: usize = 4096;

    fn written(buffer: &WriteData, seed: u64, blocks: usize) -> Vec<u8> {
        let mut content = Content::new(buffer, seed);
        let mut all = vec![0xFF; blocks * BLOCK];
        all.chunks_mut(BLOCK).for_each(|block| content.fill(block));
        all
    }

    /// The share of `bytes` that remains after deflate.
    fn compressed(bytes: &[u8]) -> f64 {
        let mut encoder =
            flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap().len() as f64 / bytes.len() as f64
    }

    /// Different blocks, as a share.
    fn unique(bytes: &[u8]) -> f64 {
        let blocks: HashSet<&[u8]> = bytes.chunks(BLOCK).collect();
        blocks.len() as f64 / (bytes.len() / BLOCK) as f64
    }

    #[test]
    fn data_is_fresh_incompressible_and_the_same_from_the_same_seed() {
        let usual = WriteData::default();
        let all = written(&usual, 1, 2048);
        assert_eq!(unique(&all), 1.0);
        // Not in sectors, either, nor shifted by some words.
        let sectors: HashSet<&[u8]> = all.chunks(512).collect();
        assert_eq!(sectors.len(), all.len() / 512);
        let words: HashSet<&[u8]> = all.chunks(8).collect();
        assert_eq!(words.len(), all.len() / 8);
        let left = compressed(&all);
        assert!((0.999..1.01).contains(&left), "{left}");
        let ones: u32 = all.iter().map(|byte| byte.count_ones()).sum();
        // Half of 67 million bits, within five standard deviations.
        assert!((f64::from(ones) / (8.0 * all.len() as f64) - 0.5).abs() < 5.0 * 0.000_061);
        assert_eq!(all, written(&usual, 1, 2048));
        assert_eq!(unique(&[all, written(&usual, 2, 2048)].concat()), 1.0);
    }

    /// Deflate adds some per mille for its tables, and a zero costs it a thousandth of a byte: within 1.5 % of
    /// the whole.
    #[test]
    fn data_compresses_as_far_as_asked() {
        for (percent, chunk) in
            [(0.0, 512), (25.0, 512), (50.0, 512), (50.0, 0), (80.0, 4096), (100.0, 512)]
        {
            let buffer = WriteData {
                compress: Percent(percent),
                compress_chunk: Bytes(chunk),
                ..WriteData::default()
            };
            let all = written(&buffer, 1, 1024);
            let left = 100.0 * compressed(&all);
            assert!((left - (100.0 - percent)).abs() < 1.5, "{percent} % in {chunk}: {left} %");
            if percent < 100.0 {
                assert_eq!(unique(&all), 1.0);
            }
        }
        // The random part of each chunk comes first.
        let half = WriteData { compress: Percent(50.0), ..WriteData::default() };
        for chunk in written(&half, 1, 2).chunks(512) {
            assert!(chunk[256..].iter().all(|byte| *byte == 0) && chunk[248..256] != [0; 8]);
        }
    }

    /// Of 16384 writes, each repeated with the given probability: five standard deviations.
    #[test]
    fn data_repeats_as_often_as_asked() {
        for percent in [0.0, 30.0, 75.0] {
            let buffer = WriteData { dedupe: Percent(percent), ..WriteData::default() };
            let all = written(&buffer, 1, 16_384);
            let (p, got) = (percent / 100.0, unique(&all));
            let tolerance = 5.0 * (p * (1.0 - p) / 16_384.0).sqrt() + 1e-9;
            assert!((got - (1.0 - p)).abs() <= tolerance, "{percent} %: {got}");
        }
        // Together: repeated blocks are as compressible as the others.
        let both =
            WriteData { dedupe: Percent(40.0), compress: Percent(50.0), ..WriteData::default() };
        let all = written(&both, 1, 4096);
        assert!((unique(&all) - 0.6).abs() < 5.0 * (0.24_f64 / 4096.0).sqrt());
        for block in all.chunks(BLOCK) {
            assert!(block[256..512].iter().all(|byte| *byte == 0));
        }
    }

    #[test]
    fn lengths_that_are_no_whole_steps_are_filled_to_the_end() {
        let mut content = Content::new(&WriteData::default(), 1);
        for length in [1, 7, 8, 127, 128, 129, 512, 1000] {
            let mut bytes = vec![0; length];
            // A byte is zero once in 256 times: not in eight draws.
            let filled = (0..8).any(|_| {
                content.fill(&mut bytes);
                bytes.last() != Some(&0)
            });
            assert!(filled, "{length}");
        }
    }
}
