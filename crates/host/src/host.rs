//! The machine: its parts, and its clockwork.

use std::collections::VecDeque;

use ssdyno_block::{Completion, ConfigError, Request, SubmitError, Time, Token};
use ssdyno_engine::EventQueue;
use ssdyno_engine::events::EventLog;

use crate::account::{Account, CpuCause};
use crate::cache::{CacheState, Piece};
use crate::cached::WriteBack;
use crate::config::{HostConfig, HostUse, ThreadMode};
use crate::core::{Core, Doing};
use crate::jobs::{Commands, Job, Jobs, State, Step, Thread};
use crate::lock::{Draw, SpinLock};
use crate::port::{HostPort, Registers};
use crate::watch::{CoreWatch, Unwatched};

/// What can happen on the host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Event {
    /// The step of this core may be over.
    StepEnd(u16),
    /// The handler of the core's first raised vector begins.
    Handler(u16),
    /// The nap of this thread is over.
    Timer(u32),
    /// A timer of the kernel, by kind.
    Kernel(u32),
}

/// Two bits for the kind, thirty for the rest.
impl ssdyno_engine::Event for Event {
    #[inline]
    fn pack(self) -> u32 {
        match self {
            Event::StepEnd(core) => u32::from(core),
            Event::Handler(core) => u32::from(core) | 1 << 30,
            Event::Timer(thread) => thread | 2 << 30,
            Event::Kernel(kind) => kind | 3 << 30,
        }
    }
    #[inline]
    fn unpack(code: u32) -> Event {
        let rest = code & !(3 << 30);
        match code >> 30 {
            0 => Event::StepEnd(rest as u16),
            1 => Event::Handler(rest as u16),
            2 => Event::Timer(rest),
            _ => Event::Kernel(rest),
        }
    }
}

/// [`CostConfig`](crate::CostConfig) at the clock of the host.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Costs {
    pub(crate) system_call: Time,
    pub(crate) request: Time,
    pub(crate) piece: Time,
    pub(crate) scsi: Time,
    pub(crate) command: Time,
    pub(crate) lock: Time,
    pub(crate) lock_handover: Time,
    pub(crate) register_write: Time,
    pub(crate) register_read: Time,
    pub(crate) interrupt: Time,
    pub(crate) completion: Time,
    pub(crate) wakeup: Time,
    pub(crate) context_switch: Time,
    pub(crate) poll: Time,
    pub(crate) idle_exit: Time,
    /// Of the page cache, for a page.
    pub(crate) page: Time,
    /// Of the file system, for a request.
    pub(crate) file_system: Time,
    /// System calls of a request.
    pub(crate) system_calls: u32,
    /// Further context switches of a request.
    pub(crate) extra_switches: f64,
    copy_ps_per_byte: f64,
}

impl Costs {
    fn new(config: &HostConfig, plan: &HostUse) -> Costs {
        let c = &config.costs;
        let at = |cost: crate::Cost| cost.at(config.cpu.clock);
        let rate = c.copy.filter(|_| config.stack.copy || config.cache.is_some());
        let table = config.file_system.as_ref();
        Costs {
            system_call: at(c.system_call) * u64::from(config.stack.system_calls),
            request: at(c.request),
            piece: at(c.piece),
            scsi: if plan.scsi { at(c.scsi) } else { Time::ZERO },
            command: at(c.command),
            lock: at(c.lock),
            lock_handover: at(c.lock_handover),
            register_write: at(c.register_write),
            register_read: at(c.register_read),
            interrupt: at(c.interrupt),
            completion: at(c.completion),
            wakeup: at(c.wakeup),
            context_switch: at(c.context_switch),
            poll: at(c.poll),
            idle_exit: config.cpu.idle_exit.0,
            page: config.cache.as_ref().map_or(Time::ZERO, |cache| at(cache.page_cost)),
            file_system: table.map_or(Time::ZERO, |table| at(table.request_cost)),
            system_calls: config.stack.system_calls,
            extra_switches: config.stack.extra_switches,
            copy_ps_per_byte: rate.map_or(0.0, |rate| 1e12 / rate.0),
        }
    }

    pub(crate) fn copy(&self, bytes: u32) -> Time {
        Time::from_ps((f64::from(bytes) * self.copy_ps_per_byte) as u64)
    }
}

/// Events after which [`Host::run`] lets its caller look after other things.
const STEPS: u32 = 256;

