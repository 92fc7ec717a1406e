//! The path of a request through the page cache, and the next writes of write-back.

use std::collections::{BTreeSet, HashMap, VecDeque};

use ssdyno_block::{Op, Request, Time};

use super::pages::{Found, Pages};
use super::{CacheConfig, FileSystemConfig, Journal};
use crate::account::CacheAccount;

/// Pages from this number on are metadata: one for each extent.
pub(super) const METADATA: u64 = 1 << 52;

/// The number of sequential readers that are distinguished.
const STREAMS: usize = 64;

/// A step of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Piece {
    /// A command, for `pages` from `page` on; without `wait` the request does not wait for it.
    Command { request: Request, page: u64, pages: u32, wait: bool },
    /// What follows waits for all before it.
    Barrier,
}

/// What a request needs.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Lookup {
    /// Pages that were looked for or added.
    pub(crate) touched: u64,
    /// Commands, in order.
    pub(crate) pieces: VecDeque<Piece>,
    /// Pages that others have asked for and that it waits for.
    pub(crate) awaited: u32,
}

/// Where a reader is.
#[derive(Clone, Copy, Debug)]
struct Stream {
    /// The page after its last request.
    next: u64,
    /// The window that was read ahead last: first page, and the one after the last.
    ahead: (u64, u64),
}

/// The cache of a host.
#[derive(Clone, Debug)]
pub(crate) struct CacheState {
    pub(super) config: CacheConfig,
    pub(super) file_system: Option<FileSystemConfig>,
    pub(super) capacity_bytes: u64,
    /// Pages of one command at the most.
    pub(super) command_pages: u64,
    pub(crate) pages: Pages,
    /// Readers, the one that came last at the end.
    streams: VecDeque<Stream>,
    /// The requests that wait for a page on its way, by token. Looked up in, never walked.
    waiting: HashMap<u64, Vec<u32>>,
    /// Pages that write-back shall write, and where it is.
    pub(super) due: BTreeSet<u64>,
    pub(super) cursor: u64,
    /// Pages of metadata that changed since the last commit.
    pub(super) transaction: BTreeSet<u64>,
    /// Pages of data that changed since then; with [`Journal::Data`].
    pub(super) transaction_data: u64,
    pub(super) journal_at: u64,
    metadata_debt: f64,
    /// Writers wait for write-back.
    holding: bool,
    pub(crate) account: CacheAccount,
}

impl CacheState {
    /// The cache over a device of `capacity_bytes`, whose commands have at most `command_bytes`.
    pub(crate) fn new(
        config: &CacheConfig,
        file_system: Option<&FileSystemConfig>,
        capacity_bytes: u64,
        command_bytes: u32,
    ) -> CacheState {
        CacheState {
            pages: Pages::new((config.size.0 / config.page.0) as usize),
            command_pages: (u64::from(command_bytes) / config.page.0).max(1),
            config: config.clone(),
            file_system: file_system.cloned(),
            capacity_bytes,
            streams: VecDeque::new(),
            waiting: HashMap::new(),
            due: BTreeSet::new(),
            cursor: 0,
            transaction: BTreeSet::new(),
            transaction_data: 0,
            journal_at: 0,
            metadata_debt: 0.0,
            holding: false,
            account: CacheAccount::default(),
        }
    }

    pub(crate) fn config(&self) -> &CacheConfig {
        &self.config
    }

    pub(crate) fn file_system(&self) -> Option<&FileSystemConfig> {
        self.file_system.as_ref()
    }

    pub(super) fn share(&self, share: f64) -> usize {
        (self.config.size.0 as f64 / self.config.page.0 as f64 * share) as usize
    }

    /// True if a writer has to wait: too much is dirty, or has been and still is more than the share
    /// down to which writers wait.
    pub(crate) fn must_wait(&mut self) -> bool {
        let unwritten = self.pages.unwritten();
        let limit = self.config.dirty_limit;
        let down_to = match self.holding {
            true => self.config.dirty_resume.unwrap_or(limit),
            false => limit,
        };
        // Two thresholds form a hysteresis. With one threshold, a writer would run for one page and
        // stop again; the write rate of S4-25 instead swings between 0 and 300 IOPS over seconds.
        self.holding = !self.config.sync && unwritten > self.share(down_to);
        self.holding
    }

    /// Whether anything is dirty, on its way to the device, or waits for a commit.
    pub(crate) fn is_clean(&self) -> bool {
        self.pages.unwritten() == 0 && self.transaction.is_empty() && self.transaction_data == 0
    }

