//! Writes through the buffer, write-back and flush.

use ssdyno_block::{Request, Status, Time};
use ssdyno_ftl::buffer::{Admit, WriteBack};

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
            if next < end && self.write_backs.is_empty() {
                // Full, and nothing is on its way out: take what the policy would keep.
                self.start_write_backs(now, true);
            }
            let hopeless = self.write_backs.is_empty() && next == page;
            if next < end && !hopeless {
                if let Some(front) = self.stalled.front_mut() {
                    front.1 = next;
                }
                // Full: the next write-back to end comes back here.
                if next == page {
                    return;
                }
                continue;
            }
            if next < end {
                self.requests.get_mut(slot).status = Status::ReadOnly;
            }
            self.stalled.pop_front();
            self.request_part_done(now, slot);
        }
    }

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
            // The rest of the page comes from flash before the request is answered.
            self.ops.clear();
            if self.ftl.read(page, &mut self.ops) {
                self.requests.hold(slot);
                self.enqueue(now, Owner::Request(slot), page);
            }
        }
        true
    }

    /// Starts the write-backs that the policy wants, or all (`force`).
    pub(super) fn start_write_backs(&mut self, now: Time, force: bool) {
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
                    let ticket = self.next_write_back();
                    self.write_back_page(now, *page, true, ticket);
                }
            }
        }
        self.batch = batch;
    }

    fn next_write_back(&mut self) -> u64 {
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        self.write_backs.insert(ticket);
        ticket
    }

    /// Reads a page that is written again only because its block is.
    fn pad(&mut self, now: Time, page: u32) {
        self.ops.clear();
        if self.ftl.read(page, &mut self.ops) {
            let ticket = self.next_write_back();
            let task = self.tasks.insert(Goal::Pad { page, ticket });
            self.enqueue(now, Owner::Task(task), page);
        }
    }

    /// Writes a page of the buffer, or (`buffered` false) one that pads a block.
    pub(super) fn write_back_page(&mut self, now: Time, page: u32, buffered: bool, ticket: u64) {
        self.ops.clear();
        let plane = self.preferred_plane();
        let refused = self.ftl.write(page, plane, &mut self.ops).is_err();
        // A worn-out device refuses; what is left in the buffer can only be dropped.
        self.read_only |= refused;
        let task = self.tasks.insert(Goal::WrittenBack { page, buffered, ticket });
        self.enqueue_ops(now, Owner::Task(task));
        if self.tasks.pending(task) == 0 {
            self.tasks.remove(task);
            self.forget_write_back(page, buffered, ticket);
        }
    }

    fn forget_write_back(&mut self, page: u32, buffered: bool, ticket: u64) {
        if let (true, Some(buffer)) = (buffered, &mut self.buffer) {
            buffer.written(page);
        }
        self.write_backs.remove(&ticket);
    }

    pub(super) fn written_back(&mut self, now: Time, page: u32, buffered: bool, ticket: u64) {
        self.forget_write_back(page, buffered, ticket);
        self.after_write_back(now);
    }

    /// Room may have come free: goes on with what waits for it.
    pub(super) fn after_write_back(&mut self, now: Time) {
        self.start_write_backs(now, false);
        self.admit_stalled(now);
        self.finish_flushes(now);
    }

    /// A flush: everything in a volatile buffer goes to flash.
    pub(super) fn flush_all(&mut self, now: Time, slot: u32) {
        let protected = self.config.buffer.protected;
        if self.buffer.is_some() && !protected {
            self.start_write_backs(now, true);
            self.requests.hold(slot);
            self.flushes.push_back((slot, self.next_ticket));
            self.finish_flushes(now);
        }
        if !protected {
            self.ops.clear();
            self.ftl.flush(&mut self.ops);
            self.enqueue_for_request(now, slot);
        }
    }

    fn finish_flushes(&mut self, now: Time) {
        let oldest = self.write_backs.first().copied().unwrap_or(u64::MAX);
        while let Some((slot, ticket)) = self.flushes.front().copied() {
            if oldest < ticket {
                return;
            }
            self.flushes.pop_front();
            self.request_part_done(now, slot);
        }
    }
}
