//! Requests between submission and completion, and their bios.

use alloc::collections::{TryReserveError, VecDeque};
use alloc::vec::Vec;

use ssdyno_block::{Completion, MonotonicTime, Op, Request, Status, Token};
use ssdyno_spec::ring::{PAGE_BYTES, RingCommandKind, SECTOR_BYTES};

const PAGE: u64 = PAGE_BYTES as u64;

/// The content of one bio: a page, or sectors of it (S0-1, S0-3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Bio {
    pub(crate) kind: RingCommandKind,
    /// Offset of the page on the device, in bytes.
    pub(crate) device_offset: u64,
    /// Address of the page in host memory, if the request gave one.
    pub(crate) address: Option<u64>,
    pub(crate) first_sector: u8,
    pub(crate) sectors: u8,
    pub(crate) pages: u32,
    pub(crate) urgent: bool,
}

/// A request in the driver.
#[derive(Clone, Copy, Debug)]
struct Entry {
    token: Token,
    request: Request,
    address: Option<u64>,
    urgent: bool,
    /// Bios made so far, and all of them.
    made: u32,
    bios: u32,
    /// Bios that have not completed.
    open: u32,
    status: Status,
    /// When its first bio went to the card.
    accepted: Option<MonotonicTime>,
    submitted: MonotonicTime,
}

/// All requests. Nothing is allocated after the start.
#[derive(Debug)]
pub(crate) struct Requests {
    entries: Vec<Entry>,
    free: Vec<u32>,
    /// Requests with bios that are not yet in the ring: first come, first served (S0-2).
    waiting: VecDeque<u32>,
    depth: u32,
}

/// Bios of a request: one for each page it touches (S0-4); trims and flushes have one.
fn bios_of(request: &Request) -> u32 {
    match request.op {
        Op::Read | Op::Write => {
            let end = request.offset_bytes + u64::from(request.length_bytes);
            // The number of pages touched and not the length decides: a request of one page that
            // begins inside a page touches two (S0-4).
            (end.div_ceil(PAGE) - request.offset_bytes / PAGE) as u32
        }
        Op::Trim | Op::Flush => 1,
    }
}

impl Requests {
    pub(crate) fn new(depth: u32) -> Result<Requests, TryReserveError> {
        let (mut entries, mut free, mut waiting) = (Vec::new(), Vec::new(), VecDeque::new());
        entries.try_reserve_exact(depth as usize)?;
        free.try_reserve_exact(depth as usize)?;
        waiting.try_reserve_exact(depth as usize)?;
        Ok(Requests { entries, free, waiting, depth })
    }

    /// Requests in the driver.
    pub(crate) fn len(&self) -> u32 {
        (self.entries.len() - self.free.len()) as u32
    }

    /// Takes a request; false if there is no room.
    pub(crate) fn insert(
        &mut self,
        now: MonotonicTime,
        request: Request,
        token: Token,
        address: Option<u64>,
        urgent: bool,
    ) -> bool {
        let bios = bios_of(&request);
        let entry = Entry {
            token,
            request,
            address,
            urgent,
            made: 0,
            bios,
            open: bios,
            status: Status::Ok,
            accepted: None,
            submitted: now,
        };
        // The list grows no further than its reserved room. So nothing is allocated here,
        // although the slots come into being one by one.
        let slot = match self.free.pop() {
            Some(slot) => {
                self.entries[slot as usize] = entry;
                slot
            }
            None if self.entries.len() < self.depth as usize => {
                self.entries.push(entry);
                (self.entries.len() - 1) as u32
            }
            None => return false,
        };
        self.waiting.push_back(slot);
        true
    }

    /// The next bio in order of arrival, with the slot of its request, and whether it is the last
    /// of it.
    pub(crate) fn next_bio(&mut self) -> Option<(u32, Bio, bool)> {
        let slot = *self.waiting.front()?;
        let entry = &mut self.entries[slot as usize];
        let bio = entry.bio(entry.made);
        entry.made += 1;
        let last = entry.made == entry.bios;
        if last {
            self.waiting.pop_front();
        }
        Some((slot, bio, last))
    }

    /// The next bio needs a page of the driver's own.
    pub(crate) fn next_needs_page(&self) -> bool {
        let next = self.waiting.front().map(|slot| &self.entries[*slot as usize]);
        next.is_some_and(|e| e.address.is_none() && matches!(e.request.op, Op::Read | Op::Write))
    }

    pub(crate) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// A bio of `slot` is with the card.
    pub(crate) fn sent(&mut self, slot: u32, now: MonotonicTime) {
        self.entries[slot as usize].accepted.get_or_insert(now);
    }