    /// The needs of `request` of the process with `token`, at `now`. The pages are changed at once.
    pub(crate) fn look_up(&mut self, now: Time, token: u32, request: Request) -> Lookup {
        let mut lookup = Lookup::default();
        let page = self.config.page.0;
        let range =
            (request.offset_bytes / page, request.end_bytes().unwrap_or(u64::MAX).div_ceil(page));
        match request.op {
            Op::Read => {
                self.need_metadata(&request, token, &mut lookup);
                self.read(range, token, &mut lookup);
            }
            Op::Write => {
                self.need_metadata(&request, token, &mut lookup);
                self.write(now, range, &request, token, &mut lookup);
            }
            Op::Flush => self.flush(&mut lookup),
            Op::Trim => {
                let piece = Piece::Command { request, page: 0, pages: 0, wait: true };
                lookup.pieces.push_back(piece);
            }
        }
        let unwritten = self.pages.unwritten() as u64;
        self.account.dirty_pages_max = self.account.dirty_pages_max.max(unwritten);
        lookup
    }

    /// The pages of metadata that tell where the data of `request` is.
    fn metadata(&self, request: &Request) -> std::ops::Range<u64> {
        let Some(table) = &self.file_system else { return 0..0 };
        let extent = table.extent.0;
        let end = request.end_bytes().unwrap_or(u64::MAX);
        METADATA + request.offset_bytes / extent..METADATA + end.div_ceil(extent)
    }

    fn need_metadata(&mut self, request: &Request, token: u32, lookup: &mut Lookup) {
        // Metadata come first and form a barrier: a file system cannot read data before it knows
        // where they are. Parallel reads of both would hide one device access per miss.
        let mut missing = false;
        for page in self.metadata(request) {
            lookup.touched += 1;
            match self.pages.use_page(page) {
                Found::Here => {}
                Found::Filling => {
                    self.wait_for(page, token, lookup);
                    missing = true;
                }
                Found::Missing => {
                    self.account.metadata_reads += 1;
                    self.pages.fill(page);
                    self.command(Op::Read, page, 1, true, lookup);
                    missing = true;
                }
            }
        }
        if missing {
            lookup.pieces.push_back(Piece::Barrier);
        }
    }

    fn wait_for(&mut self, page: u64, token: u32, lookup: &mut Lookup) {
        self.waiting.entry(page).or_default().push(token);
        lookup.awaited += 1;
    }

    fn read(&mut self, (first, end): (u64, u64), token: u32, lookup: &mut Lookup) {
        let mut missed = false;
        let mut run = first..first;
        for page in first..end {
            lookup.touched += 1;
            self.account.pages_read += 1;
            let found = self.pages.use_page(page);
            if found == Found::Missing {
                self.pages.fill(page);
                run.end = page + 1;
                missed = true;
                continue;
            }
            self.account.pages_hit += 1;
            self.commands(Op::Read, run, true, lookup);
            run = page + 1..page + 1;
            if found == Found::Filling {
                self.wait_for(page, token, lookup);
            }
        }
        self.commands(Op::Read, run, true, lookup);
        self.read_ahead((first, end), missed, lookup);
    }

    /// Fetches the next window for a reader that goes on where it was.
    fn read_ahead(&mut self, (first, end): (u64, u64), missed: bool, lookup: &mut Lookup) {
        let window = self.config.read_ahead.0 / self.config.page.0;
        if window == 0 {
            return;
        }
        // Each reader has a stream of its own. One global position would lose the sequence as soon
        // as two threads read different places alternately.
        let known = self.streams.iter().position(|stream| stream.next == first);
        let Some(at) = known else {
            self.streams.push_back(Stream { next: end, ahead: (0, 0) });
            // Random reads create a stream each. The oldest stream is dropped, so that a long
            // random run needs neither memory nor a growing search.
            if self.streams.len() > STREAMS {
                self.streams.pop_front();
            }
            return;
        };
        let ahead = self.streams[at].ahead;
        self.streams[at].next = end;
        let from = match (missed, end > ahead.0) {
            (true, _) => end.max(ahead.1),
            (false, true) => ahead.1.max(end),
            (false, false) => return,
        };
        let last = (self.capacity_bytes / self.config.page.0).min(from + window);
        self.streams[at].ahead = (from, last.max(from));
        let mut run = from..from;
        for page in from..last {
            // The window is cut at pages that are present or on their way. A second command for
            // such a page would read it twice and count it as two device accesses.
            if self.pages.has(page) {
                self.commands(Op::Read, run, false, lookup);
                run = page + 1..page + 1;
                continue;
            }
            self.pages.fill(page);
            lookup.touched += 1;
            self.account.pages_ahead += 1;
            run.end = page + 1;
        }
        self.commands(Op::Read, run, false, lookup);
    }

