//! The machine: its parts, and its clockwork.

use ssdyno_block::{Completion, ConfigError, Request, SubmitError, Time, Token};
use ssdyno_engine::EventQueue;
use ssdyno_engine::events::EventLog;

use crate::account::{Account, CpuCause};
use crate::cached::PageCache;
use crate::config::{HostConfig, HostUse};
use crate::contention::Contention;
use crate::core::{Core, Doing};
use crate::device::DeviceView;
use crate::jobs::{Commands, Job, Jobs, State, Step};
use crate::port::{HostPort, Registers};
use crate::setup::Setup;
use crate::threads::Threads;
use crate::watch::{CoreWatch, Unwatched};

ssdyno_engine::event_kinds! {
    /// The possible events of the host.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub(crate) enum Event << 30 {
        /// The step of this core may be over.
        StepEnd(u16) = 0,
        /// The handler of the core's first raised vector begins.
        Handler(u16) = 1,
        /// The nap of this thread is over.
        Timer(u32) = 2,
        /// A timer of the kernel, by kind.
        Kernel(u32) = 3,
    }
}

/// Events after which [`Host::run`] lets its caller look after other things.
const STEPS: u32 = 256;

/// A host over one port. It has the calls of a
/// [`BlockTarget`](ssdyno_block::BlockTarget): a request is submitted when its thread makes the
/// system call, and completes when its thread knows.
///
/// Tokens are threads: with [`ThreadMode::Sync`](crate::ThreadMode::Sync) each token has its own, otherwise the tokens are
/// dealt out to [`HostUse::threads`] in turn. The submitter should hand freed tokens out again last
/// in, first out, so that a thread goes on with what it was doing.
pub struct Host<P, W = Unwatched> {
    pub(crate) port: P,
    pub(crate) watch: W,
    pub(crate) setup: Setup,
    pub(crate) queue: EventQueue<Event>,
    pub(crate) now: Time,
    pub(crate) cores: Vec<Core>,
    pub(crate) threads: Threads,
    pub(crate) jobs: Jobs,
    pub(crate) commands: Commands,
    pub(crate) cache: PageCache,
    pub(crate) contention: Contention,
    pub(crate) device: DeviceView,
    pub(crate) account: Account,
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
                format!("{} cores are requested; the host has {}", plan.cores, config.cpu.cores),
                "use fewer (--cores), or raise cpu.cores of the host",
            ));
        }
        let setup = Setup::new(config, plan, &port);
        let cores = setup.plan.cores;
        let cache = PageCache::new(config, port.capacity_bytes(), setup.piece_bytes);
        let mut account = Account::new(usize::from(cores));
        account.cache = cache.is_there().then(Default::default);
        Ok(Host {
            queue: EventQueue::new(),
            now: Time::ZERO,
            cores: (0..cores).map(|_| Core::new()).collect(),
            threads: Threads::new(&setup.plan, u32::from(cache.is_there())),
            jobs: Jobs::default(),
            commands: Commands::default(),
            cache,
            contention: Contention::new(
                &config.lock,
                cores,
                port.locks(),
                config.stack.buffers,
                seed,
            ),
            device: DeviceView::new(),
            account,
            watch: W::new(cores),
            setup,
            port,
        })
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

    /// The work of the host so far.
    pub fn account(&self) -> &Account {
        &self.account
    }

    /// The window that figures are of begins at `at`.
    pub fn begin_window(&mut self, at: Time) {
        self.account.window_start = at;
        self.account.device_bytes_at_window_start = self.device.bytes;
        self.account.at_window_start = Some(Box::new(self.account.clone()));
    }

    /// The contents of the page cache: pages, and the dirty ones or those being written.
    #[cfg(test)]
    pub(crate) fn cached_pages(&self) -> Option<(usize, usize)> {
        self.cache.state.as_ref().map(|cache| (cache.pages.len(), cache.pages.unwritten()))
    }

    /// True if no command is with the driver.
    pub fn is_idle(&self) -> bool {
        self.commands.in_use == 0
    }

    /// Commands that failed after their request had been reported as done.
    pub fn late_errors(&self) -> u64 {
        self.device.late_errors
    }

    /// Takes `request` from the thread of `token`.
    ///
    /// # Errors
    /// None of its own: the caller has checked range and alignment. A full driver makes the thread
    /// wait, as it would on a machine.
    pub fn submit(&mut self, now: Time, request: Request, token: Token) -> Result<(), SubmitError> {
        // The host can be ahead of the caller after a batch of events. Time must not go back: the
        // event queue rejects an event in the past.
        self.now = self.now.max(now);
        self.jobs.set(token.0, Job::new(request));
        let thread = self.threads.of(token.0);
        self.account.requests += 1;
        let state = {
            let thread = &mut self.threads[thread as usize];
            thread.to_submit.push_back(token.0);
            thread.outstanding += 1;
            thread.state
        };
        match state {
            // The thread is still on its core and submits from the same time slice. A context
            // switch here would make a synchronous loop pay twice per request.
            State::Running(Step::User) => {
                let core = self.threads[thread as usize].core;
                self.threads.users.retain(|other| *other != core);
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

    /// Brings host and device to `now`, and appends what threads have been told.
    pub fn reap(&mut self, now: Time, out: &mut Vec<Completion>) {
        self.leave_users();
        while self.step(now) {}
        out.append(&mut self.threads.out);
    }

    /// As [`reap`](Host::reap), but only up to the first time at which a thread is told something,
    /// or `STEPS` events; gives the time reached, `None` if nothing will happen before `limit` and
    /// that is [`Time::MAX`].
    pub fn run(&mut self, limit: Time, out: &mut Vec<Completion>) -> Option<Time> {
        self.leave_users();
        // The limit returns control to the runner, so that an interruption by the user takes effect
        // even if no request completes for a long time.
        for step in 0..STEPS {
            if !self.threads.out.is_empty() {
                break;
            }
            if !self.step(limit) {
                // The work of a device after the last completion, such as emptying its write
                // buffer, takes time too: the caller learns when it ended.
                if limit == Time::MAX && step == 0 {
                    return None;
                }
                if limit != Time::MAX {
                    self.now = self.now.max(limit);
                }
                break;
            }
        }
        out.append(&mut self.threads.out);
        Some(self.now)
    }

    /// Threads that were informed and have no further request wait again.
    #[inline]
    fn leave_users(&mut self) {
        while let Some(core) = self.threads.users.pop() {
            if let Doing::User { thread } = self.cores[core as usize].doing {
                self.run_thread(core, thread, self.now, Time::ZERO);
            }
        }
    }

    /// Processes the next event up to `limit`; false if there is none.
    #[inline(always)]
    fn step(&mut self, limit: Time) -> bool {
        let device = self.device.next(&self.port);
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

    /// The next time at which [`reap`](Host::reap) may find something to do.
    pub fn next_event(&self) -> Option<Time> {
        if !self.threads.users.is_empty() || !self.threads.out.is_empty() {
            return Some(self.now);
        }
        let next = self.port.next_event().into_iter().chain(self.queue.next_time()).min();
        next.map(|at| at.max(self.now))
    }

    #[inline(always)]
    fn advance_device(&mut self, until: Time) {
        self.device.touched = true;
        self.now = self.port.advance(until, &mut self.device.vectors).max(self.now);
        for place in 0..self.device.vectors.len() {
            self.message(self.now, self.device.vectors[place]);
        }
        self.device.vectors.clear();
        self.pay_resent(self.now);
    }

    /// Threads that may use the same queues compete for room in them: all of them, or those of a
    /// core.
    pub(crate) fn group(&self, thread: u32) -> usize {
        if self.setup.shared { 0 } else { usize::from(self.threads[thread as usize].core) }
    }

    /// Charges register accesses of `core`, and gives how long they took.
    pub(crate) fn registers(&mut self, core: u16, registers: Registers) -> Time {
        let Registers { writes, reads } = registers;
        self.account.register_writes += u64::from(writes);
        self.account.register_reads += u64::from(reads);
        let time = self.setup.costs.register_write * u64::from(writes)
            + self.setup.costs.register_read * u64::from(reads);
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
        f.debug_struct("Host").field("plan", &self.setup.plan).field("now", &self.now).finish()
    }
}
