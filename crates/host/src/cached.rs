//! The page cache at work: what requests wait for, and the thread that writes back.

use std::collections::VecDeque;

use ssdyno_block::{Completion, Op, Request, Time};

use crate::Host;
use crate::account::CpuCause;
use crate::cache::{CacheState, Piece};
use crate::config::HostConfig;
use crate::host::Event;
use crate::jobs::{Command, INNER, Job, State};
use crate::port::HostPort;
use crate::watch::CoreWatch;

/// The thread of the kernel that writes back, where there is a cache.
pub(crate) const FLUSHER: u32 = 0;

/// Kinds of timers.
pub(crate) const FLUSH: u32 = 0;
pub(crate) const COMMIT: u32 = 1;

/// The next step of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Next {
    pub(crate) request: Request,
    /// Pages of the cache that it is for.
    pub(crate) page: u64,
    pub(crate) pages: u32,
    /// Nobody waits for it.
    pub(crate) detached: bool,
    /// It is the last of its request.
    pub(crate) whole: bool,
}

/// How far a thread is with its first request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Prepared {
    /// After this amount of work its next command can be issued.
    Command(Time),
    /// After this amount of work nothing is left to issue.
    Served(Time),
    /// Its next command waits for those before it.
    Barrier,
    /// No buffer.
    NoBuffer,
    /// Too much is dirty.
    Throttled,
}

/// State of write-back.
#[derive(Clone, Debug, Default)]
pub(crate) struct WriteBack {
    outstanding: u32,
    /// A timer of each kind is set.
    timers: [bool; 2],
    /// A commit waits for the data before it.
    commit: bool,
    /// Commands of commits that wait to be issued.
    journal: Vec<Request>,
    /// Threads that wait because too much is dirty.
    pub(crate) throttled: Vec<u32>,
}

/// The page cache, if there is one, what it still has to do for each request, and its write-back.
#[derive(Clone, Debug)]
pub(crate) struct PageCache {
    pub(crate) state: Option<Box<CacheState>>,
    /// By token.
    plans: Vec<VecDeque<Piece>>,
    pub(crate) write_back: WriteBack,
}

impl PageCache {
    /// The cache of the host file, over a device of `capacity_bytes` whose commands have at most `command_bytes`.
    pub(crate) fn new(config: &HostConfig, capacity_bytes: u64, command_bytes: u32) -> PageCache {
        let file_system = config.file_system.as_ref();
        let state = config.cache.as_ref().map(|cache| {
            Box::new(CacheState::new(cache, file_system, capacity_bytes, command_bytes))
        });
        PageCache { state, plans: Vec::new(), write_back: WriteBack::default() }
    }

    #[inline(always)]
    pub(crate) fn is_there(&self) -> bool {
        self.state.is_some()
    }

    /// True if the request of `token` goes through the cache: requests of the kernel come from it.
    #[inline(always)]
    fn serves(&self, token: u32) -> bool {
        self.is_there() && token & INNER == 0
    }

    fn plan(&mut self, token: u32, pieces: VecDeque<Piece>) {
        let place = token as usize;
        if self.plans.len() <= place {
            self.plans.resize(place + 1, Default::default());
        }
        self.plans[place] = pieces;
    }

    /// The next command of `token`; `None` if its plan has none, or it must wait.
    fn next_command(&self, token: u32) -> Option<Next> {
        let plan = &self.plans[token as usize];
        let Piece::Command { request, page, pages, wait } = *plan.front()? else { return None };
        let whole = plan.len() == 1;
        Some(Next { request, page, pages, detached: !wait, whole })
    }

    /// True if the next piece of `token`, which waits for `open` commands, is a barrier; passes one
    /// that nothing holds.
    fn at_barrier(&mut self, token: u32, open: u32) -> bool {
        let plan = &mut self.plans[token as usize];
        while plan.front() == Some(&Piece::Barrier) {
            if open > 0 {
                return true;
            }
            plan.pop_front();
        }
        false
    }

    /// A command of `token` was issued.
    #[inline(always)]
    pub(crate) fn piece_issued(&mut self, token: u32) {
        if self.serves(token) {
            self.plans[token as usize].pop_front();
        }
    }

