//! The state of every block: valid pages, wear, free, open, closed or bad.

use ssdyno_engine::{HugePageTable, prefetch};

use crate::order::Order;
use crate::ranks::Ranks;
use crate::wear::{Free, Laggards};
use crate::{Endurance, WearLevelling};
use ssdyno_engine::Health;

/// The searches among the blocks for which an index is kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Searches {
    /// Cleaning chooses among this number of a plane's oldest closed blocks; 0 = without regard to
    /// age.
    pub(crate) window: u32,
    /// Which block is opened, and whether laggards are looked for.
    pub(crate) wear: WearLevelling,
}

/// True if `block` is closed and was erased `then` times.
fn is_live(ranks: &Ranks, erases: &[u32], then: u32, block: u32) -> bool {
    ranks.is_closed(block) && erases[block as usize] == then
}

/// All blocks of a device, plane by plane.
#[derive(Clone, Debug)]
pub struct Blocks {
    blocks_per_plane: u32,
    data_pages: u32,
    ranks: Ranks,
    erases: HugePageTable<u32>,
    /// Erases that a block survives; empty where blocks last forever.
    endures: Vec<u32>,
    free: Vec<Free>,
    /// Closed blocks in the order of closing; kept on demand.
    order: Option<Order>,
    /// Closed blocks by wear; kept on demand.
    laggards: Option<Vec<Laggards>>,
    /// Erases of the most worn block of each plane.
    erases_most: Vec<u32>,
    /// Blocks closed so far in each plane: the clock by which cleaning measures their age.
    closings: Vec<u64>,
    bad: Vec<u32>,
}

impl Blocks {
    /// All blocks free, but those bad from the factory.
    pub(crate) fn new(
        planes: u32,
        blocks_per_plane: u32,
        data_pages: u32,
        searches: Searches,
        endurance: Endurance,
    ) -> Blocks {
        let endures = endurance.draw_all(planes * blocks_per_plane);
        Blocks::with_lives(planes, blocks_per_plane, data_pages, searches, endures)
    }

    /// Like [`new`](Blocks::new), with the number of erases that each block survives; empty if blocks never wear out.
    pub(crate) fn with_lives(
        planes: u32,
        blocks_per_plane: u32,
        data_pages: u32,
        searches: Searches,
        endures: Vec<u32>,
    ) -> Blocks {
        let all = planes * blocks_per_plane;
        let good = |block: &u32| endures.get(*block as usize).is_none_or(|limit| *limit > 0);
        let range = |plane| plane * blocks_per_plane..(plane + 1) * blocks_per_plane;
        let mut free = vec![Free::new(searches.wear != WearLevelling::Off); planes as usize];
        // Blocks become free in the order of their numbers. A fresh device therefore writes
        // block after block, and two runs with the same seed open the same blocks.
        for (plane, free) in (0..).zip(&mut free) {
            range(plane).filter(good).for_each(|block| free.push(block, 0));
        }
        let bad = free.iter().map(|free| blocks_per_plane - free.len()).collect();
        Blocks {
            blocks_per_plane,
            data_pages,
            ranks: Ranks::new(planes, blocks_per_plane),
            erases: HugePageTable::new(all as usize, 0),
            endures,
            free,
            order: (searches.window > 0)
                .then(|| Order::new(planes, blocks_per_plane, data_pages, searches.window)),
            laggards: (searches.wear == WearLevelling::Static)
                .then(|| vec![Laggards::default(); planes as usize]),
            erases_most: vec![0; planes as usize],
            closings: vec![0; planes as usize],
            bad,
        }
    }

    /// Blocks in a plane.
    pub fn blocks_per_plane(&self) -> u32 {
        self.blocks_per_plane
    }

    /// Data pages of a block.
    pub(crate) fn data_pages(&self) -> u32 {
        self.data_pages
    }

    /// Valid pages of `block`.
    #[inline]
    pub fn valid(&self, block: u32) -> u32 {
        self.ranks.valid(block)
    }

    /// Brings the count of valid pages of `block` into the cache.
    #[inline]
    pub(crate) fn prefetch(&self, block: u32) {
        self.ranks.prefetch(block);
    }

    /// Brings what [`erased`](Blocks::erased) changes of `block` into the cache.
    pub(crate) fn prefetch_wear(&self, block: u32) {
        prefetch(&self.erases[block as usize]);
        if let Some(endures) = self.endures.get(block as usize) {
            prefetch(endures);
        }
    }

