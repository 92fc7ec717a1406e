//! BPLRU: logical blocks in the order in which they were written.

use rustc_hash::FxHashMap;

const NIL: u32 = u32::MAX;

/// A block that never was, or no longer is, written in order from its first page.
const NOT_SEQUENTIAL: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Entry {
    block: u32,
    /// Dirty pages that have not been handed out.
    dirty: u32,
    /// Pages handed out that are not on flash yet, padding included.
    writing: u32,
    /// The page (number in the block) that would go on with a sequential write.
    next: u32,
    listed: bool,
    newer: u32,
    older: u32,
}

/// The blocks with dirty pages or pages on their way to flash.
///
/// A block is in the order while it has dirty pages and none on their way: its padding is written
/// with old data, and must be on flash before newer data of the same page may follow.
#[derive(Clone, Debug)]
pub(super) struct Blocks {
    entries: Vec<Entry>,
    free: Vec<u32>,
    /// Looked up only, never iterated.
    by_block: FxHashMap<u32, u32>,
    newest: u32,
    oldest: u32,
    pages_per_block: u32,
}

impl Blocks {
    pub(super) fn new(pages_per_block: u32) -> Blocks {
        Blocks {
            entries: Vec::new(),
            free: Vec::new(),
            by_block: FxHashMap::default(),
            newest: NIL,
            oldest: NIL,
            pages_per_block,
        }
    }

    fn entry(&mut self, page: u32) -> Option<u32> {
        self.by_block.get(&(page / self.pages_per_block)).copied()
    }

    fn entry_or_new(&mut self, page: u32) -> u32 {
        if let Some(at) = self.entry(page) {
            return at;
        }
        let block = page / self.pages_per_block;
        let new =
            Entry { block, dirty: 0, writing: 0, next: 0, listed: false, newer: NIL, older: NIL };
        let at = match self.free.pop() {
            Some(at) => {
                self.entries[at as usize] = new;
                at
            }
            None => {
                self.entries.push(new);
                self.entries.len() as u32 - 1
            }
        };
        self.by_block.insert(block, at);
        at
    }

    /// `page` was written by the host; `newly` if it was not dirty before.
    pub(super) fn wrote(&mut self, page: u32, newly: bool) {
        let at = self.entry_or_new(page);
        let number = page % self.pages_per_block;
        let entry = &mut self.entries[at as usize];
        entry.dirty += u32::from(newly);
        // A block that was written strictly upwards is a sequential stream. BPLRU moves it to
        // the end that is written back first, because a stream seldom returns.
        entry.next = match entry.next {
            next if next == number => next + 1,
            // Starting over is sequential too.
            _ if number == 0 => 1,
            _ => NOT_SEQUENTIAL,
        };
        self.list(at);
    }

    /// A dirty page was dropped.
    pub(super) fn dropped(&mut self, page: u32) {
        if let Some(at) = self.entry(page) {
            let entry = &mut self.entries[at as usize];
            entry.dirty = entry.dirty.saturating_sub(1);
            entry.next = NOT_SEQUENTIAL;
            self.drop_if_done(at);
        }
    }

    /// The block to write back next.
    pub(super) fn victim(&self) -> Option<u32> {
        (self.oldest != NIL).then(|| self.entries[self.oldest as usize].block)
    }

    /// All of `block` was handed out, `pages` pages.
    pub(super) fn handed_out(&mut self, block: u32, pages: u32) {
        let at = self.entry_or_new(block * self.pages_per_block);
        // The block leaves the order until its last page is on flash. Its padding holds old
        // data, and a second write-back of the block must not overtake the first.
        self.unlist(at);
        let entry = &mut self.entries[at as usize];
        (entry.dirty, entry.writing, entry.next) = (0, pages, 0);
    }

    /// A page that was handed out is on flash. False if its block had none on its way.
    pub(super) fn written(&mut self, page: u32) -> bool {
        let Some(at) = self.entry(page) else { return false };
        let entry = &mut self.entries[at as usize];
        if entry.writing == 0 {
            return false;
        }
        entry.writing -= 1;
        // Pages that were written again meanwhile could not be handed out. The block is listed
        // only now, which keeps the versions of a page in order.
        if entry.writing == 0 && entry.dirty > 0 {
            self.list(at);
        } else {
            self.drop_if_done(at);
        }
        true
    }

    /// Puts a block where it belongs: at the newest end, or, once it was written from end to end,
    /// at the oldest, since it will hardly be written again soon.
    fn list(&mut self, at: u32) {
        self.unlist(at);
        let Entry { writing, next, .. } = self.entries[at as usize];
        if writing > 0 {
            return;
        }
        // One page alone is no sequence.
        let sequential = next == self.pages_per_block && next > 1;
        let (newer, older) = if sequential { (self.oldest, NIL) } else { (NIL, self.newest) };
        match newer {
            NIL => self.newest = at,
            newer => self.entries[newer as usize].older = at,
        }
        match older {
            NIL => self.oldest = at,
            older => self.entries[older as usize].newer = at,
        }
        let entry = &mut self.entries[at as usize];
        (entry.newer, entry.older, entry.listed) = (newer, older, true);
    }

    fn unlist(&mut self, at: u32) {
        let Entry { newer, older, listed, .. } = self.entries[at as usize];
        if !listed {
            return;
        }
        match newer {
            NIL => self.newest = older,
            newer => self.entries[newer as usize].older = older,
        }
        match older {
            NIL => self.oldest = newer,
            older => self.entries[older as usize].newer = newer,
        }
        self.entries[at as usize].listed = false;
    }

    fn drop_if_done(&mut self, at: u32) {
        let Entry { dirty, writing, block, .. } = self.entries[at as usize];
        if dirty == 0 && writing == 0 {
            self.unlist(at);
            self.by_block.remove(&block);
            self.free.push(at);
        }
    }
}
