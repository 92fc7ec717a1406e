//! Blocks by wear: which free block is written next, and which closed one lags behind.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// The free blocks of a plane.
#[derive(Clone, Debug)]
pub(crate) enum Free {
    /// The one free longest is next.
    InTurn(VecDeque<u32>),
    /// The least worn is next, of equals the one free longest: erases, turn, block. A free block
    /// is not erased, so its place is fixed.
    LeastWorn {
        /// The blocks, the next on top.
        heap: BinaryHeap<Reverse<(u32, u64, u32)>>,
        /// Counts the blocks that ever were free.
        turn: u64,
    },
}

impl Free {
    /// No free blocks.
    pub(crate) fn new(least_worn: bool) -> Free {
        if least_worn {
            Free::LeastWorn { heap: BinaryHeap::new(), turn: 0 }
        } else {
            Free::InTurn(VecDeque::new())
        }
    }

    /// How many there are.
    #[inline]
    pub(crate) fn len(&self) -> u32 {
        match self {
            Free::InTurn(queue) => queue.len() as u32,
            Free::LeastWorn { heap, .. } => heap.len() as u32,
        }
    }

    /// The next.
    pub(crate) fn peek(&self) -> Option<u32> {
        match self {
            Free::InTurn(queue) => queue.front().copied(),
            Free::LeastWorn { heap, .. } => heap.peek().map(|Reverse((.., block))| *block),
        }
    }

    /// Takes the next.
    pub(crate) fn pop(&mut self) -> Option<u32> {
        match self {
            Free::InTurn(queue) => queue.pop_front(),
            Free::LeastWorn { heap, .. } => heap.pop().map(|Reverse((.., block))| block),
        }
    }

    /// `block`, erased `erases` times, is free from now on.
    pub(crate) fn push(&mut self, block: u32, erases: u32) {
        match self {
            Free::InTurn(queue) => queue.push_back(block),
            Free::LeastWorn { heap, turn } => {
                *turn += 1;
                heap.push(Reverse((erases, *turn, block)));
            }
        }
    }

    /// All, the one free longest first.
    pub(crate) fn list(&self) -> Vec<u32> {
        match self {
            Free::InTurn(queue) => queue.iter().copied().collect(),
            Free::LeastWorn { heap, .. } => {
                let mut all: Vec<(u64, u32)> =
                    heap.iter().map(|Reverse((_, turn, block))| (*turn, *block)).collect();
                all.sort_unstable();
                all.into_iter().map(|(_, block)| block).collect()
            }
        }
    }
}

/// The closed blocks of a plane by wear, and the most worn block of all.
#[derive(Clone, Debug, Default)]
pub(crate) struct Laggards {
    /// Erases and block, the least worn on top, of equals the first. A closed block is not erased;
    /// entries of blocks that were cleaned since are stale and go when they come to the top, or all
    /// together.
    heap: BinaryHeap<Reverse<(u32, u32)>>,
}

impl Laggards {
    /// `block`, erased `erases` times, was closed; `is_live` returns whether an entry is still
    /// valid.
    pub(crate) fn push(
        &mut self,
        block: u32,
        erases: u32,
        blocks_per_plane: u32,
        is_live: impl Fn(u32, u32) -> bool,
    ) {
        // Without a limit a plane that is written for hours would keep an entry for every
        // closing. At most half of the entries can be live, so each clean-up removes at least
        // half.
        if self.heap.len() > 2 * blocks_per_plane as usize + 64 {
            self.heap.retain(|Reverse((erases, block))| is_live(*erases, *block));
        }
        self.heap.push(Reverse((erases, block)));
    }

    /// The least worn closed block.
    pub(crate) fn peek(&mut self, is_live: impl Fn(u32, u32) -> bool) -> Option<u32> {
        loop {
            let Reverse((erases, block)) = *self.heap.peek()?;
            // Only the top is checked. A stale entry below the top does no harm, and removing it
            // would need a search.
            if is_live(erases, block) {
                return Some(block);
            }
            self.heap.pop();
        }
    }

    /// Forgets all.
    pub(crate) fn clear(&mut self) {
        self.heap.clear();
    }
}
