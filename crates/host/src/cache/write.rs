//! The writes to the device: write-through, write-back, transactions of the journal.

use ssdyno_block::{Op, Request, Time};

use super::Journal;
use super::state::{CacheState, Lookup, METADATA, Piece};

/// Descriptor and commit block of a transaction.
const FRAME_PAGES: u64 = 2;

impl CacheState {
    /// The writer waits for its data, then for its metadata or their transaction.
    pub(super) fn write_through(
        &mut self,
        (first, end): (u64, u64),
        changed: std::ops::Range<u64>,
        lookup: &mut Lookup,
    ) {
        let journal = self.file_system.as_ref().map_or(Journal::None, |table| table.journal);
        if journal == Journal::Data {
            // Once to the journal at once, once to its place by write-back.
            return self.journal_write(end - first + (changed.end - changed.start), lookup);
        }
        self.write_dirty(first, end, lookup);
        if changed.is_empty() {
            return;
        }
        lookup.pieces.push_back(Piece::Barrier);
        match journal {
            Journal::None => {
                for page in changed {
                    self.write_dirty(page, page + 1, lookup);
                }
            }
            Journal::Ordered | Journal::Data => {
                self.journal_write(changed.end - changed.start, lookup);
            }
        }
    }

    /// Commands for the dirty pages from `first` to `end`.
    fn write_dirty(&mut self, first: u64, end: u64, lookup: &mut Lookup) {
        let mut at = first;
        while let Some(page) = self.pages.dirty_from(at).filter(|page| *page < end) {
            // Adjacent dirty pages become one command up to the cluster size. A command per page
            // would turn sequential writes of S4-29 into many small ones.
            let most = self.run_pages(page).min(end - page);
            let count = self.pages.write_run(page, most);
            if count > 0 {
                self.count_write(count);
                self.command(Op::Write, page, count, true, lookup);
            }
            // One that is on its way is left to write-back.
            at = page + count.max(1);
        }
    }

    fn count_write(&mut self, pages: u64) {
        self.account.pages_written += pages;
        self.account.write_commands += 1;
    }

    /// Pages that may go with `page` in one command: pages of metadata lie far from each other.
    fn run_pages(&self, page: u64) -> u64 {
        match page >= METADATA {
            // Metadata pages lie an extent apart on the device, so two neighbouring page numbers
            // are not adjacent there and cannot share a command.
            true => 1,
            false => (self.config.cluster.0 / self.config.page.0).min(self.command_pages),
        }
    }

    /// A transaction of `pages` and its frame, one after another in the journal.
    fn journal_write(&mut self, pages: u64, lookup: &mut Lookup) {
        for request in self.transaction_requests(pages) {
            lookup.pieces.push_back(Piece::Command { request, page: 0, pages: 0, wait: true });
        }
    }

    /// The commands of a transaction of `pages`.
    fn transaction_requests(&mut self, pages: u64) -> Vec<Request> {
        let page = self.config.page.0;
        let size = self.file_system.as_ref().map_or(64 * page, |table| table.journal_size.0);
        let room = size.min(self.capacity_bytes) / page;
        // A transaction has a descriptor and a commit block besides its pages. It cannot exceed the
        // journal; a larger one would overwrite its own begin.
        let mut left = (pages + FRAME_PAGES).min(room);
        self.account.journal_pages += left;
        let mut all = Vec::new();
        while left > 0 {
            let count = left.min(room - self.journal_at).min(self.command_pages);
            all.push(Request::write(self.journal_at * page, (count * page) as u32));
            // The journal is a ring at the start of the device, so commits are sequential writes.
            // On a disk each commit is therefore a seek away from the data and back (S4-24).
            self.journal_at = (self.journal_at + count) % room;
            left -= count;
        }
        all
    }

    pub(super) fn flush(&mut self, lookup: &mut Lookup) {
        self.write_dirty(0, u64::MAX, lookup);
        if let Some(pages) = self.take_transaction() {
            lookup.pieces.push_back(Piece::Barrier);
            self.journal_write(pages, lookup);
        }
        lookup.pieces.push_back(Piece::Barrier);
        let request = Request::flush();
        lookup.pieces.push_back(Piece::Command { request, page: 0, pages: 0, wait: true });
    }

    fn take_transaction(&mut self) -> Option<u64> {
        let pages = self.transaction.len() as u64 + self.transaction_data;
        self.transaction.clear();
        self.transaction_data = 0;
        (pages > 0).then_some(pages)
    }

    /// The commit of the transaction: its commands; none if nothing has changed.
    pub(crate) fn commit(&mut self) -> Vec<Request> {
        match self.take_transaction() {
            Some(pages) => self.transaction_requests(pages),
            None => Vec::new(),
        }
    }

    /// True if data must be at its place before a commit.
    pub(crate) fn is_ordered(&self) -> bool {
        self.file_system.as_ref().is_some_and(|table| table.journal == Journal::Ordered)
    }

    /// Pages that are old at `now` shall be written.
    pub(crate) fn expire(&mut self, now: Time) {
        if now >= self.config.expire.0 {
            self.take_all(now - self.config.expire.0);
        }
    }

    /// Everything dirty at `before` shall be written.
    pub(crate) fn take_all(&mut self, before: Time) {
        while let Some(page) = self.pages.take_old(before) {
            self.due.insert(page);
        }
    }

    /// Where too much is dirty, the oldest pages shall be written.
    pub(crate) fn write_excess(&mut self, now: Time) {
        let most = self.share(self.config.dirty_background);
        // Pages that are already due still count as dirty. Without their number in the limit, the
        // loop would select more pages at every call although write-back is under way.
        while self.pages.dirty() > most + self.due.len() {
            let Some(page) = self.pages.take_old(now) else { return };
            self.due.insert(page);
        }
    }

    /// The next pages of write-back: upwards from its position, then from the lowest page again.
    pub(crate) fn next_write(&mut self) -> Option<(Request, u64, u32)> {
        loop {
            // Write-back goes upwards from its last position, like an elevator. Writing by age
            // would seek between files on a disk for every page.
            let upwards = self.due.range(self.cursor..).next();
            let page = upwards.or_else(|| self.due.first()).copied()?;
            self.due.remove(&page);
            let count = self.pages.write_run(page, self.run_pages(page));
            if count == 0 {
                // A writer has written it itself.
                continue;
            }
            for more in page + 1..page + count {
                self.due.remove(&more);
            }
            self.cursor = page + count;
            self.count_write(count);
            return Some((self.request(Op::Write, page, count), page, count as u32));
        }
    }

    /// True if write-back has nothing to write.
    pub(crate) fn nothing_due(&self) -> bool {
        self.due.is_empty()
    }
}
