//! Writes through the buffer, write-back and flush.

use ssdyno_block::{Request, Status, Time};
use ssdyno_ftl::buffer::{Admit, WriteBack, WriteBuffer};

use super::Ssd;
use crate::task::{Goal, Owner};

impl Ssd {
    /// Takes the pages of a write into the buffer; waits where it is full.
    pub(super) fn write_buffered(&mut self, now: Time, slot: u32) {
        let Request { offset_bytes, length_bytes, .. } = self.requests.get(slot).request;
        let first = self.pages_of(offset_bytes, length_bytes).start;
        self.requests.hold(slot);
        self.stalled.push_back((slot, first));
        self.admit_stalled(now);
    }

    /// Lets waiting writes into the buffer, in their order, as far as there is room.
    fn admit_stalled(&mut self, now: Time) {
        while let Some((slot, page)) = self.stalled.front().copied() {
            let Request { offset_bytes, length_bytes, .. } = self.requests.get(slot).request;
            let end = self.pages_of(offset_bytes, length_bytes).end;
            let mut next = page;
            while next < end && self.admit(now, slot, next) {
                next += 1;
            }
            self.start_write_backs(now, false);
            if next == end {
                self.stalled.pop_front();
                self.request_part_done(now, slot);
                continue;
            }
            if let Some(front) = self.stalled.front_mut() {
                front.1 = next;
            }
            // Full, with write-backs under way (a full buffer always has one to begin): the next of
            // them to end comes back here.
            if self.buffer.as_ref().is_some_and(|buffer| buffer.in_write_back() > 0) {
                return;
            }
        }
    }

    /// False if the buffer has no room for `page`.
    fn admit(&mut self, now: Time, slot: u32, page: u32) -> bool {
        if self.read_only {
            self.requests.get_mut(slot).status = Status::ReadOnly;
            return true;
        }
        let request = self.requests.get(slot).request;
        let merge = self.must_merge(&request, page);
        let Some(buffer) = &mut self.buffer else { return true };
        let missing = merge && !buffer.read(page);
        if buffer.write(page) == Admit::Full {
            return false;
        }
        if missing {
            // The rest of the page comes from flash before the request completes.
            self.ops.clear();
            if self.ftl.read(page, &mut self.ops) {
                self.requests.hold(slot);
                self.enqueue(now, Owner::Request(slot), page);
            }
        }
        self.contents.written(page);
        true
    }

    /// Starts the write-backs that the policy wants, or all (`force`).
    fn start_write_backs(&mut self, now: Time, force: bool) {
        let mut batch: Vec<WriteBack> = std::mem::take(&mut self.batch);
        loop {
            batch.clear();
            let more = self.buffer.as_mut().is_some_and(|b| b.next_write_back(force, &mut batch));
            if !more {
                break;
            }
            for WriteBack { page, padding } in &batch {
                if *padding {
                    self.pad(now, *page);
                } else {
                    self.write_back_page(now, *page);
                }
            }
            if let Some(page) = self.buffer.as_ref().and_then(WriteBuffer::upcoming) {
                self.ftl.prefetch(page);
            }
        }
        self.batch = batch;
    }

    /// Reads a page that is written again only because its block is.
    fn pad(&mut self, now: Time, page: u32) {
        self.ops.clear();
        if self.ftl.read(page, &mut self.ops) {
            let task = self.tasks.insert(Goal::Pad { page });
            self.enqueue(now, Owner::Task(task), page);
        } else if let Some(buffer) = &mut self.buffer {
            // Nothing there to write again.
            buffer.written(page);
        }
    }

    /// Writes a page of the buffer, or one that pads a block.
    pub(super) fn write_back_page(&mut self, now: Time, page: u32) {
        self.ops.clear();
        let plane = self.preferred_plane();
        // A worn-out device refuses; what is left in the buffer can only be dropped.
        self.read_only |= self.ftl.write(page, plane, &mut self.ops).is_err();
        let task = self.tasks.insert(Goal::WrittenBack { page });
        self.contents.stored(page);
        self.enqueue_ops(now, Owner::Task(task));
        if self.tasks.pending(task) == 0 {
            self.tasks.remove(task);
            if let Some(buffer) = &mut self.buffer {
                buffer.written(page);
            }
        }
    }

    /// A page reached the flash.
    pub(super) fn written_back(&mut self, now: Time, page: u32) {
        if let Some(buffer) = &mut self.buffer {
            buffer.written(page);
        }
        self.after_write_back(now);
    }

    /// Room may have come free: goes on with what waits for it.
    pub(super) fn after_write_back(&mut self, now: Time) {
        self.start_write_backs(now, !self.flushes.is_empty());
        self.admit_stalled(now);
        self.finish_flushes(now);
    }

    /// A flush: everything in a volatile buffer goes to flash, and the mapping table after it.
    pub(super) fn flush_all(&mut self, now: Time, slot: u32) {
        if self.config.buffer.protected {
            return;
        }
        self.requests.hold(slot);
        self.flushes.push_back(slot);
        if self.flushes.len() == 1 {
            self.begin_flush(now);
        }
    }

    fn begin_flush(&mut self, now: Time) {
        if let Some(buffer) = &mut self.buffer {
            buffer.begin_flush();
        }
        self.start_write_backs(now, true);
        self.finish_flushes(now);
    }

    /// Answers the flush at the front once nothing is left that it waits for; flushes run one
    /// after another.
    fn finish_flushes(&mut self, now: Time) {
        let left = self.buffer.as_ref().map_or(0, WriteBuffer::flush_left);
        if left > 0 {
            return;
        }
        let Some(slot) = self.flushes.pop_front() else { return };
        self.ops.clear();
        self.ftl.flush(&mut self.ops);
        self.enqueue_for_request(now, slot);
        self.request_part_done(now, slot);
        if !self.flushes.is_empty() {
            self.begin_flush(now);
        }
    }
}
