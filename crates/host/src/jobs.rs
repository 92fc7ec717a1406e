//! Requests on their way through the kernel, and the commands they become.

use std::collections::VecDeque;
use std::ops::{Index, IndexMut};

use ssdyno_block::{Completion, Op, Request, Status, Time};
use ssdyno_engine::SlotTable;

// One bit distinguishes requests of the kernel from those of the workload. The port then carries
// one token type, and a lookup needs no second table.
/// Set in the token of a request that the kernel makes itself: write-back.
pub(crate) const INNER: u32 = 1 << 31;

/// A request of a thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Job {
    pub(crate) request: Request,
    /// Bytes that commands were made for.
    pub(crate) issued: u32,
    /// Commands that were made.
    pub(crate) commands: u32,
    /// Commands that it waits for.
    pub(crate) open: u32,
    /// All its commands were issued.
    pub(crate) whole: bool,
    /// When the device accepted its first command and completed its last one. A request without a
    /// completed command, such as a hit in the page cache, spends no time in the device.
    pub(crate) accepted: Time,
    pub(crate) ended: Time,
    pub(crate) status: Status,
    /// When the page cache looked it up, if it did.
    pub(crate) planned: Option<Time>,
    /// Pages of the cache that it writes, where the kernel made it.
    pub(crate) page: u64,
    pub(crate) pages: u32,
}

/// All requests, by token: of processes, and of the kernel.
#[derive(Clone, Debug, Default)]
pub(crate) struct Jobs {
    user: Vec<Job>,
    inner: SlotTable<Job>,
}

impl Jobs {
    /// The request of a process.
    pub(crate) fn set(&mut self, token: u32, job: Job) {
        let place = token as usize;
        if place >= self.user.len() {
            self.user.resize(place + 1, Job::new(Request::flush()));
        }
        self.user[place] = job;
    }

    /// A request of the kernel; gives its token.
    pub(crate) fn insert_inner(&mut self, job: Job) -> u32 {
        self.inner.insert(job) | INNER
    }

    /// It is over.
    pub(crate) fn free_inner(&mut self, token: u32) {
        self.inner.free(token & !INNER);
    }
}

impl Index<u32> for Jobs {
    type Output = Job;
    #[inline]
    fn index(&self, token: u32) -> &Job {
        match token & INNER {
            0 => &self.user[token as usize],
            _ => &self.inner[token & !INNER],
        }
    }
}

impl IndexMut<u32> for Jobs {
    #[inline]
    fn index_mut(&mut self, token: u32) -> &mut Job {
        match token & INNER {
            0 => &mut self.user[token as usize],
            _ => &mut self.inner[token & !INNER],
        }
    }
}

impl Job {
    pub(crate) fn new(request: Request) -> Job {
        // Each command takes the minimum. Zero as a start value would win every minimum.
        let accepted = Time::MAX;
        Job {
            request,
            issued: 0,
            commands: 0,
            open: 0,
            whole: false,
            accepted,
            ended: Time::ZERO,
            status: Status::Ok,
            planned: None,
            page: 0,
            pages: 0,
        }
    }

    /// The next piece of at most `most` bytes.
    pub(crate) fn piece(&self, most: u32) -> Request {
        let Request { op, offset_bytes, length_bytes } = self.request;
        match op {
            Op::Read | Op::Write => Request {
                op,
                offset_bytes: offset_bytes + u64::from(self.issued),
                length_bytes: (length_bytes - self.issued).min(most),
            },
            Op::Trim | Op::Flush => self.request,
        }
    }

    /// True once nothing is left to wait for.
    pub(crate) fn is_done(&self) -> bool {
        self.whole && self.open == 0
    }

    /// The device has completed a command that the request waited for.
    #[inline(always)]
    pub(crate) fn left_device(&mut self, command: &Command, completion: &Completion) {
        // A port that does not know when the device accepted the command says zero. The command
        // was with the driver by then, so the later of both times is the better bound. A page that
        // is read ahead may have set out before the request came.
        let issued = command.issued.max(self.planned.unwrap_or(Time::ZERO));
        self.accepted = self.accepted.min(completion.accepted.max(issued));
        self.ended = self.ended.max(completion.completed);
    }

    /// Time in the device.
    #[inline(always)]
    pub(crate) fn in_device(&self) -> Time {
        self.ended.saturating_sub(self.accepted)
    }
}

