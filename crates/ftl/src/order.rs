//! Closed blocks by age: what cleaning policies look at that care when a block was closed.
//!
//! A policy gives a block a score that does not fall with its age and does not rise with its valid
//! pages. So among blocks with the same number of valid pages only the oldest can win, and a search
//! looks at one block for each number of valid pages instead of at all: what it costs depends on
//! the pages of a block and, by a logarithm, on the blocks of a plane.
//!
//! Each number of valid pages has a heap, the oldest block on top. A block that lost a page is put
//! into the heap it belongs to now and stays where it was: such *stale* entries are recognised when
//! they come to the top, and thrown out all together when they are more than half of all. Blocks
//! that lost pages are only noted and sorted in before the next search, many at a time.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::ranks::Ranks;

/// A block and its place in the order; the smaller place is older.
type Entry = (u64, u32);

/// The number of recorded blocks with lost pages at which they are sorted in, if no search comes
/// first.
// The limit bounds the memory of notes while nothing is cleaned, such as while a host overwrites
// a device that still has many free blocks.
const NOTED_MOST: usize = 1 << 10;

/// The closed blocks of all planes, each plane in the order of closing.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    /// Only this number of the oldest blocks of a plane can be chosen.
    window: u32,
    blocks_per_plane: u32,
    /// Place of each block; 0 where it is not in the order.
    place: Vec<u64>,
    /// Blocks of its plane that had been closed when each block was.
    closed: Vec<u64>,
    /// The place given last.
    last: u64,
    planes: Vec<PlaneOrder>,
}

/// The closed blocks of one plane.
#[derive(Clone, Debug, Default)]
struct PlaneOrder {
    /// Blocks too young to be chosen, by place; some stale.
    waiting: VecDeque<Entry>,
    /// Blocks that can be chosen, by place; some stale, but never the first after a search began.
    candidates: VecDeque<Entry>,
    /// How many candidates are not stale.
    live: u32,
    /// Place of the youngest that ever was a candidate: all in the order up to it are candidates.
    youngest: u64,
    /// Candidates by valid pages, the oldest on top; some stale, some twice.
    by_valid: Vec<BinaryHeap<Reverse<Entry>>>,
    /// Entries in `by_valid`.
    entries: usize,
    /// Blocks that lost valid pages since the last search.
    noted: Vec<u32>,
}

impl Order {
    /// No closed blocks. `window`: how many of the oldest of a plane can be chosen, at least one.
    pub(crate) fn new(planes: u32, blocks_per_plane: u32, data_pages: u32, window: u32) -> Order {
        let plane = PlaneOrder {
            by_valid: vec![BinaryHeap::new(); if window > 1 { data_pages as usize + 1 } else { 0 }],
            ..PlaneOrder::default()
        };
        let blocks = (planes * blocks_per_plane) as usize;
        Order {
            window,
            blocks_per_plane,
            place: vec![0; blocks],
            closed: vec![0; blocks],
            last: 0,
            planes: vec![plane; planes as usize],
        }
    }

    /// `block` is the youngest of its plane, as one closed after `closed` blocks of that.
    pub(crate) fn push(&mut self, block: u32, closed: u64) {
        // Places count up over all planes and never repeat. A queue entry is stale if the block
        // has another place by now, so no entry must be searched for when a block leaves. 0 is
        // no place.
        self.last += 1;
        self.place[block as usize] = self.last;
        self.closed[block as usize] = closed;
        let waiting = &mut self.planes[(block / self.blocks_per_plane) as usize].waiting;
        waiting.push_back((self.last, block));
        thin_out(waiting, self.blocks_per_plane, &self.place);
    }

    /// `block` lost a valid page; it need not be in the order.
    #[inline]
    pub(crate) fn lost_a_page(&mut self, block: u32, ranks: &Ranks) {
        // FIFO looks at the oldest block only, whatever is valid in it. It has no heaps, so a
        // note would never be used.
        if self.window > 1 {
            let plane = (block / self.blocks_per_plane) as usize;
            self.planes[plane].noted.push(block);
            if self.planes[plane].noted.len() >= NOTED_MOST {
                self.sort_in(plane, ranks);
            }
        }
    }

    /// Takes `block` out of the order, if it is there.
    pub(crate) fn remove(&mut self, block: u32) {
        let place = std::mem::take(&mut self.place[block as usize]);
        let plane = &mut self.planes[(block / self.blocks_per_plane) as usize];
        // Only admitted blocks count as live. A block that still waits has a later place than
        // the youngest candidate, because blocks are admitted in the order of their places.
        if place != 0 && place <= plane.youngest {
            plane.live -= 1;
        }
    }

