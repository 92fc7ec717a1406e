//! BPLRU: logical blocks in the order in which they were written.

use rustc_hash::FxHashMap;
use ssdyno_engine::{Linked, SlotLinks, SlotList, SlotTable};

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
    links: SlotLinks,
}

impl Linked for Entry {
    #[inline]
    fn links(&mut self) -> &mut SlotLinks {
        &mut self.links
    }
}

/// The blocks with dirty pages or pages on their way to flash.
///
/// A block is in the order while it has dirty pages and none on their way: its padding is written
/// with old data, and must be on flash before newer data of the same page may follow.
#[derive(Clone, Debug)]
pub(super) struct Blocks {
    entries: SlotTable<Entry>,
    /// Looked up only, never iterated.
    by_block: FxHashMap<u32, u32>,
    /// Blocks that may be written back.
    list: SlotList,
    pages_per_block: u32,
}

impl Blocks {
    pub(super) fn new(pages_per_block: u32) -> Blocks {
        Blocks {
            entries: SlotTable::default(),
            by_block: FxHashMap::default(),
            list: SlotList::default(),
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
        let links = SlotLinks::LOOSE;
        let new = Entry { block, dirty: 0, writing: 0, next: 0, listed: false, links };
        let at = self.entries.insert(new);
        self.by_block.insert(block, at);
        at
    }

    /// `page` was written by the host; `newly` if it was not dirty before.
    pub(super) fn wrote(&mut self, page: u32, newly: bool) {
        let at = self.entry_or_new(page);
        let number = page % self.pages_per_block;
        let entry = &mut self.entries[at];
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
            let entry = &mut self.entries[at];
            entry.dirty = entry.dirty.saturating_sub(1);
            entry.next = NOT_SEQUENTIAL;
            self.drop_if_done(at);
        }
    }

    /// The block to write back next.
    pub(super) fn victim(&self) -> Option<u32> {
        self.entries.get(self.list.oldest()).map(|entry| entry.block)
    }

    /// All of `block` was handed out, `pages` pages.
    pub(super) fn handed_out(&mut self, block: u32, pages: u32) {
        let at = self.entry_or_new(block * self.pages_per_block);
        // The block leaves the order until its last page is on flash. Its padding holds old
        // data, and a second write-back of the block must not overtake the first.
        self.unlist(at);
        let entry = &mut self.entries[at];
        (entry.dirty, entry.writing, entry.next) = (0, pages, 0);
    }

    /// A page that was handed out is on flash. False if its block had none on its way.
    pub(super) fn written(&mut self, page: u32) -> bool {
        let Some(at) = self.entry(page) else { return false };
        let entry = &mut self.entries[at];
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
        let Entry { writing, next, .. } = self.entries[at];
        if writing > 0 {
            return;
        }
        // One page alone is not a sequence.
        let sequential = next == self.pages_per_block && next > 1;
        match sequential {
            true => self.list.push_oldest(&mut self.entries, at),
            false => self.list.push(&mut self.entries, at),
        }
        self.entries[at].listed = true;
    }

    fn unlist(&mut self, at: u32) {
        if std::mem::take(&mut self.entries[at].listed) {
            self.list.unlink(&mut self.entries, at);
        }
    }

    fn drop_if_done(&mut self, at: u32) {
        let Entry { dirty, writing, block, .. } = self.entries[at];
        if dirty == 0 && writing == 0 {
            self.unlist(at);
            self.by_block.remove(&block);
            self.entries.free(at);
        }
    }
}
