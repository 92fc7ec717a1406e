//! Write buffer and read cache: which pages are held in the controller's memory.
//!
//! Policy only: the device gives the time. It asks [`WriteBuffer::next_write_back`] what to write, does
//! so, and says [`WriteBuffer::written`] for every page it was given, padding included. Every operation
//! takes constant time (BPLRU: constant time for each page handed out; CLOCK: amortised over the
//! uses that set the second chances), and memory follows the size of the buffer.
//!
//! A page that is written again while it is on its way to flash waits until it is there, so that
//! two versions of one page never overtake each other. Clean pages make room first, oldest first;
//! a page becomes clean at the young end.

use ssdyno_block::ConfigError;
use ssdyno_engine::{NO_SLOT, SlotList};

mod blocks;
mod config;
mod slots;
#[cfg(test)]
mod tests;

use blocks::Blocks;
use config::Marks;
pub use config::{BufferConfig, BufferPolicy};
use slots::{Slots, State};

/// The state of a written page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Admit {
    /// It replaces data that was dirty and not yet handed out: one flash write less.
    Absorbed,
    /// It is in the buffer.
    Taken,
    /// No room; nothing changed. Try again after the next [`WriteBuffer::written`].
    Full,
}

/// A page to write to flash.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WriteBack {
    /// The logical page.
    pub page: u32,
    /// True: the data is not in the buffer; read it from flash first. Where flash has none, skip it
    /// and say [`WriteBuffer::written`].
    pub padding: bool,
}

/// The buffer's contents.
#[derive(Clone, Debug)]
pub struct WriteBuffer {
    policy: BufferPolicy,
    cache_reads: bool,
    marks: Marks,
    pages_per_block: u32,
    logical_pages: u32,
    slots: Slots,
    clean: SlotList,
    /// Unused by BPLRU, which keeps its order in `blocks`.
    ready: SlotList,
    blocks: Blocks,
    dirty: u32,
    in_write_back: u32,
    /// Write-back began at the high mark and has not come down to the low one.
    draining: bool,
    /// Flushes begun.
    epoch: u32,
    /// Pages that were not on flash when the latest flush began, and still are not.
    flush_left: u32,
    /// Pages on their way that no flush waits for: given up since, or on flash before.
    unawaited: u32,
}

impl WriteBuffer {
    /// An empty buffer for a device of `logical_pages` pages; none where the policy is `none`.
    ///
    /// # Errors
    /// [`ConfigError`] where the size is below a page or a share outside 0 to 1.
    pub fn new(
        config: &BufferConfig,
        page_bytes: u32,
        pages_per_block: u32,
        logical_pages: u32,
    ) -> Result<Option<WriteBuffer>, ConfigError> {
        if config.policy == BufferPolicy::None {
            return Ok(None);
        }
        let marks = config.marks(page_bytes, logical_pages)?;
        let pages_per_block = pages_per_block.max(1);
        Ok(Some(WriteBuffer {
            policy: config.policy,
            cache_reads: config.cache_reads,
            marks,
            pages_per_block,
            logical_pages,
            slots: Slots::new(marks.capacity),
            clean: SlotList::default(),
            ready: SlotList::default(),
            blocks: Blocks::new(pages_per_block),
            dirty: 0,
            in_write_back: 0,
            draining: false,
            epoch: 0,
            flush_left: 0,
            unawaited: 0,
        }))
    }

    /// Pages that fit.
    pub fn capacity(&self) -> u32 {
        self.marks.capacity
    }

    /// Pages that are written back together, from a multiple of that number on: of BPLRU a logical block.
    pub fn pages_together(&self) -> u32 {
        if self.policy == BufferPolicy::Bplru { self.pages_per_block } else { 1 }
    }

    /// Pages held: clean, dirty, or on their way to flash.
    pub fn len(&self) -> u32 {
        self.slots.len()
    }

    /// True when nothing is held.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Pages whose newest data was not handed out yet.
    pub fn dirty(&self) -> u32 {
        self.dirty
    }

    /// Pages handed out and not yet written, padding included.
    pub fn in_write_back(&self) -> u32 {
        self.in_write_back
    }