    /// The block that [`open`](Blocks::open) will probably give next.
    pub(crate) fn next_free(&self, plane: u32) -> Option<u32> {
        self.free[plane as usize].peek()
    }

    /// True if `block` is full and may be cleaned.
    #[inline]
    pub fn is_closed(&self, block: u32) -> bool {
        self.ranks.is_closed(block)
    }

    /// Free blocks of `plane`.
    #[inline]
    pub fn free_count(&self, plane: u32) -> u32 {
        self.free[plane as usize].len()
    }

    /// Bad blocks of `plane`.
    pub fn bad_count(&self, plane: u32) -> u32 {
        self.bad[plane as usize]
    }

    /// Bad blocks of the device.
    pub fn bad_total(&self) -> u32 {
        self.bad.iter().sum()
    }

    /// Largest number of bad blocks in a plane.
    pub fn bad_most(&self) -> u32 {
        self.bad.iter().copied().max().unwrap_or(0)
    }

    /// Erases that `block` has seen.
    pub fn erases(&self, block: u32) -> u32 {
        self.erases[block as usize]
    }

    /// Least and greatest number of erases among all blocks.
    pub fn erases_range(&self) -> (u32, u32) {
        let least = self.erases.iter().copied().min().unwrap_or(0);
        let most = self.erases.iter().copied().max().unwrap_or(0);
        (least, most)
    }

    /// Erases of all blocks of `plane`.
    pub(crate) fn erases_of_plane(&self, plane: u32) -> u64 {
        let range = plane * self.blocks_per_plane..(plane + 1) * self.blocks_per_plane;
        range.map(|block| u64::from(self.erases(block))).sum()
    }

    /// The state of a device that is made of them.
    pub fn health(&self, read_only: bool) -> Health {
        let (erases_min, erases_max) = self.erases_range();
        Health { read_only, bad_blocks: self.bad_total(), erases_min, erases_max }
    }

    /// Takes a free block of `plane` to write in: the one free longest, or with wear levelling the
    /// least worn.
    pub(crate) fn open(&mut self, plane: u32) -> Option<u32> {
        self.free[plane as usize].pop()
    }

    /// `block` is full: from now on it may be cleaned.
    pub(crate) fn close(&mut self, block: u32) {
        self.ranks.close(block);
        // The clock counts closings of this plane only. A count for the whole device made ages
        // on a sample of one plane differ from ages on the device, and cost-benefit cleaning
        // then began at 3.21 programs a write and ended at 3.28.
        self.closings[(block / self.blocks_per_plane) as usize] += 1;
        // The block joins the order after the clock has moved on. Its age is 1 at once, as
        // `take_best` promises, and the benefit of cleaning it is never zero for reasons of age
        // alone.
        self.put_back(block);
        self.watch_wear(block);
    }

    /// Lets `block`, which is closed, be found as the least worn.
    fn watch_wear(&mut self, block: u32) {
        let Some(laggards) = &mut self.laggards else { return };
        let (ranks, erases) = (&self.ranks, &self.erases);
        laggards[(block / self.blocks_per_plane) as usize].push(
            block,
            erases[block as usize],
            self.blocks_per_plane,
            |then, block| is_live(ranks, erases, then, block),
        );
    }

    /// `count` more valid pages in `block`, which is open.
    #[inline]
    pub(crate) fn add_valid(&mut self, block: u32, count: u32) {
        self.ranks.add(block, count);
    }

    /// One valid page fewer in `block`.
    #[inline]
    pub(crate) fn invalidate(&mut self, block: u32) {
        self.ranks.remove_one(block);
        // The order reads the new count of valid pages from the ranks, so the ranks change
        // first.
        if let Some(order) = &mut self.order {
            order.lost_a_page(block, &self.ranks);
        }
    }

    /// The closed block of `plane` with the fewest valid pages.
    pub(crate) fn least_valid(&self, plane: u32) -> Option<u32> {
        self.ranks.first_of_least(plane)
    }

    /// The closed block of `plane` with the fewest erases, and how many more erases the most worn
    /// block of the plane has; only with static wear levelling.
    pub(crate) fn laggard(&mut self, plane: u32) -> Option<(u32, u32)> {
        let (ranks, erases) = (&self.ranks, &self.erases);
        let laggards = &mut self.laggards.as_mut()?[plane as usize];
        let block = laggards.peek(|then, block| is_live(ranks, erases, then, block))?;
        // The difference cannot wrap: `erased`, `compare_with` and `swap_block` all raise
        // `erases_most` to at least the erases of every block of the plane, bad blocks included.
        Some((block, self.erases_most[plane as usize] - erases[block as usize]))
    }