/// A command with the driver. It outlives its request where that completed early.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Command {
    pub(crate) thread: u32,
    pub(crate) token: u32,
    pub(crate) op: Op,
    /// Nobody waits for it.
    pub(crate) detached: bool,
    pub(crate) bytes: u32,
    pub(crate) issued: Time,
    /// Pages of the cache that it is for.
    pub(crate) page: u64,
    pub(crate) pages: u32,
}

/// All commands, by a number that is free again once the command is done.
#[derive(Clone, Debug, Default)]
pub(crate) struct Commands {
    all: SlotTable<Command>,
    pub(crate) in_use: u32,
}

impl Commands {
    #[inline]
    pub(crate) fn insert(&mut self, command: Command) -> u32 {
        self.in_use += 1;
        self.all.insert(command)
    }

    #[inline]
    pub(crate) fn remove(&mut self, slot: u32) -> Command {
        self.in_use -= 1;
        self.all.take(slot)
    }

    #[inline]
    pub(crate) fn get(&self, slot: u32) -> &Command {
        &self.all[slot]
    }
}

/// Where a thread is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum State {
    /// It waits, for completions or for its own time.
    #[default]
    Asleep,
    /// It waits for room in a queue.
    NoRoom,
    /// It waits for a buffer.
    NoBuffer,
    /// It waits until less is dirty.
    Throttled,
    /// It sleeps until its timer, whatever completes.
    Napping,
    /// It waits for the core.
    Ready,
    /// It has the core, and does this.
    Running(Step),
}

/// A step of work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    /// Preparing the next command, up to the lock if there is one.
    Prepare,
    /// Issuing it to this queue, with this lock held.
    Issue { queue: u16, lock: u16 },
    /// Spinning for the lock that goes with this queue.
    Spin { queue: u16 },
    /// Ending a request of which nothing is left to issue: the page cache had it.
    Served,
    /// Taking what has arrived back to the process.
    Return,
    /// Looking for completions.
    Poll,
    /// In its own code.
    User,
    /// It was woken in vain.
    Nothing,
}

/// A thread.
#[derive(Clone, Debug, Default)]
pub(crate) struct Thread {
    pub(crate) core: u16,
    pub(crate) class: u8,
    pub(crate) state: State,
    /// When it became ready.
    pub(crate) ready_at: Time,
    /// Requests that are not wholly issued, by token.
    pub(crate) to_submit: VecDeque<u32>,
    /// Read commands whose data waits in a buffer of the kernel.
    pub(crate) inbox: Vec<u32>,
    /// Requests that are done and not yet reported, by token.
    pub(crate) finished: Vec<u32>,
    /// Requests that were handed in and not yet reported.
    pub(crate) outstanding: u32,
    /// Commands that are with the driver and awaited.
    pub(crate) at_device: u32,
    /// It is inside the kernel: the next request of the same call costs no system call.
    pub(crate) entered: bool,
    /// It has the buffer for its next command.
    pub(crate) has_buffer: bool,
    /// Its next command is prepared, and was not taken for lack of room.
    pub(crate) prepared: bool,
    /// Room was found for it: it need not wait behind others.
    pub(crate) granted: bool,
    /// It has slept since its last report, and looks from now on.
    pub(crate) napped: bool,
    /// How many of `inbox` the step under way copies.
    pub(crate) copying: usize,
    /// How many of `finished` the step under way takes back; where a page cache copies them.
    pub(crate) returning: usize,
    /// Its first request goes on once what it has at the device is done.
    pub(crate) at_barrier: bool,
    /// Queues whose doorbells it still has to ring.
    pub(crate) unrung: Vec<u16>,
}

impl Thread {
    pub(crate) fn new(core: u16, class: u8) -> Thread {
        Thread { core, class, ..Thread::default() }
    }

    /// True if it has something to take back, given whether it waits for all.
    pub(crate) fn may_return(&self, waits_for_all: bool) -> bool {
        let some = !self.inbox.is_empty() || !self.finished.is_empty();
        if !waits_for_all {
            return some;
        }
        // A request may still wait for pages that another thread's command brings into the cache.
        let whole = !self.inbox.is_empty() || self.finished.len() as u32 == self.outstanding;
        some && whole && self.at_device == 0 && self.to_submit.is_empty()
    }
}