    /// The timer of `kind` is over; true if a page is still dirty.
    fn timer_over(&mut self, at: Time, kind: u32) -> bool {
        let Some(cache) = &mut self.state else { return false };
        self.write_back.timers[kind as usize] = false;
        if kind == COMMIT {
            if cache.is_ordered() {
                cache.take_all(at);
            }
            self.write_back.commit = true;
        } else {
            cache.expire(at);
        }
        !cache.is_clean()
    }

    /// The next command of write-back, if there is one and not too many are outstanding.
    fn next_write(&mut self) -> Option<Job> {
        let cache = self.state.as_mut()?;
        let state = &mut self.write_back;
        // The depth of write-back is limited. An unlimited flusher would fill the queue of the
        // device, and reads of the application would wait behind all dirty pages.
        if state.outstanding >= cache.config().write_depth {
            return None;
        }
        let (request, page, pages) = loop {
            if let Some(next) = cache.next_write() {
                break next;
            }
            if let Some(request) = state.journal.pop() {
                break (request, 0, 0);
            }
            // In ordered mode the data must be on the device before the commit record. The journal
            // therefore waits until no write of data is outstanding.
            let settled = state.outstanding == 0 || !cache.is_ordered();
            if !state.commit || !cache.nothing_due() || !settled {
                return None;
            }
            state.commit = false;
            state.journal = cache.commit();
            // The commands are taken from the end of the vector, which costs nothing. The reversal
            // keeps the order in which `commit` lists them.
            state.journal.reverse();
        };
        state.outstanding += 1;
        let mut job = Job::new(request);
        (job.page, job.pages) = (page, pages);
        Some(job)
    }
}

impl<P: HostPort, W: CoreWatch> Host<P, W> {
    /// Looks the request of `token` up in the cache unless that was done; gives the work, or `None`
    /// where it has to wait because too much is dirty.
    pub(crate) fn plan_job(&mut self, core: u16, token: u32, at: Time) -> Option<Time> {
        let Some(cache) = &mut self.cache.state else { return Some(Time::ZERO) };
        let job = &mut self.jobs[token];
        if token & INNER != 0 || job.planned.is_some() {
            return Some(Time::ZERO);
        }
        let request = job.request;
        // Reads pass although too much is dirty: only writers create dirty pages. The check
        // precedes the look-up, which would already change the pages.
        if request.op == Op::Write && cache.must_wait() {
            cache.account.throttled += 1;
            return None;
        }
        job.planned = Some(at);
        let lookup = cache.look_up(at, token, request);
        job.open += lookup.awaited;
        self.account.cache = Some(cache.account);
        self.cache.plan(token, lookup.pieces);
        let costs = self.setup.costs;
        let mut work = self.charge(core, CpuCause::Cache, costs.page * lookup.touched);
        work += self.charge(core, CpuCause::FileSystem, costs.file_system);
        if request.op == Op::Write {
            work += self.charge(core, CpuCause::Copy, costs.copy(request.length_bytes));
            self.set_timer(FLUSH, at);
            self.write_back(at, Some(core));
        }
        Some(work)
    }

    /// The next command of `token`; `None` if it has none, or it must wait (the caller has asked
    /// [`at_barrier`](Host::at_barrier)).
    #[inline(always)]
    pub(crate) fn next_command(&self, token: u32) -> Option<Next> {
        let job = &self.jobs[token];
        if self.cache.serves(token) {
            return self.cache.next_command(token);
        }
        let request = job.piece(self.setup.piece_bytes);
        let inner = token & INNER != 0;
        let whole = matches!(request.op, Op::Trim | Op::Flush)
            || job.issued + request.length_bytes == job.request.length_bytes;
        let detached = inner || self.setup.write_behind && request.op == Op::Write;
        Some(Next { request, page: job.page, pages: job.pages, detached, whole })
    }

    /// True if the next piece of `token` waits for those before it; passes a barrier that nothing
    /// holds.
    pub(crate) fn at_barrier(&mut self, token: u32) -> bool {
        self.cache.serves(token) && self.cache.at_barrier(token, self.jobs[token].open)
    }

