//! Which blocks of a range have been asked for: fio's random map, of which each block is taken once
//! before any is taken again.

/// Bits of a word.
const WORD: u64 = 64;

/// A set of block numbers that finds the next missing number in a few steps: a word of the level
/// above marks the full words below.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Map {
    blocks: u64,
    left: u64,
    /// The blocks themselves first, one word at the end.
    levels: Vec<Vec<u64>>,
}

impl Map {
    /// A map of `blocks` blocks (1 or more), all of them free.
    pub(super) fn new(blocks: u64) -> Map {
        let mut map = Map { blocks, left: blocks, levels: Vec::new() };
        let mut bits = blocks;
        loop {
            // Levels of 64-way words make a search take log64(n) steps: 5 for 1 TiB of 4 KiB
            // blocks. A scan of a flat bitmap would take millions of steps at the end of a pass.
            let words = bits.div_ceil(WORD);
            map.levels.push(vec![0; words as usize]);
            if words == 1 {
                break;
            }
            bits = words;
        }
        map.clear();
        map
    }

    /// Frees every block.
    pub(super) fn clear(&mut self) {
        self.left = self.blocks;
        let mut bits = self.blocks;
        for level in &mut self.levels {
            level.fill(0);
            // Blocks beyond the end are never free.
            if !bits.is_multiple_of(WORD)
                && let Some(last) = level.last_mut()
            {
                *last = u64::MAX << (bits % WORD);
            }
            bits = level.len() as u64;
        }
    }

    /// Blocks that are free.
    #[cfg(test)]
    pub(super) fn left(&self) -> u64 {
        self.left
    }

    fn is_taken(&self, block: u64) -> bool {
        self.levels[0][(block / WORD) as usize] >> (block % WORD) & 1 == 1
    }

    /// The first free block from `block` on, and from the start where none is behind it.
    pub(super) fn free_from(&self, block: u64) -> Option<u64> {
        if self.left == 0 {
            return None;
        }
        if block < self.blocks && !self.is_taken(block) {
            return Some(block);
        }
        // fio also takes the next free block from the drawn one on and wraps around. Drawing again
        // until a free one is hit would need n draws for the last block of n.
        self.first_free(block).or_else(|| self.first_free(0))
    }

    fn first_free(&self, from: u64) -> Option<u64> {
        let mut at = from;
        // Upwards until a word has something free at `at` or behind it, then down to the block.
        for (height, level) in self.levels.iter().enumerate() {
            let word = (at / WORD) as usize;
            let behind = *level.get(word)? | ((1 << (at % WORD)) - 1);
            if behind != u64::MAX {
                let first = word as u64 * WORD + u64::from(behind.trailing_ones());
                return Some(self.levels[..height].iter().rev().fold(first, |index, below| {
                    index * WORD + u64::from(below[index as usize].trailing_ones())
                }));
            }
            at = word as u64 + 1;
        }
        None
    }

    /// Takes up to `count` blocks from `first` on, which is free, until one is taken or the end is
    /// reached. Says how many.
    pub(super) fn take(&mut self, first: u64, count: u64) -> u64 {
        let end = first.saturating_add(count).min(self.blocks);
        let mut at = first;
        while at < end && !self.is_taken(at) {
            self.mark(at);
            at += 1;
        }
        self.left -= at - first;
        at - first
    }

    fn mark(&mut self, block: u64) {
        let mut at = block;
        for level in &mut self.levels {
            let word = &mut level[(at / WORD) as usize];
            *word |= 1 << (at % WORD);
            // The level above only marks full words, so a word with a free block ends the loop.
            // Almost all calls therefore touch one word.
            if *word != u64::MAX {
                return;
            }
            at /= WORD;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Against a set that is searched from one end to the other.
        #[test]
        fn it_is_a_set(
            blocks in 1u64..9_000,
            steps in prop::collection::vec((any::<u64>(), 1u64..200), 1..300),
        ) {
            let mut map = Map::new(blocks);
            let mut free: BTreeSet<u64> = (0..blocks).collect();
            for (draw, count) in steps {
                let at = draw % blocks;
                let expected = free.range(at..).next().or_else(|| free.first()).copied();
                prop_assert_eq!(map.free_from(at), expected);
                let Some(first) = expected else {
                    map.clear();
                    free = (0..blocks).collect();
                    continue;
                };
                let run = (first..first + count).take_while(|block| free.remove(block)).count();
                prop_assert_eq!(map.take(first, count), run as u64);
                prop_assert_eq!(map.left(), free.len() as u64);
            }
        }
    }

    #[test]
    fn every_block_is_found_once() {
        for blocks in [1, 63, 64, 65, 4096, 4097, 300_000] {
            let mut map = Map::new(blocks);
            let mut seen = 0;
            while let Some(block) = map.free_from(blocks / 2) {
                assert_eq!(map.take(block, 1), 1);
                seen += 1;
            }
            assert_eq!(seen, blocks);
            map.clear();
            assert_eq!(map.free_from(blocks - 1), Some(blocks - 1));
        }
    }
}