/// The class of threads that have none.
const MEDIUM: u8 = 2;

/// A host over one port. It has the calls of a
/// [`BlockTarget`](ssdyno_block::BlockTarget): a request is submitted when its thread makes the
/// system call, and completes when its thread knows.
///
/// Tokens are threads: with [`ThreadMode::Sync`] each token has its own, otherwise the tokens are
/// dealt out to [`HostUse::threads`] in turn. The submitter should hand freed tokens out again last
/// in, first out, so that a thread goes on with what it was doing.
pub struct Host<P, W = Unwatched> {
    pub(crate) port: P,
    pub(crate) watch: W,
    pub(crate) plan: HostUse,
    pub(crate) costs: Costs,
    pub(crate) copies: bool,
    pub(crate) write_behind: bool,
    pub(crate) piece_bytes: u32,
    pub(crate) time_slice: Time,
    pub(crate) shared: bool,
    pub(crate) queue: EventQueue<Event>,
    pub(crate) now: Time,
    pub(crate) cores: Vec<Core>,
    pub(crate) threads: Vec<Thread>,
    pub(crate) jobs: Jobs,
    /// The page cache, what it still has to do for each request, and its write-back.
    pub(crate) cache: Option<Box<CacheState>>,
    pub(crate) plans: Vec<VecDeque<Piece>>,
    pub(crate) write_back: WriteBack,
    /// The part of a switch that has not happened yet.
    pub(crate) switch_debt: f64,
    pub(crate) commands: Commands,
    pub(crate) locks: Vec<SpinLock>,
    pub(crate) draw: Draw,
    /// Threads that wait for room, by [group](Host::group).
    pub(crate) no_room: Vec<Vec<u32>>,
    /// Free buffers and the threads that wait for one.
    pub(crate) buffers: u32,
    pub(crate) no_buffer: Vec<u32>,
    /// By vector: its interrupt is under way to its handler.
    pub(crate) pending: Vec<bool>,
    /// Cores whose thread was just told something.
    pub(crate) users: Vec<u16>,
    pub(crate) account: Account,
    pub(crate) device_bytes: u64,
    /// Mean time of a command at the device, for [`Waiting::Hybrid`](crate::CompletionWait::Hybrid).
    pub(crate) device_mean: Time,
    /// Commands that nobody waited for and that failed.
    pub(crate) late_errors: u64,
    pub(crate) out: Vec<Completion>,
    /// The device's next event, and whether it may have changed.
    device_at: Time,
    pub(crate) touched: bool,
    vectors: Vec<u16>,
    pub(crate) done: Vec<Completion>,
}

impl<P: HostPort, W: CoreWatch> Host<P, W> {
    /// A host in front of `port`, at rest.
    ///
    /// # Errors
    /// [`ConfigError`] where the plan does not fit the host.
    pub fn new(
        config: &HostConfig,
        plan: HostUse,
        port: P,
        seed: u64,
    ) -> Result<Host<P, W>, ConfigError> {
        config.check()?;
        if plan.cores == 0 || plan.cores > config.cpu.cores {
            return Err(ConfigError::new(
                "cpu.cores",
                format!("{} cores of {} are asked for", plan.cores, config.cpu.cores),
                "ask for fewer (--cores), or raise cpu.cores of the host",
            ));
        }
        let asked = config.stack.buffer.map_or(u32::MAX, |bytes| bytes.0 as u32);
        let fixed = match plan.mode {
            ThreadMode::Sync => 0,
            ThreadMode::Async | ThreadMode::Batch => plan.threads.max(1),
        };
        let weight = config.lock.favoured_weight;
        let mut host = Host {
            costs: Costs::new(config, &plan),
            // With a page cache its pages are the buffers.
            copies: config.stack.copy && config.cache.is_none(),
            write_behind: config.stack.write_behind && config.cache.is_none(),
            piece_bytes: asked.min(port.transfer_bytes_max()),
            time_slice: config.cpu.time_slice.0,
            shared: port.shared(),
            queue: EventQueue::new(),
            now: Time::ZERO,
            cores: (0..plan.cores).map(|_| Core::new()).collect(),
            threads: Vec::new(),
            jobs: Jobs::default(),
            cache: None,
            plans: Vec::new(),
            write_back: WriteBack::default(),
            switch_debt: 0.0,
            commands: Commands::default(),
            locks: vec![SpinLock::default(); port.locks().into()],
            draw: Draw::new(config.lock.order, weight, plan.cores, seed),
            no_room: vec![Vec::new(); usize::from(plan.cores)],
            buffers: config.stack.buffers.unwrap_or(u32::MAX),
            no_buffer: Vec::new(),
            pending: Vec::new(),
            users: Vec::new(),
            account: Account::new(usize::from(plan.cores)),
            device_bytes: 0,
            device_mean: Time::ZERO,
            late_errors: 0,
            out: Vec::with_capacity(64),
            device_at: Time::MAX,
            touched: true,
            vectors: Vec::with_capacity(16),
            done: Vec::with_capacity(64),
            watch: W::new(plan.cores),
            plan,
            port,
        };
        if let Some(cache) = &config.cache {
            let capacity = host.port.capacity_bytes();
            let file_system = config.file_system.as_ref();
            let state = CacheState::new(cache, file_system, capacity, host.piece_bytes);
            host.account.cache = Some(Default::default());
            host.cache = Some(Box::new(state));
            host.grow(1);
        }
        host.grow(fixed + host.kernel_threads());
        Ok(host)
    }