    /// Takes the best block of `plane` out of the order, the older of equals; `now` is how many
    /// blocks of it have been closed.
    ///
    /// `score(valid pages, age)` must not rise with valid pages nor fall with age.
    pub(crate) fn take_best(
        &mut self,
        plane: u32,
        now: u64,
        ranks: &Ranks,
        score: impl Fn(u32, u64) -> f64,
    ) -> Option<u32> {
        let plane = plane as usize;
        self.admit(plane, ranks);
        let oldest = self.oldest(plane)?;
        if self.window == 1 {
            self.remove(oldest);
            return Some(oldest);
        }
        self.sort_in(plane, ranks);
        // The age includes the block itself, so it is at least 1 even for the block that was
        // closed last.
        let age = |block: u32| now - self.closed[block as usize] + 1;
        let oldest_age = age(oldest);
        let PlaneOrder { by_valid, entries, .. } = &mut self.planes[plane];
        let mut best: Option<(f64, Entry)> = None;
        for (valid, heap) in by_valid.iter_mut().enumerate() {
            // The blocks ahead have more valid pages, and no block is older than the oldest.
            if best.is_some_and(|(score_best, _)| score(valid as u32, oldest_age) < score_best) {
                break;
            }
            while let Some(Reverse(entry)) = heap.peek().copied() {
                let (place, block) = entry;
                if self.place[block as usize] != place || ranks.valid(block) as usize != valid {
                    heap.pop();
                    *entries -= 1;
                    continue;
                }
                let score = score(valid as u32, age(block));
                // Equal scores go to the older block. Without a rule for ties the victim would
                // depend on the layout of the heaps, and the sample plane could differ from the
                // device's planes.
                let wins =
                    |(most, older): (f64, Entry)| score > most || (score == most && entry < older);
                if best.is_none_or(wins) {
                    best = Some((score, entry));
                }
                break;
            }
        }
        let (_, (_, block)) = best?;
        self.remove(block);
        Some(block)
    }

    /// Blocks of `plane` with the count of closings when they were closed, oldest first.
    pub(crate) fn list(&self, plane: u32) -> Vec<(u32, u64)> {
        let PlaneOrder { candidates, waiting, .. } = &self.planes[plane as usize];
        let all = candidates.iter().chain(waiting);
        let live = all.filter(|(place, block)| self.place[*block as usize] == *place);
        live.map(|(_, block)| (*block, self.closed[*block as usize])).collect()
    }

    /// Lets the oldest of those that wait in be candidates as long as there are too few.
    fn admit(&mut self, plane: usize, ranks: &Ranks) {
        let Order { window, place: places, planes, .. } = self;
        let plane = &mut planes[plane];
        // The window counts live blocks. Blocks that left it must not use up its places, or the
        // window would shrink to nothing as cleaning takes its best blocks out.
        while plane.live < *window {
            let Some((place, block)) = plane.waiting.pop_front() else { break };
            if places[block as usize] != place {
                continue;
            }
            plane.live += 1;
            plane.youngest = place;
            plane.candidates.push_back((place, block));
            if *window > 1 {
                plane.by_valid[ranks.valid(block) as usize].push(Reverse((place, block)));
                plane.entries += 1;
            }
        }
        thin_out(&mut plane.candidates, self.blocks_per_plane, places);
    }

    /// The oldest candidate.
    fn oldest(&mut self, plane: usize) -> Option<u32> {
        let candidates = &mut self.planes[plane].candidates;
        loop {
            let (place, block) = *candidates.front()?;
            if self.place[block as usize] == place {
                return Some(block);
            }
            candidates.pop_front();
        }
    }

    /// Puts candidates that lost pages where they belong now.
    fn sort_in(&mut self, plane: usize, ranks: &Ranks) {
        let plane = &mut self.planes[plane];
        for block in plane.noted.drain(..) {
            let place = self.place[block as usize];
            // A block that still waits needs no entry: `admit` makes one with the count that
            // holds then.
            if place != 0 && place <= plane.youngest {
                plane.by_valid[ranks.valid(block) as usize].push(Reverse((place, block)));
                plane.entries += 1;
            }
        }
        // The clean-up looks at all entries. It runs only after at least as many entries were
        // added as there are live blocks, so a note costs constant time on average.
        if plane.entries <= 2 * plane.live as usize + 64 {
            return;
        }
        plane.entries = 0;
        for (valid, heap) in plane.by_valid.iter_mut().enumerate() {
            let mut entries = std::mem::take(heap).into_vec();
            entries.retain(|Reverse((place, block))| {
                self.place[*block as usize] == *place && ranks.valid(*block) as usize == valid
            });
            // A block that lost several pages before one search is noted several times and then
            // has equal entries in one heap. Sorting brings them together for `dedup`.
            entries.sort_unstable_by_key(|Reverse(entry)| *entry);
            entries.dedup();
            plane.entries += entries.len();
            *heap = BinaryHeap::from(entries);
        }
    }
}

/// Throws stale entries out where they are more than half of what there can be.
fn thin_out(queue: &mut VecDeque<Entry>, blocks: u32, places: &[u64]) {
    if queue.len() > 2 * blocks as usize + 64 {
        queue.retain(|(place, block)| places[*block as usize] == *place);
    }
}