    /// Takes the best of `plane`'s closed blocks out of its order, the older of equals.
    ///
    /// `score(valid pages, age)` must not rise with valid pages nor fall with age, which is the
    /// number of blocks of the plane that were closed since, itself included.
    pub(crate) fn take_best(&mut self, plane: u32, score: impl Fn(u32, u64) -> f64) -> Option<u32> {
        let now = self.closings[plane as usize];
        self.order.as_mut()?.take_best(plane, now, &self.ranks, score)
    }

    /// Takes `block`, chosen without regard to the order, out of the order.
    pub(crate) fn forget_order(&mut self, block: u32) {
        if let Some(order) = &mut self.order {
            order.remove(block);
        }
    }

    /// `block`, taken out of the order, was not cleaned after all: it is in the order again, as if
    /// it had just been closed.
    pub(crate) fn put_back(&mut self, block: u32) {
        // The block gets the age of a block that was just closed. With its old age it would be
        // the oldest block again, and FIFO would offer the same victim without gain at once.
        if let Some(order) = &mut self.order {
            order.push(block, self.closings[(block / self.blocks_per_plane) as usize]);
        }
    }

    /// Cleaning of `block` has begun: it is not a victim any more, but keeps its count of valid pages.
    pub(crate) fn take_out(&mut self, block: u32) {
        self.ranks.take_out(block);
    }

    /// `block` was erased, all its valid pages are elsewhere: it is free again, or bad for good
    /// (then false).
    pub(crate) fn erased(&mut self, block: u32) -> bool {
        self.ranks.clear(block);
        // Wear is counted before the block can go bad. The last erase of a block happened, too,
        // and the most worn block of the plane may be a bad one.
        self.erases[block as usize] += 1;
        let erases = self.erases[block as usize];
        let plane = (block / self.blocks_per_plane) as usize;
        self.erases_most[plane] = self.erases_most[plane].max(erases);
        let endures = self.endures.get(block as usize).copied().unwrap_or(u32::MAX);
        if erases >= endures {
            self.bad[plane] += 1;
            return false;
        }
        self.free[plane].push(block, erases);
        true
    }

    /// Makes `plane` look like plane 0 of `sample`, whose blocks correspond to `good` in turn;
    /// further good blocks become free.
    pub(crate) fn stamp(&mut self, plane: u32, sample: &Blocks, good: &[u32]) {
        for (from, to) in good.iter().enumerate().take(sample.ranks.len()) {
            self.ranks.copy(*to, &sample.ranks, from);
        }
        // The sample has as many blocks as the worst plane has good ones. A better plane has
        // some left, and they are free: spare blocks belong to the reserve.
        let spare = good.iter().skip(sample.ranks.len()).copied();
        let free: Vec<u32> =
            sample.free[0].list().iter().map(|block| good[*block as usize]).chain(spare).collect();
        self.refill(plane, &free);
        if let (Some(mine), Some(theirs)) = (&mut self.order, &sample.order) {
            for (block, closed) in theirs.list(0) {
                mine.push(good[block as usize], closed);
            }
        }
        // The order holds closing times of the sample's clock. The clock of the plane goes on
        // from the same reading, so that ages continue.
        self.closings[plane as usize] = sample.closings[0];
        self.ranks.renew_plane(plane);
        // Laggards are found again from the ranks and the erases of this plane. The sample's own
        // wear is that of preconditioning and must not pass to the device.
        self.watch_closed(plane);
    }

    /// The free blocks of `plane` are these, the one free longest in front.
    fn refill(&mut self, plane: u32, blocks: &[u32]) {
        let free = &mut self.free[plane as usize];
        while free.pop().is_some() {}
        for block in blocks {
            free.push(*block, self.erases[*block as usize]);
        }
    }

    /// Looks anew for the least worn closed blocks of `plane`.
    fn watch_closed(&mut self, plane: u32) {
        if let Some(laggards) = &mut self.laggards {
            laggards[plane as usize].clear();
        }
        for block in plane * self.blocks_per_plane..(plane + 1) * self.blocks_per_plane {
            if self.is_closed(block) {
                self.watch_wear(block);
            }
        }
    }

