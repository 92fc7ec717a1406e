//! Writes through the buffer, write-back and flush.

use std::collections::VecDeque;

use ssdyno_block::{Request, Status, Time};
use ssdyno_ftl::buffer::{Admit, WriteBack, WriteBuffer};

use super::Ssd;
use crate::task::{Goal, Owner};

/// The write buffer, if there is one, and the requests that wait for it.
#[derive(Debug)]
pub(super) struct Buffer {
    pub(super) pages: Option<WriteBuffer>,
    /// Writes that found the buffer full: slot and next page.
    stalled: VecDeque<(u32, u32)>,
    /// Flushes that wait for the buffer, one after another.
    flushes: VecDeque<u32>,
    batch: Vec<WriteBack>,
    /// A write was refused: the flash is worn out.
    pub(super) read_only: bool,
}

impl Buffer {
    pub(super) fn new(pages: Option<WriteBuffer>) -> Buffer {
        let (stalled, flushes) = (VecDeque::new(), VecDeque::new());
        Buffer { pages, stalled, flushes, batch: Vec::new(), read_only: false }
    }

    /// False if all goes to the flash at once.
    #[inline]
    pub(super) fn is_there(&self) -> bool {
        self.pages.is_some()
    }

    /// True if `page` is read from the buffer.
    #[inline]
    pub(super) fn read(&mut self, page: u32) -> bool {
        self.pages.as_mut().is_some_and(|pages| pages.read(page))
    }

    /// `page` was read from the flash, and may stay.
    #[inline]
    pub(super) fn fill(&mut self, page: u32) {
        if let Some(pages) = &mut self.pages {
            pages.fill(page);
        }
    }

    /// Forgets `page`.
    pub(super) fn trim(&mut self, page: u32) {
        if let Some(pages) = &mut self.pages {
            pages.trim(page);
        }
    }

    /// A page that was handed out is in the flash, or was dropped.
    #[inline]
    fn written(&mut self, page: u32) {
        if let Some(pages) = &mut self.pages {
            pages.written(page);
        }
    }

    /// Fills the batch with the next pages to write back, as the policy selects them, or with all (`force`); false if
    /// there is nothing.
    fn next_write_back(&mut self, force: bool, batch: &mut Vec<WriteBack>) -> bool {
        self.pages.as_mut().is_some_and(|pages| pages.next_write_back(force, batch))
    }
}

impl Ssd {
    /// Takes the pages of a write into the buffer; waits where it is full.
    pub(super) fn write_buffered(&mut self, now: Time, slot: u32) {
        let Request { offset_bytes, length_bytes, .. } = self.requests.get(slot).request;
        let first = self.pages.touched(offset_bytes, length_bytes).start;
        self.requests.hold(slot);
        if let Some(explain) = &mut self.explain {
            explain.wants_room(now, slot);
        }
        self.buffer.stalled.push_back((slot, first));
        self.admit_stalled(now);
    }

    /// Lets waiting writes into the buffer, in their order, as far as there is room.
    fn admit_stalled(&mut self, now: Time) {
        while let Some((slot, page)) = self.buffer.stalled.front().copied() {
            let Request { offset_bytes, length_bytes, .. } = self.requests.get(slot).request;
            let end = self.pages.touched(offset_bytes, length_bytes).end;
            let mut next = page;
            while next < end && self.admit(now, slot, next) {
                next += 1;
            }
            self.start_write_backs(now, false);
            if next == end {
                self.buffer.stalled.pop_front();
                if let Some(explain) = &mut self.explain {
                    explain.has_room(now, slot);
                }
                self.request_part_done(now, slot);
                continue;
            }
            if let Some(front) = self.buffer.stalled.front_mut() {
                front.1 = next;
            }
            // Full, with write-backs under way (a full buffer always has one to begin): the next of
            // them to end comes back here.
            if self.buffer.pages.as_ref().is_some_and(|pages| pages.in_write_back() > 0) {
                return;
            }
        }
    }

    /// False if the buffer has no room for `page`.
    fn admit(&mut self, now: Time, slot: u32, page: u32) -> bool {
        if self.buffer.read_only {
            self.requests.get_mut(slot).status = Status::ReadOnly;
            return true;
        }
        let request = self.requests.get(slot).request;
        let merge = self.must_merge(&request, page);
        let Some(pages) = &mut self.buffer.pages else { return true };
        // The look-up comes before the page is written to the buffer. Afterwards the page would
        // always be present, and the device would never read the rest of a partial page from flash.
        let missing = merge && !pages.read(page);
        // A full buffer gives back-pressure. If it grew instead, the device would acknowledge
        // writes at the speed of DRAM without limit, and steady state would never show the flash.
        if pages.write(page) == Admit::Full {
            return false;
        }
        if missing {
            // The rest of the page comes from flash before the request completes.
            if self.flash.read(page) {
                self.requests.hold(slot);
                self.enqueue(now, Owner::Request(slot), page);
            }
        }
        self.flash.contents.written(page);
        true
    }