    /// A bio of `slot` completed; the completion of the request once all are.
    pub(crate) fn answered(
        &mut self,
        slot: u32,
        status: Status,
        now: MonotonicTime,
    ) -> Option<Completion<MonotonicTime>> {
        let entry = &mut self.entries[slot as usize];
        entry.open -= 1;
        // The first error is kept. Bios complete in order, so it is the error of the lowest
        // address.
        if entry.status == Status::Ok {
            entry.status = status;
        }
        if entry.open > 0 {
            return None;
        }
        let Entry { token, status, submitted, accepted, .. } = *entry;
        self.free.push(slot);
        Some(Completion { token, status, accepted: accepted.unwrap_or(submitted), completed: now })
    }

    /// Takes the bios that are not yet in the ring away: for a card that is gone. Gives one request
    /// and how many bios it loses.
    pub(crate) fn drop_waiting(&mut self) -> Option<(u32, u32)> {
        let slot = self.waiting.pop_front()?;
        let entry = &mut self.entries[slot as usize];
        let lost = entry.bios - entry.made;
        entry.made = entry.bios;
        Some((slot, lost))
    }
}

impl Entry {
    fn bio(&self, number: u32) -> Bio {
        let Request { op, offset_bytes, length_bytes } = self.request;
        // Only the last bio is urgent. An interrupt for an earlier one could not complete the
        // request.
        let urgent = self.urgent && number + 1 == self.bios;
        let end = offset_bytes + u64::from(length_bytes);
        let (kind, device_offset, pages) = match op {
            Op::Read => {
                (RingCommandKind::Read, (offset_bytes / PAGE + u64::from(number)) * PAGE, 1)
            }
            Op::Write => {
                (RingCommandKind::Write, (offset_bytes / PAGE + u64::from(number)) * PAGE, 1)
            }
            Op::Trim => {
                // A page that is trimmed only in part keeps its other sectors. The card forgets
                // whole pages, so the range is rounded inwards; it may be empty then.
                let first = offset_bytes.div_ceil(PAGE);
                let pages = (end / PAGE).saturating_sub(first);
                (RingCommandKind::Trim, if pages > 0 { first * PAGE } else { 0 }, pages as u32)
            }
            Op::Flush => (RingCommandKind::Flush, 0, 0),
        };
        let (mut first_sector, mut sectors) = (0, 0);
        if matches!(kind, RingCommandKind::Read | RingCommandKind::Write) {
            let sector = u64::from(SECTOR_BYTES);
            let from = offset_bytes.max(device_offset) - device_offset;
            let to = end.min(device_offset + PAGE) - device_offset;
            first_sector = (from / sector) as u8;
            sectors = (to.div_ceil(sector) - from / sector) as u8;
        }
        let address = self.address.map(|first| first + u64::from(number) * PAGE);
        Bio { kind, device_offset, address, first_sector, sectors, pages, urgent }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use super::*;

    #[test]
    fn a_request_is_one_bio_for_each_page_it_touches() {
        let mut requests = Requests::new(4).unwrap();
        let request = Request::write(4096 - 512, 512 + 4096 + 1024);
        assert!(requests.insert(MonotonicTime::ZERO, request, Token(7), Some(0x1_0000), true));
        let mut bios = alloc::vec::Vec::new();
        while let Some((slot, bio, last)) = requests.next_bio() {
            assert_eq!(slot, 0);
            bios.push((bio.device_offset, bio.first_sector, bio.sectors, bio.address, last));
            assert_eq!(bio.urgent, last);
        }
        let expected = [
            (0, 7, 1, Some(0x1_0000), false),
            (4096, 0, 8, Some(0x1_1000), false),
            (8192, 0, 2, Some(0x1_2000), true),
        ];
        assert_eq!(bios, expected);
        assert_eq!(requests.answered(0, Status::Ok, MonotonicTime::ZERO), None);
        assert_eq!(requests.answered(0, Status::Error, MonotonicTime::ZERO), None);
        let done = requests.answered(0, Status::Ok, MonotonicTime::from_ns(1000)).unwrap();
        assert_eq!((done.token, done.status), (Token(7), Status::Error));
        assert_eq!(requests.len(), 0);
    }

    #[test]
    fn a_trim_forgets_whole_pages_only() {
        let mut requests = Requests::new(4).unwrap();
        assert!(requests.insert(
            MonotonicTime::ZERO,
            Request::trim(512, 12288),
            Token(0),
            None,
            false
        ));
        assert!(requests.insert(
            MonotonicTime::ZERO,
            Request::trim(512, 1024),
            Token(1),
            None,
            false
        ));
        let (_, bio, _) = requests.next_bio().unwrap();
        assert_eq!((bio.device_offset, bio.pages), (4096, 2));
        let (_, bio, _) = requests.next_bio().unwrap();
        assert_eq!((bio.device_offset, bio.pages), (0, 0));
    }
}