    /// Starts counting erases anew, as after preconditioning.
    pub(crate) fn forget_wear(&mut self) {
        self.erases.fill(0);
        // Both lists are ordered by the erases of the time when a block entered. Their keys are
        // wrong once the counts are zero, so each list is made anew.
        self.erases_most.fill(0);
        for plane in 0..self.free.len() as u32 {
            let free = self.free[plane as usize].list();
            self.refill(plane, &free);
            self.watch_closed(plane);
        }
    }

    /// For blocks that are all free or bad: each has been erased as often as `erases` says. Those that do not survive
    /// that are bad.
    pub(crate) fn start_worn(&mut self, erases: impl Fn(u32) -> u32) {
        for plane in 0..self.free.len() {
            let mut good = Vec::new();
            for block in self.free[plane].list() {
                let worn = erases(block);
                self.erases[block as usize] = worn;
                // A block that goes bad here still counts as the most worn one, as it does in
                // `erased`.
                self.compare_with(plane as u32, worn);
                match self.endures.get(block as usize) {
                    Some(endures) if worn >= *endures => self.bad[plane] += 1,
                    _ => good.push(block),
                }
            }
            self.refill(plane as u32, &good);
        }
    }

    /// Good blocks of `plane`, in order.
    pub(crate) fn good(&self, plane: u32) -> Vec<u32> {
        let range = plane * self.blocks_per_plane..(plane + 1) * self.blocks_per_plane;
        let endures = |block: &u32| self.endures.get(*block as usize).is_none_or(|n| *n > 0);
        range.filter(endures).collect()
    }

    /// Erases of the next free block of `plane`.
    pub(crate) fn next_free_wear(&self, plane: u32) -> Option<u32> {
        self.next_free(plane).map(|block| self.erases(block))
    }

    /// Erases of the most worn block of `plane`, or of those that it is compared with.
    pub(crate) fn erases_most(&self, plane: u32) -> u32 {
        self.erases_most[plane as usize]
    }

    /// From now on the blocks of `plane` are compared with one that was erased `erases` times.
    pub(crate) fn compare_with(&mut self, plane: u32, erases: u32) {
        let most = &mut self.erases_most[plane as usize];
        *most = erases.max(*most);
    }

    /// The next free blocks of `plane` here and in `other` change places, with all that is known of
    /// them; their numbers here and there.
    pub(crate) fn trade_free(&mut self, other: &mut Blocks, plane: u32) -> Option<(u32, u32)> {
        let (here, there) = (self.next_free(plane)?, other.next_free(plane)?);
        self.open(plane);
        other.open(plane);
        let (erases, theirs) = self.swap_block((here, there), other, plane);
        self.free[plane as usize].push(here, erases);
        other.free[plane as usize].push(there, theirs);
        Some((here, there))
    }

    /// The next free block of `plane` here and a bad one of `other` change places; their numbers
    /// here and there.
    pub(crate) fn give_free(&mut self, other: &mut Blocks, plane: u32) -> Option<(u32, u32)> {
        let range = plane * other.blocks_per_plane..(plane + 1) * other.blocks_per_plane;
        let bad = |block: &u32| {
            other
                .endures
                .get(*block as usize)
                .is_some_and(|endures| *endures <= other.erases(*block))
        };
        let there = range.into_iter().find(bad)?;
        let here = self.open(plane)?;
        let (_, erases) = self.swap_block((here, there), other, plane);
        // The number here now stands for the bad block, and the number there for the free one.
        // The sums over both tables stay the same.
        self.bad[plane as usize] += 1;
        other.bad[plane as usize] -= 1;
        other.free[plane as usize].push(there, erases);
        Some((here, there))
    }

    /// Wear and life of block `here` of `plane` and of `there` in `other` change places; both are free
    /// or bad. The erases of what is here and there now.
    fn swap_block(
        &mut self,
        (here, there): (u32, u32),
        other: &mut Blocks,
        plane: u32,
    ) -> (u32, u32) {
        let (here, there) = (here as usize, there as usize);
        std::mem::swap(&mut self.erases[here], &mut other.erases[there]);
        if let (Some(mine), Some(theirs)) =
            (self.endures.get_mut(here), other.endures.get_mut(there))
        {
            std::mem::swap(mine, theirs);
        }
        let erases = (self.erases[here], other.erases[there]);
        // A block brings its wear along. Without this the most worn block could fall behind a
        // block of its own plane, and `laggard` would subtract a larger number from a smaller
        // one.
        self.compare_with(plane, erases.0);
        other.compare_with(plane, erases.1);
        erases
    }
}