    /// Pages held that are the same on flash.
    pub fn clean(&self) -> u32 {
        self.clean.len()
    }

    /// Takes note of a flush: [`flush_left`](WriteBuffer::flush_left) then counts down what it waits for,
    /// while the device calls [`next_write_back`](WriteBuffer::next_write_back) with `force`, again
    /// after each [`written`](WriteBuffer::written). A second flush meanwhile joins the first, which then
    /// waits for both.
    pub fn begin_flush(&mut self) {
        // A page waits for the flush if its epoch is older than the flush. The count starts with
        // all slots that hold data flash lacks; nothing has to walk over the slots.
        self.epoch = self.epoch.wrapping_add(1);
        self.flush_left = self.slots.len() - self.clean.len() - self.unawaited;
    }

    /// Pages that were not on flash when the latest flush began, and still are not.
    pub fn flush_left(&self) -> u32 {
        self.flush_left
    }

    /// The host reads `page`: true when its data is here.
    pub fn read(&mut self, page: u32) -> bool {
        let Some(slot) = self.slots.find(page) else { return false };
        let state = self.slots.get(slot).state;
        if !state.has_data() {
            return false;
        }
        match state {
            State::Clean => self.touch_clean(slot),
            // Reads do not count for blocks: BPLRU orders them by their writes.
            State::Dirty if self.policy != BufferPolicy::Bplru => self.touch_ready(slot),
            _ => {}
        }
        true
    }

    /// Data of `page` came from flash: kept if reads are cached and there is room without a write.
    pub fn fill(&mut self, page: u32) {
        // The host may have written the page while the read was on its way. The buffer's data is
        // newer then, and the data from flash must not replace it.
        if self.cache_reads && self.slots.find(page).is_none() && self.make_room() {
            let slot = self.slots.insert(page, State::Clean, self.epoch);
            self.slots.push(&mut self.clean, slot);
        }
    }

    /// The host writes `page`.
    pub fn write(&mut self, page: u32) -> Admit {
        let epoch = self.epoch;
        let Some(slot) = self.slots.find(page) else {
            if !self.make_room() {
                return Admit::Full;
            }
            let slot = self.slots.insert(page, State::Dirty, epoch);
            self.became_dirty(slot);
            return Admit::Taken;
        };
        match self.slots.get(slot).state {
            // The page keeps its old epoch. A flush that waits for the first version is then
            // also satisfied by this one, because one write-back makes both durable.
            State::Dirty => {
                if self.policy == BufferPolicy::Bplru {
                    self.blocks.wrote(page, false);
                } else {
                    self.touch_ready(slot);
                }
                Admit::Absorbed
            }
            State::WritingDirty => {
                self.order_write(page, false);
                Admit::Absorbed
            }
            State::Clean => {
                self.slots.unlink(&mut self.clean, slot);
                let at = self.slots.get_mut(slot);
                (at.state, at.epoch, at.referenced) = (State::Dirty, epoch, false);
                self.became_dirty(slot);
                Admit::Taken
            }
            State::Writing | State::Rewriting | State::WritingTrimmed => {
                let at = self.slots.get_mut(slot);
                // The version on its way is not awaited by a flush: it was trimmed, or equals
                // what flash has. Only the new data can be awaited, so the slot leaves
                // `unawaited` with the current epoch.
                if at.state != State::Writing {
                    at.epoch = epoch;
                    self.unawaited -= 1;
                }
                (at.state, at.next_epoch) = (State::WritingDirty, epoch);
                self.dirty += 1;
                self.order_write(page, true);
                Admit::Taken
            }
        }
    }

    /// The host gives up `page`. Pages that were already flushed are written all the same.
    pub fn trim(&mut self, page: u32) {
        let Some(slot) = self.slots.find(page) else { return };
        match self.slots.get(slot).state {
            State::Clean => {
                self.slots.unlink(&mut self.clean, slot);
                self.slots.remove(slot);
            }
            State::Dirty => {
                if self.policy == BufferPolicy::Bplru {
                    self.blocks.dropped(page);
                } else {
                    self.slots.unlink(&mut self.ready, slot);
                }
                self.dirty -= 1;
                // Data that the host gave up cannot be made durable any more. A flush must not
                // wait for it.
                self.flushed(slot);
                self.slots.remove(slot);
            }
            State::Writing | State::WritingDirty | State::Rewriting => self.trim_writing(slot),
            State::WritingTrimmed => {}
        }
    }