    /// Nothing of the thread's first request is left to issue.
    pub(crate) fn served(&mut self, core: u16, thread: u32, at: Time) {
        let entry = &mut self.threads[thread as usize];
        entry.prepared = false;
        if let Some(token) = entry.to_submit.pop_front() {
            let job = &mut self.jobs[token];
            job.whole = true;
            if job.is_done() {
                entry.finished.push(token);
            }
        }
        self.run_thread(core, thread, at, Time::ZERO);
    }

    /// Copies that the thread makes as it takes whole requests back out of the cache.
    pub(crate) fn copies_back(&self, thread: u32) -> Time {
        if !self.cache.is_there() {
            return Time::ZERO;
        }
        let entry = &self.threads[thread as usize];
        let bytes = |token: &u32| {
            let request = self.jobs[*token].request;
            if request.op == Op::Read { request.length_bytes } else { 0 }
        };
        entry.finished.iter().map(|token| self.setup.costs.copy(bytes(token))).sum()
    }

    /// A command is done: its pages are there, or are clean.
    #[inline(always)]
    pub(crate) fn pages_arrived(
        &mut self,
        command: &Command,
        completion: &Completion,
        at: Time,
        by: u16,
    ) {
        let Some(cache) = &mut self.cache.state else { return };
        let waiting = cache.arrived(command.op, command.page, command.pages);
        for token in waiting {
            let job = &mut self.jobs[token];
            job.open -= 1;
            job.left_device(command, completion);
            let done = job.is_done();
            let thread = self.threads.of(token);
            if done {
                self.threads[thread as usize].finished.push(token);
            }
            self.tell(thread, at, by);
        }
        if command.op != Op::Write {
            return;
        }
        if command.token & INNER != 0 {
            self.cache.write_back.outstanding -= 1;
            self.jobs.free_inner(command.token);
        }
        self.write_back(at, None);
        // All throttled writers wake at once and check again. To wake one at a time could leave the
        // others asleep if the first one writes nothing.
        let below = self.cache.state.as_mut().is_some_and(|cache| !cache.must_wait());
        if below {
            for thread in std::mem::take(&mut self.cache.write_back.throttled) {
                self.wake(thread, at, by);
            }
        }
    }

    /// Sets the timer of `kind`, and that of commits, unless they are set.
    fn set_timer(&mut self, kind: u32, at: Time) {
        let Some(cache) = &self.cache.state else { return };
        let journal =
            cache.file_system().filter(|table| table.journal != crate::cache::Journal::None);
        let commit = journal.map(|table| table.commit_interval.0);
        let flush = cache.config().flush_interval.0;
        for (kind, interval) in [(kind, Some(flush)), (COMMIT, commit)] {
            let Some(interval) = interval else { continue };
            if !std::mem::replace(&mut self.cache.write_back.timers[kind as usize], true) {
                // Timers expire at multiples of the interval and not relative to the first write.
                // The kernel thread of S4-25 (flush every 30 s) wakes periodically in the same way.
                let turns = at.as_ps() / interval.as_ps() + 1;
                let next = Time::from_ps(turns.saturating_mul(interval.as_ps()));
                self.queue.schedule(next, Event::Kernel(kind));
            }
        }
    }

    /// A timer of the kernel is over.
    pub(crate) fn kernel_timer(&mut self, at: Time, kind: u32) {
        if self.cache.timer_over(at, kind) {
            self.set_timer(FLUSH, at);
        }
        self.write_back(at, None);
    }

    /// Gives the flusher what it may write now; `on` is the core whose thread requests it, and continues.
    fn write_back(&mut self, at: Time, on: Option<u16>) {
        let Some(cache) = &mut self.cache.state else { return };
        cache.write_excess(at);
        let mut writes = false;
        while let Some(job) = self.cache.next_write() {
            let token = self.jobs.insert_inner(job);
            self.threads[FLUSHER as usize].to_submit.push_back(token);
            writes = true;
        }
        self.account.cache = self.cache.state.as_ref().map(|cache| cache.account);
        if !writes {
            return;
        }
        let flusher = &self.threads[FLUSHER as usize];
        match flusher.state {
            // The core is not free, although it may look so between two steps.
            State::Asleep if on == Some(flusher.core) => {
                self.line_up(FLUSHER, at);
            }
            State::Asleep => self.make_ready(FLUSHER, at),
            _ => {}
        }
    }
}