    fn write(
        &mut self,
        now: Time,
        (first, end): (u64, u64),
        request: &Request,
        token: u32,
        lookup: &mut Lookup,
    ) {
        let page_bytes = self.config.page.0;
        let whole = |page: u64| {
            page * page_bytes >= request.offset_bytes
                && request.end_bytes().is_some_and(|end| (page + 1) * page_bytes <= end)
        };
        let mut reads = false;
        for page in first..end {
            lookup.touched += 1;
            match self.pages.use_page(page) {
                // The rest of a page that is written in part must come first.
                Found::Missing if !whole(page) => {
                    self.pages.fill(page);
                    self.command(Op::Read, page, 1, true, lookup);
                    reads = true;
                }
                Found::Filling => self.wait_for(page, token, lookup),
                Found::Missing | Found::Here => {}
            }
            self.account.pages_dirtied += u64::from(self.pages.make_dirty(page, now));
        }
        let changed = self.change_metadata(now, request, lookup);
        if self.config.sync {
            if reads {
                lookup.pieces.push_back(Piece::Barrier);
            }
            self.write_through((first, end), changed, lookup);
        }
    }

    /// Marks the metadata that a write changes; gives the pages.
    fn change_metadata(
        &mut self,
        now: Time,
        request: &Request,
        lookup: &mut Lookup,
    ) -> std::ops::Range<u64> {
        let Some(table) = &self.file_system else { return 0..0 };
        let journal = table.journal;
        self.metadata_debt += table.metadata_share;
        if journal == Journal::Data && !self.config.sync {
            self.transaction_data += u64::from(request.length_bytes).div_ceil(self.config.page.0);
        }
        // The share is a mean per write, for example 0.1. The sum of shares changes metadata at
        // exact intervals without a random draw, so equal runs give equal bytes.
        if self.metadata_debt < 1.0 {
            return 0..0;
        }
        self.metadata_debt -= 1.0;
        let changed = self.metadata(request);
        for page in changed.clone() {
            lookup.touched += 1;
            self.account.pages_dirtied += u64::from(self.pages.make_dirty(page, now));
            if journal != Journal::None && !self.config.sync {
                self.transaction.insert(page);
            }
        }
        changed
    }

    fn commands(&self, op: Op, run: std::ops::Range<u64>, wait: bool, lookup: &mut Lookup) {
        let mut page = run.start;
        while page < run.end {
            let pages = (run.end - page).min(self.command_pages);
            self.command(op, page, pages, wait, lookup);
            page += pages;
        }
    }

    pub(super) fn command(&self, op: Op, page: u64, pages: u64, wait: bool, lookup: &mut Lookup) {
        let request = self.request(op, page, pages);
        lookup.pieces.push_back(Piece::Command { request, page, pages: pages as u32, wait });
    }

    /// The command for `pages` from `page` on; the last page of the device may be cut.
    pub(super) fn request(&self, op: Op, page: u64, pages: u64) -> Request {
        let bytes = self.config.page.0;
        let offset_bytes = match page.checked_sub(METADATA) {
            None => page * bytes,
            Some(extent) => extent * self.file_system.as_ref().map_or(0, |table| table.extent.0),
        };
        // A device need not be a multiple of the page size. The last command is shortened, because
        // a target rejects a request beyond its end.
        let length = (pages * bytes).min(self.capacity_bytes - offset_bytes);
        Request { op, offset_bytes, length_bytes: length as u32 }
    }

    /// A command is done: gives who waits for its pages, by token, once for each page.
    pub(crate) fn arrived(&mut self, op: Op, page: u64, pages: u32) -> Vec<u32> {
        let mut tokens = Vec::new();
        for page in page..page + u64::from(pages) {
            match op {
                Op::Read => {
                    self.pages.filled(page);
                    tokens.extend(self.waiting.remove(&page).into_iter().flatten());
                }
                Op::Write => self.pages.written(page),
                Op::Trim | Op::Flush => {}
            }
        }
        tokens
    }
}