    /// Chooses what is written back next and appends it to `out`: one page, or with BPLRU one whole
    /// logical block in order. Without `force` only when the policy wants it: from the high mark
    /// down to the low one. False when there is nothing to write back (now): pages that were written
    /// again while on their way come after [`written`](WriteBuffer::written).
    pub fn next_write_back(&mut self, force: bool, out: &mut Vec<WriteBack>) -> bool {
        // Two marks give hysteresis. With a single mark, the buffer would write back one page at a
        // time as soon as the mark is reached, and no page would stay long enough to absorb a
        // second write.
        self.draining =
            self.dirty >= self.marks.high || (self.draining && self.dirty > self.marks.low);
        if !force && !self.draining {
            return false;
        }
        if self.policy == BufferPolicy::Bplru {
            return self.write_back_block(out);
        }
        let Some(slot) = self.victim() else { return false };
        self.slots.unlink(&mut self.ready, slot);
        let at = self.slots.get_mut(slot);
        (at.state, at.referenced) = (State::Writing, false);
        out.push(WriteBack { page: at.page, padding: false });
        self.dirty -= 1;
        self.in_write_back += 1;
        true
    }

    /// The page that is likely to be flushed next, so that its data can be prefetched.
    pub fn upcoming(&self) -> Option<u32> {
        let slot = self.ready.oldest();
        (slot != NO_SLOT).then(|| self.slots.get(slot).page)
    }

    /// `page`, which was handed out, is on flash. It is clean now, unless it was written again
    /// since. To be called once for each page handed out, and for no other.
    pub fn written(&mut self, page: u32) {
        let bplru = self.policy == BufferPolicy::Bplru;
        let slot = self.slots.find(page);
        let slot = slot.filter(|slot| self.slots.get(*slot).state.is_writing());
        // With BPLRU the block knows of padding, which has no slot.
        let was_out = if bplru { self.blocks.written(page) } else { slot.is_some() };
        debug_assert!(was_out, "page {page} was not handed out");
        if !was_out {
            return;
        }
        self.in_write_back -= 1;
        let Some(slot) = slot else { return };
        match self.slots.get(slot).state {
            State::Writing => {
                self.flushed(slot);
                self.keep_clean(slot);
            }
            State::Rewriting => {
                self.unawaited -= 1;
                self.keep_clean(slot);
            }
            State::WritingDirty => {
                let next = self.slots.get(slot).next_epoch;
                // The version that a flush waits for may be the one that has just arrived.
                // The second version was written after the flush began. The flush waits for the
                // first version only, and that has arrived. Else the flush waits for the second
                // one, too.
                if next == self.epoch {
                    self.flushed(slot);
                }
                let at = self.slots.get_mut(slot);
                (at.state, at.epoch, at.referenced) = (State::Dirty, next, false);
                // BPLRU keeps the page in the order of its block, which `blocks.written` has
                // listed again. Other policies list single pages.
                if !bplru {
                    self.slots.push(&mut self.ready, slot);
                }
            }
            _ => {
                self.unawaited -= 1;
                self.slots.remove(slot);
            }
        }
    }
}

/// Parts of the operations above.
impl WriteBuffer {
    /// Frees a slot if none is free: true when there is one.
    fn make_room(&mut self) -> bool {
        if !self.slots.is_full() {
            return true;
        }
        let Some(slot) = self.oldest_clean() else { return false };
        self.slots.unlink(&mut self.clean, slot);
        self.slots.remove(slot);
        true
    }

    fn oldest_clean(&mut self) -> Option<u32> {
        WriteBuffer::oldest(self.policy, &mut self.slots, &mut self.clean)
    }

    fn victim(&mut self) -> Option<u32> {
        WriteBuffer::oldest(self.policy, &mut self.slots, &mut self.ready)
    }

