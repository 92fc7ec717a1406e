//! Valid pages of every block, and which block of a plane has the fewest.

use ssdyno_engine::{HugePageTable, prefetch};

/// Set in a rank while the block is not closed: free, open or bad blocks are no victims.
// The top bit makes each block that is not closed larger than every closed one, so a search for
// the least rank needs no test of the state. `flash.pages_per_block` is at most 2^14, so counts
// of valid pages never reach the bit.
const NOT_CLOSED: u16 = 1 << 15;

/// Blocks whose least rank is kept together: a search looks at n / 64 + 64 ranks, not at n.
// A group of 64 ranks of two bytes takes 128 bytes. That is two or three lines of the
// processor's cache, and a search of a group costs little more than one access.
const GROUP: u32 = 64;

/// The least of `ranks`. Compiled to vector instructions, which the search by key is not.
fn least(ranks: &[u16]) -> u16 {
    ranks.iter().copied().min().unwrap_or(NOT_CLOSED)
}

/// Ranks compared at once; the same holds.
const PIECE: usize = 32;

/// Where `rank` stands first.
fn first(ranks: &[u16], rank: u16) -> Option<usize> {
    let piece = ranks.chunks(PIECE).position(|piece| piece.contains(&rank))?;
    let at = ranks[piece * PIECE..].iter().position(|other| *other == rank)?;
    Some(piece * PIECE + at)
}

/// Where `rank` stands last.
fn last(ranks: &[u16], rank: u16) -> Option<usize> {
    let piece = ranks.chunks(PIECE).rposition(|piece| piece.contains(&rank))?;
    let upto = ranks.len().min((piece + 1) * PIECE);
    ranks[..upto].iter().rposition(|other| *other == rank)
}

/// The number of valid pages of each block, and whether it is closed.
#[derive(Clone, Debug)]
pub(crate) struct Ranks {
    blocks_per_plane: u32,
    groups_per_plane: u32,
    /// Valid pages, and [`NOT_CLOSED`].
    ranks: HugePageTable<u16>,
    /// Least rank of each group of each plane.
    group_least: Vec<u16>,
}

impl Ranks {
    /// No block is closed, none holds anything.
    pub(crate) fn new(planes: u32, blocks_per_plane: u32) -> Ranks {
        let groups_per_plane = blocks_per_plane.div_ceil(GROUP);
        Ranks {
            blocks_per_plane,
            groups_per_plane,
            ranks: HugePageTable::new((planes * blocks_per_plane) as usize, NOT_CLOSED),
            group_least: vec![NOT_CLOSED; (planes * groups_per_plane) as usize],
        }
    }

    /// Valid pages of `block`.
    #[inline]
    pub(crate) fn valid(&self, block: u32) -> u32 {
        u32::from(self.ranks[block as usize] & !NOT_CLOSED)
    }

    /// True if `block` is full and may be cleaned.
    #[inline]
    pub(crate) fn is_closed(&self, block: u32) -> bool {
        self.ranks[block as usize] & NOT_CLOSED == 0
    }

    /// How many blocks there are.
    pub(crate) fn len(&self) -> usize {
        self.ranks.len()
    }

    /// Brings the count of valid pages of `block` into the cache.
    #[inline]
    pub(crate) fn prefetch(&self, block: u32) {
        if let Some(rank) = self.ranks.get(block as usize) {
            prefetch(rank);
        }
    }

    /// `count` more valid pages in `block`.
    #[inline]
    pub(crate) fn add(&mut self, block: u32, count: u32) {
        debug_assert!(!self.is_closed(block));
        self.ranks[block as usize] += count as u16;
    }

    /// One valid page fewer in `block`.
    #[inline]
    pub(crate) fn remove_one(&mut self, block: u32) {
        let rank = &mut self.ranks[block as usize];
        *rank -= 1;
        let rank = *rank;
        // A count that falls can only lower the least rank of the group, so no other rank is
        // read here. This runs for every overwritten page; `take_out` and `clear` run once a
        // block and search anew. An open block keeps the top bit and never becomes the least.
        let group = self.group_of(block);
        let least = &mut self.group_least[group];
        if rank < *least {
            *least = rank;
        }
    }

    /// `block` is full.
    pub(crate) fn close(&mut self, block: u32) {
        let valid = self.ranks[block as usize] & !NOT_CLOSED;
        self.ranks[block as usize] = valid;
        let group = self.group_of(block);
        let least = &mut self.group_least[group];
        *least = valid.min(*least);
    }

    /// `block` is not a victim any more, but keeps its count of valid pages.
    pub(crate) fn take_out(&mut self, block: u32) {
        self.ranks[block as usize] |= NOT_CLOSED;
        // The rank rises. The block may have been the least of its group, and only a search
        // finds the next one.
        self.renew(self.group_of(block));
    }