    /// The driver and what is behind it.
    pub fn port(&self) -> &P {
        &self.port
    }

    /// The same, for what is done to the device before the first request.
    pub fn port_mut(&mut self) -> &mut P {
        &mut self.port
    }

    /// The log of the device, which `events` finds behind the driver, once what was heard of the cores has
    /// been handed to it.
    pub fn log(&mut self, events: impl FnOnce(&mut P) -> &mut EventLog) -> &mut EventLog {
        let log = events(&mut self.port);
        self.watch.show(log);
        log
    }

    /// What the host did so far.
    pub fn account(&self) -> &Account {
        &self.account
    }

    /// The window that figures are of begins at `at`.
    pub fn begin_window(&mut self, at: Time) {
        self.account.window_start = at;
        self.account.device_bytes_at_window_start = self.device_bytes;
    }

    /// What the page cache holds: pages, and those of them that are dirty or being written.
    #[cfg(test)]
    pub(crate) fn cached_pages(&self) -> Option<(usize, usize)> {
        self.cache.as_ref().map(|cache| (cache.pages.len(), cache.pages.unwritten()))
    }

    /// True if no command is with the driver.
    pub fn is_idle(&self) -> bool {
        self.commands.in_use == 0
    }

    /// Commands that failed after their request had been reported as done.
    pub fn late_errors(&self) -> u64 {
        self.late_errors
    }

    /// Takes `request` from the thread of `token`.
    ///
    /// # Errors
    /// None of its own: the caller has checked range and alignment. A full driver makes the thread
    /// wait, as it would on a machine.
    pub fn submit(&mut self, now: Time, request: Request, token: Token) -> Result<(), SubmitError> {
        self.now = self.now.max(now);
        self.jobs.set(token.0, Job::new(request));
        let thread = self.thread_of(token.0);
        self.account.requests += 1;
        let state = {
            let thread = &mut self.threads[thread as usize];
            thread.to_submit.push_back(token.0);
            thread.outstanding += 1;
            thread.state
        };
        match state {
            State::Running(Step::User) => {
                let core = self.threads[thread as usize].core;
                self.users.retain(|other| *other != core);
                self.run_thread(core, thread, self.now, Time::ZERO);
            }
            State::Asleep | State::Napping => self.make_ready(thread, self.now),
            State::Running(Step::Poll) => self.stop_polling(thread, self.now),
            State::NoRoom
            | State::NoBuffer
            | State::Throttled
            | State::Ready
            | State::Running(_) => {}
        }
        Ok(())
    }

    /// Threads that are not of processes: the one that writes back.
    fn kernel_threads(&self) -> u32 {
        u32::from(self.cache.is_some())
    }

    pub(crate) fn thread_of(&mut self, token: u32) -> u32 {
        let kernel = self.kernel_threads();
        if self.plan.mode != ThreadMode::Sync {
            return kernel + token % (self.threads.len() as u32 - kernel);
        }
        self.grow(kernel + token + 1);
        kernel + token
    }

    /// Makes sure that there are so many threads.
    fn grow(&mut self, threads: u32) {
        let kernel = self.kernel_threads() as usize;
        for n in self.threads.len()..threads as usize {
            let n = n.saturating_sub(kernel);
            let core = (n % self.cores.len()) as u16;
            let class = match &self.plan.classes[..] {
                [] => MEDIUM,
                classes => classes[n % classes.len()],
            };
            self.threads.push(Thread::new(core, class));
        }
    }