    /// Starts the write-backs that the policy wants, or all (`force`).
    fn start_write_backs(&mut self, now: Time, force: bool) {
        let mut batch: Vec<WriteBack> = std::mem::take(&mut self.buffer.batch);
        loop {
            batch.clear();
            if !self.buffer.next_write_back(force, &mut batch) {
                break;
            }
            for WriteBack { page, padding } in &batch {
                if *padding {
                    self.pad(now, *page);
                } else {
                    self.write_back_page(now, *page);
                }
            }
            if let Some(page) = self.buffer.pages.as_ref().and_then(WriteBuffer::upcoming) {
                self.flash.ftl.prefetch(page);
            }
        }
        self.buffer.batch = batch;
    }

    /// Reads a page that is written again only because its block is.
    fn pad(&mut self, now: Time, page: u32) {
        if self.flash.read(page) {
            let task = self.tasks.insert(Goal::Pad { page });
            self.enqueue(now, Owner::Task(task), page);
        } else {
            // Nothing there to write again.
            self.buffer.written(page);
        }
    }

    /// Writes a page of the buffer, or one that pads a block.
    pub(super) fn write_back_page(&mut self, now: Time, page: u32) {
        // A worn-out device refuses; what is left in the buffer can only be dropped.
        self.buffer.read_only |= self.flash.write(page).is_err();
        let task = self.tasks.insert(Goal::WrittenBack { page });
        self.flash.contents.stored(page);
        self.enqueue_ops(now, Owner::Task(task));
        // A refused write, or one that leaves only cleaning, has no operation to wait for. Without
        // this case the page would stay in write-back for ever and a flush would never end.
        if self.tasks.pending(task) == 0 {
            self.tasks.remove(task);
            self.buffer.written(page);
        }
    }

    /// A page reached the flash.
    pub(super) fn written_back(&mut self, now: Time, page: u32) {
        self.buffer.written(page);
        self.after_write_back(now);
    }

    /// Room may have come free: goes on with what waits for it.
    pub(super) fn after_write_back(&mut self, now: Time) {
        if let Some(explain) = &mut self.explain {
            explain.room_came();
        }
        // While a flush is pending the policy is ignored: it could keep pages in the buffer to fill
        // a block, and the flush would wait until new writes arrive.
        self.start_write_backs(now, !self.buffer.flushes.is_empty());
        self.admit_stalled(now);
        self.finish_flushes(now);
    }

    /// A flush: everything in a volatile buffer goes to flash, and the mapping table after it.
    pub(super) fn flush_all(&mut self, now: Time, slot: u32) {
        // A buffer with power-loss protection is not volatile, so Flush has nothing to do.
        // Enterprise drives complete it at once for the same reason.
        if self.config.buffer.protected {
            return;
        }
        self.requests.hold(slot);
        self.buffer.flushes.push_back(slot);
        // Flushes run one after another: each covers the pages that were in the buffer at its
        // begin. Two at once would need a set of pages per flush.
        if self.buffer.flushes.len() == 1 {
            self.begin_flush(now);
        }
    }

    fn begin_flush(&mut self, now: Time) {
        if let Some(pages) = &mut self.buffer.pages {
            pages.begin_flush();
        }
        self.start_write_backs(now, true);
        self.finish_flushes(now);
    }

    /// Answers the flush at the front once nothing is left that it waits for; flushes run one
    /// after another.
    fn finish_flushes(&mut self, now: Time) {
        let left = self.buffer.pages.as_ref().map_or(0, WriteBuffer::flush_left);
        if left > 0 {
            return;
        }
        let Some(slot) = self.buffer.flushes.pop_front() else { return };
        if let Some(explain) = &mut self.explain {
            explain.flushed(slot);
        }
        // The mapping table becomes durable after the data. In the opposite order, a power loss
        // between both would leave a map that points to pages without data.
        self.flash.flush();
        self.enqueue_for_request(now, slot);
        self.request_part_done(now, slot);
        if !self.buffer.flushes.is_empty() {
            self.begin_flush(now);
        }
    }
}