    /// `block` holds nothing and is not closed.
    pub(crate) fn clear(&mut self, block: u32) {
        self.ranks[block as usize] = NOT_CLOSED;
        self.renew(self.group_of(block));
    }

    /// The closed block of `plane` with the fewest valid pages, the first of equals.
    pub(crate) fn first_of_least(&self, plane: u32) -> Option<u32> {
        // The first group with the least rank contains the first block with it, because groups
        // are in the order of block numbers. Two short searches replace one over the plane.
        let (groups, least) = self.least_of_groups(plane)?;
        let range = self.group_range(groups.start + first(&self.group_least[groups], least)?);
        Some((range.start + first(&self.ranks[range], least)?) as u32)
    }

    /// The closed block of `plane` with the fewest valid pages, the last of equals.
    pub(crate) fn last_of_least(&self, plane: u32) -> Option<u32> {
        let (groups, least) = self.least_of_groups(plane)?;
        let range = self.group_range(groups.start + last(&self.group_least[groups], least)?);
        Some((range.start + last(&self.ranks[range], least)?) as u32)
    }

    /// `block` is as block `from` of `other`; call [`renew_plane`](Ranks::renew_plane) then.
    pub(crate) fn copy(&mut self, block: u32, other: &Ranks, from: usize) {
        self.ranks[block as usize] = other.ranks[from];
    }

    /// Looks anew for the least ranks in `plane`.
    pub(crate) fn renew_plane(&mut self, plane: u32) {
        let first = (plane * self.groups_per_plane) as usize;
        (first..first + self.groups_per_plane as usize).for_each(|group| self.renew(group));
    }

    /// The groups of `plane` and the least rank in them, if any block is closed.
    fn least_of_groups(&self, plane: u32) -> Option<(std::ops::Range<usize>, u16)> {
        let first = (plane * self.groups_per_plane) as usize;
        let groups = first..first + self.groups_per_plane as usize;
        let least = least(&self.group_least[groups.clone()]);
        (least < NOT_CLOSED).then_some((groups, least))
    }

    fn renew(&mut self, group: usize) {
        self.group_least[group] = least(&self.ranks[self.group_range(group)]);
    }

    #[inline]
    fn group_of(&self, block: u32) -> usize {
        let plane = block / self.blocks_per_plane;
        let index = block - plane * self.blocks_per_plane;
        (plane * self.groups_per_plane + index / GROUP) as usize
    }

    /// Blocks of the group at `group` of `group_least`.
    fn group_range(&self, group: usize) -> std::ops::Range<usize> {
        let plane = group as u32 / self.groups_per_plane;
        let first = (group as u32 % self.groups_per_plane) * GROUP;
        let last = (first + GROUP).min(self.blocks_per_plane);
        let base = plane * self.blocks_per_plane;
        (base + first) as usize..(base + last) as usize
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Against searches by key, on the second of two planes.
        #[test]
        fn finds_the_first_and_the_last_of_the_least(
            counts in prop::collection::vec(1u32..40, 1..300),
            steps in prop::collection::vec((any::<u32>(), 0u8..6), 0..600),
        ) {
            let n = counts.len() as u32;
            let mut ranks = Ranks::new(2, n);
            let mut plain: Vec<Option<u32>> = vec![None; counts.len()];
            for (number, what) in steps {
                let at = number % n;
                let (block, valid) = (n + at, &mut plain[at as usize]);
                match (what, *valid) {
                    (0..=2, None) => {
                        ranks.clear(block);
                        ranks.add(block, counts[at as usize]);
                        ranks.close(block);
                        *valid = Some(counts[at as usize]);
                    }
                    (3, Some(_)) => {
                        ranks.take_out(block);
                        *valid = None;
                    }
                    (4, Some(_)) => {
                        ranks.clear(block);
                        *valid = None;
                    }
                    (_, Some(some)) if some > 0 => {
                        ranks.remove_one(block);
                        *valid = Some(some - 1);
                    }
                    _ => {}
                }
                let closed = |at: &u32| plain[*at as usize].is_some();
                let first = (0..n).filter(closed).min_by_key(|at| (plain[*at as usize], *at));
                let last = (0..n).filter(closed).min_by_key(|at| (plain[*at as usize], n - *at));
                prop_assert_eq!(ranks.first_of_least(1), first.map(|at| n + at));
                prop_assert_eq!(ranks.last_of_least(1), last.map(|at| n + at));
                prop_assert_eq!(ranks.first_of_least(0), None);
            }
        }
    }
}