    /// The slot of `list` that goes first.
    fn oldest(policy: BufferPolicy, slots: &mut Slots, list: &mut SlotList) -> Option<u32> {
        loop {
            let slot = list.oldest();
            if slot == NO_SLOT {
                return None;
            }
            // A page that was used since the hand last passed loses its mark and gets a second
            // round. Each turn of this loop clears one mark, so it ends after one round at most.
            if policy != BufferPolicy::Clock || !slots.get(slot).referenced {
                return Some(slot);
            }
            slots.get_mut(slot).referenced = false;
            slots.refresh(list, slot);
        }
    }

    fn touch_clean(&mut self, slot: u32) {
        match self.policy {
            BufferPolicy::Lru | BufferPolicy::Bplru => self.slots.refresh(&mut self.clean, slot),
            BufferPolicy::Clock => self.slots.get_mut(slot).referenced = true,
            BufferPolicy::Fifo | BufferPolicy::None => {}
        }
    }

    fn touch_ready(&mut self, slot: u32) {
        match self.policy {
            BufferPolicy::Lru => self.slots.refresh(&mut self.ready, slot),
            BufferPolicy::Clock => self.slots.get_mut(slot).referenced = true,
            BufferPolicy::Fifo | BufferPolicy::Bplru | BufferPolicy::None => {}
        }
    }

    /// Tells the order of blocks of a write.
    fn order_write(&mut self, page: u32, newly: bool) {
        if self.policy == BufferPolicy::Bplru {
            self.blocks.wrote(page, newly);
        }
    }

    /// A slot in no list became dirty.
    fn became_dirty(&mut self, slot: u32) {
        self.dirty += 1;
        if self.policy == BufferPolicy::Bplru {
            self.blocks.wrote(self.slots.get(slot).page, true);
        } else {
            self.slots.push(&mut self.ready, slot);
        }
    }

    /// A slot in no list is the same on flash now.
    fn keep_clean(&mut self, slot: u32) {
        // Without a read cache a clean page is of no use. Its slot is free at once, and the next
        // write needs no search for a page to throw out.
        if self.cache_reads {
            self.slots.get_mut(slot).state = State::Clean;
            self.slots.push(&mut self.clean, slot);
        } else {
            self.slots.remove(slot);
        }
    }

    /// A page is on flash, or given up: one less for the flush, if that waits for it.
    fn flushed(&mut self, slot: u32) {
        if self.slots.get(slot).epoch != self.epoch {
            self.flush_left -= 1;
        }
    }

    fn trim_writing(&mut self, slot: u32) {
        let state = self.slots.get(slot).state;
        if state.is_dirty() {
            self.dirty -= 1;
            if self.policy == BufferPolicy::Bplru {
                self.blocks.dropped(self.slots.get(slot).page);
            }
        }
        if state != State::Rewriting {
            self.flushed(slot);
            self.unawaited += 1;
        }
        self.slots.get_mut(slot).state = State::WritingTrimmed;
    }

    fn write_back_block(&mut self, out: &mut Vec<WriteBack>) -> bool {
        let Some(block) = self.blocks.victim() else { return false };
        let first = block * self.pages_per_block;
        let end = first.saturating_add(self.pages_per_block).min(self.logical_pages);
        for page in first..end {
            let slot = self.slots.find(page);
            // BPLRU writes the block as a whole, pages without data in the buffer included. This
            // padding makes the write sequential for an FTL that maps blocks, which can then
            // switch instead of merge.
            out.push(WriteBack { page, padding: slot.is_none() });
            let Some(slot) = slot else { continue };
            let dirty = self.slots.get(slot).state == State::Dirty;
            if dirty {
                self.dirty -= 1;
            } else {
                self.slots.unlink(&mut self.clean, slot);
                // A clean page is written again although flash has it. No flush waits for it,
                // and without this count `begin_flush` would.
                self.unawaited += 1;
            }
            self.slots.get_mut(slot).state = if dirty { State::Writing } else { State::Rewriting };
        }
        self.in_write_back += end - first;
        self.blocks.handed_out(block, end - first);
        true
    }
}