    /// Brings host and device to `now`, and appends what threads have been told.
    pub fn reap(&mut self, now: Time, out: &mut Vec<Completion>) {
        self.leave_users();
        while self.step(now) {}
        out.append(&mut self.out);
    }

    /// As [`reap`](Host::reap), but only up to the first time at which a thread is told something,
    /// or `STEPS` events; gives the time reached, `None` if nothing will happen before `limit` and
    /// that is [`Time::MAX`].
    pub fn run(&mut self, limit: Time, out: &mut Vec<Completion>) -> Option<Time> {
        self.leave_users();
        for step in 0..STEPS {
            if !self.out.is_empty() {
                break;
            }
            if !self.step(limit) {
                // What a device does after the last completion, such as emptying its write buffer,
                // takes time too: the caller learns when it was over.
                if limit == Time::MAX && step == 0 {
                    return None;
                }
                if limit != Time::MAX {
                    self.now = self.now.max(limit);
                }
                break;
            }
        }
        out.append(&mut self.out);
        Some(self.now)
    }

    /// Threads that were told something and asked for nothing more wait again.
    #[inline]
    fn leave_users(&mut self) {
        while let Some(core) = self.users.pop() {
            if let Doing::User { thread } = self.cores[core as usize].doing {
                self.run_thread(core, thread, self.now, Time::ZERO);
            }
        }
    }

    /// The next thing that happens up to `limit`; false if there is none.
    #[inline(always)]
    fn step(&mut self, limit: Time) -> bool {
        let device = self.device_next();
        let own = self.queue.next_time().unwrap_or(Time::MAX);
        // The device first: what it does now may be seen now.
        if device <= own {
            if device > limit || device == Time::MAX {
                return false;
            }
            self.advance_device(own.min(limit).max(self.now));
            return true;
        }
        let Some((at, event)) = self.queue.pop_due(limit) else { return false };
        self.now = at;
        match event {
            Event::StepEnd(core) => self.step_end(at, core),
            Event::Handler(core) => self.handler(at, core),
            Event::Timer(thread) => self.timer(at, thread),
            Event::Kernel(kind) => self.kernel_timer(at, kind),
        }
        true
    }

    /// When the device has something to do; asked again only after something was done to it.
    #[inline]
    fn device_next(&mut self) -> Time {
        if self.touched {
            self.touched = false;
            self.device_at = self.port.next_event().unwrap_or(Time::MAX);
        }
        self.device_at
    }

    /// The next time at which [`reap`](Host::reap) may find something to do.
    pub fn next_event(&self) -> Option<Time> {
        if !self.users.is_empty() || !self.out.is_empty() {
            return Some(self.now);
        }
        match (self.port.next_event(), self.queue.next_time()) {
            (Some(device), Some(own)) => Some(device.min(own)),
            (device, own) => device.or(own),
        }
        .map(|at| at.max(self.now))
    }

    #[inline(always)]
    fn advance_device(&mut self, until: Time) {
        self.touched = true;
        self.now = self.port.advance(until, &mut self.vectors).max(self.now);
        for place in 0..self.vectors.len() {
            self.message(self.now, self.vectors[place]);
        }
        self.vectors.clear();
        self.pay_resent(self.now);
    }

    /// Threads that may use the same queues compete for room in them: all of them, or those of a
    /// core.
    pub(crate) fn group(&self, thread: u32) -> usize {
        if self.shared { 0 } else { usize::from(self.threads[thread as usize].core) }
    }

    /// Charges register accesses of `core`, and gives how long they took.
    pub(crate) fn registers(&mut self, core: u16, registers: Registers) -> Time {
        let Registers { writes, reads } = registers;
        self.account.register_writes += u64::from(writes);
        self.account.register_reads += u64::from(reads);
        let time = self.costs.register_write * u64::from(writes)
            + self.costs.register_read * u64::from(reads);
        self.charge(core, CpuCause::Registers, time)
    }

    /// Charges `time`, and gives it back for the sum.
    #[inline]
    pub(crate) fn charge(&mut self, core: u16, cause: CpuCause, time: Time) -> Time {
        self.account.cpu.charge(core, cause, time);
        self.watch.charged(core, cause, time);
        time
    }
}

impl<P, W> std::fmt::Debug for Host<P, W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Host").field("plan", &self.plan).field("now", &self.now).finish()
    }
}
